/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib_state.c: a forwarding table's memory and its changes; see fib.h. Control threads, under the table's lock.
 */
#include "xdp/fib.h"

#include <errno.h>
#include <stdio.h>

#include "base/heap.h"

/** Retired at once at most before a writer waits. */
#define OLD_MAX (1u << 16)
/** Routes of one prefix. */
#define PREFIX_ROUTES_MAX 4096u

/* ---- what was replaced ---- */

void leat_fib_retire(struct leat_fib *fib, struct leat_fib_old *old)
{
	struct leat_epoch *epoch = fib->env->epoch;

	if (old) {
		old->next = NULL;
		old->number = leat_epoch_begin(epoch);
		*(fib->oldest ? &fib->newest->next : &fib->oldest) = old;
		fib->newest = old;
		if (++fib->n_old == OLD_MAX)
			leat_epoch_synchronize(epoch);
	}
	while (fib->oldest && leat_epoch_passed(epoch, fib->oldest->number)) {
		old = fib->oldest;
		fib->oldest = old->next;
		fib->n_old--;
		leat_heap_free(old);
	}
}

/* ---- making ---- */

static int make_map(struct leat_bpf_map *map, const struct leat_bpf_map_type *type, struct leat_bpf_env *env,
		    uint32_t key_size, uint32_t entries)
{
	map->type = type;
	map->env = env;
	map->key_size = key_size;
	map->value_size = sizeof(uint64_t);
	map->max_entries = entries;
	map->map_flags = BPF_F_NO_PREALLOC;
	snprintf(map->name, sizeof(map->name), "fib");
	return leat_bpf_map_create(map, NULL);
}

int leat_fib_state_create(const struct leat_fib *fib, struct leat_fib_state **statep)
{
	struct leat_fib_state *state = leat_heap_zalloc(sizeof(*state));
	unsigned int family;
	int err = 0;

	if (!state)
		return -ENOMEM;
	for (family = 0; !err && family < LEAT_FIB_FAMILIES; family++)
		err = make_map(&state->routes[family], &leat_bpf_lpm_trie, fib->env,
			       (uint32_t)offsetof(struct leat_fib_key, dst) + leat_fib_bits(family) / 8,
			       fib->max_routes);
	if (!err)
		err = make_map(&state->neighbours, &leat_bpf_hash, fib->env, sizeof(struct leat_fib_neighbour_key),
			       fib->max_neighbours);
	if (err)
		leat_fib_state_destroy(state);
	else
		*statep = state;
	return err;
}

static struct leat_fib_prefix *prefix_of(uint64_t value)
{
	return (struct leat_fib_prefix *)(uintptr_t)value;
}

static void free_routes(struct leat_bpf_map *map)
{
	struct leat_fib_key key;
	bool more = map->priv && !leat_bpf_map_next_key(map, NULL, &key);
	struct leat_fib_key at;
	uint64_t value;

	while (more) {
		at = key;
		more = !leat_bpf_map_next_key(map, &at, &key);
		if (!leat_bpf_map_lookup(map, &at, &value))
			leat_heap_free(prefix_of(value));
	}
	leat_bpf_map_destroy(map);
}

void leat_fib_state_destroy(struct leat_fib_state *state)
{
	unsigned int i;

	if (!state)
		return;
	for (i = 0; i < LEAT_FIB_FAMILIES; i++)
		free_routes(&state->routes[i]);
	leat_bpf_map_destroy(&state->neighbours);
	for (i = 0; i < LEAT_PORTS_MAX; i++)
		leat_heap_free(state->port[i]);
	leat_heap_free(state);
}

/* ---- routes ---- */

/** Clears what stands behind the first @len bits. */
static void mask(uint8_t *dst, unsigned int bytes, unsigned int len)
{
	if (len % 8)
		dst[len / 8] &= (uint8_t)(0xff00u >> len % 8);
	len = (len + 7) / 8;
	memset(dst + len, 0, bytes - len);
}

/** Checks a route and brings it to its one form: what it does not say is zero. */
static int normalise(const struct leat_fib_route *route, struct leat_fib_route *own)
{
	const uint8_t known = LEAT_FIB_HOP | LEAT_FIB_ENCAP | LEAT_FIB_HAS_SRC;
	unsigned int family = leat_fib_family(route->family);

	*own = *route;
	if ((route->family != AF_INET && route->family != AF_INET6) || route->len > leat_fib_bits(family) ||
	    route->port >= LEAT_PORTS_MAX || route->flags & ~known || (family && route->tos) ||
	    (route->via_family && route->via_family != AF_INET6 && (route->via_family != AF_INET || family)))
		return -EINVAL;
	if (!own->table)
		own->table = LEAT_FIB_TABLE_MAIN;
	if (own->flags & LEAT_FIB_HOP && !own->weight)
		own->weight = 1;
	mask(own->dst, sizeof(own->dst), own->len);
	mask(own->via, sizeof(own->via),
	     own->via_family ? leat_fib_bits(leat_fib_family(own->via_family)) : 0);
	return 0;
}

