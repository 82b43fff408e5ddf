/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_test.c: a pool on its owner's thread against a naive model, a map that names the holder of each granule,
 * under random operations: nothing is handed out twice, contents stay, sums are exact after each step. Then limits,
 * the watermark, neighbours, failing allocations and mistakes that must be caught.
 */
#include "mem/test_mem.h"

#include <errno.h>
#include <stdio.h>

/* ---- the model ---- */

#define MODEL_EXTENTS 8u
#define MODEL_GRANULES (MODEL_EXTENTS * EXTENT_GRANULES)
#define MODEL_ITEMS 1024u

/** One run that somebody holds. */
struct item {
	struct leat_run run; /* none: not in use */
	uint64_t pattern;    /* what its granules hold */
	unsigned int holders;
};

struct model {
	struct test_mem mem;
	struct leat_page_pool *pool;
	uint64_t seed, live, next_pattern;
	uint16_t holder[MODEL_GRANULES]; /* number of the item + 1; 0: nobody's */
	struct item item[MODEL_ITEMS];
	unsigned int newest; /* the item that was allocated last; MODEL_ITEMS: it is gone */
};

static uint32_t model_granule(const struct model *m, struct leat_run run)
{
	return (uint32_t)((leat_run_addr(run) - m->pool->first) / LEAT_GRANULE_SIZE);
}

/** The first and the last word of each granule. */
static void fill(const struct item *item)
{
	uint64_t *word = (uint64_t *)(void *)leat_run_start(item->run);
	uint32_t i;

	for (i = 0; i < leat_run_granules(item->run); i++, word += LEAT_GRANULE_SIZE / 8)
		word[0] = word[LEAT_GRANULE_SIZE / 8 - 1] = item->pattern + i;
}

static void check_fill(const struct item *item)
{
	const uint64_t *word = (const uint64_t *)(const void *)leat_run_start(item->run);
	uint32_t i;

	for (i = 0; i < leat_run_granules(item->run); i++, word += LEAT_GRANULE_SIZE / 8)
		if (word[0] != item->pattern + i || word[LEAT_GRANULE_SIZE / 8 - 1] != item->pattern + i)
			fail_msg("granule %u of a run of %u has changed", i, leat_run_granules(item->run));
}

static void model_take(struct model *m, unsigned int i, uint32_t first, uint32_t n)
{
	m->live += n;
	for (; n--; first++) {
		assert_true(first < MODEL_GRANULES);
		assert_int_equal(m->holder[first], 0); /* else: handed out twice */
		m->holder[first] = (uint16_t)(i + 1);
	}
}

static void model_give(struct model *m, unsigned int i, uint32_t first, uint32_t n)
{
	m->live -= n;
	for (; n--; first++) {
		assert_int_equal(m->holder[first], i + 1);
		m->holder[first] = 0;
	}
}

static void model_check_sums(const struct model *m)
{
	struct leat_page_pool_stats stats;

	leat_page_pool_stats(m->pool, &stats);
	assert_int_equal(stats.outstanding, m->live);
	assert_int_equal(stats.alloc, stats.direct + stats.remote + m->live);
	assert_true(stats.committed <= stats.limit);
	assert_true(m->live <= stats.committed / LEAT_GRANULE_SIZE);
	assert_int_equal(stats.limit, MODEL_EXTENTS * EXTENT);
}

/** Whether a block has @n free granules side by side. */
static bool model_has_room(const struct model *m, uint32_t n)
{
	uint32_t i, free = 0;

	for (i = 0; i < MODEL_GRANULES; i++) {
		free = m->holder[i] ? 0 : i % LEAT_BLOCK_GRANULES ? free + 1 : 1;
		if (free == n)
			return true;
	}
	return false;
}

static int model_pick(struct model *m)
{
	unsigned int k = test_below(&m->seed, MODEL_ITEMS), i;

	for (i = 0; i < MODEL_ITEMS; i++, k = (k + 1) % MODEL_ITEMS)
		if (!leat_run_is_none(m->item[k].run))
			return (int)k;
	return -1;
}

