/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yaml_tree.h: a YAML document as a tree in which everything knows its line and column.
 *
 *   root (MAP) -> first: "ports" (MAP) -> next: "bridges" (MAP) -> ...
 *                   |
 *                 first: "lan" (MAP) -> next: "vm0" ...
 *
 * The file may be hostile: its size, depth and number of values are bounded, and what can make a small file a large
 * document (anchors, aliases, tags) is refused.
 */
#ifndef LEAT_CTL_YAML_TREE_H
#define LEAT_CTL_YAML_TREE_H

#include <leat/diag.h>

/** Longest file, bytes. */
#define LEAT_YAML_SIZE_MAX (1u << 20)
/** Mappings and lists within each other. */
#define LEAT_YAML_DEPTH_MAX 16u
/** Values of one document. */
#define LEAT_YAML_NODES_MAX 65536u
/** Values of one mapping or list. */
#define LEAT_YAML_CHILDREN_MAX 4096u

enum leat_yaml_kind {
	LEAT_YAML_NULL, /* nothing, ~ or null */
	LEAT_YAML_SCALAR,
	LEAT_YAML_LIST,
	LEAT_YAML_MAP,
};

struct leat_yaml_pos {
	unsigned int line, column; /* from 1 */
};

struct leat_yaml_node {
	enum leat_yaml_kind kind;
	struct leat_yaml_pos pos;     /* of the value */
	struct leat_yaml_pos key_pos; /* in a mapping: of the key */
	struct leat_yaml_node *next;  /* the following value of the same mapping or list */
	struct leat_yaml_node *first; /* MAP and LIST: the first of @n values */
	struct leat_yaml_node *all;   /* every node of the tree, for the end */
	unsigned int n;
	bool again;                   /* in a mapping: the key has stood before, which has been reported */
	char *text;                   /* SCALAR: the text; else NULL */
	char key[];                   /* in a mapping; else "" */
};

struct leat_yaml_tree;

/**
 * Makes a tree of a document (@len bytes at @text; @name stands for the file in messages). A key that stands twice in
 * a mapping is added to @diag and marked, and the tree is made. *control*.
 * Returns 0; -EINVAL when it is no YAML document that we take (said in @diag); -ENOMEM.
 */
int leat_yaml_parse(const char *text, size_t len, const char *name, struct leat_diag *diag,
		    struct leat_yaml_tree **tree);
/** NULL is allowed. */
void leat_yaml_free(struct leat_yaml_tree *tree);
/** The outermost value; NULL for a document without any. */
const struct leat_yaml_node *leat_yaml_root(const struct leat_yaml_tree *tree);

/** The value of @key in a mapping, or NULL. */
const struct leat_yaml_node *leat_yaml_get(const struct leat_yaml_node *map, const char *key);

/**
 * Reads @file whole (any kind that can be read to an end); put @text back with leat_heap_free().
 * Returns 0; the errno of opening or reading it, -EISDIR, -EFBIG (all said in @diag); -ENOMEM.
 */
int leat_yaml_read_file(const char *file, struct leat_diag *diag, char **text, size_t *len);

#endif
