/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h: the threads that work with the main thread in benches of two cores. They sleep between jobs, so they take
 * nothing from slices of one core.
 */
#ifndef LEAT_BENCH_TEAM_H
#define LEAT_BENCH_TEAM_H

#include <leat/base.h>

struct team;

#define TEAM_MAX 8

/** Threads that are made when they are first needed; the i-th runs on @cpu[i % @n_cpus]. NULL when memory is out. */
struct team *team_create(const int *cpu, unsigned int n_cpus);
/** Ends the threads. NULL is allowed. */
void team_destroy(struct team *team);
/** Lets threads 0..@n - 1 (at most TEAM_MAX) run @fn, each with its number; returns when all of them have begun. */
void team_start(struct team *team, unsigned int n, void (*fn)(void *arg, unsigned int idx), void *arg);
/** Waits for the job that was started. Returns the CPU time that its threads took, ns. */
uint64_t team_wait(struct team *team);

/** Pins the calling thread. */
void team_pin(int cpu);

/** Round trip of a cache line between the calling thread and the first of the team, ns: the best of some tries. */
double team_pingpong(struct team *team);

static inline void team_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
