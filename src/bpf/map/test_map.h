/* SPDX-License-Identifier: BSD-3-Clause */
/* test_map.h: what the tests of maps share: an environment and a map in it. */
#ifndef LEAT_BPF_TEST_MAP_H
#define LEAT_BPF_TEST_MAP_H

#include "mem/test_mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "bpf/env.h"
#include "bpf/map/hash.h"
#include "bpf/map/map.h"

#define NO_PREALLOC ((uint32_t)BPF_F_NO_PREALLOC)

struct test_map {
	struct leat_epoch epoch;
	struct leat_bpf_env *env;
	struct leat_bpf_map map;
};

/** Makes a map; the result is leat_bpf_map_create()'s. Time is replayed, seed 1, with an epoch that all threads share. */
static inline int test_map_try(struct test_map *t, unsigned int cpus, uint32_t type, uint32_t key, uint32_t value,
			       uint32_t max, uint32_t flags)
{
	struct leat_bpf_env_opts opts = { .size = sizeof(opts), .cpus = cpus, .replay = true, .seed = 1 };
	int err;

	memset(t, 0, sizeof(*t));
	leat_epoch_init(&t->epoch);
	opts.epoch = &t->epoch;
	err = leat_bpf_env_create(&opts, &t->env);
	if (err)
		return err;
	t->map.type = leat_bpf_map_type_find(type);
	t->map.env = t->env;
	t->map.key_size = key;
	t->map.value_size = value;
	t->map.max_entries = max;
	t->map.map_flags = flags;
	snprintf(t->map.name, sizeof(t->map.name), "test");
	err = leat_bpf_map_create(&t->map, NULL);
	if (err) {
		assert_null(t->map.priv);
		leat_bpf_env_destroy(t->env);
	}
	return err;
}

static inline void test_map_open(struct test_map *t, unsigned int cpus, uint32_t type, uint32_t key, uint32_t value,
				 uint32_t max, uint32_t flags)
{
	assert_int_equal(test_map_try(t, cpus, type, key, value, max, flags), 0);
}

static inline void test_map_close(struct test_map *t)
{
	leat_bpf_map_destroy(&t->map);
	leat_bpf_env_destroy(t->env);
}

/** From here on all keys of a hash map come into one chain, with overflow buckets. Before the first update. */
static inline void test_map_one_chain(struct test_map *t)
{
	struct leat_hash *h = t->map.priv;

	h->mask = 0;
}

/** A program's operations, as CPU @cpu. */
static inline void *prog_lookup(struct test_map *t, const void *key, unsigned int cpu)
{
	return t->map.type->lookup(&t->map, key, cpu);
}

static inline int prog_update(struct test_map *t, const void *key, const void *value, uint64_t flags, unsigned int cpu)
{
	return t->map.type->update(&t->map, key, value, flags, cpu);
}

static inline int prog_delete(struct test_map *t, const void *key, unsigned int cpu)
{
	return t->map.type->delete_elem(&t->map, key, cpu);
}

static inline bool prog_may(const struct test_map *t, const void *at, uint32_t size)
{
	return t->map.type->contains(&t->map, (uint64_t)(uintptr_t)at, size);
}

/** Key number @n: all its bytes depend on @n, and no two are equal. */
static inline void test_key(uint8_t *key, uint32_t size, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		key[i] = (uint8_t)(i < 4 ? n >> 8 * i : n * 37 + i);
}

#endif
