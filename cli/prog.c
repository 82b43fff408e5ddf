/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog.c: `leat prog check`: what the verifier says of each program of an object, without running any. `leat prog list`
 * and `show` are in show.c.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <leat/xdp_prog.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "cli.h"

const char prog_help[] =
	"usage: leat prog check OBJ.o [--prog NAME] [--strict] [--set VAR=VALUE] [--kernel[=WORD]]\n"
	"                      [--json] [--btf FILE]\n"
	"\n"
	"Verifies each program of an eBPF object and says what was found: whether it may run; how many of its memory\n"
	"accesses are proven to stay where they belong and which are tested each time they run; the stack it needs, the\n"
	"longest path through it, and how long the verification took. Nothing is run. Needs no privilege.\n"
	"\n"
	"options:\n"
	"  -p, --prog NAME       this program only, by its name or section\n"
	"      --strict          refuse a program that has accesses which are not proven\n"
	"      --kernel[=WORD]   ask the running kernel's verifier, too, which needs privileges; WORD: ask (its answer is\n"
	"                        shown), or require (a program that it does not accept is refused)\n"
	"  -s, --set VAR=VALUE   set a global variable before: what is constant can be proven\n"
	"  -j, --json            print one JSON object\n"
	"      --btf FILE        BTF of a kernel for CO-RE (the running kernel's)\n"
	"      --socket PATH     list and show: the control socket\n"
	"  -h, --help            show this text\n"
	"\n"
	"exit codes: 0 all programs are good; 1 one is refused, or the object cannot be read, or no datapath answers;\n"
	"2 the command line is wrong\n";

#define SETS_MAX 64

struct check {
	const char *object, *prog, *btf;
	const char *set[SETS_MAX];
	unsigned int n_sets;
	bool strict, json;
	struct leat_bpf_env *env;
	unsigned int kernel; /* enum leat_bpf_kernel_verifier */
	struct leat_json_out out;
};

/** In the order of enum leat_bpf_kernel_answer. */
static const char *const kernel_answers[] = { NULL, "accepts it", "refuses it", "cannot be asked" };

/* ---- one program ---- */

#define LEFT_OPEN 64u        /* entries */
#define RING_LEFT_OPEN 4096u /* bytes */

/** Maps whose size the object leaves to whoever loads it get one: what is verified does not depend on it. */
static void size_maps(struct leat_bpf_object *obj)
{
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		if (!info.max_entries)
			leat_bpf_object_resize(obj, info.name,
					       info.type == BPF_MAP_TYPE_RINGBUF ? RING_LEFT_OPEN : LEFT_OPEN);
	}
}

/** Opens the object anew, for one program's mistakes must not hide another's. */
static int open_object(const struct check *check, struct leat_diag *diag, struct leat_bpf_object **obj)
{
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .btf = check->btf, .strict = check->strict };
	int err = leat_bpf_object_open(check->env, check->object, &opts, diag, obj);
	const char *equals;
	char name[256];
	unsigned int i;

	if (!err)
		size_maps(*obj);
	for (i = 0; !err && i < check->n_sets; i++) {
		equals = strchr(check->set[i], '=');
		snprintf(name, sizeof(name), "%.*s", (int)(equals - check->set[i]), check->set[i]);
		err = leat_bpf_object_set(*obj, name, equals + 1, diag);
		if (err)
			leat_bpf_object_close(*obj);
	}
	return err;
}

static void guards_json(struct leat_json_out *j, const struct leat_bpf_prog *prog)
{
	struct leat_bpf_guard guard;
	unsigned int i;

	leat_json_open(j, "tests", '[');
	for (i = 0; leat_bpf_prog_guard(prog, i, &guard); i++) {
		leat_json_open_flat(j, NULL, '{');
		leat_json_number(j, "instruction", guard.insn);
		leat_json_string(j, "region", guard.region);
		if (guard.source)
			leat_json_string(j, "source", guard.source);
		else
			leat_json_raw(j, "source", "null");
		leat_json_close(j, '}');
	}
	leat_json_close(j, ']');
}

static void begin_json(struct leat_json_out *j, const char *name, const char *section, const char *verdict)
{
	leat_json_open(j, NULL, '{');
	leat_json_string(j, "name", name);
	leat_json_string(j, "section", section);
	leat_json_string(j, "verdict", verdict);
}

