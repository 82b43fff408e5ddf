/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bridge_test.c: every rule of the bridge on ports of the test's own, and the filtering database by itself. The worker
 * is polled on the test's thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/bridge.h>
#include <time.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bridge/fdb.h"
#include "xdp/test_port.h"

#define PORTS 3

/* A bridge with three ports. */
struct house {
	struct leat_net *net;
	struct leat_bridge *bridge;
	struct leat_netdev *port[PORTS];
};

static void house_open(struct house *h, uint64_t ageing_ns, uint32_t entries)
{
	struct leat_bridge_opts opts = { .size = sizeof(opts), .name = "br0", .ageing_ns = ageing_ns,
					 .entries = entries };
	char name[16];
	int i;

	memset(h, 0, sizeof(*h));
	h->net = test_net_make(NULL);
	assert_int_equal(leat_bridge_create(h->net, &opts, &h->bridge), 0);
	for (i = 0; i < PORTS; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		h->port[i] = test_port_make(h->net, name);
		assert_int_equal(leat_bridge_add_port(h->bridge, h->port[i]), 0);
	}
}

static void house_close(struct house *h)
{
	leat_bridge_destroy(h->bridge);
	test_net_end(h->net);
}

/* Station @n's address; 0: broadcast. */
static void mac_of(uint8_t mac[6], unsigned int n)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	uint8_t one[6] = { 2, 0, 0, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

	memcpy(mac, n ? one : broadcast, 6);
}

/* Puts a frame of @len bytes with a mark after its header into @port, without polling. */
static void put_len(struct house *h, int port, unsigned int dest, unsigned int source, uint8_t mark, uint32_t len)
{
	uint8_t *frame = calloc(1, len);

	assert_non_null(frame);
	mac_of(frame, dest);
	mac_of(frame + 6, source);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	frame[14] = mark;
	test_port_put(h->port[port], frame, len);
	free(frame);
}

static void put(struct house *h, int port, unsigned int dest, unsigned int source, uint8_t mark)
{
	put_len(h, port, dest, source, mark, 60);
}

static void send(struct house *h, int port, unsigned int dest, unsigned int source, uint8_t mark)
{
	put(h, port, dest, source, mark);
	test_net_run(h->net);
}

/* The marks of what @port has sent since the last call are exactly @marks. */
static void expect(struct house *h, int port, const char *marks)
{
	struct test_queue *out = &test_port_of(h->port[port])->out;
	char got[256] = "";
	size_t n = 0;

	for (; out->done < out->n && n < sizeof(got) - 1; out->done++)
		got[n++] = (char)out->packet[out->done].bytes[14];
	assert_string_equal(got, marks);
}

static struct leat_bridge_stats stats_of(const struct house *h)
{
	struct leat_bridge_stats stats;

	leat_bridge_stats(h->bridge, &stats);
	return stats;
}

static void sleep_ns(uint64_t ns)
{
	uint64_t end = leat_clock_ns() + ns;
	struct timespec ts = { .tv_sec = (time_t)(ns / LEAT_NSEC_PER_SEC), .tv_nsec = (long)(ns % LEAT_NSEC_PER_SEC) };

	while (leat_clock_ns() < end)
		nanosleep(&ts, NULL);
}

/* ---- forwarding ---- */

