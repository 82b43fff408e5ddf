/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp.h: a packet while a program looks at it (xdp_buff), and while it travels (xdp_frame).
 *
 * An xdp_buff lives on the stack of the poll that received the packet. An xdp_frame is the private descriptor of the
 * packet's first granule: found from the data address, never inside the buffer, so that turning one into the other
 * copies a few words, cannot fail and leaves headroom alone.
 *
 *   run:  | headroom          | metadata | packet bytes            | tailroom      |
 *         ^ run start         ^ data_meta ^ data                   ^ data_end
 *
 * Programs see the kernel's limits: LEAT_XDP_HEADROOM bytes before the packet as received, metadata among them, of which
 * it may not grow into the first LEAT_XDP_FRAME_ROOM, nor into the last LEAT_XDP_TAILROOM bytes of the buffer.
 */
#ifndef LEAT_XDP_H
#define LEAT_XDP_H

#include <leat/account.h>

LEAT_BEGIN_DECLS

/** Verdicts, with the numbers of the kernel's enum xdp_action. */
enum leat_xdp_action {
	LEAT_XDP_ABORTED,
	LEAT_XDP_DROP,
	LEAT_XDP_PASS,
	LEAT_XDP_TX,
	LEAT_XDP_REDIRECT,
};
#define LEAT_XDP_ACTIONS 5

/** The name in lower case ("pass"), or "unknown". */
LEAT_API const char *leat_xdp_action_name(uint32_t action);

#define LEAT_XDP_HEADROOM 256u
#define LEAT_XDP_TAILROOM 320u
/** Of the headroom, the first bytes that a program may not grow into: the kernel keeps its frame there. */
#define LEAT_XDP_FRAME_ROOM 40u
/** Fragments of one packet beside its linear part. */
#define LEAT_MAX_FRAGS 17u
/** A packet of up to this many bytes is copied rather than shared, or kept in a large buffer. */
#define LEAT_COPY_BREAK 256u
/** Longest metadata before a packet, bytes; a multiple of 4. */
#define LEAT_XDP_META_MAX 252u
/** Ethernet header, bytes (IEEE 802.3, 3.1). A shorter packet is a runt. */
#define LEAT_ETH_HLEN 14u
/** One 802.1Q tag, bytes (IEEE 802.1Q, 9.5). */
#define LEAT_VLAN_HLEN 4u

/* Bits of leat_pkt_meta.flags: which members hold something. */
#define LEAT_META_TIMESTAMP 0x1u
#define LEAT_META_HASH 0x2u
#define LEAT_META_VLAN 0x4u
#define LEAT_META_CSUM_PARTIAL 0x8u /* the checksum at csum_start + csum_offset is still to be filled in */
#define LEAT_META_CSUM_VALID 0x10u  /* somebody we trust has checked it */

/** What is known of a packet beside its bytes. Travels with it through every conversion. */
struct leat_pkt_meta {
	uint64_t timestamp;   /* nanoseconds since 1970-01-01 UTC */
	uint32_t hash;        /* flow hash */
	uint16_t vlan_tci;    /* IEEE 802.1Q TCI, host order */
	uint16_t csum_start;  /* bytes from data */
	uint16_t csum_offset; /* bytes from csum_start */
	uint16_t flags;       /* LEAT_META_* */
	uint32_t pad;
};

/** One fragment: a reference, and the bytes of it that belong to the packet. */
struct leat_frag {
	struct leat_run run;
	uint32_t off; /* bytes from the start of the run */
	uint32_t len;
};

/** Fragment list of a multi-buffer packet: one granule of private memory. */
struct leat_xdp_frags {
	struct leat_run self;  /* the granule this list lives in */
	uint32_t n;            /* fragments in use */
	uint32_t len;          /* bytes in all fragments */
	struct leat_frag frag[LEAT_MAX_FRAGS];
};
LEAT_STATIC_ASSERT(sizeof(struct leat_xdp_frags) <= LEAT_GRANULE_SIZE, "a fragment list is one granule");

