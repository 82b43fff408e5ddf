/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array.c: ARRAY and PERCPU_ARRAY: all elements exist from the start, zeroed. Any thread.
 *
 *      | CPU 0: element 0 | element 1 | ... | CPU 1: element 0 | ... |
 *
 * Elements lie value_stride apart. Each CPU's copies of a PERCPU_ARRAY are a region of their own, on pages of its own,
 * so that no two CPUs write one cache line. The memory is reserved at once and touched when it is used (mem.h).
 */
#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/lock.h"

#define PAGE UINT64_C(4096)
#define FLAGS_PERCPU (uint32_t)(BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG)
#define FLAGS_ARRAY (FLAGS_PERCPU | (uint32_t)(BPF_F_NUMA_NODE | BPF_F_MMAPABLE | BPF_F_INNER_MAP))
#define ARRAY_VALUE_MAX ((uint32_t)INT32_MAX - 7)

struct array {
	uint8_t *base;   /* first, for compiled code */
	uint64_t region; /* bytes from one CPU's copies to the next one's */
	uint64_t used;   /* bytes of a region in use */
	struct leat_stride by_region, by_elem;
};
LEAT_STATIC_ASSERT(offsetof(struct array, base) == 0, "leat_bpf_array_layout() says so");

static uint64_t region_of(const struct leat_bpf_map *map)
{
	return ((uint64_t)map->max_entries * map->value_stride + PAGE - 1) & ~(PAGE - 1);
}

static int array_check(const struct leat_bpf_map *map, const char **why)
{
	bool percpu = map->type->flags & LEAT_BPF_MAP_PER_CPU;
	uint32_t flags = percpu ? FLAGS_PERCPU : FLAGS_ARRAY;

	if (map->key_size != 4 || !map->max_entries || !map->value_size) {
		*why = "keys of an array have 4 bytes, and it has entries, and values of some size";
		return -EINVAL;
	}
	if (map->map_flags & ~flags) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	if (map->value_size > (percpu ? LEAT_BPF_PERCPU_VALUE_MAX : ARRAY_VALUE_MAX)) {
		*why = "values are too large";
		return -E2BIG;
	}
	return 0;
}

static int array_create(struct leat_bpf_map *map)
{
	struct array *a = leat_heap_zalloc(sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->used = (uint64_t)map->max_entries * map->value_stride;
	a->region = region_of(map);
	a->by_region = leat_stride_make(a->region);
	a->by_elem = leat_stride_make(map->value_stride);
	a->base = leat_bpf_pages_alloc(a->region * map->cpus);
	if (!a->base) {
		leat_heap_free(a);
		return -ENOMEM;
	}
	map->priv = a;
	return 0;
}

static void array_destroy(struct leat_bpf_map *map)
{
	struct array *a = map->priv;

	leat_bpf_pages_free(a->base, a->region * map->cpus);
	leat_heap_free(a);
}

void leat_bpf_array_layout(const struct leat_bpf_map *map, uint8_t **base, uint64_t *region)
{
	const struct array *a = map->priv;

	*base = a->base;
	*region = a->region;
}

static inline uint32_t index_of(const void *key)
{
	uint32_t index;

	memcpy(&index, key, sizeof(index));
	return index;
}

static inline uint8_t *elem_at(const struct leat_bpf_map *map, uint32_t index)
{
	const struct array *a = map->priv;

	return a->base + (uint64_t)index * map->value_stride;
}

static void *array_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	uint32_t index = index_of(key);

	(void)cpu;
	return leat_likely(index < map->max_entries) ? elem_at(map, index) : NULL;
}

static void *percpu_array_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct array *a = map->priv;
	uint32_t index = index_of(key);

	return leat_likely(index < map->max_entries) ? elem_at(map, index) + cpu * a->region : NULL;
}

/** The kernel's answers in the kernel's order. */
static int update_check(const struct leat_bpf_map *map, const void *key, uint64_t flags)
{
	if ((flags & ~(uint64_t)BPF_F_LOCK) > BPF_EXIST)
		return -EINVAL;
	if (index_of(key) >= map->max_entries)
		return -E2BIG;
	if (flags & BPF_NOEXIST)
		return -EEXIST;
	return leat_bpf_lock_flags_ok(map, flags) ? 0 : -EINVAL;
}

static int array_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags, unsigned int cpu)
{
	int err = update_check(map, key, flags);

	(void)cpu;
	if (err)
		return err;
	if (flags & BPF_F_LOCK)
		return leat_bpf_lock_write(map, elem_at(map, index_of(key)), value);
	leat_value_write(map, elem_at(map, index_of(key)), value);
	return 0;
}

