/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * helpers.c: the helper functions that know no port, and the table of all. Worker; the table: control.
 *
 * What a helper is given was checked by its row: maps are maps, and memory is the program's. What a row cannot say is
 * checked here: whether it is a map of the right type, and what a map allows. Return codes are the kernel's.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bpf/contract.h"
#include "bpf/env.h"
#include "bpf/helper/callbacks.h"
#include "bpf/map/map.h"
#include "bpf/map/mem.h"
#include "bpf/map/ringbuf.h"
#include "bpf/helper/trace.h"

#define REGISTERED_MAX 16u
#define NSEC_PER_JIFFY UINT64_C(4000000) /* 250 a second */
#define COPY_MAX 0xffffu                 /* offset and length of bpf_xdp_load_bytes() */

#define MAYBE __attribute__((unused))

/** What every helper looks like; each uses what it needs. */
#define HELPER(name)                                                                                                   \
	static uint64_t name(MAYBE struct leat_bpf_run *run, MAYBE uint64_t a1, MAYBE uint64_t a2, MAYBE uint64_t a3,  \
			     MAYBE uint64_t a4, MAYBE uint64_t a5)

static inline struct leat_bpf_map *map_of(uint64_t arg)
{
	return (struct leat_bpf_map *)(uintptr_t)arg;
}

static inline void *mem_of(uint64_t arg)
{
	return (void *)(uintptr_t)arg;
}

static inline uint64_t error(int err)
{
	return (uint64_t)(int64_t)err;
}

/* ---- maps ---- */

static bool writable(const struct leat_bpf_map *map)
{
	return !(map->type->flags & LEAT_BPF_MAP_NO_UPDATE) && !(map->map_flags & BPF_F_RDONLY_PROG);
}

HELPER(map_lookup_elem)
{
	struct leat_bpf_map *map = map_of(a1);

	run->looked_up = map;
	return map->type->lookup ? (uint64_t)(uintptr_t)map->type->lookup(map, mem_of(a2), run->cpu) : 0;
}

/**
 * The key, copied to @own if it lies where others can write: a map reads it twice, to find the place and to keep it,
 * and an element that stands at another key's place could not be found again, nor taken out.
 */
static const void *private_key(const struct leat_bpf_run *run, const struct leat_bpf_map *map, uint64_t key, void *own)
{
	uint64_t stack = (uint64_t)(uintptr_t)run->stack;

	if (leat_likely(key - stack < (uint64_t)LEAT_BPF_FRAMES_MAX * LEAT_BPF_STACK_SIZE))
		return mem_of(key);
	return memcpy(own, mem_of(key), map->key_size);
}

HELPER(map_update_elem)
{
	struct leat_bpf_map *map = map_of(a1);

	uint64_t key[LEAT_BPF_KEY_MAX / sizeof(uint64_t)];

	if (leat_unlikely(!map->type->update || !writable(map) || map->key_size > sizeof(key)))
		return error(-EPERM);
	return error(map->type->update(map, private_key(run, map, a2, key), mem_of(a3), a4, run->cpu));
}

HELPER(map_delete_elem)
{
	struct leat_bpf_map *map = map_of(a1);

	if (leat_unlikely(!map->type->delete_elem || !writable(map)))
		return error(-EPERM);
	return error(map->type->delete_elem(map, mem_of(a2), run->cpu));
}

/** The engine carries it out; this is what it does when there is nothing to call. */
HELPER(tail_call)
{
	return error(-ENOENT);
}

/* ---- spin locks ---- */

HELPER(spin_lock)
{
	uint32_t *lock = mem_of(a1);

	if (leat_unlikely(leat_spin_lock(lock)))
		run->trap = 1 + LEAT_BPF_TRAP_LOCK;
	else
		run->lock = lock;
	return 0;
}

HELPER(spin_unlock)
{
	leat_spin_unlock(mem_of(a1));
	run->lock = NULL;
	return 0;
}

/* ---- time, numbers ---- */

static uint64_t time_of(const struct leat_bpf_run *run, clockid_t clock)
{
	return run->env->replay ? __atomic_load_n(&run->env->now, __ATOMIC_RELAXED) : leat_clock_read(clock);
}

#define TIME_HELPER(name, clock, per)                                                                                  \
	HELPER(name)                                                                                                   \
	{                                                                                                              \
		return time_of(run, clock) / (per);                                                                    \
	}

TIME_HELPER(ktime_get_ns, CLOCK_MONOTONIC, 1)
TIME_HELPER(ktime_get_boot_ns, CLOCK_BOOTTIME, 1)
TIME_HELPER(ktime_get_tai_ns, CLOCK_TAI, 1)
TIME_HELPER(ktime_get_coarse_ns, CLOCK_MONOTONIC_COARSE, 1)
TIME_HELPER(jiffies64, CLOCK_MONOTONIC_COARSE, NSEC_PER_JIFFY)

