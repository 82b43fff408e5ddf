/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verifier.c: whether a program may run, and what the engine has to know of each instruction. *control*.
 *
 * Theory of operation. The structure is checked first (structure.c). Then the program is walked along every
 * path, with the kind of what each register and each spilled slot holds: the walk takes one way at a branch and puts
 * the state aside for the other. Where paths meet (jump targets, functions, calls with callbacks) a state that an
 * earlier one covers is not followed again (state.c). The first walks forget what proofs do not need; the last, which
 * few programs come to, forgets nothing (demand.c).
 *
 * What is always proven: registers are set before they are read; the context, maps, records and functions are what they are
 * taken for and cannot be forged; records are released once; packet pointers are not used after the packet was moved.
 * What is proven where it can be (range.h, jump.c): that an address lies within its region (aux.proven). Where it is
 * not, the engine checks (aux.region says against what). Loops are not proven to end: fuel is counted. An instruction
 * that is never reached is not looked at, and traps.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"

/** Whether it reads r0, which none of its fields says. */
static bool reads_r0(const struct leat_verifier *v, int op)
{
	return op == LEAT_OP_ACMPXCHG32 || op == LEAT_OP_ACMPXCHG64 || (op == LEAT_OP_EXIT && v->state->n_frames == 1);
}

/** Registers that an instruction reads must be set. */
static int check_reads(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	const struct leat_vreg *reg = leat_vframe(v)->reg;
	uint8_t use = leat_insn_use[leat_insn_row[op].form];
	unsigned int number = MAX_BPF_REG;

	if ((use & LEAT_USE_DST) && reg[insn->dst_reg].kind == LEAT_KIND_UNSET)
		number = insn->dst_reg;
	else if ((use & LEAT_USE_SRC) && reg[insn->src_reg].kind == LEAT_KIND_UNSET)
		number = insn->src_reg;
	else if (reads_r0(v, op) && reg[BPF_REG_0].kind == LEAT_KIND_UNSET)
		number = BPF_REG_0;
	if (number == MAX_BPF_REG)
		return 0;
	return leat_verify_refuse(v, v->state->pc, 1u << number, "r%u is read but nothing was put there%s", number,
				  number >= 1 && number <= 5 ? " (calls take away r1 to r5)" : "");
}

static int load_immediate(struct leat_verifier *v, int op)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	struct leat_vreg *dst = &leat_vframe(v)->reg[insn->dst_reg];
	const char *name;

	*dst = (struct leat_vreg){ .known = true, .map = (uint8_t)insn->imm };
	if (op == LEAT_OP_LD64_MAP) {
		dst->kind = LEAT_KIND_MAP;
	} else if (op == LEAT_OP_LD64_VALUE) {
		dst->kind = LEAT_KIND_VALUE;
		dst->value = (uint32_t)insn[1].imm;
	} else if (op == LEAT_OP_LD64_FUNC) {
		*dst = (struct leat_vreg){ .kind = LEAT_KIND_FUNC,
					   .known = true,
					   .value = (int64_t)v->state->pc + 1 + insn->imm };
	} else if (op == LEAT_OP_LD64_BTF) {
		name = v->prog->obj->head ? leat_image_string(v->prog->obj->head, (uint32_t)insn->imm) : NULL;
		leat_verify_refuse(v, v->state->pc, 0, "it reads a variable of the kernel%s%s, which there is not here",
				   name ? ", " : "", name ? name : "");
		return -EOPNOTSUPP;
	} else {
		*dst = leat_vconst((int64_t)((uint32_t)insn->imm | (uint64_t)(uint32_t)insn[1].imm << 32));
	}
	return 0;
}

/** One instruction. *@next: where the path goes on; *@ended: nowhere. */
static int step(struct leat_verifier *v, uint32_t *next, bool *ended)
{
	int op = v->op[v->state->pc], err = check_reads(v, op);
	uint8_t form = leat_insn_row[op].form;

	*next = v->state->pc + (form == LEAT_FORM_LD64 ? 2 : 1);
	v->prog->aux[v->state->pc].reached = true;
	if (err)
		return err;
	if (form < LEAT_FORM_LD64)
		return leat_verify_alu(v, op);
	if (form == LEAT_FORM_LD64)
		return load_immediate(v, op);
	if (form < LEAT_FORM_JA)
		return leat_verify_memory(v, op);
	if (form < LEAT_FORM_CALL)
		return leat_verify_jump(v, op, next, ended);
	if (form == LEAT_FORM_EXIT)
		return leat_verify_exit(v, next, ended);
	return leat_verify_call(v, op, next);
}

