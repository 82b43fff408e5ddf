/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h: baseline: an honest page allocator. Buddies of orders 0..10 under a lock, and before it for each thread and
 * order 0..5 a stack of pages, filled and emptied in batches. Who frees says the order.
 */
#ifndef LEAT_BENCH_BASELINE_PAGE_H
#define LEAT_BENCH_BASELINE_PAGE_H

#include <leat/base.h>

#define PAGE_CACHE_ORDERS 6u /* 0..5 */
/* Pages of order 0 that a thread keeps at most, and that it takes or gives at once; half as many per order. */
#define PAGE_CACHE_HIGH 192u
#define PAGE_CACHE_BATCH 64u

struct page_stack {
	uint32_t n;
	void *page[PAGE_CACHE_HIGH];
};

/** What a thread keeps. */
extern __thread struct page_stack page_cache[PAGE_CACHE_ORDERS];

struct page_allocator;

/** @bytes, a multiple of 4 MiB, committed at once. NULL when memory is out. */
struct page_allocator *page_allocator_create(uint64_t bytes);
void page_allocator_destroy(struct page_allocator *a);
/** Gives back what the calling thread keeps: before it ends, and before the allocator does. */
void page_cache_drain(struct page_allocator *a);
/** Bytes that are not free; those in caches of threads count as not free. */
uint64_t page_allocator_used(struct page_allocator *a);

void *page_alloc_slow(struct page_allocator *a, unsigned int order);
/** Makes room in the calling thread's stack of @order. */
void page_free_slow(struct page_allocator *a, unsigned int order);

/** 2^@order pages of 4 KiB, @order 0..5, or NULL. */
static inline void *page_alloc(struct page_allocator *a, unsigned int order)
{
	struct page_stack *stack = &page_cache[order];

	if (leat_unlikely(!stack->n))
		return page_alloc_slow(a, order);
	return stack->page[--stack->n];
}

static inline void page_free(struct page_allocator *a, void *page, unsigned int order)
{
	struct page_stack *stack = &page_cache[order];

	if (leat_unlikely(stack->n == PAGE_CACHE_HIGH >> order))
		page_free_slow(a, order);
	stack->page[stack->n++] = page;
}

#endif
