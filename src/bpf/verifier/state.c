/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.c: states of the walk: put aside at a branch, remembered where paths meet, compared. *control*.
 *
 * Theory of operation. A remembered state covers a new one when everything that matters in it holds the same, or an
 * unknown number where the new one holds whatever: what was found good for any number is good for that, too. What
 * matters: the registers that are still wanted, and the slots of the stack that hold more than an unknown number. Ids
 * are compared by the order in which they appear.
 *
 * Ranges of numbers and proofs of packet bytes are part of what must hold: the remembered state must have been good with
 * no more than there is now.
 *
 * A loop whose counter is known would be walked once per turn. Where a loop begins (and everywhere, once a great many
 * instructions were walked) it is therefore widened: when LEAT_VERIFY_WIDEN states that are the same but for
 * what is known of numbers were remembered for an instruction, what differs is forgotten; then the walk meets itself.
 * When LEAT_VERIFY_WIDEN_MORE are the same but for numbers and places of pointers, those are forgotten, too: that costs
 * proofs. Walks that are there to be quick (demand.c) do so after a few turns.
 *
 * Where paths meet and no loop begins, such a walk may also go on with what can be said of both: ranges of numbers and of
 * pointers' places that hold either.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"

void leat_verify_set_slot(struct leat_vframe *frame, unsigned int slot, const struct leat_vreg *reg)
{
	uint64_t bit = UINT64_C(1) << slot;

	if (reg && (reg->kind > LEAT_KIND_NUMBER || (reg->kind == LEAT_KIND_NUMBER && !leat_vunknown(reg)))) {
		frame->slot[slot] = *reg;
		frame->spilled |= bit;
	} else {
		frame->spilled &= ~bit;
	}
}

void leat_verify_each(struct leat_vstate *state, void (*fn)(struct leat_vreg *reg, void *arg), void *arg)
{
	struct leat_vframe *frame;
	unsigned int i;

	for (frame = state->frame; frame < state->frame + state->n_frames; frame++) {
		for (i = 0; i < BPF_REG_10; i++)
			fn(&frame->reg[i], arg);
		for (i = 0; i < LEAT_SLOTS; i++) {
			if (!(frame->spilled & UINT64_C(1) << i))
				continue;
			fn(&frame->slot[i], arg);
			leat_verify_set_slot(frame, i, &frame->slot[i]);
		}
	}
}

static size_t state_size(const struct leat_vstate *state)
{
	return offsetof(struct leat_vstate, frame) + state->n_frames * sizeof(state->frame[0]);
}

int leat_verify_push(struct leat_verifier *v, uint32_t pc)
{
	struct leat_vstate *copy;

	if (v->n_pending == LEAT_VERIFY_PENDING)
		return leat_verify_refuse(v, v->state->pc, 0, "the program is too complex: %u branches are open",
					  LEAT_VERIFY_PENDING);
	copy = leat_heap_alloc(state_size(v->state));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, v->state, state_size(v->state));
	copy->pc = pc;
	v->pending[v->n_pending++] = copy;
	return 0;
}

/* ---- remembering ---- */

/** Registers of frame @i that will still be read. */
static uint16_t wanted(const struct leat_verifier *v, const struct leat_vstate *state, uint32_t i)
{
	const struct leat_vframe *next = &state->frame[i + 1];

	if (i + 1 == state->n_frames)
		return v->live[state->pc] & 0x3ff;
	/* a callback's call is made again; after another call r0 is new and r1..r5 are gone */
	return next->callback ? v->live[next->call] & 0x3ff : v->live[next->call + 1] & 0x3c0;
}

/** Numbers ids by the order in which they appear. */
struct renaming {
	uint32_t n;
	uint32_t id[64];
};

static uint32_t rename_id(struct renaming *names, uint32_t id)
{
	uint32_t i;

	if (!id)
		return 0;
	for (i = 0; i < names->n; i++)
		if (names->id[i] == id)
			return i + 1;
	if (names->n == sizeof(names->id) / sizeof(names->id[0]))
		return id + 64; /* is then like no other */
	names->id[names->n++] = id;
	return names->n;
}

