/* SPDX-License-Identifier: BSD-3-Clause */
/* ringbuf.h: what bpf_ringbuf_query() asks, beside what map.h has. */
#ifndef LEAT_BPF_RINGBUF_H
#define LEAT_BPF_RINGBUF_H

#include "bpf/map/map.h"

/** The answer to one of BPF_RB_AVAIL_DATA, RING_SIZE, CONS_POS, PROD_POS; 0 to anything else. *any*. */
uint64_t leat_bpf_ringbuf_query(const struct leat_bpf_map *map, uint64_t what);

#endif
