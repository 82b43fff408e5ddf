/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag_test.c: pieces of any size and alignment never overlap and keep their bytes; their block comes back with
 * the last of them, on whatever thread, or is cut again in place.
 */
#include "mem/test_mem.h"

#include <leat/page_frag.h>
#include <pthread.h>

#define PIECES 200u

struct piece {
	struct leat_page_frag frag; /* data NULL: none */
	unsigned int holders;
	uint8_t byte;
};

static void check_piece(const struct piece *piece)
{
	uint32_t i;

	for (i = 0; i < piece->frag.size; i++)
		if (piece->frag.data[i] != piece->byte)
			fail_msg("byte %u of a piece of %u has changed", i, piece->frag.size);
}

static void put_piece(struct piece *piece)
{
	check_piece(piece);
	leat_page_pool_put_page(piece->frag.run);
	if (!--piece->holders)
		piece->frag.data = NULL;
}

static bool cut_piece(struct piece *piece, struct leat_page_frag_cache *cache, uint32_t size, uint32_t align)
{
	static uint8_t byte;
	uint64_t addr;

	piece->frag = leat_page_frag_alloc_align(cache, size, align);
	if (!piece->frag.data)
		return false;
	addr = (uint64_t)(uintptr_t)piece->frag.data;
	assert_int_equal(piece->frag.size, size);
	assert_int_equal(addr % align, 0);
	assert_true(addr >= leat_run_addr(piece->frag.run));
	assert_true(addr - leat_run_addr(piece->frag.run) < LEAT_GRANULE_SIZE);
	assert_true(addr + size <= leat_run_addr(piece->frag.run) + leat_run_size(piece->frag.run));
	assert_true(leat_run_addr(piece->frag.run) / LEAT_BLOCK_SIZE == (addr + size - 1) / LEAT_BLOCK_SIZE);
	piece->byte = ++byte;
	piece->holders = 1;
	memset(piece->frag.data, piece->byte, size);
	return true;
}

static uint32_t random_size(uint64_t *seed)
{
	switch (test_below(seed, 10)) {
	case 0:
		return 1 + test_below(seed, LEAT_BLOCK_SIZE);
	case 1:
		return LEAT_BLOCK_SIZE - test_below(seed, 3);
	default:
		return 1 + test_below(seed, 3000);
	}
}

static void put_all(struct piece *piece, unsigned int n)
{
	for (; n--; piece++)
		while (piece->frag.data)
			put_piece(piece);
}

/** Cuts, shares and puts at random, one by one and in bulk with ordinary runs of the same pool. */
static void pieces_at_random(uint64_t seed, unsigned int steps)
{
	static struct piece piece[PIECES];
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct leat_run bulk[2];
	struct test_mem mem;
	unsigned int i, k;

	memset(piece, 0, sizeof(piece));
	test_mem_open(&mem, EXTENT * 64);
	pool = test_pool(mem.segment, EXTENT * 64);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < steps; i++) {
		k = test_below(&seed, PIECES);
		if (!piece[k].frag.data) {
			assert_true(cut_piece(&piece[k], &cache, random_size(&seed), 1u << test_below(&seed, 10)));
		} else if (test_below(&seed, 8) == 0) {
			leat_page_pool_get_page(piece[k].frag.run);
			assert_true(leat_run_is_shared(piece[k].frag.run));
			piece[k].holders++;
		} else if (piece[k].holders == 1 && test_below(&seed, 2)) {
			check_piece(&piece[k]);
			bulk[i % 2] = piece[k].frag.run;
			bulk[!(i % 2)] = leat_page_pool_alloc(pool, 1 + i % 9);
			leat_page_pool_put_page_bulk(bulk, 2);
			piece[k].frag.data = NULL;
		} else {
			put_piece(&piece[k]);
		}
	}
	leat_page_frag_drain(&cache);
	put_all(piece, PIECES);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void pieces_never_overlap(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++)
		pieces_at_random(seed * 31, TEST_ROUNDS(50000u));
}

