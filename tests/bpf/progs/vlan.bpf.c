/* SPDX-License-Identifier: BSD-3-Clause */
/* vlan.bpf.c: 802.1Q tags are pushed (adjust_head back), popped (adjust_head forward) and rewritten. */
#include "packet.h"

struct tagged {
	__u8 macs[12];
	__be16 tpid, tci;
};

SEC("xdp")
int push(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct tagged *to;
	__u8 macs[12];

	if (!take(&c, 14))
		return XDP_DROP;
	__builtin_memcpy(macs, (void *)(long)ctx->data, 12);
	if (bpf_xdp_adjust_head(ctx, -4))
		return XDP_ABORTED;
	c = packet_of(ctx);
	to = take(&c, sizeof(*to));
	if (!to)
		return XDP_ABORTED;
	__builtin_memcpy(to->macs, macs, 12);
	to->tpid = bpf_htons(ETH_P_8021Q);
	to->tci = bpf_htons(macs[11]);
	return XDP_TX;
}

SEC("xdp")
int pop(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct tagged *from = take(&c, sizeof(*from));
	__u8 macs[12];
	__u8 *to;

	if (!from || from->tpid != bpf_htons(ETH_P_8021Q))
		return XDP_PASS;
	__builtin_memcpy(macs, from->macs, 12);
	if (bpf_xdp_adjust_head(ctx, 4)) /* a packet of 16 bytes cannot lose 4 */
		return XDP_DROP;
	c = packet_of(ctx);
	to = take(&c, 14);
	if (!to)
		return XDP_ABORTED;
	__builtin_memcpy(to, macs, 12);
	return XDP_TX;
}

SEC("xdp.frags")
int renumber(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct tagged *tag = take(&c, sizeof(*tag));
	__u16 tci;

	if (!tag || (tag->tpid != bpf_htons(ETH_P_8021Q) && tag->tpid != bpf_htons(ETH_P_8021AD)))
		return XDP_PASS;
	tci = bpf_ntohs(tag->tci);
	tag->tci = bpf_htons((tci & 0xe000) | ((tci + 1000) & 0xfff));
	return tci & 0x1000 ? XDP_DROP : XDP_TX;
}

/** As far as it goes in either direction. */
SEC("xdp")
int slide(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	int delta, err;

	if (!p)
		return XDP_DROP;
	delta = (p[11] | (p[10] & 3) << 8) - 512;
	err = bpf_xdp_adjust_head(ctx, delta);
	if (!err) {
		c = packet_of(ctx);
		p = take(&c, 14);
		if (!p)
			return XDP_ABORTED;
		__builtin_memset(p, delta, 14);
	}
	return 50 - err;
}

char _license[] SEC("license") = "Dual BSD/GPL";
