/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_test.c: the engines, one after the other: every operation of RFC 9669 on edge values; every region's edges byte by byte; fuel,
 * calls, tail calls, callbacks, and what a program that ends early leaves behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/engine/interp.h"
#include "bpf/test_run.h"
#include "bpf/engine/test_vector_prog.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TRAP(reason) (1 + LEAT_BPF_TRAP_##reason)

/** Adds a program of the words given. */
#define PROG(t, ...)                                                                                                   \
	({                                                                                                             \
		static const struct bpf_insn insns_[] = { __VA_ARGS__ };                                               \
		int number_ = test_bpf_prog(t, insns_, COUNT(insns_));                                                 \
		assert_true(number_ >= 0);                                                                             \
		number_;                                                                                               \
	})

static uint64_t run_once(struct test_bpf *t, const struct bpf_insn *insns, uint32_t n)
{
	int prog = test_bpf_prog(t, insns, n);
	uint64_t r0;

	assert_true(prog >= 0);
	r0 = test_bpf_run(t, prog);
	if (t->last.trap)
		assert_int_equal(r0, LEAT_XDP_ABORTED);
	test_bpf_drop_progs(t);
	return r0;
}

#define RUN(t, ...)                                                                                                    \
	({                                                                                                             \
		const struct bpf_insn insns_[] = { __VA_ARGS__ };                                                      \
		run_once(t, insns_, COUNT(insns_));                                                                    \
	})

/* Which engine the group at hand is about, and what the compiler must do without. */
static struct {
	bool jit, counted;
	unsigned int without;
} engine;

static void begin_with(struct test_bpf *t, uint64_t fuel)
{
	assert_int_equal(test_bpf_begin(t, fuel), 0);
	t->jit = engine.jit;
	t->env->coverage = engine.counted;
	test_bpf_packet(t, NULL, 64, 0);
}

static void begin(struct test_bpf *t)
{
	begin_with(t, 0);
}

/* ---- every operation ---- */

static void run_vector(struct test_bpf *t, const struct test_vector *v, enum test_where where)
{
	struct test_code code;
	uint64_t got[2];

	test_vector_prog(v, where, &code);
	memset(t->xdp.data, 0, 24);
	if (run_once(t, code.insn, code.n) != TEST_VECTOR_OK)
		fail_msg("%s: did not run", leat_insn_row[v->op].name);
	memcpy(got, t->xdp.data, sizeof(got));
	if (got[0] == v->want && got[1] == v->want2)
		return;
	fail_msg("%s a %#llx b %#llx c %#llx imm %d: %#llx and %#llx, not %#llx and %#llx", leat_insn_row[v->op].name,
		 (unsigned long long)v->a, (unsigned long long)v->b, (unsigned long long)v->c, v->imm,
		 (unsigned long long)got[0], (unsigned long long)got[1], (unsigned long long)v->want,
		 (unsigned long long)v->want2);
}

static void vectors(enum test_where where)
{
	struct test_bpf t;
	size_t i;

	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), 0);
	for (i = 0; i < COUNT(test_vector); i++)
		run_vector(&t, &test_vector[i], where);
	test_bpf_end(&t);
}

static void every_operation(void **state)
{
	(void)state;
	vectors(TEST_ON_STACK);
	if (engine.without || engine.counted) /* memory is no other on a machine that has less, or when counted */
		return;
	vectors(TEST_IN_PACKET);
	vectors(TEST_IN_MAP);
}

static void every_row_has_a_vector(void **state)
{
	static bool seen[LEAT_INSN_OPS];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(test_vector); i++)
		seen[test_vector[i].op] = true;
	for (i = 0; i < LEAT_INSN_OPS; i++)
		if (!seen[i] && i != LEAT_OP_CALL && i != LEAT_OP_CALL_LOCAL && i != LEAT_OP_CALL_KFUNC &&
		    i != LEAT_OP_EXIT && !(i >= LEAT_OP_LD64_MAP && i <= LEAT_OP_LD64_FUNC))
			fail_msg("%s has no vector", leat_insn_row[i].name);
}

