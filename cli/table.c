/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c: what a running datapath does, at a glance: rates since the last look (table_draw) and totals of a run
 * (table_print_totals). Control thread; it only reads counters.
 *
 * A table is written to memory first and to the terminal in one piece, cut to its height, so that it does not flicker
 * or scroll. Only two escape sequences are used: home, and clear to the end (of line or screen).
 */
#include "cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PROGS_MAX 4096u

/* Counters of all pools together. */
struct pool_sums {
	unsigned int n;
	uint64_t committed, alloc, direct, remote, failed;
};

/* All counters at one moment. */
struct snapshot {
	double time; /* seconds */
	unsigned int n_ports, n_progs;
	struct leat_netdev_stats *ports; /* by number of the port */
	struct leat_xdp_prog_stats *progs;
	struct pool_sums pools;
};

struct table {
	struct leat_datapath *dp;
	const char *title;
	struct table_style style;
	double begun;
	struct snapshot snapshot[2]; /* the last one and the new one, by turns */
	unsigned int now;            /* which is the new one */
};

/* ---- counters ---- */

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void take_port(struct leat_netdev *dev, void *arg)
{
	struct snapshot *s = arg;

	if (dev->index < s->n_ports)
		leat_netdev_stats(dev, &s->ports[dev->index]);
}

static void add_pool(const struct leat_page_pool_stats *stats, void *arg)
{
	struct pool_sums *sums = arg;

	sums->n++;
	sums->committed += stats->committed;
	sums->alloc += stats->alloc;
	sums->direct += stats->direct;
	sums->remote += stats->remote;
	sums->failed += stats->alloc_failed;
}

static void take_snapshot(struct leat_datapath *dp, struct snapshot *s)
{
	struct leat_net *net = leat_datapath_net(dp);
	struct pool_sums none = { 0 };
	unsigned int i;

	s->time = now_seconds();
	leat_net_for_each_port(net, take_port, s);
	for (i = 0; i < s->n_progs; i++)
		leat_xdp_prog_stats(leat_datapath_prog(dp, i), &s->progs[i]);
	s->pools = none;
	leat_net_for_each_pool(net, add_pool, &s->pools);
}

static void find_highest(struct leat_netdev *dev, void *arg)
{
	unsigned int *highest = arg;

	if (dev->index > *highest)
		*highest = dev->index;
}

static bool snapshot_init(struct leat_datapath *dp, struct snapshot *s)
{
	unsigned int highest = 0;

	leat_net_for_each_port(leat_datapath_net(dp), find_highest, &highest);
	while (s->n_progs < PROGS_MAX && leat_datapath_prog(dp, s->n_progs))
		s->n_progs++;
	s->n_ports = highest + 1;
	s->ports = calloc(s->n_ports, sizeof(*s->ports));
	s->progs = calloc(s->n_progs + 1, sizeof(*s->progs));
	return s->ports && s->progs;
}

struct table *table_create(struct leat_datapath *dp, const char *title, struct table_style style)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->dp = dp;
	table->title = title;
	table->style = style;
	if (!snapshot_init(dp, &table->snapshot[0]) || !snapshot_init(dp, &table->snapshot[1])) {
		table_destroy(table);
		return NULL;
	}
	take_snapshot(dp, &table->snapshot[0]);
	table->begun = table->snapshot[0].time;
	return table;
}

void table_destroy(struct table *table)
{
	int i;

	if (!table)
		return;
	for (i = 0; i < 2; i++) {
		free(table->snapshot[i].ports);
		free(table->snapshot[i].progs);
	}
	free(table);
}

static uint64_t sum_drops(const struct leat_netdev_stats *stats)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < LEAT_DROP_MAX; i++)
		sum += stats->drops[i];
	return sum;
}

/* ---- drawing ---- */

/* One drawing on its way. */
struct sheet {
	FILE *out;
	bool colour;
	const struct snapshot *was, *is;
	double seconds; /* between the two */
	int name_width;
};

static void heading(struct sheet *s, const char *fmt, ...) LEAT_PRINTF(2, 3);

static void heading(struct sheet *s, const char *fmt, ...)
{
	va_list args;

	fputs(s->colour ? "\033[1m" : "", s->out);
	va_start(args, fmt);
	vfprintf(s->out, fmt, args);
	va_end(args);
	fputs(s->colour ? "\033[0m\n" : "\n", s->out);
}

