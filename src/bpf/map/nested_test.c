/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested_test.c: maps of maps for control: what may be put where, how long an inner map stays, and inner maps that are
 * replaced while workers use them.
 */
#include "mem/test_mem.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "bpf/test_run.h"

/* ---- what may be put where ---- */

struct definition {
	uint32_t type, key, value, max, flags;
	int err;
};

static int try_outer(struct test_bpf *t, const struct definition *d, struct leat_bpf_map *inner)
{
	struct leat_bpf_map *map = test_bpf_define(t, d->type, d->key, d->value, d->max, d->flags);
	int err;

	map->inner = inner;
	err = leat_bpf_map_create(map, NULL);
	leat_bpf_map_destroy(map);
	return err;
}

static void definitions_are_checked(void **state)
{
	static const struct definition all[] = {
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, BPF_F_NUMA_NODE, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 0, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 8, 4, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 8, 1, 0, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, BPF_F_RDONLY_PROG, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, BPF_F_MMAPABLE, -EINVAL },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, BPF_F_INNER_MAP, -EINVAL },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 16, 4, 9, 0, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 16, 4, 9, BPF_F_NO_PREALLOC, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 16, 8, 9, 0, -EINVAL },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 0, 4, 9, 0, -EINVAL },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 16, 4, 9, BPF_F_NO_COMMON_LRU, -EINVAL },
	};
	struct leat_bpf_map *inner;
	struct test_bpf t;
	size_t i;
	int n;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	inner = &t.map[test_bpf_template(&t, BPF_MAP_TYPE_HASH, 4, 8, 3, 0)];
	for (i = 0; i < COUNT(all); i++)
		assert_int_equal(try_outer(&t, &all[i], inner), all[i].err);
	/* inner maps that cannot be */
	assert_int_equal(try_outer(&t, &all[0], NULL), -EINVAL);
	inner->value_size = 0;
	assert_int_equal(try_outer(&t, &all[0], inner), -EINVAL);
	inner->type = NULL;
	assert_int_equal(try_outer(&t, &all[0], inner), -EOPNOTSUPP);
	n = test_bpf_template(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 3, 0);
	assert_int_equal(try_outer(&t, &all[8], &t.map[n]), -EOPNOTSUPP);
	n = test_bpf_template(&t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 3, 0);
	assert_int_equal(try_outer(&t, &all[8], &t.map[n]), -EINVAL);
	test_bpf_end(&t);
}

/** All of them in one object: inner maps of both, a template each, and maps that differ in one thing. */
enum { LIKE, OUTER, TWIN, LONGER, WIDER, KEYED, READ_ONLY, HASHED, HASH_LIKE, HASH_OUTER, FREE };

static void begin(struct test_bpf *t)
{
	assert_int_equal(test_bpf_begin(t, 0), 0);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_ARRAY, 4, 8, 3, 0), LIKE);
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 3, LIKE), OUTER);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 8, 3, 0), TWIN);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0), LONGER);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 3, 0), WIDER);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_HASH, 8, 8, 3, 0), KEYED);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 8, 3, BPF_F_RDONLY_PROG), READ_ONLY);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_HASH, 4, 8, 100, 0), HASHED);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_HASH, 4, 8, 3, 0), HASH_LIKE);
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_HASH_OF_MAPS, 8, 2, HASH_LIKE), HASH_OUTER);
	test_bpf_more_maps(t);
}

