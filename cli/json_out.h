/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_out.h: writes one JSON value, member by member, in the order of the calls. Objects and lists that are opened
 * flat stand on one line.
 */
#ifndef LEAT_CLI_JSON_OUT_H
#define LEAT_CLI_JSON_OUT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Zero-initialise but for @out. */
struct json_out {
	FILE *out;
	unsigned int depth;
	unsigned int flat; /* depth from which on all is on one line, 0: none */
	bool filled;       /* the innermost object or list has a member */
};

/** Opens an object ('{') or a list ('['). @name is NULL within a list and at the top. */
void json_open(struct json_out *j, const char *name, char bracket);
void json_open_flat(struct json_out *j, const char *name, char bracket);
/** Closes it ('}' or ']'). */
void json_close(struct json_out *j, char bracket);
void json_string(struct json_out *j, const char *name, const char *text);
void json_number(struct json_out *j, const char *name, uint64_t number);
/** A value that is JSON already. */
void json_raw(struct json_out *j, const char *name, const char *text);

#endif
