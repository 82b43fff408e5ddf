/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diag_test.c: mistakes are kept in order with their places, printed on one line each, and survive hostile text and
 * missing memory. The log and the suggestions are tested here too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <leat/diag.h>
#include <leat/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag_sort.h"
#include "base/heap.h"
#include "base/suggest.h"

static void assert_line(const struct leat_diag *diag, unsigned int idx, const char *expected)
{
	const struct leat_diag_entry *entry = leat_diag_get(diag, idx);
	char line[2048];

	assert_non_null(entry);
	leat_diag_format(entry, line, sizeof(line));
	assert_string_equal(line, expected);
}

static void keeps_places_and_order(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	char path[] = "ports.lan";

	(void)state;
	assert_non_null(diag);
	leat_diag_add(diag, "nowhere");
	leat_diag_at(diag, "a.yaml", 3, 7, path);
	path[0] = 'X'; /* was copied */
	leat_diag_add(diag, "must be %d..%d", 1, 64);
	leat_diag_at(diag, "a.yaml", 4, 0, "");
	leat_diag_add(diag, "no column");
	leat_diag_at(diag, "a.yaml", 0, 0, NULL);
	leat_diag_add(diag, "no line");
	leat_diag_at(diag, NULL, 9, 9, "lan");
	leat_diag_add(diag, "no file");
	assert_int_equal(leat_diag_count(diag), 5);
	assert_line(diag, 0, "nowhere");
	assert_line(diag, 1, "a.yaml:3:7: ports.lan: must be 1..64");
	assert_line(diag, 2, "a.yaml:4: no column");
	assert_line(diag, 3, "a.yaml: no line");
	assert_line(diag, 4, "lan: no file");
	assert_null(leat_diag_get(diag, 5));
	leat_diag_destroy(diag);
}

static void accepts_null(void **state)
{
	(void)state;
	leat_diag_at(NULL, "f", 1, 1, "p");
	leat_diag_add(NULL, "m");
	leat_diag_sort(NULL, 0);
	assert_int_equal(leat_diag_count(NULL), 0);
	assert_null(leat_diag_get(NULL, 0));
	leat_diag_destroy(NULL);
}

static void format_is_bounded(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	char buf[8] = "xxxxxxx";

	(void)state;
	leat_diag_at(diag, "file", 1, 2, "p");
	leat_diag_add(diag, "message");
	assert_int_equal(leat_diag_format(leat_diag_get(diag, 0), buf, sizeof(buf)), 20);
	assert_string_equal(buf, "file:1:");
	assert_int_equal(leat_diag_format(leat_diag_get(diag, 0), buf, 0), 20);
	leat_diag_destroy(diag);
}

static void hostile_text_is_tamed(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	char *big = malloc(100000);
	size_t len;

	(void)state;
	memset(big, 'y', 99999);
	big[99999] = '\0';
	leat_diag_at(diag, "f\n", 1, 1, "p\x1b[2J");
	leat_diag_add(diag, "%s", "a\nb\x7f\xff \xc3\xa9 \xc2\x9b \xe2\x82\xac \xe2\x82");
	assert_line(diag, 0, "f?:1:1: p?[2J: a?b?? \xc3\xa9 ?? \xe2\x82\xac ??");
	leat_diag_at(diag, big, 1, 1, big);
	leat_diag_add(diag, "%s", big);
	len = strlen(leat_diag_get(diag, 1)->message);
	assert_in_range(len, 100, 2000);
	assert_string_equal(leat_diag_get(diag, 1)->message + len - 3, "...");
	free(big);
	leat_diag_destroy(diag);
}

static void sorts_by_place(void **state)
{
	static const unsigned int places[][2] = { { 9, 9 }, { 5, 1 }, { 2, 7 }, { 5, 1 }, { 2, 3 }, { 0, 0 }, { 1, 1 } };
	static const char *const expected[] = { "9:9 0", "0:0 5", "1:1 6", "2:3 4", "2:7 2", "5:1 1", "5:1 3" };
	struct leat_diag *diag = leat_diag_create();
	unsigned int i;

	(void)state;
	for (i = 0; i < 7; i++) {
		leat_diag_at(diag, NULL, places[i][0], places[i][1], NULL);
		leat_diag_add(diag, "%u:%u %u", places[i][0], places[i][1], i);
	}
	leat_diag_sort(diag, 1);
	for (i = 0; i < 7; i++)
		assert_string_equal(leat_diag_get(diag, i)->message, expected[i]);
	leat_diag_destroy(diag);
}

static void counts_without_memory(void **state)
{
	struct leat_diag *diag;
	unsigned long nth;

	(void)state;
	leat_heap_fail_nth(1);
	assert_null(leat_diag_create());
	for (nth = 1; nth <= 4; nth++) {
		unsigned int i;

		leat_heap_fail_nth(0);
		diag = leat_diag_create();
		leat_heap_fail_nth(nth);
		for (i = 0; i < 3; i++)
			leat_diag_add(diag, "m%u", i);
		assert_int_equal(leat_diag_count(diag), 3);
		assert_int_equal(leat_diag_get(diag, 2) == NULL, leat_heap_failed());
		leat_diag_destroy(diag);
	}
	leat_heap_fail_nth(0);
}

struct heard {
	unsigned int n;
	enum leat_log_level level;
	char message[1024];
};

static void hear(void *arg, enum leat_log_level level, const char *message)
{
	struct heard *heard = arg;

	heard->n++;
	heard->level = level;
	snprintf(heard->message, sizeof(heard->message), "%s", message);
}

static void log_filters_and_cuts(void **state)
{
	struct heard heard = { 0 };
	struct leat_log log = { .fn = hear, .arg = &heard, .level = LEAT_LOG_INFO }, silent = { 0 };

	(void)state;
	leat_log(NULL, LEAT_LOG_ERROR, "x");
	leat_log(&silent, LEAT_LOG_ERROR, "x");
	leat_log(&log, LEAT_LOG_DEBUG, "x");
	assert_int_equal(heard.n, 0);
	leat_log(&log, LEAT_LOG_INFO, "port %s", "up");
	assert_int_equal(heard.n, 1);
	assert_int_equal(heard.level, LEAT_LOG_INFO);
	assert_string_equal(heard.message, "port up");
	leat_log(&log, LEAT_LOG_ERROR, "%900d", 1);
	assert_int_equal(strlen(heard.message), 511);
}

static const char *suggested(const char *word, const char *const *candidates)
{
	struct leat_suggest s = { .word = word };

	for (; *candidates; candidates++)
		leat_suggest_try(&s, *candidates);
	return s.best ? s.best : "";
}

static void suggests_the_closest(void **state)
{
	static const char *const keys[] = { "workers", "ports", "programs", "attach", "bridges", "mac", "mtu", NULL };

	(void)state;
	assert_string_equal(suggested("port", keys), "ports");
	assert_string_equal(suggested("brigdes", keys), "bridges");
	assert_string_equal(suggested("Worker", keys), "workers");
	assert_string_equal(suggested("mut", keys), "mtu");
	assert_string_equal(suggested("", keys), "");
	assert_string_equal(suggested("zzz", keys), "");
	assert_string_equal(suggested("this-is-much-too-long-to-be-compared", keys), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_places_and_order), cmocka_unit_test(accepts_null),
		cmocka_unit_test(format_is_bounded),      cmocka_unit_test(hostile_text_is_tamed),
		cmocka_unit_test(sorts_by_place),         cmocka_unit_test(counts_without_memory),
		cmocka_unit_test(log_filters_and_cuts),   cmocka_unit_test(suggests_the_closest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