/** Whether @a counts before @b or as much as it, of one prefix. */
static bool comes_first(const struct leat_fib_route *a, const struct leat_fib_route *b)
{
	if (a->table != b->table) /* IPv4: local before main */
		return a->table > b->table;
	if (a->tos != b->tos)
		return a->tos > b->tos;
	return a->metric <= b->metric;
}

static bool same_route(const struct leat_fib_route *a, const struct leat_fib_route *b)
{
	return a->table == b->table && a->tos == b->tos && a->metric == b->metric && a->type == b->type &&
	       a->port == b->port && a->via_family == b->via_family && !memcmp(a->via, b->via, sizeof(a->via));
}

/** The index of a route in its prefix; @prefix->n when it is not there. NULL allowed: then 0. */
static uint32_t find_route(const struct leat_fib_prefix *prefix, const struct leat_fib_route *route)
{
	uint32_t i, n = prefix ? prefix->n : 0;

	for (i = 0; i < n && !same_route(&prefix->route[i], route); i++)
		;
	return i;
}

/** Whether one of the prefix counts for as much as @route. NULL allowed. */
static bool has_equal(const struct leat_fib_prefix *prefix, const struct leat_fib_route *route)
{
	uint32_t i, n = prefix ? prefix->n : 0;

	for (i = 0; i < n; i++)
		if (comes_first(&prefix->route[i], route) && comes_first(route, &prefix->route[i]))
			return true;
	return false;
}

/** The routes of exactly that prefix, or NULL. */
static struct leat_fib_prefix *find_prefix(struct leat_fib_state *state, const struct leat_fib_route *route,
					   struct leat_fib_key *key)
{
	unsigned int family = leat_fib_family(route->family);
	struct leat_fib_prefix *prefix;
	uint64_t value;

	leat_fib_key_init(key, family, route->table, route->dst);
	key->len = LEAT_FIB_TABLE_BITS + route->len;
	if (leat_bpf_map_lookup(&state->routes[family], key, &value))
		return NULL;
	prefix = prefix_of(value);
	return prefix->len == route->len ? prefix : NULL; /* else it is a shorter one */
}

static struct leat_fib_prefix *make_prefix(const struct leat_fib_route *route, uint32_t n)
{
	struct leat_fib_prefix *prefix = leat_heap_zalloc(sizeof(*prefix) + n * sizeof(prefix->route[0]));

	if (prefix) {
		prefix->n = n;
		prefix->len = route->len;
	}
	return prefix;
}

/** Puts @prefix in the place of @before, which may be NULL. */
static int publish(struct leat_fib *fib, struct leat_bpf_map *map, const struct leat_fib_key *key,
		   struct leat_fib_prefix *prefix, struct leat_fib_prefix *before)
{
	uint64_t value = (uint64_t)(uintptr_t)prefix;
	int err = leat_bpf_map_update(map, key, &value, BPF_ANY);

	if (err)
		leat_heap_free(prefix);
	else
		leat_fib_retire(fib, before ? &before->old : NULL);
	return err;
}

static unsigned int *route_count(struct leat_fib_state *state, unsigned int family)
{
	return family ? &state->counts.routes6 : &state->counts.routes4;
}

int leat_fib_state_add_route(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_route *route,
			     bool alone)
{
	unsigned int family = leat_fib_family(route->family);
	struct leat_fib_prefix *prefix, *before;
	struct leat_fib_route own;
	struct leat_fib_key key;
	uint32_t i, n;
	int err = normalise(route, &own);

	if (err)
		return err;
	before = find_prefix(state, &own, &key);
	n = before ? before->n : 0;
	if (find_route(before, &own) < n)
		return -EEXIST;
	if (alone && has_equal(before, &own))
		return -ENOTUNIQ;
	if (n == PREFIX_ROUTES_MAX)
		return -ENOSPC;
	prefix = make_prefix(&own, n + 1);
	if (!prefix)
		return -ENOMEM;
	for (i = 0; i < n && comes_first(&before->route[i], &own); i++)
		prefix->route[i] = before->route[i];
	prefix->route[i] = own;
	for (; i < n; i++)
		prefix->route[i + 1] = before->route[i];
	err = publish(fib, &state->routes[family], &key, prefix, before);
	if (!err)
		++*route_count(state, family);
	return err;
}

