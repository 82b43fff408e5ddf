/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_return_test.c: buffers that come back from other threads are all accounted for, whatever the order, the number
 * of threads and the moment at which pools, segments and arenas end; and who waits for memory is woken.
 *
 * The main thread owns the pools and hands runs to returners by one single-producer ring each.
 */
#include "mem/test_mem.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define CHANNEL_ROOM 256u
#define RETURNERS_MAX 8u
#define BURST_MAX 32u

/* ---- from the owner to one returner ---- */

struct channel {
	uint32_t head LEAT_CACHELINE_ALIGNED; /* runs pushed; owner */
	uint32_t tail LEAT_CACHELINE_ALIGNED; /* runs that have been put; returner */
	uint32_t stop;
	struct leat_run run[CHANNEL_ROOM] LEAT_CACHELINE_ALIGNED;
};

static bool channel_push(struct channel *ch, struct leat_run run)
{
	uint32_t head = ch->head;

	if (head - __atomic_load_n(&ch->tail, __ATOMIC_ACQUIRE) == CHANNEL_ROOM)
		return false;
	ch->run[head % CHANNEL_ROOM] = run;
	__atomic_store_n(&ch->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/** Waits until everything that was pushed has been put. */
static void channel_wait(struct channel *ch)
{
	while (__atomic_load_n(&ch->tail, __ATOMIC_ACQUIRE) != ch->head)
		sched_yield();
}

/* ---- returners ---- */

enum order {
	IN_ORDER_BULK,
	SHUFFLED_BULK,
	BACKWARDS_BULK,
	ONE_BY_ONE,
	ORDERS,
};

struct returner {
	struct channel ch;
	pthread_t thread;
	enum order order;
	uint64_t seed;
};

static void reorder(struct returner *r, struct leat_run *run, unsigned int n)
{
	unsigned int i, k;
	struct leat_run swap;

	if (r->order != SHUFFLED_BULK && r->order != BACKWARDS_BULK)
		return;
	for (i = 0; i < n; i++) {
		k = r->order == SHUFFLED_BULK ? test_below(&r->seed, n) : n - 1 - i;
		if (r->order == BACKWARDS_BULK && k <= i)
			break;
		swap = run[i];
		run[i] = run[k];
		run[k] = swap;
	}
}

/** Takes up to a burst from the channel and puts it. Returns how many. */
static unsigned int returner_round(struct returner *r)
{
	uint32_t n = __atomic_load_n(&r->ch.head, __ATOMIC_ACQUIRE) - r->ch.tail, i;
	struct leat_run run[BURST_MAX];

	n = n > BURST_MAX ? BURST_MAX : n;
	for (i = 0; i < n; i++) {
		run[i] = r->ch.run[(r->ch.tail + i) % CHANNEL_ROOM];
		LEAT_ASSERT(*(uint64_t *)(void *)leat_run_start(run[i]) == ~run[i].bits); /* else: used by two */
		*(uint64_t *)(void *)leat_run_start(run[i]) = 0;
	}
	reorder(r, run, n);
	if (r->order != ONE_BY_ONE)
		leat_page_pool_put_page_bulk(run, n);
	for (i = 0; r->order == ONE_BY_ONE && i < n; i++)
		leat_page_pool_put_page(run[i]);
	__atomic_store_n(&r->ch.tail, r->ch.tail + n, __ATOMIC_RELEASE);
	return n;
}

static void *returner_main(void *arg)
{
	struct returner *r = arg;

	for (;;) {
		bool stop = __atomic_load_n(&r->ch.stop, __ATOMIC_ACQUIRE);

		if (returner_round(r))
			continue;
		if (stop)
			return NULL;
		sched_yield();
	}
}

static struct returner returner[RETURNERS_MAX];

static void returners_start(unsigned int n)
{
	unsigned int i;

	memset(returner, 0, sizeof(returner));
	for (i = 0; i < n; i++) {
		returner[i].order = (enum order)(i % ORDERS);
		returner[i].seed = i + 1;
		assert_int_equal(pthread_create(&returner[i].thread, NULL, returner_main, &returner[i]), 0);
	}
}

static void returners_end(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		__atomic_store_n(&returner[i].ch.stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++)
		assert_int_equal(pthread_join(returner[i].thread, NULL), 0);
}

static void mark(struct leat_run run)
{
	*(uint64_t *)(void *)leat_run_start(run) = ~run.bits;
}

static struct leat_run alloc_patiently(struct leat_page_pool *pool, uint32_t n)
{
	struct leat_run run;

	while (leat_run_is_none(run = leat_page_pool_alloc(pool, n)))
		sched_yield();
	mark(run);
	return run;
}

/* ---- all accounted ---- */

/** Hands over @granules granules of runs that are 1 to 4 long. */
static void hand_over(struct leat_page_pool *pool, unsigned int n, uint64_t granules)
{
	uint64_t seed = n, sum = 0, pushed = 0;
	struct leat_page_pool_stats stats;
	struct leat_run run;

	while (sum < granules) {
		run = alloc_patiently(pool, 1 + test_below(&seed, 4));
		sum += leat_run_granules(run);
		while (!channel_push(&returner[pushed / BURST_MAX % n].ch, run)) {
			sched_yield();
			pushed += BURST_MAX; /* the next one, then */
		}
		pushed++;
	}
	returners_end(n);
	leat_page_pool_drain(pool);
	leat_page_pool_stats(pool, &stats);
	assert_int_equal(stats.alloc, sum);
	assert_int_equal(stats.remote, sum);
	assert_int_equal(stats.direct, 0);
}

static void no_granule_is_lost_on_the_way_back(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	unsigned int n;

	(void)state;
	for (n = 1; n <= RETURNERS_MAX; n *= 2) {
		test_mem_open(&mem, EXTENT * 16);
		pool = test_pool(mem.segment, EXTENT * 16);
		returners_start(n);
		hand_over(pool, n, TEST_ROUNDS(1250000u));
		test_pool_end(pool);
		test_mem_close(&mem);
	}
}

static void a_pool_at_its_limit_loses_nothing(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	returners_start(4);
	hand_over(pool, 4, TEST_ROUNDS(300000u));
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void one_bulk_put_serves_several_pools(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool[4];
	unsigned int i, rounds = TEST_ROUNDS(200000u);

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	for (i = 0; i < 4; i++)
		pool[i] = test_pool(mem.segment, EXTENT);
	leat_page_pool_disown(pool[3]);
	returners_start(4);
	for (i = 0; i < rounds; i++) {
		struct leat_run run = alloc_patiently(pool[i % 3], 1 + i % 5);

		while (!channel_push(&returner[i / 7 % 4].ch, run))
			sched_yield();
	}
	returners_end(4);
	leat_page_pool_own(pool[3]);
	for (i = 0; i < 4; i++)
		test_pool_end(pool[i]);
	test_mem_close(&mem);
}

static void owner_and_strangers_share_a_bulk_put(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *mine, *theirs;
	struct leat_run run[64];
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	mine = test_pool(mem.segment, EXTENT);
	theirs = test_pool(mem.segment, EXTENT);
	for (i = 0; i < COUNT(run); i++)
		run[i] = leat_page_pool_alloc(i / 3 % 2 ? mine : theirs, 3);
	leat_page_pool_disown(theirs);
	leat_page_pool_put_page_bulk(run, COUNT(run));
	assert_int_equal(test_outstanding(mine), 0);
	assert_int_equal(test_outstanding(theirs), 33 * 3);
	leat_page_pool_own(theirs);
	test_pool_end(mine);
	test_pool_end(theirs);
	test_mem_close(&mem);
}

static void neighbours_come_back_as_one_word(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run[128];
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < COUNT(run); i++)
		run[i] = leat_page_pool_alloc(pool, 2);
	leat_page_pool_disown(pool);
	leat_page_pool_put_page_bulk(run, COUNT(run)); /* 256 granules, 4 blocks */
	for (i = 0; i < LEAT_THREADS_MAX; i++)
		assert_true(!pool->ring[i] || *(uint32_t *)pool->ring[i] == 4 || *(uint32_t *)pool->ring[i] == 0);
	leat_page_pool_own(pool);
	assert_int_equal(leat_page_pool_drain(pool), 256);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- threads come and go ---- */

#define CROWD 100u
#define CROWD_RUNS 20u

struct visitor {
	pthread_t thread;
	pthread_barrier_t *together; /* NULL: on its own */
	struct leat_run run[CROWD_RUNS];
};

static void *visitor_main(void *arg)
{
	struct visitor *v = arg;
	unsigned int i;

	if (v->together)
		pthread_barrier_wait(v->together);
	for (i = 0; i < CROWD_RUNS / 2; i++)
		leat_page_pool_put_page(v->run[i]);
	leat_page_pool_put_page_bulk(v->run + i, CROWD_RUNS - i);
	if (v->together) /* so that each has its number while the others ask for theirs */
		pthread_barrier_wait(v->together);
	return NULL;
}

static void visitor_start(struct visitor *v, struct leat_page_pool *pool)
{
	unsigned int i;

	for (i = 0; i < CROWD_RUNS; i++) {
		v->run[i] = leat_page_pool_alloc(pool, 1 + i % 3);
		assert_false(leat_run_is_none(v->run[i]));
	}
	assert_int_equal(pthread_create(&v->thread, NULL, visitor_main, v), 0);
}

static void threads_may_come_and_go(void **state)
{
	struct visitor v = { .together = NULL };
	struct test_mem mem;
	struct leat_page_pool *pool;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 300; i++) {
		visitor_start(&v, pool);
		assert_int_equal(pthread_join(v.thread, NULL), 0);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void more_threads_than_rings_may_put_at_once(void **state)
{
	static struct visitor v[CROWD];
	struct test_mem mem;
	struct leat_page_pool *pool;
	pthread_barrier_t together;
	unsigned int round, i;

	(void)state;
	test_mem_open(&mem, EXTENT * 16);
	pool = test_pool(mem.segment, EXTENT * 16);
	for (round = 0; round < 5; round++) {
		assert_int_equal(pthread_barrier_init(&together, NULL, CROWD), 0);
		for (i = 0; i < CROWD; i++) {
			v[i].together = &together;
			visitor_start(&v[i], pool);
		}
		for (i = 0; i < CROWD; i++)
			assert_int_equal(pthread_join(v[i].thread, NULL), 0);
		pthread_barrier_destroy(&together);
		leat_page_pool_drain(pool);
		assert_int_equal(test_outstanding(pool), 0);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_thread_without_memory_for_its_ring_uses_the_shared_one(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run a, b;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	a = leat_page_pool_alloc(pool, 7);
	b = leat_page_pool_alloc(pool, 8);
	leat_page_pool_disown(pool);
	leat_heap_fail_nth(1);
	leat_page_pool_put_page(a);
	assert_true(leat_heap_failed());
	leat_heap_fail_nth(0);
	leat_page_pool_put_page(b);
	leat_page_pool_own(pool);
	assert_int_equal(leat_page_pool_drain(pool), 15);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- a doorbell that nobody heard ---- */

static void exhaust(struct leat_page_pool *pool, struct leat_run *run)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		assert_false(leat_run_is_none(run[i] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES)));
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 1)));
}

static void put_unheard(struct leat_page_pool *pool, struct leat_run run)
{
	leat_page_pool_disown(pool);
	leat_page_pool_put_page(run);
	leat_page_pool_own(pool);
	assert_true(pool->doorbell);
	pool->doorbell = 0;
}

static void a_lost_doorbell_is_made_good_before_memory_is_short(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run[8];

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	exhaust(pool, run);
	assert_false(leat_page_pool_wait_prepare(pool));
	put_unheard(pool, run[0]);
	assert_int_equal(leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES).bits, run[0].bits);
	put_unheard(pool, run[3]);
	assert_true(leat_page_pool_wait_prepare(pool));
	assert_int_equal(leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES).bits, run[3].bits);
	put_unheard(pool, run[5]);
	leat_page_pool_put_page_bulk(run, 5);
	leat_page_pool_put_page_bulk(run + 6, 2);
	leat_page_pool_destroy(pool); /* reads every ring, too */
	test_mem_close(&mem);
}

