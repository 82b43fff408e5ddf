/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jump.c: which ways a conditional jump may go, and what each tells of the registers compared. *control*.
 *
 * Of two numbers, their ranges (range.h), and those of their copies. Of a pointer that may be null, which it is. Of a
 * packet pointer that is not beyond the end, that everything between where its unknown part ends and itself is there;
 * that holds for every pointer with the same unknown part.
 */
#include "bpf/verifier/verifier.h"

#include "base/heap.h"

#define NEAR 4096

/* ---- null ---- */

/**
 * Whether a pointer is certainly not 0: nothing lies in the first NEAR bytes of memory, and it was not moved further.
 */
static bool not_null(const struct leat_vreg *reg)
{
	return (reg->kind == LEAT_KIND_FUNC || (reg->value < NEAR && reg->value > -NEAR)) && leat_vpointer(reg) &&
	       !leat_vmaybe_null(reg) && reg->kind != LEAT_KIND_STALE && reg->kind != LEAT_KIND_RELEASED && reg->known;
}

static bool is_zero(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_NUMBER && reg->known && !reg->value;
}

static unsigned int width_of(const struct bpf_insn *insn)
{
	return leat_insn_is32(insn) ? 32 : 64;
}

/** 1: taken, 0: not taken, -1: we do not know. */
static int decide(const struct bpf_insn *insn, const struct leat_vreg *a, const struct leat_vreg *b)
{
	unsigned int width = width_of(insn);
	uint8_t code = BPF_OP(insn->code);
	struct leat_range ra, rb;

	if (a->kind == LEAT_KIND_NUMBER && b->kind == LEAT_KIND_NUMBER) {
		ra = leat_range_narrow(a->range, width, 64);
		rb = leat_range_narrow(b->range, width, 64);
		return leat_range_compare(code, &ra, &rb);
	}
	if (width == 64 && (code == BPF_JEQ || code == BPF_JNE) &&
	    ((is_zero(a) && not_null(b)) || (not_null(a) && is_zero(b))))
		return code == BPF_JNE;
	return -1;
}

struct null_check {
	const struct leat_bpf_map *maps;
	uint32_t id;
	bool null;
};

