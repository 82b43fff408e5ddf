/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.h: what pools ask of a segment: a range of addresses, and memory behind parts of it. */
#ifndef LEAT_MEM_ARENA_H
#define LEAT_MEM_ARENA_H

#include <leat/arena.h>

/** A pool's place in its segment. */
struct leat_segment_range {
	struct leat_segment_range *next; /* the segment's, under the arena's lock */
	uint64_t addr;
	uint32_t extents;
};

/**
 * Takes range->extents consecutive extents of addresses and a reference to the segment. Returns 0 with range->addr
 * set, or -ENOSPC. *any*.
 */
int leat_segment_take(struct leat_segment *segment, struct leat_segment_range *range);
/** Gives the range back, from which all memory has gone, and the reference. May end the segment. *any*. */
void leat_segment_give(struct leat_segment *segment, struct leat_segment_range *range);
/** Calls @fn for each range that is taken, under the arena's lock. *any*. */
void leat_segment_for_each_range(struct leat_segment *segment, void (*fn)(struct leat_segment_range *range, void *arg),
				 void *arg);
/** The smallest order of pages that memory can be had in: 0 unless the system's page is larger than 4 KiB. */
unsigned int leat_segment_min_order(void);
/** Puts memory behind the descriptors of [addr, addr + bytes), so that no later touch faults. 0 or -ENOMEM. *any*. */
int leat_segment_describe(uint64_t addr, uint64_t bytes);
/**
 * Puts the segment's memory behind [addr, addr + bytes), whole pages of the system, so that no later touch faults; from
 * NUMA node @node if that can be had (-1: any). Returns 0 or -ENOMEM, with nothing left behind. *any*.
 */
int leat_segment_commit(struct leat_segment *segment, uint64_t addr, uint64_t bytes, int node);
/** Takes it away again: what stood there is gone. *any*. */
void leat_segment_decommit(struct leat_segment *segment, uint64_t addr, uint64_t bytes);

#endif
