/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inner.c: inner maps for control: made like a template after their object was loaded, put into maps of maps, given up.
 * nested.h has the theory of operation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bpf/env.h"
#include "bpf/map/mem.h"
#include "bpf/map/nested.h"
#include "bpf/prog.h"

/* ---- coming and going: under the object's lock ---- */

static bool was_made_later(const struct leat_bpf_map *map)
{
	return map->number >= map->obj->n_maps;
}

struct leat_bpf_map *leat_bpf_inner_find(struct leat_bpf_object *obj, uint32_t number)
{
	struct leat_bpf_map *map = &obj->map[number];

	if (number >= obj->n_maps + obj->n_later || !leat_bpf_map_is_made(map) || map->template)
		return NULL;
	return was_made_later(map) && !map->holders ? NULL : map;
}

void leat_bpf_inner_hold(struct leat_bpf_map *map)
{
	map->holders++;
}

void leat_bpf_inner_drop(struct leat_bpf_map *map)
{
	if (!map || --map->holders || !was_made_later(map))
		return;
	map->grace = leat_epoch_begin(map->env->epoch);
	map->next = map->obj->going;
	map->obj->going = map;
}

/** Carries on with a map that goes. Whether it has gone. */
static bool has_gone(struct leat_bpf_map *map)
{
	while (leat_epoch_passed(map->env->epoch, map->grace)) {
		if (!leat_bpf_map_is_made(map)) {
			leat_bpf_map_destroy(map);
			return true;
		}
		__atomic_store_n(&map->made, false, __ATOMIC_RELEASE);
		map->grace = leat_epoch_begin(map->env->epoch);
	}
	return false;
}

void leat_bpf_inner_reap(struct leat_bpf_object *obj)
{
	struct leat_bpf_map **link = &obj->going, *map;

	while ((map = *link)) {
		if (!has_gone(map)) {
			link = &map->next;
			continue;
		}
		*link = map->next;
		map->next = obj->free_place;
		obj->free_place = map;
	}
}

static struct leat_bpf_map *take_place(struct leat_bpf_object *obj)
{
	struct leat_bpf_map *map = obj->free_place;

	if (map)
		obj->free_place = map->next;
	else if (obj->n_later < obj->max_later)
		map = &obj->map[obj->n_maps + obj->n_later];
	return map;
}

static int make_like(struct leat_bpf_map *map, const struct leat_bpf_map *template, const char *name, uint32_t max_entries)
{
	const uint32_t number = (uint32_t)(map - template->obj->map);

	/* made stays false while workers may look, and next is ours */
	map->type = template->type;
	map->env = template->env;
	map->obj = template->obj;
	map->number = number;
	map->key_size = template->key_size;
	map->value_size = template->value_size;
	map->max_entries = max_entries ? max_entries : template->max_entries;
	map->map_flags = template->map_flags;
	map->btf_key = template->btf_key;
	map->btf_value = template->btf_value;
	map->lock = template->lock;
	map->lost = 0;
	snprintf(map->name, sizeof(map->name), "%s", name);
	return leat_bpf_map_fits(template, map) ? leat_bpf_map_create(map, NULL) : -EINVAL;
}

static int make_locked(struct leat_bpf_map *outer, const char *name, uint32_t max_entries, struct leat_bpf_map **inner)
{
	struct leat_bpf_object *obj = outer->obj;
	struct leat_bpf_map *map;
	int err;

	leat_bpf_inner_reap(obj);
	map = take_place(obj);
	if (!map)
		return -ENOSPC;
	err = make_like(map, outer->inner, name, max_entries);
	if (map->number == obj->n_maps + obj->n_later) /* pairs with leat_bpf_object_maps() */
		__atomic_store_n(&obj->n_later, obj->n_later + 1, __ATOMIC_RELEASE);
	if (err) {
		map->next = obj->free_place;
		obj->free_place = map;
		return err;
	}
	map->holders = 1;
	__atomic_store_n(&map->made, true, __ATOMIC_RELEASE); /* pairs with leat_bpf_map_is_made() */
	*inner = map;
	return 0;
}

void leat_bpf_nested_end(struct leat_bpf_object *obj)
{
	uint32_t i;

	for (i = obj->n_maps; i < obj->n_maps + obj->n_later; i++) {
		if (obj->map[i].priv)
			leat_bpf_map_destroy(&obj->map[i]);
		obj->map[i].made = false;
	}
	obj->n_later = 0;
	obj->going = obj->free_place = NULL;
}

