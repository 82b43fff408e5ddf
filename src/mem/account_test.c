/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * account_test.c: who has packet memory, how much of it, and since when; and that the sums agree.
 */
#include "mem/test_mem.h"

#include <errno.h>
#include <leat/account.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#define PAUSE_MS 15u

static void pause_ms(void)
{
	const struct timespec pause = { 0, PAUSE_MS * 1000000 };

	nanosleep(&pause, NULL);
}

/* ---- what a report said ---- */

struct said {
	unsigned int n;
	struct leat_holder_report line[32];
	char pool[32][32], holder[32][LEAT_HOLDER_NAME_MAX];
	uint64_t granules;
};

static void say(const struct leat_holder_report *report, void *arg)
{
	struct said *said = arg;
	unsigned int n = said->n++;

	assert_true(n < COUNT(said->line));
	said->line[n] = *report;
	snprintf(said->pool[n], sizeof(said->pool[n]), "%s", report->pool);
	snprintf(said->holder[n], sizeof(said->holder[n]), "%s", report->holder);
	said->line[n].pool = said->pool[n];
	said->line[n].holder = said->holder[n];
	said->granules += report->granules;
}

static void ask(struct test_mem *mem, uint64_t min_age_ms, struct said *said)
{
	int n;

	memset(said, 0, sizeof(*said));
	n = leat_segment_report(mem->segment, min_age_ms, say, said);
	assert_int_equal(n, said->n);
}

/** What @holder is said to have, or NULL. */
static const struct leat_holder_report *find(const struct said *said, const char *holder)
{
	unsigned int i;

	for (i = 0; i < said->n; i++)
		if (!strcmp(said->holder[i], holder))
			return &said->line[i];
	return NULL;
}

static uint64_t tagged(struct test_mem *mem, const char *holder)
{
	struct said said;

	ask(mem, 0, &said);
	return find(&said, holder) ? find(&said, holder)->tagged : 0;
}

/* ---- names ---- */

static void a_name_has_one_number(void **state)
{
	char longer[LEAT_HOLDER_NAME_MAX + 10];
	uint16_t a = leat_holder_register("a"), b = leat_holder_register("b");

	(void)state;
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_true(a != LEAT_HOLDER_NONE && b != LEAT_HOLDER_NONE && a != b);
	assert_int_equal(leat_holder_register("a"), a);
	assert_string_equal(leat_holder_name(a), "a");
	assert_string_equal(leat_holder_name(LEAT_HOLDER_NONE), "unknown");
	assert_string_equal(leat_holder_name(LEAT_HOLDERS_MAX - 1), "unknown");
	assert_string_equal(leat_holder_name(UINT16_MAX), "unknown");
	assert_int_equal(leat_holder_register(longer), leat_holder_register(longer));
	assert_memory_equal(leat_holder_name(leat_holder_register(longer)), longer, LEAT_HOLDER_NAME_MAX - 1);
	assert_int_not_equal(leat_holder_register("unknown"), LEAT_HOLDER_NONE); /* a name as others */
}

