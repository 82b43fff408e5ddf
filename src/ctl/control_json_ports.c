/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_json_ports.c: replies of the control socket about ports, drops, packet memory, and the whole. Control thread;
 * counters are read while workers write them.
 */
#include <leat/version.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/control_json.h"
#include "netdev/worker.h"
#include "xdp/prog.h"

static uint64_t read_count(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static uint64_t sum_drops(const uint64_t *drops)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < LEAT_DROP_MAX; i++)
		sum += read_count(&drops[i]);
	return sum;
}

/* ---- ports ---- */

static const char *state_of(const struct leat_netdev *dev)
{
	uint32_t state = __atomic_load_n(&dev->state, __ATOMIC_RELAXED);

	if (state & LEAT_NETDEV_FAILED)
		return "failed";
	if (state & LEAT_NETDEV_FINISHED)
		return "finished";
	return state & LEAT_NETDEV_UP ? "up" : "down";
}

/** Counters of a port as members. */
static void write_counts(struct leat_json_out *j, const struct leat_netdev_stats *stats)
{
	leat_json_number(j, "rx_packets", stats->rx_packets);
	leat_json_number(j, "rx_bytes", stats->rx_bytes);
	leat_json_number(j, "tx_packets", stats->tx_packets);
	leat_json_number(j, "tx_bytes", stats->tx_bytes);
	leat_json_number(j, "drops", sum_drops(stats->drops));
	leat_json_number(j, "headroom_copies", stats->headroom_copies);
	leat_json_number(j, "linear_copies", stats->linear_copies);
}

static void write_rx_queue(struct leat_json_out *j, const struct leat_napi *napi, unsigned int queue)
{
	leat_json_open(j, NULL, '{');
	leat_json_number(j, "queue", queue);
	if (napi->worker)
		leat_json_number(j, "worker", leat_worker_id(napi->worker));
	leat_json_number(j, "packets", read_count(&napi->stats.packets));
	leat_json_number(j, "bytes", read_count(&napi->stats.bytes));
	leat_json_number(j, "polls", read_count(&napi->stats.polls));
	leat_json_number(j, "drops", sum_drops(napi->stats.drops));
	leat_json_close(j, '}');
}

static void write_queues(struct leat_json_out *j, const struct leat_netdev *dev)
{
	unsigned int i;

	leat_json_open(j, "rx_queues", '[');
	for (i = 0; i < dev->n_rxq; i++)
		write_rx_queue(j, &dev->napi[i], i);
	leat_json_close(j, ']');
	leat_json_open(j, "tx_queues", '[');
	for (i = 0; i < dev->n_txq; i++) {
		leat_json_open(j, NULL, '{');
		leat_json_number(j, "queue", i);
		leat_json_number(j, "packets", read_count(&dev->txq[i].stats.packets));
		leat_json_number(j, "bytes", read_count(&dev->txq[i].stats.bytes));
		leat_json_number(j, "drops", sum_drops(dev->txq[i].stats.drops));
		leat_json_close(j, '}');
	}
	leat_json_close(j, ']');
}

static void write_attached(struct leat_json_out *j, const struct leat_netdev *dev)
{
	const struct leat_xdp_chain *chain = __atomic_load_n(&dev->chain, __ATOMIC_RELAXED); /* control wrote it */
	unsigned int i;

	leat_json_open(j, "programs", '[');
	for (i = 0; chain && i < chain->n; i++)
		leat_json_string(j, NULL, chain->prog[i]->name);
	leat_json_close(j, ']');
}

/** The bridge that the configuration puts the port into. */
static void write_bridge(struct leat_json_out *j, const struct leat_config *config, const struct leat_netdev *dev)
{
	unsigned int i, p;

	for (i = 0; i < config->n_bridges; i++)
		for (p = 0; p < config->bridges[i].n_ports; p++)
			if (!strcmp(config->ports[config->bridges[i].ports[p]].name, dev->name))
				leat_json_string(j, "bridge", config->bridges[i].name);
}

static void write_mac(struct leat_json_out *j, const uint8_t mac[6])
{
	static const uint8_t none[6];
	char text[18];

	if (!memcmp(mac, none, sizeof(none)))
		return;
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	leat_json_string(j, "mac", text);
}

