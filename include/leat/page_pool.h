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
 * A pool that is destroyed while buffers are out goes with the last of them. Who holds what, and since when, is told
 * by account.h.
 *
 * Ways to allocate, all of which return a run that leat_page_pool_put_page() takes back:
 *
 *   leat_page_pool_alloc()        n granules: what receive queues use
 *   leat_page_pool_alloc_pages()  2^order pages, up to 128 KiB
 *   leat_page_pool_alloc_frag()   bytes in, bytes out: what would be left over too small for the next is given along
 *   leat_page_pool_alloc_va()     the same as a plain pointer
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

/** Which size of 2^order pages to ask for next; its owner's. src/mem/order.h has the policy. */
struct leat_order {
	uint8_t order;   /* what to ask for next */
	uint8_t max;
	bool trying;     /* order has just gone up, and nothing was had since */
	uint16_t wait;   /* successes before the next larger order is tried; doubles when that fails */
	uint16_t left;   /* of them */
};

/** What the owner counts, in granules; single writer, any reader. cut = left in the cursor + uncut + handed out. */
struct leat_page_pool_counts {
	uint64_t cut;       /* taken from blocks by the cursor */
	uint64_t uncut;     /* given back by the cursor unused */
	uint64_t direct;    /* put by the owner */
	uint64_t remote;    /* put by other threads and drained */
	uint64_t posted;    /* handed to a device: leat_page_pool_post() */
	uint64_t completed; /* handed back by a device */
};

/** The part of a pool that inline code touches. */
struct leat_page_pool {
	/* owner only: the cursor */
	uint64_t cur; /* address of the next free granule of the current run; any thread reads */
	uint64_t end; /* where the run ends, within one block; equal to cur: it is used up */
	struct leat_page_pool_counts counts;
	/* read by every thread that puts */
	struct leat_thread *owner LEAT_CACHELINE_ALIGNED; /* control writes while no thread polls the pool */
	uint32_t closed;   /* destroy has begun */
	uint32_t waiting;  /* granules that must come back before a sleeping owner is woken; 0: it does not wait */
	uint64_t first;    /* address of the pool's first block */
	struct leat_return_ring *ring[LEAT_THREADS_MAX]; /* by thread; made at a thread's first return */
	/* written by returning threads */
	uint64_t doorbell LEAT_CACHELINE_ALIGNED; /* bit per thread: its ring has words; a hint */
};

/**
 * Memory that somebody else owns: a device's, another process's. The pool owns addresses only; the provider puts
 * memory there. Calls come from the owner's slow path and from the thread that ends the pool, one at a time.
 */
struct leat_page_pool_provider {
	/** Once, before anything else: the pool's whole range. 0 or a negative errno, which refuses the pool. May be NULL. */
	int (*init)(void *arg, void *addr, uint64_t bytes);
	/**
	 * Memory for [addr, addr + bytes), 2^n pages of LEAT_PAGE_SIZE up to an extent, aligned to their size, near @node
	 * (-1: any). 0, or a negative errno: the pool asks for any node, then for smaller pieces.
	 */
	int (*alloc)(void *arg, void *addr, uint64_t bytes, int node);
	/** Takes back what one alloc gave: nobody holds anything of it. It is not touched again before the next alloc. */
	void (*release)(void *arg, void *addr, uint64_t bytes);
	/** The last call, after everything was released. May be NULL. */
	void (*destroy)(void *arg);
};

/** For transports that need addresses of their own (the place of the kernel's DMA API). */
struct leat_page_pool_map_ops {
	/** Maps a piece of memory, a block or more; its address for the device in @iova. 0, or a negative errno: not used. */
	int (*map)(void *arg, void *addr, uint64_t bytes, uint64_t *iova);
	/** Nobody holds anything of it any more. */
	void (*unmap)(void *arg, void *addr, uint64_t bytes, uint64_t iova);
	/* The device may look, or write; the CPU may look. Both may be NULL. *any* thread that holds the run. */
	void (*sync_for_device)(void *arg, uint64_t iova, uint32_t bytes);
	void (*sync_for_cpu)(void *arg, uint64_t iova, uint32_t bytes);
};

