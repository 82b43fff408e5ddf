/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range.c: arithmetic on sets of numbers. *control*.
 *
 * Theory of operation. A set is told in three ways at once: unsigned bounds, signed bounds, known bits. Each operation
 * works out what it can in each way, alone, and settle() lets the three tell one another. Where a way knows nothing (a
 * sum that may wrap) it says so. An operation may say too much (a larger set), never too little.
 */
#include "bpf/verifier/range.h"

#include <linux/bpf.h>

#define SETTLE_ROUNDS 3

/* ---- words ---- */

static uint64_t ones(unsigned int width)
{
	return ~UINT64_C(0) >> (64 - width);
}

static int64_t sign(uint64_t number, unsigned int width)
{
	return (int64_t)(number << (64 - width)) >> (64 - width);
}

static int64_t smin_of(unsigned int width)
{
	return sign(UINT64_C(1) << (width - 1), width);
}

static int64_t smax_of(unsigned int width)
{
	return (int64_t)(ones(width) >> 1);
}

/** Ones from the highest bit of @number down. */
static uint64_t fill(uint64_t number)
{
	return number ? ~UINT64_C(0) >> __builtin_clzll(number) : 0;
}

/* ---- sets ---- */

struct leat_range leat_range_any(unsigned int width)
{
	return (struct leat_range){ 0, ones(width), smin_of(width), smax_of(width), 0, ones(width) };
}

struct leat_range leat_range_const(uint64_t number, unsigned int width)
{
	uint64_t value = number & ones(width);

	return (struct leat_range){ value, value, sign(value, width), sign(value, width), value, 0 };
}

static void raise_u(struct leat_range *r, uint64_t min)
{
	if (min > r->umin)
		r->umin = min;
}

static void lower_u(struct leat_range *r, uint64_t max)
{
	if (max < r->umax)
		r->umax = max;
}

static void raise_s(struct leat_range *r, int64_t min)
{
	if (min > r->smin)
		r->smin = min;
}

static void lower_s(struct leat_range *r, int64_t max)
{
	if (max < r->smax)
		r->smax = max;
}

/** Adds what is known of bits: those outside @mask are @value's. False when that is not so of any number. */
static bool know_bits(struct leat_range *r, uint64_t value, uint64_t mask)
{
	bool agree = !((r->value ^ value) & ~r->mask & ~mask);

	r->value |= value & ~mask;
	r->mask &= mask;
	r->value &= ~r->mask;
	return agree;
}

/** The three ways tell one another. False when no number is left. */
static bool settle(struct leat_range *r, unsigned int width)
{
	uint64_t open;
	unsigned int i;

	for (i = 0; i < SETTLE_ROUNDS; i++) {
		raise_u(r, r->value);
		lower_u(r, r->value | r->mask);
		if (r->umin > r->umax || r->smin > r->smax)
			return false;
		if ((r->smin < 0) == (r->smax < 0)) {
			raise_u(r, (uint64_t)r->smin & ones(width));
			lower_u(r, (uint64_t)r->smax & ones(width));
		}
		if (r->umin > r->umax)
			return false;
		if ((sign(r->umin, width) < 0) == (sign(r->umax, width) < 0)) {
			raise_s(r, sign(r->umin, width));
			lower_s(r, sign(r->umax, width));
		}
		open = fill(r->umin ^ r->umax);
		if (!know_bits(r, r->umin & ~open, open))
			return false;
	}
	return r->umin <= r->umax && r->smin <= r->smax;
}

/** The same for a result, which cannot be empty: should it seem so, nothing is claimed. */
static struct leat_range settled(struct leat_range r, unsigned int width)
{
	return settle(&r, width) ? r : leat_range_any(width);
}

struct leat_range leat_range_between(uint64_t min, uint64_t max, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.umin = min;
	r.umax = max;
	return settled(r, width);
}

bool leat_range_equal(const struct leat_range *a, const struct leat_range *b)
{
	return a->umin == b->umin && a->umax == b->umax && a->smin == b->smin && a->smax == b->smax &&
	       a->value == b->value && a->mask == b->mask;
}

