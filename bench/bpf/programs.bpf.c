/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * programs.bpf.c: the programs that the bench `bpf` runs. Each works on the same packet again and again, as
 * BPF_PROG_TEST_RUN does, so none depends on what an earlier run left there.
 */
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "program.h"

#include "layout.h"

struct vip {
	__u32 addr;
	__u16 port;
	__u16 proto;
};

struct backend {
	__u8 mac[8];
	__u64 packets;
};

struct prefix {
	__u32 len;
	__u32 addr;
};

MAP(vips, BPF_MAP_TYPE_HASH, struct vip, __u32, 64, 0);
MAP(backends, BPF_MAP_TYPE_ARRAY, __u32, struct backend, BACKENDS, 0);
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 4, 0);
MAP(small_array, BPF_MAP_TYPE_ARRAY, __u32, __u64, ARRAY_ENTRIES, 0);
MAP(small_hash, BPF_MAP_TYPE_HASH, __u32, __u64, HASH_ENTRIES, 0);
MAP(large_hash, BPF_MAP_TYPE_HASH, __u32, __u64, LARGE_ENTRIES, 0);
MAP(small_lru, BPF_MAP_TYPE_LRU_HASH, __u32, __u64, 2 * HASH_ENTRIES, 0);
MAP(prefixes, BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u64, LPM_ENTRIES, BPF_F_NO_PREALLOC);

/* ---- packets ---- */

struct headers {
	struct ethhdr *eth;
	struct iphdr *ip;
	struct udphdr *udp;
};

/** The payload. */
struct payload {
	__u32 state;
	__u32 words[15];
	__u8 rest[PAYLOAD_LEN - 64 - 8];
	__u64 sum;
};

#define htons(n) __builtin_bswap16(n)
#define ntohs(n) __builtin_bswap16(n)

/** Finds the headers of an IPv4 UDP packet and checks them; whether it is one. */
INLINE int parse(void *data, void *end, struct headers *h)
{
	h->eth = data;
	h->ip = (void *)(h->eth + 1);
	h->udp = (void *)(h->ip + 1);
	if ((void *)(h->udp + 1) > end)
		return 0;
	if (h->eth->h_proto != htons(ETH_P_IP) || h->ip->version != 4 || h->ip->ihl != 5)
		return 0;
	if (h->ip->protocol != IPPROTO_UDP || h->ip->frag_off & htons(0x3fff))
		return 0;
	return ntohs(h->ip->tot_len) >= sizeof(*h->ip) + sizeof(*h->udp);
}

INLINE struct payload *payload_of(void *data, void *end)
{
	struct payload *p = data + PACKET_PAYLOAD;

	return (void *)(p + 1) > end ? 0 : p;
}

INLINE __u32 next_number(struct payload *p)
{
	__u32 state = p->state * 1664525 + 1013904223;

	p->state = state;
	return state >> 8;
}

/* ---- arithmetic ---- */

INLINE __u32 rol32(__u32 word, unsigned int by)
{
	return word << by | word >> (32 - by);
}

/** Bob Jenkins' hash of three words (lookup3, final mix; public domain). */
INLINE __u32 jhash3(__u32 a, __u32 b, __u32 c)
{
	a += 0xdeadbeef + 12;
	b += 0xdeadbeef + 12;
	c += 0xdeadbeef + 12;
	c = (c ^ b) - rol32(b, 14);
	a = (a ^ c) - rol32(c, 11);
	b = (b ^ a) - rol32(a, 25);
	c = (c ^ b) - rol32(b, 16);
	a = (a ^ c) - rol32(c, 4);
	b = (b ^ a) - rol32(a, 14);
	c = (c ^ b) - rol32(b, 24);
	return c;
}

INLINE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)(sum + (sum >> 16));
}

/** The header's checksum (RFC 791, RFC 1071), as if its own field were zero. */
INLINE __u16 header_checksum(const struct iphdr *ip)
{
	const __u16 *word = (const void *)ip;
	__u64 sum = 0;
	int i;

#pragma clang loop unroll(full)
	for (i = 0; i < 10; i++)
		sum += i == 5 ? 0 : word[i];
	return (__u16)~fold(sum);
}

INLINE __u32 hash_of(const struct headers *h, __u32 seed)
{
	__u32 ports = (__u32)h->udp->source << 16 | h->udp->dest;

	return jhash3(h->ip->saddr ^ seed, h->ip->daddr, ports ^ h->ip->protocol);
}

INLINE __u64 four_hashes(const struct headers *h, __u32 seed)
{
	__u32 hash = seed;
	int i;

#pragma clang loop unroll(full)
	for (i = 0; i < 4; i++)
		hash = hash_of(h, hash);
	return hash;
}

