/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * locks.bpf.c: values with spin locks: in a hash, an array, an inner map and in global data; taken in a function, over
 * branches, and by the flag of an update.
 */
#include "packet.h"

struct flow {
	__be32 saddr, daddr;
	__be16 sport, dport;
	__u8 proto;
	__u8 pad[3];
};

/** A bucket of tokens. */
struct bucket {
	__u64 packets, bytes;
	struct bpf_spin_lock lock;
	__u32 tokens;
	__u16 last, pad[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow);
	__type(value, struct bucket);
} buckets MAPS;

struct pair {
	struct bpf_spin_lock lock;
	__u32 a;
	__u64 b;
};

struct pairs {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct pair);
} pairs MAPS, others MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct pairs);
} tables MAPS = {
	.values = { [0] = &pairs, [1] = &others },
};

struct bpf_spin_lock all_lock SEC(".data.all");
__u64 all_packets SEC(".data.all") = 1;
__u64 all_bytes SEC(".data.all") = 1;

INLINE int flow_of(struct xdp_md *ctx, struct flow *flow)
{
	struct cursor c = packet_of(ctx);
	struct iphdr *ip;
	__be16 *ports;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)) || !(ports = take(&c, 4)))
		return -1;
	*flow = (struct flow){ ip->saddr, ip->daddr, ports[0], ports[1], ip->protocol, { 0 } };
	return 0;
}

/** Three packets per flow, then one in two. */
SEC("xdp")
int shape(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;
	struct bucket *bucket, first = { .packets = 1, .bytes = len, .tokens = 3 };
	int action = XDP_DROP;
	struct flow flow;

	if (flow_of(ctx, &flow))
		return XDP_PASS;
	bucket = bpf_map_lookup_elem(&buckets, &flow);
	if (!bucket)
		return bpf_map_update_elem(&buckets, &flow, &first, BPF_NOEXIST) ? XDP_ABORTED : XDP_TX;
	bpf_spin_lock(&bucket->lock);
	bucket->packets++;
	bucket->bytes += len;
	if (bucket->tokens) {
		bucket->tokens--;
		action = XDP_TX;
	} else if (bucket->packets & 1) {
		bucket->tokens = 1;
		bucket->last = len;
		bpf_spin_unlock(&bucket->lock);
		return 100;
	}
	bpf_spin_unlock(&bucket->lock);
	return action;
}

/** Every flag of an update, on a value with a lock. */
SEC("xdp")
int update(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u16 *word = take(&c, 14);
	struct bucket value = { .packets = 1 };
	struct flow flow = { 0 };
	int err;

	if (!word)
		return XDP_DROP;
	flow.saddr = word[2] & 7;
	value.bytes = word[5];
	value.tokens = word[4];
	if (word[1] & 0x100)
		err = bpf_map_delete_elem(&buckets, &flow);
	else
		err = bpf_map_update_elem(&buckets, &flow, &value, word[6] & 7);
	return 100 - err;
}

static __attribute__((noinline)) int give(struct pair *pair, __u32 by)
{
	if (!pair)
		return 0;
	bpf_spin_lock(&pair->lock);
	pair->a += by;
	pair->b -= by;
	bpf_spin_unlock(&pair->lock);
	return by & 3;
}

/** In an inner map, by a function; the sum of both is always the same. */
SEC("xdp")
int exchange(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *bytes = take(&c, 14);
	__u32 which, slot;
	void *map;

	if (!bytes)
		return XDP_DROP;
	which = bytes[11] & 1;
	slot = bytes[5] & 31;
	map = bpf_map_lookup_elem(&tables, &which);
	if (!map)
		return XDP_PASS;
	return 100 + give(bpf_map_lookup_elem(map, &slot), bytes[4]);
}

SEC("xdp")
int sum(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;
	__u64 mean;

	bpf_spin_lock(&all_lock);
	all_packets++;
	all_bytes += len;
	mean = all_bytes / all_packets;
	bpf_spin_unlock(&all_lock);
	return 100 + (mean & 63);
}

static __attribute__((noinline)) __u64 mean_of(__u64 bytes, __u64 packets)
{
	return packets ? bytes / packets : 0;
}

/** A function while the lock is held: kernels before 6.8 refuse it. */
SEC("xdp")
int sum_by_function(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;
	__u64 mean;

	bpf_spin_lock(&all_lock);
	all_packets += 2;
	all_bytes += len;
	mean = mean_of(all_bytes, all_packets);
	bpf_spin_unlock(&all_lock);
	return 100 + (mean & 63);
}

char _license[] SEC("license") = "Dual BSD/GPL";
