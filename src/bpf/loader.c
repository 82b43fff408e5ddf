/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader.c: starts leat-load on an object and takes the image from it. Control thread.
 *
 * Theory of operation. The child gets the descriptors of load/fds.h and nothing else: the object, an empty memfd, the
 * writing end of a pipe, and a kernel's BTF. It writes sentences into the pipe, the image into the memfd, and ends. The
 * parent believes nothing of it: it waits until the child is gone (or kills it when its time is up), and copies the
 * image before it is checked. Whatever happens to the child, by accident or by a hostile object, is a sentence in the
 * diag.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bpf/load/fds.h"
#include "bpf/prog.h"

#define TIMEOUT_DEFAULT_MS 10000u
#define SAID_MAX 32768u    /* bytes of sentences that are read */
#define SENTENCES_MAX 64u
#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
/* Descriptors that the child gets are moved above those that it gets them as. */
#define FD_ABOVE 16

enum { OBJECT, IMAGE, SAY, BTF, NULL_FILE, CHILD_FDS };

struct loader {
	struct leat_diag *diag;
	char program[PATH_MAX]; /* leat-load */
	int fd[CHILD_FDS];      /* for the child */
	int image;              /* our copy of fd[IMAGE] */
	int said_fd;            /* the reading end */
	char *said;             /* SAID_MAX + 1 bytes */
	size_t said_len;
	pid_t pid;
	int status;             /* of waitpid() */
	bool late;
};

/* ---- finding it ---- */

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The file called leat-load where the running program is. */
static bool beside_program(char *path, size_t size)
{
	static const char name[] = "leat-load";
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (len <= 0)
		return false;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + sizeof(name) > size)
		return false;
	memcpy(slash + 1, name, sizeof(name));
	return is_program(path);
}

static int find_program(struct loader *l, const char *wanted)
{
	size_t size = sizeof(l->program);

	if (!wanted)
		wanted = secure_getenv("LEAT_LOAD");
	if (!wanted && beside_program(l->program, size))
		return 0;
	if (snprintf(l->program, size, "%s", wanted ? wanted : LEAT_LOAD_PATH) < (int)size && is_program(l->program))
		return 0;
#ifdef LEAT_HAVE_LOAD
	leat_diag_add(l->diag, "%s, which reads eBPF objects, is not there or is no program", l->program);
	return -ENOENT;
#else
	leat_diag_add(l->diag, "leat was built without leat-load, which reads eBPF objects (meson: -Dbpf=enabled)");
	return -ENOSYS;
#endif
}

/* ---- descriptors ---- */