static void division_by_an_immediate_zero(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(RUN(&t, MOV64K(R0, 7), ALU64K(BPF_DIV, R0, 0), EXIT), 0);
	assert_int_equal(RUN(&t, MOV64K(R0, 7), ALU64K(BPF_MOD, R0, 0), EXIT), 7);
	assert_int_equal(RUN(&t, MOV64K(R0, -7), ALU32K(BPF_MOD, R0, 0), EXIT), 0xfffffff9);
	test_bpf_end(&t);
}

/* ---- the context ---- */

static void context(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	test_bpf_packet(&t, NULL, 40, 8);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 0), EXIT), (uintptr_t)t.xdp.data);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 4), EXIT), (uintptr_t)t.xdp.data_end);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 8), EXIT), (uintptr_t)t.xdp.data_meta);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 12), EXIT), 7);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 16), EXIT), 3);
	t.xdp.rxq = NULL;
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 12), EXIT), 0);
	assert_int_equal(RUN(&t, LDX(BPF_W, R0, R1, 16), EXIT), 0);
	test_bpf_end(&t);
}

/* ---- edges of regions ---- */

static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
static const int bytes[] = { 1, 2, 4, 8 };

/**
 * Loads and stores of each size at every distance from @low - 9 to @high + 9 of r6, which @code sets: good within
 * [low, high), a trap elsewhere.
 */
static void walk_edges(struct test_bpf *t, const struct bpf_insn *code, uint32_t n, int low, int high)
{
	struct bpf_insn insns[16];
	int off, s, kind;
	bool good;

	for (kind = 0; kind < 3; kind++) {
		for (s = 0; s < 4; s++) {
			for (off = low - 9; off < high + 9; off++) {
				const struct bpf_insn access[] = { LDX(sizes[s], R2, R6, off), ST(sizes[s], R6, off, 1),
								   STX(sizes[s], R6, off, R6) };
				const struct bpf_insn end[] = { MOV64K(R0, 2), EXIT };

				memcpy(insns, code, n * sizeof(*code));
				insns[n] = access[kind];
				memcpy(&insns[n + 1], end, sizeof(end));
				good = off >= low && off + bytes[s] <= high;
				assert_int_equal(run_once(t, insns, n + 3), good ? 2 : 0);
				assert_int_equal(t->last.trap, good ? 0 : TRAP(ACCESS));
			}
		}
	}
}

#define EDGES(t, low, high, ...)                                                                                       \
	do {                                                                                                           \
		const struct bpf_insn code_[] = { __VA_ARGS__ };                                                       \
		walk_edges(t, code_, COUNT(code_), low, high);                                                         \
	} while (0)

/* A number that the verifier does not know. */
#define UNKNOWN_ZERO(reg) LDX(BPF_W, reg, R1, 12), ALU64K(BPF_AND, reg, 0x100)

static void edges(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	test_bpf_packet(&t, NULL, 20, 12);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 20, 3, 0), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 20, 1, 0), 1);
	EDGES(&t, 0, 20, LDX(BPF_W, R6, R1, 0));
	EDGES(&t, 0, 12, LDX(BPF_W, R6, R1, 8));
	EDGES(&t, -512, 0, UNKNOWN_ZERO(R7), MOV64X(R6, R10), ADD64X(R6, R7));
	EDGES(&t, 0, 20, UNKNOWN_ZERO(R7), LDVALUE(R6, 1, 0), ADD64X(R6, R7));
	EDGES(&t, -4, 16, UNKNOWN_ZERO(R7), LDVALUE(R6, 1, 4), ADD64X(R6, R7));
	test_bpf_packet(&t, NULL, 0, 0);
	EDGES(&t, 0, 0, LDX(BPF_W, R6, R1, 0));
	test_bpf_end(&t);
}

