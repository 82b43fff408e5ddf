/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.c: see kernel.h. */
#include "bpf/kernel/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"

#define LOG_SIZE (1u << 16)

static uint64_t address(const void *what)
{
	return (uint64_t)(uintptr_t)what;
}

/* ---- programs ---- */

/* The instructions with descriptors of maps in the place of numbers; leat_heap_free() it. */
static struct bpf_insn *instructions(const struct leat_kernel *kernel, const struct leat_bpf_prog *prog)
{
	struct bpf_insn *insn = leat_heap_zalloc(prog->n_insns * sizeof(*insn));
	uint32_t i;

	if (!insn)
		return NULL;
	memcpy(insn, prog->insn, prog->n_insns * sizeof(*insn));
	for (i = 0; i < prog->n_insns; i++) {
		if (insn[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insn[i].src_reg == BPF_PSEUDO_MAP_FD || insn[i].src_reg == BPF_PSEUDO_MAP_VALUE)
			insn[i].imm = kernel->map[insn[i].imm];
		i++;
	}
	return insn;
}

static uint32_t attach_type(const struct leat_bpf_prog *prog)
{
	return prog->flags & LEAT_IMAGE_PROG_DEVMAP ? BPF_XDP_DEVMAP :
	       prog->flags & LEAT_IMAGE_PROG_CPUMAP ? BPF_XDP_CPUMAP :
						      BPF_XDP;
}

/* The line of a verifier's log that says what is wrong: the last one before its statistics. */
static const char *last_line(char *log)
{
	char *next = log, *line, *last = log;

	while ((line = strsep(&next, "\n")))
		if (*line && strncmp(line, "processed ", 10) != 0 && strncmp(line, "verification time ", 18) != 0 &&
		    strncmp(line, "stack depth ", 12) != 0)
			last = line;
	return last;
}

static void refuse(const struct leat_bpf_prog *prog, union bpf_attr *attr, int err, struct leat_diag *diag)
{
	char *log = leat_heap_zalloc(LOG_SIZE);
	int fd;

	if (log) {
		attr->log_buf = address(log);
		attr->log_size = LOG_SIZE;
		attr->log_level = 1;
		fd = leat_kernel_bpf(BPF_PROG_LOAD, attr);
		if (fd >= 0)
			close(fd);
		log[LOG_SIZE - 1] = '\0';
	}
	leat_diag_add(diag, "the kernel refuses %s: %s", prog->name, log && *log ? last_line(log) : strerror(-err));
	leat_heap_free(log);
}

static int load(struct leat_kernel *kernel, const struct leat_bpf_prog *prog, struct leat_diag *diag)
{
	struct bpf_insn *insn = instructions(kernel, prog);
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = address(insn),
		.insn_cnt = prog->n_insns,
		.license = address(leat_bpf_object_license(kernel->obj)),
		.expected_attach_type = attach_type(prog),
		.prog_flags = prog->flags & LEAT_IMAGE_PROG_FRAGS ? BPF_F_XDP_HAS_FRAGS : 0,
	};
	int fd = insn ? leat_kernel_bpf(BPF_PROG_LOAD, &attr) : -ENOMEM;

	if (fd < 0 && fd != -EPERM && fd != -ENOMEM)
		refuse(prog, &attr, fd, diag);
	leat_heap_free(insn);
	if (fd < 0)
		return fd;
	kernel->prog[prog->number] = fd;
	return 0;
}

static int load_empty(struct leat_kernel *kernel)
{
	const struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = LEAT_XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = address(insn),
		.insn_cnt = sizeof(insn) / sizeof(insn[0]),
		.license = address("BSD"),
	};

	kernel->empty = leat_kernel_bpf(BPF_PROG_LOAD, &attr);
	return kernel->empty < 0 ? kernel->empty : 0;
}

/* ---- the object ---- */

/* How many copies of a per-CPU value the kernel has: "0-7" is eight. */
static unsigned int possible_cpus(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned long last = 0;
	char text[64] = "";
	const char *at;

	if (file) {
		if (fgets(text, sizeof(text), file)) {
			at = strpbrk(text, "-,") ? strrchr(text, '-') : text;
			last = strtoul(at && *at == '-' ? at + 1 : text, NULL, 10);
		}
		fclose(file);
	}
	return last < 4096 ? (unsigned int)last + 1 : 1;
}

