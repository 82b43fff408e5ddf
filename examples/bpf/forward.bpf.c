/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward.bpf.c: a router: packets leave by the port that the forwarding table says, with its MAC addresses and one hop
 * less to live. What it is not to forward (own addresses, groups, ARP, unknown neighbours, too long, hops used up)
 * passes, so that somebody else deals with it; what the table turns away is dropped.
 *
 * The table is that of the section "fib" of a configuration.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10

/** How many packets had which answer: BPF_FIB_LKUP_RET_*; the last: others. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 11);
	__type(key, __u32);
	__type(value, __u64);
} answers SEC(".maps");

static __always_inline void count(long answer)
{
	__u32 key = answer >= 0 && answer < 10 ? answer : 10;
	__u64 *n = bpf_map_lookup_elem(&answers, &key);

	if (n)
		++*n;
}

/** Asks, and sends the packet on its way. The caller has seen to it that the Ethernet header is there. */
static __always_inline int forward(struct xdp_md *ctx, struct bpf_fib_lookup *q, struct ethhdr *eth)
{
	long answer;

	q->ifindex = ctx->ingress_ifindex;
	answer = bpf_fib_lookup(ctx, q, sizeof(*q), 0);
	count(answer);
	switch (answer) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		__builtin_memcpy(eth->h_dest, q->dmac, ETH_ALEN);
		__builtin_memcpy(eth->h_source, q->smac, ETH_ALEN);
		return bpf_redirect(q->ifindex, 0);
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return XDP_DROP;
	default:
		return XDP_PASS;
	}
}

/** One hop less; the checksum is made good for it (RFC 1624). */
static __always_inline void hop4(struct iphdr *ip)
{
	__u32 sum = ip->check + bpf_htons(0x0100);

	ip->check = (__u16)(sum + (sum >= 0xffff));
	ip->ttl--;
}

static __always_inline int forward4(struct xdp_md *ctx, struct ethhdr *eth, struct iphdr *ip)
{
	struct bpf_fib_lookup q = { .family = AF_INET };
	int verdict;

	if (ip->ttl <= 1)
		return XDP_PASS;
	q.tos = ip->tos;
	q.l4_protocol = ip->protocol;
	q.tot_len = bpf_ntohs(ip->tot_len);
	q.ipv4_src = ip->saddr;
	q.ipv4_dst = ip->daddr;
	verdict = forward(ctx, &q, eth);
	if (verdict == XDP_REDIRECT)
		hop4(ip);
	return verdict;
}

static __always_inline int forward6(struct xdp_md *ctx, struct ethhdr *eth, struct ipv6hdr *ip6)
{
	struct bpf_fib_lookup q = { .family = AF_INET6 };
	int verdict;

	if (ip6->hop_limit <= 1)
		return XDP_PASS;
	q.flowinfo = *(__be32 *)ip6 & bpf_htonl(0x0fffffff);
	q.l4_protocol = ip6->nexthdr;
	q.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
	__builtin_memcpy(q.ipv6_src, &ip6->saddr, sizeof(q.ipv6_src));
	__builtin_memcpy(q.ipv6_dst, &ip6->daddr, sizeof(q.ipv6_dst));
	verdict = forward(ctx, &q, eth);
	if (verdict == XDP_REDIRECT)
		ip6->hop_limit--;
	return verdict;
}

SEC("xdp")
int router(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && (void *)(ip + 1) <= end)
		return forward4(ctx, eth, ip);
	if (eth->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end)
		return forward6(ctx, eth, ip6);
	return XDP_PASS;
}

/* the kernel gives bpf_fib_lookup() to such programs only */
char _license[] SEC("license") = "Dual BSD/GPL";
