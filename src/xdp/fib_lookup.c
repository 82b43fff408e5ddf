/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib_lookup.c: where a packet goes next: bpf_fib_lookup() and the look-up that it is. Workers, without a lock.
 *
 * The meaning, and in each case what is written to the struct and what is left alone, is that of Linux 6.18 without
 * rules for policy routing; tests/bpf_fib.c compares the two.
 */
#include "xdp/fib.h"

#include <errno.h>

#include "bpf/map/mem.h"

#define FLAGS                                                                                                          \
	(LEAT_FIB_LOOKUP_DIRECT | LEAT_FIB_LOOKUP_OUTPUT | LEAT_FIB_LOOKUP_SKIP_NEIGH | LEAT_FIB_LOOKUP_TBID |         \
	 LEAT_FIB_LOOKUP_SRC | LEAT_FIB_LOOKUP_MARK)
/** Of tos, what routes are compared with. */
#define TOS_MASK 0x1cu
/** Largest MTUs that IPv4 and IPv6 make use of. */
#define MTU4_MAX 0xfff0u
#define MTU6_MAX (0xffffu + 40)
/** RFC 8200, 5. */
#define MTU6_MIN 1280u

/** A look-up on its way. */
struct query {
	const struct leat_fib_state *state;
	struct leat_fib_lookup *params;
	uint32_t flags;
	unsigned int family;
	uint8_t tos;
	uint32_t port;   /* as asked */
	uint8_t dst[16]; /* as asked */
	const struct leat_fib_route *route;
};

/* ---- routes ---- */

/** The routes of the longest prefix of at most @len bits, or NULL. */
static const struct leat_fib_prefix *longest(const struct query *q, struct leat_fib_key *key, uint32_t len)
{
	struct leat_bpf_map *map = (struct leat_bpf_map *)&q->state->routes[q->family];
	const uint64_t *value;

	key->len = LEAT_FIB_TABLE_BITS + len;
	value = map->type->lookup(map, key, 0);
	return value ? (const struct leat_fib_prefix *)(uintptr_t)__atomic_load_n(value, __ATOMIC_RELAXED) : NULL;
}

/** What a route of that type says; 0: it is one to take. */
static int verdict_of(uint8_t type)
{
	switch (type) {
	case LEAT_FIB_BLACKHOLE:
		return LEAT_FIB_RET_BLACKHOLE;
	case LEAT_FIB_UNREACHABLE:
		return LEAT_FIB_RET_UNREACHABLE;
	case LEAT_FIB_PROHIBIT:
		return LEAT_FIB_RET_PROHIBIT;
	case LEAT_FIB_UNICAST:
		return 0;
	default:
		return LEAT_FIB_RET_NOT_FWDED;
	}
}

/** A hash of who talks with whom, for a choice among next hops. */
static uint32_t flow_hash(const struct query *q)
{
	uint64_t word[4];

	memcpy(word, q->params->src, 16);
	memcpy(word + 2, q->dst, 16);
	if (!q->family) {
		word[0] = (uint32_t)word[0];
		word[1] = word[3] = 0;
		word[2] = (uint32_t)word[2];
	}
	return (uint32_t)(leat_bpf_mix(leat_bpf_mix(word[0], word[1]), leat_bpf_mix(word[2], word[3])) >> 32);
}

static bool same_hops(const struct leat_fib_route *a, const struct leat_fib_route *b)
{
	return b->flags & LEAT_FIB_HOP && a->table == b->table && a->tos == b->tos && a->metric == b->metric;
}

/** Among the next hops of the route that begins at @i, one by weight. */
static const struct leat_fib_route *choose_hop(const struct query *q, const struct leat_fib_prefix *prefix, uint32_t i)
{
	const struct leat_fib_route *first = &prefix->route[i];
	uint64_t sum = 0, at;
	uint32_t n;

	for (n = i; n < prefix->n && same_hops(first, &prefix->route[n]); n++)
		sum += prefix->route[n].weight;
	at = flow_hash(q) * sum >> 32;
	for (; at >= prefix->route[i].weight && i + 1 < n; i++)
		at -= prefix->route[i].weight;
	return &prefix->route[i];
}

/** IPv4: the first of a prefix that matches; false: none. */
static bool match4(struct query *q, const struct leat_fib_prefix *prefix)
{
	bool output = q->flags & LEAT_FIB_LOOKUP_OUTPUT;
	const struct leat_fib_route *route;
	uint32_t i;

	for (i = 0; i < prefix->n; i++) {
		route = &prefix->route[i];
		if (route->tos && route->tos != (q->tos & TOS_MASK))
			continue;
		q->route = route;
		/* what turns packets away does so at every port */
		if (route->type >= LEAT_FIB_BLACKHOLE || !output)
			break;
		if (route->port == q->port)
			return true;
	}
	if (i < prefix->n && route->flags & LEAT_FIB_HOP && !output)
		q->route = choose_hop(q, prefix, i);
	return i < prefix->n;
}

