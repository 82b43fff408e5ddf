/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested.h: who holds the maps that are made later than their object.
 *
 * Theory of operation. A map of maps holds pointers into its object's table of maps; workers load them with acquire
 * order and use them until the end of the run. A map of the image lives as long as the object. One that was made later
 * has holders: the entries it stands in, and who made it. Without any it goes in two steps:
 *
 *	no holders --grace period--> not made --grace period--> destroyed, its place is free
 *
 * After the first nobody has a pointer to it or into its values any more. But an engine that looks which map an address
 * lies in (access.c) looks at all that are made; after the second it does not look at this one. Nobody waits for a grace
 * period: whoever changes something later carries on what has passed, and replay, whose control thread is the reader,
 * can do so too.
 */
#ifndef LEAT_BPF_NESTED_H
#define LEAT_BPF_NESTED_H

#include "bpf/map/map.h"

/** The map with that number that may be put into a map of maps, or NULL. Under the object's lock. */
struct leat_bpf_map *leat_bpf_inner_find(struct leat_bpf_object *obj, uint32_t number);
/** One holder more; one less (NULL: of nothing). Under the object's lock. */
void leat_bpf_inner_hold(struct leat_bpf_map *map);
void leat_bpf_inner_drop(struct leat_bpf_map *map);
/** Carries on with maps that go. Under the object's lock. */
void leat_bpf_inner_reap(struct leat_bpf_object *obj);

#endif
