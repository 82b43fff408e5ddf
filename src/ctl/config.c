/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c: checks a configuration as a whole (leat.yaml(5)). Control thread.
 *
 * Nothing stops at the first mistake: each is added to the diag and the check goes on with what can still be judged.
 * A port of unknown type is remembered, so that those who name it are not blamed. Only missing memory ends the check.
 * What a port or a program takes stands in its own table (struct leat_param).
 */
#include "ctl/config.h"

#include "base/diag_sort.h"
#include "base/heap.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct check {
	struct leat_config *config;
	struct leat_diag *diag;
	int rc; /* -ENOMEM: nothing more is to be done */
	unsigned int bridge_of[LEAT_PORTS_MAX]; /* by port: index of its bridge plus 1 */
};

/* ---- saying where and what ---- */

/* Sets the place of the mistakes to come: "section.name.key", of which each may be NULL. */
static void at(const struct check *c, struct leat_yaml_pos pos, const char *section, const char *name, const char *key)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s%s%s", section ? section : "", name ? "." : "", name ? name : "",
		 section && key ? "." : "", key ? key : "");
	leat_diag_at(c->diag, c->config->file, pos.line, pos.column, path);
}

/* The words that would have been right. */
struct vocabulary {
	struct leat_suggest suggest;
	char list[400];
	size_t len;
	bool cut;
};

static void vocabulary_add(struct vocabulary *v, const char *word)
{
	int len;

	leat_suggest_try(&v->suggest, word);
	if (v->cut)
		return;
	len = snprintf(v->list + v->len, sizeof(v->list) - v->len, "%s%s", v->len ? ", " : "", word);
	v->cut = (size_t)len >= sizeof(v->list) - v->len;
	if (v->cut)
		v->list[v->len] = '\0';
	else
		v->len += (size_t)len;
}

static void add_unknown(const struct check *c, const char *what, const struct vocabulary *v)
{
	const char *best = v->suggest.best;

	if (!v->len)
		leat_diag_add(c->diag, "unknown %s '%.40s'; there is none", what, v->suggest.word);
	else
		leat_diag_add(c->diag, "unknown %s '%.40s'%s%s%s; known: %s%s", what, v->suggest.word,
			      best ? " (did you mean '" : "", best ? best : "", best ? "'?)" : "", v->list,
			      v->cut ? ", ..." : "");
}

static struct leat_yaml_pos value_pos(const struct leat_yaml_node *node)
{
	return node->kind == LEAT_YAML_NULL && *node->key ? node->key_pos : node->pos;
}

/* The text of a single value, or NULL, which is then reported at the current place. */
static const char *single_value(const struct check *c, const struct leat_yaml_node *node)
{
	if (node->kind == LEAT_YAML_SCALAR)
		return node->text;
	leat_diag_add(c->diag, node->kind == LEAT_YAML_NULL ? "has no value" : "must be a single value");
	return NULL;
}

static bool name_is_valid(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t len = strlen(name);

	return len > 0 && len < LEAT_CONFIG_NAME_SIZE && strspn(name, allowed) == len;
}

/* Copies the name of a new object, and reports a bad one. */
static void take_name(const struct check *c, const char *section, const struct leat_yaml_node *node, char *name)
{
	snprintf(name, LEAT_CONFIG_NAME_SIZE, "%s", node->key);
	at(c, node->key_pos, section, NULL, NULL);
	if (!name_is_valid(node->key))
		leat_diag_add(c->diag, "'%.40s' is not a valid name: 1 to %d letters, digits, '_', '.' or '-'",
			      node->key, LEAT_CONFIG_NAME_SIZE - 1);
}

/* ---- option tables ---- */

static void set_param(struct check *c, const char *section, const char *name, const struct leat_yaml_node *node,
		      const struct leat_param *param, void *opts)
{
	const char *text;

	at(c, value_pos(node), section, name, param->name);
	text = single_value(c, node);
	if (text && leat_param_set(param, opts, text, c->diag) == -ENOMEM)
		c->rc = -ENOMEM;
}

