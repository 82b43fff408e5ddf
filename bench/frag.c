/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frag.c: the bench `frag`: pieces of different sizes from a page_frag_cache, at the default alignment of 8 bytes
 * (unaligned) and at that of a cache line (aligned): 32 are allocated, their first word is written, and they go back, on
 * the same core or (@cross) on another one.
 *
 * The first word of a piece is its reference, so that whoever gets the piece can put it.
 */
#include <errno.h>
#include <leat/page_frag.h>

#include "bench.h"
#include "bench/baseline/heaps.h"
#include "crossing.h"

#define LIMIT (UINT64_C(16) << 20)
#define HOLD 32u
#define ALIGN 64u

/* Bytes: from the smallest frame to what does not fit into one. */
static const uint32_t sizes[] = { 64, 1000, 200, 1518, 90, 590, 300, 2900 };

#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct frags {
	struct leat_page_frag_cache cache;
	struct heap heap;
	struct team *team;
	struct leat_ptr_ring *ring;
	uint64_t n;
};

static uint64_t *start(uintptr_t obj)
{
	return (uint64_t *)obj;
}

static void frag_put(void *arg, uintptr_t *obj, uint32_t n)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < n; i++)
		leat_page_pool_put_page((struct leat_run){ *start(obj[i]) });
}

static void heap_put(void *arg, uintptr_t *obj, uint32_t n)
{
	struct frags *f = arg;
	uint32_t i;

	for (i = 0; i < n; i++)
		f->heap.free((void *)obj[i]);
}

BENCH_INLINE uintptr_t frag_get(void *arg, uint32_t size, uint32_t align)
{
	struct frags *f = arg;
	struct leat_page_frag frag = leat_page_frag_alloc_align(&f->cache, size, align);

	LEAT_ASSERT(frag.data);
	*(volatile uint64_t *)start((uintptr_t)frag.data) = frag.run.bits;
	return (uintptr_t)frag.data;
}

static uintptr_t unaligned_get(void *arg, uint32_t size)
{
	return frag_get(arg, size, 8);
}

static uintptr_t aligned_get(void *arg, uint32_t size)
{
	return frag_get(arg, size, ALIGN);
}

static uintptr_t heap_get(void *arg, uint32_t size)
{
	struct frags *f = arg;
	uintptr_t obj = (uintptr_t)f->heap.alloc(size);

	*(volatile uint64_t *)start(obj) = size;
	return obj;
}

BENCH_INLINE void loop(void *arg, uint64_t n, uintptr_t (*get)(void *, uint32_t),
		       void (*put)(void *, uintptr_t *, uint32_t))
{
	uintptr_t obj[HOLD];
	uint32_t i;

	for (; n; n -= HOLD) {
		for (i = 0; i < HOLD; i++)
			obj[i] = get(arg, sizes[i % N_SIZES]);
		put(arg, obj, HOLD);
	}
}

/** The owner's half of a crossing; what crossing_send() does but for the writing, which get does here. */
BENCH_INLINE void send(struct frags *f, uint64_t n, uintptr_t (*get)(void *, uint32_t),
		       void (*receive)(void *arg, unsigned int idx))
{
	uint32_t i;

	f->n = n;
	team_start(f->team, 1, receive, f);
	for (; n; n -= CROSSING_BURST) {
		while (leat_ptr_ring_room(f->ring, CROSSING_BURST) < CROSSING_BURST)
			team_pause();
		for (i = 0; i < CROSSING_BURST; i++)
			leat_ptr_ring_write(f->ring, i, get(f, sizes[i % N_SIZES]));
		leat_ptr_ring_publish(f->ring, CROSSING_BURST);
	}
	team_wait(f->team);
}

static void frag_receive(void *arg, unsigned int idx)
{
	struct frags *f = arg;

	(void)idx;
	crossing_receive(f->ring, f, f->n, frag_put, start, team_pause);
}

