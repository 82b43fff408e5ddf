/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmap.bpf.c: sends each packet to all ports of "to" but the one it came from, and has programs for what leaves there:
 * "stamp" writes the port's number over the sixth byte, "odd_only" lets out packets of odd length.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} to SEC(".maps");

/* Without them it is the port of entry 0. */
const volatile __u64 flags = BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS;

SEC("xdp.frags")
int to_all(struct xdp_md *ctx)
{
	(void)ctx;
	return bpf_redirect_map(&to, 0, flags);
}

SEC("xdp.frags/devmap")
int stamp(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;

	if (data + 6 > (__u8 *)(long)ctx->data_end)
		return XDP_ABORTED;
	data[5] = (__u8)ctx->egress_ifindex;
	return XDP_PASS;
}

SEC("xdp/devmap")
int odd_only(struct xdp_md *ctx)
{
	return (ctx->data_end - ctx->data) % 2 ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "BSD";
