/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: programs, handlers and ports change while workers move packets: no packet is lost without a count, none is
 * seen by half a configuration, and no buffer stays out. And what a worker does when there is nothing to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "xdp/test_port.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 300
#else
#define CHANGES 3000
#endif
#define PATIENCE_MS 20000

static void nap(void)
{
	const struct timespec pause = { 0, 100000 };

	nanosleep(&pause, NULL);
}

static struct leat_net *make_net(unsigned int workers)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .workers = workers, .arena_size = UINT64_C(1) << 30 };
	struct leat_net *net = NULL;

	assert_int_equal(leat_net_create(&opts, &net), 0);
	return net;
}

static struct leat_xdp_prog *make_prog(struct leat_net *net, leat_xdp_fn *fn, void *priv)
{
	struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .name = "test", .fn = fn, .priv = priv };
	struct leat_xdp_prog *prog = NULL;

	assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
	return prog;
}

static uint32_t send_back(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_TX;
}

static uint32_t drop_it(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_DROP;
}

static uint32_t pass_it(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_PASS;
}

static uint32_t to_index(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_xdp_redirect(xdp, *(const uint32_t *)priv);
}

/* ---- generator -> a == b, two workers ---- */

struct pair {
	struct leat_net *net;
	struct leat_netdev *gen, *a, *b;
	uint32_t a_index;
};

