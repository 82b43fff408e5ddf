/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_test.c: the control socket: what it answers, what becomes of clients that mean harm (long lines, lines that
 * are no requests, too many connections, readers that do not read, connections half closed), and where it stands.
 * Server and clients are one thread: the server is served while it has something to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/heap.h"
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

static struct leat_datapath *load(const char *text)
{
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_datapath *dp = NULL;

	assert_int_equal(leat_datapath_load_text(text, strlen(text), "t.yaml", &opts, NULL, &dp), 0);
	return dp;
}

/* A configuration whose socket is @path, with more of that section. */
static struct leat_datapath *load_at(const char *more)
{
	char text[512];

	snprintf(text, sizeof(text), PORTS "control: { path: %s%s }\n", path, more);
	return load(text);
}

static struct server start(void)
{
	struct server s = { .dp = load_at("") };

	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_non_null(s.control);
	return s;
}

static void stop(struct server *s)
{
	leat_control_close(s->control);
	assert_int_equal(access(path, F_OK), -1);
	leat_datapath_destroy(s->dp);
}

/* Serves as long as there is something to do, and not for ever. */
static void serve(struct server *s)
{
	struct pollfd pfd = { .fd = leat_control_fd(s->control), .events = POLLIN };
	int rounds;

	for (rounds = 0; rounds < 10000 && poll(&pfd, 1, 0) > 0; rounds++)
		leat_control_serve(s->control);
	assert_true(rounds < 10000);
}

static int client(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void say(int fd, const char *text, size_t len)
{
	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

/* What has come, as text; "" when the server has closed. */
static const char *hear(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

static void assert_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	assert_true(!n || (n < 0 && errno == ECONNRESET));
	close(fd);
}

/* The reply to one request, which must be one line of JSON. */
static json_t *ask(struct server *s, const char *request, size_t len)
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

static json_t *good_reply(struct server *s, const char *request)
{
	json_t *whole = ask(s, request, strlen(request)), *reply = json_object_get(whole, "reply");

	assert_non_null(reply);
	json_incref(reply);
	json_decref(whole);
	return reply;
}

static void assert_refused(struct server *s, const char *request, size_t len, const char *part)
{
	json_t *reply = ask(s, request, len);
	const char *error = json_string_value(json_object_get(reply, "error"));

	if (!error || !strstr(error, part))
		fail_msg("%.100s: says '%s', not '%s'", request, error ? error : "nothing", part);
	assert_int_equal(json_object_size(reply), 1);
	json_decref(reply);
}

/* ---- what is answered ---- */

static void open_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
}

static void close_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_netdev_close(dev);
}

static void run_packets(struct leat_datapath *dp)
{
	struct leat_net *net = leat_datapath_net(dp);
	int idle = 0, rounds = 0;

	leat_net_for_each_port(net, open_port, NULL);
	while (idle < 3 && ++rounds < 100000)
		idle = leat_worker_poll(leat_net_worker(net, 0)) ? 0 : idle + 1;
}

static json_t *member(json_t *reply, const char *list, size_t i, const char *name)
{
	json_t *value = json_object_get(json_array_get(json_object_get(reply, list), i), name);

	if (!value)
		fail_msg("no %s[%zu].%s", list, i, name);
	return value;
}

static void assert_number(json_t *reply, const char *list, size_t i, const char *name, int number)
{
	assert_int_equal(json_integer_value(member(reply, list, i, name)), number);
}

static void assert_text(json_t *reply, const char *list, size_t i, const char *name, const char *text)
{
	assert_string_equal(json_string_value(member(reply, list, i, name)), text);
}

static void check_ports(struct server *s)
{
	json_t *reply = good_reply(s, "{\"request\": \"port\"}"), *queue;

	assert_int_equal(json_array_size(json_object_get(reply, "ports")), 3);
	assert_text(reply, "ports", 0, "name", "a");
	assert_text(reply, "ports", 0, "type", "pktgen");
	assert_text(reply, "ports", 0, "state", "finished");
	assert_text(reply, "ports", 2, "state", "up");
	assert_number(reply, "ports", 2, "index", 3);
	assert_number(reply, "ports", 0, "rx_packets", 10);
	assert_number(reply, "ports", 0, "rx_bytes", 1000);
	assert_number(reply, "ports", 0, "drops", 10);
	assert_string_equal(json_string_value(json_array_get(member(reply, "ports", 0, "programs"), 0)), "no");
	queue = json_array_get(member(reply, "ports", 0, "rx_queues"), 0);
	assert_int_equal(json_integer_value(json_object_get(queue, "packets")), 10);
	assert_int_equal(json_integer_value(json_object_get(queue, "worker")), 0);
	json_decref(reply);

	reply = good_reply(s, "{\"request\": \"port\", \"name\": \"b\"}");
	assert_int_equal(json_array_size(json_object_get(reply, "ports")), 1);
	assert_text(reply, "ports", 0, "name", "b");
	json_decref(reply);
}

