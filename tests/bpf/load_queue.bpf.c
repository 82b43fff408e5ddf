/* SPDX-License-Identifier: BSD-3-Clause */
/* load_queue.bpf.c: one program uses a type of map that leat does not have. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 10);
	__type(value, __u32);
} queue SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 10);
	__type(key, __u32);
	__type(value, __u32);
} plain SEC(".maps");

SEC("xdp")
int uses_queue(struct xdp_md *ctx)
{
	__u32 value = 1;

	return bpf_map_push_elem(&queue, &value, 0) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int uses_array(struct xdp_md *ctx)
{
	__u32 key = 1;

	return bpf_map_lookup_elem(&plain, &key) ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
