/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_time.c: --time: how long the program takes for a packet.
 *
 * After the run the packets of the capture are run again and again, by each engine in turn: a round has one sample of
 * each, and the order turns round from one to the next, so that what changes on the machine meanwhile strikes all of
 * them. Each engine has the object loaded for itself, with the same maps and variables. Packets are laid out in batches
 * of buffers, those of a small capture several times. The clock runs while a batch is run and stands while buffers are
 * filled again, which is needed where the program writes packets, and while rings are emptied. It is that of the thread,
 * which stands while others have the core, too; what reading it costs is measured and taken off.
 */
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json_out.h"

#define KEPT_MAX (UINT64_C(256) << 20) /* bytes of packets */
#define BATCH_MAX 256u
#define BATCH_BYTES (8u << 20)
#define BUFFER_MIN 4096u
#define CLOCK CLOCK_THREAD_CPUTIME_ID
#define CLOCK_NAME "CLOCK_THREAD_CPUTIME_ID"
#define ROUNDS 20u
#define ROUNDS_MIN 3u

/* A packet that is kept for it. */
struct kept {
	uint64_t time;
	size_t off; /* of its bytes */
	uint32_t len;
};

/* What is measured. */
struct lane {
	const char *name;
	bool measured;
	char why[256]; /* else; empty: nobody wanted it */
	struct replay r; /* with an environment and an object of its own */
	bool writes, rings;
	size_t filled;   /* the buffers hold the batch from this packet on, plus 1; 0: they do not */
	uint64_t passes; /* a sample */
	double sample[ROUNDS]; /* ns per packet */
};

enum { LANE_INTERP, LANE_JIT, LANES };

struct times {
	struct replay *r;
	struct kept *packet;
	size_t n, room;
	size_t distinct; /* the capture's; those of a small one stand here several times */
	uint8_t *bytes;
	size_t n_bytes, bytes_room;
	uint64_t left_out; /* packets for which there was no room */
	struct leat_page_pool *pool;
	struct leat_xdp_rxq *rxq;
	struct leat_run run[BATCH_MAX];
	struct leat_xdp_buff xdp[BATCH_MAX];
	unsigned int batch;
	struct lane lane[LANES];
	unsigned int rounds;
	uint64_t clock_cost; /* nanoseconds that go by between two readings */
};

/* ---- what is kept ---- */

static bool grow(void **at, size_t *room, size_t want, size_t size)
{
	size_t n = *room ? *room : 64;
	void *grown;

	if (want <= *room)
		return true;
	while (n < want)
		n *= 2;
	grown = realloc(*at, n * size);
	if (!grown)
		return false;
	*at = grown;
	*room = n;
	return true;
}

void replay_time_keep(struct replay *r, const uint8_t *bytes)
{
	struct times *t = r->times;

	if (!t)
		return;
	if (t->left_out || t->n_bytes + r->packet.len > KEPT_MAX ||
	    !grow((void **)&t->packet, &t->room, t->n + 1, sizeof(*t->packet)) ||
	    !grow((void **)&t->bytes, &t->bytes_room, t->n_bytes + r->packet.len, 1)) {
		t->left_out++;
		return;
	}
	t->packet[t->n++] = (struct kept){ .time = r->packet.time, .off = t->n_bytes, .len = r->packet.len };
	memcpy(t->bytes + t->n_bytes, bytes, r->packet.len);
	t->n_bytes += r->packet.len;
}

int replay_time_init(struct replay *r)
{
	if (!r->opts->time_ns)
		return 0;
	r->times = calloc(1, sizeof(*r->times));
	if (!r->times)
		return -ENOMEM;
	r->times->r = r;
	return 0;
}

void replay_time_free(struct times *t)
{
	if (!t)
		return;
	free(t->packet);
	free(t->bytes);
	free(t);
}

/* ---- buffers ---- */

static void give_buffers(struct times *t)
{
	while (t->batch)
		leat_page_pool_put_page(t->run[--t->batch]);
}

