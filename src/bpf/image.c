/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.c: checks an image (image.h) as a whole, so that nobody who reads it later needs to look twice.
 *
 * The image comes from a process that has read a hostile file, or from who knows where. Every number that leads
 * somewhere is checked here: tables, strings, ranges of instructions, lines, data and initial elements, numbers of
 * programs and maps, in definitions and in instructions. What instructions do is the verifier's business; sizes and
 * flags of maps are their types'; the BTF is btf/btf.c's. Control thread.
 */
#include "bpf/image.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "bpf/prog.h"

#define TABLES 8u

/* The tables of the header, in its order: what an element is. */
static const struct {
	const char *name;
	size_t off; /* of its struct leat_image_table */
	uint32_t size;
	uint32_t max;
} tables[TABLES] = {
	{"programs", offsetof(struct leat_image_header, progs), sizeof(struct leat_image_prog), LEAT_IMAGE_PROGS_MAX},
	{"maps", offsetof(struct leat_image_header, maps), sizeof(struct leat_image_map), LEAT_IMAGE_MAPS_MAX},
	{"instructions", offsetof(struct leat_image_header, insns), sizeof(struct bpf_insn), LEAT_IMAGE_INSNS_MAX},
	{"lines", offsetof(struct leat_image_header, lines), sizeof(struct leat_image_line), UINT32_MAX},
	{"initial elements", offsetof(struct leat_image_header, inits), sizeof(struct leat_image_init), UINT32_MAX},
	{"data", offsetof(struct leat_image_header, data), 1, UINT32_MAX},
	{"strings", offsetof(struct leat_image_header, strings), 1, UINT32_MAX},
	{"BTF", offsetof(struct leat_image_header, btf), 1, UINT32_MAX},
};

struct image {
	const uint8_t *p;
	const struct leat_image_header *head;
	const struct leat_image_prog *prog;
	const struct leat_image_map *map;
	const struct bpf_insn *insn;
	const struct leat_image_line *line;
	const struct leat_image_init *init;
	struct leat_diag *diag;
};

static bool within(uint32_t first, uint32_t n, uint32_t of)
{
	return first <= of && n <= of - first;
}

static int refuse(const struct image *image, const char *what, uint32_t idx, const char *why)
{
	leat_diag_add(image->diag, "the image is damaged: %s %u: %s", what, idx, why);
	return -EINVAL;
}

static const struct leat_image_table *table(const struct image *image, unsigned int i)
{
	const void *at = image->p + tables[i].off;

	return at;
}

/* Whether the bytes of two tables have nothing in common. */
static bool disjoint(const struct image *image, unsigned int i, unsigned int j)
{
	const struct leat_image_table *a = table(image, i), *b = table(image, j);

	return !a->n || !b->n || a->off + (uint64_t)a->n * tables[i].size <= b->off ||
	       b->off + (uint64_t)b->n * tables[j].size <= a->off;
}

static int check_tables(const struct image *image)
{
	const struct leat_image_table *t;
	unsigned int i, j;

	for (i = 0; i < TABLES; i++) {
		t = table(image, i);
		if (t->off % 8 || t->off < sizeof(*image->head) || t->off > image->head->size ||
		    t->n > (image->head->size - t->off) / tables[i].size)
			return refuse(image, tables[i].name, t->n, "the table lies outside the image");
		if (t->n > tables[i].max)
			return refuse(image, tables[i].name, t->n, "too many");
		for (j = 0; j < i; j++)
			if (!disjoint(image, i, j))
				return refuse(image, tables[i].name, t->n, "the table lies upon another");
	}
	return 0;
}

static int check_head(const struct image *image, size_t len)
{
	const struct leat_image_header *head = image->head;

	if (head->magic != LEAT_IMAGE_MAGIC) {
		leat_diag_add(image->diag, "this is no image of an eBPF object");
		return -EINVAL;
	}
	if (head->version != LEAT_IMAGE_VERSION) {
		leat_diag_add(image->diag, "the image has version %u, this library reads version %u: leat-load and the "
			      "library belong to different installations", head->version, LEAT_IMAGE_VERSION);
		return -EINVAL;
	}
	if (head->size != len)
		return refuse(image, "size", head->size, "the image is cut short or too long");
	return check_tables(image);
}

