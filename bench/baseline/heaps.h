/* SPDX-License-Identifier: BSD-3-Clause */
/* heaps.h: baseline: the heap of the C library, and jemalloc beside it in the same process. */
#ifndef LEAT_BENCH_BASELINE_HEAPS_H
#define LEAT_BENCH_BASELINE_HEAPS_H

#include <stdbool.h>
#include <stddef.h>

/** A heap by its two functions: both are calls into a shared library, as they are for every program. */
struct heap {
	void *(*alloc)(size_t size);
	void (*free)(void *mem);
};

/**
 * The C library's, told to keep memory that was freed instead of giving it back to the system: what it does by default
 * with thousands of buffers measures page faults.
 */
void heap_libc(struct heap *heap);
/** jemalloc, loaded beside it. False when it is not there or cannot be loaded. */
bool heap_jemalloc(struct heap *heap);

#endif
