/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_engines.c: both engines load the same objects, get the same map contents and packets, and must agree: on the
 * verdict, on every byte of the packet and its metadata, on what the maps hold, and on where programs were ended. Prints
 * TAP. Needs no privilege.
 *
 * usage: test-bpf_engines OBJECT...
 *	LEAT_TEST_PACKETS=N	packets for each program (300)
 *	LEAT_TEST_COUNTED=yes	the interpreter counts what runs, and of each jump every run went one way or trapped
 */
#include <leat/bpf.h>
#include <leat/xdp_prog.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/packets.h"

#define FRAME 4096u
#define ELEM_MAX 65536u
#define FILL 24u

enum { INTERP, JIT, SIDES };

static struct {
	struct leat_bpf_env *env[SIDES];
	struct leat_bpf_object *obj[SIDES];
	unsigned int cases, failed, runs;
	const char *object, *program;
	bool counted;
} t;

static void result(bool ok, const char *what)
{
	t.cases++;
	t.failed += !ok;
	printf("%sok %u - %s: %s: %s\n", ok ? "" : "not ", t.cases, t.object, t.program, what);
}

static bool load(const char *path, int side, struct leat_diag *diag)
{
	const struct leat_bpf_env_opts opts = {
		.size = sizeof(opts),
		.cpus = 2,
		.replay = true,
		.seed = 1,
		.engine = side == JIT ? LEAT_BPF_ENGINE_JIT : LEAT_BPF_ENGINE_INTERP,
		.coverage = side == INTERP && t.counted,
	};
	const struct leat_bpf_object_opts object_opts = { .size = sizeof(object_opts), .loader = getenv("LEAT_LOAD") };

	return !leat_bpf_env_create(&opts, &t.env[side]) &&
	       !leat_bpf_object_open(t.env[side], path, &object_opts, diag, &t.obj[side]) &&
	       !leat_bpf_object_load(t.obj[side], NULL, diag);
}

static void unload(int side)
{
	leat_bpf_object_close(t.obj[side]);
	leat_bpf_env_destroy(t.env[side]);
	t.obj[side] = NULL;
	t.env[side] = NULL;
}

/* ---- maps ---- */

/** The same elements on both sides: small keys, and some of the addresses and ports that packets have. */
static void fill_map(struct leat_bpf_map *map[SIDES], const struct leat_bpf_map_info *info, struct numbers *n)
{
	static uint8_t key[ELEM_MAX], value[ELEM_MAX];
	unsigned int i;
	int side;

	for (i = 0; i < FILL; i++) {
		numbers_fill(n, value, info->value_bytes);
		memset(key, 0, info->key_size);
		if (info->key_size == 16)
			packet_ipv6(n, key);
		else if (info->key_size == 4 && numbers_below(n, 2))
			packet_ipv4(n, key);
		else
			key[0] = (uint8_t)numbers_below(n, 16);
		if (info->type == BPF_MAP_TYPE_PROG_ARRAY)
			memset(value, 0, info->value_bytes);
		if (info->type == BPF_MAP_TYPE_PROG_ARRAY)
			value[0] = (uint8_t)numbers_below(n, 8);
		for (side = 0; side < SIDES; side++)
			leat_bpf_map_update(map[side], key, value, BPF_ANY);
	}
}

struct records {
	uint8_t bytes[1 << 16];
	size_t len;
};

static int take(void *arg, int cpu, const void *data, uint32_t size)
{
	struct records *r = arg;

	(void)cpu;
	if (size <= sizeof(r->bytes) - r->len) {
		memcpy(r->bytes + r->len, data, size);
		r->len += size;
	}
	return 0;
}