static void arrays_of_maps(void **state)
{
	const uint32_t bad[] = { LONGER, WIDER, KEYED, READ_ONLY, HASHED, OUTER };
	uint32_t key = 1, number = TWIN, got = 99, i;
	struct leat_bpf_map *outer;
	struct test_bpf t;

	(void)state;
	begin(&t);
	outer = &t.map[OUTER];
	assert_int_equal(leat_bpf_map_lookup(outer, &key, &got), -ENOENT);
	assert_int_equal(leat_bpf_map_delete(outer, &key), -ENOENT);
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_NOEXIST), -EINVAL);
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), 0);
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), 0);
	assert_int_equal(leat_bpf_map_lookup(outer, &key, &got), 0);
	assert_int_equal(got, TWIN);
	assert_ptr_equal(leat_bpf_map_get_inner(outer, &key), &t.map[TWIN]);
	assert_ptr_equal(outer->type->lookup(outer, &key, 0), &t.map[TWIN]);
	for (i = 0; i < COUNT(bad); i++)
		assert_int_equal(leat_bpf_map_update(outer, &key, &bad[i], BPF_ANY), -EINVAL);
	number = LIKE; /* is no map */
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), -EBADF);
	number = FREE;
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), -EBADF);
	number = UINT32_MAX;
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), -EBADF);
	assert_int_equal(leat_bpf_map_delete(outer, &key), 0);
	assert_null(leat_bpf_map_get_inner(outer, &key));
	key = 3;
	assert_int_equal(leat_bpf_map_update(outer, &key, &number, BPF_ANY), -E2BIG);
	assert_int_equal(leat_bpf_map_lookup(outer, &key, &got), -ENOENT);
	assert_int_equal(leat_bpf_map_delete(outer, &key), -E2BIG);
	assert_int_equal(leat_bpf_map_next_key(outer, &key, &key), 0);
	assert_int_equal(key, 0);
	test_bpf_end(&t);
}

static void hashes_of_maps(void **state)
{
	uint64_t key = 7, other = 8, third = 9, next;
	struct leat_bpf_map *outer, *inner = NULL;
	struct test_bpf t;

	(void)state;
	begin(&t);
	outer = &t.map[HASH_OUTER];
	assert_int_equal(leat_bpf_map_make_inner(outer, "made", 0, &inner), 0);
	assert_int_equal(inner->max_entries, 3);
	assert_int_equal(leat_bpf_map_set_inner(outer, &key, inner, BPF_EXIST), -ENOENT);
	assert_int_equal(leat_bpf_map_set_inner(outer, &key, inner, 3), -EINVAL);
	assert_int_equal(leat_bpf_map_set_inner(outer, &key, inner, BPF_NOEXIST), 0);
	assert_int_equal(leat_bpf_map_set_inner(outer, &key, &t.map[HASHED], BPF_NOEXIST), -EEXIST);
	assert_int_equal(leat_bpf_map_set_inner(outer, &other, &t.map[HASHED], BPF_ANY), 0);
	assert_int_equal(leat_bpf_map_set_inner(outer, &third, &t.map[HASHED], BPF_ANY), -E2BIG);
	assert_int_equal(leat_bpf_map_set_inner(outer, &key, &t.map[KEYED], BPF_ANY), -EINVAL);
	assert_ptr_equal(outer->type->lookup(outer, &key, 0), inner);
	assert_ptr_equal(outer->type->lookup(outer, &other, 1), &t.map[HASHED]);
	assert_null(outer->type->lookup(outer, &third, 0));
	assert_int_equal(leat_bpf_map_next_key(outer, NULL, &next), 0);
	assert_int_equal(leat_bpf_map_next_key(outer, &next, &next), 0);
	assert_int_equal(leat_bpf_map_next_key(outer, &next, &next), -ENOENT);
	assert_int_equal(leat_bpf_map_delete(outer, &third), -ENOENT);
	assert_int_equal(leat_bpf_map_delete(outer, &key), 0);
	assert_null(leat_bpf_map_get_inner(outer, &key));
	assert_true(inner->made);
	leat_bpf_map_release(inner);
	assert_false(inner->made);
	test_bpf_end(&t);
}

static void what_cannot_be(void **state)
{
	struct leat_bpf_map *inner = NULL;
	uint32_t key = 0, i;
	struct test_bpf t, o;

	(void)state;
	begin(&t);
	begin(&o);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, &o.map[TWIN], BPF_ANY), -EINVAL);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[TWIN], &key, &t.map[TWIN], BPF_ANY), -EINVAL);
	assert_int_equal(leat_bpf_map_make_inner(&t.map[TWIN], "x", 0, &inner), -EINVAL);
	assert_int_equal(leat_bpf_map_make_inner(&t.map[OUTER], "x", 4, &inner), -EINVAL);
	assert_null(leat_bpf_map_get_inner(&t.map[TWIN], &key));
	t.map[TWIN].frozen = true; /* programs were compiled with what it holds */
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, &t.map[TWIN], BPF_ANY), -EINVAL);
	t.map[TWIN].frozen = false;
	t.map[TWIN].internal = true;
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, &t.map[TWIN], BPF_ANY), -EINVAL);
	leat_bpf_map_release(&t.map[TWIN]); /* is the object's */
	assert_true(t.map[TWIN].made);
	for (i = FREE; i < TEST_MAPS; i++)
		assert_int_equal(leat_bpf_map_make_inner(&t.map[HASH_OUTER], "x", i, &inner), 0);
	assert_int_equal(leat_bpf_map_make_inner(&t.map[HASH_OUTER], "x", 0, &inner), -ENOSPC);
	leat_bpf_map_release(inner);
	assert_int_equal(leat_bpf_map_make_inner(&t.map[OUTER], "x", 0, &inner), 0);
	test_bpf_end(&o);
	test_bpf_end(&t);
}

