/* SPDX-License-Identifier: BSD-3-Clause */
/* replay_verdict.c: the verdict on a packet in words: what it is, and where a redirected packet is to go. */
#include "replay.h"

#include <linux/bpf.h>
#include <string.h>

#include "base/json_out.h"

const char *replay_verdict_name(uint32_t verdict)
{
	return verdict < LEAT_XDP_ACTIONS ? leat_xdp_action_name(verdict) : "unknown";
}

static void target_text(const struct leat_bpf_redirect *to, char *buf, size_t size)
{
	struct leat_bpf_map_info info;
	char port[24] = "", prog[80] = "";

	if (!to->map && !to->key) {
		snprintf(buf, size, " to nowhere");
		return;
	}
	if (!to->map) {
		snprintf(buf, size, " to port %u", to->key);
		return;
	}
	leat_bpf_map_info(to->map, &info);
	if (to->port)
		snprintf(port, sizeof(port), ", port %u", to->port);
	if (to->prog)
		snprintf(prog, sizeof(prog), " through %s", leat_bpf_prog_name(to->prog));
	if (to->flags & BPF_F_BROADCAST)
		snprintf(buf, size, " to all of %s", info.name);
	else
		snprintf(buf, size, " to %s[%u]%s%s", info.name, to->key, port, prog);
}

void replay_verdict_text(const struct replay *r, uint32_t verdict, char *buf, size_t size)
{
	struct leat_bpf_redirect to;
	size_t len = (size_t)snprintf(buf, size, "%s", replay_verdict_name(verdict));

	if (verdict != LEAT_XDP_REDIRECT || len >= size)
		return;
	leat_bpf_env_redirect(r->env, r->opts->cpu, &to);
	target_text(&to, buf + len, size - len);
}

void replay_verdict_json(const struct replay *r, uint32_t verdict, struct leat_json_out *j)
{
	struct leat_bpf_redirect to;
	struct leat_bpf_map_info info;

	leat_json_string(j, "verdict", replay_verdict_name(verdict));
	if (verdict != LEAT_XDP_REDIRECT)
		return;
	leat_bpf_env_redirect(r->env, r->opts->cpu, &to);
	if (to.map) {
		leat_bpf_map_info(to.map, &info);
		leat_json_string(j, "map", info.name);
		if (to.flags & BPF_F_BROADCAST)
			leat_json_raw(j, "broadcast", "true");
		else
			leat_json_number(j, "key", to.key);
	}
	if (to.port)
		leat_json_number(j, "port", to.port);
	if (to.prog)
		leat_json_string(j, "through", leat_bpf_prog_name(to.prog));
}
