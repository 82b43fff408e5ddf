/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_prog.h: programs that give a verdict on each packet of a port.
 *
 * A program is a C function or a loaded eBPF program. It may run on several workers at a time, each with its own
 * packet. It reads and writes the packet through the xdp_buff and may move its edges with leat_xdp_adjust_head() and
 * its kin.
 *
 * A port may have several programs, a chain. They run by priority, smallest first; after each one the chain goes on
 * when the verdict is one of that program's chain actions, else the verdict stands (libxdp's rules, without its limits:
 * any program may adjust the packet and be the target of a tail call).
 */
#ifndef LEAT_XDP_PROG_H
#define LEAT_XDP_PROG_H

#include <leat/bpf.h>
#include <leat/netdev.h>
#include <leat/param.h>

LEAT_BEGIN_DECLS

struct leat_xdp_prog;

/** Returns an enum leat_xdp_action; anything else counts as ABORTED. @priv is the program's own memory. *worker*. */
typedef uint32_t leat_xdp_fn(struct leat_xdp_buff *xdp, void *priv);

#define LEAT_XDP_PRIO_DEFAULT 50u
/** Programs of one chain (libxdp's limit). */
#define LEAT_XDP_CHAIN_MAX 10u

#define LEAT_XDP_PROG_FRAGS 0x1u /* takes multi-buffer packets; others get them only if linear */
#define LEAT_XDP_PROG_READ_ONLY 0x2u /* changes neither bytes nor edges: needs no payload of its own, no headroom */

struct leat_xdp_prog_opts {
	size_t size;        /* sizeof(struct leat_xdp_prog_opts) */
	const char *name;   /* copied, 31 bytes are kept */
	leat_xdp_fn *fn;
	void *priv;         /* **borrows** until destroy_priv */
	void (*destroy_priv)(void *priv); /* called when the program is freed; NULL: nothing */
	unsigned int flags; /* LEAT_XDP_PROG_* */
	uint32_t run_prio;      /* place in a chain; 0: LEAT_XDP_PRIO_DEFAULT */
	uint32_t chain_actions; /* bit per action after which a chain goes on; 0: PASS only */
};

/** Verdicts counted per worker, summed on read. */
struct leat_xdp_prog_stats {
	uint64_t runs;
	uint64_t verdict[LEAT_XDP_ACTIONS];
};

/** Makes a program of a C function. *control*. Returns 0, -EINVAL, -E2BIG, -ENOMEM. */
LEAT_API int leat_xdp_prog_create(struct leat_net *net, const struct leat_xdp_prog_opts *opts,
				  struct leat_xdp_prog **prog);
/**
 * Makes a program of a loaded eBPF program (**borrows**; its object must outlive every attachment), with its own run
 * priority and chain actions unless @opts says otherwise; @opts may be NULL, and fn, priv and destroy_priv are ignored.
 * The object's environment must have as many CPUs as @net has workers. *control*. Returns as above; -EINVAL also when it
 * is for packets that leave by an entry of a DEVMAP (leat_bpf_prog_egress()).
 */
LEAT_API int leat_xdp_prog_create_bpf(struct leat_net *net, struct leat_bpf_prog *bpf,
				      const struct leat_xdp_prog_opts *opts, struct leat_xdp_prog **prog);
/**
 * Makes an environment whose CPUs and grace periods are those of @net's workers, and whose ports are @net's: maps of ports
 * take no others. Its objects are closed, and it is destroyed, before @net is. *control*.
 */
LEAT_API int leat_xdp_bpf_env_create(struct leat_net *net, const struct leat_bpf_env_opts *opts,
				     struct leat_bpf_env **env);
/**
 * Adds what knows ports to what eBPF objects may use: the redirect helpers, DEVMAP and its kin. Called before
 * leat_bpf_object_load(); a second call changes nothing. *control*.
 */
LEAT_API void leat_xdp_bpf_init(void);
/** Drops the creator's reference; the program goes when it is attached nowhere. NULL allowed. *control*. */
LEAT_API void leat_xdp_prog_put(struct leat_xdp_prog *prog);
LEAT_API const char *leat_xdp_prog_name(const struct leat_xdp_prog *prog);
LEAT_API uint32_t leat_xdp_prog_id(const struct leat_xdp_prog *prog);
LEAT_API void leat_xdp_prog_stats(const struct leat_xdp_prog *prog, struct leat_xdp_prog_stats *stats);

/**
 * Attaches @prog to every receive queue of @dev in place of what was there (NULL: detaches), under traffic. On return
 * no worker runs what was there for this port. *control*. Returns 0 or -ENOMEM.
 */
LEAT_API int leat_xdp_attach(struct leat_netdev *dev, struct leat_xdp_prog *prog);
/** The same for @n programs (0..LEAT_XDP_CHAIN_MAX), which run by priority; equals in the order given. Or -EINVAL. */
LEAT_API int leat_xdp_attach_chain(struct leat_netdev *dev, struct leat_xdp_prog *const *progs, unsigned int n);

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
