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

/* ---- two chunks of one block ---- */

enum block_fault { BLOCK, BLOCK_BEGUN_BY_STORE, BLOCK_ENDED_BY_STORE, BLOCK_RETURNED_EARLY };

/**
 * A block of two pages, each a chunk of which one piece is left. One thread puts the first one's, another makes a second
 * reference to the other one's and puts both. Whichever page comes back is cut again by the owner, and both together as
 * one chunk, on which the first page's number stands twice.
 */
template <block_fault wrong = BLOCK> struct block_model : rl::test_suite<block_model<wrong>, 3> {
	enum { PAGES = 2, IS_SHARED = 1, IS_FRAG = 2 };

	/* leat_block */
	rl::atomic<unsigned int> flags, chunk[PAGES];
	rl::atomic<int> refs[PAGES];
	rl::atomic<unsigned int> back[PAGES]; /* published: what a return ring does */
	rl::var<int> content[PAGES];
	unsigned int ends;

	void before()
	{
		for (unsigned int page = 0; page < PAGES; page++) {
			STORE(chunk[page], page + 1, RELAXED);
			STORE(refs[page], 1, RELAXED);
			STORE(back[page], 0u, RELAXED);
			content[page]($) = 1;
		}
		STORE(flags, (unsigned int)IS_FRAG, RELAXED);
		ends = 0;
	}

	/* leat_chunk_find() */
	unsigned int find(unsigned int page)
	{
		unsigned int mark = 0;

		if (LOAD(flags, RELAXED) & IS_FRAG)
			mark = LOAD(chunk[page], RELAXED);
		RL_ASSERT(mark); /* else: it was taken for an ordinary run */
		return mark - 1;
	}

	/* leat_chunk_begin() */
	void begin(unsigned int first, unsigned int pages)
	{
		for (unsigned int page = first; page < first + pages; page++) {
			content[page]($) = 1;
			STORE(chunk[page], first + 1, RELAXED);
		}
		STORE(refs[first], 1, RELAXED);
		if (pages == PAGES || wrong == BLOCK_BEGUN_BY_STORE)
			STORE(flags, (unsigned int)IS_FRAG, RELAXED);
		else
			FETCH_OR(flags, (unsigned int)IS_FRAG, RELAXED);
	}

	/* leat_chunk_end() */
	unsigned int end(unsigned int first)
	{
		unsigned int page;

		for (page = first; page < PAGES && LOAD(chunk[page], RELAXED) == first + 1; page++) {
			content[page]($) = 0;
			STORE(chunk[page], 0u, RELAXED);
		}
		if (page - first == PAGES || wrong == BLOCK_ENDED_BY_STORE)
			STORE(flags, 0u, RELAXED);
		return page;
	}

	/* put_one() */
	void put(unsigned int at)
	{
		unsigned int first = find(at), page = first, stop;

		RL_ASSERT(content[at]($));
		if (LOAD(refs[first], ACQUIRE) != 1 && FETCH_SUB(refs[first], 1, ACQ_REL) != 1)
			return;
		STORE(refs[first], 0, RELAXED);
		if (wrong == BLOCK_RETURNED_EARLY)
			STORE(back[first], 1u, RELEASE);
		stop = end(first);
		ends++;
		for (; page < stop; page++)
			STORE(back[page], 1u, RELEASE);
	}

	/* leat_page_pool_get_page(), leat_run_is_shared() */
	void share(unsigned int page)
	{
		FETCH_ADD(refs[find(page)], 1, RELAXED);
		FETCH_OR(flags, (unsigned int)IS_SHARED, RELAXED);
		RL_ASSERT(LOAD(flags, RELAXED) & IS_SHARED);
	}

	/* drain_ring(): whether the page is free */
	bool take(unsigned int page)
	{
		if (!LOAD(back[page], ACQUIRE))
			return false;
		STORE(back[page], 0u, RELAXED);
		return true;
	}

	void cut_again()
	{
		bool first = take(0), second = take(1);

		if (first && second) {
			begin(0, 2);
			put(1);
		} else if (first || second) {
			begin(second, 1);
			put(second);
		}
	}

	void thread(unsigned int id)
	{
		if (id == 0) {
			cut_again();
		} else if (id == 1) {
			put(0);
		} else {
			share(1);
			put(1);
			put(1);
		}
	}

	void after()
	{
		RL_ASSERT(ends >= 2 && ends <= 3);
		for (unsigned int page = 0; page < PAGES; page++)
			RL_ASSERT(LOAD(back[page], RELAXED) && !LOAD(chunk[page], RELAXED));
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
	holds<block_model<> >("two chunks of a block", bound(4));
	fails<block_model<BLOCK_BEGUN_BY_STORE> >("two chunks of a block, one begun by a store", bound(4), wrong);
	fails<block_model<BLOCK_ENDED_BY_STORE> >("two chunks of a block, one ended by a store", bound(4), wrong);
	fails<block_model<BLOCK_RETURNED_EARLY> >("two chunks of a block, returned before it is ended", bound(4), race);
	return litmus_end();
}