/* ---- the steps ---- */

static uint32_t random_size(struct model *m)
{
	switch (test_below(&m->seed, 8)) {
	case 0:
		return 1 + test_below(&m->seed, LEAT_BLOCK_GRANULES);
	case 1:
		return LEAT_BLOCK_GRANULES;
	default:
		return 1 + test_below(&m->seed, 6);
	}
}

static void step_alloc(struct model *m)
{
	uint32_t n = random_size(m), first;
	unsigned int i;

	for (i = 0; i < MODEL_ITEMS && !leat_run_is_none(m->item[i].run); i++)
		;
	if (i == MODEL_ITEMS)
		return;
	m->item[i].run = leat_page_pool_alloc(m->pool, n);
	if (leat_run_is_none(m->item[i].run)) {
		assert_false(model_has_room(m, n));
		assert_int_equal(test_committed(m->pool), MODEL_EXTENTS * EXTENT);
		return;
	}
	assert_int_equal(leat_run_granules(m->item[i].run), n);
	first = model_granule(m, m->item[i].run);
	assert_true(first % LEAT_BLOCK_GRANULES + n <= LEAT_BLOCK_GRANULES);
	model_take(m, i, first, n);
	m->item[i].pattern = m->next_pattern += 1000003;
	m->item[i].holders = 1;
	fill(&m->item[i]);
	m->newest = i;
}

/** One holder less. Returns the reference to put. */
static struct leat_run model_drop(struct model *m, unsigned int i)
{
	struct item *item = &m->item[i];
	struct leat_run run = item->run;

	check_fill(item);
	if (--item->holders)
		return run;
	model_give(m, i, model_granule(m, run), leat_run_granules(run));
	item->run = LEAT_RUN_NONE;
	if (m->newest == i)
		m->newest = MODEL_ITEMS;
	return run;
}

static void step_put(struct model *m)
{
	int i = model_pick(m);

	if (i < 0)
		return;
	assert_int_equal(leat_run_is_shared(m->item[i].run), m->item[i].holders > 1);
	leat_page_pool_put_page(model_drop(m, (unsigned int)i));
}

/** Neighbours by address, mostly in order, and some shuffled. */
static void step_put_bulk(struct model *m)
{
	struct leat_run runs[40], swap;
	unsigned int n = 0, most = 1 + test_below(&m->seed, COUNT(runs)), a, b;
	uint32_t g = test_below(&m->seed, MODEL_GRANULES), look;

	for (look = 0; look < 600 && n < most; look++, g = (g + 1) % MODEL_GRANULES)
		if (m->holder[g]) /* one with several holders comes several times */
			runs[n++] = model_drop(m, m->holder[g] - 1u);
	if (n > 1 && test_below(&m->seed, 2)) {
		a = test_below(&m->seed, n);
		b = test_below(&m->seed, n);
		swap = runs[a];
		runs[a] = runs[b];
		runs[b] = swap;
	}
	leat_page_pool_put_page_bulk(runs, n);
}

/** Joins a run with the next one by address, over the border of blocks, too, as coalescing does. */
static void step_merge(struct model *m)
{
	int picked = model_pick(m);
	struct item *item, *next;
	uint32_t end, n;
	unsigned int k;

	if (picked < 0)
		return;
	item = &m->item[picked];
	end = model_granule(m, item->run) + leat_run_granules(item->run);
	if (end == MODEL_GRANULES || !m->holder[end])
		return;
	k = m->holder[end] - 1u;
	next = &m->item[k];
	if (item->holders > 1 || next->holders > 1)
		return;
	check_fill(item);
	n = leat_run_granules(next->run);
	model_drop(m, k);
	model_take(m, (unsigned int)picked, end, n);
	item->run = leat_run_make_long(leat_run_addr(item->run), leat_run_granules(item->run) + n);
	fill(item);
	m->newest = MODEL_ITEMS; /* what was allocated last may be part of it */
}

static void step_get(struct model *m)
{
	int i = model_pick(m);

	if (i < 0 || m->item[i].holders == 4)
		return;
	leat_page_pool_get_page(m->item[i].run);
	m->item[i].holders++;
}

