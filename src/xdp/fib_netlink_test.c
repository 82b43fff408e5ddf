/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of reading rtnetlink messages: what the kernel says, and what nobody should: cut short, and drawn bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "xdp/fib_netlink.h"
#include "xdp/test_fib.h"

#define SIZE 1024u

static const struct leat_fib_mirror_port names[] = { { "eth1", 5 }, { "eth2", 6 } };

/** A message with the family's own struct, in @bytes. */
static struct nlmsghdr *begin(uint8_t *bytes, uint16_t type, const void *head, size_t size)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);

	message->nlmsg_type = type;
	memcpy(mnl_nlmsg_put_extra_header(message, size), head, size);
	return message;
}

static void put_address(struct nlmsghdr *message, uint16_t type, const char *text)
{
	uint8_t address[16];

	test_prefix(text, address);
	mnl_attr_put(message, type, test_family(text) == AF_INET ? 4 : 16, address);
}

static struct nlmsghdr *link_message(uint8_t *bytes, int index, const char *name)
{
	const struct ifinfomsg info = { .ifi_index = index, .ifi_flags = IFF_UP | IFF_POINTOPOINT };
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };
	const uint32_t conf4[2] = { 1, 0 }, conf6[3] = { 1, 64, 1380 };
	struct nlmsghdr *message = begin(bytes, RTM_NEWLINK, &info, sizeof(info));
	struct nlattr *spec, *family;

	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	mnl_attr_put_u32(message, IFLA_MTU, 1400);
	mnl_attr_put(message, IFLA_ADDRESS, sizeof(mac), mac);
	spec = mnl_attr_nest_start(message, IFLA_AF_SPEC);
	family = mnl_attr_nest_start(message, AF_INET);
	mnl_attr_put(message, IFLA_INET_CONF, sizeof(conf4), conf4);
	mnl_attr_nest_end(message, family);
	family = mnl_attr_nest_start(message, AF_INET6);
	mnl_attr_put(message, IFLA_INET6_CONF, sizeof(conf6), conf6);
	mnl_attr_nest_end(message, family);
	mnl_attr_nest_end(message, spec);
	return message;
}

static struct nlmsghdr *address_message(uint8_t *bytes)
{
	const struct ifaddrmsg info = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = 11,
					.ifa_flags = IFA_F_SECONDARY };
	struct nlmsghdr *message = begin(bytes, RTM_NEWADDR, &info, sizeof(info));

	put_address(message, IFA_ADDRESS, "10.0.0.2");
	put_address(message, IFA_LOCAL, "10.0.0.1");
	return message;
}

static struct nlmsghdr *route_message(uint8_t *bytes)
{
	const struct rtmsg info = { .rtm_family = AF_INET, .rtm_dst_len = 16, .rtm_tos = 8, .rtm_table = RT_TABLE_COMPAT,
				    .rtm_type = RTN_UNICAST, .rtm_scope = RT_SCOPE_LINK };
	struct nlmsghdr *message = begin(bytes, RTM_NEWROUTE, &info, sizeof(info));
	struct nlattr *metrics;

	put_address(message, RTA_DST, "10.9.0.0");
	put_address(message, RTA_GATEWAY, "10.0.0.9");
	put_address(message, RTA_PREFSRC, "10.0.0.1");
	mnl_attr_put_u32(message, RTA_OIF, 11);
	mnl_attr_put_u32(message, RTA_TABLE, 1000);
	mnl_attr_put_u32(message, RTA_PRIORITY, 33);
	metrics = mnl_attr_nest_start(message, RTA_METRICS);
	mnl_attr_put_u32(message, RTAX_LOCK, 1u << RTAX_MTU);
	mnl_attr_put_u32(message, RTAX_MTU, 1290);
	mnl_attr_nest_end(message, metrics);
	return message;
}

/** Two next hops, the second by IPv6, and one that is dead. */
static struct nlmsghdr *hops_message(uint8_t *bytes)
{
	const struct rtmsg info = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST };
	struct nlmsghdr *message = begin(bytes, RTM_NEWROUTE, &info, sizeof(info));
	struct nlattr *list = mnl_attr_nest_start(message, RTA_MULTIPATH);
	struct rtnexthop hop = { .rtnh_len = sizeof(hop) + 8, .rtnh_hops = 2, .rtnh_ifindex = 11 };
	uint8_t via[18] = { AF_INET6, 0 };
	uint8_t *at;

	at = mnl_nlmsg_put_extra_header(message, sizeof(hop));
	memcpy(at, &hop, sizeof(hop));
	put_address(message, RTA_GATEWAY, "10.0.0.9");
	hop.rtnh_len = sizeof(hop);
	hop.rtnh_flags = RTNH_F_DEAD;
	memcpy(mnl_nlmsg_put_extra_header(message, sizeof(hop)), &hop, sizeof(hop));
	hop = (struct rtnexthop){ .rtnh_len = sizeof(hop) + 24, .rtnh_ifindex = 12 };
	memcpy(mnl_nlmsg_put_extra_header(message, sizeof(hop)), &hop, sizeof(hop));
	test_prefix("fd00::9", via + 2);
	mnl_attr_put(message, RTA_VIA, sizeof(via), via);
	mnl_attr_nest_end(message, list);
	return message;
}

