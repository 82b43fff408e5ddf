/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_sizing_test.c: the size is near the best that hindsight knows on every kind of traffic, follows a step within the
 * packets it says, and does not swing however the lengths come.
 */
#include "pkt/test_traffic.h"

#include <errno.h>
#include <stdio.h>

static void start(struct leat_rx_sizing *s)
{
	assert_int_equal(leat_rx_sizing_init(s, NULL), 0);
}

/* ---- options ---- */

static void refuses(uint32_t min, uint32_t max, uint32_t ring, uint32_t largest, uint32_t buffer_cost)
{
	struct leat_rx_sizing_opts opts = { sizeof(opts), min, max, ring, largest, buffer_cost };
	struct leat_rx_sizing s;

	assert_int_equal(leat_rx_sizing_init(&s, &opts), -EINVAL);
}

static void limits_that_cannot_be_are_refused(void **state)
{
	struct {
		struct leat_rx_sizing_opts opts;
		uint64_t newer;
	} longer = { { .size = sizeof(longer) }, 1 };
	struct leat_rx_sizing s;

	(void)state;
	refuses(4096, 2048, 0, 0, 0);
	refuses(0, LEAT_BLOCK_SIZE + 1, 0, 0, 0);
	refuses(600, 1000, 0, 1500, 0); /* no multiple of a granule between them */
	refuses(0, 511, 0, 1, 0);
	refuses(0, 0, 0, LEAT_RX_SIZING_LEN_MAX + 1, 0);
	refuses(0, 0, 0, 0, (1u << 20) + 1);
	refuses(0, 0, 2, 0, 0);
	refuses(0, 0, 2, 65536, 0);           /* would do, were it not for the room */
	refuses(0, 2048, 32, 65537, 0);       /* one byte too long for the ring */
	refuses(0, 2048 + 511, 32, 65537, 0); /* max is rounded down */
	assert_int_equal(leat_rx_sizing_init(&s, &longer.opts), -E2BIG);
}

static void sizes_stay_within_the_limits(void **state)
{
	struct leat_rx_sizing_opts opts = { .size = sizeof(opts), .min = 1025, .max = 4100, .ring_entries = 32 };
	struct leat_rx_sizing s;
	uint32_t i;

	(void)state;
	assert_int_equal(leat_rx_sizing_init(&s, &opts), 0);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 2560); /* 65562 bytes in 32 buffers */
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 65536);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 4096);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 64);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 2560);
	opts.ring_entries = UINT32_MAX;
	opts.max = 1536;
	assert_int_equal(leat_rx_sizing_init(&s, &opts), 0);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 1536);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 64);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 1536); /* 1025, rounded up */
}

/* ---- a program is attached ---- */

static void room_is_added_and_fragments_are_few_enough(void **state)
{
	const uint32_t room = LEAT_XDP_HEADROOM + LEAT_XDP_TAILROOM;
	struct leat_rx_sizing s;
	uint32_t i, size;

	(void)state;
	start(&s);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 64);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 512);
	size = leat_rx_sizing_size(&s, room);
	assert_int_equal(size % LEAT_GRANULE_SIZE, 0);
	assert_true((LEAT_MAX_FRAGS + 1) * (size - room) >= 65562);
	assert_true((LEAT_MAX_FRAGS + 1) * (size - LEAT_GRANULE_SIZE * 2 - room) < 65562); /* and no more than that */
	/* what was asked for does not matter to what is learnt */
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++) {
		leat_rx_sizing_add(&s, 9000);
		assert_true(leat_rx_sizing_size(&s, room) > leat_rx_sizing_size(&s, 0));
	}
	assert_int_equal(leat_rx_sizing_size(&s, 0), 9216);
	assert_int_equal(leat_rx_sizing_size(&s, 1), 9216 + 512);
	assert_int_equal(leat_rx_sizing_size(&s, room), 9216 + 1024);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 65536);
	assert_int_equal(leat_rx_sizing_size(&s, room), LEAT_BLOCK_SIZE);
}

static void room_over_the_limit_is_a_mistake(void *arg)
{
	leat_rx_sizing_size(arg, LEAT_RX_SIZING_ROOM_MAX + 1);
}

static void too_much_room_asserts(void **state)
{
	struct leat_rx_sizing s;

	(void)state;
	start(&s);
	assert_bug(room_over_the_limit_is_a_mistake, &s);
}

/* ---- right ---- */

static void costs_are_near_those_of_the_best_size(void **state)
{
	uint64_t seed = 7;
	uint32_t t, i, len;

	(void)state;
	for (t = 0; t < COUNT(test_traffics); t++) {
		struct test_ledger ledger = { { 0 }, 0 };
		struct leat_rx_sizing s;

		start(&s);
		for (i = 0; i < LEAT_RX_SIZING_SETTLE + TEST_ROUNDS(20000); i++) {
			len = test_length(&test_traffics[t], &seed);
			if (i >= LEAT_RX_SIZING_SETTLE)
				test_ledger_add(&ledger, &s, len);
			leat_rx_sizing_add(&s, len);
		}
		assert_within(&ledger, 5, test_traffics[t].name);
	}
}