static int percpu_array_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags,
			       unsigned int cpu)
{
	const struct array *a = map->priv;
	int err = update_check(map, key, flags);

	if (!err)
		leat_words_write(elem_at(map, index_of(key)) + cpu * a->region, value, map->value_size);
	return err;
}

static int percpu_array_read(struct leat_bpf_map *map, const void *key, void *values)
{
	const struct array *a = map->priv;
	uint32_t index = index_of(key), cpu;

	if (index >= map->max_entries)
		return -ENOENT;
	for (cpu = 0; cpu < map->cpus; cpu++)
		leat_words_read((uint8_t *)values + (size_t)cpu * map->value_stride,
				elem_at(map, index) + cpu * a->region, map->value_stride);
	return 0;
}

static int percpu_array_write(struct leat_bpf_map *map, const void *key, const void *values, uint64_t flags)
{
	const struct array *a = map->priv;
	int err = update_check(map, key, flags);
	uint32_t cpu;

	for (cpu = 0; !err && cpu < map->cpus; cpu++)
		leat_words_write(elem_at(map, index_of(key)) + cpu * a->region,
				 (const uint8_t *)values + (size_t)cpu * map->value_stride, map->value_stride);
	return err;
}

static int array_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	(void)map;
	(void)key;
	(void)cpu;
	return -EINVAL;
}

/** Of either kind of array. */
static void *array_each(struct leat_bpf_map *map, struct leat_bpf_cursor *at, void *key, unsigned int cpu)
{
	uint32_t index = at->at;

	at->steps = 1;
	if (index >= map->max_entries)
		return NULL;
	at->at++;
	memcpy(key, &index, sizeof(index));
	return map->type->lookup(map, key, cpu);
}

static int array_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	uint32_t index = key ? index_of(key) : UINT32_MAX;

	if (index == map->max_entries - 1)
		return -ENOENT;
	index = index >= map->max_entries ? 0 : index + 1;
	memcpy(next, &index, sizeof(index));
	return 0;
}

/** The first element from @index on that has touched memory in the copies of @cpu; max_entries: none. */
static uint32_t next_used_of(const struct leat_bpf_map *map, struct leat_bpf_used *used, uint32_t index,
			     unsigned int cpu)
{
	const struct array *a = map->priv;
	const uint8_t *start = a->base + cpu * a->region, *end = start + a->used;
	const uint8_t *found = leat_bpf_used_next(used, start + (uint64_t)index * map->value_stride, end);

	return found < end ? (uint32_t)((uint64_t)(found - start) / map->value_stride) : map->max_entries;
}

static int array_next_used(struct leat_bpf_map *map, struct leat_bpf_used *used, const void *key, void *next)
{
	uint32_t index, of_cpu, least = map->max_entries;
	unsigned int cpu;

	if (array_next_key(map, key, &index))
		return -ENOENT;
	for (cpu = 0; cpu < map->cpus && least > index; cpu++) {
		of_cpu = next_used_of(map, used, index, cpu);
		least = of_cpu < least ? of_cpu : least;
	}
	memcpy(next, &least, sizeof(least));
	return least < map->max_entries ? 0 : -ENOENT;
}

static bool array_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	const struct array *a = map->priv;
	uint64_t off = addr - (uint64_t)(uintptr_t)a->base, in;

	if (off >= a->region * map->cpus)
		return false;
	leat_stride_div(&a->by_region, off, &off);
	if (off >= a->used)
		return false;
	leat_stride_div(&a->by_elem, off, &in);
	return in <= map->value_size && size <= map->value_size - in;
}

const struct leat_bpf_map_type leat_bpf_array = {
	.type = BPF_MAP_TYPE_ARRAY,
	.name = "array",
	.check = array_check,
	.create = array_create,
	.destroy = array_destroy,
	.lookup = array_lookup,
	.update = array_update,
	.delete_elem = array_delete,
	.each = array_each,
	.next_key = array_next_key,
	.next_used = array_next_used,
	.contains = array_contains,
};

const struct leat_bpf_map_type leat_bpf_percpu_array = {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.name = "percpu_array",
	.flags = LEAT_BPF_MAP_PER_CPU,
	.check = array_check,
	.create = array_create,
	.destroy = array_destroy,
	.lookup = percpu_array_lookup,
	.update = percpu_array_update,
	.delete_elem = array_delete,
	.each = array_each,
	.read = percpu_array_read,
	.write = percpu_array_write,
	.next_key = array_next_key,
	.next_used = array_next_used,
	.contains = array_contains,
};
