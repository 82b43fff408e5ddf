/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yaml_tree.c: libyaml's events (YAML 1.1) made into our tree. Control thread.
 *
 * Events and not libyaml's documents: those resolve aliases, which costs the square of their number, and keep
 * memory that a test cannot refuse. libcyaml was looked at: it stops at the first mistake and keeps no lines.
 */
#include "ctl/yaml_tree.h"

#include "base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

struct leat_yaml_tree {
	struct leat_yaml_node *root;
	struct leat_yaml_node *all;
	unsigned int n;
};

/* A mapping or list that is still being read. */
struct level {
	struct leat_yaml_node *node;
	struct leat_yaml_node **tail; /* where its next value is linked in */
	struct leat_yaml_node *key;   /* a key that waits for its value, or NULL */
};

struct builder {
	struct leat_yaml_tree *tree;
	struct leat_diag *diag;
	const char *name;
	yaml_event_t event; /* the current one */
	struct level level[LEAT_YAML_DEPTH_MAX];
	unsigned int depth;
	unsigned int documents;
};

static struct leat_yaml_pos mark_pos(const yaml_mark_t *mark)
{
	return (struct leat_yaml_pos){ (unsigned int)mark->line + 1, (unsigned int)mark->column + 1 };
}

static int refuse(const struct builder *b, const char *message)
{
	struct leat_yaml_pos pos = mark_pos(&b->event.start_mark);

	leat_diag_at(b->diag, b->name, pos.line, pos.column, NULL);
	leat_diag_add(b->diag, "%s", message);
	return -EINVAL;
}

/* ---- nodes ---- */

static struct leat_yaml_node *new_node(struct builder *b, const char *key)
{
	size_t key_len = strlen(key);
	struct leat_yaml_node *node = leat_heap_zalloc(sizeof(*node) + key_len + 1);

	if (!node)
		return NULL;
	memcpy(node->key, key, key_len);
	node->key_pos = mark_pos(&b->event.start_mark);
	node->all = b->tree->all;
	b->tree->all = node;
	b->tree->n++;
	return node;
}

static int link_in(struct builder *b, struct leat_yaml_node *node)
{
	struct level *level = &b->level[b->depth - 1];

	if (level->node->n >= LEAT_YAML_CHILDREN_MAX)
		return refuse(b, "too many values in one mapping or list: at most 4096 are taken");
	level->node->n++;
	*level->tail = node;
	level->tail = &node->next;
	level->key = NULL;
	return 0;
}

/* The node for a value that begins: the one its key has made, or a new one. */
static int place_node(struct builder *b, struct leat_yaml_node **node)
{
	struct level *level = b->depth ? &b->level[b->depth - 1] : NULL;

	if (b->tree->n >= LEAT_YAML_NODES_MAX)
		return refuse(b, "too many values: at most 65536 are taken");
	if (level && level->node->kind == LEAT_YAML_MAP && !level->key)
		return refuse(b, "a key must be a word, not a mapping or a list");
	*node = level && level->key ? level->key : new_node(b, "");
	if (!*node)
		return -ENOMEM;
	(*node)->pos = mark_pos(&b->event.start_mark);
	if (!level) {
		b->tree->root = *node;
		return 0;
	}
	return link_in(b, *node);
}

/* ---- events ---- */

static bool is_null(const yaml_event_t *event)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	size_t i;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp((const char *)event->data.scalar.value, words[i]))
			return true;
	return false;
}

static int take_key(struct builder *b, struct level *level)
{
	level->key = new_node(b, (const char *)b->event.data.scalar.value);
	return level->key ? 0 : -ENOMEM;
}

static int on_scalar(struct builder *b)
{
	struct level *level = b->depth ? &b->level[b->depth - 1] : NULL;
	const yaml_event_t *event = &b->event;
	struct leat_yaml_node *node;
	int rc;

	if (event->data.scalar.anchor || event->data.scalar.tag)
		return refuse(b, "anchors, aliases and tags are not supported: write the value out");
	if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
		return refuse(b, "a value must not hold a NUL character");
	if (level && level->node->kind == LEAT_YAML_MAP && !level->key)
		return take_key(b, level);
	rc = place_node(b, &node);
	if (rc || is_null(event))
		return rc;
	node->kind = LEAT_YAML_SCALAR;
	node->text = leat_heap_strdup((const char *)event->data.scalar.value);
	return node->text ? 0 : -ENOMEM;
}

