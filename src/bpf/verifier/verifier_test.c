/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verifier_test.c: small programs that the verifier must take, and such that it must refuse, with the instruction and a
 * word of the sentence.
 */
#include "bpf/verifier/test_sample.h"

#include <errno.h>

enum { ARRAY, ONE, HASH, PROGS, RING, PERF, RODATA, MAPS };

#define RESERVE LDMAP(R1, RING), MOV64K(R2, 16), MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_reserve) /* 5 */
#define SUBMIT(reg) MOV64X(R1, reg), MOV64K(R2, 0), HELPER(BPF_FUNC_ringbuf_submit)              /* 3 */
#define UNKNOWN(reg) LDX(BPF_W, reg, R1, 12)

/* ---- structure ---- */

static const struct sample structure[] = {
	GOOD("the least", END),
	GOOD("jump forward", MOV64K(R0, 0), GOTO(1), EXIT, EXIT),
	GOOD("a loop without end is fuel's matter", MOV64K(R0, 0), GOTO(-1), EXIT),
	GOOD("gotol", MOV64K(R0, 0), GOTOL(1), EXIT, EXIT),
	GOOD("what is not reached is not looked at", MOV64K(R0, 0), GOTO(1), HELPER(12345), EXIT),
	BAD("unknown opcode", 1, "opcode 0xff", MOV64K(R0, 0), INSN(0xff, 0, 0, 0, 0), EXIT),
	BAD("opcode 0", 0, "opcode 0x00", INSN(0, 0, 0, 0, 0), EXIT),
	BAD("legacy packet load", 0, "opcode 0x20", INSN(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0), END),
	BAD("callx", 0, "opcode 0x8d", INSN(BPF_JMP | BPF_CALL | BPF_X, 1, 0, 0, 0), END),
	BAD("neg by register", 0, "opcode", INSN(BPF_ALU64 | BPF_NEG | BPF_X, 1, 0, 0, 0), END),
	BAD("32-bit exit", 0, "opcode", INSN(BPF_JMP32 | BPF_EXIT, 0, 0, 0, 0)),
	BAD("unknown atomic", 0, "opcode", INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 10, 1, -8, 0x10), END),
	BAD("16-bit atomic", 0, "opcode", INSN(BPF_STX | BPF_ATOMIC | BPF_H, 10, 1, -8, 0), END),
	BAD("64-bit sign-extending load", 0, "opcode", LDXS(BPF_DW, R0, R10, -8), END),
	BAD("byte swap of 8 bits", 0, "opcode", INSN(BPF_ALU | BPF_END, 0, 0, 0, 8), END),
	BAD("movsx of 32 bits in 32", 0, "opcode", INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 1, 32, 0), END),
	BAD("signed and", 0, "opcode", INSN(BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 1, 0), END),
	BAD("register 11", 0, "no such register", INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 11, 0, 0), END),
	BAD("register 12 written", 0, "no such register", INSN(BPF_ALU64 | BPF_MOV | BPF_K, 12, 0, 0, 0), END),
	BAD("reserved source", 0, "reserved field (source)", INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 1, 0, 0), END),
	BAD("reserved immediate", 0, "reserved field (immediate)", INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 1, 0, 1), END),
	BAD("reserved offset", 0, "reserved field (offset)", INSN(BPF_ALU64 | BPF_NEG, 0, 0, 1, 0), END),
	BAD("reserved destination", 0, "reserved field (destination)", INSN(BPF_JMP | BPF_JA, 1, 0, 0, 0), END),
	BAD("exit with an immediate", 1, "reserved", MOV64K(R0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 1)),
	BAD("exit with a source", 1, "reserved", MOV64K(R0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 1, 0, 0)),
	BAD("call with an offset", 0, "reserved", INSN(BPF_JMP | BPF_CALL, 0, 0, 1, 5), END),
	BAD("load with an immediate", 0, "reserved", INSN(BPF_LDX | BPF_MEM | BPF_W, 0, 1, 0, 1), END),
	BAD("store with a source", 0, "reserved", INSN(BPF_ST | BPF_MEM | BPF_W, 10, 1, -8, 1), END),
	BAD("gotol with an offset", 0, "reserved", INSN(BPF_JMP32 | BPF_JA, 0, 0, 1, 0), END),
	BAD("r10 written", 0, "r10 cannot be written", MOV64K(R10, 0), END),
	BAD("r10 moved", 0, "r10 cannot be written", ADD64K(R10, -8), END),
	BAD("r10 loaded", 0, "r10 cannot be written", LDX(BPF_DW, R10, R10, -8), END),
	BAD("r10 fetched into", 0, "r10 cannot be written", ATOMIC(BPF_DW, BPF_XCHG, R10, -8, R10), END),
	BAD("shift by 64", 1, "shift by 64", MOV64K(R0, 0), ALU64K(BPF_LSH, R0, 64), EXIT),
	BAD("32-bit shift by 32", 1, "shift by 32", MOV64K(R0, 0), ALU32K(BPF_ARSH, R0, 32), EXIT),
	BAD("shift by -1", 1, "shift by -1", MOV64K(R0, 0), ALU64K(BPF_RSH, R0, -1), EXIT),
	BAD("falls off the end", 0, "ends here", MOV64K(R0, 0)),
	BAD("conditional jump at the end", 2, "ends here", MOV64K(R0, 0), EXIT, JMP64K(BPF_JEQ, R0, 0, -2)),
	BAD("call at the end", 0, "ends here", HELPER(BPF_FUNC_ktime_get_ns)),
	BAD("jump past the end", 1, "out of the program", MOV64K(R0, 0), GOTO(1), EXIT),
	BAD("jump before the start", 1, "out of the program", MOV64K(R0, 0), GOTO(-3), EXIT),
	BAD("jump into a 64-bit load", 1, "middle of a 64-bit load", MOV64K(R0, 0), GOTO(1), LD64(R0, 1), EXIT),
	BAD("64-bit load at the end", 0, "second half", INSN(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 0)),
	BAD("64-bit load cut in half", 0, "second half", INSN(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 0), END),
	BAD("second half with a register", 0, "second half", INSN(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 0),
	    INSN(0, 1, 0, 0, 0), END),
	BAD("64-bit load of unknown kind", 0, "opcode", LD64_FROM(9, R0, 0, 0), END),
	BAD("no such map", 0, "no map number 99", LDMAP(R0, 99), END),
	BAD("no such map, negative", 0, "no map number -1", LDMAP(R0, -1), END),
	BAD("map with a second immediate", 0, "reserved", LD64_FROM(BPF_PSEUDO_MAP_FD, R0, 0, 1), END),
	BAD("value of a map of many", 0, "no array of one", LDVALUE(R0, ARRAY, 0), END),
	BAD("value of a hash", 0, "no array of one", LDVALUE(R0, HASH, 0), END),
	BAD("value past its end", 0, "past the value", LDVALUE(R0, ONE, 16), END),
	GOOD("last byte of a value", LDVALUE(R1, ONE, 15), LDX(BPF_B, R0, R1, 0), EXIT),
	BAD("jump into a function", 0, "another function", JMP64K(BPF_JEQ, R1, 0, 4), CALL(1), EXIT, MOV64K(R0, 0),
	    EXIT, EXIT),
	BAD("jump out of a function", 3, "another function", CALL(1), EXIT, MOV64K(R0, 0), GOTO(-3)),
	BAD("function runs into the next", 4, "ends here", CALL(1), EXIT, CALL(2), EXIT, MOV64K(R0, 1), MOV64K(R0, 2),
	    EXIT, EXIT),
	BAD("call past the end", 0, "out of the program", CALL(9), END),
	BAD("function address past the end", 0, "out of the program", LDFUNC(R1, 9), END),
};

