/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exhaustion.c: memory runs out at every allocation in turn, from loading a configuration to its end, and in the
 * datapath at every buffer in turn. Nothing is leaked, nothing crashes, and what was lost has a counted reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/datapath.h>
#include <string.h>

#include "base/heap.h"
#include "xdp/test_port.h"

static const char everything[] =
	"workers: 1\n"
	"ports:\n"
	"  gen: {type: pktgen, count: 200, size: 64}\n"
	"  a: {type: veth, peer: b}\n"
	"  b: {type: veth, peer: a}\n"
	"  c: {type: veth, peer: d}\n"
	"  d: {type: veth, peer: c}\n"
	"  out: {type: sink}\n"
	"programs:\n"
	"  to-a: {builtin: redirect, port: a}\n"
	"  back: {builtin: reflect}\n"
	"attach:\n"
	"  gen: [to-a]\n"
	"  b: [back]\n"
	"bridges:\n"
	"  br0: [a, c, out]\n"
	"fib:\n"
	"  ports: {a: {addresses: [10.0.0.1/24, 'fd00::1/64']}, c: ~}\n"
	"  routes: [{to: default, via: 10.0.0.2}, {to: default, via: 'fd00::2'}]\n"
	"  neighbours: [{address: 10.0.0.2, port: a, mac: '02:00:00:00:00:02'}]\n";

/** Polls until the datapath has nothing more to do. */
static void poll_until_quiet(struct leat_net *net)
{
	int idle = 0, rounds = 0;

	while (idle < 3 && ++rounds < 100000)
		idle = leat_worker_poll(leat_net_worker(net, 0)) ? 0 : idle + 1;
	assert_true(rounds < 100000);
}

static struct leat_datapath *load(int *err)
{
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_datapath *dp = NULL;

	*err = leat_datapath_load_text(everything, strlen(everything), "test.yaml", &opts, NULL, &dp);
	return dp;
}

static void open_port(struct leat_netdev *dev, void *arg)
{
	int *err = arg;

	if (!*err)
		*err = leat_netdev_open(dev, NULL);
}

static void close_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_netdev_close(dev);
}

/** One life; returns the first error. Ports are opened and polled here, so that each step is this thread's. */
static int live_once(void)
{
	struct leat_datapath *dp;
	struct leat_net *net;
	int err;

	dp = load(&err);
	if (err) {
		assert_null(dp);
		return err;
	}
	net = leat_datapath_net(dp);
	leat_net_for_each_port(net, open_port, &err);
	if (!err)
		poll_until_quiet(net);
	leat_net_for_each_port(net, close_port, NULL);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_datapath_destroy(dp);
	return err;
}

static void heap_fails_at_each_allocation(void **state)
{
	unsigned long nth = 0, refused = 0;
	bool reached;
	int err;

	(void)state;
	do {
		leat_heap_fail_nth(++nth);
		err = live_once();
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		assert_true(err == 0 || err == -ENOMEM);
		assert_true(reached || err == 0);
		refused += err != 0;
		assert_true(nth < 2000);
	} while (reached);
	/* most of them must be noticed; a few are made up for (a return ring) or counted (memory for a pool) */
	assert_true(refused > 40);
	assert_true(nth > refused);
}

static void start_and_stop_survive_it_too(void **state)
{
	struct leat_datapath *dp;
	unsigned long nth = 0;
	bool reached;
	int err;

	(void)state;
	do {
		dp = load(&err);
		assert_int_equal(err, 0);
		leat_heap_fail_nth(++nth);
		err = leat_datapath_start(dp, NULL);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		leat_datapath_stop(dp);
		assert_int_equal(leat_net_outstanding(leat_datapath_net(dp)), 0);
		leat_datapath_destroy(dp);
		assert_true(err == 0 || err == -ENOMEM);
	} while (reached && nth < 300);
	assert_true(nth > 10 && nth < 300);
}

/* ---- in the datapath ---- */

enum which { GEN_POOL, B_POOL, OBJS_POOL };

static struct leat_page_pool *pool_of(struct leat_net *net, enum which which)
{
	if (which == OBJS_POOL)
		return leat_worker_objs(leat_net_worker(net, 0));
	return leat_netdev_find(net, which == GEN_POOL ? "gen" : "b")->napi[0].pool;
}

static uint64_t all_drops(struct leat_net *net, const char *port)
{
	struct leat_netdev_stats stats;
	uint64_t sum = 0;
	int i;

	leat_netdev_stats(leat_netdev_find(net, port), &stats);
	for (i = 0; i < LEAT_DROP_MAX; i++)
		sum += stats.drops[i];
	return sum;
}

/**
 * Lets the @nth allocation of one pool fail. Every packet that the generator made must be found again: in the sink, or
 * in a counter. Returns whether the allocation was reached.
 */
static bool packet_memory_fails(enum which which, uint64_t nth)
{
	struct leat_netdev_stats gen, out, a, c;
	struct leat_page_pool_stats pool;
	struct leat_datapath *dp;
	struct leat_net *net;
	int err;

	dp = load(&err);
	assert_int_equal(err, 0);
	net = leat_datapath_net(dp);
	leat_net_for_each_port(net, open_port, &err);
	assert_int_equal(err, 0);
	leat_page_pool_fail_nth(pool_of(net, which), nth);
	poll_until_quiet(net);
	leat_page_pool_stats(pool_of(net, which), &pool);
	leat_netdev_stats(leat_netdev_find(net, "gen"), &gen);
	leat_netdev_stats(leat_netdev_find(net, "a"), &a);
	leat_netdev_stats(leat_netdev_find(net, "c"), &c);
	leat_netdev_stats(leat_netdev_find(net, "out"), &out);
	assert_int_equal(gen.rx_packets, 200); /* a generator without memory waits */
	assert_int_equal(a.rx_packets + all_drops(net, "b"), 200);
	/* the bridge floods: a clone to c, the packet itself to out; a clone that fails is c's loss alone */
	assert_int_equal(a.rx_packets, c.tx_packets + a.drops[LEAT_DROP_NO_MEMORY]);
	assert_in_range(out.tx_packets, c.tx_packets, a.rx_packets);
	leat_net_for_each_port(net, close_port, NULL);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_datapath_destroy(dp);
	return pool.alloc_failed == 1;
}

static void each_buffer_in_turn(enum which which, uint64_t at_least)
{
	uint64_t nth = 0;

	while (packet_memory_fails(which, nth + 1))
		assert_true(++nth < 2000);
	assert_true(nth >= at_least);
}

static void receive_memory_fails_at_each_buffer(void **state)
{
	(void)state;
	each_buffer_in_turn(GEN_POOL, 200);
}

static void skb_memory_fails_at_each_packet(void **state)
{
	(void)state;
	each_buffer_in_turn(OBJS_POOL, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_fails_at_each_allocation),
		cmocka_unit_test(start_and_stop_survive_it_too),
		cmocka_unit_test(receive_memory_fails_at_each_buffer),
		cmocka_unit_test(skb_memory_fails_at_each_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
