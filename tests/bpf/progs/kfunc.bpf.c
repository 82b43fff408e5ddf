/* SPDX-License-Identifier: BSD-3-Clause */
/* kfunc.bpf.c: a function that only a kernel has: to be refused, with a sentence that names it. */
#include "packet.h"

enum xdp_rss_hash_type { XDP_RSS_TYPE_NONE };

extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *ctx, __u32 *hash, enum xdp_rss_hash_type *type) __ksym;

SEC("xdp")
int uses_kfunc(struct xdp_md *ctx)
{
	enum xdp_rss_hash_type type;
	__u32 hash = 0;

	return bpf_xdp_metadata_rx_hash(ctx, &hash, &type) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int uses_none(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data > 100 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