static void add_good(struct leat_json_out *j, const struct leat_bpf_prog *prog, const struct leat_bpf_check *found)
{
	begin_json(j, leat_bpf_prog_name(prog), leat_bpf_prog_section(prog), "good");
	leat_json_number(j, "instructions", found->insns);
	leat_json_number(j, "reached", found->reached);
	leat_json_number(j, "proven", found->proven);
	leat_json_number(j, "tested", found->guarded);
	leat_json_number(j, "stack", found->stack);
	leat_json_number(j, "longest_path", found->longest);
	leat_json_number(j, "steps", found->walked);
	leat_json_number(j, "verify_ns", found->verify_ns);
	leat_json_raw(j, "writes_packet", found->writes_packet ? "true" : "false");
	if (found->kernel != LEAT_BPF_KERNEL_NOT_ASKED) {
		leat_json_string(j, "kernel", kernel_answers[found->kernel]);
		leat_json_string(j, "kernel_says", found->kernel_says);
	}
	guards_json(j, prog);
	leat_json_close(j, '}');
}

static void print_good(const struct leat_bpf_prog *prog, const struct leat_bpf_check *found)
{
	struct leat_bpf_guard guard;
	unsigned int i;

	printf("%s (section %s): good\n", leat_bpf_prog_name(prog), leat_bpf_prog_section(prog));
	printf("  %u instructions, %u reached; ", found->insns, found->reached);
	if (found->longest)
		printf("longest path %" PRIu64 "; ", found->longest);
	else
		printf("loops, bounded by fuel; ");
	printf("%u bytes of stack; %s the packet\n", found->stack, found->writes_packet ? "may change" : "only reads");
	printf("  %u accesses proven, %u tested at run time; verified in %.2f ms (%u steps)\n", found->proven,
	       found->guarded, (double)found->verify_ns / 1e6, found->walked);
	if (found->kernel != LEAT_BPF_KERNEL_NOT_ASKED)
		printf("  the kernel's verifier %s%s%s\n", kernel_answers[found->kernel], *found->kernel_says ? ": " : "",
		       found->kernel_says);
	for (i = 0; leat_bpf_prog_guard(prog, i, &guard); i++)
		printf("  tested: instruction %u%s%s%s: %s\n", guard.insn, guard.source ? " (" : "",
		       guard.source ? guard.source : "", guard.source ? ")" : "", guard.region);
}

static void add_refused(struct leat_json_out *j, const char *name, const char *section, const struct leat_diag *diag)
{
	size_t i;

	begin_json(j, name, section, "refused");
	leat_json_open(j, "mistakes", '[');
	for (i = 0; i < leat_diag_count(diag); i++)
		leat_json_string(j, NULL, leat_diag_get(diag, i)->message);
	leat_json_close(j, ']');
	leat_json_close(j, '}');
}

static void print_refused(const char *name, const char *section, const struct leat_diag *diag)
{
	size_t i;

	printf("%s (section %s): refused\n", name, section);
	for (i = 0; i < leat_diag_count(diag); i++)
		printf("  %s\n", leat_diag_get(diag, i)->message);
}

/** @name and @section are the program's. Returns 0 when it is good. */
static int check_prog(struct check *check, const char *name, const char *section)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_bpf_object *obj = NULL;
	struct leat_bpf_check found;
	const struct leat_bpf_prog *prog;
	int err = open_object(check, diag, &obj), opened = !err;

	if (!err)
		err = leat_bpf_object_load(obj, name, diag);
	if (err && check->json) {
		add_refused(&check->out, name, section, diag);
	} else if (err) {
		print_refused(name, section, diag);
	} else {
		prog = leat_bpf_object_prog_find(obj, name);
		leat_bpf_prog_check(prog, &found);
		if (check->json)
			add_good(&check->out, prog, &found);
		else
			print_good(prog, &found);
	}
	if (opened)
		leat_bpf_object_close(obj);
	leat_diag_destroy(diag);
	return err;
}

/* ---- the object ---- */

static int check_all(struct check *check, struct leat_bpf_object *obj)
{
	struct leat_bpf_prog *prog;
	unsigned int i;
	int err = 0;

	for (i = 0; (prog = leat_bpf_object_prog_get(obj, i)); i++)
		if (check_prog(check, leat_bpf_prog_name(prog), leat_bpf_prog_section(prog)))
			err = -EINVAL;
	return err;
}

