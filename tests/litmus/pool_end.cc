/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_end.cc: model of how a pool ends: leat_page_pool_destroy() in src/mem/remote_return.c against threads that
 * return the last of it.
 */
#include "litmus.hpp"

enum end_fault {
	END,
	END_NO_LIGHT,
	END_NO_HEAVY,
	END_CLEARED_LATE,    /* *closed* goes back to 0 when the lock is let go */
	END_WAKERS_IGNORED,  /* destroy does not wait for who is inside wake */
	END_WAITING_RELAXED, /* *waiting* is set relaxed */
	END_RING_TOUCHED,    /* a returner looks at its ring after the publication */
};

/**
 * Two granules of a pool are out, with a thread each, and the pool is destroyed while its owner is waited for. Whoever
 * ends it, the owner then takes the memory for a second pool, one granule of which goes to the first thread, waits, and
 * destroys that, too. The other thread may look at *closed* and *waiting* only now.
 */
template <fences kind, end_fault wrong = END> struct end_model : rl::test_suite<end_model<kind, wrong>, 3> {
	rl::atomic<unsigned int> closed, waiting, waking, wakes;
	rl::atomic<unsigned int> head[2][2];    /* by pool and thread */
	rl::var<unsigned int> mapped[2];        /* a pool's rings: 1, or 0 after munmap() */
	rl::var<unsigned int> pool, out, tail[2]; /* which one the memory is; the owner's, or the lock's holder's */
	rl::var<unsigned int> wake_arg;         /* the embedding program's, which frees it after destroy */
	rl::mutex lock, spare_lock;
	rl::var<unsigned int> spare;
	rl::atomic<unsigned int> handed;        /* the second pool's granule, by some other ring */
	unsigned int made, ended[2];
	bool taken;

	void before()
	{
		for (unsigned int p = 0; p < 2; p++)
			for (unsigned int i = 0; i < 2; i++)
				STORE(head[p][i], 0u, RELAXED);
		STORE(closed, 0u, RELAXED);
		STORE(waking, 0u, RELAXED);
		STORE(wakes, 0u, RELAXED);
		STORE(handed, 0u, RELAXED);
		spare($) = 0;
		made = ended[0] = ended[1] = 0;
		taken = false;
		create(2);
		STORE(waiting, 2u, RELAXED);
	}

	/* leat_page_pool_create() */
	void create(unsigned int cut)
	{
		pool($) = made++;
		mapped[pool($)]($) = 1;
		out($) = cut;
		tail[0]($) = tail[1]($) = 0;
		wake_arg($) = 1;
	}

	/* came_back() */
	bool came_back(unsigned int granules)
	{
		unsigned int old = LOAD(waiting, RELAXED), left;

		do {
			if (!old)
				return false;
			left = granules < old ? old - granules : 0;
		} while (!COMPARE_EXCHANGE(waiting, old, left, SEQ_CST));
		return !left;
	}

	void closed_or_waiting()
	{
		FETCH_ADD(waking, 1u, SEQ_CST);
		if (came_back(1)) {
			FETCH_ADD(wakes, 1u, RELAXED); /* pool->wake(pool->wake_arg), which takes its time */
			RL_ASSERT(wake_arg($) == 1);
		}
		FETCH_SUB(waking, 1u, SEQ_CST);
		if (LOAD(closed, RELAXED))
			try_end();
	}

	/* leat_returner_flush() of one granule of pool @p */
	void flush(unsigned int p, unsigned int ring)
	{
		unsigned int next = LOAD(head[p][ring], RELAXED) + 1;

		RL_ASSERT(mapped[p]($));
		STORE(head[p][ring], next, RELEASE);
		if (wrong == END_RING_TOUCHED)
			RL_ASSERT(mapped[p]($));
		if (wrong != END_NO_LIGHT)
			fence_light<kind>();
		if (LOAD(closed, RELAXED) | LOAD(waiting, RELAXED))
			closed_or_waiting();
	}

	/* leat_page_pool_drain() */
	void drain()
	{
		unsigned int p = pool($), seen;

		RL_ASSERT(mapped[p]($));
		for (unsigned int i = 0; i < 2; i++) {
			seen = LOAD(head[p][i], ACQUIRE);
			out($) -= seen - tail[i]($);
			tail[i]($) = seen;
		}
	}

	/* leat_pool_try_end() */
	void try_end()
	{
		bool end;

		lock.lock($);
		end = LOAD(closed, RELAXED);
		if (end) {
			drain();
			end = !out($);
			if (end && wrong != END_CLEARED_LATE)
				STORE(closed, 0u, RELAXED);
		}
		lock.unlock($);
		if (end)
			free_pool();
	}

	/* leat_pool_free(), leat_pool_put_spare() */
	void free_pool()
	{
		RL_ASSERT(!ended[pool($)]++ && !out($));
		mapped[pool($)]($) = 0;
		STORE(closed, 0u, RELAXED);
		STORE(waiting, 0u, RELAXED);
		spare_lock.lock($);
		spare($) = 1;
		spare_lock.unlock($);
	}

	/* leat_pool_take_spare() */
	bool take_spare()
	{
		bool have;

		spare_lock.lock($);
		have = spare($);
		spare($) = 0;
		spare_lock.unlock($);
		return have;
	}

	/* leat_page_pool_destroy() */
	void destroy()
	{
		STORE(waiting, 0u, SEQ_CST);
		while (wrong != END_WAKERS_IGNORED && LOAD(waking, SEQ_CST))
			rl::yield(1, $);
		lock.lock($);
		STORE(closed, 1u, RELAXED);
		lock.unlock($);
		if (wrong != END_NO_HEAVY)
			fence_heavy<kind, 3>();
		wake_arg($) = 0; /* nobody calls wake any more */
		try_end();
	}

	void thread(unsigned int id)
	{
		if (id == 0) {
			destroy();
			if (!take_spare())
				return;
			create(1);
			STORE(handed, 1u, RELEASE);
			STORE(waiting, 1u, wrong == END_WAITING_RELAXED ? RELAXED : RELEASE); /* wait_prepare() */
			destroy();
			return;
		}
		flush(0, id - 1);
		if (id == 1 && LOAD(handed, ACQUIRE)) {
			taken = true;
			flush(1, 0);
		}
	}

	/* Each pool has ended once. */
	void after()
	{
		if (made == 2 && !taken)
			flush(1, 0);
		RL_ASSERT(ended[0] == 1 && ended[1] == made - 1);
		RL_ASSERT(spare($) && !LOAD(closed, RELAXED) && !LOAD(waking, RELAXED));
	}
};

