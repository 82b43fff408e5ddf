/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unit tests of the mirror of the kernel's routes that need no privilege: the namespace that the test runs in, whatever
 * it has, and what cannot be mirrored. tests/bpf_fib.c compares what is mirrored.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap.h"
#include "xdp/test_fib.h"

static const struct leat_fib_mirror_port loopback[] = { { "lo", 5 }, { "no-such-iface", 6 } };

static int start(struct leat_fib *fib, const char *netns, uint32_t size, struct leat_diag *diag,
		 struct leat_fib_mirror **mirror)
{
	const struct leat_fib_mirror_opts opts = { .size = size, .netns = netns, .ports = loopback, .n_ports = 2 };

	return leat_fib_mirror_start(fib, &opts, diag, mirror);
}

static void test_own_namespace(void **unused)
{
	const uint32_t size = sizeof(struct leat_fib_mirror_opts);
	struct leat_fib_mirror_stats stats;
	struct leat_fib_mirror *mirror = NULL;
	struct leat_fib_counts counts;
	struct leat_fib_lookup q = test_question("10.0.0.1");
	struct leat_fib *fib = NULL;
	int i;

	(void)unused;
	assert_int_equal(leat_fib_create(NULL, &fib), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(start(fib, NULL, size, NULL, &mirror), 0);
		leat_fib_count(fib, &counts);
		assert_int_equal(counts.ports, 1);
		leat_fib_mirror_stats(mirror, &stats);
		assert_true(stats.dumps >= 1);
		leat_fib_mirror_stop(mirror);
	}
	/* it stays when the mirror is gone */
	q.ifindex = 6;
	assert_int_equal(leat_fib_lookup(fib, &q, 0), -ENODEV);
	q.ifindex = 5;
	assert_true(leat_fib_lookup(fib, &q, 0) > 0);
	leat_fib_mirror_stop(NULL);
	leat_fib_destroy(fib);
}

static void assert_refused(const char *netns, uint32_t size, int err, const char *words)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_fib_mirror *mirror = NULL;
	struct leat_fib *fib = NULL;

	assert_int_equal(leat_fib_create(NULL, &fib), 0);
	assert_int_equal(start(fib, netns, size, diag, &mirror), err);
	assert_null(mirror);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, words));
	assert_int_equal(leat_fib_begin(fib), 0); /* nothing is left open */
	leat_fib_destroy(fib);
	leat_diag_destroy(diag);
}

static void test_refusals(void **unused)
{
	const uint32_t size = sizeof(struct leat_fib_mirror_opts);
	char name[300];

	(void)unused;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_refused("no-such-namespace", size, -ENOENT, "cannot open the network namespace");
	assert_refused("/dev/null/x", size, -ENOTDIR, "cannot open the network namespace");
	assert_refused("/dev/null", size, -EINVAL, "cannot enter the network namespace");
	assert_refused(name, size, -ENAMETOOLONG, "cannot be made");
	assert_refused(NULL, 3, -EINVAL, "cannot be made");
}

static void test_bad_ports(void **unused)
{
	const struct leat_fib_mirror_port bad[] = { { "lo", 0 }, { "lo", LEAT_PORTS_MAX } };
	struct leat_fib_mirror_opts opts = { .size = sizeof(opts), .n_ports = 1 };
	struct leat_fib_mirror *mirror = NULL;
	struct leat_fib *fib = NULL;
	int i;

	(void)unused;
	assert_int_equal(leat_fib_create(NULL, &fib), 0);
	for (i = 0; i < 2; i++) {
		opts.ports = &bad[i];
		assert_int_equal(leat_fib_mirror_start(fib, &opts, NULL, &mirror), -EINVAL);
	}
	leat_fib_destroy(fib);
}

/** Memory is out at each allocation in turn: of start, and of the first reading. */
static void test_no_memory(void **unused)
{
	struct leat_fib_mirror *mirror;
	struct leat_fib *fib;
	unsigned long nth = 0;
	bool reached;
	int err;

	(void)unused;
	do {
		fib = NULL;
		assert_int_equal(leat_fib_create(NULL, &fib), 0);
		leat_heap_fail_nth(++nth);
		err = start(fib, NULL, sizeof(struct leat_fib_mirror_opts), NULL, &mirror);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		if (!err)
			leat_fib_mirror_stop(mirror);
		assert_true(err == 0 || err == -ENOMEM);
		assert_true(reached || !err);
		leat_fib_destroy(fib);
	} while (reached && nth < 200);
	assert_true(nth > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_namespace),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_ports),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
