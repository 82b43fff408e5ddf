/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_frame_test.c: a packet's edges move within the kernel's limits, a frame and a buff are two forms of one
 * reference, fragments have their number, and a return puts everything once.
 */
#include "pkt/test_pkt.h"

#include <errno.h>
#include <limits.h>

static void actions_have_the_names_of_the_kernel(void **state)
{
	(void)state;
	assert_string_equal(leat_xdp_action_name(LEAT_XDP_ABORTED), "aborted");
	assert_string_equal(leat_xdp_action_name(LEAT_XDP_DROP), "drop");
	assert_string_equal(leat_xdp_action_name(LEAT_XDP_PASS), "pass");
	assert_string_equal(leat_xdp_action_name(LEAT_XDP_TX), "tx");
	assert_string_equal(leat_xdp_action_name(LEAT_XDP_REDIRECT), "redirect");
	assert_string_equal(leat_xdp_action_name(5), "unknown");
	assert_string_equal(leat_xdp_action_name(UINT32_MAX), "unknown");
}

/* ---- edges ---- */

/** A buff without metadata. */
static void plain_buff(struct test_pkt *t, struct leat_xdp_buff *xdp, uint32_t headroom, uint32_t len)
{
	leat_xdp_buff_init(xdp, test_run(t->payload, 4), headroom, len);
}

static void head_moves_between_headroom_and_an_ethernet_header(void **state)
{
	struct leat_xdp_buff xdp, before;
	struct test_pkt t;
	int delta, ok;

	(void)state;
	test_pkt_open(&t);
	plain_buff(&t, &xdp, 256, 100);
	before = xdp;
	for (delta = -300; delta < 150; delta++) {
		ok = delta >= -(256 - 40) && delta <= 100 - 14; /* the kernel's frame stays out of reach */
		xdp = before;
		assert_int_equal(leat_xdp_adjust_head(&xdp, delta), ok ? 0 : -EINVAL);
		assert_ptr_equal(xdp.data, before.data + (ok ? delta : 0));
		assert_ptr_equal(xdp.data_meta, xdp.data);
		assert_ptr_equal(xdp.data_end, before.data_end);
	}
	xdp = before;
	assert_int_equal(leat_xdp_adjust_head(&xdp, INT_MAX), -EINVAL);
	assert_int_equal(leat_xdp_adjust_head(&xdp, INT_MIN), -EINVAL);
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void metadata_moves_with_the_head(void **state)
{
	struct leat_xdp_buff xdp, before;
	struct test_pkt t;
	int delta, ok;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 0);
	before = xdp;
	for (delta = -300; delta < 150; delta++) {
		ok = delta >= -(256 - 40) + 8 && delta <= 100 - 14;
		xdp = before;
		assert_int_equal(leat_xdp_adjust_head(&xdp, delta), ok ? 0 : -EINVAL);
		assert_ptr_equal(xdp.data, before.data + (ok ? delta : 0));
		assert_ptr_equal(xdp.data_meta, xdp.data - 8);
		assert_memory_equal(xdp.data_meta, "metadata", 8);
		memcpy(before.data_meta, "metadata", 8);
	}
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void tail_moves_between_an_ethernet_header_and_the_tailroom(void **state)
{
	enum { ROOM = 2048 - 256 - 100 - 320 };
	struct leat_xdp_buff xdp, before;
	struct test_pkt t;
	int delta, ok, i;

	(void)state;
	test_pkt_open(&t);
	plain_buff(&t, &xdp, 256, 100);
	before = xdp;
	for (delta = -120; delta < ROOM + 400; delta++) {
		ok = delta >= -(100 - 14) && delta <= ROOM;
		xdp = before;
		memset(xdp.data_end, 0xff, 1600);
		assert_int_equal(leat_xdp_adjust_tail(&xdp, delta), ok ? 0 : -EINVAL);
		assert_ptr_equal(xdp.data_end, before.data_end + (ok ? delta : 0));
		assert_ptr_equal(xdp.data, before.data);
		for (i = 0; ok && i < delta; i += 7) /* new bytes are zero, and no more */
			assert_int_equal(before.data_end[i], 0);
		if (delta >= 0)
			assert_int_equal(*xdp.data_end, 0xff);
	}
	assert_int_equal(leat_xdp_adjust_tail(&before, INT_MAX), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&before, INT_MIN), -EINVAL);
	leat_xdp_return_buff(&before);
	test_pkt_close(&t);
}

