/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpm.c: LPM_TRIE: the value of the longest prefix that a key begins with. Any thread.
 *
 * Keys are the kernel's: a 32-bit length in bits, then the bytes, most significant bit first. The trie is binary and
 * path-compressed: a node stands for the first prefixlen bits of its data, its children continue with bit 0 and 1. A
 * node without a value (HOLLOW) exists only to fork, so it has two children.
 *
 * A look-up begins at a table by one byte of the key: it has the first node that looks beyond that byte, on the way of
 * such keys, and the longest prefix found before it. So the upper levels, which a trie of many prefixes has most of, cost
 * one step. The byte is the first one (of eight) in which prefixes differ; those before it are the same in all of them.
 * When that changes, which it seldom does, seq is odd until the table is made anew, and look-ups begin at the root.
 *
 * Lookups take no lock: links are published whole, and nodes that were taken out stay as they were for a grace period
 * (elems.h). Writers and control threads hold the map's lock.
 */
#include <endian.h>

#include "base/heap.h"
#include "bpf/map/elems.h"
#include "bpf/env.h"
#include "bpf/map/map.h"

#define DATA_MAX 256u
#define LEN_SIZE sizeof(uint32_t)
#define FLAGS                                                                                                          \
	(uint32_t)(BPF_F_NO_PREALLOC | BPF_F_NUMA_NODE | BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_RDONLY_PROG |             \
		   BPF_F_WRONLY_PROG)

struct node {
	struct leat_elem elem;
	uint32_t child[2];  /* 0: none (atomic) */
	uint32_t prefixlen; /* bits; constant while linked */
	uint32_t hollow;    /* has no value (atomic) */
	uint64_t data[];    /* key bytes padded to 8, then the value padded to 8 */
};

struct lpm {
	struct leat_elems elems;
	uint32_t data_size; /* bytes */
	uint32_t max_len;   /* bits */
	uint32_t value_off;
	uint32_t root;      /* atomic */
	uint32_t lock LEAT_CACHELINE_ALIGNED;
	uint32_t count;   /* nodes with a value */
	uint32_t n_gone;
	uint32_t gone[2]; /* nodes that were unlinked, until the table knows */
	/* the table (atomic) */
	uint32_t seq LEAT_CACHELINE_ALIGNED;
	uint32_t at;        /* by which byte */
	uint64_t before;    /* the bytes before it, first one highest */
	uint64_t from[256]; /* a node, and on top of it the one found */
};
#define TABLE_BITS 8u
#define TABLE_AT_MAX 7u

/** A key as given: where its bytes are, and how many bits count. */
struct prefix {
	const uint8_t *data;
	uint32_t len;
};

static int lpm_check(const struct leat_bpf_map *map, const char **why)
{
	if (!map->max_entries || !map->value_size || map->value_size > LEAT_BPF_ELEM_MAX - DATA_MAX) {
		*why = "without entries or values, or the values are too large";
		return -EINVAL;
	}
	if (map->key_size < LEN_SIZE + 1 || map->key_size > LEN_SIZE + DATA_MAX) {
		*why = "keys are a length of 4 bytes and 1 to 256 bytes of data";
		return -EINVAL;
	}
	if (!(map->map_flags & BPF_F_NO_PREALLOC) || map->map_flags & ~FLAGS) {
		*why = "BPF_F_NO_PREALLOC is missing, or there is a flag that this type does not know";
		return -EINVAL;
	}
	return 0;
}

