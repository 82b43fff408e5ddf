/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib.h: what the files of the forwarding table share. fib.c has the calls of <leat/fib.h>, fib_state.c a table and its
 * changes, fib_lookup.c what workers do, fib_source.c the choice of source addresses.
 *
 * Theory of operation. A state is a whole table:
 *
 *   routes[family]   LPM trie of the eBPF maps; key: table number and prefix; value: pointer to a struct leat_fib_prefix
 *   neighbours       hash table of the eBPF maps; key: port, family, address; value: MAC address
 *   port[]           pointers to struct leat_fib_port_info
 *
 * What pointers lead to is constant. A change makes a new one, publishes it, and retires the old one: it is freed at a
 * later change, when a grace period has passed. leat_fib_commit() publishes a new state. Writers hold fib->lock.
 */
#ifndef LEAT_XDP_FIB_H
#define LEAT_XDP_FIB_H

#include <leat/fib.h>
#include <string.h>
#include <sys/socket.h>

#include "bpf/env.h"
#include "bpf/map/map.h"
#include "netdev/worker.h"

#define LEAT_FIB_FAMILIES 2u /* IPv4, IPv6 */

/** What is freed after a grace period begins with this. */
struct leat_fib_old {
	struct leat_fib_old *next;
	uint64_t number; /* of the grace period */
};

/** The routes of one prefix, the first that matches counts. Of IPv4, table local's are among those of main. */
struct leat_fib_prefix {
	struct leat_fib_old old;
	uint32_t n;
	uint8_t len;
	struct leat_fib_route route[];
};

struct leat_fib_port_info {
	struct leat_fib_old old;
	uint32_t flags;
	uint32_t mtu[LEAT_FIB_FAMILIES];
	uint8_t mac[6];
	unsigned int n_addresses;
	struct leat_fib_address address[];
};

struct leat_fib_state {
	struct leat_bpf_map routes[LEAT_FIB_FAMILIES];
	struct leat_bpf_map neighbours;
	struct leat_fib_counts counts;
	struct leat_fib_port_info *port[LEAT_PORTS_MAX]; /* atomic */
};

struct leat_fib {
	struct leat_net *net;         /* or NULL */
	struct leat_bpf_env *env;     /* the maps' */
	uint32_t max_routes, max_neighbours;
	struct leat_fib_state *state; /* what look-ups see (atomic) */
	pthread_mutex_t lock;         /* of all that follows */
	struct leat_fib_state *next;  /* between begin and commit: what changes go to */
	struct leat_fib_old *oldest, *newest; /* retired, in this order */
	unsigned int n_old;
};

/** Key of a route; its first 4 bytes are the length in bits, table number included. */
struct leat_fib_key {
	uint32_t len;
	uint8_t table[4]; /* most significant byte first */
	uint8_t dst[16];  /* IPv4: 4 of them */
};
#define LEAT_FIB_TABLE_BITS 32u

/** Key of a neighbour. */
struct leat_fib_neighbour_key {
	uint32_t port;
	uint32_t family;
	uint8_t address[16];
};

static inline unsigned int leat_fib_family(uint8_t family)
{
	return family == AF_INET6;
}

static inline uint32_t leat_fib_bits(unsigned int family)
{
	return family ? 128 : 32;
}

/** Begins a key; IPv4 has one table for local and main. */
static inline void leat_fib_key_init(struct leat_fib_key *key, unsigned int family, uint32_t table, const uint8_t *dst)
{
	if (!table || (!family && table == LEAT_FIB_TABLE_LOCAL))
		table = LEAT_FIB_TABLE_MAIN;
	table = __builtin_bswap32(table);
	memset(key, 0, sizeof(*key));
	memcpy(key->table, &table, sizeof(table));
	memcpy(key->dst, dst, leat_fib_bits(family) / 8);
}

/* ---- fib_state.c; writers, under the lock ---- */

int leat_fib_state_create(const struct leat_fib *fib, struct leat_fib_state **state);
/** Nobody may see it any more. NULL allowed. */
void leat_fib_state_destroy(struct leat_fib_state *state);
/** @alone: -ENOTUNIQ when another route counts for as much. */
int leat_fib_state_add_route(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_route *route,
			     bool alone);
int leat_fib_state_delete_route(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_route *route);
int leat_fib_state_set_neighbour(struct leat_fib_state *state, const struct leat_fib_neighbour *neighbour);
int leat_fib_state_delete_neighbour(struct leat_fib_state *state, const struct leat_fib_neighbour *neighbour);
int leat_fib_state_set_port(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_port *port);
int leat_fib_state_delete_port(struct leat_fib *fib, struct leat_fib_state *state, uint32_t port);
/** Frees @old after a grace period, and what was retired before and has had one. NULL allowed. */
void leat_fib_retire(struct leat_fib *fib, struct leat_fib_old *old);

/** leat_fib_route_add(); or -ENOTUNIQ, with nothing done, when another route of the prefix counts for as much. */
int leat_fib_route_add_alone(struct leat_fib *fib, const struct leat_fib_route *route);

/* ---- look-ups ---- */

/** The port of that number, or NULL. */
static inline const struct leat_fib_port_info *leat_fib_port_at(const struct leat_fib_state *state, uint32_t port)
{
	/* pairs with set_port() in fib_state.c */
	return port < LEAT_PORTS_MAX ? __atomic_load_n(&state->port[port], __ATOMIC_ACQUIRE) : NULL;
}

/** The source address for packets to @via (0.0.0.0: none) out of @port, of that scope; all zero when there is none. */
void leat_fib_source4(const struct leat_fib_state *state, uint32_t port, const uint8_t *via, uint8_t scope,
		      uint8_t *source);
/** The same for packets to @dst; false when there is none. RFC 6724, 5. */
bool leat_fib_source6(const struct leat_fib_state *state, uint32_t port, const uint8_t *dst, uint8_t *source);

/** Where there is no table: of all ports, @own exists, and it does not forward. */
int leat_fib_lookup_none(const struct leat_net *net, uint32_t own, const struct leat_fib_lookup *params,
			 uint32_t flags);
/** bpf_fib_lookup(); ends with a NULL name. */
extern const struct leat_bpf_helper leat_fib_helpers[];

#endif
