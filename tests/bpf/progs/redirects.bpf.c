/* SPDX-License-Identifier: BSD-3-Clause */
/* redirects.bpf.c: redirect, redirect_map to DEVMAP, DEVMAP_HASH, CPUMAP and XSKMAP: hits, misses, wrong flags. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u32);
} ports MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} hashed MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} cpus MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} sockets MAPS;

INLINE __u8 *six(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);

	return take(&c, 14);
}

SEC("xdp")
int to_port(struct xdp_md *ctx)
{
	__u8 *p = six(ctx);

	return p ? bpf_redirect_map(&ports, (p[11] & 31) | (__u64)(p[5] & 1) << 32, p[10] & 3) : XDP_DROP;
}

SEC("xdp")
int to_hashed(struct xdp_md *ctx)
{
	__u8 *p = six(ctx);
	__u64 flags;

	if (!p)
		return XDP_DROP;
	flags = p[9] & 16 ? BPF_F_BROADCAST | (p[9] & 32 ? BPF_F_EXCLUDE_INGRESS : 0) : p[10] & 3;
	return bpf_redirect_map(&hashed, p[11] * (p[8] & 1 ? 1u : 0x1000001u), flags);
}

SEC("xdp")
int to_cpu(struct xdp_md *ctx)
{
	__u8 *p = six(ctx);

	return p ? bpf_redirect_map(&cpus, p[11] & 15, p[10] & 7) : XDP_DROP;
}

SEC("xdp")
int to_socket(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;

	if (bpf_map_lookup_elem(&sockets, &queue))
		return bpf_redirect_map(&sockets, queue, 0);
	return bpf_redirect_map(&sockets, queue, XDP_TX);
}

SEC("xdp")
int to_number(struct xdp_md *ctx)
{
	__u8 *p = six(ctx);

	return p ? bpf_redirect(p[11], p[10] & 1) : XDP_DROP;
}

/** A look at the entry before, as some programs do. */
SEC("xdp")
int looked_up(struct xdp_md *ctx)
{
	struct bpf_devmap_val *val;
	__u8 *p = six(ctx);
	__u32 key, *port;

	if (!p)
		return XDP_DROP;
	key = p[11] & 31;
	port = bpf_map_lookup_elem(&ports, &key);
	if (!port)
		return XDP_TX;
	val = bpf_map_lookup_elem(&hashed, &key);
	return val ? val->ifindex == *port : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
