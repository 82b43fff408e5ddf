/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_fib_test.c: the section "fib": every mistake with its place, what a good one makes, and missing memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <leat/datapath.h>

#include "base/heap.h"
#include "ctl/fib.h"
#include "ctl/test_config.h"

#define PORTS "ports: { a: { type: sink }, b: { type: sink } }\n"

static void has_wrong_parts(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "fib: [a]\n", .mistakes = { { 2, 6, "fib", "must be a mapping" } } },
		{ .text = PORTS "fib: { route: [] }\n",
		  .mistakes = { { 2, 8, "fib", "unknown key 'route' (did you mean 'routes'?)" } } },
		{ .text = PORTS "fib: { routes: { to: default } }\n",
		  .mistakes = { { 2, 16, "fib.routes", "must be a list" } } },
		{ .text = PORTS "fib: { neighbours: 5 }\n", .mistakes = { { 2, 20, "fib.neighbours", "must be a list" } } },
		{ .text = PORTS "fib: { ports: [a] }\n",
		  .mistakes = { { 2, 15, "fib.ports", "must be a mapping of port names" } } },
		{ .text = PORTS "fib: { routes: [default], neighbours: [x] }\n",
		  .mistakes = { { 2, 17, "fib.routes", "must be a mapping, like { to:" },
				{ 2, 40, "fib.neighbours", "must be a mapping, like { address:" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void has_wrong_ports(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "fib: { ports: { c: ~ } }\n",
		  .mistakes = { { 2, 17, "fib.ports", "unknown port 'c'" } } },
		{ .text = PORTS "fib: { ports: { a: 10.0.0.1/24 } }\n",
		  .mistakes = { { 2, 20, "fib.ports.a", "must be a mapping, like { addresses:" } } },
		{ .text = PORTS "fib: { ports: { a: { forwarding: maybe, mtu: 9, mac: 'ff:ff:ff:ff:ff:ff', x: 1 } } }\n",
		  .mistakes = { { 2, 34, "fib.ports.a.forwarding", "" },
				{ 2, 46, "fib.ports.a.mtu", "68" },
				{ 2, 54, "fib.ports.a.mac", "" },
				{ 2, 75, "fib.ports.a", "unknown key 'x'" } } },
		{ .text = PORTS "fib:\n  ports:\n    a:\n      addresses:\n"
				"      - 10.0.0.1/33\n      - 10.0.0/8\n      - fd00::1/129\n      - 0.0.0.0/8\n"
				"      - 224.0.0.1/4\n      - ff02::1/64\n      - 10.0.0.1/\n      - 10.0.0.1/8x\n"
				"      - [10.0.0.1]\n",
		  .mistakes = { { 6, 9, "fib.ports.a.addresses", "'10.0.0.1/33' is not an address with its prefix" },
				{ 7, 9, "fib.ports.a.addresses", "'10.0.0/8' is not" },
				{ 8, 9, "fib.ports.a.addresses", "'fd00::1/129' is not" },
				{ 9, 9, "fib.ports.a.addresses", "'0.0.0.0/8' is not the address of a host" },
				{ 10, 9, "fib.ports.a.addresses", "of a host" },
				{ 11, 9, "fib.ports.a.addresses", "of a host" },
				{ 12, 9, "fib.ports.a.addresses", "is not" },
				{ 13, 9, "fib.ports.a.addresses", "is not" },
				{ 14, 9, "fib.ports.a.addresses", "must be a single value" } } },
		{ .text = PORTS "fib: { ports: { a: { addresses: { x: 1 } } } }\n",
		  .mistakes = { { 2, 33, "fib.ports.a.addresses", "must be a list of addresses" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void has_wrong_routes(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "fib:\n  routes:\n"
				"  - { via: 10.0.0.1, port: a }\n  - { to: 10.0.0.1/8, port: a }\n"
				"  - { to: tea, port: a }\n  - { to: fd00::/200, port: a }\n",
		  .mistakes = { { 4, 5, "fib.routes", "'to' is missing" },
				{ 5, 11, "fib.routes.to", "'10.0.0.1/8' has bits set behind the first 8" },
				{ 6, 11, "fib.routes.to", "'tea' is not a prefix" },
				{ 7, 11, "fib.routes.to", "'fd00::/200' is not a prefix" } } },
		{ .text = PORTS "fib:\n  routes:\n"
				"  - { to: default }\n  - { to: default, via: 10.0.0.9 }\n"
				"  - { to: default, via: 10.0.0, port: a }\n  - { to: 'fd00::/8', via: 10.0.0.1, port: a }\n"
				"  - { to: default, port: c }\n  - { to: default, type: blackhole, via: 10.0.0.1 }\n"
				"  - { to: default, type: prohibit, port: a }\n  - { to: default, type: local }\n",
		  .mistakes = { { 4, 5, "fib.routes", "'via' or 'port' is missing" },
				{ 5, 25, "fib.routes.via", "no port of the section has an address" },
				{ 6, 25, "fib.routes.via", "'10.0.0' is not an address" },
				{ 7, 28, "fib.routes.via", "cannot go via an IPv4 address" },
				{ 8, 26, "fib.routes.port", "unknown port 'c'" },
				{ 9, 42, "fib.routes.via", "a route of type blackhole leads nowhere" },
				{ 10, 42, "fib.routes.port", "a route of type prohibit leads nowhere" },
				{ 11, 26, "fib.routes.type", "" } } },
		{ .text = PORTS "fib:\n  routes:\n  - { to: default, port: a, src: 'fd00::1' }\n"
				"  - { to: 10.0.0.0/8, port: a }\n  - { to: 10.0.0.0/8, port: b }\n"
				"  - { to: 11.0.0.0/8, port: b, table: 0 }\n",
		  .mistakes = { { 4, 34, "fib.routes.src", "is not of the route's family" },
				{ 6, 5, "fib.routes", "line 5 has a route to the same prefix with the same metric" },
				{ 7, 39, "fib.routes.table", "" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void has_wrong_neighbours(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "fib:\n  neighbours:\n  - { address: 10.0.0.2, port: a }\n"
				"  - { address: 10.0.0.2/24, port: a, mac: '02:00:00:00:00:01' }\n"
				"  - { address: 10.0.0.3, port: c, mac: '00:00:00:00:00:00' }\n"
				"  - { address: 10.0.0.4, port: a, mac: '02:00:00:00:00:01' }\n"
				"  - { address: 10.0.0.4, port: a, mac: '02:00:00:00:00:02' }\n",
		  .mistakes = { { 4, 5, "fib.neighbours", "'mac' is missing" },
				{ 5, 16, "fib.neighbours.address", "'10.0.0.2/24' is not an address" },
				{ 6, 32, "fib.neighbours.port", "unknown port 'c'" },
				{ 6, 40, "fib.neighbours.mac", "" },
				{ 8, 5, "fib.neighbours", "line 7 has the same neighbour" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void has_wrong_mirror(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "fib: { mirror: eth0 }\n", .mistakes = { { 2, 16, "fib.mirror", "must be a mapping" } } },
		{ .text = PORTS "fib: { mirror: { netns: x } }\n",
		  .mistakes = { { 2, 8, "fib.mirror", "'ports' is missing" } } },
		{ .text = PORTS "fib: { mirror: { ports: { a: eth0, b: eth0 }, table: 1 } }\n",
		  .mistakes = { { 2, 39, "fib.mirror.ports.b", "interface 'eth0' is two ports" },
				{ 2, 47, "fib.mirror", "unknown key 'table'" } } },
		{ .text = PORTS "fib: { mirror: { ports: { c: eth0, b: 'a name that is far too long' } } }\n",
		  .mistakes = { { 2, 27, "fib.mirror.ports", "unknown port 'c'" },
				{ 2, 39, "fib.mirror.ports.b", "" } } },
		{ .text = PORTS "fib: { routes: [], mirror: { ports: { a: eth0 } } }\n",
		  .mistakes = { { 2, 8, "fib.routes", "cannot stand beside 'mirror'" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

/* ---- a good one ---- */

static const char good[] =
	"ports: { a: { type: sink }, b: { type: sink }, c: { type: sink } }\n"
	"fib:\n"
	"  ports:\n"
	"    a: { addresses: [10.0.0.1/24, 'fd00:a::1/64'], mtu: 1400, mac: '02:00:00:00:00:0a' }\n"
	"    b: { addresses: 10.1.0.1/16 }\n"
	"    c: { forwarding: no }\n"
	"  routes:\n"
	"  - { to: default, via: 10.0.0.2 }\n"
	"  - { to: default, via: 'fd00:a::2' }\n"
	"  - { to: 20.0.0.0/8, via: 10.1.0.9, metric: 7, mtu: 1300, src: 10.0.0.1 }\n"
	"  - { to: 20.0.0.0/8, via: 'fd00:a::2', metric: 8 }\n"
	"  - { to: 30.0.0.0/8, type: blackhole }\n"
	"  - { to: 40.0.0.0/8, port: b, table: 77 }\n"
	"  neighbours:\n"
	"  - { address: 10.0.0.2, port: a, mac: '02:00:00:00:00:02' }\n"
	"  - { address: 'fd00:a::2', port: a, mac: '02:00:00:00:00:03' }\n"
	"  - { address: 10.1.0.9, port: b, mac: '02:00:00:00:00:09' }\n";

static int load(const char *text, struct leat_fib **fib)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_config *config = NULL;
	int rc = diag ? leat_config_parse(text, strlen(text), "t.yaml", diag, &config) : -ENOMEM;

	if (!rc)
		rc = leat_fib_create(NULL, fib);
	if (!rc)
		rc = leat_fib_fill(config, NULL, *fib, diag);
	if (rc && rc != -ENOMEM)
		print_found(text, diag);
	if (rc) {
		leat_fib_destroy(*fib);
		*fib = NULL;
	}
	leat_config_free(config);
	leat_diag_destroy(diag);
	return rc;
}

static int ask(struct leat_fib *fib, const char *dst, uint32_t port, uint32_t flags, struct leat_fib_lookup *q)
{
	memset(q, 0, sizeof(*q));
	q->family = strchr(dst, ':') ? AF_INET6 : AF_INET;
	q->ifindex = port;
	assert_int_equal(inet_pton(q->family, dst, q->dst), 1);
	return leat_fib_lookup(fib, q, flags);
}

static void makes_a_table(void **state)
{
	const uint8_t smac_a[6] = { 2, 0, 0, 0, 0, 10 }, smac_b[6] = { 2, 0, 0, 0, 0, 2 };
	const uint8_t src[4] = { 10, 0, 0, 1 };
	struct leat_fib *fib = NULL;
	struct leat_fib_lookup q;

	(void)state;
	assert_int_equal(load(good, &fib), 0);
	assert_int_equal(ask(fib, "1.2.3.4", 2, 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 1);
	assert_int_equal(q.tot_len, 1400);
	assert_int_equal(q.dmac[5], 2);
	assert_memory_equal(q.smac, smac_a, 6);
	assert_int_equal(ask(fib, "2001::1", 1, 0, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.dmac[5], 3);
	assert_int_equal(ask(fib, "20.0.0.1", 1, LEAT_FIB_LOOKUP_SRC, &q), LEAT_FIB_SUCCESS);
	assert_int_equal(q.ifindex, 2);
	assert_int_equal(q.tot_len, 1300);
	assert_int_equal(q.tos, 7);
	assert_memory_equal(q.smac, smac_b, 6);
	assert_memory_equal(q.src, src, 4);
	assert_int_equal(ask(fib, "30.0.0.1", 1, 0, &q), LEAT_FIB_RET_BLACKHOLE);
	assert_int_equal(ask(fib, "30.0.0.1", 3, 0, &q), LEAT_FIB_RET_FWD_DISABLED);
	/* what addresses bring */
	assert_int_equal(ask(fib, "10.1.77.1", 1, 0, &q), LEAT_FIB_RET_NO_NEIGH);
	assert_int_equal(q.ifindex, 2);
	assert_int_equal(ask(fib, "10.0.0.1", 1, 0, &q), LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(ask(fib, "10.0.0.255", 1, 0, &q), LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(ask(fib, "fd00:a::1", 1, 0, &q), LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(ask(fib, "fd00:a::", 1, 0, &q), LEAT_FIB_RET_NOT_FWDED);
	assert_int_equal(ask(fib, "fd00:a::7", 1, LEAT_FIB_LOOKUP_SKIP_NEIGH | LEAT_FIB_LOOKUP_SRC, &q),
			 LEAT_FIB_SUCCESS);
	assert_int_equal(q.tos, 256);
	leat_fib_destroy(fib);
}

static void is_empty(void **state)
{
	struct leat_fib *fib = NULL;
	struct leat_fib_lookup q;

	(void)state;
	assert_int_equal(load(PORTS "fib:\n", &fib), 0);
	assert_int_equal(ask(fib, "1.2.3.4", 1, 0, &q), -ENODEV);
	leat_fib_destroy(fib);
}

/** The datapath's own ports give what the section does not say. */
static void takes_what_ports_have(void **state)
{
	static const char text[] =
		"ports: { a: { type: veth, peer: b, mtu: 2000 }, b: { type: veth, peer: a }, c: { type: sink } }\n"
		"fib: { ports: { a: { addresses: [10.0.0.1/24] }, b: ~ } }\n";
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp = NULL;
	struct leat_fib_lookup q;
	unsigned int i;

	(void)state;
	assert_int_equal(leat_datapath_load_text(text, strlen(text), "t.yaml", &opts, diag, &dp), 0);
	assert_int_equal(ask(leat_datapath_fib(dp), "10.0.0.2", 2, 0, &q), LEAT_FIB_RET_FWD_DISABLED);
	for (i = 0; i < 2; i++) {
		assert_int_equal(leat_datapath_start(dp, diag), 0);
		assert_int_equal(ask(leat_datapath_fib(dp), "10.0.0.2", 2, LEAT_FIB_LOOKUP_SKIP_NEIGH, &q), LEAT_FIB_SUCCESS);
		assert_int_equal(q.tot_len, 2000);
		assert_int_equal(ask(leat_datapath_fib(dp), "10.0.0.2", 3, 0, &q), LEAT_FIB_RET_FWD_DISABLED);
		assert_int_equal(ask(leat_datapath_fib(dp), "10.0.0.2", 4, 0, &q), -ENODEV);
		leat_datapath_stop(dp);
	}
	leat_datapath_destroy(dp);
	leat_diag_destroy(diag);
}

static void has_a_route_that_an_address_brings(void **state)
{
	static const char text[] = "ports: { a: { type: sink } }\n"
				   "fib:\n  ports: { a: { addresses: [10.0.0.1/24] } }\n"
				   "  routes:\n  - { to: 10.0.0.0/24, port: a }\n";
	struct leat_diag *diag = leat_diag_create();
	struct leat_config *config = NULL;
	struct leat_fib *fib = NULL;

	(void)state;
	assert_int_equal(leat_config_parse(text, strlen(text), "t.yaml", diag, &config), 0);
	assert_int_equal(leat_fib_create(NULL, &fib), 0);
	assert_int_equal(leat_fib_fill(config, NULL, fib, diag), -EEXIST);
	assert_int_equal(leat_diag_get(diag, 0)->line, 5);
	leat_fib_destroy(fib);
	leat_config_free(config);
	leat_diag_destroy(diag);
}

static void lacks_memory(void **state)
{
	struct leat_fib *fib = NULL;
	unsigned long nth;
	bool reached = true;
	int rc;

	(void)state;
	for (nth = 1; reached; nth++) {
		leat_heap_fail_nth(nth);
		rc = load(good, &fib);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		assert_true(rc == -ENOMEM || (!rc && fib));
		leat_fib_destroy(fib);
		fib = NULL;
	}
	assert_true(nth > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_wrong_parts),
		cmocka_unit_test(has_wrong_ports),
		cmocka_unit_test(has_wrong_routes),
		cmocka_unit_test(has_wrong_neighbours),
		cmocka_unit_test(has_wrong_mirror),
		cmocka_unit_test(makes_a_table),
		cmocka_unit_test(is_empty),
		cmocka_unit_test(takes_what_ports_have),
		cmocka_unit_test(has_a_route_that_an_address_brings),
		cmocka_unit_test(lacks_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
