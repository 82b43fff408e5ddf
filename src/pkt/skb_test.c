/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skb_test.c: every conversion moves references and nothing else, fragments join only when they are neighbours that
 * nobody shares, clones come and go in any order, and what fails for want of memory leaves the caller's packet alone.
 */
#include "pkt/test_pkt.h"

#include <errno.h>
#include <leat/page_frag.h>

static struct leat_skb *test_skb(struct test_pkt *t, unsigned int frags)
{
	struct leat_xdp_buff xdp;
	struct leat_skb *skb;

	test_buff(t, &xdp, frags);
	skb = leat_skb_from_xdp_buff(t->objs, &xdp);
	assert_non_null(skb);
	return skb;
}

static void *free_one(void *arg)
{
	leat_skb_free(arg);
	return NULL;
}

/* ---- conversions ---- */

static void check_skb(struct test_pkt *t, const struct leat_skb *skb, unsigned int frags)
{
	assert_int_equal(skb->len, 100 + test_frags_len(frags));
	assert_int_equal(leat_skb_headlen(skb), 100);
	assert_int_equal(skb->nr_frags, frags);
	assert_int_equal(skb->metasize, 8);
	assert_int_equal(skb->truesize, LEAT_GRANULE_SIZE * (1 + 4 + 2 * frags));
	assert_memory_equal(skb->data - skb->metasize, "metadata", 8);
	assert_test_meta(&skb->meta);
	assert_out(t, 4 + 2 * frags, 1); /* the fragment list has gone back */
}

static void references_move_through_every_conversion(void **state)
{
	struct leat_xdp_rxq rxq = { .port = 9, .queue = 2 };
	struct leat_xdp_frame *frame;
	struct leat_xdp_buff xdp;
	struct leat_skb *skb;
	struct test_pkt t;
	unsigned int frags;

	(void)state;
	test_pkt_open(&t);
	for (frags = 0; frags <= LEAT_MAX_FRAGS; frags++) {
		test_buff(&t, &xdp, frags);
		xdp.rxq = &rxq;
		skb = leat_skb_from_xdp_buff(t.objs, &xdp);
		check_skb(&t, skb, frags);
		assert_int_equal(skb->port, 9);
		frame = leat_skb_to_xdp_frame(t.objs, skb);
		assert_int_equal(leat_xdp_frame_len(frame), 100 + test_frags_len(frags));
		assert_int_equal(frame->port, 9);
		assert_int_equal(frame->queue, 2);
		assert_test_meta(&frame->meta);
		assert_out(&t, 4 + 2 * frags, frags ? 1 : 0);
		skb = leat_skb_from_xdp_frame(t.objs, frame);
		check_skb(&t, skb, frags);
		assert_int_equal(skb->port, 9);
		assert_int_equal(skb->queue, 2);
		assert_int_equal(leat_skb_to_xdp_buff(t.objs, skb, &xdp), 0);
		assert_int_equal(leat_xdp_buff_len(&xdp), 100 + test_frags_len(frags));
		assert_memory_equal(xdp.data_meta, "metadata", 8);
		assert_test_meta(&xdp.meta);
		assert_out(&t, 4 + 2 * frags, frags ? 1 : 0);
		leat_xdp_return_buff(&xdp);
		assert_out(&t, 0, 0);
	}
	test_pkt_close(&t);
}

