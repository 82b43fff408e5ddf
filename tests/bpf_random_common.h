/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_random_common.h: random programs that are good: every register that is read was set, every access is within
 * bounds, every loop ends. From a seed, the same one each time.
 *
 * r6 is the context, r7 the packet (64 bytes of which are proven to be there), r8 a pointer into the stack, r9 the
 * counter of loops. r0..r5 hold numbers, and are left in the packet at the end.
 */
#ifndef LEAT_TESTS_BPF_RANDOM_COMMON_H
#define LEAT_TESTS_BPF_RANDOM_COMMON_H

#include "bpf/test_asm.h"

#define RANDOM_INSNS 400u
#define RANDOM_PACKET 64

struct random_prog {
	uint64_t seed;
	uint32_t n;
	struct bpf_insn insn[RANDOM_INSNS];
};

static inline uint32_t random_next(struct random_prog *p, uint32_t below)
{
	p->seed ^= p->seed << 13;
	p->seed ^= p->seed >> 7;
	p->seed ^= p->seed << 17;
	return (uint32_t)((p->seed * UINT64_C(0x9e3779b97f4a7c15)) >> 33) % below;
}

static inline void random_put(struct random_prog *p, struct bpf_insn insn)
{
	p->insn[p->n++] = insn;
}

#define RANDOM_PUT(p, ...) random_put(p, (struct bpf_insn)__VA_ARGS__)

static inline int32_t random_imm(struct random_prog *p)
{
	static const int32_t edge[] = {
		0, 1, -1, 2, -2, 7, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fffffff, -0x7fffffff - 1
	};

	if (random_next(p, 2))
		return edge[random_next(p, sizeof(edge) / sizeof(edge[0]))];
	return (int32_t)(random_next(p, 0x10000) << 16 | random_next(p, 0x10000));
}

static inline void random_alu(struct random_prog *p)
{
	static const uint8_t op[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,  BPF_AND,
				      BPF_LSH, BPF_RSH, BPF_MOD, BPF_XOR, BPF_MOV, BPF_ARSH };
	uint8_t code = op[random_next(p, sizeof(op))], wide = random_next(p, 2) ? BPF_ALU64 : BPF_ALU;
	uint32_t d = random_next(p, 6), s = random_next(p, 6);
	int32_t imm = random_imm(p);
	int16_t off = (code == BPF_DIV || code == BPF_MOD) && random_next(p, 3) == 0;

	if ((code == BPF_DIV || code == BPF_MOD) && !imm)
		imm = 3;
	if (code == BPF_LSH || code == BPF_RSH || code == BPF_ARSH)
		imm &= wide == BPF_ALU ? 31 : 63;
	if (random_next(p, 2))
		RANDOM_PUT(p, INSN(wide | code | BPF_K, d, 0, off, imm));
	else
		RANDOM_PUT(p, INSN(wide | code | BPF_X, d, s, off, 0));
}

static inline void random_unary(struct random_prog *p)
{
	static const uint8_t end[] = { BPF_ALU | BPF_END | BPF_TO_LE, BPF_ALU | BPF_END | BPF_TO_BE,
				       BPF_ALU64 | BPF_END };
	uint32_t d = random_next(p, 6), s = random_next(p, 6), kind = random_next(p, 3);
	uint8_t wide = random_next(p, 2) ? BPF_ALU64 : BPF_ALU;

	if (kind == 0)
		RANDOM_PUT(p, INSN(wide | BPF_NEG, d, 0, 0, 0));
	else if (kind == 1)
		RANDOM_PUT(p, INSN(end[random_next(p, 3)], d, 0, 0, 16 << random_next(p, 3)));
	else
		RANDOM_PUT(p, INSN(wide | BPF_MOV | BPF_X, d, s, 8 << random_next(p, wide == BPF_ALU ? 2 : 3), 0));
}

static const uint8_t random_size[] = { BPF_B, BPF_H, BPF_W, BPF_DW };

/** A load, store or atomic operation at an aligned place of the stack or of the packet. */
static inline void random_memory(struct random_prog *p)
{
	static const int32_t atomic[] = { BPF_ADD,
					  BPF_OR,
					  BPF_AND,
					  BPF_XOR,
					  BPF_ADD | BPF_FETCH,
					  BPF_OR | BPF_FETCH,
					  BPF_AND | BPF_FETCH,
					  BPF_XOR | BPF_FETCH,
					  BPF_XCHG,
					  BPF_CMPXCHG };
	uint32_t log = random_next(p, 4), len = 1u << log, reg = random_next(p, 6), kind = random_next(p, 5);
	bool stack = kind == 4 || random_next(p, 2);
	uint32_t base = stack ? (random_next(p, 2) ? R8 : R10) : R7;
	int off = (int)(random_next(p, 64 / len) * len) - (stack ? 64 : 0);

	if (kind == 0)
		RANDOM_PUT(p, LDX(random_size[log], reg, base, off));
	else if (kind == 1 && log < 3)
		RANDOM_PUT(p, LDXS(random_size[log], reg, base, off));
	else if (kind == 2)
		RANDOM_PUT(p, ST(random_size[log], base, off, random_imm(p)));
	else if (kind == 4 && log >= 2)
		RANDOM_PUT(p, ATOMIC(random_size[log], atomic[random_next(p, 10)], base, off, reg));
	else
		RANDOM_PUT(p, STX(random_size[log], base, off, reg));
}

