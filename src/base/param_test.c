/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * param_test.c: every kind of option: what is taken, what is refused, and in which words.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <leat/diag.h>
#include <leat/param.h>
#include <string.h>

#include "base/heap.h"

struct opts {
	char *name;
	char *file;
	uint32_t queues;
	uint32_t any32;
	uint64_t rate;
	uint64_t big;
	bool flag;
	uint8_t mac[6];
	uint32_t ip;
	uint64_t wait;
	uint64_t any_time;
	uint32_t precision;
};

static const char *const precisions[] = { "us", "ns", NULL };

#define FIELD(field) .name = #field, .offset = offsetof(struct opts, field)

static const struct leat_param table[] = {
	{ FIELD(name), .kind = LEAT_PARAM_STRING, .min = 1, .max = 5, .default_text = "abc" },
	{ FIELD(file), .kind = LEAT_PARAM_STRING },
	{ FIELD(queues), .kind = LEAT_PARAM_U32, .min = 1, .max = 64, .default_text = "2" },
	{ FIELD(any32), .kind = LEAT_PARAM_U32 },
	{ FIELD(rate), .kind = LEAT_PARAM_U64, .min = 10, .max = 5000000000 },
	{ FIELD(big), .kind = LEAT_PARAM_U64, .min = 1 },
	{ FIELD(flag), .kind = LEAT_PARAM_BOOL },
	{ FIELD(mac), .kind = LEAT_PARAM_MAC, .default_text = "02:00:00:00:00:01" },
	{ .name = "own", .offset = offsetof(struct opts, mac), .kind = LEAT_PARAM_MAC, .flags = LEAT_PARAM_STATION },
	{ FIELD(ip), .kind = LEAT_PARAM_IPV4 },
	{ FIELD(wait), .kind = LEAT_PARAM_DURATION, .min = 1000000, .max = 90000000000 },
	{ FIELD(any_time), .kind = LEAT_PARAM_DURATION },
	{ FIELD(precision), .kind = LEAT_PARAM_CHOICE, .choices = precisions, .default_text = "ns" },
	{ .name = NULL },
};

static int set(struct opts *opts, const char *key, const char *text)
{
	const struct leat_param *param = leat_param_find(table, key);

	assert_non_null(param);
	return leat_param_set(param, opts, text, NULL);
}

static void assert_refused(const char *key, const char *text, const char *message)
{
	const struct leat_param *param = leat_param_find(table, key);
	struct leat_diag *diag = leat_diag_create();
	struct opts opts, before;

	memset(&opts, 0x5a, sizeof(opts));
	before = opts;
	assert_non_null(param);
	assert_int_equal(leat_param_set(param, &opts, text, diag), -EINVAL);
	assert_memory_equal(&opts, &before, sizeof(opts));
	assert_int_equal(leat_diag_count(diag), 1);
	assert_string_equal(leat_diag_get(diag, 0)->message, message);
	leat_diag_destroy(diag);
}

static void takes_numbers(void **state)
{
	static const struct {
		const char *key, *text;
		uint64_t value;
	} good[] = {
		{ "rate", "10", 10 },
		{ "rate", "0012", 12 },
		{ "rate", "3k", 3000 },
		{ "rate", "2M", 2000000 },
		{ "rate", "5G", 5000000000 },
		{ "rate", "1Ki", 1024 },
		{ "rate", "1Mi", 1048576 },
		{ "rate", "1Gi", 1073741824 },
	};
	struct opts opts = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(set(&opts, good[i].key, good[i].text), 0);
		assert_true(opts.rate == good[i].value);
	}
	assert_int_equal(set(&opts, "queues", "64"), 0);
	assert_int_equal(opts.queues, 64);
	assert_int_equal(set(&opts, "any32", "4294967295"), 0);
	assert_true(opts.any32 == UINT32_MAX);
	assert_int_equal(set(&opts, "any32", "-0"), 0);
	assert_int_equal(opts.any32, 0);
}

static void refuses_numbers(void **state)
{
	(void)state;
	assert_refused("queues", "0", "must be 1..64, not 0");
	assert_refused("queues", "65", "must be 1..64, not 65");
	assert_refused("queues", "-3", "must be 1..64, not -3");
	assert_refused("queues", "18446744073709551617", "must be 1..64, not 18446744073709551617");
	assert_refused("queues", "", "'' is not a whole number");
	assert_refused("queues", "1 ", "'1 ' is not a whole number");
	assert_refused("queues", " 1", "' 1' is not a whole number");
	assert_refused("queues", "+1", "'+1' is not a whole number");
	assert_refused("queues", "0x10", "'0x10' is not a whole number");
	assert_refused("queues", "1.5", "'1.5' is not a whole number");
	assert_refused("queues", "4k", "'4k' is not a whole number");
	assert_refused("any32", "4294967296", "must be 0..4294967295, not 4294967296");
	assert_refused("rate", "9", "must be 10..5000000000, not 9");
	assert_refused("rate", "6G", "must be 10..5000000000, not 6G");
	assert_refused("rate", "99999999999999999999G", "must be 10..5000000000, not 99999999999999999999G");
	assert_refused("rate", "5g", "'5g' is not a whole number (it may end in k, M, G, Ki, Mi or Gi)");
	assert_refused("big", "0", "must be at least 1, not 0");
	assert_refused("big", "-1", "must be at least 1, not -1");
	assert_refused("big", "99999999999999999999", "99999999999999999999 is too large");
	assert_refused("big", "18446744073709551615G", "18446744073709551615G is too large");
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10s", 10000000000 }, { "250ms", 250000000 }, { "1500us", 1500000 }, { "2000000ns", 2000000 },
		{ "7", 7000000000 },    { "1.5s", 1500000000 }, { "0.25", 250000000 }, { "1min", 60000000000 },
	};
	struct opts opts = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(set(&opts, "wait", good[i].text), 0);
		assert_true(opts.wait == good[i].ns);
	}
	assert_int_equal(set(&opts, "any_time", "2h"), 0);
	assert_true(opts.any_time == UINT64_C(7200000000000));
	assert_refused("wait", "5us", "must be 1ms..90s, not 5us");
	assert_refused("wait", "2min", "must be 1ms..90s, not 2min");
	assert_refused("wait", "-1s", "must be 1ms..90s, not -1s");
	assert_refused("wait", "soon", "'soon' is not a duration (like 10s, 250ms or 5us)");
	assert_refused("wait", "10 s", "'10 s' is not a duration (like 10s, 250ms or 5us)");
	assert_refused("wait", "1.s", "'1.s' is not a duration (like 10s, 250ms or 5us)");
	assert_refused("any_time", "-1s", "must be at least 0s, not -1s");
	assert_refused("any_time", "99999999999h", "99999999999h is too large");
}