static void edges_of_a_record(void **state)
{
	struct test_bpf t;
	int off;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), 0);
	for (off = -9; off < 30; off++) {
		const uint64_t r0 = RUN(&t, LDMAP(R1, 0), MOV64K(R2, 20), MOV64K(R3, 0),
					HELPER(BPF_FUNC_ringbuf_reserve), JMP64K(BPF_JNE, R0, 0, 2), MOV64K(R0, 1),
					EXIT, MOV64X(R6, R0), ST(BPF_W, R6, off, 1), MOV64X(R1, R6), MOV64K(R2, 0),
					HELPER(BPF_FUNC_ringbuf_discard), MOV64K(R0, 2), EXIT);

		assert_int_equal(r0, off >= 0 && off + 4 <= 20 ? 2 : 0);
		assert_null(t.last.record);
	}
	test_bpf_end(&t);
}

/** One instruction that sees the packet on one path and a map value on the other. */
static void either_region(void **state)
{
	struct test_bpf t;
	uint32_t port;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 20, 1, 0), 0);
	for (port = 0; port < 2; port++) {
		t.rxq.port = port;
		EDGES(&t, 0, port ? 20 : 64, LDX(BPF_W, R2, R1, 12), LDX(BPF_W, R6, R1, 0), JMP64K(BPF_JEQ, R2, 0, 5),
		      LDVALUE(R6, 0, 0), UNKNOWN_ZERO(R7), ADD64X(R6, R7));
		if (!port)
			test_bpf_packet(&t, NULL, 64, 0);
	}
	test_bpf_end(&t);
}

static void read_only_maps(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), 0);
	PROG(&t, LDVALUE(R6, 0, 0), LDX(BPF_W, R2, R1, 12), UNKNOWN_ZERO(R7), ADD64X(R6, R7),
	     JMP64K(BPF_JEQ, R2, 7, 1), ST(BPF_W, R6, 0, 1), MOV64K(R0, 2), EXIT);
	t.rxq.port = 1;
	assert_int_equal(test_bpf_run(&t, 0), 2);
	/* the verifier would refuse it now; code is made for maps as they are */
	t.map[0].frozen = true;
	leat_bpf_jit_free(&t.prog[0]);
	assert_int_equal(t.jit ? leat_bpf_jit_compile(&t.prog[0]) : 0, 0);
	assert_int_equal(test_bpf_run(&t, 0), 0);
	assert_int_equal(t.last.trap, TRAP(ACCESS));
	assert_int_equal(t.prog[0].trap[7].n[LEAT_BPF_TRAP_ACCESS], 1);
	test_bpf_end(&t);
}

static void misaligned_atomics(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 32, 1, 0), 0);
	assert_int_equal(
		RUN(&t, LDVALUE(R1, 0, 0), MOV64K(R2, 1), ATOMIC(BPF_DW, BPF_ADD, R1, 8, R2), MOV64K(R0, 2), EXIT), 2);
	assert_int_equal(
		RUN(&t, LDVALUE(R1, 0, 0), MOV64K(R2, 1), ATOMIC(BPF_DW, BPF_ADD, R1, 4, R2), MOV64K(R0, 2), EXIT), 0);
	assert_int_equal(t.last.trap, TRAP(ACCESS));
	assert_int_equal(
		RUN(&t, LDVALUE(R1, 0, 0), MOV64K(R2, 1), ATOMIC(BPF_W, BPF_ADD, R1, 28, R2), MOV64K(R0, 2), EXIT), 2);
	test_bpf_end(&t);
}

/* ---- the stack ---- */

static void frames_begin_zeroed(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	memset(t.env->cpu[0].stack, 0xff, LEAT_BPF_FRAMES_MAX * LEAT_BPF_STACK_SIZE);
	assert_int_equal(RUN(&t, LDX(BPF_DW, R0, R10, -512), EXIT), 0);
	/* a function dirties its frame; the next one finds zeros */
	assert_int_equal(RUN(&t, CALL(2), CALL(1), EXIT, LDX(BPF_DW, R0, R10, -8), ST(BPF_DW, R10, -8, -1), EXIT), 0);
	test_bpf_end(&t);
}

