/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loops.c: where loops begin. *control*.
 *
 * The ways through each function are gone depth first; an instruction that is come upon again while it is still on the
 * way begins a loop. Every loop has one. (That a jump leads backwards says nothing: compilers put shared code
 * wherever there is room.)
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>

#include "base/heap.h"

/* How many ways out of an instruction were gone; it is on the way until it is DONE. */
enum { NOT_SEEN, NONE_GONE, ONE_GONE, BOTH_GONE, DONE };

struct search {
	const struct leat_verifier *v;
	uint32_t *way;   /* instructions from the function's first to the one at hand */
	uint8_t *taken;
	uint32_t n;
};

/** Where way @number out of @pc leads; false: there is no such way. */
static bool way_out(const struct leat_verifier *v, uint32_t pc, unsigned int number, uint32_t *target)
{
	int op = v->op[pc], form = leat_insn_row[op].form;
	bool jumps = form >= LEAT_FORM_JA && form <= LEAT_FORM_JMP_X, always = form == LEAT_FORM_JA || form == LEAT_FORM_JA32;

	if (form == LEAT_FORM_EXIT || (number && !jumps) || (number && always))
		return false;
	*target = pc + (form == LEAT_FORM_LD64 ? 2 : 1);
	if (always || number)
		*target = pc + 1 + (uint32_t)leat_insn_jump(&v->prog->insn[pc], op);
	return *target < v->prog->n_insns;
}

static void enter(struct search *s, uint32_t pc)
{
	s->way[s->n++] = pc;
	s->taken[pc] = NONE_GONE;
}

static void search_from(struct search *s, uint32_t start)
{
	uint32_t pc, target;
	unsigned int number;

	enter(s, start);
	while (s->n) {
		pc = s->way[s->n - 1];
		number = (unsigned int)s->taken[pc] - NONE_GONE;
		if (number > 1) {
			s->taken[pc] = DONE;
			s->n--;
			continue;
		}
		s->taken[pc]++;
		if (!way_out(s->v, pc, number, &target))
			continue;
		if (s->taken[target] == NOT_SEEN)
			enter(s, target);
		else if (s->taken[target] != DONE)
			s->v->mark[target] |= LEAT_MARK_LOOP;
	}
}

int leat_verify_loops(struct leat_verifier *v)
{
	uint32_t n = v->prog->n_insns, pc;
	struct search s = { .v = v };

	s.way = leat_heap_zalloc(n * sizeof(*s.way));
	s.taken = leat_heap_zalloc(n);
	for (pc = 0; s.way && s.taken && pc < n; pc++)
		if ((v->mark[pc] & LEAT_MARK_FUNC) && s.taken[pc] == NOT_SEEN)
			search_from(&s, pc);
	pc = s.way && s.taken;
	leat_heap_free(s.way);
	leat_heap_free(s.taken);
	return pc ? 0 : -ENOMEM;
}
