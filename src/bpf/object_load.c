/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_load.c: makes an object ready to run: maps with their first contents, programs verified and decoded, program
 * arrays and maps of maps filled. When one program is wanted, only what it can reach: maps that its instructions name,
 * programs that stand in its program arrays, maps that may stand in its maps of maps, and so on. Control thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/suggest.h"
#include "bpf/env.h"
#include "bpf/kernel.h"
#include "bpf/names.h"
#include "bpf/object.h"

/* What is needed, by number. */
struct needs {
	struct leat_bpf_object *obj;
	bool prog[LEAT_IMAGE_PROGS_MAX], map[LEAT_IMAGE_MAPS_MAX];
	bool changed;
};

static const struct leat_image_init *inits_of(const struct leat_bpf_object *obj, const struct leat_image_map *map)
{
	const void *inits = obj->image + obj->head->inits.off;

	return (const struct leat_image_init *)inits + map->inits.off;
}

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* The map that the instruction names, or -1. */
static int map_of(const struct bpf_insn *insn)
{
	return is_wide(insn) && (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE) ?
		insn->imm : -1;
}

static void need(struct needs *needs, bool *what)
{
	needs->changed |= !*what;
	*what = true;
}

static void need_maps_of(struct needs *needs, const struct leat_bpf_prog *prog)
{
	uint32_t i;
	int map;

	for (i = 0; i < prog->n_insns; i += is_wide(&prog->insn[i]) ? 2 : 1) {
		map = map_of(&prog->insn[i]);
		if (map >= 0)
			need(needs, &needs->map[map]);
	}
}

static void need_inits_of(struct needs *needs, const struct leat_image_map *map)
{
	const struct leat_image_init *init = inits_of(needs->obj, map);
	uint32_t i;

	for (i = 0; i < map->inits.n; i++) {
		if (init[i].prog)
			need(needs, &needs->prog[init[i].prog - 1]);
		if (init[i].map)
			need(needs, &needs->map[init[i].map - 1]);
	}
}

/* A map of maps may be given any map of the object that is like its template. */
static void need_inner_maps(struct needs *needs, const struct leat_bpf_map *map)
{
	uint32_t i;

	for (i = 0; map->inner && map->inner->type && i < needs->obj->n_maps; i++)
		if (!needs->obj->map[i].template && leat_bpf_map_fits(map->inner, &needs->obj->map[i]))
			need(needs, &needs->map[i]);
}

/* Follows programs to maps and maps to programs, until nothing is new. */
static void follow(struct needs *needs)
{
	uint32_t i;

	do {
		needs->changed = false;
		for (i = 0; i < needs->obj->n_progs; i++)
			if (needs->prog[i])
				need_maps_of(needs, &needs->obj->prog[i]);
		for (i = 0; i < needs->obj->n_maps; i++) {
			if (!needs->map[i])
				continue;
			need_inits_of(needs, leat_object_image_map(needs->obj, i));
			need_inner_maps(needs, &needs->obj->map[i]);
		}
	} while (needs->changed);
}

static int choose(struct needs *needs, const char *name, struct leat_diag *diag)
{
	struct leat_bpf_object *obj = needs->obj;
	struct leat_suggest suggest = {.word = name};
	struct leat_bpf_prog *prog;
	uint32_t i;

	for (i = 0; i < obj->n_progs && !name; i++)
		needs->prog[i] = true;
	for (i = 0; i < obj->n_maps && !name; i++)
		needs->map[i] = !(leat_object_image_map(obj, i)->flags & LEAT_IMAGE_MAP_TEMPLATE);
	prog = name ? leat_bpf_object_prog_find(obj, name) : NULL;
	if (prog)
		needs->prog[prog->number] = true;
	if (prog || !name) {
		follow(needs);
		return 0;
	}
	for (i = 0; i < obj->n_progs; i++)
		leat_suggest_try(&suggest, obj->prog[i].name);
	leat_diag_add(diag, suggest.best ? "it has no program '%s' (did you mean '%s'?)" : "it has no program '%s'",
		      name, suggest.best);
	return -ENOENT;
}

/* ---- maps ---- */

