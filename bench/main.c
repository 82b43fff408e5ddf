/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: leat-bench, which `leat bench` starts: finds the bench in a table and runs it. A program of its own, so that
 * what it is compared with (DPDK, jemalloc) is never part of leat.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches.h"
#include "run.h"
#include "team.h"

/* What leat-bench ends with; leat(8) says so, too. */
#define EXIT_GOOD 0
#define EXIT_BROKEN 1 /* it could not run, or a mark failed with --check */
#define EXIT_USAGE 2

#define ROUNDS 30u
#define ROUNDS_MAX 1000u
#define SLICE_MS 50u
/* jemalloc wants more static thread-local storage than a library that is loaded late may have by default. */
#define TUNABLES "glibc.rtld.optional_static_tls=16384"

static const struct bench *const benches[] = {
#define BENCH(name) &bench_##name,
	BENCHES
#undef BENCH
};

#define N_BENCHES (sizeof(benches) / sizeof(benches[0]))

enum { OPT_SLICE = 256, OPT_CPUS, OPT_SMOKE, OPT_PCAP, OPT_COUNT, OPT_COUNT_OPS };

static const struct option options[] = {
	{ "list", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "check", no_argument, NULL, 'c' },
	{ "slice", required_argument, NULL, OPT_SLICE },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "smoke", no_argument, NULL, OPT_SMOKE },
	{ "pcap", required_argument, NULL, OPT_PCAP },
	{ "count", required_argument, NULL, OPT_COUNT },         /* of count.c */
	{ "count-ops", required_argument, NULL, OPT_COUNT_OPS }, /* of count.c */
	{ NULL, 0, NULL, 0 },
};

static int list(void)
{
	size_t i;

	for (i = 0; i < N_BENCHES; i++)
		printf("%-10s %s\n", benches[i]->name, benches[i]->about);
	return EXIT_GOOD;
}

static const struct bench *find(const char *name)
{
	size_t i;

	for (i = 0; i < N_BENCHES; i++)
		if (!strcmp(benches[i]->name, name))
			return benches[i];
	return NULL;
}

/** Reads a number in [min, max]; says what is wrong with it. */
static bool parse(const char *option, const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (!errno && *text >= '0' && *text <= '9' && !*end && *out >= min && *out <= max)
		return true;
	fprintf(stderr, "leat bench: %s: '%s' is no number from %lu to %lu\n", option, text, min, max);
	return false;
}

static bool parse_cpus(struct bench_opts *opts, char *text)
{
	unsigned long cpu;
	char *word;

	for (opts->n_cpus = 0; (word = strsep(&text, ",")) && opts->n_cpus < BENCH_CPUS_MAX;) {
		if (!parse("--cpus", word, 0, CPU_SETSIZE - 1, &cpu))
			return false;
		opts->cpu[opts->n_cpus++] = (int)cpu;
	}
	return true;
}

/** The cores that this process may use. */
static void find_cpus(struct bench_opts *opts)
{
	cpu_set_t set;
	int cpu;

	if (opts->n_cpus || sched_getaffinity(0, sizeof(set), &set))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE && opts->n_cpus < BENCH_CPUS_MAX; cpu++)
		if (CPU_ISSET(cpu, &set))
			opts->cpu[opts->n_cpus++] = cpu;
}

/** Returns -1 to go on, else an exit code. */
static int parse_options(int argc, char **argv, struct bench_opts *opts)
{
	unsigned long n;
	int c;

	while ((c = getopt_long(argc, argv, "ljr:c", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			return list();
		case 'j':
			opts->json = true;
			break;
		case 'r':
			if (!parse("--rounds", optarg, 1, ROUNDS_MAX, &n))
				return EXIT_USAGE;
			opts->rounds = (unsigned int)n;
			break;
		case 'c':
			opts->check = true;
			break;
		case OPT_SLICE:
			if (!parse("--slice", optarg, 1, 10000, &n))
				return EXIT_USAGE;
			opts->slice_ns = n * 1000000;
			break;
		case OPT_CPUS:
			if (!parse_cpus(opts, optarg))
				return EXIT_USAGE;
			break;
		case OPT_SMOKE:
			opts->smoke = true;
			opts->rounds = 1;
			opts->slice_ns = 1000000;
			break;
		case OPT_PCAP:
			opts->pcap = optarg;
			break;
		case OPT_COUNT:
			opts->count = optarg;
			break;
		case OPT_COUNT_OPS:
			opts->count_ops = strtoull(optarg, NULL, 10) / BENCH_STEP * BENCH_STEP;
			break;
		default:
			fputs("try: leat bench --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	return -1;
}

/* ---- running one ---- */

static bool a_mark_failed(const struct bench_run *run)
{
	const char *verdict;
	unsigned int i;

	for (i = 0; i < run->n_ratios; i++) {
		verdict = stat_verdict(&run->ratio[i]);
		if (verdict && !strcmp(verdict, "fail"))
			return true;
	}
	return false;
}

static void free_run(struct bench_run *run)
{
	unsigned int i;

	for (i = 0; i < run->n_series; i++) {
		free(run->series[i].name);
		free(run->series[i].sample);
	}
	for (i = 0; i < run->n_ratios; i++)
		free(run->ratio[i].name);
	for (i = 0; i < run->n_notes; i++)
		free(run->note[i]);
	free(run->series);
	free(run->ratio);
	free(run->note);
}

static int run_bench(const struct bench *bench, const struct bench_opts *opts)
{
	struct bench_run run = { .bench = bench, .opts = opts };
	int err, code = EXIT_GOOD;

	team_pin(opts->cpu[0]);
	err = bench->run(&run);
	team_destroy(run.team);
	if (opts->count) {
		code = run.counted && !err ? EXIT_GOOD : EXIT_BROKEN;
	} else {
		if (!err && opts->json)
			err = report_json(&run);
		else if (!err)
			report_text(&run);
		report_notes(&run);
		if (err)
			fprintf(stderr, "leat bench: %s could not run: %s\n", bench->name, strerror(-err));
		if (err || run.outstanding || fflush(stdout) || (opts->check && a_mark_failed(&run)))
			code = EXIT_BROKEN;
	}
	free_run(&run);
	return code;
}

int main(int argc, char **argv)
{
	struct bench_opts opts = { .rounds = ROUNDS, .slice_ns = SLICE_MS * UINT64_C(1000000) };
	const struct bench *bench;
	int code;

	if (!getenv("GLIBC_TUNABLES") && !setenv("GLIBC_TUNABLES", TUNABLES, 1))
		execv("/proc/self/exe", argv); /* where that is not allowed, jemalloc is left out */
	code = parse_options(argc, argv, &opts);
	if (code >= 0)
		return code;
	if (argc - optind != 1) {
		fputs(argc == optind ? "leat bench: NAME is missing (try: leat bench --list)\n" :
				       "leat bench: more than one NAME\n", stderr);
		return EXIT_USAGE;
	}
	bench = find(argv[optind]);
	if (!bench) {
		fprintf(stderr, "leat bench: unknown bench '%s' (try: leat bench --list)\n", argv[optind]);
		return EXIT_USAGE;
	}
	find_cpus(&opts);
	if (!opts.n_cpus) {
		fputs("leat bench: no core to run on\n", stderr);
		return EXIT_BROKEN;
	}
	return run_bench(bench, &opts);
}
