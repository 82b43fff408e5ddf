/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag.c: pieces of any size from chunks. Owner of the pool; pieces are put on any thread (run.c).
 *
 * A chunk's count starts at BIAS. Each piece handed out takes one of those references along; the cache counts in
 * `bias` how many it has left, without touching the shared count. Leaving a chunk gives the rest back in one step.
 *
 * A chunk is a block, or a half, a quarter, an eighth of one, aligned to its size, so that the chunk of a piece is found
 * by the piece's page (leat_block.chunk). Which size to ask for is order.h's to say.
 */
#include <leat/page_frag.h>
#include <string.h>

#include "mem/chunk.h"
#include "mem/order.h"
#include "mem/page_pool_internal.h"

#define BIAS (1 << 30)
#define ORDER_MAX (LEAT_BLOCK_SHIFT - LEAT_PAGE_SHIFT)

static const struct leat_page_frag none = { NULL, 0, LEAT_RUN_NONE };

void leat_page_frag_init(struct leat_page_frag_cache *cache, struct leat_page_pool *pool)
{
	memset(cache, 0, sizeof(*cache));
	cache->pool = pool;
	cache->undo = LEAT_PAGE_FRAG_NO_UNDO;
	leat_order_init(&cache->order, ORDER_MAX);
}

/* ---- chunks ---- */

/** Whether nobody but the cache has anything of its chunk. */
static bool is_alone(const struct leat_page_frag_cache *cache)
{
	/* acquire: pairs with the release of each put, whose last reads happen before we cut again */
	return cache->size && __atomic_load_n(leat_chunk_refs(cache->chunk), __ATOMIC_ACQUIRE) == cache->bias;
}

/** Begins to cut the cache's chunk, which is its alone: nothing of it is shared. */
static void enter(struct leat_page_frag_cache *cache)
{
	leat_chunk_begin(cache->chunk, cache->size, BIAS);
	cache->bias = BIAS;
	cache->off = 0;
	cache->undo = LEAT_PAGE_FRAG_NO_UNDO;
}

void leat_page_frag_drain(struct leat_page_frag_cache *cache)
{
	struct leat_run run = leat_run_make(cache->chunk, LEAT_GRANULES(cache->size));

	/* who holds the last of it returns it to the pool: perhaps we. The order is that of is_alone() */
	if (cache->size && !__atomic_sub_fetch(leat_chunk_refs(cache->chunk), cache->bias, __ATOMIC_ACQ_REL)) {
		leat_chunk_end(cache->chunk);
		leat_page_pool_put_page(run);
	}
	cache->chunk = 0;
	cache->size = cache->off = 0;
	cache->undo = LEAT_PAGE_FRAG_NO_UNDO;
}

/** The cursor's run goes back, as if it had been handed out and put. */
static void skip_run(struct leat_page_pool *pool)
{
	uint32_t left = leat_page_pool_left(pool);

	if (left)
		leat_page_pool_put_page(leat_page_pool_alloc(pool, left));
}

/**
 * @granules, a power of two below a block, aligned to their size. The cursor may stand anywhere: what lies between it and
 * the next aligned place goes back at once, so it is free as soon as its neighbours are.
 */
static struct leat_run alloc_aligned(struct leat_page_pool *pool, uint32_t granules)
{
	struct leat_run run = leat_page_pool_alloc(pool, granules), before;
	uint32_t off;

	if (leat_run_is_none(run))
		return run;
	off = -leat_granule_idx(leat_run_addr(run)) & (granules - 1);
	if (!off)
		return run;
	leat_page_pool_cancel(pool, run);
	if (leat_page_pool_left(pool) < off + granules)
		return LEAT_RUN_NONE;
	before = leat_page_pool_alloc(pool, off);
	run = leat_page_pool_alloc(pool, granules);
	leat_page_pool_put_page(before);
	return run;
}

static struct leat_run alloc_chunk(struct leat_page_pool *pool, unsigned int order)
{
	uint32_t granules = (LEAT_PAGE_SIZE / LEAT_GRANULE_SIZE) << order;
	struct leat_run run;

	if (order == ORDER_MAX) /* a whole block is aligned */
		return leat_page_pool_alloc(pool, granules);
	run = alloc_aligned(pool, granules);
	if (!leat_run_is_none(run))
		return run;
	skip_run(pool); /* what the cursor has is too short from the aligned place on: once more from the next run */
	return alloc_aligned(pool, granules);
}

static unsigned int order_for(uint32_t size)
{
	unsigned int order = 0;

	while (LEAT_PAGE_SIZE << order < size)
		order++;
	return order;
}

/** A chunk of order @need at least, as large as there is. A caller who needs more than the policy asks for gets a try. */
static struct leat_run take_chunk(struct leat_page_frag_cache *cache, unsigned int need)
{
	unsigned int order = leat_order_next(&cache->order);
	struct leat_run run;

	if (order < need)
		return alloc_chunk(cache->pool, need);
	do {
		order = leat_order_next(&cache->order);
		run = alloc_chunk(cache->pool, order);
	} while (leat_run_is_none(run) && leat_order_fail(&cache->order, order) && order > need);
	if (!leat_run_is_none(run))
		leat_order_ok(&cache->order);
	return run;
}

