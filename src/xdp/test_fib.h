/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fib.h: for unit tests: routes, neighbours, ports and questions from text. Include after <cmocka.h>. */
#ifndef LEAT_XDP_TEST_FIB_H
#define LEAT_XDP_TEST_FIB_H

#include <arpa/inet.h>
#include <errno.h>
#include <leat/fib.h>
#include <stdio.h>
#include <string.h>

static inline uint8_t test_family(const char *text)
{
	return strchr(text, ':') ? AF_INET6 : AF_INET;
}

/** Writes the address, and returns the length behind its slash, or all bits. */
static inline uint8_t test_prefix(const char *text, uint8_t address[16])
{
	const char *slash = strchr(text, '/');
	char own[64];

	snprintf(own, sizeof(own), "%.*s", slash ? (int)(slash - text) : (int)strlen(text), text);
	assert_int_equal(inet_pton(test_family(text), own, address), 1);
	return slash ? (uint8_t)atoi(slash + 1) : test_family(text) == AF_INET ? 32 : 128;
}

/** A unicast route; @via NULL: on link. */
static inline struct leat_fib_route test_route(const char *prefix, const char *via, uint32_t port)
{
	struct leat_fib_route route = { .family = test_family(prefix), .type = LEAT_FIB_UNICAST, .port = port };

	route.len = test_prefix(prefix, route.dst);
	if (via) {
		route.via_family = test_family(via);
		test_prefix(via, route.via);
	}
	return route;
}

static inline struct leat_fib_neighbour test_neighbour(const char *address, uint32_t port, uint8_t last)
{
	struct leat_fib_neighbour neighbour = { .family = test_family(address), .port = port, .valid = true,
						.mac = { 2, 0, 0, 0, 0, last } };

	test_prefix(address, neighbour.address);
	return neighbour;
}

/** Port @port forwards, has MTU 1500 and the MAC address 02:00:00:00:01:PORT. */
static inline struct leat_fib_port test_fib_port(uint32_t port)
{
	return (struct leat_fib_port){ .port = port, .flags = LEAT_FIB_FORWARD4 | LEAT_FIB_FORWARD6, .mtu = 1500,
				       .mac = { 2, 0, 0, 0, 1, (uint8_t)port } };
}

/** A packet of 60 bytes from port 1; what answers write begins as 0xee. */
static inline struct leat_fib_lookup test_question(const char *dst)
{
	struct leat_fib_lookup q;

	memset(&q, 0xee, sizeof(q));
	q.family = test_family(dst);
	q.tot_len = 60;
	q.ifindex = 1;
	q.tos = 0;
	q.tbid = 0;
	memset(q.src, 0, sizeof(q.src));
	memset(q.dst, 0, sizeof(q.dst));
	test_prefix(dst, q.dst);
	return q;
}

#endif
