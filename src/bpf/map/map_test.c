/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_test.c: edges of maps: what a definition may say, very large ones, full ones, grace periods of a single thread,
 * LRU, program arrays, and what happens without memory.
 */
#include "bpf/map/test_map.h"

#include "bpf/map/elems.h"
#include "bpf/prog.h"

struct definition {
	uint32_t type, key, value, max, flags;
	int err;
};

#define PERCPU_MAX (32u << 10)
#define RDONLY_PROG ((uint32_t)BPF_F_RDONLY_PROG)
#define WRONLY_PROG ((uint32_t)BPF_F_WRONLY_PROG)

static void definitions_are_checked(void **state)
{
	static const struct definition all[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 1, RDONLY_PROG, 0 },
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE, 0 },
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 1, RDONLY_PROG | WRONLY_PROG, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 0, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY, 8, 8, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY, 4, 0, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 1, NO_PREALLOC, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY, 4, UINT32_MAX, 1, 0, -E2BIG },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, PERCPU_MAX, 1, 0, 0 },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, PERCPU_MAX + 1, 1, 0, -E2BIG },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, BPF_F_MMAPABLE, -EINVAL },
		{ BPF_MAP_TYPE_HASH, 4, 8, 1, NO_PREALLOC | BPF_F_NUMA_NODE, 0 },
		{ BPF_MAP_TYPE_HASH, 512, 1u << 20, 1, 0, 0 },
		{ BPF_MAP_TYPE_HASH, 513, 1, 1, 0, -E2BIG },
		{ BPF_MAP_TYPE_HASH, 4, 4u << 20, 1, 0, -E2BIG },
		{ BPF_MAP_TYPE_HASH, 0, 1, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_HASH, 1, 0, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_HASH, 1, 1, 0, 0, -EINVAL },
		{ BPF_MAP_TYPE_HASH, 1, 1, 1, BPF_F_NO_COMMON_LRU, -EINVAL },
		{ BPF_MAP_TYPE_HASH, 1, 1, UINT32_MAX, 0, -E2BIG },
		{ BPF_MAP_TYPE_PERCPU_HASH, 1, PERCPU_MAX + 1, 1, 0, -E2BIG },
		{ BPF_MAP_TYPE_LRU_HASH, 1, 1, 1, BPF_F_NO_COMMON_LRU, 0 },
		{ BPF_MAP_TYPE_LRU_HASH, 1, 1, 1, NO_PREALLOC, -EOPNOTSUPP },
		{ BPF_MAP_TYPE_LPM_TRIE, 5, 1, 1, NO_PREALLOC, 0 },
		{ BPF_MAP_TYPE_LPM_TRIE, 260, 1, 1, NO_PREALLOC, 0 },
		{ BPF_MAP_TYPE_LPM_TRIE, 4, 1, 1, NO_PREALLOC, -EINVAL },
		{ BPF_MAP_TYPE_LPM_TRIE, 261, 1, 1, NO_PREALLOC, -EINVAL },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 1, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 0, 1, NO_PREALLOC, -EINVAL },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 1, 0, NO_PREALLOC, -EINVAL },
		{ BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 9, 0, 0 },
		{ BPF_MAP_TYPE_PROG_ARRAY, 4, 8, 9, 0, -EINVAL },
		{ BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 9, RDONLY_PROG, -EINVAL },
		{ BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0, 0 },
		{ BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 0, 0, -EINVAL },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0, 0 },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, 2048, 0, -EINVAL },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, 12288, 0, -EINVAL },
		{ BPF_MAP_TYPE_RINGBUF, 4, 0, 4096, 0, -EINVAL },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, NO_PREALLOC, -EINVAL },
	};
	struct test_map t;
	size_t i;
	int err;

	(void)state;
	for (i = 0; i < COUNT(all); i++) {
		err = test_map_try(&t, 2, all[i].type, all[i].key, all[i].value, all[i].max, all[i].flags);
		if (err != all[i].err)
			print_error("definition %zu\n", i);
		assert_int_equal(err, all[i].err);
		if (!err)
			test_map_close(&t);
	}
	assert_null(leat_bpf_map_type_find(BPF_MAP_TYPE_STACK_TRACE));
}

