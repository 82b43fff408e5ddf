/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redirect.c: frames that a program sends to another port. Worker.
 *
 * Each port has a queue of 16 frames per worker. A queue that holds frames is on its worker's flush list, which is
 * emptied before the poll ends: so a frame never waits for another poll, and a port that is taken away after a grace
 * period cannot have any.
 */
#include "xdp/redirect.h"

#include <leat/xdp_prog.h>

uint32_t leat_xdp_redirect(struct leat_xdp_buff *xdp, uint32_t index)
{
	xdp->worker->redirect_port = index;
	return LEAT_XDP_REDIRECT;
}

static void flush_one(struct leat_worker *worker, struct leat_xdp_bulk_queue *queue)
{
	if (queue->bulk.n)
		leat_netdev_xdp_xmit(queue->dev, worker, queue->bulk.frames, queue->bulk.n);
	queue->bulk.n = 0;
}

void leat_redirect_enqueue(struct leat_worker *worker, struct leat_netdev *dev, struct leat_xdp_frame *frame)
{
	struct leat_xdp_bulk_queue *queue = &dev->redirect[worker->id];

	if (!queue->listed) {
		queue->listed = true;
		queue->next = worker->flush_list;
		worker->flush_list = queue;
	}
	queue->bulk.frames[queue->bulk.n++] = frame;
	if (queue->bulk.n == LEAT_XDP_BULK)
		flush_one(worker, queue); /* stays on the list until the end of the poll */
}

void leat_redirect_flush(struct leat_worker *worker)
{
	while (worker->flush_list) {
		struct leat_xdp_bulk_queue *queue = worker->flush_list;

		worker->flush_list = queue->next;
		queue->listed = false;
		flush_one(worker, queue);
	}
}
