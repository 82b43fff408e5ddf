/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_return.c: buffers that come back from other threads, and the end of a pool.
 *
 * Theory of operation
 *
 * A returning thread writes words into its own ring of that pool and publishes them with one release store of head at
 * the end of its put, so nothing is ever stuck. It rings the doorbell, a bit per thread, if the bit is clear. The
 * owner takes the bits with one exchange when its cursor has run out and the next block is not free, and reads those
 * rings: not before, for each look costs both sides a cache line. A bit seen set too late is
 * only a hint lost: the owner reads every ring before it calls memory short, before it waits, and when it closes.
 *
 * Two handshakes need more than acquire and release, because each side writes one word and reads the other's:
 *
 *   returner: head = n      ; reads closed, waiting
 *   owner:    closed/waiting = 1 ; reads every head
 *
 * One of the two must see the other. The returner pays a compiler barrier; the owner, who does this rarely, runs
 * membarrier(2), which is a full fence on every running thread of the process. Where the system has no membarrier
 * both sides use a sequentially consistent fence.
 *
 * Waiting. *waiting* counts down the granules that must come back before the owner is woken:
 *
 *   owner:    waiting = need; heavy fence; read every ring, subtract what came; at 0: do not sleep
 *   returner: head = n; light fence; waiting seen set: subtract the granules of this publication; at 0: wake
 *
 * Both subtract by compare-exchange and stop at 0, so one of them takes it there, once for each time it was set; when
 * that is the owner he does not sleep, when it is a returner it calls the pool's wake function.
 *
 * The owner never sleeps for ever. Each granule that was out when *waiting* was set comes back by a publication that had
 * not been drained by then, made before or after. Either the owner's drain sees that publication, or its returner sees
 * *waiting* as it was set or has become since: so each is subtracted at least once, and after at most *need* granules
 * *waiting* is 0. Several cases of this:
 *   - need is at most what is out and not posted to a device, so that much comes back, however large low_water is. What
 *     a device has comes back by the owner, who is then awake. When nothing is out need is 1 and nobody will wake: the owner has a timer
 *     (STARVED_RETRY_NS in netdev/worker.c).
 *   - A publication that both see is subtracted twice, and so is one that was drained before *waiting* was set and whose
 *     returner looks late: the owner is woken early and finds less than he wanted, which is harmless.
 *   - The owner must not stop at 1 when his own subtraction would reach 0: those who return the rest may have looked
 *     before. (They saw 0, and he saw their words.)
 *   - What the owner puts directly is not subtracted. He is awake then, and prepares again before he sleeps, which sets
 *     *waiting* from what is out now. A returner's subtraction that this overwrites was made after its words were
 *     published and before *waiting* was set, so the drain that follows sees the words.
 *   - Destroy clears *waiting* and lets those finish who are inside wake; from then on no wake is called or missed. A
 *     returner that looks so late that the memory is another pool's subtracts there, once: that owner is woken early.
 *
 * A returner that sees *closed* takes the pool's lock, reads the rings as the owner would, and ends the pool if nothing
 * is out. A pool may therefore end between a thread's release store and its look at *closed*: that is why pools live in
 * memory that is used for pools only (a late look finds 0, or a pool that is closed by now and gets its rings read once
 * more, which is harmless).
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fence.h"
#include "base/heap.h"
#include "mem/page_pool_internal.h"

/* ---- the asymmetric fence ---- */

static pthread_once_t fence_once = PTHREAD_ONCE_INIT;
static bool have_membarrier; /* written once, before the first pool is handed out */

static void fence_init(void)
{
	have_membarrier = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static void fence_heavy(void)
{
	if (have_membarrier && !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	leat_fence_seq_cst();
}

static inline void fence_light(void)
{
	if (leat_likely(have_membarrier))
		atomic_signal_fence(memory_order_seq_cst);
	else
		leat_fence_seq_cst();
}

/* ---- memory for pools and rings ---- */

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct leat_pool *spare;

struct leat_pool *leat_pool_take_spare(void)
{
	struct leat_pool *pool;

	pthread_once(&fence_once, fence_init);
	pthread_mutex_lock(&spare_lock);
	pool = spare;
	if (pool)
		spare = pool->next_spare;
	pthread_mutex_unlock(&spare_lock);
	if (pool)
		return pool;
	pool = leat_heap_zalloc(sizeof(*pool));
	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->ring0_lock, NULL);
	return pool;
}

void leat_pool_put_spare(struct leat_pool *pool)
{
	struct leat_page_pool *pub = &pool->pub;

	/* what a late returner may read is set with atomics; the rest nobody looks at */
	__atomic_store_n(&pub->closed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pub->waiting, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pub->doorbell, 0, __ATOMIC_RELAXED);
	pub->cur = pub->end = pub->first = 0;
	memset(&pub->counts, 0, sizeof(pub->counts));
	memset(pub->ring, 0, sizeof(pub->ring));
	memset(&pool->n_blocks, 0, offsetof(struct leat_pool, lock) - offsetof(struct leat_pool, n_blocks));
	pthread_mutex_lock(&spare_lock);
	pool->next_spare = spare;
	spare = pool;
	pthread_mutex_unlock(&spare_lock);
}

struct leat_return_ring *leat_return_ring_create(uint32_t granules)
{
	struct leat_return_ring *ring;
	uint32_t room = 64;
	size_t size;

	while (room < granules)
		room *= 2;
	size = sizeof(*ring) + room * sizeof(ring->word[0]);
	if (leat_heap_fails_now())
		return NULL;
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring == MAP_FAILED)
		return NULL;
	ring->mask = room - 1;
	ring->size = size;
	return ring;
}

