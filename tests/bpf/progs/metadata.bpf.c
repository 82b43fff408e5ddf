/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata.bpf.c: metadata before a packet: made, read back, of forbidden lengths, and moved with the packet's head. */
#include "packet.h"

struct meta {
	__u32 mark, len;
};

INLINE struct meta *meta_of(struct xdp_md *ctx)
{
	struct meta *meta = (void *)(long)ctx->data_meta;

	return (void *)(meta + 1) <= (void *)(long)ctx->data ? meta : NULL;
}

SEC("xdp")
int mark(struct xdp_md *ctx)
{
	struct meta *meta;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*meta)))
		return XDP_ABORTED;
	meta = meta_of(ctx);
	if (!meta)
		return XDP_DROP;
	meta->mark = 0xfeedf00d;
	meta->len = ctx->data_end - ctx->data;
	return XDP_PASS;
}

SEC("xdp")
int any_length(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	int delta, err;

	if (!p)
		return XDP_DROP;
	delta = (p[11] & 1 ? 4 : 1) * (p[5] & 63) - 128;
	if (p[4] & 1 && p[5] & 1)
		delta = -180 - p[5]; /* up to the headroom's end less the 40 bytes that are out of reach, and beyond */
	err = bpf_xdp_adjust_meta(ctx, delta);
	if (!err) {
		struct meta *meta = meta_of(ctx);

		if (meta)
			meta->len = delta;
	}
	return 50 - err;
}

SEC("xdp")
int moved(struct xdp_md *ctx)
{
	struct meta *meta;
	int err;

	if (bpf_xdp_adjust_meta(ctx, -8))
		return XDP_ABORTED;
	meta = meta_of(ctx);
	if (!meta)
		return XDP_ABORTED;
	*meta = (struct meta){ 1, 2 };
	err = bpf_xdp_adjust_head(ctx, (int)(ctx->data_end - ctx->data) - 100);
	meta = meta_of(ctx);
	if (!meta)
		return XDP_ABORTED;
	if (meta->mark != 1 || meta->len != 2)
		return XDP_TX;
	if (ctx->rx_queue_index & 1 && bpf_xdp_adjust_meta(ctx, 8))
		return XDP_ABORTED;
	return err ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
