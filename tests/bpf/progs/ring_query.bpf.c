/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_query.bpf.c: a ring that nobody empties between packets: it fills up, and says how full it is. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} last MAPS;

INLINE void note(__u32 key, __u64 value)
{
	bpf_map_update_elem(&last, &key, &value, BPF_ANY);
}

SEC("xdp")
int fill(struct xdp_md *ctx)
{
	__u64 bytes[10] = { ctx->data_end - ctx->data };

	note(0, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	note(1, bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE));
	note(2, bpf_ringbuf_query(&ring, BPF_RB_PROD_POS));
	note(3, bpf_ringbuf_query(&ring, 77)); /* no such question */
	return 50 - bpf_ringbuf_output(&ring, bytes, sizeof(bytes), 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
