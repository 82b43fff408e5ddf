/* SPDX-License-Identifier: BSD-3-Clause */
/* drop.c: the reasons of drop.h as text. Any thread. */
#include <leat/drop.h>

#define NAME(name, id, text) id,
#define TEXT(name, id, text) text,

static const char *const names[] = { LEAT_DROP_REASONS(NAME) };
static const char *const texts[] = { LEAT_DROP_REASONS(TEXT) };

const char *leat_drop_name(unsigned int reason)
{
	return reason < LEAT_DROP_MAX ? names[reason] : "unknown";
}

const char *leat_drop_text(unsigned int reason)
{
	return reason < LEAT_DROP_MAX ? texts[reason] : "unknown";
}
