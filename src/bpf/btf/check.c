/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.c: the reader of BTF bytes, which anybody may have written. Control thread.
 *
 * Three passes: find where each type begins (its length depends on its kind), check each type by itself, then find the
 * sizes of types that hold other types, which also finds those that go round. Every pass is linear in the bytes.
 */
#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/btf/impl.h"

/* ---- first pass: where each type begins ---- */

/* Bytes behind a type: so many once, and so many for each of its vlen. known says that there is such a kind. */
static const struct {
	bool known, counts;
	uint8_t bytes;
} tails[] = {
	[BTF_KIND_INT] = { true, false, sizeof(uint32_t) },
	[BTF_KIND_PTR] = { true, false, 0 },
	[BTF_KIND_ARRAY] = { true, false, sizeof(struct btf_array) },
	[BTF_KIND_STRUCT] = { true, true, sizeof(struct btf_member) },
	[BTF_KIND_UNION] = { true, true, sizeof(struct btf_member) },
	[BTF_KIND_ENUM] = { true, true, sizeof(struct btf_enum) },
	[BTF_KIND_FWD] = { true, false, 0 },
	[BTF_KIND_TYPEDEF] = { true, false, 0 },
	[BTF_KIND_VOLATILE] = { true, false, 0 },
	[BTF_KIND_CONST] = { true, false, 0 },
	[BTF_KIND_RESTRICT] = { true, false, 0 },
	[BTF_KIND_FUNC] = { true, false, 0 },
	[BTF_KIND_FUNC_PROTO] = { true, true, sizeof(struct btf_param) },
	[BTF_KIND_VAR] = { true, false, sizeof(struct btf_var) },
	[BTF_KIND_DATASEC] = { true, true, sizeof(struct btf_var_secinfo) },
	[BTF_KIND_FLOAT] = { true, false, 0 },
	[BTF_KIND_DECL_TAG] = { true, false, sizeof(struct btf_decl_tag) },
	[BTF_KIND_TYPE_TAG] = { true, false, 0 },
	[BTF_KIND_ENUM64] = { true, true, sizeof(struct btf_enum64) },
};

#define N_KINDS (sizeof(tails) / sizeof(tails[0]))

/* Bytes of the type at @off with its tail, or 0: unknown, or not all there. */
static uint32_t whole_type(const struct leat_btf *btf, uint32_t off)
{
	uint32_t left = btf->types_len - off, kind, len;
	const struct btf_type *type = leat_btf_type_at(btf, off);

	if (left < sizeof(*type))
		return 0;
	kind = BTF_INFO_KIND(type->info);
	if (kind >= N_KINDS || !tails[kind].known)
		return 0;
	len = (uint32_t)sizeof(*type) + tails[kind].bytes * (tails[kind].counts ? BTF_INFO_VLEN(type->info) : 1u);
	return len <= left ? len : 0;
}

/* Counts the types, and notes where they begin once there is a table. */
static int walk_types(struct leat_btf *btf, struct leat_diag *diag)
{
	uint32_t off = 0, n = 1, len;

	for (; off < btf->types_len; off += len, n++) {
		len = whole_type(btf, off);
		if (!len) {
			leat_diag_add(diag, "BTF type %u is of an unknown kind or cut off", n);
			return -EINVAL;
		}
		if (btf->entry)
			btf->entry[n].off = off;
	}
	btf->n = n;
	return 0;
}

/* ---- second pass: each type by itself ---- */

static bool good_name(const struct leat_btf *btf, uint32_t off)
{
	return off < btf->strings_len;
}

static bool good_id(const struct leat_btf *btf, uint32_t id)
{
	return id < btf->n;
}

typedef bool check_fn(const struct leat_btf *btf, const struct btf_type *type);

static bool check_int(const struct leat_btf *btf, const struct btf_type *type)
{
	uint32_t info = leat_btf_int_info(type), bits = BTF_INT_BITS(info);

	(void)btf;
	return type->size >= 1 && type->size <= 16 && !(type->size & (type->size - 1)) && bits >= 1 &&
	       BTF_INT_OFFSET(info) + bits <= type->size * 8;
}

static bool check_ref(const struct leat_btf *btf, const struct btf_type *type)
{
	return good_id(btf, type->type);
}

static bool check_array(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_array *array = (const struct btf_array *)(const void *)(type + 1);

	return good_id(btf, array->type) && good_id(btf, array->index_type);
}

static bool check_struct(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_member *m = (const struct btf_member *)(const void *)(type + 1);
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++)
		if (!good_name(btf, m[i].name_off) || !good_id(btf, m[i].type))
			return false;
	return type->size <= UINT32_MAX / 8;
}