/* ---- the last holder ---- */

static pthread_barrier_t sharers;
static struct leat_run shared_run;

static void *sharer_main(void *arg)
{
	unsigned int i, rounds = *(unsigned int *)arg;

	for (i = 0; i < rounds; i++) {
		pthread_barrier_wait(&sharers);
		leat_page_pool_get_page(shared_run);
		leat_page_pool_put_page(shared_run);
		leat_page_pool_put_page(shared_run);
		pthread_barrier_wait(&sharers);
	}
	return NULL;
}

static void the_last_of_several_holders_returns_the_run_once(void **state)
{
	enum { HOLDERS = 3 };
	unsigned int i, k, rounds = TEST_ROUNDS(6000u);
	struct test_mem mem;
	struct leat_page_pool *pool;
	pthread_t thread[HOLDERS];

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	pthread_barrier_init(&sharers, NULL, HOLDERS + 1);
	for (k = 0; k < HOLDERS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, sharer_main, &rounds), 0);
	for (i = 0; i < rounds; i++) {
		shared_run = leat_page_pool_alloc(pool, 1 + i % 40);
		for (k = 0; k < HOLDERS; k++)
			leat_page_pool_get_page(shared_run);
		assert_true(leat_run_is_shared(shared_run));
		pthread_barrier_wait(&sharers);
		leat_page_pool_put_page(shared_run);
		pthread_barrier_wait(&sharers);
		leat_page_pool_drain(pool);
		assert_int_equal(test_outstanding(pool), 0);
	}
	for (k = 0; k < HOLDERS; k++)
		assert_int_equal(pthread_join(thread[k], NULL), 0);
	pthread_barrier_destroy(&sharers);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static uint32_t duel_round;

