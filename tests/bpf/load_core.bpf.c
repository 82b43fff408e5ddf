/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load_core.bpf.c: reads members whose places the loader must find out: load_core_target.bpf.c has them elsewhere, and
 * lacks one.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct moved {
	__u32 a, b;
	__u16 gone;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[64]);
} bytes SEC(".maps");

SEC("xdp")
int core(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct moved *m = bpf_map_lookup_elem(&bytes, &zero);

	if (!m)
		return XDP_ABORTED;
	return m->b + (bpf_core_field_exists(m->gone) ? 1000 : 0);
}

SEC("xdp")
int core_poison(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct moved *m = bpf_map_lookup_elem(&bytes, &zero);

	return m ? m->gone : XDP_ABORTED;
}

char _license[] SEC("license") = "GPL";