/* ---- how long an inner map stays ---- */

static void readers_keep_what_they_found(void **state)
{
	struct leat_bpf_map *inner = NULL, *found;
	uint32_t key = 2, zero = 0;
	uint64_t value = 5, *held;
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(leat_bpf_map_make_inner(&t.map[OUTER], "made", 0, &inner), 0);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, inner, BPF_ANY), 0);
	leat_bpf_map_release(inner);
	assert_int_equal(leat_bpf_map_update(inner, &zero, &value, BPF_ANY), 0);
	leat_epoch_online(t.env->epoch, 0);
	found = t.map[OUTER].type->lookup(&t.map[OUTER], &key, 0);
	assert_ptr_equal(found, inner);
	held = found->type->lookup(found, &zero, 0);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, &t.map[TWIN], BPF_ANY), 0);
	/* a control thread cannot put it back; a reader goes on, and accesses that are tested pass */
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &zero, inner, BPF_ANY), -EBADF);
	assert_int_equal(*held, 5);
	assert_true(leat_bpf_map_is_made(inner));
	leat_epoch_quiescent(t.env->epoch, 0);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[OUTER], &key, &t.map[TWIN], BPF_ANY), 0);
	assert_false(leat_bpf_map_is_made(inner)); /* nobody has it; somebody may be looking at all maps */
	assert_non_null(inner->priv);
	leat_epoch_quiescent(t.env->epoch, 0);
	assert_int_equal(leat_bpf_map_delete(&t.map[OUTER], &key), 0);
	assert_null(inner->priv);
	leat_epoch_offline(t.env->epoch, 0);
	test_bpf_end(&t);
}

static void every_allocation_may_fail(void **state)
{
	struct leat_bpf_map *inner;
	uint64_t key = 4;
	unsigned long nth;
	struct test_bpf t;
	int err = -1;

	(void)state;
	begin(&t);
	for (nth = 1; err; nth++) {
		leat_heap_fail_nth(nth);
		err = leat_bpf_map_make_inner(&t.map[HASH_OUTER], "made", 0, &inner);
		assert_int_equal(err, leat_heap_failed() ? -ENOMEM : 0);
		leat_heap_fail_nth(0);
	}
	assert_true(nth > 3);
	assert_int_equal(leat_bpf_map_set_inner(&t.map[HASH_OUTER], &key, inner, BPF_ANY), 0);
	assert_int_equal(t.obj.n_later, 1);
	test_bpf_end(&t);
}

static void outer_maps_without_memory(void **state)
{
	const struct definition d[] = { { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0, 0 },
					{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 1, 0, 0 } };
	struct test_bpf t;
	unsigned long nth;
	size_t i;
	int err;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	assert_int_equal(test_bpf_template(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 3, 0), LIKE);
	for (i = 0; i < COUNT(d); i++) {
		for (nth = 1, err = -1; err; nth++) {
			leat_heap_fail_nth(nth);
			err = try_outer(&t, &d[i], &t.map[LIKE]);
			assert_int_equal(err, leat_heap_failed() ? -ENOMEM : 0);
			leat_heap_fail_nth(0);
		}
		assert_true(nth > 3);
	}
	test_bpf_end(&t);
}

/* ---- workers ---- */

#define READERS 2u
#define PLACES 3u
#define MIX UINT64_C(0x9e3779b97f4a7c15)

struct threads {
	struct test_bpf *t;
	uint32_t stop;  /* atomic */
	uint32_t found; /* atomic */
};

struct worker {
	struct threads *all;
	unsigned int cpu;
};