/* ---- registers ---- */

static const struct sample registers[] = {
	BAD("r0 at exit", 0, "r0 is read", EXIT),
	BAD("r2 at entry", 0, "r2 is read", MOV64X(R0, R2), EXIT),
	BAD("r6 at entry", 0, "r6 is read", ADD64K(R6, 1), END),
	BAD("jump on nothing", 0, "r3 is read", JMP64K(BPF_JEQ, R3, 0, 0), END),
	BAD("store of nothing", 0, "r3 is read", STX(BPF_DW, R10, -8, R3), END),
	BAD("store through nothing", 0, "r3 is read", ST(BPF_DW, R3, -8, 0), END),
	BAD("r1 after a call", 1, "calls take away", HELPER(BPF_FUNC_ktime_get_ns), MOV64X(R0, R1), EXIT),
	BAD("r5 after a call", 2, "r5 is read", MOV64K(R5, 0), HELPER(BPF_FUNC_ktime_get_ns), MOV64X(R0, R5), EXIT),
	GOOD("r6 after a call", MOV64K(R6, 0), HELPER(BPF_FUNC_ktime_get_ns), MOV64X(R0, R6), EXIT),
	BAD("set on one path only", 3, "r0 is read", UNKNOWN(R2), JMP64K(BPF_JEQ, R2, 0, 1), MOV64K(R0, 0), EXIT),
	GOOD("a number that is known", MOV64K(R2, 0), JMP64K(BPF_JEQ, R2, 0, 1), EXIT, END),
	BAD("cmpxchg without r0", 2, "r0 is read", MOV64K(R1, 0), ST(BPF_DW, R10, -8, 0),
	    ATOMIC(BPF_DW, BPF_CMPXCHG, R10, -8, R1), END),
	BAD("r1 after a function", 1, "r1 is read", CALL(2), MOV64X(R0, R1), EXIT, MOV64K(R0, 0), EXIT),
	BAD("r6 in a function", 3, "r6 is read", MOV64K(R6, 0), CALL(1), EXIT, MOV64X(R0, R6), EXIT),
	BAD("a function without result", 1, "r0 is read", CALL(1), EXIT, MOV64K(R6, 0), EXIT),
};

/* ---- numbers and pointers ---- */

static const struct sample pointers[] = {
	BAD("read through a number", 1, "is a number, not a pointer: it cannot be read through", MOV64K(R3, 4096),
	    LDX(BPF_B, R0, R3, 0), EXIT),
	BAD("written through a number", 1, "cannot be written through", MOV64K(R3, 4096), ST(BPF_B, R3, 0, 1), END),
	BAD("a pointer that was stored elsewhere", 4, "is a number", LDVALUE(R2, ONE, 0), STX(BPF_DW, R2, 0, R10),
	    LDX(BPF_DW, R3, R2, 0), LDX(BPF_B, R0, R3, -8), EXIT),
	BAD("half a pointer", 2, "is a number", STX(BPF_DW, R10, -8, R1), LDX(BPF_W, R1, R10, -8),
	    LDX(BPF_W, R0, R1, 0), EXIT),
	BAD("32-bit move", 1, "is a number", MOV32X(R2, R10), LDX(BPF_B, R0, R2, -1), EXIT),
	BAD("pointers added", 1, "two pointers", MOV64X(R2, R10), ADD64X(R2, R10), END),
	BAD("pointer and number", 1, "this arithmetic", MOV64X(R2, R10), ALU64K(BPF_AND, R2, -8), END),
	BAD("pointer multiplied", 1, "this arithmetic", MOV64X(R2, R10), ALU64K(BPF_MUL, R2, 1), END),
	BAD("number minus pointer", 1, "subtracted from a number", MOV64K(R2, 0), ALU64X(BPF_SUB, R2, R10), END),
	BAD("32-bit addition", 1, "32-bit arithmetic", MOV64X(R2, R10), ALU32K(BPF_ADD, R2, 1), END),
	GOOD("pointers subtracted", LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R0, R1, 4), ALU64X(BPF_SUB, R0, R2), EXIT),
	GOOD("number plus pointer", MOV64K(R2, -8), ADD64X(R2, R10), ST(BPF_DW, R2, 0, 0), END),
	BAD("context moved", 0, "the context cannot be added", ADD64K(R1, 4), END),
	GOOD("context moved by 0", ADD64K(R1, 0), LDX(BPF_W, R0, R1, 12), EXIT),
	BAD("context moved by what nobody knows", 1, "the context cannot be added", UNKNOWN(R2), ADD64X(R1, R2), END),
	BAD("end of the packet moved", 1, "the end of the packet cannot", LDX(BPF_W, R2, R1, 4), ADD64K(R2, -1), END),
	BAD("end of the packet read", 1, "is the end of the packet", LDX(BPF_W, R2, R1, 4), LDX(BPF_B, R0, R2, 0),
	    EXIT),
	BAD("map moved", 2, "a map cannot", LDMAP(R1, ARRAY), ADD64K(R1, 8), END),
	BAD("map read", 2, "is a map", LDMAP(R1, ARRAY), LDX(BPF_DW, R0, R1, 0), EXIT),
	BAD("function moved", 2, "a function cannot", LDFUNC(R1, 4), ADD64K(R1, 1), MOV64K(R0, 0), EXIT, EXIT),
	BAD("function read", 2, "is a function", LDFUNC(R1, 4), LDX(BPF_B, R0, R1, 0), MOV64K(R0, 0), EXIT, EXIT),
	GOOD("exchange of pointers is no use, but harmless", MOV64K(R2, 0), ST(BPF_DW, R10, -8, 0),
	     ATOMIC(BPF_DW, BPF_XCHG, R10, -8, R2), MOV64X(R0, R2), EXIT),
	BAD("pointer out of an exchange", 4, "is a number", MOV64X(R2, R10), ST(BPF_DW, R10, -8, 0),
	    ATOMIC(BPF_DW, BPF_XCHG, R10, -8, R2), LDX(BPF_DW, R2, R10, -8), LDX(BPF_B, R0, R2, -1), EXIT),
};

