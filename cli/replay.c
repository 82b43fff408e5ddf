/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c: `leat replay`: runs an eBPF object on a capture and says what it did. One thread, no privilege; the same
 * arguments give the same output: time is the capture's, random numbers have a seed.
 */
#include "replay.h"

#include <errno.h>
#include <getopt.h>
#include <leat/param.h>
#include <leat/xdp_prog.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

const char replay_help[] =
	"usage: leat replay OBJ.o IN.pcap [-o OUT.pcap] [--prog NAME] [--map NAME='KEY=VALUE,...' | --map FILE.json]\n"
	"                   [--set VAR=VALUE] [--event MAP=STRUCT] [--keep VERDICTS] [--verdicts] [--json]\n"
	"                   [--seed N] [--cpu N] [--ifindex N] [--queue N] [--btf FILE] [--engine ENGINE]\n"
	"\n"
	"Runs an XDP program on each packet of a capture (-: standard input) and prints verdicts, what maps hold, the\n"
	"records of ring buffers and perf event arrays, and traces. Needs no privilege. The time that programs see is\n"
	"the capture's and random numbers come from a seed, so the same arguments give the same output.\n"
	"\n"
	"options:\n"
	"  -o, --output FILE       write the packets, as the program left them, to a capture (-: standard output; the\n"
	"                          report then goes to standard error)\n"
	"      --keep VERDICTS     which packets to write: any of aborted, drop, pass, tx, redirect\n"
	"                          (pass,tx,redirect)\n"
	"  -p, --prog NAME         the program to run, by its name or section (the XDP program, if there is only one)\n"
	"  -m, --map NAME='K=V,..' put elements into a map before the run: numbers, 0x.., addresses, names of enum\n"
	"                          values, JSON; in a program array V is the name of a program\n"
	"  -m, --map FILE.json     the same from a file: {\"NAME\": [{\"key\": K, \"value\": V}, ...], ...}\n"
	"  -s, --set VAR=VALUE     set a global variable: limit=5, cfg.limit=5, table[3]=5\n"
	"  -e, --event MAP=STRUCT  print the records of MAP as that struct (else as struct event), or in hexadecimal\n"
	"                          if they have another size\n"
	"      --verdicts          one line for each packet: number, time, length, verdict, where it is redirected\n"
	"  -j, --json              print one JSON object\n"
	"      --seed N            of random numbers and hash tables (1)\n"
	"      --cpu N             the CPU that the program sees (0)\n"
	"      --ifindex N         the port that packets come from (1)\n"
	"      --queue N           its receive queue (0)\n"
	"      --engine ENGINE     what runs the program: interp, jit, or auto: compiled where that can be (auto)\n"
	"      --btf FILE          BTF of a kernel for CO-RE (the running kernel's)\n"
	"  -h, --help              show this text\n"
	"\n"
	"exit codes (the highest that applies):\n"
	"  0  the program ran\n"
	"  1  the object or what an option says has mistakes, or a file could not be opened or written\n"
	"  2  the command line is wrong\n"
	"  4  the capture is corrupt or not of Ethernet packets; what stands before the fault was run\n"
	"  6  the program was ended by traps\n";

#define KEEP_DEFAULT (1u << LEAT_XDP_PASS | 1u << LEAT_XDP_TX | 1u << LEAT_XDP_REDIRECT)

static const char tool[] = "leat replay";

/* ---- the command line ---- */

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

	for (*keep = 0; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		for (i = 0; i < LEAT_XDP_ACTIONS; i++)
			if (strlen(leat_xdp_action_name(i)) == len && !strncmp(leat_xdp_action_name(i), text, len))
				break;
		if (i == LEAT_XDP_ACTIONS)
			return bad_value("keep",
					 "verdicts are aborted, drop, pass, tx and redirect, separated by commas");
		*keep |= 1u << i;
	}
	return *keep ? EXIT_GOOD : bad_value("keep", "names no verdict");
}

