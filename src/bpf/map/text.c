/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c: keys, values and records of maps as text, by the BTF of their object. Any thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/btf/btf.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"

static const struct leat_btf *btf_of(const struct leat_bpf_map *map)
{
	return map->obj ? map->obj->btf : NULL;
}

/* Types whose keys, and values, are numbers of 4 bytes; libbpf drops what BTF would say of most of them. */
static const struct {
	uint32_t type;
	bool values, keys;
} numbers[] = {
	{ BPF_MAP_TYPE_ARRAY, false, true },         { BPF_MAP_TYPE_PERCPU_ARRAY, false, true },
	{ BPF_MAP_TYPE_ARRAY_OF_MAPS, false, true }, { BPF_MAP_TYPE_PROG_ARRAY, true, true },
	{ BPF_MAP_TYPE_DEVMAP, false, true },        { BPF_MAP_TYPE_DEVMAP_HASH, false, true },
	{ BPF_MAP_TYPE_CPUMAP, true, true },         { BPF_MAP_TYPE_XSKMAP, true, true },
	{ BPF_MAP_TYPE_HASH_OF_MAPS, false, true },
};

static bool is_number(const struct leat_bpf_map *map, bool key)
{
	uint32_t size = key ? map->key_size : map->value_size;
	size_t i;

	if (size != sizeof(uint32_t) || (key ? map->btf_key : map->btf_value))
		return false;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].type == map->type->type)
			return key ? numbers[i].keys : numbers[i].values;
	return false;
}

static int format_number(const void *bytes, char *buf, size_t size)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	return snprintf(buf, size, "%" PRIu32, number);
}

int leat_bpf_map_format_key(const struct leat_bpf_map *map, const void *key, char *buf, size_t size)
{
	if (is_number(map, true))
		return format_number(key, buf, size);
	return leat_btf_format(btf_of(map), map->btf_key, key, map->key_size, buf, size);
}

/* A map of maps names its values; they are strings in JSON. */
static int format_inner(const struct leat_bpf_map *map, const void *value, char *buf, size_t size)
{
	uint32_t number;

	memcpy(&number, value, sizeof(number));
	return snprintf(buf, size, "\"%s\"", number < leat_bpf_object_maps(map->obj) ? map->obj->map[number].name : "?");
}

int leat_bpf_map_format_value(const struct leat_bpf_map *map, const void *value, char *buf, size_t size)
{
	if (map->type->flags & LEAT_BPF_MAP_NESTED)
		return format_inner(map, value, buf, size);
	if (map->type->format_value)
		return map->type->format_value(map, value, buf, size);
	if (is_number(map, false))
		return format_number(value, buf, size);
	return leat_btf_format(btf_of(map), map->btf_value, value, map->value_size, buf, size);
}

/* "10.0.0.0/8" as the key of an LPM trie: length of the prefix, then the address. */
static bool parse_prefix(const struct leat_bpf_map *map, const char *text, uint8_t *key)
{
	const char *slash = strchr(text, '/');
	struct bpf_lpm_trie_key lpm;
	char addr[INET6_ADDRSTRLEN];
	uint32_t bytes = map->key_size - (uint32_t)sizeof(lpm);
	char *end;

	if (map->type->type != BPF_MAP_TYPE_LPM_TRIE || !slash || (size_t)(slash - text) >= sizeof(addr) ||
	    (bytes != 4 && bytes != 16) || slash[1] < '0' || slash[1] > '9')
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	lpm.prefixlen = (uint32_t)strtoul(slash + 1, &end, 10);
	if (*end || lpm.prefixlen > bytes * 8 ||
	    inet_pton(bytes == 4 ? AF_INET : AF_INET6, addr, key + sizeof(lpm)) != 1)
		return false;
	memcpy(key, &lpm.prefixlen, sizeof(lpm.prefixlen));
	return true;
}

int leat_bpf_map_parse_key(const struct leat_bpf_map *map, const char *text, void *key, struct leat_diag *diag)
{
	memset(key, 0, map->key_size);
	if (parse_prefix(map, text, key))
		return 0;
	return leat_btf_parse(btf_of(map), map->btf_key, text, key, map->key_size, diag);
}

static int parse_inner(const struct leat_bpf_map *map, const char *text, void *value, struct leat_diag *diag)
{
	const struct leat_bpf_map *inner = leat_bpf_object_map_find(map->obj, text);

	if (!inner) {
		leat_diag_add(diag, "map '%s' holds maps, and there is no map '%.64s'", map->name, text);
		return -EINVAL;
	}
	memcpy(value, &inner->number, sizeof(inner->number));
	return 0;
}

int leat_bpf_map_parse_value(const struct leat_bpf_map *map, const char *text, void *value, struct leat_diag *diag)
{
	memset(value, 0, map->value_size);
	if (map->type->flags & LEAT_BPF_MAP_NESTED)
		return parse_inner(map, text, value, diag);
	if (map->type->parse_value)
		return map->type->parse_value(map, text, value, diag);
	return leat_btf_parse(btf_of(map), map->btf_value, text, value, map->value_size, diag);
}

static uint32_t find_type(const struct leat_bpf_object *obj, const char *name)
{
	static const uint32_t kinds[] = { BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_TYPEDEF };
	uint32_t id = 0;
	size_t i;

	if (!obj->btf || !*name)
		return 0;
	for (i = 0; !id && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		id = leat_btf_find(obj->btf, name, kinds[i]);
	return id;
}

uint32_t leat_bpf_object_type_size(const struct leat_bpf_object *obj, const char *type)
{
	return obj->btf ? leat_btf_size(obj->btf, find_type(obj, type)) : 0;
}

int leat_bpf_object_format(const struct leat_bpf_object *obj, const char *type, const void *bytes, uint32_t size,
			   char *buf, size_t buf_size)
{
	uint32_t own = leat_bpf_object_type_size(obj, type);

	if (!own || size < own)
		return -ENOENT;
	return leat_btf_format(obj->btf, find_type(obj, type), bytes, own, buf, buf_size);
}
