/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_json.c: requests of the control socket: a line is read, what it asks for is found in a table, and what is
 * answered becomes one line. Control thread.
 *
 * A request is hostile: at most LEAT_CONTROL_LINE_MAX bytes, members that nobody knows are mistakes, and every text in
 * it is looked up, never used as a path or a format. What a reply takes from packets or objects is escaped.
 */
#include "ctl/control_json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/control.h"

#define MEMBERS_MAX 4

static const struct request {
	const char *name;
	leat_control_fn *fn;
	const char *members[MEMBERS_MAX]; /* texts it may have; NULL at the end */
} requests[] = {
	{ "stats", leat_control_stats, { NULL } },
	{ "port", leat_control_ports, { "name", NULL } },
	{ "pool", leat_control_pools, { NULL } },
	{ "prog", leat_control_progs, { "name", NULL } },
	{ "map", leat_control_maps, { "name", "program", "after", NULL } },
	{ "drops", leat_control_drops, { "port", NULL } },
};

#define N_REQUESTS (sizeof(requests) / sizeof(requests[0]))

const char *leat_control_text(const struct leat_control_ask *ask, const char *member)
{
	return json_string_value(json_object_get(ask->request, member));
}

void leat_control_fail(struct leat_control_ask *ask, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(ask->error, sizeof(ask->error), fmt, args);
	va_end(args);
}

/* ---- checking ---- */

static const struct request *find_request(struct leat_control_ask *ask)
{
	const char *name = leat_control_text(ask, "request");
	char known[80] = "";
	size_t i, len = 0;

	for (i = 0; i < N_REQUESTS; i++) {
		if (name && !strcmp(requests[i].name, name))
			return &requests[i];
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "", requests[i].name);
	}
	if (name)
		leat_control_fail(ask, "unknown request '%.40s'; known: %s", name, known);
	else
		leat_control_fail(ask, "the member \"request\" is missing or no text");
	return NULL;
}

static bool is_member(const struct request *request, const char *name)
{
	unsigned int i;

	for (i = 0; request->members[i]; i++)
		if (!strcmp(request->members[i], name))
			return true;
	return false;
}

static bool check_members(struct leat_control_ask *ask, const struct request *request)
{
	json_t *object = json_object_get(ask->request, "id"), *value;
	const char *name;

	if (object && !json_is_string(object) && !json_is_integer(object)) {
		leat_control_fail(ask, "the member \"id\" must be a text or a whole number");
		return false;
	}
	json_object_foreach((json_t *)(uintptr_t)ask->request, name, value) {
		if (!strcmp(name, "request") || !strcmp(name, "id"))
			continue;
		if (!is_member(request, name))
			leat_control_fail(ask, "unknown member '%.40s'", name);
		else if (!json_is_string(value))
			leat_control_fail(ask, "the member \"%s\" must be a text", name);
		if (*ask->error)
			return false;
	}
	return true;
}

/* ---- answering ---- */

/** The members of the reply. @request is NULL when that is wrong already. Returns false when memory is out. */
static bool run_request(struct leat_control_ask *ask, const struct request *request, char **body)
{
	size_t len;
	bool good;

	ask->json.out = open_memstream(body, &len);
	if (!ask->json.out)
		return false;
	leat_json_open_flat(&ask->json, NULL, '{');
	if (request)
		request->fn(ask);
	leat_json_close(&ask->json, '}');
	good = !ferror(ask->json.out);
	return !fclose(ask->json.out) && good;
}

/** One line: the id of the request, if it had one, and the reply or what is wrong. */
static char *envelope(const struct leat_control_ask *ask, const char *body, size_t *len)
{
	const json_t *id = json_object_get(ask->request, "id");
	char *text = NULL, *id_text = NULL;
	struct leat_json_out j = { .out = open_memstream(&text, len) };
	bool good;

	if (!j.out)
		return NULL;
	if (json_is_string(id) || json_is_integer(id))
		id_text = json_dumps(id, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	leat_json_open_flat(&j, NULL, '{');
	if (id_text)
		leat_json_raw(&j, "id", id_text);
	if (*ask->error)
		leat_json_string(&j, "error", ask->error);
	else
		leat_json_raw(&j, "reply", body);
	leat_json_close(&j, '}');
	fputc('\n', j.out);
	free(id_text);
	good = !ferror(j.out);
	if (!fclose(j.out) && good)
		return text;
	free(text);
	return NULL;
}

static json_t *parse(struct leat_control_ask *ask, const char *line, size_t len)
{
	json_error_t error;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);

	if (!request)
		leat_control_fail(ask, "not JSON: %.120s", error.text);
	else if (!json_is_object(request))
		leat_control_fail(ask, "a request is an object, like {\"request\": \"stats\"}");
	return request;
}

char *leat_control_answer(struct leat_datapath *dp, const char *line, size_t len, size_t *reply_len)
{
	struct leat_control_ask ask = { .dp = dp };
	json_t *request = parse(&ask, line, len);
	const struct request *found = NULL;
	char *body = NULL, *reply = NULL;

	ask.request = request;
	if (!*ask.error)
		found = find_request(&ask);
	if (found && !check_members(&ask, found))
		found = NULL;
	if (run_request(&ask, found, &body))
		reply = envelope(&ask, body, reply_len);
	free(body);
	json_decref(request);
	return reply;
}