static bool is_string(const struct image *image, uint32_t off)
{
	return off < image->head->strings.n;
}

/* ---- programs ---- */

static int check_lines(const struct image *image, uint32_t idx)
{
	const struct leat_image_prog *prog = &image->prog[idx];
	const struct leat_image_line *line = image->line + prog->first_line;
	uint32_t i;

	for (i = 0; i < prog->n_lines; i++)
		if (line[i].insn >= prog->n_insns || (i && line[i].insn <= line[i - 1].insn) || !line[i].line ||
		    !is_string(image, line[i].file) || !is_string(image, line[i].text))
			return refuse(image, "program", idx, "a line of the source is out of order");
	return 0;
}

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Numbers of maps, and names of what only a kernel has. */
static bool refers_well(const struct image *image, const struct bpf_insn *insn)
{
	uint32_t imm = (uint32_t)insn->imm;

	if (is_wide(insn) && (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE))
		return imm < image->head->maps.n && !(image->map[imm].flags & LEAT_IMAGE_MAP_TEMPLATE);
	if ((is_wide(insn) && insn->src_reg == BPF_PSEUDO_BTF_ID) ||
	    (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL))
		return is_string(image, imm);
	return true;
}

static int check_insns(const struct image *image, uint32_t idx)
{
	const struct leat_image_prog *prog = &image->prog[idx];
	const struct bpf_insn *insn = image->insn + prog->first_insn;
	uint32_t i;

	for (i = 0; i < prog->n_insns; i++) {
		if (!refers_well(image, &insn[i]))
			return refuse(image, "program", idx, "an instruction names a map that is not there");
		if (is_wide(&insn[i]) && ++i == prog->n_insns)
			return refuse(image, "program", idx, "its last instruction is cut in half");
	}
	return 0;
}

static int check_prog(const struct image *image, uint32_t idx)
{
	const uint32_t flags = LEAT_IMAGE_PROG_FRAGS | LEAT_IMAGE_PROG_DEVMAP | LEAT_IMAGE_PROG_CPUMAP;
	const struct leat_image_header *head = image->head;
	const struct leat_image_prog *prog = &image->prog[idx];
	int err;

	if (!is_string(image, prog->name) || !is_string(image, prog->section))
		return refuse(image, "program", idx, "it has no name");
	if ((prog->flags & ~flags) || prog->pad)
		return refuse(image, "program", idx, "unknown flags");
	if (!prog->n_insns || !within(prog->first_insn, prog->n_insns, head->insns.n))
		return refuse(image, "program", idx, "its instructions are not there");
	if (!within(prog->first_line, prog->n_lines, head->lines.n))
		return refuse(image, "program", idx, "its lines are not there");
	err = check_lines(image, idx);
	return err ? err : check_insns(image, idx);
}

/* ---- maps ---- */

static int check_inits(const struct image *image, uint32_t idx)
{
	const struct leat_image_map *map = &image->map[idx];
	const struct leat_image_init *init;
	uint32_t i;

	if (!within(map->inits.off, map->inits.n, image->head->inits.n))
		return refuse(image, "map", idx, "its initial elements are not there");
	if (map->inits.n && map->key_size != sizeof(init->index))
		return refuse(image, "map", idx, "its initial elements have keys of another size");
	for (i = 0; i < map->inits.n; i++) {
		init = &image->init[map->inits.off + i];
		if ((init->index >= map->max_entries && map->type != BPF_MAP_TYPE_HASH_OF_MAPS) ||
		    init->prog > image->head->progs.n ||
		    init->map > image->head->maps.n || !init->prog == !init->map || init->pad)
			return refuse(image, "map", idx, "an initial element is none");
		if (init->map && (image->map[init->map - 1].flags & LEAT_IMAGE_MAP_TEMPLATE))
			return refuse(image, "map", idx, "an initial element is a template");
		if (!init->prog != (map->type != BPF_MAP_TYPE_PROG_ARRAY))
			return refuse(image, "map", idx, "an initial element is of another kind");
	}
	return 0;
}