/** Bytes of this process that are in memory. */
static uint64_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/** Whatever its type, a large map costs what is in use of it; one that no machine could hold is not made. */
static void large_maps_cost_what_is_used(void **state)
{
	static const struct { uint32_t type, key, value, max, flags; bool good; } all[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 4, 33554432, 0, true },
		{ BPF_MAP_TYPE_HASH, 8, 16, 4000000, 0, true },
		{ BPF_MAP_TYPE_PERCPU_HASH, 8, 16, 1000000, 0, true },
		{ BPF_MAP_TYPE_LRU_HASH, 16, 32, 4000000, 0, true },
		{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 8, 16, 1000000, 0, true },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 8, 1000000, NO_PREALLOC, true },
		{ BPF_MAP_TYPE_ARRAY, 4, 1 << 20, UINT32_MAX, 0, false },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 32768, UINT32_MAX, 0, false },
		{ BPF_MAP_TYPE_HASH, 8, 1 << 21, 1 << 30, 0, false },
		{ BPF_MAP_TYPE_PERCPU_HASH, 8, 32768, 1 << 30, 0, false },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 1 << 21, 1 << 30, NO_PREALLOC, false },
	};
	uint64_t before, key[2] = { 32, 7 }, value[8] = { 5 };
	struct test_map t;
	size_t i;
	int err;

	(void)state;
	for (i = 0; i < COUNT(all); i++) {
		before = resident();
		err = test_map_try(&t, 2, all[i].type, all[i].key, all[i].value, all[i].max, all[i].flags);
		assert_int_equal(err, all[i].good ? 0 : -ENOMEM);
		if (err)
			continue;
		assert_int_equal(leat_bpf_map_update(&t.map, key, value, BPF_ANY), 0);
		assert_int_equal(leat_bpf_map_lookup(&t.map, key, value), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which keep memory of their own */
		assert_in_range(resident() - before, 0, 16 << 20); /* a large page here and there */
#endif
		test_map_close(&t);
	}
}

/** Katran's: it must cost nothing until it is touched. */
static void a_very_large_array_is_made_at_once(void **state)
{
	uint32_t key = 33000000 - 1, value = 7;
	struct test_map t;

	(void)state;
	test_map_open(&t, 4, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 4, key + 1, 0);
	assert_int_equal(prog_update(&t, &key, &value, BPF_ANY, 3), 0);
	assert_int_equal(*(uint32_t *)prog_lookup(&t, &key, 3), 7);
	assert_int_equal(*(uint32_t *)prog_lookup(&t, &key, 2), 0);
	key++;
	assert_null(prog_lookup(&t, &key, 3));
	test_map_close(&t);
}

static void frozen_maps_are_not_written(void **state)
{
	uint32_t key = 0, value = 1;
	struct test_map t;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), 0);
	t.map.frozen = true;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), -EPERM);
	assert_int_equal(leat_bpf_map_delete(&t.map, &key), -EPERM);
	assert_int_equal(leat_bpf_map_lookup(&t.map, &key, &value), 0);
	assert_int_equal(leat_bpf_map_consume(&t.map, NULL, NULL), -EOPNOTSUPP);
	test_map_close(&t);
}

/** A full map in which one entry goes and another comes, a million times; a reader that is quiescent now and then. */
static void full_maps_take_turns(void **state)
{
	static const uint32_t types[] = { BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_LRU_HASH,
					  BPF_MAP_TYPE_LRU_PERCPU_HASH };
	uint64_t n, more, value = 0, rounds = TEST_ROUNDS(1000000);
	const uint64_t max = 100;
	struct test_map t;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(types); i++) {
		test_map_open(&t, 2, types[i], 8, 8, max, 0);
		leat_epoch_online(&t.epoch, 0);
		for (n = 0; n < max; n++)
			assert_int_equal(prog_update(&t, &n, &value, BPF_NOEXIST, 0), 0);
		for (n = 0; n < rounds; n++) {
			more = n + max;
			if (types[i] == BPF_MAP_TYPE_HASH || types[i] == BPF_MAP_TYPE_PERCPU_HASH)
				assert_int_equal(prog_update(&t, &more, &value, BPF_ANY, 0), -E2BIG);
			assert_int_equal(prog_delete(&t, &n, n % 2), 0);
			assert_int_equal(prog_update(&t, &more, &n, BPF_NOEXIST, 0), 0);
			if (n % 1000 == 0)
				leat_epoch_quiescent(&t.epoch, 0);
		}
		leat_epoch_offline(&t.epoch, 0);
		test_map_close(&t);
	}
}