/** A write to an unknown place of the stack may not touch a spilled pointer. */
static void spilled_pointers_are_kept(void **state)
{
	struct test_bpf t;
	uint32_t port;

	(void)state;
	begin(&t);
	PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), MOV64X(R3, R10), ADD64X(R3, R2),
	     ST(BPF_B, R3, -32, 1), LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 16), EXIT);
	for (port = 0; port < 33; port++) {
		t.rxq.port = port;
		assert_int_equal(test_bpf_run(&t, 0), port < 24 ? 3 : 0);
		assert_int_equal(t.last.trap, port < 24 ? 0 : TRAP(ACCESS));
	}
	test_bpf_end(&t);
}

/** Program @number writes the byte that port says, of 32 at the end of a frame with a pointer in its last 8. */
static void check_kept(struct test_bpf *t, int number, bool kept)
{
	for (t->rxq.port = 0; t->rxq.port < 32; t->rxq.port++) {
		assert_int_equal(test_bpf_run(t, number), kept && t->rxq.port >= 24 ? 0 : 3);
		assert_int_equal(t->last.trap, kept && t->rxq.port >= 24 ? TRAP(ACCESS) : 0);
	}
}

/** Compilers let what lives one after the other share its place: only a pointer that is read again is in the way. */
static void dead_pointers_give_way(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	check_kept(&t, PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), MOV64X(R3, R10), ADD64X(R3, R2),
			    ST(BPF_B, R3, -32, 1), MOV64K(R0, 3), EXIT), false);
	/* something else is stored there before it is read */
	check_kept(&t, PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), MOV64X(R3, R10), ADD64X(R3, R2),
			    ST(BPF_B, R3, -32, 1), ST(BPF_DW, R10, -8, 3), LDX(BPF_DW, R0, R10, -8), EXIT), false);
	/* from a function that gets the address */
	check_kept(&t, PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), MOV64X(R1, R10), CALL(2),
			    MOV64K(R0, 3), EXIT, ADD64X(R1, R2), ST(BPF_B, R1, -32, 1), MOV64K(R0, 0), EXIT), false);
	check_kept(&t, PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), MOV64X(R1, R10), CALL(3),
			    LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 16), EXIT, ADD64X(R1, R2),
			    ST(BPF_B, R1, -32, 1), MOV64K(R0, 0), EXIT), true);
	/* read where the path that writes meets one that does not, and was walked first */
	check_kept(&t, PROG(&t, STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R2, R1, 12), LDX(BPF_W, R4, R1, 16),
			    MOV64X(R3, R10), ADD64X(R3, R2), JMP64K(BPF_JNE, R4, 0, 1), GOTO(1),
			    ST(BPF_B, R3, -32, 1), LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 16), EXIT), true);
	test_bpf_end(&t);
}

/** A pointer into the caller's frame reaches that frame only. */
static void callers_frame(void **state)
{
	struct test_bpf t;
	uint32_t port;

	(void)state;
	begin(&t);
	PROG(&t, LDX(BPF_W, R2, R1, 12), MOV64X(R1, R10), CALL(1), EXIT, ADD64X(R1, R2), ST(BPF_B, R1, -8, 1),
	     MOV64K(R0, 2), EXIT);
	for (port = 0; port < 20; port++) {
		t.rxq.port = port;
		assert_int_equal(test_bpf_run(&t, 0), port < 8 ? 2 : 0);
	}
	test_bpf_end(&t);
}

/* ---- fuel ---- */