/** Where a packet came in. Belongs to the port. */
struct leat_xdp_rxq {
	struct leat_netdev *dev;
	uint32_t port;  /* number of the port, as programs see it (ingress_ifindex) */
	uint32_t queue; /* number of the receive queue */
};

/** A packet under a program. All of its run belongs to the linear part. */
struct leat_xdp_buff {
	uint8_t *data;      /* first byte of the packet */
	uint8_t *data_end;  /* one past the last byte of the linear part */
	uint8_t *data_meta; /* first byte of metadata; data when there is none */
	struct leat_run run;           /* reference of the linear part */
	struct leat_xdp_frags *frags;  /* NULL for a linear packet */
	const struct leat_xdp_rxq *rxq;
	struct leat_worker *worker;    /* whose poll this is; what programs see as the CPU */
	struct leat_pkt_meta meta;
};

/** A packet on its way: what the descriptor of its first granule holds beside the share count. */
struct leat_xdp_frame {
	int32_t shares;    /* not part of the frame: see struct leat_granule */
	uint32_t len;      /* bytes of the linear part */
	uint8_t *data;
	uint16_t granules; /* of the linear part's run: the upper bits of its word */
	uint8_t metasize;  /* bytes of metadata before data */
	uint8_t pad;
	struct leat_xdp_frags *frags; /* NULL for a linear packet */
	struct leat_pkt_meta meta;
	uint16_t port;  /* where it came in */
	uint16_t queue;
	uint32_t tag; /* not part of the frame, either */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_xdp_frame) == sizeof(struct leat_granule), "a frame is a granule's descriptor");

/** Frames that leave a port by one call (the kernel's DEV_MAP_BULK_SIZE). */
#define LEAT_XDP_BULK 16

/** Frames on their way to one port, gathered within one poll. */
struct leat_xdp_bulk {
	unsigned int n;
	struct leat_xdp_frame *frames[LEAT_XDP_BULK];
};

/** The descriptor of the granule at @addr. */
static inline struct leat_xdp_frame *leat_xdp_frame_at(uint64_t addr)
{
	return (struct leat_xdp_frame *)leat_granule_of(addr);
}

/** The reference of a frame's linear part. */
static inline struct leat_run leat_xdp_frame_run(const struct leat_xdp_frame *frame)
{
	uint64_t addr = (uint64_t)(uintptr_t)frame, base = leat_arena_base(addr);

	return leat_run_make(base + ((addr - base) << LEAT_GRANULE_DESC_SHIFT), frame->granules);
}

/** Bytes of the whole packet. */
static inline uint32_t leat_xdp_frame_len(const struct leat_xdp_frame *frame)
{
	return frame->len + (frame->frags ? frame->frags->len : 0);
}

/** Bytes of memory in fragments and their list. */
LEAT_API uint32_t leat_xdp_frags_truesize(const struct leat_xdp_frags *frags);

/** Bytes of memory that a frame keeps. */
static inline uint32_t leat_xdp_frame_truesize(const struct leat_xdp_frame *frame)
{
	uint32_t size = (frame->granules & LEAT_RUN_GRANULES_MAX) << LEAT_GRANULE_SHIFT;

	return leat_unlikely(frame->frags != NULL) ? size + leat_xdp_frags_truesize(frame->frags) : size;
}

/** Writes @holder's tag into every run of a frame. See account.h. */
LEAT_API void leat_xdp_frame_tag(const struct leat_xdp_frame *frame, uint16_t holder);
/** A frame is put where it may stay, or taken from there: leat_page_pool_park() for every run. **Borrows**. */
LEAT_API void leat_xdp_frame_park(const struct leat_xdp_frame *frame, uint16_t holder);
LEAT_API void leat_xdp_frame_unpark(const struct leat_xdp_frame *frame);

/** Says that @holder has the frame now: recorded for a sample. */
static inline void leat_xdp_frame_hold(const struct leat_xdp_frame *frame, uint16_t holder)
{
	if (leat_run_is_sampled(leat_xdp_frame_run(frame)))
		leat_xdp_frame_tag(frame, holder);
}

static inline uint32_t leat_xdp_buff_len(const struct leat_xdp_buff *xdp)
{
	return (uint32_t)(xdp->data_end - xdp->data) + (xdp->frags ? xdp->frags->len : 0);
}

