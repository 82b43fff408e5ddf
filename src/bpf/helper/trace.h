/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h: bpf_trace_printk(), bpf_trace_vprintk(). */
#ifndef LEAT_BPF_TRACE_H
#define LEAT_BPF_TRACE_H

#include "bpf/contract.h"

#define LEAT_BPF_TRACE_MAX 1024u /* bytes of a line, as in the kernel */
#define LEAT_BPF_TRACE_ARGS 12u  /* arguments at most, as in the kernel */

/**
 * Formats @args by the kernel's rules for these two into @line (LEAT_BPF_TRACE_MAX bytes). Returns the length
 * it wanted, or -EINVAL for a format that the kernel refuses.
 */
int leat_bpf_trace_format(const struct leat_bpf_run *run, char *line, const char *fmt, uint32_t fmt_size,
			  const uint64_t *args, unsigned int n_args);

#endif
