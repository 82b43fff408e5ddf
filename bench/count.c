/* SPDX-License-Identifier: BSD-3-Clause */
/* count.c: instructions per operation, by callgrind: this program once more, as a child of valgrind. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define COUNT_OPS (64u * BENCH_STEP)

extern char **environ;

/** Runs @argv without output; true when it ended well. */
static bool run_quietly(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/** The number behind "totals:" of callgrind's output, or 0. */
static unsigned long long read_totals(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long totals = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "totals: %llu", &totals) == 1)
			break;
	if (file)
		fclose(file);
	return totals;
}

double bench_instructions(struct bench_run *run, const char *variant)
{
	char self[512], out[64] = "/tmp/leat-bench-XXXXXX", out_file[96], ops[24];
	const char *const argv[] = { "valgrind", "--tool=callgrind", out_file, "--toggle-collect=bench_counted", self,
				     run->bench->name, "--count", variant, "--count-ops", ops, NULL };
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned long long totals;
	int fd;

	if (len <= 0 || run->opts->count)
		return -1;
	self[len] = '\0';
	fd = mkstemp(out);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(out_file, sizeof(out_file), "--callgrind-out-file=%s", out);
	snprintf(ops, sizeof(ops), "%u", COUNT_OPS);
	totals = run_quietly(argv) ? read_totals(out) : 0;
	unlink(out);
	return totals ? (double)totals / COUNT_OPS : -1;
}
