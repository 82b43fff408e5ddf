/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_vars.c: global variables of an object that clang made are set by name before it is loaded, and maps' elements go
 * to text and back. Needs leat-load and clang, which made tests/bpf/replay.bpf.o.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <leat/bpf.h>
#include <leat/xdp_prog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

static struct leat_bpf_env *env;
static struct leat_bpf_object *obj;
static struct leat_diag *diag;
static char object_path[1024], loader_path[1024];

static int open_object(void **state)
{
	struct leat_bpf_env_opts env_opts = { .size = sizeof(env_opts), .replay = true };
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .loader = loader_path };
	const char *build = getenv("LEAT_BUILD") ? getenv("LEAT_BUILD") : "build";

	(void)state;
	snprintf(object_path, sizeof(object_path), "%s/tests/bpf/replay.bpf.o", build);
	snprintf(loader_path, sizeof(loader_path), "%s/leat-load", build);
	leat_xdp_bpf_init();
	diag = leat_diag_create();
	assert_int_equal(leat_bpf_env_create(&env_opts, &env), 0);
	return leat_bpf_object_open(env, object_path, &opts, diag, &obj);
}

static int close_object(void **state)
{
	(void)state;
	leat_bpf_object_close(obj);
	leat_bpf_env_destroy(env);
	leat_diag_destroy(diag);
	obj = NULL;
	env = NULL;
	diag = NULL;
	return 0;
}

