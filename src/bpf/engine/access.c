/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c: where a program's memory accesses may go. The interpreter asks here about everything that its own two short
 * tests (this frame, the packet) do not answer, and about the arguments of helpers. *worker*.
 *
 * The verifier has proven which region an instruction is about, and the arguments' kinds. Nothing here trusts that a
 * pointer is what it was when it was made: it is looked at as a number.
 */
#include "bpf/engine/interp.h"

#include "bpf/map/map.h"

/** Whether [addr, addr + size) lies within [start, end). */
static bool within(uint64_t addr, uint64_t size, const void *start, const void *end)
{
	uint64_t off = addr - (uint64_t)(uintptr_t)start;
	uint64_t len = (uint64_t)((uintptr_t)end - (uintptr_t)start);

	return off <= len && size <= len - off;
}

/** Whether a write to @size bytes from @off of a frame on leaves the slots of @keep alone. */
static bool spares(uint64_t keep, uint64_t off, uint64_t size)
{
	uint64_t first = off / 8, last = (off + size - 1) / 8;
	uint64_t touched = (~UINT64_C(0) >> (63 - (last - first))) << first;

	return !size || !(keep & touched);
}

static bool in_stack(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		     bool write)
{
	uint64_t off = addr - (uint64_t)(uintptr_t)run->stack;
	uint64_t frame = off / LEAT_BPF_STACK_SIZE, in_frame = off % LEAT_BPF_STACK_SIZE;

	if (off > (uint64_t)run->frames * LEAT_BPF_STACK_SIZE)
		return false;
	if (!size)
		return true;
	if (frame >= run->frames || size > LEAT_BPF_STACK_SIZE - in_frame)
		return false;
	if (aux->region == LEAT_BPF_REGION_STACK && aux->frame != LEAT_BPF_FRAME_ANY &&
	    frame + aux->frame + 1 != run->frames)
		return false;
	return !write || spares(aux->keep, in_frame, size);
}

static bool in_packet(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		      bool write)
{
	(void)aux;
	(void)write;
	return within(addr, size, run->xdp->data, run->xdp->data_end);
}

static bool in_meta(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		    bool write)
{
	(void)aux;
	(void)write;
	return within(addr, size, run->xdp->data_meta, run->xdp->data);
}

static bool in_record(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		      bool write)
{
	const struct leat_bpf_record *record;

	(void)aux;
	(void)write;
	for (record = run->record; record; record = record->next)
		if (within(addr, size, record->data, record->data + record->size))
			return true;
	return false;
}

static bool in_lent(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		    bool write)
{
	const struct leat_bpf_lent *lent;

	(void)aux;
	for (lent = run->lent; lent && !write; lent = lent->prev)
		if (within(addr, size, lent->bytes, (const uint8_t *)lent->bytes + lent->size))
			return true;
	return false;
}

static bool in_one_map(const struct leat_bpf_map *map, uint64_t addr, uint64_t size, bool write)
{
	if (!leat_bpf_map_is_made(map) || (write && (map->frozen || (map->map_flags & BPF_F_RDONLY_PROG))))
		return false;
	return size <= map->value_size && map->type->contains && map->type->contains(map, addr, (uint32_t)size);
}

static bool in_map(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		   bool write)
{
	const struct leat_bpf_object *obj = run->prog->obj;
	uint32_t i;

	if (aux->map >= 0)
		return in_one_map(&obj->map[aux->map], addr, size, write);
	if (run->looked_up && in_one_map(run->looked_up, addr, size, write)) /* there may be very many */
		return true;
	for (i = 0; i < leat_bpf_object_maps(obj); i++)
		if (in_one_map(&obj->map[i], addr, size, write))
			return true;
	return false;
}

static bool in_any(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		   bool write)
{
	return in_packet(run, aux, addr, size, write) || in_stack(run, aux, addr, size, write) ||
	       in_meta(run, aux, addr, size, write) || in_record(run, aux, addr, size, write) ||
	       in_lent(run, aux, addr, size, write) || in_map(run, aux, addr, size, write);
}

typedef bool region_fn(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
		       bool write);