/* ---- control ---- */

static bool can_hold_maps(const struct leat_bpf_map *map)
{
	return (map->type->flags & LEAT_BPF_MAP_NESTED) && leat_bpf_map_is_made(map);
}

uint32_t leat_bpf_map_number(const struct leat_bpf_map *map)
{
	return map->number;
}

int leat_bpf_map_make_inner(struct leat_bpf_map *outer, const char *name, uint32_t max_entries,
			    struct leat_bpf_map **inner)
{
	int err;

	if (!can_hold_maps(outer))
		return -EINVAL;
	pthread_mutex_lock(&outer->obj->nested_lock);
	err = make_locked(outer, name, max_entries, inner);
	pthread_mutex_unlock(&outer->obj->nested_lock);
	return err;
}

void leat_bpf_map_release(struct leat_bpf_map *map)
{
	struct leat_bpf_object *obj = map->obj;

	if (!was_made_later(map))
		return;
	pthread_mutex_lock(&obj->nested_lock);
	leat_bpf_inner_drop(map);
	leat_bpf_inner_reap(obj);
	pthread_mutex_unlock(&obj->nested_lock);
}

int leat_bpf_map_set_inner(struct leat_bpf_map *outer, const void *key, struct leat_bpf_map *inner, uint64_t flags)
{
	if (!can_hold_maps(outer) || inner->obj != outer->obj)
		return -EINVAL;
	return leat_bpf_map_update(outer, key, &inner->number, flags);
}

/* ---- by name ---- */

/** "new", "new:N", or the name that it will have. Whether @text is that; *@entries: N, or 0. */
static bool asks_for_new(const char *text, const char *name, uint32_t *entries)
{
	unsigned long n = 0;
	char *end = NULL;

	*entries = 0;
	if (!strcmp(text, name))
		return true;
	if (strncmp(text, "new", 3) != 0 || (text[3] && text[3] != ':'))
		return false;
	if (text[3]) {
		n = text[4] >= '1' && text[4] <= '9' ? strtoul(text + 4, &end, 10) : 0;
		if (!n || *end || n > UINT32_MAX)
			return false;
	}
	*entries = (uint32_t)n;
	return true;
}

/** "OUTER[KEY]" */
static void name_inner(const struct leat_bpf_map *outer, const void *key, char *name, size_t size)
{
	char text[40];

	if (leat_bpf_map_format_key(outer, key, text, sizeof(text)) < 0)
		text[0] = '\0';
	snprintf(name, size, "%.20s[%.40s]", outer->name, text);
}

static int put_new(struct leat_bpf_map *outer, const void *key, const char *name, uint32_t entries,
		   struct leat_diag *diag)
{
	struct leat_bpf_map *inner = NULL;
	int err;

	err = leat_bpf_map_make_inner(outer, name, entries, &inner);
	if (!err) {
		err = leat_bpf_map_set_inner(outer, key, inner, BPF_ANY);
		leat_bpf_map_release(inner); /* the entry holds it */
	}
	if (err)
		leat_diag_add(diag, "map '%s' does not take a new map: %s", outer->name, strerror(-err));
	return err;
}

int leat_bpf_map_put_inner(struct leat_bpf_map *outer, const void *key, const char *text, struct leat_diag *diag)
{
	struct leat_bpf_map *inner = leat_bpf_object_map_find(outer->obj, text);
	uint32_t entries;
	char name[64];
	int err;

	name_inner(outer, key, name, sizeof(name));
	if (!inner && asks_for_new(text, name, &entries))
		return put_new(outer, key, name, entries, diag);
	if (!inner) {
		leat_diag_add(diag, "map '%s' holds maps, and there is no map '%.64s' (nor is it 'new' or 'new:N')",
			      outer->name, text);
		return -ENOENT;
	}
	err = leat_bpf_map_set_inner(outer, key, inner, BPF_ANY);
	if (err == -EINVAL)
		leat_diag_add(diag, "map '%s' does not take map '%s', which is not like its template", outer->name,
			      inner->name);
	else if (err)
		leat_diag_add(diag, "map '%s' does not take map '%s': %s", outer->name, inner->name, strerror(-err));
	return err;
}