static void fuel(void **state)
{
	struct test_bpf t;

	(void)state;
	begin_with(&t, 100);
	/* each turn costs 2: 50 turns are paid for */
	PROG(&t, LDX(BPF_W, R2, R1, 12), ADD64K(R2, -1), JMP64K(BPF_JNE, R2, 0, -2), MOV64K(R0, 2), EXIT);
	t.rxq.port = 51;
	assert_int_equal(test_bpf_run(&t, 0), 2);
	assert_int_equal(t.last.fuel, 0);
	t.rxq.port = 52;
	assert_int_equal(test_bpf_run(&t, 0), 0);
	assert_int_equal(t.last.trap, TRAP(FUEL));
	assert_int_equal(t.prog[0].trap[2].n[LEAT_BPF_TRAP_FUEL], 1);
	/* a jump to itself */
	assert_int_equal(RUN(&t, MOV64K(R0, 0), GOTO(-1), EXIT), 0);
	assert_int_equal(t.last.trap, TRAP(FUEL));
	assert_int_equal(RUN(&t, MOV64K(R0, 0), GOTOL(-1), EXIT), 0);
	assert_int_equal(t.last.trap, TRAP(FUEL));
	/* a call costs the function it calls */
	assert_int_equal(RUN(&t, CALL(1), EXIT, MOV64K(R0, 2), EXIT), 2);
	assert_int_equal(t.last.fuel, 98);
	test_bpf_end(&t);
}

/** Helpers cost what they are given: a program that has megabytes summed again and again ends, too. */
static void fuel_of_memory(void **state)
{
	struct test_bpf t;

	(void)state;
	begin_with(&t, 100);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 4096, 1, 0), 0);
#define SUM(bytes)                                                                                                     \
	MOV64K(R1, 0), MOV64K(R2, 0), LDVALUE(R3, 0, 0), MOV64K(R4, bytes), MOV64K(R5, 0), HELPER(BPF_FUNC_csum_diff)
	assert_int_equal(RUN(&t, SUM(1600), MOV64K(R0, 2), EXIT), 2);
	assert_int_equal(t.last.fuel, 0);
	assert_int_equal(RUN(&t, SUM(4), MOV64K(R0, 2), EXIT), 2);
	assert_int_equal(t.last.fuel, 100);
	assert_int_equal(RUN(&t, SUM(1616), MOV64K(R0, 2), EXIT), 0);
	assert_int_equal(t.last.trap, TRAP(FUEL));
	test_bpf_end(&t);
}

/* ---- calls ---- */

static void calls_keep_r6_to_r9(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(RUN(&t, MOV64K(R6, 1), MOV64K(R7, 20), MOV64K(R8, 300), MOV64K(R9, 4000), MOV64K(R1, 50000),
			     CALL(6), ADD64X(R0, R6), ADD64X(R0, R7), ADD64X(R0, R8), ADD64X(R0, R9), EXIT, EXIT,
			     MOV64X(R0, R1), MOV64K(R6, 9), MOV64K(R7, 9), MOV64K(R8, 9), MOV64K(R9, 9), EXIT),
			 54321);
	test_bpf_end(&t);
}

/** f1 calls f2 calls ... calls f7, each with a frame of its own. */
static void eight_frames(void **state)
{
	struct bpf_insn insns[64];
	struct test_bpf t;
	unsigned int f;

	(void)state;
	begin(&t);
	for (f = 0; f < 8; f++) {
		const struct bpf_insn code[] = { ST(BPF_DW, R10, -512, f), CALL(3), LDX(BPF_DW, R1, R10, -512),
						 ADD64X(R0, R1), EXIT };
		const struct bpf_insn last[] = { ST(BPF_DW, R10, -512, f), MOV64K(R0, 100), LDX(BPF_DW, R1, R10, -512),
						 ADD64X(R0, R1), EXIT };

		memcpy(&insns[f * 5], f == 7 ? last : code, sizeof(code));
	}
	assert_int_equal(run_once(&t, insns, 40), 128);
	test_bpf_end(&t);
}

/* ---- tail calls ---- */

#define TAIL(number, index) LDMAP(R2, number), MOV64K(R3, index), HELPER(BPF_FUNC_tail_call)

