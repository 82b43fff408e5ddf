/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_test.c: workers that read under the epoch, workers and control threads that write, at once. What a
 * reader found stays as it was until it is quiescent; a key that is there all the while is always found.
 */
#include "bpf/map/test_map.h"

#include <sched.h>

#define READERS 2u
#define WRITERS 2u /* CPUs READERS.. */
#define CPUS (READERS + WRITERS)
#define KEYS 64u
#define FIXED 16u /* keys that are replaced, never deleted */
#define MIX UINT64_C(0x9e3779b97f4a7c15)

struct value {
	uint64_t key;
	uint64_t number;
	uint64_t check; /* of key and number */
};

struct threads {
	struct test_map t;
	bool lpm;
	unsigned int rounds;
	uint32_t stop; /* atomic */
	uint64_t found; /* atomic */
};

struct worker {
	struct threads *all;
	unsigned int cpu;
};

/** Prefixes of different lengths, none of which is another's: so each is found by itself. */
static void make_key(const struct threads *all, uint32_t n, uint8_t key[8])
{
	const uint32_t len = 32;

	memset(key, 0, 8);
	if (all->lpm) {
		memcpy(key, &len, 4);
		key[4] = (uint8_t)(n * 73);
		key[7] = (uint8_t)n;
	} else {
		memcpy(key, &n, 4);
	}
}

/** Reads the parts as a program would. */
static void check_value(const struct value *at, uint32_t n)
{
	uint64_t key = __atomic_load_n(&at->key, __ATOMIC_RELAXED);
	uint64_t number = __atomic_load_n(&at->number, __ATOMIC_RELAXED);

	assert_true(key == n);
	assert_true(__atomic_load_n(&at->check, __ATOMIC_RELAXED) == (key ^ number) * MIX);
}

/** Walks over all elements, as a program does: those that stay come once, with a value of theirs. */
static void walk(struct threads *all, unsigned int cpu)
{
	struct leat_bpf_cursor at = { 0 };
	uint64_t key, steps = 0;
	uint8_t seen[KEYS] = { 0 };
	const struct value *value;
	uint32_t n;

	while ((value = all->t.map.type->each(&all->t.map, &at, &key, cpu))) {
		assert_true(key < KEYS);
		check_value(value, (uint32_t)key);
		seen[key]++;
		steps += at.steps;
		assert_true(at.steps && steps < 1000 * KEYS);
	}
	for (n = 0; n < FIXED; n++)
		assert_int_equal(seen[n], 1);
}

static void *reader(void *arg)
{
	struct worker *w = arg;
	struct threads *all = w->all;
	const struct value *held[8];
	uint64_t seed = w->cpu + 1, found = 0;
	unsigned int i;
	uint32_t n[8];
	uint8_t key[8];

	leat_epoch_online(&all->t.epoch, w->cpu);
	while (!__atomic_load_n(&all->stop, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < 8; i++) {
			n[i] = test_below(&seed, KEYS);
			make_key(all, n[i], key);
			held[i] = prog_lookup(&all->t, key, w->cpu);
			assert_true(held[i] || n[i] >= FIXED);
			found += held[i] != NULL;
		}
		for (i = 0; i < 8; i++)
			if (held[i])
				check_value(held[i], n[i]);
		if (all->t.map.type->each && test_below(&seed, 4) == 0)
			walk(all, w->cpu);
		leat_epoch_quiescent(&all->t.epoch, w->cpu);
	}
	leat_epoch_offline(&all->t.epoch, w->cpu);
	__atomic_fetch_add(&all->found, found, __ATOMIC_RELAXED);
	return NULL;
}

static void put(struct threads *all, uint32_t n, uint64_t number, unsigned int cpu, bool control)
{
	struct value value = { n, number, (n ^ number) * MIX };
	uint8_t key[8];
	int err;

	make_key(all, n, key);
	err = control ? leat_bpf_map_update(&all->t.map, key, &value, BPF_ANY)
		      : prog_update(&all->t, key, &value, BPF_ANY, cpu);
	if (err == -ENOMEM || err == -EBUSY)
		sched_yield(); /* a thread that is not run holds everything up */
	else
		assert_int_equal(err, 0);
}

static void *writer(void *arg)
{
	struct worker *w = arg;
	struct threads *all = w->all;
	uint64_t seed = w->cpu + 100;
	unsigned int i;
	uint32_t n;
	uint8_t key[8];
	int err;

	leat_epoch_online(&all->t.epoch, w->cpu);
	for (i = 0; i < all->rounds; i++) {
		n = test_below(&seed, KEYS);
		make_key(all, n, key);
		if (n >= FIXED && test_below(&seed, 2)) {
			err = prog_delete(&all->t, key, w->cpu);
			assert_true(err == 0 || err == -ENOENT || err == -EBUSY);
		} else {
			put(all, n, test_random(&seed), w->cpu, false);
		}
		if (i % 64 == 0)
			leat_epoch_quiescent(&all->t.epoch, w->cpu);
	}
	leat_epoch_offline(&all->t.epoch, w->cpu);
	return NULL;
}

