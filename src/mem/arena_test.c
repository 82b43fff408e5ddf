/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena_test.c: addresses are handed out once and come back, memory is committed and counted, a shared segment is
 * sealed, and nothing is left behind when a step fails.
 */
#include "mem/test_mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/** A longer struct, as a caller built against a newer header passes it. */
struct newer_arena_opts {
	struct leat_arena_opts known;
	uint64_t unknown;
};

struct newer_segment_opts {
	struct leat_segment_opts known;
	uint64_t unknown;
};

static struct leat_arena *arena_of(uint64_t data_size)
{
	struct leat_arena_opts opts = { .size = sizeof(opts), .data_size = data_size };
	struct leat_arena *arena;

	assert_int_equal(leat_arena_create(&opts, &arena), 0);
	return arena;
}

static int try_segment(struct leat_arena *arena, enum leat_segment_kind kind, uint64_t bytes,
		       struct leat_segment **segment)
{
	struct leat_segment_opts opts = { .size = sizeof(opts), .kind = kind, .bytes = bytes, .name = "test" };

	return leat_segment_create(arena, &opts, segment);
}

static struct leat_segment *segment_of(struct leat_arena *arena, enum leat_segment_kind kind, uint64_t bytes)
{
	struct leat_segment *segment;

	assert_int_equal(try_segment(arena, kind, bytes, &segment), 0);
	return segment;
}

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void arena_options_are_checked(void **state)
{
	struct newer_arena_opts opts = { .known = { .size = sizeof(opts), .data_size = EXTENT } };
	struct leat_arena *arena = NULL;

	(void)state;
	opts.unknown = 1;
	assert_int_equal(leat_arena_create(&opts.known, &arena), -E2BIG);
	opts.unknown = 0;
	opts.known.size = 0;
	assert_int_equal(leat_arena_create(&opts.known, &arena), -EINVAL);
	opts.known.size = 1 << 20;
	assert_int_equal(leat_arena_create(&opts.known, &arena), -EINVAL);
	opts.known.size = sizeof(opts);
	opts.known.data_size = LEAT_ARENA_DATA_MAX + 1;
	assert_int_equal(leat_arena_create(&opts.known, &arena), -EINVAL);
	opts.known.data_size = UINT64_MAX;
	assert_int_equal(leat_arena_create(&opts.known, &arena), -EINVAL);
	assert_null(arena);
	opts.known.data_size = EXTENT;
	assert_int_equal(leat_arena_create(&opts.known, &arena), 0);
	leat_arena_destroy(arena);
	leat_arena_destroy(NULL);
}

static void segment_options_are_checked(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 4);
	struct newer_segment_opts opts = { .known = { .size = sizeof(opts), .bytes = EXTENT } };
	struct leat_segment *segment = NULL;

	(void)state;
	opts.unknown = UINT64_C(1) << 63;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -E2BIG);
	opts.unknown = 0;
	opts.known.size = sizeof(size_t) - 1;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -EINVAL);
	opts.known.size = sizeof(opts);
	opts.known.bytes = 0;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -EINVAL);
	opts.known.bytes = EXTENT * 4 + 1;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -EINVAL);
	opts.known.bytes = UINT64_MAX;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -EINVAL);
	opts.known.bytes = EXTENT;
	opts.known.kind = (enum leat_segment_kind)2;
	assert_int_equal(leat_segment_create(arena, &opts.known, &segment), -EINVAL);
	assert_int_equal(leat_segment_create(arena, NULL, &segment), -EINVAL);
	assert_null(segment);
	leat_segment_destroy(NULL);
	leat_arena_destroy(arena);
}

