/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_model_test.c: every way to allocate and to give back, limits and nodes that change, against a map that
 * names the holder of each granule, with what must hold of a pool checked after every step; then the same life with
 * each allocation failing in turn. Pools of own memory, of a provider, and of a provider with map ops.
 */
#include "mem/test_provider.h"

#include <errno.h>
#include <pthread.h>

#define EXTENTS_MAX 6u
#define GRANULES_MAX (EXTENTS_MAX * EXTENT_GRANULES)
#define ITEMS 512u

struct item {
	struct leat_run run; /* none: not in use */
	uint64_t pattern;
};

struct model {
	struct test_mem mem;
	struct test_provider *provider; /* NULL: the segment's memory */
	struct leat_page_pool *pool;
	uint64_t seed, live, handed, failed, next_pattern;
	uint64_t limit;
	uint16_t holder[GRANULES_MAX]; /* number of the item + 1 */
	struct item item[ITEMS];
	unsigned int newest;           /* ITEMS: it is gone */
};

/* ---- another thread, that puts what it is told to ---- */

struct putter {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct leat_run run[64];
	unsigned int n;
	bool bulk, end;
};

static struct putter putter = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static void *putter_main(void *arg)
{
	struct putter *p = arg;
	unsigned int i;

	pthread_mutex_lock(&p->lock);
	while (!p->end) {
		if (p->bulk)
			leat_page_pool_put_page_bulk(p->run, p->n);
		for (i = 0; i < p->n && !p->bulk; i++)
			leat_page_pool_put_page(p->run[i]);
		p->n = 0;
		pthread_cond_broadcast(&p->cond);
		pthread_cond_wait(&p->cond, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/** Has @n runs put on the other thread, and waits until they are. */
static void put_remotely(const struct leat_run *run, unsigned int n, bool bulk)
{
	pthread_mutex_lock(&putter.lock);
	memcpy(putter.run, run, n * sizeof(*run));
	putter.n = n;
	putter.bulk = bulk;
	pthread_cond_broadcast(&putter.cond);
	while (putter.n)
		pthread_cond_wait(&putter.cond, &putter.lock);
	pthread_mutex_unlock(&putter.lock);
}

/* ---- the map ---- */

static uint32_t granule_of(const struct model *m, struct leat_run run)
{
	return (uint32_t)((leat_run_addr(run) - m->pool->first) / LEAT_GRANULE_SIZE);
}

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

static void mark(struct model *m, unsigned int from, unsigned int to, uint32_t first, uint32_t n)
{
	for (; n--; first++) {
		assert_true(first < GRANULES_MAX);
		assert_int_equal(m->holder[first], from);
		m->holder[first] = (uint16_t)to;
	}
}

static void check(struct model *m)
{
	struct leat_page_pool_stats s;

	assert_pool_sound(m->pool);
	leat_page_pool_stats(m->pool, &s);
	assert_int_equal(s.alloc, m->handed);
	assert_int_equal(s.alloc_failed, m->failed);
	assert_int_equal(s.limit, m->limit);
	assert_true(s.outstanding >= m->live); /* the rest is on its way back */
	if (m->provider) {
		assert_int_equal(s.committed, (uint64_t)m->provider->given * LEAT_PAGE_SIZE);
		assert_int_equal(s.grows - s.shrinks, m->provider->allocs - m->provider->releases);
	} else {
		assert_int_equal(s.committed, leat_segment_committed(m->mem.segment));
	}
}

/* ---- allocating ---- */

/** Whether the pool must have a run of @n granules within a block: one lies free below the limit. */
static bool has_run(struct model *m, uint32_t n)
{
	struct leat_pool *pool = leat_pool_of(m->pool);
	uint32_t idx, bit;

	for (idx = 0; idx < pool->n_blocks && idx < pool->limit_blocks; idx++)
		for (bit = 0; bit + n <= LEAT_BLOCK_GRANULES; bit++)
			if (!(leat_block_mask(bit, n) & ~pool->blocks[idx].free))
				return true;
	return false;
}

static int free_item(struct model *m)
{
	unsigned int i;

	for (i = 0; i < ITEMS; i++)
		if (leat_run_is_none(m->item[i].run))
			return (int)i;
	return -1;
}

static void adopt(struct model *m, unsigned int i, struct leat_run run, uint32_t asked)
{
	struct item *item = &m->item[i];

	if (leat_run_is_none(run)) {
		m->failed++;
		assert_true(asked > LEAT_BLOCK_GRANULES || !has_run(m, asked));
		return;
	}
	assert_true(leat_run_granules(run) >= asked);
	if (asked <= LEAT_BLOCK_GRANULES)
		assert_true(granule_of(m, run) % LEAT_BLOCK_GRANULES + leat_run_granules(run) <= LEAT_BLOCK_GRANULES);
	mark(m, 0, i + 1, granule_of(m, run), leat_run_granules(run));
	m->live += leat_run_granules(run);
	m->handed += leat_run_granules(run);
	item->run = run;
	item->pattern = m->next_pattern += 1000003;
	fill(item);
	m->newest = i;
}

static void step_alloc(struct model *m, unsigned int i)
{
	uint32_t n = test_below(&m->seed, 8) ? 1 + test_below(&m->seed, 8) : 1 + test_below(&m->seed, 64);

	adopt(m, i, leat_page_pool_alloc(m->pool, n), n);
}

static void step_alloc_frag(struct model *m, unsigned int i)
{
	uint32_t want = 1 + test_below(&m->seed, test_below(&m->seed, 4) ? 4000 : LEAT_PAGE_POOL_ALLOC_MAX), size = want;
	struct leat_run run = leat_page_pool_alloc_frag(m->pool, &size);

	if (!leat_run_is_none(run)) {
		assert_int_equal(size, leat_run_size(run));
		assert_true(size >= want);
		/* what is left serves another of the kind, or nothing is left */
		assert_true(!leat_page_pool_left(m->pool) || leat_page_pool_left(m->pool) >= LEAT_GRANULES(want));
	}
	adopt(m, i, run, LEAT_GRANULES(want));
}

static void step_alloc_pages(struct model *m, unsigned int i)
{
	uint32_t order = test_below(&m->seed, LEAT_PAGE_ORDER_MAX + 1);

	adopt(m, i, leat_page_pool_alloc_pages(m->pool, order), LEAT_PAGE_GRANULES << order);
	if (!leat_run_is_none(m->item[i].run))
		assert_int_equal(leat_run_granules(m->item[i].run), LEAT_PAGE_GRANULES << order);
}

/* ---- giving back ---- */

static int pick(struct model *m)
{
	unsigned int k = test_below(&m->seed, ITEMS), i;

	for (i = 0; i < ITEMS; i++, k = (k + 1) % ITEMS)
		if (!leat_run_is_none(m->item[k].run))
			return (int)k;
	return -1;
}

static struct leat_run drop(struct model *m, unsigned int i)
{
	struct leat_run run = m->item[i].run;

	check_fill(&m->item[i]);
	mark(m, i + 1, 0, granule_of(m, run), leat_run_granules(run));
	m->live -= leat_run_granules(run);
	m->item[i].run = LEAT_RUN_NONE;
	if (m->newest == i)
		m->newest = ITEMS;
	return run;
}

static void step_put(struct model *m, bool remote, bool bulk)
{
	struct leat_run run[64];
	unsigned int n = 0, most = 1 + test_below(&m->seed, bulk ? COUNT(run) : 4);
	int i;

	while (n < most && (i = pick(m)) >= 0)
		run[n++] = drop(m, (unsigned int)i);
	if (remote && n)
		put_remotely(run, n, bulk);
	else if (bulk)
		leat_page_pool_put_page_bulk(run, n);
	else
		for (most = n, n = 0; n < most; n++)
			leat_page_pool_put_page(run[n]);
}

static void step_trim(struct model *m)
{
	int i = m->newest == ITEMS || test_below(&m->seed, 4) == 0 ? pick(m) : (int)m->newest;
	struct leat_run run;
	uint32_t n, keep, left;

	if (i < 0 || m->item[i].run.bits & LEAT_RUN_LONG)
		return;
	run = m->item[i].run;
	n = leat_run_granules(run);
	keep = 1 + test_below(&m->seed, n);
	m->item[i].run = leat_page_pool_trim(m->pool, run, keep);
	left = leat_run_granules(m->item[i].run);
	assert_true(left == keep || left == n);
	mark(m, (unsigned int)i + 1, 0, granule_of(m, run) + left, n - left);
	m->live -= n - left;
	m->handed -= n - left;
}

static void step_cancel(struct model *m)
{
	uint64_t direct = m->pool->counts.direct;
	struct leat_run run;

	if (m->newest == ITEMS)
		return;
	run = drop(m, m->newest);
	leat_page_pool_cancel(m->pool, run);
	if (m->pool->counts.direct == direct)
		m->handed -= leat_run_granules(run);
	else
		assert_int_equal(m->pool->counts.direct - direct, leat_run_granules(run));
}

/* ---- what else may happen ---- */

static void step_drain(struct model *m)
{
	leat_page_pool_drain(m->pool);
	assert_int_equal(test_outstanding(m->pool), m->live);
}

static void step_limit(struct model *m)
{
	uint64_t limit = (1 + test_below(&m->seed, EXTENTS_MAX)) * EXTENT;

	assert_int_equal(leat_page_pool_set_limit(m->pool, limit - test_below(&m->seed, 2),
						  test_below(&m->seed, 3) * EXTENT / 2), 0);
	m->limit = limit;
}

static void step_shrink(struct model *m)
{
	uint64_t before = test_committed(m->pool), given = leat_page_pool_shrink(m->pool);
	struct leat_pool *pool = leat_pool_of(m->pool);

	assert_int_equal(before - given, test_committed(m->pool));
	assert_true(!given || pool->n_pages >= pool->floor_pages || before > m->limit);
}

static void step_set_node(struct model *m)
{
	leat_page_pool_set_node(m->pool, (int)test_below(&m->seed, 3) - 1);
}

/** Memory becomes short, or is there again. */
static void step_shortage(struct model *m)
{
	if (m->provider)
		m->provider->max_order = test_below(&m->seed, 2) ? LEAT_EXTENT_ORDER : test_below(&m->seed, 7);
}

static void step(struct model *m, unsigned int appetite)
{
	unsigned int what = test_below(&m->seed, 1000);
	int i = free_item(m);

	if (what < appetite && i >= 0) {
		unsigned int kind = test_below(&m->seed, 10);

		if (kind < 6)
			step_alloc(m, (unsigned int)i);
		else if (kind < 9)
			step_alloc_frag(m, (unsigned int)i);
		else
			step_alloc_pages(m, (unsigned int)i);
	} else if (what < 840) {
		step_put(m, what % 2, what % 16 == 0);
	} else if (what < 920) {
		step_trim(m);
	} else if (what < 970) {
		step_cancel(m);
	} else if (what < 980) {
		step_drain(m);
	} else if (what < 986) {
		step_limit(m);
	} else if (what < 990) {
		step_shrink(m);
	} else if (what < 995) {
		step_set_node(m);
	} else {
		step_shortage(m);
	}
}

/* ---- whole lives ---- */

/** The descriptors are those of a pool that has been all over the segment. */
static void leave_something(struct leat_segment *segment)
{
	struct leat_page_pool *pool = test_pool(segment, EXTENTS_MAX * EXTENT);
	struct leat_run run[EXTENTS_MAX * EXTENT / LEAT_BLOCK_SIZE];
	unsigned int i;

	for (i = 0; i < COUNT(run); i++) {
		run[i] = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
		leat_page_pool_get_page(run[i]);
	}
	leat_page_pool_put_page_bulk(run, COUNT(run));
	leat_page_pool_put_page_bulk(run, COUNT(run));
	test_pool_end(pool);
}

static void model_open(struct model *m, uint64_t seed, struct test_provider *provider, bool map)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = 4 * EXTENT, .floor = EXTENT };

	memset(m, 0, sizeof(*m));
	m->seed = seed;
	m->newest = ITEMS;
	m->limit = opts.limit;
	m->provider = provider;
	opts.limit_max = EXTENTS_MAX * EXTENT;
	if (provider) {
		test_provider_init(provider, EXTENTS_MAX * LEAT_EXTENT_PAGES * 3 / 4);
		opts.provider = &test_provider_ops;
		opts.provider_arg = provider;
		opts.map = map ? &test_map_ops : NULL;
		opts.map_arg = provider;
	}
	test_mem_open(&m->mem, EXTENTS_MAX * EXTENT);
	leave_something(m->mem.segment);
	assert_int_equal(leat_page_pool_create(m->mem.segment, &opts, &m->pool), 0);
	leat_page_pool_own(m->pool);
	putter.end = false;
	putter.n = 0;
	assert_int_equal(pthread_create(&putter.thread, NULL, putter_main, &putter), 0);
}

static void model_close(struct model *m)
{
	unsigned int i;

	for (i = 0; i < ITEMS; i++)
		if (!leat_run_is_none(m->item[i].run))
			leat_page_pool_put_page(drop(m, i));
	step_drain(m);
	check(m);
	assert_int_equal(m->live, 0);
	pthread_mutex_lock(&putter.lock);
	putter.end = true;
	pthread_cond_broadcast(&putter.cond);
	pthread_mutex_unlock(&putter.lock);
	assert_int_equal(pthread_join(putter.thread, NULL), 0);
	leat_page_pool_destroy(m->pool);
	if (m->provider)
		assert_int_equal(m->provider->destroys, 1);
	test_mem_close(&m->mem);
}

/** What a life went through. */
static struct leat_page_pool_stats seen;

static void remember(struct model *m)
{
	struct leat_page_pool_stats s;

	leat_page_pool_stats(m->pool, &s);
	seen.remote += s.remote;
	seen.uncut += s.uncut;
	seen.cut_recycled += s.cut_recycled;
	seen.cut_partial += s.cut_partial;
	seen.shrinks += s.shrinks;
	seen.grow_failed += s.grow_failed;
	seen.node_moves += s.node_moves;
	seen.alloc_failed += s.alloc_failed;
}

/** Each of it, or the model says little. */
static void assert_all_seen(bool provider)
{
	assert_true(seen.remote > 1000 && seen.uncut > 1000 && seen.cut_recycled > 1000 && seen.cut_partial > 1000);
	assert_true(seen.shrinks > 10 && seen.node_moves > 10 && seen.alloc_failed > 10);
	assert_true(!provider || seen.grow_failed > 10);
	memset(&seen, 0, sizeof(seen));
}

static void run_model(uint64_t seed, unsigned int steps, struct test_provider *provider, bool map)
{
	static struct model m;
	unsigned int i;

	print_message("# seed %llu\n", (unsigned long long)seed); /* the last one printed is the one that fails */
	model_open(&m, seed, provider, map);
	for (i = 0; i < steps; i++) { /* by turns it grows to the limit and shrinks */
		step(&m, i / 1000 % 2 ? 400 : 700);
		check(&m);
	}
	remember(&m);
	model_close(&m);
}

static struct test_provider provider;

static void own_memory_agrees_with_a_map_of_granules(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++)
		run_model(seed * 101, TEST_ROUNDS(20000u), NULL, false);
	assert_all_seen(false);
}

