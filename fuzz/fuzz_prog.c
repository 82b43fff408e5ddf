/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_prog.c: any instructions to the verifier; what it takes is run on a small packet with little fuel, interpreted and
 * compiled. Where a program depends on nothing but packet, stack and arrays, both must end alike: r0, trap and where it
 * was, fuel, and every byte.
 *
 * The packet, where it is not moved, is an allocation of exactly its size, so that the sanitizer sees every step
 * outside; with LEAT_FUZZ the interpreter asserts whatever the verifier has proven (base registers of context loads,
 * arguments of helpers, that what is never reached is never reached). An input is the instructions, 8 bytes each; the
 * mutator works on whole instructions and keeps jumps where they led.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/engine/interp.h"
#include "bpf/test_run.h"
#include "fuzz.h"

#define INSNS_MAX 256u
#define PACKET 64u
#define META 8u
#define ROOM 2048u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ARRAY, ONE, HASH, PROGS, RING, RODATA, LRU, TRIE, LIKE, OUTER, HASH_LIKE, HASH_OUTER, LOCKED };
#define LOCK 8 /* where a value of LOCKED has it */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* ---- the world ---- */

static void must(bool good)
{
	if (!good)
		abort();
}

/** The program that tail calls find: calls, and tail-calls itself. */
static const struct bpf_insn tail[] = {
	MOV64X(R6, R1), CALL(6),
	MOV64X(R1, R6), LDMAP(R2, PROGS),
	MOV64K(R3, 0),  HELPER(BPF_FUNC_tail_call),
	EXIT,           STX(BPF_DW, R10, -8, R1),
	MOV64K(R0, 2),  EXIT,
};

/** Maps of maps with an inner map each, and a value with a lock. */
static void begin_nested(struct test_bpf *t)
{
	static const uint32_t zero, value[4];
	struct leat_bpf_map *inner = NULL;

	must(test_bpf_template(t, BPF_MAP_TYPE_ARRAY, 4, 16, 2, 0) == LIKE);
	must(test_bpf_outer(t, BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 2, LIKE) == OUTER);
	must(test_bpf_template(t, BPF_MAP_TYPE_HASH, 4, 16, 2, 0) == HASH_LIKE);
	must(test_bpf_outer(t, BPF_MAP_TYPE_HASH_OF_MAPS, 4, 2, HASH_LIKE) == HASH_OUTER);
	must(test_bpf_map(t, BPF_MAP_TYPE_HASH, 4, 16, 4, 0) == LOCKED);
	t->map[LOCKED].lock = LOCK + 1;
	must(!leat_bpf_map_update(&t->map[LOCKED], &zero, value, BPF_ANY));
	test_bpf_more_maps(t);
	must(!leat_bpf_map_make_inner(&t->map[OUTER], "inner", 0, &inner));
	must(!leat_bpf_map_set_inner(&t->map[OUTER], &zero, inner, BPF_ANY));
	must(!leat_bpf_map_make_inner(&t->map[HASH_OUTER], "inner", 0, &inner));
	must(!leat_bpf_map_set_inner(&t->map[HASH_OUTER], &zero, inner, BPF_ANY));
}

/** No lock is held when nothing runs, whatever was done to the element. */
static void check_locks(struct test_bpf *t)
{
	uint32_t key = 0;
	const uint8_t *value = t->map[LOCKED].type->lookup(&t->map[LOCKED], &key, 0);

	must(!t->last.lock);
	must(!value || !memcmp(value + LOCK, &key, sizeof(key)));
}

static void begin(struct test_bpf *t)
{
	static const uint32_t zero, data[4] = { 1, 0, 7, 0x1000 };

	must(!test_bpf_begin(t, 10000));
	must(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0) == ARRAY);
	must(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0) == ONE);
	must(test_bpf_map(t, BPF_MAP_TYPE_HASH, 4, 16, 4, 0) == HASH);
	must(test_bpf_map(t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0) == PROGS);
	must(test_bpf_map(t, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0) == RING);
	must(test_bpf_map(t, BPF_MAP_TYPE_ARRAY, 4, 16, 1, BPF_F_RDONLY_PROG) == RODATA);
	must(test_bpf_map(t, BPF_MAP_TYPE_LRU_HASH, 4, 16, 4, 0) == LRU);
	must(test_bpf_map(t, BPF_MAP_TYPE_LPM_TRIE, 8, 16, 4, BPF_F_NO_PREALLOC) == TRIE);
	must(!leat_bpf_map_update(&t->map[RODATA], &zero, data, BPF_ANY));
	t->map[RODATA].frozen = true;
	begin_nested(t);
	must(!test_bpf_prog(t, tail, COUNT(tail)));
	must(!leat_bpf_prog_array_set(&t->map[PROGS], 0, &t->prog[0]));
}

