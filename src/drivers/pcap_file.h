/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap_file.h: the file of a capture port, for pcap_in.c and pcap_out.c. Control thread. */
#ifndef LEAT_DRIVERS_PCAP_FILE_H
#define LEAT_DRIVERS_PCAP_FILE_H

#include <leat/netdev.h>
#include <stdio.h>
#include <sys/types.h>

/** The file of a port of either kind: the first member of what is the port's own. */
struct pcap_file {
	char *name;
	bool writes;  /* it is a pcap-out's */
	bool regular; /* it is open, and nobody waits for it; dev and ino say which */
	bool waits;   /* it is open, and reading or writing can mean waiting */
	dev_t dev;
	ino_t ino;
};

/** A descriptor of @file, or a copy of descriptor @std when its name is "-"; or a negative errno. */
int leat_pcap_file_open(const struct pcap_file *file, int flags, int std);
/** A stream over @fd (consumed); NULL: errno says why. */
FILE *leat_pcap_stream_open(int fd, const char *mode);
/** Takes down what @fd is. Returns 0 or a negative errno. */
int leat_pcap_file_identify(struct pcap_file *file, int fd);
void leat_pcap_file_forget(struct pcap_file *file);
/** Refuses a file of which another port is the writer, or that this one would write and another one reads. */
int leat_pcap_file_claim(struct leat_netdev *dev, struct leat_diag *diag);
/** A copy of the file name at @copy; without memory the port goes again. */
int leat_pcap_keep_file(struct leat_netdev **dev, char **copy, const char *file, struct leat_diag *diag);

#endif
