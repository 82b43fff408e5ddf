/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.h: what a program is, for the receive path. */
#ifndef LEAT_XDP_PROG_INTERNAL_H
#define LEAT_XDP_PROG_INTERNAL_H

#include <leat/xdp_prog.h>

struct leat_xdp_prog {
	leat_xdp_fn *fn;
	void *priv;
	unsigned int flags;
	uint32_t run_prio, chain_actions;
	uint32_t id;
	uint32_t refs; /* the creator's, and one per chain; control only */
	unsigned int n_workers;
	void (*destroy_priv)(void *priv);
	char name[32];
	struct {
		uint64_t verdict[LEAT_XDP_ACTIONS]; /* that worker writes */
	} LEAT_CACHELINE_ALIGNED worker[];
};

/** The programs of one port, in the order of running. Constant once published. */
struct leat_xdp_chain {
	unsigned int n;
	bool writes; /* one of them may change the packet */
	struct leat_xdp_prog *prog[LEAT_XDP_CHAIN_MAX];
};

#endif