/* ---- the context ---- */

static const struct sample context[] = {
	GOOD("every member", LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R2, R1, 4), LDX(BPF_W, R2, R1, 8),
	     LDX(BPF_W, R2, R1, 12), LDX(BPF_W, R2, R1, 16), END),
	BAD("egress", 0, "xdp/devmap", LDX(BPF_W, R2, R1, 20), END),
	BAD("past its end", 0, "no member at offset 24", LDX(BPF_W, R2, R1, 24), END),
	BAD("before it", 0, "no member at offset -4", LDX(BPF_W, R2, R1, -4), END),
	BAD("misaligned", 0, "no member at offset 2", LDX(BPF_W, R2, R1, 2), END),
	BAD("a byte", 0, "whole members", LDX(BPF_B, R2, R1, 0), END),
	BAD("half", 0, "whole members", LDX(BPF_H, R2, R1, 12), END),
	BAD("two at once", 0, "whole members", LDX(BPF_DW, R2, R1, 0), END),
	BAD("sign-extended", 0, "whole members", LDXS(BPF_W, R2, R1, 12), END),
	BAD("written", 0, "the context cannot be written", ST(BPF_W, R1, 12, 0), END),
	BAD("written from a register", 1, "the context cannot be written", MOV64K(R2, 0), STX(BPF_W, R1, 0, R2), END),
	BAD("atomically", 1, "the context cannot be written", MOV64K(R2, 0), ATOMIC(BPF_W, BPF_ADD, R1, 12, R2), END),
	GOOD("spilled", STX(BPF_DW, R10, -8, R1), LDX(BPF_DW, R6, R10, -8), LDX(BPF_W, R0, R6, 12), EXIT),
	BAD("spilled and overwritten", 3, "is a number", STX(BPF_DW, R10, -8, R1), ST(BPF_B, R10, -1, 0),
	    LDX(BPF_DW, R6, R10, -8), LDX(BPF_W, R0, R6, 12), EXIT),
	BAD("spilled and overwritten across", 3, "is a number", STX(BPF_DW, R10, -16, R1), ST(BPF_DW, R10, -12, 0),
	    LDX(BPF_DW, R6, R10, -16), LDX(BPF_W, R0, R6, 12), EXIT),
	BAD("read at another place", 2, "is a number", STX(BPF_DW, R10, -8, R1), LDX(BPF_DW, R6, R10, -16),
	    LDX(BPF_W, R0, R6, 12), EXIT),
	BAD("context or stack", 5, "another path", UNKNOWN(R2), MOV64X(R3, R1), JMP64K(BPF_JEQ, R2, 0, 2),
	    MOV64X(R3, R10), ADD64K(R3, -8), LDX(BPF_W, R0, R3, 0), EXIT),
	BAD("context or packet", 4, "another path", UNKNOWN(R2), MOV64X(R3, R1), JMP64K(BPF_JEQ, R2, 0, 1),
	    LDX(BPF_W, R3, R1, 0), LDX(BPF_W, R0, R3, 0), EXIT),
	GOOD("in a function", CALL(1), EXIT, LDX(BPF_W, R0, R1, 12), EXIT),
};

/* ---- the stack ---- */

