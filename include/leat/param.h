/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * param.h: tables that describe the options of ports and programs.
 *
 * A driver or a built-in program says once, in a table, which keys it takes, of which kind and range, and where in its
 * options struct the value belongs. The configuration file reader checks and fills the struct from that table, so that
 * a new port brings its keys with it.
 */
#ifndef LEAT_PARAM_H
#define LEAT_PARAM_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

struct leat_diag;

enum leat_param_kind {
	LEAT_PARAM_STRING,   /* char *: a copy owned by the options struct; length within min..max bytes */
	LEAT_PARAM_U32,      /* uint32_t within min..max */
	LEAT_PARAM_U64,      /* uint64_t within min..max; suffixes k M G (powers of 1000) and Ki Mi Gi */
	LEAT_PARAM_BOOL,     /* bool: true, false, yes, no, on, off */
	LEAT_PARAM_MAC,      /* uint8_t[6]: "02:00:00:00:00:01" */
	LEAT_PARAM_IPV4,     /* uint32_t in network order: "10.0.0.1" */
	LEAT_PARAM_DURATION, /* uint64_t nanoseconds: "10s", "250ms", "5us"; a bare number is seconds */
	LEAT_PARAM_CHOICE,   /* uint32_t: index into choices */
};

#define LEAT_PARAM_REQUIRED 0x1u
#define LEAT_PARAM_PORT     0x2u /* STRING: name of a port, which the configuration must have */
#define LEAT_PARAM_IFNAME   0x4u /* STRING: what the kernel takes as the name of an interface */
#define LEAT_PARAM_STATION  0x8u /* MAC: an interface's own address, neither a group's nor all zero */

/** One key. A table ends with an entry whose name is NULL. */
struct leat_param {
	const char *name;
	enum leat_param_kind kind;
	unsigned int flags;         /* LEAT_PARAM_REQUIRED ... */
	size_t offset;              /* of the value in the options struct */
	uint64_t min, max;          /* inclusive; both 0: no limit but the type's */
	const char *const *choices; /* CHOICE: names, NULL at the end */
	const char *default_text;   /* taken when the key is absent; NULL: zero bytes */
	const char *help;           /* one line for people */
};

/**
 * Parses @text by @param and stores the value in @opts (returns 0), or adds a sentence to @diag and returns -EINVAL;
 * -ENOMEM when a string cannot be copied. A string stored before in the same place is freed.
 */
LEAT_API int leat_param_set(const struct leat_param *param, void *opts, const char *text, struct leat_diag *diag);

/** Stores every default of @table. Returns 0 or -ENOMEM. */
LEAT_API int leat_param_defaults(const struct leat_param *table, void *opts);

/** Frees every string that @opts holds by @table. */
LEAT_API void leat_param_free(const struct leat_param *table, void *opts);

/** The entry for @name, or NULL. */
LEAT_API const struct leat_param *leat_param_find(const struct leat_param *table, const char *name);

LEAT_END_DECLS

#endif
