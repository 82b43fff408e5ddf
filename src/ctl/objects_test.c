/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * objects_test.c: eBPF objects in a configuration: found, set up as the file says, shared or not, and every mistake
 * with its line. The objects are those of examples/bpf; without clang there are none, and the tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"

#include <errno.h>
#include <leat/datapath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool have_objects(void)
{
	char path[4096];
	const char *folder = getenv("LEAT_OBJECT_PATH");

	snprintf(path, sizeof(path), "%s/reflect.bpf.o", folder ? folder : "");
	return !access(path, R_OK);
}

#define NEEDS_OBJECTS()             \
	do {                        \
		(void)state;        \
		if (!have_objects()) \
			skip();     \
	} while (0)

static struct leat_datapath *load(const char *text, struct leat_diag *diag, int *rc)
{
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_datapath *dp = NULL;

	*rc = leat_datapath_load_text(text, strlen(text), "t.yaml", &opts, diag, &dp);
	return dp;
}

static struct leat_datapath *load_good(const char *text)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp;
	char line[1024];
	int rc;

	dp = load(text, diag, &rc);
	if (leat_diag_get(diag, 0)) {
		leat_diag_format(leat_diag_get(diag, 0), line, sizeof(line));
		fail_msg("%s", line);
	}
	assert_int_equal(rc, 0);
	leat_diag_destroy(diag);
	return dp;
}

static void open_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
}

static void close_port(struct leat_netdev *dev, void *arg)
{
	(void)arg;
	leat_netdev_close(dev);
}

static void run(struct leat_datapath *dp)
{
	struct leat_net *net = leat_datapath_net(dp);
	int idle = 0, rounds = 0;

	leat_net_for_each_port(net, open_port, NULL);
	while (idle < 3 && ++rounds < 100000)
		idle = leat_worker_poll(leat_net_worker(net, 0)) ? 0 : idle + 1;
	leat_net_for_each_port(net, close_port, NULL);
	assert_int_equal(leat_net_outstanding(net), 0);
}

static struct leat_netdev_stats stats_of(struct leat_datapath *dp, const char *port)
{
	struct leat_netdev_stats stats;

	leat_netdev_stats(leat_netdev_find(leat_datapath_net(dp), port), &stats);
	return stats;
}

/* ---- what the file says is done ---- */

static void variables_are_set(void **state)
{
	struct leat_datapath *dp;

	NEEDS_OBJECTS();
	dp = load_good("ports:\n"
		       "  seven: { type: pktgen, count: 10, dst-port: 7 }\n"
		       "  eight: { type: pktgen, count: 20, dst-port: 8 }\n"
		       "  out: { type: sink }\n"
		       "programs:\n"
		       "  no7: { object: drop_udp_port.bpf.o, set: { port: 7 } }\n"
		       "attach: { seven: [no7], eight: [no7] }\n"
		       "bridges: { b: [seven, eight, out] }\n");
	run(dp);
	assert_int_equal(stats_of(dp, "seven").drops[LEAT_DROP_XDP_DROP], 10);
	assert_int_equal(stats_of(dp, "eight").drops[LEAT_DROP_XDP_DROP], 0);
	assert_int_equal(stats_of(dp, "out").tx_packets, 20);
	leat_datapath_destroy(dp);
}

static void maps_are_filled_and_ports_may_be_named(void **state)
{
	struct leat_datapath *dp;

	NEEDS_OBJECTS();
	dp = load_good("ports:\n"
		       "  gen: { type: pktgen, count: 10 }\n"
		       "  one: { type: sink }\n"
		       "  two: { type: sink }\n"
		       "programs:\n"
		       "  go: { object: redirect.bpf.o, maps: { to: { 0: two } } }\n"
		       "attach: { gen: go }\n");
	run(dp);
	assert_int_equal(stats_of(dp, "one").tx_packets, 0);
	assert_int_equal(stats_of(dp, "two").tx_packets, 10);
	leat_datapath_destroy(dp);
}

#define DEVMAP "../../tests/bpf/devmap.bpf.o"

