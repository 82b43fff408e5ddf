/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_internal.h: the whole of a pool, for the files of this room.
 *
 * page_pool.c      life, and which memory the cursor runs over next
 * remote_return.c  what other threads put, and the end of a pool
 * run.c            the puts that the inline path does not take, and sharing
 */
#ifndef LEAT_MEM_PAGE_POOL_INTERNAL_H
#define LEAT_MEM_PAGE_POOL_INTERNAL_H

#include <leat/page_pool.h>
#include <pthread.h>

#include "mem/arena.h"
#include "mem/thread.h"

/**
 * Words on their way from one returning thread to the owner. A word is a range of granules within one block: the first
 * one's number in the arena in bits 31..6, their count less one in bits 5..0. There is room for as many words as the
 * pool has granules, so the ring is never full.
 */
struct leat_return_ring {
	/* written by the returning thread */
	uint32_t head;      /* words published (atomic; free-running) */
	uint32_t next_head; /* words written */
	uint32_t mask;      /* room less one; constant */
	size_t size;        /* bytes of this mapping; constant */
	/* written by the owner, after the pool is closed by who holds its lock */
	uint32_t tail LEAT_CACHELINE_ALIGNED;
	uint32_t word[] LEAT_CACHELINE_ALIGNED;
};

struct leat_pool {
	struct leat_page_pool pub; /* first: the two are one object */

	/* owner, or the lock's holder once the pool is closed */
	uint32_t n_blocks;      /* with memory behind them */
	uint32_t max_blocks;
	uint32_t sweep;         /* block the cursor was last in */
	uint32_t n_whole;       /* bits set in whole */
	uint64_t *whole;        /* a bit per block: wholly free and not under the cursor */
	uint32_t floor_blocks;
	uint64_t fail_nth;
	uint64_t grows, recycled_blocks, partial_runs, alloc_failed; /* any thread reads */

	/* constant */
	struct leat_segment_range range;
	struct leat_segment *segment;
	void (*wake)(void *arg);
	void *wake_arg;
	char name[32];

	/* the memory of a pool is used again for pools only, and these stay valid for a late reader */
	pthread_mutex_t lock;       /* guards the end of a closed pool */
	pthread_mutex_t ring0_lock; /* guards writing to ring[0] */
	uint32_t waking;            /* threads about to call wake (atomic) */
	struct leat_pool *next_spare;
};

static inline struct leat_pool *leat_pool_of(struct leat_page_pool *pub)
{
	return (struct leat_pool *)pub;
}

/** Takes a pool's memory, zeroed, from those that have ended or from the heap; NULL when memory is out. */
struct leat_pool *leat_pool_take_spare(void);
void leat_pool_put_spare(struct leat_pool *pool);

/** A return ring for a pool of @granules, or NULL. */
struct leat_return_ring *leat_return_ring_create(uint32_t granules);
void leat_return_ring_destroy(struct leat_return_ring *ring);

/** Ranges of one put or bulk put on their way to one pool. */
struct leat_returner {
	struct leat_page_pool *pool; /* NULL: nothing open */
	struct leat_return_ring *ring;
	struct leat_thread *thread;
	uint32_t first, n; /* the range that still grows; n 0: none */
};

/** Adds a range within one block to what the calling thread returns, merging neighbours. *any* but the owner. */
void leat_returner_add(struct leat_returner *r, struct leat_page_pool *pool, uint32_t first, uint32_t n);
/** Publishes what was added. */
void leat_returner_flush(struct leat_returner *r);

/** Takes in the rings whose doorbell rang. Returns granules. *owner*. */
uint64_t leat_pool_drain_rung(struct leat_pool *pool);
/** Ends a closed pool that has nothing out, on any thread. */
void leat_pool_try_end(struct leat_pool *pool);
/** Frees the memory of a pool that nobody holds anything of. */
void leat_pool_free(struct leat_pool *pool);
/** Granules that somebody holds, or that are on their way back; not what the cursor has. */
uint64_t leat_pool_outstanding(const struct leat_pool *pool);

/** Granules that the cursor has left, as another thread may see them: never more than a block. */
static inline uint32_t leat_pool_cursor(const struct leat_pool *pool)
{
	uint64_t cur = __atomic_load_n(&pool->pub.cur, __ATOMIC_RELAXED);
	uint64_t end = __atomic_load_n(&pool->pub.end, __ATOMIC_RELAXED);

	return end - cur <= LEAT_BLOCK_SIZE ? (uint32_t)(end - cur) >> LEAT_GRANULE_SHIFT : 0;
}

/** Marks granules of @block free (owner, or the lock's holder). */
static inline void leat_pool_free_granules(struct leat_pool *pool, struct leat_block *block, uint32_t bit, uint32_t n)
{
	uint64_t mask = leat_block_mask(bit, n);

	LEAT_ASSERT(!(block->free & mask)); /* else: put twice */
	block->free |= mask;
	if (block->free == ~UINT64_C(0))
		leat_page_pool_block_whole(&pool->pub, block);
}

#endif
