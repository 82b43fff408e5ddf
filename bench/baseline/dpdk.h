/* SPDX-License-Identifier: BSD-3-Clause */
/* dpdk.h: baseline: DPDK's mempool with its cache, where leat-bench was built with DPDK. */
#ifndef LEAT_BENCH_BASELINE_DPDK_H
#define LEAT_BENCH_BASELINE_DPDK_H

#ifdef LEAT_HAVE_DPDK
#include <rte_mempool.h>

/**
 * A pool of objects of @size bytes with a cache of 512 per thread; the environment is set up at the first call, on core
 * @cpu, without huge pages or devices. NULL when it cannot be.
 */
struct rte_mempool *dpdk_pool(const char *name, unsigned int size, int cpu);
/** Gives the calling thread a cache of its own. False when it cannot have one. */
bool dpdk_thread(void);
/** Objects that are neither in the pool nor in a cache. */
unsigned int dpdk_in_use(const struct rte_mempool *pool);
#endif

#endif
