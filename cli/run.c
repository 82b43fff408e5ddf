/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c: `leat run`: loads a configuration, runs the datapath in the foreground, and says what happened.
 *
 * The main thread is the library's control thread; it sleeps in poll() on a signalfd and on the control socket, and wakes
 * for the table, for the end of the run, and 20 times a second to see whether the sources have finished (only if there
 * are any). SIGINT and
 * SIGTERM are blocked before the workers start, so that only the signalfd sees them; the first one gives them back
 * their deadly meaning, so that a second one ends the process at once.
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <leat/account.h>
#include <leat/control.h>
#include <leat/param.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
/* How often finished sources are looked for. */
#define FINISH_CHECK_NS (50 * NSEC_PER_MSEC)
/* Messages kept while a table owns the terminal, and how many of them stand under it. */
#define NOTES_KEPT 64u
#define NOTES_SHOWN 3u
#define NOTE_SIZE 160u

const char run_help[] =
	"usage: leat run FILE [--check] [--watch[=SECONDS]] [--duration TIME] [--expect-traffic]\n"
	"\n"
	"Runs the datapath that FILE describes (leat.yaml(5)) in the foreground, until SIGINT or SIGTERM (a second one\n"
	"forces the exit), until the time is over, or until every source of packets has finished. Then prints totals.\n"
	"Meanwhile leat stats, port, pool, prog list, map and drops show what it does, through its control socket.\n"
	"\n"
	"options:\n"
	"  -c, --check            only check FILE; nothing of the system is touched\n"
	"  -w, --watch[=SECONDS]  show a live table, every second or as often as said\n"
	"  -d, --duration TIME    end after TIME (10s, 500ms, 2min; a bare number is seconds)\n"
	"      --expect-traffic   it is an error if no packet reached an end\n"
	"  -h, --help             show this text\n"
	"\n"
	"exit codes (the highest that applies):\n"
	"  0  all is well\n"
	"  1  FILE has mistakes, or the datapath could not start\n"
	"  2  the command line is wrong\n"
	"  3  --expect-traffic: nothing was received, or all of it was dropped\n"
	"  4  a port failed during the run (its file is corrupt or cannot be written, its interface is gone)\n"
	"  5  packet buffers were outstanding at the end: a leak in leat\n";

struct run_opts {
	const char *file;
	uint64_t watch_ns;    /* 0: no table */
	uint64_t duration_ns; /* 0: no end */
	bool check, expect_traffic;
};

/* ---- the command line ---- */

static const struct leat_param time_param = {
	.kind = LEAT_PARAM_DURATION,
	.min = 10 * NSEC_PER_MSEC,
	.max = UINT64_C(1000000000) * NSEC_PER_SEC,
};

static int usage_error(const char *message)
{
	if (message)
		fprintf(stderr, "leat run: %s (try: leat run --help)\n", message);
	else
		fputs("try: leat run --help\n", stderr);
	return EXIT_USAGE;
}

static int parse_time(const char *option, const char *text, uint64_t *ns)
{
	struct leat_diag *diag = leat_diag_create();
	int rc = leat_param_set(&time_param, ns, text, diag);

	if (rc && leat_diag_get(diag, 0))
		fprintf(stderr, "leat run: --%s: %s\n", option, leat_diag_get(diag, 0)->message);
	leat_diag_destroy(diag);
	return rc ? EXIT_USAGE : EXIT_GOOD;
}

