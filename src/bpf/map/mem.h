/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.h: what the map types share: memory that is touched lazily, copies of values that others read meanwhile,
 * short locks, and finding an element from an address without a division.
 *
 * Values are copied in words of 8 bytes, each read and written whole, as a program's own loads and stores are. Values
 * and keys lie at multiples of 8, and their storage is a multiple of 8 long.
 */
#ifndef LEAT_BPF_MAP_MEM_H
#define LEAT_BPF_MAP_MEM_H

#include <errno.h>
#include <leat/base.h>
#include <string.h>

/** Longest key, bytes: a program has no larger stack to hold one. */
#define LEAT_BPF_KEY_MAX 512u
/** Largest key and value of an element, bytes, as in the kernel (KMALLOC_MAX_SIZE less what an element has beside). */
#define LEAT_BPF_ELEM_MAX ((4u << 20) - 64)
/** Largest value of a per-CPU map, bytes, as in the kernel (PCPU_MIN_UNIT_SIZE). */
#define LEAT_BPF_PERCPU_VALUE_MAX (32u << 10)

/**
 * Zeroed memory, reserved and not touched, or NULL: where it is more than the machine has, for it could never be used to
 * its end. Put back with leat_bpf_pages_free() and the same size.
 */
void *leat_bpf_pages_alloc(uint64_t size);
void leat_bpf_pages_free(void *mem, uint64_t size);
/** Asks for large pages: for memory that is used densely. */
void leat_bpf_pages_dense(void *mem, uint64_t size);

/** Tells which pages of a map were ever touched. Where the system does not say, all of them. *control*. */
struct leat_bpf_used {
	int fd; /* /proc/self/pagemap, -1: cannot be read */
	uint64_t page_size;
	uint64_t first, n; /* pages whose entries are here, by number */
	uint64_t entry[512];
};
void leat_bpf_used_init(struct leat_bpf_used *used);
void leat_bpf_used_fini(struct leat_bpf_used *used);
/** The first byte of [mem, end) on a page that was touched, or @end; touches nothing itself. */
const uint8_t *leat_bpf_used_next(struct leat_bpf_used *used, const uint8_t *mem, const uint8_t *end);

static inline uint64_t leat_round8(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

/** A number that differs for every @seed and @n, evenly spread. */
static inline uint64_t leat_bpf_mix(uint64_t seed, uint64_t n)
{
	uint64_t x = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* ---- words ---- */

/** Copies @size bytes from anywhere to shared storage; pads the last word with zeroes. */
static inline void leat_words_write(void *shared, const void *from, size_t size)
{
	uint64_t *to = shared, word;
	size_t off;

	for (off = 0; off + sizeof(word) <= size; off += sizeof(word)) {
		memcpy(&word, (const uint8_t *)from + off, sizeof(word));
		__atomic_store_n(to++, word, __ATOMIC_RELAXED);
	}
	if (off < size) {
		word = 0;
		memcpy(&word, (const uint8_t *)from + off, size - off);
		__atomic_store_n(to, word, __ATOMIC_RELAXED);
	}
}

/** Copies @size bytes from shared storage to anywhere. */
static inline void leat_words_read(void *to, const void *shared, size_t size)
{
	const uint64_t *from = shared;
	uint64_t word;
	size_t off;

	for (off = 0; off < size; off += sizeof(word)) {
		word = __atomic_load_n(from++, __ATOMIC_RELAXED);
		memcpy((uint8_t *)to + off, &word, size - off < sizeof(word) ? size - off : sizeof(word));
	}
}

static inline void leat_words_zero(void *shared, size_t size)
{
	uint64_t *to = shared;
	size_t off;

	for (off = 0; off < size; off += sizeof(*to))
		__atomic_store_n(to++, 0, __ATOMIC_RELAXED);
}

/** Whether shared storage holds these @size bytes (padded with zeroes). */
static inline bool leat_words_equal(const void *shared, const void *bytes, size_t size)
{
	const uint64_t *from = shared;
	uint64_t word;
	size_t off, n;

	for (off = 0; off < size; off += n) {
		n = size - off < sizeof(word) ? size - off : sizeof(word);
		word = 0;
		memcpy(&word, (const uint8_t *)bytes + off, n);
		if (__atomic_load_n(from++, __ATOMIC_RELAXED) != word)
			return false;
	}
	return true;
}

/* ---- elements of one size ---- */

/** Division by @stride, made before. */
struct leat_stride {
	uint64_t stride;
	uint64_t inverse; /* 2^64 / stride, rounded down; 0 for strides of 1 and none */
};

static inline struct leat_stride leat_stride_make(uint64_t stride)
{
	return (struct leat_stride){ stride, UINT64_MAX / stride };
}

/** The quotient of @off; the rest goes to @rest. */
static inline uint64_t leat_stride_div(const struct leat_stride *s, uint64_t off, uint64_t *rest)
{
	uint64_t quotient = (uint64_t)((unsigned __int128)off * s->inverse >> 64);

	*rest = off - quotient * s->stride;
	while (*rest >= s->stride) { /* the estimate is at most two short */
		*rest -= s->stride;
		quotient++;
	}
	return quotient;
}

/* ---- short locks ---- */

LEAT_COLD int leat_spin_lock_slow(uint32_t *lock);
/** How often it makes way before it gives up; for tests. */
extern unsigned int leat_spin_yields;

/**
 * Takes a lock that is held for some hundred nanoseconds. Spins for a bounded time, then makes way for whoever holds
 * it. Returns 0, or -EBUSY when that did not help for a long time (its holder is not run).
 */
static inline int leat_spin_lock(uint32_t *lock)
{
	/* pairs with the release in leat_spin_unlock() */
	return leat_likely(!__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) ? 0 : leat_spin_lock_slow(lock);
}

static inline void leat_spin_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE); /* pairs with the acquire in leat_spin_lock() */
}

#endif
