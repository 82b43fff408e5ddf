/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_pool_simulation_test.c: receive queues with the real pool, but without packet bytes: how much memory a pool
 * takes, and in how many pieces a large packet comes.
 *
 * A ring of buffers is posted in order. A device fills bursts of 1 to 64 packets, a packet takes the next buffers of the
 * ring, neighbours of one packet are merged. Then a few packets are held for 10 to 30 thousand packets; the others go
 * through one of four returners, each of which gives back 64 packets at a time. The ring is filled up after each burst.
 */
#include "mem/page_pool_internal.h"
#include "mem/test_mem.h"

#include <stdio.h>

#define DATA_SIZE (UINT64_C(1) << 30)
#define RING_MAX 1024u
#define RETURNERS 4u
#define BATCH 64u
#define HELD_LONGEST 32768u
#define RUNS_MAX 64u
#define PACKET_LARGE 65536u

enum mix { MIX_SMALL, MIX_IMIX, MIX_BIMODAL, MIX_IMIX_LARGE, N_MIXES };

static const char *const mix_name[] = { "64 B", "IMIX", "64 B + 64 KiB", "IMIX + 15 % 64 KiB" };

struct packet {
	struct packet *next;
	uint32_t len, bytes; /* bytes: what it keeps from use */
	unsigned int n;
	struct leat_run run[RUNS_MAX];
};

struct queue {
	struct packet *first;
	unsigned int n;
};

struct sim {
	/* what is asked for */
	enum mix mix;
	uint32_t buffer;    /* bytes */
	unsigned int ring;
	unsigned int held;  /* packets in 1000 */
	uint64_t floor;
	unsigned int packets;
	/* state */
	struct leat_page_pool *pool;
	uint64_t seed;
	struct leat_run posted[RING_MAX];
	unsigned int head, tail; /* free-running; posted is between */
	uint64_t live;
	struct queue returner[RETURNERS];
	struct packet *due[HELD_LONGEST]; /* by the number of the packet at whose time they go */
	uint64_t model_buffers;           /* that an order-3 page_frag would have handed out */
	/* what comes out */
	uint64_t live_high, committed_high, large, runs, model_runs;
};

/* ---- memory that is never touched ---- */

static int null_alloc(void *arg, void *addr, uint64_t bytes, int node)
{
	(void)arg, (void)addr, (void)bytes, (void)node;
	return 0;
}

static void null_release(void *arg, void *addr, uint64_t bytes)
{
	(void)arg, (void)addr, (void)bytes;
}

static const struct leat_page_pool_provider null_provider = { .alloc = null_alloc, .release = null_release };

/* ---- packets ---- */

static uint32_t packet_len(struct sim *s)
{
	uint32_t imix = test_below(&s->seed, 12); /* 7 : 4 : 1 */

	imix = imix < 7 ? 64 : imix < 11 ? 570 : 1518;
	switch (s->mix) {
	case MIX_SMALL:
		return 64;
	case MIX_IMIX:
		return imix;
	case MIX_BIMODAL:
		return test_below(&s->seed, 2) ? PACKET_LARGE : 64;
	default:
		return test_below(&s->seed, 100) < 15 ? PACKET_LARGE : imix;
	}
}

/** The next buffer of the ring, merged with the packet's last one if it lies behind it. */
static void add_buffer(struct packet *p, struct leat_run run)
{
	struct leat_run *last = &p->run[p->n ? p->n - 1 : 0];

	p->bytes += leat_run_size(run);
	if (p->n && leat_run_addr(*last) + leat_run_size(*last) == leat_run_addr(run)) {
		*last = leat_run_make_long(leat_run_addr(*last), leat_run_granules(*last) + leat_run_granules(run));
		return;
	}
	assert_true(p->n < RUNS_MAX);
	p->run[p->n++] = run;
}

/** Chunks of 32 KiB that the same packet would lie in, cut by a page_frag that never shares a chunk's neighbour. */
static uint64_t model_runs(struct sim *s, uint32_t len)
{
	uint64_t per_chunk = LEAT_BLOCK_SIZE / s->buffer, first = s->model_buffers;

	s->model_buffers += (len + s->buffer - 1) / s->buffer;
	return (s->model_buffers - 1) / per_chunk - first / per_chunk + 1;
}

/** Fills one packet from the ring; NULL when the ring has too little. */
static struct packet *receive(struct sim *s)
{
	uint32_t len = packet_len(s), room = 0;
	unsigned int i;
	struct packet *p;

	for (i = s->tail; i != s->head && room < len; i++)
		room += leat_run_size(s->posted[i % RING_MAX]);
	if (room < len)
		return NULL;
	p = calloc(1, sizeof(*p));
	assert_non_null(p);
	p->len = len;
	for (; s->tail != i; s->tail++)
		add_buffer(p, s->posted[s->tail % RING_MAX]);
	if (len == PACKET_LARGE) {
		s->large++;
		s->runs += p->n;
		s->model_runs += model_runs(s, len);
	} else {
		model_runs(s, len);
	}
	return p;
}

static void free_packet(struct sim *s, struct packet *p)
{
	s->live -= p->bytes;
	leat_page_pool_put_page_bulk(p->run, p->n);
	free(p);
}

static void free_packets(struct sim *s, struct packet *p)
{
	struct packet *next;

	for (; p; p = next) {
		next = p->next;
		free_packet(s, p);
	}
}