HELPER(get_smp_processor_id)
{
	return run->cpu;
}

/** xorshift64*; the state is this CPU's. */
HELPER(get_prandom_u32)
{
	uint64_t *state = &run->env->cpu[run->cpu].random;

	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 32;
}

/* ---- the packet ---- */

HELPER(xdp_adjust_head)
{
	return error(leat_xdp_adjust_head(run->xdp, (int)a2));
}

HELPER(xdp_adjust_tail)
{
	return error(leat_xdp_adjust_tail(run->xdp, (int)a2));
}

HELPER(xdp_adjust_meta)
{
	return error(leat_xdp_adjust_meta(run->xdp, (int)a2));
}

HELPER(xdp_get_buff_len)
{
	return leat_xdp_buff_len(run->xdp);
}

/** Copies between @mem and @len bytes at @off of the packet, which are there. */
static void copy_bytes(struct leat_xdp_buff *xdp, uint32_t off, uint8_t *mem, uint32_t len, bool store)
{
	uint32_t size = (uint32_t)(xdp->data_end - xdp->data), i, n;
	uint8_t *at = xdp->data;

	for (i = 0; len; i++) {
		if (off < size) {
			n = size - off < len ? size - off : len;
			memmove(store ? at + off : mem, store ? mem : at + off, n);
			mem += n;
			len -= n;
			off = 0;
		} else {
			off -= size;
		}
		if (!len || !xdp->frags || i >= xdp->frags->n)
			return;
		at = leat_run_start(xdp->frags->frag[i].run) + xdp->frags->frag[i].off;
		size = xdp->frags->frag[i].len;
	}
}

static int xdp_copy(struct leat_bpf_run *run, uint64_t off, void *mem, uint64_t len, bool store)
{
	if ((uint32_t)off > COPY_MAX || (uint32_t)len > COPY_MAX)
		return -EFAULT;
	if ((uint32_t)off + (uint32_t)len > leat_xdp_buff_len(run->xdp))
		return -EINVAL;
	copy_bytes(run->xdp, (uint32_t)off, mem, (uint32_t)len, store);
	return 0;
}

HELPER(xdp_load_bytes)
{
	return error(xdp_copy(run, a2, mem_of(a3), a4, false));
}

HELPER(xdp_store_bytes)
{
	return error(xdp_copy(run, a2, mem_of(a3), a4, true));
}

/* ---- checksums (RFC 1071) ---- */

/** Adds with the carry brought round. */
static inline uint32_t csum_add(uint32_t a, uint32_t b)
{
	uint32_t sum = a + b;

	return sum + (sum < a);
}

/** The sum of the words of @size bytes at @from, the last one filled up with zeroes, and of @sum. */
static uint32_t csum_words(const uint8_t *from, uint32_t size, uint32_t sum)
{
	uint64_t wide = sum;
	uint32_t off, word;

	for (off = 0; size - off >= 4; off += 4) {
		memcpy(&word, from + off, 4);
		wide += word;
	}
	if (off < size) {
		word = 0;
		memcpy(&word, from + off, size - off);
		wide += word;
	}
	wide = (wide & UINT32_MAX) + (wide >> 32);
	return (uint32_t)wide + (uint32_t)(wide >> 32);
}

static uint32_t csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/** What changes in a sum when @from becomes @to; folded to 16 bits and of any length, as since Linux 6.13. */
HELPER(csum_diff)
{
	uint32_t from_size = (uint32_t)a2, to_size = (uint32_t)a4, sum = (uint32_t)a5;

	if (from_size && to_size)
		sum = csum_add(csum_words(mem_of(a3), to_size, sum), ~csum_words(mem_of(a1), from_size, 0));
	else if (to_size)
		sum = csum_words(mem_of(a3), to_size, sum);
	else if (from_size)
		sum = ~csum_words(mem_of(a1), from_size, ~sum);
	return csum_fold(sum);
}

/* ---- rings, traces ---- */

HELPER(perf_event_output)
{
	struct leat_bpf_map *map = map_of(a2);
	uint64_t index = a3 & BPF_F_INDEX_MASK, packet_len = (a3 & BPF_F_CTXLEN_MASK) >> 32;

	if (map->type != &leat_bpf_perf_event_array || a3 & ~(BPF_F_INDEX_MASK | BPF_F_CTXLEN_MASK))
		return error(-EINVAL);
	if (packet_len > leat_xdp_buff_len(run->xdp))
		return error(-EFAULT);
	if (index == BPF_F_CURRENT_CPU)
		index = run->cpu;
	if (index >= map->max_entries)
		return error(-E2BIG);
	if (index != run->cpu)
		return error(index < run->env->cpus ? -EOPNOTSUPP : -ENOENT);
	return error(leat_bpf_perf_output(map, run->cpu, mem_of(a4), (uint32_t)a5, run->xdp, (uint32_t)packet_len));
}

