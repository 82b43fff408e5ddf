/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_test.c: every mistake that a configuration can hold, with the line and column it is reported at; hostile
 * files; and a full configuration under missing memory, each allocation in turn (leaks are the sanitizer's to find).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <leat/datapath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "ctl/test_config.h"

static void is_no_configuration(void **state)
{
	static const struct bad all[] = {
		{ .text = " ", .mistakes = { { 1, 1, "", "the configuration is empty" } } },
		{ .text = "# nothing\n", .mistakes = { { 1, 1, "", "the configuration is empty" } } },
		{ .text = "~\n", .mistakes = { { 1, 1, "", "the configuration is empty" } } },
		{ .text = "---\n", .mistakes = { { 2, 1, "", "the configuration is empty" } } },
		{ .text = "hello\n", .mistakes = { { 1, 1, "", "is a mapping" } } },
		{ .text = "\n- a\n- b\n", .mistakes = { { 2, 1, "", "is a mapping" } } },
		{ .text = "{}", .mistakes = { { 1, 1, "ports", "is missing" } } },
		{ .text = "workers: 2", .mistakes = { { 1, 1, "ports", "is missing" } } },
		{ .text = "ports:\n", .mistakes = { { 1, 1, "ports", "names no port" } } },
		{ .text = "ports: {}\n", .mistakes = { { 1, 1, "ports", "names no port" } } },
		{ .text = "ports: []\n",
		  .mistakes = { { 1, 1, "ports", "names no port" }, { 1, 8, "ports", "must be a mapping" } } },
		{ .text = "ports: sink\n", .mistakes = { { 1, 8, "ports", "must be a mapping of names" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void is_no_yaml(void **state)
{
	static const char nul[] = "ports:\n  a\0b: {}\n";
	static const struct bad all[] = {
		{ .text = "ports: {a: [}\n", .mistakes = { { 1, 13, "", "this is not valid YAML" } } },
		{ .text = "ports: {\n", .mistakes = { { 2, 1, "", "this is not valid YAML" } } },
		{ .text = "a: b: c\n", .mistakes = { { 1, 5, "", "mapping values are not allowed" } } },
		{ .text = "ports:\n\ta: b\n", .mistakes = { { 2, 1, "", "this is not valid YAML" } } },
		{ .text = "ports: \"open\n", .mistakes = { { 2, 1, "", "this is not valid YAML" } } },
		{ .text = "ports:\n  a: \xff\n", .mistakes = { { 2, 6, "", "this is not UTF-8 text" } } },
		{ .text = "ports:\n  \xc3\xa9: \xc3(\n", .mistakes = { { 2, 7, "", "this is not UTF-8 text" } } },
		{ .text = "\xff\xfep\0o\0", .len = 6, .mistakes = { { 1, 1, "", "this is not UTF-8 text" } } },
		{ .text = nul, .len = sizeof(nul) - 1, .mistakes = { { 2, 4, "", "NUL character" } } },
		{ .text = "ports:\n  \"a\\0b\": {}\n", .mistakes = { { 2, 3, "", "NUL character" } } },
		{ .text = "ports: {}\n---\nports: {}\n", .mistakes = { { 2, 1, "", "a second document begins" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void is_refused_yaml(void **state)
{
	static const struct bad all[] = {
		{ .text = "ports:\n  a: &x { type: sink }\n", .mistakes = { { 2, 6, "", "anchors, aliases and tags" } } },
		{ .text = "ports: *x\n", .mistakes = { { 1, 8, "", "anchors, aliases and tags" } } },
		{ .text = "ports: !!map {}\n", .mistakes = { { 1, 8, "", "anchors, aliases and tags" } } },
		{ .text = "ports: !mine x\n", .mistakes = { { 1, 8, "", "anchors, aliases and tags" } } },
		{ .text = "a: &a [x,x]\nb: &b [*a,*a]\n", .mistakes = { { 1, 4, "", "anchors, aliases and tags" } } },
		{ .text = "[a]: b\n", .mistakes = { { 1, 1, "", "a key must be a word" } } },
		{ .text = "? {a: b}\n: c\n", .mistakes = { { 1, 3, "", "a key must be a word" } } },
		{ .text = "a: [[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]\n",
		  .mistakes = { { 1, 19, "", "too many mappings or lists within each other" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void keys_and_workers(void **state)
{
	static const struct bad all[] = {
		{ .text = "port:\n  a: { type: sink }\n",
		  .mistakes = { { 1, 1, "", "unknown key 'port' (did you mean 'ports'?)" }, { 1, 1, "ports", "is missing" } } },
		{ .text = "ports: { a: { type: sink } }\nzzz: 1\nbrigdes: {}\n",
		  .mistakes = { { 2, 1, "", "unknown key 'zzz'; known: workers, ports" },
				{ 3, 1, "", "did you mean 'bridges'?" } } },
		{ .text = "workers: 0\nports: { a: { type: sink } }\n",
		  .mistakes = { { 1, 10, "workers", "must be 1..32, not 0" } } },
		{ .text = "workers: 33\nports: { a: { type: sink } }\n",
		  .mistakes = { { 1, 10, "workers", "must be 1..32, not 33" } } },
		{ .text = "workers: many\nports: { a: { type: sink } }\n",
		  .mistakes = { { 1, 10, "workers", "'many' is not a whole number" } } },
		{ .text = "workers: [1]\nports: { a: { type: sink } }\n",
		  .mistakes = { { 1, 10, "workers", "must be a single value" } } },
		{ .text = "workers:\nports: { a: { type: sink } }\n",
		  .mistakes = { { 1, 1, "workers", "has no value" } } },
		{ .text = "workers: 1\nports: { a: { type: sink } }\nworkers: 2\nports: { b: { type: nonsense } }\n",
		  .mistakes = { { 3, 1, "", "'workers' is given twice; the first stands in line 1" },
				{ 4, 1, "", "'ports' is given twice; the first stands in line 2" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void ports(void **state)
{
	static const struct bad all[] = {
		{ .text = "ports:\n  a: sink\n  b:\n  c: []\n",
		  .mistakes = { { 2, 6, "ports.a", "must be a mapping" },
				{ 3, 3, "ports.b", "must be a mapping" },
				{ 4, 6, "ports.c", "must be a mapping" } } },
		{ .text = "ports:\n  a: { type: snik }\n  b: { mtu: 9 }\n  c: { type: }\n  d: { type: [sink] }\n",
		  .mistakes = { { 2, 14, "ports.a.type", "unknown port type 'snik' (did you mean 'sink'?); known: veth, tap" },
				{ 3, 3, "ports.b", "'type' is missing; known: veth, tap" },
				{ 4, 8, "ports.c.type", "has no value" },
				{ 5, 14, "ports.d.type", "must be a single value" } } },
		{ .text = "ports:\n  a: { type: veth, peeer: b, queues: 0, mtu: 70000, mac: 02:00 }\n",
		  .mistakes = { { 2, 3, "ports.a", "'peer' is missing" },
				{ 2, 20, "ports.a", "unknown key 'peeer' (did you mean 'peer'?)" },
				{ 2, 38, "ports.a.queues", "must be 1..64, not 0" },
				{ 2, 46, "ports.a.mtu", "must be 68..9216, not 70000" },
				{ 2, 58, "ports.a.mac", "is not a MAC address (like 02:00:00:00:00:01)" } } },
		{ .text = "ports:\n  a: { type: veth, peer: 'no', mac: 01:00:5e:00:00:01 }\n"
			  "  b: { type: veth, peer: a, mac: 00:00:00:00:00:00 }\n  lan: { type: veth, peer: lam }\n",
		  .mistakes = { { 2, 26, "ports.a.peer", "unknown port 'no'; known: a, b, lan" },
				{ 2, 37, "ports.a.mac", "cannot be a port's own address: it is a group's" },
				{ 3, 34, "ports.b.mac", "cannot be a port's own address: it is all zero" },
				{ 4, 28, "ports.lan.peer", "unknown port 'lam' (did you mean 'lan'?)" } } },
		{ .text = "ports:\n  a: { type: tap, ifname: a/b }\n  b: { type: tap, ifname: '..' }\n"
			  "  c: { type: tap, ifname: 'a b' }\n  d: { type: tap, ifname: 'tap%d' }\n"
			  "  e: { type: tap, ifname: 'a:1', nope: 1 }\n",
		  .mistakes = { { 2, 27, "ports.a.ifname", "'a/b' cannot be the name of an interface: 1 to 15 bytes" },
				{ 3, 27, "ports.b.ifname", "'..' cannot be" },
				{ 4, 27, "ports.c.ifname", "'a b' cannot be" },
				{ 5, 27, "ports.d.ifname", "'tap%d' cannot be" },
				{ 6, 27, "ports.e.ifname", "'a:1' cannot be" },
				{ 6, 34, "ports.e", "unknown key 'nope'; known: type" } } },
		{ .text = "ports:\n  a:\n    type: sink\n    type: tap\n  a: { type: tap }\n",
		  .mistakes = { { 4, 5, "ports.a", "'type' is given twice; the first stands in line 3" },
				{ 5, 3, "ports", "'a' is given twice; the first stands in line 2" } } },
		{ .text = "ports:\n  a b: { type: sink }\n  '': { type: sink }\n"
			  "  a234567890123456789012345678901: { type: sink }\n"
			  "  a2345678901234567890123456789012: { type: sink }\n"
			  "  \"\\n\\e[2J\": { type: sink }\n",
		  .mistakes = { { 2, 3, "ports", "'a b' is not a valid name" },
				{ 3, 3, "ports", "'' is not a valid name" },
				{ 5, 3, "ports", "'a2345678901234567890123456789012' is not a valid name" },
				{ 6, 3, "ports", "'??[2J' is not a valid name" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void engines(void **state)
{
	static const struct bad all[] = {
		{ .text = "ports: { a: { type: sink } }\nbpf: interp\n",
		  .mistakes = { { 2, 6, "bpf", "must be a mapping, like { engine: interp }" } } },
		{ .text = "ports: { a: { type: sink } }\nbpf: { engine: fast, perf-map: maybe, cpu: 1 }\n",
		  .mistakes = { { 2, 16, "bpf.engine", "" }, { 2, 32, "bpf.perf-map", "must be true or false" },
				{ 2, 39, "bpf", "unknown key 'cpu'; known: engine, kernel-verifier, perf-map" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

#define PORTS "ports: { a: { type: sink }, b: { type: sink }, c: { type: sink } }\n"

static void programs(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "programs: [pass]\n", .mistakes = { { 2, 11, "programs", "must be a mapping of names" } } },
		{ .text = PORTS "programs:\n  p: pass\n  q: {}\n  r: { builtin: }\n  s: { builtin: refelct }\n"
				"  t: { object: x.o, builtin: pass }\n  'u v': { builtin: pass }\n",
		  .mistakes = { { 3, 6, "programs.p", "must be a mapping, like { object: " },
				{ 4, 3, "programs.q", "'object' or 'builtin' is missing; built-in programs: " },
				{ 5, 8, "programs.r.builtin", "has no value" },
				{ 6, 17, "programs.s.builtin", "unknown built-in program 'refelct' (did you mean 'reflect'?)" },
				{ 7, 3, "programs.t", "either an 'object' or a 'builtin', not both" },
				{ 8, 3, "programs", "'u v' is not a valid name" } } },
		{ .text = PORTS "programs:\n  p: { builtin: pass, port: 1 }\n  q: { builtin: drop-udp-port }\n"
				"  r: { builtin: drop-udp-port, port: 65536 }\n  s: { builtin: redirect }\n",
		  .mistakes = { { 3, 23, "programs.p", "unknown key 'port'; known: builtin" },
				{ 4, 3, "programs.q", "'port' is missing" },
				{ 5, 38, "programs.r.port", "must be 1..65535, not 65536" },
				{ 6, 3, "programs.s", "'port' is missing" } } },
		{ .text = PORTS "programs:\n  p: { builtin: pass, priority: 0, chain-call: [pass, dorp] }\n"
				"  q: { object: x.o, sett: {} }\n  r: { object: x.o, set: [a], maps: { m: 1 } }\n"
				"  s: { object: [x.o], entries: { m: [1] }, chain-call: up }\n",
		  .mistakes = { { 3, 33, "programs.p.priority", "must be 1..1000000, not 0" },
				{ 3, 55, "programs.p.chain-call", "unknown action 'dorp' (did you mean 'drop'?)" },
				{ 4, 21, "programs.q", "unknown key 'sett' (did you mean 'set'?)" },
				{ 5, 26, "programs.r.set", "must be a mapping of names" },
				{ 5, 42, "programs.r.maps", "'m' must be a mapping of elements" },
				{ 6, 16, "programs.s.object", "must be a single value" },
				{ 6, 37, "programs.s.entries", "must be a single value" },
				{ 6, 56, "programs.s.chain-call", "unknown action 'up'" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

#define NOTHING(name) name ": { builtin: pass }, "
#define PROGS "programs: { pass: { builtin: pass }, block: { builtin: drop } }\n"

static void attachments(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS PROGS "attach: [pass]\n", .mistakes = { { 3, 9, "attach", "must be a mapping of names" } } },
		{ .text = PORTS PROGS "attach:\n  x: [pass]\n  a: [pas]\n  b: [pass, block]\n  c: { pass: 1 }\n",
		  .mistakes = { { 4, 3, "attach", "unknown port 'x'; known: a, b, c" },
				{ 5, 7, "attach.a", "unknown program 'pas' (did you mean 'pass'?)" },
				{ 7, 6, "attach.c", "must be a list of programs" } } },
		{ .text = PORTS PROGS "attach:\n  a: [[pass]]\n  b: [~]\n  a: [block]\n",
		  .mistakes = { { 4, 7, "attach.a", "must be a single value" },
				{ 5, 7, "attach.b", "has no value" },
				{ 6, 3, "attach", "'a' is given twice; the first stands in line 4" } } },
		{ .text = PORTS "programs: { " NOTHING("a") NOTHING("b") NOTHING("c") NOTHING("d") NOTHING("e")
				NOTHING("f") NOTHING("g") NOTHING("h") NOTHING("i") NOTHING("j") NOTHING("k") "}\n"
				"attach: { a: [a, b, c, d, e, f, g, h, i, j, k] }\n",
		  .mistakes = { { 3, 45, "attach.a", "'k' is one too many: a port takes 10 programs" } } },
		{ .text = PORTS PROGS "attach: { a: [pass, block, pass], b: [pass] }\n",
		  .mistakes = { { 3, 28, "attach.a", "program 'pass' is named twice" } } },
		{ .text = PORTS "attach: { a: [pass] }\n",
		  .mistakes = { { 2, 15, "attach.a", "unknown program 'pass'; there is none" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

static void bridges(void **state)
{
	static const struct bad all[] = {
		{ .text = PORTS "bridges: [a, b]\n", .mistakes = { { 2, 10, "bridges", "must be a mapping of names" } } },
		{ .text = PORTS "bridges:\n  br0: [a, a, x, [b]]\n  br1: [b, a]\n  br2: a\n  '-/-': []\n",
		  .mistakes = { { 3, 12, "bridges.br0", "port 'a' is named twice" },
				{ 3, 15, "bridges.br0", "unknown port 'x'" },
				{ 3, 18, "bridges.br0", "must be a single value" },
				{ 4, 12, "bridges.br1", "port 'a' is in bridge 'br0' already (line 3)" },
				{ 5, 8, "bridges.br2", "must be a list of ports" },
				{ 6, 3, "bridges", "'-/-' is not a valid name" } } },
		{ .text = PORTS "bridges:\n  br0: { ageing: 5ms, entries: 0, port: [a] }\n  br1: { ports: a }\n",
		  .mistakes = { { 3, 3, "bridges.br0", "'ports' is missing" },
				{ 3, 18, "bridges.br0.ageing", "must be 1s.." },
				{ 3, 32, "bridges.br0.entries", "must be 1..1048576, not 0" },
				{ 3, 35, "bridges.br0", "unknown key 'port' (did you mean 'ports'?)" },
				{ 4, 17, "bridges.br1", "must be a list of ports" } } },
	};

	(void)state;
	CHECK_ALL(all);
}

/* ---- sizes ---- */

/* A document of @n lines: "@head", then each of "@before <i>@after". */
static char *many_lines(const char *head, unsigned int n, const char *before, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned int i;

	assert_non_null(out);
	fputs(head, out);
	for (i = 0; i < n; i++)
		fprintf(out, "%s%u%s\n", before, i, after);
	fclose(out);
	return text;
}

static void check_bad_text(char *text, struct expected mistake)
{
	struct bad bad = { .text = text, .mistakes = { mistake } };

	check_bad(&bad);
	free(text);
}

static void too_many(void **state)
{
	(void)state;
	check_bad_text(many_lines("ports:\n", LEAT_PORTS_MAX, "  p", ": { type: sink }"),
		       (struct expected){ LEAT_PORTS_MAX + 1, 3, "ports", "'p1023' is one port too many" });
	check_bad_text(many_lines("ports:\n", LEAT_YAML_CHILDREN_MAX + 1, "  p", ": { type: sink }"),
		       (struct expected){ LEAT_YAML_CHILDREN_MAX + 2, 10, "", "too many values in one mapping" });
	check_bad_text(many_lines("ports:\n", 3000, "  p",
				  ": [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]"),
		       (struct expected){ 2116, 10, "", "too many values: at most 65536" });
}

static void too_many_bridge_ports(void **state)
{
	char *text = many_lines("ports:\n", LEAT_BRIDGE_PORTS_MAX + 1, "  p", ": { type: sink }");
	char *list = many_lines("bridges:\n  br0:\n", LEAT_BRIDGE_PORTS_MAX + 1, "  - p", "");
	char *both = NULL;

	(void)state;
	assert_true(asprintf(&both, "%s%s", text, list) > 0);
	free(text);
	free(list);
	check_bad_text(both, (struct expected){ 1 + LEAT_BRIDGE_PORTS_MAX + 1 + 2 + LEAT_BRIDGE_PORTS_MAX + 1, 5,
						"bridges.br0", "is one too many: a bridge takes 64" });
}

/* Repeated pieces that make parsers slow or deep. They need only end soon, and without a sanitizer's complaint. */
static void hostile_documents_end(void **state)
{
	static const char *const pieces[] = { "[", "{", "- ", "? ", "&a ", "*a ", "!", "\"", "'", "|\n", "a: ",
					      ": ", "#", "%", "\n", "- a\n", "\xef\xbb\xbf", "---\n", "{a: [" };
	const size_t len = LEAT_YAML_SIZE_MAX;
	char *text = malloc(len);
	size_t i, at;

	(void)state;
	assert_non_null(text);
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct leat_diag *diag = leat_diag_create();
		struct leat_config *config;

		for (at = 0; at < len; at++)
			text[at] = pieces[i][at % strlen(pieces[i])];
		assert_int_equal(leat_config_parse(text, len, "t.yaml", diag, &config), -EINVAL);
		assert_true(leat_diag_count(diag) >= 1);
		leat_diag_destroy(diag);
	}
	free(text);
}

/* ---- files ---- */

static void check_file(const char *file, int error, const char *part)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp = NULL;

	assert_int_equal(leat_datapath_load(file, NULL, diag, &dp), error);
	assert_null(dp);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_string_equal(leat_diag_get(diag, 0)->file, file);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, part));
	leat_diag_destroy(diag);
	assert_int_equal(leat_datapath_load(file, NULL, NULL, &dp), error);
}

static void files(void **state)
{
	char name[] = "/tmp/leat-config-XXXXXX";
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	check_file(name, -EINVAL, "the configuration is empty");
	assert_int_equal(ftruncate(fd, LEAT_YAML_SIZE_MAX + 1), 0);
	check_file(name, -EFBIG, "is larger than 1 MiB");
	close(fd);
	if (geteuid()) { /* root may read everything */
		assert_int_equal(chmod(name, 0), 0);
		check_file(name, -EACCES, "cannot be opened");
	}
	unlink(name);
	check_file(name, -ENOENT, "cannot be opened: No such file");
	check_file("/", -EISDIR, "cannot be read: Is a directory");
	check_file("/dev/zero", -EFBIG, "is larger than 1 MiB");
	check_file("/dev/null", -EINVAL, "the configuration is empty");
}

/* ---- what is right ---- */

static const char full[] =
	"workers: 2\n"
	"ports:\n"
	"  gen: { type: pktgen, count: 1000, dst: 02:00:00:00:00:0b }\n"
	"  a: { type: veth, peer: b, queues: 2 }\n"
	"  b: { type: veth, peer: a, queues: 2 }\n"
	"  out: { type: sink }\n"
	"  spare: { type: sink }\n"
	"programs:\n"
	"  to-a: { builtin: redirect, port: a }\n"
	"  bounce: { builtin: reflect }\n"
	"  spare: { builtin: drop-udp-port, port: 5002 }\n"
	"attach: { gen: [to-a], b: bounce, out: [] }\n"
	"bridges:\n"
	"  br0: [a]\n"
	"  br1: { ports: [out, spare], ageing: 1min, entries: 100 }\n"
	"  br2:\n";

static void takes_a_full_one(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_config *config;

	(void)state;
	assert_int_equal(leat_config_parse(full, sizeof(full) - 1, "t.yaml", diag, &config), 0);
	assert_int_equal(leat_diag_count(diag), 0);
	assert_int_equal(config->workers, 2);
	assert_int_equal(config->n_ports, 5);
	assert_string_equal(config->ports[1].name, "a");
	assert_string_equal(config->ports[1].driver->type, "veth");
	assert_int_equal(config->ports[1].pos.line, 4);
	assert_int_equal(config->n_progs, 3);
	assert_string_equal(config->progs[1].builtin->name, "reflect");
	assert_int_equal(config->n_attach, 2);
	assert_int_equal(config->attach[1].port, 2);
	assert_int_equal(config->attach[1].n_progs, 1);
	assert_int_equal(config->attach[1].prog[0], 1);
	assert_int_equal(config->n_bridges, 3);
	assert_int_equal(config->bridges[0].entries, 4096);
	assert_true(config->bridges[0].ageing_ns == UINT64_C(300000000000));
	assert_int_equal(config->bridges[1].entries, 100);
	assert_true(config->bridges[1].ageing_ns == UINT64_C(60000000000));
	assert_int_equal(config->bridges[1].n_ports, 2);
	assert_int_equal(config->bridges[1].ports[1], 4);
	leat_config_free(config);
	leat_diag_destroy(diag);
}

static void loads_and_runs(void **state)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_netdev_stats stats;
	struct leat_datapath *dp;
	struct leat_net *net;
	int tries = 5000;

	(void)state;
	assert_int_equal(leat_datapath_load_text(full, sizeof(full) - 1, "t.yaml", NULL, diag, &dp), 0);
	net = leat_datapath_net(dp);
	assert_string_equal(leat_xdp_prog_name(leat_datapath_prog(dp, 2)), "spare");
	assert_null(leat_datapath_prog(dp, 3));
	assert_string_equal(leat_bridge_name(leat_datapath_bridge(dp, 2)), "br2");
	assert_null(leat_datapath_bridge(dp, 3));
	assert_int_equal(leat_datapath_start(dp, diag), 0);
	while (!leat_net_finished(net) && tries--)
		usleep(1000);
	assert_true(leat_net_finished(net));
	leat_datapath_stop(dp);
	assert_int_equal(leat_net_outstanding(net), 0);
	leat_netdev_stats(leat_netdev_find(net, "gen"), &stats);
	assert_int_equal(stats.rx_packets, 1000);
	assert_int_equal(leat_diag_count(diag), 0);
	leat_datapath_destroy(dp);
	leat_diag_destroy(diag);
}

/* Mistakes that only the drivers and programs find, with the lines of the objects. */
static void load_mistakes_have_lines(void **state)
{
	static const char text[] = "ports:\n"
				   "  a: { type: veth, peer: b }\n"
				   "  b: { type: veth, peer: nobody }\n"
				   "  c: { type: sink }\n";
	static const char prog_text[] = "ports: { c: { type: sink } }\n"
					"programs:\n"
					"  p: { builtin: redirect, port: nowhere }\n"
					"  q: { builtin: redirect, port: elsewhere }\n";
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp = NULL;

	(void)state;
	assert_int_equal(leat_datapath_load_text(text, sizeof(text) - 1, "t.yaml", NULL, diag, &dp), -EINVAL);
	assert_null(dp);
	assert_in_range(leat_diag_count(diag), 1, 2);
	assert_in_range(leat_diag_get(diag, 0)->line, 2, 3);
	leat_diag_destroy(diag);
	diag = leat_diag_create();
	assert_int_equal(leat_datapath_load_text(prog_text, sizeof(prog_text) - 1, "t.yaml", NULL, diag, &dp), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 2);
	assert_int_equal(leat_diag_get(diag, 0)->line, 3);
	assert_string_equal(leat_diag_get(diag, 1)->path, "programs.q.port");
	assert_non_null(strstr(leat_diag_get(diag, 1)->message, "elsewhere"));
	leat_diag_destroy(diag);
}

/* One run tells what is wrong with ports, links, programs and objects. */
static void all_steps_are_tried(void **state)
{
	static const char text[] = "ports:\n"
				   "  a: { type: tap, ifname: leat0, netns: n }\n"
				   "  b: { type: tap, ifname: leat0, netns: /run/netns/n }\n"
				   "  c: { type: tap, ifname: leat0 }\n"
				   "  d: { type: veth, peer: c }\n"
				   "programs:\n"
				   "  p: { object: nowhere.o }\n"
				   "  q: { builtin: redirect, port: b }\n"
				   "  r: { object: elsewhere.o }\n";
	static const struct expected mistakes[] = {
		{ 3, 3, "ports.b", "interface 'leat0' is that of port 'a' already" },
		{ 5, 3, "ports.d", "peer: port 'c' is a tap port, not veth" },
		{ 7, 16, "programs.p", "there is no object 'nowhere.o' in: ., " },
		{ 9, 16, "programs.r", "there is no object 'elsewhere.o' in: ., " },
		{ 0, 0, NULL, NULL },
	};
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp = NULL;

	(void)state;
	assert_int_equal(leat_datapath_load_text(text, sizeof(text) - 1, "t.yaml", NULL, diag, &dp), -EINVAL);
	if (!as_expected(mistakes, diag)) {
		print_found(text, diag);
		fail_msg("not the mistakes that were expected");
	}
	leat_diag_destroy(diag);
}

/* ---- missing memory ---- */

static void load_without_memory(void **state)
{
	struct leat_datapath *dp;
	unsigned long nth;
	bool reached;
	int rc;

	(void)state;
	for (nth = 1, reached = true; reached; nth++) {
		struct leat_diag *diag = leat_diag_create();

		dp = NULL;
		leat_heap_fail_nth(nth);
		rc = leat_datapath_load_text(full, sizeof(full) - 1, "t.yaml", NULL, diag, &dp);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		if (rc != (reached ? -ENOMEM : 0))
			fail_msg("allocation %lu: returned %d", nth, rc);
		leat_datapath_destroy(dp);
		leat_diag_destroy(diag);
	}
	assert_true(nth > 50);
}

static void start_without_memory(void **state)
{
	struct leat_datapath *dp;
	unsigned long nth;
	bool reached;
	int rc;

	(void)state;
	for (nth = 1, reached = true; reached && nth < 1000; nth++) {
		struct leat_diag *diag = leat_diag_create();

		assert_int_equal(leat_datapath_load_text(full, sizeof(full) - 1, "t.yaml", NULL, diag, &dp), 0);
		leat_heap_fail_nth(nth);
		rc = leat_datapath_start(dp, diag);
		if (!rc)
			leat_datapath_stop(dp);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		/* 0: it was the allocation of a worker, which has other means */
		if (rc && (rc != -ENOMEM || !reached))
			fail_msg("allocation %lu: returned %d", nth, rc);
		assert_int_equal(leat_net_outstanding(leat_datapath_net(dp)), 0);
		leat_datapath_destroy(dp);
		leat_diag_destroy(diag);
	}
}

static void mistakes_without_memory(void **state)
{
	static const char text[] = "prts: {}\nports: { a: { type: veth, mtu: 1, x: y, mtu: 2 }, b: { type: nix } }\n";
	struct leat_config *config;
	unsigned long nth;
	bool reached;
	int rc;

	(void)state;
	for (nth = 1, reached = true; reached; nth++) {
		struct leat_diag *diag = leat_diag_create();

		leat_heap_fail_nth(nth);
		rc = leat_config_parse(text, sizeof(text) - 1, "t.yaml", diag, &config);
		reached = leat_heap_failed();
		leat_heap_fail_nth(0);
		assert_true(rc == -EINVAL || (reached && rc == -ENOMEM));
		leat_diag_destroy(diag);
	}
	assert_int_equal(rc, -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_no_configuration),
		cmocka_unit_test(is_no_yaml),
		cmocka_unit_test(is_refused_yaml),
		cmocka_unit_test(keys_and_workers),
		cmocka_unit_test(ports),
		cmocka_unit_test(programs),
		cmocka_unit_test(attachments),
		cmocka_unit_test(bridges),
		cmocka_unit_test(too_many),
		cmocka_unit_test(too_many_bridge_ports),
		cmocka_unit_test(hostile_documents_end),
		cmocka_unit_test(files),
		cmocka_unit_test(engines),
		cmocka_unit_test(takes_a_full_one),
		cmocka_unit_test(loads_and_runs),
		cmocka_unit_test(load_mistakes_have_lines),
		cmocka_unit_test(all_steps_are_tried),
		cmocka_unit_test(load_without_memory),
		cmocka_unit_test(start_without_memory),
		cmocka_unit_test(mistakes_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
