/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof_test.c: small programs, one access each, and whether it is proven that the access stays within its region.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INSNS 40u

enum { ARRAY, ONE, RING };

struct sample {
	const char *name;
	bool proven; /* the access, the only one of @region */
	uint8_t region;
	struct bpf_insn insn[INSNS];
};

#define PROVEN(region, name, ...)                            \
	{                                                    \
		name, true, LEAT_BPF_REGION_##region,        \
		{                                            \
			__VA_ARGS__                          \
		}                                            \
	}
#define GUARDED(region, name, ...)                           \
	{                                                    \
		name, false, LEAT_BPF_REGION_##region,       \
		{                                            \
			__VA_ARGS__                          \
		}                                            \
	}
#define END MOV64K(R0, 2), EXIT
/* r2: data, r3: data_end; r1 stays the context */
#define PACKET LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R3, R1, 4)
#define META LDX(BPF_W, R2, R1, 8), LDX(BPF_W, R3, R1, 0)
#define UNKNOWN(reg) LDX(BPF_W, reg, R1, 12)
/* r0: a value of 16 bytes; the program ends when there is none */
#define LOOKUP                                                                                                  \
	MOV64X(R6, R1), ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, ARRAY),               \
		HELPER(BPF_FUNC_map_lookup_elem), JMP64K(BPF_JNE, R0, 0, 2), END, MOV64X(R1, R6)

static const struct sample samples[] = {
	GUARDED(PACKET, "nothing said", PACKET, LDX(BPF_B, R0, R2, 0), END),
	PROVEN(PACKET, "data + 14 > end is out", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JGT, R4, R3, 1),
	       LDX(BPF_B, R0, R2, 13), END),
	GUARDED(PACKET, "one byte more", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JGT, R4, R3, 1),
		LDX(BPF_B, R0, R2, 14), END),
	GUARDED(PACKET, "before the packet", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JGT, R4, R3, 1),
		LDX(BPF_B, R0, R2, -1), END),
	GUARDED(PACKET, "the other way", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JLE, R4, R3, 1),
		LDX(BPF_B, R0, R2, 0), END),
	PROVEN(PACKET, "end >= data + 14", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JLT, R3, R4, 1),
	       LDX(BPF_B, R0, R2, 13), END),
	PROVEN(PACKET, "data + 13 < end: the byte there, too", PACKET, MOV64X(R4, R2), ADD64K(R4, 13),
	       JMP64X(BPF_JGE, R4, R3, 1), LDX(BPF_B, R0, R2, 13), END),
	GUARDED(PACKET, "data + 13 <= end: not the byte there", PACKET, MOV64X(R4, R2), ADD64K(R4, 13),
		JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_B, R0, R2, 13), END),
	PROVEN(PACKET, "a pointer loaded again", PACKET, ADD64K(R2, 14), JMP64X(BPF_JGT, R2, R3, 2),
	       LDX(BPF_W, R5, R1, 0), LDX(BPF_B, R0, R5, 13), END),
	GUARDED(PACKET, "the packet was moved", PACKET, ADD64K(R2, 14), JMP64X(BPF_JGT, R2, R3, 6), MOV64X(R6, R1),
		MOV64K(R2, 0), HELPER(BPF_FUNC_xdp_adjust_head), MOV64X(R1, R6), LDX(BPF_W, R5, R1, 0),
		LDX(BPF_B, R0, R5, 0), END),
	PROVEN(PACKET, "a pointer, or 0", PACKET, UNKNOWN(R5), MOV64K(R6, 0), MOV64X(R4, R2), ADD64K(R4, 8),
	       JMP64X(BPF_JGT, R4, R3, 1), MOV64X(R6, R2), JMP64K(BPF_JGT, R5, 3, 1), MOV64K(R0, 0),
	       JMP64K(BPF_JEQ, R6, 0, 1), LDX(BPF_DW, R0, R6, 0), END),
	PROVEN(PACKET, "two headers of different length", PACKET, UNKNOWN(R5), MOV64X(R4, R2), ADD64K(R4, 14),
	       JMP64K(BPF_JGT, R5, 3, 1), ADD64K(R4, 4), MOV64X(R5, R4), ADD64K(R5, 8), JMP64X(BPF_JGT, R5, R3, 1),
	       LDX(BPF_DW, R0, R4, 0), END),
	GUARDED(PACKET, "two headers, compared before they are one", PACKET, UNKNOWN(R5), MOV64X(R4, R2), ADD64K(R4, 14),
		MOV64X(R6, R4), ADD64K(R6, 8), JMP64X(BPF_JGT, R6, R3, 3), JMP64K(BPF_JGT, R5, 3, 1), ADD64K(R4, 4),
		LDX(BPF_DW, R0, R4, 0), END),
	PROVEN(PACKET, "through the stack", PACKET, STX(BPF_DW, R10, -8, R2), ADD64K(R2, 14),
	       JMP64X(BPF_JGT, R2, R3, 2), LDX(BPF_DW, R5, R10, -8), LDX(BPF_B, R0, R5, 13), END),
	PROVEN(PACKET, "a header of unknown length", PACKET, UNKNOWN(R5), ALU64K(BPF_AND, R5, 60), ADD64X(R2, R5),
	       MOV64X(R4, R2), ADD64K(R4, 8), JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_DW, R0, R2, 0), END),