static bool same_elements(struct leat_bpf_map *map[SIDES], const struct leat_bpf_map_info *info)
{
	static uint8_t key[SIDES][ELEM_MAX], value[SIDES][ELEM_MAX];
	bool begun = false;
	int err[SIDES], got, side;
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		for (side = 0; side < SIDES; side++)
			err[side] = leat_bpf_map_next_key(map[side], begun ? key[side] : NULL, key[side]);
		if (err[INTERP] != err[JIT])
			return false;
		if (err[INTERP])
			return true;
		begun = true;
		for (side = 0; side < SIDES; side++)
			err[side] = leat_bpf_map_lookup(map[side], key[side], value[side]);
		got = err[INTERP];
		if (got != err[JIT] || memcmp(key[INTERP], key[JIT], info->key_size) != 0 ||
		    (!got && memcmp(value[INTERP], value[JIT], info->value_bytes) != 0))
			return false;
	}
	return true;
}

static bool same_records(struct leat_bpf_map *map[SIDES])
{
	static struct records r[SIDES];
	int side;

	for (side = 0; side < SIDES; side++) {
		r[side].len = 0;
		leat_bpf_map_consume(map[side], take, &r[side]);
	}
	return r[INTERP].len == r[JIT].len && !memcmp(r[INTERP].bytes, r[JIT].bytes, r[JIT].len) &&
	       leat_bpf_map_lost(map[INTERP]) == leat_bpf_map_lost(map[JIT]);
}

/** Walks the maps of both: fills them when @n is given, else compares. */
static bool each_map(struct numbers *n)
{
	struct leat_bpf_map *map[SIDES];
	struct leat_bpf_map_info info;
	bool same = true, ring;
	unsigned int i;

	for (i = 0; (map[INTERP] = leat_bpf_object_map_get(t.obj[INTERP], i)); i++) {
		map[JIT] = leat_bpf_object_map_get(t.obj[JIT], i);
		leat_bpf_map_info(map[INTERP], &info);
		ring = info.type == BPF_MAP_TYPE_RINGBUF || info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
		if (info.key_size > ELEM_MAX || info.value_bytes > ELEM_MAX)
			continue;
		if (n && !ring && !info.internal)
			fill_map(map, &info, n);
		else if (!n)
			same &= ring ? same_records(map) : same_elements(map, &info);
	}
	return same;
}

/* ---- packets ---- */

struct outcome {
	uint32_t verdict, meta, len;
	uint8_t bytes[FRAME];
};

static void run_one(int side, unsigned int idx, const uint8_t *packet, uint32_t len, uint32_t meta, uint64_t time,
		    struct outcome *out)
{
	static uint8_t frame[FRAME] __attribute__((aligned(4096)));
	const struct leat_xdp_rxq rxq = { .port = 1 + len % 3, .queue = len % 2 };
	struct leat_xdp_buff xdp;

	memset(frame, 0, sizeof(frame));
	leat_xdp_buff_init(&xdp, leat_run_make((uint64_t)(uintptr_t)frame, FRAME / LEAT_GRANULE_SIZE),
			   LEAT_XDP_HEADROOM, len);
	xdp.data_meta -= meta;
	xdp.rxq = &rxq;
	memcpy(xdp.data, packet, len);
	leat_bpf_env_set_time(t.env[side], time);
	out->verdict = leat_bpf_prog_run(leat_bpf_object_prog_get(t.obj[side], idx), &xdp, 0);
	out->meta = (uint32_t)(xdp.data - xdp.data_meta);
	out->len = (uint32_t)(xdp.data_end - xdp.data_meta);
	memcpy(out->bytes, frame, FRAME);
}

static bool same_traps(unsigned int idx)
{
	struct leat_bpf_trap a, b;
	bool more_a, more_b;
	unsigned int i;

	for (i = 0;; i++) {
		more_a = leat_bpf_prog_trap(leat_bpf_object_prog_get(t.obj[INTERP], idx), i, &a);
		more_b = leat_bpf_prog_trap(leat_bpf_object_prog_get(t.obj[JIT], idx), i, &b);
		if (!more_a || !more_b)
			return more_a == more_b;
		if (a.insn != b.insn || a.count != b.count || strcmp(a.reason, b.reason) != 0)
			return false;
	}
}

