/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_model_test.c: packets under programs and on their way, of one buffer and of several, under random operations
 * against byte arrays: edges, fragments, clones, copies, conversions. A packet that a "program" changes is made its own
 * first, as the receive path does; everybody else's bytes must stay. Every allocation fails in its turn.
 */
#include "pkt/test_pkt.h"

#include <errno.h>

#define SLOTS 8u
#define BYTES_MAX 6000u

struct slot {
	struct leat_xdp_frame *frame; /* NULL: empty */
	uint32_t len, metasize;
	uint8_t metadata[256];
	uint8_t bytes[BYTES_MAX];
};

struct world {
	struct test_pkt t;
	struct leat_page_pool *other;
	struct leat_page_frag_cache cache;
	uint64_t seed;
	unsigned int refused; /* for want of memory */
	struct slot slot[SLOTS];
};

static uint32_t below(struct world *w, uint32_t n)
{
	return test_below(&w->seed, n);
}

static struct leat_page_pool *some_pool(struct world *w)
{
	return below(w, 3) ? w->t.payload : w->other;
}

static void fill(struct world *w, uint8_t *bytes, uint32_t len)
{
	uint32_t i, first = below(w, 256);

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(first + i * 3 + (i >> 8));
}

static struct slot *some_slot(struct world *w)
{
	return &w->slot[below(w, SLOTS)];
}

static void check(const struct slot *s)
{
	static uint8_t got[BYTES_MAX];
	const struct leat_xdp_frags *frags = s->frame->frags;
	uint32_t i, off = s->frame->len;

	assert_int_equal(leat_xdp_frame_len(s->frame), s->len);
	assert_int_equal(s->frame->metasize, s->metasize);
	assert_memory_equal(s->frame->data - s->metasize, s->metadata, s->metasize);
	assert_test_meta(&s->frame->meta);
	assert_int_equal(s->frame->port, 7);
	assert_int_equal(s->frame->queue, 3);
	memcpy(got, s->frame->data, off);
	if (frags) {
		assert_in_range(frags->n, 0, LEAT_MAX_FRAGS);
		for (i = 0; i < frags->n; off += frags->frag[i++].len)
			memcpy(got + off, leat_run_start(frags->frag[i].run) + frags->frag[i].off, frags->frag[i].len);
		assert_int_equal(off, s->frame->len + frags->len);
	}
	assert_memory_equal(got, s->bytes, s->len);
}

/* ---- a packet is a frame between operations, and a buff within one ---- */

static const struct leat_xdp_rxq rxq = { .port = 7, .queue = 3 };

static void open_slot(const struct slot *s, struct leat_xdp_buff *xdp)
{
	leat_xdp_frame_to_buff(s->frame, xdp);
	xdp->rxq = &rxq;
}

static void close_slot(struct slot *s, const struct leat_xdp_buff *xdp)
{
	s->frame = leat_xdp_buff_to_frame(xdp);
}

/** As the receive path does before a program: the packet is nobody else's. */
static bool own(struct world *w, struct leat_xdp_buff *xdp)
{
	uint32_t i;

	if ((leat_run_is_shared(xdp->run) && leat_xdp_copy_head(some_pool(w), xdp)) ||
	    leat_xdp_unshare_frags(some_pool(w), xdp)) {
		w->refused++;
		return false;
	}
	assert_false(leat_run_is_shared(xdp->run));
	for (i = 0; xdp->frags && i < xdp->frags->n; i++)
		assert_true(!xdp->frags->frag[i].len || !leat_run_is_shared(xdp->frags->frag[i].run));
	return true;
}

/* ---- operations ---- */

static void op_new(struct world *w)
{
	uint32_t granules = 2 + below(w, 4), headroom = 40 + below(w, 300);
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	struct leat_run run;

	if (s->frame)
		return;
	run = leat_page_pool_alloc(some_pool(w), granules);
	if (leat_run_is_none(run)) {
		w->refused++;
		return;
	}
	s->metasize = 4 * below(w, (headroom - 40) / 4 + 1);
	if (s->metasize > LEAT_XDP_META_MAX)
		s->metasize = LEAT_XDP_META_MAX;
	s->len = 14 + below(w, leat_run_size(run) - headroom - 14 + 1);
	fill(w, s->bytes, s->len);
	fill(w, s->metadata, s->metasize);
	leat_xdp_buff_init(&xdp, run, headroom, s->len);
	memcpy(xdp.data, s->bytes, s->len);
	xdp.data_meta -= s->metasize;
	memcpy(xdp.data_meta, s->metadata, s->metasize);
	xdp.meta = test_meta;
	xdp.rxq = &rxq;
	close_slot(s, &xdp);
}

