/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: leat-load: makes the image of one eBPF object and ends. The library starts it (src/bpf/loader.c) with the
 * descriptors of fds.h and nothing else; the object is hostile, so this process first gives up what it does not need.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fds.h"
#include "load.h"
#include "sandbox.h"

/* One sentence, one line: what it quotes may hold anything. */
static void say(void *arg, const char *sentence)
{
	char line[1100];
	size_t i, len;

	(void)arg;
	len = (size_t)snprintf(line, sizeof(line) - 1, "%s", sentence);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	for (i = 0; i < len; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[len++] = '\n';
	if (write(LEAT_LOAD_SAY, line, len) < 0)
		return; /* the parent went away: nobody to tell */
}

static int read_all(int fd, struct load_bytes *to)
{
	static uint8_t buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0)
			return -errno;
		load_bytes_add(to, buf, (size_t)n);
		if (to->failed)
			return -EFBIG;
	}
	return 0;
}

static int write_all(int fd, const uint8_t *p, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, p, len);
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static int fail(const char *what, int err)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "leat-load cannot %s: %s", what, strerror(-err));
	say(NULL, sentence);
	return 1;
}

int main(void)
{
	static struct load load;
	struct load_bytes image = {0};
	int err;

	if (fcntl(LEAT_LOAD_OBJECT, F_GETFD) < 0 || fcntl(LEAT_LOAD_IMAGE, F_GETFD) < 0 ||
	    fcntl(LEAT_LOAD_SAY, F_GETFD) < 0) {
		fprintf(stderr, "leat-load is started by the library of leat, to read eBPF objects.\n");
		return 2;
	}
	err = load_sandbox_limit(LEAT_LOAD_FDS_END);
	if (!err)
		err = load_sandbox_close();
	if (err)
		return fail("give up its rights", err);
	err = read_all(LEAT_LOAD_OBJECT, &load.elf.file);
	if (err)
		return fail("read the object", err);
	load.say = say;
	load.btf_fd = is_file(LEAT_LOAD_BTF) ? LEAT_LOAD_BTF : -1;
	err = load_object(&load, &image);
	if (!err)
		err = write_all(LEAT_LOAD_IMAGE, image.p, image.len);
	if (err && !load.said)
		return fail("load the object", err);
	load_bytes_fini(&image);
	return err ? 1 : 0;
}
