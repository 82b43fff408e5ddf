/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmap_text.c: entries of maps of ports as text, for configurations and reports, and back: "PORT", or
 * {"port": PORT, "prog": "NAME"} with the program that runs before a packet leaves there. A port is its number, or its
 * name where there are ports. Control thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/btf/json.h"
#include "bpf/env.h"
#include "bpf/prog.h"
#include "netdev/worker.h"
#include "xdp/devmap.h"

int leat_portmap_format(const struct leat_bpf_map *map, const void *value, char *buf, size_t size)
{
	uint32_t word[2] = { 0, 0 }; /* port, number of the program */

	memcpy(word, value, map->value_size);
	if (!word[1] || word[1] > map->obj->n_progs)
		return snprintf(buf, size, "%u", word[0]);
	return snprintf(buf, size, "{\"port\": %u, \"prog\": \"%s\"}", word[0], map->obj->prog[word[1] - 1].name);
}

/** The number of a port by its name or number; 0 when there is none. */
static uint32_t find_port(struct leat_net *net, const char *text)
{
	const struct leat_netdev *dev = net ? leat_netdev_find(net, text) : NULL;
	unsigned long long number;
	char *end;

	if (dev)
		return dev->index;
	errno = 0;
	number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 0) : 0;
	if (!number || *end || errno || number > UINT32_MAX || (net && !leat_netdev_by_index(net, (uint32_t)number)))
		return 0;
	return (uint32_t)number;
}

static int parse_port(const struct leat_bpf_map *map, const char *text, uint32_t *port, struct leat_diag *diag)
{
	*port = find_port(map->env->net, text);
	if (*port)
		return 0;
	leat_diag_add(diag, "map '%s' holds ports, and there is no port '%.40s'", map->name, text);
	return -EINVAL;
}

static int parse_prog(const struct leat_bpf_map *map, const char *text, uint32_t *number, struct leat_diag *diag)
{
	struct leat_bpf_prog *prog = leat_bpf_object_prog_find(map->obj, text);

	if (map->value_size < 2 * sizeof(uint32_t))
		leat_diag_add(diag, "map '%s' has values of 4 bytes: entries have no programs", map->name);
	else if (!prog)
		leat_diag_add(diag, "the object has no program '%.40s'", text);
	else if (!leat_bpf_prog_egress(prog))
		leat_diag_add(diag, "program '%.40s' is not for packets that leave: its section must be xdp/devmap",
			      text);
	else if (!prog->loaded)
		leat_diag_add(diag, "program '%.40s' is not loaded", text);
	else
		*number = leat_bpf_prog_number(prog);
	return *number ? 0 : -EINVAL;
}

/** The text of a member: a string's, or a number's. NULL: it is neither. */
static const char *text_of(const json_t *json, char *buf, size_t size)
{
	if (json_is_string(json))
		return json_string_value(json);
	if (!json_is_integer(json))
		return NULL;
	snprintf(buf, size, "%lld", (long long)json_integer_value(json));
	return buf;
}

static int parse_member(const struct leat_bpf_map *map, const char *name, const json_t *json, uint32_t *word,
			struct leat_diag *diag)
{
	char number[24];
	const char *text = text_of(json, number, sizeof(number));

	if (text && !strcmp(name, "port"))
		return parse_port(map, text, &word[0], diag);
	if (text && !strcmp(name, "prog"))
		return parse_prog(map, text, &word[1], diag);
	leat_diag_add(diag, "an entry of map '%s' is a port, or { port: PORT, prog: PROGRAM }", map->name);
	return -EINVAL;
}

static int parse_object(const struct leat_bpf_map *map, const char *text, uint32_t *word, struct leat_diag *diag)
{
	json_t *json = NULL, *member;
	const char *name;
	int err = leat_btf_json_load(text, diag, &json);

	if (err)
		return err;
	json_object_foreach(json, name, member) {
		err = parse_member(map, name, member, word, diag);
		if (err)
			break;
	}
	json_decref(json);
	if (!err && !word[0]) {
		leat_diag_add(diag, "an entry of map '%s' must have a port", map->name);
		err = -EINVAL;
	}
	return err;
}

int leat_portmap_parse(const struct leat_bpf_map *map, const char *text, void *value, struct leat_diag *diag)
{
	uint32_t word[2] = { 0, 0 };
	int err = *text == '{' ? parse_object(map, text, word, diag) : parse_port(map, text, &word[0], diag);

	if (!err)
		memcpy(value, word, map->value_size);
	return err;
}
