/* SPDX-License-Identifier: BSD-3-Clause */
/* test_config.h: for unit tests: documents and the mistakes that must be found in them. Include after <cmocka.h>. */
#ifndef LEAT_CTL_TEST_CONFIG_H
#define LEAT_CTL_TEST_CONFIG_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/config.h"

/* One mistake that is expected; all line 0 behind the last. */
struct expected {
	unsigned int line, column;
	const char *path;
	const char *part; /* of the message */
};

struct bad {
	const char *text;
	size_t len; /* 0: strlen */
	struct expected mistakes[12];
};

static inline void print_found(const char *text, const struct leat_diag *diag)
{
	const struct leat_diag_entry *entry;
	char line[2048];
	unsigned int i;

	fprintf(stderr, "--- of this document:\n%.600s\n--- was said:\n", text);
	for (i = 0; (entry = leat_diag_get(diag, i)); i++) {
		leat_diag_format(entry, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
}

static inline bool as_expected(const struct expected *mistakes, const struct leat_diag *diag)
{
	const struct leat_diag_entry *entry;
	unsigned int i;

	for (i = 0; mistakes[i].line; i++) {
		entry = leat_diag_get(diag, i);
		if (!entry || entry->line != mistakes[i].line || entry->column != mistakes[i].column)
			return false;
		if (strcmp(entry->path, mistakes[i].path) != 0 || !strstr(entry->message, mistakes[i].part))
			return false;
		if (strcmp(entry->file, "t.yaml") != 0)
			return false;
	}
	return leat_diag_count(diag) == i;
}

static inline void check_bad(const struct bad *bad)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_config *config = NULL;
	size_t len = bad->len ? bad->len : strlen(bad->text);

	assert_int_equal(leat_config_parse(bad->text, len, "t.yaml", diag, &config), -EINVAL);
	assert_null(config);
	if (!as_expected(bad->mistakes, diag)) {
		print_found(bad->text, diag);
		fail_msg("not the mistakes that were expected");
	}
	leat_diag_destroy(diag);
}

#define CHECK_ALL(table)                                                        \
	do {                                                                    \
		size_t nth_;                                                    \
		for (nth_ = 0; nth_ < sizeof(table) / sizeof(table[0]); nth_++) \
			check_bad(&table[nth_]);                                \
	} while (0)

#endif