static bool moves_packet(const struct bpf_insn *insn, uint32_t n)
{
	const struct leat_bpf_helper *helper;
	uint32_t i;

	for (i = 0; i < n; i++) {
		helper = insn[i].code == (BPF_JMP | BPF_CALL) && !insn[i].src_reg ? leat_bpf_helper_find(insn[i].imm)
										  : NULL;
		if (helper && (helper->flags & LEAT_BPF_HELPER_MOVES_PACKET))
			return true;
	}
	return false;
}

/** A packet that can be moved: in a buffer with headroom. */
static void roomy_packet(struct test_bpf *t)
{
	free(t->packet);
	must(!posix_memalign((void **)&t->packet, 4096, ROOM));
	memset(t->packet, 0, ROOM);
	memset(&t->xdp, 0, sizeof(t->xdp));
	leat_xdp_buff_init(&t->xdp, leat_run_make((uint64_t)(uintptr_t)t->packet, ROOM >> LEAT_GRANULE_SHIFT),
			   LEAT_XDP_HEADROOM, PACKET);
	t->xdp.rxq = &t->rxq;
}

/** What a run is made from and what it leaves behind. */
struct state {
	uint8_t packet[ROOM], stack[LEAT_BPF_FRAMES_MAX * LEAT_BPF_STACK_SIZE], value[3][4 * 16];
	struct leat_xdp_buff xdp;
	uint64_t random;
};

/** An array: its values are all that there is of it. */
static uint8_t *values(struct test_bpf *t, unsigned int i, uint32_t *size)
{
	static const uint8_t map[3] = { ARRAY, ONE, RODATA };
	uint64_t region;
	uint8_t *base;

	leat_bpf_array_layout(&t->map[map[i]], &base, &region);
	*size = t->map[map[i]].max_entries * t->map[map[i]].value_stride;
	return base;
}

static void exchange(struct test_bpf *t, struct state *state, bool save, uint32_t packet)
{
	uint8_t *base, *stack = t->env->cpu[0].stack;
	uint32_t size;
	unsigned int i;

	memcpy(save ? state->packet : t->packet, save ? t->packet : state->packet, packet);
	memcpy(save ? state->stack : stack, save ? stack : state->stack, sizeof(state->stack));
	for (i = 0; i < 3; i++) {
		base = values(t, i, &size);
		memcpy(save ? state->value[i] : base, save ? base : state->value[i], size);
	}
	if (save) {
		state->xdp = t->xdp;
		state->random = t->env->cpu[0].random;
	} else {
		t->xdp = state->xdp;
		t->env->cpu[0].random = state->random;
	}
}

/** Whether a second run begins as the first did once the state is put back. */
static bool is_repeatable(const struct bpf_insn *insn, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (insn[i].code == (BPF_LD | BPF_IMM | BPF_DW) && insn[i].src_reg == BPF_PSEUDO_MAP_FD &&
		    insn[i].imm != ARRAY && insn[i].imm != ONE && insn[i].imm != RODATA && insn[i].imm != PROGS)
			return false;
	return true;
}

static void compile(struct test_bpf *t, int prog, bool on)
{
	int i;

	for (i = 0; i <= prog && LEAT_HAVE_JIT; i++)
		if (on)
			must(!leat_bpf_jit_compile(&t->prog[i]));
		else
			leat_bpf_jit_free(&t->prog[i]);
}

