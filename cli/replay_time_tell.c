/* SPDX-License-Identifier: BSD-3-Clause */
/* replay_time_tell.c: what --time has measured, for people and as JSON. */
#include "replay_time.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"

struct spread {
	double median, min, max;
};

static int by_value(const void *a, const void *b)
{
	const double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static struct spread spread_of(const double *values, unsigned int n)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return (struct spread){ (sorted[n / 2] + sorted[(n - 1) / 2]) / 2, sorted[0], sorted[n - 1] };
}

/* Of two engines, round by round. */
static struct spread ratio_of(const struct lane *a, const struct lane *b)
{
	double ratio[ROUNDS] = { 0 };
	unsigned int i;

	for (i = 0; i < a->n; i++)
		ratio[i] = b->sample[i] > 0 ? a->sample[i] / b->sample[i] : 0;
	return spread_of(ratio, a->n);
}

static void print_lane(FILE *out, const struct lane *lane)
{
	char rate[UNIT_SIZE];
	struct spread ns;

	if (!lane->measured) {
		if (*lane->why)
			fprintf(out, "  %-8s not measured: %s\n", lane->name, lane->why);
		return;
	}
	ns = spread_of(lane->sample, lane->n);
	fprintf(out, "  %-8s %9.1f %9.1f %9.1f %9.1f   %9s\n", lane->name, ns.median, ns.min, ns.max, lane->empty,
		format_unit(rate, ns.median > 0 ? 1e9 / ns.median : 0, "/s"));
	if (*lane->why)
		fprintf(out, "  %-8s %s\n", "", lane->why);
}

static void print_times(FILE *out, const struct times *t)
{
	const struct lane *a = &t->lane[LANE_INTERP], *b = &t->lane[LANE_JIT];
	struct spread ratio;
	unsigned int i;

	fprintf(out, "time: ns per packet, %zu packets, %u rounds, " CLOCK_NAME "\n", t->distinct, t->rounds);
	if (t->left_out)
		fprintf(out, "  %" PRIu64 " packets more found no room\n", t->left_out);
	fprintf(out, "  %-8s %9s %9s %9s %9s   %9s\n", "", "median", "min", "max", "empty", "packets");
	for (i = 0; i < LANES; i++)
		print_lane(out, &t->lane[i]);
	if (t->kernel_lane.name)
		print_lane(out, &t->kernel_lane);
	if (!a->measured || !b->measured)
		return;
	ratio = ratio_of(a, b);
	fprintf(out, "  %s/%s %.2f (%.2f .. %.2f)\n", a->name, b->name, ratio.median, ratio.min, ratio.max);
}

static void json_real(struct leat_json_out *j, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.3f", value);
	leat_json_raw(j, name, text);
}

static void json_spread(struct leat_json_out *j, const struct spread *spread)
{
	json_real(j, "median", spread->median);
	json_real(j, "min", spread->min);
	json_real(j, "max", spread->max);
}

static void json_lane(struct leat_json_out *j, const struct lane *lane)
{
	struct spread ns;
	unsigned int i;

	if (!lane->measured && !*lane->why)
		return;
	leat_json_open_flat(j, NULL, '{');
	leat_json_string(j, "name", lane->name);
	if (lane->measured) {
		ns = spread_of(lane->sample, lane->n);
		json_spread(j, &ns);
		json_real(j, "empty", lane->empty);
		json_real(j, "packets_per_second", ns.median > 0 ? 1e9 / ns.median : 0);
		leat_json_open(j, "samples", '[');
		for (i = 0; i < lane->n; i++)
			json_real(j, NULL, lane->sample[i]);
		leat_json_close(j, ']');
	}
	if (*lane->why)
		leat_json_string(j, lane->measured ? "note" : "why", lane->why);
	leat_json_close(j, '}');
}

static void json_ratios(struct leat_json_out *j, const struct times *t)
{
	const struct lane *a = &t->lane[LANE_INTERP], *b = &t->lane[LANE_JIT];
	struct spread ratio;

	leat_json_open(j, "ratios", '[');
	if (a->measured && b->measured) {
		ratio = ratio_of(a, b);
		leat_json_open_flat(j, NULL, '{');
		leat_json_string(j, "name", "interp/jit");
		json_spread(j, &ratio);
		leat_json_close(j, '}');
	}
	leat_json_close(j, ']');
}

static void json_times(struct leat_json_out *j, const struct times *t)
{
	unsigned int i;

	leat_json_open(j, "time", '{');
	leat_json_string(j, "clock", CLOCK_NAME);
	leat_json_string(j, "unit", "ns/packet");
	leat_json_number(j, "packets", t->distinct);
	leat_json_number(j, "left_out", t->left_out);
	leat_json_number(j, "rounds", t->rounds);
	leat_json_open(j, "engines", '[');
	for (i = 0; i < LANES; i++)
		json_lane(j, &t->lane[i]);
	json_lane(j, &t->kernel_lane);
	leat_json_close(j, ']');
	json_ratios(j, t);
	leat_json_close(j, '}');
}

void replay_time_tell(const struct replay *r, FILE *out, struct leat_json_out *j)
{
	if (!r->times)
		return;
	if (j)
		json_times(j, r->times);
	else if (r->times->n)
		print_times(out, r->times);
	else
		fputs("time: no packet was run\n", out);
}
