/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf.c: the bench `bpf`: what programs cost, on leat's compiler (jit) and interpreter (interp), compiled for the machine
 * by clang over the same maps (native), in the kernel (by BPF_PROG_TEST_RUN), and by DPDK's librte_bpf where it accepts
 * them. From each figure that of a program which does nothing, on the same side, is taken off: what is left is the
 * program's own time. All sides must first agree on what each program does.
 */
#include <errno.h>
#include <leat/bpf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bench.h"
#include "bpf/prog.h"
#include "bpf/side.h"
#include "run.h"

#define N_SIDES 5u
#define BLOCK_NS 200000u /* of a program, and then of the one that does nothing */
#define LEAST_NS 0.01    /* what cannot be told from nothing */
#define LARGE_NS 50.0    /* programs that take as long natively are large: their time counts, of others their size */
#define LOAD_MARK_NS 5e6

/** Program @program on @side. */
struct measured {
	struct side *side;
	enum bench_program program;
	uint64_t block[2]; /* runs in a block of the empty program, of this one */
	char name[48];
};

struct bpf_bench {
	struct side side[N_SIDES];
	bool open[N_SIDES];
};

/* ---- sides ---- */

static void open_sides(struct bench_run *run, struct bpf_bench *b)
{
	const struct side *const sides[N_SIDES] = { &leat_jit_side, &native_side, &kernel_side, &leat_interp_side, &rte_side };
	char why[256] = "";
	unsigned int i;

	for (i = 0; i < N_SIDES; i++) {
		b->side[i] = *sides[i];
		b->open[i] = !b->side[i].open(&b->side[i], why, sizeof(why));
		if (!b->open[i])
			bench_note(run, "%s is left out: %s", b->side[i].name, why);
	}
}

static void close_sides(struct bpf_bench *b)
{
	unsigned int i;

	for (i = 0; i < N_SIDES; i++)
		if (b->open[i])
			b->side[i].close(&b->side[i]);
}

static bool has(const struct bpf_bench *b, unsigned int i, enum bench_program program)
{
	struct side *side = (struct side *)&b->side[i];

	return b->open[i] && (!side->has || side->has(side, program));
}

/** Whether all sides give the same verdict and leave the same packet, a few times in a row. */
static bool sides_agree(struct bench_run *run, struct bpf_bench *b, enum bench_program program)
{
	uint8_t packet[PACKET_LEN];
	uint32_t verdict = 0, mine;
	unsigned int i;
	bool first = true;

	for (i = 0; i < N_SIDES; i++) {
		if (!has(b, i, program))
			continue;
		bench_make_packet(b->side[i].packet);
		mine = b->side[i].run(&b->side[i], program, 3);
		if (first) {
			memcpy(packet, b->side[i].packet, PACKET_LEN);
			verdict = mine;
			first = false;
		} else if (mine != verdict || memcmp(packet, b->side[i].packet, PACKET_LEN) != 0) {
			bench_note(run, "%s: %s does something else than the others (verdict %u, not %u)",
				   bench_program_name[program], b->side[i].name, mine, verdict);
			return false;
		}
	}
	return true;
}

/* ---- time ---- */

static double block(const struct measured *m, enum bench_program program, uint64_t n)
{
	uint64_t start = bench_cpu_ns();

	m->side->run(m->side, program, n);
	return (double)(bench_cpu_ns() - start);
}

/** Runs that take about as long as a block should. */
static uint64_t calibrate(const struct measured *m, enum bench_program program)
{
	uint64_t n = 4096; /* a system call of the kernel's side is little then */

	while (block(m, program, n) < BLOCK_NS / 2.0 && n < UINT64_C(1) << 30)
		n *= 2;
	return n;
}

/** The program's own time, ns a packet: in blocks, in turns with the program that does nothing. */
static double net(void *arg, uint64_t ns)
{
	struct measured *m = arg;
	double empty = 0, all = 0;
	uint64_t n = 0;

	if (!m->block[1]) {
		m->block[0] = calibrate(m, PROGRAM_empty);
		m->block[1] = calibrate(m, m->program);
	}
	do {
		empty += block(m, PROGRAM_empty, m->block[0]);
		all += block(m, m->program, m->block[1]);
		n++;
	} while (empty + all < (double)ns);
	all = all / (double)(n * m->block[1]) - empty / (double)(n * m->block[0]);
	return all > LEAST_NS ? all : LEAST_NS;
}

