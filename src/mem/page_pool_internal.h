/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_internal.h: the whole of a pool, for the files of this room.
 *
 * page_pool.c      which memory the cursor runs over next
 * pool_memory.c    the memory behind the addresses: growing, shrinking, limits, nodes, providers, mapping
 * pool_life.c      making a pool, its counters, its memory at the end
 * remote_return.c  what other threads put, and the end of a pool
 * run.c            the puts that the inline path does not take, and sharing
 * account.c        who holds what, and since when
 */
#ifndef LEAT_MEM_PAGE_POOL_INTERNAL_H
#define LEAT_MEM_PAGE_POOL_INTERNAL_H

#include <leat/page_pool.h>
#include <pthread.h>

#include "mem/arena.h"
#include "mem/order.h"
#include "mem/thread.h"

#define LEAT_EXTENT_BLOCKS (LEAT_EXTENT_SIZE / LEAT_BLOCK_SIZE)
#define LEAT_EXTENT_PAGES (LEAT_EXTENT_SIZE / LEAT_PAGE_SIZE)
/** The order of an extent: the largest piece of memory that is asked for. */
#define LEAT_EXTENT_ORDER (LEAT_EXTENT_SHIFT - LEAT_PAGE_SHIFT)
#define LEAT_BLOCK_ORDER (LEAT_BLOCK_SHIFT - LEAT_PAGE_SHIFT)

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
	uint64_t granules;      /* published (atomic; any thread reads) */
	uint64_t next_granules; /* written */
	/* written by the owner, after the pool is closed by who holds its lock */
	uint32_t tail LEAT_CACHELINE_ALIGNED;
	uint32_t word[] LEAT_CACHELINE_ALIGNED;
};

/** Memory behind one extent of a pool's range; owner only. */
struct leat_pool_extent {
	uint64_t starts; /* bit per page: a piece of memory begins there; it ends where the next one does */
	int32_t node;    /* NUMA node that its memory was asked on; -1: any */
	uint32_t pages;  /* that have memory, from the first one (atomic: reports read it) */
};

/* Bits of leat_pool.odd: what keeps an allocation from the short way. */
#define LEAT_POOL_FAIL 0x1u  /* fail_nth counts */
#define LEAT_POOL_LIMIT 0x2u /* somebody has set a limit */
#define LEAT_POOL_OVER 0x4u  /* memory over the limit may be free */

struct leat_pool {
	struct leat_page_pool pub; /* first: the two are one object */

	/* owner, or the lock's holder once the pool is closed */
	uint32_t n_blocks;         /* up to the last one with memory; any thread reads */
	uint32_t n_whole;          /* bits set in whole */
	uint32_t odd;              /* LEAT_POOL_*; atomic: any thread sets LEAT_POOL_LIMIT */
	uint64_t sweep;            /* block the cursor was last in */
	uint64_t *whole;           /* a bit per block, and one more: wholly free, and the cursor may have it */
	struct leat_block *blocks; /* descriptor of the first block */
	uint64_t tick;             /* when the clock was read, in the processor's ticks */
	uint64_t now_twice;        /* CLOCK_MONOTONIC_COARSE, milliseconds, never 0, in both halves */
	uint32_t n_aside;          /* bits set in aside */
	uint64_t *aside;           /* a bit per block: wholly free, of another node than the pool's */
	bool picky;                /* some blocks are not for the cursor: foreign or over the limit */
	int32_t node;              /* memory is wanted there; any thread reads */
	uint32_t n_foreign;        /* extents with memory of another node */
	uint32_t limit_blocks;     /* no block from here on is cut; a multiple of an extent's */
	uint32_t floor_pages;
	uint32_t n_pages;          /* with memory; any thread reads */
	uint32_t incomplete;       /* no extent below this one lacks memory */
	struct leat_pool_extent *extent;
	uint64_t *iova;            /* a block's address for the device; NULL: no map ops */
	struct leat_order order;   /* of the next piece of memory; any thread reads */
	uint64_t fail_nth;
	/* any thread reads; granules, then counts */
	uint64_t cut_new, cut_partial;
	uint64_t long_ways;   /* allocations that took the long way */
	uint64_t long_blocks; /* blocks that these took; each of the others is an allocation that took the short one */
	uint64_t grows, shrinks, grow_failed, partial_runs, node_moves, alloc_failed;

	/* any thread */
	uint64_t limit; /* what leat_page_pool_set_limit() said: extents << 32 | floor in pages (atomic) */

