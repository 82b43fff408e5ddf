/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_fib.c: checks the section "fib" of a configuration: ports with their addresses, routes, neighbours; or which
 * namespace's table is mirrored. Control thread.
 */
#include "ctl/config_check.h"

#include "base/heap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCOPE_LINK 253 /* RT_SCOPE_LINK: on-link routes of IPv4 */

/* ---- addresses ---- */

static unsigned int bits_of(uint8_t family)
{
	return family == AF_INET6 ? 128 : 32;
}

/** The first @n characters as an address; returns its family, or 0. */
static uint8_t read_address(const char *text, size_t n, uint8_t address[16])
{
	char own[INET6_ADDRSTRLEN];
	uint8_t family;

	if (n >= sizeof(own))
		return 0;
	memcpy(own, text, n);
	own[n] = '\0';
	family = strchr(own, ':') ? AF_INET6 : AF_INET;
	memset(address, 0, 16);
	return inet_pton(family, own, address) == 1 ? family : 0;
}

/** A whole number up to @most. */
static bool read_length(const char *text, unsigned int most, uint8_t *len)
{
	unsigned long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	number = strtoul(text, &end, 10);
	*len = (uint8_t)number;
	return !*end && number <= most;
}

/**
 * Reads "ADDRESS" or, with @len, "ADDRESS/LENGTH". Returns false with a sentence at the current place; @what stands for
 * it in the sentence.
 */
static bool parse_address(const struct leat_check *c, const char *text, const char *what, uint8_t *family,
			  uint8_t address[16], uint8_t *len)
{
	const char *slash = len ? strchr(text, '/') : NULL;
	uint8_t bits;

	*family = read_address(text, slash ? (size_t)(slash - text) : strlen(text), address);
	bits = (uint8_t)bits_of(*family);
	if (*family && (!slash || read_length(slash + 1, bits, &bits))) {
		if (len)
			*len = bits;
		return true;
	}
	leat_diag_add(c->diag, "'%.50s' is not %s", text, what);
	return false;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned int len)
{
	unsigned int i = len / 8;

	return !memcmp(a, b, i) && (!(len % 8) || !((a[i] ^ b[i]) >> (8 - len % 8)));
}

/** Whether nothing stands behind the prefix. */
static bool is_prefix(const uint8_t *address, unsigned int len)
{
	unsigned int i;

	for (i = len; i < 128; i++)
		if (address[i / 8] >> (7 - i % 8) & 1)
			return false;
	return true;
}

/** A unicast address that a host can have. */
static bool is_host(uint8_t family, const uint8_t *address)
{
	static const uint8_t none[16];

	if (!memcmp(address, none, sizeof(none)))
		return false;
	return family == AF_INET6 ? address[0] != 0xff : address[0] < 224;
}

/* ---- entries ---- */

/** The number of the port that a key names, or 0, which is reported. */
static uint32_t port_number(const struct leat_check *c, const char *list, const struct leat_yaml_node *node)
{
	unsigned int index;
	const char *text;

	leat_check_at(c, leat_check_pos(node), list, NULL, "port");
	text = leat_check_single(c, node);
	index = text ? leat_check_port_index(c, text) : LEAT_PORTS_MAX;
	return index < LEAT_PORTS_MAX ? index + 1 : 0;
}

/** Makes room for the entries of a list, or of a mapping. False: it is something else, which is reported. */
static bool make_room(struct leat_check *c, const char *list, const struct leat_yaml_node *node,
		      enum leat_yaml_kind kind, void *array, size_t size)
{
	void *room;

	if (node->kind == LEAT_YAML_NULL)
		return false;
	if (node->kind != kind) {
		leat_check_at(c, leat_check_pos(node), list, NULL, NULL);
		leat_diag_add(c->diag, kind == LEAT_YAML_LIST ? "must be a list of mappings (- { KEY: ... })"
							      : "must be a mapping of port names (PORT: ...)");
		return false;
	}
	room = leat_heap_zalloc((node->n + 1) * size);
	if (!room)
		c->rc = -ENOMEM;
	else
		*(void **)array = room;
	return room;
}

