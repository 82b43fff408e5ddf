/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_map.c: HASH, PERCPU_HASH, LRU_HASH and LRU_PERCPU_HASH: lookups, updates and deletions over the table of hash.h.
 *
 * An update of a key that is there replaces the element in HASH and LRU_HASH, so that who holds the old value keeps
 * it, and writes in place in PERCPU_HASH and with BPF_F_LOCK; all as in the kernel. LRU_HASH makes room by taking an
 * element out.
 */
#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/hash.h"
#include "bpf/map/lock.h"

#define FLAGS_HASH                                                                                                     \
	(uint32_t)(BPF_F_NO_PREALLOC | BPF_F_NUMA_NODE | BPF_F_ZERO_SEED | BPF_F_RDONLY | BPF_F_WRONLY |               \
		   BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG)

/** What an update writes. */
struct put {
	const void *value; /* of one CPU, or of all */
	unsigned int who;  /* CPU; the number of CPUs for control */
	bool all;          /* values of all CPUs */
	bool locked;       /* in place, with the value's lock taken, if the key is there */
};

static bool is_lru(const struct leat_bpf_map *map)
{
	return map->type == &leat_bpf_lru_hash || map->type == &leat_bpf_lru_percpu_hash;
}

static int hash_check(const struct leat_bpf_map *map, const char **why)
{
	bool percpu = map->type->flags & LEAT_BPF_MAP_PER_CPU;
	uint32_t flags = FLAGS_HASH;

	if (is_lru(map))
		flags |= BPF_F_NO_COMMON_LRU;
	if (percpu || (map->map_flags & BPF_F_NO_COMMON_LRU))
		flags &= ~(uint32_t)BPF_F_NUMA_NODE;
	if (map->map_flags & ~flags) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	if (is_lru(map) && map->map_flags & BPF_F_NO_PREALLOC) {
		*why = "BPF_F_NO_PREALLOC cannot be had with LRU";
		return -EOPNOTSUPP;
	}
	if (!map->max_entries || !map->key_size || !map->value_size) {
		*why = "without entries, keys or values";
		return -EINVAL;
	}
	if (map->key_size > LEAT_BPF_KEY_MAX || map->value_size > LEAT_BPF_ELEM_MAX - map->key_size ||
	    (percpu && map->value_stride > LEAT_BPF_PERCPU_VALUE_MAX) || map->max_entries > 1u << 30) {
		*why = "keys, values or their number are too large";
		return -E2BIG;
	}
	return 0;
}

static int hash_create(struct leat_bpf_map *map)
{
	struct leat_hash *h = leat_heap_zalloc(sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	err = leat_hash_init(h, map, is_lru(map));
	if (err)
		leat_heap_free(h);
	else
		map->priv = h;
	return err;
}

static void hash_destroy(struct leat_bpf_map *map)
{
	leat_hash_fini(map->priv);
	leat_heap_free(map->priv);
}

/* ---- lookup ---- */

static inline __attribute__((always_inline)) bool same_key(const void *a, const void *b, uint32_t size)
{
	switch (size) {
	case 4:
		return leat_hash_load(a, 4) == leat_hash_load(b, 4);
	case 8:
		return leat_hash_load(a, 8) == leat_hash_load(b, 8);
	case 16:
		return !((leat_hash_load(a, 8) ^ leat_hash_load(b, 8)) |
			 (leat_hash_load((const uint8_t *)a + 8, 8) ^ leat_hash_load((const uint8_t *)b + 8, 8)));
	default:
		return !memcmp(a, b, size);
	}
}

/** Worker, under the epoch: the element's index, or 0. @size is constant where it is one of the usual. */
static inline __attribute__((always_inline)) uint32_t find(const struct leat_hash *h, const void *key, uint32_t size)
{
	uint64_t hash = leat_hash_key(h->seed, key, size), fp = leat_hash_fp(hash), hops, match;
	const struct leat_hash_bucket *b = leat_hash_first(h, hash);
	uint32_t idx;

	for (hops = 0; hops < h->n_buckets; hops++) {
		for (match = leat_hash_match(b, fp); match; match &= match - 1) {
			idx = __atomic_load_n(&b->idx[leat_hash_lane(match)], __ATOMIC_ACQUIRE);
			if (leat_likely(idx && same_key(leat_hash_elem_key(leat_elem_at(&h->elems, idx)), key, size)))
				return idx;
		}
		idx = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
		if (leat_likely(!idx))
			return 0;
		b = &h->bucket[idx];
	}
	return 0;
}

static inline uint32_t find_any(const struct leat_hash *h, const void *key)
{
	switch (h->key_size) {
	case 4:
		return find(h, key, 4);
	case 8:
		return find(h, key, 8);
	case 16:
		return find(h, key, 16);
	default:
		return find(h, key, h->key_size);
	}
}

static void *hash_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct leat_hash *h = map->priv;
	uint32_t idx = find_any(h, key);

	(void)cpu;
	return idx ? (uint8_t *)leat_elem_at(&h->elems, idx) + h->value_off : NULL;
}

