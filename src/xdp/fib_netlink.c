/* SPDX-License-Identifier: BSD-3-Clause */
/* fib_netlink.c: rtnetlink messages read; see fib_netlink.h. Any thread. */
#include "xdp/fib_netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#define ATTRS_MAX 128u
#define STATES_VALID (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)
#define ADDRESSES_MAX 4096u

/* ---- attributes ---- */

/** Attributes by their type; NULL where there is none. */
struct attrs {
	const struct nlattr *at[ATTRS_MAX];
};

/** Of @len bytes at @bytes. What does not fit together ends the list. */
static void read_attrs(const void *bytes, size_t len, struct attrs *attrs)
{
	const struct nlattr *attr = bytes;
	uint16_t type;

	memset(attrs, 0, sizeof(*attrs));
	for (; len >= sizeof(*attr) && len <= (size_t)INT32_MAX && mnl_attr_ok(attr, (int)len);
	     attr = (const struct nlattr *)(const void *)((const uint8_t *)attr + MNL_ALIGN(attr->nla_len))) {
		type = mnl_attr_get_type(attr);
		if (type < ATTRS_MAX)
			attrs->at[type] = attr;
		if ((size_t)MNL_ALIGN(attr->nla_len) >= len)
			break;
		len -= MNL_ALIGN(attr->nla_len);
	}
}

/** Those behind a message's own struct of @head bytes. False: it is too short. */
static bool message_attrs(const struct nlmsghdr *message, size_t head, struct attrs *attrs)
{
	size_t len = message->nlmsg_len;

	if (len < MNL_NLMSG_HDRLEN + MNL_ALIGN(head))
		return false;
	read_attrs(mnl_nlmsg_get_payload_offset(message, head), len - MNL_NLMSG_HDRLEN - MNL_ALIGN(head), attrs);
	return true;
}

/** The bytes of an attribute, if there are @size at least. */
static const void *bytes_of(const struct attrs *attrs, unsigned int type, size_t size)
{
	const struct nlattr *attr = attrs->at[type];

	return attr && mnl_attr_get_payload_len(attr) >= size ? mnl_attr_get_payload(attr) : NULL;
}

static uint32_t number(const struct attrs *attrs, unsigned int type, uint32_t otherwise)
{
	const void *bytes = bytes_of(attrs, type, sizeof(otherwise));

	if (bytes)
		memcpy(&otherwise, bytes, sizeof(otherwise));
	return otherwise;
}

static void nested(const struct attrs *attrs, unsigned int type, struct attrs *inner)
{
	const struct nlattr *attr = attrs->at[type];

	read_attrs(attr ? mnl_attr_get_payload(attr) : NULL, attr ? mnl_attr_get_payload_len(attr) : 0, inner);
}

/** The @idx-th number of an array of them; 0 when it ends before. */
static uint32_t element(const struct attrs *attrs, unsigned int type, unsigned int idx)
{
	const uint8_t *bytes = bytes_of(attrs, type, (idx + 1) * sizeof(uint32_t));
	uint32_t value = 0;

	if (bytes)
		memcpy(&value, bytes + idx * sizeof(value), sizeof(value));
	return value;
}

