/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_test.c: an image written by hand is read right; one with any bit, word or length of it changed is refused, or
 * does no harm: it can be opened, looked at everywhere, loaded and closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <leat/bpf.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/image.h"
#include "bpf/prog.h"

#define N_PROGS 2u
#define N_MAPS 6u
#define N_INSNS 9u
#define N_LINES 3u
#define N_INITS 3u

enum { RODATA, DATA, JUMPS, COUNTS, OUTER, TEMPLATE };

/** A whole image; the order of tables is not the header's, which is allowed. */
struct sample {
	struct leat_image_header head;
	struct leat_image_prog prog[N_PROGS];
	struct leat_image_map map[N_MAPS];
	struct bpf_insn insn[N_INSNS];
	struct leat_image_line line[N_LINES];
	struct leat_image_init init[N_INITS];
	char strings[128];
	uint8_t data[16];
	uint8_t btf[25], end[7];
};

static struct leat_bpf_env *env;

#define TABLE(member, count) \
	((struct leat_image_table){.off = (uint32_t)offsetof(struct sample, member), .n = (count)})

static uint32_t string(struct sample *s, uint32_t *len, const char *text)
{
	uint32_t off = *len;

	memcpy(s->strings + off, text, strlen(text) + 1);
	*len += (uint32_t)strlen(text) + 1;
	return off;
}

static void fill_header(struct sample *s)
{
	s->head = (struct leat_image_header){
		.magic = LEAT_IMAGE_MAGIC,
		.version = LEAT_IMAGE_VERSION,
		.size = sizeof(*s),
		.progs = TABLE(prog, N_PROGS),
		.maps = TABLE(map, N_MAPS),
		.insns = TABLE(insn, N_INSNS),
		.lines = TABLE(line, N_LINES),
		.inits = TABLE(init, N_INITS),
		.data = TABLE(data, sizeof(s->data)),
		.strings = TABLE(strings, sizeof(s->strings)),
		.btf = TABLE(btf, sizeof(s->btf)),
	};
}

static void fill_maps(struct sample *s, uint32_t *len)
{
	s->map[RODATA] = (struct leat_image_map){
		.name = string(s, len, ".rodata"), .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8,
		.max_entries = 1, .map_flags = BPF_F_RDONLY_PROG,
		.flags = LEAT_IMAGE_MAP_INTERNAL | LEAT_IMAGE_MAP_FROZEN,
		.data = {.off = 0, .n = 8},
	};
	s->map[DATA] = (struct leat_image_map){
		.name = string(s, len, ".data"), .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8,
		.max_entries = 1, .flags = LEAT_IMAGE_MAP_INTERNAL, .data = {.off = 8, .n = 8},
	};
	s->map[JUMPS] = (struct leat_image_map){
		.name = string(s, len, "jumps"), .type = BPF_MAP_TYPE_PROG_ARRAY, .key_size = 4, .value_size = 4,
		.max_entries = 4, .inits = {.off = 0, .n = 2},
	};
	s->map[COUNTS] = (struct leat_image_map){
		.name = string(s, len, "counts"), .type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8,
		.max_entries = 16, .flags = LEAT_IMAGE_MAP_PINNED,
	};
	s->map[OUTER] = (struct leat_image_map){
		.name = string(s, len, "outer"), .type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4, .value_size = 4,
		.max_entries = 2, .inner = TEMPLATE + 1, .inits = {.off = 2, .n = 1},
	};
	s->map[TEMPLATE] = (struct leat_image_map){
		.name = s->map[OUTER].name, .type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8,
		.max_entries = 16, .flags = LEAT_IMAGE_MAP_TEMPLATE,
	};
	s->init[0] = (struct leat_image_init){.index = 1, .prog = 2};
	s->init[1] = (struct leat_image_init){.index = 3, .prog = 1};
	s->init[2] = (struct leat_image_init){.index = 0, .map = COUNTS + 1};
}