/** Elements that a reader may hold are not used again, and in the end there are no more. */
static void readers_keep_what_they_found(void **state)
{
	uint64_t key = 1, n, *held;
	struct test_map t;
	int err = 0;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	leat_epoch_online(&t.epoch, 0);
	n = 100;
	assert_int_equal(prog_update(&t, &key, &n, BPF_ANY, 0), 0);
	held = prog_lookup(&t, &key, 0);
	for (n = 0; !err; n++) {
		err = prog_update(&t, &key, &n, BPF_ANY, 0);
		assert_int_equal(*held, 100);
	}
	assert_int_equal(err, -ENOMEM);
	assert_true(n > LEAT_ELEMS_SLACK);
	leat_epoch_quiescent(&t.epoch, 0);
	assert_int_equal(prog_update(&t, &key, &n, BPF_ANY, 0), 0);
	leat_epoch_offline(&t.epoch, 0);
	test_map_close(&t);
}

static unsigned int lru_count(struct test_map *t, uint32_t from, uint32_t to)
{
	unsigned int n = 0;
	uint32_t key;
	uint64_t value;

	for (key = from; key < to; key++)
		n += !leat_bpf_map_lookup(&t->map, &key, &value);
	return n;
}

/** What is looked up all the time stays; the rest makes room. */
static void lru_keeps_what_is_used(void **state)
{
	const uint32_t max = 1000, hot = 100;
	uint64_t value = 1;
	struct test_map t;
	uint32_t key, k;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_LRU_HASH, 4, 8, max, 0);
	for (key = 0; key < 20 * max; key++) {
		assert_int_equal(prog_update(&t, &key, &value, BPF_ANY, 0), 0);
		for (k = 0; key % 50 == 0 && k < hot; k++)
			(void)prog_lookup(&t, &k, 0);
	}
	assert_true(lru_count(&t, 0, 20 * max) == max);
	assert_true(lru_count(&t, 0, hot) > hot * 9 / 10);
	assert_true(lru_count(&t, 19 * max, 20 * max) > max / 2);
	key = 20 * max;
	assert_int_equal(prog_update(&t, &key, &value, BPF_EXIST, 0), -ENOENT);
	test_map_close(&t);
}

/** Walks that begin anew where the key has gone; and end. */
static void iteration_bears_changes(void **state)
{
	uint32_t key, next, gone = 1000, value = 0;
	unsigned int n = 0;
	struct test_map t;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_HASH, 4, 4, 100, 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, NULL, &next), -ENOENT);
	for (key = 0; key < 100; key++)
		assert_int_equal(prog_update(&t, &key, &value, BPF_ANY, 0), 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, NULL, &key), 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, &gone, &next), 0);
	assert_int_equal(key, next);
	/* deleting each key after its successor was asked for visits all */
	for (; !leat_bpf_map_next_key(&t.map, &key, &next); key = next, n++)
		assert_int_equal(prog_delete(&t, &key, 0), 0);
	assert_int_equal(n, 99);
	assert_int_equal(prog_delete(&t, &key, 0), 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, NULL, &next), -ENOENT);
	test_map_close(&t);
}

static void arrays_iterate_as_in_the_kernel(void **state)
{
	uint32_t key, next;
	struct test_map t;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_ARRAY, 4, 4, 2, 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, NULL, &next), 0);
	assert_int_equal(next, 0);
	assert_int_equal(leat_bpf_map_next_key(&t.map, &next, &next), 0);
	assert_int_equal(next, 1);
	assert_int_equal(leat_bpf_map_next_key(&t.map, &next, &next), -ENOENT);
	key = 7;
	assert_int_equal(leat_bpf_map_next_key(&t.map, &key, &next), 0);
	assert_int_equal(next, 0);
	test_map_close(&t);
}

