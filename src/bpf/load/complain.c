/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complain.c: why an object cannot be loaded, in one sentence each.
 *
 * libbpf logs the cause first and its consequences after it, so the first warning is kept, or the last that it said at
 * all when it gives up without one. What it says of undefined symbols is said by us, for each of them, with the place
 * of its first use: the program, the instruction, and from .BTF.ext the line.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

/* The head of .BTF.ext, as far as lines need it. */
struct ext_head {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t head_len, func_off, func_len, line_off, line_len;
};

void load_say(struct load *load, const char *fmt, ...)
{
	char sentence[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	load->said++;
	load->say(load->say_arg, sentence);
}

int load_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	struct load *load = load_current;
	char *text;
	size_t len;

	if (!load || load->warned)
		return 0;
	load->warned = level == LIBBPF_WARN;
	text = load->warning;
	vsnprintf(text, sizeof(load->warning), fmt, args);
	if (!strncmp(text, "libbpf: ", 8))
		memmove(text, text + 8, strlen(text + 8) + 1);
	len = strlen(text);
	while (len && (text[len - 1] == '\n' || text[len - 1] == '.'))
		text[--len] = '\0';
	return 0;
}

/* ---- places ---- */

struct use {
	struct load *load;
	const char *symbol;
	unsigned int section;
	uint64_t off; /* of the instruction in its section */
	bool found;
};

static bool match_use(void *arg, Elf64_Rel *rel, uint8_t *where)
{
	struct use *use = arg;
	Elf64_Sym sym;

	(void)where;
	if (!load_elf_symbol(&use->load->elf, ELF64_R_SYM(rel->r_info), &sym) ||
	    strcmp(load_elf_symbol_name(&use->load->elf, &sym), use->symbol) != 0)
		return true;
	use->off = rel->r_offset;
	use->found = true;
	return false;
}

static void find_use(struct use *use)
{
	struct load_elf *elf = &use->load->elf;
	Elf64_Shdr sh;

	for (use->section = 1; !use->found && load_elf_section(elf, use->section, &sh); use->section++)
		if (sh.sh_flags & SHF_EXECINSTR)
			load_elf_each_rel(elf, use->section, match_use, use);
	use->section--;
}

/* The function that the instruction is in; @start gets its offset in the section. */
static const char *function_of(const struct use *use, uint64_t *start)
{
	const char *name = "?";
	Elf64_Sym sym;
	unsigned int i;

	*start = 0;
	for (i = 1; load_elf_symbol(&use->load->elf, i, &sym); i++)
		if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx == use->section &&
		    sym.st_value <= use->off && sym.st_value >= *start) {
			*start = sym.st_value;
			name = load_elf_symbol_name(&use->load->elf, &sym);
		}
	return name;
}

/* Reads @n numbers of a table of @len bytes and goes on behind them; false at its end. */
static bool take(const uint8_t **p, size_t *len, uint32_t *number, size_t n)
{
	if (*len < n * sizeof(*number))
		return false;
	memcpy(number, *p, n * sizeof(*number));
	*p += n * sizeof(*number);
	*len -= n * sizeof(*number);
	return true;
}

/* The line table of .BTF.ext, NULL when there is none within bounds. */
static const uint8_t *line_table(const struct load_elf *elf, size_t *len)
{
	const uint8_t *content;
	struct ext_head head;
	Elf64_Shdr sh;

	if (!load_elf_find(elf, ".BTF.ext", &sh) || !(content = load_elf_content(elf, &sh)) ||
	    sh.sh_size < sizeof(head))
		return NULL;
	memcpy(&head, content, sizeof(head));
	if (head.head_len > sh.sh_size || head.line_off > sh.sh_size - head.head_len ||
	    head.line_len > sh.sh_size - head.head_len - head.line_off)
		return NULL;
	*len = head.line_len;
	return content + head.head_len + head.line_off;
}

/* Finds the last line record at or before @off in the section called @name. */
static bool find_line(const struct load_elf *elf, const struct btf *btf, const char *name, uint64_t off,
		      struct bpf_line_info *line)
{
	uint32_t rec_size, section[2], rec[4], i;
	const uint8_t *p;
	const char *is;
	bool found = false, here;
	size_t len = 0;

