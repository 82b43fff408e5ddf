/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c: control-path memory with a countdown to failure for tests. Any thread.
 */
#include "heap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_ulong fail_countdown;
static atomic_bool failed;

bool leat_heap_fails_now(void)
{
	unsigned long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	while (leat_unlikely(left)) {
		if (!atomic_compare_exchange_weak_explicit(&fail_countdown, &left, left - 1, memory_order_relaxed,
							   memory_order_relaxed))
			continue;
		if (left > 1)
			return false;
		atomic_store_explicit(&failed, true, memory_order_relaxed);
		return true;
	}
	return false;
}

void *leat_heap_alloc(size_t size)
{
	size_t rounded = (size + LEAT_CACHELINE - 1) & ~(size_t)(LEAT_CACHELINE - 1);

	if (rounded < size || leat_heap_fails_now())
		return NULL;
	return aligned_alloc(LEAT_CACHELINE, rounded ? rounded : LEAT_CACHELINE);
}

void *leat_heap_zalloc(size_t size)
{
	void *mem = leat_heap_alloc(size);

	if (mem)
		memset(mem, 0, size);
	return mem;
}

char *leat_heap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = leat_heap_zalloc(size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

void leat_heap_free(void *mem)
{
	free(mem);
}

void leat_heap_fail_nth(unsigned long nth)
{
	atomic_store_explicit(&failed, false, memory_order_relaxed);
	atomic_store_explicit(&fail_countdown, nth, memory_order_relaxed);
}

bool leat_heap_failed(void)
{
	return atomic_load_explicit(&failed, memory_order_relaxed);
}
