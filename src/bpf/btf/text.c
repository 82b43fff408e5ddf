/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.c: values as JSON text by their types. The text of the same bytes is always the same. Any thread.
 *
 * Types come from an object that anybody may have written, and a small value can have a huge text (unions of unions).
 * Every step writes at least one character, and writing stops at LEAT_BTF_TEXT_MAX, so time is bounded, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/btf/bits.h"

/* Text on its way. */
struct text {
	const struct leat_btf *btf;
	char *buf;
	size_t size;
	uint64_t len; /* wanted so far */
};

static bool is_full(const struct text *t)
{
	return t->len > LEAT_BTF_TEXT_MAX;
}

static void put_char(struct text *t, char c)
{
	if (t->len + 1 < t->size)
		t->buf[t->len] = c;
	t->len++;
}

static void put_text(struct text *t, const char *text)
{
	for (; *text && !is_full(t); text++)
		put_char(t, *text);
}

static void put_f(struct text *t, const char *fmt, ...) LEAT_PRINTF(2, 3);

static void put_f(struct text *t, const char *fmt, ...)
{
	char word[64];
	va_list args;

	va_start(args, fmt);
	vsnprintf(word, sizeof(word), fmt, args);
	va_end(args);
	put_text(t, word);
}

/* Names in BTF may be any bytes: what JSON or a terminal does not bear becomes '?'. */
static void put_quoted(struct text *t, const char *text, size_t len)
{
	size_t i;

	put_char(t, '"');
	for (i = 0; i < len && !is_full(t); i++) {
		if (text[i] == '"' || text[i] == '\\')
			put_char(t, '\\');
		put_char(t, text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i]);
	}
	put_char(t, '"');
}

/* Bytes as they lie: "0a:0b"; a single one as "0x0a", which cannot be taken for a decimal number. */
static void put_bytes(struct text *t, const uint8_t *bytes, uint32_t size)
{
	uint32_t i;

	put_char(t, '"');
	if (size == 1)
		put_text(t, "0x");
	for (i = 0; i < size && !is_full(t); i++)
		put_f(t, "%s%02x", i ? ":" : "", bytes[i]);
	put_char(t, '"');
}

/* A number too long or too odd for JSON: "0x..", all its digits. */
static void put_hex(struct text *t, const uint8_t *bytes, uint32_t size)
{
	put_text(t, "\"0x");
	while (size--)
		put_f(t, "%02x", bytes[size]);
	put_char(t, '"');
}

static bool put_enum(struct text *t, uint32_t type, uint64_t value)
{
	uint32_t i, n = leat_btf_n_enums(t->btf, type);
	const char *name;
	uint64_t known;

	for (i = 0; i < n; i++) {
		name = leat_btf_enum(t->btf, type, i, &known);
		if (known != value)
			continue;
		put_quoted(t, name, strlen(name));
		return true;
	}
	return false;
}

static void put_number(struct text *t, const struct leat_btf_place *place, const struct leat_btf_number *number)
{
	uint32_t bits = place->bits ? place->bits : number->bits;
	uint64_t value;

	if (bits > 64) {
		put_hex(t, place->bytes, leat_btf_size(t->btf, place->type));
		return;
	}
	value = leat_bits_read(place->bytes, place->bits ? place->bit_off : 0, bits);
	if (number->is_signed)
		value = leat_bits_extend(value, bits);
	if (put_enum(t, leat_btf_strip(t->btf, place->type), value))
		return;
	if (number->is_bool && value <= 1)
		put_text(t, value ? "true" : "false");
	else if (number->is_signed)
		put_f(t, "%" PRId64, (int64_t)value);
	else
		put_f(t, "%" PRIu64, value);
}

/* As few digits as give the same number again. */
static void print_shortest(char *word, size_t size, double value, bool is_small)
{
	int digits = 6, most = is_small ? 9 : 17;

	do
		snprintf(word, size, "%.*g", digits, value);
	while (digits++ < most && (is_small ? (double)strtof(word, NULL) : strtod(word, NULL)) != value);
}

/* A real number in JSON; hexadecimal for what JSON has no word for. */
static void put_float(struct text *t, const uint8_t *bytes, uint32_t size)
{
	char word[64];
	double value;
	float small;
	char *comma;

	if (size == sizeof(small)) {
		memcpy(&small, bytes, sizeof(small));
		value = (double)small;
	} else {
		memcpy(&value, bytes, size == sizeof(value) ? sizeof(value) : 0);
	}
	if ((size != sizeof(small) && size != sizeof(value)) || !__builtin_isfinite(value)) {
		put_hex(t, bytes, size);
		return;
	}
	print_shortest(word, sizeof(word), value, size == sizeof(small));
	while ((comma = strchr(word, ','))) /* somebody's locale */
		*comma = '.';
	put_text(t, word);
	if (!strpbrk(word, ".e"))
		put_text(t, ".0"); /* keeps the sign of -0.0 */
}