static void an_empty_skb_can_carry_fragments_alone(void **state)
{
	struct leat_skb *skb, *clone;
	struct test_pkt t;
	uint8_t byte = 0;

	(void)state;
	test_pkt_open(&t);
	leat_skb_free(NULL);
	skb = leat_skb_alloc(t.objs);
	assert_int_equal(skb->len, 0);
	assert_int_equal(skb->truesize, LEAT_GRANULE_SIZE);
	assert_int_equal(leat_skb_copy_bits(skb, 0, &byte, 0), 0);
	assert_int_equal(leat_skb_copy_bits(skb, 0, &byte, 1), -EINVAL);
	assert_int_equal(leat_skb_add_rx_frag(skb, test_run(t.payload, 1), 0, 1), 0);
	leat_run_start(skb->frag[0].run)[0] = 5;
	assert_false(leat_skb_is_shared(skb));
	clone = leat_skb_clone(t.objs, skb);
	assert_true(leat_skb_is_shared(clone));
	leat_skb_free(skb);
	assert_int_equal(leat_skb_copy_bits(clone, 0, &byte, 1), 0);
	assert_int_equal(byte, 5);
	leat_skb_free(clone);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void no_memory_for_the_skb_leaves_the_buff(void **state)
{
	struct leat_xdp_buff xdp;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 5);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_skb_from_xdp_buff(t.objs, &xdp));
	assert_out(&t, 14, 1);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_skb_from_xdp_frame(t.objs, leat_xdp_buff_to_frame(&xdp)));
	assert_out(&t, 14, 1);
	assert_int_equal(leat_xdp_buff_len(&xdp), 100 + test_frags_len(5));
	leat_xdp_return_buff(&xdp);
	assert_out(&t, 0, 0);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_skb_alloc(t.objs));
	test_pkt_close(&t);
}

static void no_memory_for_the_list_leaves_the_skb(void **state)
{
	struct leat_xdp_buff xdp;
	struct leat_skb *skb;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	skb = test_skb(&t, 3);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_skb_to_xdp_frame(t.objs, skb));
	check_skb(&t, skb, 3);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_int_equal(leat_skb_to_xdp_buff(t.objs, skb, &xdp), -ENOMEM);
	check_skb(&t, skb, 3);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_skb_clone(t.objs, skb));
	check_skb(&t, skb, 3);
	assert_false(leat_skb_is_shared(skb));
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/* ---- clones ---- */

#define CLONES 3u

/** Frees three holders in the order @order (0..5); those whose bit is in @far on another thread. */
static void free_in_order(struct test_pkt *t, unsigned int order, unsigned int far, unsigned int frags)
{
	static const unsigned int first[6] = { 0, 0, 1, 1, 2, 2 }, second[6] = { 1, 2, 0, 2, 0, 1 };
	const unsigned int which[CLONES] = { first[order], second[order], 3 - first[order] - second[order] };
	struct leat_skb *skb[CLONES];
	unsigned int i;

	skb[0] = test_skb(t, frags);
	assert_false(leat_skb_is_shared(skb[0]));
	skb[1] = leat_skb_clone(t->objs, skb[0]);
	skb[2] = leat_skb_clone(t->objs, skb[1]);
	assert_out(t, 4 + 2 * frags, CLONES);
	for (i = 0; i < CLONES; i++) {
		struct leat_skb *one = skb[which[i]];

		assert_int_equal(leat_skb_is_shared(one), i < CLONES - 1);
		assert_int_equal(one->truesize, LEAT_GRANULE_SIZE * (1 + 4 + 2 * frags));
		assert_test_meta(&one->meta);
		assert_int_equal(one->data[99], 99);
		if (far & 1u << i)
			on_another_thread(free_one, one);
		else
			leat_skb_free(one);
		assert_out(t, i < CLONES - 1 ? 4 + 2 * frags : 0, CLONES - 1 - i);
	}
}

static void clones_go_in_any_order_on_any_thread(void **state)
{
	struct test_pkt t;
	unsigned int order, far;

	(void)state;
	test_pkt_open(&t);
	for (order = 0; order < 6; order++)
		for (far = 0; far < 8; far++)
			free_in_order(&t, order, far, (order * 8 + far) % 4);
	test_pkt_close(&t);
}