static bool check_enum(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_enum *e = (const struct btf_enum *)(const void *)(type + 1);
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++)
		if (!good_name(btf, e[i].name_off))
			return false;
	return type->size >= 1 && type->size <= 8 && !(type->size & (type->size - 1));
}

static bool check_enum64(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_enum64 *e = (const struct btf_enum64 *)(const void *)(type + 1);
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++)
		if (!good_name(btf, e[i].name_off))
			return false;
	return type->size >= 1 && type->size <= 8 && !(type->size & (type->size - 1));
}

static bool check_proto(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_param *p = (const struct btf_param *)(const void *)(type + 1);
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++)
		if (!good_name(btf, p[i].name_off) || !good_id(btf, p[i].type))
			return false;
	return good_id(btf, type->type);
}

static bool check_func(const struct leat_btf *btf, const struct btf_type *type)
{
	return good_id(btf, type->type) && leat_btf_kind(btf, type->type) == BTF_KIND_FUNC_PROTO;
}

static bool check_section(const struct leat_btf *btf, const struct btf_type *type)
{
	const struct btf_var_secinfo *v = (const struct btf_var_secinfo *)(const void *)(type + 1);
	uint32_t i, kind;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		kind = good_id(btf, v[i].type) ? leat_btf_kind(btf, v[i].type) : BTF_KIND_UNKN;
		if (kind != BTF_KIND_VAR && kind != BTF_KIND_FUNC)
			return false;
		if (v[i].offset > UINT32_MAX / 8)
			return false;
	}
	return type->size <= UINT32_MAX / 8;
}

static bool check_float(const struct leat_btf *btf, const struct btf_type *type)
{
	(void)btf;
	return type->size >= 2 && type->size <= 16;
}

static check_fn *const checks[N_KINDS] = {
	[BTF_KIND_INT] = check_int,         [BTF_KIND_PTR] = check_ref,
	[BTF_KIND_ARRAY] = check_array,     [BTF_KIND_STRUCT] = check_struct,
	[BTF_KIND_UNION] = check_struct,    [BTF_KIND_ENUM] = check_enum,
	[BTF_KIND_TYPEDEF] = check_ref,     [BTF_KIND_VOLATILE] = check_ref,
	[BTF_KIND_CONST] = check_ref,       [BTF_KIND_RESTRICT] = check_ref,
	[BTF_KIND_FUNC] = check_func,       [BTF_KIND_FUNC_PROTO] = check_proto,
	[BTF_KIND_VAR] = check_ref,         [BTF_KIND_DATASEC] = check_section,
	[BTF_KIND_FLOAT] = check_float,     [BTF_KIND_DECL_TAG] = check_ref,
	[BTF_KIND_TYPE_TAG] = check_ref,    [BTF_KIND_ENUM64] = check_enum64,
};

static int check_types(const struct leat_btf *btf, struct leat_diag *diag)
{
	const struct btf_type *type;
	check_fn *check;
	uint32_t id;

	for (id = 1; id < btf->n; id++) {
		type = leat_btf_type(btf, id);
		check = checks[BTF_INFO_KIND(type->info)];
		if (good_name(btf, type->name_off) && (!check || check(btf, type)))
			continue;
		leat_diag_add(diag, "BTF type %u is out of bounds", id);
		return -EINVAL;
	}
	return 0;
}

/* ---- third pass: sizes of types within types ---- */

/* Types that are being sized, each within the one before. */
struct sizing {
	struct leat_btf *btf;
	const char *why;
};

static bool size_type(struct sizing *s, uint32_t id, unsigned int depth);

/* Sections and variables are no types: only a section holds variables. */
static bool can_hold(const struct leat_btf *btf, uint32_t id, uint32_t inner)
{
	uint32_t kind = leat_btf_kind(btf, inner);

	return kind != BTF_KIND_DATASEC && (kind != BTF_KIND_VAR || leat_btf_kind(btf, id) == BTF_KIND_DATASEC);
}

/* Sizes what @id holds: its height grows by it. False: refused. */
static bool size_inner(struct sizing *s, uint32_t id, uint32_t inner, unsigned int depth)
{
	struct leat_btf_entry *e = &s->btf->entry[id];

	if (!can_hold(s->btf, id, inner)) {
		s->why = "is made of something that is no type";
		return false;
	}
	if (!size_type(s, inner, depth + 1))
		return false;
	if (e->height <= s->btf->entry[inner].height)
		e->height = (uint8_t)(s->btf->entry[inner].height + 1);
	if (e->height <= LEAT_BTF_DEPTH_MAX)
		return true;
	s->why = "holds too many types within types";
	return false;
}

