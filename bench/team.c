/* SPDX-License-Identifier: BSD-3-Clause */
/* team.c: partner threads, and how fast cache lines go between the main thread's core and theirs. */
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define PINGPONG_TRIES 16u
#define PINGPONG_TRIPS 200u

struct member {
	struct team *team;
	pthread_t thread;
	unsigned int idx;
	uint64_t jobs; /* done */
	uint64_t cpu_ns;
};

struct pingpong {
	uint32_t ping LEAT_CACHELINE_ALIGNED; /* main thread writes */
	uint32_t pong LEAT_CACHELINE_ALIGNED; /* partner writes */
};

struct team {
	const int *cpu;
	unsigned int n_cpus, n_members;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t start, done;
	uint64_t job; /* number of the job */
	unsigned int n, running, begun;
	bool end;
	void (*fn)(void *arg, unsigned int idx);
	void *arg;
	struct member member[TEAM_MAX];
	struct pingpong pingpong;
};

void team_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* not allowed: the scheduler decides, and samples are dropped */
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct team *team = m->team;
	uint64_t cpu_ns;

	team_pin(team->cpu[m->idx % team->n_cpus]);
	pthread_mutex_lock(&team->lock);
	for (;;) {
		while (!team->end && (team->job == m->jobs || m->idx >= team->n))
			pthread_cond_wait(&team->start, &team->lock);
		if (team->end)
			break;
		m->jobs = team->job;
		__atomic_fetch_add(&team->begun, 1, __ATOMIC_RELEASE); /* pairs with team_start() */
		pthread_mutex_unlock(&team->lock);
		cpu_ns = leat_clock_read(CLOCK_THREAD_CPUTIME_ID);
		team->fn(team->arg, m->idx);
		cpu_ns = leat_clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
		pthread_mutex_lock(&team->lock);
		m->cpu_ns = cpu_ns;
		if (!--team->running)
			pthread_cond_signal(&team->done);
	}
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

struct team *team_create(const int *cpu, unsigned int n_cpus)
{
	struct team *team = aligned_alloc(LEAT_CACHELINE, sizeof(*team));

	if (!team)
		return NULL;
	*team = (struct team){ .cpu = cpu, .n_cpus = n_cpus };
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->start, NULL);
	pthread_cond_init(&team->done, NULL);
	return team;
}

void team_destroy(struct team *team)
{
	unsigned int i;

	if (!team)
		return;
	pthread_mutex_lock(&team->lock);
	team->end = true;
	pthread_cond_broadcast(&team->start);
	pthread_mutex_unlock(&team->lock);
	for (i = 0; i < team->n_members; i++)
		pthread_join(team->member[i].thread, NULL);
	free(team);
}

static void add_members(struct team *team, unsigned int n)
{
	while (team->n_members < n) {
		struct member *m = &team->member[team->n_members];

		m->team = team;
		m->idx = team->n_members;
		m->jobs = team->job;
		if (pthread_create(&m->thread, NULL, member_main, m)) {
			fputs("leat-bench: no thread can be made\n", stderr);
			exit(EXIT_FAILURE);
		}
		team->n_members++;
	}
}

void team_start(struct team *team, unsigned int n, void (*fn)(void *arg, unsigned int idx), void *arg)
{
	LEAT_ASSERT(n >= 1 && n <= TEAM_MAX);
	pthread_mutex_lock(&team->lock);
	add_members(team, n);
	team->n = team->running = n;
	team->fn = fn;
	team->arg = arg;
	__atomic_store_n(&team->begun, 0, __ATOMIC_RELAXED);
	team->job++;
	pthread_cond_broadcast(&team->start);
	pthread_mutex_unlock(&team->lock);
	while (__atomic_load_n(&team->begun, __ATOMIC_ACQUIRE) != n) /* pairs with member_main() */
		sched_yield();
}

uint64_t team_wait(struct team *team)
{
	uint64_t cpu_ns = 0;
	unsigned int i;

	pthread_mutex_lock(&team->lock);
	while (team->running)
		pthread_cond_wait(&team->done, &team->lock);
	for (i = 0; i < team->n; i++)
		cpu_ns += team->member[i].cpu_ns;
	pthread_mutex_unlock(&team->lock);
	return cpu_ns;
}

static void pong(void *arg, unsigned int idx)
{
	struct pingpong *pp = arg;
	uint32_t i;

	(void)idx;
	for (i = 1; i <= PINGPONG_TRIES * PINGPONG_TRIPS; i++) {
		while (__atomic_load_n(&pp->ping, __ATOMIC_ACQUIRE) != i) /* pairs with team_pingpong() */
			;
		__atomic_store_n(&pp->pong, i, __ATOMIC_RELEASE);
	}
}

double team_pingpong(struct team *team)
{
	struct pingpong *pp = &team->pingpong;
	uint64_t best = UINT64_MAX, ns;
	uint32_t i = 0;

	__atomic_store_n(&pp->ping, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pp->pong, 0, __ATOMIC_RELAXED);
	team_start(team, 1, pong, pp);
	while (i < PINGPONG_TRIES * PINGPONG_TRIPS) {
		ns = leat_clock_ns();
		do {
			__atomic_store_n(&pp->ping, ++i, __ATOMIC_RELEASE); /* pairs with pong() */
			while (__atomic_load_n(&pp->pong, __ATOMIC_ACQUIRE) != i)
				;
		} while (i % PINGPONG_TRIPS);
		ns = leat_clock_ns() - ns;
		best = ns < best ? ns : best;
	}
	team_wait(team);
	return (double)best / PINGPONG_TRIPS;
}
