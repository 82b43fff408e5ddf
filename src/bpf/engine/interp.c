/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interp.c: the interpreter: reference for the meaning of programs, and the engine where there is no compiler.
 * *worker*.
 *
 * Theory of operation. prepare.c has turned each instruction slot into one struct leat_bpf_op. The loop jumps
 * from one operation's code straight to the next one's through a table of labels. Registers are an array on the C
 * stack; a BPF call saves r6..r9 and the place to go on at, a tail call replaces the program in the same frame, and a
 * callback is a new loop on the frames above. Every memory access is tested: against the current frame and the packet
 * here, against everything else in access.c. An instruction that the verifier never reached traps.
 */
#include "bpf/engine/interp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "bpf/engine/jit.h"
#include "bpf/env.h"
#include "bpf/map/map.h"

/** What a function goes back to. */
struct frame {
	const struct leat_bpf_op *back;
	struct leat_bpf_prog *prog;
	uint64_t saved[4]; /* r6..r9 */
};

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/* ---- parts of the loop that are no single expression ---- */

/** RFC 9669, 4.1: division by zero gives zero, modulo zero leaves the value, the least number by -1 is itself. */
static int64_t sdiv64(int64_t a, int64_t b)
{
	if (b == -1)
		return (int64_t)(0 - (uint64_t)a);
	return b ? a / b : 0;
}

static int64_t smod64(int64_t a, int64_t b)
{
	if (b == -1)
		return 0;
	return b ? a % b : a;
}

static int32_t sdiv32(int32_t a, int32_t b)
{
	return (int32_t)sdiv64(a, b);
}

static int32_t smod32(int32_t a, int32_t b)
{
	return (int32_t)smod64(a, b);
}

static const struct leat_bpf_aux *aux_of(const struct leat_bpf_run *run, const struct leat_bpf_op *op)
{
	return &run->prog->aux[op - run->prog->op];
}

static LEAT_COLD bool slow_ok(const struct leat_bpf_run *run, const struct leat_bpf_op *op, uint64_t addr,
			      uint32_t size, bool write)
{
	return leat_bpf_access_ok(run, aux_of(run, op), addr, size, write);
}

static inline bool elsewhere_ok(const struct leat_bpf_run *run, const struct leat_bpf_op *op, uint64_t addr,
				uint32_t size, bool write)
{
	return slow_ok(run, op, addr, size, write);
}

/** An access through a stack pointer: nearly always this frame. */
static inline bool stack_ok(const struct leat_bpf_run *run, const struct leat_bpf_op *op, uint64_t addr, uint32_t size,
			    bool write)
{
	uint64_t frame = (uint64_t)(uintptr_t)run->stack + (uint64_t)(run->frames - 1) * LEAT_BPF_STACK_SIZE;

	return leat_likely(addr - frame <= LEAT_BPF_STACK_SIZE - size) || slow_ok(run, op, addr, size, write);
}

static inline bool packet_ok(const struct leat_bpf_run *run, const struct leat_bpf_op *op, uint64_t addr, uint32_t size,
			     bool write)
{
	const struct leat_xdp_buff *xdp = run->xdp;
	uint64_t off = addr - (uint64_t)(uintptr_t)xdp->data;
	uint64_t len = (uint64_t)(xdp->data_end - xdp->data);

	(void)op;
	(void)write;
	return leat_likely(off < len && len - off >= size);
}

/** A new, zeroed frame; returns its r10. */
static uint64_t open_frame(struct leat_bpf_run *run)
{
	memset(leat_bpf_frame_end(run), 0, LEAT_BPF_STACK_SIZE);
	run->frames++;
	return (uint64_t)(uintptr_t)leat_bpf_frame_end(run);
}

/* ---- the loop ---- */

#define U8(x) ((uint8_t)(x))
#define U16(x) ((uint16_t)(x))
#define U32(x) ((uint32_t)(x))
#define S32(x) ((int32_t)(uint32_t)(x))
#define S64(x) ((int64_t)(x))
#define DST reg[op->dst]
#define SRC reg[op->src]
#define IMM op->imm

#define NEXT                            \
	do {                            \
		op++;                   \
		goto *label[op->op];    \
	} while (0)

/* One operation in its four forms; a and b are the operands. */
#define ALU(name, expr32, expr64)                                                         \
	name##32K : { uint32_t a = U32(DST), b = U32(IMM); DST = U32(expr32); } NEXT;     \
	name##32X : { uint32_t a = U32(DST), b = U32(SRC); DST = U32(expr32); } NEXT;     \
	name##64K : { uint64_t a = DST, b = IMM; DST = (uint64_t)(expr64); } NEXT;        \
	name##64X : { uint64_t a = DST, b = SRC; DST = (uint64_t)(expr64); } NEXT;