static int on_alias(struct builder *b)
{
	return refuse(b, "anchors, aliases and tags are not supported: write the value out");
}

static int open_level(struct builder *b, enum leat_yaml_kind kind, bool decorated)
{
	struct leat_yaml_node *node;
	int rc;

	if (decorated)
		return on_alias(b);
	if (b->depth == LEAT_YAML_DEPTH_MAX)
		return refuse(b, "too many mappings or lists within each other");
	rc = place_node(b, &node);
	if (rc)
		return rc;
	node->kind = kind;
	b->level[b->depth++] = (struct level){ .node = node, .tail = &node->first };
	return 0;
}

static int on_map_start(struct builder *b)
{
	return open_level(b, LEAT_YAML_MAP, b->event.data.mapping_start.anchor || b->event.data.mapping_start.tag);
}

static int on_list_start(struct builder *b)
{
	return open_level(b, LEAT_YAML_LIST, b->event.data.sequence_start.anchor || b->event.data.sequence_start.tag);
}

static int on_end(struct builder *b)
{
	b->depth--;
	return 0;
}

static int on_document(struct builder *b)
{
	return b->documents++ ? refuse(b, "a second document begins: one file holds one") : 0;
}

typedef int event_fn(struct builder *b);

static event_fn *const on_event[] = {
	[YAML_DOCUMENT_START_EVENT] = on_document,
	[YAML_ALIAS_EVENT] = on_alias,
	[YAML_SCALAR_EVENT] = on_scalar,
	[YAML_SEQUENCE_START_EVENT] = on_list_start,
	[YAML_SEQUENCE_END_EVENT] = on_end,
	[YAML_MAPPING_START_EVENT] = on_map_start,
	[YAML_MAPPING_END_EVENT] = on_end,
};

/* ---- what libyaml refuses ---- */

/* The place of the @offset-th byte: the reader knows no lines. */
static struct leat_yaml_pos offset_pos(const char *text, size_t len, size_t offset)
{
	struct leat_yaml_pos pos = { 1, 1 };
	size_t i;

	for (i = 0; i < offset && i < len; i++) {
		pos.column += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (text[i] == '\n')
			pos = (struct leat_yaml_pos){ pos.line + 1, 1 };
	}
	return pos;
}

static int parser_error(const struct builder *b, const yaml_parser_t *parser, const char *text, size_t len)
{
	struct leat_yaml_pos pos = mark_pos(&parser->problem_mark);
	const char *problem = parser->problem ? parser->problem : "is not valid";

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->error == YAML_READER_ERROR)
		pos = offset_pos(text, len, parser->problem_offset);
	leat_diag_at(b->diag, b->name, pos.line, pos.column, NULL);
	if (parser->error == YAML_READER_ERROR && parser->problem_value == 0)
		leat_diag_add(b->diag, "this is not text: it holds a NUL character");
	else if (parser->error == YAML_READER_ERROR)
		leat_diag_add(b->diag, "this is not UTF-8 text: %s", problem);
	else if (parser->context)
		leat_diag_add(b->diag, "this is not valid YAML: %s, %s (line %zu)", problem, parser->context,
			      parser->context_mark.line + 1);
	else
		leat_diag_add(b->diag, "this is not valid YAML: %s", problem);
	return -EINVAL;
}

static int read_events(struct builder *b, yaml_parser_t *parser, const char *text, size_t len)
{
	bool ended = false;
	size_t type;
	int rc = 0;

	while (!rc && !ended) {
		if (!yaml_parser_parse(parser, &b->event))
			return parser_error(b, parser, text, len);
		type = (size_t)b->event.type;
		ended = type == YAML_STREAM_END_EVENT;
		if (type < sizeof(on_event) / sizeof(on_event[0]) && on_event[type])
			rc = on_event[type](b);
		yaml_event_delete(&b->event);
	}
	return rc;
}