static void entries_of_port_maps_may_have_programs(void **state)
{
	char text[128], again[8];
	struct leat_datapath *dp;
	struct leat_bpf_map *to;
	uint32_t key = 4, value[2];

	NEEDS_OBJECTS();
	dp = load_good("ports:\n"
		       "  gen: { type: pktgen, count: 10, size: 61 }\n"
		       "  even: { type: pktgen, count: 20, size: 60 }\n"
		       "  one: { type: sink }\n"
		       "  two: { type: sink }\n"
		       "programs:\n"
		       "  go:\n"
		       "    object: " DEVMAP "\n" /* of its programs one is for ports: it need not be named */
		       "    maps:\n"
		       "      to: { 0: one, 4: { port: two, prog: odd_only }, 7: '{\"port\": \"one\", \"prog\": \"stamp\"}' }\n"
		       "attach: { gen: go, even: go }\n");
	to = leat_bpf_object_map_find(leat_datapath_object(dp, 0), "to");
	assert_int_equal(leat_bpf_map_lookup(to, &key, value), 0);
	leat_bpf_map_format_value(to, value, text, sizeof(text));
	assert_string_equal(text, "{\"port\": 4, \"prog\": \"odd_only\"}");
	assert_int_equal(leat_bpf_map_parse_value(to, text, again, NULL), 0);
	assert_memory_equal(again, value, sizeof(again));
	key = 0;
	assert_int_equal(leat_bpf_map_lookup(to, &key, value), 0);
	leat_bpf_map_format_value(to, value, text, sizeof(text));
	assert_string_equal(text, "3");
	run(dp);
	assert_int_equal(stats_of(dp, "one").tx_packets, 60);
	assert_int_equal(stats_of(dp, "two").tx_packets, 10);
	assert_int_equal(stats_of(dp, "two").drops[LEAT_DROP_EGRESS_DROP], 20);
	leat_datapath_destroy(dp);
}

static void expect(const char *text, unsigned int line, const char *path, const char *words);

#define BAD_ENTRY(entry, words)                                                                                \
	expect("ports: { a: { type: sink } }\nprograms:\n  p: { object: " DEVMAP ", maps: { to: { 1: " entry " } } }\n",  \
	       3, "programs.p.maps", words)

static void mistakes_of_entries_are_told(void **state)
{
	NEEDS_OBJECTS();
	BAD_ENTRY("nobody", "map 'to' holds ports, and there is no port 'nobody'");
	BAD_ENTRY("'77'", "there is no port '77'");
	BAD_ENTRY("0", "there is no port '0'");
	BAD_ENTRY("{ port: a, prog: none }", "the object has no program 'none'");
	BAD_ENTRY("{ port: a, prog: to_all }", "program 'to_all' is not for packets that leave");
	BAD_ENTRY("{ prog: stamp }", "an entry of map 'to' must have a port");
	BAD_ENTRY("{ }", "an entry of map 'to' must have a port");
	BAD_ENTRY("{ port: a, queue: 1 }", "an entry of map 'to' is a port, or { port: PORT, prog: PROGRAM }");
	BAD_ENTRY("{ port: [a] }", "'1' must be a port, or { port: PORT, prog: PROGRAM }");
	BAD_ENTRY("[a]", "'1' must have a single value");
	expect("ports: { a: { type: sink } }\nprograms:\n"
	       "  p: { object: redirect.bpf.o, maps: { to: { 0: { port: a, prog: redirect } } } }\n",
	       3, "programs.p.maps", "map 'to' has values of 4 bytes");
	expect("ports: { a: { type: sink } }\nprograms:\n  p: { object: " DEVMAP ", prog: stamp }\n", 3, "programs.p",
	       "program 'stamp' is for packets that leave");
}

#define NESTED "../../tests/bpf/progs/nested.v3.bpf.o"

