/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock_test.c: programs with spin locks on both engines: what two workers count is counted, a trap gives the lock back,
 * and a lock that stays taken is a trap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "bpf/map/mem.h"
#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#ifdef __SANITIZE_THREAD__
#define ROUNDS 3000u
#else
#define ROUNDS 100000u
#endif

enum { PLAIN, LOCKED };

/* The packet pointer is in r7, a value of the map in r6. The lock is at 8; what it guards at 0 and 16. */
#define TAKE                                                                                                           \
	LDX(BPF_W, R7, R1, 0), ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, LOCKED),              \
		HELPER(BPF_FUNC_map_lookup_elem), JMP64K(BPF_JNE, R0, 0, 2), MOV64K(R0, 100), EXIT, MOV64X(R6, R0),    \
		MOV64X(R1, R6), ADD64K(R1, 8), HELPER(BPF_FUNC_spin_lock)
#define GIVE MOV64X(R1, R6), ADD64K(R1, 8), HELPER(BPF_FUNC_spin_unlock)

/* Both counters, one after the other; r0 is by how much they differed. */
static const struct bpf_insn count[] = {
	TAKE, LDX(BPF_DW, R8, R6, 0), LDX(BPF_DW, R9, R6, 16), MOV64X(R2, R8), ADD64K(R2, 1), STX(BPF_DW, R6, 0, R2),
	MOV64X(R2, R9), ADD64K(R2, 1), STX(BPF_DW, R6, 16, R2), GIVE, MOV64X(R0, R8), ALU64X(BPF_SUB, R0, R9), EXIT,
};
static const struct bpf_insn reckless[] = { TAKE, LDX(BPF_B, R8, R7, 60), GIVE, MOV64K(R0, 1), EXIT };
static const struct bpf_insn endless[] = { TAKE, GOTO(-1), GIVE, MOV64K(R0, 1), EXIT };

enum { COUNTS, RECKLESS, ENDLESS };

struct locks {
	struct test_bpf t;
	uint32_t *lock;
	uint64_t *value;
};

static void begin(struct locks *l, bool jit)
{
	const uint32_t zero = 0;

	assert_int_equal(test_bpf_begin(&l->t, 10000), 0);
	l->t.jit = jit;
	assert_int_equal(test_bpf_map(&l->t, BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0), PLAIN);
	assert_int_equal(test_bpf_map(&l->t, BPF_MAP_TYPE_HASH, 4, 24, 10, 0), LOCKED);
	l->t.map[LOCKED].lock = 1 + 8;
	assert_int_equal(leat_bpf_map_update(&l->t.map[LOCKED], &zero, "\1\0\0\0\0\0\0\0lock\0\0\0\0\1\0\0\0\0\0\0", 0), 0);
	l->value = l->t.map[LOCKED].type->lookup(&l->t.map[LOCKED], &zero, 0);
	l->lock = (uint32_t *)(l->value + 1);
	assert_int_equal(*l->lock, 0);
	assert_int_equal(test_bpf_prog(&l->t, count, COUNT(count)), COUNTS);
	assert_int_equal(test_bpf_prog(&l->t, reckless, COUNT(reckless)), RECKLESS);
	assert_int_equal(test_bpf_prog(&l->t, endless, COUNT(endless)), ENDLESS);
	test_bpf_packet(&l->t, NULL, 60, 0);
}

static uint32_t run(struct locks *l, int prog)
{
	return leat_bpf_prog_run(&l->t.prog[prog], &l->t.xdp, 0);
}

static uint64_t traps(const struct locks *l, int prog, enum leat_bpf_trap_reason reason)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < l->t.prog[prog].n_insns; i++)
		n += l->t.prog[prog].trap[i].n[reason];
	return n;
}

static void one_worker(struct locks *l)
{
	assert_int_equal(run(l, COUNTS), 0);
	assert_int_equal(run(l, COUNTS), 0);
	assert_true(l->value[0] == 3 && l->value[2] == 3 && !*l->lock);
	assert_int_equal(run(l, RECKLESS), LEAT_XDP_ABORTED);
	assert_int_equal(*l->lock, 0);
	assert_int_equal(traps(l, RECKLESS, LEAT_BPF_TRAP_ACCESS), 1);
	assert_int_equal(run(l, ENDLESS), LEAT_XDP_ABORTED);
	assert_int_equal(*l->lock, 0);
	assert_int_equal(traps(l, ENDLESS, LEAT_BPF_TRAP_FUEL), 1);
	assert_int_equal(run(l, COUNTS), 0);
}

/** As if its holder were not run any more; it is not ours to give back. */
static void a_lock_that_stays_taken(struct locks *l)
{
	leat_spin_yields = 3;
	*l->lock = 1;
	assert_int_equal(run(l, COUNTS), LEAT_XDP_ABORTED);
	assert_int_equal(traps(l, COUNTS, LEAT_BPF_TRAP_LOCK), 1);
	assert_int_equal(*l->lock, 1);
	*l->lock = 0;
	leat_spin_yields = 100000;
	assert_int_equal(run(l, COUNTS), 0);
	assert_int_equal(traps(l, COUNTS, LEAT_BPF_TRAP_LOCK), 1);
}

struct worker {
	struct locks *l;
	unsigned int cpu;
};

static void *counting(void *arg)
{
	struct worker *w = arg;
	struct leat_xdp_buff xdp = w->l->t.xdp;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++)
		assert_int_equal(leat_bpf_prog_run(&w->l->t.prog[COUNTS], &xdp, w->cpu), 0);
	return NULL;
}

static void two_workers(struct locks *l)
{
	struct worker w[2] = { { l, 0 }, { l, 1 } };
	uint64_t before = l->value[0], copy[3];
	const uint32_t zero = 0;
	pthread_t thread[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, counting, &w[i]), 0);
	for (i = 0; i < ROUNDS / 100; i++) { /* and a control thread */
		assert_int_equal(leat_bpf_map_lookup_locked(&l->t.map[LOCKED], &zero, copy), 0);
		assert_true(copy[0] == copy[2] && !copy[1]);
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_true(l->value[0] == before + 2 * ROUNDS && l->value[2] == l->value[0]);
}

static void all(bool jit)
{
	struct locks *l = NULL;

	assert_int_equal(posix_memalign((void **)&l, LEAT_CACHELINE, sizeof(*l)), 0);
	begin(l, jit);
	one_worker(l);
	a_lock_that_stays_taken(l);
	two_workers(l);
	test_bpf_end(&l->t);
	free(l);
}

static void interpreted(void **state)
{
	(void)state;
	all(false);
}

static void compiled(void **state)
{
	(void)state;
	if (LEAT_HAVE_JIT)
		all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreted),
		cmocka_unit_test(compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
