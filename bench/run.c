/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: measures groups of variants in turn, and keeps what came out.
 *
 * A sample of one core is CPU time of the main thread, so what others do on the machine costs rounds nothing but
 * caches. A sample of two cores is time of the wall, and only as good as the state of the machine: the ping-pong of a
 * cache line stands before the round and after each of its slices, and the threads say how much of their cores they had.
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "team.h"

/* Rounds that do not count, per round that is wanted. */
#define SPARE_ROUNDS 3u
/* How far two readings that should be the same may be apart. */
#define AGREE 1.2
/* Share of its core that each side of a two-core slice must have had. */
#define CORE_SHARE 0.95
#define GROUP_MAX 16u

enum lost {
	LOST_NOTHING,
	LOST_PINGPONG, /* cache lines went faster or slower afterwards */
	LOST_CORE,     /* somebody else had the core */
	LOST_APART,    /* two slices of one variant differ */
	N_LOST,
};

/** A group while it is measured. */
struct group {
	const struct bench_variant *variants;
	unsigned int n;
	bool two_cores;
	uint64_t ops[GROUP_MAX];           /* that fill a slice */
	unsigned int of[GROUP_MAX];        /* which series a variant belongs to */
	double value[GROUP_MAX];
	enum lost lost;                    /* of this round */
	unsigned int n_lost[N_LOST];
};

/* ---- memory ---- */

static LEAT_COLD void out_of_memory(void)
{
	fputs("leat-bench: memory is out\n", stderr);
	exit(EXIT_FAILURE);
}

void *bench_realloc(void *mem, size_t size)
{
	mem = realloc(mem, size ? size : 1);
	if (!mem)
		out_of_memory();
	return mem;
}

char *bench_strdup(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(bench_realloc(NULL, size), text, size);
}

/* ---- series ---- */

static unsigned int series_of(struct bench_run *run, const char *name)
{
	unsigned int i;

	for (i = 0; i < run->n_series; i++)
		if (!strcmp(run->series[i].name, name))
			return i;
	run->series = bench_realloc(run->series, (run->n_series + 1) * sizeof(*run->series));
	run->series[i] = (struct series){ .name = bench_strdup(name) };
	return run->n_series++;
}

static void series_add(struct series *series, double value)
{
	if (series->n == series->room) {
		series->room = series->room ? 2 * series->room : 32;
		series->sample = bench_realloc(series->sample, series->room * sizeof(*series->sample));
	}
	series->sample[series->n++] = value;
}

void bench_add(struct bench_run *run, const char *name, const double *samples, unsigned int n)
{
	unsigned int i, of = series_of(run, name); /* may move the series */

	for (i = 0; i < n; i++)
		series_add(&run->series[of], samples[i]);
}

const double *bench_samples(const struct bench_run *run, const char *name, unsigned int *n)
{
	unsigned int i;

	static const double none;

	*n = 0;
	for (i = 0; i < run->n_series; i++) {
		if (strcmp(run->series[i].name, name) != 0)
			continue;
		*n = run->series[i].n;
		return *n ? run->series[i].sample : &none;
	}
	return NULL;
}

/* ---- slices ---- */

/** Time that @ops operations take, ns; for two cores also whether they had them. */
static double time_ops(struct bench_run *run, const struct bench_variant *v, uint64_t ops, bool *had_cores)
{
	uint64_t wall = leat_clock_ns(), cpu = leat_clock_read(CLOCK_THREAD_CPUTIME_ID);

	v->ops(v->arg, ops);
	cpu = leat_clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = leat_clock_ns() - wall;
	*had_cores = true;
	if (!v->two_cores)
		return (double)cpu;
	*had_cores = (double)cpu >= CORE_SHARE * (double)wall &&
		     (v->shares_core || (double)team_wait(bench_team(run)) >= CORE_SHARE * (double)wall);
	return (double)wall;
}

/** Operations that take about a slice; also warms everything up. */
static uint64_t calibrate(struct bench_run *run, const struct bench_variant *v)
{
	double slice = (double)run->opts->slice_ns, took;
	uint64_t ops = BENCH_STEP / 2;
	bool had;

	if (v->sample) {
		v->sample(v->arg, run->opts->slice_ns / 4);
		return 0;
	}
	do {
		ops *= 2;
		took = time_ops(run, v, ops, &had);
	} while (took < slice / 8 && ops < UINT64_C(1) << 40);
	ops = (uint64_t)((double)ops * slice / took) / BENCH_STEP * BENCH_STEP;
	return ops ? ops : BENCH_STEP;
}

