/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h: what a map type is, for this room and for rooms above that bring types of their own (DEVMAP, from src/xdp).
 *
 * Programs get pointers into values. A value that is deleted stays readable until every worker has passed a quiescent
 * state; a deleted element counts as free at once, because there are slack elements for the grace period.
 */
#ifndef LEAT_BPF_MAP_H
#define LEAT_BPF_MAP_H

#include <leat/bpf.h>
#include <linux/bpf.h>

#include "base/epoch.h"
#include "bpf/contract.h"

struct leat_bpf_map_type;
struct leat_bpf_used; /* mem.h */

/** What every map begins with. Types put their own memory behind priv. */
struct leat_bpf_map {
	const struct leat_bpf_map_type *type;
	struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	uint32_t number;                 /* in its object */
	uint32_t key_size, value_size, max_entries;
	uint32_t value_stride;           /* value_size rounded up to 8: distance of per-CPU copies */
	uint32_t map_flags;              /* BPF_F_* */
	unsigned int cpus;               /* copies of a per-CPU value */
	bool frozen;                     /* nobody may write (.rodata after load) */
	bool internal;
	bool made;                       /* load, or a control thread, made it; not so maps that nothing needs (atomic) */
	uint32_t btf_key, btf_value;
	uint32_t lock;                   /* where a value has its spin lock, plus 1; 0: nowhere (lock.h) */
	/* maps of maps (nested.c) */
	struct leat_bpf_map *inner;      /* of a map of maps: the template of what it holds */
	bool template;                   /* it only says what inner maps look like, and is never made */
	uint32_t holders;                /* of a map made later: who made it, and entries. Under the object's lock, as: */
	uint64_t grace;                  /* grace period that it waits for once it has none */
	struct leat_bpf_map *next;       /* of those that wait, of free places */
	uint64_t lost;                   /* rings: records that found no room (atomic) */
	void *priv;
	char name[64];
};

/** *any*. */
static inline bool leat_bpf_map_is_made(const struct leat_bpf_map *map)
{
	return __atomic_load_n(&map->made, __ATOMIC_ACQUIRE); /* pairs with the release in inner.c: it is whole */
}

/** Where a walk over a map stands; all zeros: before the first element. */
struct leat_bpf_cursor {
	uint32_t first, at, lane; /* the type's own */
	uint32_t steps;           /* what the last step cost, in looks at memory */
};

/** What an entry that packets are redirected to stands for. */
struct leat_bpf_target {
	uint32_t port;              /* number of the port; 0: it is no port */
	struct leat_bpf_prog *prog; /* runs before a packet leaves there; NULL: none */
};

#define LEAT_BPF_MAP_PER_CPU 0x1u
#define LEAT_BPF_MAP_NO_LOOKUP 0x2u /* programs cannot look values up (program arrays, rings, DEVMAP) */
#define LEAT_BPF_MAP_NO_UPDATE 0x4u /* programs cannot write elements */
#define LEAT_BPF_MAP_NESTED 0x8u    /* what a look-up gives is a map, like map->inner */

/** Operations. Keys and values are private copies or checked memory of key_size and value_size bytes. */
struct leat_bpf_map_type {
	uint32_t type; /* enum bpf_map_type */
	const char *name;
	unsigned int flags; /* LEAT_BPF_MAP_* */
	/** Checks sizes and flags as the kernel does: 0, -EINVAL, -E2BIG ... @why gets a sentence on failure. */
	int (*check)(const struct leat_bpf_map *map, const char **why);
	int (*create)(struct leat_bpf_map *map); /* memory is reserved, touched lazily; 0 or -ENOMEM */
	void (*destroy)(struct leat_bpf_map *map);
	/** Program side: this CPU's value (LEAT_BPF_MAP_NESTED: the map), or NULL. Valid until the end of the run. */
	void *(*lookup)(struct leat_bpf_map *map, const void *key, unsigned int cpu);
	/** Program side: sets this CPU's value. */
	int (*update)(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags, unsigned int cpu);
	int (*delete_elem)(struct leat_bpf_map *map, const void *key, unsigned int cpu);
	/**
	 * Program side: this CPU's value of the next element, or NULL at the end; its key goes to @key (key_size bytes
	 * at a multiple of 8). Elements that are there all the while come once each. NULL: cannot be walked over.
	 */
	void *(*each)(struct leat_bpf_map *map, struct leat_bpf_cursor *at, void *key, unsigned int cpu);
	/** Control side: all CPUs' values. NULL where the program side serves (not per CPU). */
	int (*read)(struct leat_bpf_map *map, const void *key, void *values);
	/** The value as it is with its lock taken. NULL where the program side serves, or there are no locks. */
	int (*read_locked)(struct leat_bpf_map *map, const void *key, void *value);
	int (*write)(struct leat_bpf_map *map, const void *key, const void *values, uint64_t flags);
	int (*next_key)(struct leat_bpf_map *map, const void *key, void *next);
	/** As next_key, but may leave out elements whose memory was never touched. NULL: next_key serves. */
	int (*next_used)(struct leat_bpf_map *map, struct leat_bpf_used *used, const void *key, void *next);
	/**
	 * Control side: a value as JSON text (as snprintf does) and back: 0, or -EINVAL with a sentence in @diag. @value is
	 * cleared before. NULL: it is text by its BTF type.
	 */
	int (*format_value)(const struct leat_bpf_map *map, const void *value, char *buf, size_t size);
	int (*parse_value)(const struct leat_bpf_map *map, const char *text, void *value, struct leat_diag *diag);
	/** Whether [addr, addr + size) lies within one value (of any key and CPU). The interpreter's check. */
	bool (*contains)(const struct leat_bpf_map *map, uint64_t addr, uint32_t size);
	/** Rings only. */
	int (*consume)(struct leat_bpf_map *map, leat_bpf_record_fn *fn, void *arg);
	/** bpf_redirect_map(): whether the entry exists, and what it stands for. NULL: cannot be redirected to. *worker*. */
	bool (*target)(struct leat_bpf_map *map, uint32_t key, struct leat_bpf_target *target);
};

