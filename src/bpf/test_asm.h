/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_asm.h: a small assembler for tests: each word is one instruction, or the two of a 64-bit load.
 *
 *	static const struct bpf_insn insns[] = { MOV64K(R0, 2), EXIT };
 */
#ifndef LEAT_BPF_TEST_ASM_H
#define LEAT_BPF_TEST_ASM_H

#include "bpf/insn.h"

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };

#define INSN(c, d, s, o, i)                                                                                    \
	{                                                                                                      \
		.code = (__u8)(c), .dst_reg = (d) & 15, .src_reg = (s) & 15, .off = (__s16)(o),                \
		.imm = (__s32)(uint32_t)(uint64_t)(i)                                                          \
	}

/* op: BPF_ADD ... */
#define ALU64K(op, d, imm) INSN(BPF_ALU64 | (op) | BPF_K, d, 0, 0, imm)
#define ALU64X(op, d, s) INSN(BPF_ALU64 | (op) | BPF_X, d, s, 0, 0)
#define ALU32K(op, d, imm) INSN(BPF_ALU | (op) | BPF_K, d, 0, 0, imm)
#define ALU32X(op, d, s) INSN(BPF_ALU | (op) | BPF_X, d, s, 0, 0)
#define ADD64K(d, imm) ALU64K(BPF_ADD, d, imm)
#define ADD64X(d, s) ALU64X(BPF_ADD, d, s)
#define MOV64K(d, imm) ALU64K(BPF_MOV, d, imm)
#define MOV64X(d, s) ALU64X(BPF_MOV, d, s)
#define MOV32K(d, imm) ALU32K(BPF_MOV, d, imm)
#define MOV32X(d, s) ALU32X(BPF_MOV, d, s)

#define LD64_FROM(source, d, low, high) INSN(BPF_LD | BPF_IMM | BPF_DW, d, source, 0, low), INSN(0, 0, 0, 0, high)
#define LD64(d, imm) LD64_FROM(0, d, imm, (uint64_t)(imm) >> 32)
#define LDMAP(d, number) LD64_FROM(BPF_PSEUDO_MAP_FD, d, number, 0)
#define LDVALUE(d, number, off) LD64_FROM(BPF_PSEUDO_MAP_VALUE, d, number, off)
#define LDFUNC(d, distance) LD64_FROM(BPF_PSEUDO_FUNC, d, distance, 0)

/* size: BPF_B, BPF_H, BPF_W, BPF_DW */
#define LDX(size, d, s, off) INSN(BPF_LDX | BPF_MEM | (size), d, s, off, 0)
#define LDXS(size, d, s, off) INSN(BPF_LDX | BPF_MEMSX | (size), d, s, off, 0)
#define ST(size, d, off, imm) INSN(BPF_ST | BPF_MEM | (size), d, 0, off, imm)
#define STX(size, d, off, s) INSN(BPF_STX | BPF_MEM | (size), d, s, off, 0)
#define ATOMIC(size, op, d, off, s) INSN(BPF_STX | BPF_ATOMIC | (size), d, s, off, op)

/* op: BPF_JEQ ... */
#define JMP64K(op, d, imm, off) INSN(BPF_JMP | (op) | BPF_K, d, 0, off, imm)
#define JMP64X(op, d, s, off) INSN(BPF_JMP | (op) | BPF_X, d, s, off, 0)
#define JMP32K(op, d, imm, off) INSN(BPF_JMP32 | (op) | BPF_K, d, 0, off, imm)
#define JMP32X(op, d, s, off) INSN(BPF_JMP32 | (op) | BPF_X, d, s, off, 0)
#define GOTO(off) INSN(BPF_JMP | BPF_JA, 0, 0, off, 0)
#define GOTOL(distance) INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, distance)
#define HELPER(id) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, id)
#define CALL(distance) INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, distance)
#define EXIT INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

#endif
