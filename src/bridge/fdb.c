/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdb.c: the filtering database of a bridge. Workers look up and learn at the same time; only a new address or one
 * that has moved takes the lock, and only when it is free, so that a flood of new addresses never makes a worker wait.
 *
 * A word and its time are two atomics. Who enters an address writes the time first and releases the word; who looks up
 * acquires the word, so it never sees a new address with an older time than its own. The reverse, an address about to
 * be replaced with the time of its successor, only lets the old address count for one look-up more.
 */
#include "bridge/fdb.h"

#include "base/heap.h"

#include <errno.h>
#include <sys/random.h>

static uint64_t word_make(uint64_t mac, unsigned int slot)
{
	return mac << 16 | (slot + 1);
}

static uint64_t word_mac(uint64_t word)
{
	return word >> 16;
}

static unsigned int word_slot(uint64_t word)
{
	return (unsigned int)(word & 0xffff) - 1;
}

/* Pairs with the release in fdb_enter(). */
static uint64_t word_load(const struct leat_fdb_bucket *bucket, unsigned int way)
{
	return __atomic_load_n(&bucket->word[way], __ATOMIC_ACQUIRE);
}

/* Whether an entry counts. Two workers' clocks may differ by a hair, so "seen after now" is young. */
static bool is_young(const struct leat_fdb_bucket *bucket, unsigned int way, uint64_t now, uint64_t age_ns)
{
	uint64_t seen = __atomic_load_n(&bucket->seen[way], __ATOMIC_RELAXED);

	return seen >= now || now - seen < age_ns;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static struct leat_fdb_bucket *bucket_of(const struct leat_fdb *fdb, uint64_t mac)
{
	return &fdb->bucket[mix(mix(mac ^ fdb->key[0], fdb->key[1]), fdb->key[2]) & fdb->mask];
}

static int draw_key(uint64_t *key, size_t size)
{
	ssize_t got;

	do {
		got = getrandom(key, size, 0);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)size ? 0 : got < 0 ? -errno : -EIO;
}

int leat_fdb_init(struct leat_fdb *fdb, uint32_t entries, uint64_t ageing_ns)
{
	uint64_t buckets = 1;
	int err;

	while (buckets * LEAT_FDB_WAYS < entries)
		buckets *= 2;
	fdb->mask = buckets - 1;
	fdb->ageing_ns = ageing_ns;
	fdb->refresh_ns = ageing_ns / 64;
	err = draw_key(fdb->key, sizeof(fdb->key));
	if (err)
		return err;
	fdb->key[1] |= 1; /* a product with 0 would put every address into one bucket */
	fdb->key[2] |= 1;
	fdb->bucket = leat_heap_zalloc(buckets * sizeof(*fdb->bucket));
	if (!fdb->bucket)
		return -ENOMEM;
	pthread_mutex_init(&fdb->lock, NULL);
	return 0;
}

void leat_fdb_fini(struct leat_fdb *fdb)
{
	pthread_mutex_destroy(&fdb->lock);
	leat_heap_free(fdb->bucket);
}

/* The way that holds @mac, or LEAT_FDB_WAYS. @word: what stands there. */
static unsigned int bucket_find(const struct leat_fdb_bucket *bucket, uint64_t mac, uint64_t *word)
{
	unsigned int way;

	for (way = 0; way < LEAT_FDB_WAYS; way++) {
		*word = word_load(bucket, way);
		if (*word && word_mac(*word) == mac)
			break;
	}
	return way;
}

int leat_fdb_lookup(const struct leat_fdb *fdb, uint64_t mac, uint64_t now)
{
	const struct leat_fdb_bucket *bucket = bucket_of(fdb, mac);
	uint64_t word;
	unsigned int way = bucket_find(bucket, mac, &word);

	if (way == LEAT_FDB_WAYS || !is_young(bucket, way, now, fdb->ageing_ns))
		return -1;
	return (int)word_slot(word);
}

/* The way for a new address: a free one, else an aged one, else the one not heard of for longest. */
static unsigned int bucket_victim(const struct leat_fdb_bucket *bucket)
{
	uint64_t oldest = UINT64_MAX, seen;
	unsigned int way, victim = 0;

	for (way = 0; way < LEAT_FDB_WAYS; way++) {
		if (!word_load(bucket, way))
			return way;
		seen = __atomic_load_n(&bucket->seen[way], __ATOMIC_RELAXED);
		if (seen < oldest) {
			oldest = seen;
			victim = way;
		}
	}
	return victim;
}

/* Pairs with word_load(). */
static void fdb_enter(struct leat_fdb_bucket *bucket, unsigned int way, uint64_t word, uint64_t now)
{
	__atomic_store_n(&bucket->seen[way], now, __ATOMIC_RELAXED);
	__atomic_store_n(&bucket->word[way], word, __ATOMIC_RELEASE);
}

/* Enters a new or moved address, unless another worker has just done so. */
static enum leat_fdb_event learn_locked(struct leat_fdb *fdb, struct leat_fdb_bucket *bucket, uint64_t mac,
					unsigned int slot, uint64_t now)
{
	enum leat_fdb_event event = LEAT_FDB_MOVED;
	uint64_t word;
	unsigned int way = bucket_find(bucket, mac, &word);

	if (way < LEAT_FDB_WAYS && word_slot(word) == slot)
		return LEAT_FDB_KNOWN;
	if (way == LEAT_FDB_WAYS) {
		way = bucket_victim(bucket);
		event = word_load(bucket, way) && is_young(bucket, way, now, fdb->ageing_ns) ? LEAT_FDB_EVICTED
											      : LEAT_FDB_LEARNED;
	} else if (!is_young(bucket, way, now, fdb->ageing_ns)) {
		event = LEAT_FDB_LEARNED; /* forgotten, so it has not moved */
	}
	fdb_enter(bucket, way, word_make(mac, slot), now);
	return event;
}

enum leat_fdb_event leat_fdb_learn(struct leat_fdb *fdb, uint64_t mac, unsigned int slot, uint64_t now)
{
	struct leat_fdb_bucket *bucket = bucket_of(fdb, mac);
	enum leat_fdb_event event = LEAT_FDB_KNOWN;
	uint64_t word;
	unsigned int way = bucket_find(bucket, mac, &word);

	if (leat_likely(way < LEAT_FDB_WAYS && word_slot(word) == slot)) {
		if (!is_young(bucket, way, now, fdb->refresh_ns))
			__atomic_store_n(&bucket->seen[way], now, __ATOMIC_RELAXED);
		return event;
	}
	if (pthread_mutex_trylock(&fdb->lock))
		return event;
	event = learn_locked(fdb, bucket, mac, slot, now);
	pthread_mutex_unlock(&fdb->lock);
	return event;
}

void leat_fdb_flush(struct leat_fdb *fdb, unsigned int slot)
{
	uint64_t i;
	unsigned int way;

	pthread_mutex_lock(&fdb->lock);
	for (i = 0; i <= fdb->mask; i++)
		for (way = 0; way < LEAT_FDB_WAYS; way++)
			if (fdb->bucket[i].word[way] && word_slot(fdb->bucket[i].word[way]) == slot)
				__atomic_store_n(&fdb->bucket[i].word[way], 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fdb->lock);
}
