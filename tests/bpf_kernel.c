/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_kernel.c: the kernel and leat load the same objects, run the same packets, and must agree: on the verdict, on
 * every byte of the packet and its metadata, and on what the maps hold and the rings gave. Prints TAP. As root.
 *
 * usage: test-tests-bpf_kernel OBJECT... | OBJECT PROGRAM
 *	LEAT_TEST_PACKETS=N	packets for each program (2000)
 *	LEAT_TEST_SEED=N	other packets
 *	LEAT_LOAD=PATH		leat-load, where it is not found
 *	LEAT_TEST_ENGINE=interp	the interpreter instead of compiled code
 *
 * Each program begins with its object loaded afresh and the maps filled. A program that the kernel refuses is skipped
 * by name with the kernel's reason; one that leat refuses and the kernel does not is a failure, unless it is listed
 * below.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/both.h"
#include "bpf/engine/jit.h"
#include "bpf/contents.h"
#include "bpf/packets.h"

#define COMPARE_EVERY 250u
/** Differences told of one program; after a first one others follow. */
#define TELL_MAX 4u

struct test {
	struct both_world world;
	unsigned int packets;
	uint64_t seed;
	unsigned int cases, failed, skipped;
	uint64_t runs;
	/* of the program at hand */
	const char *self, *object, *program;
	unsigned int differences, packet;
	unsigned int verdict[LEAT_XDP_ACTIONS + 1]; /* how many of each; the last: none of them */
	uint8_t last[PACKET_MAX];
	uint32_t last_len;
};

/**
 * Programs that are not compared, and why. @leat: leat does not have what they need, and must say so in these words; the
 * kernel is not asked. @kernel: the kernel refuses them in these words, or what the test can do with it does.
 */
static const struct exception {
	const char *program, *leat, *kernel;
} exceptions[] = {
	/* kernel functions, variables and sockets */
	{ "uses_kfunc", "bpf_xdp_metadata_rx_hash", NULL },
	{ "syncookie_xdp", "bpf_xdp_ct_lookup", NULL },
	{ "nf_xdp_ct_test", "CONFIG_HZ", NULL },
	{ "check_syncookie_xdp", "bpf_skc_lookup_tcp", NULL },
	/* egress_ifindex: the kernel has it in programs of devmap entries only, which it does not test-run */
	{ "xdp_devmap_prog", NULL, "invalid bpf_context access off=20" },
	{ "xdp_dummy_dm", NULL, "invalid bpf_context access off=20" },
	{ "xdpdm_devlog", NULL, "invalid bpf_context access off=20" },
	/* the inner maps are what its user-space program makes */
	{ "xdp_mimtest0", NULL, "failed to create inner map" },
};

