/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_json_maps.c: replies of the control socket about programs and their maps. Control thread.
 *
 * What a map holds may be a lot, and workers change it meanwhile: a reply has so much of it as LOOKS_MAX and TEXT_MAX
 * allow, and says with which key to go on. Elements of arrays that are all zero are left out, because every array has
 * all of its elements.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map.h"
#include "bpf/map/mem.h"
#include "ctl/control_json.h"

/** Elements looked at for one reply, and bytes after which it ends. */
#define LOOKS_MAX 65536u
#define TEXT_MAX (256L << 10)
/** Places of traps that a reply has of one program. */
#define TRAPS_MAX 64u

/* ---- programs ---- */

static void write_traps(struct leat_json_out *j, const struct leat_bpf_prog *bpf)
{
	struct leat_bpf_trap trap;
	unsigned int i;

	leat_json_open(j, "traps", '[');
	for (i = 0; i < TRAPS_MAX && leat_bpf_prog_trap(bpf, i, &trap); i++) {
		leat_json_open(j, NULL, '{');
		leat_json_number(j, "instruction", trap.insn);
		leat_json_string(j, "reason", trap.reason);
		leat_json_number(j, "count", trap.count);
		if (trap.source)
			leat_json_string(j, "source", trap.source);
		leat_json_close(j, '}');
	}
	leat_json_close(j, ']');
}

static void write_bpf(struct leat_json_out *j, const struct leat_config *config, const struct leat_config_prog *prog,
		      const struct leat_bpf_prog *bpf)
{
	const struct leat_config_object *object = &config->objects[prog->object];

	leat_json_string(j, "object", object->path);
	if (object->instance)
		leat_json_string(j, "instance", object->instance);
	leat_json_string(j, "prog", leat_bpf_prog_name(bpf));
	leat_json_string(j, "engine", leat_bpf_prog_code_size(bpf) ? "jit" : "interp");
	leat_json_number(j, "instructions", leat_bpf_prog_len(bpf));
	leat_json_number(j, "code_bytes", leat_bpf_prog_code_size(bpf));
	write_traps(j, bpf);
}

static void write_ports(struct leat_json_out *j, const struct leat_config *config, unsigned int idx)
{
	unsigned int a, i;

	leat_json_open(j, "ports", '[');
	for (a = 0; a < config->n_attach; a++)
		for (i = 0; i < config->attach[a].n_progs; i++)
			if (config->attach[a].prog[i] == idx)
				leat_json_string(j, NULL, config->ports[config->attach[a].port].name);
	leat_json_close(j, ']');
}

static void write_verdicts(struct leat_json_out *j, const struct leat_xdp_prog *prog)
{
	struct leat_xdp_prog_stats stats;
	uint32_t action;

	leat_xdp_prog_stats(prog, &stats);
	leat_json_number(j, "runs", stats.runs);
	leat_json_open(j, "verdicts", '{');
	for (action = 0; action < LEAT_XDP_ACTIONS; action++)
		leat_json_number(j, leat_xdp_action_name(action), stats.verdict[action]);
	leat_json_close(j, '}');
}

static void write_prog(struct leat_control_ask *ask, const struct leat_config *config, unsigned int idx)
{
	const struct leat_xdp_prog *prog = leat_datapath_prog(ask->dp, idx);
	const struct leat_bpf_prog *bpf = leat_datapath_bpf_prog(ask->dp, idx);
	struct leat_json_out *j = &ask->json;

	leat_json_open(j, NULL, '{');
	leat_json_string(j, "name", config->progs[idx].name);
	leat_json_number(j, "id", leat_xdp_prog_id(prog));
	if (bpf)
		write_bpf(j, config, &config->progs[idx], bpf);
	else
		leat_json_string(j, "builtin", config->progs[idx].builtin->name);
	write_ports(j, config, idx);
	write_verdicts(j, prog);
	leat_json_close(j, '}');
}

/** Number of the program with that name, or n_progs, having said so. */
static unsigned int find_prog(struct leat_control_ask *ask, const struct leat_config *config, const char *name)
{
	unsigned int i;

	for (i = 0; i < config->n_progs; i++)
		if (!strcmp(config->progs[i].name, name))
			return i;
	leat_control_fail(ask, "there is no program '%.40s'", name);
	return i;
}

