/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btf_test.c: BTF that nobody should have made is refused, whatever is wrong with it; values come back from their text
 * as they were. clang_test.c does the same with what clang makes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "bpf/btf/btf.h"
#include "bpf/btf/test_common.h"

/* A type, text, and the bytes that it should become; NULL: refused. */
struct sample {
	uint32_t type;
	const char *text, *bytes, *back; /* back: how it is written; NULL: as text */
};

static void one_sample(const struct leat_btf *btf, const struct sample *s)
{
	uint32_t size = leat_btf_size(btf, s->type);
	struct leat_diag *diag = leat_diag_create();
	uint8_t bytes[64] = { 0 };
	char text[512];
	int err = leat_btf_parse(btf, s->type, s->text, bytes, size, diag);

	if (err != (s->bytes ? 0 : -EINVAL))
		print_error("%s: %d\n", s->text, err);
	assert_int_equal(err, s->bytes ? 0 : -EINVAL);
	assert_int_equal(leat_diag_count(diag), s->bytes ? 0 : 1);
	if (s->bytes) {
		assert_memory_equal(bytes, s->bytes, size);
		leat_btf_format(btf, s->type, bytes, size, text, sizeof(text));
		assert_string_equal(text, s->back ? s->back : s->text);
	} else if (s->back) {
		assert_string_equal(leat_diag_get(diag, 0)->message, s->back);
	}
	leat_diag_destroy(diag);
}

