/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_frame.c: moving the edges of a packet under a program, fragments, and returning frames. Any thread.
 */
#include <errno.h>
#include <leat/xdp.h>
#include <string.h>

#include "pkt/frags.h"

const char *leat_xdp_action_name(uint32_t action)
{
	static const char *const names[LEAT_XDP_ACTIONS] = { "aborted", "drop", "pass", "tx", "redirect" };

	return action < LEAT_XDP_ACTIONS ? names[action] : "unknown";
}

/* ---- edges ---- */

int leat_xdp_adjust_head(struct leat_xdp_buff *xdp, int delta)
{
	ptrdiff_t metasize = xdp->data - xdp->data_meta;
	ptrdiff_t room = xdp->data_meta - leat_run_start(xdp->run) - (ptrdiff_t)LEAT_XDP_FRAME_ROOM;

	if ((delta < 0 && -(ptrdiff_t)delta > room) || delta > xdp->data_end - xdp->data - (ptrdiff_t)LEAT_ETH_HLEN)
		return -EINVAL;
	if (metasize)
		memmove(xdp->data_meta + delta, xdp->data_meta, (size_t)metasize);
	xdp->data_meta += delta;
	xdp->data += delta;
	return 0;
}

static int grow_frags(struct leat_xdp_frags *frags, uint32_t more)
{
	struct leat_frag *last = &frags->frag[frags->n - 1];
	int64_t room = leat_frag_room(last);

	if (room < 0)
		return (int)room;
	if (more > room)
		return -EINVAL;
	memset(leat_frag_data(last) + last->len, 0, more);
	last->len += more;
	frags->len += more;
	return 0;
}

/** Takes @cut bytes from the end; what is left is an Ethernet header at least. */
static void shrink_frags(struct leat_xdp_buff *xdp, uint32_t cut)
{
	struct leat_xdp_frags *frags = xdp->frags;
	uint32_t part = cut < frags->len ? cut : frags->len, freed = 0;

	frags->n = leat_frags_trim(frags->frag, frags->n, part, &freed);
	frags->len -= part;
	if (frags->len)
		return;
	xdp->data_end -= cut - part;
	xdp->frags = NULL;
	leat_page_pool_put_page(frags->self);
}

static int adjust_tail_frags(struct leat_xdp_buff *xdp, int delta)
{
	if (delta > 0)
		return grow_frags(xdp->frags, (uint32_t)delta);
	if (-(int64_t)delta > (int64_t)leat_xdp_buff_len(xdp) - LEAT_ETH_HLEN)
		return -EINVAL;
	if (delta)
		shrink_frags(xdp, (uint32_t)-delta);
	return 0;
}

int leat_xdp_adjust_tail(struct leat_xdp_buff *xdp, int delta)
{
	ptrdiff_t room = leat_run_start(xdp->run) + leat_run_size(xdp->run) - LEAT_XDP_TAILROOM - xdp->data_end;

	if (leat_unlikely(xdp->frags && xdp->frags->n))
		return adjust_tail_frags(xdp, delta);
	if ((delta > 0 && delta > room) ||
	    -(ptrdiff_t)delta > xdp->data_end - xdp->data - (ptrdiff_t)LEAT_ETH_HLEN)
		return -EINVAL;
	if (delta > 0)
		memset(xdp->data_end, 0, (size_t)delta);
	xdp->data_end += delta;
	return 0;
}

int leat_xdp_adjust_meta(struct leat_xdp_buff *xdp, int delta)
{
	ptrdiff_t metasize = xdp->data - xdp->data_meta - delta;

	if (metasize < 0 || metasize > xdp->data - leat_run_start(xdp->run) - (ptrdiff_t)LEAT_XDP_FRAME_ROOM)
		return -EINVAL;
	if (metasize > (ptrdiff_t)LEAT_XDP_META_MAX || metasize % 4)
		return -EACCES;
	xdp->data_meta += delta;
	return 0;
}

/* ---- who has it ---- */

