/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alu.c: what arithmetic makes of registers, and what a conditional jump tells of them. *control*.
 *
 * Numbers are known or not; there are no ranges yet. Pointers may be moved by numbers where it makes sense to read
 * there; two pointers may be subtracted, and then give a number. Maps, functions, the context, the end of the packet
 * and what may be null cannot be moved.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>

#define FAR (1 << 29) /* a pointer that is moved further is at an unknown distance */
#define NEAR 4096

/* ---- numbers ---- */

/** The result of operation @code (BPF_OP) on known numbers; false where we do not know. */
static bool fold64(uint8_t code, uint64_t a, uint64_t b, uint64_t *out)
{
	switch (code) {
	case BPF_ADD:
		*out = a + b;
		return true;
	case BPF_SUB:
		*out = a - b;
		return true;
	case BPF_MUL:
		*out = a * b;
		return true;
	case BPF_OR:
		*out = a | b;
		return true;
	case BPF_AND:
		*out = a & b;
		return true;
	case BPF_XOR:
		*out = a ^ b;
		return true;
	case BPF_LSH:
		*out = a << (b & 63);
		return true;
	case BPF_RSH:
		*out = a >> (b & 63);
		return true;
	case BPF_ARSH:
		*out = (uint64_t)((int64_t)a >> (b & 63));
		return true;
	default:
		return false;
	}
}

static bool fold(uint8_t code, bool is32, uint64_t a, uint64_t b, uint64_t *out)
{
	if (!is32)
		return fold64(code, a, b, out);
	if (code == BPF_ARSH)
		*out = (uint64_t)((int32_t)(uint32_t)a >> (b & 31));
	else if (!fold64(code, (uint32_t)a, code == BPF_LSH || code == BPF_RSH ? b & 31 : (uint32_t)b, out))
		return false;
	*out = (uint32_t)*out;
	return true;
}

static struct leat_vreg number_op(const struct bpf_insn *insn, const struct leat_vreg *dst, const struct leat_vreg *src)
{
	uint64_t out;

	if (dst->known && src->known && dst->kind == LEAT_KIND_NUMBER && src->kind == LEAT_KIND_NUMBER &&
	    fold(BPF_OP(insn->code), leat_insn_is32(insn), (uint64_t)dst->value, (uint64_t)src->value, &out))
		return leat_vconst((int64_t)out);
	return leat_vnumber();
}

/* ---- pointers ---- */

static bool can_move(uint8_t kind)
{
	return kind == LEAT_KIND_PACKET || kind == LEAT_KIND_META || kind == LEAT_KIND_STACK ||
	       kind == LEAT_KIND_VALUE || kind == LEAT_KIND_RECORD || kind == LEAT_KIND_STALE ||
	       kind == LEAT_KIND_RELEASED;
}

/** @ptr moved by @by, a number. */
static int move_pointer(struct leat_verifier *v, unsigned int regs, const struct leat_vreg *ptr,
			const struct leat_vreg *by, bool back, struct leat_vreg *out)
{
	*out = *ptr;
	if (by->known && !by->value)
		return 0;
	if (ptr->kind == LEAT_KIND_VALUE_OR_NULL || ptr->kind == LEAT_KIND_RECORD_OR_NULL)
		return leat_verify_refuse(v, v->state->pc, regs, "%s cannot be moved before it was compared with 0",
					  leat_kind_name(ptr->kind));
	if (!can_move(ptr->kind))
		return leat_verify_refuse(v, v->state->pc, regs, "%s cannot be added to or subtracted from",
					  leat_kind_name(ptr->kind));
	out->known = ptr->known && by->known && by->value < FAR && by->value > -FAR;
	out->value = out->known ? ptr->value + (back ? -by->value : by->value) : 0;
	if (out->value >= FAR || out->value <= -FAR) {
		out->known = false;
		out->value = 0;
	}
	return 0;
}