/* Where the texts of options go. */
static const struct {
	int letter;
	size_t offset;
} texts[] = {
	{ 'o', offsetof(struct replay_opts, out) },
	{ 'p', offsetof(struct replay_opts, prog) },
	{ 'b', offsetof(struct replay_opts, btf) },
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

/* One option with an argument. */
static int parse_option(int letter, const char *arg, struct replay_opts *opts)
{
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].letter == letter)
			return parse_number(&numbers[i], arg, opts);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].letter != letter)
			continue;
		*(const char **)(void *)((uint8_t *)opts + texts[i].offset) = arg;
		return EXIT_GOOD;
	}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].letter == letter)
			return add_word(lists[i].name, (void *)((uint8_t *)opts + lists[i].offset), arg);
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

/* Returns an exit code; *done says that there is nothing left to do. */
static int parse_args(int argc, char **argv, struct replay_opts *opts, bool *done)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },  { "keep", required_argument, NULL, 'k' },
		{ "prog", required_argument, NULL, 'p' },    { "map", required_argument, NULL, 'm' },
		{ "set", required_argument, NULL, 's' },     { "event", required_argument, NULL, 'e' },
		{ "verdicts", no_argument, NULL, 'v' },      { "json", no_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 'S' },    { "cpu", required_argument, NULL, 'c' },
		{ "ifindex", required_argument, NULL, 'i' }, { "queue", required_argument, NULL, 'q' },
		{ "btf", required_argument, NULL, 'b' },     { "help", no_argument, NULL, 'h' },
		{ "engine", required_argument, NULL, 'E' },  { NULL, 0, NULL, 0 },
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
	if (!opts->keep)
		opts->keep = KEEP_DEFAULT;
	return check_words(opts);
}

/* ---- the object ---- */

/* Programs that run elsewhere than where packets are received. */
static bool is_inner(const struct leat_bpf_prog *prog)
{
	const char *section = leat_bpf_prog_section(prog);

	return strstr(section, "/devmap") || strstr(section, "/cpumap");
}

static void list_programs(struct replay *r, const char *sentence)
{
	char names[512] = "";
	struct leat_bpf_prog *prog;
	size_t len = 0;
	unsigned int i;

	for (i = 0; (prog = leat_bpf_object_prog_get(r->obj, i)) && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					leat_bpf_prog_name(prog));
	leat_diag_at(r->diag, r->opts->object, 0, 0, NULL);
	leat_diag_add(r->diag, "%s: %s", sentence, names);
}

/* The one that can be meant when no name was given. */
static int choose_program(struct replay *r)
{
	struct leat_bpf_prog *prog;
	unsigned int i, n = 0;

	for (i = 0; (prog = leat_bpf_object_prog_get(r->obj, i)); i++) {
		if (is_inner(prog) && (i || leat_bpf_object_prog_get(r->obj, 1)))
			continue;
		r->prog = prog;
		n++;
	}
	if (n == 1)
		return 0;
	list_programs(r, n ? "several programs, choose one by --prog" : "no XDP program; programs");
	return -ENOENT;
}

static int find_program(struct replay *r)
{
	struct leat_suggest suggest = { .word = r->opts->prog };
	struct leat_bpf_prog *prog;
	char sentence[256];
	unsigned int i;

	if (!r->opts->prog)
		return choose_program(r);
	r->prog = leat_bpf_object_prog_find(r->obj, r->opts->prog);
	if (r->prog)
		return 0;
	for (i = 0; (prog = leat_bpf_object_prog_get(r->obj, i)); i++)
		leat_suggest_try(&suggest, leat_bpf_prog_name(prog));
	if (suggest.best)
		snprintf(sentence, sizeof(sentence), "no program '%.64s' (did you mean '%.64s'?); programs",
			 r->opts->prog, suggest.best);
	else
		snprintf(sentence, sizeof(sentence), "no program '%.64s'; programs", r->opts->prog);
	list_programs(r, sentence);
	return -ENOENT;
}

