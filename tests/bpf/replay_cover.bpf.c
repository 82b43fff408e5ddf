/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_cover.bpf.c: programs whose lines run as often as their comments say, when packets of 42, 52, 42, 42 and 142
 * bytes come and odd numbered ones of jumps[] hold other().
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "replay_cover.h"

const volatile __u32 limit = 100;
volatile __u64 large, huge, rounds, weight, others;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} jumps SEC(".maps");

static __attribute__((noinline)) int weigh(__u32 length)
{
	if (length > 50) /* times: 5 ways: 2/2 */
		weight += length; /* times: 2 */
	return 0;
}

SEC("xdp")
int cover(struct xdp_md *ctx)
{
	__u32 length = (__u32)((long)ctx->data_end - (long)ctx->data), i;

	add_to_sum(length);
	if (length > limit)
		large++; /* times: 1 */
	if (length > 1000) /* times: 5 ways: 1/2 */
		huge++; /* times: 0 */
	for (i = 0; i < (length & 3); i++)
		rounds++; /* times: 8 */
	weigh(length);
	bpf_tail_call(ctx, &jumps, length == 52 || length == 142);
	return XDP_PASS; /* times: 3 */
}

SEC("xdp")
int other(struct xdp_md *ctx)
{
	others++; /* times: 2 */
	add_to_sum(1);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