static void fill_progs(struct sample *s, uint32_t *len)
{
	static const struct bpf_insn insns[N_INSNS] = {
		/* main: r2 = &jumps; r3 = 1; tail_call; r1 = .rodata + 4; r0 = *(u32 *)r1; exit */
		{.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 2, .src_reg = BPF_PSEUDO_MAP_FD, .imm = JUMPS},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 1},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = RODATA},
		{.imm = 4},
		{.code = BPF_JMP | BPF_EXIT},
		/* next: r0 = 1; exit */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_DROP},
		{.code = BPF_JMP | BPF_EXIT},
	};
	uint32_t file = string(s, len, "dir/file.c"), text = string(s, len, "\treturn 1;");
	uint32_t section = string(s, len, "xdp");

	memcpy(s->insn, insns, sizeof(insns));
	s->prog[0] = (struct leat_image_prog){
		.name = string(s, len, "main"), .section = section, .n_insns = 7, .n_lines = 2, .run_prio = 50,
		.chain_actions = 4,
	};
	s->prog[1] = (struct leat_image_prog){
		.name = string(s, len, "next"), .section = section, .first_insn = 7, .n_insns = 2, .first_line = 2,
		.n_lines = 1, .run_prio = 7, .chain_actions = 1, .flags = LEAT_IMAGE_PROG_FRAGS,
	};
	s->line[0] = (struct leat_image_line){.insn = 1, .file = file, .text = text, .line = 10};
	s->line[1] = (struct leat_image_line){.insn = 4, .file = file, .text = text, .line = 20};
	s->line[2] = (struct leat_image_line){.insn = 0, .file = file, .text = text, .line = 30};
}

static void fill(struct sample *s)
{
	const struct btf_header btf = {
		.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(btf), .str_len = 1,
	};
	uint32_t len = 1;

	memset(s, 0, sizeof(*s));
	fill_header(s);
	fill_maps(s, &len);
	fill_progs(s, &len);
	s->head.license = string(s, &len, "GPL");
	memcpy(s->data, "\1\2\3\4\5\6\7\10ABCDEFGH", 16);
	/* BTF without types: its header, and one empty string */
	memcpy(s->btf, &btf, sizeof(btf));
}

/* ---- looking ---- */

static size_t look_at_map(const struct leat_bpf_map *map)
{
	struct leat_bpf_map_info info;

	leat_bpf_map_info(map, &info);
	return strlen(info.name) + strlen(info.type_name) + info.value_bytes;
}

static size_t look_at_prog(const struct leat_bpf_prog *prog)
{
	struct leat_bpf_trap trap;
	char source[256];
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < leat_bpf_prog_len(prog); i++) {
		leat_bpf_prog_source(prog, i, source, sizeof(source));
		sum += strlen(source);
	}
	sum += strlen(leat_bpf_prog_name(prog)) + strlen(leat_bpf_prog_section(prog)) + leat_bpf_prog_frags(prog);
	return sum + leat_bpf_prog_trap(prog, 0, &trap);
}

static size_t look_at(struct leat_bpf_object *obj)
{
	size_t sum = strlen(leat_bpf_object_license(obj));
	const struct leat_bpf_prog *prog;
	const struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (prog = leat_bpf_object_prog_get(obj, i)); i++)
		sum += look_at_prog(prog);
	for (i = 0; (map = leat_bpf_object_map_get(obj, i)); i++)
		sum += look_at_map(map);
	return sum;
}

/** Opens bytes of exactly that size, so that a sanitizer sees every step outside; true when they were taken. */
static bool try_image(const void *bytes, size_t len)
{
	struct leat_bpf_object *obj = NULL;
	uint64_t *own = malloc(len ? len : 1);
	int err;

	assert_non_null(own);
	memcpy(own, bytes, len);
	err = leat_bpf_object_open_image(env, own, len, NULL, &obj);
	free(own);
	if (err)
		return false;
	assert_true(look_at(obj) > 0);
	(void)leat_bpf_object_load(obj, NULL, NULL);
	assert_true(look_at(obj) > 0);
	leat_bpf_object_close(obj);
	return true;
}

/* ---- tests ---- */

static void good_image_is_read(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_bpf_object *obj;
	struct leat_bpf_map *map;
	struct sample s;
	char source[64];

	(void)state;
	fill(&s);
	assert_int_equal(leat_bpf_object_open_image(env, &s, sizeof(s), diag, &obj), 0);
	assert_int_equal(leat_diag_count(diag), 0);
	assert_string_equal(leat_bpf_object_license(obj), "GPL");
	assert_string_equal(leat_bpf_prog_name(leat_bpf_object_prog_find(obj, "xdp")), "main");
	assert_true(leat_bpf_prog_frags(leat_bpf_object_prog_find(obj, "next")));
	assert_null(leat_bpf_object_prog_find(obj, "nothing"));
	map = leat_bpf_object_map_find(obj, ".rodata");
	assert_non_null(map);
	assert_ptr_equal(map, leat_bpf_object_map_get(obj, 0));
	assert_int_equal(leat_bpf_object_resize(obj, ".rodata", 2), -EINVAL);
	assert_int_equal(leat_bpf_object_resize(obj, "counts", 0), -EINVAL);
	assert_int_equal(leat_bpf_object_resize(obj, "nothing", 2), -ENOENT);
	assert_int_equal(leat_bpf_object_resize(obj, "counts", 2), 0);
	leat_bpf_prog_source(leat_bpf_object_prog_get(obj, 0), 0, source, sizeof(source));
	assert_string_equal(source, "");
	leat_bpf_prog_source(leat_bpf_object_prog_get(obj, 0), 6, source, sizeof(source));
	assert_string_equal(source, "file.c:20: return 1;");
	leat_bpf_object_close(obj);
	leat_diag_destroy(diag);
}

