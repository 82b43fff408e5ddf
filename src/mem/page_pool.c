/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool.c: life of a pool, and which memory its cursor runs over next. Owner thread and control.
 *
 * Theory of operation
 *
 * A pool has a range of addresses, whose first n_blocks blocks have memory. Each block has a mask of free granules;
 * what the cursor took is not free. When the cursor's run is used up, the next one is, in this order:
 *
 *   1. a wholly free block, the next one by address, round and round: buffers that are handed out together lie side
 *      by side, over the border of blocks, too;
 *   2. a new extent, while the pool is smaller than max(floor, 2 x what is out);
 *   3. the longest free run of at least PARTIAL_MIN granules in the next PARTIAL_LOOK blocks;
 *   4. any free run that is long enough;
 *   5. a new extent, up to the limit.
 *
 * Single free granules are never kept in a list: a list hands them out backwards and nothing would merge.
 */
#include "mem/page_pool_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/opts.h"
#include "mem/arena.h"

#define LIMIT_DEFAULT (UINT64_C(16) << 20)
#define FLOOR_DEFAULT (UINT64_C(1) << 20)
#define LIMIT_MAX (UINT64_C(8) << 30)
#define PARTIAL_MIN 16u /* granules: 8 KiB */
#define PARTIAL_LOOK 16u
#define EXTENT_BLOCKS (LEAT_EXTENT_SIZE / LEAT_BLOCK_SIZE)

/* ---- blocks ---- */

static struct leat_block *block_at(const struct leat_pool *pool, uint32_t idx)
{
	return leat_block_of(pool->pub.first) + idx;
}

static uint32_t block_idx(const struct leat_pool *pool, const struct leat_block *block)
{
	return (uint32_t)(block - leat_block_of(pool->pub.first));
}

static uint64_t block_addr(const struct leat_pool *pool, uint32_t idx)
{
	return pool->pub.first + ((uint64_t)idx << LEAT_BLOCK_SHIFT);
}

void leat_page_pool_block_whole(struct leat_page_pool *pub, struct leat_block *block)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t idx = block_idx(pool, block);

	pool->whole[idx / 64] |= UINT64_C(1) << idx % 64;
	pool->n_whole++;
}

uint64_t leat_pool_outstanding(const struct leat_pool *pool)
{
	const struct leat_page_pool *pub = &pool->pub;
	const struct leat_page_pool_counts *c = &pub->counts;
	uint64_t back = __atomic_load_n(&c->direct, __ATOMIC_RELAXED) + __atomic_load_n(&c->remote, __ATOMIC_RELAXED) +
			__atomic_load_n(&c->uncut, __ATOMIC_RELAXED) + leat_pool_cursor(pool);
	uint64_t cut = __atomic_load_n(&c->cut, __ATOMIC_RELAXED);

	return cut > back ? cut - back : 0; /* another thread may see the parts of one moment and the next */
}

/* ---- the cursor ---- */

/** Gives the rest of the cursor's run back to its block. */
static void uncut(struct leat_pool *pool)
{
	struct leat_page_pool *pub = &pool->pub;
	uint32_t left = leat_page_pool_left(pub);

	if (!left)
		return;
	__atomic_store_n(&pub->end, pub->cur, __ATOMIC_RELAXED);
	leat_count(&pub->counts.uncut, left);
	leat_pool_free_granules(pool, leat_block_of(pub->cur), leat_granule_idx(pub->cur) % LEAT_BLOCK_GRANULES, left);
}

/** Points the cursor at granules [bit, bit + n) of a block, which are free. */
static void cut(struct leat_pool *pool, uint32_t idx, uint32_t bit, uint32_t n)
{
	struct leat_block *block = block_at(pool, idx);

	if (block->free == ~UINT64_C(0)) {
		pool->whole[idx / 64] &= ~(UINT64_C(1) << idx % 64);
		pool->n_whole--;
		__atomic_store_n(&block->flags, 0, __ATOMIC_RELAXED);
	}
	block->free &= ~leat_block_mask(bit, n);
	pool->sweep = idx;
	leat_page_pool_move(&pool->pub, block_addr(pool, idx) + ((uint64_t)bit << LEAT_GRANULE_SHIFT));
	__atomic_store_n(&pool->pub.end, pool->pub.cur + ((uint64_t)n << LEAT_GRANULE_SHIFT), __ATOMIC_RELAXED);
	leat_count(&pool->pub.counts.cut, n);
}

