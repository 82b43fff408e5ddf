/* SPDX-License-Identifier: BSD-3-Clause */
/* json_out.c: see json_out.h. Pure but for what is written. */
#include "json_out.h"

#include <string.h>

/* Bytes that are no printable ASCII are escaped one by one, as if they were Latin-1. */
static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void new_line(struct json_out *j)
{
	if (j->depth)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
}

/* What stands before a member: the comma of the one before, a line or a space, its name. */
static void begin(struct json_out *j, const char *name)
{
	if (j->filled)
		fputc(',', j->out);
	if (!j->flat)
		new_line(j);
	else if (j->filled)
		fputc(' ', j->out);
	if (name) {
		put_string(j->out, name);
		fputs(": ", j->out);
	}
	j->filled = true;
}

void json_open(struct json_out *j, const char *name, char bracket)
{
	begin(j, name);
	fputc(bracket, j->out);
	j->depth++;
	j->filled = false;
}

void json_open_flat(struct json_out *j, const char *name, char bracket)
{
	json_open(j, name, bracket);
	if (!j->flat)
		j->flat = j->depth;
}

void json_close(struct json_out *j, char bracket)
{
	bool flat = j->flat;

	if (j->flat == j->depth)
		j->flat = 0;
	j->depth--;
	if (j->filled && !flat)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	fputc(bracket, j->out);
	j->filled = true;
}

void json_string(struct json_out *j, const char *name, const char *text)
{
	begin(j, name);
	put_string(j->out, text);
}

void json_number(struct json_out *j, const char *name, uint64_t number)
{
	begin(j, name);
	fprintf(j->out, "%" PRIu64, number);
}

void json_raw(struct json_out *j, const char *name, const char *text)
{
	begin(j, name);
	fputs(text, j->out);
}