bool leat_range_covers(const struct leat_range *a, const struct leat_range *b)
{
	return a->umin <= b->umin && a->umax >= b->umax && a->smin <= b->smin && a->smax >= b->smax &&
	       !(b->mask & ~a->mask) && !((a->value ^ b->value) & ~a->mask);
}

struct leat_range leat_range_union(const struct leat_range *a, const struct leat_range *b)
{
	struct leat_range r = *a;

	r.umin = b->umin < r.umin ? b->umin : r.umin;
	r.umax = b->umax > r.umax ? b->umax : r.umax;
	r.smin = b->smin < r.smin ? b->smin : r.smin;
	r.smax = b->smax > r.smax ? b->smax : r.smax;
	r.mask |= b->mask | (a->value ^ b->value);
	r.value &= ~r.mask;
	return r;
}

bool leat_range_has(const struct leat_range *r, uint64_t number, unsigned int width)
{
	return number >= r->umin && number <= r->umax && sign(number, width) >= r->smin &&
	       sign(number, width) <= r->smax && !((number ^ r->value) & ~r->mask);
}

/* ---- sums ---- */

/** Bits of a sum: those above which no carry is open. */
static void add_bits(struct leat_range *r, const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	uint64_t least = a->value + b->value;
	uint64_t most = (a->value | a->mask) + (b->value | b->mask);
	uint64_t mask = ((least ^ most) | a->mask | b->mask) & ones(width);

	r->mask = mask;
	r->value = least & ~mask & ones(width);
}

static void sub_bits(struct leat_range *r, const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	uint64_t most = (a->value | a->mask) - b->value;
	uint64_t least = a->value - (b->value | b->mask);
	uint64_t mask = ((least ^ most) | a->mask | b->mask) & ones(width);

	r->mask = mask;
	r->value = (a->value - b->value) & ~mask & ones(width);
}

static struct leat_range add(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);
	int64_t low, high;

	if (b->umax <= ones(width) - a->umax) {
		r.umin = a->umin + b->umin;
		r.umax = a->umax + b->umax;
	}
	if (!__builtin_add_overflow(a->smin, b->smin, &low) && !__builtin_add_overflow(a->smax, b->smax, &high) &&
	    low >= smin_of(width) && high <= smax_of(width)) {
		r.smin = low;
		r.smax = high;
	}
	add_bits(&r, a, b, width);
	return r;
}

static struct leat_range sub(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);
	int64_t low, high;

	if (a->umin >= b->umax) {
		r.umin = a->umin - b->umax;
		r.umax = a->umax - b->umin;
	}
	if (!__builtin_sub_overflow(a->smin, b->smax, &low) && !__builtin_sub_overflow(a->smax, b->smin, &high) &&
	    low >= smin_of(width) && high <= smax_of(width)) {
		r.smin = low;
		r.smax = high;
	}
	sub_bits(&r, a, b, width);
	return r;
}

/* ---- products ---- */

/** Zeros at the end of every number of the set. */
static unsigned int zeros(const struct leat_range *r, unsigned int width)
{
	uint64_t may = r->value | r->mask;

	return may ? (unsigned int)__builtin_ctzll(may) : width;
}

static struct leat_range mul(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);
	unsigned int n = zeros(a, width) + zeros(b, width);
	uint64_t high;

	if (!__builtin_mul_overflow(a->umax, b->umax, &high) && high <= ones(width)) {
		r.umin = a->umin * b->umin;
		r.umax = high;
	}
	r.mask = n >= width ? 0 : ones(width) & ~(n ? ones(n) : 0);
	return r;
}

static struct leat_range divide(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.umin = b->umin ? a->umin / b->umax : 0; /* by 0 gives 0 */
	r.umax = a->umax / (b->umin ? b->umin : 1);
	return r;
}

static struct leat_range modulo(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.umin = b->umin > a->umax ? a->umin : 0;
	r.umax = a->umax;
	if (b->umin && b->umax - 1 < r.umax) /* by 0 leaves the number */
		r.umax = b->umax - 1;
	return r;
}

