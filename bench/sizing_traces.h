/* SPDX-License-Identifier: BSD-3-Clause */
/* sizing_traces.h: the lengths of packets that the bench `sizing` is fed with. */
#ifndef LEAT_BENCH_SIZING_TRACES_H
#define LEAT_BENCH_SIZING_TRACES_H

#include "bench.h"

/** A source of lengths: made by chance, or a record, which starts again at its end. */
struct trace {
	const char *name;
	const uint32_t *record; /* NULL: by chance */
	uint32_t n;             /* lengths of the record */
	uint8_t mix;            /* by chance: which */
};

#define TRACES_MAX 16

/** Fills @trace with what there is; a capture's lengths are read from @pcap (NULL: none). Their number, or -errno. */
int traces_open(struct bench_run *run, struct trace *trace, const char *pcap);
void traces_close(struct trace *trace, int n);

/** Length of packet @i of a trace; @seed is the caller's. */
uint32_t trace_length(const struct trace *trace, uint32_t i, uint64_t *seed);

#endif
