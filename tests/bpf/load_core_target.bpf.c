/* SPDX-License-Identifier: BSD-3-Clause */
/* load_core_target.bpf.c: the types of a "kernel" for load_core.bpf.c. */
struct moved {
	long long before[3];
	unsigned int b, a;
};

struct moved kernels;
