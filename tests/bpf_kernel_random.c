/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_kernel_random.c: random good programs, from fixed seeds, on the interpreter, compiled, and in the kernel: what the
 * kernel takes we take, and r0, the packet and the fuel are the same. Needs the right to load programs; that part is skipped without.
 * LEAT_RANDOM_PROGRAMS says how many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/test_run.h"
#include "bpf_kernel_common.h"
#include "bpf_random_common.h"

static unsigned int programs(void)
{
	const char *text = getenv("LEAT_RANDOM_PROGRAMS");

	return text ? (unsigned int)strtoul(text, NULL, 10) : 3000;
}

static void fill(struct random_prog *p, uint8_t *packet)
{
	uint32_t i;

	for (i = 0; i < RANDOM_PACKET; i++)
		packet[i] = (uint8_t)(random_next(p, 3) ? random_next(p, 256) : random_next(p, 2) * 255);
}

static void dump(const struct random_prog *p)
{
	char text[128];
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		leat_insn_format(&p->insn[i], text, sizeof(text));
		print_message("# %3u: %s\n", i, text);
	}
}

/** Program @prog's answer; the packet is changed. */
static uint32_t run_one(struct test_bpf *t, int prog, uint8_t *packet)
{
	uint32_t r0;

	test_bpf_packet(t, packet, RANDOM_PACKET, 0);
	r0 = (uint32_t)test_bpf_run(t, prog);
	assert_int_equal(t->last.trap, 0);
	memcpy(packet, t->xdp.data, RANDOM_PACKET);
	return r0;
}

/** Our answer; the packet is changed. Both engines must give it. */
static uint32_t ours(struct test_bpf *t, const struct random_prog *p, uint8_t *packet)
{
	int prog = test_bpf_prog(t, p->insn, p->n);
	uint8_t other[RANDOM_PACKET];
	uint32_t r0, compiled;
	uint64_t fuel;

	if (prog < 0) {
		dump(p);
		fail_msg("we refuse what the kernel takes");
	}
	memcpy(other, packet, RANDOM_PACKET);
	r0 = run_one(t, prog, packet);
	fuel = t->last.fuel;
	if (LEAT_HAVE_JIT) {
		assert_int_equal(leat_bpf_jit_compile(&t->prog[prog]), 0);
		compiled = run_one(t, prog, other);
		if (compiled != r0 || fuel != t->last.fuel || memcmp(other, packet, RANDOM_PACKET) != 0) {
			dump(p);
			fail_msg("r0 %#x interpreted, %#x compiled", r0, compiled);
		}
	}
	test_bpf_drop_progs(t);
	return r0;
}

static void compare(struct test_bpf *t, struct random_prog *p, int fd, unsigned int seed)
{
	uint8_t a[RANDOM_PACKET], b[RANDOM_PACKET];
	uint32_t theirs = 0, own;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		fill(p, a);
		memcpy(b, a, sizeof(b));
		assert_int_equal(kernel_run(fd, a, RANDOM_PACKET, &theirs), 0);
		own = ours(t, p, b);
		if (own == theirs && !memcmp(a, b, RANDOM_PACKET))
			continue;
		dump(p);
		fail_msg("seed %u: r0 %#x, the kernel's is %#x; packets %s", seed, own, theirs,
			 memcmp(a, b, RANDOM_PACKET) != 0 ? "differ" : "are the same");
	}
}

static void same_as_the_kernel(void **state)
{
	unsigned int seed, taken = 0, n = programs();
	static struct random_prog p;
	static char log[1 << 16];
	struct test_bpf t;
	int fd;

	(void)state;
	if (!kernel_answers())
		skip();
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	for (seed = 0; seed < n; seed++) {
		random_make(&p, seed);
		fd = kernel_load(p.insn, p.n, NULL, 0);
		if (fd < 0) {
			if (getenv("LEAT_RANDOM_SAY")) {
				kernel_load(p.insn, p.n, log, sizeof(log));
				print_message("# seed %u: %s\n", seed,
					      log + (strlen(log) > 400 ? strlen(log) - 400 : 0));
			}
			continue;
		}
		taken++;
		compare(&t, &p, fd, seed);
		close(fd);
	}
	print_message("# the kernel took %u of %u\n", taken, n);
	assert_true(taken > n / 2);
	test_bpf_end(&t);
}

/** Without a kernel: they are good to us, and end. */
static void good_to_us(void **state)
{
	unsigned int seed, n = programs();
	static struct random_prog p;
	uint8_t packet[RANDOM_PACKET];
	struct test_bpf t;

	(void)state;
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	for (seed = 0; seed < n; seed++) {
		random_make(&p, seed);
		fill(&p, packet);
		ours(&t, &p, packet);
	}
	test_bpf_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_the_kernel),
		cmocka_unit_test(good_to_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