	p = line_table(elf, &len);
	if (!p || !take(&p, &len, &rec_size, 1) || rec_size != sizeof(rec))
		return false;
	while (take(&p, &len, section, 2)) {
		is = btf__str_by_offset(btf, section[0]);
		here = is && !strcmp(is, name);
		for (i = 0; i < section[1] && take(&p, &len, rec, 4); i++)
			if (here && rec[0] <= off) {
				memcpy(line, rec, sizeof(rec));
				found = true;
			}
	}
	return found;
}

static struct btf *open_btf(const struct load *load)
{
	struct btf *btf = NULL;

	if (load->own_btf && load->own_btf_len <= UINT32_MAX)
		btf = btf__new(load->own_btf, (__u32)load->own_btf_len);
	return libbpf_get_error(btf) ? NULL : btf;
}

static void place_of(const struct use *use, const struct btf *btf, char *buf, size_t size)
{
	struct bpf_line_info line;
	const char *name, *file = NULL, *text = NULL, *slash;
	uint64_t start;
	Elf64_Shdr sh;

	name = function_of(use, &start);
	load_elf_section(&use->load->elf, use->section, &sh);
	if (btf && find_line(&use->load->elf, btf, load_elf_section_name(&use->load->elf, &sh), use->off, &line)) {
		file = btf__str_by_offset(btf, line.file_name_off);
		text = btf__str_by_offset(btf, line.line_off);
	}
	if (!file || !text) {
		snprintf(buf, size, "%s: instruction %u: ", name, (unsigned int)((use->off - start) / 8));
		return;
	}
	slash = strrchr(file, '/');
	text += strspn(text, " \t");
	snprintf(buf, size, "%s: instruction %u (%s:%u: %s): ", name, (unsigned int)((use->off - start) / 8),
		 slash ? slash + 1 : file, line.line_col >> 10, text);
}

void load_place(struct load *load, const char *symbol, char *buf, size_t size)
{
	struct use use = {.load = load, .symbol = symbol};
	struct btf *btf;

	buf[0] = '\0';
	find_use(&use);
	if (!use.found)
		return;
	btf = open_btf(load);
	place_of(&use, btf, buf, size);
	btf__free(btf);
}

/* ---- sentences ---- */

/* Says which symbols are defined nowhere, that is not even declared as the kernel's. */
static void complain_undefined(struct load *load, const struct btf *btf)
{
	const char *name;
	char place[640];
	Elf64_Sym sym;
	unsigned int i;

	for (i = 1; load->said < 16 && load_elf_symbol(&load->elf, i, &sym); i++) {
		name = load_elf_symbol_name(&load->elf, &sym);
		if (sym.st_shndx != SHN_UNDEF || ELF64_ST_BIND(sym.st_info) == STB_LOCAL || !*name)
			continue;
		if (btf && (btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0 ||
			    btf__find_by_name_kind(btf, name, BTF_KIND_VAR) > 0))
			continue;
		load_place(load, name, place, sizeof(place));
		load_say(load, "%suses '%s', which the object does not define and leat does not have", place, name);
	}
}

/* A symbol of the kernel that libbpf looked for: "extern 'NAME' (strong): not resolved" and its like. */
static bool complain_extern(struct load *load)
{
	const char *from = strstr(load->warning, "extern "), *end;
	char name[128], place[640];

	from = from ? strchr(from, '\'') : NULL;
	end = from ? strchr(from + 1, '\'') : NULL;
	if (!end || end - from > (ptrdiff_t)sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(end - from - 1), from + 1);
	load_place(load, name, place, sizeof(place));
	load_say(load, "%suses '%s', which the object does not define and leat does not have", place, name);
	return true;
}

void load_complain(struct load *load, int err)
{
	struct btf *btf = open_btf(load);

	complain_undefined(load, btf);
	btf__free(btf);
	if (load->said || (load->warning[0] && complain_extern(load)))
		return;
	if (load->warning[0])
		load_say(load, "cannot be loaded: %s", load->warning);
	else
		load_say(load, "cannot be loaded: %s", strerror(-err));
}
