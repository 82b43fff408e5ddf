/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.c: the table behind HASH, PERCPU_HASH, LRU_HASH and LRU_PERCPU_HASH: chains, overflow buckets, the clock of the LRU, iteration.
 * See hash.h. Any thread; those functions that say so under the lock of the chain.
 */
#include "bpf/map/hash.h"

#include "bpf/env.h"

/** Entries per first bucket, of eight slots: about one bucket in twenty has an overflow bucket. */
#define LOAD 5u
/** Elements in use that the clock passes at most because they were used recently. */
#define SECOND_CHANCES 128u

#define PAGE UINT64_C(4096)

/* ---- making ---- */

static int init_buckets(struct leat_hash *h, uint32_t max_entries)
{
	uint64_t n = 1;

	while (n * LOAD < max_entries)
		n *= 2;
	h->mask = (uint32_t)(n - 1);
	/* enough even if all keys came into one chain */
	h->n_buckets = n + n / 8 + max_entries / LEAT_HASH_SLOTS + 2;
	h->overflow_fresh = (uint32_t)n;
	h->bucket_size = h->n_buckets * sizeof(*h->bucket);
	h->bucket = leat_bpf_pages_alloc(h->bucket_size);
	if (!h->bucket)
		return -ENOMEM;
	leat_bpf_pages_dense(h->bucket, n * sizeof(*h->bucket));
	return 0;
}

static int init_values(struct leat_hash *h, const struct leat_bpf_map *map)
{
	uint64_t used = (uint64_t)(h->elems.total + 1) * map->value_stride;

	h->region = (used + PAGE - 1) & ~(PAGE - 1);
	h->by_region = leat_stride_make(h->region);
	h->by_value = leat_stride_make(map->value_stride);
	h->values = leat_bpf_pages_alloc(h->region * map->cpus);
	return h->values ? 0 : -ENOMEM;
}

int leat_hash_init(struct leat_hash *h, const struct leat_bpf_map *map, bool lru)
{
	bool percpu = map->type->flags & LEAT_BPF_MAP_PER_CPU;
	int err = init_buckets(h, map->max_entries);
	unsigned int i;

	if (err)
		return err;
	h->lru = lru;
	h->key_size = map->key_size;
	h->value_off = (uint32_t)(sizeof(struct leat_elem) + leat_round8(map->key_size));
	for (i = 0; i < 2; i++)
		h->seed[i] = leat_bpf_mix(map->map_flags & BPF_F_ZERO_SEED ? 0 : map->env->seed, 2 * map->number + i) | i;
	err = leat_elems_init(&h->elems, map->max_entries,
			      h->value_off + (percpu ? 0 : (uint64_t)map->value_stride), map->env->cpus, map->env->epoch);
	if (err)
		goto free_buckets;
	err = percpu ? init_values(h, map) : 0;
	if (err)
		goto fini_elems;
	return 0;

fini_elems:
	leat_elems_fini(&h->elems);
free_buckets:
	leat_bpf_pages_free(h->bucket, h->bucket_size);
	return err;
}

void leat_hash_fini(struct leat_hash *h)
{
	leat_bpf_pages_free(h->values, h->values ? h->region * (h->elems.n_stashes - 1) : 0);
	leat_elems_fini(&h->elems);
	leat_bpf_pages_free(h->bucket, h->bucket_size);
}

/* ---- slots ---- */

static inline uint32_t slot_idx(const struct leat_hash_bucket *b, unsigned int lane)
{
	return __atomic_load_n(&b->idx[lane], __ATOMIC_RELAXED);
}

static void set_fp(struct leat_hash_bucket *b, unsigned int lane, uint64_t fp)
{
	unsigned int shift = lane % 4 * 16;
	uint64_t word = b->fp[lane / 4] & ~(UINT64_C(0xffff) << shift);

	/* pairs with the acquire in the lookup: who sees it sees the index */
	__atomic_store_n(&b->fp[lane / 4], word | (fp & 0xffff) << shift, __ATOMIC_RELEASE);
}

static struct leat_hash_bucket *next_of(const struct leat_hash *h, const struct leat_hash_bucket *b)
{
	uint32_t next = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);

	return next ? &h->bucket[next] : NULL;
}

struct leat_hash_slot leat_hash_locate(struct leat_hash *h, const void *key, uint64_t hash,
				       struct leat_hash_slot *room)
{
	struct leat_hash_bucket *b;
	uint64_t fp = leat_hash_fp(hash) & 0xffff;
	unsigned int lane;
	uint32_t idx;

	*room = (struct leat_hash_slot){ NULL, 0, 0 };
	for (b = leat_hash_first(h, hash); b; b = next_of(h, b)) {
		for (lane = 0; lane < LEAT_HASH_SLOTS; lane++) {
			idx = slot_idx(b, lane);
			if (!idx && !room->bucket)
				*room = (struct leat_hash_slot){ b, lane, 0 };
			if (idx && (b->fp[lane / 4] >> lane % 4 * 16 & 0xffff) == fp &&
			    leat_words_equal(leat_hash_elem_key(leat_elem_at(&h->elems, idx)), key, h->key_size))
				return (struct leat_hash_slot){ b, lane, idx };
		}
	}
	return (struct leat_hash_slot){ NULL, 0, 0 };
}

