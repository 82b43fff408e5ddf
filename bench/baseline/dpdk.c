/* SPDX-License-Identifier: BSD-3-Clause */
/* dpdk.c: sets up as little of DPDK as a mempool needs. */
#include "dpdk.h"

#include <rte_eal.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <unistd.h>

#define OBJECTS 8191u /* one less than a power of two suits its ring */
#define CACHE 512u    /* the most there may be, and what packet pools have */

/** The words are kept: the library may look at them later. */
static bool set_up(int cpu)
{
	static char lcores[16], prefix[32];
	static const char *args[] = { "leat-bench", "--no-huge", "-m", "128", "--no-pci", "--no-shconf", "--no-telemetry",
				"--file-prefix", prefix, "--log-level=1", "--lcores", lcores, NULL };
	static int state; /* 0: not tried; 1: there; -1: cannot be */

	if (!state) {
		snprintf(lcores, sizeof(lcores), "0@%d", cpu);
		snprintf(prefix, sizeof(prefix), "leat-bench-%d", (int)getpid());
		state = rte_eal_init((int)(sizeof(args) / sizeof(args[0])) - 1, (char **)args) < 0 ? -1 : 1;
	}
	return state > 0;
}

struct rte_mempool *dpdk_pool(const char *name, unsigned int size, int cpu)
{
	if (!set_up(cpu))
		return NULL;
	return rte_mempool_create(name, OBJECTS, size, CACHE, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
}

bool dpdk_thread(void)
{
	return rte_lcore_id() != LCORE_ID_ANY || !rte_thread_register();
}

unsigned int dpdk_in_use(const struct rte_mempool *pool)
{
	return rte_mempool_in_use_count(pool);
}
