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
	uint64_t number = leat_epoch_begin(epoch);

	while (!leat_epoch_passed(epoch, number))
		nanosleep(&pause, NULL);
}