static void inner_maps_are_named_or_made(void **state)
{
	struct leat_bpf_map *small, *outer, *made;
	struct leat_bpf_object *obj;
	uint32_t one = 1, three = 3;
	struct leat_datapath *dp;
	uint64_t value[3] = { 0 };

	NEEDS_OBJECTS();
	dp = load_good("ports: { gen: { type: pktgen, count: 10 } }\n"
		       "programs:\n"
		       "  count:\n"
		       "    object: " NESTED "\n"
		       "    prog: count\n"
		       "    maps:\n"
		       "      counters: { 1: new:7, 3: small }\n"
		       "      counters[1]: { 6: '[5, 6]' }\n"
		       "attach: { gen: count }\n");
	obj = leat_datapath_object(dp, 0);
	small = leat_bpf_object_map_find(obj, "small");
	outer = leat_bpf_object_map_find(obj, "counters");
	made = leat_bpf_object_map_find(obj, "counters[1]");
	assert_ptr_equal(leat_bpf_map_get_inner(outer, &three), small);
	assert_ptr_equal(leat_bpf_map_get_inner(outer, &one), made);
	one = 6;
	assert_int_equal(leat_bpf_map_lookup(made, &one, value), 0);
	assert_true(value[0] == 5 && value[1] == 6);
	leat_datapath_destroy(dp);
}

/** Packets that count_proto has counted for UDP, over all CPUs. */
static uint64_t counted(struct leat_bpf_object *obj)
{
	struct leat_bpf_map *map = leat_bpf_object_map_find(obj, "protos");
	struct leat_bpf_map_info info;
	uint16_t key[2] = { 0x0800, 17 };
	uint64_t values[2 * LEAT_BPF_CPUS_MAX] = { 0 };

	assert_non_null(map);
	leat_bpf_map_info(map, &info);
	assert_in_range(info.value_bytes, 16, sizeof(values));
	return leat_bpf_map_lookup(map, key, values) ? 0 : values[0];
}

#define COUNTERS                                           \
	"ports:\n"                                         \
	"  a: { type: pktgen, count: 10 }\n"               \
	"  b: { type: pktgen, count: 20 }\n"               \
	"programs:\n"                                      \
	"  on-a: { object: count_proto.bpf.o }\n"

static void programs_of_one_file_share_its_maps(void **state)
{
	struct leat_datapath *dp;

	NEEDS_OBJECTS();
	dp = load_good(COUNTERS "  on-b: { object: count_proto.bpf.o }\nattach: { a: [on-a], b: [on-b] }\n");
	run(dp);
	assert_int_equal(counted(leat_datapath_object(dp, 0)), 30);
	assert_null(leat_datapath_object(dp, 1));
	leat_datapath_destroy(dp);
}

static void an_instance_has_maps_of_its_own(void **state)
{
	struct leat_datapath *dp;

	NEEDS_OBJECTS();
	dp = load_good(COUNTERS "  on-b: { object: count_proto.bpf.o, instance: b, entries: { protos: 5 } }\n"
				"attach: { a: [on-a], b: [on-b] }\n");
	run(dp);
	assert_int_equal(counted(leat_datapath_object(dp, 0)), 10);
	assert_int_equal(counted(leat_datapath_object(dp, 1)), 20);
	leat_datapath_destroy(dp);
}

static void a_chain_mixes_objects_and_built_ins(void **state)
{
	struct leat_xdp_prog_stats stats;
	struct leat_datapath *dp;

	NEEDS_OBJECTS();
	dp = load_good("ports:\n"
		       "  gen: { type: pktgen, count: 10, dst-port: 7 }\n"
		       "programs:\n"
		       "  last: { builtin: drop, priority: 90 }\n"
		       "  count: { object: count_proto.bpf.o }\n"
		       "  never: { builtin: abort, priority: 95 }\n"
		       "  first: { object: drop_udp_port.bpf.o, set: { port: 7 }, priority: 5, chain-call: [pass, drop] }\n"
		       "attach: { gen: [last, never, count, first] }\n");
	run(dp);
	leat_xdp_prog_stats(leat_datapath_prog(dp, 3), &stats);
	assert_int_equal(stats.verdict[LEAT_XDP_DROP], 10); /* and the chain went on */
	assert_int_equal(counted(leat_datapath_object(dp, 0)), 10);
	leat_xdp_prog_stats(leat_datapath_prog(dp, 0), &stats);
	assert_int_equal(stats.verdict[LEAT_XDP_DROP], 10);
	leat_xdp_prog_stats(leat_datapath_prog(dp, 2), &stats);
	assert_int_equal(stats.runs, 0);
	leat_datapath_destroy(dp);
}

/* ---- mistakes ---- */

