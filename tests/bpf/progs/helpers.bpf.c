/* SPDX-License-Identifier: BSD-3-Clause */
/* helpers.bpf.c: helpers whose answers nobody can foretell: clocks, random numbers; and traces, CPU, length. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} noted MAPS;

INLINE void note(__u32 key, __u64 value)
{
	bpf_map_update_elem(&noted, &key, &value, BPF_ANY);
}

SEC("xdp")
int clocks(struct xdp_md *ctx)
{
	__u64 a = bpf_ktime_get_ns(), b = bpf_ktime_get_ns();

	note(0, a <= b && a > 0);
	return b - a < 1000000000ull ? XDP_PASS : XDP_ABORTED;
}

SEC("xdp")
int coarse(struct xdp_md *ctx)
{
	note(1, bpf_ktime_get_boot_ns() > 0);
	note(2, bpf_ktime_get_coarse_ns() > 0);
	return XDP_PASS;
}

SEC("xdp")
int jiffies(struct xdp_md *ctx)
{
	note(3, bpf_jiffies64() > 0);
	return XDP_PASS;
}

SEC("xdp")
int dice(struct xdp_md *ctx)
{
	__u32 a = bpf_get_prandom_u32(), i, differs = 0;

	for (i = 0; i < 8; i++)
		differs |= a ^ bpf_get_prandom_u32();
	note(4, differs != 0);
	return a % 6 < 6 ? XDP_DROP : XDP_ABORTED;
}

SEC("xdp")
int cpu(struct xdp_md *ctx)
{
	note(5, bpf_get_smp_processor_id());
	return bpf_get_smp_processor_id();
}

SEC("xdp")
int trace(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;

	if (len > 20)
		return XDP_PASS; /* traces of a few are enough */
	note(6, bpf_printk("len %u of %x", len, ctx->rx_queue_index) > 0);
	return bpf_printk("plain") > 0 ? XDP_TX : XDP_ABORTED;
}

/** What is returned is compared, too: the length of the line, or what is wrong. */
SEC("xdp")
int long_trace(struct xdp_md *ctx)
{
	static const char four[] = "%u %d %llx %u";
	__u64 args[4] = { ctx->data_end - ctx->data, -5, 1ull << 40, 7 };

	if (args[0] > 20)
		return XDP_PASS;
	note(8, bpf_trace_vprintk(four, sizeof(four), args, sizeof(args)));
	note(9, bpf_trace_vprintk(four, sizeof(four), args, 3 * sizeof(args[0])));
	note(10, bpf_trace_vprintk(four, sizeof(four), args, 7));
	note(11, bpf_trace_vprintk(four, sizeof(four), NULL, 0));
	return XDP_TX;
}

SEC("xdp")
int length(struct xdp_md *ctx)
{
	note(7, bpf_xdp_get_buff_len(ctx));
	return bpf_xdp_get_buff_len(ctx) == ctx->data_end - ctx->data ? XDP_TX : XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
