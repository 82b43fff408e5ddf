/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_fib.c: --fib: the forwarding table of a configuration, for programs that ask bpf_fib_lookup(). Nothing else of
 * the configuration counts; ports have their numbers as they would have in a datapath. What cannot be taken is said.
 */
#include "replay.h"

#include <errno.h>

#include "base/heap.h"
#include "ctl/fib.h"

static int check(const struct replay *r, const struct leat_config *config)
{
	const struct leat_yaml_pos pos = config->fib.pos;

	if (config->fib.given && !config->fib.mirror)
		return 0;
	leat_diag_at(r->diag, r->opts->fib, pos.line, pos.column, "fib");
	leat_diag_add(r->diag, config->fib.given ? "a mirror of the kernel's routes would not be the same the next time"
						 : "the section is missing");
	return -EINVAL;
}

static int fill(struct replay *r, const struct leat_config *config)
{
	int err = check(r, config);

	if (!err)
		err = leat_fib_create(NULL, &r->fib);
	if (!err)
		err = leat_fib_fill(config, NULL, r->fib, r->diag);
	if (!err)
		leat_fib_attach(r->fib, r->env);
	return err;
}

int replay_fib_read(struct replay *r)
{
	struct leat_config *config;
	char *text;
	size_t len;
	int err;

	if (!r->opts->fib)
		return 0;
	err = leat_yaml_read_file(r->opts->fib, r->diag, &text, &len);
	if (err)
		return err;
	err = leat_config_parse(text, len, r->opts->fib, r->diag, &config);
	leat_heap_free(text);
	if (err)
		return err;
	err = fill(r, config);
	leat_config_free(config);
	return err;
}