static bool take_buffers(struct times *t)
{
	uint32_t size = BUFFER_MIN, need;
	size_t i;

	for (i = 0; i < t->n; i++) {
		need = LEAT_XDP_HEADROOM + t->packet[i].len + LEAT_XDP_TAILROOM;
		size = need > size ? need : size;
	}
	for (; t->batch < BATCH_MAX && t->batch < t->n && (t->batch + 1) * size <= BATCH_BYTES; t->batch++) {
		t->run[t->batch] = leat_page_pool_alloc(t->pool, LEAT_GRANULES(size));
		if (leat_run_is_none(t->run[t->batch]))
			return false;
	}
	return true;
}

/* Lays packets out as a run on the capture does. */
static void fill(struct times *t, size_t from, unsigned int n)
{
	const struct kept *packet;
	unsigned int i;

	for (i = 0; i < n; i++) {
		packet = &t->packet[from + i];
		memset(leat_run_start(t->run[i]), 0, leat_run_size(t->run[i]));
		leat_xdp_buff_init(&t->xdp[i], t->run[i], LEAT_XDP_HEADROOM, packet->len);
		memcpy(t->xdp[i].data, t->bytes + packet->off, packet->len);
		t->xdp[i].rxq = t->rxq;
		t->xdp[i].meta.timestamp = packet->time;
		t->xdp[i].meta.flags = LEAT_META_TIMESTAMP;
	}
}

/* Repeats a small capture until there is enough for a batch. */
static bool repeat(struct times *t)
{
	size_t n = t->distinct < BATCH_MAX ? BATCH_MAX / t->distinct * t->distinct : t->distinct;

	if (!grow((void **)&t->packet, &t->room, n, sizeof(*t->packet)))
		return false;
	for (; t->n < n; t->n++)
		t->packet[t->n] = t->packet[t->n - t->distinct];
	return true;
}

/* ---- lanes ---- */

static bool has_rings(struct leat_bpf_object *obj)
{
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		if (replay_is_ring(&info))
			return true;
	}
	return false;
}

static int ignore(void *arg, int cpu, const void *data, uint32_t size)
{
	(void)arg;
	(void)cpu;
	(void)data;
	(void)size;
	return 0;
}

static void empty_rings(const struct lane *lane)
{
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(lane->r.obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		if (replay_is_ring(&info))
			leat_bpf_map_consume(map, ignore, NULL);
	}
}

static void lane_open(struct times *t, struct lane *lane, const char *name, uint32_t engine)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_bpf_check check;
	int err;

	lane->name = name;
	lane->r = (struct replay){ .opts = t->r->opts, .diag = diag };
	if (t->r->opts->engine && t->r->opts->engine != engine) {
		leat_diag_destroy(diag);
		return;
	}
	err = replay_load(&lane->r, engine, NULL);
	lane->r.diag = NULL;
	if (err) {
		snprintf(lane->why, sizeof(lane->why), "%s",
			 leat_diag_get(diag, 0) ? leat_diag_get(diag, 0)->message : strerror(-err));
	} else {
		leat_bpf_prog_check(lane->r.prog, &check);
		lane->measured = true;
		lane->writes = check.writes_packet;
		lane->rings = has_rings(lane->r.obj);
	}
	leat_diag_destroy(diag);
}

/* Runs a batch; returns nanoseconds. */
static uint64_t run_batch(struct times *t, const struct lane *lane, size_t from, unsigned int n)
{
	const uint32_t cpu = lane->r.opts->cpu;
	uint64_t start = leat_clock_read(CLOCK), ns;
	unsigned int i;

	for (i = 0; i < n; i++) {
		leat_bpf_env_set_time(lane->r.env, t->packet[from + i].time);
		leat_bpf_prog_run(lane->r.prog, &t->xdp[i], cpu);
	}
	ns = leat_clock_read(CLOCK) - start;
	return ns > t->clock_cost ? ns - t->clock_cost : 0;
}