static void check_drops(struct server *s)
{
	json_t *reply = good_reply(s, "{\"request\": \"drops\"}");

	assert_int_equal(json_array_size(json_object_get(reply, "drops")), 2);
	assert_text(reply, "drops", 0, "port", "a");
	assert_text(reply, "drops", 0, "side", "rx");
	assert_text(reply, "drops", 0, "reason", "xdp_drop");
	assert_number(reply, "drops", 0, "queue", 0);
	assert_number(reply, "drops", 0, "count", 10);
	assert_text(reply, "drops", 1, "port", "b");
	assert_text(reply, "drops", 1, "reason", "no_handler");
	json_decref(reply);
	reply = good_reply(s, "{\"request\": \"drops\", \"port\": \"c\"}");
	assert_int_equal(json_array_size(json_object_get(reply, "drops")), 0);
	json_decref(reply);
}

static void check_rest(struct server *s)
{
	json_t *reply = good_reply(s, "{\"request\": \"prog\", \"name\": \"no\"}");

	assert_text(reply, "programs", 0, "builtin", "drop");
	assert_number(reply, "programs", 0, "runs", 10);
	assert_int_equal(json_integer_value(json_object_get(member(reply, "programs", 0, "verdicts"), "drop")), 10);
	assert_string_equal(json_string_value(json_array_get(member(reply, "programs", 0, "ports"), 0)), "a");
	json_decref(reply);

	reply = good_reply(s, "{\"request\": \"stats\"}");
	assert_string_equal(json_string_value(json_object_get(reply, "file")), "t.yaml");
	assert_int_equal(json_integer_value(json_object_get(reply, "pid")), getpid());
	assert_int_equal(json_integer_value(json_object_get(reply, "workers")), 1);
	assert_number(reply, "ports", 1, "drops", 10);
	json_decref(reply);

	reply = good_reply(s, "{\"request\": \"pool\"}");
	assert_int_equal(json_integer_value(json_object_get(reply, "granule")), 512);
	assert_true(json_array_size(json_object_get(reply, "pools")) >= 2);
	assert_number(reply, "pools", 0, "outstanding", 0);
	json_decref(reply);

	reply = good_reply(s, "{\"request\": \"map\"}");
	assert_int_equal(json_array_size(json_object_get(reply, "maps")), 0);
	json_decref(reply);
}

static void answers_are_right(void **state)
{
	struct server s = start();

	(void)state;
	run_packets(s.dp);
	check_ports(&s);
	check_drops(&s);
	check_rest(&s);
	leat_net_for_each_port(leat_datapath_net(s.dp), close_port, NULL);
	assert_int_equal(leat_net_outstanding(leat_datapath_net(s.dp)), 0);
	stop(&s);
}

static void each_request_has_one_reply_in_order(void **state)
{
	struct server s = start();
	char text[4000];
	size_t len = 0, i;
	const char *line;
	int fd = client();
	json_t *reply;

	(void)state;
	for (i = 0; i < 50; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"{\"request\": \"drops\", \"id\": %zu}\n\r\n\n", i);
	for (i = 0; i < 20; i++) { /* byte by byte, then the rest at once */
		say(fd, text + i, 1);
		serve(&s);
		assert_string_equal(hear(fd), "");
	}
	say(fd, text + 20, len - 20);
	serve(&s);
	line = hear(fd);
	for (i = 0; i < 50; i++, line = strchr(line, '\n') + 1) {
		reply = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
		assert_int_equal(json_integer_value(json_object_get(reply, "id")), i);
		json_decref(reply);
	}
	assert_string_equal(line, "");
	close(fd);
	serve(&s);
	stop(&s);
}

static void ids_come_back(void **state)
{
	static const char zero[] = "{\"request\": \"nothing\", \"id\": \"a\\u0000\"}";
	static const char good[] = "{\"request\": \"nothing\", \"id\": \"\xc3\xa4\\\"\"}";
	struct server s = start();
	json_t *reply = ask(&s, zero, sizeof(zero) - 1);

	(void)state;
	assert_null(json_object_get(reply, "id")); /* a text with a 0 in it is no JSON to us */
	json_decref(reply);
	reply = ask(&s, good, sizeof(good) - 1);
	assert_string_equal(json_string_value(json_object_get(reply, "id")), "\xc3\xa4\"");
	assert_non_null(json_object_get(reply, "error"));
	json_decref(reply);
	stop(&s);
}

