/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmap_test.c: what programs may do with the entries of maps that packets are redirected by: read them. And that a
 * redirect never goes where another key's entry says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <leat/xdp_prog.h>
#include <pthread.h>

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

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 1000000
#else
#define CHANGES 10000000
#endif

/* Two keys that begin their search at the same place of a table for one. */
static const uint32_t keys[2] = { 1, 3 };

struct looker {
	struct leat_bpf_map *map;
	uint32_t stop, wrong, hits;
};

static void *look(void *arg)
{
	struct looker *l = arg;
	uint32_t port, i;

	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 2; i++) {
			if (!l->map->type->target(l->map, keys[i], &port))
				continue;
			l->hits++;
			l->wrong += port != keys[i] + 100;
		}
	}
	return NULL;
}

static void an_entry_that_is_used_again_is_the_new_keys_only(void **state)
{
	struct looker l = { 0 };
	struct test_bpf t;
	pthread_t thread;
	uint32_t i, port;

	(void)state;
	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_DEVMAP_HASH, 4, 4, 1, 0), 0);
	l.map = &t.map[0];
	assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
	for (i = 0; i < CHANGES; i++) {
		port = keys[i % 2] + 100;
		assert_int_equal(leat_bpf_map_update(l.map, &keys[i % 2], &port, BPF_ANY), 0);
		assert_int_equal(leat_bpf_map_delete(l.map, &keys[i % 2]), 0);
	}
	__atomic_store_n(&l.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(l.wrong, 0);
	test_bpf_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_only),
		cmocka_unit_test(an_entry_that_is_used_again_is_the_new_keys_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
