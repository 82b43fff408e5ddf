/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * insn.h: the instruction set of RFC 9669, as one table.
 *
 * A row is one operation: its opcode byte, and where one byte stands for several operations, the value of the field
 * that tells them apart (the variant). Verifier, interpreter and compiler speak of operations by their row's number,
 * LEAT_OP_*; whatever they need to know of operands is in the row's form. A field that the form does not use must be
 * zero.
 */
#ifndef LEAT_BPF_INSN_H
#define LEAT_BPF_INSN_H

#include <leat/base.h>
#include <linux/bpf.h>

#ifndef BPF_MEMSX
#define BPF_MEMSX 0x80 /* sign-extending load (RFC 9669, 5.2); newer than the oldest <linux/bpf.h> we build with */
#endif

/** Operands of an operation. */
enum leat_insn_form {
	LEAT_FORM_ALU_K,  /* dst = dst op imm; variant: offset */
	LEAT_FORM_ALU_X,  /* dst = dst op src; variant: offset */
	LEAT_FORM_MOV_K,
	LEAT_FORM_MOV_X,  /* variant: offset, bits to extend from; 0: plain */
	LEAT_FORM_NEG,
	LEAT_FORM_END,    /* variant: imm, width in bits */
	LEAT_FORM_LD64,   /* two slots; variant: source, what the immediate means */
	LEAT_FORM_LDX,
	LEAT_FORM_ST,
	LEAT_FORM_STX,
	LEAT_FORM_ATOMIC, /* variant: imm */
	LEAT_FORM_JA,
	LEAT_FORM_JA32,   /* the distance is the immediate */
	LEAT_FORM_JMP_K,
	LEAT_FORM_JMP_X,
	LEAT_FORM_CALL,   /* variant: source, what is called */
	LEAT_FORM_KFUNC,
	LEAT_FORM_EXIT,
	LEAT_FORMS
};

/* Which fields a form uses, and how. */
#define LEAT_USE_DST 0x01u    /* dst is read */
#define LEAT_SET_DST 0x02u    /* dst is written */
#define LEAT_USE_SRC 0x04u    /* src is a register that is read */
#define LEAT_USE_OFF 0x08u
#define LEAT_USE_IMM 0x10u
#define LEAT_VARIANT_OFF 0x20u
#define LEAT_VARIANT_IMM 0x40u
#define LEAT_VARIANT_SRC 0x80u