/* ---- hostile clients ---- */

static void lines_that_are_no_requests(void **state)
{
	static const struct {
		const char *line, *part;
	} bad[] = {
		{ "x", "not JSON" },
		{ "{", "not JSON" },
		{ "{}{}", "not JSON" },
		{ "{\"request\": \"stats\"} {", "not JSON" },
		{ "{\"request\": \"stats\", \"request\": \"pool\"}", "not JSON" },
		{ "\"stats\"", "not JSON" },
		{ "null", "not JSON" },
		{ "\xff\xfe{}", "not JSON" },
		{ "{\"request\": \"\xc3\x28\"}", "not JSON" },
		{ "{\"request\": \"\\ud800\"}", "not JSON" },
		{ "{\"id\": 99999999999999999999999, \"request\": \"stats\"}", "not JSON" },
		{ "[]", "a request is an object" },
		{ "[{\"request\": \"stats\"}]", "a request is an object" },
		{ "{}", "\"request\" is missing" },
		{ "{\"request\": 1}", "\"request\" is missing or no text" },
		{ "{\"request\": {\"request\": \"stats\"}}", "\"request\" is missing or no text" },
		{ "{\"request\": \"\"}", "unknown request ''" },
		{ "{\"request\": \"Stats\"}", "known: stats, port, pool, prog, map, drops" },
		{ "{\"request\": \"%s%s%n\"}", "unknown request '%s%s%n'" },
		{ "{\"request\": \"stats\", \"id\": {}}", "\"id\" must be" },
		{ "{\"request\": \"stats\", \"id\": 1.5}", "\"id\" must be" },
		{ "{\"request\": \"stats\", \"name\": \"a\"}", "unknown member 'name'" },
		{ "{\"request\": \"port\", \"name\": 1}", "\"name\" must be a text" },
		{ "{\"request\": \"port\", \"name\": \"\"}", "there is no port ''" },
		{ "{\"request\": \"port\", \"name\": \"../a\"}", "there is no port '../a'" },
		{ "{\"request\": \"drops\", \"port\": \"z\"}", "there is no port 'z'" },
		{ "{\"request\": \"prog\", \"name\": \"a\"}", "there is no program 'a'" },
		{ "{\"request\": \"map\", \"name\": \"a\"}", "there is no map 'a'" },
		{ "{\"request\": \"map\", \"name\": \"a\", \"program\": \"no\"}", "there is no map 'a'" },
		{ "{\"request\": \"map\", \"name\": \"a\", \"program\": \"x\"}", "there is no program 'x'" },
		{ "{\"request\": \"map\", \"program\": \"no\"}", "\"name\" is missing" },
	};
	static char nested[4000];
	struct server s = start();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(&s, bad[i].line, strlen(bad[i].line), bad[i].part);
	assert_refused(&s, "{\"request\": \"stats\0\"}", 21, "not JSON");
	memset(nested, '[', sizeof(nested));
	assert_refused(&s, nested, sizeof(nested), "not JSON");
	stop(&s);
}

static void lines_end_somewhere(void **state)
{
	static char line[2 * LEAT_CONTROL_LINE_MAX];
	struct server s = start();
	int fd = client();

	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"request\": \"drops\"}", 20);
	line[LEAT_CONTROL_LINE_MAX - 1] = '\n'; /* the longest that is taken */
	say(fd, line, LEAT_CONTROL_LINE_MAX);
	serve(&s);
	assert_string_equal(hear(fd), "{\"reply\": {\"drops\": []}}\n");
	line[LEAT_CONTROL_LINE_MAX - 1] = ' ';
	say(fd, line, sizeof(line));
	serve(&s);
	assert_string_equal(hear(fd), "{\"error\": \"the line is too long\"}\n");
	assert_closed(fd);
	stop(&s);
}

static void half_closed_connections_are_answered(void **state)
{
	static const char two[] = "{\"request\": \"drops\", \"id\": 1}\n{\"request\": \"drops\", \"id\": 2}";
	struct server s = start();
	int fd = client();

	(void)state;
	say(fd, two, sizeof(two) - 1);
	shutdown(fd, SHUT_WR);
	serve(&s);
	assert_string_equal(hear(fd), "{\"id\": 1, \"reply\": {\"drops\": []}}\n"
				      "{\"id\": 2, \"reply\": {\"drops\": []}}\n");
	assert_closed(fd);

	fd = client(); /* it cannot hear */
	shutdown(fd, SHUT_RD);
	say(fd, two, sizeof(two) - 1);
	serve(&s);
	close(fd);
	fd = client(); /* it says nothing */
	shutdown(fd, SHUT_WR);
	serve(&s);
	assert_closed(fd);
	fd = client(); /* it is gone before it was seen */
	say(fd, two, sizeof(two) - 1);
	close(fd);
	serve(&s);
	stop(&s);
}

