/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operator on sets of numbers against the numbers themselves: on words of four bits for all sets that bounds of
 * either kind or known bits can tell, and for pairs of those; on words of 8, 32 and 64 bits for sets at random.
 */
#include "bpf/verifier/range.h"

#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SMALL 4u
#define NUMBERS (1u << SMALL)
#define SETS_MAX 1200

static const uint8_t op_code[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_AND,
				   BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_ARSH };
static const uint8_t jump_code[] = { BPF_JEQ, BPF_JNE,  BPF_JSET, BPF_JLT,  BPF_JLE,  BPF_JGT,
				     BPF_JGE, BPF_JSLT, BPF_JSLE, BPF_JSGT, BPF_JSGE };

static uint64_t ones(unsigned int width)
{
	return ~UINT64_C(0) >> (64 - width);
}

static int64_t sign(uint64_t number, unsigned int width)
{
	return (int64_t)(number << (64 - width)) >> (64 - width);
}

/* ---- what the instructions do ---- */

static uint64_t run_op(uint8_t code, uint64_t a, uint64_t b, unsigned int width)
{
	uint64_t n = b & (width - 1);

	switch (code) {
	case BPF_ADD:
		return (a + b) & ones(width);
	case BPF_SUB:
		return (a - b) & ones(width);
	case BPF_MUL:
		return (a * b) & ones(width);
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return (a << n) & ones(width);
	case BPF_RSH:
		return a >> n;
	default:
		return (uint64_t)(sign(a, width) >> n) & ones(width);
	}
}

static bool run_jump(uint8_t code, uint64_t a, uint64_t b, unsigned int width)
{
	int64_t sa = sign(a, width), sb = sign(b, width);
	bool holds[] = { a == b, a != b,  (a & b) != 0, a < b,   a <= b, a > b,
			 a >= b, sa < sb, sa <= sb,     sa > sb, sa >= sb };
	unsigned int i;

	for (i = 0; jump_code[i] != code; i++)
		;
	return holds[i];
}

/* ---- sets of small numbers ---- */

struct sets {
	unsigned int n;
	struct leat_range set[SETS_MAX];
};

static void add_set(struct sets *sets, struct leat_range r)
{
	unsigned int i;

	for (i = 0; i < sets->n; i++)
		if (leat_range_equal(&sets->set[i], &r))
			return;
	assert_true(sets->n < SETS_MAX);
	sets->set[sets->n++] = r;
}

static void add_signed(struct sets *sets, int64_t low, int64_t high)
{
	struct leat_range r = leat_range_any(SMALL);
	struct leat_range least = leat_range_const((uint64_t)low, SMALL), most = leat_range_const((uint64_t)high, SMALL);

	assert_true(leat_range_learn(BPF_JSGE, true, &r, &least, SMALL));
	assert_true(leat_range_learn(BPF_JSLE, true, &r, &most, SMALL));
	add_set(sets, r);
}

static void add_bits(struct sets *sets, uint64_t value, uint64_t mask)
{
	struct leat_range a = leat_range_const(value & ~mask, SMALL), b = leat_range_any(SMALL);
	struct leat_range free_bits = leat_range_const(mask, SMALL);

	b = leat_range_op(BPF_AND, b, free_bits, SMALL);
	add_set(sets, leat_range_op(BPF_OR, a, b, SMALL));
}

static void all_sets(struct sets *sets)
{
	uint64_t i, k;

	sets->n = 0;
	for (i = 0; i < NUMBERS; i++) {
		for (k = i; k < NUMBERS; k++)
			add_set(sets, leat_range_between(i, k, SMALL));
		for (k = 0; k < NUMBERS; k++)
			add_bits(sets, i, k);
	}
	for (i = 0; i < NUMBERS; i++)
		for (k = i; k < NUMBERS; k++)
			add_signed(sets, (int64_t)i - NUMBERS / 2, (int64_t)k - NUMBERS / 2);
}

static struct sets sets;

