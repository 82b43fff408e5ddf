/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_pair_test.c: operations that the compiler makes one of: every two of a kind, over all registers, against the
 * interpreter; alone, and with a jump between the two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/engine/interp.h"
#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INSNS 64u

static const uint64_t numbers[10] = {
	0x0123456789abcdef, 0xfedcba9876543210, 1, 0, 0xffffffffffffffff,
	0x8000000000000000, 0x7fffffff, 0x80000000, 0x100000000, 0xffffffff00000000,
};

struct text {
	struct bpf_insn insn[INSNS];
	uint32_t n;
};

static void put(struct text *text, struct bpf_insn insn)
{
	assert_true(text->n < INSNS);
	text->insn[text->n++] = insn;
}

/** Every register has a number of its own. */
static void begin_text(struct text *text)
{
	unsigned int i;

	text->n = 0;
	for (i = 0; i < 10; i++) {
		const struct bpf_insn load[] = { LD64(i, numbers[i]) };

		put(text, load[0]);
		put(text, load[1]);
	}
}

/** What all registers hold comes out in r0. */
static void end_text(struct text *text)
{
	unsigned int i;

	for (i = 1; i < 10; i++) {
		put(text, (struct bpf_insn)ALU64K(BPF_MUL, R0, 31));
		put(text, (struct bpf_insn)ADD64X(R0, i));
	}
	put(text, (struct bpf_insn)EXIT);
}

/** Both engines agree. */
static void compare(struct test_bpf *t, const struct text *text)
{
	int prog = test_bpf_prog(t, text->insn, text->n);
	uint64_t want;

	assert_true(prog >= 0);
	want = test_bpf_run(t, prog);
	assert_int_equal(leat_bpf_jit_compile(&t->prog[prog]), 0);
	if (test_bpf_run(t, prog) != want)
		fail_msg("%02x r%u r%u %d, then %02x r%u r%u %d", text->insn[20].code, text->insn[20].dst_reg,
			 text->insn[20].src_reg, text->insn[20].imm, text->insn[21].code, text->insn[21].dst_reg,
			 text->insn[21].src_reg, text->insn[21].imm);
	test_bpf_drop_progs(t);
}

/** @first and @second, and the same with a jump to @second, which makes them two. */
static void compare_pair(struct test_bpf *t, struct bpf_insn first, struct bpf_insn second)
{
	struct text text;

	begin_text(&text);
	put(&text, first);
	put(&text, second);
	end_text(&text);
	compare(t, &text);

	begin_text(&text);
	put(&text, (struct bpf_insn)JMP64K(BPF_JGT, first.dst_reg, 5, 1));
	put(&text, first);
	put(&text, second);
	end_text(&text);
	compare(t, &text);
}

static void moves_and_sums(void **state)
{
	static const int32_t imms[] = { 0, 1, -1, 127, 128, -128, -129, INT32_MAX, INT32_MIN };
	struct test_bpf t;
	unsigned int dst, src, k;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	test_bpf_packet(&t, NULL, 64, 0);
	for (dst = 0; dst < 10; dst++) {
		for (src = 0; src < 10; src++) {
			for (k = 0; k < 10; k++)
				compare_pair(&t, (struct bpf_insn)MOV64X(dst, src), (struct bpf_insn)ADD64X(dst, k));
			for (k = 0; k < COUNT(imms); k++)
				compare_pair(&t, (struct bpf_insn)MOV64X(dst, src),
					     (struct bpf_insn)ADD64K(dst, imms[k]));
			compare_pair(&t, (struct bpf_insn)MOV64X(dst, src), (struct bpf_insn)ADD64K(src, 7));
			compare_pair(&t, (struct bpf_insn)MOV32X(dst, src), (struct bpf_insn)ADD64K(dst, 7));
			compare_pair(&t, (struct bpf_insn)MOV64X(dst, src), (struct bpf_insn)ALU32K(BPF_ADD, dst, 7));
			compare_pair(&t, (struct bpf_insn)MOV64X(dst, src), (struct bpf_insn)ALU64K(BPF_SUB, dst, 7));
		}
	}
	test_bpf_end(&t);
}

static void shifts(void **state)
{
	struct test_bpf t;
	unsigned int dst, other;
	int by, back;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	test_bpf_packet(&t, NULL, 64, 0);
	for (dst = 0; dst < 10; dst++) {
		other = (dst + 1) % 10;
		for (by = 31; by <= 33; by++) {
			for (back = 31; back <= 33; back++) {
				compare_pair(&t, (struct bpf_insn)ALU64K(BPF_LSH, dst, by),
					     (struct bpf_insn)ALU64K(BPF_RSH, dst, back));
				compare_pair(&t, (struct bpf_insn)ALU64K(BPF_LSH, dst, by),
					     (struct bpf_insn)ALU64K(BPF_ARSH, dst, back));
			}
		}
		compare_pair(&t, (struct bpf_insn)ALU64K(BPF_LSH, dst, 32), (struct bpf_insn)ALU64K(BPF_RSH, other, 32));
		compare_pair(&t, (struct bpf_insn)ALU32K(BPF_LSH, dst, 31), (struct bpf_insn)ALU64K(BPF_RSH, dst, 32));
	}
	test_bpf_end(&t);
}

/** A jump after an operation that leaves flags: r9 says whether it was taken. */
static void compare_flags(struct test_bpf *t, struct bpf_insn first, struct bpf_insn jump)
{
	struct text text;

	begin_text(&text);
	put(&text, first);
	put(&text, jump);
	put(&text, (struct bpf_insn)MOV64K(R9, 1));
	end_text(&text);
	compare(t, &text);
}

static void flags(void **state)
{
	static const uint8_t ops[] = { BPF_AND, BPF_OR, BPF_XOR, BPF_ADD, BPF_SUB };
	static const uint8_t jumps[] = { BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLE, BPF_JSGT, BPF_JSLT, BPF_JSET };
	static const int32_t imms[] = { 0, 1, -1, INT32_MAX, INT32_MIN };
	struct test_bpf t;
	unsigned int i, k, m, dst, wide;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	test_bpf_packet(&t, NULL, 64, 0);
	for (i = 0; i < COUNT(ops) * COUNT(jumps); i++) {
		uint8_t op = ops[i / COUNT(jumps)], jump = jumps[i % COUNT(jumps)];

		for (m = 0; m < 9 * COUNT(imms); m++) {
			dst = m / COUNT(imms);
			for (k = 0; k < 8; k++) {
				wide = k & 1 ? BPF_ALU64 : BPF_ALU;
				compare_flags(&t,
					      (struct bpf_insn)INSN(wide | op | (k & 4 ? BPF_X : BPF_K), dst,
								    k & 4 ? (dst + 3) % 9 : 0, 0,
								    k & 4 ? 0 : imms[m % COUNT(imms)]),
					      (struct bpf_insn)INSN((k & 2 ? BPF_JMP : BPF_JMP32) | jump | BPF_K, dst, 0, 1,
								    0));
			}
		}
	}
	test_bpf_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_and_sums),
		cmocka_unit_test(shifts),
		cmocka_unit_test(flags),
	};

	return cmocka_run_group_tests_name("jit pairs", tests, NULL, NULL);
}
