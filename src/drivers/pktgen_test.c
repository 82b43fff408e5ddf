/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pktgen_test.c: the packet generator: every byte of what it makes, its count, its rate, memory that runs out; and the
 * sink. The worker is polled on the test's thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/clock.h"
#include "base/heap.h"
#include "xdp/test_port.h"

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint64_t be64(const uint8_t *p)
{
	uint64_t v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

/* One's complement sum of @len bytes on top of @sum (RFC 1071). */
static uint32_t csum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void check_packet(const struct test_packet *packet, uint32_t len, uint64_t seq)
{
	const uint8_t *p = packet->bytes;
	uint32_t udp_len = len - 34;

	assert_int_equal(packet->len, len);
	assert_int_equal(be16(p + 12), 0x0800);
	assert_int_equal(p[14], 0x45);
	assert_int_equal(be16(p + 16), len - 14);
	assert_int_equal(p[23], 17);
	assert_int_equal(csum(p + 14, 20, 0), 0xffff);
	assert_int_equal(be16(p + 38), udp_len);
	assert_int_not_equal(be16(p + 40), 0);
	assert_int_equal(csum(p + 34, udp_len, csum(p + 26, 8, 17 + udp_len)), 0xffff);
	assert_int_equal(be64(p + 42), seq);
}

static struct leat_netdev *make(struct leat_net *net, const char *const *keys, struct test_queue *q)
{
	struct leat_netdev *dev = test_driver_make(net, "pktgen", "gen", keys);

	assert_int_equal(leat_netdev_set_rx_handler(dev, test_record, q), 0);
	return dev;
}

static void test_every_size(void **state)
{
	static const uint32_t sizes[] = { 60, 61, 255, 256, 257, 511, 512, 513, 1514, 4096, 9013, 9014 };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct leat_net *net = test_net_make(NULL);
		struct test_queue q = { 0 };
		struct leat_netdev *dev;
		char size[32];

		snprintf(size, sizeof(size), "size=%u", sizes[i]);
		dev = make(net, TEST_KEYS(size, "count=130"), &q);
		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		test_net_run(net);
		assert_int_equal(q.n, 130);
		for (k = 0; k < q.n; k++)
			check_packet(&q.packet[k], sizes[i], k);
		assert_true(test_state(dev) & LEAT_NETDEV_FINISHED);
		assert_false(test_state(dev) & LEAT_NETDEV_FAILED);
		assert_true(leat_net_finished(net));
		assert_int_equal(test_all_drops(dev), 0);
		test_net_end(net);
		test_queue_clear(&q);
	}
}

static void test_addresses_and_flows(void **state)
{
	static const uint8_t mac[12] = { 2, 1, 2, 3, 4, 5, 2, 9, 8, 7, 6, 5 };
	static const uint8_t ip[8] = { 10, 1, 2, 3, 192, 168, 255, 254 };
	static const uint32_t ports[] = { 65533, 65534, 65535, 1, 2, 65533, 65534, 65535, 1, 2 };
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make(net, TEST_KEYS("dst=02:01:02:03:04:05", "src=02:09:08:07:06:05",
						      "src-ip=10.1.2.3", "dst-ip=192.168.255.254", "src-port=65533",
						      "dst-port=7", "flows=5", "count=10"), &q);
	unsigned int i;

	(void)state;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	assert_int_equal(q.n, 10);
	for (i = 0; i < q.n; i++) {
		check_packet(&q.packet[i], 60, i);
		assert_memory_equal(q.packet[i].bytes, mac, sizeof(mac));
		assert_memory_equal(q.packet[i].bytes + 26, ip, sizeof(ip));
		assert_int_equal(be16(q.packet[i].bytes + 34), ports[i]);
		assert_int_equal(be16(q.packet[i].bytes + 36), 7);
	}
	assert_memory_equal(dev->mac, mac + 6, 6);
	assert_true(dev->flags & LEAT_NETDEV_SOURCE);
	test_net_end(net);
	test_queue_clear(&q);
}

