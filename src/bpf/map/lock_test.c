/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock_test.c: locks in values for control: where they are found, copies that leave them alone, BPF_F_LOCK.
 */
#include "bpf/map/test_map.h"

#include "bpf/btf/test_common.h"
#include "bpf/map/lock.h"

/* ---- where they are found ---- */

struct types {
	struct build b;
	uint32_t u32, u64, lock;
};

static uint32_t add_struct(struct types *t, const char *name, uint32_t size, uint32_t members)
{
	return build_type(&t->b, name, BTF_KIND_STRUCT, members, 0, size);
}

static void begin_types(struct types *t)
{
	memset(t, 0, sizeof(*t));
	t->u32 = build_int(&t->b, "u32", 4, 0);
	t->u64 = build_int(&t->b, "u64", 8, 0);
	t->lock = add_struct(t, "bpf_spin_lock", 4, 1);
	build_member(&t->b, "val", t->u32, 0);
}

/** The lock of a map of @type whose values are of the BTF type @id, or the first of all. */
static uint32_t lock_in(struct types *t, uint32_t id, uint32_t size, uint32_t type, uint32_t flags)
{
	struct leat_bpf_map map = { .type = leat_bpf_map_type_find(type), .value_size = size, .map_flags = flags,
				    .btf_value = id, .lock = 99 };
	struct leat_btf *btf = NULL;

	build_end(&t->b);
	assert_int_equal(leat_btf_create(t->b.bytes, t->b.len, NULL, &btf), 0);
	leat_bpf_lock_find(&map, btf);
	leat_btf_destroy(btf);
	return map.lock;
}

static uint32_t value_with_lock_at(struct types *t, uint32_t off)
{
	uint32_t id;

	begin_types(t);
	id = add_struct(t, "value", 16, 2);
	build_member(&t->b, "number", t->u32, 96);
	build_member(&t->b, "lock", t->lock, off * 8);
	return id;
}

static void where_locks_are(void **state)
{
	static const uint32_t others[] = { BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_LRU_HASH,
					   BPF_MAP_TYPE_LPM_TRIE };
	static struct types t;
	uint32_t id, inner;
	size_t i;

	(void)state;
	id = value_with_lock_at(&t, 8);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_HASH, 0), 9);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_ARRAY, 0), 9);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_HASH, BPF_F_RDONLY_PROG), 0);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_ARRAY, BPF_F_WRONLY_PROG), 0);
	assert_int_equal(lock_in(&t, id, 11, BPF_MAP_TYPE_HASH, 0), 0); /* the value ends within it */
	assert_int_equal(lock_in(&t, id, 3, BPF_MAP_TYPE_HASH, 0), 0);
	assert_int_equal(lock_in(&t, 0, 16, BPF_MAP_TYPE_HASH, 0), 0);
	for (i = 0; i < COUNT(others); i++)
		assert_int_equal(lock_in(&t, id, 16, others[i], 0), 0);
	id = value_with_lock_at(&t, 0);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_HASH, 0), 1);
	id = value_with_lock_at(&t, 6); /* packed */
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_HASH, 0), 0);

	/* by names for the types */
	id = value_with_lock_at(&t, 4);
	id = build_type(&t.b, "value_t", BTF_KIND_TYPEDEF, 0, 0, id);
	assert_int_equal(lock_in(&t, id, 16, BPF_MAP_TYPE_HASH, 0), 5);
	begin_types(&t);
	inner = build_type(&t.b, "lock_t", BTF_KIND_TYPEDEF, 0, 0, t.lock);
	id = add_struct(&t, "value", 8, 1);
	build_member(&t.b, "lock", inner, 32);
	assert_int_equal(lock_in(&t, id, 8, BPF_MAP_TYPE_HASH, 0), 5);

	/* global data */
	begin_types(&t);
	inner = build_var(&t.b, "lock", t.lock);
	id = build_type(&t.b, ".data", BTF_KIND_DATASEC, 1, 0, 24);
	build_word(&t.b, inner);
	build_word(&t.b, 16);
	build_word(&t.b, 4);
	assert_int_equal(lock_in(&t, id, 24, BPF_MAP_TYPE_ARRAY, 0), 17);
}

static void where_none_are(void **state)
{
	static struct types t;
	uint32_t id, inner;

	(void)state;
	begin_types(&t); /* two */
	id = add_struct(&t, "value", 8, 2);
	build_member(&t.b, "a", t.lock, 0);
	build_member(&t.b, "b", t.lock, 32);
	assert_int_equal(lock_in(&t, id, 8, BPF_MAP_TYPE_HASH, 0), 0);
	begin_types(&t); /* within another struct */
	inner = add_struct(&t, "inner", 4, 1);
	build_member(&t.b, "lock", t.lock, 0);
	id = add_struct(&t, "value", 4, 1);
	build_member(&t.b, "inner", inner, 0);
	assert_int_equal(lock_in(&t, id, 4, BPF_MAP_TYPE_HASH, 0), 0);
	begin_types(&t); /* a union */
	id = build_type(&t.b, "value", BTF_KIND_UNION, 1, 0, 4);
	build_member(&t.b, "lock", t.lock, 0);
	assert_int_equal(lock_in(&t, id, 4, BPF_MAP_TYPE_HASH, 0), 0);
	memset(&t, 0, sizeof(t)); /* another of that name */
	t.u64 = build_int(&t.b, "u64", 8, 0);
	t.lock = add_struct(&t, "bpf_spin_lock", 8, 1);
	build_member(&t.b, "val", t.u64, 0);
	id = add_struct(&t, "value", 8, 1);
	build_member(&t.b, "lock", t.lock, 0);
	assert_int_equal(lock_in(&t, id, 8, BPF_MAP_TYPE_HASH, 0), 0);
}