static void heap_receive(void *arg, unsigned int idx)
{
	struct frags *f = arg;

	(void)idx;
	crossing_receive(f->ring, f, f->n, heap_put, start, team_pause);
}

#define VARIANT(word, put, receive)                       \
	static void word(void *arg, uint64_t n)           \
	{                                                 \
		loop(arg, n, word##_get, put);            \
	}                                                 \
	static void word##_cross(void *arg, uint64_t n)   \
	{                                                 \
		send(arg, n, word##_get, receive);        \
	}

VARIANT(unaligned, frag_put, frag_receive)
VARIANT(aligned, frag_put, frag_receive)
VARIANT(heap, heap_put, heap_receive)

static void count(struct bench_run *run)
{
	const char *const names[] = { "aligned", "unaligned" };
	double value[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		value[i] = bench_smoke(run) ? -1 : bench_instructions(run, names[i]);
		if (value[i] > 0)
			bench_add(run, i ? "unaligned.instructions" : "aligned.instructions", &value[i], 1);
	}
	if (value[0] > 0 && value[1] > 0) {
		bench_exact(run, "aligned/unaligned", value[0] / value[1], BENCH_MARK_WITHIN(0.05));
		bench_ratio(run, "aligned/unaligned.time", "aligned", "unaligned", BENCH_MARK_NONE);
		bench_note(run, "aligned/unaligned is of instructions, counted by callgrind");
		return;
	}
	bench_ratio(run, "aligned/unaligned", "aligned", "unaligned", BENCH_MARK_WITHIN(0.05));
	bench_note(run, "aligned/unaligned is of time: instructions were not counted%s",
		   bench_smoke(run) ? "" : ", valgrind is not there");
}

static void measure(struct bench_run *run, struct frags *f, struct frags *libc)
{
	const struct bench_variant one[] = {
		{ .name = "unaligned", .ops = unaligned, .arg = f },
		{ .name = "aligned", .ops = aligned, .arg = f },
		{ .name = "malloc", .ops = heap, .arg = libc },
	};
	const struct bench_variant two[] = {
		{ .name = "unaligned@cross", .ops = unaligned_cross, .arg = f, .two_cores = true },
		{ .name = "aligned@cross", .ops = aligned_cross, .arg = f, .two_cores = true },
		/* who frees what another thread allocated sleeps on its lock, a tenth of the time */
		{ .name = "malloc@cross", .ops = heap_cross, .arg = libc, .two_cores = true, .shares_core = true },
	};

	bench_measure(run, one, 3);
	if (bench_counting(run))
		return;
	count(run);
	bench_ratio(run, "unaligned/malloc", "unaligned", "malloc", BENCH_MARK_NONE);
	if (!bench_two_cores(run))
		return;
	f->team = libc->team = bench_team(run);
	bench_measure(run, two, 3);
	bench_ratio(run, "aligned/unaligned@cross", "aligned@cross", "unaligned@cross", BENCH_MARK_NONE);
	bench_ratio(run, "unaligned/malloc@cross", "unaligned@cross", "malloc@cross", BENCH_MARK_NONE);
}

static int run_frag(struct bench_run *run)
{
	struct frags f = { .ring = leat_ptr_ring_create(CROSSING_RING) };
	struct frags libc = { .ring = f.ring };
	struct bench_mem mem;
	int err = -ENOMEM;

	if (f.ring)
		err = bench_mem_open(run, &mem, LIMIT);
	if (!err) {
		leat_page_frag_init(&f.cache, mem.pool);
		heap_libc(&libc.heap);
		measure(run, &f, &libc);
		leat_page_frag_drain(&f.cache);
		bench_mem_close(run, &mem);
	}
	leat_ptr_ring_destroy(f.ring);
	return err;
}

const struct bench bench_frag = {
	"frag", "allocate pieces of 64 to 2900 bytes, write their first word, free them", "ns/op", BENCH_LOWER, run_frag,
};