static const struct sample stack[] = {
	GOOD("lowest byte", ST(BPF_B, R10, -512, 0), END),
	GOOD("highest byte", ST(BPF_B, R10, -1, 0), END),
	BAD("below", 0, "outside the 512", ST(BPF_B, R10, -513, 0), END),
	BAD("above", 0, "outside the 512", ST(BPF_B, R10, 0, 0), END),
	BAD("across the end", 0, "outside the 512", ST(BPF_DW, R10, -7, 0), END),
	BAD("across the start", 0, "outside the 512", LDX(BPF_DW, R0, R10, -516), EXIT),
	GOOD("what nobody wrote reads as 0", LDX(BPF_DW, R0, R10, -8), EXIT),
	GOOD("at an unknown place", UNKNOWN(R2), MOV64X(R3, R10), ADD64X(R3, R2), ST(BPF_B, R3, -64, 0), END),
	GOOD("a spilled pointer stays when an unknown place is written", STX(BPF_DW, R10, -8, R1), UNKNOWN(R2),
	     MOV64X(R3, R10), ADD64X(R3, R2), ST(BPF_B, R3, -64, 0), LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 12),
	     EXIT),
	BAD("a spilled number does not", 6, "is a number", ST(BPF_DW, R10, -8, 0), UNKNOWN(R2), MOV64X(R3, R10),
	    ADD64X(R3, R2), ST(BPF_B, R3, -64, 1), LDX(BPF_DW, R4, R10, -8), LDX(BPF_W, R0, R4, 12), EXIT),
	BAD("a pointer into a frame that is gone", 3, "returns a pointer into its own", CALL(1), EXIT, MOV64X(R0, R10),
	    EXIT),
	BAD("a pointer into a frame that is gone, by way of the caller's", 4, "is a number", MOV64X(R1, R10), CALL(4),
	    LDX(BPF_DW, R2, R10, -8), MOV64K(R0, 0), LDX(BPF_B, R0, R2, -1), EXIT, STX(BPF_DW, R1, -8, R10),
	    MOV64K(R0, 0), EXIT),
	GOOD("the caller's frame", MOV64X(R1, R10), CALL(2), LDX(BPF_DW, R0, R10, -8), EXIT, ST(BPF_DW, R1, -8, 5),
	     MOV64K(R0, 0), EXIT),
	BAD("misaligned atomic", 1, "aligned", MOV64K(R2, 0), ATOMIC(BPF_DW, BPF_ADD, R10, -12, R2), END),
};

/* ---- maps ---- */