static void every_length_but_one_is_refused(void **state)
{
	uint8_t longer[sizeof(struct sample) + 8] = {0};
	struct sample s;
	size_t len;

	(void)state;
	fill(&s);
	assert_true(try_image(&s, sizeof(s)));
	for (len = 0; len < sizeof(s); len++)
		assert_false(try_image(&s, len));
	memcpy(longer, &s, sizeof(s));
	assert_false(try_image(longer, sizeof(longer)));
	assert_false(try_image(longer, sizeof(longer) - 7));
}

/** Also with the header's size corrected, and for every table made to end anywhere. */
static void cut_images_with_right_size(void **state)
{
	struct sample s;
	size_t len;

	(void)state;
	for (len = sizeof(s.head); len < sizeof(s); len++) {
		fill(&s);
		s.head.size = (uint32_t)len;
		try_image(&s, len);
	}
}

static void every_bit_changed(void **state)
{
	struct sample s;
	size_t bit, taken = 0;

	(void)state;
	for (bit = 0; bit < sizeof(s) * 8; bit++) {
		fill(&s);
		((uint8_t *)&s)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		taken += try_image(&s, sizeof(s));
	}
	assert_true(taken > 0);
}

static void every_word_changed(void **state)
{
	static const uint32_t values[] = {
		0, 1, 2, 5, 8, 0x7f, 0xff, 4096, sizeof(struct sample), 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff,
	};
	struct sample s;
	uint32_t word;
	size_t off, i;

	(void)state;
	for (off = 0; off + 4 <= sizeof(s); off += 4)
		for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			fill(&s);
			memcpy(&word, (uint8_t *)&s + off, 4);
			memcpy((uint8_t *)&s + off, &values[i], 4);
			if (word != values[i])
				try_image(&s, sizeof(s));
		}
}

static void two_words_changed(void **state)
{
	struct sample s;
	unsigned int seed = 1;
	size_t i, off;

	(void)state;
	for (i = 0; i < 20000; i++) {
		fill(&s);
		off = (size_t)rand_r(&seed) % (sizeof(s) / 4) * 4;
		memcpy((uint8_t *)&s + off, (uint8_t *)&s + (size_t)rand_r(&seed) % (sizeof(s) / 4) * 4, 4);
		off = (size_t)rand_r(&seed) % (sizeof(s.head) / 4) * 4;
		memcpy((uint8_t *)&s + off, (uint8_t *)&s + (size_t)rand_r(&seed) % (sizeof(s) / 4) * 4, 4);
		try_image(&s, sizeof(s));
	}
}

#define REFUSED(change)                                       \
	do {                                                  \
		fill(&s);                                     \
		change;                                       \
		assert_false(try_image(&s, sizeof(s)));       \
	} while (0)

