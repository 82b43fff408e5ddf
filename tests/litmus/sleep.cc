/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleep.cc: model of how a worker goes to sleep and is woken, src/netdev/worker.c, and of a queue that is scheduled.
 */
#include "litmus.hpp"

enum fault {
	NONE,
	SCHEDULE_RELAXED,   /* leat_napi_schedule() sets the state relaxed */
	SCHEDULE_BY_LOOK,   /* it does not exchange when the state is 1 already */
	WAKE_LOOKS_RELAXED, /* leat_worker_wake() reads *sleeping* relaxed, arm() too */
	NOT_LOOKED_AGAIN,   /* arm() does not look at the queues */
	CLEARED_LATE,       /* a round clears the state after the poll */
	AGAIN_RELAXED,      /* a poll that used its budget sets the state by a store */
};

/**
 * Packets come one by one from one producer; a poll takes one of them at most, and that is its whole budget. The worker
 * makes some rounds, then arms; armed it sleeps until it is woken, which ends the model.
 */
template <unsigned int packets, unsigned int rounds, fault wrong = NONE>
struct sleep_model : rl::test_suite<sleep_model<packets, rounds, wrong>, 2> {
	rl::atomic<unsigned int> head, state, sleeping; /* the queue's source, napi->state, worker->sleeping */
	rl::atomic<unsigned int> wakefd;
	unsigned int tail; /* the worker's */
	bool asleep;

	void before()
	{
		STORE(head, 0u, RELAXED);
		STORE(state, 0u, RELAXED);
		STORE(sleeping, 0u, RELAXED);
		STORE(wakefd, 0u, RELAXED);
		tail = 0;
		asleep = false;
	}

	/* leat_worker_wake() */
	void wake()
	{
		if (!LOAD(sleeping, wrong == WAKE_LOOKS_RELAXED ? RELAXED : SEQ_CST) || !EXCHANGE(sleeping, 0u, SEQ_CST))
			return;
		FETCH_ADD(wakefd, 1u, RELAXED);
	}

	/* leat_napi_schedule() */
	void schedule()
	{
		if (wrong == SCHEDULE_BY_LOOK && LOAD(state, SEQ_CST))
			return;
		if (!EXCHANGE(state, 1u, wrong == SCHEDULE_RELAXED ? RELAXED : SEQ_CST))
			wake();
	}

	/* poll_one(): the driver's poll reads its source, as leat_ptr_ring_take() does */
	void poll_one()
	{
		unsigned int seen = LOAD(head, ACQUIRE);

		if (tail == seen)
			return;
		tail++;
		if (wrong == AGAIN_RELAXED)
			STORE(state, 1u, RELAXED);
		else
			EXCHANGE(state, 1u, SEQ_CST);
	}

	/* round_of_polls(), wants_poll() */
	void round()
	{
		if (!LOAD(state, RELAXED))
			return;
		if (wrong != CLEARED_LATE)
			EXCHANGE(state, 0u, SEQ_CST);
		poll_one();
		if (wrong == CLEARED_LATE)
			EXCHANGE(state, 0u, SEQ_CST);
	}

	/* arm(), nothing_to_do() */
	bool arm()
	{
		EXCHANGE(sleeping, 1u, wrong == WAKE_LOOKS_RELAXED ? RELAXED : SEQ_CST);
		if (wrong == NOT_LOOKED_AGAIN || !LOAD(state, wrong == WAKE_LOOKS_RELAXED ? RELAXED : SEQ_CST))
			return true;
		EXCHANGE(sleeping, 0u, SEQ_CST);
		return false;
	}

	void thread(unsigned int id)
	{
		unsigned int i;

		if (id == 0) {
			for (i = 0; i < rounds; i++)
				round();
			asleep = arm();
		} else {
			for (i = 0; i < packets; i++) {
				STORE(head, i + 1, RELEASE); /* leat_ptr_ring_publish() */
				schedule();
			}
		}
	}

	/* A worker that sleeps over a packet has been woken, and the queue is scheduled. */
	void after()
	{
		if (tail == packets)
			return;
		RL_ASSERT(LOAD(state, RELAXED));
		RL_ASSERT(!asleep || LOAD(wakefd, RELAXED));
	}
};

int main()
{
	const rl::test_result_e lost = rl::test_result_user_assert_failed;

	holds<sleep_model<1, 1> >("sleep, a packet", full());
	holds<sleep_model<2, 2> >("sleep, two packets", full());
	holds<sleep_model<3, 3> >("sleep, three packets", bound(4));
	fails<sleep_model<1, 1, SCHEDULE_RELAXED> >("sleep, state set relaxed", full(), lost);
	fails<sleep_model<2, 2, SCHEDULE_BY_LOOK> >("sleep, no exchange of a state that is 1", full(), lost);
	fails<sleep_model<1, 1, WAKE_LOOKS_RELAXED> >("sleep, looks relaxed", full(), lost);
	fails<sleep_model<1, 1, NOT_LOOKED_AGAIN> >("sleep, queues not looked at again", full(), lost);
	fails<sleep_model<2, 2, CLEARED_LATE> >("sleep, state cleared after the poll", full(), lost);
	fails<sleep_model<2, 2, AGAIN_RELAXED> >("sleep, state set by a store after a full poll", full(), lost);
	return litmus_end();
}
