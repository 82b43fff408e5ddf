/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.h: what a registered thread is. See thread.c. */
#ifndef LEAT_MEM_THREAD_H
#define LEAT_MEM_THREAD_H

#include <leat/page_pool.h>

LEAT_STATIC_ASSERT(LEAT_THREADS_MAX == 64, "numbers are bits of one 64-bit word");

struct leat_thread {
	unsigned int id; /* 0: shared; else this thread's alone */
};

#endif
