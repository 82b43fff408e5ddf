/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli.h: what the files of the command line share: the commands, exit codes, and the table of a running datapath.
 */
#ifndef LEAT_CLI_H
#define LEAT_CLI_H

#include <leat/datapath.h>
#include <stdio.h>

/* What `leat` ends with; documented in `leat run --help` and `leat replay --help`. */
enum exit_code {
	EXIT_GOOD = 0,
	EXIT_CONFIG = 1,  /* the configuration is wrong, or the datapath could not start, or none answers */
	EXIT_USAGE = 2,   /* the command line is wrong */
	EXIT_IDLE = 3,    /* --expect-traffic, and no packet reached an end */
	EXIT_FAILED = 4,  /* a port failed during the run */
	EXIT_LEAK = 5,    /* buffers were outstanding at the end */
	EXIT_TRAPS = 6,   /* replay: the program was ended by traps */
	EXIT_UNEXPECTED = 7, /* replay: --expect, and verdicts differ */
};

/** One command: a row of the table in main.c. */
struct command {
	const char *name;
	const char *summary; /* one line */
	const char *help;    /* the whole text of --help */
	/** argv[0] is the command's name. Returns an exit code. */
	int (*run)(int argc, char **argv, const struct command *self);
};

/** Flushes standard output; false when it cannot be written, which main() says in the end. */
bool output_flush(void);
int run_command(int argc, char **argv, const struct command *self);
extern const char run_help[];
/** Prints what is in @diag to standard error, or @rc about @file when nothing is. */
void print_mistakes(const struct leat_diag *diag, int rc, const char *file);
int prog_command(int argc, char **argv, const struct command *self);
extern const char prog_help[];
/** Shows what a running datapath does: stats, port, pool, map, drops, and prog list. */
int show_command(int argc, char **argv, const struct command *self);
extern const char stats_help[], port_help[], pool_help[], map_help[], drops_help[];
int bench_command(int argc, char **argv, const struct command *self);
extern const char bench_help[];
int replay_command(int argc, char **argv, const struct command *self);
extern const char replay_help[];

/* ---- table.c ---- */

struct table;

/** How a table is to look. */
struct table_style {
	bool in_place; /* drawn over the one before, on a terminal */
	bool colour;
};

/** A table of @dp, which is running or about to; NULL when memory is out. @title is **borrowed**. */
struct table *table_create(struct leat_datapath *dp, const char *title, struct table_style style);
void table_destroy(struct table *table);
/** Shows what has happened since the last call (or the creation), under @note (NULL: none). False: cannot write. */
bool table_draw(struct table *table, const char *note);
/** The statistics of every pool, while all ports are open; free() it. NULL when memory is out. */
char *table_format_pools(struct leat_datapath *dp);
/** Prints the totals of the run to standard output; @seconds is its length. */
void table_print_totals(struct leat_datapath *dp, double seconds, const char *pools);

/** Prints in one line where and why a program was ended, and how often. */
void print_trap(FILE *out, const struct leat_bpf_prog *prog, const struct leat_bpf_trap *trap);

/* ---- units.c ---- */

#define UNIT_SIZE 24

/** "12.3 M" + @unit: three significant digits with a factor of 1000; whole numbers below 1000. */
const char *format_unit(char buf[UNIT_SIZE], double value, const char *unit);
/** "12.0 MiB": with a factor of 1024. */
const char *format_bytes(char buf[UNIT_SIZE], double bytes);
/** "99.9 %" of part in whole, "-" for none. */
const char *format_share(char buf[UNIT_SIZE], double part, double whole);

#endif