/** In a process of its own, for numbers are never given back. */
static void too_many_names_are_nobody(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		unsigned int i;
		char name[16];

		for (i = 0; i < LEAT_HOLDERS_MAX; i++) {
			snprintf(name, sizeof(name), "n%u", i);
			leat_holder_register(name);
		}
		LEAT_ASSERT(leat_holder_register("one more") == LEAT_HOLDER_NONE);
		LEAT_ASSERT(!strcmp(leat_holder_name(leat_holder_register("n7")), "n7"));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- leaks ---- */

static void what_is_parked_and_forgotten_has_a_name_a_count_and_an_age(void **state)
{
	uint16_t queue = leat_holder_register("socket queue"), map = leat_holder_register("cpumap 3");
	struct leat_page_pool *pool;
	struct leat_run old[2], other, young[3];
	struct test_mem mem;
	struct said said;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 2; i++)
		leat_page_pool_park(old[i] = leat_page_pool_alloc(pool, 4), queue);
	other = leat_page_pool_alloc(pool, 56); /* the rest of the block */
	pause_ms();
	for (i = 0; i < 3; i++)
		leat_page_pool_park(young[i] = leat_page_pool_alloc(pool, 3), map);
	pause_ms();
	ask(&mem, 0, &said);
	assert_int_equal(said.n, 3);
	assert_string_equal(said.holder[0], "socket queue");
	assert_int_equal(said.line[0].kind, LEAT_HOLDER_TAGGED);
	assert_int_equal(said.line[0].tagged, 2);
	assert_int_equal(said.line[0].granules, 8);
	assert_true(said.line[0].youngest_ms >= 2 * PAUSE_MS && said.line[0].oldest_ms >= said.line[0].youngest_ms);
	assert_false(said.line[0].closed);
	assert_string_equal(said.holder[1], "cpumap 3");
	assert_int_equal(said.line[1].tagged, 3);
	assert_int_equal(said.line[1].granules, 9);
	assert_true(said.line[1].youngest_ms >= PAUSE_MS);
	assert_string_equal(said.holder[2], "unknown");
	assert_int_equal(said.line[2].kind, LEAT_HOLDER_UNKNOWN);
	assert_int_equal(said.line[2].tagged, 0);
	assert_int_equal(said.line[2].granules, 56);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 17);
	ask(&mem, said.line[1].oldest_ms + 3600000, &said);
	assert_int_equal(said.n, 0); /* nothing is that old */
	for (i = 0; i < 2; i++)
		leat_page_pool_unpark(old[i]);
	assert_int_equal(tagged(&mem, "socket queue"), 0); /* whoever has them now: not the queue */
	for (i = 0; i < 3; i++)
		leat_page_pool_unpark(young[i]);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 0);
	leat_page_pool_put_page_bulk(old, 2);
	leat_page_pool_put_page_bulk(young, 3);
	leat_page_pool_put_page(other);
	ask(&mem, 0, &said);
	assert_int_equal(said.n, 0);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void only_what_is_old_is_told_when_an_age_is_asked_for(void **state)
{
	uint16_t a = leat_holder_register("old one"), b = leat_holder_register("young one");
	struct leat_run old, young;
	struct leat_page_pool *pool;
	struct test_mem mem;
	struct said said;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	old = leat_page_pool_alloc(pool, 64);
	leat_run_tag(old, a);
	pause_ms();
	pause_ms();
	young = leat_page_pool_alloc(pool, 64);
	leat_run_tag(young, b);
	ask(&mem, 2 * PAUSE_MS, &said);
	assert_non_null(find(&said, "old one"));
	assert_int_equal(find(&said, "old one")->granules, 64);
	if (find(&said, "young one")) /* the machine was that slow */
		assert_true(find(&said, "young one")->youngest_ms >= 2 * PAUSE_MS);
	leat_page_pool_put_page(old);
	leat_page_pool_put_page(young);
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_destroyed_pool_is_told_until_its_last_buffer_is_back(void **state)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = EXTENT, .name = "tap0.0" };
	struct leat_page_pool *pool;
	struct leat_run a, b;
	struct test_mem mem;
	struct said said;
	char line[200];

	(void)state;
	test_mem_open(&mem, EXTENT);
	assert_int_equal(leat_page_pool_create(mem.segment, &opts, &pool), 0);
	leat_page_pool_own(pool);
	a = leat_page_pool_alloc(pool, 4);
	b = leat_page_pool_alloc(pool, 5);
	leat_run_tag(a, leat_holder_register("bridge br0"));
	leat_page_pool_destroy(pool);
	pause_ms();
	ask(&mem, 0, &said);
	assert_int_equal(said.n, 2);
	assert_true(said.line[0].closed && said.line[1].closed);
	assert_string_equal(said.pool[0], "tap0.0");
	assert_int_equal(find(&said, "bridge br0")->granules, 4);
	assert_int_equal(find(&said, "unknown")->granules, 5);
	assert_true(find(&said, "unknown")->oldest_ms >= PAUSE_MS);
	said.line[0].oldest_ms = 5240;
	leat_holder_report_format(&said.line[0], line, sizeof(line));
	assert_string_equal(line, "pool tap0.0 (destroyed): bridge br0: 1 run tagged (4 granules), oldest 5.2 s");
	said.line[1].oldest_ms = 70;
	leat_holder_report_format(&said.line[1], line, sizeof(line));
	assert_string_equal(line, "pool tap0.0 (destroyed): unknown: 5 granules, oldest 0.1 s");
	assert_int_equal(leat_holder_report_format(&said.line[1], line, 8), strlen("pool tap0.0 (destroyed): unknown: 5 granules, oldest 0.1 s"));
	assert_string_equal(line, "pool ta");
	leat_page_pool_put_page(a);
	leat_page_pool_put_page(b);
	ask(&mem, 0, &said);
	assert_int_equal(said.n, 0);
	test_mem_close(&mem);
}

