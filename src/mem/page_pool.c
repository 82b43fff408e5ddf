/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool.c: which memory a pool's cursor runs over next. Owner thread.
 *
 * Theory of operation
 *
 * A pool has a range of addresses, of which a part has memory (pool_memory.c). Each block has a mask of free granules;
 * what the cursor took is not free. When the cursor's run is used up, the next one is, in this order:
 *
 *   1. a wholly free block, the next one by address, round and round: buffers that are handed out together lie side
 *      by side, over the border of blocks, too;
 *   2. a wholly free extent of another NUMA node than the pool's, moved;
 *   3. more memory, while the pool is smaller than max(floor, 2 x what is out), and no more than that at once;
 *   4. the longest free run of at least PARTIAL_MIN granules in the next PARTIAL_LOOK blocks, or the first one of
 *      PARTIAL_ENOUGH;
 *   5. any free run that is long enough;
 *   6. more memory, up to the limit;
 *   7. what other threads have put, whether they rang or not, and 1 to 6 again;
 *   8. memory of another node, where it is.
 *
 * Single free granules are never kept in a list: a list hands them out backwards and nothing would merge.
 *
 * Before the search, what other threads have put is taken in, if they rang (remote_return.c). While the next block is
 * wholly free, it is not looked for.
 *
 * Step 1 is the short way, about fifty instructions for a run of 64 granules. What makes memory traffic (more memory,
 * a search) does not happen in steady state.
 */
#include "mem/page_pool_internal.h"

#include <string.h>

#include "base/clock.h"
#include "mem/stamp.h"

#define PARTIAL_MIN 16u /* granules: 8 KiB */
#define PARTIAL_LOOK 32u
/** Runs, in granules, that are not worth looking further for: in the next PARTIAL_LOOK blocks, and in all of them. */
#define PARTIAL_ENOUGH 48u
#define PARTIAL_ENOUGH_FAR 8u

/* ---- time ---- */

/** A counter that is read in a few cycles, and steps of it after which the clock is read again: below 3 ms. */
#if defined(__x86_64__)
#define TICKS_OLD (UINT64_C(1) << 20)
static inline uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define TICKS_OLD (UINT64_C(1) << 16)
static inline uint64_t ticks(void)
{
	uint64_t now;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(now));
	return now;
}
#else
#define TICKS_OLD 0
static inline uint64_t ticks(void)
{
	return 1; /* always old */
}
#endif

static LEAT_COLD void read_clock(struct leat_pool *pool)
{
	uint32_t ms = (uint32_t)(leat_clock_read(CLOCK_MONOTONIC_COARSE) / 1000000);

	pool->tick = ticks();
	pool->now_twice = (uint64_t)(ms ? ms : 1) * UINT64_C(0x100000001); /* 0: never cut */
}

/* ---- the cursor ---- */

void leat_page_pool_block_whole(struct leat_page_pool *pub, struct leat_block *block)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t idx = (uint32_t)(block - pool->blocks);

	if (leat_unlikely(pool->picky)) {
		leat_pool_sort_block(pool, idx);
		return;
	}
	pool->whole[idx / 64] |= UINT64_C(1) << idx % 64;
	pool->n_whole++;
}

void leat_pool_uncut(struct leat_pool *pool)
{
	struct leat_page_pool *pub = &pool->pub;
	uint32_t left = leat_page_pool_left(pub);

	if (!left)
		return;
	__atomic_store_n(&pub->end, pub->cur, __ATOMIC_RELAXED);
	leat_count(&pub->counts.uncut, left);
	leat_pool_free_granules(pool, leat_block_of(pub->cur), leat_granule_idx(pub->cur) % LEAT_BLOCK_GRANULES, left);
}

static inline bool clock_is_old(const struct leat_pool *pool)
{
	return ticks() - pool->tick > TICKS_OLD;
}

/** Takes wholly free block @idx, whose bit in a bitmap is gone, and which has no flags. */
static inline __attribute__((always_inline)) void take_clean(struct leat_pool *pool, struct leat_block *block,
								     uint64_t idx)
{
	if (leat_unlikely(!block->cut_ms[0]))
		leat_count(&pool->cut_new, LEAT_BLOCK_GRANULES);
	leat_block_stamp_whole(block, pool->pub.first + (idx << LEAT_BLOCK_SHIFT), pool->now_twice);
	__atomic_store_n(&block->free, 0, __ATOMIC_RELEASE); /* the stamps are seen by who sees that it is cut: account.c */
	pool->sweep = idx;
	leat_count(&pool->pub.counts.cut, LEAT_BLOCK_GRANULES);
}