HELPER(ringbuf_output)
{
	struct leat_bpf_map *map = map_of(a1);
	void *record;

	if (map->type != &leat_bpf_ringbuf || a4 & ~(uint64_t)(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP))
		return error(-EINVAL);
	if (a3 > UINT32_MAX || !(record = leat_bpf_ringbuf_reserve(map, (uint32_t)a3)))
		return error(-EAGAIN);
	if (a3)
		memcpy(record, mem_of(a2), a3);
	leat_bpf_ringbuf_submit(record, false);
	return 0;
}

/** A place for one more record that the run holds, or NULL. */
static struct leat_bpf_record *find_place(const struct leat_bpf_run *run)
{
	struct leat_bpf_record *place = run->env->cpu[run->cpu].record;
	unsigned int i;

	for (i = 0; i < LEAT_BPF_RECORDS_MAX; i++)
		if (!place[i].data)
			return &place[i];
	return NULL;
}

HELPER(ringbuf_reserve)
{
	struct leat_bpf_map *map = map_of(a1);
	struct leat_bpf_record *place = find_place(run);

	if (map->type != &leat_bpf_ringbuf || a3 || a2 > UINT32_MAX || !place)
		return 0;
	place->data = leat_bpf_ringbuf_reserve(map, (uint32_t)a2);
	if (!place->data)
		return 0;
	place->size = (uint32_t)a2;
	place->next = run->record;
	run->record = place;
	return (uint64_t)(uintptr_t)place->data;
}

/** Gives up the run's record @data; nothing happens if it has no such record. */
static void end_record(struct leat_bpf_run *run, const void *data, bool discard)
{
	struct leat_bpf_record **link, *place;

	for (link = &run->record; (place = *link); link = &place->next) {
		if (place->data != data)
			continue;
		*link = place->next;
		leat_bpf_ringbuf_submit(place->data, discard);
		place->data = NULL;
		return;
	}
}

void leat_bpf_run_release(struct leat_bpf_run *run)
{
	while (run->record)
		end_record(run, run->record->data, true);
	if (run->lock)
		leat_spin_unlock(run->lock);
	run->lock = NULL;
}

HELPER(ringbuf_submit)
{
	end_record(run, mem_of(a1), false);
	return 0;
}

HELPER(ringbuf_discard)
{
	end_record(run, mem_of(a1), true);
	return 0;
}

HELPER(ringbuf_query)
{
	return map_of(a1)->type == &leat_bpf_ringbuf ? leat_bpf_ringbuf_query(map_of(a1), a2) : 0;
}

static uint64_t trace(struct leat_bpf_run *run, uint64_t fmt, uint64_t size, const uint64_t *args, unsigned int n)
{
	char line[LEAT_BPF_TRACE_MAX];
	int len;

	if (run->fuel < LEAT_BPF_FUEL_TRACE) {
		run->fuel = 0;
		run->trap = 1 + LEAT_BPF_TRAP_FUEL;
		return 0;
	}
	run->fuel -= LEAT_BPF_FUEL_TRACE;
	len = leat_bpf_trace_format(run, line, mem_of(fmt), (uint32_t)size, args, n);
	if (len > 0 && (size_t)len < sizeof(line) && line[len - 1] == '\n')
		line[len - 1] = '\0';
	if (len >= 0 && run->env->trace)
		run->env->trace(run->env->trace_arg, line);
	return error(len);
}

HELPER(trace_printk)
{
	const uint64_t args[3] = { a3, a4, a5 };

	return trace(run, a1, a2, args, 3);
}

/** trace_vprintk(format, size, arguments, bytes of them). */
HELPER(trace_vprintk)
{
	uint64_t args[LEAT_BPF_TRACE_ARGS];

	if (a4 % sizeof(args[0]) || a4 > sizeof(args))
		return error(-EINVAL);
	if (a4)
		memcpy(args, mem_of(a3), a4);
	return trace(run, a1, a2, args, (unsigned int)(a4 / sizeof(args[0])));
}

/* ---- the table ---- */

#define NONE LEAT_BPF_ARG_NONE
#define ANY LEAT_BPF_ARG_ANY
#define CTX LEAT_BPF_ARG_CTX
#define MAP LEAT_BPF_ARG_MAP
#define KEY LEAT_BPF_ARG_MAP_KEY
#define VALUE LEAT_BPF_ARG_MAP_VALUE
#define MEM LEAT_BPF_ARG_MEM
#define MEM_OR_NULL LEAT_BPF_ARG_MEM_OR_NULL
#define MEM_OUT LEAT_BPF_ARG_MEM_OUT
#define SIZE LEAT_BPF_ARG_SIZE
#define SIZE_OR_ZERO LEAT_BPF_ARG_SIZE_OR_ZERO
#define RECORD LEAT_BPF_ARG_RECORD
#define LOCK LEAT_BPF_ARG_LOCK

