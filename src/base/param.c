/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * param.c: one parser per kind of option, and the table that leads to it. Control thread. Numbers are decimal, cannot
 * overflow, and nothing may follow them; every refusal says what would be accepted.
 */
#include <leat/param.h>

#include "base/heap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <leat/diag.h>
#include <stdio.h>
#include <string.h>

#define NSEC UINT64_C(1)
#define SECOND (UINT64_C(1000000000) * NSEC)
/* The highest number of 64 bits that can be given: one more means "did not fit". */
#define NUMBER_MAX (UINT64_MAX - 1)

/* A name and what it multiplies a number by. */
struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "k", 1000 },
	{ "M", 1000000 },
	{ "G", 1000000000 },
	{ "Ki", UINT64_C(1) << 10 },
	{ "Mi", UINT64_C(1) << 20 },
	{ "Gi", UINT64_C(1) << 30 },
	{ NULL, 0 },
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };

static const struct unit time_units[] = {
	{ "", SECOND },
	{ "s", SECOND },
	{ "ms", 1000000 * NSEC },
	{ "us", 1000 * NSEC },
	{ "ns", NSEC },
	{ "min", 60 * SECOND },
	{ "h", 3600 * SECOND },
	{ NULL, 0 },
};

static uint64_t mul_saturated(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What comes out of a number's text. */
enum number {
	NUMBER_OK,
	NUMBER_BAD,     /* not a number, or something follows it */
	NUMBER_TOO_LOW, /* negative */
	NUMBER_TOO_HIGH,
};

/* Digits at *@text, a fraction too if @fraction says so: the value times @factor. Moves *@text behind them. */
static uint64_t read_digits(const char **text, uint64_t factor, bool fraction)
{
	uint64_t value = 0, place = factor;

	for (; is_digit(**text); (*text)++)
		value = add_saturated(mul_saturated(value, 10), (uint64_t)(**text - '0'));
	value = mul_saturated(value, factor);
	if (!fraction || **text != '.' || !is_digit((*text)[1]))
		return value;
	for ((*text)++; is_digit(**text); (*text)++) {
		place /= 10;
		value = add_saturated(value, place * (uint64_t)(**text - '0'));
	}
	return value;
}

static enum number parse_number(const char *text, const struct unit *units, bool fraction, uint64_t *value)
{
	bool negative = *text == '-';
	const char *digits = text + negative, *end = digits;
	const struct unit *unit;

	if (!is_digit(*digits))
		return NUMBER_BAD;
	read_digits(&end, 1, fraction);
	for (unit = units; unit->name; unit++)
		if (!strcmp(unit->name, end))
			break;
	if (!unit->name)
		return NUMBER_BAD;
	*value = read_digits(&digits, unit->factor, fraction);
	if (negative && *value)
		return NUMBER_TOO_LOW;
	return *value > NUMBER_MAX ? NUMBER_TOO_HIGH : NUMBER_OK;
}

/* "10s" for 10000000000: the largest unit that divides it. */
static void print_time(char *buf, size_t size, uint64_t ns)
{
	static const char *const by_size[] = { "h", "min", "s", "ms", "us", "ns" };
	const struct unit *unit;
	size_t i;

	for (i = 0; i < sizeof(by_size) / sizeof(by_size[0]); i++) {
		for (unit = time_units; strcmp(unit->name, by_size[i]) != 0; unit++)
			;
		if (ns >= unit->factor && ns % unit->factor == 0)
			break;
	}
	if (ns)
		snprintf(buf, size, "%" PRIu64 "%s", ns / unit->factor, unit->name);
	else
		snprintf(buf, size, "0s");
}

static void print_bound(const struct leat_param *param, char *buf, size_t size, uint64_t bound)
{
	if (param->kind == LEAT_PARAM_DURATION)
		print_time(buf, size, bound);
	else
		snprintf(buf, size, "%" PRIu64, bound);
}

/* The highest value allowed, of a type that ends at @type_max. */
static uint64_t upper_bound(const struct leat_param *param, uint64_t type_max)
{
	return param->max && param->max < type_max ? param->max : type_max;
}

static int out_of_range(const struct leat_param *param, const char *text, uint64_t max, bool too_low,
			struct leat_diag *diag)
{
	char low[32], high[32];

	print_bound(param, low, sizeof(low), param->min);
	print_bound(param, high, sizeof(high), max);
	if (max < NUMBER_MAX)
		leat_diag_add(diag, "must be %s..%s, not %.40s", low, high, text);
	else if (too_low)
		leat_diag_add(diag, "must be at least %s, not %.40s", low, text);
	else
		leat_diag_add(diag, "%.40s is too large", text);
	return -EINVAL;
}

/* Reads a number in @units within the bounds of @param and of the type; @what names the kind for people. */
static int set_number(const struct leat_param *param, const char *text, const struct unit *units, uint64_t type_max,
		      const char *what, uint64_t *value, struct leat_diag *diag)
{
	uint64_t max = upper_bound(param, type_max);
	enum number number = parse_number(text, units, units == time_units, value);

	if (number == NUMBER_BAD) {
		leat_diag_add(diag, "'%.40s' is not %s", text, what);
		return -EINVAL;
	}
	if (number != NUMBER_OK || *value < param->min || *value > max)
		return out_of_range(param, text, max, number == NUMBER_TOO_LOW || *value < param->min, diag);
	return 0;
}

static int set_u32(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	uint64_t value;
	int rc = set_number(param, text, no_units, UINT32_MAX, "a whole number", &value, diag);

	if (!rc)
		*(uint32_t *)where = (uint32_t)value;
	return rc;
}

static int set_u64(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	uint64_t value;
	int rc = set_number(param, text, size_units, NUMBER_MAX,
			    "a whole number (it may end in k, M, G, Ki, Mi or Gi)", &value, diag);

	if (!rc)
		*(uint64_t *)where = value;
	return rc;
}

static int set_duration(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	uint64_t value;
	int rc = set_number(param, text, time_units, NUMBER_MAX, "a duration (like 10s, 250ms or 5us)", &value, diag);

	if (!rc)
		*(uint64_t *)where = value;
	return rc;
}

/* What the kernel takes for the name of an interface (dev_valid_name), without '%', which it fills in by itself. */
static bool is_ifname(const char *text)
{
	static const char refused[] = "/:% \t\n\v\f\r";
	const size_t longest = 15; /* IFNAMSIZ - 1 */

	return *text && strlen(text) <= longest && !text[strcspn(text, refused)] && strcmp(text, ".") != 0 &&
	       strcmp(text, "..") != 0;
}

static int set_string(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	size_t len = strlen(text);
	char *copy;

	if (len < param->min || (param->max && len > param->max)) {
		if (!len)
			leat_diag_add(diag, "must not be empty");
		else if (len < param->min)
			leat_diag_add(diag, "must be at least %" PRIu64 " bytes long, not %zu", param->min, len);
		else
			leat_diag_add(diag, "must be at most %" PRIu64 " bytes long, not %zu", param->max, len);
		return -EINVAL;
	}
	if (param->flags & LEAT_PARAM_IFNAME && !is_ifname(text)) {
		leat_diag_add(diag, "'%.40s' cannot be the name of an interface: 1 to 15 bytes without spaces, '/', ':' "
			      "and '%%', and not '.' or '..'", text);
		return -EINVAL;
	}
	copy = leat_heap_strdup(text);
	if (!copy)
		return -ENOMEM;
	leat_heap_free(*(char **)where);
	*(char **)where = copy;
	return 0;
}

static int set_bool(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
	unsigned int i;

	(void)param;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		*(bool *)where = i % 2;
		return 0;
	}
	leat_diag_add(diag, "must be true or false (or yes, no, on, off), not '%.40s'", text);
	return -EINVAL;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return found ? (int)(found - digits) : -EINVAL;
}

