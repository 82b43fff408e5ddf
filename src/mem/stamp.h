/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stamp.h: what a cut leaves behind for reports: when each page was cut, and that tags of before are void. Owner.
 *
 * A tag (struct leat_granule.tag) names a holder, and the page's cut_seq at that time. A page of which nothing is out
 * gets a new cut_seq, so older tags are void without being touched. A page of which something is out keeps its time
 * and its cut_seq, so that what is out keeps its name; there the tags of the granules that are cut are cleared instead.
 * cut_seq has as many bits as a tag has room for; when it begins again at 0, the page's tags are cleared.
 */
#ifndef LEAT_MEM_STAMP_H
#define LEAT_MEM_STAMP_H

#include "mem/page_pool_internal.h"

/* A tag: holder in bits 11..0 (0: nobody, whatever the rest), cut_seq in 23..12, granules of the run in 31..24. */
#define LEAT_TAG_HOLDER_BITS 12
#define LEAT_TAG_SEQ_BITS 12
#define LEAT_TAG_SEQ_MASK ((1u << LEAT_TAG_SEQ_BITS) - 1)
#define LEAT_TAG_GRANULES_MAX 255u /* that, or more */

/** Clears the tags of the granules in @mask of the block at @addr. */
static inline void leat_block_clear_tags(uint64_t addr, uint64_t mask)
{
	struct leat_granule *granule = leat_granule_of(addr);

	for (; mask; mask &= mask - 1)
		__atomic_store_n(&granule[__builtin_ctzll(mask)].tag, 0, __ATOMIC_RELAXED);
}

/** One page of which the granules in @mask, all of them within the page, are cut. */
static inline void leat_page_stamp(struct leat_block *block, uint64_t addr, uint32_t page, uint64_t mask, uint32_t now)
{
	uint64_t all = leat_block_mask(page * LEAT_PAGE_GRANULES, LEAT_PAGE_GRANULES);
	uint16_t seq = (uint16_t)((block->cut_seq[page] + 1u) & LEAT_TAG_SEQ_MASK);

	if ((block->free & all) != all) {
		leat_block_clear_tags(addr, mask);
		return;
	}
	__atomic_store_n(&block->cut_ms[page], now, __ATOMIC_RELAXED);
	__atomic_store_n(&block->cut_seq[page], seq, __ATOMIC_RELAXED);
	if (leat_unlikely(!seq))
		leat_block_clear_tags(addr, all);
}

/** Granules [bit, bit + n) of the block at @addr are about to be cut, not all of it: block->free is still as before. */
static inline void leat_block_stamp(struct leat_block *block, uint64_t addr, uint32_t bit, uint32_t n, uint32_t now)
{
	uint64_t mask = leat_block_mask(bit, n);
	uint32_t page;

	for (page = bit / LEAT_PAGE_GRANULES; page <= (bit + n - 1) / LEAT_PAGE_GRANULES; page++)
		leat_page_stamp(block, addr, page, mask & leat_block_mask(page * LEAT_PAGE_GRANULES, LEAT_PAGE_GRANULES),
				now);
}

/** All of a block that was wholly free is cut: several pages at a step. @both is the time in both its halves. */
static inline void leat_block_stamp_whole(struct leat_block *block, uint64_t addr, uint64_t both)
{
	const uint64_t one = UINT64_C(0x0001000100010001);
	uint64_t *ms = (uint64_t *)(void *)block->cut_ms, *seq = (uint64_t *)(void *)block->cut_seq;
	uint64_t low = seq[0] + one, high = seq[1] + one;

	__atomic_store_n(&ms[0], both, __ATOMIC_RELAXED);
	__atomic_store_n(&ms[1], both, __ATOMIC_RELAXED);
	__atomic_store_n(&ms[2], both, __ATOMIC_RELAXED);
	__atomic_store_n(&ms[3], both, __ATOMIC_RELAXED);
	if (leat_unlikely((low | high) & one << LEAT_TAG_SEQ_BITS)) { /* at least one begins again */
		low &= one * LEAT_TAG_SEQ_MASK;
		high &= one * LEAT_TAG_SEQ_MASK;
		leat_block_clear_tags(addr, ~UINT64_C(0));
	}
	__atomic_store_n(&seq[0], low, __ATOMIC_RELAXED);
	__atomic_store_n(&seq[1], high, __ATOMIC_RELAXED);
}
LEAT_STATIC_ASSERT(offsetof(struct leat_block, cut_ms) % 8 == 0 && offsetof(struct leat_block, cut_seq) % 8 == 0 &&
		   LEAT_BLOCK_PAGES == 8, "stamps are written in words");

#endif
