/* SPDX-License-Identifier: BSD-3-Clause */
/* globals.c: global variables of an object that libbpf has opened. See globals.h. */
#include "globals.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>

/** Where variable @name lies in the section of a type number: its offset, or -1. */
static int64_t offset_in(const struct btf *btf, uint32_t section, const char *name)
{
	const struct btf_type *type = btf__type_by_id(btf, section);
	const struct btf_var_secinfo *var = btf_var_secinfos(type);
	uint16_t i;

	for (i = 0; i < btf_vlen(type); i++, var++) {
		if (!strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, var->type)->name_off), name))
			return var->offset;
	}
	return -1;
}

void globals_set(struct bpf_object *obj, const char *name, uint32_t off, const void *bytes, uint32_t len)
{
	struct bpf_map *map;
	uint8_t *at;
	int64_t in;
	size_t size;

	bpf_object__for_each_map(map, obj) {
		if (!bpf_map__is_internal(map) || !bpf_map__btf_value_type_id(map))
			continue;
		in = offset_in(bpf_object__btf(obj), bpf_map__btf_value_type_id(map), name);
		at = (uint8_t *)(uintptr_t)bpf_map__initial_value(map, &size);
		if (in >= 0 && at)
			memcpy(at + in + off, bytes, len);
	}
}
