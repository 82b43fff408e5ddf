/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog.c: life of programs and their attachment to ports. Control thread.
 *
 * A port holds a reference. Replacing a program publishes the new pointer, waits a grace period, and puts the old one:
 * a poll reads the pointer once, so no packet sees half of a change.
 */
#include "xdp/prog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/opts.h"
#include "netdev/worker.h"

int leat_xdp_prog_create(struct leat_net *net, const struct leat_xdp_prog_opts *opts, struct leat_xdp_prog **out)
{
	struct leat_xdp_prog_opts own;
	struct leat_xdp_prog *prog;
	unsigned int n = leat_net_workers(net);
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (!own.fn)
		return -EINVAL;
	prog = leat_heap_zalloc(sizeof(*prog) + n * sizeof(prog->worker[0]));
	if (!prog)
		return -ENOMEM;
	prog->fn = own.fn;
	prog->priv = own.priv;
	prog->flags = own.flags;
	prog->destroy_priv = own.destroy_priv;
	prog->id = ++net->next_prog_id;
	prog->refs = 1;
	prog->n_workers = n;
	snprintf(prog->name, sizeof(prog->name), "%s", own.name ? own.name : "prog");
	*out = prog;
	return 0;
}

void leat_xdp_prog_put(struct leat_xdp_prog *prog)
{
	if (!prog || --prog->refs)
		return;
	if (prog->destroy_priv)
		prog->destroy_priv(prog->priv);
	leat_heap_free(prog);
}

const char *leat_xdp_prog_name(const struct leat_xdp_prog *prog)
{
	return prog->name;
}

uint32_t leat_xdp_prog_id(const struct leat_xdp_prog *prog)
{
	return prog->id;
}

void leat_xdp_prog_stats(const struct leat_xdp_prog *prog, struct leat_xdp_prog_stats *stats)
{
	unsigned int i, v;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < prog->n_workers; i++) {
		stats->runs += __atomic_load_n(&prog->worker[i].stats.runs, __ATOMIC_RELAXED);
		for (v = 0; v < LEAT_XDP_ACTIONS; v++)
			stats->verdict[v] += __atomic_load_n(&prog->worker[i].stats.verdict[v], __ATOMIC_RELAXED);
	}
}

int leat_xdp_attach(struct leat_netdev *dev, struct leat_xdp_prog *prog)
{
	struct leat_xdp_prog *old = dev->prog;

	if (prog)
		prog->refs++;
	dev->prog_put = leat_xdp_prog_put;
	__atomic_store_n(&dev->prog, prog, __ATOMIC_SEQ_CST); /* pairs with leat_rx_begin() */
	leat_net_synchronize(dev->net);
	leat_xdp_prog_put(old);
	return 0;
}