struct leat_page_pool_opts {
	size_t size;           /* sizeof(struct leat_page_pool_opts) */
	const char *name;      /* for people; copied, 31 bytes are kept; NULL: "pool" */
	uint64_t limit;        /* most bytes the pool may hold; 0: 16 MiB; rounded up to an extent */
	uint64_t floor;        /* bytes below which partly free blocks are left alone; 0: 1 MiB */
	void (*wake)(void *arg); /* low_water bytes came back while the owner waited; *any* thread, must not block */
	void *wake_arg;
	uint64_t limit_max;    /* how far leat_page_pool_set_limit() may raise it: addresses, not memory; 0: limit */
	uint64_t low_water;    /* bytes that must come back before a waiting owner is woken; 0: one granule */
	const struct leat_page_pool_provider *provider; /* NULL: the segment's memory; must outlive the pool */
	void *provider_arg;
	const struct leat_page_pool_map_ops *map; /* NULL: none; must outlive the pool */
	void *map_arg;
};

/** A snapshot; the sums hold when the owner is quiescent. All in granules unless said. */
struct leat_page_pool_stats {
	char name[32];
	uint64_t limit, committed; /* bytes */
	uint64_t alloc;            /* handed out since creation */
	uint64_t direct, remote;   /* put back, by the owner and by others (drained) */
	uint64_t outstanding;      /* alloc - direct - remote: what somebody holds, or is on its way back */
	/* where what is outstanding is: the three add up to it */
	uint64_t device;           /* posted to a device and not completed */
	uint64_t returning;        /* put by another thread, not yet drained */
	uint64_t held;             /* the rest: programs, rings, bridges, whoever; see account.h */
	/* what the cursor ran over: the three add up to alloc + uncut + what the cursor has left */
	uint64_t cut_new;          /* in a block for the first time */
	uint64_t cut_recycled;     /* in a wholly free block that was used before */
	uint64_t cut_partial;      /* in a partly free block */
	uint64_t uncut;            /* given back by the cursor unused */
	uint64_t cursor;           /* what the cursor has left */
	uint64_t slow;             /* allocations that took the slow path (count) */
	uint64_t grows;            /* pieces of memory committed (count) */
	uint64_t shrinks;          /* pieces given back (count) */
	uint64_t grow_failed;      /* a piece that could not be had (count): the next one is smaller */
	uint64_t recycled_blocks;  /* wholly free blocks that were cut, new ones too (count) */
	uint64_t partial_runs;     /* runs taken from partly free blocks (count) */
	uint64_t node_moves;       /* extents that moved to the pool's node (count) */
	uint64_t alloc_failed;     /* allocations refused (count) */
	uint32_t order;            /* of the next piece to be committed: 0 (4 KiB) .. 6 (an extent) */
	int32_t node;              /* NUMA node that memory is wanted on; -1: any */
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

/**
 * Changes how much the pool may hold, and its floor (0: as it was). A pool that holds more does not cut what is over
 * the limit any more and gives it back extent by extent as it becomes free. *any*.
 * Returns 0; -EINVAL when @limit is 0 or over opts.limit_max.
 */
LEAT_API int leat_page_pool_set_limit(struct leat_page_pool *pool, uint64_t limit, uint64_t floor);
/** Gives back what is free at the end of the pool, down to its floor. Returns bytes. *owner*. */
LEAT_API uint64_t leat_page_pool_shrink(struct leat_page_pool *pool);
/**
 * Wants memory on NUMA node @node (-1: any). Free extents of other nodes are kept aside and moved, or given back, as a
 * whole when the cursor runs out; they serve only before an allocation would fail. Where the system has no such node,
 * memory comes from wherever it is. *owner*.
 */
LEAT_API void leat_page_pool_set_node(struct leat_page_pool *pool, int node);

/**
 * Address of @run for the device, as opts.map.map said; the run's own address without opts.map. For what was merged over
 * the border of blocks it is the first block's; what leat_page_pool_alloc_pages() returned has one for all of it. *any*.
 */
LEAT_API uint64_t leat_page_pool_iova(const struct leat_page_pool *pool, struct leat_run run);
/** Before a device looks at or writes @len bytes from @off of @run; nothing without opts.map. *any*. */
LEAT_API void leat_page_pool_sync_for_device(const struct leat_page_pool *pool, struct leat_run run, uint32_t off,
					     uint32_t len);
/** Before the CPU looks at what a device wrote. *any*. */
LEAT_API void leat_page_pool_sync_for_cpu(const struct leat_page_pool *pool, struct leat_run run, uint32_t off,
					  uint32_t len);

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
 * Prepares to sleep until opts.low_water bytes have come back from other threads (or all that is out and not posted to a
 * device, if that is less): asks returning threads to call opts.wake once, then looks once more. Returns true when that
 * much had come back (do not sleep). Call it before every sleep: what the owner puts himself meanwhile does not count.
 * opts.wake may come early. When nothing is out it does not come at all. *owner*.
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
LEAT_API void leat_page_pool_put_page_slow(struct leat_run run);
/** A block of the pool has become wholly free. *owner*. */
LEAT_API void leat_page_pool_block_whole(struct leat_page_pool *pool, struct leat_block *block);

/**
 * Puts @n references (**consumes** them; the array may be reordered). Grouped by pool, neighbours go back as one range,
 * and remote returns are published once per pool and call. *any*.
 */
LEAT_API void leat_page_pool_put_page_bulk(struct leat_run *runs, unsigned int n);

/**
 * Makes a second reference to the same run: both holders put it once. The payload is then read-only for both
 * until leat_run_is_shared() says no. *any* thread that holds one.
 */
LEAT_API void leat_page_pool_get_page(struct leat_run run);
/** Whether somebody else holds the run too. Only "no" is lasting. *any* thread that holds one. */
LEAT_API bool leat_run_is_shared(struct leat_run run);

/* ---- the fast paths ---- */

/* Whether a counter is one instruction: not where a sanitizer must see who reads and writes. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define LEAT_COUNT_ASM 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef LEAT_COUNT_ASM
#endif
#endif
#endif

/** Adds to a counter that one thread writes and any thread reads. */
#ifdef LEAT_COUNT_ASM
static inline void leat_count(uint64_t *counter, uint64_t n)
{
	/* a relaxed store of its only writer's sum, which compilers make three instructions of */
	__asm__("addq %1, %0" : "+m"(*counter) : "er"(n) : "cc");
}
#else
static inline void leat_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED); /* its only writer may read it plainly */
}
#endif