static void words_and_numbers(void **state)
{
	static struct build b;
	struct leat_btf *btf;
	uint32_t u8, s8, u32, s32, u64, big, f32, f64, chr, text, list, pair, one, empty, enm, half;
	unsigned int i;

	(void)state;
	u8 = build_int(&b, "u8", 1, 0);
	s8 = build_int(&b, "s8", 1, BTF_INT_SIGNED);
	u32 = build_int(&b, "u32", 4, 0);
	s32 = build_int(&b, "s32", 4, BTF_INT_SIGNED);
	u64 = build_int(&b, "u64", 8, 0);
	big = build_int(&b, "u128", 16, 0);
	f32 = build_type(&b, "float", BTF_KIND_FLOAT, 0, 0, 4);
	f64 = build_type(&b, "double", BTF_KIND_FLOAT, 0, 0, 8);
	half = build_type(&b, "half", BTF_KIND_FLOAT, 0, 0, 2);
	chr = build_int(&b, "char", 1, BTF_INT_SIGNED);
	text = build_array(&b, chr, 4);
	list = build_array(&b, u8, 4);
	pair = build_type(&b, "pair", BTF_KIND_STRUCT, 2, 0, 8);
	build_member(&b, "left", u32, 0);
	build_member(&b, "right", u32, 32);
	one = build_type(&b, "one", BTF_KIND_STRUCT, 1, 0, 4);
	build_member(&b, "only", u32, 0);
	empty = build_type(&b, "empty", BTF_KIND_STRUCT, 0, 0, 4);
	enm = build_type(&b, "enm", BTF_KIND_ENUM, 2, 0, 4);
	build_word(&b, build_string(&b, "SUNDAY"));
	build_word(&b, 0);
	build_word(&b, build_string(&b, "MONDAY"));
	build_word(&b, 1);
	build_end(&b);
	assert_int_equal(leat_btf_create(b.bytes, b.len, NULL, &btf), 0);
	const struct sample samples[] = {
		{ u8, "0", "\0", NULL },
		{ u8, "255", "\xff", NULL },
		{ u8, "0x1F", "\x1f", "31" },
		{ u8, "007", "\x07", "7" },
		{ u8, "256", NULL, "256 does not fit into unsigned 8 bits" },
		{ u8, "-1", NULL, "-1 does not fit into unsigned 8 bits" },
		{ u8, "-0", "\0", "0" },
		{ u8, "1.5", NULL, "must be a whole number" },
		{ u8, "1e1", NULL, NULL },
		{ u8, "", NULL, NULL },
		{ u8, "1 2", NULL, NULL },
		{ u8, "0x", NULL, NULL },
		{ u8, "true", NULL, NULL },
		{ u8, "null", NULL, NULL },
		{ u8, "[1]", NULL, NULL },
		{ u8, "{\"a\": 1}", NULL, NULL },
		{ u8, "99999999999999999999999", NULL, NULL },
		{ u8, "\"unended", NULL, NULL },
		{ u8, "\xff", NULL, "'?' is not a number" },
		{ s8, "-128", "\x80", NULL },
		{ s8, "128", NULL, "128 does not fit into 8 bits" },
		{ s8, "0xff", "\xff", "-1" },
		{ s8, "-129", NULL, NULL },
		{ u32, "10.0.0.1", "\x0a\0\0\x01", "16777226" },
		{ u32, "0a:00:00:01", "\x0a\0\0\x01", "16777226" },
		{ u32, "10.0.0", NULL, NULL },
		{ u32, "::1", NULL, NULL },
		{ s32, "-1", "\xff\xff\xff\xff", NULL },
		{ u64, "18446744073709551615", "\xff\xff\xff\xff\xff\xff\xff\xff", NULL },
		{ u64, "18446744073709551616", NULL, NULL },
		{ u64, "-9223372036854775808", NULL, NULL },
		{ big, "5", "\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "\"0x00000000000000000000000000000005\"" },
		{ big, "\"0x00010000000000000000000000000005\"", "\5\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0", NULL },
		{ big, "-1", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		  "\"0xffffffffffffffffffffffffffffffff\"" },
		{ big, "::1", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", "\"0x01000000000000000000000000000000\"" },
		{ f32, "0.5", "\0\0\0\x3f", NULL },
		{ f32, "1", "\0\0\x80\x3f", "1.0" },
		{ f32, "\"0x7f800000\"", "\0\0\x80\x7f", NULL },
		{ f32, "high", NULL, NULL },
		{ f64, "-0.0", "\0\0\0\0\0\0\0\x80", NULL },
		{ f64, "true", NULL, NULL },
		{ half, "\"0x3c00\"", "\0\x3c", NULL },
		{ half, "1", NULL, NULL },
		{ chr, "A", "A", "65" },
		{ text, "\"ab\"", "ab\0\0", NULL },
		{ text, "abcd", "abcd", "\"abcd\"" },
		{ text, "\"\"", "\0\0\0\0", NULL },
		{ text, "abcde", NULL, "'abcde' is not short enough" },
		{ text, "[97, 0, 98, 0]", "a\0b\0", NULL },
		{ text, "[-1, 0, 0, 0]", "\xff\0\0\0", NULL },
		{ list, "[1, 2, 3, 4]", "\1\2\3\4", NULL },
		{ list, "[1]", "\1\0\0\0", "[1, 0, 0, 0]" },
		{ list, "[1, 2, 3, 4, 5]", NULL, "has 4 elements, not 5" },
		{ list, "[1, 2, 300]", NULL, "[2]: 300 does not fit into unsigned 8 bits" },
		{ list, "1.2.3.4", "\1\2\3\4", "[1, 2, 3, 4]" },
		{ list, "1", NULL, "must be a list" },
		{ list, "abcd", NULL, NULL },
		{ list, "[1, 2", NULL, NULL },
		{ pair, "{\"left\": 1, \"right\": 2}", "\1\0\0\0\2\0\0\0", NULL },
		{ pair, "{\"right\": 2}", "\0\0\0\0\2\0\0\0", "{\"left\": 0, \"right\": 2}" },
		{ pair, "{\"rihgt\": 2}", NULL, "no member 'rihgt' (did you mean 'right'?)" },
		{ pair, "{\"right\": \"x\"}", NULL, "right: 'x' is not a number" },
		{ pair, "{\"right\": 2, \"right\": 3}", NULL, NULL },
		{ pair, "1", NULL, NULL },
		{ pair, "01:00:00:00:02:00:00:00", "\1\0\0\0\2\0\0\0", "{\"left\": 1, \"right\": 2}" },
		{ one, "7", "\7\0\0\0", "{\"only\": 7}" },
		{ one, "10.0.0.1", "\x0a\0\0\1", "{\"only\": 16777226}" },
		{ empty, "{}", "\0\0\0\0", NULL },
		{ enm, "\"MONDAY\"", "\1\0\0\0", NULL },
		{ enm, "MONDAY", "\1\0\0\0", "\"MONDAY\"" },
		{ enm, "7", "\7\0\0\0", NULL },
		{ enm, "MONDY", NULL, "'MONDY' is not a number or a name of the enum (did you mean 'MONDAY'?)" },
	};
	for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		one_sample(btf, &samples[i]);
	leat_btf_destroy(btf);
}

