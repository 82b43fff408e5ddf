/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested.c: ARRAY_OF_MAPS and HASH_OF_MAPS: maps whose values are maps. Control writes, workers look up.
 *
 * The array is one of pointers. The hash is a HASH of its own with pointers as values, so that a reader finds what it
 * found before or what is there now. To control a value is the number of the map in its object. Who writes holds the
 * object's lock (nested.h).
 */
#include "bpf/map/nested.h"

#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/mem.h"
#include "bpf/prog.h"

#define FLAGS_ARRAY (uint32_t)(BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY)

struct nested {
	struct leat_bpf_map **entry; /* ARRAY_OF_MAPS; each is atomic */
	struct leat_bpf_map table;   /* HASH_OF_MAPS */
};

static bool is_nested(const struct leat_bpf_map *map)
{
	return map->type->flags & LEAT_BPF_MAP_NESTED;
}

bool leat_bpf_map_fits(const struct leat_bpf_map *template, const struct leat_bpf_map *map)
{
	/* of other types the size is nobody's business but the map's own */
	bool any_size = template->type != &leat_bpf_array || (template->map_flags & BPF_F_INNER_MAP);

	return map->type == template->type && map->key_size == template->key_size &&
	       map->value_size == template->value_size && map->map_flags == template->map_flags &&
	       map->lock == template->lock && (any_size || map->max_entries == template->max_entries);
}

/* ---- definition ---- */

static int check_template(const struct leat_bpf_map *inner, const char **why)
{
	if (!inner) {
		*why = "nothing says what its inner maps look like";
		return -EINVAL;
	}
	if (!inner->type || inner->type == &leat_bpf_prog_array) {
		*why = "its inner maps have a type that cannot be had there";
		return -EOPNOTSUPP;
	}
	if (is_nested(inner)) {
		*why = "its inner maps are maps of maps, too";
		return -EINVAL;
	}
	return inner->type->check(inner, why);
}

static int array_check(const struct leat_bpf_map *map, const char **why)
{
	if (map->key_size != 4 || map->value_size != 4 || !map->max_entries) {
		*why = "keys and values have 4 bytes, and it has entries";
		return -EINVAL;
	}
	if (map->map_flags & ~FLAGS_ARRAY) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	return check_template(map->inner, why);
}

static int hash_check(const struct leat_bpf_map *map, const char **why)
{
	int err = -EINVAL;

	*why = "values have 4 bytes";
	if (map->value_size == 4)
		err = leat_bpf_hash.check(map, why);
	return err ? err : check_template(map->inner, why);
}

static int array_create(struct leat_bpf_map *map)
{
	struct nested *n = leat_heap_zalloc(sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->entry = leat_bpf_pages_alloc((uint64_t)map->max_entries * sizeof(struct leat_bpf_map *));
	if (!n->entry) {
		leat_heap_free(n);
		return -ENOMEM;
	}
	map->priv = n;
	return 0;
}

static void array_destroy(struct leat_bpf_map *map)
{
	struct nested *n = map->priv;

	leat_bpf_pages_free(n->entry, (uint64_t)map->max_entries * sizeof(struct leat_bpf_map *));
	leat_heap_free(n);
}

static int hash_create(struct leat_bpf_map *map)
{
	struct nested *n = leat_heap_zalloc(sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->table = *map;
	n->table.type = &leat_bpf_hash;
	n->table.value_size = n->table.value_stride = sizeof(struct leat_bpf_map *);
	err = leat_bpf_hash.create(&n->table);
	if (err)
		leat_heap_free(n);
	else
		map->priv = n;
	return err;
}

static void hash_destroy(struct leat_bpf_map *map)
{
	struct nested *n = map->priv;

	leat_bpf_hash.destroy(&n->table);
	leat_heap_free(n);
}

/* ---- look-ups ---- */

static uint32_t load32(const void *from)
{
	uint32_t n;

	memcpy(&n, from, sizeof(n));
	return n;
}

struct leat_bpf_map *const *leat_bpf_nested_entries(const struct leat_bpf_map *map)
{
	const struct nested *n = map->priv;

	return n->entry;
}

static void *array_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct nested *n = map->priv;
	uint32_t index = load32(key);

	(void)cpu;
	/* pairs with the release in array_set(): the map is whole */
	return index < map->max_entries ? __atomic_load_n(&n->entry[index], __ATOMIC_ACQUIRE) : NULL;
}

static void *hash_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct nested *n = map->priv;
	struct leat_bpf_map *const *found = leat_bpf_hash.lookup(&n->table, key, cpu);

	/* the element was published after the map was whole */
	return found ? __atomic_load_n(found, __ATOMIC_RELAXED) : NULL;
}

