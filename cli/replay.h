/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.h: what the files of `leat replay` share. replay.c reads the command line and leads through the run;
 * replay_maps.c fills maps, replay_packets.c runs the program on the capture, replay_report.c says what happened (with
 * replay_dump.c for maps).
 */
#ifndef LEAT_CLI_REPLAY_H
#define LEAT_CLI_REPLAY_H

#include "cli.h"

#include <leat/bpf.h>

/* Options that may be given several times. */
#define REPLAY_WORDS_MAX 64u
struct replay_words {
	const char *word[REPLAY_WORDS_MAX];
	unsigned int n;
};

struct replay_opts {
	const char *object, *capture, *out, *prog, *btf;
	struct replay_words maps, sets, events;
	bool verdicts, json;
	uint64_t seed;
	uint32_t cpu, ifindex, queue;
	uint32_t engine; /* enum leat_bpf_engine */
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

struct replay {
	const struct replay_opts *opts;
	struct leat_diag *diag;
	struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	struct leat_bpf_prog *prog;
	struct report *report;
	struct replay_counts counts;
	struct replay_packet packet;
};

/* ---- replay_maps.c ---- */

/** Does all --map options. Returns 0 or a negative errno, with what is wrong in the diag. */
int replay_fill_maps(struct replay *r);
/** Whether maps and structs of all --event options exist. Returns as above. */
int replay_check_events(struct replay *r);

/* ---- replay_packets.c ---- */

/** Runs the program on each packet. Returns an exit code; what is wrong with a file has been said. */
int replay_run_capture(struct replay *r);

/* ---- replay_report.c ---- */

/** Makes a report, which says nothing yet. NULL when memory is out. */
struct report *report_create(struct replay *r);
/** Begins it: says what maps hold before the run. */
void report_begin(struct replay *r);
/** The verdict on the packet that was run last; its records in rings are taken and told, too. */
void report_packet(struct replay *r, uint32_t verdict);
/** A line that the program traced. */
void report_trace(void *arg, const char *line);
/** Says the rest, if it was begun; false when it could not be written. Whether programs trapped goes to *@trapped. */
bool report_finish(struct replay *r, bool *trapped);
void report_destroy(struct report *report);

/* ---- replay_dump.c ---- */

enum replay_dump {
	DUMP_MAPS,
	DUMP_VARIABLES, /* global data */
	DUMP_VARIABLES_NOT_CONST,
};

struct json_out;
/** Writes what maps hold: for people to @out, or as members of the object that @j is in. Returns how many elements. */
uint64_t replay_dump_maps(struct replay *r, FILE *out, struct json_out *j, enum replay_dump which);
/** A value that a formatting function writes, whatever its length; free() it. NULL when memory is out. */
char *replay_format(int (*format)(const struct leat_bpf_map *map, const void *bytes, char *buf, size_t size),
		    const struct leat_bpf_map *map, const void *bytes);
/** Whether the map keeps records for a reader: a ring buffer or a perf event array. */
bool replay_is_ring(const struct leat_bpf_map_info *info);

#endif
