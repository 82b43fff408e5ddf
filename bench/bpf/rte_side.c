/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_side.c: DPDK's librte_bpf, compiled, for the programs that it accepts. It knows neither xdp_md nor maps: its
 * programs get the packet as their argument, and nothing of their bounds is tested when they run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"

#ifdef LEAT_HAVE_DPDK
#include <rte_bpf.h>
#include <rte_errno.h>
#include <rte_log.h>

struct rte_side {
	struct rte_bpf *prog[N_PROGRAMS];
	struct rte_bpf_jit jit[N_PROGRAMS];
	uint8_t packet[PACKET_LEN];
};

static void rte_close(struct side *side)
{
	struct rte_side *s = side->priv;
	unsigned int i;

	for (i = 0; i < N_PROGRAMS; i++)
		rte_bpf_destroy(s->prog[i]);
	free(s);
}

static void load(struct rte_side *s, const char *path, enum bench_program program)
{
	const struct rte_bpf_prm prm = { .prog_arg = { .type = RTE_BPF_ARG_PTR, .size = PACKET_LEN } };
	char section[32];

	snprintf(section, sizeof(section), "rte/%s", bench_program_name[program]);
	s->prog[program] = rte_bpf_elf_load(&prm, path, section);
	if (s->prog[program])
		rte_bpf_get_jit(s->prog[program], &s->jit[program]);
}

static int rte_open(struct side *side, char *why, size_t size)
{
	struct rte_side *s = calloc(1, sizeof(*s));
	char path[64];
	unsigned int i;
	int fd = bench_object_file(bench_rte_object, bench_rte_object_end, path, sizeof(path));

	if (fd < 0 || !s) {
		snprintf(why, size, "%s", strerror(ENOMEM));
		free(s);
		return -ENOMEM;
	}
	rte_log_set_global_level(RTE_LOG_EMERG);
	for (i = 0; i < N_PROGRAMS; i++)
		load(s, path, i);
	close(fd);
	bench_make_packet(s->packet);
	side->packet = s->packet;
	side->priv = s;
	return 0;
}

static bool rte_has(struct side *side, enum bench_program program)
{
	const struct rte_side *s = side->priv;

	return s->jit[program].func;
}

static uint32_t rte_run(struct side *side, enum bench_program program, uint64_t n)
{
	struct rte_side *s = side->priv;
	uint64_t (*func)(void *) = s->jit[program].func;
	uint64_t verdict = 0;

	while (n--)
		verdict = func(s->packet);
	return (uint32_t)verdict;
}

static unsigned int rte_code_size(struct side *side, enum bench_program program)
{
	const struct rte_side *s = side->priv;

	return (unsigned int)s->jit[program].sz;
}

const struct side rte_side = { "librte_bpf", rte_open, rte_close, rte_has, rte_run, rte_code_size, NULL, NULL };
#else
static int rte_open(struct side *side, char *why, size_t size)
{
	(void)side;
	snprintf(why, size, "leat-bench was built without DPDK");
	return -EOPNOTSUPP;
}

const struct side rte_side = { "librte_bpf", rte_open, NULL, NULL, NULL, NULL, NULL, NULL };
#endif
