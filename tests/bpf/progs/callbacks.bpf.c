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

char _license[] SEC("license") = "Dual BSD/GPL";
