/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * structure.c: what can be said of a program without walking it: every instruction is one, jumps end on
 * instructions of the same function, functions do not fall off their end, maps and values that are named exist. Also
 * the registers that are still wanted at each instruction, which keeps the walk short. *control*.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <string.h>

#define LIVE_PASSES 64 /* nested loops need as many; beyond, every register counts as wanted */

static int check_map_value(struct leat_verifier *v, uint32_t pc)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];
	const struct leat_bpf_map *map = &v->prog->obj->map[insn->imm];

	if (map->type->type != BPF_MAP_TYPE_ARRAY || map->max_entries != 1 || map->key_size != sizeof(uint32_t))
		return leat_verify_refuse(v, pc, 0, "map %s is no array of one value: no address within it is known",
					  map->name);
	if ((uint32_t)insn[1].imm >= map->value_size)
		return leat_verify_refuse(v, pc, 0, "byte %u is past the value of map %s (%u bytes)",
					  (uint32_t)insn[1].imm, map->name, map->value_size);
	return 0;
}

/** A 64-bit load: its second half, and what it names. */
static int check_ld64(struct leat_verifier *v, uint32_t pc, int op)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];

	if (pc + 1 >= v->prog->n_insns || insn[1].code || insn[1].dst_reg || insn[1].src_reg || insn[1].off)
		return leat_verify_refuse(v, pc, 0, "its second half is missing");
	v->mark[pc + 1] |= LEAT_MARK_SECOND;
	if (op == LEAT_OP_LD64_MAP && insn[1].imm)
		return leat_verify_refuse(v, pc, 0, "a reserved field (second immediate) is not zero");
	if ((op == LEAT_OP_LD64_MAP || op == LEAT_OP_LD64_VALUE) && (uint32_t)insn->imm >= v->prog->obj->n_maps)
		return leat_verify_refuse(v, pc, 0, "there is no map number %d", insn->imm);
	return op == LEAT_OP_LD64_VALUE ? check_map_value(v, pc) : 0;
}

/** A shift by an immediate. */
static bool is_shift(const struct bpf_insn *insn, int op)
{
	uint8_t code = BPF_OP(insn->code);

	return leat_insn_row[op].form == LEAT_FORM_ALU_K && (code == BPF_LSH || code == BPF_RSH || code == BPF_ARSH);
}

static int check_insn(struct leat_verifier *v, uint32_t pc)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];
	int op = leat_insn_find(insn);
	const char *field;

	if (op < 0)
		return leat_verify_refuse(v, pc, 0, "opcode 0x%02x with these fields is unknown", insn->code);
	v->op[pc] = (int16_t)op;
	field = leat_insn_reserved(insn, op);
	if (field && !strcmp(field, "register"))
		return leat_verify_refuse(v, pc, 0, "there is no such register");
	if (field)
		return leat_verify_refuse(v, pc, 0, "a reserved field (%s) is not zero", field);
	if ((leat_insn_use[leat_insn_row[op].form] & LEAT_SET_DST) && insn->dst_reg == BPF_REG_10)
		return leat_verify_refuse(v, pc, 0, "r10 cannot be written");
	if ((insn->imm & BPF_FETCH) && leat_insn_row[op].form == LEAT_FORM_ATOMIC && insn->src_reg == BPF_REG_10 &&
	    insn->imm != BPF_CMPXCHG)
		return leat_verify_refuse(v, pc, 0, "r10 cannot be written");
	if (is_shift(insn, op) && (uint32_t)insn->imm >= (leat_insn_is32(insn) ? 32u : 64u))
		return leat_verify_refuse(v, pc, 0, "a shift by %d bits", insn->imm);
	return leat_insn_row[op].form == LEAT_FORM_LD64 ? check_ld64(v, pc, op) : 0;
}

/** Distance of @pc's jump, call or function address; false: it has none. */
static bool distance(const struct leat_verifier *v, uint32_t pc, int32_t *dist)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];
	int op = v->op[pc], form = leat_insn_row[op].form;

	if (op == LEAT_OP_CALL_LOCAL || op == LEAT_OP_LD64_FUNC)
		*dist = insn->imm;
	else if (form >= LEAT_FORM_JA && form <= LEAT_FORM_JMP_X)
		*dist = leat_insn_jump(insn, op);
	else
		return false;
	return true;
}

