/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_prog.h: programs that give a verdict on each packet of a port.
 *
 * A program is a C function here; eBPF objects become the same object. It may run on several workers at a time, each
 * with its own packet. It reads and writes the packet through the xdp_buff and may move its edges with
 * leat_xdp_adjust_head() and its kin.
 */
#ifndef LEAT_XDP_PROG_H
#define LEAT_XDP_PROG_H

#include <leat/netdev.h>
#include <leat/param.h>

LEAT_BEGIN_DECLS

struct leat_xdp_prog;

/** Returns an enum leat_xdp_action; anything else counts as ABORTED. @priv is the program's own memory. *worker*. */
typedef uint32_t leat_xdp_fn(struct leat_xdp_buff *xdp, void *priv);

#define LEAT_XDP_PROG_FRAGS 0x1u /* takes multi-buffer packets; others get them only if linear */

struct leat_xdp_prog_opts {
	size_t size;        /* sizeof(struct leat_xdp_prog_opts) */
	const char *name;   /* copied, 31 bytes are kept */
	leat_xdp_fn *fn;
	void *priv;         /* **borrows** until destroy_priv */
	void (*destroy_priv)(void *priv); /* called when the program is freed; NULL: nothing */
	unsigned int flags; /* LEAT_XDP_PROG_FRAGS */
};

/** Verdicts counted per worker, summed on read. */
struct leat_xdp_prog_stats {
	uint64_t runs;
	uint64_t verdict[LEAT_XDP_ACTIONS];
};

/** Makes a program of a C function. *control*. Returns 0, -EINVAL, -E2BIG, -ENOMEM. */
LEAT_API int leat_xdp_prog_create(struct leat_net *net, const struct leat_xdp_prog_opts *opts,
				  struct leat_xdp_prog **prog);
/** Drops the creator's reference; the program goes when it is attached nowhere. NULL allowed. *control*. */
LEAT_API void leat_xdp_prog_put(struct leat_xdp_prog *prog);
LEAT_API const char *leat_xdp_prog_name(const struct leat_xdp_prog *prog);
LEAT_API uint32_t leat_xdp_prog_id(const struct leat_xdp_prog *prog);
LEAT_API void leat_xdp_prog_stats(const struct leat_xdp_prog *prog, struct leat_xdp_prog_stats *stats);

/**
 * Attaches @prog to every receive queue of @dev in place of what was there (NULL: detaches), under traffic. On return
 * no worker runs the old one for this port. *control*. Returns 0.
 */
LEAT_API int leat_xdp_attach(struct leat_netdev *dev, struct leat_xdp_prog *prog);

/**
 * Says where the packet goes when the program returns LEAT_XDP_REDIRECT: port number @index of the same datapath.
 * Returns LEAT_XDP_REDIRECT. *worker*, from a program.
 */
LEAT_API uint32_t leat_xdp_redirect(struct leat_xdp_buff *xdp, uint32_t index);

/* ---- programs that come compiled in ---- */

/** One built-in: `builtin: NAME` in a configuration. */
struct leat_xdp_builtin {
	const char *name;
	const char *help;               /* one line */
	const struct leat_param *params; /* keys beside `builtin`; NULL: none */
	size_t priv_size;               /* of the struct that params fill */
	/** Looks up what the filled struct names (a port); adds to @diag. NULL: nothing to resolve. */
	int (*resolve)(struct leat_net *net, void *priv, struct leat_diag *diag);
	leat_xdp_fn *fn;
};

/** The built-in with that name, or NULL. */
LEAT_API const struct leat_xdp_builtin *leat_xdp_builtin_find(const char *name);
/** The @idx-th built-in, or NULL past the end. */
LEAT_API const struct leat_xdp_builtin *leat_xdp_builtin_get(unsigned int idx);

LEAT_END_DECLS

#endif
