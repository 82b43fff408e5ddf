/* SPDX-License-Identifier: BSD-3-Clause */
/* names.h: what the kernel calls helpers and map types, also those that are not here: for messages. */
#ifndef LEAT_BPF_NAMES_H
#define LEAT_BPF_NAMES_H

#include <stdint.h>

/** "sock_map_update" of a helper's number, or NULL. */
const char *leat_bpf_helper_name(int32_t id);
/** "sockmap" of a map type's number, or NULL. */
const char *leat_bpf_map_type_name(uint32_t type);

#endif
