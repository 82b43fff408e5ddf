/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_call.c: functions, helpers and tail calls. *control*.
 *
 * r1..r5 are where a helper of C expects its second to sixth argument, so that a call is one instruction more than the
 * call. Arguments that are memory are known to be good where a frame or a value is given whole; where that is not so,
 * leat_jit_call() looks, as the interpreter does. Look-ups in arrays, inner ones and those of maps included, are done in
 * place; other maps' are called without the helper in between.
 */
#include "bpf/engine/jit_x86.h"

#include <string.h>

#include "bpf/map/map.h"

/* ThreadSanitizer does not see compiled code acquire a pointer: there, C does it. */
#if defined(__SANITIZE_THREAD__)
#define POINTERS_BY_C true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define POINTERS_BY_C true
#endif
#endif
#ifndef POINTERS_BY_C
#define POINTERS_BY_C false
#endif

static const struct leat_bpf_helper *helper_at(const struct jit *j, uint32_t i)
{
	return (const struct leat_bpf_helper *)(uintptr_t)j->prog->op[i].imm;
}

/** The map that the helper works on; NULL: it is in the register. */
static struct leat_bpf_map *map_at(const struct jit *j, uint32_t i)
{
	return j->prog->aux[i].map >= 0 ? &j->prog->obj->map[j->prog->aux[i].map] : NULL;
}

/** A map of its type and sizes (an inner map's template); NULL: they differ from path to path. */
static const struct leat_bpf_map *shape_at(const struct jit *j, uint32_t i)
{
	return j->prog->aux[i].like >= 0 ? &j->prog->obj->map[j->prog->aux[i].like] : map_at(j, i);
}

void leat_x86_store_fuel(struct jit *j)
{
	if (j->in->fuel)
		leat_x86_mem(j, X_W, 0x89, FUEL, RUN, RUN_OFF(fuel));
}

void leat_x86_load_fuel(struct jit *j)
{
	if (j->in->fuel)
		leat_x86_mem(j, X_W, 0x8b, FUEL, RUN, RUN_OFF(fuel));
}

/** What a call costs: a number, and what sizes in registers (bit n: r<n>) add to it. */
struct cost {
	uint64_t known;
	unsigned int sizes;
};

/** Takes it from run->fuel, where it is. */
static void burn(struct jit *j, uint32_t i, const struct cost *cost)
{
	unsigned int left = cost->sizes;

	if (left) {
		leat_x86_mov_imm(j, TMP2, cost->known);
		for (; left; left &= left - 1) {
			leat_x86_mov(j, X_W, TMP, leat_jit_reg[__builtin_ctz(left)]);
			leat_x86_rr(j, X_W, 0xc1, 5, TMP); /* shr */
			leat_x86_byte(j, (unsigned int)__builtin_ctz(LEAT_BPF_FUEL_BYTES));
			leat_x86_rr(j, X_W, 0x03, TMP2, TMP);
		}
		leat_x86_mem(j, X_W, 0x29, TMP2, RUN, RUN_OFF(fuel));
	} else if (cost->known) {
		leat_x86_alu_mem_imm(j, X_W, 5, RUN, RUN_OFF(fuel), (int32_t)cost->known);
	}
	if (cost->known || cost->sizes)
		leat_x86_out(j, CC_B, i, STUB_TRAP_FUEL)->fuel = false;
}

static void check_trap(struct jit *j, uint32_t i, enum jit_stub stub)
{
	leat_x86_alu_mem_imm(j, 0, 7, RUN, RUN_OFF(trap), 0);
	leat_x86_out(j, CC_NE, i, stub)->fuel = false;
}

/* ---- what is known of arguments ---- */

