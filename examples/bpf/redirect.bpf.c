/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redirect.bpf.c: sends every packet out of one port: entry 0 of the map "to". Without an entry packets are dropped.
 *
 * In a configuration: { object: redirect.bpf.o, maps: { to: { 0: PORT } } }
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} to SEC(".maps");

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
	(void)ctx;
	return bpf_redirect_map(&to, 0, XDP_DROP);
}

char _license[] SEC("license") = "BSD";
