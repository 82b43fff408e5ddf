/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h: the full fence, in a form that ThreadSanitizer follows (it knows no stand-alone fences).
 */
#ifndef LEAT_BASE_FENCE_H
#define LEAT_BASE_FENCE_H

#include <leat/base.h>

#if defined(__SANITIZE_THREAD__)
#define LEAT_FENCE_BY_RMW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LEAT_FENCE_BY_RMW 1
#endif
#endif

static inline void leat_fence_seq_cst(void)
{
#ifdef LEAT_FENCE_BY_RMW
	uint32_t word = 0;

	__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
