/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock_test.c: spin locks in map values: one at a time, given back on every path, their bytes left alone.
 */
#include "bpf/verifier/test_sample.h"

enum { PLAIN, LOCKED, OTHER, ONE, HASH, LIKE, OUTER, RING, MAPS };

#define AT 8 /* where the lock of LOCKED and HASH is; of the others at 0 */

/* r<reg> = a value of the map, or the program ends: 9 instructions. */
#define FIND(map, reg) LOOKUP(map), MOV64X(reg, R0), JMP64K(BPF_JNE, reg, 0, 1), EXIT
#define TAKE(reg, off) MOV64X(R1, reg), ADD64K(R1, off), HELPER(BPF_FUNC_spin_lock)   /* 3 */
#define GIVE(reg, off) MOV64X(R1, reg), ADD64K(R1, off), HELPER(BPF_FUNC_spin_unlock) /* 3 */
#define UNKNOWN(reg) LDX(BPF_W, reg, R1, 12)

static const struct sample taken[] = {
	GOOD("taken and given back", FIND(LOCKED, R6), TAKE(R6, AT), LDX(BPF_DW, R2, R6, 0), ST(BPF_DW, R6, 16, 1),
	     GIVE(R6, AT), END),
	GOOD("of a hash", FIND(HASH, R6), TAKE(R6, AT), ST(BPF_W, R6, 12, 1), GIVE(R6, AT), END),
	GOOD("twice", FIND(LOCKED, R6), TAKE(R6, AT), GIVE(R6, AT), TAKE(R6, AT), GIVE(R6, AT), END),
	GOOD("one after the other", FIND(LOCKED, R6), FIND(OTHER, R7), TAKE(R6, AT), GIVE(R6, AT), TAKE(R7, 0),
	     GIVE(R7, 0), END),
	GOOD("by a copy of the pointer", FIND(LOCKED, R6), MOV64X(R7, R6), TAKE(R6, AT), GIVE(R7, AT), END),
	GOOD("by a pointer that was moved and back", FIND(LOCKED, R6), ADD64K(R6, 4), TAKE(R6, 4), GIVE(R6, 4), END),
	GOOD("by a pointer on the stack", FIND(LOCKED, R6), STX(BPF_DW, R10, -16, R6), TAKE(R6, AT),
	     LDX(BPF_DW, R7, R10, -16), GIVE(R7, AT), END),
	GOOD("given back on both ways", UNKNOWN(R8), FIND(LOCKED, R6), TAKE(R6, AT), JMP64K(BPF_JEQ, R8, 0, 5),
	     GIVE(R6, AT), END, GIVE(R6, AT), END),
	GOOD("paths meet while it is held", UNKNOWN(R8), FIND(LOCKED, R6), TAKE(R6, AT), JMP64K(BPF_JEQ, R8, 0, 1),
	     ST(BPF_DW, R6, 0, 7), GIVE(R6, AT), END),
	GOOD("of global data", LDVALUE(R6, ONE, 0), TAKE(R6, 0), LDVALUE(R7, ONE, 8), ST(BPF_W, R7, 0, 1), LDVALUE(R7, ONE, 0),
	     GIVE(R7, 0), END),
	GOOD("of an inner map", FIND(OUTER, R7), MOV64X(R1, R7), MOV64X(R2, R10), ADD64K(R2, -4),
	     HELPER(BPF_FUNC_map_lookup_elem), JMP64K(BPF_JEQ, R0, 0, 7), MOV64X(R6, R0), TAKE(R6, 0), GIVE(R6, 0), END),
	GOOD("a function of the program while it is held", FIND(LOCKED, R6), TAKE(R6, AT), MOV64X(R1, R6), CALL(5),
	     GIVE(R6, AT), END, ST(BPF_DW, R1, 0, 1), MOV64K(R0, 0), EXIT),
	GOOD("given back by a function", FIND(LOCKED, R6), TAKE(R6, AT), MOV64X(R1, R6), CALL(2), END, ADD64K(R1, AT),
	     HELPER(BPF_FUNC_spin_unlock), MOV64K(R0, 0), EXIT),
	BAD("never given back", 13, "ends with a spin lock", FIND(LOCKED, R6), TAKE(R6, AT), END),
	BAD("not given back on one way", 18, "ends with a spin lock", UNKNOWN(R8), FIND(LOCKED, R6), TAKE(R6, AT),
	    JMP64K(BPF_JEQ, R8, 0, 3), GIVE(R6, AT), END),
	BAD("given back, or never taken", 16, "no spin lock is held", UNKNOWN(R8), FIND(LOCKED, R6),
	    JMP64K(BPF_JEQ, R8, 0, 3), TAKE(R6, AT), GIVE(R6, AT), END),
	BAD("given back without", 11, "no spin lock is held", FIND(LOCKED, R6), GIVE(R6, AT), END),
	BAD("given back twice", 17, "no spin lock is held", FIND(LOCKED, R6), TAKE(R6, AT), GIVE(R6, AT), GIVE(R6, AT),
	    END),
	BAD("taken twice", 14, "held already", FIND(LOCKED, R6), TAKE(R6, AT), TAKE(R6, AT), END),
	BAD("two at once", 23, "held already", FIND(LOCKED, R6), FIND(OTHER, R7), TAKE(R6, AT), TAKE(R7, 0), END),
	BAD("another map's given back", 23, "another value's", FIND(LOCKED, R6), FIND(OTHER, R7), TAKE(R6, AT),
	    GIVE(R7, 0), END),
	BAD("another element's given back", 23, "another value's", FIND(LOCKED, R6), FIND(LOCKED, R7), TAKE(R6, AT),
	    GIVE(R7, AT), END),
	BAD("of the same element, looked up again", 23, "another value's", FIND(HASH, R6), FIND(HASH, R7), TAKE(R6, AT),
	    GIVE(R7, AT), END),
	BAD("a helper while it is held", 12, "no helper but spin_unlock", FIND(LOCKED, R6), TAKE(R6, AT),
	    HELPER(BPF_FUNC_ktime_get_ns), GIVE(R6, AT), END),
	BAD("a helper in a function while it is held", 17, "no helper but spin_unlock", FIND(LOCKED, R6), TAKE(R6, AT),
	    CALL(4), GIVE(R6, AT), EXIT, HELPER(BPF_FUNC_ktime_get_ns), EXIT),
	BAD("a tail call while it is held", 12, "no helper but", FIND(LOCKED, R6), TAKE(R6, AT), HELPER(BPF_FUNC_tail_call),
	    END),
	BAD("a record is held, and then the lock", 22, "no helper but", FIND(LOCKED, R6), LDMAP(R1, RING),
	    MOV64K(R2, 16), MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_reserve), MOV64X(R7, R0), JMP64K(BPF_JNE, R7, 0, 1),
	    EXIT, TAKE(R6, AT), MOV64X(R1, R7), MOV64K(R2, 0), HELPER(BPF_FUNC_ringbuf_submit), END),
};