static void bytes_without_types(void **state)
{
	static const struct {
		uint32_t size;
		const char *text, *bytes, *back;
	} samples[] = {
		{ 1, "\"0x0a\"", "\x0a", NULL },
		{ 1, "10", "\x0a", "\"0x0a\"" },
		{ 2, "\"0a:0b\"", "\x0a\x0b", NULL },
		{ 2, "0a:0b", "\x0a\x0b", "\"0a:0b\"" },
		{ 2, "0a:0b:0c", NULL, NULL },
		{ 2, "65536", NULL, NULL },
		{ 2, "-1", "\xff\xff", "\"ff:ff\"" },
		{ 4, "10.0.0.1", "\x0a\0\0\1", "\"0a:00:00:01\"" },
		{ 4, "1", "\1\0\0\0", "\"01:00:00:00\"" },
		{ 3, "1", NULL, NULL },
		{ 3, "\"01:02:03\"", "\1\2\3", NULL },
		{ 3, "01:02:0", NULL, NULL },
		{ 3, "01:02:0g", NULL, NULL },
		{ 3, "01-02-03", NULL, NULL },
		{ 4, "[1, 2, 3, 4]", NULL, NULL },
	};
	uint8_t bytes[16];
	char text[64];
	unsigned int i;
	int err;

	(void)state;
	for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		err = leat_btf_parse(NULL, 0, samples[i].text, bytes, samples[i].size, NULL);
		assert_int_equal(err, samples[i].bytes ? 0 : -EINVAL);
		if (err)
			continue;
		assert_memory_equal(bytes, samples[i].bytes, samples[i].size);
		leat_btf_format(NULL, 0, bytes, samples[i].size, text, sizeof(text));
		assert_string_equal(text, samples[i].back ? samples[i].back : samples[i].text);
	}
}

/* Random bytes of struct inner (it has no padding that is lost) come back as they were. */
static void random_bytes_come_back(void **state)
{
	static struct build b;
	uint8_t bytes[21], again[21];
	uint32_t u8, s16, u64, f64, chr, text, id, i, k, random = 1;
	struct leat_btf *btf;
	char out[512];

	(void)state;
	u8 = build_int(&b, "u8", 1, 0);
	s16 = build_int(&b, "s16", 2, BTF_INT_SIGNED);
	u64 = build_int(&b, "u64", 8, 0);
	f64 = build_type(&b, "double", BTF_KIND_FLOAT, 0, 0, 8);
	chr = build_int(&b, "char", 1, BTF_INT_SIGNED);
	text = build_array(&b, chr, 2);
	id = build_type(&b, "all", BTF_KIND_STRUCT, 7, 1, 21);
	build_member(&b, "a", u8, 3u << 24 | 0);
	build_member(&b, "b", u8, 5u << 24 | 3);
	build_member(&b, "c", s16, 11u << 24 | 8);
	build_member(&b, "d", s16, 5u << 24 | 19);
	build_member(&b, "e", u64, 24);
	build_member(&b, "f", f64, 88);
	build_member(&b, "g", text, 152);
	build_end(&b);
	assert_int_equal(leat_btf_create(b.bytes, b.len, NULL, &btf), 0);
	for (i = 0; i < 20000; i++) {
		for (k = 0; k < sizeof(bytes); k++) {
			random = random * 1664525 + 1013904223;
			bytes[k] = (uint8_t)(random >> 24);
		}
		leat_btf_format(btf, id, bytes, sizeof(bytes), out, sizeof(out));
		memset(again, 0x55, sizeof(again));
		assert_int_equal(leat_btf_parse(btf, id, out, again, sizeof(again), NULL), 0);
		assert_memory_equal(bytes, again, sizeof(bytes));
	}
	leat_btf_destroy(btf);
}

/* ---- hostile bytes ---- */

