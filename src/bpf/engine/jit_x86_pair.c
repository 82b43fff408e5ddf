/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_pair.c: what two operations, one after the other, need no second instruction of the machine for. *control*.
 *
 * A pair is one only where no path comes between the two.
 */
#include "bpf/engine/jit_x86.h"

/** Whether operation @i + 1 is only ever come to from @i. */
static bool goes_on(const struct jit *j, uint32_t i)
{
	return i + 1 < j->prog->n_ops && j->row[i + 1] >= 0 && j->prog->op[i + 1].op != LEAT_OP_UNREACHED &&
	       !(j->mark[i + 1] & (LEAT_TRACK_LABEL | LEAT_TRACK_FUNC | LEAT_TRACK_SECOND));
}

/** a = b; a += c: one lea. */
static bool moved_and_added(struct jit *j, const struct bpf_insn *insn, int second)
{
	unsigned int to = leat_jit_reg[insn->dst_reg], from = leat_jit_reg[insn->src_reg];

	if (insn[1].dst_reg != insn->dst_reg || insn->src_reg == insn->dst_reg)
		return false;
	if (second == LEAT_OP_ADD64K) {
		leat_x86_lea(j, to, from, insn[1].imm);
		return true;
	}
	if (second != LEAT_OP_ADD64X || insn[1].src_reg == insn->dst_reg)
		return false;
	leat_x86_lea_sum(j, to, from, leat_jit_reg[insn[1].src_reg]);
	return true;
}

/** a <<= 32; a >>= 32: the lower half, extended. */
static bool shifted_twice(struct jit *j, const struct bpf_insn *insn, int second)
{
	unsigned int reg = leat_jit_reg[insn->dst_reg];

	if (insn->imm != 32 || insn[1].imm != 32 || insn[1].dst_reg != insn->dst_reg)
		return false;
	if (second == LEAT_OP_RSH64K)
		leat_x86_mov(j, 0, reg, reg);
	else if (second == LEAT_OP_ARSH64K)
		leat_x86_rr(j, X_W, 0x63, reg, reg); /* movsxd */
	else
		return false;
	return true;
}

bool leat_x86_pair(struct jit *j, uint32_t i, int op)
{
	const struct bpf_insn *insn = &j->prog->insn[i];

	if (!goes_on(j, i))
		return false;
	if (op == LEAT_OP_MOV64X)
		return moved_and_added(j, insn, j->row[i + 1]);
	return op == LEAT_OP_LSH64K && shifted_twice(j, insn, j->row[i + 1]);
}

bool leat_x86_flags_are_set(const struct jit *j, uint32_t i, bool wide)
{
	const struct bpf_insn *insn = &j->prog->insn[i];

	if (!i || !goes_on(j, i - 1) || j->prog->op[i - 1].op == LEAT_OP_UNREACHED || insn[-1].dst_reg != insn->dst_reg)
		return false;
	switch (j->row[i - 1]) {
	case LEAT_OP_AND32K:
	case LEAT_OP_AND32X:
	case LEAT_OP_OR32K:
	case LEAT_OP_OR32X:
	case LEAT_OP_XOR32K:
	case LEAT_OP_XOR32X:
		return true; /* the upper half is 0 */
	case LEAT_OP_AND64K:
	case LEAT_OP_AND64X:
	case LEAT_OP_OR64K:
	case LEAT_OP_OR64X:
	case LEAT_OP_XOR64K:
	case LEAT_OP_XOR64X:
		return wide;
	default:
		return false;
	}
}
