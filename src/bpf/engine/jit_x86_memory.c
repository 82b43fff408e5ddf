/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_memory.c: loads, stores, the context, and the tests before accesses. *control*.
 *
 * A test is inline where a region is one piece: the packet (run->packet and, for each size, how many places there are
 * to begin at), the current frame, a map with one value. Whatever does not pass, and every other region, goes to code
 * behind the rest, which asks leat_bpf_access_ok() where that may say yes, and traps else.
 */
#include "bpf/engine/jit_x86.h"

static unsigned int reg(unsigned int bpf)
{
	return leat_jit_reg[bpf];
}

/* ---- tests ---- */

/** Out of line: asks about the address @bpf_reg + offset; comes back when it is good. @cc: -1: always. */
static void ask(struct jit *j, int cc, uint32_t i, unsigned int bpf_reg)
{
	struct jit_out *out = leat_x86_out(j, cc, i, STUB_ACCESS);

	out->reg = (uint8_t)reg(bpf_reg);
	out->off = j->prog->insn[i].off;
	j->in->must_call = true;
}

/** rdi = the address, as a distance from the packet; AE when the access would not be in it. */
static void test_packet(struct jit *j, uint32_t i, unsigned int bpf_reg)
{
	uint32_t size = leat_insn_size(&j->prog->insn[i]);
	int32_t room = RUN_OFF(room) + 8 * __builtin_ctz(size);

	j->must_guard = true;
	leat_x86_lea(j, TMP, reg(bpf_reg), j->prog->insn[i].off);
	leat_x86_mem(j, X_W, 0x2b, TMP, RUN, RUN_OFF(packet));
	leat_x86_mem(j, X_W, 0x3b, TMP, RUN, room);
}

static void guard_packet(struct jit *j, uint32_t i, unsigned int bpf_reg)
{
	test_packet(j, i, bpf_reg);
	leat_x86_out(j, CC_AE, i, STUB_TRAP_ACCESS);
	leat_track_in_packet(&j->track, j->prog, i, bpf_reg);
}

static void guard_frame(struct jit *j, uint32_t i, unsigned int bpf_reg)
{
	const struct bpf_insn *insn = &j->prog->insn[i];

	leat_x86_lea(j, TMP, reg(bpf_reg), insn->off + (int32_t)LEAT_BPF_STACK_SIZE);
	leat_x86_rr(j, X_W, 0x2b, TMP, RBP);
	leat_x86_alu_imm(j, X_W, 7, TMP, (int32_t)(LEAT_BPF_STACK_SIZE - leat_insn_size(insn)));
	leat_x86_out(j, CC_A, i, STUB_TRAP_ACCESS);
}

/** A map that is one value, and whether this access is allowed to it at all. */
static bool is_one_value(const struct leat_bpf_map *map, uint32_t size, bool write)
{
	return map->type == &leat_bpf_array && map->max_entries == 1 && map->value_size >= size &&
	       map->value_size <= INT32_MAX && !(write && (map->frozen || (map->map_flags & BPF_F_RDONLY_PROG)));
}

static void guard_value(struct jit *j, uint32_t i, unsigned int bpf_reg, const struct leat_bpf_map *map)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	uint64_t region;
	uint8_t *base;

	leat_bpf_array_layout(map, &base, &region);
	leat_x86_mov_imm(j, TMP2, (uint64_t)(uintptr_t)base);
	leat_x86_lea(j, TMP, reg(bpf_reg), insn->off);
	leat_x86_rr(j, X_W, 0x2b, TMP, TMP2);
	leat_x86_alu_imm(j, X_W, 7, TMP, (int32_t)(map->value_size - leat_insn_size(insn)));
	leat_x86_out(j, CC_A, i, STUB_TRAP_ACCESS);
}

void leat_x86_guard(struct jit *j, uint32_t i, unsigned int bpf_reg, bool write)
{
	const struct leat_bpf_aux *aux = &j->prog->aux[i];
	const struct leat_bpf_map *map = aux->map >= 0 ? &j->prog->obj->map[aux->map] : NULL;
	uint32_t size = leat_insn_size(&j->prog->insn[i]);

	if (aux->proven || leat_track_access(&j->track, j->prog, i, bpf_reg, write))
		return;
	if (aux->region == LEAT_BPF_REGION_PACKET) {
		guard_packet(j, i, bpf_reg);
	} else if (aux->region == LEAT_BPF_REGION_STACK && !aux->frame && !(write && aux->keep)) {
		guard_frame(j, i, bpf_reg);
	} else if (aux->region == LEAT_BPF_REGION_MAP && map && is_one_value(map, size, write)) {
		guard_value(j, i, bpf_reg, map);
	} else if (aux->region == LEAT_BPF_REGION_ANY) {
		test_packet(j, i, bpf_reg);
		ask(j, CC_AE, i, bpf_reg);
	} else {
		ask(j, -1, i, bpf_reg);
	}
}

