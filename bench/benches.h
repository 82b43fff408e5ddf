/* SPDX-License-Identifier: BSD-3-Clause */
/* benches.h: the benches there are, in the order in which --list shows them. A new one is a file and a line here. */
#ifndef LEAT_BENCH_BENCHES_H
#define LEAT_BENCH_BENCHES_H

#include "bench.h"

/* Its programs are compiled by clang. */
#ifdef LEAT_BENCH_BPF
#define BENCH_BPF BENCH(bpf)
#else
#define BENCH_BPF
#endif

#define BENCHES     \
	BENCH(pool) \
	BENCH(return) \
	BENCH(frag) \
	BENCH(free) \
	BENCH(sizing) \
	BENCH(broadcast) \
	BENCH_BPF

#define BENCH(name) extern const struct bench bench_##name;
BENCHES
#undef BENCH

#endif
