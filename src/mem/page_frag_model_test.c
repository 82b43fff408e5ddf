/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag_model_test.c: everything a page_frag_cache can do, at random, against a list of pieces that must not
 * overlap and keep their bytes; chunks of every size; chunks of one block on two threads at once; failure of every
 * allocation in turn.
 */
#include "mem/test_mem.h"

#include <leat/page_frag.h>
#include <pthread.h>

#include "mem/chunk.h"
#include "mem/page_pool_internal.h"

#define PIECES 120u

struct piece {
	struct leat_page_frag frag; /* data NULL: none */
	unsigned int holders;
	uint8_t byte;
};

struct model {
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_page_frag_cache cache;
	struct piece piece[PIECES];
	struct leat_run pin[16]; /* ordinary runs that keep blocks from being whole */
	int newest;              /* piece that may be aborted or grown; -1: none */
	uint64_t seed;
	uint8_t byte;
};

static void check(const struct piece *piece)
{
	uint32_t i;

	for (i = 0; i < piece->frag.size; i++)
		if (piece->frag.data[i] != piece->byte)
			fail_msg("byte %u of a piece of %u has changed", i, piece->frag.size);
}

static void check_run(const struct leat_page_frag *frag)
{
	uint64_t addr = (uint64_t)(uintptr_t)frag->data;

	assert_true(addr - leat_run_addr(frag->run) < LEAT_GRANULE_SIZE);
	assert_int_equal(leat_run_granules(frag->run),
			 LEAT_GRANULES(addr - leat_run_addr(frag->run) + frag->size));
	assert_true(leat_block_of(addr) == leat_block_of(addr + frag->size - 1));
}

/* ---- operations ---- */

static void adopt(struct model *m, unsigned int i, struct leat_page_frag frag)
{
	m->newest = -1;
	if (!frag.data)
		return;
	check_run(&frag);
	m->piece[i] = (struct piece){ frag, 1, ++m->byte };
	memset(frag.data, m->byte, frag.size);
	m->newest = (int)i;
}

static uint32_t any_size(struct model *m)
{
	return 1 + test_below(&m->seed, test_below(&m->seed, 8) ? 2500 : LEAT_PAGE_FRAG_MAX);
}

static void alloc(struct model *m, unsigned int i)
{
	uint32_t size = any_size(m), align = 1u << test_below(&m->seed, 13);
	struct leat_page_frag frag = leat_page_frag_alloc_align(&m->cache, size, align);

	if (frag.data) {
		assert_int_equal(frag.size, size);
		assert_int_equal((uintptr_t)frag.data % align, 0);
	}
	adopt(m, i, frag);
}

/** What is prepared belongs to nobody until it is committed, and may be written. */
static void prepare(struct model *m, unsigned int i)
{
	uint32_t size = any_size(m), align = 1u << test_below(&m->seed, 13);
	bool probe = test_below(&m->seed, 3) == 0;
	struct leat_page_frag frag = probe ? leat_page_frag_probe(&m->cache, align)
					   : leat_page_frag_prepare(&m->cache, size, align);

	if (!frag.data)
		return;
	assert_true(leat_run_is_none(frag.run));
	assert_true(probe || frag.size >= size);
	assert_int_equal((uintptr_t)frag.data % align, 0);
	if (!probe)
		m->newest = -1; /* the chunk may be another one */
	memset(frag.data, 0, frag.size);
	if (test_below(&m->seed, 4))
		adopt(m, i, leat_page_frag_commit(&m->cache, frag, 1 + test_below(&m->seed, frag.size)));
}

static void commit_more(struct model *m)
{
	struct piece *piece = &m->piece[m->newest];
	struct leat_page_frag left = leat_page_frag_probe(&m->cache, 1);
	uint32_t more, was = piece->frag.size;

	if (!left.data)
		return;
	assert_ptr_equal(left.data, piece->frag.data + was);
	more = test_below(&m->seed, left.size + 1);
	memset(left.data, piece->byte, more);
	leat_page_frag_commit_more(&m->cache, &piece->frag, more);
	assert_int_equal(piece->frag.size, was + more);
	check_run(&piece->frag);
}

