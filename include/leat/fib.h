/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib.h: a forwarding table: where a packet goes next, and under which MAC addresses. It answers bpf_fib_lookup().
 *
 *   routes       (table, prefix) -> next hop, port, MTU, metric     longest prefix first, then tos, then metric
 *   neighbours   (port, address) -> MAC address, state
 *   ports        number -> own MAC address, MTUs, whether it forwards, own addresses
 *
 * leat_fib_attach() makes it the one that the programs of an environment ask. Its content is put in by calls, by the
 * section "fib" of a configuration (leat.yaml(5)), or mirrored from the kernel (leat_fib_mirror_start()).
 *
 * Threads: changes may be made by *any* thread that is no worker, at any time; a lock orders them. Look-ups are the
 * workers'; they take no lock and see each change as a whole. What was replaced is freed after a grace period.
 *
 * The meaning is that of Linux 6.18 without rules for policy routing: IPv4's tables local (255) and main (254) are one,
 * IPv6 asks local before main; fwmark is taken and has no effect.
 */
#ifndef LEAT_FIB_H
#define LEAT_FIB_H

#include <leat/bpf.h>
#include <leat/netdev.h>

LEAT_BEGIN_DECLS

struct leat_fib;

#define LEAT_FIB_TABLE_DEFAULT 253u
#define LEAT_FIB_TABLE_MAIN 254u
#define LEAT_FIB_TABLE_LOCAL 255u

/** Routes per address family, and neighbours, that a table may have at most. */
#define LEAT_FIB_ROUTES_MAX (1u << 24)
#define LEAT_FIB_NEIGHBOURS_MAX (1u << 22)

struct leat_fib_opts {
	size_t size;          /* sizeof(struct leat_fib_opts) */
	struct leat_net *net; /* whose workers look up, and whose ports exist; or NULL */
	struct leat_epoch *epoch; /* without @net: grace periods of who looks up (private type); NULL: who changes it */
	uint32_t routes;      /* prefixes per family, 1..LEAT_FIB_ROUTES_MAX; 0: 2^20. Memory is touched as it is used */
	uint32_t neighbours;  /* whose MAC address is known, 1..LEAT_FIB_NEIGHBOURS_MAX; 0: 65536 */
};

/** Makes an empty table. *control*. Returns 0, -EINVAL, -E2BIG, -ENOMEM. */
LEAT_API int leat_fib_create(const struct leat_fib_opts *opts, struct leat_fib **fib);
/** Frees it; nobody may look up any more: detached, or the environment gone. NULL allowed. *control*. */
LEAT_API void leat_fib_destroy(struct leat_fib *fib);
/**
 * The table that programs of @env ask by bpf_fib_lookup(); NULL: none, and every port is one that does not forward.
 * The caller waits for a grace period before it frees the one before (leat_net_synchronize()). *control*.
 */
LEAT_API void leat_fib_attach(struct leat_fib *fib, struct leat_bpf_env *env);

/* ---- routes ---- */

/** Types of routes: the kernel's RTN_* numbers. Any other is as LOCAL: not forwarded. */
enum leat_fib_type {
	LEAT_FIB_UNICAST = 1,
	LEAT_FIB_LOCAL = 2,
	LEAT_FIB_BROADCAST = 3,
	LEAT_FIB_ANYCAST = 4,
	LEAT_FIB_MULTICAST = 5,
	LEAT_FIB_BLACKHOLE = 6,
	LEAT_FIB_UNREACHABLE = 7,
	LEAT_FIB_PROHIBIT = 8,
	LEAT_FIB_THROW = 9,
};

#define LEAT_FIB_HOP 0x1u    /* one of several next hops of the route of this table, prefix, tos and metric */
#define LEAT_FIB_ENCAP 0x2u  /* it wants an encapsulation, which look-ups answer with UNSUPP_LWT */
#define LEAT_FIB_HAS_SRC 0x4u

/** A route, or one of its next hops. Addresses are in network order; IPv4's in the first 4 bytes. */
struct leat_fib_route {
	uint8_t family;     /* of the prefix: AF_INET, AF_INET6 */
	uint8_t len;        /* bits of the prefix: 0..32, 0..128 */
	uint8_t type;       /* enum leat_fib_type */
	uint8_t tos;        /* IPv4: matches only packets with these bits (0x1c of them count); 0: all */
	uint8_t via_family; /* of the next hop: AF_INET, AF_INET6 (also for IPv4 prefixes); 0: on link */
	uint8_t scope;      /* IPv4: RT_SCOPE_*, which source addresses go with it */
	uint8_t weight;     /* LEAT_FIB_HOP: share of the flows; 0: 1 */
	uint8_t flags;      /* LEAT_FIB_HOP... */
	uint32_t table;     /* 0: LEAT_FIB_TABLE_MAIN */
	uint32_t metric;
	uint32_t port;      /* number; 0: one that the datapath does not have, so packets are not forwarded */
	uint32_t mtu;       /* bytes; 0: the port's */
	uint8_t dst[16];    /* prefix; bits behind it are ignored */
	uint8_t via[16];
	uint8_t src[16];    /* LEAT_FIB_HAS_SRC: preferred source */
};