/* ---- bits ---- */

static struct leat_range and(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);
	uint64_t may = (a->value | a->mask) & (b->value | b->mask);

	r.value = a->value & b->value;
	r.mask = may & ~r.value;
	r.umax = a->umax < b->umax ? a->umax : b->umax;
	return r;
}

static struct leat_range or(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.value = a->value | b->value;
	r.mask = (a->mask | b->mask) & ~r.value;
	r.umin = a->umin > b->umin ? a->umin : b->umin;
	r.umax = fill(a->umax | b->umax);
	return r;
}

static struct leat_range xor(const struct leat_range *a, const struct leat_range *b, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.mask = a->mask | b->mask;
	r.value = (a->value ^ b->value) & ~r.mask;
	r.umax = fill(a->umax | b->umax);
	return r;
}

/* ---- shifts, by @n of 0..width - 1 ---- */

static struct leat_range lsh(const struct leat_range *a, unsigned int least, unsigned int most, unsigned int width)
{
	struct leat_range r = leat_range_any(width);
	unsigned int n = zeros(a, width) + least;

	if (a->umax <= ones(width) >> most) {
		r.umin = a->umin << least;
		r.umax = a->umax << most;
	}
	r.mask = n >= width ? 0 : ones(width) & ~(n ? ones(n) : 0);
	if (least == most) {
		r.value = a->value << least & ones(width);
		r.mask = a->mask << least & ones(width);
	}
	return r;
}

static struct leat_range rsh(const struct leat_range *a, unsigned int least, unsigned int most, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.umin = a->umin >> most;
	r.umax = a->umax >> least;
	if (least == most) {
		r.value = a->value >> least;
		r.mask = a->mask >> least;
	}
	return r;
}

static struct leat_range arsh(const struct leat_range *a, unsigned int least, unsigned int most, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.smin = a->smin >> (a->smin < 0 ? least : most);
	r.smax = a->smax >> (a->smax < 0 ? most : least);
	if (least == most) { /* an unknown sign stays unknown in each bit that it fills */
		r.value = (uint64_t)(sign(a->value, width) >> least) & ones(width);
		r.mask = (uint64_t)(sign(a->mask, width) >> least) & ones(width);
		r.value &= ~r.mask;
	}
	return r;
}

typedef struct leat_range shift_fn(const struct leat_range *a, unsigned int least, unsigned int most,
				   unsigned int width);

/** The distance is taken modulo the width, a power of two. */
static struct leat_range shift(shift_fn *fn, const struct leat_range *a, const struct leat_range *by,
			       unsigned int width)
{
	struct leat_range wrap = leat_range_const(width - 1, width), n = *by;

	if (n.umax >= width)
		n = settled(and(by, &wrap, width), width);
	return fn(a, (unsigned int)n.umin, (unsigned int)n.umax, width);
}

/* ---- operations ---- */

/** What one number and another give, where bounds would say less. */
static uint64_t on_numbers(uint8_t code, uint64_t a, uint64_t b)
{
	if (code == BPF_MUL)
		return a * b;
	if (code == BPF_DIV)
		return b ? a / b : 0;
	return b ? a % b : a;
}

struct leat_range leat_range_op(uint8_t code, struct leat_range a, struct leat_range b, unsigned int width)
{
	if (leat_range_is_const(&a) && leat_range_is_const(&b) &&
	    (code == BPF_MUL || code == BPF_DIV || code == BPF_MOD))
		return leat_range_const(on_numbers(code, a.umin, b.umin), width);
	switch (code) {
	case BPF_ADD:
		return settled(add(&a, &b, width), width);
	case BPF_SUB:
		return settled(sub(&a, &b, width), width);
	case BPF_MUL:
		return settled(mul(&a, &b, width), width);
	case BPF_DIV:
		return settled(divide(&a, &b, width), width);
	case BPF_MOD:
		return settled(modulo(&a, &b, width), width);
	case BPF_AND:
		return settled(and(&a, &b, width), width);
	case BPF_OR:
		return settled(or(&a, &b, width), width);
	case BPF_XOR:
		return settled(xor(&a, &b, width), width);
	case BPF_LSH:
		return settled(shift(lsh, &a, &b, width), width);
	case BPF_RSH:
		return settled(shift(rsh, &a, &b, width), width);
	case BPF_ARSH:
		return settled(shift(arsh, &a, &b, width), width);
	default:
		return leat_range_any(width);
	}
}