static void there_are_so_many_places(void **state)
{
	struct server s = start();
	int fds[LEAT_CONTROL_CLIENTS], more;
	unsigned int i;

	(void)state;
	for (i = 0; i < LEAT_CONTROL_CLIENTS; i++) {
		fds[i] = client();
		serve(&s);
	}
	more = client();
	serve(&s);
	assert_string_equal(hear(more), "{\"error\": \"there are too many connections\"}\n");
	assert_closed(more);

	say(fds[0], "{\"request\": \"drops\"}\n", 21); /* so that another one is the oldest */
	serve(&s);
	assert_string_equal(hear(fds[0]), "{\"reply\": {\"drops\": []}}\n");
	leat_control_set_idle(s.control, 0);
	more = client();
	serve(&s);
	say(more, "{\"request\": \"drops\"}\n", 21);
	serve(&s);
	assert_string_equal(hear(more), "{\"reply\": {\"drops\": []}}\n");
	assert_closed(fds[1]);
	fds[1] = more;
	for (i = 0; i < LEAT_CONTROL_CLIENTS; i++)
		close(fds[i]);
	serve(&s);
	stop(&s);
}

/* It asks and asks and does not read: that stops itself only, and every request gets its reply in the end. */
static void slow_readers_hurt_nobody(void **state)
{
	static const char request[] = "{\"request\": \"pool\"}\n";
	struct server s = start();
	int fd = client(), small = 1;
	size_t asked = 0, heard = 0;
	unsigned int stuck = 0;
	const char *text;

	(void)state;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	while (stuck < 3) {
		if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1) {
			asked++;
			stuck = 0;
		} else {
			stuck++;
		}
		serve(&s);
		assert_true(asked < 1000000);
	}
	json_decref(good_reply(&s, "{\"request\": \"drops\"}"));
	do {
		serve(&s);
		text = hear(fd);
		for (stuck = 0; *text; text++, stuck++)
			heard += *text == '\n';
	} while (stuck);
	assert_int_equal(heard, asked);
	close(fd);
	serve(&s);

	fd = client(); /* it goes while a reply is on its way */
	while (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
		serve(&s);
	close(fd);
	serve(&s);
	stop(&s);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void descriptors_are_not_taken(void **state)
{
	struct server s = start();
	unsigned int before = open_files();
	int fd = client(), passed[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
	char line[] = "{\"request\": \"drops\"}\n", space[CMSG_SPACE(sizeof(passed))] = { 0 };
	struct iovec iov = { .iov_base = line, .iov_len = sizeof(line) - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	(void)state;
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(passed));
	memcpy(CMSG_DATA(head), passed, sizeof(passed));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), sizeof(line) - 1);
	serve(&s);
	assert_string_equal(hear(fd), "{\"reply\": {\"drops\": []}}\n");
	close(fd);
	serve(&s);
	assert_int_equal(open_files(), before);
	stop(&s);
}

/* Who knocks when the process has no descriptor left is turned away, and does not keep us awake. */
static void no_descriptor_is_left(void **state)
{
	struct server s = start();
	struct rlimit old, none;
	int fd = client();

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	serve(&s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_string_equal(hear(fd), "{\"error\": \"there are too many connections\"}\n");
	assert_closed(fd);
	stop(&s);
}

/* ---- where it stands ---- */

static void assert_not_opened(struct leat_datapath *dp, int err, const char *part)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_control *control;
	const struct leat_diag_entry *entry;

	assert_int_equal(leat_control_open(dp, diag, &control), err);
	assert_null(control);
	entry = leat_diag_get(diag, 0);
	assert_non_null(entry);
	if (!strstr(entry->message, part))
		fail_msg("says '%s', not '%s'", entry->message, part);
	assert_string_equal(entry->path, "control");
	assert_int_equal(entry->line, 7);
	leat_diag_destroy(diag);
	leat_datapath_destroy(dp);
}

static void one_in_use_is_left_alone(void **state)
{
	struct server s = start();

	(void)state;
	assert_not_opened(load_at(""), -EADDRINUSE, "is in use by another process");
	json_decref(good_reply(&s, "{\"request\": \"stats\"}"));
	stop(&s);
}

