/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_kernel_vectors.c: the kernel agrees with every row of test_vectors.h, on the stack and in the packet, so that
 * what the interpreter is tested against is what programs are used to. Needs the right to load programs; skipped
 * without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/engine/test_vector_prog.h"
#include "bpf_kernel_common.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void run_vector(const struct test_vector *v, enum test_where where)
{
	const char *name = leat_insn_row[v->op].name;
	uint8_t packet[64] = { 0 };
	struct test_code code;
	char log[4096];
	uint64_t got[2];
	uint32_t r0 = 0;
	int fd;

	test_vector_prog(v, where, &code);
	fd = kernel_load(code.insn, code.n, NULL, 0);
	if (fd < 0) {
		kernel_load(code.insn, code.n, log, sizeof(log));
		fail_msg("%s: the kernel refuses it: %s", name, log);
	}
	assert_int_equal(kernel_run(fd, packet, sizeof(packet), &r0), 0);
	close(fd);
	memcpy(got, packet, sizeof(got));
	if (r0 != TEST_VECTOR_OK || got[0] != v->want || got[1] != v->want2)
		fail_msg("%s a %#llx b %#llx c %#llx imm %d: the kernel says %#llx and %#llx, not %#llx and %#llx",
			 name, (unsigned long long)v->a, (unsigned long long)v->b, (unsigned long long)v->c, v->imm,
			 (unsigned long long)got[0], (unsigned long long)got[1], (unsigned long long)v->want,
			 (unsigned long long)v->want2);
}

static void run_all(enum test_where where)
{
	size_t i;

	if (!kernel_answers())
		skip();
	for (i = 0; i < COUNT(test_vector); i++)
		if (where == TEST_ON_STACK || leat_insn_row[test_vector[i].op].form != LEAT_FORM_ATOMIC)
			run_vector(&test_vector[i], where);
}

static void on_the_stack(void **state)
{
	(void)state;
	run_all(TEST_ON_STACK);
}

static void in_the_packet(void **state)
{
	(void)state;
	run_all(TEST_IN_PACKET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_stack),
		cmocka_unit_test(in_the_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