struct leat_range leat_range_neg(struct leat_range a, unsigned int width)
{
	struct leat_range zero = leat_range_const(0, width);

	return leat_range_op(BPF_SUB, zero, a, width);
}

struct leat_range leat_range_narrow(struct leat_range a, unsigned int narrow, unsigned int width)
{
	struct leat_range r = leat_range_any(narrow);

	if (narrow == width)
		return a;
	if (!((a.umin ^ a.umax) & ~ones(narrow))) { /* the upper part is the same for all: the order stays */
		r.umin = a.umin & ones(narrow);
		r.umax = a.umax & ones(narrow);
	}
	if (a.smin >= smin_of(narrow) && a.smax <= smax_of(narrow)) {
		r.smin = a.smin;
		r.smax = a.smax;
	}
	r.value = a.value & ones(narrow);
	r.mask = a.mask & ones(narrow);
	return settled(r, narrow);
}

struct leat_range leat_range_zero_extend(struct leat_range a, unsigned int narrow, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	if (narrow == width)
		return a;
	r.umin = a.umin;
	r.umax = a.umax;
	r.value = a.value;
	r.mask = a.mask;
	return settled(r, width);
}

struct leat_range leat_range_sign_extend(struct leat_range a, unsigned int narrow, unsigned int width)
{
	struct leat_range r = leat_range_any(width);

	r.smin = a.smin;
	r.smax = a.smax;
	r.mask = (uint64_t)sign(a.mask, narrow) & ones(width);
	r.value = (uint64_t)sign(a.value, narrow) & ones(width) & ~r.mask;
	return settled(r, width);
}

/* ---- comparisons ---- */

/** Whether a < b (or, with @equal, a <= b) for all numbers of the two: 1; for none: 0; else -1. */
static int less(const struct leat_range *a, const struct leat_range *b, bool equal, bool is_signed)
{
	if (is_signed) {
		if (a->smax < b->smin || (equal && a->smax == b->smin))
			return 1;
		return a->smin > b->smax || (!equal && a->smin == b->smax) ? 0 : -1;
	}
	if (a->umax < b->umin || (equal && a->umax == b->umin))
		return 1;
	return a->umin > b->umax || (!equal && a->umin == b->umax) ? 0 : -1;
}

static int equal(const struct leat_range *a, const struct leat_range *b)
{
	if (leat_range_is_const(a) && leat_range_is_const(b))
		return a->umin == b->umin;
	if (a->umin > b->umax || a->umax < b->umin || a->smin > b->smax || a->smax < b->smin ||
	    ((a->value ^ b->value) & ~a->mask & ~b->mask))
		return 0;
	return -1;
}

static int any_bit(const struct leat_range *a, const struct leat_range *b)
{
	if (a->value & b->value)
		return 1;
	return (a->value | a->mask) & (b->value | b->mask) ? -1 : 0;
}

static int not(int answer)
{
	return answer < 0 ? answer : !answer;
}

int leat_range_compare(uint8_t code, const struct leat_range *a, const struct leat_range *b)
{
	switch (code) {
	case BPF_JEQ:
		return equal(a, b);
	case BPF_JNE:
		return not(equal(a, b));
	case BPF_JSET:
		return any_bit(a, b);
	case BPF_JLT:
	case BPF_JLE:
		return less(a, b, code == BPF_JLE, false);
	case BPF_JGT:
	case BPF_JGE:
		return less(b, a, code == BPF_JGE, false);
	case BPF_JSLT:
	case BPF_JSLE:
		return less(a, b, code == BPF_JSLE, true);
	case BPF_JSGT:
	case BPF_JSGE:
		return less(b, a, code == BPF_JSGE, true);
	default:
		return -1;
	}
}

