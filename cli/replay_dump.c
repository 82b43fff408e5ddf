/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_dump.c: what maps hold. Elements stand in the order of their keys, whatever the order in the map; elements of
 * arrays that are all zero are left out, because every array has all of its elements.
 */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"

/* Elements that are kept and sorted; of larger maps the first are shown. */
#define ELEMENTS_MAX 1000000u

/* The elements of one map, each a key and its values, side by side. */
struct elements {
	struct leat_bpf_map *map;
	struct leat_bpf_map_info info;
	size_t stride; /* of one element */
	size_t n, room;
	uint8_t *bytes;
	bool array;    /* all elements are always there */
	bool more;     /* there were too many */
};

char *replay_format(int (*format)(const struct leat_bpf_map *map, const void *bytes, char *buf, size_t size),
		    const struct leat_bpf_map *map, const void *bytes)
{
	int len = format(map, bytes, NULL, 0);
	char *text;

	if (len < 0)
		return strdup("\"too long\"");
	text = malloc((size_t)len + 1);
	if (text)
		format(map, bytes, text, (size_t)len + 1);
	return text;
}

bool replay_is_ring(const struct leat_bpf_map_info *info)
{
	return !strcmp(info->type_name, "ringbuf") || !strcmp(info->type_name, "perf_event_array");
}

/* ---- taking them ---- */

static bool all_zero(const uint8_t *bytes, size_t n)
{
	while (n--)
		if (bytes[n])
			return false;
	return true;
}

static uint8_t *element(const struct elements *e, size_t idx)
{
	return e->bytes + idx * e->stride;
}

static uint8_t *values_of(const struct elements *e, size_t idx)
{
	return element(e, idx) + (e->stride - ((e->info.value_bytes + 7u) & ~7u));
}

static bool make_room(struct elements *e)
{
	size_t room = e->room ? e->room * 2 : 16;
	uint8_t *bytes;

	if (e->n < e->room)
		return true;
	bytes = realloc(e->bytes, room * e->stride);
	if (!bytes)
		return false;
	e->bytes = bytes;
	e->room = room;
	return true;
}

/* The key after @key. Global data is one element and is always shown; of arrays, memory that was never touched is not. */
static int next_key(const struct elements *e, struct leat_bpf_used *used, const void *key, void *next)
{
	return e->array ? leat_bpf_map_next_used(e->map, used, key, next) : leat_bpf_map_next_key(e->map, key, next);
}

static bool take_elements(struct elements *e)
{
	uint8_t *key = calloc(1, e->info.key_size + 1u);
	struct leat_bpf_used used;
	int err;

	if (!key)
		return false;
	leat_bpf_used_init(&used);
	err = next_key(e, &used, NULL, key);
	while (!err && make_room(e)) {
		if (e->n == ELEMENTS_MAX) {
			e->more = true;
			break;
		}
		memset(element(e, e->n), 0, e->stride);
		memcpy(element(e, e->n), key, e->info.key_size);
		if (!leat_bpf_map_lookup(e->map, key, values_of(e, e->n)) &&
		    !(e->array && all_zero(values_of(e, e->n), e->info.value_bytes)))
			e->n++;
		err = next_key(e, &used, key, key);
	}
	leat_bpf_used_fini(&used);
	free(key);
	return true;
}

static uint64_t key_number(const uint8_t *key, uint32_t size)
{
	uint64_t number = 0;

	memcpy(&number, key, size);
	return number;
}

/* Keys of the size of a number in the order of numbers, others in that of their bytes. */
static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct elements *e = arg;
	uint32_t size = e->info.key_size;

	if (size != 1 && size != 2 && size != 4 && size != 8)
		return memcmp(a, b, size);
	if (key_number(a, size) == key_number(b, size))
		return 0;
	return key_number(a, size) < key_number(b, size) ? -1 : 1;
}

/* ---- writing them ---- */

/* The value of one CPU, or the name of a program; free() it. */
static char *value_text(struct replay *r, const struct elements *e, const uint8_t *value)
{
	struct leat_bpf_prog *prog;
	char name[256];
	uint32_t number;

	if (strcmp(e->info.type_name, "prog_array") != 0)
		return replay_format(leat_bpf_map_format_value, e->map, value);
	memcpy(&number, value, sizeof(number));
	prog = leat_bpf_object_prog_get(r->obj, number);
	snprintf(name, sizeof(name), "\"%.200s\"", prog ? leat_bpf_prog_name(prog) : "?");
	return strdup(name);
}

static void json_text(struct leat_json_out *j, const char *name, char *text)
{
	leat_json_raw(j, name, text ? text : "null");
	free(text);
}

static uint32_t stride_of(const struct elements *e)
{
	return (e->info.value_size + 7u) & ~7u;
}

static uint32_t copies_of(const struct replay *r, const struct elements *e)
{
	return e->info.per_cpu ? r->opts->cpu + 1 : 1;
}