void leat_return_ring_destroy(struct leat_return_ring *ring)
{
	if (ring)
		munmap(ring, ring->size);
}

/* ---- returning thread ---- */

/** Opens the calling thread's ring of @pool, and makes it at the first return. */
static void returner_open(struct leat_returner *r, struct leat_page_pool *pool)
{
	struct leat_thread *thread = leat_thread_register();
	struct leat_return_ring *ring = NULL;

	if (thread->id) {
		ring = pool->ring[thread->id];
		if (leat_unlikely(!ring)) {
			ring = leat_return_ring_create(pool->ring[0]->mask + 1);
			/* pairs with the owner's acquire in drain_ring() */
			__atomic_store_n(&pool->ring[thread->id], ring, __ATOMIC_RELEASE);
		}
	}
	r->thread = thread;
	r->pool = pool;
	r->ring = ring;
	if (leat_unlikely(!ring)) { /* no number of its own, or no memory for a ring: the shared one */
		pthread_mutex_lock(&leat_pool_of(pool)->ring0_lock);
		r->ring = pool->ring[0];
	}
}

static inline void returner_write(struct leat_returner *r)
{
	struct leat_return_ring *ring = r->ring;

	if (r->n) {
		ring->word[ring->next_head++ & ring->mask] = r->first << 6 | (r->n - 1);
		ring->next_granules += r->n;
	}
	r->n = 0;
}

/** Subtracts @granules from what the owner waits for, down to 0. Whether this took it there. */
static bool came_back(struct leat_page_pool *pool, uint64_t granules)
{
	uint32_t waiting = __atomic_load_n(&pool->waiting, __ATOMIC_RELAXED), left;

	do {
		if (!waiting)
			return false;
		left = granules < waiting ? waiting - (uint32_t)granules : 0;
	} while (!__atomic_compare_exchange_n(&pool->waiting, &waiting, left, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return !left;
}

static LEAT_COLD void closed_or_waiting(struct leat_pool *pool, uint64_t granules)
{
	/* counted before the subtraction: destroy waits for it after it has cleared *waiting* */
	__atomic_fetch_add(&pool->waking, 1, __ATOMIC_SEQ_CST);
	if (came_back(&pool->pub, granules) && pool->wake)
		pool->wake(pool->wake_arg);
	__atomic_fetch_sub(&pool->waking, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&pool->pub.closed, __ATOMIC_RELAXED)) /* not any more: somebody else has ended it */
		leat_pool_try_end(pool);
}

void leat_returner_flush(struct leat_returner *r)
{
	struct leat_page_pool *pool = r->pool;
	struct leat_return_ring *ring = r->ring;
	uint64_t bell, granules, before;
	unsigned int id;

	if (!pool)
		return;
	returner_write(r);
	granules = ring->next_granules;
	before = ring->granules;
	id = ring == pool->ring[0] ? 0 : r->thread->id;
	bell = UINT64_C(1) << id;
	r->pool = NULL;
	__atomic_store_n(&ring->granules, granules, __ATOMIC_RELAXED);
	/* pairs with the acquire in drain_ring(); from here on the pool may end under us, but not its memory */
	__atomic_store_n(&ring->head, ring->next_head, __ATOMIC_RELEASE);
	if (leat_unlikely(!id))
		pthread_mutex_unlock(&leat_pool_of(pool)->ring0_lock);
	if (!(__atomic_load_n(&pool->doorbell, __ATOMIC_RELAXED) & bell))
		__atomic_fetch_or(&pool->doorbell, bell, __ATOMIC_RELAXED);
	fence_light(); /* pairs with fence_heavy() in close and wait_prepare */
	if (leat_unlikely(__atomic_load_n(&pool->closed, __ATOMIC_RELAXED) |
			  __atomic_load_n(&pool->waiting, __ATOMIC_RELAXED)))
		closed_or_waiting(leat_pool_of(pool), granules - before);
}

void leat_returner_add(struct leat_returner *r, struct leat_page_pool *pool, uint32_t first, uint32_t n)
{
	if (r->pool != pool) {
		leat_returner_flush(r);
		returner_open(r, pool);
	}
	if (r->n && r->first + r->n == first && first % LEAT_BLOCK_GRANULES) {
		r->n += n; /* the end of a block is the end of a word */
		return;
	}
	if (r->n && first + n == r->first && r->first % LEAT_BLOCK_GRANULES) { /* as they come back from a stack */
		r->first = first;
		r->n += n;
		return;
	}
	returner_write(r);
	r->first = first;
	r->n = n;
}

/* ---- owner ---- */

static uint64_t drain_ring(struct leat_pool *pool, unsigned int id)
{
	/* pairs with the release in returner_open() */
	struct leat_return_ring *ring = __atomic_load_n(&pool->pub.ring[id], __ATOMIC_ACQUIRE);
	uint64_t total = 0;
	uint32_t head, tail;

	if (!ring)
		return 0;
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE); /* pairs with leat_returner_flush() */
	for (tail = ring->tail; tail != head; tail++) {
		uint32_t word = ring->word[tail & ring->mask];
		uint32_t first = word >> 6, n = (word & 63) + 1;
		uint64_t addr = leat_granule_addr(pool->pub.first, first);

		leat_pool_free_granules(pool, leat_block_of(addr), first % LEAT_BLOCK_GRANULES, n);
		total += n;
	}
	ring->tail = tail;
	leat_count(&pool->pub.counts.remote, total);
	return total;
}

