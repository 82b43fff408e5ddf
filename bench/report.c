/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c: a run as a table for people, or as one JSON object. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

static int width(const struct bench_run *run)
{
	size_t most = 8;
	unsigned int i;

	for (i = 0; i < run->n_series; i++)
		most = strlen(run->series[i].name) > most ? strlen(run->series[i].name) : most;
	for (i = 0; i < run->n_ratios; i++)
		most = strlen(run->ratio[i].name) > most ? strlen(run->ratio[i].name) : most;
	return (int)most;
}

static void print_series(const struct series *series, int name_width)
{
	struct summary s = stat_summary(series->sample, series->n);

	if (series->n)
		printf("  %-*s %10.4g %10.4g %10.4g %5u\n", name_width, series->name, s.median, s.min, s.max, series->n);
	else
		printf("  %-*s %10s %10s %10s %5u\n", name_width, series->name, "-", "-", "-", 0u);
}

static void print_ratio(const struct ratio *ratio, int name_width)
{
	static const char *const sign[] = {
		[BENCH_AT_MOST] = "<= ", [BENCH_AT_LEAST] = ">= ", [BENCH_WITHIN] = "1 +- ",
	};
	const char *verdict = stat_verdict(ratio);
	char interval[32] = "counted";

	if (!ratio->exact)
		snprintf(interval, sizeof(interval), "%.3f .. %.3f", ratio->low, ratio->high);
	if (ratio->n)
		printf("  %-*s %10.3f  %-18s", name_width, ratio->name, ratio->median, interval);
	else
		printf("  %-*s %10s  %-18s", name_width, ratio->name, "-", "-");
	if (verdict)
		printf(" %s%.4g: %s", sign[ratio->mark.kind], ratio->mark.value, verdict);
	putchar('\n');
}

void report_text(const struct bench_run *run)
{
	const struct bench *bench = run->bench;
	int name_width = width(run);
	unsigned int i;

	printf("%s: %s\n", bench->name, bench->about);
	printf("  %-*s %10s %10s %10s %5s\n", name_width, bench->unit, "median", "min", "max", "n");
	for (i = 0; i < run->n_series; i++)
		print_series(&run->series[i], name_width);
	if (run->n_ratios)
		printf("  %-*s %10s  %-18s %s\n", name_width, "ratio", "median", "95 % interval", "mark");
	for (i = 0; i < run->n_ratios; i++)
		print_ratio(&run->ratio[i], name_width);
}

void report_notes(const struct bench_run *run)
{
	FILE *out = run->opts->json ? stderr : stdout;
	unsigned int i;

	for (i = 0; i < run->n_notes; i++)
		fprintf(out, "note: %s\n", run->note[i]);
	fprintf(out, "buffers outstanding: %llu\n", (unsigned long long)run->outstanding);
}

/** Null where there is no such number. */
static json_t *number(bool there, double value)
{
	return there ? json_real(value) : json_null();
}

static json_t *json_of_series(const struct series *series)
{
	struct summary s = stat_summary(series->sample, series->n);
	json_t *samples = json_array();
	unsigned int i;

	for (i = 0; i < series->n; i++)
		json_array_append_new(samples, json_real(series->sample[i]));
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", series->name, "samples", samples, "median",
			 number(series->n, s.median), "min", number(series->n, s.min), "max", number(series->n, s.max));
}

int report_json(const struct bench_run *run)
{
	json_t *variants = json_array(), *ratios = json_array(), *object;
	unsigned int i;
	int err;

	for (i = 0; i < run->n_series; i++)
		json_array_append_new(variants, json_of_series(&run->series[i]));
	for (i = 0; i < run->n_ratios; i++) {
		const struct ratio *r = &run->ratio[i];

		json_array_append_new(ratios, json_pack("{s:s, s:o, s:o, s:o}", "name", r->name, "median",
							number(r->n, r->median), "low", number(r->n, r->low), "high",
							number(r->n, r->high)));
	}
	object = json_pack("{s:s, s:s, s:s, s:o, s:o}", "bench", run->bench->name, "unit", run->bench->unit, "better",
			   run->bench->better == BENCH_HIGHER ? "higher" : "lower", "variants", variants, "ratios",
			   ratios);
	if (!object)
		return -ENOMEM;
	err = json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) ? -EIO : 0;
	putchar('\n');
	json_decref(object);
	return err;
}
