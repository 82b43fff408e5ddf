/* SPDX-License-Identifier: BSD-3-Clause */
/* leat_side.c: leat's compiler and interpreter, and what clang makes of the programs over leat's maps. */
#include <errno.h>
#include <leat/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/map/map.h"
#include "native.h"
#include "side.h"

/** An environment of its own with the object in it. */
struct leat_side {
	struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	struct leat_bpf_map *map[N_MAPS];
	struct leat_bpf_prog *prog[N_PROGRAMS];
	struct leat_xdp_rxq rxq;
	struct leat_xdp_buff xdp;
	struct native_packet native;
	native_fn *const *fn; /* native code for this machine */
	uint8_t packet[PACKET_LEN];
};

/* ---- the object ---- */

static int set(void *arg, enum bench_map map, const void *key, const void *value)
{
	struct leat_side *s = arg;

	return leat_bpf_map_update(s->map[map], key, value, BPF_ANY);
}

static int load(struct leat_side *s, unsigned int engine, struct leat_diag *diag)
{
	const struct leat_bpf_env_opts env = { .size = sizeof(env), .cpus = 1, .engine = engine };
	const struct leat_bpf_object_opts opts = { .size = sizeof(opts) };
	int fd, err = leat_bpf_env_create(&env, &s->env);
	char path[64];

	if (err)
		return err;
	fd = bench_object_file(bench_programs_object, bench_programs_object_end, path, sizeof(path));
	if (fd < 0)
		return fd;
	err = leat_bpf_object_open(s->env, path, &opts, diag, &s->obj);
	close(fd);
	return err ? err : leat_bpf_object_load(s->obj, NULL, diag);
}

static int find_all(struct leat_side *s)
{
	unsigned int i;

	for (i = 0; i < N_MAPS; i++) {
		s->map[i] = leat_bpf_object_map_find(s->obj, bench_map_name[i]);
		if (!s->map[i])
			return -ENOENT;
	}
	for (i = 0; i < N_PROGRAMS; i++) {
		s->prog[i] = leat_bpf_object_prog_find(s->obj, bench_program_name[i]);
		if (!s->prog[i])
			return -ENOENT;
	}
	return 0;
}

static void leat_close(struct side *side)
{
	struct leat_side *s = side->priv;

	leat_bpf_object_close(s->obj);
	leat_bpf_env_destroy(s->env);
	free(s);
}

static int leat_open(struct side *side, unsigned int engine, char *why, size_t size)
{
	struct leat_side *s = calloc(1, sizeof(*s));
	struct leat_diag *diag = leat_diag_create();
	int err = s && diag ? load(s, engine, diag) : -ENOMEM;

	if (!err)
		err = find_all(s);
	if (!err)
		err = bench_fill_maps(set, s);
	if (err)
		snprintf(why, size, "%s", leat_diag_count(diag) ? leat_diag_get(diag, 0)->message : strerror(-err));
	leat_diag_destroy(diag);
	side->priv = s;
	if (err) {
		if (s)
			leat_close(side);
		return err;
	}
	bench_make_packet(s->packet);
	side->packet = s->packet;
	s->native = (struct native_packet){ s->packet, s->packet + PACKET_LEN };
	s->xdp = (struct leat_xdp_buff){
		.data = s->packet, .data_end = s->packet + PACKET_LEN, .data_meta = s->packet, .rxq = &s->rxq
	};
	return 0;
}

/* ---- compiler and interpreter ---- */

static int jit_open(struct side *side, char *why, size_t size)
{
	return leat_open(side, LEAT_BPF_ENGINE_JIT, why, size);
}

static int interp_open(struct side *side, char *why, size_t size)
{
	return leat_open(side, LEAT_BPF_ENGINE_INTERP, why, size);
}

static uint32_t leat_run(struct side *side, enum bench_program program, uint64_t n)
{
	struct leat_side *s = side->priv;
	struct leat_bpf_prog *prog = s->prog[program];
	uint32_t verdict = 0;

	while (n--)
		verdict = leat_bpf_prog_run(prog, &s->xdp, 0);
	return verdict;
}

static unsigned int leat_code_size(struct side *side, enum bench_program program)
{
	struct leat_side *s = side->priv;

	return leat_bpf_prog_code_size(s->prog[program]);
}

const struct side leat_jit_side = { "jit", jit_open, leat_close, NULL, leat_run, leat_code_size, NULL, NULL };
const struct side leat_interp_side = { "interp", interp_open, leat_close, NULL, leat_run, leat_code_size, NULL, NULL };

/* ---- native ---- */

#define BENCH_MAP(name) extern struct native_map native_##name;
BENCH_MAPS
#undef BENCH_MAP
#define BENCH_MAP(name) struct native_map native_##name;
BENCH_MAPS
#undef BENCH_MAP

static struct native_map *const native_maps[N_MAPS] = {
#define BENCH_MAP(name) &native_##name,
	BENCH_MAPS
#undef BENCH_MAP
};

#define BENCH_PROGRAM(name, about) extern native_fn native_##name##_any;
BENCH_PROGRAMS
#undef BENCH_PROGRAM
static native_fn *const native_any[N_PROGRAMS] = {
#define BENCH_PROGRAM(name, about) native_##name##_any,
	BENCH_PROGRAMS
#undef BENCH_PROGRAM
};

#ifdef __x86_64__
#define BENCH_PROGRAM(name, about) extern native_fn native_##name##_v3;
BENCH_PROGRAMS
#undef BENCH_PROGRAM
static native_fn *const native_v3[N_PROGRAMS] = {
#define BENCH_PROGRAM(name, about) native_##name##_v3,
	BENCH_PROGRAMS
#undef BENCH_PROGRAM
};
#endif

/** The best that was compiled for this machine. */
static native_fn *const *native_for_machine(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return native_v3;
#endif
	return native_any;
}

static int native_open(struct side *side, char *why, size_t size)
{
	int err = leat_open(side, LEAT_BPF_ENGINE_INTERP, why, size);
	struct leat_side *s = side->priv;
	uint64_t region;
	unsigned int i;
	uint8_t *base;

	for (i = 0; !err && i < N_MAPS; i++) {
		const struct leat_bpf_map_type *type = s->map[i]->type;

		*native_maps[i] = (struct native_map){ .map = s->map[i], .lookup = type->lookup };
		if (type != &leat_bpf_array && type != &leat_bpf_percpu_array)
			continue;
		leat_bpf_array_layout(s->map[i], &base, &region);
		native_maps[i]->base = base;
	}
	if (!err)
		s->fn = native_for_machine();
	return err;
}

static uint32_t native_run(struct side *side, enum bench_program program, uint64_t n)
{
	struct leat_side *s = side->priv;
	native_fn *fn = s->fn[program];
	int verdict = 0;

	while (n--)
		verdict = fn(&s->native);
	return (uint32_t)verdict;
}

static unsigned int native_code_size(struct side *side, enum bench_program program)
{
	(void)side;
	(void)program;
	return 0;
}

const struct side native_side = { "native", native_open, leat_close, NULL, native_run, native_code_size, NULL, NULL };
