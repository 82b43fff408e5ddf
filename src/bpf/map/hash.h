/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.h: the table behind HASH, PERCPU_HASH, LRU_HASH and LRU_PERCPU_HASH.
 *
 * Theory of operation. A bucket is one cache line: eight slots, each a fingerprint of 15 bits of the hash and the index
 * of an element; full buckets have overflow buckets chained to them. An element is header, key and value together. So a
 * miss reads one line, a hit two, whatever the load.
 *
 *      bucket:  | fp 0..7 (16 bytes) | idx 0..7 (32 bytes) | next | lock | -- |
 *      element: | gen, link | key, padded to 8 | value (HASH), padded to 8 |
 *
 * An element never moves to another slot while it is in the table, and a value that is replaced gets a new element in
 * the same slot; so a reader without a lock finds every key that is there all the while. Writers hold the lock of the
 * first bucket of the chain. The last overflow bucket is taken off when it is empty; a reader that is still in it finds
 * either nothing or another chain's keys, none of which is its own.
 *
 * Workers read elements under the epoch (elems.h). Control threads are no readers of it: they look at the element's
 * generation before and after they copied it.
 */
#ifndef LEAT_BPF_HASH_H
#define LEAT_BPF_HASH_H

#include "bpf/map/elems.h"
#include "bpf/map/map.h"

#define LEAT_HASH_SLOTS 8u

struct leat_hash_bucket {
	uint64_t fp[2];                /* four fingerprints each; 0: free (atomic) */
	uint32_t idx[LEAT_HASH_SLOTS]; /* elements; 0: free (atomic) */
	uint32_t next;                 /* overflow bucket; 0: none (atomic) */
	uint32_t lock;                 /* first bucket of a chain: writers */
	uint64_t spare;
};
LEAT_STATIC_ASSERT(sizeof(struct leat_hash_bucket) == LEAT_CACHELINE, "a bucket is a cache line");

struct leat_hash {
	/* lookups read these */
	struct leat_hash_bucket *bucket; /* mask + 1 first ones, then overflow buckets */
	uint64_t seed[2]; /* the second one is odd */
	uint32_t mask;
	uint32_t key_size;
	uint32_t value_off; /* of an element */
	bool lru;
	uint8_t *values;    /* per CPU: values[cpu * region + index * value_stride]; NULL: in the element */
	uint64_t region;
	struct leat_stride by_region, by_value;
	struct leat_elems elems;
	uint64_t bucket_size; /* bytes mapped */
	uint64_t n_buckets;   /* first ones and overflow */
	/* writers */
	uint32_t overflow_lock LEAT_CACHELINE_ALIGNED;
	uint32_t overflow_free;  /* list by next */
	uint32_t overflow_fresh; /* first one never used */
	uint32_t count LEAT_CACHELINE_ALIGNED; /* elements in the table, and about to be (atomic) */
	uint32_t hand LEAT_CACHELINE_ALIGNED;  /* LRU: where the clock stands (atomic) */
};

/** A place in a chain. */
struct leat_hash_slot {
	struct leat_hash_bucket *bucket; /* NULL: none */
	unsigned int lane;
	uint32_t idx;
};

static inline uint64_t leat_hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t leat_hash_load(const void *from, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, from, n);
	return word;
}

/**
 * Hash of a key; @size is a constant where the caller knows it. Both words of @seed are secret: with a known one,
 * somebody could choose keys that come into one chain.
 */
static inline __attribute__((always_inline)) uint64_t leat_hash_key(const uint64_t seed[2], const void *key,
								     uint32_t size)
{
	const uint8_t *at = key;
	uint64_t hash = seed[0];

	if (size <= 8)
		return leat_hash_fold(leat_hash_load(at, size) ^ hash, seed[1]);
	for (; size > 16; size -= 16, at += 16)
		hash = leat_hash_fold(leat_hash_load(at, 8) ^ hash, leat_hash_load(at + 8, 8) ^ seed[1]);
	if (size <= 8)
		return leat_hash_fold(leat_hash_load(at, size) ^ hash, seed[1]);
	return leat_hash_fold(leat_hash_load(at, 8) ^ hash, leat_hash_load(at + 8, size - 8) ^ seed[1]);
}

/** The fingerprint in all four lanes: never 0. */
static inline uint64_t leat_hash_fp(uint64_t hash)
{
	return (hash >> 48 | 1) * UINT64_C(0x0001000100010001);
}

/** The top bit of each 16-bit lane in which @word and @fp agree. */
static inline uint64_t leat_hash_equal_lanes(uint64_t word, uint64_t fp)
{
	const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
	uint64_t x = word ^ fp;

	return ~(((x & low) + low) | x | low);
}

/** The lanes of a bucket with this fingerprint, as a set for leat_hash_lane(): no branch on where they are. */
static inline uint64_t leat_hash_match(const struct leat_hash_bucket *b, uint64_t fp)
{
	/* pair with the release in hash.c: who sees the fingerprint sees the index */
	return leat_hash_equal_lanes(__atomic_load_n(&b->fp[0], __ATOMIC_ACQUIRE), fp) >> 8 |
	       leat_hash_equal_lanes(__atomic_load_n(&b->fp[1], __ATOMIC_ACQUIRE), fp);
}

/** The first lane of a set that is not empty; its bit is the lowest. */
static inline unsigned int leat_hash_lane(uint64_t set)
{
	unsigned int bit = (unsigned int)__builtin_ctzll(set);

	return (bit / 8 % 2) * 4 + bit / 16;
}

static inline struct leat_hash_bucket *leat_hash_first(const struct leat_hash *h, uint64_t hash)
{
	return &h->bucket[hash & h->mask];
}

static inline uint8_t *leat_hash_elem_key(struct leat_elem *elem)
{
	return (uint8_t *)(elem + 1);
}

/* ---- hash.c: writers and control; 0 or the errno that the map's operation gives ---- */

int leat_hash_init(struct leat_hash *h, const struct leat_bpf_map *map, bool lru);
void leat_hash_fini(struct leat_hash *h);

/** Where @key is (of @hash), under the lock; room->bucket is the first free slot or NULL. */
struct leat_hash_slot leat_hash_locate(struct leat_hash *h, const void *key, uint64_t hash,
				       struct leat_hash_slot *room);
/** Where the element @idx is in the chain of @hash, under the lock. */
struct leat_hash_slot leat_hash_locate_idx(struct leat_hash *h, uint32_t idx, uint64_t hash);
/** Puts an element into @room, or into a new overflow bucket. 0, -ENOMEM. Under the lock. */
int leat_hash_link(struct leat_hash *h, struct leat_hash_slot *room, uint64_t hash, uint32_t idx);
/** Takes the element out of its slot and ends its use. Under the lock; the caller retires it after. */
void leat_hash_unlink(struct leat_hash *h, const struct leat_hash_slot *slot, uint64_t hash);
/** LRU: takes some element that was not used for long out of the table (its count is the caller's then). 0, -ENOMEM */
int leat_hash_evict(struct leat_hash *h, unsigned int who);
/** Worker: the next element of a walk, and its key; 0: there is none. */
uint32_t leat_hash_each(const struct leat_hash *h, struct leat_bpf_cursor *at, void *key);
int leat_hash_next_key(struct leat_hash *h, const void *key, void *next);

#endif