static void run_both(struct test_bpf *t, int prog, uint32_t packet, bool repeatable)
{
	static struct leat_bpf_trap_count where[INSNS_MAX];
	static struct state before, first, second;
	size_t counts = t->prog[prog].n_insns * sizeof(where[0]);
	struct leat_bpf_run last;
	uint64_t r0;

	exchange(t, &before, true, packet);
	memset(t->prog[prog].trap, 0, counts);
	r0 = test_bpf_run(t, prog);
	last = t->last;
	exchange(t, &first, true, packet);
	must(!t->last.record && !t->last.frames);
	check_locks(t);
	exchange(t, &before, false, packet);
	memcpy(where, t->prog[prog].trap, counts);
	memset(t->prog[prog].trap, 0, counts);
	compile(t, prog, true);
	must(test_bpf_run(t, prog) == r0 || !repeatable);
	compile(t, prog, false);
	exchange(t, &second, true, packet);
	must(!t->last.record && !t->last.frames);
	check_locks(t);
	if (!repeatable)
		return;
	must(t->last.trap == last.trap && t->last.fuel == last.fuel && t->last.tail_calls == last.tail_calls);
	must(!memcmp(where, t->prog[prog].trap, counts));
	must(!memcmp(first.packet, second.packet, packet) && !memcmp(first.value, second.value, sizeof(first.value)));
	must(first.xdp.data == second.xdp.data && first.xdp.data_end == second.xdp.data_end &&
	     first.xdp.data_meta == second.xdp.data_meta);
}

static void run(struct test_bpf *t, int prog, bool moves, bool repeatable)
{
	uint32_t port;

	for (port = 0; port < 3; port++) {
		if (moves)
			roomy_packet(t);
		else
			test_bpf_packet(t, NULL, PACKET, META);
		t->rxq.port = port;
		run_both(t, prog, moves ? ROOM : PACKET + META, repeatable);
	}
}