/**
 * Adds a route, behind those of its prefix that count for as much. *any* but workers.
 * Returns 0; -EEXIST (table, prefix, tos, metric, type, port and next hop are those of another); -ENOSPC; -EINVAL;
 * -ENOMEM.
 */
LEAT_API int leat_fib_route_add(struct leat_fib *fib, const struct leat_fib_route *route);
/**
 * Takes out the route of that table, prefix, tos, metric, type, port and next hop. *any* but workers. Returns 0,
 * -ENOENT, -EINVAL, -ENOMEM.
 */
LEAT_API int leat_fib_route_delete(struct leat_fib *fib, const struct leat_fib_route *route);

/* ---- neighbours ---- */

struct leat_fib_neighbour {
	uint32_t port;
	uint8_t family;       /* AF_INET, AF_INET6 */
	bool valid;           /* its MAC address is known; else it is as if there were none */
	uint8_t mac[6];
	uint8_t address[16];
};

/** Adds a neighbour or replaces it. *any* but workers. Returns 0, -E2BIG (full), -EINVAL, -ENOMEM. */
LEAT_API int leat_fib_neighbour_set(struct leat_fib *fib, const struct leat_fib_neighbour *neighbour);
/** Takes it out, by port, family and address. *any* but workers. Returns 0 or -ENOENT. */
LEAT_API int leat_fib_neighbour_delete(struct leat_fib *fib, const struct leat_fib_neighbour *neighbour);

/* ---- ports ---- */

#define LEAT_FIB_SECONDARY 0x1u /* IPv4: not chosen */
#define LEAT_FIB_DEPRECATED 0x2u /* IPv6: chosen if there is no other */
#define LEAT_FIB_TENTATIVE 0x4u /* IPv6: not chosen */
#define LEAT_FIB_TEMPORARY 0x8u /* IPv6: chosen after others */

/** An address of a port, from which LEAT_FIB_LOOKUP_SRC chooses. It makes no routes. */
struct leat_fib_address {
	uint8_t family, len;
	uint8_t scope;      /* IPv4: RT_SCOPE_* */
	uint8_t flags;      /* LEAT_FIB_SECONDARY... */
	uint8_t address[16];
};

#define LEAT_FIB_FORWARD4 0x1u
#define LEAT_FIB_FORWARD6 0x2u
#define LEAT_FIB_ONE_NEIGHBOUR 0x4u /* loopback, point to point: IPv4 neighbours are found by address 0.0.0.0 */
#define LEAT_FIB_OWN_ADDRESSES 0x8u /* IPv6: sources are this port's own addresses only */

struct leat_fib_port {
	uint32_t port;          /* 1..LEAT_PORTS_MAX - 1 */
	uint32_t flags;         /* LEAT_FIB_FORWARD4... */
	uint32_t mtu, mtu6;     /* bytes; of IPv6, 0: as mtu */
	uint8_t mac[6];
	unsigned int n_addresses;
	const struct leat_fib_address *addresses; /* copied; the first count first */
};

/** Adds a port or replaces it. *any* but workers. Returns 0, -EINVAL, -ENOMEM. */
LEAT_API int leat_fib_port_set(struct leat_fib *fib, const struct leat_fib_port *port);
/** Takes it out; its routes and neighbours stay. *any* but workers. Returns 0 or -ENOENT. */
LEAT_API int leat_fib_port_delete(struct leat_fib *fib, uint32_t port);

/* ---- all at once ---- */

/**
 * From here on changes go to a new, empty table, which leat_fib_commit() puts in the place of the one that look-ups
 * see, and leat_fib_abandon() forgets. One at a time. *any* but workers. Returns 0, -EBUSY, -ENOMEM.
 */
LEAT_API int leat_fib_begin(struct leat_fib *fib);
LEAT_API void leat_fib_commit(struct leat_fib *fib);
LEAT_API void leat_fib_abandon(struct leat_fib *fib);

struct leat_fib_counts {
	unsigned int routes4, routes6, neighbours, ports; /* routes: next hops */
};
/** What there is, changes of an open leat_fib_begin() left out. *any* but workers. */
LEAT_API void leat_fib_count(struct leat_fib *fib, struct leat_fib_counts *counts);

/* ---- look-up ---- */

