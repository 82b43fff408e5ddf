/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bridge.h: a learning Ethernet bridge for the PASS traffic of its ports (IEEE 802.1Q, 7 and 8, without VLANs).
 *
 * Every worker forwards through one table: look-ups take no lock, learning a new address takes one.
 */
#ifndef LEAT_BRIDGE_H
#define LEAT_BRIDGE_H

#include <leat/netdev.h>

LEAT_BEGIN_DECLS

struct leat_bridge;

#define LEAT_BRIDGE_PORTS_MAX 64u

struct leat_bridge_opts {
	size_t size;        /* sizeof(struct leat_bridge_opts) */
	const char *name;   /* copied, 31 bytes are kept */
	uint64_t ageing_ns; /* an address not heard of for so long is forgotten; 0: 300 s (IEEE 802.1Q, table 8-6) */
	uint32_t entries;   /* addresses the table can hold; rounded up to a power of two; 0: 4096 */
};

struct leat_bridge_stats {
	uint64_t forwarded; /* packets sent to the one port that is right */
	uint64_t flooded;   /* packets sent to all others */
	uint64_t learned;   /* addresses entered */
	uint64_t moved;     /* addresses seen on another port than before */
	uint64_t evicted;   /* entries pushed out by newer ones */
};

/** Makes an empty bridge. *control*. Returns 0, -EINVAL, -E2BIG, -ENOMEM. */
LEAT_API int leat_bridge_create(struct leat_net *net, const struct leat_bridge_opts *opts, struct leat_bridge **bridge);
/** Takes every port out and frees the bridge after a grace period. NULL allowed. *control*. */
LEAT_API void leat_bridge_destroy(struct leat_bridge *bridge);
/** Adds a port, whose PASS traffic then goes to the bridge. Returns 0, -EBUSY (it has a handler), -ENOSPC, -ENOMEM. */
LEAT_API int leat_bridge_add_port(struct leat_bridge *bridge, struct leat_netdev *dev);
/** Takes a port out; returns 0 or -ENOENT. *control*. */
LEAT_API int leat_bridge_del_port(struct leat_bridge *bridge, struct leat_netdev *dev);
LEAT_API const char *leat_bridge_name(const struct leat_bridge *bridge);
LEAT_API void leat_bridge_stats(const struct leat_bridge *bridge, struct leat_bridge_stats *stats);
/** The port at which @mac was last heard of within the ageing time, or NULL. *control*. */
LEAT_API struct leat_netdev *leat_bridge_lookup(struct leat_bridge *bridge, const uint8_t mac[6]);

LEAT_END_DECLS

#endif