#define SAME(name, expr) ALU(name, expr, expr)

#define JUMP_IF(cond)                                                       \
	do {                                                                \
		if (!(cond))                                                \
			NEXT;                                               \
		goto jump;                                                  \
	} while (0)
#define JMP(name, expr32, expr64)                                           \
	name##32K : { uint32_t a = U32(DST), b = U32(IMM); JUMP_IF(expr32); } \
	name##32X : { uint32_t a = U32(DST), b = U32(SRC); JUMP_IF(expr32); } \
	name##64K : { uint64_t a = DST, b = IMM; JUMP_IF(expr64); }         \
	name##64X : { uint64_t a = DST, b = SRC; JUMP_IF(expr64); }

/* Memory moves through memcpy, because packet bytes stand anywhere. */
#define LOAD(name, type, wide, ok)                                          \
	name : {                                                            \
		uint64_t addr = SRC + (uint64_t)(int64_t)op->off;           \
		type value;                                                 \
		if (!ok(run, op, addr, sizeof(value), false))               \
			goto outside;                                       \
		memcpy(&value, at(addr), sizeof(value));                    \
		DST = (uint64_t)(wide)value;                                \
	} NEXT;
#define STORE(name, type, from, ok)                                         \
	name : {                                                            \
		uint64_t addr = DST + (uint64_t)(int64_t)op->off;           \
		type value = (type)(from);                                  \
		if (!ok(run, op, addr, sizeof(value), true))                \
			goto outside;                                       \
		memcpy(at(addr), &value, sizeof(value));                    \
	} NEXT;
