/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contents.c: filling and comparing maps. See contents.h.
 *
 * What a key means is guessed from its size: addresses, ports and five-tuples of the few that packets are made of; a
 * key of 4 bytes is an IPv4 address or a small number.
 */
#include "contents.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map.h"

/** Elements that are compared after every few packets; maps with more only at the end. */
#define MANY 4096u
#define FILL_MAX 300u
#define KEY_MAX 512u

static void say(const struct contents *c, const char *format, ...) LEAT_PRINTF(2, 3);

static void say(const struct contents *c, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->say(c->arg, text);
}

static const char *hex(char *text, size_t size, const uint8_t *bytes, size_t len)
{
	size_t i;

	text[0] = 0;
	for (i = 0; i < len && 2 * i + 2 < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

/* ---- kinds of map ---- */

static bool is_array(const struct leat_bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_ARRAY || info->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static bool is_hash(const struct leat_bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_HASH || info->type == BPF_MAP_TYPE_PERCPU_HASH ||
	       info->type == BPF_MAP_TYPE_LRU_HASH || info->type == BPF_MAP_TYPE_LRU_PERCPU_HASH ||
	       info->type == BPF_MAP_TYPE_LPM_TRIE;
}

static bool has_ports(const struct leat_bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_DEVMAP || info->type == BPF_MAP_TYPE_DEVMAP_HASH ||
	       info->type == BPF_MAP_TYPE_CPUMAP;
}

/** Bytes of a value as system calls handle it, in the kernel. */
static size_t value_bytes(const struct contents *c, const struct leat_bpf_map_info *info)
{
	return info->per_cpu ? ((size_t)info->value_size + 7) / 8 * 8 * c->world->kernel_cpus : info->value_size;
}

/* ---- keys and values ---- */

static void put_be16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void make_port(struct numbers *n, uint8_t *key)
{
	uint16_t port = packet_port(n);

	if (numbers_below(n, 4))
		put_be16(key, port);
	else
		memcpy(key, &port, sizeof(port));
}

static void make_number(struct numbers *n, uint8_t *key)
{
	uint32_t number = numbers_below(n, numbers_below(n, 2) ? 16 : 0x10000);

	memcpy(key, &number, sizeof(number));
}

/** Addresses, ports and protocol; what is left over is 0. */
static void make_tuple(struct numbers *n, uint8_t *key)
{
	packet_ipv4(n, key);
	packet_ipv4(n, key + 4);
	put_be16(key + 8, packet_port(n));
	put_be16(key + 10, packet_port(n));
	key[12] = packet_protocol(n);
}

/** As xdp-trafficgen has it. */
static void make_ipv6_tuple(struct numbers *n, uint8_t *key)
{
	packet_ipv6(n, key);
	packet_ipv6(n, key + 16);
	put_be16(key + 32, packet_port(n));
	put_be16(key + 34, packet_port(n));
}

static void make_service(struct numbers *n, uint8_t *key)
{
	packet_ipv4(n, key);
	put_be16(key + 4, packet_port(n));
	key[6] = packet_protocol(n);
}

static void make_prefix(struct numbers *n, uint8_t *key, uint32_t size)
{
	uint32_t bits = numbers_below(n, 8 * (size - 4) + 1);

	if (numbers_below(n, 2))
		bits = bits / 8 * 8;
	if (!numbers_below(n, 8))
		bits = 8 * (size - 4);
	memcpy(key, &bits, sizeof(bits));
	if (size == 8)
		packet_ipv4(n, key + 4);
	else if (size == 20)
		packet_ipv6(n, key + 4);
	else
		numbers_fill(n, key + 4, size - 4);
}

static void make_key(struct numbers *n, const struct leat_bpf_map_info *info, uint8_t *key)
{
	memset(key, 0, info->key_size);
	if (info->type == BPF_MAP_TYPE_LPM_TRIE)
		make_prefix(n, key, info->key_size);
	else if (info->key_size == 2)
		make_port(n, key);
	else if (info->key_size == 4 && numbers_below(n, 2))
		packet_ipv4(n, key);
	else if (info->key_size == 4)
		make_number(n, key);
	else if (info->key_size == 6)
		packet_mac(n, key);
	else if (info->key_size == 8)
		make_service(n, key);
	else if (info->key_size == 16 && numbers_below(n, 2))
		packet_ipv6(n, key);
	else if (info->key_size >= 13 && info->key_size <= 16)
		make_tuple(n, key);
	else if (info->key_size == 36)
		make_ipv6_tuple(n, key);
	else
		numbers_fill(n, key, info->key_size);
}

/** Small numbers (an index, perhaps, where there are 4 bytes), bits that are all set, nothing, anything. */
static void make_value(struct numbers *n, uint8_t *value, size_t len)
{
	memset(value, 0, len);
	if (len == 4 && numbers_below(n, 3)) {
		value[0] = (uint8_t)numbers_below(n, 3);
		return;
	}
	switch (numbers_below(n, 4)) {
	case 0:
		value[0] = (uint8_t)numbers_below(n, 16);
		break;
	case 1:
		value[0] = 0xff;
		break;
	case 2:
		break;
	default:
		numbers_fill(n, value, len);
	}
}

/** The flow that xdp-trafficgen sends is one that it knows, and is open: its key is all zero. */
static void open_flow(const struct both_map *map, bool first, uint8_t *key, uint8_t *value)
{
	if (!strcmp(map->name, "state_map"))
		memset(value, 0, map->info.value_size);
	if (strcmp(map->name, "flow_state_map") != 0 || !first)
		return;
	memset(key, 0, map->info.key_size);
	memset(value, 0, map->info.value_size);
	value[32] = 2; /* flow_state; its window stays closed, for what is sent is noted with the time */
}

/* ---- filling ---- */

static void set(const struct contents *c, struct both_map *map, const uint8_t *key, const uint8_t *value)
{
	int kernel = bpf_map_update_elem(map->fd, key, value, BPF_ANY);
	int leat = leat_bpf_map_update(map->leat, key, value, BPF_ANY);
	char text[256];

	if (kernel != leat)
		say(c, "map %s: setting %s gives %d in the kernel, %d in leat", map->name,
		    hex(text, sizeof(text), key, map->info.key_size), kernel, leat);
}

static void fill_generic(const struct contents *c, struct numbers *n, struct both_map *map)
{
	size_t len = value_bytes(c, &map->info), off, part = map->info.per_cpu ? len / c->world->kernel_cpus : len;
	uint8_t key[KEY_MAX], *value = malloc(len);
	uint32_t i, count = map->info.max_entries;
	bool array = is_array(&map->info);

	if (!array)
		count = count < 2 * FILL_MAX ? (count + 1) / 2 : FILL_MAX;
	else if (count > MANY)
		count = FILL_MAX;
	for (i = 0; value && i < count; i++) {
		make_key(n, &map->info, key);
		if (array && map->info.max_entries <= MANY) {
			memcpy(key, &i, sizeof(i));
		} else if (array) { /* ports, in either order of bytes */
			memset(key, 0, sizeof(i));
			make_port(n, key);
		}
		for (off = 0; off < len; off += part)
			make_value(n, value + off, part);
		open_flow(map, !i, key, value);
		set(c, map, key, value);
	}
	free(value);
}

static void fill_ports(const struct contents *c, struct numbers *n, struct both_map *map)
{
	struct {
		uint32_t what, prog;
	} value = { c->world->ifindex, 0 };
	uint32_t i, key, count = (map->info.max_entries + 1) / 2;

	for (i = 0; i < count && i < 64; i++) {
		key = numbers_below(n, map->info.type == BPF_MAP_TYPE_DEVMAP_HASH ? 256 : map->info.max_entries);
		if (!i)
			key = 0; /* tools with one port use it */
		value.what = numbers_below(n, 3) ? c->world->ifindex : 1;
		if (map->info.type == BPF_MAP_TYPE_CPUMAP) {
			key = i;
			value.what = 64; /* packets that its queue holds */
			if (key >= c->world->cpus)
				break;
		}
		set(c, map, (uint8_t *)&key, (uint8_t *)&value);
	}
}

static void fill_sockets(const struct contents *c, struct both_map *map)
{
	uint32_t key = 1;

	if (map->socket >= 0 && key < map->info.max_entries)
		set(c, map, (uint8_t *)&key, (uint8_t *)&map->socket);
}

/** The places that the object itself leaves empty get its programs, where the kernel takes them. */
static void fill_programs(const struct contents *c, struct both *both, struct both_map *map)
{
	uint32_t i, id;
	int err;

	for (i = 0; i < map->info.max_entries && i < 2 * both->n_progs; i++) {
		const struct both_prog *prog = &both->prog[i % both->n_progs];

		if (!bpf_map_lookup_elem(map->fd, &i, &id) || bpf_map_update_elem(map->fd, &i, &prog->fd, BPF_ANY))
			continue;
		err = leat_bpf_prog_array_set(map->leat, i, prog->leat);
		if (err)
			say(c, "map %s: place %u cannot be program %s: %d", map->name, i, prog->name, err);
	}
}

void contents_fill(const struct contents *c, struct both *both)
{
	struct numbers n = { 1 };
	unsigned int i;

	for (i = 0; i < both->n_maps; i++) {
		struct both_map *map = &both->map[i];

		if (map->info.internal)
			continue;
		if (is_array(&map->info) || is_hash(&map->info))
			fill_generic(c, &n, map);
		else if (has_ports(&map->info))
			fill_ports(c, &n, map);
		else if (map->info.type == BPF_MAP_TYPE_XSKMAP)
			fill_sockets(c, map);
		else if (map->info.type == BPF_MAP_TYPE_PROG_ARRAY)
			fill_programs(c, both, map);
	}
}

/* ---- comparing ---- */

struct values {
	uint8_t *kernel, *leat;
	size_t part, stride; /* bytes of one CPU's value, distance to the next */
	unsigned int parts;
};

static bool values_init(const struct contents *c, const struct leat_bpf_map_info *info, struct values *v)
{
	size_t len = value_bytes(c, info);

	v->part = info->value_size;
	v->parts = info->per_cpu ? c->world->cpus : 1;
	v->stride = info->per_cpu ? len / c->world->kernel_cpus : len;
	v->kernel = calloc(2, len);
	v->leat = v->kernel + len;
	return v->kernel;
}

static void compare_values(const struct contents *c, const struct both_map *map, const uint8_t *key,
			   const struct values *v)
{
	char k[128], a[512], b[512];
	unsigned int cpu;

	for (cpu = 0; cpu < v->parts; cpu++) {
		const uint8_t *kernel = v->kernel + cpu * v->stride, *leat = v->leat + cpu * v->stride;

		if (!memcmp(kernel, leat, v->part))
			continue;
		say(c, "map %s: key %s, CPU %u: %s in the kernel, %s in leat", map->name,
		    hex(k, sizeof(k), key, map->info.key_size), cpu, hex(a, sizeof(a), kernel, v->part),
		    hex(b, sizeof(b), leat, v->part));
		return;
	}
}

static void compare_key(const struct contents *c, const struct both_map *map, const uint8_t *key,
			const struct values *v)
{
	int kernel = bpf_map_lookup_elem(map->fd, key, v->kernel), leat = leat_bpf_map_lookup(map->leat, key, v->leat);
	char k[128];

	if (kernel != leat)
		say(c, "map %s: looking up %s gives %d in the kernel, %d in leat", map->name,
		    hex(k, sizeof(k), key, map->info.key_size), kernel, leat);
	else if (!kernel)
		compare_values(c, map, key, v);
}

static void compare_array(const struct contents *c, const struct both_map *map, const struct values *v)
{
	uint32_t i;

	for (i = 0; i < map->info.max_entries; i++)
		compare_key(c, map, (uint8_t *)&i, v);
}

/** Every key of either side. */
static void compare_hash(const struct contents *c, const struct both_map *map, const struct values *v)
{
	uint8_t key[KEY_MAX], next[KEY_MAX];
	unsigned int kernel = 0, leat = 0;
	bool first;

	for (first = true; !bpf_map_get_next_key(map->fd, first ? NULL : key, next); first = false, kernel++) {
		memcpy(key, next, map->info.key_size);
		compare_key(c, map, key, v);
	}
	for (first = true; !leat_bpf_map_next_key(map->leat, first ? NULL : key, next); first = false, leat++) {
		memcpy(key, next, map->info.key_size);
		compare_key(c, map, key, v);
	}
	if (kernel != leat)
		say(c, "map %s: %u keys in the kernel, %u in leat", map->name, kernel, leat);
}

/** The kernel pads what goes through perf to a multiple of 8 (4 bytes of length included). */
static bool same_length(const struct both_map *map, uint32_t kernel, uint32_t leat)
{
	return map->perf ? kernel >= leat && kernel - leat < 8 : kernel == leat;
}

static void compare_records(const struct contents *c, const struct both_map *map)
{
	const struct both_records *k = &map->kernel_records, *l = &map->leat_records;
	size_t at = 0, to = 0;
	uint32_t len, mine, n;
	char a[256], b[256];

	for (n = 0; at < k->len && to < l->len; n++, at += len, to += mine) {
		memcpy(&len, k->bytes + at, sizeof(len));
		memcpy(&mine, l->bytes + to, sizeof(mine));
		at += sizeof(len);
		to += sizeof(mine);
		if (same_length(map, len, mine) && !memcmp(k->bytes + at, l->bytes + to, mine))
			continue;
		say(c, "map %s: record %u is %u bytes %s in the kernel, %u bytes %s in leat", map->name, n, len,
		    hex(a, sizeof(a), k->bytes + at, len), mine, hex(b, sizeof(b), l->bytes + to, mine));
		return;
	}
	if (at < k->len || to < l->len)
		say(c, "map %s: %s has more records than %u", map->name, at < k->len ? "the kernel" : "leat", n);
}

void contents_compare(const struct contents *c, struct both *both, bool all)
{
	struct values v;
	unsigned int i;

	both_consume(both);
	for (i = 0; i < both->n_maps; i++) {
		const struct both_map *map = &both->map[i];
		bool array = is_array(&map->info) || (has_ports(&map->info) &&
						      map->info.type != BPF_MAP_TYPE_DEVMAP_HASH);

		if (map->ring || map->perf)
			compare_records(c, map);
		if ((!all && map->info.max_entries > MANY && array) || !values_init(c, &map->info, &v))
			continue;
		if (array)
			compare_array(c, map, &v);
		else if (is_hash(&map->info) || map->info.type == BPF_MAP_TYPE_DEVMAP_HASH)
			compare_hash(c, map, &v);
		free(v.kernel);
	}
}
