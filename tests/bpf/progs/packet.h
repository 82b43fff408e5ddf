/* SPDX-License-Identifier: BSD-3-Clause */
/* packet.h: what the test programs share: a cursor over the packet, and tables to note numbers in. */
#ifndef LEAT_TESTS_BPF_PROGS_PACKET_H
#define LEAT_TESTS_BPF_PROGS_PACKET_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/types.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAPS SEC(".maps")
#define INLINE static __always_inline

/** The part of a packet that is still to be read. */
struct cursor {
	void *at, *end;
};

INLINE struct cursor packet_of(const struct xdp_md *ctx)
{
	return (struct cursor){ (void *)(long)ctx->data, (void *)(long)ctx->data_end };
}

/** The next @n bytes, or NULL. */
INLINE void *take(struct cursor *c, __u32 n)
{
	void *at = c->at;

	if (at + n > c->end)
		return NULL;
	c->at = at + n;
	return at;
}

struct vlan {
	__be16 tci, type;
};

/** Takes the Ethernet header and up to two tags; returns the type behind them in network order, 0 when cut short. */
INLINE __be16 take_ethernet(struct cursor *c)
{
	struct ethhdr *eth = take(c, sizeof(*eth));
	__be16 type;
	int i;

	if (!eth)
		return 0;
	type = eth->h_proto;
#pragma unroll
	for (i = 0; i < 2; i++) {
		struct vlan *tag;

		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		tag = take(c, sizeof(*tag));
		if (!tag)
			return 0;
		type = tag->type;
	}
	return type;
}

/** Takes an IPv4 header without options, or NULL. */
INLINE struct iphdr *take_ipv4(struct cursor *c)
{
	struct iphdr *ip = take(c, sizeof(*ip));

	return ip && ip->version == 4 && ip->ihl == 5 ? ip : NULL;
}

/** Sums 16-bit words into a checksum's complement. */
INLINE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

#endif