/* ---- copies ---- */

static void copies_leave_the_lock_alone(void **state)
{
	struct leat_bpf_map map = { .lock = 0 };
	uint64_t shared[5], i;
	uint8_t from[40], to[40];
	uint32_t off, size, word;

	(void)state;
	for (i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (size = 4; size <= 32; size++) {
		for (off = 0; off + 4 <= size; off += 4) {
			map.value_size = size;
			map.lock = off + 1;
			memset(shared, 0, sizeof(shared));
			word = 1;
			memcpy((uint8_t *)shared + off, &word, 4);
			leat_value_write(&map, shared, from);
			memcpy(&word, (uint8_t *)shared + off, 4);
			assert_int_equal(word, 1);
			memset(to, 0xee, sizeof(to));
			leat_value_read(&map, to, shared);
			for (i = 0; i < size; i++)
				assert_int_equal(to[i], i - off < 4 ? 0 : from[i]);
			assert_int_equal(to[size], 0xee);
			/* storage is padded with zeroes */
			for (i = size; i < leat_round8(size); i++)
				assert_int_equal(((uint8_t *)shared)[i], 0);
			assert_int_equal(((uint8_t *)shared)[leat_round8(size)], 0);
		}
	}
}

/* ---- updates ---- */

struct value {
	uint64_t a;
	uint32_t lock, b;
};

static void open_locked(struct test_map *t, uint32_t type)
{
	test_map_open(t, 2, type, 4, sizeof(struct value), 4, 0);
	t->map.lock = 1 + offsetof(struct value, lock);
}

static void assert_value(struct test_map *t, uint32_t key, uint64_t a, uint32_t b)
{
	struct value got = { 0, 99, 0 }, locked = got;

	assert_int_equal(leat_bpf_map_lookup(&t->map, &key, &got), 0);
	assert_int_equal(leat_bpf_map_lookup_locked(&t->map, &key, &locked), 0);
	assert_true(got.a == a && got.b == b && !got.lock);
	assert_memory_equal(&got, &locked, sizeof(got));
}

static void updates_of_an_array(void **state)
{
	struct value value = { 1, 77, 2 }, *at;
	struct leat_bpf_map_info info;
	uint32_t key = 1, none = 4;
	struct test_map t;

	(void)state;
	open_locked(&t, BPF_MAP_TYPE_ARRAY);
	leat_bpf_map_info(&t.map, &info);
	assert_int_equal(info.lock, offsetof(struct value, lock));
	at = prog_lookup(&t, &key, 0);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), 0);
	assert_value(&t, key, 1, 2);
	value.a = 3;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_EXIST | BPF_F_LOCK), 0);
	assert_value(&t, key, 3, 2);
	value.a = 4;
	assert_int_equal(prog_update(&t, &key, &value, BPF_F_LOCK, 0), 0);
	assert_value(&t, key, 4, 2);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_NOEXIST | BPF_F_LOCK), -EEXIST);
	assert_int_equal(leat_bpf_map_update(&t.map, &none, &value, BPF_F_LOCK), -E2BIG);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, 3 | BPF_F_LOCK), -EINVAL);
	assert_int_equal(leat_bpf_map_lookup_locked(&t.map, &none, &value), -ENOENT);
	/* one that stays taken; without BPF_F_LOCK nobody waits for it, or touches it */
	leat_spin_yields = 2;
	at->lock = 1;
	value.a = 5;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_F_LOCK), -EBUSY);
	assert_int_equal(leat_bpf_map_lookup_locked(&t.map, &key, &value), -EBUSY);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), 0);
	assert_true(at->a == 5 && at->lock == 1);
	at->lock = 0;
	leat_spin_yields = 100000;
	test_map_close(&t);
	test_map_open(&t, 2, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_F_LOCK), -EINVAL);
	assert_int_equal(prog_update(&t, &key, &value, BPF_F_LOCK, 0), -EINVAL);
	assert_int_equal(leat_bpf_map_lookup_locked(&t.map, &key, &value), -EINVAL);
	leat_bpf_map_info(&t.map, &info);
	assert_int_equal(info.lock, -1);
	test_map_close(&t);
}

