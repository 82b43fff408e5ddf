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
 *           sample: a test of the address, no load). A tag ends when the memory is cut again, so that it never names
 *           somebody for what is another packet's by now. (Pieces of a page_frag_cache: when their chunk is; and what
 *           leat_page_pool_cancel() or trim gives back to the cursor is not cut again.)
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
#define LEAT_HOLDERS_MAX 4096
#define LEAT_HOLDER_NONE 0
/** Bytes of a holder's name with the 0 at its end. */
#define LEAT_HOLDER_NAME_MAX 64

/**
 * Gives a name (LEAT_HOLDER_NAME_MAX - 1 bytes are kept) a number for the process's life; the same name gets the same
 * number. Returns LEAT_HOLDER_NONE when there are too many. *any*, control path.
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

/**
 * Counts @granules into or out of a place: once for a batch. References are counted: a run with two holders in rings
 * counts twice. *any*.
 */
LEAT_API void leat_flow_in(enum leat_place place, uint64_t granules);
LEAT_API void leat_flow_out(enum leat_place place, uint64_t granules);
/** What is in a place now, granules of all pools of the process: exact when nobody moves anything. *any*. */
LEAT_API uint64_t leat_flow_in_place(enum leat_place place);

/**
 * Writes @holder's tag for the run (nothing for LEAT_RUN_NONE); LEAT_HOLDER_NONE takes the tag away. *any* thread that
 * holds it.
 */
LEAT_API void leat_run_tag(struct leat_run run, uint16_t holder);

/** Whether who gets the run is recorded: of a sample of runs, those that begin a block. */
static inline bool leat_run_is_sampled(struct leat_run run)
{
#ifdef LEAT_EXACT_HOLDERS /* a debugging option of the build */
	(void)run;
	return true;
#else
	return leat_unlikely(leat_run_addr(run) % LEAT_BLOCK_SIZE == 0);
#endif
}

/** Says that @holder has the run now. Packets: leat_skb_hold(), leat_xdp_frame_hold(). *any*. */
static inline void leat_page_pool_hold(struct leat_run run, uint16_t holder)
{
	if (leat_run_is_sampled(run))
		leat_run_tag(run, holder);
}

/** A run is put where it may stay: recorded for each. Packets: leat_skb_park(). **Borrows**. *any*. */
LEAT_API void leat_page_pool_park(struct leat_run run, uint16_t holder);
/** It is taken from there, by nobody in particular. *any*. */
LEAT_API void leat_page_pool_unpark(struct leat_run run);

enum leat_holder_kind {
	LEAT_HOLDER_TAGGED,    /* runs with a holder's tag */
	LEAT_HOLDER_DEVICE,    /* "its device": posted and not completed */
	LEAT_HOLDER_RETURNING, /* "on the way back": put by other threads, not yet drained by the owner, and without a tag */
	LEAT_HOLDER_UNKNOWN,   /* "unknown": the rest */
};

/** One line of a report: what one holder has of one pool. */
struct leat_holder_report {
	const char *pool;     /* valid during the call */
	const char *holder;   /* a holder's name; or, without tags, what the kind says */
	enum leat_holder_kind kind;
	bool closed;          /* the pool was destroyed and waits for this */
	uint64_t tagged;      /* runs with the holder's tag (count); 0 for the other kinds */
	uint64_t granules;    /* in those runs, of each 255 at most; for the other kinds what no tag speaks of */
	/* milliseconds, at most, since they were cut; goes round after 49 days. Without tags: of all that have none */
	uint64_t oldest_ms, youngest_ms;
};

/**
 * Reports who holds buffers of @segment's pools that are out for @min_age_ms or longer (0: all): one call for each
 * pool and holder. First the tagged, the oldest first, then the other kinds in their order. Pools that were destroyed
 * and wait for their buffers are among them. The granules of all lines without @min_age_ms add up to what is
 * outstanding. What is on the way back counts under the name of who put it, if it has one: drain first to be rid of
 * that (leat_net_outstanding() does). Exact when nobody moves anything, else a snapshot. A call walks all memory of the segment: for people
 * who look for something, not for every second. *any*.
 * Returns the number of lines; -ENOMEM: nothing was reported.
 */
LEAT_API int leat_segment_report(struct leat_segment *segment, uint64_t min_age_ms,
				 void (*fn)(const struct leat_holder_report *report, void *arg), void *arg);

/**
 * A line for people, without its end: "pool tap0.0: bridge br0: 3 runs tagged (12 granules), oldest 5.2 s".
 * As snprintf(): at most @size bytes with the 0 at its end; returns the length it would have.
 */
LEAT_API int leat_holder_report_format(const struct leat_holder_report *report, char *buf, size_t size);

LEAT_END_DECLS

#endif
