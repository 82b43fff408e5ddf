/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vector_prog.h: the program that runs one row of test_vectors.h and leaves its two results in the first 16 bytes
 * of the packet. The same program goes to our engines and to the kernel.
 */
#ifndef LEAT_BPF_TEST_VECTOR_PROG_H
#define LEAT_BPF_TEST_VECTOR_PROG_H

#include <string.h>

#include "bpf/test_asm.h"
#include "bpf/engine/test_vectors.h"

#define TEST_VECTOR_INSNS 40u
#define TEST_VECTOR_OK 2 /* r0 of a program that came to its end */

/** Where the memory of loads and stores is. */
enum test_where { TEST_ON_STACK, TEST_IN_PACKET, TEST_IN_MAP };

struct test_code {
	struct bpf_insn insn[TEST_VECTOR_INSNS];
	uint32_t n;
};

#define TEST_ADD(code, ...)                                                                                    \
	do {                                                                                                   \
		const struct bpf_insn add_[] = { __VA_ARGS__ };                                                \
		memcpy(&(code)->insn[(code)->n], add_, sizeof(add_));                                          \
		(code)->n += (uint32_t)(sizeof(add_) / sizeof(add_[0]));                                       \
	} while (0)

/** The operation itself: r2 is its destination, r3 its source, r6 its address. */
static inline void test_vector_op(const struct test_vector *v, struct test_code *code)
{
	const struct leat_insn_row *row = &leat_insn_row[v->op];
	uint8_t use = leat_insn_use[row->form];
	struct bpf_insn insn = INSN(row->opcode, 0, 0, 0, v->imm);
	bool memory = row->form >= LEAT_FORM_LDX && row->form <= LEAT_FORM_ATOMIC;

	if (use & (LEAT_USE_DST | LEAT_SET_DST))
		insn.dst_reg = memory && row->form != LEAT_FORM_LDX ? R6 : R2;
	if (use & LEAT_USE_SRC)
		insn.src_reg = row->form == LEAT_FORM_LDX ? R6 : R3;
	if (use & LEAT_VARIANT_OFF)
		insn.off = row->variant;
	if (row->form == LEAT_FORM_MOV_X)
		insn.imm = 0;
	if (row->form == LEAT_FORM_JMP_K || row->form == LEAT_FORM_JMP_X || row->form == LEAT_FORM_JA)
		insn.off = 1;
	if (row->form == LEAT_FORM_JA32)
		insn.imm = 1;
	code->insn[code->n++] = insn;
}

/** Where memory is; a goes there. */
static inline void test_vector_memory(const struct test_vector *v, enum test_where where, struct test_code *code)
{
	if (where == TEST_ON_STACK)
		TEST_ADD(code, MOV64X(R6, R10), ADD64K(R6, -16));
	else if (where == TEST_IN_PACKET)
		TEST_ADD(code, MOV64X(R6, R7), ADD64K(R6, 16));
	else
		TEST_ADD(code, LDVALUE(R6, 0, 0));
	TEST_ADD(code, STX(BPF_DW, R6, 0, R2));
	test_vector_op(v, code);
	TEST_ADD(code, LDX(BPF_DW, R4, R6, 0));
}

static inline void test_vector_prog(const struct test_vector *v, enum test_where where, struct test_code *code)
{
	uint8_t form = leat_insn_row[v->op].form;

	code->n = 0;
	TEST_ADD(code, LDX(BPF_W, R7, R1, 0), LDX(BPF_W, R8, R1, 4), MOV64X(R9, R7), ADD64K(R9, 24),
		 JMP64X(BPF_JLE, R9, R8, 2), MOV64K(R0, 0), EXIT);
	TEST_ADD(code, LD64(R2, v->a), LD64(R3, v->b), LD64(R0, v->c), MOV64K(R5, 0));
	if (form == LEAT_FORM_LD64)
		TEST_ADD(code, MOV64X(R4, R2));
	else if (form == LEAT_FORM_LDX)
		test_vector_memory(v, where, code);
	else if (form == LEAT_FORM_ST || form == LEAT_FORM_STX || form == LEAT_FORM_ATOMIC)
		test_vector_memory(v, where, code);
	else if (form >= LEAT_FORM_JA)
		TEST_ADD(code, MOV64K(R4, 1));
	if (form == LEAT_FORM_JA || form == LEAT_FORM_JA32) /* a way to what it jumps over, which is not taken */
		TEST_ADD(code, JMP64K(BPF_JNE, R2, 0, 1));
	if (form >= LEAT_FORM_JA || form < LEAT_FORM_LD64)
		test_vector_op(v, code);
	if (form >= LEAT_FORM_JA)
		TEST_ADD(code, MOV64K(R4, 0));
	else if (form < LEAT_FORM_LD64)
		TEST_ADD(code, MOV64X(R4, R2));
	else if (form == LEAT_FORM_LDX)
		TEST_ADD(code, MOV64X(R5, R4), MOV64X(R4, R2));
	else if (v->op == LEAT_OP_ACMPXCHG32 || v->op == LEAT_OP_ACMPXCHG64)
		TEST_ADD(code, MOV64X(R5, R0));
	else if (form == LEAT_FORM_STX || form == LEAT_FORM_ATOMIC)
		TEST_ADD(code, MOV64X(R5, R3));
	TEST_ADD(code, STX(BPF_DW, R7, 0, R4), STX(BPF_DW, R7, 8, R5), MOV64K(R0, TEST_VECTOR_OK), EXIT);
}

#endif
