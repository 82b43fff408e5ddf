/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested_test.c: programs on inner maps, on both engines: look-ups and updates through the register, sizes that differ,
 * accesses that are tested at run time, a map that is taken out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { IN_OF, KEY_OF, PLAIN, LIKE, OUTER, HASH_LIKE, HASH_OUTER };

/* The packet: 4 bytes of key for the outer map, 4 for the inner one, 8 for what is written. */
#define BOUNDS                                                                                                         \
	LDX(BPF_W, R6, R1, 0), LDX(BPF_W, R7, R1, 4), MOV64X(R2, R6), ADD64K(R2, 16), JMP64X(BPF_JLE, R2, R7, 2),      \
		MOV64K(R0, 100), EXIT
/* r0 = inner map, or the program ends with 101. */
#define FIND(map)                                                                                                      \
	BOUNDS, MOV64X(R2, R6), LDMAP(R1, map), HELPER(BPF_FUNC_map_lookup_elem), JMP64K(BPF_JNE, R0, 0, 2),           \
		MOV64K(R0, 101), EXIT
/* r0 = value in it, or the program ends with 102. */
#define FIND_VALUE(map)                                                                                                \
	FIND(map), MOV64X(R1, R0), MOV64X(R2, R6), ADD64K(R2, 4), HELPER(BPF_FUNC_map_lookup_elem),                    \
		JMP64K(BPF_JNE, R0, 0, 2), MOV64K(R0, 102), EXIT

static const struct bpf_insn read_array[] = { FIND_VALUE(OUTER), LDX(BPF_DW, R0, R0, 8), EXIT };
static const struct bpf_insn read_hash[] = { FIND_VALUE(HASH_OUTER), LDX(BPF_DW, R0, R0, 8), EXIT };
static const struct bpf_insn write_hash[] = {
	FIND(HASH_OUTER), MOV64X(R1, R0), MOV64X(R2, R6), ADD64K(R2, 4), MOV64X(R3, R6), MOV64K(R4, 0),
	HELPER(BPF_FUNC_map_update_elem), EXIT,
};
/* At a distance that nobody knows: the byte that the packet says. */
static const struct bpf_insn guarded[] = {
	FIND_VALUE(OUTER), LDX(BPF_DW, R1, R6, 8), ADD64X(R0, R1), LDX(BPF_B, R0, R0, 0), EXIT,
};
/* Either the inner map or a plain one. */
static const struct bpf_insn either[] = {
	FIND(OUTER),        MOV64X(R1, R0),   LDX(BPF_B, R3, R6, 8),
	JMP64K(BPF_JEQ, R3, 0, 2), LDMAP(R1, PLAIN), MOV64X(R2, R6),
	ADD64K(R2, 4),      HELPER(BPF_FUNC_map_lookup_elem), JMP64K(BPF_JEQ, R0, 0, 1),
	LDX(BPF_DW, R0, R0, 8), EXIT,
};

enum { READ_ARRAY, READ_HASH, WRITE_HASH, GUARDED, EITHER };

static const struct {
	const struct bpf_insn *insn;
	uint32_t n;
} progs[] = {
	{ read_array, COUNT(read_array) }, { read_hash, COUNT(read_hash) }, { write_hash, COUNT(write_hash) },
	{ guarded, COUNT(guarded) },       { either, COUNT(either) },
};

struct nested {
	struct test_bpf t;
	struct leat_bpf_map *four, *two, *hash;
};

static void put(struct leat_bpf_map *map, uint32_t key, uint64_t second)
{
	const uint64_t value[2] = { 0x1122334455667788, second };

	assert_int_equal(leat_bpf_map_update(map, &key, value, BPF_ANY), 0);
}

static struct leat_bpf_map *make(struct nested *n, int outer, uint32_t entries, uint32_t key)
{
	struct leat_bpf_map *inner = NULL;

	assert_int_equal(leat_bpf_map_make_inner(&n->t.map[outer], "inner", entries, &inner), 0);
	assert_int_equal(leat_bpf_map_set_inner(&n->t.map[outer], &key, inner, BPF_ANY), 0);
	leat_bpf_map_release(inner);
	return inner;
}

