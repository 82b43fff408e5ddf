/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.c: waiting for a grace period. Control thread; the readers' side is inline in epoch.h.
 */
#include "base/epoch.h"

#include <time.h>

#define LOOK_AGAIN_NS 20000

void leat_epoch_synchronize(struct leat_epoch *epoch)
{
	const struct timespec pause = { 0, LOOK_AGAIN_NS };
	uint64_t now = __atomic_add_fetch(&epoch->now, 1, __ATOMIC_SEQ_CST);
	uint64_t seen;
	unsigned int id;

	for (id = 0; id < LEAT_EPOCH_READERS; id++)
		/* pairs with the reader's exchange or release store: what it did before is done */
		while ((seen = __atomic_load_n(&epoch->reader[id].seen, __ATOMIC_SEQ_CST)) && seen < now)
			nanosleep(&pause, NULL);
}