static void a_sample_of_runs_is_tagged_when_they_change_hands(void **state)
{
	uint16_t ring = leat_holder_register("a ring");
	struct leat_page_pool *pool;
	struct leat_run run[128];
	struct test_mem mem;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < COUNT(run); i++)
		leat_page_pool_hold(run[i] = leat_page_pool_alloc(pool, 4), ring);
	leat_page_pool_hold(LEAT_RUN_NONE, ring);
#ifdef LEAT_EXACT_HOLDERS
	assert_int_equal(tagged(&mem, "a ring"), COUNT(run));
#else
	assert_int_equal(tagged(&mem, "a ring"), 8); /* one for each block */
#endif
	leat_page_pool_put_page_bulk(run, COUNT(run));
	test_pool_end(pool);
	test_mem_close(&mem);
}

static void a_report_without_memory_says_so(void **state)
{
	struct leat_page_pool *pool;
	struct test_mem mem;
	struct said said;
	struct leat_run run;
	unsigned int nth;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	run = leat_page_pool_alloc(pool, 1);
	for (nth = 1;; nth++) {
		memset(&said, 0, sizeof(said));
		leat_heap_fail_nth(nth);
		if (leat_segment_report(mem.segment, 0, say, &said) != -ENOMEM)
			break;
		assert_int_equal(said.n, 0);
		assert_true(leat_heap_failed());
	}
	leat_heap_fail_nth(0);
	assert_int_equal(said.n, 1);
	assert_true(nth > 3);
	leat_page_pool_put_page(run);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- tags end with the buffer ---- */

/** Every cut of the block is looked at until its number has gone round more than once. */
static void a_name_never_comes_back_with_the_memory(void **state)
{
	uint16_t holder = leat_holder_register("the former one");
	unsigned int cuts = 0, rounds = TEST_ROUNDS(3 * 4096u);
	struct leat_page_pool *pool;
	struct leat_run run;
	struct test_mem mem;
	uint64_t addr;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	run = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
	addr = leat_run_addr(run);
	leat_run_tag(run, holder);
	leat_run_tag(leat_run_make(addr + 5 * LEAT_GRANULE_SIZE, 2), holder);
	assert_int_equal(tagged(&mem, "the former one"), 2);
	leat_page_pool_put_page(run);
	while (cuts < rounds) {
		run = leat_page_pool_alloc(pool, LEAT_BLOCK_GRANULES);
		if (leat_run_addr(run) == addr) {
			cuts++;
			assert_int_equal(tagged(&mem, "the former one"), 0);
		}
		leat_page_pool_put_page(run);
	}
	test_pool_end(pool);
	test_mem_close(&mem);
}

/** The rest of a block is cut again and again around what is still out. */
static void what_stays_out_keeps_its_name_while_its_page_is_cut_again(void **state)
{
	uint16_t keeper = leat_holder_register("keeper"), former = leat_holder_register("former");
	struct leat_run all[8 * LEAT_BLOCK_GRANULES], kept[8];
	unsigned int i, n, round;
	struct leat_page_pool *pool;
	struct test_mem mem;
	struct said said;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 8; i++) { /* granule 21 of each block */
		all[2 * i] = leat_page_pool_alloc(pool, 21);
		kept[i] = leat_page_pool_alloc(pool, 1);
		all[2 * i + 1] = leat_page_pool_alloc(pool, 42);
		leat_run_tag(kept[i], keeper);
	}
	leat_page_pool_put_page_bulk(all, 16);
	for (round = 0; round < 50; round++) {
		for (n = 0; n < COUNT(all); n++) {
			all[n] = leat_page_pool_alloc(pool, 1 + round % 3);
			if (leat_run_is_none(all[n]))
				break;
		}
		ask(&mem, 0, &said);
		assert_int_equal(find(&said, "keeper")->tagged, 8);
		assert_null(find(&said, "former"));
		assert_int_equal(said.granules, test_outstanding(pool));
		for (i = 0; i < n; i++)
			leat_run_tag(all[i], former);
		assert_int_equal(tagged(&mem, "former"), n);
		leat_page_pool_put_page_bulk(all, n);
	}
	leat_page_pool_put_page_bulk(kept, 8);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- where what is outstanding is ---- */

static void assert_split(struct leat_page_pool *pool, uint64_t device, uint64_t returning, uint64_t held)
{
	struct leat_page_pool_stats stats;

	leat_page_pool_stats(pool, &stats);
	assert_int_equal(stats.device, device);
	assert_int_equal(stats.returning, returning);
	assert_int_equal(stats.held, held);
	assert_int_equal(stats.outstanding, device + returning + held);
}

struct putter {
	struct leat_run *runs;
	unsigned int n;
};

static void *put_all(void *arg)
{
	struct putter *putter = arg;

	leat_page_pool_put_page_bulk(putter->runs, putter->n);
	return NULL;
}

static void put_elsewhere(struct leat_run *runs, unsigned int n)
{
	struct putter putter = { runs, n };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, put_all, &putter), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void what_is_outstanding_is_with_a_device_or_returning_or_held(void **state)
{
	struct leat_page_pool *pool;
	struct leat_run run[10];
	struct test_mem mem;
	struct said said;
	unsigned int i;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	for (i = 0; i < 10; i++)
		run[i] = leat_page_pool_alloc(pool, 4);
	assert_split(pool, 0, 0, 40);
	leat_page_pool_post(pool, 12);
	assert_split(pool, 12, 0, 28);
	put_elsewhere(run + 3, 2);
	assert_split(pool, 12, 8, 20);
	put_elsewhere(run + 5, 1);
	assert_split(pool, 12, 12, 16);
	ask(&mem, 0, &said);
	assert_int_equal(said.n, 3);
	assert_int_equal(find(&said, "its device")->granules, 12);
	assert_int_equal(find(&said, "its device")->kind, LEAT_HOLDER_DEVICE);
	assert_int_equal(find(&said, "on the way back")->granules, 12);
	assert_int_equal(find(&said, "unknown")->granules, 16);
	assert_string_equal(said.holder[2], "unknown");
	assert_int_equal(leat_page_pool_drain(pool), 12);
	assert_split(pool, 12, 0, 16);
	leat_page_pool_complete(pool, 12);
	assert_split(pool, 0, 0, 28);
	leat_page_pool_put_page_bulk(run, 3);
	leat_page_pool_put_page_bulk(run + 6, 4);
	assert_split(pool, 0, 0, 0);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- random operations by several threads ---- */

#define MOVERS 4u
#define BATCH 24u

/** Gets a batch each turn, parks some until the next turn, shares and puts the others; counts flows and tags. */
struct mover {
	pthread_t thread;
	pthread_barrier_t *turn;
	uint64_t seed;
	bool stop;
	unsigned int n; /* runs of this turn */
	struct leat_run run[BATCH], parked[BATCH];
	unsigned int n_parked;
	uint64_t in_ring;
	uint16_t holder;
};

static uint64_t granules_of(const struct leat_run *run, unsigned int n)
{
	uint64_t sum = 0;

	while (n--)
		sum += leat_run_granules(run[n]);
	return sum;
}

static void move(struct mover *m)
{
	unsigned int i;

	for (i = 0; i < m->n_parked; i++)
		leat_page_pool_unpark(m->parked[i]);
	leat_page_pool_put_page_bulk(m->parked, m->n_parked);
	m->n_parked = test_below(&m->seed, m->n + 1);
	leat_flow_in(LEAT_PLACE_RING, granules_of(m->run, m->n));
	leat_flow_out(LEAT_PLACE_RING, granules_of(m->run, m->n));
	for (i = 0; i < m->n; i++) {
		leat_page_pool_hold(m->run[i], m->holder);
		if (i < m->n_parked) {
			leat_page_pool_park(m->run[i], m->holder);
			m->parked[i] = m->run[i];
		} else if (i % 2) {
			leat_page_pool_get_page(m->run[i]);
			leat_page_pool_put_page(m->run[i]);
			leat_page_pool_put_page(m->run[i]);
		} else {
			leat_page_pool_put_page(m->run[i]);
		}
	}
	leat_flow_out(LEAT_PLACE_RING, m->in_ring);
	m->in_ring = test_below(&m->seed, 100);
	leat_flow_in(LEAT_PLACE_RING, m->in_ring);
}

static void *mover_main(void *arg)
{
	struct mover *m = arg;

	for (;;) {
		pthread_barrier_wait(m->turn);
		if (m->stop)
			return NULL;
		move(m);
		pthread_barrier_wait(m->turn);
	}
}

/** Between two turns everything stands still and must add up. */
static void check_sums(struct test_mem *mem, struct leat_page_pool *pool, const struct mover *m)
{
	uint64_t parked = 0, ring = 0;
	struct leat_page_pool_stats stats;
	struct said said;
	unsigned int i;

	leat_page_pool_stats(pool, &stats);
	ask(mem, 0, &said);
	assert_int_equal(said.granules, stats.outstanding);
	leat_page_pool_drain(pool); /* what is on the way back still has the name of who put it */
	ask(mem, 0, &said);
	for (i = 0; i < MOVERS; i++) {
		const struct leat_holder_report *line = find(&said, leat_holder_name(m[i].holder));

		assert_int_equal(line ? line->tagged : 0, m[i].n_parked);
		assert_int_equal(line ? line->granules : 0, granules_of(m[i].parked, m[i].n_parked));
		parked += granules_of(m[i].parked, m[i].n_parked);
		ring += m[i].in_ring;
	}
	assert_int_equal(stats.held, parked);
	assert_int_equal(stats.device, 0);
	assert_int_equal(stats.outstanding, stats.held + stats.returning);
	assert_int_equal(stats.alloc, stats.direct + stats.remote + stats.outstanding);
	assert_int_equal(said.granules, parked);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), parked);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), ring);
	assert_split(pool, 0, 0, parked);
}

