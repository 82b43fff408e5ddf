/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_control.c: any bytes as lines of the control socket, of a datapath with ports, programs and a bridge: each line
 * has one reply, which is one line of JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "ctl/control.h"
#include "fuzz.h"

#include <jansson.h>

static const char config[] = "ports:\n"
			     "  a: { type: veth, peer: b }\n"
			     "  b: { type: veth, peer: a }\n"
			     "  c: { type: sink }\n"
			     "programs: { no: { builtin: drop }, go: { builtin: redirect, port: c } }\n"
			     "attach: { a: [no, go] }\n"
			     "bridges: { br0: [b, c] }\n"
			     "control: off\n";

static struct leat_datapath *datapath(void)
{
	static struct leat_datapath *dp;
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };

	if (!dp && leat_datapath_load_text(config, sizeof(config) - 1, "fuzz.yaml", &opts, NULL, &dp))
		abort();
	return dp;
}

static void answer(const char *line, size_t len)
{
	size_t reply_len = 0;
	char *reply = leat_control_answer(datapath(), line, len, &reply_len);
	json_t *json;

	if (!reply || strlen(reply) != reply_len || strchr(reply, '\n') != reply + reply_len - 1)
		abort();
	json = json_loads(reply, 0, NULL);
	if (!json_object_get(json, "reply") == !json_object_get(json, "error"))
		abort();
	json_decref(json);
	free(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size, *next;

	for (; at < end; at = next) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		answer(at, (size_t)(next - at));
	}
	return 0;
}
