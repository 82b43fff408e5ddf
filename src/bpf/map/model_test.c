/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_test.c: random operations of programs and control on arrays, hash maps and prefixes against naive models:
 * every return code and every value.
 */
#include "bpf/map/test_map.h"

#define KEYS 97
#define VALUE_MAX 80
#define CPUS 3

/** What a map should hold: values of all CPUs by key number. */
struct model {
	bool there[KEYS];
	uint8_t value[KEYS][CPUS][VALUE_MAX];
	unsigned int n;
};

struct kind {
	uint32_t type, key, value, max, flags;
	bool one_chain;
};

static bool is_array(const struct kind *k)
{
	return k->type == BPF_MAP_TYPE_ARRAY || k->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static int model_code(const struct model *m, const struct kind *k, unsigned int n, uint64_t flags)
{
	if ((is_array(k) ? flags & ~(uint64_t)BPF_F_LOCK : flags) > BPF_EXIST)
		return -EINVAL;
	if (is_array(k))
		return n >= k->max ? -E2BIG : flags & BPF_NOEXIST ? -EEXIST : flags & BPF_F_LOCK ? -EINVAL : 0;
	if (m->there[n] && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!m->there[n] && flags == BPF_EXIST)
		return -ENOENT;
	return !m->there[n] && m->n == k->max ? -E2BIG : 0;
}

static void check_all(struct test_map *t, const struct model *m, const struct kind *k)
{
	uint8_t key[64], got[CPUS * VALUE_MAX];
	uint32_t stride = t->map.value_stride, seen = 0;
	unsigned int n, cpu;
	const uint8_t *at;
	int err;

	for (n = 0; n < KEYS; n++) {
		test_key(key, k->key, n);
		assert_int_equal(leat_bpf_map_lookup(&t->map, key, got), m->there[n] ? 0 : -ENOENT);
		for (cpu = 0; cpu < CPUS; cpu++) {
			at = prog_lookup(t, key, cpu);
			assert_int_equal(at != NULL, m->there[n]);
			if (!at)
				continue;
			assert_memory_equal(at, m->value[n][t->map.cpus > 1 ? cpu : 0], k->value);
			assert_true(prog_may(t, at, k->value));
			assert_false(prog_may(t, at, k->value + 1));
			assert_false(prog_may(t, at - 1, 2));
			if (cpu < t->map.cpus)
				assert_memory_equal(got + cpu * stride, m->value[n][cpu], k->value);
		}
	}
	for (err = leat_bpf_map_next_key(&t->map, NULL, key); !err; err = leat_bpf_map_next_key(&t->map, key, key))
		seen++;
	assert_int_equal(err, -ENOENT);
	assert_int_equal(seen, m->n);
}

static void step(struct test_map *t, struct model *m, const struct kind *k, uint64_t *seed)
{
	unsigned int n = test_below(seed, KEYS), cpu = test_below(seed, CPUS), c, what = test_below(seed, 8);
	uint8_t key[64], value[CPUS * VALUE_MAX];
	uint64_t flags = test_below(seed, 10) ? test_below(seed, 3) : 3 + test_below(seed, 9);
	bool percpu = t->map.cpus > 1;
	uint32_t i;
	int code;

	test_key(key, k->key, n);
	for (i = 0; i < sizeof(value); i++)
		value[i] = (uint8_t)test_random(seed);
	if (what < 2) {
		code = is_array(k) ? -EINVAL : m->there[n] ? 0 : -ENOENT;
		assert_int_equal(what ? leat_bpf_map_delete(&t->map, key) : prog_delete(t, key, cpu), code);
		m->n -= !code;
		m->there[n] = code ? m->there[n] : false;
		return;
	}
	code = model_code(m, k, n, flags);
	if (what < 5)
		assert_int_equal(prog_update(t, key, value, flags, cpu), code);
	else /* control is refused a lock before the map looks */
		assert_int_equal(leat_bpf_map_update(&t->map, key, value, flags), flags & BPF_F_LOCK ? -EINVAL : code);
	if (code)
		return;
	for (c = 0; c < CPUS; c++) {
		if (!percpu || (what < 5 && c == cpu))
			memcpy(m->value[n][c], value, k->value);
		else if (what >= 5)
			memcpy(m->value[n][c], value + c * t->map.value_stride, k->value);
		else if (!m->there[n])
			memset(m->value[n][c], 0, k->value);
	}
	m->n += !m->there[n];
	m->there[n] = true;
}

static void run_kind(const struct kind *k, uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	unsigned int i, rounds = TEST_ROUNDS(20000);
	struct test_map t;

	assert_non_null(m);
	test_map_open(&t, CPUS, k->type, k->key, k->value, k->max, k->flags);
	if (k->one_chain)
		test_map_one_chain(&t);
	if (is_array(k)) {
		m->n = k->max;
		memset(m->there, 1, k->max);
	}
	leat_epoch_online(&t.epoch, 0);
	for (i = 0; i < rounds; i++) {
		step(&t, m, k, &seed);
		if (i % 64 == 0)
			leat_epoch_quiescent(&t.epoch, 0);
		if (i % 500 == 0)
			check_all(&t, m, k);
	}
	check_all(&t, m, k);
	leat_epoch_offline(&t.epoch, 0);
	test_map_close(&t);
	free(m);
}

static void maps_are_as_the_model(void **state)
{
	static const struct kind kinds[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 1, 40, 0, false },
		{ BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0, false },
		{ BPF_MAP_TYPE_ARRAY, 4, 77, 60, 0, false },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 4, 40, 0, false },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 33, 50, 0, false },
		{ BPF_MAP_TYPE_HASH, 4, 8, 60, 0, false },
		{ BPF_MAP_TYPE_HASH, 8, 1, 1, 0, false },
		{ BPF_MAP_TYPE_HASH, 8, 80, 96, NO_PREALLOC, false },
		{ BPF_MAP_TYPE_HASH, 16, 20, 60, 0, false },
		{ BPF_MAP_TYPE_HASH, 13, 9, 70, BPF_F_ZERO_SEED, false },
		{ BPF_MAP_TYPE_HASH, 64, 40, 60, 0, false },
		{ BPF_MAP_TYPE_HASH, 5, 3, 1000, 0, false },
		{ BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 60, 0, false },
		{ BPF_MAP_TYPE_PERCPU_HASH, 16, 5, 30, 0, false },
		{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 8, 600, 0, false },
		{ BPF_MAP_TYPE_PERCPU_HASH, 40, 80, 90, NO_PREALLOC, false },
		{ BPF_MAP_TYPE_HASH, 8, 8, 90, 0, true },
		{ BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 60, 0, true },
		{ BPF_MAP_TYPE_LRU_HASH, 8, 8, 1000, 0, false }, /* so large that nothing is ever taken out */
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(kinds); i++)
		run_kind(&kinds[i], i + 1);
}

