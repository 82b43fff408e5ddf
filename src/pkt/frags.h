/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frags.h: fragments in a row, whether an skb or an xdp_frags list holds them. Any thread that holds the packet.
 *
 * Functions take the array and its count and return the new count; the holder keeps its sums (length, truesize).
 */
#ifndef LEAT_PKT_FRAGS_H
#define LEAT_PKT_FRAGS_H

#include <leat/xdp.h>

/** How bytes may become part of the fragment before them. */
enum leat_frag_join {
	LEAT_FRAG_APART, /* not at all */
	LEAT_FRAG_ADOPT, /* the runs are neighbours: they become one run, with one reference */
	LEAT_FRAG_SPARE, /* one reference keeps the memory of both: the second is put */
};

static inline uint8_t *leat_frag_data(const struct leat_frag *frag)
{
	return leat_run_start(frag->run) + frag->off;
}

/** How @run with data at @off may join @last. */
enum leat_frag_join leat_frag_can_join(const struct leat_frag *last, struct leat_run run, uint32_t off);
/** Makes @len bytes of @run part of @last, as @join says; **consumes** the reference unless @dry, which puts nothing. */
void leat_frag_join(struct leat_frag *last, struct leat_run run, uint32_t len, enum leat_frag_join join, bool dry);

/** Adds a fragment, to the last one if it joins; **consumes** the reference. The count, or -ENOSPC (nothing changed). */
int leat_frags_add(struct leat_frag *frag, uint32_t n, struct leat_frag more);

/** Takes @len bytes, which are there, from the front. What becomes empty is put, and the size of its run added to @freed. */
uint32_t leat_frags_pull(struct leat_frag *frag, uint32_t n, uint32_t len, uint32_t *freed);
/** The same from the end. */
uint32_t leat_frags_trim(struct leat_frag *frag, uint32_t n, uint32_t len, uint32_t *freed);
/** Bytes that the fragment may grow by, all its own: -EOPNOTSUPP when others may see them. */
int64_t leat_frag_room(const struct leat_frag *frag);

/** Copies @len bytes, which are there, from @off of the fragments. */
void leat_frags_copy(const struct leat_frag *frag, uint32_t n, uint32_t off, void *dst, uint32_t len);
/**
 * Puts copies from @pool in the place of what somebody else reads. *@n stays true on errors, too: -ENOMEM; -ENOSPC when
 * there would be more than LEAT_MAX_FRAGS. *owner* of @pool.
 */
int leat_frags_unshare(struct leat_page_pool *pool, struct leat_frag *frag, uint32_t *n);

/** Memory for a linear part of up to 128 KiB, or none. *owner*. */
struct leat_run leat_pkt_alloc(struct leat_page_pool *pool, uint32_t bytes);

#endif