static void each_clone_has_its_own_fragments(void **state)
{
	struct leat_skb *skb, *clone;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	skb = test_skb(&t, 2);
	clone = leat_skb_clone(t.objs, skb);
	assert_int_equal(leat_skb_add_rx_frag(clone, test_run(t.payload, 1), 0, 77), 0);
	assert_int_equal(skb->len + 77, clone->len);
	assert_int_equal(skb->nr_frags, 2);
	leat_skb_free(clone);
	assert_out(&t, 8, 1);
	assert_false(leat_skb_is_shared(skb));
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/** Two ports receive clones of one packet: what one makes of its own must not reach the other. */
static void clones_become_buffs_independently(void **state)
{
	struct leat_xdp_buff a, b;
	struct leat_skb *skb, *clone;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	skb = test_skb(&t, 2);
	clone = leat_skb_clone(t.objs, skb);
	assert_int_equal(leat_skb_to_xdp_buff(t.objs, skb, &a), 0);
	assert_int_equal(leat_skb_to_xdp_buff(t.objs, clone, &b), 0);
	assert_ptr_not_equal(a.frags, b.frags);
	assert_true(leat_run_is_shared(a.run));
	assert_out(&t, 8, 2);
	leat_xdp_return_buff(&a);
	assert_false(leat_run_is_shared(b.run));
	assert_out(&t, 8, 1);
	leat_xdp_return_buff(&b);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/* ---- many at once ---- */

#define MANY 90u

struct many {
	struct leat_skb *skb[MANY];
};

static void *free_many(void *arg)
{
	struct many *many = arg;

	leat_skb_free_bulk(many->skb, MANY);
	return NULL;
}

/** Linear ones, ones with every number of fragments, one full, clones. */
static void make_many(struct test_pkt *t, struct many *many)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		many->skb[i] = i % 3 == 2 ? leat_skb_clone(t->objs, many->skb[i - 1]) :
					    test_skb(t, i == 40 ? 0 : i < 4 ? LEAT_MAX_FRAGS : i % 2);
}

static void mixed_skbs_are_freed_in_bulk_on_any_thread(void **state)
{
	struct test_pkt t;
	struct many many = { .skb = { NULL } };

	(void)state;
	test_pkt_open(&t);
	make_many(&t, &many);
	free_many(&many);
	assert_out(&t, 0, 0);
	make_many(&t, &many);
	on_another_thread(free_many, &many);
	assert_out(&t, 0, 0);
	leat_skb_free_bulk(NULL, 0);
	test_pkt_close(&t);
}

static void full_skbs_are_freed_in_bulk(void **state)
{
	struct leat_skb *skb[12];
	struct test_pkt t;
	unsigned int i;

	(void)state;
	test_pkt_open(&t);
	for (i = 0; i < COUNT(skb); i++)
		skb[i] = test_skb(&t, LEAT_MAX_FRAGS);
	leat_skb_free_bulk(skb, COUNT(skb));
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/* ---- fragments ---- */

static void the_eighteenth_fragment_is_refused(void **state)
{
	struct leat_skb *skb;
	struct leat_run run;
	struct test_pkt t;
	uint32_t len;

	(void)state;
	test_pkt_open(&t);
	skb = test_skb(&t, LEAT_MAX_FRAGS);
	run = test_run(t.payload, 1);
	len = skb->len;
	assert_int_equal(leat_skb_add_rx_frag(skb, run, 0, 1), -ENOSPC);
	assert_int_equal(skb->len, len);
	leat_page_pool_put_page(run);
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/** An skb whose only fragment is all of @run. */
static struct leat_skb *skb_of_run(struct test_pkt *t, struct leat_run run)
{
	struct leat_skb *skb = leat_skb_alloc(t->objs);

	assert_non_null(skb);
	assert_int_equal(leat_skb_add_rx_frag(skb, run, 0, leat_run_size(run)), 0);
	return skb;
}

static void neighbours_join_over_the_border_of_blocks(void **state)
{
	struct leat_skb *skb;
	struct test_pkt t;
	struct leat_run run;
	uint32_t size = 0;
	unsigned int i;

	(void)state;
	test_pkt_open(&t);
	skb = skb_of_run(&t, test_run(t.payload, 4));
	for (i = 0; i < 100; i++) { /* 404 granules, seven blocks */
		run = test_run(t.payload, 4);
		memset(leat_run_start(run), (int)i, leat_run_size(run));
		assert_true(leat_skb_can_coalesce(skb, run, 0));
		leat_skb_coalesce_rx_frag(skb, run, 0, leat_run_size(run));
		size += leat_run_size(run);
	}
	assert_int_equal(skb->nr_frags, 1);
	assert_int_equal(skb->len, 4 * LEAT_GRANULE_SIZE + size);
	assert_int_equal(skb->truesize, LEAT_GRANULE_SIZE + skb->len);
	assert_out(&t, skb->len / LEAT_GRANULE_SIZE, 1);
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void joined_neighbours_are_shared_and_freed_as_one(void **state)
{
	struct leat_skb *skb, *clone;
	struct test_pkt t;
	struct leat_run head;

	(void)state;
	test_pkt_open(&t);
	head = test_run(t.payload, 60);
	skb = skb_of_run(&t, test_run(t.payload, 4));
	leat_skb_coalesce_rx_frag(skb, test_run(t.payload, 4), 0, 100); /* over the border */
	clone = leat_skb_clone(t.objs, skb);
	assert_true(leat_skb_is_shared(skb));
	assert_false(leat_run_is_shared(head));
	leat_page_pool_put_page(head);
	assert_out(&t, 8, 2);
	on_another_thread(free_one, skb);
	assert_false(leat_skb_is_shared(clone));
	on_another_thread(free_one, clone);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/** Whether @run, all of it at @off, would join @skb; then puts everything. */
static bool joins(struct leat_skb *skb, struct leat_run run, uint32_t off)
{
	bool yes = leat_skb_can_coalesce(skb, run, off);

	leat_page_pool_put_page(run);
	leat_skb_free(skb);
	return yes;
}

static void what_is_not_a_neighbour_does_not_join(void **state)
{
	struct leat_run a, gap;
	struct leat_skb *skb;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	assert_false(joins(leat_skb_alloc(t.objs), test_run(t.payload, 4), 0)); /* no fragment */
	skb = skb_of_run(&t, test_run(t.payload, 4));
	assert_true(joins(skb, test_run(t.payload, 4), 0));
	skb = skb_of_run(&t, test_run(t.payload, 4));
	assert_false(joins(skb, test_run(t.payload, 4), 1)); /* headroom */
	skb = skb_of_run(&t, test_run(t.payload, 4));
	skb->frag[0].len--;
	assert_false(joins(skb, test_run(t.payload, 4), 0)); /* the end of the one before is not used */
	skb = skb_of_run(&t, test_run(t.payload, 4));
	skb->frag[0].off = 100;
	skb->frag[0].len -= 100;
	assert_true(joins(skb, test_run(t.payload, 4), 0)); /* its beginning need not be */
	skb = skb_of_run(&t, test_run(t.payload, 4));
	gap = test_run(t.payload, 1);
	assert_false(joins(skb, test_run(t.payload, 4), 0));
	leat_page_pool_put_page(gap);
	a = test_run(t.payload, 2);
	skb = skb_of_run(&t, test_run(t.payload, 2));
	assert_false(joins(skb, a, 0)); /* the wrong way round */
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void what_is_shared_does_not_join(void **state)
{
	struct leat_run a, b;
	struct leat_skb *skb;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	a = test_run(t.payload, 4);
	b = test_run(t.payload, 4);
	skb = skb_of_run(&t, a);
	leat_page_pool_get_page(a);
	assert_false(leat_skb_can_coalesce(skb, b, 0));
	leat_page_pool_put_page(a);
	assert_true(leat_skb_can_coalesce(skb, b, 0));
	leat_page_pool_get_page(b);
	assert_false(leat_skb_can_coalesce(skb, b, 0));
	leat_page_pool_put_page(b);
	assert_true(leat_skb_can_coalesce(skb, b, 0));
	leat_skb_coalesce_rx_frag(skb, b, 0, 1);
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void what_is_of_another_pool_does_not_join(void **state)
{
	struct leat_run last, first;
	struct leat_skb *skb;
	struct test_pkt t;
	unsigned int i;

	(void)state;
	test_pkt_open(&t);
	first = test_run(t.objs, 4);
	for (i = 0; i < EXTENT_GRANULES / LEAT_BLOCK_GRANULES - 1; i++)
		leat_page_pool_put_page(test_run(t.payload, LEAT_BLOCK_GRANULES));
	last = test_run(t.payload, LEAT_BLOCK_GRANULES);
	assert_int_equal(leat_run_addr(last) + leat_run_size(last), leat_run_addr(first));
	skb = skb_of_run(&t, last);
	assert_false(joins(skb, first, 0));
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static struct leat_skb *skb_of_piece(struct test_pkt *t, struct leat_page_frag piece)
{
	struct leat_skb *skb = leat_skb_alloc(t->objs);

	assert_non_null(skb);
	assert_int_equal(leat_skb_add_rx_frag(skb, piece.run, (uint32_t)(piece.data - leat_run_start(piece.run)),
					      piece.size), 0);
	return skb;
}

/** They have one chunk, and one reference keeps it. */
static void pieces_of_a_chunk_join_when_they_touch(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_frag a, b, c;
	struct leat_skb *skb;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	leat_page_frag_init(&cache, t.payload);
	a = leat_page_frag_alloc(&cache, 1000);
	b = leat_page_frag_alloc(&cache, 1004);
	c = leat_page_frag_alloc(&cache, 8);
	skb = skb_of_piece(&t, a);
	assert_false(leat_skb_can_coalesce(skb, c.run, (uint32_t)(c.data - leat_run_start(c.run))));
	assert_true(leat_skb_can_coalesce(skb, b.run, (uint32_t)(b.data - leat_run_start(b.run))));
	leat_skb_coalesce_rx_frag(skb, b.run, (uint32_t)(b.data - leat_run_start(b.run)), b.size);
	assert_int_equal(skb->nr_frags, 1);
	assert_int_equal(skb->truesize, LEAT_GRANULE_SIZE + 4 * LEAT_GRANULE_SIZE);
	/* there are 4 bytes between b and c */
	assert_false(leat_skb_can_coalesce(skb, c.run, (uint32_t)(c.data - leat_run_start(c.run))));
	leat_page_pool_put_page(c.run);
	leat_page_frag_drain(&cache);
	assert_out(&t, LEAT_BLOCK_GRANULES, 1); /* the merged fragment keeps the chunk */
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void what_is_held_twice_joins_itself(void **state)
{
	struct leat_run run;
	struct leat_skb *skb;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	run = test_run(t.payload, 4);
	skb = skb_of_run(&t, run);
	skb->frag[0].len = skb->len = skb->data_len = 700;
	leat_page_pool_get_page(run);
	assert_false(leat_skb_can_coalesce(skb, run, 701));
	assert_true(leat_skb_can_coalesce(skb, run, 700));
	leat_skb_coalesce_rx_frag(skb, run, 700, 300);
	assert_int_equal(skb->nr_frags, 1);
	assert_int_equal(skb->len, 1000);
	assert_int_equal(skb->truesize, 5 * LEAT_GRANULE_SIZE);
	assert_false(leat_skb_is_shared(skb));
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static struct leat_skb *bug_skb;

static void join_a_stranger(void *arg)
{
	leat_skb_coalesce_rx_frag(bug_skb, *(struct leat_run *)arg, 0, 1);
}

static void make_a_frame_of_nothing(void *arg)
{
	leat_skb_to_xdp_frame(arg, bug_skb);
}

static void mistakes_are_caught(void **state)
{
	struct test_pkt t;
	struct leat_run run;

	(void)state;
	test_pkt_open(&t);
	bug_skb = leat_skb_alloc(t.objs);
	run = test_run(t.payload, 1);
	assert_bug(join_a_stranger, &run);
	assert_bug(make_a_frame_of_nothing, t.objs);
	leat_page_pool_put_page(run);
	leat_skb_free(bug_skb);
	test_pkt_close(&t);
}

/* ---- looking while others share ---- */

static struct leat_run others;

static void *get_and_put(void *arg)
{
	unsigned int i, rounds = *(unsigned int *)arg;

	for (i = 0; i < rounds; i++) {
		leat_page_pool_get_page(others);
		leat_page_pool_put_page(others);
	}
	return NULL;
}

static void others_may_share_their_runs_of_the_same_block(void **state)
{
	unsigned int i, rounds = TEST_ROUNDS(200000u);
	struct leat_skb *skb;
	struct leat_run next;
	struct test_pkt t;
	pthread_t thread;

	(void)state;
	test_pkt_open(&t);
	others = test_run(t.payload, 2);
	skb = skb_of_run(&t, test_run(t.payload, 2));
	next = test_run(t.payload, 2);
	assert_int_equal(pthread_create(&thread, NULL, get_and_put, &rounds), 0);
	for (i = 0; i < rounds; i++) {
		assert_true(leat_skb_can_coalesce(skb, next, 0));
		assert_false(leat_run_is_shared(next));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	leat_page_pool_put_page(others);
	leat_page_pool_put_page(next);
	leat_skb_free(skb);
	test_pkt_close(&t);
}

/* ---- reading ---- */

static void bits_are_copied_from_every_offset(void **state)
{
	static const uint32_t lens[] = { 5, 1, 0, 7, 3 };
	uint8_t all[64], part[64];
	struct leat_xdp_buff xdp;
	struct leat_skb *skb;
	struct test_pkt t;
	uint32_t i, k, n = 0, off, len;

	(void)state;
	test_pkt_open(&t);
	leat_xdp_buff_init(&xdp, test_run(t.payload, 1), 20, 14);
	for (; n < 14; n++)
		xdp.data[n] = all[n] = (uint8_t)(n + 1);
	skb = leat_skb_from_xdp_buff(t.objs, &xdp);
	for (i = 0; i < COUNT(lens); i++) {
		struct leat_run run = test_run(t.payload, 1);

		for (k = 0; k < lens[i]; k++, n++)
			leat_run_start(run)[i * 3 + k] = all[n] = (uint8_t)(n + 1);
		assert_int_equal(leat_skb_add_rx_frag(skb, run, i * 3, lens[i]), 0);
	}
	assert_int_equal(skb->len, n);
	for (off = 0; off <= n; off++) {
		for (len = 0; len <= n - off; len++) {
			memset(part, 0xee, sizeof(part));
			assert_int_equal(leat_skb_copy_bits(skb, off, part, len), 0);
			assert_memory_equal(part, all + off, len);
			assert_int_equal(part[len], 0xee);
		}
		assert_int_equal(leat_skb_copy_bits(skb, off, part, n - off + 1), -EINVAL);
	}
	assert_int_equal(leat_skb_copy_bits(skb, n + 1, part, 0), -EINVAL);
	assert_int_equal(leat_skb_copy_bits(skb, 1, part, UINT32_MAX), -EINVAL);
	assert_int_equal(leat_skb_copy_bits(skb, UINT32_MAX, part, 2), -EINVAL);
	leat_skb_free(skb);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references_move_through_every_conversion),
		cmocka_unit_test(an_empty_skb_can_carry_fragments_alone),
		cmocka_unit_test(no_memory_for_the_skb_leaves_the_buff),
		cmocka_unit_test(no_memory_for_the_list_leaves_the_skb),
		cmocka_unit_test(clones_go_in_any_order_on_any_thread),
		cmocka_unit_test(each_clone_has_its_own_fragments),
		cmocka_unit_test(clones_become_buffs_independently),
		cmocka_unit_test(mixed_skbs_are_freed_in_bulk_on_any_thread),
		cmocka_unit_test(full_skbs_are_freed_in_bulk),
		cmocka_unit_test(the_eighteenth_fragment_is_refused),
		cmocka_unit_test(neighbours_join_over_the_border_of_blocks),
		cmocka_unit_test(joined_neighbours_are_shared_and_freed_as_one),
		cmocka_unit_test(what_is_not_a_neighbour_does_not_join),
		cmocka_unit_test(what_is_shared_does_not_join),
		cmocka_unit_test(what_is_of_another_pool_does_not_join),
		cmocka_unit_test(pieces_of_a_chunk_join_when_they_touch),
		cmocka_unit_test(what_is_held_twice_joins_itself),
		cmocka_unit_test(mistakes_are_caught),
		cmocka_unit_test(others_may_share_their_runs_of_the_same_block),
		cmocka_unit_test(bits_are_copied_from_every_offset),
	};

	return cmocka_run_group_tests_name("skb", tests, NULL, NULL);
}
