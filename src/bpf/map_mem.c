/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map_mem.c: memory of maps straight from the system, and the slow way into a short lock. Any thread.
 */
#include "bpf/map_mem.h"

#include <sched.h>
#include <sys/mman.h>

#include "base/heap.h"

#define SPINS 200
#define YIELDS 100000

void *leat_bpf_pages_alloc(uint64_t size)
{
	void *mem;

	if (leat_heap_fails_now() || size > UINT64_C(1) << 46)
		return NULL;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return mem == MAP_FAILED ? NULL : mem;
}

void leat_bpf_pages_free(void *mem, uint64_t size)
{
	if (mem)
		munmap(mem, size);
}

void leat_bpf_pages_dense(void *mem, uint64_t size)
{
	/* advice: without large pages it works, too */
	if (size >= 4u << 20)
		(void)madvise(mem, size, MADV_HUGEPAGE);
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/** Reads until it looks free, so that its line is not pulled back and forth; then tries. */
static bool try_once(uint32_t *lock)
{
	return !__atomic_load_n(lock, __ATOMIC_RELAXED) && !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

int leat_spin_lock_slow(uint32_t *lock)
{
	unsigned int i;

	for (i = 0; i < SPINS; i++) {
		if (try_once(lock))
			return 0;
		pause_cpu();
	}
	for (i = 0; i < YIELDS; i++) {
		if (try_once(lock))
			return 0;
		sched_yield();
	}
	return -EBUSY;
}
