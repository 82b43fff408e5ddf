/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reflect.bpf.c: sends every packet back to where it came from, with its MAC addresses swapped.
 *
 *	clang -g -O2 -target bpf -c reflect.bpf.c -o reflect.bpf.o
 *	leat replay reflect.bpf.o capture.pcap -o reflected.pcap
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int reflect(struct xdp_md *ctx)
{
	void *data_end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	unsigned char mac[ETH_ALEN];

	if ((void *)(eth + 1) > data_end)
		return XDP_DROP;
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