static void strings(void **state)
{
	struct opts opts = { 0 };

	(void)state;
	assert_int_equal(set(&opts, "name", "a"), 0);
	assert_int_equal(set(&opts, "name", "fiver"), 0);
	assert_string_equal(opts.name, "fiver");
	assert_int_equal(set(&opts, "file", ""), 0);
	assert_string_equal(opts.file, "");
	leat_heap_fail_nth(1);
	assert_int_equal(set(&opts, "name", "no"), -ENOMEM);
	leat_heap_fail_nth(0);
	assert_string_equal(opts.name, "fiver");
	leat_param_free(table, &opts);
	assert_null(opts.name);
	assert_null(opts.file);
	leat_param_free(table, &opts);
	assert_refused("name", "", "must not be empty");
	assert_refused("name", "sixsix", "must be at most 5 bytes long, not 6");
}

static void booleans(void **state)
{
	static const char *const yes[] = { "true", "yes", "on" }, *const no[] = { "false", "no", "off" };
	struct opts opts = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(set(&opts, "flag", yes[i]), 0);
		assert_true(opts.flag);
		assert_int_equal(set(&opts, "flag", no[i]), 0);
		assert_false(opts.flag);
	}
	assert_refused("flag", "1", "must be true or false (or yes, no, on, off), not '1'");
}

static void addresses(void **state)
{
	static const uint8_t mac[6] = { 0x02, 0xab, 0xcd, 0xef, 0x00, 0x9f };
	static const uint8_t ip[4] = { 10, 0, 0, 1 };
	struct opts opts = { 0 };

	(void)state;
	assert_int_equal(set(&opts, "mac", "02:ab:CD:eF:00:9f"), 0);
	assert_memory_equal(opts.mac, mac, 6);
	assert_int_equal(set(&opts, "ip", "10.0.0.1"), 0);
	assert_memory_equal(&opts.ip, ip, 4);
	assert_refused("own", "03:00:00:00:00:01",
		       "'03:00:00:00:00:01' cannot be a port's own address: it is a group's");
	assert_refused("own", "00:00:00:00:00:00",
		       "'00:00:00:00:00:00' cannot be a port's own address: it is all zero");
	assert_refused("mac", "02:ab:cd:ef:00", "'02:ab:cd:ef:00' is not a MAC address (like 02:00:00:00:00:01)");
	assert_refused("mac", "02:ab:cd:ef:00:0g", "'02:ab:cd:ef:00:0g' is not a MAC address (like 02:00:00:00:00:01)");
	assert_refused("mac", "02-ab-cd-ef-00-01", "'02-ab-cd-ef-00-01' is not a MAC address (like 02:00:00:00:00:01)");
	assert_refused("mac", "02:ab:cd:ef:00:011", "'02:ab:cd:ef:00:011' is not a MAC address (like 02:00:00:00:00:01)");
	assert_refused("ip", "10.0.0", "'10.0.0' is not an IPv4 address (like 10.0.0.1)");
	assert_refused("ip", "10.0.0.256", "'10.0.0.256' is not an IPv4 address (like 10.0.0.1)");
}

static void choices(void **state)
{
	struct opts opts = { 0 };

	(void)state;
	assert_int_equal(set(&opts, "precision", "ns"), 0);
	assert_int_equal(opts.precision, 1);
	assert_refused("precision", "ms", "'ms' is not one of: us, ns");
	assert_refused("precision", "", "'' is not one of: us, ns");
}

static void defaults(void **state)
{
	struct opts opts = { 0 };

	(void)state;
	assert_int_equal(leat_param_defaults(table, &opts), 0);
	assert_string_equal(opts.name, "abc");
	assert_null(opts.file);
	assert_int_equal(opts.queues, 2);
	assert_int_equal(opts.precision, 1);
	assert_int_equal(opts.mac[5], 1);
	leat_param_free(table, &opts);
	leat_heap_fail_nth(1);
	assert_int_equal(leat_param_defaults(table, &opts), -ENOMEM);
	leat_heap_fail_nth(0);
	leat_param_free(table, &opts);
	assert_int_equal(leat_param_defaults(NULL, &opts), 0);
	assert_null(leat_param_find(table, "nix"));
	assert_null(leat_param_find(NULL, "nix"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_numbers), cmocka_unit_test(refuses_numbers), cmocka_unit_test(durations),
		cmocka_unit_test(strings),       cmocka_unit_test(booleans),        cmocka_unit_test(addresses),
		cmocka_unit_test(choices),       cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