static int check_target(struct leat_verifier *v, uint32_t pc)
{
	int64_t target;
	int32_t dist;

	if (!distance(v, pc, &dist))
		return 0;
	target = (int64_t)pc + 1 + dist;
	if (target < 0 || target >= v->prog->n_insns)
		return leat_verify_refuse(v, pc, 0, "it leads out of the program");
	if (v->mark[target] & LEAT_MARK_SECOND)
		return leat_verify_refuse(v, pc, 0, "it leads into the middle of a 64-bit load");
	v->mark[target] |= LEAT_MARK_TARGET;
	if (v->op[pc] == LEAT_OP_CALL_LOCAL || v->op[pc] == LEAT_OP_LD64_FUNC)
		v->mark[target] |= LEAT_MARK_FUNC;
	return 0;
}

static bool is_insn(const struct leat_verifier *v, uint32_t pc)
{
	return !(v->mark[pc] & LEAT_MARK_SECOND);
}

/** Jumps stay in their function, and no function runs into the next. */
static int check_function_of(struct leat_verifier *v, uint32_t pc)
{
	uint32_t last = v->op[pc] >= 0 && leat_insn_row[v->op[pc]].form == LEAT_FORM_LD64 ? pc + 1 : pc;
	bool ends = last + 1 == v->prog->n_insns || (v->mark[last + 1] & LEAT_MARK_FUNC);
	uint8_t form = leat_insn_row[v->op[pc]].form;
	int32_t dist;

	if (ends && form != LEAT_FORM_EXIT && form != LEAT_FORM_JA && form != LEAT_FORM_JA32)
		return leat_verify_refuse(v, pc, 0, "the function ends here without exit or jump");
	if (form >= LEAT_FORM_JA && form <= LEAT_FORM_JMP_X && distance(v, pc, &dist) &&
	    v->func[(int64_t)pc + 1 + dist] != v->func[pc])
		return leat_verify_refuse(v, pc, 0, "it leads into another function");
	return 0;
}

/* ---- registers that are wanted ---- */

static uint16_t helper_uses(const struct bpf_insn *insn)
{
	const struct leat_bpf_helper *helper = leat_bpf_helper_find(insn->imm);
	uint16_t uses = 0;
	unsigned int i;

	for (i = 0; helper && i < 5; i++)
		if (helper->arg[i] != LEAT_BPF_ARG_NONE)
			uses |= (uint16_t)(1u << (i + 1));
	return uses;
}

/** Registers that @pc reads, and those it writes. */
static void uses_of(const struct leat_verifier *v, uint32_t pc, uint16_t *reads, uint16_t *writes)
{
	const struct bpf_insn *insn = &v->prog->insn[pc];
	int op = v->op[pc];
	uint8_t use = leat_insn_use[leat_insn_row[op].form];

	*reads = (uint16_t)((use & LEAT_USE_DST ? 1u << insn->dst_reg : 0) |
			    (use & LEAT_USE_SRC ? 1u << insn->src_reg : 0));
	*writes = (uint16_t)(use & LEAT_SET_DST ? 1u << insn->dst_reg : 0);
	if (op == LEAT_OP_EXIT || op == LEAT_OP_ACMPXCHG32 || op == LEAT_OP_ACMPXCHG64)
		*reads |= 1u;
	if (op == LEAT_OP_CALL_LOCAL)
		*reads |= 0x3e;
	if (op == LEAT_OP_CALL)
		*reads |= helper_uses(insn);
	if (leat_insn_row[op].form == LEAT_FORM_CALL || leat_insn_row[op].form == LEAT_FORM_KFUNC)
		*writes = 0x3f;
}

static uint16_t wanted_after(const struct leat_verifier *v, uint32_t pc)
{
	uint8_t form = leat_insn_row[v->op[pc]].form;
	uint32_t next = pc + (form == LEAT_FORM_LD64 ? 2 : 1);
	uint16_t live = 0;
	int32_t dist;

	if (form == LEAT_FORM_EXIT)
		return 0;
	if (form != LEAT_FORM_JA && form != LEAT_FORM_JA32 && next < v->prog->n_insns)
		live = v->live[next];
	if (form >= LEAT_FORM_JA && form <= LEAT_FORM_JMP_X && distance(v, pc, &dist))
		live |= v->live[(int64_t)pc + 1 + dist];
	return live;
}

