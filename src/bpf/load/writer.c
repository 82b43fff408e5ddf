/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer.c: what was recorded, as an image. Maps stand in the order of the object, then templates of inner maps; where
 * instructions name maps by descriptor, they name them by number here. The strings of the BTF are a part of the strings
 * of the image, so that lines of the source need no copy each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

struct writer {
	struct load *load;
	struct load_bytes *image;
	size_t start; /* of the image in its bytes */
	struct leat_image_header head;
	struct load_bytes strings;
	const struct btf *btf;
	uint32_t btf_strings; /* where the BTF's strings begin in ours */
	uint32_t btf_strings_len;
	struct leat_image_prog *progs;
	struct leat_image_map *maps;
	uint32_t n_maps;
	uint16_t number[LOAD_FDS_MAX]; /* of the map with that descriptor, plus 1 */
	struct load_bytes lines, inits, data;
};

static uint32_t add_string(struct writer *w, const char *text)
{
	return text && *text ? (uint32_t)load_bytes_add(&w->strings, text, strlen(text) + 1) : 0;
}

/* Takes the strings of the BTF over. Its layout was checked by libbpf. */
static void add_btf_strings(struct writer *w, const uint8_t *raw, uint32_t len)
{
	struct btf_header head;

	memcpy(&head, raw, sizeof(head));
	if (head.hdr_len > len || head.str_off > len - head.hdr_len || head.str_len > len - head.hdr_len - head.str_off)
		return;
	w->btf_strings = (uint32_t)load_bytes_add(&w->strings, raw + head.hdr_len + head.str_off, head.str_len);
	w->btf_strings_len = head.str_len;
}

static uint32_t btf_string(const struct writer *w, uint32_t off)
{
	return off < w->btf_strings_len ? w->btf_strings + off : 0;
}

/* ---- instructions ---- */

static uint32_t btf_name(const struct writer *w, int32_t id)
{
	const struct btf_type *t = w->btf ? btf__type_by_id(w->btf, (__u32)id) : NULL;

	return t ? btf_string(w, t->name_off) : 0;
}

static int map_number(const struct writer *w, int32_t fd)
{
	return fd >= 0 && fd < LOAD_FDS_MAX && w->number[fd] ? w->number[fd] - 1 : -1;
}

/* Puts numbers in place of descriptors. Returns 0, -EINVAL for a descriptor of no map. */
static int rewrite_insn(const struct writer *w, struct bpf_insn *insn)
{
	bool wide = insn->code == (BPF_LD | BPF_IMM | BPF_DW);
	int number;

	if (wide && (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE)) {
		number = map_number(w, insn->imm);
		if (number < 0)
			return -EINVAL;
		insn->imm = number;
	} else if ((wide && insn->src_reg == BPF_PSEUDO_BTF_ID) ||
		   (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL)) {
		insn->imm = (int32_t)btf_name(w, insn->imm);
		if (wide)
			insn[1].imm = 0;
		else
			insn->off = 0;
	}
	return 0;
}