static void refuse(struct build *b, const char *why)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_btf *btf;

	build_end(b);
	assert_int_equal(leat_btf_create(b->bytes, b->len, diag, &btf), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, why));
	leat_diag_destroy(diag);
	memset(b, 0, sizeof(*b));
}

static void types_that_hold_themselves(void **state)
{
	static struct build b;

	(void)state;
	build_type(&b, "t", BTF_KIND_TYPEDEF, 0, 0, 1);
	refuse(&b, "type 1 holds itself");
	build_type(&b, "a", BTF_KIND_TYPEDEF, 0, 0, 2);
	build_type(&b, "", BTF_KIND_CONST, 0, 0, 1);
	refuse(&b, "holds itself");
	build_array(&b, 1, 1);
	refuse(&b, "holds itself");
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 8);
	build_member(&b, "m", 1, 0);
	refuse(&b, "holds itself");
	/* through a pointer it is a list, and good */
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 8);
	build_member(&b, "next", 2, 0);
	build_type(&b, "", BTF_KIND_PTR, 0, 0, 1);
	build_end(&b);
	assert_true(try_bytes(b.bytes, b.len));
	memset(&b, 0, sizeof(b));
}

static void members_that_do_not_fit(void **state)
{
	static const struct {
		uint32_t size, off;
		int flag;
	} bad[] = {
		{ 4, 8, 0 }, { 3, 0, 0 }, { 8, 1, 0 }, { 8, UINT32_MAX, 0 }, { 8, 64, 0 }, { 4, 33u << 24, 1 },
		{ 4, 8u << 24 | 25, 1 }, { 4, 255u << 24, 1 }, { UINT32_MAX, 0, 0 },
	};
	static struct build b;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		build_int(&b, "int", 4, 0);
		build_type(&b, "s", BTF_KIND_STRUCT, 1, bad[i].flag, bad[i].size);
		build_member(&b, "m", 1, bad[i].off);
		refuse(&b, "BTF type 2");
	}
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 8); /* of type void */
	build_member(&b, "m", 0, 0);
	refuse(&b, "member");
	build_type(&b, "later", BTF_KIND_FWD, 0, 0, 0);
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 8);
	build_member(&b, "m", 1, 0);
	refuse(&b, "member");
	build_int(&b, "int", 4, 0); /* too large to be anywhere */
	build_array(&b, 1, UINT32_MAX);
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 8);
	build_member(&b, "m", 2, 0);
	refuse(&b, "member");
}

static void other_nonsense(void **state)
{
	static struct build b;

	(void)state;
	build_type(&b, "x", 20, 0, 0, 0);
	refuse(&b, "unknown kind");
	build_type(&b, "x", 31, 0, 0, 0);
	refuse(&b, "unknown kind");
	build_type(&b, "x", BTF_KIND_UNKN, 0, 0, 0);
	refuse(&b, "unknown kind");
	build_type(&b, "x", BTF_KIND_STRUCT, 0xffff, 0, 0);
	refuse(&b, "cut off");
	build_type(&b, "x", BTF_KIND_TYPEDEF, 0, 0, 99);
	refuse(&b, "out of bounds");
	build_type(&b, "int", BTF_KIND_INT, 0, 0, 4);
	build_word(&b, 33);
	refuse(&b, "out of bounds");
	build_int(&b, "int", 3, 0);
	refuse(&b, "out of bounds");
	build_int(&b, "int", 0, 0);
	refuse(&b, "out of bounds");
	build_type(&b, "f", BTF_KIND_FUNC, 0, 0, 0);
	refuse(&b, "out of bounds");
	build_int(&b, "int", 4, 0);
	build_type(&b, "sec", BTF_KIND_DATASEC, 1, 0, 4);
	build_member(&b, "", 0, 4);
	refuse(&b, "out of bounds");
	build_int(&b, "int", 4, 0);
	build_var(&b, "v", 1);
	build_type(&b, "sec", BTF_KIND_DATASEC, 1, 0, 4);
	build_word(&b, 2);
	build_word(&b, 1);
	build_word(&b, 4);
	refuse(&b, "does not fit");
	/* found by fuzzing: a section without a size, whose variables lie anywhere, as a member */
	build_int(&b, "int", 4, 0);
	build_var(&b, "v", 1);
	build_type(&b, "sec", BTF_KIND_DATASEC, 1, 0, 0);
	build_member(&b, "", 0, 4);
	b.types[b.n_words - 3] = 2;
	b.types[b.n_words - 2] = 4000;
	build_type(&b, "s", BTF_KIND_STRUCT, 1, 0, 4);
	build_member(&b, "m", 3, 0);
	refuse(&b, "no type");
	build_int(&b, "int", 4, 0);
	build_var(&b, "v", 1);
	build_array(&b, 2, 1);
	refuse(&b, "no type");
}

