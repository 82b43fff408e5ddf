/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h: what a bench is made of. A bench is one file with one function, run, which makes what it needs, measures
 * groups of variants, states ratios and ends what it made:
 *
 *	static int run_it(struct bench_run *run)
 *	{
 *		const struct bench_variant variants[] = {
 *			{ .name = "mine", .ops = mine, .arg = &state },
 *			{ .name = "baseline", .ops = baseline, .arg = &other },
 *		};
 *
 *		bench_measure(run, variants, 2);
 *		bench_ratio(run, "mine/baseline", "mine", "baseline", BENCH_MARK_AT_MOST(0.6));
 *		return 0;
 *	}
 *
 *	const struct bench bench_mine = { "mine", "what it measures", "ns/op", BENCH_LOWER, run_it };
 *
 * and a row in the table of main.c. The variants of a group are measured in turn, A B B A A B ..., one slice each a
 * round, and a round gives one sample of each. Everything here is for the main thread, which is pinned to the first
 * core; partners (team.h) have the others.
 */
#ifndef LEAT_BENCH_BENCH_H
#define LEAT_BENCH_BENCH_H

#include <leat/page_pool.h>

/** Functions with calls through constant pointers that must become part of the caller. */
#define BENCH_INLINE static inline __attribute__((always_inline))
/** Keeps the compiler from knowing where @value comes from, and from dropping what made it. */
#define BENCH_OPAQUE(value) __asm__ volatile("" : "+r"(value) : : "memory")

struct bench_run;

enum bench_better { BENCH_LOWER, BENCH_HIGHER };

struct bench {
	const char *name;
	const char *about; /* one line */
	const char *unit;  /* of its variants */
	enum bench_better better;
	/** Returns 0, or a negative errno when it could not run: bench_note() says why. */
	int (*run)(struct bench_run *run);
};

/** Operations come in multiples of this. */
#define BENCH_STEP 1024u

/** One way of doing what is measured: by ops, or by sample, which goes first. */
struct bench_variant {
	const char *name; /* "variant" or "variant@point"; copied */
	/** Does @n operations, a multiple of BENCH_STEP. The sample is their time over their number, ns. */
	void (*ops)(void *arg, uint64_t n);
	/** Measures for about @ns nanoseconds by itself and returns the sample, in the bench's unit. */
	double (*sample)(void *arg, uint64_t ns);
	void *arg;
	/**
	 * The partners work, too: the time is that of the wall (of ops; else CPU time of the main thread), and a round
	 * counts only when cache lines went between the cores equally fast before and after each slice, and nobody
	 * else had one of the cores meanwhile.
	 */
	bool two_cores;
	/** With two_cores: partners may be off their core, or sleep on a lock, so its time is not asked for. */
	bool shares_core;
	/** When instructions are counted, ops calls bench_counted() for what is to be counted. */
	bool counts_itself;
};

/**
 * Measures a group: as many rounds as asked for, and up to three times as many that do not count. A name that stands
 * twice is measured twice a round; its sample is the mean, and a round in which the two differ by more than 20 % does
 * not count. Returns how many rounds were kept.
 */
unsigned int bench_measure(struct bench_run *run, const struct bench_variant *variants, unsigned int n);

/** Samples of a variant that was measured, in the order of the rounds; NULL if there is none of that name. */
const double *bench_samples(const struct bench_run *run, const char *name, unsigned int *n);
/** Adds a variant whose samples are made from others', or counted. */
void bench_add(struct bench_run *run, const char *name, const double *samples, unsigned int n);

enum bench_mark_kind { BENCH_NONE, BENCH_AT_MOST, BENCH_AT_LEAST, BENCH_WITHIN };

/** What should hold. WITHIN: the ratio is between 1 - value and 1 + value. */
struct bench_mark {
	enum bench_mark_kind kind;
	double value;
};

#define BENCH_MARK_NONE ((struct bench_mark){ BENCH_NONE, 0 })
#define BENCH_MARK_AT_MOST(v) ((struct bench_mark){ BENCH_AT_MOST, v })
#define BENCH_MARK_AT_LEAST(v) ((struct bench_mark){ BENCH_AT_LEAST, v })
#define BENCH_MARK_WITHIN(v) ((struct bench_mark){ BENCH_WITHIN, v })

/**
 * States the ratio of two variants by the paired ratios of their rounds; nothing when one of the two was not measured.
 * They must have as many samples: be of one group, or added. A ratio to 0 is stated as none.
 */
void bench_ratio(struct bench_run *run, const char *name, const char *over, const char *under, struct bench_mark mark);
/** A ratio that was counted and does not vary. */
void bench_exact(struct bench_run *run, const char *name, double value, struct bench_mark mark);
/** Says something beside the numbers, a line. */
void bench_note(struct bench_run *run, const char *fmt, ...) LEAT_PRINTF(2, 3);

/** CPU time of the calling thread, ns: for variants that measure by themselves. */
uint64_t bench_cpu_ns(void);
/** Rounds wanted; 1 ms slices and no waiting for quiet cores with --smoke. */
unsigned int bench_rounds(const struct bench_run *run);
bool bench_smoke(const struct bench_run *run);
/** The file of --pcap, or NULL. */
const char *bench_pcap(const struct bench_run *run);
/** Whether a second core is there, for variants with two_cores. */
bool bench_two_cores(const struct bench_run *run);
unsigned int bench_cpus(const struct bench_run *run);
/** Cores: 0 is the main thread's, 1.. the partners'. */
int bench_cpu(const struct bench_run *run, unsigned int idx);
struct team *bench_team(struct bench_run *run);

/**
 * Instructions per operation of a variant's ops, counted by callgrind in a child that runs this bench's function up
 * to the group of that name. Negative when valgrind is not there. Where bench_counting() says true, this is the child:
 * what the variant does not need may be left out.
 */
double bench_instructions(struct bench_run *run, const char *variant);
/** Calls @ops(@arg, @n) where callgrind collects: for a variant that counts itself. */
void bench_counted(void (*ops)(void *arg, uint64_t n), void *arg, uint64_t n);
bool bench_counting(const struct bench_run *run);

/** Packet memory of a bench: an arena, a segment, and a pool that the main thread owns. */
struct bench_mem {
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct leat_page_pool *pool;
};

/** Makes it, the pool with @limit bytes. Returns 0 or a negative errno. */
int bench_mem_open(struct bench_run *run, struct bench_mem *mem, uint64_t limit);
/** Ends it; what is still outstanding counts against the run, which then fails. */
void bench_mem_close(struct bench_run *run, struct bench_mem *mem);

#endif
