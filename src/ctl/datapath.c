/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datapath.c: a configuration made into a datapath. Control thread.
 *
 * Making goes in the order in which things need each other: net, forwarding table, ports, links between ports, eBPF
 * objects (opened, tuned, loaded, filled), programs, attachments, bridges. The table is filled when ports are open, for
 * then the interfaces that ports have made are there, and before a worker runs. Everything is tried for which there is
 * what it needs, so that one run tells all mistakes; nobody is blamed for what somebody else lacks. Destruction is the
 * reverse. The options and the programs' memory belong to the configuration, which is freed last.
 */
#include <leat/datapath.h>

#include "base/diag_sort.h"
#include "base/heap.h"
#include "base/memory_why.h"
#include "base/opts.h"
#include "ctl/config.h"
#include "ctl/datapath.h"
#include "ctl/fib.h"
#include "ctl/objects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct leat_datapath {
	struct leat_config *config;
	struct leat_net *net;
	struct leat_bpf_env *env; /* NULL without objects */
	struct leat_fib *fib;     /* NULL without the section */
	struct leat_fib_mirror *mirror; /* NULL while it does not run */
	/* in the order of the configuration; NULL where not made */
	struct leat_netdev **ports;
	struct leat_bpf_object **objects;
	struct leat_xdp_prog **progs;
	struct leat_bridge **bridges;
};

/* ---- mistakes ---- */

/* One thing that is tried: where it stands, and what was known before. */
struct attempt {
	struct leat_diag *diag;
	unsigned int before;
};

static struct attempt try_at(const struct leat_datapath *dp, struct leat_diag *diag, struct leat_yaml_pos pos,
			     const char *section, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s.%s", section, name);
	leat_diag_at(diag, dp->config->file, pos.line, pos.column, path);
	return (struct attempt){ diag, leat_diag_count(diag) };
}

/* Sees to it that a failure has been said. Returns @rc. */
static int tried(const struct attempt *attempt, int rc, const char *what)
{
	if (rc && leat_diag_count(attempt->diag) == attempt->before)
		leat_diag_add(attempt->diag, "%s: %s", what, leat_memory_why(rc));
	return rc;
}

/* The error of a step: the first, but missing memory goes before all. */
static int worse(int rc, int more)
{
	return !rc || more == -ENOMEM ? (more ? more : rc) : rc;
}

/* ---- making ---- */

static int create_net(struct leat_datapath *dp, const struct leat_datapath_opts *opts, struct leat_diag *diag)
{
	struct leat_net_opts net_opts = {
		.size = sizeof(net_opts),
		.workers = dp->config->workers,
		.log = opts->log,
		.arena_size = opts->arena_size,
	};
	struct attempt attempt = { diag, leat_diag_count(diag) };

	leat_diag_at(diag, dp->config->file, 0, 0, NULL);
	return tried(&attempt, leat_net_create(&net_opts, &dp->net), "the datapath cannot be made");
}

static int create_fib(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_fib_opts opts = { .size = sizeof(opts), .net = dp->net };
	struct attempt attempt = { diag, leat_diag_count(diag) };

	(void)i;
	leat_diag_at(diag, dp->config->file, dp->config->fib.pos.line, dp->config->fib.pos.column, "fib");
	return tried(&attempt, leat_fib_create(&opts, &dp->fib), "the forwarding table cannot be made");
}

static int create_port(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_port *port = &dp->config->ports[i];
	struct attempt attempt = try_at(dp, diag, port->pos, "ports", port->name);

	return tried(&attempt, port->driver->create(dp->net, port->name, port->opts, diag, &dp->ports[i]),
		     "cannot be made");
}

/* Whether every port that the options name was made. */
static bool has_named_ports(const struct leat_datapath *dp, const struct leat_param *table, const void *opts)
{
	const char *name;

	for (; table && table->name; table++) {
		if (!(table->flags & LEAT_PARAM_PORT))
			continue;
		name = *(char *const *)((const uint8_t *)opts + table->offset);
		if (name && !leat_netdev_find(dp->net, name))
			return false;
	}
	return true;
}

static int link_port(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_port *port = &dp->config->ports[i];
	struct leat_netdev *dev = dp->ports[i];
	struct attempt attempt;

	if (!dev || !dev->ops->link || !has_named_ports(dp, port->driver->params, port->opts))
		return 0;
	attempt = try_at(dp, diag, port->pos, "ports", port->name);
	return tried(&attempt, dev->ops->link(dev, diag), "cannot be linked");
}

