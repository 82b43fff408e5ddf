/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_large.bpf.c: arrays that are large and hardly used, records of several sizes, and a helper and a map that no
 * program of ours may use.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct page {
	__u64 first;
	__u8 rest[4088];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 18);
	__type(key, __u32);
	__type(value, struct page);
} large SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4000000000);
	__type(key, __u32);
	__type(value, struct page);
} huge SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << 20);
	__type(key, __u32);
	__type(value, __u64);
} each SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} records SEC(".maps");

struct event {
	__u64 number;
};
const struct event *event_type;

SEC("xdp")
int use_large(struct xdp_md *ctx)
{
	__u32 key = 200000, other = 1000000;
	struct page *page = bpf_map_lookup_elem(&large, &key);
	__u64 *n = bpf_map_lookup_elem(&each, &other);

	if (page)
		page->first++;
	if (n)
		*n += 1;
	return XDP_PASS;
}

SEC("xdp")
int use_huge(struct xdp_md *ctx)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&huge, &key) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int record(struct xdp_md *ctx)
{
	struct event pair[2] = { { .number = 1 }, { .number = 2 } };

	bpf_ringbuf_output(&records, pair, sizeof(pair[0]), 0);
	bpf_ringbuf_output(&records, pair, sizeof(pair), 0);
	return XDP_PASS;
}

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__uint(value_size, 4);
} socks SEC(".maps");

SEC("xdp")
int look_up(struct xdp_md *ctx)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&socks, &key) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int task(struct xdp_md *ctx)
{
	return bpf_get_current_task() ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
