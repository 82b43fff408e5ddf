/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * account.c: flows, holders and their tags, and the report of who has what. Any thread.
 *
 * The report reads what owners write meanwhile: masks, cuts and tags, all of them relaxed atomics. It holds the arena's
 * lock, so that pools stay; what it finds is kept as lines and told when the lock is free again.
 */
#include <leat/account.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "mem/page_pool_internal.h"
#include "mem/stamp.h"

LEAT_STATIC_ASSERT(LEAT_HOLDERS_MAX == 1 << LEAT_TAG_HOLDER_BITS, "a holder fits in a tag");

/* ---- flows ---- */

/* By number of thread: who gets a number after another continues its sums (thread.c orders the two). */
static struct {
	struct leat_flow flow LEAT_CACHELINE_ALIGNED;
} flows[LEAT_THREADS_MAX];

static struct leat_flow *own_flow(bool *shared)
{
	struct leat_thread *thread = leat_thread_self;

	if (leat_unlikely(!thread))
		thread = leat_thread_register();
	*shared = !thread->id;
	return &flows[thread->id].flow;
}

static inline void flow_add(uint64_t *counter, uint64_t granules, bool shared)
{
	if (leat_unlikely(shared))
		__atomic_fetch_add(counter, granules, __ATOMIC_RELAXED);
	else
		leat_count(counter, granules);
}

void leat_flow_in(enum leat_place place, uint64_t granules)
{
	bool shared;
	struct leat_flow *flow = own_flow(&shared);

	flow_add(&flow->in[place], granules, shared);
}

void leat_flow_out(enum leat_place place, uint64_t granules)
{
	bool shared;
	struct leat_flow *flow = own_flow(&shared);

	flow_add(&flow->out[place], granules, shared);
}

uint64_t leat_flow_in_place(enum leat_place place)
{
	uint64_t in = 0, out = 0;
	unsigned int i;

	for (i = 0; i < LEAT_THREADS_MAX; i++)
		out += __atomic_load_n(&flows[i].flow.out[place], __ATOMIC_RELAXED);
	for (i = 0; i < LEAT_THREADS_MAX; i++)
		in += __atomic_load_n(&flows[i].flow.in[place], __ATOMIC_RELAXED);
	return in > out ? in - out : 0; /* another thread may see the parts of one moment and the next */
}

/* ---- holders ---- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static char names[LEAT_HOLDERS_MAX][LEAT_HOLDER_NAME_MAX] = { "unknown" };
static uint16_t n_names = 1; /* a name is not changed once it counts (atomic) */

uint16_t leat_holder_register(const char *name)
{
	uint16_t i, n;

	pthread_mutex_lock(&names_lock);
	n = n_names;
	for (i = 1; i < n; i++)
		if (!strncmp(names[i], name, LEAT_HOLDER_NAME_MAX - 1))
			break;
	if (i == LEAT_HOLDERS_MAX) {
		i = LEAT_HOLDER_NONE;
	} else if (i == n) {
		snprintf(names[i], LEAT_HOLDER_NAME_MAX, "%s", name);
		__atomic_store_n(&n_names, n + 1, __ATOMIC_RELEASE); /* pairs with leat_holder_name() */
	}
	pthread_mutex_unlock(&names_lock);
	return i;
}

const char *leat_holder_name(uint16_t holder)
{
	/* pairs with leat_holder_register() */
	return names[holder < __atomic_load_n(&n_names, __ATOMIC_ACQUIRE) ? holder : LEAT_HOLDER_NONE];
}

/* ---- tags ---- */

static uint32_t page_of(uint64_t addr)
{
	return (uint32_t)(addr % LEAT_BLOCK_SIZE) >> LEAT_PAGE_SHIFT;
}