static void tail_calls(void **state)
{
	struct test_bpf t;
	int self;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), 1);
	/* counts its runs and calls itself */
	self = PROG(&t, LDVALUE(R4, 1, 0), LDX(BPF_DW, R5, R4, 0), ADD64K(R5, 1), STX(BPF_DW, R4, 0, R5), TAIL(0, 1),
		    LDVALUE(R4, 1, 0), LDX(BPF_DW, R0, R4, 0), EXIT);
	assert_int_equal(leat_bpf_prog_array_set(&t.map[0], 1, &t.prog[self]), 0);
	assert_int_equal(test_bpf_run(&t, self), 34); /* the first, and 33 tail calls */
	assert_int_equal(t.last.tail_calls, 33);
	assert_int_equal(t.last.frames, 0);
	/* nothing there, and past the end */
	assert_int_equal(RUN(&t, TAIL(0, 2), MOV64K(R0, 5), EXIT), 5);
	test_bpf_end(&t);
}

static void tail_call_past_the_end(void **state)
{
	struct test_bpf t;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), 0);
	assert_int_equal(RUN(&t, TAIL(0, 4), MOV64K(R0, 5), EXIT), 5);
	assert_int_equal(RUN(&t, TAIL(0, -1), MOV64K(R0, 5), EXIT), 5);
	assert_int_equal(t.last.tail_calls, 0);
	test_bpf_end(&t);
}

/** A tail call in a function replaces the function: its exit goes back to the function's caller. */
static void tail_call_in_a_function(void **state)
{
	struct test_bpf t;
	int target, caller;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), 0);
	target = PROG(&t, LDX(BPF_DW, R6, R10, -8), LDX(BPF_W, R0, R1, 12), ADD64X(R0, R6), EXIT);
	caller = PROG(&t, MOV64K(R6, 1000), CALL(2), ADD64X(R0, R6), EXIT, ST(BPF_DW, R10, -8, 5), TAIL(0, 0),
		      MOV64K(R0, 1), EXIT);
	assert_int_equal(leat_bpf_prog_array_set(&t.map[0], 0, &t.prog[target]), 0);
	assert_int_equal(test_bpf_run(&t, caller), 1007);
	assert_ptr_equal(t.last.prog, &t.prog[caller]);
	test_bpf_end(&t);
}

/** Seven calls deep, a tail call to a program that calls: the eighth frame is its own, the ninth is a trap. */
static void tail_call_and_depth(void **state)
{
	struct test_bpf t;
	int target, caller;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), 0);
	target = PROG(&t, CALL(1), EXIT, CALL(1), EXIT, MOV64K(R0, 2), EXIT);
	caller = PROG(&t, CALL(1), EXIT, CALL(1), EXIT, CALL(1), EXIT, CALL(1), EXIT, CALL(1), EXIT, CALL(1), EXIT,
		      TAIL(0, 0), MOV64K(R0, 1), EXIT);
	assert_int_equal(leat_bpf_prog_array_set(&t.map[0], 0, &t.prog[target]), 0);
	assert_int_equal(test_bpf_run(&t, caller), 0);
	assert_int_equal(t.last.trap, TRAP(FRAMES));
	assert_int_equal(t.prog[target].trap[2].n[LEAT_BPF_TRAP_FRAMES], 1);
	test_bpf_end(&t);
}

/* ---- helpers ---- */

static uint64_t test_trap(struct leat_bpf_run *run, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	(void)a1;
	(void)a2;
	(void)a3;
	(void)a4;
	(void)a5;
	run->trap = TRAP(HELPER);
	return 0;
}

static const struct leat_bpf_helper test_helpers[] = {
	{ 9999, "trap", test_trap, LEAT_BPF_RET_NUMBER, { LEAT_BPF_ARG_NONE }, LEAT_BPF_HELPER_TRAPS },
	{ .name = NULL },
};