/** What must not get through, by name. */
static void what_must_be_refused(void **state)
{
	struct sample s;

	(void)state;
	REFUSED(s.head.magic = __builtin_bswap64(s.head.magic));
	REFUSED(s.head.version++);
	REFUSED(s.head.pad = 1);
	REFUSED(s.head.license = sizeof(s.strings));
	REFUSED(s.head.progs.n = LEAT_IMAGE_PROGS_MAX + 1);
	REFUSED(s.head.maps.off += 4);
	REFUSED(s.head.data.off = s.head.strings.off);
	REFUSED(s.head.data.off = 0);
	REFUSED(s.head.data.off = 0; s.head.data.n = 0);
	REFUSED(s.head.strings.n = 0);
	REFUSED(s.strings[sizeof(s.strings) - 1] = 'x');
	REFUSED(s.strings[0] = 'x');
	REFUSED(s.prog[0].name = sizeof(s.strings));
	REFUSED(s.prog[0].flags = 0x80);
	REFUSED(s.prog[0].n_insns = 0);
	REFUSED(s.prog[1].first_insn = UINT32_MAX);
	REFUSED(s.prog[1].n_insns = UINT32_MAX);
	REFUSED(s.prog[0].n_insns = 5); /* ends in the middle of a 64-bit load */
	REFUSED(s.prog[1].first_line = 3);
	REFUSED(s.line[1].insn = 1); /* not after the line before */
	REFUSED(s.line[2].insn = 2); /* past its program */
	REFUSED(s.line[0].line = 0);
	REFUSED(s.line[0].text = sizeof(s.strings));
	REFUSED(s.insn[0].imm = N_MAPS);
	REFUSED(s.insn[0].imm = -1);
	REFUSED(s.insn[3].src_reg = BPF_PSEUDO_KFUNC_CALL; s.insn[3].imm = sizeof(s.strings));
	REFUSED(s.map[RODATA].data.n = 7);
	REFUSED(s.map[RODATA].max_entries = 2);
	REFUSED(s.map[RODATA].type = BPF_MAP_TYPE_HASH);
	REFUSED(s.map[DATA].data.off = 4); /* upon .rodata's */
	REFUSED(s.map[COUNTS].data.n = 8);
	REFUSED(s.map[COUNTS].flags = 0x80);
	REFUSED(s.map[COUNTS].inner = COUNTS + 1);
	REFUSED(s.map[OUTER].inner = N_MAPS + 1);
	REFUSED(s.map[TEMPLATE].inner = TEMPLATE + 1);
	REFUSED(s.map[TEMPLATE].flags = 0);
	REFUSED(s.map[JUMPS].inits.n = N_INITS + 1);
	REFUSED(s.map[JUMPS].inits.n = N_INITS); /* a map in an array of programs */
	REFUSED(s.init[0].index = 4);
	REFUSED(s.init[0].prog = N_PROGS + 1);
	REFUSED(s.init[0].prog = 0);
	REFUSED(s.init[0].map = 1);
	REFUSED(s.init[2].map = TEMPLATE + 1);
	REFUSED(s.init[2].index = 2);
	REFUSED(s.map[OUTER].key_size = 8);
	REFUSED(s.insn[0].imm = TEMPLATE);
}

static void memory_runs_out(void **state)
{
	struct leat_bpf_object *obj;
	struct sample s;
	unsigned long nth;
	int err = -ENOMEM;

	(void)state;
	fill(&s);
	for (nth = 1; err; nth++) {
		leat_heap_fail_nth(nth);
		err = leat_bpf_object_open_image(env, &s, sizeof(s), NULL, &obj);
		if (!err) {
			err = leat_bpf_object_load(obj, "next", NULL);
			if (!err && !leat_heap_failed()) {
				leat_bpf_object_close(obj);
				break;
			}
			leat_bpf_object_close(obj);
		}
		assert_true(leat_heap_failed());
		leat_heap_fail_nth(0);
		err = -ENOMEM;
	}
	leat_heap_fail_nth(0);
	assert_true(nth > 5);
}

/** Also where leat was built without it: images can be opened, objects are refused with a sentence. */
static void without_leat_load(void **state)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts), .loader = "/nowhere/leat-load"};
	struct leat_diag *diag = leat_diag_create();
	struct leat_bpf_object *obj;

	(void)state;
#ifdef LEAT_HAVE_LOAD
	assert_int_equal(leat_bpf_object_open(env, "/proc/self/exe", &opts, diag, &obj), -ENOENT);
#else
	assert_int_equal(leat_bpf_object_open(env, "/proc/self/exe", &opts, diag, &obj), -ENOSYS);
#endif
	assert_int_equal(leat_diag_count(diag), 1);
	leat_diag_destroy(diag);
}

static int make_env(void **state)
{
	(void)state;
	return leat_bpf_env_create(NULL, &env);
}

static int free_env(void **state)
{
	(void)state;
	leat_bpf_env_destroy(env);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_image_is_read),
		cmocka_unit_test(every_length_but_one_is_refused),
		cmocka_unit_test(cut_images_with_right_size),
		cmocka_unit_test(every_bit_changed),
		cmocka_unit_test(every_word_changed),
		cmocka_unit_test(two_words_changed),
		cmocka_unit_test(what_must_be_refused),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(without_leat_load),
	};

	return cmocka_run_group_tests(tests, make_env, free_env);
}
