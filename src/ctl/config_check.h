/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_check.h: the tools of the configuration's check: saying where and what is wrong, reading values by option
 * tables, going through a section. Each mistake is added and the check goes on; only missing memory ends it.
 */
#ifndef LEAT_CTL_CONFIG_CHECK_H
#define LEAT_CTL_CONFIG_CHECK_H

#include "base/suggest.h"
#include "ctl/config.h"

struct leat_check {
	struct leat_config *config;
	struct leat_diag *diag;
	const struct leat_yaml_node *ports; /* the section, or NULL */
	int rc; /* -ENOMEM: nothing more is to be done */
	unsigned int bridge_of[LEAT_PORTS_MAX]; /* by port: index of its bridge plus 1 */
};

/** Checks one entry of a section. */
typedef void leat_check_fn(struct leat_check *c, const struct leat_yaml_node *node);

/** Sets the place of the mistakes to come: "section.name.key", of which each may be NULL, and the name empty. */
void leat_check_at(const struct leat_check *c, struct leat_yaml_pos pos, const char *section, const char *name,
		   const char *key);
/** Where the value of a node stands; where its key stands if it has none. */
struct leat_yaml_pos leat_check_pos(const struct leat_yaml_node *node);
/** The text of a single value, or NULL, which is then reported at the current place. */
const char *leat_check_single(const struct leat_check *c, const struct leat_yaml_node *node);
/** Copies the name of a new object, and reports a bad one. */
void leat_check_name(const struct leat_check *c, const char *section, const struct leat_yaml_node *node,
		     char name[LEAT_CONFIG_NAME_SIZE]);

/** The words that would have been right. */
struct leat_vocabulary {
	struct leat_suggest suggest;
	char list[400];
	size_t len;
	bool cut;
};
void leat_check_word(struct leat_vocabulary *v, const char *word);
/** Reports that v->suggest.word is unknown, with the nearest word and all that are known. */
void leat_check_unknown(const struct leat_check *c, const char *what, const struct leat_vocabulary *v);

/** Makes an options struct with its defaults, or NULL with c->rc set. */
void *leat_check_new(struct leat_check *c, const struct leat_param *table, size_t size);
/** Stores one value by its row. */
void leat_check_param(struct leat_check *c, const char *section, const char *name, const struct leat_yaml_node *node,
		      const struct leat_param *param, void *opts);
/** Fills @opts from the keys of @object beside @own_keys (NULL at the end), by @table (NULL: none). */
void leat_check_fill(struct leat_check *c, const char *section, const struct leat_yaml_node *object,
		     const char *const *own_keys, const struct leat_param *table, void *opts);

/** Makes room for the entries of a section (@size bytes each) at *@array, and calls @fn for each. */
void leat_check_each(struct leat_check *c, const char *section, const struct leat_yaml_node *node, void *array,
		     size_t size, leat_check_fn *fn);
/** The index of the port that @name says, or LEAT_PORTS_MAX, which is reported at the current place. */
unsigned int leat_check_port_index(const struct leat_check *c, const char *name);

/* ---- config_control.c ---- */

void leat_check_control(struct leat_check *c, const struct leat_yaml_node *node);

/* ---- config_fib.c ---- */

void leat_check_fib(struct leat_check *c, const struct leat_yaml_node *node);

/* ---- config_progs.c ---- */

void leat_check_progs(struct leat_check *c, const struct leat_yaml_node *node);
void leat_check_attach(struct leat_check *c, const struct leat_yaml_node *node);

#endif
