/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake.c: what a worker sleeps through, and what it must not: threads that end and start again, queues that come and go
 * beside a sleeping one, memory that is short while nothing is out, a loop that is not ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/heap.h"
#include "netdev/worker.h"
#include "xdp/test_port.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 300
#else
#define CHANGES 3000
#endif
#define PATIENCE_MS 20000

static void sleep_ms(long ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static struct leat_net *make_net(unsigned int workers)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .workers = workers, .arena_size = UINT64_C(1) << 30 };
	struct leat_net *net = NULL;

	assert_int_equal(leat_net_create(&opts, &net), 0);
	return net;
}

/* ---- a port that counts its polls ---- */

struct counter {
	uint32_t polls;
	uint32_t entered; /* polls begun */
	uint32_t hold;    /* a poll ends only when it is 0 */
	uint32_t starves; /* a poll ends without memory */
};

static int count_poll(struct leat_napi *napi, int budget)
{
	struct counter *c = napi->dev->priv;

	(void)budget;
	__atomic_fetch_add(&c->entered, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&c->hold, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	napi->starved = __atomic_load_n(&c->starves, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&c->polls, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static const struct leat_netdev_ops counter_ops = {
	.open = test_port_open, .stop = test_port_stop, .poll = count_poll,
};

static struct leat_netdev *make_counter(struct leat_net *net, const char *name)
{
	struct leat_netdev *dev = NULL;

	assert_int_equal(leat_netdev_create(net, "counter", name, &counter_ops, 1, 1, sizeof(struct counter), &dev), 0);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	return dev;
}

static struct counter *counter_of(struct leat_netdev *dev)
{
	return dev->priv;
}

static uint32_t read_atomic(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void wait_for(const uint32_t *word, uint32_t least)
{
	int i;

	for (i = 0; i < PATIENCE_MS && read_atomic(word) < least; i++)
		sleep_ms(1);
	assert_true(read_atomic(word) >= least);
}

/* ---- threads end and start again ---- */

static void a_restarted_worker_sleeps(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *dev = make_counter(net, "a");
	uint64_t before;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(leat_net_start(net), 0);
		wait_for(&counter_of(dev)->polls, 1);
		wait_for(&leat_net_worker(net, 0)->sleeping, 1);
		before = cpu_ns();
		sleep_ms(300);
		assert_true(cpu_ns() - before < 30000000); /* 10 % of a core */
		leat_net_stop(net);
	}
	leat_net_destroy(net);
}

/* ---- a queue goes while memory is short ---- */

static void *close_without_memory(void *dev)
{
	leat_heap_fail_nth(1);
	leat_netdev_close(dev);
	return NULL;
}

static bool has_list(struct leat_worker *worker)
{
	return __atomic_load_n(&worker->napis, __ATOMIC_SEQ_CST) != NULL;
}

/* Without memory for a new list the worker has none for a while: what is scheduled meanwhile is polled after it. */
static void a_queue_is_not_forgotten_when_another_goes(void **state)
{
	struct leat_net *net = make_net(2);
	struct leat_netdev *stays = make_counter(net, "stays"), *holds = make_counter(net, "holds"); /* workers 0, 1 */
	struct leat_netdev *goes = make_counter(net, "goes");                                        /* worker 0 */
	struct leat_worker *worker = leat_net_worker(net, 0);
	uint32_t polls;
	pthread_t closer;
	int i;

	(void)state;
	assert_int_equal(leat_net_start(net), 0);
	wait_for(&counter_of(stays)->polls, 1);
	wait_for(&counter_of(holds)->polls, 1);
	wait_for(&counter_of(goes)->polls, 1);
	__atomic_store_n(&counter_of(holds)->hold, 1, __ATOMIC_SEQ_CST);
	leat_napi_schedule(&holds->napi[0]);
	wait_for(&counter_of(holds)->entered, 2); /* from here on no grace period ends */
	assert_int_equal(pthread_create(&closer, NULL, close_without_memory, goes), 0);
	for (i = 0; i < PATIENCE_MS && has_list(worker); i++)
		sleep_ms(1);
	assert_false(has_list(worker));
	wait_for(&worker->sleeping, 1);
	polls = read_atomic(&counter_of(stays)->polls);
	leat_napi_schedule(&stays->napi[0]);
	sleep_ms(20);
	wait_for(&worker->sleeping, 1);
	__atomic_store_n(&counter_of(holds)->hold, 0, __ATOMIC_SEQ_CST);
	pthread_join(closer, NULL);
	assert_true(leat_heap_failed());
	wait_for(&counter_of(stays)->polls, polls + 1);
	leat_net_stop(net);
	leat_net_destroy(net);
}

/* ---- memory is short, and nothing is out that could come back ---- */

static void a_starved_queue_with_nothing_out_is_tried_again(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *dev = make_counter(net, "a");
	uint32_t polls;

	(void)state;
	__atomic_store_n(&counter_of(dev)->starves, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(leat_net_start(net), 0);
	wait_for(&counter_of(dev)->polls, 1);
	wait_for(&leat_net_worker(net, 0)->sleeping, 1);
	polls = read_atomic(&counter_of(dev)->polls);
	__atomic_store_n(&counter_of(dev)->starves, 0, __ATOMIC_SEQ_CST); /* the system has memory again */
	wait_for(&counter_of(dev)->polls, polls + 1);
	leat_net_stop(net);
	leat_net_destroy(net);
}

/* ---- a loop that is not ours ---- */

struct loop {
	struct leat_worker *worker;
	uint32_t stop;
};

static void *poll_and_arm(void *arg)
{
	struct loop *loop = arg;

	while (!read_atomic(&loop->stop)) {
		leat_worker_poll(loop->worker);
		leat_worker_arm(loop->worker);
	}
	return NULL;
}

/* The loop looks at its queues when it arms, too: a list that it may see must not be freed. */
static void ports_come_and_go_while_a_loop_arms(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *dev = make_counter(net, "a"), *other;
	struct loop loop = { .worker = leat_net_worker(net, 0) };
	pthread_t thread;
	int i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, poll_and_arm, &loop), 0);
	for (i = 0; i < CHANGES; i++) {
		other = make_counter(net, "b");
		leat_netdev_close(dev);
		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		leat_netdev_destroy(other);
	}
	__atomic_store_n(&loop.stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	leat_net_destroy(net);
}

/* A loop that does not get to wait holds no grace period up. */
static void arming_in_vain_holds_nothing_up(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *dev = make_counter(net, "a");

	(void)state;
	assert_false(leat_worker_arm(leat_net_worker(net, 0))); /* the queue is new */
	leat_net_synchronize(net);
	assert_int_equal(leat_worker_poll(leat_net_worker(net, 0)), 0);
	assert_true(leat_worker_arm(leat_net_worker(net, 0)));
	leat_net_synchronize(net);
	assert_int_equal(counter_of(dev)->polls, 1);
	leat_net_destroy(net);
}

/* ---- a port that is only being made ---- */

static uint32_t to_index(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_xdp_redirect(xdp, __atomic_load_n((uint32_t *)priv, __ATOMIC_RELAXED));
}

/* A program may name a number that a port is just being given: what the driver still writes is not looked at. */
static void packets_come_before_their_port_is_ready(void **state)
{
	struct leat_net *net = make_net(1);
	struct leat_netdev *gen = test_driver_make(net, "pktgen", "gen", NULL), *sink;
	uint32_t index = gen->index + 1;
	struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .fn = to_index, .priv = &index };
	struct leat_xdp_prog *prog = NULL;
	int i;

	(void)state;
	assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(gen, prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(leat_netdev_open(gen, NULL), 0);
	assert_int_equal(leat_net_start(net), 0);
	for (i = 0; i < CHANGES / 10; i++) {
		sink = test_driver_make(net, "sink", "sink", NULL);
		sleep_ms(1);
		assert_int_equal(leat_netdev_open(sink, NULL), 0);
		leat_netdev_destroy(sink);
		__atomic_store_n(&index, index % (LEAT_PORTS_MAX - 1) + 1, __ATOMIC_RELAXED);
	}
	leat_net_stop(net);
	leat_netdev_close(gen);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_net_destroy(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restarted_worker_sleeps),
		cmocka_unit_test(a_queue_is_not_forgotten_when_another_goes),
		cmocka_unit_test(a_starved_queue_with_nothing_out_is_tried_again),
		cmocka_unit_test(ports_come_and_go_while_a_loop_arms),
		cmocka_unit_test(arming_in_vain_holds_nothing_up),
		cmocka_unit_test(packets_come_before_their_port_is_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