static void add_unknown_key(const struct check *c, const struct leat_param *table, const char *own_key,
			    const char *section, const char *name, const struct leat_yaml_node *node)
{
	struct vocabulary v = { .suggest = { .word = node->key } };

	vocabulary_add(&v, own_key);
	for (; table && table->name; table++)
		vocabulary_add(&v, table->name);
	at(c, node->key_pos, section, name, NULL);
	add_unknown(c, "key", &v);
}

static void check_required(const struct check *c, const struct leat_param *table, const char *section,
			   const struct leat_yaml_node *object)
{
	for (; table && table->name; table++) {
		if (!(table->flags & LEAT_PARAM_REQUIRED) || leat_yaml_get(object, table->name))
			continue;
		at(c, object->key_pos, section, object->key, NULL);
		leat_diag_add(c->diag, "'%s' is missing%s%s%s", table->name, table->help ? " (" : "",
			      table->help ? table->help : "", table->help ? ")" : "");
	}
}

/* Fills @opts from the keys of @object beside @own_key, by @table. */
static void fill_opts(struct check *c, const char *section, const struct leat_yaml_node *object, const char *own_key,
		      const struct leat_param *table, void *opts)
{
	const struct leat_yaml_node *node;
	const struct leat_param *param;

	for (node = object->first; node && !c->rc; node = node->next) {
		if (node->again || !strcmp(node->key, own_key))
			continue;
		param = leat_param_find(table, node->key);
		if (param)
			set_param(c, section, object->key, node, param, opts);
		else
			add_unknown_key(c, table, own_key, section, object->key, node);
	}
	check_required(c, table, section, object);
}

/* Makes an options struct with its defaults, or NULL with c->rc set. */
static void *new_opts(struct check *c, const struct leat_param *table, size_t size)
{
	void *opts = leat_heap_zalloc(size);

	if (opts && !leat_param_defaults(table, opts))
		return opts;
	if (opts)
		leat_param_free(table, opts);
	leat_heap_free(opts);
	c->rc = -ENOMEM;
	return NULL;
}

/* ---- sections ---- */

typedef void entry_fn(struct check *c, const struct leat_yaml_node *node);

/* Makes room for the entries of a section (@size bytes each) and calls @fn for each. */
static void each_entry(struct check *c, const char *section, const struct leat_yaml_node *node, void *array,
		       size_t size, entry_fn *fn)
{
	void *room;

	if (node->kind == LEAT_YAML_NULL || (node->kind == LEAT_YAML_MAP && !node->n))
		return;
	if (node->kind != LEAT_YAML_MAP) {
		at(c, node->pos, section, NULL, NULL);
		leat_diag_add(c->diag, "must be a mapping of names (NAME: ...)");
		return;
	}
	room = leat_heap_zalloc(node->n * size);
	if (!room) {
		c->rc = -ENOMEM;
		return;
	}
	*(void **)array = room;
	for (node = node->first; node && !c->rc; node = node->next)
		if (!node->again)
			fn(c, node);
}

static const struct leat_param workers_param = {
	.name = "workers",
	.kind = LEAT_PARAM_U32,
	.offset = offsetof(struct leat_config, workers),
	.min = 1,
	.max = LEAT_WORKERS_MAX,
};

static void check_workers(struct check *c, const struct leat_yaml_node *node)
{
	set_param(c, NULL, NULL, node, &workers_param, c->config);
}

/* ---- ports ---- */

