/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_out.h: writes one JSON value, member by member, in the order of the calls. Objects and lists that are opened
 * flat stand on one line. The names are not those of jansson (json_*), which stands beside it in one program.
 */
#ifndef LEAT_BASE_JSON_OUT_H
#define LEAT_BASE_JSON_OUT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Zero-initialise but for @out. */
struct leat_json_out {
	FILE *out;
	unsigned int depth;
	unsigned int flat; /* depth from which on all is on one line, 0: none */
	bool filled;       /* the innermost object or list has a member */
};

/** Opens an object ('{') or a list ('['). @name is NULL within a list and at the top. */
void leat_json_open(struct leat_json_out *j, const char *name, char bracket);
void leat_json_open_flat(struct leat_json_out *j, const char *name, char bracket);
/** Closes it ('}' or ']'). */
void leat_json_close(struct leat_json_out *j, char bracket);
void leat_json_string(struct leat_json_out *j, const char *name, const char *text);
void leat_json_number(struct leat_json_out *j, const char *name, uint64_t number);
/** A value that is JSON already. */
void leat_json_raw(struct leat_json_out *j, const char *name, const char *text);

#endif
