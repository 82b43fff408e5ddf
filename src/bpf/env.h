/* SPDX-License-Identifier: BSD-3-Clause */
/* env.h: what programs see of the world, for this room. */
#ifndef LEAT_BPF_ENV_H
#define LEAT_BPF_ENV_H

#include <leat/bpf.h>

#include "base/epoch.h"
#include "bpf/contract.h"

struct leat_bpf_env {
	unsigned int cpus;
	uint64_t fuel;
	bool replay;
	uint64_t now;  /* replay: nanoseconds */
	uint64_t seed; /* what hash functions are made from */
	leat_bpf_trace_fn *trace;
	void *trace_arg;
	unsigned int engine; /* enum leat_bpf_engine */
	bool perf_map;
	bool coverage;       /* instructions are counted */
	bool told;           /* that programs are interpreted */
	const struct leat_log *log;
	struct leat_epoch *epoch;
	struct leat_epoch own_epoch; /* when none was given: reader 0 */
	struct leat_fib *fib; /* what bpf_fib_lookup() asks, or NULL (atomic); src/xdp's */
	struct {
		uint64_t random; /* state of that CPU's generator */
		uint8_t *stack;  /* LEAT_BPF_FRAMES_MAX frames */
		struct leat_bpf_record record[LEAT_BPF_RECORDS_MAX]; /* places for what a run has reserved */
		struct leat_bpf_redirect redirect; /* what a program said last; src/xdp writes it */
	} LEAT_CACHELINE_ALIGNED cpu[LEAT_BPF_CPUS_MAX];
};

#endif
