/* SPDX-License-Identifier: BSD-3-Clause */
/* benches.h: the benches there are, in the order in which --list shows them. A new one is a file and a line here. */
#ifndef LEAT_BENCH_BENCHES_H
#define LEAT_BENCH_BENCHES_H

#include "bench.h"

#define BENCHES     \
	BENCH(pool) \
	BENCH(return) \
	BENCH(frag) \
	BENCH(free) \
	BENCH(sizing)

#define BENCH(name) extern const struct bench bench_##name;
BENCHES
#undef BENCH

#endif
