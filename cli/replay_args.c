/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_args.c: the command line of `leat replay`.
 */
#include "replay.h"

#include <getopt.h>
#include <leat/param.h>
#include <leat/xdp_prog.h>
#include <stdlib.h>
#include <string.h>

const char replay_help[] =
	"usage: leat replay OBJ.o IN.pcap [-o OUT.pcap] [--prog NAME] [--map NAME='KEY=VALUE,...' | --map FILE.json]\n"
	"                   [--set VAR=VALUE] [--event MAP=STRUCT] [--keep VERDICTS] [--verdicts] [--json]\n"
	"                   [--expect FILE] [--format FORMAT] [--coverage[=lines | insns | lcov:FILE]]\n"
	"                   [--time[=SECONDS]]\n"
	"                   [--seed N] [--cpu N] [--ifindex N] [--queue N] [--btf FILE] [--engine ENGINE]\n"
	"                   [--fib FILE.yaml]\n"
	"\n"
	"Runs an XDP program on each packet of a capture (-: standard input) and prints verdicts, what maps hold, the\n"
	"records of ring buffers and perf event arrays, and traces. Needs no privilege. The time that programs see is\n"
	"the capture's and random numbers come from a seed, so the same arguments give the same output.\n"
	"\n"
	"options:\n"
	"  -o, --output FILE       write the packets, as the program left them, to a capture (-: standard output; the\n"
	"                          report then goes to standard error)\n"
	"      --format FORMAT     its format: pcap, or pcapng, in which each packet's verdict is a comment (pcapng where\n"
	"                          the name ends in .pcapng, else pcap)\n"
	"      --keep VERDICTS     which packets to write: any of aborted, drop, pass, tx, redirect, or all\n"
	"                          (pass,tx,redirect)\n"
	"  -p, --prog NAME         the program to run, by its name or section (the XDP program, if there is only one)\n"
	"  -m, --map NAME='K=V,..' put elements into a map before the run: numbers, 0x.., addresses, names of enum\n"
	"                          values, JSON; in a program array V is the name of a program\n"
	"  -m, --map FILE.json     the same from a file: {\"NAME\": [{\"key\": K, \"value\": V}, ...], ...}\n"
	"  -s, --set VAR=VALUE     set a global variable: limit=5, cfg.limit=5, table[3]=5\n"
	"  -e, --event MAP=STRUCT  print the records of MAP as that struct (else as struct event), or in hexadecimal\n"
	"                          if they have another size\n"
	"      --verdicts          one line for each packet: number, time, length, verdict, where it is redirected\n"
	"      --expect FILE       compare verdicts with what FILE says: lines such as 7: drop, 10-20: redirect to port 5,\n"
	"                          *: pass (the rest), total drop 12; or what --verdicts printed\n"
	"      --coverage[=WHAT]   say how often what ran: each source line, with the ways that its branches went (lines);\n"
	"                          each instruction (insns); as a tracefile for lcov and genhtml (lcov:FILE). May be\n"
	"                          given several times\n"
	"      --time[=SECONDS]    say how long the program takes for a packet, by each engine (measured for 1 second) and,\n"
	"                          where this user may load programs, in the running kernel\n"
	"  -j, --json              print one JSON object\n"
	"      --seed N            of random numbers and hash tables (1)\n"
	"      --cpu N             the CPU that the program sees (0)\n"
	"      --ifindex N         the port that packets come from (1)\n"
	"      --queue N           its receive queue (0)\n"
	"      --engine ENGINE     what runs the program: interp, jit, or auto: compiled where that can be (auto)\n"
	"      --fib FILE.yaml     what bpf_fib_lookup answers: the section 'fib' of a configuration (leat.yaml(5))\n"
	"      --btf FILE          BTF of a kernel for CO-RE (the running kernel's)\n"
	"  -h, --help              show this text\n"
	"\n"
	"exit codes (the highest that applies):\n"
	"  0  the program ran\n"
	"  1  the object or what an option says has mistakes, or a file could not be opened or written\n"
	"  2  the command line is wrong\n"
	"  4  the capture is corrupt or not of Ethernet packets; what stands before the fault was run\n"
	"  6  the program was ended by traps\n"
	"  7  verdicts are not as expected\n";

