/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * legacy_maps.c: map definitions of before BTF, SEC("maps"): five 32-bit numbers each (type, key size, value size,
 * entries, flags), in structs that may be longer as long as the rest is zero. The section is renamed to ".maps", and
 * the same definitions are written into the BTF, which is made when there is none:
 *
 *   struct { int (*type)[TYPE]; int (*key_size)[N]; ... } NAME;
 *
 * BPF_ANNOTATE_KV_PAIR's struct ____btf_map_NAME { key; value; } gives the types of keys and values.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define MAP_NUMBERS 5u

static const char *const number_names[MAP_NUMBERS] = {"type", "key_size", "value_size", "max_entries", "map_flags"};

/** One map symbol of the section. */
struct legacy_map {
	unsigned int symbol; /* in the ELF file */
	uint64_t off, size;
	const char *name;
};

struct legacy {
	struct load *load;
	unsigned int section;
	Elf64_Shdr sh;
	struct legacy_map map[LEAT_IMAGE_MAPS_MAX];
	unsigned int n;
	unsigned int target; /* the section whose relocations are looked at */
	struct btf *btf;
	int int_id;
};

static int by_offset(const void *a, const void *b)
{
	const struct legacy_map *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

/* Finds the maps by their symbols; each goes up to the next one. */
static int find_maps(struct legacy *l)
{
	struct load_elf *elf = &l->load->elf;
	Elf64_Sym sym;
	unsigned int i;

	for (i = 1; load_elf_symbol(elf, i, &sym); i++) {
		if (sym.st_shndx != l->section || ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
			continue;
		if (l->n == LEAT_IMAGE_MAPS_MAX) {
			load_say(l->load, "has more than %u maps", LEAT_IMAGE_MAPS_MAX);
			return -E2BIG;
		}
		/* static ones, too: libbpf looks for global symbols only */
		sym.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
		load_elf_set_symbol(elf, i, &sym);
		l->map[l->n++] = (struct legacy_map){
			.symbol = i,
			.off = sym.st_value,
			.name = load_elf_symbol_name(elf, &sym),
		};
	}
	qsort(l->map, l->n, sizeof(l->map[0]), by_offset);
	for (i = 0; i < l->n; i++)
		l->map[i].size = (i + 1 < l->n ? l->map[i + 1].off : l->sh.sh_size) - l->map[i].off;
	return 0;
}

/* Reads a definition. */
static int read_numbers(struct legacy *l, const struct legacy_map *map, uint32_t number[MAP_NUMBERS])
{
	const uint8_t *content = load_elf_content(&l->load->elf, &l->sh);
	uint64_t i;

	memset(number, 0, MAP_NUMBERS * sizeof(number[0]));
	if (!content || map->off > l->sh.sh_size || map->size > l->sh.sh_size - map->off ||
	    map->size < (MAP_NUMBERS - 1) * sizeof(number[0])) {
		load_say(l->load, "map '%s': its definition is too short", map->name);
		return -EINVAL;
	}
	for (i = MAP_NUMBERS * sizeof(number[0]); i < map->size; i++)
		if (content[map->off + i]) {
			load_say(l->load, "map '%s': its definition says more than type, sizes, entries and flags",
				 map->name);
			return -EINVAL;
		}
	memcpy(number, content + map->off, map->size < MAP_NUMBERS * sizeof(number[0]) ?
	       map->size : MAP_NUMBERS * sizeof(number[0]));
	return 0;
}

/* The id of a pointer type to be member @name, so that it says @number. */
static int number_type(struct legacy *l, uint32_t number)
{
	int id = btf__add_array(l->btf, l->int_id, l->int_id, number);

	return id < 0 ? id : btf__add_ptr(l->btf, id);
}

/* The type that the annotation of @map gives its keys or values, if its size is @size; 0: none. */
static int annotated(const struct legacy *l, const struct legacy_map *map, const char *member, uint32_t size)
{
	const struct btf_type *t;
	char name[256];
	const char *is;
	unsigned int i;
	int id;

	snprintf(name, sizeof(name), "____btf_map_%s", map->name);
	id = btf__find_by_name_kind(l->btf, name, BTF_KIND_STRUCT);
	t = id > 0 ? btf__type_by_id(l->btf, (__u32)id) : NULL;
	for (i = 0; t && i < btf_vlen(t); i++) {
		is = btf__name_by_offset(l->btf, btf_members(t)[i].name_off);
		if (is && !strcmp(is, member) && btf__resolve_size(l->btf, btf_members(t)[i].type) == (__s64)size)
			return (int)btf_members(t)[i].type;
	}
	return 0;
}

/* Adds the struct type that defines @map. Returns its id or a negative errno. */
static int add_definition(struct legacy *l, const struct legacy_map *map, const uint32_t number[MAP_NUMBERS])
{
	static const char *const type_names[MAP_NUMBERS] = {[1] = "key", [2] = "value"};
	int type[MAP_NUMBERS], named[MAP_NUMBERS] = {0}, id, err = 0;
	unsigned int i;

	for (i = 0; i < MAP_NUMBERS; i++) {
		named[i] = type_names[i] ? annotated(l, map, type_names[i], number[i]) : 0;
		type[i] = named[i] ? btf__add_ptr(l->btf, named[i]) : number_type(l, number[i]);
		if (type[i] < 0)
			return type[i];
	}
	id = btf__add_struct(l->btf, NULL, (__u32)map->size);
	for (i = 0; id > 0 && !err && i < MAP_NUMBERS; i++)
		if (number[i])
			err = btf__add_field(l->btf, named[i] ? type_names[i] : number_names[i], type[i], i * 32, 0);
	return err ? err : id;
}

/* Adds all definitions as variables, and their section. */
static int add_variables(struct legacy *l)
{
	uint32_t number[MAP_NUMBERS];
	int var[LEAT_IMAGE_MAPS_MAX], id, err = 0;
	unsigned int i;

	for (i = 0; i < l->n; i++) {
		err = read_numbers(l, &l->map[i], number);
		id = err ? err : add_definition(l, &l->map[i], number);
		var[i] = id < 0 ? id : btf__add_var(l->btf, l->map[i].name, BTF_VAR_GLOBAL_ALLOCATED, id);
		if (var[i] < 0)
			return var[i];
	}
	id = btf__add_datasec(l->btf, ".maps", (__u32)l->sh.sh_size);
	for (i = 0; id > 0 && !err && i < l->n; i++)
		err = btf__add_datasec_var_info(l->btf, var[i], (__u32)l->map[i].off, (__u32)l->map[i].size);
	return id < 0 ? id : err;
}

/* The compiler's own DATASEC "maps" must not be looked up in the file any more: it gets a size. */
static void silence_old_section(struct legacy *l)
{
	int id = btf__find_by_name_kind(l->btf, "maps", BTF_KIND_DATASEC);
	struct btf_type *t;

	if (id <= 0)
		return;
	t = (struct btf_type *)(uintptr_t)btf__type_by_id(l->btf, (__u32)id);
	t->size = (__u32)l->sh.sh_size;
}

/* The symbol of the map at @off; 0: there is none. */
static unsigned int map_symbol(const struct legacy *l, uint32_t off)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (l->map[i].off == off)
			return l->map[i].symbol;
	return 0;
}

/* A static map is referred to by its section and its offset, which stands in the instruction: it gets its symbol. */
static bool name_map(void *arg, Elf64_Rel *rel, uint8_t *where)
{
	struct legacy *l = arg;
	const struct load_elf *elf = &l->load->elf;
	unsigned int symbol;
	Elf64_Sym sym;
	Elf64_Shdr sh;
	uint8_t *imm;
	uint32_t off;

	if (!load_elf_symbol(elf, ELF64_R_SYM(rel->r_info), &sym) || sym.st_shndx != l->section ||
	    ELF64_ST_TYPE(sym.st_info) != STT_SECTION || !load_elf_section(elf, l->target, &sh))
		return true;
	imm = load_elf_content(elf, &sh);
	if (!imm || rel->r_offset > sh.sh_size || sh.sh_size - rel->r_offset < sizeof(struct bpf_insn))
		return true;
	imm += rel->r_offset + offsetof(struct bpf_insn, imm);
	memcpy(&off, imm, sizeof(off));
	symbol = map_symbol(l, off);
	if (!symbol) {
		load_say(l->load, "section '%s' refers to no map at offset %u of the maps",
			 load_elf_section_name(elf, &sh), off);
		return false;
	}
	rel->r_info = ELF64_R_INFO((uint64_t)symbol, ELF64_R_TYPE(rel->r_info));
	memcpy(where, rel, sizeof(*rel));
	memset(imm, 0, sizeof(off));
	return true;
}

static int name_maps(struct legacy *l)
{
	Elf64_Shdr sh;

	for (l->target = 1; load_elf_section(&l->load->elf, l->target, &sh); l->target++)
		if (sh.sh_flags & SHF_EXECINSTR)
			load_elf_each_rel(&l->load->elf, l->target, name_map, l);
	return l->load->said ? -EINVAL : 0;
}

/* Puts the changed BTF into the file and renames the section. */
static int put_back(struct legacy *l)
{
	struct load_elf *elf = &l->load->elf;
	Elf64_Shdr sh;
	__u32 len;
	const void *raw = btf__raw_data(l->btf, &len);
	unsigned int idx = load_elf_find(elf, ".BTF", &sh);

	if (!raw)
		return -ENOMEM;
	load_elf_rename(elf, l->section, ".maps");
	if (idx)
		load_elf_replace(elf, idx, raw, len);
	else
		load_elf_add_section(elf, ".BTF", raw, len);
	return elf->file.failed ? -ENOMEM : 0;
}

static struct btf *open_btf(const struct load_elf *elf)
{
	const uint8_t *content;
	Elf64_Shdr sh;

	if (!load_elf_find(elf, ".BTF", &sh))
		return btf__new_empty();
	content = load_elf_content(elf, &sh);
	return content && sh.sh_size <= UINT32_MAX ? btf__new(content, (__u32)sh.sh_size) : NULL;
}

static int convert(struct legacy *l)
{
	int err = find_maps(l);

	if (!err)
		err = name_maps(l);
	if (err)
		return err;
	l->int_id = btf__add_int(l->btf, "int", sizeof(int), BTF_INT_SIGNED);
	if (l->int_id < 0)
		return l->int_id;
	silence_old_section(l);
	err = add_variables(l);
	return err ? err : put_back(l);
}

int load_legacy_maps(struct load *load)
{
	struct legacy *l;
	Elf64_Shdr sh;
	int err;

	if (load_elf_find(&load->elf, ".maps", &sh) && load_elf_find(&load->elf, "maps", &sh)) {
		load_say(load, "defines maps in both SEC(\"maps\") and SEC(\".maps\"); one of them, please");
		return -EINVAL;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->load = load;
	l->section = load_elf_find(&load->elf, "maps", &l->sh);
	l->btf = l->section ? open_btf(&load->elf) : NULL;
	if (!l->section) {
		err = 0;
	} else if (libbpf_get_error(l->btf) || !l->btf) {
		load_say(load, "its BTF is damaged");
		l->btf = NULL;
		err = -EINVAL;
	} else {
		err = convert(l);
	}
	btf__free(l->btf);
	free(l);
	return err;
}