#define HEADER_AT_R5 ADD64X(R2, R5), MOV64X(R4, R2), ADD64K(R4, 8), JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_DW, R0, R2, 0), END
	PROVEN(PACKET, "a length that was four bytes of stack", PACKET, UNKNOWN(R5), ALU64K(BPF_AND, R5, 60),
	       STX(BPF_W, R10, -4, R5), LDX(BPF_W, R5, R10, -4), HEADER_AT_R5),
	PROVEN(PACKET, "one byte of them written over", PACKET, UNKNOWN(R5), ALU64K(BPF_AND, R5, 60),
	       STX(BPF_W, R10, -8, R5), STX(BPF_B, R10, -7, R5), LDX(BPF_W, R5, R10, -8), HEADER_AT_R5),
	GUARDED(PACKET, "one byte of them written over, which makes it large", PACKET, UNKNOWN(R5),
		ALU64K(BPF_AND, R5, 60), STX(BPF_W, R10, -8, R5), STX(BPF_B, R10, -6, R5), LDX(BPF_W, R5, R10, -8),
		HEADER_AT_R5),
	GUARDED(PACKET, "eight bytes of which four are known", PACKET, UNKNOWN(R5), STX(BPF_W, R10, -4, R5),
		ALU64K(BPF_AND, R5, 60), STX(BPF_W, R10, -8, R5), LDX(BPF_DW, R5, R10, -8), HEADER_AT_R5),
	PROVEN(PACKET, "the upper four of eight bytes", PACKET, UNKNOWN(R5), STX(BPF_DW, R10, -8, R5),
	       ALU64K(BPF_AND, R5, 60), STX(BPF_W, R10, -4, R5), LDX(BPF_DW, R5, R10, -8), ALU64K(BPF_RSH, R5, 32),
	       HEADER_AT_R5),
	GUARDED(PACKET, "half of it is in the next eight bytes", PACKET, UNKNOWN(R5), ALU64K(BPF_AND, R5, 60),
		STX(BPF_W, R10, -12, R5), STX(BPF_W, R10, -8, R5), LDX(BPF_W, R5, R10, -10), HEADER_AT_R5),
	GUARDED(PACKET, "half of a pointer is a number", PACKET, STX(BPF_DW, R10, -8, R2), STX(BPF_B, R10, -8, R2),
		LDX(BPF_H, R5, R10, -7), ALU64K(BPF_LSH, R5, 1), HEADER_AT_R5),
	GUARDED(PACKET, "an unknown part too large", PACKET, UNKNOWN(R5), ADD64X(R2, R5), MOV64X(R4, R2),
		ADD64K(R4, 8), JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_DW, R0, R2, 0), END),
	GUARDED(PACKET, "an unknown part that may be negative", PACKET, UNKNOWN(R5), ADD64K(R5, -8),
		JMP64K(BPF_JSGT, R5, 100, 5), ADD64X(R2, R5), MOV64X(R4, R2), ADD64K(R4, 8),
		JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_DW, R0, R2, 0), END),
	GUARDED(PACKET, "two unknown parts are not one", PACKET, UNKNOWN(R5), ALU64K(BPF_AND, R5, 60), MOV64X(R4, R2),
		ADD64X(R4, R5), LDX(BPF_W, R5, R1, 16), ALU64K(BPF_AND, R5, 60), ADD64X(R2, R5), ADD64K(R4, 8),
		JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_DW, R0, R2, 0), END),
	GUARDED(PACKET, "on one of two paths", PACKET, UNKNOWN(R5), MOV64X(R4, R2), ADD64K(R4, 14),
		JMP64K(BPF_JEQ, R5, 1, 1), JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_B, R0, R2, 0), END),
	GUARDED(PACKET, "compared by 32 bits", PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP32X(BPF_JGT, R4, R3, 1),
		LDX(BPF_B, R0, R2, 13), END),
	GUARDED(PACKET, "an atomic operation may not be aligned", PACKET, MOV64X(R4, R2), ADD64K(R4, 16),
		JMP64X(BPF_JGT, R4, R3, 2), MOV64K(R5, 1), ATOMIC(BPF_W, BPF_ADD, R2, 0, R5), END),

	PROVEN(META, "metadata up to data", META, MOV64X(R4, R2), ADD64K(R4, 4), JMP64X(BPF_JGT, R4, R3, 1),
	       LDX(BPF_W, R0, R2, 0), END),
	GUARDED(META, "metadata up to somewhere else", META, ADD64K(R3, 4), MOV64X(R4, R2), ADD64K(R4, 4),
		JMP64X(BPF_JGT, R4, R3, 1), LDX(BPF_W, R0, R2, 0), END),

	PROVEN(MAP, "the value's end", LOOKUP, LDX(BPF_DW, R0, R0, 8), END),
	PROVEN(MAP, "an index that is masked", LOOKUP, UNKNOWN(R2), ALU64K(BPF_AND, R2, 15), ADD64X(R0, R2),
	       LDX(BPF_B, R0, R0, 0), END),
	GUARDED(MAP, "an index that is masked, one too wide", LOOKUP, UNKNOWN(R2), ALU64K(BPF_AND, R2, 15),
		ADD64X(R0, R2), LDX(BPF_H, R0, R0, 0), END),
	PROVEN(MAP, "an index that is compared", LOOKUP, UNKNOWN(R2), JMP64K(BPF_JGT, R2, 12, 2), ADD64X(R0, R2),
	       LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "compared by 32 bits, the rest being 0", LOOKUP, UNKNOWN(R2), JMP32K(BPF_JGT, R2, 12, 2),
	       ADD64X(R0, R2), LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "a copy is compared", LOOKUP, UNKNOWN(R2), MOV64X(R3, R2), JMP64K(BPF_JGT, R3, 12, 2),
	       ADD64X(R0, R2), LDX(BPF_W, R0, R0, 0), END),
	GUARDED(MAP, "a copy is compared after it was changed", LOOKUP, UNKNOWN(R2), MOV64X(R3, R2), ADD64K(R3, -50),
		JMP64K(BPF_JGT, R3, 12, 2), ADD64X(R0, R2), LDX(BPF_W, R0, R0, 0), END),
	GUARDED(MAP, "compared signed only", LOOKUP, LDX(BPF_DW, R2, R10, -64), JMP64K(BPF_JSGT, R2, 12, 2),
		ADD64X(R0, R2), LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "an atomic operation", LOOKUP, MOV64K(R2, 1), ATOMIC(BPF_DW, BPF_ADD, R0, 8, R2), END),
	GUARDED(MAP, "an atomic operation at a place unknown", LOOKUP, UNKNOWN(R2), ALU64K(BPF_AND, R2, 7),
		ADD64X(R0, R2), MOV64K(R2, 1), ATOMIC(BPF_W, BPF_ADD, R0, 0, R2), END),
	PROVEN(MAP, "an atomic operation at a multiple of its size", LOOKUP, UNKNOWN(R2), ALU64K(BPF_AND, R2, 12),
	       ADD64X(R0, R2), MOV64K(R2, 1), ATOMIC(BPF_W, BPF_ADD, R0, 0, R2), END),
	PROVEN(MAP, "a byte swap of 16 bits, divided", LOOKUP, UNKNOWN(R2), INSN(BPF_ALU | BPF_END | BPF_X, R2, 0, 0, 16),
	       ALU64K(BPF_RSH, R2, 12), ADD64X(R0, R2), LDX(BPF_B, R0, R0, 0), END),
	PROVEN(MAP, "an index of two paths", LOOKUP, UNKNOWN(R2), MOV64K(R3, 3), JMP64K(BPF_JGT, R2, 7, 1), MOV64K(R3, 9),
	       ADD64X(R0, R3), LDX(BPF_W, R0, R0, 0), END),
	GUARDED(MAP, "an index of two paths, one too far", LOOKUP, UNKNOWN(R2), MOV64K(R3, 3), JMP64K(BPF_JGT, R2, 13, 1),
		MOV64X(R3, R2), ADD64X(R0, R3), LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "paths that must be kept apart", LOOKUP, UNKNOWN(R2), MOV64K(R3, 12), MOV64K(R4, 0),
	       JMP64K(BPF_JGT, R2, 7, 2), MOV64K(R3, 0), MOV64K(R4, 12), ADD64X(R0, R3), ADD64X(R0, R4),
	       LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "a number that decides a jump", LOOKUP, UNKNOWN(R2), MOV64K(R3, 1), MOV64X(R4, R2),
	       JMP64K(BPF_JGT, R2, 12, 1), MOV64K(R3, 2), JMP64K(BPF_JNE, R3, 2, 2), ADD64X(R0, R2), LDX(BPF_W, R0, R0, 0),
	       END),
	PROVEN(MAP, "an index kept on the stack", LOOKUP, UNKNOWN(R2), ALU64K(BPF_AND, R2, 7), STX(BPF_DW, R10, -16, R2),
	       UNKNOWN(R3), JMP64K(BPF_JGT, R3, 7, 1), MOV64K(R3, 1), LDX(BPF_DW, R4, R10, -16), ADD64X(R0, R4),
	       LDX(BPF_W, R0, R0, 0), END),
	PROVEN(MAP, "an index that counts up to 15", LOOKUP, MOV64K(R2, 0), MOV64X(R3, R0), ADD64X(R3, R2),
	       LDX(BPF_B, R4, R3, 0), ADD64K(R2, 1), JMP64K(BPF_JNE, R2, 16, -5), END),
	GUARDED(MAP, "an index that counts up to what is not known", LOOKUP, UNKNOWN(R5), MOV64K(R2, 0), MOV64X(R3, R0),
		ADD64X(R3, R2), LDX(BPF_B, R4, R3, 0), ADD64K(R2, 1), JMP64K(BPF_JGT, R2, 12, 1),
		JMP64X(BPF_JGT, R5, R2, -6), ADD64X(R0, R2), LDX(BPF_W, R4, R0, 0), END),
	PROVEN(MAP, "modulo", LOOKUP, UNKNOWN(R2), ALU64K(BPF_MOD, R2, 16), ADD64X(R0, R2), LDX(BPF_B, R0, R0, 0), END),
	GUARDED(MAP, "modulo by what may be 0", LOOKUP, UNKNOWN(R2), LDX(BPF_W, R3, R1, 16), ALU64K(BPF_AND, R3, 15),
		ALU64X(BPF_MOD, R2, R3), ADD64X(R0, R2), LDX(BPF_B, R0, R0, 0), END),

	PROVEN(STACK, "the stack at a place unknown", UNKNOWN(R2), ALU64K(BPF_AND, R2, 7), MOV64X(R3, R10),
	       ADD64K(R3, -16), ADD64X(R3, R2), LDX(BPF_B, R0, R3, 0), END),
	GUARDED(STACK, "past the stack", UNKNOWN(R2), ALU64K(BPF_AND, R2, 31), MOV64X(R3, R10), ADD64K(R3, -16),
		ADD64X(R3, R2), LDX(BPF_B, R0, R3, 0), END),

	PROVEN(RECORD, "a record of known size", LDMAP(R1, RING), MOV64K(R2, 16), MOV64K(R3, 0),
	       HELPER(BPF_FUNC_ringbuf_reserve), JMP64K(BPF_JEQ, R0, 0, 4), ST(BPF_DW, R0, 8, 1), MOV64X(R1, R0),
	       MOV64K(R2, 0), HELPER(BPF_FUNC_ringbuf_submit), END),
	GUARDED(RECORD, "past a record", LDMAP(R1, RING), MOV64K(R2, 16), MOV64K(R3, 0),
		HELPER(BPF_FUNC_ringbuf_reserve), JMP64K(BPF_JEQ, R0, 0, 4), ST(BPF_DW, R0, 12, 1), MOV64X(R1, R0),
		MOV64K(R2, 0), HELPER(BPF_FUNC_ringbuf_submit), END),
};