/** IPv6: of those with the least metric, the first of the port that is asked of, else the first. */
static bool match6(struct query *q, const struct leat_fib_prefix *prefix)
{
	const struct leat_fib_route *first = &prefix->route[0];
	uint32_t i;

	for (i = 0; i < prefix->n && prefix->route[i].metric == first->metric; i++)
		if (prefix->route[i].port == q->port)
			break;
	if (i == prefix->n || prefix->route[i].metric != first->metric)
		i = 0;
	q->route = &prefix->route[i];
	if (q->route->flags & LEAT_FIB_HOP && !(q->flags & LEAT_FIB_LOOKUP_OUTPUT)) {
		for (i = 0; !same_hops(q->route, &prefix->route[i]); i++)
			;
		q->route = choose_hop(q, prefix, i);
	}
	return true;
}

/** Sets q->route by one table. Returns 0 or a result. */
static int ask_table(struct query *q, uint32_t table)
{
	uint32_t len = leat_fib_bits(q->family);
	const struct leat_fib_prefix *prefix;
	struct leat_fib_key key;

	leat_fib_key_init(&key, q->family, table, q->dst);
	while ((prefix = longest(q, &key, len))) {
		if (q->family ? match6(q, prefix) : match4(q, prefix))
			return verdict_of(q->route->type);
		if (!prefix->len)
			break;
		len = prefix->len - 1u;
	}
	q->route = NULL;
	return LEAT_FIB_RET_NOT_FWDED;
}

static int find_route(struct query *q)
{
	uint32_t table = LEAT_FIB_TABLE_MAIN;
	int result;

	if (q->flags & LEAT_FIB_LOOKUP_DIRECT) {
		if (q->flags & LEAT_FIB_LOOKUP_TBID) {
			table = q->params->tbid;
			q->params->tbid = 0;
		}
		return ask_table(q, table);
	}
	if (q->family) {
		result = ask_table(q, LEAT_FIB_TABLE_LOCAL);
		return q->route ? result : ask_table(q, LEAT_FIB_TABLE_MAIN);
	}
	result = ask_table(q, LEAT_FIB_TABLE_MAIN);
	if (q->route && q->route->type != LEAT_FIB_THROW)
		return result;
	return ask_table(q, LEAT_FIB_TABLE_DEFAULT);
}

/* ---- what is said of a route ---- */

static uint32_t mtu_of(const struct query *q, const struct leat_fib_port_info *out)
{
	uint32_t mtu = out->mtu[q->family];

	if (q->route->mtu)
		return q->route->mtu;
	if (!q->family)
		return mtu < MTU4_MAX ? mtu : MTU4_MAX;
	mtu = mtu > MTU6_MIN ? mtu : MTU6_MIN;
	return mtu < MTU6_MAX ? mtu : MTU6_MAX;
}

/** The MAC addresses of the next hop and of the port towards it; false: not known. */
static bool find_neighbour(const struct query *q, const struct leat_fib_port_info *out)
{
	struct leat_bpf_map *map = (struct leat_bpf_map *)&q->state->neighbours;
	struct leat_fib_neighbour_key key = {
		.port = q->route->port,
		.family = q->family || q->route->via_family == AF_INET6 ? AF_INET6 : AF_INET,
	};
	const uint64_t *value;
	uint64_t mac;

	if (key.family == AF_INET6)
		memcpy(key.address, q->params->dst, 16);
	else if (!(out->flags & LEAT_FIB_ONE_NEIGHBOUR))
		memcpy(key.address, q->params->dst, 4);
	value = map->type->lookup(map, &key, 0);
	if (!value)
		return false;
	mac = __atomic_load_n(value, __ATOMIC_RELAXED);
	memcpy(q->params->dmac, &mac, sizeof(q->params->dmac));
	memcpy(q->params->smac, out->mac, sizeof(q->params->smac));
	return true;
}

static bool find_source(const struct query *q)
{
	uint8_t *src = q->params->src;

	if (q->route->flags & LEAT_FIB_HAS_SRC) {
		memcpy(src, q->route->src, leat_fib_bits(q->family) / 8);
		return true;
	}
	if (q->family)
		return leat_fib_source6(q->state, q->route->port, q->dst, src);
	leat_fib_source4(q->state, q->route->port, q->route->via_family == AF_INET ? q->route->via : NULL,
			 q->route->scope, src);
	return true;
}

