/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.c: the files that libbpf opens. The linker sends its calls of open() and the like here (--wrap); nothing is
 * opened any more, and the sandbox would not allow it. Calls outside of a load are not libbpf's and go through.
 *
 *   LOAD_KERNEL_BTF
 *	the BTF that CO-RE relocates against: a kernel's, which the parent opened; or the object's own, so that
 *	everything stands where the compiler saw it
 *   /sys/kernel/btf/vmlinux
 *	the object's own BTF: so every kernel function and variable that it declares is found, and reaches PROG_LOAD
 *	with a number whose name we know
 *   /sys/devices/system/cpu/possible
 *	as many CPUs as programs can see
 *   /proc/kallsyms, /proc/config.gz
 *	empty
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <leat/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "load.h"

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_faccessat(int dir, const char *path, int mode, int flags);
gzFile __wrap_gzopen64(const char *path, const char *mode);

/* A descriptor that reads @len bytes at @data. */
static int fd_of(const void *data, size_t len)
{
	int fd = memfd_create("leat-load", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (pwrite(fd, data, len, 0) == (ssize_t)len)
		return fd;
	close(fd);
	errno = EIO;
	return -1;
}

static int kernel_btf(void)
{
	int fd;

	if (load_current->btf_fd < 0)
		return fd_of(load_current->own_btf, load_current->own_btf_len);
	fd = fcntl(load_current->btf_fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static int own_btf(void)
{
	return fd_of(load_current->own_btf, load_current->own_btf_len);
}

static int cpus(void)
{
	char text[16];

	snprintf(text, sizeof(text), "0-%u\n", LEAT_BPF_CPUS_MAX - 1);
	return fd_of(text, strlen(text));
}

static int empty(void)
{
	return fd_of("", 0);
}

static const struct file {
	const char *path;
	int (*open)(void);
} files[] = {
	{LOAD_KERNEL_BTF, kernel_btf},
	{"/sys/kernel/btf/vmlinux", own_btf},
	{"/sys/devices/system/cpu/possible", cpus},
	{"/proc/kallsyms", empty},
	{"/proc/config.gz", empty},
};

static const struct file *find(const char *path)
{
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	errno = ENOENT;
	return NULL;
}

int __wrap_open64(const char *path, int flags, ...)
{
	const struct file *file;
	unsigned int mode;
	va_list args;

	if (!load_current) {
		va_start(args, flags);
		mode = flags & O_CREAT ? va_arg(args, unsigned int) : 0;
		va_end(args);
		return __real_open64(path, flags, mode);
	}
	file = find(path);
	return file ? file->open() : -1;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	const struct file *file;
	FILE *stream;
	int fd;

	if (!load_current)
		return __real_fopen64(path, mode);
	file = find(path);
	fd = file ? file->open() : -1;
	if (fd < 0)
		return NULL;
	stream = fdopen(fd, "r");
	if (!stream)
		close(fd);
	return stream;
}

int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
	(void)dir;
	(void)mode;
	(void)flags;
	return find(path) ? 0 : -1;
}

gzFile __wrap_gzopen64(const char *path, const char *mode)
{
	const struct file *file = find(path);
	int fd = file ? file->open() : -1;
	gzFile stream;

	if (fd < 0)
		return NULL;
	stream = gzdopen(fd, mode);
	if (!stream)
		close(fd);
	return stream;
}
