/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skb_edit.c: moving the edges of an skb, joining two, and making bytes linear or private. One thread at a time per skb.
 *
 * What an skb says of its packet is its own, the payload may be a clone's, too: edges move and packets are joined
 * whoever reads along, and only what would write is refused or copied.
 */
#include <errno.h>
#include <leat/skb.h>
#include <string.h>

#include "pkt/frags.h"

/** Whether the bytes around the linear part are this skb's alone. */
static bool has_own_head(const struct leat_skb *skb)
{
	return !leat_run_is_none(skb->head) && !leat_run_is_shared(skb->head);
}

uint32_t leat_skb_headroom(const struct leat_skb *skb)
{
	return has_own_head(skb) ? (uint32_t)(skb->data - leat_run_start(skb->head)) : 0;
}

/** Bytes after the linear part. */
static uint32_t head_end_room(const struct leat_skb *skb)
{
	if (!has_own_head(skb))
		return 0;
	return leat_run_size(skb->head) - (uint32_t)(skb->data - leat_run_start(skb->head)) - leat_skb_headlen(skb);
}

uint32_t leat_skb_tailroom(const struct leat_skb *skb)
{
	return skb->nr_frags ? 0 : head_end_room(skb);
}

/* ---- edges ---- */

uint8_t *leat_skb_push(struct leat_skb *skb, uint32_t len)
{
	if (len > leat_skb_headroom(skb))
		return NULL;
	skb->metasize = 0;
	skb->data -= len;
	skb->len += len;
	return skb->data;
}

/** Takes @len bytes, which are there, from the front of the fragments. */
static void pull_frags(struct leat_skb *skb, uint32_t len)
{
	uint32_t freed = 0;

	skb->nr_frags = (uint16_t)leat_frags_pull(skb->frag, skb->nr_frags, len, &freed);
	skb->data_len -= len;
	skb->truesize -= freed;
}

int leat_skb_pull(struct leat_skb *skb, uint32_t len)
{
	uint32_t headlen = leat_skb_headlen(skb), part = len < headlen ? len : headlen;

	if (len > skb->len)
		return -EINVAL;
	skb->metasize = 0;
	if (part)
		skb->data += part;
	if (len > part)
		pull_frags(skb, len - part);
	skb->len -= len;
	return 0;
}

int leat_skb_trim(struct leat_skb *skb, uint32_t len)
{
	uint32_t cut, freed = 0;

	if (len > skb->len)
		return -EINVAL;
	cut = skb->len - len;
	if (cut > skb->data_len)
		cut = skb->data_len;
	if (cut) {
		skb->nr_frags = (uint16_t)leat_frags_trim(skb->frag, skb->nr_frags, cut, &freed);
		skb->data_len -= cut;
		skb->truesize -= freed;
	}
	skb->len = len;
	return 0;
}

/* ---- linear ---- */

/** Gives the skb a head of its own with the first @len bytes of the packet, which are not less than it has linear. */
static int new_head(struct leat_skb *skb, uint32_t len, struct leat_page_pool *pool)
{
	struct leat_run run = leat_pkt_alloc(pool, LEAT_XDP_HEADROOM + len);
	uint32_t headlen = leat_skb_headlen(skb), size = 0;
	uint8_t *data;

	if (leat_run_is_none(run))
		return -ENOMEM;
	data = leat_run_start(run) + LEAT_XDP_HEADROOM;
	if (!leat_run_is_none(skb->head)) {
		memcpy(data - skb->metasize, skb->data - skb->metasize, skb->metasize + headlen);
		size = leat_run_size(skb->head);
		leat_page_pool_put_page(skb->head);
	}
	leat_frags_copy(skb->frag, skb->nr_frags, 0, data + headlen, len - headlen);
	skb->head = run;
	skb->data = data;
	skb->truesize += leat_run_size(run) - size;
	return 0;
}

int leat_skb_may_pull(struct leat_skb *skb, uint32_t len, struct leat_page_pool *pool)
{
	uint32_t headlen = leat_skb_headlen(skb), more;
	int err;

	if (len <= headlen)
		return 0;
	if (len > skb->len)
		return -EINVAL;
	more = len - headlen;
	if (more <= head_end_room(skb)) {
		leat_frags_copy(skb->frag, skb->nr_frags, 0, skb->data + headlen, more);
	} else {
		err = new_head(skb, len, pool);
		if (err)
			return err;
	}
	pull_frags(skb, more);
	return 0;
}

