/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env.c: making an environment: CPUs with their stacks and random numbers, time, grace periods. Control thread.
 */
#include "bpf/env.h"

#include <errno.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/opts.h"
#include "bpf/map/mem.h"

static uint64_t random_seed(void)
{
	uint64_t seed;

	/* early at boot there may be none: the clock is what is left */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = leat_clock_ns();
	return seed;
}

static int add_stacks(struct leat_bpf_env *env)
{
	const size_t size = (size_t)LEAT_BPF_FRAMES_MAX * LEAT_BPF_STACK_SIZE;
	unsigned int i;

	for (i = 0; i < env->cpus; i++) {
		env->cpu[i].random = leat_bpf_mix(env->seed, UINT64_C(1) << 32 | i) | 1;
		env->cpu[i].stack = leat_heap_zalloc(size);
		if (!env->cpu[i].stack)
			return -ENOMEM;
	}
	return 0;
}

int leat_bpf_env_create(const struct leat_bpf_env_opts *opts, struct leat_bpf_env **envp)
{
	struct leat_bpf_env_opts own;
	struct leat_bpf_env *env;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (own.cpus > LEAT_BPF_CPUS_MAX || own.engine >= LEAT_BPF_ENGINES ||
	    own.kernel_verifier >= LEAT_BPF_KERNEL_VERIFIERS ||
	    (own.coverage && own.engine == LEAT_BPF_ENGINE_JIT))
		return -EINVAL;
	env = leat_heap_zalloc(sizeof(*env));
	if (!env)
		return -ENOMEM;
	env->cpus = own.cpus ? own.cpus : 1;
	env->fuel = own.fuel ? own.fuel : LEAT_BPF_FUEL_DEFAULT;
	env->replay = own.replay;
	env->seed = own.replay ? own.seed : random_seed();
	env->trace = own.trace;
	env->trace_arg = own.trace_arg;
	env->engine = own.engine;
	env->perf_map = own.perf_map;
	env->coverage = own.coverage;
	env->log = own.log;
	env->kernel_verifier = own.kernel_verifier;
	leat_epoch_init(&env->own_epoch);
	env->epoch = own.epoch ? own.epoch : &env->own_epoch;
	err = add_stacks(env);
	if (err)
		leat_bpf_env_destroy(env);
	else
		*envp = env;
	return err;
}

void leat_bpf_env_destroy(struct leat_bpf_env *env)
{
	unsigned int i;

	if (!env)
		return;
	for (i = 0; i < env->cpus; i++)
		leat_heap_free(env->cpu[i].stack);
	leat_heap_free(env);
}

void leat_bpf_env_set_time(struct leat_bpf_env *env, uint64_t ns)
{
	__atomic_store_n(&env->now, ns, __ATOMIC_RELAXED);
	/* until it is called first the reader is offline, and what is deleted is used again at once */
	if (env->epoch == &env->own_epoch)
		leat_epoch_quiescent(env->epoch, 0);
}

void leat_bpf_env_redirect(const struct leat_bpf_env *env, unsigned int cpu, struct leat_bpf_redirect *redirect)
{
	*redirect = env->cpu[cpu].redirect;
}
