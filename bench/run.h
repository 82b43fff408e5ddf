/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h: what a run has measured, for the files of the framework. */
#ifndef LEAT_BENCH_RUN_H
#define LEAT_BENCH_RUN_H

#include "bench.h"

#define BENCH_CPUS_MAX 16

/** Samples of one variant. */
struct series {
	char *name;
	double *sample;
	unsigned int n, room;
};

struct ratio {
	char *name;
	double median, low, high; /* of the paired ratios, and the 95 % interval of that median */
	unsigned int n;           /* pairs; 0: no round was kept, or the lower one was 0 */
	bool exact;               /* counted: there is no interval */
	bool narrow;              /* enough pairs for an interval */
	struct bench_mark mark;
};

struct bench_opts {
	unsigned int rounds;
	uint64_t slice_ns;
	bool smoke, json, check;
	int cpu[BENCH_CPUS_MAX];
	unsigned int n_cpus;
	const char *pcap;  /* a capture for benches that are fed with lengths; NULL: none */
	const char *count; /* the variant to count instructions of, in the child; else NULL */
	uint64_t count_ops;
};

struct bench_run {
	const struct bench *bench;
	const struct bench_opts *opts;
	struct team *team; /* made when first asked for */
	struct series *series;
	unsigned int n_series;
	struct ratio *ratio;
	unsigned int n_ratios;
	char **note;
	unsigned int n_notes;
	uint64_t outstanding; /* granules that did not come back */
	bool counted;         /* in the child: the variant was found and run */
};

/** Memory that must be there: a bench that has none cannot go on. */
void *bench_realloc(void *mem, size_t size);
char *bench_strdup(const char *text);

/* ---- stat.c ---- */

/** Median, least and greatest of @n values; all 0 for none. */
struct summary {
	double median, min, max;
};
struct summary stat_summary(const double *value, unsigned int n);
/**
 * The 95 % interval of the median of @n values by order statistics. Returns false when there are too few (below 6): then
 * it is least and greatest.
 */
bool stat_interval(const double *value, unsigned int n, double *low, double *high);
/** "pass", "fail", "inconclusive", or NULL without a mark. */
const char *stat_verdict(const struct ratio *ratio);

/* ---- report.c ---- */

void report_text(const struct bench_run *run);
/** Returns 0 or a negative errno. */
int report_json(const struct bench_run *run);
/** Notes and what is outstanding, to standard error. */
void report_notes(const struct bench_run *run);

#endif