/* ---- longest prefix ---- */

#define PREFIXES 200

struct prefix {
	bool there;
	uint32_t len;
	uint8_t data[32];
	uint64_t value;
};

static bool begins_with(const uint8_t *data, const uint8_t *prefix, uint32_t bits)
{
	uint32_t i;

	for (i = 0; i < bits; i++)
		if ((data[i / 8] ^ prefix[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static struct prefix *naive_longest(struct prefix *all, const uint8_t *data, uint32_t len)
{
	struct prefix *best = NULL;
	unsigned int i;

	for (i = 0; i < PREFIXES; i++)
		if (all[i].there && all[i].len <= len && (!best || all[i].len > best->len) &&
		    begins_with(data, all[i].data, all[i].len))
			best = &all[i];
	return best;
}

static struct prefix *naive_same(struct prefix *all, const uint8_t *data, uint32_t len)
{
	struct prefix *p = naive_longest(all, data, len);

	return p && p->len == len ? p : NULL;
}

/** How keys begin for a while, and mostly are no shorter than that. */
static struct {
	uint32_t bytes;
	uint8_t byte;
} beginning;

/** A random key: few bytes differ, so that many are prefixes of others. */
static void random_key(uint8_t *key, uint32_t size, uint64_t *seed)
{
	uint32_t len = test_below(seed, size * 8 + 2), i, shared = beginning.bytes < size ? beginning.bytes : size;

	if (len < 8 * shared && test_below(seed, 200))
		len = 8 * shared + test_below(seed, 8 * (size - shared) + 1);
	memcpy(key, &len, 4);
	for (i = 0; i < size; i++)
		key[4 + i] = (uint8_t)(test_below(seed, 3) ? 0xa5 : test_below(seed, 4) << test_below(seed, 7));
	if (test_below(seed, 200))
		memset(key + 4, beginning.byte, shared);
}

/** All keys begin otherwise from now on; half the time, those that are there go. */
static void change_beginning(struct test_map *t, struct prefix *all, unsigned int *n, uint64_t *seed)
{
	uint8_t key[4 + 32];
	struct prefix *p;

	beginning.bytes = test_below(seed, 12);
	beginning.byte = (uint8_t)test_random(seed);
	for (p = all; p < all + PREFIXES && *n && test_below(seed, 2 * PREFIXES); p++) {
		if (!p->there)
			continue;
		memcpy(key, &p->len, 4);
		memcpy(key + 4, p->data, sizeof(p->data));
		assert_int_equal(leat_bpf_map_delete(&t->map, key), 0);
		p->there = false;
		(*n)--;
	}
}

static void lpm_lookups(struct test_map *t, struct prefix *all, const uint8_t *key, uint32_t max_len)
{
	struct prefix *p;
	uint64_t *at, got;
	uint32_t len;

	memcpy(&len, key, 4);
	p = len > max_len ? NULL : naive_longest(all, key + 4, len);
	at = prog_lookup(t, key, 0);
	assert_int_equal(at != NULL, p != NULL);
	if (at)
		assert_true(*at == p->value && prog_may(t, at, 8) && !prog_may(t, at, 9));
	assert_int_equal(leat_bpf_map_lookup(&t->map, key, &got), p ? 0 : -ENOENT);
	if (p)
		assert_true(got == p->value);
}

static void lpm_step(struct test_map *t, struct prefix *all, uint32_t size, unsigned int *n, uint64_t *seed)
{
	uint64_t flags = test_below(seed, 4), value = test_random(seed);
	uint8_t key[4 + 32];
	struct prefix *p;
	uint32_t len;
	int code;

	random_key(key, size, seed);
	memcpy(&len, key, 4);
	lpm_lookups(t, all, key, size * 8);
	p = len > size * 8 ? NULL : naive_same(all, key + 4, len);
	if (test_below(seed, 5) < 2) {
		code = len > size * 8 ? -EINVAL : p ? 0 : -ENOENT;
		assert_int_equal(leat_bpf_map_delete(&t->map, key), code);
		if (!code)
			p->there = false;
		*n -= !code;
		return;
	}
	if (len > size * 8 || flags > 2)
		code = -EINVAL;
	else if (p)
		code = flags == BPF_NOEXIST ? -EEXIST : 0;
	else
		code = flags == BPF_EXIST ? -ENOENT : *n == PREFIXES ? -ENOSPC : 0;
	assert_int_equal(prog_update(t, key, &value, flags, 0), code);
	if (code)
		return;
	*n += !p;
	if (!p)
		for (p = all; p->there; p++)
			;
	*p = (struct prefix){ .there = true, .len = len, .value = value };
	memcpy(p->data, key + 4, size);
}

/** Iteration gives every prefix once, longer ones before those that they begin with. */
static void lpm_walk(struct test_map *t, struct prefix *all, uint32_t size, unsigned int n)
{
	uint8_t key[4 + 32], before[4 + 32] = { 0 };
	uint32_t len, last;
	unsigned int seen = 0;
	int err;

	for (err = leat_bpf_map_next_key(&t->map, NULL, key); !err; err = leat_bpf_map_next_key(&t->map, key, key)) {
		memcpy(&len, key, 4);
		assert_non_null(naive_same(all, key + 4, len));
		memcpy(&last, before, 4);
		if (seen && last < len)
			assert_false(begins_with(key + 4, before + 4, last));
		memcpy(before, key, 4 + size);
		seen++;
	}
	assert_int_equal(err, -ENOENT);
	assert_int_equal(seen, n);
}

static void longest_prefixes(void **state)
{
	static const uint32_t sizes[] = { 1, 3, 4, 7, 8, 9, 16, 32 };
	struct prefix *all = calloc(PREFIXES + 1, sizeof(*all));
	unsigned int i, round, n;
	struct test_map t;
	uint64_t seed = 7;

	(void)state;
	assert_non_null(all);
	for (i = 0; i < COUNT(sizes); i++) {
		memset(all, 0, PREFIXES * sizeof(*all));
		beginning.bytes = 0;
		n = 0;
		test_map_open(&t, 1, BPF_MAP_TYPE_LPM_TRIE, 4 + sizes[i], 8, PREFIXES, NO_PREALLOC);
		leat_epoch_online(&t.epoch, 0);
		for (round = 0; round < TEST_ROUNDS(20000); round++) {
			lpm_step(&t, all, sizes[i], &n, &seed);
			leat_epoch_quiescent(&t.epoch, 0);
			if (round % 700 == 0)
				change_beginning(&t, all, &n, &seed);
			if (round % 1000 == 0)
				lpm_walk(&t, all, sizes[i], n);
		}
		leat_epoch_offline(&t.epoch, 0);
		test_map_close(&t);
	}
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_as_the_model),
		cmocka_unit_test(longest_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
