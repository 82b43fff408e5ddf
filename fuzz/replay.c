/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c: gives every file of the folders named on the command line to a fuzzed function, whole and cut at a few
 * places. Prints TAP: one point a folder. A crash is a failure by itself.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define CUTS 8u

/* A copy of exactly that size, so that a sanitizer sees every step outside. */
static void give(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static int give_file(const char *path)
{
	uint8_t *bytes;
	struct stat st;
	size_t i, len;
	FILE *f = fopen(path, "r");

	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		if (f)
			fclose(f);
		return 0;
	}
	bytes = malloc((size_t)st.st_size + 1);
	len = bytes ? fread(bytes, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	for (i = 0; bytes && i <= CUTS; i++)
		give(bytes, len * i / CUTS);
	free(bytes);
	return 1;
}

static int give_folder(const char *folder)
{
	struct dirent *entry;
	char path[4096];
	DIR *dir = opendir(folder);
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		n += give_file(path);
	}
	if (dir)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	int i, n, failed = 0;

	printf("1..%d\n", argc - 1);
	for (i = 1; i < argc; i++) {
		n = give_folder(argv[i]);
		failed |= n == 0;
		printf("%sok %d - %d files\n", n ? "" : "not ", i, n);
		fflush(stdout);
	}
	return failed;
}
