/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.c: numbers as people read them. Pure functions.
 */
#include "cli.h"

#include <stdio.h>

static int digits_after_point(double value)
{
	return value < 10 ? 2 : value < 100 ? 1 : 0;
}

/* Divides by @factor until three digits stand before the point (999.5 would be rounded to four). */
static const char *scale(double *value, double factor, double limit, const char *const *prefixes)
{
	while (*value >= limit && prefixes[1]) {
		*value /= factor;
		prefixes++;
	}
	return *prefixes;
}

const char *format_unit(char buf[UNIT_SIZE], double value, const char *unit)
{
	static const char *const prefixes[] = { "", "k", "M", "G", "T", "P", "E", NULL };
	const char *prefix = scale(&value, 1000, 999.5, prefixes);

	snprintf(buf, UNIT_SIZE, "%.*f %s%s", *prefix ? digits_after_point(value) : 0, value, prefix, unit);
	return buf;
}

const char *format_bytes(char buf[UNIT_SIZE], double bytes)
{
	static const char *const prefixes[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL };
	const char *prefix = scale(&bytes, 1024, 1023.5, prefixes);

	snprintf(buf, UNIT_SIZE, "%.*f %s", prefix[1] ? digits_after_point(bytes) : 0, bytes, prefix);
	return buf;
}

const char *format_share(char buf[UNIT_SIZE], double part, double whole)
{
	double share = whole > 0 ? 100 * part / whole : 0;

	if (whole <= 0)
		snprintf(buf, UNIT_SIZE, "-");
	else
		snprintf(buf, UNIT_SIZE, "%.*f %%", share < 99.95 ? 1 : 0, share);
	return buf;
}
