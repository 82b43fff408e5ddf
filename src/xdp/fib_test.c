/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the forwarding table: each answer, what it writes, and what the table takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "xdp/fib.h"
#include "xdp/test_fib.h"

#define DIRECT LEAT_FIB_LOOKUP_DIRECT
#define OUTPUT LEAT_FIB_LOOKUP_OUTPUT
#define SKIP LEAT_FIB_LOOKUP_SKIP_NEIGH
#define TBID LEAT_FIB_LOOKUP_TBID
#define SRC LEAT_FIB_LOOKUP_SRC

/** A table with ports 1..4, of which 4 does not forward. */
static struct leat_fib *make_fib(uint32_t routes, uint32_t neighbours)
{
	const struct leat_fib_opts opts = { .size = sizeof(opts), .routes = routes, .neighbours = neighbours };
	struct leat_fib *fib = NULL;
	struct leat_fib_port port;
	uint32_t i;

	assert_int_equal(leat_fib_create(&opts, &fib), 0);
	for (i = 1; i <= 4; i++) {
		port = test_fib_port(i);
		if (i == 4)
			port.flags = 0;
		assert_int_equal(leat_fib_port_set(fib, &port), 0);
	}
	return fib;
}

static void add(struct leat_fib *fib, struct leat_fib_route route)
{
	assert_int_equal(leat_fib_route_add(fib, &route), 0);
}

static void add_type(struct leat_fib *fib, const char *prefix, uint8_t type, uint32_t table)
{
	struct leat_fib_route route = test_route(prefix, NULL, 0);

	route.type = type;
	route.table = table;
	add(fib, route);
}

static void add_neighbour(struct leat_fib *fib, const char *address, uint32_t port, uint8_t last)
{
	struct leat_fib_neighbour neighbour = test_neighbour(address, port, last);

	assert_int_equal(leat_fib_neighbour_set(fib, &neighbour), 0);
}

static int ask(struct leat_fib *fib, const char *dst, uint32_t flags, struct leat_fib_lookup *q)
{
	*q = test_question(dst);
	return leat_fib_lookup(fib, q, flags);
}

/** The port that packets to @dst leave by. */
static uint32_t port_to(struct leat_fib *fib, const char *dst)
{
	struct leat_fib_lookup q;

	assert_int_equal(ask(fib, dst, SKIP, &q), LEAT_FIB_SUCCESS);
	return q.ifindex;
}

/* ---- answers ---- */

