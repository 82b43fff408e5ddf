/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmap.c: DEVMAP, DEVMAP_HASH, CPUMAP and XSKMAP: maps whose entries are places to send packets to.
 *
 * Control writes entries, programs on workers look them up and redirect to them. An entry is a value of 4 or 8 bytes
 * and a state; both are written and read with atomics, so that a reader sees an entry or none. DEVMAP entries are port
 * numbers of the datapath, with a program of the map's object that runs before a packet leaves there, or none: a
 * redirect reads both at once. A DEVMAP_HASH has any 32-bit key: entries lie in a table of twice the size, linear
 * probing, and keys that were used once keep their place until the map goes (a deleted one can be taken by any key, at
 * once: a redirect notices, a program that goes on reading a value reads the new key's).
 *
 * An entry goes with its port. When a port is taken out of the datapath's table, every map is told (port_gone()), and
 * only then comes the grace period after which the number can be another port's. An entry that is written meanwhile is
 * either seen by that or finds, under the same lock, that there is no such port. So no entry ever leads to a port that
 * it was not written for.
 *
 * CPUMAP and XSKMAP keep their entries and give the kernel's verdict; a packet that is sent there is dropped and
 * counted (xdp_redirect) until there is something behind them.
 */
#include "xdp/devmap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/prog.h"
#include "netdev/worker.h"

#define ENTRIES_MAX (1u << 20)

enum entry_state { ENTRY_NEVER, ENTRY_GONE, ENTRY_USED };

struct entry {
	uint32_t state;  /* enum entry_state (atomic) */
	uint32_t key;    /* constant while used */
	uint64_t target; /* what a redirect reads, at once: see pack() (atomic) */
	uint64_t value;  /* as programs see it: ifindex or queue size in the low half, program in the high one (atomic) */
};

struct portmap {
	struct leat_port_watch watch;
	struct leat_net *net; /* whose ports there are; NULL: any number is one */
	pthread_mutex_t lock; /* writers */
	uint32_t used;
	uint32_t end; /* no entry from this place on was ever used (atomic) */
	uint32_t n; /* entries in the table */
	struct entry *entry;
};

static bool hashed(const struct leat_bpf_map *map)
{
	return map->type->type == BPF_MAP_TYPE_DEVMAP_HASH;
}

static bool holds_ports(const struct leat_bpf_map *map)
{
	return map->type->type == BPF_MAP_TYPE_DEVMAP || hashed(map);
}

uint32_t leat_portmap_flags(const struct leat_bpf_map *map)
{
	return holds_ports(map) ? 3u | BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS : 3u;
}

/* ---- where an entry leads ---- */

/* 32 bits of key, 9 of the program's number, which is LEAT_IMAGE_PROGS_MAX at most, and the port's in the others. */
#define PORT_BITS 23
#define PORT_MAX ((1u << PORT_BITS) - 1)
#define PROG_BITS (32 - PORT_BITS)
LEAT_STATIC_ASSERT(LEAT_IMAGE_PROGS_MAX < 1u << PROG_BITS && LEAT_PORTS_MAX <= PORT_MAX, "both have room");

static uint64_t pack(uint32_t key, uint32_t port, uint32_t prog)
{
	return (uint64_t)key << 32 | (uint64_t)prog << PORT_BITS | port;
}

static uint32_t port_in(uint64_t target)
{
	return (uint32_t)target & PORT_MAX;
}

static void unpack(const struct leat_bpf_map *map, uint64_t word, struct leat_bpf_target *target)
{
	uint32_t prog = (uint32_t)word >> PORT_BITS;

	target->port = port_in(word);
	target->prog = prog ? &map->obj->prog[prog - 1] : NULL;
}

/* ---- finding an entry ---- */

static uint32_t place_of(const struct portmap *pm, uint32_t key)
{
	return (uint32_t)((uint64_t)(key * 2654435761u) * pm->n >> 32);
}

static bool is_used(const struct entry *entry, uint32_t key)
{
	/* pairs with the release in set_entry(): key and value are there */
	return __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == ENTRY_USED &&
	       __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key;
}

static struct entry *find(const struct leat_bpf_map *map, uint32_t key)
{
	struct portmap *pm = map->priv;
	uint32_t i, at;

	if (!hashed(map))
		return key < pm->n && is_used(&pm->entry[key], key) ? &pm->entry[key] : NULL;
	for (i = 0, at = place_of(pm, key); i < pm->n; i++, at = at + 1 < pm->n ? at + 1 : 0) {
		if (is_used(&pm->entry[at], key))
			return &pm->entry[at];
		if (__atomic_load_n(&pm->entry[at].state, __ATOMIC_RELAXED) == ENTRY_NEVER)
			return NULL;
	}
	return NULL;
}

/** A place for a new key: under the lock. */
static struct entry *find_room(const struct leat_bpf_map *map, uint32_t key)
{
	struct portmap *pm = map->priv;
	uint32_t at;

	if (!hashed(map))
		return &pm->entry[key];
	for (at = place_of(pm, key); pm->entry[at].state == ENTRY_USED; at = at + 1 < pm->n ? at + 1 : 0)
		;
	return &pm->entry[at];
}

static void set_entry(struct entry *entry, uint32_t key, uint64_t value, uint64_t target)
{
	__atomic_store_n(&entry->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->target, target, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->state, ENTRY_USED, __ATOMIC_RELEASE);
}

/** Under the lock. */
static void delete_entry(struct portmap *pm, struct entry *entry)
{
	__atomic_store_n(&entry->state, ENTRY_GONE, __ATOMIC_RELEASE);
	pm->used--;
}

static void port_gone(struct leat_port_watch *watch, uint32_t index)
{
	struct portmap *pm = (struct portmap *)watch; /* its first member */
	uint32_t i;

	pthread_mutex_lock(&pm->lock);
	for (i = 0; i < pm->end; i++)
		if (pm->entry[i].state == ENTRY_USED && port_in(pm->entry[i].target) == index)
			delete_entry(pm, &pm->entry[i]);
	pthread_mutex_unlock(&pm->lock);
}

/* ---- operations ---- */

static int portmap_check(const struct leat_bpf_map *map, const char **why)
{
	if (map->key_size != 4 || (map->value_size != 4 && map->value_size != 8)) {
		*why = "keys have 4 bytes, values 4 or 8";
		return -EINVAL;
	}
	if (!map->max_entries || map->max_entries > ENTRIES_MAX) {
		*why = "it can have 1 to 1048576 entries";
		return map->max_entries ? -E2BIG : -EINVAL;
	}
	return 0;
}

static int portmap_create(struct leat_bpf_map *map)
{
	struct portmap *pm = leat_heap_zalloc(sizeof(*pm));

	if (!pm)
		return -ENOMEM;
	pm->n = hashed(map) ? 2 * map->max_entries : map->max_entries;
	pm->entry = leat_heap_zalloc(pm->n * sizeof(*pm->entry));
	if (!pm->entry) {
		leat_heap_free(pm);
		return -ENOMEM;
	}
	pthread_mutex_init(&pm->lock, NULL);
	pm->net = holds_ports(map) ? map->env->net : NULL;
	pm->watch.gone = port_gone;
	if (pm->net)
		leat_net_watch_ports(pm->net, &pm->watch);
	map->map_flags |= BPF_F_RDONLY_PROG; /* a look-up gives the entry itself; as in the kernel */
	map->priv = pm;
	return 0;
}

static void portmap_destroy(struct leat_bpf_map *map)
{
	struct portmap *pm = map->priv;

	if (pm->net)
		leat_net_unwatch_ports(pm->net, &pm->watch);
	pthread_mutex_destroy(&pm->lock);
	leat_heap_free(pm->entry);
	leat_heap_free(pm);
}

static uint32_t read_key(const void *key)
{
	uint32_t k;

	memcpy(&k, key, sizeof(k));
	return k;
}

static void *portmap_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct entry *entry = find(map, read_key(key));

	(void)cpu;
	return entry ? &entry->value : NULL;
}

