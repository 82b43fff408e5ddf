/* SPDX-License-Identifier: BSD-3-Clause */
/* lengths.bpf.c: ARRAY and PERCPU_ARRAY count packets by length; the verdict depends on where the packet came in. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 24);
	__type(key, __u32);
	__type(value, __u64);
} by_length MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u8[13]);
} by_queue MAPS;

SEC("xdp")
int count_lengths(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data, slot = len / 64, queue = ctx->rx_queue_index;
	__u64 *n = bpf_map_lookup_elem(&by_length, &slot);
	__u8 *bytes = bpf_map_lookup_elem(&by_queue, &queue);

	if (n)
		__sync_fetch_and_add(n, len);
	if (bytes)
		bytes[len & 7]++;
	return n ? (ctx->ingress_ifindex + queue) % 5 : 77; /* 77 is no verdict */
}

SEC("xdp")
int write_elements(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data, slot = len / 8 % 32;
	__u8 bytes[13] = { 1, 2, 3, len, len >> 8 };
	__u64 value = len;
	int a, b;

	a = bpf_map_update_elem(&by_length, &slot, &value, len & 7); /* NOEXIST, EXIST, both, LOCK */
	b = bpf_map_update_elem(&by_queue, &slot, bytes, len >> 2 & 7);
	if (len & 1)
		a += bpf_map_delete_elem(&by_length, &slot);
	return a ? -a : -b;
}

char _license[] SEC("license") = "Dual BSD/GPL";
