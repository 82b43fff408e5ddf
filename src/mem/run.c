/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: puts that the inline path does not take, and sharing. Any thread.
 *
 * A run that was never shared has one holder. leat_page_pool_get_page() counts a further holder at the run's first granule and
 * marks the blocks it touches, so that puts of other runs do not look. The mark goes when the block is cut again.
 * In a block that a page_frag_cache cut, each reference is one of the block's count instead, and the mark stands for
 * every piece of the block until it is cut again.
 */
#include "mem/page_pool_internal.h"

#include <string.h>

/** Whether this put is the last one of a run that may have been shared. */
static bool last_share(struct leat_run run)
{
	struct leat_granule *granule = leat_granule_of(leat_run_addr(run));

	/* acquire: what other holders read or wrote happens before the memory is used again; pairs with the release */
	if (!__atomic_load_n(&granule->shares, __ATOMIC_ACQUIRE))
		return true;
	if (__atomic_fetch_sub(&granule->shares, 1, __ATOMIC_ACQ_REL))
		return false;
	__atomic_store_n(&granule->shares, 0, __ATOMIC_RELAXED); /* two put at once: the second goes below zero */
	return true;
}

/** Whether this put is the last one of a block that a page_frag_cache cut. */
static bool last_frag(struct leat_block *block)
{
	if (__atomic_load_n(&block->refs[0], __ATOMIC_ACQUIRE) != 1 &&
	    __atomic_fetch_sub(&block->refs[0], 1, __ATOMIC_ACQ_REL) != 1)
		return false;
	__atomic_store_n(&block->refs[0], 0, __ATOMIC_RELAXED);
	return true;
}

/** Frees [first, first + n) granules, which may lie in several blocks of one pool. */
static void put_range(struct leat_returner *r, uint64_t addr, uint32_t n)
{
	struct leat_page_pool *pool = leat_block_of(addr)->pool;
	bool owner = __atomic_load_n(&pool->owner, __ATOMIC_RELAXED) == leat_thread_self;

	while (n) {
		uint32_t bit = leat_granule_idx(addr) % LEAT_BLOCK_GRANULES;
		uint32_t part = n < LEAT_BLOCK_GRANULES - bit ? n : LEAT_BLOCK_GRANULES - bit;

		if (owner) {
			leat_count(&pool->counts.direct, part);
			leat_pool_free_granules(leat_pool_of(pool), leat_block_of(addr), bit, part);
		} else {
			leat_returner_add(r, pool, leat_granule_idx(addr), part);
		}
		addr += (uint64_t)part << LEAT_GRANULE_SHIFT;
		n -= part;
	}
}

static void put_one(struct leat_returner *r, struct leat_run run)
{
	uint64_t addr = leat_run_addr(run);
	uint32_t n = leat_run_granules(run);
	struct leat_block *block = leat_block_of(addr);
	uint32_t flags = __atomic_load_n(&block->flags, __ATOMIC_RELAXED);

	if (flags & LEAT_BLOCK_FRAG) {
		if (!last_frag(block))
			return;
		memset(block->chunk, 0, sizeof(block->chunk)); /* nobody looks: this was the last holder */
		__atomic_store_n(&block->flags, 0, __ATOMIC_RELAXED);
		addr &= ~(uint64_t)(LEAT_BLOCK_SIZE - 1);
		n = LEAT_BLOCK_GRANULES;
	} else if (flags & LEAT_BLOCK_SHARED && !last_share(run)) {
		return;
	}
	put_range(r, addr, n);
}

void leat_page_pool_put_page_slow(struct leat_run run)
{
	struct leat_returner r = { 0 };

	put_one(&r, run);
	leat_returner_flush(&r);
}

void leat_page_pool_put_page_bulk(struct leat_run *runs, unsigned int n)
{
	struct leat_returner r = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++)
		put_one(&r, runs[i]);
	leat_returner_flush(&r);
}

void leat_page_pool_get_page(struct leat_run run)
{
	uint64_t addr = leat_run_addr(run);
	uint64_t end = addr + leat_run_size(run);
	struct leat_block *block = leat_block_of(addr);

	if (__atomic_load_n(&block->flags, __ATOMIC_RELAXED) & LEAT_BLOCK_FRAG) {
		__atomic_fetch_add(&block->refs[0], 1, __ATOMIC_RELAXED);
		__atomic_fetch_or(&block->flags, LEAT_BLOCK_SHARED, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&leat_granule_of(addr)->shares, 1, __ATOMIC_RELAXED);
	/* every holder gets the run from one that has set the mark, so each of them sees it */
	for (; block <= leat_block_of(end - 1); block++)
		__atomic_fetch_or(&block->flags, LEAT_BLOCK_SHARED, __ATOMIC_RELAXED);
}

bool leat_run_is_shared(struct leat_run run)
{
	struct leat_block *block = leat_block_of(leat_run_addr(run));
	uint32_t flags = __atomic_load_n(&block->flags, __ATOMIC_RELAXED);

	if (flags & LEAT_BLOCK_FRAG) /* the count is the block's: which piece has two holders cannot be told */
		return flags & LEAT_BLOCK_SHARED;
	/* acquire: the other holder's last look happens before we write; pairs with last_share() */
	return flags & LEAT_BLOCK_SHARED &&
	       __atomic_load_n(&leat_granule_of(leat_run_addr(run))->shares, __ATOMIC_ACQUIRE) != 0;
}