static bool is_map(const struct leat_check *c, const char *list, const struct leat_yaml_node *node, const char *example)
{
	if (node->kind == LEAT_YAML_MAP)
		return true;
	leat_check_at(c, leat_check_pos(node), list, node->key, NULL);
	leat_diag_add(c->diag, "must be a mapping, like %s", example);
	return false;
}

/* ---- ports ---- */

static const struct leat_param port_params[] = {
	{ .name = "forwarding", .kind = LEAT_PARAM_BOOL, .offset = offsetof(struct leat_config_fib_port, forwarding),
	  .default_text = "yes", .help = "whether what comes in here may go on" },
	{ .name = "mac", .kind = LEAT_PARAM_MAC, .flags = LEAT_PARAM_STATION,
	  .offset = offsetof(struct leat_config_fib_port, mac), .help = "its own address" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct leat_config_fib_port, mtu),
	  .min = LEAT_MTU_MIN, .max = UINT16_MAX, .help = "longest packet, without the Ethernet header" },
	{ .name = NULL },
};

static void check_address(const struct leat_check *c, struct leat_config_fib_port *port, const char *name,
			  const struct leat_yaml_node *node)
{
	struct leat_fib_address *address = &port->addresses[port->n_addresses];
	const char *text;

	leat_check_at(c, leat_check_pos(node), "fib.ports", name, "addresses");
	text = leat_check_single(c, node);
	if (!text || !parse_address(c, text, "an address with its prefix, like 10.0.0.1/24 or fd00::1/64",
				    &address->family, address->address, &address->len))
		return;
	if (!is_host(address->family, address->address))
		leat_diag_add(c->diag, "'%s' is not the address of a host", text);
	else
		port->n_addresses++;
}

static void check_addresses(struct leat_check *c, struct leat_config_fib_port *port, const char *name,
			    const struct leat_yaml_node *node)
{
	const struct leat_yaml_node *child;

	if (node->kind == LEAT_YAML_NULL)
		return;
	port->addresses = leat_heap_zalloc((node->n + 1) * sizeof(*port->addresses));
	if (!port->addresses) {
		c->rc = -ENOMEM;
	} else if (node->kind == LEAT_YAML_SCALAR) {
		check_address(c, port, name, node);
	} else if (node->kind == LEAT_YAML_LIST) {
		for (child = node->first; child; child = child->next)
			check_address(c, port, name, child);
	} else {
		leat_check_at(c, node->pos, "fib.ports", name, "addresses");
		leat_diag_add(c->diag, "must be a list of addresses, like [10.0.0.1/24]");
	}
}

static void check_port(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { "addresses", NULL };
	struct leat_config_fib_port *port = &c->config->fib.ports[c->config->fib.n_ports++];
	const struct leat_yaml_node *addresses;

	port->pos = node->key_pos;
	leat_check_at(c, node->key_pos, "fib.ports", NULL, NULL);
	port->port = leat_check_port_index(c, node->key) + 1;
	if (leat_param_defaults(port_params, port))
		c->rc = -ENOMEM;
	if (node->kind == LEAT_YAML_NULL || !is_map(c, "fib.ports", node, "{ addresses: [10.0.0.1/24] }"))
		return;
	leat_check_fill(c, "fib.ports", node, own, port_params, port);
	addresses = leat_yaml_get(node, "addresses");
	if (addresses)
		check_addresses(c, port, node->key, addresses);
}

static void check_ports(struct leat_check *c, const struct leat_yaml_node *node)
{
	if (!make_room(c, "fib.ports", node, LEAT_YAML_MAP, &c->config->fib.ports, sizeof(*c->config->fib.ports)))
		return;
	for (node = node->first; node && !c->rc; node = node->next)
		if (!node->again)
			check_port(c, node);
}

