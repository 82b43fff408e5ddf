/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_concurrent.c: one eBPF object on two workers, its maps read, written and emptied by a control thread that also
 * replaces the program of a port, all under traffic: no count is lost, none is doubled, no buffer stays out.
 *
 *	pktgen --count_send--> a == b --count_back or count_drop--> a: count_drop
 *
 * pktgen and a are polled by one worker, b by the other; the three programs count in the same maps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>
#include <time.h>
#include <unistd.h>

#include "xdp/test_port.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 300
#else
#define CHANGES 1000
#endif

/* As in shared.bpf.c. */
#define KEYS 1024u
#define STEADY 512u
enum slot { SLOT_ALL, SLOT_STEADY, SLOT_LOST, SLOT_FULL, SLOTS };
struct counts {
	uint64_t packets, bytes;
};

struct bench {
	struct leat_net *net;
	struct leat_netdev *gen, *a, *b;
	struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	struct leat_bpf_map *numbers, *recent, *own, *all;
	struct leat_xdp_prog *send, *back, *drop;
};

/* ---- setting up ---- */

/** Path of the object; false where it was not compiled, or cannot be read. */
static bool object_path(char *path, size_t size)
{
	const char *build = getenv("LEAT_BUILD");

	snprintf(path, size, "%s/tests/bpf/progs/shared.v3.bpf.o", build ? build : ".");
	return getenv("LEAT_LOAD") && !access(path, R_OK);
}

static void open_object(struct bench *t)
{
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .loader = getenv("LEAT_LOAD") };
	struct leat_diag *diag = leat_diag_create();
	char path[4096], text[1024] = "", port[16];
	int err;

	object_path(path, sizeof(path));
	snprintf(port, sizeof(port), "%u", t->a->index);
	assert_int_equal(leat_xdp_bpf_env_create(t->net, NULL, &t->env), 0);
	err = leat_bpf_object_open(t->env, path, &opts, diag, &t->obj);
	if (!err)
		err = leat_bpf_object_set(t->obj, "next_port", port, diag);
	if (!err)
		err = leat_bpf_object_load(t->obj, NULL, diag);
	if (err && leat_diag_count(diag))
		leat_diag_format(leat_diag_get(diag, 0), text, sizeof(text));
	if (err)
		fail_msg("%s: %d: %s", path, err, text);
	leat_diag_destroy(diag);
	t->numbers = leat_bpf_object_map_find(t->obj, "numbers");
	t->recent = leat_bpf_object_map_find(t->obj, "recent");
	t->own = leat_bpf_object_map_find(t->obj, "own");
	t->all = leat_bpf_object_map_find(t->obj, "all");
	assert_true(t->numbers && t->recent && t->own && t->all);
}

static struct leat_xdp_prog *make_prog(struct bench *t, const char *name)
{
	struct leat_bpf_prog *bpf = leat_bpf_object_prog_find(t->obj, name);
	struct leat_xdp_prog *prog = NULL;

	assert_non_null(bpf);
	assert_int_equal(leat_xdp_prog_create_bpf(t->net, bpf, NULL, &prog), 0);
	return prog;
}

static void set_up(struct bench *t)
{
	struct leat_net_opts opts = { .size = sizeof(opts), .workers = 2, .arena_size = UINT64_C(1) << 30 };

	memset(t, 0, sizeof(*t));
	assert_int_equal(leat_net_create(&opts, &t->net), 0);
	t->gen = test_driver_make(t->net, "pktgen", "gen", NULL);
	t->a = test_driver_make(t->net, "veth", "a", TEST_KEYS("peer=b"));
	t->b = test_driver_make(t->net, "veth", "b", TEST_KEYS("peer=a"));
	assert_int_equal(t->a->ops->link(t->a, NULL), 0);
	assert_int_equal(t->b->ops->link(t->b, NULL), 0);
	open_object(t);
	t->send = make_prog(t, "count_send");
	t->back = make_prog(t, "count_back");
	t->drop = make_prog(t, "count_drop");
	assert_int_equal(leat_xdp_attach(t->gen, t->send), 0);
	assert_int_equal(leat_xdp_attach(t->b, t->back), 0);
	assert_int_equal(leat_xdp_attach(t->a, t->drop), 0);
	/* queues are dealt out in the order of opening */
	assert_int_equal(leat_netdev_open(t->gen, NULL), 0);
	assert_int_equal(leat_netdev_open(t->b, NULL), 0);
	assert_int_equal(leat_netdev_open(t->a, NULL), 0);
	assert_ptr_not_equal(t->gen->napi[0].worker, t->b->napi[0].worker);
}

static void tear_down(struct bench *t)
{
	leat_netdev_close(t->gen);
	leat_netdev_close(t->a);
	leat_netdev_close(t->b);
	assert_int_equal(leat_xdp_attach(t->gen, NULL), 0);
	assert_int_equal(leat_xdp_attach(t->a, NULL), 0);
	assert_int_equal(leat_xdp_attach(t->b, NULL), 0);
	leat_xdp_prog_put(t->send);
	leat_xdp_prog_put(t->back);
	leat_xdp_prog_put(t->drop);
	assert_int_equal(leat_net_outstanding(t->net), 0);
	leat_bpf_object_close(t->obj);
	leat_bpf_env_destroy(t->env);
	leat_net_destroy(t->net);
}

/* ---- what the control thread does meanwhile ---- */