static void sets_have_their_numbers(void **state)
{
	uint64_t i, k, number;
	struct leat_range r;

	(void)state;
	for (i = 0; i < NUMBERS; i++) {
		for (k = i; k < NUMBERS; k++) {
			r = leat_range_between(i, k, SMALL);
			for (number = 0; number < NUMBERS; number++)
				assert_int_equal(leat_range_has(&r, number, SMALL), number >= i && number <= k);
		}
	}
	assert_in_range(sets.n, 200, SETS_MAX);
}

static void check_op(uint8_t code, const struct leat_range *a, const struct leat_range *b)
{
	struct leat_range r = leat_range_op(code, *a, *b, SMALL);
	uint64_t x, y;

	for (x = 0; x < NUMBERS; x++)
		for (y = 0; leat_range_has(a, x, SMALL) && y < NUMBERS; y++)
			if (leat_range_has(b, y, SMALL) && !leat_range_has(&r, run_op(code, x, y, SMALL), SMALL))
				fail_msg("operation 0x%02x: %d and %d", code, (int)x, (int)y);
}

static void operations_lose_no_number(void **state)
{
	unsigned int i, k, op;

	(void)state;
	for (op = 0; op < sizeof(op_code); op++)
		for (i = 0; i < sets.n; i++)
			for (k = 0; k < sets.n; k++)
				check_op(op_code[op], &sets.set[i], &sets.set[k]);
}

/** Constants give constants: nothing is lost there either. */
static void operations_on_constants_are_exact(void **state)
{
	struct leat_range a, b, r;
	uint64_t x, y;
	unsigned int op;

	(void)state;
	for (op = 0; op < sizeof(op_code); op++) {
		for (x = 0; x < NUMBERS; x++) {
			for (y = 0; y < NUMBERS; y++) {
				a = leat_range_const(x, SMALL);
				b = leat_range_const(y, SMALL);
				r = leat_range_op(op_code[op], a, b, SMALL);
				assert_true(leat_range_is_const(&r));
				assert_int_equal(r.umin, run_op(op_code[op], x, y, SMALL));
			}
		}
	}
}

static void check_compare(uint8_t code, const struct leat_range *a, const struct leat_range *b)
{
	int answer = leat_range_compare(code, a, b);
	struct leat_range la[2] = { *a, *a }, lb[2] = { *b, *b };
	bool can[2], holds;
	uint64_t x, y;
	int i;

	for (i = 0; i < 2; i++)
		can[i] = leat_range_learn(code, i, &la[i], &lb[i], SMALL);
	for (x = 0; x < NUMBERS; x++) {
		for (y = 0; leat_range_has(a, x, SMALL) && y < NUMBERS; y++) {
			if (!leat_range_has(b, y, SMALL))
				continue;
			holds = run_jump(code, x, y, SMALL);
			if ((answer >= 0 && holds != answer) || !can[holds] ||
			    !leat_range_has(&la[holds], x, SMALL) || !leat_range_has(&lb[holds], y, SMALL))
				fail_msg("comparison 0x%02x: %d and %d", code, (int)x, (int)y);
		}
	}
}

static void comparisons_lose_no_number(void **state)
{
	unsigned int i, k, op;

	(void)state;
	for (op = 0; op < sizeof(jump_code); op++)
		for (i = 0; i < sets.n; i++)
			for (k = 0; k < sets.n; k++)
				check_compare(jump_code[op], &sets.set[i], &sets.set[k]);
}

/** What is learned is never more than what was known, and a second time it is nothing new where bounds are at stake. */
static void learning_only_narrows(void **state)
{
	struct leat_range a, b;
	unsigned int i, k, op;

	(void)state;
	for (op = 0; op < sizeof(jump_code); op++) {
		for (i = 0; i < sets.n; i++) {
			for (k = 0; k < sets.n; k++) {
				a = sets.set[i];
				b = sets.set[k];
				if (!leat_range_learn(jump_code[op], true, &a, &b, SMALL))
					continue;
				assert_true(leat_range_covers(&sets.set[i], &a));
				assert_true(leat_range_covers(&sets.set[k], &b));
			}
		}
	}
}