static bool size_array(struct sizing *s, uint32_t id, unsigned int depth)
{
	const struct btf_array *array = leat_btf_array(s->btf, id);
	struct leat_btf_entry *e = &s->btf->entry[id];
	uint64_t elem;

	if (!size_inner(s, id, array->type, depth))
		return false;
	/* Too large to be a value, it may still be pointed at: that is how maps say how many entries they have. */
	elem = s->btf->entry[array->type].size;
	e->size = elem == LEAT_BTF_NO_SIZE ? elem : elem * array->nelems;
	if (e->size > UINT32_MAX / 8)
		e->size = LEAT_BTF_NO_SIZE;
	return true;
}

/* Whether one member lies within its struct. */
static bool member_fits(const struct leat_btf *btf, const struct btf_type *type, const struct leat_btf_member *member)
{
	uint64_t size = btf->entry[member->type].size, room = (uint64_t)type->size * 8;
	struct leat_btf_number number;

	if (!member->type || size == LEAT_BTF_NO_SIZE)
		return false;
	if (!member->bits)
		return member->bit_off % 8 == 0 && member->bit_off + size * 8 <= room;
	return leat_btf_number(btf, member->type, &number) && member->bits <= 64 && member->bits <= size * 8 &&
	       member->bit_off + (uint64_t)member->bits <= room;
}

/* Keeps walks through members without a name short. */
static bool count_parts(struct sizing *s, uint32_t id, const struct leat_btf_member *member)
{
	uint32_t inner = *member->name ? 0 : leat_btf_strip(s->btf, member->type);

	s->btf->entry[id].parts += 1 + s->btf->entry[inner].parts;
	if (s->btf->entry[id].parts <= LEAT_BTF_PARTS_MAX)
		return true;
	s->why = "has too many members";
	return false;
}

static bool size_struct(struct sizing *s, uint32_t id, unsigned int depth)
{
	const struct btf_type *type = leat_btf_type(s->btf, id);
	const struct btf_member *m = (const struct btf_member *)(const void *)(type + 1);
	struct leat_btf_member member;
	uint32_t i;

	s->btf->entry[id].size = type->size;
	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		if (!size_inner(s, id, m[i].type, depth))
			return false;
		leat_btf_member(s->btf, id, i, &member);
		if (!member_fits(s->btf, type, &member)) {
			s->why = "has a member that does not fit";
			return false;
		}
		if (!count_parts(s, id, &member))
			return false;
	}
	return true;
}

/* Before an object is linked its sections have no size yet. */
static bool size_section(struct sizing *s, uint32_t id, unsigned int depth)
{
	const struct btf_type *type = leat_btf_type(s->btf, id);
	const struct btf_var_secinfo *v = (const struct btf_var_secinfo *)(const void *)(type + 1);
	uint32_t i, size;

	s->btf->entry[id].size = type->size ? type->size : LEAT_BTF_NO_SIZE;
	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		if (!size_inner(s, id, v[i].type, depth))
			return false;
		size = leat_btf_size(s->btf, v[i].type);
		if (!type->size || (v[i].offset <= type->size && size <= type->size - v[i].offset))
			continue;
		s->why = "has a variable that does not fit";
		return false;
	}
	return true;
}

static bool size_same(struct sizing *s, uint32_t id, unsigned int depth)
{
	const struct btf_type *type = leat_btf_type(s->btf, id);

	if (!size_inner(s, id, type->type, depth))
		return false;
	s->btf->entry[id].size = s->btf->entry[type->type].size;
	return true;
}

static bool size_plain(struct sizing *s, uint32_t id, unsigned int depth)
{
	(void)depth;
	s->btf->entry[id].size = leat_btf_type(s->btf, id)->size;
	return true;
}

static bool size_pointer(struct sizing *s, uint32_t id, unsigned int depth)
{
	(void)depth;
	s->btf->entry[id].size = sizeof(uint64_t);
	return true;
}

static bool size_none(struct sizing *s, uint32_t id, unsigned int depth)
{
	(void)depth;
	s->btf->entry[id].size = LEAT_BTF_NO_SIZE;
	return true;
}

typedef bool size_fn(struct sizing *s, uint32_t id, unsigned int depth);

