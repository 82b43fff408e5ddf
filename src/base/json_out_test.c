/* SPDX-License-Identifier: BSD-3-Clause */
/* json_out_test.c: what is written is JSON, whatever the texts; jansson reads it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"

/* The whole output for a list with one text. */
static char *write_text(const char *text)
{
	char *out = NULL;
	size_t len;
	struct leat_json_out j = { .out = open_memstream(&out, &len) };

	assert_non_null(j.out);
	leat_json_open_flat(&j, NULL, '[');
	leat_json_string(&j, NULL, text);
	leat_json_close(&j, ']');
	fclose(j.out);
	return out;
}

static void assert_written(const char *text, const char *should)
{
	char *out = write_text(text);

	assert_string_equal(out, should);
	free(out);
}

static void texts_are_escaped(void **state)
{
	(void)state;
	assert_written("", "[\"\"]");
	assert_written("a\"b\\c", "[\"a\\\"b\\\\c\"]");
	assert_written("\n\t\x1b\x7f", "[\"\\u000a\\u0009\\u001b\\u007f\"]");
	assert_written("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "[\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"]");
	assert_written("\xc2\x9b", "[\"\\u00c2\\u009b\"]");             /* a control character */
	assert_written("\xff\xc3", "[\"\\u00ff\\u00c3\"]");             /* no character, and half of one */
	assert_written("\xc0\xaf", "[\"\\u00c0\\u00af\"]");             /* longer than need be */
	assert_written("\xe0\x80\xaf", "[\"\\u00e0\\u0080\\u00af\"]");
	assert_written("\xed\xa0\x80", "[\"\\u00ed\\u00a0\\u0080\"]"); /* a surrogate */
	assert_written("\xf4\x90\x80\x80", "[\"\\u00f4\\u0090\\u0080\\u0080\"]");
}

/* Every text of two bytes, each followed by bytes that could go on. */
static void any_bytes_are_json(void **state)
{
	char text[5] = { 0, 0, '\x80', '\xbf', 0 }, *out;
	unsigned int i;
	json_t *json;

	(void)state;
	for (i = 0; i < 65536; i++) {
		text[0] = (char)(i >> 8);
		text[1] = (char)i;
		out = write_text(text);
		json = json_loads(out, 0, NULL);
		if (!json)
			fail_msg("%s", out);
		json_decref(json);
		free(out);
	}
}

static void members_stand_in_order(void **state)
{
	char *out = NULL;
	size_t len;
	struct leat_json_out j = { .out = open_memstream(&out, &len) };

	(void)state;
	leat_json_open(&j, NULL, '{');
	leat_json_number(&j, "n", UINT64_MAX);
	leat_json_open_flat(&j, "list", '[');
	leat_json_open(&j, NULL, '{');
	leat_json_raw(&j, "raw", "true");
	leat_json_string(&j, "s", "x");
	leat_json_close(&j, '}');
	leat_json_close(&j, ']');
	leat_json_open(&j, "none", '{');
	leat_json_close(&j, '}');
	leat_json_close(&j, '}');
	fclose(j.out);
	assert_string_equal(out, "{\n  \"n\": 18446744073709551615,\n  \"list\": [{\"raw\": true, \"s\": \"x\"}],\n"
				 "  \"none\": {}\n}");
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(any_bytes_are_json),
		cmocka_unit_test(members_stand_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
