/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: the receive path: a packet, the port's program, its verdict. Worker.
 *
 *	driver -> leat_rx_packet()          -+                 +-> DROP, ABORTED: returned, counted
 *	veth   -> leat_rx_frame(), _skb()   -+-> run_program() +-> PASS: skb, to the port's rx handler at the end
 *	                                                       +-> TX: bulk on the poll's stack
 *	                                                       +-> REDIRECT: bulk per port on the worker's flush list
 *
 * Program and rx handler are read once per poll, and everything gathered has left before leat_rx_end() returns.
 */
#include <leat/driver.h>

#include "netdev/worker.h"
#include "xdp/prog.h"
#include "xdp/ready.h"
#include "xdp/redirect.h"

/* ---- what leaves in bulk ---- */

static void flush_tx(struct leat_rx *rx)
{
	if (rx->tx.n)
		leat_netdev_xdp_xmit(rx->napi->dev, rx->worker, rx->tx.frames, rx->tx.n);
	rx->tx.n = 0;
}

static void flush_pass(struct leat_rx *rx)
{
	if (rx->n_pass)
		rx->rx_handler->fn(rx->rx_handler->arg, rx->worker, rx->napi->dev, rx->pass, rx->n_pass);
	rx->n_pass = 0;
}

static void pass_skb(struct leat_rx *rx, struct leat_skb *skb)
{
	leat_skb_hold(skb, rx->rx_handler->holder);
	rx->pass[rx->n_pass++] = skb;
	if (rx->n_pass == LEAT_NAPI_BUDGET)
		flush_pass(rx);
}

/* ---- verdicts; each consumes the buff ---- */

static void drop(struct leat_rx *rx, struct leat_xdp_buff *xdp, enum leat_drop_reason reason)
{
	leat_rxq_drop(rx->napi, reason, 1);
	leat_xdp_return_buff(xdp);
}

static void verdict_aborted(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	drop(rx, xdp, LEAT_DROP_XDP_ABORTED);
}

static void verdict_drop(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	drop(rx, xdp, LEAT_DROP_XDP_DROP);
}

static void verdict_pass(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	struct leat_skb *skb;

	if (!rx->rx_handler) {
		drop(rx, xdp, LEAT_DROP_NO_HANDLER);
		return;
	}
	skb = leat_skb_from_xdp_buff(rx->worker->objs, xdp);
	if (leat_unlikely(!skb))
		drop(rx, xdp, LEAT_DROP_NO_MEMORY);
	else
		pass_skb(rx, skb);
}

static void verdict_tx(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	rx->tx.frames[rx->tx.n++] = leat_xdp_buff_to_frame(xdp);
	if (rx->tx.n == LEAT_XDP_BULK)
		flush_tx(rx);
}

static void verdict_redirect(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	/* a copy: programs that run before packets leave may say theirs meanwhile */
	const struct leat_redirect_to to = rx->worker->redirect;
	struct leat_netdev *dev = leat_netdev_by_index(rx->worker->net, to.port);

	if (to.all ? !leat_redirect_to_all(rx, &to, xdp) : !dev)
		drop(rx, xdp, LEAT_DROP_XDP_REDIRECT);
	else if (!to.all)
		leat_redirect_enqueue(rx, dev, to.egress, leat_xdp_buff_to_frame(xdp));
}

static void (*const verdicts[LEAT_XDP_ACTIONS])(struct leat_rx *rx, struct leat_xdp_buff *xdp) = {
	[LEAT_XDP_ABORTED] = verdict_aborted, [LEAT_XDP_DROP] = verdict_drop,         [LEAT_XDP_PASS] = verdict_pass,
	[LEAT_XDP_TX] = verdict_tx,           [LEAT_XDP_REDIRECT] = verdict_redirect,
};

/** Runs one program and counts its verdict. */
static inline uint32_t run_one(struct leat_rx *rx, struct leat_xdp_prog *prog, struct leat_xdp_buff *xdp)
{
	uint32_t action = prog->fn(xdp, prog->priv);

	if (leat_unlikely(action >= LEAT_XDP_ACTIONS))
		action = LEAT_XDP_ABORTED;
	leat_count(&prog->worker[rx->worker->id].verdict[action], 1);
	return action;
}

/** Makes a packet of several buffers one for a program that takes no more. False: it was dropped. */
static bool make_linear(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	int err = leat_rx_linearize(rx, xdp);

	if (err)
		drop(rx, xdp, leat_rx_why(err));
	return !err;
}

static inline bool takes_frags(const struct leat_xdp_prog *prog)
{
	return prog->flags & LEAT_XDP_PROG_FRAGS;
}

static void run_program(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	struct leat_xdp_chain *chain = rx->chain;
	uint32_t action = LEAT_XDP_PASS;
	unsigned int i = 0;

	rx->worker->redirect = (struct leat_redirect_to){ .port = 0 };
	do {
		if (leat_unlikely(xdp->frags) && !takes_frags(chain->prog[i]) && !make_linear(rx, xdp))
			return;
		action = run_one(rx, chain->prog[i], xdp);
	} while (chain->prog[i]->chain_actions >> action & 1 && ++i < chain->n);
	verdicts[action](rx, xdp);
}

