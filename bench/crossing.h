/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crossing.h: objects that one core allocates and another gives back: the owner takes a burst, writes the first word of
 * each, and hands it over through a ring for one producer and one consumer; the returner reads the words and puts.
 * The two halves become part of the caller together with the functions they are given, so each allocator has its fast
 * path inline, and all of them have the same loop and the same ring.
 */
#ifndef LEAT_BENCH_CROSSING_H
#define LEAT_BENCH_CROSSING_H

#include "bench.h"
#include "netdev/ptr_ring.h"
#include "team.h"

#define CROSSING_BURST 32u
#define CROSSING_RING 1024u

/**
 * Hands @n objects (a multiple of the burst) to the rings @ring[0..@rings - 1], burst by burst in turn. @get fills a
 * burst, or returns false when nothing is free at the moment; @start is where the bytes of an object are.
 */
BENCH_INLINE void crossing_send(struct leat_ptr_ring **ring, unsigned int rings, void *arg, uint64_t n,
				bool (*get)(void *arg, uintptr_t *obj), uint64_t *(*start)(uintptr_t obj))
{
	uintptr_t obj[CROSSING_BURST];
	unsigned int i, r = 0;

	for (; n; n -= CROSSING_BURST) {
		while (!get(arg, obj))
			team_pause();
		for (i = 0; i < CROSSING_BURST; i++)
			*(volatile uint64_t *)start(obj[i]) = obj[i];
		while (leat_ptr_ring_room(ring[r], CROSSING_BURST) < CROSSING_BURST)
			team_pause();
		for (i = 0; i < CROSSING_BURST; i++)
			leat_ptr_ring_write(ring[r], i, obj[i]);
		leat_ptr_ring_publish(ring[r], CROSSING_BURST);
		r = r + 1 < rings ? r + 1 : 0;
	}
}

/** Takes @n objects and puts them; @idle is called while there are none. */
BENCH_INLINE void crossing_receive(struct leat_ptr_ring *ring, void *arg, uint64_t n,
				   void (*put)(void *arg, uintptr_t *obj, uint32_t n), uint64_t *(*start)(uintptr_t obj),
				   void (*idle)(void))
{
	uintptr_t obj[CROSSING_BURST];
	uint32_t i, some;

	while (n) {
		some = leat_ptr_ring_take(ring, obj, CROSSING_BURST);
		if (!some) {
			idle();
			continue;
		}
		for (i = 0; i < some; i++)
			(void)*(volatile uint64_t *)start(obj[i]);
		put(arg, obj, some);
		n -= some;
	}
}

#endif