/* ---- loads and stores ---- */

static void load(struct jit *j, const struct bpf_insn *insn, int op)
{
	static const struct {
		uint32_t op;
		unsigned int flags;
	} how[] = { { 0x0fb6, 0 },   { 0x0fb7, 0 },   { 0x8b, 0 },  { 0x8b, X_W },
		    { 0x0fbe, X_W }, { 0x0fbf, X_W }, { 0x63, X_W } };
	unsigned int which = (unsigned int)(op - LEAT_OP_LDX8);

	leat_x86_mem(j, how[which].flags, how[which].op, reg(insn->dst_reg), reg(insn->src_reg), insn->off);
}
LEAT_STATIC_ASSERT(LEAT_OP_LDXS8 == LEAT_OP_LDX8 + 4, "as in the table above");

static unsigned int width(uint32_t size)
{
	return size == 8 ? X_W : size == 2 ? X_16 : 0;
}

static void store(struct jit *j, const struct bpf_insn *insn)
{
	uint32_t size = leat_insn_size(insn);

	leat_x86_mem(j, width(size) | (size == 1 ? X_BYTE : 0), size == 1 ? 0x88 : 0x89, reg(insn->src_reg),
		     reg(insn->dst_reg), insn->off);
}

static void store_imm(struct jit *j, const struct bpf_insn *insn)
{
	uint32_t size = leat_insn_size(insn), i;

	leat_x86_mem(j, width(size), size == 1 ? 0xc6 : 0xc7, 0, reg(insn->dst_reg), insn->off);
	for (i = 0; i < (size == 8 ? 4 : size); i++)
		leat_x86_byte(j, (uint32_t)insn->imm >> 8 * i & 0xff);
}

/** A member of the context (contract.h). */
static void load_ctx(struct jit *j, uint32_t i)
{
	static const int32_t of_buff[] = { offsetof(struct leat_xdp_buff, data), offsetof(struct leat_xdp_buff, data_end),
					   offsetof(struct leat_xdp_buff, data_meta) };
	unsigned int dst = reg(j->prog->insn[i].dst_reg), member = j->prog->aux[i].ctx_load - 1u;
	uint32_t none;

	if (member == 5) {
		leat_x86_mem(j, 0, 0x8b, dst, RUN, RUN_OFF(egress_port));
		return;
	}
	leat_x86_mem(j, X_W, 0x8b, dst, RUN, RUN_OFF(xdp));
	if (member < 3) {
		leat_x86_mem(j, X_W, 0x8b, dst, dst, of_buff[member]);
		return;
	}
	leat_x86_mem(j, X_W, 0x8b, dst, dst, offsetof(struct leat_xdp_buff, rxq));
	leat_x86_rr(j, X_W, 0x85, dst, dst);
	none = leat_x86_skip(j, CC_E);
	leat_x86_mem(j, 0, 0x8b, dst, dst,
		     member == 3 ? (int32_t)offsetof(struct leat_xdp_rxq, port)
				 : (int32_t)offsetof(struct leat_xdp_rxq, queue));
	leat_x86_here(j, none);
}

void leat_x86_memory(struct jit *j, uint32_t i, int op)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	uint64_t value;

	if (j->prog->aux[i].ctx_load) {
		load_ctx(j, i);
	} else if (leat_insn_row[op].form != LEAT_FORM_LDX) {
		leat_x86_guard(j, i, insn->dst_reg, true);
		if (leat_insn_row[op].form == LEAT_FORM_ST)
			store_imm(j, insn);
		else
			store(j, insn);
	} else if (leat_track_folds(&j->track, j->prog, i, op, &value)) {
		leat_x86_mov_imm(j, reg(insn->dst_reg), value);
	} else {
		leat_x86_guard(j, i, insn->src_reg, false);
		load(j, insn, op);
	}
}
