/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demand.c: what proofs need to be known. *control*.
 *
 * Theory of operation. Most numbers never come near an address: sums, verdicts, what is written to the packet. What is
 * known of them only makes states differ that are the same for every proof; so does the proof of packet bytes that
 * nobody reads. So a program is first walked for a while with all numbers but 0 forgotten wherever paths meet
 * (LEAT_VERIFY_COARSE). The walk learns what does matter: numbers that move a pointer, tell a helper a size, or are null
 * pointers; packet bytes that are read, and the jumps that prove them. If it has left something unproven, another walk
 * keeps what comes to such a place, followed back through the program from there; and another one, while there is more
 * to learn. First, ranges of paths that meet are made one (LEAT_VERIFY_MERGED); then they are kept apart
 * (LEAT_VERIFY_DEMANDED). Only when that is not enough, everything is kept (LEAT_VERIFY_ALL): then a jump may be decided
 * by a number that nobody else needs.
 *
 * To forget is always right: what is good for any number is good for the one that it was. So what follows need not be
 * exact.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"

#define CALLEE_SAVED 0x3c0u /* r6 to r9 */
#define ARGUMENTS 0x3eu     /* r1 to r5 */

/* ---- lessons ---- */

void leat_verify_need_numbers(struct leat_verifier *v, unsigned int regs)
{
	struct leat_lesson *lesson = &v->lesson[v->state->pc];

	v->learned |= (regs & ~lesson->regs) != 0;
	lesson->regs |= (uint16_t)regs;
}

void leat_verify_need_slot(struct leat_verifier *v, uint32_t number, unsigned int slot)
{
	struct leat_lesson *lesson = &v->lesson[v->state->pc];
	uint64_t bit = UINT64_C(1) << slot;

	if (number + 1 < v->state->n_frames) {
		v->learned |= !v->lends;
		v->lends = true;
		return;
	}
	v->learned |= !(lesson->read & bit);
	lesson->read |= bit;
}

void leat_verify_need_room(struct leat_verifier *v, uint64_t room)
{
	struct leat_lesson *lesson = &v->lesson[v->state->pc];

	if (room <= lesson->room || room > LEAT_VERIFY_FAR)
		return;
	v->learned = true;
	lesson->room = (uint32_t)room;
}

/** Kept as room + 1; 0: it was not seen yet. */
void leat_verify_gives(struct leat_verifier *v, uint32_t pc, bool taken, uint32_t room)
{
	uint32_t *gives = &v->lesson[pc].gives[taken];

	if (*gives && *gives <= room + 1)
		return;
	v->learned = true;
	*gives = room + 1;
}

/* ---- back through the program ---- */

/** The slot in which @size bytes at @off from r10 lie, in *@bit; false: it is none. */
static bool slot_at(uint8_t reg, int16_t off, uint32_t size, uint64_t *bit)
{
	unsigned int at = (unsigned int)(LEAT_BPF_STACK_SIZE + off);

	if (reg != BPF_REG_10 || off >= 0 || off < -(int)LEAT_BPF_STACK_SIZE || at % 8 + size > 8)
		return false;
	*bit = UINT64_C(1) << at / 8;
	return true;
}

static bool has(const struct leat_demand *d, unsigned int reg)
{
	return d->regs & 1u << reg;
}

/** @to is made of @from, or of nothing that counts (MAX_BPF_REG). */
static void made_of(struct leat_demand *d, unsigned int to, unsigned int from)
{
	bool wanted = has(d, to);

	d->regs &= (uint16_t)~(1u << to);
	if (wanted && from < BPF_REG_10)
		d->regs |= (uint16_t)(1u << from);
}

static void before_load(struct leat_demand *d, const struct bpf_insn *insn)
{
	uint64_t bit;

	if (has(d, insn->dst_reg) && slot_at(insn->src_reg, insn->off, leat_insn_size(insn), &bit))
		d->slots |= bit;
	made_of(d, insn->dst_reg, MAX_BPF_REG);
}

static void before_store(struct leat_demand *d, const struct bpf_insn *insn)
{
	uint64_t bit;

	if (!slot_at(insn->dst_reg, insn->off, leat_insn_size(insn), &bit))
		return;
	if (d->slots & bit)
		d->regs |= (uint16_t)(1u << insn->src_reg);
	if (leat_insn_size(insn) < 8)
		return;
	d->slots &= ~bit;
	d->read &= ~bit;
}

/** What is learned of one side of a comparison comes from the other. */
static void before_jump(struct leat_demand *d, const struct bpf_insn *insn)
{
	uint16_t both = (uint16_t)(1u << insn->dst_reg | 1u << insn->src_reg);

	if (d->regs & both)
		d->regs |= both;
}

static void before_call(const struct leat_verifier *v, struct leat_demand *d, uint32_t pc, int op)
{
	uint32_t target = pc + 1 + (uint32_t)v->prog->insn[pc].imm;

	d->regs &= CALLEE_SAVED;
	if (op != LEAT_OP_CALL_LOCAL)
		return;
	d->regs |= v->demand[target].regs & ARGUMENTS;
	if (d->room < v->demand[target].room)
		d->room = v->demand[target].room;
}