static void pass_on(struct sim *s, struct packet *p, unsigned int number)
{
	struct queue *queue = &s->returner[test_below(&s->seed, RETURNERS)];
	struct packet **due;

	if (test_below(&s->seed, 1000) < s->held) {
		due = &s->due[(number + 10000 + test_below(&s->seed, 20000)) % HELD_LONGEST];
		p->next = *due;
		*due = p;
		return;
	}
	p->next = queue->first; /* the last one goes first: out of order */
	queue->first = p;
	if (++queue->n < BATCH)
		return;
	free_packets(s, queue->first);
	queue->first = NULL;
	queue->n = 0;
}

static void refill(struct sim *s)
{
	struct leat_page_pool_stats stats;
	uint32_t size;

	while (s->head - s->tail < s->ring) {
		struct leat_run *run = &s->posted[s->head % RING_MAX];

		size = s->buffer;
		*run = leat_page_pool_alloc(s->pool, LEAT_GRANULES(size));
		assert_false(leat_run_is_none(*run));
		if (leat_page_pool_left(s->pool) < LEAT_GRANULES(size)) { /* what alloc_frag does */
			run->bits += (uint64_t)leat_page_pool_left(s->pool) << LEAT_ADDR_BITS;
			leat_page_pool_move(s->pool, s->pool->end);
		}
		s->live += leat_run_size(*run);
		s->head++;
	}
	leat_page_pool_stats(s->pool, &stats);
	if (stats.committed > s->committed_high)
		s->committed_high = stats.committed;
	if (s->live > s->live_high)
		s->live_high = s->live;
}

static void simulate(struct sim *s)
{
	struct leat_arena_opts arena_opts = { .size = sizeof(arena_opts), .data_size = DATA_SIZE };
	struct leat_segment_opts segment_opts = { .size = sizeof(segment_opts), .bytes = DATA_SIZE };
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = DATA_SIZE, .floor = s->floor };
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct packet *p;
	unsigned int i = 0, burst, k;

	opts.provider = &null_provider;
	assert_int_equal(leat_arena_create(&arena_opts, &arena), 0);
	assert_int_equal(leat_segment_create(arena, &segment_opts, &segment), 0);
	assert_int_equal(leat_page_pool_create(segment, &opts, &s->pool), 0);
	leat_page_pool_own(s->pool);
	s->seed = 1 + s->mix;
	while (i < s->packets) {
		refill(s);
		for (burst = 1 + test_below(&s->seed, 64); burst && (p = receive(s)); burst--, i++) {
			pass_on(s, p, i);
			free_packets(s, s->due[i % HELD_LONGEST]);
			s->due[i % HELD_LONGEST] = NULL;
		}
	}
	for (; s->tail != s->head; s->tail++)
		leat_page_pool_put_page(s->posted[s->tail % RING_MAX]);
	for (k = 0; k < RETURNERS; k++)
		free_packets(s, s->returner[k].first);
	for (k = 0; k < HELD_LONGEST; k++)
		free_packets(s, s->due[k]);
	assert_int_equal(test_outstanding(s->pool), 0);
	leat_page_pool_destroy(s->pool);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
}

/* ---- what is asked ---- */

static const uint32_t buffers[] = { 1536, 4096 };
static const unsigned int rings[] = { 256, 1024 };
static const unsigned int held[] = { 1, 10, 50, 200 };

static void say(const struct sim *s)
{
	print_message("# %s, buffers of %u, ring of %u, %u.%u %% held: live %llu KiB, pool %llu KiB (%.2f), "
		      "%.2f pieces, page_frag %.2f\n",
		      mix_name[s->mix], s->buffer, s->ring, s->held / 10, s->held % 10,
		      (unsigned long long)s->live_high >> 10, (unsigned long long)s->committed_high >> 10,
		      (double)s->committed_high / (double)s->live_high,
		      s->large ? (double)s->runs / (double)s->large : 0.0,
		      s->large ? (double)s->model_runs / (double)s->large : 0.0);
}

/** Calls @check with each combination. */
static void each_traffic(enum mix first, enum mix last, uint64_t floor, unsigned int packets,
			 void (*check)(const struct sim *s))
{
	static struct sim s;
	unsigned int mix, b, r, h;

	for (mix = first; mix <= last; mix++)
		for (b = 0; b < COUNT(buffers); b++)
			for (r = 0; r < COUNT(rings); r++)
				for (h = 0; h < COUNT(held); h++) {
					memset(&s, 0, sizeof(s));
					s.mix = (enum mix)mix;
					s.buffer = buffers[b];
					s.ring = rings[r];
					s.held = held[h];
					s.floor = floor;
					s.packets = packets;
					simulate(&s);
					say(&s);
					check(&s);
				}
}

static void check_memory(const struct sim *s)
{
	uint64_t most = s->live_high * 21 / 10;

	assert_true(s->committed_high <= (most > s->floor ? most : s->floor));
}

static void a_pool_takes_at_most_about_twice_what_is_live(void **state)
{
	(void)state;
	each_traffic(MIX_SMALL, MIX_IMIX_LARGE, 64 << 10, TEST_ROUNDS(50000u), check_memory);
}

static void check_pieces(const struct sim *s)
{
	assert_true(s->large > 0);
	assert_true(s->runs <= s->model_runs);
}

static void large_packets_come_in_no_more_pieces_than_from_whole_chunks(void **state)
{
	(void)state;
	each_traffic(MIX_BIMODAL, MIX_IMIX_LARGE, 8 << 20, TEST_ROUNDS(50000u), check_pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_takes_at_most_about_twice_what_is_live),
		cmocka_unit_test(large_packets_come_in_no_more_pieces_than_from_whole_chunks),
	};

	return cmocka_run_group_tests_name("page_pool_simulation", tests, NULL, NULL);
}
