/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mtu_test.c: bpf_check_mtu(): what it says of a port's MTU and of lengths around it, with ports, with a forwarding
 * table in their place, and with neither; and the memory that holds the length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <leat/fib.h>

#include "bpf/test_run.h"
#include "netdev/worker.h"
#include "xdp/test_fib.h"
#include "xdp/test_port.h"

#define N(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))
#define HEADER 14u /* Ethernet */
#define FRAG_NEEDED 1

/** A run of the helper alone, on a packet of @len bytes from port @port. */
struct asker {
	struct test_bpf t;
	struct leat_bpf_run run;
	leat_bpf_helper_fn *fn;
};

static void set_up(struct asker *a, uint32_t len, uint32_t port)
{
	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&a->t, 0), 0);
	test_bpf_packet(&a->t, NULL, len, 0);
	a->t.rxq.port = port;
	a->t.xdp.rxq = &a->t.rxq;
	a->run = (struct leat_bpf_run){ .xdp = &a->t.xdp, .env = a->t.env };
	a->fn = leat_bpf_helper_find(BPF_FUNC_check_mtu)->fn;
}

/** What the helper returns; *@len goes in and comes out. */
static int64_t ask(struct asker *a, uint32_t index, uint32_t *len, int32_t more, uint64_t flags)
{
	return (int64_t)a->fn(&a->run, (uint64_t)(uintptr_t)&a->run, index, (uint64_t)(uintptr_t)len,
			      (uint64_t)(int64_t)more, flags);
}

#define ASK(a, index, given, more, flags, answer, mtu)                              \
	do {                                                                        \
		uint32_t len_ = (given);                                            \
		assert_int_equal(ask(a, index, &len_, more, flags), answer);        \
		assert_int_equal(len_, mtu);                                        \
	} while (0)

/** There are no ports: the packet's own is an Ethernet. */
static void without_ports(void **state)
{
	struct asker a;

	(void)state;
	set_up(&a, 1500 + HEADER, 3);
	ASK(&a, 0, 0, 0, 0, 0, 1500);
	ASK(&a, 3, 0, 0, 0, 0, 1500);
	ASK(&a, 0, 0, 1, 0, FRAG_NEEDED, 1500);
	ASK(&a, 0, 0, -1400, 0, 0, 1500);
	/* a length that is given is without the Ethernet header */
	ASK(&a, 0, 1500, 0, 0, 0, 1500);
	ASK(&a, 0, 1501, 0, 0, FRAG_NEEDED, 1500);
	ASK(&a, 0, 1501, -1, 0, 0, 1500);
	/* sums of 32 bits, as the kernel's: they may come out less than nothing */
	ASK(&a, 0, UINT32_MAX, 0, 0, 0, 1500);
	ASK(&a, 0, 0, INT32_MAX, 0, 0, 1500);
	/* what is wrong leaves the length alone */
	ASK(&a, 4, 7, 0, 0, -ENODEV, 7);
	ASK(&a, UINT32_MAX, 7, 0, 0, -ENODEV, 7);
	ASK(&a, 0, 7, 0, BPF_MTU_CHK_SEGS, -EINVAL, 7);
	ASK(&a, 4, 7, 0, 1, -EINVAL, 7);
	test_bpf_end(&a.t);
}

/** Where a forwarding table says what ports there are, their MTUs are its. */
static void with_a_forwarding_table(void **state)
{
	const struct leat_fib_opts opts = { .size = sizeof(opts) };
	struct leat_fib_port port = test_fib_port(2);
	struct leat_fib *fib = NULL;
	struct asker a;

	(void)state;
	assert_int_equal(leat_fib_create(&opts, &fib), 0);
	port.mtu = port.mtu6 = 4000;
	assert_int_equal(leat_fib_port_set(fib, &port), 0);
	set_up(&a, 64, 2);
	a.t.env->fib = fib;
	ASK(&a, 0, 0, 0, 0, 0, 4000);
	ASK(&a, 2, 4001, 0, 0, FRAG_NEEDED, 4000);
	ASK(&a, 1, 7, 0, 0, -ENODEV, 7);
	ASK(&a, UINT32_MAX, 7, 0, 0, -ENODEV, 7);
	a.t.rxq.port = 9; /* not in the table */
	ASK(&a, 9, 0, 0, 0, 0, 1500);
	a.t.env->fib = NULL;
	test_bpf_end(&a.t);
	leat_fib_destroy(fib);
}