static void a_union_has_both(void **state)
{
	struct leat_range r;
	unsigned int i, k;
	uint64_t x;

	(void)state;
	for (i = 0; i < sets.n; i++) {
		for (k = 0; k < sets.n; k++) {
			r = leat_range_union(&sets.set[i], &sets.set[k]);
			assert_true(leat_range_covers(&r, &sets.set[i]) && leat_range_covers(&r, &sets.set[k]));
			for (x = 0; x < NUMBERS; x++)
				assert_true(leat_range_has(&r, x, SMALL) || (!leat_range_has(&sets.set[i], x, SMALL) &&
									      !leat_range_has(&sets.set[k], x, SMALL)));
		}
	}
}

static void covering_means_having_all(void **state)
{
	unsigned int i, k;
	uint64_t x;

	(void)state;
	for (i = 0; i < sets.n; i++)
		for (k = 0; k < sets.n; k++)
			for (x = 0; leat_range_covers(&sets.set[i], &sets.set[k]) && x < NUMBERS; x++)
				assert_true(!leat_range_has(&sets.set[k], x, SMALL) ||
					    leat_range_has(&sets.set[i], x, SMALL));
}

/* ---- width ---- */

static void widths_change_without_loss(void **state)
{
	struct leat_range zero, extended, low, wide;
	unsigned int i, k;
	uint64_t x;

	(void)state;
	for (i = 0; i < sets.n; i++) {
		zero = leat_range_zero_extend(sets.set[i], SMALL, 8);
		extended = leat_range_sign_extend(sets.set[i], SMALL, 8);
		for (x = 0; x < NUMBERS; x++) {
			if (!leat_range_has(&sets.set[i], x, SMALL))
				continue;
			assert_true(leat_range_has(&zero, x, 8));
			assert_true(leat_range_has(&extended, (uint64_t)sign(x, SMALL) & 0xff, 8));
		}
		for (k = 0; k < sets.n; k += 3) { /* upper half by i, lower half by k */
			wide = leat_range_op(BPF_LSH, zero, leat_range_const(SMALL, 8), 8);
			wide = leat_range_op(BPF_ADD, wide, leat_range_zero_extend(sets.set[k], SMALL, 8), 8);
			low = leat_range_narrow(wide, SMALL, 8);
			for (x = 0; x < 256; x++)
				if (leat_range_has(&wide, x, 8))
					assert_true(leat_range_has(&low, x % NUMBERS, SMALL));
		}
	}
}

static void what_is_learned_of_the_low_part_holds(void **state)
{
	struct leat_range wide, low, b;
	unsigned int i, k, op;
	uint64_t from, x;
	bool can;

	(void)state;
	for (from = 0; from < 250; from += 7) {
		for (i = 0; i < sets.n; i += 2) {
			for (k = 0; k < 12; k++) {
				wide = leat_range_between(from, from + k * 2 > 255 ? 255 : from + k * 2, 8);
				low = leat_range_narrow(wide, SMALL, 8);
				b = sets.set[i];
				op = k % sizeof(jump_code);
				can = leat_range_learn(jump_code[op], true, &low, &b, SMALL) &&
				      leat_range_learn_low(&wide, &low, SMALL, 8);
				for (x = from; x <= from + k * 2 && x < 256; x++) {
					unsigned int y, any = 0;

					for (y = 0; y < NUMBERS; y++)
						any |= leat_range_has(&sets.set[i], y, SMALL) &&
						       run_jump(jump_code[op], x % NUMBERS, y, SMALL);
					if (any)
						assert_true(can && leat_range_has(&wide, x, 8));
				}
			}
		}
	}
}

/* ---- larger words, at random ---- */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/** A number of any magnitude, often near a border. */
static uint64_t any_number(uint64_t *seed, unsigned int width)
{
	uint64_t number = next(seed) >> (next(seed) & 63);

	return (next(seed) & 3 ? number : UINT64_C(0) - number % 9 + (next(seed) & 1 ? UINT64_C(1) << (width - 1) : 0)) &
	       ones(width);
}

/** A set that has @x. */
static struct leat_range set_with(uint64_t *seed, uint64_t x, unsigned int width)
{
	struct leat_range r = leat_range_any(width), b;
	unsigned int i, op;
	uint64_t y;

