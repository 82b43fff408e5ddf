/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop_udp_port.bpf.c: drops UDP over IPv4 to one port and counts what it drops.
 *
 *	clang -g -O2 -target bpf -c drop_udp_port.bpf.c -o drop_udp_port.bpf.o
 *	leat replay drop_udp_port.bpf.o capture.pcap --set port=53
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Set before the program is loaded. */
const volatile __u16 port = 5002;

__u64 dropped;

/* The UDP header of a packet, or NULL. */
static __always_inline const struct udphdr *find_udp(const void *data, const void *data_end)
{
	const struct ethhdr *eth = data;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct udphdr *udp;

	if ((const void *)(ip + 1) > data_end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_UDP)
		return 0;
	if (ip->frag_off & bpf_htons(0x1fff)) /* not the first fragment: no header */
		return 0;
	udp = (const void *)ip + ip->ihl * 4;
	return (const void *)(udp + 1) > data_end ? 0 : udp;
}

SEC("xdp")
int drop_udp_port(struct xdp_md *ctx)
{
	const struct udphdr *udp = find_udp((void *)(long)ctx->data, (void *)(long)ctx->data_end);

	if (!udp || udp->dest != bpf_htons(port))
		return XDP_PASS;
	__sync_fetch_and_add(&dropped, 1);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
