/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_maps_test.c: what the control socket says of maps that are large, part by part, and of those of objects. The
 * objects are those of examples/bpf; without clang there are none, and the tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/control.h"

#define ELEMENTS 10000u

static bool have_objects(void)
{
	char path[4096];
	const char *folder = getenv("LEAT_OBJECT_PATH");

	snprintf(path, sizeof(path), "%s/count_proto.bpf.o", folder ? folder : "");
	return !access(path, R_OK);
}

static struct leat_datapath *load(void)
{
	static const char text[] = "ports: { a: { type: sink } }\n"
				   "workers: 2\n"
				   "programs:\n"
				   "  count: { object: count_proto.bpf.o, entries: { protos: 10000 } }\n"
				   "  block: { object: drop_udp_port.bpf.o, set: { port: 9 } }\n"
				   "attach: { a: [count, block] }\n"
				   "control: off\n";
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_datapath *dp = NULL;

	assert_int_equal(leat_datapath_load_text(text, sizeof(text) - 1, "t.yaml", &opts, NULL, &dp), 0);
	return dp;
}

#define NEEDS_OBJECTS()             \
	do {                        \
		(void)state;        \
		if (!have_objects()) \
			skip();     \
	} while (0)

/* What is answered, whole. */
static json_t *answer(struct leat_datapath *dp, const char *request)
{
	size_t len = 0;
	char *line = leat_control_answer(dp, request, strlen(request), &len);
	json_t *whole;

	assert_non_null(line);
	assert_int_equal(len, strlen(line));
	assert_ptr_equal(strchr(line, '\n'), line + len - 1);
	assert_true(len < (1u << 20));
	whole = json_loads(line, 0, NULL);
	assert_non_null(whole);
	free(line);
	return whole;
}

static void assert_error(struct leat_datapath *dp, const char *request, const char *error)
{
	json_t *whole = answer(dp, request);

	assert_string_equal(json_string_value(json_object_get(whole, "error")), error);
	json_decref(whole);
}

static struct leat_bpf_map *protos(struct leat_datapath *dp)
{
	return leat_bpf_object_map_find(leat_datapath_object(dp, 0), "protos");
}

/* Element @i has i packets at one CPU and none at the other. */
static void fill(struct leat_datapath *dp)
{
	uint16_t key[2];
	uint64_t values[4] = { 0 };
	uint32_t i;

	for (i = 0; i < ELEMENTS; i++) {
		key[0] = (uint16_t)i;
		key[1] = 7;
		values[0] = i;
		assert_int_equal(leat_bpf_map_update(protos(dp), key, values, 0), 0);
	}
}

/* Counts the elements of one part, each of which must be new and as fill() made it. */
static void check_part(const json_t *reply, uint8_t *seen)
{
	const json_t *element, *first;
	json_int_t i;
	size_t n;

	json_array_foreach(json_object_get(reply, "elements"), n, element) {
		i = json_integer_value(json_object_get(json_object_get(element, "key"), "ethertype"));
		assert_in_range(i, 0, ELEMENTS - 1);
		assert_int_equal(seen[i]++, 0);
		assert_int_equal(json_array_size(json_object_get(element, "values")), 2);
		first = json_array_get(json_object_get(element, "values"), 0);
		assert_int_equal(json_integer_value(json_object_get(first, "packets")), i);
	}
}

static void large_maps_come_in_parts(void **state)
{
	static uint8_t seen[ELEMENTS];
	char request[200] = "{\"request\": \"map\", \"name\": \"protos\"}";
	struct leat_datapath *dp;
	unsigned int parts = 0, i;
	json_t *whole;
	const char *next;

	NEEDS_OBJECTS();
	dp = load();
	fill(dp);
	do {
		whole = answer(dp, request);
		check_part(json_object_get(whole, "reply"), seen);
		next = json_string_value(json_object_get(json_object_get(whole, "reply"), "next"));
		if (next) {
			assert_int_equal(strlen(next), 8);
			snprintf(request, sizeof(request),
				 "{\"request\": \"map\", \"name\": \"protos\", \"after\": \"%s\"}", next);
		}
		json_decref(whole);
		parts++;
	} while (next && parts < 100);
	assert_in_range(parts, 2, 20);
	for (i = 0; i < ELEMENTS; i++)
		assert_int_equal(seen[i], 1);
	leat_datapath_destroy(dp);
}

static void where_to_go_on_is_checked(void **state)
{
	struct leat_datapath *dp;
	json_t *whole;

	NEEDS_OBJECTS();
	dp = load();
#define AFTER(key) "{\"request\": \"map\", \"name\": \"protos\", \"after\": \"" key "\"}"
	assert_error(dp, AFTER(""), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("0102030"), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("010203040"), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("0102030405"), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("0102030G"), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("0102030A"), "\"after\" is not a key of this map");
	assert_error(dp, AFTER("%s%s%s%n"), "\"after\" is not a key of this map");
	whole = answer(dp, AFTER("ffffffff")); /* an element that has gone, of a map that is empty */
	assert_int_equal(json_array_size(json_object_get(json_object_get(whole, "reply"), "elements")), 0);
	assert_null(json_object_get(json_object_get(whole, "reply"), "next"));
	json_decref(whole);
	assert_error(dp, "{\"request\": \"map\", \"name\": \"events\"}",
		     "'events' is a ring: its records go to who takes them");
	assert_error(dp, "{\"request\": \"map\", \"name\": \"protos\", \"program\": \"block\"}",
		     "there is no map 'protos'");
	leat_datapath_destroy(dp);
}

static void programs_and_global_data_are_shown(void **state)
{
	struct leat_datapath *dp;
	json_t *whole, *element, *prog;

	NEEDS_OBJECTS();
	dp = load();
	whole = answer(dp, "{\"request\": \"map\", \"name\": \".rodata\", \"program\": \"block\"}");
	element = json_array_get(json_object_get(json_object_get(whole, "reply"), "elements"), 0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(element, "value"), "port")), 9);
	json_decref(whole);
	whole = answer(dp, "{\"request\": \"prog\"}");
	prog = json_array_get(json_object_get(json_object_get(whole, "reply"), "programs"), 1);
	assert_string_equal(json_string_value(json_object_get(prog, "name")), "block");
	assert_string_equal(json_string_value(json_object_get(prog, "object")), "drop_udp_port.bpf.o");
	assert_int_equal(json_array_size(json_object_get(prog, "traps")), 0);
	assert_true(json_integer_value(json_object_get(prog, "instructions")) > 10);
	json_decref(whole);
	leat_datapath_destroy(dp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_maps_come_in_parts),
		cmocka_unit_test(where_to_go_on_is_checked),
		cmocka_unit_test(programs_and_global_data_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
