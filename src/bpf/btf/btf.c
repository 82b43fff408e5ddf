/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btf.c: what a checked BTF says: types, members, values of enums. Nothing is checked again here, see check.c.
 * Any thread.
 */
#include <errno.h>
#include <string.h>

#include "bpf/btf/impl.h"

uint32_t leat_btf_count(const struct leat_btf *btf)
{
	return btf->n;
}

const struct btf_type *leat_btf_type(const struct leat_btf *btf, uint32_t id)
{
	return id && id < btf->n ? leat_btf_type_at(btf, btf->entry[id].off) : NULL;
}

const char *leat_btf_string(const struct leat_btf *btf, uint32_t off)
{
	return off < btf->strings_len ? btf->strings + off : "";
}

const char *leat_btf_name(const struct leat_btf *btf, uint32_t id)
{
	const struct btf_type *type = leat_btf_type(btf, id);

	return type ? leat_btf_string(btf, type->name_off) : "";
}

uint32_t leat_btf_kind(const struct leat_btf *btf, uint32_t id)
{
	const struct btf_type *type = leat_btf_type(btf, id);

	return type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;
}

uint32_t leat_btf_find(const struct leat_btf *btf, const char *name, uint32_t kind)
{
	uint32_t id;

	for (id = 1; id < btf->n; id++)
		if (leat_btf_kind(btf, id) == kind && !strcmp(leat_btf_name(btf, id), name))
			return id;
	return 0;
}

static bool is_modifier(uint32_t kind)
{
	return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_CONST || kind == BTF_KIND_VOLATILE ||
	       kind == BTF_KIND_RESTRICT || kind == BTF_KIND_TYPE_TAG;
}

/* Ends, because chains are checked not to go round. */
uint32_t leat_btf_strip(const struct leat_btf *btf, uint32_t id)
{
	const struct btf_type *type;

	while ((type = leat_btf_type(btf, id)) && is_modifier(BTF_INFO_KIND(type->info)))
		id = type->type;
	return id;
}

uint32_t leat_btf_size(const struct leat_btf *btf, uint32_t id)
{
	uint64_t size = id && id < btf->n ? btf->entry[id].size : LEAT_BTF_NO_SIZE;

	return size > UINT32_MAX ? 0 : (uint32_t)size;
}

bool leat_btf_number(const struct leat_btf *btf, uint32_t id, struct leat_btf_number *number)
{
	const struct btf_type *type = leat_btf_type(btf, leat_btf_strip(btf, id));
	struct leat_btf_number none = { 0 };
	uint32_t kind = type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;

	*number = none;
	if (kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64) {
		number->is_signed = BTF_INFO_KFLAG(type->info);
		number->bits = type->size * 8;
		return true;
	}
	if (kind != BTF_KIND_INT)
		return false;
	number->is_signed = (BTF_INT_ENCODING(leat_btf_int_info(type)) & BTF_INT_SIGNED) != 0;
	number->is_bool = (BTF_INT_ENCODING(leat_btf_int_info(type)) & BTF_INT_BOOL) != 0;
	/* clang marks no type as characters: char is known by its name */
	number->is_char = type->size == 1 && ((BTF_INT_ENCODING(leat_btf_int_info(type)) & BTF_INT_CHAR) ||
					      !strcmp(leat_btf_string(btf, type->name_off), "char"));
	number->bits = BTF_INT_BITS(leat_btf_int_info(type));
	return true;
}

const struct btf_array *leat_btf_array(const struct leat_btf *btf, uint32_t id)
{
	return (const struct btf_array *)(const void *)(leat_btf_type(btf, id) + 1);
}

uint32_t leat_btf_n_members(const struct leat_btf *btf, uint32_t id)
{
	const struct btf_type *type = leat_btf_type(btf, id);
	uint32_t kind = leat_btf_kind(btf, id);

	if (!type || (!leat_btf_is_record(kind) && kind != BTF_KIND_DATASEC))
		return 0;
	return BTF_INFO_VLEN(type->info);
}