static const struct sample maps[] = {
	GOOD("lookup and use", LOOKUP(ARRAY), JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_DW, R0, 0, 1), END),
	GOOD("null on the other branch", LOOKUP(ARRAY), JMP64K(BPF_JNE, R0, 0, 2), END, LDX(BPF_W, R0, R0, 4), EXIT),
	GOOD("compared with a register", LOOKUP(ARRAY), MOV64K(R1, 0), JMP64X(BPF_JEQ, R0, R1, 1), ST(BPF_W, R0, 0, 1),
	     END),
	BAD("without a look", 6, "may be null", LOOKUP(ARRAY), ST(BPF_DW, R0, 0, 1), END),
	BAD("on the wrong branch", 7, "is a number", LOOKUP(ARRAY), JMP64K(BPF_JNE, R0, 0, 1), ST(BPF_W, R0, 0, 1),
	    END),
	BAD("32-bit comparison says nothing", 7, "may be null", LOOKUP(ARRAY), JMP32K(BPF_JEQ, R0, 0, 1),
	    ST(BPF_W, R0, 0, 1), END),
	BAD("compared with 1", 7, "may be null", LOOKUP(ARRAY), JMP64K(BPF_JEQ, R0, 1, 1), ST(BPF_W, R0, 0, 1), END),
	BAD("moved before the look", 6, "before it was compared", LOOKUP(ARRAY), ADD64K(R0, 4), END),
	GOOD("a copy learns, too", LOOKUP(ARRAY), MOV64X(R6, R0), JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_W, R6, 0, 1), END),
	GOOD("a spilled copy learns, too", LOOKUP(ARRAY), STX(BPF_DW, R10, -16, R0), JMP64K(BPF_JEQ, R0, 0, 2),
	     LDX(BPF_DW, R6, R10, -16), ST(BPF_W, R6, 0, 1), END),
	BAD("another lookup does not", 15, "may be null", LOOKUP(ARRAY), MOV64X(R6, R0), LOOKUP(ARRAY),
	    JMP64K(BPF_JEQ, R0, 0, 2), ST(BPF_W, R0, 0, 1), ST(BPF_W, R6, 0, 1), END),
	BAD("past the value", 7, "outside the value", LOOKUP(ARRAY), JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_DW, R0, 12, 1),
	    END),
	BAD("before the value", 7, "outside the value", LOOKUP(ARRAY), JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_B, R0, -1, 1),
	    END),
	BAD("a number for a map", 2, "argument 1 must be a map", MOV64K(R1, 1), MOV64X(R2, R10),
	    HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("a map value for a map", 3, "argument 1 must be a map", LDVALUE(R1, ONE, 0), MOV64X(R2, R10),
	    HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("a map out of a map value", 4, "argument 1 must be a map", LDVALUE(R6, ONE, 0), LDX(BPF_DW, R1, R6, 0),
	    MOV64X(R2, R10), HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("a number for a key", 3, "is a number", LDMAP(R1, ARRAY), MOV64K(R2, 4), HELPER(BPF_FUNC_map_lookup_elem),
	    END),
	BAD("null for a key", 3, "is a number", LDMAP(R1, ARRAY), MOV64K(R2, 0), HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("the context for a key", 3, "is the context", MOV64X(R2, R1), LDMAP(R1, ARRAY),
	    HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("no room for the key", 3, "needs 4 bytes", MOV64X(R2, R10), LDMAP(R1, ARRAY),
	    HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("no key", 2, "argument 2 of map_lookup_elem is not set", LDMAP(R1, ARRAY), HELPER(BPF_FUNC_map_lookup_elem),
	    END),
	BAD("lookup in a program array", 5, "does not work on map", LOOKUP(PROGS), END),
	BAD("lookup in a ring", 5, "does not work on map", LOOKUP(RING), END),
	BAD("delete in a perf array", 4, "does not work on map", MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, PERF),
	    HELPER(BPF_FUNC_map_delete_elem), END),
	BAD("tail call through an array", 3, "does not work on map", LDMAP(R2, ARRAY), MOV64K(R3, 0),
	    HELPER(BPF_FUNC_tail_call), END),
	BAD("reserve in a hash", 4, "does not work on map", LDMAP(R1, HASH), MOV64K(R2, 8), MOV64K(R3, 0),
	    HELPER(BPF_FUNC_ringbuf_reserve), END),
	GOOD("a packet for a key", LDX(BPF_W, R2, R1, 0), LDMAP(R1, ARRAY), HELPER(BPF_FUNC_map_lookup_elem), END),
	BAD("read-only data written", 2, "read-only", LDVALUE(R1, RODATA, 0), ST(BPF_W, R1, 0, 1), END),
	GOOD("read-only data is known", LDVALUE(R1, RODATA, 0), LDX(BPF_W, R2, R1, 0), JMP64K(BPF_JEQ, R2, 77, 1),
	     HELPER(12345), END),
	BAD("data that can change is not", 4, "helper number 12345", LDVALUE(R1, ONE, 0), LDX(BPF_W, R2, R1, 0),
	    JMP64K(BPF_JEQ, R2, 0, 1), HELPER(12345), END),
	GOOD("either of two maps", UNKNOWN(R6), LDVALUE(R2, ONE, 0), JMP64K(BPF_JEQ, R6, 0, 2), LDVALUE(R2, RODATA, 0),
	     LDX(BPF_W, R0, R2, 0), EXIT),
	GOOD("null or a value", UNKNOWN(R6), MOV64K(R2, 0), JMP64K(BPF_JEQ, R6, 0, 2), LDVALUE(R2, ONE, 0),
	     JMP64K(BPF_JEQ, R2, 0, 1), ST(BPF_W, R2, 0, 1), END),
};

/* ---- the packet ---- */

#define MOVE MOV64X(R1, R6), MOV64K(R2, 0), HELPER(BPF_FUNC_xdp_adjust_head) /* 3 */

static const struct sample packet[] = {
	GOOD("read", LDX(BPF_W, R2, R1, 0), LDX(BPF_B, R0, R2, 0), EXIT),
	GOOD("with the usual test", LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R3, R1, 4), MOV64X(R4, R2), ADD64K(R4, 14),
	     JMP64X(BPF_JGT, R4, R3, 1), ST(BPF_B, R2, 0, 1), END),
	BAD("after it was moved", 5, "loaded again", MOV64X(R6, R1), LDX(BPF_W, R7, R1, 0), MOVE, LDX(BPF_B, R0, R7, 0),
	    EXIT),
	BAD("spilled, after it was moved", 7, "loaded again", MOV64X(R6, R1), LDX(BPF_W, R7, R1, 0),
	    STX(BPF_DW, R10, -8, R7), MOVE, LDX(BPF_DW, R7, R10, -8), LDX(BPF_B, R0, R7, 0), EXIT),
	GOOD("loaded again", MOV64X(R6, R1), LDX(BPF_W, R7, R1, 0), MOVE, LDX(BPF_W, R7, R6, 0), LDX(BPF_B, R0, R7, 0),
	     EXIT),
	BAD("after a function moved it", 3, "loaded again", MOV64X(R6, R1), LDX(BPF_W, R7, R1, 0), CALL(2),
	    LDX(BPF_B, R0, R7, 0), EXIT, MOV64K(R2, 0), HELPER(BPF_FUNC_xdp_adjust_tail), EXIT),
	GOOD("after a function did not", MOV64X(R6, R1), LDX(BPF_W, R7, R1, 0), CALL(2), LDX(BPF_B, R0, R7, 0), EXIT,
	     MOV64K(R0, 0), EXIT),
	BAD("in the caller's frame", 4, "loaded again", LDX(BPF_W, R7, R1, 0), STX(BPF_DW, R10, -8, R7), CALL(3),
	    LDX(BPF_DW, R7, R10, -8), LDX(BPF_B, R0, R7, 0), EXIT, MOV64K(R2, 0), HELPER(BPF_FUNC_xdp_adjust_head),
	    EXIT),
	BAD("context that is none", 2, "argument 1 must be the context", MOV64X(R1, R10), MOV64K(R2, 0),
	    HELPER(BPF_FUNC_xdp_adjust_head), END),
	GOOD("metadata", LDX(BPF_W, R2, R1, 8), LDX(BPF_W, R0, R2, 0), EXIT),
	GOOD("packet or stack", UNKNOWN(R2), LDX(BPF_W, R3, R1, 0), JMP64K(BPF_JEQ, R2, 0, 2), MOV64X(R3, R10),
	     ADD64K(R3, -8), ST(BPF_W, R3, 0, 1), END),
	BAD("packet or number", 4, "is a number", UNKNOWN(R2), LDX(BPF_W, R3, R1, 0), JMP64K(BPF_JEQ, R2, 0, 1),
	    MOV64K(R3, 0), ST(BPF_W, R3, 0, 1), END),
};

/* ---- records ---- */

static const struct sample records[] = {
	GOOD("reserve and submit", RESERVE, JMP64K(BPF_JEQ, R0, 0, 4), ST(BPF_DW, R0, 0, 1), SUBMIT(R0), END),
	BAD("never submitted", 8, "neither submitted", RESERVE, JMP64K(BPF_JEQ, R0, 0, 1), ST(BPF_DW, R0, 0, 1), END),
	BAD("not looked at", 6, "", RESERVE, END),
	BAD("submitted without a look", 7, "compared with 0", RESERVE, SUBMIT(R0), END),
	BAD("written without a look", 5, "may be null", RESERVE, ST(BPF_DW, R0, 0, 1), END),
	BAD("submitted twice", 12, "must be a reserved record", RESERVE, MOV64X(R6, R0), JMP64K(BPF_JEQ, R0, 0, 6),
	    SUBMIT(R6), SUBMIT(R6), END),
	BAD("used after it was submitted", 10, "submitted or discarded", RESERVE, MOV64X(R6, R0),
	    JMP64K(BPF_JEQ, R0, 0, 4), SUBMIT(R6), ST(BPF_W, R6, 0, 1), END),
	BAD("submitted in the middle", 9, "the beginning", RESERVE, JMP64K(BPF_JEQ, R0, 0, 4), ADD64K(R0, 8),
	    SUBMIT(R0), END),
	BAD("a map value for a record", 4, "must be a reserved record", LDVALUE(R1, ONE, 0), MOV64K(R2, 0),
	    MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_submit), END),
	BAD("submitted on one path", 12, "neither submitted", UNKNOWN(R7), RESERVE, JMP64K(BPF_JEQ, R0, 0, 4),
	    JMP64K(BPF_JEQ, R7, 0, 3), SUBMIT(R0), END),
	BAD("tail call with a record", 11, "lose a reserved record", MOV64X(R6, R1), RESERVE, JMP64K(BPF_JEQ, R0, 0, 5),
	    MOV64X(R1, R6), LDMAP(R2, PROGS), MOV64K(R3, 0), HELPER(BPF_FUNC_tail_call), END),
	GOOD("spilled", RESERVE, STX(BPF_DW, R10, -8, R0), JMP64K(BPF_JEQ, R0, 0, 4), LDX(BPF_DW, R6, R10, -8),
	     SUBMIT(R6), END),
};

/* ---- calls, numbers of bytes, callbacks ---- */

static const struct sample calls[] = {
	BAD("unknown helper", 0, "helper number 12345", HELPER(12345), END),
	BAD("what CO-RE did not find", 0, "CO-RE", HELPER(LEAT_IMAGE_POISON), END),
	BAD("kfunc", 0, "function of the kernel", INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, 0), END),
	BAD("kernel variable", 0, "variable of the kernel", LD64_FROM(BPF_PSEUDO_BTF_ID, R1, 0, 0), END),
	BAD("recursion", 0, "functions deep", CALL(-1), EXIT),
	BAD("mutual recursion", 2, "functions deep", CALL(1), EXIT, CALL(-3), EXIT),
	BAD("length 0", 4, "1 byte or more", MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -8), MOV64K(R4, 0),
	    HELPER(BPF_FUNC_xdp_load_bytes), END),
	BAD("negative length", 4, "1 byte or more", MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -8), MOV64K(R4, -1),
	    HELPER(BPF_FUNC_xdp_load_bytes), END),
	BAD("length past the frame", 4, "needs 9 bytes", MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -8), MOV64K(R4, 9),
	    HELPER(BPF_FUNC_xdp_load_bytes), END),
	GOOD("length that fits", MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -8), MOV64K(R4, 8),
	     HELPER(BPF_FUNC_xdp_load_bytes), END),
	BAD("a pointer for a length", 4, "number of bytes", MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -8),
	    MOV64X(R4, R10), HELPER(BPF_FUNC_xdp_load_bytes), END),
	BAD("a helper writes over a spilled pointer", 7, "is a number", STX(BPF_DW, R10, -8, R1), MOV64K(R2, 0),
	    MOV64X(R3, R10), ADD64K(R3, -8), MOV64K(R4, 8), HELPER(BPF_FUNC_xdp_load_bytes), LDX(BPF_DW, R1, R10, -8),
	    LDX(BPF_W, R0, R1, 12), EXIT),
	BAD("read-only data given to be written", 4, "read-only", MOV64K(R2, 0), LDVALUE(R3, RODATA, 0), MOV64K(R4, 4),
	    HELPER(BPF_FUNC_xdp_load_bytes), END),
	GOOD("null of length 0", MOV64K(R1, 0), MOV64K(R2, 0), MOV64K(R3, 0), MOV64K(R4, 0), MOV64K(R5, 0),
	     HELPER(BPF_FUNC_csum_diff), END),
	BAD("null of length 4", 5, "length is not 0", MOV64K(R1, 0), MOV64K(R2, 4), MOV64K(R3, 0), MOV64K(R4, 0),
	    MOV64K(R5, 0), HELPER(BPF_FUNC_csum_diff), END),
	BAD("tail call, deep stack", 6, "a tail call in a function", ST(BPF_B, R10, -256, 0), CALL(1), EXIT,
	    LDMAP(R2, PROGS), MOV64K(R3, 0), HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT),
	GOOD("tail call, less stack", ST(BPF_B, R10, -255, 0), CALL(1), EXIT, LDMAP(R2, PROGS), MOV64K(R3, 0),
	     HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT),
	GOOD("deep stack, tail call in the main function", MOV64X(R6, R1), ST(BPF_B, R10, -512, 0), CALL(7),
	     MOV64X(R1, R6), LDMAP(R2, PROGS), MOV64K(R3, 0), HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT,
	     MOV64K(R0, 0), EXIT),
};

