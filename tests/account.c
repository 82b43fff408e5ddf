/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * account.c: where packets are while ports, rings, handlers and bridges have them: the sums agree, and what does not
 * come back has a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/bridge.h>
#include <pthread.h>
#include <time.h>

#include "xdp/test_port.h"

#define PAUSE_MS 15
#define PATIENCE_MS 20000
#define KEPT_MAX 4096u
#define FRAME_LEN 1000u

static void sleep_ms(long ms)
{
	const struct timespec pause = { 0, ms * 1000000 };

	nanosleep(&pause, NULL);
}

static struct leat_net *make_net(unsigned int workers)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .workers = workers, .arena_size = UINT64_C(1) << 30 };
	struct leat_net *net = NULL;

	assert_int_equal(leat_net_create(&opts, &net), 0);
	return net;
}

/* ---- reports and sums ---- */

struct said {
	const char *holder;
	unsigned int lines, closed;
	uint64_t tagged, granules, all_granules;
	uint64_t youngest_ms;
};

static void look(const struct leat_holder_report *report, void *arg)
{
	struct said *said = arg;

	said->all_granules += report->granules;
	if (strcmp(report->holder, said->holder) != 0)
		return;
	if (!said->lines++ || report->youngest_ms < said->youngest_ms)
		said->youngest_ms = report->youngest_ms;
	said->closed += report->closed;
	said->tagged += report->tagged;
	said->granules += report->granules;
}

static struct said ask(struct leat_net *net, const char *holder)
{
	struct said said = { .holder = holder };

	assert_true(leat_segment_report(leat_net_segment(net), 0, look, &said) >= 0);
	return said;
}

struct sums {
	uint64_t outstanding, device, returning, held;
};

static void add_sums(const struct leat_page_pool_stats *stats, void *arg)
{
	struct sums *sums = arg;

	assert_int_equal(stats->outstanding, stats->device + stats->returning + stats->held);
	sums->outstanding += stats->outstanding;
	sums->device += stats->device;
	sums->returning += stats->returning;
	sums->held += stats->held;
}

static struct sums sum_up(struct leat_net *net)
{
	struct sums sums = { 0 };

	leat_net_for_each_pool(net, add_sums, &sums);
	return sums;
}

/* ---- what keeps packets ---- */

/** Keeps every @nth packet, parked, and drops the others. One worker at a time. */
struct keeper {
	unsigned int nth, seen, n;
	bool park;
	uint16_t holder;
	struct leat_skb *skb[KEPT_MAX];
};

static void keep(struct keeper *k, struct leat_skb *skb)
{
	k->skb[k->n++] = skb;
	if (k->park)
		leat_skb_park(skb, k->holder);
}

static void keeper_rx(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		      unsigned int n)
{
	struct keeper *k = arg;
	unsigned int i;

	(void)worker;
	(void)dev;
	for (i = 0; i < n; i++) {
		if (k->seen++ % k->nth || k->n == KEPT_MAX)
			leat_skb_free(skbs[i]);
		else
			keep(k, skbs[i]);
	}
}

static uint64_t kept_granules(const struct keeper *k)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < k->n; i++)
		bytes += k->skb[i]->truesize;
	return bytes / LEAT_GRANULE_SIZE;
}

static void let_go(struct keeper *k)
{
	unsigned int i;

	for (i = 0; k->park && i < k->n; i++)
		leat_skb_unpark(k->skb[i]);
	leat_skb_free_bulk(k->skb, k->n);
	k->n = 0;
}

/** A port that takes everything and sends nothing on. */
static int hoard(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n)
{
	struct keeper *k = dev->priv;
	unsigned int i;

	(void)txq;
	for (i = 0; i < n; i++)
		keep(k, skbs[i]);
	return (int)n;
}

static const struct leat_netdev_ops hoarder_ops = {
	.open = test_port_open, .stop = test_port_stop, .poll = test_port_poll, .start_xmit = hoard,
};

/* ---- threads ---- */

static struct keeper keeper;

static uint64_t received(struct leat_netdev *dev)
{
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	return stats.rx_packets;
}

