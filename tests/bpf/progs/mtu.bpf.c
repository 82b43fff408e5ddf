/* SPDX-License-Identifier: BSD-3-Clause */
/* mtu.bpf.c: bpf_check_mtu() about the port the packet came from, about none, and with numbers that wrap; and clocks. */
#include "packet.h"

SEC("xdp")
int mtu(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	__u32 len;
	__s32 more;
	long ret;

	if (!p || ctx->ingress_ifindex == 1) /* the kernel's loopback */
		return XDP_PASS;
	len = p[6] % 4 ? 0 : p[7] << 8 | p[8];
	more = p[9] % 4 ? (__s8)p[10] * 16 : (__s32)(p[10] << 24 | p[11]);
	switch (p[12] % 8) {
	case 0:
		ret = bpf_check_mtu(ctx, 12345, &len, more, 0);
		break;
	case 1:
		ret = bpf_check_mtu(ctx, 0, &len, more, 1);
		break;
	case 2:
		ret = bpf_check_mtu(ctx, ctx->ingress_ifindex, &len, more, 0);
		break;
	default:
		ret = bpf_check_mtu(ctx, 0, &len, more, 0);
	}
	p[0] = ret;
	p[1] = len;
	p[2] = len >> 8;
	p[3] = len >> 16;
	return ret < 0 ? XDP_DROP : bpf_ktime_get_tai_ns() ? XDP_TX : XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
