/* SPDX-License-Identifier: BSD-3-Clause */
/* jit_none.c: there is no compiler for this machine; the interpreter runs programs. */
#include "bpf/engine/jit.h"

#include <errno.h>

int leat_bpf_jit_compile(struct leat_bpf_prog *prog)
{
	(void)prog;
	return -EOPNOTSUPP;
}
