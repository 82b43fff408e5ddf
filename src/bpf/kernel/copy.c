/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c: a map of leat's in the kernel: made alike, with the same elements. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/heap.h"
#include "bpf/kernel/kernel.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"
#include "bpf/prog.h"

#define LOOPBACK 1u /* interfaces of leat's are not the kernel's: entries of device maps are this one */

int leat_kernel_bpf(int cmd, union bpf_attr *attr)
{
	long rc = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return rc < 0 ? -errno : (int)rc;
}

static uint64_t address(const void *what)
{
	return (uint64_t)(uintptr_t)what;
}

static int create(const struct leat_kernel *kernel, const struct leat_bpf_map *map)
{
	union bpf_attr attr = {
		.map_type = map->type->type,
		.key_size = map->key_size,
		.value_size = map->value_size,
		.max_entries = map->max_entries,
		.map_flags = map->map_flags,
	};

	if (map->type->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY && !map->max_entries)
		attr.max_entries = kernel->cpus;
	return leat_kernel_bpf(BPF_MAP_CREATE, &attr);
}

static int set(int fd, const void *key, const void *value)
{
	union bpf_attr attr = { .map_fd = (uint32_t)fd, .key = address(key), .value = address(value) };

	return leat_kernel_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static int freeze(int fd)
{
	union bpf_attr attr = { .map_fd = (uint32_t)fd };

	return leat_kernel_bpf(BPF_MAP_FREEZE, &attr);
}

/* How elements are copied. */
enum { COPY_VALUES, COPY_PORTS, COPY_NOTHING };

static int kind_of(const struct leat_bpf_map *map)
{
	switch (map->type->type) {
	case BPF_MAP_TYPE_DEVMAP:
	case BPF_MAP_TYPE_DEVMAP_HASH:
		return COPY_PORTS;
	case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_RINGBUF:
	case BPF_MAP_TYPE_CPUMAP:
	case BPF_MAP_TYPE_XSKMAP:
		return COPY_NOTHING;
	default:
		return COPY_VALUES;
	}
}

/* From leat's layout to the kernel's, which may have more CPUs: these get the last one's value. */
static void spread(const struct leat_kernel *kernel, const struct leat_bpf_map *map, uint8_t *values)
{
	unsigned int cpu;

	if (!(map->type->flags & LEAT_BPF_MAP_PER_CPU))
		return;
	for (cpu = map->cpus; cpu < kernel->cpus; cpu++)
		memcpy(values + (size_t)cpu * map->value_stride, values + (size_t)(map->cpus - 1) * map->value_stride,
		       map->value_stride);
}

static int copy_element(const struct leat_kernel *kernel, struct leat_bpf_map *map, const void *key, uint8_t *values)
{
	const uint32_t loopback = LOOPBACK;
	int err = leat_bpf_map_lookup(map, key, values);

	if (err)
		return 0; /* it is gone, or there is none */
	if (kind_of(map) == COPY_PORTS) {
		memset(values, 0, map->value_size);
		memcpy(values, &loopback, sizeof(loopback));
	}
	spread(kernel, map, values);
	return set(kernel->map[map->number], key, values);
}

static int copy_elements(const struct leat_kernel *kernel, struct leat_bpf_map *map)
{
	const unsigned int cpus = map->cpus > kernel->cpus ? map->cpus : kernel->cpus;
	uint8_t *key = leat_heap_zalloc(map->key_size);
	uint8_t *values = leat_heap_zalloc((size_t)map->value_stride * cpus);
	struct leat_bpf_used used;
	int err = key && values ? 0 : -ENOMEM, end;

	leat_bpf_used_init(&used);
	end = err ? err : leat_bpf_map_next_used(map, &used, NULL, key);
	while (!err && !end) {
		err = copy_element(kernel, map, key, values);
		end = leat_bpf_map_next_used(map, &used, key, key);
	}
	leat_bpf_used_fini(&used);
	leat_heap_free(key);
	leat_heap_free(values);
	return err;
}

int leat_kernel_copy_map(struct leat_kernel *kernel, uint32_t number)
{
	struct leat_bpf_map *map = &kernel->obj->map[number];
	int fd, err = 0;

	if (map->type->flags & LEAT_BPF_MAP_NESTED)
		return -EOPNOTSUPP;
	fd = create(kernel, map);
	if (fd < 0)
		return fd;
	kernel->map[number] = fd;
	if (kind_of(map) != COPY_NOTHING)
		err = copy_elements(kernel, map);
	return !err && map->frozen ? freeze(fd) : err;
}

int leat_kernel_copy_progs(struct leat_kernel *kernel, uint32_t number)
{
	struct leat_bpf_map *map = &kernel->obj->map[number];
	struct leat_bpf_prog *prog;
	uint32_t i;
	int err = 0;

	for (i = 0; i < map->max_entries && !err; i++) {
		prog = leat_bpf_prog_array_get(map, i);
		if (prog && prog->loaded)
			err = set(kernel->map[number], &i, &kernel->prog[prog->number]);
	}
	return err;
}
