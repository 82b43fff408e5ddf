/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extent_map.h: which extents of an address range are taken. First fit, for the control path; the caller locks.
 */
#ifndef LEAT_MEM_EXTENT_MAP_H
#define LEAT_MEM_EXTENT_MAP_H

#include "base/heap.h"

struct leat_extent_map {
	uint8_t *taken; /* a byte per extent */
	uint32_t n;
};

static inline bool leat_extent_map_init(struct leat_extent_map *map, uint32_t n)
{
	map->taken = leat_heap_zalloc(n);
	map->n = n;
	return map->taken;
}

static inline void leat_extent_map_fini(struct leat_extent_map *map)
{
	leat_heap_free(map->taken);
}

/** Takes @n consecutive extents; returns the first, or -1. */
static inline int64_t leat_extent_map_take(struct leat_extent_map *map, uint32_t n)
{
	uint32_t i, free = 0;

	for (i = 0; i < map->n; i++) {
		free = map->taken[i] ? 0 : free + 1;
		if (free == n) {
			for (free = 0; free < n; free++)
				map->taken[i - free] = 1;
			return (int64_t)i - n + 1;
		}
	}
	return -1;
}

static inline void leat_extent_map_give(struct leat_extent_map *map, uint32_t first, uint32_t n)
{
	while (n--)
		map->taken[first + n] = 0;
}

#endif
