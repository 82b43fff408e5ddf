/* SPDX-License-Identifier: BSD-3-Clause */
/* records.bpf.c: RINGBUF: records that are copied in, written in place, given up, and too long. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} small MAPS;

struct record {
	__u64 number;
	__u32 len;
	__u8 head[14];
};

__u64 number = 1000;

SEC("xdp")
int copied(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct record record = { number++, c.end - c.at, { 0 } };
	__u8 *head = take(&c, 14);
	long err;

	if (!head)
		return XDP_DROP;
	__builtin_memcpy(record.head, head, 14);
	err = bpf_ringbuf_output(&ring, &record, 11 + (head[5] & 15), head[11] & 1 ? BPF_RB_NO_WAKEUP : 0);
	if (head[11] & 2)
		err += bpf_ringbuf_output(&ring, &record, 14, 1 << 5); /* no such flag */
	return 50 - err;
}

SEC("xdp")
int in_place(struct xdp_md *ctx)
{
	__u32 len = ctx->data_end - ctx->data;
	struct record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record)
		return XDP_ABORTED;
	record->number = number;
	record->len = len;
	__builtin_memset(record->head, len, sizeof(record->head));
	if (len % 3 == 0) {
		bpf_ringbuf_discard(record, 0);
		return XDP_DROP;
	}
	number += 10;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return XDP_PASS;
}

/** Two at once, given back in the other order; and a reservation that cannot be. */
SEC("xdp")
int two(struct xdp_md *ctx)
{
	__u64 *a, *b;

	a = bpf_ringbuf_reserve(&small, 4096, 0);
	if (a) { /* never: there is the header, too */
		bpf_ringbuf_discard(a, 0);
		return XDP_ABORTED;
	}
	a = bpf_ringbuf_reserve(&small, 8, 0);
	if (!a)
		return XDP_DROP;
	b = bpf_ringbuf_reserve(&small, 16, 0);
	if (!b) {
		bpf_ringbuf_discard(a, 0);
		return XDP_TX;
	}
	*a = 1;
	b[0] = 2;
	b[1] = ctx->data_end - ctx->data;
	bpf_ringbuf_submit(b, 0);
	bpf_ringbuf_submit(a, 0);
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