/** Granules that the cursor has left. */
static inline uint32_t leat_page_pool_left(const struct leat_page_pool *pool)
{
	return (uint32_t)(pool->end - pool->cur) >> LEAT_GRANULE_SHIFT;
}

/** Moves the cursor; others read it. *owner*. */
static inline void leat_page_pool_move(struct leat_page_pool *pool, uint64_t cur)
{
	__atomic_store_n(&pool->cur, cur, __ATOMIC_RELAXED);
}

/**
 * Allocates @granules (1..64) consecutive granules within one block. **Returns** a reference, or LEAT_RUN_NONE when
 * the pool's limit is reached or the system has no memory. *owner*.
 */
static inline struct leat_run leat_page_pool_alloc(struct leat_page_pool *pool, uint32_t granules)
{
	uint64_t cur = pool->cur, size = (uint64_t)granules << LEAT_GRANULE_SHIFT;

	if (leat_unlikely(pool->end - cur < size))
		return leat_page_pool_alloc_slow(pool, granules);
	leat_page_pool_move(pool, cur + size);
	return leat_run_make(cur, granules);
}

/**
 * Allocates 2^@order pages (order 0..5: 4 KiB to 128 KiB), which lie side by side. **Returns** a reference, or
 * LEAT_RUN_NONE when the pool has no such piece now: try a smaller order (struct leat_order). *owner*.
 */
LEAT_API struct leat_run leat_page_pool_alloc_pages_slow(struct leat_page_pool *pool, uint32_t order);
#define LEAT_PAGE_ORDER_MAX 5u

static inline struct leat_run leat_page_pool_alloc_pages(struct leat_page_pool *pool, uint32_t order)
{
	if (leat_unlikely(order > LEAT_BLOCK_SHIFT - LEAT_PAGE_SHIFT))
		return leat_page_pool_alloc_pages_slow(pool, order);
	return leat_page_pool_alloc(pool, (LEAT_PAGE_SIZE / LEAT_GRANULE_SIZE) << order);
}

/**
 * Allocates at least *@size bytes (1..LEAT_PAGE_POOL_ALLOC_MAX) and says in *@size how many they are: a multiple of the
 * granule, and when the cursor's run could not hold another of the kind its rest is given along, so that truesize is
 * what is really kept. **Returns** a reference or LEAT_RUN_NONE. *owner*.
 */
static inline struct leat_run leat_page_pool_alloc_frag(struct leat_page_pool *pool, uint32_t *size)
{
	uint32_t granules = LEAT_GRANULES(*size), left;
	struct leat_run run;

	LEAT_ASSERT(*size - 1 < LEAT_PAGE_POOL_ALLOC_MAX); /* 0 and what goes round would be a run of nothing */
	run = leat_page_pool_alloc(pool, granules);
	left = leat_page_pool_left(pool);

	if (leat_unlikely(left < granules) && !leat_run_is_none(run)) {
		run.bits += (uint64_t)left << LEAT_ADDR_BITS;
		leat_page_pool_move(pool, pool->end);
	}
	*size = leat_run_size(run);
	return run;
}