uint64_t leat_pool_drain_rung(struct leat_pool *pool)
{
	uint64_t bells, total = 0;

	if (!__atomic_load_n(&pool->pub.doorbell, __ATOMIC_RELAXED))
		return 0;
	bells = __atomic_exchange_n(&pool->pub.doorbell, 0, __ATOMIC_RELAXED);
	for (; bells; bells &= bells - 1)
		total += drain_ring(pool, (unsigned int)__builtin_ctzll(bells));
	return total;
}

uint64_t leat_page_pool_drain(struct leat_page_pool *pub)
{
	uint64_t total = 0;
	unsigned int id;

	for (id = 0; id < LEAT_THREADS_MAX; id++)
		total += drain_ring(leat_pool_of(pub), id);
	return total;
}

uint64_t leat_pool_returning(const struct leat_pool *pool)
{
	/* before the rings: what was drained meanwhile only makes the difference larger */
	uint64_t drained = __atomic_load_n(&pool->pub.counts.remote, __ATOMIC_ACQUIRE), published = 0;
	unsigned int id;

	for (id = 0; id < LEAT_THREADS_MAX; id++) {
		/* pairs with the release in returner_open() */
		const struct leat_return_ring *ring = __atomic_load_n(&pool->pub.ring[id], __ATOMIC_ACQUIRE);

		if (ring)
			published += __atomic_load_n(&ring->granules, __ATOMIC_RELAXED);
	}
	return published > drained ? published - drained : 0;
}

/** Granules to wait for: at least 1, at most what can come back by a ring. */
static uint32_t granules_to_wait_for(const struct leat_pool *pool)
{
	uint64_t out = leat_pool_outstanding(pool), device = leat_pool_device(pool);
	uint64_t need = pool->low_water;

	out = out > device ? out - device : 0;
	need = need < out ? need : out;
	return need ? (uint32_t)need : 1;
}

bool leat_page_pool_wait_prepare(struct leat_page_pool *pub)
{
	__atomic_store_n(&pub->waiting, granules_to_wait_for(leat_pool_of(pub)), __ATOMIC_RELEASE);
	fence_heavy(); /* pairs with fence_light() in leat_returner_flush() */
	came_back(pub, leat_page_pool_drain(pub));
	return !__atomic_load_n(&pub->waiting, __ATOMIC_RELAXED);
}

/* ---- the end ---- */

void leat_pool_try_end(struct leat_pool *pool)
{
	bool end;

	pthread_mutex_lock(&pool->lock);
	end = __atomic_load_n(&pool->pub.closed, __ATOMIC_RELAXED);
	if (end) {
		leat_page_pool_drain(&pool->pub);
		end = !leat_pool_outstanding(pool);
		if (end) /* under the lock: whoever comes next sees a pool that is not closed */
			__atomic_store_n(&pool->pub.closed, 0, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&pool->lock);
	if (end)
		leat_pool_free(pool);
}

void leat_page_pool_destroy(struct leat_page_pool *pub)
{
	struct leat_pool *pool;

	if (!pub)
		return;
	pool = leat_pool_of(pub);
	leat_page_pool_disown(pub);
	__atomic_store_n(&pub->waiting, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&pool->waking, __ATOMIC_SEQ_CST))
		sched_yield();
	pthread_mutex_lock(&pool->lock);
	__atomic_store_n(&pub->closed, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
	fence_heavy(); /* pairs with fence_light() in leat_returner_flush() */
	leat_pool_try_end(pool);
}
