/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.cc: model of grace periods, src/base/epoch.h.
 */
#include "litmus.hpp"

enum fault { NONE, NO_FENCE_ONLINE, NO_FENCE_BEGIN, SEEN_RELAXED, PASSED_RELAXED, READS_OFFLINE };

/**
 * A reader reads what a pointer points to, passes a quiescent state, reads again, sleeps, reads again. The control
 * thread publishes another object and writes the old one after a grace period.
 */
template <fault wrong = NONE> struct epoch_model : rl::test_suite<epoch_model<wrong>, 2> {
	rl::atomic<unsigned int> now, seen, pointer;
	rl::var<unsigned int> object[2];

	void before()
	{
		STORE(now, 1u, RELAXED);
		STORE(seen, 0u, RELAXED);
		STORE(pointer, 0u, RELAXED);
		object[0]($) = 1;
	}

	/* leat_epoch_online() */
	void online()
	{
		unsigned int epoch = LOAD(now, ACQUIRE);

		STORE(seen, epoch, wrong == SEEN_RELAXED ? RELAXED : RELEASE);
		if (wrong != NO_FENCE_ONLINE)
			FENCE_SEQ_CST();
	}

	/* leat_epoch_offline() */
	void offline()
	{
		STORE(seen, 0u, wrong == SEEN_RELAXED ? RELAXED : RELEASE);
	}

	/* leat_epoch_quiescent() */
	void quiescent()
	{
		if (LOAD(now, RELAXED) != LOAD(seen, RELAXED))
			online();
	}

	/* leat_epoch_begin() */
	unsigned int begin()
	{
		unsigned int number = FETCH_ADD(now, 1u, ACQ_REL) + 1;

		if (wrong != NO_FENCE_BEGIN)
			FENCE_SEQ_CST();
		return number;
	}

	/* leat_epoch_passed() */
	bool passed(unsigned int number)
	{
		unsigned int at = LOAD(seen, wrong == PASSED_RELAXED ? RELAXED : ACQUIRE);

		return !(at && at < number);
	}

	void read()
	{
		RL_ASSERT(object[LOAD(pointer, ACQUIRE)]($) == 1);
	}

	void thread(unsigned int id)
	{
		unsigned int number;

		if (id == 0) {
			online();
			read();
			quiescent();
			read();
			offline();
			if (wrong != READS_OFFLINE)
				online();
			read();
			offline();
		} else {
			object[1]($) = 1;
			STORE(pointer, 1u, RELEASE);
			number = begin();
			while (!passed(number)) /* leat_epoch_synchronize() */
				rl::yield(1, $);
			object[0]($) = 0;
		}
	}
};

int main()
{
	const rl::test_result_e race = rl::test_result_data_race;

	holds<epoch_model<> >("epoch", bound(4));
	holds<epoch_model<> >("epoch", random_runs(200000));
	fails<epoch_model<NO_FENCE_ONLINE> >("epoch, no fence of the reader", bound(4), race);
	fails<epoch_model<NO_FENCE_BEGIN> >("epoch, no fence of control", bound(4), race);
	fails<epoch_model<SEEN_RELAXED> >("epoch, state said relaxed", bound(4), race);
	fails<epoch_model<PASSED_RELAXED> >("epoch, state read relaxed", bound(4), race);
	fails<epoch_model<READS_OFFLINE> >("epoch, a reader that reads offline", bound(4), race);
	return litmus_end();
}
