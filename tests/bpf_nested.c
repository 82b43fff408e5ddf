/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_nested.c: maps of maps of an object that clang made: inner maps by name and made anew, and inner maps that a
 * control thread replaces while programs run on two workers, on both engines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <leat/bpf.h>
#include <leat/xdp_prog.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/epoch.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 200
#else
#define CHANGES 2000
#endif

#define FRAME 4096u
#define CPUS 2u
#define UNKNOWN_VERDICT 100u

/* Of nested.bpf.c. */
struct flow {
	uint8_t saddr[4], daddr[4], sport[2], dport[2];
	uint32_t proto;
};

struct connection {
	uint32_t backend, packets;
	uint64_t bytes;
};

static struct {
	struct leat_epoch epoch;
	struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	struct leat_diag *diag;
	uint32_t stop; /* atomic */
	uint64_t runs; /* atomic */
} t;

static const char *message(void)
{
	return leat_diag_count(t.diag) ? leat_diag_get(t.diag, 0)->message : "";
}

/** Path of the object; false where it was not compiled, or cannot be read. */
static bool object_path(char *path, size_t size)
{
	const char *build = getenv("LEAT_BUILD");

	snprintf(path, size, "%s/tests/bpf/progs/nested.v3.bpf.o", build ? build : ".");
	return getenv("LEAT_LOAD") && !access(path, R_OK);
}

static void open_object(unsigned int engine, const char *prog)
{
	const struct leat_bpf_env_opts env_opts = {
		.size = sizeof(env_opts), .cpus = CPUS, .epoch = &t.epoch, .engine = engine, .replay = true, .seed = 1
	};
	const struct leat_bpf_object_opts opts = { .size = sizeof(opts), .loader = getenv("LEAT_LOAD") };
	char path[4096];

	if (!object_path(path, sizeof(path)))
		skip();
	memset(&t, 0, sizeof(t));
	leat_epoch_init(&t.epoch);
	t.diag = leat_diag_create();
	leat_xdp_bpf_init();
	assert_int_equal(leat_bpf_env_create(&env_opts, &t.env), 0);
	if (leat_bpf_object_open(t.env, path, &opts, t.diag, &t.obj) || leat_bpf_object_load(t.obj, prog, t.diag))
		fail_msg("%s", message());
}

static void close_object(void)
{
	leat_bpf_object_close(t.obj);
	leat_bpf_env_destroy(t.env);
	leat_diag_destroy(t.diag);
}

static struct leat_bpf_map *map(const char *name)
{
	struct leat_bpf_map *found = leat_bpf_object_map_find(t.obj, name);

	if (!found)
		fail_msg("there is no map %s", name);
	return found;
}

static void set32(struct leat_bpf_map *to, uint32_t key, uint32_t value)
{
	assert_int_equal(leat_bpf_map_update(to, &key, &value, BPF_ANY), 0);
}

/* ---- packets ---- */

/** UDP from 10.0.0.@host and port @sport to @dport; returns the verdict of @prog on CPU @cpu. */
static uint32_t send(struct leat_bpf_prog *prog, unsigned int cpu, uint8_t *frame, uint8_t host, uint16_t sport,
		     uint16_t dport)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,  0x45, 0, 0, 46, 0, 1, 0,
					0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 99 };
	struct leat_xdp_buff xdp;

	leat_xdp_buff_init(&xdp, leat_run_make((uint64_t)(uintptr_t)frame, FRAME / LEAT_GRANULE_SIZE),
			   LEAT_XDP_HEADROOM, 60);
	memset(xdp.data, 0, 60);
	memcpy(xdp.data, head, sizeof(head));
	xdp.data[29] = host;
	xdp.data[34] = (uint8_t)(sport >> 8);
	xdp.data[35] = (uint8_t)sport;
	xdp.data[36] = (uint8_t)(dport >> 8);
	xdp.data[37] = (uint8_t)dport;
	return leat_bpf_prog_run(prog, &xdp, cpu);
}

static uint8_t *new_frame(void)
{
	uint8_t *frame = NULL;

	assert_int_equal(posix_memalign((void **)&frame, 4096, FRAME), 0);
	return frame;
}

/* ---- by name ---- */

static void assert_text(const char *outer, uint32_t key, const char *expected)
{
	struct leat_bpf_map *from = map(outer);
	char text[128];
	uint32_t value;

	assert_int_equal(leat_bpf_map_lookup(from, &key, &value), 0);
	assert_true(leat_bpf_map_format_value(from, &value, text, sizeof(text)) > 0);
	assert_string_equal(text, expected);
}

static int put(const char *outer, uint32_t key, const char *text)
{
	return leat_bpf_map_put_inner(map(outer), &key, text, t.diag);
}

