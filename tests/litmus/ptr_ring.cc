/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ptr_ring.cc: model of src/netdev/ptr_ring.h.
 *
 * A ring of two, three pointers, two of them in a bulk. What a pointer points to is written before and read after;
 * slots are used again.
 */
#include "litmus.hpp"

enum fault { NONE, HEAD_RELAXED, HEAD_SEEN_RELAXED, TAIL_RELAXED, TAIL_SEEN_RELAXED };

template <fault wrong> struct ptr_ring : rl::test_suite<ptr_ring<wrong>, 2> {
	enum { ROOM = 2, MASK = ROOM - 1, PTRS = 3 };

	rl::atomic<unsigned int> head, tail;
	rl::var<unsigned int> slot[ROOM], object[PTRS + 1];
	unsigned int next_head, tail_seen;    /* producer's: its own head, its copy of tail */
	unsigned int next_tail, head_seen;    /* consumer's */
	unsigned int sent, taken;

	void before()
	{
		STORE(head, 0u, RELAXED);
		STORE(tail, 0u, RELAXED);
		next_head = tail_seen = next_tail = head_seen = sent = taken = 0;
	}

	/* leat_ptr_ring_room() */
	unsigned int room(unsigned int n)
	{
		unsigned int room = ROOM - (next_head - tail_seen);

		if (room < n) {
			tail_seen = LOAD(tail, wrong == TAIL_SEEN_RELAXED ? RELAXED : ACQUIRE);
			room = ROOM - (next_head - tail_seen);
		}
		return room < n ? room : n;
	}

	void produce(unsigned int n)
	{
		unsigned int i;

		n = room(n);
		for (i = 0; i < n; i++) {
			sent++;
			object[sent]($) = 100 + sent;
			slot[(next_head + i) & MASK]($) = sent; /* leat_ptr_ring_write() */
		}
		next_head += n;
		STORE(head, next_head, wrong == HEAD_RELAXED ? RELAXED : RELEASE); /* leat_ptr_ring_publish() */
	}

	/* leat_ptr_ring_take() */
	void consume(unsigned int n)
	{
		unsigned int i, ptr, have = head_seen - next_tail;

		if (have < n) {
			head_seen = LOAD(head, wrong == HEAD_SEEN_RELAXED ? RELAXED : ACQUIRE);
			have = head_seen - next_tail;
		}
		if (have < n)
			n = have;
		for (i = 0; i < n; i++) {
			ptr = slot[(next_tail + i) & MASK]($);
			RL_ASSERT(ptr == ++taken); /* in order, none lost, none twice */
			RL_ASSERT(object[ptr]($) == 100 + ptr);
		}
		next_tail += n;
		STORE(tail, next_tail, wrong == TAIL_RELAXED ? RELAXED : RELEASE);
	}

	void thread(unsigned int id)
	{
		if (id == 0) {
			produce(2);
			produce(1);
			if (sent < PTRS)
				produce(1);
		} else {
			consume(1);
			consume(2);
			consume(1);
		}
	}

	void after()
	{
		while (taken < sent)
			consume(2); /* a published pointer is never stuck */
	}
};

int main()
{
	holds<ptr_ring<NONE> >("ptr_ring", full());
	fails<ptr_ring<HEAD_RELAXED> >("ptr_ring, head stored relaxed", full(), rl::test_result_data_race);
	fails<ptr_ring<HEAD_SEEN_RELAXED> >("ptr_ring, head read relaxed", full(), rl::test_result_data_race);
	fails<ptr_ring<TAIL_RELAXED> >("ptr_ring, tail stored relaxed", full(), rl::test_result_data_race);
	fails<ptr_ring<TAIL_SEEN_RELAXED> >("ptr_ring, tail read relaxed", full(), rl::test_result_data_race);
	return litmus_end();
}
