/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_control.h: for unit tests: a server of the control socket and its clients in one thread: it is served while it
 * has something to do. Include after <cmocka.h>.
 */
#ifndef LEAT_CTL_TEST_CONTROL_H
#define LEAT_CTL_TEST_CONTROL_H

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/control.h"

/* Ten packets come in at each of two ports: one drops them by its program, the other passes them to nobody. */
#define PORTS                                          \
	"ports:\n"                                     \
	"  a: { type: pktgen, count: 10, size: 100 }\n" \
	"  b: { type: pktgen, count: 10, size: 100 }\n" \
	"  c: { type: sink }\n"                         \
	"programs: { no: { builtin: drop } }\n"         \
	"attach: { a: no }\n"

static char folder[] = "/tmp/leat-control-XXXXXX";
static char path[64];

struct server {
	struct leat_datapath *dp;
	struct leat_control *control;
};

static inline struct leat_datapath *load(const char *text)
{
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_datapath *dp = NULL;

	assert_int_equal(leat_datapath_load_text(text, strlen(text), "t.yaml", &opts, NULL, &dp), 0);
	return dp;
}

/* A configuration whose socket is @path, with more of that section. */
static inline struct leat_datapath *load_at(const char *more)
{
	char text[512];

	snprintf(text, sizeof(text), PORTS "control: { path: %s%s }\n", path, more);
	return load(text);
}

static inline struct server start(void)
{
	struct server s = { .dp = load_at("") };

	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_non_null(s.control);
	return s;
}

static inline void stop(struct server *s)
{
	leat_control_close(s->control);
	assert_int_equal(access(path, F_OK), -1);
	leat_datapath_destroy(s->dp);
}

/* Serves as long as there is something to do, and not for ever. */
static inline void serve(struct server *s)
{
	struct pollfd pfd = { .fd = leat_control_fd(s->control), .events = POLLIN };
	int rounds;

	for (rounds = 0; rounds < 10000 && poll(&pfd, 1, 0) > 0; rounds++)
		leat_control_serve(s->control);
	assert_true(rounds < 10000);
}

static inline int client(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static inline void say(int fd, const char *text, size_t len)
{
	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

/* What has come, as text; "" when the server has closed. */
static inline const char *hear(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

static inline void assert_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	assert_true(!n || (n < 0 && errno == ECONNRESET));
	close(fd);
}

/* The reply to one request, which must be one line of JSON. */
static inline json_t *ask(struct server *s, const char *request, size_t len)
{
	int fd = client();
	const char *line;
	json_t *reply;

	say(fd, request, len);
	say(fd, "\n", 1);
	serve(s);
	line = hear(fd);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	reply = json_loads(line, 0, NULL);
	assert_non_null(reply);
	close(fd);
	serve(s);
	return reply;
}

static inline json_t *good_reply(struct server *s, const char *request)
{
	json_t *whole = ask(s, request, strlen(request)), *reply = json_object_get(whole, "reply");

	assert_non_null(reply);
	json_incref(reply);
	json_decref(whole);
	return reply;
}

/* ---- the folder of the socket: set-up and teardown of a group ---- */

static inline int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	return 0;
}

static inline int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#endif
