/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86.h: the compiler for x86-64, for its parts. jit_x86.c has the theory of operation.
 */
#ifndef LEAT_BPF_JIT_X86_H
#define LEAT_BPF_JIT_X86_H

#include "bpf/engine/interp.h"
#include "bpf/engine/jit.h"
#include "bpf/engine/jit_track.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R08, R09, R10, R11, R12, R13, R14, R15 };

/* What is not a BPF register. */
#define RUN R13  /* the struct leat_bpf_run */
#define TMP RDI  /* nobody's */
#define TMP2 R10 /* nobody's */
#define FUEL R11 /* run->fuel, in functions that have backward jumps */

#define RUN_OFF(member) ((int32_t)offsetof(struct leat_bpf_run, member))

/* Condition codes of jumps: their opcodes' low bits. */
enum { CC_B = 2, CC_AE, CC_E, CC_NE, CC_BE, CC_A, CC_S, CC_NS, CC_L = 12, CC_GE, CC_LE, CC_G };

/* Pieces of code that programs share. */
enum jit_stub {
	STUB_ENTER,
	STUB_LEAVE,
	STUB_UNWIND,
	STUB_TRAP,        /* edx: reason; r10d: instruction */
	STUB_TRAP_ACCESS, /* r10d: instruction */
	STUB_TRAP_FUEL,
	STUB_TRAP_FRAMES,
	STUB_HELPER_TRAP,
	STUB_ACCESS,      /* rdi: address; r10d: instruction; NE when it is good. Changes rdi and r10 */
	STUB_ZERO,        /* zeroes a frame; changes r10 */
	STUB_PACKET,      /* where the packet is; changes rdi, r10, r11 */
	STUBS
};

/** Code that is rarely run and stands behind the rest. */
struct jit_out {
	uint32_t op;
	uint8_t stub; /* where it leads; STUB_ACCESS: may come back */
	uint8_t reg;  /* STUB_ACCESS: the address is reg + off */
	bool fuel;    /* r11 is to be stored first */
	int32_t off;
	uint32_t at, was; /* where it begins, in this pass and the last */
	uint32_t back;
};

struct jit_func {
	uint32_t start; /* its first operation */
	uint32_t at, was; /* its entry */
	uint8_t saved;    /* which of r6..r9 it uses, bit 0: r6 */
	uint16_t zero;    /* bytes of its frame that begin zeroed */
	bool calls;       /* keeps the machine stack aligned */
	bool fuel;        /* keeps fuel in a register */
	bool must_call, must_pay; /* what the first pass learned: calls, fuel */
};

struct jit {
	struct leat_bpf_prog *prog;
	struct leat_jit_memory mem;
	uint32_t len;      /* of this pass, so far */
	uint32_t was_len;  /* of the last one */
	bool counting;     /* the first pass: nothing is written, and every distance is far */
	bool far;          /* no short jumps */
	bool bmi2, avx;
	bool guards;       /* tests packet accesses against run->room */
	bool must_guard;   /* what the first pass learned of that */
	bool own_stubs;    /* the shared pieces are out of reach */
	bool tail_calls, callbacks;
	bool paired;        /* the operation at hand was compiled with the one before */
	uint32_t *at, *was; /* [2 * i]: where operation i begins, [2 * i + 1]: where it ends */
	int16_t *row;       /* of the table of instructions, by operation */
	uint8_t *mark;     /* LEAT_TRACK_* */
	uint32_t *func_of;
	struct jit_func *func, *in; /* in: the one being compiled */
	uint32_t n_funcs;
	struct jit_out *out;
	uint32_t n_out, max_out;
	struct jit_out no_out; /* for one that is too many */
	uint32_t stub[STUBS]; /* where they are, from the start of this code on; maybe before it */
	struct leat_track track;
};

extern const uint8_t leat_jit_reg[MAX_BPF_REG];

/* ---- jit_x86_emit.c: instructions of the machine ----
 *
 * @op is the opcode with its escape bytes, most significant first: 0x8b, 0x0fb6. W as in REX: 64 bits.
 */

#define X_W 0x1u    /* 64 bits */
#define X_16 0x2u   /* 16 bits */
#define X_LOCK 0x4u
#define X_BYTE 0x8u /* @reg is a byte register */