static void measure(struct bench_run *run, struct bpf_bench *b, enum bench_program program)
{
	struct bench_variant variants[N_SIDES];
	struct measured m[N_SIDES];
	unsigned int i, n = 0;

	for (i = 0; i < N_SIDES; i++) {
		if (!has(b, i, program))
			continue;
		m[n] = (struct measured){ .side = &b->side[i], .program = program };
		snprintf(m[n].name, sizeof(m[n].name), "%s@%s", b->side[i].name, bench_program_name[program]);
		variants[n] = (struct bench_variant){ .name = m[n].name, .sample = net, .arg = &m[n] };
		n++;
	}
	bench_measure(run, variants, n);
}

/* ---- ratios ---- */

static const double *samples(struct bench_run *run, const char *side, enum bench_program program, unsigned int *n)
{
	char name[48];

	snprintf(name, sizeof(name), "%s@%s", side, bench_program_name[program]);
	return bench_samples(run, name, n);
}

/** Whether the program takes LARGE_NS on its own. */
static bool is_large(struct bench_run *run, enum bench_program program)
{
	unsigned int n;
	const double *sample = samples(run, "native", program, &n);

	return sample && stat_summary(sample, n).median >= LARGE_NS;
}

static void ratio_of(struct bench_run *run, const char *over, const char *under, enum bench_program program,
		     struct bench_mark mark)
{
	const char *name = bench_program_name[program];
	char words[3][64];

	snprintf(words[0], sizeof(words[0]), "%s/%s@%s", over, under, name);
	snprintf(words[1], sizeof(words[1]), "%s@%s", over, name);
	snprintf(words[2], sizeof(words[2]), "%s@%s", under, name);
	bench_ratio(run, words[0], words[1], words[2], mark);
}

/** Adds @side@mean: the geometric mean over large programs, round by round. Whether there are any. */
static bool add_mean(struct bench_run *run, const char *side)
{
	double sum[1000] = { 0 };
	unsigned int i, k, n, rounds = bench_rounds(run), programs = 0;
	const double *sample;
	char name[32];

	for (i = PROGRAM_empty + 1; i < N_PROGRAMS; i++) {
		sample = is_large(run, i) ? samples(run, side, i, &n) : NULL;
		if (!sample || n < rounds)
			continue;
		for (k = 0; k < rounds; k++)
			sum[k] += log(sample[k]);
		programs++;
	}
	if (!programs)
		return false;
	for (k = 0; k < rounds; k++)
		sum[k] = exp(sum[k] / programs);
	snprintf(name, sizeof(name), "%s@mean", side);
	bench_add(run, name, sum, rounds);
	return true;
}

static void state_means(struct bench_run *run, const struct bpf_bench *b)
{
	if (!add_mean(run, "jit"))
		return;
	add_mean(run, "native");
	if (b->open[2])
		add_mean(run, "kernel");
	bench_ratio(run, "jit/native", "jit@mean", "native@mean", BENCH_MARK_AT_MOST(1.3));
	bench_ratio(run, "jit/kernel", "jit@mean", "kernel@mean", BENCH_MARK_AT_MOST(1.0));
	bench_note(run, "mean: geometric, of the programs that take %.0f ns and more natively", LARGE_NS);
}

static void state_size(struct bench_run *run, struct bpf_bench *b, enum bench_program program)
{
	unsigned int mine = b->side[0].code_size(&b->side[0], program), kernel = 0;
	char name[64];

	if (b->open[2])
		kernel = b->side[2].code_size(&b->side[2], program);
	if (!mine || !kernel)
		return;
	snprintf(name, sizeof(name), "size jit/kernel@%s", bench_program_name[program]);
	bench_exact(run, name, (double)mine / kernel,
		    is_large(run, program) ? BENCH_MARK_NONE : BENCH_MARK_AT_MOST(1.0));
	bench_note(run, "%s: %u bytes of code, the kernel's %u", bench_program_name[program], mine, kernel);
}

