/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * each.bpf.c: bpf_for_each_map_elem() over all kinds of map that have it: sums that do not depend on the order, values that
 * are changed, elements that are deleted on the way, one walk within another, and a walk that ends early.
 */
#include "packet.h"

#define MAP(name, map_type, value_type, entries)                \
	struct {                                                \
		__uint(type, map_type);                         \
		__type(key, __u32);                             \
		__type(value, value_type);                      \
		__uint(max_entries, entries);                   \
	} name SEC(".maps")

MAP(numbers, BPF_MAP_TYPE_ARRAY, __u64, 20);
MAP(copies, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, 8);
MAP(table, BPF_MAP_TYPE_HASH, __u64, 64);
MAP(recent, BPF_MAP_TYPE_LRU_HASH, __u32, 4096);
MAP(per_cpu, BPF_MAP_TYPE_PERCPU_HASH, __u64, 64);
MAP(recent_per_cpu, BPF_MAP_TYPE_LRU_PERCPU_HASH, __u64, 4096);

struct sum {
	__u64 keys, values;
	__u32 until;
};

static long add(void *map, const __u32 *key, __u64 *value, struct sum *sum)
{
	sum->keys += *key;
	sum->values ^= *value * 31 + *key;
	*value += sum->until;
	return 0;
}

static long add_small(void *map, const __u32 *key, __u32 *value, struct sum *sum)
{
	sum->keys += *key;
	sum->values ^= *value;
	(*value)++;
	return *key >= sum->until;
}

/** Takes out every third key. */
static long thin_out(void *map, __u32 *key, __u64 *value, struct sum *sum)
{
	sum->values += *value;
	if (*key % 3 == sum->until % 3)
		sum->keys += !bpf_map_delete_elem(&table, key);
	return 0;
}

static long outer(void *map, const __u32 *key, __u32 *value, struct sum *sum)
{
	sum->keys += bpf_for_each_map_elem(&numbers, add, sum, 0) * *key;
	return 0;
}

SEC("xdp")
int each(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u8 *p = take(&c, 14);
	struct sum sum = { 0 };
	__u32 key;
	__u64 value;
	long n;

	if (!p)
		return XDP_DROP;
	sum.until = p[5];
	key = p[6] % 100;
	value = p[7];
	bpf_map_update_elem(&table, &key, &value, BPF_ANY);
	bpf_map_update_elem(&per_cpu, &key, &value, BPF_ANY);
	bpf_map_update_elem(&recent, &key, &key, BPF_ANY);
	bpf_map_update_elem(&recent_per_cpu, &key, &value, BPF_ANY);
	switch (p[11] % 9) {
	case 0:
		n = bpf_for_each_map_elem(&numbers, add, &sum, 0);
		break;
	case 1:
		n = bpf_for_each_map_elem(&copies, add_small, &sum, 0);
		break;
	case 2:
		n = bpf_for_each_map_elem(&table, add, &sum, 0);
		break;
	case 3:
		sum.until = -1;
		n = bpf_for_each_map_elem(&recent, add_small, &sum, 0);
		break;
	case 4:
		n = bpf_for_each_map_elem(&per_cpu, add, &sum, 0);
		break;
	case 5:
		n = bpf_for_each_map_elem(&table, thin_out, &sum, 0);
		break;
	case 6:
		n = bpf_for_each_map_elem(&copies, outer, &sum, 0);
		break;
	case 7:
		n = bpf_for_each_map_elem(&recent_per_cpu, add, &sum, 0);
		break;
	default:
		n = -bpf_for_each_map_elem(&numbers, add, &sum, 1);
	}
	p[0] ^= sum.values;
	p[1] ^= sum.values >> 8;
	p[2] = n;
	p[3] ^= sum.keys;
	p[4] = n >> 8;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
