/* SPDX-License-Identifier: BSD-3-Clause */
/* globals.bpf.c: global data of every kind: constants, tables, set and zeroed variables, sections of one's own. */
#include "packet.h"

const volatile __u32 limit = 600, factor = 3;
const volatile __u16 table[16] = { 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987 };
static const char greeting[] = "hello";

struct total {
	__u64 packets, bytes;
	struct {
		__u32 least, most;
	} len;
} total = { .len = { .least = 0xffffffff } };

__u64 zeroed[8];
static __u8 hidden = 7;
__u32 own SEC(".data.own") = 12;
const volatile __s32 signed_constant SEC(".rodata.own") = -5;

SEC("xdp")
int sum_up(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;

	total.packets++;
	total.bytes += len * factor;
	if (len < total.len.least)
		total.len.least = len;
	if (len > total.len.most)
		total.len.most = len;
	zeroed[len & 7] += table[len >> 3 & 15];
	hidden = hidden * 5 + len;
	own += signed_constant;
	return len > limit ? XDP_DROP : hidden & 3;
}

SEC("xdp")
int text(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	__u32 i;

	if (!p)
		return XDP_DROP;
	i = p[11] & 7;
	p[0] ^= i < sizeof(greeting) ? ((volatile const char *)greeting)[i] : 0;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
