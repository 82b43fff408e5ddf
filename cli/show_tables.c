/* SPDX-License-Identifier: BSD-3-Clause */
/* show_tables.c: replies of the control socket as tables for people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"

/* ---- members of a reply; what is not there is 0 or empty ---- */

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

static const json_t *list(const json_t *object, const char *name)
{
	return json_object_get(object, name);
}

/* Several numbers, one cell each; NULL at the end. */
static void add_numbers(struct show_grid *grid, const json_t *object, const char *const *names)
{
	for (; *names; names++)
		show_grid_number(grid, number(object, *names));
}

/* "a,b", or "-". */
static void add_names(struct show_grid *grid, const json_t *names)
{
	char all[512] = "-";
	const json_t *name;
	size_t i, len = 0;

	json_array_foreach(names, i, name) {
		if (len < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i ? "," : "",
						json_string_value(name));
	}
	show_grid_add(grid, all);
}

static void add_or_dash(struct show_grid *grid, const char *word)
{
	show_grid_add(grid, *word ? word : "-");
}

static const char *bytes(char buf[UNIT_SIZE], const json_t *object, const char *name)
{
	return format_bytes(buf, (double)number(object, name));
}

/* ---- stats ---- */

static void show_bridges(const json_t *bridges)
{
	static const char *const heads[] = { "bridge", ">forwarded", ">flooded", ">learned",
					     ">moved", ">evicted",   NULL };
	static const char *const names[] = { "forwarded", "flooded", "learned", "moved", "evicted", NULL };
	struct show_grid grid;
	const json_t *bridge;
	size_t i;

	if (!json_array_size(bridges))
		return;
	show_grid_init(&grid, heads);
	json_array_foreach(bridges, i, bridge) {
		show_grid_add(&grid, text(bridge, "name"));
		add_numbers(&grid, bridge, names);
	}
	putchar('\n');
	show_grid_print(&grid);
}

static void show_memory(const json_t *memory)
{
	uint64_t alloc = number(memory, "alloc"), back = number(memory, "direct") + number(memory, "remote");
	char committed[UNIT_SIZE], share[UNIT_SIZE];

	bytes(committed, memory, "committed");
	format_share(share, (double)(back < alloc ? back : alloc), (double)alloc);
	printf("\nmemory: %" PRIu64 " pools, %s committed, %s recycled, %" PRIu64 " granules out",
	       number(memory, "pools"), committed, share, number(memory, "outstanding"));
	if (number(memory, "alloc_failed"))
		printf(", %" PRIu64 " allocations refused", number(memory, "alloc_failed"));
	putchar('\n');
}

void show_stats(const json_t *reply, const char *name)
{
	static const char *const heads[] = { "port",	   "type",	"state",    ">rx packets", ">rx bytes",
					     ">tx packets", ">tx bytes", ">dropped", NULL };
	static const char *const names[] = { "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "drops", NULL };
	struct show_grid grid;
	const json_t *port;
	size_t i;

	(void)name;
	fputs("leat ", stdout);
	show_print(text(reply, "version"));
	fputs("  ", stdout);
	show_print(text(reply, "file"));
	printf("  pid %" PRIu64 "  %" PRIu64 " worker%s\n\n", number(reply, "pid"), number(reply, "workers"),
	       number(reply, "workers") == 1 ? "" : "s");
	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "ports"), i, port) {
		show_grid_add(&grid, text(port, "name"));
		show_grid_add(&grid, text(port, "type"));
		show_grid_add(&grid, text(port, "state"));
		add_numbers(&grid, port, names);
	}
	show_grid_print(&grid);
	show_bridges(list(reply, "bridges"));
	show_memory(json_object_get(reply, "memory"));
}

/* ---- ports ---- */

