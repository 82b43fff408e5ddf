/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * objects.c: the eBPF objects of a configuration: found, opened, their variables set and their maps filled. Control
 * thread.
 *
 * A relative path is looked for in the folder of the configuration file, then in the folders of LEAT_OBJECT_PATH, then
 * in "examples/bpf" beside the running program (a build tree), then where this library installs its examples.
 */
#include "ctl/objects.h"

#include "base/heap.h"

#include <errno.h>
#include <linux/bpf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LEAT_OBJECT_DIR
#define LEAT_OBJECT_DIR "/usr/local/lib/leat/bpf"
#endif

void leat_objects_at(struct leat_diag *diag, const struct leat_config *config, struct leat_yaml_pos pos,
		     const char *prog, const char *key)
{
	char path[128];

	snprintf(path, sizeof(path), "programs.%s%s%s", prog, key ? "." : "", key ? key : "");
	leat_diag_at(diag, config->file, pos.line, pos.column, path);
}

/* ---- finding the file ---- */

/** A search for a file in one folder after the other. */
struct lookup {
	const char *file; /* as the configuration says it */
	bool found;
	char path[PATH_MAX];  /* what was found */
	char folders[512];    /* where it was looked for, as a list for people; cut to fit */
	size_t len;
};

static void try_folder(struct lookup *l, const char *folder, size_t len)
{
	size_t room = sizeof(l->folders) - l->len;
	int n;

	if (l->found || !len)
		return;
	n = snprintf(l->path, sizeof(l->path), "%.*s/%s", (int)len, folder, l->file);
	l->found = n > 0 && (size_t)n < sizeof(l->path) && !access(l->path, F_OK);
	n = snprintf(l->folders + l->len, room, "%s%.*s", l->len ? ", " : "", (int)len, folder);
	if (n > 0 && (size_t)n < room)
		l->len += (size_t)n;
	else
		l->folders[l->len] = '\0';
}

static void try_folders(struct lookup *l, const char *folders)
{
	size_t len;

	for (; folders && *folders; folders += len + (folders[len] == ':')) {
		len = strcspn(folders, ":");
		try_folder(l, folders, len);
	}
}

