/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h: which bytes are text that people and other programs can be shown. */
#ifndef LEAT_BASE_UTF8_H
#define LEAT_BASE_UTF8_H

#include <stddef.h>

/**
 * Bytes of the UTF-8 character at @text (RFC 3629, 4), which ends with a 0; 0 when it is none, or a control character:
 * terminals take some of U+0080..9F, too, for escape sequences.
 */
static inline size_t leat_utf8_printable(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n, i;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xc2 && s[1] < 0xa0) ||                     /* control */
	    (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) || /* longer than need be */
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))   /* surrogates; above U+10FFFF */
		return 0;
	return n;
}

#endif
