/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_port.h: for unit tests: a datapath polled on the test's own thread, a port whose packets the test puts in and
 * whose transmitted packets it reads, and ports of real drivers made from key-value pairs. Include after <cmocka.h>.
 */
#ifndef LEAT_XDP_TEST_PORT_H
#define LEAT_XDP_TEST_PORT_H

#include <leat/driver.h>
#include <leat/xdp_prog.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Packets, first come first. */
struct test_queue {
	unsigned int n, done; /* done: those before it were taken */
	struct test_packet {
		uint32_t len;
		struct leat_pkt_meta meta;
		uint8_t *bytes;
	} *packet;
};

static inline struct test_packet *test_queue_add(struct test_queue *q, const void *bytes, uint32_t len)
{
	struct test_packet *packet;

	if (!(q->n & (q->n - 1))) /* full: 0, 1, 2, 4, 8... */
		q->packet = realloc(q->packet, (q->n ? 2 * q->n : 1) * sizeof(*q->packet));
	assert_non_null(q->packet);
	packet = &q->packet[q->n++];
	memset(packet, 0, sizeof(*packet));
	packet->len = len;
	packet->bytes = malloc(len ? len : 1);
	assert_non_null(packet->bytes);
	if (bytes)
		memcpy(packet->bytes, bytes, len);
	else
		memset(packet->bytes, 0, len);
	return packet;
}

static inline void test_queue_clear(struct test_queue *q)
{
	unsigned int i;

	for (i = 0; i < q->n; i++)
		free(q->packet[i].bytes);
	free(q->packet);
	memset(q, 0, sizeof(*q));
}

/** Copies a transmitted or passed packet into @q. */
static inline void test_queue_skb(struct test_queue *q, const struct leat_skb *skb)
{
	struct test_packet *packet = test_queue_add(q, NULL, skb->len);

	assert_int_equal(leat_skb_copy_bits(skb, 0, packet->bytes, skb->len), 0);
	packet->meta = skb->meta;
}

/** The same for a frame. */
static inline void test_queue_frame(struct test_queue *q, const struct leat_xdp_frame *frame)
{
	struct test_packet *packet = test_queue_add(q, NULL, leat_xdp_frame_len(frame));
	uint32_t i, off = frame->len;

	memcpy(packet->bytes, frame->data, frame->len);
	for (i = 0; frame->frags && i < frame->frags->n; i++) {
		const struct leat_frag *frag = &frame->frags->frag[i];

		memcpy(packet->bytes + off, leat_run_start(frag->run) + frag->off, frag->len);
		off += frag->len;
	}
	packet->meta = frame->meta;
}

/** Receive handler: copies the packets into the test_queue that is its argument. */
static inline void test_record(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
			       unsigned int n)
{
	unsigned int i;

	(void)worker;
	(void)dev;
	for (i = 0; i < n; i++)
		test_queue_skb(arg, skbs[i]);
	leat_skb_free_bulk(skbs, n);
}

/** Receive handler: sends everything to the port that is its argument. */
static inline void test_forward(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
				unsigned int n)
{
	(void)dev;
	leat_netdev_start_xmit(arg, worker, skbs, n);
}

/* ---- a port of the test's own ---- */

struct test_port {
	struct test_queue in;  /* what the port will receive */
	struct test_queue out; /* what was sent to it */
	unsigned int calls;    /* of its transmit functions */
	unsigned int piece;    /* received packets have their bytes after this many in fragments of as many; 0: linear */
};

static inline struct test_port *test_port_of(struct leat_netdev *dev)
{
	return dev->priv;
}

/* Moves what is after the first @piece bytes into fragments. False when memory is out. */
static inline bool test_port_split(struct leat_napi *napi, struct leat_xdp_buff *xdp, const struct test_packet *packet,
				   uint32_t piece)
{
	uint32_t off, part;

	xdp->frags = leat_xdp_frags_alloc(leat_worker_objs(napi->worker));
	if (!xdp->frags)
		return false;
	for (off = piece; off < packet->len; off += part) {
		struct leat_run run = leat_page_pool_alloc(napi->pool, LEAT_GRANULES(piece + 3));

		if (leat_run_is_none(run))
			return false;
		part = packet->len - off < piece ? packet->len - off : piece;
		memcpy(leat_run_start(run) + 3, packet->bytes + off, part);
		assert_int_equal(leat_xdp_buff_add_frag(xdp, run, 3, part), 0);
	}
	return true;
}

