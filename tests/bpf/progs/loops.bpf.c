/* SPDX-License-Identifier: BSD-3-Clause */
/* loops.bpf.c: loops with a bound that is known, with one that the packet gives, and nested. */
#include "packet.h"

INLINE __u32 rotate(__u32 x, int n)
{
	return x << n | x >> (32 - n);
}

SEC("xdp")
int hash_bytes(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u32 h = 0x811c9dc5, i;
	__u8 *p = c.at, *byte;

	for (i = 0; i < 512; i++) {
		byte = take(&c, 1);
		if (!byte)
			break;
		h = rotate((h ^ *byte) * 0x01000193, 3);
	}
	if (p + 4 <= (__u8 *)c.end)
		*(__u32 *)p = h;
	return h & 3;
}

SEC("xdp")
int count_bits(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u64 *p = take(&c, 8), x;
	__u32 n = 0;

	if (!p)
		return XDP_DROP;
	for (x = *p; x && n < 64; n++)
		x &= x - 1;
	return n;
}

SEC("xdp")
int sort(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14), bytes[12], t;
	int i, k;

	if (!p)
		return XDP_DROP;
	for (i = 0; i < 12; i++)
		bytes[i] = p[i];
	for (i = 0; i < 12; i++) {
		for (k = 0; k < 11; k++) {
			if (bytes[k] <= bytes[k + 1])
				continue;
			t = bytes[k];
			bytes[k] = bytes[k + 1];
			bytes[k + 1] = t;
		}
	}
	for (i = 0; i < 12; i++)
		p[i] = bytes[i];
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
