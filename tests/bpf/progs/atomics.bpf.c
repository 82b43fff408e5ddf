/* SPDX-License-Identifier: BSD-3-Clause */
/* atomics.bpf.c (v3): every atomic operation, with and without fetching, on 32 and 64 bits, in maps and on stack. */
#include "packet.h"

struct cell {
	__u64 wide[8];
	__u32 narrow[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct cell);
} cells MAPS;

INLINE __u64 wide(__u64 *w, __u64 x)
{
	__u64 r = 0;

	r += __sync_fetch_and_add(&w[0], x);
	r = r * 3 + __sync_fetch_and_or(&w[1], x);
	r = r * 3 + __sync_fetch_and_and(&w[2], x | 0xff00ff);
	r = r * 3 + __sync_fetch_and_xor(&w[3], x);
	r = r * 3 + __sync_lock_test_and_set(&w[4], x);
	r = r * 3 + __sync_val_compare_and_swap(&w[5], w[5], x);
	r = r * 3 + __sync_val_compare_and_swap(&w[6], x & 0xff, x + 1);
	__sync_fetch_and_add(&w[7], r);
	return r;
}

INLINE __u32 narrow(__u32 *w, __u32 x)
{
	__u32 r = 0;

	r += __sync_fetch_and_add(&w[0], x);
	r = r * 3 + __sync_fetch_and_or(&w[1], x);
	r = r * 3 + __sync_fetch_and_and(&w[2], x | 0xff00ff);
	r = r * 3 + __sync_fetch_and_xor(&w[3], x);
	r = r * 3 + __sync_lock_test_and_set(&w[4], x);
	r = r * 3 + __sync_val_compare_and_swap(&w[5], w[5], x);
	r = r * 3 + __sync_val_compare_and_swap(&w[6], x & 0xff, x + 1);
	__sync_fetch_and_xor(&w[7], r);
	return r;
}

SEC("xdp")
int in_map(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u64 *p = take(&c, 14), r;
	struct cell *cell;
	__u32 key;

	if (!p)
		return XDP_DROP;
	key = *p & 3;
	cell = bpf_map_lookup_elem(&cells, &key);
	if (!cell)
		return XDP_ABORTED;
	r = wide(cell->wide, *p);
	r ^= narrow(cell->narrow, *p >> 16);
	*p = r;
	return r & 3;
}

SEC("xdp")
int on_stack(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u64 *p = take(&c, 14);
	struct cell cell = { { 1, 2, 3, 4, 5, 6, 7, 8 }, { 9, 10, 11, 12, 13, 14, 15, 0x80000000 } };
	int i;

	if (!p)
		return XDP_DROP;
	*p = wide(cell.wide, *p) + narrow(cell.narrow, *p >> 5);
	for (i = 0; i < 8; i++)
		*p = *p * 5 + cell.wide[i] + cell.narrow[i];
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
