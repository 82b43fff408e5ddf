/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_alu.c: arithmetic and moves (RFC 9669, 4). *control*.
 *
 * 32-bit instructions of the machine clear the upper half of what they write, as BPF's do, and shifts mask their
 * distance, as BPF's do. Division is where they differ: the machine traps where BPF gives a value.
 */
#include "bpf/engine/jit_x86.h"

/* The parts of a division. */
struct division {
	unsigned int dst, wide; /* wide: X_W */
	bool is_signed, rest;
};

static unsigned int reg(unsigned int bpf)
{
	return leat_jit_reg[bpf];
}

/* ---- shifts ---- */

/** op: 4 left, 5 right, 7 arithmetic right. */
static void shift_imm(struct jit *j, unsigned int wide, unsigned int op, unsigned int dst, int32_t by)
{
	by &= wide ? 63 : 31;
	if (!by && wide)
		return;
	if (!by) {
		leat_x86_mov(j, 0, dst, dst); /* clears the upper half */
		return;
	}
	leat_x86_rr(j, wide, by == 1 ? 0xd1 : 0xc1, op, dst);
	if (by != 1)
		leat_x86_byte(j, (unsigned int)by);
}

/** shlx, shrx, sarx: VEX-encoded, and no register is fixed. */
static void shift_bmi2(struct jit *j, unsigned int wide, unsigned int op, unsigned int dst, unsigned int by)
{
	unsigned int prefix = op == 4 ? 1 : op == 5 ? 3 : 2; /* 66, F2, F3 */

	leat_x86_byte(j, 0xc4);
	leat_x86_byte(j, (dst & 8 ? 0 : 0x80) | 0x40 | (dst & 8 ? 0 : 0x20) | 0x02);
	leat_x86_byte(j, (wide ? 0x80u : 0) | (~by & 15) << 3 | prefix);
	leat_x86_byte(j, 0xf7);
	leat_x86_byte(j, 0xc0 | (dst & 7) << 3 | (dst & 7));
}

/** The distance goes to cl, which holds a BPF register. */
static void shift_cl(struct jit *j, unsigned int wide, unsigned int op, unsigned int dst, unsigned int by)
{
	if (dst == RCX) {
		leat_x86_mov(j, X_W, TMP, RCX);
		if (by != RCX)
			leat_x86_mov(j, X_W, RCX, by);
		leat_x86_rr(j, wide, 0xd3, op, TMP);
		leat_x86_mov(j, X_W, RCX, TMP);
		return;
	}
	if (by != RCX) {
		leat_x86_mov(j, X_W, TMP, RCX);
		leat_x86_mov(j, X_W, RCX, by);
	}
	leat_x86_rr(j, wide, 0xd3, op, dst);
	if (by != RCX)
		leat_x86_mov(j, X_W, RCX, TMP);
}

static void shift_reg(struct jit *j, unsigned int wide, unsigned int op, unsigned int dst, unsigned int by)
{
	if (j->bmi2)
		shift_bmi2(j, wide, op, dst, by);
	else
		shift_cl(j, wide, op, dst, by);
}

/* ---- division ---- */

/** rdx:rax / r10; the results of the machine go to their place, and rax and rdx become what they were. */
static void divide(struct jit *j, const struct division *d)
{
	if (d->dst != RAX)
		leat_x86_mov(j, X_W, TMP, RAX);
	if (d->dst != RDX)
		leat_x86_push(j, RDX);
	if (d->dst != RAX)
		leat_x86_mov(j, X_W, RAX, d->dst);
	if (d->is_signed) {
		if (d->wide)
			leat_x86_byte(j, 0x48);
		leat_x86_byte(j, 0x99); /* cdq, cqo */
	} else {
		leat_x86_rr(j, 0, 0x33, RDX, RDX);
	}
	leat_x86_rr(j, d->wide, 0xf7, d->is_signed ? 7 : 6, TMP2);
	if (d->dst != (d->rest ? RDX : RAX))
		leat_x86_mov(j, X_W, d->dst, d->rest ? RDX : RAX);
	if (d->dst != RDX)
		leat_x86_pop(j, RDX);
	if (d->dst != RAX)
		leat_x86_mov(j, X_W, RAX, TMP);
}

