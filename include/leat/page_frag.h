/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag.h: variable-sized pieces cut from chunks of a page_pool.
 *
 * The cache takes a *chunk* of 32 KiB (or 16, 8, 4 when there are no more such), counts itself as a large number of
 * holders (the *bias*), and hands pieces out by moving an offset: no atomic operation at allocation, one per put. When
 * the chunk is used up the cache gives its unused bias back; if every piece has come back by then, the same chunk is
 * cut again in place (but for one over the pool's limit or of another node), else the last piece to come back returns the
 * chunk to the pool, on whatever thread.
 *
 *	alloc, alloc_align	a piece of a known size
 *	prepare -> commit	as much as there is; what was used of it becomes a piece (read(2) straight into it)
 *	        -> commit_more	... and again, without a further reference: the piece grows in place
 *	probe			what is left of the chunk, without taking a new one
 *	abort			undoes the newest alloc or commit
 *	drain			gives up the chunk; pieces that are out stay valid
 */
#ifndef LEAT_PAGE_FRAG_H
#define LEAT_PAGE_FRAG_H

#include <leat/page_pool.h>

LEAT_BEGIN_DECLS

/** Largest piece: a whole chunk of the largest order. */
#define LEAT_PAGE_FRAG_MAX LEAT_BLOCK_SIZE

/** A piece: its bytes, and the reference to put when done. The reference covers the granules the piece touches. */
struct leat_page_frag {
	uint8_t *data;       /* NULL: no piece */
	uint32_t size;       /* bytes */
	struct leat_run run; /* put with leat_page_pool_put_page() or in bulk; none while only prepared */
};

/** Owned by one thread, the owner of the pool. Zero-initialised with the pool set by leat_page_frag_init(). */
struct leat_page_frag_cache {
	struct leat_page_pool *pool;
	uint64_t chunk; /* address of the chunk being cut */
	uint32_t size;  /* bytes of it; 0: there is none */
	uint32_t off;   /* bytes of it used */
	uint32_t undo;  /* off before the newest piece; LEAT_PAGE_FRAG_NO_UNDO: nothing to abort */
	int32_t bias;   /* references of the chunk that the cache holds */
	struct leat_order order;
	uint64_t reused_in_place; /* chunks that were cut again without a visit to the pool (count) */
	uint64_t smaller;         /* chunks below the largest order (count) */
};

#define LEAT_PAGE_FRAG_NO_UNDO UINT32_MAX

/** Prepares a cache that takes its chunks from @pool (**borrows**; must outlive the cache). */
LEAT_API void leat_page_frag_init(struct leat_page_frag_cache *cache, struct leat_page_pool *pool);
/** Gives the current chunk's unused references back. Pieces that are out stay valid. *owner*. */
LEAT_API void leat_page_frag_drain(struct leat_page_frag_cache *cache);

LEAT_API struct leat_page_frag leat_page_frag_alloc_slow(struct leat_page_frag_cache *cache, uint32_t size,
							  uint32_t align);

static inline uint32_t leat_page_frag_align(uint32_t off, uint32_t align)
{
	return (off + align - 1) & ~(align - 1);
}

/** The reference of @size bytes at @addr: the granules that they touch. */
static inline struct leat_run leat_page_frag_run(uint64_t addr, uint32_t size)
{
	uint32_t in_granule = (uint32_t)addr % LEAT_GRANULE_SIZE;

	return leat_run_make(addr - in_granule, LEAT_GRANULES(in_granule + size));
}

/**
 * Cuts @size bytes (1..LEAT_PAGE_FRAG_MAX) at a multiple of @align (a power of two, at most LEAT_PAGE_SIZE).
 * **Returns** a piece whose reference the caller puts; data is NULL when the pool has no chunk of that size (smaller
 * pieces may still be had). A piece that shall carry an xdp_frame must be aligned to LEAT_GRANULE_SIZE, and its size a
 * multiple of it: the linear part of a packet has its whole run to grow into. *owner*.
 */
static inline struct leat_page_frag leat_page_frag_alloc_align(struct leat_page_frag_cache *cache, uint32_t size,
							       uint32_t align)
{
	uint32_t off = leat_page_frag_align(cache->off, align);
	struct leat_page_frag frag;
	uint64_t addr;

	if (leat_unlikely((uint64_t)off + (uint32_t)(size - 1) >= cache->size)) /* 0, too, which is caught there */
		return leat_page_frag_alloc_slow(cache, size, align);
	addr = cache->chunk + off;
	cache->undo = cache->off;
	cache->off = off + size;
	cache->bias--;
	frag.data = (uint8_t *)(uintptr_t)addr;
	frag.size = size;
	frag.run = leat_page_frag_run(addr, size);
	return frag;
}

/** The same at a multiple of 8. */
static inline struct leat_page_frag leat_page_frag_alloc(struct leat_page_frag_cache *cache, uint32_t size)
{
	return leat_page_frag_alloc_align(cache, size, 8);
}

/**
 * What is left of the current chunk at a multiple of @align: bytes that may be written and then committed. data is NULL
 * when nothing is. No reference is taken. Valid until the next alloc, prepare or drain. *owner*.
 */
LEAT_API struct leat_page_frag leat_page_frag_probe(const struct leat_page_frag_cache *cache, uint32_t align);
/** The same, of a fresh chunk when fewer than @size bytes are left (1..LEAT_PAGE_FRAG_MAX). data NULL: none. *owner*. */
LEAT_API struct leat_page_frag leat_page_frag_prepare(struct leat_page_frag_cache *cache, uint32_t size,
						      uint32_t align);
/**
 * Makes the first @used bytes (1..@prepared.size) of what the newest prepare or probe said a piece. **Returns** it, with
 * its reference. *owner*.
 */
LEAT_API struct leat_page_frag leat_page_frag_commit(struct leat_page_frag_cache *cache,
						     struct leat_page_frag prepared, uint32_t used);
/**
 * Adds the @used bytes that follow @frag, the newest piece, to it. They must be left (probe with an alignment of 1).
 * @frag keeps its one reference. *owner*.
 */
LEAT_API void leat_page_frag_commit_more(struct leat_page_frag_cache *cache, struct leat_page_frag *frag,
					 uint32_t used);
/** Undoes the newest alloc or commit, of which @frag came (**consumes** it), once. *owner*. */
LEAT_API void leat_page_frag_abort(struct leat_page_frag_cache *cache, struct leat_page_frag frag);

LEAT_END_DECLS

#endif
