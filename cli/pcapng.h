/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng.h: writes a capture in pcapng (draft-ietf-opsawg-pcapng): one section in host byte order, one interface of
 * Ethernet packets, times in nanoseconds. Whether all was written, ferror() says.
 */
#ifndef LEAT_CLI_PCAPNG_H
#define LEAT_CLI_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

/** Section header and interface description (4.1, 4.2). @application and @interface are cut to 255 bytes. */
void pcapng_begin(FILE *out, const char *application, const char *interface);

struct pcapng_packet {
	const uint8_t *bytes;
	uint32_t len;        /* at most 2^31 */
	uint64_t time;       /* nanoseconds since 1970 */
	const char *comment; /* cut to 255 bytes */
	uint64_t verdict;    /* that an XDP program gave */
};

/** Enhanced packet block (4.3), as received on the interface, with comment and verdict. */
void pcapng_packet(FILE *out, const struct pcapng_packet *packet);

#endif
