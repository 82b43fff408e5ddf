/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes.c: bytes that grow. A failure is kept in the bytes themselves, so that a row of appends is checked once, at its
 * end.
 */
#include <stdlib.h>
#include <string.h>

#include "load.h"

static bool make_room(struct load_bytes *b, size_t len)
{
	size_t room = b->room ? b->room : 4096;
	uint8_t *p;

	if (b->failed || len > LEAT_IMAGE_SIZE_MAX - b->len)
		return false;
	while (room < b->len + len)
		room *= 2;
	if (room == b->room)
		return true;
	p = realloc(b->p, room);
	if (!p)
		return false;
	b->p = p;
	b->room = room;
	return true;
}

size_t load_bytes_add(struct load_bytes *b, const void *data, size_t len)
{
	size_t off = b->len;

	if (!make_room(b, len)) {
		b->failed = true;
		return 0;
	}
	if (data && len)
		memcpy(b->p + off, data, len);
	else if (len)
		memset(b->p + off, 0, len);
	b->len += len;
	return off;
}

void load_bytes_align(struct load_bytes *b, size_t unit)
{
	size_t over = b->len & (unit - 1);

	if (over)
		load_bytes_add(b, NULL, unit - over);
}

void load_bytes_fini(struct load_bytes *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}
