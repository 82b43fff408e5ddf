/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmap_model_test.c: DEVMAP and DEVMAP_HASH against a naive model, the kernel's rules in a list: random updates,
 * deletions and look-ups, while ports come and go and their numbers are used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/test_run.h"
#include "netdev/worker.h"
#include "xdp/devmap.h"
#include "xdp/test_port.h"

#define ENTRIES 8u
#define NUMBERS 6u /* of ports that come and go: 1 .. NUMBERS */
#define STEPS 200000u
#define KEYS 24u
#define PROG_INGRESS 1u
#define PROG_EGRESS 2u /* and 3 */

struct model {
	struct {
		bool used;
		uint32_t key, port, prog;
	} entry[ENTRIES];
};

struct bench {
	struct leat_net *net;
	struct leat_netdev *port[NUMBERS + 1];
	struct test_bpf t;
	struct model model[2]; /* of the DEVMAP, of the DEVMAP_HASH */
	uint32_t random;
};

static uint32_t draw(struct bench *b, uint32_t below)
{
	b->random = b->random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)b->random * below >> 32);
}

/* ---- the model ---- */

static int model_find(const struct model *m, uint32_t key)
{
	int i;

	for (i = 0; i < (int)ENTRIES; i++)
		if (m->entry[i].used && m->entry[i].key == key)
			return i;
	return -1;
}

static int model_free(const struct model *m)
{
	int i;

	for (i = 0; i < (int)ENTRIES && m->entry[i].used; i++)
		;
	return i < (int)ENTRIES ? i : -1;
}

static bool is_good(const struct bench *b, uint32_t port, uint32_t prog)
{
	if (!port)
		return !prog;
	return port <= NUMBERS && b->port[port] && (!prog || prog == PROG_EGRESS || prog == PROG_EGRESS + 1);
}

static int model_update(const struct bench *b, struct model *m, bool hash, uint32_t key, uint32_t port, uint32_t prog,
			uint64_t flags)
{
	int at = model_find(m, key);

	if (flags > BPF_EXIST || (hash && !port))
		return -EINVAL;
	if (!hash && key >= ENTRIES)
		return -E2BIG;
	if (flags == BPF_NOEXIST && (!hash || at >= 0))
		return -EEXIST;
	if (!is_good(b, port, prog))
		return -EINVAL;
	if (!port) {
		if (at >= 0)
			m->entry[at].used = false;
		return 0;
	}
	at = at >= 0 ? at : model_free(m);
	if (at < 0)
		return -E2BIG;
	m->entry[at].used = true;
	m->entry[at].key = key;
	m->entry[at].port = port;
	m->entry[at].prog = prog;
	return 0;
}

static int model_delete(struct model *m, bool hash, uint32_t key)
{
	int at = model_find(m, key);

	if (!hash && key >= ENTRIES)
		return -EINVAL;
	if (at >= 0)
		m->entry[at].used = false;
	return at >= 0 || !hash ? 0 : -ENOENT;
}

static void model_port_gone(struct model *m, uint32_t port)
{
	uint32_t i;

	for (i = 0; i < ENTRIES; i++)
		if (m->entry[i].port == port)
			m->entry[i].used = false;
}

/* ---- steps ---- */

static void update(struct bench *b, int map)
{
	const uint32_t key = draw(b, KEYS), port = draw(b, NUMBERS + 2), prog = draw(b, 3) ? 0 : draw(b, 6);
	const struct bpf_devmap_val value = { .ifindex = port, .bpf_prog.fd = (int)prog };
	const uint64_t flags = draw(b, 4) ? BPF_ANY : draw(b, 4);

	assert_int_equal(leat_bpf_map_update(&b->t.map[map], &key, &value, flags),
			 model_update(b, &b->model[map], map, key, port, prog, flags));
}

static void delete_key(struct bench *b, int map)
{
	const uint32_t key = draw(b, KEYS);

	assert_int_equal(leat_bpf_map_delete(&b->t.map[map], &key), model_delete(&b->model[map], map, key));
}

