/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_test.c: the receive path: how verdicts are gathered and leave, what a program finds before it, and what becomes
 * of packets that cannot go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "netdev/worker.h"
#include "xdp/prog.h"
#include "xdp/test_port.h"

#define LEN 60u

struct bench {
	struct leat_net *net;
	struct leat_netdev *in, *out, *other;
};

static void set_up(struct bench *b)
{
	b->net = test_net_make(NULL);
	b->in = test_port_make(b->net, "in");
	b->out = test_port_make(b->net, "out");
	b->other = test_port_make(b->net, "other");
}

static void tear_down(struct bench *b)
{
	assert_null(leat_net_worker(b->net, 0)->flush_list);
	test_net_end(b->net);
}

static void attach_flags(struct leat_netdev *dev, leat_xdp_fn *fn, void *priv, unsigned int flags)
{
	struct leat_xdp_prog_opts opts = {
		.size = sizeof(opts), .name = "test", .fn = fn, .priv = priv, .flags = flags
	};
	struct leat_xdp_prog *prog = NULL;

	assert_int_equal(leat_xdp_prog_create(dev->net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(dev, prog), 0);
	leat_xdp_prog_put(prog);
}

static void attach(struct leat_netdev *dev, leat_xdp_fn *fn, void *priv)
{
	attach_flags(dev, fn, priv, 0);
}

/** Lets @n packets come in, each with its number in byte 14. */
static void receive(struct bench *b, unsigned int n, uint32_t len)
{
	uint8_t bytes[2048] = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		bytes[14] = (uint8_t)i;
		test_port_put(b->in, bytes, len);
	}
	test_net_run(b->net);
}

static struct test_queue *sent_to(struct leat_netdev *dev)
{
	return &test_port_of(dev)->out;
}

/* ---- how packets leave ---- */

static uint32_t say(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	return *(const uint32_t *)priv;
}

static void tx_leaves_in_bulks_of_16(void **state)
{
	uint32_t tx = LEAT_XDP_TX;
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	attach(b.in, say, &tx);
	receive(&b, 40, LEN);
	assert_int_equal(sent_to(b.in)->n, 40);
	assert_int_equal(test_port_of(b.in)->calls, 3);
	for (i = 0; i < 40; i++)
		assert_int_equal(sent_to(b.in)->packet[i].bytes[14], i);
	tear_down(&b);
}

static uint32_t odd_to_other(struct leat_xdp_buff *xdp, void *priv)
{
	struct bench *b = priv;

	return leat_xdp_redirect(xdp, xdp->data[14] % 2 ? b->other->index : b->out->index);
}

static void redirect_gathers_per_port(void **state)
{
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	attach(b.in, odd_to_other, &b);
	receive(&b, 40, LEN);
	assert_int_equal(sent_to(b.out)->n, 20);
	assert_int_equal(sent_to(b.other)->n, 20);
	assert_int_equal(test_port_of(b.out)->calls, 2);
	assert_int_equal(test_port_of(b.other)->calls, 2);
	for (i = 0; i < 20; i++) {
		assert_int_equal(sent_to(b.out)->packet[i].bytes[14], 2 * i);
		assert_int_equal(sent_to(b.other)->packet[i].bytes[14], 2 * i + 1);
	}
	tear_down(&b);
}

static uint32_t to_nowhere(struct leat_xdp_buff *xdp, void *priv)
{
	(void)priv;
	return xdp->data[14] % 2 ? leat_xdp_redirect(xdp, LEAT_PORTS_MAX + 7) : (uint32_t)LEAT_XDP_REDIRECT;
}

static void redirect_to_no_port_is_counted(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	attach(b.in, to_nowhere, NULL);
	receive(&b, 10, LEN);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_REDIRECT), 10);
	tear_down(&b);
}

