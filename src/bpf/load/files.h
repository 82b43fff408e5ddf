/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h: names of files that only libbpf's calls, answered by files.c, can open. */
#ifndef LEAT_BPF_LOAD_FILES_H
#define LEAT_BPF_LOAD_FILES_H

#define LOAD_KERNEL_BTF "leat:kernel-btf"

#endif