/* A UDP checksum that comes to zero is sent as ffff: 65536 sequence numbers pass every sum there is. */
static void test_checksum_never_zero(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make(net, TEST_KEYS("count=65536"), &q);
	unsigned int i, all_ones = 0;

	(void)state;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	assert_int_equal(q.n, 65536);
	for (i = 0; i < q.n; i++) {
		check_packet(&q.packet[i], 60, i);
		all_ones += be16(q.packet[i].bytes + 40) == 0xffff;
	}
	assert_true(all_ones);
	test_net_end(net);
	test_queue_clear(&q);
}

static void test_mtu(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_diag *diag = leat_diag_create();
	struct leat_netdev *dev = NULL;

	(void)state;
	assert_int_equal(test_driver_make(net, "pktgen", "a", NULL)->mtu, 1500);
	assert_int_equal(test_driver_make(net, "pktgen", "b", TEST_KEYS("size=9014"))->mtu, 9000);
	assert_int_equal(test_driver_make(net, "pktgen", "c", TEST_KEYS("size=100", "mtu=100"))->mtu, 100);
	assert_int_equal(test_driver_create(net, "pktgen", "d", TEST_KEYS("size=1515", "mtu=1500"), diag, &dev),
			 -EINVAL);
	assert_int_equal(test_driver_create(net, "pktgen", "e", TEST_KEYS("mtu=10"), diag, &dev), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 2);
	assert_int_equal(test_driver_create(net, "pktgen", "a", NULL, diag, &dev), -EEXIST);
	assert_int_equal(leat_diag_count(diag), 3);
	leat_diag_destroy(diag);
	test_net_end(net);
}

static void test_rate(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make(net, TEST_KEYS("rate=10000"), &q);
	uint64_t start, now, expected;
	unsigned int polls = 0;

	(void)state;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	start = leat_clock_ns();
	do {
		struct timespec ts = { .tv_nsec = 200000 };

		leat_worker_poll(leat_net_worker(net, 0));
		polls++;
		now = leat_clock_ns();
		if (dev->napi[0].due > now)
			nanosleep(&ts, NULL);
	} while (now - start < LEAT_NSEC_PER_SEC / 5);
	expected = (now - start) / 100000;
	assert_true(q.n <= expected + 2);
	assert_true(q.n > expected / 2); /* half, for machines that keep us from running */
	assert_true(polls > 10);
	assert_false(test_state(dev) & LEAT_NETDEV_FINISHED);
	test_net_end(net);
	test_queue_clear(&q);
}

/* At a low rate the next packet has a time, and nothing is due before it. */
static void test_rate_sleeps(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make(net, TEST_KEYS("rate=1"), &q);
	uint64_t before = leat_clock_ns();

	(void)state;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	if (leat_clock_ns() - before < LEAT_NSEC_PER_SEC / 2) {
		assert_int_equal(q.n, 1);
		assert_true(dev->napi[0].due > before + LEAT_NSEC_PER_SEC / 2);
		assert_true(dev->napi[0].due <= leat_clock_ns() + LEAT_NSEC_PER_SEC);
	}
	test_net_end(net);
	test_queue_clear(&q);
}

/* Each allocation of the pool fails in turn: nothing is lost, doubled or out of order, and nothing is a drop. */
static void test_starved(void **state)
{
	uint64_t nth;

	(void)state;
	for (nth = 1; nth <= 100; nth++) {
		struct leat_net *net = test_net_make(NULL);
		struct leat_page_pool_stats stats;
		struct test_queue q = { 0 };
		struct leat_netdev *dev = make(net, TEST_KEYS("count=100", "size=700"), &q);
		unsigned int i;

		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		leat_page_pool_fail_nth(dev->napi[0].pool, nth);
		for (i = 0; i < 50 && q.n < 100; i++) {
			test_net_run(net);
			leat_napi_schedule(&dev->napi[0]);
		}
		assert_int_equal(q.n, 100);
		for (i = 0; i < q.n; i++)
			check_packet(&q.packet[i], 700, i);
		assert_int_equal(test_all_drops(dev), 0);
		assert_true(test_state(dev) & LEAT_NETDEV_FINISHED);
		leat_page_pool_stats(dev->napi[0].pool, &stats);
		assert_int_equal(stats.alloc_failed, 1);
		test_net_end(net);
		test_queue_clear(&q);
	}
}