static void *lru_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct leat_hash *h = map->priv;
	uint32_t idx = find_any(h, key);
	struct leat_elem *elem = leat_elem_at(&h->elems, idx);

	(void)cpu;
	if (!idx)
		return NULL;
	leat_elem_touch(elem);
	return (uint8_t *)elem + h->value_off;
}

static inline uint8_t *percpu_value(const struct leat_bpf_map *map, uint32_t idx, unsigned int cpu)
{
	const struct leat_hash *h = map->priv;

	return h->values + cpu * h->region + (uint64_t)idx * map->value_stride;
}

static void *percpu_hash_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	uint32_t idx = find_any(map->priv, key);

	return idx ? percpu_value(map, idx, cpu) : NULL;
}

static void *lru_percpu_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct leat_hash *h = map->priv;
	uint32_t idx = find_any(h, key);

	if (!idx)
		return NULL;
	leat_elem_touch(leat_elem_at(&h->elems, idx));
	return percpu_value(map, idx, cpu);
}

static inline uint8_t *value_at(const struct leat_hash *h, uint32_t idx)
{
	return (uint8_t *)leat_elem_at(&h->elems, idx) + h->value_off;
}

static void *hash_each(struct leat_bpf_map *map, struct leat_bpf_cursor *at, void *key, unsigned int cpu)
{
	const struct leat_hash *h = map->priv;
	uint32_t idx = leat_hash_each(h, at, key);

	if (!idx)
		return NULL;
	return h->values ? percpu_value(map, idx, cpu) : value_at(h, idx);
}

/* ---- control's look-up: not under the epoch ---- */

static void copy_values(const struct leat_bpf_map *map, uint32_t idx, void *values)
{
	const struct leat_hash *h = map->priv;
	unsigned int cpu;

	if (!h->values)
		leat_value_read(map, values, value_at(h, idx));
	for (cpu = 0; h->values && cpu < map->cpus; cpu++)
		leat_words_read((uint8_t *)values + (size_t)cpu * map->value_stride, percpu_value(map, idx, cpu),
				map->value_stride);
}

/** Copies the element's values if it has this key from before to after the copy. */
static bool copy_checked(const struct leat_bpf_map *map, uint32_t idx, const void *key, void *values)
{
	const struct leat_hash *h = map->priv;
	struct leat_elem *elem = leat_elem_at(&h->elems, idx);
	uint32_t gen = leat_elem_gen(elem);

	if (!(gen & 1) || !leat_words_equal(leat_hash_elem_key(elem), key, map->key_size))
		return false;
	copy_values(map, idx, values);
	return leat_elem_still(elem, gen);
}

static int read_locked(struct leat_bpf_map *map, const void *key, uint64_t hash, void *values)
{
	struct leat_hash *h = map->priv;
	struct leat_hash_slot slot, room;

	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return -EBUSY;
	slot = leat_hash_locate(h, key, hash, &room);
	if (slot.bucket)
		copy_values(map, slot.idx, values);
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	return slot.bucket ? 0 : -ENOENT;
}

/** One walk without a lock: 1 found and copied, 0 not found, -1 something changed under it. */
static int read_once(struct leat_bpf_map *map, const void *key, uint64_t hash, void *values)
{
	const struct leat_hash *h = map->priv;
	const struct leat_hash_bucket *b = leat_hash_first(h, hash);
	uint64_t fp = leat_hash_fp(hash), hops;
	unsigned int lane;
	uint32_t idx;
	int result = 0;

	for (hops = 0; hops < h->n_buckets; hops++) {
		for (lane = 0; lane < LEAT_HASH_SLOTS; lane++) {
			if ((__atomic_load_n(&b->fp[lane / 4], __ATOMIC_ACQUIRE) >> lane % 4 * 16 & 0xffff) !=
			    (fp & 0xffff))
				continue;
			idx = __atomic_load_n(&b->idx[lane], __ATOMIC_ACQUIRE);
			if (idx && copy_checked(map, idx, key, values))
				return 1;
			result = -1;
		}
		idx = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
		if (!idx)
			return result;
		b = &h->bucket[idx];
	}
	return -1;
}