static struct nlmsghdr *neighbour_message(uint8_t *bytes, uint16_t state)
{
	const struct ndmsg info = { .ndm_family = AF_INET6, .ndm_ifindex = 12, .ndm_state = state };
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct nlmsghdr *message = begin(bytes, RTM_NEWNEIGH, &info, sizeof(info));

	put_address(message, NDA_DST, "fd00::9");
	mnl_attr_put(message, NDA_LLADDR, sizeof(mac), mac);
	return message;
}

/** Interfaces 11 (port 5), 12 (port 6) and 13 (none). */
static void make_links(struct leat_fib_links *links)
{
	uint8_t bytes[SIZE] = { 0 };

	*links = (struct leat_fib_links){ .ports = names, .n_ports = 2 };
	assert_int_equal(leat_fib_read_link(links, link_message(bytes, 11, "eth1")), 0);
	assert_int_equal(leat_fib_read_link(links, link_message(bytes, 12, "eth2")), 0);
	assert_int_equal(leat_fib_read_link(links, link_message(bytes, 13, "eth3")), 0);
}

/* ---- what is read ---- */

static void test_link(void **unused)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };
	uint8_t bytes[SIZE] = { 0 };
	struct leat_fib_links links;

	(void)unused;
	make_links(&links);
	assert_int_equal(leat_fib_read_link(&links, link_message(bytes, 11, "eth1")), 1); /* again */
	assert_true(leat_fib_knows_link(&links, link_message(bytes, 11, "eth1")));
	assert_false(leat_fib_knows_link(&links, link_message(bytes, 11, "eth2")));
	assert_false(leat_fib_knows_link(&links, link_message(bytes, 14, "eth1")));
	assert_int_equal(leat_fib_read_link(&links, link_message(bytes, 0, "eth1")), -EBADMSG);
	assert_int_equal(links.n, 3);
	assert_int_equal(links.link[0].port.port, 5);
	assert_int_equal(links.link[2].port.port, 0);
	assert_int_equal(links.link[0].port.mtu, 1400);
	assert_int_equal(links.link[0].port.mtu6, 1380);
	assert_int_equal(links.link[0].port.flags, LEAT_FIB_FORWARD4 | LEAT_FIB_FORWARD6 | LEAT_FIB_ONE_NEIGHBOUR);
	assert_memory_equal(links.link[0].port.mac, mac, sizeof(mac));
	leat_fib_links_fini(&links);
	links.n_ports = 0; /* every interface is a port */
	assert_int_equal(leat_fib_read_link(&links, link_message(bytes, 13, "eth3")), 0);
	assert_int_equal(leat_fib_read_link(&links, link_message(bytes, 5000, "eth4")), 0);
	assert_int_equal(links.link[0].port.port, 13);
	assert_int_equal(links.link[1].port.port, 0);
	leat_fib_links_fini(&links);
}

static void test_address(void **unused)
{
	const uint8_t own[4] = { 10, 0, 0, 1 };
	uint8_t bytes[SIZE] = { 0 };
	struct leat_fib_links links;
	unsigned int i;

	(void)unused;
	make_links(&links);
	assert_false(leat_fib_knows_address(&links, address_message(bytes)));
	for (i = 0; i < 3; i++)
		assert_int_equal(leat_fib_read_address(&links, address_message(bytes)), 0);
	assert_true(leat_fib_knows_address(&links, address_message(bytes)));
	assert_int_equal(links.link[0].port.n_addresses, 3);
	assert_int_equal(links.link[1].port.n_addresses, 0);
	for (i = 0; i < 3; i++) {
		assert_memory_equal(links.link[0].port.addresses[i].address, own, sizeof(own));
		assert_int_equal(links.link[0].port.addresses[i].len, 24);
		assert_int_equal(links.link[0].port.addresses[i].flags, LEAT_FIB_SECONDARY);
	}
	leat_fib_links_fini(&links);
}

static void test_one_route(void **unused)
{
	struct leat_fib_route expected = test_route("10.9.0.0/16", "10.0.0.9", 5), got[LEAT_FIB_HOPS_MAX];
	uint8_t bytes[SIZE] = { 0 };
	struct leat_fib_links links;
	unsigned int n;

	(void)unused;
	make_links(&links);
	expected.tos = 8;
	expected.scope = RT_SCOPE_LINK;
	expected.table = 1000;
	expected.metric = 33;
	expected.mtu = 1290;
	expected.flags = LEAT_FIB_HAS_SRC;
	test_prefix("10.0.0.1", expected.src);
	assert_int_equal(leat_fib_read_route(&links, route_message(bytes), got, &n), 0);
	assert_int_equal(n, 1);
	assert_memory_equal(&got[0], &expected, sizeof(expected));
	leat_fib_links_fini(&links);
}

