/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c: `leat replay`: runs an eBPF object on a capture and says what it did. One thread, no privilege; the same
 * arguments give the same output: time is the capture's, random numbers have a seed.
 */
#include "replay.h"

#include <errno.h>
#include <leat/xdp_prog.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

static const char tool[] = "leat replay";

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

/* Whether values of a map name programs, perhaps. */
static bool names_programs(const struct leat_bpf_map_info *info)
{
	bool ports = !strncmp(info->type_name, "devmap", 6);

	return !strcmp(info->type_name, "prog_array") || (ports && info->value_size > 4);
}

/* Whether --map fills such a map, perhaps: then all programs are loaded, because any can be reached. */
static bool needs_all(const struct replay *r)
{
	const struct replay_words *maps = &r->opts->maps;
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i, k;

	for (i = 0; (map = leat_bpf_object_map_get(r->obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		for (k = 0; names_programs(&info) && k < maps->n; k++)
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

int replay_load(struct replay *r, uint32_t engine, leat_bpf_trace_fn *trace)
{
	const struct leat_bpf_env_opts opts = {
		.size = sizeof(opts),
		.cpus = r->opts->cpu + 1,
		.replay = true,
		.seed = r->opts->seed,
		.trace = trace,
		.trace_arg = r,
		.engine = engine,
		.coverage = trace && r->opts->cover,
	};
	int err = leat_bpf_env_create(&opts, &r->env);

	if (!err)
		err = replay_fib_read(r);
	return err ? err : load_object(r);
}

void replay_unload(struct replay *r)
{
	leat_bpf_object_close(r->obj);
	leat_bpf_env_destroy(r->env);
	leat_fib_destroy(r->fib);
	r->obj = NULL;
	r->env = NULL;
	r->fib = NULL;
}

/* ---- the run ---- */

static int run_loaded(struct replay *r)
{
	int code, told;

	r->report = report_create(r);
	if (!r->report) {
		fprintf(stderr, "%s: out of memory\n", tool);
		return EXIT_CONFIG;
	}
	code = replay_run_capture(r);
	told = report_finish(r);
	report_destroy(r->report);
	return told > code ? told : code;
}

static int load_and_run(struct replay *r)
{
	int err, code = EXIT_CONFIG;

	leat_xdp_bpf_init();
	err = replay_expect_read(r);
	if (!err)
		err = replay_time_init(r);
	if (!err)
		err = replay_load(r, r->opts->engine, report_trace);
	if (err)
		print_mistakes(r->diag, err, r->opts->object);
	else
		code = run_loaded(r);
	replay_unload(r);
	replay_expect_free(r->expect);
	replay_time_free(r->times);
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
	code = replay_parse_args(argc, argv, &opts, &done);
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
