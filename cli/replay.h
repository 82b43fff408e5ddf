/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.h: what the files of `leat replay` share. replay_args.c reads the command line and replay.c leads through the
 * run; replay_maps.c fills maps, replay_packets.c runs the program on the capture, replay_output.c writes packets,
 * replay_report.c says what happened (with replay_dump.c for maps and replay_verdict.c for verdicts), replay_expect.c
 * compares verdicts with what a file says, replay_cover.c says what ran, and replay_time.c
 * how long it takes.
 */
#ifndef LEAT_CLI_REPLAY_H
#define LEAT_CLI_REPLAY_H

#include "cli.h"

#include <leat/bpf.h>
#include <leat/fib.h>

/* Options that may be given several times. */
#define REPLAY_WORDS_MAX 64u
struct replay_words {
	const char *word[REPLAY_WORDS_MAX];
	unsigned int n;
};

/* How a capture is written. */
enum replay_format { REPLAY_BY_NAME, REPLAY_PCAP, REPLAY_PCAPNG };

/* What --coverage asks for; bits. */
#define REPLAY_COVER_LINES 0x1u
#define REPLAY_COVER_INSNS 0x2u
#define REPLAY_COVER_LCOV 0x4u

struct replay_opts {
	const char *object, *capture, *out, *prog, *btf, *fib, *expect, *lcov;
	struct replay_words maps, sets, events;
	bool verdicts, json;
	uint64_t seed;
	uint64_t time_ns; /* how long to measure; 0: not at all */
	uint32_t cpu, ifindex, queue;
	uint32_t engine; /* enum leat_bpf_engine */
	uint32_t format; /* enum replay_format */
	uint32_t cover;  /* REPLAY_COVER_*; 0: nothing is counted */
	uint32_t keep; /* bit per verdict whose packets are written; 0: not said */
};

/* Why a packet was passed over. */
enum replay_skip { SKIP_TRUNCATED, SKIP_RUNT, SKIP_OVERSIZE, SKIP_REASONS };

struct replay_counts {
	uint64_t packets, bytes; /* that the program saw */
	uint64_t verdict[LEAT_XDP_ACTIONS];
	uint64_t unknown; /* returned something that is no action: as aborted */
	uint64_t skipped[SKIP_REASONS];
	uint64_t written;
};

/* The packet that is being run. */
struct replay_packet {
	uint64_t number; /* in the capture, from 1 */
	uint64_t time;   /* nanoseconds since 1970 */
	uint32_t len;
};

struct report;
struct expect;
struct times;

struct replay {
	const struct replay_opts *opts;
	struct leat_diag *diag;
	struct leat_bpf_env *env;
	struct leat_fib *fib; /* or NULL */
	struct leat_bpf_object *obj;
	struct leat_bpf_prog *prog;
	struct report *report;
	struct expect *expect; /* NULL: nothing is */
	struct times *times;   /* NULL: none are measured */
	struct replay_counts counts;
	struct replay_packet packet;
};

/* ---- replay_args.c ---- */

/** Reads the command line into @opts. Returns an exit code; *@done says that there is nothing left to do. */
int replay_parse_args(int argc, char **argv, struct replay_opts *opts, bool *done);

/* ---- replay_fib.c ---- */

/** Makes the table that --fib says, for the environment. Returns 0 or a negative errno, with what is wrong in the diag. */
int replay_fib_read(struct replay *r);

/* ---- replay.c ---- */

/**
 * Loads the object into an environment of its own, with its forwarding table, for enum leat_bpf_engine @engine; what programs trace goes to @trace
 * (may be NULL; it also says that this is the run that is counted). Returns 0 or a negative errno, with what is wrong in
 * the diag. In any case replay_unload() ends it.
 */
int replay_load(struct replay *r, uint32_t engine, leat_bpf_trace_fn *trace);
void replay_unload(struct replay *r);

/* ---- replay_maps.c ---- */

/** Does all --map options. Returns 0 or a negative errno, with what is wrong in the diag. */
int replay_fill_maps(struct replay *r);
/** Whether maps and structs of all --event options exist. Returns as above. */
int replay_check_events(struct replay *r);

/* ---- replay_packets.c ---- */

