/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broadcast.c: the bench `broadcast`: one packet to each port of a DEVMAP. `leat` clones it by reference; `copy` is the
 * kernel's way, a buffer for each port but the last and the whole packet copied into it, on the same pool and through
 * the same queues. An operation is one packet, with its allocation and all returns; points are ports and bytes. Ports
 * look at the first word of what they are sent.
 */
#include <errno.h>
#include <leat/driver.h>
#include <leat/xdp_prog.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "bpf/map/map.h"
#include "netdev/worker.h"
#include "xdp/redirect.h"

#define PORTS 8u
#define HEADER 64u /* bytes that are written of each packet */
#define MTU 9200u

struct casting {
	struct leat_net *net;
	struct leat_bpf_env *env;
	struct leat_netdev *in, *out[PORTS];
	const struct way *way; /* that is measured */
	uint64_t left;         /* packets to go */
	uint64_t sum;          /* of what ports saw */
};

/** One variant. */
struct way {
	struct casting *c;
	struct leat_bpf_map map; /* of the first @ports ports */
	uint32_t ports, size;
	void (*send)(const struct way *way, struct leat_rx *rx, struct leat_xdp_buff *xdp);
};

/* ---- ways ---- */

static void by_reference(const struct way *way, struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	const struct leat_redirect_to to = { .all = (struct leat_bpf_map *)(uintptr_t)&way->map };

	LEAT_ASSERT(leat_redirect_to_all(rx, &to, xdp));
}

static struct leat_run new_buffer(struct leat_rx *rx, uint32_t size)
{
	struct leat_run run = leat_page_pool_alloc(rx->napi->pool,
						   LEAT_GRANULES(LEAT_XDP_HEADROOM + size + LEAT_XDP_TAILROOM));

	LEAT_ASSERT(!leat_run_is_none(run));
	return run;
}

static void by_copy(const struct way *way, struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	struct leat_xdp_buff copy;
	uint32_t i;

	for (i = 0; i + 1 < way->ports; i++) {
		leat_xdp_buff_init(&copy, new_buffer(rx, way->size), LEAT_XDP_HEADROOM, way->size);
		memcpy(copy.data, xdp->data, way->size);
		copy.rxq = xdp->rxq;
		leat_redirect_enqueue(rx, way->c->out[i], NULL, leat_xdp_buff_to_frame(&copy));
	}
	leat_redirect_enqueue(rx, way->c->out[i], NULL, leat_xdp_buff_to_frame(xdp));
}

/* ---- ports ---- */

static struct casting *casting_of(struct leat_netdev *dev)
{
	return *(struct casting **)dev->priv;
}

static int poll_in(struct leat_napi *napi, int budget)
{
	struct casting *c = casting_of(napi->dev);
	struct leat_xdp_buff xdp;
	struct leat_rx rx;
	int n;

	leat_rx_begin(&rx, napi);
	for (n = 0; n < budget && c->left; n++, c->left--) {
		leat_xdp_buff_init(&xdp, new_buffer(&rx, c->way->size), LEAT_XDP_HEADROOM, c->way->size);
		xdp.rxq = &napi->rxq;
		xdp.worker = rx.worker;
		memset(xdp.data, n, HEADER);
		c->way->send(c->way, &rx, &xdp);
	}
	leat_rx_end(&rx);
	return n;
}

static int xmit_out(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct casting *c = casting_of(dev);
	unsigned int i;

	(void)txq;
	for (i = 0; i < n; i++)
		c->sum += frames[i]->data[0];
	leat_xdp_return_frame_bulk(frames, n);
	return (int)n;
}

static int open_in(struct leat_netdev *dev, struct leat_diag *diag)
{
	(void)diag;
	return leat_napi_pool_create(&dev->napi[0], 0);
}

static void stop_in(struct leat_netdev *dev)
{
	leat_napi_pool_destroy(&dev->napi[0]);
}

static const struct leat_netdev_ops in_ops = { .open = open_in, .stop = stop_in, .poll = poll_in };
static const struct leat_netdev_ops out_ops = { .xdp_xmit = xmit_out };

