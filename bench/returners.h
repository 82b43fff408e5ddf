/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * returners.h: buffers that one core allocates and several threads give back, each in bulks of the burst that it got: what
 * the bench `return` times, and what leat-bench-rmws counts.
 */
#ifndef LEAT_BENCH_RETURNERS_H
#define LEAT_BENCH_RETURNERS_H

#include <sched.h>

#include "bench/baseline/locked_pool.h"
#include "crossing.h"

#define RETURNERS_OBJECT 2048u

struct returners {
	struct team *team;
	unsigned int n; /* threads: 1, 2, 4 or 8 */
	struct leat_ptr_ring *ring[TEAM_MAX];
	struct leat_page_pool *pool;
	struct locked_pool *locked;
	uint64_t each; /* objects for each thread */
	/** Called by each thread when it begins and when it has done; may be NULL. */
	void (*around)(struct returners *r, unsigned int idx, bool end);
};

static inline uint64_t *returners_leat_start(uintptr_t obj)
{
	return (uint64_t *)(void *)leat_run_start((struct leat_run){ obj });
}

static inline uint64_t *returners_plain_start(uintptr_t obj)
{
	return (uint64_t *)obj;
}

static inline bool returners_leat_get(void *arg, uintptr_t *obj)
{
	uint32_t i;

	for (i = 0; i < CROSSING_BURST; i++) {
		obj[i] = leat_page_pool_alloc(arg, LEAT_GRANULES(RETURNERS_OBJECT)).bits;
		LEAT_ASSERT(obj[i]); /* the pool holds more than all rings */
	}
	return true;
}

static inline void returners_leat_put(void *arg, uintptr_t *obj, uint32_t n)
{
	(void)arg;
	leat_page_pool_put_page_bulk((struct leat_run *)(void *)obj, n);
}

static inline void returners_single_put(void *arg, uintptr_t *obj, uint32_t n)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < n; i++)
		leat_page_pool_put_page((struct leat_run){ obj[i] });
}

static inline bool returners_locked_get(void *arg, uintptr_t *obj)
{
	uint32_t i;

	for (i = 0; i < CROSSING_BURST; i++) {
		obj[i] = (uintptr_t)locked_pool_alloc(arg);
		LEAT_ASSERT(obj[i]);
	}
	return true;
}

static inline void returners_locked_put(void *arg, uintptr_t *obj, uint32_t n)
{
	locked_pool_put_bulk(arg, (void *const *)obj, n);
}

/** A thread that has nothing to do lets the others of its core have it. */
static inline void returners_idle(void)
{
	sched_yield();
}

BENCH_INLINE void returners_job(struct returners *r, unsigned int idx, void *arg,
				void (*put)(void *, uintptr_t *, uint32_t), uint64_t *(*start)(uintptr_t))
{
	if (r->around)
		r->around(r, idx, false);
	if (r->n == 1)
		crossing_receive(r->ring[idx], arg, r->each, put, start, team_pause);
	else
		crossing_receive(r->ring[idx], arg, r->each, put, start, returners_idle);
	if (r->around)
		r->around(r, idx, true);
}

static inline void returners_leat_job(void *arg, unsigned int idx)
{
	returners_job(arg, idx, NULL, returners_leat_put, returners_leat_start);
}

static inline void returners_single_job(void *arg, unsigned int idx)
{
	returners_job(arg, idx, NULL, returners_single_put, returners_leat_start);
}

static inline void returners_locked_job(void *arg, unsigned int idx)
{
	struct returners *r = arg;

	returners_job(r, idx, r->locked, returners_locked_put, returners_plain_start);
	page_cache_drain(r->locked->pages); /* the thread will not use it for a while */
}

/** Runs @n objects, a multiple of BENCH_STEP, through the threads. */
static inline void returners_leat(void *arg, uint64_t n)
{
	struct returners *r = arg;

	r->each = n / r->n;
	team_start(r->team, r->n, returners_leat_job, r);
	crossing_send(r->ring, r->n, r->pool, n, returners_leat_get, returners_leat_start);
	team_wait(r->team);
}

/** The same, each put by a call of its own. */
static inline void returners_single(void *arg, uint64_t n)
{
	struct returners *r = arg;

	r->each = n / r->n;
	team_start(r->team, r->n, returners_single_job, r);
	crossing_send(r->ring, r->n, r->pool, n, returners_leat_get, returners_leat_start);
	team_wait(r->team);
}

static inline void returners_locked(void *arg, uint64_t n)
{
	struct returners *r = arg;

	r->each = n / r->n;
	team_start(r->team, r->n, returners_locked_job, r);
	crossing_send(r->ring, r->n, r->locked, n, returners_locked_get, returners_plain_start);
	team_wait(r->team);
}

#endif