/** Takes the last program away; the tail-called one stays. */
static void drop_last(struct test_bpf *t)
{
	struct leat_bpf_prog *prog = &t->prog[--t->obj.n_progs];

	leat_bpf_engine_free(prog);
	leat_heap_free(prog->aux);
	leat_heap_free(prog->trap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct test_bpf t;
	uint32_t n = (uint32_t)(size / sizeof(struct bpf_insn));
	struct bpf_insn *insn;

	if (!t.env)
		begin(&t);
	if (!n || n > INSNS_MAX)
		return 0;
	insn = malloc(n * sizeof(*insn));
	must(insn != NULL);
	memcpy(insn, data, n * sizeof(*insn));
	if (!test_bpf_verify(&t, insn, n)) {
		t.prog[1].trap = leat_heap_zalloc(n * sizeof(*t.prog[1].trap));
		must(t.prog[1].trap && !leat_bpf_interp_prepare(&t.prog[1]));
		t.prog[1].loaded = true;
		run(&t, 1, moves_packet(insn, n), is_repeatable(insn, n));
	} else {
		must(t.said[0] != '\0');
	}
	drop_last(&t);
	free(insn);
	return 0;
}

/* ---- mutation of whole instructions ---- */

static const struct {
	uint32_t n;
	struct bpf_insn insn[12];
} piece[] = {
	{ 6, { ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, HASH), HELPER(1) } },
	{ 6, { ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, OUTER), HELPER(1) } },
	{ 6, { ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, HASH_OUTER), HELPER(1) } },
	{ 4, { MOV64X(R1, R0), MOV64X(R2, R10), ADD64K(R2, -4), HELPER(1) } },
	{ 8,
	  { ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, LOCKED), HELPER(1),
	    JMP64K(BPF_JNE, R0, 0, 1), EXIT } },
	{ 4, { MOV64X(R7, R0), MOV64X(R1, R0), ADD64K(R1, LOCK), HELPER(BPF_FUNC_spin_lock) } },
	{ 3, { MOV64X(R1, R7), ADD64K(R1, LOCK), HELPER(BPF_FUNC_spin_unlock) } },
	{ 6, { ST(BPF_DW, R10, -8, 24), MOV64X(R2, R10), ADD64K(R2, -8), LDMAP(R1, TRIE), HELPER(1) } },
	{ 8,
	  { MOV64X(R2, R10), ADD64K(R2, -4), MOV64X(R3, R10), ADD64K(R3, -16), LDMAP(R1, LRU), MOV64K(R4, 0),
	    HELPER(2) } },
	{ 1, { JMP64K(BPF_JEQ, R0, 0, 1) } },
	{ 1, { JMP64K(BPF_JNE, R0, 0, 2) } },
	{ 1, { ST(BPF_DW, R0, 8, 1) } },
	{ 1, { LDX(BPF_DW, R3, R0, 0) } },
	{ 5, { LDMAP(R1, RING), MOV64K(R2, 16), MOV64K(R3, 0), HELPER(BPF_FUNC_ringbuf_reserve) } },
	{ 3, { MOV64X(R1, R0), MOV64K(R2, 0), HELPER(BPF_FUNC_ringbuf_submit) } },
	{ 4, { MOV64X(R1, R6), LDMAP(R2, PROGS), MOV64K(R3, 0) } },
	{ 1, { HELPER(BPF_FUNC_tail_call) } },
	{ 3, { MOV64X(R1, R6), MOV64K(R2, -8), HELPER(BPF_FUNC_xdp_adjust_head) } },
	{ 3, { MOV64X(R1, R6), MOV64K(R2, 8), HELPER(BPF_FUNC_xdp_adjust_tail) } },
	{ 5, { MOV64X(R1, R6), MOV64K(R2, 3), MOV64X(R3, R10), ADD64K(R3, -24), MOV64K(R4, 16) } },
	{ 1, { HELPER(BPF_FUNC_xdp_load_bytes) } },
	{ 1, { HELPER(BPF_FUNC_xdp_store_bytes) } },
	{ 5, { MOV64K(R1, 5), LDFUNC(R2, 0), MOV64X(R3, R10), MOV64K(R4, 0) } },
	{ 1, { HELPER(BPF_FUNC_loop) } },
	{ 6, { LDMAP(R1, HASH), LDFUNC(R2, 0), MOV64X(R3, R10), MOV64K(R4, 0) } },
	{ 1, { HELPER(BPF_FUNC_for_each_map_elem) } },
	{ 2, { LDX(BPF_W, R5, R2, 0), STX(BPF_DW, R3, 0, R5) } },
	{ 1, { CALL(1) } },
	{ 2, { MOV64K(R0, 2), EXIT } },
	{ 2, { ALU64K(BPF_AND, R0, 1), EXIT } },
	{ 2, { LDVALUE(R7, ONE, 4) } },
	{ 2, { LDVALUE(R7, RODATA, 0) } },
	{ 2, { LDMAP(R7, ARRAY) } },
	{ 1, { LDX(BPF_W, R7, R6, 0) } },
	{ 1, { LDX(BPF_W, R8, R6, 4) } },
	{ 1, { LDX(BPF_W, R9, R6, 12) } },
	{ 1, { LDX(BPF_DW, R1, R7, 8) } },
	{ 1, { STX(BPF_DW, R10, -8, R6) } },
	{ 1, { LDX(BPF_DW, R6, R10, -8) } },
	{ 1, { STX(BPF_DW, R10, -16, R7) } },
	{ 1, { LDX(BPF_DW, R7, R10, -16) } },
	{ 2, { MOV64X(R8, R10), ADD64X(R8, R9) } },
	{ 1, { ST(BPF_DW, R8, -32, -1) } },
	{ 1, { ADD64X(R7, R9) } },
	{ 1, { ALU64K(BPF_SUB, R9, 1) } },
	{ 1, { JMP64K(BPF_JSGT, R9, 0, -3) } },
	{ 1, { ATOMIC(BPF_DW, BPF_XCHG, R10, -8, R6) } },
	{ 1, { MOV64X(R6, R1) } },
};

static uint32_t pick(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

/** Whether the instruction jumps by its offset; by its immediate. */
static bool by_offset(const struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code), code = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && code != BPF_CALL && code != BPF_EXIT &&
	       !(class == BPF_JMP32 && code == BPF_JA);
}

static bool by_immediate(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP32 | BPF_JA) ||
	       (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL) ||
	       (insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg == BPF_PSEUDO_FUNC);
}

/** Where a distance leads after @by instructions were put in (or taken out) at @at. */
static int32_t moved(int32_t from, int32_t distance, int32_t at, int32_t by)
{
	int32_t target = from + 1 + distance;

	if (target > at)
		target += by;
	if (from >= at)
		from += by;
	return target - from - 1;
}

static void fix_jumps(struct bpf_insn *insn, uint32_t n, uint32_t at, int32_t by)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (by_offset(&insn[i]))
			insn[i].off = (int16_t)moved((int32_t)i, insn[i].off, (int32_t)at, by);
		else if (by_immediate(&insn[i]) && insn[i].imm < 1000 && insn[i].imm > -1000)
			insn[i].imm = moved((int32_t)i, insn[i].imm, (int32_t)at, by);
	}
}