static int open_object(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_object *object = &dp->config->objects[i];
	struct attempt attempt = try_at(dp, diag, object->pos, "programs", object->prog);
	const struct leat_bpf_env_opts opts = {
		.size = sizeof(opts),
		.engine = dp->config->bpf_engine,
		.kernel_verifier = dp->config->kernel_verifier,
		.perf_map = dp->config->perf_map,
	};
	int rc = 0;

	if (!dp->env) {
		rc = leat_xdp_bpf_env_create(dp->net, &opts, &dp->env);
		if (!rc)
			leat_fib_attach(dp->fib, dp->env);
	}
	if (!rc)
		rc = leat_objects_open(dp->config, i, dp->env, diag, &dp->objects[i]);
	return tried(&attempt, rc, "the object cannot be opened");
}

static int tune_object(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_prog *prog = &dp->config->progs[i];
	struct leat_bpf_object *obj = prog->builtin ? NULL : dp->objects[prog->object];
	int rc;

	if (!obj)
		return 0;
	rc = leat_objects_prog(dp->config, prog, obj, diag) ? 0 : -EINVAL;
	return worse(rc, leat_objects_tune(dp->config, prog, obj, diag));
}

static int load_object(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	struct attempt attempt = { diag, leat_diag_count(diag) };

	return tried(&attempt, leat_objects_load(dp->config, i, dp->objects[i], diag), "the object cannot be loaded");
}

static int fill_object(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_prog *prog = &dp->config->progs[i];

	return prog->builtin ? 0 : leat_objects_fill(dp->config, prog, dp->objects[prog->object], diag);
}

static int resolve_builtin(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_prog *prog = &dp->config->progs[i];
	struct attempt attempt;

	if (!prog->builtin || !prog->builtin->resolve || !has_named_ports(dp, prog->builtin->params, prog->priv))
		return 0;
	attempt = try_at(dp, diag, prog->pos, "programs", prog->name);
	return tried(&attempt, prog->builtin->resolve(dp->net, prog->priv, diag), "cannot be made");
}

static int create_prog(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_prog *prog = &dp->config->progs[i];
	struct leat_xdp_prog_opts opts = {
		.size = sizeof(opts),
		.name = prog->name,
		.run_prio = prog->run_prio,
		.chain_actions = prog->chain_actions,
	};
	struct attempt attempt = try_at(dp, diag, prog->pos, "programs", prog->name);
	struct leat_bpf_prog *bpf;
	int rc;

	if (prog->builtin) {
		opts.fn = prog->builtin->fn;
		opts.priv = prog->priv;
		rc = leat_xdp_prog_create(dp->net, &opts, &dp->progs[i]);
	} else {
		bpf = leat_objects_prog(dp->config, prog, dp->objects[prog->object], diag);
		rc = bpf ? leat_xdp_prog_create_bpf(dp->net, bpf, &opts, &dp->progs[i]) : -EINVAL;
	}
	return tried(&attempt, rc, "cannot be made");
}

static int attach_progs(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_attach *attach = &dp->config->attach[i];
	struct attempt attempt = try_at(dp, diag, attach->pos, "attach", dp->config->ports[attach->port].name);
	struct leat_xdp_prog *progs[LEAT_XDP_CHAIN_MAX];
	unsigned int n;

	for (n = 0; n < attach->n_progs; n++)
		progs[n] = dp->progs[attach->prog[n]];
	return tried(&attempt, leat_xdp_attach_chain(dp->ports[attach->port], progs, n),
		     "the programs cannot be attached");
}

static int create_bridge(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_bridge *bridge = &dp->config->bridges[i];
	struct leat_bridge_opts opts = {
		.size = sizeof(opts),
		.name = bridge->name,
		.ageing_ns = bridge->ageing_ns,
		.entries = bridge->entries,
	};
	struct attempt attempt = try_at(dp, diag, bridge->pos, "bridges", bridge->name);
	int rc = leat_bridge_create(dp->net, &opts, &dp->bridges[i]);
	unsigned int port;

	for (port = 0; !rc && port < bridge->n_ports; port++)
		rc = leat_bridge_add_port(dp->bridges[i], dp->ports[bridge->ports[port]]);
	return tried(&attempt, rc, "cannot be made");
}

typedef int step_fn(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag);

static int each(struct leat_datapath *dp, unsigned int n, step_fn *step, struct leat_diag *diag)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < n && rc != -ENOMEM; i++)
		rc = worse(rc, step(dp, i, diag));
	return rc;
}

static int make_room(struct leat_datapath *dp)
{
	const struct leat_config *config = dp->config;

	dp->ports = leat_heap_zalloc(config->n_ports * sizeof(struct leat_netdev *));
	dp->objects = leat_heap_zalloc(config->n_objects * sizeof(struct leat_bpf_object *));
	dp->progs = leat_heap_zalloc(config->n_progs * sizeof(struct leat_xdp_prog *));
	dp->bridges = leat_heap_zalloc(config->n_bridges * sizeof(struct leat_bridge *));
	return dp->ports && dp->objects && dp->progs && dp->bridges ? 0 : -ENOMEM;
}

