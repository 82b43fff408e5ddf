/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_socket_test.c: where the control socket stands, whose it is, and what becomes of what stands there already.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "base/heap.h"
#include "ctl/test_control.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