static void deal(struct leat_page_pool *pool, struct mover *m, uint64_t *seed)
{
	unsigned int i, k;

	for (i = 0; i < MOVERS; i++) {
		m[i].n = test_below(seed, BATCH + 1);
		for (k = 0; k < m[i].n; k++) {
			m[i].run[k] = leat_page_pool_alloc(pool, 1 + test_below(seed, 9));
			assert_false(leat_run_is_none(m[i].run[k]));
		}
	}
}

static void sums_agree_whatever_several_threads_do(void **state)
{
	unsigned int round, rounds = TEST_ROUNDS(3000u), i;
	static struct mover m[MOVERS];
	struct leat_page_pool *pool;
	pthread_barrier_t turn;
	struct test_mem mem;
	uint64_t seed = 11;
	char name[20];

	(void)state;
	memset(m, 0, sizeof(m));
	test_mem_open(&mem, EXTENT * 4);
	pool = test_pool(mem.segment, EXTENT * 4);
	pthread_barrier_init(&turn, NULL, MOVERS + 1);
	for (i = 0; i < MOVERS; i++) {
		snprintf(name, sizeof(name), "mover %u", i);
		m[i].turn = &turn;
		m[i].seed = i + 1;
		m[i].holder = leat_holder_register(name);
		assert_int_equal(pthread_create(&m[i].thread, NULL, mover_main, &m[i]), 0);
	}
	for (round = 0; round <= rounds; round++) {
		for (i = 0; i < MOVERS; i++)
			m[i].stop = round == rounds;
		if (round < rounds)
			deal(pool, m, &seed);
		pthread_barrier_wait(&turn);
		if (round < rounds)
			pthread_barrier_wait(&turn);
		check_sums(&mem, pool, m);
	}
	for (i = 0; i < MOVERS; i++) {
		assert_int_equal(pthread_join(m[i].thread, NULL), 0);
		for (unsigned int k = 0; k < m[i].n_parked; k++)
			leat_page_pool_unpark(m[i].parked[k]);
		leat_page_pool_put_page_bulk(m[i].parked, m[i].n_parked);
		leat_flow_out(LEAT_PLACE_RING, m[i].in_ring);
	}
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), 0);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 0);
	pthread_barrier_destroy(&turn);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- threads come and go ---- */