/* Does all --set options, and says what is wrong with each. */
static int set_variables(struct replay *r)
{
	const char *word, *equals;
	char name[256];
	unsigned int i;
	int err, first = 0;

	for (i = 0; i < r->opts->sets.n; i++) {
		word = r->opts->sets.word[i];
		equals = strchr(word, '='); /* is there: check_words() */
		snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - word : 0), word);
		leat_diag_at(r->diag, NULL, 0, 0, name);
		err = leat_bpf_object_set(r->obj, name, equals ? equals + 1 : "", r->diag);
		first = first ? first : err;
	}
	return first;
}

/* Whether --map fills a program array, perhaps: then all programs are loaded, because any can be reached. */
static bool needs_all(const struct replay *r)
{
	const struct replay_words *maps = &r->opts->maps;
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i, k;

	for (i = 0; (map = leat_bpf_object_map_get(r->obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		for (k = 0; !strcmp(info.type_name, "prog_array") && k < maps->n; k++)
			if (!strchr(maps->word[k], '=') ||
			    !strncmp(maps->word[k], info.name, strcspn(maps->word[k], "=")))
				return true;
	}
	return false;
}

static int load_object(struct replay *r)
{
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .btf = r->opts->btf };
	int err = leat_bpf_object_open(r->env, r->opts->object, &opts, r->diag, &r->obj);

	if (!err)
		err = find_program(r);
	if (!err)
		err = set_variables(r);
	leat_diag_at(r->diag, r->opts->object, 0, 0, NULL);
	if (!err)
		err = leat_bpf_object_load(r->obj, needs_all(r) ? NULL : leat_bpf_prog_name(r->prog), r->diag);
	if (!err)
		err = replay_check_events(r);
	return err ? err : replay_fill_maps(r);
}

/* ---- the run ---- */

static int run_loaded(struct replay *r)
{
	bool trapped = false;
	int code;

	r->report = report_create(r);
	if (!r->report) {
		fprintf(stderr, "%s: out of memory\n", tool);
		return EXIT_CONFIG;
	}
	code = replay_run_capture(r);
	if (!report_finish(r, &trapped))
		code = code > EXIT_CONFIG ? code : EXIT_CONFIG;
	report_destroy(r->report);
	return trapped ? EXIT_TRAPS : code;
}

static int load_and_run(struct replay *r)
{
	struct leat_bpf_env_opts opts = {
		.size = sizeof(opts),
		.cpus = r->opts->cpu + 1,
		.replay = true,
		.seed = r->opts->seed,
		.trace = report_trace,
		.trace_arg = r,
		.engine = r->opts->engine,
	};
	int err, code = EXIT_CONFIG;

	leat_xdp_bpf_init();
	err = leat_bpf_env_create(&opts, &r->env);
	if (!err)
		err = load_object(r);
	if (err)
		print_mistakes(r->diag, err, r->opts->object);
	else
		code = run_loaded(r);
	leat_bpf_object_close(r->obj);
	leat_bpf_env_destroy(r->env);
	return code;
}

int replay_command(int argc, char **argv, const struct command *self)
{
	static char name[] = "leat replay"; /* for getopt's messages */
	struct replay_opts opts = {
		.seed = 1,
		.ifindex = 1,
	};
	struct replay r = { .opts = &opts };
	bool done = false;
	int code;

	(void)self;
	argv[0] = name;
	code = parse_args(argc, argv, &opts, &done);
	if (code || done)
		return code;
	r.diag = leat_diag_create();
	if (!r.diag) {
		fprintf(stderr, "%s: out of memory\n", tool);
		return EXIT_CONFIG;
	}
	code = load_and_run(&r);
	leat_diag_destroy(r.diag);
	return code;
}
