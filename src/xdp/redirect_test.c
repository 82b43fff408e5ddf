/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redirect_test.c: packets that are redirected by DEVMAPs: to one port, to all of them with one payload, through the
 * program of an entry; and what becomes of entries whose port goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>

#include "bpf/test_run.h"
#include "netdev/worker.h"
#include "xdp/prog.h"
#include "xdp/test_port.h"

#define N(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))
#define PORTS 8u

/** One port that receives, eight to send to, and two maps with 8-byte values: 0 a DEVMAP, 1 a DEVMAP_HASH. */
struct bench {
	struct leat_net *net;
	struct leat_netdev *in, *out[PORTS];
	struct test_bpf t;
};

static void begin_maps(struct bench *b)
{
	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&b->t, 0), 0);
	b->t.env->net = b->net;
	b->t.env->epoch = &b->net->epoch;
	assert_int_equal(test_bpf_map(&b->t, BPF_MAP_TYPE_DEVMAP, 4, 8, 32, 0), 0);
	assert_int_equal(test_bpf_map(&b->t, BPF_MAP_TYPE_DEVMAP_HASH, 4, 8, 32, 0), 1);
}

static void set_up(struct bench *b)
{
	char name[8];
	uint32_t i;

	memset(b, 0, sizeof(*b));
	b->net = test_net_make(NULL);
	b->in = test_port_make(b->net, "in");
	for (i = 0; i < PORTS; i++) {
		snprintf(name, sizeof(name), "out%u", i);
		b->out[i] = test_port_make(b->net, name);
	}
	begin_maps(b);
}

static void tear_down(struct bench *b)
{
	leat_xdp_attach(b->in, NULL);
	test_bpf_end(&b->t);
	assert_null(leat_net_worker(b->net, 0)->flush_list);
	test_net_end(b->net);
}

static int set_entry(struct bench *b, int map, uint32_t key, uint32_t port, int prog)
{
	const struct bpf_devmap_val value = { .ifindex = port, .bpf_prog.fd = prog };

	return leat_bpf_map_update(&b->t.map[map], &key, &value, BPF_ANY);
}

static bool has_entry(struct bench *b, int map, uint32_t key)
{
	uint64_t value;

	return !leat_bpf_map_lookup(&b->t.map[map], &key, &value);
}

/** All eight ports, under the keys 3, 6, 9... */
static void fill(struct bench *b, int map)
{
	uint32_t i;

	for (i = 0; i < PORTS; i++)
		assert_int_equal(set_entry(b, map, 3 + 3 * i, b->out[i]->index, 0), 0);
}

/** Adds a program with those flags; its number for entries. */
static int add_prog(struct bench *b, const struct bpf_insn *insns, uint32_t n, uint32_t flags)
{
	int number;

	b->t.flags = flags;
	number = test_bpf_prog(&b->t, insns, n);
	assert_true(number >= 0);
	return (int)leat_bpf_prog_number(&b->t.prog[number]);
}

static void attach_insns(struct bench *b, const struct bpf_insn *insns, uint32_t n)
{
	struct leat_xdp_prog *prog = NULL;
	int number = add_prog(b, insns, n, LEAT_IMAGE_PROG_FRAGS) - 1;

	assert_int_equal(leat_xdp_prog_create_bpf(b->net, &b->t.prog[number], NULL, &prog), 0);
	assert_int_equal(leat_xdp_attach(b->in, prog), 0);
	leat_xdp_prog_put(prog);
}

#define REDIRECT(map, flags) LDMAP(R1, map), MOV64K(R3, flags), HELPER(BPF_FUNC_redirect_map), EXIT
/* the program's first packet byte to R2, with at least 20 bytes behind the pointer in R6; else the program ends */
#define FIRST_BYTE                                                                                               \
	MOV64K(R0, LEAT_XDP_ABORTED), LDX(BPF_W, R6, R1, 0), LDX(BPF_W, R3, R1, 4), MOV64X(R4, R6), ADD64K(R4, 20), \
		JMP64X(BPF_JLE, R4, R3, 1), EXIT, LDX(BPF_B, R2, R6, 0)

static void attach_broadcast(struct bench *b, int map, bool not_ingress)
{
	static const struct bpf_insn insns[4][6] = {
		{ MOV64K(R2, 0), REDIRECT(0, BPF_F_BROADCAST) },
		{ MOV64K(R2, 0), REDIRECT(1, BPF_F_BROADCAST) },
		{ MOV64K(R2, 0), REDIRECT(0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS) },
		{ MOV64K(R2, 0), REDIRECT(1, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS) },
	};
	const struct bpf_insn *prog = insns[map + 2 * not_ingress];

	attach_insns(b, prog, 6);
}

