/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_socket.c: the listening socket of control.c: where it stands, who may connect, and what becomes of one that
 * was left behind. Control thread.
 *
 * Two processes that start at the same time must not both find a stale socket and one of them remove what the other has
 * just made. So the folder is locked (flock) from the look to the moment at which the new socket listens. A socket that
 * accepts or would have to wait is in use; only one that refuses is stale. The socket has no permissions until it has
 * its owner and listens.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl/control.h"

#define BACKLOG 16
/** How often the lock of the folder is tried, each 10 ms: another leat needs it for a moment only. */
#define LOCK_TRIES 100
/** Bytes for the records of one user or group. */
#define RECORD_SIZE 16384

/** Why it went wrong. */
struct reason {
	char *text;
	size_t size;
};

/** Says it, and returns @err. */
static int because(const struct reason *why, int err, const char *fmt, ...) LEAT_PRINTF(3, 4);

static int because(const struct reason *why, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, why->size, fmt, args);
	va_end(args);
	return err;
}

/* ---- whose it is ---- */

static bool read_number(const char *text, uint32_t *number)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	value = strtoull(text, &end, 10);
	*number = (uint32_t)value;
	return !*end && value < UINT32_MAX; /* which means "leave it" */
}

static int find_user(const char *name, uint32_t *uid, const struct reason *why)
{
	struct passwd record, *found = NULL;
	char buf[RECORD_SIZE];

	if (!name || read_number(name, uid))
		return 0;
	getpwnam_r(name, &record, buf, sizeof(buf), &found);
	if (!found)
		return because(why, -ENOENT, "there is no user '%s'", name);
	*uid = found->pw_uid;
	return 0;
}

static int find_group(const char *name, uint32_t *gid, const struct reason *why)
{
	struct group record, *found = NULL;
	char buf[RECORD_SIZE];

	if (!name || read_number(name, gid))
		return 0;
	getgrnam_r(name, &record, buf, sizeof(buf), &found);
	if (!found)
		return because(why, -ENOENT, "there is no group '%s'", name);
	*gid = found->gr_gid;
	return 0;
}

/* ---- what is there already ---- */

static int lock_folder(const char *path, const struct reason *why)
{
	const struct timespec pause = { 0, 10 * 1000 * 1000 };
	char copy[sizeof(((struct leat_control_socket *)0)->path)];
	int fd, tries, err;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return because(why, -errno, "the folder of '%s' cannot be opened: %s", path, strerror(errno));
	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		nanosleep(&pause, NULL);
	}
	err = -errno;
	close(fd);
	return because(why, err, "the folder of '%s' cannot be locked: %s", path, strerror(-err));
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return addr;
}

/** Whether somebody listens: 0, or what connecting said. */
static int try_to_connect(const char *path)
{
	struct sockaddr_un addr = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	close(fd);
	return err;
}

/** Removes a socket that nobody listens on. */
static int make_place(const char *path, const struct reason *why)
{
	struct stat st;
	int err;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : because(why, -errno, "'%s': %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return because(why, -EEXIST, "'%s' is there and is no socket", path);
	err = try_to_connect(path);
	if (!err || err == -EAGAIN) /* its queue is full: it is slow, not dead */
		return because(why, -EADDRINUSE, "'%s' is in use by another process", path);
	if (err != -ECONNREFUSED)
		return because(why, err, "'%s' cannot be looked at: %s", path, strerror(-err));
	if (unlink(path))
		return because(why, -errno, "'%s' was left behind and cannot be removed: %s", path, strerror(errno));
	return 0;
}

/* ---- the new one ---- */

static int set_up(const struct leat_config_control *config, struct leat_control_socket *sock, const struct reason *why)
{
	uint32_t uid = UINT32_MAX, gid = UINT32_MAX;
	struct stat st;
	int err = find_user(config->owner, &uid, why);

	if (!err)
		err = find_group(config->group, &gid, why);
	if (err)
		return err;
	if (fchownat(AT_FDCWD, sock->path, uid, gid, AT_SYMLINK_NOFOLLOW))
		return because(why, -errno, "'%s' cannot be given to its owner: %s", sock->path, strerror(errno));
	if (lstat(sock->path, &st) || listen(sock->fd, BACKLOG) || chmod(sock->path, config->mode))
		return because(why, -errno, "'%s': %s", sock->path, strerror(errno));
	sock->dev = st.st_dev;
	sock->ino = st.st_ino;
	return 0;
}

static int bind_and_listen(const struct leat_config_control *config, struct leat_control_socket *sock,
			   const struct reason *why)
{
	struct sockaddr_un addr = address_of(sock->path);
	int err;

	sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock->fd < 0)
		return because(why, -errno, "a socket cannot be made: %s", strerror(errno));
	/* bind() makes the file with the mode that the socket has: nobody connects before it has its owner */
	if (fchmod(sock->fd, 0) || bind(sock->fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = because(why, -errno, "'%s' cannot be made: %s", sock->path, strerror(errno));
		close(sock->fd);
		return err;
	}
	err = set_up(config, sock, why);
	if (err) {
		unlink(sock->path);
		close(sock->fd);
	}
	return err;
}

int leat_control_listen(const struct leat_config_control *config, const char *path, struct leat_control_socket *sock,
			char *why_text, size_t why_size)
{
	const struct reason why = { why_text, why_size };
	int lock, err;

	if (strlen(path) >= sizeof(sock->path))
		return because(&why, -ENAMETOOLONG, "'%.40s...' is too long for a socket", path);
	snprintf(sock->path, sizeof(sock->path), "%s", path);
	lock = lock_folder(path, &why);
	if (lock < 0)
		return lock;
	err = make_place(path, &why);
	if (!err)
		err = bind_and_listen(config, sock, &why);
	close(lock);
	return err;
}

void leat_control_unlisten(struct leat_control_socket *sock)
{
	struct stat st;

	if (!lstat(sock->path, &st) && st.st_dev == sock->dev && st.st_ino == sock->ino)
		unlink(sock->path);
	close(sock->fd);
}

/* ---- where it stands if nothing else is said ---- */

static int write_path(char *buf, size_t size, const char *folder, const char *name)
{
	int len = snprintf(buf, size, "%s%s", folder, name);

	return len > 0 && (size_t)len < size ? 0 : -ENAMETOOLONG;
}

int leat_control_default_path(char *buf, size_t size)
{
	const char *said = getenv("LEAT_CONTROL"), *runtime = getenv("XDG_RUNTIME_DIR");

	if (said)
		return *said ? write_path(buf, size, said, "") : -ENOENT;
	if (!geteuid())
		return write_path(buf, size, "/run/leat", "/control.sock");
	return runtime && *runtime == '/' ? write_path(buf, size, runtime, "/leat/control.sock") : -ENOENT;
}
