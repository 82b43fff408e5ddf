/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rmws.c: the program leat-bench-rmws, which the bench `return` starts: counts the read-modify-writes of buffers that
 * other threads give back. It and the packet memory in it are compiled with count_rmws.h.
 *
 * Prints a line for each way and number of returners: its name, the number, and read-modify-writes per buffer of the
 * returners and of the owner.
 *
 * usage: leat-bench-rmws BUFFERS OWNER-CPU RETURNER-CPU...
 */
#include <stdio.h>
#include <stdlib.h>

#include "returners.h"

__thread uint64_t bench_rmws;

#define LIMIT (UINT64_C(64) << 20)

static uint64_t counted[TEAM_MAX]; /* by thread */

static void around(struct returners *r, unsigned int idx, bool end)
{
	(void)r;
	counted[idx] = end ? bench_rmws - counted[idx] : bench_rmws;
}

static void count(struct returners *r, const char *name, void (*ops)(void *arg, uint64_t n), uint64_t n)
{
	uint64_t owner, sum = 0;
	unsigned int i;

	ops(r, 8 * BENCH_STEP); /* threads have registered, and their rings are there */
	owner = bench_rmws;
	ops(r, n);
	owner = bench_rmws - owner;
	for (i = 0; i < r->n; i++)
		sum += counted[i];
	printf("%s %u %.6f %.6f\n", name, r->n, (double)sum / (double)n, (double)owner / (double)n);
}

static int count_all(struct returners *r, uint64_t n)
{
	unsigned int i;

	for (i = 0; i < TEAM_MAX; i++) {
		r->ring[i] = leat_ptr_ring_create(CROSSING_RING);
		if (!r->ring[i])
			return EXIT_FAILURE;
	}
	for (r->n = 1; r->n <= TEAM_MAX; r->n *= 2) {
		count(r, "leat", returners_leat, n);
		count(r, "leat-single", returners_single, n);
		count(r, "locked-pool", returners_locked, n);
	}
	for (i = 0; i < TEAM_MAX; i++)
		leat_ptr_ring_destroy(r->ring[i]);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct leat_segment_opts segment_opts = { .size = sizeof(segment_opts), .bytes = LIMIT };
	struct leat_page_pool_opts pool_opts = { .size = sizeof(pool_opts), .limit = LIMIT };
	struct page_allocator *pages = page_allocator_create(LIMIT);
	struct returners r = { .around = around };
	struct leat_page_pool_stats stats;
	struct leat_segment *segment;
	struct leat_arena *arena;
	int cpu[TEAM_MAX], i, code;

	if (argc < 4 || argc - 3 > (int)TEAM_MAX || !pages) /* what the team does counts, too: a few per job */
		return EXIT_FAILURE;
	for (i = 3; i < argc; i++)
		cpu[i - 3] = atoi(argv[i]);
	if (leat_arena_create(NULL, &arena) || leat_segment_create(arena, &segment_opts, &segment) ||
	    leat_page_pool_create(segment, &pool_opts, &r.pool))
		return EXIT_FAILURE;
	leat_page_pool_own(r.pool);
	r.locked = locked_pool_create(pages);
	team_pin(atoi(argv[2]));
	r.team = team_create(cpu, (unsigned int)argc - 3);
	if (!r.locked || !r.team)
		return EXIT_FAILURE;
	code = count_all(&r, strtoull(argv[1], NULL, 10) / BENCH_STEP * BENCH_STEP);
	team_destroy(r.team);
	leat_page_pool_drain(r.pool);
	leat_page_pool_stats(r.pool, &stats);
	leat_page_pool_destroy(r.pool);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
	locked_pool_destroy(r.locked);
	page_cache_drain(pages);
	if (stats.outstanding || page_allocator_used(pages))
		code = EXIT_FAILURE;
	page_allocator_destroy(pages);
	return code;
}