/* One right-aligned cell with a rate, or "-" where nothing moves. */
static void rate_cell(struct sheet *s, int width, double change, const char *unit)
{
	char buf[UNIT_SIZE];
	double rate = s->seconds > 0 ? change / s->seconds : 0;

	fprintf(s->out, "  %*s", width, change > 0 ? format_unit(buf, rate, unit) : "-");
}

static void drop_cell(struct sheet *s, int width, double change)
{
	bool marked = s->colour && change > 0;

	fputs(marked ? "\033[33m" : "", s->out);
	rate_cell(s, width, change, "/s");
	fputs(marked ? "\033[0m" : "", s->out);
}

static const char *port_state(const struct leat_netdev *dev)
{
	uint32_t state = __atomic_load_n(&dev->state, __ATOMIC_RELAXED);

	if (state & LEAT_NETDEV_FAILED)
		return "failed";
	if (state & LEAT_NETDEV_FINISHED)
		return "finished";
	return state & LEAT_NETDEV_UP ? "up" : "down";
}

static void draw_port(struct leat_netdev *dev, void *arg)
{
	struct sheet *s = arg;
	const struct leat_netdev_stats *was, *is;

	if (dev->index >= s->is->n_ports)
		return;
	was = &s->was->ports[dev->index];
	is = &s->is->ports[dev->index];
	fprintf(s->out, "%-*s  %-8s  %-8s", s->name_width, dev->name, dev->driver, port_state(dev));
	rate_cell(s, 9, (double)(is->rx_packets - was->rx_packets), "pps");
	rate_cell(s, 11, 8 * (double)(is->rx_bytes - was->rx_bytes), "bit/s");
	rate_cell(s, 9, (double)(is->tx_packets - was->tx_packets), "pps");
	rate_cell(s, 11, 8 * (double)(is->tx_bytes - was->tx_bytes), "bit/s");
	drop_cell(s, 9, (double)(sum_drops(is) - sum_drops(was)));
	fputc('\n', s->out);
}

static void count_cell(struct sheet *s, int width, uint64_t count)
{
	char buf[UNIT_SIZE];

	fprintf(s->out, "  %*s", width, count ? format_unit(buf, (double)count, "") : "-");
}

static const uint32_t verdict_order[] = {
	LEAT_XDP_PASS, LEAT_XDP_TX, LEAT_XDP_REDIRECT, LEAT_XDP_DROP, LEAT_XDP_ABORTED,
};

#define N_VERDICTS (sizeof(verdict_order) / sizeof(verdict_order[0]))

static void verdict_headings(FILE *out, int width)
{
	size_t i;

	for (i = 0; i < N_VERDICTS; i++)
		fprintf(out, "  %*s", width, leat_xdp_action_name(verdict_order[i]));
}

static void draw_progs(struct sheet *s, struct leat_datapath *dp)
{
	unsigned int i;
	size_t v;

	if (!s->is->n_progs)
		return;
	fputs(s->colour ? "\n\033[1m" : "\n", s->out);
	fprintf(s->out, "%-*s  %9s  %6s", s->name_width, "program", "runs/s", "total:");
	verdict_headings(s->out, 9);
	fputs(s->colour ? "\033[0m\n" : "\n", s->out);
	for (i = 0; i < s->is->n_progs; i++) {
		fprintf(s->out, "%-*s", s->name_width, leat_xdp_prog_name(leat_datapath_prog(dp, i)));
		rate_cell(s, 9, (double)(s->is->progs[i].runs - s->was->progs[i].runs), "/s");
		fprintf(s->out, "  %6s", "");
		for (v = 0; v < N_VERDICTS; v++)
			count_cell(s, 9, s->is->progs[i].verdict[verdict_order[v]]);
		fputc('\n', s->out);
	}
}