static double slice(struct bench_run *run, struct group *g, unsigned int i)
{
	const struct bench_variant *v = &g->variants[i];
	bool had;
	double ns;

	if (v->sample)
		return v->sample(v->arg, run->opts->slice_ns);
	ns = time_ops(run, v, g->ops[i], &had);
	if (!had)
		g->lost = LOST_CORE;
	return ns / (double)g->ops[i];
}

static bool agree(double a, double b)
{
	return a <= b * AGREE && b <= a * AGREE;
}

/** One slice of each, the other way round every second time; says in lost why the round does not count. */
static void round_of(struct bench_run *run, struct group *g, bool backwards)
{
	double before = g->two_cores ? team_pingpong(bench_team(run)) : 0, after;
	unsigned int i, k;

	g->lost = LOST_NOTHING;
	for (i = 0; i < g->n; i++) {
		k = backwards ? g->n - 1 - i : i;
		g->value[k] = slice(run, g, k);
		if (!g->two_cores)
			continue;
		after = team_pingpong(bench_team(run));
		if (!agree(before, after) && g->lost == LOST_NOTHING)
			g->lost = LOST_PINGPONG;
		before = after;
	}
}

/** One sample per series, of the one or two slices that belong to it. */
static void take_samples(struct bench_run *run, struct group *g, bool add)
{
	unsigned int i, k, n;
	double sum;

	for (i = 0; i < g->n; i++) {
		sum = 0;
		n = 0;
		for (k = 0; k < g->n; k++) {
			if (g->of[k] != g->of[i])
				continue;
			if (k < i)
				break; /* had its turn */
			sum += g->value[k];
			n++;
			if (!add && !agree(g->value[k], g->value[i]) && g->lost == LOST_NOTHING)
				g->lost = LOST_APART;
		}
		if (add && n && k == g->n)
			series_add(&run->series[g->of[i]], sum / n);
	}
}

static void note_lost(struct bench_run *run, const struct group *g, unsigned int kept)
{
	if (g->n_lost[LOST_PINGPONG] + g->n_lost[LOST_CORE] + g->n_lost[LOST_APART])
		bench_note(run, "%s and its group: %u rounds kept; dropped: %u (cache lines got faster or slower), "
			   "%u (a core was taken away), %u (slices around it differ)", g->variants[0].name, kept,
			   g->n_lost[LOST_PINGPONG], g->n_lost[LOST_CORE], g->n_lost[LOST_APART]);
}

/** The child that counts: one variant, once. */
static void count(struct bench_run *run, const struct bench_variant *variants, unsigned int n);

unsigned int bench_measure(struct bench_run *run, const struct bench_variant *variants, unsigned int n)
{
	struct group g = { .variants = variants, .n = n };
	unsigned int i, kept = 0, spare = SPARE_ROUNDS * run->opts->rounds;

	LEAT_ASSERT(n <= GROUP_MAX);
	if (run->opts->count) {
		count(run, variants, n);
		return 0;
	}
	for (i = 0; i < n; i++) {
		g.of[i] = series_of(run, variants[i].name);
		g.two_cores |= variants[i].two_cores;
		g.ops[i] = calibrate(run, &variants[i]);
	}
	for (i = 0; kept < run->opts->rounds && i < run->opts->rounds + spare; i++) {
		round_of(run, &g, i % 2 != 0);
		if (g.two_cores)
			take_samples(run, &g, false);
		if (g.lost != LOST_NOTHING && !run->opts->smoke) {
			g.n_lost[g.lost]++;
			continue;
		}
		take_samples(run, &g, true);
		kept++;
	}
	note_lost(run, &g, kept);
	return kept;
}

/* ---- ratios ---- */

static void add_ratio(struct bench_run *run, const struct ratio *ratio)
{
	run->ratio = bench_realloc(run->ratio, (run->n_ratios + 1) * sizeof(*run->ratio));
	run->ratio[run->n_ratios++] = *ratio;
}

void bench_ratio(struct bench_run *run, const char *name, const char *over, const char *under, struct bench_mark mark)
{
	struct ratio ratio = { .mark = mark };
	unsigned int i, n, n_under, all = 0;
	const double *a = bench_samples(run, over, &n), *b = bench_samples(run, under, &n_under);
	double *pair;

	if (!a || !b)
		return;
	LEAT_ASSERT(n == n_under); /* none: inconclusive */
	pair = bench_realloc(NULL, n * sizeof(*pair));
	for (i = 0; i < n; i++) {
		pair[i] = a[i] / b[i];
		all += isfinite(pair[i]) != 0;
	}
	if (all < n) /* something was 0: it is no multiple of that */
		n = 0;
	ratio.name = bench_strdup(name);
	ratio.n = n;
	ratio.median = stat_summary(pair, n).median;
	ratio.narrow = stat_interval(pair, n, &ratio.low, &ratio.high);
	add_ratio(run, &ratio);
	free(pair);
}

