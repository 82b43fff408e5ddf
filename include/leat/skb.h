/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skb.h: a packet on the PASS side of a program: bridges, TAP, the embedding program.
 *
 * An skb is one granule of private memory: the linear part's reference, up to LEAT_MAX_FRAGS fragments, and what is
 * known of the packet. It belongs to one thread at a time; clones share the payload, never the skb.
 *
 * There is no list of further skbs behind the fragments, as the kernel has. Neighbours merge, so LEAT_MAX_FRAGS is a
 * limit of places and not of bytes: what a queue receives back to back is one fragment, whatever its length. A receiver
 * of a longer chain of scattered buffers copies the small ones together or ends the packet; so no reader of packets
 * (bridge, TAP, capture) has a second loop to forget.
 */
#ifndef LEAT_SKB_H
#define LEAT_SKB_H

#include <leat/xdp.h>

LEAT_BEGIN_DECLS

struct leat_skb {
	struct leat_run self; /* the granule this skb lives in */
	struct leat_run head; /* reference of the linear part */
	uint8_t *data;        /* first byte of the packet */
	uint32_t len;         /* bytes of the whole packet */
	uint32_t data_len;    /* bytes of it in fragments; the linear part has len - data_len */
	uint32_t truesize;    /* bytes of memory that the packet keeps, its skb included */
	uint16_t nr_frags;
	uint16_t port;        /* where it came in */
	uint16_t queue;
	uint8_t metasize;     /* bytes of XDP metadata before data */
	uint8_t pad[5];
	struct leat_pkt_meta meta;
	struct leat_frag frag[LEAT_MAX_FRAGS];
};
LEAT_STATIC_ASSERT(sizeof(struct leat_skb) <= LEAT_GRANULE_SIZE, "an skb is one granule");

static inline uint32_t leat_skb_headlen(const struct leat_skb *skb)
{
	return skb->len - skb->data_len;
}

/** Makes an empty skb from @objs (no head, no length); NULL when memory is out. *owner* of @objs. */
LEAT_API struct leat_skb *leat_skb_alloc(struct leat_page_pool *objs);
/** Puts every reference and the skb itself (**consumes**; NULL allowed). *any*. */
LEAT_API void leat_skb_free(struct leat_skb *skb);
/** The same for @n of them, grouped by pool. *any*. */
LEAT_API void leat_skb_free_bulk(struct leat_skb **skbs, unsigned int n);

/** Writes @holder's tag into every run of an skb. See account.h. */
LEAT_API void leat_skb_tag(const struct leat_skb *skb, uint16_t holder);
/** An skb is put where it may stay, or taken from there: leat_page_pool_park() for every run. **Borrows**. */
LEAT_API void leat_skb_park(const struct leat_skb *skb, uint16_t holder);
LEAT_API void leat_skb_unpark(const struct leat_skb *skb);

/** Says that @holder has the skb now: recorded for a sample. */
static inline void leat_skb_hold(const struct leat_skb *skb, uint16_t holder)
{
	/* the skb is the start of its own run */
	if (leat_run_is_sampled(leat_run_make((uint64_t)(uintptr_t)skb, 1)) || leat_run_is_sampled(skb->head))
		leat_skb_tag(skb, holder);
}

/**
 * Makes an skb of a received packet: the references move. Returns NULL when memory is out (the caller keeps @xdp).
 * *owner* of @objs.
 */
LEAT_API struct leat_skb *leat_skb_from_xdp_buff(struct leat_page_pool *objs, const struct leat_xdp_buff *xdp);
/** The same from a frame; **consumes** it on success. */
LEAT_API struct leat_skb *leat_skb_from_xdp_frame(struct leat_page_pool *objs, struct leat_xdp_frame *frame);
/**
 * Turns an skb into a buff: the references move and the skb's granule is put; rxq and worker are set by the receive
 * path. An skb with fragments needs a fragment list from @objs. Returns 0, or -ENOMEM (the caller keeps the skb). The
 * skb must have a head. Shared payload stays shared: see leat_run_is_shared(). *owner* of @objs.
 */
LEAT_API int leat_skb_to_xdp_buff(struct leat_page_pool *objs, struct leat_skb *skb, struct leat_xdp_buff *xdp);
/**
 * Makes a frame of an skb, likewise. Returns NULL when memory is out (the caller keeps the skb). The head must not be
 * shared: the frame is the descriptor of its first granule, and that cannot describe the packets of two holders.
 * *owner* of @objs.
 */
LEAT_API struct leat_xdp_frame *leat_skb_to_xdp_frame(struct leat_page_pool *objs, struct leat_skb *skb);