static void an_unknown_verdict_is_aborted(void **state)
{
	uint32_t unknown = 77;
	struct leat_xdp_prog_stats stats;
	struct bench b;

	(void)state;
	set_up(&b);
	attach(b.in, say, &unknown);
	receive(&b, 3, LEN);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_ABORTED), 3);
	leat_xdp_prog_stats(b.in->chain->prog[0], &stats);
	assert_int_equal(stats.runs, 3);
	assert_int_equal(stats.verdict[LEAT_XDP_ABORTED], 3);
	tear_down(&b);
}

/* ---- chains ---- */

struct link {
	uint32_t verdict;
	unsigned int runs;
};

static uint32_t run_link(struct leat_xdp_buff *xdp, void *priv)
{
	struct link *l = priv;

	(void)xdp;
	l->runs++;
	return l->verdict;
}

static struct leat_xdp_prog *make_link(struct leat_net *net, struct link *l, uint32_t prio, uint32_t actions)
{
	struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .name = "link", .fn = run_link, .priv = l,
					   .run_prio = prio, .chain_actions = actions };
	struct leat_xdp_prog *prog = NULL;

	assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
	return prog;
}

static void a_chain_runs_by_priority_until_a_verdict_stands(void **state)
{
	/* given in another order than that of running: second (60), first (10), third (60, after second), never */
	struct link links[] = { { LEAT_XDP_TX, 0 }, { LEAT_XDP_PASS, 0 }, { LEAT_XDP_DROP, 0 }, { LEAT_XDP_PASS, 0 } };
	static const uint32_t prio[] = { 60, 10, 60, 200 };
	struct leat_xdp_prog *progs[4];
	struct leat_xdp_prog_stats stats;
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	for (i = 0; i < 4; i++)
		progs[i] = make_link(b.net, &links[i], prio[i], i == 0 ? 1u << LEAT_XDP_TX : 0);
	assert_int_equal(leat_xdp_attach_chain(b.in, progs, 4), 0);
	receive(&b, 5, LEN);
	assert_int_equal(links[0].runs, 5);
	assert_int_equal(links[1].runs, 5);
	assert_int_equal(links[2].runs, 5);
	assert_int_equal(links[3].runs, 0);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_DROP), 5);
	assert_int_equal(sent_to(b.in)->n, 0);
	leat_xdp_prog_stats(progs[0], &stats);
	assert_int_equal(stats.verdict[LEAT_XDP_TX], 5);
	links[2].verdict = LEAT_XDP_PASS; /* now the last one has its say: no handler */
	receive(&b, 3, LEN);
	assert_int_equal(links[3].runs, 3);
	assert_int_equal(test_drops(b.in, LEAT_DROP_NO_HANDLER), 3);
	for (i = 0; i < 4; i++)
		leat_xdp_prog_put(progs[i]);
	tear_down(&b);
}

static void a_chain_has_a_limit(void **state)
{
	struct leat_xdp_prog *progs[LEAT_XDP_CHAIN_MAX + 1];
	struct link l = { LEAT_XDP_PASS, 0 };
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	progs[0] = make_link(b.net, &l, 0, 0);
	for (i = 1; i <= LEAT_XDP_CHAIN_MAX; i++)
		progs[i] = progs[0];
	assert_int_equal(leat_xdp_attach_chain(b.in, progs, LEAT_XDP_CHAIN_MAX + 1), -EINVAL);
	assert_int_equal(leat_xdp_attach_chain(b.in, progs, LEAT_XDP_CHAIN_MAX), 0);
	receive(&b, 2, LEN);
	assert_int_equal(l.runs, 2 * LEAT_XDP_CHAIN_MAX);
	leat_xdp_prog_put(progs[0]);
	tear_down(&b);
}

/* ---- ports that do not take everything ---- */

static int answers[8];
static unsigned int n_answers;

static int take_some(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	int answer = answers[n_answers++];

	(void)dev;
	(void)txq;
	if (answer > (int)n)
		answer = (int)n;
	if (answer > 0)
		leat_xdp_return_frame_bulk(frames, (unsigned int)answer);
	return answer;
}

static const struct leat_netdev_ops some_ops = { .xdp_xmit = take_some };

