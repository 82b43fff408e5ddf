/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h: which size of 2^order pages to ask for next; one policy for every user. The caller's thread.
 *
 * Other threads may read what is asked for next (statistics). The largest size is asked for first. A size that cannot be had is followed at once by the next smaller one. After
 * `wait` successes the next larger one is tried again; when that try fails the wait doubles, from ORDER_WAIT_MIN to
 * ORDER_WAIT_MAX, and when it succeeds it is short again. So a shortage costs at most one vain try for each
 * ORDER_WAIT_MAX pieces while it lasts, and the largest size is back soon after it is over.
 *
 *	do {
 *		order = leat_order_next(&policy);
 *		piece = ask(order);
 *	} while (!piece && leat_order_fail(&policy, order));
 *	if (piece)
 *		leat_order_ok(&policy);
 */
#ifndef LEAT_MEM_ORDER_H
#define LEAT_MEM_ORDER_H

#include <leat/page_pool.h>

#define LEAT_ORDER_WAIT_MIN 16u
#define LEAT_ORDER_WAIT_MAX 1024u

static inline void leat_order_init(struct leat_order *policy, unsigned int max)
{
	policy->order = policy->max = (uint8_t)max;
	policy->wait = LEAT_ORDER_WAIT_MIN;
	policy->left = 0;
	policy->trying = false;
}

/** What to ask for. A caller that has use for less may ask for less. */
static inline unsigned int leat_order_next(const struct leat_order *policy)
{
	return policy->order;
}

/** @order could not be had. Returns false when there is nothing smaller to ask for. */
static inline bool leat_order_fail(struct leat_order *policy, unsigned int order)
{
	if (policy->trying && policy->wait < LEAT_ORDER_WAIT_MAX)
		policy->wait *= 2;
	policy->trying = false;
	policy->left = policy->wait;
	__atomic_store_n(&policy->order, (uint8_t)(order ? order - 1 : 0), __ATOMIC_RELAXED);
	return order != 0;
}

/** A piece was had. */
static inline void leat_order_ok(struct leat_order *policy)
{
	if (leat_likely(policy->order == policy->max && !policy->trying))
		return;
	if (policy->trying) {
		policy->trying = false;
		policy->wait = LEAT_ORDER_WAIT_MIN;
		policy->left = policy->wait;
	}
	if (policy->order == policy->max || --policy->left)
		return;
	__atomic_store_n(&policy->order, policy->order + 1, __ATOMIC_RELAXED);
	policy->trying = true;
}

#endif