static void test_program_verdicts(void **state)
{
	static const struct {
		const char *builtin;
		unsigned int passed;
		enum leat_drop_reason reason;
		uint64_t sent;
	} cases[] = {
		{ "pass", 100, LEAT_DROP_MAX, 0 },
		{ "drop", 0, LEAT_DROP_XDP_DROP, 0 },
		{ "abort", 0, LEAT_DROP_XDP_ABORTED, 0 },
		{ "reflect", 0, LEAT_DROP_MAX, 100 }, /* the generator takes its own packets back */
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct leat_net *net = test_net_make(NULL);
		struct test_queue q = { 0 };
		struct leat_netdev *dev = make(net, TEST_KEYS("count=100"), &q);
		struct leat_netdev_stats stats;

		test_attach(dev, cases[i].builtin);
		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		test_net_run(net);
		leat_netdev_stats(dev, &stats);
		assert_int_equal(q.n, cases[i].passed);
		assert_int_equal(stats.rx_packets, 100);
		assert_int_equal(stats.rx_bytes, 6000);
		assert_int_equal(stats.tx_packets, cases[i].sent);
		assert_int_equal(stats.tx_bytes, cases[i].sent * 60);
		assert_int_equal(stats.headroom_copies, 0);
		assert_int_equal(test_all_drops(dev), cases[i].reason == LEAT_DROP_MAX ? 0 : 100);
		if (cases[i].reason != LEAT_DROP_MAX)
			assert_int_equal(test_drops(dev, cases[i].reason), 100);
		test_net_end(net);
		test_queue_clear(&q);
	}
}

static void test_sink(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_netdev *sink = test_driver_make(net, "sink", "sink", NULL);
	struct leat_netdev *gen = test_driver_make(net, "pktgen", "gen", TEST_KEYS("count=1000", "size=9014"));
	struct leat_netdev_stats stats;

	(void)state;
	assert_int_equal(leat_netdev_set_rx_handler(gen, test_forward, sink), 0);
	assert_int_equal(leat_netdev_open(sink, NULL), 0);
	assert_int_equal(leat_netdev_open(gen, NULL), 0);
	test_net_run(net);
	leat_netdev_stats(sink, &stats);
	assert_int_equal(stats.tx_packets, 1000);
	assert_int_equal(stats.tx_bytes, 9014000);
	assert_int_equal(stats.rx_packets, 0);
	assert_int_equal(test_all_drops(sink), 0);
	test_net_end(net);
}

/* Closed and opened again, a generator begins anew. */
static void test_reopen(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make(net, TEST_KEYS("count=3"), &q);

	(void)state;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	leat_netdev_close(dev);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	assert_int_equal(q.n, 6);
	check_packet(&q.packet[5], 60, 2);
	test_net_end(net);
	test_queue_clear(&q);
}

/* Each allocation of making and opening a port fails in turn. */
static void test_no_memory(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	unsigned long nth;
	bool done = false;

	(void)state;
	for (nth = 1; !done; nth++) {
		struct leat_net *net = test_net_make(NULL);
		struct leat_netdev *dev = NULL;
		int err;

		leat_heap_fail_nth(nth);
		err = test_driver_create(net, "pktgen", "gen", NULL, NULL, &dev);
		if (!err)
			err = leat_netdev_open(dev, NULL);
		done = !leat_heap_failed();
		leat_heap_fail_nth(0);
		assert_true(done ? !err : !err || err == -ENOMEM);
		test_net_end(net);
	}
	leat_diag_destroy(diag);
}

static void test_driver_table(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; leat_driver_get(i); i++) {
		assert_ptr_equal(leat_driver_find(leat_driver_get(i)->type), leat_driver_get(i));
		assert_non_null(leat_driver_get(i)->help);
		assert_non_null(leat_driver_get(i)->create);
	}
	assert_true(i >= 4);
	assert_null(leat_driver_find("nothing"));
	assert_null(leat_driver_get(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_table),
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_addresses_and_flows),
		cmocka_unit_test(test_checksum_never_zero),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rate_sleeps),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_program_verdicts),
		cmocka_unit_test(test_sink),
		cmocka_unit_test(test_reopen),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