struct leat_hash_slot leat_hash_locate_idx(struct leat_hash *h, uint32_t idx, uint64_t hash)
{
	struct leat_hash_bucket *b;
	unsigned int lane;

	for (b = leat_hash_first(h, hash); b; b = next_of(h, b))
		for (lane = 0; lane < LEAT_HASH_SLOTS; lane++)
			if (slot_idx(b, lane) == idx)
				return (struct leat_hash_slot){ b, lane, idx };
	return (struct leat_hash_slot){ NULL, 0, 0 };
}

/* ---- overflow buckets ---- */

static uint32_t overflow_take(struct leat_hash *h)
{
	uint32_t n;

	if (leat_spin_lock(&h->overflow_lock))
		return 0;
	n = h->overflow_free;
	if (n)
		h->overflow_free = (uint32_t)h->bucket[n].spare;
	else if (h->overflow_fresh < h->n_buckets)
		n = h->overflow_fresh++;
	leat_spin_unlock(&h->overflow_lock);
	return n;
}

static void overflow_put(struct leat_hash *h, uint32_t n)
{
	while (leat_spin_lock(&h->overflow_lock))
		; /* it must not be lost */
	h->bucket[n].spare = h->overflow_free;
	h->overflow_free = n;
	leat_spin_unlock(&h->overflow_lock);
}

static bool is_empty(const struct leat_hash_bucket *b)
{
	return !b->fp[0] && !b->fp[1];
}

/** Takes empty overflow buckets off the end of a chain. */
static void trim(struct leat_hash *h, struct leat_hash_bucket *first)
{
	struct leat_hash_bucket *last, *before;
	uint32_t n;

	for (;;) {
		before = NULL;
		for (last = first; last->next; last = &h->bucket[last->next])
			before = last;
		if (!before || !is_empty(last))
			return;
		n = before->next;
		__atomic_store_n(&before->next, 0, __ATOMIC_RELEASE);
		overflow_put(h, n);
	}
}

static int add_overflow(struct leat_hash *h, uint64_t hash, struct leat_hash_slot *room)
{
	struct leat_hash_bucket *last = leat_hash_first(h, hash);
	uint32_t n = overflow_take(h);

	if (!n)
		return -ENOMEM;
	while (last->next)
		last = &h->bucket[last->next];
	/* pairs with the acquire in the lookup; the bucket is empty, and its next is 0 */
	__atomic_store_n(&last->next, n, __ATOMIC_RELEASE);
	*room = (struct leat_hash_slot){ &h->bucket[n], 0, 0 };
	return 0;
}

/* ---- linking ---- */

int leat_hash_link(struct leat_hash *h, struct leat_hash_slot *room, uint64_t hash, uint32_t idx)
{
	int err = room->bucket ? 0 : add_overflow(h, hash, room);

	if (err)
		return err;
	leat_elem_begin(leat_elem_at(&h->elems, idx));
	/* pairs with the acquire in the lookup: key and value are there */
	__atomic_store_n(&room->bucket->idx[room->lane], idx, __ATOMIC_RELEASE);
	set_fp(room->bucket, room->lane, leat_hash_fp(hash));
	return 0;
}

void leat_hash_unlink(struct leat_hash *h, const struct leat_hash_slot *slot, uint64_t hash)
{
	struct leat_hash_bucket *first = leat_hash_first(h, hash);

	set_fp(slot->bucket, slot->lane, 0);
	__atomic_store_n(&slot->bucket->idx[slot->lane], 0, __ATOMIC_RELEASE);
	leat_elem_end(leat_elem_at(&h->elems, slot->idx));
	if (leat_unlikely(slot->bucket != first))
		trim(h, first);
}

/* ---- LRU: a clock over the elements ---- */

/** The element under the hand, which moves on; 0 when none was ever used. */
static uint32_t move_hand(struct leat_hash *h)
{
	uint32_t used = __atomic_load_n(&h->elems.fresh, __ATOMIC_RELAXED);
	uint32_t at = __atomic_add_fetch(&h->hand, 1, __ATOMIC_RELAXED);

	if (leat_likely(at <= used))
		return at;
	__atomic_store_n(&h->hand, 1, __ATOMIC_RELAXED);
	return used ? 1 : 0;
}

