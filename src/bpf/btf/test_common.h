/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_common.h: for tests: BTF written by hand, BTF from an object that clang made, and a look at everything of a
 * BTF that was accepted. Behind <cmocka.h>.
 */
#ifndef LEAT_BPF_BTF_TEST_COMMON_H
#define LEAT_BPF_BTF_TEST_COMMON_H

#include <elf.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/btf/btf.h"

#define BUILD_SIZE 32768u

/* BTF on its way; zero-initialise. Functions that add a type return its number. */
struct build {
	uint32_t types[BUILD_SIZE / 4], n_words, n_types;
	char strings[BUILD_SIZE];
	uint32_t strings_len;
	uint8_t bytes[2 * BUILD_SIZE + sizeof(struct btf_header)];
	size_t len;
};

static inline uint32_t build_string(struct build *b, const char *text)
{
	uint32_t off;

	if (!b->strings_len)
		b->strings_len = 1; /* the empty string */
	if (!*text)
		return 0;
	off = b->strings_len;
	memcpy(b->strings + off, text, strlen(text) + 1);
	b->strings_len += (uint32_t)strlen(text) + 1;
	return off;
}

static inline void build_word(struct build *b, uint32_t word)
{
	b->types[b->n_words++] = word;
}

static inline uint32_t build_type(struct build *b, const char *name, uint32_t kind, uint32_t vlen, int flag,
				  uint32_t size)
{
	build_word(b, build_string(b, name));
	build_word(b, (uint32_t)flag << 31 | kind << 24 | vlen);
	build_word(b, size);
	return ++b->n_types;
}

static inline uint32_t build_int(struct build *b, const char *name, uint32_t size, uint32_t encoding)
{
	uint32_t id = build_type(b, name, BTF_KIND_INT, 0, 0, size);

	build_word(b, encoding << 24 | size * 8);
	return id;
}

static inline uint32_t build_array(struct build *b, uint32_t type, uint32_t n)
{
	uint32_t id = build_type(b, "", BTF_KIND_ARRAY, 0, 0, 0);

	build_word(b, type);
	build_word(b, type);
	build_word(b, n);
	return id;
}

static inline void build_member(struct build *b, const char *name, uint32_t type, uint32_t off)
{
	build_word(b, build_string(b, name));
	build_word(b, type);
	build_word(b, off);
}

static inline uint32_t build_var(struct build *b, const char *name, uint32_t type)
{
	uint32_t id = build_type(b, name, BTF_KIND_VAR, 0, 0, type);

	build_word(b, BTF_VAR_GLOBAL_ALLOCATED);
	return id;
}

/* Puts the parts together in b->bytes. */
static inline void build_end(struct build *b)
{
	struct btf_header head = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(head) };

	build_string(b, "");
	head.type_len = b->n_words * 4;
	head.str_off = head.type_len;
	head.str_len = b->strings_len;
	memcpy(b->bytes, &head, sizeof(head));
	memcpy(b->bytes + sizeof(head), b->types, head.type_len);
	memcpy(b->bytes + sizeof(head) + head.type_len, b->strings, head.str_len);
	b->len = sizeof(head) + head.type_len + head.str_len;
}

/* A whole file, or NULL; free() it. */
static inline uint8_t *file_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;

	if (!f)
		return NULL;
	bytes = malloc(1 << 20);
	*len = bytes ? fread(bytes, 1, 1 << 20, f) : 0;
	fclose(f);
	return bytes;
}

/* The .BTF section of an object that clang made, within its bytes. */
static inline const uint8_t *elf_btf(const uint8_t *elf, size_t *len)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)elf;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(elf + head->e_shoff);
	const char *names = (const char *)elf + sections[head->e_shstrndx].sh_offset;
	unsigned int i;

	for (i = 0; i < head->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, ".BTF") != 0)
			continue;
		*len = sections[i].sh_size;
		return elf + sections[i].sh_offset;
	}
	return NULL;
}

/* ---- hostile bytes ---- */

/* Whatever was accepted must bear to be looked at in every way. */
static inline void use_all(const struct leat_btf *btf)
{
	static uint8_t value[4096];
	static char text[4096];
	struct leat_btf_member member;
	uint32_t id, i, size;
	uint64_t number;

	for (id = 0; id < leat_btf_count(btf) + 1; id++) {
		leat_btf_name(btf, id);
		leat_btf_strip(btf, id);
		for (i = 0; i < leat_btf_n_members(btf, id); i++) {
			leat_btf_member(btf, id, i, &member);
			leat_btf_find_member(btf, id, member.name, &member);
		}
		for (i = 0; i < leat_btf_n_enums(btf, id); i++)
			leat_btf_enum(btf, id, i, &number);
		size = leat_btf_size(btf, id);
		if (size > sizeof(value))
			continue;
		if (leat_btf_format(btf, id, value, size, text, sizeof(text)) < (int)sizeof(text))
			leat_btf_parse(btf, id, text, value, size, NULL);
	}
}

static inline bool try_bytes(const uint8_t *bytes, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* the sanitizer sees every byte past it */
	struct leat_btf *btf;
	int err;

	memcpy(exact, bytes, len);
	err = leat_btf_create(exact, len, NULL, &btf);
	free(exact);
	if (err) {
		assert_int_equal(err, -EINVAL);
		return false;
	}
	use_all(btf);
	leat_btf_destroy(btf);
	return true;
}

#endif