/* A template is another map, without a template of its own. */
static bool has_good_inner(const struct image *image, const struct leat_image_map *map)
{
	return !map->inner || (map->inner <= image->head->maps.n && !(map->flags & LEAT_IMAGE_MAP_TEMPLATE) &&
			       (image->map[map->inner - 1].flags & LEAT_IMAGE_MAP_TEMPLATE));
}

/* Global data is an array of one value; its initial contents are the whole value, or none (all zero). */
static int check_data(const struct image *image, uint32_t idx)
{
	const struct leat_image_map *map = &image->map[idx];

	if (!within(map->data.off, map->data.n, image->head->data.n))
		return refuse(image, "map", idx, "its contents are not there");
	if (!(map->flags & LEAT_IMAGE_MAP_INTERNAL))
		return map->data.n ? refuse(image, "map", idx, "it has contents, but is no global data") : 0;
	if (map->type != BPF_MAP_TYPE_ARRAY || map->key_size != sizeof(uint32_t) || map->max_entries != 1 ||
	    map->inits.n || map->inner)
		return refuse(image, "map", idx, "global data must be an array of one value");
	if (map->data.n && map->data.n != map->value_size)
		return refuse(image, "map", idx, "its contents have another size");
	return 0;
}

static int check_map(const struct image *image, uint32_t idx)
{
	const uint32_t flags = LEAT_IMAGE_MAP_INTERNAL | LEAT_IMAGE_MAP_FROZEN | LEAT_IMAGE_MAP_PINNED |
			       LEAT_IMAGE_MAP_TEMPLATE;
	const struct leat_image_map *map = &image->map[idx];
	int err;

	if (!is_string(image, map->name))
		return refuse(image, "map", idx, "it has no name");
	if (map->flags & ~flags)
		return refuse(image, "map", idx, "unknown flags");
	if (idx && !(map->flags & LEAT_IMAGE_MAP_TEMPLATE) && (map[-1].flags & LEAT_IMAGE_MAP_TEMPLATE))
		return refuse(image, "map", idx, "it stands behind the templates");
	if (!has_good_inner(image, map))
		return refuse(image, "map", idx, "its template is not there");
	err = check_data(image, idx);
	return err ? err : check_inits(image, idx);
}

/* Two maps may not share contents: what is set in one must not change the other. Global data stands in order. */
static int check_data_order(const struct image *image)
{
	uint32_t i, end = 0;

	for (i = 0; i < image->head->maps.n; i++) {
		if (!image->map[i].data.n)
			continue;
		if (image->map[i].data.off < end)
			return refuse(image, "map", i, "its contents lie upon another's");
		end = image->map[i].data.off + image->map[i].data.n;
	}
	return 0;
}

static int check_strings(const struct image *image)
{
	const struct leat_image_table *t = &image->head->strings;

	if (!t->n || image->p[t->off] || image->p[t->off + t->n - 1])
		return refuse(image, "strings", t->n, "they do not begin and end with a zero");
	if (!is_string(image, image->head->license) || image->head->pad)
		return refuse(image, "license", image->head->license, "it is not there");
	return 0;
}

static const void *at(const struct image *image, const struct leat_image_table *t)
{
	return image->p + t->off;
}

int leat_image_check(const void *bytes, size_t len, struct leat_diag *diag)
{
	struct image image = {.p = bytes, .head = bytes, .diag = diag};
	uint32_t i;
	int err;

	if (len < sizeof(*image.head) || len > LEAT_IMAGE_SIZE_MAX) {
		leat_diag_add(diag, "this is no image of an eBPF object: it has %zu bytes", len);
		return -EINVAL;
	}
	err = check_head(&image, len);
	if (err)
		return err;
	image.prog = at(&image, &image.head->progs);
	image.map = at(&image, &image.head->maps);
	image.insn = at(&image, &image.head->insns);
	image.line = at(&image, &image.head->lines);
	image.init = at(&image, &image.head->inits);
	err = check_strings(&image);
	for (i = 0; !err && i < image.head->progs.n; i++)
		err = check_prog(&image, i);
	for (i = 0; !err && i < image.head->maps.n; i++)
		err = check_map(&image, i);
	return err ? err : check_data_order(&image);
}

const char *leat_image_string(const struct leat_image_header *head, uint32_t off)
{
	return (const char *)head + head->strings.off + off;
}
