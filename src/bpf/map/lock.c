/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c: where the lock of a value is, and copies around it. See lock.h. Any thread; leat_bpf_lock_find(): control.
 */
#include "bpf/map/lock.h"

#include "bpf/btf/btf.h"

#define LOCK_SIZE 4u

static bool is_lock(const struct leat_btf *btf, const struct leat_btf_member *member)
{
	uint32_t type = leat_btf_strip(btf, member->type);

	return leat_btf_kind(btf, type) == BTF_KIND_STRUCT && !strcmp(leat_btf_name(btf, type), "bpf_spin_lock") &&
	       leat_btf_size(btf, type) == LOCK_SIZE;
}

/** As the kernel: in an array or a hash that programs read and write. Where there are two, it sees none. */
void leat_bpf_lock_find(struct leat_bpf_map *map, const struct leat_btf *btf)
{
	uint32_t type = btf ? leat_btf_strip(btf, map->btf_value) : 0, n = type ? leat_btf_n_members(btf, type) : 0;
	uint32_t i, off, found = 0;
	struct leat_btf_member member;

	map->lock = 0;
	if ((map->type != &leat_bpf_array && map->type != &leat_bpf_hash) || leat_btf_kind(btf, type) == BTF_KIND_UNION ||
	    map->map_flags & (BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG))
		return;
	for (i = 0; i < n; i++) {
		leat_btf_member(btf, type, i, &member);
		off = member.bit_off / 8;
		if (!is_lock(btf, &member) || member.bit_off % (8 * LOCK_SIZE) || map->value_size < LOCK_SIZE ||
		    off > map->value_size - LOCK_SIZE)
			continue;
		if (found)
			return;
		found = 1 + off;
	}
	map->lock = found;
}

static uint32_t *lock_of(const struct leat_bpf_map *map, void *shared)
{
	return (uint32_t *)((uint8_t *)shared + map->lock - 1);
}

/** The other half of the word that the lock is in. */
static void write_half(uint8_t *shared, const uint8_t *from, uint32_t size)
{
	uint32_t half = 0;

	memcpy(&half, from, size < sizeof(half) ? size : sizeof(half));
	__atomic_store_n((uint32_t *)shared, half, __ATOMIC_RELAXED);
}

void leat_bpf_lock_write_around(const struct leat_bpf_map *map, void *shared, const void *from)
{
	uint32_t off = map->lock - 1, word = off & ~7u, half = off ^ LOCK_SIZE, size = map->value_size;
	const uint8_t *bytes = from;
	uint8_t *to = shared;

	leat_words_write(to, bytes, word);
	if (half < size)
		write_half(to + half, bytes + half, size - half);
	if (word + 8 < size)
		leat_words_write(to + word + 8, bytes + word + 8, size - word - 8);
}

void leat_bpf_lock_read_around(const struct leat_bpf_map *map, void *to, const void *shared)
{
	leat_words_read(to, shared, map->value_size);
	memset((uint8_t *)to + map->lock - 1, 0, LOCK_SIZE);
}

int leat_bpf_lock_write(const struct leat_bpf_map *map, void *shared, const void *from)
{
	int err = leat_spin_lock(lock_of(map, shared));

	if (err)
		return err;
	leat_bpf_lock_write_around(map, shared, from);
	leat_spin_unlock(lock_of(map, shared));
	return 0;
}

int leat_bpf_lock_read(const struct leat_bpf_map *map, void *to, void *shared)
{
	int err = leat_spin_lock(lock_of(map, shared));

	if (err)
		return err;
	leat_bpf_lock_read_around(map, to, shared);
	leat_spin_unlock(lock_of(map, shared));
	return 0;
}
