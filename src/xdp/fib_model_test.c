/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding table against a list that is walked from end to end, under random changes; and look-ups on other
 * threads while everything is replaced: each answer is one that was right at some moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "xdp/fib.h"
#include "xdp/test_fib.h"

#define MODEL_MAX 512u
#define STEPS 20000u
#define READERS 2u
#define CHANGES 3000u

/* ---- numbers ---- */

static uint32_t below(uint64_t *seed, uint32_t bound)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)((*seed >> 32) * bound >> 32);
}

/** Few bits are ever set, so that prefixes lie within each other and questions hit. */
static void draw_address(uint64_t *seed, uint8_t address[16])
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		address[i] = (uint8_t)(below(seed, 256) & below(seed, 256) & 0xc1);
	address[0] = 0x20; /* no address of a kind that is never forwarded */
}

static struct leat_fib_route draw_route(uint64_t *seed)
{
	static const uint8_t types[] = { LEAT_FIB_UNICAST, LEAT_FIB_UNICAST, LEAT_FIB_UNICAST, LEAT_FIB_BLACKHOLE };
	struct leat_fib_route route = { .family = below(seed, 2) ? AF_INET : AF_INET6 };

	draw_address(seed, route.dst);
	route.len = (uint8_t)below(seed, route.family == AF_INET ? 33 : 129);
	route.type = types[below(seed, 4)];
	route.table = LEAT_FIB_TABLE_MAIN + below(seed, 2) * 10;
	route.metric = below(seed, 3);
	route.port = 1 + below(seed, 3);
	return route;
}

/* ---- the list ---- */

struct entry {
	struct leat_fib_route route;
	uint64_t age; /* the older counts first */
};

struct model {
	struct entry entry[MODEL_MAX];
	unsigned int n;
	uint64_t clock;
};

