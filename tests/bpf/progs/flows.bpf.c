/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.bpf.c: HASH by five-tuple: lookups, updates with every flag, deletion, and elements written in place. */
#include "packet.h"

struct flow {
	__be32 saddr, daddr;
	__be16 sport, dport;
	__u8 proto;
	__u8 pad[3];
};

struct state {
	__u64 packets, bytes;
	__u8 last[6];
	__u16 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow);
	__type(value, struct state);
} flows MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u16);
	__type(value, __u32);
} few MAPS;

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

SEC("xdp")
int track(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	__u32 len = ctx->data_end - ctx->data;
	struct state *state, first = { 1, len, { 0 }, 0 };
	struct flow flow;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end || flow_of(ctx, &flow))
		return XDP_PASS;
	state = bpf_map_lookup_elem(&flows, &flow);
	if (!state)
		return bpf_map_update_elem(&flows, &flow, &first, BPF_NOEXIST) ? XDP_ABORTED : XDP_TX;
	state->packets++;
	state->bytes += len;
	__builtin_memcpy(state->last, eth->h_source, 6);
	state->flags ^= len;
	if (state->packets % 7 == 0 && bpf_map_delete_elem(&flows, &flow))
		return XDP_ABORTED;
	return XDP_DROP;
}

/** A small map that is full soon: every answer, as the verdict. */
SEC("xdp")
int crowd(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u16 *word = take(&c, 14), key;
	__u32 value;
	int err;

	if (!word)
		return XDP_DROP;
	key = word[2] & 15;
	value = word[5];
	if (word[1] & 0x100)
		err = bpf_map_delete_elem(&few, &key);
	else
		err = bpf_map_update_elem(&few, &key, &value, word[6] & 7);
	return 100 - err;
}

char _license[] SEC("license") = "Dual BSD/GPL";