static void what_a_port_refuses_is_returned_and_counted(void **state)
{
	static const struct {
		int answers[4];
		uint64_t sent, full, error;
	} cases[] = {
		{ { 16 }, 16, 0, 0 },
		{ { 0 }, 0, 16, 0 },
		{ { 5, 0 }, 5, 11, 0 },
		{ { 5, 3, 8 }, 16, 0, 0 },
		{ { -EIO }, 0, 0, 16 },
		{ { 7, -EIO }, 7, 0, 9 },
	};
	struct leat_netdev *some = NULL;
	struct leat_netdev_stats stats;
	struct bench b;
	uint32_t index;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up(&b);
		assert_int_equal(leat_netdev_create(b.net, "some", "some", &some_ops, 0, 1, 0, &some), 0);
		assert_int_equal(leat_netdev_open(some, NULL), 0);
		memcpy(answers, cases[i].answers, sizeof(cases[i].answers));
		n_answers = 0;
		index = some->index;
		b.out = some;
		b.other = some;
		attach(b.in, odd_to_other, &b);
		receive(&b, 16, LEN);
		leat_netdev_stats(some, &stats);
		assert_int_equal(stats.tx_packets, cases[i].sent);
		assert_int_equal(stats.tx_bytes, cases[i].sent * LEN);
		assert_int_equal(stats.drops[LEAT_DROP_TX_FULL], cases[i].full);
		assert_int_equal(stats.drops[LEAT_DROP_TX_ERROR], cases[i].error);
		assert_int_equal(index, some->index);
		tear_down(&b);
	}
}

static void a_port_that_is_down_or_mute_is_counted(void **state)
{
	static const struct leat_netdev_ops mute_ops = { .open = NULL };
	struct leat_netdev *mute = NULL;
	struct bench b;

	(void)state;
	set_up(&b);
	assert_int_equal(leat_netdev_create(b.net, "mute", "mute", &mute_ops, 0, 1, 0, &mute), 0);
	assert_int_equal(leat_netdev_open(mute, NULL), 0);
	leat_netdev_close(b.other);
	b.out = mute;
	attach(b.in, odd_to_other, &b);
	receive(&b, 10, LEN);
	assert_int_equal(test_drops(mute, LEAT_DROP_NO_XMIT), 5);
	assert_int_equal(test_drops(b.other, LEAT_DROP_TX_DOWN), 5);
	tear_down(&b);
}

static void a_frame_over_the_mtu_is_dropped_and_the_rest_goes(void **state)
{
	uint32_t tx = LEAT_XDP_TX;
	struct leat_netdev_stats stats;
	struct bench b;

	(void)state;
	set_up(&b);
	attach(b.in, say, &tx);
	receive(&b, 3, LEN);
	receive(&b, 2, 1519); /* 1500, Ethernet header, a VLAN tag, and one more byte */
	receive(&b, 3, 1518);
	assert_int_equal(sent_to(b.in)->n, 6);
	assert_int_equal(test_drops(b.in, LEAT_DROP_OVERSIZE), 2);
	leat_netdev_stats(b.in, &stats);
	assert_int_equal(stats.tx_packets, 6);
	assert_int_equal(stats.tx_bytes, 3 * LEN + 3 * 1518);
	tear_down(&b);
}

/* ---- what comes in ---- */

static void runts_never_reach_a_program(void **state)
{
	uint32_t tx = LEAT_XDP_TX;
	struct leat_xdp_prog_stats stats;
	struct bench b;

	(void)state;
	set_up(&b);
	attach(b.in, say, &tx);
	receive(&b, 1, 1);
	receive(&b, 1, LEAT_ETH_HLEN - 1);
	receive(&b, 1, LEAT_ETH_HLEN);
	assert_int_equal(test_drops(b.in, LEAT_DROP_RUNT), 2);
	leat_xdp_prog_stats(b.in->chain->prog[0], &stats);
	assert_int_equal(stats.runs, 1);
	tear_down(&b);
}

static uint32_t count_buffers(struct leat_xdp_buff *xdp, void *priv)
{
	*(uint32_t *)priv += 1 + (xdp->frags ? xdp->frags->n : 0);
	return LEAT_XDP_PASS;
}