/** @n packets of @t, of which those after LEAT_RX_SIZING_SETTLE count. */
static void settle(struct leat_rx_sizing *s, const struct test_traffic *t, uint32_t n, uint64_t *seed,
		   struct test_ledger *ledger)
{
	uint32_t i, len;

	for (i = 0; i < n; i++) {
		len = test_length(t, seed);
		if (i >= LEAT_RX_SIZING_SETTLE)
			test_ledger_add(ledger, s, len);
		leat_rx_sizing_add(s, len);
	}
}

static void a_step_between_any_two_kinds_of_traffic_is_followed(void **state)
{
	struct test_ledger ignored = { { 0 }, 0 };
	uint64_t seed = 11;
	uint32_t from, to;
	char what[100];

	(void)state;
	for (from = 0; from < COUNT(test_traffics); from++)
		for (to = 0; to < COUNT(test_traffics); to++) {
			struct test_ledger ledger = { { 0 }, 0 };
			struct leat_rx_sizing s;

			start(&s);
			settle(&s, &test_traffics[from], 1000 + test_below(&seed, 64), &seed, &ignored);
			settle(&s, &test_traffics[to], LEAT_RX_SIZING_SETTLE + TEST_ROUNDS(4000), &seed, &ledger);
			snprintf(what, sizeof(what), "%s, then %s", test_traffics[from].name, test_traffics[to].name);
			assert_within(&ledger, TEST_ROUNDS(1000) == 1000 ? 5 : 10, what); /* few packets: more chance */
		}
}

static uint64_t best_for(uint32_t len)
{
	struct test_ledger ledger = { { 0 }, 0 };
	struct leat_rx_sizing s;

	start(&s);
	test_ledger_add(&ledger, &s, len);
	return test_ledger_best(&ledger);
}

/** Packets of @len until the size costs at most 1/32 more than the best, and stays there. */
static uint32_t packets_to_settle(struct leat_rx_sizing *s, uint32_t len, uint64_t best)
{
	uint32_t i, settled = 0;

	for (i = 1; i <= 3 * LEAT_RX_SIZING_SETTLE; i++) {
		leat_rx_sizing_add(s, len);
		if (test_cost(len, leat_rx_sizing_size(s, 0), s->buffer_cost) * 32 > best * 33)
			settled = i;
	}
	return settled;
}

static void a_step_of_any_height_at_any_moment_settles_in_time(void **state)
{
	static const uint32_t lens[] = { 0, 64, 512, 513, 1500, 1537, 2000, 4096, 9000, 9217, 16384, 32768, 32769, 50000, 65536 };
	uint32_t from, to, off, i, worst = 0;
	uint64_t best[COUNT(lens)];

	(void)state;
	for (i = 0; i < COUNT(lens); i++)
		best[i] = best_for(lens[i]);
	for (from = 0; from < COUNT(lens); from++)
		for (to = 0; to < COUNT(lens); to++)
			for (off = 0; off < LEAT_RX_SIZING_HALF; off++) {
				struct leat_rx_sizing s;

				start(&s);
				for (i = 0; i < 3 * LEAT_RX_SIZING_SETTLE + off; i++)
					leat_rx_sizing_add(&s, lens[from]);
				i = packets_to_settle(&s, lens[to], best[to]);
				worst = i > worst ? i : worst;
			}
	assert_true(worst < LEAT_RX_SIZING_SETTLE);
	assert_true(worst >= LEAT_RX_SIZING_HALF); /* else this has measured nothing */
}

/** An average in whole numbers stops short of what it rises to; here every length ends in the buffer it fits. */
static void there_is_no_floor_bias(void **state)
{
	uint32_t k, i;

	(void)state;
	for (k = 1; k <= TEST_SIZES; k++) {
		struct leat_rx_sizing_opts opts = { .size = sizeof(opts), .buffer_cost = 1u << 20 };
		struct leat_rx_sizing s;

		assert_int_equal(leat_rx_sizing_init(&s, &opts), 0);
		for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
			leat_rx_sizing_add(&s, 1);
		for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
			leat_rx_sizing_add(&s, k * LEAT_GRANULE_SIZE);
		assert_true(leat_rx_sizing_size(&s, 0) >= (k > 3 ? k : 3) * LEAT_GRANULE_SIZE);
	}
}

static void of_two_equals_the_smaller_is_taken(void **state)
{
	struct leat_rx_sizing_opts opts = { .size = sizeof(opts), .buffer_cost = 512 };
	struct leat_rx_sizing s;
	uint32_t i;

	(void)state;
	assert_int_equal(test_cost(512, 512, 512) + test_cost(1024, 512, 512),
			 test_cost(512, 1024, 512) + test_cost(1024, 1024, 512));
	assert_int_equal(leat_rx_sizing_init(&s, &opts), 0);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, i % 2 ? 512 : 1024);
	assert_int_equal(leat_rx_sizing_size(&s, 0), 512);
}

