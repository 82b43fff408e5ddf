/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.c: what both engines do alike: calls that need a look at their arguments, the way of a tail call, and traps.
 * *worker*.
 */
#include "bpf/engine/interp.h"

#include "bpf/map/map.h"

static const struct leat_bpf_helper *helper_of(const struct leat_bpf_run *run, uint32_t insn)
{
	return (const struct leat_bpf_helper *)(uintptr_t)run->prog->op[insn].imm;
}

void leat_bpf_trap(struct leat_bpf_run *run, uint32_t insn, enum leat_bpf_trap_reason reason)
{
	run->trap = 1 + (int)reason;
	run->trap_counted = true;
	if (run->prog->trap && insn < run->prog->n_insns)
		__atomic_fetch_add(&run->prog->trap[insn].n[reason], 1, __ATOMIC_RELAXED);
}

bool leat_bpf_call_checked(struct leat_bpf_run *run, uint32_t insn, uint64_t args[5], uint64_t *r0,
			   enum leat_bpf_trap_reason *reason)
{
	const struct leat_bpf_helper *helper = helper_of(run, insn);
	uint64_t fuel;

	*reason = LEAT_BPF_TRAP_HELPER;
	if (!leat_bpf_helper_args_ok(run, &run->prog->aux[insn], helper, args, &fuel)) {
		LEAT_PROVEN(!run->prog->aux[insn].proven);
		return false;
	}
	*reason = LEAT_BPF_TRAP_FUEL;
	if (!leat_bpf_burn(run, fuel))
		return false;
	*r0 = helper->fn(run, args[0], args[1], args[2], args[3], args[4]);
	return true;
}

LEAT_COLD void leat_bpf_helper_trapped(struct leat_bpf_run *run, uint32_t insn)
{
	if (!run->trap_counted)
		leat_bpf_trap(run, insn, (enum leat_bpf_trap_reason)(run->trap - 1));
}

struct leat_bpf_prog *leat_bpf_tail_target(struct leat_bpf_run *run, uint32_t insn, uint64_t map_arg, uint64_t index,
					   enum leat_bpf_trap_reason *reason, bool *ok)
{
	struct leat_bpf_map *map = leat_bpf_map_of(run, &run->prog->aux[insn], map_arg);
	struct leat_bpf_prog *prog;

	*ok = map != NULL;
	*reason = LEAT_BPF_TRAP_HELPER;
	if (!map || run->tail_calls >= LEAT_BPF_TAIL_CALLS_MAX)
		return NULL;
	prog = leat_bpf_prog_array_get(map, (uint32_t)index);
	if (!prog || !prog->op)
		return NULL;
	*reason = LEAT_BPF_TRAP_FUEL;
	*ok = leat_bpf_burn(run, prog->n_ops);
	run->tail_calls++;
	return prog;
}