static void a_packet_that_fills_its_buffer_may_shrink_but_not_grow(void **state)
{
	struct leat_xdp_buff xdp;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	plain_buff(&t, &xdp, 0, 2048);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EINVAL);
	assert_int_equal(leat_xdp_adjust_head(&xdp, -1), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, -1), 0);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EINVAL); /* within the tailroom */
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void a_runt_has_no_edges_to_move(void **state)
{
	struct leat_xdp_buff xdp;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	plain_buff(&t, &xdp, 256, 13);
	assert_int_equal(leat_xdp_adjust_head(&xdp, 0), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 0), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), 0);
	assert_int_equal(leat_xdp_adjust_head(&xdp, 0), 0);
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void metadata_is_a_multiple_of_four_below_256(void **state)
{
	struct leat_xdp_buff xdp, before;
	struct test_pkt t;
	int delta, size, err;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 0);
	before = xdp;
	for (delta = -300; delta < 40; delta++) {
		size = 8 - delta;
		/* as bpf_xdp_adjust_meta(): out of the buffer -EINVAL, within it a wrong length -EACCES */
		err = size < 0 || size > 256 - 40 ? -EINVAL : size % 4 ? -EACCES : 0;
		xdp = before;
		assert_int_equal(leat_xdp_adjust_meta(&xdp, delta), err);
		assert_ptr_equal(xdp.data_meta, before.data_meta + (err ? 0 : delta));
		assert_ptr_equal(xdp.data, before.data);
	}
	xdp = before;
	assert_int_equal(leat_xdp_adjust_meta(&xdp, INT_MAX), -EINVAL);
	assert_int_equal(leat_xdp_adjust_meta(&xdp, INT_MIN), -EINVAL);
	assert_int_equal(leat_xdp_adjust_head(&xdp, -200), 0);
	assert_int_equal(leat_xdp_adjust_meta(&xdp, -8), 0);
	assert_ptr_equal(xdp.data_meta, leat_run_start(xdp.run) + 40);
	assert_int_equal(leat_xdp_adjust_meta(&xdp, -4), -EINVAL);
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void a_multi_buffer_packet_shrinks_to_its_header(void **state)
{
	const uint32_t len = 100 + 50 + 51;
	struct leat_xdp_buff xdp;
	struct test_pkt t;
	uint32_t cut;

	(void)state;
	test_pkt_open(&t);
	for (cut = 0; cut <= len - LEAT_ETH_HLEN; cut++) {
		test_buff(&t, &xdp, 2);
		assert_int_equal(leat_xdp_adjust_tail(&xdp, -(int)(len - LEAT_ETH_HLEN + 1)), -EINVAL);
		assert_int_equal(leat_xdp_adjust_tail(&xdp, INT_MIN), -EINVAL);
		assert_int_equal(leat_xdp_buff_len(&xdp), len);
		assert_int_equal(leat_xdp_adjust_tail(&xdp, -(int)cut), 0);
		assert_int_equal(leat_xdp_buff_len(&xdp), len - cut);
		/* what is empty has gone, the list with the last of it */
		assert_out(&t, 4 + (cut < 51 ? 4 : cut < 101 ? 2 : 0), cut < 101);
		assert_int_equal(!!xdp.frags, cut < 101);
		assert_int_equal(xdp.data_end - xdp.data, cut < 101 ? 100 : len - cut);
		leat_xdp_return_buff(&xdp);
		assert_out(&t, 0, 0);
	}
	test_pkt_close(&t);
}

static void a_multi_buffer_packet_grows_as_far_as_its_last_run(void **state)
{
	const int room = 1024 - 1 - 51;
	struct leat_xdp_buff xdp;
	struct leat_frag *last;
	struct test_pkt t;
	unsigned int i;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 2);
	last = &xdp.frags->frag[1];
	assert_int_equal(leat_xdp_adjust_tail(&xdp, room + 1), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, INT_MAX), -EINVAL);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 0), 0);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, room), 0);
	assert_int_equal(leat_xdp_buff_len(&xdp), 201 + room);
	assert_int_equal(last->len, 51 + room);
	for (i = 0; i < last->len; i++)
		assert_int_equal(leat_run_start(last->run)[1 + i], i < 51 ? 0x81 : 0);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EINVAL);
	assert_int_equal(leat_xdp_adjust_head(&xdp, 100 - 14), 0); /* the linear part must hold the header */
	assert_int_equal(leat_xdp_adjust_head(&xdp, 1), -EINVAL);
	/* with another holder nobody writes beside what is there */
	assert_int_equal(leat_xdp_adjust_tail(&xdp, -100), 0);
	leat_page_pool_get_page(last->run);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EOPNOTSUPP);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, -1), 0);
	leat_page_pool_put_page(last->run);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 101), 0);
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void a_packet_does_not_grow_into_the_piece_behind(void **state)
{
	struct leat_page_frag_cache cache;
	struct leat_page_frag piece;
	struct leat_xdp_buff xdp;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	leat_page_frag_init(&cache, t.payload);
	piece = leat_page_frag_alloc(&cache, 100);
	test_buff(&t, &xdp, 1);
	assert_int_equal(leat_xdp_buff_add_frag(&xdp, piece.run, 0, 100), 0);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EOPNOTSUPP);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, -100), 0); /* now another one is the last */
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), 0);
	leat_xdp_return_buff(&xdp);
	leat_page_frag_drain(&cache);
	test_pkt_close(&t);
}