#define ROW(word, returns, f, ...)                                                                                     \
	{                                                                                                              \
		.id = BPF_FUNC_##word, .name = #word, .fn = word, .ret = LEAT_BPF_RET_##returns, .flags = f,           \
		.arg = { __VA_ARGS__ },                                                                                \
	}
#define MOVES LEAT_BPF_HELPER_MOVES_PACKET

static const struct leat_bpf_helper own_helpers[] = {
	ROW(map_lookup_elem, MAP_VALUE_OR_NULL, 0, MAP, KEY),
	ROW(map_update_elem, NUMBER, 0, MAP, KEY, VALUE, ANY),
	ROW(map_delete_elem, NUMBER, 0, MAP, KEY),
	ROW(spin_lock, NUMBER, LEAT_BPF_HELPER_TRAPS, LOCK),
	ROW(spin_unlock, NUMBER, 0, LOCK),
	ROW(tail_call, NEVER, LEAT_BPF_HELPER_TAIL_CALL, CTX, MAP, ANY),
	ROW(ktime_get_ns, NUMBER, 0, NONE),
	ROW(ktime_get_boot_ns, NUMBER, 0, NONE),
	ROW(ktime_get_tai_ns, NUMBER, 0, NONE),
	ROW(ktime_get_coarse_ns, NUMBER, 0, NONE),
	ROW(jiffies64, NUMBER, 0, NONE),
	ROW(get_smp_processor_id, NUMBER, 0, NONE),
	ROW(get_prandom_u32, NUMBER, 0, NONE),
	ROW(xdp_adjust_head, NUMBER, MOVES, CTX, ANY),
	ROW(xdp_adjust_tail, NUMBER, MOVES, CTX, ANY),
	ROW(xdp_adjust_meta, NUMBER, MOVES, CTX, ANY),
	ROW(xdp_get_buff_len, NUMBER, 0, CTX),
	ROW(xdp_load_bytes, NUMBER, 0, CTX, ANY, MEM_OUT, SIZE),
	ROW(xdp_store_bytes, NUMBER, LEAT_BPF_HELPER_WRITES_PACKET, CTX, ANY, MEM, SIZE),
	ROW(csum_diff, NUMBER, 0, MEM_OR_NULL, SIZE_OR_ZERO, MEM_OR_NULL, SIZE_OR_ZERO, ANY),
	ROW(perf_event_output, NUMBER, 0, CTX, MAP, ANY, MEM, SIZE_OR_ZERO),
	ROW(ringbuf_output, NUMBER, 0, MAP, MEM, SIZE_OR_ZERO, ANY),
	ROW(ringbuf_reserve, RECORD_OR_NULL, 0, MAP, ANY, ANY),
	ROW(ringbuf_submit, NUMBER, 0, RECORD, ANY),
	ROW(ringbuf_discard, NUMBER, 0, RECORD, ANY),
	ROW(ringbuf_query, NUMBER, 0, MAP, ANY),
	ROW(trace_printk, NUMBER, LEAT_BPF_HELPER_TRAPS, MEM, SIZE), /* the rest is what the text asks for */
	ROW(trace_vprintk, NUMBER, LEAT_BPF_HELPER_TRAPS, MEM, SIZE, MEM_OR_NULL, SIZE_OR_ZERO),
	{ .name = NULL },
};

static pthread_mutex_t register_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct leat_bpf_helper *tables[REGISTERED_MAX] = { own_helpers, leat_bpf_callback_helpers };
static unsigned int n_tables = 2;

static const struct leat_bpf_helper *find_in(const struct leat_bpf_helper *row, int32_t id)
{
	for (; row->name; row++)
		if (row->id == id)
			return row;
	return NULL;
}

const struct leat_bpf_helper *leat_bpf_helper_find(int32_t id)
{
	const struct leat_bpf_helper *found = NULL;
	unsigned int i;

	pthread_mutex_lock(&register_lock);
	for (i = 0; i < n_tables && !found; i++)
		found = find_in(tables[i], id);
	pthread_mutex_unlock(&register_lock);
	return found;
}

void leat_bpf_helper_register(const struct leat_bpf_helper *helpers)
{
	unsigned int i;

	pthread_mutex_lock(&register_lock);
	for (i = 0; i < n_tables && tables[i] != helpers; i++)
		;
	if (i == n_tables) {
		LEAT_ASSERT(n_tables < REGISTERED_MAX);
		tables[n_tables++] = helpers;
	}
	pthread_mutex_unlock(&register_lock);
}
