/* SPDX-License-Identifier: BSD-3-Clause */
/* heaps.c: finds the heaps. */
#include "heaps.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void heap_libc(struct heap *heap)
{
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 25);
	mallopt(M_TOP_PAD, 64 << 20);
	heap->alloc = malloc;
	heap->free = free;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
/* A sanitizer's heap bears no other beside it. */
bool heap_jemalloc(struct heap *heap)
{
	(void)heap;
	return false;
}
#else
/** A function of a library: an object pointer becomes one to a function, which dlsym() is made for. */
static bool look_up(void *library, const char *name, void *function)
{
	void *sym = dlsym(library, name);

	memcpy(function, &sym, sizeof(sym));
	return sym;
}

bool heap_jemalloc(struct heap *heap)
{
	/* local: its malloc does not become ours. It stays loaded: threads may have caches of it. */
	void *library = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_LOCAL);

	return library && look_up(library, "malloc", &heap->alloc) && look_up(library, "free", &heap->free);
}
#endif