static void a_providers_memory_agrees_with_a_map_of_granules(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++)
		run_model(seed * 103, TEST_ROUNDS(20000u), &provider, false);
	assert_all_seen(true);
}

static void mapped_memory_agrees_with_a_map_of_granules(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++)
		run_model(seed * 107, TEST_ROUNDS(20000u), &provider, true);
	assert_all_seen(true);
}

enum { SHORT_LIFE = 150 };

/** Each attempt to get memory, or to map it, fails in turn. */
static void memory_fails_at_each_call(void **state)
{
	static struct model m;
	unsigned int kind, i;
	unsigned long nth;
	bool failed = true;

	(void)state;
	for (kind = 0; kind < 3; kind++) {
		for (nth = 1, failed = true; failed; nth++) {
			model_open(&m, 77, kind ? &provider : NULL, kind == 2);
			leat_heap_fail_nth(nth);
			for (i = 0; i < SHORT_LIFE; i++) {
				step(&m, 800);
				check(&m);
			}
			failed = leat_heap_failed();
			leat_heap_fail_nth(0);
			model_close(&m);
		}
		assert_true(nth > 5);
	}
}

/** Each allocation fails in turn, and every one takes the slow path. */
static void each_allocation_fails(void **state)
{
	static struct model m;
	struct leat_page_pool_stats s;
	unsigned int kind, i, nth;

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		for (nth = 1;; nth++) {
			model_open(&m, 99, kind ? &provider : NULL, false);
			leat_page_pool_fail_nth(m.pool, nth);
			for (i = 0; i < SHORT_LIFE && !m.failed; i++) {
				unsigned int k = (unsigned int)free_item(&m);

				/* what the test itself lets fail is not what the model asks about */
				m.item[k].run = i % 5 == 4 ? leat_page_pool_alloc_pages(m.pool, 4) :
							     leat_page_pool_alloc(m.pool, 1 + i % 9);
				if (leat_run_is_none(m.item[k].run)) {
					m.failed++;
				} else {
					struct leat_run run = m.item[k].run;

					m.item[k].run = LEAT_RUN_NONE;
					adopt(&m, k, run, leat_run_granules(run));
				}
				if (i % 3 == 2)
					step_put(&m, i % 2, false);
				check(&m);
			}
			leat_page_pool_stats(m.pool, &s);
			assert_int_equal(s.slow, i);
			assert_int_equal(m.failed, nth <= SHORT_LIFE);
			if (m.failed)
				assert_int_equal(i, nth); /* the one that was asked for, and no other */
			leat_page_pool_fail_nth(m.pool, 0);
			model_close(&m);
			if (nth > SHORT_LIFE)
				break;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_memory_agrees_with_a_map_of_granules),
		cmocka_unit_test(a_providers_memory_agrees_with_a_map_of_granules),
		cmocka_unit_test(mapped_memory_agrees_with_a_map_of_granules),
		cmocka_unit_test(memory_fails_at_each_call),
		cmocka_unit_test(each_allocation_fails),
	};

	return cmocka_run_group_tests_name("page_pool_model", tests, NULL, NULL);
}
