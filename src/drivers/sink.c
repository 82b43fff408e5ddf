/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sink.c: a port where packets come to rest. It takes everything at once and gives the memory back in bulk; the
 * transmit path counts what it took. It has no receive queue, and a transmit queue per worker, so that workers never
 * wait for each other here. The transmit functions run on workers, under the lock of their queue.
 */
#include "drivers/drivers.h"

struct sink_opts {
	uint32_t mtu;
};

static const struct leat_param sink_params[] = {
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct sink_opts, mtu), .min = LEAT_MTU_MIN,
	  .max = LEAT_MTU_MAX, .default_text = "9216", .help = "longest packet, bytes after the Ethernet header" },
	{ .name = NULL },
};

int leat_sink_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	(void)dev;
	(void)txq;
	leat_xdp_return_frame_bulk(frames, n);
	return (int)n;
}

int leat_sink_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n)
{
	(void)dev;
	(void)txq;
	leat_skb_free_bulk(skbs, n);
	return (int)n;
}

static const struct leat_netdev_ops sink_ops = {
	.xdp_xmit = leat_sink_xdp_xmit,
	.start_xmit = leat_sink_start_xmit,
};

static int sink_create(struct leat_net *net, const char *name, const void *arg, struct leat_diag *diag,
		       struct leat_netdev **dev)
{
	const struct sink_opts *opts = arg;
	int err = leat_driver_netdev_create(net, "sink", name, &sink_ops, 0, leat_net_workers(net), 0, diag, dev);

	if (!err)
		(*dev)->mtu = opts->mtu;
	return err;
}

const struct leat_driver leat_sink_driver = {
	.type = "sink",
	.help = "takes every packet and counts it",
	.params = sink_params,
	.opts_size = sizeof(struct sink_opts),
	.create = sink_create,
};
