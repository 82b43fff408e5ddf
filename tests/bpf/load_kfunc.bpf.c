/* SPDX-License-Identifier: BSD-3-Clause */
/* load_kfunc.bpf.c: calls a function of the kernel and reads a variable of it; a second program does not. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

extern int bpf_xdp_something_new(struct xdp_md *ctx, __u32 *value) __ksym;
extern const int kernels_variable __ksym;

SEC("xdp")
int innocent(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp")
int calls_kernel(struct xdp_md *ctx)
{
	__u32 value = 0;

	return bpf_xdp_something_new(ctx, &value) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int reads_kernel(struct xdp_md *ctx)
{
	return *(const volatile int *)&kernels_variable;
}

char _license[] SEC("license") = "GPL";