/** With the lock of the chain taken, so that the element stays what it is. */
static int hash_read_locked(struct leat_bpf_map *map, const void *key, void *value)
{
	struct leat_hash *h = map->priv;
	uint64_t hash = leat_hash_key(h->seed, key, h->key_size);
	struct leat_hash_slot slot, room;
	int err = -ENOENT;

	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return -EBUSY;
	slot = leat_hash_locate(h, key, hash, &room);
	if (slot.bucket)
		err = leat_bpf_lock_read(map, value, value_at(h, slot.idx));
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	return err;
}

static int hash_read(struct leat_bpf_map *map, const void *key, void *values)
{
	const struct leat_hash *h = map->priv;
	uint64_t hash = leat_hash_key(h->seed, key, h->key_size);
	int result = read_once(map, key, hash, values);

	/* another key with this fingerprint, or a writer: rare */
	return leat_likely(result > 0) ? 0 : result ? read_locked(map, key, hash, values) : -ENOENT;
}

/* ---- writing ---- */

/** Writes the values of an element; of all CPUs but the one that writes 0 if the element is @fresh. */
static void put_values(const struct leat_bpf_map *map, uint32_t idx, const struct put *put, bool fresh)
{
	const struct leat_hash *h = map->priv;
	const uint8_t *value = put->value;
	unsigned int cpu;

	if (!h->values) {
		leat_value_write(map, value_at(h, idx), value);
		return;
	}
	for (cpu = 0; cpu < map->cpus; cpu++) {
		if (put->all)
			leat_words_write(percpu_value(map, idx, cpu), value + (size_t)cpu * map->value_stride,
					 map->value_stride);
		else if (cpu == put->who)
			leat_words_write(percpu_value(map, idx, cpu), value, map->value_size);
		else if (fresh)
			leat_words_zero(percpu_value(map, idx, cpu), map->value_stride);
	}
}

/** A new element with key and values, not yet published; 0 when there is none. */
static uint32_t make_elem(struct leat_bpf_map *map, const void *key, const struct put *put)
{
	struct leat_hash *h = map->priv;
	uint32_t idx = leat_elems_take(&h->elems, put->who);

	if (!idx)
		return 0;
	leat_words_write(leat_hash_elem_key(leat_elem_at(&h->elems, idx)), key, map->key_size);
	put_values(map, idx, put, true);
	return idx;
}

