/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_memory.c: the memory behind a pool's addresses. The owner's slow path, and the thread that ends the pool.
 *
 * Theory of operation
 *
 * Memory comes in *pieces* of 2^order pages, aligned to their size, at most an extent; which order is asked for next
 * says order.h. Each extent has memory from its first page up to some page; all extents up to the last one in use are
 * complete, but for those that could not be completed yet and those that were given back from the middle. They are
 * completed before the pool grows at its end. A granule that has no memory is not free. So a block that has memory in
 * part is never whole and serves by runs of what it has.
 *
 * With map ops a piece is a block at least, so that a run within a block has one address for the device.
 *
 * A block that is wholly free is in one of three places: in `whole`, where the cursor takes it; in `aside`, when its
 * extent is of another node than the pool's; in none, when it is over the limit. The two bitmaps are made anew when
 * limit or node change. Memory moves and goes by extents that are free as a whole.
 */
#include <errno.h>
#include <string.h>

#include "mem/page_pool_internal.h"

static uint64_t page_addr(const struct leat_pool *pool, uint32_t e, uint32_t page)
{
	return pool->pub.first + ((uint64_t)e << LEAT_EXTENT_SHIFT) + ((uint64_t)page << LEAT_PAGE_SHIFT);
}

static uint32_t extents_in_use(const struct leat_pool *pool)
{
	return (pool->n_blocks + LEAT_EXTENT_BLOCKS - 1) / LEAT_EXTENT_BLOCKS;
}

static bool foreign(const struct leat_pool *pool, uint32_t e)
{
	return pool->extent[e].pages && leat_pool_is_foreign(pool, e * LEAT_EXTENT_BLOCKS);
}

static void update_picky(struct leat_pool *pool)
{
	pool->picky = pool->n_foreign || pool->n_blocks > pool->limit_blocks;
}

/* ---- wholly free blocks ---- */

void leat_pool_sort_block(struct leat_pool *pool, uint32_t idx)
{
	uint64_t bit = UINT64_C(1) << idx % 64;

	if (idx >= pool->limit_blocks) {
		__atomic_fetch_or(&pool->odd, LEAT_POOL_OVER, __ATOMIC_RELAXED);
	} else if (leat_pool_is_foreign(pool, idx)) {
		pool->aside[idx / 64] |= bit;
		pool->n_aside++;
	} else {
		pool->whole[idx / 64] |= bit;
		pool->n_whole++;
	}
}

/** After limit or node have changed. */
static void sort_all(struct leat_pool *pool)
{
	size_t bytes = (pool->max_blocks + 63) / 64 * sizeof(*pool->whole);
	uint32_t i;

	memset(pool->whole, 0, bytes);
	memset(pool->aside, 0, bytes);
	pool->n_whole = pool->n_aside = 0;
	for (i = 0; i < pool->n_blocks; i++)
		if (pool->blocks[i].free == ~UINT64_C(0))
			leat_pool_sort_block(pool, i);
}

/** The eight bits of an extent in a bitmap of blocks. */
static uint64_t extent_bits(uint64_t *bitmap, uint32_t e)
{
	return bitmap[e / 8] & UINT64_C(0xff) << e % 8 * 8;
}

static void forget_bits(uint64_t *bitmap, uint32_t *n, uint32_t e)
{
	uint64_t bits = extent_bits(bitmap, e);

	*n -= (uint32_t)__builtin_popcountll(bits);
	bitmap[e / 8] &= ~bits;
}

static bool extent_is_free(const struct leat_pool *pool, uint32_t e)
{
	uint32_t i;

	for (i = e * LEAT_EXTENT_BLOCKS; i < (e + 1) * LEAT_EXTENT_BLOCKS; i++)
		if (leat_pool_present(pool, i) & ~pool->blocks[i].free)
			return false;
	return pool->extent[e].pages;
}

/* ---- giving memory back ---- */

static void release_piece(struct leat_pool *pool, uint64_t addr, uint64_t bytes)
{
	void *start = (void *)(uintptr_t)addr;

	if (pool->map)
		pool->map->unmap(pool->map_arg, start, bytes, pool->iova[(addr - pool->pub.first) >> LEAT_BLOCK_SHIFT]);
	if (pool->provider)
		pool->provider->release(pool->provider_arg, start, bytes);
	else
		leat_segment_decommit(pool->segment, addr, bytes);
	leat_count(&pool->shrinks, 1);
}