static size_t address_size(uint8_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

static bool copy_address(const struct attrs *attrs, unsigned int type, uint8_t family, uint8_t *address)
{
	const void *bytes = bytes_of(attrs, type, address_size(family));

	if (bytes)
		memcpy(address, bytes, address_size(family));
	return bytes;
}

/* ---- interfaces ---- */

void leat_fib_links_fini(struct leat_fib_links *links)
{
	unsigned int i;

	for (i = 0; i < links->n; i++)
		leat_heap_free(links->link[i].addresses);
	leat_heap_free(links->link);
	links->link = NULL;
	links->n = 0;
}

struct leat_fib_link *leat_fib_links_find(const struct leat_fib_links *links, uint32_t ifindex)
{
	unsigned int i;

	for (i = 0; i < links->n; i++)
		if (links->link[i].ifindex == ifindex)
			return &links->link[i];
	return NULL;
}

/** The port that an interface is, or 0. */
static uint32_t port_of(const struct leat_fib_links *links, uint32_t ifindex)
{
	const struct leat_fib_link *link = leat_fib_links_find(links, ifindex);

	return link ? link->port.port : 0;
}

static uint32_t port_by_name(const struct leat_fib_links *links, uint32_t ifindex, const char *name)
{
	unsigned int i;

	if (!links->n_ports)
		return ifindex < LEAT_PORTS_MAX ? ifindex : 0;
	for (i = 0; i < links->n_ports; i++)
		if (!strcmp(links->ports[i].ifname, name))
			return links->ports[i].port;
	return 0;
}

/** Makes room for one more of @size bytes in an array of @n, which doubles. */
static int grow(void **array, unsigned int n, size_t size)
{
	void *more;

	if (n & (n - 1)) /* full at 0, 1, 2, 4, 8... */
		return 0;
	more = leat_heap_zalloc((n ? 2 * (size_t)n : 1) * size);
	if (!more)
		return -ENOMEM;
	if (n)
		memcpy(more, *array, n * size);
	leat_heap_free(*array);
	*array = more;
	return 0;
}

/** Whether it forwards, and IPv6's own MTU: what the kernel keeps per interface and family. */
static void read_families(const struct attrs *attrs, struct leat_fib_port *port)
{
	struct attrs families, conf;

	nested(attrs, IFLA_AF_SPEC, &families);
	nested(&families, AF_INET, &conf);
	if (element(&conf, IFLA_INET_CONF, IPV4_DEVCONF_FORWARDING - 1))
		port->flags |= LEAT_FIB_FORWARD4;
	nested(&families, AF_INET6, &conf);
	if (element(&conf, IFLA_INET6_CONF, DEVCONF_FORWARDING))
		port->flags |= LEAT_FIB_FORWARD6;
	if (element(&conf, IFLA_INET6_CONF, DEVCONF_USE_OIF_ADDRS_ONLY))
		port->flags |= LEAT_FIB_OWN_ADDRESSES;
	port->mtu6 = element(&conf, IFLA_INET6_CONF, DEVCONF_MTU6);
}

/** The name of an interface, cut to what a name can be. */
static void read_name(const struct attrs *attrs, char name[IF_NAMESIZE])
{
	const struct nlattr *attr = attrs->at[IFLA_IFNAME];
	size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

	memset(name, 0, IF_NAMESIZE);
	if (attr)
		memcpy(name, mnl_attr_get_payload(attr), len < IF_NAMESIZE ? len : IF_NAMESIZE - 1);
}

static int parse_link(const struct leat_fib_links *links, const struct nlmsghdr *message, struct leat_fib_link *link)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	char name[IF_NAMESIZE];
	struct attrs attrs;
	const void *mac;

	if (!message_attrs(message, sizeof(*info), &attrs) || info->ifi_index <= 0)
		return -EBADMSG;
	if (info->ifi_family != AF_UNSPEC)
		return 1;
	memset(link, 0, sizeof(*link));
	link->ifindex = (uint32_t)info->ifi_index;
	link->flags = info->ifi_flags;
	read_name(&attrs, name);
	link->port.port = port_by_name(links, link->ifindex, name);
	link->port.mtu = number(&attrs, IFLA_MTU, 0);
	mac = bytes_of(&attrs, IFLA_ADDRESS, sizeof(link->port.mac));
	if (mac)
		memcpy(link->port.mac, mac, sizeof(link->port.mac));
	if (info->ifi_flags & (IFF_LOOPBACK | IFF_POINTOPOINT))
		link->port.flags |= LEAT_FIB_ONE_NEIGHBOUR;
	read_families(&attrs, &link->port);
	return 0;
}

int leat_fib_read_link(struct leat_fib_links *links, const struct nlmsghdr *message)
{
	struct leat_fib_link link;
	int err = parse_link(links, message, &link);

	if (err)
		return err;
	if (leat_fib_links_find(links, link.ifindex))
		return 1;
	if (grow((void **)&links->link, links->n, sizeof(*links->link)))
		return -ENOMEM;
	links->link[links->n++] = link;
	return 0;
}

bool leat_fib_knows_link(const struct leat_fib_links *links, const struct nlmsghdr *message)
{
	const struct leat_fib_link *known;
	struct leat_fib_link link;

	if (parse_link(links, message, &link))
		return false;
	known = leat_fib_links_find(links, link.ifindex);
	return known && known->flags == link.flags && known->port.port == link.port.port &&
	       known->port.flags == link.port.flags && known->port.mtu == link.port.mtu &&
	       known->port.mtu6 == link.port.mtu6 && !memcmp(known->port.mac, link.port.mac, sizeof(link.port.mac));
}

