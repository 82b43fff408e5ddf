/* SPDX-License-Identifier: BSD-3-Clause */
/* load_several.bpf.c: what an object may hold: programs of several kinds, maps, global data, tail calls, priorities. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct flow {
	__u32 src, dst;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1000);
	__type(key, struct flow);
	__type(value, __u64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} flows SEC(".maps");

int last(struct xdp_md *ctx);
int first(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, sizeof(__u32));
	__array(values, int (struct xdp_md *));
} jumps SEC(".maps") = {
	.values = {[2] = (void *)&last, [5] = (void *)&first},
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

const volatile __u32 limit = 1500;
volatile __u32 seen;
volatile __u64 start = 0x1122334455667788;

struct {
	__uint(priority, 10);
	__uint(XDP_PASS, 0);
	__uint(XDP_DROP, 1);
} _first SEC(".xdp_run_config");

static __noinline int is_long(struct xdp_md *ctx, __u32 most)
{
	return ctx->data_end - ctx->data > most;
}

SEC("xdp")
int first(struct xdp_md *ctx)
{
	struct flow flow = {seen, 1};
	__u64 *n = bpf_map_lookup_elem(&flows, &flow);

	seen++;
	if (n)
		start = *n;
	if (is_long(ctx, limit))
		bpf_tail_call(ctx, &jumps, 2);
	return is_long(ctx, 100) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int last(struct xdp_md *ctx)
{
	return XDP_TX;
}

SEC("xdp.frags")
int with_frags(struct xdp_md *ctx)
{
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &ctx, sizeof(__u32));
	return XDP_PASS;
}

SEC("xdp/devmap")
int on_egress(struct xdp_md *ctx)
{
	return ctx->egress_ifindex ? XDP_PASS : XDP_DROP;
}

SEC("xdp/cpumap")
int on_cpu(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp_old_name")
int old_name(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("tc")
int not_xdp(struct __sk_buff *skb)
{
	return skb->len > 60;
}

SEC("something_else")
int unknown(void *ctx)
{
	return 0;
}

struct {
	int numbers[3];
} notes SEC("features") = {{1, 2, 3}};

char _license[] SEC("license") = "Dual BSD/GPL";