#define LOOP(distance, arg) MOV64K(R1, 5), LDFUNC(R2, distance), arg, MOV64K(R4, 0), HELPER(BPF_FUNC_loop) /* 6 */

#define EACH(map, distance)                                                                                       \
	LDMAP(R1, map), LDFUNC(R2, distance), MOV64X(R3, R10), MOV64K(R4, 0), HELPER(BPF_FUNC_for_each_map_elem) /* 7 */

static const struct sample callbacks[] = {
	GOOD("loop", LOOP(6, MOV64K(R3, 0)), END, MOV64K(R0, 0), EXIT),
	GOOD("loop with a context", LOOP(6, MOV64X(R3, R10)), END, ST(BPF_DW, R2, -8, 1), MOV64K(R0, 0), EXIT),
	BAD("a number for a callback", 4, "a function of the program", MOV64K(R1, 5), MOV64K(R2, 5), MOV64K(R3, 0),
	    MOV64K(R4, 0), HELPER(BPF_FUNC_loop), END),
	BAD("a number for a context", 5, "pointer into the stack", LOOP(6, MOV64K(R3, 1)), END, MOV64K(R0, 0), EXIT),
	BAD("r3 in a callback", 8, "r3 is read", LOOP(6, MOV64K(R3, 0)), END, MOV64X(R0, R3), EXIT),
	BAD("callback without result", 8, "must return a number", LOOP(6, MOV64K(R3, 0)), END, EXIT),
	BAD("callback that returns its number", 9, "must return 0 or 1", LOOP(6, MOV64K(R3, 0)), END, MOV64X(R0, R1), EXIT),
	BAD("callback that returns -1", 9, "must return 0 or 1", LOOP(6, MOV64K(R3, 0)), END, MOV64K(R0, -1), EXIT),
	GOOD("callback that returns a bit", LOOP(6, MOV64K(R3, 0)), END, MOV64X(R0, R1), ALU64K(BPF_AND, R0, 1), EXIT),
	GOOD("callback that returns 0 or 1", LOOP(6, MOV64K(R3, 0)), END, MOV64K(R0, 0), JMP64K(BPF_JNE, R1, 3, 1),
	     MOV64K(R0, 1), EXIT),
	GOOD("callback that finds something in a long loop", LOOP(6, MOV64K(R3, 0)), END, MOV64K(R0, 0), MOV64K(R2, 0),
	     JMP64X(BPF_JNE, R1, R2, 1), MOV64K(R0, 1), ADD64K(R2, 1), JMP64K(BPF_JNE, R2, 1000, -4), EXIT),
	BAD("tail call in a callback, deep stack", 14, "a tail call in a function", ST(BPF_B, R10, -256, 0),
	    STX(BPF_DW, R10, -8, R1), LOOP(6, MOV64X(R3, R10)), END, LDX(BPF_DW, R1, R2, -8), LDMAP(R2, PROGS),
	    MOV64K(R3, 0), HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT),
	BAD("callback that calls itself", 13, "functions deep", LOOP(6, MOV64K(R3, 0)), END, MOV64K(R1, 1),
	    LDFUNC(R2, -2), MOV64K(R3, 0), MOV64K(R4, 0), HELPER(BPF_FUNC_loop), MOV64K(R0, 0), EXIT),
	GOOD("for each element", EACH(ARRAY, 6), END, LDX(BPF_W, R0, R2, 0), LDX(BPF_DW, R5, R3, 8), MOV64K(R0, 0), EXIT),
	GOOD("a key for a helper", EACH(HASH, 6), END, HELPER(BPF_FUNC_map_delete_elem), MOV64K(R0, 0), EXIT),
	BAD("a key is written", 9, "cannot be changed", EACH(HASH, 6), END, ST(BPF_W, R2, 0, 1), MOV64K(R0, 0), EXIT),
	BAD("a key as output", 14, "cannot be changed", STX(BPF_DW, R10, -8, R1), EACH(HASH, 6), END,
	    LDX(BPF_DW, R1, R4, -8), MOV64X(R3, R2), MOV64K(R2, 0), MOV64K(R4, 4), HELPER(BPF_FUNC_xdp_load_bytes), EXIT),
	BAD("a key that was kept", 8, "is a number", EACH(HASH, 8), LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 0), END,
	    STX(BPF_DW, R4, -8, R2), MOV64K(R0, 0), EXIT),
	BAD("a map without elements to walk over", 6, "does not work on map", EACH(RING, 6), END, MOV64K(R0, 0), EXIT),
	BAD("the callback changes what the caller trusts", 8, "is a number", STX(BPF_DW, R10, -8, R1),
	    LOOP(9, MOV64X(R3, R10)), LDX(BPF_DW, R1, R10, -8), LDX(BPF_W, R0, R1, 12), EXIT, EXIT, EXIT,
	    ST(BPF_DW, R2, -8, 1), MOV64K(R0, 0), EXIT),
};