#define KEEP_ALL ((1u << LEAT_XDP_ACTIONS) - 1)
#define KEEP_DEFAULT (1u << LEAT_XDP_PASS | 1u << LEAT_XDP_TX | 1u << LEAT_XDP_REDIRECT)

static const char tool[] = "leat replay";

static int usage_error(const char *message)
{
	if (message)
		fprintf(stderr, "%s: %s (try: %s --help)\n", tool, message, tool);
	else
		fprintf(stderr, "try: %s --help\n", tool);
	return EXIT_USAGE;
}

/* By enum leat_bpf_engine. */
static const char *const engines[] = { "auto", "interp", "jit", NULL };

/* By enum replay_format. */
static const char *const formats[] = { "auto", "pcap", "pcapng", NULL };

static int bad_value(const char *option, const char *why)
{
	fprintf(stderr, "%s: --%s: %s\n", tool, option, why);
	return EXIT_USAGE;
}

/* Options that are numbers, or one of some words, by their letter. */
static const struct number_option {
	int letter;
	const char *name;
	size_t offset;
	struct leat_param param;
} numbers[] = {
	{ 'S', "seed", offsetof(struct replay_opts, seed), { .kind = LEAT_PARAM_U64 } },
	{ 'c', "cpu", offsetof(struct replay_opts, cpu), { .kind = LEAT_PARAM_U32, .max = LEAT_BPF_CPUS_MAX - 1 } },
	{ 'i', "ifindex", offsetof(struct replay_opts, ifindex), { .kind = LEAT_PARAM_U32, .max = UINT16_MAX } },
	{ 'q', "queue", offsetof(struct replay_opts, queue), { .kind = LEAT_PARAM_U32, .max = UINT16_MAX } },
	{ 't', "time", offsetof(struct replay_opts, time_ns),
	  { .kind = LEAT_PARAM_DURATION, .min = 1000000, .max = UINT64_C(3600000000000) } },
	{ 'F', "format", offsetof(struct replay_opts, format), { .kind = LEAT_PARAM_CHOICE, .choices = formats } },
	{ 'E', "engine", offsetof(struct replay_opts, engine), { .kind = LEAT_PARAM_CHOICE, .choices = engines } },
};

static int parse_number(const struct number_option *option, const char *text, struct replay_opts *opts)
{
	struct leat_diag *diag = leat_diag_create();
	int rc = leat_param_set(&option->param, (uint8_t *)opts + option->offset, text, diag);

	if (rc && leat_diag_get(diag, 0))
		bad_value(option->name, leat_diag_get(diag, 0)->message);
	leat_diag_destroy(diag);
	return rc ? EXIT_USAGE : EXIT_GOOD;
}

static int add_word(const char *option, struct replay_words *words, const char *word)
{
	if (words->n == REPLAY_WORDS_MAX)
		return bad_value(option, "given too often");
	words->word[words->n++] = word;
	return EXIT_GOOD;
}

static int parse_keep(const char *text, uint32_t *keep)
{
	size_t len;
	uint32_t i;

	if (!strcmp(text, "all")) {
		*keep = KEEP_ALL;
		return EXIT_GOOD;
	}
	for (*keep = 0; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		for (i = 0; i < LEAT_XDP_ACTIONS; i++)
			if (strlen(leat_xdp_action_name(i)) == len && !strncmp(leat_xdp_action_name(i), text, len))
				break;
		if (i == LEAT_XDP_ACTIONS)
			return bad_value("keep",
					 "verdicts are aborted, drop, pass, tx and redirect, separated by commas, "
					 "or all");
		*keep |= 1u << i;
	}
	return *keep ? EXIT_GOOD : bad_value("keep", "names no verdict");
}

static int parse_coverage(const char *what, struct replay_opts *opts)
{
	if (!what || !strcmp(what, "lines")) {
		opts->cover |= REPLAY_COVER_LINES;
	} else if (!strcmp(what, "insns")) {
		opts->cover |= REPLAY_COVER_INSNS;
	} else if (!strncmp(what, "lcov:", 5) && what[5]) {
		opts->cover |= REPLAY_COVER_LCOV;
		opts->lcov = what + 5;
	} else {
		return bad_value("coverage", "must be lines, insns or lcov:FILE");
	}
	return EXIT_GOOD;
}

