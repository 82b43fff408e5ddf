/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clang_test.c: BTF that clang made (of tests/bpf/btf_kinds.bpf.c) is read right, and bears to be cut and changed
 * anywhere; a value of every kind comes back from its text as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>

#include "base/heap.h"
#include "bpf/btf/btf.h"
#include "bpf/btf/test_common.h"

static uint8_t *kinds_elf;
static const uint8_t *kinds_bytes;
static size_t kinds_len;
static struct leat_btf *kinds;

static int read_kinds(void **state)
{
	const char *build = getenv("LEAT_BUILD");
	char path[1024];
	size_t len;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/bpf/btf_kinds.bpf.o", build ? build : "build");
	kinds_elf = file_read(path, &len);
	if (!kinds_elf)
		return -1;
	kinds_bytes = elf_btf(kinds_elf, &kinds_len);
	return kinds_bytes ? leat_btf_create(kinds_bytes, kinds_len, NULL, &kinds) : -1;
}

static int free_kinds(void **state)
{
	(void)state;
	leat_btf_destroy(kinds);
	free(kinds_elf);
	return 0;
}

/* ---- what clang makes ---- */

static void members_are_found(void **state)
{
	struct leat_btf_member member;
	uint32_t id;

	(void)state;
	id = leat_btf_find(kinds, "everything", BTF_KIND_STRUCT);
	assert_true(id);
	assert_string_equal(leat_btf_name(kinds, id), "everything");
	assert_int_equal(leat_btf_find_member(kinds, id, "u16", &member), 0);
	assert_int_equal(member.bit_off, 16);
	assert_int_equal(leat_btf_size(kinds, member.type), 2);
	assert_int_equal(leat_btf_find_member(kinds, id, "bytes", &member), 0); /* of the union without a name */
	assert_int_equal(leat_btf_size(kinds, member.type), 4);
	assert_int_equal(leat_btf_find_member(kinds, id, "hidden", &member), -ENOENT); /* of one with a name */
	assert_int_equal(leat_btf_find_member(kinds, id, "", &member), -ENOENT);
	id = leat_btf_find(kinds, "flags", BTF_KIND_STRUCT);
	assert_int_equal(leat_btf_find_member(kinds, id, "middle", &member), 0);
	assert_int_equal(member.bit_off, 3);
	assert_int_equal(member.bits, 7);
	assert_int_equal(leat_btf_find(kinds, "nothing", BTF_KIND_STRUCT), 0);
}

static void sections_have_variables(void **state)
{
	struct leat_btf_member var;
	uint32_t id;

	(void)state;
	id = leat_btf_find(kinds, ".rodata", BTF_KIND_DATASEC);
	assert_true(id);
	assert_int_equal(leat_btf_n_members(kinds, id), 2);
	assert_int_equal(leat_btf_find_member(kinds, id, "port", &var), 0);
	assert_int_equal(leat_btf_size(kinds, var.type), 2);
	assert_int_equal(leat_btf_kind(kinds, leat_btf_strip(kinds, var.type)), BTF_KIND_INT);
}

static void void_has_no_description(void **state)
{
	(void)state;
	assert_null(leat_btf_type(kinds, 0));
	assert_null(leat_btf_type(kinds, leat_btf_count(kinds)));
	assert_null(leat_btf_type(kinds, UINT32_MAX));
	assert_int_equal(leat_btf_size(kinds, 0), 0);
	assert_int_equal(leat_btf_size(kinds, UINT32_MAX), 0);
	assert_int_equal(leat_btf_strip(kinds, UINT32_MAX), UINT32_MAX);
	assert_string_equal(leat_btf_name(kinds, 0), "");
	leat_btf_destroy(NULL);
}

/* ---- text and back ---- */

static const char everything[] =
	"{\"u8\": 255, \"u16\": 65535, \"u32\": 4294967295, \"u64\": 18446744073709551615, "
	"\"inner\": {\"s8\": -128, \"s16\": -32768, \"s32\": -2147483648, \"s64\": -9223372036854775808}, "
	"\"again\": {\"s8\": 127, \"s16\": 1, \"s32\": 2, \"s64\": 9223372036854775807}, "
	"\"name\": \"a \\\"b\\\\\", \"letter\": 65, \"yes\": true, \"colour\": \"BLUE\", \"cyan\": \"WHITE\", "
	"\"wide\": \"HUGE\", "
	"\"mac\": [2, 0, 0, 0, 0, 255], \"ipv6\": [254, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "
	"\"ipv4\": 16777226, \"grid\": [[1, -2, 3], [4, 5, 6]], "
	"\"flags\": {\"low\": 5, \"middle\": -64, \"high\": 4095, "
	"\"colour\": \"GREEN\", \"wide\": 1099511627775, \"on\": true}, "
	"\"word\": 67305985, \"bytes\": [1, 2, 3, 4], \"shown\": {\"hidden\": 9}, \"ratio\": 0.5, "
	"\"exact\": -1.5e+300, "
	"\"pointer\": \"0x0000000000000010\", \"unknown\": \"0x0000000000000000\", "
	"\"function\": \"0xffffffffffffffff\", \"none\": []}";

