/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready.h: what a program must find before it: one buffer unless it takes several, room, and a payload of its own when
 * it writes. Memory comes from the pool of the queue that is polled. *worker*.
 */
#ifndef LEAT_XDP_READY_H
#define LEAT_XDP_READY_H

#include <errno.h>
#include <leat/driver.h>

/** Makes a packet of several buffers one. 0, or why it must be dropped: -EMSGSIZE, -ENOMEM. Counted as a copy. */
int leat_rx_linearize(struct leat_rx *rx, struct leat_xdp_buff *xdp);
/** Gives the packet a head of its own with headroom. 0 or -ENOMEM. Counted as a copy. */
int leat_rx_copy_head(struct leat_rx *rx, struct leat_xdp_buff *xdp);
/** Sees to it that nobody else reads the fragments. 0 or -ENOMEM. */
int leat_rx_own_frags(struct leat_rx *rx, struct leat_xdp_buff *xdp);

/** Whether there is as much before the packet as a program must find. Metadata lies within, as in the kernel. */
static inline bool leat_rx_has_room(const struct leat_xdp_buff *xdp)
{
	return xdp->data - leat_run_start(xdp->run) >= (ptrdiff_t)LEAT_XDP_HEADROOM;
}

/** The reason that such an error is counted under. */
static inline enum leat_drop_reason leat_rx_why(int err)
{
	return err == -EMSGSIZE ? LEAT_DROP_XDP_FRAGS : LEAT_DROP_NO_MEMORY;
}

#endif