/** Gives an extent's memory back, the last piece first. */
static void release_pieces(struct leat_pool *pool, uint32_t e)
{
	struct leat_pool_extent *extent = &pool->extent[e];
	uint64_t starts = extent->starts;
	uint32_t first, end = extent->pages;

	for (; starts; end = first) {
		first = 63 - (uint32_t)__builtin_clzll(starts);
		starts &= ~(UINT64_C(1) << first);
		release_piece(pool, page_addr(pool, e, first), (uint64_t)(end - first) << LEAT_PAGE_SHIFT);
	}
	__atomic_store_n(&pool->n_pages, pool->n_pages - extent->pages, __ATOMIC_RELAXED);
	extent->starts = 0;
	__atomic_store_n(&extent->pages, 0, __ATOMIC_RELAXED);
}

/** What has no memory is not free: neither here, nor for the next pool at these addresses. */
static void forget_free(struct leat_pool *pool, uint32_t first, uint32_t end)
{
	/* release: who sees this sees that the pages are gone, and does not take it for out; pairs with not_free() */
	for (; first < end; first++)
		__atomic_store_n(&pool->blocks[first].free, 0, __ATOMIC_RELEASE);
}

/** Gives an extent back that is free as a whole. */
static void release_extent(struct leat_pool *pool, uint32_t e)
{
	uint32_t n;

	pool->n_foreign -= foreign(pool, e);
	forget_bits(pool->whole, &pool->n_whole, e);
	forget_bits(pool->aside, &pool->n_aside, e);
	release_pieces(pool, e);
	forget_free(pool, e * LEAT_EXTENT_BLOCKS, (e + 1) * LEAT_EXTENT_BLOCKS);
	if (pool->incomplete > e)
		pool->incomplete = e;
	for (n = extents_in_use(pool); n && !pool->extent[n - 1].pages; n--)
		;
	if (n * LEAT_EXTENT_BLOCKS < pool->n_blocks)
		__atomic_store_n(&pool->n_blocks, n * LEAT_EXTENT_BLOCKS, __ATOMIC_RELAXED);
	update_picky(pool);
}

void leat_pool_release_all(struct leat_pool *pool)
{
	uint32_t e = extents_in_use(pool);

	while (e--)
		release_pieces(pool, e);
	forget_free(pool, 0, pool->n_blocks);
	if (pool->provider && pool->provider->destroy)
		pool->provider->destroy(pool->provider_arg);
}

/* ---- getting memory ---- */

static bool ask(struct leat_pool *pool, uint64_t addr, uint64_t bytes, int node)
{
	if (!pool->provider)
		return !leat_segment_commit(pool->segment, addr, bytes, node);
	return !leat_segment_describe(addr, bytes) &&
	       !pool->provider->alloc(pool->provider_arg, (void *)(uintptr_t)addr, bytes, node);
}

/** Memory for a piece, and its address for the device. */
static bool get_piece(struct leat_pool *pool, uint64_t addr, uint64_t bytes)
{
	uint32_t block = (uint32_t)((addr - pool->pub.first) >> LEAT_BLOCK_SHIFT), i;
	uint64_t iova = 0;

	/* a provider may not fall back on other nodes by itself; the system does */
	if (!ask(pool, addr, bytes, pool->node) &&
	    !(pool->provider && pool->node >= 0 && ask(pool, addr, bytes, -1)))
		return false;
	if (!pool->map)
		return true;
	if (pool->map->map(pool->map_arg, (void *)(uintptr_t)addr, bytes, &iova)) {
		if (pool->provider)
			pool->provider->release(pool->provider_arg, (void *)(uintptr_t)addr, bytes);
		else
			leat_segment_decommit(pool->segment, addr, bytes);
		return false;
	}
	for (i = 0; i < bytes >> LEAT_BLOCK_SHIFT; i++)
		pool->iova[block + i] = iova + ((uint64_t)i << LEAT_BLOCK_SHIFT);
	return true;
}