void leat_run_tag(struct leat_run run, uint16_t holder)
{
	uint64_t addr = leat_run_addr(run);
	uint32_t n = leat_run_granules(run), seq, tag = 0;

	if (leat_run_is_none(run))
		return;
	seq = __atomic_load_n(&leat_block_of(addr)->cut_seq[page_of(addr)], __ATOMIC_RELAXED);
	if (n > LEAT_TAG_GRANULES_MAX)
		n = LEAT_TAG_GRANULES_MAX;
	if (holder != LEAT_HOLDER_NONE && holder < LEAT_HOLDERS_MAX)
		tag = n << (LEAT_TAG_HOLDER_BITS + LEAT_TAG_SEQ_BITS) | seq << LEAT_TAG_HOLDER_BITS | holder;
	__atomic_store_n(&leat_granule_of(addr)->tag, tag, __ATOMIC_RELAXED);
}

void leat_page_pool_park(struct leat_run run, uint16_t holder)
{
	leat_run_tag(run, holder);
	leat_flow_in(LEAT_PLACE_PARKED, leat_run_granules(run));
}

void leat_page_pool_unpark(struct leat_run run)
{
	leat_run_tag(run, LEAT_HOLDER_NONE);
	leat_flow_out(LEAT_PLACE_PARKED, leat_run_granules(run));
}

/* ---- where what is outstanding is ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void leat_pool_split(const struct leat_pool *pool, struct leat_page_pool_stats *stats)
{
	stats->device = least(leat_pool_device(pool), stats->outstanding);
	stats->returning = least(leat_pool_returning(pool), stats->outstanding - stats->device);
	stats->held = stats->outstanding - stats->device - stats->returning;
}

/* ---- the report: one pool ---- */

/** An age just before the stamps go round is a page cut a moment ago. */
#define SOON_MS 3600000u

/** What is known of one holder, or of the granules without a tag. */
struct tally {
	uint64_t runs, granules;
	uint32_t oldest_ms, youngest_ms;
};

struct line {
	char pool[32];
	struct leat_holder_report report;
};

struct report {
	uint64_t min_age_ms;
	uint32_t now;
	struct tally *tally;  /* by holder; all zero between pools */
	uint16_t *seen;       /* holders with a tally */
	unsigned int n_seen;
	/* the last tagged run */
	uint16_t holder;
	uint32_t age, left; /* granules of it that are still to come */
	uint64_t next;      /* address of the first of them */
	struct line *line;
	size_t n, room;
	bool no_memory;
};

static void tally_add(struct tally *tally, bool begins, uint32_t age)
{
	if (!tally->granules) {
		tally->oldest_ms = tally->youngest_ms = age;
	} else if (age > tally->oldest_ms) {
		tally->oldest_ms = age;
	} else if (age < tally->youngest_ms) {
		tally->youngest_ms = age;
	}
	tally->runs += begins;
	tally->granules++;
}

/** The holder whose valid tag the granule has, and the granules of the run; or LEAT_HOLDER_NONE. */
static uint16_t read_tag(const struct leat_block *block, uint64_t addr, uint32_t *granules)
{
	uint32_t tag = __atomic_load_n(&leat_granule_of(addr)->tag, __ATOMIC_RELAXED);
	uint32_t seq = __atomic_load_n(&block->cut_seq[page_of(addr)], __ATOMIC_RELAXED);

	if ((tag >> LEAT_TAG_HOLDER_BITS & LEAT_TAG_SEQ_MASK) != seq)
		return LEAT_HOLDER_NONE;
	*granules = tag >> (LEAT_TAG_HOLDER_BITS + LEAT_TAG_SEQ_BITS);
	return tag & (LEAT_HOLDERS_MAX - 1);
}

/** Milliseconds since the page was cut. */
static uint32_t age_of(const struct report *r, const struct leat_block *block, uint64_t addr)
{
	uint32_t age = r->now - __atomic_load_n(&block->cut_ms[page_of(addr)], __ATOMIC_RELAXED);

	return age > UINT32_MAX - SOON_MS ? 0 : age; /* cut after the walk began */
}

