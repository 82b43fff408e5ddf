/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c: loads, stores and atomic operations: what may be accessed through which register, which region the
 * engine has to look at, and what a store does to the pointers that are spilled on the stack. *control*.
 *
 * Theory of operation. At a known place of the stack, a store replaces what the slot held. At an unknown place it
 * may replace any number of that frame, so all are forgotten; the pointers are not, but the engine is told
 * (aux.keep) that this instruction may not touch the slots of those that are read again: compilers let what is
 * alive one after the other share its place, and a dead pointer is in nobody's way. What such a store may have hit
 * is exposed until something else is stored there; a read of it makes the slot one that is needed. A store that
 * goes to the stack on one path and elsewhere on another is looked up at run time, so on the other path it might
 * reach the stack too: then all numbers of all frames are forgotten. That is known only once both paths were seen;
 * the walk is repeated then.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define REACH (1 << 30) /* no region is larger */

static const uint8_t region_of[LEAT_KINDS] = {
	[LEAT_KIND_PACKET] = LEAT_BPF_REGION_PACKET, [LEAT_KIND_META] = LEAT_BPF_REGION_META,
	[LEAT_KIND_STACK] = LEAT_BPF_REGION_STACK,   [LEAT_KIND_VALUE] = LEAT_BPF_REGION_MAP,
	[LEAT_KIND_RECORD] = LEAT_BPF_REGION_RECORD,
	[LEAT_KIND_KEY] = LEAT_BPF_REGION_LENT,
};

/* What is said of a register that cannot be accessed through; NULL: the kind says it. */
static const char *const why_not[LEAT_KINDS] = {
	[LEAT_KIND_NUMBER] = "is a number, not a pointer",
	[LEAT_KIND_END] = "is the end of the packet",
	[LEAT_KIND_MAP] = "is a map, not a value of it",
	[LEAT_KIND_MAP_OR_NULL] = "is a map or null, not a value of it",
	[LEAT_KIND_VALUE_OR_NULL] = "may be null: it must be compared with 0 first",
	[LEAT_KIND_RECORD_OR_NULL] = "may be null: it must be compared with 0 first",
	[LEAT_KIND_FUNC] = "is a function",
	[LEAT_KIND_STALE] = "is a packet pointer from before the packet was moved: it must be loaded again",
	[LEAT_KIND_RELEASED] = "is a record that was submitted or discarded",
	[LEAT_KIND_CTX] = "is the context",
};

int leat_verify_readable(struct leat_verifier *v, unsigned int number, const char *what)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];

	if (region_of[reg->kind])
		return 0;
	return leat_verify_refuse(v, v->state->pc, 1u << number, "r%u %s: it cannot be %s", number, why_not[reg->kind],
				  what);
}

/* ---- what the engine is told ---- */

static void note_region(struct leat_verifier *v, const struct leat_vreg *reg)
{
	struct leat_bpf_aux *aux = &v->prog->aux[v->state->pc];
	uint8_t region = region_of[reg->kind];
	uint32_t up = v->state->n_frames - 1 - reg->frame;

	if (aux->region == LEAT_BPF_REGION_NONE) {
		aux->region = region;
		aux->map = region == LEAT_BPF_REGION_MAP && !v->prog->obj->map[reg->map].template ? reg->map : -1;
		aux->frame = region == LEAT_BPF_REGION_STACK ? (uint8_t)up : 0;
		return;
	}
	if (aux->region != region) {
		aux->region = LEAT_BPF_REGION_ANY;
		aux->map = -1;
		return;
	}
	if (region == LEAT_BPF_REGION_MAP && aux->map != reg->map)
		aux->map = -1;
	if (region == LEAT_BPF_REGION_STACK && aux->frame != up)
		aux->frame = LEAT_BPF_FRAME_ANY;
}

/** The function that frame @number is of. */
static uint32_t owner(const struct leat_verifier *v, uint32_t number)
{
	return v->func[number + 1 == v->state->n_frames ? v->state->pc : v->state->frame[number + 1].call];
}

static uint64_t pointer_slots(const struct leat_vframe *frame)
{
	uint64_t left = frame->spilled, slots = 0;
	unsigned int i;

	for (; left; left &= left - 1) {
		i = (unsigned int)__builtin_ctzll(left);
		if (leat_vpointer(&frame->slot[i]))
			slots |= UINT64_C(1) << i;
	}
	return slots;
}