static void test_flood_learn_forward(void **state)
{
	struct leat_bridge_stats stats;
	uint8_t mac[6];
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	assert_string_equal(leat_bridge_name(h.bridge), "br0");
	send(&h, 0, 2, 1, 'a'); /* nobody has heard of 2 */
	expect(&h, 0, "");
	expect(&h, 1, "a");
	expect(&h, 2, "a");
	send(&h, 1, 1, 2, 'b'); /* 1 is known */
	expect(&h, 0, "b");
	expect(&h, 1, "");
	expect(&h, 2, "");
	send(&h, 0, 2, 1, 'c'); /* and now 2 is */
	expect(&h, 1, "c");
	expect(&h, 2, "");
	send(&h, 2, 0, 3, 'd'); /* broadcast */
	expect(&h, 0, "d");
	expect(&h, 1, "d");
	expect(&h, 2, "");
	stats = stats_of(&h);
	assert_int_equal(stats.flooded, 2);
	assert_int_equal(stats.forwarded, 2);
	assert_int_equal(stats.learned, 3);
	assert_int_equal(stats.moved, 0);
	assert_int_equal(stats.evicted, 0);
	mac_of(mac, 2);
	assert_ptr_equal(leat_bridge_lookup(h.bridge, mac), h.port[1]);
	mac_of(mac, 4);
	assert_null(leat_bridge_lookup(h.bridge, mac));
	assert_int_equal(test_all_drops(h.port[0]) + test_all_drops(h.port[1]) + test_all_drops(h.port[2]), 0);
	house_close(&h);
}

/* Forwarded and flooded packets of one batch reach each port in the order they came, in one call. */
static void test_order_and_batches(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	send(&h, 1, 0, 2, 'x');
	send(&h, 2, 0, 3, 'x');
	expect(&h, 0, "xx");
	expect(&h, 1, "x");
	expect(&h, 2, "x");
	test_port_of(h.port[1])->calls = 0;
	test_port_of(h.port[2])->calls = 0;
	put(&h, 0, 2, 1, '1');
	put(&h, 0, 3, 1, '2');
	put(&h, 0, 0, 1, '3');
	put(&h, 0, 2, 1, '4');
	put(&h, 0, 9, 1, '5');
	put(&h, 0, 3, 1, '6');
	test_net_run(h.net);
	expect(&h, 1, "1345");
	expect(&h, 2, "2356");
	assert_int_equal(test_port_of(h.port[1])->calls, 1);
	assert_int_equal(test_port_of(h.port[2])->calls, 1);
	house_close(&h);
}

/* More packets than one batch, in several pieces each, flooded: every byte arrives. */
static void test_flood_fragments(void **state)
{
	struct test_queue *in, *out;
	struct house h;
	unsigned int i, port;

	(void)state;
	house_open(&h, 0, 0);
	in = &test_port_of(h.port[0])->in;
	test_port_of(h.port[0])->piece = 100;
	for (i = 0; i < 200; i++) {
		put_len(&h, 0, 0, 1, (uint8_t)i, 900);
		memset(in->packet[i].bytes + 15, (int)i, 885);
	}
	test_net_run(h.net);
	for (port = 1; port < PORTS; port++) {
		out = &test_port_of(h.port[port])->out;
		assert_int_equal(out->n, 200);
		for (i = 0; i < 200; i++) {
			assert_int_equal(out->packet[i].len, 900);
			assert_memory_equal(out->packet[i].bytes, in->packet[i].bytes, 900);
		}
	}
	house_close(&h);
}

static void test_moved(void **state)
{
	uint8_t mac[6];
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	mac_of(mac, 1);
	send(&h, 0, 0, 1, 'a');
	assert_ptr_equal(leat_bridge_lookup(h.bridge, mac), h.port[0]);
	send(&h, 1, 0, 1, 'b');
	assert_ptr_equal(leat_bridge_lookup(h.bridge, mac), h.port[1]);
	assert_int_equal(stats_of(&h).moved, 1);
	assert_int_equal(stats_of(&h).learned, 1);
	expect(&h, 2, "ab");
	expect(&h, 1, "a");
	send(&h, 2, 1, 5, 'c');
	expect(&h, 1, "c");
	house_close(&h);
}