static void neighbours_are_one_fragment(void **state)
{
	struct leat_xdp_buff xdp;
	struct test_pkt t;
	unsigned int i;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 0);
	xdp.frags = leat_xdp_frags_alloc(t.objs);
	assert_non_null(xdp.frags);
	for (i = 0; i < 100; i++) /* over the border of blocks, and more than there are places */
		assert_int_equal(leat_xdp_buff_add_frag(&xdp, test_run(t.payload, 1), 0, LEAT_GRANULE_SIZE), 0);
	assert_int_equal(xdp.frags->n, 1);
	assert_int_equal(leat_xdp_buff_len(&xdp), 100 + 100 * LEAT_GRANULE_SIZE);
	assert_int_equal(leat_xdp_adjust_tail(&xdp, 1), -EINVAL);
	leat_xdp_return_buff(&xdp);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/* ---- frames ---- */

static void a_frame_and_a_buff_are_one_reference(void **state)
{
	struct leat_xdp_rxq rxq = { .port = 7, .queue = 3 };
	struct leat_xdp_buff xdp, back;
	struct leat_xdp_frame *frame;
	struct test_pkt t;
	unsigned int frags;

	(void)state;
	test_pkt_open(&t);
	for (frags = 0; frags <= LEAT_MAX_FRAGS; frags++) {
		test_buff(&t, &xdp, frags);
		xdp.rxq = &rxq;
		assert_int_equal(leat_xdp_buff_len(&xdp), 100 + test_frags_len(frags));
		frame = leat_xdp_buff_to_frame(&xdp);
		assert_int_equal(leat_xdp_frame_len(frame), 100 + test_frags_len(frags));
		assert_int_equal(leat_xdp_frame_run(frame).bits, xdp.run.bits);
		assert_int_equal(frame->port, 7);
		assert_int_equal(frame->queue, 3);
		assert_test_meta(&frame->meta);
		assert_out(&t, 4 + 2 * frags, frags ? 1 : 0);
		leat_xdp_frame_to_buff(frame, &back);
		assert_ptr_equal(back.data, xdp.data);
		assert_ptr_equal(back.data_end, xdp.data_end);
		assert_ptr_equal(back.data_meta, xdp.data_meta);
		assert_ptr_equal(back.frags, xdp.frags);
		assert_int_equal(back.run.bits, xdp.run.bits);
		assert_null(back.rxq);
		assert_test_meta(&back.meta);
		assert_memory_equal(back.data_meta, "metadata", 8);
		assert_out(&t, 4 + 2 * frags, frags ? 1 : 0);
		if (frags % 2)
			leat_xdp_return_buff(&back);
		else
			leat_xdp_return_frame(leat_xdp_buff_to_frame(&back));
		assert_out(&t, 0, 0);
	}
	test_pkt_close(&t);
}

static void a_frame_keeps_the_longest_metadata(void **state)
{
	struct leat_xdp_buff xdp, back;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	plain_buff(&t, &xdp, 40 + LEAT_XDP_META_MAX, 60);
	assert_int_equal(leat_xdp_adjust_meta(&xdp, -(int)LEAT_XDP_META_MAX), 0);
	leat_xdp_frame_to_buff(leat_xdp_buff_to_frame(&xdp), &back);
	assert_ptr_equal(back.data_meta, xdp.data_meta);
	leat_xdp_return_buff(&back);
	test_pkt_close(&t);
}