static int lpm_create(struct leat_bpf_map *map)
{
	struct lpm *t = leat_heap_zalloc(sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->data_size = map->key_size - (uint32_t)LEN_SIZE;
	t->max_len = t->data_size * 8;
	t->value_off = (uint32_t)(sizeof(struct node) + leat_round8(t->data_size));
	/* forks are fewer than values */
	err = leat_elems_init(&t->elems, 2 * (uint64_t)map->max_entries, t->value_off + map->value_stride,
			      map->env->cpus, map->env->epoch);
	if (err)
		leat_heap_free(t);
	else
		map->priv = t;
	return err;
}

static void lpm_destroy(struct leat_bpf_map *map)
{
	struct lpm *t = map->priv;

	leat_elems_fini(&t->elems);
	leat_heap_free(t);
}

/* ---- nodes and bits ---- */

static inline struct node *node_at(const struct lpm *t, uint32_t idx)
{
	return (struct node *)leat_elem_at(&t->elems, idx);
}

static inline void *value_of(const struct lpm *t, struct node *node)
{
	return (uint8_t *)node + t->value_off;
}

static inline uint32_t load_link(const uint32_t *link)
{
	return __atomic_load_n(link, __ATOMIC_ACQUIRE); /* pairs with store_link() */
}

static inline void store_link(uint32_t *link, uint32_t idx)
{
	__atomic_store_n(link, idx, __ATOMIC_RELEASE); /* pairs with load_link(): the node's bytes are there */
}

static inline bool is_hollow(const struct node *node)
{
	return __atomic_load_n(&node->hollow, __ATOMIC_RELAXED);
}

static inline unsigned int bit_of(const void *data, uint32_t n)
{
	return ((const uint8_t *)data)[n / 8] >> (7 - n % 8) & 1;
}

static inline struct prefix prefix_of(const void *key)
{
	struct prefix p = { .data = (const uint8_t *)key + LEN_SIZE };

	memcpy(&p.len, key, LEN_SIZE);
	return p;
}

/** The first @n <= 8 bytes as a number, first bit highest; the rest are zeros. Sizes that are common need no loop. */
static inline uint64_t load_word(const uint8_t *data, uint32_t n)
{
	uint64_t word = 0;

	if (n >= 8)
		memcpy(&word, data, 8);
	else if (n == 4)
		memcpy(&word, data, 4);
	else
		memcpy(&word, data, n);
	return be64toh(word);
}

/**
 * How many bits node and key have in common: at most the length of either. The first @known are the same for certain.
 */
static inline uint32_t common_bits(const struct lpm *t, const struct node *node, const struct prefix *p, uint32_t known)
{
	uint32_t limit = node->prefixlen < p->len ? node->prefixlen : p->len, off;
	uint64_t differ;

	for (off = known / 64 * 8; off * 8 < limit; off += 8) {
		differ = load_word(p->data + off, t->data_size - off) ^ be64toh(node->data[off / 8]);
		if (differ) {
			off = off * 8 + (uint32_t)__builtin_clzll(differ);
			return off < limit ? off : limit;
		}
	}
	return limit;
}

/* ---- lookup ---- */

static inline uint64_t load_acquire(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE); /* pairs with set_entries() and rebase() */
}

/** Where a look-up begins, in *@idx; returns the node found before that, or NULL. */
static inline struct node *begin_lookup(const struct lpm *t, const struct prefix *p, uint32_t *idx)
{
	uint32_t seq = __atomic_load_n(&t->seq, __ATOMIC_ACQUIRE), at = __atomic_load_n(&t->at, __ATOMIC_ACQUIRE);
	uint64_t from, before;

	if (leat_unlikely(p->len < 8 * at + TABLE_BITS))
		goto at_root;
	from = load_acquire(&t->from[p->data[at]]);
	before = load_acquire(&t->before);
	/* who sees anything of another table also sees that seq is another */
	if (leat_unlikely((seq & 1) || __atomic_load_n(&t->seq, __ATOMIC_RELAXED) != seq))
		goto at_root;
	if (at && (load_word(p->data, t->data_size) ^ before) >> (64 - 8 * at)) {
		*idx = 0; /* all prefixes begin otherwise */
		return NULL;
	}
	*idx = (uint32_t)from;
	return from >> 32 ? node_at(t, (uint32_t)(from >> 32)) : NULL;

at_root:
	*idx = load_link(&t->root);
	return NULL;
}

/** As find_longest(), of keys that are one word: what was found equal stays so, so one look at a node is enough. */
static struct node *find_in_word(const struct lpm *t, const struct prefix *p)
{
	uint64_t key = load_word(p->data, t->data_size), differ;
	struct node *found, *node;
	uint32_t idx, len;

	found = begin_lookup(t, p, &idx);
	while (idx) {
		node = node_at(t, idx);
		len = node->prefixlen;
		differ = key ^ be64toh(node->data[0]);
		if (len > p->len || (len && differ >> (64 - len)))
			break;
		found = is_hollow(node) ? found : node;
		if (len == t->max_len)
			break;
		idx = load_link(&node->child[key << len >> 63]);
	}
	return found;
}

static struct node *find_longest(const struct lpm *t, const struct prefix *p)
{
	struct node *found, *node;
	uint32_t idx, common = 0;

