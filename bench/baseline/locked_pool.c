/* SPDX-License-Identifier: BSD-3-Clause */
/* locked_pool.c: the ring of a locked_pool, and the page allocator behind it. */
#include "locked_pool.h"

#include <stdlib.h>
#include <string.h>

static void lock(uint32_t *word)
{
	while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE)) /* pairs with unlock() */
		while (__atomic_load_n(word, __ATOMIC_RELAXED))
#if defined(__x86_64__) || defined(__i386__)
			__builtin_ia32_pause();
#else
			;
#endif
}

static void unlock(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

/** Writes as many of @n as there is room for; returns how many. */
static uint32_t produce(struct locked_pool *pool, void *const *pages, uint32_t n)
{
	uint32_t i, room, head;

	lock(&pool->lock);
	head = pool->head;
	room = LOCKED_POOL_RING - (head - pool->tail_seen);
	if (room < n) {
		pool->tail_seen = __atomic_load_n(&pool->tail, __ATOMIC_ACQUIRE); /* pairs with consume() */
		room = LOCKED_POOL_RING - (head - pool->tail_seen);
	}
	n = room < n ? room : n;
	for (i = 0; i < n; i++)
		pool->ring[(head + i) % LOCKED_POOL_RING] = pages[i];
	__atomic_store_n(&pool->head, head + n, __ATOMIC_RELEASE); /* pairs with consume() */
	unlock(&pool->lock);
	return n;
}

void locked_pool_put_bulk(struct locked_pool *pool, void *const *pages, uint32_t n)
{
	uint32_t i, some, done;

	for (i = 0; i < n; i += some) {
		some = n - i < LOCKED_POOL_BULK ? n - i : LOCKED_POOL_BULK;
		done = produce(pool, pages + i, some);
		if (leat_unlikely(done < some))
			__atomic_fetch_add(&pool->to_pages, some - done, __ATOMIC_RELAXED);
		for (; done < some; done++)
			page_free(pool->pages, pages[i + done], 0);
	}
}

/** Fills the empty stack from the ring. */
static void consume(struct locked_pool *pool)
{
	uint32_t i, tail = pool->tail;
	uint32_t n = __atomic_load_n(&pool->head, __ATOMIC_ACQUIRE) - tail; /* pairs with produce() */

	n = n < LOCKED_POOL_REFILL ? n : LOCKED_POOL_REFILL;
	for (i = 0; i < n; i++)
		pool->cache[pool->cached++] = pool->ring[(tail + i) % LOCKED_POOL_RING];
	__atomic_store_n(&pool->tail, tail + n, __ATOMIC_RELEASE); /* pairs with produce() */
}

void *locked_pool_alloc_slow(struct locked_pool *pool)
{
	uint32_t i;
	void *page;

	consume(pool);
	for (i = 0; !pool->cached || (i && i < LOCKED_POOL_BULK); i++) {
		page = page_alloc(pool->pages, 0);
		if (!page)
			break;
		pool->from_pages++;
		pool->cache[pool->cached++] = page;
	}
	return pool->cached ? pool->cache[--pool->cached] : NULL;
}

struct locked_pool *locked_pool_create(struct page_allocator *pages)
{
	struct locked_pool *pool = aligned_alloc(LEAT_CACHELINE, sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->pages = pages;
	return pool;
}

void locked_pool_destroy(struct locked_pool *pool)
{
	if (!pool)
		return;
	for (;;) {
		while (pool->cached)
			page_free(pool->pages, pool->cache[--pool->cached], 0);
		if (pool->head == pool->tail)
			break;
		consume(pool);
	}
	free(pool);
}