static int answer(struct query *q)
{
	const struct leat_fib_port_info *out = leat_fib_port_at(q->state, q->route->port);
	struct leat_fib_lookup *params = q->params;
	uint32_t mtu;

	if (!out)
		return LEAT_FIB_RET_NOT_FWDED;
	mtu = mtu_of(q, out);
	if (params->tot_len > mtu) {
		params->tot_len = (uint16_t)mtu;
		return LEAT_FIB_RET_FRAG_NEEDED;
	}
	if (q->route->flags & LEAT_FIB_ENCAP)
		return LEAT_FIB_RET_UNSUPP_LWT;
	params->tos = q->route->metric;
	params->ifindex = q->route->port;
	if (q->route->via_family == AF_INET6) {
		params->family = AF_INET6;
		memcpy(params->dst, q->route->via, 16);
	} else if (q->route->via_family) {
		memcpy(params->dst, q->route->via, 4);
	}
	if (q->flags & LEAT_FIB_LOOKUP_SRC && !find_source(q))
		return LEAT_FIB_RET_NO_SRC_ADDR;
	if (!(q->flags & LEAT_FIB_LOOKUP_SKIP_NEIGH) && !find_neighbour(q, out))
		return LEAT_FIB_RET_NO_NEIGH;
	params->tbid = 0; /* VLAN: none */
	if (mtu)
		params->tot_len = (uint16_t)mtu;
	return LEAT_FIB_SUCCESS;
}

/* ---- who may ask ---- */

/** Loopback, link-local, multicast: such packets are never forwarded. */
static bool stays_here(const uint8_t *address)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	return address[0] == 0xff || (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) ||
	       !memcmp(address, loopback, sizeof(loopback));
}

/** Returns 0, or what is to be said before any table is asked. */
static int refuse(const struct leat_fib_lookup *params, uint32_t flags)
{
	if (flags & ~FLAGS)
		return -EINVAL;
	if (params->family != AF_INET && params->family != AF_INET6)
		return -EAFNOSUPPORT;
	if (params->family == AF_INET6 && (stays_here(params->dst) || stays_here(params->src)))
		return LEAT_FIB_RET_NOT_FWDED;
	return 0;
}

int leat_fib_lookup_none(const struct leat_net *net, uint32_t own, const struct leat_fib_lookup *params,
			 uint32_t flags)
{
	uint32_t port = params->ifindex;
	int result = refuse(params, flags);

	if (result)
		return result;
	if (port && (port == own || (net && port < LEAT_PORTS_MAX && __atomic_load_n(&net->port[port], __ATOMIC_RELAXED))))
		return LEAT_FIB_RET_FWD_DISABLED;
	return -ENODEV;
}

static int lookup(struct leat_fib *fib, uint32_t own, struct leat_fib_lookup *params, uint32_t flags)
{
	struct query q = {
		/* pairs with leat_fib_commit() */
		.state = __atomic_load_n(&fib->state, __ATOMIC_ACQUIRE),
		.params = params,
		.flags = flags,
		.family = leat_fib_family(params->family),
		.port = params->ifindex,
	};
	const struct leat_fib_port_info *in = leat_fib_port_at(q.state, params->ifindex);
	int result = refuse(params, flags);

	if (result)
		return result;
	if (!in)
		return leat_fib_lookup_none(fib->net, own, params, flags);
	if (!(in->flags & (q.family ? LEAT_FIB_FORWARD6 : LEAT_FIB_FORWARD4)))
		return LEAT_FIB_RET_FWD_DISABLED;
	memcpy(&q.tos, &params->tos, sizeof(q.tos));
	memcpy(q.dst, params->dst, leat_fib_bits(q.family) / 8);
	result = find_route(&q);
	return result ? result : answer(&q);
}

int leat_fib_lookup(struct leat_fib *fib, struct leat_fib_lookup *params, uint32_t flags)
{
	return lookup(fib, 0, params, flags);
}

/* ---- the helper ---- */

/** bpf_fib_lookup(ctx, params, plen, flags). */
static uint64_t helper_fib_lookup(struct leat_bpf_run *run, uint64_t ctx, uint64_t mem, uint64_t len, uint64_t flags,
				  uint64_t a5)
{
	/* pairs with leat_fib_attach() */
	struct leat_fib *fib = __atomic_load_n(&run->env->fib, __ATOMIC_ACQUIRE);
	const struct leat_xdp_buff *xdp = run->xdp;
	uint32_t own = xdp->rxq ? xdp->rxq->port : 0;
	struct leat_fib_lookup params;
	int result;

	(void)ctx;
	(void)a5;
	if ((uint32_t)len < sizeof(params))
		return (uint64_t)-EINVAL;
	memcpy(&params, (const void *)(uintptr_t)mem, sizeof(params));
	if (fib)
		result = lookup(fib, own, &params, (uint32_t)flags);
	else
		result = leat_fib_lookup_none(xdp->worker ? xdp->worker->net : NULL, own, &params, (uint32_t)flags);
	memcpy((void *)(uintptr_t)mem, &params, sizeof(params));
	return (uint64_t)(int64_t)result;
}

const struct leat_bpf_helper leat_fib_helpers[] = {
	{ .id = BPF_FUNC_fib_lookup, .name = "fib_lookup", .fn = helper_fib_lookup, .ret = LEAT_BPF_RET_NUMBER,
	  .arg = { LEAT_BPF_ARG_CTX, LEAT_BPF_ARG_MEM_OUT, LEAT_BPF_ARG_SIZE, LEAT_BPF_ARG_ANY } },
	{ .name = NULL },
};
