/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_return.cc: model of words on their way back: src/mem/remote_return.c.
 */
#include "litmus.hpp"

enum ring_fault { RING, RING_HEAD_RELAXED, RING_HEAD_SEEN_RELAXED, RING_PUBLISHED_EARLY, RING_BELL_TRUSTED, RING_SMALL };

/**
 * Two granules, a ring of two words, three returns: a slot is used again, by a granule that was cut again meanwhile.
 * The holder reads a granule before he returns it; the owner writes it when it has come back.
 */
template <ring_fault wrong> struct ring_model : rl::test_suite<ring_model<wrong>, 2> {
	enum { GRANULES = 2, MASK = wrong == RING_SMALL ? 0 : 1, BELL = 1 };

	rl::atomic<unsigned int> head, doorbell;
	rl::var<unsigned int> word[GRANULES];
	rl::var<unsigned int> content[GRANULES];
	rl::atomic<unsigned int> handed; /* the third: granule + 1, by some other ring */
	unsigned int next_head, tail;    /* each its own thread's */
	bool out[GRANULES], is_free[GRANULES];

	void before()
	{
		STORE(head, 0u, RELAXED);
		STORE(doorbell, 0u, RELAXED);
		STORE(handed, 0u, RELAXED);
		next_head = tail = 0;
		for (unsigned int i = 0; i < GRANULES; i++) {
			content[i]($) = 1;
			out[i] = true;
			is_free[i] = false;
		}
	}

	/* returning thread: leat_returner_add() of one granule, leat_returner_flush() */
	void put(unsigned int granule, unsigned int stamp)
	{
		unsigned int slot = next_head++ & MASK;

		RL_ASSERT(content[granule]($) == stamp); /* the holder's last look */
		if (wrong != RING_PUBLISHED_EARLY)
			word[slot]($) = granule; /* returner_write() */
		STORE(head, next_head, wrong == RING_HEAD_RELAXED ? RELAXED : RELEASE);
		if (wrong == RING_PUBLISHED_EARLY)
			word[slot]($) = granule;
		if (!(LOAD(doorbell, RELAXED) & BELL))
			FETCH_OR(doorbell, (unsigned int)BELL, RELAXED);
	}

	/* drain_ring() */
	unsigned int drain_ring()
	{
		unsigned int seen = LOAD(head, wrong == RING_HEAD_SEEN_RELAXED ? RELAXED : ACQUIRE), total = 0;

		for (; tail != seen; tail++, total++) {
			unsigned int granule = word[tail & MASK]($);

			RL_ASSERT(out[granule] && !is_free[granule]); /* else: read twice */
			out[granule] = false;
			is_free[granule] = true;
			content[granule]($) = 0; /* whoever gets it next writes */
		}
		return total;
	}

	/* leat_pool_drain_rung() */
	unsigned int drain_rung()
	{
		if (!LOAD(doorbell, RELAXED))
			return 0;
		return EXCHANGE(doorbell, 0u, RELAXED) ? drain_ring() : 0;
	}

	/* next_run() of page_pool.c: a granule + 1, or 0 */
	unsigned int next_run()
	{
		for (unsigned int i = 0; i < GRANULES; i++)
			if (is_free[i]) {
				is_free[i] = false;
				out[i] = true;
				content[i]($) = 2;
				return i + 1;
			}
		return 0;
	}

	/* leat_page_pool_alloc_slow(), and the long way */
	unsigned int alloc()
	{
		unsigned int got;

		if (is_free[0])
			return next_run(); /* the next one is free: nobody else is looked at */
		drain_rung();
		got = next_run();
		if (!got && wrong != RING_BELL_TRUSTED && drain_ring()) /* leat_page_pool_drain() */
			got = next_run();
		return got;
	}

	void thread(unsigned int id)
	{
		unsigned int got;

		if (id == 0) {
			got = alloc();
			if (!got)
				got = alloc();
			STORE(handed, got, RELEASE);
		} else {
			put(0, 1);
			put(1, 1);
			got = LOAD(handed, ACQUIRE);
			if (got)
				put(got - 1, 2);
		}
	}

	/* Everything that was published is had, and memory is never called short before. */
	void after()
	{
		unsigned int published = next_head - tail, i;

		for (i = 0; i < GRANULES; i++)
			published += is_free[i];
		for (i = 0; i < published; i++)
			RL_ASSERT(alloc());
		RL_ASSERT(!alloc());
	}
};

int main()
{
	holds<ring_model<RING> >("remote return", full());
	fails<ring_model<RING_HEAD_RELAXED> >("remote return, head stored relaxed", full(), rl::test_result_data_race);
	fails<ring_model<RING_HEAD_SEEN_RELAXED> >("remote return, head read relaxed", full(), rl::test_result_data_race);
	fails<ring_model<RING_PUBLISHED_EARLY> >("remote return, head before the word", full(), rl::test_result_data_race);
	fails<ring_model<RING_BELL_TRUSTED> >("remote return, only rings whose bell is seen", full(),
					      rl::test_result_user_assert_failed);
	fails<ring_model<RING_SMALL> >("remote return, room for fewer words than granules", full(),
				       rl::test_result_user_assert_failed);
	return litmus_end();
}
