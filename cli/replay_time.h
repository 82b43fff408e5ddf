/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_time.h: what the files of --time share: replay_time.c measures, replay_time_tell.c says what was measured, and
 * replay_time_kernel.c asks the kernel.
 */
#ifndef LEAT_CLI_REPLAY_TIME_H
#define LEAT_CLI_REPLAY_TIME_H

#include "replay.h"

#define CLOCK CLOCK_THREAD_CPUTIME_ID
#define CLOCK_NAME "CLOCK_THREAD_CPUTIME_ID"
/* Few enough for the cache: buffers begin at pages, so that their packets share few of its sets. */
#define BATCH_MAX 64u
#define ROUNDS 20u

struct kernel_times;

/* A packet that is kept for it. */
struct kept {
	uint64_t time;
	size_t off; /* of its bytes */
	uint32_t len;
};

/* What is measured. */
struct lane {
	const char *name;
	bool measured;
	char why[256]; /* else; empty: nobody wanted it. Or a remark */
	struct replay r; /* with an environment and an object of its own */
	bool writes, rings;
	size_t filled;   /* the buffers hold the batch from this packet on, plus 1; 0: they do not */
	uint64_t passes; /* a sample */
	double sample[ROUNDS]; /* ns per packet */
	unsigned int n; /* samples */
	struct leat_bpf_object *nothing; /* a program that does nothing but pass */
	double empty; /* ns that it takes */
};

enum { LANE_INTERP, LANE_JIT, LANES };

struct times {
	struct replay *r;
	struct kept *packet;
	size_t n, room;
	size_t distinct; /* the capture's; those of a small one stand here several times */
	uint8_t *bytes;
	size_t n_bytes, bytes_room;
	uint64_t left_out; /* packets for which there was no room */
	struct leat_page_pool *pool;
	struct leat_xdp_rxq *rxq;
	struct leat_run run[BATCH_MAX];
	struct leat_xdp_buff xdp[BATCH_MAX];
	unsigned int batch;
	struct lane lane[LANES];
	unsigned int rounds;
	struct lane kernel_lane; /* beside them */
	struct kernel_times *kernel; /* NULL: it is not asked */
	uint64_t clock_cost; /* nanoseconds that go by between two readings */
};

/* ---- replay_time_kernel.c ---- */

/** Loads the program into the kernel and tries it on packets. lane->measured, or why not. */
void kernel_times_open(struct times *t, struct lane *lane);
/** Takes its samples. */
void kernel_times_measure(const struct times *t, struct lane *lane);
void kernel_times_close(struct times *t);

#endif
