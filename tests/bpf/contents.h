/* SPDX-License-Identifier: BSD-3-Clause */
/* contents.h: what maps hold before the first packet, and whether both sides hold the same. */
#ifndef LEAT_TESTS_BPF_CONTENTS_H
#define LEAT_TESTS_BPF_CONTENTS_H

#include "both.h"
#include "packets.h"

/** Takes a sentence about something that differs. */
typedef void contents_say_fn(void *arg, const char *sentence);

struct contents {
	const struct both_world *world;
	contents_say_fn *say;
	void *arg;
};

/**
 * Puts the same elements into the maps of both sides: keys that packets hit and others, values that differ per CPU,
 * programs of the object into program arrays. A write that one side answers in another way is a difference.
 */
void contents_fill(const struct contents *c, struct both *both);

/** Compares every map; those of many elements only when @all. Rings: what was taken since the last call. */
void contents_compare(const struct contents *c, struct both *both, bool all);

#endif
