/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_progs.c: checks the sections "programs" and "attach" of a configuration. Control thread.
 *
 * A program is a built-in, whose keys its own table knows, or one of an eBPF object file. What an object is to be like
 * (variables, map contents) can only be checked when it has been opened; the nodes of the document are kept for that.
 */
#include "ctl/config_check.h"

#include "base/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- programs ---- */

static void add_unknown_builtin(const struct leat_check *c, const char *name)
{
	struct leat_vocabulary v = { .suggest = { .word = name ? name : "" } };
	const struct leat_xdp_builtin *builtin;
	unsigned int i;

	for (i = 0; (builtin = leat_xdp_builtin_get(i)); i++)
		leat_check_word(&v, builtin->name);
	if (name)
		leat_check_unknown(c, "built-in program", &v);
	else
		leat_diag_add(c->diag, "'object' or 'builtin' is missing; built-in programs: %s", v.list);
}

static const struct leat_xdp_builtin *check_builtin(const struct leat_check *c, const struct leat_yaml_node *prog,
						    const struct leat_yaml_node *node)
{
	const struct leat_xdp_builtin *builtin;
	const char *text;

	leat_check_at(c, leat_check_pos(node), "programs", prog->key, "builtin");
	text = leat_check_single(c, node);
	builtin = text ? leat_xdp_builtin_find(text) : NULL;
	if (text && !builtin)
		add_unknown_builtin(c, text);
	return builtin;
}

/* ---- keys that every program has ---- */

static const struct leat_param common_params[] = {
	{ .name = "priority", .kind = LEAT_PARAM_U32, .offset = offsetof(struct leat_config_prog, run_prio), .min = 1,
	  .max = 1000000, .help = "place among the programs of a port; the smallest runs first" },
	{ .name = NULL },
};

/** Adds the action that @node names. */
static void add_action(struct leat_check *c, const char *prog, const struct leat_yaml_node *node, uint32_t *actions)
{
	struct leat_vocabulary v = { .suggest = { .word = NULL } };
	uint32_t action;

	leat_check_at(c, leat_check_pos(node), "programs", prog, "chain-call");
	v.suggest.word = leat_check_single(c, node);
	for (action = 0; v.suggest.word && action < LEAT_XDP_ACTIONS; action++) {
		if (!strcmp(v.suggest.word, leat_xdp_action_name(action))) {
			*actions |= 1u << action;
			return;
		}
		leat_check_word(&v, leat_xdp_action_name(action));
	}
	if (v.suggest.word)
		leat_check_unknown(c, "action", &v);
}

static void check_chain_call(struct leat_check *c, const char *prog, const struct leat_yaml_node *node,
			     uint32_t *actions)
{
	if (node->kind != LEAT_YAML_LIST) {
		add_action(c, prog, node, actions);
		return;
	}
	for (node = node->first; node; node = node->next)
		add_action(c, prog, node, actions);
}

static void check_common(struct leat_check *c, const struct leat_yaml_node *node, struct leat_config_prog *prog)
{
	const struct leat_yaml_node *priority = leat_yaml_get(node, "priority");
	const struct leat_yaml_node *chain_call = leat_yaml_get(node, "chain-call");

	if (priority)
		leat_check_param(c, "programs", node->key, priority, common_params, prog);
	if (chain_call)
		check_chain_call(c, node->key, chain_call, &prog->chain_actions);
}

/* ---- programs of objects ---- */

/** The text of an optional key, or NULL. */
static const char *optional_text(const struct leat_check *c, const struct leat_yaml_node *prog, const char *key)
{
	const struct leat_yaml_node *node = leat_yaml_get(prog, key);

	if (!node)
		return NULL;
	leat_check_at(c, leat_check_pos(node), "programs", prog->key, key);
	return leat_check_single(c, node);
}