static void show_queues(const json_t *port)
{
	static const char *const heads[] = { "side",   ">queue", ">worker",  ">packets",
					     ">bytes", ">polls", ">dropped", NULL };
	static const struct {
		const char *side, *list;
	} sides[] = { { "rx", "rx_queues" }, { "tx", "tx_queues" } };
	struct show_grid grid;
	const json_t *queue;
	size_t s, i;

	show_grid_init(&grid, heads);
	for (s = 0; s < sizeof(sides) / sizeof(sides[0]); s++) {
		json_array_foreach(list(port, sides[s].list), i, queue) {
			show_grid_add(&grid, sides[s].side);
			show_grid_number(&grid, number(queue, "queue"));
			if (json_object_get(queue, "worker"))
				show_grid_number(&grid, number(queue, "worker"));
			else
				show_grid_add(&grid, "-");
			show_grid_number(&grid, number(queue, "packets"));
			show_grid_number(&grid, number(queue, "bytes"));
			if (json_object_get(queue, "polls"))
				show_grid_number(&grid, number(queue, "polls"));
			else
				show_grid_add(&grid, "-");
			show_grid_number(&grid, number(queue, "drops"));
		}
	}
	putchar('\n');
	show_grid_print(&grid);
}

void show_ports(const json_t *reply, const char *name)
{
	static const char *const heads[] = { ">number", "port",	  "type", "state",    ">mtu",
					     "address", "bridge", ">rxq", ">txq", "programs", NULL };
	struct show_grid grid;
	const json_t *port;
	size_t i;

	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "ports"), i, port) {
		show_grid_number(&grid, number(port, "index"));
		show_grid_add(&grid, text(port, "name"));
		show_grid_add(&grid, text(port, "type"));
		show_grid_add(&grid, text(port, "state"));
		show_grid_number(&grid, number(port, "mtu"));
		add_or_dash(&grid, text(port, "mac"));
		add_or_dash(&grid, text(port, "bridge"));
		show_grid_number(&grid, json_array_size(list(port, "rx_queues")));
		show_grid_number(&grid, json_array_size(list(port, "tx_queues")));
		add_names(&grid, list(port, "programs"));
	}
	show_grid_print(&grid);
	if (name)
		show_queues(json_array_get(list(reply, "ports"), 0));
}

/* ---- packet memory ---- */

void show_pools(const json_t *reply, const char *name)
{
	static const char *const heads[] = { "pool",    ">limit", ">committed", ">granules",  ">direct", ">remote",
					     ">out",    ">held",  ">returning", ">device",    ">refused", NULL };
	static const char *const names[] = { "alloc", "direct",    "remote", "outstanding",
					     "held",  "returning", "device", "alloc_failed", NULL };
	char limit[UNIT_SIZE], committed[UNIT_SIZE];
	struct show_grid grid;
	const json_t *pool;
	size_t i;

	(void)name;
	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "pools"), i, pool) {
		show_grid_add(&grid, text(pool, "name"));
		show_grid_add(&grid, bytes(limit, pool, "limit"));
		show_grid_add(&grid, bytes(committed, pool, "committed"));
		add_numbers(&grid, pool, names);
	}
	show_grid_print(&grid);
}

/* ---- programs ---- */

static uint64_t sum_traps(const json_t *prog)
{
	const json_t *trap;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(list(prog, "traps"), i, trap)
		sum += number(trap, "count");
	return sum;
}

static void show_traps(const json_t *prog)
{
	static const char *const heads[] = { ">instruction", ">times", "reason", "source", NULL };
	struct show_grid grid;
	const json_t *trap;
	size_t i;

	if (!json_array_size(list(prog, "traps")))
		return;
	show_grid_init(&grid, heads);
	json_array_foreach(list(prog, "traps"), i, trap) {
		show_grid_number(&grid, number(trap, "instruction"));
		show_grid_number(&grid, number(trap, "count"));
		show_grid_add(&grid, text(trap, "reason"));
		add_or_dash(&grid, text(trap, "source"));
	}
	puts("\ntraps, by which it was ended:");
	show_grid_print(&grid);
}

static void show_object(const json_t *prog)
{
	if (!*text(prog, "object"))
		return;
	putchar('\n');
	show_print(text(prog, "prog"));
	fputs(" of ", stdout);
	show_print(text(prog, "object"));
	printf(": %" PRIu64 " instructions, ", number(prog, "instructions"));
	if (number(prog, "code_bytes"))
		printf("compiled to %" PRIu64 " bytes\n", number(prog, "code_bytes"));
	else
		puts("interpreted");
}