/** The map at @key for a control thread, or NULL. Under the lock. */
static struct leat_bpf_map *get_locked(struct leat_bpf_map *map, const void *key)
{
	struct nested *n = map->priv;
	struct leat_bpf_map *inner = NULL;

	if (n->entry)
		return array_lookup(map, key, 0);
	return leat_bpf_hash.read(&n->table, key, &inner) ? NULL : inner;
}

struct leat_bpf_map *leat_bpf_map_get_inner(struct leat_bpf_map *outer, const void *key)
{
	struct leat_bpf_map *inner;

	if (!is_nested(outer) || !outer->priv)
		return NULL;
	pthread_mutex_lock(&outer->obj->nested_lock);
	inner = get_locked(outer, key);
	pthread_mutex_unlock(&outer->obj->nested_lock);
	return inner;
}

static int nested_read(struct leat_bpf_map *map, const void *key, void *value)
{
	const struct leat_bpf_map *inner = leat_bpf_map_get_inner(map, key);

	if (!inner)
		return -ENOENT;
	memcpy(value, &inner->number, sizeof(inner->number));
	return 0;
}

/* ---- changes ---- */

static int array_set(struct leat_bpf_map *map, const void *key, struct leat_bpf_map *inner)
{
	struct nested *n = map->priv;

	/* pairs with the acquire in array_lookup() and in compiled code */
	__atomic_store_n(&n->entry[load32(key)], inner, __ATOMIC_RELEASE);
	return 0;
}

/** The kernel's answers in the kernel's order: an array looks at the key first, a hash at the map. */
static int write_locked(struct leat_bpf_map *map, const void *key, uint32_t number, uint64_t flags)
{
	struct nested *n = map->priv;
	struct leat_bpf_map *inner, *old;
	int err;

	if (n->entry && flags != BPF_ANY)
		return -EINVAL;
	if (n->entry && load32(key) >= map->max_entries)
		return -E2BIG;
	inner = leat_bpf_inner_find(map->obj, number);
	if (!inner)
		return -EBADF;
	/* what is frozen is a constant to programs that name it, and a variable to those that find it here */
	if (!leat_bpf_map_fits(map->inner, inner) || inner->frozen || inner->internal)
		return -EINVAL;
	old = get_locked(map, key);
	err = n->entry ? array_set(map, key, inner) : leat_bpf_hash.write(&n->table, key, &inner, flags);
	if (err)
		return err;
	leat_bpf_inner_hold(inner);
	leat_bpf_inner_drop(old);
	leat_bpf_inner_reap(map->obj);
	return 0;
}

static int nested_write(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags)
{
	int err;

	pthread_mutex_lock(&map->obj->nested_lock);
	err = write_locked(map, key, load32(value), flags);
	pthread_mutex_unlock(&map->obj->nested_lock);
	return err;
}

static int delete_locked(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct nested *n = map->priv;
	struct leat_bpf_map *old;
	int err;

	if (n->entry && load32(key) >= map->max_entries)
		return -E2BIG;
	old = get_locked(map, key);
	if (!old)
		return -ENOENT;
	err = n->entry ? array_set(map, key, NULL) : leat_bpf_hash.delete_elem(&n->table, key, cpu);
	if (!err)
		leat_bpf_inner_drop(old);
	leat_bpf_inner_reap(map->obj);
	return err;
}

static int nested_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	int err;

	pthread_mutex_lock(&map->obj->nested_lock);
	err = delete_locked(map, key, cpu);
	pthread_mutex_unlock(&map->obj->nested_lock);
	return err;
}

static int array_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	return leat_bpf_array.next_key(map, key, next);
}

static int hash_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	struct nested *n = map->priv;

	return leat_bpf_hash.next_key(&n->table, key, next);
}

/** Programs do not see the pointers. */
static bool nested_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	(void)map;
	(void)addr;
	(void)size;
	return false;
}

#define NESTED(number, text, word)                                                                                     \
	{                                                                                                              \
		.type = number, .name = text, .flags = LEAT_BPF_MAP_NESTED | LEAT_BPF_MAP_NO_UPDATE,                   \
		.check = word##_check, .create = word##_create, .destroy = word##_destroy, .lookup = word##_lookup,    \
		.delete_elem = nested_delete, .read = nested_read, .write = nested_write, .next_key = word##_next_key, \
		.contains = nested_contains,                                                                           \
	}

const struct leat_bpf_map_type leat_bpf_array_of_maps = NESTED(BPF_MAP_TYPE_ARRAY_OF_MAPS, "array_of_maps", array);
const struct leat_bpf_map_type leat_bpf_hash_of_maps = NESTED(BPF_MAP_TYPE_HASH_OF_MAPS, "hash_of_maps", hash);
