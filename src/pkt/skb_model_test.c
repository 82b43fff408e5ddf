/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skb_model_test.c: skbs under random operations against byte arrays: after each step every packet has the bytes of its
 * model, its sums are true, and at the end nothing is out. Memory comes from two pools and a page_frag_cache, and every
 * allocation fails in its turn.
 */
#include "pkt/test_pkt.h"

#include <errno.h>

#define SLOTS 10u
#define BYTES_MAX 6000u

struct slot {
	struct leat_skb *skb; /* NULL: empty */
	uint32_t len;
	uint8_t bytes[BYTES_MAX];
};

struct world {
	struct test_pkt t;
	struct leat_page_pool *other;
	struct leat_page_frag_cache cache;
	uint64_t seed;
	unsigned int refused; /* for want of memory or places */
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

/* ---- the check ---- */

static void check(const struct slot *s)
{
	static uint8_t got[BYTES_MAX];
	uint32_t i, data_len = 0, truesize = LEAT_GRANULE_SIZE;
	const struct leat_skb *skb = s->skb;

	assert_int_equal(skb->len, s->len);
	assert_in_range(skb->nr_frags, 0, LEAT_MAX_FRAGS);
	for (i = 0; i < skb->nr_frags; i++) {
		assert_true(skb->frag[i].off + skb->frag[i].len <= leat_run_size(skb->frag[i].run));
		data_len += skb->frag[i].len;
		truesize += leat_run_size(skb->frag[i].run);
	}
	assert_int_equal(skb->data_len, data_len);
	if (!leat_run_is_none(skb->head)) {
		truesize += leat_run_size(skb->head);
		assert_true(skb->data + leat_skb_headlen(skb) <= leat_run_start(skb->head) + leat_run_size(skb->head));
	}
	assert_int_equal(skb->truesize, truesize);
	assert_int_equal(leat_skb_copy_bits(skb, 0, got, s->len), 0);
	assert_memory_equal(got, s->bytes, s->len);
	assert_int_equal(leat_skb_copy_bits(skb, 0, got, s->len + 1), -EINVAL);
}

/* ---- operations; one that finds nothing to do does nothing ---- */

static void op_new(struct world *w)
{
	uint32_t granules = 1 + below(w, 5), headroom = below(w, 400), metasize = headroom < 100 ? 0 : 4 * below(w, 20);
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;
	struct leat_run run;

	if (s->skb)
		return;
	run = leat_page_pool_alloc(some_pool(w), granules);
	if (leat_run_is_none(run)) {
		w->refused++;
		return;
	}
	s->len = below(w, leat_run_size(run) - headroom + 1);
	fill(w, s->bytes, s->len);
	leat_xdp_buff_init(&xdp, run, headroom, s->len);
	memcpy(xdp.data, s->bytes, s->len);
	xdp.data_meta -= metasize;
	s->skb = leat_skb_from_xdp_buff(w->t.objs, &xdp);
	if (!s->skb) {
		w->refused++;
		leat_xdp_return_buff(&xdp);
	}
}

static void op_new_empty(struct world *w)
{
	struct slot *s = some_slot(w);

	if (s->skb)
		return;
	s->len = 0;
	s->skb = leat_skb_alloc(w->t.objs);
	w->refused += !s->skb;
}

static void add(struct world *w, struct slot *s, struct leat_run run, uint32_t off, uint32_t len)
{
	fill(w, leat_run_start(run) + off, len);
	memcpy(s->bytes + s->len, leat_run_start(run) + off, len);
	if (leat_skb_can_coalesce(s->skb, run, off)) {
		leat_skb_coalesce_rx_frag(s->skb, run, off, len);
	} else if (leat_skb_add_rx_frag(s->skb, run, off, len)) {
		assert_int_equal(s->skb->nr_frags, LEAT_MAX_FRAGS);
		leat_page_pool_put_page(run);
		return;
	}
	s->len += len;
}

static void op_add_run(struct world *w)
{
	uint32_t granules = 1 + below(w, 3), size = granules * LEAT_GRANULE_SIZE, off, len;
	struct slot *s = some_slot(w);
	struct leat_run run;

	if (!s->skb || s->len + size > BYTES_MAX)
		return;
	run = leat_page_pool_alloc(some_pool(w), granules);
	if (leat_run_is_none(run)) {
		w->refused++;
		return;
	}
	off = below(w, 2) ? 0 : below(w, size);
	len = below(w, 2) ? size - off : below(w, size - off + 1);
	add(w, s, run, off, len);
}

static void op_add_piece(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_page_frag piece;

	if (!s->skb || s->len + 600 > BYTES_MAX)
		return;
	piece = leat_page_frag_alloc(&w->cache, below(w, 2) ? 8 * (1 + below(w, 70)) : 1 + below(w, 600));
	if (!piece.data) {
		w->refused++;
		return;
	}
	add(w, s, piece.run, (uint32_t)(piece.data - leat_run_start(piece.run)), piece.size);
}

static void op_coalesce(struct world *w)
{
	struct slot *to = some_slot(w), *from = some_slot(w);
	uint32_t delta = 12345, before, places;

	if (to == from || !to->skb || !from->skb || to->len + from->len > BYTES_MAX)
		return;
	before = to->skb->truesize;
	places = to->skb->nr_frags + from->skb->nr_frags + !!leat_skb_headlen(from->skb);
	if (!leat_skb_try_coalesce(to->skb, from->skb, &delta)) {
		assert_true(places > LEAT_MAX_FRAGS);
		w->refused++;
		return;
	}
	assert_int_equal(delta, to->skb->truesize - before);
	memcpy(to->bytes + to->len, from->bytes, from->len);
	to->len += from->len;
	from->skb = NULL;
}

static void op_clone(struct world *w)
{
	struct slot *from = some_slot(w), *to = some_slot(w);

	if (!from->skb || to->skb)
		return;
	to->len = from->len;
	memcpy(to->bytes, from->bytes, from->len);
	to->skb = leat_skb_clone(w->t.objs, from->skb);
	w->refused += !to->skb;
}

static void op_pull(struct world *w)
{
	struct slot *s = some_slot(w);
	uint32_t len;

	if (!s->skb)
		return;
	assert_int_equal(leat_skb_pull(s->skb, s->len + 1), -EINVAL);
	len = below(w, 4) ? below(w, s->len + 1) / 4 : below(w, s->len + 1);
	assert_int_equal(leat_skb_pull(s->skb, len), 0);
	s->len -= len;
	memmove(s->bytes, s->bytes + len, s->len);
	assert_true(!s->len || !s->skb->nr_frags || s->skb->frag[s->skb->nr_frags - 1].len || s->skb->data_len);
}

static void op_push(struct world *w)
{
	struct slot *s = some_slot(w);
	uint32_t room, len;
	uint8_t *data;

	if (!s->skb)
		return;
	room = leat_skb_headroom(s->skb);
	assert_null(leat_skb_push(s->skb, room + 1));
	len = below(w, room + 1);
	if (s->len + len > BYTES_MAX || !len)
		return;
	data = leat_skb_push(s->skb, len);
	assert_ptr_equal(data, s->skb->data);
	fill(w, data, len);
	memmove(s->bytes + len, s->bytes, s->len);
	memcpy(s->bytes, data, len);
	s->len += len;
}

static void op_trim(struct world *w)
{
	struct slot *s = some_slot(w);
	uint32_t len;

	if (!s->skb)
		return;
	assert_int_equal(leat_skb_trim(s->skb, s->len + 1), -EINVAL);
	len = below(w, 4) ? s->len - below(w, s->len + 1) / 4 : below(w, s->len + 1);
	assert_int_equal(leat_skb_trim(s->skb, len), 0);
	s->len = len;
}

static void op_may_pull(struct world *w)
{
	struct slot *s = some_slot(w);
	uint32_t len;
	int err;

	if (!s->skb)
		return;
	assert_int_equal(leat_skb_may_pull(s->skb, s->len + 1, w->other), -EINVAL);
	len = below(w, s->len + 1);
	err = leat_skb_may_pull(s->skb, len, some_pool(w));
	if (err) {
		assert_int_equal(err, -ENOMEM);
		w->refused++;
		return;
	}
	assert_true(leat_skb_headlen(s->skb) >= len);
	if (len)
		assert_memory_equal(s->skb->data, s->bytes, len);
}

static void op_linearize(struct world *w)
{
	struct slot *s = some_slot(w);

	if (!s->skb)
		return;
	if (leat_skb_linearize(s->skb, some_pool(w)))
		w->refused++;
	else
		assert_int_equal(s->skb->data_len, 0);
}

/** Every byte of a packet changes that nobody else reads: the others' stay, which check() says. */
static void scribble(struct slot *s)
{
	struct leat_skb *skb = s->skb;
	uint32_t i, j, at = leat_skb_headlen(skb);

	for (i = 0; i < s->len; i++)
		s->bytes[i] ^= 0x5a;
	for (i = 0; i < at; i++)
		skb->data[i] ^= 0x5a;
	for (i = 0; i < skb->nr_frags; i++)
		for (j = 0; j < skb->frag[i].len; j++)
			leat_run_start(skb->frag[i].run)[skb->frag[i].off + j] ^= 0x5a;
}

static void op_unshare(struct world *w)
{
	struct slot *s = some_slot(w);
	uint32_t i;
	int err;

	if (!s->skb)
		return;
	err = leat_skb_unshare(s->skb, some_pool(w));
	if (err) {
		assert_int_equal(err, -ENOMEM);
		w->refused++;
		return;
	}
	for (i = 0; i < s->skb->nr_frags; i++)
		assert_true(!s->skb->frag[i].len || !leat_run_is_shared(s->skb->frag[i].run));
	scribble(s);
}

static void op_free(struct world *w)
{
	struct slot *s = some_slot(w);

	leat_skb_free(s->skb);
	s->skb = NULL;
}

static void *free_of(void *arg)
{
	leat_skb_free(arg);
	return NULL;
}

static void op_free_far(struct world *w)
{
	struct slot *s = some_slot(w);

	if (!s->skb || below(w, 8))
		return;
	on_another_thread(free_of, s->skb);
	s->skb = NULL;
}

static void op_free_bulk(struct world *w)
{
	struct leat_skb *skbs[SLOTS];
	unsigned int i, n = 0;

	if (below(w, 6))
		return;
	for (i = 0; i < SLOTS; i++) {
		if (!w->slot[i].skb || below(w, 2))
			continue;
		skbs[n++] = w->slot[i].skb;
		w->slot[i].skb = NULL;
	}
	leat_skb_free_bulk(skbs, n);
}

static void op_through_xdp(struct world *w)
{
	struct slot *s = some_slot(w);
	struct leat_xdp_buff xdp;

	if (!s->skb || leat_run_is_none(s->skb->head))
		return;
	if (leat_skb_to_xdp_buff(w->t.objs, s->skb, &xdp)) {
		w->refused++;
		return;
	}
	assert_int_equal(leat_xdp_buff_len(&xdp), s->len);
	s->skb = leat_skb_from_xdp_buff(w->t.objs, &xdp);
	if (!s->skb) {
		w->refused++;
		leat_xdp_return_buff(&xdp);
	}
}

static void (*const ops[])(struct world *w) = {
	op_new, op_new, op_new, op_new_empty, op_add_run, op_add_run, op_add_run, op_add_run, op_add_piece, op_add_piece,
	op_add_piece, op_coalesce, op_coalesce, op_coalesce, op_clone, op_clone, op_pull, op_push, op_trim, op_may_pull,
	op_linearize, op_unshare, op_free, op_free_far, op_free_bulk, op_through_xdp,
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
			if (w->slot[i].skb)
				check(&w->slot[i]);
	}
}

static void close_world(struct world *w)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		leat_skb_free(w->slot[i].skb);
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
			/* a page_frag_cache takes a smaller chunk when it is refused */
			assert_true(w.refused || w.cache.smaller || !stats.alloc_failed);
			close_world(&w);
		} while (stats.alloc_failed);
		assert_true(nth > 10); /* the last one was one too many */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_has_the_bytes_of_its_model),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