/** A port comes, under a number that is free, or goes. */
static void turn_port(struct bench *b)
{
	const uint32_t number = 1 + draw(b, NUMBERS);
	char name[16];

	if (!b->port[number]) {
		snprintf(name, sizeof(name), "p%u", number);
		b->net->last_index = number - 1;
		b->port[number] = test_port_make(b->net, name);
		assert_int_equal(b->port[number]->index, number);
		return;
	}
	leat_netdev_destroy(b->port[number]);
	b->port[number] = NULL;
	model_port_gone(&b->model[0], number);
	model_port_gone(&b->model[1], number);
}

/* ---- comparing ---- */

static void compare_key(struct bench *b, int map, uint32_t key)
{
	struct leat_bpf_map *m = &b->t.map[map];
	int at = model_find(&b->model[map], key);
	struct leat_bpf_target target;
	uint32_t value[2];

	assert_int_equal(leat_bpf_map_lookup(m, &key, value), at >= 0 ? 0 : -ENOENT);
	assert_int_equal(m->type->target(m, key, &target), at >= 0);
	if (at < 0)
		return;
	assert_int_equal(value[0], b->model[map].entry[at].port);
	assert_int_equal(value[1], b->model[map].entry[at].prog);
	assert_int_equal(target.port, value[0]);
	assert_ptr_equal(target.prog, value[1] ? &b->t.prog[value[1] - 1] : NULL);
}

/** All entries: as a broadcast sees them, and as a control thread walks over them. */
static void compare_all(struct bench *b, int map)
{
	struct leat_bpf_map *m = &b->t.map[map];
	uint32_t i, n = 0, seen = 0, keys = 0, sum = 0, at = 0, key;
	struct leat_bpf_target target;
	bool first;

	for (i = 0; i < ENTRIES; i++) {
		n += b->model[map].entry[i].used;
		sum += b->model[map].entry[i].used ? b->model[map].entry[i].port : 0;
	}
	while (leat_portmap_next(m, &at, &target)) {
		seen++;
		sum -= target.port;
	}
	assert_int_equal(seen, n);
	assert_int_equal(sum, 0);
	for (first = true; !leat_bpf_map_next_key(m, first ? NULL : &key, &key); first = false, keys++)
		assert_true(!map || model_find(&b->model[map], key) >= 0);
	assert_int_equal(keys, map ? n : ENTRIES); /* an array's keys are all of its indices */
	for (key = 0; key < KEYS; key++)
		compare_key(b, map, key);
}

static void begin(struct bench *b)
{
	static const struct bpf_insn pass[] = { MOV64K(R0, LEAT_XDP_PASS), EXIT };
	int i;

	memset(b, 0, sizeof(*b));
	b->random = 1;
	b->net = test_net_make(NULL);
	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&b->t, 0), 0);
	b->t.env->net = b->net;
	for (i = 0; i < 4; i++) { /* number 4 is for packets that leave, but not loaded */
		b->t.flags = i ? LEAT_IMAGE_PROG_DEVMAP : 0;
		assert_int_equal(test_bpf_prog(&b->t, pass, 2), i);
	}
	b->t.prog[3].loaded = false;
	assert_int_equal(test_bpf_map(&b->t, BPF_MAP_TYPE_DEVMAP, 4, 8, ENTRIES, 0), 0);
	assert_int_equal(test_bpf_map(&b->t, BPF_MAP_TYPE_DEVMAP_HASH, 4, 8, ENTRIES, 0), 1);
}

static void maps_of_ports_are_the_model(void **state)
{
	struct bench b;
	uint32_t step, what;
	int map;

	(void)state;
	begin(&b);
	for (step = 0; step < STEPS; step++) {
		map = (int)draw(&b, 2);
		what = draw(&b, 64);
		if (!what)
			turn_port(&b);
		else if (what < 40)
			update(&b, map);
		else
			delete_key(&b, map);
		compare_key(&b, map, draw(&b, KEYS));
		if (step % 16 == 0)
			compare_all(&b, map);
	}
	test_bpf_end(&b.t);
	test_net_end(b.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_of_ports_are_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