/* Takes @fd over, moved above FD_ABOVE. */
static int keep(struct loader *l, unsigned int idx, int fd)
{
	int err = fd < 0 ? -errno : 0;

	if (fd < 0)
		return err;
	l->fd[idx] = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);
	err = l->fd[idx] < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int open_object(struct loader *l, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;

	err = keep(l, OBJECT, fd);
	if (err) {
		leat_diag_add(l->diag, "cannot be opened: %s", strerror(-err));
		return err;
	}
	if (fstat(l->fd[OBJECT], &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		return 0;
	leat_diag_add(l->diag, "is no regular file");
	return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
}

/*
 * As the file of a kernel, or as a section of an ELF file; what is in it leat-load finds out. A device (/dev/null) is
 * for having none.
 */
static bool is_btf(int fd)
{
	static const uint16_t magic = 0xeb9f;
	uint8_t head[4];
	struct stat st;

	if (!fstat(fd, &st) && S_ISCHR(st.st_mode))
		return true;
	return pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       (!memcmp(head, &magic, sizeof(magic)) || !memcmp(head, "\177ELF", sizeof(head)));
}

static int open_btf(struct loader *l, const char *path)
{
	int err = keep(l, BTF, open(path ? path : KERNEL_BTF, O_RDONLY | O_CLOEXEC | O_NOCTTY));

	if (!err && (!path || is_btf(l->fd[BTF])))
		return 0;
	if (!err) {
		leat_diag_add(l->diag, "%s: is no BTF of a kernel", path);
		return -EINVAL;
	}
	if (path) {
		leat_diag_add(l->diag, "the kernel's BTF %s cannot be opened: %s", path, strerror(-err));
		return err;
	}
	return keep(l, BTF, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static int open_fds(struct loader *l, const char *path, const struct leat_bpf_object_opts *opts)
{
	int err, ends[2];

	err = open_object(l, path);
	if (!err)
		err = open_btf(l, opts->btf);
	if (!err)
		err = keep(l, NULL_FILE, open("/dev/null", O_RDWR | O_CLOEXEC));
	if (!err)
		err = keep(l, IMAGE, memfd_create("leat-image", MFD_CLOEXEC));
	if (err)
		return err;
	l->image = fcntl(l->fd[IMAGE], F_DUPFD_CLOEXEC, FD_ABOVE);
	if (l->image < 0 || pipe2(ends, O_CLOEXEC))
		return -errno;
	l->said_fd = ends[0];
	fcntl(l->said_fd, F_SETFL, O_NONBLOCK);
	return keep(l, SAY, ends[1]);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_child_fds(struct loader *l)
{
	unsigned int i;

	for (i = 0; i < CHILD_FDS; i++)
		close_fd(&l->fd[i]);
}

/* ---- the child ---- */

static int set_up_child(const struct loader *l, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr)
{
	static const struct {
		int to;
		unsigned int from;
	} moves[] = {
		{0, NULL_FILE}, {1, NULL_FILE}, {2, NULL_FILE},
		{LEAT_LOAD_OBJECT, OBJECT}, {LEAT_LOAD_IMAGE, IMAGE}, {LEAT_LOAD_SAY, SAY}, {LEAT_LOAD_BTF, BTF},
	};
	sigset_t none, all;
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(moves) / sizeof(moves[0]) && !err; i++)
		err = posix_spawn_file_actions_adddup2(actions, l->fd[moves[i].from], moves[i].to);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(actions, LEAT_LOAD_FDS_END);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -err;
}

static int start(struct loader *l)
{
	char name[] = "leat-load", *argv[] = {name, NULL}, *envp[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int err;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attr)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	err = set_up_child(l, &actions, &attr);
	if (!err)
		err = -posix_spawn(&l->pid, l->program, &actions, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		leat_diag_add(l->diag, "%s cannot be started: %s", l->program, strerror(-err));
	return err;
}

/* Reads what has been said so far; what is too much is thrown away. Returns false at the end. */
static bool read_said(struct loader *l)
{
	char waste[512];
	ssize_t n;

	for (;;) {
		if (l->said_len < SAID_MAX)
			n = read(l->said_fd, l->said + l->said_len, SAID_MAX - l->said_len);
		else
			n = read(l->said_fd, waste, sizeof(waste));
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		if (l->said_len < SAID_MAX)
			l->said_len += (size_t)n;
	}
}

/* Collects the child if it has ended. A program that collects all children itself leaves us without its status. */
static bool collect(struct loader *l, int flags)
{
	pid_t pid;

	do
		pid = waitpid(l->pid, &l->status, flags);
	while (pid < 0 && errno == EINTR);
	if (pid < 0)
		l->status = 0;
	return pid != 0;
}

/* Waits until the child is gone; kills it when @timeout_ms are over. */
static void wait_for_child(struct loader *l, unsigned int timeout_ms)
{
	uint64_t end = leat_clock_ns() + timeout_ms * UINT64_C(1000000), now;
	struct pollfd fd = {.fd = l->said_fd, .events = POLLIN};
	bool open = true;

	while (open && (now = leat_clock_ns()) < end) {
		poll(&fd, 1, (int)((end - now) / 1000000) + 1);
		open = read_said(l);
	}
	/* The pipe is closed: it ends at once, or means harm. */
	while (!collect(l, WNOHANG)) {
		if (leat_clock_ns() >= end) {
			l->late = true;
			kill(l->pid, SIGKILL);
			collect(l, 0);
			break;
		}
		poll(NULL, 0, 1);
	}
	read_said(l);
}

/* ---- what came of it ---- */

static void pass_sentences_on(struct loader *l)
{
	char *line = l->said, *end;
	unsigned int n;

	l->said[l->said_len] = '\0';
	for (n = 0; n < SENTENCES_MAX && *line; n++) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (*line)
			leat_diag_add(l->diag, "%s", line);
		line = end;
	}
}

static int judge(struct loader *l, unsigned int timeout_ms)
{
	unsigned int before = leat_diag_count(l->diag);
	int signal = WIFSIGNALED(l->status) ? WTERMSIG(l->status) : 0;
	const char *name = signal ? sigabbrev_np(signal) : NULL;

	if (l->late) {
		leat_diag_add(l->diag, "leat-load took longer than %u ms to read it and was stopped", timeout_ms);
		return -ETIMEDOUT;
	}
	pass_sentences_on(l);
	if (signal) {
		leat_diag_add(l->diag, "leat-load was ended by a signal (SIG%s) while reading it: the file is damaged, "
			      "too large or hostile", name ? name : "?");
		return -EINVAL;
	}
	if (!WIFEXITED(l->status) || WEXITSTATUS(l->status) || l->said_len) {
		if (leat_diag_count(l->diag) == before)
			leat_diag_add(l->diag, "leat-load gave up without a word (status %d)", WEXITSTATUS(l->status));
		return -EINVAL;
	}
	return 0;
}

static int copy_image(struct loader *l, void **image, size_t *len)
{
	struct stat st;
	uint8_t *p;
	size_t done = 0;
	ssize_t n;

	if (fstat(l->image, &st))
		return -errno;
	if (st.st_size <= 0 || st.st_size > (off_t)LEAT_IMAGE_SIZE_MAX) {
		leat_diag_add(l->diag, "leat-load gave an image of %lld bytes", (long long)st.st_size);
		return -EINVAL;
	}
	p = leat_heap_zalloc((size_t)st.st_size);
	if (!p)
		return -ENOMEM;
	while (done < (size_t)st.st_size) {
		n = pread(l->image, p + done, (size_t)st.st_size - done, (off_t)done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done < (size_t)st.st_size) {
		leat_heap_free(p);
		return -EIO;
	}
	*image = p;
	*len = done;
	return 0;
}

static struct loader *create(struct leat_diag *diag)
{
	struct loader *l = leat_heap_zalloc(sizeof(*l));
	unsigned int i;

	if (!l)
		return NULL;
	for (i = 0; i < CHILD_FDS; i++)
		l->fd[i] = -1;
	l->image = l->said_fd = -1;
	l->diag = diag;
	l->said = leat_heap_zalloc(SAID_MAX + 1);
	if (l->said)
		return l;
	leat_heap_free(l);
	return NULL;
}

int leat_bpf_loader_run(const char *path, const struct leat_bpf_object_opts *opts, struct leat_diag *diag,
			void **image, size_t *len)
{
	unsigned int timeout_ms = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_DEFAULT_MS;
	struct loader *l = create(diag);
	int err;

	if (!l)
		return -ENOMEM;
	err = open_fds(l, path, opts);
	if (!err)
		err = find_program(l, opts->loader);
	if (!err)
		err = start(l);
	close_child_fds(l);
	if (!err) {
		wait_for_child(l, timeout_ms);
		err = judge(l, timeout_ms);
	}
	if (!err)
		err = copy_image(l, image, len);
	close_fd(&l->image);
	close_fd(&l->said_fd);
	leat_heap_free(l->said);
	leat_heap_free(l);
	return err;
}
