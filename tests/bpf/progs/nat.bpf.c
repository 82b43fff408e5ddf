/* SPDX-License-Identifier: BSD-3-Clause */
/* nat.bpf.c: destination address and port are replaced by what a HASH says; checksums are mended with csum_diff. */
#include "packet.h"

struct service {
	__be32 addr;
	__be16 port;
	__u16 proto;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct service);
	__type(value, struct service);
} services MAPS;

INLINE __u16 mend(__u16 check, __be32 *from, __be32 *to, __u32 size)
{
	return fold((__u64)(__u32)bpf_csum_diff(from, size, to, size, (__u32)(__u16)~check));
}

SEC("xdp")
int dnat(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct service key, *to, fallback = { bpf_htonl(0xc6336401), bpf_htons(4242), 0 };
	__be32 was[2], is[2];
	struct iphdr *ip;
	struct tcphdr *tcp;
	struct udphdr *udp;
	__be16 *ports;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)))
		return XDP_PASS;
	udp = c.at;
	tcp = c.at;
	ports = take(&c, sizeof(*udp));
	if (!ports)
		return XDP_DROP;
	key = (struct service){ ip->daddr, ports[1], ip->protocol };
	to = bpf_map_lookup_elem(&services, &key);
	if (!to)
		to = &fallback;
	was[0] = ip->daddr;
	was[1] = (__be32)ports[1];
	is[0] = to->addr;
	is[1] = (__be32)to->port;
	ip->check = mend(ip->check, was, is, 4);
	ip->daddr = to->addr;
	ports[1] = to->port;
	if (ip->protocol == IPPROTO_UDP) {
		if (udp->check)
			udp->check = mend(udp->check, was, is, 8) ?: 0xffff;
		return XDP_TX;
	}
	if (ip->protocol == IPPROTO_TCP && (void *)(tcp + 1) <= c.end) {
		tcp->check = mend(tcp->check, was, is, 8);
		return XDP_TX;
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
