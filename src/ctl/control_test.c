/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_test.c: what the control socket answers, and what becomes of clients that mean harm: long lines, lines that
 * are no requests, too many connections, readers that do not read, connections half closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/resource.h>

#include "ctl/test_control.h"

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
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
