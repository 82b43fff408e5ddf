/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_report.c: what the program did. For people, what happens is printed as it happens, then the sums. As JSON it
 * is one object: what maps hold before is written at once, what happens per packet is gathered in three lists.
 */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "bpf/btf/btf.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

/* A list that grows while packets run. */
struct list {
	struct leat_json_out json;
	char *text;
	size_t len;
};

struct report {
	FILE *out;
	bool json;
	bool begun;
	struct leat_json_out top;
	struct list verdicts, events, traces, differences;
};

static const char *const skip_words[SKIP_REASONS] = {
	[SKIP_TRUNCATED] = "truncated",
	[SKIP_RUNT] = "runt",
	[SKIP_OVERSIZE] = "oversize",
};

static const char *const skip_texts[SKIP_REASONS] = {
	[SKIP_TRUNCATED] = "the capture holds only part of them",
	[SKIP_RUNT] = "shorter than an Ethernet header",
	[SKIP_OVERSIZE] = "longer than a buffer",
};

/* ---- begin and end ---- */

static bool list_open(struct list *list)
{
	/* its members are members of a list within the object */
	list->json = (struct leat_json_out){ .depth = 2 };
	list->json.out = open_memstream(&list->text, &list->len);
	return list->json.out;
}

static void list_close(struct list *list)
{
	if (list->json.out)
		fclose(list->json.out);
	free(list->text);
}

static void json_list(struct leat_json_out *j, const char *name, struct list *list)
{
	leat_json_open(j, name, '[');
	fflush(list->json.out);
	fputs(list->text ? list->text : "", j->out);
	j->filled = list->json.filled;
	leat_json_close(j, ']');
}

void report_destroy(struct report *report)
{
	if (!report)
		return;
	list_close(&report->verdicts);
	list_close(&report->events);
	list_close(&report->traces);
	list_close(&report->differences);
	free(report);
}

/* Maps and variables for people, under a headline if there is anything. */
static void print_state(struct replay *r, const char *headline, enum replay_dump variables)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	replay_dump_maps(r, f, NULL, DUMP_MAPS);
	replay_dump_maps(r, f, NULL, variables);
	fclose(f);
	if (len)
		fprintf(r->report->out, "%s\n%s", headline, text);
	free(text);
}

static void json_state(struct replay *r, const char *maps, const char *names, enum replay_dump variables)
{
	struct leat_json_out *j = &r->report->top;

	leat_json_open(j, maps, '{');
	replay_dump_maps(r, j->out, j, DUMP_MAPS);
	leat_json_close(j, '}');
	leat_json_open(j, names, '{');
	replay_dump_maps(r, j->out, j, variables);
	leat_json_close(j, '}');
}

void report_begin(struct replay *r)
{
	struct report *report = r->report;

	report->begun = true;
	if (!report->json) {
		fprintf(report->out, "program %s (%s) of %s\n", leat_bpf_prog_name(r->prog),
			leat_bpf_prog_section(r->prog), r->opts->object);
		print_state(r, "maps before:", DUMP_VARIABLES);
		return;
	}
	leat_json_open(&report->top, NULL, '{');
	leat_json_string(&report->top, "object", r->opts->object);
	leat_json_string(&report->top, "program", leat_bpf_prog_name(r->prog));
	leat_json_string(&report->top, "section", leat_bpf_prog_section(r->prog));
	leat_json_string(&report->top, "capture", r->opts->capture);
	json_state(r, "maps_before", "variables_before", DUMP_VARIABLES);
}

struct report *report_create(struct replay *r)
{
	struct report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->json = r->opts->json;
	report->out = r->opts->out && !strcmp(r->opts->out, "-") ? stderr : stdout;
	report->top.out = report->out;
	if (!list_open(&report->verdicts) || !list_open(&report->events) || !list_open(&report->traces) ||
	    !list_open(&report->differences)) {
		report_destroy(report);
		return NULL;
	}
	return report;
}

