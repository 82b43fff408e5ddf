/* SPDX-License-Identifier: BSD-3-Clause */
/* sources.bpf.c: PERCPU_HASH by source address of IPv4 and IPv6. */
#include "packet.h"

struct traffic {
	__u32 packets;
	__u16 longest;
	__u8 protocol;
} __attribute__((packed)); /* 7 bytes: copies lie 8 apart */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16); /* fewer than addresses: elements are used again */
	__type(key, __be32);
	__type(value, struct traffic);
} ipv4 MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 512);
	__type(key, struct in6_addr);
	__type(value, struct traffic);
} ipv6 MAPS;

INLINE int note(void *map, const void *key, __u32 len, __u8 protocol)
{
	struct traffic *t = bpf_map_lookup_elem(map, key), first = { 1, len, protocol };

	if (!t)
		return bpf_map_update_elem(map, key, &first, BPF_ANY) ? XDP_ABORTED : XDP_PASS;
	t->packets++;
	if (len > t->longest)
		t->longest = len;
	if (t->packets % 4 == 0)
		return bpf_map_delete_elem(map, key) ? XDP_ABORTED : XDP_REDIRECT;
	return t->protocol != protocol ? XDP_TX : XDP_DROP;
}

SEC("xdp")
int sources(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u32 len = c.end - c.at;
	struct in6_addr from;
	struct ipv6hdr *ip6;
	struct iphdr *ip;
	__be32 saddr;

	switch (take_ethernet(&c)) {
	case bpf_htons(ETH_P_IP):
		ip = take_ipv4(&c);
		if (!ip)
			return XDP_PASS;
		saddr = ip->saddr;
		return note(&ipv4, &saddr, len, ip->protocol);
	case bpf_htons(ETH_P_IPV6):
		ip6 = take(&c, sizeof(*ip6));
		if (!ip6)
			return XDP_PASS;
		from = ip6->saddr;
		return note(&ipv6, &from, len, ip6->nexthdr);
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