/**
 * Prepares @xdp for a packet of @len bytes that begins @headroom bytes into @run (**consumes** the reference), without
 * metadata; rxq and worker are set by the receive path.
 */
static inline void leat_xdp_buff_init(struct leat_xdp_buff *xdp, struct leat_run run, uint32_t headroom, uint32_t len)
{
	struct leat_pkt_meta none = { 0, 0, 0, 0, 0, 0, 0 };

	xdp->data = leat_run_start(run) + headroom;
	xdp->data_end = xdp->data + len;
	xdp->data_meta = xdp->data;
	xdp->run = run;
	xdp->frags = NULL;
	xdp->rxq = NULL;
	xdp->worker = NULL;
	xdp->meta = none;
}

/** Turns a buff into a frame: the reference moves. Never fails. @port and @queue say where it came in. */
static inline struct leat_xdp_frame *leat_xdp_buff_to_frame(const struct leat_xdp_buff *xdp)
{
	struct leat_xdp_frame *frame = leat_xdp_frame_at(leat_run_addr(xdp->run));

	frame->data = xdp->data;
	frame->len = (uint32_t)(xdp->data_end - xdp->data);
	frame->granules = (uint16_t)(xdp->run.bits >> LEAT_ADDR_BITS);
	frame->metasize = (uint8_t)(xdp->data - xdp->data_meta);
	frame->frags = xdp->frags;
	frame->meta = xdp->meta;
	frame->port = xdp->rxq ? (uint16_t)xdp->rxq->port : 0;
	frame->queue = xdp->rxq ? (uint16_t)xdp->rxq->queue : 0;
	return frame;
}

/** Turns a frame into a buff: the reference moves. */
static inline void leat_xdp_frame_to_buff(const struct leat_xdp_frame *frame, struct leat_xdp_buff *xdp)
{
	xdp->data = frame->data;
	xdp->data_end = frame->data + frame->len;
	xdp->data_meta = frame->data - frame->metasize;
	xdp->run = leat_xdp_frame_run(frame);
	xdp->frags = frame->frags;
	xdp->rxq = NULL;
	xdp->worker = NULL;
	xdp->meta = frame->meta;
}

/**
 * Moves the start of the packet by @delta bytes (negative: grows into the headroom), as bpf_xdp_adjust_head: at least
 * LEAT_ETH_HLEN bytes stay; metadata moves along. Returns 0 or -EINVAL (nothing changed).
 */
LEAT_API int leat_xdp_adjust_head(struct leat_xdp_buff *xdp, int delta);
/**
 * Moves the end of the packet by @delta bytes, as bpf_xdp_adjust_tail; new bytes are zero. Fragments that become empty
 * are put, and with the last of them the list: the packet is linear then. A packet with fragments grows in the last
 * one, as far as its run goes. Returns 0, or (nothing changed) -EINVAL when less than LEAT_ETH_HLEN bytes would stay,
 * the tailroom of the linear part would be touched or the run ends; -EOPNOTSUPP when others may see the bytes that the
 * last fragment would grow into.
 */
LEAT_API int leat_xdp_adjust_tail(struct leat_xdp_buff *xdp, int delta);
/**
 * Moves the start of the metadata by @delta bytes, as bpf_xdp_adjust_meta. Returns 0; -EINVAL when it would leave the
 * headroom or pass the packet's start; -EACCES when the length would not be a multiple of 4 up to LEAT_XDP_META_MAX.
 */
LEAT_API int leat_xdp_adjust_meta(struct leat_xdp_buff *xdp, int delta);

/** Puts every reference of a frame (**consumes** it). *any*. */
LEAT_API void leat_xdp_return_frame(struct leat_xdp_frame *frame);
/** The same for @n frames, grouped by pool, neighbours as one range. *any*. */
LEAT_API void leat_xdp_return_frame_bulk(struct leat_xdp_frame **frames, unsigned int n);
/** Puts every reference of a buff (**consumes** it). *any*. */
LEAT_API void leat_xdp_return_buff(struct leat_xdp_buff *xdp);

