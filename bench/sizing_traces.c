/* SPDX-License-Identifier: BSD-3-Clause */
/* sizing_traces.c: lengths of packets: uniform, of two kinds, IMIX, with steps, and recorded. */
#include "sizing_traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LEAT_HAVE_PCAP
#include <pcap/pcap.h>
#endif

#define RECORD_MAX (1u << 20) /* lengths kept of a capture */
#define STEP 2000u            /* packets between steps */

/* bench/traces/: length and how often, in turn */
static const uint32_t iperf3_ping[] = {
#include "bench/traces/iperf3-ping.txt"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (uint32_t)((*seed * UINT64_C(2685821657736338717) >> 33) % n);
}

/** Two lengths and their shares of 100; the rest is IMIX: 64, 570 and 1518 bytes at 7 : 4 : 1. */
static const struct {
	const char *name;
	uint32_t len_a, share_a, len_b, share_b;
} mixes[] = {
	{ "64", 64, 100, 0, 0 },
	{ "1500", 1500, 100, 0, 0 },
	{ "9000", 9000, 100, 0, 0 },
	{ "64K", 65536, 100, 0, 0 },
	{ "64+64K-1:1", 64, 50, 65536, 50 },
	{ "64+64K-9:1", 64, 90, 65536, 10 },
	{ "64+64K-1:9", 64, 10, 65536, 90 },
	{ "imix", 0, 0, 0, 0 },
	{ "imix+15%64K", 0, 0, 65536, 15 },
};

#define MIX_STEPS COUNT(mixes) /* each of them in turn, STEP packets */

static uint32_t mix_length(uint32_t mix, uint64_t *seed)
{
	uint32_t r = below(seed, 100);

	if (r < mixes[mix].share_a)
		return mixes[mix].len_a;
	if (r < mixes[mix].share_a + mixes[mix].share_b)
		return mixes[mix].len_b;
	r = below(seed, 12);
	return r < 7 ? 64 : r < 11 ? 570 : 1518;
}

uint32_t trace_length(const struct trace *trace, uint32_t i, uint64_t *seed)
{
	if (trace->record)
		return trace->record[i % trace->n];
	return mix_length(trace->mix == MIX_STEPS ? i / STEP * 4 % COUNT(mixes) : trace->mix, seed);
}

/* ---- records ---- */

static int open_bundled(struct trace *trace)
{
	uint32_t i, k, n = 0, *record;

	for (i = 0; i < COUNT(iperf3_ping); i += 2)
		n += iperf3_ping[i + 1];
	record = malloc(n * sizeof(*record));
	if (!record)
		return -ENOMEM;
	for (n = i = 0; i < COUNT(iperf3_ping); i += 2)
		for (k = 0; k < iperf3_ping[i + 1]; k++)
			record[n++] = iperf3_ping[i];
	*trace = (struct trace){ .name = "iperf3-ping", .record = record, .n = n };
	return 0;
}

#ifdef LEAT_HAVE_PCAP
static int open_pcap(struct bench_run *run, struct trace *trace, const char *file)
{
	uint32_t n = 0, *record = malloc(RECORD_MAX * sizeof(*record));
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *packet;
	const u_char *bytes;
	pcap_t *pcap;

	if (!record)
		return -ENOMEM;
	pcap = pcap_open_offline(file, err);
	if (!pcap)
		bench_note(run, "%s", err);
	while (pcap && n < RECORD_MAX && pcap_next_ex(pcap, &packet, &bytes) == 1)
		record[n++] = packet->len;
	if (pcap)
		pcap_close(pcap);
	if (!n) {
		bench_note(run, "%s: no packet was read", file);
		free(record);
		return -EINVAL;
	}
	*trace = (struct trace){ .name = "pcap", .record = record, .n = n };
	return 0;
}
#else
static int open_pcap(struct bench_run *run, struct trace *trace, const char *file)
{
	(void)trace;
	bench_note(run, "%s: this leat-bench was built without libpcap", file);
	return -EOPNOTSUPP;
}
#endif

int traces_open(struct bench_run *run, struct trace *trace, const char *pcap)
{
	int n = 0, err;

	for (; n < (int)COUNT(mixes); n++)
		trace[n] = (struct trace){ .name = mixes[n].name, .mix = (uint8_t)n };
	trace[n++] = (struct trace){ .name = "steps", .mix = MIX_STEPS };
	err = open_bundled(&trace[n]);
	if (err)
		return err;
	n++;
	err = pcap ? open_pcap(run, &trace[n++], pcap) : 0;
	if (err)
		traces_close(trace, n - 1);
	return err ? err : n;
}

void traces_close(struct trace *trace, int n)
{
	while (n--)
		free((void *)(uintptr_t)trace[n].record);
}
