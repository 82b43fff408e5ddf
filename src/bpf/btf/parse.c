/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse.c: text to bytes by a type: the way back of text.c, and what people write beside it: numbers as "0x..",
 * names of enum values, addresses, bytes in hexadecimal. Control thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "bpf/btf/bits.h"
#include "bpf/btf/json.h"

/* One reading. */
struct parse {
	const struct leat_btf *btf;
	struct leat_diag *diag;
	char path[128]; /* of the member that is being read, for people */
};

/* An integer as written. */
struct written {
	bool negative, hex;
	uint64_t size; /* without its sign */
};

static int wrong(struct parse *p, const char *message)
{
	leat_diag_add(p->diag, "%s%s%s", p->path, *p->path ? ": " : "", message);
	return -EINVAL;
}

static int wrong_text(struct parse *p, const char *text, const char *what)
{
	char message[160];

	snprintf(message, sizeof(message), "'%.60s' is not %s", text, what);
	return wrong(p, message);
}

/* Puts a step on the path; returns its length before, for path_back(). */
static size_t path_on(struct parse *p, const char *name, uint32_t idx)
{
	size_t len = strlen(p->path);

	if (name)
		snprintf(p->path + len, sizeof(p->path) - len, "%s%s", len ? "." : "", name);
	else
		snprintf(p->path + len, sizeof(p->path) - len, "[%" PRIu32 "]", idx);
	return len;
}

/* ---- words ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 255;
}

static bool read_integer(const char *text, struct written *number)
{
	uint64_t base;
	int digit;

	number->negative = *text == '-';
	text += number->negative;
	number->hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	text += number->hex ? 2 : 0;
	base = number->hex ? 16 : 10;
	number->size = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		digit = digit_of(*text);
		if (digit >= (int)base || __builtin_mul_overflow(number->size, base, &number->size) ||
		    __builtin_add_overflow(number->size, (uint64_t)digit, &number->size))
			return false;
	}
	return true;
}

/* "0x" and digits to the bytes of a little-endian number. */
static bool read_hex(const char *text, uint8_t *bytes, uint32_t size)
{
	size_t len = strlen(text), i;

	if (len < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X') || len - 2 > (size_t)size * 2 ||
	    strspn(text + 2, "0123456789abcdefABCDEF") != len - 2)
		return false;
	memset(bytes, 0, size);
	for (i = 0; i < len - 2; i++)
		bytes[i / 2] = (uint8_t)(bytes[i / 2] | digit_of(text[len - 1 - i]) << (i % 2 ? 4 : 0));
	return true;
}

/* "0a:0b": exactly @size bytes, at least two. */
static bool read_bytes(const char *text, uint8_t *bytes, uint32_t size)
{
	uint32_t i;

	if (size < 2 || strlen(text) != (size_t)size * 3 - 1)
		return false;
	for (i = 0; i < size; i++)
		if (digit_of(text[3 * i]) > 15 || digit_of(text[3 * i + 1]) > 15 ||
		    text[3 * i + 2] != (i + 1 < size ? ':' : '\0'))
			return false;
	for (i = 0; i < size; i++)
		bytes[i] = (uint8_t)(digit_of(text[3 * i]) << 4 | digit_of(text[3 * i + 1]));
	return true;
}

/* Text that says all bytes at once: hexadecimal (a MAC address is that, too), an IPv4 or IPv6 address. */
static bool read_whole(const char *text, uint8_t *bytes, uint32_t size)
{
	struct in6_addr in6;
	struct in_addr in;

	if (read_bytes(text, bytes, size))
		return true;
	if (size == sizeof(in) && inet_pton(AF_INET, text, &in) == 1) {
		memcpy(bytes, &in, sizeof(in));
		return true;
	}
	if (size == sizeof(in6) && inet_pton(AF_INET6, text, &in6) == 1) {
		memcpy(bytes, &in6, sizeof(in6));
		return true;
	}
	return false;
}

/* ---- numbers ---- */