static void forget_whole(struct leat_pool *pool, uint32_t idx)
{
	pool->whole[idx / 64] &= ~(UINT64_C(1) << idx % 64);
	pool->n_whole--;
}

/** Takes wholly free block @idx, whose bit in a bitmap is gone. */
static void take_block(struct leat_pool *pool, uint32_t idx)
{
	struct leat_block *block = &pool->blocks[idx];

	if (block->flags) { /* a line that is read by many is written only when it must */
		uint64_t chunks;

		memcpy(&chunks, block->chunk, sizeof(chunks));
		LEAT_ASSERT(!chunks); /* else: a page_frag_cache left marks */
		__atomic_store_n(&block->flags, 0, __ATOMIC_RELAXED);
	}
	take_clean(pool, block, idx);
	leat_count(&pool->long_blocks, 1);
}

/** Points the cursor at a block that the long way took. */
static void point_at(struct leat_pool *pool, uint32_t idx)
{
	uint64_t addr = leat_pool_block_addr(pool, idx);

	leat_page_pool_move(&pool->pub, addr);
	__atomic_store_n(&pool->pub.end, addr + LEAT_BLOCK_SIZE, __ATOMIC_RELAXED);
}

/** Points the cursor at granules [bit, bit + n) of a partly free block. */
static void cut_run(struct leat_pool *pool, uint32_t idx, uint32_t bit, uint32_t n)
{
	struct leat_block *block = &pool->blocks[idx];

	leat_block_stamp(block, leat_pool_block_addr(pool, idx), bit, n, (uint32_t)pool->now_twice);
	__atomic_store_n(&block->free, block->free & ~leat_block_mask(bit, n), __ATOMIC_RELEASE); /* as above */
	pool->sweep = idx;
	leat_page_pool_move(&pool->pub, leat_pool_block_addr(pool, idx) + ((uint64_t)bit << LEAT_GRANULE_SHIFT));
	__atomic_store_n(&pool->pub.end, pool->pub.cur + ((uint64_t)n << LEAT_GRANULE_SHIFT), __ATOMIC_RELAXED);
	leat_count(&pool->pub.counts.cut, n);
	leat_count(&pool->cut_partial, n);
	leat_count(&pool->partial_runs, 1);
}

/* ---- the next run ---- */

/** Step 1: the next wholly free block after the sweep, cyclically. */
static bool cut_whole(struct leat_pool *pool)
{
	uint32_t words = (pool->n_blocks + 63) / 64;
	uint32_t start = (uint32_t)pool->sweep + 1;
	uint32_t w, i, idx;
	uint64_t bits;

	if (!pool->n_whole)
		return false;
	if (start >= pool->n_blocks)
		start = 0;
	w = start / 64;
	bits = pool->whole[w] & ~UINT64_C(0) << start % 64;
	for (i = 0; !bits && i < words; i++) {
		w = w + 1 < words ? w + 1 : 0;
		bits = pool->whole[w];
	}
	idx = w * 64 + (uint32_t)__builtin_ctzll(bits);
	forget_whole(pool, idx);
	take_block(pool, idx);
	point_at(pool, idx);
	return true;
}

/** Pages that the pool may grow by before it uses partly free blocks. */
static uint32_t below_watermark(const struct leat_pool *pool)
{
	uint64_t mark = 2 * leat_pool_outstanding(pool) / LEAT_PAGE_GRANULES;

	if (mark < pool->floor_pages)
		mark = pool->floor_pages;
	return pool->n_pages < mark ? (uint32_t)(mark - pool->n_pages) : 0;
}

/** Whether @free has a run of @n ones, or more. */
static inline bool has_run(uint64_t free, uint32_t n)
{
	uint32_t half;

	for (; n > 1 && free; n -= half) {
		half = n / 2;
		free &= free >> half;
	}
	return free;
}

/** Longest run of ones in @free, by doubling; its length, and its first bit in @first. */
static uint32_t longest_run(uint64_t free, uint32_t *first)
{
	uint64_t starts[7], at; /* starts[k]: bits that begin a run of 2^k or more */
	uint32_t n, k = 0, more;

	if (!free)
		return 0;
	for (starts[0] = free; k < 6; k++) {
		starts[k + 1] = starts[k] & starts[k] >> (1u << k);
		if (!starts[k + 1])
			break;
	}
	for (at = starts[k], n = 1u << k; k--;) {
		more = n < LEAT_BLOCK_GRANULES && at & starts[k] >> n;
		at = more ? at & starts[k] >> n : at;
		n += more << k;
	}
	*first = (uint32_t)__builtin_ctzll(at);
	return n;
}

