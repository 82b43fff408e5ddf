/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bridge.c: a learning Ethernet bridge.
 *
 * Theory of operation: every worker that receives for a port of the bridge calls bridge_rx() with a batch. Pass one
 * learns each source and decides where each packet goes. Pass two visits every port that gets something and sends it
 * its packets, forwarded and flooded ones alike, in one call in the order of their arrival. A flooded packet is cloned
 * for all of its ports but the last. Drops count on the receive queue of the port where the packet came in; a frame too
 * long for its destination, on the transmit queue there.
 *
 * A port that cannot transmit (a capture that is read) is no place to send anything to: nothing is flooded to it and
 * no address is learned there. So both directions of a conversation, captured at one place, cross the bridge.
 *
 * Ports stand in 64 slots, published as one list with a grace period, so that a set of ports is one word. The control
 * thread changes the list; workers only read it.
 */
#include "base/clock.h"
#include "base/heap.h"
#include "base/opts.h"
#include "bridge/fdb.h"

#include <leat/bridge.h>

#include <errno.h>
#include <stdio.h>

#define BRIDGE_AGEING_NS (300 * LEAT_NSEC_PER_SEC)
#define BRIDGE_ENTRIES 4096u
#define BRIDGE_ENTRIES_MAX (1u << 20)

/* One port's place, what the receive handler is called with. */
struct bridge_port {
	struct leat_bridge *bridge;
	unsigned int slot;
};

/* The ports, published as one. */
struct port_list {
	struct leat_netdev *dev[LEAT_BRIDGE_PORTS_MAX]; /* NULL: the slot is free */
	uint64_t transmit;                              /* slots whose port can transmit */
};

/* Counters of one worker, on cache lines of its own. */
struct worker_stats {
	struct leat_bridge_stats stats;
} LEAT_CACHELINE_ALIGNED;

struct leat_bridge {
	struct leat_net *net;
	struct port_list *ports;   /* one of the next two (atomic); control writes, with a grace period */
	struct port_list list[2];
	struct worker_stats *stats; /* one per worker, who alone writes it */
	unsigned int n_workers;
	char name[32];
	struct bridge_port port[LEAT_BRIDGE_PORTS_MAX];
	struct leat_fdb fdb;
};

/* One batch in work, on the stack of the handler. */
struct batch {
	struct leat_bridge *bridge;
	const struct port_list *ports;
	struct leat_worker *worker;
	struct leat_bridge_stats *stats;
	struct leat_netdev *dev; /* where it came in */
	unsigned int slot;
	uint64_t now;
	unsigned int n;
	struct leat_skb **skbs;
	uint64_t to[LEAT_NAPI_BUDGET]; /* slots that a packet still has to go to; 0: none */
	unsigned int n_dead;
	struct leat_skb *dead[LEAT_NAPI_BUDGET];
};

/* ---- pass one: where to ---- */

static uint64_t mac_read(const uint8_t *p)
{
	return (uint64_t)p[0] << 40 | (uint64_t)p[1] << 32 | (uint64_t)p[2] << 24 | (uint64_t)p[3] << 16 |
	       (uint64_t)p[4] << 8 | p[5];
}

static bool mac_is_group(uint64_t mac)
{
	return mac >> 40 & 1;
}

/* 01:80:c2:00:00:00 to 0f: for the bridge itself, never forwarded (IEEE 802.1Q, table 8-1). */
static bool mac_is_reserved(uint64_t mac)
{
	return mac >> 4 == UINT64_C(0x0180c200000);
}

/* Counts a drop where the packet came in. */
static uint64_t batch_drop(struct batch *b, const struct leat_skb *skb, enum leat_drop_reason reason)
{
	leat_rxq_drop(&b->dev->napi[skb->queue], reason, 1);
	return 0;
}

static void batch_learn(struct batch *b, uint64_t source)
{
	switch (leat_fdb_learn(&b->bridge->fdb, source, b->slot, b->now)) {
	case LEAT_FDB_KNOWN:
		return;
	case LEAT_FDB_MOVED:
		leat_count(&b->stats->moved, 1);
		return;
	case LEAT_FDB_EVICTED:
		leat_count(&b->stats->evicted, 1);
		leat_count(&b->stats->learned, 1);
		return;
	case LEAT_FDB_LEARNED:
		leat_count(&b->stats->learned, 1);
		return;
	}
}

/* The slots that an unknown or group destination means. */
static uint64_t batch_flood(struct batch *b, const struct leat_skb *skb)
{
	uint64_t to = b->ports->transmit & ~(UINT64_C(1) << b->slot);

	if (!to)
		return batch_drop(b, skb, LEAT_DROP_BRIDGE_NO_PORT);
	leat_count(&b->stats->flooded, 1);
	return to;
}

