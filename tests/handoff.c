/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handoff.c: runs that are handed from their owner to other threads, checked there and put there, and counted exactly:
 * none is lost, none arrives twice, none is written while somebody reads it.
 *
 * The owner stamps each run with a number and hands bursts to each returner by a ring of one producer and one consumer.
 * A returner knows which number comes next. How many are handed over in all: LEAT_HANDOFFS, or the first argument;
 * without them as many as take about five seconds in all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <leat/page_frag.h>

#include "mem/test_mem.h"
#include "netdev/ptr_ring.h"

#define RETURNERS_MAX 3u
#define BURST 32u
#define ROOM 512u
#define LIMIT (UINT64_C(8) << 20)
/* in all; each test has its share, a multiple of a 32nd */
#ifdef TEST_SANITIZED
#define HANDOFFS UINT64_C(400000)
#else
#define HANDOFFS UINT64_C(64000000)
#endif

static uint64_t handoffs = HANDOFFS;

enum put {
	BULK,          /* a burst at once, in order */
	BULK_SHUFFLED, /* a burst at once, in another order */
	SINGLE,        /* one by one, in order */
	SINGLE_SHUFFLED,
};

enum kind {
	RUNS,   /* of the pool */
	SHARED, /* each has two holders, and the returner puts both */
	PIECES, /* of a page_frag_cache */
};

struct returner {
	pthread_t thread;
	struct leat_ptr_ring *ring; /* of leat_run.bits; 0 ends it */
	enum put put;
	enum kind kind;
	uint64_t seed;
	uint64_t got;   /* runs, what arrived */
	uint64_t wrong; /* whose stamp was another number's */
	uint64_t sent;  /* owner's: runs handed over */
};

/** At the start of a run; a page_frag piece begins where its granule does. */
struct stamp {
	uint64_t number, bits;
};

static void check_stamp(struct returner *r, struct leat_run run)
{
	const struct stamp *stamp = (const struct stamp *)leat_run_start(run);

	r->wrong += stamp->number != r->got++ || stamp->bits != run.bits;
}

static void shuffle(struct returner *r, struct leat_run *runs, uint32_t n)
{
	uint32_t i, with;
	struct leat_run run;

	for (i = n; i > 1; i--) {
		with = test_below(&r->seed, i);
		run = runs[i - 1];
		runs[i - 1] = runs[with];
		runs[with] = run;
	}
}

static void put_burst(struct returner *r, struct leat_run *runs, uint32_t n)
{
	uint32_t i;

	if (r->put == BULK_SHUFFLED || r->put == SINGLE_SHUFFLED)
		shuffle(r, runs, n);
	if (r->put == BULK || r->put == BULK_SHUFFLED) {
		leat_page_pool_put_page_bulk(runs, n);
		return;
	}
	for (i = 0; i < n; i++)
		leat_page_pool_put_page(runs[i]);
}

static void *returner_main(void *arg)
{
	struct returner *r = arg;
	uintptr_t bits[BURST];
	struct leat_run runs[2 * BURST];
	uint32_t i, n, m;

	for (;;) {
		n = leat_ptr_ring_take(r->ring, bits, BURST);
		if (!n)
			sched_yield();
		for (i = m = 0; i < n && bits[i]; i++) {
			struct leat_run run = { bits[i] };

			check_stamp(r, run);
			runs[m++] = run;
			if (r->kind == SHARED)
				runs[m++] = run;
		}
		put_burst(r, runs, m);
		if (i < n)
			return NULL;
	}
}

/** One for the @i-th place of a burst, or none. Lengths differ, so that runs of all kinds lie side by side. */
static struct leat_run make_run(struct leat_page_pool *pool, struct leat_page_frag_cache *cache, enum kind kind,
				uint32_t i)
{
	static const uint32_t granules[] = { 1, 4, 1, 2, 8, 1, 3, 1 };
	uint32_t n = granules[i % COUNT(granules)];
	struct leat_run run;

	if (kind == PIECES)
		return leat_page_frag_alloc_align(cache, n * 300, LEAT_GRANULE_SIZE).run;
	run = leat_page_pool_alloc(pool, n);
	if (kind == SHARED && !leat_run_is_none(run))
		leat_page_pool_get_page(run);
	return run;
}

