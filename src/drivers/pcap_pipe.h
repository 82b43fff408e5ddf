/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_pipe.h: a capture that comes through a pipe, a socket or a terminal. Bytes are received without waiting, and
 * libpcap reads them only when a whole record is there. Used by one thread at a time.
 */
#ifndef LEAT_DRIVERS_PCAP_PIPE_H
#define LEAT_DRIVERS_PCAP_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What tcpdump writes into its captures: MAXIMUM_SNAPLEN of libpcap and tcpdump. A longer record is an error. */
#define PCAP_SNAPLEN 262144u

struct pcap_pipe {
	int fd;          /* borrowed */
	bool ended;      /* nothing more will come */
	bool framed;     /* the file header was there: swapped is known */
	bool swapped;    /* the numbers are in the other byte order */
	uint8_t *bytes;  /* received; NULL: not in use */
	size_t used;     /* of these libpcap has read */
	size_t len;
};

/** Prepares to receive from @fd (**borrows**). Returns 0 or -ENOMEM. */
int pcap_pipe_init(struct pcap_pipe *pipe, int fd);
void pcap_pipe_fini(struct pcap_pipe *pipe);

/**
 * Receives what is there, until the file header or the next record is whole. Returns 1 when it is or the writer is
 * gone, 0 when more must come first, or a negative errno.
 */
int pcap_pipe_fill(struct pcap_pipe *pipe);

/** After the first 1 of pcap_pipe_fill(): NULL, or why libpcap must not read from here. */
const char *pcap_pipe_frame(struct pcap_pipe *pipe);

/** What was received, as a stream without a buffer (**returns**, valid until fini); NULL without memory. */
FILE *pcap_pipe_stream(struct pcap_pipe *pipe);

#endif
