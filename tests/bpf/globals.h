/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * globals.h: global variables of an object that libbpf has opened. Apart from the rest, because libbpf has a bpf/btf.h,
 * and so have we.
 */
#ifndef LEAT_TESTS_BPF_GLOBALS_H
#define LEAT_TESTS_BPF_GLOBALS_H

#include <stdint.h>

struct bpf_object;

/** Before load: writes @len bytes at @off of variable @name, if there is one. */
void globals_set(struct bpf_object *obj, const char *name, uint32_t off, const void *bytes, uint32_t len);

#endif
