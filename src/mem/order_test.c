/* SPDX-License-Identifier: BSD-3-Clause */
/* order_test.c: the policy of sizes, asked by somebody who can have at most a given order. */
#include "mem/order.h"
#include "mem/test_mem.h"

/** Asks for a piece where nothing above @most (-1: nothing at all) is to be had. Returns its order, or -1. */
static int ask(struct leat_order *policy, int most, unsigned int *vain)
{
	unsigned int order;

	do {
		order = leat_order_next(policy);
		if ((int)order <= most) {
			leat_order_ok(policy);
			return (int)order;
		}
		++*vain;
	} while (leat_order_fail(policy, order));
	return -1;
}

static void the_largest_is_asked_for_while_it_is_to_be_had(void **state)
{
	struct leat_order policy;
	unsigned int i, vain = 0;

	(void)state;
	leat_order_init(&policy, 6);
	for (i = 0; i < 10000; i++)
		assert_int_equal(ask(&policy, 6, &vain), 6);
	assert_int_equal(vain, 0);
}

static void a_failure_steps_down_to_what_is_to_be_had(void **state)
{
	struct leat_order policy;
	unsigned int vain;
	int most;

	(void)state;
	for (most = -1; most <= 3; most++) {
		leat_order_init(&policy, 3);
		vain = 0;
		assert_int_equal(ask(&policy, most, &vain), most);
		assert_int_equal(vain, 3 - most);
	}
}

static void a_shortage_costs_few_vain_tries(void **state)
{
	struct leat_order policy;
	unsigned int i, vain = 0;

	(void)state;
	leat_order_init(&policy, 3);
	for (i = 0; i < 100000; i++)
		assert_int_equal(ask(&policy, 1, &vain), 1);
	/* two at the beginning, those of the doubling, then one for each LEAT_ORDER_WAIT_MAX */
	assert_in_range(vain, 100000 / LEAT_ORDER_WAIT_MAX - 1, 100000 / LEAT_ORDER_WAIT_MAX + 10);
}

static void the_largest_comes_back_after_a_shortage(void **state)
{
	struct leat_order policy;
	unsigned int i, vain = 0;

	(void)state;
	leat_order_init(&policy, 3);
	for (i = 0; i < 100; i++)
		assert_int_equal(ask(&policy, -1, &vain), -1);
	assert_int_equal(ask(&policy, 3, &vain), 0);
	for (i = 1; i < 3 * LEAT_ORDER_WAIT_MIN + 1; i++)
		ask(&policy, 3, &vain);
	assert_int_equal(ask(&policy, 3, &vain), 3);
	/* a long shortage has made the wait long: it counts once, then it is short again */
	for (i = 0; i < 20000; i++)
		ask(&policy, 0, &vain);
	for (i = 0; i < LEAT_ORDER_WAIT_MAX + 2 * LEAT_ORDER_WAIT_MIN + 1; i++)
		ask(&policy, 3, &vain);
	assert_int_equal(ask(&policy, 3, &vain), 3);
}

static void who_asks_for_less_and_fails_is_offered_less(void **state)
{
	struct leat_order policy;

	(void)state;
	leat_order_init(&policy, 6);
	assert_true(leat_order_fail(&policy, 2));
	assert_int_equal(leat_order_next(&policy), 1);
	assert_false(leat_order_fail(&policy, 0));
	assert_int_equal(leat_order_next(&policy), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_is_asked_for_while_it_is_to_be_had),
		cmocka_unit_test(a_failure_steps_down_to_what_is_to_be_had),
		cmocka_unit_test(a_shortage_costs_few_vain_tries),
		cmocka_unit_test(the_largest_comes_back_after_a_shortage),
		cmocka_unit_test(who_asks_for_less_and_fails_is_offered_less),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