/** A write to a place unknown may go to frame @number. */
static void expose(struct leat_verifier *v, uint32_t number)
{
	struct leat_vframe *frame = &v->state->frame[number];
	uint64_t slots = pointer_slots(frame), left = frame->spilled;
	uint32_t pc = v->state->pc;

	if (number + 1 == v->state->n_frames)
		v->prog->aux[pc].keep |= slots;
	else
		v->keep_above[pc] |= slots;
	for (; left; left &= left - 1)
		frame->slot[__builtin_ctzll(left)].exposed |= leat_vpointer(&frame->slot[__builtin_ctzll(left)]);
}

static void settle(struct leat_bpf_aux *aux, bool guard, bool stack, uint64_t needed, uint64_t keep_above)
{
	aux->keep = stack ? (aux->keep & needed) | keep_above : 0;
	aux->access |= aux->region != LEAT_BPF_REGION_NONE;
	aux->proven = aux->reached && !guard && !aux->keep;
}

void leat_verify_settle(struct leat_verifier *v)
{
	uint64_t any = 0;
	uint32_t pc;

	for (pc = 0; pc < v->prog->n_insns; pc++)
		any |= v->needed[pc];
	for (pc = 0; pc < v->prog->n_insns; pc++)
		settle(&v->prog->aux[pc], v->guard[pc], v->mark[pc] & LEAT_MARK_STACK, v->needed[v->func[pc]], v->keep_above[pc] & any);
	for (pc = 0; pc < v->prog->n_insns; pc++)
		if (v->func[pc] == pc)
			v->prog->aux[pc].stack = v->depth[pc];
}

static void forget_numbers(struct leat_vframe *frame)
{
	frame->spilled = pointer_slots(frame);
}

/**
 * Whether this write may go to the stack on one path and elsewhere on another; asks for a second walk if that is new.
 */
static bool is_blunt(struct leat_verifier *v, bool stack)
{
	uint16_t *mark = &v->mark[v->state->pc], both = LEAT_MARK_STACK | LEAT_MARK_OTHER;

	*mark |= stack ? LEAT_MARK_STACK : LEAT_MARK_OTHER;
	if ((*mark & both) == both && !(*mark & LEAT_MARK_BLUNT)) {
		*mark |= LEAT_MARK_BLUNT;
		v->again = true;
	}
	return *mark & LEAT_MARK_BLUNT;
}

static void write_elsewhere(struct leat_verifier *v)
{
	bool blunt = is_blunt(v, false);
	uint32_t i;

	for (i = 0; i < v->state->n_frames; i++) {
		expose(v, i);
		if (blunt)
			forget_numbers(&v->state->frame[i]);
	}
}

static void write_slots(struct leat_vframe *frame, int64_t pos, uint64_t size)
{
	uint64_t slot;

	for (slot = (uint64_t)pos / 8; slot <= ((uint64_t)pos + size - 1) / 8; slot++)
		leat_verify_set_slot(frame, (unsigned int)slot, NULL);
}

void leat_verify_write(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size)
{
	struct leat_vframe *frame = &v->state->frame[reg->frame];
	int64_t pos = reg->value + off + LEAT_BPF_STACK_SIZE;

	if (reg->kind != LEAT_KIND_STACK) {
		write_elsewhere(v);
		return;
	}
	is_blunt(v, true);
	if (reg->known && size && pos >= 0 && size <= LEAT_BPF_STACK_SIZE &&
	    pos <= (int64_t)(LEAT_BPF_STACK_SIZE - size)) {
		write_slots(frame, pos, size);
		return;
	}
	expose(v, reg->frame);
	forget_numbers(frame);
}

/* ---- access through a register ---- */

void leat_verify_use_stack(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off)
{
	uint16_t *depth = &v->depth[owner(v, reg->frame)];
	int64_t pos = reg->value + off;

	if (!reg->known || pos < -(int64_t)LEAT_BPF_STACK_SIZE)
		*depth = LEAT_BPF_STACK_SIZE;
	else if (-pos > *depth)
		*depth = (uint16_t)-pos;
}

bool leat_verify_inside(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size)
{
	int64_t first = reg->value + off, low, high, room;

	/* the unknown part is in the base's room already */
	if (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META) {
		leat_verify_need_room(v, first < 0 ? 0 : (uint64_t)first + size);
		return first >= 0 && size <= reg->room && first <= (int64_t)(reg->room - size);
	}
	if (reg->range.smin < -REACH || reg->range.smax > REACH || size > REACH)
		return false;
	low = first + reg->range.smin;
	high = first + reg->range.smax + (int64_t)size;
	if (reg->kind == LEAT_KIND_STACK)
		return low >= -(int64_t)LEAT_BPF_STACK_SIZE && high <= 0;
	room = reg->kind == LEAT_KIND_VALUE ? v->prog->obj->map[reg->map].value_size :
	       reg->kind == LEAT_KIND_KEY ? v->prog->obj->map[reg->map].key_size :
	       reg->kind == LEAT_KIND_RECORD ? reg->room : 0;
	return low >= 0 && high <= room;
}

