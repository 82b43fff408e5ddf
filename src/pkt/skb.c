/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skb.c: packets on the PASS side. One thread at a time per skb.
 *
 * Conversions move references and never copy payload. The skb's own granule comes from the polling worker's object
 * pool, and goes back to it from whatever thread frees the skb.
 */
#include <errno.h>
#include <leat/skb.h>
#include <string.h>

#include "pkt/frags.h"

struct leat_skb *leat_skb_alloc(struct leat_page_pool *objs)
{
	struct leat_run self = leat_page_pool_alloc(objs, 1);
	struct leat_skb *skb;

	if (leat_run_is_none(self))
		return NULL;
	skb = (struct leat_skb *)leat_run_start(self);
	memset(skb, 0, offsetof(struct leat_skb, frag));
	skb->self = self;
	skb->truesize = LEAT_GRANULE_SIZE;
	return skb;
}

/** References gathered for one bulk put: the most that one skb holds. */
#define SKB_RUNS (LEAT_MAX_FRAGS + 2)

static unsigned int collect(const struct leat_skb *skb, struct leat_run *runs)
{
	unsigned int i, n = 0;

	for (i = 0; i < skb->nr_frags; i++)
		runs[n++] = skb->frag[i].run;
	if (!leat_run_is_none(skb->head))
		runs[n++] = skb->head;
	runs[n++] = skb->self; /* last: the skb lies in it */
	return n;
}

void leat_skb_free(struct leat_skb *skb)
{
	struct leat_run runs[SKB_RUNS];

	if (skb)
		leat_page_pool_put_page_bulk(runs, collect(skb, runs));
}

void leat_skb_free_bulk(struct leat_skb **skbs, unsigned int n)
{
	struct leat_run runs[SKB_RUNS * 4];
	unsigned int i, n_runs = 0;

	for (i = 0; i < n; i++) {
		if (n_runs > SKB_RUNS * 3) {
			leat_page_pool_put_page_bulk(runs, n_runs);
			n_runs = 0;
		}
		n_runs += collect(skbs[i], runs + n_runs);
	}
	leat_page_pool_put_page_bulk(runs, n_runs);
}

/* ---- who has it ---- */

void leat_skb_tag(const struct leat_skb *skb, uint16_t holder)
{
	struct leat_run runs[SKB_RUNS];
	unsigned int n = collect(skb, runs);

	while (n--)
		leat_run_tag(runs[n], holder);
}

void leat_skb_park(const struct leat_skb *skb, uint16_t holder)
{
	struct leat_run runs[SKB_RUNS];
	unsigned int n = collect(skb, runs);

	while (n--)
		leat_page_pool_park(runs[n], holder);
}

void leat_skb_unpark(const struct leat_skb *skb)
{
	struct leat_run runs[SKB_RUNS];
	unsigned int n = collect(skb, runs);

	while (n--)
		leat_page_pool_unpark(runs[n]);
}

/* ---- conversions ---- */

struct leat_skb *leat_skb_from_xdp_buff(struct leat_page_pool *objs, const struct leat_xdp_buff *xdp)
{
	struct leat_skb *skb = leat_skb_alloc(objs);
	uint32_t i;

	if (!skb)
		return NULL;
	skb->head = xdp->run;
	skb->data = xdp->data;
	skb->len = (uint32_t)(xdp->data_end - xdp->data);
	skb->metasize = (uint8_t)(xdp->data - xdp->data_meta);
	skb->meta = xdp->meta;
	skb->truesize += leat_run_size(xdp->run);
	if (xdp->rxq) {
		skb->port = (uint16_t)xdp->rxq->port;
		skb->queue = (uint16_t)xdp->rxq->queue;
	}
	if (!xdp->frags)
		return skb;
	for (i = 0; i < xdp->frags->n; i++)
		leat_skb_add_rx_frag(skb, xdp->frags->frag[i].run, xdp->frags->frag[i].off, xdp->frags->frag[i].len);
	leat_page_pool_put_page(xdp->frags->self);
	return skb;
}

struct leat_skb *leat_skb_from_xdp_frame(struct leat_page_pool *objs, struct leat_xdp_frame *frame)
{
	struct leat_xdp_buff xdp;
	struct leat_skb *skb;

	leat_xdp_frame_to_buff(frame, &xdp);
	skb = leat_skb_from_xdp_buff(objs, &xdp);
	if (skb) {
		skb->port = frame->port;
		skb->queue = frame->queue;
	}
	return skb;
}