/** The keys that may come and go: one is deleted, one written, one read. */
static void disturb(struct bench *t, unsigned int i)
{
	uint32_t gone = STEADY + i * 7 % (KEYS - STEADY), set = STEADY + i * 11 % (KEYS - STEADY);
	struct counts counts = { 1000000, 1 };
	int err;

	err = leat_bpf_map_delete(t->numbers, &gone);
	assert_true(!err || err == -ENOENT);
	assert_int_equal(leat_bpf_map_update(t->numbers, &set, &counts, BPF_ANY), 0);
	err = leat_bpf_map_lookup(t->numbers, &set, &counts);
	assert_true(!err && counts.packets >= 1000000);
	err = leat_bpf_map_delete(t->recent, &gone);
	assert_true(!err || err == -ENOENT);
	assert_int_equal(leat_bpf_map_update(t->recent, &set, &counts, BPF_ANY), 0);
}

/** Every key that there is, for as long as there is a next one; elements come and go, so not one has to be there. */
static unsigned int walk(struct leat_bpf_map *map)
{
	struct counts counts;
	uint32_t key, next;
	unsigned int n = 0;
	bool first = true;

	while (n < 10 * KEYS && !leat_bpf_map_next_key(map, first ? NULL : &key, &next)) {
		key = next;
		first = false;
		assert_in_range(key, 0, KEYS - 1);
		if (!leat_bpf_map_lookup(map, &key, &counts))
			assert_true(counts.packets > 0);
		n++;
	}
	return n;
}

/** A count of a steady key never goes back. */
static void watch(struct bench *t, uint64_t *seen, uint32_t key)
{
	struct counts counts = { 0, 0 };
	int err = leat_bpf_map_lookup(t->numbers, &key, &counts);

	assert_true(!err || (err == -ENOENT && !*seen));
	assert_true(counts.packets >= *seen);
	*seen = counts.packets;
}

/* ---- adding up ---- */

static uint64_t runs_of(const struct leat_xdp_prog *prog)
{
	struct leat_xdp_prog_stats stats;

	leat_xdp_prog_stats(prog, &stats);
	assert_int_equal(stats.verdict[LEAT_XDP_ABORTED], 0);
	return stats.runs;
}

static uint64_t own_sum(struct bench *t, uint32_t slot)
{
	uint64_t each[2];
	struct leat_bpf_map_info info;

	leat_bpf_map_info(t->own, &info);
	assert_int_equal(info.value_bytes, sizeof(each));
	assert_int_equal(leat_bpf_map_lookup(t->own, &slot, each), 0);
	return each[0] + each[1];
}

static uint64_t steady_sum(struct bench *t, uint64_t *bytes)
{
	struct counts counts;
	uint64_t sum = 0;
	uint32_t key;

	for (*bytes = 0, key = 0; key < STEADY; key++) {
		if (leat_bpf_map_lookup(t->numbers, &key, &counts))
			continue;
		sum += counts.packets;
		*bytes += counts.bytes;
	}
	return sum;
}

static void add_up(struct bench *t)
{
	uint64_t runs = runs_of(t->send) + runs_of(t->back) + runs_of(t->drop), all = 0, bytes;
	uint32_t zero = 0;

	assert_int_equal(leat_bpf_map_lookup(t->all, &zero, &all), 0);
	assert_int_equal(all, runs);
	assert_int_equal(own_sum(t, SLOT_ALL), runs);
	assert_int_equal(steady_sum(t, &bytes), own_sum(t, SLOT_STEADY));
	assert_int_equal(bytes, 60 * own_sum(t, SLOT_STEADY));
	assert_int_equal(own_sum(t, SLOT_FULL), 0);
	print_message("# %llu runs, %llu of them lost a key between two looks\n", (unsigned long long)runs,
		      (unsigned long long)own_sum(t, SLOT_LOST));
}

static void assert_no_traps(struct bench *t)
{
	struct leat_bpf_trap trap;
	struct leat_bpf_prog *prog;
	unsigned int i;

	for (i = 0; (prog = leat_bpf_object_prog_get(t->obj, i)); i++)
		assert_false(leat_bpf_prog_trap(prog, 0, &trap));
}

static void wait_for_traffic(struct leat_netdev *dev, uint64_t packets)
{
	const struct timespec pause = { 0, 100000 };
	struct leat_netdev_stats stats;
	int i;

	for (i = 0; i < 200000; i++) {
		leat_netdev_stats(dev, &stats);
		if (stats.rx_packets >= packets)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("no traffic on %s", dev->name);
}

static void maps_and_programs_change_under_traffic(void **state)
{
	struct leat_netdev_stats stats;
	uint64_t seen = 0;
	char path[4096];
	struct bench t;
	unsigned int i;

	(void)state;
	if (!object_path(path, sizeof(path)))
		skip();
	set_up(&t);
	assert_int_equal(leat_net_start(t.net), 0);
	wait_for_traffic(t.b, 2000);
	for (i = 0; i < CHANGES; i++) {
		assert_int_equal(leat_xdp_attach(t.b, i % 2 ? t.back : t.drop), 0);
		disturb(&t, i);
		watch(&t, &seen, 3);
		if (i % 64 == 0) {
			walk(t.numbers);
			walk(t.recent);
		}
	}
	leat_netdev_stats(t.b, &stats);
	wait_for_traffic(t.b, stats.rx_packets + 2000);
	leat_net_stop(t.net);
	assert_true(seen > 0);
	add_up(&t);
	assert_in_range(walk(t.recent), 1, KEYS / 4);
	assert_no_traps(&t);
	tear_down(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_and_programs_change_under_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