/* ---- routes ---- */

static const char *const types[] = { "unicast", "blackhole", "unreachable", "prohibit", "throw", NULL };
#define TYPE_WRONG (sizeof(types) / sizeof(types[0])) /* what stood there is no type, which has been said */
static const uint8_t type_numbers[] = { LEAT_FIB_UNICAST, LEAT_FIB_BLACKHOLE, LEAT_FIB_UNREACHABLE, LEAT_FIB_PROHIBIT,
					LEAT_FIB_THROW };

/** A route's keys as they stand. */
struct route_text {
	char *to, *via, *port, *src;
	uint32_t type, metric, mtu, table;
};

static const struct leat_param route_params[] = {
	{ .name = "to", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED,
	  .offset = offsetof(struct route_text, to), .help = "a prefix, or default" },
	{ .name = "via", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct route_text, via), .help = "the next hop" },
	{ .name = "port", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct route_text, port),
	  .help = "where packets leave" },
	{ .name = "src", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct route_text, src),
	  .help = "preferred source address" },
	{ .name = "type", .kind = LEAT_PARAM_CHOICE, .offset = offsetof(struct route_text, type), .choices = types,
	  .help = "what becomes of the packets" },
	{ .name = "metric", .kind = LEAT_PARAM_U32, .offset = offsetof(struct route_text, metric),
	  .help = "among routes of one prefix the smallest counts" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct route_text, mtu), .min = LEAT_MTU_MIN,
	  .max = UINT16_MAX, .help = "longest packet" },
	{ .name = "table", .kind = LEAT_PARAM_U32, .offset = offsetof(struct route_text, table), .min = 1,
	  .max = UINT32_MAX, .default_text = "254", .help = "number of the table" },
	{ .name = NULL },
};

static void at_key(const struct leat_check *c, const char *list, const struct leat_yaml_node *entry, const char *key)
{
	const struct leat_yaml_node *node = leat_yaml_get(entry, key);

	leat_check_at(c, node ? leat_check_pos(node) : entry->pos, list, NULL, node ? key : NULL);
}

/** The port with an address from whose network @via is; 0: none. */
static uint32_t port_towards(const struct leat_config_fib *fib, uint8_t family, const uint8_t *via)
{
	const struct leat_fib_address *a;
	unsigned int i, k, longest = 0;
	uint32_t port = 0;

	for (i = 0; i < fib->n_ports; i++) {
		for (k = 0; k < fib->ports[i].n_addresses; k++) {
			a = &fib->ports[i].addresses[k];
			if (a->family != family || !same_bits(a->address, via, a->len) || (port && a->len <= longest))
				continue;
			longest = a->len;
			port = fib->ports[i].port;
		}
	}
	return port;
}

static bool parse_to(const struct leat_check *c, const struct leat_yaml_node *node, const struct route_text *text,
		     struct leat_fib_route *route)
{
	at_key(c, "fib.routes", node, "to");
	if (!strcmp(text->to, "default")) {
		route->family = text->via && strchr(text->via, ':') ? AF_INET6 : AF_INET;
		return true;
	}
	if (!parse_address(c, text->to, "a prefix, like 10.0.0.0/8, fd00::/8 or default", &route->family, route->dst,
			   &route->len))
		return false;
	if (is_prefix(route->dst, route->len))
		return true;
	leat_diag_add(c->diag, "'%s' has bits set behind the first %u", text->to, route->len);
	return false;
}

/** Next hop and port: what is left out is found. */
static bool parse_hop(const struct leat_check *c, const struct leat_yaml_node *node, const struct route_text *text,
		      struct leat_fib_route *route)
{
	const struct leat_yaml_node *port = leat_yaml_get(node, "port");

