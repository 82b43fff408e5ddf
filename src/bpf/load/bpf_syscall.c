/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_syscall.c: bpf(2) for libbpf, without a kernel. The linker sends libbpf's calls of syscall() here (--wrap).
 *
 * Creating succeeds and is recorded by descriptor; so do the probes for features, so that libbpf leaves everything as
 * the object says it. Descriptors must be real ones, because libbpf closes them: all are copies of one empty memfd.
 * A program of ours is known by the address of its log buffer; any other PROG_LOAD is a probe.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load.h"

struct load *load_current;

long __wrap_syscall(long number, ...);

static int new_fd(void)
{
	int fd = fcntl(load_current->spare_fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -errno;
	if (fd >= LOAD_FDS_MAX) {
		close(fd);
		return -EMFILE;
	}
	return fd;
}

static void free_map(struct load_map *map)
{
	if (!map)
		return;
	free(map->data);
	free(map->inits);
	free(map);
}

static struct load_map *find_map(uint32_t fd)
{
	return fd < LOAD_FDS_MAX ? load_current->map[fd] : NULL;
}

static int map_create(const union bpf_attr *attr)
{
	struct load_map *map = calloc(1, sizeof(*map)), *inner;
	int fd;

	if (!map)
		return -ENOMEM;
	fd = new_fd();
	if (fd < 0) {
		free(map);
		return fd;
	}
	map->def = (struct load_def){
		.type = attr->map_type,
		.key_size = attr->key_size,
		.value_size = attr->value_size,
		.max_entries = attr->max_entries,
		.map_flags = attr->map_flags,
		.btf_key = attr->btf_key_type_id,
		.btf_value = attr->btf_value_type_id,
	};
	inner = attr->inner_map_fd ? find_map(attr->inner_map_fd) : NULL;
	if (inner) {
		map->has_inner = true;
		map->inner = inner->def;
	}
	free_map(load_current->map[fd]); /* of a descriptor that was closed since */
	load_current->map[fd] = map;
	return fd;
}

static int add_init(struct load_map *map, uint32_t index, int fd)
{
	struct load_init *inits = realloc(map->inits, (map->n_inits + 1) * sizeof(*inits));

	if (!inits)
		return -ENOMEM;
	map->inits = inits;
	inits[map->n_inits++] = (struct load_init){.index = index, .fd = fd};
	return 0;
}

static int map_update(const union bpf_attr *attr)
{
	const void *key = (const void *)(uintptr_t)attr->key, *value = (const void *)(uintptr_t)attr->value;
	struct load_map *map = find_map(attr->map_fd);
	uint32_t index;
	int fd;

	if (!map || map->def.key_size != sizeof(index))
		return -EINVAL;
	memcpy(&index, key, sizeof(index));
	if (map->def.type == BPF_MAP_TYPE_ARRAY && index == 0) {
		free(map->data);
		map->data = malloc(map->def.value_size ? map->def.value_size : 1);
		if (!map->data)
			return -ENOMEM;
		memcpy(map->data, value, map->def.value_size);
		return 0;
	}
	if (map->def.value_size != sizeof(fd))
		return -EINVAL;
	memcpy(&fd, value, sizeof(fd));
	return add_init(map, index, fd);
}

static int map_freeze(const union bpf_attr *attr)
{
	struct load_map *map = find_map(attr->map_fd);

	if (!map)
		return -EBADF;
	map->frozen = true;
	return 0;
}

static void *copy(const void *from, size_t len)
{
	void *mem = malloc(len ? len : 1);

	if (mem && len)
		memcpy(mem, from, len);
	return mem;
}

static int record_prog(struct load_prog *prog, const union bpf_attr *attr)
{
	if (attr->insn_cnt > LEAT_IMAGE_INSNS_MAX)
		return -E2BIG;
	free(prog->insns);
	free(prog->lines);
	prog->insns = copy((const void *)(uintptr_t)attr->insns, attr->insn_cnt * sizeof(*prog->insns));
	prog->n_insns = attr->insn_cnt;
	prog->flags = attr->prog_flags;
	prog->n_lines = attr->line_info_rec_size == sizeof(*prog->lines) ? attr->line_info_cnt : 0;
	prog->lines = copy((const void *)(uintptr_t)attr->line_info, prog->n_lines * sizeof(*prog->lines));
	return prog->insns && prog->lines ? 0 : -ENOMEM;
}

static int prog_load(const union bpf_attr *attr)
{
	struct load *load = load_current;
	uint32_t i;
	int err;

	for (i = 0; i < load->n_progs; i++) {
		if (attr->log_buf != (uintptr_t)load->prog[i].log)
			continue;
		err = record_prog(&load->prog[i], attr);
		if (err)
			return err;
	}
	return new_fd();
}

static int btf_load(const union bpf_attr *attr)
{
	(void)attr;
	return new_fd();
}

static int nothing(const union bpf_attr *attr)
{
	(void)attr;
	return 0;
}

static int no_entry(const union bpf_attr *attr)
{
	(void)attr;
	return -ENOENT;
}

typedef int command_fn(const union bpf_attr *attr);

static command_fn *const commands[] = {
	[BPF_MAP_CREATE] = map_create,
	[BPF_MAP_UPDATE_ELEM] = map_update,
	[BPF_MAP_FREEZE] = map_freeze,
	[BPF_PROG_LOAD] = prog_load,
	[BPF_BTF_LOAD] = btf_load,
	[BPF_PROG_BIND_MAP] = nothing,
	[BPF_OBJ_GET] = no_entry,
};

static int answer(unsigned int command, const void *from, size_t size)
{
	union bpf_attr attr;

	if (!load_current || command >= sizeof(commands) / sizeof(commands[0]) || !commands[command])
		return -EINVAL;
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, from, size < sizeof(attr) ? size : sizeof(attr));
	return commands[command](&attr);
}

/* libbpf makes no other system call by number that a loader needs. */
long __wrap_syscall(long number, ...)
{
	unsigned int command;
	const void *attr;
	va_list args;
	size_t size;
	int ret;

	if (number != __NR_bpf) {
		errno = EPERM;
		return -1;
	}
	va_start(args, number);
	command = (unsigned int)va_arg(args, int);
	attr = va_arg(args, const void *);
	size = va_arg(args, unsigned int);
	va_end(args);
	ret = answer(command, attr, size);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

void load_records_fini(struct load *load)
{
	unsigned int i;

	for (i = 0; i < LOAD_FDS_MAX; i++)
		free_map(load->map[i]);
	for (i = 0; i < load->n_progs; i++) {
		free(load->prog[i].insns);
		free(load->prog[i].lines);
	}
	free(load->prog);
	memset(load->map, 0, sizeof(load->map));
	load->prog = NULL;
	load->n_progs = 0;
}