static void sizes_are_rounded_up_to_an_extent(void **state)
{
	struct leat_arena *arena = arena_of(1);
	struct leat_segment *segment = segment_of(arena, LEAT_SEGMENT_PRIVATE, 1), *none;

	(void)state;
	assert_int_equal(leat_segment_size(segment), EXTENT);
	assert_int_equal((uintptr_t)leat_segment_base(segment) % LEAT_EXTENT_SIZE, 0);
	assert_int_equal(try_segment(arena, LEAT_SEGMENT_PRIVATE, 1, &none), -ENOSPC);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void an_arena_holds_what_it_promises(void **state)
{
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct leat_page_pool *pool;
	struct leat_run run;

	(void)state;
	assert_int_equal(leat_arena_create(NULL, &arena), 0);
	segment = segment_of(arena, LEAT_SEGMENT_PRIVATE, LEAT_ARENA_DATA_MAX);
	assert_int_equal(leat_segment_size(segment), LEAT_ARENA_DATA_MAX);
	pool = test_pool(segment, EXTENT);
	run = leat_page_pool_alloc(pool, 64);
	memset(leat_run_start(run), 1, leat_run_size(run));
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void segments_do_not_overlap(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 40);
	struct leat_segment *segment[40];
	uint8_t taken[40] = { 0 };
	uint64_t base = 0, first, n, i, seed = 7, total = 0;
	unsigned int k, count = 0;

	(void)state;
	while (!try_segment(arena, count % 3 ? LEAT_SEGMENT_PRIVATE : LEAT_SEGMENT_SHARED,
			    EXTENT * (1 + test_below(&seed, 5)), &segment[count])) {
		first = (uint64_t)(uintptr_t)leat_segment_base(segment[count]);
		base = leat_arena_base(first) + LEAT_ARENA_DATA;
		first = (first - base) / EXTENT;
		n = leat_segment_size(segment[count++]) / EXTENT;
		total += n;
		for (i = first; i < first + n; i++) {
			assert_true(i < 40);
			assert_int_equal(taken[i]++, 0);
		}
	}
	assert_true(total >= 36);
	for (k = 0; k < count; k++)
		leat_segment_destroy(segment[k]);
	segment[0] = segment_of(arena, LEAT_SEGMENT_SHARED, EXTENT * 40);
	leat_segment_destroy(segment[0]);
	leat_arena_destroy(arena);
}

static void a_hole_between_segments_is_used_again(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 6);
	struct leat_segment *a = segment_of(arena, LEAT_SEGMENT_PRIVATE, EXTENT * 2);
	struct leat_segment *b = segment_of(arena, LEAT_SEGMENT_PRIVATE, EXTENT * 2);
	struct leat_segment *c = segment_of(arena, LEAT_SEGMENT_PRIVATE, EXTENT * 2), *d;
	void *hole = leat_segment_base(b);

	(void)state;
	leat_segment_destroy(b);
	assert_int_equal(try_segment(arena, LEAT_SEGMENT_PRIVATE, EXTENT * 3, &d), -ENOSPC);
	d = segment_of(arena, LEAT_SEGMENT_SHARED, EXTENT * 2);
	assert_ptr_equal(leat_segment_base(d), hole);
	leat_segment_destroy(a);
	leat_segment_destroy(c);
	leat_segment_destroy(d);
	leat_arena_destroy(arena);
}

static void a_shared_segment_is_sealed(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 4);
	struct leat_segment *segment = segment_of(arena, LEAT_SEGMENT_SHARED, EXTENT * 3);
	int fd = leat_segment_fd(segment);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, EXTENT * 3);
	assert_int_equal(st.st_blocks, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)EXTENT), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, (off_t)EXTENT * 4), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	leat_segment_destroy(segment);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	leat_arena_destroy(arena);
}

