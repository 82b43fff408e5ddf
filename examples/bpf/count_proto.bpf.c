/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count_proto.bpf.c: counts packets and bytes by EtherType and IPv4 protocol, on each CPU by itself, and tells of each
 * pair when it is first seen.
 *
 *	clang -g -O2 -target bpf -c count_proto.bpf.c -o count_proto.bpf.o
 *	leat replay count_proto.bpf.o capture.pcap
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct proto {
	__u16 ethertype;
	__u16 ip; /* protocol of IPv4, 0 for others */
};

struct counts {
	__u64 packets;
	__u64 bytes;
};

/* What is told. */
struct event {
	__u64 time;
	struct proto proto;
	__u32 length;
};

/* Compilers describe only types of globals: with this, leat knows the members of what is told. */
const struct event *event_type;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct proto);
	__type(value, struct counts);
} protos SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

static __always_inline void tell(const struct proto *proto, __u32 length)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return;
	event->time = bpf_ktime_get_ns();
	event->proto = *proto;
	event->length = length;
	bpf_ringbuf_submit(event, 0);
}

SEC("xdp")
int count_proto(struct xdp_md *ctx)
{
	const void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	struct counts first = { .packets = 1, .bytes = data_end - data }, *counts;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = (const void *)(eth + 1);
	struct proto proto = { 0 };

	if ((const void *)(eth + 1) > data_end)
		return XDP_DROP;
	proto.ethertype = bpf_ntohs(eth->h_proto);
	if (proto.ethertype == ETH_P_IP && (const void *)(ip + 1) <= data_end)
		proto.ip = ip->protocol;
	counts = bpf_map_lookup_elem(&protos, &proto);
	if (counts) {
		counts->packets++;
		counts->bytes += first.bytes;
	} else if (!bpf_map_update_elem(&protos, &proto, &first, BPF_NOEXIST)) {
		tell(&proto, first.bytes);
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