/** Whether an entry may name program number @prog: it is there, loaded, and for packets that leave. */
static bool is_egress(const struct leat_bpf_map *map, uint32_t prog)
{
	const struct leat_bpf_object *obj = map->obj;

	return prog <= obj->n_progs && obj->prog[prog - 1].loaded && leat_bpf_prog_egress(&obj->prog[prog - 1]);
}

/**
 * What @value, as written, comes to: @target, and the value that is read. Under the lock: a port that is there stays
 * until its watch has been told. 0, or -EINVAL.
 */
static int resolve(const struct leat_bpf_map *map, uint32_t key, uint64_t *value, uint64_t *target)
{
	const struct portmap *pm = map->priv;
	uint32_t port = (uint32_t)*value, prog = (uint32_t)(*value >> 32);

	*target = pack(key, 0, 0);
	if (!holds_ports(map))
		return 0;
	if (prog > INT32_MAX) /* a descriptor of less than 0: none, as in the kernel */
		prog = 0;
	if (port > PORT_MAX || (prog && (!port || !is_egress(map, prog))) ||
	    (port && pm->net && !leat_netdev_by_index(pm->net, port)))
		return -EINVAL;
	*value = (uint64_t)prog << 32 | port;
	*target = pack(key, port, prog);
	return 0;
}