/** A whole run, part of one, or a piece of a chunk: @off bytes into it begin @len. */
static struct leat_run some_run(struct world *w, uint32_t *off, uint32_t *len)
{
	uint32_t granules = 1 + below(w, 3), size = granules * LEAT_GRANULE_SIZE;
	struct leat_page_frag piece;

	if (!below(w, 3)) {
		piece = leat_page_frag_alloc(&w->cache, 1 + below(w, 600));
		*off = piece.data ? (uint32_t)(piece.data - leat_run_start(piece.run)) : 0;
		*len = piece.size;
		return piece.run;
	}
	*off = below(w, 2) ? 0 : below(w, size);
	*len = below(w, 2) ? size - *off : 1 + below(w, size - *off);
	return leat_page_pool_alloc(some_pool(w), granules);
}

static void op_add(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	struct leat_run run;
	uint32_t off, len;

	if (!s->frame || s->len + 1600 > BYTES_MAX)
		return;
	open_slot(s, &xdp);
	if (!xdp.frags)
		xdp.frags = leat_xdp_frags_alloc(w->t.objs);
	run = xdp.frags ? some_run(w, &off, &len) : LEAT_RUN_NONE;
	if (leat_run_is_none(run)) {
		w->refused++;
	} else {
		fill(w, leat_run_start(run) + off, len);
		memcpy(s->bytes + s->len, leat_run_start(run) + off, len);
		if (!leat_xdp_buff_add_frag(&xdp, run, off, len)) {
			s->len += len;
		} else {
			assert_int_equal(xdp.frags->n, LEAT_MAX_FRAGS);
			leat_page_pool_put_page(run);
		}
	}
	close_slot(s, &xdp);
}

static void op_head(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	int delta, room, len;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	if (own(w, &xdp)) {
		room = (int)(xdp.data_meta - leat_run_start(xdp.run)) - 40;
		len = (int)(xdp.data_end - xdp.data);
		delta = (int)below(w, 400) - 250;
		if (leat_xdp_adjust_head(&xdp, delta)) {
			assert_true(-delta > room || delta > len - 14);
		} else if (delta < 0 && s->len + (uint32_t)-delta > BYTES_MAX) {
			assert_int_equal(leat_xdp_adjust_head(&xdp, -delta), 0);
		} else if (delta < 0) {
			memmove(s->bytes - delta, s->bytes, s->len);
			fill(w, s->bytes, (uint32_t)-delta);
			memcpy(xdp.data, s->bytes, (uint32_t)-delta);
			s->len += (uint32_t)-delta;
		} else {
			s->len -= (uint32_t)delta;
			memmove(s->bytes, s->bytes + delta, s->len);
		}
	}
	close_slot(s, &xdp);
}

/** Bytes that the packet may grow by. */
static int room_behind(const struct leat_xdp_buff *xdp)
{
	const struct leat_frag *last;

	if (!xdp->frags || !xdp->frags->n)
		return (int)(leat_run_start(xdp->run) + leat_run_size(xdp->run) - 320 - xdp->data_end);
	last = &xdp->frags->frag[xdp->frags->n - 1];
	if (leat_block_of(leat_run_addr(last->run))->flags & LEAT_BLOCK_FRAG || leat_run_is_shared(last->run))
		return -1;
	return (int)(leat_run_size(last->run) - last->off - last->len);
}

static void op_tail(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	int delta, room;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	if (own(w, &xdp)) {
		room = room_behind(&xdp);
		delta = below(w, 2) ? (int)below(w, 700) : -(int)below(w, below(w, 4) ? 400 : 3000);
		if (delta > 0 && s->len + (uint32_t)delta > BYTES_MAX)
			delta = 0;
		if (leat_xdp_adjust_tail(&xdp, delta)) {
			assert_true(delta > 0 ? delta > room : (int)s->len + delta < 14);
		} else {
			assert_true(delta <= 0 || delta <= room);
			if (delta > 0)
				memset(s->bytes + s->len, 0, (uint32_t)delta);
			s->len += (uint32_t)delta;
		}
	}
	close_slot(s, &xdp);
}

