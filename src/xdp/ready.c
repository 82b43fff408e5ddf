/* SPDX-License-Identifier: BSD-3-Clause */
/* ready.c: see ready.h. Worker. */
#include <errno.h>

#include "xdp/ready.h"

int leat_rx_linearize(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	int err = rx->napi->pool ? leat_xdp_linearize(rx->napi->pool, xdp) : -ENOMEM;

	if (!err)
		leat_count(&rx->napi->stats.linear_copies, 1);
	return err;
}

int leat_rx_copy_head(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	int err = rx->napi->pool ? leat_xdp_copy_head(rx->napi->pool, xdp) : -ENOMEM;

	if (!err)
		leat_count(&rx->napi->stats.headroom_copies, 1);
	return err;
}

int leat_rx_own_frags(struct leat_rx *rx, struct leat_xdp_buff *xdp)
{
	if (leat_likely(!xdp->frags))
		return 0;
	return rx->napi->pool ? leat_xdp_unshare_frags(rx->napi->pool, xdp) : -ENOMEM;
}
