/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86.c: the compiler for x86-64. *control*.
 *
 * Theory of operation. One BPF register is one machine register, always:
 *
 *	r0 rax | r1 rsi, r2 rdx, r3 rcx, r4 r8, r5 r9 | r6 rbx, r7 r14, r8 r15, r9 r12 | r10 rbp | run r13
 *
 * rdi and r10 are scratch, r11 holds the fuel in functions with backward jumps. What calls go through is in
 * jit_x86_call.c, memory in jit_x86_memory.c. A pass walks the operations and writes code, then what is rarely run:
 *
 *	| function: prologue, operations | function ... | out of line: traps, questions |
 *
 * What every program needs (the way in and out, traps, the questions to C) is shared by all: jit_x86_stubs.c.
 *
 * The first pass only counts, with every distance far; that is how much memory is asked for. Then passes write there,
 * with distances as the pass before found them, until one finds everything where the last one did. Nothing gets longer
 * from one pass to the next, so this ends; if it takes many passes, all jumps become far, which takes two.
 *
 * A program is entered with the machine stack aligned and left by a return, also when it was tail-called: a tail call
 * is a jump to the other program's entry with the stack as that expects it. A trap goes back to run->unwind, where
 * leat_bpf_jit_run() or a callback came in. Frames of BPF are not on the machine stack but in run->stack.
 */
#include "bpf/engine/jit_x86.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/env.h"

#define PASSES_MAX 16u
#define INSNS_MAX (1u << 20)

const uint8_t leat_jit_reg[MAX_BPF_REG] = { RAX, RSI, RDX, RCX, R08, R09, RBX, R14, R15, R12, RBP };

/* ---- functions ---- */

static void zero_frame(struct jit *j, uint32_t bytes)
{
	uint32_t off;

	if (bytes > 128) {
		leat_x86_call_to(j, j->stub[STUB_ZERO]);
	} else if (bytes > 8) {
		leat_x86_rr(j, 0, 0x0f57, 0, 0);
		for (off = 16; off <= bytes; off += 16)
			leat_x86_mem(j, 0, 0x0f11, 0, RBP, -(int32_t)off);
	} else if (bytes) {
		leat_x86_mem(j, X_W, 0xc7, 0, RBP, -8);
		leat_x86_u32(j, 0);
	}
}

static void prologue(struct jit *j, struct jit_func *func)
{
	j->in = func;
	func->at = j->len;
	if (func->calls)
		leat_x86_push(j, RAX);
	zero_frame(j, func->zero);
	if (!func->start && j->guards)
		leat_x86_call_to(j, j->stub[STUB_PACKET]);
	leat_x86_load_fuel(j);
}

static void epilogue(struct jit *j)
{
	leat_x86_store_fuel(j);
	if (j->in->calls)
		leat_x86_pop(j, RCX);
	leat_x86_byte(j, 0xc3);
}

/* ---- jumps ---- */

/** A jump back pays for the way. When it cannot, the trap stands right behind: then a turn has one jump less. */
static void jump_back(struct jit *j, uint32_t i, int32_t off)
{
	unsigned int trap = i ? 11 : 8; /* bytes */

	j->in->must_pay = true;
	leat_x86_alu_imm(j, X_W, 5, FUEL, -off);
	leat_x86_goto(j, CC_AE, i, i + 1 + (uint32_t)off, trap);
	trap += j->len;
	leat_x86_mov_imm(j, TMP2, i);
	leat_x86_jump_to(j, -1, j->stub[STUB_TRAP_FUEL]);
	LEAT_ASSERT(j->len == trap);
}

static void jump(struct jit *j, uint32_t i, int op)
{
	static const uint8_t cc[] = { CC_E, CC_NE, CC_A, CC_AE, CC_B, CC_BE, CC_NE, CC_G, CC_GE, CC_L, CC_LE };
	const struct bpf_insn *insn = &j->prog->insn[i];
	unsigned int which = (unsigned int)(op - LEAT_OP_JEQ64K), wide = which & 2 ? 0 : X_W, cond = cc[which / 4];
	unsigned int dst = leat_jit_reg[insn->dst_reg], src = leat_jit_reg[insn->src_reg];
	bool x = which & 1, set = op >= LEAT_OP_JSET64K && op <= LEAT_OP_JSET32X;
	uint32_t skip;

	if (x) {
		leat_x86_rr(j, wide, set ? 0x85 : 0x3b, set ? src : dst, set ? dst : src);
	} else if (set) {
		leat_x86_rr(j, wide, 0xf7, 0, dst);
		leat_x86_u32(j, (uint32_t)insn->imm);
	} else if (insn->imm) {
		leat_x86_alu_imm(j, wide, 7, dst, insn->imm);
	} else if ((cond != CC_E && cond != CC_NE) || !leat_x86_flags_are_set(j, i, wide)) {
		leat_x86_rr(j, wide, 0x85, dst, dst);
	}
	if (insn->off >= 0) {
		leat_x86_goto(j, (int)cond, i, i + 1 + (uint32_t)insn->off, 0);
		return;
	}
	skip = leat_x86_skip(j, (int)(cond ^ 1));
	jump_back(j, i, insn->off);
	leat_x86_here(j, skip);
}
LEAT_STATIC_ASSERT(LEAT_OP_JSLE32X - LEAT_OP_JEQ64K == 43, "four forms of each");