/* What a step needs of those before it. */
enum need {
	NEEDS_NOTHING, /* it leaves out by itself what it cannot judge */
	NEEDS_OBJECTS, /* no mistake in a step about objects */
	NEEDS_ALL,     /* no mistake at all */
};

static int make_all(struct leat_datapath *dp, const struct leat_datapath_opts *opts, struct leat_diag *diag)
{
	const struct leat_config *config = dp->config;
	const struct {
		enum need need;
		bool objects; /* it is about objects */
		unsigned int n;
		step_fn *fn;
	} steps[] = {
		{ NEEDS_NOTHING, false, config->fib.given, create_fib },
		{ NEEDS_NOTHING, false, config->n_ports, create_port },
		{ NEEDS_NOTHING, false, config->n_ports, link_port },
		{ NEEDS_NOTHING, false, config->n_progs, resolve_builtin },
		{ NEEDS_NOTHING, true, config->n_objects, open_object },
		{ NEEDS_NOTHING, true, config->n_progs, tune_object },
		{ NEEDS_OBJECTS, true, config->n_objects, load_object },
		{ NEEDS_ALL, true, config->n_progs, fill_object },
		{ NEEDS_ALL, false, config->n_progs, create_prog },
		{ NEEDS_ALL, false, config->n_attach, attach_progs },
		{ NEEDS_ALL, false, config->n_bridges, create_bridge },
	};
	int err, rc = make_room(dp), objects = 0;
	size_t i;

	if (!rc)
		rc = create_net(dp, opts, diag);
	if (rc)
		return rc;
	for (i = 0; rc != -ENOMEM && i < sizeof(steps) / sizeof(steps[0]); i++) {
		if ((steps[i].need == NEEDS_OBJECTS && objects) || (steps[i].need == NEEDS_ALL && rc))
			continue;
		err = each(dp, steps[i].n, steps[i].fn, diag);
		rc = worse(rc, err);
		if (steps[i].objects)
			objects = worse(objects, err);
	}
	return rc;
}

/* ---- loading ---- */

/* Takes over @config. */
static int load_config(struct leat_config *config, const struct leat_datapath_opts *opts, struct leat_diag *diag,
		       struct leat_datapath **dp)
{
	struct leat_datapath *made = leat_heap_zalloc(sizeof(*made));
	unsigned int before = leat_diag_count(diag);
	int rc;

	if (!made) {
		leat_config_free(config);
		return -ENOMEM;
	}
	made->config = config;
	rc = make_all(made, opts, diag);
	if (rc) {
		leat_diag_sort(diag, before);
		leat_datapath_destroy(made);
		return rc == -ENOMEM ? rc : -EINVAL;
	}
	*dp = made;
	return 0;
}

static int load_text(const char *text, size_t len, const char *name, const struct leat_datapath_opts *opts,
		     struct leat_diag *diag, struct leat_datapath **dp)
{
	struct leat_datapath_opts own;
	struct leat_config *config;
	int rc = leat_opts_copy(&own, sizeof(own), opts);

	if (!rc)
		rc = leat_config_parse(text, len, name, diag, &config);
	return rc ? rc : load_config(config, &own, diag, dp);
}

static int load_file(const char *file, const struct leat_datapath_opts *opts, struct leat_diag *diag,
		     struct leat_datapath **dp)
{
	char *text;
	size_t len;
	int rc = leat_yaml_read_file(file, diag, &text, &len);

	if (rc)
		return rc;
	rc = load_text(text, len, file, opts, diag, dp);
	leat_heap_free(text);
	return rc;
}

int leat_datapath_load(const char *file, const struct leat_datapath_opts *opts, struct leat_diag *diag,
		       struct leat_datapath **dp)
{
	struct leat_diag *own = diag ? diag : leat_diag_create();
	int rc = own ? load_file(file, opts, own, dp) : -ENOMEM;

	if (!diag)
		leat_diag_destroy(own);
	return rc;
}

int leat_datapath_load_text(const char *text, size_t len, const char *name, const struct leat_datapath_opts *opts,
			    struct leat_diag *diag, struct leat_datapath **dp)
{
	struct leat_diag *own = diag ? diag : leat_diag_create();
	int rc = own ? load_text(text, len, name, opts, own, dp) : -ENOMEM;

	if (!diag)
		leat_diag_destroy(own);
	return rc;
}

/* ---- running ---- */

static void close_ports(struct leat_datapath *dp)
{
	unsigned int i = dp->config->n_ports;

	while (i-- > 0)
		if (__atomic_load_n(&dp->ports[i]->state, __ATOMIC_RELAXED) & LEAT_NETDEV_UP)
			leat_netdev_close(dp->ports[i]);
}

