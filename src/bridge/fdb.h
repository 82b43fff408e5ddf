/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdb.h: the filtering database of a bridge: which address was last heard of at which port (IEEE 802.1Q, 8.8).
 *
 * A set-associative table: an address has one bucket, of eight entries on one cache line. An entry is one atomic word,
 * so that a look-up takes no lock and sees an entry whole. The hash has a random key: a peer cannot aim at one bucket.
 *
 *   bucket    | word 0 | word 1 | ... | word 7 |      word: address << 16 | slot + 1; 0: free
 *   seen      | ns   0 | ns   1 | ... | ns   7 |      when it was last heard of, monotonic
 */
#ifndef LEAT_BRIDGE_FDB_H
#define LEAT_BRIDGE_FDB_H

#include <leat/base.h>
#include <pthread.h>

#define LEAT_FDB_WAYS 8

struct leat_fdb_bucket {
	uint64_t word[LEAT_FDB_WAYS]; /* atomic; written under the lock */
	uint64_t seen[LEAT_FDB_WAYS]; /* atomic; written by any worker */
} LEAT_CACHELINE_ALIGNED;
LEAT_STATIC_ASSERT(sizeof(struct leat_fdb_bucket) == 2 * LEAT_CACHELINE, "words on one line, times on the next");

struct leat_fdb {
	struct leat_fdb_bucket *bucket;
	uint64_t mask;       /* number of buckets - 1 */
	uint64_t ageing_ns;  /* an entry not heard of for so long does not count */
	uint64_t refresh_ns; /* seen is written again only after so long: shared lines stay clean */
	uint64_t key[3];
	pthread_mutex_t lock; /* who changes words */
};

/** What learning an address did. */
enum leat_fdb_event {
	LEAT_FDB_KNOWN,   /* nothing new, or somebody else was writing: the next packet will do it */
	LEAT_FDB_LEARNED, /* entered in a free or aged place */
	LEAT_FDB_EVICTED, /* entered in the place of the one not heard of for longest */
	LEAT_FDB_MOVED,   /* known at another port before */
};

/** Makes a table for @entries addresses (rounded up to a power of two, at least 8). Returns 0, -ENOMEM, an errno. */
int leat_fdb_init(struct leat_fdb *fdb, uint32_t entries, uint64_t ageing_ns);
void leat_fdb_fini(struct leat_fdb *fdb);

/** The slot at which @mac (48 bits) was heard of within the ageing time, or -1. @now: monotonic ns. *any*. */
int leat_fdb_lookup(const struct leat_fdb *fdb, uint64_t mac, uint64_t now);
/** Notes that @mac was heard of at @slot. Never waits. *any*. */
enum leat_fdb_event leat_fdb_learn(struct leat_fdb *fdb, uint64_t mac, unsigned int slot, uint64_t now);
/** Forgets every address of @slot. Waits for the lock. *control*. */
void leat_fdb_flush(struct leat_fdb *fdb, unsigned int slot);

#endif