static void test_ageing(void **state)
{
	const uint64_t ageing = 20 * 1000 * 1000;
	uint8_t mac[6];
	struct house h;
	int i;

	(void)state;
	house_open(&h, ageing, 0);
	mac_of(mac, 1);
	send(&h, 0, 0, 1, 'a');
	expect(&h, 1, "a");
	expect(&h, 2, "a");
	sleep_ns(ageing + ageing / 4);
	assert_null(leat_bridge_lookup(h.bridge, mac));
	send(&h, 1, 1, 2, 'b'); /* forgotten: flooded */
	expect(&h, 0, "b");
	expect(&h, 2, "b");
	for (i = 0; i < 6; i++) { /* heard of again and again: remembered beyond the ageing time */
		uint64_t before = leat_clock_ns();

		send(&h, 0, 0, 1, 'c');
		sleep_ns(ageing / 4);
		if (leat_clock_ns() - before < ageing - ageing / 32) /* else the machine made us late */
			assert_ptr_equal(leat_bridge_lookup(h.bridge, mac), h.port[0]);
	}
	assert_int_equal(stats_of(&h).moved, 0);
	sleep_ns(ageing + ageing / 4);
	send(&h, 2, 0, 1, 'd'); /* elsewhere after it was forgotten: learned, not moved */
	assert_int_equal(stats_of(&h).moved, 0);
	assert_ptr_equal(leat_bridge_lookup(h.bridge, mac), h.port[2]);
	house_close(&h);
}

/* ---- drops ---- */

static void test_bad_source(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	send(&h, 0, 2, 0, 'a');
	expect(&h, 1, "");
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_BRIDGE_BAD_SOURCE), 1);
	assert_int_equal(test_all_drops(h.port[0]), 1);
	assert_int_equal(stats_of(&h).learned, 0);
	house_close(&h);
}

static void test_reserved(void **state)
{
	uint8_t frame[60] = { 0x01, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 1 };
	struct house h;
	int i;

	(void)state;
	house_open(&h, 0, 0);
	for (i = 0; i < 18; i++) {
		frame[5] = (uint8_t)i;
		test_port_put(h.port[0], frame, sizeof(frame));
	}
	test_net_run(h.net);
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_BRIDGE_RESERVED), 16);
	assert_int_equal(test_port_of(h.port[1])->out.n, 2); /* 10 and 11 are not reserved */
	assert_int_equal(stats_of(&h).learned, 1);
	house_close(&h);
}

static void test_same_port(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	send(&h, 0, 0, 1, 'a');
	send(&h, 0, 1, 2, 'b');
	expect(&h, 0, "");
	expect(&h, 1, "a");
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_BRIDGE_SAME_PORT), 1);
	house_close(&h);
}

static void test_no_port(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[1]), 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[2]), 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[2]), -ENOENT);
	send(&h, 0, 0, 1, 'a');
	send(&h, 0, 7, 1, 'b');
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_BRIDGE_NO_PORT), 2);
	assert_int_equal(stats_of(&h).flooded, 0);
	house_close(&h);
}

static void test_oversize(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	h.port[1]->mtu = 500;
	put_len(&h, 0, 0, 1, 'a', 518); /* an MTU, a header and a tag: just fits */
	put_len(&h, 0, 0, 1, 'b', 519);
	test_net_run(h.net);
	expect(&h, 1, "a");
	expect(&h, 2, "ab");
	h.port[2]->mtu = 500; /* the last of the flood, too */
	put_len(&h, 0, 0, 1, 'c', 519);
	put_len(&h, 0, 0, 1, 'd', 60);
	test_net_run(h.net);
	expect(&h, 1, "d");
	expect(&h, 2, "d");
	assert_int_equal(test_drops(h.port[1], LEAT_DROP_OVERSIZE), 2);
	assert_int_equal(test_drops(h.port[2], LEAT_DROP_OVERSIZE), 1);
	assert_int_equal(test_all_drops(h.port[0]), 0);
	house_close(&h);
}