static void callbacks(void **state)
{
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t);
	/* sums the index into the word that the context points to; ends at 10 */
	prog = PROG(&t, LDX(BPF_W, R6, R1, 12), ST(BPF_DW, R10, -8, 0), MOV64X(R1, R6), LDFUNC(R2, 9), MOV64X(R3, R10),
		    ADD64K(R3, -8), MOV64K(R4, 0), HELPER(BPF_FUNC_loop), LDX(BPF_DW, R1, R10, -8),
		    ALU64K(BPF_LSH, R0, 32), ADD64X(R0, R1), EXIT, /* */
		    LDX(BPF_DW, R3, R2, 0), ADD64X(R3, R1), STX(BPF_DW, R2, 0, R3), MOV64K(R0, 0),
		    JMP64K(BPF_JNE, R1, 10, 1), MOV64K(R0, 1), EXIT);
	t.rxq.port = 0;
	assert_int_equal(test_bpf_run(&t, prog), 0);
	t.rxq.port = 4;
	assert_int_equal(test_bpf_run(&t, prog), (UINT64_C(4) << 32) + 6);
	t.rxq.port = 40;
	assert_int_equal(test_bpf_run(&t, prog), (UINT64_C(11) << 32) + 55);
	test_bpf_end(&t);
}

/** A trap in a callback ends the program, and is counted once, where it was. */
static void trap_in_a_callback(void **state)
{
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t);
	prog = PROG(&t, MOV64K(R1, 3), LDFUNC(R2, 6), MOV64X(R3, R10), MOV64K(R4, 0), HELPER(BPF_FUNC_loop),
		    MOV64K(R0, 2), EXIT, LDX(BPF_DW, R3, R2, -8), ADD64X(R2, R3), ADD64X(R2, R1),
		    LDX(BPF_B, R3, R2, -1), MOV64K(R0, 0), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.last.trap, TRAP(ACCESS));
	assert_int_equal(t.prog[prog].trap[11].n[LEAT_BPF_TRAP_ACCESS], 1);
	assert_int_equal(t.prog[prog].trap[5].n[LEAT_BPF_TRAP_ACCESS], 0);
	test_bpf_end(&t);
}

/** A callback that never ends runs out of fuel. */
static void endless_callback(void **state)
{
	struct test_bpf t;
	int prog;

	(void)state;
	begin_with(&t, 100);
	prog = PROG(&t, MOV64K(R1, LEAT_BPF_LOOP_MAX), LDFUNC(R2, 6), MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_loop),
		    MOV64K(R0, 2), EXIT, MOV64K(R0, 0), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.last.trap, TRAP(FUEL));
	test_bpf_end(&t);
}

static void trap_of_a_helper(void **state)
{
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t);
	prog = PROG(&t, HELPER(9999), MOV64K(R0, 2), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.prog[prog].trap[0].n[LEAT_BPF_TRAP_HELPER], 1);
	test_bpf_end(&t);
}

/** Memory that a helper is given is looked at before the call. */
static void memory_of_helpers(void **state)
{
	struct test_bpf t;
	uint32_t len;

	(void)state;
	begin(&t);
	test_bpf_packet(&t, NULL, 16, 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), 0);
	for (len = 1; len < 40; len++) {
		t.rxq.port = len;
		RUN(&t, LDX(BPF_W, R3, R1, 0), LDX(BPF_W, R4, R1, 12), MOV64K(R1, 0), MOV64K(R2, 0), MOV64K(R5, 0),
		    ALU64K(BPF_AND, R4, 0xfc), HELPER(BPF_FUNC_csum_diff), MOV64K(R0, 2), EXIT);
		assert_int_equal(t.last.trap, (len & 0xfc) <= 16 ? 0 : TRAP(HELPER));
	}
	/* NULL with a length */
	t.rxq.port = 4;
	RUN(&t, LDX(BPF_W, R4, R1, 12), MOV64K(R3, 0), MOV64K(R1, 0), MOV64K(R2, 0), MOV64K(R5, 0),
	    HELPER(BPF_FUNC_csum_diff), MOV64K(R0, 2), EXIT);
	assert_int_equal(t.last.trap, TRAP(HELPER));
	/* a key that is not wholly in the packet */
	RUN(&t, LDX(BPF_W, R2, R1, 0), ADD64K(R2, 12), LDMAP(R1, 0), HELPER(BPF_FUNC_map_lookup_elem), MOV64K(R0, 2),
	    EXIT);
	assert_int_equal(t.last.trap, 0);
	RUN(&t, LDX(BPF_W, R2, R1, 0), ADD64K(R2, 13), LDMAP(R1, 0), HELPER(BPF_FUNC_map_lookup_elem), MOV64K(R0, 2),
	    EXIT);
	assert_int_equal(t.last.trap, TRAP(HELPER));
	test_bpf_end(&t);
}

