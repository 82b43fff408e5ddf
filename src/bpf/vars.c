/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vars.c: sets global variables of an object by name, in the image's copy of .rodata, .data and .bss, before the maps
 * that hold them are made. Control thread.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "bpf/btf/bits.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"

#define NAME_MAX_LEN 255

/* A walk along "cfg.table[3]": what is left of it, and where it has come to. */
struct walk {
	const struct leat_btf *btf;
	const char *name; /* as given, for people */
	const char *rest;
	struct leat_btf_place place;
};

static const struct leat_image_map *image_map(const struct leat_bpf_object *obj, uint32_t idx)
{
	const void *maps = obj->image + obj->head->maps.off;

	return (const struct leat_image_map *)maps + idx;
}

static int not_found(struct leat_diag *diag, const char *what, const char *name, const struct leat_suggest *suggest)
{
	if (suggest->best)
		leat_diag_add(diag, "no %s '%.80s' (did you mean '%.80s'?)", what, name, suggest->best);
	else
		leat_diag_add(diag, "no %s '%.80s'", what, name);
	return -ENOENT;
}

/* Takes a word off the walk, up to '.' or '['. */
static int take_word(struct walk *w, char word[NAME_MAX_LEN + 1], struct leat_diag *diag)
{
	size_t len = strcspn(w->rest, ".[");

	if (!len || len > NAME_MAX_LEN) {
		leat_diag_add(diag, "'%.80s' is not the name of a variable (like limit, cfg.limit or table[3])",
			      w->name);
		return -EINVAL;
	}
	memcpy(word, w->rest, len);
	word[len] = '\0';
	w->rest += len;
	return 0;
}

/* A variable lies where its section says; that the map has as many bytes is for us to look at. */
static bool lies_within(const struct leat_btf *btf, const struct leat_btf_member *var, const struct leat_image_map *map)
{
	uint32_t off = var->bit_off / 8, size = leat_btf_size(btf, var->type);

	return size && off <= map->data.n && size <= map->data.n - off;
}

/* Finds variable @word in the sections of @obj. */
static int find_var(struct leat_bpf_object *obj, struct walk *w, const char *word, struct leat_diag *diag)
{
	struct leat_suggest suggest = { .word = word };
	const struct leat_image_map *map;
	struct leat_btf_member var;
	uint32_t i, k, n;

	for (i = 0; i < obj->head->maps.n; i++) {
		map = image_map(obj, i);
		if (!(map->flags & LEAT_IMAGE_MAP_INTERNAL) ||
		    leat_btf_kind(obj->btf, map->btf_value) != BTF_KIND_DATASEC)
			continue;
		n = leat_btf_n_members(obj->btf, map->btf_value);
		for (k = 0; k < n; k++) {
			leat_btf_member(obj->btf, map->btf_value, k, &var);
			if (!lies_within(obj->btf, &var, map))
				continue;
			leat_suggest_try(&suggest, var.name);
			if (strcmp(var.name, word) != 0)
				continue;
			leat_btf_place_member(obj->image + obj->head->data.off + map->data.off, &var, &w->place);
			return 0;
		}
	}
	return not_found(diag, "global variable", word, &suggest);
}

static int step_member(struct walk *w, struct leat_diag *diag)
{
	uint32_t id = leat_btf_strip(w->btf, w->place.type), i, n = leat_btf_n_members(w->btf, id);
	char word[NAME_MAX_LEN + 1];
	struct leat_suggest suggest = { .word = word };
	struct leat_btf_member member;
	int err;

	w->rest++;
	err = take_word(w, word, diag);
	if (err)
		return err;
	if (!w->place.bits && !leat_btf_find_member(w->btf, id, word, &member)) {
		leat_btf_place_member(w->place.bytes, &member, &w->place);
		return 0;
	}
	for (i = 0; i < n; i++) {
		leat_btf_member(w->btf, id, i, &member);
		leat_suggest_try(&suggest, member.name);
	}
	return not_found(diag, "member", word, &suggest);
}

static int step_index(struct walk *w, struct leat_diag *diag)
{
	uint32_t id = leat_btf_strip(w->btf, w->place.type);
	const struct btf_array *array;
	unsigned long idx;
	char *end;

	idx = isdigit((unsigned char)w->rest[1]) ? strtoul(w->rest + 1, &end, 0) : (end = NULL, 0);
	if (!end || *end != ']' || (end[1] && !strchr(".[", end[1]))) {
		leat_diag_add(diag, "a number and ']' must follow '['");
		return -EINVAL;
	}
	if (w->place.bits || leat_btf_kind(w->btf, id) != BTF_KIND_ARRAY) {
		leat_diag_add(diag, "'%.*s' is not an array", (int)(w->rest - w->name), w->name);
		return -EINVAL;
	}
	array = leat_btf_array(w->btf, id);
	if (idx >= array->nelems) {
		leat_diag_add(diag, "the array has %u elements", array->nelems);
		return -EINVAL;
	}
	w->place.type = array->type;
	w->place.bytes += idx * leat_btf_size(w->btf, array->type);
	w->rest = end + 1;
	return 0;
}

static int walk_to(struct leat_bpf_object *obj, struct walk *w, struct leat_diag *diag)
{
	char word[NAME_MAX_LEN + 1];
	int err = take_word(w, word, diag);

	if (!err)
		err = find_var(obj, w, word, diag);
	while (!err && *w->rest)
		err = *w->rest == '[' ? step_index(w, diag) : step_member(w, diag);
	return err;
}

int leat_bpf_object_set(struct leat_bpf_object *obj, const char *name, const char *text, struct leat_diag *diag)
{
	struct walk w = { .btf = obj->btf, .name = name, .rest = name };
	int err;

	if (obj->loaded) {
		leat_diag_add(diag, "the object is loaded: its variables are set before");
		return -EINVAL;
	}
	if (!obj->btf) {
		leat_diag_add(diag, "the object has no BTF, so its variables have no names (compile it with -g)");
		return -EINVAL;
	}
	err = walk_to(obj, &w, diag);
	return err ? err : leat_btf_parse_place(obj->btf, &w.place, text, diag);
}