/* The text of a map's only element, after load. */
static void assert_variables(const char *map_name, const char *expected)
{
	struct leat_bpf_map *map = leat_bpf_object_map_find(obj, map_name);
	uint32_t key = 0;
	uint8_t value[512];
	char text[1024];

	assert_non_null(map);
	assert_int_equal(leat_bpf_map_lookup(map, &key, value), 0);
	leat_bpf_map_format_value(map, value, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void variables_are_set(void **state)
{
	static const char *const good[][2] = {
		{ "cfg.limit", "0x20" }, { "cfg.on", "1" },  { "cfg.name", "abc" },
		{ "table", "[1, 2]" },   { "table[3]", "4" }, { "random", "18446744073709551615" },
		{ "cfg", "{\"step\": 7}" }, /* the rest of it stays */
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(leat_bpf_object_set(obj, good[i][0], good[i][1], diag), 0);
	assert_int_equal(leat_diag_count(diag), 0);
	assert_int_equal(leat_bpf_object_load(obj, "count", diag), 0);
	assert_variables(".rodata", "{\"cfg\": {\"limit\": 32, \"step\": 7, \"on\": 1, \"name\": \"abc\"}, "
				    "\"sample.____fmt\": \"length %d of \\\"%s\\\"\"}");
	assert_variables(".bss", "{\"table\": [1, 2, 0, 4], \"random\": 18446744073709551615, "
				 "\"sample_type\": \"0x0000000000000000\", "
				 "\"packet_sample_type\": \"0x0000000000000000\"}");
	assert_int_equal(leat_bpf_object_set(obj, "cfg.limit", "1", diag), -EINVAL); /* too late */
	assert_int_equal(leat_diag_count(diag), 1);
}

static void mistakes_change_nothing(void **state)
{
	static const struct {
		const char *name, *text;
		int err;
	} bad[] = {
		{ "", "1", -EINVAL },          { ".", "1", -EINVAL },        { "cfg.", "1", -EINVAL },
		{ "cfg..limit", "1", -EINVAL }, { "nothing", "1", -ENOENT },  { "cfg.nothing", "1", -ENOENT },
		{ "cfg.limit.x", "1", -ENOENT }, { "cfg.on.x", "1", -ENOENT }, { "cfg[0]", "1", -EINVAL },
		{ "cfg.on[0]", "1", -EINVAL }, { "table[4]", "1", -EINVAL },  { "table[-1]", "1", -EINVAL },
		{ "table[]", "1", -EINVAL },   { "table[0", "1", -EINVAL },   { "table[0]x", "1", -EINVAL },
		{ "table[99999999999999999999999]", "1", -EINVAL },           { "table.x", "1", -ENOENT },
		{ "cfg.limit", "", -EINVAL },  { "cfg.limit", "4294967296", -EINVAL },
		{ "cfg.name", "123456789", -EINVAL },                         { "table", "[1, 2, 3, 4, 5]", -EINVAL },
	};
	unsigned int i;
	char *name;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(leat_bpf_object_set(obj, bad[i].name, bad[i].text, diag), bad[i].err);
		assert_int_equal(leat_diag_count(diag), i + 1);
	}
	name = malloc(5000);
	memset(name, 'a', 4999);
	name[4999] = '\0';
	assert_int_equal(leat_bpf_object_set(obj, name, "1", diag), -EINVAL);
	free(name);
	assert_int_equal(leat_bpf_object_load(obj, "count", diag), 0);
	assert_variables(".bss", "{\"table\": [0, 0, 0, 0], \"random\": 0, "
				 "\"sample_type\": \"0x0000000000000000\", "
				 "\"packet_sample_type\": \"0x0000000000000000\"}");
}

static void elements_of_maps(void **state)
{
	struct leat_bpf_map *map;
	uint8_t key[8], value[64];
	char text[256];

	(void)state;
	assert_int_equal(leat_bpf_object_load(obj, NULL, diag), 0);
	map = leat_bpf_object_map_find(obj, "nets");
	assert_int_equal(leat_bpf_map_parse_key(map, "10.0.0.0/8", key, diag), 0);
	leat_bpf_map_format_key(map, key, text, sizeof(text));
	assert_string_equal(text, "{\"prefixlen\": 8, \"addr\": [10, 0, 0, 0]}");
	assert_int_equal(leat_bpf_map_parse_key(map, "10.0.0.0/33", key, diag), -EINVAL);
	assert_int_equal(leat_bpf_map_parse_key(map, "10.0.0.0/", key, diag), -EINVAL);
	map = leat_bpf_object_map_find(obj, "ports");
	assert_int_equal(leat_bpf_map_parse_key(map, "7", key, diag), 0);
	leat_bpf_map_format_key(map, key, text, sizeof(text));
	assert_string_equal(text, "7");
	map = leat_bpf_object_map_find(obj, "settings");
	memset(value, 0x55, sizeof(value));
	assert_int_equal(leat_bpf_map_parse_value(map, "{\"name\": \"x\"}", value, diag), 0);
	leat_bpf_map_format_value(map, value, text, sizeof(text));
	assert_string_equal(text, "{\"mood\": \"CALM\", \"mac\": [0, 0, 0, 0, 0, 0], \"name\": \"x\"}");
	assert_int_equal(leat_bpf_object_type_size(obj, "sample"), 8);
	assert_int_equal(leat_bpf_object_type_size(obj, "nothing"), 0);
	assert_int_equal(leat_bpf_object_type_size(obj, ""), 0);
	assert_int_equal(leat_bpf_object_format(obj, "sample", "\1\0\0\0\2\0\3\0rest", 12, text, sizeof(text)), 36);
	assert_string_equal(text, "{\"length\": 1, \"port\": 2, \"queue\": 3}");
	assert_int_equal(leat_bpf_object_format(obj, "sample", "1234567", 7, text, sizeof(text)), -ENOENT);
}

static void *failing_malloc(size_t size)
{
	return leat_heap_fails_now() ? NULL : malloc(size);
}

static void each_allocation_fails(void **state)
{
	unsigned long nth = 0, refused = 0;
	bool reached;
	int err;

	(void)state;
	json_set_alloc_funcs(failing_malloc, free);
	do {
		leat_heap_fail_nth(++nth);
		err = leat_bpf_object_set(obj, "cfg", "{\"limit\": 18, \"name\": \"x\"}", NULL);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		assert_true(!err || (reached && (err == -ENOMEM || err == -EINVAL)));
		refused += err != 0;
	} while (reached && nth < 1000);
	json_set_alloc_funcs(malloc, free);
	assert_in_range(nth, 5, 999);
	assert_in_range(refused, nth - 5, nth - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(variables_are_set, open_object, close_object),
		cmocka_unit_test_setup_teardown(mistakes_change_nothing, open_object, close_object),
		cmocka_unit_test_setup_teardown(elements_of_maps, open_object, close_object),
		cmocka_unit_test_setup_teardown(each_allocation_fails, open_object, close_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