static void test_clone_fails(void **state)
{
	struct leat_page_pool *objs;
	unsigned int nth, lost;
	struct house h;

	(void)state;
	for (nth = 1; nth <= 2; nth++) {
		house_open(&h, 0, 0);
		objs = leat_worker_objs(leat_net_worker(h.net, 0));
		send(&h, 0, 0, 1, 'x'); /* so that the worker has taken its pool */
		expect(&h, 1, "x");
		expect(&h, 2, "x");
		put(&h, 0, 0, 1, 'a');
		leat_page_pool_fail_nth(objs, nth); /* 1: the skb itself; 2: its clone */
		test_net_run(h.net);
		leat_page_pool_fail_nth(objs, 0);
		lost = (unsigned int)test_drops(h.port[0], LEAT_DROP_NO_MEMORY);
		assert_int_equal(lost, 1);
		expect(&h, 1, "");
		expect(&h, 2, nth == 2 ? "a" : "");
		house_close(&h);
	}
}

/* ---- ports ---- */

static void test_add_port(void **state)
{
	struct leat_netdev *extra[LEAT_BRIDGE_PORTS_MAX];
	struct leat_bridge *other;
	unsigned int i;
	char name[16];
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	assert_int_equal(leat_bridge_create(h.net, NULL, &other), 0);
	assert_int_equal(leat_bridge_add_port(h.bridge, h.port[0]), -EBUSY);
	assert_int_equal(leat_bridge_add_port(other, h.port[0]), -EBUSY);
	assert_int_equal(leat_bridge_del_port(other, h.port[0]), -ENOENT);
	for (i = 0; i < LEAT_BRIDGE_PORTS_MAX - PORTS + 1; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		extra[i] = NULL;
		assert_int_equal(leat_netdev_create(h.net, "test", name, &test_port_ops, 1, 1,
						    sizeof(struct test_port), &extra[i]), 0);
		assert_int_equal(leat_bridge_add_port(h.bridge, extra[i]),
				 i < LEAT_BRIDGE_PORTS_MAX - PORTS ? 0 : -ENOSPC);
	}
	assert_int_equal(leat_bridge_del_port(h.bridge, extra[0]), 0);
	assert_int_equal(leat_bridge_add_port(h.bridge, extra[i - 1]), 0);
	leat_bridge_destroy(other);
	leat_bridge_destroy(NULL);
	house_close(&h);
}

/* A port that only receives: nothing is sent there, and both ends of a captured conversation come out. */
static void test_receive_only(void **state)
{
	static const struct leat_netdev_ops ops = {
		.open = test_port_open, .stop = test_port_stop, .poll = test_port_poll, .destroy = test_port_destroy,
	};
	struct leat_netdev *capture = NULL;
	uint8_t mac[6];
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	assert_int_equal(leat_netdev_create(h.net, "test", "capture", &ops, 1, 1, sizeof(struct test_port), &capture),
			 0);
	assert_int_equal(leat_netdev_open(capture, NULL), 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[1]), 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[2]), 0);
	assert_int_equal(leat_bridge_add_port(h.bridge, capture), 0);
	h.port[1] = capture;
	put(&h, 1, 2, 1, 'a');
	put(&h, 1, 1, 2, 'b');
	put(&h, 1, 2, 1, 'c');
	test_net_run(h.net);
	expect(&h, 0, "abc");
	mac_of(mac, 1);
	assert_null(leat_bridge_lookup(h.bridge, mac));
	send(&h, 0, 0, 3, 'd');
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_BRIDGE_NO_PORT), 1);
	assert_int_equal(test_all_drops(capture), 0);
	house_close(&h);
}

/* What a port that has gone was known for is forgotten, and its slot serves the next one. */
static void test_removed_is_flushed(void **state)
{
	uint8_t mac[6];
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	mac_of(mac, 1);
	send(&h, 0, 0, 1, 'a');
	expect(&h, 1, "a");
	expect(&h, 2, "a");
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[0]), 0);
	assert_null(leat_bridge_lookup(h.bridge, mac));
	send(&h, 1, 1, 2, 'b');
	expect(&h, 0, "");
	expect(&h, 2, "b");
	send(&h, 0, 0, 1, 'c'); /* no longer in the bridge */
	expect(&h, 1, "");
	assert_int_equal(test_drops(h.port[0], LEAT_DROP_NO_HANDLER), 1);
	assert_int_equal(leat_bridge_add_port(h.bridge, h.port[0]), 0);
	assert_null(leat_bridge_lookup(h.bridge, mac));
	send(&h, 1, 0, 2, 'd');
	expect(&h, 0, "d");
	house_close(&h);
}

