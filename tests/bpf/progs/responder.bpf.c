/* SPDX-License-Identifier: BSD-3-Clause */
/* responder.bpf.c: answers ARP (RFC 826) and ICMP echo requests (RFC 792) by turning the packet round. */
#include "packet.h"

struct arp {
	__be16 htype, ptype;
	__u8 hlen, plen;
	__be16 op;
	__u8 sha[6];
	__u8 spa[4];
	__u8 tha[6];
	__u8 tpa[4];
} __attribute__((packed));

struct icmp {
	__u8 type, code;
	__be16 checksum;
	__be32 rest;
};

#define ECHO_REPLY 0
#define ECHO_REQUEST 8

__u8 own_mac[6] = { 2, 0, 0, 0, 0, 0x42 };

INLINE void turn(struct ethhdr *eth)
{
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, own_mac, 6);
}

SEC("xdp")
int arp(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct ethhdr *eth = c.at;
	struct arp *arp;
	__u8 ip[4];

	if (take_ethernet(&c) != bpf_htons(ETH_P_ARP))
		return XDP_PASS;
	arp = take(&c, sizeof(*arp));
	if (!arp || arp->op != bpf_htons(1) || (void *)(eth + 1) > c.end)
		return XDP_DROP;
	__builtin_memcpy(ip, arp->tpa, 4);
	__builtin_memcpy(arp->tha, arp->sha, 10);
	__builtin_memcpy(arp->sha, own_mac, 6);
	__builtin_memcpy(arp->spa, ip, 4);
	arp->op = bpf_htons(2);
	turn(eth);
	return XDP_TX;
}

SEC("xdp")
int echo(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct ethhdr *eth = c.at;
	struct icmp *icmp;
	struct iphdr *ip;
	__be32 addr;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	ip = take_ipv4(&c);
	if (!ip || ip->protocol != IPPROTO_ICMP || (void *)(eth + 1) > c.end)
		return XDP_PASS;
	icmp = take(&c, sizeof(*icmp));
	if (!icmp || icmp->type != ECHO_REQUEST)
		return XDP_DROP;
	icmp->type = ECHO_REPLY;
	icmp->checksum = fold((__u16)~icmp->checksum + (__u32)(__u16)~bpf_htons(0x0800));
	addr = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = addr;
	turn(eth);
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