/** Follows one path until it ends or meets another. */
static int walk_path(struct leat_verifier *v)
{
	bool ended = false;
	uint32_t next;
	int err = 0;

	while (!ended && !err) {
		if (v->mark[v->state->pc] & (LEAT_MARK_TARGET | LEAT_MARK_FUNC))
			err = leat_verify_covered(v, &ended);
		if (err || ended)
			return err;
		if (++v->walked > v->budget)
			return leat_verify_refuse(v, v->state->pc, 0,
						  "the program is too complex: after %u instructions not all its "
						  "paths were walked", v->budget);
		err = step(v, &next, &ended);
		if (!err)
			v->state->pc = next;
	}
	return err;
}

static void begin(struct leat_verifier *v)
{
	struct leat_vframe *frame = &v->state->frame[0];

	memset(v->state, 0, sizeof(*v->state));
	v->state->n_frames = 1;
	frame->reg[BPF_REG_1] = (struct leat_vreg){ .kind = LEAT_KIND_CTX, .known = true };
	frame->reg[BPF_REG_10] = (struct leat_vreg){ .kind = LEAT_KIND_STACK, .known = true };
}

static void take_pending(struct leat_verifier *v)
{
	struct leat_vstate *last = v->pending[--v->n_pending];

	memcpy(v->state, last, offsetof(struct leat_vstate, frame) + last->n_frames * sizeof(last->frame[0]));
	leat_heap_free(last);
}

/** All paths; once more as long as something was learned that earlier steps should have known. */
static int walk(struct leat_verifier *v)
{
	int err;

	do {
		v->again = false;
		leat_verify_forget_seen(v);
		begin(v);
		err = walk_path(v);
		while (!err && v->n_pending) {
			take_pending(v);
			err = walk_path(v);
		}
	} while (!err && v->again);
	return err;
}

static void release_all(struct leat_verifier *v)
{
	while (v->n_pending)
		leat_heap_free(v->pending[--v->n_pending]);
	if (v->seen && v->n_seen)
		leat_verify_forget_seen(v);
	leat_heap_free(v->op);
	leat_heap_free(v->mark);
	leat_heap_free(v->guard);
	leat_heap_free(v->live);
	leat_heap_free(v->lesson);
	leat_heap_free(v->demand);
	leat_heap_free(v->func);
	leat_heap_free(v->order);
	leat_heap_free(v->depth);
	leat_heap_free(v->needed);
	leat_heap_free(v->keep_above);
	leat_heap_free(v->seen);
	leat_heap_free(v->n_seen);
	leat_heap_free(v->pending);
	leat_heap_free(v->state);
}

static int allocate(struct leat_verifier *v)
{
	size_t n = v->prog->n_insns;

	v->op = leat_heap_zalloc(n * sizeof(*v->op));
	v->mark = leat_heap_zalloc(n * sizeof(*v->mark));
	v->guard = leat_heap_zalloc(n);
	v->live = leat_heap_zalloc(n * sizeof(*v->live));
	v->lesson = leat_heap_zalloc(n * sizeof(*v->lesson));
	v->demand = leat_heap_zalloc(n * sizeof(*v->demand));
	v->func = leat_heap_zalloc(n * sizeof(*v->func));
	v->depth = leat_heap_zalloc(n * sizeof(*v->depth));
	v->needed = leat_heap_zalloc(n * sizeof(*v->needed));
	v->keep_above = leat_heap_zalloc(n * sizeof(*v->keep_above));
	v->seen = leat_heap_zalloc(n * sizeof(struct leat_vseen *));
	v->n_seen = leat_heap_zalloc(n * sizeof(*v->n_seen));
	v->pending = leat_heap_zalloc(LEAT_VERIFY_PENDING * sizeof(struct leat_vstate *));
	if (!v->prog->aux)
		v->prog->aux = leat_heap_zalloc(n * sizeof(*v->prog->aux));
	if (!v->op || !v->mark || !v->guard || !v->live || !v->lesson || !v->demand || !v->func || !v->depth || !v->needed ||
	    !v->keep_above || !v->seen || !v->n_seen || !v->pending || !v->prog->aux)
		return -ENOMEM;
	v->state = leat_heap_zalloc(sizeof(*v->state));
	return v->state ? 0 : -ENOMEM;
}

/* ---- walks of different precision ---- */

