/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_provider.h: memory that somebody else owns, for tests: a provider with a budget for each of two nodes, which
 * checks that it is called in order, and map ops that give every piece an address far from the others.
 */
#ifndef LEAT_MEM_TEST_PROVIDER_H
#define LEAT_MEM_TEST_PROVIDER_H

#include <errno.h>
#include <sys/mman.h>

#include "mem/page_pool_internal.h"
#include "mem/test_mem.h"

#define PROVIDER_PAGES 4096u

struct test_provider {
	uint64_t base, bytes;       /* of the pool's range, once init was called */
	uint32_t budget[2];         /* pages that each node has left */
	uint32_t max_order;         /* larger pieces are refused */
	uint32_t size[PROVIDER_PAGES];   /* pages of the piece that begins here */
	int node[PROVIDER_PAGES];        /* where it is, by page; -1: nowhere */
	uint64_t iova[PROVIDER_PAGES];   /* of the piece that begins here; 0: not mapped */
	uint32_t given, mapped;     /* pages */
	unsigned int allocs, releases, maps, refused, inits, destroys;
	int init_err, map_err;
	uint64_t next_iova, last_sync_iova;
	uint32_t last_sync_bytes;
};

static inline uint32_t provider_page(const struct test_provider *p, const void *addr)
{
	uint64_t off = (uint64_t)(uintptr_t)addr - p->base;

	LEAT_ASSERT(p->inits == 1 && !p->destroys && off < p->bytes && off % LEAT_PAGE_SIZE == 0);
	return (uint32_t)(off / LEAT_PAGE_SIZE);
}

static inline int provider_init(void *arg, void *addr, uint64_t bytes)
{
	struct test_provider *p = arg;

	LEAT_ASSERT(!p->inits && bytes <= (uint64_t)PROVIDER_PAGES * LEAT_PAGE_SIZE);
	if (p->init_err)
		return p->init_err;
	p->inits++;
	p->base = (uint64_t)(uintptr_t)addr;
	p->bytes = bytes;
	return 0;
}

static inline int provider_alloc(void *arg, void *addr, uint64_t bytes, int node)
{
	struct test_provider *p = arg;
	uint32_t first = provider_page(p, addr), n = (uint32_t)(bytes / LEAT_PAGE_SIZE), i;

	LEAT_ASSERT(n && !(n & (n - 1)) && first % n == 0 && bytes % LEAT_PAGE_SIZE == 0);
	if (node < 0) /* anywhere */
		node = p->budget[0] >= n ? 0 : 1;
	if (leat_heap_fails_now() || n > 1u << p->max_order || node > 1 || p->budget[node] < n) {
		p->refused++;
		return -ENOMEM;
	}
	p->budget[node] -= n;
	p->given += n;
	p->allocs++;
	p->size[first] = n;
	for (i = first; i < first + n; i++) {
		LEAT_ASSERT(p->node[i] < 0);
		p->node[i] = node;
	}
	return 0;
}

static inline void provider_release(void *arg, void *addr, uint64_t bytes)
{
	struct test_provider *p = arg;
	uint32_t first = provider_page(p, addr), n = (uint32_t)(bytes / LEAT_PAGE_SIZE), i;

	LEAT_ASSERT(p->size[first] == n && !p->iova[first]); /* as it was given, and no longer mapped */
	p->budget[p->node[first]] += n;
	p->given -= n;
	p->releases++;
	p->size[first] = 0;
	for (i = first; i < first + n; i++)
		p->node[i] = -1;
	madvise(addr, bytes, MADV_DONTNEED);
}

static inline void provider_destroy(void *arg)
{
	struct test_provider *p = arg;

	LEAT_ASSERT(!p->given && !p->mapped && p->inits == 1 && !p->destroys);
	p->destroys++;
}

static inline int provider_map(void *arg, void *addr, uint64_t bytes, uint64_t *iova)
{
	struct test_provider *p = arg;
	uint32_t first = provider_page(p, addr);

	LEAT_ASSERT(p->size[first] == bytes / LEAT_PAGE_SIZE && !p->iova[first]);
	if (p->map_err || leat_heap_fails_now())
		return -EIO;
	p->next_iova += UINT64_C(1) << 32; /* no two pieces are neighbours */
	p->iova[first] = *iova = p->next_iova;
	p->mapped += p->size[first];
	p->maps++;
	return 0;
}

static inline void provider_unmap(void *arg, void *addr, uint64_t bytes, uint64_t iova)
{
	struct test_provider *p = arg;
	uint32_t first = provider_page(p, addr);

	LEAT_ASSERT(p->size[first] == bytes / LEAT_PAGE_SIZE && p->iova[first] == iova);
	p->iova[first] = 0;
	p->mapped -= p->size[first];
}