/* A callback at instruction 9 of what for_each_map_elem gives it, r3 the value. */
#define EACH(map)                                                                                                      \
	LDMAP(R1, map), LDFUNC(R2, 6), MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_for_each_map_elem), END

static const struct sample callbacks[] = {
	GOOD("taken and given back", EACH(LOCKED), MOV64X(R6, R3), TAKE(R6, AT), ST(BPF_W, R6, 0, 1), GIVE(R6, AT),
	     MOV64K(R0, 0), EXIT),
	BAD("kept", 14, "must give back the spin lock", EACH(LOCKED), MOV64X(R6, R3), TAKE(R6, AT), MOV64K(R0, 0), EXIT),
	BAD("another element's given back", 24, "another value's", EACH(LOCKED), MOV64X(R6, R3), FIND(LOCKED, R7),
	    TAKE(R6, AT), GIVE(R7, AT), MOV64K(R0, 0), EXIT),
	BAD("walked while one is held", 18, "no helper but", FIND(LOCKED, R6), TAKE(R6, AT), EACH(LOCKED),
	    MOV64K(R0, 0), EXIT),
};

static const struct sample places[] = {
	BAD("of a map without", 11, "values of map map0 have no spin lock", FIND(PLAIN, R6), TAKE(R6, 0), END),
	BAD("beside the lock", 11, "must be the spin lock of map map1, at +8", FIND(LOCKED, R6), TAKE(R6, 0), END),
	BAD("at a place that nobody knows", 14, "must be the spin lock", MOV64X(R8, R1), FIND(LOCKED, R6),
	    LDX(BPF_W, R2, R8, 12), ADD64X(R6, R2), TAKE(R6, AT), END),
	BAD("on the stack", 2, "must be the spin lock in a map value", TAKE(R10, -8), END),
	BAD("before a look at null", 8, "before it was compared", LOOKUP(LOCKED), MOV64X(R6, R0), TAKE(R6, AT), END),
	BAD("null and all", 8, "must be the spin lock in a map value", LOOKUP(OTHER), MOV64X(R6, R0), MOV64X(R1, R6),
	    HELPER(BPF_FUNC_spin_lock), END),
};

