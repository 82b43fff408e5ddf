/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_pkt.h: what the tests of packets share: a pool for payload, one for objects, another thread to free on.
 */
#ifndef LEAT_PKT_TEST_PKT_H
#define LEAT_PKT_TEST_PKT_H

#include "mem/test_mem.h"

#include <leat/page_frag.h>
#include <leat/skb.h>
#include <pthread.h>

/** Payload and objects lie side by side: the pool of the objects begins where that of the payload ends. */
struct test_pkt {
	struct test_mem mem;
	struct leat_page_pool *payload, *objs;
};

static inline void test_pkt_open(struct test_pkt *t)
{
	test_mem_open(&t->mem, EXTENT * 2);
	t->payload = test_pool(t->mem.segment, EXTENT);
	t->objs = test_pool(t->mem.segment, EXTENT);
}

/** Whoever forgets a reference is found here. */
static inline void test_pkt_close(struct test_pkt *t)
{
	test_pool_end(t->payload);
	test_pool_end(t->objs);
	test_mem_close(&t->mem);
}

/** Granules out of both pools, after what other threads have put. */
static inline void assert_out(struct test_pkt *t, uint64_t payload, uint64_t objs)
{
	leat_page_pool_drain(t->payload);
	leat_page_pool_drain(t->objs);
	assert_int_equal(test_outstanding(t->payload), payload);
	assert_int_equal(test_outstanding(t->objs), objs);
}

static inline struct leat_run test_run(struct leat_page_pool *pool, uint32_t granules)
{
	struct leat_run run = leat_page_pool_alloc(pool, granules);

	assert_false(leat_run_is_none(run));
	return run;
}

static inline void on_another_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static const struct leat_pkt_meta test_meta = {
	.timestamp = UINT64_C(0x0123456789abcdef),
	.hash = 0xdeadbeef,
	.vlan_tci = 0x6abc,
	.csum_start = 34,
	.csum_offset = 16,
	.flags = LEAT_META_TIMESTAMP | LEAT_META_HASH | LEAT_META_VLAN | LEAT_META_CSUM_PARTIAL,
};

static inline void assert_test_meta(const struct leat_pkt_meta *meta)
{
	assert_memory_equal(meta, &test_meta, sizeof(test_meta));
}

/** A buff over 4 granules with 256 bytes of headroom, 100 bytes of packet and 8 of metadata, and @frags fragments. */
static inline void test_buff(struct test_pkt *t, struct leat_xdp_buff *xdp, unsigned int frags)
{
	unsigned int i;

	leat_xdp_buff_init(xdp, test_run(t->payload, 4), LEAT_XDP_HEADROOM, 100);
	for (i = 0; i < 100; i++)
		xdp->data[i] = (uint8_t)i;
	assert_int_equal(leat_xdp_adjust_meta(xdp, -8), 0);
	memcpy(xdp->data_meta, "metadata", 8);
	xdp->meta = test_meta;
	if (!frags)
		return;
	xdp->frags = leat_xdp_frags_alloc(t->objs);
	assert_non_null(xdp->frags);
	for (i = 0; i < frags; i++) {
		struct leat_run run = test_run(t->payload, 2);

		memset(leat_run_start(run), (int)(0x80 + i), leat_run_size(run));
		assert_int_equal(leat_xdp_buff_add_frag(xdp, run, i, 50 + i), 0);
	}
}

/** Bytes in the fragments of test_buff(). */
static inline uint32_t test_frags_len(unsigned int frags)
{
	return frags * 50 + frags * (frags - 1) / 2;
}

#endif
