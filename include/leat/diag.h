/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diag.h: mistakes in words a person can act on.
 *
 * A leat_diag gathers every mistake that a configuration, an object or a capture holds, each with the place it stands
 * at ("file:line:column" where there is a file) and the path of the object it is about ("ports.lan.ifname").
 * Used by one thread at a time.
 */
#ifndef LEAT_DIAG_H
#define LEAT_DIAG_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

/** One mistake. The strings belong to the diag. */
struct leat_diag_entry {
	const char *file;    /* NULL where no file is meant */
	unsigned int line;   /* from 1; 0: unknown */
	unsigned int column; /* from 1; 0: unknown */
	const char *path;    /* the object: "ports.lan"; may be empty */
	const char *message; /* one sentence without a full stop */
};

struct leat_diag;

/** Makes an empty diag; NULL when memory is out. Every function below accepts a NULL diag and then does nothing. */
LEAT_API struct leat_diag *leat_diag_create(void);
LEAT_API void leat_diag_destroy(struct leat_diag *diag);

/**
 * Sets the place that later leat_diag_add() calls speak of, until the next call. @file and @path are copied;
 * NULL means none.
 */
LEAT_API void leat_diag_at(struct leat_diag *diag, const char *file, unsigned int line, unsigned int column,
			   const char *path);

/** Adds one mistake at the current place. When memory is out the mistake is counted but not kept. */
LEAT_API void leat_diag_add(struct leat_diag *diag, const char *fmt, ...) LEAT_PRINTF(2, 3);

/** How many mistakes were added (of which the last may not be kept). */
LEAT_API unsigned int leat_diag_count(const struct leat_diag *diag);

/** The @idx-th mistake in the order of adding, or NULL. */
LEAT_API const struct leat_diag_entry *leat_diag_get(const struct leat_diag *diag, unsigned int idx);

/**
 * Writes one mistake as "FILE:LINE:COLUMN: PATH: MESSAGE", leaving out what is unknown, into @buf of @size bytes
 * (always terminated). Returns the length it wanted, as snprintf does.
 */
LEAT_API int leat_diag_format(const struct leat_diag_entry *entry, char *buf, size_t size);

LEAT_END_DECLS

#endif