static void draw_pools(struct sheet *s)
{
	const struct pool_sums *was = &s->was->pools, *is = &s->is->pools;
	uint64_t alloc = is->alloc - was->alloc, direct = is->direct - was->direct, remote = is->remote - was->remote;
	uint64_t back = direct + remote < alloc ? direct + remote : alloc;
	char bytes[UNIT_SIZE], share[UNIT_SIZE], far[UNIT_SIZE], label[UNIT_SIZE];

	fputc('\n', s->out);
	heading(s, "%-*s  %9s  %9s  %9s", s->name_width, "memory", "committed", "alloc/s", "recycled");
	snprintf(label, sizeof(label), "%u pools", is->n);
	fprintf(s->out, "%-*s  %9s", s->name_width, label, format_bytes(bytes, (double)is->committed));
	rate_cell(s, 9, (double)alloc, "/s");
	fprintf(s->out, "  %9s", format_share(share, (double)back, (double)alloc));
	if (remote)
		fprintf(s->out, "  (%s of it by another worker)",
			format_share(far, (double)remote, (double)(direct + remote)));
	fputc('\n', s->out);
}

static void widen(struct leat_netdev *dev, void *arg)
{
	int *width = arg, len = (int)strlen(dev->name);

	if (len > *width)
		*width = len;
}

static int name_width(struct leat_datapath *dp)
{
	struct leat_xdp_prog *prog;
	int width = 8, len;
	unsigned int i;

	leat_net_for_each_port(leat_datapath_net(dp), widen, &width);
	for (i = 0; (prog = leat_datapath_prog(dp, i)); i++) {
		len = (int)strlen(leat_xdp_prog_name(prog));
		width = len > width ? len : width;
	}
	return width;
}

static void draw_sheet(struct sheet *s, const struct table *table, const char *note)
{
	struct leat_net *net = leat_datapath_net(table->dp);
	unsigned int up = (unsigned int)(s->is->time - table->begun + 0.5), workers = leat_net_workers(net);

	heading(s, "leat  %s  %02u:%02u:%02u  %u worker%s", table->title, up / 3600, up / 60 % 60, up % 60, workers,
		workers == 1 ? "" : "s");
	fputc('\n', s->out);
	heading(s, "%-*s  %-8s  %-8s  %9s  %11s  %9s  %11s  %9s", s->name_width, "port", "type", "state", "rx", "",
		"tx", "", "dropped");
	leat_net_for_each_port(net, draw_port, s);
	draw_progs(s, table->dp);
	draw_pools(s);
	if (note && *note)
		fprintf(s->out, "\n%s", note);
}

/* Lines that fit, or a number that is never reached. */
static unsigned int terminal_height(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return UINT32_MAX;
	return size.ws_row;
}

/* Writes @text over what was on the screen, cut to its height. */
static void put_in_place(const char *text)
{
	unsigned int left = terminal_height() - 1;
	const char *end;

	fputs("\033[H", stdout);
	for (; (end = strchr(text, '\n')) && left; text = end + 1, left--)
		printf("%.*s\033[K\n", (int)(end - text), text);
	fputs("\033[J", stdout);
}

bool table_draw(struct table *table, const char *note)
{
	struct snapshot *was = &table->snapshot[table->now], *is = &table->snapshot[!table->now];
	struct sheet s = { .colour = table->style.colour, .was = was, .is = is, .name_width = name_width(table->dp) };
	char *text = NULL;
	size_t size;

	take_snapshot(table->dp, is);
	table->now = !table->now;
	s.seconds = is->time - was->time;
	s.out = open_memstream(&text, &size);
	if (!s.out)
		return true; /* no memory for this table: the next one may do */
	draw_sheet(&s, table, note);
	if (!fclose(s.out)) {
		if (table->style.in_place)
			put_in_place(text);
		else
			printf("%s\n", text);
	}
	free(text);
	return output_flush();
}

/* ---- totals ---- */

static void print_port(struct leat_netdev *dev, void *arg)
{
	struct leat_netdev_stats stats;
	const int *width = arg;
	unsigned int i;

	leat_netdev_stats(dev, &stats);
	printf("%-*s  %-8s  %14" PRIu64 "  %16" PRIu64 "  %14" PRIu64 "  %16" PRIu64 "\n", *width, dev->name, dev->driver,
	       stats.rx_packets, stats.rx_bytes, stats.tx_packets, stats.tx_bytes);
	if (__atomic_load_n(&dev->state, __ATOMIC_RELAXED) & LEAT_NETDEV_FAILED)
		printf("%-*s  failed    during the run: see the messages\n", *width, "");
	for (i = 0; i < LEAT_DROP_MAX; i++)
		if (stats.drops[i])
			printf("%-*s  dropped   %14" PRIu64 "  %s: %s\n", *width, "", stats.drops[i], leat_drop_name(i),
			       leat_drop_text(i));
}

