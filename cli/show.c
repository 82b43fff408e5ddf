/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show.c: what a running datapath does: `leat stats`, `port`, `pool`, `prog list`, `map`, `drops`. Each is one request
 * on the control socket, whose reply is printed as a table or, with -j, as it is.
 */
#include "show.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_HELP                                                                              \
	"\n"                                                                                      \
	"options:\n"                                                                              \
	"  -j, --json         print one JSON object\n"                                            \
	"      --socket PATH  the control socket (what LEAT_CONTROL says, $XDG_RUNTIME_DIR/leat/\n" \
	"                     control.sock, or /run/leat/control.sock)\n"                         \
	"  -h, --help         show this text\n"                                                   \
	"\n"                                                                                      \
	"exit codes: 0 all is well; 1 no datapath answers, or it has no such thing; 2 the command line is wrong\n"

const char stats_help[] =
	"usage: leat stats [-j] [--socket PATH]\n"
	"\n"
	"Shows the counters of a running datapath: ports, bridges, packet memory.\n" OPTIONS_HELP;

const char port_help[] =
	"usage: leat port [list] [-j] [--socket PATH]\n"
	"       leat port show NAME [-j] [--socket PATH]\n"
	"\n"
	"Shows the ports of a running datapath, or one with its queues and who polls them.\n" OPTIONS_HELP;

const char pool_help[] =
	"usage: leat pool [list] [-j] [--socket PATH]\n"
	"\n"
	"Shows the pools of packet memory of a running datapath, in granules of 512 bytes: what was handed out, what\n"
	"came back directly and by other threads, and where what is out is.\n" OPTIONS_HELP;

const char map_help[] =
	"usage: leat map [list] [-j] [--socket PATH]\n"
	"       leat map dump NAME [-p PROG] [-j] [--socket PATH]\n"
	"\n"
	"Shows the maps of a running datapath's programs, or what one holds. Elements of arrays that are all zero are\n"
	"left out. Where several objects have a map of that name, PROG says which is meant.\n"
	"\n"
	"  -p, --prog PROG    a program of the object\n" OPTIONS_HELP;

const char drops_help[] =
	"usage: leat drops [PORT] [-j] [--socket PATH]\n"
	"\n"
	"Shows how many packets a running datapath dropped, by port, queue and reason.\n" OPTIONS_HELP;

/* One thing that can be shown. */
struct view {
	const char *command, *verb; /* verb NULL: no word is needed */
	const char *request;
	const char *member;         /* what the name that follows is called in the request; NULL: no name follows */
	bool optional;              /* the name may be left out */
	show_table_fn *table;
};

static const struct view views[] = {
	{ "stats", NULL, "stats", NULL, false, show_stats },
	{ "port", NULL, "port", NULL, false, show_ports },
	{ "port", "list", "port", NULL, false, show_ports },
	{ "port", "show", "port", "name", false, show_ports },
	{ "pool", NULL, "pool", NULL, false, show_pools },
	{ "pool", "list", "pool", NULL, false, show_pools },
	{ "prog", "list", "prog", NULL, false, show_progs },
	{ "prog", "show", "prog", "name", false, show_progs },
	{ "map", NULL, "map", NULL, false, show_maps },
	{ "map", "list", "map", NULL, false, show_maps },
	{ "map", "dump", "map", "name", false, show_map },
	{ "drops", NULL, "drops", "port", true, show_drops },
};

#define N_VIEWS (sizeof(views) / sizeof(views[0]))

/* What the command line says. */
struct show {
	const struct view *view;
	const char *name, *prog, *socket;
	bool json;
};

/* ---- the reply ---- */

static json_t *ask(const struct show *show, int fd)
{
	const struct view *view = show->view;
	json_t *request;

	if (view->table == show_map)
		return show_ask_map(view->command, fd, show->name, show->prog);
	request = json_pack("{s:s}", "request", view->request);
	if (show->name)
		json_object_set_new(request, view->member, json_string(show->name));
	return show_ask(view->command, fd, request);
}

static int run_show(const struct show *show)
{
	int fd = show_connect(show->view->command, show->socket);
	json_t *reply;

	if (fd < 0)
		return EXIT_CONFIG;
	reply = ask(show, fd);
	close(fd);
	if (!reply)
		return EXIT_CONFIG;
	if (show->json) {
		json_dumpf(reply, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		show->view->table(reply, show->name);
	}
	json_decref(reply);
	return EXIT_GOOD;
}

/* ---- the command line ---- */

static int usage_error(const char *command, const char *message, const char *word)
{
	fprintf(stderr, "leat %s: %s%s%s (try: leat %s --help)\n", command, message, word ? " " : "", word ? word : "",
		command);
	return EXIT_USAGE;
}

/* The view that the first word, or no word, means; NULL. */
static const struct view *find_view(const char *command, const char *verb)
{
	size_t i;

	for (i = 0; i < N_VIEWS; i++)
		if (!strcmp(views[i].command, command) && verb && views[i].verb && !strcmp(views[i].verb, verb))
			return &views[i];
	for (i = 0; i < N_VIEWS; i++)
		if (!strcmp(views[i].command, command) && !views[i].verb && (!verb || views[i].optional))
			return &views[i];
	return NULL;
}

/* The words beside the options: what is to be shown, and a name. */
static int parse_words(struct show *show, const char *command, int n, char *const *words)
{
	const struct view *view = find_view(command, n ? words[0] : NULL);

	if (!view)
		return usage_error(command, n ? "cannot do" : "what shall be shown?", n ? words[0] : NULL);
	if (view->verb) {
		n--;
		words++;
	}
	if (view->member && !view->optional && !n)
		return usage_error(command, "a name is missing behind", view->verb);
	if (n > (view->member ? 1 : 0))
		return usage_error(command, "one word too many:", words[n - 1]);
	if (show->prog && view->table != show_map)
		return usage_error(command, "--prog goes with dump only", NULL);
	show->view = view;
	show->name = n ? words[0] : NULL;
	return EXIT_GOOD;
}

/* Returns an exit code; *done: help was asked for, and shown. */
static int parse_args(struct show *show, int argc, char **argv, const struct command *self, bool *done)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' }, { "socket", required_argument, NULL, 's' },
		{ "prog", required_argument, NULL, 'p' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	optind = 1;
	while ((letter = getopt_long(argc, argv, "jp:h", options, NULL)) != -1) {
		if (letter == 'j') {
			show->json = true;
		} else if (letter == 's') {
			show->socket = optarg;
		} else if (letter == 'p') {
			show->prog = optarg;
		} else if (letter == 'h') {
			fputs(self->help, stdout);
			*done = true;
			return EXIT_GOOD;
		} else {
			return usage_error(self->name, "an option is wrong", NULL);
		}
	}
	return parse_words(show, self->name, argc - optind, argv + optind);
}

int show_command(int argc, char **argv, const struct command *self)
{
	struct show show = { .json = false };
	char title[32];
	bool done = false;
	int code;

	snprintf(title, sizeof(title), "leat %s", self->name);
	argv[0] = title; /* for getopt's messages */
	code = parse_args(&show, argc, argv, self, &done);
	return code || done ? code : run_show(&show);
}