static int put_locked(struct leat_bpf_map *map, uint32_t key, uint64_t value, uint64_t target)
{
	struct portmap *pm = map->priv;
	struct entry *entry = find(map, key);
	uint32_t end;

	if (!entry && pm->used == map->max_entries)
		return -E2BIG;
	if (!entry) {
		entry = find_room(map, key);
		pm->used++;
	}
	set_entry(entry, key, value, target);
	end = (uint32_t)(entry - pm->entry) + 1;
	if (end > pm->end)
		__atomic_store_n(&pm->end, end, __ATOMIC_RELEASE); /* pairs with leat_portmap_next() */
	return 0;
}

static int update_locked(struct leat_bpf_map *map, uint32_t key, uint64_t value, uint64_t flags)
{
	struct portmap *pm = map->priv;
	struct entry *entry = find(map, key);
	uint64_t target;
	int err;

	if (hashed(map) && !(uint32_t)value)
		return -EINVAL;
	if (entry && flags == BPF_NOEXIST)
		return -EEXIST;
	err = resolve(map, key, &value, &target);
	if (err)
		return err;
	if (holds_ports(map) && !(uint32_t)value) { /* no port: that deletes it */
		if (entry)
			delete_entry(pm, entry);
		return 0;
	}
	return put_locked(map, key, value, target);
}

/* BPF_EXIST creates, too, as in the kernel. */
static int portmap_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags,
			  unsigned int cpu)
{
	struct portmap *pm = map->priv;
	uint32_t k = read_key(key);
	uint64_t v = 0;
	int err;

	(void)cpu;
	memcpy(&v, value, map->value_size);
	if (flags > BPF_EXIST)
		return -EINVAL;
	if (!hashed(map) && k >= map->max_entries)
		return -E2BIG;
	if (!hashed(map) && flags == BPF_NOEXIST)
		return -EEXIST; /* an array has all of its elements */
	pthread_mutex_lock(&pm->lock);
	err = update_locked(map, k, v, flags);
	pthread_mutex_unlock(&pm->lock);
	return err;
}

static int portmap_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct portmap *pm = map->priv;
	uint32_t k = read_key(key);
	struct entry *entry;

	(void)cpu;
	if (!hashed(map) && k >= map->max_entries)
		return -EINVAL;
	pthread_mutex_lock(&pm->lock);
	entry = find(map, k);
	if (entry)
		delete_entry(pm, entry);
	pthread_mutex_unlock(&pm->lock);
	return entry || !hashed(map) ? 0 : -ENOENT;
}

