/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringbuf.c: RINGBUF: records of all CPUs in one ring, in the order in which they were reserved. Any number of
 * workers write, one control thread reads.
 *
 *      | page of the map | ring of max_entries bytes | the same ring once more |
 *
 * The ring is mapped twice, so that a record which passes its end is contiguous. A record is a head of 8 bytes (length
 * with the bits BUSY and DISCARD, distance from the ring's start in pages) and its bytes, padded to 8, as in the
 * kernel. Reserving takes a lock for a moment; submitting clears BUSY, and the reader stops at the first record that is
 * busy. The ring holds at most max_entries - 1 bytes, also as in the kernel.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"
#include "bpf/map/ringbuf.h"

#define PAGE 4096u
#define HEAD 8u
#define BUSY BPF_RINGBUF_BUSY_BIT
#define DISCARD BPF_RINGBUF_DISCARD_BIT
#define LEN_MASK (~(BUSY | DISCARD))
#define RECORD_MAX (UINT32_MAX / 4)

struct head {
	uint32_t len;  /* bytes, BUSY, DISCARD (atomic) */
	uint32_t page; /* from the start of the ring */
};

/** Lies right before the ring. */
struct ring {
	uint64_t size;
	uint64_t tail LEAT_CACHELINE_ALIGNED; /* read up to here: control's (atomic) */
	uint32_t lock LEAT_CACHELINE_ALIGNED; /* writers */
	uint64_t head; /* reserved up to here (atomic) */
};
LEAT_STATIC_ASSERT(sizeof(struct ring) <= PAGE, "a page lies before the ring");

static inline uint8_t *data_of(struct ring *ring)
{
	return (uint8_t *)ring + PAGE;
}

static inline struct head *head_at(struct ring *ring, uint64_t pos)
{
	return (struct head *)(void *)(data_of(ring) + (pos & (ring->size - 1)));
}

static int ringbuf_check(const struct leat_bpf_map *map, const char **why)
{
	uint32_t n = map->max_entries;

	if (map->key_size || map->value_size) {
		*why = "it has no keys and values";
		return -EINVAL;
	}
	if (!n || n & (n - 1) || n % PAGE) {
		*why = "its size must be a power of two and at least 4096 bytes";
		return -EINVAL;
	}
	if (map->map_flags & ~(uint32_t)BPF_F_NUMA_NODE) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	return 0;
}

/* ---- memory ---- */

/** Maps the file of @size bytes at @at and once more behind it. */
static bool map_twice(uint8_t *at, uint64_t size)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
	int fd = memfd_create("leat-ringbuf", MFD_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = !ftruncate(fd, (off_t)size) && mmap(at, size, prot, flags, fd, 0) != MAP_FAILED &&
	       mmap(at + size, size, prot, flags, fd, 0) != MAP_FAILED;
	close(fd);
	return done;
}

static int ringbuf_create(struct leat_bpf_map *map)
{
	uint64_t size = map->max_entries, all = PAGE + 2 * size;
	struct ring *ring = leat_bpf_pages_alloc(all);

	if (!ring)
		return -ENOMEM;
	if (leat_heap_fails_now() || !map_twice(data_of(ring), size)) {
		leat_bpf_pages_free(ring, all);
		return -ENOMEM;
	}
	ring->size = size;
	map->priv = ring;
	return 0;
}

static void ringbuf_destroy(struct leat_bpf_map *map)
{
	struct ring *ring = map->priv;

	leat_bpf_pages_free(ring, PAGE + 2 * ring->size);
}

/* ---- writing; workers ---- */

static void *reserve_locked(struct ring *ring, uint32_t size)
{
	uint64_t head = ring->head, len = leat_round8(HEAD + (uint64_t)size);
	struct head *at = head_at(ring, head);

	/* pairs with the release in ringbuf_consume(): what was there has been read */
	if (head + len - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > ring->size - 1)
		return NULL;
	at->page = (uint32_t)(((uint8_t *)at - data_of(ring)) / PAGE);
	__atomic_store_n(&at->len, size | BUSY, __ATOMIC_RELAXED);
	/* pairs with the acquire in ringbuf_consume(): who sees the record sees it busy */
	__atomic_store_n(&ring->head, head + len, __ATOMIC_RELEASE);
	return at + 1;
}

void *leat_bpf_ringbuf_reserve(struct leat_bpf_map *map, uint32_t size)
{
	struct ring *ring = map->priv;
	void *record = NULL;

	if (size <= RECORD_MAX && !leat_spin_lock(&ring->lock)) {
		record = reserve_locked(ring, size);
		leat_spin_unlock(&ring->lock);
	}
	if (!record)
		__atomic_fetch_add(&map->lost, 1, __ATOMIC_RELAXED);
	return record;
}

void leat_bpf_ringbuf_submit(void *record, bool discard)
{
	struct head *at = (struct head *)record - 1;
	uint32_t len = __atomic_load_n(&at->len, __ATOMIC_RELAXED) & LEN_MASK;

	/* pairs with the acquire in ringbuf_consume(): the record is whole */
	__atomic_store_n(&at->len, discard ? len | DISCARD : len, __ATOMIC_RELEASE);
}

uint32_t leat_bpf_ringbuf_size(const void *record)
{
	return __atomic_load_n(&((const struct head *)record - 1)->len, __ATOMIC_RELAXED) & LEN_MASK;
}

uint64_t leat_bpf_ringbuf_query(const struct leat_bpf_map *map, uint64_t what)
{
	const struct ring *ring = map->priv;
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	switch (what) {
	case BPF_RB_AVAIL_DATA:
		return head - tail;
	case BPF_RB_RING_SIZE:
		return ring->size;
	case BPF_RB_CONS_POS:
		return tail;
	case BPF_RB_PROD_POS:
		return head;
	default:
		return 0;
	}
}

/* ---- reading; one control thread ---- */

static int ringbuf_consume(struct leat_bpf_map *map, leat_bpf_record_fn *fn, void *arg)
{
	struct ring *ring = map->priv;
	/* pairs with the release in reserve_locked() */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
	int n = 0, err = 0;
	struct head *at;
	uint32_t len;

	while (tail != head && err >= 0) {
		at = head_at(ring, tail);
		len = __atomic_load_n(&at->len, __ATOMIC_ACQUIRE); /* pairs with leat_bpf_ringbuf_submit() */
		if (len & BUSY)
			break;
		if (!(len & DISCARD)) {
			err = fn(arg, -1, at + 1, len);
			n++;
		}
		tail += leat_round8(HEAD + (uint64_t)(len & LEN_MASK));
		/* pairs with the acquire in reserve_locked() */
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	return err < 0 ? err : n;
}

/** The bytes of the ring, heads and all: a record's own bounds are in struct leat_bpf_record. */
static bool ringbuf_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	(void)map;
	(void)addr;
	(void)size;
	return false;
}

const struct leat_bpf_map_type leat_bpf_ringbuf = {
	.type = BPF_MAP_TYPE_RINGBUF,
	.name = "ringbuf",
	.flags = LEAT_BPF_MAP_NO_LOOKUP | LEAT_BPF_MAP_NO_UPDATE,
	.check = ringbuf_check,
	.create = ringbuf_create,
	.destroy = ringbuf_destroy,
	.contains = ringbuf_contains,
	.consume = ringbuf_consume,
};