static inline void random_wide(struct random_prog *p)
{
	uint32_t d = random_next(p, 6);
	int32_t low = random_imm(p), high = random_imm(p);

	RANDOM_PUT(p, INSN(BPF_LD | BPF_IMM | BPF_DW, d, 0, 0, low));
	RANDOM_PUT(p, INSN(0, 0, 0, 0, high));
}

static inline void random_simple(struct random_prog *p)
{
	uint32_t kind = random_next(p, 10);

	if (kind < 5)
		random_alu(p);
	else if (kind < 6)
		random_unary(p);
	else if (kind < 9)
		random_memory(p);
	else
		random_wide(p);
}

/** A jump over some of what follows. */
static inline void random_branch(struct random_prog *p)
{
	static const uint8_t op[] = { BPF_JEQ,  BPF_JNE,  BPF_JGT,  BPF_JGE,  BPF_JLT, BPF_JLE,
				      BPF_JSET, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE };
	uint8_t code = op[random_next(p, sizeof(op))] | (random_next(p, 2) ? BPF_JMP : BPF_JMP32);
	uint32_t at = p->n, turns = 1 + random_next(p, 4), d = random_next(p, 6), s = random_next(p, 6);
	int32_t imm = random_imm(p);

	if (random_next(p, 2))
		RANDOM_PUT(p, INSN(code | BPF_K, d, 0, 0, imm));
	else
		RANDOM_PUT(p, INSN(code | BPF_X, d, s, 0, 0));
	while (turns--)
		random_simple(p);
	p->insn[at].off = (int16_t)(p->n - at - 1);
}

static inline void random_loop(struct random_prog *p)
{
	uint32_t at, turns = 1 + random_next(p, 4), count = 1 + random_next(p, 5);

	RANDOM_PUT(p, MOV64K(R9, count));
	at = p->n;
	while (turns--)
		random_simple(p);
	RANDOM_PUT(p, ADD64K(R9, -1));
	if (random_next(p, 2)) {
		RANDOM_PUT(p, JMP64K(BPF_JNE, R9, 0, 0));
		p->insn[p->n - 1].off = (int16_t)((int)at - (int)p->n);
	} else {
		RANDOM_PUT(p, JMP64K(BPF_JEQ, R9, 0, 1));
		RANDOM_PUT(p, GOTOL(0));
		p->insn[p->n - 1].imm = (int)at - (int)p->n;
	}
}

/** Registers and stack get something; the packet is proven to be long enough. */
static inline void random_prelude(struct random_prog *p)
{
	uint32_t i;

	RANDOM_PUT(p, MOV64X(R6, R1));
	RANDOM_PUT(p, LDX(BPF_W, R7, R6, 0));
	RANDOM_PUT(p, LDX(BPF_W, R8, R6, 4));
	RANDOM_PUT(p, MOV64X(R9, R7));
	RANDOM_PUT(p, ADD64K(R9, RANDOM_PACKET));
	RANDOM_PUT(p, JMP64X(BPF_JLE, R9, R8, 2));
	RANDOM_PUT(p, MOV64K(R0, 0));
	RANDOM_PUT(p, EXIT);
	RANDOM_PUT(p, MOV64X(R8, R10));
	for (i = 0; i < 8; i++)
		RANDOM_PUT(p, ST(BPF_DW, R10, -8 - (int)i * 8, random_imm(p)));
	for (i = 0; i < 6; i++)
		RANDOM_PUT(p, LDX(BPF_DW, i, R7, (int)i * 8));
}

/** A function of two numbers, after the program's end. @call is where it is called. */
static inline void random_function(struct random_prog *p, uint32_t call)
{
	uint32_t i, turns = 1 + random_next(p, 6);

	p->insn[call].imm = (int32_t)(p->n - call - 1);
	RANDOM_PUT(p, MOV64X(R0, R1));
	for (i = 3; i < 6; i++)
		RANDOM_PUT(p, MOV64X(i, R2));
	while (turns--)
		random_alu(p);
	RANDOM_PUT(p, EXIT);
}

static inline void random_make(struct random_prog *p, uint64_t seed)
{
	uint32_t blocks, call = 0, i;

	p->seed = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
	p->n = 0;
	for (i = 0; i < 20; i++)
		random_next(p, 2);
	random_prelude(p);
	for (blocks = 4 + random_next(p, 16); blocks; blocks--) {
		i = random_next(p, 10);
		if (i < 6)
			random_simple(p);
		else if (i < 9)
			random_branch(p);
		else
			random_loop(p);
	}
	if (random_next(p, 2)) {
		call = p->n;
		RANDOM_PUT(p, CALL(0));
		for (i = 1; i < 6; i++)
			RANDOM_PUT(p, LDX(BPF_DW, i, R10, -8 * (int)i));
	}
	for (i = 0; i < 6; i++)
		RANDOM_PUT(p, STX(BPF_DW, R7, (int)i * 8, i));
	RANDOM_PUT(p, EXIT);
	if (call)
		random_function(p, call);
}

#endif
