/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c: checks a configuration as a whole (leat.yaml(5)). Control thread.
 *
 * Nothing stops at the first mistake: each is added to the diag and the check goes on with what can still be judged.
 * A port of unknown type is remembered, so that those who name it are not blamed. Only missing memory ends the check.
 * What a port or a program takes stands in its own table (struct leat_param).
 */
#include "ctl/config_check.h"

#include "base/diag_sort.h"
#include "base/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct leat_param workers_param = {
	.name = "workers",
	.kind = LEAT_PARAM_U32,
	.offset = offsetof(struct leat_config, workers),
	.min = 1,
	.max = LEAT_WORKERS_MAX,
};

static void check_workers(struct leat_check *c, const struct leat_yaml_node *node)
{
	leat_check_param(c, NULL, NULL, node, &workers_param, c->config);
}

/* ---- eBPF ---- */

static const char *const engines[] = {
	[LEAT_BPF_ENGINE_AUTO] = "auto",
	[LEAT_BPF_ENGINE_INTERP] = "interp",
	[LEAT_BPF_ENGINE_JIT] = "jit",
	[LEAT_BPF_ENGINES] = NULL,
};

static const char *const kernel_verifiers[] = {
	[LEAT_BPF_KERNEL_OFF] = "off",
	[LEAT_BPF_KERNEL_ASK] = "ask",
	[LEAT_BPF_KERNEL_REQUIRE] = "require",
	[LEAT_BPF_KERNEL_VERIFIERS] = NULL,
};

static const struct leat_param bpf_params[] = {
	{ .name = "engine", .kind = LEAT_PARAM_CHOICE, .offset = offsetof(struct leat_config, bpf_engine),
	  .choices = engines, .help = "what runs eBPF programs" },
	{ .name = "kernel-verifier", .kind = LEAT_PARAM_CHOICE, .offset = offsetof(struct leat_config, kernel_verifier),
	  .choices = kernel_verifiers, .help = "whether the kernel's verifier is asked, too" },
	{ .name = "perf-map", .kind = LEAT_PARAM_BOOL, .offset = offsetof(struct leat_config, perf_map),
	  .help = "names compiled programs in /tmp/perf-PID.map" },
	{ .name = NULL },
};

static void check_bpf(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { NULL };

	if (node->kind == LEAT_YAML_MAP) {
		leat_check_fill(c, NULL, node, own, bpf_params, c->config);
		return;
	}
	leat_check_at(c, leat_check_pos(node), "bpf", NULL, NULL);
	leat_diag_add(c->diag, "must be a mapping, like { engine: interp }");
}

/* ---- ports ---- */

static const struct leat_driver *check_type(const struct leat_check *c, const struct leat_yaml_node *port)
{
	const struct leat_yaml_node *type = leat_yaml_get(port, "type");
	struct leat_vocabulary v = { .len = 0 };
	const struct leat_driver *driver;
	const char *text;
	unsigned int i;

	if (!type) {
		leat_check_at(c, port->key_pos, "ports", port->key, NULL);
		for (v.suggest.word = "", i = 0; (driver = leat_driver_get(i)); i++)
			leat_check_word(&v, driver->type);
		leat_diag_add(c->diag, "'type' is missing; known: %s", v.list);
		return NULL;
	}
	leat_check_at(c, leat_check_pos(type), "ports", port->key, "type");
	text = leat_check_single(c, type);
	driver = text ? leat_driver_find(text) : NULL;
	if (driver || !text)
		return driver;
	for (v.suggest.word = text, i = 0; (driver = leat_driver_get(i)); i++)
		leat_check_word(&v, driver->type);
	leat_check_unknown(c, "port type", &v);
	return NULL;
}

static void check_port(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { "type", NULL };
	struct leat_config_port *port = &c->config->ports[c->config->n_ports];

	leat_check_name(c, "ports", node, port->name);
	if (c->config->n_ports == LEAT_PORTS_MAX - 1) {
		leat_diag_add(c->diag, "'%.40s' is one port too many: a datapath takes %u", node->key,
			      LEAT_PORTS_MAX - 1);
		return;
	}
	c->config->n_ports++;
	port->pos = node->key_pos;
	if (node->kind != LEAT_YAML_MAP) {
		leat_check_at(c, leat_check_pos(node), "ports", node->key, NULL);
		leat_diag_add(c->diag, "must be a mapping, like { type: tap, ... }");
		return;
	}
	port->driver = check_type(c, node);
	if (!port->driver)
		return;
	port->opts = leat_check_new(c, port->driver->params, port->driver->opts_size);
	if (port->opts)
		leat_check_fill(c, "ports", node, own, port->driver->params, port->opts);
}