static int set_mac(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	static const uint8_t none[6];
	uint8_t mac[6];
	unsigned int i;

	if (strlen(text) != 17)
		goto bad;
	for (i = 0; i < 6; i++) {
		int high = hex_digit(text[3 * i]), low = hex_digit(text[3 * i + 1]);

		if (high < 0 || low < 0 || text[3 * i + 2] != (i < 5 ? ':' : '\0'))
			goto bad;
		mac[i] = (uint8_t)(high << 4 | low);
	}
	if (param->flags & LEAT_PARAM_STATION && (mac[0] & 1 || !memcmp(mac, none, sizeof(mac)))) {
		leat_diag_add(diag, "'%s' cannot be a port's own address: it is %s", text,
			      mac[0] & 1 ? "a group's" : "all zero");
		return -EINVAL;
	}
	memcpy(where, mac, sizeof(mac));
	return 0;
bad:
	leat_diag_add(diag, "'%.40s' is not a MAC address (like 02:00:00:00:00:01)", text);
	return -EINVAL;
}

static int set_ipv4(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	struct in_addr addr;

	(void)param;
	if (inet_pton(AF_INET, text, &addr) != 1) {
		leat_diag_add(diag, "'%.40s' is not an IPv4 address (like 10.0.0.1)", text);
		return -EINVAL;
	}
	memcpy(where, &addr.s_addr, sizeof(uint32_t));
	return 0;
}

static int set_choice(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag)
{
	char known[256] = "";
	size_t len = 0;
	uint32_t i;

	for (i = 0; param->choices[i]; i++) {
		if (!strcmp(param->choices[i], text)) {
			*(uint32_t *)where = i;
			return 0;
		}
		if (len < sizeof(known))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
						param->choices[i]);
	}
	leat_diag_add(diag, "'%.40s' is not one of: %s", text, known);
	return -EINVAL;
}

typedef int set_fn(const struct leat_param *param, void *where, const char *text, struct leat_diag *diag);

static set_fn *const setters[] = {
	[LEAT_PARAM_STRING] = set_string,
	[LEAT_PARAM_U32] = set_u32,
	[LEAT_PARAM_U64] = set_u64,
	[LEAT_PARAM_BOOL] = set_bool,
	[LEAT_PARAM_MAC] = set_mac,
	[LEAT_PARAM_IPV4] = set_ipv4,
	[LEAT_PARAM_DURATION] = set_duration,
	[LEAT_PARAM_CHOICE] = set_choice,
};

int leat_param_set(const struct leat_param *param, void *opts, const char *text, struct leat_diag *diag)
{
	return setters[param->kind](param, (uint8_t *)opts + param->offset, text, diag);
}

int leat_param_defaults(const struct leat_param *table, void *opts)
{
	const struct leat_param *param;
	int rc;

	for (param = table; param && param->name; param++) {
		if (!param->default_text)
			continue;
		rc = leat_param_set(param, opts, param->default_text, NULL);
		if (rc == -ENOMEM)
			return rc;
		LEAT_ASSERT(!rc); /* a default that its own table refuses */
	}
	return 0;
}

void leat_param_free(const struct leat_param *table, void *opts)
{
	const struct leat_param *param;

	for (param = table; param && param->name; param++) {
		char **where = (char **)((uint8_t *)opts + param->offset);

		if (param->kind != LEAT_PARAM_STRING)
			continue;
		leat_heap_free(*where);
		*where = NULL;
	}
}

const struct leat_param *leat_param_find(const struct leat_param *table, const char *name)
{
	const struct leat_param *param;

	for (param = table; param && param->name; param++)
		if (!strcmp(param->name, name))
			return param;
	return NULL;
}
