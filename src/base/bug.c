/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bug.c: the end of the process after a programmer's mistake. Any thread. Nothing that comes from outside the process
 * may lead here.
 */
#include <leat/base.h>

#include <stdio.h>
#include <stdlib.h>

void leat_bug(const char *what, const char *file, int line)
{
	fprintf(stderr, "leat: bug at %s:%d: %s\n", file, line, what);
	abort();
}
