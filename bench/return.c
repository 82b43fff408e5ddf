/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * return.c: the bench `return`: what a buffer costs that another thread gives back, by the number of such threads.
 *
 * leat@N and locked-pool@N: time of the wall per buffer, allocation, hand-over and return together, N threads. Where the
 * machine has fewer cores than threads, the threads share them. Beside it read-modify-writes per returned buffer, all that
 * the returning threads execute and, beside, all of the owner's: counted by leat-bench-rmws.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "returners.h"

#define LIMIT (UINT64_C(64) << 20)
#define COUNTED 262144u
#define COUNTED_SMOKE 16384u

static const unsigned int threads[] = { 1, 2, 4, 8 };

#define N_THREADS (sizeof(threads) / sizeof(threads[0]))

/* ---- counted ---- */

/** "exec PROGRAM BUFFERS CPU CPU..." for a shell. False when that is too long. */
static bool command_line(const struct bench_run *run, char *line, size_t size)
{
	unsigned int buffers = bench_smoke(run) ? COUNTED_SMOKE : COUNTED, i;
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int used;

	if (len <= 0)
		return false;
	path[len] = '\0';
	if (strchr(path, '\''))
		return false;
	used = snprintf(line, size, "exec '%s-rmws' %u", path, buffers);
	for (i = 0; i < bench_cpus(run) && i <= TEAM_MAX && used > 0 && (size_t)used < size; i++)
		used += snprintf(line + used, size - (size_t)used, " %d", bench_cpu(run, i));
	return used > 0 && (size_t)used < size;
}

static void count_rmws(struct bench_run *run)
{
	char line[768], name[32], ratio[64];
	double returners, owner;
	unsigned int n, lines = 0;
	FILE *pipe;

	pipe = command_line(run, line, sizeof(line)) ? popen(line, "r") : NULL;
	while (pipe && fscanf(pipe, "%31s %u %lf %lf", name, &n, &returners, &owner) == 4) {
		bool marked = !strcmp(name, "leat");

		lines++;
		snprintf(ratio, sizeof(ratio), "%s.rmws/return@%u", name, n);
		bench_exact(run, ratio, returners, marked ? BENCH_MARK_AT_MOST(1.0 / 16) : BENCH_MARK_NONE);
		snprintf(ratio, sizeof(ratio), "%s.owner-rmws/return@%u", name, n);
		bench_exact(run, ratio, owner, BENCH_MARK_NONE);
	}
	if (!pipe || pclose(pipe) || lines != 3 * N_THREADS)
		bench_note(run, "leat-bench-rmws did not run: read-modify-writes were not counted");
}

/* ---- timed ---- */

static void measure(struct bench_run *run, struct returners r[N_THREADS])
{
	struct bench_variant variant[2 * N_THREADS];
	char name[2 * N_THREADS][24], ratio[64];
	unsigned int i;

	for (i = 0; i < N_THREADS; i++) {
		struct bench_variant v = { .arg = &r[i], .two_cores = true, .shares_core = threads[i] > 1 };

		snprintf(name[i], sizeof(name[i]), "leat@%u", threads[i]);
		snprintf(name[N_THREADS + i], sizeof(name[i]), "locked-pool@%u", threads[i]);
		variant[i] = variant[N_THREADS + i] = v;
		variant[i].name = name[i];
		variant[i].ops = returners_leat;
		variant[N_THREADS + i].name = name[N_THREADS + i];
		variant[N_THREADS + i].ops = returners_locked;
	}
	bench_measure(run, variant, 2 * N_THREADS);
	bench_ratio(run, "leat@8/leat@1", "leat@8", "leat@1", BENCH_MARK_AT_MOST(1.3));
	bench_ratio(run, "locked-pool@8/locked-pool@1", "locked-pool@8", "locked-pool@1", BENCH_MARK_NONE);
	for (i = 0; i < N_THREADS; i++) {
		snprintf(ratio, sizeof(ratio), "leat/locked-pool@%u", threads[i]);
		bench_ratio(run, ratio, name[i], name[N_THREADS + i], BENCH_MARK_NONE);
	}
	if (bench_cpus(run) <= threads[N_THREADS - 1])
		bench_note(run, "there are %u cores: returning threads share %u", bench_cpus(run), bench_cpus(run) - 1);
}

static int with_rings(struct bench_run *run, struct leat_page_pool *pool, struct locked_pool *locked)
{
	struct returners r[N_THREADS];
	struct leat_ptr_ring *ring[TEAM_MAX];
	unsigned int i;
	int err = 0;

	for (i = 0; i < TEAM_MAX; i++) {
		ring[i] = leat_ptr_ring_create(CROSSING_RING);
		if (!ring[i])
			err = -ENOMEM;
	}
	for (i = 0; i < N_THREADS; i++) {
		r[i] = (struct returners){ .team = bench_team(run), .n = threads[i], .pool = pool, .locked = locked };
		memcpy(r[i].ring, ring, sizeof(ring));
	}
	if (!err)
		measure(run, r);
	for (i = 0; i < TEAM_MAX; i++)
		leat_ptr_ring_destroy(ring[i]);
	return err;
}

static int run_return(struct bench_run *run)
{
	struct page_allocator *pages;
	struct locked_pool *locked;
	struct bench_mem mem;
	int err = -ENOMEM;

	if (!bench_two_cores(run)) {
		bench_note(run, "it takes two cores");
		return -ENODEV;
	}
	pages = page_allocator_create(LIMIT);
	locked = pages ? locked_pool_create(pages) : NULL;
	if (locked)
		err = bench_mem_open(run, &mem, LIMIT);
	if (!err) {
		err = with_rings(run, mem.pool, locked);
		bench_mem_close(run, &mem);
	}
	locked_pool_destroy(locked);
	if (pages) {
		page_cache_drain(pages);
		LEAT_ASSERT(!page_allocator_used(pages));
	}
	page_allocator_destroy(pages);
	if (!err)
		count_rmws(run);
	return err;
}

const struct bench bench_return = {
	"return", "buffers that 1, 2, 4 and 8 other threads give back", "ns/op", BENCH_LOWER, run_return,
};