/* X(name, opcode, form, variant, text) */
#define LEAT_ROWS_ALU(X, name, op, variant, text)                             \
	X(name##32K, BPF_ALU | (op) | BPF_K, ALU_K, variant, text)            \
	X(name##32X, BPF_ALU | (op) | BPF_X, ALU_X, variant, text)            \
	X(name##64K, BPF_ALU64 | (op) | BPF_K, ALU_K, variant, text)          \
	X(name##64X, BPF_ALU64 | (op) | BPF_X, ALU_X, variant, text)
#define LEAT_ROWS_JMP(X, name, op, text)                                      \
	X(name##64K, BPF_JMP | (op) | BPF_K, JMP_K, 0, text)                  \
	X(name##64X, BPF_JMP | (op) | BPF_X, JMP_X, 0, text)                  \
	X(name##32K, BPF_JMP32 | (op) | BPF_K, JMP_K, 0, text)                \
	X(name##32X, BPF_JMP32 | (op) | BPF_X, JMP_X, 0, text)
#define LEAT_ROWS_ATOMIC(X, name, imm, text)                                  \
	X(name##32, BPF_STX | BPF_W | BPF_ATOMIC, ATOMIC, imm, text)          \
	X(name##64, BPF_STX | BPF_DW | BPF_ATOMIC, ATOMIC, imm, text)
#define LEAT_ROWS_END(X, name, op, text)                                      \
	X(name##16, op, END, 16, text "16")                                   \
	X(name##32, op, END, 32, text "32")                                   \
	X(name##64, op, END, 64, text "64")

#define LEAT_INSN_ROWS(X)                                                     \
	LEAT_ROWS_ALU(X, ADD, BPF_ADD, 0, "+=")                               \
	LEAT_ROWS_ALU(X, SUB, BPF_SUB, 0, "-=")                               \
	LEAT_ROWS_ALU(X, MUL, BPF_MUL, 0, "*=")                               \
	LEAT_ROWS_ALU(X, DIV, BPF_DIV, 0, "/=")                               \
	LEAT_ROWS_ALU(X, SDIV, BPF_DIV, 1, "s/=")                             \
	LEAT_ROWS_ALU(X, OR, BPF_OR, 0, "|=")                                 \
	LEAT_ROWS_ALU(X, AND, BPF_AND, 0, "&=")                               \
	LEAT_ROWS_ALU(X, LSH, BPF_LSH, 0, "<<=")                              \
	LEAT_ROWS_ALU(X, RSH, BPF_RSH, 0, ">>=")                              \
	LEAT_ROWS_ALU(X, MOD, BPF_MOD, 0, "%=")                               \
	LEAT_ROWS_ALU(X, SMOD, BPF_MOD, 1, "s%=")                             \
	LEAT_ROWS_ALU(X, XOR, BPF_XOR, 0, "^=")                               \
	LEAT_ROWS_ALU(X, ARSH, BPF_ARSH, 0, "s>>=")                           \
	X(MOV32K, BPF_ALU | BPF_MOV | BPF_K, MOV_K, 0, "")                    \
	X(MOV32X, BPF_ALU | BPF_MOV | BPF_X, MOV_X, 0, "")                    \
	X(MOVS8_32, BPF_ALU | BPF_MOV | BPF_X, MOV_X, 8, "(s8)")              \
	X(MOVS16_32, BPF_ALU | BPF_MOV | BPF_X, MOV_X, 16, "(s16)")           \
	X(MOV64K, BPF_ALU64 | BPF_MOV | BPF_K, MOV_K, 0, "")                  \
	X(MOV64X, BPF_ALU64 | BPF_MOV | BPF_X, MOV_X, 0, "")                  \
	X(MOVS8_64, BPF_ALU64 | BPF_MOV | BPF_X, MOV_X, 8, "(s8)")            \
	X(MOVS16_64, BPF_ALU64 | BPF_MOV | BPF_X, MOV_X, 16, "(s16)")         \
	X(MOVS32_64, BPF_ALU64 | BPF_MOV | BPF_X, MOV_X, 32, "(s32)")         \
	X(NEG32, BPF_ALU | BPF_NEG, NEG, 0, "-")                              \
	X(NEG64, BPF_ALU64 | BPF_NEG, NEG, 0, "-")                            \
	LEAT_ROWS_END(X, LE, BPF_ALU | BPF_END | BPF_TO_LE, "le")             \
	LEAT_ROWS_END(X, BE, BPF_ALU | BPF_END | BPF_TO_BE, "be")             \
	LEAT_ROWS_END(X, BSWAP, BPF_ALU64 | BPF_END, "bswap")                 \
	X(LD64, BPF_LD | BPF_IMM | BPF_DW, LD64, 0, "")                       \
	X(LD64_MAP, BPF_LD | BPF_IMM | BPF_DW, LD64, BPF_PSEUDO_MAP_FD, "map")                \
	X(LD64_VALUE, BPF_LD | BPF_IMM | BPF_DW, LD64, BPF_PSEUDO_MAP_VALUE, "value of map")  \
	X(LD64_BTF, BPF_LD | BPF_IMM | BPF_DW, LD64, BPF_PSEUDO_BTF_ID, "kernel variable")     \
	X(LD64_FUNC, BPF_LD | BPF_IMM | BPF_DW, LD64, BPF_PSEUDO_FUNC, "function")            \
	X(LDX8, BPF_LDX | BPF_MEM | BPF_B, LDX, 0, "u8")                      \
	X(LDX16, BPF_LDX | BPF_MEM | BPF_H, LDX, 0, "u16")                    \
	X(LDX32, BPF_LDX | BPF_MEM | BPF_W, LDX, 0, "u32")                    \
	X(LDX64, BPF_LDX | BPF_MEM | BPF_DW, LDX, 0, "u64")                   \
	X(LDXS8, BPF_LDX | BPF_MEMSX | BPF_B, LDX, 0, "s8")                   \
	X(LDXS16, BPF_LDX | BPF_MEMSX | BPF_H, LDX, 0, "s16")                 \
	X(LDXS32, BPF_LDX | BPF_MEMSX | BPF_W, LDX, 0, "s32")                 \
	X(ST8, BPF_ST | BPF_MEM | BPF_B, ST, 0, "u8")                         \
	X(ST16, BPF_ST | BPF_MEM | BPF_H, ST, 0, "u16")                       \
	X(ST32, BPF_ST | BPF_MEM | BPF_W, ST, 0, "u32")                       \
	X(ST64, BPF_ST | BPF_MEM | BPF_DW, ST, 0, "u64")                      \
	X(STX8, BPF_STX | BPF_MEM | BPF_B, STX, 0, "u8")                      \
	X(STX16, BPF_STX | BPF_MEM | BPF_H, STX, 0, "u16")                    \
	X(STX32, BPF_STX | BPF_MEM | BPF_W, STX, 0, "u32")                    \
	X(STX64, BPF_STX | BPF_MEM | BPF_DW, STX, 0, "u64")                   \
	LEAT_ROWS_ATOMIC(X, AADD, BPF_ADD, "add")                             \
	LEAT_ROWS_ATOMIC(X, AOR, BPF_OR, "or")                                \
	LEAT_ROWS_ATOMIC(X, AAND, BPF_AND, "and")                             \
	LEAT_ROWS_ATOMIC(X, AXOR, BPF_XOR, "xor")                             \
	LEAT_ROWS_ATOMIC(X, AFADD, BPF_ADD | BPF_FETCH, "fetch_add")          \
	LEAT_ROWS_ATOMIC(X, AFOR, BPF_OR | BPF_FETCH, "fetch_or")             \
	LEAT_ROWS_ATOMIC(X, AFAND, BPF_AND | BPF_FETCH, "fetch_and")          \
	LEAT_ROWS_ATOMIC(X, AFXOR, BPF_XOR | BPF_FETCH, "fetch_xor")          \
	LEAT_ROWS_ATOMIC(X, AXCHG, BPF_XCHG, "xchg")                          \
	LEAT_ROWS_ATOMIC(X, ACMPXCHG, BPF_CMPXCHG, "cmpxchg")                 \
	X(JA, BPF_JMP | BPF_JA, JA, 0, "goto")                                \
	X(JA32, BPF_JMP32 | BPF_JA, JA32, 0, "gotol")                         \
	LEAT_ROWS_JMP(X, JEQ, BPF_JEQ, "==")                                  \
	LEAT_ROWS_JMP(X, JNE, BPF_JNE, "!=")                                  \
	LEAT_ROWS_JMP(X, JGT, BPF_JGT, ">")                                   \
	LEAT_ROWS_JMP(X, JGE, BPF_JGE, ">=")                                  \
	LEAT_ROWS_JMP(X, JLT, BPF_JLT, "<")                                   \
	LEAT_ROWS_JMP(X, JLE, BPF_JLE, "<=")                                  \
	LEAT_ROWS_JMP(X, JSET, BPF_JSET, "&")                                 \
	LEAT_ROWS_JMP(X, JSGT, BPF_JSGT, "s>")                                \
	LEAT_ROWS_JMP(X, JSGE, BPF_JSGE, "s>=")                               \
	LEAT_ROWS_JMP(X, JSLT, BPF_JSLT, "s<")                                \
	LEAT_ROWS_JMP(X, JSLE, BPF_JSLE, "s<=")                               \
	X(CALL, BPF_JMP | BPF_CALL, CALL, 0, "helper")                        \
	X(CALL_LOCAL, BPF_JMP | BPF_CALL, CALL, BPF_PSEUDO_CALL, "function")  \
	X(CALL_KFUNC, BPF_JMP | BPF_CALL, KFUNC, BPF_PSEUDO_KFUNC_CALL, "kernel function")    \
	X(EXIT, BPF_JMP | BPF_EXIT, EXIT, 0, "exit")

#define LEAT_INSN_ENUM(name, opcode, form, variant, text) LEAT_OP_##name,
enum leat_insn_op { LEAT_INSN_ROWS(LEAT_INSN_ENUM) LEAT_INSN_OPS };

struct leat_insn_row {
	uint8_t opcode;
	uint8_t form; /* enum leat_insn_form */
	int16_t variant;
	const char *name;
	const char *text;
};

extern const struct leat_insn_row leat_insn_row[LEAT_INSN_OPS];
/** LEAT_USE_* and LEAT_VARIANT_* of each form. */
extern const uint8_t leat_insn_use[LEAT_FORMS];

/** The number of the row, or -1: no such instruction. Reserved fields are not looked at. */
int leat_insn_find(const struct bpf_insn *insn);
/** The name of a field that should be zero and is not, or of a register that there is not; NULL: all well. */
const char *leat_insn_reserved(const struct bpf_insn *insn, int op);
/** Bytes that a load, a store or an atomic operation touches. */
static inline uint32_t leat_insn_size(const struct bpf_insn *insn)
{
	static const uint8_t size[4] = { 4, 2, 1, 8 };

	return size[BPF_SIZE(insn->code) >> 3];
}
/** Whether it works on 32-bit halves of registers. */
static inline bool leat_insn_is32(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_ALU || BPF_CLASS(insn->code) == BPF_JMP32;
}
/** Distance to the target of a jump, from the instruction that follows it. */
static inline int32_t leat_insn_jump(const struct bpf_insn *insn, int op)
{
	return op == LEAT_OP_JA32 ? insn->imm : insn->off;
}

/** Writes it as text: "if r1 s> 5 goto +3". @insn has two slots where it is a 64-bit load. Returns as snprintf. */
int leat_insn_format(const struct bpf_insn *insn, char *buf, size_t size);

#endif
