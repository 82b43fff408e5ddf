/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf_view.c: reading and changing the bytes of an ELF object in memory.
 *
 * The bytes are hostile: every offset is checked against the file where it is used, and headers are copied in and out,
 * so that nothing relies on alignment. What grows (a section's new bytes, the section table) is appended to the file.
 */
#include <errno.h>
#include <string.h>

#include "load.h"

/* clang names it so for -target bpf */
#ifndef EM_BPF
#define EM_BPF 247
#endif

#define HOST_DATA (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

static bool within(const struct load_elf *elf, uint64_t off, uint64_t len)
{
	return off <= elf->file.len && len <= elf->file.len - off;
}

static const char *check_head(const struct load_elf *elf)
{
	const Elf64_Ehdr *head = &elf->head;

	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return "is not an ELF file";
	if (head->e_ident[EI_CLASS] != ELFCLASS64)
		return "is a 32-bit ELF file; eBPF objects are 64-bit";
	if (head->e_ident[EI_DATA] != HOST_DATA)
		return "has another byte order than this machine; compile it with -target bpf";
	if (head->e_machine != EM_BPF)
		return "was compiled for another machine; compile it with -target bpf";
	if (head->e_type != ET_REL)
		return "is no object file but linked already";
	if (head->e_shentsize != sizeof(Elf64_Shdr) || !within(elf, head->e_shoff, 0) ||
	    !within(elf, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)) || head->e_shnum == 0)
		return "is damaged or cut short: its section table lies outside the file";
	if (head->e_shstrndx >= head->e_shnum)
		return "is damaged: it has no section names";
	return NULL;
}

static const char *check_sections(struct load_elf *elf)
{
	Elf64_Shdr sh;
	unsigned int i;

	for (i = 1; load_elf_section(elf, i, &sh); i++) {
		if (sh.sh_type != SHT_NOBITS && sh.sh_type != SHT_NULL && !within(elf, sh.sh_offset, sh.sh_size))
			return "is damaged or cut short: a section lies outside the file";
		if (sh.sh_type == SHT_NOBITS && (sh.sh_size > LEAT_IMAGE_SIZE_MAX || (sh.sh_flags & SHF_EXECINSTR)))
			return "has too much data without contents (.bss)";
		if (sh.sh_type == SHT_SYMTAB && sh.sh_entsize != sizeof(Elf64_Sym))
			return "is damaged: its symbols have an unknown size";
		if (sh.sh_type == SHT_REL && sh.sh_entsize != sizeof(Elf64_Rel))
			return "is damaged: its relocations have an unknown size";
		if (sh.sh_type == SHT_RELA && sh.sh_entsize != sizeof(Elf64_Rela))
			return "is damaged: its relocations have an unknown size";
		if (sh.sh_type == SHT_SYMTAB && !elf->symtab) {
			elf->symtab = i;
			elf->n_syms = sh.sh_size / sizeof(Elf64_Sym);
		}
	}
	return elf->symtab ? NULL : "has no symbols (stripped?)";
}

/* Functions and objects lie within their sections. */
static const char *check_symbols(const struct load_elf *elf)
{
	Elf64_Shdr sh;
	Elf64_Sym sym;
	unsigned int i;

	for (i = 1; load_elf_symbol(elf, i, &sym); i++) {
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
			continue;
		if (!load_elf_section(elf, sym.st_shndx, &sh) || sym.st_value > sh.sh_size ||
		    sym.st_size > sh.sh_size - sym.st_value)
			return "is damaged: a symbol lies outside its section";
	}
	return NULL;
}

const char *load_elf_open(struct load_elf *elf)
{
	const char *why;

	elf->symtab = elf->n_syms = 0;
	memset(&elf->head, 0, sizeof(elf->head));
	if (elf->file.len < sizeof(elf->head))
		return elf->file.len < SELFMAG || memcmp(elf->file.p, ELFMAG, SELFMAG) != 0 ?
			"is not an ELF file" : "is cut short within its header";
	memcpy(&elf->head, elf->file.p, sizeof(elf->head));
	why = check_head(elf);
	if (!why)
		why = check_sections(elf);
	return why ? why : check_symbols(elf);
}

bool load_elf_section(const struct load_elf *elf, unsigned int idx, Elf64_Shdr *sh)
{
	if (idx >= elf->head.e_shnum)
		return false;
	memcpy(sh, elf->file.p + elf->head.e_shoff + idx * sizeof(*sh), sizeof(*sh));
	return true;
}

void load_elf_set_section(struct load_elf *elf, unsigned int idx, const Elf64_Shdr *sh)
{
	memcpy(elf->file.p + elf->head.e_shoff + idx * sizeof(*sh), sh, sizeof(*sh));
}

uint8_t *load_elf_content(const struct load_elf *elf, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || sh->sh_type == SHT_NULL || !within(elf, sh->sh_offset, sh->sh_size))
		return NULL;
	return elf->file.p + sh->sh_offset;
}

/* Text at @off of section @idx, or "" where it does not end within it. */
static const char *text_at(const struct load_elf *elf, unsigned int idx, uint64_t off)
{
	const uint8_t *content;
	Elf64_Shdr sh;

	if (!load_elf_section(elf, idx, &sh))
		return "";
	content = load_elf_content(elf, &sh);
	if (!content || off >= sh.sh_size || !memchr(content + off, 0, sh.sh_size - off))
		return "";
	return (const char *)content + off;
}