/** Makes what is wanted after @pc what is wanted before it. */
static void before(const struct leat_verifier *v, struct leat_demand *d, uint32_t pc)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];
	int op = v->op[pc];

	switch (leat_insn_row[op].form) {
	case LEAT_FORM_ALU_X:
		if (has(d, insn->dst_reg))
			d->regs |= (uint16_t)(1u << insn->src_reg);
		break;
	case LEAT_FORM_MOV_X:
		made_of(d, insn->dst_reg, insn->src_reg);
		break;
	case LEAT_FORM_MOV_K:
	case LEAT_FORM_LD64:
		made_of(d, insn->dst_reg, MAX_BPF_REG);
		break;
	case LEAT_FORM_LDX:
		before_load(d, insn);
		break;
	case LEAT_FORM_STX:
		before_store(d, insn);
		break;
	case LEAT_FORM_JMP_X:
		before_jump(d, insn);
		break;
	case LEAT_FORM_CALL:
	case LEAT_FORM_KFUNC:
		before_call(v, d, pc, op);
		break;
	case LEAT_FORM_EXIT: /* a caller may want r0; who runs the program does not */
		d->regs = v->func[pc] ? 1u << BPF_REG_0 : 0;
		break;
	default:
		break;
	}
	d->regs = (d->regs | v->lesson[pc].regs) & 0x3ff;
	d->read |= v->lesson[pc].read;
	if (d->room < v->lesson[pc].room)
		d->room = v->lesson[pc].room;
}

/** The room that must be there before way @number out of @pc for @room to be there after it. */
static uint32_t room_before(const struct leat_verifier *v, uint32_t pc, unsigned int number, uint32_t room)
{
	uint32_t gives = v->lesson[pc].gives[number];

	return gives && room < gives ? 0 : room;
}

/** Works out demand[@pc]; whether it has changed. */
static bool update(struct leat_verifier *v, uint32_t pc)
{
	struct leat_demand d = { .regs = 0 }, *was = &v->demand[pc];
	uint32_t next, room;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!leat_verify_way(v, pc, i, &next))
			continue;
		d.regs |= v->demand[next].regs;
		d.slots |= v->demand[next].slots;
		d.read |= v->demand[next].read;
		room = room_before(v, pc, i, v->demand[next].room);
		if (d.room < room)
			d.room = room;
	}
	before(v, &d, pc);
	if (d.regs == was->regs && d.slots == was->slots && d.read == was->read && d.room == was->room)
		return false;
	v->demand[pc] = d;
	return true;
}

void leat_verify_find_demand(struct leat_verifier *v)
{
	bool changed;
	uint32_t i;

	memset(v->demand, 0, v->prog->n_insns * sizeof(*v->demand));
	do {
		changed = false;
		for (i = 0; i < v->n_order; i++)
			changed |= update(v, v->order[i]);
	} while (changed);
}

/* ---- forgetting ---- */

static void forget_room(struct leat_vreg *reg, uint32_t room)
{
	if ((reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META) && reg->room > room)
		reg->room = room;
}

static void forget_in_frame(struct leat_vframe *frame, const struct leat_demand *needed, bool lends)
{
	uint64_t left, slots = lends ? UINT64_MAX : needed->read;
	unsigned int i;

	frame->spilled &= slots;

	for (i = 0; i < BPF_REG_10; i++) {
		if (frame->reg[i].kind == LEAT_KIND_NUMBER && !has(needed, i))
			frame->reg[i] = leat_vnumber();
		forget_room(&frame->reg[i], needed->room);
	}
	for (left = frame->spilled; left; left &= left - 1) {
		i = (unsigned int)__builtin_ctzll(left);
		forget_room(&frame->slot[i], needed->room);
		if (frame->slot[i].kind == LEAT_KIND_NUMBER && !(needed->slots & (left & -left)))
			leat_verify_set_slot(frame, i, NULL);
	}
}

static void forget_number(struct leat_vreg *reg, void *arg)
{
	(void)arg;
	if (reg->kind == LEAT_KIND_NUMBER && (!reg->known || reg->value))
		*reg = leat_vnumber();
}

void leat_verify_forget_unneeded(struct leat_verifier *v)
{
	struct leat_vstate *state = v->state;
	uint32_t i, pc, room = 0;

	if (v->precision == LEAT_VERIFY_COARSE)
		leat_verify_each(state, forget_number, NULL);
	if (v->precision != LEAT_VERIFY_MERGED && v->precision != LEAT_VERIFY_DEMANDED)
		return;
	for (i = 0; i < state->n_frames; i++) {
		pc = i + 1 == state->n_frames ? state->pc : state->frame[i + 1].call;
		forget_in_frame(&state->frame[i], &v->demand[pc], v->lends);
		if (room < v->demand[pc].room)
			room = v->demand[pc].room;
	}
	for (i = 0; i < 2; i++)
		if (state->room[i] > room)
			state->room[i] = room;
}
