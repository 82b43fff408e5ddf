/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_test.c: what is the compiler's alone: memory for code, what happens without it, and that programs which go wrong
 * go wrong as they do interpreted: the same trap at the same instruction, with the same fuel left and bytes written.
 * engine_test.c has what both engines do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/engine/interp.h"
#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TRAP(reason) (1 + LEAT_BPF_TRAP_##reason)

static void begin(struct test_bpf *t, uint64_t fuel)
{
	assert_int_equal(test_bpf_begin(t, fuel), 0);
	test_bpf_packet(t, NULL, 64, 0);
}

/** Adds a program of the words given, compiled. */
#define PROG(t, ...)                                                                                                   \
	({                                                                                                             \
		static const struct bpf_insn insns_[] = { __VA_ARGS__ };                                               \
		int number_ = test_bpf_prog(t, insns_, COUNT(insns_));                                                 \
		assert_true(number_ >= 0);                                                                             \
		assert_int_equal(leat_bpf_jit_compile(&(t)->prog[number_]), 0);                                        \
		number_;                                                                                               \
	})

/* ---- memory for code ---- */

/** What /proc/self/maps says of the mapping that @addr is in: its flags ("r-xs"), or an empty string. */
static void protection_of(const void *addr, char flags[8])
{
	unsigned long from, to, want = (unsigned long)(uintptr_t)addr;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], perms[8];

	assert_non_null(maps);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) == 3 && want >= from && want < to)
			memcpy(flags, perms, 8);
	fclose(maps);
}

static void code_is_never_writable(void **state)
{
	struct test_bpf t;
	const void *exec;
	char flags[8];
	int prog;

	(void)state;
	begin(&t, 0);
	prog = PROG(&t, MOV64K(R0, 2), EXIT);
	exec = t.prog[prog].code->exec;
	protection_of(exec, flags);
	assert_memory_equal(flags, "r-x", 3);
	assert_int_equal(mprotect((void *)(uintptr_t)exec, t.prog[prog].code->size, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(test_bpf_run(&t, prog), 2);
	test_bpf_drop_progs(&t);
	protection_of(exec, flags);
	assert_string_equal(flags, "");
	test_bpf_end(&t);
}

static void failing_allocations(void **state)
{
	static const struct bpf_insn insns[] = { MOV64K(R1, 0), LDFUNC(R2, 3), MOV64K(R0, 2), EXIT,
						 MOV64K(R0, 0), EXIT };
	struct test_bpf t;
	unsigned int nth = 0;
	int prog, err;

	(void)state;
	begin(&t, 0);
	prog = test_bpf_prog(&t, insns, COUNT(insns));
	assert_true(prog >= 0);
	do {
		leat_heap_fail_nth(++nth);
		err = leat_bpf_jit_compile(&t.prog[prog]);
		leat_heap_fail_nth(0);
		assert_true(err == -ENOMEM ? !t.prog[prog].code : !err);
	} while (err);
	assert_true(nth > 8);
	assert_int_equal(test_bpf_run(&t, prog), 2);
	test_bpf_end(&t);
}

struct heard {
	unsigned int n;
	char message[512];
};

static void hear(void *arg, enum leat_log_level level, const char *message)
{
	struct heard *heard = arg;

	assert_int_equal(level, LEAT_LOG_WARNING);
	heard->n++;
	snprintf(heard->message, sizeof(heard->message), "%s", message);
}

/** Where the system does not allow it, programs are interpreted, and that is said once. */
static void without_memory_for_code(void **state)
{
	static const struct bpf_insn insns[] = { MOV64K(R0, 2), EXIT };
	struct leat_diag *diag = leat_diag_create();
	struct heard heard = { 0 };
	const struct leat_log log = { .fn = hear, .arg = &heard, .level = LEAT_LOG_DEBUG };
	struct test_bpf t;

	(void)state;
	begin(&t, 0);
	t.env->log = &log;
	assert_int_equal(test_bpf_prog(&t, insns, COUNT(insns)), 0);
	leat_jit_without = LEAT_JIT_NO_MEMORY;
	assert_int_equal(leat_bpf_engine_choose(&t.obj, diag), 0);
	assert_int_equal(leat_bpf_engine_choose(&t.obj, diag), 0);
	assert_null(t.prog[0].code);
	assert_int_equal(test_bpf_run(&t, 0), 2);
	assert_int_equal(heard.n, 1);
	assert_non_null(strstr(heard.message, "memfd_noexec"));
	t.env->engine = LEAT_BPF_ENGINE_JIT;
	assert_int_equal(leat_bpf_engine_choose(&t.obj, diag), -EACCES);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, "cannot be compiled"));
	leat_jit_without = 0;
	assert_int_equal(leat_bpf_engine_choose(&t.obj, diag), 0);
	assert_non_null(t.prog[0].code);
	assert_int_equal(leat_bpf_prog_code_size(&t.prog[0]), t.prog[0].code->len);
	assert_int_equal(test_bpf_run(&t, 0), 2);
	leat_diag_destroy(diag);
	test_bpf_end(&t);
}

