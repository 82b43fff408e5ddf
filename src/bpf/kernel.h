/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h: what the running kernel's verifier says of a program. */
#ifndef LEAT_BPF_KERNEL_H
#define LEAT_BPF_KERNEL_H

#include "bpf/prog.h"

/**
 * Offers a program of an object whose maps are made to the kernel, as XDP, with maps of its own that end with the
 * call; nothing is attached or run. Sets prog->kernel and prog->kernel_words. *control*. Returns 0 or -ENOMEM.
 */
int leat_bpf_kernel_ask(struct leat_bpf_prog *prog);

#endif