static void write_port(struct leat_netdev *dev, void *arg)
{
	struct leat_control_ask *ask = arg;
	struct leat_json_out *j = &ask->json;
	const char *name = leat_control_text(ask, "name");
	struct leat_netdev_stats stats;

	if (name && strcmp(name, dev->name) != 0)
		return;
	leat_netdev_stats(dev, &stats);
	leat_json_open(j, NULL, '{');
	leat_json_number(j, "index", dev->index);
	leat_json_string(j, "name", dev->name);
	leat_json_string(j, "type", dev->driver);
	leat_json_string(j, "state", state_of(dev));
	leat_json_number(j, "mtu", dev->mtu);
	write_mac(j, dev->mac);
	write_bridge(j, leat_datapath_config(ask->dp), dev);
	write_attached(j, dev);
	write_counts(j, &stats);
	write_queues(j, dev);
	leat_json_close(j, '}');
}

/** Whether the port that member @member names, if it is there, exists. */
static bool port_exists(struct leat_control_ask *ask, const char *member)
{
	const char *name = leat_control_text(ask, member);

	if (!name || leat_netdev_find(leat_datapath_net(ask->dp), name))
		return true;
	leat_control_fail(ask, "there is no port '%.40s'", name);
	return false;
}

void leat_control_ports(struct leat_control_ask *ask)
{
	if (!port_exists(ask, "name"))
		return;
	leat_json_open(&ask->json, "ports", '[');
	leat_net_for_each_port(leat_datapath_net(ask->dp), write_port, ask);
	leat_json_close(&ask->json, ']');
}

/* ---- drops ---- */

static void write_drops(struct leat_json_out *j, const struct leat_netdev *dev, const char *side, unsigned int queue,
			const uint64_t *drops)
{
	uint64_t count;
	unsigned int i;

	for (i = 0; i < LEAT_DROP_MAX; i++) {
		count = read_count(&drops[i]);
		if (!count)
			continue;
		leat_json_open(j, NULL, '{');
		leat_json_string(j, "port", dev->name);
		leat_json_string(j, "side", side);
		leat_json_number(j, "queue", queue);
		leat_json_string(j, "reason", leat_drop_name(i));
		leat_json_string(j, "text", leat_drop_text(i));
		leat_json_number(j, "count", count);
		leat_json_close(j, '}');
	}
}

static void write_port_drops(struct leat_netdev *dev, void *arg)
{
	struct leat_control_ask *ask = arg;
	const char *name = leat_control_text(ask, "port");
	unsigned int i;

	if (name && strcmp(name, dev->name) != 0)
		return;
	for (i = 0; i < dev->n_rxq; i++)
		write_drops(&ask->json, dev, "rx", i, dev->napi[i].stats.drops);
	for (i = 0; i < dev->n_txq; i++)
		write_drops(&ask->json, dev, "tx", i, dev->txq[i].stats.drops);
}

void leat_control_drops(struct leat_control_ask *ask)
{
	if (!port_exists(ask, "port"))
		return;
	leat_json_open(&ask->json, "drops", '[');
	leat_net_for_each_port(leat_datapath_net(ask->dp), write_port_drops, ask);
	leat_json_close(&ask->json, ']');
}

/* ---- packet memory ---- */

static void write_pool(const struct leat_page_pool_stats *s, void *arg)
{
	struct leat_control_ask *ask = arg;
	const struct {
		const char *name;
		uint64_t value;
	} members[] = {
		{ "limit", s->limit },
		{ "committed", s->committed },
		{ "alloc", s->alloc },
		{ "direct", s->direct },
		{ "remote", s->remote },
		{ "outstanding", s->outstanding },
		{ "device", s->device },
		{ "returning", s->returning },
		{ "held", s->held },
		{ "cut_new", s->cut_new },
		{ "cut_recycled", s->cut_recycled },
		{ "cut_partial", s->cut_partial },
		{ "uncut", s->uncut },
		{ "cursor", s->cursor },
		{ "slow", s->slow },
		{ "grows", s->grows },
		{ "shrinks", s->shrinks },
		{ "grow_failed", s->grow_failed },
		{ "recycled_blocks", s->recycled_blocks },
		{ "partial_runs", s->partial_runs },
		{ "node_moves", s->node_moves },
		{ "alloc_failed", s->alloc_failed },
		{ "order", s->order },
	};
	size_t i;

	leat_json_open(&ask->json, NULL, '{');
	leat_json_string(&ask->json, "name", s->name);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		leat_json_number(&ask->json, members[i].name, members[i].value);
	leat_json_close(&ask->json, '}');
}

