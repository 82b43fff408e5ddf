/* SPDX-License-Identifier: BSD-3-Clause */
/* load_legacy.bpf.c: maps as they were defined before BTF. Compiled with and without BTF. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct map_definition {
	__u32 type, key_size, value_size, max_entries, map_flags;
	__u32 more[2];
};

struct map_definition SEC("maps") counts = {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u64),
	.max_entries = 4,
};

struct map_definition SEC("maps") flows = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(__u64),
	.value_size = 24,
	.max_entries = 77,
	.map_flags = BPF_F_NO_PREALLOC,
};

static struct map_definition SEC("maps") hidden = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u32),
	.max_entries = 3,
};

struct ____btf_map_counts {
	__u32 key;
	__u64 value;
};

struct ____btf_map_counts annotation SEC(".maps.counts") = {0};

SEC("xdp_legacy")
int legacy(struct xdp_md *ctx)
{
	__u64 key = 7, *n;
	__u32 idx = 1, *m;

	n = bpf_map_lookup_elem(&counts, &idx);
	if (n)
		++*n;
	m = bpf_map_lookup_elem(&hidden, &idx);
	if (m)
		++*m;
	return bpf_map_lookup_elem(&flows, &key) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