int leat_skb_linearize(struct leat_skb *skb, struct leat_page_pool *pool)
{
	return leat_skb_may_pull(skb, skb->len, pool);
}

/* ---- private ---- */

static uint32_t frags_size(const struct leat_skb *skb)
{
	uint32_t i, size = 0;

	for (i = 0; i < skb->nr_frags; i++)
		size += leat_run_size(skb->frag[i].run);
	return size;
}

int leat_skb_unshare(struct leat_skb *skb, struct leat_page_pool *pool)
{
	uint32_t n = skb->nr_frags, before = frags_size(skb);
	int err;

	if (!leat_run_is_none(skb->head) && leat_run_is_shared(skb->head)) {
		err = new_head(skb, leat_skb_headlen(skb), pool);
		if (err)
			return err;
	}
	err = leat_frags_unshare(pool, skb->frag, &n);
	skb->nr_frags = (uint16_t)n;
	skb->truesize += frags_size(skb) - before;
	return err;
}

/* ---- joining ---- */

/** A head that becomes a fragment comes before the others. */
#define PIECES_MAX (LEAT_MAX_FRAGS + 1)

static uint32_t pieces_of(const struct leat_skb *skb, struct leat_frag *piece)
{
	uint32_t n = 0;

	if (leat_skb_headlen(skb))
		piece[n++] = (struct leat_frag){ skb->head, (uint32_t)(skb->data - leat_run_start(skb->head)),
						 leat_skb_headlen(skb) };
	memcpy(piece + n, skb->frag, skb->nr_frags * sizeof(*piece));
	return n + skb->nr_frags;
}

/** Whether they have places in @to once neighbours have merged. */
static bool there_is_place(const struct leat_skb *to, const struct leat_frag *piece, uint32_t n)
{
	uint32_t i, count = to->nr_frags;
	enum leat_frag_join join;
	struct leat_frag last;

	if (count + n <= LEAT_MAX_FRAGS)
		return true;
	if (count)
		last = to->frag[count - 1];
	for (i = 0; i < n; i++) {
		join = count ? leat_frag_can_join(&last, piece[i].run, piece[i].off) : LEAT_FRAG_APART;
		if (join != LEAT_FRAG_APART) {
			leat_frag_join(&last, piece[i].run, piece[i].len, join, true);
		} else {
			last = piece[i];
			count++;
		}
	}
	return count <= LEAT_MAX_FRAGS;
}

static void move_pieces(struct leat_skb *to, const struct leat_frag *piece, uint32_t n)
{
	uint32_t i;
	int err;

	for (i = 0; i < n; i++) {
		if (leat_skb_can_coalesce(to, piece[i].run, piece[i].off)) {
			leat_skb_coalesce_rx_frag(to, piece[i].run, piece[i].off, piece[i].len);
			continue;
		}
		err = leat_skb_add_rx_frag(to, piece[i].run, piece[i].off, piece[i].len);
		LEAT_ASSERT(!err); /* there_is_place() */
	}
}

bool leat_skb_try_coalesce(struct leat_skb *to, struct leat_skb *from, uint32_t *delta)
{
	uint32_t n, before = to->truesize, room = leat_skb_tailroom(to);
	struct leat_frag piece[PIECES_MAX];

	LEAT_ASSERT(to != from);
	if (delta)
		*delta = 0;
	n = pieces_of(from, piece);
	if (room && from->len <= room && (from->len <= LEAT_COPY_BREAK || !there_is_place(to, piece, n))) {
		leat_skb_copy_bits(from, 0, to->data + to->len, from->len);
		to->len += from->len;
		leat_skb_free(from);
		return true;
	}
	if (!there_is_place(to, piece, n))
		return false;
	move_pieces(to, piece, n);
	if (!leat_skb_headlen(from) && !leat_run_is_none(from->head))
		leat_page_pool_put_page(from->head);
	leat_page_pool_put_page(from->self);
	if (delta)
		*delta = to->truesize - before;
	return true;
}
