/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib_source.c: which of its own addresses a host would send from: IPv4 by port and scope, IPv6 by RFC 6724, section 5.
 * Workers; called only when a program asks.
 */
#include "xdp/fib.h"


/* Scopes of IPv4 addresses and routes: RT_SCOPE_*. */
#define SCOPE_LINK 253u

/* ---- IPv4 ---- */

static bool in_prefix4(const struct leat_fib_address *a, const uint8_t *address)
{
	uint32_t own, other;

	memcpy(&own, a->address, 4);
	memcpy(&other, address, 4);
	return !a->len || !(__builtin_bswap32(own ^ other) >> (32u - a->len));
}

/** The first address of the port for that scope; one whose prefix has @via in it goes before others. */
static bool of_port4(const struct leat_fib_port_info *info, const uint8_t *via, uint8_t scope, uint8_t *source)
{
	const struct leat_fib_address *a, *found = NULL;
	unsigned int i;

	for (i = 0; info && i < info->n_addresses; i++) {
		a = &info->address[i];
		if (a->family != AF_INET || a->flags & LEAT_FIB_SECONDARY ||
		    (a->scope < SCOPE_LINK ? a->scope : SCOPE_LINK) > scope)
			continue;
		if (!found)
			found = a;
		if (!via || !in_prefix4(a, via))
			continue;
		found = a;
		break;
	}
	if (found)
		memcpy(source, found->address, 4);
	return found;
}

/** The first address of any port that is good beyond its link. */
static bool of_others4(const struct leat_fib_state *state, uint8_t scope, uint8_t *source)
{
	const struct leat_fib_port_info *info;
	const struct leat_fib_address *a;
	uint32_t port;
	unsigned int i;

	for (port = 1; port < LEAT_PORTS_MAX; port++) {
		info = leat_fib_port_at(state, port);
		for (i = 0; info && i < info->n_addresses; i++) {
			a = &info->address[i];
			if (a->family != AF_INET || a->flags & LEAT_FIB_SECONDARY || a->scope == SCOPE_LINK ||
			    a->scope > scope)
				continue;
			memcpy(source, a->address, 4);
			return true;
		}
	}
	return false;
}

void leat_fib_source4(const struct leat_fib_state *state, uint32_t port, const uint8_t *via, uint8_t scope,
		      uint8_t *source)
{
	if (!of_port4(leat_fib_port_at(state, port), via, scope, source) && !of_others4(state, scope, source))
		memset(source, 0, 4);
}

/* ---- IPv6 ---- */

/** Of RFC 6724, 2.1, and the older prefixes that Linux knows, the longest first. */
static const struct {
	uint8_t prefix[16];
	uint8_t len, label;
} labels[] = {
	{ { [15] = 1 }, 128, 0 },
	{ { 0 }, 96, 3 },
	{ { [10] = 0xff, [11] = 0xff }, 96, 4 },
	{ { 0x20, 0x01 }, 32, 6 },
	{ { 0x20, 0x01, 0x00, 0x10 }, 28, 7 },
	{ { 0x3f, 0xfe }, 16, 12 },
	{ { 0x20, 0x02 }, 16, 2 },
	{ { 0xfe, 0xc0 }, 10, 11 },
	{ { 0xfc }, 7, 5 },
};
#define LABEL_OTHER 1

/** Bits that two addresses have in common from the start. */
static unsigned int common_bits(const uint8_t *a, const uint8_t *b)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		if (a[i] != b[i])
			return 8 * i + (unsigned int)__builtin_clz((uint32_t)(a[i] ^ b[i])) - 24;
	return 128;
}

static int label_of(const uint8_t *address)
{
	size_t i;

	for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (common_bits(labels[i].prefix, address) >= labels[i].len)
			return labels[i].label;
	return LABEL_OTHER;
}

static bool is_loopback(const uint8_t *address)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	return !memcmp(address, loopback, sizeof(loopback));
}

/** RFC 4291, 2.7: link 2, site 5, all else global. */
static int scope_of(const uint8_t *address)
{
	if (is_loopback(address) || (address[0] == 0xfe && (address[1] & 0xc0) == 0x80))
		return 2;
	return address[0] == 0xfe && (address[1] & 0xc0) == 0xc0 ? 5 : 14;
}

/** Addresses to which being deprecated does no harm: mapped and compatible IPv4, loopback. */
static bool always_preferred(const uint8_t *address)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t none[16];

	return common_bits(address, mapped) >= 96 || common_bits(address, none) >= 96;
}

/** RFC 4843: 2001:10::/28. */
static bool is_orchid(const uint8_t *address)
{
	static const uint8_t orchid[16] = { 0x20, 0x01, 0x00, 0x10 };

	return common_bits(address, orchid) >= 28;
}

/** A candidate, and where the packet goes. */
struct candidate {
	const struct leat_fib_address *a;
	uint32_t port;
};

struct destination {
	const uint8_t *address;
	uint32_t port;
	int scope;
};

#define RULES 8u

/** How good a candidate is by one rule; more is better. */
static int score(const struct candidate *c, const struct destination *dst, unsigned int rule)
{
	const uint8_t *own = c->a->address;
	int scope;
	unsigned int common;

	switch (rule) {
	case 0: /* the same address */
		return !memcmp(own, dst->address, 16);
	case 1: /* the smallest scope that reaches */
		scope = scope_of(own);
		return scope >= dst->scope ? -scope : scope - 128;
	case 2:
		return always_preferred(own) || !(c->a->flags & LEAT_FIB_DEPRECATED);
	case 3:
		return c->port == dst->port;
	case 4:
		return label_of(own) == label_of(dst->address);
	case 5:
		return !(c->a->flags & LEAT_FIB_TEMPORARY);
	case 6:
		return is_orchid(own) == is_orchid(dst->address);
	default: /* the longest common prefix, as far as the port's own goes */
		common = common_bits(own, dst->address);
		return (int)(common < c->a->len ? common : c->a->len);
	}
}

static bool is_better(const struct candidate *c, const struct candidate *best, const struct destination *dst)
{
	unsigned int rule;
	int a, b;

	if (!best->a)
		return true;
	for (rule = 0; rule < RULES; rule++) {
		a = score(c, dst, rule);
		b = score(best, dst, rule);
		if (a != b)
			return a > b;
	}
	return false;
}

static void try_port(const struct leat_fib_state *state, uint32_t port, const struct destination *dst,
		     struct candidate *best)
{
	const struct leat_fib_port_info *info = leat_fib_port_at(state, port);
	struct candidate c = { .port = port };
	unsigned int i;

	for (i = 0; info && i < info->n_addresses; i++) {
		c.a = &info->address[i];
		if (c.a->family == AF_INET6 && !(c.a->flags & LEAT_FIB_TENTATIVE) && is_better(&c, best, dst))
			*best = c;
	}
}

bool leat_fib_source6(const struct leat_fib_state *state, uint32_t port, const uint8_t *dst, uint8_t *source)
{
	static const uint8_t none[16];
	const struct leat_fib_port_info *info = leat_fib_port_at(state, port);
	/* the address of nobody has no scope */
	struct destination to = { dst, port, memcmp(dst, none, 16) ? scope_of(dst) : -1 };
	struct candidate best = { .a = NULL };
	uint32_t other;

	if (to.scope < 0 || (info && info->flags & LEAT_FIB_OWN_ADDRESSES)) {
		try_port(state, port, &to, &best);
	} else {
		for (other = 1; other < LEAT_PORTS_MAX; other++)
			try_port(state, other, &to, &best);
	}
	if (best.a)
		memcpy(source, best.a->address, 16);
	return best.a;
}