/** Whether argument @a, which is memory, is certainly good; adds what it costs to *@cost. */
static bool memory_known(const struct jit *j, uint32_t i, const struct leat_bpf_helper *helper, unsigned int a,
			 const struct leat_bpf_map *map, struct cost *cost)
{
	const struct leat_track_reg *size = &j->track.reg[a + 2];
	uint8_t kind = helper->arg[a];
	bool sized = leat_bpf_arg_is_sized(kind);
	uint64_t bytes = sized ? (uint64_t)size->value :
				 leat_bpf_arg_bytes(kind, map ? map->key_size : 0, map ? map->value_size : 0);

	if (sized && size->kind != LEAT_TRACK_NUMBER) {
		cost->sizes |= 1u << (a + 2);
		return j->prog->aux[i].proven;
	}
	cost->known += bytes / LEAT_BPF_FUEL_BYTES;
	return (j->prog->aux[i].proven || leat_track_arg(&j->track, j->prog, i, a + 1, bytes, kind)) &&
	       cost->known <= INT32_MAX;
}

/** Whether all arguments are certainly good; what they cost goes to *@cost. */
static bool args_known(const struct jit *j, uint32_t i, const struct leat_bpf_helper *helper, struct cost *cost)
{
	const struct leat_bpf_map *map = shape_at(j, i);
	unsigned int a;
	uint8_t kind;

	for (a = 0; a < 5; a++) {
		kind = helper->arg[a];
		if (kind == LEAT_BPF_ARG_RECORD || (kind == LEAT_BPF_ARG_MAP && !map))
			return false;
		if (leat_bpf_arg_is_memory(kind) &&
		    !memory_known(j, i, helper, a, map, cost))
			return false;
	}
	return true;
}

/* ---- look-ups ---- */

static bool is_array(const struct leat_bpf_map *map)
{
	return map->type == &leat_bpf_array || map->type == &leat_bpf_percpu_array;
}

static bool fits(const struct leat_bpf_map *map)
{
	uint64_t region;
	uint8_t *base;

	leat_bpf_array_layout(map, &base, &region);
	return map->value_stride <= INT32_MAX && region <= INT32_MAX && map->max_entries <= INT32_MAX;
}

static void times_stride(struct jit *j, uint32_t stride)
{
	if (stride & (stride - 1)) {
		leat_x86_rr(j, X_W, 0x69, RAX, RAX);
		leat_x86_u32(j, stride);
		return;
	}
	leat_x86_rr(j, X_W, 0xc1, 4, RAX);
	leat_x86_byte(j, (unsigned int)__builtin_ctz(stride));
}

/** rax = the element of this CPU at the key that rdx points to, or NULL. */
static void array_lookup(struct jit *j, const struct leat_bpf_map *map)
{
	uint32_t none, end;
	uint64_t region;
	uint8_t *base;

	leat_bpf_array_layout(map, &base, &region);
	leat_x86_mem(j, 0, 0x8b, RAX, RDX, 0);
	leat_x86_alu_imm(j, 0, 7, RAX, (int32_t)map->max_entries);
	none = leat_x86_skip(j, CC_AE);
	times_stride(j, map->value_stride);
	leat_x86_mov_imm(j, TMP2, (uint64_t)(uintptr_t)base);
	leat_x86_rr(j, X_W, 0x03, RAX, TMP2);
	if (map->type == &leat_bpf_percpu_array) {
		leat_x86_mem(j, 0, 0x8b, TMP2, RUN, RUN_OFF(cpu));
		leat_x86_rr(j, X_W, 0x69, TMP2, TMP2);
		leat_x86_u32(j, (uint32_t)region);
		leat_x86_rr(j, X_W, 0x03, RAX, TMP2);
	}
	end = leat_x86_skip(j, -1);
	leat_x86_here(j, none);
	leat_x86_rr(j, 0, 0x33, RAX, RAX);
	leat_x86_here(j, end);
}

