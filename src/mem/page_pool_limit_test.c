/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_limit_test.c: limits that change while buffers are out, giving memory back, runs of several blocks, how
 * much the pool grows at once, and how often it takes the long way.
 */
#include "mem/test_provider.h"

#include <errno.h>
#include <pthread.h>

/** A pool of @limit that may be raised to @limit_max. */
static struct leat_page_pool *pool_of(struct leat_segment *segment, uint64_t limit, uint64_t limit_max, uint64_t floor)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = limit, .floor = floor };
	struct leat_page_pool *pool;

	opts.limit_max = limit_max;
	assert_int_equal(leat_page_pool_create(segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	return pool;
}

/** Takes whole blocks until there are no more. Returns their number. */
static unsigned int take_all(struct leat_page_pool *pool, struct leat_run *run, unsigned int most)
{
	unsigned int n;

	for (n = 0; n < most; n++) {
		run[n] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
		if (leat_run_is_none(run[n]))
			break;
	}
	return n;
}

/* ---- limits ---- */

static void limits_are_checked(void **state)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = 2 * EXTENT, .limit_max = EXTENT };
	struct leat_page_pool_stats s;
	struct leat_page_pool *pool;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), -EINVAL);
	opts.limit_max = EXTENT * 4 + 1; /* there are no such addresses */
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), -ENOSPC);
	pool = pool_of(mem.segment, EXTENT, 3 * EXTENT, 0);
	assert_int_equal(leat_page_pool_set_limit(pool, 0, 0), -EINVAL);
	assert_int_equal(leat_page_pool_set_limit(pool, 3 * EXTENT + 1, 0), -EINVAL);
	assert_int_equal(leat_page_pool_set_limit(pool, 2 * EXTENT + 1, 0), 0);
	leat_page_pool_stats(pool, &s);
	assert_int_equal(s.limit, 3 * EXTENT);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_raised_limit_serves_at_once(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[40];
	struct test_mem mem;
	unsigned int n;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	pool = pool_of(mem.segment, EXTENT, 4 * EXTENT, 0);
	n = take_all(pool, run, COUNT(run));
	assert_int_equal(n, LEAT_EXTENT_BLOCKS);
	assert_int_equal(leat_page_pool_set_limit(pool, 4 * EXTENT, 0), 0);
	n += take_all(pool, run + n, COUNT(run) - n);
	assert_int_equal(n, 4 * LEAT_EXTENT_BLOCKS);
	assert_pool_sound(pool);
	leat_page_pool_put_page_bulk(run, n);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void what_is_over_a_lowered_limit_goes_extent_by_extent(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[40], one;
	struct test_mem mem;
	unsigned int e, i;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	pool = pool_of(mem.segment, 4 * EXTENT, 4 * EXTENT, EXTENT);
	assert_int_equal(take_all(pool, run, COUNT(run)), 32);
	assert_int_equal(leat_page_pool_set_limit(pool, EXTENT, 0), 0);
	leat_page_pool_put_page(run[0]);
	for (e = 3; e >= 1; e--) { /* from the middle: e = 2 last */
		unsigned int extent = e == 3 ? 1 : e == 2 ? 3 : 2;

		for (i = 0; i < LEAT_EXTENT_BLOCKS; i++) {
			leat_page_pool_put_page(run[extent * LEAT_EXTENT_BLOCKS + i]);
			one = leat_page_pool_alloc(pool, 1);
			assert_true(leat_run_addr(one) < pool->first + EXTENT); /* nothing over the limit is cut */
			leat_page_pool_put_page(one);
			leat_page_pool_alloc_slow(pool, 64); /* takes notice: whatever it gets */
			leat_page_pool_cancel(pool, leat_run_make(pool->first, 64));
			assert_pool_sound(pool);
			assert_int_equal(test_committed(pool), (e + (i + 1 < LEAT_EXTENT_BLOCKS)) * EXTENT);
		}
	}
	assert_int_equal(leat_segment_committed(mem.segment), EXTENT);
	leat_page_pool_put_page_bulk(run + 1, LEAT_EXTENT_BLOCKS - 1);
	assert_int_equal(leat_page_pool_set_limit(pool, 4 * EXTENT, 0), 0); /* and there again */
	assert_int_equal(take_all(pool, run, COUNT(run)), 32);
	leat_page_pool_put_page_bulk(run, 32);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void memory_kept_over_a_limit_serves_when_it_is_raised_again(void **state)
{
	struct leat_page_pool_stats s;
	struct leat_page_pool *pool;
	struct leat_run run[32];
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	pool = pool_of(mem.segment, 4 * EXTENT, 4 * EXTENT, EXTENT);
	assert_int_equal(take_all(pool, run, 32), 32);
	assert_int_equal(leat_page_pool_set_limit(pool, EXTENT, 0), 0);
	leat_page_pool_put_page_bulk(run, 31); /* one keeps its extent */
	run[0] = leat_page_pool_alloc(pool, 64);
	assert_int_equal(test_committed(pool), 2 * EXTENT);
	assert_pool_sound(pool);
	assert_int_equal(leat_page_pool_set_limit(pool, 4 * EXTENT, 0), 0);
	assert_int_equal(take_all(pool, run + 1, 30), 30);
	leat_page_pool_stats(pool, &s);
	assert_int_equal(s.grows, 4 + 2);
	leat_page_pool_put_page_bulk(run, 32);
	test_pool_end(pool);
	test_mem_close(&mem);
}

struct setter {
	struct leat_page_pool *pool;
	bool end;
};

static void *set_limits(void *arg)
{
	struct setter *setter = arg;
	uint64_t seed = 3;

	while (!__atomic_load_n(&setter->end, __ATOMIC_RELAXED)) {
		LEAT_ASSERT(!leat_page_pool_set_limit(setter->pool, (2 + test_below(&seed, 7)) * EXTENT,
						      (1 + test_below(&seed, 8)) * EXTENT / 2));
	}
	LEAT_ASSERT(!leat_page_pool_set_limit(setter->pool, EXTENT, 0));
	return NULL;
}

static void any_thread_sets_limits_under_traffic(void **state)
{
	enum { RING = 512 };
	static struct leat_run ring[RING];
	struct setter setter = { 0 };
	struct test_mem mem;
	pthread_t thread;
	uint64_t seed = 9;
	unsigned int i, k;

	(void)state;
	test_mem_open(&mem, EXTENT * 8);
	setter.pool = pool_of(mem.segment, 8 * EXTENT, 8 * EXTENT, EXTENT);
	assert_int_equal(pthread_create(&thread, NULL, set_limits, &setter), 0);
	for (i = 0; i < TEST_ROUNDS(200000u); i++) {
		k = test_below(&seed, RING);
		if (!leat_run_is_none(ring[k]))
			leat_page_pool_put_page(ring[k]);
		ring[k] = leat_page_pool_alloc(setter.pool, 1 + test_below(&seed, i / 1000 % 2 ? 3 : 12));
		if (i % 500 == 0)
			assert_pool_sound(setter.pool);
	}
	__atomic_store_n(&setter.end, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (k = 0; k < RING; k++)
		if (!leat_run_is_none(ring[k]))
			leat_page_pool_put_page(ring[k]);
	ring[0] = leat_page_pool_alloc(setter.pool, 64);
	leat_page_pool_put_page(ring[0]);
	leat_page_pool_shrink(setter.pool);
	assert_int_equal(test_committed(setter.pool), EXTENT);
	assert_pool_sound(setter.pool);
	test_pool_end(setter.pool);
	test_mem_close(&mem);
}

static void shrinking_stops_at_the_floor_and_at_what_is_out(void **state)
{
	struct leat_page_pool_stats s;
	struct leat_page_pool *pool;
	struct leat_run run[64];
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 8);
	pool = pool_of(mem.segment, 8 * EXTENT, 8 * EXTENT, 2 * EXTENT);
	assert_int_equal(leat_page_pool_shrink(pool), 0);
	assert_int_equal(take_all(pool, run, 64), 64);
	leat_page_pool_put_page_bulk(run, 39);
	leat_page_pool_put_page_bulk(run + 40, 24);
	assert_int_equal(leat_page_pool_shrink(pool), 3 * EXTENT); /* the one that is out is in the fifth */
	leat_page_pool_put_page(run[39]);
	assert_int_equal(leat_page_pool_shrink(pool), 3 * EXTENT);
	assert_int_equal(leat_page_pool_shrink(pool), 0);
	assert_int_equal(leat_page_pool_set_limit(pool, 8 * EXTENT, 1), 0); /* a floor of less than a page */
	assert_int_equal(leat_page_pool_shrink(pool), 2 * EXTENT);
	leat_page_pool_stats(pool, &s);
	assert_int_equal(s.committed, 0);
	assert_int_equal(s.shrinks, s.grows);
	run[0] = leat_page_pool_alloc(pool, 64);
	assert_false(leat_run_is_none(run[0]));
	leat_page_pool_put_page(run[0]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void low_water_is_kept_in_granules(void **state)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .low_water = 1025 };
	struct leat_page_pool *pool;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), 0);
	assert_int_equal(leat_pool_of(pool)->low_water, 3);
	leat_page_pool_destroy(pool);
	test_mem_close(&mem);
}