static void a_peer_reads_a_shared_segment_by_its_fd(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 4);
	struct leat_segment *segment = segment_of(arena, LEAT_SEGMENT_SHARED, EXTENT * 3);
	struct leat_page_pool *pool = test_pool(segment, EXTENT);
	struct leat_run run = leat_page_pool_alloc(pool, 2);
	off_t off = (off_t)(leat_run_addr(run) - (uint64_t)(uintptr_t)leat_segment_base(segment));
	char text[8] = "";

	(void)state;
	memcpy(leat_run_start(run), "packet", 7);
	assert_int_equal(pread(leat_segment_fd(segment), text, 7, off), 7);
	assert_string_equal(text, "packet");
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	/* the next pool in this place, which may serve another purpose, does not see it */
	assert_int_equal(pread(leat_segment_fd(segment), text, 7, off), 7);
	assert_memory_equal(text, "\0\0\0\0\0\0\0", 7);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void a_private_segment_has_no_fd(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT);
	struct leat_segment *segment = segment_of(arena, LEAT_SEGMENT_PRIVATE, EXTENT);

	(void)state;
	assert_int_equal(leat_segment_fd(segment), -1);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void committed_memory_is_counted(enum leat_segment_kind kind)
{
	struct leat_arena *arena = arena_of(EXTENT * 8);
	struct leat_segment *segment = segment_of(arena, kind, EXTENT * 8);
	struct leat_page_pool *a = test_pool(segment, EXTENT * 2), *b = test_pool(segment, EXTENT * 2);
	struct leat_run run[16];
	unsigned int i;

	assert_int_equal(leat_segment_committed(segment), 0);
	for (i = 0; i < COUNT(run); i++) {
		run[i] = leat_page_pool_alloc(i % 2 ? b : a, LEAT_BLOCK_GRANULES);
		assert_false(leat_run_is_none(run[i]));
	}
	assert_int_equal(leat_segment_committed(segment), EXTENT * 2);
	leat_page_pool_put_page_bulk(run, COUNT(run));
	run[0] = leat_page_pool_alloc(a, 1);
	leat_page_pool_destroy(a);
	assert_int_equal(leat_segment_committed(segment), EXTENT * 2);
	leat_page_pool_put_page(run[0]); /* goes with the last */
	assert_int_equal(leat_segment_committed(segment), EXTENT);
	test_pool_end(b);
	assert_int_equal(leat_segment_committed(segment), 0);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void committed_memory_is_counted_private(void **state)
{
	(void)state;
	committed_memory_is_counted(LEAT_SEGMENT_PRIVATE);
}

static void committed_memory_is_counted_shared(void **state)
{
	(void)state;
	committed_memory_is_counted(LEAT_SEGMENT_SHARED);
}

static void ranges_of_pools_are_taken_given_and_reused(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool[4], *more;
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT * 2 };
	uint64_t first;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT * 8);
	for (i = 0; i < 4; i++)
		pool[i] = test_pool(mem.segment, EXTENT * 2 - 1);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &more), -ENOSPC);
	first = pool[2]->first;
	leat_page_pool_destroy(pool[2]);
	pool[2] = test_pool(mem.segment, EXTENT * 2);
	assert_int_equal(pool[2]->first, first);
	for (i = 1; i < 4; i++)
		assert_int_equal(pool[i]->first, pool[i - 1]->first + EXTENT * 2);
	leat_page_pool_destroy(pool[1]);
	leat_page_pool_destroy(pool[2]);
	opts.limit = EXTENT * 4;
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool[1]), 0);
	leat_page_pool_destroy(pool[0]);
	leat_page_pool_destroy(pool[1]);
	leat_page_pool_destroy(pool[3]);
	test_mem_close(&mem);
}

static void an_arena_made_again_reuses_the_addresses(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 5);
	struct leat_segment *segment = segment_of(arena, LEAT_SEGMENT_PRIVATE, EXTENT);
	void *base = leat_segment_base(segment);
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		leat_segment_destroy(segment);
		leat_arena_destroy(arena);
		arena = arena_of(EXTENT * 5);
		segment = segment_of(arena, i % 2 ? LEAT_SEGMENT_PRIVATE : LEAT_SEGMENT_SHARED, EXTENT);
		assert_ptr_equal(leat_segment_base(segment), base);
	}
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void memory_used_again_begins_as_zero(void **state)
{
	struct test_mem mem;
	struct leat_page_pool *pool;
	struct leat_run run;
	uint32_t round, i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	for (round = 0; round < 3; round++) {
		pool = test_pool(mem.segment, EXTENT);
		run = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
		for (i = 0; i < leat_run_size(run); i++)
			assert_int_equal(leat_run_start(run)[i], 0);
		memset(leat_run_start(run), 0xa5, leat_run_size(run));
		leat_page_pool_put_page(run);
		test_pool_end(pool);
	}
	test_mem_close(&mem);
}

/** The whole life, until the first step that fails. Returns its error. */
static int whole_life(enum leat_segment_kind kind)
{
	struct leat_arena_opts opts = { .size = sizeof(opts), .data_size = EXTENT * 3 };
	struct leat_page_pool_opts pool_opts = { .size = sizeof(pool_opts), .limit = EXTENT };
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct leat_page_pool *pool;
	struct leat_run run;
	int err = leat_arena_create(&opts, &arena);

	if (err)
		return err;
	err = try_segment(arena, kind, EXTENT, &segment);
	if (err)
		goto destroy_arena;
	err = leat_page_pool_create(segment, &pool_opts, &pool);
	if (err)
		goto destroy_segment;
	leat_page_pool_own(pool);
	run = leat_page_pool_alloc(pool, 3);
	err = leat_run_is_none(run) ? -ENOMEM : 0;
	if (!err)
		leat_page_pool_put_page(run);
	assert_int_equal(test_outstanding(pool), 0);
	leat_page_pool_destroy(pool);
	assert_int_equal(leat_segment_committed(segment), 0);
destroy_segment:
	leat_segment_destroy(segment);
destroy_arena:
	leat_arena_destroy(arena);
	return err;
}

