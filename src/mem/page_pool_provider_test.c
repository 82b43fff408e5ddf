/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_provider_test.c: memory that somebody else owns: the order of calls, sizes that step down, a provider with
 * just enough, addresses for a device, and moving from one NUMA node to another.
 */
#include "mem/test_provider.h"

#include <errno.h>
#include <pthread.h>

static struct test_provider provider;

/* ---- the order of calls ---- */

static void *put_all(void *arg)
{
	leat_page_pool_put_page(*(struct leat_run *)arg);
	return NULL;
}

static void on_another_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_pool_ends_with_release_and_destroy_on_whatever_thread(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	test_provider_init(&provider, PROVIDER_PAGES);
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, true);
	assert_int_equal(provider.inits, 1);
	assert_int_equal(provider.allocs, 0);
	run = leat_page_pool_alloc(pool, 5);
	assert_int_equal(provider.given, LEAT_EXTENT_PAGES);
	assert_int_equal(leat_segment_committed(mem.segment), 0); /* nothing of the segment's own */
	leat_page_pool_destroy(pool);
	assert_int_equal(provider.destroys, 0);
	on_another_thread(put_all, &run);
	assert_int_equal(provider.destroys, 1); /* it checks that all was unmapped, then released */
	assert_int_equal(provider.releases, provider.allocs);
	test_mem_close(&mem);
}

static void a_provider_may_refuse_the_pool(void **state)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .provider = &test_provider_ops };
	struct leat_page_pool *pool = NULL;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	test_provider_init(&provider, PROVIDER_PAGES);
	provider.init_err = -ENODEV;
	opts.provider_arg = &provider;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), -ENODEV);
	assert_null(pool);
	assert_int_equal(provider.destroys, 0);
	provider.init_err = 0;
	pool = test_provider_pool(mem.segment, &provider, EXTENT, 0, false); /* the place was given back */
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void options_of_provider_and_map_are_checked(void **state)
{
	struct leat_page_pool_provider half = { .alloc = provider_alloc };
	struct leat_page_pool_map_ops half_map = { .map = provider_map };
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .provider = &half };
	struct leat_page_pool *pool;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), -EINVAL);
	opts.provider = NULL;
	opts.map = &half_map;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), -EINVAL);
	test_mem_close(&mem);
}

/* ---- less than an extent ---- */

static void pieces_step_down_to_a_page(void **state)
{
	static struct leat_run run[EXTENT_GRANULES];
	struct leat_page_pool *pool;
	struct leat_page_pool_stats s;
	struct test_mem mem;
	unsigned int order, n;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	for (order = 0; order <= LEAT_EXTENT_ORDER; order++) {
		test_provider_init(&provider, 0);
		provider.budget[0] = 13; /* pages: no power of two */
		provider.max_order = order;
		pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, false);
		for (n = 0; !leat_run_is_none(run[n] = leat_page_pool_alloc(pool, 4)); n++)
			assert_pool_sound(pool);
		assert_int_equal(n, 13 * LEAT_PAGE_GRANULES / 4); /* every page of it serves */
		leat_page_pool_stats(pool, &s);
		assert_int_equal(s.committed, 13 * LEAT_PAGE_SIZE);
		assert_int_equal(s.order, 0);
		assert_int_equal(s.grows, provider.allocs);
		assert_int_equal(s.grow_failed, provider.refused);
		leat_page_pool_put_page_bulk(run, n);
		assert_pool_sound(pool);
		assert_false(leat_run_is_none(run[0] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES)));
		assert_true(leat_run_is_none(leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES)));
		/* 13 pages: the second block has five of its eight */
		assert_false(leat_run_is_none(run[1] = leat_page_pool_alloc(pool, 40)));
		leat_page_pool_put_page_bulk(run, 2);
		leat_page_pool_destroy(pool);
		assert_int_equal(provider.destroys, 1);
	}
	test_mem_close(&mem);
}

static void a_block_with_memory_in_part_is_completed_later(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[2];
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	test_provider_init(&provider, 0);
	provider.budget[0] = 3;
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, false);
	run[0] = leat_page_pool_alloc(pool, 24);
	assert_false(leat_run_is_none(run[0]));
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 1)));
	provider.budget[0] = 1000;
	run[1] = leat_page_pool_alloc(pool, 64);
	assert_false(leat_run_is_none(run[1]));
	leat_page_pool_put_page_bulk(run, 2);
	assert_pool_sound(pool);
	assert_int_equal(leat_block_of(pool->first)->free, ~UINT64_C(0));
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- just enough ---- */

