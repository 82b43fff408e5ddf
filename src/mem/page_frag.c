/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag.c: pieces of any size from whole blocks. Owner of the pool; pieces are put on any thread (run.c).
 *
 * A block's count starts at BIAS. Each piece handed out takes one of those references along; the cache counts in
 * `bias` how many it has left, without touching the shared count. Leaving a block gives the rest back in one step.
 */
#include <leat/page_frag.h>
#include <string.h>

#define BIAS (1 << 30)

void leat_page_frag_init(struct leat_page_frag_cache *cache, struct leat_page_pool *pool)
{
	memset(cache, 0, sizeof(*cache));
	cache->pool = pool;
}

static struct leat_run block_run(const struct leat_page_frag_cache *cache)
{
	return leat_run_make(cache->block, LEAT_BLOCK_GRANULES);
}

/** Gives the cache's references back. Returns true when nobody else has any: the block is the cache's alone. */
static bool leave(struct leat_page_frag_cache *cache)
{
	struct leat_block *block = leat_block_of(cache->block);

	/* acquire: pairs with the release of each put, whose last reads happen before we cut again */
	return __atomic_sub_fetch(&block->refs[0], cache->bias, __ATOMIC_ACQ_REL) == 0;
}

/** Begins to cut a block that is the cache's alone: nothing of it is shared. */
static void enter(struct leat_page_frag_cache *cache)
{
	struct leat_block *block = leat_block_of(cache->block);

	memset(block->chunk, 1, sizeof(block->chunk)); /* one chunk, from page 0 */
	__atomic_store_n(&block->flags, LEAT_BLOCK_FRAG, __ATOMIC_RELAXED);
	__atomic_store_n(&block->refs[0], BIAS, __ATOMIC_RELAXED);
	cache->bias = BIAS;
	cache->off = 0;
}

void leat_page_frag_drain(struct leat_page_frag_cache *cache)
{
	struct leat_run run;

	if (!cache->block)
		return;
	run = block_run(cache);
	if (leave(cache)) {
		memset(leat_block_of(cache->block)->chunk, 0, sizeof(leat_block_of(cache->block)->chunk));
		__atomic_store_n(&leat_block_of(cache->block)->flags, 0, __ATOMIC_RELAXED);
		leat_page_pool_put_page(run);
	}
	cache->block = 0;
}

/** Gets the cache a fresh block. */
static bool refill(struct leat_page_frag_cache *cache)
{
	struct leat_run run;

	if (cache->block && leave(cache)) {
		cache->reused_in_place++;
		enter(cache);
		return true;
	}
	cache->block = 0;
	run = leat_page_pool_alloc(cache->pool, LEAT_BLOCK_GRANULES);
	if (leat_run_is_none(run))
		return false;
	cache->block = leat_run_addr(run);
	enter(cache);
	return true;
}

struct leat_page_frag leat_page_frag_alloc_slow(struct leat_page_frag_cache *cache, uint32_t size, uint32_t align)
{
	struct leat_page_frag none = { NULL, 0, LEAT_RUN_NONE };

	LEAT_ASSERT(size >= 1 && size <= LEAT_BLOCK_SIZE);
	if (!refill(cache))
		return none;
	return leat_page_frag_alloc_align(cache, size, align);
}
