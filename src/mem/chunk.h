/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk.h: what a block's descriptor says of the chunks that a page_frag_cache cuts from it.
 *
 * Several chunks of one block, and ordinary runs beside them, are begun, put and ended on different threads at once.
 * Each page belongs to one of them at a time, and whoever has a page may write its byte in leat_block.chunk; another
 * thread reads the byte of a page only when it holds something of it. So bytes need no order of their own: they travel
 * with the runs. The block's flags are shared by all: they are set by OR, and cleared by who has the whole block.
 */
#ifndef LEAT_MEM_CHUNK_H
#define LEAT_MEM_CHUNK_H

#include <leat/page_pool.h>

static inline uint32_t leat_page_in_block(uint64_t addr)
{
	return (uint32_t)(addr >> LEAT_PAGE_SHIFT) % LEAT_BLOCK_PAGES;
}

/** Number of the first page of the chunk that @addr is in, in its block; false: it is in none. */
static inline bool leat_chunk_find(uint64_t addr, uint32_t *first)
{
	uint8_t mark = __atomic_load_n(&leat_block_of(addr)->chunk[leat_page_in_block(addr)], __ATOMIC_RELAXED);

	*first = mark - 1u;
	return mark;
}

/** The count of the chunk that begins at @addr. */
static inline int32_t *leat_chunk_refs(uint64_t addr)
{
	return &leat_block_of(addr)->refs[leat_page_in_block(addr)];
}

/** Marks [addr, addr + size) as a chunk with @refs references, all the caller's. */
static inline void leat_chunk_begin(uint64_t addr, uint32_t size, int32_t refs)
{
	struct leat_block *block = leat_block_of(addr);
	uint32_t first = leat_page_in_block(addr), page;

	for (page = first; page < first + size / LEAT_PAGE_SIZE; page++)
		__atomic_store_n(&block->chunk[page], (uint8_t)(first + 1), __ATOMIC_RELAXED);
	__atomic_store_n(&block->refs[first], refs, __ATOMIC_RELAXED);
	if (size == LEAT_BLOCK_SIZE) /* nobody else has anything of the block: what was shared of it is over */
		__atomic_store_n(&block->flags, LEAT_BLOCK_FRAG, __ATOMIC_RELAXED);
	else
		__atomic_fetch_or(&block->flags, LEAT_BLOCK_FRAG, __ATOMIC_RELAXED);
}

/** The chunk that begins at @addr, which nobody has anything of, is one no more. Returns its granules. */
static inline uint32_t leat_chunk_end(uint64_t addr)
{
	struct leat_block *block = leat_block_of(addr);
	uint32_t first = leat_page_in_block(addr), page;

	for (page = first; page < LEAT_BLOCK_PAGES; page++) {
		if (__atomic_load_n(&block->chunk[page], __ATOMIC_RELAXED) != first + 1)
			break;
		__atomic_store_n(&block->chunk[page], 0, __ATOMIC_RELAXED);
	}
	if (page - first == LEAT_BLOCK_PAGES)
		__atomic_store_n(&block->flags, 0, __ATOMIC_RELAXED);
	return (page - first) * LEAT_PAGE_GRANULES;
}

#endif