static uint64_t traps_at(const struct leat_bpf_prog *prog, unsigned int insn)
{
	struct leat_bpf_trap trap;
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; leat_bpf_prog_trap(prog, i, &trap); i++)
		n += trap.insn == insn ? trap.count : 0;
	return n;
}

/** Whether the counts of a program that ran @packets times fit each other. */
static bool sound_counts(unsigned int idx, unsigned int packets)
{
	const struct leat_bpf_prog *prog = leat_bpf_object_prog_get(t.obj[INTERP], idx);
	struct leat_bpf_cover cover;
	unsigned int i;

	for (i = 0; leat_bpf_prog_cover(prog, i, &cover); i += cover.slots) {
		if (!t.counted && cover.hits)
			return false;
		if (t.counted && !i && cover.hits < packets)
			return false;
		if (cover.jump && cover.hits != cover.taken + cover.fell + traps_at(prog, i))
			return false;
		if (!cover.reachable && cover.hits)
			return false;
	}
	return true;
}

static void check_program(unsigned int idx, unsigned int packets)
{
	static struct outcome out[SIDES];
	static uint8_t packet[PACKET_MAX];
	struct numbers n = { idx + 1 };
	uint32_t len, meta;
	unsigned int i;
	int side;

	each_map(&n);
	for (i = 0; i < packets; i++) {
		len = packet_make(&n, packet);
		meta = 4 * numbers_below(&n, 9);
		for (side = 0; side < SIDES; side++)
			run_one(side, idx, packet, len, meta, UINT64_C(1000000) * i, &out[side]);
		t.runs++;
		if (memcmp(&out[INTERP], &out[JIT], sizeof(out[JIT])) != 0) {
			printf("# packet %u of %u bytes: verdict %u interpreted, %u compiled\n", i, len,
			       out[INTERP].verdict, out[JIT].verdict);
			result(false, "verdict and packet");
			return;
		}
	}
	result(same_traps(idx) && each_map(NULL), "verdicts, packets, traps and maps");
	result(sound_counts(idx, packets), "counts");
}

/** An object that does not load on either side is no matter of this test. */
static void check_object(const char *path, unsigned int packets)
{
	struct leat_diag *diag = leat_diag_create();
	const char *slash = strrchr(path, '/');
	struct leat_bpf_prog *prog;
	unsigned int i;
	bool loaded[SIDES];
	int side;

	t.object = slash ? slash + 1 : path;
	t.program = "";
	for (side = 0; side < SIDES; side++)
		loaded[side] = load(path, side, diag);
	if (loaded[INTERP] != loaded[JIT])
		result(false, "loads on one side only");
	else if (!loaded[JIT] && leat_diag_get(diag, 0))
		printf("# %s: %s\n", t.object, leat_diag_get(diag, 0)->message);
	for (i = 0; loaded[INTERP] && loaded[JIT] && (prog = leat_bpf_object_prog_get(t.obj[JIT], i)); i++) {
		t.program = leat_bpf_prog_name(prog);
		check_program(i, packets);
	}
	for (side = 0; side < SIDES; side++)
		unload(side);
	leat_diag_destroy(diag);
}

int main(int argc, char **argv)
{
	const char *text = getenv("LEAT_TEST_PACKETS"), *counted = getenv("LEAT_TEST_COUNTED");
	unsigned int packets = text ? (unsigned int)strtoul(text, NULL, 10) : 300;
	int i;

	t.counted = counted && *counted;
	leat_xdp_bpf_init();
	if (argc < 2) {
		printf("1..0 # SKIP there are no objects\n");
		return 0;
	}
	for (i = 1; i < argc; i++)
		check_object(argv[i], packets);
	printf("1..%u\n# %d objects, %u runs on each engine, %u failed\n", t.cases, argc - 1, t.runs, t.failed);
	return t.failed || !t.cases ? 1 : 0;
}