/* A start has failed: no port is to leave traces of a run. */
static void abandon_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	__atomic_fetch_or(&dev->state, LEAT_NETDEV_ABANDONED, __ATOMIC_RELAXED);
}

static int open_port(struct leat_datapath *dp, unsigned int i, struct leat_diag *diag)
{
	const struct leat_config_port *port = &dp->config->ports[i];
	struct attempt attempt = try_at(dp, diag, port->pos, "ports", port->name);

	return tried(&attempt, leat_netdev_open(dp->ports[i], diag), "cannot be opened");
}

static int start_fib(struct leat_datapath *dp, struct leat_diag *diag)
{
	if (!dp->fib)
		return 0;
	if (dp->config->fib.mirror)
		return leat_fib_start_mirror(dp->config, leat_net_log(dp->net), dp->fib, diag, &dp->mirror);
	return leat_fib_fill(dp->config, dp->net, dp->fib, diag);
}

static void stop_mirror(struct leat_datapath *dp)
{
	leat_fib_mirror_stop(dp->mirror);
	dp->mirror = NULL;
}

static int start(struct leat_datapath *dp, struct leat_diag *diag)
{
	int rc = each(dp, dp->config->n_ports, open_port, diag);
	struct attempt attempt;

	if (!rc)
		rc = start_fib(dp, diag);
	if (rc)
		return rc;
	leat_diag_at(diag, dp->config->file, 0, 0, NULL);
	attempt = (struct attempt){ diag, leat_diag_count(diag) };
	return tried(&attempt, leat_net_start(dp->net), "the workers cannot be started");
}

int leat_datapath_start(struct leat_datapath *dp, struct leat_diag *diag)
{
	unsigned int before = leat_diag_count(diag);
	int rc = start(dp, diag);

	if (!rc)
		return 0;
	leat_diag_sort(diag, before);
	stop_mirror(dp);
	leat_net_for_each_port(dp->net, abandon_port, NULL);
	close_ports(dp);
	return rc;
}

void leat_datapath_stop(struct leat_datapath *dp)
{
	stop_mirror(dp);
	leat_net_stop(dp->net);
	close_ports(dp);
}

static void detach(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_xdp_attach(dev, NULL);
}

void leat_datapath_destroy(struct leat_datapath *dp)
{
	unsigned int i;

	if (!dp)
		return;
	stop_mirror(dp);
	if (dp->net)
		leat_net_stop(dp->net);
	for (i = dp->bridges ? dp->config->n_bridges : 0; i-- > 0;)
		leat_bridge_destroy(dp->bridges[i]);
	if (dp->net)
		leat_net_for_each_port(dp->net, detach, NULL);
	for (i = dp->progs ? dp->config->n_progs : 0; i-- > 0;)
		leat_xdp_prog_put(dp->progs[i]);
	for (i = dp->objects ? dp->config->n_objects : 0; i-- > 0;)
		leat_bpf_object_close(dp->objects[i]);
	leat_bpf_env_destroy(dp->env); /* its grace periods are the net's, */
	leat_fib_destroy(dp->fib);     /* and so are these */
	if (dp->net)
		leat_net_destroy(dp->net);
	leat_heap_free(dp->bridges);
	leat_heap_free(dp->progs);
	leat_heap_free(dp->objects);
	leat_heap_free(dp->ports);
	leat_config_free(dp->config);
	leat_heap_free(dp);
}

struct leat_net *leat_datapath_net(struct leat_datapath *dp)
{
	return dp->net;
}

struct leat_xdp_prog *leat_datapath_prog(struct leat_datapath *dp, unsigned int idx)
{
	return idx < dp->config->n_progs ? dp->progs[idx] : NULL;
}

struct leat_bpf_object *leat_datapath_object(struct leat_datapath *dp, unsigned int idx)
{
	return idx < dp->config->n_objects ? dp->objects[idx] : NULL;
}

struct leat_bridge *leat_datapath_bridge(struct leat_datapath *dp, unsigned int idx)
{
	return idx < dp->config->n_bridges ? dp->bridges[idx] : NULL;
}

struct leat_fib *leat_datapath_fib(struct leat_datapath *dp)
{
	return dp->fib;
}

const struct leat_config *leat_datapath_config(const struct leat_datapath *dp)
{
	return dp->config;
}

struct leat_bpf_prog *leat_datapath_bpf_prog(const struct leat_datapath *dp, unsigned int idx)
{
	const struct leat_config_prog *prog = &dp->config->progs[idx];

	return prog->builtin ? NULL : leat_objects_prog(dp->config, prog, dp->objects[prog->object], NULL);
}