/** Calls @fn for every run. */
static void for_each_run(const struct leat_xdp_frame *frame, void (*fn)(struct leat_run run, uint16_t holder),
			 uint16_t holder)
{
	uint32_t i;

	fn(leat_xdp_frame_run(frame), holder);
	if (!frame->frags)
		return;
	fn(frame->frags->self, holder);
	for (i = 0; i < frame->frags->n; i++)
		fn(frame->frags->frag[i].run, holder);
}

static void unpark(struct leat_run run, uint16_t holder)
{
	(void)holder;
	leat_page_pool_unpark(run);
}

void leat_xdp_frame_tag(const struct leat_xdp_frame *frame, uint16_t holder)
{
	for_each_run(frame, leat_run_tag, holder);
}

void leat_xdp_frame_park(const struct leat_xdp_frame *frame, uint16_t holder)
{
	for_each_run(frame, leat_page_pool_park, holder);
}

void leat_xdp_frame_unpark(const struct leat_xdp_frame *frame)
{
	for_each_run(frame, unpark, LEAT_HOLDER_NONE);
}

/* ---- fragments ---- */

uint32_t leat_xdp_frags_truesize(const struct leat_xdp_frags *frags)
{
	uint32_t i, size = leat_run_size(frags->self);

	for (i = 0; i < frags->n; i++)
		size += leat_run_size(frags->frag[i].run);
	return size;
}

struct leat_xdp_frags *leat_xdp_frags_alloc(struct leat_page_pool *objs)
{
	struct leat_run self = leat_page_pool_alloc(objs, 1);
	struct leat_xdp_frags *frags;

	if (leat_run_is_none(self))
		return NULL;
	frags = (struct leat_xdp_frags *)leat_run_start(self);
	frags->self = self;
	frags->n = 0;
	frags->len = 0;
	return frags;
}

int leat_xdp_buff_add_frag(struct leat_xdp_buff *xdp, struct leat_run run, uint32_t off, uint32_t len)
{
	struct leat_xdp_frags *frags = xdp->frags;
	int n = leat_frags_add(frags->frag, frags->n, (struct leat_frag){ run, off, len });

	if (n < 0)
		return n;
	frags->n = (uint32_t)n;
	frags->len += len;
	return 0;
}

/* ---- return ---- */

/** References gathered for one bulk put. */
struct gather {
	unsigned int n;
	struct leat_run runs[64];
};

static inline void gather_add(struct gather *g, struct leat_run run)
{
	if (g->n == sizeof(g->runs) / sizeof(g->runs[0])) {
		leat_page_pool_put_page_bulk(g->runs, g->n);
		g->n = 0;
	}
	g->runs[g->n++] = run;
}

static void gather_frags(struct gather *g, const struct leat_xdp_frags *frags)
{
	struct leat_run self = frags->self;
	uint32_t i, n = frags->n;

	for (i = 0; i < n; i++)
		gather_add(g, frags->frag[i].run);
	gather_add(g, self); /* last: the list lies in it */
}

static inline void gather_frame(struct gather *g, const struct leat_xdp_frame *frame)
{
	if (leat_unlikely(frame->frags))
		gather_frags(g, frame->frags);
	gather_add(g, leat_xdp_frame_run(frame));
}

void leat_xdp_return_frame_bulk(struct leat_xdp_frame **frames, unsigned int n)
{
	struct gather g;
	unsigned int i;

	g.n = 0;
	for (i = 0; i < n; i++)
		gather_frame(&g, frames[i]);
	leat_page_pool_put_page_bulk(g.runs, g.n);
}

void leat_xdp_return_frame(struct leat_xdp_frame *frame)
{
	if (leat_unlikely(frame->frags))
		leat_xdp_return_frame_bulk(&frame, 1);
	else
		leat_page_pool_put_page(leat_xdp_frame_run(frame));
}

void leat_xdp_return_buff(struct leat_xdp_buff *xdp)
{
	struct gather g;

	if (leat_unlikely(xdp->frags)) {
		g.n = 0;
		gather_frags(&g, xdp->frags);
		leat_page_pool_put_page_bulk(g.runs, g.n);
	}
	leat_page_pool_put_page(xdp->run);
}