/** Step 1: the next wholly free block after the sweep, cyclically. */
static bool cut_whole(struct leat_pool *pool)
{
	uint32_t words = (pool->n_blocks + 63) / 64;
	uint32_t start = (pool->sweep + 1) % pool->max_blocks;
	uint32_t w = start / 64, i;
	uint64_t bits;

	if (!pool->n_whole)
		return false;
	if (w >= words)
		w = start = 0;
	bits = pool->whole[w] & ~UINT64_C(0) << start % 64;
	for (i = 0; !bits && i < words; i++) {
		w = w + 1 < words ? w + 1 : 0;
		bits = pool->whole[w];
	}
	leat_count(&pool->recycled_blocks, 1);
	cut(pool, w * 64 + (uint32_t)__builtin_ctzll(bits), 0, LEAT_BLOCK_GRANULES);
	return true;
}

/** Steps 2 and 5: memory for one more extent. */
static bool grow(struct leat_pool *pool)
{
	uint32_t i, first = pool->n_blocks;

	if (first == pool->max_blocks || leat_segment_commit(pool->segment, &pool->range))
		return false;
	for (i = first; i < first + EXTENT_BLOCKS; i++) {
		struct leat_block *block = block_at(pool, i);

		block->pool = &pool->pub;
		block->free = ~UINT64_C(0);
		leat_page_pool_block_whole(&pool->pub, block);
	}
	__atomic_store_n(&pool->n_blocks, first + EXTENT_BLOCKS, __ATOMIC_RELAXED);
	leat_count(&pool->grows, 1);
	pool->sweep = first ? first - 1 : pool->max_blocks - 1;
	return true;
}

static bool below_watermark(const struct leat_pool *pool)
{
	uint64_t live = leat_pool_outstanding(pool) / LEAT_BLOCK_GRANULES;

	return pool->n_blocks < pool->floor_blocks || pool->n_blocks < 2 * live;
}

/** Longest run of ones in @free; its length, and its first bit in @first. */
static uint32_t longest_run(uint64_t free, uint32_t *first)
{
	uint64_t ends = free; /* ends after k steps: bits that begin a run of more than k ones */
	uint32_t n = 0;

	*first = 0;
	if (free == ~UINT64_C(0))
		return LEAT_BLOCK_GRANULES;
	while (ends) {
		*first = (uint32_t)__builtin_ctzll(ends);
		ends &= free >> ++n;
	}
	return n;
}

/** Steps 3 and 4: the longest run of at least @least granules in the next @look blocks. */
static bool cut_partial(struct leat_pool *pool, uint32_t least, uint32_t look)
{
	uint32_t i, idx, n, bit = 0, best = 0, best_idx = 0, best_bit = 0;

	for (i = 1; i <= look && i <= pool->n_blocks; i++) {
		idx = (pool->sweep + i) % pool->n_blocks;
		n = longest_run(block_at(pool, idx)->free, &bit);
		if (n <= best)
			continue;
		best = n;
		best_idx = idx;
		best_bit = bit;
	}
	if (best < least)
		return false;
	leat_count(&pool->partial_runs, 1);
	cut(pool, best_idx, best_bit, best);
	return true;
}

static bool next_run(struct leat_pool *pool, uint32_t granules)
{
	if (cut_whole(pool) || (below_watermark(pool) && grow(pool) && cut_whole(pool)))
		return true;
	return cut_partial(pool, granules > PARTIAL_MIN ? granules : PARTIAL_MIN, PARTIAL_LOOK) ||
	       cut_partial(pool, granules, UINT32_MAX) || (grow(pool) && cut_whole(pool));
}

struct leat_run leat_page_pool_alloc_slow(struct leat_page_pool *pub, uint32_t granules)
{
	struct leat_pool *pool = leat_pool_of(pub);
	struct leat_run run;

	LEAT_ASSERT(granules >= 1 && granules <= LEAT_BLOCK_GRANULES);
	if (pool->fail_nth && !--pool->fail_nth) {
		leat_count(&pool->alloc_failed, 1);
		return LEAT_RUN_NONE;
	}
	uncut(pool);
	leat_pool_drain_rung(pool);
	/* a doorbell is a hint: before memory is called short, every ring is read */
	if (!next_run(pool, granules) && !(leat_page_pool_drain(pub) && next_run(pool, granules))) {
		leat_count(&pool->alloc_failed, 1);
		return LEAT_RUN_NONE;
	}
	run = leat_run_make(pub->cur, granules);
	leat_page_pool_move(pub, pub->cur + ((uint64_t)granules << LEAT_GRANULE_SHIFT));
	if (pool->fail_nth)
		uncut(pool); /* so that the next one comes here, too */
	return run;
}