static void jump_always(struct jit *j, uint32_t i, int op)
{
	int32_t off = leat_insn_jump(&j->prog->insn[i], op);

	if (off < 0)
		jump_back(j, i, off);
	else
		leat_x86_goto(j, -1, i, i + 1 + (uint32_t)off, 0);
}

/* ---- one pass ---- */

/** What no path comes to. */
static void unreached(struct jit *j, uint32_t i)
{
	if (i + 1 < j->prog->n_ops && j->prog->op[i + 1].op == LEAT_OP_UNREACHED &&
	    !(j->mark[i + 1] & LEAT_TRACK_FUNC))
		return; /* the last one stands for all */
	leat_x86_mov_imm(j, TMP2, i);
	leat_x86_jump_to(j, -1, j->stub[STUB_TRAP_ACCESS]);
}

static void compile_op(struct jit *j, uint32_t i)
{
	int op = j->row[i], decoded = j->prog->op[i].op;

	if (decoded == LEAT_OP_UNREACHED) {
		unreached(j, i);
		leat_track_reset(&j->track);
		return;
	}
	switch (leat_insn_row[op].form) {
	case LEAT_FORM_LD64:
		if (j->prog->insn[i].dst_reg == BPF_REG_1 && i + 2 < j->prog->n_ops && (j->mark[i + 2] & LEAT_TRACK_INLINED))
			break; /* nobody reads it */
		leat_x86_mov_imm(j, leat_jit_reg[j->prog->insn[i].dst_reg], j->prog->op[i].imm);
		break;
	case LEAT_FORM_LDX:
	case LEAT_FORM_ST:
	case LEAT_FORM_STX:
		leat_x86_memory(j, i, op);
		break;
	case LEAT_FORM_ATOMIC:
		leat_x86_atomic(j, i);
		break;
	case LEAT_FORM_JA:
	case LEAT_FORM_JA32:
		jump_always(j, i, op);
		break;
	case LEAT_FORM_JMP_K:
	case LEAT_FORM_JMP_X:
		jump(j, i, op);
		break;
	case LEAT_FORM_CALL:
		if (decoded == LEAT_OP_TAIL_CALL)
			leat_x86_tail_call(j, i);
		else if (op == LEAT_OP_CALL_LOCAL)
			leat_x86_call_local(j, i);
		else
			leat_x86_call_helper(j, i);
		break;
	case LEAT_FORM_EXIT:
		epilogue(j);
		break;
	default:
		leat_x86_alu(j, i, op);
	}
	leat_track_step(&j->track, j->prog, i, op);
}

static void compile_out(struct jit *j, struct jit_out *out)
{
	out->at = j->len;
	if (out->stub == STUB_ACCESS) {
		leat_x86_lea(j, TMP, out->reg, out->off);
		leat_x86_mov_imm(j, TMP2, out->op);
		leat_x86_call_to(j, j->stub[STUB_ACCESS]);
		leat_x86_jump_to(j, CC_NE, out->back);
	}
	if (out->fuel)
		leat_x86_mem(j, X_W, 0x89, FUEL, RUN, RUN_OFF(fuel));
	leat_x86_mov_imm(j, TMP2, out->op);
	leat_x86_jump_to(j, -1, j->stub[out->stub == STUB_ACCESS ? STUB_TRAP_ACCESS : out->stub]);
}

/** Returns whether everything is where it was. */
static bool settled(const struct jit *j)
{
	uint32_t i;

	if (j->counting || j->len != j->was_len)
		return false;
	for (i = 0; i < j->n_out; i++)
		if (j->out[i].at != j->out[i].was)
			return false;
	for (i = 0; i < j->n_funcs; i++)
		if (j->func[i].at != j->func[i].was)
			return false;
	return !memcmp(j->at, j->was, 2 * j->prog->n_ops * sizeof(*j->at));
}