static void put(struct model *m, unsigned int i)
{
	struct piece *piece = &m->piece[i];
	struct leat_run runs[2] = { piece->frag.run, LEAT_RUN_NONE };

	check(piece);
	if (m->newest == (int)i)
		m->newest = -1; /* its reference is gone: it cannot be aborted */
	if (test_below(&m->seed, 2))
		leat_page_pool_put_page(runs[0]);
	else
		leat_page_pool_put_page_bulk(runs, 1);
	if (!--piece->holders)
		piece->frag.data = NULL;
}

static void share(struct model *m, unsigned int i)
{
	leat_page_pool_get_page(m->piece[i].frag.run);
	assert_true(leat_run_is_shared(m->piece[i].frag.run));
	m->piece[i].holders++;
}

static void pin(struct model *m)
{
	struct leat_run *run = &m->pin[test_below(&m->seed, COUNT(m->pin))];

	if (!leat_run_is_none(*run))
		leat_page_pool_put_page(*run);
	*run = test_below(&m->seed, 3) ? leat_page_pool_alloc(m->pool, 1 + test_below(&m->seed, 20)) : LEAT_RUN_NONE;
}

static void abort_newest(struct model *m)
{
	struct piece *piece = &m->piece[m->newest];
	uint32_t off = m->cache.off;

	if (piece->holders != 1)
		return;
	leat_page_frag_abort(&m->cache, piece->frag);
	assert_true(m->cache.off <= off - piece->frag.size);
	piece->frag.data = NULL;
	m->newest = -1;
}

static void drain(struct model *m)
{
	leat_page_frag_drain(&m->cache);
	m->newest = -1;
}

static void step(struct model *m)
{
	unsigned int i = test_below(&m->seed, PIECES), what = test_below(&m->seed, 16);

	if (what < 2)
		pin(m);
	else if (what == 2 && m->newest >= 0)
		abort_newest(m);
	else if (what == 3 && m->newest >= 0)
		commit_more(m);
	else if (what == 4 && test_below(&m->seed, 20) == 0)
		drain(m);
	else if (!m->piece[i].frag.data && what < 10)
		alloc(m, i);
	else if (!m->piece[i].frag.data)
		prepare(m, i);
	else if (what == 15)
		share(m, i);
	else
		put(m, i);
	assert_true(m->cache.off <= m->cache.size);
	assert_true(!m->cache.size || m->cache.chunk % m->cache.size == 0);
}

static void model_open(struct model *m, uint64_t bytes, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->newest = -1;
	test_mem_open(&m->mem, bytes);
	m->pool = test_pool(m->mem.segment, bytes);
	leat_page_frag_init(&m->cache, m->pool);
}

static void model_close(struct model *m)
{
	unsigned int i;

	leat_page_frag_drain(&m->cache);
	for (i = 0; i < PIECES; i++)
		while (m->piece[i].frag.data)
			put(m, i);
	for (i = 0; i < COUNT(m->pin); i++)
		if (!leat_run_is_none(m->pin[i]))
			leat_page_pool_put_page(m->pin[i]);
	test_pool_end(m->pool);
	test_mem_close(&m->mem);
}

/* ---- tests ---- */

static void operations_at_random(void **state)
{
	static struct model m;
	unsigned int round, i, smaller = 0;

	(void)state;
	for (round = 1; round <= 6; round++) {
		/* little memory on odd rounds: chunks step down */
		model_open(&m, EXTENT * (round % 2 ? 2 : 16), round * 77);
		for (i = 0; i < TEST_ROUNDS(40000u); i++)
			step(&m);
		smaller += m.cache.smaller != 0;
		model_close(&m);
	}
	assert_true(smaller >= 3);
}

