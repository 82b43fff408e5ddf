/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c: makes jansson, whose integers end at 2^63 - 1, read all integers: those with many digits are put between
 * quotation marks first. Any thread.
 */
#include "bpf/btf/json.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"

/* Numbers with fewer digits fit. */
#define DIGITS_MANY 19

/* Bytes of the integer at @text if it has many digits, else 0. */
static size_t long_integer(const char *text)
{
	size_t sign = *text == '-', digits = strspn(text + sign, "0123456789");
	bool whole = !text[sign + digits] || !strchr(".eE", text[sign + digits]);

	return digits >= DIGITS_MANY && whole ? sign + digits : 0;
}

/* Bytes of what begins at @text and is looked at as one: a string, a word or number, or a character. */
static size_t token_len(const char *text)
{
	size_t len = 1;

	if (*text != '"') {
		len = strcspn(text, " \t\r\n,:[]{}\"");
		return len ? len : 1;
	}
	while (text[len] && text[len] != '"')
		len += text[len] == '\\' && text[len + 1] ? 2 : 1;
	return text[len] ? len + 1 : len;
}

static char *quote_long_integers(const char *text)
{
	/* at most two marks for each DIGITS_MANY characters */
	char *copy = leat_heap_zalloc(strlen(text) + strlen(text) / DIGITS_MANY * 2 + 1), *out = copy;
	size_t len, number;

	if (!copy)
		return NULL;
	for (; *text; text += len) {
		number = long_integer(text);
		len = number ? number : token_len(text);
		if (number)
			*out++ = '"';
		memcpy(out, text, len);
		out += len;
		if (number)
			*out++ = '"';
	}
	*out = '\0';
	return copy;
}

int leat_btf_json_load(const char *text, struct leat_diag *diag, json_t **json)
{
	char *copy = quote_long_integers(text);
	json_error_t error;

	if (!copy)
		return -ENOMEM;
	*json = json_loads(copy, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	leat_heap_free(copy);
	if (*json)
		return 0;
	if (!*error.text) /* what jansson says when memory is out */
		return -ENOMEM;
	leat_diag_add(diag, "not JSON: line %d, column %d: %s", error.line, error.column, error.text);
	return -EINVAL;
}