/** A record that a trap leaves reserved is given up. */
static void record_of_a_trap(void **state)
{
	struct test_bpf t;
	unsigned int i;

	(void)state;
	begin(&t);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), 0);
	for (i = 0; i < 1000; i++) {
		RUN(&t, LDMAP(R1, 0), MOV64K(R2, 16), MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_reserve),
		    JMP64K(BPF_JEQ, R0, 0, 4), ST(BPF_W, R0, 16, 1), MOV64X(R1, R0), MOV64K(R2, 0),
		    HELPER(BPF_FUNC_ringbuf_submit), MOV64K(R0, 2), EXIT);
		assert_null(t.last.record);
	}
	test_bpf_end(&t);
}

static int use(bool jit, unsigned int without)
{
	engine.jit = jit;
	engine.counted = false;
	engine.without = without;
	leat_jit_without = without;
	return 0;
}

static int use_interp(void **state)
{
	(void)state;
	return use(false, 0);
}

static int use_counted(void **state)
{
	(void)state;
	use(false, 0);
	engine.counted = true;
	return 0;
}

#if LEAT_HAVE_JIT
static int use_jit(void **state)
{
	(void)state;
	return use(true, 0);
}

/** As on a machine that has less. */
static int use_plain_jit(void **state)
{
	(void)state;
	return use(true, LEAT_JIT_NO_BMI2 | LEAT_JIT_NO_AVX | LEAT_JIT_NO_SHORT | LEAT_JIT_NO_SHARED);
}
#define COMPILED EACH(JIT) EACH(PLAIN)
#else
#define COMPILED
#endif

static int register_helpers(void **state)
{
	(void)state;
	leat_bpf_helper_register(test_helpers);
	return 0;
}

#define EACH(X)                                                                                                        \
	X(every_operation) X(every_row_has_a_vector) X(division_by_an_immediate_zero) \
	X(context) X(edges) X(edges_of_a_record) \
	X(either_region) X(read_only_maps) X(misaligned_atomics) \
	X(frames_begin_zeroed) X(spilled_pointers_are_kept) X(dead_pointers_give_way) \
	X(callers_frame) X(fuel) X(fuel_of_memory) \
	X(calls_keep_r6_to_r9) X(eight_frames) X(tail_calls) \
	X(tail_call_past_the_end) X(tail_call_in_a_function) X(tail_call_and_depth) \
	X(callbacks) X(trap_in_a_callback) X(endless_callback) \
	X(trap_of_a_helper) X(memory_of_helpers) X(record_of_a_trap)

#define INTERP(test) { "interp: " #test, test, use_interp, NULL, NULL },
#define COUNTED(test) { "counted: " #test, test, use_counted, NULL, NULL },
#define JIT(test) { "jit: " #test, test, use_jit, NULL, NULL },
#define PLAIN(test) { "plain jit: " #test, test, use_plain_jit, NULL, NULL },

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(INTERP) EACH(COUNTED) COMPILED
	};

	return cmocka_run_group_tests(tests, register_helpers, NULL);
}
