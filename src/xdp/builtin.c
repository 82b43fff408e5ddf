/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * builtin.c: the programs that come compiled in, as C functions with an eBPF program's signature. They run on workers,
 * each with its own packet; their options do not change while they run. The packet is a peer's: every access is
 * checked against data_end and made bytewise or by copy, for a packet begins at any address.
 */
#include <leat/xdp_prog.h>

#include <errno.h>
#include <string.h>

/* ---- pass, drop, abort ---- */

static uint32_t pass_fn(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_PASS;
}

static uint32_t drop_fn(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_DROP;
}

static uint32_t abort_fn(struct leat_xdp_buff *xdp, void *priv)
{
	(void)xdp;
	(void)priv;
	return LEAT_XDP_ABORTED;
}

/* ---- reflect ---- */

static uint32_t reflect_fn(struct leat_xdp_buff *xdp, void *priv)
{
	uint8_t mac[6];

	(void)priv;
	if (xdp->data_end - xdp->data < (ptrdiff_t)LEAT_ETH_HLEN)
		return LEAT_XDP_ABORTED;
	memcpy(mac, xdp->data, 6);
	memcpy(xdp->data, xdp->data + 6, 6);
	memcpy(xdp->data + 6, mac, 6);
	return LEAT_XDP_TX;
}

/* ---- redirect ---- */

struct redirect {
	char *port;
	uint32_t index; /* filled in by redirect_resolve() */
};

static const struct leat_param redirect_params[] = {
	{ .name = "port", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED | LEAT_PARAM_PORT, .min = 1,
	  .max = LEAT_PORT_NAME_MAX - 1, .offset = offsetof(struct redirect, port),
	  .help = "port to which every packet goes" },
	{ .name = NULL },
};

static int redirect_resolve(struct leat_net *net, void *priv, struct leat_diag *diag)
{
	struct redirect *redirect = priv;
	struct leat_netdev *dev = leat_netdev_find(net, redirect->port);

	if (!dev) {
		leat_diag_add(diag, "there is no port '%s'", redirect->port);
		return -EINVAL;
	}
	if (!dev->ops->xdp_xmit) {
		leat_diag_add(diag, "port '%s' (%s) cannot transmit", redirect->port, dev->driver);
		return -EINVAL;
	}
	redirect->index = dev->index;
	return 0;
}

static uint32_t redirect_fn(struct leat_xdp_buff *xdp, void *priv)
{
	const struct redirect *redirect = priv;

	return leat_xdp_redirect(xdp, redirect->index);
}

/* ---- drop-udp-port ---- */

struct drop_udp_port {
	uint32_t port;
};

static const struct leat_param drop_udp_port_params[] = {
	{ .name = "port", .kind = LEAT_PARAM_U32, .flags = LEAT_PARAM_REQUIRED, .min = 1, .max = 65535,
	  .offset = offsetof(struct drop_udp_port, port), .help = "UDP destination port to drop" },
	{ .name = NULL },
};

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define ETHERTYPE_CTAG 0x8100u /* IEEE 802.1Q */
#define ETHERTYPE_STAG 0x88a8u /* IEEE 802.1Q, the outer of two */
#define VLAN_TAGS_MAX 2
#define IPV4_HLEN_MIN 20u
#define IPV6_HLEN 40u
#define IPV6_EXT_MAX 8 /* extension headers that are looked through */
#define UDP_HLEN 8u

#define PROTO_HOPOPTS 0
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_AH 51
#define PROTO_DSTOPTS 60

/* What is left of the packet to parse. */
struct cursor {
	const uint8_t *p;
	const uint8_t *end;
};

/* The next @len bytes, or NULL when the packet is shorter. */
static const uint8_t *cursor_take(struct cursor *cur, size_t len)
{
	const uint8_t *p = cur->p;

	if ((size_t)(cur->end - p) < len)
		return NULL;
	cur->p = p + len;
	return p;
}

static uint32_t get_be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Steps over the Ethernet header and up to two tags. Returns the EtherType, or 0. */
static uint32_t parse_ethernet(struct cursor *cur)
{
	const uint8_t *p = cursor_take(cur, LEAT_ETH_HLEN);
	uint32_t type;
	int tags;

	if (!p)
		return 0;
	type = get_be16(p + 12);
	for (tags = 0; tags < VLAN_TAGS_MAX && (type == ETHERTYPE_CTAG || type == ETHERTYPE_STAG); tags++) {
		p = cursor_take(cur, LEAT_VLAN_HLEN);
		if (!p)
			return 0;
		type = get_be16(p + 2);
	}
	return type;
}

