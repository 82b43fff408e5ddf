/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks_test.c: bpf_loop() and bpf_for_each_map_elem(), interpreted and compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HASH_ENTRIES 4096u

enum { ARRAY, HASH, PERCPU_HASH, PROGS };

static bool jit;

static void begin(struct test_bpf *t, uint64_t fuel)
{
	assert_int_equal(test_bpf_begin(t, fuel), 0);
	t->jit = jit;
	test_bpf_packet(t, NULL, 64, 0);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 8, 5, 0), ARRAY);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_HASH, 4, 8, HASH_ENTRIES, 0), HASH);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_PERCPU_HASH, 4, 8, 64, 0), PERCPU_HASH);
}

#define RUN(t, ...)                                                                                                    \
	({                                                                                                             \
		static const struct bpf_insn insns_[] = { __VA_ARGS__ };                                               \
		int prog_ = test_bpf_prog(t, insns_, COUNT(insns_));                                                   \
		uint64_t r0_;                                                                                          \
		assert_true(prog_ >= 0);                                                                               \
		r0_ = test_bpf_run(t, prog_);                                                                          \
		traps = (t)->prog[prog_].trap[TRAP_AT].n[LEAT_BPF_TRAP_FUEL];                                            \
		test_bpf_drop_progs(t);                                                                                \
		r0_;                                                                                                   \
	})
#define TRAP_AT 6 /* the call below */
static uint64_t traps;

static void loop_limits(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t, 0);
	assert_int_equal(RUN(&t, LD64(R1, UINT64_C(0x100000000)), LDFUNC(R2, 5), MOV64K(R3, 0), MOV64K(R4, 0),
			     HELPER(BPF_FUNC_loop), EXIT, MOV64K(R0, 0), EXIT), 0); /* 32 bits count */
	assert_int_equal((int64_t)RUN(&t, MOV64K(R1, LEAT_BPF_LOOP_MAX + 1), LDFUNC(R2, 5), MOV64K(R3, 0), MOV64K(R4, 0),
				      HELPER(BPF_FUNC_loop), EXIT, MOV64K(R0, 0), EXIT), -E2BIG);
	assert_int_equal((int64_t)RUN(&t, MOV64K(R1, 1), LDFUNC(R2, 5), MOV64K(R3, 0), MOV64K(R4, 1),
				      HELPER(BPF_FUNC_loop), EXIT, MOV64K(R0, 0), EXIT), -EINVAL);
	assert_int_equal(RUN(&t, MOV64K(R1, 100000), LDFUNC(R2, 5), MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_loop),
			     EXIT, MOV64K(R0, 0), EXIT), 100000);
	test_bpf_end(&t);
}

/** Keys and values are those of the map: their sum comes out, and how many there were. */
static uint64_t sum_up(struct test_bpf *t, int map)
{
	const struct bpf_insn insns[] = { ST(BPF_DW, R10, -8, 0), LDMAP(R1, map), LDFUNC(R2, 9), MOV64X(R3, R10),
					  MOV64K(R4, 0), HELPER(BPF_FUNC_for_each_map_elem), MOV64X(R6, R0),
					  LDX(BPF_DW, R0, R10, -8), ALU64K(BPF_LSH, R6, 32), ADD64X(R0, R6), EXIT,
					  /* */
					  LDX(BPF_W, R2, R2, 0), LDX(BPF_DW, R3, R3, 0), ADD64X(R2, R3),
					  LDX(BPF_DW, R5, R4, -8), ADD64X(R5, R2), STX(BPF_DW, R4, -8, R5),
					  MOV64K(R0, 0), EXIT };
	int prog = test_bpf_prog(t, insns, COUNT(insns));
	uint64_t r0;

	assert_true(prog >= 0);
	r0 = test_bpf_run(t, prog);
	assert_int_equal(t->last.trap, 0);
	test_bpf_drop_progs(t);
	return r0;
}

static void every_element_once(void **state)
{
	uint64_t value[2], sum = 0;
	struct test_bpf t;
	uint32_t key, n;

	(void)state;
	begin(&t, 0);
	for (key = 0; key < 5; key++) {
		value[0] = 100 + key;
		assert_int_equal(leat_bpf_map_update(&t.map[ARRAY], &key, value, BPF_ANY), 0);
	}
	assert_int_equal(sum_up(&t, ARRAY), (UINT64_C(5) << 32) + 10 + 510);
	assert_int_equal(sum_up(&t, HASH), 0);
	/* so many that buckets overflow */
	for (n = 0; n < HASH_ENTRIES; n++) {
		key = n * 7;
		value[0] = n;
		sum += key + value[0];
		assert_int_equal(leat_bpf_map_update(&t.map[HASH], &key, value, BPF_NOEXIST), 0);
	}
	assert_int_equal(sum_up(&t, HASH), ((uint64_t)HASH_ENTRIES << 32) + sum);
	key = 9;
	value[0] = 1000;
	value[1] = 77; /* another CPU's */
	assert_int_equal(leat_bpf_map_update(&t.map[PERCPU_HASH], &key, value, BPF_ANY), 0);
	assert_int_equal(sum_up(&t, PERCPU_HASH), (UINT64_C(1) << 32) + 1009);
	test_bpf_end(&t);
}