static bool in_prefix(const struct leat_fib_route *route, const uint8_t *address)
{
	unsigned int i;

	for (i = 0; i < route->len; i++)
		if ((route->dst[i / 8] ^ address[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool same(const struct leat_fib_route *a, const struct leat_fib_route *b)
{
	return a->family == b->family && a->len == b->len && a->table == b->table && a->metric == b->metric &&
	       a->type == b->type && a->port == b->port && in_prefix(a, b->dst);
}

static unsigned int find(const struct model *m, const struct leat_fib_route *route)
{
	unsigned int i;

	for (i = 0; i < m->n && !same(&m->entry[i].route, route); i++)
		;
	return i;
}

/** Whether @a answers in place of @b: both match. Of equal IPv6 routes one by port 1, where questions are from, does. */
static bool wins(const struct entry *a, const struct entry *b)
{
	if (a->route.len != b->route.len)
		return a->route.len > b->route.len;
	if (a->route.metric != b->route.metric)
		return a->route.metric < b->route.metric;
	if (a->route.family == AF_INET6 && (a->route.port == 1) != (b->route.port == 1))
		return a->route.port == 1;
	return a->age < b->age;
}

static const struct entry *model_lookup(const struct model *m, uint8_t family, uint32_t table, const uint8_t *address)
{
	const struct entry *best = NULL, *e;

	for (e = m->entry; e < m->entry + m->n; e++)
		if (e->route.family == family && e->route.table == table && in_prefix(&e->route, address) &&
		    (!best || wins(e, best)))
			best = e;
	return best;
}

static void compare(struct leat_fib *fib, const struct model *m, uint64_t *seed)
{
	uint8_t family = below(seed, 2) ? AF_INET : AF_INET6;
	uint32_t table = LEAT_FIB_TABLE_MAIN + below(seed, 2) * 10;
	struct leat_fib_lookup q = test_question(family == AF_INET ? "0.0.0.0" : "::");
	const struct entry *e;
	uint32_t flags = LEAT_FIB_LOOKUP_DIRECT | LEAT_FIB_LOOKUP_TBID | LEAT_FIB_LOOKUP_SKIP_NEIGH;
	int answer;

	draw_address(seed, q.dst);
	q.tbid = table;
	e = model_lookup(m, family, table, q.dst);
	answer = leat_fib_lookup(fib, &q, flags);
	if (!e) {
		assert_int_equal(answer, LEAT_FIB_RET_NOT_FWDED);
	} else if (e->route.type == LEAT_FIB_BLACKHOLE) {
		assert_int_equal(answer, LEAT_FIB_RET_BLACKHOLE);
	} else {
		assert_int_equal(answer, LEAT_FIB_SUCCESS);
		assert_int_equal(q.ifindex, e->route.port);
		assert_int_equal(q.tos, e->route.metric);
	}
}

static void change(struct leat_fib *fib, struct model *m, uint64_t *seed)
{
	struct leat_fib_route route = draw_route(seed);
	unsigned int at;

	if (m->n && (m->n == MODEL_MAX || below(seed, 5) < 2))
		route = m->entry[below(seed, m->n)].route;
	at = find(m, &route);
	if (at < m->n && below(seed, 4)) {
		assert_int_equal(leat_fib_route_delete(fib, &route), 0);
		m->entry[at] = m->entry[--m->n];
	} else if (at < m->n) {
		assert_int_equal(leat_fib_route_add(fib, &route), -EEXIST);
	} else {
		assert_int_equal(leat_fib_route_add(fib, &route), 0);
		m->entry[m->n++] = (struct entry){ route, m->clock++ };
	}
}

static void test_model(void **unused)
{
	struct model *m = calloc(1, sizeof(*m));
	struct leat_fib *fib = NULL;
	struct leat_fib_counts counts;
	struct leat_fib_port port;
	uint64_t seed = 88172645463325252u;
	unsigned int i, k;

	(void)unused;
	assert_non_null(m);
	assert_int_equal(leat_fib_create(NULL, &fib), 0);
	for (i = 1; i <= 3; i++) {
		port = test_fib_port(i);
		assert_int_equal(leat_fib_port_set(fib, &port), 0);
	}
	for (i = 0; i < STEPS; i++) {
		change(fib, m, &seed);
		for (k = 0; k < 4; k++)
			compare(fib, m, &seed);
	}
	leat_fib_count(fib, &counts);
	assert_int_equal(counts.routes4 + counts.routes6, m->n);
	leat_fib_destroy(fib);
	free(m);
}

/* ---- threads ---- */

struct readers {
	struct leat_fib *fib;
	struct leat_epoch epoch;
	uint32_t stop; /* atomic */
	uint64_t asked; /* atomic */
};

struct reader {
	struct readers *all;
	unsigned int id;
};

/** Whatever is replaced, a whole answer comes: port, metric, next hop and MAC address belong together. */
static void check_answer(struct leat_fib *fib, const char *dst)
{
	struct leat_fib_lookup q = test_question(dst);
	int answer = leat_fib_lookup(fib, &q, 0);
	uint32_t port = q.ifindex;

	if (answer == LEAT_FIB_RET_NO_NEIGH) {
		assert_int_equal(q.tos, 100 + port);
		return;
	}
	assert_int_equal(answer, LEAT_FIB_SUCCESS);
	assert_in_range(port, 2, 3);
	assert_int_equal(q.tos, 100 + port);
	assert_int_equal(q.dst[q.family == AF_INET ? 3 : 15], port);
	assert_int_equal(q.dmac[5], port);
	assert_int_equal(q.smac[5], port);
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	uint64_t asked = 0;
	unsigned int i;

	leat_epoch_online(&r->all->epoch, r->id);
	while (!__atomic_load_n(&r->all->stop, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < 16; i++) {
			check_answer(r->all->fib, "10.1.2.3");
			check_answer(r->all->fib, "fd00::3");
		}
		asked += i;
		leat_epoch_quiescent(&r->all->epoch, r->id);
	}
	leat_epoch_offline(&r->all->epoch, r->id);
	__atomic_fetch_add(&r->all->asked, asked, __ATOMIC_RELAXED);
	return NULL;
}

static struct leat_fib_route route_by(uint8_t family, uint32_t port)
{
	char via[32];
	struct leat_fib_route route;

	snprintf(via, sizeof(via), family == AF_INET ? "10.0.0.%u" : "fd00::%u", port);
	route = test_route(family == AF_INET ? "10.0.0.0/8" : "fd00::/16", via, port);
	route.metric = 100 + port;
	return route;
}

static void put(struct leat_fib *fib, uint8_t family, uint32_t port)
{
	struct leat_fib_route route = route_by(family, port);
	int err = leat_fib_route_add(fib, &route);

	assert_true(!err || err == -EEXIST);
}

static void fill(struct leat_fib *fib)
{
	struct leat_fib_neighbour n;
	struct leat_fib_port port;
	uint32_t i;

	for (i = 1; i <= 3; i++) {
		port = test_fib_port(i);
		assert_int_equal(leat_fib_port_set(fib, &port), 0);
		n = test_neighbour("10.0.0.0", i, (uint8_t)i);
		n.address[3] = (uint8_t)i;
		assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
		n = test_neighbour("fd00::", i, (uint8_t)i);
		n.address[15] = (uint8_t)i;
		assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
	}
	put(fib, AF_INET, 2);
	put(fib, AF_INET6, 2);
}

/** One change of a kind. There is always one of the two routes. */
static void disturb(struct leat_fib *fib, uint64_t *seed)
{
	uint8_t family = below(seed, 2) ? AF_INET : AF_INET6;
	uint32_t to = 2 + below(seed, 2);
	struct leat_fib_route gone = route_by(family, 5 - to), deep;
	struct leat_fib_neighbour n = test_neighbour("10.0.0.2", 2, 2);
	struct leat_fib_port port = test_fib_port(to);

	switch (below(seed, 8)) {
	case 0:
		assert_int_equal(leat_fib_begin(fib), 0);
		fill(fib);
		leat_fib_commit(fib);
		break;
	case 1:
		n.valid = below(seed, 2);
		assert_int_equal(leat_fib_neighbour_set(fib, &n), 0);
		break;
	case 2:
		assert_int_equal(leat_fib_port_set(fib, &port), 0);
		break;
	case 3: /* a longer prefix that says the same, so that the trie forks there */
		deep = route_by(family, to);
		draw_address(seed, deep.dst);
		deep.dst[0] = family == AF_INET ? 10 : 0xfd;
		deep.dst[1] = family == AF_INET ? 1 : 0;
		deep.len = (uint8_t)(17 + below(seed, 15));
		leat_fib_route_add(fib, &deep);
		break;
	default:
		put(fib, family, to);
		leat_fib_route_delete(fib, &gone);
	}
}

static void test_readers(void **unused)
{
	struct readers all = { .stop = 0 };
	const struct leat_fib_opts opts = { .size = sizeof(opts), .epoch = &all.epoch };
	struct reader reader[READERS];
	pthread_t thread[READERS];
	uint64_t seed = 1234567;
	unsigned int i;

	(void)unused;
	leat_epoch_init(&all.epoch);
	assert_int_equal(leat_fib_create(&opts, &all.fib), 0);
	fill(all.fib);
	for (i = 0; i < READERS; i++) {
		reader[i] = (struct reader){ &all, i };
		assert_int_equal(pthread_create(&thread[i], NULL, read_on, &reader[i]), 0);
	}
	for (i = 0; i < CHANGES; i++)
		disturb(all.fib, &seed);
	__atomic_store_n(&all.stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	assert_true(all.asked);
	leat_fib_destroy(all.fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