	/* constant */
	uint32_t max_blocks;    /* of the range */
	uint32_t low_water;     /* granules that must come back before a waiting owner is woken */
	uint32_t min_order;     /* of a piece of memory */
	struct leat_segment_range range;
	struct leat_segment *segment;
	const struct leat_page_pool_provider *provider;
	void *provider_arg;
	const struct leat_page_pool_map_ops *map;
	void *map_arg;
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
/** Whether it writes to the ring that threads without one share, and holds the lock of that. */
static inline bool leat_returner_holds_lock(const struct leat_returner *r)
{
	return r->ring == r->pool->ring[0];
}

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
/** Granules that other threads have published and the owner has not drained. *any*. */
uint64_t leat_pool_returning(const struct leat_pool *pool);

/** Says in @stats where what is outstanding is; stats->outstanding is set. */
void leat_pool_split(const struct leat_pool *pool, struct leat_page_pool_stats *stats);

/** Granules posted to a device and not completed. */
static inline uint64_t leat_pool_device(const struct leat_pool *pool)
{
	uint64_t completed = __atomic_load_n(&pool->pub.counts.completed, __ATOMIC_RELAXED);
	uint64_t posted = __atomic_load_n(&pool->pub.counts.posted, __ATOMIC_RELAXED);

	return posted > completed ? posted - completed : 0;
}

/** Gives the rest of the cursor's run back to its block. *owner*. */
void leat_pool_uncut(struct leat_pool *pool);
/** Takes notice of a wholly free block that is not for every cursor. *owner*. */
void leat_pool_sort_block(struct leat_pool *pool, uint32_t idx);

/**
 * Asks for memory for at most @most pages (not below a block: a smaller wish counts as one), smaller sizes when that
 * cannot be had. Returns whether there is some more. *owner*.
 */
bool leat_pool_grow(struct leat_pool *pool, uint32_t most);
/** Moves one wholly free extent of another node to the pool's. Returns whether there was one. *owner*. */
bool leat_pool_move_extent(struct leat_pool *pool);
/** Acts on a new limit, and on what came back over the limit. *owner*. */
void leat_pool_apply_limit(struct leat_pool *pool);
/** Gives all memory back: nobody holds anything of it. The pool's end. */
void leat_pool_release_all(struct leat_pool *pool);

static inline uint64_t leat_pool_block_addr(const struct leat_pool *pool, uint32_t idx)
{
	return pool->pub.first + ((uint64_t)idx << LEAT_BLOCK_SHIFT);
}

/** Whether the memory of block @idx is of another node than the pool wants. */
static inline bool leat_pool_is_foreign(const struct leat_pool *pool, uint32_t idx)
{
	return pool->node >= 0 && pool->extent[idx / LEAT_EXTENT_BLOCKS].node != pool->node;
}

/** Whether block @idx is one to give back: over the limit, or of another node, or the limit is a new one. *owner*. */
static inline bool leat_pool_gives_up(const struct leat_pool *pool, uint32_t idx)
{
	return (pool->picky && (idx >= pool->limit_blocks || leat_pool_is_foreign(pool, idx))) ||
	       __atomic_load_n(&pool->odd, __ATOMIC_RELAXED) & LEAT_POOL_LIMIT;
}

/**
 * Granules of block @idx, below n_blocks, that have memory, as bits of its mask: of these, those that are not free and
 * not the cursor's are out. *any*.
 */
static inline uint64_t leat_pool_present(const struct leat_pool *pool, uint32_t idx)
{
	const struct leat_pool_extent *extent = &pool->extent[idx / LEAT_EXTENT_BLOCKS];
	/* acquire: the free mask that is read next is not older; pairs with the release when memory is added */
	uint32_t pages = __atomic_load_n(&extent->pages, __ATOMIC_ACQUIRE);
	uint32_t first = idx % LEAT_EXTENT_BLOCKS * LEAT_BLOCK_PAGES;

	if (pages <= first)
		return 0;
	pages -= first;
	return leat_block_mask(0, (pages < LEAT_BLOCK_PAGES ? pages : LEAT_BLOCK_PAGES) * LEAT_PAGE_GRANULES);
}

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
	uint64_t mask = leat_block_mask(bit, n), free = block->free;

	LEAT_ASSERT(!(free & mask)); /* else: put twice */
	free |= mask;
	__atomic_store_n(&block->free, free, __ATOMIC_RELAXED);
	if (free == ~UINT64_C(0))
		leat_page_pool_block_whole(&pool->pub, block);
}

#endif
