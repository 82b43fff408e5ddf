/* SPDX-License-Identifier: BSD-3-Clause */
/* devmap_test.c: what programs may do with the entries of maps that packets are redirected by: read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <leat/xdp_prog.h>

#include "bpf/test_run.h"

#define N(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))
/* r0: entry 1, compared with 0 */
#define ENTRY                                                                                                          \
	ST(BPF_W, R10, -4, 1), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, 0), HELPER(BPF_FUNC_map_lookup_elem),        \
		JMP64K(BPF_JNE, R0, 0, 1), EXIT

static void entries_are_read_only(void **state)
{
	static const struct bpf_insn reads[] = { ENTRY, LDX(BPF_W, R0, R0, 0), EXIT },
				     writes[] = { ENTRY, ST(BPF_W, R0, 0, 7), EXIT },
				     adds[] = { ENTRY, MOV64K(R1, 7), ATOMIC(BPF_W, BPF_ADD, R0, 0, R1), EXIT };
	static const uint32_t types[] = { BPF_MAP_TYPE_DEVMAP, BPF_MAP_TYPE_DEVMAP_HASH, BPF_MAP_TYPE_XSKMAP };
	const uint32_t key = 1, value = 3;
	struct test_bpf t;
	unsigned int i;

	(void)state;
	leat_xdp_bpf_init();
	for (i = 0; i < N(types); i++) {
		assert_int_equal(test_bpf_begin(&t, 0), 0);
		test_bpf_packet(&t, NULL, 64, 0);
		assert_int_equal(test_bpf_map(&t, types[i], 4, 4, 4, 0), 0);
		assert_int_equal(leat_bpf_map_update(&t.map[0], &key, &value, BPF_ANY), 0);
		assert_int_equal(test_bpf_run(&t, test_bpf_prog(&t, reads, N(reads))), 3);
		assert_int_not_equal(test_bpf_verify(&t, writes, N(writes)), 0);
		assert_non_null(strstr(t.said, "is read-only"));
		assert_int_not_equal(test_bpf_verify(&t, adds, N(adds)), 0);
		assert_non_null(strstr(t.said, "is read-only"));
		test_bpf_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