static void test_success_writes(void **unused)
{
	const uint8_t smac[6] = { 2, 0, 0, 0, 1, 2 }, dmac[6] = { 2, 0, 0, 0, 0, 9 }, via[4] = { 10, 2, 0, 9 };
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.0.0.0/8", "10.2.0.9", 2);
	struct leat_fib_lookup q;

	(void)unused;
	route.metric = 77;
	add(fib, route);
	add_neighbour(fib, "10.2.0.9", 2, 9);
	add_neighbour(fib, "10.2.0.9", 3, 8); /* of another port */
	assert_int_equal(ask(fib, "10.1.2.3", 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.family, AF_INET);
	assert_int_equal(q.tot_len, 1500);
	assert_int_equal(q.ifindex, 2);
	assert_int_equal(q.tos, 77);
	assert_int_equal(q.tbid, 0);
	assert_memory_equal(q.dst, via, sizeof(via));
	assert_memory_equal(q.smac, smac, sizeof(smac));
	assert_memory_equal(q.dmac, dmac, sizeof(dmac));
	assert_int_equal(q.sport, 0xeeee);
	leat_fib_destroy(fib);
}

static void test_on_link_by_destination(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_lookup q, asked = test_question("fd00::7");

	(void)unused;
	add(fib, test_route("fd00::/64", NULL, 3));
	assert_int_equal(ask(fib, "fd00::7", 0, &q), LEAT_FIB_RET_NO_NEIGH);
	assert_int_equal(q.ifindex, 3);
	assert_int_equal(q.tot_len, 60);
	assert_int_equal(q.dmac[0], 0xee);
	add_neighbour(fib, "fd00::7", 3, 7);
	assert_int_equal(ask(fib, "fd00::7", 0, &q), LEAT_FIB_SUCCESS);
	assert_memory_equal(q.dst, asked.dst, 16);
	assert_int_equal(q.dmac[5], 7);
	leat_fib_destroy(fib);
}

static void test_ipv4_by_ipv6_hop(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_lookup q, hop = test_question("fd00::9");

	(void)unused;
	add(fib, test_route("10.0.0.0/8", "fd00::9", 2));
	add_neighbour(fib, "fd00::9", 2, 9);
	assert_int_equal(ask(fib, "10.1.2.3", 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.family, AF_INET6);
	assert_memory_equal(q.dst, hop.dst, 16);
	assert_int_equal(q.dmac[5], 9);
	leat_fib_destroy(fib);
}

/** A refusal changes nothing. */
static void assert_refused(struct leat_fib *fib, struct leat_fib_lookup q, uint32_t flags, int result)
{
	struct leat_fib_lookup before = q;

	assert_int_equal(leat_fib_lookup(fib, &q, flags), result);
	assert_memory_equal(&q, &before, sizeof(q));
}

static void test_refusals(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_lookup q = test_question("10.0.0.1"), q6 = test_question("fd00::1");
	uint32_t flag;

	(void)unused;
	add(fib, test_route("0.0.0.0/0", NULL, 2));
	add(fib, test_route("::/0", NULL, 2));
	for (flag = 0x40; flag; flag <<= 1)
		assert_refused(fib, q, flag, -EINVAL);
	q.family = AF_UNIX;
	assert_refused(fib, q, 0, -EAFNOSUPPORT);
	q.family = AF_INET;
	q.ifindex = 5;
	assert_refused(fib, q, 0, -ENODEV);
	q.ifindex = UINT32_MAX;
	assert_refused(fib, q, 0, -ENODEV);
	q.ifindex = 0;
	assert_refused(fib, q, 0, -ENODEV);
	q.ifindex = q6.ifindex = 4;
	assert_refused(fib, q, 0, LEAT_FIB_RET_FWD_DISABLED);
	assert_refused(fib, q6, 0, LEAT_FIB_RET_FWD_DISABLED);
	/* these stay on their link, whatever the port */
	assert_refused(fib, test_question("fe80::1"), 0, LEAT_FIB_RET_NOT_FWDED);
	assert_refused(fib, test_question("ff02::1"), 0, LEAT_FIB_RET_NOT_FWDED);
	assert_refused(fib, test_question("::1"), 0, LEAT_FIB_RET_NOT_FWDED);
	q6.src[0] = 0xfe;
	q6.src[1] = 0x80;
	assert_refused(fib, q6, 0, LEAT_FIB_RET_NOT_FWDED);
	leat_fib_destroy(fib);
}

static void test_types(void **unused)
{
	static const struct {
		uint8_t type;
		int result;
	} types[] = {
		{ LEAT_FIB_BLACKHOLE, LEAT_FIB_RET_BLACKHOLE },	    { LEAT_FIB_UNREACHABLE, LEAT_FIB_RET_UNREACHABLE },
		{ LEAT_FIB_PROHIBIT, LEAT_FIB_RET_PROHIBIT },	    { LEAT_FIB_LOCAL, LEAT_FIB_RET_NOT_FWDED },
		{ LEAT_FIB_BROADCAST, LEAT_FIB_RET_NOT_FWDED },	    { LEAT_FIB_ANYCAST, LEAT_FIB_RET_NOT_FWDED },
		{ LEAT_FIB_MULTICAST, LEAT_FIB_RET_NOT_FWDED },	    { LEAT_FIB_THROW, LEAT_FIB_RET_NOT_FWDED },
		{ 200, LEAT_FIB_RET_NOT_FWDED },
	};
	struct leat_fib *fib;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fib = make_fib(0, 0);
		add(fib, test_route("0.0.0.0/0", NULL, 2));
		add(fib, test_route("::/0", NULL, 2));
		add_type(fib, "10.0.0.0/8", types[i].type, 0);
		add_type(fib, "fd00::/8", types[i].type, 0);
		assert_refused(fib, test_question("10.1.1.1"), 0, types[i].result);
		assert_refused(fib, test_question("fd00::1"), 0, types[i].result);
		leat_fib_destroy(fib);
	}
}

static void test_mtu(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.1.0.0/16", NULL, 2);
	struct leat_fib_lookup q = test_question("10.1.0.1");

	(void)unused;
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	route.mtu = 1300;
	add(fib, route);
	q.tot_len = 1301;
	assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_RET_FRAG_NEEDED);
	assert_int_equal(q.tot_len, 1300);
	assert_int_equal(q.ifindex, 1);
	assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_SUCCESS);
	q = test_question("10.2.0.1");
	q.tot_len = 1500;
	assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_SUCCESS);
	q = test_question("10.2.0.1");
	q.tot_len = 1501;
	assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_RET_FRAG_NEEDED);
	leat_fib_destroy(fib);
}

