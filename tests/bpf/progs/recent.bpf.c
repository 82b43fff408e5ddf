/* SPDX-License-Identifier: BSD-3-Clause */
/* recent.bpf.c: LRU_HASH of Ethernet addresses, and a verdict by what was last seen of them. */
#include "packet.h"

struct mac {
	__u8 byte[6];
};

struct seen {
	__u32 packets;
	__be16 type;
	__u16 len;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct mac);
	__type(value, struct seen);
} recent MAPS;

SEC("xdp")
int remember(struct xdp_md *ctx)
{
	struct cursor c = packet_of(ctx);
	struct seen *seen, now = { 1, 0, (__u16)(c.end - c.at) };
	struct ethhdr *eth = take(&c, sizeof(*eth));
	struct mac from;

	if (!eth)
		return XDP_ABORTED;
	__builtin_memcpy(&from, eth->h_source, 6);
	now.type = eth->h_proto;
	seen = bpf_map_lookup_elem(&recent, &from);
	if (!seen) {
		if (from.byte[5] & 0x80 && from.byte[4] & 1)
			return XDP_DROP;
		bpf_map_update_elem(&recent, &from, &now, BPF_ANY);
		return XDP_PASS;
	}
	if (seen->type == now.type) {
		seen->packets += seen->len;
		return XDP_TX;
	}
	now.packets = seen->packets + 1;
	if (now.packets % 5 == 0)
		return bpf_map_delete_elem(&recent, &from) ? XDP_ABORTED : XDP_DROP;
	return bpf_map_update_elem(&recent, &from, &now, BPF_EXIST) ? XDP_ABORTED : XDP_REDIRECT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
