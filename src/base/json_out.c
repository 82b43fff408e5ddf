/* SPDX-License-Identifier: BSD-3-Clause */
/* json_out.c: see json_out.h. Pure but for what is written. */
#include "base/json_out.h"

#include "base/utf8.h"

/* Bytes that are no printable character of UTF-8 are escaped one by one, as if they were Latin-1. */
static void put_string(FILE *out, const char *text)
{
	size_t n;

	fputc('"', out);
	for (; *text; text += n ? n : 1) {
		n = leat_utf8_printable(text);
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (!n)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fwrite(text, 1, n, out);
	}
	fputc('"', out);
}

static void new_line(struct leat_json_out *j)
{
	if (j->depth)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
}

/* What stands before a member: the comma of the one before, a line or a space, its name. */
static void begin(struct leat_json_out *j, const char *name)
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

void leat_json_open(struct leat_json_out *j, const char *name, char bracket)
{
	begin(j, name);
	fputc(bracket, j->out);
	j->depth++;
	j->filled = false;
}

void leat_json_open_flat(struct leat_json_out *j, const char *name, char bracket)
{
	leat_json_open(j, name, bracket);
	if (!j->flat)
		j->flat = j->depth;
}

void leat_json_close(struct leat_json_out *j, char bracket)
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

void leat_json_string(struct leat_json_out *j, const char *name, const char *text)
{
	begin(j, name);
	put_string(j->out, text);
}

void leat_json_number(struct leat_json_out *j, const char *name, uint64_t number)
{
	begin(j, name);
	fprintf(j->out, "%" PRIu64, number);
}

void leat_json_raw(struct leat_json_out *j, const char *name, const char *text)
{
	begin(j, name);
	fputs(text, j->out);
}
