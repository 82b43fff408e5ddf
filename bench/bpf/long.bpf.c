/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long.bpf.c: a program of some 3,000 instructions, to time verifier and compiler: a filter of many rules, as a
 * generator would write them, each with a look at the packet, a branch or two, and now and then a look-up.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 64);
} hits SEC(".maps");

/** Drops what rule @n matches. */
#define RULE(n)                                                                                    \
	do {                                                                                       \
		if ((ip->saddr ^ score) == (n) * 0x01000193u && ip->ttl > (n) % 61 && len > (n) % 1400) {    \
			key = (n);                                                                 \
			count = bpf_map_lookup_elem(&hits, &key);                                  \
			if (count)                                                                 \
				(*count)++;                                                        \
			return XDP_DROP;                                                           \
		}                                                                                  \
		if (byte + (n) % 23 < end)                                                         \
			score += byte[(n) % 23] ^ (n);                                             \
	} while (0)
#define RULES(n) RULE(n); RULE(n + 1); RULE(n + 2); RULE(n + 3); RULE(n + 4); RULE(n + 5); RULE(n + 6); RULE(n + 7)

SEC("xdp")
int rules(struct xdp_md *ctx)
{
	__u8 *end = (void *)(long)ctx->data_end, *data = (void *)(long)ctx->data, *byte;
	struct iphdr *ip = (void *)(data + sizeof(struct ethhdr));
	__u32 key, len, score = 0;
	__u64 *count;

	byte = (void *)(ip + 1);
	if (byte > end)
		return XDP_PASS;
	len = (__u32)(end - data);
	RULES(0);
	RULES(8);
	RULES(16);
	RULES(24);
	RULES(32);
	RULES(40);
	RULES(48);
	RULES(56);
	RULES(64);
	RULES(72);
	RULES(80);
	RULES(88);
	RULES(96);
	return score & 1 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
