/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alu.c: what arithmetic makes of registers. *control*.
 *
 * Of numbers, ranges are known (range.h). Pointers may be moved by numbers where it makes sense to read
 * there; two pointers may be subtracted, and then give a number. Maps, functions, the context, the end of the packet
 * and what may be null cannot be moved.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>

#define FAR (1 << 29) /* a pointer that is moved further is at an unknown distance */

/* ---- numbers ---- */

/** An operation on 32 bits sees the lower halves and leaves zeros above. */
static struct leat_range lower(struct leat_range r)
{
	return leat_range_narrow(r, 32, 64);
}

static struct leat_range range_op(const struct bpf_insn *insn, struct leat_range a, struct leat_range b)
{
	if (insn->off) /* signed division is not worked out */
		return leat_insn_is32(insn) ? leat_range_between(0, UINT32_MAX, 64) : leat_range_any(64);
	if (!leat_insn_is32(insn))
		return leat_range_op(BPF_OP(insn->code), a, b, 64);
	return leat_range_zero_extend(leat_range_op(BPF_OP(insn->code), lower(a), lower(b), 32), 32, 64);
}

/** What is known of a pointer when it is taken for a number: nothing. */
static struct leat_range range_of(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_NUMBER ? reg->range : leat_range_any(64);
}

static struct leat_vreg number_op(const struct bpf_insn *insn, const struct leat_vreg *dst, const struct leat_vreg *src)
{
	return leat_vrange(range_op(insn, range_of(dst), range_of(src)));
}

/* ---- pointers ---- */

static bool can_move(uint8_t kind)
{
	return kind == LEAT_KIND_PACKET || kind == LEAT_KIND_META || kind == LEAT_KIND_STACK ||
	       kind == LEAT_KIND_VALUE || kind == LEAT_KIND_RECORD || kind == LEAT_KIND_KEY || kind == LEAT_KIND_STALE ||
	       kind == LEAT_KIND_RELEASED;
}

/** From here on it is not known where @ptr points to. */
static void lose_place(struct leat_verifier *v, struct leat_vreg *ptr)
{
	ptr->known = false;
	ptr->value = 0;
	ptr->range = leat_range_any(64);
	if (ptr->kind == LEAT_KIND_PACKET || ptr->kind == LEAT_KIND_META) {
		ptr->base = ++v->next_id;
		ptr->room = 0;
	}
}

/** The unknown part of @ptr's place is another one, and nothing is proven about it. */
static void move_unknown(struct leat_verifier *v, struct leat_vreg *ptr, const struct leat_vreg *by, bool back)
{
	struct leat_range range = leat_range_op(back ? BPF_SUB : BPF_ADD, ptr->range, by->range, 64);
	int64_t value = ptr->value;

	lose_place(v, ptr);
	ptr->value = value;
	ptr->range = range;
}

/** @ptr moved by @by, a number. */
static int move_pointer(struct leat_verifier *v, unsigned int regs, const struct leat_vreg *ptr,
			const struct leat_vreg *by, bool back, struct leat_vreg *out)
{
	*out = *ptr;
	if (by->known && !by->value)
		return 0;
	if (leat_vmaybe_null(ptr))
		return leat_verify_refuse(v, v->state->pc, regs, "%s cannot be moved before it was compared with 0",
					  leat_kind_name(ptr->kind));
	if (!can_move(ptr->kind))
		return leat_verify_refuse(v, v->state->pc, regs, "%s cannot be added to or subtracted from",
					  leat_kind_name(ptr->kind));
	if (by->known && by->value < FAR && by->value > -FAR)
		out->value += back ? -by->value : by->value;
	else
		move_unknown(v, out, by, back);
	if (out->value >= FAR || out->value <= -FAR)
		lose_place(v, out);
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
	leat_verify_need_numbers(v, regs);
	if (code == BPF_ADD)
		return leat_vpointer(&was) ? move_pointer(v, regs, &was, src, false, dst)
					   : move_pointer(v, regs, src, &was, false, dst);
	if (code == BPF_SUB && leat_vpointer(dst))
		return move_pointer(v, regs, &was, src, true, dst);
	if (code == BPF_SUB)
		return leat_verify_refuse(v, v->state->pc, regs, "a pointer cannot be subtracted from a number");
	return leat_verify_refuse(v, v->state->pc, regs, "this arithmetic cannot be done on a pointer");
}

/** What a move leaves of @src: a copy shares its id, so that what is learned of one is learned of the other. */
static struct leat_vreg moved(struct leat_verifier *v, const struct bpf_insn *insn, struct leat_vreg *src)
{
	unsigned int from = insn->off ? (unsigned int)insn->off : 32;
	struct leat_range range;

	if (!leat_insn_is32(insn) && !insn->off) {
		if (src->kind == LEAT_KIND_NUMBER && !src->known && !src->id)
			src->id = ++v->next_id;
		return *src;
	}
	range = leat_range_narrow(range_of(src), from, 64);
	if (!leat_insn_is32(insn))
		return leat_vrange(leat_range_sign_extend(range, from, 64));
	if (insn->off)
		range = leat_range_sign_extend(range, from, 32);
	/* the upper half is 0 already: then it is a copy, too */
	if (!insn->off && src->kind == LEAT_KIND_NUMBER && src->range.umax <= UINT32_MAX) {
		if (!src->known && !src->id)
			src->id = ++v->next_id;
		return *src;
	}
	return leat_vrange(leat_range_zero_extend(range, 32, 64));
}

static struct leat_vreg negated(const struct bpf_insn *insn, const struct leat_vreg *dst)
{
	struct leat_range range = range_of(dst);

	if (!leat_insn_is32(insn))
		return leat_vrange(leat_range_neg(range, 64));
	return leat_vrange(leat_range_zero_extend(leat_range_neg(lower(range), 32), 32, 64));
}

/** A byte swap, or the lower part kept: only the width of the result is known. */
static struct leat_vreg swapped(const struct bpf_insn *insn)
{
	return insn->imm == 64 ? leat_vnumber() : leat_vloaded((uint32_t)insn->imm / 8);
}

int leat_verify_alu(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg *reg = leat_vframe(v)->reg, *dst = &reg[insn->dst_reg];
	uint8_t form = leat_insn_row[op].form;
	struct leat_vreg number = leat_vconst(insn->imm), *src = &number;

	if (leat_insn_use[form] & LEAT_USE_SRC)
		src = &reg[insn->src_reg];
	if (form == LEAT_FORM_MOV_K || form == LEAT_FORM_MOV_X)
		*dst = moved(v, insn, src);
	else if (form == LEAT_FORM_NEG)
		*dst = negated(insn, dst);
	else if (form == LEAT_FORM_END)
		*dst = swapped(insn);
	else if (leat_vpointer(dst) || leat_vpointer(src))
		return pointer_op(v, insn, dst, src);
	else
		*dst = number_op(insn, dst, src);
	return 0;
}
