/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c: address ranges and the memory behind them. Control path, one lock per arena.
 *
 * An arena's addresses are never unmapped once reserved: a thread that has just returned the last buffer of a pool may
 * still read that pool's and block's descriptors. A destroyed arena gives its memory back and waits for the next
 * leat_arena_create() of the process.
 */
#include "mem/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/opts.h"
#include "mem/extent_map.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/** Aligned places to try before giving up. */
#define PLACES_TRIED 1024
/** NUMA nodes that can be told apart. */
#define NODES_MAX 1024u
/** A wish for an address beyond it may get one of more than the 48 bits that a run has. */
#define ADDR_END (UINT64_C(1) << 47)

struct leat_arena {
	uint64_t base;
	uint64_t data_size;
	struct leat_arena *next; /* on the list of arenas that wait for reuse */
	pthread_mutex_t lock;    /* guards the rest */
	struct leat_extent_map map;
	unsigned int refs;       /* the creator's, and one per segment */
};

struct leat_segment {
	struct leat_arena *arena;
	enum leat_segment_kind kind;
	uint64_t base, bytes;
	int fd;
	_Atomic uint64_t committed;
	atomic_bool bound; /* some part was given to a NUMA node */
	char name[32];
	struct leat_extent_map map; /* this and what follows: under the arena's lock */
	struct leat_segment_range *ranges;
	unsigned int refs;          /* the creator's, and one per range */
};

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct leat_arena *spare; /* destroyed arenas, addresses still reserved */

/* ---- addresses ---- */

static uint64_t blocks_size(uint64_t data_size)
{
	return data_size / LEAT_BLOCK_SIZE * sizeof(struct leat_block);
}

static uint64_t granules_size(uint64_t data_size)
{
	return data_size / LEAT_GRANULE_SIZE * sizeof(struct leat_granule);
}

