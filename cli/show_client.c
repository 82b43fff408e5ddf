/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_client.c: a client of the control socket: one request after the other, each with its reply, on one connection.
 */
#include <errno.h>
#include <leat/control.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "bpf/btf/json.h"
#include "show.h"

/* Longest reply that is taken, and how long one is waited for: the datapath may be starting or closing ports. */
#define REPLY_MAX (1u << 30)
#define PATIENCE_S 10
/* Where a daemon's socket stands that another user runs. */
#define SYSTEM_SOCKET "/run/leat/control.sock"

/* ---- connecting ---- */

/* Returns a descriptor, or a negative errno. */
static int try_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int show_connect(const char *title, const char *socket)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = SYSTEM_SOCKET;
	int fd = -ENOENT;

	if (socket) {
		snprintf(path, sizeof(path), "%s", socket);
		fd = try_connect(socket);
	} else {
		if (!leat_control_default_path(path, sizeof(path)))
			fd = try_connect(path);
		if ((fd == -ENOENT || fd == -ECONNREFUSED) && !getenv("LEAT_CONTROL")) {
			snprintf(path, sizeof(path), "%s", SYSTEM_SOCKET);
			fd = try_connect(path);
		}
	}
	if (fd >= 0)
		return fd;
	fprintf(stderr, "leat %s: %s: %s%s\n", title, path, strerror(-fd),
		fd == -ENOENT || fd == -ECONNREFUSED ? " (is leat run running? see --socket)" : "");
	return -1;
}

/* ---- asking ---- */

static int send_line(int fd, const char *text)
{
	size_t len = strlen(text), off = 0;
	ssize_t n;

	while (off < len) {
		n = send(fd, text + off, len - off, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		off += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Receives up to the end of a line, which is all that comes: nothing more was asked for. free() it. */
static int receive_line(int fd, char **line)
{
	size_t len = 0, room = 1u << 16;
	char *text = malloc(room), *more;
	ssize_t n;
	int err = text ? 0 : -ENOMEM;

	while (!err && !(len && text[len - 1] == '\n')) {
		if (len + 1 == room) {
			room *= 2;
			more = room > REPLY_MAX ? NULL : realloc(text, room);
			if (!more) {
				err = -EMSGSIZE;
				break;
			}
			text = more;
		}
		n = recv(fd, text + len, room - 1 - len, 0);
		if (!n)
			err = -ECONNRESET;
		else if (n < 0 && errno != EINTR)
			err = errno == EAGAIN ? -ETIMEDOUT : -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	if (err) {
		free(text);
		return err;
	}
	text[len] = '\0';
	*line = text;
	return 0;
}

/* The reply in a line, or NULL with what is said instead at standard error. */
static json_t *open_reply(const char *title, const char *line)
{
	json_t *whole = NULL, *reply = NULL;
	const char *error;

	if (!leat_btf_json_load(line, NULL, &whole))
		reply = json_incref(json_object_get(whole, "reply"));
	error = json_string_value(json_object_get(whole, "error"));
	if (!reply)
		fprintf(stderr, "leat %s: %s\n", title, error ? error : "the reply makes no sense");
	json_decref(whole);
	return reply;
}

json_t *show_ask(const char *title, int fd, json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT), *line = NULL;
	json_t *reply = NULL;
	int err = text ? send_line(fd, text) : -ENOMEM;

	if (!err)
		err = send_line(fd, "\n");
	if (!err)
		err = receive_line(fd, &line);
	if (err)
		fprintf(stderr, "leat %s: no reply: %s\n", title, strerror(-err));
	else
		reply = open_reply(title, line);
	free(line);
	free(text);
	json_decref(request);
	return reply;
}

/* Programs may change the map while it is walked over: a walk that begins anew each time must end, too. */
static bool is_enough(const json_t *whole)
{
	json_int_t entries = json_integer_value(json_object_get(json_object_get(whole, "map"), "max_entries"));

	return (json_int_t)json_array_size(json_object_get(whole, "elements")) > 2 * entries;
}

json_t *show_ask_map(const char *title, int fd, const char *name, const char *prog)
{
	json_t *whole = NULL, *request, *part, *next = NULL;

	do {
		request = json_pack("{s:s, s:s, s:s*, s:O*}", "request", "map", "name", name, "program", prog, "after",
				    next);
		part = show_ask(title, fd, request);
		json_decref(next);
		next = part ? json_incref(json_object_get(part, "next")) : NULL;
		if (!part) {
			json_decref(whole);
			return NULL;
		}
		if (!whole) {
			whole = part;
			continue;
		}
		json_array_extend(json_object_get(whole, "elements"), json_object_get(part, "elements"));
		json_decref(part);
	} while (next && !is_enough(whole));
	json_decref(next);
	json_object_del(whole, "next");
	return whole;
}