/** A granule that is out: of a tagged run, or of nobody that is known. */
static void take_granule(struct report *r, const struct leat_block *block, uint64_t addr)
{
	uint32_t granules = 0;
	uint16_t holder = read_tag(block, addr, &granules);

	if (holder != LEAT_HOLDER_NONE) {
		r->holder = holder;
		r->age = age_of(r, block, addr);
		r->left = granules;
	} else if (!r->left || addr != r->next) {
		r->holder = LEAT_HOLDER_NONE;
		r->age = age_of(r, block, addr);
		r->left = 1;
	}
	r->left--;
	r->next = addr + LEAT_GRANULE_SIZE;
	if (r->age < r->min_age_ms)
		return;
	if (holder != LEAT_HOLDER_NONE && !r->tally[holder].runs)
		r->seen[r->n_seen++] = holder;
	tally_add(&r->tally[r->holder], holder != LEAT_HOLDER_NONE, r->age);
}

/** Granules of the block at @addr that the cursor has, as bits of its mask. */
static uint64_t under_cursor(uint64_t addr, uint64_t cur, uint32_t left)
{
	uint64_t bit = (cur - addr) >> LEAT_GRANULE_SHIFT; /* huge when the cursor is in a block before */

	if (!left || bit >= LEAT_BLOCK_GRANULES)
		return 0;
	return leat_block_mask((uint32_t)bit, (uint32_t)least(left, LEAT_BLOCK_GRANULES - bit));
}

/** Granules of block @idx with memory that are not free, as bits of its mask. */
static uint64_t not_free(const struct leat_pool *pool, uint32_t idx, const struct leat_block *block)
{
	uint64_t present = leat_pool_present(pool, idx);

	/* pairs with the cuts in page_pool.c, and with forget_free(): who sees that sees then that the pages are gone */
	return present & ~__atomic_load_n(&block->free, __ATOMIC_ACQUIRE);
}

/** Looks at every granule with memory behind it. */
static void walk_pool(struct report *r, const struct leat_pool *pool)
{
	uint32_t idx, n = __atomic_load_n(&pool->n_blocks, __ATOMIC_RELAXED), left = leat_pool_cursor(pool);
	uint64_t cur = __atomic_load_n(&pool->pub.cur, __ATOMIC_RELAXED), out;

	r->left = 0;
	for (idx = 0; idx < n; idx++) {
		uint64_t addr = pool->range.addr + ((uint64_t)idx << LEAT_BLOCK_SHIFT);
		const struct leat_block *block = leat_block_of(addr);

		out = not_free(pool, idx, block) & ~under_cursor(addr, cur, left);
		if (out) /* once more: memory that is given back, or comes, is not free for a moment */
			out &= not_free(pool, idx, block);
		for (; out; out &= out - 1)
			take_granule(r, block, addr + ((uint64_t)__builtin_ctzll(out) << LEAT_GRANULE_SHIFT));
	}
}

/* ---- the report: lines ---- */

static bool make_room(struct report *r)
{
	size_t room = r->room ? 2 * r->room : 32;
	struct line *line;

	if (r->n < r->room)
		return true;
	line = leat_heap_zalloc(room * sizeof(*line));
	if (!line) {
		r->no_memory = true;
		return false;
	}
	if (r->n)
		memcpy(line, r->line, r->n * sizeof(*line));
	leat_heap_free(r->line);
	r->line = line;
	r->room = room;
	return true;
}

static void add_line(struct report *r, const struct leat_pool *pool, enum leat_holder_kind kind, const char *holder,
		     const struct tally *tally, uint64_t granules)
{
	struct line *line;

	if (!granules || !make_room(r))
		return;
	line = &r->line[r->n++];
	memcpy(line->pool, pool->name, sizeof(line->pool));
	line->report = (struct leat_holder_report){
		.holder = holder,
		.kind = kind,
		.closed = __atomic_load_n(&pool->pub.closed, __ATOMIC_RELAXED),
		.tagged = tally->runs,
		.granules = granules,
		.oldest_ms = tally->oldest_ms,
		.youngest_ms = tally->youngest_ms,
	};
}