	if (text->via) {
		at_key(c, "fib.routes", node, "via");
		if (!parse_address(c, text->via, "an address", &route->via_family, route->via, NULL))
			return false;
		if (route->family == AF_INET6 && route->via_family == AF_INET) {
			leat_diag_add(c->diag, "an IPv6 route cannot go via an IPv4 address");
			return false;
		}
	} else if (route->family == AF_INET) {
		route->scope = SCOPE_LINK;
	}
	if (port)
		route->port = port_number(c, "fib.routes", port);
	else if (text->via)
		route->port = port_towards(&c->config->fib, route->via_family, route->via);
	if (route->port || port)
		return route->port;
	at_key(c, "fib.routes", node, "via");
	if (text->via)
		leat_diag_add(c->diag, "no port of the section has an address from the network of '%s': 'port' is needed",
			      text->via);
	else
		leat_diag_add(c->diag, "'via' or 'port' is missing");
	return false;
}

static bool parse_src(const struct leat_check *c, const struct leat_yaml_node *node, const struct route_text *text,
		      struct leat_fib_route *route)
{
	uint8_t family;

	if (!text->src)
		return true;
	at_key(c, "fib.routes", node, "src");
	if (!parse_address(c, text->src, "an address", &family, route->src, NULL))
		return false;
	if (family != route->family)
		leat_diag_add(c->diag, "'%s' is not of the route's family", text->src);
	route->flags |= LEAT_FIB_HAS_SRC;
	return family == route->family;
}

/** Routes of which the second would never count. */
static bool same_place(const struct leat_fib_route *a, const struct leat_fib_route *b)
{
	return a->family == b->family && a->len == b->len && a->table == b->table && a->metric == b->metric &&
	       !memcmp(a->dst, b->dst, sizeof(a->dst));
}

static void add_route(const struct leat_check *c, const struct leat_yaml_node *node, const struct leat_fib_route *route)
{
	struct leat_config_fib *fib = &c->config->fib;
	unsigned int i;

	for (i = 0; i < fib->n_routes && !same_place(&fib->routes[i].route, route); i++)
		;
	if (i < fib->n_routes) {
		leat_check_at(c, node->pos, "fib.routes", NULL, NULL);
		leat_diag_add(c->diag, "line %u has a route to the same prefix with the same metric", fib->routes[i].pos.line);
		return;
	}
	fib->routes[fib->n_routes++] = (struct leat_config_fib_route){ .pos = node->pos, .route = *route };
}

static void read_route(const struct leat_check *c, const struct leat_yaml_node *node, const struct route_text *text)
{
	struct leat_fib_route route = {
		.table = text->table,
		.metric = text->metric,
		.mtu = text->mtu,
	};

	if (!text->to || !parse_to(c, node, text, &route) || text->type == TYPE_WRONG)
		return;
	route.type = type_numbers[text->type];
	if (route.type == LEAT_FIB_UNICAST) {
		if (!parse_hop(c, node, text, &route))
			return;
	} else if (text->via || text->port) {
		at_key(c, "fib.routes", node, text->via ? "via" : "port");
		leat_diag_add(c->diag, "a route of type %s leads nowhere", types[text->type]);
		return;
	}
	if (parse_src(c, node, text, &route))
		add_route(c, node, &route);
}

static void check_route(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { NULL };
	struct route_text text = { .to = NULL };

	if (!is_map(c, "fib.routes", node, "{ to: 10.2.0.0/16, via: 10.0.0.2 }"))
		return;
	if (leat_param_defaults(route_params, &text))
		c->rc = -ENOMEM;
	if (leat_yaml_get(node, "type"))
		text.type = TYPE_WRONG;
	if (!c->rc)
		leat_check_fill(c, "fib.routes", node, own, route_params, &text);
	if (!c->rc)
		read_route(c, node, &text);
	leat_param_free(route_params, &text);
}