static uint32_t length(const struct bpf_insn *insn)
{
	uint32_t n = INSNS;

	while (n && !insn[n - 1].code)
		n--;
	return n;
}

static void check(struct test_bpf *t, const struct sample *sample)
{
	uint32_t n = length(sample->insn), i, found = 0;

	if (test_bpf_verify(t, sample->insn, n))
		fail_msg("%s: %s", sample->name, t->said);
	for (i = 0; i < n; i++) {
		const struct leat_bpf_aux *aux = &t->prog[0].aux[i];

		if (aux->region != sample->region || (aux->region == LEAT_BPF_REGION_STACK && sample->insn[i].dst_reg))
			continue;
		found++;
		if (aux->proven != sample->proven)
			fail_msg("%s: %s", sample->name, aux->proven ? "proven" : "not proven");
	}
	if (!found)
		fail_msg("%s: no access", sample->name);
	test_bpf_drop_progs(t);
}

static void accesses_are_proven_or_not(void **state)
{
	struct test_bpf t;
	unsigned int i;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 1000), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0), ARRAY);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0), ONE);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), RING);
	for (i = 0; i < COUNT(samples); i++)
		check(&t, &samples[i]);
	test_bpf_end(&t);
}

/** A path that cannot be gone is not walked: what stands there is not looked at. */
static void impossible_ways_are_not_gone(void **state)
{
	static const struct bpf_insn insns[] = {
		UNKNOWN(R2), ALU64K(BPF_AND, R2, 7), JMP64K(BPF_JGT, R2, 7, 2), END, HELPER(12345), EXIT,
	};
	struct test_bpf t;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 1000), 0);
	assert_int_equal(test_bpf_verify(&t, insns, COUNT(insns)), 0);
	assert_false(t.prog[0].aux[5].reached);
	test_bpf_end(&t);
}

