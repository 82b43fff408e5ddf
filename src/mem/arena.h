/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.h: what pools ask of a segment: a range of addresses, and memory behind parts of it. */
#ifndef LEAT_MEM_ARENA_H
#define LEAT_MEM_ARENA_H

#include <leat/arena.h>

/**
 * Takes @extents consecutive extents of addresses and a reference to the segment. Returns 0 and the first address, or
 * -ENOSPC. *any*.
 */
int leat_segment_take(struct leat_segment *segment, uint32_t extents, uint64_t *addr);
/** Gives the range back with its @committed extents, and the reference. May end the segment. *any*. */
void leat_segment_give(struct leat_segment *segment, uint64_t addr, uint32_t extents, uint32_t committed);
/** Puts memory behind one extent and its descriptors, so that no later touch faults. Returns 0 or -ENOMEM. *any*. */
int leat_segment_commit(struct leat_segment *segment, uint64_t addr);

#endif
