/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.bpf.c: xdp_load_bytes and xdp_store_bytes, within the packet, across its end, and far away. */
#include "packet.h"

SEC("xdp.frags")
int swap_ends(struct xdp_md *ctx)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);
	__u8 first[6], last[6];

	if (bpf_xdp_load_bytes(ctx, 0, first, 6) || bpf_xdp_load_bytes(ctx, len - 6, last, 6))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, last, 6) || bpf_xdp_store_bytes(ctx, len - 6, first, 6))
		return XDP_ABORTED;
	return XDP_TX;
}

SEC("xdp")
int anywhere(struct xdp_md *ctx)
{
	__u8 where[4], bytes[32] = { 0xaa, 0xbb };
	__u32 off, len;
	long err;

	if (bpf_xdp_load_bytes(ctx, 8, where, 4))
		return XDP_ABORTED;
	off = where[0] | (where[1] & 7) << 8;
	len = (where[2] & 31) + 1;
	if (where[3] & 0x80)
		off = -off;
	err = bpf_xdp_load_bytes(ctx, off, bytes, len);
	if (where[3] & 1)
		err += bpf_xdp_store_bytes(ctx, off + 1, bytes, len);
	bpf_xdp_store_bytes(ctx, 12, &bytes[1], 2);
	return 50 - err;
}

char _license[] SEC("license") = "Dual BSD/GPL";