/** Makes a fragment list with room for LEAT_MAX_FRAGS from @objs; NULL when memory is out. *owner* of @objs. */
LEAT_API struct leat_xdp_frags *leat_xdp_frags_alloc(struct leat_page_pool *objs);
/**
 * Adds a fragment to a buff that has a list, to the last one if the bytes are neighbours and both may have one
 * reference (see leat_skb_can_coalesce()). Adopts the reference on success. Returns 0, or -ENOSPC at LEAT_MAX_FRAGS (the
 * caller keeps the reference).
 */
LEAT_API int leat_xdp_buff_add_frag(struct leat_xdp_buff *xdp, struct leat_run run, uint32_t off, uint32_t len);

/* ---- copies; the memory comes from @pool, whose owner the caller is ---- */

/**
 * Makes a second frame of the same packet, for another destination; **borrows** @frame and leaves its descriptor alone.
 *
 * The head is always the clone's own, with LEAT_XDP_HEADROOM before it, so that each destination may push and pop
 * headers. A packet of up to LEAT_COPY_BREAK bytes is copied whole, with LEAT_XDP_TAILROOM. Of a longer one the first
 * LEAT_COPY_BREAK bytes of the linear part are copied: with the headroom that is one granule, and it holds the headers
 * of a tunnelled packet (Ethernet, two tags, IPv6, UDP, VXLAN, and the same again inside: 180 bytes). The rest of the
 * linear part becomes the first fragment, and fragments are shared: read-only until leat_run_is_shared() says no. (A
 * packet that has LEAT_MAX_FRAGS fragments gets its linear part copied.) Metadata of both kinds, port and queue are
 * the same.
 *
 * @heads gives the head, @objs the fragment list. NULL when memory is out: nothing has changed. *owner* of both.
 */
LEAT_API struct leat_xdp_frame *leat_xdp_frame_clone(const struct leat_xdp_frame *frame, struct leat_page_pool *heads,
						     struct leat_page_pool *objs);
/**
 * Moves the packet's bytes into one buffer with LEAT_XDP_HEADROOM and LEAT_XDP_TAILROOM, nobody else's; metadata moves
 * along. Returns 0, or (nothing changed) -EMSGSIZE when that is more than LEAT_PAGE_POOL_ALLOC_MAX; -ENOMEM.
 */
LEAT_API int leat_xdp_linearize(struct leat_page_pool *pool, struct leat_xdp_buff *xdp);
/** The same for the linear part only, up to 128 KiB; fragments stay as they are. 0, or -ENOMEM (nothing changed). */
LEAT_API int leat_xdp_copy_head(struct leat_page_pool *pool, struct leat_xdp_buff *xdp);
/**
 * Puts copies in the place of fragments that somebody else reads. Returns 0; -ENOMEM; -ENOSPC when the copies, a block
 * each at most, would be more than LEAT_MAX_FRAGS. The packet's bytes are the same in any case.
 */
LEAT_API int leat_xdp_unshare_frags(struct leat_page_pool *pool, struct leat_xdp_buff *xdp);
/**
 * Moves a linear packet of up to LEAT_COPY_BREAK bytes into a buffer from @pool with @headroom and @tailroom bytes, and
 * gives the one it had back: to the cursor if it was its newest, else by a put. Metadata moves along, beside @headroom.
 *
 * For a driver that posts buffers before it knows lengths, between the arrival of a packet and leat_rx_packet(), with
 * the headroom and tailroom that struct leat_rx asks for: packets that are held for long then lie close together and do
 * not keep blocks of the receive pool from becoming whole. A driver that allocates when the packet is there already
 * trims instead (leat_page_pool_trim()), which needs no copy. Counting a posted buffer as completed is the driver's.
 *
 * Returns false and leaves the packet as it is when it is longer or has fragments, when its buffer is of @pool or
 * no larger than the new one, or when memory is out. *owner*.
 */
LEAT_API bool leat_xdp_copy_break(struct leat_page_pool *pool, struct leat_xdp_buff *xdp, uint32_t headroom,
				  uint32_t tailroom);

LEAT_END_DECLS

#endif