static void expect(const char *text, unsigned int line, const char *path, const char *words)
{
	struct leat_diag *diag = leat_diag_create();
	const struct leat_diag_entry *entry;
	int rc;

	assert_null(load(text, diag, &rc));
	assert_int_equal(rc, -EINVAL);
	assert_int_equal(leat_diag_count(diag), 1);
	entry = leat_diag_get(diag, 0);
	if (entry->line != line || strcmp(entry->path, path) != 0 || !strstr(entry->message, words))
		fail_msg("%u %s: %s", entry->line, entry->path, entry->message);
	leat_diag_destroy(diag);
}

#define PORTS "ports: { a: { type: sink } }\nprograms:\n"

static void mistakes_have_their_line(void **state)
{
	NEEDS_OBJECTS();
	expect(PORTS "  p: { object: nowhere.bpf.o }\n", 3, "programs.p", "there is no object 'nowhere.bpf.o' in: ., ");
	expect(PORTS "  p: { object: /dev/null }\n  q: { object: /dev/null }\n", 3, "programs.p", "/dev/null: ");
	expect(PORTS "  p: { object: reflect.bpf.o, prog: reflekt }\n", 3, "programs.p",
	       "no program 'reflekt'; it has: reflect");
	expect(PORTS "  p:\n    object: drop_udp_port.bpf.o\n    set: { prot: 7 }\n", 5, "programs.p.set", "port");
	expect(PORTS "  p: { object: drop_udp_port.bpf.o, set: { port: 70000 } }\n", 3, "programs.p.set", "70000");
	expect(PORTS "  p: { object: redirect.bpf.o, maps: { too: { 0: a } } }\n", 3, "programs.p.maps",
	       "no map 'too'");
	expect(PORTS "  p: { object: redirect.bpf.o, maps: { to: { 0: nobody } } }\n", 3, "programs.p.maps",
	       "there is no port 'nobody'");
	expect(PORTS "  p: { object: redirect.bpf.o, maps: { to: { 1: a } } }\n", 3, "programs.p.maps",
	       "does not take the element");
	expect(PORTS "  p: { object: " NESTED ", prog: balance, maps: { services: { 1: x } } }\n", 3,
	       "programs.p.maps", "holds maps, and there is no map 'x'");
	expect(PORTS "  p: { object: redirect.bpf.o, entries: { to: 0 } }\n", 3, "programs.p.entries", "must be 1..");
	expect(PORTS "  p: { object: redirect.bpf.o, entries: { two: 5 } }\n", 3, "programs.p.entries",
	       "no map 'two'");
	expect(PORTS "  p: { object: redirect.bpf.o, entries: { to: 4294967295 } }\n", 3, "programs.p",
	       "map to (devmap): it can have 1 to 1048576 entries");
}

static void memory_may_run_out_at_every_step(void **state)
{
	static const char text[] =
		"ports: { gen: { type: pktgen, count: 1 }, out: { type: sink } }\n"
		"programs: { go: { object: redirect.bpf.o, maps: { to: { 0: out } }, entries: { to: 3 } },\n"
		"            no7: { object: drop_udp_port.bpf.o, set: { port: 7 } } }\n"
		"attach: { gen: [no7, go] }\n";
	struct leat_datapath *dp;
	unsigned long nth;
	bool reached = true;
	int rc;

	NEEDS_OBJECTS();
	for (nth = 1; reached; nth++) {
		leat_heap_fail_nth(nth);
		dp = load(text, NULL, &rc);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		if (rc != (reached ? -ENOMEM : 0))
			fail_msg("allocation %lu: returned %d", nth, rc);
		leat_datapath_destroy(dp);
	}
	assert_true(nth > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_are_set),
		cmocka_unit_test(maps_are_filled_and_ports_may_be_named),
		cmocka_unit_test(entries_of_port_maps_may_have_programs),
		cmocka_unit_test(mistakes_of_entries_are_told),
		cmocka_unit_test(inner_maps_are_named_or_made),
		cmocka_unit_test(programs_of_one_file_share_its_maps),
		cmocka_unit_test(an_instance_has_maps_of_its_own),
		cmocka_unit_test(a_chain_mixes_objects_and_built_ins),
		cmocka_unit_test(mistakes_have_their_line),
		cmocka_unit_test(memory_may_run_out_at_every_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