static void updates_of_a_hash(void **state)
{
	struct value value = { 1, 77, 2 }, *at, *again;
	uint32_t key = 9;
	struct test_map t;

	(void)state;
	open_locked(&t, BPF_MAP_TYPE_HASH);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_EXIST | BPF_F_LOCK), -ENOENT);
	assert_int_equal(leat_bpf_map_lookup_locked(&t.map, &key, &value), -ENOENT);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_F_LOCK), 0); /* is made: there is none to lock */
	assert_value(&t, key, 1, 2);
	at = prog_lookup(&t, &key, 0);
	assert_int_equal(at->lock, 0);
	value.a = 3;
	assert_int_equal(prog_update(&t, &key, &value, BPF_F_LOCK, 1), 0);
	assert_ptr_equal(prog_lookup(&t, &key, 0), at); /* in place */
	assert_value(&t, key, 3, 2);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_NOEXIST | BPF_F_LOCK), -EEXIST);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, 8), -EINVAL);
	leat_spin_yields = 2;
	at->lock = 1;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_F_LOCK), -EBUSY);
	value.a = 4;
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_ANY), 0);
	again = prog_lookup(&t, &key, 0);
	assert_ptr_not_equal(again, at); /* another one, and free */
	assert_int_equal(again->lock, 0);
	assert_value(&t, key, 4, 2);
	assert_int_equal(at->lock, 1);
	at->lock = 0;
	leat_spin_yields = 100000;
	test_map_close(&t);
	test_map_open(&t, 2, BPF_MAP_TYPE_HASH, 4, 16, 4, 0);
	assert_int_equal(prog_update(&t, &key, &value, BPF_F_LOCK, 0), -EINVAL);
	assert_int_equal(leat_bpf_map_update(&t.map, &key, &value, BPF_F_LOCK), -EINVAL);
	test_map_close(&t);
}

/* ---- threads ---- */

#define KEYS 3u
#define MIX 0x9e3779b9u

struct threads {
	struct test_map t;
	uint32_t stop; /* atomic */
};

/** What belongs together is found together, and left so. */
static void *worker(void *arg)
{
	struct threads *all = arg;
	uint64_t seed = 5, a;
	struct value *at;
	unsigned int i;
	uint32_t key;

	leat_epoch_online(&all->t.epoch, 0);
	for (i = 0; i < TEST_ROUNDS(50000); i++) {
		key = test_below(&seed, KEYS);
		at = prog_lookup(&all->t, &key, 0);
		assert_non_null(at);
		assert_int_equal(leat_spin_lock(&at->lock), 0);
		a = __atomic_load_n(&at->a, __ATOMIC_RELAXED);
		assert_true(__atomic_load_n(&at->b, __ATOMIC_RELAXED) == (uint32_t)a * MIX);
		__atomic_store_n(&at->a, a + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&at->b, (uint32_t)(a + 1) * MIX, __ATOMIC_RELAXED);
		leat_spin_unlock(&at->lock);
		if (i % 16 == 0)
			leat_epoch_quiescent(&all->t.epoch, 0);
	}
	leat_epoch_offline(&all->t.epoch, 0);
	__atomic_store_n(&all->stop, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void under_the_lock(uint32_t type)
{
	struct threads *all = NULL;
	struct value value = { 0, 0, 0 };
	uint64_t seed = 8;
	pthread_t thread;
	uint32_t key;

	assert_int_equal(posix_memalign((void **)&all, LEAT_CACHELINE, sizeof(*all)), 0);
	memset(all, 0, sizeof(*all));
	open_locked(&all->t, type);
	for (key = 0; key < KEYS; key++)
		assert_int_equal(leat_bpf_map_update(&all->t.map, &key, &value, BPF_F_LOCK), 0);
	assert_int_equal(pthread_create(&thread, NULL, worker, all), 0);
	while (!__atomic_load_n(&all->stop, __ATOMIC_ACQUIRE)) {
		key = test_below(&seed, KEYS);
		assert_int_equal(leat_bpf_map_lookup_locked(&all->t.map, &key, &value), 0);
		assert_true(value.b == (uint32_t)value.a * MIX && !value.lock);
		value.a = test_random(&seed);
		value.b = (uint32_t)value.a * MIX;
		assert_int_equal(leat_bpf_map_update(&all->t.map, &key, &value, BPF_EXIST | BPF_F_LOCK), 0);
	}
	pthread_join(thread, NULL);
	test_map_close(&all->t);
	free(all);
}

static void threads_share_an_array(void **state)
{
	(void)state;
	under_the_lock(BPF_MAP_TYPE_ARRAY);
}

static void threads_share_a_hash(void **state)
{
	(void)state;
	under_the_lock(BPF_MAP_TYPE_HASH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_locks_are),
		cmocka_unit_test(where_none_are),
		cmocka_unit_test(copies_leave_the_lock_alone),
		cmocka_unit_test(updates_of_an_array),
		cmocka_unit_test(updates_of_a_hash),
		cmocka_unit_test(threads_share_an_array),
		cmocka_unit_test(threads_share_a_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