static int copy_maps(struct leat_kernel *kernel, struct leat_diag *diag)
{
	const struct leat_bpf_map *map;
	uint32_t i;
	int err = 0;

	for (i = 0; i < kernel->obj->n_maps && !err; i++) {
		map = &kernel->obj->map[i];
		if (!leat_bpf_map_is_made(map))
			continue;
		err = leat_kernel_copy_map(kernel, i);
		if (err && err != -EPERM)
			leat_diag_add(diag, "map %s (%s) cannot be copied to the kernel: %s", map->name,
				      map->type->name, strerror(-err));
	}
	return err;
}

static int load_all(struct leat_kernel *kernel, struct leat_diag *diag)
{
	struct leat_bpf_object *obj = kernel->obj;
	int err = load_empty(kernel);
	uint32_t i;

	if (err && err != -EPERM)
		leat_diag_add(diag, "the kernel refuses an empty program: %s", strerror(-err));
	if (!err)
		err = copy_maps(kernel, diag);
	for (i = 0; i < obj->n_progs && !err; i++)
		if (obj->prog[i].loaded)
			err = load(kernel, &obj->prog[i], diag);
	for (i = 0; i < obj->n_maps && !err; i++) {
		if (!leat_bpf_map_is_made(&obj->map[i]) || obj->map[i].type->type != BPF_MAP_TYPE_PROG_ARRAY)
			continue;
		err = leat_kernel_copy_progs(kernel, i);
		if (err)
			leat_diag_add(diag, "the kernel does not take a program into %s: %s", obj->map[i].name,
				      strerror(-err));
	}
	return err;
}

int leat_kernel_open(struct leat_bpf_object *obj, struct leat_diag *diag, struct leat_kernel **kernelp)
{
	struct leat_kernel *kernel = leat_heap_zalloc(sizeof(*kernel));
	uint32_t i;
	int err = -ENOMEM;

	*kernelp = NULL;
	if (!kernel)
		return err;
	kernel->obj = obj;
	kernel->empty = -1;
	kernel->cpus = possible_cpus();
	kernel->map = leat_heap_zalloc((obj->n_maps + 1) * sizeof(*kernel->map));
	kernel->prog = leat_heap_zalloc((obj->n_progs + 1) * sizeof(*kernel->prog));
	for (i = 0; kernel->map && i < obj->n_maps; i++)
		kernel->map[i] = -1;
	for (i = 0; kernel->prog && i < obj->n_progs; i++)
		kernel->prog[i] = -1;
	if (kernel->map && kernel->prog)
		err = load_all(kernel, diag);
	if (err)
		leat_kernel_close(kernel);
	else
		*kernelp = kernel;
	return err;
}

static void close_all(int *fd, uint32_t n)
{
	uint32_t i;

	for (i = 0; fd && i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	leat_heap_free(fd);
}

void leat_kernel_close(struct leat_kernel *kernel)
{
	if (!kernel)
		return;
	close_all(kernel->prog, kernel->obj->n_progs);
	close_all(kernel->map, kernel->obj->n_maps);
	if (kernel->empty >= 0)
		close(kernel->empty);
	leat_heap_free(kernel);
}

int leat_kernel_test(const struct leat_kernel *kernel, const struct leat_bpf_prog *prog, struct leat_kernel_test *test)
{
	const int fd = prog ? kernel->prog[prog->number] : kernel->empty;
	union bpf_attr attr = {
		.test.prog_fd = (uint32_t)fd,
		.test.data_in = address(test->in),
		.test.data_size_in = test->in_len,
		.test.data_out = address(test->out),
		.test.data_size_out = test->out ? test->out_len : 0,
		.test.repeat = test->repeat,
	};
	int err = fd < 0 ? -ENOENT : leat_kernel_bpf(BPF_PROG_TEST_RUN, &attr);

	if (err)
		return err;
	test->out_len = attr.test.data_size_out;
	test->verdict = attr.test.retval;
	test->ns = attr.test.duration;
	return 0;
}
