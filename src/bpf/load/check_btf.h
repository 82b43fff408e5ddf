/* SPDX-License-Identifier: BSD-3-Clause */
/* check_btf.h: the library's own check of BTF, for leat-load, whose <bpf/btf.h> is libbpf's. */
#ifndef LEAT_BPF_LOAD_CHECK_BTF_H
#define LEAT_BPF_LOAD_CHECK_BTF_H

#include <stddef.h>

/** Returns 0; or -EINVAL with a sentence in @why, -ENOMEM. */
int load_check_btf(const void *bytes, size_t len, char *why, size_t size);

#endif