static void check_ports(struct leat_check *c, const struct leat_yaml_node *node)
{
	leat_check_each(c, "ports", node, &c->config->ports, sizeof(*c->config->ports), check_port);
}

/* ---- bridges ---- */

static const struct leat_param bridge_params[] = {
	{
		.name = "ageing",
		.kind = LEAT_PARAM_DURATION,
		.offset = offsetof(struct leat_config_bridge, ageing_ns),
		.min = UINT64_C(1000000000),
		.max = UINT64_C(1000000000000000), /* 802.1Q, table 8-6, ends at 10^6 s */
		.default_text = "300s",
		.help = "how long an address that is not heard of is kept",
	},
	{
		.name = "entries",
		.kind = LEAT_PARAM_U32,
		.offset = offsetof(struct leat_config_bridge, entries),
		.min = 1,
		.max = 1u << 20,
		.default_text = "4096",
		.help = "addresses that the table holds",
	},
	{ .name = NULL },
};

static void join_bridge(struct leat_check *c, struct leat_config_bridge *bridge, const struct leat_yaml_node *node)
{
	unsigned int self = (unsigned int)(bridge - c->config->bridges) + 1, other, port;
	const char *text;

	leat_check_at(c, node->pos, "bridges", bridge->name, NULL);
	text = leat_check_single(c, node);
	port = text ? leat_check_port_index(c, text) : LEAT_PORTS_MAX;
	if (port == LEAT_PORTS_MAX)
		return;
	other = c->bridge_of[port];
	if (other == self) {
		leat_diag_add(c->diag, "port '%s' is named twice", text);
	} else if (other) {
		leat_diag_add(c->diag, "port '%s' is in bridge '%s' already (line %u)", text,
			      c->config->bridges[other - 1].name, c->config->bridges[other - 1].pos.line);
	} else if (bridge->n_ports == LEAT_BRIDGE_PORTS_MAX) {
		leat_diag_add(c->diag, "port '%s' is one too many: a bridge takes %u", text, LEAT_BRIDGE_PORTS_MAX);
	} else {
		c->bridge_of[port] = self;
		bridge->ports[bridge->n_ports++] = port;
	}
}

static void check_members(struct leat_check *c, struct leat_config_bridge *bridge, const struct leat_yaml_node *list)
{
	const struct leat_yaml_node *node;

	if (list->kind == LEAT_YAML_NULL)
		return;
	if (list->kind != LEAT_YAML_LIST) {
		leat_check_at(c, list->pos, "bridges", bridge->name, NULL);
		leat_diag_add(c->diag, "must be a list of ports, like [a, b]");
		return;
	}
	for (node = list->first; node; node = node->next)
		join_bridge(c, bridge, node);
}

static void check_bridge(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { "ports", NULL };
	struct leat_config_bridge *bridge = &c->config->bridges[c->config->n_bridges++];
	const struct leat_yaml_node *ports;

	leat_check_name(c, "bridges", node, bridge->name);
	bridge->pos = node->key_pos;
	if (leat_param_defaults(bridge_params, bridge)) {
		c->rc = -ENOMEM;
		return;
	}
	if (node->kind != LEAT_YAML_MAP) {
		check_members(c, bridge, node);
		return;
	}
	leat_check_fill(c, "bridges", node, own, bridge_params, bridge);
	ports = leat_yaml_get(node, "ports");
	if (ports) {
		check_members(c, bridge, ports);
		return;
	}
	leat_check_at(c, node->key_pos, "bridges", bridge->name, NULL);
	leat_diag_add(c->diag, "'ports' is missing");
}

static void check_bridges(struct leat_check *c, const struct leat_yaml_node *node)
{
	leat_check_each(c, "bridges", node, &c->config->bridges, sizeof(*c->config->bridges), check_bridge);
}