/* ---- */

static void add_maps(struct test_bpf *t)
{
	static const uint32_t zero;
	const uint32_t data[4] = { 77, 0, 0, 0 };

	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0), ARRAY);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0), ONE);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_HASH, 4, 16, 4, 0), HASH);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0), PROGS);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0), RING);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 4, 0), PERF);
	assert_int_equal(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 1, BPF_F_RDONLY_PROG), RODATA);
	assert_int_equal(leat_bpf_map_update(&t->map[RODATA], &zero, data, BPF_ANY), 0);
	t->map[RODATA].frozen = true;
}

CHECK(structure)
CHECK(registers)
CHECK(pointers)
CHECK(context)
CHECK(stack)
CHECK(maps)
CHECK(packet)
CHECK(records)
CHECK(calls)
CHECK(callbacks)

/* ---- how much it walks ---- */

static int verify(struct bpf_insn *insns, uint32_t n, char *said)
{
	struct test_bpf t;
	int err;

	assert_int_equal(test_bpf_begin(&t, 0), 0);
	add_maps(&t);
	err = test_bpf_verify(&t, insns, n);
	strcpy(said, t.said);
	test_bpf_end(&t);
	return err;
}

/** 200 branches one after the other, all of whose paths lead to the same: not 2^200 steps. */
static void paths_that_meet(void **state)
{
	static struct bpf_insn insns[1000];
	const struct bpf_insn end[] = { END }, load = UNKNOWN(R2);
	char said[1024];
	uint32_t n = 0, i;

	(void)state;
	insns[n++] = load;
	for (i = 0; i < 200; i++) {
		const struct bpf_insn branch[] = { JMP64K(BPF_JGT, R2, i, 1), MOV64K(R3, i), STX(BPF_DW, R10, -8, R2) };

		memcpy(&insns[n], branch, sizeof(branch));
		n += 3;
	}
	memcpy(&insns[n], end, sizeof(end));
	assert_int_equal(verify(insns, n + 2, said), 0);
}

/** Flags that are known differ on every path: they are forgotten before the walk gets too long. */
static void flags_that_differ(void **state)
{
	static struct bpf_insn insns[1000];
	const struct bpf_insn end[] = { MOV64X(R0, R6), EXIT }, begin[] = { UNKNOWN(R2), MOV64K(R6, 0) };
	char said[1024];
	uint32_t n = 2, i;

	(void)state;
	memcpy(insns, begin, sizeof(begin));
	for (i = 0; i < 200; i++) {
		const struct bpf_insn branch[] = { JMP64K(BPF_JGT, R2, i, 1), ALU64K(BPF_XOR, R6, 1u << (i % 31)) };

		memcpy(&insns[n], branch, sizeof(branch));
		n += 2;
	}
	memcpy(&insns[n], end, sizeof(end));
	assert_int_equal(verify(insns, n + 2, said), 0);
}

