/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c: buddies, and the batches between them and the threads' stacks. */
#include "page.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_SHIFT 12u
#define ORDERS 11u /* 0..10 */
#define NONE UINT32_MAX
#define IS_FREE 0x80u

/** What is known of a page; links only where a free piece begins. */
struct page {
	uint32_t next, prev;
	uint8_t state; /* IS_FREE | order where a free piece begins, else 0 */
};

struct page_allocator {
	uint8_t *base;
	uint64_t bytes;
	struct page *page;
	uint32_t n_pages;
	pthread_spinlock_t lock;
	uint32_t first[ORDERS];
	uint64_t free_pages;
};

__thread struct page_stack page_cache[PAGE_CACHE_ORDERS];

static void list_add(struct page_allocator *a, uint32_t n, unsigned int order)
{
	struct page *p = &a->page[n];

	p->state = (uint8_t)(IS_FREE | order);
	p->prev = NONE;
	p->next = a->first[order];
	if (p->next != NONE)
		a->page[p->next].prev = n;
	a->first[order] = n;
}

static void list_del(struct page_allocator *a, uint32_t n, unsigned int order)
{
	struct page *p = &a->page[n];

	if (p->prev != NONE)
		a->page[p->prev].next = p->next;
	else
		a->first[order] = p->next;
	if (p->next != NONE)
		a->page[p->next].prev = p->prev;
	p->state = 0;
}

/** A piece of @order, split from the smallest there is; NONE when memory is out. */
static uint32_t buddy_alloc(struct page_allocator *a, unsigned int order)
{
	unsigned int have = order;
	uint32_t n;

	while (have < ORDERS && a->first[have] == NONE)
		have++;
	if (have == ORDERS)
		return NONE;
	n = a->first[have];
	list_del(a, n, have);
	while (have > order) {
		have--;
		list_add(a, n + (1u << have), have);
	}
	a->free_pages -= UINT64_C(1) << order;
	return n;
}

/** Joins it with its buddy as long as that is free. */
static void buddy_free(struct page_allocator *a, uint32_t n, unsigned int order)
{
	a->free_pages += UINT64_C(1) << order;
	for (; order + 1 < ORDERS; order++) {
		uint32_t buddy = n ^ 1u << order;

		if (a->page[buddy].state != (IS_FREE | order))
			break;
		list_del(a, buddy, order);
		n &= ~(1u << order);
	}
	list_add(a, n, order);
}

void *page_alloc_slow(struct page_allocator *a, unsigned int order)
{
	struct page_stack *stack = &page_cache[order];
	uint32_t i, n;

	pthread_spin_lock(&a->lock);
	for (i = 0; i < PAGE_CACHE_BATCH >> order; i++) {
		n = buddy_alloc(a, order);
		if (n == NONE)
			break;
		stack->page[stack->n++] = a->base + ((uint64_t)n << PAGE_SHIFT);
	}
	pthread_spin_unlock(&a->lock);
	return stack->n ? stack->page[--stack->n] : NULL;
}

/** Gives the @n oldest of a stack back. */
static void give(struct page_allocator *a, unsigned int order, uint32_t n)
{
	struct page_stack *stack = &page_cache[order];
	uint32_t i;

	pthread_spin_lock(&a->lock);
	for (i = 0; i < n; i++)
		buddy_free(a, (uint32_t)((uint64_t)((uint8_t *)stack->page[i] - a->base) >> PAGE_SHIFT), order);
	pthread_spin_unlock(&a->lock);
	stack->n -= n;
	memmove(stack->page, stack->page + n, stack->n * sizeof(stack->page[0]));
}

void page_free_slow(struct page_allocator *a, unsigned int order)
{
	give(a, order, PAGE_CACHE_BATCH >> order);
}

void page_cache_drain(struct page_allocator *a)
{
	unsigned int order;

	for (order = 0; order < PAGE_CACHE_ORDERS; order++)
		give(a, order, page_cache[order].n);
}

struct page_allocator *page_allocator_create(uint64_t bytes)
{
	struct page_allocator *a = calloc(1, sizeof(*a));
	uint32_t n;
	unsigned int order;

	if (!a)
		return NULL;
	a->bytes = bytes;
	a->n_pages = (uint32_t)(bytes >> PAGE_SHIFT);
	a->page = calloc(a->n_pages, sizeof(*a->page));
	a->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!a->page || a->base == MAP_FAILED) {
		if (a->base != MAP_FAILED)
			munmap(a->base, bytes);
		free(a->page);
		free(a);
		return NULL;
	}
	pthread_spin_init(&a->lock, PTHREAD_PROCESS_PRIVATE);
	for (order = 0; order < ORDERS; order++)
		a->first[order] = NONE;
	for (n = a->n_pages; n; n -= 1u << (ORDERS - 1)) /* the first to be handed out is the lowest */
		buddy_free(a, n - (1u << (ORDERS - 1)), ORDERS - 1);
	return a;
}

void page_allocator_destroy(struct page_allocator *a)
{
	if (!a)
		return;
	munmap(a->base, a->bytes);
	free(a->page);
	free(a);
}

uint64_t page_allocator_used(struct page_allocator *a)
{
	uint64_t free_pages;

	pthread_spin_lock(&a->lock);
	free_pages = a->free_pages;
	pthread_spin_unlock(&a->lock);
	return a->bytes - (free_pages << PAGE_SHIFT);
}
