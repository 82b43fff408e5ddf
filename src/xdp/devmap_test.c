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
#include <errno.h>
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

/* Writes an entry, and reads what is there then: UINT64_MAX for none. */
static int put(struct leat_bpf_map *map, uint32_t key, uint32_t port, int32_t prog, uint64_t flags, uint64_t *now)
{
	const struct bpf_devmap_val value = { .ifindex = port, .bpf_prog.fd = prog };
	int err = leat_bpf_map_update(map, &key, &value, flags);

	*now = UINT64_MAX;
	leat_bpf_map_lookup(map, &key, now);
	return err;
}

/** What Linux 6.18 answers, but for the numbers of programs. */
static void updates_are_the_kernels(void **state)
{
	static const struct bpf_insn pass[] = { MOV64K(R0, LEAT_XDP_PASS), EXIT };
	enum { NONE, INGRESS, EGRESS, NO_SUCH };
	static const struct {
		uint32_t key, port;
		int32_t prog;
		uint64_t flags;
		int array, hash;                /* answers */
		uint64_t array_now, hash_now;   /* what is there then; ~0: nothing */
	} steps[] = {
		{ 1, 7, NONE, 0, 0, 0, 7, 7 },
		{ 1, 7, EGRESS, 0, 0, 0, 7 | UINT64_C(2) << 32, 7 | UINT64_C(2) << 32 },
		{ 1, 7, INGRESS, 0, -EINVAL, -EINVAL, 7 | UINT64_C(2) << 32, 7 | UINT64_C(2) << 32 },
		{ 1, 7, NO_SUCH, 0, -EINVAL, -EINVAL, 7 | UINT64_C(2) << 32, 7 | UINT64_C(2) << 32 },
		{ 1, 7, -1, 0, 0, 0, 7, 7 },
		{ 1, 0, EGRESS, 0, -EINVAL, -EINVAL, 7, 7 },
		{ 1, 0, NONE, 0, 0, -EINVAL, ~UINT64_C(0), 7 },
		{ 2, 7, NONE, BPF_EXIST, 0, 0, 7, 7 },
		{ 3, 7, NONE, BPF_NOEXIST, -EEXIST, 0, ~UINT64_C(0), 7 },
		{ 3, 7, NONE, BPF_NOEXIST, -EEXIST, -EEXIST, ~UINT64_C(0), 7 },
		{ 3, 7, NONE, 3, -EINVAL, -EINVAL, ~UINT64_C(0), 7 },
		{ 4, 7, NONE, 0, -E2BIG, 0, ~UINT64_C(0), 7 },
		{ 5, 7, NONE, 0, -E2BIG, -E2BIG, ~UINT64_C(0), ~UINT64_C(0) },
		{ 3, 1u << 31, NONE, 0, -EINVAL, -EINVAL, ~UINT64_C(0), 7 },
	};
	struct test_bpf t;
	uint64_t now;
	uint32_t i;

	(void)state;
	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	assert_int_equal(test_bpf_prog(&t, pass, N(pass)), 0);
	t.flags = LEAT_IMAGE_PROG_DEVMAP;
	assert_int_equal(test_bpf_prog(&t, pass, N(pass)), 1);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_DEVMAP, 4, 8, 4, 0), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_DEVMAP_HASH, 4, 8, 4, 0), 1);
	for (i = 0; i < N(steps); i++) {
		assert_int_equal(put(&t.map[0], steps[i].key, steps[i].port, steps[i].prog, steps[i].flags, &now),
				 steps[i].array);
		assert_true(now == steps[i].array_now);
		assert_int_equal(put(&t.map[1], steps[i].key, steps[i].port, steps[i].prog, steps[i].flags, &now),
				 steps[i].hash);
		assert_true(now == steps[i].hash_now);
	}
	test_bpf_end(&t);
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
	struct leat_bpf_target target;
	uint32_t i;

	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 2; i++) {
			if (!l->map->type->target(l->map, keys[i], &target))
				continue;
			l->hits++;
			l->wrong += target.port != keys[i] + 100;
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
		cmocka_unit_test(updates_are_the_kernels),
		cmocka_unit_test(an_entry_that_is_used_again_is_the_new_keys_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