static uint8_t byte_at(uint32_t packet, uint32_t off)
{
	return (uint8_t)(packet * 31 + off * 7 + 1);
}

static void receive(struct bench *b, uint32_t n, uint32_t len)
{
	static uint8_t bytes[4096];
	uint32_t i, off;

	for (i = 0; i < n; i++) {
		for (off = 0; off < len; off++)
			bytes[off] = byte_at(i, off);
		test_port_put(b->in, bytes, len);
	}
	test_net_run(b->net);
}

/** That @queue holds packets 0..n-1 as they came in, from byte @from on. */
static void expect_whole(const struct test_queue *queue, uint32_t n, uint32_t len, uint32_t from)
{
	uint32_t i, off;

	assert_int_equal(queue->n, n);
	for (i = 0; i < n; i++) {
		assert_int_equal(queue->packet[i].len, len);
		for (off = from; off < len; off++)
			assert_int_equal(queue->packet[i].bytes[off], byte_at(i, off));
	}
}

static struct test_queue *sent_to(struct leat_netdev *dev)
{
	return &test_port_of(dev)->out;
}

/* ---- to all ports ---- */

/** Lengths of packets, and of their pieces: within the copy break, beyond it, in several buffers. */
static const struct {
	uint32_t len, piece;
} shapes[] = { { 60, 0 }, { 256, 0 }, { 257, 0 }, { 1500, 0 }, { 60, 30 }, { 1000, 100 }, { 1500, 85 } };

static void a_broadcast_reaches_every_port_whole(void **state)
{
	struct bench b;
	uint32_t i, s;
	int map;

	(void)state;
	for (s = 0; s < N(shapes); s++) {
		for (map = 0; map < 2; map++) {
			set_up(&b);
			fill(&b, map);
			test_port_of(b.in)->piece = shapes[s].piece;
			attach_broadcast(&b, map, false);
			receive(&b, 40, shapes[s].len);
			for (i = 0; i < PORTS; i++) {
				expect_whole(sent_to(b.out[i]), 40, shapes[s].len, 0);
				assert_int_equal(test_port_of(b.out[i])->calls, 3); /* in bulks, as ever */
			}
			assert_int_equal(test_all_drops(b.in), 0);
			tear_down(&b);
		}
	}
}

static void a_broadcast_may_leave_out_where_it_came_from(void **state)
{
	struct bench b;
	int not_ingress;

	(void)state;
	for (not_ingress = 0; not_ingress < 2; not_ingress++) {
		set_up(&b);
		fill(&b, 0);
		assert_int_equal(set_entry(&b, 0, 0, b.in->index, 0), 0);
		attach_broadcast(&b, 0, not_ingress);
		receive(&b, 5, 300);
		expect_whole(sent_to(b.out[0]), 5, 300, 0);
		expect_whole(sent_to(b.out[7]), 5, 300, 0);
		expect_whole(sent_to(b.in), not_ingress ? 0 : 5, 300, 0);
		tear_down(&b);
	}
}

static void a_broadcast_to_no_port_is_counted(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	assert_int_equal(set_entry(&b, 1, 77, b.in->index, 0), 0);
	attach_broadcast(&b, 1, true);
	receive(&b, 5, 300);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_REDIRECT), 5);
	tear_down(&b);
}

static void a_port_that_cannot_send_costs_only_its_own_packets(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	fill(&b, 0);
	leat_netdev_close(b.out[2]);
	b.out[7]->mtu = 200;
	attach_broadcast(&b, 0, false);
	receive(&b, 20, 400);
	assert_int_equal(test_drops(b.out[2], LEAT_DROP_TX_DOWN), 20);
	assert_int_equal(test_drops(b.out[7], LEAT_DROP_OVERSIZE), 20);
	expect_whole(sent_to(b.out[1]), 20, 400, 0);
	expect_whole(sent_to(b.out[6]), 20, 400, 0);
	tear_down(&b);
}

static void without_memory_a_clone_is_counted_at_its_port(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b);
	fill(&b, 0);
	attach_broadcast(&b, 0, false);
	receive(&b, 1, 400); /* the worker has taken its pools */
	leat_page_pool_fail_nth(b.in->napi[0].pool, 4); /* after the packet, the third clone's head */
	receive(&b, 1, 400);
	leat_page_pool_fail_nth(leat_worker_objs(leat_net_worker(b.net, 0)), 2); /* the second clone's list */
	receive(&b, 1, 400);
	assert_int_equal(test_drops(b.out[2], LEAT_DROP_NO_MEMORY), 1);
	assert_int_equal(test_drops(b.out[1], LEAT_DROP_NO_MEMORY), 1);
	assert_int_equal(sent_to(b.out[0])->n, 3);
	assert_int_equal(sent_to(b.out[1])->n, 2);
	assert_int_equal(sent_to(b.out[2])->n, 2);
	assert_int_equal(sent_to(b.out[7])->n, 3);
	tear_down(&b);
}

