/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h: control-path memory. Every allocation of the library outside packet memory goes through here, so that a
 * test can let each of them fail in turn.
 */
#ifndef LEAT_BASE_HEAP_H
#define LEAT_BASE_HEAP_H

#include <leat/base.h>

/** Zeroed memory aligned to a cache line, or NULL. Put back with leat_heap_free(). *any*. */
void *leat_heap_zalloc(size_t size);
/** The same with whatever was there. */
void *leat_heap_alloc(size_t size);
/** A copy of @text, or NULL. */
char *leat_heap_strdup(const char *text);
void leat_heap_free(void *mem);

/** Lets the @nth allocation from now (1: the next) fail, once; 0 ends it. For tests, which are alone in the process. */
void leat_heap_fail_nth(unsigned long nth);
/** Whether the allocation that was to fail has been reached. */
bool leat_heap_failed(void);
/** Counts as an allocation and says whether it is the one to fail. For memory that comes straight from the system. */
bool leat_heap_fails_now(void);

#endif