static void pair_up(struct pair *p)
{
	struct leat_xdp_prog *prog;

	p->net = make_net(2);
	p->gen = test_driver_make(p->net, "pktgen", "gen", NULL);
	p->a = test_driver_make(p->net, "veth", "a", TEST_KEYS("peer=b"));
	p->b = test_driver_make(p->net, "veth", "b", TEST_KEYS("peer=a"));
	assert_int_equal(p->a->ops->link(p->a, NULL), 0);
	assert_int_equal(p->b->ops->link(p->b, NULL), 0);
	p->a_index = p->a->index;
	prog = make_prog(p->net, to_index, &p->a_index);
	assert_int_equal(leat_xdp_attach(p->gen, prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(leat_netdev_open(p->gen, NULL), 0);
	assert_int_equal(leat_netdev_open(p->b, NULL), 0);
	assert_int_equal(leat_netdev_open(p->a, NULL), 0);
	assert_int_equal(leat_net_start(p->net), 0);
}

static uint64_t received(struct leat_netdev *dev)
{
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	return stats.rx_packets;
}

static void wait_until_received(struct leat_netdev *dev, uint64_t total)
{
	int i;

	for (i = 0; i < PATIENCE_MS * 10; i++) {
		if (received(dev) >= total)
			return;
		nap();
	}
	fail_msg("no traffic on %s", dev->name);
}

static void wait_for_traffic(struct leat_netdev *dev, uint64_t more)
{
	wait_until_received(dev, received(dev) + more);
}

static void programs_are_replaced_under_traffic(void **state)
{
	leat_xdp_fn *const fns[] = { send_back, drop_it, pass_it };
	struct leat_xdp_prog *progs[3];
	struct leat_xdp_prog_stats seen;
	struct leat_netdev_stats stats;
	uint64_t runs = 0, dropped;
	struct pair p;
	int i;

	(void)state;
	pair_up(&p);
	for (i = 0; i < 3; i++)
		progs[i] = make_prog(p.net, fns[i], NULL);
	assert_int_equal(leat_xdp_attach(p.b, progs[0]), 0);
	leat_netdev_stats(p.b, &stats);
	dropped = stats.drops[LEAT_DROP_NO_HANDLER];
	wait_for_traffic(p.b, 1000);
	for (i = 0; i < CHANGES; i++)
		assert_int_equal(leat_xdp_attach(p.b, progs[i % 3]), 0);
	leat_net_stop(p.net);
	leat_netdev_stats(p.b, &stats);
	for (i = 0; i < 3; i++) {
		leat_xdp_prog_stats(progs[i], &seen);
		runs += seen.runs;
		assert_int_equal(seen.runs, seen.verdict[i == 0 ? LEAT_XDP_TX : i == 1 ? LEAT_XDP_DROP : LEAT_XDP_PASS]);
		if (i == 1)
			assert_int_equal(stats.drops[LEAT_DROP_XDP_DROP], seen.runs);
		leat_xdp_prog_put(progs[i]);
	}
	/* before the first attachment there was no program, and nowhere to pass to */
	assert_in_range(stats.rx_packets - runs, dropped, dropped + 1000000);
	assert_true(runs > 1000);
	leat_netdev_close(p.gen);
	leat_netdev_close(p.a);
	leat_netdev_close(p.b);
	assert_int_equal(leat_net_outstanding(p.net), 0);
	leat_net_destroy(p.net);
}

static void handlers_are_replaced_under_traffic(void **state)
{
	struct pair p;
	int i;

	(void)state;
	pair_up(&p);
	for (i = 0; i < CHANGES / 10; i++) {
		assert_int_equal(leat_netdev_set_rx_handler(p.b, test_forward, p.gen), 0);
		assert_int_equal(leat_netdev_set_rx_handler(p.b, NULL, NULL), 0);
	}
	wait_for_traffic(p.b, 100);
	leat_net_stop(p.net);
	leat_netdev_close(p.gen);
	leat_netdev_close(p.a);
	leat_netdev_close(p.b);
	assert_int_equal(leat_net_outstanding(p.net), 0);
	leat_net_destroy(p.net);
}

static void ports_close_and_open_under_traffic(void **state)
{
	struct leat_netdev_stats gen, a, b;
	struct pair p;
	int i;

	(void)state;
	pair_up(&p);
	for (i = 0; i < CHANGES / 20; i++) {
		wait_for_traffic(p.gen, 200);
		leat_netdev_close(i % 2 ? p.a : p.b);
		wait_for_traffic(p.gen, 200);
		assert_int_equal(leat_netdev_open(i % 2 ? p.a : p.b, NULL), 0);
	}
	wait_for_traffic(p.b, 100);
	leat_net_stop(p.net);
	leat_netdev_close(p.gen);
	leat_netdev_close(p.a);
	leat_netdev_close(p.b);
	leat_netdev_stats(p.gen, &gen);
	leat_netdev_stats(p.a, &a);
	leat_netdev_stats(p.b, &b);
	/* what the generator made was taken by a or counted there; what a took arrived at b or was counted there */
	assert_int_equal(gen.rx_packets, a.tx_packets + test_all_drops(p.a));
	assert_int_equal(a.tx_packets, b.rx_packets + b.drops[LEAT_DROP_STOPPED]);
	assert_int_equal(leat_net_outstanding(p.net), 0);
	leat_net_destroy(p.net);
}

static void a_removed_port_receives_nothing(void **state)
{
	struct leat_netdev_stats gen, sink;
	struct leat_netdev *other;
	struct pair p;

	(void)state;
	pair_up(&p);
	wait_for_traffic(p.b, 1000);
	leat_netdev_destroy(p.a); /* closes b, too: a cable has two ends */
	wait_for_traffic(p.gen, 1000);
	other = test_driver_make(p.net, "sink", "other", NULL);
	assert_int_not_equal(other->index, p.a_index); /* a number is not given out again at once */
	assert_int_equal(leat_netdev_open(other, NULL), 0);
	wait_for_traffic(p.gen, 1000);
	leat_net_stop(p.net);
	leat_netdev_stats(other, &sink);
	leat_netdev_stats(p.gen, &gen);
	assert_int_equal(sink.tx_packets, 0);
	assert_in_range(gen.drops[LEAT_DROP_XDP_REDIRECT], 1000, UINT32_MAX);
	leat_netdev_close(p.gen);
	assert_int_equal(leat_net_outstanding(p.net), 0);
	leat_net_destroy(p.net);
}

/* ---- several queues ---- */

static void each_worker_sends_on_a_queue_of_its_own(void **state)
{
	struct leat_net *net = make_net(2);
	struct leat_netdev *gen[2], *a, *b;
	struct leat_netdev_stats stats;
	struct leat_xdp_prog *prog;
	uint32_t index;
	int i;

	(void)state;
	a = test_driver_make(net, "veth", "a", TEST_KEYS("peer=b", "queues=2", "ring=1024"));
	b = test_driver_make(net, "veth", "b", TEST_KEYS("peer=a", "queues=2", "ring=1024"));
	assert_int_equal(a->ops->link(a, NULL), 0);
	assert_int_equal(b->ops->link(b, NULL), 0);
	index = a->index;
	prog = make_prog(net, to_index, &index);
	for (i = 0; i < 2; i++) {
		gen[i] = test_driver_make(net, "pktgen", i ? "gen1" : "gen0", TEST_KEYS("count=500"));
		assert_int_equal(leat_xdp_attach(gen[i], prog), 0);
		assert_int_equal(leat_netdev_open(gen[i], NULL), 0);
	}
	leat_xdp_prog_put(prog);
	assert_ptr_not_equal(gen[0]->napi[0].worker, gen[1]->napi[0].worker);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_ptr_not_equal(b->napi[0].worker, b->napi[1].worker);
	assert_int_equal(leat_net_start(net), 0);
	wait_until_received(b, 1000);
	leat_net_stop(net);
	for (i = 0; i < 2; i++) {
		assert_int_equal(a->txq[i].stats.packets, 500);
		assert_int_equal(b->napi[i].stats.packets, 500);
	}
	leat_netdev_stats(b, &stats);
	assert_int_equal(stats.drops[LEAT_DROP_NO_HANDLER], 1000);
	for (i = 0; i < 2; i++)
		leat_netdev_close(gen[i]);
	leat_netdev_close(a);
	leat_netdev_close(b);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_net_destroy(net);
}

/* ---- nothing to do ---- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static void an_idle_worker_sleeps(void **state)
{
	struct leat_net *net = make_net(2);
	struct leat_netdev *a = test_driver_make(net, "veth", "a", TEST_KEYS("peer=b"));
	struct leat_netdev *b = test_driver_make(net, "veth", "b", TEST_KEYS("peer=a"));
	uint64_t before;

	(void)state;
	assert_int_equal(a->ops->link(a, NULL), 0);
	assert_int_equal(b->ops->link(b, NULL), 0);
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	sleep_ms(20);
	before = cpu_ns();
	sleep_ms(500);
	assert_true(cpu_ns() - before < 5000000); /* 1 % of a core */
	leat_net_stop(net);
	leat_net_destroy(net);
}

/* A port that keeps what it is given until the test lets go. */
struct keeper {
	pthread_mutex_t lock;
	unsigned int n;
	struct leat_xdp_frame *frames[4096];
};

static int keep(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct keeper *k = dev->priv;
	unsigned int i;

	(void)txq;
	pthread_mutex_lock(&k->lock);
	for (i = 0; i < n && k->n < sizeof(k->frames) / sizeof(k->frames[0]); i++)
		k->frames[k->n++] = frames[i];
	pthread_mutex_unlock(&k->lock);
	return (int)i;
}

static unsigned int let_go(struct keeper *k)
{
	unsigned int n;

	pthread_mutex_lock(&k->lock);
	n = k->n;
	leat_xdp_return_frame_bulk(k->frames, n);
	k->n = 0;
	pthread_mutex_unlock(&k->lock);
	return n;
}

static unsigned int kept(struct keeper *k)
{
	unsigned int n;

	pthread_mutex_lock(&k->lock);
	n = k->n;
	pthread_mutex_unlock(&k->lock);
	return n;
}

/* A source with a small pool: 256 KiB are 256 packets of two granules. */
static int open_small(struct leat_netdev *dev, struct leat_diag *diag)
{
	(void)diag;
	return leat_napi_pool_create(&dev->napi[0], LEAT_EXTENT_SIZE);
}

static int poll_endless(struct leat_napi *napi, int budget)
{
	struct leat_xdp_buff xdp;
	struct leat_run run;
	struct leat_rx rx;
	int n;

	leat_rx_begin(&rx, napi);
	for (n = 0; n < budget; n++) {
		run = leat_page_pool_alloc(napi->pool, 2);
		if (leat_run_is_none(run)) {
			napi->starved = true;
			break;
		}
		leat_xdp_buff_init(&xdp, run, LEAT_XDP_HEADROOM, 64);
		leat_rx_packet(&rx, &xdp);
	}
	leat_rx_end(&rx);
	return n;
}

static const struct leat_netdev_ops keeper_ops = { .xdp_xmit = keep };
static const struct leat_netdev_ops small_ops = { .open = open_small, .stop = test_port_stop, .poll = poll_endless };

static void wait_until_kept(struct keeper *k, unsigned int n)
{
	int i;

	for (i = 0; i < PATIENCE_MS * 10 && kept(k) < n; i++)
		nap();
	assert_int_equal(kept(k), n);
}

static void a_starved_queue_sleeps_until_memory_comes_back(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *source = NULL, *keeper = NULL;
	struct leat_xdp_prog *prog;
	struct keeper *k;
	uint64_t before;
	uint32_t index;
	int i;

	(void)state;
	assert_int_equal(leat_netdev_create(net, "keeper", "keeper", &keeper_ops, 0, 1, sizeof(*k), &keeper), 0);
	assert_int_equal(leat_netdev_create(net, "small", "small", &small_ops, 1, 1, 0, &source), 0);
	k = keeper->priv;
	pthread_mutex_init(&k->lock, NULL);
	index = keeper->index;
	prog = make_prog(net, to_index, &index);
	assert_int_equal(leat_xdp_attach(source, prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(leat_netdev_open(keeper, NULL), 0);
	assert_int_equal(leat_netdev_open(source, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	for (i = 0; i < 100; i++) {
		wait_until_kept(k, 256);
		assert_int_equal(let_go(k), 256); /* from this thread: a remote return, which wakes the worker */
	}
	wait_until_kept(k, 256);
	sleep_ms(20);
	before = cpu_ns();
	sleep_ms(300);
	assert_true(cpu_ns() - before < 3000000); /* 1 % of a core: no spinning while memory is out */
	leat_net_stop(net);
	let_go(k);
	leat_netdev_close(source);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_net_destroy(net);
}

static void buffers_outlive_their_port(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *source = NULL, *keeper = NULL;
	struct leat_xdp_prog *prog;
	struct keeper *k;
	uint32_t index;

	(void)state;
	assert_int_equal(leat_netdev_create(net, "keeper", "keeper", &keeper_ops, 0, 1, sizeof(*k), &keeper), 0);
	assert_int_equal(leat_netdev_create(net, "small", "small", &small_ops, 1, 1, 0, &source), 0);
	k = keeper->priv;
	pthread_mutex_init(&k->lock, NULL);
	index = keeper->index;
	prog = make_prog(net, to_index, &index);
	assert_int_equal(leat_xdp_attach(source, prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(leat_netdev_open(keeper, NULL), 0);
	assert_int_equal(leat_netdev_open(source, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	wait_until_kept(k, 256);
	leat_netdev_destroy(source);
	assert_int_equal(leat_net_outstanding(net), 512); /* granules: the pool waits for its buffers */
	assert_int_equal(let_go(k), 256);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_net_destroy(net);
}

/* A port with a descriptor that the test makes readable. */
static int open_event(struct leat_netdev *dev, struct leat_diag *diag)
{
	(void)diag;
	dev->napi[0].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return dev->napi[0].fd < 0 ? -errno : 0;
}

static void stop_event(struct leat_netdev *dev)
{
	close(dev->napi[0].fd);
}

static int poll_event(struct leat_napi *napi, int budget)
{
	uint64_t count;

	(void)budget;
	if (read(napi->fd, &count, sizeof(count)) == sizeof(count))
		leat_count(&napi->stats.packets, count);
	return 0;
}

static const struct leat_netdev_ops event_ops = { .open = open_event, .stop = stop_event, .poll = poll_event };

/* Events of a port that is going must not reach its freed queue. */
static void a_port_goes_while_its_descriptor_wakes_the_worker(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *dev = NULL;
	const uint64_t one = 1;
	int i;

	(void)state;
	assert_int_equal(leat_net_start(net), 0);
	for (i = 0; i < CHANGES / 3; i++) {
		assert_int_equal(leat_netdev_create(net, "event", "event", &event_ops, 1, 1, 0, &dev), 0);
		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		if (i % 4 == 0)
			nap(); /* the worker sleeps by now */
		assert_int_equal(write(dev->napi[0].fd, &one, sizeof(one)), sizeof(one));
		if (i % 3 == 0)
			wait_until_received(dev, 1);
		leat_netdev_destroy(dev);
	}
	leat_net_destroy(net);
}

static void a_descriptor_is_heard_while_others_are_busy(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *gen = test_driver_make(net, "pktgen", "gen", NULL), *dev = NULL;
	const uint64_t one = 1;

	(void)state;
	assert_int_equal(leat_netdev_create(net, "event", "event", &event_ops, 1, 1, 0, &dev), 0);
	assert_int_equal(leat_netdev_open(gen, NULL), 0);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	wait_for_traffic(gen, 1000);
	assert_int_equal(write(dev->napi[0].fd, &one, sizeof(one)), sizeof(one));
	wait_until_received(dev, 1);
	leat_net_stop(net);
	leat_net_destroy(net);
}

/* ---- a rate ---- */

static void a_rate_is_kept_without_spinning(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *gen = test_driver_make(net, "pktgen", "gen", TEST_KEYS("rate=1000"));
	struct leat_netdev_stats stats;
	uint64_t before;

	(void)state;
	assert_int_equal(leat_netdev_open(gen, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	before = cpu_ns();
	sleep_ms(500);
	leat_netdev_stats(gen, &stats);
	assert_true(cpu_ns() - before < 150000000); /* 30 % of a core: it sleeps between packets */
	leat_net_stop(net);
	assert_in_range(stats.rx_packets, 250, 550);
	leat_net_destroy(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_replaced_under_traffic),
		cmocka_unit_test(handlers_are_replaced_under_traffic),
		cmocka_unit_test(ports_close_and_open_under_traffic),
		cmocka_unit_test(a_removed_port_receives_nothing),
		cmocka_unit_test(each_worker_sends_on_a_queue_of_its_own),
		cmocka_unit_test(an_idle_worker_sleeps),
		cmocka_unit_test(a_starved_queue_sleeps_until_memory_comes_back),
		cmocka_unit_test(buffers_outlive_their_port),
		cmocka_unit_test(a_port_goes_while_its_descriptor_wakes_the_worker),
		cmocka_unit_test(a_descriptor_is_heard_while_others_are_busy),
		cmocka_unit_test(a_rate_is_kept_without_spinning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