static void find_live(struct leat_verifier *v)
{
	uint16_t reads, writes, live;
	unsigned int pass;
	bool changed = true;
	uint32_t pc;

	for (pass = 0; changed && pass < LIVE_PASSES; pass++) {
		changed = false;
		for (pc = v->prog->n_insns; pc-- > 0;) {
			if (!is_insn(v, pc))
				continue;
			uses_of(v, pc, &reads, &writes);
			live = (uint16_t)((wanted_after(v, pc) & ~writes) | reads);
			changed |= live != v->live[pc];
			v->live[pc] = live;
		}
	}
	for (pc = 0; changed && pc < v->prog->n_insns; pc++)
		v->live[pc] = 0x3ff;
}

static void find_functions(struct leat_verifier *v)
{
	uint32_t pc, start = 0;

	v->mark[0] |= LEAT_MARK_FUNC;
	for (pc = 0; pc < v->prog->n_insns; pc++) {
		if (v->mark[pc] & LEAT_MARK_FUNC)
			start = pc;
		v->func[pc] = start;
	}
}

/** A call with a callback is come back to: paths meet there, too. */
static void mark_callbacks(struct leat_verifier *v)
{
	const struct leat_bpf_helper *helper;
	uint32_t pc;

	for (pc = 0; pc < v->prog->n_insns; pc++) {
		if (!is_insn(v, pc) || v->op[pc] != LEAT_OP_CALL)
			continue;
		helper = leat_bpf_helper_find(v->prog->insn[pc].imm);
		if (helper && memchr(helper->arg, LEAT_BPF_ARG_FUNC, sizeof(helper->arg)))
			v->mark[pc] |= LEAT_MARK_TARGET | LEAT_MARK_LOOP;
	}
}

int leat_verify_structure(struct leat_verifier *v)
{
	int (*const checks[])(struct leat_verifier *, uint32_t) = { check_insn, check_target, check_function_of };
	unsigned int i;
	uint32_t pc;
	int err;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (checks[i] == check_function_of)
			find_functions(v);
		for (pc = 0; pc < v->prog->n_insns; pc++) {
			err = is_insn(v, pc) ? checks[i](v, pc) : 0;
			if (err)
				return err;
		}
	}
	mark_callbacks(v);
	find_live(v);
	return leat_verify_loops(v);
}

bool leat_verify_calls(const struct leat_verifier *v, uint32_t pc, uint32_t *target)
{
	*target = pc + 1 + (uint32_t)v->prog->insn[pc].imm;
	return v->op[pc] == LEAT_OP_CALL_LOCAL || v->op[pc] == LEAT_OP_LD64_FUNC;
}

/* ---- tail calls in functions ---- */

/**
 * Whether the function that begins at @start, called with @above bytes in use, or one that it calls, has a tail call.
 */
static int check_tail_stack(struct leat_verifier *v, uint32_t start, uint32_t above, unsigned int level)
{
	const struct leat_bpf_helper *helper;
	uint32_t pc, callee, used = above + v->depth[start];
	int err;

	for (pc = start; level < LEAT_BPF_FRAMES_MAX && pc < v->prog->n_insns && v->func[pc] == start; pc++) {
		if (++v->walked > 8 * LEAT_VERIFY_BUDGET)
			return leat_verify_refuse(v, pc, 0, "the program has too many calls");
		if (!is_insn(v, pc) || !v->prog->aux[pc].reached)
			continue;
		helper = v->op[pc] == LEAT_OP_CALL ? leat_bpf_helper_find(v->prog->insn[pc].imm) : NULL;
		if (helper && (helper->flags & LEAT_BPF_HELPER_TAIL_CALL) && level && above >= 256)
			return leat_verify_refuse(
				v, pc, 0,
				"a tail call in a function whose callers use %u bytes of stack: fewer "
				"than 256 are allowed",
				above);
		if (!leat_verify_calls(v, pc, &callee))
			continue;
		err = check_tail_stack(v, callee, used, level + 1);
		if (err)
			return err;
	}
	return 0;
}

static bool has_tail_call(const struct leat_verifier *v)
{
	const struct leat_bpf_helper *helper;
	uint32_t pc;

	for (pc = 0; pc < v->prog->n_insns; pc++) {
		if (!v->func[pc] || !is_insn(v, pc) || v->op[pc] != LEAT_OP_CALL)
			continue;
		helper = leat_bpf_helper_find(v->prog->insn[pc].imm);
		if (helper && (helper->flags & LEAT_BPF_HELPER_TAIL_CALL))
			return true;
	}
	return false;
}

int leat_verify_tail_stack(struct leat_verifier *v)
{
	v->walked = 0;
	return has_tail_call(v) ? check_tail_stack(v, 0, 0, 0) : 0;
}