static uint32_t count_regs(const struct leat_verifier *v, const struct leat_vstate *state)
{
	uint32_t i, n = 0;

	for (i = 0; i < state->n_frames; i++)
		n += (uint32_t)__builtin_popcount(wanted(v, state, i)) +
		     (uint32_t)__builtin_popcountll(state->frame[i].spilled);
	return n;
}

/** Walks over what matters of a state, in the order in which it is remembered. */
struct cursor {
	const struct leat_verifier *v;
	struct leat_vstate *state;
	uint32_t frame;
	unsigned int bit; /* 0..9 registers, then slots */
	bool is_slot;
};

static struct leat_vreg *next_reg(struct cursor *c, unsigned int *slot)
{
	struct leat_vframe *frame;
	unsigned int bit;

	for (; c->frame < c->state->n_frames; c->frame++, c->bit = 0) {
		frame = &c->state->frame[c->frame];
		while (c->bit < BPF_REG_10 + LEAT_SLOTS) {
			bit = c->bit++;
			if (bit < BPF_REG_10 && (wanted(c->v, c->state, c->frame) & 1u << bit)) {
				c->is_slot = false;
				return &frame->reg[bit];
			}
			if (bit >= BPF_REG_10 && (frame->spilled & UINT64_C(1) << (bit - BPF_REG_10))) {
				c->is_slot = true;
				*slot = bit - BPF_REG_10;
				return &frame->slot[*slot];
			}
		}
	}
	return NULL;
}

/** What a state looks like once remembered, without copying slots one by one. */
static struct leat_vseen *picture(struct leat_verifier *v)
{
	struct cursor c = { .v = v, .state = v->state };
	uint32_t n = count_regs(v, v->state), i;
	struct leat_vseen *seen = leat_heap_alloc(sizeof(*seen) + n * sizeof(seen->reg[0]));
	struct renaming names = { .n = 0 };
	const struct leat_vreg *reg;
	unsigned int slot;

	if (!seen)
		return NULL;
	memset(seen, 0, sizeof(*seen)); /* the registers are all written */
	seen->n_frames = v->state->n_frames;
	seen->n_refs = v->state->n_refs;
	seen->n_regs = n;
	v->compared += n / 4;
	for (i = 0; i < seen->n_frames; i++) {
		seen->call[i] = v->state->frame[i].call;
		seen->spilled[i] = v->state->frame[i].spilled;
	}
	for (i = 0; (reg = next_reg(&c, &slot)); i++) {
		seen->reg[i] = *reg;
		seen->reg[i].id = rename_id(&names, reg->id);
		seen->reg[i].base = rename_id(&names, reg->base);
		if (reg->kind == LEAT_KIND_CTX) /* else nobody can ask for the packet again */
			memcpy(seen->room, v->state->room, sizeof(seen->room));
	}
	for (i = 0; i < seen->n_refs; i++)
		seen->ref[i] = rename_id(&names, v->state->ref[i]);
	seen->lock = v->state->lock;
	seen->lock_id = rename_id(&names, v->state->lock_id);
	return seen;
}

/** Copies of numbers may come and go within a shape: what is told apart by id is what may be null, records, and
 * values with locks. */
static bool same_kind(const struct leat_vreg *a, const struct leat_vreg *b)
{
	return a->kind == b->kind && a->frame == b->frame && a->map == b->map &&
	       (a->id == b->id || a->kind == LEAT_KIND_NUMBER);
}

/** A number covers one of which more is known, unless it is a copy and that is not: then less is learned later. */
static bool number_covers(const struct leat_vreg *old, const struct leat_vreg *new)
{
	if (leat_vunknown(old) && !old->id)
		return new->kind != LEAT_KIND_UNSET;
	return new->kind == LEAT_KIND_NUMBER && leat_range_covers(&old->range, &new->range) &&
	       (!old->id || old->id == new->id || new->known);
}

static bool reg_covers(const struct leat_vreg *old, const struct leat_vreg *new)
{
	if (old->kind == LEAT_KIND_UNSET)
		return true;
	if (old->exposed < new->exposed)
		return false;
	if (old->kind == LEAT_KIND_NUMBER)
		return number_covers(old, new);
	return same_kind(old, new) && old->value == new->value && old->base == new->base && old->room <= new->room &&
	       leat_range_covers(&old->range, &new->range);
}