static void test_options(void **state)
{
	struct leat_bridge_opts opts = { .size = sizeof(opts), .entries = UINT32_MAX };
	struct leat_bridge *bridge = NULL;
	struct leat_net *net = test_net_make(NULL);
	unsigned long nth;
	int err;

	(void)state;
	assert_int_equal(leat_bridge_create(net, &opts, &bridge), -EINVAL);
	opts.size = 1;
	assert_int_equal(leat_bridge_create(net, &opts, &bridge), -EINVAL);
	for (nth = 1;; nth++) {
		leat_heap_fail_nth(nth);
		err = leat_bridge_create(net, NULL, &bridge);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_true(leat_heap_failed());
	}
	leat_heap_fail_nth(0);
	assert_true(nth > 3);
	leat_bridge_destroy(bridge);
	test_net_end(net);
}

static void test_add_port_no_memory(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, 0, 0);
	assert_int_equal(leat_bridge_del_port(h.bridge, h.port[0]), 0);
	leat_heap_fail_nth(1);
	assert_int_equal(leat_bridge_add_port(h.bridge, h.port[0]), -ENOMEM);
	leat_heap_fail_nth(0);
	send(&h, 1, 0, 2, 'a');
	expect(&h, 0, "");
	expect(&h, 2, "a");
	assert_int_equal(leat_bridge_add_port(h.bridge, h.port[0]), 0);
	send(&h, 1, 0, 2, 'b');
	expect(&h, 0, "b");
	house_close(&h);
}

/* ---- the filtering database ---- */

static void test_fdb_evicts_oldest(void **state)
{
	struct leat_fdb fdb;
	uint64_t mac;

	(void)state;
	assert_int_equal(leat_fdb_init(&fdb, 1, 1000000), 0);
	for (mac = 1; mac <= 8; mac++)
		assert_int_equal(leat_fdb_learn(&fdb, mac, (unsigned int)mac, 1000 + mac), LEAT_FDB_LEARNED);
	assert_int_equal(leat_fdb_learn(&fdb, 1, 1, 50000), LEAT_FDB_KNOWN); /* 2 is the oldest now */
	assert_int_equal(leat_fdb_learn(&fdb, 9, 63, 60000), LEAT_FDB_EVICTED);
	assert_int_equal(leat_fdb_lookup(&fdb, 2, 60000), -1);
	assert_int_equal(leat_fdb_lookup(&fdb, 1, 60000), 1);
	assert_int_equal(leat_fdb_lookup(&fdb, 9, 60000), 63);
	assert_int_equal(leat_fdb_learn(&fdb, 10, 0, 1003 + 1000000), LEAT_FDB_LEARNED); /* 3 has aged */
	assert_int_equal(leat_fdb_lookup(&fdb, 10, 1003 + 1000000), 0);
	assert_int_equal(leat_fdb_lookup(&fdb, 3, 1003), -1);
	assert_int_equal(leat_fdb_learn(&fdb, 10, 5, 1003 + 1000001), LEAT_FDB_MOVED);
	assert_int_equal(leat_fdb_lookup(&fdb, 10, 1003 + 1000001), 5);
	leat_fdb_flush(&fdb, 5);
	assert_int_equal(leat_fdb_lookup(&fdb, 10, 1003 + 1000001), -1);
	assert_int_equal(leat_fdb_lookup(&fdb, 9, 60000), 63);
	leat_fdb_fini(&fdb);
}