void leat_x86_byte(struct jit *j, unsigned int byte);
void leat_x86_u32(struct jit *j, uint32_t value);
/** op with two registers: @reg, and @rm where memory may stand, too. */
void leat_x86_rr(struct jit *j, unsigned int flags, uint32_t op, unsigned int reg, unsigned int rm);
/** op with memory at @base + @disp. */
void leat_x86_mem(struct jit *j, unsigned int flags, uint32_t op, unsigned int reg, unsigned int base, int32_t disp);
/** add, or, adc, sbb, and, sub, xor, cmp: @ext 0..7. */
void leat_x86_alu_imm(struct jit *j, unsigned int flags, unsigned int ext, unsigned int rm, int32_t imm);
void leat_x86_alu_mem_imm(struct jit *j, unsigned int flags, unsigned int ext, unsigned int base, int32_t disp,
			  int32_t imm);
/** @reg = @value, in the shortest way that leaves flags alone. */
void leat_x86_mov_imm(struct jit *j, unsigned int reg, uint64_t value);
void leat_x86_mov(struct jit *j, unsigned int flags, unsigned int to, unsigned int from);
void leat_x86_lea(struct jit *j, unsigned int to, unsigned int base, int32_t disp);
/** @to = @base + @index, which is not RSP. */
void leat_x86_lea_sum(struct jit *j, unsigned int to, unsigned int base, unsigned int index);
void leat_x86_push(struct jit *j, unsigned int reg);
void leat_x86_pop(struct jit *j, unsigned int reg);
/** Calls a function of C; changes rax when it is far away. */
void leat_x86_call(struct jit *j, const void *fn);
/** Jumps to, calls a place of this code that is known to be far or behind. @cc: -1: always. */
void leat_x86_jump_to(struct jit *j, int cc, uint32_t target);
void leat_x86_call_to(struct jit *j, uint32_t target);
/** Jumps over something short; leat_x86_here() says where to. */
uint32_t leat_x86_skip(struct jit *j, int cc);
void leat_x86_here(struct jit *j, uint32_t skip);
/** Jumps to the code of operation @target; of operation @op, @behind bytes follow. */
void leat_x86_goto(struct jit *j, int cc, uint32_t op, uint32_t target, uint32_t behind);
/** Jumps to code behind the rest that leads to @stub. Returns what is to be filled in. */
struct jit_out *leat_x86_out(struct jit *j, int cc, uint32_t op, enum jit_stub stub);

/* ---- jit_x86_stubs.c ---- */

/** The shared pieces. */
struct jit_shared {
	const uint8_t *exec; /* NULL: not yet made */
	uint32_t at[STUBS];  /* from exec on */
};
/** Writes the pieces here, and notes where. */
void leat_x86_emit_stubs(struct jit *j);
/** The pieces that are shared, made if need be. Returns 0 or as leat_jit_memory_open(). */
int leat_x86_get_shared(bool avx, const struct jit_shared **s);
/** The code's memory is known: so is where the shared pieces are from there, or that they are too far. */
void leat_x86_use_shared(struct jit *j, const struct jit_shared *s);

/* ---- jit_x86_pair.c ---- */

/** Compiles operation @i, an @op, and the next together, if that can be done. */
bool leat_x86_pair(struct jit *j, uint32_t i, int op);
/** Whether the operation before jump @i has left ZF as a comparison of its register with 0 would (@wide: 64 bits). */
bool leat_x86_flags_are_set(const struct jit *j, uint32_t i, bool wide);

/* ---- by kinds of operation: each compiles operation @i, an @op of the table ---- */

void leat_x86_alu(struct jit *j, uint32_t i, int op);        /* jit_x86_alu.c */
void leat_x86_memory(struct jit *j, uint32_t i, int op);     /* jit_x86_memory.c */
void leat_x86_atomic(struct jit *j, uint32_t i);             /* jit_x86_atomic.c */
/** The test of an access, if there must be one; the address is @reg + the operation's offset. */
void leat_x86_guard(struct jit *j, uint32_t i, unsigned int bpf_reg, bool write);
void leat_x86_call_helper(struct jit *j, uint32_t i);        /* jit_x86_call.c */
void leat_x86_call_local(struct jit *j, uint32_t i);
void leat_x86_tail_call(struct jit *j, uint32_t i);
/** Fuel goes back to the run before others look at it, and comes from there. */
void leat_x86_store_fuel(struct jit *j);
void leat_x86_load_fuel(struct jit *j);

#endif
