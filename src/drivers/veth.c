/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * veth.c: two ports of one datapath, each of which receives what the other transmits.
 *
 * Each receive queue has a ring that the peer's transmit queue of the same number fills, under that queue's lock, and
 * that the worker of the receive queue empties. Entries are frames or, with bit 0 set, skbs: no conversion is made
 * before somebody needs it. A full ring accepts no more; the caller drops and counts.
 *
 * Configured as two ports that name each other; link() joins both ends, and so does the first open of an end that is
 * not joined yet.
 */
#include <errno.h>
#include <leat/driver.h>
#include <stdio.h>
#include <string.h>

#include "base/memory_why.h"
#include "drivers/drivers.h"
#include "netdev/ptr_ring.h"

#define RING_DEFAULT "256"
#define IS_SKB ((uintptr_t)1)

struct veth_opts {
	char *peer;
	uint32_t queues;
	uint32_t mtu;
	uint32_t ring;
	uint8_t mac[6];
};

static const struct leat_param veth_params[] = {
	{ .name = "peer", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED | LEAT_PARAM_PORT,
	  .offset = offsetof(struct veth_opts, peer), .min = 1, .max = LEAT_PORT_NAME_MAX - 1,
	  .help = "the port at the other end, which names this one" },
	{ .name = "queues", .kind = LEAT_PARAM_U32, .offset = offsetof(struct veth_opts, queues), .min = 1,
	  .max = LEAT_QUEUES_MAX, .default_text = "1", .help = "receive and transmit queues; the same at both ends" },
	{ .name = "ring", .kind = LEAT_PARAM_U32, .offset = offsetof(struct veth_opts, ring), .min = 64, .max = 32768,
	  .default_text = RING_DEFAULT, .help = "packets that a receive queue holds; rounded up to a power of two" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct veth_opts, mtu), .min = LEAT_MTU_MIN,
	  .max = LEAT_MTU_MAX, .default_text = "1500", .help = "bytes after the Ethernet header" },
	{ .name = "mac", .kind = LEAT_PARAM_MAC, .flags = LEAT_PARAM_STATION, .offset = offsetof(struct veth_opts, mac),
	  .help = "the port's own address" },
	{ .name = NULL },
};

struct veth {
	struct leat_netdev *peer; /* NULL until linked */
	char peer_name[LEAT_PORT_NAME_MAX];
	uint32_t ring_size;
	uint16_t holder; /* the rings, in reports of packet memory */
	struct leat_ptr_ring *ring[LEAT_QUEUES_MAX]; /* what this port receives, by receive queue */
};

/* ---- entries ---- */

static struct leat_skb *entry_skb(uintptr_t entry)
{
	return (struct leat_skb *)(entry & ~IS_SKB);
}

/** Bytes of memory that an entry keeps. */
static inline uint32_t entry_truesize(uintptr_t entry)
{
	if (entry & IS_SKB)
		return entry_skb(entry)->truesize;
	return leat_xdp_frame_truesize((struct leat_xdp_frame *)entry);
}

static inline void entry_hold(uintptr_t entry, uint16_t holder)
{
	if (entry & IS_SKB)
		leat_skb_hold(entry_skb(entry), holder);
	else
		leat_xdp_frame_hold((struct leat_xdp_frame *)entry, holder);
}

/* ---- receive ---- */

static int veth_poll(struct leat_napi *napi, int budget)
{
	struct veth *veth = napi->dev->priv;
	uintptr_t entries[LEAT_NAPI_BUDGET];
	uint64_t bytes = 0;
	struct leat_rx rx;
	uint32_t i, n;

	n = leat_ptr_ring_take(veth->ring[napi->rxq.queue], entries, (uint32_t)budget);
	if (!n)
		return 0;
	leat_rx_begin(&rx, napi);
	for (i = 0; i < n; i++) {
		bytes += entry_truesize(entries[i]);
		if (entries[i] & IS_SKB)
			leat_rx_skb(&rx, entry_skb(entries[i]));
		else
			leat_rx_frame(&rx, (struct leat_xdp_frame *)entries[i]);
	}
	leat_rx_end(&rx);
	leat_flow_out(LEAT_PLACE_RING, bytes >> LEAT_GRANULE_SHIFT);
	return (int)n;
}

/* ---- transmit ---- */

/** Queues @n entries, tagged, at the peer, and has its queue polled. */
static int veth_send(struct leat_netdev *dev, unsigned int txq, void *const *entries, unsigned int n, uintptr_t tag)
{
	struct veth *veth = dev->priv, *to = veth->peer->priv;
	struct leat_ptr_ring *ring;
	uint64_t bytes = 0;
	uint32_t i;

	/* pairs with leat_netdev_open(): the ring is there */
	if (!(__atomic_load_n(&veth->peer->state, __ATOMIC_ACQUIRE) & LEAT_NETDEV_UP))
		return -ENETDOWN;
	ring = to->ring[txq];
	n = leat_ptr_ring_room(ring, n);
	for (i = 0; i < n; i++) {
		uintptr_t entry = (uintptr_t)entries[i] | tag;

		bytes += entry_truesize(entry);
		entry_hold(entry, to->holder);
		leat_ptr_ring_write(ring, i, entry);
	}
	leat_flow_in(LEAT_PLACE_RING, bytes >> LEAT_GRANULE_SHIFT); /* before somebody can count it out */
	leat_ptr_ring_publish(ring, n);
	leat_napi_schedule(&veth->peer->napi[txq]);
	return (int)n;
}

