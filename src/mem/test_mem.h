/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mem.h: what the tests of packet memory share: an arena with a segment, pools, random numbers, sums.
 */
#ifndef LEAT_MEM_TEST_MEM_H
#define LEAT_MEM_TEST_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <leat/page_pool.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/heap.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif

/** Rounds of a long test: fewer where every access is checked. */
#ifdef TEST_SANITIZED
#define TEST_ROUNDS(n) ((n) / 10)
#else
#define TEST_ROUNDS(n) (n)
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** Bytes in the tests' terms. */
#define EXTENT ((uint64_t)LEAT_EXTENT_SIZE)
#define EXTENT_GRANULES (LEAT_EXTENT_SIZE / LEAT_GRANULE_SIZE)

struct test_mem {
	struct leat_arena *arena;
	struct leat_segment *segment;
};

/** An arena of 64 MiB with one private segment of @bytes. */
static inline void test_mem_open(struct test_mem *mem, uint64_t bytes)
{
	struct leat_arena_opts arena = { .size = sizeof(arena), .data_size = UINT64_C(64) << 20 };
	struct leat_segment_opts segment = { .size = sizeof(segment), .bytes = bytes };

	assert_int_equal(leat_arena_create(&arena, &mem->arena), 0);
	assert_int_equal(leat_segment_create(mem->arena, &segment, &mem->segment), 0);
}

/** Nothing may be left of any pool. */
static inline void test_mem_close(struct test_mem *mem)
{
	assert_int_equal(leat_segment_committed(mem->segment), 0);
	leat_segment_destroy(mem->segment);
	leat_arena_destroy(mem->arena);
}

/** A pool of @limit bytes, owned by the calling thread. */
static inline struct leat_page_pool *test_pool(struct leat_segment *segment, uint64_t limit)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = limit };
	struct leat_page_pool *pool;

	assert_int_equal(leat_page_pool_create(segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	return pool;
}

static inline uint64_t test_outstanding(const struct leat_page_pool *pool)
{
	struct leat_page_pool_stats stats;

	leat_page_pool_stats(pool, &stats);
	return stats.outstanding;
}

static inline uint64_t test_committed(const struct leat_page_pool *pool)
{
	struct leat_page_pool_stats stats;

	leat_page_pool_stats(pool, &stats);
	return stats.committed;
}

/** Everything has come back, and each block is whole once the cursor has let go. *owner*. */
static inline void assert_pool_whole(struct leat_page_pool *pool)
{
	uint64_t off, committed = test_committed(pool);

	leat_page_pool_drain(pool);
	assert_int_equal(test_outstanding(pool), 0);
	leat_page_pool_fail_nth(pool, 0);
	for (off = 0; off < committed; off += LEAT_BLOCK_SIZE)
		assert_true(leat_block_of(pool->first + off)->free == ~UINT64_C(0));
}

static inline void test_pool_end(struct leat_page_pool *pool)
{
	assert_pool_whole(pool);
	leat_page_pool_destroy(pool);
}

/** xorshift64*: the same numbers for the same seed everywhere. */
static inline uint64_t test_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(2685821657736338717) >> 16;
}

static inline uint32_t test_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(test_random(seed) % n);
}

/** @fn must end in leat_bug(). */
static inline void assert_bug(void (*fn)(void *arg), void *arg)
{
	const struct rlimit none = { 0, 0 };
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		fn(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

#endif