static size_fn *const sizes[N_KINDS] = {
	[BTF_KIND_INT] = size_plain,       [BTF_KIND_PTR] = size_pointer,
	[BTF_KIND_ARRAY] = size_array,     [BTF_KIND_STRUCT] = size_struct,
	[BTF_KIND_UNION] = size_struct,    [BTF_KIND_ENUM] = size_plain,
	[BTF_KIND_FWD] = size_none,        [BTF_KIND_TYPEDEF] = size_same,
	[BTF_KIND_VOLATILE] = size_same,   [BTF_KIND_CONST] = size_same,
	[BTF_KIND_RESTRICT] = size_same,   [BTF_KIND_FUNC] = size_none,
	[BTF_KIND_FUNC_PROTO] = size_none, [BTF_KIND_VAR] = size_same,
	[BTF_KIND_DATASEC] = size_section, [BTF_KIND_FLOAT] = size_plain,
	[BTF_KIND_DECL_TAG] = size_none,   [BTF_KIND_TYPE_TAG] = size_same,
	[BTF_KIND_ENUM64] = size_plain,
};

/* Types that hold others recurse, at most LEAT_BTF_DEPTH_MAX deep; each type is sized once. */
static bool size_type(struct sizing *s, uint32_t id, unsigned int depth)
{
	struct leat_btf_entry *e = &s->btf->entry[id];

	if (e->state == LEAT_BTF_DONE)
		return true;
	if (e->state == LEAT_BTF_OPEN || depth > LEAT_BTF_DEPTH_MAX) {
		s->why = e->state == LEAT_BTF_OPEN ? "holds itself" : "holds too many types within types";
		return false;
	}
	e->state = LEAT_BTF_OPEN;
	if (!sizes[leat_btf_kind(s->btf, id)](s, id, depth))
		return false;
	e->state = LEAT_BTF_DONE;
	return true;
}

static int size_types(struct leat_btf *btf, struct leat_diag *diag)
{
	struct sizing s = { .btf = btf };
	uint32_t id;

	btf->entry[0].state = LEAT_BTF_DONE;
	btf->entry[0].size = LEAT_BTF_NO_SIZE;
	for (id = 1; id < btf->n; id++) {
		if (size_type(&s, id, 0))
			continue;
		leat_diag_add(diag, "BTF type %u %s", id, s.why);
		return -EINVAL;
	}
	return 0;
}

/* ---- the whole ---- */

/* Finds the two parts behind the header. */
static bool find_parts(struct leat_btf *btf, size_t len)
{
	struct btf_header head;
	uint32_t room;

	if (len < sizeof(head) || len > LEAT_BTF_BYTES_MAX)
		return false;
	memcpy(&head, btf->bytes, sizeof(head));
	if (head.magic != BTF_MAGIC || head.version != BTF_VERSION || head.flags)
		return false;
	if (head.hdr_len < sizeof(head) || head.hdr_len > len || head.hdr_len % 4 || head.type_off % 4)
		return false;
	room = (uint32_t)len - head.hdr_len;
	if (head.type_off > room || head.type_len > room - head.type_off || head.str_off > room || !head.str_len ||
	    head.str_len > room - head.str_off)
		return false;
	btf->types = btf->bytes + head.hdr_len + head.type_off;
	btf->types_len = head.type_len;
	btf->strings = (const char *)btf->bytes + head.hdr_len + head.str_off;
	btf->strings_len = head.str_len;
	return !btf->strings[0] && !btf->strings[head.str_len - 1];
}

static int read_all(struct leat_btf *btf, size_t len, struct leat_diag *diag)
{
	int err;

	if (!find_parts(btf, len)) {
		leat_diag_add(diag, "the BTF header is wrong, or of another machine");
		return -EINVAL;
	}
	err = walk_types(btf, diag);
	if (err)
		return err;
	btf->entry = leat_heap_zalloc(btf->n * sizeof(*btf->entry));
	if (!btf->entry)
		return -ENOMEM;
	err = walk_types(btf, diag);
	if (!err)
		err = check_types(btf, diag);
	return err ? err : size_types(btf, diag);
}

int leat_btf_create(const void *bytes, size_t len, struct leat_diag *diag, struct leat_btf **out)
{
	struct leat_btf *btf = leat_heap_zalloc(sizeof(*btf));
	int err = -ENOMEM;

	if (!btf)
		return -ENOMEM;
	btf->bytes = leat_heap_zalloc(len);
	if (!btf->bytes)
		goto destroy_btf;
	if (len)
		memcpy(btf->bytes, bytes, len);
	err = read_all(btf, len, diag);
	if (err)
		goto destroy_btf;
	*out = btf;
	return 0;

destroy_btf:
	leat_btf_destroy(btf);
	return err;
}

void leat_btf_destroy(struct leat_btf *btf)
{
	if (!btf)
		return;
	leat_heap_free(btf->entry);
	leat_heap_free(btf->bytes);
	leat_heap_free(btf);
}