/* ---- keys that stand twice ---- */

static void mark_again(struct builder *b, const struct leat_yaml_node *first, const char *path)
{
	struct leat_yaml_node *node;

	for (node = first->next; node; node = node->next) {
		if (node->again || strcmp(node->key, first->key) != 0)
			continue;
		node->again = true;
		leat_diag_at(b->diag, b->name, node->key_pos.line, node->key_pos.column, path);
		leat_diag_add(b->diag, "'%.64s' is given twice; the first stands in line %u", node->key,
			      first->key_pos.line);
	}
}

/* No deeper than LEAT_YAML_DEPTH_MAX. */
static void find_again(struct builder *b, const struct leat_yaml_node *parent, const char *path)
{
	const struct leat_yaml_node *node;
	char below[256];

	for (node = parent->first; node; node = node->next) {
		if (parent->kind == LEAT_YAML_MAP && !node->again)
			mark_again(b, node, path);
		if (!node->first)
			continue;
		snprintf(below, sizeof(below), "%s%s%s", path, *path && *node->key ? "." : "", node->key);
		find_again(b, node, below);
	}
}

/* ---- the whole ---- */

int leat_yaml_parse(const char *text, size_t len, const char *name, struct leat_diag *diag,
		    struct leat_yaml_tree **tree)
{
	struct builder b = { .diag = diag, .name = name };
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	b.tree = leat_heap_zalloc(sizeof(*b.tree));
	rc = -ENOMEM;
	if (!b.tree)
		goto delete_parser;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	rc = read_events(&b, &parser, text, len);
	if (rc)
		goto free_tree;
	if (b.tree->root)
		find_again(&b, b.tree->root, "");
	*tree = b.tree;
	goto delete_parser;
free_tree:
	leat_yaml_free(b.tree);
delete_parser:
	yaml_parser_delete(&parser);
	return rc;
}

void leat_yaml_free(struct leat_yaml_tree *tree)
{
	struct leat_yaml_node *node, *next;

	if (!tree)
		return;
	for (node = tree->all; node; node = next) {
		next = node->all;
		leat_heap_free(node->text);
		leat_heap_free(node);
	}
	leat_heap_free(tree);
}

const struct leat_yaml_node *leat_yaml_root(const struct leat_yaml_tree *tree)
{
	return tree->root;
}

const struct leat_yaml_node *leat_yaml_get(const struct leat_yaml_node *map, const char *key)
{
	const struct leat_yaml_node *node;

	for (node = map->kind == LEAT_YAML_MAP ? map->first : NULL; node; node = node->next)
		if (!strcmp(node->key, key))
			return node;
	return NULL;
}

/* ---- the file ---- */

static int read_error(const char *file, struct leat_diag *diag, const char *what, int error)
{
	leat_diag_at(diag, file, 0, 0, NULL);
	if (error == EFBIG)
		leat_diag_add(diag, "%s", what);
	else
		leat_diag_add(diag, "%s: %s", what, strerror(error));
	return -error;
}

/* Reads until the end, at most @room bytes. Returns bytes or a negative errno. */
static ssize_t read_all(int fd, char *buf, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while (len < room) {
		n = read(fd, buf + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int leat_yaml_read_file(const char *file, struct leat_diag *diag, char **text, size_t *len)
{
	ssize_t n;
	char *buf;
	int fd, rc = -ENOMEM;

	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return read_error(file, diag, "cannot be opened", errno);
	buf = leat_heap_zalloc(LEAT_YAML_SIZE_MAX + 1);
	if (!buf)
		goto close_file;
	n = read_all(fd, buf, LEAT_YAML_SIZE_MAX + 1);
	if (n < 0)
		rc = read_error(file, diag, "cannot be read", (int)-n);
	else if (n > (ssize_t)LEAT_YAML_SIZE_MAX)
		rc = read_error(file, diag, "is larger than 1 MiB", EFBIG);
	else
		rc = 0;
	if (rc) {
		leat_heap_free(buf);
		goto close_file;
	}
	*text = buf;
	*len = (size_t)n;
close_file:
	close(fd);
	return rc;
}
