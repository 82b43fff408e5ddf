/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packets.h: packets from a seed, the same every time: ARP, IPv4 and IPv6 with what they carry, tagged or not, of all
 * lengths, cut short or whole, and noise. Addresses and ports come from a few, so that map contents can be chosen that
 * some packets hit.
 */
#ifndef LEAT_TESTS_BPF_PACKETS_H
#define LEAT_TESTS_BPF_PACKETS_H

#include <stddef.h>
#include <stdint.h>

#define PACKET_MIN 14u
#define PACKET_MAX 1514u

/** A generator of numbers: any seed will do. */
struct numbers {
	uint64_t state;
};

uint64_t numbers_next(struct numbers *n);
/** Below @bound, which is not 0. */
uint32_t numbers_below(struct numbers *n, uint32_t bound);
void numbers_fill(struct numbers *n, void *bytes, size_t len);

/* One of the few addresses, in network order. */
void packet_mac(struct numbers *n, uint8_t mac[6]);
void packet_ipv4(struct numbers *n, uint8_t addr[4]);
void packet_ipv6(struct numbers *n, uint8_t addr[16]);
/** One of the few ports, host order. */
uint16_t packet_port(struct numbers *n);
/** TCP, UDP, ICMP, or another. */
uint8_t packet_protocol(struct numbers *n);

/** Writes a packet of PACKET_MIN..PACKET_MAX bytes; returns its length. */
uint32_t packet_make(struct numbers *n, uint8_t bytes[PACKET_MAX]);

#endif
