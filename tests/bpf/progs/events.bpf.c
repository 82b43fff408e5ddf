/* SPDX-License-Identifier: BSD-3-Clause */
/* events.bpf.c: PERF_EVENT_ARRAY: records with and without bytes of the packet, and wrong flags. */
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events MAPS;

struct event {
	__u32 number;
	__u16 len, verdict;
};

__u32 number;

SEC("xdp")
int sample(struct xdp_md *ctx)
{
	__u64 len = ctx->data_end - ctx->data, part = len < 96 ? len : 96;
	struct event event = { number++, len, len % 3 };

	if (bpf_perf_event_output(ctx, &events, part << 32 | BPF_F_CURRENT_CPU, &event, sizeof(event)))
		return XDP_ABORTED;
	return event.verdict;
}

SEC("xdp")
int sizes(struct xdp_md *ctx)
{
	__u64 len = ctx->data_end - ctx->data;
	__u8 bytes[24] = { len, 1, 2, 3 };
	long err;

	switch (len & 7) {
	case 0: /* more than there is */
		err = bpf_perf_event_output(ctx, &events, (len + 1) << 32 | BPF_F_CURRENT_CPU, bytes, 8);
		break;
	case 1:
		err = bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, bytes, 5);
		break;
	case 2: /* no such place */
		err = bpf_perf_event_output(ctx, &events, 4000, bytes, 8);
		break;
	case 3: /* no such flag */
		err = bpf_perf_event_output(ctx, &events, 1ull << 60 | BPF_F_CURRENT_CPU, bytes, 8);
		break;
	case 4:
		err = bpf_perf_event_output(ctx, &events, bpf_get_smp_processor_id(), bytes, 24);
		break;
	case 5: /* another CPU's */
		err = bpf_perf_event_output(ctx, &events, !bpf_get_smp_processor_id(), bytes, 24);
		break;
	default:
		err = bpf_perf_event_output(ctx, &events, len << 32 | BPF_F_CURRENT_CPU, bytes, 17);
	}
	return 50 - err;
}

char _license[] SEC("license") = "Dual BSD/GPL";