/* ---- addresses ---- */

/** Flags of an address; one that is on trial may be used when it is optimistic. */
static uint8_t address_flags(uint32_t flags, uint8_t family)
{
	uint8_t own = 0;

	if (family == AF_INET)
		return flags & IFA_F_SECONDARY ? LEAT_FIB_SECONDARY : 0;
	if (flags & (IFA_F_DEPRECATED | IFA_F_OPTIMISTIC))
		own |= LEAT_FIB_DEPRECATED;
	if (flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC))
		own |= LEAT_FIB_TENTATIVE;
	if (flags & IFA_F_TEMPORARY)
		own |= LEAT_FIB_TEMPORARY;
	return own;
}

/** The address, and the interface that it is of. */
static int parse_address(const struct leat_fib_links *links, const struct nlmsghdr *message,
			 struct leat_fib_address *address, struct leat_fib_link **link)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(message);
	struct attrs attrs;

	if (!message_attrs(message, sizeof(*info), &attrs))
		return -EBADMSG;
	*link = leat_fib_links_find(links, info->ifa_index);
	if ((info->ifa_family != AF_INET && info->ifa_family != AF_INET6) || !*link)
		return 1;
	memset(address, 0, sizeof(*address));
	address->family = info->ifa_family;
	address->len = info->ifa_prefixlen;
	address->scope = info->ifa_scope;
	address->flags = address_flags(number(&attrs, IFA_FLAGS, info->ifa_flags), info->ifa_family);
	if (address->len > 8 * address_size(address->family) ||
	    (!copy_address(&attrs, IFA_LOCAL, address->family, address->address) &&
	     !copy_address(&attrs, IFA_ADDRESS, address->family, address->address)))
		return -EBADMSG;
	return 0;
}

int leat_fib_read_address(struct leat_fib_links *links, const struct nlmsghdr *message)
{
	struct leat_fib_address address;
	struct leat_fib_link *link;
	int err = parse_address(links, message, &address, &link);

	if (err)
		return err;
	if (link->port.n_addresses == ADDRESSES_MAX)
		return 1;
	if (grow((void **)&link->addresses, link->port.n_addresses, sizeof(address)))
		return -ENOMEM;
	link->addresses[link->port.n_addresses++] = address;
	link->port.addresses = link->addresses;
	return 0;
}

bool leat_fib_knows_address(const struct leat_fib_links *links, const struct nlmsghdr *message)
{
	struct leat_fib_address address;
	struct leat_fib_link *link;
	unsigned int i;

	if (parse_address(links, message, &address, &link))
		return false;
	for (i = 0; i < link->port.n_addresses; i++)
		if (!memcmp(&link->addresses[i], &address, sizeof(address)))
			return true;
	return false;
}

/* ---- routes ---- */

/** The next hop that attributes of a route, or of one of its hops, say. */
static int read_hop(const struct attrs *attrs, struct leat_fib_route *route)
{
	const uint8_t *via = bytes_of(attrs, RTA_VIA, sizeof(uint16_t));
	uint16_t family;

	if (attrs->at[RTA_ENCAP_TYPE])
		route->flags |= LEAT_FIB_ENCAP;
	if (attrs->at[RTA_GATEWAY]) {
		route->via_family = route->family;
		return copy_address(attrs, RTA_GATEWAY, route->family, route->via) ? 0 : -EBADMSG;
	}
	if (!via)
		return 0;
	memcpy(&family, via, sizeof(family));
	if (route->family != AF_INET || family != AF_INET6 ||
	    mnl_attr_get_payload_len(attrs->at[RTA_VIA]) < sizeof(family) + sizeof(route->via))
		return -EBADMSG;
	route->via_family = AF_INET6;
	memcpy(route->via, via + sizeof(family), sizeof(route->via));
	return 0;
}

/** Next hops that count: those whose interface is there. */
static int read_hops(const struct leat_fib_links *links, const struct nlattr *list, const struct leat_fib_route *route,
		     struct leat_fib_route *routes, unsigned int *n)
{
	const uint8_t *at = mnl_attr_get_payload(list);
	size_t left = mnl_attr_get_payload_len(list), len;
	struct leat_fib_route *own;
	struct rtnexthop hop;
	struct attrs attrs;