static int pointer_op(struct leat_verifier *v, const struct bpf_insn *insn, struct leat_vreg *dst,
		      const struct leat_vreg *src)
{
	unsigned int regs = 1u << insn->dst_reg | (BPF_SRC(insn->code) == BPF_X ? 1u << insn->src_reg : 0);
	uint8_t code = BPF_OP(insn->code);
	struct leat_vreg was = *dst;

	if (code == BPF_SUB && ((leat_vpointer(dst) && leat_vpointer(src)) || leat_insn_is32(insn))) {
		*dst = leat_vnumber();
		return 0;
	}
	if (leat_insn_is32(insn))
		return leat_verify_refuse(v, v->state->pc, regs, "32-bit arithmetic on a pointer");
	if (code == BPF_ADD && leat_vpointer(dst) && leat_vpointer(src))
		return leat_verify_refuse(v, v->state->pc, regs, "two pointers cannot be added");
	if (code == BPF_ADD)
		return leat_vpointer(&was) ? move_pointer(v, regs, &was, src, false, dst)
					   : move_pointer(v, regs, src, &was, false, dst);
	if (code == BPF_SUB && leat_vpointer(dst))
		return move_pointer(v, regs, &was, src, true, dst);
	if (code == BPF_SUB)
		return leat_verify_refuse(v, v->state->pc, regs, "a pointer cannot be subtracted from a number");
	return leat_verify_refuse(v, v->state->pc, regs, "this arithmetic cannot be done on a pointer");
}

static int64_t extend(int64_t value, int bits)
{
	return bits == 8 ? (int8_t)value : bits == 16 ? (int16_t)value : (int32_t)value;
}

static struct leat_vreg moved(const struct bpf_insn *insn, const struct leat_vreg *src)
{
	struct leat_vreg out = *src;

	if (!leat_insn_is32(insn) && !insn->off)
		return out;
	if (src->kind != LEAT_KIND_NUMBER || !src->known)
		return leat_vnumber();
	if (insn->off)
		out.value = extend(out.value, insn->off);
	if (leat_insn_is32(insn))
		out.value = (uint32_t)out.value;
	return out;
}

static struct leat_vreg negated(const struct bpf_insn *insn, const struct leat_vreg *dst)
{
	uint64_t value = 0 - (uint64_t)dst->value;

	if (dst->kind != LEAT_KIND_NUMBER || !dst->known)
		return leat_vnumber();
	return leat_vconst((int64_t)(leat_insn_is32(insn) ? (uint32_t)value : value));
}

int leat_verify_alu(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg *reg = leat_vframe(v)->reg, *dst = &reg[insn->dst_reg];
	uint8_t form = leat_insn_row[op].form;
	struct leat_vreg src = leat_vconst(insn->imm);

	if (leat_insn_use[form] & LEAT_USE_SRC)
		src = reg[insn->src_reg];
	if (form == LEAT_FORM_MOV_K || form == LEAT_FORM_MOV_X)
		*dst = moved(insn, &src);
	else if (form == LEAT_FORM_NEG)
		*dst = negated(insn, dst);
	else if (form != LEAT_FORM_END && (leat_vpointer(dst) || leat_vpointer(&src)))
		return pointer_op(v, insn, dst, &src);
	else if (form == LEAT_FORM_END || insn->off)
		*dst = leat_vnumber(); /* byte swaps and signed division are not worked out */
	else
		*dst = number_op(insn, dst, &src);
	return 0;
}

/* ---- jumps ---- */

/** 1: taken, 0: not taken, -1: we do not know. */
static int compare(uint8_t code, bool is32, uint64_t a, uint64_t b)
{
	int64_t sa = is32 ? (int32_t)(uint32_t)a : (int64_t)a, sb = is32 ? (int32_t)(uint32_t)b : (int64_t)b;

	if (is32) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (code) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return (a & b) != 0;
	case BPF_JSGT:
		return sa > sb;
	case BPF_JSGE:
		return sa >= sb;
	case BPF_JSLT:
		return sa < sb;
	case BPF_JSLE:
		return sa <= sb;
	default:
		return -1;
	}
}

/**
 * Whether a pointer is certainly not 0: nothing lies in the first NEAR bytes of memory, and it was not moved further.
 */
static bool not_null(const struct leat_vreg *reg)
{
	return (reg->kind == LEAT_KIND_FUNC || (reg->value < NEAR && reg->value > -NEAR)) && leat_vpointer(reg) &&
	       reg->kind != LEAT_KIND_VALUE_OR_NULL && reg->kind != LEAT_KIND_RECORD_OR_NULL &&
	       reg->kind != LEAT_KIND_STALE && reg->kind != LEAT_KIND_RELEASED && reg->known;
}

