/* SPDX-License-Identifier: BSD-3-Clause */
/* devmap.h: maps whose entries are places to send packets to. See devmap.c. */
#ifndef LEAT_XDP_DEVMAP_H
#define LEAT_XDP_DEVMAP_H

#include "bpf/map/map.h"

/** Registers DEVMAP, DEVMAP_HASH, CPUMAP and XSKMAP. */
void leat_portmap_register(void);
/** Values of DEVMAP and DEVMAP_HASH as text and back: struct leat_bpf_map_type has the contract. */
int leat_portmap_format(const struct leat_bpf_map *map, const void *value, char *buf, size_t size);
int leat_portmap_parse(const struct leat_bpf_map *map, const char *text, void *value, struct leat_diag *diag);
/** The flags that bpf_redirect_map() takes for this type of map. */
uint32_t leat_portmap_flags(const struct leat_bpf_map *map);
/**
 * Where the next entry from place *@at on leads, which is moved behind it; false: there is none. 0 is the first place.
 * Entries that are there all the while come once each. *worker*.
 */
bool leat_portmap_next(const struct leat_bpf_map *map, uint32_t *at, struct leat_bpf_target *target);

#endif