/** Loops whose end is known or not, one in the other. */
static void loops(void **state)
{
	struct bpf_insn nested[] = { UNKNOWN(R2),
				     MOV64K(R3, 0),
				     MOV64K(R4, 0),
				     MOV64X(R5, R10),
				     ADD64X(R5, R4),
				     ST(BPF_B, R5, -256, 0),
				     ADD64K(R4, 1),
				     JMP64K(BPF_JLT, R4, 200, -5),
				     ADD64K(R3, 1),
				     JMP64X(BPF_JLT, R3, R2, -8),
				     END };
	char said[1024];

	(void)state;
	assert_int_equal(verify(nested, COUNT(nested), said), 0);
}

/** Reads all of the frame's stack. */
static uint32_t read_frame(struct bpf_insn *insns)
{
	uint32_t i;

	for (i = 0; i < 64; i++)
		insns[i] = (struct bpf_insn)LDX(BPF_DW, R0, R10, -8 * (int)(i + 1));
	return i;
}

/** More paths than the budget has steps: refused in words. */
static void too_complex(void **state)
{
	static struct bpf_insn insns[4000];
	const struct bpf_insn end[] = { END }, begin[] = { UNKNOWN(R2), MOV64X(R6, R1) };
	char said[1024];
	uint32_t n = 2, i;

	(void)state;
	memcpy(insns, begin, sizeof(begin));
	/* each stage leaves one of two pointers in a slot of its own, all of which are read: 2^50 states */
	for (i = 0; i < 50; i++) {
		const struct bpf_insn branch[] = { MOV64X(R3, R10), JMP64K(BPF_JSET, R2, 1u << (i % 31), 1), MOV64X(R3, R6),
						   STX(BPF_DW, R10, -8 * (int)(i + 1), R3) };

		memcpy(&insns[n], branch, sizeof(branch));
		n += 4;
	}
	memcpy(&insns[n], end, sizeof(end));
	assert_int_equal(verify(insns, n + 2, said), 0); /* nobody reads them: it does not matter which it was */
	n += read_frame(&insns[n]);
	memcpy(&insns[n], end, sizeof(end));
	assert_int_equal(verify(insns, n + 2, said), -EINVAL);
	assert_non_null(strstr(said, "too complex"));
}

/** Fills the frame's stack with pointers. */
static uint32_t fill_frame(struct bpf_insn *insns)
{
	uint32_t i;

	for (i = 0; i < 64; i++)
		insns[i] = (struct bpf_insn)STX(BPF_DW, R10, -8 * (int)(i + 1), R10);
	return i;
}

/** Few steps, but states that are long to compare: refused within seconds, too. */
static void dear_to_compare(void **state)
{
	static struct bpf_insn insns[2000];
	const struct bpf_insn call = CALL(66), begin[] = { LDMAP(R6, ARRAY) }, end[] = { END };
	char said[1024];
	uint32_t n = 0, i;

	(void)state;
	for (i = 0; i < LEAT_BPF_FRAMES_MAX - 1; i++) {
		n += fill_frame(&insns[n]);
		insns[n++] = call;
		n += read_frame(&insns[n]);
		memcpy(&insns[n], end, sizeof(end));
		n += COUNT(end);
	}
	n += fill_frame(&insns[n]);
	memcpy(&insns[n], begin, sizeof(begin));
	n += COUNT(begin);
	for (i = 0; i < 40; i++) {
		const struct bpf_insn branch[] = { HELPER(BPF_FUNC_get_prandom_u32), JMP64K(BPF_JGT, R0, 5, 1),
						   STX(BPF_DW, R10, -8 * (int)(i + 25), R6), MOV64K(R0, 0) };

		memcpy(&insns[n], branch, sizeof(branch));
		n += 4;
	}
	n += read_frame(&insns[n]);
	memcpy(&insns[n], end, sizeof(end));
	assert_int_equal(verify(insns, n + 2, said), -EINVAL);
	assert_non_null(strstr(said, "its paths differ in too many ways"));
}

/** Callbacks lie below who calls the helper. */
static void stack_of_callbacks(void **state)
{
	static const struct bpf_insn insns[] = { ST(BPF_DW, R10, -24, 0), LOOP(6, MOV64K(R3, 0)), END,
						 ST(BPF_DW, R10, -40, 0), MOV64K(R0, 0), EXIT };
	struct test_bpf t;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	assert_int_equal(test_bpf_verify(&t, insns, COUNT(insns)), 0);
	assert_int_equal(t.prog[0].stack, 24 + 40);
	assert_int_equal(t.prog[0].longest, 0);
	test_bpf_end(&t);
}

/** The sentence as a whole. */
static void a_sentence(void **state)
{
	struct bpf_insn insns[] = { MOV64K(R3, 5), LDX(BPF_B, R0, R3, 4), EXIT };
	char said[1024];

	(void)state;
	assert_int_equal(verify(insns, COUNT(insns), said), -EINVAL);
	assert_string_equal(said, "test: instruction 1: r3 is a number, not a pointer: it cannot be read through "
				  "[r0 = *(u8 *)(r3 +4), r3 is a number (5)]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_structure), cmocka_unit_test(check_registers),
		cmocka_unit_test(check_pointers),  cmocka_unit_test(check_context),
		cmocka_unit_test(check_stack),     cmocka_unit_test(check_maps),
		cmocka_unit_test(check_packet),    cmocka_unit_test(check_records),
		cmocka_unit_test(check_calls),     cmocka_unit_test(check_callbacks),
		cmocka_unit_test(paths_that_meet), cmocka_unit_test(flags_that_differ),
		cmocka_unit_test(loops),           cmocka_unit_test(too_complex),
		cmocka_unit_test(dear_to_compare), cmocka_unit_test(a_sentence),
		cmocka_unit_test(stack_of_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