/** rax = the element at the key that rdx points to of the array that rsi points to, which is like @template. */
static void inner_array_lookup(struct jit *j, const struct leat_bpf_map *template)
{
	uint32_t none, end;

	leat_x86_mem(j, 0, 0x8b, RAX, RDX, 0);
	leat_x86_mem(j, 0, 0x3b, RAX, RSI, offsetof(struct leat_bpf_map, max_entries));
	none = leat_x86_skip(j, CC_AE);
	times_stride(j, template->value_stride);
	leat_x86_mem(j, X_W, 0x8b, TMP, RSI, offsetof(struct leat_bpf_map, priv));
	leat_x86_mem(j, X_W, 0x03, RAX, TMP, 0); /* leat_bpf_array_layout() */
	end = leat_x86_skip(j, -1);
	leat_x86_here(j, none);
	leat_x86_rr(j, 0, 0x33, RAX, RAX);
	leat_x86_here(j, end);
}

/** rax = the map at the key that rdx points to, or NULL. A load is an acquire here. */
static void nested_lookup(struct jit *j, const struct leat_bpf_map *map)
{
	uint32_t none, end;

	leat_x86_mem(j, 0, 0x8b, RAX, RDX, 0);
	leat_x86_alu_imm(j, 0, 7, RAX, (int32_t)map->max_entries);
	none = leat_x86_skip(j, CC_AE);
	times_stride(j, sizeof(struct leat_bpf_map *));
	leat_x86_mov_imm(j, TMP2, (uint64_t)(uintptr_t)leat_bpf_nested_entries(map));
	leat_x86_rr(j, X_W, 0x03, RAX, TMP2);
	leat_x86_mem(j, X_W, 0x8b, RAX, RAX, 0);
	end = leat_x86_skip(j, -1);
	leat_x86_here(j, none);
	leat_x86_rr(j, 0, 0x33, RAX, RAX);
	leat_x86_here(j, end);
}

/** The map's own function: map, key, cpu. @map: NULL: it is in rsi, and like @shape. */
static void map_lookup(struct jit *j, struct leat_bpf_map *map, const struct leat_bpf_map *shape)
{
	const struct leat_track_reg *known = &j->track.reg[BPF_REG_1];

	if (!map || (known->kind == LEAT_TRACK_MAP && known->map == map->number))
		leat_x86_mov(j, X_W, RDI, leat_jit_reg[BPF_REG_1]);
	else
		leat_x86_mov_imm(j, RDI, (uint64_t)(uintptr_t)map);
	leat_x86_mov(j, X_W, RSI, RDX);
	leat_x86_mem(j, 0, 0x8b, RDX, RUN, RUN_OFF(cpu));
	leat_x86_call(j, (const void *)(uintptr_t)shape->type->lookup);
}

/** A look-up without a call, where there can be one. */
static bool lookup_in_place(struct jit *j, uint32_t i)
{
	const struct leat_bpf_map *map = map_at(j, i), *shape = shape_at(j, i);

	if (map && is_array(map) && fits(map)) {
		array_lookup(j, map);
	} else if (map && map->type == &leat_bpf_array_of_maps && map->max_entries <= INT32_MAX && !POINTERS_BY_C) {
		nested_lookup(j, map);
	} else if (!map && shape && shape->type == &leat_bpf_array && shape->value_stride <= INT32_MAX) {
		inner_array_lookup(j, shape);
		return true; /* it reads r1 */
	} else {
		return false;
	}
	j->mark[i] |= LEAT_TRACK_INLINED;
	return true;
}

/** The argument that is a map is what the verifier says that it is; where it says no more, the register is good. */
static void set_map(struct jit *j, uint32_t i, const struct leat_bpf_helper *helper)
{
	const struct leat_track_reg *known;
	unsigned int a;

	for (a = 0; a < 5 && map_at(j, i); a++) {
		known = &j->track.reg[a + 1];
		if (helper->arg[a] != LEAT_BPF_ARG_MAP ||
		    (known->kind == LEAT_TRACK_MAP && known->map == j->prog->aux[i].map))
			continue;
		leat_x86_mov_imm(j, leat_jit_reg[a + 1], (uint64_t)(uintptr_t)map_at(j, i));
	}
}