bool leat_verify_touches_lock(const struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size)
{
	int64_t lock = (int64_t)v->prog->obj->map[reg->map].lock - 1, first = reg->value + off;

	if (reg->kind != LEAT_KIND_VALUE || lock < 0 || !size)
		return false;
	if (reg->range.smin < -REACH || reg->range.smax > REACH || size > REACH)
		return true;
	return first + reg->range.smin < lock + 4 && first + reg->range.smax + (int64_t)size > lock;
}

static int check_stack(struct leat_verifier *v, unsigned int number, const struct leat_vreg *reg, int64_t off,
		       uint32_t size)
{
	int64_t pos = reg->value + off;
	uint32_t pc = v->state->pc;

	leat_verify_use_stack(v, reg, off);
	if (!reg->known)
		return 0;
	if (pos < -(int64_t)LEAT_BPF_STACK_SIZE || pos > -(int64_t)size)
		return leat_verify_refuse(v, pc, 1u << number,
					  "%u bytes at %+" PRId64 " are outside the %u bytes of a stack frame", size,
					  pos, LEAT_BPF_STACK_SIZE);
	return 0;
}

static int check_value(struct leat_verifier *v, unsigned int number, const struct leat_vreg *reg, int64_t off,
		       uint32_t size, bool write)
{
	const struct leat_bpf_map *map = &v->prog->obj->map[reg->map];
	int64_t pos = reg->value + off;

	if (leat_verify_touches_lock(v, reg, off, size))
		return leat_verify_refuse(v, v->state->pc, 1u << number,
					  "the spin lock of map %s (4 bytes at +%u) may be in there: it is for "
					  "spin_lock and spin_unlock alone", map->name, map->lock - 1);
	if (write && (map->frozen || (map->map_flags & BPF_F_RDONLY_PROG)))
		return leat_verify_refuse(v, v->state->pc, 1u << number, "map %s is read-only", map->name);
	if (!write && (map->map_flags & BPF_F_WRONLY_PROG))
		return leat_verify_refuse(v, v->state->pc, 1u << number, "map %s is write-only", map->name);
	if (reg->known && (pos < 0 || size > map->value_size || pos > (int64_t)(map->value_size - size)))
		return leat_verify_refuse(v, v->state->pc, 1u << number,
					  "%u bytes at %+" PRId64 " are outside the value of map %s (%u bytes)", size,
					  pos, map->name, map->value_size);
	return 0;
}

/** Checks one access of @size bytes; notes its region. */
static int check_access(struct leat_verifier *v, unsigned int number, uint32_t size, bool write)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	int64_t off = leat_vinsn(v)->off;
	int err = leat_verify_readable(v, number, write ? "written through" : "read through");

	if (!err && (v->mark[v->state->pc] & LEAT_MARK_CTX))
		err = leat_verify_refuse(v, v->state->pc, 1u << number,
					 "the same instruction reads the context on another path");
	if (!err && reg->kind == LEAT_KIND_STACK)
		err = check_stack(v, number, reg, off, size);
	if (!err && reg->kind == LEAT_KIND_VALUE)
		err = check_value(v, number, reg, off, size, write);
	if (!err && write && reg->kind == LEAT_KIND_KEY)
		err = leat_verify_refuse(v, v->state->pc, 1u << number, "a key that a callback was given cannot be changed");
	if (err)
		return err;
	v->mark[v->state->pc] |= reg->kind == LEAT_KIND_STACK ? LEAT_MARK_STACK : LEAT_MARK_OTHER;
	v->guard[v->state->pc] |= !leat_verify_inside(v, reg, off, size);
	v->prog->writes_packet |= write && (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META);
	note_region(v, reg);
	return 0;
}

/* ---- the context ---- */

