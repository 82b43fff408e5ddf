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
	unsigned int kernel_verifier; /* enum leat_bpf_kernel_verifier */
	struct leat_epoch *epoch;
	struct leat_epoch own_epoch; /* when none was given: reader 0 */
	struct leat_net *net; /* whose ports programs see, or NULL: any number is one; src/xdp's */
	struct leat_fib *fib; /* what bpf_fib_lookup() asks, or NULL (atomic); src/xdp's */
	struct {
		uint64_t random; /* state of that CPU's generator */
		uint8_t *stack;  /* LEAT_BPF_FRAMES_MAX frames */
		struct leat_bpf_record record[LEAT_BPF_RECORDS_MAX]; /* places for what a run has reserved */
		struct leat_bpf_redirect redirect; /* what a program said last; src/xdp writes it */
	} LEAT_CACHELINE_ALIGNED cpu[LEAT_BPF_CPUS_MAX];
};

/**
 * Begins a run of @prog on a packet, as CPU @cpu. Each member is set by itself, for zeroing a whole run takes longer than
 * short programs; what is compiled code's own is set there.
 */
static inline void leat_bpf_run_init(struct leat_bpf_run *run, struct leat_bpf_env *env, struct leat_bpf_prog *prog,
				     struct leat_xdp_buff *xdp, unsigned int cpu)
{
	run->xdp = xdp;
	run->prog = prog;
	run->env = env;
	run->cpu = cpu;
	run->egress_port = 0;
	run->tail_calls = 0;
	run->fuel = env->fuel;
	run->trap = 0;
	run->trap_counted = false;
	run->record = NULL;
	run->lent = NULL;
	run->lock = NULL;
	run->looked_up = NULL;
	run->stack = env->cpu[cpu].stack;
	run->frames = 0;
	run->counted = NULL;
}

#endif
