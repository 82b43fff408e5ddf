/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_test.c: programs and copies of maps in the running kernel. Skipped where this process may not have them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/kernel/kernel.h"
#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	struct leat_image_header head;
	char strings[8];
} image = { { .strings = { sizeof(image.head), 8 }, .license = 1 }, "\0GPL" };

struct test {
	struct test_bpf t;
	struct leat_diag *diag;
	struct leat_kernel *kernel;
};

static void begin(struct test *test)
{
	assert_int_equal(test_bpf_begin(&test->t, 0), 0);
	test->t.obj.head = &image.head;
	test->diag = leat_diag_create();
	test->kernel = NULL;
}

static void end(struct test *test)
{
	leat_kernel_close(test->kernel);
	leat_diag_destroy(test->diag);
	test_bpf_end(&test->t);
}

/** Offers the programs; the test is skipped where that may not be. */
static int offer(struct test *test)
{
	int err = leat_kernel_open(&test->t.obj, test->diag, &test->kernel);

	if (err != -EPERM && err != -ENOSYS)
		return err;
	end(test);
	skip();
	return err;
}

static void check_verdict(const struct test *test, int prog, uint32_t want)
{
	static const uint8_t packet[64];
	struct leat_kernel_test run = { .in = packet, .in_len = sizeof(packet), .repeat = 1 };

	assert_int_equal(leat_kernel_test(test->kernel, prog < 0 ? NULL : &test->t.prog[prog], &run), 0);
	assert_int_equal(run.verdict, want);
	assert_int_equal(run.out_len, sizeof(packet));
}

/** r0 = the 4-byte value of key @key in map @map, or 77. */
#define LOOK_UP(map, key)                                                                                              \
	ST(BPF_W, R10, -4, key), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, map), HELPER(BPF_FUNC_map_lookup_elem),    \
		JMP64K(BPF_JNE, R0, 0, 2), MOV64K(R0, 77), EXIT, LDX(BPF_W, R0, R0, 0), EXIT

static void add_map(struct test *test, uint32_t type, uint32_t entries)
{
	assert_true(test_bpf_map(&test->t, type, 4, 4, entries, 0) >= 0);
}

static void contents_of_maps(void **state)
{
	static const struct bpf_insn array[] = { LOOK_UP(0, 1) }, hash[] = { LOOK_UP(1, 5) }, none[] = { LOOK_UP(1, 6) },
				     percpu[] = { LOOK_UP(2, 3) };
	const uint32_t key[] = { 1, 5, 3 }, value[] = { 11, 12, 13 };
	uint64_t copies[2] = { 13, 13 };
	struct test test;

	(void)state;
	begin(&test);
	add_map(&test, BPF_MAP_TYPE_ARRAY, 4);
	add_map(&test, BPF_MAP_TYPE_HASH, 4);
	add_map(&test, BPF_MAP_TYPE_PERCPU_HASH, 4);
	assert_int_equal(leat_bpf_map_update(&test.t.map[0], &key[0], &value[0], BPF_ANY), 0);
	assert_int_equal(leat_bpf_map_update(&test.t.map[1], &key[1], &value[1], BPF_ANY), 0);
	assert_int_equal(leat_bpf_map_update(&test.t.map[2], &key[2], copies, BPF_ANY), 0);
	test.t.map[0].frozen = true;
	assert_int_equal(test_bpf_prog(&test.t, array, COUNT(array)), 0);
	assert_int_equal(test_bpf_prog(&test.t, hash, COUNT(hash)), 1);
	assert_int_equal(test_bpf_prog(&test.t, none, COUNT(none)), 2);
	assert_int_equal(test_bpf_prog(&test.t, percpu, COUNT(percpu)), 3);
	assert_int_equal(offer(&test), 0);
	check_verdict(&test, 0, 11);
	check_verdict(&test, 1, 12);
	check_verdict(&test, 2, 77);
	check_verdict(&test, 3, 13);
	check_verdict(&test, -1, LEAT_XDP_PASS);
	end(&test);
}

static void tail_calls(void **state)
{
	static const struct bpf_insn target[] = { MOV64K(R0, 5), EXIT };
	static const struct bpf_insn caller[] = {
		LDMAP(R2, 0), MOV64K(R3, 2), HELPER(BPF_FUNC_tail_call), MOV64K(R0, 6), EXIT,
	};
	struct test test;

	(void)state;
	begin(&test);
	add_map(&test, BPF_MAP_TYPE_PROG_ARRAY, 4);
	assert_int_equal(test_bpf_prog(&test.t, target, COUNT(target)), 0);
	assert_int_equal(test_bpf_prog(&test.t, caller, COUNT(caller)), 1);
	assert_int_equal(leat_bpf_prog_array_set(&test.t.map[0], 2, &test.t.prog[0]), 0);
	assert_int_equal(offer(&test), 0);
	check_verdict(&test, 1, 5);
	end(&test);
}

/** What leat tests as it runs, the kernel refuses: with its verifier's sentence. */
static void refused(void **state)
{
	static const struct bpf_insn insns[] = { LDX(BPF_W, R1, R1, 0), LDX(BPF_B, R0, R1, 0), EXIT };
	struct test test;

	(void)state;
	begin(&test);
	assert_int_equal(test_bpf_prog(&test.t, insns, COUNT(insns)), 0);
	assert_int_equal(offer(&test), -EACCES);
	assert_null(test.kernel);
	assert_int_equal(leat_diag_count(test.diag), 1);
	assert_non_null(strstr(leat_diag_get(test.diag, 0)->message, "the kernel refuses test: "));
	assert_non_null(strstr(leat_diag_get(test.diag, 0)->message, "packet"));
	end(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_of_maps),
		cmocka_unit_test(tail_calls),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
