/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h: how a port is written: the table of drivers, and the receive path that a driver's poll calls.
 *
 * A driver's poll brackets its packets:
 *
 *	leat_rx_begin(&rx, napi);
 *	while (there is a packet and n < budget)
 *		leat_rx_packet(&rx, &xdp);     the program runs, the verdict is carried out
 *	leat_rx_end(&rx);                      everything gathered leaves: XDP_TX, redirects, passed packets
 *
 * The gathered packets are on the poll's stack or on the worker's flush list, which leat_rx_end() leaves empty: a
 * packet can never leave through a port that another poll meant.
 */
#ifndef LEAT_DRIVER_H
#define LEAT_DRIVER_H

#include <leat/netdev.h>
#include <leat/param.h>

LEAT_BEGIN_DECLS

/** One receive batch, on the poll's stack. Opaque to drivers but for @headroom. */
struct leat_rx {
	struct leat_napi *napi;
	struct leat_worker *worker;
	struct leat_xdp_chain *chain;              /* read once per poll */
	const struct leat_rx_handler *rx_handler;  /* read once per poll */
	uint32_t headroom;   /* bytes a received packet should have before it: LEAT_XDP_HEADROOM with a program, else 0 */
	uint32_t tailroom;   /* and after it: LEAT_XDP_TAILROOM with a program, else 0 */
	uint64_t packets, bytes;
	struct leat_xdp_bulk tx;
	unsigned int n_pass;
	struct leat_skb *pass[LEAT_NAPI_BUDGET];
};

LEAT_API void leat_rx_begin(struct leat_rx *rx, struct leat_napi *napi);
/** Hands on one packet (**consumes** @xdp's references). Checks it, runs the program, carries the verdict out. */
LEAT_API void leat_rx_packet(struct leat_rx *rx, struct leat_xdp_buff *xdp);
/** The same for a packet that is a frame or an skb already (veth). */
LEAT_API void leat_rx_frame(struct leat_rx *rx, struct leat_xdp_frame *frame);
LEAT_API void leat_rx_skb(struct leat_rx *rx, struct leat_skb *skb);
/** Sends everything that was gathered and adds up the counters. */
LEAT_API void leat_rx_end(struct leat_rx *rx);

/** One kind of port: a row of the table in src/drivers/drivers.c. */
struct leat_driver {
	const char *type;                /* `type: tap` */
	const char *help;                /* one line */
	const struct leat_param *params; /* keys beside `type` */
	size_t opts_size;                /* of the struct that params fill */
	/** Makes the port, down, from the filled options (**borrows** @opts). Adds to @diag on failure. *control* */
	int (*create)(struct leat_net *net, const char *name, const void *opts, struct leat_diag *diag,
		      struct leat_netdev **dev);
};

/** The driver with that type, or NULL. */
LEAT_API const struct leat_driver *leat_driver_find(const char *type);
/** The @idx-th driver, or NULL past the end. */
LEAT_API const struct leat_driver *leat_driver_get(unsigned int idx);

LEAT_END_DECLS

#endif