/** Takes the element out of the table if it is still there with the key it has now. */
static bool take_out(struct leat_hash *h, uint32_t idx, unsigned int who)
{
	uint64_t key[LEAT_BPF_KEY_MAX / sizeof(uint64_t)], hash;
	struct leat_hash_slot slot;

	leat_words_read(key, leat_hash_elem_key(leat_elem_at(&h->elems, idx)), h->key_size);
	hash = leat_hash_key(h->seed, key, h->key_size);
	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return false;
	slot = leat_hash_locate_idx(h, idx, hash);
	if (slot.bucket)
		leat_hash_unlink(h, &slot, hash);
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	if (slot.bucket)
		leat_elems_retire(&h->elems, who, idx);
	return slot.bucket;
}

int leat_hash_evict(struct leat_hash *h, unsigned int who)
{
	uint64_t steps = 2 * (uint64_t)__atomic_load_n(&h->elems.fresh, __ATOMIC_RELAXED) + 2;
	unsigned int chances = 0;
	struct leat_elem *elem;
	uint32_t idx;

	for (; steps; steps--) {
		idx = move_hand(h);
		elem = leat_elem_at(&h->elems, idx);
		if (!(leat_elem_gen(elem) & 1))
			continue;
		if (chances < SECOND_CHANCES &&
		    __atomic_load_n(&elem->link, __ATOMIC_RELAXED) & LEAT_ELEM_USED_RECENTLY) {
			__atomic_fetch_and(&elem->link, ~LEAT_ELEM_USED_RECENTLY, __ATOMIC_RELAXED);
			chances++;
			continue;
		}
		if (take_out(h, idx, who))
			return 0;
	}
	return -ENOMEM;
}

/* ---- iteration; a worker ---- */

static void copy_key(const struct leat_hash *h, uint32_t idx, void *key)
{
	leat_words_read(key, leat_hash_elem_key(leat_elem_at(&h->elems, idx)), h->key_size);
}

/** Moves to the first slot of the next bucket; false at the end. */
static bool next_bucket(const struct leat_hash *h, struct leat_bpf_cursor *at)
{
	uint32_t next = __atomic_load_n(&h->bucket[at->at].next, __ATOMIC_ACQUIRE);

	at->lane = 0;
	at->at = next ? next : ++at->first;
	at->steps++;
	return next || at->first <= h->mask;
}

/* Elements keep their slots, so none that stays is met twice. One that went stays as it was for this worker. */
uint32_t leat_hash_each(const struct leat_hash *h, struct leat_bpf_cursor *at, void *key)
{
	uint32_t idx;

	at->steps = 1;
	if (at->first > h->mask)
		return 0;
	do {
		while (at->lane < LEAT_HASH_SLOTS) {
			/* pairs with set_fp(): who sees the index sees the element */
			idx = __atomic_load_n(&h->bucket[at->at].idx[at->lane++], __ATOMIC_ACQUIRE);
			if (!idx)
				continue;
			copy_key(h, idx, key);
			return idx;
		}
	} while (next_bucket(h, at));
	return 0;
}

/* ---- iteration; control ---- */

/** The key of the first slot from @lane of @b on; false when the chain has no more. Under the lock. */
static bool next_in_chain(struct leat_hash *h, struct leat_hash_bucket *b, unsigned int lane, void *next)
{
	for (; b; b = next_of(h, b), lane = 0) {
		for (; lane < LEAT_HASH_SLOTS; lane++) {
			if (!slot_idx(b, lane))
				continue;
			copy_key(h, slot_idx(b, lane), next);
			return true;
		}
	}
	return false;
}

/** The key that follows @key in its chain, or -ENOENT; -ESRCH when there is no such key. */
static int next_after(struct leat_hash *h, const void *key, uint64_t hash, void *next)
{
	struct leat_hash_slot slot, room;
	bool found;

	if (leat_spin_lock(&leat_hash_first(h, hash)->lock))
		return -EBUSY;
	slot = leat_hash_locate(h, key, hash, &room);
	found = slot.bucket && next_in_chain(h, slot.bucket, slot.lane + 1, next);
	leat_spin_unlock(&leat_hash_first(h, hash)->lock);
	return found ? 0 : slot.bucket ? -ENOENT : -ESRCH;
}

int leat_hash_next_key(struct leat_hash *h, const void *key, void *next)
{
	uint64_t hash = key ? leat_hash_key(h->seed, key, h->key_size) : 0, n;
	int err = key ? next_after(h, key, hash, next) : -ESRCH;
	struct leat_hash_bucket *b;
	bool found;

	if (!err || err == -EBUSY)
		return err;
	for (n = err == -ESRCH ? 0 : (hash & h->mask) + 1; n <= h->mask; n++) {
		b = &h->bucket[n];
		if (!__atomic_load_n(&b->fp[0], __ATOMIC_RELAXED) && !__atomic_load_n(&b->fp[1], __ATOMIC_RELAXED) &&
		    !__atomic_load_n(&b->next, __ATOMIC_RELAXED))
			continue;
		if (leat_spin_lock(&b->lock))
			return -EBUSY;
		found = next_in_chain(h, b, 0, next);
		leat_spin_unlock(&b->lock);
		if (found)
			return 0;
	}
	return -ENOENT;
}
