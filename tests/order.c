/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.c: numbered frames through veth -> XDP_TX -> veth across two workers: none lost, doubled or reordered.
 *
 * A source port on worker 0 redirects frames into veth end "a". End "b", on worker 1, sends each back (XDP_TX), and
 * end "a", on worker 0 again, passes them to a handler that checks the numbers. The source keeps no more than WINDOW
 * frames on the way, less than a ring holds, so nothing may be dropped anywhere.
 */
#include <stddef.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "xdp/test_port.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FRAMES UINT64_C(200000)
#else
#define FRAMES UINT64_C(1000000)
#endif
#define WINDOW 192
#define PATIENCE_S 120

struct path {
	struct leat_netdev *source;
	uint64_t sent;             /* worker 0 only */
	uint64_t expected;         /* worker 0 only */
	uint64_t wrong;            /* worker 0 only */
	uint64_t seen;             /* atomic */
};

static struct path path;

/* ---- the source ---- */

static bool send_one(struct leat_rx *rx)
{
	struct leat_run run = leat_page_pool_alloc(rx->napi->pool, LEAT_GRANULES(rx->headroom + 60 + rx->tailroom));
	struct leat_xdp_buff xdp;

	if (leat_run_is_none(run))
		return false;
	leat_xdp_buff_init(&xdp, run, rx->headroom, 60);
	memset(xdp.data, 0x11, 60);
	memcpy(xdp.data + 20, &path.sent, sizeof(path.sent));
	path.sent++;
	leat_rx_packet(rx, &xdp);
	return true;
}

static int source_poll(struct leat_napi *napi, int budget)
{
	struct leat_rx rx;
	int n = 0;

	leat_rx_begin(&rx, napi);
	while (n < budget && path.sent < FRAMES && path.sent - path.seen < WINDOW && send_one(&rx))
		n++;
	leat_rx_end(&rx);
	return n;
}

static const struct leat_netdev_ops source_ops = {
	.open = test_port_open,
	.stop = test_port_stop,
	.poll = source_poll,
};

/* ---- the judge ---- */

static void judge(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		  unsigned int n)
{
	unsigned int i;
	uint64_t number;

	(void)arg;
	(void)worker;
	(void)dev;
	for (i = 0; i < n; i++) {
		memcpy(&number, skbs[i]->data + 20, sizeof(number));
		path.wrong += number != path.expected || skbs[i]->len != 60;
		path.expected = number + 1;
	}
	leat_skb_free_bulk(skbs, n);
	__atomic_store_n(&path.seen, path.seen + n, __ATOMIC_RELEASE);
	leat_napi_schedule(&path.source->napi[0]); /* the window has opened */
}

static uint32_t send_back(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_TX;
}

static uint32_t to_port(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_xdp_redirect(xdp, ((struct leat_netdev *)priv)->index);
}

static void attach(struct leat_net *net, struct leat_netdev *dev, leat_xdp_fn *fn, void *priv)
{
	struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .name = "test", .fn = fn, .priv = priv };
	struct leat_xdp_prog *prog = NULL;

	assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(dev, prog), 0);
	leat_xdp_prog_put(prog);
}

static void wait_for_all(void)
{
	const struct timespec pause = { 0, 1000000 };
	time_t end = time(NULL) + PATIENCE_S;

	while (__atomic_load_n(&path.seen, __ATOMIC_ACQUIRE) < FRAMES && time(NULL) < end)
		nanosleep(&pause, NULL);
}

static void assert_no_drops(struct leat_netdev *dev, void *arg)
{
	struct leat_netdev_stats stats;
	unsigned int i;

	(void)arg;
	leat_netdev_stats(dev, &stats);
	for (i = 0; i < LEAT_DROP_MAX; i++)
		assert_int_equal(stats.drops[i], 0);
}

static void frames_come_back_in_order(void **state)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .workers = 2 };
	const char *const keys_a[] = { "peer=b", NULL }, *const keys_b[] = { "peer=a", NULL };
	struct leat_netdev *a = NULL, *b = NULL;
	struct leat_net *net = NULL;

	(void)state;
	memset(&path, 0, sizeof(path));
	assert_int_equal(leat_net_create(&opts, &net), 0);
	assert_int_equal(leat_netdev_create(net, "source", "source", &source_ops, 1, 1, 0, &path.source), 0);
	assert_int_equal(test_driver_create(net, "veth", "a", keys_a, NULL, &a), 0);
	assert_int_equal(test_driver_create(net, "veth", "b", keys_b, NULL, &b), 0);
	assert_int_equal(a->ops->link(a, NULL), 0);
	assert_int_equal(b->ops->link(b, NULL), 0);
	attach(net, path.source, to_port, a);
	attach(net, b, send_back, NULL);
	assert_int_equal(leat_netdev_set_rx_handler(a, judge, NULL), 0);
	/* queues are dealt out in the order of opening */
	assert_int_equal(leat_netdev_open(path.source, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_ptr_equal(path.source->napi[0].worker, a->napi[0].worker);
	assert_ptr_not_equal(b->napi[0].worker, a->napi[0].worker);

	assert_int_equal(leat_net_start(net), 0);
	wait_for_all();
	leat_net_stop(net);

	assert_int_equal(path.seen, FRAMES);
	assert_int_equal(path.sent, FRAMES);
	assert_int_equal(path.wrong, 0);
	leat_net_for_each_port(net, assert_no_drops, NULL);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_netdev_set_rx_handler(a, NULL, NULL);
	leat_net_destroy(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_back_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