	if (p->len > t->max_len)
		return NULL;
	if (t->data_size <= 8)
		return find_in_word(t, p);
	for (found = begin_lookup(t, p, &idx); idx; idx = load_link(&node->child[bit_of(p->data, common)])) {
		node = node_at(t, idx);
		common = common_bits(t, node, p, common);
		if (common < node->prefixlen)
			break;
		if (!is_hollow(node))
			found = node;
		if (common == t->max_len)
			break;
	}
	return found;
}

static void *lpm_lookup(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	const struct lpm *t = map->priv;
	struct prefix p = prefix_of(key);
	struct node *node = find_longest(t, &p);

	(void)cpu;
	return node ? value_of(t, node) : NULL;
}

static int lpm_read(struct leat_bpf_map *map, const void *key, void *value)
{
	struct lpm *t = map->priv;
	struct prefix p = prefix_of(key);
	struct node *node;

	if (leat_spin_lock(&t->lock))
		return -EBUSY;
	node = find_longest(t, &p);
	if (node)
		leat_words_read(value, value_of(t, node), map->value_size);
	leat_spin_unlock(&t->lock);
	return node ? 0 : -ENOENT;
}

/* ---- writing; under the lock ---- */

/** Where a prefix belongs. */
struct place {
	uint32_t *link;   /* what points to the node */
	uint32_t *parent; /* what points to the node that @link is in, or NULL */
	uint32_t idx;     /* the node there; 0: none */
	uint32_t common;  /* bits that it has in common with the prefix */
};

/** Walks down to the prefix itself, to the node that it parts from, or to the free link where it would be. */
static struct place find_place(struct lpm *t, const struct prefix *p)
{
	struct place at = { .link = &t->root };
	struct node *node;

	while ((at.idx = *at.link)) {
		node = node_at(t, at.idx);
		at.common = common_bits(t, node, p, 0);
		if (at.common < node->prefixlen || node->prefixlen == p->len)
			break;
		at.parent = at.link;
		at.link = &node->child[bit_of(p->data, node->prefixlen)];
	}
	return at;
}

/** Whether the node at @at is the prefix itself; with a value or hollow. */
static bool is_same(const struct lpm *t, const struct place *at, const struct prefix *p)
{
	return at->idx && at->common == p->len && node_at(t, at->idx)->prefixlen == p->len;
}

/** A node without children; @value NULL: hollow. Returns its index or 0. */
static uint32_t make_node(struct leat_bpf_map *map, unsigned int who, const void *data, uint32_t len, const void *value)
{
	struct lpm *t = map->priv;
	uint32_t idx = leat_elems_take(&t->elems, who);
	struct node *node = node_at(t, idx);

	if (!idx)
		return 0;
	node->child[0] = node->child[1] = 0;
	node->prefixlen = len;
	__atomic_store_n(&node->hollow, !value, __ATOMIC_RELAXED);
	leat_words_write(node->data, data, t->data_size);
	if (value)
		leat_words_write(value_of(t, node), value, map->value_size);
	leat_elem_begin(&node->elem);
	return idx;
}

/** The node was unlinked: it goes once the table does not lead to it. */
static void retire(struct lpm *t, uint32_t idx)
{
	t->gone[t->n_gone++] = idx;
}

/**
 * Where look-ups begin of keys with @byte at the table's place. A node is there for those bytes only that it has there
 * itself, so that it is in no other entry than the ones that retable() comes to.
 */
static uint64_t table_entry(const struct lpm *t, uint8_t byte)
{
	uint32_t idx = t->root, found = 0, bits;
	struct node *node;

	for (; idx; idx = node->child[byte >> (TABLE_BITS - 1 - bits) & 1]) {
		node = node_at(t, idx);
		bits = node->prefixlen - 8 * t->at;
		bits = bits < TABLE_BITS ? bits : TABLE_BITS;
		if ((byte ^ ((const uint8_t *)node->data)[t->at]) >> (TABLE_BITS - bits))
			return (uint64_t)found << 32;
		if (bits == TABLE_BITS)
			break;
		found = is_hollow(node) ? found : idx;
	}
	return (uint64_t)found << 32 | idx;
}

static void set_entries(struct lpm *t, unsigned int first, unsigned int n)
{
	unsigned int i;

	for (i = first; i < first + n; i++)
		__atomic_store_n(&t->from[i], table_entry(t, (uint8_t)i), __ATOMIC_RELEASE); /* pairs with load_acquire() */
}