static void call_known(struct jit *j, uint32_t i, const struct leat_bpf_helper *helper)
{
	const struct leat_bpf_map *shape = shape_at(j, i);

	if (helper->id == BPF_FUNC_map_lookup_elem && shape->type->lookup) {
		map_lookup(j, map_at(j, i), shape);
		return;
	}
	set_map(j, i, helper);
	leat_x86_mov(j, X_W, RDI, RUN);
	leat_x86_call(j, (const void *)(uintptr_t)helper->fn);
}

static bool may_trap(const struct leat_bpf_helper *helper)
{
	return (helper->flags & LEAT_BPF_HELPER_TRAPS) ||
	       memchr(helper->arg, LEAT_BPF_ARG_FUNC, sizeof(helper->arg));
}

void leat_x86_call_helper(struct jit *j, uint32_t i)
{
	const struct leat_bpf_helper *helper = helper_at(j, i);
	struct cost cost = { 0 };
	bool known = args_known(j, i, helper, &cost);

	if (known && helper->id == BPF_FUNC_map_lookup_elem && !cost.known && !cost.sizes && lookup_in_place(j, i))
		return;
	j->in->must_call = true;
	leat_x86_store_fuel(j);
	if (known) {
		burn(j, i, &cost);
		call_known(j, i, helper);
		if (may_trap(helper))
			check_trap(j, i, STUB_HELPER_TRAP);
	} else {
		leat_x86_mem(j, 0, 0xc7, 0, RUN, RUN_OFF(insn));
		leat_x86_u32(j, i);
		leat_x86_mov(j, X_W, RDI, RUN);
		leat_x86_call(j, (const void *)(uintptr_t)&leat_jit_call);
		check_trap(j, i, STUB_UNWIND);
	}
	if (helper->flags & LEAT_BPF_HELPER_MOVES_PACKET)
		leat_x86_call_to(j, j->stub[STUB_PACKET]);
	leat_x86_load_fuel(j);
}

/* ---- functions ---- */

static const uint8_t saved_reg[4] = { RBX, R14, R15, R12 };

/** Keeps r6..r9, as far as this function uses them, and the stack aligned. */
static void save(struct jit *j, bool restore)
{
	unsigned int saved = j->in->saved, odd = (unsigned int)__builtin_popcount(saved) & 1, i;

	for (i = 0; i < 4 && !restore; i++)
		if (saved >> i & 1)
			leat_x86_push(j, saved_reg[i]);
	if (odd && !restore)
		leat_x86_push(j, RAX);
	if (odd && restore)
		leat_x86_pop(j, RCX);
	for (i = 4; i-- > 0 && restore;)
		if (saved >> i & 1)
			leat_x86_pop(j, saved_reg[i]);
}

void leat_x86_call_local(struct jit *j, uint32_t i)
{
	const struct leat_bpf_op *op = &j->prog->op[i];
	const struct jit_func *func = &j->func[j->func_of[i + 1 + (uint32_t)op->off]];
	const struct cost cost = { .known = op->imm };

	j->in->must_call = true;
	leat_x86_store_fuel(j);
	leat_x86_alu_mem_imm(j, 0, 7, RUN, RUN_OFF(frames), (int32_t)LEAT_BPF_FRAMES_MAX);
	leat_x86_out(j, CC_AE, i, STUB_TRAP_FRAMES)->fuel = false;
	burn(j, i, &cost);
	save(j, false);
	leat_x86_alu_imm(j, X_W, 5, RBP, -(int32_t)LEAT_BPF_STACK_SIZE);
	leat_x86_mem(j, 0, 0xff, 0, RUN, RUN_OFF(frames)); /* inc */
	leat_x86_call_to(j, func->start <= i ? func->at : func->was);
	leat_x86_mem(j, 0, 0xff, 1, RUN, RUN_OFF(frames)); /* dec */
	leat_x86_alu_imm(j, X_W, 0, RBP, -(int32_t)LEAT_BPF_STACK_SIZE);
	save(j, true);
	if (j->tail_calls) { /* the function may have become another program */
		leat_x86_mov_imm(j, TMP, (uint64_t)(uintptr_t)j->prog);
		leat_x86_mem(j, X_W, 0x89, TMP, RUN, RUN_OFF(prog));
	}
	leat_x86_load_fuel(j);
}