static void duel_wait(uint32_t round)
{
	unsigned int spins = 0;

	while (__atomic_load_n(&duel_round, __ATOMIC_ACQUIRE) < round)
		if (++spins % 4096 == 0)
			sched_yield();
}

static void *duel_main(void *arg)
{
	uint32_t round, rounds = *(unsigned int *)arg;

	for (round = 1; round <= rounds; round++) {
		duel_wait(2 * round - 1);
		leat_page_pool_put_page(shared_run);
		__atomic_store_n(&duel_round, 2 * round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/** Two put at the same moment, each of whom has seen the other's reference. */
static void two_holders_who_put_at_once_return_the_run_once(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(200000u);
	struct test_mem mem;
	struct leat_page_pool *pool;
	pthread_t thread;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	duel_round = 0;
	assert_int_equal(pthread_create(&thread, NULL, duel_main, &rounds), 0);
	for (round = 1; round <= rounds; round++) {
		shared_run = leat_page_pool_alloc(pool, 1);
		leat_page_pool_get_page(shared_run);
		__atomic_store_n(&duel_round, 2 * round - 1, __ATOMIC_RELEASE);
		leat_page_pool_put_page(shared_run);
		duel_wait(2 * round);
		leat_page_pool_drain(pool);
		assert_int_equal(test_outstanding(pool), 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- the end of a pool ---- */

#define END_RETURNERS 3u

/** Hands 1 to 60 runs of a pool to the returners. */
static void scatter(struct leat_page_pool *pool, uint64_t *seed)
{
	unsigned int n = 1 + test_below(seed, 60), i;

	for (i = 0; i < n; i++) {
		struct leat_run run = leat_page_pool_alloc(pool, 1 + test_below(seed, 8));

		assert_false(leat_run_is_none(run));
		mark(run);
		while (!channel_push(&returner[test_below(seed, END_RETURNERS)].ch, run))
			sched_yield();
	}
}

static void scatter_wait(void)
{
	unsigned int i;

	for (i = 0; i < END_RETURNERS; i++)
		channel_wait(&returner[i].ch);
}

static void a_pool_destroyed_in_flight_goes_with_the_last_return(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(1500u);
	struct test_mem mem;
	struct leat_page_pool *a, *b;
	uint64_t seed = 3;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	returners_start(END_RETURNERS);
	for (round = 0; round < rounds; round++) {
		a = test_pool(mem.segment, EXTENT);
		b = test_pool(mem.segment, EXTENT);
		scatter(a, &seed);
		scatter(b, &seed);
		leat_page_pool_destroy(a);
		if (round % 2)
			scatter_wait();
		leat_page_pool_destroy(b);
		scatter_wait();
		assert_int_equal(leat_segment_committed(mem.segment), 0);
	}
	returners_end(END_RETURNERS);
	test_mem_close(&mem);
}

static void an_arena_destroyed_in_flight_goes_with_the_last_return(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(1500u);
	uint64_t seed = 9, first = 0;

	(void)state;
	returners_start(END_RETURNERS);
	for (round = 0; round < rounds; round++) {
		struct leat_arena_opts arena_opts = { .size = sizeof(arena_opts), .data_size = EXTENT * 7 };
		struct leat_segment_opts opts = { .size = sizeof(opts), .bytes = EXTENT * 2 };
		struct leat_page_pool *pool;
		struct test_mem mem;

		opts.kind = round % 2 ? LEAT_SEGMENT_SHARED : LEAT_SEGMENT_PRIVATE;
		assert_int_equal(leat_arena_create(&arena_opts, &mem.arena), 0);
		assert_int_equal(leat_segment_create(mem.arena, &opts, &mem.segment), 0);
		pool = test_pool(mem.segment, EXTENT);
		first = first ? first : pool->first;
		assert_int_equal(pool->first, first); /* else: the arena before has not gone, or its range is taken */
		scatter(pool, &seed);
		leat_page_pool_destroy(pool);
		leat_segment_destroy(mem.segment);
		leat_arena_destroy(mem.arena);
		scatter_wait();
	}
	returners_end(END_RETURNERS);
}

static void a_pool_changes_owners_without_loss(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct visitor v = { .together = NULL };
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 50; i++) {
		visitor_start(&v, pool);
		leat_page_pool_disown(pool); /* while its buffers come back */
		assert_int_equal(pthread_join(v.thread, NULL), 0);
		leat_page_pool_own(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- waiting for memory ---- */

#define LOST_WAKE_SECONDS 20

static void wake(void *arg)
{
	sem_post(arg);
}

/** Sleeps until memory comes back. */
static void wait_for_memory(struct leat_page_pool *pool, sem_t *sem, unsigned int *slept)
{
	struct timespec until;

	if (leat_page_pool_wait_prepare(pool))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOST_WAKE_SECONDS;
	while (sem_timedwait(sem, &until))
		LEAT_ASSERT(errno == EINTR); /* else: a wake-up was lost */
	++*slept;
}

/**
 * @n returners give back one by one what an owner, who has one extent, sends; he sleeps when he has nothing, until
 * @low_water bytes are back.
 */
static void sleep_and_be_woken(unsigned int n, unsigned int sleeps, uint64_t low_water)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .wake = wake };
	unsigned int slept = 0, i = 0;
	struct leat_page_pool *pool;
	struct test_mem mem;
	struct leat_run run;
	sem_t sem;

	sem_init(&sem, 0, 0);
	test_mem_open(&mem, EXTENT);
	opts.wake_arg = &sem;
	opts.low_water = low_water;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	returners_start(n);
	while (slept < sleeps) {
		while (leat_run_is_none(run = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES)))
			wait_for_memory(pool, &sem, &slept);
		mark(run);
		while (!channel_push(&returner[i++ % n].ch, run))
			sched_yield();
	}
	returners_end(n);
	test_pool_end(pool);
	test_mem_close(&mem);
	sem_destroy(&sem);
}

static void no_wake_up_is_lost(void **state)
{
	(void)state;
	sleep_and_be_woken(1, TEST_ROUNDS(2500u), 0);
	sleep_and_be_woken(3, TEST_ROUNDS(8000u), 0);
	sleep_and_be_woken(3, TEST_ROUNDS(2000u), 3 * LEAT_BLOCK_SIZE);
	sleep_and_be_woken(2, TEST_ROUNDS(500u), UINT64_MAX); /* all that is out */
}

/** What a wake function that takes its time counts. */
struct slow_wake {
	uint32_t begun, ended;
};

static void wake_slowly(void *arg)
{
	const struct timespec moment = { 0, 100000 };
	struct slow_wake *slow = arg;

	__atomic_fetch_add(&slow->begun, 1, __ATOMIC_SEQ_CST);
	nanosleep(&moment, NULL);
	__atomic_fetch_add(&slow->ended, 1, __ATOMIC_SEQ_CST);
}

static void destroy_waits_for_who_is_inside_wake(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(500u);
	struct slow_wake slow = { 0, 0 };
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	returners_start(END_RETURNERS);
	for (round = 0; round < rounds; round++) {
		struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .wake = wake_slowly };
		uint32_t begun = slow.begun;
		struct leat_page_pool *pool;
		uint64_t seed = round + 1;

		opts.wake_arg = &slow;
		assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), 0);
		leat_page_pool_own(pool);
		leat_page_pool_wait_prepare(pool);
		scatter(pool, &seed);
		while (round % 4 && __atomic_load_n(&slow.begun, __ATOMIC_SEQ_CST) == begun)
			sched_yield(); /* three times of four it is sure to be called */
		leat_page_pool_destroy(pool);
		begun = __atomic_load_n(&slow.begun, __ATOMIC_SEQ_CST);
		assert_int_equal(__atomic_load_n(&slow.ended, __ATOMIC_SEQ_CST), begun);
		scatter_wait();
		assert_int_equal(__atomic_load_n(&slow.begun, __ATOMIC_SEQ_CST), begun); /* and nobody comes later */
		assert_int_equal(leat_segment_committed(mem.segment), 0);
	}
	returners_end(END_RETURNERS);
	test_mem_close(&mem);
}

/** From here on membarrier() is a call that the system does not have. */
static bool forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { COUNT(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) &&
	       syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == ENOSYS;
}

/** First of all, while the process has neither threads nor pools. */
static void no_wake_up_is_lost_without_membarrier(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		LEAT_ASSERT(forbid_membarrier());
		sleep_and_be_woken(2, TEST_ROUNDS(40000u), 0);
		sleep_and_be_woken(2, TEST_ROUNDS(10000u), 2 * LEAT_BLOCK_SIZE);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wake_up_is_lost_without_membarrier),
		cmocka_unit_test(no_granule_is_lost_on_the_way_back),
		cmocka_unit_test(a_pool_at_its_limit_loses_nothing),
		cmocka_unit_test(one_bulk_put_serves_several_pools),
		cmocka_unit_test(owner_and_strangers_share_a_bulk_put),
		cmocka_unit_test(neighbours_come_back_as_one_word),
		cmocka_unit_test(threads_may_come_and_go),
		cmocka_unit_test(more_threads_than_rings_may_put_at_once),
		cmocka_unit_test(a_thread_without_memory_for_its_ring_uses_the_shared_one),
		cmocka_unit_test(a_lost_doorbell_is_made_good_before_memory_is_short),
		cmocka_unit_test(the_last_of_several_holders_returns_the_run_once),
		cmocka_unit_test(two_holders_who_put_at_once_return_the_run_once),
		cmocka_unit_test(a_pool_destroyed_in_flight_goes_with_the_last_return),
		cmocka_unit_test(an_arena_destroyed_in_flight_goes_with_the_last_return),
		cmocka_unit_test(a_pool_changes_owners_without_loss),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(destroy_waits_for_who_is_inside_wake),
	};

	return cmocka_run_group_tests_name("remote_return", tests, NULL, NULL);
}