static void test_mtu_limits(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_port port = test_fib_port(2);
	struct leat_fib_lookup q;

	(void)unused;
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	add(fib, test_route("fd00::/8", NULL, 2));
	port.mtu = 65536;
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	assert_int_equal(ask(fib, "10.0.0.1", SKIP, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.tot_len, 0xfff0);
	port.mtu6 = 1000; /* less than IPv6 needs */
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	assert_int_equal(ask(fib, "fd00::1", SKIP, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.tot_len, 1280);
	leat_fib_destroy(fib);
}

static void test_encapsulation(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.0.0.0/8", NULL, 2);

	(void)unused;
	route.flags = LEAT_FIB_ENCAP;
	add(fib, route);
	assert_refused(fib, test_question("10.0.0.1"), 0, LEAT_FIB_RET_UNSUPP_LWT);
	leat_fib_destroy(fib);
}

/** Routes by an interface that is no port lead nowhere, and hide shorter ones. */
static void test_no_port(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);

	(void)unused;
	add(fib, test_route("0.0.0.0/0", NULL, 2));
	add(fib, test_route("10.0.0.0/8", NULL, 0));
	assert_refused(fib, test_question("10.0.0.1"), 0, LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(port_to(fib, "11.0.0.1"), 2);
	leat_fib_destroy(fib);
}

/* ---- which route ---- */

static void test_tables(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.0.0.0/8", NULL, 3);
	struct leat_fib_lookup q;

	(void)unused;
	route.table = 100;
	add(fib, route);
	assert_refused(fib, test_question("10.0.0.1"), 0, LEAT_FIB_RET_NOT_FWDED);
	q = test_question("10.0.0.1");
	q.tbid = 100;
	assert_int_equal(leat_fib_lookup(fib, &q, DIRECT | TBID | SKIP), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 3);
	assert_int_equal(q.tbid, 0);
	q = test_question("10.0.0.1");
	q.tbid = 101;
	assert_int_equal(leat_fib_lookup(fib, &q, DIRECT | TBID), LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(q.tbid, 0);
	q.tbid = 100; /* counts with both flags only */
	assert_refused(fib, q, TBID, LEAT_FIB_RET_NOT_FWDED);
	assert_refused(fib, q, DIRECT, LEAT_FIB_RET_NOT_FWDED);
	leat_fib_destroy(fib);
}

static void test_local_and_default(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.0.0.0/8", NULL, 3);

	(void)unused;
	route.table = LEAT_FIB_TABLE_DEFAULT;
	add(fib, route);
	assert_int_equal(port_to(fib, "10.0.0.1"), 3);
	add_type(fib, "10.1.0.0/16", LEAT_FIB_THROW, 0);
	assert_int_equal(port_to(fib, "10.1.0.1"), 3);
	add_type(fib, "10.1.0.0/24", LEAT_FIB_PROHIBIT, 0);
	assert_refused(fib, test_question("10.1.0.1"), 0, LEAT_FIB_RET_PROHIBIT);
	assert_refused(fib, test_question("10.2.0.1"), DIRECT, LEAT_FIB_RET_NOT_FWDED);
	/* IPv4's local table is one with main, IPv6's goes before it */
	add(fib, test_route("10.5.0.0/16", NULL, 2));
	add_type(fib, "10.5.0.0/16", LEAT_FIB_LOCAL, LEAT_FIB_TABLE_LOCAL);
	add_type(fib, "10.4.0.0/14", LEAT_FIB_LOCAL, LEAT_FIB_TABLE_LOCAL);
	add(fib, test_route("10.6.0.0/16", NULL, 2));
	assert_refused(fib, test_question("10.5.0.1"), 0, LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(port_to(fib, "10.6.0.1"), 2);
	add(fib, test_route("fd00::/64", NULL, 2));
	assert_int_equal(port_to(fib, "fd00::1"), 2);
	add_type(fib, "fd00::/8", LEAT_FIB_LOCAL, LEAT_FIB_TABLE_LOCAL);
	assert_refused(fib, test_question("fd00::1"), 0, LEAT_FIB_RET_NOT_FWDED);
	leat_fib_destroy(fib);
}

static void test_metric_and_tos(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("10.0.0.0/8", NULL, 2);
	struct leat_fib_lookup q;

	(void)unused;
	route.metric = 5;
	add(fib, route);
	route.metric = 4;
	route.port = 3;
	add(fib, route);
	assert_int_equal(port_to(fib, "10.0.0.1"), 3);
	route.metric = 9;
	route.tos = 8;
	route.port = 1;
	add(fib, route);
	assert_int_equal(port_to(fib, "10.0.0.1"), 3);
	q = test_question("10.0.0.1");
	q.tos = 0xeb; /* 8 of the bits that count */
	assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 1);
	leat_fib_destroy(fib);
}

static void test_output(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_lookup q;

	(void)unused;
	add(fib, test_route("0.0.0.0/0", NULL, 1));
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	add(fib, test_route("fd00::/8", NULL, 2));
	add(fib, test_route("fd00::/8", NULL, 1));
	add(fib, test_route("fc00::/7", NULL, 1));
	add(fib, test_route("fd00::/16", NULL, 2));
	/* IPv4: only routes of that port, the less specific if need be */
	assert_int_equal(ask(fib, "10.0.0.1", OUTPUT | SKIP, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 1);
	/* IPv6: that port among equals */
	assert_int_equal(ask(fib, "fd01::1", OUTPUT | SKIP, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 1);
	assert_int_equal(ask(fib, "fd00::1", OUTPUT | SKIP, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 2);
	leat_fib_destroy(fib);
}

/** Flows are spread by weight, each always the same way. */
static void check_hops(const char *prefix, const char *other)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route(prefix, NULL, 2);
	unsigned int i, to[5] = { 0 };
	struct leat_fib_lookup q, again;

	route.flags = LEAT_FIB_HOP;
	add(fib, route);
	route.port = 3;
	route.weight = 3;
	add(fib, route);
	add(fib, test_route(other, NULL, 1));
	for (i = 0; i < 4000; i++) {
		q = test_question(prefix);
		memcpy(q.src + (q.family == AF_INET ? 0 : 8), &i, sizeof(i));
		again = q;
		assert_int_equal(leat_fib_lookup(fib, &q, SKIP), LEAT_FIB_SUCCESS);
		assert_int_equal(leat_fib_lookup(fib, &again, SKIP), LEAT_FIB_SUCCESS);
		assert_int_equal(q.ifindex, again.ifindex);
		to[q.ifindex]++;
	}
	assert_int_equal(to[2] + to[3], 4000);
	assert_in_range(to[2], 900, 1100);
	leat_fib_destroy(fib);
}

static void test_hops(void **unused)
{
	(void)unused;
	check_hops("10.0.0.0/8", "0.0.0.0/0");
	check_hops("fd00::/8", "::/0");
}

/* ---- sources ---- */

static struct leat_fib_address address_of(const char *text, uint8_t scope, uint8_t flags)
{
	struct leat_fib_address address = { .family = test_family(text), .scope = scope, .flags = flags };

	address.len = test_prefix(text, address.address);
	return address;
}

static void set_addresses(struct leat_fib *fib, uint32_t number, unsigned int n, const struct leat_fib_address *list)
{
	struct leat_fib_port port = test_fib_port(number);

	port.n_addresses = n;
	port.addresses = list;
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
}

/** The source that is chosen for packets to @dst, as text. */
static const char *source_to(struct leat_fib *fib, const char *dst)
{
	static char text[INET6_ADDRSTRLEN];
	struct leat_fib_lookup q;

	assert_int_equal(ask(fib, dst, SRC | SKIP, &q), LEAT_FIB_SUCCESS);
	inet_ntop(test_family(dst), q.src, text, sizeof(text));
	return text;
}

static void test_source4(void **unused)
{
	const struct leat_fib_address of2[] = {
		address_of("10.2.0.5/24", 0, LEAT_FIB_SECONDARY),
		address_of("169.254.0.1/16", 253, 0),
		address_of("10.2.0.1/24", 0, 0),
		address_of("10.9.0.1/16", 0, 0),
	};
	const struct leat_fib_address of3[] = { address_of("169.254.3.1/16", 253, 0) };
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route route = test_route("40.0.0.0/8", "10.9.0.3", 2);

	(void)unused;
	add(fib, test_route("20.0.0.0/8", "10.2.0.3", 2));
	add(fib, test_route("30.0.0.0/8", "10.9.0.3", 2));
	add(fib, test_route("50.0.0.0/8", NULL, 3));
	assert_string_equal(source_to(fib, "20.0.0.1"), "0.0.0.0");
	set_addresses(fib, 2, 4, of2);
	set_addresses(fib, 3, 1, of3);
	assert_string_equal(source_to(fib, "20.0.0.1"), "10.2.0.1");
	assert_string_equal(source_to(fib, "30.0.0.1"), "10.9.0.1");
	assert_string_equal(source_to(fib, "50.0.0.1"), "10.2.0.1"); /* of another port: good beyond its link */
	route.flags = LEAT_FIB_HAS_SRC;
	test_prefix("1.2.3.4", route.src);
	add(fib, route);
	assert_string_equal(source_to(fib, "40.0.0.1"), "1.2.3.4");
	leat_fib_destroy(fib);
}

static void test_source6(void **unused)
{
	const struct leat_fib_address of2[] = {
		address_of("fe80::2/64", 253, 0),
		address_of("fd00::2/64", 0, 0),
		address_of("2001:db8::2/64", 0, LEAT_FIB_DEPRECATED),
		address_of("2002:1::2/64", 0, 0),
		address_of("2001:db8:ffff::2/64", 0, LEAT_FIB_TENTATIVE),
	};
	const struct leat_fib_address of3[] = { address_of("2001:db8:7::3/64", 0, LEAT_FIB_TEMPORARY),
						address_of("2001:db8:8::3/64", 0, 0) };
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_port port = test_fib_port(3);
	struct leat_fib_lookup q;

	(void)unused;
	add(fib, test_route("::/0", NULL, 2));
	add(fib, test_route("3000::/16", NULL, 3));
	assert_int_equal(ask(fib, "2001:db8::9", SRC | SKIP, &q), LEAT_FIB_RET_NO_SRC_ADDR);
	assert_int_equal(q.ifindex, 2);
	set_addresses(fib, 2, 5, of2);
	assert_string_equal(source_to(fib, "2001:db8::2"), "2001:db8::2"); /* itself, though deprecated */
	assert_string_equal(source_to(fib, "fd00::9"), "fd00::2");         /* label */
	assert_string_equal(source_to(fib, "2002:9::9"), "2002:1::2");
	set_addresses(fib, 3, 2, of3);
	assert_string_equal(source_to(fib, "3000::1"), "2001:db8:8::3"); /* of its port, not temporary */
	port.flags |= LEAT_FIB_OWN_ADDRESSES;
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	assert_int_equal(ask(fib, "3000::1", SRC | SKIP, &q), LEAT_FIB_RET_NO_SRC_ADDR);
	leat_fib_destroy(fib);
}

/* ---- what the table takes ---- */

static void test_add_delete(void **unused)
{
	struct leat_fib *fib = make_fib(2, 0);
	struct leat_fib_route a = test_route("10.0.0.0/8", NULL, 2), b = test_route("10.0.0.0/8", "10.0.0.1", 2);
	struct leat_fib_counts counts;

	(void)unused;
	a.dst[3] = 77; /* behind the prefix */
	add(fib, a);
	a.dst[3] = 0;
	assert_int_equal(leat_fib_route_add(fib, &a), -EEXIST);
	assert_int_equal(leat_fib_route_add_alone(fib, &b), -ENOTUNIQ);
	add(fib, b);
	add(fib, test_route("11.0.0.0/8", NULL, 2));
	b.metric = 1;
	assert_int_equal(leat_fib_route_delete(fib, &b), -ENOENT);
	assert_int_equal(leat_fib_route_add_alone(fib, &b), 0);
	b = test_route("12.0.0.0/8", NULL, 2);
	assert_int_equal(leat_fib_route_add(fib, &b), -ENOSPC);
	assert_int_equal(leat_fib_route_delete(fib, &b), -ENOENT);
	leat_fib_count(fib, &counts);
	assert_int_equal(counts.routes4, 4);
	assert_int_equal(counts.routes6, 0);
	assert_int_equal(counts.ports, 4);
	assert_int_equal(leat_fib_route_delete(fib, &a), 0);
	assert_int_equal(leat_fib_route_delete(fib, &a), -ENOENT);
	assert_int_equal(port_to(fib, "10.0.0.1"), 2);
	leat_fib_destroy(fib);
}

static void test_bad_routes(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_route good = test_route("10.0.0.0/8", NULL, 2), good6 = test_route("fd00::/8", NULL, 2), bad;
	struct leat_fib_opts opts = { .size = sizeof(opts), .routes = LEAT_FIB_ROUTES_MAX + 1 };
	struct leat_fib *none = NULL;

	(void)unused;
	assert_int_equal(leat_fib_create(&opts, &none), -EINVAL);
#define BAD(base, change)                                                                                              \
	bad = base;                                                                                                    \
	bad.change;                                                                                                    \
	assert_int_equal(leat_fib_route_add(fib, &bad), -EINVAL)
	BAD(good, family = AF_UNIX);
	BAD(good, len = 33);
	BAD(good6, len = 129);
	BAD(good, port = LEAT_PORTS_MAX);
	BAD(good, flags = 0x80);
	BAD(good6, tos = 4);
	BAD(good, via_family = AF_UNIX);
	BAD(good6, via_family = AF_INET);
	leat_fib_destroy(fib);
}

static void test_neighbours(void **unused)
{
	struct leat_fib *fib = make_fib(0, 2);
	struct leat_fib_neighbour n = test_neighbour("10.0.0.1", 2, 1);
	struct leat_fib_port port = test_fib_port(2);
	struct leat_fib_lookup q;

	(void)unused;
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	add_neighbour(fib, "10.0.0.1", 2, 1);
	add_neighbour(fib, "10.0.0.2", 2, 2);
	n = test_neighbour("10.0.0.3", 2, 3);
	assert_int_equal(leat_fib_neighbour_set(fib, &n), -E2BIG);
	n = test_neighbour("10.0.0.1", 2, 9); /* replaced */
	assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
	assert_int_equal(ask(fib, "10.0.0.1", 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.dmac[5], 9);
	n.valid = false;
	assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
	assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
	assert_int_equal(ask(fib, "10.0.0.1", 0, &q), LEAT_FIB_RET_NO_NEIGH);
	assert_int_equal(leat_fib_neighbour_delete(fib, &n), -ENOENT);
	n.port = 0;
	assert_int_equal(leat_fib_neighbour_set(fib, &n), -EINVAL);
	/* a port with one neighbour has it by no address */
	add_neighbour(fib, "0.0.0.0", 2, 5);
	port.flags |= LEAT_FIB_ONE_NEIGHBOUR;
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	assert_int_equal(ask(fib, "10.0.0.77", 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.dmac[5], 5);
	leat_fib_destroy(fib);
}

static void test_commit(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_port port = test_fib_port(1);
	struct leat_fib_counts counts;

	(void)unused;
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	assert_int_equal(leat_fib_begin(fib), 0);
	assert_int_equal(leat_fib_begin(fib), -EBUSY);
	add(fib, test_route("10.0.0.0/8", NULL, 1));
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	assert_int_equal(port_to(fib, "10.0.0.1"), 2); /* not yet */
	leat_fib_commit(fib);
	assert_int_equal(port_to(fib, "10.0.0.1"), 1);
	leat_fib_count(fib, &counts);
	assert_int_equal(counts.ports, 1);
	assert_int_equal(leat_fib_begin(fib), 0);
	leat_fib_abandon(fib);
	assert_int_equal(port_to(fib, "10.0.0.1"), 1);
	assert_int_equal(leat_fib_port_delete(fib, 1), 0);
	assert_int_equal(leat_fib_port_delete(fib, 1), -ENOENT);
	assert_int_equal(leat_fib_begin(fib), 0); /* left open at the end */
	leat_fib_destroy(fib);
}

/* ---- the helper ---- */

struct call {
	struct leat_bpf_env *env;
	struct leat_xdp_rxq rxq;
	struct leat_xdp_buff xdp;
	struct leat_bpf_run run;
};

static void begin_call(struct call *c, uint32_t port)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(leat_bpf_env_create(NULL, &c->env), 0);
	c->rxq.port = port;
	c->xdp.rxq = &c->rxq;
	c->run.xdp = &c->xdp;
	c->run.env = c->env;
}

static int64_t helper(struct call *c, const void *params, uint64_t len, uint64_t flags)
{
	return (int64_t)leat_fib_helpers[0].fn(&c->run, 0, (uint64_t)(uintptr_t)params, len, flags, 0);
}

static void test_helper(void **unused)
{
	struct leat_fib *fib = make_fib(0, 0);
	struct leat_fib_lookup q = test_question("10.0.0.1");
	struct call c;

	(void)unused;
	begin_call(&c, 1);
	add(fib, test_route("10.0.0.0/8", NULL, 2));
	/* no table: the packet's own port is there and does not forward */
	assert_int_equal(helper(&c, &q, 64, 0), LEAT_FIB_RET_FWD_DISABLED);
	q.ifindex = 2;
	assert_int_equal(helper(&c, &q, 64, 0), -ENODEV);
	leat_fib_attach(fib, c.env);
	assert_int_equal(helper(&c, &q, 63, 0), -EINVAL);
	assert_int_equal(helper(&c, &q, UINT64_C(0x100000000), 0), -EINVAL);
	assert_int_equal(helper(&c, &q, 64, 0x40), -EINVAL);
	assert_int_equal(helper(&c, &q, 96, UINT64_C(0xf00000000) | SKIP), LEAT_FIB_SUCCESS); /* flags are 32 bits */
	assert_int_equal(q.ifindex, 2);
	q.ifindex = 9;
	assert_int_equal(helper(&c, &q, 64, 0), -ENODEV);
	c.rxq.port = 9; /* a port that the table does not know */
	assert_int_equal(helper(&c, &q, 64, 0), LEAT_FIB_RET_FWD_DISABLED);
	leat_bpf_env_destroy(c.env);
	leat_fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_success_writes),
		cmocka_unit_test(test_on_link_by_destination),
		cmocka_unit_test(test_ipv4_by_ipv6_hop),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_mtu_limits),
		cmocka_unit_test(test_encapsulation),
		cmocka_unit_test(test_no_port),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_local_and_default),
		cmocka_unit_test(test_metric_and_tos),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_hops),
		cmocka_unit_test(test_source4),
		cmocka_unit_test(test_source6),
		cmocka_unit_test(test_add_delete),
		cmocka_unit_test(test_bad_routes),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_commit),
		cmocka_unit_test(test_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