static bool in_range(const struct written *w, bool is_signed, uint32_t bits)
{
	uint64_t most = ~UINT64_C(0) >> (64 - bits);

	if (w->negative)
		return !w->size || (is_signed && w->size <= most / 2 + 1);
	return w->size <= (is_signed && !w->hex ? most / 2 : most);
}

static int store_integer(struct parse *p, const struct leat_btf_place *place, const struct leat_btf_number *number,
			 const struct written *w)
{
	uint32_t bits = place->bits ? place->bits : number->bits;
	/* not every compiler says which enums are signed */
	bool is_signed = number->is_signed ||
			 (w->negative && leat_btf_n_enums(p->btf, leat_btf_strip(p->btf, place->type)));
	char message[128];

	if (bits > 64) { /* all of it, sign included */
		memset(place->bytes, w->negative && w->size ? 0xff : 0, bits / 8);
		bits = 64;
	} else if (!in_range(w, is_signed, bits)) {
		snprintf(message, sizeof(message), "%s%" PRIu64 " does not fit into %s%" PRIu32 " bits",
			 w->negative ? "-" : "", w->size, is_signed ? "" : "unsigned ", bits);
		return wrong(p, message);
	}
	leat_bits_write(place->bytes, place->bits ? place->bit_off : 0, bits, w->negative ? 0 - w->size : w->size);
	return 0;
}

/* The value of an enum by its name. */
static int store_enum(struct parse *p, const struct leat_btf_place *place, const struct leat_btf_number *number,
		      const char *text)
{
	uint32_t type = leat_btf_strip(p->btf, place->type), i, n = leat_btf_n_enums(p->btf, type);
	struct leat_suggest suggest = { .word = text };
	uint32_t bits = place->bits ? place->bits : number->bits;
	char message[160];
	const char *name;
	uint64_t value;

	for (i = 0; i < n; i++) {
		name = leat_btf_enum(p->btf, type, i, &value);
		if (!strcmp(name, text)) {
			leat_bits_write(place->bytes, place->bits ? place->bit_off : 0, bits, value);
			return 0;
		}
		leat_suggest_try(&suggest, name);
	}
	snprintf(message, sizeof(message), "'%.40s' is not a number%s%s%.40s%s", text,
		 n ? " or a name of the enum" : "", suggest.best ? " (did you mean '" : "",
		 suggest.best ? suggest.best : "", suggest.best ? "'?)" : "");
	return wrong(p, message);
}

static int parse_number_text(struct parse *p, const struct leat_btf_place *place,
			     const struct leat_btf_number *number, const char *text)
{
	uint32_t size = leat_btf_size(p->btf, place->type);
	struct written w;

	if (read_integer(text, &w))
		return store_integer(p, place, number, &w);
	if (!place->bits && (read_whole(text, place->bytes, size) || (size > 8 && read_hex(text, place->bytes, size))))
		return 0;
	if (number->is_char && !place->bits && text[0] && !text[1]) {
		*place->bytes = (uint8_t)*text;
		return 0;
	}
	return store_enum(p, place, number, text);
}

static struct written written_integer(json_int_t value)
{
	struct written w = { .negative = value < 0, .size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value };

	return w;
}

static int parse_number(struct parse *p, const struct leat_btf_place *place, const struct leat_btf_number *number,
			const json_t *json)
{
	struct written w;

	if (json_is_string(json))
		return parse_number_text(p, place, number, json_string_value(json));
	if (json_is_boolean(json) && number->is_bool)
		w = written_integer(json_is_true(json));
	else if (json_is_integer(json))
		w = written_integer(json_integer_value(json));
	else
		return wrong(p, number->is_bool ? "must be true or false" : "must be a whole number");
	return store_integer(p, place, number, &w);
}

static int parse_float(struct parse *p, uint8_t *bytes, uint32_t size, const json_t *json)
{
	double value = json_number_value(json);
	float small = (float)value;

	if (json_is_string(json) && read_hex(json_string_value(json), bytes, size))
		return 0;
	if (!json_is_number(json) || (size != sizeof(small) && size != sizeof(value)))
		return wrong(p, "must be a number");
	if (size == sizeof(small))
		memcpy(bytes, &small, sizeof(small));
	else
		memcpy(bytes, &value, sizeof(value));
	return 0;
}

