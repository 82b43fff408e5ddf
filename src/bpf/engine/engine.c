/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c: which engine runs an object's programs: all of them the same, so that tail calls stay within it.
 */
#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/engine/interp.h"
#include "bpf/engine/jit.h"
#include "bpf/env.h"

static const char *reason(int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "there is no compiler for this machine";
	case -EACCES:
		return "the system does not allow memory for code (vm.memfd_noexec, or a security module)";
	case -E2BIG:
		return "a program is too large for the compiler";
	default:
		return strerror(-err);
	}
}

static int compile_all(struct leat_bpf_object *obj, const struct leat_bpf_prog **culprit)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < obj->n_progs && !err; i++) {
		*culprit = &obj->prog[i];
		err = obj->prog[i].loaded ? leat_bpf_jit_compile(&obj->prog[i]) : 0;
	}
	for (i = 0; i < obj->n_progs && err; i++)
		leat_bpf_jit_free(&obj->prog[i]);
	return err;
}

int leat_bpf_engine_choose(struct leat_bpf_object *obj, struct leat_diag *diag)
{
	struct leat_bpf_env *env = obj->env;
	const struct leat_bpf_prog *culprit = NULL;
	int err;

	if (env->engine == LEAT_BPF_ENGINE_INTERP || env->coverage)
		return 0;
	err = compile_all(obj, &culprit);
	if (!err || err == -ENOMEM)
		return err;
	if (env->engine == LEAT_BPF_ENGINE_JIT) {
		leat_diag_add(diag, "%s: cannot be compiled: %s", culprit->name, reason(err));
		return err;
	}
	if (!env->told) /* once, not for each object */
		leat_log(env->log, LEAT_LOG_WARNING, "eBPF programs are interpreted: %s", reason(err));
	env->told = true;
	return 0;
}

uint64_t leat_bpf_engine_run(struct leat_bpf_run *run)
{
	return leat_likely(run->prog->code) ? leat_bpf_jit_run(run) : leat_bpf_interp_run(run);
}

void leat_bpf_engine_free(struct leat_bpf_prog *prog)
{
	leat_bpf_jit_free(prog);
	leat_heap_free(prog->op);
	leat_heap_free(prog->count);
	prog->op = NULL;
	prog->count = NULL;
}
