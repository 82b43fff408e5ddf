/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_emit.c: instructions of x86-64 as bytes, and jumps, whose distances come from the pass before. *control*.
 * (Intel SDM, volume 2, chapter 2: instruction format.)
 */
#include "bpf/engine/jit_x86.h"

#include <string.h>

#define JUMP_FAR INT64_C(1000) /* a distance beyond short jumps */

void leat_x86_byte(struct jit *j, unsigned int byte)
{
	if (!j->counting && j->len < j->mem.size)
		j->mem.write[j->len] = (uint8_t)byte;
	j->len++;
}

void leat_x86_u32(struct jit *j, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 32; i += 8)
		leat_x86_byte(j, value >> i & 0xff);
}

static void opcode(struct jit *j, uint32_t op)
{
	if (op > 0xffff)
		leat_x86_byte(j, op >> 16);
	if (op > 0xff)
		leat_x86_byte(j, op >> 8 & 0xff);
	leat_x86_byte(j, op & 0xff);
}

/** Prefixes and opcode of an instruction with registers @reg and @rm (as the base of memory, too). */
static void begin(struct jit *j, unsigned int flags, uint32_t op, unsigned int reg, unsigned int rm, bool rm_byte)
{
	unsigned int rex = (flags & X_W ? 8u : 0) | (reg & 8) >> 1 | (rm & 8) >> 3;

	if (flags & X_LOCK)
		leat_x86_byte(j, 0xf0);
	if (flags & X_16)
		leat_x86_byte(j, 0x66);
	/* without a prefix, numbers 4..7 are the high bytes of the first four */
	if (rex || ((flags & X_BYTE) && reg >= RSP) || (rm_byte && rm >= RSP))
		leat_x86_byte(j, 0x40 | rex);
	opcode(j, op);
}

