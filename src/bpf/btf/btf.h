/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btf.h: the types of an object, from its BTF, checked as a whole before anything is looked at; and values as text.
 *
 * After leat_btf_create() every string, type number, member and size is within its bounds, types that hold each other
 * do not go round, and nesting is at most LEAT_BTF_DEPTH_MAX. Type number 0 is void. A checked BTF does not change: any
 * thread may read it.
 */
#ifndef LEAT_BPF_BTF_H
#define LEAT_BPF_BTF_H

#include <leat/diag.h>
#include <linux/btf.h>

/** Types within types: arrays, structs, typedefs. */
#define LEAT_BTF_DEPTH_MAX 48u
#define LEAT_BTF_BYTES_MAX (64u << 20)
/** Longest text of one value. */
#define LEAT_BTF_TEXT_MAX (16u << 20)

struct leat_btf;

/** Copies and checks @bytes. Returns 0, -EINVAL (with a sentence in @diag), -ENOMEM. */
int leat_btf_create(const void *bytes, size_t len, struct leat_diag *diag, struct leat_btf **btf);
/** NULL allowed. */
void leat_btf_destroy(struct leat_btf *btf);

/** Types, void included: numbers are below this. */
uint32_t leat_btf_count(const struct leat_btf *btf);
/** Description of a type, with what belongs to its kind behind it; NULL for void and unknown numbers. */
const struct btf_type *leat_btf_type(const struct leat_btf *btf, uint32_t id);
/** Number of the first type of that name and kind, or 0. */
uint32_t leat_btf_find(const struct leat_btf *btf, const char *name, uint32_t kind);
/** The string at an offset that stands in a type; "" for none. */
const char *leat_btf_string(const struct leat_btf *btf, uint32_t off);
/** Name of a type; "" for none. */
const char *leat_btf_name(const struct leat_btf *btf, uint32_t id);
/** Kind of a type, BTF_KIND_UNKN for void. */
uint32_t leat_btf_kind(const struct leat_btf *btf, uint32_t id);
/** The type behind typedefs, const, volatile, restrict and tags. */
uint32_t leat_btf_strip(const struct leat_btf *btf, uint32_t id);
/** Bytes of a value of that type; 0 where there are no such values (void, functions, declarations) or no bytes. */
uint32_t leat_btf_size(const struct leat_btf *btf, uint32_t id);

/** An integer, a bool, a char or an enum, or a field of bits of one. */
struct leat_btf_number {
	bool is_signed, is_bool, is_char;
	uint32_t bits; /* 1..128 */
};
/** Whether the (stripped) type is a number; how many bits it has, if so. */
bool leat_btf_number(const struct leat_btf *btf, uint32_t id, struct leat_btf_number *number);

/** A part of a struct or union, or a variable of a section. */
struct leat_btf_member {
	const char *name; /* "" for none */
	uint32_t type;
	uint32_t bit_off; /* from the start of the whole, as little-endian machines count */
	uint32_t bits;    /* of a field of bits; 0: the whole type */
};
/** Members of a struct or union, variables of a section; 0 for other kinds. */
uint32_t leat_btf_n_members(const struct leat_btf *btf, uint32_t id);
/** The @idx-th, which must exist. */
void leat_btf_member(const struct leat_btf *btf, uint32_t id, uint32_t idx, struct leat_btf_member *member);
/** By name, through members without a name, too. Returns 0 or -ENOENT. For a section: its variable. */
int leat_btf_find_member(const struct leat_btf *btf, uint32_t id, const char *name, struct leat_btf_member *member);

/** Element type and number of an array, which @id must be. */
const struct btf_array *leat_btf_array(const struct leat_btf *btf, uint32_t id);

/** Values of an enum (0 for other kinds), and the @idx-th, which must exist. */
uint32_t leat_btf_n_enums(const struct leat_btf *btf, uint32_t id);
const char *leat_btf_enum(const struct leat_btf *btf, uint32_t id, uint32_t idx, uint64_t *value);

/* ---- text.c ---- */

/** Where a value stands: a type (or some bits of it) at memory that holds it. */
struct leat_btf_place {
	uint8_t *bytes;
	uint32_t type;
	uint32_t bit_off, bits; /* a field of bits, from the start of bytes; bits 0: none */
};

/**
 * Writes the value of @size bytes at @bytes as JSON by @type: structs as objects, arrays as lists, arrays of char as
 * strings where they are printable, enums by name. A type that does not have @size bytes (0 above all) gives the bytes
 * in hexadecimal. Returns the length it wanted, as snprintf does; -E2BIG above LEAT_BTF_TEXT_MAX.
 */
int leat_btf_format(const struct leat_btf *btf, uint32_t type, const void *bytes, uint32_t size, char *buf,
		    size_t buf_size);
/** The same for a variable or a field of bits. */
int leat_btf_format_place(const struct leat_btf *btf, const struct leat_btf_place *place, char *buf, size_t buf_size);

/**
 * The way back: JSON, a number, the name of an enum's value, an address where the size fits, or bytes in hexadecimal.
 * Bytes that @text does not name are left as they are. Returns 0, -EINVAL with a sentence in @diag, or -ENOMEM.
 */
int leat_btf_parse(const struct leat_btf *btf, uint32_t type, const char *text, void *bytes, uint32_t size,
		   struct leat_diag *diag);
int leat_btf_parse_place(const struct leat_btf *btf, const struct leat_btf_place *place, const char *text,
			 struct leat_diag *diag);

#endif