/* Its queue of connections is full: whoever listens there is slow, not dead. */
static void one_that_is_slow_is_left_alone(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[16], n = 0;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	do
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	while (!connect(fds[n++], (struct sockaddr *)&addr, sizeof(addr)) && n < 16);
	assert_int_equal(errno, EAGAIN);
	assert_not_opened(load_at(""), -EADDRINUSE, "is in use by another process");
	while (n)
		close(fds[--n]);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void one_left_behind_is_replaced(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct server s;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	s = start();
	json_decref(good_reply(&s, "{\"request\": \"stats\"}"));
	stop(&s);
}

static void what_is_no_socket_stays(void **state)
{
	FILE *file = fopen(path, "we");

	(void)state;
	assert_non_null(file);
	fclose(file);
	assert_not_opened(load_at(""), -EEXIST, "is there and is no socket");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nowhere/at-all", path), 0);
	assert_not_opened(load_at(""), -EEXIST, "is there and is no socket");
	assert_int_equal(unlink(path), 0);
}

static void another_ones_socket_is_not_removed(void **state)
{
	struct server s = start(), other;

	(void)state;
	assert_int_equal(unlink(path), 0);
	other = start();
	leat_control_close(s.control);
	leat_datapath_destroy(s.dp);
	json_decref(good_reply(&other, "{\"request\": \"stats\"}"));
	stop(&other);
}

static void it_has_owner_and_mode(void **state)
{
	struct server s = { .dp = NULL };
	struct stat st;
	char more[80];

	(void)state;
	s = start();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	stop(&s);
	snprintf(more, sizeof(more), ", owner: %u, group: %u, mode: 0662", getuid(), getgid());
	s.dp = load_at(more);
	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0662); /* whatever the umask */
	assert_int_equal(st.st_uid, getuid());
	assert_int_equal(st.st_gid, getgid());
	stop(&s);
	assert_not_opened(load_at(", owner: no-such-user"), -ENOENT, "there is no user 'no-such-user'");
	assert_int_equal(access(path, F_OK), -1);
	assert_not_opened(load_at(", group: no-such-group"), -ENOENT, "there is no group 'no-such-group'");
	assert_not_opened(load(PORTS "control: { path: /nowhere/at/all.sock }\n"), -ENOENT, "the folder of");
}

static void there_need_be_none(void **state)
{
	struct server s = { .dp = load(PORTS "control: off\n") };
	char buf[64];

	(void)state;
	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_null(s.control);
	assert_int_equal(leat_control_fd(s.control), -1);
	leat_control_serve(s.control);
	leat_control_close(s.control);
	leat_datapath_destroy(s.dp);

	s.dp = load(PORTS); /* without the section, a place that cannot be had ends nothing */
	setenv("LEAT_CONTROL", "/nowhere/at/all.sock", 1);
	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_null(s.control);
	setenv("LEAT_CONTROL", "", 1);
	assert_int_equal(leat_control_default_path(buf, sizeof(buf)), -ENOENT);
	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_null(s.control);
	setenv("LEAT_CONTROL", path, 1);
	assert_int_equal(leat_control_default_path(buf, 4), -ENAMETOOLONG);
	assert_int_equal(leat_control_open(s.dp, NULL, &s.control), 0);
	assert_string_equal(leat_control_path(s.control), path);
	unsetenv("LEAT_CONTROL");
	stop(&s);
}

static void missing_memory_is_said(void **state)
{
	struct leat_datapath *dp = load_at("");
	struct leat_control *control;

	(void)state;
	leat_heap_fail_nth(1);
	assert_int_equal(leat_control_open(dp, NULL, &control), -ENOMEM);
	leat_heap_fail_nth(0);
	assert_null(control);
	leat_datapath_destroy(dp);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_right),
		cmocka_unit_test(each_request_has_one_reply_in_order),
		cmocka_unit_test(ids_come_back),
		cmocka_unit_test(lines_that_are_no_requests),
		cmocka_unit_test(lines_end_somewhere),
		cmocka_unit_test(half_closed_connections_are_answered),
		cmocka_unit_test(there_are_so_many_places),
		cmocka_unit_test(slow_readers_hurt_nobody),
		cmocka_unit_test(descriptors_are_not_taken),
		cmocka_unit_test(no_descriptor_is_left),
		cmocka_unit_test(one_in_use_is_left_alone),
		cmocka_unit_test(one_that_is_slow_is_left_alone),
		cmocka_unit_test(one_left_behind_is_replaced),
		cmocka_unit_test(what_is_no_socket_stays),
		cmocka_unit_test(another_ones_socket_is_not_removed),
		cmocka_unit_test(it_has_owner_and_mode),
		cmocka_unit_test(there_need_be_none),
		cmocka_unit_test(missing_memory_is_said),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