/* Says that we have no such maps, at the first instruction that names this one. */
/* "sockmap (15)" */
static void name_type(uint32_t type, char *text, size_t size)
{
	const char *name = leat_bpf_map_type_name(type);

	if (name)
		snprintf(text, size, "%s (%u)", name, type);
	else
		snprintf(text, size, "%u", type);
}

static int refuse_type(const struct needs *needs, uint32_t number, struct leat_diag *diag)
{
	const struct leat_image_map *map = leat_object_image_map(needs->obj, number);
	const char *name = leat_image_string(needs->obj->head, map->name);
	const struct leat_bpf_prog *prog;
	char source[512], type[48];
	uint32_t i, j;

	name_type(map->type, type, sizeof(type));
	for (i = 0; i < needs->obj->n_progs; i++) {
		prog = &needs->obj->prog[i];
		for (j = 0; needs->prog[i] && j < prog->n_insns; j += is_wide(&prog->insn[j]) ? 2 : 1) {
			if (map_of(&prog->insn[j]) != (int)number)
				continue;
			leat_bpf_prog_source(prog, j, source, sizeof(source));
			leat_diag_add(diag, "%s: instruction %u%s%s%s: uses map '%s' of type %s, which leat does not "
				      "have", prog->name, j, *source ? " (" : "", source, *source ? ")" : "", name,
				      type);
			return -EOPNOTSUPP;
		}
	}
	leat_diag_add(diag, "map '%s' has type %s, which leat does not have", name, type);
	return -EOPNOTSUPP;
}

/* A type may have been registered since the object was opened. */
static const struct leat_bpf_map_type *type_of(const struct leat_bpf_map *map)
{
	return map->type ? map->type : leat_bpf_map_type_find(leat_object_image_map(map->obj, map->number)->type);
}

static int make_map(const struct needs *needs, uint32_t number, struct leat_diag *diag)
{
	const struct leat_image_map *from = leat_object_image_map(needs->obj, number);
	struct leat_bpf_map *map = &needs->obj->map[number];
	const uint8_t *data = needs->obj->image + needs->obj->head->data.off + from->data.off;
	const uint32_t zero = 0;
	int err;

	map->type = type_of(map);
	if (map->inner)
		map->inner->type = type_of(map->inner);
	if (!map->type || (map->inner && !map->inner->type))
		return refuse_type(needs, map->type ? map->inner->number : number, diag);
	err = leat_bpf_map_create(map, diag);
	if (err)
		return err;
	map->made = true;
	if (from->data.n)
		err = leat_bpf_map_update(map, &zero, data, BPF_ANY);
	if (err)
		leat_diag_add(diag, "map '%s' does not take its first contents: %s", map->name, strerror(-err));
	map->frozen = from->flags & LEAT_IMAGE_MAP_FROZEN;
	return err;
}

static int set_init(struct leat_bpf_map *map, const struct leat_image_init *init)
{
	struct leat_bpf_object *obj = map->obj;

	if (init->prog)
		return leat_bpf_prog_array_set(map, init->index, &obj->prog[init->prog - 1]);
	return leat_bpf_map_set_inner(map, &init->index, &obj->map[init->map - 1], BPF_ANY);
}

static const char *why_not(const struct leat_image_init *init, int err)
{
	return init->map && err == -EINVAL ? "it is not like the template" : strerror(-err);
}

/* The programs of a program array, the maps of a map of maps. */
static int fill_map(struct leat_bpf_object *obj, uint32_t number, struct leat_diag *diag)
{
	const struct leat_image_map *from = leat_object_image_map(obj, number);
	const struct leat_image_init *init = inits_of(obj, from);
	uint32_t i;
	int err = 0;

	for (i = 0; i < from->inits.n && !err; i++) {
		err = set_init(&obj->map[number], &init[i]);
		if (err)
			leat_diag_add(diag, "map '%s' does not take its first element %u: %s", obj->map[number].name,
				      init[i].index, why_not(&init[i], err));
	}
	return err;
}

/* ---- programs ---- */