/* ---- while packets run ---- */

void report_trace(void *arg, const char *line)
{
	struct replay *r = arg;
	struct leat_json_out *j = &r->report->traces.json;

	if (!r->report->json) {
		fprintf(r->report->out, "packet %" PRIu64 ": trace: %s\n", r->packet.number, line);
		return;
	}
	leat_json_open_flat(j, NULL, '{');
	leat_json_number(j, "packet", r->packet.number);
	leat_json_string(j, "line", line);
	leat_json_close(j, '}');
}

/* A record that is being told. */
struct record {
	struct replay *r;
	struct leat_bpf_map *map;
	struct leat_bpf_map_info info;
};

/* The struct that --event names for a map, else "event". */
static const char *type_of_event(const struct replay *r, const char *map)
{
	const struct replay_words *events = &r->opts->events;
	size_t len = strlen(map);
	unsigned int i;

	for (i = 0; i < events->n; i++)
		if (!strncmp(events->word[i], map, len) && events->word[i][len] == '=')
			return events->word[i] + len + 1;
	return "event";
}

/* Its JSON text: as the struct if it has its size, else in hexadecimal. free() it; NULL when memory is out. */
static char *record_text(const struct record *record, const void *data, uint32_t size)
{
	const struct leat_bpf_object *obj = record->r->obj;
	const char *type = type_of_event(record->r, record->info.name);
	bool typed = size && leat_bpf_object_type_size(obj, type) == size;
	int len = typed ? leat_bpf_object_format(obj, type, data, size, NULL, 0) :
			  leat_btf_format(NULL, 0, data, size, NULL, 0);
	char *text = len < 0 ? strdup("\"too long\"") : malloc((size_t)len + 1);

	if (text && len >= 0 && typed)
		leat_bpf_object_format(obj, type, data, size, text, (size_t)len + 1);
	else if (text && len >= 0)
		leat_btf_format(NULL, 0, data, size, text, (size_t)len + 1);
	return text;
}

static int tell_record(void *arg, int cpu, const void *data, uint32_t size)
{
	const struct record *record = arg;
	struct report *report = record->r->report;
	struct leat_json_out *j = &report->events.json;
	char *text = record_text(record, data, size);

	(void)cpu; /* there is one */
	if (!report->json) {
		fprintf(report->out, "packet %" PRIu64 ": %s (%u bytes): %s\n", record->r->packet.number,
			record->info.name, size, text ? text : "?");
	} else {
		leat_json_open_flat(j, NULL, '{');
		leat_json_number(j, "packet", record->r->packet.number);
		leat_json_string(j, "map", record->info.name);
		leat_json_number(j, "size", size);
		leat_json_raw(j, "data", text ? text : "null");
		leat_json_close(j, '}');
	}
	free(text);
	return 0;
}

static void tell_records(struct replay *r)
{
	struct record record = { .r = r };
	unsigned int i;

	for (i = 0; (record.map = leat_bpf_object_map_get(r->obj, i)); i++) {
		leat_bpf_map_info(record.map, &record.info);
		if (replay_is_ring(&record.info))
			leat_bpf_map_consume(record.map, tell_record, &record);
	}
}

static void tell_verdict(struct replay *r, uint32_t verdict)
{
	struct report *report = r->report;
	struct leat_json_out *j = &report->verdicts.json;
	char time[40], text[REPLAY_VERDICT_SIZE];

	snprintf(time, sizeof(time), "%" PRIu64 ".%09" PRIu64, r->packet.time / NSEC_PER_SEC,
		 r->packet.time % NSEC_PER_SEC);
	if (!report->json) {
		replay_verdict_text(r, verdict, text, sizeof(text));
		fprintf(report->out, "packet %" PRIu64 ": %s, %u bytes: %s\n", r->packet.number, time, r->packet.len,
			text);
		return;
	}
	leat_json_open_flat(j, NULL, '{');
	leat_json_number(j, "packet", r->packet.number);
	leat_json_string(j, "time", time);
	leat_json_number(j, "length", r->packet.len);
	replay_verdict_json(r, verdict, j);
	leat_json_close(j, '}');
}