/* ---- robust ---- */

/** Adds and checks what the header says of changes in any window; @looked holds the changes at the last 64 packets. */
static void add_checked(struct leat_rx_sizing *s, uint32_t len, uint32_t *looked, uint32_t i)
{
	uint32_t window = 2 * LEAT_RX_SIZING_HALF;

	leat_rx_sizing_add(s, len);
	if (i >= window)
		assert_true(s->changes - looked[i % window] <= 2);
	looked[i % window] = s->changes;
}

/** Of @n packets: four raises, one more per fall (1024 packets), and the rest no closer than 512 packets. */
static uint32_t most_reversals(uint32_t n)
{
	return 5 + n / 512 + n / 1024;
}

static void alternation_is_judged_as_the_mixture_it_is(void **state)
{
	static const uint32_t periods[] = { 1, 2, 10, 31, 32, 33, 60, 64, 80, 96, 100, 120, 128, 160, 200, 256, 320, 500 };
	uint32_t p, i, len, looked[2 * LEAT_RX_SIZING_HALF] = { 0 };
	char what[100];

	(void)state;
	for (p = 0; p < COUNT(periods); p++) {
		struct test_ledger ledger = { { 0 }, 0 };
		struct leat_rx_sizing s;

		start(&s);
		for (i = 0; i < 100000; i++) {
			len = i / periods[p] % 2 ? 65536 : 64;
			ledger.mine += test_cost(len, leat_rx_sizing_size(&s, 0), s.buffer_cost);
			add_checked(&s, len, looked, i);
		}
		for (i = 1; i <= TEST_SIZES; i++) {
			uint64_t a = test_cost(64, i * LEAT_GRANULE_SIZE, s.buffer_cost);

			len = 100000 / periods[p] / 2 * periods[p]; /* packets of 65536 bytes, but for the last period */
			ledger.fixed[i] = a * (100000 - len) + test_cost(65536, i * LEAT_GRANULE_SIZE, s.buffer_cost) * len;
		}
		snprintf(what, sizeof(what), "period %u", periods[p]);
		assert_within(&ledger, 15, what);
		assert_true(s.reversals <= most_reversals(100000));
	}
}

/** Sends what the size of the moment is worst for. */
static void an_adversary_does_not_make_it_swing(void **state)
{
	uint32_t i, looked[2 * LEAT_RX_SIZING_HALF] = { 0 };
	struct leat_rx_sizing s;

	(void)state;
	start(&s);
	for (i = 0; i < 100000; i++)
		add_checked(&s, leat_rx_sizing_size(&s, 0) >= 8192 ? 64 : 65536, looked, i);
	assert_true(s.reversals > 10); /* it tries */
	assert_true(s.reversals <= most_reversals(100000));
	assert_int_equal(s.level, LEAT_RX_SIZING_LEVELS);
	/* when it gives up, the window shrinks, and a step is followed as before */
	for (i = 0; i < (LEAT_RX_SIZING_QUIET * LEAT_RX_SIZING_HALF << (LEAT_RX_SIZING_LEVELS + 1)) + 1024; i++)
		leat_rx_sizing_add(&s, 64);
	assert_int_equal(s.level, 0);
	assert_true(packets_to_settle(&s, 65536, best_for(65536)) < LEAT_RX_SIZING_SETTLE);
}

static void any_length_is_counted(void **state)
{
	struct leat_rx_sizing s;
	uint32_t i;

	(void)state;
	start(&s);
	for (i = 0; i < LEAT_RX_SIZING_HALF - 1; i++)
		leat_rx_sizing_add(&s, UINT32_MAX - i);
	assert_int_equal(s.seen[LEAT_RX_SIZING_BINS - 1], LEAT_RX_SIZING_HALF - 1);
	leat_rx_sizing_add(&s, LEAT_RX_SIZING_LEN_MAX);
	assert_true(leat_rx_sizing_size(&s, 0) > 8192);
	for (i = 0; i < LEAT_RX_SIZING_SETTLE; i++)
		leat_rx_sizing_add(&s, 0);
	assert_int_equal(leat_rx_sizing_size(&s, 0), LEAT_GRANULE_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_that_cannot_be_are_refused),
		cmocka_unit_test(sizes_stay_within_the_limits),
		cmocka_unit_test(room_is_added_and_fragments_are_few_enough),
		cmocka_unit_test(too_much_room_asserts),
		cmocka_unit_test(costs_are_near_those_of_the_best_size),
		cmocka_unit_test(a_step_between_any_two_kinds_of_traffic_is_followed),
		cmocka_unit_test(a_step_of_any_height_at_any_moment_settles_in_time),
		cmocka_unit_test(there_is_no_floor_bias),
		cmocka_unit_test(of_two_equals_the_smaller_is_taken),
		cmocka_unit_test(alternation_is_judged_as_the_mixture_it_is),
		cmocka_unit_test(an_adversary_does_not_make_it_swing),
		cmocka_unit_test(any_length_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
