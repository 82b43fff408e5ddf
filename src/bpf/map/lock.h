/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h: spin locks in values (struct bpf_spin_lock, map->lock), and copies of values that leave them alone.
 *
 * A lock is 4 bytes of a value, at a multiple of 4: 0 when it is free. Only the two helpers and the functions here touch
 * them; to everybody else they read as 0, and what is written there is left out. So the lock of an element is free
 * whenever nobody holds it, also before the element is used again.
 *
 * A program holds one lock at most, calls no helper meanwhile, and has fuel; control threads hold one for one copy. So
 * nobody waits for more than a lock while holding one (a bucket's may be held by who waits for a value's), and a lock
 * that stays taken for long is one whose holder is not run.
 */
#ifndef LEAT_BPF_LOCK_H
#define LEAT_BPF_LOCK_H

#include "bpf/map/map.h"
#include "bpf/map/mem.h"

struct leat_btf;

/** Finds the lock in the map's values by their type: sets map->lock. @btf: NULL: there are no types. *control*. */
void leat_bpf_lock_find(struct leat_bpf_map *map, const struct leat_btf *btf);

void leat_bpf_lock_write_around(const struct leat_bpf_map *map, void *shared, const void *from);
void leat_bpf_lock_read_around(const struct leat_bpf_map *map, void *to, const void *shared);
/** The same with the lock taken; -EBUSY: it stayed taken. */
int leat_bpf_lock_write(const struct leat_bpf_map *map, void *shared, const void *from);
int leat_bpf_lock_read(const struct leat_bpf_map *map, void *to, void *shared);

/** Whether the flags of an update, of a map whose values are not per CPU, make sense as far as locks go. */
static inline bool leat_bpf_lock_flags_ok(const struct leat_bpf_map *map, uint64_t flags)
{
	return !(flags & BPF_F_LOCK) || map->lock;
}

/** Copies a value to shared storage. */
static inline void leat_value_write(const struct leat_bpf_map *map, void *shared, const void *from)
{
	if (leat_unlikely(map->lock))
		leat_bpf_lock_write_around(map, shared, from);
	else
		leat_words_write(shared, from, map->value_size);
}

/** Copies a value from shared storage. */
static inline void leat_value_read(const struct leat_bpf_map *map, void *to, const void *shared)
{
	if (leat_unlikely(map->lock))
		leat_bpf_lock_read_around(map, to, shared);
	else
		leat_words_read(to, shared, map->value_size);
}

#endif