static void op_metadata(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	if (own(w, &xdp) && !leat_xdp_adjust_meta(&xdp, 4 * (int)below(w, 40) - 80)) {
		s->metasize = (uint32_t)(xdp.data - xdp.data_meta);
		fill(w, s->metadata, s->metasize);
		memcpy(xdp.data_meta, s->metadata, s->metasize);
	}
	close_slot(s, &xdp);
}

static void op_scribble(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	uint32_t i, j;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	if (own(w, &xdp)) {
		for (i = 0; i < s->len; i++)
			s->bytes[i] ^= 0x5a;
		for (i = 0; i < xdp.data_end - xdp.data; i++)
			xdp.data[i] ^= 0x5a;
		for (i = 0; xdp.frags && i < xdp.frags->n; i++)
			for (j = 0; j < xdp.frags->frag[i].len; j++)
				leat_run_start(xdp.frags->frag[i].run)[xdp.frags->frag[i].off + j] ^= 0x5a;
	}
	close_slot(s, &xdp);
}

static void op_clone(struct world *w)
{
	struct slot *from = some_slot(w), *to = some_slot(w);
	struct leat_xdp_frame before;
	struct leat_run run;

	if (!from->frame || to->frame)
		return;
	before = *from->frame;
	to->frame = leat_xdp_frame_clone(from->frame, some_pool(w), w->t.objs);
	before.shares = from->frame->shares;
	assert_memory_equal(&before, from->frame, sizeof(before));
	if (!to->frame) {
		w->refused++;
		return;
	}
	memcpy(to->bytes, from->bytes, from->len);
	memcpy(to->metadata, from->metadata, from->metasize);
	to->len = from->len;
	to->metasize = from->metasize;
	run = leat_xdp_frame_run(to->frame);
	assert_false(leat_run_is_shared(run));
	assert_int_equal(to->frame->data - leat_run_start(run), LEAT_XDP_HEADROOM);
	assert_true(to->frame->frags || leat_run_start(run) + leat_run_size(run) - to->frame->data >=
						(ptrdiff_t)(to->len + LEAT_XDP_TAILROOM));
	assert_true(to->len > LEAT_COPY_BREAK || !to->frame->frags);
}

static void op_linearize(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	if (leat_xdp_linearize(some_pool(w), &xdp))
		w->refused++;
	else
		assert_true(!xdp.frags && xdp.data - leat_run_start(xdp.run) == LEAT_XDP_HEADROOM);
	close_slot(s, &xdp);
}

static void op_copy_break(struct world *w)
{
	uint32_t headroom = below(w, 2) ? LEAT_XDP_HEADROOM : 0, tailroom = below(w, 2) ? LEAT_XDP_TAILROOM : 0;
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	struct leat_run before;

	if (!s->frame)
		return;
	open_slot(s, &xdp);
	before = xdp.run;
	if (leat_xdp_copy_break(some_pool(w), &xdp, headroom, tailroom)) {
		assert_true(s->len <= LEAT_COPY_BREAK && !xdp.frags);
		assert_true(leat_run_size(xdp.run) < leat_run_size(before));
		assert_int_equal(xdp.data_meta - leat_run_start(xdp.run), headroom);
		assert_true(leat_run_start(xdp.run) + leat_run_size(xdp.run) - xdp.data_end >= (ptrdiff_t)tailroom);
	} else {
		assert_int_equal(xdp.run.bits, before.bits);
	}
	close_slot(s, &xdp);
}

static void op_through_skb(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_frame *frame;
	struct leat_skb *skb;

	if (!s->frame || leat_run_is_shared(leat_xdp_frame_run(s->frame)))
		return;
	skb = leat_skb_from_xdp_frame(w->t.objs, s->frame);
	if (!skb) {
		w->refused++;
		return;
	}
	frame = leat_skb_to_xdp_frame(w->t.objs, skb);
	if (!frame) {
		w->refused++;
		leat_skb_free(skb);
	}
	s->frame = frame;
}

