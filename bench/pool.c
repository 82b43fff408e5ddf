/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c: the bench `pool`: nanoseconds to allocate an object of 2 KiB, write its first word, and put it.
 *
 * On one core: one at a time (one), 32 and then all back (hold32), a queue of 256 whose oldest goes back (fifo256), 1024
 * and then all back (hold1024). On two cores: the other one puts, in the order in which it got them (remote) or in random
 * order of 64 that it holds (remote-random).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/baseline/dpdk.h"
#include "bench/baseline/heaps.h"
#include "bench/baseline/locked_pool.h"
#include "crossing.h"

#define OBJECT 2048u
#define LIMIT (UINT64_C(16) << 20)
#define PAGES (UINT64_C(64) << 20)
#define HOLD_MAX 1024u
#define FIFO 256u
#define RANDOM_HELD 64u
/* Below this, ns, DPDK's path between the cores says that they are near to each other. */
#define NEAR_NS 14.0

/* ---- the loops ---- */

static uintptr_t held[HOLD_MAX];

BENCH_INLINE void loop_hold(void *arg, uint64_t n, uint32_t hold, uintptr_t (*get)(void *),
			    void (*put)(void *, uintptr_t), uint64_t *(*start)(uintptr_t))
{
	uint32_t i;

	for (; n; n -= hold) {
		for (i = 0; i < hold; i++) {
			held[i] = get(arg);
			*(volatile uint64_t *)start(held[i]) = i;
		}
		for (i = 0; i < hold; i++)
			put(arg, held[i]);
	}
}

BENCH_INLINE void loop_one(void *arg, uint64_t n, uintptr_t (*get)(void *), void (*put)(void *, uintptr_t),
			   uint64_t *(*start)(uintptr_t))
{
	while (n--) {
		uintptr_t obj = get(arg);

		*(volatile uint64_t *)start(obj) = n;
		put(arg, obj);
	}
}

BENCH_INLINE void loop_fifo(void *arg, uint64_t n, uintptr_t (*get)(void *), void (*put)(void *, uintptr_t),
			    uint64_t *(*start)(uintptr_t))
{
	uint64_t i;

	for (i = 0; i < n + FIFO; i++) {
		uintptr_t *slot = &held[i % FIFO];

		if (i >= FIFO)
			put(arg, *slot);
		if (i >= n)
			continue;
		*slot = get(arg);
		*(volatile uint64_t *)start(*slot) = i;
	}
}

/* ---- what is compared ---- */

static uintptr_t direct_get(void *arg)
{
	return leat_page_pool_alloc(arg, LEAT_GRANULES(OBJECT)).bits;
}

static void direct_put(void *arg, uintptr_t obj)
{
	(void)arg;
	leat_page_pool_put_page((struct leat_run){ obj });
}

static uint64_t *direct_start(uintptr_t obj)
{
	return (uint64_t *)(void *)leat_run_start((struct leat_run){ obj });
}

static uint64_t *plain_start(uintptr_t obj)
{
	return (uint64_t *)obj;
}

static uintptr_t page_get(void *arg)
{
	return (uintptr_t)page_alloc(arg, 0);
}

static void page_put(void *arg, uintptr_t obj)
{
	page_free(arg, (void *)obj, 0);
}

static uintptr_t locked_get(void *arg)
{
	return (uintptr_t)locked_pool_alloc(arg);
}

static void locked_put(void *arg, uintptr_t obj)
{
	locked_pool_put_direct(arg, (void *)obj);
}

static uintptr_t heap_get(void *arg)
{
	struct heap *heap = arg;

	return (uintptr_t)heap->alloc(OBJECT);
}

static void heap_put(void *arg, uintptr_t obj)
{
	struct heap *heap = arg;

	heap->free((void *)obj);
}

#ifdef LEAT_HAVE_DPDK
static uintptr_t dpdk_get(void *arg)
{
	void *obj = NULL;

	LEAT_ASSERT(!rte_mempool_get(arg, &obj));
	return (uintptr_t)obj;
}

static void dpdk_put(void *arg, uintptr_t obj)
{
	rte_mempool_put(arg, (void *)obj);
}
#endif

