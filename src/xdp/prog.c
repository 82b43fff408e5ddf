/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog.c: life of programs and their attachment to ports. Control thread.
 *
 * A port's chain holds references. Replacing a chain publishes the new pointer, waits a grace period, and puts the old
 * one: a poll reads the pointer once, so no packet sees half of a change.
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
	prog->run_prio = own.run_prio ? own.run_prio : LEAT_XDP_PRIO_DEFAULT;
	prog->chain_actions = own.chain_actions ? own.chain_actions : 1u << LEAT_XDP_PASS;
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
	for (i = 0; i < prog->n_workers; i++)
		for (v = 0; v < LEAT_XDP_ACTIONS; v++)
			stats->verdict[v] += __atomic_load_n(&prog->worker[i].verdict[v], __ATOMIC_RELAXED);
	for (v = 0; v < LEAT_XDP_ACTIONS; v++)
		stats->runs += stats->verdict[v];
}

/* ---- chains ---- */

static void chain_free(struct leat_xdp_chain *chain)
{
	while (chain && chain->n)
		leat_xdp_prog_put(chain->prog[--chain->n]);
	leat_heap_free(chain);
}

/** Adds a program behind those of its priority or smaller. */
static void chain_add(struct leat_xdp_chain *chain, struct leat_xdp_prog *prog)
{
	unsigned int i = chain->n++;

	for (; i && chain->prog[i - 1]->run_prio > prog->run_prio; i--)
		chain->prog[i] = chain->prog[i - 1];
	chain->prog[i] = prog;
	chain->writes |= !(prog->flags & LEAT_XDP_PROG_READ_ONLY);
	prog->refs++;
}

int leat_xdp_attach_chain(struct leat_netdev *dev, struct leat_xdp_prog *const *progs, unsigned int n)
{
	struct leat_xdp_chain *old = dev->chain, *chain = NULL;
	unsigned int i;

	if (n > LEAT_XDP_CHAIN_MAX)
		return -EINVAL;
	if (n) {
		chain = leat_heap_zalloc(sizeof(*chain));
		if (!chain)
			return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		chain_add(chain, progs[i]);
	dev->chain_free = chain_free;
	__atomic_store_n(&dev->chain, chain, __ATOMIC_SEQ_CST); /* pairs with leat_rx_begin() */
	leat_net_synchronize(dev->net);
	chain_free(old);
	return 0;
}

int leat_xdp_attach(struct leat_netdev *dev, struct leat_xdp_prog *prog)
{
	return leat_xdp_attach_chain(dev, &prog, prog ? 1 : 0);
}
