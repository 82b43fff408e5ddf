/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: puts that the inline path does not take, and sharing. Any thread.
 *
 * A run that was never shared has one holder. leat_page_pool_get_page() counts a further holder at the run's first
 * granule and marks the blocks it touches, so that puts of other runs do not look. The mark goes when the whole block is
 * cut again. In a chunk that a page_frag_cache cut (chunk.h), each reference is one of the chunk's count instead, and the
 * mark stands for every piece of it.
 */
#include "mem/chunk.h"
#include "mem/page_pool_internal.h"

/** Whether this put is the last one of a run that may have been shared, and begins at @addr. */
static bool last_share(uint64_t addr)
{
	struct leat_granule *granule = leat_granule_of(addr);

	/* acquire: what other holders read or wrote happens before the memory is used again; pairs with the release */
	if (!__atomic_load_n(&granule->shares, __ATOMIC_ACQUIRE))
		return true;
	if (__atomic_fetch_sub(&granule->shares, 1, __ATOMIC_ACQ_REL))
		return false;
	__atomic_store_n(&granule->shares, 0, __ATOMIC_RELAXED); /* two put at once: the second goes below zero */
	return true;
}

/** Whether this put is the last one of the chunk with this count. */
static bool last_frag(int32_t *refs)
{
	if (__atomic_load_n(refs, __ATOMIC_ACQUIRE) != 1 && __atomic_fetch_sub(refs, 1, __ATOMIC_ACQ_REL) != 1)
		return false;
	__atomic_store_n(refs, 0, __ATOMIC_RELAXED);
	return true;
}

/* ---- from references to ranges of granules ---- */

/** Pools whose returns one bulk put keeps open. */
#define PUT_POOLS 4u

/** What a put or a bulk put gathers: granules of one block of ours, and ranges for pools of other threads. */
struct putter {
	struct leat_block *block; /* NULL: none */
	uint64_t mask;
	uint32_t granules;          /* in the mask */
	struct leat_returner *last; /* place of the pool that was met last; NULL: none was */
	unsigned int next;          /* place to give up when all are taken */
	struct leat_returner remote[PUT_POOLS];
};

/** Sets only what says that there is nothing yet. */
static inline void putter_init(struct putter *p)
{
	unsigned int i;

	p->block = NULL;
	p->last = NULL;
	p->next = 0;
	for (i = 0; i < PUT_POOLS; i++) {
		p->remote[i].pool = NULL;
		p->remote[i].n = 0;
	}
}

/** Frees what was gathered of a block of ours. */
static inline void flush_own(const struct putter *p)
{
	struct leat_block *block = p->block;
	struct leat_page_pool *pool = block->pool;
	uint64_t free = block->free;

	LEAT_ASSERT(!(free & p->mask)); /* else: put twice */
	free |= p->mask;
	__atomic_store_n(&block->free, free, __ATOMIC_RELAXED);
	leat_count(&pool->counts.direct, p->granules);
	if (free == ~UINT64_C(0))
		leat_page_pool_block_whole(pool, block);
}

static inline void put_own(struct putter *p, struct leat_block *block, uint32_t bit, uint32_t n)
{
	uint64_t mask = leat_block_mask(bit, n);

	if (p->block == block) {
		LEAT_ASSERT(!(p->mask & mask)); /* else: put twice */
		p->mask |= mask;
		p->granules += n;
		return;
	}
	if (p->block)
		flush_own(p);
	p->block = block;
	p->mask = mask;
	p->granules = n;
}

/**
 * The place for returns to @pool: its own, a free one, or one that is flushed for it. A thread that shares a ring holds
 * that ring's lock meanwhile, so it has one open at a time: two such threads would else wait for each other.
 */
static struct leat_returner *remote_for(struct putter *p, const struct leat_page_pool *pool)
{
	struct leat_returner *r, *free = NULL;

	if (leat_likely(p->last && p->last->pool == pool))
		return p->last;
	for (r = p->remote; r < p->remote + PUT_POOLS; r++) {
		if (r->pool == pool)
			return p->last = r;
		if (r->pool && leat_returner_holds_lock(r))
			leat_returner_flush(r);
		if (!r->pool)
			free = r;
	}
	if (!free) {
		free = &p->remote[p->next++ % PUT_POOLS];
		leat_returner_flush(free);
	}
	return p->last = free;
}

static inline void flush(struct putter *p)
{
	unsigned int i;

	if (p->block)
		flush_own(p);
	for (i = 0; p->last && i < PUT_POOLS; i++)
		if (p->remote[i].pool)
			leat_returner_flush(&p->remote[i]);
}

/** Frees @n granules from @addr on, which lie in one block. */
static inline void put_in_block(struct putter *p, uint64_t addr, uint32_t n)
{
	struct leat_block *block = leat_block_of(addr);
	struct leat_page_pool *pool = block->pool;
	uint32_t first = leat_granule_idx(addr);

	if (__atomic_load_n(&pool->owner, __ATOMIC_RELAXED) == leat_thread_self)
		put_own(p, block, first % LEAT_BLOCK_GRANULES, n);
	else
		leat_returner_add(remote_for(p, pool), pool, first, n);
}

/** The same for granules that may lie in several blocks. */
static void put_range(struct putter *p, uint64_t addr, uint32_t n)
{
	uint32_t part;

	for (; n; n -= part, addr += (uint64_t)part << LEAT_GRANULE_SHIFT) {
		part = LEAT_BLOCK_GRANULES - leat_granule_idx(addr) % LEAT_BLOCK_GRANULES;
		part = part < n ? part : n;
		put_in_block(p, addr, part);
	}
}