/** The four loops over one allocator, each with its functions inside. */
#define LOOPS(word, start)                                                                       \
	static void word##_one(void *arg, uint64_t n)                                            \
	{                                                                                        \
		loop_one(arg, n, word##_get, word##_put, start);                                 \
	}                                                                                        \
	static void word##_hold32(void *arg, uint64_t n)                                         \
	{                                                                                        \
		loop_hold(arg, n, 32, word##_get, word##_put, start);                            \
	}                                                                                        \
	static void word##_fifo256(void *arg, uint64_t n)                                        \
	{                                                                                        \
		loop_fifo(arg, n, word##_get, word##_put, start);                                \
	}                                                                                        \
	static void word##_hold1024(void *arg, uint64_t n)                                       \
	{                                                                                        \
		loop_hold(arg, n, HOLD_MAX, word##_get, word##_put, start);                      \
	}                                                                                        \
	static void (*const word##_loops[])(void *, uint64_t) = { word##_one, word##_hold32, word##_fifo256, word##_hold1024 };

LOOPS(direct, direct_start)
LOOPS(page, plain_start)
LOOPS(locked, plain_start)
LOOPS(heap, plain_start)
#ifdef LEAT_HAVE_DPDK
LOOPS(dpdk, plain_start)
#endif

static const char *const points[] = { "one", "hold32", "fifo256", "hold1024" };

#define N_POINTS (sizeof(points) / sizeof(points[0]))

/* ---- one core ---- */

/** An allocator in the comparison. */
struct rival {
	const char *name;
	void (*const *loops)(void *arg, uint64_t n);
	void *arg;
};

#define RIVALS_MAX 6u

static void ratios_of_point(struct bench_run *run, const struct rival *rival, unsigned int n, const char *point)
{
	char name[64], direct[32], other[64];
	unsigned int i;

	snprintf(direct, sizeof(direct), "direct@%s", point);
	for (i = 1; i < n; i++) {
		/* the mark is on one object; that ratio has the plain name */
		bool marked = !strcmp(rival[i].name, "dpdk-mempool") && !strcmp(point, "one");

		snprintf(other, sizeof(other), "%s@%s", rival[i].name, point);
		snprintf(name, sizeof(name), marked ? "direct/%s" : "direct/%s@%s", rival[i].name, point);
		bench_ratio(run, name, direct, other, marked ? BENCH_MARK_AT_MOST(0.6) : BENCH_MARK_NONE);
	}
}

static void measure_one_core(struct bench_run *run, const struct rival *rival, unsigned int n)
{
	struct bench_variant variant[RIVALS_MAX];
	char name[RIVALS_MAX][48];
	unsigned int p, i;
	double instructions;

	for (p = 0; p < N_POINTS; p++) {
		for (i = 0; i < n; i++) {
			snprintf(name[i], sizeof(name[i]), "%s@%s", rival[i].name, points[p]);
			variant[i] = (struct bench_variant){ .name = name[i], .ops = rival[i].loops[p], .arg = rival[i].arg };
		}
		bench_measure(run, variant, n);
	}
	for (p = 0; p < N_POINTS; p++)
		ratios_of_point(run, rival, n, points[p]);
	for (p = 0; p < N_POINTS && !bench_smoke(run) && !bench_counting(run); p++) {
		snprintf(name[0], sizeof(name[0]), "direct@%s", points[p]);
		instructions = bench_instructions(run, name[0]);
		if (instructions >= 0)
			bench_note(run, "%s: %.1f instructions", name[0], instructions);
	}
}

/* ---- two cores ---- */

struct remote {
	struct team *team;
	struct leat_ptr_ring *ring;
	void *pool;
	uint64_t n;
	/* remote-random */
	uintptr_t held[RANDOM_HELD];
	uint32_t n_held;
	uint32_t seed;
	uint64_t put, runs; /* objects put, and runs of neighbours among them */
	uintptr_t last;
};

static bool leat_get(void *arg, uintptr_t *obj)
{
	struct leat_run run;
	uint32_t i;

	for (i = 0; i < CROSSING_BURST; i++) {
		run = leat_page_pool_alloc(arg, LEAT_GRANULES(OBJECT));
		LEAT_ASSERT(!leat_run_is_none(run)); /* the pool holds much more than the ring */
		obj[i] = run.bits;
	}
	return true;
}

static void leat_put(void *arg, uintptr_t *obj, uint32_t n)
{
	(void)arg;
	leat_page_pool_put_page_bulk((struct leat_run *)(void *)obj, n);
}

/** Counts how many neighbours follow each other in the order in which they are put. */
static void count_runs(struct remote *r, const uintptr_t *obj, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		uintptr_t addr = (uintptr_t)direct_start(obj[i]);

		r->runs += addr != r->last + OBJECT || i == 0;
		r->last = addr;
	}
	r->put += n;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/** Each that comes takes the place of a random one of those held, which goes back. Returns how many go. */
static uint32_t random_pick(struct remote *r, uintptr_t *obj, uint32_t n)
{
	uint32_t i, k, out = 0;

	for (i = 0; i < n; i++) {
		uintptr_t came = obj[i];

		if (r->n_held < RANDOM_HELD) {
			r->held[r->n_held++] = came;
			continue;
		}
		k = next_random(&r->seed) % RANDOM_HELD;
		obj[out++] = r->held[k];
		r->held[k] = came;
	}
	return out;
}

static void random_put(void *arg, uintptr_t *obj, uint32_t n)
{
	leat_put(NULL, obj, random_pick(arg, obj, n));
}

/* Not timed: only to see in which order they go back. */
static void counted_put(void *arg, uintptr_t *obj, uint32_t n)
{
	count_runs(arg, obj, n);
	leat_put(NULL, obj, n);
}

static void counted_random_put(void *arg, uintptr_t *obj, uint32_t n)
{
	n = random_pick(arg, obj, n);
	counted_put(arg, obj, n);
}

#define RECEIVE(word)                                                                    \
	static void word##_receive(void *arg, unsigned int idx)                          \
	{                                                                                \
		struct remote *r = arg;                                                  \
                                                                                         \
		(void)idx;                                                               \
		crossing_receive(r->ring, r, r->n, word##_put, direct_start, team_pause); \
		leat_put(NULL, r->held, r->n_held);                                      \
		r->n_held = 0;                                                           \
	}

RECEIVE(leat)
RECEIVE(random)
RECEIVE(counted)
RECEIVE(counted_random)

BENCH_INLINE void remote_crossing(struct remote *r, uint64_t n, void (*receive)(void *arg, unsigned int idx))
{
	r->n = n;
	team_start(r->team, 1, receive, r);
	crossing_send(&r->ring, 1, r->pool, n, leat_get, direct_start);
	team_wait(r->team);
}

static void remote_ops(void *arg, uint64_t n)
{
	remote_crossing(arg, n, leat_receive);
}

static void random_ops(void *arg, uint64_t n)
{
	remote_crossing(arg, n, random_receive);
}

static void note_runs(struct bench_run *run, struct remote *r)
{
	double in_order;

	r->put = r->runs = 0;
	remote_crossing(r, 64 * BENCH_STEP, counted_receive);
	in_order = (double)r->put / (double)r->runs;
	r->put = r->runs = 0;
	remote_crossing(r, 64 * BENCH_STEP, counted_random_receive);
	bench_note(run, "mean run of neighbours in a burst: remote %.2f, remote-random %.2f buffers", in_order,
		   (double)r->put / (double)r->runs);
}

#ifdef LEAT_HAVE_DPDK
static bool dpdk_get_burst(void *arg, uintptr_t *obj)
{
	return !rte_mempool_get_bulk(arg, (void **)obj, CROSSING_BURST);
}

static void dpdk_put_burst(void *arg, uintptr_t *obj, uint32_t n)
{
	rte_mempool_put_bulk(arg, (void **)obj, n);
}

static void dpdk_receive(void *arg, unsigned int idx)
{
	struct remote *r = arg;

	(void)idx;
	LEAT_ASSERT(dpdk_thread());
	crossing_receive(r->ring, r->pool, r->n, dpdk_put_burst, plain_start, team_pause);
}

static void dpdk_cross(void *arg, uint64_t n)
{
	struct remote *r = arg;

	r->n = n;
	team_start(r->team, 1, dpdk_receive, r);
	crossing_send(&r->ring, 1, r->pool, n, dpdk_get_burst, plain_start);
	team_wait(r->team);
}

/** The samples of one state of the machine, as variants and ratios of their own. */
static void split_by_state(struct bench_run *run, bool near)
{
	const char *const names[] = { "remote", "remote-random", "dpdk-cross" };
	const char *state = near ? "near" : "far";
	char name[3][32], ratio[48];
	unsigned int i, k, n, kept = 0;
	const double *dpdk, *from;
	double *of;

	(void)bench_samples(run, "dpdk-cross", &n);
	of = calloc(n + 1, sizeof(*of));
	for (k = 0; of && k < 3; k++) {
		snprintf(name[k], sizeof(name[k]), "%s@%s", names[k], state);
		from = bench_samples(run, names[k], &n);
		dpdk = bench_samples(run, "dpdk-cross", &n);
		for (i = kept = 0; i < n; i++)
			if ((dpdk[i] <= NEAR_NS) == near)
				of[kept++] = from[i];
		if (kept)
			bench_add(run, name[k], of, kept);
	}
	free(of);
	if (!kept)
		return;
	snprintf(ratio, sizeof(ratio), "remote/dpdk-cross@%s", state);
	bench_ratio(run, ratio, name[0], name[2], BENCH_MARK_AT_MOST(0.7));
	snprintf(ratio, sizeof(ratio), "remote-random/dpdk-cross@%s", state);
	bench_ratio(run, ratio, name[1], name[2], BENCH_MARK_NONE);
}
#endif

static void measure_two_cores(struct bench_run *run, struct leat_page_pool *pool, void *mempool)
{
	struct remote mine = { .team = bench_team(run), .pool = pool, .seed = 1 };
	struct remote theirs = { .team = mine.team, .pool = mempool };
	const struct bench_variant remote = { .name = "remote", .ops = remote_ops, .arg = &mine, .two_cores = true };
	const struct bench_variant random = { .name = "remote-random", .ops = random_ops, .arg = &mine, .two_cores = true };
#ifdef LEAT_HAVE_DPDK
	const struct bench_variant dpdk = { .name = "dpdk-cross", .ops = dpdk_cross, .arg = &theirs, .two_cores = true };
	const struct bench_variant group[] = { dpdk, remote, random, dpdk };
#endif
	const struct bench_variant alone[] = { remote, random };

	mine.ring = theirs.ring = leat_ptr_ring_create(CROSSING_RING);
	LEAT_ASSERT(mine.ring);
	note_runs(run, &mine);
#ifdef LEAT_HAVE_DPDK
	if (mempool) {
		bench_measure(run, group, 4);
		bench_ratio(run, "remote/dpdk-cross", "remote", "dpdk-cross", BENCH_MARK_AT_MOST(0.7));
		split_by_state(run, true);
		split_by_state(run, false);
	} else
#endif
		bench_measure(run, alone, 2);
	bench_ratio(run, "remote-random/remote", "remote-random", "remote", BENCH_MARK_NONE);
	leat_ptr_ring_destroy(mine.ring);
}

/* ---- all of it ---- */

/** DPDK's pool, unless it is not there or not asked for. */
static void *open_dpdk(struct bench_run *run)
{
	void *pool = NULL;

	if (bench_counting(run))
		return NULL;
#ifdef LEAT_HAVE_DPDK
	pool = dpdk_pool("leat-bench", OBJECT, bench_cpu(run, 0));
	if (!pool)
		bench_note(run, "DPDK could not be set up: its marks are not measured");
#else
	bench_note(run, "built without DPDK: its marks are not measured");
#endif
	return pool;
}

static void measure(struct bench_run *run, struct leat_page_pool *pool, struct locked_pool *locked,
		    struct page_allocator *pages)
{
	struct rival rival[RIVALS_MAX] = { { "direct", direct_loops, pool } };
	struct heap libc, jemalloc;
	void *mempool = open_dpdk(run);
	unsigned int n = 1;

#ifdef LEAT_HAVE_DPDK
	if (mempool)
		rival[n++] = (struct rival){ "dpdk-mempool", dpdk_loops, mempool };
#endif
	rival[n++] = (struct rival){ "page", page_loops, pages };
	rival[n++] = (struct rival){ "locked-pool", locked_loops, locked };
	heap_libc(&libc);
	rival[n++] = (struct rival){ "malloc", heap_loops, &libc };
	if (heap_jemalloc(&jemalloc))
		rival[n++] = (struct rival){ "jemalloc", heap_loops, &jemalloc };
	else
		bench_note(run, "jemalloc cannot be loaded: it is left out");
	measure_one_core(run, rival, n);
	if (bench_two_cores(run) && !bench_counting(run))
		measure_two_cores(run, pool, mempool);
#ifdef LEAT_HAVE_DPDK
	if (mempool)
		LEAT_ASSERT(!dpdk_in_use(mempool));
#endif
}

static int run_pool(struct bench_run *run)
{
	struct page_allocator *pages = page_allocator_create(PAGES);
	struct locked_pool *locked = pages ? locked_pool_create(pages) : NULL;
	struct bench_mem mem;
	int err = -ENOMEM;

	if (!locked)
		goto destroy_pages;
	err = bench_mem_open(run, &mem, LIMIT);
	if (err)
		goto destroy_locked;
	measure(run, mem.pool, locked, pages);
	bench_mem_close(run, &mem);
destroy_locked:
	locked_pool_destroy(locked);
	page_cache_drain(pages);
	LEAT_ASSERT(!page_allocator_used(pages));
destroy_pages:
	page_allocator_destroy(pages);
	return err;
}

const struct bench bench_pool = {
	"pool", "allocate an object of 2 KiB, write its first word, put it", "ns/op", BENCH_LOWER, run_pool,
};