/** Says each access that is not proven. */
static int refuse_guards(const struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	struct leat_bpf_guard guard;
	unsigned int i;

	for (i = 0; leat_bpf_prog_guard(prog, i, &guard); i++)
		leat_diag_add(diag, "%s: instruction %u%s%s%s: it is not proven to stay within its region (%s)", prog->name,
			      guard.insn, guard.source ? " (" : "", guard.source ? guard.source : "",
			      guard.source ? ")" : "", guard.region);
	return i ? -EINVAL : 0;
}

static int verify(struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	uint64_t start = leat_clock_ns();
	int err = leat_bpf_verify(prog, diag);

	prog->verify_ns = leat_clock_ns() - start;
	return !err && prog->obj->strict ? refuse_guards(prog, diag) : err;
}

/** What the kernel says, where it is to be asked. -EACCES: it must accept the program, and does not; -EPERM: cannot say. */
static int ask_kernel(struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	const struct leat_bpf_env *env = prog->obj->env;
	const char *words = "the kernel's verifier refuses it";
	int err = env->kernel_verifier ? leat_bpf_kernel_ask(prog) : 0;

	if (err || prog->kernel == LEAT_BPF_KERNEL_NOT_ASKED || prog->kernel == LEAT_BPF_KERNEL_ACCEPTS)
		return err;
	if (prog->kernel == LEAT_BPF_KERNEL_UNABLE)
		words = "the kernel's verifier cannot be asked";
	if (env->kernel_verifier == LEAT_BPF_KERNEL_ASK) {
		leat_log(env->log, LEAT_LOG_WARNING, "%s: %s: %s", prog->name, words, prog->kernel_words);
		return 0;
	}
	leat_diag_add(diag, "%s: %s: %s", prog->name, words, prog->kernel_words);
	return prog->kernel == LEAT_BPF_KERNEL_UNABLE ? -EPERM : -EACCES;
}

static int load_prog(struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	int err = verify(prog, diag);

	if (err)
		return err;
	err = ask_kernel(prog, diag);
	if (err)
		return err;
	prog->trap = leat_heap_zalloc(prog->n_insns * sizeof(*prog->trap));
	if (!prog->trap)
		return -ENOMEM;
	err = leat_bpf_interp_prepare(prog);
	prog->loaded = !err;
	return err;
}

/* Every program says its mistakes; the first error is the one that counts. */
static int load_all(const struct needs *needs, struct leat_diag *diag)
{
	struct leat_bpf_object *obj = needs->obj;
	int err = 0, one;
	uint32_t i;

	for (i = 0; i < obj->n_maps; i++) {
		one = needs->map[i] ? make_map(needs, i, diag) : 0;
		err = err ? err : one;
	}
	if (err)
		return err;
	for (i = 0; i < obj->n_progs && err != -ENOMEM; i++) {
		one = needs->prog[i] ? load_prog(&obj->prog[i], diag) : 0;
		err = err ? err : one;
	}
	for (i = 0; i < obj->n_maps && !err; i++)
		if (needs->map[i])
			err = fill_map(obj, i, diag);
	return err ? err : leat_bpf_engine_choose(obj, diag);
}

int leat_bpf_object_load(struct leat_bpf_object *obj, const char *name, struct leat_diag *diag)
{
	struct needs needs = {.obj = obj};
	int err;

	if (obj->loaded)
		return -EINVAL;
	err = choose(&needs, name, diag);
	if (!err)
		err = load_all(&needs, diag);
	if (err)
		leat_object_unload(obj);
	else
		obj->loaded = true;
	return err;
}

static void unload_prog(struct leat_bpf_prog *prog)
{
	leat_bpf_engine_free(prog);
	leat_heap_free(prog->aux);
	leat_heap_free(prog->trap);
	prog->aux = NULL;
	prog->trap = NULL;
	prog->loaded = false;
}

void leat_object_unload(struct leat_bpf_object *obj)
{
	uint32_t i;

	for (i = 0; i < obj->n_progs; i++)
		unload_prog(&obj->prog[i]);
	leat_bpf_nested_end(obj);
	for (i = 0; i < obj->n_maps; i++) {
		if (obj->map[i].type)
			leat_bpf_map_destroy(&obj->map[i]);
		obj->map[i].made = obj->map[i].frozen = false;
	}
	obj->loaded = false;
}