/** The n-th allocation fails, for every n of a run of operations. */
static void every_allocation_fails_in_turn(void **state)
{
	static struct model m;
	unsigned int n, i;
	bool failed = true;

	(void)state;
	for (n = 1; failed; n++) {
		model_open(&m, EXTENT * 4, 5);
		leat_page_pool_fail_nth(m.pool, n);
		for (i = 0; i < 400; i++)
			step(&m);
		failed = !leat_pool_of(m.pool)->fail_nth;
		model_close(&m);
	}
	assert_true(n > 50);
}

/** Blocks that are not whole give halves, quarters and pages; a larger piece fails and harms nothing. */
static void chunks_step_down_and_come_back(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_run run[8], bulk[64];
	struct leat_page_pool *pool;
	struct leat_page_frag frag;
	struct test_mem mem;
	unsigned int i, n;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < 8; i++) {
		run[i] = leat_page_pool_alloc(pool, 64);
		assert_false(leat_run_is_none(run[i]));
	}
	for (i = 0; i < 8; i++) /* the second quarter of each block stays */
		for (n = 0; n < 64; n++)
			if (n / 16 != 1)
				leat_page_pool_put_page(leat_run_make(leat_run_addr(run[i]) + n * LEAT_GRANULE_SIZE, 1));
	assert_null(leat_page_frag_alloc(&cache, LEAT_PAGE_FRAG_MAX).data);
	frag = leat_page_frag_alloc(&cache, 10000);
	assert_non_null(frag.data);
	assert_int_equal(cache.size, LEAT_BLOCK_SIZE / 2);
	leat_page_pool_put_page(frag.run);
	for (n = 0; (frag = leat_page_frag_alloc_align(&cache, LEAT_PAGE_SIZE, LEAT_PAGE_SIZE)).data; n++)
		bulk[n] = frag.run;
	assert_int_equal(n, 8 * 6 - 3); /* every free page but the first three of the chunk that was begun above */
	assert_null(leat_page_frag_alloc(&cache, 1).data);
	leat_page_pool_put_page_bulk(bulk, n);
	for (i = 0; i < 8; i++)
		leat_page_pool_put_page(leat_run_make(leat_run_addr(run[i]) + 16 * LEAT_GRANULE_SIZE, 16));
	for (i = 0; i < 2 * 1024 && cache.size < LEAT_BLOCK_SIZE; i++) {
		frag = leat_page_frag_alloc(&cache, LEAT_PAGE_SIZE);
		leat_page_pool_put_page(frag.run);
	}
	assert_int_equal(cache.size, LEAT_BLOCK_SIZE); /* without having asked for so much */
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/** What the cache has for itself is not given up for something smaller. */
static void a_chunk_of_its_own_is_given_up_for_a_larger_one_only(void **state)
{
	struct leat_run half, whole[7], crumb[16];
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct test_mem mem;
	unsigned int i;
	uint64_t chunk;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&cache, pool);
	half = leat_page_pool_alloc(pool, 32);
	for (i = 0; i < 16; i++)
		crumb[i] = leat_page_pool_alloc(pool, 2);
	for (i = 0; i < 7; i++)
		whole[i] = leat_page_pool_alloc(pool, 64);
	for (i = 0; i < 16; i += 2) /* 1 KiB here and there: no page */
		leat_page_pool_put_page(crumb[i]);
	leat_page_pool_put_page(half);
	leat_page_pool_put_page(leat_page_frag_alloc(&cache, 100).run);
	assert_int_equal(cache.size, LEAT_BLOCK_SIZE / 2);
	chunk = cache.chunk;
	for (i = 1; i < 16; i += 2) /* four pages beside the half */
		leat_page_pool_put_page(crumb[i]);
	for (i = 0; i < 1000; i++) {
		leat_page_pool_put_page(leat_page_frag_alloc(&cache, LEAT_PAGE_SIZE).run);
		assert_int_equal(cache.chunk, chunk);
	}
	leat_page_pool_put_page_bulk(whole, 7);
	for (; i < 4 * 1024 && cache.size < LEAT_BLOCK_SIZE; i++)
		leat_page_pool_put_page(leat_page_frag_alloc(&cache, LEAT_PAGE_SIZE).run);
	assert_int_equal(cache.size, LEAT_BLOCK_SIZE);
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/** Cuts pieces, each put at once: the cache is alone with its chunk whenever that is used up. */
static void cut_for_a_while(struct leat_page_frag_cache *cache)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		leat_page_pool_put_page(leat_page_frag_alloc(cache, 2048).run);
}