void show_progs(const json_t *reply, const char *name)
{
	static const char *const heads[] = { "program", ">id",	     "source", "ports",	    ">runs",  ">pass",
					     ">tx",	">redirect", ">drop",  ">aborted", ">traps", NULL };
	static const char *const verdicts[] = { "pass", "tx", "redirect", "drop", "aborted", NULL };
	struct show_grid grid;
	const json_t *prog;
	size_t i;

	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "programs"), i, prog) {
		show_grid_add(&grid, text(prog, "name"));
		show_grid_number(&grid, number(prog, "id"));
		show_grid_add(&grid, *text(prog, "object") ? text(prog, "object") : "built-in");
		add_names(&grid, list(prog, "ports"));
		show_grid_number(&grid, number(prog, "runs"));
		add_numbers(&grid, json_object_get(prog, "verdicts"), verdicts);
		show_grid_number(&grid, sum_traps(prog));
	}
	show_grid_print(&grid);
	prog = json_array_get(list(reply, "programs"), 0);
	if (name && prog) {
		show_object(prog);
		show_traps(prog);
	}
}

/* ---- maps ---- */

void show_maps(const json_t *reply, const char *name)
{
	static const char *const heads[] = { "map", "program", "type", ">key", ">value", ">entries", ">lost", NULL };
	struct show_grid grid;
	const json_t *map;
	bool global;
	size_t i;

	(void)name;
	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "maps"), i, map) {
		show_grid_add(&grid, text(map, "name"));
		show_grid_add(&grid, text(map, "program"));
		global = json_is_true(json_object_get(map, "global_data"));
		show_grid_add(&grid, global ? "global data" : text(map, "type"));
		show_grid_number(&grid, number(map, "key_size"));
		show_grid_number(&grid, number(map, "value_size"));
		show_grid_number(&grid, number(map, "max_entries"));
		if (json_object_get(map, "lost"))
			show_grid_number(&grid, number(map, "lost"));
		else
			show_grid_add(&grid, "-");
	}
	show_grid_print(&grid);
}

/* Keys and values have no byte in them that a terminal takes for a command. */
static void print_json(const json_t *value)
{
	char *out = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	fputs(out ? out : "?", stdout);
	free(out);
}

/* "cpu0 2, cpu1 3, sum 5". */
static void print_each(const json_t *values)
{
	const json_t *value;
	bool numeric = true;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(values, i, value) {
		printf("%scpu%zu ", i ? ", " : "", i);
		print_json(value);
		numeric = numeric && json_is_integer(value);
		sum += (uint64_t)json_integer_value(value);
	}
	if (numeric && json_array_size(values) > 1)
		printf(", sum %" PRId64, (int64_t)sum);
}

void show_map(const json_t *reply, const char *name)
{
	const json_t *map = json_object_get(reply, "map"), *element;
	size_t i, n = json_array_size(list(reply, "elements"));

	(void)name;
	show_print(text(map, "name"));
	fputs(" (", stdout);
	show_print(text(map, "type"));
	fputs(" of ", stdout);
	show_print(text(map, "program"));
	printf(", %zu element%s)\n", n, n == 1 ? "" : "s");
	json_array_foreach(list(reply, "elements"), i, element) {
		fputs("  ", stdout);
		print_json(json_object_get(element, "key"));
		fputs(": ", stdout);
		if (json_object_get(element, "values"))
			print_each(json_object_get(element, "values"));
		else
			print_json(json_object_get(element, "value"));
		putchar('\n');
	}
}

/* ---- drops ---- */

void show_drops(const json_t *reply, const char *name)
{
	static const char *const heads[] = { "port", "side", ">queue", ">dropped", "reason", "that is", NULL };
	struct show_grid grid;
	const json_t *drop;
	size_t i;

	(void)name;
	show_grid_init(&grid, heads);
	json_array_foreach(list(reply, "drops"), i, drop) {
		show_grid_add(&grid, text(drop, "port"));
		show_grid_add(&grid, text(drop, "side"));
		show_grid_number(&grid, number(drop, "queue"));
		show_grid_number(&grid, number(drop, "count"));
		show_grid_add(&grid, text(drop, "reason"));
		show_grid_add(&grid, text(drop, "text"));
	}
	show_grid_print(&grid);
}
