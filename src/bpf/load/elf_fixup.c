/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf_fixup.c: what libbpf 1.x refuses, though its meaning is plain, is put into its words before it sees it:
 *
 *   - entry programs that are static (Cilium's): their symbols become global;
 *   - a kind of pinning that only its author's loader knows (Cilium's 16): becomes pinning by name;
 *   - map definitions in SEC("maps"): legacy_maps.c.
 */
#include <errno.h>
#include <string.h>

#include "check_btf.h"
#include "load.h"

static bool is_entry_section(const struct load_elf *elf, unsigned int idx)
{
	Elf64_Shdr sh;

	return idx < SHN_LORESERVE && load_elf_section(elf, idx, &sh) && sh.sh_type == SHT_PROGBITS &&
		(sh.sh_flags & SHF_EXECINSTR) && strcmp(load_elf_section_name(elf, &sh), ".text") != 0;
}

static void make_entries_global(struct load_elf *elf)
{
	Elf64_Sym sym;
	unsigned int i;

	for (i = 1; load_elf_symbol(elf, i, &sym); i++) {
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || ELF64_ST_BIND(sym.st_info) != STB_LOCAL)
			continue;
		if (!is_entry_section(elf, sym.st_shndx))
			continue;
		sym.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		load_elf_set_symbol(elf, i, &sym);
	}
}

/* ---- pinning ---- */

/* The array type behind a member __uint(name, number): the number is its length. NULL: it is something else. */
static const struct btf_array *number_of(const struct btf *btf, const struct btf_member *m)
{
	const struct btf_type *t = btf__type_by_id(btf, m->type);

	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_array(t) ? btf_array(t) : NULL;
}

/* Makes member @idx of struct @id say 1. Returns 1 when it did not. */
static int pin_by_name(struct btf *btf, __u32 id, unsigned int idx)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_array *array = number_of(btf, btf_members(t) + idx);
	int ptr;

	if (!array || array->nelems < 2)
		return 0;
	ptr = btf__add_array(btf, (int)array->index_type, (int)array->type, 1);
	if (ptr > 0)
		ptr = btf__add_ptr(btf, ptr);
	if (ptr < 0)
		return ptr;
	/* adding may have moved everything */
	btf_members((struct btf_type *)(uintptr_t)btf__type_by_id(btf, id))[idx].type = (__u32)ptr;
	return 1;
}

static int fix_definition(struct btf *btf, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const char *name;
	unsigned int i;

	if (!t || !btf_is_struct(t))
		return 0;
	for (i = 0; i < btf_vlen(t); i++) {
		name = btf__name_by_offset(btf, btf_members(t)[i].name_off);
		if (name && !strcmp(name, "pinning"))
			return pin_by_name(btf, id, i);
	}
	return 0;
}

/* Returns how many definitions were changed, or a negative errno. */
static int fix_pinning(struct btf *btf)
{
	int datasec = btf__find_by_name_kind(btf, ".maps", BTF_KIND_DATASEC);
	const struct btf_type *t, *var;
	unsigned int i;
	int changed = 0, ret;

	for (i = 0; datasec > 0; i++) {
		t = btf__type_by_id(btf, (__u32)datasec);
		if (i >= btf_vlen(t))
			break;
		var = btf__type_by_id(btf, btf_var_secinfos(t)[i].type);
		ret = var && btf_is_var(var) ? fix_definition(btf, var->type) : 0;
		if (ret < 0)
			return ret;
		changed += ret;
	}
	return changed;
}

static int fix_btf(struct load_elf *elf)
{
	const uint8_t *content;
	struct btf *btf;
	Elf64_Shdr sh;
	const void *raw;
	__u32 len;
	unsigned int idx = load_elf_find(elf, ".BTF", &sh);
	int ret;

	content = idx ? load_elf_content(elf, &sh) : NULL;
	if (!content || sh.sh_size > UINT32_MAX)
		return 0;
	btf = btf__new(content, (__u32)sh.sh_size);
	if (libbpf_get_error(btf))
		return 0; /* libbpf will say so itself, if it needs it */
	ret = fix_pinning(btf);
	if (ret > 0) {
		raw = btf__raw_data(btf, &len);
		if (raw)
			load_elf_replace(elf, idx, raw, len);
		ret = raw ? 0 : -ENOMEM;
	}
	btf__free(btf);
	return ret;
}

/* Whether libbpf may see the object's BTF. */
static int check_btf(struct load *load)
{
	const uint8_t *content;
	char why[256];
	Elf64_Shdr sh;
	int err;

	if (!load_elf_find(&load->elf, ".BTF", &sh))
		return 0;
	content = load_elf_content(&load->elf, &sh);
	if (!content) {
		load_say(load, "is damaged: its BTF is not there");
		return -EINVAL;
	}
	err = load_check_btf(content, sh.sh_size, why, sizeof(why));
	if (err)
		load_say(load, "%s", why);
	return err;
}

int load_elf_fixup(struct load *load)
{
	const char *why = load_elf_open(&load->elf);
	int err;

	if (why) {
		load_say(load, "%s", why);
		return -EINVAL;
	}
	make_entries_global(&load->elf);
	err = check_btf(load);
	if (!err)
		err = load_legacy_maps(load);
	if (!err)
		err = fix_btf(&load->elf);
	if (!err && load->elf.file.failed)
		err = -ENOMEM;
	if (err && !load->said)
		load_say(load, "cannot be read: %s", strerror(-err));
	return err;
}
