/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base.h: what every other header needs: visibility, branch hints, sizes.
 *
 * Fields of open structs that several threads touch are plain integers here, and are read and written with the
 * compiler's __atomic builtins (the C11 memory model), so that every header compiles as C11 and as C++.
 */
#ifndef LEAT_BASE_H
#define LEAT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LEAT_BEGIN_DECLS extern "C" {
#define LEAT_END_DECLS }
#define LEAT_STATIC_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define LEAT_BEGIN_DECLS
#define LEAT_END_DECLS
#define LEAT_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif

/** Exported by the shared library; everything else is hidden. */
#define LEAT_API __attribute__((visibility("default")))
/** A path that is rarely taken: kept out of line and out of the hot text. */
#define LEAT_COLD __attribute__((cold, noinline))
#define LEAT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define leat_likely(x) __builtin_expect(!!(x), 1)
#define leat_unlikely(x) __builtin_expect(!!(x), 0)

/** Size that two threads must keep between what they write, bytes. */
#define LEAT_CACHELINE 64
#define LEAT_CACHELINE_ALIGNED __attribute__((aligned(LEAT_CACHELINE)))

LEAT_BEGIN_DECLS

/**
 * A programmer's mistake was found (a double put, a flush list not empty): says what on standard error and aborts.
 * Never called for anything that a peer, a packet, a program or a file can send.
 */
LEAT_API LEAT_COLD void leat_bug(const char *what, const char *file, int line) __attribute__((noreturn));

/** Asserts a rule of the code itself, in every build. */
#define LEAT_ASSERT(cond)                                           \
	do {                                                        \
		if (leat_unlikely(!(cond)))                         \
			leat_bug(#cond, __FILE__, __LINE__);        \
	} while (0)

LEAT_END_DECLS

#endif
