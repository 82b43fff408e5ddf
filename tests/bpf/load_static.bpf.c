/* SPDX-License-Identifier: BSD-3-Clause */
/* load_static.bpf.c: an entry program that is static, and a kind of pinning that only its author's loader knows. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, 16);
	__uint(value_size, 4);
	__uint(max_entries, 16);
	__uint(pinning, 16);
} pinned SEC(".maps");

__attribute__((used)) SEC("xdp")
static int entry(struct xdp_md *ctx)
{
	__u64 key[2] = {1, 2};

	return bpf_map_lookup_elem(&pinned, key) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