/* The time is written only now and then, and an entry still lives for the ageing time but for a 64th. */
static void test_fdb_refresh(void **state)
{
	struct leat_fdb fdb;

	(void)state;
	assert_int_equal(leat_fdb_init(&fdb, 8, 6400), 0);
	leat_fdb_learn(&fdb, 7, 0, 1000);
	leat_fdb_learn(&fdb, 7, 0, 1099);
	assert_int_equal(leat_fdb_lookup(&fdb, 7, 1000 + 6399), 0);
	assert_int_equal(leat_fdb_lookup(&fdb, 7, 1000 + 6400), -1);
	leat_fdb_learn(&fdb, 7, 0, 1100);
	assert_int_equal(leat_fdb_lookup(&fdb, 7, 1100 + 6399), 0);
	assert_int_equal(leat_fdb_lookup(&fdb, 7, 500), 0); /* another thread's clock, a hair behind */
	leat_fdb_fini(&fdb);
}

/* Consecutive addresses fill the buckets evenly: half as many as there is room for lose few. */
static void test_fdb_spread(void **state)
{
	unsigned int lost = 0;
	struct leat_fdb fdb;
	uint64_t mac;

	(void)state;
	assert_int_equal(leat_fdb_init(&fdb, 4096, UINT64_MAX), 0);
	for (mac = 0; mac < 2048; mac++)
		lost += leat_fdb_learn(&fdb, mac << 8, (unsigned int)mac % 64, mac) == LEAT_FDB_EVICTED;
	assert_true(lost < 100); /* expected: about 1% of the buckets overflow */
	leat_fdb_fini(&fdb);
}

static void test_evicted_is_counted(void **state)
{
	struct house h;
	unsigned int i;

	(void)state;
	house_open(&h, 0, 8);
	for (i = 1; i <= 10; i++)
		put(&h, 0, 0, i, 'a');
	test_net_run(h.net);
	assert_int_equal(stats_of(&h).learned, 10);
	assert_int_equal(stats_of(&h).evicted, 2);
	house_close(&h);
}

/* A flood of new addresses from another thread: nothing that is looked up is ever torn. */
static void *flood_addresses(void *arg)
{
	struct leat_fdb *fdb = arg;
	uint64_t mac;

	for (mac = 1; mac < 200000; mac++)
		leat_fdb_learn(fdb, mac % 64, mac % 64, mac);
	return NULL;
}

static void test_fdb_threads(void **state)
{
	struct leat_fdb fdb;
	pthread_t thread;
	uint64_t i;
	int slot;

	(void)state;
	assert_int_equal(leat_fdb_init(&fdb, 16, UINT64_MAX), 0);
	assert_int_equal(pthread_create(&thread, NULL, flood_addresses, &fdb), 0);
	for (i = 0; i < 200000; i++) {
		slot = leat_fdb_lookup(&fdb, i % 64, i);
		assert_true(slot == -1 || slot == (int)(i % 64));
		leat_fdb_learn(&fdb, (i + 32) % 64, (unsigned int)((i + 32) % 64), i);
	}
	pthread_join(thread, NULL);
	leat_fdb_fini(&fdb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_learn_forward),
		cmocka_unit_test(test_order_and_batches),
		cmocka_unit_test(test_flood_fragments),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_ageing),
		cmocka_unit_test(test_bad_source),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_same_port),
		cmocka_unit_test(test_no_port),
		cmocka_unit_test(test_oversize),
		cmocka_unit_test(test_clone_fails),
		cmocka_unit_test(test_add_port),
		cmocka_unit_test(test_receive_only),
		cmocka_unit_test(test_removed_is_flushed),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_add_port_no_memory),
		cmocka_unit_test(test_fdb_evicts_oldest),
		cmocka_unit_test(test_fdb_refresh),
		cmocka_unit_test(test_fdb_spread),
		cmocka_unit_test(test_evicted_is_counted),
		cmocka_unit_test(test_fdb_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