/** gen -> a == b -> c == d: two rings between two workers, and what arrives at d is kept in part. */
static void traffic_of_several_threads_adds_up(void **state)
{
	struct leat_netdev *gen, *a, *b, *c, *d;
	struct leat_net *net = make_net(2);
	struct sums sums;
	int i;

	(void)state;
	gen = test_driver_make(net, "pktgen", "gen", NULL);
	b = test_driver_make(net, "veth", "b", TEST_KEYS("peer=a"));
	a = test_driver_make(net, "veth", "a", TEST_KEYS("peer=b"));
	c = test_driver_make(net, "veth", "c", TEST_KEYS("peer=d"));
	d = test_driver_make(net, "veth", "d", TEST_KEYS("peer=c"));
	assert_int_equal(a->ops->link(a, NULL), 0);
	assert_int_equal(c->ops->link(c, NULL), 0);
	keeper = (struct keeper){ .nth = 50, .park = true, .holder = leat_holder_register("the keeper") };
	assert_int_equal(leat_netdev_set_rx_handler(gen, test_forward, a), 0);
	assert_int_equal(leat_netdev_set_rx_handler(b, test_forward, c), 0);
	assert_int_equal(leat_netdev_set_rx_handler(d, keeper_rx, &keeper), 0);
	assert_int_equal(leat_netdev_open(gen, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_int_equal(leat_netdev_open(d, NULL), 0);
	assert_int_equal(leat_netdev_open(c, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	for (i = 0; i < PATIENCE_MS && received(d) < 20000; i++) {
		struct said said = ask(net, "the keeper"); /* at any time, by any thread */

		assert_true(said.closed == 0 && said.granules <= said.all_granules);
		sleep_ms(1);
	}
	assert_true(received(d) >= 20000);
	leat_net_stop(net);
	sums = sum_up(net);
	assert_int_equal(sums.outstanding, sums.device + sums.returning + sums.held);
	assert_true(keeper.n);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), kept_granules(&keeper));
	assert_int_equal(sums.held, leat_flow_in_place(LEAT_PLACE_RING) + leat_flow_in_place(LEAT_PLACE_PARKED));
	leat_net_outstanding(net); /* drains */
	sums = sum_up(net);
	assert_int_equal(sums.returning, 0);
	assert_int_equal(sums.held, leat_flow_in_place(LEAT_PLACE_RING) + leat_flow_in_place(LEAT_PLACE_PARKED));
	assert_int_equal(ask(net, "the keeper").tagged, 2 * keeper.n);
	assert_int_equal(ask(net, "the keeper").granules, kept_granules(&keeper));
	assert_int_equal(ask(net, "").all_granules, sums.outstanding);
	leat_net_for_each_port(net, test_net_close_port, NULL);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), 0);
	assert_int_equal(leat_net_outstanding(net), kept_granules(&keeper));
	let_go(&keeper);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 0);
	test_net_end(net);
}

/* ---- rings ---- */

/** Worker 0 is polled, worker 1, whose the queue of b is, is not: what is sent stays in the ring. */
static void what_is_in_a_ring_is_counted_and_named(void **state)
{
	struct leat_net *net = make_net(2);
	struct leat_netdev *in = test_port_make(net, "in"), *a, *b;
	struct sums sums;
	struct said said;
	int i;

	(void)state;
	b = test_driver_make(net, "veth", "b", TEST_KEYS("peer=a"));
	a = test_driver_make(net, "veth", "a", TEST_KEYS("peer=b"));
	assert_int_equal(b->ops->link(b, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_ptr_not_equal(in->napi[0].worker, b->napi[0].worker);
	assert_int_equal(leat_netdev_set_rx_handler(in, test_forward, a), 0);
	test_port_of(in)->piece = 400; /* fragments count, too */
	for (i = 0; i < 100; i++)
		test_port_put(in, NULL, FRAME_LEN);
	test_net_run(net);
	sums = sum_up(net);
	assert_true(sums.held >= 100 * 4); /* an skb, and two or more runs */
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), sums.held);
	sleep_ms(PAUSE_MS);
	said = ask(net, "port b ring");
	assert_true(said.lines == 2 && said.tagged >= 2); /* in.0 and the pool of the skbs */
	assert_true(said.youngest_ms >= PAUSE_MS);
	assert_int_equal(said.closed, 0);
	assert_int_equal(said.all_granules, sums.outstanding);
#ifdef LEAT_EXACT_HOLDERS
	assert_int_equal(said.granules, sums.held);
#endif
	leat_worker_poll(leat_net_worker(net, 1));
	leat_worker_poll(leat_net_worker(net, 1));
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), 0);
	test_net_end(net);
}