/** Hands a burst to @r; as many of it as there is room and memory for. */
static uint32_t hand_over(struct leat_page_pool *pool, struct leat_page_frag_cache *cache, struct returner *r,
			  uint32_t want)
{
	uint32_t i, n = leat_ptr_ring_room(r->ring, want);

	for (i = 0; i < n; i++) {
		struct leat_run run = make_run(pool, cache, r->kind, i);

		if (leat_run_is_none(run))
			break;
		*(struct stamp *)leat_run_start(run) = (struct stamp){ r->sent++, run.bits };
		leat_ptr_ring_write(r->ring, i, run.bits);
	}
	if (i)
		leat_ptr_ring_publish(r->ring, i);
	return i;
}

static void start(struct returner *r, enum put put, enum kind kind, uint64_t seed)
{
	*r = (struct returner){ .put = put, .kind = kind, .seed = seed };
	r->ring = leat_ptr_ring_create(ROOM);
	assert_non_null(r->ring);
	assert_int_equal(pthread_create(&r->thread, NULL, returner_main, r), 0);
}

/** Ends @r; everything that was handed to it has arrived as it was sent. Returns how many. */
static uint64_t end(struct returner *r)
{
	while (!leat_ptr_ring_room(r->ring, 1))
		sched_yield();
	leat_ptr_ring_write(r->ring, 0, 0);
	leat_ptr_ring_publish(r->ring, 1);
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	leat_ptr_ring_destroy(r->ring);
	assert_int_equal(r->wrong, 0);
	assert_true(r->got == r->sent);
	return r->got;
}

/** Hands @total runs over to @n returners in turn. */
static void hand_off(unsigned int n, enum put put, enum kind kind, uint64_t total)
{
	struct returner r[RETURNERS_MAX];
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct test_mem mem;
	uint64_t sent = 0, got = 0;
	unsigned int i;

	test_mem_open(&mem, LIMIT);
	pool = test_pool(mem.segment, LIMIT);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < n; i++)
		start(&r[i], put, kind, i + 1);
	while (sent < total) {
		uint64_t before = sent;

		for (i = 0; i < n; i++)
			sent += hand_over(pool, &cache, &r[i], total - sent < BURST ? (uint32_t)(total - sent) : BURST);
		if (sent == before)
			sched_yield();
	}
	for (i = 0; i < n; i++)
		got += end(&r[i]);
	assert_true(got == total);
	leat_page_frag_drain(&cache);
	print_message("# %u returners: %" PRIu64 " runs handed over, none lost\n", n, got);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void test_one_bulk(void **state)
{
	(void)state;
	hand_off(1, BULK, RUNS, handoffs / 32 * 12);
}

static void test_three_bulk(void **state)
{
	(void)state;
	hand_off(3, BULK, RUNS, handoffs / 32 * 8);
}

static void test_one_shuffled(void **state)
{
	(void)state;
	hand_off(1, BULK_SHUFFLED, RUNS, handoffs / 32 * 4);
}

static void test_three_single(void **state)
{
	(void)state;
	hand_off(3, SINGLE, RUNS, handoffs / 32 * 2);
}

static void test_one_single_shuffled(void **state)
{
	(void)state;
	hand_off(1, SINGLE_SHUFFLED, RUNS, handoffs / 32 * 2);
}

static void test_shared(void **state)
{
	(void)state;
	hand_off(3, BULK_SHUFFLED, SHARED, handoffs / 32);
	hand_off(1, SINGLE, SHARED, handoffs / 32);
}

static void test_pieces(void **state)
{
	(void)state;
	hand_off(1, BULK, PIECES, handoffs / 32);
	hand_off(3, SINGLE_SHUFFLED, PIECES, handoffs / 32);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_bulk),     cmocka_unit_test(test_three_bulk),
		cmocka_unit_test(test_one_shuffled), cmocka_unit_test(test_three_single),
		cmocka_unit_test(test_shared),       cmocka_unit_test(test_one_single_shuffled),
		cmocka_unit_test(test_pieces),
	};
	const char *number = argc > 1 ? argv[1] : getenv("LEAT_HANDOFFS");

	if (number)
		handoffs = (strtoull(number, NULL, 0) + 31) / 32 * 32;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