enum { RING = 64, BUFFER = 3, ROUNDS = 20000 };

/** One place for a run that changes hands. */
struct mailbox {
	uint64_t bits;
};

static void *return_what_comes(void *arg)
{
	struct mailbox *box = arg;
	unsigned int i;

	for (i = 0; i < ROUNDS;) {
		struct leat_run run = { __atomic_exchange_n(&box->bits, 0, __ATOMIC_ACQ_REL) };

		if (leat_run_is_none(run))
			continue;
		leat_page_pool_put_page(run);
		i++;
	}
	return NULL;
}

/** A ring that posts a buffer for each that was taken out; memory for the ring and one buffer more. */
static void a_ring_and_one_buffer_are_enough(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run ring[RING], run;
	struct mailbox box = { 0 };
	struct test_mem mem;
	pthread_t thread;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	test_provider_init(&provider, 0);
	/* 21 buffers of 3 granules fit a block, a granule is left over: with pages of 8 granules the sum is this */
	provider.budget[0] = (RING / 21 * LEAT_BLOCK_GRANULES + (RING % 21 + 1) * BUFFER + 7) / LEAT_PAGE_GRANULES;
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, false);
	for (i = 0; i < RING; i++)
		assert_false(leat_run_is_none(ring[i] = leat_page_pool_alloc(pool, BUFFER)));
	assert_int_equal(pthread_create(&thread, NULL, return_what_comes, &box), 0);
	for (i = 0; i < ROUNDS; i++) {
		do /* the one that is out may be on its way */
			run = leat_page_pool_alloc(pool, BUFFER);
		while (leat_run_is_none(run));
		while (__atomic_load_n(&box.bits, __ATOMIC_ACQUIRE))
			;
		__atomic_store_n(&box.bits, ring[i * 7 % RING].bits, __ATOMIC_RELEASE);
		ring[i * 7 % RING] = run;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	leat_page_pool_put_page_bulk(ring, RING);
	leat_page_pool_drain(pool);
	assert_int_equal(test_outstanding(pool), 0);
	assert_pool_sound(pool);
	leat_page_pool_destroy(pool);
	assert_int_equal(provider.destroys, 1);
	test_mem_close(&mem);
}

/* ---- addresses for a device ---- */

static void a_run_has_the_address_of_its_piece(void **state)
{
	static struct leat_run run[256];
	struct leat_page_pool *pool;
	struct test_mem mem;
	unsigned int i, page;
	uint64_t off;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	test_provider_init(&provider, PROVIDER_PAGES);
	provider.max_order = 4; /* two pieces to four blocks */
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, true);
	for (i = 0; i < 256; i++) {
		run[i] = leat_page_pool_alloc(pool, 1 + i % 7);
		assert_false(leat_run_is_none(run[i]));
		off = leat_run_addr(run[i]) - pool->first;
		page = (unsigned int)(off / LEAT_PAGE_SIZE) & ~15u;
		assert_int_equal(leat_page_pool_iova(pool, run[i]), provider.iova[page] + off % (16 * LEAT_PAGE_SIZE));
		leat_page_pool_sync_for_device(pool, run[i], 100, 33);
		assert_int_equal(provider.last_sync_iova, leat_page_pool_iova(pool, run[i]) + 100);
		assert_int_equal(provider.last_sync_bytes, 33);
		leat_page_pool_sync_for_cpu(pool, run[i], 7, 8);
		assert_int_equal(provider.last_sync_iova, leat_page_pool_iova(pool, run[i]) + 7);
	}
	leat_page_pool_put_page_bulk(run, 256);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void pages_over_several_blocks_have_one_address(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[8];
	struct test_mem mem;
	unsigned int i;
	uint64_t off;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	test_provider_init(&provider, PROVIDER_PAGES);
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, true);
	run[0] = leat_page_pool_alloc(pool, 64);
	for (i = 1; i < 7; i++) { /* the first block is taken: runs of four do not fit extents evenly */
		run[i] = leat_page_pool_alloc_pages(pool, 5);
		assert_false(leat_run_is_none(run[i]));
		off = leat_run_addr(run[i]) - pool->first;
		assert_int_equal(off / EXTENT, (off + leat_run_size(run[i]) - 1) / EXTENT);
		assert_int_equal(leat_page_pool_iova(pool, run[i]), provider.iova[off / EXTENT * 64] + off % EXTENT);
		if (i == 3)
			break;
	}
	leat_page_pool_put_page_bulk(run, i + 1);
	/* pieces below two blocks: no such run, but single blocks */
	leat_page_pool_shrink(pool);
	test_pool_end(pool);
	test_provider_init(&provider, PROVIDER_PAGES);
	provider.max_order = LEAT_BLOCK_ORDER;
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 4, EXTENT * 4, true);
	assert_true(leat_run_is_none(leat_page_pool_alloc_pages(pool, 4)));
	run[0] = leat_page_pool_alloc_pages(pool, 3);
	assert_false(leat_run_is_none(run[0]));
	leat_page_pool_put_page(run[0]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void without_map_ops_the_address_is_the_own_one(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	run = leat_page_pool_alloc(pool, 3);
	assert_int_equal(leat_page_pool_iova(pool, run), leat_run_addr(run));
	leat_page_pool_sync_for_device(pool, run, 0, 100);
	leat_page_pool_sync_for_cpu(pool, run, 0, 100);
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void what_cannot_be_mapped_is_given_back(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	test_provider_init(&provider, PROVIDER_PAGES);
	pool = test_provider_pool(mem.segment, &provider, EXTENT, EXTENT, true);
	provider.map_err = -EIO;
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 1)));
	assert_int_equal(provider.given, 0);
	assert_true(provider.allocs > 0);
	provider.map_err = 0;
	run = leat_page_pool_alloc(pool, 1);
	assert_false(leat_run_is_none(run));
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- nodes ---- */

