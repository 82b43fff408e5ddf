/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cover.c: how often each instruction runs, and which way conditional jumps go.
 *
 * Theory of operation. Where an environment counts, every decoded instruction is made the operation COUNT, which stands
 * before what the instruction does: it counts and goes on there. Nothing is added to the instructions themselves, so
 * programs that are not counted run as if this were not here. Which way a conditional jump went is told by the
 * instruction that is counted next: a run goes on behind the jump or at its target, unless a trap ended it there. No
 * other instruction comes between, for a jump calls nothing.
 *
 * An instruction is of the line of the one before, unless the object gives it one. What the compiler made up by itself
 * has no line in the object, and where a jump leads to it, what stands before it is of another part of the program: its
 * line is unknown.
 */
#include "bpf/engine/interp.h"

#include <errno.h>

#include "base/heap.h"

static bool is_jump(int op)
{
	return leat_insn_row[op].form == LEAT_FORM_JMP_K || leat_insn_row[op].form == LEAT_FORM_JMP_X;
}

/* ---- control ---- */

/** Marks what jumps lead to. */
static void mark_targets(const struct leat_bpf_prog *prog)
{
	uint32_t i;

	for (i = 0; i < prog->n_ops; i++)
		if (prog->op[i].op < LEAT_INSN_OPS && leat_insn_row[prog->op[i].op].form >= LEAT_FORM_JA &&
		    leat_insn_row[prog->op[i].op].form <= LEAT_FORM_JMP_X)
			prog->count[i + 1 + (uint32_t)prog->op[i].off].strange = true;
}

/** From there on, up to where a line begins. */
static void spread_marks(const struct leat_bpf_prog *prog)
{
	uint32_t i, line = 0;

	for (i = 0; i < prog->n_ops; i++) {
		if (line < prog->n_lines && prog->line[line].insn == i) {
			prog->count[i].strange = false;
			line++;
		} else if (i) {
			prog->count[i].strange |= prog->count[i - 1].strange;
		}
	}
}

int leat_bpf_cover_prepare(struct leat_bpf_prog *prog)
{
	uint32_t i;

	prog->count = leat_heap_zalloc((size_t)prog->n_ops * sizeof(*prog->count));
	if (!prog->count)
		return -ENOMEM;
	mark_targets(prog);
	spread_marks(prog);
	for (i = 0; i < prog->n_ops; i++) {
		prog->count[i].op = prog->op[i].op;
		if (prog->op[i].op != LEAT_OP_UNREACHED)
			prog->op[i].op = LEAT_OP_COUNT;
	}
	return 0;
}

static void fill_counts(const struct leat_bpf_count *count, struct leat_bpf_cover *cover)
{
	cover->hits = __atomic_load_n(&count->hits, __ATOMIC_RELAXED);
	cover->fell = __atomic_load_n(&count->way[0], __ATOMIC_RELAXED);
	cover->taken = __atomic_load_n(&count->way[1], __ATOMIC_RELAXED);
}

bool leat_bpf_prog_cover(const struct leat_bpf_prog *prog, unsigned int insn, struct leat_bpf_cover *cover)
{
	static _Thread_local char text[128];
	const struct leat_image_line *line;
	int op;

	if (!prog->op || insn >= prog->n_insns)
		return false;
	op = leat_insn_find(&prog->insn[insn]);
	leat_insn_format(&prog->insn[insn], text, sizeof(text));
	*cover = (struct leat_bpf_cover){
		.jump = op >= 0 && is_jump(op),
		.reachable = prog->aux[insn].reached,
		.slots = op >= 0 && leat_insn_row[op].form == LEAT_FORM_LD64 ? 2 : 1,
		.text = text,
	};
	if (prog->count)
		fill_counts(&prog->count[insn], cover);
	line = leat_bpf_prog_line(prog, insn);
	if (!line || (prog->count && prog->count[insn].strange))
		return true;
	cover->file = leat_image_string(prog->obj->head, line->file);
	cover->line = line->line;
	cover->source = leat_image_string(prog->obj->head, line->text);
	return true;
}

/* ---- worker ---- */

static void add_one(uint64_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

/** Counts the way of the conditional jump @jump, if it is one, after which @op runs. */
static void count_way(const struct leat_bpf_prog *prog, const struct leat_bpf_op *jump, const struct leat_bpf_op *op)
{
	struct leat_bpf_count *count = &prog->count[jump - prog->op];

	if (count->op < LEAT_INSN_OPS && is_jump(count->op))
		add_one(&count->way[op != jump + 1]);
}

unsigned int leat_bpf_cover_count(struct leat_bpf_run *run, const struct leat_bpf_op *op)
{
	const struct leat_bpf_prog *prog = run->prog;
	const struct leat_bpf_op *last = run->counted;
	struct leat_bpf_count *count = &prog->count[op - prog->op];

	/* after a tail call the last one is of another program */
	if (last && (uint64_t)((uintptr_t)last - (uintptr_t)prog->op) < prog->n_ops * sizeof(*last))
		count_way(prog, last, op);
	run->counted = op;
	add_one(&count->hits);
	return count->op;
}
