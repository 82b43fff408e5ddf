/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers.c: the table of port drivers, and what their create and open functions share. A new kind of port is one
 * file and one row here. The table is constant, read by any thread; the rest runs on the control thread.
 */
#include "base/memory_why.h"
#include "drivers/drivers.h"

#include <string.h>

static const struct leat_driver *const drivers[] = {
	&leat_veth_driver,
	&leat_tap_driver,
#ifdef LEAT_HAVE_PCAP
	&leat_pcap_in_driver,
	&leat_pcap_out_driver,
#endif
	&leat_pktgen_driver,
	&leat_sink_driver,
};

#define N_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

const struct leat_driver *leat_driver_get(unsigned int idx)
{
	return idx < N_DRIVERS ? drivers[idx] : NULL;
}

const struct leat_driver *leat_driver_find(const char *type)
{
	unsigned int i;

	for (i = 0; i < N_DRIVERS; i++)
		if (!strcmp(drivers[i]->type, type))
			return drivers[i];
	return NULL;
}

int leat_driver_netdev_create(struct leat_net *net, const char *driver, const char *name,
			      const struct leat_netdev_ops *ops, unsigned int n_rxq, unsigned int n_txq,
			      size_t priv_size, struct leat_diag *diag, struct leat_netdev **dev)
{
	int err = leat_netdev_create(net, driver, name, ops, n_rxq, n_txq, priv_size, dev);

	if (err)
		leat_diag_add(diag, "cannot make port '%s': %s", name, strerror(-err));
	return err;
}

int leat_driver_pool_create(struct leat_napi *napi, struct leat_diag *diag)
{
	int err = leat_napi_pool_create(napi, 0);

	if (err)
		leat_diag_add(diag, "cannot make the receive memory of port '%s': %s", napi->dev->name,
			      leat_memory_why(err));
	return err;
}
