/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib.c: what a configuration says of forwarding, put into a forwarding table. Control thread.
 *
 * An address of a port brings the routes that it brings in the kernel: itself (local), its network (on link), IPv4's
 * broadcast address, and IPv6's address of any router of the network.
 */
#include "ctl/fib.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define METRIC6 256 /* of on-link routes that come with addresses, as in the kernel */
#define SCOPE_LINK 253
#define SCOPE_HOST 254

static void at(const struct leat_config *config, struct leat_diag *diag, struct leat_yaml_pos pos, const char *path)
{
	leat_diag_at(diag, config->file, pos.line, pos.column, path);
}

/* ---- ports ---- */

static int set_port(const struct leat_config_fib_port *port, struct leat_net *net, struct leat_fib *fib)
{
	static const uint8_t none[6];
	const struct leat_netdev *dev = net ? leat_netdev_by_index(net, port->port) : NULL;
	struct leat_fib_port own = {
		.port = port->port,
		.flags = port->forwarding ? LEAT_FIB_FORWARD4 | LEAT_FIB_FORWARD6 : 0,
		.mtu = port->mtu ? port->mtu : dev ? dev->mtu : LEAT_MTU_DEFAULT,
		.mac = { 2, 0, 0, 0, (uint8_t)(port->port >> 8), (uint8_t)port->port },
		.n_addresses = port->n_addresses,
		.addresses = port->addresses,
	};

	if (memcmp(port->mac, none, sizeof(none)) != 0)
		memcpy(own.mac, port->mac, sizeof(own.mac));
	return leat_fib_port_set(fib, &own);
}

/** Sets the bits behind the first @len to @bit. */
static void set_rest(uint8_t *address, unsigned int len, unsigned int bits, bool bit)
{
	for (; len < bits; len++) {
		address[len / 8] &= (uint8_t) ~(0x80u >> len % 8);
		if (bit)
			address[len / 8] |= (uint8_t)(0x80u >> len % 8);
	}
}

/** A route that comes with an address; another address may have brought it. */
static int add_derived(struct leat_fib *fib, const struct leat_fib_route *route)
{
	int err = leat_fib_route_add(fib, route);

	return err == -EEXIST ? 0 : err;
}

static int add_address(struct leat_fib *fib, uint32_t port, const struct leat_fib_address *address)
{
	bool v6 = address->family == AF_INET6;
	unsigned int bits = v6 ? 128 : 32;
	struct leat_fib_route net = { .family = address->family, .len = address->len, .type = LEAT_FIB_UNICAST,
				      .scope = SCOPE_LINK, .metric = v6 ? METRIC6 : 0, .port = port };
	struct leat_fib_route own = { .family = address->family, .len = (uint8_t)bits, .type = LEAT_FIB_LOCAL,
				      .scope = SCOPE_HOST, .table = LEAT_FIB_TABLE_LOCAL, .port = port };
	int err;

	memcpy(net.dst, address->address, sizeof(net.dst));
	memcpy(own.dst, address->address, sizeof(own.dst));
	err = add_derived(fib, &net);
	if (!err)
		err = add_derived(fib, &own);
	if (err || address->len > bits - 2)
		return err;
	own.type = v6 ? LEAT_FIB_ANYCAST : LEAT_FIB_BROADCAST;
	own.scope = SCOPE_LINK;
	set_rest(own.dst, address->len, bits, !v6);
	return add_derived(fib, &own);
}

static int fill_ports(const struct leat_config *config, struct leat_net *net, struct leat_fib *fib,
		      struct leat_diag *diag)
{
	const struct leat_config_fib_port *port;
	unsigned int i, k;
	int err = 0;

	for (i = 0; !err && i < config->fib.n_ports; i++) {
		port = &config->fib.ports[i];
		at(config, diag, port->pos, "fib.ports");
		err = set_port(port, net, fib);
		for (k = 0; !err && k < port->n_addresses; k++)
			err = add_address(fib, port->port, &port->addresses[k]);
	}
	return err;
}

/* ---- the whole ---- */

static int fill_routes(const struct leat_config *config, struct leat_fib *fib, struct leat_diag *diag)
{
	const struct leat_config_fib *from = &config->fib;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < from->n_routes; i++) {
		at(config, diag, from->routes[i].pos, "fib.routes");
		err = leat_fib_route_add(fib, &from->routes[i].route);
		if (err == -EEXIST)
			leat_diag_add(diag, "the port's address brings that route already");
	}
	for (i = 0; !err && i < from->n_neighbours; i++) {
		at(config, diag, from->neighbours[i].pos, "fib.neighbours");
		err = leat_fib_neighbour_set(fib, &from->neighbours[i].neighbour);
	}
	return err;
}

int leat_fib_fill(const struct leat_config *config, struct leat_net *net, struct leat_fib *fib, struct leat_diag *diag)
{
	unsigned int before = leat_diag_count(diag);
	int err = leat_fib_begin(fib);

	if (err)
		return err;
	err = fill_ports(config, net, fib, diag);
	if (!err)
		err = fill_routes(config, fib, diag);
	if (!err) {
		leat_fib_commit(fib);
		return 0;
	}
	leat_fib_abandon(fib);
	if (leat_diag_count(diag) == before)
		leat_diag_add(diag, "the forwarding table does not take it: %s", strerror(-err));
	return err;
}

int leat_fib_start_mirror(const struct leat_config *config, const struct leat_log *log, struct leat_fib *fib,
			  struct leat_diag *diag, struct leat_fib_mirror **mirror)
{
	const struct leat_fib_mirror_opts opts = {
		.size = sizeof(opts),
		.netns = config->fib.netns,
		.ports = config->fib.mirror_ports,
		.n_ports = config->fib.n_mirror_ports,
		.log = log,
	};
	struct leat_fib_counts counts;
	int err;

	at(config, diag, config->fib.pos, "fib.mirror");
	err = leat_fib_mirror_start(fib, &opts, diag, mirror);
	if (err)
		return err;
	leat_fib_count(fib, &counts);
	leat_log(log, LEAT_LOG_INFO, "fib: %u IPv4 and %u IPv6 routes, %u neighbours mirrored; %u of %u ports have their interface",
		 counts.routes4, counts.routes6, counts.neighbours, counts.ports, config->fib.n_mirror_ports);
	return 0;
}
