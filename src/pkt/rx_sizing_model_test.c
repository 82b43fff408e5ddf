/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_sizing_model_test.c: buffer sizing against a model that keeps every length of its two half windows and tries every
 * size on each of them, under random limits and random lengths, with what a program's room makes of it.
 */
#include "pkt/test_traffic.h"

#define MODEL_HALF_MAX (LEAT_RX_SIZING_HALF << LEAT_RX_SIZING_LEVELS)

struct model {
	uint32_t min, max, cost; /* bytes */
	uint32_t size;
	uint32_t lens[2][MODEL_HALF_MAX], n[2]; /* [0]: the half window before, [1]: this one */
	uint32_t half, quiet;
	int last, wanted;
	uint32_t changes, reversals;
};

static uint64_t model_cost(const struct model *m, uint32_t size)
{
	uint64_t sum = 0;
	uint32_t h, i;

	for (h = 0; h < 2; h++)
		for (i = 0; i < m->n[h]; i++)
			sum += test_cost(m->lens[h][i], size, m->cost);
	return sum;
}

static void model_change(struct model *m, uint32_t size, bool large)
{
	int way = size > m->size ? 1 : -1;

	if (large && m->last == -way) {
		m->reversals++;
		if (m->quiet < LEAT_RX_SIZING_QUIET && m->half < MODEL_HALF_MAX)
			m->half *= 2;
		m->quiet = 0;
	}
	if (large)
		m->last = way;
	m->size = size;
	m->wanted = 0;
	m->changes++;
}

static void model_look(struct model *m)
{
	uint64_t now = model_cost(m, m->size), best = now;
	uint32_t size, best_size = m->size;
	int wanted;

	for (size = m->max; size >= m->min; size -= LEAT_GRANULE_SIZE) /* downwards: of equals the smallest */
		if (model_cost(m, size) <= best) {
			best = model_cost(m, size);
			best_size = size;
		}
	if (m->quiet < LEAT_RX_SIZING_QUIET)
		m->quiet++;
	wanted = best_size > m->size ? 1 : -1;
	if (4 * (now - best) > best)
		model_change(m, best_size, true);
	else if (32 * (now - best) <= best)
		m->wanted = 0;
	else if (wanted == m->wanted)
		model_change(m, best_size, false);
	else
		m->wanted = wanted;
	if (m->quiet == LEAT_RX_SIZING_QUIET && m->half > LEAT_RX_SIZING_HALF) {
		m->half /= 2;
		m->quiet = 0;
	}
	memcpy(m->lens[0], m->lens[1], sizeof(m->lens[0]));
	m->n[0] = m->n[1];
	m->n[1] = 0;
}

/** @due: packets of this half window, fixed when it began. */
static void model_add(struct model *m, uint32_t len, uint32_t *due)
{
	m->lens[1][m->n[1]++] = len < LEAT_RX_SIZING_LEN_MAX ? len : LEAT_RX_SIZING_LEN_MAX;
	if (m->n[1] < *due)
		return;
	model_look(m);
	*due = m->half;
}

/** Random limits that init accepts. */
static void random_start(struct leat_rx_sizing *s, struct model *m, uint64_t *seed)
{
	struct leat_rx_sizing_opts opts = { .size = sizeof(opts) };

	memset(m, 0, sizeof(*m));
	opts.min = LEAT_GRANULE_SIZE * (1 + test_below(seed, 8));
	opts.max = opts.min + LEAT_GRANULE_SIZE * test_below(seed, TEST_SIZES + 1 - opts.min / LEAT_GRANULE_SIZE);
	opts.ring_entries = 256;
	opts.buffer_cost = 1 + test_below(seed, 8192);
	assert_int_equal(leat_rx_sizing_init(s, &opts), 0);
	m->min = opts.min;
	m->max = opts.max;
	m->cost = opts.buffer_cost;
	m->size = 1536 < m->min ? m->min : 1536 > m->max ? m->max : 1536;
	m->half = LEAT_RX_SIZING_HALF;
	m->quiet = LEAT_RX_SIZING_QUIET;
}

/** Traffic of one kind for a while, or anything, or two lengths in turn with some period. */
struct source {
	uint32_t kind, left, period, a, b;
};

static uint32_t source_next(struct source *src, uint64_t *seed)
{
	if (!src->left) {
		src->kind = test_below(seed, COUNT(test_traffics) + 4);
		src->left = 1 + test_below(seed, 2000);
		src->period = 1 + test_below(seed, 400);
		src->a = test_below(seed, 70000);
		src->b = test_below(seed, 2000);
	}
	src->left--;
	if (src->kind < COUNT(test_traffics))
		return test_length(&test_traffics[src->kind], seed);
	if (src->kind == COUNT(test_traffics))
		return (uint32_t)test_random(seed);
	return src->left / src->period % 2 ? src->a : src->b;
}

static void agrees_with_the_model(void **state)
{
	struct source src = { 0 };
	uint64_t seed = 4711;
	uint32_t round, i, due, len, levels = 0;
	struct leat_rx_sizing s;
	static struct model m;

	(void)state;
	for (round = 0; round < TEST_ROUNDS(60); round++) {
		random_start(&s, &m, &seed);
		due = m.half;
		for (i = 0; i < 10000; i++) {
			len = source_next(&src, &seed);
			leat_rx_sizing_add(&s, len);
			model_add(&m, len, &due);
			assert_int_equal(leat_rx_sizing_size(&s, 0), m.size);
			assert_int_equal(s.changes, m.changes);
			assert_int_equal(s.reversals, m.reversals);
			assert_int_equal(LEAT_RX_SIZING_HALF << s.level, m.half);
			levels |= 1u << s.level;
		}
	}
	assert_true(levels & 1u << 2); /* the model has been where windows are longer */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