static const struct sample bytes[] = {
	GOOD("right before it", FIND(LOCKED, R6), ST(BPF_DW, R6, 0, 1), END),
	GOOD("right behind it", FIND(LOCKED, R6), ST(BPF_W, R6, 12, 1), END),
	GOOD("a key beside it", FIND(LOCKED, R6), MOV64X(R2, R6), LDMAP(R1, PLAIN), HELPER(BPF_FUNC_map_lookup_elem),
	     END),
	GOOD("at an unknown place that is not there", MOV64X(R8, R1), FIND(LOCKED, R6), LDX(BPF_W, R2, R8, 12),
	     ALU64K(BPF_AND, R2, 4), ADD64X(R6, R2), ST(BPF_W, R6, 0, 1), END),
	BAD("read", 9, "the spin lock of map map1 (4 bytes at +8) may be in there", FIND(LOCKED, R6),
	    LDX(BPF_W, R2, R6, AT), END),
	BAD("a byte of it", 9, "may be in there", FIND(LOCKED, R6), LDX(BPF_B, R2, R6, AT + 3), END),
	BAD("written", 9, "may be in there", FIND(LOCKED, R6), ST(BPF_W, R6, AT, 0), END),
	BAD("written with what is behind it", 9, "may be in there", FIND(LOCKED, R6), ST(BPF_DW, R6, AT, 0), END),
	BAD("written with what is before it", 9, "may be in there", FIND(LOCKED, R6), ST(BPF_DW, R6, AT - 4, 0), END),
	BAD("atomically", 10, "may be in there", FIND(LOCKED, R6), MOV64K(R2, 0), ATOMIC(BPF_W, BPF_XCHG, R6, AT, R2),
	    END),
	BAD("while it is held", 12, "may be in there", FIND(LOCKED, R6), TAKE(R6, AT), ST(BPF_W, R6, AT, 0), END),
	BAD("at an unknown place", 13, "may be in there", MOV64X(R8, R1), FIND(LOCKED, R6), LDX(BPF_W, R2, R8, 12),
	    ALU64K(BPF_AND, R2, 12), ADD64X(R6, R2), ST(BPF_W, R6, 0, 1), END),
	BAD("anywhere", 12, "may be in there", MOV64X(R8, R1), FIND(LOCKED, R6), LDX(BPF_W, R2, R8, 12),
	    ADD64X(R6, R2), LDX(BPF_B, R0, R6, 0), EXIT),
	BAD("global data's", 2, "may be in there", LDVALUE(R6, ONE, 0), ST(BPF_W, R6, 0, 1), END),
	BAD("given as memory", 16, "the spin lock of map map1 may be in there", FIND(LOCKED, R6), MOV64X(R3, R6),
	    MOV64X(R2, R10), ADD64K(R2, -4), MOV64K(R4, 0), LDMAP(R1, LOCKED), MOV64K(R5, 0),
	    HELPER(BPF_FUNC_map_update_elem), END),
};

static int add(struct test_bpf *t, uint32_t type, uint32_t max, uint32_t lock)
{
	int number = test_bpf_map(t, type, 4, 24, max, 0);

	t->map[number].lock = lock + 1;
	return number;
}

static void add_maps(struct test_bpf *t)
{
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 24, 4, 0), PLAIN);
	assert_int_equal(add(t, BPF_MAP_TYPE_ARRAY, 4, AT), LOCKED);
	assert_int_equal(add(t, BPF_MAP_TYPE_ARRAY, 4, 0), OTHER);
	assert_int_equal(add(t, BPF_MAP_TYPE_ARRAY, 1, 0), ONE);
	assert_int_equal(add(t, BPF_MAP_TYPE_HASH, 4, AT), HASH);
	assert_int_equal(test_bpf_template(t, BPF_MAP_TYPE_ARRAY, 4, 24, 4, 0), LIKE);
	t->map[LIKE].lock = 1;
	assert_int_equal(test_bpf_outer(t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, LIKE), OUTER);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), RING);
}

CHECK(taken)
CHECK(callbacks)
CHECK(places)
CHECK(bytes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_taken),
		cmocka_unit_test(check_callbacks),
		cmocka_unit_test(check_places),
		cmocka_unit_test(check_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