/* The same as a person might write it. */
static const char everything_by_hand[] =
	"{\"u8\": \"0xff\", \"u16\": \"65535\", \"u32\": \"255.255.255.255\", \"u64\": 18446744073709551615, "
	"\"inner\": {\"s64\": -9223372036854775808, \"s8\": -128, \"s16\": \"0x8000\", \"s32\": \"-2147483648\"}, "
	"\"again\": {\"s8\": 127, \"s16\": 1, \"s32\": 2, \"s64\": 9223372036854775807}, "
	"\"name\": \"a \\\"b\\\\\", \"letter\": \"A\", \"yes\": 1, \"colour\": -3, \"cyan\": \"WHITE\", "
	"\"wide\": \"HUGE\", \"mac\": \"02:00:00:00:00:ff\", \"ipv6\": \"fe80::1\", \"ipv4\": \"10.0.0.1\", "
	"\"grid\": [[1, -2, 3], [4, 5, 6]], "
	"\"flags\": {\"low\": 5, \"middle\": -64, \"high\": 4095, "
	"\"colour\": 5, \"wide\": 1099511627775, \"on\": true}, "
	"\"bytes\": \"1.2.3.4\", \"shown\": 9, \"ratio\": \"0x3f000000\", \"exact\": -1.5e300, \"pointer\": \"0x10\", "
	"\"function\": \"0xffffffffffffffff\"}";

static void every_kind_goes_there_and_back(void **state)
{
	uint8_t bytes[512] = { 0 }, again[512] = { 0 };
	char text[2048];
	uint32_t id, size;

	(void)state;
	id = leat_btf_find(kinds, "everything", BTF_KIND_STRUCT);
	size = leat_btf_size(kinds, id);
	assert_in_range(size, 100, sizeof(bytes));
	assert_int_equal(leat_btf_parse(kinds, id, everything, bytes, size, NULL), 0);
	leat_btf_format(kinds, id, bytes, size, text, sizeof(text));
	assert_string_equal(text, everything);
	assert_int_equal(leat_btf_format(kinds, id, bytes, size, NULL, 0), strlen(everything));
	assert_int_equal(leat_btf_parse(kinds, id, everything_by_hand, again, size, NULL), 0);
	assert_memory_equal(bytes, again, size);
}

/* The length is said whatever the room, and nothing is written past it. */
static void room_is_respected(void **state)
{
	uint8_t bytes[512] = { 0 };
	char text[64];
	uint32_t id, size;
	size_t room;
	int len;

	(void)state;
	id = leat_btf_find(kinds, "everything", BTF_KIND_STRUCT);
	size = leat_btf_size(kinds, id);
	len = leat_btf_format(kinds, id, bytes, size, NULL, 0);
	for (room = 1; room < sizeof(text); room++) {
		memset(text, 'x', sizeof(text));
		assert_int_equal(leat_btf_format(kinds, id, bytes, size, text, room), len);
		assert_int_equal(strlen(text), room - 1);
		assert_int_equal(text[room], 'x');
	}
}

/* ---- hostile bytes ---- */

static void cut_at_each_length(void **state)
{
	size_t len;

	(void)state;
	for (len = 0; len < kinds_len; len++)
		assert_false(try_bytes(kinds_bytes, len));
	assert_true(try_bytes(kinds_bytes, kinds_len));
}

static void each_byte_changed(void **state)
{
	static const uint8_t changes[] = { 0x01, 0x80, 0xff, 0x10 };
	uint8_t *bytes = malloc(kinds_len);
	size_t i, k;

	(void)state;
	memcpy(bytes, kinds_bytes, kinds_len);
	for (i = 0; i < kinds_len; i++) {
		for (k = 0; k < sizeof(changes); k++) {
			bytes[i] = kinds_bytes[i] ^ changes[k];
			try_bytes(bytes, kinds_len);
		}
		bytes[i] = kinds_bytes[i];
	}
	free(bytes);
}

/* ---- memory ---- */

static void *failing_malloc(size_t size)
{
	return leat_heap_fails_now() ? NULL : malloc(size);
}

static void each_allocation_fails(void **state)
{
	uint8_t value[512] = { 0 };
	unsigned long nth = 0, refused = 0;
	struct leat_btf *btf;
	bool reached;
	uint32_t id;
	int err;

	(void)state;
	json_set_alloc_funcs(failing_malloc, free);
	do {
		leat_heap_fail_nth(++nth);
		err = leat_btf_create(kinds_bytes, kinds_len, NULL, &btf);
		if (!err) {
			id = leat_btf_find(btf, "everything", BTF_KIND_STRUCT);
			err = leat_btf_parse(btf, id, everything, value, leat_btf_size(btf, id), NULL);
			leat_btf_destroy(btf);
		}
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		/* within a word jansson takes missing memory for a mistake of the text */
		assert_true(!err || (reached && (err == -ENOMEM || (nth > 5 && err == -EINVAL))));
		refused += err != 0;
	} while (reached && nth < 5000);
	json_set_alloc_funcs(malloc, free);
	assert_in_range(refused, nth - 5, nth - 1); /* jansson does without some */
	assert_in_range(nth, 10, 4999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_found),
		cmocka_unit_test(sections_have_variables),
		cmocka_unit_test(void_has_no_description),
		cmocka_unit_test(every_kind_goes_there_and_back),
		cmocka_unit_test(room_is_respected),
		cmocka_unit_test(cut_at_each_length),
		cmocka_unit_test(each_byte_changed),
		cmocka_unit_test(each_allocation_fails),
	};

	return cmocka_run_group_tests(tests, read_kinds, free_kinds);
}