/**
 * Steps 4 and 5: the longest run of at least @least granules in the next @look blocks that are partly free, or the first
 * one of @enough. Those of another node only when @anywhere.
 */
static bool cut_partial(struct leat_pool *pool, uint32_t least, uint32_t enough, uint32_t look, bool anywhere)
{
	uint32_t end = pool->n_blocks < pool->limit_blocks ? pool->n_blocks : pool->limit_blocks;
	uint32_t idx = (uint32_t)pool->sweep, bit = 0, best = least - 1, best_idx = 0, best_bit = 0;
	uint64_t free;

	for (look = look < end ? look : end; look && (best < least || best < enough); look--) {
		idx = idx + 1 < end ? idx + 1 : 0;
		free = pool->blocks[idx].free;
		if (!has_run(free, best + 1) || free == ~UINT64_C(0) || (!anywhere && leat_pool_is_foreign(pool, idx)))
			continue; /* nothing better; wholly free: kept aside */
		best = longest_run(free, &bit);
		best_idx = idx;
		best_bit = bit;
	}
	if (best < least)
		return false;
	cut_run(pool, best_idx, best_bit, best);
	return true;
}

static bool next_run(struct leat_pool *pool, uint32_t granules)
{
	if (cut_whole(pool) || (pool->n_foreign && leat_pool_move_extent(pool) && cut_whole(pool)))
		return true;
	while (leat_pool_grow(pool, below_watermark(pool)))
		if (cut_whole(pool))
			return true;
	if (cut_partial(pool, granules > PARTIAL_MIN ? granules : PARTIAL_MIN, PARTIAL_ENOUGH, PARTIAL_LOOK, false) ||
	    cut_partial(pool, granules, PARTIAL_ENOUGH_FAR, UINT32_MAX, false))
		return true;
	while (leat_pool_grow(pool, LEAT_BLOCK_PAGES))
		if (cut_whole(pool))
			return true;
	return cut_partial(pool, granules, PARTIAL_ENOUGH_FAR, UINT32_MAX, false);
}

/** Step 8. */
static bool foreign_run(struct leat_pool *pool, uint32_t granules)
{
	uint32_t w, idx;

	if (pool->n_aside) {
		for (w = 0; !pool->aside[w]; w++)
			;
		idx = w * 64 + (uint32_t)__builtin_ctzll(pool->aside[w]);
		pool->aside[w] &= pool->aside[w] - 1;
		pool->n_aside--;
		take_block(pool, idx);
		point_at(pool, idx);
		return true;
	}
	return pool->n_foreign && cut_partial(pool, granules, PARTIAL_ENOUGH_FAR, UINT32_MAX, true);
}

/** Whether tests want this allocation to fail. */
static bool fails_now(struct leat_pool *pool)
{
	if (!pool->fail_nth || --pool->fail_nth)
		return false;
	__atomic_fetch_and(&pool->odd, ~LEAT_POOL_FAIL, __ATOMIC_RELAXED);
	return true;
}

/** What keeps an allocation from the short way is seen to here. Returns true when it shall fail. */
static bool see_to_odd(struct leat_pool *pool)
{
	uint32_t odd = __atomic_load_n(&pool->odd, __ATOMIC_RELAXED);

	leat_count(&pool->long_ways, 1);
	if (clock_is_old(pool))
		read_clock(pool);
	leat_pool_drain_rung(pool);
	if (odd & (LEAT_POOL_LIMIT | LEAT_POOL_OVER))
		leat_pool_apply_limit(pool);
	return odd & LEAT_POOL_FAIL && fails_now(pool);
}

static __attribute__((noinline)) struct leat_run alloc_long_way(struct leat_pool *pool, uint32_t granules)
{
	struct leat_page_pool *pub = &pool->pub;
	struct leat_run run;

	leat_pool_uncut(pool);
	/* a doorbell is a hint: before memory is called short, every ring is read */
	if (see_to_odd(pool) ||
	    (!next_run(pool, granules) && !(leat_page_pool_drain(pub) && next_run(pool, granules)) &&
	     !foreign_run(pool, granules))) {
		leat_count(&pool->alloc_failed, 1);
		return LEAT_RUN_NONE;
	}
	run = leat_run_make(pub->cur, granules);
	leat_page_pool_move(pub, pub->cur + leat_run_size(run));
	if (pool->fail_nth)
		leat_pool_uncut(pool); /* so that the next one comes here, too */
	return run;
}

static __attribute__((noinline)) struct leat_run alloc_after_uncut(struct leat_page_pool *pub, uint32_t granules)
{
	leat_pool_uncut(leat_pool_of(pub));
	return leat_page_pool_alloc_slow(pub, granules);
}

