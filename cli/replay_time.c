/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_time.c: --time: how long the program takes for a packet.
 *
 * After the run the packets of the capture are run again and again, by each engine in turn: a round has one sample of
 * each, and the order turns round from one to the next, so that what changes on the machine meanwhile strikes all of
 * them. Each engine has the object loaded for itself, with the same maps and variables. Packets are laid out in batches
 * of buffers, those of a small capture several times. The clock runs while a batch is run and stands while buffers are
 * filled again, which is needed where the program writes packets, and while rings are emptied. It is that of the thread,
 * which stands while others have the core, too; what reading it costs is measured and taken off. What entering and
 * leaving a program takes is told by one that does nothing.
 */
#include "replay_time.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bpf/image.h"

#define KEPT_MAX (UINT64_C(256) << 20) /* bytes of packets */
#define BATCH_BYTES (8u << 20)
#define BUFFER_MIN 4096u
#define ROUNDS_MIN 3u
#define EMPTY_RUNS 10u /* in a round */
#define AGAIN 8u /* runs of a batch by one reading of the clock, where it can be run again as it is */

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

/* A program that passes every packet, as an image: there need be no compiler where this runs. */
#define TABLE(member, count) { offsetof(struct nothing, member), count }
static const struct nothing {
	struct leat_image_header head;
	struct leat_image_prog prog;
	struct bpf_insn insn[2];
	char strings[16];
} nothing = {
	.head = {
		.magic = LEAT_IMAGE_MAGIC,
		.version = LEAT_IMAGE_VERSION,
		.size = sizeof(nothing),
		.progs = TABLE(prog, 1),
		.maps = TABLE(prog, 0),
		.insns = TABLE(insn, 2),
		.lines = TABLE(prog, 0),
		.inits = TABLE(prog, 0),
		.data = TABLE(prog, 0),
		.strings = TABLE(strings, sizeof(nothing.strings)),
		.btf = TABLE(prog, 0),
	},
	.prog = { .name = 1, .section = 9, .n_insns = 2, .run_prio = 50, .chain_actions = 1u << LEAT_XDP_PASS },
	.insn = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = LEAT_XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	},
	.strings = "\0nothing\0xdp",
};

static int open_nothing(struct lane *lane, struct leat_diag *diag)
{
	int err = leat_bpf_object_open_image(lane->r.env, &nothing, sizeof(nothing), diag, &lane->nothing);

	return err ? err : leat_bpf_object_load(lane->nothing, NULL, diag);
}

static void lane_close(struct lane *lane)
{
	leat_bpf_object_close(lane->nothing);
	lane->nothing = NULL;
	replay_unload(&lane->r);
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
	if (!err)
		err = open_nothing(lane, diag);
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

/* Runs a batch @again times; returns nanoseconds of one. */
static uint64_t run_batch(struct times *t, const struct lane *lane, struct leat_bpf_prog *prog, size_t from,
			  unsigned int n, unsigned int again)
{
	const uint32_t cpu = lane->r.opts->cpu;
	uint64_t start = leat_clock_read(CLOCK), ns;
	unsigned int i, k;

	for (k = 0; k < again; k++) {
		for (i = 0; i < n; i++) {
			leat_bpf_env_set_time(lane->r.env, t->packet[from + i].time);
			leat_bpf_prog_run(prog, &t->xdp[i], cpu);
		}
	}
	ns = leat_clock_read(CLOCK) - start;
	return ns > t->clock_cost ? (ns - t->clock_cost) / again : 0;
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
	const unsigned int again = lane->writes || lane->rings || t->n > t->batch ? 1 : AGAIN;
	uint64_t ns = 0;
	unsigned int n;
	size_t from;

	for (from = 0; from < t->n; from += n) {
		n = t->n - from < t->batch ? (unsigned int)(t->n - from) : t->batch;
		if (lane->writes || lane->filled != from + 1)
			fill(t, from, n);
		lane->filled = from + 1;
		ns += run_batch(t, lane, lane->r.prog, from, n, again);
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
	lane->sample[lane->n++] = (double)ns / (double)lane->passes / (double)t->n;
}

/* Warms it up, and finds out how many passes fit into @ns of the wall's clock. */
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

/* The program that does nothing, at its best. */
static void measure_nothing(struct times *t, struct lane *lane)
{
	struct leat_bpf_prog *prog = leat_bpf_object_prog_get(lane->nothing, 0);
	double ns;
	unsigned int i;

	fill(t, 0, t->batch);
	for (i = 0; i < EMPTY_RUNS; i++) {
		ns = (double)run_batch(t, lane, prog, 0, t->batch, AGAIN) / t->batch;
		if (lane->empty <= 0 || ns < lane->empty)
			lane->empty = ns;
	}
}

static void measure(struct times *t)
{
	const uint64_t ns = t->r->opts->time_ns, start = leat_clock_ns();
	struct lane *lane;
	unsigned int i;

	measure_clock(t);
	for (i = 0; i < LANES; i++)
		if (t->lane[i].measured)
			calibrate(t, &t->lane[i], ns / ROUNDS / LANES);
	while (t->rounds < ROUNDS && (t->rounds < ROUNDS_MIN || leat_clock_ns() - start < ns)) {
		for (i = 0; i < LANES; i++) {
			lane = &t->lane[t->rounds % 2 ? LANES - 1 - i : i];
			if (!lane->measured)
				continue;
			sample(t, lane);
			measure_nothing(t, lane);
		}
		t->rounds++;
	}
}

/* After the others, for it changes the kernel's code each time, which disturbs. */
static void measure_kernel(struct times *t)
{
	kernel_times_open(t, &t->kernel_lane);
	if (t->kernel_lane.measured)
		kernel_times_measure(t, &t->kernel_lane);
	kernel_times_close(t);
	replay_unload(&t->kernel_lane.r);
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
	if (good)
		measure(t);
	if (!good)
		fputs("leat replay: out of memory\n", stderr);
	give_buffers(t);
	if (good && !r->opts->engine)
		measure_kernel(t);
	for (i = 0; i < LANES; i++)
		lane_close(&t->lane[i]);
	return good ? EXIT_GOOD : EXIT_CONFIG;
}
