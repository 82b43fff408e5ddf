/* SPDX-License-Identifier: BSD-3-Clause */
/* control_json.h: what the files share that write replies of the control socket. */
#ifndef LEAT_CTL_CONTROL_JSON_H
#define LEAT_CTL_CONTROL_JSON_H

#include <jansson.h>

#include "base/json_out.h"
#include "ctl/datapath.h"

/** A request that is being answered. */
struct leat_control_ask {
	struct leat_datapath *dp;
	const json_t *request;     /* an object with known members only */
	struct leat_json_out json; /* within the object that is the reply */
	char error[200];           /* a sentence, and what was written does not count; empty: all is well */
};

/** Writes the members of a reply. */
typedef void leat_control_fn(struct leat_control_ask *ask);

/** The text of an optional member, or NULL. */
const char *leat_control_text(const struct leat_control_ask *ask, const char *member);
/** Says what is wrong. */
void leat_control_fail(struct leat_control_ask *ask, const char *fmt, ...) LEAT_PRINTF(2, 3);

/* control_json_ports.c */
leat_control_fn leat_control_stats, leat_control_ports, leat_control_pools, leat_control_drops;
/* control_json_maps.c */
leat_control_fn leat_control_progs, leat_control_maps;

#endif