static int rewrite(const struct writer *w, const struct load_prog *prog)
{
	uint32_t i;
	int err;

	for (i = 0; i < prog->n_insns; i++) {
		if (prog->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && i + 1 == prog->n_insns)
			return -EINVAL;
		err = rewrite_insn(w, &prog->insns[i]);
		if (err)
			return err;
		if (prog->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
	return 0;
}

/* ---- programs ---- */

static uint32_t prog_flags(const struct load_prog *prog)
{
	uint32_t flags = prog->flags & BPF_F_XDP_HAS_FRAGS ? LEAT_IMAGE_PROG_FRAGS : 0;
	enum bpf_attach_type attach = bpf_program__expected_attach_type(prog->prog);

	if (attach == BPF_XDP_DEVMAP)
		flags |= LEAT_IMAGE_PROG_DEVMAP;
	if (attach == BPF_XDP_CPUMAP)
		flags |= LEAT_IMAGE_PROG_CPUMAP;
	return flags;
}

static uint32_t add_lines(struct writer *w, const struct load_prog *prog)
{
	struct leat_image_line line;
	uint32_t i, n = 0, last = 0;

	for (i = 0; i < prog->n_lines; i++) {
		line = (struct leat_image_line){
			.insn = prog->lines[i].insn_off,
			.file = btf_string(w, prog->lines[i].file_name_off),
			.text = btf_string(w, prog->lines[i].line_off),
			.line = prog->lines[i].line_col >> 10,
		};
		if (!line.line || line.insn >= prog->n_insns || (n && line.insn <= last))
			continue;
		last = line.insn;
		load_bytes_add(&w->lines, &line, sizeof(line));
		n++;
	}
	return n;
}

static int add_prog(struct writer *w, uint32_t idx, uint32_t first_insn)
{
	const struct load_prog *prog = &w->load->prog[idx];
	struct load_run_config config;
	int err = rewrite(w, prog);

	if (err)
		return err;
	load_run_config(w->btf, prog->name, &config);
	w->progs[idx] = (struct leat_image_prog){
		.name = add_string(w, prog->name),
		.section = add_string(w, bpf_program__section_name(prog->prog)),
		.flags = prog_flags(prog),
		.first_insn = first_insn,
		.n_insns = prog->n_insns,
		.first_line = (uint32_t)(w->lines.len / sizeof(struct leat_image_line)),
		.run_prio = config.prio,
		.chain_actions = config.actions,
	};
	w->progs[idx].n_lines = add_lines(w, prog);
	return 0;
}

static int add_progs(struct writer *w)
{
	uint32_t i, n = 0;
	int err;

	for (i = 0; i < w->load->n_progs; i++) {
		err = add_prog(w, i, n);
		if (err)
			return err;
		n += w->load->prog[i].n_insns;
		if (n > LEAT_IMAGE_INSNS_MAX) {
			load_say(w->load, "has more than %u instructions", LEAT_IMAGE_INSNS_MAX);
			return -E2BIG;
		}
	}
	return 0;
}

/* ---- maps ---- */

static void define(struct leat_image_map *to, const struct load_def *def)
{
	to->type = def->type;
	to->key_size = def->key_size;
	to->value_size = def->value_size;
	to->max_entries = def->max_entries;
	to->map_flags = def->map_flags;
	to->btf_key = def->btf_key;
	to->btf_value = def->btf_value;
}

/* For global data libbpf gives the name as "OBJECT.rodata". */
static const char *map_name(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *dot = strchr(name, '.');

	return bpf_map__is_internal(map) && dot ? dot : name;
}

static void add_data(struct writer *w, struct leat_image_map *to, const struct load_map *map)
{
	if (!map->data)
		return;
	load_bytes_align(&w->data, 8);
	to->data.off = (uint32_t)load_bytes_add(&w->data, map->data, map->def.value_size);
	to->data.n = map->def.value_size;
}

/* The program with descriptor @fd, plus 1. */
static uint32_t prog_number(const struct load *load, int fd)
{
	uint32_t i;

	for (i = 0; i < load->n_progs; i++)
		if (bpf_program__fd(load->prog[i].prog) == fd)
			return i + 1;
	return 0;
}

static void add_inits(struct writer *w, struct leat_image_map *to, const struct load_map *map)
{
	struct leat_image_init init;
	uint32_t i;

	to->inits.off = (uint32_t)(w->inits.len / sizeof(init));
	for (i = 0; i < map->n_inits; i++) {
		init = (struct leat_image_init){.index = map->inits[i].index};
		if (map->def.type == BPF_MAP_TYPE_PROG_ARRAY)
			init.prog = prog_number(w->load, map->inits[i].fd);
		else
			init.map = (uint32_t)map_number(w, map->inits[i].fd) + 1;
		if (!init.prog && !init.map)
			continue;
		load_bytes_add(&w->inits, &init, sizeof(init));
		to->inits.n++;
	}
}

static void add_map(struct writer *w, const struct bpf_map *from, const struct load_map *map)
{
	struct leat_image_map *to = &w->maps[w->n_maps++];

	define(to, &map->def);
	to->name = add_string(w, map_name(from));
	if (bpf_map__is_internal(from)) {
		to->flags |= LEAT_IMAGE_MAP_INTERNAL;
		add_data(w, to, map);
	}
	if (map->frozen)
		to->flags |= LEAT_IMAGE_MAP_FROZEN;
}

static void add_template(struct writer *w, uint32_t outer, const struct load_map *map)
{
	struct leat_image_map *to = &w->maps[w->n_maps++];

	define(to, &map->inner);
	to->name = w->maps[outer].name;
	to->flags = LEAT_IMAGE_MAP_TEMPLATE;
	w->maps[outer].inner = w->n_maps;
}

/* The record of @map, NULL when libbpf did not make it. */
static const struct load_map *record_of(const struct load *load, const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);

	return fd >= 0 && fd < LOAD_FDS_MAX ? load->map[fd] : NULL;
}

/* Numbers the maps of the object and counts them with their templates. */
static int number_maps(struct writer *w)
{
	const struct load_map *record;
	struct bpf_map *map;
	uint32_t n = 0, templates = 0;

	bpf_object__for_each_map(map, w->load->obj) {
		record = record_of(w->load, map);
		if (!record)
			continue;
		w->number[bpf_map__fd(map)] = (uint16_t)(++n);
		templates += record->has_inner;
	}
	if (n + templates > LEAT_IMAGE_MAPS_MAX) {
		load_say(w->load, "has more than %u maps", LEAT_IMAGE_MAPS_MAX);
		return -E2BIG;
	}
	w->maps = calloc(n + templates + 1, sizeof(*w->maps));
	return w->maps ? 0 : -ENOMEM;
}

static void add_maps(struct writer *w)
{
	const struct load_map *record;
	struct bpf_map *map;
	uint32_t n = 0, position = 0;

	bpf_object__for_each_map(map, w->load->obj)
		if ((record = record_of(w->load, map)))
			add_map(w, map, record);
	bpf_object__for_each_map(map, w->load->obj) {
		record = record_of(w->load, map);
		position++;
		if (!record)
			continue;
		if (record->has_inner)
			add_template(w, n, record);
		add_inits(w, &w->maps[n], record);
		if (position <= LEAT_IMAGE_MAPS_MAX && w->load->pinned[position - 1])
			w->maps[n].flags |= LEAT_IMAGE_MAP_PINNED;
		n++;
	}
}

/* ---- the whole ---- */

static uint32_t add_license(struct writer *w)
{
	const uint8_t *content;
	Elf64_Shdr sh;

	if (!load_elf_find(&w->load->elf, "license", &sh) || !(content = load_elf_content(&w->load->elf, &sh)) ||
	    !memchr(content, 0, sh.sh_size))
		return 0;
	return add_string(w, (const char *)content);
}

static void put_table(struct writer *w, struct leat_image_table *table, const void *data, size_t n, size_t size)
{
	load_bytes_align(w->image, 8);
	table->off = (uint32_t)(load_bytes_add(w->image, data, n * size) - w->start);
	table->n = (uint32_t)n;
}

static void put_insns(struct writer *w)
{
	const struct load_prog *prog = w->load->prog;
	uint32_t i, n = 0;

	put_table(w, &w->head.insns, NULL, 0, sizeof(struct bpf_insn));
	for (i = 0; i < w->load->n_progs; i++) {
		load_bytes_add(w->image, prog[i].insns, prog[i].n_insns * sizeof(struct bpf_insn));
		n += prog[i].n_insns;
	}
	w->head.insns.n = n;
}

static int put_image(struct writer *w, const void *btf, uint32_t btf_len)
{
	struct leat_image_header *head = &w->head;

	load_bytes_align(w->image, 8);
	w->start = load_bytes_add(w->image, NULL, sizeof(*head));
	put_table(w, &head->progs, w->progs, w->load->n_progs, sizeof(*w->progs));
	put_table(w, &head->maps, w->maps, w->n_maps, sizeof(*w->maps));
	put_insns(w);
	put_table(w, &head->lines, w->lines.p, w->lines.len / sizeof(struct leat_image_line),
		  sizeof(struct leat_image_line));
	put_table(w, &head->inits, w->inits.p, w->inits.len / sizeof(struct leat_image_init),
		  sizeof(struct leat_image_init));
	put_table(w, &head->data, w->data.p, w->data.len, 1);
	put_table(w, &head->strings, w->strings.p, w->strings.len, 1);
	put_table(w, &head->btf, btf, btf_len, 1);
	if (w->image->failed || w->strings.failed || w->lines.failed || w->inits.failed || w->data.failed) {
		load_say(w->load, "has more than %u MiB of code and data", LEAT_IMAGE_SIZE_MAX >> 20);
		return -E2BIG;
	}
	head->magic = LEAT_IMAGE_MAGIC;
	head->version = LEAT_IMAGE_VERSION;
	head->size = (uint32_t)(w->image->len - w->start);
	memcpy(w->image->p + w->start, head, sizeof(*head));
	return 0;
}

static int write_all(struct writer *w)
{
	const void *raw = NULL;
	uint32_t len = 0;
	int err;

	load_bytes_add(&w->strings, "", 1);
	raw = w->btf ? btf__raw_data(w->btf, &len) : NULL;
	if (w->btf && !raw)
		return -ENOMEM;
	if (raw)
		add_btf_strings(w, raw, len);
	err = number_maps(w);
	if (err)
		return err;
	w->progs = calloc(w->load->n_progs, sizeof(*w->progs));
	if (!w->progs)
		return -ENOMEM;
	add_maps(w);
	err = add_progs(w);
	if (err)
		return err;
	w->head.license = add_license(w);
	return put_image(w, raw, len);
}

int load_write(struct load *load, struct load_bytes *image)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->load = load;
	w->image = image;
	w->btf = bpf_object__btf(load->obj);
	err = write_all(w);
	load_bytes_fini(&w->strings);
	load_bytes_fini(&w->lines);
	load_bytes_fini(&w->inits);
	load_bytes_fini(&w->data);
	free(w->progs);
	free(w->maps);
	free(w);
	return err;
}