static int load_ctx(struct leat_verifier *v, int op)
{
	static const uint8_t kind[] = { LEAT_KIND_PACKET, LEAT_KIND_END,    LEAT_KIND_META,
					LEAT_KIND_NUMBER, LEAT_KIND_NUMBER, LEAT_KIND_NUMBER };
	const struct bpf_insn *insn = leat_vinsn(v);
	uint32_t pc = v->state->pc;
	struct leat_bpf_aux *aux = &v->prog->aux[pc];
	unsigned int member = (unsigned int)insn->off / 4;

	if (op != LEAT_OP_LDX32)
		return leat_verify_refuse(v, pc, 1u << insn->src_reg,
					  "the context is read in whole members of 4 bytes");
	if (insn->off < 0 || insn->off % 4 || member >= sizeof(kind))
		return leat_verify_refuse(v, pc, 1u << insn->src_reg, "the context has no member at offset %d",
					  insn->off);
	if (member == 5 && !(v->prog->flags & LEAT_IMAGE_PROG_DEVMAP))
		return leat_verify_refuse(v, pc, 1u << insn->src_reg,
					  "egress_ifindex is there for programs in SEC(\"xdp/devmap\") only");
	if (v->mark[pc] & (LEAT_MARK_STACK | LEAT_MARK_OTHER))
		return leat_verify_refuse(v, pc, 1u << insn->src_reg,
					  "the same instruction reads other memory on another path");
	v->mark[pc] |= LEAT_MARK_CTX;
	aux->ctx_load = (uint8_t)(1 + member);
	leat_vframe(v)->reg[insn->dst_reg] = (struct leat_vreg){
		.kind = kind[member], .known = true, .room = member == 1 ? 0 : v->state->room[member == 2]
	};
	if (kind[member] == LEAT_KIND_NUMBER)
		leat_vframe(v)->reg[insn->dst_reg] = leat_vloaded(4);
	return 0;
}

/* ---- loads ---- */

/** What is known of a number; of anything else, nothing. */
static struct leat_range range_of(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_NUMBER ? reg->range : leat_range_any(64);
}

/** The lower @size bytes, 1 to 7, and zeros above. */
static struct leat_range part(struct leat_range range, uint32_t size)
{
	return leat_range_zero_extend(leat_range_narrow(range, size * 8, 64), size * 8, 64);
}

/** What a load from a known place of frame @number gives. */
static struct leat_vreg load_slot(struct leat_verifier *v, uint32_t number, uint32_t pos, uint32_t size)
{
	const struct leat_vframe *frame = &v->state->frame[number];
	unsigned int slot = pos / 8, shift = pos % 8 * 8;
	struct leat_vreg reg = frame->slot[slot];

	leat_verify_need_slot(v, number, slot);
	if (!(frame->spilled & UINT64_C(1) << slot) || pos % 8 + size > 8)
		return leat_vloaded(size);
	if (size < 8 && (leat_vpointer(&reg) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__))
		return leat_vloaded(size);
	if (reg.exposed)
		v->needed[owner(v, number)] |= UINT64_C(1) << slot;
	reg.exposed = false;
	if (size == 8)
		return reg;
	return leat_vrange(part(leat_range_op(BPF_RSH, range_of(&reg), leat_range_const(shift, 64), 64), size));
}