/** Merged over the border of blocks: not one to trim or to cancel. */
static bool over_a_border(const struct model *m, unsigned int i)
{
	struct leat_run run = m->item[i].run;

	return model_granule(m, run) % LEAT_BLOCK_GRANULES + leat_run_granules(run) > LEAT_BLOCK_GRANULES;
}

static void step_trim(struct model *m)
{
	int i = test_below(&m->seed, 2) || m->newest == MODEL_ITEMS ? model_pick(m) : (int)m->newest;
	struct leat_run run;
	uint32_t n, keep;

	if (i < 0 || m->item[i].holders > 1 || over_a_border(m, (unsigned int)i))
		return;
	run = m->item[i].run;
	n = leat_run_granules(run);
	keep = 1 + test_below(&m->seed, n);
	m->item[i].run = leat_page_pool_trim(m->pool, run, keep);
	assert_int_equal(leat_run_addr(m->item[i].run), leat_run_addr(run));
	if (leat_run_granules(m->item[i].run) == n)
		return;
	assert_int_equal(leat_run_granules(m->item[i].run), keep);
	model_give(m, (unsigned int)i, model_granule(m, run) + keep, n - keep);
}

static void step_cancel(struct model *m)
{
	int i = test_below(&m->seed, 4) == 0 || m->newest == MODEL_ITEMS ? model_pick(m) : (int)m->newest;
	unsigned int before;

	if (i < 0 || m->item[i].holders > 1 || over_a_border(m, (unsigned int)i))
		return;
	leat_page_pool_cancel(m->pool, model_drop(m, (unsigned int)i));
	/* the one before it, by address, is now the newest: cancelling goes on backwards, over borders of blocks */
	before = (unsigned int)((m->pool->cur - m->pool->first) / LEAT_GRANULE_SIZE);
	if (before && before <= MODEL_GRANULES && m->holder[before - 1])
		m->newest = m->holder[before - 1] - 1u;
}

static void step(struct model *m, unsigned int appetite)
{
	unsigned int what = test_below(&m->seed, 100);

	if (what < appetite)
		step_alloc(m);
	else if (what < 75)
		step_put(m);
	else if (what < 80)
		step_put_bulk(m);
	else if (what < 85)
		step_merge(m);
	else if (what < 90)
		step_get(m);
	else if (what < 95)
		step_trim(m);
	else
		step_cancel(m);
	assert_true(leat_page_pool_left(m->pool) <= LEAT_BLOCK_GRANULES);
	model_check_sums(m);
}

static void run_model(uint64_t seed, unsigned int steps)
{
	static struct model m;
	unsigned int i, k;

	memset(&m, 0, sizeof(m));
	m.seed = seed;
	m.newest = MODEL_ITEMS;
	print_message("# seed %llu\n", (unsigned long long)seed); /* the last one printed is the one that fails */
	test_mem_open(&m.mem, MODEL_EXTENTS * EXTENT);
	m.pool = test_pool(m.mem.segment, MODEL_EXTENTS * EXTENT);
	for (i = 0; i < steps; i++) /* by turns it grows to the limit and shrinks */
		step(&m, i / 2000 % 2 ? 30 : 60);
	for (k = 0; k < MODEL_ITEMS; k++)
		while (!leat_run_is_none(m.item[k].run))
			leat_page_pool_put_page(model_drop(&m, k));
	model_check_sums(&m);
	test_pool_end(m.pool);
	test_mem_close(&m.mem);
}

static void agrees_with_a_map_of_granules(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 10; seed++)
		run_model(seed * 77, TEST_ROUNDS(60000u));
}

/* ---- the cursor ---- */

