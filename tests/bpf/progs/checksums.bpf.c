/* SPDX-License-Identifier: BSD-3-Clause */
/* checksums.bpf.c: sums over headers and payload by loops, and csum_diff in all its forms. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __s64);
} sums MAPS;

INLINE void note(__u32 key, __s64 sum)
{
	bpf_map_update_elem(&sums, &key, &sum, BPF_ANY);
}

SEC("xdp")
int ipv4_sum(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct iphdr *ip;
	__u16 *word;
	__u64 sum = 0;
	int i;

	if (take_ethernet(&c) != bpf_htons(ETH_P_IP) || !(ip = take_ipv4(&c)))
		return XDP_PASS;
	word = (__u16 *)ip;
	for (i = 0; i < 10; i++)
		sum += word[i];
	ip->check = 0;
	ip->check = fold(bpf_csum_diff(NULL, 0, (__be32 *)ip, 20, 0) & 0xffffffff);
	return fold(sum) ? XDP_TX : XDP_DROP;
}

SEC("xdp")
int payload_sum(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__u64 sum = 0;
	__u16 *word;
	int i;

	for (i = 0; i < 760; i++) {
		word = take(&c, 2);
		if (!word)
			break;
		sum += bpf_ntohs(*word);
	}
	note(0, sum);
	return fold(sum) & 3;
}

SEC("xdp")
int differences(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	__be32 old[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, new[8] = { 0x80000000 };
	__be32 *p = take(&c, 14);
	__u32 size;

	if (!p)
		return XDP_DROP;
	old[1] = p[0];
	old[3] = p[1];
	new[2] = p[2];
	size = p[2] & 28;
	note(1, bpf_csum_diff(old, 32, new, 32, 0));
	note(2, bpf_csum_diff(old, size, new, 8, p[1]));
	note(3, bpf_csum_diff(NULL, 0, new, size, ~p[1]));
	note(4, bpf_csum_diff(old, size, NULL, 0, p[0]));
	note(5, bpf_csum_diff(old, 4, new, 12, 0xffffffff));
	note(7, bpf_csum_diff(old, size | (p[2] >> 8 & 3), new, 8, 0)); /* not a multiple of 4 */
	note(6, bpf_csum_diff(p, 12, old, 4, 1));
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