const char *load_elf_section_name(const struct load_elf *elf, const Elf64_Shdr *sh)
{
	return text_at(elf, elf->head.e_shstrndx, sh->sh_name);
}

unsigned int load_elf_find(const struct load_elf *elf, const char *name, Elf64_Shdr *sh)
{
	unsigned int i;

	for (i = 1; load_elf_section(elf, i, sh); i++)
		if (!strcmp(load_elf_section_name(elf, sh), name))
			return i;
	return 0;
}

static uint8_t *symbol_at(const struct load_elf *elf, unsigned int idx)
{
	uint8_t *content;
	Elf64_Shdr sh;

	if (idx >= elf->n_syms || !load_elf_section(elf, elf->symtab, &sh) || !(content = load_elf_content(elf, &sh)))
		return NULL;
	return content + idx * sizeof(Elf64_Sym);
}

bool load_elf_symbol(const struct load_elf *elf, unsigned int idx, Elf64_Sym *sym)
{
	const uint8_t *at = symbol_at(elf, idx);

	if (at)
		memcpy(sym, at, sizeof(*sym));
	return at != NULL;
}

void load_elf_set_symbol(struct load_elf *elf, unsigned int idx, const Elf64_Sym *sym)
{
	uint8_t *at = symbol_at(elf, idx);

	if (at)
		memcpy(at, sym, sizeof(*sym));
}

const char *load_elf_symbol_name(const struct load_elf *elf, const Elf64_Sym *sym)
{
	Elf64_Shdr sh;

	if (!load_elf_section(elf, elf->symtab, &sh))
		return "";
	return text_at(elf, sh.sh_link, sym->st_name);
}

void load_elf_replace(struct load_elf *elf, unsigned int idx, const void *data, size_t len)
{
	Elf64_Shdr sh;
	size_t off;

	load_bytes_align(&elf->file, 8);
	off = load_bytes_add(&elf->file, data, len);
	if (elf->file.failed || !load_elf_section(elf, idx, &sh))
		return;
	sh.sh_offset = off;
	sh.sh_size = len;
	load_elf_set_section(elf, idx, &sh);
}

/* Appends @name to the section names and returns its offset among them. */
static uint32_t add_name(struct load_elf *elf, const char *name)
{
	struct load_bytes names = {0};
	const uint8_t *content;
	Elf64_Shdr sh;
	size_t off = 0;

	if (!load_elf_section(elf, elf->head.e_shstrndx, &sh) || !(content = load_elf_content(elf, &sh))) {
		elf->file.failed = true;
		return 0;
	}
	load_bytes_add(&names, content, sh.sh_size);
	off = load_bytes_add(&names, name, strlen(name) + 1);
	if (names.failed)
		elf->file.failed = true;
	else
		load_elf_replace(elf, elf->head.e_shstrndx, names.p, names.len);
	load_bytes_fini(&names);
	return (uint32_t)off;
}

void load_elf_rename(struct load_elf *elf, unsigned int idx, const char *name)
{
	uint32_t off = add_name(elf, name);
	Elf64_Shdr sh;

	if (elf->file.failed || !load_elf_section(elf, idx, &sh))
		return;
	sh.sh_name = off;
	load_elf_set_section(elf, idx, &sh);
}

void load_elf_add_section(struct load_elf *elf, const char *name, const void *data, size_t len)
{
	Elf64_Shdr sh = {.sh_type = SHT_PROGBITS, .sh_addralign = 4};
	size_t table, table_len = elf->head.e_shnum * sizeof(sh);

	if (elf->head.e_shnum >= SHN_LORESERVE - 1) {
		elf->file.failed = true;
		return;
	}
	sh.sh_name = add_name(elf, name);
	load_bytes_align(&elf->file, 8);
	table = load_bytes_add(&elf->file, NULL, table_len + sizeof(sh));
	if (elf->file.failed)
		return;
	memcpy(elf->file.p + table, elf->file.p + elf->head.e_shoff, table_len);
	memcpy(elf->file.p + table + table_len, &sh, sizeof(sh));
	elf->head.e_shoff = table;
	elf->head.e_shnum++;
	memcpy(elf->file.p, &elf->head, sizeof(elf->head));
	load_elf_replace(elf, elf->head.e_shnum - 1u, data, len);
}

void load_elf_each_rel(struct load_elf *elf, unsigned int target, load_rel_fn *fn, void *arg)
{
	uint8_t *content;
	Elf64_Shdr sh;
	Elf64_Rel rel;
	unsigned int i;
	size_t off;

	for (i = 1; load_elf_section(elf, i, &sh); i++) {
		if (sh.sh_type != SHT_REL || sh.sh_info != target || !(content = load_elf_content(elf, &sh)))
			continue;
		for (off = 0; sh.sh_size - off >= sizeof(rel) && off < sh.sh_size; off += sizeof(rel)) {
			memcpy(&rel, content + off, sizeof(rel));
			if (!fn(arg, &rel, content + off))
				return;
		}
	}
}