/** Maps @size bytes at @addr if that place is free. */
static bool map_at(uint64_t addr, uint64_t size, int prot)
{
	void *want = (void *)(uintptr_t)addr;
	void *got = mmap(want, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (got == MAP_FAILED)
		return false;
	if (got == want)
		return true;
	munmap(got, size);
	return false;
}

static void unmap_at(uint64_t addr, uint64_t size)
{
	munmap((void *)(uintptr_t)addr, size);
}

static bool reserve_at(uint64_t base, uint64_t data_size)
{
	if (!map_at(base + LEAT_ARENA_DATA, data_size, PROT_NONE))
		return false;
	if (!map_at(base + LEAT_ARENA_BLOCKS, blocks_size(data_size), PROT_READ | PROT_WRITE))
		goto unmap_data;
	if (!map_at(base + LEAT_ARENA_GRANULES, granules_size(data_size), PROT_READ | PROT_WRITE))
		goto unmap_blocks;
	return true;

unmap_blocks:
	unmap_at(base + LEAT_ARENA_BLOCKS, blocks_size(data_size));
unmap_data:
	unmap_at(base + LEAT_ARENA_DATA, data_size);
	return false;
}

/**
 * Finds an aligned hole, downwards from where the system puts mappings by itself, then upwards (under Valgrind there is
 * nothing below). Returns 0 when there is none.
 */
static uint64_t reserve(uint64_t data_size)
{
	void *probe = mmap(NULL, LEAT_EXTENT_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t start, base;
	unsigned int i;

	if (probe == MAP_FAILED)
		return 0;
	munmap(probe, LEAT_EXTENT_SIZE);
	start = leat_arena_base((uint64_t)(uintptr_t)probe);
	for (i = 0, base = start; i < PLACES_TRIED && base >= LEAT_ARENA_SPAN; i++, base -= LEAT_ARENA_SPAN)
		if (reserve_at(base, data_size))
			return base;
	for (i = 0, base = start + LEAT_ARENA_SPAN; i < PLACES_TRIED && base < ADDR_END; i++, base += LEAT_ARENA_SPAN)
		if (reserve_at(base, data_size))
			return base;
	for (i = 1, base = LEAT_ARENA_SPAN; i < PLACES_TRIED; i++, base += LEAT_ARENA_SPAN)
		if (reserve_at(base, data_size))
			return base;
	return 0;
}

/** Takes a destroyed arena of the same size from the list, or NULL. */
static struct leat_arena *take_spare(uint64_t data_size)
{
	struct leat_arena **link, *arena = NULL;

	pthread_mutex_lock(&spare_lock);
	for (link = &spare; *link; link = &(*link)->next) {
		if ((*link)->data_size != data_size)
			continue;
		arena = *link;
		*link = arena->next;
		break;
	}
	pthread_mutex_unlock(&spare_lock);
	return arena;
}

static void put_spare(struct leat_arena *arena)
{
	pthread_mutex_lock(&spare_lock);
	arena->next = spare;
	spare = arena;
	pthread_mutex_unlock(&spare_lock);
}

static int reserve_arena(uint64_t data_size, struct leat_arena **out)
{
	struct leat_arena *arena = leat_heap_zalloc(sizeof(*arena));

	if (!arena)
		return -ENOMEM;
	arena->base = reserve(data_size);
	if (!arena->base) {
		leat_heap_free(arena);
		return -ENOSPC;
	}
	arena->data_size = data_size;
	pthread_mutex_init(&arena->lock, NULL);
	*out = arena;
	return 0;
}

/* ---- arena ---- */

int leat_arena_create(const struct leat_arena_opts *opts, struct leat_arena **out)
{
	struct leat_arena_opts own;
	struct leat_arena *arena;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (!own.data_size)
		own.data_size = LEAT_ARENA_DATA_MAX;
	if (own.data_size > LEAT_ARENA_DATA_MAX)
		return -EINVAL;
	own.data_size = (own.data_size + LEAT_EXTENT_SIZE - 1) & ~(uint64_t)(LEAT_EXTENT_SIZE - 1);
	arena = take_spare(own.data_size);
	if (!arena)
		err = reserve_arena(own.data_size, &arena);
	if (err)
		return err;
	if (!leat_extent_map_init(&arena->map, (uint32_t)(own.data_size >> LEAT_EXTENT_SHIFT))) {
		put_spare(arena);
		return -ENOMEM;
	}
	arena->refs = 1;
	*out = arena;
	return 0;
}

/** The last reference is gone: memory back to the system, addresses kept. */
static void arena_end(struct leat_arena *arena)
{
	leat_extent_map_fini(&arena->map);
	madvise((void *)(uintptr_t)(arena->base + LEAT_ARENA_BLOCKS), blocks_size(arena->data_size), MADV_DONTNEED);
	madvise((void *)(uintptr_t)(arena->base + LEAT_ARENA_GRANULES), granules_size(arena->data_size),
		MADV_DONTNEED);
	put_spare(arena);
}

static void arena_put(struct leat_arena *arena)
{
	bool last;

	pthread_mutex_lock(&arena->lock);
	last = --arena->refs == 0;
	pthread_mutex_unlock(&arena->lock);
	if (last)
		arena_end(arena);
}

void leat_arena_destroy(struct leat_arena *arena)
{
	if (arena)
		arena_put(arena);
}

/* ---- segment ---- */

static int map_private(struct leat_segment *segment)
{
	void *base = (void *)(uintptr_t)segment->base;

	if (mmap(base, segment->bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	madvise(base, segment->bytes, MADV_HUGEPAGE); /* a wish: without it plain pages serve */
	return 0;
}

static int map_shared(struct leat_segment *segment)
{
	int err;

	segment->fd = memfd_create(segment->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (segment->fd < 0)
		return -errno;
	if (ftruncate(segment->fd, (off_t)segment->bytes) ||
	    fcntl(segment->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    mmap((void *)(uintptr_t)segment->base, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 segment->fd, 0) == MAP_FAILED) {
		err = -errno;
		close(segment->fd);
		return err;
	}
	return 0;
}

/** Takes the segment's range in the arena. */
static int place(struct leat_segment *segment)
{
	struct leat_arena *arena = segment->arena;
	int64_t first;

	pthread_mutex_lock(&arena->lock);
	first = leat_extent_map_take(&arena->map, (uint32_t)(segment->bytes >> LEAT_EXTENT_SHIFT));
	if (first >= 0)
		arena->refs++;
	pthread_mutex_unlock(&arena->lock);
	if (first < 0)
		return -ENOSPC;
	segment->base = arena->base + LEAT_ARENA_DATA + ((uint64_t)first << LEAT_EXTENT_SHIFT);
	return 0;
}

static void unplace(struct leat_segment *segment)
{
	struct leat_arena *arena = segment->arena;

	pthread_mutex_lock(&arena->lock);
	leat_extent_map_give(&arena->map, (uint32_t)((segment->base - arena->base - LEAT_ARENA_DATA) >> LEAT_EXTENT_SHIFT),
			     (uint32_t)(segment->bytes >> LEAT_EXTENT_SHIFT));
	pthread_mutex_unlock(&arena->lock);
	arena_put(arena);
}

int leat_segment_create(struct leat_arena *arena, const struct leat_segment_opts *opts, struct leat_segment **out)
{
	struct leat_segment_opts own;
	struct leat_segment *segment;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (!own.bytes || own.bytes > arena->data_size || own.kind > LEAT_SEGMENT_SHARED)
		return -EINVAL;
	segment = leat_heap_zalloc(sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	segment->arena = arena;
	segment->kind = own.kind;
	segment->fd = -1;
	segment->refs = 1;
	segment->bytes = (own.bytes + LEAT_EXTENT_SIZE - 1) & ~(uint64_t)(LEAT_EXTENT_SIZE - 1);
	snprintf(segment->name, sizeof(segment->name), "%s", own.name ? own.name : "leat");
	err = -ENOMEM;
	if (!leat_extent_map_init(&segment->map, (uint32_t)(segment->bytes >> LEAT_EXTENT_SHIFT)))
		goto free_segment;
	err = place(segment);
	if (err)
		goto fini_map;
	err = own.kind == LEAT_SEGMENT_SHARED ? map_shared(segment) : map_private(segment);
	if (err)
		goto unplace;
	*out = segment;
	return 0;

unplace:
	unplace(segment);
fini_map:
	leat_extent_map_fini(&segment->map);
free_segment:
	leat_heap_free(segment);
	return err;
}

static void segment_end(struct leat_segment *segment)
{
	/* back to reserved: what was mapped here is gone, the place stays ours (a failure leaves it mapped, unused) */
	(void)mmap((void *)(uintptr_t)segment->base, segment->bytes, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (segment->fd >= 0)
		close(segment->fd);
	unplace(segment);
	leat_extent_map_fini(&segment->map);
	leat_heap_free(segment);
}

void leat_segment_destroy(struct leat_segment *segment)
{
	bool last;

	if (!segment)
		return;
	pthread_mutex_lock(&segment->arena->lock);
	last = --segment->refs == 0;
	pthread_mutex_unlock(&segment->arena->lock);
	if (last)
		segment_end(segment);
}

int leat_segment_fd(const struct leat_segment *segment)
{
	return segment->fd;
}

void *leat_segment_base(const struct leat_segment *segment)
{
	return (void *)(uintptr_t)segment->base;
}

uint64_t leat_segment_size(const struct leat_segment *segment)
{
	return segment->bytes;
}

uint64_t leat_segment_committed(const struct leat_segment *segment)
{
	return atomic_load_explicit(&segment->committed, memory_order_relaxed);
}

/* ---- for pools ---- */

int leat_segment_take(struct leat_segment *segment, struct leat_segment_range *range)
{
	int64_t first;

	pthread_mutex_lock(&segment->arena->lock);
	first = leat_extent_map_take(&segment->map, range->extents);
	if (first >= 0) {
		range->addr = segment->base + ((uint64_t)first << LEAT_EXTENT_SHIFT);
		range->next = segment->ranges;
		segment->ranges = range;
		segment->refs++;
	}
	pthread_mutex_unlock(&segment->arena->lock);
	return first < 0 ? -ENOSPC : 0;
}

void leat_segment_give(struct leat_segment *segment, struct leat_segment_range *range)
{
	struct leat_segment_range **link;
	bool last;

	pthread_mutex_lock(&segment->arena->lock);
	for (link = &segment->ranges; *link != range; link = &(*link)->next)
		;
	*link = range->next;
	leat_extent_map_give(&segment->map, (uint32_t)((range->addr - segment->base) >> LEAT_EXTENT_SHIFT),
			     range->extents);
	last = --segment->refs == 0;
	pthread_mutex_unlock(&segment->arena->lock);
	if (last)
		segment_end(segment);
}

void leat_segment_for_each_range(struct leat_segment *segment, void (*fn)(struct leat_segment_range *range, void *arg),
				 void *arg)
{
	struct leat_segment_range *range;

	pthread_mutex_lock(&segment->arena->lock);
	for (range = segment->ranges; range; range = range->next)
		fn(range, arg);
	pthread_mutex_unlock(&segment->arena->lock);
}

/** Faults in [addr, addr + size), widened to pages. */
static int populate(uint64_t addr, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = addr & ~(page - 1), end = (addr + size + page - 1) & ~(page - 1);

	if (!madvise((void *)(uintptr_t)first, end - first, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -ENOMEM;
	for (; first < end; first += page) /* an older kernel: an atomic that changes nothing, for others may write */
		__atomic_fetch_or((uint8_t *)(uintptr_t)first, 0, __ATOMIC_RELAXED);
	return 0;
}

unsigned int leat_segment_min_order(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return page > LEAT_PAGE_SIZE ? (unsigned int)__builtin_ctzll(page) - LEAT_PAGE_SHIFT : 0;
}

int leat_segment_describe(uint64_t addr, uint64_t bytes)
{
	uint64_t block = addr & ~(uint64_t)(LEAT_BLOCK_SIZE - 1);
	uint64_t blocks = (addr + bytes - block + LEAT_BLOCK_SIZE - 1) >> LEAT_BLOCK_SHIFT;
	int err = populate((uint64_t)(uintptr_t)leat_block_of(block), blocks * sizeof(struct leat_block));

	if (err)
		return err;
	return populate((uint64_t)(uintptr_t)leat_granule_of(addr),
			bytes / LEAT_GRANULE_SIZE * sizeof(struct leat_granule));
}

/** Says where the pages of [addr, addr + bytes) shall come from. A system that does not know it takes them anywhere. */
static void prefer_node(struct leat_segment *segment, uint64_t addr, uint64_t bytes, int node)
{
	unsigned long nodes[NODES_MAX / (8 * sizeof(unsigned long))] = { 0 };
	unsigned int word = 8 * sizeof(nodes[0]);

	if (node < 0 && !atomic_load_explicit(&segment->bound, memory_order_relaxed))
		return;
	if (node >= (int)NODES_MAX)
		return;
	atomic_store_explicit(&segment->bound, true, memory_order_relaxed);
	if (node >= 0)
		nodes[(unsigned int)node / word] = 1ul << (unsigned int)node % word;
	(void)syscall(SYS_mbind, addr, bytes, node < 0 ? MPOL_DEFAULT : MPOL_PREFERRED, node < 0 ? NULL : nodes,
		      node < 0 ? 0 : NODES_MAX + 1, 0);
}

int leat_segment_commit(struct leat_segment *segment, uint64_t addr, uint64_t bytes, int node)
{
	if (leat_heap_fails_now())
		return -ENOMEM;
	prefer_node(segment, addr, bytes, node);
	if (segment->kind == LEAT_SEGMENT_SHARED &&
	    fallocate(segment->fd, 0, (off_t)(addr - segment->base), (off_t)bytes))
		return -ENOMEM;
	atomic_fetch_add_explicit(&segment->committed, bytes, memory_order_relaxed);
	if (populate(addr, bytes) || leat_segment_describe(addr, bytes)) {
		leat_segment_decommit(segment, addr, bytes);
		return -ENOMEM;
	}
	return 0;
}

void leat_segment_decommit(struct leat_segment *segment, uint64_t addr, uint64_t bytes)
{
	if (segment->kind == LEAT_SEGMENT_SHARED)
		fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(addr - segment->base),
			  (off_t)bytes);
	else
		madvise((void *)(uintptr_t)addr, bytes, MADV_DONTNEED);
	atomic_fetch_sub_explicit(&segment->committed, bytes, memory_order_relaxed);
}