static bool same_place(const struct leat_vseen *a, const struct leat_vseen *b)
{
	return a->n_frames == b->n_frames && a->n_refs == b->n_refs && !memcmp(a->call, b->call, sizeof(a->call)) &&
	       !memcmp(a->ref, b->ref, sizeof(a->ref)) && a->lock == b->lock && a->lock_id == b->lock_id;
}

/** Whether what is there of the packet in @a is there in @b. */
static bool room_covers(const struct leat_vseen *a, const struct leat_vseen *b)
{
	return a->room[0] <= b->room[0] && a->room[1] <= b->room[1];
}

/** Registers of a frame in a picture: what is left when its slots are taken away. */
static uint32_t regs_in(const struct leat_verifier *v, uint32_t frame)
{
	return (uint32_t)__builtin_popcount(wanted(v, v->state, frame));
}

/** One frame: *@a and *@b are its @regs registers, then its slots, and are moved past them. */
static bool frame_covers(const struct leat_vreg **a, uint64_t a_slots, const struct leat_vreg **b, uint64_t b_slots,
			 uint32_t regs)
{
	uint64_t bit;

	for (; regs > 0; regs--)
		if (!reg_covers((*a)++, (*b)++))
			return false;
	for (bit = 1; bit; bit <<= 1) {
		if ((a_slots & bit) && !reg_covers((*a)++, *b))
			return false;
		*b += (b_slots & bit) != 0;
	}
	return true;
}

/** Whether @old, remembered, covers @new, the picture of where we are. */
static bool covers(struct leat_verifier *v, const struct leat_vseen *old, const struct leat_vseen *new)
{
	const struct leat_vreg *a = old->reg, *b = new->reg;
	uint32_t frame, n;

	if (!same_place(old, new) || !room_covers(old, new))
		return false;
	for (frame = 0; frame < new->n_frames; frame++) {
		if (old->spilled[frame] & ~new->spilled[frame])
			return false;
		n = regs_in(v, frame) + (uint32_t)__builtin_popcountll(old->spilled[frame]);
		/* frames above the one that works are mostly what they were */
		if (old->spilled[frame] == new->spilled[frame] && !memcmp(a, b, n * sizeof(*a))) {
			a += n;
			b += n;
			v->compared += n / 8 + 1;
			continue;
		}
		v->compared += n;
		if (!frame_covers(&a, old->spilled[frame], &b, new->spilled[frame], regs_in(v, frame)))
			return false;
	}
	return true;
}

static bool same_pointer(const struct leat_vreg *a, const struct leat_vreg *b)
{
	return a->kind == LEAT_KIND_NUMBER || (a->value == b->value && a->base == b->base &&
					       leat_range_equal(&a->range, &b->range));
}

/** *@pointers: whether pointers point to the same places, too. */
static bool same_shape(struct leat_verifier *v, const struct leat_vseen *a, const struct leat_vseen *b, bool *pointers)
{
	uint32_t i;

	if (!same_place(a, b) || a->n_regs != b->n_regs || memcmp(a->spilled, b->spilled, sizeof(a->spilled)) != 0)
		return false;
	*pointers = true;
	for (i = 0; i < a->n_regs; i++) {
		if (!same_kind(&a->reg[i], &b->reg[i]))
			break;
		*pointers = *pointers && same_pointer(&a->reg[i], &b->reg[i]);
	}
	v->compared += i;
	return i == a->n_regs;
}

/** Forgets in @reg what @old does not say of it too. */
static void forget(struct leat_verifier *v, struct leat_vreg *reg, const struct leat_vreg *old)
{
	bool exposed;

	if (reg->kind == LEAT_KIND_NUMBER) {
		if (!number_covers(old, reg)) {
			exposed = reg->exposed;
			*reg = leat_vnumber();
			reg->exposed = exposed;
		}
		return;
	}
	if (reg->room != old->room && (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META))
		reg->room = 0;
	if (reg->value == old->value && leat_range_equal(&reg->range, &old->range))
		return;
	reg->known = false;
	reg->value = 0;
	reg->range = leat_range_any(64);
	if (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META) {
		reg->base = ++v->next_id;
		reg->room = 0;
	}
}