/* Returns an exit code; *done says that there is nothing left to do. */
static int parse_args(int argc, char **argv, struct run_opts *opts, bool *done)
{
	static const struct option options[] = {
		{ "check", no_argument, NULL, 'c' },          { "watch", optional_argument, NULL, 'w' },
		{ "duration", required_argument, NULL, 'd' }, { "expect-traffic", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },           { NULL, 0, NULL, 0 },
	};
	int option, rc = EXIT_GOOD;

	while (!rc && (option = getopt_long(argc, argv, "cw::d:h", options, NULL)) != -1) {
		if (option == 'c') {
			opts->check = true;
		} else if (option == 'w') {
			rc = parse_time("watch", optarg ? optarg : "1", &opts->watch_ns);
		} else if (option == 'd') {
			rc = parse_time("duration", optarg, &opts->duration_ns);
		} else if (option == 'e') {
			opts->expect_traffic = true;
		} else if (option == 'h') {
			*done = true;
			fputs(run_help, stdout);
			return EXIT_GOOD;
		} else {
			return usage_error(NULL); /* getopt has said what is wrong */
		}
	}
	if (rc)
		return rc;
	if (optind == argc)
		return usage_error("FILE is missing");
	if (optind + 1 < argc)
		return usage_error("more than one FILE");
	opts->file = argv[optind];
	return EXIT_GOOD;
}

/* ---- what is said ---- */

/* The last messages; a message may come on any thread. */
struct notes {
	pthread_mutex_t lock;
	bool hold; /* a table owns the terminal: messages wait for it. Changes while no worker runs */
	unsigned int n;
	char text[NOTES_KEPT][NOTE_SIZE];
};

static void keep_note(struct notes *notes, const char *prefix, const char *message)
{
	pthread_mutex_lock(&notes->lock);
	snprintf(notes->text[notes->n++ % NOTES_KEPT], NOTE_SIZE, "leat: %s%s", prefix, message);
	pthread_mutex_unlock(&notes->lock);
}

static void on_log(void *arg, enum leat_log_level level, const char *message)
{
	const char *prefix = level == LEAT_LOG_ERROR ? "error: " : level == LEAT_LOG_WARNING ? "warning: " : "";
	struct notes *notes = arg;

	if (notes->hold)
		keep_note(notes, prefix, message);
	else
		fprintf(stderr, "leat: %s%s\n", prefix, message);
}

