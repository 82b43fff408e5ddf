/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h: time in nanoseconds. */
#ifndef LEAT_BASE_CLOCK_H
#define LEAT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define LEAT_NSEC_PER_SEC UINT64_C(1000000000)

static inline uint64_t leat_clock_read(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * LEAT_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/** Since an arbitrary moment; never steps. */
static inline uint64_t leat_clock_ns(void)
{
	return leat_clock_read(CLOCK_MONOTONIC);
}

/** Since 1970-01-01 UTC. */
static inline uint64_t leat_clock_real_ns(void)
{
	return leat_clock_read(CLOCK_REALTIME);
}

#endif
