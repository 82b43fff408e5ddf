/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_why.h: why packet memory could not be had, in words. Pure; any thread. */
#ifndef LEAT_BASE_MEMORY_WHY_H
#define LEAT_BASE_MEMORY_WHY_H

#include <errno.h>
#include <string.h>

/** The words for @err (0 or a negative errno) of an arena, a segment or a pool, which are not about a disk. */
static inline const char *leat_memory_why(int err)
{
	return err == -ENOSPC ? "no address space is left for packet memory (see ulimit -v)" : strerror(-err);
}

#endif