void report_packet(struct replay *r, uint32_t verdict)
{
	tell_records(r);
	if (r->opts->verdicts)
		tell_verdict(r, verdict);
	if (r->expect)
		replay_expect_packet(r, verdict);
}

/* ---- what was expected ---- */

void report_difference(struct replay *r, uint64_t first, uint64_t last, const char *expected, const char *got)
{
	struct leat_json_out *j = &r->report->differences.json;
	char range[24] = "";

	if (!r->report->json) {
		if (first != last)
			snprintf(range, sizeof(range), "-%" PRIu64, last);
		fprintf(r->report->out, "packet%s %" PRIu64 "%s: expected %s, %s%s\n", first != last ? "s" : "", first,
			range, expected, got ? "got " : "but not run", got ? got : "");
		return;
	}
	leat_json_open_flat(j, NULL, '{');
	leat_json_number(j, "packet", first);
	if (first != last)
		leat_json_number(j, "last", last);
	leat_json_string(j, "expected", expected);
	if (got)
		leat_json_string(j, "got", got);
	else
		leat_json_raw(j, "got", "null");
	leat_json_close(j, '}');
}

void report_total(struct replay *r, const char *what, uint64_t expected, uint64_t got)
{
	struct leat_json_out *j = &r->report->differences.json;

	if (!r->report->json) {
		fprintf(r->report->out, "total %s: expected %" PRIu64 ", got %" PRIu64 "\n", what, expected, got);
		return;
	}
	leat_json_open_flat(j, NULL, '{');
	leat_json_string(j, "total", what);
	leat_json_number(j, "expected", expected);
	leat_json_number(j, "got", got);
	leat_json_close(j, '}');
}

/* Whether all was as expected. */
static bool tell_expected(struct replay *r)
{
	struct report *report = r->report;
	uint64_t compared;
	bool good;

	if (!r->expect)
		return true;
	good = replay_expect_finish(r, &compared);
	if (!report->json) {
		fprintf(report->out, "expected: %" PRIu64 " verdicts compared, %s\n", compared,
			good ? "all as expected" : "not all as expected");
		return good;
	}
	leat_json_number(&report->top, "compared", compared);
	json_list(&report->top, "differences", &report->differences);
	return good;
}

/* ---- the sums ---- */

static void print_sums(struct replay *r)
{
	const struct replay_counts *c = &r->counts;
	FILE *out = r->report->out;
	unsigned int i;

	fprintf(out, "packets: %" PRIu64 ", %" PRIu64 " bytes\n", c->packets, c->bytes);
	for (i = 0; i < LEAT_XDP_ACTIONS; i++)
		fprintf(out, "  %-9s %10" PRIu64 "\n", leat_xdp_action_name(i), c->verdict[i]);
	if (c->unknown)
		fprintf(out, "  %-9s %10" PRIu64 "  no verdict: as aborted\n", "unknown", c->unknown);
	for (i = 0; i < SKIP_REASONS; i++)
		if (c->skipped[i])
			fprintf(out, "passed over: %" PRIu64 " %s: %s\n", c->skipped[i], skip_words[i], skip_texts[i]);
	if (r->opts->out)
		fprintf(out, "written: %" PRIu64 "\n", c->written);
}

static void json_sums(struct replay *r)
{
	const struct replay_counts *c = &r->counts;
	struct leat_json_out *j = &r->report->top;
	unsigned int i;

	leat_json_number(j, "packets", c->packets);
	leat_json_number(j, "bytes", c->bytes);
	leat_json_open(j, "verdicts", '{');
	for (i = 0; i < LEAT_XDP_ACTIONS; i++)
		leat_json_number(j, leat_xdp_action_name(i), c->verdict[i]);
	leat_json_number(j, "unknown", c->unknown);
	leat_json_close(j, '}');
	leat_json_open(j, "skipped", '{');
	for (i = 0; i < SKIP_REASONS; i++)
		leat_json_number(j, skip_words[i], c->skipped[i]);
	leat_json_close(j, '}');
	leat_json_number(j, "written", c->written);
}