/* ---- the whole ---- */

/* In the order in which they need each other. */
static const struct {
	const char *name;
	leat_check_fn *check;
} sections[] = {
	{ "workers", check_workers }, { "ports", check_ports },     { "programs", leat_check_progs },
	{ "attach", leat_check_attach },   { "bridges", check_bridges }, { "bpf", check_bpf },
	{ "fib", leat_check_fib },         { "control", leat_check_control },
};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static void check_top_key(const struct leat_check *c, const struct leat_yaml_node *node)
{
	struct leat_vocabulary v = { .suggest = { .word = node->key } };
	size_t i;

	for (i = 0; i < N_SECTIONS; i++) {
		if (!strcmp(sections[i].name, node->key))
			return;
		leat_check_word(&v, sections[i].name);
	}
	leat_check_at(c, node->key_pos, NULL, NULL, NULL);
	leat_check_unknown(c, "key", &v);
}

static void check_root(struct leat_check *c, const struct leat_yaml_node *root)
{
	const struct leat_yaml_node *node;
	size_t i;

	leat_check_at(c, root ? root->pos : (struct leat_yaml_pos){ 1, 1 }, NULL, NULL, NULL);
	if (!root || root->kind == LEAT_YAML_NULL) {
		leat_diag_add(c->diag, "the configuration is empty; it needs at least one port under 'ports:'");
		return;
	}
	if (root->kind != LEAT_YAML_MAP) {
		leat_diag_add(c->diag, "a configuration is a mapping that begins with keys like 'ports:'");
		return;
	}
	for (node = root->first; node; node = node->next)
		if (!node->again)
			check_top_key(c, node);
	c->ports = leat_yaml_get(root, "ports");
	for (i = 0; i < N_SECTIONS && !c->rc; i++) {
		node = leat_yaml_get(root, sections[i].name);
		if (node)
			sections[i].check(c, node);
	}
	if (c->ports && (c->ports->n || c->ports->kind == LEAT_YAML_SCALAR))
		return;
	leat_check_at(c, c->ports ? c->ports->key_pos : root->pos, "ports", NULL, NULL);
	leat_diag_add(c->diag, c->ports ? "names no port; at least one is needed" : "is missing; at least one port is needed");
}

int leat_config_parse(const char *text, size_t len, const char *file, struct leat_diag *diag,
		      struct leat_config **config)
{
	unsigned int before = leat_diag_count(diag);
	struct leat_yaml_tree *tree = NULL;
	struct leat_check *c;
	int rc = -ENOMEM;

	c = leat_heap_zalloc(sizeof(*c));
	if (!c)
		return rc;
	c->diag = diag;
	c->config = leat_heap_zalloc(sizeof(*c->config));
	if (!c->config)
		goto free_check;
	c->config->workers = 1;
	c->config->control.mode = LEAT_CONTROL_MODE;
	c->config->file = leat_heap_strdup(file);
	if (!c->config->file)
		goto free_config;
	rc = leat_yaml_parse(text, len, file, diag, &tree);
	if (rc)
		goto free_config;
	c->config->tree = tree; /* objects refer to it */
	check_root(c, leat_yaml_root(tree));
	leat_diag_sort(diag, before);
	rc = c->rc ? c->rc : leat_diag_count(diag) > before ? -EINVAL : 0;
	if (rc)
		goto free_config;
	*config = c->config;
	goto free_check;
free_config:
	leat_config_free(c->config);
free_check:
	leat_heap_free(c);
	return rc;
}

void leat_config_free(struct leat_config *config)
{
	unsigned int i;

	if (!config)
		return;
	for (i = 0; i < config->n_ports; i++) {
		if (config->ports[i].opts)
			leat_param_free(config->ports[i].driver->params, config->ports[i].opts);
		leat_heap_free(config->ports[i].opts);
	}
	leat_config_free_progs(config);
	leat_config_free_fib(config);
	leat_config_free_control(config);
	leat_heap_free(config->ports);
	leat_heap_free(config->bridges);
	leat_yaml_free(config->tree);
	leat_heap_free(config->file);
	leat_heap_free(config);
}
