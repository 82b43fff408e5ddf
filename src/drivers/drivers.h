/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers.h: the kinds of port, one object per driver file, and what several of them share. The table in drivers.c
 * lists them.
 */
#ifndef LEAT_DRIVERS_DRIVERS_H
#define LEAT_DRIVERS_DRIVERS_H

#include <leat/driver.h>

extern const struct leat_driver leat_veth_driver;
extern const struct leat_driver leat_tap_driver;
extern const struct leat_driver leat_pcap_in_driver;  /* only with libpcap: LEAT_HAVE_PCAP */
extern const struct leat_driver leat_pcap_out_driver; /* only with libpcap: LEAT_HAVE_PCAP */
extern const struct leat_driver leat_pktgen_driver;
extern const struct leat_driver leat_sink_driver;

/** leat_netdev_create() that says in @diag why it failed. *control*. */
int leat_driver_netdev_create(struct leat_net *net, const char *driver, const char *name,
			      const struct leat_netdev_ops *ops, unsigned int n_rxq, unsigned int n_txq,
			      size_t priv_size, struct leat_diag *diag, struct leat_netdev **dev);

/** leat_napi_pool_create() at its default size that says in @diag why it failed. *control*. */
int leat_driver_pool_create(struct leat_napi *napi, struct leat_diag *diag);

/* Transmit functions that take everything and give its memory back: sink.c. Any port may come to use them. */
int leat_sink_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n);
int leat_sink_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n);

#endif