static void program_arrays_hold_programs(void **state)
{
	struct leat_bpf_prog progs[2] = { { .number = 0, .loaded = true }, { .number = 1 } };
	struct leat_bpf_object obj = { .prog = progs, .n_progs = 2 };
	uint32_t key = 1, value = 0;
	struct test_map t;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2, 0);
	t.map.obj = &obj;
	assert_int_equal(leat_bpf_map_lookup(&t.map, &key, &value), -ENOENT);
	assert_int_equal(leat_bpf_map_delete(&t.map, &key), -ENOENT);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_NOEXIST), -EINVAL);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), 0);
	assert_ptr_equal(leat_bpf_prog_array_get(&t.map, 1), &progs[0]);
	assert_int_equal(leat_bpf_map_lookup(&t.map, &key, &value), 0);
	assert_int_equal(value, 0);
	value = 1; /* not loaded */
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), -EBADF);
	value = 2; /* no such program */
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), -EBADF);
	assert_int_equal(leat_bpf_map_delete(&t.map, &key), 0);
	assert_null(leat_bpf_prog_array_get(&t.map, 1));
	assert_null(leat_bpf_prog_array_get(&t.map, 2));
	key = 2;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), -E2BIG);
	assert_int_equal(leat_bpf_map_delete(&t.map, &key), -E2BIG);
	test_map_close(&t);
}

static void every_allocation_may_fail(void **state)
{
	static const struct definition all[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 10, 0, 0 },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 10, 0, 0 },
		{ BPF_MAP_TYPE_HASH, 4, 8, 10, 0, 0 },
		{ BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 10, 0, 0 },
		{ BPF_MAP_TYPE_LRU_HASH, 4, 8, 10, 0, 0 },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 8, 10, NO_PREALLOC, 0 },
		{ BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 10, 0, 0 },
		{ BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 10, 0, 0 },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0, 0 },
	};
	const struct definition *d;
	struct test_map t;
	unsigned long nth;
	int err;

	(void)state;
	for (d = all; d < all + COUNT(all); d++) {
		for (nth = 1, err = -1; err; nth++) {
			leat_heap_fail_nth(nth);
			err = test_map_try(&t, 3, d->type, d->key, d->value, d->max, d->flags);
			assert_int_equal(err, leat_heap_failed() ? -ENOMEM : 0);
			leat_heap_fail_nth(0);
		}
		assert_true(nth > 5);
		test_map_close(&t);
	}
}

static void environments(void **state)
{
	struct leat_bpf_env_opts opts = { .size = sizeof(opts), .cpus = LEAT_BPF_CPUS_MAX + 1 };
	struct leat_bpf_env *env = NULL;

	(void)state;
	assert_int_equal(leat_bpf_env_create(&opts, &env), -EINVAL);
	assert_null(env);
	assert_int_equal(leat_bpf_env_create(NULL, &env), 0);
	assert_int_equal(env->cpus, 1);
	assert_true(env->fuel == LEAT_BPF_FUEL_DEFAULT);
	assert_true(leat_epoch_passed(env->epoch, leat_epoch_begin(env->epoch)));
	leat_bpf_env_set_time(env, 5);
	assert_true(env->now == 5);
	assert_false(leat_epoch_passed(env->epoch, leat_epoch_begin(env->epoch)));
	leat_bpf_env_destroy(env);
	leat_bpf_env_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definitions_are_checked),
		cmocka_unit_test(a_very_large_array_is_made_at_once),
		cmocka_unit_test(large_maps_cost_what_is_used),
		cmocka_unit_test(frozen_maps_are_not_written),
		cmocka_unit_test(full_maps_take_turns),
		cmocka_unit_test(readers_keep_what_they_found),
		cmocka_unit_test(lru_keeps_what_is_used),
		cmocka_unit_test(iteration_bears_changes),
		cmocka_unit_test(arrays_iterate_as_in_the_kernel),
		cmocka_unit_test(program_arrays_hold_programs),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(environments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
