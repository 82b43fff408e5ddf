/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit.h: the seam to the compiler. What it compiles is what prepare.c made, and what comes out does what the
 * interpreter does: the same results, traps and fuel. A machine that has no compiler has jit_none.c.
 */
#ifndef LEAT_BPF_JIT_H
#define LEAT_BPF_JIT_H

#include "bpf/prog.h"

/** Machine code of one program. */
struct leat_bpf_code {
	const uint8_t *exec; /* mapped to run, never writable; @len bytes of it are code */
	size_t size;         /* bytes mapped */
	uint32_t len;
	const uint8_t *enter; /* the way in from C */
	const uint8_t *main; /* where the program begins */
	uint32_t *entry;     /* where callbacks begin, from exec on, by instruction; NULL: there are none */
};

/**
 * Compiles a program that leat_bpf_interp_prepare() has prepared. *control*. Returns 0; -EOPNOTSUPP (no compiler for
 * this machine); -EACCES (the system does not let us make code); -ENOMEM; -E2BIG.
 */
int leat_bpf_jit_compile(struct leat_bpf_prog *prog);
/** Gives the code up; nobody runs it any more. Nothing happens when there is none. *control*. */
void leat_bpf_jit_free(struct leat_bpf_prog *prog);

/** Runs run->prog, which has code, as leat_bpf_interp_run() does. *worker*. */
uint64_t leat_bpf_jit_run(struct leat_bpf_run *run);
/** Runs the callback at instruction @start in a new frame. After a trap it gives 0. *worker*. */
uint64_t leat_bpf_jit_func(struct leat_bpf_run *run, uint32_t start, const uint64_t args[5]);

/** Whether there is a compiler for this machine. */
#if defined(__x86_64__)
#define LEAT_HAVE_JIT 1
#else
#define LEAT_HAVE_JIT 0
#endif

/** For tests: what the compiler does without, LEAT_JIT_NO_*. Set while nothing is compiled. */
extern unsigned int leat_jit_without;
#define LEAT_JIT_NO_BMI2 0x1u  /* the machine's shifts by any register */
#define LEAT_JIT_NO_AVX 0x2u
#define LEAT_JIT_NO_SHORT 0x4u /* short jumps */
#define LEAT_JIT_NO_SHARED 0x10u /* pieces that programs share: each has its own, as where the shared ones are far */
#define LEAT_JIT_NO_MEMORY 0x8u /* memory for code: as where the system does not allow it */

/* ---- for compilers ---- */

/** Code that is being written: seen at @write, to be run at @exec. */
struct leat_jit_memory {
	uint8_t *write;
	uint8_t *exec;
	size_t size;
	int fd;
};

/** Gets @size bytes, near the library's own code where there is room. Returns 0, -EACCES, -ENOMEM. */
int leat_jit_memory_open(struct leat_jit_memory *mem, size_t size);
/** Writing ends; what is beyond @len is given back. From now on nobody can write to it. Returns 0 or -EACCES. */
int leat_jit_memory_finish(struct leat_jit_memory *mem, size_t len);
/** Gives up memory, finished or not. */
void leat_jit_memory_abandon(struct leat_jit_memory *mem);

/** Adds a program to the map of names that perf(1) reads; a map that cannot be written is left alone. */
void leat_jit_perf_add(const struct leat_bpf_prog *prog);

/* What compiled code calls: jit_run.c. */
bool leat_jit_access(struct leat_bpf_run *run, uint64_t addr, uint32_t insn);
uint64_t leat_jit_call(struct leat_bpf_run *run, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
const void *leat_jit_tail(struct leat_bpf_run *run, uint64_t ctx, uint64_t map, uint64_t index);

#endif