int leat_fib_state_delete_route(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_route *route)
{
	unsigned int family = leat_fib_family(route->family);
	struct leat_fib_prefix *prefix, *before;
	struct leat_fib_route own;
	struct leat_fib_key key;
	uint32_t i, at;
	int err = normalise(route, &own);

	if (err)
		return err;
	before = find_prefix(state, &own, &key);
	at = find_route(before, &own);
	if (!before || at == before->n)
		return -ENOENT;
	if (before->n == 1) {
		err = leat_bpf_map_delete(&state->routes[family], &key);
		if (!err)
			leat_fib_retire(fib, &before->old);
	} else {
		prefix = make_prefix(&own, before->n - 1);
		if (!prefix)
			return -ENOMEM;
		for (i = 0; i < prefix->n; i++)
			prefix->route[i] = before->route[i + (i >= at)];
		err = publish(fib, &state->routes[family], &key, prefix, before);
	}
	if (!err)
		--*route_count(state, family);
	return err;
}

/* ---- neighbours ---- */

static int neighbour_key(const struct leat_fib_neighbour *neighbour, struct leat_fib_neighbour_key *key)
{
	unsigned int family = leat_fib_family(neighbour->family);

	if ((neighbour->family != AF_INET && neighbour->family != AF_INET6) || !neighbour->port ||
	    neighbour->port >= LEAT_PORTS_MAX)
		return -EINVAL;
	memset(key, 0, sizeof(*key));
	key->port = neighbour->port;
	key->family = neighbour->family;
	memcpy(key->address, neighbour->address, leat_fib_bits(family) / 8);
	return 0;
}

int leat_fib_state_delete_neighbour(struct leat_fib_state *state, const struct leat_fib_neighbour *neighbour)
{
	struct leat_fib_neighbour_key key;
	int err = neighbour_key(neighbour, &key);

	if (!err)
		err = leat_bpf_map_delete(&state->neighbours, &key);
	if (!err)
		state->counts.neighbours--;
	return err;
}

int leat_fib_state_set_neighbour(struct leat_fib_state *state, const struct leat_fib_neighbour *neighbour)
{
	struct leat_fib_neighbour_key key;
	int err = neighbour_key(neighbour, &key);
	uint64_t value = 0;
	bool there;

	if (err)
		return err;
	if (!neighbour->valid) {
		err = leat_fib_state_delete_neighbour(state, neighbour);
		return err == -ENOENT ? 0 : err;
	}
	there = !leat_bpf_map_lookup(&state->neighbours, &key, &value);
	value = 0;
	memcpy(&value, neighbour->mac, sizeof(neighbour->mac));
	err = leat_bpf_map_update(&state->neighbours, &key, &value, BPF_ANY);
	if (!err)
		state->counts.neighbours += !there;
	return err;
}

/* ---- ports ---- */

int leat_fib_state_set_port(struct leat_fib *fib, struct leat_fib_state *state, const struct leat_fib_port *port)
{
	struct leat_fib_port_info *info, *before;

	if (!port->port || port->port >= LEAT_PORTS_MAX || port->n_addresses > 4096)
		return -EINVAL;
	info = leat_heap_zalloc(sizeof(*info) + port->n_addresses * sizeof(info->address[0]));
	if (!info)
		return -ENOMEM;
	info->flags = port->flags;
	info->mtu[0] = port->mtu;
	info->mtu[1] = port->mtu6 ? port->mtu6 : port->mtu;
	memcpy(info->mac, port->mac, sizeof(info->mac));
	info->n_addresses = port->n_addresses;
	if (port->n_addresses)
		memcpy(info->address, port->addresses, port->n_addresses * sizeof(info->address[0]));
	before = state->port[port->port];
	/* pairs with leat_fib_port_at() */
	__atomic_store_n(&state->port[port->port], info, __ATOMIC_RELEASE);
	leat_fib_retire(fib, before ? &before->old : NULL);
	state->counts.ports += !before;
	return 0;
}

int leat_fib_state_delete_port(struct leat_fib *fib, struct leat_fib_state *state, uint32_t port)
{
	struct leat_fib_port_info *before = port < LEAT_PORTS_MAX ? state->port[port] : NULL;

	if (!before)
		return -ENOENT;
	__atomic_store_n(&state->port[port], NULL, __ATOMIC_RELAXED);
	leat_fib_retire(fib, &before->old);
	state->counts.ports--;
	return 0;
}
