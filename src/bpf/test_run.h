/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_run.h: programs in tests, without a loader: an environment, maps, programs from arrays of instructions, and a
 * packet of exactly its size, so that a sanitizer sees the first byte outside.
 */
#ifndef LEAT_BPF_TEST_RUN_H
#define LEAT_BPF_TEST_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/engine/jit.h"
#include "bpf/env.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"
#include "bpf/test_asm.h"

#define TEST_MAPS 16u
#define TEST_PROGS 40u

struct test_bpf {
	struct leat_bpf_env *env;
	struct leat_bpf_object obj;
	struct leat_bpf_map map[TEST_MAPS];
	struct leat_bpf_prog prog[TEST_PROGS];
	char said[1024]; /* the verifier's sentence */
	struct leat_xdp_rxq rxq;
	struct leat_xdp_buff xdp;
	uint8_t *packet; /* as allocated */
	struct leat_bpf_run last;
	bool jit; /* programs are compiled */
	uint32_t flags; /* of programs that are added: LEAT_IMAGE_PROG_* */
};

static inline int test_bpf_begin(struct test_bpf *t, uint64_t fuel)
{
	struct leat_bpf_env_opts opts = { .size = sizeof(opts), .cpus = 2, .fuel = fuel, .replay = true, .seed = 1 };

	memset(t, 0, sizeof(*t));
	t->obj.map = t->map;
	t->obj.prog = t->prog;
	t->rxq.port = 7;
	t->rxq.queue = 3;
	if (leat_bpf_env_create(&opts, &t->env))
		return -1;
	t->obj.env = t->env;
	return 0;
}

/** Defines the map that the next place is for. */
static inline struct leat_bpf_map *test_bpf_define(struct test_bpf *t, uint32_t type, uint32_t key, uint32_t value,
						   uint32_t max, uint32_t flags)
{
	struct leat_bpf_map *map = &t->map[t->obj.n_maps];

	map->type = leat_bpf_map_type_find(type);
	map->env = t->env;
	map->obj = &t->obj;
	map->number = t->obj.n_maps;
	map->key_size = key;
	map->value_size = value;
	map->value_stride = (value + 7) & ~7u;
	map->max_entries = max;
	map->map_flags = flags;
	map->cpus = 2;
	snprintf(map->name, sizeof(map->name), "map%u", map->number);
	return map;
}

static inline int test_bpf_make(struct test_bpf *t, struct leat_bpf_map *map)
{
	if (!map->type || leat_bpf_map_create(map, NULL))
		return -1;
	map->made = true;
	return (int)t->obj.n_maps++;
}

/** Adds a map; returns its number, or -1. */
static inline int test_bpf_map(struct test_bpf *t, uint32_t type, uint32_t key, uint32_t value, uint32_t max,
			       uint32_t flags)
{
	return test_bpf_make(t, test_bpf_define(t, type, key, value, max, flags));
}

/** Adds a template of inner maps; returns its number. */
static inline int test_bpf_template(struct test_bpf *t, uint32_t type, uint32_t key, uint32_t value, uint32_t max,
				    uint32_t flags)
{
	test_bpf_define(t, type, key, value, max, flags)->template = true;
	return (int)t->obj.n_maps++;
}

/** Adds a map of maps that are like @template. */
static inline int test_bpf_outer(struct test_bpf *t, uint32_t type, uint32_t key, uint32_t max, int template)
{
	struct leat_bpf_map *map = test_bpf_define(t, type, key, 4, max, 0);

	map->inner = &t->map[template];
	return test_bpf_make(t, map);
}

/** The places that are left are for maps that are made later: no more of the others after this. */
static inline void test_bpf_more_maps(struct test_bpf *t)
{
	t->obj.max_later = TEST_MAPS - t->obj.n_maps;
}

/** Adds a program and verifies it; returns what the verifier said, its sentence in t->said. */
static inline int test_bpf_verify(struct test_bpf *t, const struct bpf_insn *insns, uint32_t n)
{
	struct leat_bpf_prog *prog = &t->prog[t->obj.n_progs];
	struct leat_diag *diag = leat_diag_create();
	int err;

	memset(prog, 0, sizeof(*prog));
	prog->obj = &t->obj;
	prog->name = "test";
	prog->section = "xdp";
	prog->number = t->obj.n_progs++;
	prog->flags = t->flags;
	prog->insn = insns;
	prog->n_insns = n;
	err = leat_bpf_verify(prog, diag);
	snprintf(t->said, sizeof(t->said), "%s", leat_diag_count(diag) ? leat_diag_get(diag, 0)->message : "");
	leat_diag_destroy(diag);
	return err;
}

/** Adds a program that must be good; returns its number, or -1. */
static inline int test_bpf_prog(struct test_bpf *t, const struct bpf_insn *insns, uint32_t n)
{
	struct leat_bpf_prog *prog = &t->prog[t->obj.n_progs];

	if (test_bpf_verify(t, insns, n)) {
		fprintf(stderr, "# %s\n", t->said);
		return -1;
	}
	prog->trap = leat_heap_zalloc(n * sizeof(*prog->trap));
	if (!prog->trap || leat_bpf_interp_prepare(prog) || (t->jit && leat_bpf_jit_compile(prog)))
		return -1;
	prog->loaded = true;
	return (int)prog->number;
}

/** A new packet of @len bytes with @meta bytes of metadata before it, and nothing before and after. */
static inline void test_bpf_packet(struct test_bpf *t, const void *bytes, uint32_t len, uint32_t meta)
{
	free(t->packet);
	t->packet = malloc(len + meta ? len + meta : 1);
	if (!t->packet)
		abort();
	memset(t->packet, 0xee, meta);
	if (bytes)
		memcpy(t->packet + meta, bytes, len);
	else
		memset(t->packet + meta, 0, len);
	memset(&t->xdp, 0, sizeof(t->xdp));
	t->xdp.data_meta = t->packet;
	t->xdp.data = t->packet + meta;
	t->xdp.data_end = t->xdp.data + len;
	t->xdp.rxq = &t->rxq;
}

/** Runs program @number on the packet; the run stays in t->last. */
static inline uint64_t test_bpf_run(struct test_bpf *t, int number)
{
	uint64_t r0;

	memset(&t->last, 0xa5, sizeof(t->last)); /* so that what is not set is found */
	leat_bpf_run_init(&t->last, t->env, &t->prog[number], &t->xdp, 0);
	r0 = leat_bpf_engine_run(&t->last);
	leat_bpf_run_release(&t->last);
	return r0;
}

static inline void test_bpf_drop_progs(struct test_bpf *t)
{
	while (t->obj.n_progs) {
		t->obj.n_progs--;
		leat_bpf_engine_free(&t->prog[t->obj.n_progs]);
		leat_heap_free(t->prog[t->obj.n_progs].aux);
		leat_heap_free(t->prog[t->obj.n_progs].trap);
	}
}

static inline void test_bpf_end(struct test_bpf *t)
{
	test_bpf_drop_progs(t);
	leat_bpf_nested_end(&t->obj);
	while (t->obj.n_maps)
		leat_bpf_map_destroy(&t->map[--t->obj.n_maps]);
	free(t->packet);
	leat_bpf_env_destroy(t->env);
}

#endif