void leat_control_pools(struct leat_control_ask *ask)
{
	struct leat_net *net = leat_datapath_net(ask->dp);

	leat_json_number(&ask->json, "granule", LEAT_GRANULE_SIZE);
	leat_json_number(&ask->json, "committed", leat_segment_committed(leat_net_segment(net)));
	leat_json_open(&ask->json, "pools", '[');
	leat_net_for_each_pool(net, write_pool, ask);
	leat_json_close(&ask->json, ']');
}

/* ---- the whole ---- */

static void write_port_stats(struct leat_netdev *dev, void *arg)
{
	struct leat_control_ask *ask = arg;
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	leat_json_open(&ask->json, NULL, '{');
	leat_json_string(&ask->json, "name", dev->name);
	leat_json_string(&ask->json, "type", dev->driver);
	leat_json_string(&ask->json, "state", state_of(dev));
	write_counts(&ask->json, &stats);
	leat_json_close(&ask->json, '}');
}

static void write_bridge_stats(struct leat_json_out *j, const struct leat_bridge *bridge)
{
	struct leat_bridge_stats stats;

	leat_bridge_stats(bridge, &stats);
	leat_json_open(j, NULL, '{');
	leat_json_string(j, "name", leat_bridge_name(bridge));
	leat_json_number(j, "forwarded", stats.forwarded);
	leat_json_number(j, "flooded", stats.flooded);
	leat_json_number(j, "learned", stats.learned);
	leat_json_number(j, "moved", stats.moved);
	leat_json_number(j, "evicted", stats.evicted);
	leat_json_close(j, '}');
}

struct pool_sums {
	uint64_t n, alloc, direct, remote, outstanding, alloc_failed;
};

static void add_pool(const struct leat_page_pool_stats *stats, void *arg)
{
	struct pool_sums *sums = arg;

	sums->n++;
	sums->alloc += stats->alloc;
	sums->direct += stats->direct;
	sums->remote += stats->remote;
	sums->outstanding += stats->outstanding;
	sums->alloc_failed += stats->alloc_failed;
}

static void write_memory(struct leat_json_out *j, struct leat_net *net)
{
	struct pool_sums sums = { 0 };

	leat_net_for_each_pool(net, add_pool, &sums);
	leat_json_open(j, "memory", '{');
	leat_json_number(j, "pools", sums.n);
	leat_json_number(j, "committed", leat_segment_committed(leat_net_segment(net)));
	leat_json_number(j, "alloc", sums.alloc);
	leat_json_number(j, "direct", sums.direct);
	leat_json_number(j, "remote", sums.remote);
	leat_json_number(j, "outstanding", sums.outstanding);
	leat_json_number(j, "alloc_failed", sums.alloc_failed);
	leat_json_close(j, '}');
}

void leat_control_stats(struct leat_control_ask *ask)
{
	struct leat_net *net = leat_datapath_net(ask->dp);
	struct leat_json_out *j = &ask->json;
	const struct leat_bridge *bridge;
	unsigned int i;

	leat_json_string(j, "version", LEAT_VERSION);
	leat_json_string(j, "file", leat_datapath_config(ask->dp)->file);
	leat_json_number(j, "pid", (uint64_t)getpid());
	leat_json_number(j, "time_ns", leat_clock_ns());
	leat_json_number(j, "workers", leat_net_workers(net));
	leat_json_open(j, "ports", '[');
	leat_net_for_each_port(net, write_port_stats, ask);
	leat_json_close(j, ']');
	leat_json_open(j, "bridges", '[');
	for (i = 0; (bridge = leat_datapath_bridge(ask->dp, i)); i++)
		write_bridge_stats(j, bridge);
	leat_json_close(j, ']');
	write_memory(j, net);
}
