/* SPDX-License-Identifier: BSD-3-Clause */
/* veth_test.c: two ends that are joined, opened and taken away in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "xdp/test_port.h"

#define LEN 60

struct bench {
	struct leat_net *net;
	struct leat_netdev *in, *a, *b; /* what arrives at in goes to a, so that b receives it */
};

static struct leat_netdev *make_end(struct leat_net *net, const char *name, const char *peer_key)
{
	return test_driver_make(net, "veth", name, TEST_KEYS(peer_key));
}

static void set_up(struct bench *bench)
{
	bench->net = test_net_make(NULL);
	bench->in = test_port_make(bench->net, "in");
	bench->a = make_end(bench->net, "a", "peer=b");
	bench->b = make_end(bench->net, "b", "peer=a");
	assert_int_equal(leat_netdev_set_rx_handler(bench->in, test_forward, bench->a), 0);
}

static void send_one(struct bench *bench)
{
	test_port_put(bench->in, NULL, LEN);
	test_net_run(bench->net);
}

static uint64_t received(const struct leat_netdev *dev)
{
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	return stats.rx_packets;
}

static void tear_down(struct bench *bench)
{
	test_net_end(bench->net);
}

/* link() need not have been called: the first end that opens finds the other. */
static void an_end_that_opens_unlinked_links_itself(void **state)
{
	struct bench bench;

	(void)state;
	set_up(&bench);
	assert_int_equal(leat_netdev_open(bench.b, NULL), 0);
	assert_int_equal(leat_netdev_open(bench.a, NULL), 0);
	send_one(&bench);
	assert_int_equal(received(bench.b), 1);
	assert_int_equal(test_drops(bench.b, LEAT_DROP_NO_HANDLER), 1);
	tear_down(&bench);
}

/* An end that was taken away and made again is found by the one that stayed. */
static void an_end_is_replaced(void **state)
{
	struct bench bench;

	(void)state;
	set_up(&bench);
	assert_int_equal(bench.a->ops->link(bench.a, NULL), 0);
	assert_int_equal(leat_netdev_open(bench.a, NULL), 0);
	assert_int_equal(leat_netdev_open(bench.b, NULL), 0);
	leat_netdev_destroy(bench.b);
	assert_int_equal(leat_netdev_open(bench.a, NULL), -EINVAL); /* there is no other end */
	bench.b = make_end(bench.net, "b", "peer=a");
	assert_int_equal(leat_netdev_open(bench.a, NULL), 0);
	assert_int_equal(leat_netdev_open(bench.b, NULL), 0);
	send_one(&bench);
	assert_int_equal(received(bench.b), 1);
	tear_down(&bench);
}

/* One end has looked for the other, which then goes: nothing of it is remembered. */
static void an_end_goes_that_was_only_found(void **state)
{
	struct bench bench;

	(void)state;
	set_up(&bench);
	assert_int_equal(bench.a->ops->link(bench.a, NULL), 0);
	leat_netdev_destroy(bench.b);
	assert_int_equal(leat_netdev_open(bench.a, NULL), -EINVAL);
	tear_down(&bench);
}

static void what_is_sent_to_a_closed_end_was_sent_to_a_port_that_is_down(void **state)
{
	struct bench bench;

	(void)state;
	set_up(&bench);
	assert_int_equal(bench.a->ops->link(bench.a, NULL), 0);
	assert_int_equal(leat_netdev_open(bench.a, NULL), 0);
	send_one(&bench);
	assert_int_equal(test_drops(bench.a, LEAT_DROP_TX_DOWN), 1);
	assert_int_equal(test_all_drops(bench.a), 1);
	tear_down(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_opens_unlinked_links_itself),
		cmocka_unit_test(an_end_is_replaced),
		cmocka_unit_test(an_end_goes_that_was_only_found),
		cmocka_unit_test(what_is_sent_to_a_closed_end_was_sent_to_a_port_that_is_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
