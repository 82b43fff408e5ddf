/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diag.c: a growing list of mistakes. One thread at a time.
 *
 * What is quoted in a message may come from a hostile file, and messages go to terminals one a line: control
 * characters and broken UTF-8 are replaced, and overlong text is cut. The current place is kept in the diag itself, so
 * that setting it cannot fail.
 */
#include <leat/diag.h>

#include "base/diag_sort.h"
#include "base/heap.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE 1024
#define PATH_SIZE 256

/* One allocation each: the strings stand behind the struct. */
struct mistake {
	struct leat_diag_entry entry;
	char text[];
};

struct leat_diag {
	struct mistake **list;
	unsigned int n, room; /* kept mistakes; capacity of the list */
	unsigned int count;   /* added mistakes */
	unsigned int line, column;
	bool has_file;
	char file[PATH_MAX];
	char path[PATH_SIZE];
};

struct leat_diag *leat_diag_create(void)
{
	return leat_heap_zalloc(sizeof(struct leat_diag));
}

void leat_diag_destroy(struct leat_diag *diag)
{
	unsigned int i;

	if (!diag)
		return;
	for (i = 0; i < diag->n; i++)
		leat_heap_free(diag->list[i]);
	leat_heap_free(diag->list);
	leat_heap_free(diag);
}

static void make_printable(char *text)
{
	size_t n;

	for (; *text; text += n ? n : 1) {
		n = leat_utf8_printable(text);
		if (!n)
			*text = '?';
	}
}

/* Copies @text into @buf, cut to fit. */
static void copy_printable(char *buf, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(buf, text, len);
	buf[len] = '\0';
	make_printable(buf);
}

void leat_diag_at(struct leat_diag *diag, const char *file, unsigned int line, unsigned int column, const char *path)
{
	if (!diag)
		return;
	diag->has_file = file != NULL;
	diag->line = line;
	diag->column = column;
	copy_printable(diag->file, sizeof(diag->file), file ? file : "");
	copy_printable(diag->path, sizeof(diag->path), path ? path : "");
}

static struct mistake *make_mistake(const struct leat_diag *diag, const char *message)
{
	size_t message_size = strlen(message) + 1, path_size = strlen(diag->path) + 1;
	size_t file_size = strlen(diag->file) + 1;
	struct mistake *m = leat_heap_zalloc(sizeof(*m) + message_size + path_size + file_size);

	if (!m)
		return NULL;
	m->entry.line = diag->line;
	m->entry.column = diag->column;
	m->entry.message = memcpy(m->text, message, message_size);
	m->entry.path = memcpy(m->text + message_size, diag->path, path_size);
	memcpy(m->text + message_size + path_size, diag->file, file_size);
	if (diag->has_file)
		m->entry.file = m->text + message_size + path_size;
	return m;
}

static bool make_room(struct leat_diag *diag)
{
	unsigned int room = diag->room ? diag->room * 2 : 8;
	struct mistake **list;

	if (diag->n < diag->room)
		return true;
	list = leat_heap_zalloc(room * sizeof(*list));
	if (!list)
		return false;
	if (diag->n)
		memcpy(list, diag->list, diag->n * sizeof(*list));
	leat_heap_free(diag->list);
	diag->list = list;
	diag->room = room;
	return true;
}

void leat_diag_add(struct leat_diag *diag, const char *fmt, ...)
{
	char message[MESSAGE_SIZE];
	struct mistake *m;
	va_list args;
	int len;

	if (!diag)
		return;
	va_start(args, fmt);
	len = vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	make_printable(message);
	if (len >= (int)sizeof(message))
		memcpy(message + sizeof(message) - 4, "...", 4);
	diag->count++;
	if (!make_room(diag))
		return;
	m = make_mistake(diag, message);
	if (m)
		diag->list[diag->n++] = m;
}

unsigned int leat_diag_count(const struct leat_diag *diag)
{
	return diag ? diag->count : 0;
}

const struct leat_diag_entry *leat_diag_get(const struct leat_diag *diag, unsigned int idx)
{
	return diag && idx < diag->n ? &diag->list[idx]->entry : NULL;
}

int leat_diag_format(const struct leat_diag_entry *entry, char *buf, size_t size)
{
	const char *path = entry->path ? entry->path : "";
	char place[32] = "";

	if (entry->line && entry->column)
		snprintf(place, sizeof(place), ":%u:%u", entry->line, entry->column);
	else if (entry->line)
		snprintf(place, sizeof(place), ":%u", entry->line);
	return snprintf(buf, size, "%s%s%s%s%s%s", entry->file ? entry->file : "", entry->file ? place : "",
			entry->file ? ": " : "", path, *path ? ": " : "", entry->message);
}

static bool stands_before(const struct mistake *a, const struct mistake *b)
{
	if (a->entry.line != b->entry.line)
		return a->entry.line < b->entry.line;
	return a->entry.column < b->entry.column;
}

/* Stable merge of list[0..half) and list[half..n), through @spare. */
static void merge(struct mistake **list, unsigned int half, unsigned int n, struct mistake **spare)
{
	unsigned int i = 0, j = half, k = 0;

	while (k < n)
		if (j == n || (i < half && !stands_before(list[j], list[i])))
			spare[k++] = list[i++];
		else
			spare[k++] = list[j++];
	memcpy(list, spare, n * sizeof(*list));
}

static void merge_sort(struct mistake **list, unsigned int n, struct mistake **spare)
{
	unsigned int half = n / 2;

	if (n < 2)
		return;
	merge_sort(list, half, spare);
	merge_sort(list + half, n - half, spare);
	merge(list, half, n, spare);
}

void leat_diag_sort(struct leat_diag *diag, unsigned int first)
{
	struct mistake **spare;

	if (!diag || first >= diag->n || diag->n - first < 2)
		return;
	spare = leat_heap_zalloc(diag->n * sizeof(*spare));
	if (!spare)
		return; /* the order of adding will do */
	merge_sort(diag->list + first, diag->n - first, spare);
	leat_heap_free(spare);
}