/** A chunk that the cache could cut again for ever leaves all the same when the pool wants its memory no more. */
static void a_chunk_over_the_limit_or_of_another_node_is_given_up(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct leat_run run[15];
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, 2 * EXTENT);
	pool = test_pool(mem.segment, 2 * EXTENT);
	leat_page_frag_init(&cache, pool);
	for (i = 0; i < 15; i++)
		run[i] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
	cut_for_a_while(&cache); /* in the last block */
	leat_page_pool_put_page_bulk(run, 15);
	assert_int_equal(cache.chunk - pool->first, 15 * LEAT_BLOCK_SIZE);
	assert_true(cache.reused_in_place);
	assert_int_equal(test_committed(pool), 2 * EXTENT);
	assert_int_equal(leat_page_pool_set_limit(pool, EXTENT, 0), 0);
	cut_for_a_while(&cache);
	assert_true(cache.chunk - pool->first < EXTENT);
	leat_page_pool_put_page(leat_page_pool_alloc(pool, 64));
	assert_int_equal(test_committed(pool), EXTENT);

	assert_int_equal(leat_page_pool_set_limit(pool, 2 * EXTENT, 0), 0);
	leat_page_pool_set_node(pool, 0);
	cut_for_a_while(&cache);
	assert_false(leat_pool_is_foreign(leat_pool_of(pool), (uint32_t)((cache.chunk - pool->first) >> LEAT_BLOCK_SHIFT)));
	leat_page_frag_drain(&cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_chunk_finds_an_aligned_place(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_pool *pool;
	struct leat_page_frag frag;
	struct leat_run run, rest[7];
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 7; i++) /* one block only */
		rest[i] = leat_page_pool_alloc(pool, 64);
	for (i = 1; i < 24; i++) {
		leat_page_frag_init(&cache, pool);
		run = leat_page_pool_alloc(pool, i);
		assert_int_equal(leat_granule_idx(leat_run_addr(run)) % LEAT_BLOCK_GRANULES, 0);
		frag = leat_page_frag_alloc(&cache, 100);
		assert_non_null(frag.data);
		assert_int_equal(cache.chunk % cache.size, 0);
		assert_int_equal(cache.size, LEAT_BLOCK_SIZE / (i <= 32 ? 2 : 4));
		leat_page_pool_put_page(frag.run);
		leat_page_pool_put_page(run);
		leat_page_frag_drain(&cache);
		assert_int_equal(test_outstanding(pool), 7 * 64);
		leat_page_pool_fail_nth(pool, 0); /* the cursor lets go */
	}
	leat_page_pool_put_page_bulk(rest, 7);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- two chunks of one block, two threads ---- */

#define ROUNDS TEST_ROUNDS(20000u)

struct half {
	pthread_barrier_t *meet;
	struct leat_run *run; /* put by this thread */
	unsigned int n;
};

static void *half_main(void *arg)
{
	struct half *half = arg;
	unsigned int round, i;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(half->meet);
		for (i = 0; i < half->n; i++)
			leat_page_pool_put_page(half->run[i]);
		pthread_barrier_wait(half->meet);
	}
	return NULL;
}