/** The byte by which the table should be, and what is before it; false: it is as it should be. */
static bool is_misplaced(const struct lpm *t, uint32_t *at, uint64_t *before)
{
	const struct node *root = node_at(t, t->root);

	if (!t->root)
		return false;
	*at = root->prefixlen / 8 < TABLE_AT_MAX ? root->prefixlen / 8 : TABLE_AT_MAX;
	*at = *at < t->data_size ? *at : t->data_size - 1;
	*before = *at ? be64toh(root->data[0]) >> (64 - 8 * *at) << (64 - 8 * *at) : 0;
	return *at != t->at || *before != t->before;
}

/** Makes the table anew, by another byte. */
static void rebase(struct lpm *t, uint32_t at, uint64_t before)
{
	__atomic_store_n(&t->seq, t->seq + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->at, at, __ATOMIC_RELEASE); /* these pair with begin_lookup() */
	__atomic_store_n(&t->before, before, __ATOMIC_RELEASE);
	set_entries(t, 0, 256);
	__atomic_store_n(&t->seq, t->seq + 1, __ATOMIC_RELEASE);
}

/** Something has changed at @p: the table follows, and what it led to before goes. */
static void retable(struct lpm *t, const struct prefix *p, unsigned int who)
{
	unsigned int bits, n;
	uint64_t before;
	uint32_t at;

	if (is_misplaced(t, &at, &before)) {
		rebase(t, at, before);
	} else {
		bits = p->len - 8 * t->at;
		n = 1u << (TABLE_BITS - (bits < TABLE_BITS ? bits : TABLE_BITS));
		set_entries(t, p->data[t->at] & ~(n - 1) & 0xff, n);
	}
	while (t->n_gone) {
		at = t->gone[--t->n_gone];
		leat_elem_end(&node_at(t, at)->elem);
		leat_elems_retire(&t->elems, who, at);
	}
}

/** Links node @idx (for prefix @p) at its place. 0, -ENOMEM. */
static int link_node(struct leat_bpf_map *map, struct place *at, const struct prefix *p, uint32_t idx, unsigned int who)
{
	struct lpm *t = map->priv;
	struct node *node = node_at(t, idx), *other = at->idx ? node_at(t, at->idx) : NULL;
	uint32_t fork;

	if (!other) {
		store_link(at->link, idx);
	} else if (is_same(t, at, p)) {
		node->child[0] = other->child[0];
		node->child[1] = other->child[1];
		store_link(at->link, idx);
		retire(t, at->idx);
	} else if (at->common == p->len) {
		node->child[bit_of(other->data, p->len)] = at->idx;
		store_link(at->link, idx);
	} else {
		fork = make_node(map, who, other->data, at->common, NULL);
		if (!fork)
			return -ENOMEM;
		node_at(t, fork)->child[bit_of(p->data, at->common)] = idx;
		node_at(t, fork)->child[bit_of(other->data, at->common)] = at->idx;
		store_link(at->link, fork);
	}
	return 0;
}

static int update_locked(struct leat_bpf_map *map, const struct prefix *p, const void *value, uint64_t flags,
			 unsigned int who)
{
	struct lpm *t = map->priv;
	struct place at = find_place(t, p);
	bool there = is_same(t, &at, p) && !is_hollow(node_at(t, at.idx));
	uint32_t idx;

	if (there && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!there && flags == BPF_EXIST)
		return -ENOENT;
	if (!there && t->count == map->max_entries)
		return -ENOSPC;
	idx = make_node(map, who, p->data, p->len, value);
	if (!idx)
		return -ENOMEM;
	if (link_node(map, &at, p, idx, who)) {
		leat_elem_end(&node_at(t, idx)->elem);
		leat_elems_put(&t->elems, who, idx);
		return -ENOMEM;
	}
	t->count += !there;
	retable(t, p, who);
	return 0;
}

static int lpm_update(struct leat_bpf_map *map, const void *key, const void *value, uint64_t flags, unsigned int cpu)
{
	struct lpm *t = map->priv;
	struct prefix p = prefix_of(key);
	unsigned int tries = 0;
	int err;

	if (flags > BPF_EXIST || p.len > t->max_len)
		return -EINVAL;
	do {
		if (leat_spin_lock(&t->lock))
			return -EBUSY;
		err = update_locked(map, &p, value, flags, cpu);
		leat_spin_unlock(&t->lock);
	} while (err == -ENOMEM && leat_elems_patience(&t->elems, cpu, &tries));
	return err;
}

