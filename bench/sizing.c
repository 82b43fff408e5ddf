/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sizing.c: the bench `sizing`: what a packet pins beyond its bytes, and how many buffers it takes, by how the size of
 * posted buffers is decided.
 *
 *   histogram    leat_rx_sizing
 *   ewma         the average of weight 64 in whole numbers, between 1518 bytes and a page
 *   fixed-best   the one size that turns out to be the cheapest for the trace when all are tried
 *
 * A ring of 256 buffers from a page pool, filled up after each burst of 1 to 64 packets; what is left over at the end
 * of a run goes to its last buffer; a packet takes the oldest buffers and merges neighbours; 128 packets are held.
 * Nothing is timed: what is counted are bytes by leat_run_size(), of which a packet's own are subtracted (wasted),
 * buffers, fragments, and the cost: bytes pinned plus 1024 for each buffer.
 */
#include <errno.h>
#include <leat/rx_sizing.h>
#include <leat/skb.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "sizing_traces.h"

#define LIMIT (UINT64_C(64) << 20)
#define RING 256u
#define HELD 128u
#define PACKETS 20000u
#define PACKETS_SMOKE 500u
#define BUFFER_COST 1024u
#define EWMA_MIN 1518u

/** How sizes are decided. */
struct sizer {
	const char *name;
	struct leat_rx_sizing histogram;
	uint32_t average, fixed;
	uint32_t (*size)(struct sizer *sizer);
	void (*add)(struct sizer *sizer, uint32_t len);
};

static uint32_t histogram_size(struct sizer *sizer)
{
	return leat_rx_sizing_size(&sizer->histogram, 0);
}

static void histogram_add(struct sizer *sizer, uint32_t len)
{
	leat_rx_sizing_add(&sizer->histogram, len);
}

static uint32_t ewma_size(struct sizer *sizer)
{
	uint32_t size = sizer->average;

	return size < EWMA_MIN ? EWMA_MIN : size > LEAT_PAGE_SIZE ? LEAT_PAGE_SIZE : size;
}

static void ewma_add(struct sizer *sizer, uint32_t len)
{
	sizer->average = sizer->average ? (63 * sizer->average + len) >> 6 : len;
}

static uint32_t fixed_size(struct sizer *sizer)
{
	return sizer->fixed;
}

static void fixed_add(struct sizer *sizer, uint32_t len)
{
	(void)sizer;
	(void)len;
}

/** Sums over the packets of a simulation. */
struct sums {
	uint64_t packets, bytes, pinned, buffers, fragments;
	uint64_t cut_short; /* packets that had more fragments than there is room for */
};

static double cost_of(const struct sums *sums)
{
	return (double)(sums->pinned + sums->buffers * BUFFER_COST) / (double)sums->packets;
}

struct receiver {
	struct leat_page_pool *pool;
	struct leat_run ring[RING];
	uint32_t head, tail; /* posted, taken: free running */
	struct leat_skb held[HELD];
};

static void refill(struct receiver *r, struct sizer *sizer)
{
	struct leat_run run;
	uint32_t size;

	while (r->head - r->tail < RING) {
		size = sizer->size(sizer);
		run = leat_page_pool_alloc_frag(r->pool, &size);
		LEAT_ASSERT(!leat_run_is_none(run)); /* the pool holds much more */
		r->ring[r->head++ % RING] = run;
	}
}

static void drop(struct leat_skb *skb)
{
	uint32_t i;

	for (i = 0; i < skb->nr_frags; i++)
		leat_page_pool_put_page(skb->frag[i].run);
	memset(skb, 0, offsetof(struct leat_skb, frag));
}

/** One packet of @len bytes into the oldest buffers, as a device fills them. */
static void receive(struct receiver *r, struct sizer *sizer, struct leat_skb *skb, uint32_t len, struct sums *sums)
{
	uint32_t left = len, part;
	struct leat_run run;
	bool fits = true;

	do {
		if (r->head == r->tail)
			refill(r, sizer);
		run = r->ring[r->tail++ % RING];
		part = left < leat_run_size(run) ? left : leat_run_size(run);
		sums->pinned += leat_run_size(run);
		sums->buffers++;
		if (leat_skb_can_coalesce(skb, run, 0)) {
			leat_skb_coalesce_rx_frag(skb, run, 0, part);
		} else if (leat_skb_add_rx_frag(skb, run, 0, part)) {
			leat_page_pool_put_page(run);
			fits = false;
		}
		left -= part;
	} while (left);
	sums->packets++;
	sums->bytes += len;
	sums->fragments += skb->nr_frags;
	sums->cut_short += !fits;
	sizer->add(sizer, len);
}

static void simulate(struct receiver *r, struct sizer *sizer, const struct trace *trace, uint64_t seed, uint32_t packets,
		     struct sums *sums)
{
	uint32_t i, burst = 0;

	memset(sums, 0, sizeof(*sums));
	for (i = 0; i < packets; i++) {
		struct leat_skb *skb = &r->held[i % HELD];

		if (!burst--) {
			refill(r, sizer);
			burst = trace->n ? i * 7 % 64 : (uint32_t)(seed >> 20) % 64;
		}
		drop(skb);
		receive(r, sizer, skb, trace_length(trace, i, &seed), sums);
	}
	for (i = 0; i < HELD; i++)
		drop(&r->held[i]);
	while (r->tail != r->head)
		leat_page_pool_put_page(r->ring[r->tail++ % RING]);
}