static void cancelling_backwards_over_a_block_border_keeps_runs_within_blocks(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run[4], again;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	run[0] = leat_page_pool_alloc(pool, 60);
	run[1] = leat_page_pool_alloc(pool, 4);
	run[2] = leat_page_pool_alloc(pool, 4);
	assert_int_equal(leat_run_addr(run[2]), leat_run_addr(run[1]) + leat_run_size(run[1]));
	leat_page_pool_cancel(pool, run[2]);
	leat_page_pool_cancel(pool, run[1]);
	again = leat_page_pool_alloc(pool, 8);
	assert_true(leat_granule_idx(leat_run_addr(again)) % LEAT_BLOCK_GRANULES + 8 <= LEAT_BLOCK_GRANULES);
	assert_true(leat_page_pool_left(pool) <= LEAT_BLOCK_GRANULES);
	assert_int_equal(test_outstanding(pool), 68);
	leat_page_pool_put_page(again);
	leat_page_pool_put_page(run[0]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void trimming_the_last_run_of_a_block_keeps_runs_within_blocks(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run a, b;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	a = leat_page_pool_alloc(pool, 64);
	b = leat_page_pool_alloc(pool, 1);
	leat_page_pool_cancel(pool, b); /* the cursor stands at the border, in the next block */
	a = leat_page_pool_trim(pool, a, 32);
	assert_true(leat_page_pool_left(pool) <= LEAT_BLOCK_GRANULES);
	b = leat_page_pool_alloc(pool, 40);
	assert_true(leat_granule_idx(leat_run_addr(b)) % LEAT_BLOCK_GRANULES + 40 <= LEAT_BLOCK_GRANULES);
	leat_page_pool_put_page(a);
	leat_page_pool_put_page(b);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_trimmed_end_is_handed_out_next(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run a, b, c;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	a = leat_page_pool_trim(pool, leat_page_pool_alloc(pool, 64), 3);
	b = leat_page_pool_alloc(pool, 8);
	assert_int_equal(leat_run_addr(b), leat_run_addr(a) + leat_run_size(a));
	c = leat_page_pool_trim(pool, a, 1); /* not the newest: stays whole */
	assert_int_equal(c.bits, a.bits);
	leat_page_pool_cancel(pool, a); /* not the newest: put */
	assert_int_equal(test_outstanding(pool), 8);
	leat_page_pool_cancel(pool, b);
	assert_int_equal(test_outstanding(pool), 0);
	c = leat_page_pool_alloc(pool, 1);
	assert_int_equal(leat_run_addr(c), leat_run_addr(b));
	leat_page_pool_put_page(c);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void neighbours_are_adjacent_in_steady_state(void **state)
{
	enum { RING = 256, ROUNDS = 100000 };
	struct leat_run ring[RING] = { { 0 } };
	struct test_mem mem;
	struct leat_page_pool *pool;
	uint64_t end = 0, apart = 0;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 64);
	pool = test_pool(mem.segment, EXTENT * 64);
	for (i = 0; i < ROUNDS; i++) {
		struct leat_run *slot = &ring[i % RING];

		if (i >= RING)
			leat_page_pool_put_page(*slot);
		*slot = leat_page_pool_alloc(pool, 4);
		apart += i >= RING && leat_run_addr(*slot) != end;
		end = leat_run_addr(*slot) + leat_run_size(*slot);
	}
	assert_true(apart <= ROUNDS / RING); /* where the sweep turns round */
	leat_page_pool_put_page_bulk(ring, RING);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void the_mark_of_sharing_goes_when_a_block_is_cut_again(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 100; i++) { /* twelve times round the eight blocks */
		run = leat_page_pool_alloc(pool, 40);
		assert_int_equal(leat_block_of(leat_run_addr(run))->flags, 0);
		leat_page_pool_get_page(run);
		assert_int_equal(leat_block_of(leat_run_addr(run))->flags, LEAT_BLOCK_SHARED);
		leat_page_pool_put_page(run);
		leat_page_pool_put_page(run);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- how much memory ---- */

static void growth_stops_at_the_watermark(void **state)
{
	enum { LIVE = 2000 }; /* runs of 3 granules: 3 MB */
	static struct leat_run run[LIVE];
	const uint64_t floor = UINT64_C(1) << 20;
	uint64_t seed = 5, live = (uint64_t)LIVE * 3 * LEAT_GRANULE_SIZE;
	struct test_mem mem;
	struct leat_page_pool *pool;
	unsigned int i, k;

	(void)state;
	test_mem_open(&mem, EXTENT * 200);
	pool = test_pool(mem.segment, EXTENT * 200);
	for (i = 0; i < 300000; i++) {
		/* one in a hundred runs lives long: the rest come and go in the lower slots */
		k = test_below(&seed, 100) ? test_below(&seed, LIVE / 2) : test_below(&seed, LIVE);
		if (!leat_run_is_none(run[k]))
			leat_page_pool_put_page(run[k]);
		run[k] = leat_page_pool_alloc(pool, 3);
		assert_false(leat_run_is_none(run[k]));
	}
	assert_true(test_committed(pool) <= (2 * live > floor ? 2 * live : floor) + 2 * EXTENT);
	for (k = 0; k < LIVE; k++)
		if (!leat_run_is_none(run[k]))
			leat_page_pool_put_page(run[k]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_floor_above_the_limit_is_the_limit(void **state)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .floor = EXTENT * 100 };
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	for (i = 0; i < 1000; i++) {
		run = leat_page_pool_alloc(pool, 1 + i % 64);
		assert_false(leat_run_is_none(run));
		leat_page_pool_put_page(run);
	}
	assert_int_equal(test_committed(pool), EXTENT);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void the_limit_is_reached_and_left_again(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_page_pool_stats stats;
	struct leat_run run[EXTENT_GRANULES];
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < EXTENT_GRANULES; i++) {
		run[i] = leat_page_pool_alloc(pool, 1);
		assert_false(leat_run_is_none(run[i]));
	}
	for (i = 1; i <= LEAT_BLOCK_GRANULES; i++)
		assert_true(leat_run_is_none(leat_page_pool_alloc(pool, i)));
	leat_page_pool_stats(pool, &stats);
	assert_int_equal(stats.alloc_failed, LEAT_BLOCK_GRANULES);
	leat_page_pool_put_page(run[77]);
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 2)));
	assert_int_equal(leat_page_pool_alloc(pool, 1).bits, run[77].bits);
	for (i = 0; i < EXTENT_GRANULES; i++) /* every second one: runs of one granule only */
		if (i % 2)
			leat_page_pool_put_page(run[i]);
	assert_true(leat_run_is_none(leat_page_pool_alloc(pool, 2)));
	assert_int_equal(test_outstanding(pool), EXTENT_GRANULES / 2);
	for (i = 0; i < EXTENT_GRANULES; i += 2)
		leat_page_pool_put_page(run[i]);
	assert_false(leat_run_is_none(run[0] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES)));
	leat_page_pool_put_page(run[0]);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- failing allocations ---- */

static void only_the_nth_allocation_fails(void **state)
{
	struct leat_run run[200];
	struct test_mem mem;
	struct leat_page_pool *pool;
	unsigned int nth, i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	pool = test_pool(mem.segment, EXTENT * 2);
	for (nth = 1; nth <= COUNT(run); nth++) {
		leat_page_pool_fail_nth(pool, nth);
		for (i = 0; i < COUNT(run); i++) {
			run[i] = leat_page_pool_alloc(pool, 1 + i % 3);
			assert_int_equal(leat_run_is_none(run[i]), i + 1 == nth);
		}
		for (i = 0; i < COUNT(run); i++)
			if (i + 1 != nth)
				leat_page_pool_put_page(run[i]);
		assert_pool_whole(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void the_nth_allocation_fails_after_trims_and_cancels(void **state)
{
	struct leat_run run[50];
	struct test_mem mem;
	struct leat_page_pool *pool;
	unsigned int nth, i;

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	pool = test_pool(mem.segment, EXTENT * 2);
	for (nth = 1; nth <= COUNT(run); nth++) {
		leat_page_pool_fail_nth(pool, nth);
		for (i = 0; i < COUNT(run); i++) {
			run[i] = leat_page_pool_alloc(pool, 4);
			assert_int_equal(leat_run_is_none(run[i]), i + 1 == nth);
			if (i + 1 != nth)
				run[i] = leat_page_pool_trim(pool, run[i], 1 + i % 4);
		}
		for (i = COUNT(run); i--;)
			if (i + 1 != nth)
				leat_page_pool_cancel(pool, run[i]);
		assert_pool_whole(pool);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_pool_survives_a_system_without_memory(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run[8 * 4];
	unsigned long nth;
	unsigned int i, got;

	(void)state;
	test_mem_open(&mem, EXTENT * 4);
	for (nth = 1; nth <= 8; nth++) {
		pool = test_pool(mem.segment, EXTENT * 4);
		leat_heap_fail_nth(nth);
		for (i = got = 0; i < COUNT(run); i++) {
			run[got] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
			got += !leat_run_is_none(run[got]);
		}
		assert_int_equal(leat_heap_failed(), nth <= 4);
		leat_heap_fail_nth(0);
		assert_int_equal(test_outstanding(pool), got * LEAT_BLOCK_GRANULES);
		while (got < COUNT(run)) {
			run[got] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
			assert_false(leat_run_is_none(run[got++]));
		}
		leat_page_pool_put_page_bulk(run, got);
		test_pool_end(pool);
	}
	test_mem_close(&mem);
}

static void pool_options_are_checked(void **state)
{
	struct {
		struct leat_page_pool_opts known;
		uint64_t unknown;
	} opts = { .known = { .size = sizeof(opts) } };
	struct test_mem mem;
	struct leat_page_pool *pool = NULL;
	struct leat_page_pool_stats stats;

	(void)state;
	test_mem_open(&mem, EXTENT * 64);
	opts.unknown = 1;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts.known, &pool), -E2BIG);
	opts.unknown = 0;
	opts.known.limit = UINT64_MAX;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts.known, &pool), -EINVAL);
	opts.known.limit = EXTENT * 64 + 1;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts.known, &pool), -ENOSPC);
	assert_null(pool);
	opts.known.limit = 1;
	opts.known.name = "a name that is longer than thirty-one bytes";
	assert_int_equal(leat_page_pool_create(mem.segment, &opts.known, &pool), 0);
	leat_page_pool_stats(pool, &stats);
	assert_int_equal(stats.limit, EXTENT);
	assert_string_equal(stats.name, "a name that is longer than thir");
	leat_page_pool_destroy(pool);
	assert_int_equal(leat_page_pool_create(mem.segment, NULL, &pool), 0);
	leat_page_pool_stats(pool, &stats);
	assert_int_equal(stats.limit, UINT64_C(16) << 20);
	leat_page_pool_destroy(pool);
	leat_page_pool_destroy(NULL);
	test_mem_close(&mem);
}

static void count_pool(const struct leat_page_pool_stats *stats, void *arg)
{
	uint64_t *sum = arg;

	sum[0]++;
	sum[1] += stats->outstanding;
}

static void a_destroyed_pool_is_seen_until_the_last_put(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *a, *b;
	struct leat_run run, rest;
	uint64_t sum[2] = { 0, 0 };

	(void)state;
	test_mem_open(&mem, EXTENT * 2);
	a = test_pool(mem.segment, EXTENT);
	b = test_pool(mem.segment, EXTENT);
	run = leat_page_pool_alloc(a, 5);
	rest = leat_page_pool_alloc(a, 6);
	leat_page_pool_destroy(a);
	leat_segment_for_each_pool(mem.segment, count_pool, sum);
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[1], 11);
	leat_page_pool_get_page(run);
	leat_page_pool_put_page(run);
	leat_page_pool_put_page(rest);
	leat_page_pool_put_page(run);
	sum[0] = sum[1] = 0;
	leat_segment_for_each_pool(mem.segment, count_pool, sum);
	assert_int_equal(sum[0], 1);
	assert_int_equal(sum[1], 0);
	test_pool_end(b);
	test_mem_close(&mem);
}