static int veth_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	return veth_send(dev, txq, (void *const *)frames, n, 0);
}

static int veth_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n)
{
	return veth_send(dev, txq, (void *const *)skbs, n, IS_SKB);
}

/* ---- life ---- */

static int veth_link(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct veth *veth = dev->priv, *other;
	struct leat_netdev *peer = leat_netdev_find(dev->net, veth->peer_name);

	if (veth->peer) /* by the other end, which may be in use */
		return 0;
	if (!peer)
		leat_diag_add(diag, "peer: there is no port '%s'", veth->peer_name);
	else if (peer == dev)
		leat_diag_add(diag, "peer: a port cannot be its own peer");
	else if (peer->ops != dev->ops)
		leat_diag_add(diag, "peer: port '%s' is a %s port, not veth", peer->name, peer->driver);
	else if (other = peer->priv, strcmp(other->peer_name, dev->name) != 0)
		leat_diag_add(diag, "peer: port '%s' names '%s' as its peer, not '%s'", peer->name, other->peer_name,
			      dev->name);
	else if (peer->n_rxq != dev->n_rxq)
		leat_diag_add(diag, "queues: %u here, but %u at the peer '%s'", dev->n_rxq, peer->n_rxq, peer->name);
	else {
		veth->peer = peer;
		other->peer = dev; /* whichever end goes first, the other one forgets it */
		return 0;
	}
	return -EINVAL;
}

/** Drops what is still in a ring. Nobody fills or empties it any more. */
static void drop_queued(struct leat_napi *napi, struct leat_ptr_ring *ring)
{
	uintptr_t entry;

	while (leat_ptr_ring_take(ring, &entry, 1)) {
		leat_flow_out(LEAT_PLACE_RING, entry_truesize(entry) >> LEAT_GRANULE_SHIFT);
		if (entry & IS_SKB)
			leat_skb_free(entry_skb(entry));
		else
			leat_xdp_return_frame((struct leat_xdp_frame *)entry);
		leat_rxq_drop(napi, LEAT_DROP_STOPPED, 1);
	}
}

static void veth_stop(struct leat_netdev *dev)
{
	struct veth *veth = dev->priv;
	unsigned int i;

	for (i = 0; i < dev->n_rxq; i++) {
		if (veth->ring[i])
			drop_queued(&dev->napi[i], veth->ring[i]);
		leat_ptr_ring_destroy(veth->ring[i]);
		veth->ring[i] = NULL;
		leat_napi_pool_destroy(&dev->napi[i]);
	}
}

static int veth_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct veth *veth = dev->priv;
	unsigned int i;
	int err = veth->peer ? 0 : veth_link(dev, diag);
	char name[LEAT_HOLDER_NAME_MAX];

	if (err)
		return err;
	snprintf(name, sizeof(name), "port %s ring", dev->name);
	veth->holder = leat_holder_register(name);
	for (i = 0; !err && i < dev->n_rxq; i++) {
		err = leat_napi_pool_create(&dev->napi[i], 0);
		if (err)
			break;
		veth->ring[i] = leat_ptr_ring_create(veth->ring_size);
		err = veth->ring[i] ? 0 : -ENOMEM;
	}
	if (err) {
		leat_diag_add(diag, "cannot make its queues: %s", leat_memory_why(err));
		veth_stop(dev);
	}
	return err;
}

/** The other end must not look for us any more. */
static void veth_destroy(struct leat_netdev *dev)
{
	struct veth *veth = dev->priv;

	if (veth->peer) {
		leat_netdev_close(veth->peer);
		((struct veth *)veth->peer->priv)->peer = NULL;
	}
}

static const struct leat_netdev_ops veth_ops = {
	.link = veth_link,
	.open = veth_open,
	.stop = veth_stop,
	.poll = veth_poll,
	.xdp_xmit = veth_xdp_xmit,
	.start_xmit = veth_start_xmit,
	.destroy = veth_destroy,
};

static int veth_create(struct leat_net *net, const char *name, const void *options, struct leat_diag *diag,
		       struct leat_netdev **out)
{
	const struct veth_opts *opts = options;
	struct leat_netdev *dev;
	struct veth *veth;
	int err = leat_driver_netdev_create(net, leat_veth_driver.type, name, &veth_ops, opts->queues, opts->queues,
					    sizeof(struct veth), diag, &dev);

	if (err)
		return err;
	veth = dev->priv;
	strncpy(veth->peer_name, opts->peer, sizeof(veth->peer_name) - 1);
	for (veth->ring_size = 64; veth->ring_size < opts->ring; veth->ring_size *= 2)
		;
	dev->mtu = opts->mtu;
	memcpy(dev->mac, opts->mac, sizeof(dev->mac));
	*out = dev;
	return 0;
}

const struct leat_driver leat_veth_driver = {
	.type = "veth",
	.help = "one end of a pair within the datapath",
	.params = veth_params,
	.opts_size = sizeof(struct veth_opts),
	.create = veth_create,
};
