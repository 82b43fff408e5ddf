/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_config.c: how libxdp wants a program to run in a chain. The section .xdp_run_config has a variable for each
 * program, called like it with an underscore before it, whose type says numbers as map definitions do:
 *
 *   struct { int (*priority)[10]; int (*XDP_PASS)[1]; } _PROG SEC(".xdp_run_config");
 *
 * The chain goes on after the actions that are not zero; XDP_PASS is one of them unless it is said to be zero.
 */
#include <stdio.h>
#include <string.h>

#include "load.h"

#define PRIO_DEFAULT 50u

static const char *const actions[] = {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"};

static void read_member(const struct btf *btf, const struct btf_member *m, struct load_run_config *config)
{
	const char *name = btf__name_by_offset(btf, m->name_off);
	const struct btf_type *t = btf__type_by_id(btf, m->type);
	uint32_t number, bit;

	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	if (!name || !t || !btf_is_array(t))
		return;
	number = btf_array(t)->nelems;
	if (!strcmp(name, "priority"))
		config->prio = number;
	for (bit = 0; bit < sizeof(actions) / sizeof(actions[0]); bit++)
		if (!strcmp(name, actions[bit]))
			config->actions = (config->actions & ~(1u << bit)) | (uint32_t)(number != 0) << bit;
}

static const struct btf_type *find_struct(const struct btf *btf, const char *prog)
{
	int id = btf__find_by_name_kind(btf, ".xdp_run_config", BTF_KIND_DATASEC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL, *var;
	const char *name;
	unsigned int i;

	for (i = 0; t && i < btf_vlen(t); i++) {
		var = btf__type_by_id(btf, btf_var_secinfos(t)[i].type);
		name = var ? btf__name_by_offset(btf, var->name_off) : NULL;
		if (!name || !btf_is_var(var) || name[0] != '_' || strcmp(name + 1, prog) != 0)
			continue;
		t = btf__type_by_id(btf, var->type);
		return t && btf_is_struct(t) ? t : NULL;
	}
	return NULL;
}

void load_run_config(const struct btf *btf, const char *prog, struct load_run_config *config)
{
	const struct btf_type *t = btf ? find_struct(btf, prog) : NULL;
	unsigned int i;

	config->prio = PRIO_DEFAULT;
	config->actions = 1u << XDP_PASS;
	for (i = 0; t && i < btf_vlen(t); i++)
		read_member(btf, btf_members(t) + i, config);
}