/** A ring whose buffers go round; returns the rounds until all of them are on @node. */
static unsigned int rounds_until_on_node(struct leat_page_pool *pool, struct leat_run *ring, unsigned int n, int node)
{
	unsigned int round, i, there;

	for (round = 0; round < 100; round++) {
		for (i = there = 0; i < n; i++)
			there += test_provider_node(&provider, ring[i]) == node;
		if (there == n)
			break;
		for (i = 0; i < n; i++) {
			leat_page_pool_put_page(ring[i]);
			ring[i] = leat_page_pool_alloc(pool, 4);
			assert_false(leat_run_is_none(ring[i]));
		}
	}
	return round;
}

static void a_pool_moves_by_extents(void **state)
{
	enum { N = 512 }; /* 1 MiB of 2 KiB buffers: four extents */
	static struct leat_run ring[N];
	struct leat_page_pool_stats before, after;
	struct leat_page_pool *pool;
	unsigned int i, allocs, node = 0;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 16);
	test_provider_init(&provider, 1024);
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 12, EXTENT * 10, false);
	leat_page_pool_set_node(pool, 0);
	for (i = 0; i < N; i++)
		assert_false(leat_run_is_none(ring[i] = leat_page_pool_alloc(pool, 4)));
	assert_int_equal(rounds_until_on_node(pool, ring, N, 0), 0);
	rounds_until_on_node(pool, ring, N, -2);
	for (i = 0; i < 6; i++) { /* back and forth */
		node = 1 - node;
		allocs = provider.allocs;
		leat_page_pool_stats(pool, &before);
		assert_in_range(before.committed, EXTENT * 4, EXTENT * 10);
		leat_page_pool_set_node(pool, (int)node);
		assert_pool_sound(pool);
		assert_in_range(rounds_until_on_node(pool, ring, N, (int)node), 1, 2);
		assert_pool_sound(pool);
		leat_page_pool_stats(pool, &after);
		assert_int_equal(after.node, node);
		/* at most one visit to the provider for each extent, and nothing page by page */
		assert_in_range(provider.allocs - allocs, 1, before.committed / EXTENT);
		assert_int_equal(after.node_moves - before.node_moves, provider.allocs - allocs);
		assert_int_equal(after.committed, before.committed);
		rounds_until_on_node(pool, ring, N, -2); /* the rest follows as the cursor comes by */
	}
	leat_page_pool_put_page_bulk(ring, N);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void memory_of_another_node_serves_before_an_allocation_fails(void **state)
{
	static struct leat_run run[EXTENT_GRANULES / 4];
	struct leat_page_pool *pool;
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	test_provider_init(&provider, LEAT_EXTENT_PAGES);
	pool = test_provider_pool(mem.segment, &provider, EXTENT, EXTENT, false);
	leat_page_pool_set_node(pool, 0);
	for (i = 0; i < COUNT(run); i++)
		run[i] = leat_page_pool_alloc(pool, 4);
	leat_page_pool_set_node(pool, 1);
	for (i = 1; i < COUNT(run); i++) /* the first one stays out: the extent cannot move */
		leat_page_pool_put_page(run[i]);
	for (i = 1; i < COUNT(run); i++) {
		run[i] = leat_page_pool_alloc(pool, 4);
		assert_false(leat_run_is_none(run[i]));
		assert_int_equal(test_provider_node(&provider, run[i]), 0);
		assert_pool_sound(pool);
	}
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 1)));
	leat_page_pool_put_page_bulk(run, COUNT(run));
	run[0] = leat_page_pool_alloc(pool, 4); /* now it can */
	assert_int_equal(test_provider_node(&provider, run[0]), 1);
	leat_page_pool_put_page(run[0]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_node_without_memory_is_made_up_for(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[3];
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	test_provider_init(&provider, LEAT_EXTENT_PAGES * 2);
	provider.budget[1] = 0;
	pool = test_provider_pool(mem.segment, &provider, EXTENT * 2, EXTENT * 2, false);
	run[0] = leat_page_pool_alloc(pool, 64);
	leat_page_pool_set_node(pool, 1);
	run[1] = leat_page_pool_alloc(pool, 64);
	assert_int_equal(test_provider_node(&provider, run[1]), 0);
	leat_page_pool_put_page(run[0]);
	leat_page_pool_put_page(run[1]);
	leat_page_pool_set_node(pool, 7); /* no such node at all */
	run[2] = leat_page_pool_alloc(pool, 64);
	assert_false(leat_run_is_none(run[2]));
	assert_pool_sound(pool);
	leat_page_pool_put_page(run[2]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void the_systems_own_memory_moves_too(enum leat_segment_kind kind)
{
	struct leat_arena_opts arena_opts = { .size = sizeof(arena_opts), .data_size = EXTENT * 4 };
	struct leat_segment_opts segment_opts = { .size = sizeof(segment_opts), .kind = kind, .bytes = EXTENT * 4 };
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct leat_page_pool_stats s;
	struct leat_page_pool *pool;
	struct leat_run run;
	unsigned int i, k;

	assert_int_equal(leat_arena_create(&arena_opts, &arena), 0);
	assert_int_equal(leat_segment_create(arena, &segment_opts, &segment), 0);
	pool = test_pool(segment, EXTENT * 2);
	for (k = 0; k < 3; k++) {
		leat_page_pool_set_node(pool, k == 2 ? -1 : 0);
		for (i = 0; i < 32; i++) {
			run = leat_page_pool_alloc(pool, 64);
			assert_false(leat_run_is_none(run));
			memset(leat_run_start(run), 1 + (int)k, leat_run_size(run));
			leat_page_pool_put_page(run);
			assert_pool_sound(pool);
		}
	}
	leat_page_pool_set_node(pool, 0);
	leat_page_pool_stats(pool, &s);
	assert_int_equal(s.node_moves, 0); /* memory that was asked for anywhere was never mixed with it */
	leat_page_pool_set_node(pool, 1); /* which may not be there: memory is, all the same */
	run = leat_page_pool_alloc(pool, 64);
	assert_int_equal(leat_run_start(run)[0], 0); /* fresh */
	leat_page_pool_stats(pool, &s);
	assert_int_equal(s.node_moves, 1);
	assert_int_equal(leat_segment_committed(segment), s.committed);
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	assert_int_equal(leat_segment_committed(segment), 0);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void private_memory_moves(void **state)
{
	(void)state;
	the_systems_own_memory_moves_too(LEAT_SEGMENT_PRIVATE);
}

static void shared_memory_moves(void **state)
{
	(void)state;
	the_systems_own_memory_moves_too(LEAT_SEGMENT_SHARED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_ends_with_release_and_destroy_on_whatever_thread),
		cmocka_unit_test(a_provider_may_refuse_the_pool),
		cmocka_unit_test(options_of_provider_and_map_are_checked),
		cmocka_unit_test(pieces_step_down_to_a_page),
		cmocka_unit_test(a_block_with_memory_in_part_is_completed_later),
		cmocka_unit_test(a_ring_and_one_buffer_are_enough),
		cmocka_unit_test(a_run_has_the_address_of_its_piece),
		cmocka_unit_test(pages_over_several_blocks_have_one_address),
		cmocka_unit_test(without_map_ops_the_address_is_the_own_one),
		cmocka_unit_test(what_cannot_be_mapped_is_given_back),
		cmocka_unit_test(a_pool_moves_by_extents),
		cmocka_unit_test(memory_of_another_node_serves_before_an_allocation_fails),
		cmocka_unit_test(a_node_without_memory_is_made_up_for),
		cmocka_unit_test(private_memory_moves),
		cmocka_unit_test(shared_memory_moves),
	};

	return cmocka_run_group_tests_name("page_pool_provider", tests, NULL, NULL);
}