/* The last @max messages, each with its line end. */
static const char *join_notes(struct notes *notes, unsigned int max, char *buf, size_t size)
{
	unsigned int i;
	size_t len = 0;

	buf[0] = '\0';
	pthread_mutex_lock(&notes->lock);
	for (i = notes->n > max ? notes->n - max : 0; i < notes->n && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s\n", notes->text[i % NOTES_KEPT]);
	pthread_mutex_unlock(&notes->lock);
	return buf;
}

/* The table is gone: says what has waited for it. */
static void release_notes(struct notes *notes)
{
	char text[NOTES_KEPT * (NOTE_SIZE + 1)];

	if (notes->hold)
		fputs(join_notes(notes, NOTES_KEPT, text, sizeof(text)), stderr);
	notes->hold = false;
}

void print_mistakes(const struct leat_diag *diag, int rc, const char *file)
{
	const struct leat_diag_entry *entry;
	char line[6000];
	unsigned int i;

	for (i = 0; (entry = leat_diag_get(diag, i)); i++) {
		leat_diag_format(entry, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (!i)
		fprintf(stderr, "%s: %s\n", file, strerror(-rc));
}

/* ---- the run ---- */

struct run {
	const struct run_opts *opts;
	struct leat_datapath *dp;
	struct table *table;
	struct notes notes;
	bool in_place;
	int signals; /* signalfd */
	struct leat_control *control; /* or NULL */
	unsigned int sources;
	bool failed;
	bool stdout_taken; /* a port writes packets there */
	uint64_t begun; /* monotonic ns */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void look_at_port(struct leat_netdev *dev, void *arg)
{
	struct run *run = arg;

	run->sources += dev->flags & LEAT_NETDEV_SOURCE ? 1 : 0;
	run->stdout_taken |= (dev->flags & LEAT_NETDEV_STDOUT) != 0;
	run->failed |= (__atomic_load_n(&dev->state, __ATOMIC_RELAXED) & LEAT_NETDEV_FAILED) != 0;
}

static void look_at_ports(struct run *run)
{
	run->sources = 0;
	leat_net_for_each_port(leat_datapath_net(run->dp), look_at_port, run);
}

static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP); /* the terminal is gone: end well all the same */
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* From now on a signal ends the process at once; those that have come are taken out first. */
static void unblock_signals(const struct run *run, const sigset_t *set)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Milliseconds until @due, at least 1: a timeout of poll(). */
static int timeout_until(uint64_t due, uint64_t now)
{
	uint64_t ms = due <= now ? 1 : (due - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;

	return due == UINT64_MAX ? -1 : (int)earlier(ms, 1000 * 1000);
}

/* Draws; false when standard output is gone. */
static bool draw(struct run *run)
{
	char note[NOTES_SHOWN * (NOTE_SIZE + 1)];

	return table_draw(run->table, join_notes(&run->notes, NOTES_SHOWN, note, sizeof(note)));
}

/* Waits for the end of the run. */
static void wait_for_end(struct run *run)
{
	const struct run_opts *opts = run->opts;
	uint64_t end = opts->duration_ns ? run->begun + opts->duration_ns : UINT64_MAX;
	uint64_t next_draw = run->table ? run->begun + opts->watch_ns : UINT64_MAX;
	struct pollfd pfd[2] = {
		{ .fd = run->signals, .events = POLLIN },
		{ .fd = leat_control_fd(run->control), .events = POLLIN },
	};
	uint64_t now = run->begun, due;

	while (now < end) {
		due = earlier(end, next_draw);
		if (run->sources)
			due = earlier(due, now + FINISH_CHECK_NS);
		if (poll(pfd, 2, timeout_until(due, now)) > 0) {
			if (pfd[0].revents)
				break;
			leat_control_serve(run->control);
		}
		now = now_ns();
		if (now >= next_draw) {
			if (!draw(run))
				break;
			next_draw += opts->watch_ns;
			if (next_draw <= now) /* the system was suspended, or too slow */
				next_draw = now + opts->watch_ns;
		}
		if (run->sources && leat_net_finished(leat_datapath_net(run->dp)))
			break;
	}
}

/* ---- the verdict ---- */

/* Sums by which packets are followed to their end. */
struct balance {
	uint64_t rx;       /* received anywhere */
	uint64_t tx;       /* transmitted anywhere */
	uint64_t inner_rx; /* received by ports that only get what other ports transmit (veth) */
	uint64_t stopped;  /* transmitted, but still queued at the end */
};

static void add_to_balance(struct leat_netdev *dev, void *arg)
{
	struct balance *sum = arg;
	struct leat_netdev_stats stats;

	leat_netdev_stats(dev, &stats);
	sum->rx += stats.rx_packets;
	sum->tx += stats.tx_packets;
	if (!(dev->flags & LEAT_NETDEV_SOURCE))
		sum->inner_rx += stats.rx_packets;
	sum->stopped += stats.drops[LEAT_DROP_STOPPED];
}

/* Whether a packet left the datapath: it was transmitted, and no port of ours received it again. */
static bool traffic_moved(struct run *run)
{
	struct balance sum = { 0 };

	leat_net_for_each_port(leat_datapath_net(run->dp), add_to_balance, &sum);
	return sum.rx && sum.tx > sum.inner_rx + sum.stopped;
}

static void print_holder(const struct leat_holder_report *report, void *arg)
{
	char line[256];

	(void)arg;
	leat_holder_report_format(report, line, sizeof(line));
	fprintf(stderr, "leat: %s\n", line);
}

/* Says what was wrong with the run, and returns the highest code that applies. */
static int judge(struct run *run, uint64_t outstanding)
{
	int code = EXIT_GOOD;

	if (run->opts->expect_traffic && !traffic_moved(run)) {
		fputs("leat: no packet reached an end: nothing was received, or all of it was dropped\n", stderr);
		code = EXIT_IDLE;
	}
	if (run->failed) {
		fputs("leat: a port failed during the run\n", stderr);
		code = EXIT_FAILED;
	}
	if (outstanding) {
		fputs("leat: buffers are outstanding: this is a leak, please report it\n", stderr);
		leat_segment_report(leat_net_segment(leat_datapath_net(run->dp)), 0, print_holder, NULL);
		code = EXIT_LEAK;
	}
	return code;
}

/* Stops, and prints what has happened. */
static int finish(struct run *run)
{
	struct leat_net *net = leat_datapath_net(run->dp);
	uint64_t ended = now_ns(), outstanding;
	char *pools;

	leat_net_stop(net);
	leat_net_outstanding(net); /* takes in what is on its way back, so that the pools' sums agree */
	pools = table_format_pools(run->dp);
	leat_datapath_stop(run->dp);
	look_at_ports(run); /* not before: a file may turn out to be incomplete when it is closed */
	release_notes(&run->notes);
	outstanding = leat_net_outstanding(net);
	table_print_totals(run->dp, (double)(ended - run->begun) / (double)NSEC_PER_SEC, pools);
	free(pools);
	printf("buffers outstanding: %llu\n", (unsigned long long)outstanding);
	output_flush();
	return judge(run, outstanding);
}

static int run_started(struct run *run, const sigset_t *set)
{
	struct table_style style = { .in_place = run->in_place, .colour = run->in_place && !getenv("NO_COLOR") };
	int code;

	run->begun = now_ns();
	look_at_ports(run);
	if (run->stdout_taken) /* the port has a copy; what is for people goes to standard error */
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (run->opts->watch_ns)
		run->table = table_create(run->dp, run->opts->file, style);
	wait_for_end(run);
	leat_control_close(run->control);
	run->control = NULL;
	unblock_signals(run, set);
	code = finish(run);
	table_destroy(run->table);
	return code;
}

/* The datapath is loaded: runs it from start to stop. */
static int run_loaded(struct run *run, struct leat_diag *diag)
{
	int rc, code = EXIT_CONFIG;
	sigset_t set;

	block_signals(&set);
	signal(SIGPIPE, SIG_IGN);
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run->signals < 0) {
		fprintf(stderr, "leat: signalfd: %s\n", strerror(errno));
		return code;
	}
	rc = leat_control_open(run->dp, diag, &run->control);
	if (!rc)
		rc = leat_datapath_start(run->dp, diag);
	if (rc) {
		release_notes(&run->notes);
		print_mistakes(diag, rc, run->opts->file);
	} else {
		code = run_started(run, &set);
	}
	leat_control_close(run->control);
	close(run->signals);
	return code;
}

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static int load_and_run(const struct run_opts *opts, struct leat_diag *diag)
{
	struct run run = {
		.opts = opts,
		.notes.lock = PTHREAD_MUTEX_INITIALIZER,
		.in_place = opts->watch_ns && is_terminal(),
	};
	struct leat_log log = { .fn = on_log, .arg = &run.notes, .level = LEAT_LOG_INFO };
	struct leat_datapath_opts dp_opts = { .size = sizeof(dp_opts), .log = &log };
	int rc, code = EXIT_GOOD;

	rc = leat_datapath_load(opts->file, &dp_opts, diag, &run.dp);
	if (rc) {
		print_mistakes(diag, rc, opts->file);
		return EXIT_CONFIG;
	}
	run.notes.hold = run.in_place && !opts->check && isatty(STDERR_FILENO);
	if (opts->check)
		printf("%s: valid\n", opts->file);
	else
		code = run_loaded(&run, diag);
	leat_datapath_destroy(run.dp);
	return code;
}

int run_command(int argc, char **argv, const struct command *self)
{
	static char name[] = "leat run"; /* for getopt's messages */
	struct run_opts opts = { 0 };
	struct leat_diag *diag;
	bool done = false;
	int code;

	(void)self;
	argv[0] = name;
	code = parse_args(argc, argv, &opts, &done);
	if (code || done)
		return code;
	diag = leat_diag_create();
	if (!diag) {
		fputs("leat: out of memory\n", stderr);
		return EXIT_CONFIG;
	}
	code = load_and_run(&opts, diag);
	leat_diag_destroy(diag);
	return code;
}
