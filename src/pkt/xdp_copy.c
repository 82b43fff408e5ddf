/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_copy.c: where bytes of a packet are copied, because somebody else reads them, a program wants them in one piece, or
 * they are too few to keep a large buffer for. Owner of the pools.
 */
#include <errno.h>
#include <string.h>

#include "pkt/frags.h"

static uint32_t metasize_of(const struct leat_xdp_buff *xdp)
{
	return (uint32_t)(xdp->data - xdp->data_meta);
}

static uint32_t linear_len(const struct leat_xdp_buff *xdp)
{
	return (uint32_t)(xdp->data_end - xdp->data);
}

/** Copies metadata and the first @len bytes of the packet so that the latter begin at @dst. */
static void copy_out(const struct leat_xdp_buff *xdp, uint8_t *dst, uint32_t len)
{
	uint32_t metasize = metasize_of(xdp), linear = linear_len(xdp);

	memcpy(dst - metasize, xdp->data_meta, metasize + (len < linear ? len : linear));
	if (len > linear)
		leat_frags_copy(xdp->frags->frag, xdp->frags->n, 0, dst + linear, len - linear);
}

/** The linear part is now in @run. */
static void set_linear(struct leat_xdp_buff *xdp, struct leat_run run, uint8_t *data, uint32_t len)
{
	uint32_t metasize = metasize_of(xdp);

	xdp->run = run;
	xdp->data = data;
	xdp->data_end = data + len;
	xdp->data_meta = data - metasize;
}

int leat_xdp_copy_head(struct leat_page_pool *pool, struct leat_xdp_buff *xdp)
{
	uint32_t len = linear_len(xdp);
	struct leat_run run = leat_pkt_alloc(pool, LEAT_XDP_HEADROOM + len + LEAT_XDP_TAILROOM);

	if (leat_run_is_none(run))
		return -ENOMEM;
	copy_out(xdp, leat_run_start(run) + LEAT_XDP_HEADROOM, len);
	leat_page_pool_put_page(xdp->run);
	set_linear(xdp, run, leat_run_start(run) + LEAT_XDP_HEADROOM, len);
	return 0;
}

int leat_xdp_linearize(struct leat_page_pool *pool, struct leat_xdp_buff *xdp)
{
	uint32_t len = leat_xdp_buff_len(xdp);
	struct leat_run run;

	if (len > LEAT_PAGE_POOL_ALLOC_MAX - LEAT_XDP_HEADROOM - LEAT_XDP_TAILROOM)
		return -EMSGSIZE;
	run = leat_page_pool_alloc(pool, LEAT_GRANULES(LEAT_XDP_HEADROOM + len + LEAT_XDP_TAILROOM));
	if (leat_run_is_none(run))
		return -ENOMEM;
	copy_out(xdp, leat_run_start(run) + LEAT_XDP_HEADROOM, len);
	leat_xdp_return_buff(xdp);
	xdp->frags = NULL;
	set_linear(xdp, run, leat_run_start(run) + LEAT_XDP_HEADROOM, len);
	return 0;
}

int leat_xdp_unshare_frags(struct leat_page_pool *pool, struct leat_xdp_buff *xdp)
{
	return xdp->frags ? leat_frags_unshare(pool, xdp->frags->frag, &xdp->frags->n) : 0;
}

/* ---- copy-break ---- */

/** Gives a buffer back, to the cursor if it is its newest. */
static void give_back(struct leat_run run)
{
	struct leat_block *block = leat_block_of(leat_run_addr(run));

	/* a piece of a chunk, or what somebody else holds, is not the cursor's; and only its owner may look at it */
	if (__atomic_load_n(&block->pool->owner, __ATOMIC_RELAXED) == leat_thread_self &&
	    !__atomic_load_n(&block->flags, __ATOMIC_RELAXED))
		leat_page_pool_cancel(block->pool, run);
	else
		leat_page_pool_put_page(run);
}

bool leat_xdp_copy_break(struct leat_page_pool *pool, struct leat_xdp_buff *xdp, uint32_t headroom, uint32_t tailroom)
{
	uint32_t len = linear_len(xdp), begin = headroom + metasize_of(xdp);
	struct leat_run run, old = xdp->run;

	if (xdp->frags || len > LEAT_COPY_BREAK || LEAT_GRANULES(begin + len + tailroom) >= leat_run_granules(old) ||
	    leat_block_of(leat_run_addr(old))->pool == pool)
		return false;
	run = leat_pkt_alloc(pool, begin + len + tailroom);
	if (leat_run_is_none(run))
		return false;
	copy_out(xdp, leat_run_start(run) + begin, len);
	set_linear(xdp, run, leat_run_start(run) + begin, len);
	give_back(old);
	return true;
}

/* ---- a frame for one more destination ---- */

/** Makes @list the fragments of @xdp but for the first @copied bytes of its linear part. */
static void share_rest(const struct leat_xdp_buff *xdp, uint32_t copied, struct leat_xdp_frags *list)
{
	uint32_t rest = linear_len(xdp) - copied, i;

	if (rest) {
		list->frag[list->n++] = (struct leat_frag){
			xdp->run, (uint32_t)(xdp->data - leat_run_start(xdp->run)) + copied, rest
		};
		list->len = rest;
	}
	if (xdp->frags) {
		memcpy(list->frag + list->n, xdp->frags->frag, xdp->frags->n * sizeof(list->frag[0]));
		list->n += xdp->frags->n;
		list->len += xdp->frags->len;
	}
	for (i = 0; i < list->n; i++)
		leat_page_pool_get_page(list->frag[i].run);
}

/** How many of the packet's first bytes the clone has of its own. */
static uint32_t bytes_to_copy(const struct leat_xdp_buff *xdp)
{
	uint32_t len = leat_xdp_buff_len(xdp), linear = linear_len(xdp);

	if (len <= LEAT_COPY_BREAK)
		return len;
	if (linear <= LEAT_COPY_BREAK || (xdp->frags && xdp->frags->n == LEAT_MAX_FRAGS))
		return linear;
	return LEAT_COPY_BREAK;
}

struct leat_xdp_frame *leat_xdp_frame_clone(const struct leat_xdp_frame *frame, struct leat_page_pool *heads,
					    struct leat_page_pool *objs)
{
	struct leat_xdp_frags *list = NULL;
	uint32_t len, copied;
	struct leat_xdp_frame *clone;
	struct leat_xdp_buff xdp;
	struct leat_run run;

	leat_xdp_frame_to_buff(frame, &xdp);
	len = leat_xdp_buff_len(&xdp);
	copied = bytes_to_copy(&xdp);
	run = leat_pkt_alloc(heads, LEAT_XDP_HEADROOM + copied + (copied == len ? LEAT_XDP_TAILROOM : 0));
	if (leat_run_is_none(run))
		return NULL;
	if (copied < len) {
		list = leat_xdp_frags_alloc(objs);
		if (!list) {
			give_back(run);
			return NULL;
		}
		share_rest(&xdp, copied, list);
	}
	copy_out(&xdp, leat_run_start(run) + LEAT_XDP_HEADROOM, copied);
	set_linear(&xdp, run, leat_run_start(run) + LEAT_XDP_HEADROOM, copied);
	xdp.frags = list;
	clone = leat_xdp_buff_to_frame(&xdp);
	clone->port = frame->port;
	clone->queue = frame->queue;
	return clone;
}
