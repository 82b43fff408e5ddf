/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_traffic.h: lengths of packets for the tests of buffer sizing, and what they cost, counted packet by packet.
 */
#ifndef LEAT_PKT_TEST_TRAFFIC_H
#define LEAT_PKT_TEST_TRAFFIC_H

#include "mem/test_mem.h"

#include <leat/rx_sizing.h>

/** Two lengths and their shares, and IMIX (64, 570, 1518 bytes at 7 : 4 : 1) for the rest of 100. */
struct test_traffic {
	const char *name;
	uint32_t len_a, share_a, len_b, share_b;
};

static const struct test_traffic test_traffics[] = {
	{ "64", 64, 100, 0, 0 },
	{ "1500", 1500, 100, 0, 0 },
	{ "9000", 9000, 100, 0, 0 },
	{ "65536", 65536, 100, 0, 0 },
	{ "64 and 65536, 1 : 1", 64, 50, 65536, 50 },
	{ "64 and 65536, 9 : 1", 64, 90, 65536, 10 },
	{ "64 and 65536, 1 : 9", 64, 10, 65536, 90 },
	{ "IMIX", 0, 0, 0, 0 },
	{ "IMIX and 15 % 65536", 0, 0, 65536, 15 },
};

static inline uint32_t test_length(const struct test_traffic *t, uint64_t *seed)
{
	uint32_t r = test_below(seed, 100);

	if (r < t->share_a)
		return t->len_a;
	if (r < t->share_a + t->share_b)
		return t->len_b;
	r = test_below(seed, 12);
	return r < 7 ? 64 : r < 11 ? 570 : 1518;
}

/** What one packet costs in buffers of @size bytes. */
static inline uint64_t test_cost(uint32_t len, uint32_t size, uint32_t buffer_cost)
{
	uint64_t buffers = 1;

	while (len > size) {
		len -= size;
		buffers++;
	}
	return buffers * (size + buffer_cost);
}

#define TEST_SIZES (LEAT_BLOCK_SIZE / LEAT_GRANULE_SIZE)

/** What packets would have cost with each size, and what they did. */
struct test_ledger {
	uint64_t fixed[TEST_SIZES + 1]; /* by granules */
	uint64_t mine;
};

static inline void test_ledger_add(struct test_ledger *ledger, const struct leat_rx_sizing *s, uint32_t len)
{
	uint32_t k;

	for (k = 1; k <= TEST_SIZES; k++)
		ledger->fixed[k] += test_cost(len, k * LEAT_GRANULE_SIZE, s->buffer_cost);
	ledger->mine += test_cost(len, leat_rx_sizing_size(s, 0), s->buffer_cost);
}

static inline uint64_t test_ledger_best(const struct test_ledger *ledger)
{
	uint64_t best = ledger->fixed[1];
	uint32_t k;

	for (k = 2; k <= TEST_SIZES; k++)
		if (ledger->fixed[k] < best)
			best = ledger->fixed[k];
	return best;
}

/** Cost at most @percent over that of the best fixed size, known afterwards. */
static inline void assert_within(const struct test_ledger *ledger, uint32_t percent, const char *what)
{
	uint64_t best = test_ledger_best(ledger);

	if (ledger->mine * 100 > best * (100 + percent))
		fail_msg("%s: %.4f of the best", what, (double)ledger->mine / (double)best);
}

#endif
