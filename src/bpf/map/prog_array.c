/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog_array.c: PROG_ARRAY: programs to tail-call, of the same object. Control writes, workers read.
 *
 * To control an entry is the number of the program in its object. Programs live as long as the object, so an entry
 * that was replaced needs no grace period.
 */
#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"
#include "bpf/prog.h"

#define FLAGS (uint32_t)(BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY)
#define ENTRIES_MAX (1u << 20)

static int prog_array_check(const struct leat_bpf_map *map, const char **why)
{
	if (map->key_size != 4 || map->value_size != 4 || !map->max_entries) {
		*why = "keys and values have 4 bytes, and it has entries";
		return -EINVAL;
	}
	if (map->map_flags & ~FLAGS) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	if (map->max_entries > ENTRIES_MAX) {
		*why = "it has at most 1048576 entries";
		return -E2BIG;
	}
	return 0;
}

static int prog_array_create(struct leat_bpf_map *map)
{
	map->priv = leat_heap_zalloc(map->max_entries * sizeof(struct leat_bpf_prog *));
	return map->priv ? 0 : -ENOMEM;
}

static void prog_array_destroy(struct leat_bpf_map *map)
{
	leat_heap_free(map->priv);
}

struct leat_bpf_prog *const *leat_bpf_prog_array_entries(const struct leat_bpf_map *map)
{
	return map->priv;
}

struct leat_bpf_prog *leat_bpf_prog_array_get(struct leat_bpf_map *map, uint32_t index)
{
	struct leat_bpf_prog **progs = map->priv;

	/* pairs with leat_bpf_prog_array_set() */
	return index < map->max_entries ? __atomic_load_n(&progs[index], __ATOMIC_ACQUIRE) : NULL;
}

int leat_bpf_prog_array_set(struct leat_bpf_map *map, uint32_t index, struct leat_bpf_prog *prog)
{
	struct leat_bpf_prog **progs = map->priv;

	if (index >= map->max_entries)
		return -E2BIG;
	__atomic_store_n(&progs[index], prog, __ATOMIC_RELEASE); /* pairs with leat_bpf_prog_array_get() */
	return 0;
}

static uint32_t load32(const void *from)
{
	uint32_t n;

	memcpy(&n, from, sizeof(n));
	return n;
}

static int prog_array_read(struct leat_bpf_map *map, const void *key, void *value)
{
	const struct leat_bpf_prog *prog = leat_bpf_prog_array_get(map, load32(key));

	if (!prog)
		return -ENOENT;
	memcpy(value, &prog->number, sizeof(prog->number));
	return 0;
}

static int prog_array_write(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags)
{
	uint32_t number = load32(value);

	if (flags != BPF_ANY)
		return -EINVAL;
	if (load32(key) >= map->max_entries)
		return -E2BIG;
	if (!map->obj || number >= map->obj->n_progs || !map->obj->prog[number].loaded)
		return -EBADF;
	return leat_bpf_prog_array_set(map, load32(key), &map->obj->prog[number]);
}

static int prog_array_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	uint32_t index = load32(key);

	(void)cpu;
	if (index < map->max_entries && !leat_bpf_prog_array_get(map, index))
		return -ENOENT;
	return leat_bpf_prog_array_set(map, index, NULL);
}

static void *prog_array_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	(void)map;
	(void)key;
	(void)cpu;
	return NULL;
}

static int prog_array_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	return leat_bpf_array.next_key(map, key, next);
}

static bool prog_array_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	(void)map;
	(void)addr;
	(void)size;
	return false;
}

const struct leat_bpf_map_type leat_bpf_prog_array = {
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.name = "prog_array",
	.flags = LEAT_BPF_MAP_NO_LOOKUP | LEAT_BPF_MAP_NO_UPDATE,
	.check = prog_array_check,
	.create = prog_array_create,
	.destroy = prog_array_destroy,
	.lookup = prog_array_lookup,
	.delete_elem = prog_array_delete,
	.read = prog_array_read,
	.write = prog_array_write,
	.next_key = prog_array_next_key,
	.contains = prog_array_contains,
};
