/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap_test.c: memory is zeroed and aligned, impossible sizes are refused, and exactly the allocation that shall fail
 * does.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "base/heap.h"

static void memory_is_zeroed_and_aligned(void **state)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 1000, 100000 };
	unsigned int i, round;
	size_t k;

	(void)state;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			uint8_t *mem = leat_heap_zalloc(sizes[i]);

			assert_non_null(mem);
			assert_int_equal((uintptr_t)mem % LEAT_CACHELINE, 0);
			for (k = 0; k < sizes[i]; k++) {
				assert_int_equal(mem[k], 0);
				mem[k] = 0xff;
			}
			leat_heap_free(mem);
		}
	}
	leat_heap_free(NULL);
}

static void impossible_sizes_are_refused(void **state)
{
	(void)state;
	assert_null(leat_heap_zalloc(SIZE_MAX));
	assert_null(leat_heap_zalloc(SIZE_MAX - 62));
}

static void text_is_copied(void **state)
{
	char text[] = "ports";
	char *copy = leat_heap_strdup(text);

	(void)state;
	text[0] = 'X';
	assert_string_equal(copy, "ports");
	leat_heap_free(copy);
	copy = leat_heap_strdup("");
	assert_string_equal(copy, "");
	leat_heap_free(copy);
}

static void only_the_nth_allocation_fails(void **state)
{
	unsigned int nth, i;

	(void)state;
	for (nth = 1; nth <= 6; nth++) {
		leat_heap_fail_nth(nth);
		for (i = 1; i <= 6; i++) {
			bool got;
			void *mem = NULL;

			assert_int_equal(leat_heap_failed(), i > nth);
			switch (i % 3) {
			case 0:
				mem = leat_heap_zalloc(10);
				got = mem;
				break;
			case 1:
				mem = leat_heap_strdup("text");
				got = mem;
				break;
			default:
				got = !leat_heap_fails_now();
				break;
			}
			leat_heap_free(mem);
			assert_int_equal(got, i != nth);
		}
	}
	leat_heap_fail_nth(0);
	assert_false(leat_heap_failed());
	assert_false(leat_heap_fails_now());
	assert_false(leat_heap_failed());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(text_is_copied),
		cmocka_unit_test(only_the_nth_allocation_fails),
	};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
