/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_life.c: making a pool, who owns it, its counters, and its memory at the end. Control; counters: any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/opts.h"
#include "mem/page_pool_internal.h"

#define LIMIT_DEFAULT (UINT64_C(16) << 20)
#define FLOOR_DEFAULT (UINT64_C(1) << 20)
#define LIMIT_MAX (UINT64_C(8) << 30)

static int check_opts(struct leat_page_pool_opts *own, const struct leat_page_pool_opts *opts)
{
	int err = leat_opts_copy(own, sizeof(*own), opts);

	if (err)
		return err;
	if (!own->limit)
		own->limit = LIMIT_DEFAULT;
	if (!own->floor)
		own->floor = FLOOR_DEFAULT;
	if (!own->limit_max)
		own->limit_max = own->limit;
	if (own->limit_max > LIMIT_MAX || own->limit > own->limit_max)
		return -EINVAL;
	if ((own->provider && (!own->provider->alloc || !own->provider->release)) ||
	    (own->map && (!own->map->map || !own->map->unmap)))
		return -EINVAL;
	own->limit_max = (own->limit_max + LEAT_EXTENT_SIZE - 1) & ~(uint64_t)(LEAT_EXTENT_SIZE - 1);
	return 0;
}

/** What the options say, and what does not depend on where the pool's addresses are. */
static void set_opts(struct leat_pool *pool, const struct leat_page_pool_opts *own)
{
	uint64_t low_water = own->low_water < own->limit_max ? own->low_water : own->limit_max;

	pool->max_blocks = (uint32_t)(own->limit_max >> LEAT_BLOCK_SHIFT);
	pool->range.extents = pool->max_blocks / LEAT_EXTENT_BLOCKS;
	pool->sweep = pool->max_blocks - 1;
	pool->node = -1;
	pool->low_water = LEAT_GRANULES(low_water); /* 0: one, see leat_page_pool_wait_prepare() */
	pool->wake = own->wake;
	pool->wake_arg = own->wake_arg;
	pool->provider = own->provider;
	pool->provider_arg = own->provider_arg;
	pool->map = own->map;
	pool->map_arg = own->map_arg;
	pool->min_order = leat_segment_min_order();
	if (pool->map && pool->min_order < LEAT_BLOCK_ORDER)
		pool->min_order = LEAT_BLOCK_ORDER;
	leat_order_init(&pool->order, LEAT_EXTENT_ORDER);
	snprintf(pool->name, sizeof(pool->name), "%s", own->name ? own->name : "pool");
	leat_page_pool_disown(&pool->pub);
}

static void free_tables(struct leat_pool *pool)
{
	leat_return_ring_destroy(pool->pub.ring[0]);
	leat_heap_free(pool->iova);
	leat_heap_free(pool->extent);
	leat_heap_free(pool->aside);
	leat_heap_free(pool->whole);
}

static bool make_tables(struct leat_pool *pool)
{
	size_t bitmap = (pool->max_blocks / 64 + 1) * sizeof(*pool->whole);

	pool->whole = leat_heap_zalloc(bitmap);
	pool->aside = leat_heap_zalloc(bitmap);
	pool->extent = leat_heap_zalloc(pool->range.extents * sizeof(*pool->extent));
	if (pool->map)
		pool->iova = leat_heap_zalloc(pool->max_blocks * sizeof(*pool->iova));
	pool->pub.ring[0] = leat_return_ring_create(pool->max_blocks * LEAT_BLOCK_GRANULES);
	if (pool->whole && pool->aside && pool->extent && (pool->iova || !pool->map) && pool->pub.ring[0])
		return true;
	free_tables(pool);
	return false;
}

int leat_page_pool_create(struct leat_segment *segment, const struct leat_page_pool_opts *opts,
			  struct leat_page_pool **out)
{
	struct leat_page_pool_opts own;
	struct leat_pool *pool;
	int err = check_opts(&own, opts);

	if (err)
		return err;
	pool = leat_pool_take_spare();
	if (!pool)
		return -ENOMEM;
	pool->segment = segment;
	set_opts(pool, &own);
	err = -ENOMEM;
	if (!make_tables(pool))
		goto put_pool;
	err = leat_segment_take(segment, &pool->range);
	if (err)
		goto free_tables;
	pool->pub.first = pool->range.addr;
	pool->blocks = leat_block_of(pool->pub.first);
	leat_page_pool_set_limit(&pool->pub, own.limit, own.floor);
	leat_pool_apply_limit(pool);
	if (pool->provider && pool->provider->init)
		err = pool->provider->init(pool->provider_arg, (void *)(uintptr_t)pool->range.addr, own.limit_max);
	if (err)
		goto give_range;
	*out = &pool->pub;
	return 0;

give_range:
	leat_segment_give(segment, &pool->range);
free_tables:
	free_tables(pool);
put_pool:
	leat_pool_put_spare(pool);
	return err;
}

