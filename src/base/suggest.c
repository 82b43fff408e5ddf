/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * suggest.c: edit distance (insertions, deletions, replacements, swapped neighbours), over short words only. Pure
 * functions; any thread.
 */
#include "base/suggest.h"

#include <string.h>

#define WORD_MAX 31
#define TOO_FAR UINT32_MAX

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Optimal string alignment distance of a and b; the row for i holds what it costs to make b[0..j) of a[0..i). */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int row[3][WORD_MAX + 1];
	size_t na = strnlen(a, WORD_MAX + 1), nb = strnlen(b, WORD_MAX + 1), i, j;

	if (na > WORD_MAX || nb > WORD_MAX)
		return TOO_FAR;
	for (j = 0; j <= nb; j++)
		row[0][j] = (unsigned int)j;
	for (i = 1; i <= na; i++) {
		unsigned int *now = row[i % 3], *up = row[(i - 1) % 3], *up2 = row[(i + 1) % 3];

		now[0] = (unsigned int)i;
		for (j = 1; j <= nb; j++) {
			now[j] = least(up[j] + 1, now[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < now[j])
				now[j] = up2[j - 2] + 1;
		}
	}
	return row[na % 3][nb];
}

void leat_suggest_try(struct leat_suggest *s, const char *candidate)
{
	unsigned int distance = edit_distance(s->word, candidate);
	size_t typed = strnlen(s->word, WORD_MAX), len = strnlen(candidate, WORD_MAX);

	/* One slip in three letters: what is farther, or very short, is another word. */
	if (distance > (typed < len ? typed : len) / 3)
		return;
	if (s->best && distance >= s->distance)
		return;
	s->best = candidate;
	s->distance = distance;
}