/** Marks @pages pages of extent @e, from @first on, free and never cut: they have memory now. */
static void add_pages(struct leat_pool *pool, uint32_t e, uint32_t first, uint32_t pages)
{
	struct leat_pool_extent *extent = &pool->extent[e];
	uint32_t end = first + pages, page, idx, n, i;

	extent->node = pool->node;
	extent->starts |= UINT64_C(1) << first;
	for (page = first; page < end; page += n) {
		struct leat_block *block;

		idx = e * LEAT_EXTENT_BLOCKS + page / LEAT_BLOCK_PAGES;
		block = &pool->blocks[idx];
		if (page % LEAT_BLOCK_PAGES == 0) {
			__atomic_store_n(&block->pool, &pool->pub, __ATOMIC_RELAXED);
			__atomic_store_n(&block->flags, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&block->free, 0, __ATOMIC_RELAXED);
		}
		n = end - page < LEAT_BLOCK_PAGES ? end - page : LEAT_BLOCK_PAGES;
		for (i = 0; i < n; i++)
			__atomic_store_n(&block->cut_ms[page % LEAT_BLOCK_PAGES + i], 0, __ATOMIC_RELAXED);
		leat_pool_free_granules(pool, block, page % LEAT_BLOCK_PAGES * LEAT_PAGE_GRANULES,
					n * LEAT_PAGE_GRANULES);
		if (idx >= pool->n_blocks)
			__atomic_store_n(&pool->n_blocks, idx + 1, __ATOMIC_RELAXED);
	}
	/* pairs with the acquire in leat_pool_present() */
	__atomic_store_n(&extent->pages, end, __ATOMIC_RELEASE);
	__atomic_store_n(&pool->n_pages, pool->n_pages + pages, __ATOMIC_RELAXED);
	leat_count(&pool->grows, 1);
}

/** The largest order, at least a block's, of at most @pages pages. */
static uint32_t order_of(uint32_t pages)
{
	return pages < LEAT_BLOCK_PAGES ? LEAT_BLOCK_ORDER : 31 - (uint32_t)__builtin_clz(pages);
}

/** Gets one more piece for extent @e, of at most 2^@most pages. */
static bool grow_extent(struct leat_pool *pool, uint32_t e, uint32_t most)
{
	uint32_t first = pool->extent[e].pages, order;

	if (first && (uint32_t)__builtin_ctz(first) < most)
		most = (uint32_t)__builtin_ctz(first);
	do {
		order = leat_order_next(&pool->order);
		if (order > most)
			order = most;
		if (order < pool->min_order)
			order = pool->min_order;
		if (get_piece(pool, page_addr(pool, e, first), (uint64_t)LEAT_PAGE_SIZE << order)) {
			leat_order_ok(&pool->order);
			add_pages(pool, e, first, 1u << order);
			return true;
		}
		leat_count(&pool->grow_failed, 1);
	} while (leat_order_fail(&pool->order, order) && order > pool->min_order);
	return false;
}

/** The first extent that lacks memory, or one over the limit. One of another node is given back, or left alone. */
static uint32_t incomplete_extent(struct leat_pool *pool)
{
	uint32_t e, limit = pool->limit_blocks / LEAT_EXTENT_BLOCKS;

	for (e = pool->incomplete; e < limit; e++) {
		if (pool->extent[e].pages == LEAT_EXTENT_PAGES) {
			pool->incomplete += e == pool->incomplete;
			continue;
		}
		if (!foreign(pool, e))
			break;
		if (extent_is_free(pool, e)) {
			release_extent(pool, e);
			break;
		}
	}
	return e;
}

bool leat_pool_grow(struct leat_pool *pool, uint32_t most)
{
	uint32_t e, order = order_of(most);

	if (!most)
		return false;
	e = incomplete_extent(pool);
	return e < pool->limit_blocks / LEAT_EXTENT_BLOCKS &&
	       grow_extent(pool, e, order < LEAT_EXTENT_ORDER ? order : LEAT_EXTENT_ORDER);
}

/* ---- limits ---- */

/** Gives back what is free over the limit. */
static void give_back_over(struct leat_pool *pool)
{
	uint32_t e = extents_in_use(pool);

	while (e-- > pool->limit_blocks / LEAT_EXTENT_BLOCKS) {
		if (extent_is_free(pool, e))
			release_extent(pool, e);
		else if (pool->extent[e].pages % LEAT_BLOCK_PAGES) /* no block that becomes whole will tell */
			__atomic_fetch_or(&pool->odd, LEAT_POOL_OVER, __ATOMIC_RELAXED);
	}
}

void leat_pool_apply_limit(struct leat_pool *pool)
{
	/* pairs with the release in leat_page_pool_set_limit() */
	uint32_t odd = __atomic_fetch_and(&pool->odd, ~(LEAT_POOL_LIMIT | LEAT_POOL_OVER), __ATOMIC_ACQUIRE);
	uint64_t limit;

	if (odd & LEAT_POOL_LIMIT) {
		limit = __atomic_load_n(&pool->limit, __ATOMIC_RELAXED);
		leat_pool_uncut(pool);
		pool->limit_blocks = (uint32_t)(limit >> 32) * LEAT_EXTENT_BLOCKS;
		pool->floor_pages = (uint32_t)limit;
		if (pool->floor_pages > pool->limit_blocks * LEAT_BLOCK_PAGES)
			pool->floor_pages = pool->limit_blocks * LEAT_BLOCK_PAGES;
		update_picky(pool);
		sort_all(pool);
	}
	give_back_over(pool);
}