static void check_routes(struct leat_check *c, const struct leat_yaml_node *node)
{
	if (!make_room(c, "fib.routes", node, LEAT_YAML_LIST, &c->config->fib.routes, sizeof(*c->config->fib.routes)))
		return;
	for (node = node->first; node && !c->rc; node = node->next)
		check_route(c, node);
}

/* ---- neighbours ---- */

struct neighbour_text {
	char *address, *port;
	uint8_t mac[6];
};

static const struct leat_param neighbour_params[] = {
	{ .name = "address", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED,
	  .offset = offsetof(struct neighbour_text, address), .help = "IPv4 or IPv6" },
	{ .name = "port", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED,
	  .offset = offsetof(struct neighbour_text, port), .help = "where it is" },
	{ .name = "mac", .kind = LEAT_PARAM_MAC, .flags = LEAT_PARAM_REQUIRED | LEAT_PARAM_STATION,
	  .offset = offsetof(struct neighbour_text, mac), .help = "its MAC address" },
	{ .name = NULL },
};

static void add_neighbour(const struct leat_check *c, const struct leat_yaml_node *node,
			  const struct leat_fib_neighbour *neighbour)
{
	struct leat_config_fib *fib = &c->config->fib;
	const struct leat_fib_neighbour *other;
	unsigned int i;

	for (i = 0; i < fib->n_neighbours; i++) {
		other = &fib->neighbours[i].neighbour;
		if (other->port != neighbour->port || other->family != neighbour->family ||
		    memcmp(other->address, neighbour->address, sizeof(other->address)) != 0)
			continue;
		leat_check_at(c, node->pos, "fib.neighbours", NULL, NULL);
		leat_diag_add(c->diag, "line %u has the same neighbour", fib->neighbours[i].pos.line);
		return;
	}
	fib->neighbours[fib->n_neighbours++] =
		(struct leat_config_fib_neighbour){ .pos = node->pos, .neighbour = *neighbour };
}

static void read_neighbour(const struct leat_check *c, const struct leat_yaml_node *node,
			   const struct neighbour_text *text)
{
	struct leat_fib_neighbour neighbour = { .valid = true };
	bool good = false;

	memcpy(neighbour.mac, text->mac, sizeof(neighbour.mac));
	if (text->address) {
		at_key(c, "fib.neighbours", node, "address");
		good = parse_address(c, text->address, "an address", &neighbour.family, neighbour.address, NULL);
	}
	if (leat_yaml_get(node, "port"))
		neighbour.port = port_number(c, "fib.neighbours", leat_yaml_get(node, "port"));
	if (good && neighbour.port)
		add_neighbour(c, node, &neighbour);
}

static void check_neighbour(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { NULL };
	struct neighbour_text text = { .address = NULL };

	if (!is_map(c, "fib.neighbours", node, "{ address: 10.0.0.2, port: NAME, mac: 02:00:00:00:00:02 }"))
		return;
	leat_check_fill(c, "fib.neighbours", node, own, neighbour_params, &text);
	if (!c->rc)
		read_neighbour(c, node, &text);
	leat_param_free(neighbour_params, &text);
}

static void check_neighbours(struct leat_check *c, const struct leat_yaml_node *node)
{
	if (!make_room(c, "fib.neighbours", node, LEAT_YAML_LIST, &c->config->fib.neighbours,
		       sizeof(*c->config->fib.neighbours)))
		return;
	for (node = node->first; node && !c->rc; node = node->next)
		check_neighbour(c, node);
}

/* ---- mirror ---- */