/** Shared code that compilers put before what jumps to it is no loop: nothing is forgotten there. */
static void backward_jumps_alone_are_no_loops(void **state)
{
	enum { WAYS = 40 };
	struct bpf_insn insns[4 * WAYS + 16] = { PACKET, MOV64X(R6, R2), UNKNOWN(R5), GOTO(4) };
	const struct bpf_insn shared[] = { MOV64X(R4, R6), ADD64K(R4, 8), JMP64X(BPF_JGT, R4, R3, 1),
					   LDX(BPF_DW, R0, R6, 0) };
	uint32_t n = 5, i;
	struct test_bpf t;

	(void)state;
	memcpy(&insns[n], shared, sizeof(shared));
	n += COUNT(shared);
	insns[n++] = (struct bpf_insn)MOV64K(R0, 2);
	insns[n++] = (struct bpf_insn)EXIT;
	insns[4].off = (__s16)(n - 5);
	for (i = 0; i < WAYS; i++) { /* pointers to 40 different places */
		insns[n++] = (struct bpf_insn)JMP64K(BPF_JNE, R5, i + 1, 1);
		insns[n] = (struct bpf_insn)GOTO(5 - (int)(n + 1));
		n++;
		insns[n++] = (struct bpf_insn)ADD64K(R6, 2);
	}
	insns[n++] = (struct bpf_insn)MOV64K(R0, 2);
	insns[n++] = (struct bpf_insn)EXIT;
	assert_int_equal(test_bpf_begin(&t, 1000), 0);
	assert_int_equal(test_bpf_verify(&t, insns, n), 0);
	assert_true(t.prog[0].aux[8].proven);
	test_bpf_end(&t);
}