/* ---- receivers that write into what they got ---- */

static uint32_t scribble(struct leat_xdp_buff *xdp, void *priv)
{
	uint32_t i;

	(void)priv;
	memset(xdp->data, 0xff, (size_t)(xdp->data_end - xdp->data));
	for (i = 0; xdp->frags && i < xdp->frags->n; i++) {
		const struct leat_frag *frag = &xdp->frags->frag[i];

		memset(leat_run_start(frag->run) + frag->off, 0xff, frag->len);
	}
	return LEAT_XDP_PASS;
}

static uint32_t look(struct leat_xdp_buff *xdp, void *priv)
{
	*(uint32_t *)priv += leat_xdp_buff_len(xdp);
	return LEAT_XDP_PASS;
}

/** Cables whose far ends have a program each: one writes, the others read. */
struct cables {
	struct leat_netdev *near_end[PORTS], *far_end[PORTS];
	struct test_queue passed[PORTS];
	uint32_t seen;
};

static void lay_cable(struct bench *b, struct cables *c, uint32_t i, bool writes)
{
	struct leat_xdp_prog_opts opts = {
		.size = sizeof(opts), .name = "far", .fn = writes ? scribble : look, .priv = &c->seen,
		.flags = LEAT_XDP_PROG_FRAGS | (writes ? 0 : LEAT_XDP_PROG_READ_ONLY),
	};
	char one[16], other[16], peer[2][24];
	struct leat_xdp_prog *prog = NULL;

	snprintf(one, sizeof(one), "near%u", i);
	snprintf(other, sizeof(other), "far%u", i);
	snprintf(peer[0], sizeof(peer[0]), "peer=%s", other);
	snprintf(peer[1], sizeof(peer[1]), "peer=%s", one);
	c->near_end[i] = test_driver_make(b->net, "veth", one, TEST_KEYS(peer[0]));
	c->far_end[i] = test_driver_make(b->net, "veth", other, TEST_KEYS(peer[1]));
	assert_int_equal(c->near_end[i]->ops->link(c->near_end[i], NULL), 0);
	assert_int_equal(c->far_end[i]->ops->link(c->far_end[i], NULL), 0);
	assert_int_equal(leat_netdev_open(c->near_end[i], NULL), 0);
	assert_int_equal(leat_netdev_open(c->far_end[i], NULL), 0);
	assert_int_equal(leat_netdev_set_rx_handler(c->far_end[i], test_record, &c->passed[i]), 0);
	assert_int_equal(leat_xdp_prog_create(b->net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(c->far_end[i], prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(set_entry(b, 0, i, c->near_end[i]->index, 0), 0);
}

/** Who reads gets what was sent, without a copy; who writes writes into its own. */
static void expect_far(struct cables *c, uint32_t i, bool writes, uint32_t n, uint32_t len)
{
	struct leat_netdev_stats stats;
	uint32_t p, off;

	leat_netdev_stats(c->far_end[i], &stats);
	assert_int_equal(stats.linear_copies, 0);
	if (!writes) {
		expect_whole(&c->passed[i], n, len, 0);
		assert_int_equal(stats.headroom_copies, 0);
		return;
	}
	assert_int_equal(c->passed[i].n, n);
	for (p = 0; p < n; p++)
		for (off = 0; off < len; off++)
			assert_int_equal(c->passed[i].packet[p].bytes[off], 0xff);
}

static void one_receiver_writes(uint32_t writer, uint32_t len, uint32_t piece)
{
	struct cables c = { .seen = 0 };
	struct bench b;
	uint32_t i;

	set_up(&b);
	for (i = 0; i < PORTS; i++)
		lay_cable(&b, &c, i, i == writer);
	test_port_of(b.in)->piece = piece;
	attach_broadcast(&b, 0, false);
	receive(&b, 20, len);
	assert_int_equal(c.seen, 20 * len * (PORTS - 1));
	for (i = 0; i < PORTS; i++) {
		expect_far(&c, i, i == writer, 20, len);
		leat_netdev_set_rx_handler(c.far_end[i], NULL, NULL);
		test_queue_clear(&c.passed[i]);
	}
	tear_down(&b);
}

static void a_receiver_that_writes_has_a_copy_of_its_own(void **state)
{
	static const uint32_t writers[] = { 0, 3, PORTS - 1 }; /* the last one gets the packet itself */
	uint32_t w, s;

	(void)state;
	for (s = 0; s < N(shapes); s++)
		for (w = 0; w < N(writers); w++)
			one_receiver_writes(writers[w], shapes[s].len, shapes[s].piece);
}

/* ---- the same on several threads ---- */

#define FAR_ENDS 4u
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ENOUGH 4000u
#else
#define ENOUGH 20000u
#endif

/** What a far end found, on the worker that polls it. */
struct far_end {
	bool writes;
	uint32_t got, wrong; /* atomic */
};

static uint32_t write_or_look(struct leat_xdp_buff *xdp, void *priv)
{
	struct far_end *far = priv;
	uint8_t first = xdp->data[0];
	uint32_t i, wrong = 0;

	for (i = 0; i < (uint32_t)(xdp->data_end - xdp->data); i++)
		wrong += xdp->data[i] != first;
	for (i = 0; xdp->frags && i < xdp->frags->n; i++) {
		const struct leat_frag *frag = &xdp->frags->frag[i];
		const uint8_t *last = leat_run_start(frag->run) + frag->off + frag->len - 1;

		wrong += *last != first;
	}
	if (far->writes)
		scribble(xdp, NULL);
	__atomic_fetch_add(&far->wrong, wrong, __ATOMIC_RELAXED);
	__atomic_fetch_add(&far->got, 1, __ATOMIC_RELAXED);
	return LEAT_XDP_DROP;
}

/** A source that never ends: packets of @length bytes, each full of one number. */
static int source_poll(struct leat_napi *napi, int budget)
{
	const uint32_t length = *(const uint32_t *)napi->dev->priv;
	struct leat_xdp_buff xdp;
	struct leat_rx rx;
	struct leat_run run;
	int i;

	leat_rx_begin(&rx, napi);
	for (i = 0; i < budget; i++) {
		run = leat_page_pool_alloc(napi->pool, LEAT_GRANULES(rx.headroom + length + rx.tailroom));
		if (leat_run_is_none(run))
			break;
		leat_xdp_buff_init(&xdp, run, rx.headroom, length);
		memset(xdp.data, i, length);
		leat_rx_packet(&rx, &xdp);
	}
	leat_rx_end(&rx);
	return budget;
}

static const struct leat_netdev_ops source_ops = {
	.open = test_port_open, .stop = test_port_stop, .poll = source_poll,
};

static struct leat_netdev *make_source(struct leat_net *net, uint32_t length)
{
	struct leat_netdev *dev = NULL;

	assert_int_equal(leat_netdev_create(net, "source", "source", &source_ops, 1, 1, sizeof(length), &dev), 0);
	memcpy(dev->priv, &length, sizeof(length));
	return dev;
}

static void lay_threaded(struct bench *b, struct far_end *far, uint32_t i)
{
	struct leat_xdp_prog_opts opts = {
		.size = sizeof(opts), .name = "far", .fn = write_or_look, .priv = far,
		.flags = LEAT_XDP_PROG_FRAGS | (far->writes ? 0 : LEAT_XDP_PROG_READ_ONLY),
	};
	struct leat_netdev *dev[2];
	struct leat_xdp_prog *prog = NULL;
	char name[2][8], peer[2][16];
	uint32_t k;

	for (k = 0; k < 2; k++) {
		snprintf(name[k], sizeof(name[k]), "%c%u", "nf"[k], i);
		snprintf(peer[k], sizeof(peer[k]), "peer=%c%u", "fn"[k], i);
		dev[k] = test_driver_make(b->net, "veth", name[k], TEST_KEYS(peer[k]));
	}
	assert_int_equal(leat_xdp_prog_create(b->net, &opts, &prog), 0);
	for (k = 0; k < 2; k++) {
		assert_int_equal(dev[k]->ops->link(dev[k], NULL), 0);
		assert_int_equal(leat_netdev_open(dev[k], NULL), 0);
	}
	assert_int_equal(leat_xdp_attach(dev[1], prog), 0);
	leat_xdp_prog_put(prog);
	assert_int_equal(set_entry(b, 0, i, dev[0]->index, 0), 0);
}

/** Far ends on three workers: two look at what they share while one writes into what must be its own. */
static void payload_that_threads_share_is_never_written(void **state)
{
	const struct leat_net_opts opts = { .size = sizeof(opts), .workers = 3, .arena_size = UINT64_C(1) << 30 };
	struct far_end far[FAR_ENDS] = { { .writes = false }, { .writes = true }, { .writes = false },
					 { .writes = true } };
	struct bench b = { .net = NULL };
	uint32_t i;

	(void)state;
	assert_int_equal(leat_net_create(&opts, &b.net), 0);
	begin_maps(&b);
	test_port_make(b.net, "idle"); /* queues are dealt out in turns: with it, the source is the first worker's */
	for (i = 0; i < FAR_ENDS; i++)
		lay_threaded(&b, &far[i], i);
	b.in = make_source(b.net, 1000);
	attach_broadcast(&b, 0, false);
	assert_int_equal(leat_netdev_open(b.in, NULL), 0);
	assert_ptr_equal(b.in->napi[0].worker, leat_net_worker(b.net, 0));
	leat_napi_schedule(&b.in->napi[0]);
	assert_int_equal(leat_net_start(b.net), 0);
	for (i = 0; i < FAR_ENDS; i++)
		while (__atomic_load_n(&far[i].got, __ATOMIC_RELAXED) < ENOUGH)
			sched_yield();
	leat_net_stop(b.net);
	for (i = 0; i < FAR_ENDS; i++)
		assert_int_equal(far[i].wrong, 0);
	tear_down(&b);
}

/* ---- programs of entries ---- */

#define TO_FIRST MOV64K(R2, 0), REDIRECT(0, LEAT_XDP_DROP)
static const struct bpf_insn to_first[] = { TO_FIRST };

/** Writes egress_ifindex, ingress_ifindex and rx_queue_index over the packet's bytes 4, 5 and 6; PASS. */
static const struct bpf_insn write_ports[] = {
	MOV64X(R7, R1), FIRST_BYTE, LDX(BPF_W, R2, R7, 20), STX(BPF_B, R6, 4, R2), LDX(BPF_W, R2, R7, 12),
	STX(BPF_B, R6, 5, R2), LDX(BPF_W, R2, R7, 16), STX(BPF_B, R6, 6, R2), MOV64K(R0, LEAT_XDP_PASS), EXIT,
};

static void an_entrys_program_changes_its_ports_packets_only(void **state)
{
	static const uint32_t flags[] = { 0, LEAT_IMAGE_PROG_FRAGS };
	struct bench b;
	uint32_t i, s, p;
	int prog;

	(void)state;
	for (s = 0; s < 2 * N(shapes); s++) {
		const uint32_t len = shapes[s / 2].len, at = s % PORTS;

		set_up(&b);
		fill(&b, 0);
		prog = add_prog(&b, write_ports, N(write_ports), LEAT_IMAGE_PROG_DEVMAP | flags[s % 2]);
		assert_int_equal(set_entry(&b, 0, 3 + 3 * at, b.out[at]->index, prog), 0);
		test_port_of(b.in)->piece = shapes[s / 2].piece;
		attach_broadcast(&b, 0, false);
		receive(&b, 20, len);
		for (i = 0; i < PORTS; i++)
			expect_whole(sent_to(b.out[i]), 20, len, i == at ? 7 : 0);
		for (p = 0; p < 20; p++) {
			assert_int_equal(sent_to(b.out[at])->packet[p].bytes[3], byte_at(p, 3));
			assert_int_equal(sent_to(b.out[at])->packet[p].bytes[4], b.out[at]->index);
			assert_int_equal(sent_to(b.out[at])->packet[p].bytes[5], b.in->index);
			assert_int_equal(sent_to(b.out[at])->packet[p].bytes[6], 0);
		}
		tear_down(&b);
	}
}

/** Writes over byte 700, whichever buffer it is in; PASS. */
static const struct bpf_insn write_far[] = {
	ST(BPF_B, R10, -1, 0xff), MOV64K(R2, 700), MOV64X(R3, R10), ADD64K(R3, -1), MOV64K(R4, 1),
	HELPER(BPF_FUNC_xdp_store_bytes), ADD64K(R0, LEAT_XDP_PASS), EXIT,
};

/** The bytes behind the head are shared: by the clones, and by the packet itself, which the last port gets. */
static void an_entrys_program_does_not_write_what_is_shared(void **state)
{
	static const uint32_t pieces[] = { 0, 100, 600 };
	uint32_t i, at, p;
	struct bench b;
	int prog;

	(void)state;
	for (p = 0; p < N(pieces) * PORTS; p++) {
		at = p % PORTS;
		set_up(&b);
		fill(&b, 0);
		prog = add_prog(&b, write_far, N(write_far), LEAT_IMAGE_PROG_DEVMAP | LEAT_IMAGE_PROG_FRAGS);
		assert_int_equal(set_entry(&b, 0, 3 + 3 * at, b.out[at]->index, prog), 0);
		test_port_of(b.in)->piece = pieces[p / PORTS];
		attach_broadcast(&b, 0, false);
		receive(&b, 20, 1000);
		for (i = 0; i < PORTS; i++)
			if (i != at)
				expect_whole(sent_to(b.out[i]), 20, 1000, 0);
		assert_int_equal(sent_to(b.out[at])->n, 20);
		for (i = 0; i < 20; i++)
			assert_int_equal(sent_to(b.out[at])->packet[i].bytes[700], 0xff);
		tear_down(&b);
	}
}

/** By the packet's first byte: verdict. */
static const struct bpf_insn say_first[] = { FIRST_BYTE, ALU64K(BPF_AND, R2, 7), MOV64X(R0, R2), EXIT };

static void an_entrys_program_says_pass_or_the_packet_ends(void **state)
{
	struct leat_netdev_stats stats;
	uint8_t bytes[60] = { 0 };
	struct bench b;
	uint32_t i;
	int prog;

	(void)state;
	set_up(&b);
	prog = add_prog(&b, say_first, N(say_first), LEAT_IMAGE_PROG_DEVMAP);
	assert_int_equal(set_entry(&b, 0, 0, b.out[0]->index, prog), 0);
	attach_insns(&b, to_first, N(to_first));
	for (i = 0; i < 80; i++) {
		bytes[0] = (uint8_t)i;
		test_port_put(b.in, bytes, sizeof(bytes));
	}
	test_net_run(b.net);
	assert_int_equal(sent_to(b.out[0])->n, 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(sent_to(b.out[0])->packet[i].bytes[0], 8 * i + LEAT_XDP_PASS);
	leat_netdev_stats(b.out[0], &stats);
	assert_int_equal(stats.tx_packets, 10);
	assert_int_equal(stats.drops[LEAT_DROP_EGRESS_DROP], 10);
	assert_int_equal(stats.drops[LEAT_DROP_EGRESS_ABORTED], 60); /* TX and REDIRECT are no verdicts here */
	tear_down(&b);
}

/** Takes 8 bytes off the front, or adds 16. */
#define MOVE(name, delta)                                                                                        \
	static const struct bpf_insn name[] = { MOV64K(R2, delta), HELPER(BPF_FUNC_xdp_adjust_head),             \
						ADD64K(R0, LEAT_XDP_PASS), EXIT }
MOVE(pull, 8);
MOVE(push, -16);

static void an_entrys_program_may_push_and_pop(void **state)
{
	struct bench b;
	uint32_t p;
	int pop_prog, push_prog;

	(void)state;
	set_up(&b);
	pop_prog = add_prog(&b, pull, N(pull), LEAT_IMAGE_PROG_DEVMAP | LEAT_IMAGE_PROG_FRAGS);
	push_prog = add_prog(&b, push, N(push), LEAT_IMAGE_PROG_DEVMAP | LEAT_IMAGE_PROG_FRAGS);
	assert_int_equal(set_entry(&b, 0, 0, b.out[0]->index, pop_prog), 0);
	assert_int_equal(set_entry(&b, 0, 1, b.out[1]->index, push_prog), 0);
	assert_int_equal(set_entry(&b, 0, 2, b.out[2]->index, 0), 0);
	assert_int_equal(set_entry(&b, 0, 3, b.out[3]->index, push_prog), 0);
	test_port_of(b.in)->piece = 300;
	attach_broadcast(&b, 0, false);
	receive(&b, 20, 1000);
	expect_whole(sent_to(b.out[2]), 20, 1000, 0);
	for (p = 0; p < 20; p++) {
		assert_int_equal(sent_to(b.out[0])->packet[p].len, 992);
		assert_int_equal(sent_to(b.out[0])->packet[p].bytes[0], byte_at(p, 8));
		assert_int_equal(sent_to(b.out[1])->packet[p].len, 1016);
		assert_int_equal(sent_to(b.out[1])->packet[p].bytes[16 + 999], byte_at(p, 999));
		assert_int_equal(sent_to(b.out[3])->packet[p].len, 1016);
		assert_int_equal(sent_to(b.out[3])->packet[p].bytes[16], byte_at(p, 0));
	}
	tear_down(&b);
}

/** Two entries of one port, with a program and without, in turns: each packet meets its own entry's, in order. */
static void a_port_may_have_entries_with_different_programs(void **state)
{
	static const struct bpf_insn by_first[] = { FIRST_BYTE, ALU64K(BPF_AND, R2, 1), REDIRECT(0, LEAT_XDP_DROP) };
	struct bench b;
	uint32_t p;
	int prog;

	(void)state;
	set_up(&b);
	prog = add_prog(&b, write_ports, N(write_ports), LEAT_IMAGE_PROG_DEVMAP);
	assert_int_equal(set_entry(&b, 0, 0, b.out[0]->index, 0), 0);
	assert_int_equal(set_entry(&b, 0, 1, b.out[0]->index, prog), 0);
	attach_insns(&b, by_first, N(by_first));
	receive(&b, 50, 60);
	expect_whole(sent_to(b.out[0]), 50, 60, 7);
	for (p = 0; p < 50; p++)
		assert_int_equal(sent_to(b.out[0])->packet[p].bytes[4],
				 byte_at(p, 0) & 1 ? b.out[0]->index : byte_at(p, 4));
	tear_down(&b);
}

static void an_entrys_program_without_memory_is_counted(void **state)
{
	struct bench b;
	int prog;

	(void)state;
	set_up(&b);
	prog = add_prog(&b, write_ports, N(write_ports), LEAT_IMAGE_PROG_DEVMAP);
	assert_int_equal(set_entry(&b, 0, 0, b.out[0]->index, prog), 0);
	test_port_of(b.in)->piece = 100;
	attach_insns(&b, to_first, N(to_first));
	receive(&b, 1, 250);
	leat_page_pool_fail_nth(b.in->napi[0].pool, 4); /* three buffers are there, the one for all is not */
	receive(&b, 1, 250);
	assert_int_equal(sent_to(b.out[0])->n, 1);
	assert_int_equal(test_drops(b.out[0], LEAT_DROP_NO_MEMORY), 1);
	tear_down(&b);
}

static void a_program_for_egress_is_attached_to_no_port(void **state)
{
	struct leat_xdp_prog *prog = NULL;
	struct bench b;
	int number;

	(void)state;
	set_up(&b);
	number = add_prog(&b, write_ports, N(write_ports), LEAT_IMAGE_PROG_DEVMAP) - 1;
	assert_int_equal(leat_xdp_prog_create_bpf(b.net, &b.t.prog[number], NULL, &prog), -EINVAL);
	tear_down(&b);
}

/* ---- entries and ports that go ---- */

static void without_an_entry_the_flags_say_what_becomes_of_it(void **state)
{
	static const struct bpf_insn miss[2][6] = {
		{ MOV64K(R2, 9), REDIRECT(0, LEAT_XDP_TX) },
		{ MOV64K(R2, 9), REDIRECT(1, LEAT_XDP_DROP) },
	};
	struct bench b;

	(void)state;
	set_up(&b);
	attach_insns(&b, miss[0], 6);
	receive(&b, 5, 60);
	expect_whole(sent_to(b.in), 5, 60, 0);
	attach_insns(&b, miss[1], 6);
	receive(&b, 5, 60);
	assert_int_equal(test_drops(b.in, LEAT_DROP_XDP_DROP), 5);
	tear_down(&b);
}

static void an_entry_goes_with_its_port(void **state)
{
	struct leat_netdev *other;
	struct bench b;
	uint32_t index, key;
	int map;

	(void)state;
	set_up(&b);
	fill(&b, 0);
	fill(&b, 1);
	index = b.out[4]->index;
	test_net_close_port(b.out[4], NULL);
	leat_netdev_destroy(b.out[4]);
	for (map = 0; map < 2; map++) {
		assert_true(has_entry(&b, map, 3 + 3 * 3));
		assert_false(has_entry(&b, map, 3 + 3 * 4));
		assert_int_equal(set_entry(&b, map, 3 + 3 * 4, index, 0), -EINVAL);
	}
	b.net->last_index = index - 1; /* the number goes to the next port, as it would after many others */
	other = test_port_make(b.net, "other");
	assert_int_equal(other->index, index);
	attach_broadcast(&b, 1, false);
	receive(&b, 5, 400);
	expect_whole(sent_to(other), 0, 0, 0);
	expect_whole(sent_to(b.out[5]), 5, 400, 0);
	for (key = 0; key < 25; key++) /* the place of the entry that went is free again: 32 in all */
		assert_int_equal(set_entry(&b, 1, 1000 + key, other->index, 0), 0);
	assert_int_equal(set_entry(&b, 1, 2000, other->index, 0), -E2BIG);
	tear_down(&b);
}

/* Ports that come and go under traffic. Each is made for one key, and every packet says the key that it was sent by. */
#define KEYS 4u
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LIVES 48u
#else
#define LIVES 120u
#endif

struct keyed {
	uint32_t key;         /* of packets for this port; control writes it before the port has an entry */
	uint32_t got, wrong;  /* atomic */
};

static int keyed_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct keyed *keyed = dev->priv;
	unsigned int i;

	(void)txq;
	for (i = 0; i < n; i++)
		if ((frames[i]->data[0] & (KEYS - 1)) != keyed->key)
			__atomic_fetch_add(&keyed->wrong, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&keyed->got, n, __ATOMIC_RELAXED);
	leat_xdp_return_frame_bulk(frames, n);
	return (int)n;
}

static const struct leat_netdev_ops keyed_ops = { .xdp_xmit = keyed_xmit };

static struct leat_netdev *make_keyed(struct bench *b, const char *name, uint32_t key)
{
	struct leat_netdev *dev = NULL;

	assert_int_equal(leat_netdev_create(b->net, "keyed", name, &keyed_ops, 0, 1, sizeof(struct keyed), &dev), 0);
	((struct keyed *)dev->priv)->key = key;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	return dev;
}

/** Waits until the port has packets, ends it, and says how many they were. */
static void live(struct bench *b, uint32_t life)
{
	const uint32_t key = life % KEYS, number = b->out[0]->index;
	struct leat_netdev *dev;
	struct keyed *keyed;
	int map = (int)(life / KEYS % 2);

	b->net->last_index = number + life % 3; /* one of three numbers, which another key's port has had */
	dev = make_keyed(b, "short", key);
	keyed = dev->priv;
	assert_int_equal(set_entry(b, map, key, dev->index, 0), 0);
	while (__atomic_load_n(&keyed->got, __ATOMIC_RELAXED) < 64)
		sched_yield();
	assert_int_equal(__atomic_load_n(&keyed->wrong, __ATOMIC_RELAXED), 0);
	if (life % 2)
		leat_netdev_close(dev);
	leat_netdev_destroy(dev);
	assert_false(has_entry(b, map, key));
}

static void a_port_that_goes_under_traffic_gets_nothing_of_others(void **state)
{
	static const struct bpf_insn by_key[] = {
		MOV64X(R7, R1), FIRST_BYTE, ALU64K(BPF_AND, R2, KEYS - 1), MOV64X(R8, R2), LDMAP(R1, 0),
		MOV64K(R3, LEAT_XDP_DROP), HELPER(BPF_FUNC_redirect_map), JMP64K(BPF_JEQ, R0, LEAT_XDP_REDIRECT, 5),
		MOV64X(R2, R8), LDMAP(R1, 1), MOV64K(R3, LEAT_XDP_DROP), HELPER(BPF_FUNC_redirect_map), EXIT,
	};
	struct bench b;
	uint32_t i;

	(void)state;
	set_up(&b);
	for (i = 0; i < PORTS; i++) {
		test_net_close_port(b.out[i], NULL);
		if (i)
			leat_netdev_destroy(b.out[i]);
	}
	b.in = make_source(b.net, 60);
	attach_insns(&b, by_key, N(by_key));
	assert_int_equal(leat_netdev_open(b.in, NULL), 0);
	leat_napi_schedule(&b.in->napi[0]);
	assert_int_equal(leat_net_start(b.net), 0);
	for (i = 0; i < LIVES; i++)
		live(&b, i);
	leat_net_stop(b.net);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broadcast_reaches_every_port_whole),
		cmocka_unit_test(a_broadcast_may_leave_out_where_it_came_from),
		cmocka_unit_test(a_broadcast_to_no_port_is_counted),
		cmocka_unit_test(a_port_that_cannot_send_costs_only_its_own_packets),
		cmocka_unit_test(without_memory_a_clone_is_counted_at_its_port),
		cmocka_unit_test(a_receiver_that_writes_has_a_copy_of_its_own),
		cmocka_unit_test(payload_that_threads_share_is_never_written),
		cmocka_unit_test(an_entrys_program_changes_its_ports_packets_only),
		cmocka_unit_test(an_entrys_program_does_not_write_what_is_shared),
		cmocka_unit_test(an_entrys_program_says_pass_or_the_packet_ends),
		cmocka_unit_test(an_entrys_program_may_push_and_pop),
		cmocka_unit_test(a_port_may_have_entries_with_different_programs),
		cmocka_unit_test(an_entrys_program_without_memory_is_counted),
		cmocka_unit_test(a_program_for_egress_is_attached_to_no_port),
		cmocka_unit_test(without_an_entry_the_flags_say_what_becomes_of_it),
		cmocka_unit_test(an_entry_goes_with_its_port),
		cmocka_unit_test(a_port_that_goes_under_traffic_gets_nothing_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
