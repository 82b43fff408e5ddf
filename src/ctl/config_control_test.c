/* SPDX-License-Identifier: BSD-3-Clause */
/* config_control_test.c: the section "control": what it says, and every mistake with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/test_config.h"

#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
#define PORTS "ports: { a: { type: sink } }\n"

static struct leat_config *parse(const char *text)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_config *config = NULL;

	assert_int_equal(leat_config_parse(text, strlen(text), "t.yaml", diag, &config), 0);
	leat_diag_destroy(diag);
	return config;
}

static void is_read(void **state)
{
	struct leat_config *config;

	(void)state;
	config = parse(PORTS);
	assert_false(config->control.given);
	assert_int_equal(config->control.mode, 0600);
	leat_config_free(config);

	config = parse(PORTS "control: off\n");
	assert_true(config->control.given && config->control.off);
	leat_config_free(config);

	config = parse(PORTS "control: { path: /tmp/x, owner: root, group: 12, mode: 0660 }\n");
	assert_true(config->control.given);
	assert_false(config->control.off);
	assert_string_equal(config->control.path, "/tmp/x");
	assert_string_equal(config->control.owner, "root");
	assert_string_equal(config->control.group, "12");
	assert_int_equal(config->control.mode, 0660);
	assert_int_equal(config->control.pos.line, 2);
	leat_config_free(config);
}

static void mistakes_are_said(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "control: on\n", .mistakes = { { 2, 10, "control", "must be 'off', or a mapping" } } },
		{ .text = PORTS "control:\n", .mistakes = { { 2, 1, "control", "must be 'off', or a mapping" } } },
		{ .text = PORTS "control: [a]\n", .mistakes = { { 2, 10, "control", "must be 'off', or a mapping" } } },
		{ .text = PORTS "control: { paths: a }\n",
		  .mistakes = { { 2, 12, "control", "unknown key 'paths' (did you mean 'path'?)" } } },
		{ .text = PORTS "control: { path: '' }\n", .mistakes = { { 2, 18, "control.path", "" } } },
		{ .text = PORTS "control: { path: [a] }\n",
		  .mistakes = { { 2, 18, "control.path", "must be a single value" } } },
		{ .text = PORTS "control: { mode: 888 }\n", .mistakes = { { 2, 18, "control.mode", "no mode" } } },
		{ .text = PORTS "control: { mode: 1777 }\n", .mistakes = { { 2, 18, "control.mode", "no mode" } } },
		{ .text = PORTS "control: { mode: u=rw }\n", .mistakes = { { 2, 18, "control.mode", "no mode" } } },
		{ .text = PORTS "control: { path: /" LONG LONG " }\n",
		  .mistakes = { { 2, 18, "control.path", "" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read),
		cmocka_unit_test(mistakes_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