static void test_hops(void **unused)
{
	struct leat_fib_route got[LEAT_FIB_HOPS_MAX], via6 = test_route("0.0.0.0/0", "fd00::9", 6);
	uint8_t bytes[SIZE] = { 0 };
	struct leat_fib_links links;
	unsigned int n;

	(void)unused;
	make_links(&links);
	assert_int_equal(leat_fib_read_route(&links, hops_message(bytes), got, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(got[0].port, 5);
	assert_int_equal(got[0].weight, 3);
	assert_int_equal(got[0].via_family, AF_INET);
	assert_int_equal(got[1].port, 6);
	assert_int_equal(got[1].weight, 1);
	assert_int_equal(got[1].via_family, AF_INET6);
	assert_memory_equal(got[1].via, via6.via, 16);
	assert_int_equal(got[1].flags, LEAT_FIB_HOP);
	leat_fib_links_fini(&links);
}

static void test_one_neighbour(void **unused)
{
	struct leat_fib_neighbour got, expected = test_neighbour("fd00::9", 6, 9);
	uint8_t bytes[SIZE] = { 0 };
	struct leat_fib_links links;

	(void)unused;
	make_links(&links);
	assert_int_equal(leat_fib_read_neighbour(&links, neighbour_message(bytes, NUD_STALE), &got), 0);
	assert_true(got.valid);
	assert_int_equal(got.port, 6);
	assert_memory_equal(got.address, expected.address, 16);
	assert_memory_equal(got.mac, expected.mac, 6);
	assert_int_equal(leat_fib_read_neighbour(&links, neighbour_message(bytes, NUD_FAILED), &got), 0);
	assert_false(got.valid);
	leat_fib_links_fini(&links);
}

/* ---- what nobody should say ---- */

/** Reads @len bytes as every kind of message; they lie at the end of their memory. */
static void read_anything(struct leat_fib_links *links, const uint8_t *bytes, size_t len)
{
	static struct leat_fib_route routes[LEAT_FIB_HOPS_MAX];
	struct leat_fib_neighbour neighbour;
	uint8_t *exact = malloc(len);
	struct nlmsghdr *message = (struct nlmsghdr *)(void *)exact;
	unsigned int n, i;

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	message->nlmsg_len = (uint32_t)len;
	leat_fib_read_link(links, message);
	leat_fib_read_address(links, message);
	leat_fib_knows_link(links, message);
	leat_fib_knows_address(links, message);
	if (!leat_fib_read_route(links, message, routes, &n)) {
		assert_in_range(n, 1, LEAT_FIB_HOPS_MAX);
		for (i = 0; i < n; i++)
			assert_true(routes[i].len <= 128 && routes[i].port < LEAT_PORTS_MAX);
	}
	leat_fib_read_neighbour(links, message, &neighbour);
	free(exact);
}

static struct nlmsghdr *any_message(uint8_t *bytes, unsigned int kind)
{
	memset(bytes, 0, SIZE);
	switch (kind) {
	case 0:
		return link_message(bytes, 14, "eth1");
	case 1:
		return address_message(bytes);
	case 2:
		return route_message(bytes);
	case 3:
		return hops_message(bytes);
	default:
		return neighbour_message(bytes, NUD_REACHABLE);
	}
}

static void test_cut_short(void **unused)
{
	uint8_t bytes[SIZE];
	struct leat_fib_links links;
	unsigned int kind;
	size_t len;

	(void)unused;
	for (kind = 0; kind < 5; kind++) {
		make_links(&links);
		for (len = any_message(bytes, kind)->nlmsg_len; len >= MNL_NLMSG_HDRLEN; len--)
			read_anything(&links, bytes, len);
		leat_fib_links_fini(&links);
	}
}

static void test_drawn_bytes(void **unused)
{
	uint64_t seed = 99;
	uint8_t bytes[SIZE];
	struct leat_fib_links links;
	unsigned int i, k;
	size_t len;

	(void)unused;
	make_links(&links);
	for (i = 0; i < 20000; i++) {
		len = any_message(bytes, i % 5)->nlmsg_len;
		for (k = 0; k < 1 + i % 7; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			bytes[MNL_NLMSG_HDRLEN + (seed >> 33) % (len - MNL_NLMSG_HDRLEN)] = (uint8_t)(seed >> 24);
		}
		read_anything(&links, bytes, len);
		if (links.n > 64) {
			leat_fib_links_fini(&links);
			make_links(&links);
		}
	}
	leat_fib_links_fini(&links);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),	cmocka_unit_test(test_address),	  cmocka_unit_test(test_one_route),
		cmocka_unit_test(test_hops),	cmocka_unit_test(test_one_neighbour), cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_drawn_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
