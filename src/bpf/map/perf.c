/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf.c: PERF_EVENT_ARRAY: one ring per CPU: that CPU's worker writes, one control thread reads.
 *
 * A record is its length (4 bytes, padded to 8) and its bytes: what the program gave, then the bytes of the packet that
 * it asked for; padded to 8. (The kernel pads what a reader gets; here it gets the exact length.) A record that would
 * pass the end of the ring begins anew at its start, behind a filler. Positions count on for ever; the ring is full
 * when the next record does not fit before what was not yet read: then it is lost and counted.
 */
#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"

#define RING_SIZE (UINT64_C(512) << 10)
#define HEAD 8u
#define FILLER UINT32_MAX
#define FLAGS (uint32_t)(BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_PRESERVE_ELEMS)

struct ring {
	uint64_t head LEAT_CACHELINE_ALIGNED; /* written up to here: the worker's (atomic) */
	uint64_t tail LEAT_CACHELINE_ALIGNED; /* read up to here: control's (atomic) */
	uint8_t *data;
};

struct perf {
	unsigned int n; /* rings: as many as there are CPUs, but no more than entries */
	struct ring ring[LEAT_BPF_CPUS_MAX];
};

static int perf_check(const struct leat_bpf_map *map, const char **why)
{
	if (map->key_size != 4 || map->value_size != 4 || !map->max_entries) {
		*why = "keys and values have 4 bytes, and it has entries";
		return -EINVAL;
	}
	if (map->map_flags & ~FLAGS) {
		*why = "a flag that this type does not know";
		return -EINVAL;
	}
	return 0;
}

static void perf_destroy(struct leat_bpf_map *map)
{
	struct perf *perf = map->priv;
	unsigned int i;

	for (i = 0; i < perf->n; i++)
		leat_bpf_pages_free(perf->ring[i].data, RING_SIZE);
	leat_heap_free(perf);
}

static int perf_create(struct leat_bpf_map *map)
{
	struct perf *perf = leat_heap_zalloc(sizeof(*perf));
	unsigned int i;

	if (!perf)
		return -ENOMEM;
	map->priv = perf;
	perf->n = map->env->cpus < map->max_entries ? map->env->cpus : map->max_entries;
	for (i = 0; i < perf->n; i++) {
		perf->ring[i].data = leat_bpf_pages_alloc(RING_SIZE);
		if (!perf->ring[i].data) {
			perf_destroy(map);
			map->priv = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

/* ---- writing; the CPU's worker ---- */

static void write_len(struct ring *ring, uint64_t pos, uint32_t len)
{
	memcpy(ring->data + pos % RING_SIZE, &len, sizeof(len));
}

/** Where a record of @size bytes with its head goes; UINT64_MAX when it does not fit. */
static uint64_t find_room(struct ring *ring, uint64_t size)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED), left = RING_SIZE - head % RING_SIZE;
	uint64_t pos = size <= left ? head : head + left;

	/* pairs with the release in consume_ring(): what was there has been read */
	if (pos + size - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > RING_SIZE)
		return UINT64_MAX;
	if (pos != head)
		write_len(ring, head, FILLER);
	return pos;
}

/** Copies bytes of a packet, linear part and fragments. @len is at most its length. */
static void copy_packet(uint8_t *to, const struct leat_xdp_buff *xdp, uint32_t len)
{
	uint32_t n = (uint32_t)(xdp->data_end - xdp->data), i;
	const uint8_t *from = xdp->data;

	for (i = 0; len; i++) {
		n = n < len ? n : len;
		memcpy(to, from, n);
		to += n;
		len -= n;
		if (!len || !xdp->frags || i >= xdp->frags->n)
			return;
		from = leat_run_start(xdp->frags->frag[i].run) + xdp->frags->frag[i].off;
		n = xdp->frags->frag[i].len;
	}
}

int leat_bpf_perf_output(struct leat_bpf_map *map, unsigned int cpu, const void *data, uint32_t size,
			 const struct leat_xdp_buff *xdp, uint32_t packet_len)
{
	struct perf *perf = map->priv;
	struct ring *ring;
	uint64_t len = (uint64_t)size + packet_len, pos;

	if (cpu >= perf->n)
		return -ENOENT;
	ring = &perf->ring[cpu];
	pos = len < RING_SIZE ? find_room(ring, HEAD + leat_round8(len)) : UINT64_MAX;
	if (pos == UINT64_MAX) {
		__atomic_fetch_add(&map->lost, 1, __ATOMIC_RELAXED);
		return -ENOSPC;
	}
	write_len(ring, pos, (uint32_t)len);
	if (size)
		memcpy(ring->data + pos % RING_SIZE + HEAD, data, size);
	if (packet_len)
		copy_packet(ring->data + pos % RING_SIZE + HEAD + size, xdp, packet_len);
	/* pairs with the acquire in consume_ring(): the record is whole */
	__atomic_store_n(&ring->head, pos + HEAD + leat_round8(len), __ATOMIC_RELEASE);
	return 0;
}

/* ---- reading; one control thread ---- */

static int consume_ring(struct ring *ring, int cpu, leat_bpf_record_fn *fn, void *arg)
{
	/* pairs with the release in leat_bpf_perf_output() */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
	int n = 0, err = 0;
	uint32_t len;

	while (tail != head && err >= 0) {
		memcpy(&len, ring->data + tail % RING_SIZE, sizeof(len));
		if (len == FILLER) {
			tail += RING_SIZE - tail % RING_SIZE;
			continue;
		}
		err = fn(arg, cpu, ring->data + tail % RING_SIZE + HEAD, len);
		tail += HEAD + leat_round8(len);
		n++;
		/* pairs with the acquire in find_room() */
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	return err < 0 ? err : n;
}

static int perf_consume(struct leat_bpf_map *map, leat_bpf_record_fn *fn, void *arg)
{
	struct perf *perf = map->priv;
	unsigned int i;
	int n = 0, got;

	for (i = 0; i < perf->n; i++) {
		got = consume_ring(&perf->ring[i], (int)i, fn, arg);
		if (got < 0)
			return got;
		n += got;
	}
	return n;
}

static bool perf_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	(void)map;
	(void)addr;
	(void)size;
	return false;
}

const struct leat_bpf_map_type leat_bpf_perf_event_array = {
	.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	.name = "perf_event_array",
	.flags = LEAT_BPF_MAP_NO_LOOKUP | LEAT_BPF_MAP_NO_UPDATE,
	.check = perf_check,
	.create = perf_create,
	.destroy = perf_destroy,
	.contains = perf_contains,
	.consume = perf_consume,
};
