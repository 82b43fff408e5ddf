/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bulk_put_test.c: bulk puts over more pools than stay open at once, in any order, on the owner's and on another thread;
 * of runs that cross blocks, among others; and by threads that share the rings under their locks, with the pools in
 * opposite order.
 */
#include "mem/test_mem.h"

#include <pthread.h>

#define POOLS 7u
#define RUNS 64u
#define ROUNDS TEST_ROUNDS(20000u)

/* ---- many pools ---- */

struct hand {
	pthread_barrier_t meet;
	struct leat_run run[RUNS];
	unsigned int n; /* RUNS + 1: the end */
};

static void *taker_main(void *arg)
{
	struct hand *hand = arg;

	for (;;) {
		pthread_barrier_wait(&hand->meet);
		if (hand->n > RUNS)
			return NULL;
		leat_page_pool_put_page_bulk(hand->run, hand->n);
		pthread_barrier_wait(&hand->meet);
	}
}

static void shuffle(struct leat_run *run, unsigned int n, uint64_t *seed)
{
	unsigned int i, k;

	for (i = 0; i + 1 < n; i++) {
		struct leat_run swap = run[i];

		k = i + test_below(seed, n - i);
		run[i] = run[k];
		run[k] = swap;
	}
}

/** Runs of all pools, neighbours now and then, some of them shared. @again gets the second references. */
static unsigned int fill(struct leat_page_pool **pool, struct leat_run *run, struct leat_run *again, uint64_t *seed)
{
	unsigned int i, n = 0, which = 0;

	for (i = 0; i < RUNS; i++) {
		if (test_below(seed, 3))
			which = test_below(seed, POOLS);
		run[i] = leat_page_pool_alloc(pool[which], 1 + test_below(seed, 9));
		assert_false(leat_run_is_none(run[i]));
		if (test_below(seed, 8) == 0) {
			leat_page_pool_get_page(run[i]);
			again[n++] = run[i];
		}
	}
	return n;
}

static void any_number_of_pools_in_one_array(void **state)
{
	struct leat_page_pool *pool[POOLS];
	struct leat_run again[RUNS];
	uint64_t seed = 9;
	unsigned int round, i, n;
	struct test_mem mem;
	struct hand hand;
	pthread_t thread;

	(void)state;
	test_mem_open(&mem, EXTENT * 4 * POOLS);
	for (i = 0; i < POOLS; i++)
		pool[i] = test_pool(mem.segment, EXTENT * 4);
	pthread_barrier_init(&hand.meet, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, taker_main, &hand), 0);
	for (round = 0; round < ROUNDS; round++) {
		n = fill(pool, hand.run, again, &seed);
		if (round % 2)
			shuffle(hand.run, RUNS, &seed);
		hand.n = RUNS;
		if (round % 3) {
			pthread_barrier_wait(&hand.meet);
			leat_page_pool_put_page_bulk(again, n); /* while the other holder puts them, too */
			pthread_barrier_wait(&hand.meet);
		} else {
			leat_page_pool_put_page_bulk(again, n);
			leat_page_pool_put_page_bulk(hand.run, RUNS);
		}
		for (i = 0; i < POOLS; i++) {
			leat_page_pool_drain(pool[i]);
			assert_int_equal(test_outstanding(pool[i]), 0);
		}
	}
	hand.n = RUNS + 1;
	pthread_barrier_wait(&hand.meet);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&hand.meet);
	for (i = 0; i < POOLS; i++)
		test_pool_end(pool[i]);
	test_mem_close(&mem);
}

/* ---- merged runs ---- */

/** Merges neighbours among @run here and there, beyond the borders of blocks, too. Returns how many are left. */
static unsigned int merge_some(struct leat_run *run, unsigned int n, uint64_t *seed)
{
	unsigned int i, k = 0;

	for (i = 1; i < n; i++) {
		if (leat_run_addr(run[k]) + leat_run_size(run[k]) == leat_run_addr(run[i]) && test_below(seed, 3))
			run[k] = leat_run_make_long(leat_run_addr(run[k]),
						    leat_run_granules(run[k]) + leat_run_granules(run[i]));
		else
			run[++k] = run[i];
	}
	return k + 1;
}

static void turn(struct leat_run *run, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n / 2; i++) {
		struct leat_run swap = run[i];

		run[i] = run[n - 1 - i];
		run[n - 1 - i] = swap;
	}
}

/** @run as a bulk put gets it: its holders' references one behind the other, in this or that order. */
static unsigned int share_and_sort(struct leat_run *run, unsigned int n, unsigned int order, uint64_t *seed)
{
	unsigned int i, was = n;

	for (i = 0; i < was; i++) {
		if (test_below(seed, 6))
			continue;
		leat_page_pool_get_page(run[i]);
		run[n++] = run[i];
	}
	if (order == 1)
		turn(run, n);
	else if (order == 2)
		shuffle(run, n, seed);
	return n;
}