/** Seeds must not be 0. */
static uint64_t seed_of(uint32_t round)
{
	return UINT64_C(0x9e3779b97f4a7c15) * (round + 1);
}

/** The size that is the cheapest for the packets of the first round. */
static uint32_t best_size(struct receiver *r, const struct trace *trace, uint32_t packets)
{
	struct sizer sizer = { .size = fixed_size, .add = fixed_add };
	uint32_t size, best = 0;
	double cost, least = 0;
	struct sums sums;

	for (size = LEAT_GRANULE_SIZE; size <= LEAT_BLOCK_SIZE; size += LEAT_GRANULE_SIZE) {
		sizer.fixed = size;
		simulate(r, &sizer, trace, seed_of(0), packets, &sums);
		cost = cost_of(&sums);
		if (best && cost >= least)
			continue;
		least = cost;
		best = size;
	}
	return best;
}

enum { WASTED, BUFFERS, FRAGMENTS, COST, MEASURES };
static const char *const measure_name[MEASURES] = { "wasted", "buffers", "fragments", "cost" };

static void measures_of(const struct sums *sums, double *out)
{
	double packets = (double)sums->packets;

	out[WASTED] = (double)(sums->pinned - sums->bytes) / packets;
	out[BUFFERS] = (double)sums->buffers / packets;
	out[FRAGMENTS] = (double)sums->fragments / packets;
	out[COST] = cost_of(sums);
}

static void run_sizer(struct bench_run *run, struct receiver *r, const struct sizer *model, const struct trace *trace,
		      uint32_t packets)
{
	uint32_t round, m, rounds = bench_rounds(run);
	double out[MEASURES];
	char name[80];
	uint64_t cut_short = 0;

	for (round = 0; round < rounds; round++) {
		struct sizer sizer = *model;
		struct sums sums;

		LEAT_ASSERT(!leat_rx_sizing_init(&sizer.histogram, NULL));
		simulate(r, &sizer, trace, seed_of(round), packets, &sums);
		measures_of(&sums, out);
		cut_short += sums.cut_short;
		for (m = 0; m < MEASURES; m++) {
			snprintf(name, sizeof(name), "%s@%s/%s", model->name, trace->name, measure_name[m]);
			bench_add(run, name, &out[m], 1);
		}
	}
	if (cut_short)
		bench_note(run, "%s@%s: %.3f %% of the packets had more than %u fragments", model->name, trace->name,
			   100.0 * (double)cut_short / (double)rounds / (double)packets, LEAT_MAX_FRAGS);
}

static void ratios(struct bench_run *run, const char *trace)
{
	char mine[64], other[64], name[96];
	unsigned int m;

	snprintf(mine, sizeof(mine), "histogram@%s/cost", trace);
	snprintf(other, sizeof(other), "fixed-best@%s/cost", trace);
	snprintf(name, sizeof(name), "histogram/fixed-best@%s/cost", trace);
	bench_ratio(run, name, mine, other, BENCH_MARK_AT_MOST(1.05));
	for (m = 0; m < MEASURES; m++) {
		snprintf(mine, sizeof(mine), "histogram@%s/%s", trace, measure_name[m]);
		snprintf(other, sizeof(other), "ewma@%s/%s", trace, measure_name[m]);
		snprintf(name, sizeof(name), "histogram/ewma@%s/%s", trace, measure_name[m]);
		bench_ratio(run, name, mine, other, BENCH_MARK_NONE);
	}
}

static void run_trace(struct bench_run *run, struct receiver *r, const struct trace *trace)
{
	struct sizer sizer[] = {
		{ .name = "histogram", .size = histogram_size, .add = histogram_add },
		{ .name = "ewma", .size = ewma_size, .add = ewma_add },
		{ .name = "fixed-best", .size = fixed_size, .add = fixed_add },
	};
	uint32_t i, packets = bench_smoke(run) ? PACKETS_SMOKE : PACKETS;

	sizer[2].fixed = best_size(r, trace, packets);
	bench_note(run, "fixed-best@%s: %u bytes", trace->name, sizer[2].fixed);
	for (i = 0; i < 3; i++)
		run_sizer(run, r, &sizer[i], trace, packets);
	ratios(run, trace->name);
}

static int run_sizing(struct bench_run *run)
{
	static struct receiver receiver;
	struct trace trace[TRACES_MAX];
	struct bench_mem mem;
	int i, err, n = traces_open(run, trace, bench_pcap(run));

	if (n < 0)
		return n;
	err = bench_mem_open(run, &mem, LIMIT);
	if (err)
		goto close_traces;
	receiver.pool = mem.pool;
	for (i = 0; i < n; i++)
		run_trace(run, &receiver, &trace[i]);
	bench_mem_close(run, &mem);
close_traces:
	traces_close(trace, n);
	return err;
}

const struct bench bench_sizing = {
	"sizing", "bytes that receive buffers waste, and buffers per packet, counted", "bytes or buffers/packet", BENCH_LOWER,
	run_sizing,
};
