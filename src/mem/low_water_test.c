/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * low_water_test.c: an owner who waits is woken when as much as he waits for has come back: not before, and once.
 * That no wake-up is lost among threads is in remote_return_test.c.
 */
#include "mem/test_mem.h"

#include <pthread.h>

#define GRANULES 10u
#define RUNS 40u

struct bench {
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run[RUNS]; /* of GRANULES each */
	uint32_t wakes;
};

static void count_wake(void *arg)
{
	__atomic_fetch_add((uint32_t *)arg, 1, __ATOMIC_SEQ_CST);
}

/** @out runs are out of a pool with @low_water granules. */
static void set_up(struct bench *b, uint64_t low_water, unsigned int out)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .wake = count_wake };
	unsigned int i;

	b->wakes = 0;
	test_mem_open(&b->mem, EXTENT);
	opts.wake_arg = &b->wakes;
	opts.low_water = low_water * LEAT_GRANULE_SIZE;
	assert_int_equal(leat_page_pool_create(b->mem.segment, &opts, &b->pool), 0);
	leat_page_pool_own(b->pool);
	for (i = 0; i < out; i++)
		b->run[i] = leat_page_pool_alloc(b->pool, GRANULES);
}

static void tear_down(struct bench *b)
{
	test_pool_end(b->pool);
	test_mem_close(&b->mem);
}

struct put {
	struct leat_run *run;
	unsigned int n;
};

static void *put_main(void *arg)
{
	struct put *put = arg;
	unsigned int i;

	for (i = 0; i < put->n; i++)
		leat_page_pool_put_page(put->run[i]);
	return NULL;
}

/** Another thread puts @n runs from @first, one by one. */
static void come_back(struct bench *b, unsigned int first, unsigned int n)
{
	struct put put = { b->run + first, n };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, put_main, &put), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_owner_is_woken_once_when_enough_has_come_back(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 95, 20);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 95);
	come_back(&b, 0, 9);
	assert_int_equal(b.wakes, 0);
	assert_int_equal(b.pool->waiting, 5);
	come_back(&b, 9, 1);
	assert_int_equal(b.wakes, 1);
	come_back(&b, 10, 10);
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

static void without_a_low_water_one_granule_is_enough(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 0, 2);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	come_back(&b, 0, 1);
	assert_int_equal(b.wakes, 1);
	come_back(&b, 1, 1);
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

static void what_came_back_before_counts(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 100, 20);
	come_back(&b, 0, 4);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 60);
	come_back(&b, 4, 5);
	assert_int_equal(b.wakes, 0);
	come_back(&b, 9, 1);
	assert_int_equal(b.wakes, 1);
	come_back(&b, 10, 10);
	assert_true(leat_page_pool_wait_prepare(b.pool)); /* nothing is out any more: all that was has come */
	assert_int_equal(b.pool->waiting, 0);
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

static void who_wants_more_than_is_out_waits_for_what_is_out(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1000000, 7);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 70);
	come_back(&b, 0, 6);
	assert_int_equal(b.wakes, 0);
	come_back(&b, 6, 1);
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

/** A device's buffers come back by the owner: who waited for them would wait for himself. */
static void what_a_device_has_is_not_waited_for(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1000, 20);
	leat_page_pool_post(b.pool, 170);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 30);
	come_back(&b, 0, 3);
	assert_int_equal(b.wakes, 1);
	assert_true(leat_page_pool_wait_prepare(b.pool)); /* these three */
	assert_false(leat_page_pool_wait_prepare(b.pool)); /* nothing comes but by the device */
	assert_int_equal(b.pool->waiting, 1);
	leat_page_pool_complete(b.pool, 170);
	leat_page_pool_put_page_bulk(b.run + 3, 17);
	tear_down(&b);
}

/** What the owner puts himself is not subtracted: he prepares again, and what is out by then is waited for. */
static void the_owner_who_puts_prepares_again(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1000, 4);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 40);
	leat_page_pool_put_page(b.run[0]);
	leat_page_pool_put_page(b.run[1]);
	assert_int_equal(b.pool->waiting, 40);
	come_back(&b, 2, 1);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 10);
	come_back(&b, 3, 1);
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

static void a_pool_that_is_destroyed_wakes_nobody(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1000, 4);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	come_back(&b, 0, 1);
	leat_page_pool_destroy(b.pool);
	come_back(&b, 1, 3);
	assert_int_equal(b.wakes, 0);
	test_mem_close(&b.mem);
}

static void *own_and_wait(void *arg)
{
	struct bench *b = arg;

	leat_page_pool_own(b->pool);
	LEAT_ASSERT(!leat_page_pool_wait_prepare(b->pool));
	leat_page_pool_disown(b->pool);
	return NULL;
}

/** The next owner waits for what is out then, and the pool wakes once, when that is back. */
static void a_pool_that_changes_owners_wakes_once(void **state)
{
	pthread_t thread;
	struct bench b;

	(void)state;
	set_up(&b, 1000, 6);
	assert_false(leat_page_pool_wait_prepare(b.pool));
	assert_int_equal(b.pool->waiting, 60);
	leat_page_pool_disown(b.pool);
	come_back(&b, 0, 2);
	assert_int_equal(pthread_create(&thread, NULL, own_and_wait, &b), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(b.pool->waiting, 40);
	come_back(&b, 2, 3);
	assert_int_equal(b.wakes, 0);
	come_back(&b, 5, 1);
	assert_int_equal(b.wakes, 1);
	leat_page_pool_own(b.pool);
	assert_true(leat_page_pool_wait_prepare(b.pool)); /* the forty */
	assert_int_equal(b.wakes, 1);
	tear_down(&b);
}

/** Several at once take it to 0: one of them wakes. */
static void several_who_return_at_once_wake_once(void **state)
{
	enum { THREADS = 4 };
	unsigned int round, rounds = TEST_ROUNDS(1000u), i;
	pthread_t thread[THREADS];
	struct put put[THREADS];
	struct bench b;

	(void)state;
	set_up(&b, 1000, 0);
	for (round = 1; round <= rounds; round++) {
		for (i = 0; i < RUNS; i++)
			b.run[i] = leat_page_pool_alloc(b.pool, GRANULES);
		assert_false(leat_page_pool_wait_prepare(b.pool));
		for (i = 0; i < THREADS; i++) {
			put[i] = (struct put){ b.run + i * (RUNS / THREADS), RUNS / THREADS };
			assert_int_equal(pthread_create(&thread[i], NULL, put_main, &put[i]), 0);
		}
		for (i = 0; i < THREADS; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(b.wakes, round);
		leat_page_pool_drain(b.pool);
	}
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_is_woken_once_when_enough_has_come_back),
		cmocka_unit_test(without_a_low_water_one_granule_is_enough),
		cmocka_unit_test(what_came_back_before_counts),
		cmocka_unit_test(who_wants_more_than_is_out_waits_for_what_is_out),
		cmocka_unit_test(what_a_device_has_is_not_waited_for),
		cmocka_unit_test(the_owner_who_puts_prepares_again),
		cmocka_unit_test(a_pool_that_is_destroyed_wakes_nobody),
		cmocka_unit_test(a_pool_that_changes_owners_wakes_once),
		cmocka_unit_test(several_who_return_at_once_wake_once),
	};

	return cmocka_run_group_tests_name("low_water", tests, NULL, NULL);
}
