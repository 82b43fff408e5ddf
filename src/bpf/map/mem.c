/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c: memory of maps straight from the system, and the slow way into a short lock. Any thread.
 */
#include "bpf/map/mem.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"

#define SPINS 200
unsigned int leat_spin_yields = 100000;

/* Bits of /proc/PID/pagemap. mincore(2) will not do: it says of a page in swap that it is not there. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)

void *leat_bpf_pages_alloc(uint64_t size)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	void *mem;

	if (leat_heap_fails_now() || size > all)
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

void leat_bpf_used_init(struct leat_bpf_used *used)
{
	*used = (struct leat_bpf_used){
		.fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.page_size = (uint64_t)sysconf(_SC_PAGESIZE),
	};
}

void leat_bpf_used_fini(struct leat_bpf_used *used)
{
	if (used->fd >= 0)
		close(used->fd);
	used->fd = -1;
}

/** Reads what the system says of @page and those behind it; false when it says nothing. */
static bool read_pages(struct leat_bpf_used *used, uint64_t page)
{
	ssize_t len;

	if (used->fd < 0)
		return false;
	if (page - used->first < used->n)
		return true;
	len = pread(used->fd, used->entry, sizeof(used->entry), (off_t)(page * sizeof(used->entry[0])));
	used->first = page;
	used->n = len > 0 ? (uint64_t)len / sizeof(used->entry[0]) : 0;
	return used->n;
}

const uint8_t *leat_bpf_used_next(struct leat_bpf_used *used, const uint8_t *mem, const uint8_t *end)
{
	uint64_t addr = (uint64_t)(uintptr_t)mem, page = addr / used->page_size, start = page;
	uint64_t end_page = ((uint64_t)(uintptr_t)end + used->page_size - 1) / used->page_size;

	for (; page < end_page; page++)
		if (!read_pages(used, page) || used->entry[page - used->first] & (PAGE_PRESENT | PAGE_SWAPPED))
			return page == start ? mem : mem + (page * used->page_size - addr);
	return end;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
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
	for (i = 0; i < leat_spin_yields; i++) {
		if (try_once(lock))
			return 0;
		sched_yield();
	}
	return -EBUSY;
}
