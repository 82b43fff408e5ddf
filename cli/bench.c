/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c: `leat bench`: becomes the program leat-bench, which is of its own so that what leat is measured against is
 * never part of leat. It stands beside leat in the build folder, and in libexec when installed.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const char bench_help[] =
	"usage: leat bench NAME [--json] [--rounds N] [--check] [--slice MS] [--cpus A,B,...] [--smoke] [--pcap FILE]\n"
	"       leat bench --list\n"
	"\n"
	"Measures a choice of the design against what would be there without it, in turns, on pinned cores.\n"
	"\n"
	"options:\n"
	"  -l, --list        show the benches\n"
	"  -j, --json        print one JSON object; notes go to standard error\n"
	"  -r, --rounds N    samples of each variant (30)\n"
	"  -c, --check       exit code 1 when a mark fails\n"
	"      --slice MS    milliseconds of a sample (50)\n"
	"      --cpus A,B    cores: the first for the main thread, the others for its partners\n"
	"      --smoke       one round of 1 ms: shows that it works, measures nothing\n"
	"      --pcap FILE   a capture whose lengths of packets the bench sizing is fed with, too\n"
	"  -h, --help        show this text\n"
	"\n"
	"exit codes: 0 it ran; 1 it could not run, buffers were outstanding, or --check and a mark failed;\n"
	"2 the command line is wrong\n";

/** The file leat-bench beside the running program; NULL when the path is too long. */
static const char *beside_program(char *path, size_t size)
{
	static const char name[] = "leat-bench";
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (len <= 0)
		return NULL;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + sizeof(name) > size)
		return NULL;
	memcpy(slash + 1, name, sizeof(name));
	return path;
}

int bench_command(int argc, char **argv, const struct command *self)
{
	char path[PATH_MAX], title[] = "leat bench"; /* what messages begin with */
	const char *beside = beside_program(path, sizeof(path));

	(void)self;
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) { /* also where there is no leat-bench */
		fputs(bench_help, stdout);
		return EXIT_GOOD;
	}
	argv[0] = title;
	if (beside)
		execv(beside, argv);
	execv(LEAT_BENCH_PATH, argv);
	fprintf(stderr, "leat bench: %s: %s (meson: -Dbench=true)\n", LEAT_BENCH_PATH, strerror(errno));
	return EXIT_CONFIG;
}