static void try_beside_program(struct lookup *l)
{
	char self[PATH_MAX], folder[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return;
	*slash = '\0';
	n = snprintf(folder, sizeof(folder), "%s/examples/bpf", self);
	try_folder(l, folder, (size_t)n);
}

/** The path of an object as it is to be opened, or NULL: it was not found in any of @l->folders. */
static const char *resolve(const struct leat_config *config, struct lookup *l)
{
	const char *slash = strrchr(config->file, '/');

	if (*l->file == '/')
		return l->file;
	if (!slash && !access(l->file, F_OK))
		return l->file;
	try_folder(l, slash ? config->file : ".", slash ? (size_t)(slash - config->file) : 1);
	try_folders(l, getenv("LEAT_OBJECT_PATH"));
	try_beside_program(l);
	try_folder(l, LEAT_OBJECT_DIR, strlen(LEAT_OBJECT_DIR));
	return l->found ? l->path : NULL;
}

/* ---- open and load ---- */

static void at_object(struct leat_diag *diag, const struct leat_config *config, unsigned int idx)
{
	leat_objects_at(diag, config, config->objects[idx].pos, config->objects[idx].prog, NULL);
}

/** Adds what was said of an object at the current place: each mistake's own place becomes part of its message. */
static void add_said(struct leat_diag *diag, const struct leat_diag *said)
{
	const struct leat_diag_entry *entry;
	char message[1024];
	unsigned int i;

	for (i = 0; (entry = leat_diag_get(said, i)); i++) {
		leat_diag_format(entry, message, sizeof(message));
		leat_diag_add(diag, "%s", message);
	}
}

int leat_objects_open(const struct leat_config *config, unsigned int idx, struct leat_bpf_env *env,
		      struct leat_diag *diag, struct leat_bpf_object **obj)
{
	struct lookup l = { .file = config->objects[idx].path };
	const char *path = resolve(config, &l);
	struct leat_diag *said;
	int err;

	at_object(diag, config, idx);
	if (!path) {
		leat_diag_add(diag, "there is no object '%s' in: %s", l.file, l.folders);
		return -ENOENT;
	}
	if (access(path, R_OK)) {
		err = -errno;
		leat_diag_add(diag, "object '%s': %s", path, strerror(-err));
		return err;
	}
	said = leat_diag_create();
	if (!said)
		return -ENOMEM;
	err = leat_bpf_object_open(env, path, NULL, said, obj);
	add_said(diag, said);
	leat_diag_destroy(said);
	return err;
}

int leat_objects_load(const struct leat_config *config, unsigned int idx, struct leat_bpf_object *obj,
		      struct leat_diag *diag)
{
	struct leat_diag *said = leat_diag_create();
	int err;

	at_object(diag, config, idx);
	if (!said)
		return -ENOMEM;
	err = leat_bpf_object_load(obj, NULL, said);
	add_said(diag, said);
	leat_diag_destroy(said);
	return err;
}

/* ---- before load ---- */

static int worse(int rc, int more)
{
	return !rc || more == -ENOMEM ? (more ? more : rc) : rc;
}

static int set_size(struct leat_bpf_object *obj, const struct leat_yaml_node *node, struct leat_diag *diag)
{
	static const struct leat_param entries = { .name = "entries", .kind = LEAT_PARAM_U32, .min = 1,
						   .max = UINT32_MAX };
	uint32_t n = 0;
	int rc = leat_param_set(&entries, &n, node->text, diag);

	if (rc)
		return rc;
	rc = leat_bpf_object_resize(obj, node->key, n);
	if (rc == -ENOENT)
		leat_diag_add(diag, "the object has no map '%.40s'", node->key);
	else if (rc)
		leat_diag_add(diag, "map '%.40s' cannot have %u entries", node->key, n);
	return rc;
}

int leat_objects_tune(const struct leat_config *config, const struct leat_config_prog *prog,
		      struct leat_bpf_object *obj, struct leat_diag *diag)
{
	const struct leat_config_tuning *tuning = &prog->tuning;
	const struct leat_yaml_node *node;
	int rc = 0;

	for (node = tuning->set ? tuning->set->first : NULL; node; node = node->next) {
		leat_objects_at(diag, config, node->pos, prog->name, "set");
		rc = worse(rc, leat_bpf_object_set(obj, node->key, node->text, diag));
	}
	for (node = tuning->entries ? tuning->entries->first : NULL; node; node = node->next) {
		leat_objects_at(diag, config, node->pos, prog->name, "entries");
		rc = worse(rc, set_size(obj, node, diag));
	}
	return rc;
}

/* ---- after load ---- */

/** The only program of an object that is for ports, or NULL. */
static struct leat_bpf_prog *only_prog(struct leat_bpf_object *obj)
{
	struct leat_bpf_prog *prog, *only = NULL;
	unsigned int i;

	for (i = 0; (prog = leat_bpf_object_prog_get(obj, i)); i++) {
		if (leat_bpf_prog_egress(prog))
			continue;
		if (only)
			return NULL;
		only = prog;
	}
	return only;
}

/** Says which programs there are, as @names. */
static void list_progs(struct leat_bpf_object *obj, char *names, size_t size)
{
	const struct leat_bpf_prog *prog;
	size_t len = 0;
	unsigned int i;

	*names = '\0';
	for (i = 0; (prog = leat_bpf_object_prog_get(obj, i)) && len < size; i++)
		len += (size_t)snprintf(names + len, size - len, "%s%s", i ? ", " : "", leat_bpf_prog_name(prog));
}

struct leat_bpf_prog *leat_objects_prog(const struct leat_config *config, const struct leat_config_prog *prog,
					struct leat_bpf_object *obj, struct leat_diag *diag)
{
	struct leat_bpf_prog *found = prog->prog ? leat_bpf_object_prog_find(obj, prog->prog) : only_prog(obj);
	char names[256];

	if (found && !leat_bpf_prog_egress(found))
		return found;
	leat_objects_at(diag, config, prog->pos, prog->name, NULL);
	list_progs(obj, names, sizeof(names));
	if (!*names)
		leat_diag_add(diag, "the object has no XDP program");
	else if (found)
		leat_diag_add(diag, "program '%.40s' is for packets that leave: it can be named in maps only",
			      prog->prog);
	else if (prog->prog)
		leat_diag_add(diag, "the object has no program '%.40s'; it has: %s", prog->prog, names);
	else
		leat_diag_add(diag, "the object has not just one program for ports, so 'prog' must name one of: %s",
			      names);
	return NULL;
}

/** One element on its way into a map. */
struct element {
	struct leat_bpf_map *map;
	struct leat_bpf_map_info info;
	uint8_t *key;
	uint8_t *values; /* info.value_bytes */
};

/** The text of a value: a scalar's, or an entry of a map of ports as JSON in @buf. NULL: none, which has been said. */
static const char *value_text(const struct element *e, const struct leat_yaml_node *node, char *buf, size_t size,
			      struct leat_diag *diag)
{
	bool ports = e->info.type == BPF_MAP_TYPE_DEVMAP || e->info.type == BPF_MAP_TYPE_DEVMAP_HASH;
	const struct leat_yaml_node *member = node->first;
	size_t len = 1;

	if (node->kind == LEAT_YAML_SCALAR)
		return node->text;
	if (!ports || node->kind != LEAT_YAML_MAP) {
		leat_diag_add(diag, "'%.40s' must have a single value", node->key);
		return NULL;
	}
	snprintf(buf, size, "{");
	for (; member && len < size; member = member->next) {
		if (member->kind != LEAT_YAML_SCALAR || strpbrk(member->key, "\"\\") || strpbrk(member->text, "\"\\"))
			break;
		len += (size_t)snprintf(buf + len, size - len, "\"%s\": \"%s\"%s", member->key, member->text,
					member->next ? ", " : "}");
	}
	if (!member && len < size)
		return node->first ? buf : "{}";
	leat_diag_add(diag, "'%.40s' must be a port, or { port: PORT, prog: PROGRAM }", node->key);
	return NULL;
}

static int write_element(struct element *e, const struct leat_yaml_node *node, struct leat_diag *diag)
{
	uint32_t off, stride = (e->info.value_size + 7) & ~7u;
	char buf[256];
	const char *text = value_text(e, node, buf, sizeof(buf), diag);
	int rc = text ? leat_bpf_map_parse_key(e->map, node->key, e->key, diag) : -EINVAL;

	if (!rc && e->info.nested)
		return leat_bpf_map_put_inner(e->map, e->key, text, diag);
	if (!rc)
		rc = leat_bpf_map_parse_value(e->map, text, e->values, diag);
	if (rc)
		return rc;
	for (off = stride; e->info.per_cpu && off < e->info.value_bytes; off += stride)
		memcpy(e->values + off, e->values, e->info.value_size);
	rc = leat_bpf_map_update(e->map, e->key, e->values, BPF_ANY);
	if (rc)
		leat_diag_add(diag, "map '%s' does not take the element: %s", e->info.name, strerror(-rc));
	return rc;
}

static int fill_map(const struct leat_config *config, const struct leat_config_prog *prog, struct leat_bpf_map *map,
		    const struct leat_yaml_node *elements, struct leat_diag *diag)
{
	const struct leat_yaml_node *node;
	struct element e = { .map = map };
	int rc = 0;

	leat_bpf_map_info(map, &e.info);
	e.key = leat_heap_zalloc(e.info.key_size);
	e.values = leat_heap_zalloc(e.info.value_bytes);
	if (!e.key || !e.values)
		rc = -ENOMEM;
	for (node = elements->first; !rc && node; node = node->next) {
		leat_objects_at(diag, config, node->key_pos, prog->name, "maps");
		memset(e.values, 0, e.info.value_bytes);
		rc = write_element(&e, node, diag);
	}
	leat_heap_free(e.key);
	leat_heap_free(e.values);
	return rc;
}

int leat_objects_fill(const struct leat_config *config, const struct leat_config_prog *prog,
		      struct leat_bpf_object *obj, struct leat_diag *diag)
{
	const struct leat_yaml_node *node;
	struct leat_bpf_map *map;
	int rc = 0;

	for (node = prog->tuning.maps ? prog->tuning.maps->first : NULL; node; node = node->next) {
		leat_objects_at(diag, config, node->key_pos, prog->name, "maps");
		map = leat_bpf_object_map_find(obj, node->key);
		if (!map)
			leat_diag_add(diag, "the object has no map '%.40s'", node->key);
		rc = worse(rc, map ? fill_map(config, prog, map, node, diag) : -ENOENT);
	}
	return rc;
}
