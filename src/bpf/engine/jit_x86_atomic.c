/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_atomic.c: atomic operations (RFC 9669, 5.3): one locked instruction, or a loop round cmpxchg where the machine
 * has none that gives the old value. *control*.
 */
#include "bpf/engine/jit_x86.h"

static unsigned int reg(unsigned int bpf)
{
	return leat_jit_reg[bpf];
}

/** The address must be a multiple of the size. */
static void guard_alignment(struct jit *j, uint32_t i)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	const struct leat_track_reg *known = &j->track.reg[insn->dst_reg];
	uint32_t size = leat_insn_size(insn);

	/* frames begin at multiples of 8 */
	if (known->kind == LEAT_TRACK_FRAME && !((known->value + insn->off) & (size - 1)))
		return;
	leat_x86_lea(j, TMP, reg(insn->dst_reg), insn->off);
	leat_x86_rr(j, X_BYTE, 0xf6, 0, TMP); /* test dil, imm */
	leat_x86_byte(j, size - 1);
	leat_x86_out(j, CC_NE, i, STUB_TRAP_ACCESS);
}

/**
 * or, and, xor that give the old value; @ext as in leat_x86_alu_imm(). The load of 32 bits clears the upper half of
 * rax, and so does a comparison that fails.
 */
static void fetch_loop(struct jit *j, const struct bpf_insn *insn, unsigned int wide, unsigned int ext)
{
	unsigned int src = reg(insn->src_reg);
	uint32_t again;

	leat_x86_lea(j, TMP2, reg(insn->dst_reg), insn->off);
	leat_x86_push(j, RAX);
	leat_x86_mem(j, wide, 0x8b, RAX, TMP2, 0);
	again = j->len;
	leat_x86_mov(j, wide, TMP, RAX);
	if (src == RAX)
		leat_x86_mem(j, wide, ext << 3 | 3, TMP, RSP, 0);
	else
		leat_x86_rr(j, wide, ext << 3 | 3, TMP, src);
	leat_x86_mem(j, wide | X_LOCK, 0x0fb1, TMP, TMP2, 0);
	leat_x86_jump_to(j, CC_NE, again);
	if (src == RAX) {
		leat_x86_pop(j, TMP);
	} else {
		leat_x86_mov(j, X_W, src, RAX);
		leat_x86_pop(j, RAX);
	}
}

/** cmpxchg: r0 is rax; whatever it becomes, the upper half of a 32-bit one is clear. */
static void compare(struct jit *j, const struct bpf_insn *insn, unsigned int wide)
{
	leat_x86_mem(j, wide | X_LOCK, 0x0fb1, reg(insn->src_reg), reg(insn->dst_reg), insn->off);
	if (!wide)
		leat_x86_mov(j, 0, RAX, RAX);
}

void leat_x86_atomic(struct jit *j, uint32_t i)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	unsigned int dst = reg(insn->dst_reg), src = reg(insn->src_reg);
	unsigned int wide = leat_insn_size(insn) == 8 ? X_W : 0;

	if (!j->prog->aux[i].proven)
		guard_alignment(j, i);
	leat_x86_guard(j, i, insn->dst_reg, true);
	switch (insn->imm) {
	case BPF_ADD:
		leat_x86_mem(j, wide | X_LOCK, 0x01, src, dst, insn->off);
		break;
	case BPF_OR:
		leat_x86_mem(j, wide | X_LOCK, 0x09, src, dst, insn->off);
		break;
	case BPF_AND:
		leat_x86_mem(j, wide | X_LOCK, 0x21, src, dst, insn->off);
		break;
	case BPF_XOR:
		leat_x86_mem(j, wide | X_LOCK, 0x31, src, dst, insn->off);
		break;
	case BPF_ADD | BPF_FETCH:
		leat_x86_mem(j, wide | X_LOCK, 0x0fc1, src, dst, insn->off);
		break;
	case BPF_XCHG:
		leat_x86_mem(j, wide, 0x87, src, dst, insn->off);
		break;
	case BPF_CMPXCHG:
		compare(j, insn, wide);
		break;
	case BPF_OR | BPF_FETCH:
		fetch_loop(j, insn, wide, 1);
		break;
	case BPF_AND | BPF_FETCH:
		fetch_loop(j, insn, wide, 4);
		break;
	default: /* BPF_XOR | BPF_FETCH */
		fetch_loop(j, insn, wide, 6);
	}
}