static void maps_by_name(void **state)
{
	struct leat_bpf_map_info info;
	struct leat_bpf_map *inner;
	uint32_t key = 2, number;

	(void)state;
	open_object(LEAT_BPF_ENGINE_INTERP, NULL);
	leat_bpf_map_info(map("services"), &info);
	assert_true(info.nested && info.type == BPF_MAP_TYPE_HASH_OF_MAPS && info.value_bytes == 4);
	leat_bpf_map_info(map("ring_one"), &info);
	assert_false(info.nested);
	assert_text("services", 1, "\"ring_two\"");
	assert_int_equal(put("services", 1, "ring_one"), 0);
	assert_text("services", 1, "\"ring_one\"");
	assert_int_equal(put("services", 2, "new"), 0);
	assert_text("services", 2, "\"services[2]\"");
	leat_bpf_map_info(map("services[2]"), &info);
	assert_int_equal(info.max_entries, 64);
	assert_int_equal(put("counters", 1, "new:7"), 0);
	leat_bpf_map_info(map("counters[1]"), &info);
	assert_int_equal(info.max_entries, 7);
	/* the name of what is not there yet, as a report has it */
	assert_int_equal(put("connections", 9, "connections[9]"), 0);
	assert_text("connections", 9, "\"connections[9]\"");
	assert_int_equal(leat_bpf_map_parse_value(map("services"), "ring_two", &number, t.diag), 0);
	assert_int_equal(number, leat_bpf_map_number(map("ring_two")));
	/* what is replaced goes with its name */
	inner = map("services[2]");
	assert_int_equal(put("services", 2, "services[2]"), 0); /* itself again */
	assert_ptr_equal(leat_bpf_map_get_inner(map("services"), &key), inner);
	assert_int_equal(put("services", 2, "ring_two"), 0);
	assert_null(leat_bpf_object_map_find(t.obj, "services[2]"));
	close_object();
}

static void mistakes(void **state)
{
	static const struct {
		const char *outer, *text;
		uint32_t key;
		int err;
		const char *words;
	} bad[] = {
		{ "services", "nobody", 2, -ENOENT, "'services' holds maps, and there is no map 'nobody'" },
		{ "services", "new:", 2, -ENOENT, "no map 'new:'" },
		{ "services", "new:0", 2, -ENOENT, "no map 'new:0'" },
		{ "services", "new:5x", 2, -ENOENT, "no map" },
		{ "services", "new:99999999999", 2, -ENOENT, "no map" },
		{ "services", "newer", 2, -ENOENT, "no map" },
		{ "services", "new:65", 2, -EINVAL, "does not take a new map: Invalid argument" },
		{ "services", "small", 2, -EINVAL, "does not take map 'small', which is not like its template" },
		{ "services", "services", 2, -EINVAL, "which is not like its template" },
		{ "counters", "large", 4, -E2BIG, "does not take map 'large': " },
		{ "counters", "new", 4, -E2BIG, "does not take a new map: " },
	};
	uint32_t number;
	size_t i;

	(void)state;
	open_object(LEAT_BPF_ENGINE_INTERP, NULL);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		leat_diag_destroy(t.diag);
		t.diag = leat_diag_create();
		assert_int_equal(put(bad[i].outer, bad[i].key, bad[i].text), bad[i].err);
		assert_int_equal(leat_diag_count(t.diag), 1);
		if (!strstr(message(), bad[i].words))
			fail_msg("%s: %s", bad[i].text, message());
	}
	assert_int_equal(leat_bpf_map_parse_value(map("services"), "nobody", &number, t.diag), -EINVAL);
	assert_null(leat_bpf_object_map_find(t.obj, "counters[4]"));
	close_object();
}

/** One program alone: also the maps that it may be given. */
static void one_program(void **state)
{
	(void)state;
	open_object(LEAT_BPF_ENGINE_INTERP, "count");
	map("small");
	map("large");
	assert_null(leat_bpf_object_map_find(t.obj, "ring_one"));
	close_object();
}

/* ---- as a load balancer does ---- */