#define CROWD 100u

struct visitor {
	pthread_t thread;
	pthread_barrier_t *together;
	struct leat_run run;
	bool takes; /* else it puts what the one before has parked */
};

static void *visitor_main(void *arg)
{
	struct visitor *v = arg;
	unsigned int i;

	if (v->together)
		pthread_barrier_wait(v->together);
	for (i = 0; i < 100; i++) {
		leat_flow_in(LEAT_PLACE_RING, 3);
		if (v->takes)
			leat_flow_out(LEAT_PLACE_RING, 2);
	}
	if (v->takes)
		leat_page_pool_park(v->run, leat_holder_register("visitor"));
	if (v->together) /* so that all are there at once, more than there are numbers */
		pthread_barrier_wait(v->together);
	return NULL;
}

static void flows_outlive_the_threads_that_counted_them(void **state)
{
	struct leat_page_pool *pool;
	static struct visitor v[CROWD];
	pthread_barrier_t together;
	struct test_mem mem;
	struct said said;
	unsigned int i, round;
	uint64_t ring = 0;

	(void)state;
	test_mem_open(&mem, EXTENT);
	pool = test_pool(mem.segment, EXTENT);
	pthread_barrier_init(&together, NULL, CROWD);
	for (round = 0; round < 4; round++) { /* all at once, and one after the other */
		for (i = 0; i < CROWD; i++) {
			v[i].together = round % 2 ? NULL : &together;
			v[i].takes = i % 2;
			v[i].run = leat_page_pool_alloc(pool, 1 + i % 3);
			ring += i % 2 ? 100 : 300;
			assert_int_equal(pthread_create(&v[i].thread, NULL, visitor_main, &v[i]), 0);
			if (round % 2)
				assert_int_equal(pthread_join(v[i].thread, NULL), 0);
		}
		for (i = 0; i < CROWD && round % 2 == 0; i++)
			assert_int_equal(pthread_join(v[i].thread, NULL), 0);
		assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), ring);
		ask(&mem, 0, &said);
		assert_int_equal(find(&said, "visitor")->tagged, CROWD / 2);
		assert_int_equal(find(&said, "visitor")->granules, leat_flow_in_place(LEAT_PLACE_PARKED));
		for (i = 0; i < CROWD; i++) {
			if (v[i].takes)
				leat_page_pool_unpark(v[i].run);
			leat_page_pool_put_page(v[i].run);
		}
		assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 0);
	}
	leat_flow_out(LEAT_PLACE_RING, ring);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_RING), 0);
	pthread_barrier_destroy(&together);
	test_pool_end(pool);
	test_mem_close(&mem);
}