static bool is_zero(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_NUMBER && reg->known && !reg->value;
}

static int decide(const struct bpf_insn *insn, const struct leat_vreg *a, const struct leat_vreg *b)
{
	uint8_t code = BPF_OP(insn->code);

	if (a->kind == LEAT_KIND_NUMBER && b->kind == LEAT_KIND_NUMBER && a->known && b->known)
		return compare(code, leat_insn_is32(insn), (uint64_t)a->value, (uint64_t)b->value);
	if (!leat_insn_is32(insn) && (code == BPF_JEQ || code == BPF_JNE) &&
	    ((is_zero(a) && not_null(b)) || (not_null(a) && is_zero(b))))
		return code == BPF_JNE;
	return -1;
}

struct null_check {
	uint32_t id;
	bool null;
};

static void apply_null_check(struct leat_vreg *reg, void *arg)
{
	const struct null_check *check = arg;

	if (reg->id != check->id || (reg->kind != LEAT_KIND_VALUE_OR_NULL && reg->kind != LEAT_KIND_RECORD_OR_NULL))
		return;
	if (check->null) {
		*reg = (struct leat_vreg){ .kind = LEAT_KIND_NUMBER, .known = true, .exposed = reg->exposed };
	} else if (reg->kind == LEAT_KIND_VALUE_OR_NULL) {
		reg->kind = LEAT_KIND_VALUE;
		reg->id = 0;
	} else {
		reg->kind = LEAT_KIND_RECORD;
	}
}

static void drop_ref(struct leat_vstate *state, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < state->n_refs && state->ref[i] != id; i++)
		;
	if (i < state->n_refs) {
		state->ref[i] = state->ref[--state->n_refs];
		state->ref[state->n_refs] = 0;
	}
}

/** Makes use of what a branch says: @equal of dst (register @number) and @other. */
static void learn(struct leat_verifier *v, unsigned int number, const struct leat_vreg *other, bool equal)
{
	struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	struct null_check check = { .id = reg->id, .null = equal };
	bool record = reg->kind == LEAT_KIND_RECORD_OR_NULL;

	if (is_zero(other) && (record || reg->kind == LEAT_KIND_VALUE_OR_NULL)) {
		leat_verify_each(v->state, apply_null_check, &check);
		if (record && equal)
			drop_ref(v->state, check.id);
	} else if (equal && reg->kind == LEAT_KIND_NUMBER && other->kind == LEAT_KIND_NUMBER && other->known) {
		*reg = *other;
	}
}

/** Follows one way out of the jump. */
static void learn_branch(struct leat_verifier *v, const struct bpf_insn *insn, const struct leat_vreg *a,
			 const struct leat_vreg *b, bool taken)
{
	uint8_t code = BPF_OP(insn->code);
	bool equal = (code == BPF_JEQ) == taken;

	if (leat_insn_is32(insn) || (code != BPF_JEQ && code != BPF_JNE))
		return;
	learn(v, insn->dst_reg, b, equal);
	if (BPF_SRC(insn->code) == BPF_X)
		learn(v, insn->src_reg, a, equal);
}

int leat_verify_jump(struct leat_verifier *v, int op, uint32_t *next)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vframe *frame = leat_vframe(v);
	struct leat_vreg a = frame->reg[insn->dst_reg], b = leat_vconst(insn->imm);
	uint32_t target = v->state->pc + 1 + (uint32_t)leat_insn_jump(insn, op);
	struct leat_vstate *other;
	int taken, err;

	*next = target;
	if (leat_insn_row[op].form == LEAT_FORM_JA || leat_insn_row[op].form == LEAT_FORM_JA32)
		return 0;
	if (leat_insn_row[op].form == LEAT_FORM_JMP_X)
		b = frame->reg[insn->src_reg];
	taken = decide(insn, &a, &b);
	if (taken < 0) {
		err = leat_verify_push(v, target);
		if (err)
			return err;
		/* the copy that waits learns what the branch taken says */
		other = v->state;
		v->state = v->pending[v->n_pending - 1];
		learn_branch(v, insn, &a, &b, true);
		v->state = other;
	}
	if (taken <= 0)
		*next = v->state->pc + 1;
	learn_branch(v, insn, &a, &b, taken > 0);
	return 0;
}
