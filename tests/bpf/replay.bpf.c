/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.bpf.c: several programs that together use what `leat replay` can show. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAP(map, kind, n, key_type, value_type)    \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_##kind); \
		__uint(max_entries, n);            \
		__type(key, key_type);             \
		__type(value, value_type);         \
	} map SEC(".maps")

enum mood { CALM, WILD };

struct setting {
	enum mood mood;
	__u8 mac[6];
	char name[10];
};

struct lpm {
	__u32 prefixlen;
	__u8 addr[4];
};

struct sample {
	__u32 length;
	__u16 port, queue;
};
const struct sample *sample_type;

struct packet_sample {
	struct sample sample;
	__u8 packet[4];
};
const struct packet_sample *packet_sample_type;

struct cfg {
	__u32 limit;
	__u32 step : 4, on : 1;
	char name[8];
};
const volatile struct cfg cfg = { .limit = 100, .step = 1 };
volatile __u32 table[4];
__u64 random;

MAP(counts, ARRAY, 4, __u32, __u64);
MAP(percpu, PERCPU_ARRAY, 2, __u32, __u32);
MAP(settings, HASH, 8, __be32, struct setting);
MAP(ports, DEVMAP, 8, __u32, __u32);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 8);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct lpm);
	__type(value, __u32);
} nets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, 4);
	__uint(value_size, 4);
} jumps SEC(".maps");

static __always_inline __u32 length_of(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	__u32 zero = 0, length = length_of(ctx), key = length > cfg.limit;
	__u64 *n = bpf_map_lookup_elem(&counts, &key);
	__u32 *here = bpf_map_lookup_elem(&percpu, &zero);
	__be32 addr = bpf_htonl(0x0a000001);
	struct setting *s = bpf_map_lookup_elem(&settings, &addr);

	if (n)
		*n += cfg.step;
	if (here)
		*here += length;
	table[key]++;
	random = bpf_get_prandom_u32();
	return s && s->mood == WILD ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int route(struct xdp_md *ctx)
{
	struct lpm lpm = { .prefixlen = 32, .addr = { 10, 1, 2, 3 } };
	__u32 *port = bpf_map_lookup_elem(&nets, &lpm);

	return bpf_redirect_map(&ports, port ? *port : 7, XDP_TX);
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
	return bpf_redirect(5, 0);
}

/* Says redirect, but only of packets of 52 bytes where to. */
SEC("xdp")
int forget(struct xdp_md *ctx)
{
	if (length_of(ctx) >= 52)
		bpf_redirect(5, 0);
	if (length_of(ctx) == 142)
		bpf_redirect_map(&ports, 1000, XDP_ABORTED); /* takes it back */
	return XDP_REDIRECT;
}

SEC("xdp")
int sample(struct xdp_md *ctx)
{
	struct sample s = { .length = length_of(ctx), .port = ctx->ingress_ifindex, .queue = ctx->rx_queue_index };

	bpf_perf_event_output(ctx, &samples, BPF_F_CURRENT_CPU | 4ULL << 32, &s, sizeof(s));
	bpf_printk("length %d of \"%s\"", s.length, "a\tb");
	return XDP_PASS;
}

SEC("xdp")
int jump(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &jumps, ctx->rx_queue_index);
	return XDP_ABORTED;
}

SEC("xdp")
int grow(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, -4) || bpf_xdp_adjust_tail(ctx, 2))
		return XDP_ABORTED;
	return XDP_PASS;
}

/* Reads past the end of short packets: the kernel would not load it. */
SEC("xdp")
int reckless(struct xdp_md *ctx)
{
	volatile const char *data = (void *)(long)ctx->data;

	return data[99] == 1 ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int odd(struct xdp_md *ctx)
{
	return 77;
}

char _license[] SEC("license") = "Dual BSD/GPL";