/** Whether the cache may go on with its chunk, which is its alone: the pool may want the memory back. */
static bool may_keep(const struct leat_page_frag_cache *cache)
{
	const struct leat_pool *pool = leat_pool_of(cache->pool);

	return !leat_pool_gives_up(pool, (uint32_t)((cache->chunk - pool->pub.first) >> LEAT_BLOCK_SHIFT));
}

static void reuse(struct leat_page_frag_cache *cache)
{
	cache->reused_in_place++;
	enter(cache);
}

/**
 * Gets the cache a chunk of @size bytes at least. One that is the cache's alone is given up only for a larger one, or when
 * the pool wants it back. When there is none, the cache keeps what it has.
 */
static bool refill(struct leat_page_frag_cache *cache, uint32_t size)
{
	unsigned int need = order_for(size), order = leat_order_next(&cache->order);
	bool alone = is_alone(cache);
	struct leat_run run;

	if (alone && leat_unlikely(!may_keep(cache))) {
		leat_page_frag_drain(cache);
		alone = false;
	}
	if (alone && cache->size >= LEAT_PAGE_SIZE << (order > need ? order : need)) {
		leat_order_ok(&cache->order);
		reuse(cache);
		return true;
	}
	if (alone && need <= order_for(cache->size))
		need = order_for(cache->size) + 1;
	run = take_chunk(cache, need);
	if (leat_run_is_none(run)) {
		if (size > cache->size || !alone)
			return false;
		reuse(cache); /* not the size we wanted, but large enough, and ours */
		return true;
	}
	leat_page_frag_drain(cache);
	cache->chunk = leat_run_addr(run);
	cache->size = leat_run_size(run);
	cache->smaller += cache->size < LEAT_BLOCK_SIZE;
	enter(cache);
	return true;
}

/* ---- pieces ---- */

struct leat_page_frag leat_page_frag_alloc_slow(struct leat_page_frag_cache *cache, uint32_t size, uint32_t align)
{
	LEAT_ASSERT(size - 1 < LEAT_PAGE_FRAG_MAX && align - 1 < LEAT_PAGE_SIZE && !(align & (align - 1)));
	if (!refill(cache, size))
		return none;
	return leat_page_frag_alloc_align(cache, size, align);
}

struct leat_page_frag leat_page_frag_probe(const struct leat_page_frag_cache *cache, uint32_t align)
{
	uint32_t off = leat_page_frag_align(cache->off, align);

	if (off >= cache->size)
		return none;
	return (struct leat_page_frag){ (uint8_t *)(uintptr_t)(cache->chunk + off), cache->size - off, LEAT_RUN_NONE };
}

struct leat_page_frag leat_page_frag_prepare(struct leat_page_frag_cache *cache, uint32_t size, uint32_t align)
{
	struct leat_page_frag frag = leat_page_frag_probe(cache, align);

	LEAT_ASSERT(size - 1 < LEAT_PAGE_FRAG_MAX && align - 1 < LEAT_PAGE_SIZE && !(align & (align - 1)));
	if (frag.size >= size)
		return frag;
	if (!refill(cache, size))
		return none;
	return leat_page_frag_probe(cache, align);
}

struct leat_page_frag leat_page_frag_commit(struct leat_page_frag_cache *cache, struct leat_page_frag prepared,
					    uint32_t used)
{
	uint64_t addr = (uint64_t)(uintptr_t)prepared.data;

	/* it reaches to the chunk's end, and begins where the cache is or a little further, by its alignment */
	LEAT_ASSERT(cache->size && addr + prepared.size == cache->chunk + cache->size &&
		    addr - (cache->chunk + cache->off) < LEAT_PAGE_SIZE && used - 1 < prepared.size);
	cache->undo = cache->off;
	cache->off = (uint32_t)(addr - cache->chunk) + used;
	cache->bias--;
	return (struct leat_page_frag){ prepared.data, used, leat_page_frag_run(addr, used) };
}

static bool is_newest(const struct leat_page_frag_cache *cache, const struct leat_page_frag *frag)
{
	return cache->undo != LEAT_PAGE_FRAG_NO_UNDO &&
	       (uint64_t)(uintptr_t)frag->data + frag->size == cache->chunk + cache->off;
}

void leat_page_frag_commit_more(struct leat_page_frag_cache *cache, struct leat_page_frag *frag, uint32_t used)
{
	LEAT_ASSERT(is_newest(cache, frag) && used <= cache->size - cache->off);
	cache->off += used;
	frag->size += used;
	frag->run = leat_page_frag_run((uint64_t)(uintptr_t)frag->data, frag->size);
}

void leat_page_frag_abort(struct leat_page_frag_cache *cache, struct leat_page_frag frag)
{
	LEAT_ASSERT(is_newest(cache, &frag));
	cache->off = cache->undo;
	cache->undo = LEAT_PAGE_FRAG_NO_UNDO;
	cache->bias++;
}