/** Makes a second skb over the same payload, read-only for both. NULL when memory is out. *owner* of @objs. */
LEAT_API struct leat_skb *leat_skb_clone(struct leat_page_pool *objs, const struct leat_skb *skb);
/** Whether some part of the payload has another holder. Only "no" is lasting. */
LEAT_API bool leat_skb_is_shared(const struct leat_skb *skb);

/**
 * Adds @len bytes at @off of @run as a new fragment and adopts the reference. Returns 0, or -ENOSPC at LEAT_MAX_FRAGS
 * (the caller keeps the reference).
 */
LEAT_API int leat_skb_add_rx_frag(struct leat_skb *skb, struct leat_run run, uint32_t off, uint32_t len);
/**
 * Whether @run with data at @off follows the last fragment's data without a gap and the two may have one reference:
 * the runs are neighbours in one pool and nobody else holds either; or they are the same run, held twice; or they are
 * pieces of one page_frag chunk.
 */
LEAT_API bool leat_skb_can_coalesce(const struct leat_skb *skb, struct leat_run run, uint32_t off);
/**
 * Grows the last fragment by @len bytes at @off of @run, which leat_skb_can_coalesce() allowed, and **consumes** the
 * reference: neighbours become one run, a reference that is one too many is put.
 */
LEAT_API void leat_skb_coalesce_rx_frag(struct leat_skb *skb, struct leat_run run, uint32_t off, uint32_t len);

/**
 * Moves all of @from's payload to the end of @to, from whatever pools they come, and **consumes** @from; its metadata
 * goes with it. Up to LEAT_COPY_BREAK bytes are copied where @to is linear and has room; else head and fragments move
 * with their references and merge with their neighbours. Clones may be joined, too: their payload stays shared and
 * read-only. @delta (may be NULL) gets the bytes that @to->truesize grew by. Returns false when @to would have more
 * than LEAT_MAX_FRAGS (both are as they were). *any* thread that holds both.
 */
LEAT_API bool leat_skb_try_coalesce(struct leat_skb *to, struct leat_skb *from, uint32_t *delta);

/* ---- edges ---- */

/**
 * Bytes before the packet that leat_skb_push() may take; 0 when the head is somebody else's, too. They include XDP
 * metadata, which is of the packet as it came in: it ends with the first push or pull.
 */
LEAT_API uint32_t leat_skb_headroom(const struct leat_skb *skb);
/** Bytes after a linear packet; 0 when it has fragments or the head is somebody else's, too. */
LEAT_API uint32_t leat_skb_tailroom(const struct leat_skb *skb);
/** Moves the start back by @len bytes. Returns the new first byte, or NULL when the headroom is less (unchanged). */
LEAT_API uint8_t *leat_skb_push(struct leat_skb *skb, uint32_t len);
/**
 * Takes @len bytes from the front, those of fragments included; fragments that become empty are put at once, the head
 * stays. Returns 0, or -EINVAL when the packet is shorter (unchanged).
 */
LEAT_API int leat_skb_pull(struct leat_skb *skb, uint32_t len);
/** Cuts the packet to @len bytes, likewise. Returns 0, or -EINVAL when it is shorter (unchanged). */
LEAT_API int leat_skb_trim(struct leat_skb *skb, uint32_t len);

/**
 * Makes the first @len bytes linear, in the tailroom if they fit there and it is nobody else's, else in a new head from
 * @pool with LEAT_XDP_HEADROOM. Pointers into the head end. Returns 0, or (unchanged) -EINVAL when the packet is
 * shorter; -ENOMEM when memory is out or @len is over 127 KiB. *owner* of @pool.
 */
LEAT_API int leat_skb_may_pull(struct leat_skb *skb, uint32_t len, struct leat_page_pool *pool);
/** Makes all of it linear, likewise. */
LEAT_API int leat_skb_linearize(struct leat_skb *skb, struct leat_page_pool *pool);
/**
 * Before writing to a packet: puts copies from @pool in the place of whatever somebody else reads, the head with
 * LEAT_XDP_HEADROOM. Returns 0, or -ENOMEM, -ENOSPC (see leat_xdp_unshare_frags()). *owner* of @pool.
 */
LEAT_API int leat_skb_unshare(struct leat_skb *skb, struct leat_page_pool *pool);

/**
 * Copies @len bytes from @off of the packet to @dst. Returns 0, or -EINVAL when the packet is shorter.
 */
LEAT_API int leat_skb_copy_bits(const struct leat_skb *skb, uint32_t off, void *dst, uint32_t len);

LEAT_END_DECLS

#endif
