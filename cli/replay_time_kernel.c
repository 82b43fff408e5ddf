/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_time_kernel.c: the same program in the running kernel, by its test runs (BPF_PROG_TEST_RUN), where this process
 * may have them. The kernel repeats one packet many times and says how long one run took on average; how long an empty
 * program takes is said beside it, for most of what a short one takes is the test's own. Some packets of the capture are
 * enough, evenly spread over it. As the kernel repeats what the program left of the packet, those on
 * which the program does not do the same a second time are left out, as are those that are too long for a test run.
 */
#include "replay_time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/kernel/kernel.h"

/* Each test run of an XDP program takes the kernel milliseconds beside, in which it patches code: so they are few. */
#define PACKETS_MAX 8u
#define REPEAT_FIRST 1000u
#define REPEAT_MAX 1000000u
#define SAMPLES 3u
#define SLICE_NS 5e6 /* of a test run's repetitions */
#define OUT_SIZE 4096u

struct kernel_times {
	struct leat_kernel *kernel;
	struct kept packet[PACKETS_MAX];
	unsigned int n;
};

static int run(const struct times *t, const struct leat_bpf_prog *prog, const struct kept *packet, uint32_t repeat,
	       struct leat_kernel_test *test)
{
	*test = (struct leat_kernel_test){
		.in = t->bytes + packet->off,
		.in_len = packet->len,
		.out = test->out,
		.out_len = test->out_len,
		.repeat = repeat,
	};
	return leat_kernel_test(t->kernel->kernel, prog, test);
}

/* Whether the program does the same with what it left of a packet: then repeating it says how long it takes. */
static bool is_steady(const struct times *t, const struct lane *lane, const struct kept *packet)
{
	static uint8_t first[OUT_SIZE], second[OUT_SIZE];
	struct leat_kernel_test once = { .out = first, .out_len = sizeof(first) };
	struct leat_kernel_test again;

	if (run(t, lane->r.prog, packet, 1, &once))
		return false;
	again = (struct leat_kernel_test){
		.in = first, .in_len = once.out_len, .out = second, .out_len = sizeof(second), .repeat = 1
	};
	if (leat_kernel_test(t->kernel->kernel, lane->r.prog, &again))
		return false;
	return once.verdict == again.verdict && once.out_len == again.out_len;
}

static void choose_packets(struct times *t, const struct lane *lane)
{
	const size_t want = t->distinct < PACKETS_MAX ? t->distinct : PACKETS_MAX;
	const struct kept *packet;
	size_t i;

	for (i = 0; i < want; i++) {
		packet = &t->packet[i * t->distinct / want];
		if (is_steady(t, lane, packet))
			t->kernel->packet[t->kernel->n++] = *packet;
	}
}

static int open_kernel(struct times *t, struct lane *lane, struct leat_diag *diag)
{
	int err;

	lane->r = (struct replay){ .opts = t->r->opts, .diag = diag };
	err = replay_load(&lane->r, LEAT_BPF_ENGINE_INTERP, NULL);
	if (!err)
		err = leat_kernel_open(lane->r.obj, diag, &t->kernel->kernel);
	lane->r.diag = NULL;
	return err;
}

void kernel_times_open(struct times *t, struct lane *lane)
{
	struct leat_diag *diag = leat_diag_create();
	int err;

	lane->name = "kernel";
	t->kernel = calloc(1, sizeof(*t->kernel));
	err = t->kernel ? open_kernel(t, lane, diag) : -ENOMEM;
	if (!err) {
		choose_packets(t, lane);
		lane->measured = t->kernel->n;
		if (!lane->measured)
			snprintf(lane->why, sizeof(lane->why), "its test run does not take these packets, or the program "
				 "does not do the same with what it left of them");
	} else if (err != -EPERM && err != -ENOSYS) {
		snprintf(lane->why, sizeof(lane->why), "%s",
			 leat_diag_get(diag, 0) ? leat_diag_get(diag, 0)->message : strerror(-err));
	}
	leat_diag_destroy(diag);
}

/* Runs a packet @repeat times; adds the nanoseconds of one run to *@ns. Returns 0 or a negative errno. */
static int run_packet(const struct times *t, const struct leat_bpf_prog *prog, unsigned int i, uint32_t repeat,
		      double *ns)
{
	struct leat_kernel_test test = { .out = NULL };
	int err = run(t, prog, &t->kernel->packet[i], repeat, &test);

	*ns += err ? 0 : test.ns;
	return err;
}

static int sample(const struct times *t, struct lane *lane, uint32_t repeat)
{
	double ns = 0;
	unsigned int i;
	int err;

	lane->empty = 0;
	err = run_packet(t, NULL, 0, repeat, &lane->empty);
	for (i = 0; i < t->kernel->n && !err; i++)
		err = run_packet(t, lane->r.prog, i, repeat, &ns);
	lane->sample[lane->n++] = ns / t->kernel->n;
	return err;
}

void kernel_times_measure(const struct times *t, struct lane *lane)
{
	double once = 0;
	int err = run_packet(t, lane->r.prog, 0, REPEAT_FIRST, &once);
	uint32_t repeat = once > SLICE_NS / REPEAT_MAX ? (uint32_t)(SLICE_NS / once) + 1 : REPEAT_MAX;

	while (!err && lane->n < SAMPLES)
		err = sample(t, lane, repeat);
	lane->measured = !err;
	if (err)
		snprintf(lane->why, sizeof(lane->why), "its test run ends: %s", strerror(-err));
	else
		snprintf(lane->why, sizeof(lane->why), "%u test runs of %u of the packets", SAMPLES, t->kernel->n);
}

void kernel_times_close(struct times *t)
{
	if (!t->kernel)
		return;
	leat_kernel_close(t->kernel->kernel);
	free(t->kernel);
	t->kernel = NULL;
}
