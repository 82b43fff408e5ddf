/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool.h: recycled packet memory for one receive queue.
 *
 * A pool owns a range of addresses in a segment and commits it in extents as it is needed. One thread, the *owner*,
 * allocates: a cursor runs over wholly free blocks in cyclic address order, so buffers that are handed out one after
 * the other lie side by side and neighbours can be merged. Any thread puts:
 *
 *   owner thread   -> direct: the run's bits are OR-ed into its block's free mask
 *   other threads  -> remote: a word (first granule, length) in a private ring per (pool, thread), published by one
 *                     release store at the end of the put; no lock, never full, nothing of it lies in buffers
 *
 * A pool that is destroyed while buffers are out goes with the last of them.
 */
#ifndef LEAT_PAGE_POOL_H
#define LEAT_PAGE_POOL_H

#include <leat/arena.h>

LEAT_BEGIN_DECLS

/** Threads with a return ring of their own; further threads share one ring under a lock. */
#define LEAT_THREADS_MAX 64
/** Largest single allocation: one block. */
#define LEAT_PAGE_POOL_ALLOC_MAX LEAT_BLOCK_SIZE

struct leat_thread;
struct leat_return_ring;

/** The calling thread, NULL until it has registered. Compared with leat_page_pool.owner on every put. */
extern LEAT_API __thread struct leat_thread *leat_thread_self __attribute__((tls_model("initial-exec")));

/** Registers the calling thread (a second call changes nothing). It is let go when the thread ends. */
LEAT_API struct leat_thread *leat_thread_register(void);

/** What the owner counts, in granules; single writer, any reader. */
struct leat_page_pool_counts {
	uint64_t cut;    /* taken from blocks by the cursor */
	uint64_t uncut;  /* given back by the cursor unused */
	uint64_t direct; /* put by the owner */
	uint64_t remote; /* put by other threads and drained */
};

/** The part of a pool that inline code touches. */
struct leat_page_pool {
	/* owner only: the cursor */
	uint64_t cur;  /* address of the next free granule of the current run */
	uint32_t left; /* granules from cur to the end of the run; any thread reads */
	uint32_t pad;
	struct leat_page_pool_counts counts;
	/* read by every thread that puts */
	struct leat_thread *owner LEAT_CACHELINE_ALIGNED; /* control writes while no thread polls the pool */
	uint32_t closed;   /* destroy has begun */
	uint32_t waiting;  /* the owner is about to sleep, or sleeps, until something comes back */
	uint64_t first;    /* address of the pool's first block */
	struct leat_return_ring *ring[LEAT_THREADS_MAX]; /* by thread; made at a thread's first return */
	/* written by returning threads */
	uint64_t doorbell LEAT_CACHELINE_ALIGNED; /* bit per thread: its ring has words; a hint */
};

struct leat_page_pool_opts {
	size_t size;           /* sizeof(struct leat_page_pool_opts) */
	const char *name;      /* for people; copied, 31 bytes are kept; NULL: "pool" */
	uint64_t limit;        /* most bytes the pool may hold; 0: 16 MiB; rounded up to an extent */
	uint64_t floor;        /* bytes below which partly free blocks are left alone; 0: 1 MiB */
	void (*wake)(void *arg); /* a buffer came back while the owner waited; *any* thread, must not block */
	void *wake_arg;
};

/** A snapshot; the sums hold when the owner is quiescent. All in granules unless said. */
struct leat_page_pool_stats {
	char name[32];
	uint64_t limit, committed; /* bytes */
	uint64_t alloc;            /* handed out since creation */
	uint64_t direct, remote;   /* put back, by the owner and by others (drained) */
	uint64_t outstanding;      /* alloc - direct - remote: what somebody holds, or is on its way back */
	uint64_t grows;            /* extents committed (count) */
	uint64_t recycled_blocks;  /* wholly free blocks that were cut, new ones too (count) */
	uint64_t partial_runs;     /* runs taken from partly free blocks (count) */
	uint64_t alloc_failed;     /* allocations refused (count) */
};

/**
 * Makes a pool with addresses in @segment. No memory is committed. *control*.
 * Returns 0; -EINVAL, -E2BIG (options); -ENOSPC when the segment has no such range; -ENOMEM.
 */
LEAT_API int leat_page_pool_create(struct leat_segment *segment, const struct leat_page_pool_opts *opts,
				   struct leat_page_pool **pool);

/**
 * Ends a pool; its memory goes when the last buffer comes back. Called by the owner, or when a grace period has passed
 * since leat_page_pool_disown(): nobody may still take itself for the owner. NULL is allowed. The segment stays until
 * then, even if it is destroyed.
 */
LEAT_API void leat_page_pool_destroy(struct leat_page_pool *pool);

/**
 * Makes the calling thread the owner. The former owner must not use the pool any more, and a thread must not end while
 * it owns one.
 */
LEAT_API void leat_page_pool_own(struct leat_page_pool *pool);
/** Leaves the pool without an owner: every put is remote. Called by the owner, or while it does not use the pool. */
LEAT_API void leat_page_pool_disown(struct leat_page_pool *pool);

/** Reads the counters. *any*. */
LEAT_API void leat_page_pool_stats(const struct leat_page_pool *pool, struct leat_page_pool_stats *stats);

/**
 * Calls @fn with the counters of each pool in @segment, those that were destroyed and still have buffers out included,
 * newest first. @fn must not make or end pools. *any*.
 */
LEAT_API void leat_segment_for_each_pool(struct leat_segment *segment,
					 void (*fn)(const struct leat_page_pool_stats *stats, void *arg), void *arg);