static void op_return(struct world *w)
{
	struct slot *s = some_slot(w);

	if (s->frame)
		leat_xdp_return_frame(s->frame);
	s->frame = NULL;
}

struct returned {
	struct leat_xdp_frame *frame[SLOTS];
	unsigned int n;
};

static void *return_of(void *arg)
{
	struct returned *r = arg;

	leat_xdp_return_frame_bulk(r->frame, r->n);
	return NULL;
}

static void op_return_bulk(struct world *w)
{
	struct returned r = { .n = 0 };
	unsigned int i;

	if (below(w, 6))
		return;
	for (i = 0; i < SLOTS; i++) {
		if (!w->slot[i].frame || below(w, 2))
			continue;
		r.frame[r.n++] = w->slot[i].frame;
		w->slot[i].frame = NULL;
	}
	if (below(w, 2))
		on_another_thread(return_of, &r);
	else
		return_of(&r);
}

static void (*const ops[])(struct world *w) = {
	op_new, op_new, op_new, op_add, op_add, op_add, op_add, op_add, op_head, op_tail, op_tail, op_metadata,
	op_scribble, op_clone, op_clone, op_clone, op_linearize, op_copy_break, op_copy_break, op_through_skb, op_return,
	op_return_bulk,
};

static void open_world(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	test_mem_open(&w->t.mem, EXTENT * 3);
	w->t.payload = test_pool(w->t.mem.segment, EXTENT);
	w->t.objs = test_pool(w->t.mem.segment, EXTENT);
	w->other = test_pool(w->t.mem.segment, EXTENT);
	leat_page_frag_init(&w->cache, w->t.payload);
	w->seed = seed;
}

static void run(struct world *w, unsigned int steps)
{
	unsigned int i;

	while (steps--) {
		ops[below(w, COUNT(ops))](w);
		for (i = 0; i < SLOTS; i++)
			if (w->slot[i].frame)
				check(&w->slot[i]);
	}
}

static void close_world(struct world *w)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (w->slot[i].frame)
			leat_xdp_return_frame(w->slot[i].frame);
	leat_page_frag_drain(&w->cache);
	test_pool_end(w->other);
	test_pkt_close(&w->t);
}

static void every_packet_has_the_bytes_of_its_model(void **state)
{
	static struct world w;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 4; seed++) {
		open_world(&w, seed * 7919);
		run(&w, TEST_ROUNDS(10000u));
		close_world(&w);
	}
}

static void every_allocation_may_fail(void **state)
{
	static struct world w;
	struct leat_page_pool_stats stats;
	struct leat_page_pool *pool;
	unsigned int i, nth;

	(void)state;
	for (i = 0; i < 3; i++) {
		nth = 0;
		do {
			open_world(&w, 31);
			pool = i ? i == 1 ? w.t.objs : w.other : w.t.payload;
			leat_page_pool_fail_nth(pool, ++nth);
			run(&w, 400);
			leat_page_pool_stats(pool, &stats);
			close_world(&w);
		} while (stats.alloc_failed);
		assert_true(nth > 10); /* the last one was one too many */
	}
}

/* ---- what the model is too small for ---- */