INLINE __u64 sum_of_bytes(const struct payload *p)
{
	const __u8 *byte = (const void *)p->words;
	__u32 sum = 0;
	int i;

#pragma clang loop unroll(disable) vectorize(disable)
	for (i = 0; i < 60; i++)
		sum = sum * 31 + byte[i];
	return sum;
}

/* ---- the programs ---- */

PROGRAM(empty)
{
	(void)PACKET(ctx);
	return XDP_PASS;
}

PROGRAM(rewrite)
{
	__u8 mac[ETH_ALEN];
	struct headers h;
	__u32 sum;

	if (!parse(PACKET(ctx), PACKET_END(ctx), &h))
		return XDP_PASS;
	h.ip->ttl--; /* wraps: it is the same packet for ever */
	sum = h.ip->check + htons(0x0100);
	h.ip->check = (__u16)(sum + (sum >> 16)); /* RFC 1624 */
	__builtin_memcpy(mac, h.eth->h_dest, ETH_ALEN);
	__builtin_memcpy(h.eth->h_dest, h.eth->h_source, ETH_ALEN);
	__builtin_memcpy(h.eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}

PROGRAM(balance)
{
	void *end = PACKET_END(ctx);
	struct backend *backend;
	__u32 *service, key;
	struct headers h;
	struct vip vip;
	__u64 *count;

	if (!parse(PACKET(ctx), end, &h))
		return XDP_PASS;
	vip = (struct vip){ .addr = h.ip->daddr, .port = h.udp->dest, .proto = h.ip->protocol };
	service = LOOKUP(vips, &vip);
	if (!service)
		return XDP_PASS;
	key = hash_of(&h, *service) % BACKENDS;
	backend = LOOKUP_ARRAY(backends, &key, BACKENDS, struct backend);
	if (!backend)
		return XDP_ABORTED;
	__builtin_memcpy(h.eth->h_dest, backend->mac, ETH_ALEN);
	backend->packets++;
	key = 1;
	count = LOOKUP_ARRAY(counters, &key, 4, __u64);
	if (count)
		*count += (__u64)(end - PACKET(ctx));
	return XDP_TX;
}

/** LOOKUPS look-ups of random keys; what they find is summed up in the packet. */
#define LOOKUP_PROGRAM(name, key_type, make_key, look_up)                 \
	PROGRAM(name)                                                     \
	{                                                                 \
		struct payload *p = payload_of(PACKET(ctx), PACKET_END(ctx)); \
		__u64 *value, sum = 0;                                    \
		key_type key;                                             \
		__u32 number;                                             \
		int i;                                                    \
                                                                          \
		if (!p)                                                   \
			return XDP_PASS;                                  \
		_Pragma("clang loop unroll(disable)")                     \
		for (i = 0; i < LOOKUPS; i++) {                           \
			number = next_number(p);                          \
			key = make_key;                                   \
			value = look_up;                                  \
			sum += value ? *value : 1;                        \
		}                                                         \
		p->sum += sum;                                            \
		return XDP_TX;                                            \
	}

LOOKUP_PROGRAM(array, __u32, number % ARRAY_ENTRIES, LOOKUP_ARRAY(small_array, &key, ARRAY_ENTRIES, __u64))
LOOKUP_PROGRAM(hash, __u32, number % HASH_ENTRIES, LOOKUP(small_hash, &key))
LOOKUP_PROGRAM(hash_miss, __u32, HASH_ENTRIES + number % HASH_ENTRIES, LOOKUP(small_hash, &key))
LOOKUP_PROGRAM(hash_large, __u32, number % LARGE_ENTRIES, LOOKUP(large_hash, &key))
LOOKUP_PROGRAM(lru, __u32, number % HASH_ENTRIES, LOOKUP(small_lru, &key))
LOOKUP_PROGRAM(lpm, struct prefix, ((struct prefix){ 32, number << 8 }), LOOKUP(prefixes, &key))

#define COMPUTE_PROGRAM(name, what)                                       \
	PROGRAM(name)                                                     \
	{                                                                 \
		void *data = PACKET(ctx), *end = PACKET_END(ctx);         \
		struct payload *p = payload_of(data, end);                \
		struct headers h;                                         \
                                                                          \
		if (!parse(data, end, &h) || !p)                                             \
			return XDP_PASS;                                  \
		p->sum += what;                                           \
		return XDP_TX;                                            \
	}

COMPUTE_PROGRAM(jhash, four_hashes(&h, p->state))
COMPUTE_PROGRAM(checksum, header_checksum(h.ip))
COMPUTE_PROGRAM(bytes, sum_of_bytes(p))
COMPUTE_PROGRAM(compute, four_hashes(&h, p->state) + header_checksum(h.ip) + sum_of_bytes(p))

#ifdef __bpf__
char _license[] SEC("license") = "Dual BSD/GPL";
#endif
