/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks.bpf.c: bpf_loop() with a callback that changes its caller's stack, ends early, or never runs. */
#include "packet.h"

struct walk {
	__u64 sum;
	__u32 until;
};

static int add(__u32 i, void *arg)
{
	struct walk *w = arg;

	w->sum = w->sum * 31 + i;
	return i == w->until;
}

SEC("xdp")
int looped(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	struct walk w = { 7, 0 };
	long n;

	if (!p)
		return XDP_DROP;
	w.until = p[5];
	n = bpf_loop(p[11], add, &w, 0);
	p[0] ^= w.sum;
	p[1] ^= w.sum >> 8;
	p[2] = n;
	n = bpf_loop((1 << 23) + 1, add, &w, 0);
	/* the kernel, where it does the loop in place, leaves the upper half 0 */
	return (int)n < 0 ? 50 - (int)n : XDP_TX;
}

/* ---- one loop within another, on the frame of who called both ---- */

struct rounds {
	struct xdp_md *ctx;
	__u64 sum;
	__u32 outer, last;
};

/** The packet may lie elsewhere since the last round: its bytes are looked for each time. */
static int take_byte(__u32 i, void *arg)
{
	struct rounds *r = arg;
	struct cursor c = packet_of(r->ctx);
	__u8 *p;

	c.at += i & 15;
	p = take(&c, 1);
	if (!p)
		return 1;
	r->sum = r->sum * 33 + *p + r->outer;
	*p = r->sum;
	return (__u8)r->sum == 77;
}

static int move_on(__u32 i, void *arg)
{
	struct rounds *r = arg;

	r->outer = i;
	r->last += bpf_loop(i + 3, take_byte, r, 0);
	return bpf_xdp_adjust_head(r->ctx, i % 2 ? -4 : 4) != 0;
}

SEC("xdp")
int rounds(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	struct rounds r = { ctx, 0, 0, 0 };
	long n;

	if (!p)
		return XDP_DROP;
	n = bpf_loop(p[11] % 9, move_on, &r, 0);
	return (n + r.last + r.sum) % 2 ? XDP_TX : XDP_PASS;
}

/* ---- which function is called back depends on the packet ---- */

static int halve(__u32 i, void *arg)
{
	__u64 *n = arg;

	*n /= 2;
	return !*n;
}

static int triple(__u32 i, void *arg)
{
	__u64 *n = arg;

	*n = *n * 3 + 1;
	return *n > 100000;
}

SEC("xdp")
int either(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	__u64 n = 27;
	long ran;

	if (!p)
		return XDP_DROP;
	n += p[5];
	if (p[4] % 2)
		ran = bpf_loop(p[11], halve, &n, 0);
	else
		ran = bpf_loop(p[11], triple, &n, 0);
	p[0] = n;
	p[1] = n >> 8;
	p[2] = ran;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
