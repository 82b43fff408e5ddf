/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_sizing.h: how large the next posted receive buffers should be, learnt from the lengths of packets.
 *
 * It is for drivers that post buffers before they know what comes (virtio, AF_XDP): what such a buffer has too much
 * stays with the packet. Drivers that read straight into a run just cut, and give the rest back with
 * leat_page_pool_trim(), have no use for it; so far that is all of them in src/drivers/.
 *
 * A packet of L bytes takes n = ceil(L / S) buffers of S bytes and pins n * S bytes. A size is the better the less
 *
 *	sum over the window's packets of  n * (S + buffer_cost)
 *
 * is: the bytes pinned, and for each buffer a price in bytes. Sizes are multiples of LEAT_GRANULE_SIZE, so n depends
 * on L in granules only: a histogram by granules loses nothing, and nothing is ever rounded.
 *
 *   - Every half window (LEAT_RX_SIZING_HALF packets) all sizes are compared over the last two. A size that is cheaper
 *     by more than a quarter is taken at once, one that is by more than 1/32 when two looks in a row went to that side.
 *   - A step from one kind of traffic to another has been followed LEAT_RX_SIZING_SETTLE packets later at the latest:
 *     what is then asked for costs at most 1/32 more than the best. Buffers posted before are used up first.
 *   - Whatever the lengths are, there are at most two changes in LEAT_RX_SIZING_HALF * 2 packets. Large changes that go
 *     back and forth double the window, up to 2^LEAT_RX_SIZING_LEVELS times, so alternating traffic is soon judged as
 *     the mixture it is; after LEAT_RX_SIZING_QUIET half windows without that it is halved. While the window is
 *     longer, a step takes as many times longer to follow.
 *
 * A packet costs some 10 instructions, a look 1,100 (small packets only) to 4,600: together 3 to 11 ns a packet.
 *
 * What a buffer should be thought to cost (opts.buffer_cost) is a choice. One more buffer of a packet costs 10 to 17 ns
 * here (cut, posted, merged, returned); moving payload costs 12 to 16 ns a KiB. The default prices a pinned byte as one
 * that is moved: 1 KiB. By time alone it would be some 30 KiB, as bytes that nobody touches cost 0.0005 ns each, but
 * they are memory that no other packet can use.
 */
#ifndef LEAT_RX_SIZING_H
#define LEAT_RX_SIZING_H

#include <leat/xdp.h>

LEAT_BEGIN_DECLS

/** Packets between two looks at the histogram, while traffic is calm. */
#define LEAT_RX_SIZING_HALF 32u
/** Packets after which a step is followed, while traffic is calm: three half windows, and one to be sure. */
#define LEAT_RX_SIZING_SETTLE (4 * LEAT_RX_SIZING_HALF)
/** How often the window may double. */
#define LEAT_RX_SIZING_LEVELS 4u
/** Half windows without back and forth after which the window is halved. */
#define LEAT_RX_SIZING_QUIET 16u

/** Granules are counted up to this many; a longer packet counts as one of LEAT_RX_SIZING_LEN_MAX bytes. */
#define LEAT_RX_SIZING_BINS 132u
#define LEAT_RX_SIZING_LEN_MAX ((LEAT_RX_SIZING_BINS - 1) * LEAT_GRANULE_SIZE)
/** Most room, head and tail together, that leat_rx_sizing_size() adds, bytes. */
#define LEAT_RX_SIZING_ROOM_MAX 1024u

struct leat_rx_sizing_opts {
	size_t size;           /* sizeof(struct leat_rx_sizing_opts) */
	uint32_t min;          /* smallest buffer, bytes, rounded up to a granule; 0: one granule */
	uint32_t max;          /* largest, rounded down to a granule; 0: LEAT_BLOCK_SIZE, the most there is */
	uint32_t ring_entries; /* buffers that can be posted (count): together they hold opts.largest; 0: 256 */
	uint32_t largest;      /* longest packet, bytes, up to LEAT_RX_SIZING_LEN_MAX; 0: 65562 (64 KiB, and headers) */
	uint32_t buffer_cost;  /* what one more buffer costs, in bytes pinned, up to 1 MiB; 0: 1024 */
};