/** The next used entry from place @at on. */
static int next_from(const struct portmap *pm, uint32_t at, void *next)
{
	uint32_t key;

	for (; at < pm->n; at++) {
		if (__atomic_load_n(&pm->entry[at].state, __ATOMIC_ACQUIRE) != ENTRY_USED)
			continue;
		key = __atomic_load_n(&pm->entry[at].key, __ATOMIC_RELAXED);
		memcpy(next, &key, sizeof(key));
		return 0;
	}
	return -ENOENT;
}

static int portmap_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	const struct portmap *pm = map->priv;
	const struct entry *entry;
	uint32_t k;

	if (hashed(map)) {
		entry = key ? find(map, read_key(key)) : NULL;
		return next_from(pm, entry ? (uint32_t)(entry - pm->entry) + 1 : 0, next);
	}
	/* an array's keys are all of its indices, as in the kernel */
	k = key ? read_key(key) : UINT32_MAX;
	k = k >= map->max_entries ? 0 : k + 1;
	if (k == map->max_entries)
		return -ENOENT;
	memcpy(next, &k, sizeof(k));
	return 0;
}

static bool portmap_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	const struct portmap *pm = map->priv;
	uint64_t off = addr - (uint64_t)(uintptr_t)pm->entry, in = off % sizeof(struct entry);

	return off < (uint64_t)pm->n * sizeof(struct entry) && in >= offsetof(struct entry, value) &&
	       in - offsetof(struct entry, value) + size <= map->value_size;
}

static bool portmap_target(struct leat_bpf_map *map, uint32_t key, struct leat_bpf_target *target)
{
	const struct entry *entry = find(map, key);
	uint64_t word = entry ? __atomic_load_n(&entry->target, __ATOMIC_RELAXED) : 0;

	if (!entry || word >> 32 != key) /* the entry has become another key's since it was found */
		return false;
	unpack(map, word, target);
	return true;
}

bool leat_portmap_next(const struct leat_bpf_map *map, uint32_t *at, struct leat_bpf_target *target)
{
	const struct portmap *pm = map->priv;
	uint32_t end = __atomic_load_n(&pm->end, __ATOMIC_ACQUIRE); /* pairs with put_locked() */
	const struct entry *entry;

	while (*at < end) {
		entry = &pm->entry[(*at)++];
		if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != ENTRY_USED) /* pairs with set_entry() */
			continue;
		unpack(map, __atomic_load_n(&entry->target, __ATOMIC_RELAXED), target);
		return true;
	}
	return false;
}

#define AS_PORTS .format_value = leat_portmap_format, .parse_value = leat_portmap_parse
#define PORTMAP(number, text, more_flags, ...)                                                                    \
	{ .type = number, .name = text, .flags = LEAT_BPF_MAP_NO_UPDATE | (more_flags),                       \
	  .check = portmap_check, .create = portmap_create, .destroy = portmap_destroy,                       \
	  .lookup = portmap_lookup, .update = portmap_update, .delete_elem = portmap_delete,                  \
	  .next_key = portmap_next_key, .contains = portmap_contains, .target = portmap_target, __VA_ARGS__ }

static const struct leat_bpf_map_type types[] = {
	PORTMAP(BPF_MAP_TYPE_DEVMAP, "devmap", 0, AS_PORTS),
	PORTMAP(BPF_MAP_TYPE_DEVMAP_HASH, "devmap_hash", 0, AS_PORTS),
	PORTMAP(BPF_MAP_TYPE_CPUMAP, "cpumap", LEAT_BPF_MAP_NO_LOOKUP, .format_value = NULL),
	PORTMAP(BPF_MAP_TYPE_XSKMAP, "xskmap", 0, .format_value = NULL),
};

void leat_portmap_register(void)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		leat_bpf_map_type_register(&types[i]);
}