static bool in_packet(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META;
}

/** Whether merge() can make one of the two, which are of the same kind. */
static bool can_merge(const struct leat_vreg *a, const struct leat_vreg *b)
{
	return in_packet(a) || a->kind == LEAT_KIND_VALUE || same_pointer(a, b);
}

/** How far from where its region begins a pointer may be. */
static struct leat_range distance(const struct leat_vreg *reg)
{
	return leat_range_op(BPF_ADD, reg->range, leat_range_const((uint64_t)reg->value, 64), 64);
}

/** Bytes of the packet that are there for certain from @reg itself on. */
static uint32_t ahead(const struct leat_vreg *reg)
{
	return reg->value >= 0 && reg->value < reg->room ? reg->room - (uint32_t)reg->value : 0;
}

/** @now, in a picture, and @old point to different places: what can be said of both, for @reg. */
static void merge_pointer(struct leat_verifier *v, struct leat_vreg *reg, const struct leat_vreg *now,
			  const struct leat_vreg *old)
{
	struct leat_range a = distance(now), b = distance(old);

	reg->known = false;
	reg->value = 0;
	reg->range = leat_range_union(&a, &b);
	if (!in_packet(reg))
		return;
	reg->base = ++v->next_id;
	reg->room = ahead(now) < ahead(old) ? ahead(now) : ahead(old);
}

static void merge(struct leat_verifier *v, struct leat_vreg *reg, const struct leat_vreg *now,
		  const struct leat_vreg *old)
{
	bool exposed = now->exposed | old->exposed;

	if (reg->kind == LEAT_KIND_NUMBER) {
		if (!number_covers(now, old))
			*reg = leat_vrange(leat_range_union(&now->range, &old->range));
	} else if (!same_pointer(now, old)) {
		merge_pointer(v, reg, now, old);
	} else if (in_packet(reg) && reg->room > old->room) {
		reg->room = old->room;
	}
	reg->exposed = exposed;
}

/** Where we are, of which @now is the picture, becomes what can be said of @seen, too. */
static void merge_values(struct leat_verifier *v, const struct leat_vseen *now, const struct leat_vseen *seen)
{
	struct cursor c = { .v = v, .state = v->state };
	struct leat_vreg *reg;
	unsigned int slot = 0;
	uint32_t i;

	for (i = 0; (reg = next_reg(&c, &slot)); i++)
		merge(v, reg, &now->reg[i], &seen->reg[i]);
	for (i = 0; i < 2; i++)
		if (v->state->room[i] > seen->room[i])
			v->state->room[i] = seen->room[i];
}

/** Forgets the values that @seen does not share with where we are. */
static void forget_values(struct leat_verifier *v, const struct leat_vseen *seen)
{
	struct cursor c = { .v = v, .state = v->state };
	const struct leat_vreg *old = seen->reg;
	struct leat_vreg *reg;
	unsigned int slot = 0;

	for (; (reg = next_reg(&c, &slot)); old++) {
		if (reg->kind >= LEAT_KIND_NUMBER && reg->kind != LEAT_KIND_FUNC)
			forget(v, reg, old);
		/* the slot stays where the cursor counts on it; the next picture lets it go */
	}
}

static void let_go(struct leat_vreg *reg, void *arg)
{
	(void)reg;
	(void)arg;
}

static int refuse_ways(struct leat_verifier *v)
{
	return leat_verify_refuse(v, v->state->pc, 0,
				  "the program is too complex: its paths differ in too many ways");
}

static int remember(struct leat_verifier *v, struct leat_vseen *seen)
{
	uint32_t pc = v->state->pc;
	struct leat_vseen **last = &v->seen[pc];

	v->memory += sizeof(*seen) + seen->n_regs * sizeof(seen->reg[0]);
	if (v->memory > LEAT_VERIFY_MEMORY) {
		leat_heap_free(seen);
		return refuse_ways(v);
	}
	if (v->n_seen[pc] == LEAT_VERIFY_SEEN) {
		while ((*last)->next)
			last = &(*last)->next;
		v->memory -= sizeof(*seen) + (*last)->n_regs * sizeof(seen->reg[0]);
		leat_heap_free(*last);
		*last = NULL;
		v->n_seen[pc]--;
	}
	seen->next = v->seen[pc];
	v->seen[pc] = seen;
	v->n_seen[pc]++;
	return 0;
}