static int check_object(struct check *check)
{
	struct leat_diag *diag = leat_diag_create();
	struct leat_bpf_object *obj = NULL;
	struct leat_bpf_prog *prog;
	int err = open_object(check, diag, &obj);

	if (err) {
		print_mistakes(diag, err, check->object);
		leat_diag_destroy(diag);
		return err;
	}
	prog = check->prog ? leat_bpf_object_prog_find(obj, check->prog) : NULL;
	if (prog) {
		err = check_prog(check, leat_bpf_prog_name(prog), leat_bpf_prog_section(prog));
	} else if (check->prog) {
		fprintf(stderr, "leat prog: %s has no program '%s'\n", check->object, check->prog);
		err = -ENOENT;
	} else {
		err = check_all(check, obj);
	}
	leat_bpf_object_close(obj);
	leat_diag_destroy(diag);
	return err;
}

static int run_check(struct check *check)
{
	struct leat_bpf_env_opts opts = {
		.size = sizeof(opts), .replay = true, .seed = 1, .kernel_verifier = check->kernel
	};
	struct leat_json_out *j = &check->out;
	int err;

	leat_xdp_bpf_init();
	err = leat_bpf_env_create(&opts, &check->env);
	if (err) {
		print_mistakes(NULL, err, check->object);
		return EXIT_CONFIG;
	}
	j->out = stdout;
	if (check->json) {
		leat_json_open(j, NULL, '{');
		leat_json_string(j, "object", check->object);
		leat_json_open(j, "programs", '[');
	}
	err = check_object(check);
	if (check->json) {
		leat_json_close(j, ']');
		leat_json_close(j, '}');
		putchar('\n');
	}
	leat_bpf_env_destroy(check->env);
	return err ? EXIT_CONFIG : EXIT_GOOD;
}

/* ---- the command line ---- */

static int usage_error(const char *message)
{
	fprintf(stderr, "leat prog: %s (try: leat prog --help)\n", message);
	return EXIT_USAGE;
}

static int parse_option(struct check *check, int letter)
{
	switch (letter) {
	case 'p':
		check->prog = optarg;
		return EXIT_GOOD;
	case 'S':
		check->strict = true;
		return EXIT_GOOD;
	case 'k':
		check->kernel = LEAT_BPF_KERNEL_ASK;
		if (optarg && !strcmp(optarg, "require"))
			check->kernel = LEAT_BPF_KERNEL_REQUIRE;
		else if (optarg && strcmp(optarg, "ask") != 0)
			return usage_error("--kernel takes ask or require");
		return EXIT_GOOD;
	case 's':
		if (!strchr(optarg, '='))
			return usage_error("--set takes VAR=VALUE");
		if (check->n_sets == SETS_MAX)
			return usage_error("--set is given too often");
		check->set[check->n_sets++] = optarg;
		return EXIT_GOOD;
	case 'j':
		check->json = true;
		return EXIT_GOOD;
	case 'b':
		check->btf = optarg;
		return EXIT_GOOD;
	default:
		fputs("try: leat prog --help\n", stderr);
		return EXIT_USAGE;
	}
}

int prog_command(int argc, char **argv, const struct command *self)
{
	static const struct option options[] = {
		{ "prog", required_argument, NULL, 'p' }, { "strict", no_argument, NULL, 'S' },
		{ "set", required_argument, NULL, 's' },  { "json", no_argument, NULL, 'j' },
		{ "kernel", optional_argument, NULL, 'k' },
		{ "btf", required_argument, NULL, 'b' },  { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct check check = { .object = NULL };
	char title[] = "leat prog";
	int letter, code;

	if (argc > 1 && (!strcmp(argv[1], "list") || !strcmp(argv[1], "show")))
		return show_command(argc, argv, self);
	argv[0] = title;
	optind = 1;
	while ((letter = getopt_long(argc, argv, "p:s:jh", options, NULL)) != -1) {
		if (letter == 'h') {
			fputs(self->help, stdout);
			return EXIT_GOOD;
		}
		code = parse_option(&check, letter);
		if (code)
			return code;
	}
	if (optind == argc || strcmp(argv[optind], "check") != 0)
		return usage_error(optind == argc ? "what shall be done: check, list or show" : "all it can do is: check, list, show");
	if (optind + 2 != argc)
		return usage_error("one object is to be named");
	check.object = argv[optind + 1];
	return run_check(&check);
}
