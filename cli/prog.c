/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog.c: `leat prog check`: what the verifier says of each program of an object, without running any.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <leat/xdp_prog.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char prog_help[] =
	"usage: leat prog check OBJ.o [--prog NAME] [--strict] [--set VAR=VALUE] [--json] [--btf FILE]\n"
	"\n"
	"Verifies each program of an eBPF object and says what was found: whether it may run; how many of its memory\n"
	"accesses are proven to stay where they belong and which are tested each time they run; the stack it needs, the\n"
	"longest path through it, and how long the verification took. Nothing is run. Needs no privilege.\n"
	"\n"
	"options:\n"
	"  -p, --prog NAME       this program only, by its name or section\n"
	"      --strict          refuse a program that has accesses which are not proven\n"
	"  -s, --set VAR=VALUE   set a global variable before: what is constant can be proven\n"
	"  -j, --json            print one JSON object\n"
	"      --btf FILE        BTF of a kernel for CO-RE (the running kernel's)\n"
	"  -h, --help            show this text\n"
	"\n"
	"exit codes: 0 all programs are good; 1 one is refused, or the object cannot be read; 2 the command line is wrong\n";

#define SETS_MAX 64

struct check {
	const char *object, *prog, *btf;
	const char *set[SETS_MAX];
	unsigned int n_sets;
	bool strict, json;
	struct leat_bpf_env *env;
	json_t *programs;
};

/* ---- one program ---- */

/** Opens the object anew, for one program's mistakes must not hide another's. */
static int open_object(const struct check *check, struct leat_diag *diag, struct leat_bpf_object **obj)
{
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .btf = check->btf, .strict = check->strict };
	int err = leat_bpf_object_open(check->env, check->object, &opts, diag, obj);
	const char *equals;
	char name[256];
	unsigned int i;

	for (i = 0; !err && i < check->n_sets; i++) {
		equals = strchr(check->set[i], '=');
		snprintf(name, sizeof(name), "%.*s", (int)(equals - check->set[i]), check->set[i]);
		err = leat_bpf_object_set(*obj, name, equals + 1, diag);
		if (err)
			leat_bpf_object_close(*obj);
	}
	return err;
}

static json_t *guards_json(const struct leat_bpf_prog *prog)
{
	json_t *list = json_array();
	struct leat_bpf_guard guard;
	unsigned int i;

	for (i = 0; leat_bpf_prog_guard(prog, i, &guard); i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:s?}", "instruction", (int)guard.insn, "region",
						      guard.region, "source", guard.source));
	return list;
}

static void add_good(struct check *check, const struct leat_bpf_prog *prog, const struct leat_bpf_check *found)
{
	json_array_append_new(
		check->programs,
		json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:I, s:b, s:o}", "name",
			  leat_bpf_prog_name(prog), "section", leat_bpf_prog_section(prog), "verdict", "good",
			  "instructions", (int)found->insns, "reached", (int)found->reached, "proven",
			  (int)found->proven, "tested", (int)found->guarded, "stack", (int)found->stack,
			  "longest_path", (json_int_t)found->longest, "steps", (int)found->walked, "verify_ns",
			  (json_int_t)found->verify_ns, "writes_packet", found->writes_packet, "tests",
			  guards_json(prog)));
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
	for (i = 0; leat_bpf_prog_guard(prog, i, &guard); i++)
		printf("  tested: instruction %u%s%s%s: %s\n", guard.insn, guard.source ? " (" : "",
		       guard.source ? guard.source : "", guard.source ? ")" : "", guard.region);
}

static void add_refused(struct check *check, const char *name, const char *section, const struct leat_diag *diag)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < leat_diag_count(diag); i++)
		json_array_append_new(list, json_string(leat_diag_get(diag, i)->message));
	json_array_append_new(check->programs, json_pack("{s:s, s:s, s:s, s:o}", "name", name, "section", section,
							 "verdict", "refused", "mistakes", list));
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
		add_refused(check, name, section, diag);
	} else if (err) {
		print_refused(name, section, diag);
	} else {
		prog = leat_bpf_object_prog_find(obj, name);
		leat_bpf_prog_check(prog, &found);
		if (check->json)
			add_good(check, prog, &found);
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
	struct leat_bpf_env_opts opts = { .size = sizeof(opts), .replay = true, .seed = 1 };
	json_t *top;
	int err;

	leat_xdp_bpf_init();
	err = leat_bpf_env_create(&opts, &check->env);
	if (err) {
		print_mistakes(NULL, err, check->object);
		return EXIT_CONFIG;
	}
	check->programs = json_array();
	err = check_object(check);
	if (check->json) {
		top = json_pack("{s:s, s:O}", "object", check->object, "programs", check->programs);
		json_dumpf(top, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(top);
	}
	json_decref(check->programs);
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
		{ "btf", required_argument, NULL, 'b' },  { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct check check = { .object = NULL };
	char title[] = "leat prog";
	int letter, code;

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
		return usage_error(optind == argc ? "what shall be done: check" : "all it can do is: check");
	if (optind + 2 != argc)
		return usage_error("one object is to be named");
	check.object = argv[optind + 1];
	return run_check(&check);
}