void leat_page_pool_fail_nth(struct leat_page_pool *pub, uint64_t nth)
{
	uncut(leat_pool_of(pub));
	leat_pool_of(pub)->fail_nth = nth;
}

/* ---- life ---- */

static int check_opts(struct leat_page_pool_opts *own, const struct leat_page_pool_opts *opts)
{
	int err = leat_opts_copy(own, sizeof(*own), opts);

	if (err)
		return err;
	if (!own->limit)
		own->limit = LIMIT_DEFAULT;
	if (!own->floor)
		own->floor = FLOOR_DEFAULT;
	if (own->limit > LIMIT_MAX)
		return -EINVAL;
	own->limit = (own->limit + LEAT_EXTENT_SIZE - 1) & ~(uint64_t)(LEAT_EXTENT_SIZE - 1);
	return 0;
}

int leat_page_pool_create(struct leat_segment *segment, const struct leat_page_pool_opts *opts,
			  struct leat_page_pool **out)
{
	struct leat_page_pool_opts own;
	struct leat_pool *pool;
	uint32_t extents;
	int err = check_opts(&own, opts);

	if (err)
		return err;
	extents = (uint32_t)(own.limit >> LEAT_EXTENT_SHIFT);
	pool = leat_pool_take_spare();
	if (!pool)
		return -ENOMEM;
	pool->segment = segment;
	pool->max_blocks = extents * EXTENT_BLOCKS;
	pool->sweep = pool->max_blocks - 1;
	pool->floor_blocks = (uint32_t)((own.floor < own.limit ? own.floor : own.limit) >> LEAT_BLOCK_SHIFT);
	pool->wake = own.wake;
	pool->wake_arg = own.wake_arg;
	snprintf(pool->name, sizeof(pool->name), "%s", own.name ? own.name : "pool");
	leat_page_pool_disown(&pool->pub);
	err = -ENOMEM;
	pool->whole = leat_heap_zalloc((pool->max_blocks + 63) / 64 * sizeof(*pool->whole));
	if (!pool->whole)
		goto put_pool;
	pool->pub.ring[0] = leat_return_ring_create(pool->max_blocks * LEAT_BLOCK_GRANULES);
	if (!pool->pub.ring[0])
		goto free_whole;
	pool->range.extents = extents;
	err = leat_segment_take(segment, &pool->range);
	if (err)
		goto destroy_ring;
	pool->pub.first = pool->range.addr;
	*out = &pool->pub;
	return 0;

destroy_ring:
	leat_return_ring_destroy(pool->pub.ring[0]);
free_whole:
	leat_heap_free(pool->whole);
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

	for (i = 0; i < LEAT_THREADS_MAX; i++)
		leat_return_ring_destroy(pool->pub.ring[i]);
	leat_segment_give(pool->segment, &pool->range);
	leat_heap_free(pool->whole);
	leat_pool_put_spare(pool);
}

void leat_page_pool_stats(const struct leat_page_pool *pub, struct leat_page_pool_stats *stats)
{
	const struct leat_pool *pool = (const struct leat_pool *)pub;

	memset(stats, 0, sizeof(*stats));
	memcpy(stats->name, pool->name, sizeof(stats->name));
	stats->limit = (uint64_t)pool->max_blocks << LEAT_BLOCK_SHIFT;
	stats->committed = (uint64_t)__atomic_load_n(&pool->n_blocks, __ATOMIC_RELAXED) << LEAT_BLOCK_SHIFT;
	stats->direct = __atomic_load_n(&pub->counts.direct, __ATOMIC_RELAXED);
	stats->remote = __atomic_load_n(&pub->counts.remote, __ATOMIC_RELAXED);
	stats->outstanding = leat_pool_outstanding(pool);
	stats->alloc = stats->direct + stats->remote + stats->outstanding;
	stats->grows = __atomic_load_n(&pool->grows, __ATOMIC_RELAXED);
	stats->recycled_blocks = __atomic_load_n(&pool->recycled_blocks, __ATOMIC_RELAXED);
	stats->partial_runs = __atomic_load_n(&pool->partial_runs, __ATOMIC_RELAXED);
	stats->alloc_failed = __atomic_load_n(&pool->alloc_failed, __ATOMIC_RELAXED);
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