static struct leat_vseen *find_cover(struct leat_verifier *v, const struct leat_vseen *now)
{
	struct leat_vseen *seen;

	for (seen = v->seen[v->state->pc]; seen; seen = seen->next)
		if (covers(v, seen, now))
			return seen;
	return NULL;
}

/** Whether paths that meet here become one: not where a loop begins, lest a turn never differ from the last. */
static bool merges(const struct leat_verifier *v)
{
	return v->precision == LEAT_VERIFY_MERGED && !(v->mark[v->state->pc] & LEAT_MARK_LOOP);
}

/** The last one remembered that this one can be merged with. */
static struct leat_vseen *find_mate(struct leat_verifier *v, const struct leat_vseen *now)
{
	struct leat_vseen *seen;
	bool pointers;
	uint32_t i;

	for (seen = v->seen[v->state->pc]; seen; seen = seen->next) {
		if (!same_shape(v, seen, now, &pointers))
			continue;
		for (i = 0; i < now->n_regs && can_merge(&now->reg[i], &seen->reg[i]); i++)
			;
		if (i == now->n_regs)
			return seen;
	}
	return NULL;
}

/** The state like this one that was remembered last, when there are many of that kind. */
static struct leat_vseen *crowd(struct leat_verifier *v, const struct leat_vseen *now)
{
	struct leat_vseen *seen, *last = NULL, *last_alike = NULL;
	unsigned int n = 0, alike = 0;
	bool pointers;

	if (!(v->mark[v->state->pc] & LEAT_MARK_LOOP) && v->walked < LEAT_VERIFY_HASTE)
		return NULL;
	for (seen = v->seen[v->state->pc]; seen; seen = seen->next) {
		if (!same_shape(v, seen, now, &pointers) || !room_covers(seen, now))
			continue;
		if (!n++)
			last = seen;
		if (pointers && !alike++)
			last_alike = seen;
	}
	if (v->precision <= LEAT_VERIFY_MERGED)
		return alike >= LEAT_VERIFY_WIDEN_SOON ? last_alike : n >= LEAT_VERIFY_WIDEN_SOON ? last : NULL;
	return n >= LEAT_VERIFY_WIDEN_MORE ? last : alike >= LEAT_VERIFY_WIDEN ? last_alike : NULL;
}

/** Makes the state like others that were remembered, if there is reason to. Whether it is another one now. */
static bool adapt(struct leat_verifier *v, const struct leat_vseen *now)
{
	struct leat_vseen *like = merges(v) ? find_mate(v, now) : crowd(v, now);

	if (!like)
		return false;
	if (merges(v)) {
		merge_values(v, now, like);
	} else {
		forget_values(v, like);
		v->forgot = true;
	}
	leat_verify_each(v->state, let_go, NULL);
	return true;
}

int leat_verify_covered(struct leat_verifier *v, bool *covered)
{
	struct leat_vseen *now;

	if (v->compared > (v->precision == LEAT_VERIFY_ALL ? LEAT_VERIFY_COMPARED : LEAT_VERIFY_COMPARED / 16))
		return refuse_ways(v);
	leat_verify_forget_unneeded(v);
	now = picture(v);
	if (!now)
		return -ENOMEM;
	*covered = find_cover(v, now) != NULL;
	if (!*covered && adapt(v, now)) {
		leat_heap_free(now);
		now = picture(v);
		if (!now)
			return -ENOMEM;
		*covered = find_cover(v, now) != NULL;
	}
	if (!*covered)
		return remember(v, now);
	leat_heap_free(now);
	return 0;
}

void leat_verify_forget_seen(struct leat_verifier *v)
{
	struct leat_vseen *seen, *next;
	uint32_t pc;

	for (pc = 0; pc < v->prog->n_insns; pc++) {
		for (seen = v->seen[pc]; seen; seen = next) {
			next = seen->next;
			leat_heap_free(seen);
		}
		v->seen[pc] = NULL;
		v->n_seen[pc] = 0;
	}
	v->memory = 0;
}