/** The type with that number, or NULL. */
const struct leat_bpf_map_type *leat_bpf_map_type_find(uint32_t type);
/** Adds a type from a higher room. @type stays valid for ever. */
void leat_bpf_map_type_register(const struct leat_bpf_map_type *type);

extern const struct leat_bpf_map_type leat_bpf_array, leat_bpf_percpu_array, leat_bpf_hash, leat_bpf_percpu_hash,
	leat_bpf_lru_hash, leat_bpf_lru_percpu_hash, leat_bpf_lpm_trie, leat_bpf_prog_array, leat_bpf_perf_event_array, leat_bpf_ringbuf,
	leat_bpf_array_of_maps, leat_bpf_hash_of_maps;

/** Makes a map from a checked definition. *control*. */
int leat_bpf_map_create(struct leat_bpf_map *map, struct leat_diag *diag);
void leat_bpf_map_destroy(struct leat_bpf_map *map);
/** leat_bpf_map_next_key() for elements that may be other than zero: of large arrays, those that were touched. */
int leat_bpf_map_next_used(struct leat_bpf_map *map, struct leat_bpf_used *used, const void *key, void *next);

/**
 * How an ARRAY or PERCPU_ARRAY lies in memory: element 0 of CPU 0, and bytes from one CPU's copies to the next one's. What
 * priv points to begins with the former.
 */
void leat_bpf_array_layout(const struct leat_bpf_map *map, uint8_t **base, uint64_t *region);

/** The entries of a program array, max_entries of them; read with acquire order. */
struct leat_bpf_prog *const *leat_bpf_prog_array_entries(const struct leat_bpf_map *map);
/** The program at @index of a program array, or NULL. *worker*. */
struct leat_bpf_prog *leat_bpf_prog_array_get(struct leat_bpf_map *map, uint32_t index);
int leat_bpf_prog_array_set(struct leat_bpf_map *map, uint32_t index, struct leat_bpf_prog *prog);

/* ---- maps of maps ---- */

/** Whether @map may be held where @template says what inner maps look like: the kernel's rule. */
bool leat_bpf_map_fits(const struct leat_bpf_map *template, const struct leat_bpf_map *map);
/** The entries of an ARRAY_OF_MAPS, max_entries of them; read with acquire order. */
struct leat_bpf_map *const *leat_bpf_nested_entries(const struct leat_bpf_map *map);
/** Ends the maps of @obj that were made later; nothing runs any more. */
void leat_bpf_nested_end(struct leat_bpf_object *obj);

/* Perf event array and ring buffer, for the helpers. */
/** One record: @data, then the first @packet_len bytes of @xdp (at most its length). 0, -ENOENT, -ENOSPC (lost). */
int leat_bpf_perf_output(struct leat_bpf_map *map, unsigned int cpu, const void *data, uint32_t size,
			 const struct leat_xdp_buff *xdp, uint32_t packet_len);
void *leat_bpf_ringbuf_reserve(struct leat_bpf_map *map, uint32_t size);
void leat_bpf_ringbuf_submit(void *record, bool discard);
/** Bytes of a reserved record. */
uint32_t leat_bpf_ringbuf_size(const void *record);

#endif