void leat_page_pool_own(struct leat_page_pool *pool)
{
	__atomic_store_n(&pool->owner, leat_thread_register(), __ATOMIC_RELAXED);
}

void leat_page_pool_disown(struct leat_page_pool *pool)
{
	/* the pool's own address is no thread's, and not the NULL of a thread that has not registered */
	__atomic_store_n(&pool->owner, (struct leat_thread *)pool, __ATOMIC_RELAXED);
}

void leat_pool_free(struct leat_pool *pool)
{
	unsigned int i;

	leat_pool_release_all(pool);
	leat_segment_give(pool->segment, &pool->range); /* who walks the segment's pools reads tables and rings */
	for (i = 1; i < LEAT_THREADS_MAX; i++)
		leat_return_ring_destroy(pool->pub.ring[i]);
	free_tables(pool);
	leat_pool_put_spare(pool);
}

/* ---- counters ---- */

static uint64_t read_count(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/** @a - @b; another thread may see the parts of one moment and the next. */
static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t leat_pool_outstanding(const struct leat_pool *pool)
{
	const struct leat_page_pool_counts *c = &pool->pub.counts;
	uint64_t back = read_count(&c->direct) + read_count(&c->remote) + read_count(&c->uncut) + leat_pool_cursor(pool);

	return difference(read_count(&c->cut), back);
}

void leat_page_pool_stats(const struct leat_page_pool *pub, struct leat_page_pool_stats *stats)
{
	const struct leat_pool *pool = (const struct leat_pool *)pub;
	uint64_t cut = read_count(&pub->counts.cut);

	memset(stats, 0, sizeof(*stats));
	memcpy(stats->name, pool->name, sizeof(stats->name));
	stats->limit = read_count(&pool->limit) >> 32 << LEAT_EXTENT_SHIFT;
	stats->committed = (uint64_t)__atomic_load_n(&pool->n_pages, __ATOMIC_RELAXED) << LEAT_PAGE_SHIFT;
	stats->direct = read_count(&pub->counts.direct);
	stats->remote = read_count(&pub->counts.remote);
	stats->uncut = read_count(&pub->counts.uncut);
	stats->cursor = leat_pool_cursor(pool);
	stats->outstanding = difference(cut, stats->direct + stats->remote + stats->uncut + stats->cursor);
	stats->alloc = stats->direct + stats->remote + stats->outstanding;
	leat_pool_split(pool, stats);
	stats->cut_new = read_count(&pool->cut_new);
	stats->cut_partial = read_count(&pool->cut_partial);
	stats->cut_recycled = difference(cut, stats->cut_new + stats->cut_partial);
	stats->grows = read_count(&pool->grows);
	stats->shrinks = read_count(&pool->shrinks);
	stats->grow_failed = read_count(&pool->grow_failed);
	stats->recycled_blocks = difference(cut, stats->cut_partial) / LEAT_BLOCK_GRANULES; /* they are cut whole */
	stats->slow = read_count(&pool->long_ways) +
		      difference(stats->recycled_blocks, read_count(&pool->long_blocks));
	stats->partial_runs = read_count(&pool->partial_runs);
	stats->node_moves = read_count(&pool->node_moves);
	stats->alloc_failed = read_count(&pool->alloc_failed);
	stats->order = __atomic_load_n(&pool->order.order, __ATOMIC_RELAXED);
	stats->node = __atomic_load_n(&pool->node, __ATOMIC_RELAXED);
}

struct for_each {
	void (*fn)(const struct leat_page_pool_stats *stats, void *arg);
	void *arg;
};

static void stats_of_range(struct leat_segment_range *range, void *arg)
{
	struct for_each *each = arg;
	struct leat_page_pool_stats stats;
	struct leat_pool *pool = (struct leat_pool *)((char *)range - offsetof(struct leat_pool, range));

	leat_page_pool_stats(&pool->pub, &stats);
	each->fn(&stats, each->arg);
}

void leat_segment_for_each_pool(struct leat_segment *segment,
				void (*fn)(const struct leat_page_pool_stats *stats, void *arg), void *arg)
{
	struct for_each each = { fn, arg };

	leat_segment_for_each_range(segment, stats_of_range, &each);
}