static void report_range(struct leat_segment_range *range, void *arg)
{
	const struct leat_pool *pool = (struct leat_pool *)((char *)range - offsetof(struct leat_pool, range));
	struct report *r = arg;
	struct tally *rest = &r->tally[LEAT_HOLDER_NONE];
	struct leat_page_pool_stats stats;
	uint64_t device, returning;
	unsigned int i;

	leat_page_pool_stats(&pool->pub, &stats);
	walk_pool(r, pool);
	for (i = 0; i < r->n_seen; i++) {
		struct tally *tally = &r->tally[r->seen[i]];

		add_line(r, pool, LEAT_HOLDER_TAGGED, leat_holder_name(r->seen[i]), tally, tally->granules);
		memset(tally, 0, sizeof(*tally));
	}
	r->n_seen = 0;
	device = least(stats.device, rest->granules);
	returning = least(stats.returning, rest->granules - device);
	add_line(r, pool, LEAT_HOLDER_DEVICE, "its device", rest, device);
	add_line(r, pool, LEAT_HOLDER_RETURNING, "on the way back", rest, returning);
	add_line(r, pool, LEAT_HOLDER_UNKNOWN, "unknown", rest, rest->granules - device - returning);
	memset(rest, 0, sizeof(*rest));
}

static int by_kind_and_age(const void *a, const void *b)
{
	const struct leat_holder_report *x = &((const struct line *)a)->report, *y = &((const struct line *)b)->report;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->oldest_ms != y->oldest_ms)
		return x->oldest_ms > y->oldest_ms ? -1 : 1;
	return x->granules > y->granules ? -1 : x->granules < y->granules;
}

int leat_segment_report(struct leat_segment *segment, uint64_t min_age_ms,
			void (*fn)(const struct leat_holder_report *report, void *arg), void *arg)
{
	/* not the coarse clock that pages are stamped with: it lags, and an age would be too small */
	struct report r = { .min_age_ms = min_age_ms, .now = (uint32_t)(leat_clock_ns() / 1000000) };
	int rc = -ENOMEM;
	size_t i;

	r.tally = leat_heap_zalloc(LEAT_HOLDERS_MAX * sizeof(*r.tally));
	r.seen = leat_heap_zalloc(LEAT_HOLDERS_MAX * sizeof(*r.seen));
	if (r.tally && r.seen)
		leat_segment_for_each_range(segment, report_range, &r);
	if (r.tally && r.seen && !r.no_memory) {
		if (r.n)
			qsort(r.line, r.n, sizeof(*r.line), by_kind_and_age);
		for (i = 0; i < r.n; i++) {
			r.line[i].report.pool = r.line[i].pool;
			fn(&r.line[i].report, arg);
		}
		rc = (int)r.n;
	}
	leat_heap_free(r.line);
	leat_heap_free(r.seen);
	leat_heap_free(r.tally);
	return rc;
}

static double seconds(uint64_t ms)
{
	return (double)ms / 1000;
}

int leat_holder_report_format(const struct leat_holder_report *report, char *buf, size_t size)
{
	const char *closed = report->closed ? " (destroyed)" : "";
	const char *granules = report->granules == 1 ? "granule" : "granules";

	if (report->kind == LEAT_HOLDER_TAGGED)
		return snprintf(buf, size, "pool %s%s: %s: %llu %s tagged (%llu %s), oldest %.1f s", report->pool, closed,
				report->holder, (unsigned long long)report->tagged, report->tagged == 1 ? "run" : "runs",
				(unsigned long long)report->granules, granules, seconds(report->oldest_ms));
	return snprintf(buf, size, "pool %s%s: %s: %llu %s, oldest %.1f s", report->pool, closed, report->holder,
			(unsigned long long)report->granules, granules, seconds(report->oldest_ms));
}
