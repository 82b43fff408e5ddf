/* SPDX-License-Identifier: BSD-3-Clause */
/* stat.c: medians, their intervals, and what follows of a mark. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted(const double *value, unsigned int n)
{
	double *copy = bench_realloc(NULL, n * sizeof(*copy));

	memcpy(copy, value, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), compare);
	return copy;
}

struct summary stat_summary(const double *value, unsigned int n)
{
	struct summary s = { 0, 0, 0 };
	double *v;

	if (!n)
		return s;
	v = sorted(value, n);
	s.min = v[0];
	s.max = v[n - 1];
	s.median = (v[(n - 1) / 2] + v[n / 2]) / 2;
	free(v);
	return s;
}

/**
 * The values of ranks k and n + 1 - k hold the median between them but for the chance that fewer than k of n fair coins
 * show heads, or fewer than k tails. The greatest k with a chance of at most 5 %; 0: there is none.
 */
static unsigned int rank_of_interval(unsigned int n)
{
	double chance = ldexp(1, -(int)n), sum = 0; /* of exactly k heads */
	unsigned int k;

	for (k = 0; k < n; k++) {
		sum += chance;
		if (2 * sum > 0.05)
			break;
		chance *= (double)(n - k) / (k + 1);
	}
	return k;
}

bool stat_interval(const double *value, unsigned int n, double *low, double *high)
{
	unsigned int k = rank_of_interval(n);
	double *v;

	*low = *high = 0;
	if (!n)
		return false;
	v = sorted(value, n);
	*low = v[k ? k - 1 : 0];
	*high = v[k ? n - k : n - 1];
	free(v);
	return k != 0;
}

const char *stat_verdict(const struct ratio *ratio)
{
	double low = ratio->low, high = ratio->high, least = -HUGE_VAL, most = HUGE_VAL;

	switch (ratio->mark.kind) {
	case BENCH_NONE:
		return NULL;
	case BENCH_AT_MOST:
		most = ratio->mark.value;
		break;
	case BENCH_AT_LEAST:
		least = ratio->mark.value;
		break;
	case BENCH_WITHIN:
		least = 1 - ratio->mark.value;
		most = 1 + ratio->mark.value;
		break;
	}
	if (!ratio->n || (!ratio->narrow && !ratio->exact))
		return "inconclusive";
	if (low > most || high < least)
		return "fail";
	return low >= least && high <= most ? "pass" : "inconclusive";
}