static void chunks_of_one_block_end_on_two_threads(void **state)
{
	struct leat_page_frag_cache cache[2];
	struct leat_run run[2][3] = { { LEAT_RUN_NONE } }, rest[7], pinned;
	struct leat_page_pool *pool;
	struct half half[2];
	pthread_barrier_t meet;
	pthread_t thread[2];
	struct test_mem mem;
	unsigned int round, i, k;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 7; i++)
		rest[i] = leat_page_pool_alloc(pool, 64);
	pinned = leat_page_pool_alloc(pool, 8); /* and the last block gives pieces of less than its half */
	pthread_barrier_init(&meet, NULL, 3);
	for (i = 0; i < 2; i++) {
		leat_page_frag_init(&cache[i], pool);
		half[i] = (struct half){ &meet, run[i], 3 };
		assert_int_equal(pthread_create(&thread[i], NULL, half_main, &half[i]), 0);
	}
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 2; i++) {
			for (k = 0; k < 3; k++) {
				run[i][k] = leat_page_frag_alloc(&cache[i], 1000).run;
				assert_false(leat_run_is_none(run[i][k]));
			}
			leat_page_frag_drain(&cache[i]);
		}
		assert_true(leat_block_of(leat_run_addr(run[0][0])) == leat_block_of(leat_run_addr(run[1][0])));
		pthread_barrier_wait(&meet);
		pthread_barrier_wait(&meet);
		leat_page_pool_drain(pool);
		assert_int_equal(test_outstanding(pool), 7 * 64 + 8);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	pthread_barrier_destroy(&meet);
	leat_page_pool_put_page(pinned);
	leat_page_pool_put_page_bulk(rest, 7);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- misuse ---- */

static struct leat_page_frag_cache bug_cache;
static struct leat_page_frag bug_frag;

static void commit_too_much(void *arg)
{
	(void)arg;
	leat_page_frag_commit(&bug_cache, bug_frag, bug_frag.size + 1);
}

static void commit_after_an_allocation(void *arg)
{
	(void)arg;
	leat_page_frag_alloc(&bug_cache, LEAT_PAGE_SIZE * 2);
	leat_page_frag_commit(&bug_cache, bug_frag, 1);
}

static void abort_twice(void *arg)
{
	struct leat_page_frag frag = leat_page_frag_alloc(&bug_cache, 10);

	(void)arg;
	leat_page_frag_abort(&bug_cache, frag);
	leat_page_frag_abort(&bug_cache, frag);
}

static void abort_an_older_one(void *arg)
{
	struct leat_page_frag frag = leat_page_frag_alloc(&bug_cache, 10);

	(void)arg;
	leat_page_frag_alloc(&bug_cache, 10);
	leat_page_frag_abort(&bug_cache, frag);
}

static void misuse_is_caught(void **state)
{
	struct leat_page_pool *pool;
	struct test_mem mem;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	leat_page_frag_init(&bug_cache, pool);
	bug_frag = leat_page_frag_prepare(&bug_cache, 100, 8);
	assert_non_null(bug_frag.data);
	assert_bug(commit_too_much, NULL);
	assert_bug(commit_after_an_allocation, NULL);
	assert_bug(abort_twice, NULL);
	assert_bug(abort_an_older_one, NULL);
	leat_page_frag_drain(&bug_cache);
	test_pool_end(pool);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_at_random),
		cmocka_unit_test(every_allocation_fails_in_turn),
		cmocka_unit_test(chunks_step_down_and_come_back),
		cmocka_unit_test(a_chunk_of_its_own_is_given_up_for_a_larger_one_only),
		cmocka_unit_test(a_chunk_over_the_limit_or_of_another_node_is_given_up),
		cmocka_unit_test(a_chunk_finds_an_aligned_place),
		cmocka_unit_test(chunks_of_one_block_end_on_two_threads),
		cmocka_unit_test(misuse_is_caught),
	};

	return cmocka_run_group_tests_name("page_frag_model", tests, NULL, NULL);
}
