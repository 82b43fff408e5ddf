/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * litmus.hpp: what the models of lock-free protocols share.
 *
 * A model says a protocol again, step by step, with Relacy's atomics and variables in place of C's; beside each step
 * stands the function of the source that it is. Relacy runs its threads in one, switches them at every atomic access,
 * and lets a load find an older value where C11 lets it. A rl::var is memory without atomics: two accesses that nothing
 * orders are an error. So a model also checks that buffers, words and counters are handed over, not only sums.
 *
 * What is explored is said in each line of output: *full* is every schedule and every choice of values; *bound N* is
 * every schedule in which threads are switched at most N times against their will; *random N* is N of them. A full or
 * bounded search lets a load find the newest value and the one before, a random one also the one before that. Not
 * explored: loads that are satisfied after later stores of their thread (load buffering).
 *
 * Each protocol has *faults*: the same model with one order weakened or one step left out. The test fails when Relacy
 * does not find them.
 */
#ifndef LEAT_LITMUS_HPP
#define LEAT_LITMUS_HPP

#include <relacy/relacy.hpp>

#include <cstdio>
#include <sstream>
#include <string>

/* The same shape as the built-in functions in the sources. */
#define LOAD(object, order) (object).load(order, $)
#define STORE(object, value, order) (object).store(value, order, $)
#define EXCHANGE(object, value, order) (object).exchange(value, order, $)
#define FETCH_ADD(object, value, order) (object).fetch_add(value, order, $)
#define FETCH_SUB(object, value, order) (object).fetch_sub(value, order, $)
#define FETCH_OR(object, value, order) (object).fetch_or(value, order, $)
#define COMPARE_EXCHANGE(object, old, value, order) \
	(object).compare_exchange_strong(old, value, order, $, rl::mo_relaxed, $)
#define FENCE_SEQ_CST() rl::atomic_thread_fence(rl::mo_seq_cst, $)

constexpr rl::memory_order RELAXED = rl::mo_relaxed, ACQUIRE = rl::mo_acquire, RELEASE = rl::mo_release,
			   ACQ_REL = rl::mo_acq_rel, SEQ_CST = rl::mo_seq_cst;

/* ---- the asymmetric fence of remote_return.c ---- */

enum fences {
	BY_FENCES,     /* no membarrier(2): a sequentially consistent fence on both sides */
	BY_MEMBARRIER, /* the light side is for the compiler only */
};

/**
 * membarrier(2) as its manual page has it: while the call lasts, each other thread passes through a full fence, at any
 * point between two of its accesses, and those points are not the same moment. So: a full fence of the caller; then for
 * each other thread, in any order and with other threads running in between, a fence that it executes where it stands;
 * a full fence of the caller.
 */
template <int threads> static void membarrier()
{
	typedef rl::aligned<rl::thread_info<threads> > info;
	rl::context &ctx = rl::ctx();
	info *self = static_cast<info *>(static_cast<rl::thread_info<threads> *>(ctx.threadx_));
	int i, me = (int)self->index_, step = threads > 2 && rl::rand(2) ? threads - 1 : 1;

	FENCE_SEQ_CST();
	for (i = (me + step) % threads; i != me; i = (i + step) % threads) {
		ctx.sched();
		self[i - me].atomic_thread_fence_seq_cst(ctx.seq_cst_fence_order_);
	}
	FENCE_SEQ_CST();
}

template <fences kind, int threads> static void fence_heavy()
{
	if (kind == BY_MEMBARRIER)
		membarrier<threads>();
	else
		FENCE_SEQ_CST();
}

template <fences kind> static void fence_light()
{
	if (kind == BY_FENCES)
		FENCE_SEQ_CST();
}

/* ---- running ---- */

struct search {
	rl::scheduler_type_e type;
	unsigned int n; /* executions, or the bound */
};

static inline search full()
{
	return search{ rl::sched_full, 0 };
}

static inline search bound(unsigned int n)
{
	return search{ rl::sched_bound, n };
}

static inline search random_runs(unsigned int n)
{
	return search{ rl::sched_random, n };
}

static unsigned int litmus_cases, litmus_failed;

template <class model> static rl::test_result_e litmus_explore(search how, unsigned long long *runs, std::string *says)
{
	rl::test_params params;
	rl::ostringstream out; /* its buffer comes from malloc(), whatever runs */

	params.output_stream = params.progress_stream = &out;
	params.search_type = how.type;
	params.context_bound = how.n;
	params.iteration_count = how.n;
	rl::simulate<model>(params);
	*runs = params.stop_iteration;
	*says = out.str().c_str();
	return params.test_result;
}

static inline void litmus_say(bool good, const char *name, search how, unsigned long long runs, const std::string &end,
			      const std::string &says)
{
	static const char *const names[] = { "random", "bound", "full" };
	std::istringstream lines(says);
	std::string line;

	if (!good)
		while (std::getline(lines, line))
			std::printf("# %s\n", line.c_str());
	std::printf("%s %u - %s: %s", good ? "ok" : "not ok", ++litmus_cases, name, names[how.type]);
	if (how.type == rl::sched_bound)
		std::printf(" %u", how.n);
	std::printf(", %llu executions%s\n", runs, end.c_str());
	std::fflush(stdout);
	litmus_failed += !good;
}

/** The model holds in everything that is explored. */
template <class model> static void holds(const char *name, search how)
{
	unsigned long long runs;
	std::string says;
	rl::test_result_e result = litmus_explore<model>(how, &runs, &says);

	litmus_say(result == rl::test_result_success, name, how, runs, "", says);
}

/** The model has a fault, which is found, as @result. */
template <class model> static void fails(const char *name, search how, rl::test_result_e result)
{
	unsigned long long runs;
	std::string says;
	rl::test_result_e got = litmus_explore<model>(how, &runs, &says);

	litmus_say(got == result, name, how, runs, std::string(", found: ") + rl::test_result_str(got), says);
}

static inline int litmus_end()
{
	std::printf("1..%u\n", litmus_cases);
	return litmus_failed ? 1 : 0;
}

#endif