/**
 * A packet from another port: posted without headroom, perhaps, or with a payload that somebody else reads. @own_head:
 * the linear part must be the packet's alone.
 */
static void run_program_on_travelled(struct leat_rx *rx, struct leat_xdp_buff *xdp, bool own_head)
{
	bool writes = rx->chain->writes;

	if (leat_unlikely(xdp->frags) && !takes_frags(rx->chain->prog[0])) {
		if (make_linear(rx, xdp)) /* which gives it all that it needs */
			run_program(rx, xdp);
		return;
	}
	if ((leat_unlikely((writes && !leat_rx_has_room(xdp)) || (own_head && leat_run_is_shared(xdp->run))) &&
	     leat_rx_copy_head(rx, xdp)) || (writes && leat_rx_own_frags(rx, xdp)))
		drop(rx, xdp, LEAT_DROP_NO_MEMORY);
	else
		run_program(rx, xdp);
}

/* ---- entry ---- */

void leat_rx_begin(struct leat_rx *rx, struct leat_napi *napi)
{
	struct leat_netdev *dev = napi->dev;

	rx->napi = napi;
	rx->worker = napi->worker;
	/* pair with the stores in leat_xdp_attach_chain() and leat_netdev_set_rx_handler() */
	rx->chain = __atomic_load_n(&dev->chain, __ATOMIC_ACQUIRE);
	rx->rx_handler = __atomic_load_n(&dev->rx_handler, __ATOMIC_ACQUIRE);
	rx->headroom = rx->chain ? LEAT_XDP_HEADROOM : 0;
	rx->tailroom = rx->chain ? LEAT_XDP_TAILROOM : 0;
	rx->packets = rx->bytes = 0;
	rx->tx.n = 0;
	rx->n_pass = 0;
	LEAT_ASSERT(!rx->worker->flush_list);
}

/** Counts a packet and says whether it is one: an Ethernet header must be there, in the linear part. */
static inline bool arrived(struct leat_rx *rx, uint32_t linear, uint32_t len)
{
	rx->packets++;
	rx->bytes += len;
	return leat_likely(linear >= LEAT_ETH_HLEN);
}

static inline void own(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	xdp->rxq = &rx->napi->rxq;
	xdp->worker = rx->worker;
}

void leat_rx_packet(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	own(rx, xdp);
	if (!arrived(rx, (uint32_t)(xdp->data_end - xdp->data), leat_xdp_buff_len(xdp)))
		drop(rx, xdp, LEAT_DROP_RUNT);
	else if (rx->chain)
		run_program(rx, xdp);
	else
		verdict_pass(rx, xdp);
}

void leat_rx_frame(struct leat_rx *rx, struct leat_xdp_frame *frame)
{
	struct leat_xdp_buff xdp;

	leat_xdp_frame_to_buff(frame, &xdp);
	own(rx, &xdp);
	if (!arrived(rx, frame->len, leat_xdp_frame_len(frame)))
		drop(rx, &xdp, LEAT_DROP_RUNT);
	else if (rx->chain) /* the descriptor of its head is its own, whoever reads the bytes */
		run_program_on_travelled(rx, &xdp, rx->chain->writes);
	else
		verdict_pass(rx, &xdp);
}

void leat_rx_skb(struct leat_rx *rx, struct leat_skb *skb)
{
	struct leat_xdp_buff xdp;
	enum leat_drop_reason reason;

	if (!arrived(rx, leat_skb_headlen(skb), skb->len)) {
		reason = LEAT_DROP_RUNT;
	} else if (rx->chain) {
		if (!leat_skb_to_xdp_buff(rx->worker->objs, skb, &xdp)) {
			own(rx, &xdp);
			run_program_on_travelled(rx, &xdp, true); /* it may become a frame, which lives in its head */
			return;
		}
		reason = LEAT_DROP_NO_MEMORY;
	} else if (rx->rx_handler) {
		skb->port = (uint16_t)rx->napi->rxq.port;
		skb->queue = (uint16_t)rx->napi->rxq.queue;
		pass_skb(rx, skb);
		return;
	} else {
		reason = LEAT_DROP_NO_HANDLER;
	}
	leat_rxq_drop(rx->napi, reason, 1);
	leat_skb_free(skb);
}

void leat_rx_end(struct leat_rx *rx)
{
	struct leat_rxq_stats *stats = &rx->napi->stats;

	flush_tx(rx);
	leat_redirect_flush(rx);
	flush_pass(rx);
	LEAT_ASSERT(!rx->worker->flush_list);
	leat_count(&stats->packets, rx->packets);
	leat_count(&stats->bytes, rx->bytes);
}