/** a < b, or a <= b. False when that cannot be. */
static bool learn_less(struct leat_range *a, struct leat_range *b, bool equal, bool is_signed)
{
	if (is_signed) {
		if (!equal && (b->smax == INT64_MIN || a->smin == INT64_MAX))
			return false;
		lower_s(a, b->smax - !equal);
		raise_s(b, a->smin + !equal);
		return true;
	}
	if (!equal && (!b->umax || a->umin == UINT64_MAX))
		return false;
	lower_u(a, b->umax - !equal);
	raise_u(b, a->umin + !equal);
	return true;
}

static bool learn_equal(struct leat_range *a, struct leat_range *b)
{
	raise_u(a, b->umin);
	lower_u(a, b->umax);
	raise_s(a, b->smin);
	lower_s(a, b->smax);
	if (!know_bits(a, b->value, b->mask))
		return false;
	*b = *a;
	return true;
}

/** @r is not the number @other is, if that is one: a bound that is it moves by one. */
static void learn_differs(struct leat_range *r, const struct leat_range *other)
{
	if (!leat_range_is_const(other) || leat_range_is_const(r))
		return;
	if (r->umin == other->umin)
		r->umin++;
	if (r->umax == other->umin)
		r->umax--;
	if (r->smin == other->smin)
		r->smin++;
	if (r->smax == other->smin)
		r->smax--;
}

/** No bit of the two, or one at least. */
static bool learn_bits(struct leat_range *a, const struct leat_range *b, bool some)
{
	uint64_t may = (a->value | a->mask) & (b->value | b->mask);

	if (!some) /* bits that b has for certain a has not */
		return know_bits(a, 0, ~b->value);
	return may & (may - 1) ? true : know_bits(a, may, ~may); /* the only one there can be */
}

static bool learn(uint8_t code, struct leat_range *a, struct leat_range *b)
{
	switch (code) {
	case BPF_JEQ:
		return learn_equal(a, b);
	case BPF_JNE:
		learn_differs(a, b);
		learn_differs(b, a);
		return true;
	case BPF_JLT:
	case BPF_JLE:
		return learn_less(a, b, code == BPF_JLE, false);
	case BPF_JGT:
	case BPF_JGE:
		return learn_less(b, a, code == BPF_JGE, false);
	case BPF_JSLT:
	case BPF_JSLE:
		return learn_less(a, b, code == BPF_JSLE, true);
	case BPF_JSGT:
	case BPF_JSGE:
		return learn_less(b, a, code == BPF_JSGE, true);
	default:
		return true;
	}
}

/** The comparison that holds when @code does not. */
static uint8_t opposite(uint8_t code)
{
	static const uint8_t pair[][2] = {
		{ BPF_JEQ, BPF_JNE },   { BPF_JLT, BPF_JGE },   { BPF_JLE, BPF_JGT },
		{ BPF_JSLT, BPF_JSGE }, { BPF_JSLE, BPF_JSGT },
	};
	unsigned int i;

	for (i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		if (pair[i][0] == code || pair[i][1] == code)
			return pair[i][pair[i][0] == code];
	return code;
}

bool leat_range_learn(uint8_t code, bool holds, struct leat_range *a, struct leat_range *b, unsigned int width)
{
	int answer = leat_range_compare(code, a, b);
	bool can;

	if (answer >= 0 && (answer == 1) != holds)
		return false;
	if (code == BPF_JSET)
		can = learn_bits(a, b, holds) && learn_bits(b, a, holds);
	else
		can = learn(holds ? code : opposite(code), a, b);
	return can && settle(a, width) && settle(b, width);
}

bool leat_range_learn_low(struct leat_range *a, const struct leat_range *low, unsigned int narrow, unsigned int width)
{
	uint64_t upper = a->umin & ~ones(narrow);

	if (!know_bits(a, low->value, low->mask | (ones(width) & ~ones(narrow))))
		return false;
	if (!((a->umin ^ a->umax) & ~ones(narrow))) {
		raise_u(a, upper | low->umin);
		lower_u(a, upper | low->umax);
	}
	return settle(a, width);
}