/* Flags of bpf_fib_lookup(), by the numbers of linux/bpf.h; those for which older headers have no name are here, too. */
#define LEAT_FIB_LOOKUP_DIRECT 0x1u     /* one table: main, or with TBID that of tbid */
#define LEAT_FIB_LOOKUP_OUTPUT 0x2u     /* from the view of egress: ifindex is where it leaves */
#define LEAT_FIB_LOOKUP_SKIP_NEIGH 0x4u /* no MAC addresses */
#define LEAT_FIB_LOOKUP_TBID 0x8u
#define LEAT_FIB_LOOKUP_SRC 0x10u       /* chooses a source address */
#define LEAT_FIB_LOOKUP_MARK 0x20u      /* fwmark counts in rules: there are none */

/** What it answers, by the numbers of linux/bpf.h (BPF_FIB_LKUP_RET_*). */
enum leat_fib_result {
	LEAT_FIB_SUCCESS,
	LEAT_FIB_RET_BLACKHOLE,
	LEAT_FIB_RET_UNREACHABLE,
	LEAT_FIB_RET_PROHIBIT,
	LEAT_FIB_RET_NOT_FWDED,
	LEAT_FIB_RET_FWD_DISABLED,
	LEAT_FIB_RET_UNSUPP_LWT,
	LEAT_FIB_RET_NO_NEIGH,
	LEAT_FIB_RET_FRAG_NEEDED,
	LEAT_FIB_RET_NO_SRC_ADDR,
};

/** struct bpf_fib_lookup of Linux 6.18: question and answer in one. Ports and addresses are in network order. */
struct leat_fib_lookup {
	uint8_t family;      /* AF_INET, AF_INET6; answer: of the next hop */
	uint8_t l4_protocol;
	uint16_t sport, dport;
	uint16_t tot_len;    /* bytes from the network header on, 0: not compared; answer: the MTU */
	uint32_t ifindex;    /* where it came in (OUTPUT: where it goes out); answer: where it goes out */
	uint32_t tos;        /* IPv4: the first byte in memory; IPv6: flowinfo; answer: the route's metric */
	uint8_t src[16];     /* SRC: answer, too */
	uint8_t dst[16];     /* answer: the next hop, if there is one */
	uint32_t tbid;       /* TBID: table; answer: VLAN, always 0 */
	uint8_t smac[6];     /* answer; MARK: the first four bytes are the mark */
	uint8_t dmac[6];     /* answer */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_fib_lookup) == 64, "programs have 64 bytes for it");

/**
 * Asks as bpf_fib_lookup() does, and changes @params in the same cases. Returns enum leat_fib_result; -ENODEV (no such
 * port); -EAFNOSUPPORT; -EINVAL (an unknown flag). *worker*, or who else leat_fib_opts says.
 */
LEAT_API int leat_fib_lookup(struct leat_fib *fib, struct leat_fib_lookup *params, uint32_t flags);

/* ---- the kernel's ---- */

struct leat_fib_mirror;

struct leat_fib_mirror_port {
	const char *ifname;
	uint32_t port;
};

struct leat_fib_mirror_opts {
	size_t size;                 /* sizeof(struct leat_fib_mirror_opts) */
	const char *netns;           /* network namespace: name (ip-netns(8)) or path; NULL: the caller's */
	const struct leat_fib_mirror_port *ports; /* copied: interfaces that are ports */
	unsigned int n_ports;        /* 0: every interface is the port of its own number, if that is one */
	const struct leat_log *log;  /* borrowed; NULL: silent */
};

/**
 * Fills @fib with the routes, neighbours, interfaces and addresses of a network namespace, and keeps it so by a thread
 * of its own that listens to the kernel; nobody else may change @fib meanwhile. Routes by interfaces that are no port
 * are there and lead nowhere. When notifications were lost all is read anew. *control*.
 * Returns 0; -EOPNOTSUPP (built without libmnl); -ENOENT (no such namespace) and other errnos; all said in @diag.
 */
LEAT_API int leat_fib_mirror_start(struct leat_fib *fib, const struct leat_fib_mirror_opts *opts,
				   struct leat_diag *diag, struct leat_fib_mirror **mirror);
/** Ends the thread; what was mirrored stays in the table. NULL allowed. *control*. */
LEAT_API void leat_fib_mirror_stop(struct leat_fib_mirror *mirror);

struct leat_fib_mirror_stats {
	uint64_t events;  /* notifications that were applied one by one */
	uint64_t dumps;   /* times that all was read */
	uint64_t lost;    /* times that notifications were lost (ENOBUFS) */
	uint64_t refused; /* routes and neighbours that the table could not take */
};
LEAT_API void leat_fib_mirror_stats(const struct leat_fib_mirror *mirror, struct leat_fib_mirror_stats *stats);

LEAT_END_DECLS

#endif