static void measure_clock(struct times *t)
{
	uint64_t start, ns;
	unsigned int i;

	t->clock_cost = UINT64_MAX;
	for (i = 0; i < 1000; i++) {
		start = leat_clock_read(CLOCK);
		ns = leat_clock_read(CLOCK) - start;
		t->clock_cost = ns < t->clock_cost ? ns : t->clock_cost;
	}
}

/* Runs the capture once; returns nanoseconds. */
static uint64_t pass(struct times *t, struct lane *lane)
{
	uint64_t ns = 0;
	unsigned int n;
	size_t from;

	for (from = 0; from < t->n; from += n) {
		n = t->n - from < t->batch ? (unsigned int)(t->n - from) : t->batch;
		if (lane->writes || lane->filled != from + 1)
			fill(t, from, n);
		lane->filled = from + 1;
		ns += run_batch(t, lane, from, n);
		if (lane->rings)
			empty_rings(lane);
	}
	return ns;
}

static void sample(struct times *t, struct lane *lane)
{
	uint64_t ns = 0, i;

	lane->filled = 0; /* another lane has used the buffers */
	for (i = 0; i < lane->passes; i++)
		ns += pass(t, lane);
	lane->sample[t->rounds] = (double)ns / (double)lane->passes / (double)t->n;
}

/* Warms it up, and finds out how many passes fit into @ns. */
static void calibrate(struct times *t, struct lane *lane, uint64_t ns)
{
	uint64_t start, once;

	lane->filled = 0;
	pass(t, lane);
	start = leat_clock_ns();
	pass(t, lane);
	once = leat_clock_ns() - start;
	lane->passes = once && ns > once ? ns / once : 1;
}

static unsigned int count_lanes(const struct times *t)
{
	unsigned int i, n = 0;

	for (i = 0; i < LANES; i++)
		n += t->lane[i].measured;
	return n;
}

static void measure(struct times *t)
{
	const uint64_t ns = t->r->opts->time_ns, start = leat_clock_ns();
	struct lane *lane;
	unsigned int i;

	measure_clock(t);
	for (i = 0; i < LANES; i++)
		if (t->lane[i].measured)
			calibrate(t, &t->lane[i], ns / ROUNDS / count_lanes(t));
	while (t->rounds < ROUNDS && (t->rounds < ROUNDS_MIN || leat_clock_ns() - start < ns)) {
		for (i = 0; i < LANES; i++) {
			lane = &t->lane[t->rounds % 2 ? LANES - 1 - i : i];
			if (lane->measured)
				sample(t, lane);
		}
		t->rounds++;
	}
}

int replay_time_run(struct replay *r, struct leat_page_pool *pool, struct leat_xdp_rxq *rxq)
{
	struct times *t = r->times;
	unsigned int i;
	bool good;

	if (!t || !t->n)
		return EXIT_GOOD;
	t->distinct = t->n;
	t->pool = pool;
	t->rxq = rxq;
	lane_open(t, &t->lane[LANE_INTERP], "interp", LEAT_BPF_ENGINE_INTERP);
	lane_open(t, &t->lane[LANE_JIT], "jit", LEAT_BPF_ENGINE_JIT);
	good = repeat(t) && take_buffers(t);
	if (good && count_lanes(t))
		measure(t);
	if (!good)
		fputs("leat replay: out of memory\n", stderr);
	give_buffers(t);
	for (i = 0; i < LANES; i++)
		replay_unload(&t->lane[i].r);
	return good ? EXIT_GOOD : EXIT_CONFIG;
}

/* ---- telling ---- */

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

/* Of two lanes, round by round. */
static struct spread ratio_of(const struct times *t, const struct lane *a, const struct lane *b)
{
	double ratio[ROUNDS] = { 0 };
	unsigned int i;