static void perf_map(void **state)
{
	static const struct bpf_insn insns[] = { MOV64K(R0, 2), EXIT };
	char path[64], line[128] = "", want[128];
	struct test_bpf t;
	FILE *map;

	(void)state;
	begin(&t, 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	assert_int_equal(test_bpf_prog(&t, insns, COUNT(insns)), 0);
	t.env->perf_map = true;
	assert_int_equal(leat_bpf_jit_compile(&t.prog[0]), 0);
	snprintf(want, sizeof(want), "%llx %x leat_bpf_prog_test\n",
		 (unsigned long long)(uintptr_t)t.prog[0].code->exec, t.prog[0].code->len);
	map = fopen(path, "re");
	assert_non_null(map);
	assert_non_null(fgets(line, sizeof(line), map));
	fclose(map);
	assert_string_equal(line, want);
	/* what somebody else put there is left alone */
	unlink(path);
	assert_int_equal(symlink("/dev/full", path), 0);
	leat_jit_perf_add(&t.prog[0]);
	unlink(path);
	test_bpf_end(&t);
}

/* ---- what is known and what is not ---- */

/** The bytes of a frozen value are in the code. */
static void frozen_values_are_folded(void **state)
{
	const uint64_t first = UINT64_C(0x81828384858687f8), later = 1;
	const uint32_t zero = 0;
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t, 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), 0);
	assert_int_equal(leat_bpf_map_update(&t.map[0], &zero, &first, BPF_ANY), 0);
	t.map[0].frozen = true;
	prog = PROG(&t, LDVALUE(R1, 0, 0), LDX(BPF_DW, R0, R1, 0), LDXS(BPF_B, R2, R1, 0), LDX(BPF_H, R3, R1, 6),
		    ADD64X(R0, R2), ADD64X(R0, R3), EXIT);
	memcpy(t.map[0].type->lookup(&t.map[0], &zero, 0), &later, sizeof(later));
	assert_int_equal(test_bpf_run(&t, prog), first - 8 + 0x8182);
	test_bpf_end(&t);
}

/** What was found of a packet does not outlive its move: by a helper, in a function, in a program that was called. */
static void a_packet_that_shrinks(void **state)
{
#define SHRINK MOV64X(R1, R6), MOV64K(R2, -30), HELPER(BPF_FUNC_xdp_adjust_tail)
#define READ LDX(BPF_W, R7, R6, 0), LDX(BPF_DW, R0, R7, 50), MOV64K(R0, 2)
	uint8_t *room = NULL;
	struct test_bpf t;
	int progs[3], i;

	(void)state;
	begin(&t, 0);
	assert_int_equal(posix_memalign((void **)&room, 4096, 4096), 0);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0), 0);
	progs[0] = PROG(&t, MOV64X(R6, R1), READ, SHRINK, READ, EXIT);
	progs[1] = PROG(&t, MOV64X(R6, R1), READ, MOV64X(R1, R6), CALL(4), READ, EXIT, MOV64X(R6, R1), SHRINK, EXIT);
	progs[2] = PROG(&t, MOV64X(R6, R1), READ, MOV64X(R1, R6), CALL(4), READ, EXIT, LDMAP(R2, 0), MOV64K(R3, 0),
			HELPER(BPF_FUNC_tail_call), MOV64K(R0, 0), EXIT);
	i = PROG(&t, MOV64X(R6, R1), SHRINK, EXIT);
	assert_int_equal(leat_bpf_prog_array_set(&t.map[0], 0, &t.prog[i]), 0);
	for (i = 0; i < 3; i++) {
		memset(&t.xdp, 0, sizeof(t.xdp));
		leat_xdp_buff_init(&t.xdp, leat_run_make((uint64_t)(uintptr_t)room, 4096 >> LEAT_GRANULE_SHIFT),
				   LEAT_XDP_HEADROOM, 64);
		assert_int_equal(test_bpf_run(&t, progs[i]), 0);
		assert_int_equal(t.last.trap, TRAP(ACCESS));
		assert_int_equal(t.xdp.data_end - t.xdp.data, 34);
		assert_ptr_equal(t.last.prog, &t.prog[progs[i]]);
	}
	free(room);
	test_bpf_end(&t);
}

