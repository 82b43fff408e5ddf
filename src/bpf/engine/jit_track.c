/* SPDX-License-Identifier: BSD-3-Clause */
/* jit_track.c: what is known of registers in straight code (jit_track.h). *control*. */
#include "bpf/engine/jit_track.h"

#include <string.h>

/** Distances from a register beyond which nothing is remembered. */
#define REACH (1 << 20)

static const struct leat_track_reg unknown;

void leat_track_reset(struct leat_track *t)
{
	memset(t, 0, sizeof(*t));
	t->reg[BPF_REG_10].kind = LEAT_TRACK_FRAME;
}

/* ---- asking ---- */

/** Whether a write to @size bytes at @pos of a frame (negative) leaves the slots of @keep alone. */
static bool spares(uint64_t keep, int64_t pos, uint64_t size)
{
	uint64_t i, off = (uint64_t)(pos + LEAT_BPF_STACK_SIZE);

	for (i = off / 8; i <= (off + size - 1) / 8; i++)
		if (keep >> i & 1)
			return false;
	return true;
}

static bool in_frame(const struct leat_bpf_aux *aux, int64_t pos, uint64_t size, bool write)
{
	if (pos < -(int64_t)LEAT_BPF_STACK_SIZE || pos >= 0 || size > (uint64_t)-pos)
		return false;
	return !write || spares(aux->keep, pos, size);
}

static bool in_value(const struct leat_bpf_prog *prog, const struct leat_track_reg *reg, int64_t pos, uint64_t size,
		     bool write)
{
	const struct leat_bpf_map *map = &prog->obj->map[reg->map];

	if (write && (map->frozen || (map->map_flags & BPF_F_RDONLY_PROG)))
		return false;
	return map->type->contains && pos >= 0 && pos <= map->value_size && size <= map->value_size - (uint64_t)pos;
}

static bool is_value(const struct leat_track_reg *reg)
{
	return reg->kind == LEAT_TRACK_GLOBAL || reg->kind == LEAT_TRACK_VALUE;
}

bool leat_track_access(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int number,
		       bool write)
{
	const struct leat_track_reg *reg = &t->reg[number];
	const struct leat_bpf_aux *aux = &prog->aux[i];
	uint32_t size = leat_insn_size(&prog->insn[i]);
	int32_t off = prog->insn[i].off;
	bool any = aux->region == LEAT_BPF_REGION_ANY;

	if (reg->kind == LEAT_TRACK_FRAME && (any || aux->region == LEAT_BPF_REGION_STACK))
		return (any || !aux->frame || aux->frame == LEAT_BPF_FRAME_ANY) &&
		       in_frame(aux, reg->value + off, size, write);
	if (is_value(reg) && (any || aux->region == LEAT_BPF_REGION_MAP))
		return (any || aux->map < 0 || aux->map == reg->map) &&
		       in_value(prog, reg, reg->value + off, size, write);
	if (any || aux->region == LEAT_BPF_REGION_PACKET)
		return reg->low < reg->high && off >= reg->low && off + (int32_t)size <= reg->high;
	return false;
}

bool leat_track_arg(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int number,
		    uint64_t size, uint8_t arg)
{
	const struct leat_track_reg *reg = &t->reg[number];
	bool write = leat_bpf_arg_is_written(arg);

	if (!size)
		return true;
	if (size > LEAT_BPF_STACK_SIZE)
		return false;
	if (reg->kind == LEAT_TRACK_FRAME)
		return in_frame(&prog->aux[i], reg->value, size, write);
	if (is_value(reg))
		return in_value(prog, reg, reg->value, size, write);
	return reg->low < reg->high && reg->low <= 0 && (int32_t)size <= reg->high;
}

void leat_track_in_packet(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int number)
{
	struct leat_track_reg *reg = &t->reg[number];
	int32_t low = prog->insn[i].off, high = low + (int32_t)leat_insn_size(&prog->insn[i]);

	if (reg->low == reg->high) {
		reg->low = low;
		reg->high = high;
		return;
	}
	/* what lies between two places in the packet is in the packet */
	reg->low = low < reg->low ? low : reg->low;
	reg->high = high > reg->high ? high : reg->high;
}

bool leat_track_folds(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op,
		      uint64_t *value)
{
	const struct leat_track_reg *reg = &t->reg[prog->insn[i].src_reg];
	int64_t pos = reg->value + prog->insn[i].off;
	struct leat_bpf_map *map = &prog->obj->map[reg->map];
	uint32_t key = 0, shift = 64 - 8 * leat_insn_size(&prog->insn[i]);

	if (reg->kind != LEAT_TRACK_GLOBAL || !map->frozen || prog->aux[i].region != LEAT_BPF_REGION_MAP ||
	    !in_value(prog, reg, pos, leat_insn_size(&prog->insn[i]), false))
		return false;
	*value = 0;
	memcpy(value, (const uint8_t *)map->type->lookup(map, &key, 0) + pos, leat_insn_size(&prog->insn[i]));
	if (op >= LEAT_OP_LDXS8)
		*value = (uint64_t)((int64_t)(*value << shift) >> shift);
	return true;
}

/* ---- following ---- */

