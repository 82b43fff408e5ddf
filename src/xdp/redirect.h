/* SPDX-License-Identifier: BSD-3-Clause */
/* redirect.h: frames on their way from one poll to other ports. See redirect.c. */
#ifndef LEAT_XDP_REDIRECT_H
#define LEAT_XDP_REDIRECT_H

#include "netdev/worker.h"

/** Queues a frame for a port (**consumes**); leaves at 16 or at the end of the poll. *worker*. */
void leat_redirect_enqueue(struct leat_worker *worker, struct leat_netdev *dev, struct leat_xdp_frame *frame);
/** Sends everything that the poll has queued; the flush list is empty after it. *worker*. */
void leat_redirect_flush(struct leat_worker *worker);

#endif