/** The same as a plain pointer; NULL when memory is out. Give it back with leat_page_pool_put_va(). *owner*. */
static inline void *leat_page_pool_alloc_va(struct leat_page_pool *pool, uint32_t *size)
{
	return leat_run_start(leat_page_pool_alloc_frag(pool, size));
}

/**
 * Whether the cursor stands at the end of @run and may go back into it. What it has lies in one block: so not into a run
 * of several, and not over the border of two blocks once it has a run in the second. *owner*.
 */
static inline bool leat_page_pool_is_newest(const struct leat_page_pool *pool, struct leat_run run)
{
	return leat_run_addr(run) + leat_run_size(run) == pool->cur && !(run.bits & LEAT_RUN_LONG) &&
	       (pool->cur % LEAT_BLOCK_SIZE || pool->cur == pool->end);
}

/**
 * Gives the end of the newest allocation back to the cursor: @run keeps @granules (at least 1, at most what it has).
 * For a receiver that learns the length after the fact. Returns the reference that is left; when another allocation
 * has come between, or the run lies in several blocks, the whole run. *owner*.
 */
static inline struct leat_run leat_page_pool_trim(struct leat_page_pool *pool, struct leat_run run, uint32_t granules)
{
	if (leat_unlikely(!leat_page_pool_is_newest(pool, run)))
		return run;
	LEAT_ASSERT(granules - 1 < leat_run_granules(run)); /* what is behind it may be somebody's */
	leat_page_pool_move(pool, leat_run_addr(run) + ((uint64_t)granules << LEAT_GRANULE_SHIFT));
	return leat_run_make(leat_run_addr(run), granules);
}

static inline void leat_page_pool_put_page(struct leat_run run);

/** Gives the newest allocation back to the cursor, as if it had not been made; an older one is put. *owner*. */
static inline void leat_page_pool_cancel(struct leat_page_pool *pool, struct leat_run run)
{
	if (leat_unlikely(!leat_page_pool_is_newest(pool, run))) {
		leat_page_pool_put_page(run);
		return;
	}
	leat_page_pool_move(pool, leat_run_addr(run));
}

/** Puts one reference (**consumes** it). *any*. */
static inline void leat_page_pool_put_page(struct leat_run run)
{
	uint32_t n = (uint32_t)(run.bits >> LEAT_ADDR_BITS); /* without LEAT_RUN_LONG, which is looked at below */
	struct leat_block *block = leat_block_of(run.bits);
	struct leat_page_pool *pool = block->pool;
	uint64_t mask, free;

	if (leat_unlikely(__atomic_load_n(&pool->owner, __ATOMIC_RELAXED) != leat_thread_self ||
			  __atomic_load_n(&block->flags, __ATOMIC_RELAXED) || run.bits & LEAT_RUN_LONG)) {
		leat_page_pool_put_page_slow(run);
		return;
	}
	mask = leat_block_mask(leat_granule_idx(run.bits) % LEAT_BLOCK_GRANULES, n);
	free = block->free; /* a local: the compiler cannot know that the counter below is another object */
	LEAT_ASSERT(!(free & mask)); /* else: put twice */
	free |= mask;
	__atomic_store_n(&block->free, free, __ATOMIC_RELAXED);
	leat_count(&pool->counts.direct, n);
	if (leat_unlikely(free == ~UINT64_C(0)))
		leat_page_pool_block_whole(pool, block);
}

/** Puts what leat_page_pool_alloc_va() returned; @size is what it said. *any*. */
static inline void leat_page_pool_put_va(void *va, uint32_t size)
{
	leat_page_pool_put_page(leat_run_make((uint64_t)(uintptr_t)va, LEAT_GRANULES(size)));
}

/** Puts one reference to @pool, whose owner the caller says it is: asserted. *owner*. */
static inline void leat_page_pool_recycle_direct(struct leat_page_pool *pool, struct leat_run run)
{
	LEAT_ASSERT(leat_block_of(leat_run_addr(run))->pool == pool && pool->owner == leat_thread_self);
	leat_page_pool_put_page(run);
}

/** Counts @granules as handed to a device, or handed back by it, for the split of what is outstanding. *owner*. */
static inline void leat_page_pool_post(struct leat_page_pool *pool, uint32_t granules)
{
	leat_count(&pool->counts.posted, granules);
}

static inline void leat_page_pool_complete(struct leat_page_pool *pool, uint32_t granules)
{
	leat_count(&pool->counts.completed, granules);
}

LEAT_END_DECLS

#endif