static void every_size_can_be_cut(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct piece piece;
	struct test_mem mem;
	uint32_t size;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	for (size = 1; size <= LEAT_BLOCK_SIZE; size += size < 1100 ? 1 : 509) {
		assert_true(cut_piece(&piece, &cache, size, 1u << size % 10));
		put_piece(&piece);
	}
	assert_true(cut_piece(&piece, &cache, LEAT_BLOCK_SIZE, LEAT_GRANULE_SIZE));
	put_piece(&piece);
	piece.frag = leat_page_frag_alloc(&cache, 1);
	assert_int_equal((uintptr_t)piece.frag.data % 8, 0);
	leat_page_pool_put_page(piece.frag.run);
	leat_page_frag_drain(&cache);
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_block_that_came_back_is_cut_again_in_place(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct leat_page_frag frag;
	struct test_mem mem;
	uint64_t block;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	frag = leat_page_frag_alloc(&cache, 1000);
	block = cache.chunk;
	leat_page_pool_put_page(frag.run);
	for (i = 0; i < 32 * 100; i++) {
		frag = leat_page_frag_alloc(&cache, 1000);
		assert_int_equal(cache.chunk, block);
		leat_page_pool_put_page(frag.run);
	}
	assert_int_equal(cache.reused_in_place, 100);
	frag = leat_page_frag_alloc(&cache, LEAT_BLOCK_SIZE); /* one stays out: the next block is another */
	assert_int_equal(cache.chunk, block);
	leat_page_pool_put_page(leat_page_frag_alloc(&cache, 1).run);
	assert_int_not_equal(cache.chunk, block);
	leat_page_pool_put_page(frag.run);
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void sharing_is_forgotten_when_a_block_is_cut_again(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct leat_page_frag a, b;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	a = leat_page_frag_alloc(&cache, 100);
	assert_false(leat_run_is_shared(a.run));
	leat_page_pool_get_page(a.run);
	assert_true(leat_run_is_shared(a.run));
	leat_page_pool_put_page(a.run);
	leat_page_pool_put_page(a.run);
	b = leat_page_frag_alloc(&cache, LEAT_BLOCK_SIZE);
	assert_int_equal(cache.reused_in_place, 1);
	assert_false(leat_run_is_shared(b.run));
	leat_page_pool_put_page(b.run);
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void pieces_outlive_the_cache(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct piece piece[20];
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < 20; i++)
		assert_true(cut_piece(&piece[i], &cache, 700 + i, 64));
	leat_page_frag_drain(&cache);
	memset(&cache, 0xff, sizeof(cache));
	assert_int_equal(test_outstanding(pool), LEAT_BLOCK_GRANULES);
	for (i = 0; i < 19; i++)
		put_piece(&piece[i]);
	assert_int_equal(test_outstanding(pool), LEAT_BLOCK_GRANULES);
	put_piece(&piece[19]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void an_exhausted_pool_gives_no_piece_and_recovers(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct piece piece[9];
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < 8; i++)
		assert_true(cut_piece(&piece[i], &cache, 20000, 1));
	for (i = 0; i < 3; i++)
		assert_false(cut_piece(&piece[8], &cache, 20000, 1));
	put_piece(&piece[3]);
	assert_true(cut_piece(&piece[3], &cache, 20000, 1));
	assert_false(cut_piece(&piece[8], &cache, 20000, 1));
	for (i = 0; i < 8; i++)
		put_piece(&piece[i]);
	leat_page_frag_drain(&cache);
	for (i = 1; i < 5; i++) {
		leat_page_pool_fail_nth(pool, i);
		assert_int_equal(cut_piece(&piece[0], &cache, LEAT_BLOCK_SIZE, 1), i != 1);
		if (i != 1)
			put_piece(&piece[0]);
		leat_page_frag_drain(&cache);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- other threads ---- */

#define HANDED 64u

static struct leat_run handed[HANDED * 2];
static pthread_barrier_t meet;

/** Puts every second one, against the owner who puts the others. */
static void *putter_main(void *arg)
{
	unsigned int round, rounds = *(unsigned int *)arg, i;

	for (round = 0; round < rounds; round++) {
		pthread_barrier_wait(&meet);
		if (round % 2)
			for (i = 0; i < HANDED; i++)
				leat_page_pool_put_page(handed[i]);
		else
			leat_page_pool_put_page_bulk(handed, HANDED);
		pthread_barrier_wait(&meet);
	}
	return NULL;
}

static void the_last_piece_returns_the_block_on_any_thread(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(10000u), i;
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct test_mem mem;
	pthread_t thread;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	pool = test_pool(mem.segment, EXTENT * 4);
	pthread_barrier_init(&meet, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, putter_main, &rounds), 0);
	leat_page_frag_init(&cache, pool);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < HANDED * 2; i++) {
			struct leat_page_frag frag = leat_page_frag_alloc(&cache, 1 + round * 37 % 3000);

			assert_non_null(frag.data);
			frag.data[0] = frag.data[frag.size - 1] = 1;
			handed[i % 2 ? i / 2 : HANDED + i / 2] = frag.run;
		}
		pthread_barrier_wait(&meet);
		leat_page_pool_put_page_bulk(handed + HANDED, HANDED / 2);
		for (i = HANDED + HANDED / 2; i < HANDED * 2; i++)
			leat_page_pool_put_page(handed[i]);
		if (round % 3 == 0)
			leat_page_frag_drain(&cache);
		pthread_barrier_wait(&meet);
	}
	leat_page_frag_drain(&cache);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&meet);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static struct leat_page_frag_cache bug_cache;

static void cut_nothing(void *arg)
{
	(void)arg;
	leat_page_frag_alloc(&bug_cache, 0);
}

static void cut_too_much(void *arg)
{
	(void)arg;
	leat_page_frag_alloc(&bug_cache, LEAT_BLOCK_SIZE + 1);
}

static void sizes_out_of_range_are_caught(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&bug_cache, pool);
	assert_bug(cut_nothing, NULL);
	assert_bug(cut_too_much, NULL);
	test_pool_end(pool);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_never_overlap),
		cmocka_unit_test(every_size_can_be_cut),
		cmocka_unit_test(a_block_that_came_back_is_cut_again_in_place),
		cmocka_unit_test(sharing_is_forgotten_when_a_block_is_cut_again),
		cmocka_unit_test(pieces_outlive_the_cache),
		cmocka_unit_test(an_exhausted_pool_gives_no_piece_and_recovers),
		cmocka_unit_test(the_last_piece_returns_the_block_on_any_thread),
		cmocka_unit_test(sizes_out_of_range_are_caught),
	};

	return cmocka_run_group_tests_name("page_frag", tests, NULL, NULL);
}