static void several_buffers_go_to_programs_that_take_them(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev_stats stats;
	uint32_t buffers = 0;
	struct bench b;

	(void)state;
	set_up(&b);
	test_port_of(b.in)->piece = 100;
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_record, &passed), 0);
	attach_flags(b.in, count_buffers, &buffers, LEAT_XDP_PROG_FRAGS);
	receive(&b, 4, 1000);
	assert_int_equal(buffers, 4 * 10);
	assert_int_equal(passed.n, 4);
	assert_int_equal(passed.packet[3].len, 1000);
	assert_int_equal(passed.packet[3].bytes[14], 3);
	leat_netdev_stats(b.in, &stats);
	assert_int_equal(stats.linear_copies, 0);
	test_queue_clear(&passed);
	tear_down(&b);
}

static void several_buffers_become_one_for_other_programs(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev_stats stats;
	uint32_t buffers = 0;
	uint8_t bytes[1000];
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	test_port_of(b.in)->piece = 100;
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_record, &passed), 0);
	attach(b.in, count_buffers, &buffers);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (i = 0; i < 4; i++)
		test_port_put(b.in, bytes, sizeof(bytes));
	test_net_run(b.net);
	assert_int_equal(buffers, 4);
	assert_int_equal(passed.n, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(passed.packet[i].len, sizeof(bytes));
		assert_memory_equal(passed.packet[i].bytes, bytes, sizeof(bytes));
	}
	leat_netdev_stats(b.in, &stats);
	assert_int_equal(stats.linear_copies, 4);
	leat_page_pool_fail_nth(b.in->napi[0].pool, 11); /* the packet's ten buffers are there, the one for all is not */
	test_port_put(b.in, bytes, sizeof(bytes));
	test_net_run(b.net);
	assert_int_equal(test_drops(b.in, LEAT_DROP_NO_MEMORY), 1);
	assert_int_equal(passed.n, 4);
	test_queue_clear(&passed);
	tear_down(&b);
}

static void what_fits_no_buffer_is_dropped_for_programs_that_take_one(void **state)
{
	static uint8_t bytes[LEAT_PAGE_POOL_ALLOC_MAX - LEAT_XDP_HEADROOM - LEAT_XDP_TAILROOM + 1];
	struct test_queue passed = { 0 };
	uint32_t buffers = 0;
	struct bench b;

	(void)state;
	set_up(&b);
	test_port_of(b.in)->piece = 8000;
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_record, &passed), 0);
	attach(b.in, count_buffers, &buffers);
	test_port_put(b.in, bytes, sizeof(bytes));
	test_port_put(b.in, bytes, sizeof(bytes) - 1);
	test_net_run(b.net);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_FRAGS), 1);
	assert_int_equal(passed.n, 1);
	assert_int_equal(passed.packet[0].len, sizeof(bytes) - 1);
	assert_int_equal(buffers, 1);
	test_queue_clear(&passed);
	tear_down(&b);
}

static void without_skb_memory_a_passed_packet_is_counted(void **state)
{
	struct test_queue passed = { 0 };
	struct bench b;

	(void)state;
	set_up(&b);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_record, &passed), 0);
	receive(&b, 1, LEN); /* the worker has taken its pool */
	leat_page_pool_fail_nth(leat_worker_objs(leat_net_worker(b.net, 0)), 3);
	receive(&b, 5, LEN);
	assert_int_equal(passed.n, 5);
	assert_int_equal(test_drops(b.in, LEAT_DROP_NO_MEMORY), 1);
	test_queue_clear(&passed);
	tear_down(&b);
}

/* ---- packets that have travelled: through a cable to a program ---- */