/** A walk over an empty map costs fuel, too, and what ends it is counted at the call. */
static void walks_cost_fuel(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t, 100);
	assert_int_equal(RUN(&t, MOV64K(R4, 0), LDMAP(R1, HASH), LDFUNC(R2, 5), MOV64K(R3, 0),
			     HELPER(BPF_FUNC_for_each_map_elem), MOV64K(R0, 2), EXIT, MOV64K(R0, 0), EXIT), 0);
	assert_int_equal(t.last.trap, 1 + LEAT_BPF_TRAP_FUEL);
	assert_int_equal(traps, 1);
	test_bpf_end(&t);
}

/** All that is there may be taken out on the way. */
static void elements_go_meanwhile(void **state)
{
	struct test_bpf t;
	uint32_t key, next;
	uint64_t value = 1;

	(void)state;
	begin(&t, 0);
	for (key = 0; key < 1000; key++)
		assert_int_equal(leat_bpf_map_update(&t.map[HASH], &key, &value, BPF_ANY), 0);
	assert_int_equal(RUN(&t, LDMAP(R1, HASH), LDFUNC(R2, 5), MOV64K(R3, 0), MOV64K(R4, 0),
			     HELPER(BPF_FUNC_for_each_map_elem), EXIT, HELPER(BPF_FUNC_map_delete_elem), MOV64K(R0, 0),
			     EXIT), 1000);
	assert_int_equal(leat_bpf_map_next_key(&t.map[HASH], NULL, &next), -ENOENT);
	test_bpf_end(&t);
}

/** A tail call in a callback replaces the callback: the other program's exit goes back to the helper. */
static void tail_call_in_a_callback(void **state)
{
	static const struct bpf_insn other[] = { LDX(BPF_W, R0, R1, 12), EXIT };
	static const struct bpf_insn caller[] = {
		STX(BPF_DW, R10, -8, R1), ST(BPF_DW, R10, -16, 0), MOV64K(R1, 5), LDFUNC(R2, 8), MOV64X(R3, R10),
		MOV64K(R4, 0), HELPER(BPF_FUNC_loop), LDX(BPF_DW, R1, R10, -16), ALU64K(BPF_LSH, R0, 8),
		ADD64X(R0, R1), EXIT,
		/* */
		LDX(BPF_DW, R5, R2, -16), ADD64K(R5, 1), STX(BPF_DW, R2, -16, R5), MOV64X(R3, R1),
		LDX(BPF_DW, R1, R2, -8), LDMAP(R2, PROGS), HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT
	};
	struct test_bpf t;
	int target, prog;

	(void)state;
	begin(&t, 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 8, 0), PROGS);
	target = test_bpf_prog(&t, other, COUNT(other));
	prog = test_bpf_prog(&t, caller, COUNT(caller));
	assert_true(target >= 0 && prog >= 0);
	assert_int_equal(leat_bpf_prog_array_set(&t.map[PROGS], 2, &t.prog[target]), 0);
	t.rxq.port = 7; /* what the other program returns ends the loop */
	assert_int_equal(test_bpf_run(&t, prog), (3 << 8) + 3);
	assert_ptr_equal(t.last.prog, &t.prog[prog]);
	t.rxq.port = 0;
	assert_int_equal(test_bpf_run(&t, prog), (5 << 8) + 5);
	test_bpf_end(&t);
}

static int interpreted(void **state)
{
	(void)state;
	jit = false;
	return 0;
}

#if LEAT_HAVE_JIT
static int compiled(void **state)
{
	(void)state;
	jit = true;
	return 0;
}

#define BOTH(test) cmocka_unit_test_setup(test, interpreted), cmocka_unit_test_setup(test, compiled)
#else
#define BOTH(test) cmocka_unit_test_setup(test, interpreted)
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(loop_limits),
		BOTH(every_element_once),
		BOTH(walks_cost_fuel),
		BOTH(elements_go_meanwhile),
		BOTH(tail_call_in_a_callback),
	};

	return cmocka_run_group_tests_name("callbacks", tests, NULL, NULL);
}