/** A load from global data that nobody can change is the number that stands there. */
static struct leat_vreg load_frozen(const struct leat_verifier *v, const struct leat_vreg *reg, int64_t off,
				    uint32_t size)
{
	struct leat_bpf_map *map = &v->prog->obj->map[reg->map];
	uint64_t value = 0;
	const uint8_t *data;
	uint32_t key = 0;

	if (!map->frozen || !reg->known || map->type->type != BPF_MAP_TYPE_ARRAY || map->max_entries != 1)
		return leat_vloaded(size);
	data = map->type->lookup(map, &key, 0);
	if (!data || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		return leat_vloaded(size);
	memcpy(&value, data + reg->value + off, size);
	return leat_vconst((int64_t)value);
}

static int load(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg src = leat_vframe(v)->reg[insn->src_reg], *dst = &leat_vframe(v)->reg[insn->dst_reg];
	uint32_t size = leat_insn_size(insn);
	int err;

	if (src.kind == LEAT_KIND_CTX)
		return load_ctx(v, op);
	err = check_access(v, insn->src_reg, size, false);
	if (err)
		return err;
	*dst = leat_vloaded(size);
	if (op >= LEAT_OP_LDXS8 && op <= LEAT_OP_LDXS32) {
		*dst = leat_vrange(leat_range_sign_extend(leat_range_any(size * 8), size * 8, 64));
		return 0;
	}
	if (src.kind == LEAT_KIND_STACK && src.known)
		*dst = load_slot(v, src.frame, (uint32_t)(src.value + insn->off + LEAT_BPF_STACK_SIZE), size);
	else if (src.kind == LEAT_KIND_VALUE)
		*dst = load_frozen(v, &src, insn->off, size);
	return 0;
}

/* ---- stores ---- */

static struct leat_vreg slot_of(const struct leat_vframe *frame, unsigned int slot)
{
	return frame->spilled & UINT64_C(1) << slot ? frame->slot[slot] : leat_vnumber();
}

/** A number of @size bytes is stored in a part of a slot, from byte @at on: the rest stays what it was. */
static struct leat_vreg store_part(const struct leat_vreg *slot, uint32_t at, const struct leat_vreg *value, uint32_t size)
{
	uint64_t bits = ((UINT64_C(1) << size * 8) - 1) << at * 8;
	struct leat_range rest = leat_range_op(BPF_AND, range_of(slot), leat_range_const(~bits, 64), 64);
	struct leat_range put = leat_range_op(BPF_LSH, part(range_of(value), size), leat_range_const(at * 8, 64), 64);

	return leat_vrange(leat_range_op(BPF_OR, rest, put, 64));
}

/** At byte @pos of a frame, where the slot held @old. */
static void store_slot(struct leat_verifier *v, const struct leat_vreg *dst, int64_t pos, const struct leat_vreg *old,
		       struct leat_vreg value, uint32_t size)
{
	struct leat_vframe *frame = &v->state->frame[dst->frame];
	uint32_t at = (uint32_t)pos % 8;

	if (at + size > 8 || (size < 8 && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__))
		return;
	if (size < 8)
		value = store_part(old, at, &value, size);
	leat_verify_set_slot(frame, (unsigned int)pos / 8, &value);
}

static int store(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg dst = leat_vframe(v)->reg[insn->dst_reg], value = leat_vconst(insn->imm), old = leat_vnumber();
	uint32_t size = leat_insn_size(insn);
	int64_t pos = dst.value + insn->off + LEAT_BPF_STACK_SIZE;
	int err;

	if (dst.kind == LEAT_KIND_CTX)
		return leat_verify_refuse(v, v->state->pc, 1u << insn->dst_reg, "the context cannot be written");
	err = check_access(v, insn->dst_reg, size, true);
	if (err)
		return err;
	if (leat_insn_row[op].form == LEAT_FORM_STX)
		value = leat_vframe(v)->reg[insn->src_reg];
	if (dst.kind == LEAT_KIND_STACK && dst.known)
		old = slot_of(&v->state->frame[dst.frame], (unsigned int)pos / 8);
	leat_verify_write(v, &dst, insn->off, size);
	if (dst.kind == LEAT_KIND_STACK && dst.known)
		store_slot(v, &dst, pos, &old, value, size);
	return 0;
}

/** Whether an address is a multiple of @size for certain: stacks, values and records begin at multiples of 8. */
static bool aligned(const struct leat_vreg *reg, int64_t off, uint32_t size)
{
	return reg->kind != LEAT_KIND_PACKET && reg->kind != LEAT_KIND_META &&
	       !((uint64_t)(reg->value + off) % size) && !((reg->range.value | reg->range.mask) % size);
}

static int atomic(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg *reg = leat_vframe(v)->reg, dst = reg[insn->dst_reg];
	uint32_t size = leat_insn_size(insn);
	int err;

	if (dst.kind == LEAT_KIND_CTX)
		return leat_verify_refuse(v, v->state->pc, 1u << insn->dst_reg, "the context cannot be written");
	err = check_access(v, insn->dst_reg, size, true);
	if (!err && dst.kind == LEAT_KIND_VALUE && (v->prog->obj->map[dst.map].map_flags & BPF_F_WRONLY_PROG))
		err = leat_verify_refuse(v, v->state->pc, 1u << insn->dst_reg, "map %s is write-only",
					 v->prog->obj->map[dst.map].name);
	if (!err && dst.kind == LEAT_KIND_STACK && dst.known && (dst.value + insn->off) % (int64_t)size)
		err = leat_verify_refuse(v, v->state->pc, 1u << insn->dst_reg, "an atomic operation must be aligned");
	if (err)
		return err;
	v->guard[v->state->pc] |= !aligned(&dst, insn->off, size);
	leat_verify_write(v, &dst, insn->off, size);
	if (op == LEAT_OP_ACMPXCHG32 || op == LEAT_OP_ACMPXCHG64)
		reg[BPF_REG_0] = leat_vnumber();
	else if (insn->imm & BPF_FETCH)
		reg[insn->src_reg] = leat_vnumber();
	return 0;
}

int leat_verify_memory(struct leat_verifier *v, int op)
{
	switch (leat_insn_row[op].form) {
	case LEAT_FORM_LDX:
		return load(v, op);
	case LEAT_FORM_ATOMIC:
		return atomic(v, op);
	default:
		return store(v, op);
	}
}