#define MEMORY(suffix, ok)                                                  \
	LOAD(LDX8##suffix, uint8_t, uint64_t, ok)                           \
	LOAD(LDX16##suffix, uint16_t, uint64_t, ok)                         \
	LOAD(LDX32##suffix, uint32_t, uint64_t, ok)                         \
	LOAD(LDX64##suffix, uint64_t, uint64_t, ok)                         \
	STORE(ST8##suffix, uint8_t, IMM, ok)                                \
	STORE(ST16##suffix, uint16_t, IMM, ok)                              \
	STORE(ST32##suffix, uint32_t, IMM, ok)                              \
	STORE(ST64##suffix, uint64_t, IMM, ok)                              \
	STORE(STX8##suffix, uint8_t, SRC, ok)                               \
	STORE(STX16##suffix, uint16_t, SRC, ok)                             \
	STORE(STX32##suffix, uint32_t, SRC, ok)                             \
	STORE(STX64##suffix, uint64_t, SRC, ok)

/* A member of the context. */
#define CTX(name, value)                                                    \
	CTX_##name : LEAT_PROVEN(SRC == (uint64_t)(uintptr_t)run);          \
	DST = (value);                                                      \
	NEXT;

/* Fetching operations and those that do not fetch are ordered alike, which is more than RFC 9669 asks. */
#define ATOMIC_OF(name, type, call, after)                                  \
	name : {                                                            \
		uint64_t addr = DST + (uint64_t)(int64_t)op->off;           \
		type *word = at(addr), value;                               \
		if (addr % sizeof(type) || !elsewhere_ok(run, op, addr, sizeof(type), true)) \
			goto outside;                                       \
		value = call;                                               \
		after;                                                      \
	} NEXT;
#define ATOMIC(name, call, after)                                           \
	ATOMIC_OF(name##32, uint32_t, call, after)                          \
	ATOMIC_OF(name##64, uint64_t, call, after)
#define FETCH(name, fn)                                                     \
	ATOMIC(A##name, fn(word, SRC, __ATOMIC_SEQ_CST), (void)value) \
	ATOMIC(AF##name, fn(word, SRC, __ATOMIC_SEQ_CST), SRC = value)

#define LABEL_OF_ROW(name, opcode, form, variant, text) [LEAT_OP_##name] = &&name,
#define LABEL_OF_DECODED(name) [LEAT_OP_##name] = &&name,

/**
 * Runs from @op of run->prog on, in a new frame, until that frame's exit. @reg: r1..r5 are set. Returns r0; after a
 * trap run->trap is set.
 */
static uint64_t loop(struct leat_bpf_run *run, const struct leat_bpf_op *op, uint64_t reg[11])
{
	/* cppcheck-suppress assignBoolToPointer ; addresses of labels */
	static const void *const label[LEAT_OPS] = { LEAT_INSN_ROWS(LABEL_OF_ROW)
						     LEAT_DECODED_ROWS(LABEL_OF_DECODED) };
	struct frame frames[LEAT_BPF_FRAMES_MAX], *frame;
	struct leat_bpf_prog *entry = run->prog, *target;
	const unsigned int bottom = run->frames;
	enum leat_bpf_trap_reason reason;
	uint64_t args[5];
	bool ok;

	reg[10] = open_frame(run);
	goto *label[op->op];

	/* clang-format off */
	SAME(ADD, a + b)
	SAME(SUB, a - b)
	SAME(MUL, a * b)
	SAME(OR, a | b)
	SAME(AND, a & b)
	SAME(XOR, a ^ b)
	SAME(DIV, b ? a / b : 0)
	SAME(MOD, b ? a % b : a)
	ALU(SDIV, sdiv32(S32(a), S32(b)), sdiv64(S64(a), S64(b)))
	ALU(SMOD, smod32(S32(a), S32(b)), smod64(S64(a), S64(b)))
	ALU(LSH, a << (b & 31), a << (b & 63))
	ALU(RSH, a >> (b & 31), a >> (b & 63))
	ALU(ARSH, S32(a) >> (b & 31), S64(a) >> (b & 63))

	MOV32K: DST = U32(IMM); NEXT;
	MOV32X: DST = U32(SRC); NEXT;
	MOV64K: DST = IMM; NEXT;
	MOV64X: DST = SRC; NEXT;
	MOVS8_32: DST = U32((int8_t)SRC); NEXT;
	MOVS16_32: DST = U32((int16_t)SRC); NEXT;
	MOVS8_64: DST = (uint64_t)(int8_t)SRC; NEXT;
	MOVS16_64: DST = (uint64_t)(int16_t)SRC; NEXT;
	MOVS32_64: DST = (uint64_t)S32(SRC); NEXT;
	NEG32: DST = U32(0 - U32(DST)); NEXT;
	NEG64: DST = 0 - DST; NEXT;

	LE16: DST = htole16(U16(DST)); NEXT;
	LE32: DST = htole32(U32(DST)); NEXT;
	LE64: DST = htole64(DST); NEXT;
	BE16: DST = htobe16(U16(DST)); NEXT;
	BE32: DST = htobe32(U32(DST)); NEXT;
	BE64: DST = htobe64(DST); NEXT;
	BSWAP16: DST = __builtin_bswap16(U16(DST)); NEXT;
	BSWAP32: DST = __builtin_bswap32(U32(DST)); NEXT;
	BSWAP64: DST = __builtin_bswap64(DST); NEXT;

	LD64: LD64_MAP: LD64_VALUE: LD64_FUNC: DST = IMM; op++; NEXT;

	MEMORY(_STACK, stack_ok)
	MEMORY(_PACKET, packet_ok)
	MEMORY(, elsewhere_ok)
	LOAD(LDXS8, int8_t, int64_t, elsewhere_ok)
	LOAD(LDXS16, int16_t, int64_t, elsewhere_ok)
	LOAD(LDXS32, int32_t, int64_t, elsewhere_ok)

	CTX(DATA, (uint64_t)(uintptr_t)run->xdp->data)
	CTX(DATA_END, (uint64_t)(uintptr_t)run->xdp->data_end)
	CTX(DATA_META, (uint64_t)(uintptr_t)run->xdp->data_meta)
	CTX(PORT, run->xdp->rxq ? run->xdp->rxq->port : 0)
	CTX(QUEUE, run->xdp->rxq ? run->xdp->rxq->queue : 0)
	CTX(EGRESS, run->egress_port)

	FETCH(ADD, __atomic_fetch_add)
	FETCH(OR, __atomic_fetch_or)
	FETCH(AND, __atomic_fetch_and)
	FETCH(XOR, __atomic_fetch_xor)
	ATOMIC(AXCHG, __atomic_exchange_n(word, SRC, __ATOMIC_SEQ_CST), SRC = value)
	ATOMIC(ACMPXCHG, reg[0];
	       __atomic_compare_exchange_n(word, &value, SRC, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST),
	       reg[0] = value)

	JMP(JEQ, a == b, a == b)
	JMP(JNE, a != b, a != b)
	JMP(JGT, a > b, a > b)
	JMP(JGE, a >= b, a >= b)
	JMP(JLT, a < b, a < b)
	JMP(JLE, a <= b, a <= b)
	JMP(JSET, a & b, a & b)
	JMP(JSGT, S32(a) > S32(b), S64(a) > S64(b))
	JMP(JSGE, S32(a) >= S32(b), S64(a) >= S64(b))
	JMP(JSLT, S32(a) < S32(b), S64(a) < S64(b))
	JMP(JSLE, S32(a) <= S32(b), S64(a) <= S64(b))
	/* clang-format on */

JA:
JA32:
jump:
	if (op->off < 0 && !leat_bpf_burn(run, 0 - (uint64_t)(int64_t)op->off))
		goto no_fuel;
	op += op->off;
	NEXT;

CALL_LOCAL:
	if (run->frames == LEAT_BPF_FRAMES_MAX)
		goto no_frame;
	if (!leat_bpf_burn(run, IMM))
		goto no_fuel;
	frame = &frames[run->frames - 1];
	frame->back = op;
	frame->prog = run->prog;
	memcpy(frame->saved, &reg[6], sizeof(frame->saved));
	reg[10] = open_frame(run);
	op += op->off;
	NEXT;

EXIT:
	if (--run->frames == bottom)
		goto done;
	frame = &frames[run->frames - 1];
	op = frame->back;
	run->prog = frame->prog;
	memcpy(&reg[6], frame->saved, sizeof(frame->saved));
	reg[10] = (uint64_t)(uintptr_t)leat_bpf_frame_end(run);
	NEXT;

CALL:
	reg[0] = ((const struct leat_bpf_helper *)at(IMM))->fn(run, reg[1], reg[2], reg[3], reg[4], reg[5]);
	if (leat_unlikely(run->trap))
		goto helper_trapped;
	NEXT;

CALL_MEM:
	memcpy(args, &reg[1], sizeof(args));
	if (!leat_bpf_call_checked(run, (uint32_t)(op - run->prog->op), args, &reg[0], &reason))
		goto trap;
	if (leat_unlikely(run->trap))
		goto helper_trapped;
	NEXT;

TAIL_CALL:
	target = leat_bpf_tail_target(run, (uint32_t)(op - run->prog->op), reg[2], reg[3], &reason, &ok);
	if (!ok)
		goto trap;
	if (!target) {
		reg[0] = (uint64_t)-ENOENT;
		NEXT;
	}
	run->prog = target;
	run->frames--;
	reg[10] = open_frame(run);
	op = target->op;
	goto *label[op->op];

COUNT:
	goto *label[leat_bpf_cover_count(run, op)];

CALL_KFUNC:
LD64_BTF:
UNREACHED:
	LEAT_PROVEN(!"the verifier said that this is never reached");
outside:
	LEAT_PROVEN(!aux_of(run, op)->proven);
	reason = LEAT_BPF_TRAP_ACCESS;
	goto trap;
no_fuel:
	reason = LEAT_BPF_TRAP_FUEL;
	goto trap;
no_frame:
	reason = LEAT_BPF_TRAP_FRAMES;
trap:
	leat_bpf_trap(run, (uint32_t)(op - run->prog->op), reason);
	goto ended;
helper_trapped:
	leat_bpf_helper_trapped(run, (uint32_t)(op - run->prog->op));
ended:
	reg[0] = 0;
	run->frames = bottom;
done:
	run->prog = entry;
	return reg[0];
}

uint64_t leat_bpf_call_func(struct leat_bpf_run *run, uint64_t func, const uint64_t args[5])
{
	uint64_t reg[11] = { 0, args[0], args[1], args[2], args[3], args[4] };
	struct leat_bpf_prog *prog = run->prog;
	uint32_t start = (uint32_t)func, len = (uint32_t)(func >> 32);
	enum leat_bpf_trap_reason reason;

	if (start >= prog->n_ops || !(prog->op[start].flags & LEAT_BPF_OP_FUNC))
		reason = LEAT_BPF_TRAP_HELPER;
	else if (run->frames == LEAT_BPF_FRAMES_MAX)
		reason = LEAT_BPF_TRAP_FRAMES;
	else if (!leat_bpf_burn(run, len ? len : 1))
		reason = LEAT_BPF_TRAP_FUEL;
	else
		return prog->code ? leat_bpf_jit_func(run, start, args) : loop(run, &prog->op[start], reg);
	leat_bpf_trap(run, start < prog->n_ops ? start : 0, reason);
	return 0;
}

uint64_t leat_bpf_interp_run(struct leat_bpf_run *run)
{
	uint64_t reg[11] = { 0, (uint64_t)(uintptr_t)run };
	uint64_t r0;

	run->frames = 0;
	run->trap = 0;
	r0 = loop(run, run->prog->op, reg);
	return run->trap ? (uint64_t)LEAT_XDP_ABORTED : r0;
}
