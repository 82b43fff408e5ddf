/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_frag.h: variable-sized pieces cut from whole blocks of a page_pool.
 *
 * The cache takes a block, counts itself as a large number of holders (the *bias*), and hands pieces out by moving an
 * offset: no atomic operation at allocation, one per free. When the block is used up the cache gives its unused bias
 * back; if every piece has come back by then, the same block is cut again in place, else the last piece to come back
 * returns the block to the pool, on whatever thread.
 */
#ifndef LEAT_PAGE_FRAG_H
#define LEAT_PAGE_FRAG_H

#include <leat/page_pool.h>

LEAT_BEGIN_DECLS

/** A piece: its bytes, and the reference to put when done. The reference covers the granules the piece touches. */
struct leat_page_frag {
	uint8_t *data;       /* NULL: no piece */
	uint32_t size;       /* bytes, as asked for */
	struct leat_run run; /* put with leat_page_pool_put_page() or in bulk */
};

/** Owned by one thread, the owner of the pool. Zero-initialised with the pool set by leat_page_frag_init(). */
struct leat_page_frag_cache {
	struct leat_page_pool *pool;
	uint64_t block; /* address of the block being cut; 0: none */
	uint32_t off;   /* bytes of it used */
	int32_t bias;   /* references of the block that the cache holds */
	uint64_t reused_in_place; /* blocks that were cut again without a visit to the pool (count) */
};

/** Prepares a cache that takes its blocks from @pool (**borrows**; must outlive the cache). */
LEAT_API void leat_page_frag_init(struct leat_page_frag_cache *cache, struct leat_page_pool *pool);
/** Gives the current block's unused references back. Pieces that are out stay valid. *owner*. */
LEAT_API void leat_page_frag_drain(struct leat_page_frag_cache *cache);

LEAT_API struct leat_page_frag leat_page_frag_alloc_slow(struct leat_page_frag_cache *cache, uint32_t size,
							  uint32_t align);

/**
 * Cuts @size bytes (1..LEAT_BLOCK_SIZE) at a multiple of @align (a power of two, at most LEAT_GRANULE_SIZE).
 * **Returns** a piece whose reference the caller puts; data is NULL when the pool has no block. A piece that shall
 * carry an xdp_frame must be aligned to LEAT_GRANULE_SIZE, and its size a multiple of it: the linear part of a packet
 * has its whole run to grow into. *owner*.
 */
static inline struct leat_page_frag leat_page_frag_alloc_align(struct leat_page_frag_cache *cache, uint32_t size,
							       uint32_t align)
{
	uint32_t off = (cache->off + align - 1) & ~(align - 1);
	struct leat_page_frag frag;
	uint64_t addr;

	if (leat_unlikely(!cache->block || size > LEAT_BLOCK_SIZE || off > LEAT_BLOCK_SIZE - size))
		return leat_page_frag_alloc_slow(cache, size, align);
	addr = cache->block + off;
	cache->off = off + size;
	cache->bias--;
	frag.data = (uint8_t *)(uintptr_t)addr;
	frag.size = size;
	frag.run = leat_run_make(addr & ~(uint64_t)(LEAT_GRANULE_SIZE - 1),
				 LEAT_GRANULES((addr & (LEAT_GRANULE_SIZE - 1)) + size));
	return frag;
}

/** The same at the alignment of a cache line's eighth (8 bytes). */
static inline struct leat_page_frag leat_page_frag_alloc(struct leat_page_frag_cache *cache, uint32_t size)
{
	return leat_page_frag_alloc_align(cache, size, 8);
}

LEAT_END_DECLS

#endif
