/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * callbacks.c: helpers that call functions of the program: bpf_loop() and bpf_for_each_map_elem(). Worker.
 *
 * A callback that returns something other than 0 is the last one. Each costs fuel (leat_bpf_call_func()), so that
 * nobody stays here for ever.
 */
#include "bpf/helper/callbacks.h"

#include <errno.h>

#include "bpf/engine/interp.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"

#define MAYBE __attribute__((unused))

static inline uint64_t error(int err)
{
	return (uint64_t)(int64_t)err;
}

/** loop(iterations, callback(number, arg), arg, flags). Returns how many ran. */
static uint64_t loop(struct leat_bpf_run *run, uint64_t n, uint64_t func, uint64_t arg, uint64_t flags,
		     MAYBE uint64_t a5)
{
	uint64_t args[5] = { 0, arg };
	uint32_t i;

	if (flags)
		return error(-EINVAL);
	if ((uint32_t)n > LEAT_BPF_LOOP_MAX)
		return error(-E2BIG);
	for (i = 0; i < (uint32_t)n; i++) {
		args[0] = i;
		if (leat_bpf_call_func(run, func, args) || run->trap)
			return i + 1;
	}
	return i;
}

/**
 * for_each_map_elem(map, callback(map, key, value, arg), arg, flags). Returns how many ran. The key is a copy, which is
 * the callback's to read. Elements that come or go meanwhile are seen or not; others are seen once.
 */
static uint64_t for_each_map_elem(struct leat_bpf_run *run, uint64_t map_arg, uint64_t func, uint64_t arg,
				  uint64_t flags, MAYBE uint64_t a5)
{
	struct leat_bpf_map *map = (struct leat_bpf_map *)(uintptr_t)map_arg;
	uint64_t copy[LEAT_BPF_KEY_MAX / sizeof(uint64_t)], args[5] = { map_arg, (uint64_t)(uintptr_t)copy, 0, arg };
	struct leat_bpf_lent lent = { .prev = run->lent, .bytes = copy, .size = map->key_size };
	struct leat_bpf_cursor at = { 0 };
	uint64_t n = 0, ended = 0;
	void *value;

	if (flags || !map->type->each || map->key_size > sizeof(copy))
		return error(-EINVAL);
	/* cppcheck-suppress autoVariables ; taken back below */
	run->lent = &lent;
	while (!ended && !run->trap) {
		value = map->type->each(map, &at, copy, run->cpu);
		if (leat_unlikely(!leat_bpf_burn(run, at.steps)))
			run->trap = 1 + LEAT_BPF_TRAP_FUEL;
		if (!value || run->trap)
			break;
		args[2] = (uint64_t)(uintptr_t)value;
		ended = leat_bpf_call_func(run, func, args);
		n++;
	}
	run->lent = lent.prev;
	return n;
}

#define ROW(word, first)                                                                                               \
	{                                                                                                              \
		.id = BPF_FUNC_##word, .name = #word, .fn = word, .ret = LEAT_BPF_RET_NUMBER, .arg = {                 \
			first, LEAT_BPF_ARG_FUNC, LEAT_BPF_ARG_STACK_OR_NULL, LEAT_BPF_ARG_ANY                         \
		},                                                                                                     \
	}

const struct leat_bpf_helper leat_bpf_callback_helpers[] = {
	ROW(loop, LEAT_BPF_ARG_ANY),
	ROW(for_each_map_elem, LEAT_BPF_ARG_MAP),
	{ .name = NULL },
};