int leat_skb_to_xdp_buff(struct leat_page_pool *objs, struct leat_skb *skb, struct leat_xdp_buff *xdp)
{
	struct leat_xdp_frags *frags = NULL;

	LEAT_ASSERT(!leat_run_is_none(skb->head));
	if (skb->nr_frags) {
		frags = leat_xdp_frags_alloc(objs);
		if (!frags)
			return -ENOMEM;
		frags->n = skb->nr_frags;
		frags->len = skb->data_len;
		memcpy(frags->frag, skb->frag, skb->nr_frags * sizeof(skb->frag[0]));
	}
	xdp->data = skb->data;
	xdp->data_end = skb->data + leat_skb_headlen(skb);
	xdp->data_meta = skb->data - skb->metasize;
	xdp->run = skb->head;
	xdp->frags = frags;
	xdp->rxq = NULL;
	xdp->worker = NULL;
	xdp->meta = skb->meta;
	leat_page_pool_put_page(skb->self);
	return 0;
}

struct leat_xdp_frame *leat_skb_to_xdp_frame(struct leat_page_pool *objs, struct leat_skb *skb)
{
	uint16_t port = skb->port, queue = skb->queue;
	struct leat_xdp_frame *frame;
	struct leat_xdp_buff xdp;

	if (leat_skb_to_xdp_buff(objs, skb, &xdp))
		return NULL;
	frame = leat_xdp_buff_to_frame(&xdp);
	frame->port = port;
	frame->queue = queue;
	return frame;
}

/* ---- sharing ---- */

struct leat_skb *leat_skb_clone(struct leat_page_pool *objs, const struct leat_skb *skb)
{
	struct leat_skb *clone = leat_skb_alloc(objs);
	struct leat_run self;
	unsigned int i;

	if (!clone)
		return NULL;
	self = clone->self;
	memcpy(clone, skb, offsetof(struct leat_skb, frag) + skb->nr_frags * sizeof(skb->frag[0]));
	clone->self = self;
	if (!leat_run_is_none(skb->head))
		leat_page_pool_get_page(skb->head);
	for (i = 0; i < skb->nr_frags; i++)
		leat_page_pool_get_page(skb->frag[i].run);
	return clone;
}

bool leat_skb_is_shared(const struct leat_skb *skb)
{
	unsigned int i;

	if (!leat_run_is_none(skb->head) && leat_run_is_shared(skb->head))
		return true;
	for (i = 0; i < skb->nr_frags; i++)
		if (leat_run_is_shared(skb->frag[i].run))
			return true;
	return false;
}

/* ---- fragments ---- */

int leat_skb_add_rx_frag(struct leat_skb *skb, struct leat_run run, uint32_t off, uint32_t len)
{
	if (skb->nr_frags == LEAT_MAX_FRAGS)
		return -ENOSPC;
	skb->frag[skb->nr_frags++] = (struct leat_frag){ run, off, len };
	skb->len += len;
	skb->data_len += len;
	skb->truesize += leat_run_size(run);
	return 0;
}

bool leat_skb_can_coalesce(const struct leat_skb *skb, struct leat_run run, uint32_t off)
{
	return skb->nr_frags && leat_frag_can_join(&skb->frag[skb->nr_frags - 1], run, off) != LEAT_FRAG_APART;
}

void leat_skb_coalesce_rx_frag(struct leat_skb *skb, struct leat_run run, uint32_t off, uint32_t len)
{
	struct leat_frag *last = &skb->frag[skb->nr_frags - 1];
	enum leat_frag_join join;
	uint32_t before;

	LEAT_ASSERT(skb->nr_frags);
	join = leat_frag_can_join(last, run, off);
	LEAT_ASSERT(join != LEAT_FRAG_APART);
	before = leat_run_size(last->run);
	leat_frag_join(last, run, len, join, false);
	skb->len += len;
	skb->data_len += len;
	skb->truesize += leat_run_size(last->run) - before;
}

int leat_skb_copy_bits(const struct leat_skb *skb, uint32_t off, void *dst, uint32_t len)
{
	uint32_t headlen = leat_skb_headlen(skb), part;
	uint8_t *out = dst;

	if (off > skb->len || len > skb->len - off)
		return -EINVAL;
	if (off < headlen) {
		part = len < headlen - off ? len : headlen - off;
		memcpy(out, skb->data + off, part);
		out += part;
		len -= part;
		off += part;
	}
	leat_frags_copy(skb->frag, skb->nr_frags, off - headlen, out, len);
	return 0;
}