static void section_var(const struct leat_btf *btf, const struct btf_var_secinfo *info, struct leat_btf_member *member)
{
	const struct btf_type *var = leat_btf_type(btf, info->type);

	member->name = leat_btf_string(btf, var->name_off);
	member->type = BTF_INFO_KIND(var->info) == BTF_KIND_VAR ? var->type : info->type;
	member->bit_off = info->offset * 8;
	member->bits = 0;
}

/* Before kind_flag, fields of bits were integers of fewer bits than their bytes hold. */
static void old_bit_field(const struct leat_btf *btf, struct leat_btf_member *member)
{
	const struct btf_type *type = leat_btf_type(btf, leat_btf_strip(btf, member->type));

	if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_INT ||
	    BTF_INT_BITS(leat_btf_int_info(type)) == type->size * 8)
		return;
	member->bit_off += BTF_INT_OFFSET(leat_btf_int_info(type));
	member->bits = BTF_INT_BITS(leat_btf_int_info(type));
}

static void struct_member(const struct leat_btf *btf, const struct btf_type *type, uint32_t idx,
			  struct leat_btf_member *member)
{
	const struct btf_member *m = (const struct btf_member *)(const void *)(type + 1) + idx;
	bool packed = BTF_INFO_KFLAG(type->info);

	member->name = leat_btf_string(btf, m->name_off);
	member->type = m->type;
	member->bit_off = packed ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset;
	member->bits = packed ? BTF_MEMBER_BITFIELD_SIZE(m->offset) : 0;
	if (!packed)
		old_bit_field(btf, member);
}

void leat_btf_member(const struct leat_btf *btf, uint32_t id, uint32_t idx, struct leat_btf_member *member)
{
	const struct btf_type *type = leat_btf_type(btf, id);

	if (BTF_INFO_KIND(type->info) == BTF_KIND_DATASEC)
		section_var(btf, (const struct btf_var_secinfo *)(const void *)(type + 1) + idx, member);
	else
		struct_member(btf, type, idx, member);
}

/* Recursion ends with the nesting of types. */
int leat_btf_find_member(const struct leat_btf *btf, uint32_t id, const char *name, struct leat_btf_member *member)
{
	uint32_t i, n = leat_btf_n_members(btf, id), inner, base;

	for (i = 0; i < n; i++) {
		leat_btf_member(btf, id, i, member);
		if (*member->name && !strcmp(member->name, name))
			return 0;
		inner = leat_btf_strip(btf, member->type);
		base = member->bit_off;
		if (*member->name || member->bits || !leat_btf_is_record(leat_btf_kind(btf, inner)))
			continue;
		if (leat_btf_find_member(btf, inner, name, member))
			continue;
		member->bit_off += base;
		return 0;
	}
	return -ENOENT;
}

uint32_t leat_btf_n_enums(const struct leat_btf *btf, uint32_t id)
{
	const struct btf_type *type = leat_btf_type(btf, id);
	uint32_t kind = type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;

	return kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64 ? BTF_INFO_VLEN(type->info) : 0;
}

const char *leat_btf_enum(const struct leat_btf *btf, uint32_t id, uint32_t idx, uint64_t *value)
{
	const struct btf_type *type = leat_btf_type(btf, id);
	const struct btf_enum *e = (const struct btf_enum *)(const void *)(type + 1);
	const struct btf_enum64 *e64 = (const struct btf_enum64 *)(const void *)(type + 1);

	if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64) {
		*value = (uint64_t)e64[idx].val_hi32 << 32 | e64[idx].val_lo32;
		return leat_btf_string(btf, e64[idx].name_off);
	}
	*value = BTF_INFO_KFLAG(type->info) ? (uint64_t)(int64_t)e[idx].val : (uint32_t)e[idx].val;
	return leat_btf_string(btf, e[idx].name_off);
}