int leat_page_pool_set_limit(struct leat_page_pool *pub, uint64_t limit, uint64_t floor)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint64_t old = __atomic_load_n(&pool->limit, __ATOMIC_RELAXED), extents, pages;

	if (!limit || limit > (uint64_t)pool->max_blocks << LEAT_BLOCK_SHIFT)
		return -EINVAL;
	extents = (limit + LEAT_EXTENT_SIZE - 1) >> LEAT_EXTENT_SHIFT;
	if (floor >> LEAT_PAGE_SHIFT > UINT32_MAX)
		floor = (uint64_t)UINT32_MAX << LEAT_PAGE_SHIFT;
	do {
		pages = floor ? floor >> LEAT_PAGE_SHIFT : (uint32_t)old;
	} while (!__atomic_compare_exchange_n(&pool->limit, &old, extents << 32 | pages, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	__atomic_fetch_or(&pool->odd, LEAT_POOL_LIMIT, __ATOMIC_RELEASE); /* pairs with leat_pool_apply_limit() */
	return 0;
}

uint64_t leat_page_pool_shrink(struct leat_page_pool *pub)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t before = pool->n_pages, e;

	leat_pool_uncut(pool);
	leat_page_pool_drain(pub);
	leat_pool_apply_limit(pool);
	for (e = extents_in_use(pool); e && extent_is_free(pool, e - 1); e = extents_in_use(pool)) {
		if (pool->n_pages - pool->extent[e - 1].pages < pool->floor_pages)
			break;
		release_extent(pool, e - 1);
	}
	return (uint64_t)(before - pool->n_pages) << LEAT_PAGE_SHIFT;
}

/* ---- nodes ---- */

void leat_page_pool_set_node(struct leat_page_pool *pub, int node)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t e;

	leat_pool_uncut(pool);
	__atomic_store_n(&pool->node, node < 0 ? -1 : node, __ATOMIC_RELAXED);
	pool->n_foreign = 0;
	for (e = 0; e < extents_in_use(pool); e++)
		pool->n_foreign += foreign(pool, e);
	update_picky(pool);
	sort_all(pool);
}

bool leat_pool_move_extent(struct leat_pool *pool)
{
	uint32_t e, limit = pool->limit_blocks / LEAT_EXTENT_BLOCKS;

	if (pool->n_aside < LEAT_EXTENT_BLOCKS)
		return false;
	for (e = 0; e < limit; e++)
		if (extent_bits(pool->aside, e) == UINT64_C(0xff) << e % 8 * 8)
			break;
	if (e >= limit)
		return false;
	release_extent(pool, e);
	while (pool->extent[e].pages < LEAT_EXTENT_PAGES && grow_extent(pool, e, LEAT_EXTENT_ORDER))
		;
	if (!pool->extent[e].pages)
		return false;
	leat_count(&pool->node_moves, 1);
	return true;
}

/* ---- addresses for the device ---- */

uint64_t leat_page_pool_iova(const struct leat_page_pool *pub, struct leat_run run)
{
	const struct leat_pool *pool = (const struct leat_pool *)pub;
	uint64_t addr = leat_run_addr(run);

	if (!pool->map)
		return addr;
	return pool->iova[(addr - pub->first) >> LEAT_BLOCK_SHIFT] + addr % LEAT_BLOCK_SIZE;
}

void leat_page_pool_sync_for_device(const struct leat_page_pool *pub, struct leat_run run, uint32_t off, uint32_t len)
{
	const struct leat_pool *pool = (const struct leat_pool *)pub;

	if (pool->map && pool->map->sync_for_device)
		pool->map->sync_for_device(pool->map_arg, leat_page_pool_iova(pub, run) + off, len);
}

void leat_page_pool_sync_for_cpu(const struct leat_page_pool *pub, struct leat_run run, uint32_t off, uint32_t len)
{
	const struct leat_pool *pool = (const struct leat_pool *)pub;

	if (pool->map && pool->map->sync_for_cpu)
		pool->map->sync_for_cpu(pool->map_arg, leat_page_pool_iova(pub, run) + off, len);
}
