/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.c: types of maps, making a map, and a control thread's way into one.
 *
 * Types of this room stand in a table; those of rooms above are added at their start and found after ours. What all
 * types share of the kernel's checks is here; sizes and flags of its own each type checks itself.
 */
#include "bpf/map/map.h"

#include <pthread.h>

#include "bpf/env.h"
#include "bpf/map/lock.h"

#define REGISTERED_MAX 16u

static const struct leat_bpf_map_type *const own_types[] = {
	&leat_bpf_array,          &leat_bpf_percpu_array,   &leat_bpf_hash,     &leat_bpf_percpu_hash,
	&leat_bpf_lru_hash,       &leat_bpf_lru_percpu_hash, &leat_bpf_lpm_trie, &leat_bpf_prog_array,
	&leat_bpf_perf_event_array, &leat_bpf_ringbuf,       &leat_bpf_array_of_maps, &leat_bpf_hash_of_maps,
};

static pthread_mutex_t register_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct leat_bpf_map_type *registered[REGISTERED_MAX];
static unsigned int n_registered;

/* ---- types ---- */

static const struct leat_bpf_map_type *find_in(const struct leat_bpf_map_type *const *types, size_t n, uint32_t type)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (types[i]->type == type)
			return types[i];
	return NULL;
}

const struct leat_bpf_map_type *leat_bpf_map_type_find(uint32_t type)
{
	const struct leat_bpf_map_type *found = find_in(own_types, sizeof(own_types) / sizeof(own_types[0]), type);

	if (found)
		return found;
	pthread_mutex_lock(&register_lock);
	found = find_in(registered, n_registered, type);
	pthread_mutex_unlock(&register_lock);
	return found;
}

void leat_bpf_map_type_register(const struct leat_bpf_map_type *type)
{
	pthread_mutex_lock(&register_lock);
	if (!find_in(registered, n_registered, type->type)) {
		LEAT_ASSERT(n_registered < REGISTERED_MAX);
		registered[n_registered++] = type;
	}
	pthread_mutex_unlock(&register_lock);
}

/* ---- making ---- */

int leat_bpf_map_create(struct leat_bpf_map *map, struct leat_diag *diag)
{
	const uint32_t both = BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG;
	const char *why = "its sizes or flags make no sense";
	int err;

	map->cpus = map->type->flags & LEAT_BPF_MAP_PER_CPU ? map->env->cpus : 1;
	map->value_stride = (uint32_t)leat_round8(map->value_size);
	if ((map->map_flags & both) == both) {
		why = "BPF_F_RDONLY_PROG and BPF_F_WRONLY_PROG exclude each other";
		err = -EINVAL;
	} else {
		err = map->type->check(map, &why);
	}
	if (err) {
		leat_diag_add(diag, "map %s (%s): %s", map->name, map->type->name, why);
		return err;
	}
	err = map->type->create(map);
	if (err)
		leat_diag_add(diag, "map %s (%s): this machine has not the memory for %u entries", map->name,
			      map->type->name, map->max_entries);
	return err;
}

void leat_bpf_map_destroy(struct leat_bpf_map *map)
{
	if (map->priv)
		map->type->destroy(map);
	map->priv = NULL;
}

/* ---- control ---- */

static bool per_cpu(const struct leat_bpf_map *map)
{
	return map->type->flags & LEAT_BPF_MAP_PER_CPU;
}

void leat_bpf_map_info(const struct leat_bpf_map *map, struct leat_bpf_map_info *info)
{
	*info = (struct leat_bpf_map_info){
		.name = map->name,
		.type = map->type->type,
		.type_name = map->type->name,
		.key_size = map->key_size,
		.value_size = map->value_size,
		.max_entries = map->max_entries,
		.flags = map->map_flags,
		.per_cpu = per_cpu(map),
		.internal = map->internal,
		.nested = map->type->flags & LEAT_BPF_MAP_NESTED,
		.value_bytes = per_cpu(map) ? map->cpus * map->value_stride : map->value_size,
		.lock = (int32_t)map->lock - 1,
		.btf_key = map->btf_key,
		.btf_value = map->btf_value,
	};
}

int leat_bpf_map_lookup(struct leat_bpf_map *map, const void *key, void *value)
{
	const void *found;

	if (map->type->read)
		return map->type->read(map, key, value);
	if (!map->type->lookup)
		return -EOPNOTSUPP;
	found = map->type->lookup(map, key, 0);
	if (!found)
		return -ENOENT;
	leat_value_read(map, value, found);
	return 0;
}

int leat_bpf_map_lookup_locked(struct leat_bpf_map *map, const void *key, void *value)
{
	void *found;

	if (!map->lock)
		return -EINVAL;
	if (map->type->read_locked)
		return map->type->read_locked(map, key, value);
	found = map->type->lookup(map, key, 0);
	return found ? leat_bpf_lock_read(map, value, found) : -ENOENT;
}

int leat_bpf_map_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags)
{
	if (map->frozen)
		return -EPERM;
	if (!leat_bpf_lock_flags_ok(map, flags)) /* bpf(2) says so before the map looks */
		return -EINVAL;
	if (map->type->write)
		return map->type->write(map, key, value, flags);
	return map->type->update ? map->type->update(map, key, value, flags, map->env->cpus) : -EOPNOTSUPP;
}

int leat_bpf_map_delete(struct leat_bpf_map *map, const void *key)
{
	if (map->frozen)
		return -EPERM;
	return map->type->delete_elem ? map->type->delete_elem(map, key, map->env->cpus) : -EOPNOTSUPP;
}

int leat_bpf_map_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	return map->type->next_key ? map->type->next_key(map, key, next) : -EOPNOTSUPP;
}

int leat_bpf_map_next_used(struct leat_bpf_map *map, struct leat_bpf_used *used, const void *key, void *next)
{
	return map->type->next_used ? map->type->next_used(map, used, key, next) :
				      leat_bpf_map_next_key(map, key, next);
}

int leat_bpf_map_consume(struct leat_bpf_map *map, leat_bpf_record_fn *fn, void *arg)
{
	return map->type->consume ? map->type->consume(map, fn, arg) : -EOPNOTSUPP;
}

uint64_t leat_bpf_map_lost(const struct leat_bpf_map *map)
{
	return __atomic_load_n(&map->lost, __ATOMIC_RELAXED);
}
