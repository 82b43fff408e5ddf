/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.c: an eBPF object from the file to the last close; object_load.c makes it ready to run. Programs and maps are
 * two arrays, numbered as in the image, whose copy they point into. Control thread.
 */
#include "bpf/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/opts.h"
#include "bpf/btf/btf.h"
#include "bpf/env.h"
#include "bpf/map/lock.h"

static const void *table(const struct leat_bpf_object *obj, const struct leat_image_table *t)
{
	return obj->image + t->off;
}

static int make_progs(struct leat_bpf_object *obj)
{
	const struct leat_image_prog *from = table(obj, &obj->head->progs);
	const struct bpf_insn *insns = table(obj, &obj->head->insns);
	const struct leat_image_line *lines = table(obj, &obj->head->lines);
	uint32_t i;

	obj->prog = leat_heap_zalloc(obj->head->progs.n * sizeof(*obj->prog));
	if (!obj->prog)
		return -ENOMEM;
	obj->n_progs = obj->head->progs.n;
	for (i = 0; i < obj->n_progs; i++)
		obj->prog[i] = (struct leat_bpf_prog){
			.obj = obj,
			.name = leat_image_string(obj->head, from[i].name),
			.section = leat_image_string(obj->head, from[i].section),
			.number = i,
			.flags = from[i].flags,
			.run_prio = from[i].run_prio,
			.chain_actions = from[i].chain_actions,
			.insn = insns + from[i].first_insn,
			.n_insns = from[i].n_insns,
			.line = lines + from[i].first_line,
			.n_lines = from[i].n_lines,
		};
	return 0;
}

static void define_map(struct leat_bpf_object *obj, uint32_t idx)
{
	const struct leat_image_map *from = leat_object_image_map(obj, idx);
	struct leat_bpf_map *map = &obj->map[idx];

	*map = (struct leat_bpf_map){
		.type = leat_bpf_map_type_find(from->type),
		.env = obj->env,
		.obj = obj,
		.number = idx,
		.key_size = from->key_size,
		.value_size = from->value_size,
		.max_entries = from->max_entries,
		.map_flags = from->map_flags,
		.internal = from->flags & LEAT_IMAGE_MAP_INTERNAL,
		.btf_key = from->btf_key,
		.btf_value = from->btf_value,
		.inner = from->inner ? &obj->map[from->inner - 1] : NULL,
		.template = from->flags & LEAT_IMAGE_MAP_TEMPLATE,
	};
	map->value_stride = map->value_size <= UINT32_MAX - 7 ? (map->value_size + 7) & ~7u : 0;
	map->cpus = map->type && (map->type->flags & LEAT_BPF_MAP_PER_CPU) ? obj->env->cpus : 1;
	snprintf(map->name, sizeof(map->name), "%s", leat_image_string(obj->head, from->name));
}

static uint64_t table_size(const struct leat_bpf_object *obj)
{
	return (1 + (uint64_t)obj->head->maps.n + obj->max_later) * sizeof(*obj->map);
}

/* The table must not move: programs have addresses of maps. So it has room for all that may ever be made. */
static int make_maps(struct leat_bpf_object *obj)
{
	uint32_t i;

	for (i = 0; i < obj->head->maps.n && !obj->max_later; i++)
		obj->max_later = leat_object_image_map(obj, i)->inner ? LEAT_BPF_INNER_MAX : 0;
	obj->map = leat_bpf_pages_alloc(table_size(obj));
	if (!obj->map)
		return -ENOMEM;
	obj->n_maps = obj->head->maps.n;
	for (i = 0; i < obj->n_maps; i++)
		define_map(obj, i);
	return 0;
}

/* Makes an object of a checked image. */
static int fill(struct leat_bpf_object *obj, struct leat_diag *diag)
{
	uint32_t i;
	int err;

	pthread_mutex_init(&obj->nested_lock, NULL);
	err = make_progs(obj);
	if (!err)
		err = make_maps(obj);
	if (!err && obj->head->btf.n)
		err = leat_btf_create(table(obj, &obj->head->btf), obj->head->btf.n, diag, &obj->btf);
	for (i = 0; !err && i < obj->n_maps; i++)
		leat_bpf_lock_find(&obj->map[i], obj->btf);
	return err;
}

/* Takes @image over, also on failure. */
static int open_own(struct leat_bpf_env *env, uint8_t *image, size_t len, struct leat_diag *diag,
		    struct leat_bpf_object **out)
{
	struct leat_bpf_object *obj;
	int err;