static void tell_trap(struct report *report, const struct leat_bpf_prog *prog, const struct leat_bpf_trap *trap)
{
	struct leat_json_out *j = &report->top;

	if (!report->json) {
		print_trap(report->out, prog, trap);
		return;
	}
	leat_json_open_flat(j, NULL, '{');
	leat_json_string(j, "program", leat_bpf_prog_name(prog));
	leat_json_number(j, "instruction", trap->insn);
	leat_json_string(j, "reason", trap->reason);
	leat_json_number(j, "count", trap->count);
	if (trap->source)
		leat_json_string(j, "source", trap->source);
	leat_json_close(j, '}');
}

/* Of all programs, because one may have tail-called the other. Returns whether there was any. */
static bool tell_traps(struct replay *r)
{
	struct leat_bpf_prog *prog;
	struct leat_bpf_trap trap;
	unsigned int i, k;
	bool any = false;

	for (i = 0; (prog = leat_bpf_object_prog_get(r->obj, i)); i++)
		for (k = 0; leat_bpf_prog_trap(prog, k, &trap); k++) {
			tell_trap(r->report, prog, &trap);
			any = true;
		}
	return any;
}

static void tell_lost(struct replay *r)
{
	struct report *report = r->report;
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(r->obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		if (!leat_bpf_map_lost(map))
			continue;
		if (report->json)
			leat_json_number(&report->top, info.name, leat_bpf_map_lost(map));
		else
			fprintf(report->out, "%s: %" PRIu64 " records found no room\n", info.name,
				leat_bpf_map_lost(map));
	}
}

static int finish_json(struct replay *r)
{
	struct report *report = r->report;
	struct leat_json_out *j = &report->top;
	int code, told;

	json_sums(r);
	if (r->opts->verdicts)
		json_list(j, "packet_verdicts", &report->verdicts);
	json_list(j, "events", &report->events);
	leat_json_open(j, "lost", '{');
	tell_lost(r);
	leat_json_close(j, '}');
	json_list(j, "traces", &report->traces);
	leat_json_open(j, "traps", '[');
	code = tell_traps(r) ? EXIT_TRAPS : EXIT_GOOD;
	leat_json_close(j, ']');
	if (!tell_expected(r))
		code = EXIT_UNEXPECTED;
	json_state(r, "maps_after", "variables_after", DUMP_VARIABLES_NOT_CONST);
	replay_time_tell(r, report->out, j);
	told = replay_cover_tell(r, report->out, j);
	leat_json_close(j, '}');
	fputc('\n', report->out);
	return told > code ? told : code;
}

static int finish_text(struct replay *r)
{
	int code, told;

	print_sums(r);
	tell_lost(r);
	code = tell_traps(r) ? EXIT_TRAPS : EXIT_GOOD;
	if (!tell_expected(r))
		code = EXIT_UNEXPECTED;
	print_state(r, "maps after:", DUMP_VARIABLES_NOT_CONST);
	replay_time_tell(r, r->report->out, NULL);
	told = replay_cover_tell(r, r->report->out, NULL);
	return told > code ? told : code;
}

int report_finish(struct replay *r)
{
	struct report *report = r->report;
	bool written;
	int code;

	if (!report->begun)
		return EXIT_GOOD;
	code = report->json ? finish_json(r) : finish_text(r);
	written = report->out == stdout ? output_flush() : !fflush(report->out) && !ferror(report->out);
	return written || code > EXIT_CONFIG ? code : EXIT_CONFIG;
}