static void each_failing_allocation_leaves_nothing_behind(void **state)
{
	unsigned int kind, fds = open_fds();
	unsigned long nth;
	int err;

	(void)state;
	for (kind = LEAT_SEGMENT_PRIVATE; kind <= LEAT_SEGMENT_SHARED; kind++) {
		for (nth = 1;; nth++) {
			leat_heap_fail_nth(nth);
			err = whole_life((enum leat_segment_kind)kind);
			if (!leat_heap_failed())
				break;
			/* a pool that gets no extent for its growth asks once more because it has nothing else */
			assert_true(err == -ENOMEM || !err);
			assert_int_equal(open_fds(), fds);
			leat_heap_fail_nth(0);
			assert_int_equal(whole_life((enum leat_segment_kind)kind), 0);
		}
		leat_heap_fail_nth(0);
		assert_int_equal(err, 0);
		assert_true(nth > 4);
	}
}

static void a_shortage_of_fds_is_an_error(void **state)
{
	struct leat_arena *arena = arena_of(EXTENT * 4);
	struct leat_segment *segment;
	struct rlimit old, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(try_segment(arena, LEAT_SEGMENT_SHARED, EXTENT * 4, &segment), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	segment = segment_of(arena, LEAT_SEGMENT_SHARED, EXTENT * 4); /* the place was given back */
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

static void descriptors_are_found_from_addresses(void **state)
{
	uint64_t base = LEAT_ARENA_SPAN * 5, data = base + LEAT_ARENA_DATA, addr;

	(void)state;
	for (addr = data; addr < data + EXTENT; addr += LEAT_GRANULE_SIZE - 1) {
		assert_int_equal(leat_granule_idx(addr), (addr - data) / LEAT_GRANULE_SIZE);
		assert_int_equal((uintptr_t)leat_block_of(addr) - base - LEAT_ARENA_BLOCKS,
				 (addr - data) / LEAT_BLOCK_SIZE * sizeof(struct leat_block));
		assert_int_equal((uintptr_t)leat_granule_of(addr) - base - LEAT_ARENA_GRANULES,
				 (addr - data) / LEAT_GRANULE_SIZE * sizeof(struct leat_granule));
	}
	assert_true(LEAT_ARENA_BLOCKS + LEAT_ARENA_DATA_MAX / LEAT_BLOCK_SIZE * sizeof(struct leat_block) <=
		    LEAT_ARENA_GRANULES);
	assert_true(LEAT_ARENA_GRANULES + LEAT_ARENA_DATA_MAX / LEAT_GRANULE_SIZE * sizeof(struct leat_granule) <=
		    LEAT_ARENA_DATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_options_are_checked),
		cmocka_unit_test(segment_options_are_checked),
		cmocka_unit_test(sizes_are_rounded_up_to_an_extent),
		cmocka_unit_test(an_arena_holds_what_it_promises),
		cmocka_unit_test(segments_do_not_overlap),
		cmocka_unit_test(a_hole_between_segments_is_used_again),
		cmocka_unit_test(a_shared_segment_is_sealed),
		cmocka_unit_test(a_peer_reads_a_shared_segment_by_its_fd),
		cmocka_unit_test(a_private_segment_has_no_fd),
		cmocka_unit_test(committed_memory_is_counted_private),
		cmocka_unit_test(committed_memory_is_counted_shared),
		cmocka_unit_test(ranges_of_pools_are_taken_given_and_reused),
		cmocka_unit_test(an_arena_made_again_reuses_the_addresses),
		cmocka_unit_test(memory_used_again_begins_as_zero),
		cmocka_unit_test(each_failing_allocation_leaves_nothing_behind),
		cmocka_unit_test(a_shortage_of_fds_is_an_error),
		cmocka_unit_test(descriptors_are_found_from_addresses),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
