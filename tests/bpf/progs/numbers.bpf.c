/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numbers.bpf.c: arithmetic on what the packet holds, signed and unsigned, on 8 to 64 bits; results go into the packet.
 * Compiled for v1, v2 and v3: the same source gives jumps and additions of other kinds.
 */
#include "packet.h"

INLINE __u64 *input(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);

	return take(&c, 14);
}

/** Keeps the compiler from knowing a number. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

SEC("xdp")
int words64(struct xdp_md *ctx)
{
	__u64 *p = input(ctx), x, y, r;
	__u32 n;

	if (!p)
		return XDP_DROP;
	x = *p;
	y = x << 17 | x >> 47;
	n = x & 63;
	OPAQUE(n);
	r = x + y * 3 - (x ^ ~y);
	r ^= x / (y & 0xffff);
	r += x % (y & 0xff);
	r ^= (__s64)x >> n;
	r += x >> n | y << n;
	r = -r;
	r += (__s64)x < (__s64)y ? x & y : x | y;
	r += x > y ? 17 : (__s64)y >= -5 ? 29 : 31;
	r ^= (__s64)(__s32)x;
	r += (__s64)(__s16)(x >> 3) * (__s8)y;
	*p = r;
	return r & 7;
}

SEC("xdp")
int words32(struct xdp_md *ctx)
{
	__u64 *p = input(ctx);
	__u32 x, y, n, r;
	__s32 s, t;

	if (!p)
		return XDP_DROP;
	x = *p;
	y = *p >> 32;
	s = x;
	t = y;
	n = x & 31;
	OPAQUE(n);
	r = x + y - x * y;
	r ^= x / (y & 0xff);
	r += y % (x & 7);
	r ^= s >> n;
	r += x << n | y >> n;
	r += s < t ? 1 : s > 100 ? 2 : t <= -100 ? 4 : 8;
	r ^= (__u32)-s;
	r += x < y ? x : y;
	r += (__s16)x + (__s8)y;
	if (s >= 0 && t < 0)
		r = ~r;
	*p = (__u64)r << 32 | (r ^ x);
	return r & 7;
}

/** Comparisons of every kind with registers and constants, as bits. */
SEC("xdp")
int compare(struct xdp_md *ctx)
{
	__u64 *p = input(ctx), bits = 0;
	__s64 a, b;
	__s32 c, d;

	if (!p)
		return XDP_DROP;
	a = (__s64)*p;
	b = (__s64)(*p << 32 | *p >> 32);
	c = (__s32)a;
	d = (__s32)(a >> 32);
#define NOTE(test)                                                                                                 \
	do {                                                                                                       \
		bits <<= 1;                                                                                        \
		if (test)                                                                                          \
			bits |= 1;                                                                                 \
		OPAQUE(bits);                                                                                      \
	} while (0)
	NOTE(a < b);
	NOTE(a <= b);
	NOTE((__u64)a < (__u64)b);
	NOTE((__u64)a <= (__u64)b);
	NOTE(a == b);
	NOTE(a & 0x80);
	NOTE(a > -1);
	NOTE((__u64)a > 0xffffffff80000000ull);
	NOTE(c < d);
	NOTE(c <= d);
	NOTE((__u32)c < (__u32)d);
	NOTE((__u32)c <= (__u32)d);
	NOTE(c == d);
	NOTE(c & d);
	NOTE(c >= -7);
	NOTE((__u32)c > 0x80000000u);
	NOTE(d != 0x00110011);
	*p = bits;
	return XDP_TX;
}

SEC("xdp")
int swaps(struct xdp_md *ctx)
{
	__u64 *p = input(ctx), x;

	if (!p)
		return XDP_DROP;
	x = *p;
	x ^= __builtin_bswap64(x) + __builtin_bswap32((__u32)x) + __builtin_bswap16((__u16)(x >> 7));
	x += bpf_htonl(bpf_ntohs((__u16)x)) ^ bpf_be64_to_cpu(~x);
	*p = x;
	return XDP_TX;
}

/* clang 14 never writes a modulo, and its assembler knows none: "r1 %= r2" and "w1 %= w2" as numbers. */
#define MODULO(name, code)                                                                                         \
	INLINE __u64 name(__u64 a, __u64 b)                                                                        \
	{                                                                                                          \
		asm volatile("r1 = %0\n\tr2 = %1\n\t.quad " code "\n\t%0 = r1" : "+r"(a) : "r"(b) : "r1", "r2");     \
		return a;                                                                                          \
	}
MODULO(modulo64, "0x219f")
MODULO(modulo32, "0x219c")

/** What C leaves undefined, and RFC 9669 does not. */
SEC("xdp")
int edges(struct xdp_md *ctx)
{
	__u64 *p = input(ctx), x, y, r;

	if (!p)
		return XDP_DROP;
	x = *p;
	y = x & 1 ? 0 : x >> 3;
	r = x;
	asm volatile("%0 /= %1" : "+r"(r) : "r"(y));
	r += modulo64(x, y) ^ modulo32(x, y);
	y = *p >> 40;
	asm volatile("%0 <<= %1" : "+r"(x) : "r"(y));
	r ^= x;
	asm volatile("%0 s>>= %1" : "+r"(r) : "r"(y));
	r += *p;
	asm volatile("%0 >>= %1" : "+r"(r) : "r"(y));
	*p = r ^ x;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