/** A key whose value is a mapping; @depth 2: of mappings. NULL when it is not there or wrong. */
static const struct leat_yaml_node *optional_map(const struct leat_check *c, const struct leat_yaml_node *prog,
						 const char *key, unsigned int depth)
{
	const struct leat_yaml_node *node = leat_yaml_get(prog, key), *child;

	if (!node)
		return NULL;
	leat_check_at(c, leat_check_pos(node), "programs", prog->key, key);
	if (node->kind != LEAT_YAML_MAP) {
		leat_diag_add(c->diag, "must be a mapping of names (NAME: ...)");
		return NULL;
	}
	for (child = node->first; child; child = child->next) {
		leat_check_at(c, leat_check_pos(child), "programs", prog->key, key);
		if (depth == 1)
			leat_check_single(c, child);
		else if (child->kind != LEAT_YAML_MAP)
			leat_diag_add(c->diag, "'%.40s' must be a mapping of elements (key: value)", child->key);
	}
	return node;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/** The object of that path and instance, a new one if need be. */
static uint32_t object_index(struct leat_config *config, const char *path, const char *instance,
			     const struct leat_yaml_node *prog)
{
	uint32_t i;

	for (i = 0; i < config->n_objects; i++)
		if (!strcmp(config->objects[i].path, path) && same_text(config->objects[i].instance, instance))
			return i;
	config->objects[config->n_objects++] = (struct leat_config_object){
		.path = path,
		.instance = instance,
		.prog = prog->key,
		.pos = leat_yaml_get(prog, "object")->pos,
	};
	return i;
}

static void check_object_prog(struct leat_check *c, const struct leat_yaml_node *node, struct leat_config_prog *prog)
{
	static const char *const own[] = { "object", "prog",     "instance",   "set", "maps", "entries",
					   "priority", "chain-call", NULL };
	const char *path = optional_text(c, node, "object");
	const char *instance = optional_text(c, node, "instance");

	prog->prog = optional_text(c, node, "prog");
	prog->tuning = (struct leat_config_tuning){
		.pos = node->key_pos,
		.set = optional_map(c, node, "set", 1),
		.maps = optional_map(c, node, "maps", 2),
		.entries = optional_map(c, node, "entries", 1),
	};
	leat_check_fill(c, "programs", node, own, NULL, NULL);
	if (path)
		prog->object = object_index(c->config, path, instance, node);
}

static void check_builtin_prog(struct leat_check *c, const struct leat_yaml_node *node, struct leat_config_prog *prog)
{
	static const char *const own[] = { "builtin", "priority", "chain-call", NULL };

	prog->builtin = check_builtin(c, node, leat_yaml_get(node, "builtin"));
	if (!prog->builtin)
		return;
	prog->priv = leat_check_new(c, prog->builtin->params, prog->builtin->priv_size);
	if (prog->priv)
		leat_check_fill(c, "programs", node, own, prog->builtin->params, prog->priv);
}

static void check_prog(struct leat_check *c, const struct leat_yaml_node *node)
{
	struct leat_config_prog *prog = &c->config->progs[c->config->n_progs++];
	bool object, builtin;

	leat_check_name(c, "programs", node, prog->name);
	prog->pos = node->key_pos;
	prog->object = LEAT_CONFIG_NO_OBJECT;
	if (node->kind != LEAT_YAML_MAP) {
		leat_check_at(c, leat_check_pos(node), "programs", node->key, NULL);
		leat_diag_add(c->diag, "must be a mapping, like { object: filter.bpf.o } or { builtin: pass }");
		return;
	}
	object = leat_yaml_get(node, "object");
	builtin = leat_yaml_get(node, "builtin");
	check_common(c, node, prog);
	if (builtin && !object) {
		check_builtin_prog(c, node, prog);
	} else if (object && !builtin) {
		check_object_prog(c, node, prog);
	} else {
		leat_check_at(c, node->key_pos, "programs", node->key, NULL);
		if (object)
			leat_diag_add(c->diag, "is either an 'object' or a 'builtin', not both");
		else
			add_unknown_builtin(c, NULL);
	}
}

void leat_check_progs(struct leat_check *c, const struct leat_yaml_node *node)
{
	c->config->objects = leat_heap_zalloc(((size_t)node->n + 1) * sizeof(*c->config->objects));
	if (!c->config->objects)
		c->rc = -ENOMEM;
	else
		leat_check_each(c, "programs", node, &c->config->progs, sizeof(*c->config->progs), check_prog);
}

static unsigned int find_prog(const struct leat_check *c, const char *name)
{
	struct leat_vocabulary v = { .suggest = { .word = name } };
	unsigned int i;

	for (i = 0; i < c->config->n_progs; i++)
		if (!strcmp(c->config->progs[i].name, name))
			return i;
	for (i = 0; i < c->config->n_progs; i++)
		leat_check_word(&v, c->config->progs[i].name);
	leat_check_unknown(c, "program", &v);
	return c->config->n_progs;
}

/* ---- attach ---- */

/** Adds the program that @node names to a port's. */
static void add_attached(struct leat_check *c, struct leat_config_attach *attach, const char *port,
			 const struct leat_yaml_node *node)
{
	const char *text;
	unsigned int prog, i;

	leat_check_at(c, leat_check_pos(node), "attach", port, NULL);
	text = leat_check_single(c, node);
	prog = text ? find_prog(c, text) : c->config->n_progs;
	if (prog == c->config->n_progs)
		return;
	for (i = 0; i < attach->n_progs && attach->prog[i] != prog; i++)
		;
	if (i < attach->n_progs)
		leat_diag_add(c->diag, "program '%s' is named twice", text);
	else if (attach->n_progs == LEAT_XDP_CHAIN_MAX)
		leat_diag_add(c->diag, "'%.40s' is one too many: a port takes %u programs", text, LEAT_XDP_CHAIN_MAX);
	else
		attach->prog[attach->n_progs++] = prog;
}

static void check_attach_entry(struct leat_check *c, const struct leat_yaml_node *node)
{
	struct leat_config_attach *attach = &c->config->attach[c->config->n_attach];
	const struct leat_yaml_node *name;

	leat_check_at(c, node->key_pos, "attach", NULL, NULL);
	attach->pos = node->key_pos;
	attach->port = leat_check_port_index(c, node->key);
	if (node->kind == LEAT_YAML_MAP) {
		leat_check_at(c, node->pos, "attach", node->key, NULL);
		leat_diag_add(c->diag, "must be a list of programs, like [NAME]");
		return;
	}
	if (node->kind == LEAT_YAML_SCALAR)
		add_attached(c, attach, node->key, node);
	for (name = node->kind == LEAT_YAML_LIST ? node->first : NULL; name; name = name->next)
		add_attached(c, attach, node->key, name);
	if (attach->port < LEAT_PORTS_MAX && attach->n_progs)
		c->config->n_attach++;
	else
		attach->n_progs = 0; /* the next entry takes this place */
}

void leat_check_attach(struct leat_check *c, const struct leat_yaml_node *node)
{
	leat_check_each(c, "attach", node, &c->config->attach, sizeof(*c->config->attach), check_attach_entry);
}

void leat_config_free_progs(struct leat_config *config)
{
	unsigned int i;

	for (i = 0; i < config->n_progs; i++) {
		if (config->progs[i].priv)
			leat_param_free(config->progs[i].builtin->params, config->progs[i].priv);
		leat_heap_free(config->progs[i].priv);
	}
	leat_heap_free(config->objects);
	leat_heap_free(config->progs);
	leat_heap_free(config->attach);
}
