/* SPDX-License-Identifier: BSD-3-Clause */
/* impl.h: what the reader of BTF (check.c) finds out, for those who look at it afterwards (btf.c). */
#ifndef LEAT_BPF_BTF_IMPL_H
#define LEAT_BPF_BTF_IMPL_H

#include "bpf/btf/btf.h"

#define LEAT_BTF_NO_SIZE UINT64_MAX /* there are no values of the type */
/* Members of one struct, those of members without a name included. */
#define LEAT_BTF_PARTS_MAX (1u << 20)

/* How far the last pass has come with a type. */
enum leat_btf_progress { LEAT_BTF_UNSEEN, LEAT_BTF_OPEN, LEAT_BTF_DONE };

/* What is known of a type. */
struct leat_btf_entry {
	uint32_t off;   /* of its btf_type, bytes from types */
	uint32_t parts; /* of a struct or union: see LEAT_BTF_PARTS_MAX */
	uint64_t size;  /* or LEAT_BTF_NO_SIZE */
	uint8_t state;  /* enum leat_btf_progress */
	uint8_t height; /* types within types below it */
};

struct leat_btf {
	uint8_t *bytes; /* our copy, aligned */
	const uint8_t *types;
	uint32_t types_len;
	const char *strings;
	uint32_t strings_len;
	uint32_t n; /* types, void included */
	struct leat_btf_entry *entry;
};

static inline const struct btf_type *leat_btf_type_at(const struct leat_btf *btf, uint32_t off)
{
	return (const struct btf_type *)(const void *)(btf->types + off);
}

/* The word behind an integer. */
static inline uint32_t leat_btf_int_info(const struct btf_type *type)
{
	return *(const uint32_t *)(const void *)(type + 1);
}

static inline bool leat_btf_is_record(uint32_t kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

#endif
