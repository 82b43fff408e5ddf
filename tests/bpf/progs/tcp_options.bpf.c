/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_options.bpf.c: reads TCP options (RFC 9293, 3.2) up to the MSS, clamps it and mends the checksum. */
#include "packet.h"

const volatile __u16 limit = 1200;
__u64 clamped, without;

SEC("xdp")
int clamp(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct tcphdr *tcp;
	struct iphdr *ip;
	__u32 left;
	int i;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)) || ip->protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = take(&c, sizeof(*tcp));
	if (!tcp || tcp->doff < 5)
		return XDP_DROP;
	left = tcp->doff * 4 - sizeof(*tcp);
	for (i = 0; i < 10 && left; i++) {
		__u8 *kind = take(&c, 1), *len, *mss;

		if (!kind)
			return XDP_DROP;
		left--;
		if (*kind == 0)
			break;
		if (*kind == 1)
			continue;
		len = take(&c, 1);
		if (!len || *len < 2 || *len - 1u > left)
			return XDP_DROP;
		if (*kind == 2 && *len == 4) {
			__u16 was, is;

			mss = take(&c, 2);
			if (!mss)
				return XDP_DROP;
			was = mss[0] << 8 | mss[1];
			if (was <= limit)
				return XDP_PASS;
			is = limit;
			mss[0] = is >> 8;
			mss[1] = (__u8)is;
			tcp->check = fold((__u16)~tcp->check + (__u32)(__u16)~bpf_htons(was) + bpf_htons(is));
			clamped++;
			return XDP_TX;
		}
		left -= *len - 1;
		if (*len > 40 || !take(&c, *len - 2u))
			return XDP_DROP;
	}
	without++;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
