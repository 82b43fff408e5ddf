/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop.h: why a packet ended. Each reason has its own counter per port and queue.
 */
#ifndef LEAT_DROP_H
#define LEAT_DROP_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

/* name, text for people */
#define LEAT_DROP_REASONS(X)                                                                     \
	X(RUNT, "runt", "shorter than an Ethernet header")                                       \
	X(OVERSIZE, "oversize", "longer than the port's MTU allows")                             \
	X(TRUNCATED, "truncated", "the capture holds only part of it")                           \
	X(NO_MEMORY, "no_memory", "no buffer was left")                                          \
	X(RX_ERROR, "rx_error", "the source gave an error")                                      \
	X(NO_HANDLER, "no_handler", "passed, but the port is in no bridge")                      \
	X(XDP_DROP, "xdp_drop", "a program said DROP")                                           \
	X(XDP_ABORTED, "xdp_aborted", "a program said ABORTED or something unknown")             \
	X(XDP_FRAGS, "xdp_frags", "several buffers, too long for the one that the program takes") \
	X(XDP_REDIRECT, "xdp_redirect", "redirected to no port")                                 \
	X(EGRESS_DROP, "egress_drop", "the program of a map's entry said DROP")                  \
	X(EGRESS_ABORTED, "egress_aborted", "the program of a map's entry said neither PASS nor DROP") \
	X(NO_XMIT, "no_xmit", "the port cannot transmit")                                        \
	X(TX_FULL, "tx_full", "the transmit queue was full")                                     \
	X(TX_DOWN, "tx_down", "the port is down")                                                \
	X(TX_ERROR, "tx_error", "the system refused it")                                         \
	X(BRIDGE_SAME_PORT, "bridge_same_port", "its destination is where it came from")         \
	X(BRIDGE_NO_PORT, "bridge_no_port", "no other port to flood to")                         \
	X(BRIDGE_BAD_SOURCE, "bridge_bad_source", "its source is a group address")               \
	X(BRIDGE_RESERVED, "bridge_reserved", "its destination never crosses a bridge")          \
	X(STOPPED, "stopped", "still queued when the port was closed")

#define LEAT_DROP_ENUM(name, id, text) LEAT_DROP_##name,
enum leat_drop_reason {
	LEAT_DROP_REASONS(LEAT_DROP_ENUM)
	LEAT_DROP_MAX
};
#undef LEAT_DROP_ENUM

/** "xdp_drop", or "unknown". */
LEAT_API const char *leat_drop_name(unsigned int reason);
/** "a program said DROP", or "unknown". */
LEAT_API const char *leat_drop_text(unsigned int reason);

LEAT_END_DECLS

#endif