static void a_frame_lies_outside_the_buffer(void **state)
{
	struct leat_xdp_buff xdp;
	struct test_pkt t;
	uint8_t copy[2048];

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 0);
	memcpy(copy, leat_run_start(xdp.run), sizeof(copy));
	leat_xdp_buff_to_frame(&xdp);
	assert_memory_equal(copy, leat_run_start(xdp.run), sizeof(copy));
	leat_xdp_return_buff(&xdp);
	test_pkt_close(&t);
}

static void the_eighteenth_fragment_is_refused(void **state)
{
	struct leat_xdp_buff xdp;
	struct leat_run run;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, LEAT_MAX_FRAGS);
	run = test_run(t.payload, 1);
	assert_int_equal(leat_xdp_buff_add_frag(&xdp, run, 0, 10), -ENOSPC);
	assert_int_equal(leat_xdp_buff_len(&xdp), 100 + test_frags_len(LEAT_MAX_FRAGS));
	leat_page_pool_put_page(run); /* is still ours */
	leat_xdp_return_buff(&xdp);
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

static void no_memory_for_a_list_is_said(void **state)
{
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	leat_page_pool_fail_nth(t.objs, 1);
	assert_null(leat_xdp_frags_alloc(t.objs));
	assert_out(&t, 0, 0);
	test_pkt_close(&t);
}

/* ---- returning many ---- */

#define MANY 40u

struct many {
	struct leat_xdp_frame *frame[MANY];
};

static void *return_many(void *arg)
{
	struct many *many = arg;

	leat_xdp_return_frame_bulk(many->frame, MANY);
	return NULL;
}

static void make_many(struct test_pkt *t, struct many *many)
{
	struct leat_xdp_buff xdp;
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		test_buff(t, &xdp, i % 10 ? 0 : i % LEAT_MAX_FRAGS);
		many->frame[i] = leat_xdp_buff_to_frame(&xdp);
	}
}

static void many_frames_are_returned_in_bulk_on_any_thread(void **state)
{
	struct test_pkt t;
	struct many many;

	(void)state;
	test_pkt_open(&t);
	make_many(&t, &many);
	return_many(&many);
	assert_out(&t, 0, 0);
	make_many(&t, &many);
	on_another_thread(return_many, &many);
	assert_out(&t, 0, 0);
	leat_xdp_return_frame_bulk(NULL, 0);
	test_pkt_close(&t);
}

static void a_frame_keeps_a_destroyed_pool_alive(void **state)
{
	struct leat_xdp_buff xdp;
	struct leat_xdp_frame *frame;
	struct test_pkt t;

	(void)state;
	test_pkt_open(&t);
	test_buff(&t, &xdp, 3);
	frame = leat_xdp_buff_to_frame(&xdp);
	leat_page_pool_destroy(t.payload);
	leat_page_pool_destroy(t.objs);
	assert_int_equal(leat_segment_committed(t.mem.segment), EXTENT * 2);
	assert_int_equal(frame->data[99], 99);
	leat_xdp_return_frame(frame);
	test_mem_close(&t.mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(actions_have_the_names_of_the_kernel),
		cmocka_unit_test(head_moves_between_headroom_and_an_ethernet_header),
		cmocka_unit_test(metadata_moves_with_the_head),
		cmocka_unit_test(tail_moves_between_an_ethernet_header_and_the_tailroom),
		cmocka_unit_test(a_packet_that_fills_its_buffer_may_shrink_but_not_grow),
		cmocka_unit_test(a_runt_has_no_edges_to_move),
		cmocka_unit_test(metadata_is_a_multiple_of_four_below_256),
		cmocka_unit_test(a_multi_buffer_packet_shrinks_to_its_header),
		cmocka_unit_test(a_multi_buffer_packet_grows_as_far_as_its_last_run),
		cmocka_unit_test(a_packet_does_not_grow_into_the_piece_behind),
		cmocka_unit_test(neighbours_are_one_fragment),
		cmocka_unit_test(a_frame_and_a_buff_are_one_reference),
		cmocka_unit_test(a_frame_keeps_the_longest_metadata),
		cmocka_unit_test(a_frame_lies_outside_the_buffer),
		cmocka_unit_test(the_eighteenth_fragment_is_refused),
		cmocka_unit_test(no_memory_for_a_list_is_said),
		cmocka_unit_test(many_frames_are_returned_in_bulk_on_any_thread),
		cmocka_unit_test(a_frame_keeps_a_destroyed_pool_alive),
	};

	return cmocka_run_group_tests_name("xdp_frame", tests, NULL, NULL);
}