static int delete_locked(struct lpm *t, const struct prefix *p, unsigned int who)
{
	struct place at = find_place(t, p);
	struct node *node = node_at(t, at.idx), *parent;
	uint32_t fork;

	if (!is_same(t, &at, p) || is_hollow(node))
		return -ENOENT;
	t->count--;
	if (node->child[0] && node->child[1]) {
		__atomic_store_n(&node->hollow, 1, __ATOMIC_RELAXED);
		retable(t, p, who);
		return 0;
	}
	fork = at.parent ? *at.parent : 0;
	parent = node_at(t, fork);
	if (!node->child[0] && !node->child[1] && fork && is_hollow(parent)) {
		/* the fork has one way left */
		store_link(at.parent, parent->child[at.link == &parent->child[0]]);
		retire(t, fork);
	} else {
		store_link(at.link, node->child[0] ? node->child[0] : node->child[1]);
	}
	retire(t, at.idx);
	retable(t, p, who);
	return 0;
}

static int lpm_delete(struct leat_bpf_map *map, const void *key, unsigned int cpu)
{
	struct lpm *t = map->priv;
	struct prefix p = prefix_of(key);
	int err;

	if (p.len > t->max_len)
		return -EINVAL;
	if (leat_spin_lock(&t->lock))
		return -EBUSY;
	err = delete_locked(t, &p, cpu);
	leat_spin_unlock(&t->lock);
	return err;
}

/* ---- iteration, children before their parent; under the lock ---- */

static uint32_t first_below(const struct lpm *t, uint32_t idx)
{
	const struct node *node;

	for (;;) {
		node = node_at(t, idx);
		if (!node->child[0] && !node->child[1])
			return idx;
		idx = node->child[0] ? node->child[0] : node->child[1];
	}
}

/** The node after the prefix @key; the first one when there is no such prefix. 0 at the end. */
static uint32_t next_node(struct lpm *t, const void *key)
{
	uint32_t path[DATA_MAX * 8 + 1], depth = 0, idx = t->root, parent;
	struct prefix p = prefix_of(key);

	if (p.len > t->max_len)
		return first_below(t, t->root);
	for (; idx; idx = node_at(t, idx)->child[bit_of(p.data, node_at(t, idx)->prefixlen)]) {
		path[depth++] = idx;
		if (common_bits(t, node_at(t, idx), &p, 0) < node_at(t, idx)->prefixlen)
			return first_below(t, t->root);
		if (node_at(t, idx)->prefixlen == p.len)
			break;
	}
	if (!idx || is_hollow(node_at(t, idx)))
		return first_below(t, t->root);
	for (depth--; depth; depth--) {
		parent = path[depth - 1];
		if (node_at(t, parent)->child[0] == path[depth] && node_at(t, parent)->child[1])
			return first_below(t, node_at(t, parent)->child[1]);
		if (!is_hollow(node_at(t, parent)))
			return parent;
	}
	return 0;
}

static int lpm_next_key(struct leat_bpf_map *map, const void *key, void *next)
{
	struct lpm *t = map->priv;
	struct node *node;
	uint32_t idx = 0;

	if (leat_spin_lock(&t->lock))
		return -EBUSY;
	if (t->root)
		idx = key ? next_node(t, key) : first_below(t, t->root);
	node = node_at(t, idx);
	if (idx) {
		memcpy(next, &node->prefixlen, LEN_SIZE);
		leat_words_read((uint8_t *)next + LEN_SIZE, node->data, t->data_size);
	}
	leat_spin_unlock(&t->lock);
	return idx ? 0 : -ENOENT;
}

static bool lpm_contains(const struct leat_bpf_map *map, uint64_t addr, uint32_t size)
{
	const struct lpm *t = map->priv;

	return leat_elems_contain(&t->elems, addr, size, t->value_off, map->value_size);
}

const struct leat_bpf_map_type leat_bpf_lpm_trie = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.name = "lpm_trie",
	.check = lpm_check,
	.create = lpm_create,
	.destroy = lpm_destroy,
	.lookup = lpm_lookup,
	.update = lpm_update,
	.delete_elem = lpm_delete,
	.read = lpm_read,
	.next_key = lpm_next_key,
	.contains = lpm_contains,
};