int main()
{
	const search some = random_runs(200000);

	holds<end_model<BY_FENCES> >("end, fences", bound(2));
	holds<end_model<BY_FENCES> >("end, fences", random_runs(200000));
	holds<end_model<BY_MEMBARRIER> >("end, membarrier", bound(2));
	holds<end_model<BY_MEMBARRIER> >("end, membarrier", random_runs(200000));
	fails<end_model<BY_FENCES, END_NO_LIGHT> >("end, no fence of the returner", some, rl::test_result_user_assert_failed);
	fails<end_model<BY_FENCES, END_NO_HEAVY> >("end, no fence of destroy", some, rl::test_result_user_assert_failed);
	fails<end_model<BY_MEMBARRIER, END_NO_HEAVY> >("end, no membarrier", some, rl::test_result_user_assert_failed);
	fails<end_model<BY_MEMBARRIER, END_CLEARED_LATE> >("end, closed cleared without the lock", some,
							   rl::test_result_data_race);
	fails<end_model<BY_MEMBARRIER, END_WAKERS_IGNORED> >("end, destroy does not wait for wake", some,
							     rl::test_result_data_race);
	fails<end_model<BY_MEMBARRIER, END_WAITING_RELAXED> >("end, waiting set relaxed", some, rl::test_result_data_race);
	fails<end_model<BY_MEMBARRIER, END_RING_TOUCHED> >("end, the ring looked at after the publication", some,
							   rl::test_result_data_race);
	return litmus_end();
}