	for (i = next(seed) & 3; i > 0; i--) {
		y = any_number(seed, width);
		op = (unsigned int)(next(seed) % sizeof(jump_code));
		b = leat_range_const(y, width);
		assert_true(leat_range_learn(jump_code[op], run_jump(jump_code[op], x, y, width), &r, &b, width));
	}
	if (!(next(seed) & 7))
		r = leat_range_const(x, width);
	assert_true(leat_range_has(&r, x, width));
	return r;
}

static void larger_words_at_random(void **state)
{
	static const unsigned int widths[] = { 8, 32, 64 };
	uint64_t seed = 88172645463325252u, x, y, i;
	struct leat_range a, b, r, la, lb;
	unsigned int width;
	uint8_t op, jump;
	bool holds;

	(void)state;
	for (i = 0; i < 300000; i++) {
		width = widths[i % 3];
		x = any_number(&seed, width);
		y = any_number(&seed, width);
		a = set_with(&seed, x, width);
		b = set_with(&seed, y, width);
		op = op_code[next(&seed) % sizeof(op_code)];
		r = leat_range_op(op, a, b, width);
		assert_true(leat_range_has(&r, run_op(op, x, y, width), width));
		r = leat_range_neg(a, width);
		assert_true(leat_range_has(&r, (0 - x) & ones(width), width));
		jump = jump_code[next(&seed) % sizeof(jump_code)];
		holds = run_jump(jump, x, y, width);
		la = a;
		lb = b;
		assert_true(leat_range_compare(jump, &a, &b) != !holds);
		assert_true(leat_range_learn(jump, holds, &la, &lb, width));
		assert_true(leat_range_has(&la, x, width) && leat_range_has(&lb, y, width));
	}
}

/** The steps that bounds checks of programs are made of are exact: a loss here would cost a guard. */
static void what_programs_do_is_told_exactly(void **state)
{
	struct leat_range a = leat_range_zero_extend(leat_range_any(8), 8, 64), b;

	(void)state;
	a = leat_range_op(BPF_AND, a, leat_range_const(0x0f, 64), 64);
	a = leat_range_op(BPF_LSH, a, leat_range_const(2, 64), 64); /* length of an IPv4 header */
	assert_int_equal(a.umin, 0);
	assert_int_equal(a.umax, 60);
	assert_int_equal(a.mask, 0x3c);
	b = leat_range_const(20, 64);
	assert_true(leat_range_learn(BPF_JLT, false, &a, &b, 64));
	assert_int_equal(a.umin, 20);
	assert_int_equal(a.umax, 60);
	a = leat_range_op(BPF_ADD, a, leat_range_const(14, 64), 64);
	assert_int_equal(a.umin, 34);
	assert_int_equal(a.umax, 74);
	a = leat_range_any(64); /* an index that is compared by 32 bits, its upper half being 0 */
	a = leat_range_zero_extend(leat_range_narrow(a, 32, 64), 32, 64);
	b = leat_range_const(64, 32);
	a = leat_range_narrow(a, 32, 64);
	assert_true(leat_range_learn(BPF_JGT, false, &a, &b, 32));
	a = leat_range_zero_extend(a, 32, 64);
	assert_int_equal(a.umax, 64);
	assert_int_equal(a.smin, 0);
	a = leat_range_any(64); /* signed: -1 is below */
	b = leat_range_const(0, 64);
	assert_true(leat_range_learn(BPF_JSGE, true, &a, &b, 64));
	assert_int_equal(a.umax, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_have_their_numbers),
		cmocka_unit_test(operations_lose_no_number),
		cmocka_unit_test(operations_on_constants_are_exact),
		cmocka_unit_test(comparisons_lose_no_number),
		cmocka_unit_test(learning_only_narrows),
		cmocka_unit_test(covering_means_having_all),
		cmocka_unit_test(a_union_has_both),
		cmocka_unit_test(widths_change_without_loss),
		cmocka_unit_test(what_is_learned_of_the_low_part_holds),
		cmocka_unit_test(larger_words_at_random),
		cmocka_unit_test(what_programs_do_is_told_exactly),
	};

	all_sets(&sets);
	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