static void set(struct leat_track *t, unsigned int number, uint8_t kind, uint32_t map, int64_t value)
{
	t->reg[number] = (struct leat_track_reg){ .kind = kind, .map = (uint16_t)map, .value = value };
}

/** Adds a number to a register. */
static void move(struct leat_track_reg *reg, int64_t by)
{
	if (by <= -REACH || by >= REACH || reg->value <= -REACH || reg->value >= REACH || reg->low <= -REACH ||
	    reg->high >= REACH || reg->kind == LEAT_TRACK_MAP || reg->kind == LEAT_TRACK_VALUE_OR_NULL) {
		*reg = unknown;
		return;
	}
	reg->value += reg->kind == LEAT_TRACK_UNKNOWN ? 0 : by;
	if (reg->low < reg->high) {
		reg->low -= (int32_t)by;
		reg->high -= (int32_t)by;
	}
}

static void step_wide(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op)
{
	const struct bpf_insn *insn = &prog->insn[i];

	if (op == LEAT_OP_LD64_MAP)
		set(t, insn->dst_reg, LEAT_TRACK_MAP, (uint32_t)insn->imm, 0);
	else if (op == LEAT_OP_LD64_VALUE && (uint32_t)insn[1].imm < REACH)
		set(t, insn->dst_reg, LEAT_TRACK_GLOBAL, (uint32_t)insn->imm, insn[1].imm);
	else if (op == LEAT_OP_LD64)
		set(t, insn->dst_reg, LEAT_TRACK_NUMBER, 0, (int64_t)prog->op[i].imm);
	else
		t->reg[insn->dst_reg] = unknown;
}

static void forget_packet(struct leat_track *t)
{
	unsigned int i;

	for (i = 0; i < MAX_BPF_REG; i++)
		t->reg[i].low = t->reg[i].high = 0;
}

/** The map, or template, whose values the look-up @i gives; -1: not known, or no values. */
static int values_of(const struct leat_bpf_prog *prog, uint32_t i)
{
	const struct leat_bpf_aux *aux = &prog->aux[i];
	int number = aux->map >= 0 ? aux->map : aux->like;

	if (number < 0 || (prog->obj->map[number].type->flags & (LEAT_BPF_MAP_NO_LOOKUP | LEAT_BPF_MAP_NESTED)))
		return -1;
	return number;
}

static void step_call(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op)
{
	const struct leat_bpf_helper *helper =
		op == LEAT_OP_CALL ? (const struct leat_bpf_helper *)(uintptr_t)prog->op[i].imm : NULL;
	unsigned int r;

	for (r = BPF_REG_0; r <= BPF_REG_5; r++)
		t->reg[r] = unknown;
	if (!helper || (helper->flags & LEAT_BPF_HELPER_MOVES_PACKET) ||
	    memchr(helper->arg, LEAT_BPF_ARG_FUNC, sizeof(helper->arg)))
		forget_packet(t);
	if (helper && helper->ret == LEAT_BPF_RET_MAP_VALUE_OR_NULL && values_of(prog, i) >= 0)
		set(t, BPF_REG_0, LEAT_TRACK_VALUE_OR_NULL, (uint32_t)values_of(prog, i), i);
}

/** A result that was compared with NULL, and the jump was not taken. */
static void step_null(struct leat_track *t, const struct bpf_insn *insn)
{
	const struct leat_track_reg was = t->reg[insn->dst_reg];
	unsigned int i;

	for (i = 0; was.kind == LEAT_TRACK_VALUE_OR_NULL && !insn->imm && i < MAX_BPF_REG; i++)
		if (t->reg[i].kind == LEAT_TRACK_VALUE_OR_NULL && t->reg[i].value == was.value)
			set(t, i, LEAT_TRACK_VALUE, was.map, 0);
}

void leat_track_step(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op)
{
	const struct bpf_insn *insn = &prog->insn[i];
	uint8_t form = leat_insn_row[op].form;

	if (op == LEAT_OP_MOV64X)
		t->reg[insn->dst_reg] = t->reg[insn->src_reg];
	else if (op == LEAT_OP_MOV64K)
		set(t, insn->dst_reg, LEAT_TRACK_NUMBER, 0, insn->imm);
	else if (op == LEAT_OP_MOV32K)
		set(t, insn->dst_reg, LEAT_TRACK_NUMBER, 0, (uint32_t)insn->imm);
	else if (op == LEAT_OP_ADD64K)
		move(&t->reg[insn->dst_reg], insn->imm);
	else if (op == LEAT_OP_SUB64K)
		move(&t->reg[insn->dst_reg], -(int64_t)insn->imm);
	else if (form == LEAT_FORM_LD64)
		step_wide(t, prog, i, op);
	else if (form == LEAT_FORM_CALL)
		step_call(t, prog, i, op);
	else if (op == LEAT_OP_JEQ64K)
		step_null(t, insn);
	else if (form == LEAT_FORM_ATOMIC && (op == LEAT_OP_ACMPXCHG32 || op == LEAT_OP_ACMPXCHG64))
		t->reg[BPF_REG_0] = unknown;
	else if (form == LEAT_FORM_ATOMIC && (insn->imm & BPF_FETCH))
		t->reg[insn->src_reg] = unknown;
	else if (leat_insn_use[form] & LEAT_SET_DST)
		t->reg[insn->dst_reg] = unknown;
}
