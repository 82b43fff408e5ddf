/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: finds the command in a table and runs it. What a person gets wrong is said on standard error, with exit
 * code 2; what they ask for goes to standard output.
 */
#include "cli.h"

#include <errno.h>
#include <leat/version.h>
#include <string.h>

static int help_command(int argc, char **argv, const struct command *self);

static const char help_help[] =
	"usage: leat help [COMMAND]\n"
	"\n"
	"Shows the commands, or what one of them does.\n";

static const struct command commands[] = {
	{ "run", "run a datapath from a configuration file", run_help, run_command },
#ifdef LEAT_HAVE_PCAP
	{ "replay", "run an eBPF object on a capture", replay_help, replay_command },
#endif
	{ "prog", "verify the programs of an eBPF object, or show those that run", prog_help, prog_command },
	{ "stats", "show the counters of a running datapath", stats_help, show_command },
	{ "port", "show its ports and queues", port_help, show_command },
	{ "pool", "show its packet memory", pool_help, show_command },
	{ "map", "show its maps, and what they hold", map_help, show_command },
	{ "drops", "show what it dropped, and why", drops_help, show_command },
	{ "bench", "measure a choice of the design against its baselines", bench_help, bench_command },
	{ "help", "show this text, or that of a command", help_help, help_command },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_help(FILE *out)
{
	size_t i;

	fputs("usage: leat COMMAND [ARGUMENT]...\n"
	      "\n"
	      "A user-space packet datapath: ports, XDP programs and bridges from one file.\n"
	      "\n"
	      "commands:\n", out);
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "options:\n"
	      "  -h, --help     show this text\n"
	      "  -V, --version  show the version\n"
	      "\n"
	      "'leat COMMAND --help' tells more about a command; leat(8) and leat.yaml(5) tell all.\n", out);
}

static int unknown(const char *what, const char *word)
{
	fprintf(stderr, "leat: unknown %s '%s' (try: leat --help)\n", what, word);
	return EXIT_USAGE;
}

static int help_command(int argc, char **argv, const struct command *self)
{
	const struct command *command = self;

	if (argc > 2) {
		fputs(help_help, stderr);
		return EXIT_USAGE;
	}
	if (argc < 2) {
		print_help(stdout);
		return EXIT_GOOD;
	}
	if (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
		command = find_command(argv[1]);
	if (!command)
		return unknown("command", argv[1]);
	fputs(command->help, stdout);
	return EXIT_GOOD;
}

static int print_version(void)
{
	printf("leat %s\n", LEAT_VERSION);
	return EXIT_GOOD;
}

static int output_errno; /* of standard output, as far as it is known */

bool output_flush(void)
{
	if (fflush(stdout))
		output_errno = errno;
	return !ferror(stdout);
}

/* What was printed must have arrived. */
static int finish(int code)
{
	if (output_flush())
		return code;
	fprintf(stderr, "leat: standard output cannot be written%s%s\n", output_errno ? ": " : "",
		output_errno ? strerror(output_errno) : "");
	return code ? code : EXIT_CONFIG;
}

static int run(int argc, char **argv)
{
	const struct command *command;
	const char *word;

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	word = argv[1];
	if (!strcmp(word, "--version") || !strcmp(word, "-V"))
		return print_version();
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(stdout);
		return EXIT_GOOD;
	}
	command = find_command(word);
	if (!command)
		return unknown(word[0] == '-' ? "option" : "command", word);
	return command->run(argc - 1, argv + 1, command);
}

int main(int argc, char **argv)
{
	return finish(run(argc, argv));
}