static int make_port(struct casting *c, const char *name, const struct leat_netdev_ops *ops, struct leat_netdev **dev)
{
	int err = leat_netdev_create(c->net, "bench", name, ops, ops->poll ? 1 : 0, 1, sizeof(c), dev);

	if (err)
		return err;
	memcpy((*dev)->priv, &c, sizeof(c));
	(*dev)->mtu = MTU;
	return leat_netdev_open(*dev, NULL);
}

static int begin(struct casting *c)
{
	const struct leat_net_opts opts = { .size = sizeof(opts), .workers = 1 };
	char name[8];
	uint32_t i;
	int err = leat_net_create(&opts, &c->net);

	if (!err)
		err = leat_xdp_bpf_env_create(c->net, NULL, &c->env);
	if (!err)
		err = make_port(c, "in", &in_ops, &c->in);
	for (i = 0; !err && i < PORTS; i++) {
		snprintf(name, sizeof(name), "out%u", i);
		err = make_port(c, name, &out_ops, &c->out[i]);
	}
	return err;
}

static void close_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_netdev_close(dev);
}

/** Returns @err, or an error when buffers are missing. */
static int end(struct casting *c, int err)
{
	if (c->net) {
		leat_net_for_each_port(c->net, close_port, NULL);
		if (!err && leat_net_outstanding(c->net))
			err = -EBUSY;
	}
	leat_bpf_env_destroy(c->env);
	leat_net_destroy(c->net);
	return err;
}

/* ---- measuring ---- */

static void cast(void *arg, uint64_t n)
{
	const struct way *way = arg;
	struct casting *c = way->c;

	c->way = way;
	c->left = n;
	while (c->left) {
		leat_napi_schedule(&c->in->napi[0]);
		leat_worker_poll(leat_net_worker(c->net, 0));
	}
}

static int fill(struct way *way)
{
	uint32_t i;
	int err;

	way->map = (struct leat_bpf_map){ .type = leat_bpf_map_type_find(BPF_MAP_TYPE_DEVMAP), .env = way->c->env,
					  .key_size = 4, .value_size = 4, .max_entries = PORTS, .name = "ports" };
	err = leat_bpf_map_create(&way->map, NULL);
	for (i = 0; !err && i < way->ports; i++)
		err = leat_bpf_map_update(&way->map, &i, &way->c->out[i]->index, BPF_ANY);
	return err;
}

static int measure(struct bench_run *run, struct casting *c, uint32_t ports, uint32_t size)
{
	struct way ways[] = { { .c = c, .ports = ports, .size = size, .send = by_reference },
			      { .c = c, .ports = ports, .size = size, .send = by_copy } };
	char name[3][48];
	const struct bench_variant variants[] = { { .name = name[0], .ops = cast, .arg = &ways[0] },
						  { .name = name[1], .ops = cast, .arg = &ways[1] } };
	int err = fill(&ways[0]);

	snprintf(name[0], sizeof(name[0]), "leat@%u/size=%u", ports, size);
	snprintf(name[1], sizeof(name[1]), "copy@%u/size=%u", ports, size);
	snprintf(name[2], sizeof(name[2]), "leat/copy@%u/size=%u", ports, size);
	if (!err) {
		bench_measure(run, variants, 2);
		bench_ratio(run, name[2], name[0], name[1], BENCH_MARK_NONE);
	}
	leat_bpf_map_destroy(&ways[0].map);
	return err;
}

static int run_broadcast(struct bench_run *run)
{
	static const uint32_t ports[] = { 1, 2, 4, 8 }, sizes[] = { 64, 1500, 9000 };
	struct casting c = { .left = 0 };
	uint32_t p, s;
	int err = begin(&c);

	for (s = 0; s < 3; s++)
		for (p = 0; !err && p < 4; p++)
			err = measure(run, &c, ports[p], sizes[s]);
	err = end(&c, err);
	if (err)
		bench_note(run, "%s", strerror(-err));
	return err;
}

const struct bench bench_broadcast = {
	"broadcast", "one packet to 1..8 ports: by reference, and copied as the kernel does", "ns/packet", BENCH_LOWER,
	run_broadcast,
};