/** What was found holds for the register's value at the time, and on this path. */
static void what_was_found_moves_along(void **state)
{
	struct test_bpf t;
	int prog;

	(void)state;
	begin(&t, 0);
	prog = PROG(&t, LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R3, R2, 10), ADD64K(R2, 56), LDX(BPF_W, R3, R2, 4),
		    LDX(BPF_W, R3, R2, 5), MOV64K(R0, 2), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.prog[prog].trap[4].n[LEAT_BPF_TRAP_ACCESS], 1);
	prog = PROG(&t, LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R3, R2, 60), ALU64K(BPF_SUB, R2, 8), LDX(BPF_B, R3, R2, 8),
		    LDX(BPF_B, R3, R2, 7), MOV64K(R0, 2), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.prog[prog].trap[4].n[LEAT_BPF_TRAP_ACCESS], 1);
	prog = PROG(&t, LDX(BPF_W, R2, R1, 0), LDX(BPF_W, R4, R1, 12), JMP64K(BPF_JNE, R4, 0, 1),
		    LDX(BPF_W, R3, R2, 60), LDX(BPF_W, R3, R2, 60), MOV64K(R0, 2), EXIT);
	assert_int_equal(test_bpf_run(&t, prog), 2);
	test_bpf_packet(&t, NULL, 63, 0);
	t.rxq.port = 1;
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.prog[prog].trap[4].n[LEAT_BPF_TRAP_ACCESS], 1);
	t.rxq.port = 0;
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.prog[prog].trap[3].n[LEAT_BPF_TRAP_ACCESS], 1);
	test_bpf_end(&t);
}

/** More code than short jumps reach over, with jumps of every distance. */
static void a_large_program(void **state)
{
	const uint32_t blocks = 8000;
	struct bpf_insn *insns = calloc(4 * blocks + 3, sizeof(*insns));
	uint64_t want = 0;
	struct test_bpf t;
	uint32_t i, n = 0;
	int prog;

	(void)state;
	assert_non_null(insns);
	begin(&t, 0);
	insns[n++] = (struct bpf_insn)LDX(BPF_W, R1, R1, 12);
	insns[n++] = (struct bpf_insn)MOV64K(R0, 0);
	for (i = 0; i < blocks; i++) {
		const struct bpf_insn block[] = { JMP64K(BPF_JGT, R1, i, 1 + 3 * (i % 90)), MOV64X(R2, R0),
						  ADD64K(R0, i) };

		/* the last blocks jump no further than the end */
		memcpy(&insns[n], block, sizeof(block));
		if (i + 90 > blocks)
			insns[n].off = 1;
		n += COUNT(block);
	}
	insns[n++] = (struct bpf_insn)EXIT;
	prog = test_bpf_prog(&t, insns, n);
	assert_true(prog >= 0);
	t.rxq.port = 7000;
	want = test_bpf_run(&t, prog);
	assert_true(want != 0);
	assert_int_equal(leat_bpf_jit_compile(&t.prog[prog]), 0);
	assert_int_equal(test_bpf_run(&t, prog), want);
	test_bpf_end(&t);
	free(insns);
}

/* ---- programs that go wrong ---- */

enum { ARRAY, PERCPU, ONE, MAPS };
#define PACKET 64u
#define FUEL 300u
#define INSNS 300u

struct wild {
	uint64_t seed;
	uint32_t n;
	struct bpf_insn insn[INSNS];
};

static uint32_t next(struct wild *w, uint32_t below)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(w->seed >> 33) % below;
}

#define PUT(w, ...)                                                                                                    \
	do {                                                                                                           \
		const struct bpf_insn put_[] = { __VA_ARGS__ };                                                        \
		memcpy(&(w)->insn[(w)->n], put_, sizeof(put_));                                                        \
		(w)->n += COUNT(put_);                                                                                 \
	} while (0)