static const struct exception *exception_of(const char *program)
{
	static const struct exception none;
	size_t i;

	for (i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
		if (!strcmp(exceptions[i].program, program))
			return &exceptions[i];
	}
	return &none;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- telling ---- */

static void result(struct test *t, bool ok, const char *format, ...) LEAT_PRINTF(3, 4);

static void result(struct test *t, bool ok, const char *format, ...)
{
	va_list args;

	t->cases++;
	t->failed += !ok;
	printf("%sok %u - %s: %s: ", ok ? "" : "not ", t->cases, base_name(t->object), t->program);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/** One line of what somebody said. */
static const char *one_line(char *text)
{
	char *at;

	for (at = text; *at; at++) {
		if (*at == '\n' || *at == '#')
			*at = ' ';
	}
	return text;
}

static void tell_packet(const struct test *t)
{
	uint32_t i;

	printf("#   packet %u: ", t->packet);
	for (i = 0; i < t->last_len; i++)
		printf("%02x", t->last[i]);
	printf("\n#   again: LEAT_TEST_PACKETS=%u LEAT_TEST_SEED=%llu %s %s %s\n", t->packet + 1,
	       (unsigned long long)t->seed, t->self, t->object, t->program);
}

static void differ(void *arg, const char *sentence)
{
	struct test *t = arg;

	if (t->differences++ >= TELL_MAX)
		return;
	printf("# %s: %s: %s\n", base_name(t->object), t->program, sentence);
	tell_packet(t);
}

/* ---- one packet ---- */

static void make_packet(const struct test *t, struct numbers *n, struct both_packet *packet)
{
	bool here = numbers_below(n, 2);

	packet->ifindex = here ? t->world.ifindex : 1;
	packet->queue = here ? numbers_below(n, 4) : 0;
	packet->meta = numbers_below(n, 8) ? 0 : 4 * numbers_below(n, 17);
	numbers_fill(n, packet->bytes, packet->meta);
	packet->len = packet->meta + packet_make(n, packet->bytes + packet->meta);
}

static void compare_packets(struct test *t, const struct both_packet *kernel, uint32_t kernel_verdict,
			    const struct both_packet *leat, uint32_t leat_verdict)
{
	char text[256];
	uint32_t i;

	if (kernel_verdict != leat_verdict) {
		snprintf(text, sizeof(text), "the verdict is %d in the kernel, %d in leat", (int)kernel_verdict,
			 (int)leat_verdict);
		differ(t, text);
		return;
	}
	if (kernel->len != leat->len || kernel->meta != leat->meta) {
		snprintf(text, sizeof(text), "verdict %d: %u bytes, %u of metadata, in the kernel, %u and %u in leat",
			 (int)leat_verdict, kernel->len, kernel->meta, leat->len, leat->meta);
		differ(t, text);
		return;
	}
	for (i = 0; i < kernel->len && kernel->bytes[i] == leat->bytes[i]; i++)
		;
	if (i == kernel->len)
		return;
	snprintf(text, sizeof(text), "verdict %d: byte %d of the packet is %02x in the kernel, %02x in leat",
		 (int)leat_verdict, (int)(i - kernel->meta), kernel->bytes[i], leat->bytes[i]);
	differ(t, text);
}

static int run_packet(struct test *t, struct both *both, const struct both_prog *prog, struct numbers *n)
{
	static struct both_packet kernel, leat;
	uint32_t kernel_verdict, leat_verdict;
	char text[128];
	int err;

	make_packet(t, n, &kernel);
	leat = kernel;
	t->last_len = kernel.len - kernel.meta;
	memcpy(t->last, kernel.bytes + kernel.meta, t->last_len);
	err = both_run_kernel(prog, &kernel, &kernel_verdict);
	if (err)
		return err;
	err = both_run_leat(both, prog, t->world.cpu, &leat, &leat_verdict);
	t->runs++;
	if (err) {
		snprintf(text, sizeof(text), "leat leaves an impossible packet");
		differ(t, text);
		return 0;
	}
	t->verdict[leat_verdict < LEAT_XDP_ACTIONS ? leat_verdict : LEAT_XDP_ACTIONS]++;
	compare_packets(t, &kernel, kernel_verdict, &leat, leat_verdict);
	return 0;
}

/** "2000 packets, 20 drop, 1980 pass; 7 accesses proven, 0 tested". */
static void result_of_runs(struct test *t, const struct both_prog *prog)
{
	struct leat_bpf_check check;
	char text[256];
	int i, len = snprintf(text, sizeof(text), "%u packets", t->packet);

	for (i = 0; i <= LEAT_XDP_ACTIONS; i++) {
		if (t->verdict[i])
			len += snprintf(text + len, sizeof(text) - (size_t)len, ", %u %s", t->verdict[i],
					leat_xdp_action_name((uint32_t)i));
	}
	leat_bpf_prog_check(prog->leat, &check);
	result(t, !t->differences, "%s; %u accesses proven, %u tested", text, check.proven, check.guarded);
}

static void tell_traps(const struct both_prog *prog)
{
	struct leat_bpf_trap trap;
	unsigned int i;

	for (i = 0; leat_bpf_prog_trap(prog->leat, i, &trap); i++)
		printf("# %s: %llu times ended at instruction %u: %s (%s)\n", prog->name,
		       (unsigned long long)trap.count, trap.insn, trap.reason, trap.source ? trap.source : "");
}

/* ---- one program ---- */

/** What leat makes of a program, offered to the kernel by leat, is as good as what libbpf makes of it. */
static void check_answer(struct test *t, const struct both_prog *prog)
{
	struct leat_bpf_check check;
	char text[400];

	leat_bpf_prog_check(prog->leat, &check);
	if (check.kernel == LEAT_BPF_KERNEL_ACCEPTS)
		return;
	snprintf(text, sizeof(text), "the kernel takes it from libbpf, but of leat's form it says: %s", check.kernel_says);
	differ(t, text);
}

static void run_program(struct test *t, struct both *both, const struct both_prog *prog)
{
	const struct contents contents = { &t->world, differ, t };
	struct numbers n = { t->seed };
	int err = 0;

	t->differences = 0;
	t->packet = 0;
	t->last_len = 0;
	memset(t->verdict, 0, sizeof(t->verdict));
	contents_fill(&contents, both);
	for (; !err && t->packet < t->packets && !t->differences; t->packet++) {
		err = run_packet(t, both, prog, &n);
		if (t->differences)
			break;
		if (t->packet % COMPARE_EVERY == COMPARE_EVERY - 1)
			contents_compare(&contents, both, false);
	}
	contents_compare(&contents, both, true);
	check_answer(t, prog);
	if (err) {
		t->skipped++;
		result(t, true, "# SKIP loaded by both, but the kernel's test run says %s", strerror(-err));
		return;
	}
	tell_traps(prog);
	result_of_runs(t, prog);
}

static const struct both_prog *find_program(const struct both *both, const char *name)
{
	unsigned int i;

	for (i = 0; i < both->n_progs && strcmp(both->prog[i].name, name); i++)
		;
	return i < both->n_progs && both->prog[i].leat ? &both->prog[i] : NULL;
}

/** What the kernel said and what is expected of it; leat may take the program or not. */
static void check_kernel_refusal(struct test *t, const struct both *both, const struct exception *exception)
{
	const char *leat = both->why_leat[0] ? "; leat refuses it, too: " : "; leat takes it";

	if (exception->kernel && strstr(both->why_kernel, exception->kernel)) {
		result(t, true, "is not compared: %s%s%s", both->why_kernel, leat, both->why_leat);
		return;
	}
	t->skipped++;
	result(t, true, "# SKIP the kernel refuses it: %s", both->why_kernel);
	printf("#%s%s\n", leat, both->why_leat);
}

/** Loads the whole object; when a side does not take it as a whole, this program alone. */
static void open_both(struct test *t, struct both_image *image, const char *program, struct both *both)
{
	both_open(&t->world, image, NULL, both);
	if (both->why_kernel[0] || both->why_leat[0]) {
		both_close(both);
		both_open(&t->world, image, program, both);
	}
	one_line(both->why_kernel);
	one_line(both->why_leat);
}

static void check_program(struct test *t, struct both_image *image, const char *program)
{
	const struct exception *exception = exception_of(program);
	const struct both_prog *prog;
	struct both both;

	t->program = program;
	t->world.leat_only = exception->leat;
	open_both(t, image, program, &both);
	prog = find_program(&both, program);
	if (exception->leat)
		result(t, strstr(both.why_leat, exception->leat), "is refused: %s",
		       both.why_leat[0] ? both.why_leat : "but it is not");
	else if (both.why_kernel[0])
		check_kernel_refusal(t, &both, exception);
	else if (both.why_leat[0] || !prog)
		result(t, false, "leat refuses it: %s", both.why_leat);
	else
		run_program(t, &both, prog);
	both_close(&both);
}

/** The names of an object's XDP programs, from libbpf alone. */
static unsigned int list_programs(const char *path, char names[][128])
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	unsigned int n = 0;

	if (!obj)
		return 0;
	bpf_object__for_each_program(prog, obj) {
		if (n < BOTH_PROGS_MAX && both_is_xdp(prog))
			snprintf(names[n++], 128, "%s", bpf_program__name(prog));
	}
	bpf_object__close(obj);
	return n;
}

static void check_object(struct test *t, const char *path, const char *only)
{
	static char names[BOTH_PROGS_MAX][128];
	struct both_image image = { .path = path };
	unsigned int i, n = list_programs(path, names), done = 0;

	t->object = path;
	for (i = 0; i < n; i++) {
		if (only && strcmp(only, names[i]))
			continue;
		check_program(t, &image, names[i]);
		done++;
	}
	if (!done)
		printf("# %s: no XDP program%s%s\n", base_name(path), only ? " " : "", only ? only : "");
	both_image_free(&image);
}

static unsigned long long number_from(const char *variable, unsigned long long otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/** Compiled code where there is a compiler, if nothing is said: a program that is not compiled is a failure then. */
static unsigned int engine_from(const char *word)
{
	if (word && !strcmp(word, "interp"))
		return LEAT_BPF_ENGINE_INTERP;
	return LEAT_HAVE_JIT ? LEAT_BPF_ENGINE_JIT : LEAT_BPF_ENGINE_AUTO;
}

int main(int argc, char **argv)
{
	struct test t = { .self = argv[0] };
	bool one = argc == 3 && !strchr(argv[2], '/') && !strstr(argv[2], ".o");
	char why[256] = "";
	int i;

	t.packets = (unsigned int)number_from("LEAT_TEST_PACKETS", 2000);
	t.seed = number_from("LEAT_TEST_SEED", 1);
	t.world.loader = getenv("LEAT_LOAD");
	t.world.engine = engine_from(getenv("LEAT_TEST_ENGINE"));
	if (argc < 2) {
		printf("1..0 # SKIP there are no objects\n");
		return 0;
	}
	if (both_world_init(&t.world, why, sizeof(why))) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	for (i = 1; i < (one ? 2 : argc); i++)
		check_object(&t, argv[i], one ? argv[2] : NULL);
	printf("1..%u\n# %d objects, %u programs (%u skipped), %llu runs on each side, %u failed\n", t.cases,
	       one ? 1 : argc - 1, t.cases, t.skipped, (unsigned long long)t.runs, t.failed);
	both_world_fini(&t.world);
	return t.failed ? 1 : 0;
}