static const struct leat_driver *check_type(const struct check *c, const struct leat_yaml_node *port)
{
	const struct leat_yaml_node *type = leat_yaml_get(port, "type");
	struct vocabulary v = { .len = 0 };
	const struct leat_driver *driver;
	const char *text;
	unsigned int i;

	if (!type) {
		at(c, port->key_pos, "ports", port->key, NULL);
		for (v.suggest.word = "", i = 0; (driver = leat_driver_get(i)); i++)
			vocabulary_add(&v, driver->type);
		leat_diag_add(c->diag, "'type' is missing; known: %s", v.list);
		return NULL;
	}
	at(c, value_pos(type), "ports", port->key, "type");
	text = single_value(c, type);
	driver = text ? leat_driver_find(text) : NULL;
	if (driver || !text)
		return driver;
	for (v.suggest.word = text, i = 0; (driver = leat_driver_get(i)); i++)
		vocabulary_add(&v, driver->type);
	add_unknown(c, "port type", &v);
	return NULL;
}

static void check_port(struct check *c, const struct leat_yaml_node *node)
{
	struct leat_config_port *port = &c->config->ports[c->config->n_ports];

	take_name(c, "ports", node, port->name);
	if (c->config->n_ports == LEAT_PORTS_MAX - 1) {
		leat_diag_add(c->diag, "'%.40s' is one port too many: a datapath takes %u", node->key,
			      LEAT_PORTS_MAX - 1);
		return;
	}
	c->config->n_ports++;
	port->pos = node->key_pos;
	if (node->kind != LEAT_YAML_MAP) {
		at(c, value_pos(node), "ports", node->key, NULL);
		leat_diag_add(c->diag, "must be a mapping, like { type: tap, ... }");
		return;
	}
	port->driver = check_type(c, node);
	if (!port->driver)
		return;
	port->opts = new_opts(c, port->driver->params, port->driver->opts_size);
	if (port->opts)
		fill_opts(c, "ports", node, "type", port->driver->params, port->opts);
}

static void check_ports(struct check *c, const struct leat_yaml_node *node)
{
	each_entry(c, "ports", node, &c->config->ports, sizeof(*c->config->ports), check_port);
}

/* The index of the port that @name says, or LEAT_PORTS_MAX, which is reported at the current place. */
static unsigned int find_port(const struct check *c, const char *name)
{
	struct vocabulary v = { .suggest = { .word = name } };
	unsigned int i;

	for (i = 0; i < c->config->n_ports; i++)
		if (!strcmp(c->config->ports[i].name, name))
			return i;
	for (i = 0; i < c->config->n_ports; i++)
		vocabulary_add(&v, c->config->ports[i].name);
	add_unknown(c, "port", &v);
	return LEAT_PORTS_MAX;
}

/* ---- programs ---- */

static void add_unknown_builtin(const struct check *c, const char *name)
{
	struct vocabulary v = { .suggest = { .word = name ? name : "" } };
	const struct leat_xdp_builtin *builtin;
	unsigned int i;

	for (i = 0; (builtin = leat_xdp_builtin_get(i)); i++)
		vocabulary_add(&v, builtin->name);
	if (name)
		add_unknown(c, "built-in program", &v);
	else
		leat_diag_add(c->diag, "'builtin' is missing; known: %s", v.list);
}

static const struct leat_xdp_builtin *check_builtin(const struct check *c, const struct leat_yaml_node *prog)
{
	const struct leat_yaml_node *node = leat_yaml_get(prog, "builtin"), *object = leat_yaml_get(prog, "object");
	const struct leat_xdp_builtin *builtin;
	const char *text;

	if (object) {
		at(c, object->key_pos, "programs", prog->key, "object");
		leat_diag_add(c->diag, "eBPF objects are not supported yet; take a built-in program (builtin: NAME)");
		return NULL;
	}
	if (!node) {
		at(c, prog->key_pos, "programs", prog->key, NULL);
		add_unknown_builtin(c, NULL);
		return NULL;
	}
	at(c, value_pos(node), "programs", prog->key, "builtin");
	text = single_value(c, node);
	builtin = text ? leat_xdp_builtin_find(text) : NULL;
	if (text && !builtin)
		add_unknown_builtin(c, text);
	return builtin;
}