	for (i = 0; i < t->rounds; i++)
		ratio[i] = b->sample[i] > 0 ? a->sample[i] / b->sample[i] : 0;
	return spread_of(ratio, t->rounds);
}

static void print_lane(FILE *out, const struct times *t, const struct lane *lane)
{
	char rate[UNIT_SIZE];
	struct spread ns;

	if (!lane->measured) {
		if (*lane->why)
			fprintf(out, "  %-8s not measured: %s\n", lane->name, lane->why);
		return;
	}
	ns = spread_of(lane->sample, t->rounds);
	fprintf(out, "  %-8s %9.1f %9.1f %9.1f   %9s\n", lane->name, ns.median, ns.min, ns.max,
		format_unit(rate, ns.median > 0 ? 1e9 / ns.median : 0, "/s"));
}

static void print_times(FILE *out, const struct times *t)
{
	const struct lane *a, *b;
	struct spread ratio;

	fprintf(out, "time: ns per packet, %zu packets, %u rounds, " CLOCK_NAME "\n", t->distinct, t->rounds);
	if (t->left_out)
		fprintf(out, "  %" PRIu64 " packets more found no room\n", t->left_out);
	fprintf(out, "  %-8s %9s %9s %9s   %9s\n", "", "median", "min", "max", "packets");
	for (a = t->lane; a < t->lane + LANES; a++)
		print_lane(out, t, a);
	for (a = t->lane, b = a + 1; b < t->lane + LANES; a++, b++) {
		if (!a->measured || !b->measured)
			continue;
		ratio = ratio_of(t, a, b);
		fprintf(out, "  %s/%s %.2f (%.2f .. %.2f)\n", a->name, b->name, ratio.median, ratio.min, ratio.max);
	}
}

static void json_real(struct json_out *j, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.3f", value);
	json_raw(j, name, text);
}

static void json_spread(struct json_out *j, const struct spread *spread)
{
	json_real(j, "median", spread->median);
	json_real(j, "min", spread->min);
	json_real(j, "max", spread->max);
}

static void json_lane(struct json_out *j, const struct times *t, const struct lane *lane)
{
	struct spread ns;
	unsigned int i;

	if (!lane->measured && !*lane->why)
		return;
	json_open_flat(j, NULL, '{');
	json_string(j, "name", lane->name);
	if (lane->measured) {
		ns = spread_of(lane->sample, t->rounds);
		json_spread(j, &ns);
		json_real(j, "packets_per_second", ns.median > 0 ? 1e9 / ns.median : 0);
		json_open(j, "samples", '[');
		for (i = 0; i < t->rounds; i++)
			json_real(j, NULL, lane->sample[i]);
		json_close(j, ']');
	} else {
		json_string(j, "why", lane->why);
	}
	json_close(j, '}');
}

static void json_ratios(struct json_out *j, const struct times *t)
{
	const struct lane *a, *b;
	struct spread ratio;
	char name[32];

	json_open(j, "ratios", '[');
	for (a = t->lane, b = a + 1; b < t->lane + LANES; a++, b++) {
		if (!a->measured || !b->measured)
			continue;
		ratio = ratio_of(t, a, b);
		snprintf(name, sizeof(name), "%s/%s", a->name, b->name);
		json_open_flat(j, NULL, '{');
		json_string(j, "name", name);
		json_spread(j, &ratio);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_times(struct json_out *j, const struct times *t)
{
	unsigned int i;

	json_open(j, "time", '{');
	json_string(j, "clock", CLOCK_NAME);
	json_string(j, "unit", "ns/packet");
	json_number(j, "packets", t->distinct);
	json_number(j, "left_out", t->left_out);
	json_number(j, "rounds", t->rounds);
	json_open(j, "engines", '[');
	for (i = 0; i < LANES; i++)
		json_lane(j, t, &t->lane[i]);
	json_close(j, ']');
	json_ratios(j, t);
	json_close(j, '}');
}

void replay_time_tell(const struct replay *r, FILE *out, struct json_out *j)
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
