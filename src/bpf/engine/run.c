/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: one packet through one program: what the run needs is gathered, the engine runs, and what a trap left behind
 * is put back. *worker*.
 */
#include "bpf/env.h"
#include "bpf/prog.h"

static uint32_t run_on(struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp, unsigned int cpu, uint32_t egress_port)
{
	struct leat_bpf_env *env = prog->obj->env;
	struct leat_bpf_run run;
	uint64_t verdict;

	leat_bpf_run_init(&run, env, prog, xdp, cpu);
	run.egress_port = egress_port;
	env->cpu[cpu].redirect = (struct leat_bpf_redirect){ .map = NULL };
	verdict = leat_bpf_engine_run(&run);
	if (leat_unlikely(run.record || run.lock))
		leat_bpf_run_release(&run);
	return (uint32_t)verdict;
}

uint32_t leat_bpf_prog_run(struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp, unsigned int cpu)
{
	return leat_bpf_prog_run_egress(prog, xdp, cpu, 0);
}

uint32_t leat_bpf_prog_run_egress(struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp, unsigned int cpu,
				  uint32_t port)
{
	if (leat_unlikely(cpu >= prog->obj->env->cpus || !prog->op))
		return LEAT_XDP_ABORTED;
	return run_on(prog, xdp, cpu, port);
}
