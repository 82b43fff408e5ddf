/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_run.c: into compiled code and out of it, and what it calls. *worker*.
 */
#include "bpf/engine/jit.h"

#include <sys/mman.h>

#include "base/heap.h"
#include "bpf/engine/interp.h"

/** How code begins: @fp is r10, @args r1..r5. */
typedef uint64_t enter_fn(struct leat_bpf_run *run, uint8_t *fp, const uint64_t args[5], const uint8_t *start);

/**
 * Runs from @start on in a new frame. The code zeroes what it uses of the frame. A sanitizer that looks at types of
 * functions would look before @enter, where there is no such thing.
 */
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
static uint64_t enter(struct leat_bpf_run *run, const struct leat_bpf_code *code, const uint8_t *start,
		      const uint64_t args[5])
{
	struct leat_bpf_prog *prog = run->prog;
	const unsigned int bottom = run->frames++;
	enter_fn *fn = (enter_fn *)(uintptr_t)code->enter;
	uint64_t r0 = fn(run, leat_bpf_frame_end(run), args, start);

	run->frames = bottom;
	run->prog = prog;
	return r0;
}

uint64_t leat_bpf_jit_run(struct leat_bpf_run *run)
{
	const uint64_t args[5] = { (uint64_t)(uintptr_t)run };
	uint64_t r0;

	run->frames = 0;
	run->trap = 0;
	r0 = enter(run, run->prog->code, run->prog->code->main, args);
	return leat_unlikely(run->trap) ? (uint64_t)LEAT_XDP_ABORTED : r0;
}

uint64_t leat_bpf_jit_func(struct leat_bpf_run *run, uint32_t start, const uint64_t args[5])
{
	const struct leat_bpf_code *code = run->prog->code;

	return enter(run, code, code->exec + code->entry[start], args);
}

/** Whether instruction @insn may go to @addr: for accesses that the code's own test does not let through. */
bool leat_jit_access(struct leat_bpf_run *run, uint64_t addr, uint32_t insn)
{
	const struct bpf_insn *raw = &run->prog->insn[insn];

	return leat_bpf_access_ok(run, &run->prog->aux[insn], addr, leat_insn_size(raw),
				  BPF_CLASS(raw->code) != BPF_LDX);
}

/** A call of a helper at run->insn whose arguments must be looked at. */
uint64_t leat_jit_call(struct leat_bpf_run *run, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	uint64_t args[5] = { a1, a2, a3, a4, a5 }, r0 = 0;
	enum leat_bpf_trap_reason reason;
	uint32_t insn = run->insn; /* a callback may call, too */

	if (leat_unlikely(!leat_bpf_call_checked(run, insn, args, &r0, &reason)))
		leat_bpf_trap(run, insn, reason);
	else if (leat_unlikely(run->trap))
		leat_bpf_helper_trapped(run, insn);
	return r0;
}

/** A tail call at run->insn: where it goes on, or NULL when it falls through or traps. */
const void *leat_jit_tail(struct leat_bpf_run *run, uint64_t ctx, uint64_t map, uint64_t index)
{
	enum leat_bpf_trap_reason reason;
	struct leat_bpf_prog *prog;
	bool ok;

	(void)ctx;
	prog = leat_bpf_tail_target(run, run->insn, map, index, &reason, &ok);
	if (leat_unlikely(!ok)) {
		leat_bpf_trap(run, run->insn, reason);
		return NULL;
	}
	if (!prog)
		return NULL;
	/* programs of one object are compiled all or none */
	LEAT_ASSERT(prog->code);
	run->prog = prog;
	return prog->code->main;
}

void leat_bpf_jit_free(struct leat_bpf_prog *prog)
{
	struct leat_bpf_code *code = prog->code;

	if (!code)
		return;
	munmap((void *)(uintptr_t)code->exec, code->size);
	leat_heap_free(code->entry);
	leat_heap_free(code);
	prog->code = NULL;
}
