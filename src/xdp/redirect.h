/* SPDX-License-Identifier: BSD-3-Clause */
/* redirect.h: frames on their way from one poll to other ports. See redirect.c. */
#ifndef LEAT_XDP_REDIRECT_H
#define LEAT_XDP_REDIRECT_H

#include <leat/driver.h>

#include "netdev/worker.h"

/**
 * Queues a frame for a port (**consumes**); leaves at 16 or at the end of the poll. @egress runs on it before, NULL:
 * nothing does. *worker*.
 */
void leat_redirect_enqueue(struct leat_rx *rx, struct leat_netdev *dev, struct leat_bpf_prog *egress,
			   struct leat_xdp_frame *frame);
/**
 * Queues a packet for each port in to->all: clones that share its payload, and for the last one the packet itself. A
 * port for which there is no memory counts that. Returns false when there is no port (**consumes** @xdp else). *worker*.
 */
bool leat_redirect_to_all(struct leat_rx *rx, const struct leat_redirect_to *to, const struct leat_xdp_buff *xdp);
/** Sends everything that the poll has queued; the flush list is empty after it. *worker*. */
void leat_redirect_flush(struct leat_rx *rx);

#endif