void leat_control_progs(struct leat_control_ask *ask)
{
	const struct leat_config *config = leat_datapath_config(ask->dp);
	const char *name = leat_control_text(ask, "name");
	unsigned int i, only = name ? find_prog(ask, config, name) : 0;

	if (*ask->error)
		return;
	leat_json_open(&ask->json, "programs", '[');
	for (i = 0; i < config->n_progs; i++)
		if (!name || i == only)
			write_prog(ask, config, i);
	leat_json_close(&ask->json, ']');
}

/* ---- maps ---- */

static bool is_ring(const struct leat_bpf_map_info *info)
{
	return !info->key_size || info->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
}

/** What is known of a map, as members. */
static void write_info(struct leat_json_out *j, const struct leat_config *config, unsigned int object,
		       const struct leat_bpf_map *map)
{
	struct leat_bpf_map_info info;

	leat_bpf_map_info(map, &info);
	leat_json_string(j, "name", info.name);
	leat_json_string(j, "program", config->objects[object].prog);
	leat_json_string(j, "type", info.type_name);
	leat_json_number(j, "key_size", info.key_size);
	leat_json_number(j, "value_size", info.value_size);
	leat_json_number(j, "max_entries", info.max_entries);
	leat_json_number(j, "flags", info.flags);
	leat_json_raw(j, "per_cpu", info.per_cpu ? "true" : "false");
	leat_json_raw(j, "global_data", info.internal ? "true" : "false");
	if (is_ring(&info))
		leat_json_number(j, "lost", leat_bpf_map_lost(map));
}

static void list_maps(struct leat_control_ask *ask, const struct leat_config *config)
{
	struct leat_bpf_map *map;
	unsigned int o, i;

	leat_json_open(&ask->json, "maps", '[');
	for (o = 0; o < config->n_objects; o++) {
		for (i = 0; (map = leat_bpf_object_map_get(leat_datapath_object(ask->dp, o), i)); i++) {
			leat_json_open(&ask->json, NULL, '{');
			write_info(&ask->json, config, o, map);
			leat_json_close(&ask->json, '}');
		}
	}
	leat_json_close(&ask->json, ']');
}

/** The map that is meant: of the object of "program", or the only one of that name. NULL, having said why. */
static struct leat_bpf_map *find_map(struct leat_control_ask *ask, const struct leat_config *config, const char *name,
				     unsigned int *object)
{
	const char *program = leat_control_text(ask, "program");
	unsigned int o, n = 0, prog = program ? find_prog(ask, config, program) : 0;
	struct leat_bpf_map *map, *found = NULL;

	for (o = 0; o < config->n_objects && !*ask->error; o++) {
		if (program && config->progs[prog].object != o)
			continue;
		map = leat_bpf_object_map_find(leat_datapath_object(ask->dp, o), name);
		if (!map)
			continue;
		n++;
		found = map;
		*object = o;
	}
	if (*ask->error)
		return NULL;
	if (n > 1)
		leat_control_fail(ask, "several objects have a map '%.40s': say of which program", name);
	else if (!n)
		leat_control_fail(ask, "there is no map '%.40s'", name);
	return n == 1 ? found : NULL;
}

/* ---- what a map holds ---- */

/** A walk over one map. */
struct walk {
	struct leat_control_ask *ask;
	struct leat_bpf_object *obj;
	struct leat_bpf_map *map;
	struct leat_bpf_map_info info;
	bool array; /* all elements are always there */
	unsigned int cpus;
	uint8_t *key, *values;
	struct leat_bpf_used used;
};

static bool all_zero(const uint8_t *bytes, size_t n)
{
	while (n--)
		if (bytes[n])
			return false;
	return true;
}

static void write_formatted(struct walk *w, const char *name, const void *bytes,
			    int (*format)(const struct leat_bpf_map *map, const void *bytes, char *buf, size_t size))
{
	int len = format(w->map, bytes, NULL, 0);
	char *text = len < 0 ? NULL : malloc((size_t)len + 1);

	if (text)
		format(w->map, bytes, text, (size_t)len + 1);
	leat_json_raw(&w->ask->json, name, text ? text : "null");
	free(text);
}

/** The value of one CPU; of a program array the program's name. */
static void write_value(struct walk *w, const char *name, const uint8_t *value)
{
	struct leat_bpf_prog *prog;
	uint32_t number;

	if (w->info.type != BPF_MAP_TYPE_PROG_ARRAY) {
		write_formatted(w, name, value, leat_bpf_map_format_value);
		return;
	}
	memcpy(&number, value, sizeof(number));
	prog = leat_bpf_object_prog_get(w->obj, number);
	leat_json_string(&w->ask->json, name, prog ? leat_bpf_prog_name(prog) : "?");
}