/** What no proof needs does not make paths differ: sums, and how much is there of the packet beyond what is read. */
static void sums_do_not_multiply_paths(void **state)
{
	enum { STAGES = 60 };
	struct bpf_insn insns[7 * STAGES + 16] = {
		PACKET, MOV64X(R4, R2), ADD64K(R4, 14), JMP64X(BPF_JGT, R4, R3, 7 * STAGES + 1), MOV64K(R0, 0),
	};
	uint32_t n = 6, i;
	struct test_bpf t;

	(void)state;
	for (i = 0; i < STAGES; i++) {
		const struct bpf_insn stage[] = { LDX(BPF_B, R5, R2, (int)(i % 14)), MOV64X(R4, R2), ADD64K(R4, 15 + (int)i),
						  JMP64X(BPF_JGT, R4, R3, 2), LDX(BPF_B, R4, R2, 14 + (int)i),
						  ADD64X(R0, R4), ADD64K(R0, (int)i) };

		memcpy(&insns[n], stage, sizeof(stage));
		n += COUNT(stage);
	}
	insns[n++] = (struct bpf_insn)MOV64K(R0, 2);
	insns[n++] = (struct bpf_insn)EXIT;
	insns[n++] = (struct bpf_insn)MOV64K(R0, 2);
	insns[n++] = (struct bpf_insn)EXIT;
	insns[4].off = (__s16)(n - 2 - 5);
	assert_int_equal(test_bpf_begin(&t, 1000), 0);
	assert_int_equal(test_bpf_verify(&t, insns, n), 0);
	for (i = 0; i < n; i++)
		assert_true(t.prog[0].aux[i].proven || !t.prog[0].aux[i].access);
	assert_in_range(t.prog[0].walked, n, 5 * n + 1000);
	test_bpf_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accesses_are_proven_or_not),
		cmocka_unit_test(impossible_ways_are_not_gone),
		cmocka_unit_test(backward_jumps_alone_are_no_loops),
		cmocka_unit_test(sums_do_not_multiply_paths),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
