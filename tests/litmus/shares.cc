/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shares.cc: models of runs with several holders, src/mem/run.c, and of chunks that a page_frag_cache cuts,
 * src/mem/page_frag.c.
 */
#include "litmus.hpp"

/* ---- a run with several holders ---- */

enum share_fault { SHARE, SHARE_LOOK_RELAXED, SHARE_PUT_RELAXED, SHARE_BELOW_ZERO, SHARE_KEEPS_COUNT };

/**
 * Three threads hold a run and read it. The first makes a fourth reference and puts both; the second writes when nobody
 * else has it; the third reads and puts. The last put writes the memory for the next holder.
 */
template <share_fault wrong = SHARE> struct share_model : rl::test_suite<share_model<wrong>, 3> {
	rl::atomic<int> shares; /* leat_granule.shares: further holders */
	rl::var<int> content;
	unsigned int frees;

	void before()
	{
		STORE(shares, 2, RELAXED);
		content($) = 1;
		frees = 0;
	}

	/* last_share() */
	bool last_share()
	{
		if (!LOAD(shares, wrong == SHARE_LOOK_RELAXED ? RELAXED : ACQUIRE))
			return true;
		if (FETCH_SUB(shares, 1, wrong == SHARE_PUT_RELAXED ? RELAXED : ACQ_REL))
			return false;
		if (wrong == SHARE_BELOW_ZERO)
			return false;
		if (wrong != SHARE_KEEPS_COUNT)
			STORE(shares, 0, RELAXED);
		return true;
	}

	/* put_one() */
	void put()
	{
		if (!last_share())
			return;
		content($) = 0;
		frees++;
	}

	void thread(unsigned int id)
	{
		RL_ASSERT(content($));
		if (id == 0) {
			FETCH_ADD(shares, 1, RELAXED); /* leat_page_pool_get_page() */
			put();
			RL_ASSERT(content($));
		} else if (id == 1 && !LOAD(shares, ACQUIRE)) { /* leat_run_is_shared() */
			content($) = 2;
		}
		put();
	}

	void after()
	{
		RL_ASSERT(frees == 1);
		RL_ASSERT(LOAD(shares, RELAXED) == 0);
	}
};

/* ---- a chunk of pieces ---- */

enum frag_fault { FRAG, FRAG_LEAVE_RELAXED, FRAG_PUT_RELAXED, FRAG_LOOK_RELAXED, FRAG_BIAS_LOST };

/**
 * A cache has handed out two pieces of a chunk, which two threads read and put. It hands out a third, puts it, leaves
 * the chunk, and when all have come back cuts it again in place.
 */
template <frag_fault wrong = FRAG> struct frag_model : rl::test_suite<frag_model<wrong>, 3> {
	enum { BIAS = 8 };

	rl::atomic<int> refs; /* leat_block.refs[] of the chunk */
	rl::var<int> content;
	int bias;
	unsigned int ends;

	void before()
	{
		STORE(refs, (int)BIAS, RELAXED); /* enter() */
		content($) = 1;
		bias = BIAS - 2;
		ends = 0;
	}

	/* last_frag() */
	bool last_frag()
	{
		if (LOAD(refs, wrong == FRAG_LOOK_RELAXED ? RELAXED : ACQUIRE) != 1 &&
		    FETCH_SUB(refs, 1, wrong == FRAG_PUT_RELAXED ? RELAXED : ACQ_REL) != 1)
			return false;
		STORE(refs, 0, RELAXED);
		return true;
	}

	/* put_one() */
	void put()
	{
		RL_ASSERT(content($));
		if (!last_frag())
			return;
		content($) = 0;
		ends++;
	}

	/* leave() */
	bool leave()
	{
		int give = wrong == FRAG_BIAS_LOST ? bias - 1 : bias;

		return FETCH_SUB(refs, give, wrong == FRAG_LEAVE_RELAXED ? RELAXED : ACQ_REL) == give;
	}

	void thread(unsigned int id)
	{
		if (id == 0) {
			bias--; /* leat_page_frag_alloc_align() */
			put();
			if (leave()) { /* refill() */
				content($) = 2;
				ends++;
			}
		} else {
			put();
		}
	}

	void after()
	{
		RL_ASSERT(ends == 1);
	}
};

int main()
{
	const rl::test_result_e race = rl::test_result_data_race, wrong = rl::test_result_user_assert_failed;

	holds<share_model<> >("share", full());
	fails<share_model<SHARE_LOOK_RELAXED> >("share, count read relaxed", full(), race);
	fails<share_model<SHARE_PUT_RELAXED> >("share, count lowered relaxed", full(), race);
	fails<share_model<SHARE_BELOW_ZERO> >("share, two puts at once", full(), wrong);
	fails<share_model<SHARE_KEEPS_COUNT> >("share, count left below zero", full(), wrong);
	holds<frag_model<> >("chunk", full());
	fails<frag_model<FRAG_LEAVE_RELAXED> >("chunk, left relaxed", full(), race);
	fails<frag_model<FRAG_PUT_RELAXED> >("chunk, count lowered relaxed", full(), race);
	fails<frag_model<FRAG_LOOK_RELAXED> >("chunk, count read relaxed", full(), race);
	fails<frag_model<FRAG_BIAS_LOST> >("chunk, a reference kept", full(), wrong);
	return litmus_end();
}