/* Characters up to the end or to zeros that go on to the end. Returns how many, or -1 when they cannot be a string. */
static int64_t string_len(const uint8_t *bytes, uint32_t n)
{
	uint32_t len = 0, i;

	while (len < n && bytes[len] >= 0x20 && bytes[len] <= 0x7e)
		len++;
	for (i = len; i < n; i++)
		if (bytes[i])
			return -1;
	return len;
}

static void put_value(struct text *t, const struct leat_btf_place *place);

static void put_array(struct text *t, const struct leat_btf_place *place, uint32_t id)
{
	const struct btf_array *array = leat_btf_array(t->btf, id);
	uint32_t elem = leat_btf_size(t->btf, array->type), i;
	struct leat_btf_place one = { .type = array->type };
	struct leat_btf_number number;
	int64_t len;

	if (array->nelems && leat_btf_number(t->btf, array->type, &number) && number.is_char) {
		len = string_len(place->bytes, array->nelems);
		if (len >= 0) {
			put_quoted(t, (const char *)place->bytes, (size_t)len);
			return;
		}
	}
	put_char(t, '[');
	for (i = 0; i < array->nelems && !is_full(t); i++) {
		put_text(t, i ? ", " : "");
		one.bytes = place->bytes + (size_t)i * elem;
		put_value(t, &one);
	}
	put_char(t, ']');
}

/* Members of what has no name stand beside those of the whole, as in C. */
static void put_members(struct text *t, const struct leat_btf_place *place, uint32_t id, const char *separator)
{
	uint32_t i, n = leat_btf_n_members(t->btf, id), inner;
	struct leat_btf_member member;
	struct leat_btf_place one;

	for (i = 0; i < n && !is_full(t); i++) {
		leat_btf_member(t->btf, id, i, &member);
		leat_btf_place_member(place->bytes, &member, &one);
		inner = leat_btf_strip(t->btf, member.type);
		put_text(t, i ? ", " : separator);
		if (leat_btf_is_unnamed(t->btf, &member)) {
			put_members(t, &one, inner, "");
			continue;
		}
		put_quoted(t, member.name, strlen(member.name));
		put_text(t, ": ");
		put_value(t, &one);
	}
}

static void put_record(struct text *t, const struct leat_btf_place *place, uint32_t id)
{
	put_char(t, '{');
	put_members(t, place, id, "");
	put_char(t, '}');
}

/* Recursion ends with the nesting of types. */
static void put_value(struct text *t, const struct leat_btf_place *place)
{
	uint32_t id = leat_btf_strip(t->btf, place->type), kind = leat_btf_kind(t->btf, id);
	struct leat_btf_number number;

	if (leat_btf_number(t->btf, id, &number))
		put_number(t, place, &number);
	else if (kind == BTF_KIND_ARRAY && leat_btf_size(t->btf, id))
		put_array(t, place, id);
	else if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_DATASEC)
		put_record(t, place, id);
	else if (kind == BTF_KIND_FLOAT)
		put_float(t, place->bytes, leat_btf_size(t->btf, id));
	else if (kind == BTF_KIND_PTR)
		put_hex(t, place->bytes, sizeof(uint64_t));
	else
		put_text(t, kind == BTF_KIND_ARRAY ? "[]" : "null");
}

static int put_end(struct text *t)
{
	if (t->size)
		t->buf[t->len < t->size ? t->len : t->size - 1] = '\0';
	return is_full(t) ? -E2BIG : (int)t->len;
}

int leat_btf_format_place(const struct leat_btf *btf, const struct leat_btf_place *place, char *buf, size_t buf_size)
{
	struct text t = { .btf = btf, .buf = buf, .size = buf_size };

	put_value(&t, place);
	return put_end(&t);
}

int leat_btf_format(const struct leat_btf *btf, uint32_t type, const void *bytes, uint32_t size, char *buf,
		    size_t buf_size)
{
	struct leat_btf_place place = { .bytes = (uint8_t *)(uintptr_t)bytes, .type = type };
	struct text t = { .btf = btf, .buf = buf, .size = buf_size };

	if (btf && size && leat_btf_size(btf, type) == size)
		return leat_btf_format_place(btf, &place, buf, buf_size);
	put_bytes(&t, bytes, size);
	return put_end(&t);
}
