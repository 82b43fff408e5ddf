/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redirect.c: frames that a program sends to other ports. Worker.
 *
 * Each port has a queue of 16 frames per worker. A queue that holds frames is on its worker's flush list, which is
 * emptied before the poll ends: so a frame never waits for another poll, and a port that is taken away after a grace
 * period cannot have any.
 *
 * An entry of a DEVMAP may have a program for what leaves there: it runs when the queue is flushed, so the frames of a
 * queue all have the same one. It says PASS or DROP; any other verdict is a mistake, as in the kernel. What it drops
 * counts at the port.
 *
 * A packet for all ports of a map is cloned (leat_xdp_frame_clone()): payload is shared, and copied for who writes. The
 * last port gets the packet itself, so that one port costs no clone.
 */
#include "xdp/redirect.h"

#include <leat/xdp_prog.h>

#include "xdp/devmap.h"
#include "xdp/prog.h"
#include "xdp/ready.h"

uint32_t leat_xdp_redirect(struct leat_xdp_buff *xdp, uint32_t index)
{
	xdp->worker->redirect = (struct leat_redirect_to){ .port = index };
	return LEAT_XDP_REDIRECT;
}

/* ---- programs that run before a packet leaves ---- */

/** What the program must find. 0, or why the packet must be dropped. */
static int make_ready(struct leat_rx *rx, const struct leat_bpf_prog *prog, struct leat_xdp_buff *xdp)
{
	/* a program that writes has had room made for it where the packet came in */
	bool room = rx->chain->writes || leat_rx_has_room(xdp);
	int err = 0;

	if (leat_unlikely(xdp->frags) && !leat_bpf_prog_frags(prog))
		return leat_rx_linearize(rx, xdp);
	if (!leat_bpf_prog_writes(prog))
		return 0;
	if (leat_unlikely(!room || leat_run_is_shared(xdp->run)))
		err = leat_rx_copy_head(rx, xdp);
	return err ? err : leat_rx_own_frags(rx, xdp);
}

/** Runs the queue's program on a frame. Returns the frame as it leaves, or NULL: it was dropped and counted. */
static struct leat_xdp_frame *run_egress(struct leat_rx *rx, const struct leat_xdp_bulk_queue *queue,
					 struct leat_xdp_frame *frame)
{
	const struct leat_xdp_rxq rxq = { .port = frame->port }; /* the queue is 0, as in the kernel */
	enum leat_drop_reason reason;
	uint16_t from = frame->queue;
	struct leat_xdp_buff xdp;
	uint32_t action;
	int err;

	leat_xdp_frame_to_buff(frame, &xdp);
	xdp.rxq = &rxq;
	xdp.worker = rx->worker;
	err = make_ready(rx, queue->egress, &xdp);
	if (leat_likely(!err)) {
		action = leat_bpf_prog_run_egress(queue->egress, &xdp, rx->worker->id, queue->dev->index);
		if (action == LEAT_XDP_PASS) {
			frame = leat_xdp_buff_to_frame(&xdp);
			frame->queue = from;
			return frame;
		}
		reason = action == LEAT_XDP_DROP ? LEAT_DROP_EGRESS_DROP : LEAT_DROP_EGRESS_ABORTED;
	} else {
		reason = leat_rx_why(err);
	}
	leat_txq_drop(leat_netdev_txq(queue->dev, rx->worker), reason, 1);
	leat_xdp_return_buff(&xdp);
	return NULL;
}

static void run_egress_all(struct leat_rx *rx, struct leat_xdp_bulk_queue *queue)
{
	struct leat_xdp_bulk *bulk = &queue->bulk;
	unsigned int i, kept = 0;

	for (i = 0; i < bulk->n; i++) {
		bulk->frames[kept] = run_egress(rx, queue, bulk->frames[i]);
		kept += bulk->frames[kept] != NULL;
	}
	bulk->n = kept;
}

/* ---- the queues ---- */

static void flush_one(struct leat_rx *rx, struct leat_xdp_bulk_queue *queue)
{
	if (queue->egress)
		run_egress_all(rx, queue);
	if (queue->bulk.n)
		leat_netdev_xdp_xmit(queue->dev, rx->worker, queue->bulk.frames, queue->bulk.n);
	queue->bulk.n = 0;
}

void leat_redirect_enqueue(struct leat_rx *rx, struct leat_netdev *dev, struct leat_bpf_prog *egress,
			   struct leat_xdp_frame *frame)
{
	struct leat_xdp_bulk_queue *queue = &dev->redirect[rx->worker->id];

	if (!queue->listed) {
		queue->listed = true;
		queue->next = rx->worker->flush_list;
		rx->worker->flush_list = queue;
	}
	if (leat_unlikely(queue->egress != egress)) {
		flush_one(rx, queue);
		queue->egress = egress;
	}
	queue->bulk.frames[queue->bulk.n++] = frame;
	if (queue->bulk.n == LEAT_XDP_BULK)
		flush_one(rx, queue); /* stays on the list until the end of the poll */
}

void leat_redirect_flush(struct leat_rx *rx)
{
	while (rx->worker->flush_list) {
		struct leat_xdp_bulk_queue *queue = rx->worker->flush_list;

		rx->worker->flush_list = queue->next;
		queue->listed = false;
		flush_one(rx, queue);
		queue->egress = NULL; /* it may go before the next poll */
	}
}

/* ---- one packet for many ports ---- */

static void enqueue_clone(struct leat_rx *rx, struct leat_netdev *dev, struct leat_bpf_prog *egress,
			  const struct leat_xdp_frame *frame)
{
	struct leat_page_pool *objs = rx->worker->objs, *heads = rx->napi->pool ? rx->napi->pool : objs;
	struct leat_xdp_frame *clone = leat_xdp_frame_clone(frame, heads, objs);

	if (leat_likely(clone))
		leat_redirect_enqueue(rx, dev, egress, clone);
	else
		leat_txq_drop(leat_netdev_txq(dev, rx->worker), LEAT_DROP_NO_MEMORY, 1);
}

bool leat_redirect_to_all(struct leat_rx *rx, const struct leat_redirect_to *to, const struct leat_xdp_buff *xdp)
{
	struct leat_xdp_frame *frame = leat_xdp_buff_to_frame(xdp);
	struct leat_netdev *dev, *last = NULL;
	struct leat_bpf_prog *egress = NULL;
	struct leat_bpf_target target;
	uint32_t at = 0;

	while (leat_portmap_next(to->all, &at, &target)) {
		dev = leat_netdev_by_index(rx->worker->net, target.port);
		if (!dev || (to->not_ingress && dev == rx->napi->dev))
			continue;
		if (last)
			enqueue_clone(rx, last, egress, frame);
		last = dev;
		egress = target.prog;
	}
	if (last)
		leat_redirect_enqueue(rx, last, egress, frame);
	return last;
}
