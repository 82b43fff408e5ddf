/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range.h: what is known of a number that is not known: bounds, seen unsigned and signed, and single bits. *control*.
 *
 * Every function takes the width of the words it speaks of, in bits (1..64): 64 for registers, 32 for the lower half
 * that 32-bit instructions see. The rules are the same for every width, so the test tries them on words of a few bits
 * against every number there is.
 */
#ifndef LEAT_BPF_RANGE_H
#define LEAT_BPF_RANGE_H

#include <leat/base.h>

/** A set of numbers of some width. No member of the set breaks any of the three; it may have fewer members than that. */
struct leat_range {
	uint64_t umin, umax;
	int64_t smin, smax;
	uint64_t value; /* of the bits that are known */
	uint64_t mask;  /* a bit for each that is not */
};

struct leat_range leat_range_any(unsigned int width);
struct leat_range leat_range_const(uint64_t value, unsigned int width);
/** All from @min to @max, unsigned. */
struct leat_range leat_range_between(uint64_t min, uint64_t max, unsigned int width);

static inline bool leat_range_is_const(const struct leat_range *r)
{
	return r->umin == r->umax;
}

bool leat_range_equal(const struct leat_range *a, const struct leat_range *b);
/** Whether every number of @b is one of @a. False may be said where it is so all the same. */
bool leat_range_covers(const struct leat_range *a, const struct leat_range *b);
/** A set that has every number of both, and as few others as can be said. */
struct leat_range leat_range_union(const struct leat_range *a, const struct leat_range *b);
bool leat_range_has(const struct leat_range *r, uint64_t number, unsigned int width);

/** Arithmetic of operation @code (BPF_ADD .. BPF_ARSH, BPF_DIV and BPF_MOD unsigned) as RFC 9669, 4.1 has it. */
struct leat_range leat_range_op(uint8_t code, struct leat_range a, struct leat_range b, unsigned int width);
struct leat_range leat_range_neg(struct leat_range a, unsigned int width);
/** The lower @narrow bits of a word of @width, as a word of @narrow bits. */
struct leat_range leat_range_narrow(struct leat_range a, unsigned int narrow, unsigned int width);
/** A word of @narrow bits, made one of @width: with zeros, or with its sign. */
struct leat_range leat_range_zero_extend(struct leat_range a, unsigned int narrow, unsigned int width);
struct leat_range leat_range_sign_extend(struct leat_range a, unsigned int narrow, unsigned int width);

/** What a comparison (BPF_JEQ .. BPF_JSLE, BPF_JSET) of the two gives: 1 it holds, 0 it does not, -1 it may. */
int leat_range_compare(uint8_t code, const struct leat_range *a, const struct leat_range *b);
/** Makes use of a comparison that was seen to hold, or not to. Returns false when no numbers are left: it cannot be. */
bool leat_range_learn(uint8_t code, bool holds, struct leat_range *a, struct leat_range *b, unsigned int width);
/**
 * Makes use of what was learned of the lower @narrow bits of *@a. Returns false when no numbers are left.
 */
bool leat_range_learn_low(struct leat_range *a, const struct leat_range *low, unsigned int narrow, unsigned int width);

#endif
