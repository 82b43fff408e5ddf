/* SPDX-License-Identifier: BSD-3-Clause */
/* tails.bpf.c: packets are cut and grown with adjust_tail; what was refused is counted by its error. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} errors MAPS;

INLINE int adjust(struct xdp_md *ctx, int delta)
{
	int err = bpf_xdp_adjust_tail(ctx, delta);
	__u32 key = (__u32)-err & 255, *n = bpf_map_lookup_elem(&errors, &key);

	if (n)
		++*n;
	return err;
}

SEC("xdp")
int truncate(struct xdp_md *ctx)
{
	int len = ctx->data_end - ctx->data;

	return len > 64 && adjust(ctx, 64 - len) ? XDP_ABORTED : XDP_TX;
}

SEC("xdp")
int resize(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	int delta;

	if (!p)
		return XDP_DROP;
	delta = (int)(p[5] | (p[11] & 31) << 8) - 4096;
	return adjust(ctx, delta) ? XDP_DROP : XDP_PASS;
}

/** What was cut off does not come back. */
SEC("xdp")
int regrow(struct xdp_md *ctx)
{
	int len = ctx->data_end - ctx->data, cut = len > 60 ? 20 : 0;

	return adjust(ctx, -cut) || adjust(ctx, cut + 10) ? XDP_ABORTED : XDP_TX;
}

/** Grows by what is nearly too much, writes the last bytes, and cuts again. */
SEC("xdp")
int to_the_brim(struct xdp_md *ctx)
{
	int len = ctx->data_end - ctx->data, more = 4096 - 256 - 320 - len;
	struct cursor c;
	__u8 *p;

	if (!adjust(ctx, more + 1))
		return XDP_ABORTED;
	if (adjust(ctx, more))
		return XDP_DROP;
	c = packet_of(ctx);
	p = take(&c, 3520);
	if (!p)
		return XDP_REDIRECT;
	p[3519] = 0x5a;
	p[0] = p[3518];
	return adjust(ctx, -(len & 1 ? more : more - 3)) ? XDP_ABORTED : XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
