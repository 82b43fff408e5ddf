/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.c: a small number for each thread that touches packet memory.
 *
 * Numbers 1..LEAT_THREADS_MAX - 1 belong to one thread at a time; a pool keeps a return ring per number, which the
 * next thread with that number takes over (the lock below orders the two). Threads beyond that share number 0, whose
 * ring has a lock. A number is let go when its thread ends.
 */
#include "mem/thread.h"

#include <pthread.h>

__thread struct leat_thread *leat_thread_self __attribute__((tls_model("initial-exec")));

static __thread struct leat_thread self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;
static uint64_t used = 1; /* number 0 is never given out; under the lock */

static void let_go(void *arg)
{
	struct leat_thread *thread = arg;

	pthread_mutex_lock(&lock);
	if (thread->id)
		used &= ~(UINT64_C(1) << thread->id);
	pthread_mutex_unlock(&lock);
	leat_thread_self = NULL;
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, let_go);
}

struct leat_thread *leat_thread_register(void)
{
	if (leat_thread_self)
		return leat_thread_self;
	pthread_once(&once, make_key);
	self.id = 0;
	/* without the destructor a number would never come back, so then the thread shares number 0 */
	if (have_key && !pthread_setspecific(key, &self)) {
		pthread_mutex_lock(&lock);
		if (~used) {
			self.id = (unsigned int)__builtin_ctzll(~used);
			used |= UINT64_C(1) << self.id;
		}
		pthread_mutex_unlock(&lock);
	}
	leat_thread_self = &self;
	return &self;
}