/** Counts one element more, if there is room. */
static bool count_up(struct leat_hash *h, uint32_t max_entries)
{
	uint32_t count = __atomic_load_n(&h->count, __ATOMIC_RELAXED);

	do {
		if (count >= max_entries)
			return false;
	} while (!__atomic_compare_exchange_n(&h->count, &count, count + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

static void count_down(struct leat_hash *h)
{
	__atomic_sub_fetch(&h->count, 1, __ATOMIC_RELAXED);
}

/** The key is there. Under the lock; *@old gets the element that is to be retired. */
static int replace(struct leat_bpf_map *map, struct leat_hash_slot *slot, const void *key, const struct put *put,
		   uint32_t *old)
{
	struct leat_hash *h = map->priv;
	uint32_t idx;

	if (h->values) {
		put_values(map, slot->idx, put, false);
		return 0;
	}
	if (put->locked)
		return leat_bpf_lock_write(map, value_at(h, slot->idx), put->value);
	idx = make_elem(map, key, put);
	if (!idx)
		return -ENOMEM;
	leat_elem_begin(leat_elem_at(&h->elems, idx));
	if (h->lru)
		leat_elem_touch(leat_elem_at(&h->elems, idx));
	/* pairs with the acquire in the lookup */
	__atomic_store_n(&slot->bucket->idx[slot->lane], idx, __ATOMIC_RELEASE);
	leat_elem_end(leat_elem_at(&h->elems, slot->idx));
	*old = slot->idx;
	return 0;
}

/** The key is not there. Under the lock; @counted: room was made before. -E2BIG when there is none. */
static int insert(struct leat_bpf_map *map, struct leat_hash_slot *room, uint64_t hash, const void *key,
		  const struct put *put, bool counted)
{
	struct leat_hash *h = map->priv;
	uint32_t idx;
	int err;

	if (!counted && !count_up(h, map->max_entries))
		return -E2BIG;
	idx = make_elem(map, key, put);
	err = idx ? leat_hash_link(h, room, hash, idx) : -ENOMEM;
	if (!err)
		return 0;
	if (idx)
		leat_elems_put(&h->elems, put->who, idx);
	if (!counted)
		count_down(h);
	return err;
}

/** One try. *@counted is cleared when the room that was made before has been used. */
static int update_once(struct leat_bpf_map *map, const void *key, const struct put *put, uint64_t flags, bool *counted)
{
	struct leat_hash *h = map->priv;
	uint64_t hash = leat_hash_key(h->seed, key, h->key_size);
	struct leat_hash_slot slot, room;
	uint32_t old = 0;
	int err;

	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return -EBUSY;
	slot = leat_hash_locate(h, key, hash, &room);
	if (slot.bucket && flags == BPF_NOEXIST) {
		err = -EEXIST;
	} else if (!slot.bucket && flags == BPF_EXIST) {
		err = -ENOENT;
	} else if (slot.bucket) {
		err = replace(map, &slot, key, put, &old);
	} else {
		err = insert(map, &room, hash, key, put, *counted);
		*counted = *counted && err;
	}
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	if (old)
		leat_elems_retire(&h->elems, put->who, old);
	return err;
}

static int update(struct leat_bpf_map *map, const void *key, const struct put *put, uint64_t flags)
{
	struct leat_hash *h = map->priv;
	unsigned int tries = 0;
	bool counted = false;
	int err;

	if ((flags & ~(uint64_t)BPF_F_LOCK) > BPF_EXIST || !leat_bpf_lock_flags_ok(map, flags))
		return -EINVAL;
	flags &= ~(uint64_t)BPF_F_LOCK;
	for (;;) {
		err = update_once(map, key, put, flags, &counted);
		if (err == -E2BIG && h->lru) {
			/* the element that is taken out leaves its count to us */
			err = leat_hash_evict(h, put->who);
			counted = !err;
			if (!err)
				continue;
		}
		if (err != -ENOMEM || !leat_elems_patience(&h->elems, put->who, &tries))
			break;
	}
	if (counted)
		count_down(h);
	return err;
}

static int hash_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags, unsigned int cpu)
{
	const struct put put = { .value = value, .who = cpu, .locked = flags & BPF_F_LOCK };

	return update(map, key, &put, flags);
}

static int hash_write(struct leat_bpf_map *map, const void *key, const void *values, uint64_t flags)
{
	const struct put put = {
		.value = values, .who = map->env->cpus, .all = true, .locked = flags & BPF_F_LOCK
	};

	return update(map, key, &put, flags);
}

static int hash_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct leat_hash *h = map->priv;
	uint64_t hash = leat_hash_key(h->seed, key, h->key_size);
	struct leat_hash_slot slot, room;

	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return -EBUSY;
	slot = leat_hash_locate(h, key, hash, &room);
	if (slot.bucket) {
		count_down(h); /* before anyone can see that it has gone */
		leat_hash_unlink(h, &slot, hash);
	}
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	if (!slot.bucket)
		return -ENOENT;
	leat_elems_retire(&h->elems, cpu, slot.idx);
	return 0;
}

static int hash_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	return leat_hash_next_key(map->priv, key, next);
}

/* ---- what the interpreter asks ---- */

static bool hash_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	const struct leat_hash *h = map->priv;

	return leat_elems_contain(&h->elems, addr, size, h->value_off, map->value_size);
}

static bool percpu_hash_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	const struct leat_hash *h = map->priv;
	uint64_t off = addr - (uint64_t)(uintptr_t)h->values, in;

	if (off >= h->region * map->cpus)
		return false;
	leat_stride_div(&h->by_region, off, &off);
	if (leat_stride_div(&h->by_value, off, &in) > h->elems.total)
		return false;
	return in <= map->value_size && size <= map->value_size - in;
}

#define HASH_TYPE(number, text, more_flags, lookup_fn, contains_fn)                                                    \
	{                                                                                                              \
		.type = number, .name = text, .flags = more_flags, .check = hash_check, .create = hash_create,         \
		.destroy = hash_destroy, .lookup = lookup_fn, .update = hash_update, .delete_elem = hash_delete,       \
		.each = hash_each, .read = hash_read, .read_locked = hash_read_locked, .write = hash_write,            \
		.next_key = hash_next_key, .contains = contains_fn,                                                    \
	}

const struct leat_bpf_map_type leat_bpf_hash =
	HASH_TYPE(BPF_MAP_TYPE_HASH, "hash", 0, hash_lookup, hash_contains);
const struct leat_bpf_map_type leat_bpf_percpu_hash =
	HASH_TYPE(BPF_MAP_TYPE_PERCPU_HASH, "percpu_hash", LEAT_BPF_MAP_PER_CPU, percpu_hash_lookup, percpu_hash_contains);
const struct leat_bpf_map_type leat_bpf_lru_hash =
	HASH_TYPE(BPF_MAP_TYPE_LRU_HASH, "lru_hash", 0, lru_lookup, hash_contains);
const struct leat_bpf_map_type leat_bpf_lru_percpu_hash = HASH_TYPE(
	BPF_MAP_TYPE_LRU_PERCPU_HASH, "lru_percpu_hash", LEAT_BPF_MAP_PER_CPU, lru_percpu_lookup, percpu_hash_contains);