/* ---- mistakes ---- */

static struct leat_page_pool *bug_pool;

static void put_twice(void *arg)
{
	struct leat_run run = leat_page_pool_alloc(bug_pool, 3);

	(void)arg;
	leat_page_pool_put_page(run);
	leat_page_pool_put_page(run);
}

static void put_twice_in_bulk(void *arg)
{
	struct leat_run run[2];

	(void)arg;
	run[0] = run[1] = leat_page_pool_alloc(bug_pool, 3);
	leat_page_pool_put_page_bulk(run, 2);
}

static void put_twice_in_part(void *arg)
{
	struct leat_run run = leat_page_pool_alloc(bug_pool, 64);

	(void)arg;
	leat_page_pool_put_page(leat_run_make(leat_run_addr(run) + LEAT_GRANULE_SIZE * 63, 1));
	leat_page_pool_put_page(run);
}

static void put_twice_after_sharing(void *arg)
{
	struct leat_run run = leat_page_pool_alloc(bug_pool, 3);

	(void)arg;
	leat_page_pool_get_page(run);
	leat_page_pool_put_page(run);
	leat_page_pool_put_page(run);
	leat_page_pool_put_page(run);
}

static void put_twice_as_a_stranger(void *arg)
{
	struct leat_run run = leat_page_pool_alloc(bug_pool, 3);

	(void)arg;
	leat_page_pool_disown(bug_pool);
	leat_page_pool_put_page(run);
	leat_page_pool_put_page(run);
	leat_page_pool_own(bug_pool);
	leat_page_pool_drain(bug_pool);
}

