/* SPDX-License-Identifier: BSD-3-Clause */
/* cover_test.c: what is counted of instructions and of the ways that conditional jumps go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/engine/interp.h"
#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define QUEUE 16 /* struct xdp_md, rx_queue_index */

static void begin(struct test_bpf *t, uint64_t fuel)
{
	assert_int_equal(test_bpf_begin(t, fuel), 0);
	t->env->coverage = true;
	test_bpf_packet(t, NULL, 64, 0);
}

static int add(struct test_bpf *t, const struct bpf_insn *insns, uint32_t n)
{
	int prog = test_bpf_prog(t, insns, n);

	assert_true(prog >= 0);
	return prog;
}

static struct leat_bpf_cover cover_of(const struct test_bpf *t, int prog, unsigned int insn)
{
	struct leat_bpf_cover cover;

	assert_true(leat_bpf_prog_cover(&t->prog[prog], insn, &cover));
	return cover;
}

static void check_hits(const struct test_bpf *t, int prog, const unsigned int *want, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		assert_int_equal(cover_of(t, prog, i).hits, want[i]);
}

static void check_ways(const struct test_bpf *t, int prog, unsigned int insn, unsigned int taken, unsigned int fell)
{
	struct leat_bpf_cover cover = cover_of(t, prog, insn);

	assert_true(cover.jump);
	assert_int_equal(cover.taken, taken);
	assert_int_equal(cover.fell, fell);
}

static void instructions_and_ways(void **state)
{
	static const struct bpf_insn insns[] = {
		LDX(BPF_W, R2, R1, QUEUE), JMP32K(BPF_JEQ, R2, 3, 2), MOV64K(R0, 2), EXIT, MOV64K(R0, 1), EXIT,
	};
	static const unsigned int hits[] = { 5, 5, 2, 2, 3, 3 };
	struct leat_bpf_cover cover;
	struct test_bpf t;
	unsigned int i;
	int prog;

	(void)state;
	begin(&t, 0);
	prog = add(&t, insns, COUNT(insns));
	check_ways(&t, prog, 1, 0, 0);
	for (i = 0; i < 5; i++) {
		t.rxq.queue = i % 2 ? 4 : 3;
		assert_int_equal(test_bpf_run(&t, prog), i % 2 ? 2 : 1);
	}
	check_hits(&t, prog, hits, COUNT(hits));
	check_ways(&t, prog, 1, 3, 2);
	cover = cover_of(&t, prog, 1);
	assert_string_equal(cover.text, "if w2 == 3 goto +2");
	assert_true(cover.reachable);
	assert_null(cover.file);
	assert_false(cover_of(&t, prog, 0).jump);
	assert_false(leat_bpf_prog_cover(&t.prog[prog], COUNT(insns), &cover));
	test_bpf_end(&t);
}

/** A loop of four rounds, a 64-bit load, and code that no path comes to. */
static void loops_and_wide_loads(void **state)
{
	static const struct bpf_insn insns[] = {
		MOV64K(R0, 4), LD64(R2, 1), ADD64K(R0, -1), JMP64K(BPF_JNE, R0, 0, -2), EXIT, MOV64K(R0, 9), EXIT,
	};
	static const unsigned int hits[] = { 1, 1, 0, 4, 4, 1, 0, 0 };
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t, 0);
	prog = add(&t, insns, COUNT(insns) - 2);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	check_hits(&t, prog, hits, COUNT(hits) - 2);
	check_ways(&t, prog, 4, 3, 1);
	assert_int_equal(cover_of(&t, prog, 1).slots, 2);
	assert_int_equal(cover_of(&t, prog, 3).slots, 1);
	test_bpf_end(&t);
}

/** Where a trap ends a run at a jump, it went neither way. */
static void traps(void **state)
{
	static const struct bpf_insn insns[] = {
		LDX(BPF_W, R2, R1, QUEUE), MOV64K(R0, 0), ADD64X(R0, R2), JMP64K(BPF_JLT, R0, 100, -2), EXIT,
	};
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t, 5); /* each jump back costs two */
	t.rxq.queue = 1;
	prog = add(&t, insns, COUNT(insns));
	test_bpf_run(&t, prog);
	assert_int_equal(t.last.trap, 1 + LEAT_BPF_TRAP_FUEL);
	assert_int_equal(cover_of(&t, prog, 3).hits, 3);
	check_ways(&t, prog, 3, 2, 0);
	t.rxq.queue = 200; /* the next run begins anew */
	assert_int_equal(test_bpf_run(&t, prog), 200);
	check_ways(&t, prog, 3, 2, 1);
	assert_int_equal(cover_of(&t, prog, 0).hits, 2);
	test_bpf_end(&t);
}