static inline bool test_port_receive(struct leat_napi *napi, struct leat_rx *rx, const struct test_packet *packet,
				     uint32_t piece)
{
	uint32_t head = piece && piece < packet->len ? piece : packet->len;
	struct leat_run run = leat_page_pool_alloc(napi->pool, LEAT_GRANULES(rx->headroom + head + rx->tailroom + 1));
	struct leat_xdp_buff xdp;

	if (leat_run_is_none(run))
		return false;
	leat_xdp_buff_init(&xdp, run, rx->headroom, head);
	memcpy(xdp.data, packet->bytes, head);
	xdp.meta = packet->meta;
	if (head < packet->len && !test_port_split(napi, &xdp, packet, piece)) {
		leat_xdp_return_buff(&xdp);
		return false;
	}
	leat_rx_packet(rx, &xdp);
	return true;
}

static inline int test_port_poll(struct leat_napi *napi, int budget)
{
	struct test_port *port = test_port_of(napi->dev);
	struct leat_rx rx;
	int n = 0;

	leat_rx_begin(&rx, napi);
	while (n < budget && port->in.done < port->in.n &&
	       test_port_receive(napi, &rx, &port->in.packet[port->in.done], port->piece)) {
		port->in.done++;
		n++;
	}
	leat_rx_end(&rx);
	napi->starved = n < budget && port->in.done < port->in.n;
	return n;
}

static inline int test_port_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs,
				       unsigned int n)
{
	struct test_port *port = test_port_of(dev);
	unsigned int i;

	(void)txq;
	port->calls++;
	for (i = 0; i < n; i++)
		test_queue_skb(&port->out, skbs[i]);
	leat_skb_free_bulk(skbs, n);
	return (int)n;
}

static inline int test_port_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames,
				     unsigned int n)
{
	struct test_port *port = test_port_of(dev);
	unsigned int i;

	(void)txq;
	port->calls++;
	for (i = 0; i < n; i++)
		test_queue_frame(&port->out, frames[i]);
	leat_xdp_return_frame_bulk(frames, n);
	return (int)n;
}

static inline int test_port_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	(void)diag;
	return leat_napi_pool_create(&dev->napi[0], 0);
}

static inline void test_port_stop(struct leat_netdev *dev)
{
	leat_napi_pool_destroy(&dev->napi[0]);
}

static inline void test_port_destroy(struct leat_netdev *dev)
{
	test_queue_clear(&test_port_of(dev)->in);
	test_queue_clear(&test_port_of(dev)->out);
}

static const struct leat_netdev_ops test_port_ops = {
	.open = test_port_open,
	.stop = test_port_stop,
	.poll = test_port_poll,
	.xdp_xmit = test_port_xdp_xmit,
	.start_xmit = test_port_start_xmit,
	.destroy = test_port_destroy,
};

/** Makes and opens a test port. */
static inline struct leat_netdev *test_port_make(struct leat_net *net, const char *name)
{
	struct leat_netdev *dev = NULL;

	assert_int_equal(leat_netdev_create(net, "test", name, &test_port_ops, 1, 1, sizeof(struct test_port), &dev),
			 0);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	return dev;
}

/** Lets the port receive a packet. */
static inline void test_port_put(struct leat_netdev *dev, const void *bytes, uint32_t len)
{
	test_queue_add(&test_port_of(dev)->in, bytes, len);
	leat_napi_schedule(&dev->napi[0]);
}

/* ---- ports of real drivers ---- */

/** The options of @driver from "key=value" texts, NULL at the end. */
static inline void *test_driver_opts(const struct leat_driver *driver, const char *const *keys)
{
	void *opts = calloc(1, driver->opts_size);

	assert_non_null(opts);
	assert_int_equal(leat_param_defaults(driver->params, opts), 0);
	for (; keys && *keys; keys++) {
		const char *value = strchr(*keys, '=');
		char key[32];

		snprintf(key, sizeof(key), "%.*s", (int)(value - *keys), *keys);
		assert_non_null(leat_param_find(driver->params, key));
		assert_int_equal(leat_param_set(leat_param_find(driver->params, key), opts, value + 1, NULL), 0);
	}
	return opts;
}

