/* SPDX-License-Identifier: BSD-3-Clause */
/* fib.h: the forwarding table of a configuration, put into one. See fib.c. */
#ifndef LEAT_CTL_FIB_H
#define LEAT_CTL_FIB_H

#include "ctl/config.h"

/**
 * Puts what the section "fib" says (not a mirror) into @fib, in place of what was there. MTUs that it does not say are
 * those of the ports of @net, or 1500 without one; MAC addresses are 02:00:00:00:NN:NN by the port's number. Mistakes
 * go to @diag. Returns 0 or a negative errno.
 */
int leat_fib_fill(const struct leat_config *config, struct leat_net *net, struct leat_fib *fib, struct leat_diag *diag);
/** Starts the mirror that the section asks for. */
int leat_fib_start_mirror(const struct leat_config *config, const struct leat_log *log, struct leat_fib *fib,
			  struct leat_diag *diag, struct leat_fib_mirror **mirror);

#endif