/* ---- what holds others ---- */

static int parse_value(struct parse *p, const struct leat_btf_place *place, const json_t *json);

static int parse_list(struct parse *p, const struct leat_btf_place *place, const struct btf_array *array,
		      const json_t *json)
{
	uint32_t elem = leat_btf_size(p->btf, array->type), i, n = (uint32_t)json_array_size(json);
	struct leat_btf_place one = { .type = array->type };
	char message[64];
	size_t len;
	int err;

	if (json_array_size(json) > array->nelems) {
		snprintf(message, sizeof(message), "has %" PRIu32 " elements, not %zu", array->nelems,
			 json_array_size(json));
		return wrong(p, message);
	}
	for (i = 0; i < n; i++) {
		one.bytes = place->bytes + (size_t)i * elem;
		len = path_on(p, NULL, i);
		err = parse_value(p, &one, json_array_get(json, i));
		if (err)
			return err;
		p->path[len] = '\0';
	}
	return 0;
}

static int parse_array(struct parse *p, const struct leat_btf_place *place, uint32_t id, const json_t *json)
{
	const struct btf_array *array = leat_btf_array(p->btf, id);
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);
	struct leat_btf_number number;

	if (json_is_array(json))
		return parse_list(p, place, array, json);
	if (!text)
		return wrong(p, "must be a list");
	if (!leat_btf_number(p->btf, array->type, &number) || !number.is_char)
		return wrong_text(p, text, "a list, an address or bytes of this size");
	if (len > array->nelems)
		return wrong_text(p, text, "short enough");
	memset(place->bytes, 0, array->nelems);
	memcpy(place->bytes, text, len);
	return 0;
}

static void suggest_members(const struct leat_btf *btf, uint32_t id, struct leat_suggest *suggest)
{
	uint32_t i, n = leat_btf_n_members(btf, id);
	struct leat_btf_member member;

	for (i = 0; i < n; i++) {
		leat_btf_member(btf, id, i, &member);
		if (leat_btf_is_unnamed(btf, &member))
			suggest_members(btf, leat_btf_strip(btf, member.type), suggest);
		else
			leat_suggest_try(suggest, member.name);
	}
}

static int no_member(struct parse *p, uint32_t id, const char *name)
{
	struct leat_suggest suggest = { .word = name };
	char message[160];

	suggest_members(p->btf, id, &suggest);
	snprintf(message, sizeof(message), "no member '%.40s'%s%.40s%s", name, suggest.best ? " (did you mean '" : "",
		 suggest.best ? suggest.best : "", suggest.best ? "'?)" : "");
	return wrong(p, message);
}

static int parse_object(struct parse *p, const struct leat_btf_place *place, uint32_t id, const json_t *json)
{
	struct leat_btf_member member;
	struct leat_btf_place one;
	const json_t *value;
	const char *name;
	size_t len;
	int err;

	json_object_foreach((json_t *)(uintptr_t)json, name, value) {
		if (leat_btf_find_member(p->btf, id, name, &member))
			return no_member(p, id, name);
		leat_btf_place_member(place->bytes, &member, &one);
		len = path_on(p, name, 0);
		err = parse_value(p, &one, value);
		if (err)
			return err;
		p->path[len] = '\0';
	}
	return 0;
}

/* A struct of one member may be written as the member alone. */
static int parse_record(struct parse *p, const struct leat_btf_place *place, uint32_t id, const json_t *json)
{
	struct leat_btf_member member;
	struct leat_btf_place one;

	if (json_is_object(json))
		return parse_object(p, place, id, json);
	if (leat_btf_n_members(p->btf, id) != 1)
		return wrong(p, "must be an object ({\"member\": value, ...})");
	leat_btf_member(p->btf, id, 0, &member);
	leat_btf_place_member(place->bytes, &member, &one);
	return parse_value(p, &one, json);
}

static int parse_pointer(struct parse *p, const struct leat_btf_place *place, const json_t *json)
{
	if (json_is_string(json) && read_hex(json_string_value(json), place->bytes, sizeof(uint64_t)))
		return 0;
	return wrong(p, "is a pointer: must be a string like \"0x10\"");
}

