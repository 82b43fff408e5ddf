/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch_test.c: a grace period waits for the readers that may hold a pointer and for no others; what is poisoned after
 * it is never seen. The accesses to the objects are plain, so that ThreadSanitizer checks the order, too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/epoch.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 300
#else
#define ROUNDS 3000
#endif

static struct leat_epoch epoch;

static void epoch_begin(void)
{
	memset(&epoch, 0, sizeof(epoch));
	leat_epoch_init(&epoch);
}

/* ---- who is waited for ---- */

static uint32_t passed;

static void *synchronize_main(void *arg)
{
	leat_epoch_synchronize(&epoch);
	__atomic_store_n(&passed, 1, __ATOMIC_RELEASE);
	return arg;
}

/** Begins a grace period, looks whether it waits, lets the reader @act, and sees it end. */
static void expect_to_wait_for(void (*act)(struct leat_epoch *epoch, unsigned int id), unsigned int id)
{
	const struct timespec moment = { 0, 5000000 };
	uint64_t now = epoch.now;
	pthread_t thread;

	passed = 0;
	assert_int_equal(pthread_create(&thread, NULL, synchronize_main, NULL), 0);
	while (__atomic_load_n(&epoch.now, __ATOMIC_RELAXED) == now)
		sched_yield(); /* until it has begun */
	nanosleep(&moment, NULL);
	assert_int_equal(__atomic_load_n(&passed, __ATOMIC_ACQUIRE), 0);
	act(&epoch, id);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(passed, 1);
}

static void nobody_online_means_no_waiting(void **state)
{
	unsigned int i;

	(void)state;
	epoch_begin();
	for (i = 0; i < 100; i++)
		leat_epoch_synchronize(&epoch);
	assert_int_equal(epoch.now, 101);
}

static void a_reader_online_is_waited_for(void **state)
{
	unsigned int id;

	(void)state;
	epoch_begin();
	for (id = 0; id < LEAT_EPOCH_READERS; id += 31) {
		leat_epoch_online(&epoch, id);
		expect_to_wait_for(leat_epoch_quiescent, id);
		expect_to_wait_for(leat_epoch_offline, id);
		leat_epoch_synchronize(&epoch);
		leat_epoch_online(&epoch, id);
		expect_to_wait_for(leat_epoch_quiescent, id);
		leat_epoch_offline(&epoch, id);
	}
}

static void one_quiet_reader_is_not_enough(void **state)
{
	(void)state;
	epoch_begin();
	leat_epoch_online(&epoch, 1);
	leat_epoch_online(&epoch, 2);
	leat_epoch_quiescent(&epoch, 1); /* before the grace period begins: does not count */
	leat_epoch_offline(&epoch, 1);
	expect_to_wait_for(leat_epoch_quiescent, 2);
	leat_epoch_offline(&epoch, 2);
}

static void a_reader_may_begin_a_grace_period_and_look_later(void **state)
{
	uint64_t first, second;

	(void)state;
	epoch_begin();
	first = leat_epoch_begin(&epoch);
	assert_true(leat_epoch_passed(&epoch, first));
	leat_epoch_online(&epoch, 3);
	leat_epoch_online(&epoch, 4);
	first = leat_epoch_begin(&epoch);
	assert_false(leat_epoch_passed(&epoch, first));
	leat_epoch_quiescent(&epoch, 3);
	assert_false(leat_epoch_passed(&epoch, first));
	second = leat_epoch_begin(&epoch);
	leat_epoch_quiescent(&epoch, 4);
	assert_true(leat_epoch_passed(&epoch, first));
	assert_false(leat_epoch_passed(&epoch, second));
	leat_epoch_offline(&epoch, 3);
	assert_true(leat_epoch_passed(&epoch, second));
	leat_epoch_offline(&epoch, 4);
}

/* ---- what readers see ---- */

#define READERS 4u
#define GOOD UINT64_C(0x600d)
#define POISON UINT64_C(0xdead)

struct object {
	uint64_t word[4];
};

static struct object *published;
static uint32_t stop;

static void object_set(struct object *object, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		object->word[i] = value;
}

static void object_check(const struct object *object)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		LEAT_ASSERT(object->word[i] == GOOD);
}

/** Polls as a worker does, and now and then sleeps as one. */
static void *reader_main(void *arg)
{
	unsigned int id = *(unsigned int *)arg, n = 0;
	const struct object *object;

	leat_epoch_online(&epoch, id);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		object = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
		object_check(object);
		if (++n % 16 == 0)
			sched_yield(); /* with the pointer in hand */
		object_check(object);
		if (n % 64 == id) {
			leat_epoch_offline(&epoch, id);
			sched_yield();
			leat_epoch_online(&epoch, id);
		} else {
			leat_epoch_quiescent(&epoch, id);
		}
	}
	leat_epoch_offline(&epoch, id);
	return NULL;
}

static void what_is_poisoned_after_a_grace_period_is_not_seen(void **state)
{
	static struct object object[2];
	unsigned int id[READERS], i;
	pthread_t thread[READERS];

	(void)state;
	epoch_begin();
	stop = 0;
	object_set(&object[0], GOOD);
	published = &object[0];
	for (i = 0; i < READERS; i++) {
		id[i] = i * 9;
		assert_int_equal(pthread_create(&thread[i], NULL, reader_main, &id[i]), 0);
	}
	for (i = 1; i <= ROUNDS; i++) {
		struct object *next = &object[i % 2], *old = published;

		object_set(next, GOOD);
		__atomic_store_n(&published, next, __ATOMIC_RELEASE);
		leat_epoch_synchronize(&epoch);
		object_set(old, POISON);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void *many_synchronize_main(void *arg)
{
	unsigned int i;

	for (i = 0; i < ROUNDS / 4; i++)
		leat_epoch_synchronize(&epoch);
	return arg;
}

static void several_control_threads_may_wait_at_once(void **state)
{
	unsigned int id = 5, i;
	static struct object object;
	pthread_t reader, thread[3];

	(void)state;
	epoch_begin();
	stop = 0;
	object_set(&object, GOOD);
	published = &object;
	assert_int_equal(pthread_create(&reader, NULL, reader_main, &id), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, many_synchronize_main, NULL), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(epoch.now, 1 + 3 * (ROUNDS / 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_online_means_no_waiting),
		cmocka_unit_test(a_reader_online_is_waited_for),
		cmocka_unit_test(one_quiet_reader_is_not_enough),
		cmocka_unit_test(a_reader_may_begin_a_grace_period_and_look_later),
		cmocka_unit_test(what_is_poisoned_after_a_grace_period_is_not_seen),
		cmocka_unit_test(several_control_threads_may_wait_at_once),
	};

	return cmocka_run_group_tests_name("epoch", tests, NULL, NULL);
}