static void begin_pass(struct jit *j)
{
	uint32_t i, *was = j->was;

	j->was = j->at;
	j->at = was;
	j->was_len = j->len;
	for (i = 0; i < j->n_out && i < j->max_out; i++)
		j->out[i].was = j->out[i].at;
	for (i = 0; i < j->n_funcs; i++)
		j->func[i].was = j->func[i].at;
	j->len = j->n_out = 0;
	j->paired = false;
}

/** With the next one, or the one before, where one instruction does for both. */
static void compile_alone_or_not(struct jit *j, uint32_t i)
{
	bool done = j->paired;

	j->paired = !done && j->prog->op[i].op != LEAT_OP_UNREACHED && leat_x86_pair(j, i, j->row[i]);
	if (done || j->paired)
		leat_track_step(&j->track, j->prog, i, j->row[i]);
	else
		compile_op(j, i);
}

static void pass_op(struct jit *j, uint32_t i)
{
	if (j->mark[i] & LEAT_TRACK_FUNC)
		prologue(j, &j->func[j->func_of[i]]);
	if (j->mark[i] & (LEAT_TRACK_FUNC | LEAT_TRACK_LABEL))
		leat_track_reset(&j->track);
	j->at[2 * i] = j->len;
	if (!(j->mark[i] & LEAT_TRACK_SECOND))
		compile_alone_or_not(j, i);
	j->at[2 * i + 1] = j->len;
}

static void pass(struct jit *j)
{
	uint32_t i;

	begin_pass(j);
	if (j->counting || j->own_stubs)
		leat_x86_emit_stubs(j);
	for (i = 0; i < j->prog->n_ops; i++)
		pass_op(j, i);
	for (i = 0; i < j->n_out && i < j->max_out; i++)
		compile_out(j, &j->out[i]);
}

/* ---- before the first pass ---- */

/** Registers that the operation names; bit n: r<n>. */
static unsigned int regs_of(const struct bpf_insn *insn, int op)
{
	uint8_t use = leat_insn_use[leat_insn_row[op].form];

	return (use & (LEAT_USE_DST | LEAT_SET_DST) ? 1u << insn->dst_reg : 0) |
	       (use & LEAT_USE_SRC ? 1u << insn->src_reg : 0);
}

/** Whether the operation may come to a place of a frame that the verifier did not see it come to. */
static bool goes_anywhere(const struct leat_bpf_aux *aux)
{
	return aux->access && !aux->proven &&
	       (aux->region == LEAT_BPF_REGION_ANY || aux->region == LEAT_BPF_REGION_NONE);
}

static void mark_op(struct jit *j, uint32_t i)
{
	const struct bpf_insn *insn = &j->prog->insn[i];
	uint8_t form;
	int op;

	op = leat_insn_find(insn);
	j->row[i] = (int16_t)op;
	if (j->prog->op[i].flags & LEAT_BPF_OP_FUNC) {
		j->mark[i] |= LEAT_TRACK_FUNC;
		j->callbacks = true;
	}
	if (op < 0 || j->prog->op[i].op == LEAT_OP_UNREACHED)
		return;
	form = leat_insn_row[op].form;
	if (form == LEAT_FORM_LD64)
		j->mark[i + 1] |= LEAT_TRACK_SECOND;
	else if (form >= LEAT_FORM_JA && form <= LEAT_FORM_JMP_X)
		j->mark[i + 1 + (uint32_t)leat_insn_jump(insn, op)] |= LEAT_TRACK_LABEL;
	else if (op == LEAT_OP_CALL_LOCAL)
		j->mark[i + 1 + (uint32_t)insn->imm] |= LEAT_TRACK_FUNC;
	j->tail_calls |= j->prog->op[i].op == LEAT_OP_TAIL_CALL;
}

static void find_functions(struct jit *j)
{
	struct jit_func *func = j->func;
	bool anywhere = false;
	uint32_t i, zero;

	for (i = 0; i < j->prog->n_ops; i++) {
		if (j->mark[i] & LEAT_TRACK_FUNC) {
			func = &j->func[j->n_funcs++];
			zero = j->prog->aux[i].stack;
			zero = zero > 8 ? (zero + 15) & ~15u : zero;
			*func = (struct jit_func){ .start = i, .calls = true, .fuel = true, .zero = (uint16_t)zero };
		}
		j->func_of[i] = j->n_funcs - 1;
		if (j->row[i] >= 0 && !(j->mark[i] & LEAT_TRACK_SECOND))
			func->saved |= regs_of(&j->prog->insn[i], j->row[i]) >> BPF_REG_6 & 15;
		anywhere |= goes_anywhere(&j->prog->aux[i]);
	}
	for (i = 0; i < j->n_funcs && anywhere; i++)
		j->func[i].zero = LEAT_BPF_STACK_SIZE;
}

