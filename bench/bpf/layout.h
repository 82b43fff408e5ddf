/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.h: what programs and bench agree on: the packet, the maps, and the names of both. */
#ifndef LEAT_BENCH_BPF_LAYOUT_H
#define LEAT_BENCH_BPF_LAYOUT_H

/* The packet: Ethernet, IPv4, UDP, and a payload that begins with the state of its random numbers and ends with sums. */
#define PACKET_LEN 130
#define PACKET_PAYLOAD 42
#define PAYLOAD_LEN (PACKET_LEN - PACKET_PAYLOAD)

#define PACKET_SOURCE 0x0a000001u
#define PACKET_DEST 0xc0a80001u
#define PACKET_SPORT 1234
#define PACKET_DPORT 53

/* Look-ups of one packet. */
#define LOOKUPS 16
#define ARRAY_ENTRIES 1024u
#define HASH_ENTRIES 1024u
#define LARGE_ENTRIES (1u << 20)
#define LPM_ENTRIES 1024u
#define BACKENDS 256u

/** The programs: PROGRAM(name in the object, what it does). The first one's time is taken off the others'. */
#define BENCH_PROGRAMS                                                                   \
	BENCH_PROGRAM(empty, "returns XDP_PASS")                                         \
	BENCH_PROGRAM(rewrite, "parses, TTL, checksum, MAC addresses")                   \
	BENCH_PROGRAM(balance, "parses, hashes the flow, 3 look-ups, writes a MAC address") \
	BENCH_PROGRAM(array, "16 look-ups in an array of 1024")                          \
	BENCH_PROGRAM(hash, "16 look-ups in a hash of 1024, found")                      \
	BENCH_PROGRAM(hash_miss, "16 look-ups in it, not found")                         \
	BENCH_PROGRAM(hash_large, "16 look-ups in a hash of 1048576, found")             \
	BENCH_PROGRAM(lru, "16 look-ups in an LRU hash of 1024, found")                  \
	BENCH_PROGRAM(lpm, "16 look-ups among 1024 IPv4 prefixes")                       \
	BENCH_PROGRAM(jhash, "4 jhash rounds of 20 bytes")                               \
	BENCH_PROGRAM(checksum, "IPv4 header checksum, whole")                           \
	BENCH_PROGRAM(bytes, "a sum over 64 bytes, one at a time")                       \
	BENCH_PROGRAM(compute, "jhash, checksum, bytes")

/** The maps: BENCH_MAP(name). */
#define BENCH_MAPS                                       \
	BENCH_MAP(vips)                                  \
	BENCH_MAP(backends)                              \
	BENCH_MAP(counters)                              \
	BENCH_MAP(small_array)                           \
	BENCH_MAP(small_hash)                            \
	BENCH_MAP(large_hash)                            \
	BENCH_MAP(small_lru)                             \
	BENCH_MAP(prefixes)

#endif