/* ---- a report while everything moves ---- */

struct watcher {
	struct test_mem *mem;
	uint32_t stop;
	uint64_t reports, lines;
};

static void look_at_line(const struct leat_holder_report *report, void *arg)
{
	struct watcher *w = arg;

	w->lines++;
	LEAT_ASSERT(!strcmp(report->pool, "pool"));
	LEAT_ASSERT(report->granules && report->granules <= 4 * EXTENT_GRANULES);
	LEAT_ASSERT(report->oldest_ms >= report->youngest_ms && report->oldest_ms < 3600000);
	LEAT_ASSERT(report->kind == LEAT_HOLDER_UNKNOWN || report->kind == LEAT_HOLDER_RETURNING ||
		    (report->kind == LEAT_HOLDER_TAGGED && !strcmp(report->holder, "somebody")));
}

static void *watcher_main(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		LEAT_ASSERT(leat_segment_report(w->mem->segment, 0, look_at_line, w) >= 0);
		w->reports++;
	}
	return NULL;
}

static void a_report_may_be_asked_for_at_any_time(void **state)
{
	uint16_t holder = leat_holder_register("somebody");
	unsigned int round, rounds = TEST_ROUNDS(2000u), i;
	struct test_mem mem;
	struct watcher w = { .mem = &mem };
	struct leat_run run[40];
	pthread_t thread;
	uint64_t seed = 5;

	(void)state;
	test_mem_open(&mem, EXTENT * 8);
	assert_int_equal(pthread_create(&thread, NULL, watcher_main, &w), 0);
	for (round = 0; round < rounds; round++) { /* pools come and go, too, some of them after their buffers */
		struct leat_page_pool *pool = test_pool(mem.segment, EXTENT * 4);

		for (i = 0; i < COUNT(run); i++)
			leat_run_tag(run[i] = leat_page_pool_alloc(pool, 1 + test_below(&seed, 20)), holder);
		leat_page_pool_put_page_bulk(run, 20);
		if (round % 16 == 0)
			put_elsewhere(run + 20, 10);
		else
			leat_page_pool_put_page_bulk(run + 20, 10);
		leat_page_pool_destroy(pool);
		leat_page_pool_put_page_bulk(run + 30, 10);
	}
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(w.reports && w.lines);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_one_number),
		cmocka_unit_test(too_many_names_are_nobody),
		cmocka_unit_test(what_is_parked_and_forgotten_has_a_name_a_count_and_an_age),
		cmocka_unit_test(only_what_is_old_is_told_when_an_age_is_asked_for),
		cmocka_unit_test(a_destroyed_pool_is_told_until_its_last_buffer_is_back),
		cmocka_unit_test(a_sample_of_runs_is_tagged_when_they_change_hands),
		cmocka_unit_test(a_report_without_memory_says_so),
		cmocka_unit_test(a_name_never_comes_back_with_the_memory),
		cmocka_unit_test(what_stays_out_keeps_its_name_while_its_page_is_cut_again),
		cmocka_unit_test(what_is_outstanding_is_with_a_device_or_returning_or_held),
		cmocka_unit_test(sums_agree_whatever_several_threads_do),
		cmocka_unit_test(flows_outlive_the_threads_that_counted_them),
		cmocka_unit_test(a_report_may_be_asked_for_at_any_time),
	};

	return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