/** What BPF gives for a divisor of 0 (-1: @minus_one). */
static void exception(struct jit *j, const struct division *d, bool minus_one)
{
	if (minus_one ? d->rest : !d->rest)
		leat_x86_rr(j, 0, 0x33, d->dst, d->dst);
	else if (minus_one)
		leat_x86_rr(j, d->wide, 0xf7, 3, d->dst); /* neg */
	else if (!d->wide)
		leat_x86_mov(j, 0, d->dst, d->dst);
}

/** The divisor is in r10. */
static void divide_checked(struct jit *j, const struct division *d)
{
	uint32_t good, not_minus_one, end, end2 = 0;

	leat_x86_rr(j, d->wide, 0x85, TMP2, TMP2);
	good = leat_x86_skip(j, CC_NE);
	exception(j, d, false);
	end = leat_x86_skip(j, -1);
	leat_x86_here(j, good);
	if (d->is_signed) {
		leat_x86_alu_imm(j, d->wide, 7, TMP2, -1);
		not_minus_one = leat_x86_skip(j, CC_NE);
		exception(j, d, true);
		end2 = leat_x86_skip(j, -1);
		leat_x86_here(j, not_minus_one);
	}
	divide(j, d);
	leat_x86_here(j, end);
	if (end2)
		leat_x86_here(j, end2);
}

static bool is_power_of_2(uint64_t n)
{
	return n && !(n & (n - 1));
}

static void divide_imm(struct jit *j, const struct division *d, int32_t imm)
{
	uint64_t by = d->wide ? (uint64_t)(int64_t)imm : (uint32_t)imm;

	if (!imm) {
		exception(j, d, false);
	} else if (d->is_signed && imm == -1) {
		exception(j, d, true);
	} else if (!d->is_signed && is_power_of_2(by) && d->rest && by <= (UINT64_C(1) << 31)) {
		leat_x86_alu_imm(j, 0, 4, d->dst, (int32_t)(uint32_t)(by - 1)); /* clears the upper half, too */
	} else if (!d->is_signed && is_power_of_2(by) && !d->rest) {
		shift_imm(j, d->wide, 5, d->dst, __builtin_ctzll(by));
	} else {
		leat_x86_mov_imm(j, TMP2, by);
		divide(j, d);
	}
}

/** @kind: the operation, as of the register forms. */
static void division(struct jit *j, const struct bpf_insn *insn, int kind, unsigned int wide, bool x)
{
	const struct division d = {
		.dst = reg(insn->dst_reg),
		.wide = wide,
		.is_signed = kind == LEAT_OP_SDIV32K || kind == LEAT_OP_SMOD32K,
		.rest = kind == LEAT_OP_MOD32K || kind == LEAT_OP_SMOD32K,
	};

	if (!x) {
		divide_imm(j, &d, insn->imm);
		return;
	}
	leat_x86_mov(j, wide, TMP2, reg(insn->src_reg));
	divide_checked(j, &d);
}

/* ---- the rest ---- */

static void multiply(struct jit *j, const struct bpf_insn *insn, unsigned int wide, bool x)
{
	unsigned int dst = reg(insn->dst_reg);

	if (x) {
		leat_x86_rr(j, wide, 0x0faf, dst, reg(insn->src_reg));
		return;
	}
	leat_x86_rr(j, wide, insn->imm >= -128 && insn->imm <= 127 ? 0x6b : 0x69, dst, dst);
	if (insn->imm >= -128 && insn->imm <= 127)
		leat_x86_byte(j, (unsigned int)insn->imm & 0xff);
	else
		leat_x86_u32(j, (uint32_t)insn->imm);
}

/** add, or, and, sub, xor: @ext as in leat_x86_alu_imm(). */
static void simple(struct jit *j, const struct bpf_insn *insn, unsigned int ext, unsigned int wide, bool x)
{
	if (ext == 4 && !x && insn->imm >= 0)
		wide = 0; /* clears the upper half all the same, and is shorter */
	if (x)
		leat_x86_rr(j, wide, ext << 3 | 3, reg(insn->dst_reg), reg(insn->src_reg));
	else
		leat_x86_alu_imm(j, wide, ext, reg(insn->dst_reg), insn->imm);
}

