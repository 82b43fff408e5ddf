/* SPDX-License-Identifier: BSD-3-Clause */
/* load_undefined.bpf.c: calls a function that is defined nowhere and not said to be the kernel's. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

extern int nowhere(int number);

SEC("xdp")
int calls_nothing(struct xdp_md *ctx)
{
	return nowhere(ctx->data_end - ctx->data);
}

char _license[] SEC("license") = "GPL";
