/* SPDX-License-Identifier: BSD-3-Clause */
/* ipv6_headers.bpf.c: walks IPv6 extension headers (RFC 8200, 4) to the port of UDP or TCP; counts by protocol. */
#include "packet.h"

struct ext {
	__u8 next, len;
	__u8 rest[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} protocols MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __be16);
	__type(value, __u8);
} closed MAPS;

INLINE int walk(struct cursor *c, __u8 next)
{
	struct ext *ext;
	int i;

	for (i = 0; i < 6; i++) {
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
		    next != IPPROTO_FRAGMENT)
			break;
		ext = take(c, sizeof(*ext));
		if (!ext)
			return -1;
		if (next != IPPROTO_FRAGMENT && ext->len) {
			if (!take(c, ext->len * 8u))
				return -1;
		}
		next = ext->next;
	}
	return next;
}

SEC("xdp")
int headers(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct ipv6hdr *ip6;
	__u32 key, *n;
	__be16 *ports, port;
	__u8 *bits;
	int next;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	ip6 = take(&c, sizeof(*ip6));
	if (!ip6)
		return XDP_DROP;
	if (ip6->hop_limit <= 1)
		return XDP_ABORTED;
	ip6->hop_limit--;
	next = walk(&c, ip6->nexthdr);
	if (next < 0)
		return XDP_DROP;
	key = next;
	n = bpf_map_lookup_elem(&protocols, &key);
	if (n)
		++*n;
	if (next != IPPROTO_UDP && next != IPPROTO_TCP)
		return XDP_PASS;
	ports = take(&c, 4);
	if (!ports)
		return XDP_DROP;
	port = ports[1];
	bits = bpf_map_lookup_elem(&closed, &port);
	return bits && *bits & (next == IPPROTO_UDP ? 1 : 2) ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