void leat_x86_rr(struct jit *j, unsigned int flags, uint32_t op, unsigned int reg, unsigned int rm)
{
	begin(j, flags, op, reg, rm, flags & X_BYTE);
	leat_x86_byte(j, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

void leat_x86_mem(struct jit *j, unsigned int flags, uint32_t op, unsigned int reg, unsigned int base, int32_t disp)
{
	bool small = disp >= -128 && disp <= 127, none = !disp && (base & 7) != RBP;
	unsigned int mod = none ? 0x00 : small ? 0x40 : 0x80;

	begin(j, flags, op, reg, base, false);
	leat_x86_byte(j, mod | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == RSP)
		leat_x86_byte(j, 0x24);
	if (!none && small)
		leat_x86_byte(j, (unsigned int)disp & 0xff);
	else if (!none)
		leat_x86_u32(j, (uint32_t)disp);
}

static void alu_imm_value(struct jit *j, unsigned int flags, int32_t imm)
{
	if (imm >= -128 && imm <= 127)
		leat_x86_byte(j, (unsigned int)imm & 0xff);
	else
		leat_x86_u32(j, (uint32_t)imm);
	(void)flags;
}

void leat_x86_alu_imm(struct jit *j, unsigned int flags, unsigned int ext, unsigned int rm, int32_t imm)
{
	leat_x86_rr(j, flags, imm >= -128 && imm <= 127 ? 0x83 : 0x81, ext, rm);
	alu_imm_value(j, flags, imm);
}

void leat_x86_alu_mem_imm(struct jit *j, unsigned int flags, unsigned int ext, unsigned int base, int32_t disp,
			  int32_t imm)
{
	leat_x86_mem(j, flags, imm >= -128 && imm <= 127 ? 0x83 : 0x81, ext, base, disp);
	alu_imm_value(j, flags, imm);
}

void leat_x86_mov_imm(struct jit *j, unsigned int reg, uint64_t value)
{
	unsigned int i;

	if (value <= UINT32_MAX) {
		begin(j, 0, 0xb8 | (reg & 7), 0, reg, false);
		leat_x86_u32(j, (uint32_t)value);
	} else if ((int64_t)value == (int32_t)value) {
		leat_x86_rr(j, X_W, 0xc7, 0, reg);
		leat_x86_u32(j, (uint32_t)value);
	} else {
		begin(j, X_W, 0xb8 | (reg & 7), 0, reg, false);
		for (i = 0; i < 64; i += 32)
			leat_x86_u32(j, (uint32_t)(value >> i));
	}
}

void leat_x86_mov(struct jit *j, unsigned int flags, unsigned int to, unsigned int from)
{
	leat_x86_rr(j, flags, 0x8b, to, from);
}

void leat_x86_lea(struct jit *j, unsigned int to, unsigned int base, int32_t disp)
{
	if (disp)
		leat_x86_mem(j, X_W, 0x8d, to, base, disp);
	else
		leat_x86_mov(j, X_W, to, base);
}

void leat_x86_lea_sum(struct jit *j, unsigned int to, unsigned int base, unsigned int index)
{
	unsigned int mod = (base & 7) == RBP ? 0x40 : 0; /* which needs a displacement */

	leat_x86_byte(j, 0x48 | (to & 8) >> 1 | (index & 8) >> 2 | (base & 8) >> 3);
	leat_x86_byte(j, 0x8d);
	leat_x86_byte(j, mod | (to & 7) << 3 | 4);
	leat_x86_byte(j, (index & 7) << 3 | (base & 7));
	if (mod)
		leat_x86_byte(j, 0);
}

void leat_x86_push(struct jit *j, unsigned int reg)
{
	begin(j, 0, 0x50 | (reg & 7), 0, reg, false);
}

void leat_x86_pop(struct jit *j, unsigned int reg)
{
	begin(j, 0, 0x58 | (reg & 7), 0, reg, false);
}

/* ---- jumps and calls ---- */

void leat_x86_call(struct jit *j, const void *fn)
{
	int64_t distance = (int64_t)((uint64_t)(uintptr_t)fn - (uint64_t)(uintptr_t)j->mem.exec - j->len - 5);

	if (!j->counting && distance == (int32_t)distance) {
		leat_x86_byte(j, 0xe8);
		leat_x86_u32(j, (uint32_t)distance);
		return;
	}
	leat_x86_mov_imm(j, RAX, (uint64_t)(uintptr_t)fn | (j->counting ? UINT64_C(1) << 62 : 0));
	leat_x86_rr(j, 0, 0xff, 2, RAX);
}

void leat_x86_jump_to(struct jit *j, int cc, uint32_t target)
{
	if (cc >= 0)
		leat_x86_byte(j, 0x0f);
	leat_x86_byte(j, cc >= 0 ? 0x80 | (unsigned int)cc : 0xe9);
	leat_x86_u32(j, target - j->len - 4);
}

void leat_x86_call_to(struct jit *j, uint32_t target)
{
	leat_x86_byte(j, 0xe8);
	leat_x86_u32(j, target - j->len - 4);
}

uint32_t leat_x86_skip(struct jit *j, int cc)
{
	leat_x86_byte(j, cc >= 0 ? 0x70 | (unsigned int)cc : 0xeb);
	leat_x86_byte(j, 0);
	return j->len;
}

void leat_x86_here(struct jit *j, uint32_t skip)
{
	LEAT_ASSERT(j->len - skip < 128);
	if (!j->counting && j->len <= j->mem.size)
		j->mem.write[skip - 1] = (uint8_t)(j->len - skip);
}

/**
 * Distances are taken between places of the pass before. From pass to pass nothing gets longer, so a distance that was
 * short stays so; in the last pass both are where they were.
 */
void leat_x86_goto(struct jit *j, int cc, uint32_t op, uint32_t target, uint32_t behind)
{
	int64_t distance = j->counting ? JUMP_FAR : (int64_t)j->was[2 * target] - (j->was[2 * op + 1] - behind);
	bool near = !j->far && distance >= -128 && distance <= 127;

	if (near) {
		leat_x86_byte(j, cc >= 0 ? 0x70 | (unsigned int)cc : 0xeb);
		leat_x86_byte(j, (unsigned int)distance & 0xff);
		return;
	}
	if (cc >= 0)
		leat_x86_byte(j, 0x0f);
	leat_x86_byte(j, cc >= 0 ? 0x80 | (unsigned int)cc : 0xe9);
	leat_x86_u32(j, (uint32_t)distance);
}

struct jit_out *leat_x86_out(struct jit *j, int cc, uint32_t op, enum jit_stub stub)
{
	struct jit_out *out = j->n_out < j->max_out ? &j->out[j->n_out] : &j->no_out;

	j->n_out++;
	out->op = op;
	out->stub = (uint8_t)stub;
	out->fuel = j->in->fuel;
	leat_x86_jump_to(j, cc, out->was);
	out->back = j->len;
	return out;
}