/** What ends a tail call: the other program begins at rax, with the stack as it was when this one began. */
static void leave_for_rax(struct jit *j)
{
	leat_x86_mov(j, X_W, leat_jit_reg[BPF_REG_1], RUN);
	leat_x86_pop(j, RCX); /* what the prologue pushed */
	leat_x86_rr(j, 0, 0xff, 4, RAX); /* jmp rax */
}

/** The way through C, which finds the map. */
static void tail_call_slow(struct jit *j, uint32_t i)
{
	uint32_t falls;

	leat_x86_mem(j, 0, 0xc7, 0, RUN, RUN_OFF(insn));
	leat_x86_u32(j, i);
	leat_x86_mov(j, X_W, RDI, RUN);
	leat_x86_call(j, (const void *)(uintptr_t)&leat_jit_tail);
	leat_x86_rr(j, X_W, 0x85, RAX, RAX);
	falls = leat_x86_skip(j, CC_E);
	leave_for_rax(j);
	leat_x86_here(j, falls);
	check_trap(j, i, STUB_UNWIND);
}

/** leat_bpf_tail_target() for a map that is known: rcx is the index; rdi, r10 and rax are free. */
static void tail_call_known(struct jit *j, uint32_t i, const struct leat_bpf_map *map)
{
	uint32_t falls[4], n;

	leat_x86_alu_imm(j, 0, 7, RCX, (int32_t)map->max_entries);
	falls[0] = leat_x86_skip(j, CC_AE);
	leat_x86_alu_mem_imm(j, 0, 7, RUN, RUN_OFF(tail_calls), (int32_t)LEAT_BPF_TAIL_CALLS_MAX);
	falls[1] = leat_x86_skip(j, CC_AE);
	leat_x86_mov(j, 0, TMP, RCX);
	leat_x86_rr(j, X_W, 0xc1, 4, TMP); /* shl rdi, 3 */
	leat_x86_byte(j, 3);
	leat_x86_mov_imm(j, TMP2, (uint64_t)(uintptr_t)leat_bpf_prog_array_entries(map));
	leat_x86_rr(j, X_W, 0x03, TMP, TMP2);
	leat_x86_mem(j, X_W, 0x8b, TMP, TMP, 0);
	leat_x86_rr(j, X_W, 0x85, TMP, TMP);
	falls[2] = leat_x86_skip(j, CC_E);
	leat_x86_mem(j, X_W, 0x8b, RAX, TMP, offsetof(struct leat_bpf_prog, code));
	leat_x86_rr(j, X_W, 0x85, RAX, RAX);
	falls[3] = leat_x86_skip(j, CC_E);
	leat_x86_mem(j, 0, 0x8b, TMP2, TMP, offsetof(struct leat_bpf_prog, n_ops));
	leat_x86_mem(j, 0, 0xff, 0, RUN, RUN_OFF(tail_calls)); /* inc */
	leat_x86_mem(j, X_W, 0x29, TMP2, RUN, RUN_OFF(fuel));
	leat_x86_out(j, CC_B, i, STUB_TRAP_FUEL)->fuel = false;
	leat_x86_mem(j, X_W, 0x89, TMP, RUN, RUN_OFF(prog));
	leat_x86_mem(j, X_W, 0x8b, RAX, RAX, offsetof(struct leat_bpf_code, main));
	leave_for_rax(j);
	for (n = 0; n < 4; n++)
		leat_x86_here(j, falls[n]);
}

void leat_x86_tail_call(struct jit *j, uint32_t i)
{
	const struct leat_bpf_map *map = map_at(j, i);

	j->in->must_call = true;
	leat_x86_store_fuel(j);
	if (map && map->type == &leat_bpf_prog_array)
		tail_call_known(j, i, map);
	else
		tail_call_slow(j, i);
	leat_x86_mov_imm(j, RAX, (uint64_t)-2); /* -ENOENT */
	leat_x86_load_fuel(j);
}