/* The slots that a packet goes to; 0: none, and counted. */
static uint64_t batch_decide(struct batch *b, const struct leat_skb *skb)
{
	uint64_t dest, source;
	uint8_t mac[12];
	int slot;

	if (leat_skb_copy_bits(skb, 0, mac, sizeof(mac)))
		return batch_drop(b, skb, LEAT_DROP_RUNT);
	dest = mac_read(mac);
	source = mac_read(mac + 6);
	if (mac_is_group(source))
		return batch_drop(b, skb, LEAT_DROP_BRIDGE_BAD_SOURCE);
	if (b->ports->transmit >> b->slot & 1)
		batch_learn(b, source);
	if (mac_is_reserved(dest))
		return batch_drop(b, skb, LEAT_DROP_BRIDGE_RESERVED);
	slot = mac_is_group(dest) ? -1 : leat_fdb_lookup(&b->bridge->fdb, dest, b->now);
	if (slot < 0 || !b->ports->dev[slot])
		return batch_flood(b, skb);
	if ((unsigned int)slot == b->slot)
		return batch_drop(b, skb, LEAT_DROP_BRIDGE_SAME_PORT);
	leat_count(&b->stats->forwarded, 1);
	return UINT64_C(1) << slot;
}

/* ---- pass two: go ---- */

/* The packet for one of its slots: the packet itself for the last, else a clone; NULL when memory is out. */
static struct leat_skb *batch_take(struct batch *b, unsigned int i)
{
	struct leat_skb *skb = b->skbs[i];

	if (!b->to[i])
		return skb;
	skb = leat_skb_clone(leat_worker_objs(b->worker), skb);
	if (!skb)
		batch_drop(b, b->skbs[i], LEAT_DROP_NO_MEMORY);
	return skb;
}

/* Sends @slot everything that is for it. */
static void batch_send(struct batch *b, unsigned int slot)
{
	struct leat_netdev *dev = b->ports->dev[slot];
	struct leat_skb *out[LEAT_NAPI_BUDGET];
	uint64_t bit = UINT64_C(1) << slot;
	unsigned int i, n = 0;

	for (i = 0; i < b->n; i++) {
		if (!(b->to[i] & bit))
			continue;
		b->to[i] &= ~bit;
		out[n] = batch_take(b, i);
		n += out[n] != NULL;
	}
	if (n)
		leat_netdev_start_xmit(dev, b->worker, out, n);
}

static void batch_run(struct batch *b)
{
	uint64_t slots = 0, rest;
	unsigned int i;

	for (i = 0; i < b->n; i++) {
		b->to[i] = batch_decide(b, b->skbs[i]);
		slots |= b->to[i];
		if (!b->to[i])
			b->dead[b->n_dead++] = b->skbs[i];
	}
	for (rest = slots; rest; rest &= rest - 1)
		batch_send(b, (unsigned int)__builtin_ctzll(rest));
	if (b->n_dead)
		leat_skb_free_bulk(b->dead, b->n_dead);
}

static void bridge_rx(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
		      unsigned int n)
{
	const struct bridge_port *port = arg;
	struct leat_bridge *bridge = port->bridge;
	uint64_t now = leat_clock_ns();
	unsigned int done, part;

	for (done = 0; done < n; done += part) {
		struct batch b;

		part = n - done < LEAT_NAPI_BUDGET ? n - done : LEAT_NAPI_BUDGET;
		b.bridge = bridge;
		b.ports = __atomic_load_n(&bridge->ports, __ATOMIC_ACQUIRE); /* pairs with ports_publish() */
		b.worker = worker;
		b.stats = &bridge->stats[leat_worker_id(worker)].stats;
		b.dev = dev;
		b.slot = port->slot;
		b.now = now;
		b.n = part;
		b.skbs = skbs + done;
		b.n_dead = 0;
		batch_run(&b);
	}
}

/* ---- ports ---- */

/*
 * Puts @dev (NULL: nothing) into @slot and waits until no worker sees the list without the change. The two lists take
 * turns: the grace period leaves one of them unseen, so a change needs no memory and cannot fail.
 */
static void ports_publish(struct leat_bridge *bridge, unsigned int slot, struct leat_netdev *dev)
{
	struct port_list *old = bridge->ports, *list = &bridge->list[old == &bridge->list[0]];
	uint64_t bit = UINT64_C(1) << slot;

	*list = *old;
	list->dev[slot] = dev;
	list->transmit &= ~bit;
	if (dev && dev->ops->start_xmit)
		list->transmit |= bit;
	__atomic_store_n(&bridge->ports, list, __ATOMIC_RELEASE); /* pairs with bridge_rx() */
	leat_net_synchronize(bridge->net);
}