/** Runs the program on each packet. Returns an exit code; what is wrong with a file has been said. */
int replay_run_capture(struct replay *r);

/* ---- replay_output.c ---- */

struct replay_output;
/** Opens what --output says (else *@out stays as it is) while @input is read. Returns an exit code, having said why. */
int replay_output_open(const struct replay *r, FILE *input, struct replay_output **out);
/** Writes the packet that was run last, as the program left it. Returns as above. */
int replay_output_packet(const struct replay_output *out, const struct leat_xdp_buff *xdp, uint32_t verdict);
void replay_output_close(struct replay_output *out);

/* ---- replay_expect.c ---- */

/** Reads what --expect names, if it does. Returns 0 or a negative errno, with what is wrong in the diag. */
int replay_expect_read(struct replay *r);
/** Compares the verdict on the packet that was run last. */
void replay_expect_packet(struct replay *r, uint32_t verdict);
/** Compares what can be compared in the end; whether all was as expected. *@compared: verdicts. */
bool replay_expect_finish(struct replay *r, uint64_t *compared);
void replay_expect_free(struct expect *expect);

/* ---- replay_cover.c ---- */

struct leat_json_out;
/** Says what ran, if --coverage wants it: to @out, or (not NULL) as a member of the object @j is in. An exit code. */
int replay_cover_tell(struct replay *r, FILE *out, struct leat_json_out *j);

/* ---- replay_time.c ---- */

struct leat_page_pool;
struct leat_xdp_rxq;
/** Begins, if --time wants it. Returns 0 or -ENOMEM. */
int replay_time_init(struct replay *r);
/** Keeps the packet that is about to be run. */
void replay_time_keep(struct replay *r, const uint8_t *bytes);
/** Measures, with buffers from @pool. Returns an exit code, having said what is wrong. */
int replay_time_run(struct replay *r, struct leat_page_pool *pool, struct leat_xdp_rxq *rxq);
/** Says what was measured, as replay_cover_tell() does. */
void replay_time_tell(const struct replay *r, FILE *out, struct leat_json_out *j);
void replay_time_free(struct times *times);

/* ---- replay_verdict.c ---- */

#define REPLAY_VERDICT_SIZE 256
const char *replay_verdict_name(uint32_t verdict);
/** "redirect to ports[2], port 9": of the packet that was run last. */
void replay_verdict_text(const struct replay *r, uint32_t verdict, char *buf, size_t size);
/** The same as members of the object that @j is in. */
void replay_verdict_json(const struct replay *r, uint32_t verdict, struct leat_json_out *j);

/* ---- replay_report.c ---- */

/** Makes a report, which says nothing yet. NULL when memory is out. */
struct report *report_create(struct replay *r);
/** Begins it: says what maps hold before the run. */
void report_begin(struct replay *r);
/** The verdict on the packet that was run last; its records in rings are taken and told, too. */
void report_packet(struct replay *r, uint32_t verdict);
/** A line that the program traced. */
void report_trace(void *arg, const char *line);
/** A verdict that was not expected, or (@got is NULL) packets that should have been run. */
void report_difference(struct replay *r, uint64_t first, uint64_t last, const char *expected, const char *got);
void report_total(struct replay *r, const char *what, uint64_t expected, uint64_t got);
/** Says the rest, if it was begun. Returns the exit code for what it said. */
int report_finish(struct replay *r);
void report_destroy(struct report *report);

/* ---- replay_dump.c ---- */

enum replay_dump {
	DUMP_MAPS,
	DUMP_VARIABLES, /* global data */
	DUMP_VARIABLES_NOT_CONST,
};

/** Writes what maps hold: for people to @out, or as members of the object that @j is in. Returns how many elements. */
uint64_t replay_dump_maps(struct replay *r, FILE *out, struct leat_json_out *j, enum replay_dump which);
/** A value that a formatting function writes, whatever its length; free() it. NULL when memory is out. */
char *replay_format(int (*format)(const struct leat_bpf_map *map, const void *bytes, char *buf, size_t size),
		    const struct leat_bpf_map *map, const void *bytes);
/** Whether the map keeps records for a reader: a ring buffer or a perf event array. */
bool replay_is_ring(const struct leat_bpf_map_info *info);

#endif