/* Deep nesting is refused before the stack feels it. */
static void deep_nesting(void **state)
{
	static struct build b;
	unsigned int i, depth;

	(void)state;
	for (depth = LEAT_BTF_DEPTH_MAX - 1; depth < 500; depth += 150) {
		build_int(&b, "int", 4, 0);
		for (i = 1; i <= depth; i++) /* each holds the one before */
			build_array(&b, i, 1);
		build_end(&b);
		assert_int_equal(try_bytes(b.bytes, b.len), depth < LEAT_BTF_DEPTH_MAX);
		memset(&b, 0, sizeof(b));
		for (i = 1; i <= depth; i++) /* each holds the one after */
			build_array(&b, i + 1, 1);
		build_int(&b, "int", 4, 0);
		build_end(&b);
		assert_int_equal(try_bytes(b.bytes, b.len), depth < LEAT_BTF_DEPTH_MAX);
		memset(&b, 0, sizeof(b));
	}
}

/* A few bytes whose text would be longer than any disk: it is bounded, and so is the time. */
static void text_is_bounded(void **state)
{
	static struct build b;
	struct leat_btf *btf;
	uint32_t i, k, id;
	uint8_t value[4] = { 0 };

	(void)state;
	id = build_int(&b, "int", 4, 0);
	for (i = 0; i < 30; i++) {
		id = build_type(&b, "u", BTF_KIND_UNION, 8, 0, 4);
		for (k = 0; k < 8; k++)
			build_member(&b, "m", id - 1, 0);
	}
	build_end(&b);
	assert_int_equal(leat_btf_create(b.bytes, b.len, NULL, &btf), 0);
	assert_int_equal(leat_btf_format(btf, id, value, 4, NULL, 0), -E2BIG);
	leat_btf_destroy(btf);
	memset(&b, 0, sizeof(b));
	/* without names they would count as members of one: refused */
	id = build_int(&b, "int", 4, 0);
	for (i = 0; i < 30; i++) {
		id = build_type(&b, "u", BTF_KIND_UNION, 8, 0, 4);
		for (k = 0; k < 8; k++)
			build_member(&b, "", id - 1, 0);
	}
	refuse(&b, "too many members");
}

static void headers_of_others(void **state)
{
	static struct build b;
	uint8_t bytes[256];
	unsigned int i;
	static const struct {
		unsigned int off, len;
		uint32_t value;
	} changes[] = {
		{ 0, 2, 0x9feb },      { 2, 1, 2 },  { 3, 1, 1 },           { 4, 4, 20 },          { 4, 4, 26 },
		{ 4, 4, UINT32_MAX },  { 8, 4, 2 },  { 8, 4, UINT32_MAX },  { 12, 4, UINT32_MAX }, { 12, 4, 15 },
		{ 16, 4, UINT32_MAX }, { 20, 4, 0 }, { 20, 4, UINT32_MAX }, { 20, 4, 3 },
	};

	(void)state;
	build_int(&b, "int", 4, 0);
	build_end(&b);
	assert_true(try_bytes(b.bytes, b.len));
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		memcpy(bytes, b.bytes, b.len);
		memcpy(bytes + changes[i].off, &changes[i].value, changes[i].len);
		assert_false(try_bytes(bytes, b.len));
	}
	memset(&b, 0, sizeof(b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_numbers),
		cmocka_unit_test(bytes_without_types),
		cmocka_unit_test(random_bytes_come_back),
		cmocka_unit_test(types_that_hold_themselves),
		cmocka_unit_test(members_that_do_not_fit),
		cmocka_unit_test(other_nonsense),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(text_is_bounded),
		cmocka_unit_test(headers_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