static inline void provider_sync(void *arg, uint64_t iova, uint32_t bytes)
{
	struct test_provider *p = arg;

	p->last_sync_iova = iova;
	p->last_sync_bytes = bytes;
}

static const struct leat_page_pool_provider test_provider_ops = {
	.init = provider_init,
	.alloc = provider_alloc,
	.release = provider_release,
	.destroy = provider_destroy,
};

static const struct leat_page_pool_map_ops test_map_ops = {
	.map = provider_map,
	.unmap = provider_unmap,
	.sync_for_device = provider_sync,
	.sync_for_cpu = provider_sync,
};

/** A provider with @pages on each of two nodes. */
static inline void test_provider_init(struct test_provider *p, uint32_t pages)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < PROVIDER_PAGES; i++)
		p->node[i] = -1;
	p->budget[0] = p->budget[1] = pages;
	p->max_order = LEAT_EXTENT_ORDER;
}

/** A pool over it, owned by the calling thread. */
static inline struct leat_page_pool *test_provider_pool(struct leat_segment *segment, struct test_provider *p,
							uint64_t limit, uint64_t floor, bool map)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = limit, .floor = floor };
	struct leat_page_pool *pool;

	opts.provider = &test_provider_ops;
	opts.provider_arg = p;
	opts.map = map ? &test_map_ops : NULL;
	opts.map_arg = p;
	assert_int_equal(leat_page_pool_create(segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	return pool;
}

/** Which node the memory of a run is on; -1: on several. */
static inline int test_provider_node(const struct test_provider *p, struct leat_run run)
{
	uint64_t addr = leat_run_addr(run) - p->base;
	uint32_t first = (uint32_t)(addr / LEAT_PAGE_SIZE), i;
	uint32_t last = (uint32_t)((addr + leat_run_size(run) - 1) / LEAT_PAGE_SIZE);

	for (i = first; i <= last; i++)
		if (p->node[i] != p->node[first])
			return -1;
	return p->node[first];
}

/**
 * What must hold of a pool at any moment, seen by its owner: every granule with memory is free, the cursor's or out;
 * wholly free blocks are where they belong; counters add up.
 */
static inline void assert_pool_sound(struct leat_page_pool *pub)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t idx, n_whole = 0, n_aside = 0, pages = 0, n_foreign = 0;
	struct leat_page_pool_stats s;
	uint64_t free = 0;

	leat_page_pool_stats(pub, &s);
	for (idx = 0; idx < pool->max_blocks; idx++) {
		const struct leat_block *block = &pool->blocks[idx];
		bool foreign = leat_pool_is_foreign(pool, idx), full;
		bool in_whole = pool->whole[idx / 64] >> idx % 64 & 1, in_aside = pool->aside[idx / 64] >> idx % 64 & 1;

		if (idx % LEAT_EXTENT_BLOCKS == 0) {
			pages += pool->extent[idx / LEAT_EXTENT_BLOCKS].pages;
			n_foreign += foreign && pool->extent[idx / LEAT_EXTENT_BLOCKS].pages;
		}
		n_whole += in_whole;
		n_aside += in_aside;
		if (idx >= pool->n_blocks || !leat_pool_present(pool, idx)) {
			assert_false(in_whole || in_aside);
			continue;
		}
		assert_ptr_equal(block->pool, pub);
		assert_int_equal(block->free & ~leat_pool_present(pool, idx), 0);
		free += (uint64_t)__builtin_popcountll(block->free);
		full = block->free == ~UINT64_C(0) && idx < pool->limit_blocks;
		assert_int_equal(in_whole, full && !foreign);
		assert_int_equal(in_aside, full && foreign);
	}
	assert_int_equal(n_whole, pool->n_whole);
	assert_int_equal(n_aside, pool->n_aside);
	assert_int_equal(n_foreign, pool->n_foreign);
	assert_int_equal(pages, pool->n_pages);
	assert_int_equal(s.committed, (uint64_t)pages << LEAT_PAGE_SHIFT);
	assert_int_equal(free + s.cursor + s.outstanding, s.committed >> LEAT_GRANULE_SHIFT);
	assert_int_equal(s.cut_new + s.cut_recycled + s.cut_partial, s.alloc + s.uncut + s.cursor);
	assert_int_equal(s.outstanding, s.alloc - s.direct - s.remote);
	assert_int_equal(s.outstanding, s.device + s.returning + s.held);
}

#endif