/** Connections of each worker in a table of its own, which a control thread made. */
static void tables_of_workers(unsigned int engine)
{
	struct flow flow = { { 10, 0, 0, 1 }, { 10, 0, 0, 99 }, { 3, 232 }, { 0, 81 }, 17 };
	struct connection connection;
	struct leat_bpf_prog *prog;
	uint8_t *frame = new_frame();
	uint32_t i;

	open_object(engine, NULL);
	prog = leat_bpf_object_prog_find(t.obj, "balance");
	assert_int_equal(put("connections", 0, "new:100"), 0);
	assert_int_equal(put("connections", 1, "new:5000"), 0);
	assert_int_equal(put("services", 1, "new"), 0);
	for (i = 0; i < 64; i++)
		set32(map("services[1]"), i, 3);
	assert_int_equal(send(prog, 0, frame, 1, 1000, 81), LEAT_XDP_TX);
	assert_int_equal(send(prog, 0, frame, 1, 1000, 81), UNKNOWN_VERDICT + 4);
	assert_int_equal(send(prog, 1, frame, 1, 1000, 81), LEAT_XDP_TX); /* is new there */
	assert_int_equal(send(prog, 1, frame, 1, 1000, 82), LEAT_XDP_DROP); /* no such service */
	assert_int_equal(leat_bpf_map_lookup(map("connections[0]"), &flow, &connection), 0);
	assert_true(connection.backend == 4 && connection.packets == 2 && connection.bytes == 120);
	assert_int_equal(leat_bpf_map_lookup(map("connections[1]"), &flow, &connection), 0);
	assert_true(connection.packets == 1);
	assert_int_equal(leat_bpf_map_lookup(map("cpu_even"), &flow, &connection), -ENOENT);
	close_object();
	free(frame);
}

static void tables_interpreted(void **state)
{
	(void)state;
	tables_of_workers(LEAT_BPF_ENGINE_INTERP);
}

static void tables_compiled(void **state)
{
	(void)state;
	tables_of_workers(LEAT_BPF_ENGINE_AUTO);
}

/* ---- under traffic ---- */

static void *worker(void *arg)
{
	unsigned int cpu = *(unsigned int *)arg;
	struct leat_bpf_prog *prog = leat_bpf_object_prog_find(t.obj, "balance");
	uint8_t *frame = new_frame();
	uint32_t verdict, i;

	leat_epoch_online(&t.epoch, cpu);
	for (i = 0; !__atomic_load_n(&t.stop, __ATOMIC_ACQUIRE); i++) {
		verdict = send(prog, cpu, frame, (uint8_t)i, (uint16_t)(1000 + i % 7), 80 + 1);
		/*
		 * Without a ring the packet is dropped; a backend is 5, 6 or 7; where the other worker is not run for long,
		 * a new connection finds no element, and the program says ABORTED.
		 */
		assert_true(verdict <= LEAT_XDP_DROP || verdict == LEAT_XDP_TX || (verdict >= 105 && verdict <= 107));
		__atomic_fetch_add(&t.runs, 1, __ATOMIC_RELAXED);
		if (i % 16 == 0)
			leat_epoch_quiescent(&t.epoch, cpu);
	}
	leat_epoch_offline(&t.epoch, cpu);
	free(frame);
	return NULL;
}

/** A new ring, filled before anybody sees it; a new table of connections; and now and then none. */
static void change(uint32_t i)
{
	struct leat_bpf_map *ring = NULL;
	uint32_t key = 1, slot, cpu = i % CPUS;

	assert_int_equal(leat_bpf_map_make_inner(map("services"), "ring", 0, &ring), 0);
	for (slot = 0; slot < 64; slot++)
		set32(ring, slot, 4 + i % 3);
	assert_int_equal(leat_bpf_map_set_inner(map("services"), &key, ring, BPF_ANY), 0);
	leat_bpf_map_release(ring);
	assert_int_equal(put("connections", cpu, i % 3 ? "new:50" : cpu ? "cpu_odd" : "cpu_even"), 0);
	if (i % 5 == 0)
		assert_int_equal(leat_bpf_map_delete(map("services"), &key), 0);
}

static void wait_for_runs(uint64_t runs)
{
	while (__atomic_load_n(&t.runs, __ATOMIC_RELAXED) < runs)
		sched_yield();
}

static void replaced_under_traffic(unsigned int engine)
{
	unsigned int cpu[CPUS] = { 0, 1 };
	pthread_t thread[CPUS];
	struct leat_bpf_trap trap;
	uint32_t i;

	open_object(engine, NULL);
	for (i = 0; i < 64; i++)
		set32(map("ring_two"), i, 4);
	for (i = 0; i < CPUS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, worker, &cpu[i]), 0);
	wait_for_runs(100);
	for (i = 0; i < CHANGES; i++)
		change(i);
	wait_for_runs(__atomic_load_n(&t.runs, __ATOMIC_RELAXED) + 100);
	__atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < CPUS; i++)
		pthread_join(thread[i], NULL);
	assert_false(leat_bpf_prog_trap(leat_bpf_object_prog_find(t.obj, "balance"), 0, &trap));
	close_object();
}

static void replaced_interpreted(void **state)
{
	(void)state;
	replaced_under_traffic(LEAT_BPF_ENGINE_INTERP);
}

static void replaced_compiled(void **state)
{
	(void)state;
	replaced_under_traffic(LEAT_BPF_ENGINE_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_by_name),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(one_program),
		cmocka_unit_test(tables_interpreted),
		cmocka_unit_test(tables_compiled),
		cmocka_unit_test(replaced_interpreted),
		cmocka_unit_test(replaced_compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