static void state(struct bench_run *run, struct bpf_bench *b, enum bench_program program)
{
	bool large = is_large(run, program), hit = program == PROGRAM_hash;

	ratio_of(run, "jit", "native", program, large ? BENCH_MARK_AT_MOST(1.43) : BENCH_MARK_NONE);
	ratio_of(run, "jit", "kernel", program,
		 hit ? BENCH_MARK_AT_MOST(0.8) : large ? BENCH_MARK_AT_MOST(1.1) : BENCH_MARK_NONE);
	ratio_of(run, "interp", "jit", program, BENCH_MARK_NONE);
	ratio_of(run, "jit", "librte_bpf", program, BENCH_MARK_NONE);
	state_size(run, b, program);
}

static void note_refused(struct bench_run *run, const struct bpf_bench *b)
{
	char text[256] = "";
	size_t len = 0;
	unsigned int i;

	for (i = 0; b->open[4] && i < N_PROGRAMS; i++)
		if (!has(b, 4, i))
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", bench_program_name[i]);
	if (len)
		bench_note(run, "librte_bpf does not load:%s", text);
}

/* ---- loading ---- */

struct loading {
	struct leat_bpf_env *env;
	void *image;
	size_t len;
	int err;
};

/** Verifier, compiler, and what else loading is once the image is there: ns. */
static double load(void *arg, uint64_t ns)
{
	struct loading *l = arg;
	uint64_t start, spent = 0, began = bench_cpu_ns();
	struct leat_bpf_object *obj;
	unsigned int n = 0;

	do {
		l->err = leat_bpf_object_open_image(l->env, l->image, l->len, NULL, &obj);
		if (l->err)
			return 0;
		start = bench_cpu_ns();
		l->err = leat_bpf_object_load(obj, NULL, NULL);
		spent += bench_cpu_ns() - start;
		leat_bpf_object_close(obj);
		n++;
	} while (!l->err && bench_cpu_ns() - began < ns);
	return (double)spent / n;
}

static int open_loading(struct loading *l)
{
	const struct leat_bpf_env_opts env = { .size = sizeof(env), .cpus = 1, .engine = LEAT_BPF_ENGINE_AUTO };
	const struct leat_bpf_object_opts opts = { .size = sizeof(opts) };
	int fd, err = leat_bpf_env_create(&env, &l->env);
	char path[64];

	if (err)
		return err;
	fd = bench_object_file(bench_long_object, bench_long_object_end, path, sizeof(path));
	if (fd < 0)
		return fd;
	err = leat_bpf_loader_run(path, &opts, NULL, &l->image, &l->len);
	close(fd);
	return err;
}

static int measure_load(struct bench_run *run)
{
	struct loading l = { .err = 0 };
	const struct bench_variant variant = { .name = "load@3000", .sample = load, .arg = &l };
	unsigned int i, n;
	double *mark;
	int err = open_loading(&l);

	if (!err)
		bench_measure(run, &variant, 1);
	leat_heap_free(l.image);
	leat_bpf_env_destroy(l.env);
	if (err || l.err)
		return err ? err : l.err;
	bench_samples(run, "load@3000", &n);
	mark = malloc((n ? n : 1) * sizeof(*mark));
	for (i = 0; mark && i < n; i++)
		mark[i] = LOAD_MARK_NS;
	bench_add(run, "load-mark", mark, mark ? n : 0);
	free(mark);
	bench_ratio(run, "load@3000/5ms", "load@3000", "load-mark", BENCH_MARK_AT_MOST(1.0));
	return 0;
}

/* ---- all ---- */

static int run_bpf(struct bench_run *run)
{
	struct bpf_bench b;
	unsigned int i;
	int err = 0;

	open_sides(run, &b);
	if (!b.open[0] || !b.open[1]) {
		close_sides(&b);
		return -EOPNOTSUPP;
	}
	for (i = 0; i < N_PROGRAMS && !err; i++)
		if (!sides_agree(run, &b, i))
			err = -EPROTO;
	for (i = PROGRAM_empty + 1; i < N_PROGRAMS && !err; i++)
		measure(run, &b, i);
	if (!err) {
		state_means(run, &b);
		for (i = PROGRAM_empty + 1; i < N_PROGRAMS; i++)
			state(run, &b, i);
		note_refused(run, &b);
	}
	close_sides(&b);
	return err ? err : measure_load(run);
}

const struct bench bench_bpf = {
	"bpf", "eBPF programs: parse and rewrite, look up, compute; and loading 3,000 instructions", "ns/packet", BENCH_LOWER,
	run_bpf,
};