/** The two elements of an inner map belong together, and to the place it stands in. */
static void check_inner(struct leat_bpf_map *inner, uint64_t place)
{
	uint32_t first = 0, second = 1;
	const uint64_t *a = inner->type->lookup(inner, &first, 0), *b = inner->type->lookup(inner, &second, 0);

	assert_true(a && b);
	assert_true(__atomic_load_n(a, __ATOMIC_RELAXED) % PLACES == place);
	assert_true(__atomic_load_n(b, __ATOMIC_RELAXED) == __atomic_load_n(a, __ATOMIC_RELAXED) * MIX);
	assert_true(leat_bpf_map_is_made(inner) && inner->type->contains(inner, (uint64_t)(uintptr_t)a, 8));
}

static void *reader(void *arg)
{
	struct worker *w = arg;
	struct test_bpf *t = w->all->t;
	struct leat_bpf_map *inner[2];
	uint64_t seed = w->cpu + 1, wide;
	uint32_t place, i;

	leat_epoch_online(t->env->epoch, w->cpu);
	while (!__atomic_load_n(&w->all->stop, __ATOMIC_ACQUIRE)) {
		place = test_below(&seed, PLACES);
		wide = place;
		inner[0] = t->map[OUTER].type->lookup(&t->map[OUTER], &place, w->cpu);
		inner[1] = t->map[HASH_OUTER].type->lookup(&t->map[HASH_OUTER], &wide, w->cpu);
		for (i = 0; i < 2; i++)
			if (inner[i])
				check_inner(inner[i], place);
		if (inner[0])
			__atomic_store_n(&w->all->found, 1, __ATOMIC_RELAXED);
		leat_epoch_quiescent(t->env->epoch, w->cpu);
		if (test_below(&seed, 32) == 0) /* where there are few CPUs, the others wait for us */
			sched_yield();
	}
	leat_epoch_offline(t->env->epoch, w->cpu);
	return NULL;
}

/** A new inner map, whole before anybody sees it. False: none has gone yet. */
static bool replace(struct test_bpf *t, int outer, uint64_t number)
{
	uint32_t first = 0, second = 1, place = (uint32_t)(number % PLACES);
	uint64_t value = number, wide = place;
	struct leat_bpf_map *inner = NULL;
	int err = leat_bpf_map_make_inner(&t->map[outer], "made", 0, &inner);

	if (err == -ENOSPC) {
		sched_yield();
		return false;
	}
	assert_int_equal(err, 0);
	assert_int_equal(leat_bpf_map_update(inner, &first, &value, BPF_ANY), 0);
	value *= MIX;
	assert_int_equal(leat_bpf_map_update(inner, &second, &value, BPF_ANY), 0);
	if (outer == OUTER)
		assert_int_equal(leat_bpf_map_set_inner(&t->map[outer], &place, inner, BPF_ANY), 0);
	else /* two places there, for three */
		err = leat_bpf_map_set_inner(&t->map[outer], &wide, inner, BPF_ANY);
	assert_true(!err || err == -E2BIG);
	leat_bpf_map_release(inner);
	if (test_below(&number, 4) == 0)
		leat_bpf_map_delete(&t->map[outer], outer == OUTER ? (void *)&place : (void *)&wide);
	return true;
}

static void replaced_while_workers_use_them(void **state)
{
	struct threads all = { 0 };
	pthread_t thread[READERS];
	struct worker w[READERS];
	unsigned int i, rounds = TEST_ROUNDS(1000);
	struct test_bpf *t = NULL;

	(void)state;
	assert_int_equal(posix_memalign((void **)&t, LEAT_CACHELINE, sizeof(*t)), 0);
	begin(t);
	all.t = t;
	for (i = 0; i < READERS; i++) {
		w[i] = (struct worker){ &all, i };
		assert_int_equal(pthread_create(&thread[i], NULL, reader, &w[i]), 0);
	}
	for (i = 0; i < rounds || !__atomic_load_n(&all.found, __ATOMIC_RELAXED);)
		i += replace(t, i % 2 ? OUTER : HASH_OUTER, i);
	__atomic_store_n(&all.stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	test_bpf_end(t);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definitions_are_checked),
		cmocka_unit_test(arrays_of_maps),
		cmocka_unit_test(hashes_of_maps),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(readers_keep_what_they_found),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(outer_maps_without_memory),
		cmocka_unit_test(replaced_while_workers_use_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