static void check_interface(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const struct leat_param interface = { .name = "ports", .kind = LEAT_PARAM_STRING,
						     .flags = LEAT_PARAM_IFNAME };
	struct leat_config_fib *fib = &c->config->fib;
	unsigned int index, i;
	char *name = NULL;
	const char *text;

	leat_check_at(c, node->key_pos, "fib.mirror.ports", NULL, NULL);
	index = leat_check_port_index(c, node->key);
	leat_check_at(c, leat_check_pos(node), "fib.mirror.ports", node->key, NULL);
	text = leat_check_single(c, node);
	if (text && leat_param_set(&interface, &name, text, c->diag) == -ENOMEM)
		c->rc = -ENOMEM;
	for (i = 0; name && i < fib->n_mirror_ports; i++)
		if (!strcmp(fib->mirror_ports[i].ifname, name))
			leat_diag_add(c->diag, "interface '%s' is two ports", name);
	if (name)
		fib->mirror_ports[fib->n_mirror_ports++] = (struct leat_fib_mirror_port){ text, index + 1 };
	leat_heap_free(name);
}

static void check_mirror(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const struct leat_param netns = { .name = "netns", .kind = LEAT_PARAM_STRING, .min = 1, .max = 240 };
	static const char *const own[] = { "netns", "ports", NULL };
	struct leat_config_fib *fib = &c->config->fib;
	const struct leat_yaml_node *value;
	char *name = NULL;

	fib->mirror = true;
	if (!is_map(c, "fib", node, "{ ports: { PORT: eth0 } }"))
		return;
	leat_check_fill(c, "fib", node, own, NULL, NULL);
	value = leat_yaml_get(node, "netns");
	if (value) {
		leat_check_param(c, "fib", "mirror", value, &netns, &name);
		fib->netns = name ? value->text : NULL;
		leat_heap_free(name);
	}
	value = leat_yaml_get(node, "ports");
	if (!value || value->kind == LEAT_YAML_NULL || (value->kind == LEAT_YAML_MAP && !value->n)) {
		leat_check_at(c, node->key_pos, "fib", "mirror", NULL);
		leat_diag_add(c->diag, "'ports' is missing (which interface is which port)");
		return;
	}
	if (!make_room(c, "fib.mirror.ports", value, LEAT_YAML_MAP, &fib->mirror_ports, sizeof(*fib->mirror_ports)))
		return;
	for (value = value->first; value && !c->rc; value = value->next)
		if (!value->again)
			check_interface(c, value);
}

/* ---- the section ---- */

void leat_check_fib(struct leat_check *c, const struct leat_yaml_node *node)
{
	static const char *const own[] = { "ports", "routes", "neighbours", "mirror", NULL };
	/* routes need the addresses of ports */
	static const struct {
		const char *name;
		leat_check_fn *check;
	} parts[] = { { "ports", check_ports }, { "routes", check_routes }, { "neighbours", check_neighbours } };
	const struct leat_yaml_node *mirror, *part;
	size_t i;

	c->config->fib.given = true;
	c->config->fib.pos = node->key_pos;
	if (node->kind == LEAT_YAML_NULL)
		return;
	if (node->kind != LEAT_YAML_MAP) {
		leat_check_at(c, node->pos, "fib", NULL, NULL);
		leat_diag_add(c->diag, "must be a mapping, like { routes: [...] } or { mirror: {...} }");
		return;
	}
	leat_check_fill(c, NULL, node, own, NULL, NULL);
	mirror = leat_yaml_get(node, "mirror");
	if (mirror)
		check_mirror(c, mirror);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]) && !c->rc; i++) {
		part = leat_yaml_get(node, parts[i].name);
		if (!part)
			continue;
		if (!mirror) {
			parts[i].check(c, part);
			continue;
		}
		leat_check_at(c, part->key_pos, "fib", parts[i].name, NULL);
		leat_diag_add(c->diag, "cannot stand beside 'mirror', which brings its own");
	}
}

void leat_config_free_fib(struct leat_config *config)
{
	struct leat_config_fib *fib = &config->fib;
	unsigned int i;

	for (i = 0; i < fib->n_ports; i++)
		leat_heap_free(fib->ports[i].addresses);
	leat_heap_free(fib->mirror_ports);
	leat_heap_free(fib->ports);
	leat_heap_free(fib->routes);
	leat_heap_free(fib->neighbours);
}
