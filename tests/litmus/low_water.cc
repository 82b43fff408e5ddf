/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * low_water.cc: model of the wait for memory to come back: leat_page_pool_wait_prepare() in
 * src/mem/remote_return.c against returning threads.
 */
#include "litmus.hpp"

enum wait_fault { WAIT, WAIT_NO_LIGHT, WAIT_NO_HEAVY, WAIT_NO_LOOK, WAIT_STOPS_AT_1, WAIT_SUBTRACTS_BLINDLY };

/**
 * The first of one or two returning threads returns two granules, one by one, the second one. The owner waits for at
 * least @low_water, and when he need not sleep, waits again for what is then out, up to @times.
 */
template <fences kind, unsigned int returners, unsigned int low_water, unsigned int times, wait_fault wrong = WAIT>
struct wait_model : rl::test_suite<wait_model<kind, returners, low_water, times, wrong>, returners + 1> {
	enum { OUT = returners + 1 };

	rl::atomic<unsigned int> head[2], waiting;
	unsigned int next_head[2]; /* the returning thread's */
	unsigned int tail[2], drained; /* owner's */
	bool asleep;
	unsigned int waits, ends;  /* times *waiting* was set, and times somebody took it to 0 */
	unsigned int wakes;

	void before()
	{
		for (unsigned int i = 0; i < returners; i++) {
			STORE(head[i], 0u, RELAXED);
			next_head[i] = tail[i] = 0;
		}
		STORE(waiting, 0u, RELAXED);
		drained = waits = ends = wakes = 0;
		asleep = false;
	}

	/* came_back() */
	bool came_back(unsigned int granules, unsigned int least = 0)
	{
		unsigned int old = LOAD(waiting, RELAXED), left;

		do {
			if (!old)
				return false;
			left = granules < old ? old - granules : least;
			if (wrong == WAIT_SUBTRACTS_BLINDLY) {
				STORE(waiting, left, SEQ_CST);
				break;
			}
		} while (!COMPARE_EXCHANGE(waiting, old, left, SEQ_CST));
		ends += !left;
		return !left;
	}

	/* leat_returner_flush() of one granule, and closed_or_waiting() */
	void flush(unsigned int ring)
	{
		STORE(head[ring], ++next_head[ring], RELEASE);
		if (wrong != WAIT_NO_LIGHT)
			fence_light<kind>();
		if (LOAD(waiting, RELAXED) && came_back(1))
			wakes++;
	}

	/* leat_page_pool_drain() */
	unsigned int drain()
	{
		unsigned int total = 0, seen;

		for (unsigned int i = 0; i < returners; i++) {
			seen = LOAD(head[i], ACQUIRE);
			total += seen - tail[i];
			tail[i] = seen;
		}
		drained += total;
		return total;
	}

	/* leat_page_pool_wait_prepare() */
	bool wait_prepare()
	{
		unsigned int out = OUT - drained, need = low_water < out ? low_water : out, came;

		waits++;
		STORE(waiting, need, RELEASE);
		if (wrong != WAIT_NO_HEAVY)
			fence_heavy<kind, returners + 1>();
		if (wrong == WAIT_NO_LOOK)
			return false;
		came = drain();
		came_back(came, wrong == WAIT_STOPS_AT_1 && came < need);
		return !LOAD(waiting, RELAXED);
	}

	void thread(unsigned int id)
	{
		if (id == 0) {
			while (!asleep && drained < OUT && waits < times)
				asleep = !wait_prepare();
		} else {
			flush(id - 1);
			if (id == 1)
				flush(0);
		}
	}

	/* All have come back: who sleeps has been woken, and nobody twice. */
	void after()
	{
		RL_ASSERT(!asleep || (!LOAD(waiting, RELAXED) && wakes));
		RL_ASSERT(ends <= waits && wakes <= ends);
	}
};

int main()
{
	const rl::test_result_e lost = rl::test_result_user_assert_failed;

	holds<wait_model<BY_FENCES, 1, 2, 1> >("wait for two, fences, a thread", full());
	holds<wait_model<BY_MEMBARRIER, 1, 2, 1> >("wait for two, membarrier, a thread", full());
	holds<wait_model<BY_FENCES, 1, 1, 2> >("wait for one, again, fences, a thread", bound(4));
	holds<wait_model<BY_MEMBARRIER, 1, 1, 2> >("wait for one, again, membarrier, a thread", bound(4));
	holds<wait_model<BY_FENCES, 2, 2, 3> >("wait for two, again, fences, two threads", bound(2));
	holds<wait_model<BY_MEMBARRIER, 2, 2, 3> >("wait for two, again, membarrier, two threads", bound(2));
	holds<wait_model<BY_MEMBARRIER, 2, 2, 3> >("wait for two, again, membarrier, two threads", random_runs(300000));
	holds<wait_model<BY_MEMBARRIER, 2, 3, 2> >("wait for all, membarrier, two threads", bound(3));
	fails<wait_model<BY_FENCES, 1, 2, 1, WAIT_NO_LIGHT> >("wait, no fence of the returner", full(), lost);
	fails<wait_model<BY_FENCES, 1, 2, 1, WAIT_NO_HEAVY> >("wait, no fence of the owner", full(), lost);
	fails<wait_model<BY_MEMBARRIER, 1, 2, 1, WAIT_NO_HEAVY> >("wait, no membarrier", full(), lost);
	fails<wait_model<BY_MEMBARRIER, 1, 2, 1, WAIT_NO_LOOK> >("wait, rings not read again", full(), lost);
	fails<wait_model<BY_MEMBARRIER, 1, 2, 1, WAIT_STOPS_AT_1> >("wait, the owner's subtraction stops at 1", full(), lost);
	fails<wait_model<BY_MEMBARRIER, 2, 2, 1, WAIT_SUBTRACTS_BLINDLY> >("wait, subtraction by a store", bound(3), lost);
	return litmus_end();
}