/* A whole number, or false. */
static bool text_number(const char *text, int64_t *number)
{
	char *end;

	*number = (int64_t)(*text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10));
	return end != text && !*end;
}

static void json_element(struct replay *r, struct leat_json_out *j, const struct elements *e, size_t idx)
{
	uint32_t cpu;

	leat_json_open_flat(j, NULL, '{');
	json_text(j, "key", replay_format(leat_bpf_map_format_key, e->map, element(e, idx)));
	if (e->info.per_cpu) {
		leat_json_open(j, "values", '[');
		for (cpu = 0; cpu < copies_of(r, e); cpu++)
			json_text(j, NULL, value_text(r, e, values_of(e, idx) + (size_t)cpu * stride_of(e)));
		leat_json_close(j, ']');
	} else {
		json_text(j, "value", value_text(r, e, values_of(e, idx)));
	}
	leat_json_close(j, '}');
}

/* "1: 2"; of several CPUs "1: cpu0 2, cpu1 3, sum 5". */
static void print_element(struct replay *r, FILE *out, const struct elements *e, size_t idx)
{
	char *key = replay_format(leat_bpf_map_format_key, e->map, element(e, idx)), *value;
	uint32_t cpu, n = copies_of(r, e);
	int64_t number, sum = 0;
	bool numeric = n > 1;

	fprintf(out, "    %s: ", key ? key : "?");
	for (cpu = 0; cpu < n; cpu++) {
		value = value_text(r, e, values_of(e, idx) + (size_t)cpu * stride_of(e));
		if (n > 1)
			fprintf(out, "%scpu%u ", cpu ? ", " : "", cpu);
		fputs(value ? value : "?", out);
		numeric = numeric && value && text_number(value, &number);
		if (numeric)
			sum = (int64_t)((uint64_t)sum + (uint64_t)number);
		free(value);
	}
	if (numeric)
		fprintf(out, ", sum %" PRId64, sum);
	fputc('\n', out);
	free(key);
}

/* Global variables: one element, whose value is an object of them. */
static void write_variables(FILE *out, struct leat_json_out *j, const struct elements *e)
{
	char *text = replay_format(leat_bpf_map_format_value, e->map, values_of(e, 0));

	if (j)
		leat_json_raw(j, e->info.name, text ? text : "null");
	else
		fprintf(out, "  %s: %s\n", e->info.name, text ? text : "?");
	free(text);
}

static void write_elements(struct replay *r, FILE *out, struct leat_json_out *j, const struct elements *e)
{
	size_t i;

	if (j) {
		leat_json_open(j, e->info.name, '{');
		leat_json_string(j, "type", e->info.type_name);
		leat_json_open(j, "elements", '[');
		for (i = 0; i < e->n; i++)
			json_element(r, j, e, i);
		leat_json_close(j, ']');
		leat_json_close(j, '}');
		return;
	}
	fprintf(out, "  %s (%s, %zu%s element%s)\n", e->info.name, e->info.type_name, e->n, e->more ? " and more" : "",
		e->n == 1 ? "" : "s");
	for (i = 0; i < e->n; i++)
		print_element(r, out, e, i);
}

/* Constants are not shown a second time, nor what the compiler put into sections without names (texts, for one). */
static bool is_wanted(const struct leat_bpf_map_info *info, enum replay_dump which)
{
	if (!info->internal)
		return which == DUMP_MAPS && info->key_size && !replay_is_ring(info);
	return which != DUMP_MAPS && info->btf_value &&
	       (which == DUMP_VARIABLES || strncmp(info->name, ".rodata", 7) != 0);
}

static uint64_t dump_map(struct replay *r, struct elements *e, FILE *out, struct leat_json_out *j)
{
	e->array = !strcmp(e->info.type_name, "array") || !strcmp(e->info.type_name, "percpu_array");
	e->array = e->array && !e->info.internal;
	e->stride = ((e->info.key_size + 7u) & ~7u) + ((e->info.value_bytes + 7u) & ~7u);
	if (!take_elements(e))
		return 0;
	if (e->n > 1)
		qsort_r(e->bytes, e->n, e->stride, compare_keys, e);
	if (e->info.internal && e->n)
		write_variables(out, j, e);
	else if (!e->info.internal && (e->n || j))
		write_elements(r, out, j, e);
	free(e->bytes);
	return e->n;
}

uint64_t replay_dump_maps(struct replay *r, FILE *out, struct leat_json_out *j, enum replay_dump which)
{
	struct leat_bpf_map *map;
	struct elements e;
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(r->obj, i)); i++) {
		e = (struct elements){ .map = map };
		leat_bpf_map_info(map, &e.info);
		if (is_wanted(&e.info, which))
			n += dump_map(r, &e, out, j);
	}
	return n;
}
