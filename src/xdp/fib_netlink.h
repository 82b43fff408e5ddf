/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib_netlink.h: what the kernel says of interfaces, addresses, routes and neighbours (rtnetlink(7)), read into what a
 * forwarding table takes. Pure; messages are checked in full, whoever sent them.
 */
#ifndef LEAT_XDP_FIB_NETLINK_H
#define LEAT_XDP_FIB_NETLINK_H

#include <leat/fib.h>

struct nlmsghdr;

/** Next hops of one route that are read. */
#define LEAT_FIB_HOPS_MAX 256u

/** An interface. */
struct leat_fib_link {
	uint32_t ifindex;
	uint32_t flags; /* IFF_* */
	struct leat_fib_port port; /* port.port 0: it is none */
	struct leat_fib_address *addresses; /* port.n_addresses of them */
};

/** The interfaces of a namespace. */
struct leat_fib_links {
	const struct leat_fib_mirror_port *ports; /* by name; n_ports 0: the interface's number is the port's */
	unsigned int n_ports;
	struct leat_fib_link *link;
	unsigned int n;
};

void leat_fib_links_fini(struct leat_fib_links *links);
/** The interface, or NULL. */
struct leat_fib_link *leat_fib_links_find(const struct leat_fib_links *links, uint32_t ifindex);

/* Each returns 0; 1: the message is about something else; -EBADMSG: it is broken; -ENOMEM. */

/** RTM_NEWLINK: adds the interface. */
int leat_fib_read_link(struct leat_fib_links *links, const struct nlmsghdr *message);
/** RTM_NEWADDR: adds the address to its interface, if that is known. */
int leat_fib_read_address(struct leat_fib_links *links, const struct nlmsghdr *message);
/** Whether RTM_NEWLINK or RTM_NEWADDR says what is known already. */
bool leat_fib_knows_link(const struct leat_fib_links *links, const struct nlmsghdr *message);
bool leat_fib_knows_address(const struct leat_fib_links *links, const struct nlmsghdr *message);
/** RTM_NEWROUTE, RTM_DELROUTE: the route's next hops, @n of at most LEAT_FIB_HOPS_MAX. */
int leat_fib_read_route(const struct leat_fib_links *links, const struct nlmsghdr *message,
			struct leat_fib_route *routes, unsigned int *n);
/** RTM_NEWNEIGH, RTM_DELNEIGH. */
int leat_fib_read_neighbour(const struct leat_fib_links *links, const struct nlmsghdr *message,
			    struct leat_fib_neighbour *neighbour);

#endif