/* Steps over an IPv4 header with options (RFC 791). Returns the protocol; -1 for a later fragment or a bad header. */
static int parse_ipv4(struct cursor *cur)
{
	const uint8_t *p = cursor_take(cur, IPV4_HLEN_MIN);
	uint32_t hlen;

	if (!p || p[0] >> 4 != 4 || get_be16(p + 6) & 0x1fff)
		return -1;
	hlen = (p[0] & 15u) * 4;
	if (hlen < IPV4_HLEN_MIN || !cursor_take(cur, hlen - IPV4_HLEN_MIN))
		return -1;
	return p[9];
}

/* Length of the extension header at @p, of which 8 bytes are there; 0: not a known one, or not the first fragment. */
static size_t ipv6_ext_len(int proto, const uint8_t *p)
{
	switch (proto) {
	case PROTO_HOPOPTS:
	case PROTO_ROUTING:
	case PROTO_DSTOPTS:
		return (p[1] + 1u) * 8; /* RFC 8200, 4.3, 4.4, 4.6 */
	case PROTO_AH:
		return (p[1] + 2u) * 4; /* RFC 4302, 2.2 */
	case PROTO_FRAGMENT:
		return get_be16(p + 2) & 0xfff8 ? 0 : 8; /* RFC 8200, 4.5 */
	default:
		return 0;
	}
}

/* Steps over an IPv6 header and known extension headers (RFC 8200). Returns the protocol, or -1. */
static int parse_ipv6(struct cursor *cur)
{
	const uint8_t *p = cursor_take(cur, IPV6_HLEN);
	size_t len;
	int proto, i;

	if (!p || p[0] >> 4 != 6)
		return -1;
	proto = p[6];
	for (i = 0; i <= IPV6_EXT_MAX; i++) {
		if (proto == PROTO_UDP)
			return proto;
		if (cur->end - cur->p < 8)
			return -1;
		p = cur->p;
		len = ipv6_ext_len(proto, p);
		if (!len || !cursor_take(cur, len))
			return -1;
		proto = p[0];
	}
	return -1;
}

/*
 * Drops UDP datagrams to one port, IPv4 and IPv6, with up to two VLAN tags. Whatever cannot be read passes: fragments
 * but the first (they do not say their port; the first is dropped, so the datagram never becomes whole), more than
 * eight extension headers or one that is not known, a header that ends before its time.
 */
static uint32_t drop_udp_port_fn(struct leat_xdp_buff *xdp, void *priv)
{
	const struct drop_udp_port *opts = priv;
	struct cursor cur = { xdp->data, xdp->data_end };
	uint32_t type = parse_ethernet(&cur);
	const uint8_t *udp;
	int proto = -1;

	if (type == ETHERTYPE_IPV4)
		proto = parse_ipv4(&cur);
	else if (type == ETHERTYPE_IPV6)
		proto = parse_ipv6(&cur);
	if (proto != PROTO_UDP)
		return LEAT_XDP_PASS;
	udp = cursor_take(&cur, UDP_HLEN);
	return udp && get_be16(udp + 2) == opts->port ? LEAT_XDP_DROP : LEAT_XDP_PASS;
}

/* ---- the table ---- */

static const struct leat_xdp_builtin builtins[] = {
	{ .name = "pass", .help = "hands every packet on", .fn = pass_fn },
	{ .name = "drop", .help = "drops every packet", .fn = drop_fn },
	{ .name = "abort", .help = "fails on every packet", .fn = abort_fn },
	{ .name = "reflect", .help = "swaps the Ethernet addresses and sends the packet back", .fn = reflect_fn },
	{ .name = "redirect", .help = "sends every packet to another port", .params = redirect_params,
	  .priv_size = sizeof(struct redirect), .resolve = redirect_resolve, .fn = redirect_fn },
	{ .name = "drop-udp-port", .help = "drops UDP packets to one port", .params = drop_udp_port_params,
	  .priv_size = sizeof(struct drop_udp_port), .fn = drop_udp_port_fn },
};

#define N_BUILTINS (sizeof(builtins) / sizeof(builtins[0]))

const struct leat_xdp_builtin *leat_xdp_builtin_get(unsigned int idx)
{
	return idx < N_BUILTINS ? &builtins[idx] : NULL;
}

const struct leat_xdp_builtin *leat_xdp_builtin_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < N_BUILTINS; i++)
		if (!strcmp(builtins[i].name, name))
			return &builtins[i];
	return NULL;
}