static void apply_null_check(struct leat_vreg *reg, void *arg)
{
	const struct null_check *check = arg;

	if (reg->id != check->id || !leat_vmaybe_null(reg))
		return;
	if (check->null) {
		*reg = (struct leat_vreg){ .kind = LEAT_KIND_NUMBER, .known = true, .exposed = reg->exposed };
	} else if (reg->kind == LEAT_KIND_RECORD_OR_NULL) {
		reg->kind = LEAT_KIND_RECORD;
	} else {
		reg->kind = reg->kind == LEAT_KIND_MAP_OR_NULL ? LEAT_KIND_MAP : LEAT_KIND_VALUE;
		/* whose lock is whose */
		reg->id = reg->kind == LEAT_KIND_VALUE && check->maps[reg->map].lock ? reg->id : 0;
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

/** Makes use of whether register @number is 0. */
static void learn_null(struct leat_verifier *v, unsigned int number, bool null)
{
	struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	struct null_check check = { .maps = v->prog->obj->map, .id = reg->id, .null = null };
	bool record = reg->kind == LEAT_KIND_RECORD_OR_NULL;

	if (!leat_vmaybe_null(reg))
		return;
	leat_verify_each(v->state, apply_null_check, &check);
	if (record && null)
		drop_ref(v->state, check.id);
}

/* ---- numbers ---- */

struct copy {
	uint32_t id;
	struct leat_range range;
};

static void learn_copy(struct leat_vreg *reg, void *arg)
{
	const struct copy *copy = arg;
	bool exposed = reg->exposed;

	if (reg->kind != LEAT_KIND_NUMBER || reg->id != copy->id)
		return;
	*reg = leat_vrange(copy->range);
	reg->exposed = exposed;
	reg->id = reg->known ? 0 : copy->id;
}

/** Register @number and its copies are in @range. */
static void narrow(struct leat_verifier *v, unsigned int number, const struct leat_range *range)
{
	struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	struct copy copy = { .id = reg->id, .range = *range };

	if (copy.id) {
		leat_verify_each(v->state, learn_copy, &copy);
		return;
	}
	*reg = leat_vrange(*range);
}

/** False: the numbers that there are do not go this way. */
static bool learn_numbers(struct leat_verifier *v, const struct bpf_insn *insn, const struct leat_vreg *a,
			  const struct leat_vreg *b, bool taken)
{
	struct leat_range ra = a->range, rb = b->range, la = leat_range_narrow(ra, 32, 64),
			  lb = leat_range_narrow(rb, 32, 64);
	uint8_t code = BPF_OP(insn->code);

	if (!leat_insn_is32(insn)) {
		if (!leat_range_learn(code, taken, &ra, &rb, 64))
			return false;
	} else if (!leat_range_learn(code, taken, &la, &lb, 32) || !leat_range_learn_low(&ra, &la, 32, 64) ||
		   !leat_range_learn_low(&rb, &lb, 32, 64)) {
		return false;
	}
	narrow(v, insn->dst_reg, &ra);
	if (BPF_SRC(insn->code) == BPF_X)
		narrow(v, insn->src_reg, &rb);
	return true;
}

/* ---- the end of the packet ---- */

struct proof {
	uint8_t kind;
	uint32_t base, room;
};

static void learn_room(struct leat_vreg *reg, void *arg)
{
	const struct proof *proof = arg;

	if (reg->kind == proof->kind && reg->base == proof->base && reg->room < proof->room)
		reg->room = proof->room;
}

/** Whether @end is where the region of @ptr ends: data_end, or data for metadata. */
static bool ends(const struct leat_vreg *ptr, const struct leat_vreg *end)
{
	if (ptr->kind == LEAT_KIND_PACKET)
		return end->kind == LEAT_KIND_END;
	return ptr->kind == LEAT_KIND_META && end->kind == LEAT_KIND_PACKET && end->known && !end->value;
}

/** @ptr is not beyond @end; with @before it is before it. What lies before it is there, then. */
static void learn_end(struct leat_verifier *v, const struct leat_vreg *ptr, const struct leat_vreg *end, bool before)
{
	int64_t room = ptr->value + before;
	struct proof proof = { .kind = ptr->kind, .base = ptr->base, .room = (uint32_t)room };
	uint32_t *all = &v->state->room[ptr->kind == LEAT_KIND_META];

	/* the address must not have gone round: it is compared as a number */
	if (!ends(ptr, end) || room <= 0 || room > LEAT_VERIFY_FAR || ptr->range.umax > LEAT_VERIFY_FAR)
		return;
	v->proof = proof.room;
	leat_verify_each(v->state, learn_room, &proof);
	if (!ptr->base && *all < proof.room)
		*all = proof.room;
}

static void learn_pointers(struct leat_verifier *v, const struct bpf_insn *insn, const struct leat_vreg *a,
			   const struct leat_vreg *b, bool taken)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JEQ:
	case BPF_JNE:
		taken = taken == (BPF_OP(insn->code) == BPF_JEQ);
		if (is_zero(b))
			learn_null(v, insn->dst_reg, taken);
		else if (is_zero(a) && BPF_SRC(insn->code) == BPF_X)
			learn_null(v, insn->src_reg, taken);
		break;
	case BPF_JGT: /* a > b, or else a <= b */
		learn_end(v, taken ? b : a, taken ? a : b, taken);
		break;
	case BPF_JGE:
		learn_end(v, taken ? b : a, taken ? a : b, !taken);
		break;
	case BPF_JLT:
		learn_end(v, taken ? a : b, taken ? b : a, taken);
		break;
	case BPF_JLE:
		learn_end(v, taken ? a : b, taken ? b : a, !taken);
		break;
	default:
		break;
	}
}

/** Follows one way out of the jump; false when it cannot be gone. */
static bool learn_branch(struct leat_verifier *v, const struct bpf_insn *insn, const struct leat_vreg *a,
			 const struct leat_vreg *b, bool taken)
{
	if (a->kind == LEAT_KIND_NUMBER && b->kind == LEAT_KIND_NUMBER)
		return learn_numbers(v, insn, a, b, taken);
	v->proof = 0;
	if (!leat_insn_is32(insn))
		learn_pointers(v, insn, a, b, taken);
	leat_verify_gives(v, (uint32_t)(insn - v->prog->insn), taken, v->proof);
	return true;
}

int leat_verify_jump(struct leat_verifier *v, int op, uint32_t *next, bool *ended)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vframe *frame = leat_vframe(v);
	struct leat_vreg a = frame->reg[insn->dst_reg], b = leat_vconst(insn->imm);
	uint32_t target = v->state->pc + 1 + (uint32_t)leat_insn_jump(insn, op);
	struct leat_vstate *other;
	bool possible;
	int taken, err;

	*next = target;
	if (leat_insn_row[op].form == LEAT_FORM_JA || leat_insn_row[op].form == LEAT_FORM_JA32)
		return 0;
	if (leat_insn_row[op].form == LEAT_FORM_JMP_X)
		b = frame->reg[insn->src_reg];
	if (leat_vpointer(&a) && is_zero(&b)) /* which is 0 on another path, perhaps */
		leat_verify_need_numbers(v, 1u << insn->dst_reg);
	taken = decide(insn, &a, &b);
	if (taken < 0) {
		err = leat_verify_push(v, target);
		if (err)
			return err;
		/* the copy that waits learns what the branch taken says */
		other = v->state;
		v->state = v->pending[v->n_pending - 1];
		possible = learn_branch(v, insn, &a, &b, true);
		v->state = other;
		if (!possible)
			leat_heap_free(v->pending[--v->n_pending]);
	}
	if (taken <= 0)
		*next = v->state->pc + 1;
	possible = learn_branch(v, insn, &a, &b, taken > 0);
	*ended = !possible;
	return 0;
}