static void cable(struct bench *b, struct leat_netdev **near_end, struct leat_netdev **far_end)
{
	*near_end = test_driver_make(b->net, "veth", "near", TEST_KEYS("peer=far"));
	*far_end = test_driver_make(b->net, "veth", "far", TEST_KEYS("peer=near"));
	assert_int_equal((*near_end)->ops->link(*near_end, NULL), 0);
	assert_int_equal((*far_end)->ops->link(*far_end, NULL), 0);
	assert_int_equal(leat_netdev_open(*near_end, NULL), 0);
	assert_int_equal(leat_netdev_open(*far_end, NULL), 0);
}

/** Grows into the headroom and writes there and into the packet. */
static uint32_t push_and_pass(struct leat_xdp_buff *xdp, void *priv)
{
	(void)priv;
	if (leat_xdp_adjust_head(xdp, -200))
		return LEAT_XDP_ABORTED;
	memset(xdp->data, 0xee, 200);
	xdp->data[200 + 20] = 0xdd;
	return LEAT_XDP_PASS;
}

static void a_program_finds_headroom_that_the_packet_lacked(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	struct leat_netdev_stats stats;
	struct bench b;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_forward, near_end), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach(far_end, push_and_pass, NULL);
	receive(&b, 5, LEN);
	assert_int_equal(passed.n, 5);
	assert_int_equal(passed.packet[4].len, 200 + LEN);
	assert_int_equal(passed.packet[4].bytes[0], 0xee);
	assert_int_equal(passed.packet[4].bytes[200 + 14], 4);
	assert_int_equal(passed.packet[4].bytes[200 + 20], 0xdd);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.headroom_copies, 5);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

static uint32_t read_and_pass(struct leat_xdp_buff *xdp, void *priv)
{
	uint32_t *sum = priv;

	*sum += xdp->data[14];
	return LEAT_XDP_PASS;
}

/** One that only reads needs no room to grow into: nothing is copied for it, but for one beside it that writes. */
static void a_program_that_only_reads_causes_no_copy(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	struct leat_netdev_stats stats;
	struct bench b;
	uint32_t sum = 0;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_forward, near_end), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach_flags(far_end, read_and_pass, &sum, LEAT_XDP_PROG_READ_ONLY);
	receive(&b, 5, LEN);
	assert_int_equal(passed.n, 5);
	assert_int_equal(sum, 0 + 1 + 2 + 3 + 4);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.headroom_copies, 0);
	attach(far_end, read_and_pass, &sum);
	receive(&b, 5, LEN);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.headroom_copies, 5);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

static void keep_one(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		     unsigned int n)
{
	(void)worker;
	(void)dev;
	assert_int_equal(n, 1);
	*(struct leat_skb **)arg = skbs[0];
}

/** Says its word before the packet, over the word that is there. */
static uint32_t say_before_the_packet(struct leat_xdp_buff *xdp, void *priv)
{
	if (xdp->data == xdp->data_meta && leat_xdp_adjust_meta(xdp, -8))
		return LEAT_XDP_ABORTED;
	memcpy(xdp->data_meta, priv, 8);
	return LEAT_XDP_PASS;
}

/** Metadata lies in the headroom, it is none of the packet's: for it alone no head is copied. */
static void metadata_causes_no_copy(void **state)
{
	char one[] = "one word", two[] = "two word", got[8];
	struct leat_netdev *near_end, *far_end;
	struct leat_netdev_stats stats;
	struct leat_skb *kept = NULL, *pushed = NULL;
	struct bench b;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	attach(b.in, say_before_the_packet, one);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_forward, near_end), 0);
	attach(far_end, say_before_the_packet, two);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, keep_one, &kept), 0);
	receive(&b, 1, LEN);
	assert_non_null(kept);
	assert_int_equal(kept->metasize, 8);
	memcpy(got, kept->data - 8, 8);
	assert_memory_equal(got, two, 8);
	assert_int_equal(leat_skb_headroom(kept), LEAT_XDP_HEADROOM);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.headroom_copies, 0);
	leat_skb_free(kept);
	attach(far_end, push_and_pass, NULL);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, keep_one, &pushed), 0);
	receive(&b, 1, LEN);
	assert_non_null(pushed);
	assert_int_equal(pushed->len, 200 + LEN);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.headroom_copies, 0);
	leat_skb_free(pushed);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	tear_down(&b);
}

