/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sandbox.c: what this process may do: compute, use memory, read and write the descriptors it has. It opens, connects
 * to, and starts nothing. A system call that is not in the list fails with EPERM.
 *
 * The sanitizers need more address space and more system calls than that; a program built with them has limits of time
 * and files only.
 */
#include "sandbox.h"

#include <errno.h>
#include <seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static const struct limit {
	int resource;
	rlim_t value;
	bool sanitized; /* also set in a sanitized program */
} limits[] = {
	{RLIMIT_AS, 512ul << 20, false},
	{RLIMIT_CPU, 10, true},
	{RLIMIT_CORE, 0, true},
	{RLIMIT_FSIZE, LEAT_IMAGE_SIZE_MAX, true}, /* of memfds: nothing else can be written */
	{RLIMIT_NOFILE, LOAD_FDS_MAX, true},
};

static const int allowed[] = {
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(close),
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(fcntl), SCMP_SYS(dup3), SCMP_SYS(memfd_create),
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(brk),
	SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(uname), SCMP_SYS(clock_gettime), SCMP_SYS(getpid),
	SCMP_SYS(gettid), SCMP_SYS(tgkill), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(exit), SCMP_SYS(exit_group),
};

int load_sandbox_limit(unsigned int first_fd)
{
	struct rlimit limit;
	size_t i;

	if (close_range(first_fd, ~0u, 0) && errno != ENOSYS)
		return -errno;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if ((SANITIZED && !limits[i].sanitized) || getrlimit((__rlimit_resource_t)limits[i].resource, &limit))
			continue;
		if (limit.rlim_max > limits[i].value)
			limit.rlim_max = limits[i].value;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit))
			return -errno;
	}
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int load_sandbox_close(void)
{
	scmp_filter_ctx ctx;
	size_t i;
	int err = 0;

	if (SANITIZED)
		return 0;
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return -ENOMEM;
	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}