/** An access of any kind and size through @reg. Values read are numbers in r3 and r4. */
static void put_access(struct wild *w, int reg, int off)
{
	static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	uint8_t size = sizes[next(w, 4)];

	switch (next(w, 5)) {
	case 0:
		PUT(w, LDX(size, R3, reg, off));
		break;
	case 1:
		PUT(w, LDXS(size == BPF_DW ? BPF_W : size, R4, reg, off));
		break;
	case 2:
		PUT(w, ST(size, reg, off, next(w, 1000)));
		break;
	case 3:
		PUT(w, STX(size, reg, off, R4));
		break;
	default:
		PUT(w, ATOMIC(next(w, 2) ? BPF_W : BPF_DW, next(w, 2) ? BPF_ADD | BPF_FETCH : BPF_XOR | BPF_FETCH, reg,
			      off & -4, R3));
		break;
	}
}

/** r8 is a number that the verifier does not know: the port; @mask of it, and maybe less than nothing. */
static void put_unknown(struct wild *w, int reg, int32_t mask)
{
	PUT(w, MOV64X(reg, R8), ALU64K(BPF_AND, reg, mask));
	if (!next(w, 3))
		PUT(w, ADD64K(reg, -(int)next(w, 4)));
}

static void put_packet(struct wild *w)
{
	int off = (int)next(w, 40) - 2;

	PUT(w, MOV64X(R2, R7));
	if (next(w, 2)) {
		put_unknown(w, R1, 31);
		PUT(w, ADD64X(R2, R1));
	} else if (next(w, 2)) {
		PUT(w, ADD64K(R2, next(w, 20)));
	}
	put_access(w, R2, off);
	if (next(w, 2))
		put_access(w, R2, off + (int)next(w, 8));
}

static void put_stack(struct wild *w)
{
	PUT(w, MOV64X(R2, R10));
	put_unknown(w, R1, 31);
	PUT(w, ADD64X(R2, R1));
	put_access(w, R2, -(int)next(w, 60) - 8);
	put_access(w, R10, -(int)next(w, 8) * 8 - 8);
}

static void put_value(struct wild *w)
{
	uint32_t map = next(w, 2);

	put_unknown(w, R1, 7);
	PUT(w, STX(BPF_W, R10, -4, R1), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, map),
	    HELPER(BPF_FUNC_map_lookup_elem), MOV64K(R3, 1), MOV64K(R4, 2), JMP64K(BPF_JNE, R0, 0, 2), MOV64K(R0, 3),
	    EXIT);
	if (next(w, 2)) {
		put_unknown(w, R1, 7);
		PUT(w, ADD64X(R0, R1));
	}
	put_access(w, R0, (int)next(w, 13));
}

static void put_global(struct wild *w)
{
	PUT(w, LDVALUE(R2, ONE, 4));
	if (next(w, 2)) {
		put_unknown(w, R1, 7);
		PUT(w, ADD64X(R2, R1));
	}
	put_access(w, R2, (int)next(w, 9));
}

/** An instruction that sees the packet or a value. */
static void put_either(struct wild *w)
{
	put_unknown(w, R1, 31);
	PUT(w, MOV64X(R2, R7), JMP64K(BPF_JSGT, R1, 9, 2), LDVALUE(R2, ONE, 0), ADD64X(R2, R1));
	put_access(w, R2, (int)next(w, 40) - 2);
}

static void put_loop(struct wild *w)
{
	put_unknown(w, R5, 31);
	PUT(w, ADD64X(R3, R5), ADD64K(R5, -1), JMP64K(BPF_JSGT, R5, 0, -3));
}

static void put_sum(struct wild *w)
{
	put_unknown(w, R4, 28);
	PUT(w, MOV64K(R1, 0), MOV64K(R2, 0), MOV64X(R3, R7), ADD64K(R3, next(w, 50)), MOV64K(R5, 0),
	    HELPER(BPF_FUNC_csum_diff), MOV64K(R3, 1), MOV64K(R4, 2));
}

static void make_wild(struct wild *w, uint64_t seed)
{
	static void (*const put[])(struct wild * w) = { put_packet, put_stack,	put_value, put_global,
							put_either, put_loop, put_sum };
	uint32_t blocks, at;

	w->seed = seed;
	w->n = 0;
	PUT(w, MOV64X(R6, R1), LDX(BPF_W, R7, R6, 0), LDX(BPF_W, R8, R6, 12), MOV64K(R3, 1), MOV64K(R4, 2));
	for (blocks = 1 + next(w, 5); blocks; blocks--) {
		if (next(w, 4)) {
			put[next(w, COUNT(put))](w);
			continue;
		}
		at = w->n;
		PUT(w, JMP64K(BPF_JSGT, R8, next(w, 32), 0));
		put[next(w, COUNT(put))](w);
		w->insn[at].off = (int16_t)(w->n - at - 1);
	}
	PUT(w, MOV64X(R1, R10), MOV64X(R2, R8), CALL(2), MOV64K(R0, 2), EXIT, ALU64K(BPF_AND, R2, 15),
	    ADD64X(R1, R2), MOV64K(R3, 1), MOV64K(R4, 2));
	put_access(w, R1, -(int)next(w, 16) - 1);
	PUT(w, MOV64K(R0, 0), EXIT);
}

