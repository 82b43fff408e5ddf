/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib.bpf.c: bpf_fib_lookup: a question that the packet carries, whose answer goes into the packet; and a forwarder that
 * asks about the packet itself.
 */
#include "packet.h"

#define AF_INET 2
#define AF_INET6 10

/** What a packet carries. */
struct query {
	__u32 flags;
	__u32 len; /* of the struct, as the helper is told; less than 64 or more */
	struct bpf_fib_lookup params;
	__s64 result;
};

SEC("xdp")
int fib_query(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct query *q = take(&c, sizeof(*q));
	struct {
		struct bpf_fib_lookup params;
		__u64 behind;
	} own = { .behind = 0 };
	__s64 result;

	if (!q)
		return XDP_PASS;
	own.params = q->params;
	if (q->len == 63)
		result = bpf_fib_lookup(ctx, &own.params, 63, q->flags);
	else if (q->len == 72)
		result = bpf_fib_lookup(ctx, &own.params, 72, q->flags);
	else
		result = bpf_fib_lookup(ctx, &own.params, 64, q->flags);
	q->params = own.params;
	q->result = result;
	return own.behind ? XDP_ABORTED : XDP_TX;
}

/** The answer, in the packet's first bytes. */
INLINE int answer(struct xdp_md *ctx, const struct bpf_fib_lookup *params, __s64 result)
{
	struct cursor c = packet_of(ctx);
	struct ethhdr *eth = take(&c, sizeof(*eth));

	if (!eth)
		return XDP_ABORTED;
	__builtin_memcpy(eth->h_dest, params->dmac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, params->smac, ETH_ALEN);
	eth->h_proto = (__be16)result;
	return result ? XDP_PASS : bpf_redirect(params->ifindex, 0);
}

SEC("xdp")
int fib_forward(struct xdp_md *ctx)
{
	struct bpf_fib_lookup params = { .ifindex = ctx->ingress_ifindex };
	struct cursor c = packet_of(ctx);
	__be16 type = take_ethernet(&c);

	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = take(&c, sizeof(*ip));

		if (!ip)
			return XDP_DROP;
		params.family = AF_INET;
		params.tos = ip->tos;
		params.l4_protocol = ip->protocol;
		params.tot_len = bpf_ntohs(ip->tot_len);
		params.ipv4_src = ip->saddr;
		params.ipv4_dst = ip->daddr;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip6 = take(&c, sizeof(*ip6));

		if (!ip6)
			return XDP_DROP;
		params.family = AF_INET6;
		params.l4_protocol = ip6->nexthdr;
		params.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(params.ipv6_src, &ip6->saddr, sizeof(params.ipv6_src));
		__builtin_memcpy(params.ipv6_dst, &ip6->daddr, sizeof(params.ipv6_dst));
	} else {
		return XDP_PASS;
	}
	return answer(ctx, &params, bpf_fib_lookup(ctx, &params, sizeof(params), 0));
}

char _license[] SEC("license") = "Dual BSD/GPL";
