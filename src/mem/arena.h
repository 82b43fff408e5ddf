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
	uint32_t committed; /* extents that have memory */
};

/**
 * Takes range->extents consecutive extents of addresses and a reference to the segment. Returns 0 with range->addr
 * set, or -ENOSPC. *any*.
 */
int leat_segment_take(struct leat_segment *segment, struct leat_segment_range *range);
/** Gives the range back with its memory, and the reference. May end the segment. *any*. */
void leat_segment_give(struct leat_segment *segment, struct leat_segment_range *range);
/** Calls @fn for each range that is taken, under the arena's lock. *any*. */
void leat_segment_for_each_range(struct leat_segment *segment, void (*fn)(struct leat_segment_range *range, void *arg),
				 void *arg);
/** Puts memory behind the range's next extent and its descriptors, so that no later touch faults. 0 or -ENOMEM. */
int leat_segment_commit(struct leat_segment *segment, struct leat_segment_range *range);

#endif
