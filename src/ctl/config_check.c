/* SPDX-License-Identifier: BSD-3-Clause */
/* config_check.c: what the checks of every section share; see config_check.h. Control thread. */
#include "ctl/config_check.h"

#include "base/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- saying where and what ---- */

void leat_check_at(const struct leat_check *c, struct leat_yaml_pos pos, const char *section, const char *name,
		   const char *key)
{
	char path[256];

	name = name && *name ? name : NULL; /* what stands in a list has none */
	snprintf(path, sizeof(path), "%s%s%s%s%s", section ? section : "", section && name ? "." : "",
		 name ? name : "", (section || name) && key ? "." : "", key ? key : "");
	leat_diag_at(c->diag, c->config->file, pos.line, pos.column, path);
}

void leat_check_word(struct leat_vocabulary *v, const char *word)
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

void leat_check_unknown(const struct leat_check *c, const char *what, const struct leat_vocabulary *v)
{
	const char *best = v->suggest.best;

	if (!v->len)
		leat_diag_add(c->diag, "unknown %s '%.40s'; there is none", what, v->suggest.word);
	else
		leat_diag_add(c->diag, "unknown %s '%.40s'%s%s%s; known: %s%s", what, v->suggest.word,
			      best ? " (did you mean '" : "", best ? best : "", best ? "'?)" : "", v->list,
			      v->cut ? ", ..." : "");
}

struct leat_yaml_pos leat_check_pos(const struct leat_yaml_node *node)
{
	return node->kind == LEAT_YAML_NULL && *node->key ? node->key_pos : node->pos;
}

const char *leat_check_single(const struct leat_check *c, const struct leat_yaml_node *node)
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

void leat_check_name(const struct leat_check *c, const char *section, const struct leat_yaml_node *node,
		     char name[LEAT_CONFIG_NAME_SIZE])
{
	snprintf(name, LEAT_CONFIG_NAME_SIZE, "%s", node->key);
	leat_check_at(c, node->key_pos, section, NULL, NULL);
	if (!name_is_valid(node->key))
		leat_diag_add(c->diag, "'%.40s' is not a valid name: 1 to %d letters, digits, '_', '.' or '-'",
			      node->key, LEAT_CONFIG_NAME_SIZE - 1);
}

/* ---- option tables ---- */

/** An option that names a port, maybe one that stands further down. */
static void check_port_name(const struct leat_check *c, const char *name)
{
	struct leat_vocabulary v = { .suggest = { .word = name } };
	const struct leat_yaml_node *node;

	if (!c->ports || c->ports->kind != LEAT_YAML_MAP || leat_yaml_get(c->ports, name))
		return;
	for (node = c->ports->first; node; node = node->next)
		if (!node->again)
			leat_check_word(&v, node->key);
	leat_check_unknown(c, "port", &v);
}

void leat_check_param(struct leat_check *c, const char *section, const char *name, const struct leat_yaml_node *node,
		      const struct leat_param *param, void *opts)
{
	const char *text;
	int rc;

	leat_check_at(c, leat_check_pos(node), section, name, param->name);
	text = leat_check_single(c, node);
	if (!text)
		return;
	rc = leat_param_set(param, opts, text, c->diag);
	if (rc == -ENOMEM)
		c->rc = rc;
	else if (!rc && param->flags & LEAT_PARAM_PORT)
		check_port_name(c, text);
}

static void add_unknown_key(const struct leat_check *c, const struct leat_param *table, const char *const *own_keys,
			    const char *section, const char *name, const struct leat_yaml_node *node)
{
	struct leat_vocabulary v = { .suggest = { .word = node->key } };

	for (; *own_keys; own_keys++)
		leat_check_word(&v, *own_keys);
	for (; table && table->name; table++)
		leat_check_word(&v, table->name);
	leat_check_at(c, node->key_pos, section, name, NULL);
	leat_check_unknown(c, "key", &v);
}

static void check_required(const struct leat_check *c, const struct leat_param *table, const char *section,
			   const struct leat_yaml_node *object)
{
	for (; table && table->name; table++) {
		if (!(table->flags & LEAT_PARAM_REQUIRED) || leat_yaml_get(object, table->name))
			continue;
		leat_check_at(c, object->key_pos, section, object->key, NULL);
		leat_diag_add(c->diag, "'%s' is missing%s%s%s", table->name, table->help ? " (" : "",
			      table->help ? table->help : "", table->help ? ")" : "");
	}
}

static bool is_own(const char *const *own_keys, const char *key)
{
	for (; *own_keys; own_keys++)
		if (!strcmp(*own_keys, key))
			return true;
	return false;
}

void leat_check_fill(struct leat_check *c, const char *section, const struct leat_yaml_node *object,
		     const char *const *own_keys, const struct leat_param *table, void *opts)
{
	const struct leat_yaml_node *node;
	const struct leat_param *param;

	for (node = object->first; node && !c->rc; node = node->next) {
		if (node->again || is_own(own_keys, node->key))
			continue;
		param = leat_param_find(table, node->key);
		if (param)
			leat_check_param(c, section, object->key, node, param, opts);
		else
			add_unknown_key(c, table, own_keys, section, object->key, node);
	}
	check_required(c, table, section, object);
}

void *leat_check_new(struct leat_check *c, const struct leat_param *table, size_t size)
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

void leat_check_each(struct leat_check *c, const char *section, const struct leat_yaml_node *node, void *array,
		     size_t size, leat_check_fn *fn)
{
	void *room;

	if (node->kind == LEAT_YAML_NULL || (node->kind == LEAT_YAML_MAP && !node->n))
		return;
	if (node->kind != LEAT_YAML_MAP) {
		leat_check_at(c, node->pos, section, NULL, NULL);
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

unsigned int leat_check_port_index(const struct leat_check *c, const char *name)
{
	struct leat_vocabulary v = { .suggest = { .word = name } };
	unsigned int i;

	for (i = 0; i < c->config->n_ports; i++)
		if (!strcmp(c->config->ports[i].name, name))
			return i;
	for (i = 0; i < c->config->n_ports; i++)
		leat_check_word(&v, c->config->ports[i].name);
	leat_check_unknown(c, "port", &v);
	return LEAT_PORTS_MAX;
}
