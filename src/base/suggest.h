/* SPDX-License-Identifier: BSD-3-Clause */
/* suggest.h: "did you mean": the known word that a mistyped one is closest to. */
#ifndef LEAT_BASE_SUGGEST_H
#define LEAT_BASE_SUGGEST_H

#include <leat/base.h>

/** The search for the closest word; zero-initialise but for @word. */
struct leat_suggest {
	const char *word;      /* as typed */
	const char *best;      /* the closest candidate that is close enough, or NULL */
	unsigned int distance; /* of best */
};

/** Looks at one candidate (**borrows** it for as long as @s is used). */
void leat_suggest_try(struct leat_suggest *s, const char *candidate);

#endif