static void write_element(struct walk *w)
{
	struct leat_json_out *j = &w->ask->json;
	uint32_t stride = (w->info.value_size + 7u) & ~7u;
	unsigned int cpu;

	if (leat_bpf_map_lookup(w->map, w->key, w->values)) /* it has just gone */
		return;
	if (w->array && all_zero(w->values, w->info.value_bytes))
		return;
	leat_json_open(j, NULL, '{');
	write_formatted(w, "key", w->key, leat_bpf_map_format_key);
	if (w->info.per_cpu) {
		leat_json_open(j, "values", '[');
		for (cpu = 0; cpu < w->cpus; cpu++)
			write_value(w, NULL, w->values + (size_t)cpu * stride);
		leat_json_close(j, ']');
	} else {
		write_value(w, "value", w->values);
	}
	leat_json_close(j, '}');
}

static int next_key(struct walk *w, const uint8_t *key)
{
	return w->array ? leat_bpf_map_next_used(w->map, &w->used, key, w->key) :
			  leat_bpf_map_next_key(w->map, key, w->key);
}

static void write_hex(struct leat_json_out *j, const char *name, const uint8_t *bytes, uint32_t n)
{
	char *text = malloc(2 * (size_t)n + 1);
	uint32_t i;

	for (i = 0; text && i < n; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
	if (text)
		leat_json_string(j, name, text);
	free(text);
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/** Reads a key that a reply has given. */
static bool read_hex(const char *text, uint8_t *bytes, uint32_t n)
{
	uint32_t i;
	int high, low;

	if (strlen(text) != 2 * (size_t)n)
		return false;
	for (i = 0; i < n; i++) {
		high = digit(text[2 * (size_t)i]);
		low = digit(text[2 * (size_t)i + 1]);
		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static void write_elements(struct walk *w)
{
	const char *after = leat_control_text(w->ask, "after");
	struct leat_json_out *j = &w->ask->json;
	unsigned int looks = 0;
	int err;

	if (after && !read_hex(after, w->key, w->info.key_size)) {
		leat_control_fail(w->ask, "\"after\" is not a key of this map");
		return;
	}
	leat_json_open(j, "elements", '[');
	leat_bpf_used_init(&w->used);
	err = next_key(w, after ? w->key : NULL);
	while (!err) {
		write_element(w);
		if (++looks == LOOKS_MAX || ftell(j->out) > TEXT_MAX)
			break;
		err = next_key(w, w->key);
	}
	leat_bpf_used_fini(&w->used);
	leat_json_close(j, ']');
	if (!err)
		write_hex(j, "next", w->key, w->info.key_size);
}

static bool is_array(const struct leat_bpf_map_info *info)
{
	return !info->internal && (info->type == BPF_MAP_TYPE_ARRAY || info->type == BPF_MAP_TYPE_PERCPU_ARRAY);
}

static void dump_map(struct leat_control_ask *ask, const struct leat_config *config, const char *name)
{
	struct walk w = { .ask = ask, .cpus = leat_net_workers(leat_datapath_net(ask->dp)) };
	unsigned int object = 0;

	w.map = find_map(ask, config, name, &object);
	if (!w.map)
		return;
	leat_bpf_map_info(w.map, &w.info);
	if (is_ring(&w.info)) {
		leat_control_fail(ask, "'%.40s' is a ring: its records go to who takes them", name);
		return;
	}
	w.obj = leat_datapath_object(ask->dp, object);
	w.array = is_array(&w.info);
	leat_json_open(&ask->json, "map", '{');
	write_info(&ask->json, config, object, w.map);
	leat_json_close(&ask->json, '}');
	w.key = calloc(1, w.info.key_size);
	w.values = calloc(1, w.info.value_bytes);
	if (w.key && w.values)
		write_elements(&w);
	else
		leat_control_fail(ask, "out of memory");
	free(w.key);
	free(w.values);
}

void leat_control_maps(struct leat_control_ask *ask)
{
	const struct leat_config *config = leat_datapath_config(ask->dp);
	const char *name = leat_control_text(ask, "name");

	if (name)
		dump_map(ask, config, name);
	else if (leat_control_text(ask, "program") || leat_control_text(ask, "after"))
		leat_control_fail(ask, "the member \"name\" is missing");
	else
		list_maps(ask, config);
}