static bool is_char_array(const struct leat_btf *btf, uint32_t id)
{
	struct leat_btf_number number;

	return leat_btf_kind(btf, id) == BTF_KIND_ARRAY &&
	       leat_btf_number(btf, leat_btf_array(btf, id)->type, &number) && number.is_char;
}

/* Recursion ends with the nesting of types. */
static int parse_value(struct parse *p, const struct leat_btf_place *place, const json_t *json)
{
	uint32_t id = leat_btf_strip(p->btf, place->type), kind = leat_btf_kind(p->btf, id);
	uint32_t size = leat_btf_size(p->btf, id);
	const char *text = json_string_value(json);
	struct leat_btf_number number;

	if (leat_btf_number(p->btf, id, &number))
		return parse_number(p, place, &number, json);
	if (text && size && !is_char_array(p->btf, id) && read_whole(text, place->bytes, size))
		return 0;
	if (kind == BTF_KIND_ARRAY)
		return parse_array(p, place, id, json);
	if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_DATASEC)
		return parse_record(p, place, id, json);
	if (kind == BTF_KIND_FLOAT)
		return parse_float(p, place->bytes, size, json);
	return kind == BTF_KIND_PTR ? parse_pointer(p, place, json) : wrong(p, "has a type without values");
}

/* ---- without a type ---- */

static int parse_raw_number(struct parse *p, uint8_t *bytes, uint32_t size, const struct written *w)
{
	char message[96];

	if (size != 1 && size != 2 && size != 4 && size != 8)
		return wrong(p, "must be bytes in hexadecimal (\"0a:0b:..\"), as its type is not known");
	if (!in_range(w, w->negative, size * 8)) {
		snprintf(message, sizeof(message), "does not fit into %" PRIu32 " bytes", size);
		return wrong(p, message);
	}
	leat_bits_write(bytes, 0, size * 8, w->negative ? 0 - w->size : w->size);
	return 0;
}

static int parse_raw(struct parse *p, uint8_t *bytes, uint32_t size, const json_t *json)
{
	const char *text = json_string_value(json);
	char message[96];
	struct written w;

	if (json_is_integer(json)) {
		w = written_integer(json_integer_value(json));
		return parse_raw_number(p, bytes, size, &w);
	}
	if (text && (read_whole(text, bytes, size) || (!size && !*text)))
		return 0;
	if (text && read_integer(text, &w))
		return parse_raw_number(p, bytes, size, &w);
	snprintf(message, sizeof(message), "must be %" PRIu32 " bytes in hexadecimal (\"0a:0b:..\")", size);
	return wrong(p, message);
}

/* ---- the whole ---- */

/* JSON, or a bare word as if it stood between quotation marks. */
static int load_text(const char *text, struct leat_diag *diag, json_t **json)
{
	bool must_be = *text == '{' || *text == '[' || *text == '"';
	int err = leat_btf_json_load(text, must_be ? diag : NULL, json);

	if (err != -EINVAL || must_be)
		return err;
	*json = json_string_nocheck(text);
	return *json ? 0 : -ENOMEM;
}

int leat_btf_parse_place(const struct leat_btf *btf, const struct leat_btf_place *place, const char *text,
			 struct leat_diag *diag)
{
	struct parse p = { .btf = btf, .diag = diag };
	json_t *json;
	int err = load_text(text, diag, &json);

	if (err)
		return err;
	err = parse_value(&p, place, json);
	json_decref(json);
	return err;
}

int leat_btf_parse(const struct leat_btf *btf, uint32_t type, const char *text, void *bytes, uint32_t size,
		   struct leat_diag *diag)
{
	struct leat_btf_place place = { .bytes = bytes, .type = type };
	struct parse p = { .diag = diag };
	json_t *json;
	int err;

	if (btf && size && leat_btf_size(btf, type) == size)
		return leat_btf_parse_place(btf, &place, text, diag);
	err = load_text(text, diag, &json);
	if (err)
		return err;
	err = parse_raw(&p, bytes, size, json);
	json_decref(json);
	return err;
}
