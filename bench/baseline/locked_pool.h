/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * locked_pool.h: baseline: a pool of pages as kernels have it. The owner allocates from a stack of its own and puts
 * there; what does not fit, and what other threads put, goes into a ring of pointers whose producers share a lock.
 * An empty stack is refilled from the ring, then from the page allocator; a full ring gives back to the page allocator.
 */
#ifndef LEAT_BENCH_BASELINE_LOCKED_POOL_H
#define LEAT_BENCH_BASELINE_LOCKED_POOL_H

#include "page.h"

#define LOCKED_POOL_CACHE 128u
#define LOCKED_POOL_REFILL 64u /* taken from the ring at once */
#define LOCKED_POOL_BULK 16u   /* put into the ring, or taken from the page allocator, under one lock */
#define LOCKED_POOL_RING 4096u

struct locked_pool {
	/* owner */
	uint32_t cached;
	void *cache[LOCKED_POOL_CACHE];
	struct page_allocator *pages;
	uint64_t from_pages; /* pages taken from the page allocator (count) */
	/* the ring: producers hold the lock; the owner alone consumes */
	uint32_t lock LEAT_CACHELINE_ALIGNED;
	uint32_t head; /* written (atomic; free-running) */
	uint32_t tail_seen;
	uint64_t to_pages; /* pages that did not fit (count) */
	uint32_t tail LEAT_CACHELINE_ALIGNED; /* taken (atomic) */
	void *ring[LOCKED_POOL_RING] LEAT_CACHELINE_ALIGNED;
};

/** NULL when memory is out. @pages is **borrowed**. */
struct locked_pool *locked_pool_create(struct page_allocator *pages);
/** Gives everything back to the page allocator; every page must have come back. */
void locked_pool_destroy(struct locked_pool *pool);

void *locked_pool_alloc_slow(struct locked_pool *pool);
/** Puts @n pages from any thread, in bulks of LOCKED_POOL_BULK. *any*. */
void locked_pool_put_bulk(struct locked_pool *pool, void *const *pages, uint32_t n);

/** A page of 4 KiB, or NULL. *owner*. */
static inline void *locked_pool_alloc(struct locked_pool *pool)
{
	if (leat_unlikely(!pool->cached))
		return locked_pool_alloc_slow(pool);
	return pool->cache[--pool->cached];
}

/** *owner*. */
static inline void locked_pool_put_direct(struct locked_pool *pool, void *page)
{
	if (leat_unlikely(pool->cached == LOCKED_POOL_CACHE))
		locked_pool_put_bulk(pool, &page, 1);
	else
		pool->cache[pool->cached++] = page;
}

#endif