static void print_progs(struct leat_datapath *dp, int width)
{
	struct leat_xdp_prog_stats stats;
	struct leat_xdp_prog *prog;
	unsigned int i;
	size_t v;

	for (i = 0; (prog = leat_datapath_prog(dp, i)); i++) {
		if (!i) {
			printf("\n%-*s  %14s", width, "program", "runs");
			verdict_headings(stdout, 14);
			putchar('\n');
		}
		leat_xdp_prog_stats(prog, &stats);
		printf("%-*s  %14" PRIu64, width, leat_xdp_prog_name(prog), stats.runs);
		for (v = 0; v < N_VERDICTS; v++)
			printf("  %14" PRIu64, stats.verdict[verdict_order[v]]);
		putchar('\n');
	}
}

void print_trap(FILE *out, const struct leat_bpf_prog *prog, const struct leat_bpf_trap *trap)
{
	fprintf(out, "trap: program %s, instruction %u%s%s%s: %s, %" PRIu64 " time%s\n", leat_bpf_prog_name(prog),
		trap->insn, trap->source ? " (" : "", trap->source ? trap->source : "", trap->source ? ")" : "",
		trap->reason, trap->count, trap->count == 1 ? "" : "s");
}

/* Why the programs of an object were ended, line by line. */
static void print_traps(struct leat_bpf_object *obj)
{
	struct leat_bpf_prog *prog;
	struct leat_bpf_trap trap;
	unsigned int p, i;

	for (p = 0; (prog = leat_bpf_object_prog_get(obj, p)); p++)
		for (i = 0; leat_bpf_prog_trap(prog, i, &trap); i++)
			print_trap(stdout, prog, &trap);
}

static void print_bridges(struct leat_datapath *dp, int width)
{
	struct leat_bridge_stats stats;
	struct leat_bridge *bridge;
	unsigned int i;

	for (i = 0; (bridge = leat_datapath_bridge(dp, i)); i++) {
		if (!i)
			printf("\n%-*s  %14s  %14s  %14s  %14s  %14s\n", width, "bridge", "forwarded", "flooded", "learned",
			       "moved", "evicted");
		leat_bridge_stats(bridge, &stats);
		printf("%-*s  %14" PRIu64 "  %14" PRIu64 "  %14" PRIu64 "  %14" PRIu64 "  %14" PRIu64 "\n", width,
		       leat_bridge_name(bridge), stats.forwarded, stats.flooded, stats.learned, stats.moved,
		       stats.evicted);
	}
}

static void format_pool(const struct leat_page_pool_stats *stats, void *arg)
{
	char direct[UNIT_SIZE], remote[UNIT_SIZE], bytes[UNIT_SIZE];
	FILE *out = arg;

	if (!stats->alloc && !stats->alloc_failed)
		return;
	fprintf(out, "%-20s  %14" PRIu64 "  %11s  %11s  %11s", stats->name, stats->alloc,
		format_share(direct, (double)stats->direct, (double)stats->alloc),
		format_share(remote, (double)stats->remote, (double)stats->alloc),
		format_bytes(bytes, (double)stats->committed));
	if (stats->alloc_failed)
		fprintf(out, "  (%" PRIu64 " refused)", stats->alloc_failed);
	fputc('\n', out);
}

char *table_format_pools(struct leat_datapath *dp)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%-20s  %14s  %11s  %11s  %11s\n", "pool", "granules", "direct", "remote", "committed");
	leat_net_for_each_pool(leat_datapath_net(dp), format_pool, out);
	fclose(out);
	return text;
}

void table_print_totals(struct leat_datapath *dp, double seconds, const char *pools)
{
	struct leat_net *net = leat_datapath_net(dp);
	struct leat_bpf_object *obj;
	int width = name_width(dp);
	unsigned int i;

	printf("\ntotals after %.1f s\n\n", seconds);
	printf("%-*s  %-8s  %14s  %16s  %14s  %16s\n", width, "port", "type", "rx packets", "rx bytes", "tx packets",
	       "tx bytes");
	leat_net_for_each_port(net, print_port, &width);
	print_progs(dp, width);
	for (i = 0; (obj = leat_datapath_object(dp, i)); i++)
		print_traps(obj);
	print_bridges(dp, width);
	printf("\n%s\n", pools ? pools : "");
}