static void scan(struct jit *j)
{
	uint32_t i;

	j->mark[0] = LEAT_TRACK_FUNC;
	for (i = 0; i < j->prog->n_ops; i++)
		mark_op(j, i);
	find_functions(j);
}

static int allocate(struct jit *j)
{
	size_t n = j->prog->n_ops;

	j->max_out = 2 * (uint32_t)n + 1;
	j->at = leat_heap_zalloc(2 * n * sizeof(*j->at));
	j->was = leat_heap_zalloc(2 * n * sizeof(*j->was));
	j->mark = leat_heap_zalloc(n + 1);
	j->row = leat_heap_zalloc(n * sizeof(*j->row));
	j->func_of = leat_heap_zalloc(n * sizeof(*j->func_of));
	j->func = leat_heap_zalloc(n * sizeof(*j->func));
	j->out = leat_heap_zalloc(j->max_out * sizeof(*j->out));
	return j->at && j->was && j->mark && j->row && j->func_of && j->func && j->out ? 0 : -ENOMEM;
}

static void release(struct jit *j)
{
	leat_heap_free(j->at);
	leat_heap_free(j->was);
	leat_heap_free(j->mark);
	leat_heap_free(j->row);
	leat_heap_free(j->func_of);
	leat_heap_free(j->func);
	leat_heap_free(j->out);
}

/* ---- all of it ---- */

/** The first pass assumed that everything is needed. */
static void take_what_was_learned(struct jit *j)
{
	uint32_t i;

	for (i = 0; i < j->n_funcs; i++) {
		j->func[i].calls = j->func[i].must_call;
		j->func[i].fuel = j->func[i].must_pay;
	}
	j->guards = j->must_guard;
}

static int write_code(struct jit *j, const struct jit_shared *s)
{
	unsigned int n;
	int err;

	j->counting = j->guards = true;
	pass(j);
	if (j->n_out > j->max_out)
		return -E2BIG;
	take_what_was_learned(j);
	err = leat_jit_memory_open(&j->mem, j->len);
	if (err)
		return err;
	leat_x86_use_shared(j, s);
	j->counting = false;
	for (n = 0; n < 2 * PASSES_MAX; n++) {
		j->far |= n >= PASSES_MAX;
		pass(j);
		if (j->len <= j->mem.size && settled(j))
			return 0;
	}
	return -E2BIG;
}

static int take_entries(struct jit *j, struct leat_bpf_code *code)
{
	uint32_t i;

	code->enter = j->mem.exec + (int32_t)j->stub[STUB_ENTER];
	code->main = j->mem.exec + j->func[0].at;
	if (!j->callbacks)
		return 0;
	code->entry = leat_heap_zalloc(j->prog->n_ops * sizeof(*code->entry));
	for (i = 0; code->entry && i < j->n_funcs; i++)
		code->entry[j->func[i].start] = j->func[i].at;
	return code->entry ? 0 : -ENOMEM;
}

static int finish(struct jit *j)
{
	struct leat_bpf_code *code = leat_heap_zalloc(sizeof(*code));
	int err = code ? take_entries(j, code) : -ENOMEM;

	if (!err)
		err = leat_jit_memory_finish(&j->mem, j->len);
	if (err) {
		if (code)
			leat_heap_free(code->entry);
		leat_heap_free(code);
		return err;
	}
	code->exec = j->mem.exec;
	code->size = j->mem.size;
	code->len = j->len;
	j->prog->code = code;
	return 0;
}

int leat_bpf_jit_compile(struct leat_bpf_prog *prog)
{
	struct jit j = {
		.prog = prog,
		.mem.fd = -1,
		.bmi2 = !(leat_jit_without & LEAT_JIT_NO_BMI2) && __builtin_cpu_supports("bmi2"),
		.avx = !(leat_jit_without & LEAT_JIT_NO_AVX) && __builtin_cpu_supports("avx"),
		.far = leat_jit_without & LEAT_JIT_NO_SHORT,
	};
	const struct jit_shared *s = NULL;
	int err;

	if (prog->n_ops > INSNS_MAX)
		return -E2BIG;
	err = leat_x86_get_shared(j.avx, &s);
	if (!err)
		err = allocate(&j);
	if (!err) {
		scan(&j);
		err = write_code(&j, s);
	}
	if (!err)
		err = finish(&j);
	if (err)
		leat_jit_memory_abandon(&j.mem);
	release(&j);
	if (!err && prog->obj->env->perf_map)
		leat_jit_perf_add(prog);
	return err;
}
