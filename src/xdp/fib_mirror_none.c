/* SPDX-License-Identifier: BSD-3-Clause */
/* fib_mirror_none.c: where there is no libmnl: no mirror of the kernel's routes. */
#include <errno.h>
#include <leat/fib.h>

int leat_fib_mirror_start(struct leat_fib *fib, const struct leat_fib_mirror_opts *opts, struct leat_diag *diag,
			  struct leat_fib_mirror **mirror)
{
	(void)fib;
	(void)opts;
	(void)mirror;
	leat_diag_add(diag, "leat was built without libmnl, so the kernel's routes cannot be mirrored");
	return -EOPNOTSUPP;
}

void leat_fib_mirror_stop(struct leat_fib_mirror *mirror)
{
	(void)mirror;
}

void leat_fib_mirror_stats(const struct leat_fib_mirror *mirror, struct leat_fib_mirror_stats *stats)
{
	(void)mirror;
	*stats = (struct leat_fib_mirror_stats){ 0 };
}