	for (*n = 0; left >= sizeof(hop) && *n < LEAT_FIB_HOPS_MAX; at += len, left -= len) {
		memcpy(&hop, at, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			return -EBADMSG;
		len = RTNH_ALIGN((size_t)hop.rtnh_len) < left ? RTNH_ALIGN((size_t)hop.rtnh_len) : left;
		if (hop.rtnh_flags & RTNH_F_DEAD)
			continue;
		own = &routes[*n];
		*own = *route;
		own->flags |= LEAT_FIB_HOP;
		own->weight = (uint8_t)(hop.rtnh_hops < 255 ? hop.rtnh_hops + 1 : 255);
		own->port = port_of(links, (uint32_t)hop.rtnh_ifindex);
		read_attrs(at + sizeof(hop), hop.rtnh_len - sizeof(hop), &attrs);
		if (read_hop(&attrs, own))
			return -EBADMSG;
		++*n;
	}
	return *n ? 0 : 1;
}

/** The kernel takes a route's MTU into account when it is locked. */
static uint32_t route_mtu(const struct attrs *attrs)
{
	struct attrs metrics;

	nested(attrs, RTA_METRICS, &metrics);
	return number(&metrics, RTAX_LOCK, 0) & 1u << RTAX_MTU ? number(&metrics, RTAX_MTU, 0) : 0;
}

int leat_fib_read_route(const struct leat_fib_links *links, const struct nlmsghdr *message,
			struct leat_fib_route *routes, unsigned int *n)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(message);
	struct leat_fib_route route = { .family = 0 };
	struct attrs attrs;

	*n = 0;
	if (!message_attrs(message, sizeof(*info), &attrs))
		return -EBADMSG;
	/* what is cached, is of no use now, or depends on the source */
	if ((info->rtm_family != AF_INET && info->rtm_family != AF_INET6) || info->rtm_flags & RTM_F_CLONED ||
	    (info->rtm_flags & RTNH_F_DEAD && !attrs.at[RTA_MULTIPATH]) || info->rtm_src_len)
		return 1;
	route.family = info->rtm_family;
	route.len = info->rtm_dst_len;
	route.type = info->rtm_type;
	route.tos = info->rtm_family == AF_INET ? info->rtm_tos : 0;
	route.scope = info->rtm_scope;
	route.table = number(&attrs, RTA_TABLE, info->rtm_table);
	route.metric = number(&attrs, RTA_PRIORITY, 0);
	route.port = port_of(links, number(&attrs, RTA_OIF, 0));
	route.mtu = route_mtu(&attrs);
	if (route.len > 8 * address_size(route.family) ||
	    (route.len && !copy_address(&attrs, RTA_DST, route.family, route.dst)))
		return -EBADMSG;
	if (copy_address(&attrs, RTA_PREFSRC, route.family, route.src))
		route.flags |= LEAT_FIB_HAS_SRC;
	if (attrs.at[RTA_MULTIPATH])
		return read_hops(links, attrs.at[RTA_MULTIPATH], &route, routes, n);
	if (read_hop(&attrs, &route))
		return -EBADMSG;
	routes[0] = route;
	*n = 1;
	return 0;
}

/* ---- neighbours ---- */

int leat_fib_read_neighbour(const struct leat_fib_links *links, const struct nlmsghdr *message,
			    struct leat_fib_neighbour *neighbour)
{
	const struct ndmsg *info = mnl_nlmsg_get_payload(message);
	struct attrs attrs;
	const void *mac;

	if (!message_attrs(message, sizeof(*info), &attrs))
		return -EBADMSG;
	memset(neighbour, 0, sizeof(*neighbour));
	neighbour->port = port_of(links, (uint32_t)info->ndm_ifindex);
	if ((info->ndm_family != AF_INET && info->ndm_family != AF_INET6) || info->ndm_flags & NTF_PROXY ||
	    !neighbour->port)
		return 1;
	neighbour->family = info->ndm_family;
	if (!copy_address(&attrs, NDA_DST, neighbour->family, neighbour->address))
		return -EBADMSG;
	neighbour->valid = info->ndm_state & STATES_VALID;
	mac = bytes_of(&attrs, NDA_LLADDR, sizeof(neighbour->mac));
	if (mac)
		memcpy(neighbour->mac, mac, sizeof(neighbour->mac));
	return 0;
}