bool leat_bpf_access_ok(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t addr, uint64_t size,
			bool write)
{
	static region_fn *const in_region[] = {
		[LEAT_BPF_REGION_STACK] = in_stack,   [LEAT_BPF_REGION_PACKET] = in_packet,
		[LEAT_BPF_REGION_META] = in_meta,     [LEAT_BPF_REGION_MAP] = in_map,
		[LEAT_BPF_REGION_RECORD] = in_record, [LEAT_BPF_REGION_LENT] = in_lent,
		[LEAT_BPF_REGION_ANY] = in_any,
	};

	return aux->region != LEAT_BPF_REGION_NONE && in_region[aux->region](run, aux, addr, size, write);
}

struct leat_bpf_map *leat_bpf_map_of(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux, uint64_t value)
{
	const struct leat_bpf_object *obj = run->prog->obj;
	uint64_t off = value - (uint64_t)(uintptr_t)obj->map;
	uint64_t number = off / sizeof(*obj->map);

	if (aux->map >= 0)
		return &obj->map[aux->map];
	if (number >= leat_bpf_object_maps(obj) || off % sizeof(*obj->map) || !leat_bpf_map_is_made(&obj->map[number]))
		return NULL;
	return &obj->map[number];
}

/* ---- arguments of helpers ---- */

static bool record_is_held(const struct leat_bpf_run *run, uint64_t value)
{
	const struct leat_bpf_record *record;

	for (record = run->record; record; record = record->next)
		if ((uint64_t)(uintptr_t)record->data == value)
			return true;
	return false;
}

/** How many bytes argument @i stands for; @map is the map argument, if there is one. */
static uint64_t bytes_of(const struct leat_bpf_helper *helper, const uint64_t *args, unsigned int i,
			 const struct leat_bpf_map *map)
{
	if (leat_bpf_arg_is_sized(helper->arg[i]))
		return i + 1 < 5 ? args[i + 1] : UINT64_MAX;
	if (!map && helper->arg[i] != LEAT_BPF_ARG_U32_INOUT)
		return UINT64_MAX;
	return leat_bpf_arg_bytes(helper->arg[i], map ? map->key_size : 0, map ? map->value_size : 0);
}

bool leat_bpf_helper_args_ok(const struct leat_bpf_run *run, const struct leat_bpf_aux *aux,
			     const struct leat_bpf_helper *helper, uint64_t args[5], uint64_t *fuel)
{
	struct leat_bpf_aux any = *aux;
	struct leat_bpf_map *map = NULL;
	uint64_t bytes;
	unsigned int i;
	uint8_t kind;

	any.region = LEAT_BPF_REGION_ANY;
	any.map = -1;
	*fuel = 0;
	for (i = 0; i < 5; i++) {
		kind = helper->arg[i];
		if (kind == LEAT_BPF_ARG_CTX) {
			LEAT_PROVEN(args[i] == (uint64_t)(uintptr_t)run);
			args[i] = (uint64_t)(uintptr_t)run;
		} else if (kind == LEAT_BPF_ARG_MAP) {
			map = leat_bpf_map_of(run, aux, args[i]);
			LEAT_PROVEN(map && args[i] == (uint64_t)(uintptr_t)map);
			args[i] = (uint64_t)(uintptr_t)map;
			if (!map)
				return false;
		} else if (kind == LEAT_BPF_ARG_RECORD) {
			LEAT_PROVEN(record_is_held(run, args[i]));
			if (!record_is_held(run, args[i]))
				return false;
		} else if (kind == LEAT_BPF_ARG_LOCK) {
			LEAT_PROVEN(in_map(run, &any, args[i], sizeof(uint32_t), true));
			if (!in_map(run, &any, args[i], sizeof(uint32_t), true) || args[i] % sizeof(uint32_t))
				return false;
		} else if (leat_bpf_arg_is_memory(kind)) {
			bytes = bytes_of(helper, args, i, map);
			if (bytes && !leat_bpf_access_ok(run, &any, args[i], bytes, leat_bpf_arg_is_written(kind)))
				return false;
			*fuel += bytes / LEAT_BPF_FUEL_BYTES;
		}
	}
	return true;
}