void bench_exact(struct bench_run *run, const char *name, double value, struct bench_mark mark)
{
	struct ratio ratio = { .median = value, .low = value, .high = value, .exact = true, .mark = mark };

	if (run->opts->count)
		return;
	ratio.n = isfinite(value) ? 1 : 0;
	ratio.name = bench_strdup(name);
	add_ratio(run, &ratio);
}

/* ---- the rest of what a bench asks for ---- */

void bench_note(struct bench_run *run, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	run->note = bench_realloc(run->note, (run->n_notes + 1) * sizeof(*run->note));
	run->note[run->n_notes++] = bench_strdup(text);
}

unsigned int bench_rounds(const struct bench_run *run)
{
	return run->opts->rounds;
}

bool bench_smoke(const struct bench_run *run)
{
	return run->opts->smoke;
}

const char *bench_pcap(const struct bench_run *run)
{
	return run->opts->pcap;
}

bool bench_two_cores(const struct bench_run *run)
{
	return run->opts->n_cpus > 1;
}

unsigned int bench_cpus(const struct bench_run *run)
{
	return run->opts->n_cpus;
}

int bench_cpu(const struct bench_run *run, unsigned int idx)
{
	return run->opts->cpu[idx];
}

struct team *bench_team(struct bench_run *run)
{
	if (!run->team)
		run->team = team_create(run->opts->cpu + 1, run->opts->n_cpus - 1);
	if (!run->team)
		out_of_memory();
	return run->team;
}

bool bench_counting(const struct bench_run *run)
{
	return run->opts->count;
}

uint64_t bench_cpu_ns(void)
{
	return leat_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Callgrind collects in here only; known by its name, so neither inlined nor copied. */
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noinline, noclone))
#endif
void bench_counted(void (*ops)(void *arg, uint64_t n), void *arg, uint64_t n)
{
	ops(arg, n);
	__asm__ volatile("" : : : "memory"); /* no tail call: it must return through here */
}

static void count(struct bench_run *run, const struct bench_variant *variants, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (strcmp(variants[i].name, run->opts->count) != 0 || !variants[i].ops || run->counted)
			continue;
		if (!variants[i].counts_itself)
			variants[i].ops(variants[i].arg, BENCH_STEP); /* warm: what is counted is the steady state */
		if (variants[i].counts_itself)
			variants[i].ops(variants[i].arg, run->opts->count_ops);
		else
			bench_counted(variants[i].ops, variants[i].arg, run->opts->count_ops);
		run->counted = true;
	}
}

int bench_mem_open(struct bench_run *run, struct bench_mem *mem, uint64_t limit)
{
	struct leat_arena_opts arena = { .size = sizeof(arena), .data_size = 2 * limit };
	struct leat_segment_opts segment = { .size = sizeof(segment), .bytes = limit };
	struct leat_page_pool_opts pool = { .size = sizeof(pool), .limit = limit, .name = run->bench->name };
	int err = leat_arena_create(&arena, &mem->arena);

	if (err)
		goto say;
	err = leat_segment_create(mem->arena, &segment, &mem->segment);
	if (err)
		goto destroy_arena;
	err = leat_page_pool_create(mem->segment, &pool, &mem->pool);
	if (err)
		goto destroy_segment;
	leat_page_pool_own(mem->pool);
	return 0;

destroy_segment:
	leat_segment_destroy(mem->segment);
destroy_arena:
	leat_arena_destroy(mem->arena);
say:
	bench_note(run, "packet memory: %s", strerror(-err));
	return err;
}

void bench_mem_close(struct bench_run *run, struct bench_mem *mem)
{
	struct leat_page_pool_stats stats;

	leat_page_pool_drain(mem->pool);
	leat_page_pool_stats(mem->pool, &stats);
	run->outstanding += stats.outstanding;
	leat_page_pool_destroy(mem->pool);
	leat_segment_destroy(mem->segment);
	if (!stats.outstanding) /* else the process ends soon, and the arena with it */
		leat_arena_destroy(mem->arena);
}