static void merged_runs_among_others(void **state)
{
	struct leat_run run[2 * RUNS];
	struct leat_page_pool *pool;
	unsigned int round, i, n, n_long = 0;
	uint64_t seed = 5, out;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	pool = test_pool(mem.segment, EXTENT * 4);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0, out = 0; i < RUNS; i++) {
			run[i] = leat_page_pool_alloc(pool, 1u << test_below(&seed, 4)); /* blocks are used to their ends */
			out += leat_run_granules(run[i]);
		}
		n = merge_some(run, RUNS, &seed);
		for (i = 0; i < n; i++)
			n_long += !!(run[i].bits & LEAT_RUN_LONG);
		assert_int_equal(test_outstanding(pool), out);
		n = share_and_sort(run, n, round % 3, &seed);
		if (round % 2) /* as another thread would */
			leat_page_pool_disown(pool);
		leat_page_pool_put_page_bulk(run, n);
		if (round % 2)
			leat_page_pool_own(pool);
		leat_page_pool_drain(pool);
		assert_int_equal(test_outstanding(pool), 0);
	}
	assert_true(n_long > ROUNDS / 4);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- twice in one array ---- */

static struct leat_run twice[3];

static void put_twice(void *arg)
{
	(void)arg;
	leat_page_pool_put_page_bulk(twice, 3);
}

static void a_run_twice_in_one_array_is_caught(void **state)
{
	struct leat_page_pool *pool;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	twice[0] = twice[2] = leat_page_pool_alloc(pool, 3);
	twice[1] = leat_page_pool_alloc(pool, 3);
	assert_bug(put_twice, NULL);
	leat_page_pool_put_page_bulk(twice, 2);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- threads that share the rings ---- */

#define IDLE LEAT_THREADS_MAX /* as many as have a number, and more */

struct crowd {
	pthread_barrier_t meet;
	struct leat_page_pool *pool[2];
	struct leat_run run[2][RUNS]; /* by thread */
};

static void *idle_main(void *arg)
{
	struct crowd *crowd = arg;

	leat_thread_register();
	pthread_barrier_wait(&crowd->meet); /* all have one */
	pthread_barrier_wait(&crowd->meet); /* the end */
	return NULL;
}

static struct crowd crowd;

static void *sharing_main(void *arg)
{
	struct leat_run *run = arg;
	unsigned int round;

	for (round = 0; round < ROUNDS / 10; round++) {
		pthread_barrier_wait(&crowd.meet);
		leat_page_pool_put_page_bulk(run, RUNS);
		pthread_barrier_wait(&crowd.meet);
	}
	return NULL;
}

/** Each bulk goes from pool to pool and back, one thread beginning with the one, the other with the other. */
static void sharing_threads(void)
{
	unsigned int round, i, k;
	pthread_t thread[2];

	pthread_barrier_init(&crowd.meet, NULL, 3);
	for (k = 0; k < 2; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, sharing_main, crowd.run[k]), 0);
	for (round = 0; round < ROUNDS / 10; round++) {
		for (i = 0; i < RUNS; i++)
			for (k = 0; k < 2; k++)
				crowd.run[k][i] = leat_page_pool_alloc(crowd.pool[(i + k) % 2], 2);
		pthread_barrier_wait(&crowd.meet);
		pthread_barrier_wait(&crowd.meet);
		for (k = 0; k < 2; k++) {
			leat_page_pool_drain(crowd.pool[k]);
			assert_int_equal(test_outstanding(crowd.pool[k]), 0);
		}
	}
	for (k = 0; k < 2; k++)
		assert_int_equal(pthread_join(thread[k], NULL), 0);
	pthread_barrier_destroy(&crowd.meet);
}

static void threads_that_share_rings_do_not_wait_for_each_other(void **state)
{
	pthread_t idle[IDLE];
	struct crowd waiting;
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	for (i = 0; i < 2; i++)
		crowd.pool[i] = test_pool(mem.segment, EXTENT);
	pthread_barrier_init(&waiting.meet, NULL, IDLE + 1);
	for (i = 0; i < IDLE; i++)
		assert_int_equal(pthread_create(&idle[i], NULL, idle_main, &waiting), 0);
	pthread_barrier_wait(&waiting.meet);
	sharing_threads();
	pthread_barrier_wait(&waiting.meet);
	for (i = 0; i < IDLE; i++)
		assert_int_equal(pthread_join(idle[i], NULL), 0);
	pthread_barrier_destroy(&waiting.meet);
	for (i = 0; i < 2; i++)
		test_pool_end(crowd.pool[i]);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_pools_in_one_array),
		cmocka_unit_test(merged_runs_among_others),
		cmocka_unit_test(a_run_twice_in_one_array_is_caught),
		cmocka_unit_test(threads_that_share_rings_do_not_wait_for_each_other),
	};

	return cmocka_run_group_tests_name("bulk_put", tests, NULL, NULL);
}
