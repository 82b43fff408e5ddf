/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_memory.c: memory for code: one memfd seen twice, once to write and once to run. No address is ever both. The view
 * to write goes before the first run, and the file is sealed then, so that nobody can open another. *control*.
 */
#include "bpf/engine/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* Linux 6.3: without it a system may refuse to map the file for running */
#endif

/** How far from the library's code a call by distance still reaches, with room to spare. */
#define NEAR (UINT64_C(1) << 30)

unsigned int leat_jit_without;

static int open_file(size_t size)
{
	int fd = memfd_create("leat-jit", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) /* an older kernel, where every memfd may be mapped for running */
		fd = memfd_create("leat-jit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -ENOMEM : -EACCES;
	if (!ftruncate(fd, (off_t)size))
		return fd;
	close(fd);
	return -ENOMEM;
}

static uint8_t *map(size_t size, int prot, int flags, int fd, const void *hint)
{
	void *mem = mmap((void *)(uintptr_t)hint, size, prot, flags, fd, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/**
 * The view to run. Through a descriptor that cannot write it can never be made writable; where there is no /proc to get
 * one from, a private view does, which at least needs to be asked for that.
 */
static uint8_t *map_to_run(const struct leat_jit_memory *mem, const void *hint)
{
	uint8_t *exec;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", mem->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return map(mem->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, mem->fd, hint);
	exec = map(mem->size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, hint);
	close(fd);
	return exec;
}

/**
 * A place to ask for: below the code that programs call, another one each time. Where it is taken the system gives
 * another, which does as well, but calls from there may be longer.
 */
static const void *near_the_library(size_t size)
{
	static uint64_t handed_out; /* atomic */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), code = (uint64_t)(uintptr_t)&leat_bpf_trap & ~(page - 1);
	uint64_t below;

	if (size > NEAR / 8 || code < 2 * NEAR)
		return NULL;
	below = __atomic_add_fetch(&handed_out, size + page, __ATOMIC_RELAXED) % (NEAR / 2);
	return (const void *)(uintptr_t)(code - NEAR / 4 - below);
}

int leat_jit_memory_open(struct leat_jit_memory *mem, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	*mem = (struct leat_jit_memory){ .size = (size + page - 1) & ~(page - 1), .fd = -1 };
	if (leat_jit_without & LEAT_JIT_NO_MEMORY)
		return -EACCES;
	mem->fd = open_file(mem->size);
	if (mem->fd < 0)
		return mem->fd;
	mem->exec = map_to_run(mem, near_the_library(mem->size));
	if (mem->exec)
		mem->write = map(mem->size, PROT_READ | PROT_WRITE, MAP_SHARED, mem->fd, NULL);
	if (mem->write)
		return 0;
	err = errno == ENOMEM ? -ENOMEM : -EACCES;
	leat_jit_memory_abandon(mem);
	return err;
}

int leat_jit_memory_finish(struct leat_jit_memory *mem, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), keep = (len + page - 1) & ~(page - 1);

	munmap(mem->write, mem->size);
	mem->write = NULL;
	if (keep < mem->size) {
		munmap(mem->exec + keep, mem->size - keep);
		if (ftruncate(mem->fd, (off_t)keep)) {
			/* the rest is not mapped, and costs nothing while it is not touched */
		}
	}
	mem->size = keep;
	if (fcntl(mem->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) {
		leat_jit_memory_abandon(mem);
		return -EACCES;
	}
	close(mem->fd);
	mem->fd = -1;
	return 0;
}

void leat_jit_memory_abandon(struct leat_jit_memory *mem)
{
	if (mem->write)
		munmap(mem->write, mem->size);
	if (mem->exec)
		munmap(mem->exec, mem->size);
	if (mem->fd >= 0)
		close(mem->fd);
	*mem = (struct leat_jit_memory){ .fd = -1 };
}