/** Takes back what an earlier walk has found. */
static void clean(struct leat_verifier *v)
{
	size_t n = v->prog->n_insns, i;

	while (v->n_pending)
		leat_heap_free(v->pending[--v->n_pending]);
	for (i = 0; i < n; i++) {
		v->prog->aux[i] = (struct leat_bpf_aux){ .map = -1, .like = -1 };
		v->mark[i] &= LEAT_MARKS_OF_STRUCTURE;
	}
	memset(v->guard, 0, n);
	memset(v->depth, 0, n * sizeof(*v->depth));
	memset(v->needed, 0, n * sizeof(*v->needed));
	memset(v->keep_above, 0, n * sizeof(*v->keep_above));
	v->walked = 0;
	v->compared = 0;
	v->forgot = false;
	v->prog->writes_packet = false;
}

/** What a walk came to. */
struct outcome {
	int err;
	uint32_t guards;
};

static uint32_t budget(const struct leat_verifier *v, enum leat_precision precision)
{
	uint32_t n = v->prog->n_insns;

	switch (precision) {
	case LEAT_VERIFY_COARSE: /* it is there to learn */
		return LEAT_VERIFY_TRY + n;
	case LEAT_VERIFY_MERGED:
		return 4 * LEAT_VERIFY_TRY + 16 * n;
	case LEAT_VERIFY_DEMANDED:
		return 20 * LEAT_VERIFY_TRY + 32 * n;
	default:
		return LEAT_VERIFY_BUDGET;
	}
}

static struct outcome attempt(struct leat_verifier *v, enum leat_precision precision)
{
	struct outcome outcome = { .guards = 0 };
	uint32_t n = v->prog->n_insns, pc;

	clean(v);
	v->precision = precision;
	v->budget = budget(v, precision);
	v->learned = false;
	if (precision == LEAT_VERIFY_MERGED || precision == LEAT_VERIFY_DEMANDED)
		leat_verify_find_demand(v);
	outcome.err = walk(v);
	for (pc = 0; pc < n; pc++)
		outcome.guards += v->guard[pc];
	v->prog->walked += v->walked;
	return outcome;
}

/** Whether no other walk can do better. */
static bool ends_it(const struct outcome *outcome)
{
	return outcome->err == -ENOMEM || (!outcome->err && !outcome->guards);
}

/**
 * Walks with as little precision as it takes to prove everything. Where that cannot be done, the walk counts that left
 * the least unproven; when all refuse, what the most precise one says.
 */
static int walk_well(struct leat_verifier *v)
{
	enum leat_precision now = LEAT_VERIFY_COARSE, best = LEAT_VERIFY_ALL;
	struct outcome outcome = attempt(v, now), least = { .err = -EINVAL };
	unsigned int tries = 0;

	while (!ends_it(&outcome) && now < LEAT_VERIFY_ALL) {
		if (now != LEAT_VERIFY_MERGED || !v->learned || tries++ == LEAT_VERIFY_TRIES)
			now++;
		outcome = attempt(v, now);
		if (now == LEAT_VERIFY_COARSE || outcome.err)
			continue;
		if (least.err || outcome.guards <= least.guards) {
			least = outcome;
			best = now;
		}
	}
	return least.err || ends_it(&outcome) || best == now ? outcome.err : attempt(v, best).err;
}

/** walk_well() with a diag for each; only what the last one says is said. */
static int walk_quietly(struct leat_verifier *v)
{
	struct leat_diag *said = v->diag;
	const struct leat_diag_entry *last;
	int err;

	v->diag = leat_diag_create();
	err = v->diag ? walk_well(v) : -ENOMEM;
	last = err && v->diag ? leat_diag_get(v->diag, leat_diag_count(v->diag) - 1) : NULL;
	if (last)
		leat_diag_add(said, "%s", last->message);
	leat_diag_destroy(v->diag);
	v->diag = said;
	return err;
}

int leat_bpf_verify(struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	struct leat_verifier v = { .prog = prog, .diag = diag };
	int err;

	prog->writes_packet = false;
	prog->walked = 0;
	if (!prog->n_insns) {
		leat_diag_add(diag, "%s: the program is empty", prog->name);
		return -EINVAL;
	}
	err = allocate(&v);
	if (!err)
		err = leat_verify_structure(&v);
	if (!err)
		err = walk_quietly(&v);
	if (!err)
		leat_verify_settle(&v);
	if (!err)
		err = leat_verify_measure(&v);
	if (!err)
		err = leat_verify_tail_stack(&v);
	release_all(&v);
	return err;
}
