/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h: what the files share that show what a running datapath does: the client of its control socket, and tables. */
#ifndef LEAT_CLI_SHOW_H
#define LEAT_CLI_SHOW_H

#include <jansson.h>

#include "cli.h"

/* ---- show_client.c ---- */

/** Connects to @socket (NULL: the usual place). Returns a descriptor; -1, having said why in the name of @title. */
int show_connect(const char *title, const char *socket);
/**
 * Sends a request (**consumes**) and waits for its reply. Returns the reply, for json_decref(); NULL, having said why
 * in the name of @title.
 */
json_t *show_ask(const char *title, int fd, json_t *request);
/** What a map holds, with all its elements: asks as often as it takes. As above. */
json_t *show_ask_map(const char *title, int fd, const char *name, const char *prog);

/* ---- show_grid.c ---- */

/** Most columns of a table. */
#define SHOW_GRID_COLS 16

/** A table that is filled row by row and printed with columns as wide as they need to be. */
struct show_grid {
	const char *const *heads; /* of columns, NULL at the end; ">" before it: aligned to the right */
	unsigned int n_cols;
	size_t n, room;
	char **cells;
};

/** Prints a text of a reply; what cannot be printed becomes '?'. */
void show_print(const char *text);
/** Begins one. @heads is **borrowed**. */
void show_grid_init(struct show_grid *grid, const char *const *heads);
/** Fills the next cell. What cannot be printed becomes '?'. */
void show_grid_add(struct show_grid *grid, const char *text);
void show_grid_number(struct show_grid *grid, uint64_t number);
/** Prints and frees it; only the heads when there is no row. */
void show_grid_print(struct show_grid *grid);

/* ---- show_tables.c ---- */

/** Prints a reply for people; @name is what was asked for, or NULL. */
typedef void show_table_fn(const json_t *reply, const char *name);
show_table_fn show_stats, show_ports, show_pools, show_progs, show_maps, show_map, show_drops;

#endif