/** Not under the epoch: copies are whole all the same. */
static void *control(void *arg)
{
	struct worker *w = arg;
	struct threads *all = w->all;
	uint64_t seed = 1000;
	struct value value;
	uint8_t key[8];
	uint32_t n;
	int err;

	while (!__atomic_load_n(&all->stop, __ATOMIC_ACQUIRE)) {
		n = test_below(&seed, KEYS);
		make_key(all, n, key);
		err = leat_bpf_map_lookup(&all->t.map, key, &value);
		assert_true(err == 0 || (err == -ENOENT && n >= FIXED) || err == -EBUSY);
		if (!err)
			check_value(&value, n);
		if (test_below(&seed, 4) == 0)
			put(all, n, test_random(&seed), 0, true);
		if (test_below(&seed, 50) == 0)
			for (err = leat_bpf_map_next_key(&all->t.map, NULL, key), n = 0; !err && n < 10 * KEYS; n++)
				err = leat_bpf_map_next_key(&all->t.map, key, key);
	}
	return NULL;
}

static void run_threads(uint32_t type, uint32_t max, uint32_t flags, bool one_chain)
{
	struct threads *all = NULL;
	pthread_t thread[CPUS + 1];
	struct worker w[CPUS + 1];
	unsigned int i;
	uint32_t n;

	assert_int_equal(posix_memalign((void **)&all, LEAT_CACHELINE, sizeof(*all)), 0);
	memset(all, 0, sizeof(*all));
	test_map_open(&all->t, CPUS, type, 8, sizeof(struct value), max, flags);
	if (one_chain)
		test_map_one_chain(&all->t);
	all->lpm = type == BPF_MAP_TYPE_LPM_TRIE;
	all->rounds = TEST_ROUNDS(200000);
	for (n = 0; n < FIXED; n++)
		put(all, n, n, 0, true);
	for (i = 0; i <= CPUS; i++) {
		w[i] = (struct worker){ all, i };
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < READERS ? reader : i < CPUS ? writer : control, &w[i]),
				 0);
	}
	for (i = READERS; i < CPUS; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&all->stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(thread[CPUS], NULL);
	assert_true(all->found > 0);
	test_map_close(&all->t);
	free(all);
}

static void hash(void **state)
{
	(void)state;
	run_threads(BPF_MAP_TYPE_HASH, KEYS, 0, false);
}

/** Overflow buckets come and go. */
static void hash_of_one_chain(void **state)
{
	(void)state;
	run_threads(BPF_MAP_TYPE_HASH, KEYS, 0, true);
}

/** With room for all keys: nothing is taken out. */
static void lru(void **state)
{
	(void)state;
	run_threads(BPF_MAP_TYPE_LRU_HASH, 10 * KEYS, 0, false);
}

static void prefixes(void **state)
{
	(void)state;
	run_threads(BPF_MAP_TYPE_LPM_TRIE, KEYS, NO_PREALLOC, false);
}

/* ---- an LRU map that is too small, hit from all sides ---- */

static void *lru_writer(void *arg)
{
	struct worker *w = arg;
	struct threads *all = w->all;
	uint64_t seed = w->cpu + 5;
	unsigned int i;
	uint32_t n;
	uint8_t key[8];
	const struct value *at;

	leat_epoch_online(&all->t.epoch, w->cpu);
	for (i = 0; i < all->rounds; i++) {
		n = test_below(&seed, 10 * KEYS);
		put(all, n, test_random(&seed), w->cpu, false);
		n = test_below(&seed, 10 * KEYS);
		make_key(all, n, key);
		at = prog_lookup(&all->t, key, w->cpu);
		if (at)
			check_value(at, n);
		if (i % 64 == 0)
			leat_epoch_quiescent(&all->t.epoch, w->cpu);
	}
	leat_epoch_offline(&all->t.epoch, w->cpu);
	return NULL;
}

static void small_lru(void **state)
{
	struct threads *all = NULL;
	pthread_t thread[CPUS];
	struct worker w[CPUS];
	unsigned int i, n = 0;
	uint8_t key[8];
	int err;

	(void)state;
	assert_int_equal(posix_memalign((void **)&all, LEAT_CACHELINE, sizeof(*all)), 0);
	memset(all, 0, sizeof(*all));
	test_map_open(&all->t, CPUS, BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct value), KEYS, 0);
	all->rounds = TEST_ROUNDS(200000);
	for (i = 0; i < CPUS; i++) {
		w[i] = (struct worker){ all, i };
		assert_int_equal(pthread_create(&thread[i], NULL, lru_writer, &w[i]), 0);
	}
	for (i = 0; i < CPUS; i++)
		pthread_join(thread[i], NULL);
	for (err = leat_bpf_map_next_key(&all->t.map, NULL, key); !err; n++)
		err = leat_bpf_map_next_key(&all->t.map, key, key);
	assert_true(n <= KEYS && n > KEYS / 2);
	test_map_close(&all->t);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash),
		cmocka_unit_test(hash_of_one_chain),
		cmocka_unit_test(lru),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(small_lru),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