static inline void test_driver_opts_free(const struct leat_driver *driver, void *opts)
{
	leat_param_free(driver->params, opts);
	free(opts);
}

/** Makes a port of @type. Returns what the driver's create returns. */
static inline int test_driver_create(struct leat_net *net, const char *type, const char *name,
				     const char *const *keys, struct leat_diag *diag, struct leat_netdev **dev)
{
	const struct leat_driver *driver = leat_driver_find(type);
	void *opts;
	int err;

	assert_non_null(driver);
	opts = test_driver_opts(driver, keys);
	err = driver->create(net, name, opts, diag, dev);
	test_driver_opts_free(driver, opts);
	return err;
}

/** Makes a port that must come about. */
static inline struct leat_netdev *test_driver_make(struct leat_net *net, const char *type, const char *name,
						   const char *const *keys)
{
	struct leat_netdev *dev = NULL;

	assert_int_equal(test_driver_create(net, type, name, keys, NULL, &dev), 0);
	return dev;
}
#define TEST_KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- the datapath ---- */

/** The last messages of a log, one per line. */
struct test_log {
	struct leat_log log;
	char text[4096];
};

static inline void test_log_take(void *arg, enum leat_log_level level, const char *message)
{
	struct test_log *log = arg;
	size_t used = strlen(log->text);

	(void)level;
	snprintf(log->text + used, sizeof(log->text) - used, "%s\n", message);
}

/** Makes a datapath; @log may be NULL. */
static inline struct leat_net *test_net_make(struct test_log *log)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_net *net = NULL;

	if (log) {
		memset(log, 0, sizeof(*log));
		log->log = (struct leat_log){ .fn = test_log_take, .arg = log, .level = LEAT_LOG_DEBUG };
		opts.log = &log->log;
	}
	assert_int_equal(leat_net_create(&opts, &net), 0);
	return net;
}

/** Polls until nothing has happened three times in a row. */
static inline void test_net_run(struct leat_net *net)
{
	int idle = 0, rounds = 0;

	while (idle < 3) {
		idle = leat_worker_poll(leat_net_worker(net, 0)) ? 0 : idle + 1;
		assert_true(++rounds < 1000000);
	}
}

static inline void test_net_close_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_netdev_close(dev);
	leat_netdev_set_rx_handler(dev, NULL, NULL);
}

/** Closes every port, checks that every buffer has come back, and frees the datapath. */
static inline void test_net_end(struct leat_net *net)
{
	leat_net_for_each_port(net, test_net_close_port, NULL);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_net_destroy(net);
}

/** Drops of @dev for @reason, both sides. */
static inline uint64_t test_drops(const struct leat_netdev *dev, enum leat_drop_reason reason)
{
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	return stats.drops[reason];
}

/** All drops of @dev. */
static inline uint64_t test_all_drops(const struct leat_netdev *dev)
{
	struct leat_netdev_stats stats;
	uint64_t sum = 0;
	unsigned int i;

	leat_netdev_stats(dev, &stats);
	for (i = 0; i < LEAT_DROP_MAX; i++)
		sum += stats.drops[i];
	return sum;
}

/** A program made of a built-in without options, attached to @dev. */
static inline void test_attach(struct leat_netdev *dev, const char *builtin)
{
	struct leat_xdp_prog_opts opts = {
		.size = sizeof(opts), .name = builtin, .fn = leat_xdp_builtin_find(builtin)->fn,
	};
	struct leat_xdp_prog *prog = NULL;

	assert_int_equal(leat_xdp_prog_create(dev->net, &opts, &prog), 0);
	assert_int_equal(leat_xdp_attach(dev, prog), 0);
	leat_xdp_prog_put(prog);
}

static inline uint32_t test_state(const struct leat_netdev *dev)
{
	return __atomic_load_n(&dev->state, __ATOMIC_ACQUIRE);
}

#endif
