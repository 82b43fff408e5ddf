/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * account.h: where packet memory is, who was last seen with it, and since when.
 *
 * Three sources, none of which costs the fast path a read-modify-write per buffer:
 *
 *   flows   per thread, monotonic, kept where packets change hands in batches: what went into rings and parking
 *           places and what came out. A state's size is the difference of two sums.
 *   tags    a *holder* is a name for a place in the program. It is written into the descriptor of a run's first
 *           granule: exactly where packets are parked, and at other hand-overs for the runs that begin a block (a
 *           sample: a test of the address, no load). A tag carries the page's cut_seq, so it ends with the buffer.
 *   ages    a page remembers when the cursor cut it.
 *
 * A report walks the free masks: granules that are not free and not under the cursor are out, the tags among them
 * say who has them and the pages how long at most.
 */
#ifndef LEAT_ACCOUNT_H
#define LEAT_ACCOUNT_H

#include <leat/page_pool.h>

LEAT_BEGIN_DECLS

/** Holders that can be told apart; 0 is nobody in particular. */
#define LEAT_HOLDERS_MAX 256
#define LEAT_HOLDER_NONE 0

/**
 * Gives a name (31 bytes are kept) a number for the process's life; the same name gets the same number. Returns
 * LEAT_HOLDER_NONE when there are too many. *any*, control path.
 */
LEAT_API uint16_t leat_holder_register(const char *name);
/** The name; "unknown" for LEAT_HOLDER_NONE and for numbers not given out. *any*. */
LEAT_API const char *leat_holder_name(uint16_t holder);

/** Places whose contents are counted, beside what a pool counts itself. */
enum leat_place {
	LEAT_PLACE_RING,   /* rings between threads */
	LEAT_PLACE_PARKED, /* socket queues, cpumap entries: where packets may stay */
};
#define LEAT_PLACES 2

/** What one thread has moved, in granules; monotonic, single writer, any reader. */
struct leat_flow {
	uint64_t in[LEAT_PLACES];
	uint64_t out[LEAT_PLACES];
};

/** Counts @granules into or out of a place. *any*. */
LEAT_API void leat_flow_in(enum leat_place place, uint64_t granules);
LEAT_API void leat_flow_out(enum leat_place place, uint64_t granules);
/** What is in a place now, granules of all pools of the process: exact when nobody moves anything. *any*. */
LEAT_API uint64_t leat_flow_in_place(enum leat_place place);

/** Writes @holder's tag for the run. *any* thread that holds it. */
LEAT_API void leat_run_tag(struct leat_run run, uint16_t holder);

/** Says that @holder has the run now: recorded for a sample of runs, those that begin a block. *any*. */
static inline void leat_page_pool_hold(struct leat_run run, uint16_t holder)
{
#ifndef LEAT_EXACT_HOLDERS /* a debugging option of the build: every run is recorded */
	if (leat_likely(leat_run_addr(run) % LEAT_BLOCK_SIZE))
		return;
#endif
	leat_run_tag(run, holder);
}

/** A packet is put where it may stay: recorded for each. **Borrows**. *any*. */
LEAT_API void leat_page_pool_park(struct leat_run run, uint16_t holder);
/** It is taken from there. *any*. */
LEAT_API void leat_page_pool_unpark(struct leat_run run);

/** One line of a report: what one holder has of one pool. */
struct leat_holder_report {
	const char *pool;      /* valid during the call */
	const char *holder;    /* "unknown": runs without a tag */
	bool closed;           /* the pool was destroyed and waits for this */
	uint64_t tagged;       /* runs with this holder's tag (count); 0 for unknown */
	uint64_t granules;     /* unknown: granules out that no tag speaks of; else those of the tagged runs' pages' */
	uint64_t oldest_ms;    /* time since the oldest of them was cut, milliseconds, at most */
	uint64_t youngest_ms;
};

/**
 * Reports who holds buffers of @segment's pools that are out for @min_age_ms or longer (0: all): one call for each
 * pool and holder, the holder with the oldest first, "unknown" last. Buffers in a device's ring count as held by
 * their pool's name followed by "/device" when all that is out is posted. Pools must not be made or ended by @fn.
 * Exact when nobody moves anything, else a snapshot. *any*.
 */
LEAT_API void leat_segment_report(struct leat_segment *segment, uint64_t min_age_ms,
				  void (*fn)(const struct leat_holder_report *report, void *arg), void *arg);

LEAT_END_DECLS

#endif
