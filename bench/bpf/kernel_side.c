/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_side.c: the kernel, by BPF_PROG_TEST_RUN with as many repetitions as packets. Needs libbpf, and to be root. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/base.h>

#include "side.h"

#ifdef LEAT_HAVE_LIBBPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/resource.h>

#define REPEAT_MAX (1u << 30)

struct kernel_side {
	struct bpf_object *obj;
	int map[N_MAPS];
	int prog[N_PROGRAMS];
	unsigned int cpus; /* copies of per-CPU values */
	uint8_t packet[PACKET_LEN];
};

static int LEAT_PRINTF(2, 0) silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int set(void *arg, enum bench_map map, const void *key, const void *value)
{
	struct kernel_side *s = arg;

	return bpf_map_update_elem(s->map[map], key, value, BPF_ANY) ? -errno : 0;
}

static int find_all(struct kernel_side *s)
{
	unsigned int i;

	for (i = 0; i < N_MAPS; i++) {
		s->map[i] = bpf_object__find_map_fd_by_name(s->obj, bench_map_name[i]);
		if (s->map[i] < 0)
			return -ENOENT;
	}
	for (i = 0; i < N_PROGRAMS; i++) {
		s->prog[i] = bpf_program__fd(bpf_object__find_program_by_name(s->obj, bench_program_name[i]));
		if (s->prog[i] < 0)
			return -ENOENT;
	}
	return 0;
}

static int load(struct kernel_side *s)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	libbpf_set_print(silent);
	s->obj = bpf_object__open_mem(bench_programs_object,
				      (size_t)(bench_programs_object_end - bench_programs_object), NULL);
	if (!s->obj || bpf_object__load(s->obj))
		return -errno;
	return find_all(s);
}

static void kernel_close(struct side *side)
{
	struct kernel_side *s = side->priv;

	bpf_object__close(s->obj);
	free(s);
}

/** Runs a program @n times; the packet that the last of them left comes back. Returns 0 or a negative errno. */
static int test_run(struct kernel_side *s, enum bench_program program, unsigned int n, uint32_t *verdict)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = s->packet, .data_size_in = PACKET_LEN, .data_out = s->packet,
		    .data_size_out = PACKET_LEN, .repeat = (int)n);
	int err = bpf_prog_test_run_opts(s->prog[program], &opts) ? -errno : 0;

	*verdict = opts.retval;
	return err;
}

static int kernel_open(struct side *side, char *why, size_t size)
{
	struct kernel_side *s = calloc(1, sizeof(*s));
	uint32_t verdict;
	int err = s ? load(s) : -ENOMEM;

	if (!err)
		err = bench_fill_maps(set, s);
	if (!err) {
		bench_make_packet(s->packet);
		err = test_run(s, PROGRAM_empty, 1, &verdict);
	}
	side->priv = s;
	side->packet = s ? s->packet : NULL;
	if (!err)
		return 0;
	snprintf(why, size, "%s", strerror(-err));
	if (s)
		kernel_close(side);
	return err;
}

static uint32_t kernel_run(struct side *side, enum bench_program program, uint64_t n)
{
	uint32_t verdict = 0, now;

	for (; n; n -= now) {
		now = n < REPEAT_MAX ? (uint32_t)n : REPEAT_MAX;
		if (test_run(side->priv, program, now, &verdict))
			return UINT32_MAX;
	}
	return verdict;
}

static unsigned int kernel_code_size(struct side *side, enum bench_program program)
{
	struct kernel_side *s = side->priv;
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(s->prog[program], &info, &len) ? 0 : info.jited_prog_len;
}

const struct side kernel_side = { "kernel", kernel_open, kernel_close, NULL, kernel_run, kernel_code_size, NULL, NULL };
#else
static int kernel_open(struct side *side, char *why, size_t size)
{
	(void)side;
	snprintf(why, size, "leat-bench was built without libbpf");
	return -EOPNOTSUPP;
}

const struct side kernel_side = { "kernel", kernel_open, NULL, NULL, NULL, NULL, NULL, NULL };
#endif