static uint32_t send_frame(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_xdp_redirect(xdp, *(const uint32_t *)priv);
}

/** The same with frames, and what is still in the ring when the port is closed leaves it. */
static void frames_in_a_ring_leave_it_when_the_port_is_closed(void **state)
{
	struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .fn = send_frame, .flags = LEAT_XDP_PROG_FRAGS };
	struct leat_net *net = make_net(2);
	struct leat_netdev *in = test_port_make(net, "in"), *a, *b;
	struct leat_xdp_prog *prog = NULL;
	int i;

	(void)state;
	b = test_driver_make(net, "veth", "b", TEST_KEYS("peer=a"));
	a = test_driver_make(net, "veth", "a", TEST_KEYS("peer=b"));
	assert_int_equal(b->ops->link(b, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	opts.priv = &a->index;
	assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(in, prog), 0);
	leat_xdp_prog_put(prog);
	for (i = 0; i < 100; i++) {
		test_port_of(in)->piece = i % 2 ? 400 : 0;
		test_port_put(in, NULL, FRAME_LEN);
		test_net_run(net);
	}
	assert_true(sum_up(net).held >= 100 * 4);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), sum_up(net).held);
	assert_true(ask(net, "port b ring").tagged >= 1);
	leat_netdev_close(b);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), 0);
	assert_int_equal(leat_net_outstanding(net), 0);
	assert_int_equal(ask(net, "").all_granules, 0);
	test_net_end(net);
}

/* ---- leaks ---- */

static void a_handler_that_keeps_packets_is_named(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *in = test_port_make(net, "in");
	struct said said;
	int i;

	(void)state;
	keeper = (struct keeper){ .nth = 1 };
	assert_int_equal(leat_netdev_set_rx_handler(in, keeper_rx, &keeper), 0);
	for (i = 0; i < 200; i++)
		test_port_put(in, NULL, 60);
	test_net_run(net);
	sleep_ms(PAUSE_MS);
	said = ask(net, "rx handler of in");
	assert_true(said.lines == 2 && said.tagged >= 6);
	assert_true(said.youngest_ms >= PAUSE_MS);
	assert_int_equal(said.all_granules, kept_granules(&keeper));
#ifdef LEAT_EXACT_HOLDERS
	assert_int_equal(said.granules, kept_granules(&keeper));
#endif
	leat_netdev_close(in);
	said = ask(net, "rx handler of in");
	assert_int_equal(said.lines, 2);
	assert_int_equal(said.closed, 1); /* of the two pools that of the port was destroyed */
	let_go(&keeper);
	assert_int_equal(leat_net_outstanding(net), 0);
	assert_int_equal(ask(net, "rx handler of in").lines, 0);
	test_net_end(net);
}

static void a_bridge_is_named(void **state)
{
	struct leat_bridge_opts opts = { .size = sizeof(opts), .name = "br0" };
	struct leat_net *net = make_net(1);
	struct leat_netdev *in = test_port_make(net, "in"), *out = NULL;
	struct leat_bridge *bridge = NULL;
	uint8_t frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
	struct said said;
	int i;

	(void)state;
	assert_int_equal(leat_netdev_create(net, "hoarder", "out", &hoarder_ops, 1, 1, sizeof(struct keeper), &out), 0);
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	assert_int_equal(leat_bridge_create(net, &opts, &bridge), 0);
	assert_int_equal(leat_bridge_add_port(bridge, in), 0);
	assert_int_equal(leat_bridge_add_port(bridge, out), 0);
	for (i = 0; i < 200; i++)
		test_port_put(in, frame, sizeof(frame));
	test_net_run(net);
	said = ask(net, "bridge br0");
	assert_true(said.lines == 2 && said.tagged >= 6);
	assert_int_equal(((struct keeper *)out->priv)->n, 200);
	let_go(out->priv);
	leat_bridge_destroy(bridge);
	test_net_end(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_of_several_threads_adds_up),
		cmocka_unit_test(what_is_in_a_ring_is_counted_and_named),
		cmocka_unit_test(frames_in_a_ring_leave_it_when_the_port_is_closed),
		cmocka_unit_test(a_handler_that_keeps_packets_is_named),
		cmocka_unit_test(a_bridge_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