/** Takes in everything that other threads have put. Returns granules. *owner*, or *control* while there is none. */
LEAT_API uint64_t leat_page_pool_drain(struct leat_page_pool *pool);

/**
 * Prepares to sleep until memory comes back: asks returning threads to call opts.wake, then looks once more.
 * Returns true when something had come back (do not sleep). *owner*.
 */
LEAT_API bool leat_page_pool_wait_prepare(struct leat_page_pool *pool);

/**
 * Makes the @nth allocation from now fail and every allocation take the slow path, for tests of error paths;
 * 0 ends it. *owner*.
 */
LEAT_API void leat_page_pool_fail_nth(struct leat_page_pool *pool, uint64_t nth);

/** The cursor's run is used up, or tests ask for it. *owner*. */
LEAT_API struct leat_run leat_page_pool_alloc_slow(struct leat_page_pool *pool, uint32_t granules);
/** Puts that the inline path does not take: merged over blocks, shared, frags, other threads. *any*. */
LEAT_API void leat_run_put_slow(struct leat_run run);
/** A block of the pool has become wholly free. *owner*. */
LEAT_API void leat_page_pool_block_whole(struct leat_page_pool *pool, struct leat_block *block);

/**
 * Puts @n references (**consumes** them; the array may be reordered). Neighbours go back as one range, and remote
 * returns are published once per call. *any*.
 */
LEAT_API void leat_run_put_bulk(struct leat_run *runs, unsigned int n);

/**
 * Makes a second reference to the same run: both holders put it once. The payload is then read-only for both
 * until leat_run_is_shared() says no. *any* thread that holds one.
 */
LEAT_API void leat_run_get(struct leat_run run);
/** Whether somebody else holds the run too. Only "no" is lasting. *any* thread that holds one. */
LEAT_API bool leat_run_is_shared(struct leat_run run);

/* ---- the fast paths ---- */

/** Adds to a counter that one thread writes and any thread reads. */
static inline void leat_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/**
 * Allocates @granules (1..64) consecutive granules within one block. **Returns** a reference, or LEAT_RUN_NONE when
 * the pool's limit is reached or the system has no memory. *owner*.
 */
static inline struct leat_run leat_page_pool_alloc(struct leat_page_pool *pool, uint32_t granules)
{
	struct leat_run run;

	if (leat_unlikely(pool->left < granules))
		return leat_page_pool_alloc_slow(pool, granules);
	run = leat_run_make(pool->cur, granules);
	pool->cur += (uint64_t)granules << LEAT_GRANULE_SHIFT;
	__atomic_store_n(&pool->left, pool->left - granules, __ATOMIC_RELAXED);
	return run;
}

/**
 * Whether the cursor stands at the end of @run and may go back into it. At the border of two blocks it may not once it
 * has a run in the second: what it has lies in one block. *owner*.
 */
static inline bool leat_page_pool_is_newest(const struct leat_page_pool *pool, struct leat_run run)
{
	return leat_run_addr(run) + leat_run_size(run) == pool->cur && (pool->cur % LEAT_BLOCK_SIZE || !pool->left);
}

/**
 * Gives the end of the newest allocation back to the cursor: @run keeps @granules (at least 1, at most what it has).
 * For a receiver that learns the length after the fact. Returns the reference that is left; when another allocation
 * has come between, the whole run. Not for runs that were merged. *owner*.
 */
static inline struct leat_run leat_page_pool_trim(struct leat_page_pool *pool, struct leat_run run, uint32_t granules)
{
	uint32_t spare = leat_run_granules(run) - granules;

	if (leat_unlikely(!leat_page_pool_is_newest(pool, run)))
		return run;
	pool->cur -= (uint64_t)spare << LEAT_GRANULE_SHIFT;
	__atomic_store_n(&pool->left, pool->left + spare, __ATOMIC_RELAXED);
	return leat_run_make(leat_run_addr(run), granules);
}

static inline void leat_run_put(struct leat_run run);

/** Gives the newest allocation back to the cursor, as if it had not been made; an older one is put. *owner*. */
static inline void leat_page_pool_cancel(struct leat_page_pool *pool, struct leat_run run)
{
	if (leat_unlikely(!leat_page_pool_is_newest(pool, run))) {
		leat_run_put(run);
		return;
	}
	pool->cur = leat_run_addr(run);
	__atomic_store_n(&pool->left, pool->left + leat_run_granules(run), __ATOMIC_RELAXED);
}

/** Puts one reference (**consumes** it). *any*. */
static inline void leat_run_put(struct leat_run run)
{
	uint64_t addr = leat_run_addr(run);
	uint32_t n = leat_run_granules(run);
	uint32_t bit = leat_granule_idx(addr) % LEAT_BLOCK_GRANULES;
	struct leat_block *block = leat_block_of(addr);
	struct leat_page_pool *pool = block->pool;
	uint64_t mask, free;

	if (leat_unlikely(__atomic_load_n(&pool->owner, __ATOMIC_RELAXED) != leat_thread_self ||
			  __atomic_load_n(&block->flags, __ATOMIC_RELAXED) || bit + n > LEAT_BLOCK_GRANULES)) {
		leat_run_put_slow(run);
		return;
	}
	mask = leat_block_mask(bit, n);
	free = block->free; /* a local: the compiler cannot know that the counter below is another object */
	LEAT_ASSERT(!(free & mask)); /* else: put twice */
	free |= mask;
	block->free = free;
	leat_count(&pool->counts.direct, n);
	if (leat_unlikely(free == ~UINT64_C(0)))
		leat_page_pool_block_whole(pool, block);
}

LEAT_END_DECLS

#endif
