/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_maps.c: what maps hold before the run: `--map NAME='KEY=VALUE,...'` and `--map FILE.json`. A file may be what
 * `leat replay --json` printed, as a whole (its maps_after is taken) or what stands under maps_before or maps_after. The
 * value of a per-CPU map is every CPU's, unless there is a list of them ("values"). Also what --event says of maps.
 */
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "bpf/btf/json.h"

#define FILE_MAX_LEN (64u << 20)

/* A map that is being filled. */
struct filling {
	struct replay *r;
	struct leat_bpf_map *map;
	struct leat_bpf_map_info info;
	bool programs; /* a program array */
	uint8_t *key, *values;
};

static int no_map(struct replay *r, const char *name)
{
	struct leat_suggest suggest = { .word = name };
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(r->obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		if (!info.internal)
			leat_suggest_try(&suggest, info.name);
	}
	if (suggest.best)
		leat_diag_add(r->diag, "the program uses no map '%.64s' (did you mean '%.64s'?)", name, suggest.best);
	else
		leat_diag_add(r->diag, "the program uses no map '%.64s'", name);
	return -ENOENT;
}

static void filling_end(struct filling *f)
{
	free(f->key);
	free(f->values);
}

/* filling_end() follows, whatever comes out. */
static int filling_begin(struct filling *f, struct replay *r, const char *name)
{
	f->map = leat_bpf_object_map_find(r->obj, name);
	if (!f->map)
		return no_map(r, name);
	leat_bpf_map_info(f->map, &f->info);
	f->programs = !strcmp(f->info.type_name, "prog_array");
	if (f->info.internal || replay_is_ring(&f->info)) {
		leat_diag_add(r->diag, f->info.internal ? "global variables are set by --set" :
							  "a map of records cannot be filled");
		return -EINVAL;
	}
	f->key = calloc(1, f->info.key_size + 1u);
	f->values = calloc(1, f->info.value_bytes + 1u);
	return f->key && f->values ? 0 : -ENOMEM;
}

/* An entry of a program array is the number of a program. */
static int parse_program(struct filling *f, const char *text)
{
	struct leat_bpf_prog *prog;
	uint32_t i;

	for (i = 0; (prog = leat_bpf_object_prog_get(f->r->obj, i)); i++) {
		if (strcmp(leat_bpf_prog_name(prog), text) != 0)
			continue;
		memcpy(f->values, &i, sizeof(i));
		return 0;
	}
	leat_diag_add(f->r->diag, "no program '%.64s'", text);
	return -ENOENT;
}

/* Where the value of one CPU stands. */
static uint8_t *value_of(const struct filling *f, uint32_t cpu)
{
	return f->values + (size_t)cpu * ((f->info.value_size + 7) & ~7u);
}

static uint32_t copies(const struct filling *f)
{
	return f->info.per_cpu ? f->r->opts->cpu + 1 : 1;
}

/* Puts what was parsed into the map. */
static int put(struct filling *f, const char *key)
{
	int err = leat_bpf_map_update(f->map, f->key, f->values, 0);

	if (err == -E2BIG)
		leat_diag_add(f->r->diag, "element %.64s does not fit: the map has %u entries", key,
			      f->info.max_entries);
	else if (err)
		leat_diag_add(f->r->diag, "element %.64s: %s", key, strerror(-err));
	return err;
}

/* One value for every CPU. */
static int parse_same(struct filling *f, const char *text)
{
	uint32_t cpu;
	int err;

	if (f->programs)
		return parse_program(f, text);
	err = leat_bpf_map_parse_value(f->map, text, f->values, f->r->diag);
	for (cpu = 1; !err && cpu < copies(f); cpu++)
		memcpy(value_of(f, cpu), f->values, f->info.value_size);
	return err;
}

/* The same value for every CPU, or a map, under the key that was parsed. */
static int put_text(struct filling *f, const char *key, const char *value)
{
	int err;

	if (f->info.nested)
		return leat_bpf_map_put_inner(f->map, f->key, value, f->r->diag);
	err = parse_same(f, value);
	return err ? err : put(f, key);
}

/* ---- on the command line ---- */

/* Bytes up to a separator that stands in no brackets or quotation marks. */
static size_t span(const char *text, char separator)
{
	bool quoted = false;
	int depth = 0;
	size_t i;

	for (i = 0; text[i] && (quoted || depth > 0 || text[i] != separator); i++) {
		if (text[i] == '\\' && quoted && text[i + 1])
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && strchr("{[", text[i]))
			depth++;
		else if (!quoted && strchr("}]", text[i]))
			depth--;
	}
	return i;
}

static int put_pair(struct filling *f, char *pair)
{
	size_t len = span(pair, '=');
	int err;

	if (!pair[len]) {
		leat_diag_add(f->r->diag, "'%.64s' must be KEY=VALUE", pair);
		return -EINVAL;
	}
	pair[len] = '\0';
	err = leat_bpf_map_parse_key(f->map, pair, f->key, f->r->diag);
	return err ? err : put_text(f, pair, pair + len + 1);
}

/* "NAME=KEY=VALUE,...", which may be changed. */
static int fill_from_word(struct replay *r, char *word)
{
	char *pairs = word + strcspn(word, "="), *end;
	struct filling f = { .r = r };
	size_t len;
	int err;

	*pairs++ = '\0';
	leat_diag_at(r->diag, NULL, 0, 0, word);
	err = filling_begin(&f, r, word);
	for (; !err && *pairs; pairs = end) {
		len = span(pairs, ',');
		end = pairs + len + (pairs[len] == ',');
		pairs[len] = '\0';
		err = put_pair(&f, pairs);
	}
	filling_end(&f);
	return err;
}