	err = leat_image_check(image, len, diag);
	obj = err ? NULL : leat_heap_zalloc(sizeof(*obj));
	if (!obj) {
		leat_heap_free(image);
		return err ? err : -ENOMEM;
	}
	obj->env = env;
	obj->image = image;
	obj->head = (const void *)image;
	err = fill(obj, diag);
	if (err) {
		leat_bpf_object_close(obj);
		return err;
	}
	*out = obj;
	return 0;
}

int leat_bpf_object_open_image(struct leat_bpf_env *env, const void *image, size_t len, struct leat_diag *diag,
			       struct leat_bpf_object **obj)
{
	uint8_t *own;

	if (len > LEAT_IMAGE_SIZE_MAX) {
		leat_diag_add(diag, "this is no image of an eBPF object: it has %zu bytes", len);
		return -EINVAL;
	}
	own = leat_heap_zalloc(len);
	if (!own)
		return -ENOMEM;
	if (len)
		memcpy(own, image, len);
	return open_own(env, own, len, diag, obj);
}

int leat_bpf_object_open(struct leat_bpf_env *env, const char *path, const struct leat_bpf_object_opts *opts,
			 struct leat_diag *diag, struct leat_bpf_object **obj)
{
	struct leat_bpf_object_opts own;
	void *image;
	size_t len;
	int err;

	err = leat_opts_copy(&own, sizeof(own), opts);
	if (err)
		return err;
	leat_diag_at(diag, path, 0, 0, NULL);
	err = leat_bpf_loader_run(path, &own, diag, &image, &len);
	if (!err)
		err = open_own(env, image, len, diag, obj);
	if (!err)
		(*obj)->strict = own.strict;
	return err;
}

void leat_bpf_object_close(struct leat_bpf_object *obj)
{
	if (!obj)
		return;
	leat_object_unload(obj);
	leat_btf_destroy(obj->btf);
	leat_bpf_pages_free(obj->map, table_size(obj));
	leat_heap_free(obj->prog);
	leat_heap_free(obj->image);
	leat_heap_free(obj);
}

int leat_bpf_object_resize(struct leat_bpf_object *obj, const char *name, uint32_t max_entries)
{
	struct leat_bpf_map *map = leat_bpf_object_map_find(obj, name);

	if (!map)
		return -ENOENT;
	if (obj->loaded || !max_entries || map->internal)
		return -EINVAL;
	map->max_entries = max_entries;
	return 0;
}

/* ---- finding ---- */

const char *leat_bpf_object_license(const struct leat_bpf_object *obj)
{
	return leat_image_string(obj->head, obj->head->license);
}

struct leat_bpf_prog *leat_bpf_object_prog_get(struct leat_bpf_object *obj, unsigned int idx)
{
	return idx < obj->n_progs ? &obj->prog[idx] : NULL;
}

/*
 * Whether a map can be looked at: not templates, types that we do not have, and maps that were not needed or are going.
 */
static bool is_there(const struct leat_bpf_object *obj, uint32_t idx)
{
	if (idx >= obj->n_maps)
		return leat_bpf_map_is_made(&obj->map[idx]) && obj->map[idx].holders;
	if (leat_object_image_map(obj, idx)->flags & LEAT_IMAGE_MAP_TEMPLATE)
		return false;
	return obj->map[idx].type && (obj->map[idx].made || !obj->loaded);
}

struct leat_bpf_map *leat_bpf_object_map_get(struct leat_bpf_object *obj, unsigned int idx)
{
	uint32_t i;

	for (i = 0; i < leat_bpf_object_maps(obj); i++)
		if (is_there(obj, i) && !idx--)
			return &obj->map[i];
	return NULL;
}

struct leat_bpf_prog *leat_bpf_object_prog_find(struct leat_bpf_object *obj, const char *name)
{
	uint32_t i;

	for (i = 0; i < obj->n_progs; i++)
		if (!strcmp(obj->prog[i].name, name))
			return &obj->prog[i];
	for (i = 0; i < obj->n_progs; i++)
		if (!strcmp(obj->prog[i].section, name))
			return &obj->prog[i];
	return NULL;
}

struct leat_bpf_map *leat_bpf_object_map_find(struct leat_bpf_object *obj, const char *name)
{
	const char *own;
	uint32_t i;

	for (i = 0; i < leat_bpf_object_maps(obj); i++) {
		/* a map's own copy may be cut short */
		own = i < obj->n_maps ? leat_image_string(obj->head, leat_object_image_map(obj, i)->name) :
					obj->map[i].name;
		if (is_there(obj, i) && !strcmp(own, name))
			return &obj->map[i];
	}
	return NULL;
}
