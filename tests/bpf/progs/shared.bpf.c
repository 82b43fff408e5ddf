/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared.bpf.c: several workers count the same packets in the same maps while others read and write them
 * (tests/bpf_concurrent.c). The key is the number that the packet carries. Keys below STEADY are only ever added to; the
 * others may be deleted and written at any time.
 */
#include "packet.h"

#define KEYS 1024
#define STEADY 512

enum slot { SLOT_ALL, SLOT_STEADY, SLOT_LOST, SLOT_FULL, SLOTS };

struct counts {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KEYS);
	__type(key, __u32);
	__type(value, struct counts);
} numbers MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KEYS / 4);
	__type(key, __u32);
	__type(value, struct counts);
} recent MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} own MAPS;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} all MAPS;

const volatile __u32 next_port = 1;

INLINE void note(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&own, &slot);

	if (n)
		++*n;
}

INLINE int add(void *map, __u32 key, __u32 len)
{
	struct counts *counts = bpf_map_lookup_elem(map, &key), first = { 1, len };
	long err;

	if (!counts) {
		err = bpf_map_update_elem(map, &key, &first, BPF_NOEXIST);
		if (!err)
			return SLOT_ALL;
		if (err != -17) /* EEXIST: another one was faster */
			return SLOT_FULL;
		counts = bpf_map_lookup_elem(map, &key);
		if (!counts)
			return SLOT_LOST;
	}
	__sync_fetch_and_add(&counts->packets, 1);
	__sync_fetch_and_add(&counts->bytes, len);
	return SLOT_ALL;
}

INLINE void count(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u32 len = c.end - c.at, zero = 0, key;
	__u64 *n = bpf_map_lookup_elem(&all, &zero);
	__u8 *p = take(&c, 50);
	int slot;

	note(SLOT_ALL);
	if (n)
		__sync_fetch_and_add(n, 1);
	if (!p)
		return;
	key = (p[48] << 8 | p[49]) % KEYS;
	slot = add(&numbers, key, len);
	if (slot != SLOT_ALL)
		note(slot);
	else if (key < STEADY)
		note(SLOT_STEADY);
	add(&recent, key, len);
}

SEC("xdp")
int count_send(struct xdp_md *ctx)
{
	count(ctx);
	return bpf_redirect(next_port, 0);
}

SEC("xdp")
int count_back(struct xdp_md *ctx)
{
	count(ctx);
	return XDP_TX;
}

SEC("xdp")
int count_drop(struct xdp_md *ctx)
{
	count(ctx);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