/** Belongs to one thread, the one that receives. Plain values, no pointers: it may be copied and forgotten. */
struct leat_rx_sizing {
	/* what every packet touches, beside its counter */
	uint16_t half;          /* where the half window that is being filled begins: 0 or LEAT_RX_SIZING_BINS */
	uint16_t left;          /* packets until the next look */
	/* the limits, granules */
	uint8_t min;
	uint8_t max;
	uint8_t frag_min;       /* least payload with which LEAT_MAX_FRAGS + 1 buffers hold the longest packet */
	/* what was learnt */
	uint8_t granules;       /* payload of a buffer now */
	uint8_t level;          /* the half window is LEAT_RX_SIZING_HALF << level packets */
	uint8_t quiet;          /* half windows since the last large change back; stops at LEAT_RX_SIZING_QUIET */
	int8_t direction;       /* of the last large change: 1 larger, -1 smaller, 0 there was none */
	int8_t wanted;          /* where the last look would have gone */
	uint32_t buffer_cost;   /* bytes */
	uint32_t changes;       /* of the size (count; goes round) */
	uint32_t reversals;     /* large changes against the direction of the last (count; goes round) */
	uint32_t pad[6];
	uint16_t seen[2 * LEAT_RX_SIZING_BINS]; /* packets by granules, 0 for those without a byte: two half windows */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_rx_sizing) == 9 * LEAT_CACHELINE, "nine lines, two of which a packet touches");

/**
 * Prepares @s, which the caller owns; there is nothing to end. It starts with what holds a packet of 1518 bytes, as far
 * as the limits allow. @opts may be NULL. Returns 0; -EINVAL when a limit is out of range, when min is over max, or
 * when the ring could not hold the longest packet, be it with LEAT_RX_SIZING_ROOM_MAX in each buffer; -E2BIG (options).
 */
LEAT_API int leat_rx_sizing_init(struct leat_rx_sizing *s, const struct leat_rx_sizing_opts *opts);

/** A half window is full: decides, and begins the next. *owner*. */
LEAT_API void leat_rx_sizing_look(struct leat_rx_sizing *s);

/**
 * Counts a packet of @len bytes, all of its buffers together and without the room in them: any number. Whatever the
 * buffers are used for, each packet should be counted, so that the size is right when a program comes or goes. *owner*.
 */
static inline void leat_rx_sizing_add(struct leat_rx_sizing *s, uint32_t len)
{
	uint32_t bytes = len < LEAT_RX_SIZING_LEN_MAX ? len : LEAT_RX_SIZING_LEN_MAX;

	s->seen[s->half + LEAT_GRANULES(bytes)]++;
	if (leat_unlikely(!--s->left))
		leat_rx_sizing_look(s);
}

/**
 * Bytes that the next posted buffer should have, a multiple of LEAT_GRANULE_SIZE. @room is what stays free before and
 * after the payload, bytes (up to LEAT_RX_SIZING_ROOM_MAX): LEAT_XDP_HEADROOM + LEAT_XDP_TAILROOM with a program
 * attached. It is added to the payload, over opts.max if need be, but not over LEAT_BLOCK_SIZE. Without room
 * neighbours merge, so small buffers do not mean many fragments; with it each buffer is one, and the payload is at
 * least what lets LEAT_MAX_FRAGS + 1 of them hold the longest packet. *owner*.
 */
static inline uint32_t leat_rx_sizing_size(const struct leat_rx_sizing *s, uint32_t room)
{
	uint32_t granules = s->granules;

	if (!room)
		return granules << LEAT_GRANULE_SHIFT;
	LEAT_ASSERT(room <= LEAT_RX_SIZING_ROOM_MAX);
	if (granules < s->frag_min)
		granules = s->frag_min;
	granules += LEAT_GRANULES(room);
	return (granules < LEAT_BLOCK_GRANULES ? granules : LEAT_BLOCK_GRANULES) << LEAT_GRANULE_SHIFT;
}

LEAT_END_DECLS

#endif
