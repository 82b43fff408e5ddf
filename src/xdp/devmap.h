/* SPDX-License-Identifier: BSD-3-Clause */
/* devmap.h: maps whose entries are places to send packets to. See devmap.c. */
#ifndef LEAT_XDP_DEVMAP_H
#define LEAT_XDP_DEVMAP_H

#include "bpf/map/map.h"

/** Registers DEVMAP, DEVMAP_HASH, CPUMAP and XSKMAP. */
void leat_portmap_register(void);
/** The flags that bpf_redirect_map() takes for this type of map. */
uint32_t leat_portmap_flags(const struct leat_bpf_map *map);

#endif
