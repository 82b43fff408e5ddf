/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested_test.c: maps out of maps of maps: where the verifier must take them, and where it must not.
 */
#include "bpf/verifier/test_sample.h"

enum { ARRAY, LIKE, OUTER, HASH_LIKE, HASH_OUTER, RING_LIKE, RINGS, MAPS };

#define KEY MOV64X(R2, R10), ADD64K(R2, -4)                                 /* 2 */
#define INNER(reg) MOV64X(R1, reg), KEY, HELPER(BPF_FUNC_map_lookup_elem) /* 4 */
#define UNKNOWN(reg) LDX(BPF_W, reg, R1, 12)
#define UPDATE(reg)                                                                                                    \
	MOV64X(R1, reg), KEY, MOV64X(R3, R10), ADD64K(R3, -24), MOV64K(R4, 0), HELPER(BPF_FUNC_map_update_elem) /* 7 */

static const struct sample nested[] = {
	GOOD("a value of an inner map", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 6), INNER(R0), JMP64K(BPF_JEQ, R0, 0, 1),
	     ST(BPF_DW, R0, 8, 1), END),
	GOOD("out of a hash", LOOKUP(HASH_OUTER), JMP64K(BPF_JEQ, R0, 0, 6), INNER(R0), JMP64K(BPF_JEQ, R0, 0, 1),
	     ST(BPF_DW, R0, 8, 1), END),
	GOOD("an inner map is updated", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 7), UPDATE(R0), END),
	GOOD("a copy learns, too", LOOKUP(OUTER), MOV64X(R6, R0), JMP64K(BPF_JEQ, R0, 0, 4), INNER(R6), END),
	GOOD("spilled", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 6), STX(BPF_DW, R10, -16, R0), LDX(BPF_DW, R7, R10, -16),
	     INNER(R7), END),
	GOOD("given to a function", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 2), MOV64X(R1, R0), CALL(2), END,
	     ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), HELPER(BPF_FUNC_map_lookup_elem), MOV64K(R0, 0),
	     EXIT),
	GOOD("inner or not on different paths", UNKNOWN(R6), LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 7), MOV64X(R1, R0),
	     JMP64K(BPF_JEQ, R6, 0, 2), LDMAP(R1, ARRAY), KEY, HELPER(BPF_FUNC_map_lookup_elem), END),
	GOOD("a record of an inner ring", LOOKUP(RINGS), JMP64K(BPF_JEQ, R0, 0, 8), MOV64X(R1, R0), MOV64K(R2, 16),
	     MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_reserve), JMP64K(BPF_JEQ, R0, 0, 3), MOV64X(R1, R0), MOV64K(R2, 0),
	     HELPER(BPF_FUNC_ringbuf_submit), END),
	GOOD("each element of an inner map", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 6), MOV64X(R1, R0), LDFUNC(R2, 6),
	     MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_for_each_map_elem), END, ST(BPF_DW, R3, 8, 1), MOV64K(R0, 0),
	     EXIT),
	BAD("each element of the outer map", 6, "does not work on map map2", LDMAP(R1, OUTER), LDFUNC(R2, 6),
	    MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_for_each_map_elem), END, MOV64K(R0, 0), EXIT),
	BAD("without a look", 9, "argument 1 must be a map", LOOKUP(OUTER), INNER(R0), END),
	BAD("on the wrong branch", 10, "argument 1 must be a map", LOOKUP(OUTER), JMP64K(BPF_JNE, R0, 0, 4), INNER(R0),
	    END),
	BAD("32-bit comparison says nothing", 10, "r1 is a map or null", LOOKUP(OUTER), JMP32K(BPF_JEQ, R0, 0, 4),
	    INNER(R0), END),
	BAD("another lookup does not count", 17, "argument 1 must be a map", LOOKUP(OUTER), MOV64X(R6, R0),
	    LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 4), INNER(R6), END),
	BAD("moved before the look", 6, "a map or null cannot be moved before", LOOKUP(OUTER), ADD64K(R0, 8), END),
	BAD("moved after it", 7, "a map cannot be added to", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 1), ADD64K(R0, 8),
	    END),
	BAD("read", 7, "is a map, not a value of it", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 1), LDX(BPF_DW, R0, R0, 0),
	    END),
	BAD("written without a look", 6, "is a map or null, not a value", LOOKUP(OUTER), ST(BPF_DW, R0, 0, 0), END),
	BAD("given as memory", 10, "is a map, not a value of it", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 4),
	    MOV64X(R2, R0), LDMAP(R1, ARRAY), HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("past the template's value", 12, "outside the value of map map1 (16 bytes)", LOOKUP(OUTER),
	    JMP64K(BPF_JEQ, R0, 0, 6), INNER(R0), JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_DW, R0, 12, 1), END),
	BAD("an inner map's value without a look", 11, "may be null", LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 5),
	    INNER(R0), ST(BPF_DW, R0, 0, 1), END),
	BAD("a program updates the outer map", 9, "map_update_elem does not work on map map2, a array_of_maps",
	    ST(BPF_W, R10, -4, 0), LDMAP(R1, OUTER), KEY, MOV64X(R3, R2), ADD64K(R3, 0), MOV64K(R4, 0), MOV64K(R5, 0),
	    HELPER(BPF_FUNC_map_update_elem), END),
	BAD("a program deletes from it", 4, "map_delete_elem does not work", LDMAP(R1, HASH_OUTER), KEY,
	    HELPER(BPF_FUNC_map_delete_elem), END),
	BAD("a look-up in an inner ring", 10, "does not work on map map5, a ringbuf", LOOKUP(RINGS),
	    JMP64K(BPF_JEQ, R0, 0, 4), INNER(R0), END),
	BAD("a tail call by an inner map", 11, "does not work on map", MOV64X(R6, R1), LOOKUP(OUTER),
	    JMP64K(BPF_JEQ, R0, 0, 4), MOV64X(R1, R6), MOV64X(R2, R0), MOV64K(R3, 0), HELPER(BPF_FUNC_tail_call), END),
	BAD("a map or a number", 13, "argument 1 must be a map", UNKNOWN(R6), LOOKUP(OUTER), JMP64K(BPF_JEQ, R0, 0, 6),
	    JMP64K(BPF_JEQ, R6, 0, 1), MOV64K(R0, 1), INNER(R0), END),
};

static void add_maps(struct test_bpf *t)
{
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0), ARRAY);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0), LIKE);
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, LIKE), OUTER);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_HASH, 4, 16, 4, 0), HASH_LIKE);
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, HASH_LIKE), HASH_OUTER);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), RING_LIKE);
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, RING_LIKE), RINGS);
}

CHECK(nested)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