static void check_prog(struct check *c, const struct leat_yaml_node *node)
{
	struct leat_config_prog *prog = &c->config->progs[c->config->n_progs++];

	take_name(c, "programs", node, prog->name);
	prog->pos = node->key_pos;
	if (node->kind != LEAT_YAML_MAP) {
		at(c, value_pos(node), "programs", node->key, NULL);
		leat_diag_add(c->diag, "must be a mapping, like { builtin: pass }");
		return;
	}
	prog->builtin = check_builtin(c, node);
	if (!prog->builtin)
		return;
	prog->priv = new_opts(c, prog->builtin->params, prog->builtin->priv_size);
	if (prog->priv)
		fill_opts(c, "programs", node, "builtin", prog->builtin->params, prog->priv);
}

static void check_progs(struct check *c, const struct leat_yaml_node *node)
{
	each_entry(c, "programs", node, &c->config->progs, sizeof(*c->config->progs), check_prog);
}

static unsigned int find_prog(const struct check *c, const char *name)
{
	struct vocabulary v = { .suggest = { .word = name } };
	unsigned int i;

	for (i = 0; i < c->config->n_progs; i++)
		if (!strcmp(c->config->progs[i].name, name))
			return i;
	for (i = 0; i < c->config->n_progs; i++)
		vocabulary_add(&v, c->config->progs[i].name);
	add_unknown(c, "program", &v);
	return c->config->n_progs;
}

/* ---- attach ---- */

/* The first of the programs that @node names (a list, or one name); the rest of them is checked and refused. */
static const struct leat_yaml_node *check_prog_list(const struct check *c, const struct leat_yaml_node *node,
						    const char *port)
{
	const struct leat_yaml_node *first = node->kind == LEAT_YAML_LIST ? node->first : node;

	if (node->kind == LEAT_YAML_NULL || !first)
		return NULL;
	if (node->kind == LEAT_YAML_MAP) {
		at(c, node->pos, "attach", port, NULL);
		leat_diag_add(c->diag, "must be a list of programs, like [NAME]");
		return NULL;
	}
	if (node->kind == LEAT_YAML_LIST && first->next) {
		at(c, first->next->pos, "attach", port, NULL);
		leat_diag_add(c->diag, "only one program on a port is supported so far");
	}
	return first;
}

static void check_attach_entry(struct check *c, const struct leat_yaml_node *node)
{
	struct leat_config_attach *attach = &c->config->attach[c->config->n_attach];
	const struct leat_yaml_node *name;
	const char *text;

	at(c, node->key_pos, "attach", NULL, NULL);
	attach->port = find_port(c, node->key);
	name = check_prog_list(c, node, node->key);
	if (!name)
		return;
	at(c, name->pos, "attach", node->key, NULL);
	text = single_value(c, name);
	if (!text)
		return;
	attach->prog = find_prog(c, text);
	attach->pos = name->pos;
	if (attach->port < LEAT_PORTS_MAX && attach->prog < c->config->n_progs)
		c->config->n_attach++;
}

