/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datapath.h: a whole datapath from one configuration file (leat.yaml(5)).
 *
 * The file is checked as a whole, and every mistake is reported with its line, before anything is applied.
 */
#ifndef LEAT_DATAPATH_H
#define LEAT_DATAPATH_H

#include <leat/bridge.h>
#include <leat/driver.h>
#include <leat/fib.h>
#include <leat/netdev.h>
#include <leat/xdp_prog.h>

LEAT_BEGIN_DECLS

struct leat_datapath;

struct leat_datapath_opts {
	size_t size;                /* sizeof(struct leat_datapath_opts) */
	const struct leat_log *log; /* borrowed; NULL: silent */
	uint64_t arena_size;        /* see struct leat_net_opts */
};

/**
 * Reads and checks the configuration @file and builds the datapath, all ports down: nothing of the system is touched.
 * Every mistake is added to @diag. *control*. Returns 0; -EINVAL with mistakes in @diag; the errno of opening the
 * file (in @diag, too); -ENOMEM.
 */
LEAT_API int leat_datapath_load(const char *file, const struct leat_datapath_opts *opts, struct leat_diag *diag,
				struct leat_datapath **dp);
/** The same from memory; @name stands for the file in messages. */
LEAT_API int leat_datapath_load_text(const char *text, size_t len, const char *name,
				     const struct leat_datapath_opts *opts, struct leat_diag *diag,
				     struct leat_datapath **dp);
/** Opens every port and starts the workers; on failure everything is closed again and @diag says why. *control*. */
LEAT_API int leat_datapath_start(struct leat_datapath *dp, struct leat_diag *diag);
/** Stops the workers and closes the ports; statistics stay readable. *control*. */
LEAT_API void leat_datapath_stop(struct leat_datapath *dp);
/** Frees everything. NULL allowed. *control*. */
LEAT_API void leat_datapath_destroy(struct leat_datapath *dp);

LEAT_API struct leat_net *leat_datapath_net(struct leat_datapath *dp);
/** The @idx-th program, eBPF object or bridge in the order of the file, or NULL past the end. */
LEAT_API struct leat_xdp_prog *leat_datapath_prog(struct leat_datapath *dp, unsigned int idx);
LEAT_API struct leat_bpf_object *leat_datapath_object(struct leat_datapath *dp, unsigned int idx);
LEAT_API struct leat_bridge *leat_datapath_bridge(struct leat_datapath *dp, unsigned int idx);
/** The forwarding table, or NULL without the section "fib"; it is filled by leat_datapath_start(). */
LEAT_API struct leat_fib *leat_datapath_fib(struct leat_datapath *dp);

LEAT_END_DECLS

#endif