/* Where the texts of options go. */
static const struct {
	int letter;
	size_t offset;
} texts[] = {
	{ 'o', offsetof(struct replay_opts, out) },
	{ 'p', offsetof(struct replay_opts, prog) },
	{ 'b', offsetof(struct replay_opts, btf) },
	{ 'f', offsetof(struct replay_opts, fib) },
	{ 'x', offsetof(struct replay_opts, expect) },
};

static const struct {
	int letter;
	const char *name;
	size_t offset;
} lists[] = {
	{ 'm', "map", offsetof(struct replay_opts, maps) },
	{ 's', "set", offsetof(struct replay_opts, sets) },
	{ 'e', "event", offsetof(struct replay_opts, events) },
};

/* One option with an argument; NULL: one that may have one has none. */
static int parse_option(int letter, const char *arg, struct replay_opts *opts)
{
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].letter == letter)
			return parse_number(&numbers[i], arg ? arg : "1", opts); /* of time, a second */
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].letter != letter)
			continue;
		*(const char **)(void *)((uint8_t *)opts + texts[i].offset) = arg;
		return EXIT_GOOD;
	}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].letter == letter)
			return add_word(lists[i].name, (void *)((uint8_t *)opts + lists[i].offset), arg);
	if (letter == 'C')
		return parse_coverage(arg, opts);
	return letter == 'k' ? parse_keep(arg, &opts->keep) : usage_error(NULL);
}

static int check_words(const struct replay_opts *opts)
{
	unsigned int i;

	for (i = 0; i < opts->sets.n; i++)
		if (!strchr(opts->sets.word[i], '='))
			return bad_value("set", "must be VAR=VALUE");
	for (i = 0; i < opts->events.n; i++)
		if (!strchr(opts->events.word[i], '='))
			return bad_value("event", "must be MAP=STRUCT");
	return EXIT_GOOD;
}

int replay_parse_args(int argc, char **argv, struct replay_opts *opts, bool *done)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },  { "keep", required_argument, NULL, 'k' },
		{ "prog", required_argument, NULL, 'p' },    { "map", required_argument, NULL, 'm' },
		{ "set", required_argument, NULL, 's' },     { "event", required_argument, NULL, 'e' },
		{ "verdicts", no_argument, NULL, 'v' },      { "json", no_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 'S' },    { "cpu", required_argument, NULL, 'c' },
		{ "ifindex", required_argument, NULL, 'i' }, { "queue", required_argument, NULL, 'q' },
		{ "btf", required_argument, NULL, 'b' },     { "help", no_argument, NULL, 'h' },
		{ "engine", required_argument, NULL, 'E' },  { "format", required_argument, NULL, 'F' },
		{ "expect", required_argument, NULL, 'x' },  { "coverage", optional_argument, NULL, 'C' },
		{ "time", optional_argument, NULL, 't' },    { "fib", required_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	int option, rc = EXIT_GOOD;

	while (!rc && (option = getopt_long(argc, argv, "o:p:m:s:e:jh", options, NULL)) != -1) {
		if (option == 'h') {
			*done = true;
			fputs(replay_help, stdout);
			return EXIT_GOOD;
		}
		opts->verdicts |= option == 'v';
		opts->json |= option == 'j';
		if (option != 'v' && option != 'j')
			rc = parse_option(option, optarg, opts);
	}
	if (rc)
		return rc;
	if (argc - optind < 2)
		return usage_error(optind == argc ? "OBJ.o and IN.pcap are missing" : "IN.pcap is missing");
	if (argc - optind > 2)
		return usage_error("more than OBJ.o and IN.pcap");
	opts->object = argv[optind];
	opts->capture = argv[optind + 1];
	if (opts->keep && !opts->out)
		return bad_value("keep", "says which packets --output writes, which is missing");
	if (opts->format && !opts->out)
		return bad_value("format", "says how --output is written, which is missing");
	if (opts->cover && opts->engine == LEAT_BPF_ENGINE_JIT)
		return bad_value("coverage", "is counted by the interpreter, not by --engine jit");
	if (!opts->keep)
		opts->keep = KEEP_DEFAULT;
	return check_words(opts);
}