struct outcome {
	uint64_t r0, fuel;
	int trap;
	uint8_t packet[PACKET], value[MAPS][256];
	struct leat_bpf_trap_count where[INSNS];
};

static void run_wild(struct test_bpf *t, int prog, uint32_t port, struct outcome *o)
{
	struct leat_bpf_trap_count *where = t->prog[prog].trap;
	size_t counts = t->prog[prog].n_insns * sizeof(*where);
	uint64_t region;
	uint8_t *base;
	unsigned int i;

	memset(o, 0, sizeof(*o));
	memset(where, 0, counts);
	for (i = 0; i < MAPS; i++) {
		leat_bpf_array_layout(&t->map[i], &base, &region);
		memset(base, (int)i + 1, t->map[i].max_entries * t->map[i].value_stride);
	}
	memset(t->xdp.data, 0x5a, PACKET);
	t->rxq.port = port;
	o->r0 = test_bpf_run(t, prog);
	o->fuel = t->last.fuel;
	o->trap = t->last.trap;
	memcpy(o->packet, t->xdp.data, PACKET);
	memcpy(o->where, where, counts);
	for (i = 0; i < MAPS; i++) {
		leat_bpf_array_layout(&t->map[i], &base, &region);
		memcpy(o->value[i], base, t->map[i].max_entries * t->map[i].value_stride);
	}
	assert_int_equal(t->last.frames, 0);
}

static void dump(const struct wild *w)
{
	char text[128];
	uint32_t i;

	for (i = 0; i < w->n; i++) {
		leat_insn_format(&w->insn[i], text, sizeof(text));
		print_message("# %3u: %s\n", i, text);
	}
}

/** Returns how many runs of the program ended by a trap. */
static unsigned int compare_wild(struct test_bpf *t, const struct wild *w)
{
	static struct outcome a[32], b;
	unsigned int port, trapped = 0;
	int prog = (int)t->obj.n_progs - 1;

	for (port = 0; port < 32; port++)
		run_wild(t, prog, port, &a[port]);
	assert_int_equal(leat_bpf_jit_compile(&t->prog[prog]), 0);
	for (port = 0; port < 32; port++) {
		run_wild(t, prog, port, &b);
		trapped += b.trap != 0;
		if (!memcmp(&a[port], &b, sizeof(b)))
			continue;
		dump(w);
		fail_msg("port %u: interpreted: r0 %llu trap %d fuel %llu, compiled: r0 %llu trap %d fuel %llu", port,
			 (unsigned long long)a[port].r0, a[port].trap, (unsigned long long)a[port].fuel,
			 (unsigned long long)b.r0, b.trap, (unsigned long long)b.fuel);
	}
	test_bpf_drop_progs(t);
	return trapped;
}

static void wild_programs(void **state)
{
	unsigned int seed, trapped = 0, good = 0, n = 1000;
	static struct wild w;
	struct test_bpf t;

	(void)state;
	begin(&t, FUEL);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 12, 4, 0), ARRAY);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 6, 0), PERCPU);
	assert_int_equal(test_bpf_map(&t, BPF_MAP_TYPE_ARRAY, 4, 12, 1, 0), ONE);
	for (seed = 0; seed < n; seed++) {
		make_wild(&w, seed);
		if (test_bpf_verify(&t, w.insn, w.n)) { /* what can be seen to go wrong is refused */
			test_bpf_drop_progs(&t);
			continue;
		}
		test_bpf_drop_progs(&t);
		assert_int_equal(test_bpf_prog(&t, w.insn, w.n), 0);
		trapped += compare_wild(&t, &w);
		good++;
	}
	/* programs and both kinds of run are many */
	assert_true(good > n / 2);
	assert_in_range(trapped, good * 32 / 5, good * 32 * 4 / 5);
	test_bpf_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_never_writable), cmocka_unit_test(failing_allocations),
		cmocka_unit_test(without_memory_for_code), cmocka_unit_test(perf_map),
		cmocka_unit_test(frozen_values_are_folded), cmocka_unit_test(a_packet_that_shrinks),
		cmocka_unit_test(what_was_found_moves_along), cmocka_unit_test(a_large_program), cmocka_unit_test(wild_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