static void with_ports(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_netdev *in = test_port_make(net, "in"), *out = test_port_make(net, "out");
	struct asker a;

	(void)state;
	set_up(&a, 100 + HEADER, in->index);
	a.t.xdp.worker = leat_net_worker(net, 0);
	in->mtu = 100;
	out->mtu = 9000;
	ASK(&a, 0, 0, 0, 0, 0, 100);
	ASK(&a, in->index, 0, 1, 0, FRAG_NEEDED, 100);
	ASK(&a, out->index, 0, 8900, 0, 0, 9000);
	ASK(&a, out->index, 0, 8901, 0, FRAG_NEEDED, 9000);
	ASK(&a, out->index, 9001, 0, 0, FRAG_NEEDED, 9000);
	ASK(&a, out->index + 1, 7, 0, 0, -ENODEV, 7);
	a.t.xdp.rxq = NULL; /* from nowhere */
	ASK(&a, 0, 7, 0, 0, -ENODEV, 7);
	ASK(&a, out->index, 9000, 0, 0, 0, 9000);
	test_bpf_end(&a.t);
	test_net_end(net);
}

/** The length is 4 bytes of memory, in and out; less are refused, and so is a number. */
static void length_in_memory(bool jit)
{
	static const struct bpf_insn good[] = {
		ST(BPF_DW, R10, -8, -1), ST(BPF_W, R10, -4, 1501), MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -4),
		MOV64K(R4, 0), MOV64K(R5, 0), HELPER(BPF_FUNC_check_mtu), LDX(BPF_W, R1, R10, -4),
		ALU64K(BPF_LSH, R0, 16), ADD64X(R0, R1), LDX(BPF_W, R2, R10, -8), ADD64K(R2, 1), JMP64K(BPF_JNE, R2, 0, 0),
		EXIT
	}, number[] = { MOV64K(R2, 0), MOV64K(R3, 0), MOV64K(R4, 0), MOV64K(R5, 0), HELPER(BPF_FUNC_check_mtu), EXIT },
	short_of[] = { MOV64K(R2, 0), MOV64X(R3, R10), ADD64K(R3, -3), MOV64K(R4, 0), MOV64K(R5, 0),
		       HELPER(BPF_FUNC_check_mtu), EXIT },
	unknown[] = { /* where r3 points depends on the packet: looked at when it runs */
		LDX(BPF_W, R2, R1, 16), MOV64X(R3, R10), ADD64K(R3, -4), ADD64X(R3, R2), MOV64K(R2, 0), MOV64K(R4, 0),
		MOV64K(R5, 0), HELPER(BPF_FUNC_check_mtu), EXIT };
	struct test_bpf t;
	int prog;

	leat_xdp_bpf_init();
	assert_int_equal(test_bpf_begin(&t, 0), 0);
	t.jit = jit;
	test_bpf_packet(&t, NULL, 64, 0);
	assert_int_equal(test_bpf_run(&t, test_bpf_prog(&t, good, N(good))), (1 << 16) + 1500);
	assert_int_not_equal(test_bpf_verify(&t, number, N(number)), 0);
	assert_non_null(strstr(t.said, "is a number, not a pointer"));
	assert_int_not_equal(test_bpf_verify(&t, short_of, N(short_of)), 0);
	assert_non_null(strstr(t.said, "argument 3 needs 4 bytes, more than there are"));
	test_bpf_drop_progs(&t);
	prog = test_bpf_prog(&t, unknown, N(unknown));
	t.rxq.queue = 0;
	assert_int_equal(test_bpf_run(&t, prog), 0);
	assert_int_equal(t.last.trap, 0);
	t.rxq.queue = 1;
	test_bpf_run(&t, prog);
	assert_int_equal(t.last.trap, 1 + LEAT_BPF_TRAP_HELPER);
	test_bpf_end(&t);
}

static void length_in_memory_interpreted(void **state)
{
	(void)state;
	length_in_memory(false);
}

#if LEAT_HAVE_JIT
static void length_in_memory_compiled(void **state)
{
	(void)state;
	length_in_memory(true);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_ports),
		cmocka_unit_test(with_a_forwarding_table),
		cmocka_unit_test(with_ports),
		cmocka_unit_test(length_in_memory_interpreted),
#if LEAT_HAVE_JIT
		cmocka_unit_test(length_in_memory_compiled),
#endif
	};

	return cmocka_run_group_tests_name("mtu", tests, NULL, NULL);
}
