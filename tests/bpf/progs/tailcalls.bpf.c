/* SPDX-License-Identifier: BSD-3-Clause */
/* tailcalls.bpf.c: PROG_ARRAY: a parser in steps, a program that calls itself until it may not, and empty places. */
#include "packet.h"

int step_ipv4(struct xdp_md *ctx);
int step_ipv6(struct xdp_md *ctx);
int again(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 16);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} steps MAPS = {
	.values = { [4] = (void *)&step_ipv4, [6] = (void *)&step_ipv6, [9] = (void *)&again },
};

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} filled_later MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters MAPS;

INLINE void count(__u32 key, __u64 n)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &key);

	if (counter)
		*counter += n;
}

SEC("xdp")
int step_ipv4(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct iphdr *ip;

	count(0, 1);
	if (take_ethernet(&c) == bpf_htons(ETH_P_IP) && (ip = take_ipv4(&c)))
		ip->tos ^= 0xff;
	return XDP_TX;
}

SEC("xdp")
int step_ipv6(struct xdp_md *ctx)
{
	count(1, ctx->data_end - ctx->data);
	return XDP_DROP;
}

SEC("xdp")
int again(struct xdp_md *ctx)
{
	count(2, 1);
	bpf_tail_call(ctx, &steps, 9);
	count(3, 1); /* the 34th */
	return XDP_REDIRECT;
}

/** Calls of empty places, then of one that is not: do the misses count? */
SEC("xdp")
int misses(struct xdp_md *ctx)
{
	int i;

	for (i = 0; i < 40; i++)
		bpf_tail_call(ctx, &steps, 1);
	bpf_tail_call(ctx, &steps, 6);
	count(3, 1000000);
	return XDP_PASS;
}

SEC("xdp")
int entry(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct ethhdr *eth = c.at;

	switch (take_ethernet(&c)) {
	case bpf_htons(ETH_P_IP):
		bpf_tail_call(ctx, &steps, 4);
		break;
	case bpf_htons(ETH_P_IPV6):
		bpf_tail_call_static(ctx, &steps, 6);
		break;
	case bpf_htons(ETH_P_ARP):
		bpf_tail_call(ctx, &steps, 9);
		break;
	}
	if ((void *)(eth + 1) <= (void *)(long)ctx->data_end)
		bpf_tail_call(ctx, &filled_later, eth->h_source[5] & 15); /* beyond its end, too */
	count(3, 1000);
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
