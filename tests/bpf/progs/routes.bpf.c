/* SPDX-License-Identifier: BSD-3-Clause */
/* routes.bpf.c: LPM_TRIE of IPv4 and IPv6 prefixes: lookup, and routes that a program adds and deletes. */
#include "packet.h"

struct prefix4 {
	__u32 len;
	__be32 addr;
};

struct prefix6 {
	__u32 len;
	struct in6_addr addr;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct prefix4);
	__type(value, __u64);
} ipv4 MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct prefix6);
	__type(value, __u8[3]);
} ipv6 MAPS;

SEC("xdp")
int route(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct prefix4 k4 = { 32, 0 };
	struct prefix6 k6 = { .len = 128 };
	struct ipv6hdr *ip6;
	struct iphdr *ip;
	__u8 *three;
	__u64 *hits;

	switch (take_ethernet(&c)) {
	case bpf_htons(ETH_P_IP):
		ip = take_ipv4(&c);
		if (!ip)
			return XDP_PASS;
		k4.addr = ip->daddr;
		hits = bpf_map_lookup_elem(&ipv4, &k4);
		if (!hits)
			return XDP_DROP;
		*hits += 1;
		return *hits & 3;
	case bpf_htons(ETH_P_IPV6):
		ip6 = take(&c, sizeof(*ip6));
		if (!ip6)
			return XDP_PASS;
		k6.addr = ip6->daddr;
		three = bpf_map_lookup_elem(&ipv6, &k6);
		if (!three)
			return XDP_TX;
		three[2]++;
		return three[0] & 3;
	}
	return XDP_PASS;
}

/** The destination's prefix, as long as the TTL says, comes and goes; the answers are the verdict. */
SEC("xdp")
int flap(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct prefix4 key;
	struct iphdr *ip;
	__u64 value;
	int err;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)))
		return XDP_PASS;
	key = (struct prefix4){ ip->ttl % 36, ip->daddr };
	value = ip->id;
	if (ip->tos & 4)
		err = bpf_map_delete_elem(&ipv4, &key);
	else
		err = bpf_map_update_elem(&ipv4, &key, &value, ip->tos & 3 ?: ip->tos >> 5);
	key.len = 32;
	return 100 - err + (bpf_map_lookup_elem(&ipv4, &key) ? 200 : 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