/** Functions count as part of the program; a program that is tail-called has counts of its own. */
static void calls(void **state)
{
	static const struct bpf_insn callee[] = { MOV64K(R0, 7), JMP64K(BPF_JEQ, R0, 7, 1), MOV64K(R0, 8), EXIT };
	static const struct bpf_insn caller[] = {
		MOV64X(R6, R1), CALL(9), JMP64K(BPF_JGT, R0, 1, 1), EXIT, MOV64X(R1, R6), LDMAP(R2, 0), MOV64K(R3, 0),
		HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT,
		LDX(BPF_W, R0, R1, QUEUE), EXIT, /* the function */
	};
	struct test_bpf t;
	int first, second;

	(void)state;
	begin(&t, 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0), 0);
	second = add(&t, callee, COUNT(callee));
	first = add(&t, caller, COUNT(caller));
	assert_int_equal(leat_bpf_prog_array_set(&t.map[0], 0, &t.prog[second]), 0);
	t.rxq.queue = 3;
	assert_int_equal(test_bpf_run(&t, first), 7);
	t.rxq.queue = 0;
	assert_int_equal(test_bpf_run(&t, first), 0);
	check_ways(&t, first, 2, 1, 1);
	assert_int_equal(cover_of(&t, first, 11).hits, 2); /* the function */
	assert_int_equal(cover_of(&t, first, 8).hits, 1);  /* the tail call, which does not come back */
	assert_int_equal(cover_of(&t, first, 9).hits, 0);
	check_ways(&t, second, 1, 1, 0);
	assert_int_equal(cover_of(&t, second, 2).hits, 0);
	assert_int_equal(cover_of(&t, second, 3).hits, 1);
	test_bpf_end(&t);
}

/** What the compiler made up, and a jump leads to, is not of the line that stands before it. */
static void lines(void **state)
{
	static const struct bpf_insn insns[] = {
		LDX(BPF_W, R2, R1, QUEUE), JMP32K(BPF_JEQ, R2, 3, 1), MOV64K(R2, 2), MOV64K(R0, 1), MOV64K(R3, 1),
		JMP32K(BPF_JEQ, R2, 3, 1), MOV64K(R0, 2), EXIT,
	};
	static const struct leat_image_line line[] = { { 0, 1, 3, 10 }, { 2, 1, 5, 11 }, { 5, 1, 0, 12 }, { 7, 1, 0, 13 } };
	static const unsigned int number[] = { 10, 10, 11, 0, 0, 12, 12, 13 };
	static const struct {
		struct leat_image_header head;
		char strings[16];
	} image = { { .strings = { sizeof(image.head), 16 } }, "\0f\0a\0b" };
	struct test_bpf t;
	unsigned int i;
	int prog;

	(void)state;
	begin(&t, 0);
	t.env->coverage = false;
	prog = add(&t, insns, COUNT(insns));
	t.obj.head = &image.head;
	t.prog[prog].line = line;
	t.prog[prog].n_lines = COUNT(line);
	assert_int_equal(cover_of(&t, prog, 4).line, 11); /* is not looked at where nothing is counted */
	assert_int_equal(leat_bpf_cover_prepare(&t.prog[prog]), 0);
	for (i = 0; i < COUNT(number); i++) {
		assert_int_equal(cover_of(&t, prog, i).line, number[i]);
		assert_int_equal(cover_of(&t, prog, i).file != NULL, number[i] != 0);
	}
	assert_string_equal(cover_of(&t, prog, 2).file, "f");
	assert_string_equal(cover_of(&t, prog, 2).source, "b");
	test_bpf_end(&t);
}

static void not_counted(void **state)
{
	static const struct bpf_insn insns[] = { MOV64K(R0, 2), EXIT };
	struct leat_bpf_env_opts opts = { .size = sizeof(opts), .coverage = true, .engine = LEAT_BPF_ENGINE_JIT };
	struct leat_bpf_env *env;
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t, 0);
	t.env->coverage = false;
	prog = add(&t, insns, COUNT(insns));
	assert_int_equal(test_bpf_run(&t, prog), 2);
	assert_int_equal(cover_of(&t, prog, 0).hits, 0);
	assert_string_equal(cover_of(&t, prog, 0).text, "r0 = 2");
	test_bpf_end(&t);
	assert_int_equal(leat_bpf_env_create(&opts, &env), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_and_ways),
		cmocka_unit_test(loops_and_wide_loads),
		cmocka_unit_test(traps),
		cmocka_unit_test(calls),
		cmocka_unit_test(lines),
		cmocka_unit_test(not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
