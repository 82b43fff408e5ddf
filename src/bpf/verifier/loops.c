/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loops.c: where loops begin, and how long a path can be where there are none. *control*.
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
	struct leat_verifier *v;
	uint32_t *way;   /* instructions from the function's first to the one at hand */
	uint8_t *taken;
	uint32_t n;
};

bool leat_verify_way(const struct leat_verifier *v, uint32_t pc, unsigned int number, uint32_t *target)
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
			s->v->order[s->v->n_order++] = pc;
			s->n--;
			continue;
		}
		s->taken[pc]++;
		if (!leat_verify_way(s->v, pc, number, &target))
			continue;
		if (s->taken[target] == NOT_SEEN)
			enter(s, target);
		else if (s->taken[target] != DONE)
			s->v->mark[target] |= LEAT_MARK_LOOP;
	}
}

/* ---- measures ---- */

/** Instructions from @pc to where its function ends, those of functions that it calls included. */
static uint64_t from_here(const struct leat_verifier *v, const uint64_t *longest, uint32_t pc)
{
	uint64_t most = 0, callee = 0;
	uint32_t target;
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (leat_verify_way(v, pc, i, &target) && longest[target] > most)
			most = longest[target];
	if (v->op[pc] == LEAT_OP_CALL_LOCAL)
		callee = longest[pc + 1 + (uint32_t)v->prog->insn[pc].imm];
	return 1 + most + callee;
}

static bool has_loop(const struct leat_verifier *v)
{
	uint32_t pc;

	for (pc = 0; pc < v->prog->n_insns; pc++)
		if ((v->mark[pc] & LEAT_MARK_LOOP) && v->prog->aux[pc].reached)
			return true;
	return false;
}

/** Adds a call to what the function that @pc is in needs of stack below its own. */
static void deepen(const struct leat_verifier *v, uint32_t *below, uint32_t pc)
{
	uint32_t callee, *mine = &below[v->func[pc]];

	if (!leat_verify_calls(v, pc, &callee) || !v->prog->aux[pc].reached)
		return;
	if (*mine < below[callee] + v->depth[callee])
		*mine = below[callee] + v->depth[callee];
}

int leat_verify_measure(struct leat_verifier *v)
{
	uint64_t *longest = leat_heap_zalloc(v->prog->n_insns * sizeof(*longest));
	uint32_t *below = leat_heap_zalloc(v->prog->n_insns * sizeof(*below));
	uint32_t round, i;
	bool good;

	/* callees may come later in the order: as many rounds as calls can be deep */
	for (round = 0; longest && below && round < LEAT_BPF_FRAMES_MAX; round++) {
		for (i = 0; i < v->n_order; i++) {
			longest[v->order[i]] = from_here(v, longest, v->order[i]);
			deepen(v, below, v->order[i]);
		}
	}
	if (longest && below) {
		v->prog->longest = has_loop(v) ? 0 : longest[0];
		v->prog->stack = v->depth[0] + below[0];
	}
	good = longest && below;
	leat_heap_free(longest);
	leat_heap_free(below);
	return good ? 0 : -ENOMEM;
}

int leat_verify_loops(struct leat_verifier *v)
{
	uint32_t n = v->prog->n_insns, pc;
	struct search s = { .v = v };
	bool good;

	s.way = leat_heap_zalloc(n * sizeof(*s.way));
	s.taken = leat_heap_zalloc(n);
	v->order = leat_heap_zalloc(n * sizeof(*v->order));
	for (pc = 0; s.way && s.taken && v->order && pc < n; pc++)
		if ((v->mark[pc] & LEAT_MARK_FUNC) && s.taken[pc] == NOT_SEEN)
			search_from(&s, pc);
	good = s.way && s.taken && v->order;
	leat_heap_free(s.way);
	leat_heap_free(s.taken);
	return good ? 0 : -ENOMEM;
}