static void begin(struct nested *n, bool jit)
{
	const uint32_t flags = BPF_F_INNER_MAP;
	size_t i;

	assert_int_equal(test_bpf_begin(&n->t, 0), 0);
	n->t.jit = jit;
	test_bpf_map(&n->t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	test_bpf_map(&n->t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	assert_int_equal(test_bpf_map(&n->t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0), PLAIN);
	assert_int_equal(test_bpf_template(&n->t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, flags), LIKE);
	assert_int_equal(test_bpf_outer(&n->t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 3, LIKE), OUTER);
	assert_int_equal(test_bpf_template(&n->t, BPF_MAP_TYPE_HASH, 4, 16, 4, 0), HASH_LIKE);
	assert_int_equal(test_bpf_outer(&n->t, BPF_MAP_TYPE_HASH_OF_MAPS, 4, 3, HASH_LIKE), HASH_OUTER);
	test_bpf_more_maps(&n->t);
	n->four = make(n, OUTER, 0, 0);
	n->two = make(n, OUTER, 2, 1);
	n->hash = make(n, HASH_OUTER, 7, 1000);
	for (i = 0; i < 4; i++)
		put(n->four, (uint32_t)i, 40 + i);
	put(n->two, 0, 20);
	put(n->two, 1, 21);
	put(n->hash, 5, 55);
	put(&n->t.map[PLAIN], 3, 33);
	for (i = 0; i < COUNT(progs); i++)
		assert_int_equal(test_bpf_prog(&n->t, progs[i].insn, progs[i].n), i);
}

static uint64_t run(struct nested *n, int prog, uint32_t outer, uint32_t inner, uint64_t number)
{
	uint8_t packet[16];

	memcpy(packet, &outer, 4);
	memcpy(packet + 4, &inner, 4);
	memcpy(packet + 8, &number, 8);
	test_bpf_packet(&n->t, packet, sizeof(packet), 0);
	return test_bpf_run(&n->t, prog);
}

static void values(struct nested *n)
{
	assert_int_equal(run(n, READ_ARRAY, 0, 3, 0), 43);
	assert_int_equal(run(n, READ_ARRAY, 1, 1, 0), 21);
	assert_int_equal(run(n, READ_ARRAY, 1, 2, 0), 102); /* two has only two */
	assert_int_equal(run(n, READ_ARRAY, 0, 4, 0), 102);
	assert_int_equal(run(n, READ_ARRAY, 2, 0, 0), 101);
	assert_int_equal(run(n, READ_ARRAY, 3, 0, 0), 101);
	assert_int_equal(run(n, READ_ARRAY, UINT32_MAX, 0, 0), 101);
	assert_int_equal(run(n, READ_HASH, 1000, 5, 0), 55);
	assert_int_equal(run(n, READ_HASH, 1000, 6, 0), 102);
	assert_int_equal(run(n, READ_HASH, 999, 5, 0), 101);
	assert_int_equal(run(n, EITHER, 0, 3, 0), 43);
	assert_int_equal(run(n, EITHER, 0, 3, 1), 33);
	assert_int_equal(n->t.last.trap, 0);
}

static void updates(struct nested *n)
{
	const uint32_t key = 6;
	uint64_t value[2];

	assert_int_equal(run(n, WRITE_HASH, 1000, 6, 66), 0);
	assert_int_equal(leat_bpf_map_lookup(n->hash, &key, value), 0);
	assert_int_equal(value[1], 66);
	assert_int_equal(run(n, READ_HASH, 1000, 6, 0), 66);
	assert_int_equal(run(n, WRITE_HASH, 1000, 8, 66), 0);
	assert_int_equal(run(n, WRITE_HASH, 1000, 9, 66), 0);
}

static void tested_at_run_time(struct nested *n)
{
	assert_int_equal(run(n, GUARDED, 0, 3, 0), 0x88);
	assert_int_equal(run(n, GUARDED, 0, 3, 8), 43);
	assert_int_equal(run(n, GUARDED, 1, 1, 15), 0);
	assert_int_equal(n->t.last.trap, 0);
	run(n, GUARDED, 0, 3, 16);
	assert_int_equal(n->t.last.trap, 1 + LEAT_BPF_TRAP_ACCESS);
	run(n, GUARDED, 1, 0, UINT64_MAX);
	assert_int_equal(n->t.last.trap, 1 + LEAT_BPF_TRAP_ACCESS);
}

/** Nothing runs between, so that it goes at once; another comes to its place. */
static void taken_out(struct nested *n)
{
	const uint32_t key = 1;
	struct leat_bpf_map *again;

	assert_int_equal(leat_bpf_map_delete(&n->t.map[OUTER], &key), 0);
	assert_int_equal(run(n, READ_ARRAY, 1, 1, 0), 101);
	assert_null(n->two->priv);
	again = make(n, OUTER, 3, 1);
	assert_ptr_equal(again, n->two);
	put(again, 2, 99);
	assert_int_equal(run(n, READ_ARRAY, 1, 2, 0), 99);
}

static void all(bool jit)
{
	struct nested n;

	begin(&n, jit);
	values(&n);
	updates(&n);
	tested_at_run_time(&n);
	taken_out(&n);
	test_bpf_end(&n.t);
}

static void interpreted(void **state)
{
	(void)state;
	all(false);
}

static void compiled(void **state)
{
	(void)state;
	if (LEAT_HAVE_JIT)
		all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreted),
		cmocka_unit_test(compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
