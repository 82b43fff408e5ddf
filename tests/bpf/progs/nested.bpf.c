/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested.bpf.c: maps of maps as load balancers use them: a connection table of each CPU's own, a ring of backends for
 * each service, counters of different sizes; and the places that are empty.
 */
#include "packet.h"

#ifndef BPF_F_INNER_MAP
#define BPF_F_INNER_MAP (1U << 12)
#endif

struct flow {
	__be32 saddr, daddr;
	__be16 sport, dport;
	__u32 proto;
};

struct connection {
	__u32 backend;
	__u32 packets;
	__u64 bytes;
};

/* ---- an LRU hash in an array, by CPU ---- */

struct connections {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct flow);
	__type(value, struct connection);
} cpu_even MAPS, cpu_odd MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 512);
	__type(key, __u32);
	__array(values, struct connections);
} connections MAPS = {
	.values = { [0] = &cpu_even, [1] = &cpu_odd, [2] = &cpu_even, [3] = &cpu_odd, [4] = &cpu_even, [5] = &cpu_odd,
		    [6] = &cpu_even, [7] = &cpu_odd },
};

/* ---- a ring of backends in a hash, by service ---- */

struct ring {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} ring_one MAPS, ring_two MAPS, ring_other MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 16);
	__type(key, __u32);
	__array(values, struct ring);
} services MAPS = {
	.values = { [0] = &ring_one, [1] = &ring_two, [3] = &ring_other },
};

/* ---- arrays that may have any size ---- */

struct counters_10 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 10);
	__type(key, __u32);
	__type(value, __u64[3]);
} small MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 100);
	__type(key, __u32);
	__type(value, __u64[3]);
} large MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, struct counters_10);
} counters MAPS = {
	.values = { [0] = &small, [2] = (void *)&large },
};

/* ---- prefixes, and copies of each CPU's own ---- */

struct prefix {
	__u32 len;
	__be32 addr;
};

struct routes {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1000);
	__type(key, struct prefix);
	__type(value, __u64);
} routes_a MAPS, routes_b MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, struct routes);
} tables MAPS = {
	.values = { [0] = &routes_a, [1] = &routes_b },
};

struct own {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} own_a MAPS, own_b MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, struct own);
} owns MAPS = {
	.values = { [0] = &own_a, [1] = &own_b },
};

INLINE int flow_of(struct xdp_md *ctx, struct flow *flow)
{
	struct cursor c = packet_of(ctx);
	struct iphdr *ip;
	__be16 *ports;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)) || !(ports = take(&c, 4)))
		return -1;
	*flow = (struct flow){ ip->saddr, ip->daddr, ports[0], ports[1], ip->protocol };
	return 0;
}

/** The backend that the service's ring gives, 0: none. */
INLINE __u32 choose(const struct flow *flow)
{
	__u32 service = bpf_ntohs(flow->dport) & 3, slot = (flow->saddr ^ flow->sport) & 63, *backend;
	void *ring = bpf_map_lookup_elem(&services, &service);

	if (!ring)
		return 0;
	backend = bpf_map_lookup_elem(ring, &slot);
	return backend ? *backend + 1 : 0;
}

static __attribute__((noinline)) struct connection *find(void *map, const struct flow *flow)
{
	return map && flow ? bpf_map_lookup_elem(map, flow) : 0;
}

SEC("xdp")
int balance(struct xdp_md *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & 7, len = ctx->data_end - ctx->data;
	struct connection *known, first = { 0, 1, len };
	struct flow flow;
	void *map;

	if (flow_of(ctx, &flow))
		return XDP_PASS;
	map = bpf_map_lookup_elem(&connections, &cpu);
	if (!map)
		return XDP_ABORTED;
	known = find(map, &flow);
	if (known) {
		known->packets++;
		__sync_fetch_and_add(&known->bytes, len);
		if (known->packets % 5 == 0)
			return bpf_map_delete_elem(map, &flow) ? XDP_ABORTED : XDP_TX;
		return 100 + known->backend % 16;
	}
	first.backend = choose(&flow);
	if (!first.backend)
		return XDP_DROP;
	return bpf_map_update_elem(map, &flow, &first, BPF_NOEXIST) ? XDP_ABORTED : XDP_TX;
}

/** Which of the arrays, and which of their elements, a byte of the packet says; so does a distance in the value. */
SEC("xdp")
int count(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *bytes = take(&c, 14);
	__u32 which, slot, place;
	__u64 *values;
	void *map;

	if (!bytes)
		return XDP_DROP;
	which = bytes[11] & 7;
	slot = bytes[5];
	place = bytes[4];
	map = bpf_map_lookup_elem(&counters, &which);
	if (!map)
		return XDP_PASS;
	values = bpf_map_lookup_elem(map, &slot);
	if (!values)
		return XDP_TX;
	if (place > 2)
		place = 2;
	values[place] += bytes[6];
	__sync_fetch_and_add(&values[0], 1);
	return 100 + (values[place] & 63);
}

SEC("xdp")
int route(struct xdp_md *ctx)
{
	struct prefix prefix = { 32, 0 };
	struct flow flow;
	__u32 which;
	__u64 *value, now = 1;
	void *map;

	if (flow_of(ctx, &flow))
		return XDP_PASS;
	which = bpf_ntohl(flow.daddr) & 3;
	prefix.addr = flow.saddr;
	map = bpf_map_lookup_elem(&tables, &which);
	if (!map)
		return XDP_DROP;
	value = bpf_map_lookup_elem(map, &prefix);
	if (value)
		return 100 + ((*value)++ & 63);
	prefix.len = 24;
	return bpf_map_update_elem(map, &prefix, &now, BPF_ANY) ? XDP_ABORTED : XDP_TX;
}

/** The same look-up works on inner maps of either kind of outer map. */
SEC("xdp")
int owned(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *bytes = take(&c, 14);
	__u64 *value, one = 1;
	__u32 key, which;
	void *map;

	if (!bytes)
		return XDP_DROP;
	which = bytes[5] & 3;
	key = bytes[4] & 31;
	map = bpf_map_lookup_elem(&owns, &which);
	if (!map)
		return XDP_PASS;
	value = bpf_map_lookup_elem(map, &key);
	if (value) {
		*value += 1;
		return 100 + (*value & 63);
	}
	return bpf_map_update_elem(map, &key, &one, BPF_NOEXIST) ? XDP_ABORTED : XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