/** A clone of @len bytes in one buffer; its second holder writes after making it its own. */
static void a_long_fragment_is_copied_in_parts(void **state)
{
	const uint32_t n = 130, len = 130 * LEAT_GRANULE_SIZE; /* over three blocks */
	struct leat_xdp_buff xdp, own_copy;
	struct leat_xdp_frame *clone;
	struct test_pkt t;
	uint32_t i;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 0);
	xdp.frags = leat_xdp_frags_alloc(t.objs);
	assert_non_null(xdp.frags);
	for (i = 0; i < n; i++) {
		struct leat_run run = test_run(t.payload, 1);

		memset(leat_run_start(run), (int)i, LEAT_GRANULE_SIZE);
		assert_int_equal(leat_xdp_buff_add_frag(&xdp, run, 0, LEAT_GRANULE_SIZE), 0);
	}
	assert_int_equal(xdp.frags->n, 1);
	clone = leat_xdp_frame_clone(leat_xdp_buff_to_frame(&xdp), t.payload, t.objs);
	assert_non_null(clone);
	leat_xdp_frame_to_buff(clone, &own_copy);
	assert_int_equal(leat_xdp_linearize(t.payload, &own_copy), -EMSGSIZE);
	leat_page_pool_fail_nth(t.payload, 3); /* two parts are there, the third is not */
	assert_int_equal(leat_xdp_unshare_frags(t.payload, &own_copy), -ENOMEM);
	assert_out(&t, 4 + n + 1, 2);
	assert_int_equal(leat_xdp_buff_len(&own_copy), 100 + len);
	assert_int_equal(leat_xdp_unshare_frags(t.payload, &own_copy), 0);
	assert_out(&t, 4 + n + 1 + n, 2);
	assert_int_equal(leat_xdp_buff_len(&own_copy), 100 + len);
	for (i = 0; i < own_copy.frags->n; i++)
		assert_false(leat_run_is_shared(own_copy.frags->frag[i].run));
	assert_false(leat_run_is_shared(xdp.frags->frag[0].run));
	for (i = 0; i < n; i++)
		assert_int_equal(leat_run_start(xdp.frags->frag[0].run)[i * LEAT_GRANULE_SIZE], i & 255);
	leat_xdp_return_buff(&own_copy);
	leat_xdp_return_buff(&xdp);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void a_long_packet_becomes_linear(void **state)
{
	const uint32_t n = 100;
	struct leat_skb *skb;
	struct test_pkt t;
	uint8_t byte;
	uint32_t i;

	(void)state;
	test_pkt_open(&t);
	skb = leat_skb_alloc(t.objs);
	assert_non_null(skb);
	for (i = 0; i < n; i++) { /* 50 KiB */
		struct leat_run run = test_run(t.payload, 1);

		memset(leat_run_start(run), (int)i, LEAT_GRANULE_SIZE);
		if (leat_skb_can_coalesce(skb, run, 0))
			leat_skb_coalesce_rx_frag(skb, run, 0, LEAT_GRANULE_SIZE);
		else
			assert_int_equal(leat_skb_add_rx_frag(skb, run, 0, LEAT_GRANULE_SIZE), 0);
	}
	leat_page_pool_fail_nth(t.payload, 1);
	assert_int_equal(leat_skb_linearize(skb, t.payload), -ENOMEM);
	assert_int_equal(leat_skb_linearize(skb, t.payload), 0);
	assert_int_equal(leat_skb_headlen(skb), n * LEAT_GRANULE_SIZE);
	assert_int_equal(leat_skb_headroom(skb), LEAT_XDP_HEADROOM);
	for (i = 0; i < n * LEAT_GRANULE_SIZE; i += 100) {
		assert_int_equal(leat_skb_copy_bits(skb, i, &byte, 1), 0);
		assert_int_equal(byte, (uint8_t)(i / LEAT_GRANULE_SIZE));
	}
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/** The newest buffer goes back to the cursor, so that nothing of it is left behind. */
static void copy_break_gives_the_newest_buffer_back_to_the_cursor(void **state)
{
	struct leat_xdp_buff xdp;
	struct leat_run run;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	run = test_run(t.payload, 18);
	leat_xdp_buff_init(&xdp, run, 0, 60);
	memset(xdp.data, 0x77, 60);
	assert_false(leat_xdp_copy_break(t.payload, &xdp, 0, 0)); /* the same pool */
	assert_true(leat_xdp_copy_break(t.objs, &xdp, 0, 0));
	assert_int_equal(xdp.data[59], 0x77);
	assert_out(&t, 0, 1);
	assert_int_equal(leat_run_addr(run), t.payload->cur);
	assert_false(leat_xdp_copy_break(t.payload, &xdp, 0, 0)); /* no smaller */
	leat_xdp_return_buff(&xdp);
	/* what another one reads stays his */
	run = test_run(t.payload, 18);
	leat_page_pool_get_page(run);
	leat_xdp_buff_init(&xdp, run, 0, 60);
	assert_true(leat_xdp_copy_break(t.objs, &xdp, 0, 0));
	assert_out(&t, 18, 1);
	leat_page_pool_put_page(run);
	leat_xdp_return_buff(&xdp);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_has_the_bytes_of_its_model),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_long_fragment_is_copied_in_parts),
		cmocka_unit_test(a_long_packet_becomes_linear),
		cmocka_unit_test(copy_break_gives_the_newest_buffer_back_to_the_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