/* ---- several blocks at once ---- */

static void pages_lie_side_by_side(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[64];
	struct test_mem mem;
	unsigned int order, n;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	pool = pool_of(mem.segment, 2 * EXTENT, 2 * EXTENT, 0);
	for (order = 0; order <= LEAT_PAGE_ORDER_MAX; order++) {
		for (n = 0; n < COUNT(run); n++) {
			run[n] = leat_page_pool_alloc_pages(pool, order);
			if (leat_run_is_none(run[n]))
				break;
			assert_int_equal(leat_run_size(run[n]), LEAT_PAGE_SIZE << order);
			assert_int_equal(!!(run[n].bits & LEAT_RUN_LONG), order > LEAT_BLOCK_ORDER);
			memset(leat_run_start(run[n]), (int)n, leat_run_size(run[n]));
			assert_pool_sound(pool);
		}
		assert_int_equal(n, order < 2 ? COUNT(run) : 2 * EXTENT / LEAT_PAGE_SIZE >> order);
		while (n--) {
			assert_int_equal(leat_run_start(run[n])[0], n);
			assert_int_equal(leat_run_start(run[n])[leat_run_size(run[n]) - 1], n);
			leat_page_pool_put_page(run[n]);
		}
		assert_pool_whole(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_hole_of_one_block_serves_no_two(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[16], pair;
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	pool = pool_of(mem.segment, 2 * EXTENT, 2 * EXTENT, 0);
	assert_int_equal(take_all(pool, run, 16), 16);
	for (i = 0; i < 16; i += 2)
		leat_page_pool_put_page(run[i]);
	assert_true(leat_run_is_none(leat_page_pool_alloc_pages(pool, 4)));
	leat_page_pool_put_page(run[7]);
	assert_true(leat_run_is_none(leat_page_pool_alloc_pages(pool, 5)));
	pair = leat_page_pool_alloc_pages(pool, 4);
	assert_int_equal(leat_run_addr(pair) - pool->first, 6 * LEAT_BLOCK_SIZE);
	leat_page_pool_cancel(pool, pair); /* not the cursor's: it is put */
	assert_pool_sound(pool);
	for (i = 1; i < 16; i += 2)
		if (i != 7)
			leat_page_pool_put_page(run[i]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void cancelling_several_blocks_leaves_the_cursor_alone(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run, long_run;
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = pool_of(mem.segment, EXTENT, EXTENT, 0);
	for (i = 0; i < 24; i++) {
		run = leat_page_pool_alloc(pool, i % 3 ? 64 : 7); /* the cursor stands at the end of a block, or not */
		leat_page_pool_put_page(run);
		long_run = leat_page_pool_alloc_pages(pool, 5);
		assert_false(leat_run_is_none(long_run));
		leat_page_pool_cancel(pool, long_run);
		assert_true(leat_page_pool_left(pool) <= LEAT_BLOCK_GRANULES);
		assert_pool_sound(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/** The cursor has let go of a run that it had not begun, so it stands where several blocks end. */
static void a_cursor_that_let_go_at_a_border_takes_back_no_several_blocks(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run, long_run;
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = pool_of(mem.segment, EXTENT, EXTENT, 0);
	for (i = 0; i < 2; i++) {
		long_run = leat_page_pool_alloc_pages(pool, 4);
		run = leat_page_pool_alloc(pool, 1);
		assert_int_equal(leat_run_addr(run), leat_run_addr(long_run) + leat_run_size(long_run));
		leat_page_pool_cancel(pool, run);
		leat_page_pool_set_node(pool, -1);
		if (!i)
			long_run = leat_page_pool_trim(pool, long_run, 100);
		assert_int_equal(leat_run_granules(long_run), 2 * LEAT_BLOCK_GRANULES);
		assert_int_equal(test_outstanding(pool), 2 * LEAT_BLOCK_GRANULES);
		leat_page_pool_cancel(pool, long_run);
		assert_true(leat_page_pool_left(pool) <= LEAT_BLOCK_GRANULES);
		assert_pool_sound(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/**
 * Where one pool ended another one begins, and leaves a hole: an extent of another node that is in use is not completed.
 * What the first one left in the descriptors is no memory.
 */
static void a_hole_has_nothing_of_the_pool_before(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[32];
	struct test_mem mem;
	unsigned int n = 0, i;

	(void)state;
	test_mem_open(&mem, 2 * EXTENT);
	pool = pool_of(mem.segment, 2 * EXTENT, 2 * EXTENT, 0);
	assert_int_equal(take_all(pool, run, 16), 16);
	leat_page_pool_put_page_bulk(run, 16);
	test_pool_end(pool);

	pool = pool_of(mem.segment, 2 * EXTENT, 2 * EXTENT, LEAT_BLOCK_SIZE);
	run[n++] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
	assert_int_equal(test_committed(pool), LEAT_BLOCK_SIZE);
	leat_page_pool_set_node(pool, 0);
	run[n++] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
	assert_int_equal(leat_run_addr(run[1]) - leat_run_addr(run[0]), EXTENT);
	leat_page_pool_set_node(pool, -1);
	assert_pool_sound(pool);
	for (; n < COUNT(run); n++) {
		run[n] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
		if (leat_run_is_none(run[n]))
			break;
		assert_true((uint64_t)(n + 1) * LEAT_BLOCK_SIZE <= test_committed(pool));
	}
	assert_int_equal(n, 16);
	for (i = 0; i < n; i++)
		leat_page_pool_put_page(run[i]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- the steady state ---- */

/** A ring of @n buffers of @granules, first in first out; returns allocations that made memory traffic, of @rounds. */
static uint64_t memory_traffic(unsigned int n, uint32_t granules, unsigned int rounds, uint64_t *slow)
{
	static struct leat_run ring[1024];
	struct leat_page_pool_stats before, after;
	struct leat_page_pool *pool;
	struct rusage start, end;
	struct test_mem mem;
	unsigned int i;

	test_mem_open(&mem, EXTENT * 64);
	pool = pool_of(mem.segment, EXTENT * 64, EXTENT * 64, 0);
	for (i = 0; i < n; i++)
		ring[i] = leat_page_pool_alloc(pool, granules);
	for (i = 0; i < 20000 + rounds; i++) {
		if (i == 20000) {
			leat_page_pool_stats(pool, &before);
			getrusage(RUSAGE_THREAD, &start);
		}
		leat_page_pool_put_page(ring[i % n]);
		ring[i % n] = leat_page_pool_alloc(pool, granules);
		LEAT_ASSERT(!leat_run_is_none(ring[i % n]));
		memset(leat_run_start(ring[i % n]), (int)i, leat_run_size(ring[i % n]));
	}
	getrusage(RUSAGE_THREAD, &end);
	leat_page_pool_stats(pool, &after);
#ifndef TEST_SANITIZED /* whose own memory comes by faults */
	assert_int_equal(end.ru_minflt - start.ru_minflt, 0);
	assert_int_equal(end.ru_majflt - start.ru_majflt, 0);
#endif
	leat_page_pool_put_page_bulk(ring, n);
	test_pool_end(pool);
	test_mem_close(&mem);
	*slow = after.slow - before.slow;
	return after.grows - before.grows + (after.partial_runs - before.partial_runs) +
	       (after.shrinks - before.shrinks) + (after.grow_failed - before.grow_failed);
}

static void the_steady_state_has_no_memory_traffic_and_no_page_faults(void **state)
{
	const unsigned int rings[] = { 1, 64, 256, 1024 }, sizes[] = { 1, 3, 4, 8, 20 }, rounds = 100000;
	unsigned int i, k;
	uint64_t slow;

	(void)state;
	for (i = 0; i < COUNT(rings); i++) {
		for (k = 0; k < COUNT(sizes); k++) {
			assert_int_equal(memory_traffic(rings[i], sizes[k], rounds, &slow), 0);
			/* by construction: once for each block */
			assert_in_range(slow, rounds / (LEAT_BLOCK_GRANULES / sizes[k]) - 1,
					rounds / (LEAT_BLOCK_GRANULES / sizes[k]) + 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_checked),
		cmocka_unit_test(a_raised_limit_serves_at_once),
		cmocka_unit_test(what_is_over_a_lowered_limit_goes_extent_by_extent),
		cmocka_unit_test(memory_kept_over_a_limit_serves_when_it_is_raised_again),
		cmocka_unit_test(any_thread_sets_limits_under_traffic),
		cmocka_unit_test(shrinking_stops_at_the_floor_and_at_what_is_out),
		cmocka_unit_test(low_water_is_kept_in_granules),
		cmocka_unit_test(pages_lie_side_by_side),
		cmocka_unit_test(a_hole_of_one_block_serves_no_two),
		cmocka_unit_test(cancelling_several_blocks_leaves_the_cursor_alone),
		cmocka_unit_test(a_cursor_that_let_go_at_a_border_takes_back_no_several_blocks),
		cmocka_unit_test(a_hole_has_nothing_of_the_pool_before),
		cmocka_unit_test(the_steady_state_has_no_memory_traffic_and_no_page_faults),
	};

	return cmocka_run_group_tests_name("page_pool_limit", tests, NULL, NULL);
}
