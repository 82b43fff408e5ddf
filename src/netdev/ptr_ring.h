/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ptr_ring.h: pointers from one producer (the holder of a transmit queue's lock) to one consumer (a poll).
 *
 * Indices run freely; each side keeps a copy of the other's and reads the shared one only when the copy says full or
 * empty, so a bulk costs one release store. Unlike a ring of NULLs it is never full while it has room.
 */
#ifndef LEAT_NETDEV_PTR_RING_H
#define LEAT_NETDEV_PTR_RING_H

#include <leat/base.h>

#include "base/heap.h"

struct leat_ptr_ring {
	uint32_t mask; /* room less one; constant */
	/* producer */
	uint32_t head LEAT_CACHELINE_ALIGNED; /* published (atomic) */
	uint32_t tail_seen;
	/* consumer */
	uint32_t tail LEAT_CACHELINE_ALIGNED; /* taken (atomic) */
	uint32_t head_seen;
	uintptr_t slot[] LEAT_CACHELINE_ALIGNED;
};

/** Makes a ring with room for @size pointers, a power of two; NULL when memory is out. */
static inline struct leat_ptr_ring *leat_ptr_ring_create(uint32_t size)
{
	struct leat_ptr_ring *ring = leat_heap_zalloc(sizeof(*ring) + size * sizeof(ring->slot[0]));

	LEAT_ASSERT(size && !(size & (size - 1)));
	if (ring)
		ring->mask = size - 1;
	return ring;
}

static inline void leat_ptr_ring_destroy(struct leat_ptr_ring *ring)
{
	leat_heap_free(ring);
}

/** How many of @n pointers there is room for. *producer*. */
static inline uint32_t leat_ptr_ring_room(struct leat_ptr_ring *ring, uint32_t n)
{
	uint32_t room = ring->mask + 1 - (ring->head - ring->tail_seen);

	if (room < n) {
		/* pairs with leat_ptr_ring_take(): what the consumer read there is read */
		ring->tail_seen = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		room = ring->mask + 1 - (ring->head - ring->tail_seen);
	}
	return room < n ? room : n;
}

/** Writes the @i-th of the pointers that leat_ptr_ring_room() had room for. *producer*. */
static inline void leat_ptr_ring_write(struct leat_ptr_ring *ring, uint32_t i, uintptr_t ptr)
{
	ring->slot[(ring->head + i) & ring->mask] = ptr;
}

/** Publishes @n written pointers. *producer*. */
static inline void leat_ptr_ring_publish(struct leat_ptr_ring *ring, uint32_t n)
{
	__atomic_store_n(&ring->head, ring->head + n, __ATOMIC_RELEASE); /* pairs with leat_ptr_ring_take() */
}

/** Takes up to @n pointers, oldest first; returns how many. *consumer*. */
static inline uint32_t leat_ptr_ring_take(struct leat_ptr_ring *ring, uintptr_t *ptrs, uint32_t n)
{
	uint32_t i, have = ring->head_seen - ring->tail;

	if (have < n) {
		ring->head_seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE); /* pairs with publish */
		have = ring->head_seen - ring->tail;
	}
	if (have < n)
		n = have;
	for (i = 0; i < n; i++)
		ptrs[i] = ring->slot[(ring->tail + i) & ring->mask];
	__atomic_store_n(&ring->tail, ring->tail + n, __ATOMIC_RELEASE); /* pairs with leat_ptr_ring_room() */
	return n;
}

#endif