/* The short way, which calls nothing. */
struct leat_run leat_page_pool_alloc_slow(struct leat_page_pool *pub, uint32_t granules)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint64_t idx = pool->sweep + 1, addr; /* after the last block: no bit is set there */
	uint64_t *word = &pool->whole[idx / 64];
	struct leat_block *block = &pool->blocks[idx];

	LEAT_ASSERT(granules - 1 < LEAT_BLOCK_GRANULES);
	if (leat_unlikely(pub->cur != pub->end))
		return alloc_after_uncut(pub, granules);
	if (leat_unlikely(!(*word >> idx % 64 & 1)) ||
	    leat_unlikely(__atomic_load_n(&pool->odd, __ATOMIC_RELAXED) | block->flags) ||
	    leat_unlikely(clock_is_old(pool)))
		return alloc_long_way(pool, granules);
	*word ^= UINT64_C(1) << idx % 64;
	pool->n_whole--;
	take_clean(pool, block, idx);
	addr = pub->first + (idx << LEAT_BLOCK_SHIFT);
	__atomic_store_n(&pub->end, addr + LEAT_BLOCK_SIZE, __ATOMIC_RELAXED);
	leat_page_pool_move(pub, addr + ((uint64_t)granules << LEAT_GRANULE_SHIFT));
	return leat_run_make(addr, granules);
}

void leat_page_pool_fail_nth(struct leat_page_pool *pub, uint64_t nth)
{
	struct leat_pool *pool = leat_pool_of(pub);

	leat_pool_uncut(pool);
	pool->fail_nth = nth;
	if (nth)
		__atomic_fetch_or(&pool->odd, LEAT_POOL_FAIL, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&pool->odd, ~LEAT_POOL_FAIL, __ATOMIC_RELAXED);
}

/* ---- several blocks ---- */

/** Whether a device sees block @idx right behind the one before it. */
static bool side_by_side(const struct leat_pool *pool, uint32_t idx)
{
	return !pool->map || pool->iova[idx] == pool->iova[idx - 1] + LEAT_BLOCK_SIZE;
}

/** The first of @n wholly free blocks side by side, after the sweep; UINT32_MAX: there are none. */
static uint32_t find_blocks(const struct leat_pool *pool, uint32_t n)
{
	uint32_t round, idx, have, start = pool->sweep + 1 < pool->n_blocks ? (uint32_t)pool->sweep + 1 : 0;

	if (pool->n_whole < n)
		return UINT32_MAX;
	for (round = 0; round < 2; round++, start = 0) {
		for (idx = start, have = 0; idx < pool->n_blocks; idx++) {
			if (idx % 64 == 0 && !pool->whole[idx / 64]) {
				have = 0;
				idx += 63;
				continue;
			}
			if (!(pool->whole[idx / 64] >> idx % 64 & 1))
				have = 0;
			else
				have = have && side_by_side(pool, idx) ? have + 1 : 1;
			if (have == n)
				return idx + 1 - n;
		}
	}
	return UINT32_MAX;
}

static struct leat_run take_blocks(struct leat_pool *pool, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = first; i < first + n; i++) {
		forget_whole(pool, i);
		take_block(pool, i);
	}
	return leat_run_make_long(leat_pool_block_addr(pool, first), n * LEAT_BLOCK_GRANULES);
}

struct leat_run leat_page_pool_alloc_pages_slow(struct leat_page_pool *pub, uint32_t order)
{
	struct leat_pool *pool = leat_pool_of(pub);
	uint32_t n = 1u << (order - LEAT_BLOCK_ORDER), first = UINT32_MAX, most;

	LEAT_ASSERT(order > LEAT_BLOCK_ORDER && order <= LEAT_PAGE_ORDER_MAX);
	if (!see_to_odd(pool)) {
		first = find_blocks(pool, n);
		if (first == UINT32_MAX && leat_page_pool_drain(pub))
			first = find_blocks(pool, n);
		most = below_watermark(pool);
		if (most < n * LEAT_BLOCK_PAGES)
			most = n * LEAT_BLOCK_PAGES;
		while (first == UINT32_MAX && leat_pool_grow(pool, most))
			first = find_blocks(pool, n);
	}
	if (first == UINT32_MAX) {
		leat_count(&pool->alloc_failed, 1);
		return LEAT_RUN_NONE;
	}
	if (pub->cur == pub->end) { /* it may stand where the blocks end, and would go back into them */
		leat_page_pool_move(pub, 0);
		__atomic_store_n(&pub->end, 0, __ATOMIC_RELAXED);
	}
	return take_blocks(pool, first, n);
}