/* The slot of @dev (NULL: the first free one), or LEAT_BRIDGE_PORTS_MAX. */
static unsigned int ports_find(const struct leat_bridge *bridge, const struct leat_netdev *dev)
{
	unsigned int slot;

	for (slot = 0; slot < LEAT_BRIDGE_PORTS_MAX; slot++)
		if (bridge->ports->dev[slot] == dev)
			break;
	return slot;
}

int leat_bridge_add_port(struct leat_bridge *bridge, struct leat_netdev *dev)
{
	unsigned int slot = ports_find(bridge, NULL);
	char name[sizeof(bridge->name) + sizeof("bridge ")];
	int err;

	if (dev->rx_handler)
		return -EBUSY;
	if (slot == LEAT_BRIDGE_PORTS_MAX)
		return -ENOSPC;
	ports_publish(bridge, slot, dev);
	snprintf(name, sizeof(name), "bridge %s", bridge->name);
	err = leat_netdev_set_rx_handler_as(dev, bridge_rx, &bridge->port[slot], name);
	if (err)
		ports_publish(bridge, slot, NULL);
	return err;
}

int leat_bridge_del_port(struct leat_bridge *bridge, struct leat_netdev *dev)
{
	unsigned int slot = dev ? ports_find(bridge, dev) : LEAT_BRIDGE_PORTS_MAX;

	if (slot == LEAT_BRIDGE_PORTS_MAX)
		return -ENOENT;
	leat_netdev_set_rx_handler(dev, NULL, NULL); /* from here on nobody learns an address for the slot */
	ports_publish(bridge, slot, NULL);
	leat_fdb_flush(&bridge->fdb, slot);
	return 0;
}

/* ---- the bridge ---- */

int leat_bridge_create(struct leat_net *net, const struct leat_bridge_opts *opts, struct leat_bridge **bridge)
{
	struct leat_bridge_opts own;
	struct leat_bridge *br;
	unsigned int slot;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (own.entries > BRIDGE_ENTRIES_MAX)
		return -EINVAL;
	br = leat_heap_zalloc(sizeof(*br));
	if (!br)
		return -ENOMEM;
	br->net = net;
	br->n_workers = leat_net_workers(net);
	br->ports = &br->list[0];
	snprintf(br->name, sizeof(br->name), "%s", own.name ? own.name : "bridge");
	for (slot = 0; slot < LEAT_BRIDGE_PORTS_MAX; slot++)
		br->port[slot] = (struct bridge_port){ .bridge = br, .slot = slot };
	err = -ENOMEM;
	br->stats = leat_heap_zalloc(br->n_workers * sizeof(*br->stats));
	if (!br->stats)
		goto free_bridge;
	err = leat_fdb_init(&br->fdb, own.entries ? own.entries : BRIDGE_ENTRIES,
			    own.ageing_ns ? own.ageing_ns : BRIDGE_AGEING_NS);
	if (err)
		goto free_stats;
	*bridge = br;
	return 0;

free_stats:
	leat_heap_free(br->stats);
free_bridge:
	leat_heap_free(br);
	return err;
}

void leat_bridge_destroy(struct leat_bridge *bridge)
{
	unsigned int slot;

	if (!bridge)
		return;
	for (slot = 0; slot < LEAT_BRIDGE_PORTS_MAX; slot++)
		leat_bridge_del_port(bridge, bridge->ports->dev[slot]);
	leat_fdb_fini(&bridge->fdb);
	leat_heap_free(bridge->stats);
	leat_heap_free(bridge);
}

const char *leat_bridge_name(const struct leat_bridge *bridge)
{
	return bridge->name;
}

void leat_bridge_stats(const struct leat_bridge *bridge, struct leat_bridge_stats *stats)
{
	unsigned int i;

	*stats = (struct leat_bridge_stats){ 0 };
	for (i = 0; i < bridge->n_workers; i++) {
		const struct leat_bridge_stats *one = &bridge->stats[i].stats;

		stats->forwarded += __atomic_load_n(&one->forwarded, __ATOMIC_RELAXED);
		stats->flooded += __atomic_load_n(&one->flooded, __ATOMIC_RELAXED);
		stats->learned += __atomic_load_n(&one->learned, __ATOMIC_RELAXED);
		stats->moved += __atomic_load_n(&one->moved, __ATOMIC_RELAXED);
		stats->evicted += __atomic_load_n(&one->evicted, __ATOMIC_RELAXED);
	}
}

struct leat_netdev *leat_bridge_lookup(struct leat_bridge *bridge, const uint8_t mac[6])
{
	int slot = leat_fdb_lookup(&bridge->fdb, mac_read(mac), leat_clock_ns());

	return slot < 0 ? NULL : bridge->ports->dev[slot];
}
