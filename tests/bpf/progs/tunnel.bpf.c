/* SPDX-License-Identifier: BSD-3-Clause */
/* tunnel.bpf.c: IPv4 and IPv6 in IPv4 (RFC 2003): headers are put before a packet and taken away. */
#include "packet.h"

struct outer {
	struct ethhdr eth;
	struct iphdr ip;
} __attribute__((packed));

const volatile __be32 local = bpf_htonl(0xc0000201), remote = bpf_htonl(0xc0000202);
__u16 next_id;

INLINE void write_outer(struct outer *out, __u16 len, __u8 proto)
{
	__u16 *word = (void *)out + sizeof(out->eth);
	__u32 sum = 0;
	int i;

	out->eth.h_proto = bpf_htons(ETH_P_IP);
	out->ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = proto, .saddr = local,
				  .daddr = remote, .tot_len = bpf_htons(len), .id = bpf_htons(next_id++) };
#pragma unroll
	for (i = 0; i < 10; i++)
		sum += word[i];
	out->ip.check = fold(sum);
}

SEC("xdp")
int encap(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct ethhdr *eth = c.at, saved;
	struct outer *out;
	__be16 type;
	__u16 len;

	if (!take(&c, sizeof(*eth)))
		return XDP_DROP;
	type = eth->h_proto;
	if (type != bpf_htons(ETH_P_IP) && type != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	saved = *eth;
	len = c.end - c.at + sizeof(struct iphdr);
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct iphdr)))
		return XDP_ABORTED;
	c = packet_of(ctx);
	out = take(&c, sizeof(*out));
	if (!out)
		return XDP_ABORTED;
	__builtin_memcpy(out->eth.h_dest, saved.h_source, 6);
	__builtin_memcpy(out->eth.h_source, saved.h_dest, 6);
	write_outer(out, len, type == bpf_htons(ETH_P_IP) ? IPPROTO_IPIP : IPPROTO_IPV6);
	return XDP_TX;
}

SEC("xdp")
int decap(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct outer *out = take(&c, sizeof(*out));
	struct ethhdr saved, *eth;

	if (!out || out->eth.h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	if (out->ip.protocol != IPPROTO_IPIP && out->ip.protocol != IPPROTO_UDP) /* UDP: so that something is cut */
		return XDP_PASS;
	saved = out->eth;
	if (bpf_xdp_adjust_head(ctx, sizeof(struct iphdr)))
		return XDP_DROP;
	c = packet_of(ctx);
	eth = take(&c, sizeof(*eth));
	if (!eth)
		return XDP_ABORTED;
	*eth = saved;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