static void check_attach(struct check *c, const struct leat_yaml_node *node)
{
	each_entry(c, "attach", node, &c->config->attach, sizeof(*c->config->attach), check_attach_entry);
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

static void join_bridge(struct check *c, struct leat_config_bridge *bridge, const struct leat_yaml_node *node)
{
	unsigned int self = (unsigned int)(bridge - c->config->bridges) + 1, other, port;
	const char *text;

	at(c, node->pos, "bridges", bridge->name, NULL);
	text = single_value(c, node);
	port = text ? find_port(c, text) : LEAT_PORTS_MAX;
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

static void check_members(struct check *c, struct leat_config_bridge *bridge, const struct leat_yaml_node *list)
{
	const struct leat_yaml_node *node;

	if (list->kind == LEAT_YAML_NULL)
		return;
	if (list->kind != LEAT_YAML_LIST) {
		at(c, list->pos, "bridges", bridge->name, NULL);
		leat_diag_add(c->diag, "must be a list of ports, like [a, b]");
		return;
	}
	for (node = list->first; node; node = node->next)
		join_bridge(c, bridge, node);
}

static void check_bridge(struct check *c, const struct leat_yaml_node *node)
{
	struct leat_config_bridge *bridge = &c->config->bridges[c->config->n_bridges++];
	const struct leat_yaml_node *ports;

	take_name(c, "bridges", node, bridge->name);
	bridge->pos = node->key_pos;
	if (leat_param_defaults(bridge_params, bridge)) {
		c->rc = -ENOMEM;
		return;
	}
	if (node->kind != LEAT_YAML_MAP) {
		check_members(c, bridge, node);
		return;
	}
	fill_opts(c, "bridges", node, "ports", bridge_params, bridge);
	ports = leat_yaml_get(node, "ports");
	if (ports) {
		check_members(c, bridge, ports);
		return;
	}
	at(c, node->key_pos, "bridges", bridge->name, NULL);
	leat_diag_add(c->diag, "'ports' is missing");
}

static void check_bridges(struct check *c, const struct leat_yaml_node *node)
{
	each_entry(c, "bridges", node, &c->config->bridges, sizeof(*c->config->bridges), check_bridge);
}

/* ---- the whole ---- */

/* In the order in which they need each other. */
static const struct {
	const char *name;
	entry_fn *check;
} sections[] = {
	{ "workers", check_workers }, { "ports", check_ports },     { "programs", check_progs },
	{ "attach", check_attach },   { "bridges", check_bridges },
};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static void check_top_key(const struct check *c, const struct leat_yaml_node *node)
{
	struct vocabulary v = { .suggest = { .word = node->key } };
	size_t i;

	for (i = 0; i < N_SECTIONS; i++) {
		if (!strcmp(sections[i].name, node->key))
			return;
		vocabulary_add(&v, sections[i].name);
	}
	at(c, node->key_pos, NULL, NULL, NULL);
	add_unknown(c, "key", &v);
}

static void check_root(struct check *c, const struct leat_yaml_node *root)
{
	const struct leat_yaml_node *node, *ports;
	size_t i;

	at(c, root ? root->pos : (struct leat_yaml_pos){ 1, 1 }, NULL, NULL, NULL);
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
	for (i = 0; i < N_SECTIONS && !c->rc; i++) {
		node = leat_yaml_get(root, sections[i].name);
		if (node)
			sections[i].check(c, node);
	}
	ports = leat_yaml_get(root, "ports");
	if (ports && (ports->n || ports->kind == LEAT_YAML_SCALAR))
		return;
	at(c, ports ? ports->key_pos : root->pos, "ports", NULL, NULL);
	leat_diag_add(c->diag, ports ? "names no port; at least one is needed" : "is missing; at least one port is needed");
}

int leat_config_parse(const char *text, size_t len, const char *file, struct leat_diag *diag,
		      struct leat_config **config)
{
	unsigned int before = leat_diag_count(diag);
	struct leat_yaml_tree *tree = NULL;
	struct check *c;
	int rc = -ENOMEM;

	c = leat_heap_zalloc(sizeof(*c));
	if (!c)
		return rc;
	c->diag = diag;
	c->config = leat_heap_zalloc(sizeof(*c->config));
	if (!c->config)
		goto free_check;
	c->config->workers = 1;
	c->config->file = leat_heap_strdup(file);
	if (!c->config->file)
		goto free_config;
	rc = leat_yaml_parse(text, len, file, diag, &tree);
	if (rc)
		goto free_config;
	check_root(c, leat_yaml_root(tree));
	leat_yaml_free(tree);
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
	for (i = 0; i < config->n_progs; i++) {
		if (config->progs[i].priv)
			leat_param_free(config->progs[i].builtin->params, config->progs[i].priv);
		leat_heap_free(config->progs[i].priv);
	}
	leat_heap_free(config->ports);
	leat_heap_free(config->progs);
	leat_heap_free(config->attach);
	leat_heap_free(config->bridges);
	leat_heap_free(config->file);
	leat_heap_free(config);
}
