/* SPDX-License-Identifier: BSD-3-Clause */
/* subprograms.bpf.c: bpf-to-bpf calls: static and global functions, arguments on the caller's stack, deep chains. */
#include "packet.h"

#define NOINLINE __attribute__((noinline))

struct digest {
	__u32 a, b;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct digest);
} digests MAPS;

static NOINLINE void stir(struct digest *d, __u32 x)
{
	volatile __u32 scratch[8] = { d->a, d->b, x };

	d->a = (scratch[0] << 5 | scratch[0] >> 27) + scratch[2];
	d->b ^= scratch[0] * 2654435761u;
}

static NOINLINE int level4(struct digest *d, __u32 x)
{
	stir(d, x + 4);
	return d->a & 1;
}

static NOINLINE int level3(struct digest *d, __u32 x)
{
	struct digest mine = { x, d->b };
	int r = level4(&mine, x + 3);

	stir(d, mine.b);
	return r + level4(d, x);
}

static NOINLINE int level2(struct digest *d, __u32 x)
{
	return level3(d, x * 3) + level3(d, ~x);
}

NOINLINE int global_sum(__u32 a, __u64 b, __u32 c)
{
	volatile __u64 sum = a;

	sum += b >> 3;
	return (int)(sum ^ c);
}

NOINLINE int global_first(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u32 *word = take(&c, 4);

	return word ? (int)*word : -1;
}

SEC("xdp")
int digest(struct xdp_md *ctx)
{
	__u32 key = ctx->data_end - ctx->data & 3, x = global_first(ctx);
	struct digest d = { 1, 2 }, *to;
	int r = level2(&d, x);

	to = bpf_map_lookup_elem(&digests, &key);
	if (to) {
		stir(to, d.a);
		to->b += d.b;
	}
	return (r + global_sum(x, d.b, d.a)) & 7;
}

static NOINLINE int cut(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 4);
}

SEC("xdp")
int moves(struct xdp_md *ctx)
{
	struct cursor c;
	__u8 *p;

	if (cut(ctx))
		return XDP_DROP;
	c = packet_of(ctx);
	p = take(&c, 14);
	if (!p)
		return XDP_ABORTED;
	p[13] = p[0] + p[1];
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