static void binary(struct jit *j, const struct bpf_insn *insn, int op)
{
	int which = (op - LEAT_OP_ADD32K) & 3, kind = op - which;
	unsigned int wide = which & 2 ? X_W : 0, shift;
	bool x = which & 1;

	switch (kind) {
	case LEAT_OP_ADD32K:
		simple(j, insn, 0, wide, x);
		break;
	case LEAT_OP_OR32K:
		simple(j, insn, 1, wide, x);
		break;
	case LEAT_OP_AND32K:
		simple(j, insn, 4, wide, x);
		break;
	case LEAT_OP_SUB32K:
		simple(j, insn, 5, wide, x);
		break;
	case LEAT_OP_XOR32K:
		simple(j, insn, 6, wide, x);
		break;
	case LEAT_OP_MUL32K:
		multiply(j, insn, wide, x);
		break;
	case LEAT_OP_LSH32K:
	case LEAT_OP_RSH32K:
	case LEAT_OP_ARSH32K:
		shift = kind == LEAT_OP_LSH32K ? 4 : kind == LEAT_OP_RSH32K ? 5 : 7;
		if (x)
			shift_reg(j, wide, shift, reg(insn->dst_reg), reg(insn->src_reg));
		else
			shift_imm(j, wide, shift, reg(insn->dst_reg), insn->imm);
		break;
	default:
		division(j, insn, kind, wide, x);
	}
}
LEAT_STATIC_ASSERT((LEAT_OP_SUB32K - LEAT_OP_ADD32K) == 4 && (LEAT_OP_ARSH64X - LEAT_OP_ADD32K) == 51,
		   "four forms of each");

static void swap(struct jit *j, unsigned int wide, unsigned int dst)
{
	/* bswap has its register in the opcode */
	if (wide || dst > RDI)
		leat_x86_byte(j, 0x40 | (wide ? 8 : 0) | (dst >> 3));
	leat_x86_byte(j, 0x0f);
	leat_x86_byte(j, 0xc8 | (dst & 7));
}

/** Swaps the bytes of the lower 16 bits, and clears the rest: they come out on top of the lower 32. */
static void swap16(struct jit *j, unsigned int dst)
{
	swap(j, 0, dst);
	leat_x86_rr(j, 0, 0xc1, 5, dst); /* shr */
	leat_x86_byte(j, 16);
}

static void move_imm(struct jit *j, unsigned int dst, uint64_t value)
{
	if (value)
		leat_x86_mov_imm(j, dst, value);
	else
		leat_x86_rr(j, 0, 0x33, dst, dst);
}

void leat_x86_alu(struct jit *j, uint32_t i, int op)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	unsigned int dst = reg(insn->dst_reg), src = reg(insn->src_reg);

	switch (op) {
	case LEAT_OP_MOV32K:
		move_imm(j, dst, (uint32_t)insn->imm);
		break;
	case LEAT_OP_MOV64K:
		move_imm(j, dst, (uint64_t)(int64_t)insn->imm);
		break;
	case LEAT_OP_MOV32X:
		leat_x86_mov(j, 0, dst, src);
		break;
	case LEAT_OP_MOV64X:
		if (dst != src)
			leat_x86_mov(j, X_W, dst, src);
		break;
	case LEAT_OP_MOVS8_32:
	case LEAT_OP_MOVS8_64:
		leat_x86_rr(j, X_BYTE | (op == LEAT_OP_MOVS8_64 ? X_W : 0), 0x0fbe, dst, src);
		break;
	case LEAT_OP_MOVS16_32:
	case LEAT_OP_MOVS16_64:
		leat_x86_rr(j, op == LEAT_OP_MOVS16_64 ? X_W : 0, 0x0fbf, dst, src);
		break;
	case LEAT_OP_MOVS32_64:
		leat_x86_rr(j, X_W, 0x63, dst, src);
		break;
	case LEAT_OP_NEG32:
	case LEAT_OP_NEG64:
		leat_x86_rr(j, op == LEAT_OP_NEG64 ? X_W : 0, 0xf7, 3, dst);
		break;
	case LEAT_OP_LE16:
		leat_x86_rr(j, 0, 0x0fb7, dst, dst);
		break;
	case LEAT_OP_LE32:
		leat_x86_mov(j, 0, dst, dst);
		break;
	case LEAT_OP_LE64:
		break;
	case LEAT_OP_BE16:
	case LEAT_OP_BSWAP16:
		swap16(j, dst);
		break;
	case LEAT_OP_BE32:
	case LEAT_OP_BSWAP32:
	case LEAT_OP_BE64:
	case LEAT_OP_BSWAP64:
		swap(j, op == LEAT_OP_BE64 || op == LEAT_OP_BSWAP64 ? X_W : 0, dst);
		break;
	default:
		binary(j, insn, op);
	}
}