/* ---- from a file ---- */

/* The text of a member: a string as it is, other values as JSON. NULL: none. free() it. */
static char *member_text(const json_t *json)
{
	if (json_is_string(json))
		return strdup(json_string_value(json));
	return json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
}

static int parse_each(struct filling *f, const json_t *values)
{
	uint32_t cpu;
	char *text;
	int err = 0;

	if (json_array_size(values) != copies(f)) {
		leat_diag_add(f->r->diag, "needs %u values, one for each CPU", copies(f));
		return -EINVAL;
	}
	for (cpu = 0; !err && cpu < copies(f); cpu++) {
		text = member_text(json_array_get(values, cpu));
		err = text ? leat_bpf_map_parse_value(f->map, text, value_of(f, cpu), f->r->diag) : -ENOMEM;
		free(text);
	}
	return err;
}

static int put_element(struct filling *f, const json_t *element)
{
	char *key = member_text(json_object_get(element, "key"));
	char *value = member_text(json_object_get(element, "value"));
	const json_t *values = json_object_get(element, "values");
	int err = -EINVAL;

	if (!key || (!value && !json_is_array(values)))
		leat_diag_add(f->r->diag, "must be {\"key\": ..., \"value\": ...}");
	else
		err = leat_bpf_map_parse_key(f->map, key, f->key, f->r->diag);
	if (!err && !value)
		err = parse_each(f, values);
	if (!err)
		err = value ? put_text(f, key, value) : put(f, key);
	free(key);
	free(value);
	return err;
}

static int fill_from_list(struct replay *r, const char *file, const char *name, const json_t *list)
{
	struct filling f = { .r = r };
	char path[160];
	size_t i;
	int err;

	leat_diag_at(r->diag, file, 0, 0, name);
	if (!json_is_array(list)) {
		leat_diag_add(r->diag, "must be a list of {\"key\": ..., \"value\": ...}");
		return -EINVAL;
	}
	err = json_array_size(list) ? filling_begin(&f, r, name) : 0;
	for (i = 0; !err && i < json_array_size(list); i++) {
		snprintf(path, sizeof(path), "%.120s[%zu]", name, i);
		leat_diag_at(r->diag, file, 0, 0, path);
		err = put_element(&f, json_array_get(list, i));
	}
	filling_end(&f);
	return err;
}

static char *read_file(const char *path, struct leat_diag *diag)
{
	FILE *file = fopen(path, "rbe");
	char *text = NULL;
	size_t len = 0;

	if (!file) {
		leat_diag_add(diag, "cannot be opened: %s", strerror(errno));
		return NULL;
	}
	text = malloc(FILE_MAX_LEN);
	if (text)
		len = fread(text, 1, FILE_MAX_LEN, file);
	if (!text || ferror(file) || len == FILE_MAX_LEN || memchr(text, '\0', len)) {
		leat_diag_add(diag, "cannot be read as text");
		free(text);
		text = NULL;
	} else {
		text[len] = '\0';
	}
	fclose(file);
	return text;
}

/* Of a whole output of --json, what maps held in the end. */
static json_t *maps_in(json_t *json)
{
	json_t *after = json_object_get(json, "maps_after");

	return json_is_object(after) && json_is_object(json_object_get(json, "maps_before")) ? after : json;
}

static int fill_from_file(struct replay *r, const char *path)
{
	json_t *json = NULL;
	const char *name;
	const json_t *list;
	char *text;
	int err;

	leat_diag_at(r->diag, path, 0, 0, NULL);
	text = read_file(path, r->diag);
	err = text ? leat_btf_json_load(text, r->diag, &json) : -EINVAL;
	free(text);
	if (err)
		return err;
	if (!json_is_object(json)) {
		leat_diag_add(r->diag, "must be {\"MAP\": [{\"key\": ..., \"value\": ...}, ...], ...}");
		err = -EINVAL;
	}
	json_object_foreach(maps_in(json), name, list) {
		err = fill_from_list(r, path, name, json_is_object(list) ? json_object_get(list, "elements") : list);
		if (err)
			break;
	}
	json_decref(json);
	return err;
}

static int check_event(struct replay *r, const char *word)
{
	size_t len = strcspn(word, "=");
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name)), word);
	leat_diag_at(r->diag, NULL, 0, 0, name);
	map = leat_bpf_object_map_find(r->obj, name);
	if (!map)
		return no_map(r, name);
	leat_bpf_map_info(map, &info);
	if (!replay_is_ring(&info)) {
		leat_diag_add(r->diag, "a map of type %s has no records: --event is for ringbuf and perf_event_array",
			      info.type_name);
		return -EINVAL;
	}
	if (leat_bpf_object_type_size(r->obj, word + len + 1))
		return 0;
	leat_diag_add(r->diag, "the object's BTF has no struct '%.64s'", word + len + 1);
	return -ENOENT;
}

int replay_check_events(struct replay *r)
{
	unsigned int i;
	int err, first = 0;

	for (i = 0; i < r->opts->events.n; i++) {
		err = check_event(r, r->opts->events.word[i]); /* has its =: the command line was checked */
		first = first ? first : err;
	}
	return first;
}

int replay_fill_maps(struct replay *r)
{
	const char *word;
	unsigned int i;
	char *copy;
	int err = 0;

	for (i = 0; !err && i < r->opts->maps.n; i++) {
		word = r->opts->maps.word[i];
		if (!strchr(word, '=')) {
			err = fill_from_file(r, word);
			continue;
		}
		copy = strdup(word);
		err = copy ? fill_from_word(r, copy) : -ENOMEM;
		free(copy);
	}
	return err;
}
