/* SPDX-License-Identifier: BSD-3-Clause */
/* load_nested.bpf.c: a map of maps, with a template and an initial element. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 5);
	__type(key, __u32);
	__type(value, __u64);
} inner_one SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, struct inner);
} outer SEC(".maps") = {
	.values = {[1] = &inner_one},
};

SEC("xdp")
int nested(struct xdp_md *ctx)
{
	__u32 key = 1;
	void *inner = bpf_map_lookup_elem(&outer, &key);

	return inner && bpf_map_lookup_elem(inner, &key) ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