/**
 * Whether this was the last reference of what lies at *@addr, *@n granules, in @block; if so, they say what is free now:
 * for a piece, its whole chunk.
 */
static inline bool last_reference(struct leat_block *block, uint64_t *addr, uint32_t *n)
{
	uint32_t flags = __atomic_load_n(&block->flags, __ATOMIC_RELAXED), first;

	if (flags & LEAT_BLOCK_FRAG && leat_chunk_find(*addr, &first)) {
		if (!last_frag(&block->refs[first]))
			return false;
		*addr = (*addr & ~(uint64_t)(LEAT_BLOCK_SIZE - 1)) + ((uint64_t)first << LEAT_PAGE_SHIFT);
		*n = leat_chunk_end(*addr);
		return true;
	}
	return !(flags & LEAT_BLOCK_SHARED) || last_share(*addr);
}

static void put_one(struct putter *p, struct leat_run run)
{
	uint64_t addr = leat_run_addr(run);
	uint32_t n = leat_run_granules(run);

	if (last_reference(leat_block_of(addr), &addr, &n))
		put_range(p, addr, n);
}

/** @n granules from @addr on, on their own. */
static __attribute__((noinline)) void put_alone(uint64_t addr, uint32_t n)
{
	struct putter p;

	putter_init(&p);
	put_range(&p, addr, n);
	flush(&p);
}

/** A run of another thread's pool, within one block. */
static void put_remote(struct leat_page_pool *pool, struct leat_run run)
{
	struct leat_returner r = { .pool = NULL };

	leat_returner_add(&r, pool, leat_granule_idx(run.bits), leat_run_granules(run));
	leat_returner_flush(&r);
}

void leat_page_pool_put_page_slow(struct leat_run run)
{
	struct leat_block *block = leat_block_of(run.bits);
	uint64_t addr = leat_run_addr(run);
	uint32_t n = leat_run_granules(run);

	if (!last_reference(block, &addr, &n))
		return;
	if (!(run.bits & LEAT_RUN_LONG) && addr == leat_run_addr(run) && n == leat_run_granules(run) &&
	    __atomic_load_n(&block->pool->owner, __ATOMIC_RELAXED) != leat_thread_self)
		put_remote(block->pool, run);
	else
		put_alone(addr, n);
}

/**
 * The runs from @run on, before @stop, that lie side by side in one block, beginning with the first: where they end in
 * memory, in *@end, and all their bits together, in *@bits. Behind a run that may cross a block there is no telling: then
 * LEAT_RUN_LONG is in *@bits. Returns the first run that is none of them.
 */
static inline const struct leat_run *side_by_side(const struct leat_run *run, const struct leat_run *stop, uint64_t *end,
						  uint64_t *bits)
{
	uint64_t next = leat_run_addr(*run), any = 0;

	do {
		any |= run->bits;
		next += run->bits >> LEAT_ADDR_BITS << LEAT_GRANULE_SHIFT;
		run++;
	} while (run < stop && leat_run_addr(*run) == next && next % LEAT_BLOCK_SIZE);
	*end = next;
	*bits = any;
	return run;
}

/*
 * Runs of one block have one pool and one word of flags: neighbours are looked at together. The flags may be set by
 * others meanwhile, but not for a run of ours: whoever has a run has seen what its sharing set.
 */
void leat_page_pool_put_page_bulk(struct leat_run *runs, unsigned int n)
{
	const struct leat_run *run = runs, *stop = runs + n, *next;
	struct putter p;
	uint64_t first, end, bits;

	putter_init(&p);
	for (; run < stop; run = next) {
		next = side_by_side(run, stop, &end, &bits);
		first = leat_run_addr(*run);
		if (leat_likely(!(bits & LEAT_RUN_LONG ||
				  __atomic_load_n(&leat_block_of(first)->flags, __ATOMIC_RELAXED)))) {
			put_in_block(&p, first, (uint32_t)((end - first) >> LEAT_GRANULE_SHIFT));
			continue;
		}
		for (; run < next; run++)
			put_one(&p, *run);
	}
	flush(&p);
}

/* ---- sharing ---- */

void leat_page_pool_get_page(struct leat_run run)
{
	uint64_t addr = leat_run_addr(run);
	uint64_t end = addr + leat_run_size(run);
	struct leat_block *block = leat_block_of(addr);
	uint32_t first;

	if (__atomic_load_n(&block->flags, __ATOMIC_RELAXED) & LEAT_BLOCK_FRAG && leat_chunk_find(addr, &first)) {
		__atomic_fetch_add(&block->refs[first], 1, __ATOMIC_RELAXED);
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
	uint32_t flags = __atomic_load_n(&block->flags, __ATOMIC_RELAXED), first;

	/* a chunk's count is of all its pieces: which of them has two holders cannot be told */
	if (flags & LEAT_BLOCK_FRAG && leat_chunk_find(leat_run_addr(run), &first))
		return flags & LEAT_BLOCK_SHARED;
	/* acquire: the other holder's last look happens before we write; pairs with last_share() */
	return flags & LEAT_BLOCK_SHARED &&
	       __atomic_load_n(&leat_granule_of(leat_run_addr(run))->shares, __ATOMIC_ACQUIRE) != 0;
}