static uint32_t put_in(struct bpf_insn *insn, uint32_t n, uint32_t at, const struct bpf_insn *what, uint32_t count)
{
	if (n + count > INSNS_MAX)
		return n;
	fix_jumps(insn, n, at, (int32_t)count);
	memmove(&insn[at + count], &insn[at], (n - at) * sizeof(*insn));
	memcpy(&insn[at], what, count * sizeof(*insn));
	return n + count;
}

static uint32_t take_out(struct bpf_insn *insn, uint32_t n, uint32_t at)
{
	if (n < 2)
		return n;
	fix_jumps(insn, n, at, -1);
	memmove(&insn[at], &insn[at + 1], (n - at - 1) * sizeof(*insn));
	return n - 1;
}

static void change(struct bpf_insn *insn, uint32_t n, uint32_t at, uint64_t *seed)
{
	static const int32_t imm[] = { 0, 1, -1, 2, 4, 7, 8, 16, 64, 512, 0x7fffffff, -0x7fffffff - 1 };
	struct bpf_insn *one = &insn[at];

	switch (pick(seed, 8)) {
	case 0:
		one->dst_reg = pick(seed, 11) & 15;
		break;
	case 1:
		one->src_reg = pick(seed, 11) & 15;
		break;
	case 2:
		one->off = (int16_t)(one->off + (int)pick(seed, 17) - 8);
		break;
	case 3:
		one->off = (int16_t)((int)pick(seed, n + 1) - (int)at);
		break;
	case 4:
		one->imm = imm[pick(seed, COUNT(imm))];
		break;
	case 5:
		one->imm = (int32_t)((uint32_t)one->imm + pick(seed, 5) - 2);
		break;
	case 6:
		one->code = leat_insn_row[pick(seed, LEAT_INSN_OPS)].opcode;
		break;
	default:
		one->code ^= (uint8_t)(1u << pick(seed, 8));
		break;
	}
}

/** A random row of the table, with registers and small fields. */
static struct bpf_insn any_insn(uint64_t *seed)
{
	const struct leat_insn_row *row = &leat_insn_row[pick(seed, LEAT_INSN_OPS)];
	uint8_t use = leat_insn_use[row->form];
	struct bpf_insn insn = { .code = row->opcode };

	if (use & (LEAT_USE_DST | LEAT_SET_DST))
		insn.dst_reg = pick(seed, 11) & 15;
	if (use & LEAT_USE_SRC)
		insn.src_reg = pick(seed, 11) & 15;
	if (use & LEAT_VARIANT_SRC)
		insn.src_reg = row->variant & 15;
	if (use & LEAT_USE_OFF)
		insn.off = (int16_t)(row->form >= LEAT_FORM_JA ? pick(seed, 4) : 8 * pick(seed, 16) - 64);
	if (use & LEAT_VARIANT_OFF)
		insn.off = row->variant;
	if (use & LEAT_USE_IMM)
		insn.imm = (int32_t)pick(seed, 64);
	if (use & LEAT_VARIANT_IMM)
		insn.imm = row->variant;
	return insn;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed32)
{
	struct bpf_insn insn[INSNS_MAX];
	uint64_t seed = seed32 * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t n = (uint32_t)(size / sizeof(*insn)), turns = 1 + pick(&seed, 4), at, kind;
	struct bpf_insn one;

	n = n > INSNS_MAX ? INSNS_MAX : n;
	memcpy(insn, data, n * sizeof(*insn));
	while (turns--) {
		at = pick(&seed, n + 1);
		kind = pick(&seed, 8);
		one = any_insn(&seed);
		if (kind < 3) {
			kind = pick(&seed, COUNT(piece));
			n = put_in(insn, n, at, piece[kind].insn, piece[kind].n);
		} else if (kind < 4) {
			n = put_in(insn, n, at, &one, 1);
		} else if (kind < 5 && at < n) {
			n = take_out(insn, n, at);
		} else if (at < n) {
			change(insn, n, at, &seed);
		}
	}
	n = n * sizeof(*insn) > max_size ? (uint32_t)(max_size / sizeof(*insn)) : n;
	memcpy(data, insn, n * sizeof(*insn));
	return n * sizeof(*insn);
}