static void alloc_too_much(void *arg)
{
	(void)arg;
	leat_page_pool_alloc(bug_pool, LEAT_BLOCK_GRANULES + 1);
}

static void alloc_bytes(void *arg)
{
	leat_page_pool_alloc_frag(bug_pool, arg);
}

static void trim_to_nothing(void *arg)
{
	(void)arg;
	leat_page_pool_trim(bug_pool, leat_page_pool_alloc(bug_pool, 3), 0);
}

static void trim_to_more(void *arg)
{
	(void)arg;
	leat_page_pool_trim(bug_pool, leat_page_pool_alloc(bug_pool, 3), 4);
}

static void mistakes_are_caught(void **state)
{
	uint32_t sizes[] = { 0, LEAT_PAGE_POOL_ALLOC_MAX + 1, UINT32_MAX }; /* the last one plus a granule is small */
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	bug_pool = test_pool(mem.segment, EXTENT);
	assert_bug(put_twice, NULL);
	assert_bug(put_twice_in_bulk, NULL);
	assert_bug(put_twice_in_part, NULL);
	assert_bug(put_twice_after_sharing, NULL);
	assert_bug(put_twice_as_a_stranger, NULL);
	assert_bug(alloc_too_much, NULL);
	for (i = 0; i < COUNT(sizes); i++)
		assert_bug(alloc_bytes, &sizes[i]);
	assert_bug(trim_to_nothing, NULL);
	assert_bug(trim_to_more, NULL);
	test_pool_end(bug_pool);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_map_of_granules),
		cmocka_unit_test(cancelling_backwards_over_a_block_border_keeps_runs_within_blocks),
		cmocka_unit_test(trimming_the_last_run_of_a_block_keeps_runs_within_blocks),
		cmocka_unit_test(a_trimmed_end_is_handed_out_next),
		cmocka_unit_test(the_mark_of_sharing_goes_when_a_block_is_cut_again),
		cmocka_unit_test(neighbours_are_adjacent_in_steady_state),
		cmocka_unit_test(growth_stops_at_the_watermark),
		cmocka_unit_test(a_floor_above_the_limit_is_the_limit),
		cmocka_unit_test(the_limit_is_reached_and_left_again),
		cmocka_unit_test(only_the_nth_allocation_fails),
		cmocka_unit_test(the_nth_allocation_fails_after_trims_and_cancels),
		cmocka_unit_test(a_pool_survives_a_system_without_memory),
		cmocka_unit_test(pool_options_are_checked),
		cmocka_unit_test(a_destroyed_pool_is_seen_until_the_last_put),
		cmocka_unit_test(mistakes_are_caught),
	};

	return cmocka_run_group_tests_name("page_pool", tests, NULL, NULL);
}
