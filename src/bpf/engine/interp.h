/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interp.h: what the interpreter runs: decoded instructions, one for each slot of the program, so that numbers of
 * instructions and distances of jumps stay what they were.
 */
#ifndef LEAT_BPF_INTERP_H
#define LEAT_BPF_INTERP_H

#include "bpf/insn.h"
#include "bpf/prog.h"

/* Operations that decoding puts in place of an instruction, beside those of the table. X(name) */
#define LEAT_DECODED_SIZED(X, region)                                                                              \
	X(LDX8_##region) X(LDX16_##region) X(LDX32_##region) X(LDX64_##region)                                     \
	X(ST8_##region) X(ST16_##region) X(ST32_##region) X(ST64_##region)                                         \
	X(STX8_##region) X(STX16_##region) X(STX32_##region) X(STX64_##region)
#define LEAT_DECODED_ROWS(X)                                                                                       \
	X(CTX_DATA) X(CTX_DATA_END) X(CTX_DATA_META) X(CTX_PORT) X(CTX_QUEUE) X(CTX_EGRESS)                        \
	X(TAIL_CALL) X(CALL_MEM) X(UNREACHED) X(COUNT)                                               \
	LEAT_DECODED_SIZED(X, STACK) LEAT_DECODED_SIZED(X, PACKET)

#define LEAT_DECODED_ENUM(name) LEAT_OP_##name,
enum leat_decoded_op { LEAT_OP_LAST_OF_TABLE = LEAT_INSN_OPS - 1, LEAT_DECODED_ROWS(LEAT_DECODED_ENUM) LEAT_OPS };
LEAT_STATIC_ASSERT(LEAT_OPS <= 256, "an operation is one byte");

/* What the verifier has proven is not looked at again; the fuzzer does look. */
#ifdef LEAT_FUZZ
#define LEAT_PROVEN(cond) LEAT_ASSERT(cond)
#else
#define LEAT_PROVEN(cond) ((void)0)
#endif

#define LEAT_BPF_OP_FUNC 0x1u /* a callback begins here */

struct leat_bpf_op {
	uint8_t op;    /* enum leat_insn_op, enum leat_decoded_op */
	uint8_t dst, src;
	uint8_t flags; /* LEAT_BPF_OP_* */
	int32_t off;   /* of a memory access; distance of a jump or call */
	/**
	 * The immediate, sign-extended; the whole of a 64-bit load; address of the helper's row; instructions of the
	 * function that is called.
	 */
	uint64_t imm;
};
LEAT_STATIC_ASSERT(sizeof(struct leat_bpf_op) == 16, "four to a cache line");

/** How often an instruction ran, where that is counted (cover.c); such an instruction's operation is LEAT_OP_COUNT. */
struct leat_bpf_count {
	uint64_t hits;   /* atomic */
	uint64_t way[2]; /* atomic; of a conditional jump: how often the run went on behind it, and at its target */
	uint8_t op;      /* what it does */
	bool strange;    /* the source line before it in the program says nothing of it */
};

/** Makes every instruction of a decoded program count. Returns 0 or -ENOMEM. *control*. */
int leat_bpf_cover_prepare(struct leat_bpf_prog *prog);
/** Counts @op, and which way the conditional jump before it went; returns what it does. *worker*. */
unsigned int leat_bpf_cover_count(struct leat_bpf_run *run, const struct leat_bpf_op *op);

/**
 * Runs a callback of the program whose helper this is: @func is the value that the program gave, @args become r1..r5.
 * Returns its r0. Charges fuel. After a trap it returns 0 and run->trap is set: the helper must return at once.
 * *worker*.
 */
uint64_t leat_bpf_call_func(struct leat_bpf_run *run, uint64_t func, const uint64_t args[5]);

/**
 * Whether the instruction that @aux is of may touch [addr, addr + size): the one place that knows the regions. @map is
 * the object's table of maps.
 */
bool leat_bpf_access_ok(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
			bool write);

/**
 * Whether the memory that a helper is given is what its row says; also puts ctx and maps in @args. *@fuel: what the
 * call costs.
 */
bool leat_bpf_helper_args_ok(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux,
			     const struct leat_bpf_helper *helper, uint64_t args[5], uint64_t *fuel);

/** Takes @cost from the fuel; whether there was that much. */
static inline bool leat_bpf_burn(struct leat_bpf_run *run, uint64_t cost)
{
	if (leat_unlikely(run->fuel < cost)) {
		run->fuel = 0;
		return false;
	}
	run->fuel -= cost;
	return true;
}

/** The end of the newest frame: its r10. */
static inline uint8_t *leat_bpf_frame_end(const struct leat_bpf_run *run)
{
	return run->stack + (size_t)run->frames * LEAT_BPF_STACK_SIZE;
}

/**
 * Calls the helper of instruction @insn after a look at its arguments, which it may replace. Whether they are well; if
 * not, *@reason. Puts the result in *@r0.
 */
bool leat_bpf_call_checked(struct leat_bpf_run *run, uint32_t insn, uint64_t args[5], uint64_t *r0,
			   enum leat_bpf_trap_reason *reason);
/** The helper of instruction @insn ended the program: counts it, if that was not done where it trapped. */
void leat_bpf_helper_trapped(struct leat_bpf_run *run, uint32_t insn);
/**
 * The program that the tail call at @insn goes to, or NULL when it falls through; *@ok is false when it must trap, for
 * *@reason.
 */
struct leat_bpf_prog *leat_bpf_tail_target(struct leat_bpf_run *run, uint32_t insn, uint64_t map, uint64_t index,
					   enum leat_bpf_trap_reason *reason, bool *ok);

/** The map that a program's register @value points to, or NULL. */
struct leat_bpf_map *leat_bpf_map_of(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t value);

#endif