/** Sends a clone of each packet down the cable and keeps the packet itself for the test. */
struct splitter {
	struct leat_netdev *to;
	struct leat_skb *kept[8];
	unsigned int n;
};

static void split(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		  unsigned int n)
{
	struct splitter *s = arg;
	struct leat_skb *clone;
	unsigned int i;

	(void)dev;
	for (i = 0; i < n; i++) {
		clone = leat_skb_clone(leat_worker_objs(worker), skbs[i]);
		assert_non_null(clone);
		s->kept[s->n++] = skbs[i];
		leat_netdev_start_xmit(s->to, worker, &clone, 1);
	}
}

static uint32_t scribble(struct leat_xdp_buff *xdp, void *priv)
{
	(void)priv;
	memset(xdp->data, 0xff, LEN);
	return LEAT_XDP_PASS;
}

static void a_program_cannot_write_what_another_holder_reads(void **state)
{
	uint32_t pass = LEAT_XDP_PASS;
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	struct splitter splitter = { 0 };
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	splitter.to = near_end;
	attach(b.in, say, &pass); /* so that packets have headroom and only the sharing is left to copy for */
	assert_int_equal(leat_netdev_set_rx_handler(b.in, split, &splitter), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach(far_end, scribble, NULL);
	receive(&b, 3, LEN);
	assert_int_equal(passed.n, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(passed.packet[i].bytes[14], 0xff);
		assert_int_equal(splitter.kept[i]->data[14], i);
		assert_false(leat_skb_is_shared(splitter.kept[i]));
	}
	leat_skb_free_bulk(splitter.kept, splitter.n);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

/** Writes into the last byte of every fragment. */
static uint32_t scribble_frags(struct leat_xdp_buff *xdp, void *priv)
{
	uint32_t i;

	(void)priv;
	for (i = 0; i < xdp->frags->n; i++) {
		const struct leat_frag *frag = &xdp->frags->frag[i];

		leat_run_start(frag->run)[frag->off + frag->len - 1] = 0xff;
	}
	return LEAT_XDP_PASS;
}

static void a_program_cannot_write_fragments_that_another_holder_reads(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	struct splitter splitter = { 0 };
	uint8_t bytes[350];
	struct bench b;
	unsigned int i;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	splitter.to = near_end;
	test_port_of(b.in)->piece = 100;
	assert_int_equal(leat_netdev_set_rx_handler(b.in, split, &splitter), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach_flags(far_end, scribble_frags, NULL, LEAT_XDP_PROG_FRAGS);
	receive(&b, 3, sizeof(bytes));
	leat_page_pool_fail_nth(far_end->napi[0].pool, 2); /* the head is copied, then memory is out */
	receive(&b, 1, sizeof(bytes));
	assert_int_equal(passed.n, 3);
	assert_int_equal(test_drops(far_end, LEAT_DROP_NO_MEMORY), 1);
	for (i = 0; i < 4; i++) {
		assert_int_equal(leat_skb_copy_bits(splitter.kept[i], 0, bytes, sizeof(bytes)), 0);
		assert_int_equal(bytes[14], i % 3);
		assert_int_equal(bytes[199], 0);
		assert_int_equal(bytes[349], 0);
		assert_false(leat_skb_is_shared(splitter.kept[i]));
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(passed.packet[i].bytes[14], i);
		assert_int_equal(passed.packet[i].bytes[198], 0);
		assert_int_equal(passed.packet[i].bytes[199], 0xff);
		assert_int_equal(passed.packet[i].bytes[349], 0xff);
	}
	leat_skb_free_bulk(splitter.kept, splitter.n);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

/** Sends a second frame of each packet down the cable and keeps the first. */
struct cloner {
	struct leat_netdev *to;
	struct leat_xdp_frame *kept[8];
	unsigned int n;
};

static void clone_frames(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
			 unsigned int n)
{
	struct leat_page_pool *objs = leat_worker_objs(worker);
	struct cloner *c = arg;
	struct leat_xdp_frame *clone;
	unsigned int i;

	for (i = 0; i < n; i++) {
		c->kept[c->n] = leat_skb_to_xdp_frame(objs, skbs[i]);
		assert_non_null(c->kept[c->n]);
		clone = leat_xdp_frame_clone(c->kept[c->n++], dev->napi[0].pool, objs);
		assert_non_null(clone);
		leat_netdev_xdp_xmit(c->to, worker, &clone, 1);
	}
}

static uint32_t scribble_all(struct leat_xdp_buff *xdp, void *priv)
{
	uint32_t i;

	*(uint32_t *)priv += leat_xdp_buff_len(xdp) == (uint32_t)(xdp->data_end - xdp->data);
	memset(xdp->data, 0xff, (size_t)(xdp->data_end - xdp->data));
	for (i = 0; xdp->frags && i < xdp->frags->n; i++) {
		const struct leat_frag *frag = &xdp->frags->frag[i];

		memset(leat_run_start(frag->run) + frag->off, 0xff, frag->len);
	}
	return LEAT_XDP_PASS;
}

static void clone_to_program(unsigned int flags, uint32_t linear, uint32_t linear_copies)
{
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	struct cloner cloner = { 0 };
	struct leat_netdev_stats stats;
	static uint8_t bytes[1000], ones[1000];
	uint32_t seen = 0;
	struct bench b;
	unsigned int i;

	set_up(&b);
	cable(&b, &near_end, &far_end);
	cloner.to = near_end;
	memset(ones, 0xff, sizeof(ones));
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, clone_frames, &cloner), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach_flags(far_end, scribble_all, &seen, flags);
	for (i = 0; i < 3; i++)
		test_port_put(b.in, bytes, sizeof(bytes));
	test_net_run(b.net);
	assert_int_equal(passed.n, 3);
	assert_int_equal(seen, linear);
	leat_netdev_stats(far_end, &stats);
	assert_int_equal(stats.linear_copies, linear_copies);
	assert_int_equal(stats.headroom_copies, 0); /* a clone has headroom and a head of its own */
	for (i = 0; i < 3; i++) {
		assert_int_equal(passed.packet[i].len, sizeof(ones));
		assert_memory_equal(passed.packet[i].bytes, ones, sizeof(ones));
		assert_int_equal(cloner.kept[i]->len, sizeof(bytes));
		assert_memory_equal(cloner.kept[i]->data, bytes, sizeof(bytes));
	}
	leat_xdp_return_frame_bulk(cloner.kept, cloner.n);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

static void a_clone_of_one_buffer_is_one_buffer_for_a_program(void **state)
{
	(void)state;
	clone_to_program(0, 3, 3);
	clone_to_program(LEAT_XDP_PROG_FRAGS, 0, 0);
}

/** Floods: a clone into the first cable, the packet itself into the second. */
struct flood {
	struct leat_netdev *to[2];
};

static void flood(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		  unsigned int n)
{
	struct flood *f = arg;
	struct leat_skb *clone;
	unsigned int i;

	(void)dev;
	for (i = 0; i < n; i++) {
		clone = leat_skb_clone(leat_worker_objs(worker), skbs[i]);
		assert_non_null(clone);
		leat_netdev_start_xmit(f->to[0], worker, &clone, 1);
		leat_netdev_start_xmit(f->to[1], worker, &skbs[i], 1);
	}
}

static struct leat_netdev *cable_with_program(struct bench *b, const char *one, const char *other,
					      struct test_queue *passed, uint32_t *verdict)
{
	char peer[32];
	struct leat_netdev *dev[2];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(peer, sizeof(peer), "peer=%s", i ? one : other);
		dev[i] = test_driver_make(b->net, "veth", i ? other : one, TEST_KEYS(peer));
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(dev[i]->ops->link(dev[i], NULL), 0);
		assert_int_equal(leat_netdev_open(dev[i], NULL), 0);
	}
	assert_int_equal(leat_netdev_set_rx_handler(dev[1], test_record, passed), 0);
	attach_flags(dev[1], say, verdict, LEAT_XDP_PROG_FRAGS);
	return dev[0];
}

static void a_flooded_packet_of_several_buffers_reaches_each_program_whole(void **state)
{
	struct test_queue passed[2] = { { 0 }, { 0 } };
	uint32_t pass = LEAT_XDP_PASS;
	struct flood f;
	struct bench b;
	int i;

	(void)state;
	set_up(&b);
	f.to[0] = cable_with_program(&b, "near0", "far0", &passed[0], &pass);
	f.to[1] = cable_with_program(&b, "near1", "far1", &passed[1], &pass);
	test_port_of(b.in)->piece = 100;
	assert_int_equal(leat_netdev_set_rx_handler(b.in, flood, &f), 0);
	receive(&b, 5, 1000);
	for (i = 0; i < 2; i++) {
		assert_int_equal(passed[i].n, 5);
		assert_int_equal(passed[i].packet[4].len, 1000);
		assert_int_equal(passed[i].packet[4].bytes[14], 4);
		test_queue_clear(&passed[i]);
	}
	tear_down(&b);
}

static void metadata_survives_the_cable(void **state)
{
	struct test_queue passed = { 0 };
	struct leat_netdev *near_end, *far_end;
	uint32_t pass = LEAT_XDP_PASS;
	uint8_t bytes[LEN] = { 0 };
	struct bench b;

	(void)state;
	set_up(&b);
	cable(&b, &near_end, &far_end);
	assert_int_equal(leat_netdev_set_rx_handler(b.in, test_forward, near_end), 0);
	assert_int_equal(leat_netdev_set_rx_handler(far_end, test_record, &passed), 0);
	attach(far_end, say, &pass);
	test_port_put(b.in, bytes, LEN);
	test_port_of(b.in)->in.packet[0].meta =
		(struct leat_pkt_meta){ .timestamp = 123456789, .flags = LEAT_META_TIMESTAMP };
	test_net_run(b.net);
	assert_int_equal(passed.n, 1);
	assert_int_equal(passed.packet[0].meta.timestamp, 123456789);
	assert_int_equal(passed.packet[0].meta.flags, LEAT_META_TIMESTAMP);
	leat_netdev_set_rx_handler(far_end, NULL, NULL);
	test_queue_clear(&passed);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_leaves_in_bulks_of_16),
		cmocka_unit_test(redirect_gathers_per_port),
		cmocka_unit_test(redirect_to_no_port_is_counted),
		cmocka_unit_test(an_unknown_verdict_is_aborted),
		cmocka_unit_test(a_chain_runs_by_priority_until_a_verdict_stands),
		cmocka_unit_test(a_chain_has_a_limit),
		cmocka_unit_test(what_a_port_refuses_is_returned_and_counted),
		cmocka_unit_test(a_port_that_is_down_or_mute_is_counted),
		cmocka_unit_test(a_frame_over_the_mtu_is_dropped_and_the_rest_goes),
		cmocka_unit_test(runts_never_reach_a_program),
		cmocka_unit_test(several_buffers_go_to_programs_that_take_them),
		cmocka_unit_test(several_buffers_become_one_for_other_programs),
		cmocka_unit_test(what_fits_no_buffer_is_dropped_for_programs_that_take_one),
		cmocka_unit_test(without_skb_memory_a_passed_packet_is_counted),
		cmocka_unit_test(a_program_finds_headroom_that_the_packet_lacked),
		cmocka_unit_test(a_program_that_only_reads_causes_no_copy),
		cmocka_unit_test(metadata_causes_no_copy),
		cmocka_unit_test(a_program_cannot_write_what_another_holder_reads),
		cmocka_unit_test(a_program_cannot_write_fragments_that_another_holder_reads),
		cmocka_unit_test(a_clone_of_one_buffer_is_one_buffer_for_a_program),
		cmocka_unit_test(a_flooded_packet_of_several_buffers_reaches_each_program_whole),
		cmocka_unit_test(metadata_survives_the_cable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
