/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_kernel_maps.c: the same operations on a map of the kernel and on ours: definitions that are taken and refused,
 * random updates, deletions and look-ups, walks; values with spin locks; inner maps that are put into maps of maps.
 * Needs root; skipped where bpf(2) is denied.
 */
#include "bpf/map/test_map.h"

#include "bpf/btf/test_common.h"
#include "bpf/map/lock.h"
#include "bpf/test_run.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENOTSUPP_KERNEL 524
#define KEYS 60u
#define ROUNDS 20000u

struct definition {
	uint32_t type, key, value, max, flags;
};

/* ---- the kernel ---- */

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	long err = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return err >= 0 ? (int)err : errno == ENOTSUPP_KERNEL ? -EOPNOTSUPP : -errno;
}

static int kernel_create_outer(const struct definition *d, int inner_fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = d->type;
	attr.key_size = d->key;
	attr.value_size = d->value;
	attr.max_entries = d->max;
	attr.map_flags = d->flags;
	attr.inner_map_fd = (uint32_t)inner_fd;
	return sys_bpf(BPF_MAP_CREATE, &attr);
}

static int kernel_create(const struct definition *d)
{
	return kernel_create_outer(d, 0);
}

static int kernel_do(int cmd, int fd, const void *key, const void *value, uint64_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	attr.flags = flags;
	return sys_bpf(cmd, &attr);
}

/** CPUs whose copies the kernel keeps; 0 when it cannot be said or is too many. */
static unsigned int kernel_cpus(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/possible", "r");
	unsigned int first = 1, last = 0;
	int n = f ? fscanf(f, "%u-%u", &first, &last) : 0;

	if (f)
		fclose(f);
	if (n == 1)
		last = first;
	return n < 1 || first > last || (n == 2 && first) || last >= LEAT_BPF_CPUS_MAX ? 0 : last + 1;
}

static unsigned int cpus_or_skip(void)
{
	const struct definition d = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0 };
	unsigned int cpus = kernel_cpus();
	int fd = kernel_create(&d);

	if (fd < 0 || !cpus)
		skip();
	close(fd);
	return cpus;
}

/* ---- definitions ---- */

static void definitions(void **state)
{
	static const uint32_t types[] = { BPF_MAP_TYPE_ARRAY,    BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_HASH,
					  BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_LRU_HASH,  BPF_MAP_TYPE_LRU_PERCPU_HASH,
					  BPF_MAP_TYPE_LPM_TRIE,
					  BPF_MAP_TYPE_PROG_ARRAY, BPF_MAP_TYPE_PERF_EVENT_ARRAY, BPF_MAP_TYPE_RINGBUF };
	static const uint32_t keys[] = { 0, 1, 4, 5, 8, 260, 261 };
	static const uint32_t values[] = { 0, 1, 4, 8, 32768, 32769, 8 << 20 };
	static const uint32_t maxes[] = { 0, 1, 3, 4096, 12288 };
	static const uint32_t flags[] = { 0,
					  BPF_F_NO_PREALLOC,
					  BPF_F_NO_COMMON_LRU,
					  BPF_F_ZERO_SEED,
					  BPF_F_RDONLY_PROG,
					  BPF_F_WRONLY_PROG,
					  BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG,
					  BPF_F_RDONLY_PROG | BPF_F_NO_PREALLOC,
					  BPF_F_MMAPABLE,
					  BPF_F_PRESERVE_ELEMS,
					  BPF_F_INNER_MAP,
					  BPF_F_CLONE,
					  1u << 30 };
	unsigned int cpus = cpus_or_skip(), wrong = 0, i, n;
	struct definition d;
	struct test_map t;
	int ours, theirs;

	(void)state;
	for (i = 0; i < COUNT(types) * COUNT(keys) * COUNT(values) * COUNT(maxes) * COUNT(flags); i++) {
		n = i;
		d.type = types[n % COUNT(types)];
		d.key = keys[(n /= COUNT(types)) % COUNT(keys)];
		d.value = values[(n /= COUNT(keys)) % COUNT(values)];
		d.max = maxes[(n /= COUNT(values)) % COUNT(maxes)];
		d.flags = flags[(n /= COUNT(maxes)) % COUNT(flags)];
		if (d.max > 3 && d.value > 8)
			continue; /* it would be much memory */
		theirs = kernel_create(&d);
		if (theirs >= 0)
			close(theirs);
		ours = test_map_try(&t, cpus, d.type, d.key, d.value, d.max, d.flags);
		if (!ours)
			test_map_close(&t);
		if (ours == (theirs < 0 ? theirs : 0))
			continue;
		print_error("type %u key %u value %u max %u flags %#x: kernel %d, we %d\n", d.type, d.key, d.value,
			    d.max, d.flags, theirs < 0 ? theirs : 0, ours);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* ---- operations ---- */

struct pair {
	struct test_map t;
	int fd;
	const struct definition *d;
	uint32_t value_bytes;
};

/** A key; now and then one that an array does not have or a prefix that is too long. */
static void random_key(const struct pair *p, uint8_t *key, uint64_t *seed)
{
	uint32_t n = test_below(seed, KEYS), i, len;

	test_key(key, p->d->key, n);
	if (p->d->type != BPF_MAP_TYPE_LPM_TRIE)
		return;
	len = test_below(seed, 8 * (p->d->key - 4) + 2);
	memcpy(key, &len, 4);
	for (i = 4; i < p->d->key; i++)
		key[i] = (uint8_t)(test_below(seed, 3) ? 0x5a : test_random(seed));
}

static void same_value(struct pair *p, const void *key)
{
	uint8_t ours[LEAT_BPF_CPUS_MAX * 64] = { 0 }, theirs[LEAT_BPF_CPUS_MAX * 64] = { 0 };
	uint32_t stride = p->t.map.value_stride, cpu;
	int err = kernel_do(BPF_MAP_LOOKUP_ELEM, p->fd, key, theirs, 0);

	assert_int_equal(leat_bpf_map_lookup(&p->t.map, key, ours), err);
	for (cpu = 0; !err && cpu * stride < p->value_bytes; cpu++)
		assert_memory_equal(ours + cpu * stride, theirs + cpu * stride, p->d->value);
}

/** Every key of one is in the other, with the same value; where the order is defined, in the same. */
static void same_contents(struct pair *p)
{
	bool ordered = p->d->type != BPF_MAP_TYPE_HASH && p->d->type != BPF_MAP_TYPE_PERCPU_HASH &&
		       p->d->type != BPF_MAP_TYPE_LRU_PERCPU_HASH;
	uint8_t ours[64] = { 0 }, theirs[64] = { 0 };
	int err, theirs_err = kernel_do(BPF_MAP_GET_NEXT_KEY, p->fd, NULL, theirs, 0);
	unsigned int n_ours = 0, n_theirs = 0;

	for (err = leat_bpf_map_next_key(&p->t.map, NULL, ours); !err; n_ours++) {
		same_value(p, ours);
		if (ordered) {
			assert_int_equal(theirs_err, 0);
			assert_memory_equal(ours, theirs, p->d->key);
			theirs_err = kernel_do(BPF_MAP_GET_NEXT_KEY, p->fd, theirs, theirs, 0);
		}
		err = leat_bpf_map_next_key(&p->t.map, ours, ours);
	}
	assert_int_equal(err, -ENOENT);
	for (; !ordered && !theirs_err; n_theirs++)
		theirs_err = kernel_do(BPF_MAP_GET_NEXT_KEY, p->fd, theirs, theirs, 0);
	assert_int_equal(theirs_err, -ENOENT);
	if (!ordered)
		assert_int_equal(n_ours, n_theirs);
}

static void same_step(struct pair *p, uint64_t *seed)
{
	uint64_t flags = test_below(seed, 10) ? test_below(seed, 3) : 3 + test_below(seed, 6);
	uint8_t key[64], value[LEAT_BPF_CPUS_MAX * 64];
	uint32_t i;

	random_key(p, key, seed);
	for (i = 0; i < p->value_bytes; i++)
		value[i] = (uint8_t)test_random(seed);
	switch (test_below(seed, 4)) {
	case 0:
		assert_int_equal(leat_bpf_map_delete(&p->t.map, key),
				 kernel_do(BPF_MAP_DELETE_ELEM, p->fd, key, NULL, 0));
		break;
	case 1:
		same_value(p, key);
		break;
	default:
		/* 4 is BPF_F_LOCK, and numbers above are of newer kernels */
		if (flags > 4)
			flags = 3;
		assert_int_equal(leat_bpf_map_update(&p->t.map, key, value, flags),
				 kernel_do(BPF_MAP_UPDATE_ELEM, p->fd, key, value, flags));
	}
}

static void operations(void **state)
{
	static const struct definition all[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 4, 40, 0 },
		{ BPF_MAP_TYPE_ARRAY, 4, 21, 50, 0 },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12, 40, 0 },
		{ BPF_MAP_TYPE_HASH, 4, 8, 40, NO_PREALLOC },
		{ BPF_MAP_TYPE_HASH, 8, 13, 40, 0 },
		{ BPF_MAP_TYPE_HASH, 17, 8, 1, 0 },
		{ BPF_MAP_TYPE_HASH, 40, 50, 100, 0 },
		{ BPF_MAP_TYPE_PERCPU_HASH, 8, 8, 40, 0 },
		{ BPF_MAP_TYPE_PERCPU_HASH, 5, 3, 100, NO_PREALLOC },
		{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 8, 12, 20000, 0 }, /* so large that nothing is taken out */
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 8, 100, NO_PREALLOC },
		{ BPF_MAP_TYPE_LPM_TRIE, 5, 3, 30, NO_PREALLOC },
		{ BPF_MAP_TYPE_LPM_TRIE, 20, 8, 200, NO_PREALLOC },
		{ BPF_MAP_TYPE_LPM_TRIE, 11, 8, 1, NO_PREALLOC },
	};
	unsigned int cpus = cpus_or_skip(), i, round;
	uint64_t seed = 11;
	struct pair *p = NULL;

	(void)state;
	assert_int_equal(posix_memalign((void **)&p, LEAT_CACHELINE, sizeof(*p)), 0);
	for (i = 0; i < COUNT(all); i++) {
		p->d = &all[i];
		p->fd = kernel_create(p->d);
		assert_true(p->fd >= 0);
		test_map_open(&p->t, cpus, p->d->type, p->d->key, p->d->value, p->d->max, p->d->flags);
		p->value_bytes = p->t.map.cpus > 1 ? p->t.map.cpus * p->t.map.value_stride : p->d->value;
		for (round = 0; round < ROUNDS; round++) {
			same_step(p, &seed);
			if (round % 2000 == 0)
				same_contents(p);
		}
		same_contents(p);
		close(p->fd);
		test_map_close(&p->t);
	}
	free(p);
}

/* ---- spin locks ---- */

struct locked_value {
	uint32_t first, lock;
	uint64_t second;
	uint32_t third;
};

/** The BTF of an unsigned int and of the value. */
static const struct build *locked_types(uint32_t *key, uint32_t *value)
{
	static struct build b;
	uint32_t lock;

	memset(&b, 0, sizeof(b));
	*key = build_int(&b, "unsigned int", 4, 0);
	lock = build_type(&b, "bpf_spin_lock", BTF_KIND_STRUCT, 1, 0, 4);
	build_member(&b, "val", *key, 0);
	*value = build_type(&b, "locked_value", BTF_KIND_STRUCT, 2, 0, sizeof(struct locked_value));
	build_member(&b, "first", *key, 0);
	build_member(&b, "lock", lock, 32);
	build_end(&b);
	return &b;
}

static int kernel_create_typed(const struct definition *d, const struct build *types, uint32_t key, uint32_t value)
{
	union bpf_attr attr;
	int btf, fd;

	memset(&attr, 0, sizeof(attr));
	attr.btf = (uint64_t)(uintptr_t)types->bytes;
	attr.btf_size = (uint32_t)types->len;
	btf = sys_bpf(BPF_BTF_LOAD, &attr);
	assert_true(btf >= 0);
	memset(&attr, 0, sizeof(attr));
	attr.map_type = d->type;
	attr.key_size = d->key;
	attr.value_size = d->value;
	attr.max_entries = d->max;
	attr.map_flags = d->flags;
	attr.btf_fd = (uint32_t)btf;
	attr.btf_key_type_id = key;
	attr.btf_value_type_id = value;
	fd = sys_bpf(BPF_MAP_CREATE, &attr);
	close(btf);
	return fd;
}

static void same_locked_step(struct test_map *t, int fd, uint64_t *seed)
{
	uint8_t ours[32] = { 0 }, theirs[32] = { 0 }, value[32];
	uint64_t flags = test_below(seed, 8);
	uint32_t key = test_below(seed, 9), i;

	for (i = 0; i < sizeof(value); i++)
		value[i] = (uint8_t)test_random(seed);
	if (test_below(seed, 4) == 0)
		assert_int_equal(leat_bpf_map_delete(&t->map, &key), kernel_do(BPF_MAP_DELETE_ELEM, fd, &key, NULL, 0));
	else
		assert_int_equal(leat_bpf_map_update(&t->map, &key, value, flags),
				 kernel_do(BPF_MAP_UPDATE_ELEM, fd, &key, value, flags));
	assert_int_equal(leat_bpf_map_lookup(&t->map, &key, ours), kernel_do(BPF_MAP_LOOKUP_ELEM, fd, &key, theirs, 0));
	assert_memory_equal(ours, theirs, t->map.value_size);
	assert_int_equal(leat_bpf_map_lookup_locked(&t->map, &key, ours),
			 kernel_do(BPF_MAP_LOOKUP_ELEM, fd, &key, theirs, BPF_F_LOCK));
	assert_memory_equal(ours, theirs, t->map.value_size);
}

static void spin_locks(void **state)
{
	static const struct definition all[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, sizeof(struct locked_value), 6, 0 },
		{ BPF_MAP_TYPE_HASH, 4, sizeof(struct locked_value), 6, 0 },
		{ BPF_MAP_TYPE_HASH, 4, sizeof(struct locked_value), 100, NO_PREALLOC },
		{ BPF_MAP_TYPE_LRU_HASH, 4, sizeof(struct locked_value), 100, 0 },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct locked_value), 6, 0 },
		{ BPF_MAP_TYPE_HASH, 4, sizeof(struct locked_value), 6, BPF_F_RDONLY_PROG },
	};
	uint32_t key, value, round;
	const struct build *types;
	struct leat_btf *btf;
	uint64_t seed = 17;
	struct test_map t;
	size_t i;
	int fd;

	(void)state;
	cpus_or_skip();
	types = locked_types(&key, &value);
	assert_int_equal(leat_btf_create(types->bytes, types->len, NULL, &btf), 0);
	for (i = 0; i < COUNT(all); i++) {
		fd = kernel_create_typed(&all[i], types, key, value);
		test_map_open(&t, 1, all[i].type, 4, all[i].value, all[i].max, all[i].flags);
		t.map.btf_value = value;
		leat_bpf_lock_find(&t.map, btf);
		assert_int_equal(t.map.lock, fd < 0 ? 0 : 1 + offsetof(struct locked_value, lock));
		for (round = 0; fd >= 0 && round < 5000; round++)
			same_locked_step(&t, fd, &seed);
		if (fd >= 0)
			close(fd);
		test_map_close(&t);
	}
	leat_btf_destroy(btf);
}

/* ---- maps of maps ---- */

static const struct definition inner_maps[] = {
	{ BPF_MAP_TYPE_ARRAY, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_ARRAY, 4, 8, 4, 0 },
	{ BPF_MAP_TYPE_ARRAY, 4, 16, 3, 0 },
	{ BPF_MAP_TYPE_ARRAY, 4, 8, 3, BPF_F_INNER_MAP },
	{ BPF_MAP_TYPE_ARRAY, 4, 8, 9, BPF_F_INNER_MAP },
	{ BPF_MAP_TYPE_ARRAY, 4, 8, 3, BPF_F_RDONLY_PROG },
	{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 4, 0 },
	{ BPF_MAP_TYPE_HASH, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_HASH, 4, 8, 30, 0 },
	{ BPF_MAP_TYPE_HASH, 8, 8, 3, 0 },
	{ BPF_MAP_TYPE_HASH, 4, 8, 3, BPF_F_NO_PREALLOC },
	{ BPF_MAP_TYPE_LRU_HASH, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_LRU_HASH, 4, 8, 30, 0 },
	{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 8, 3, 0 },
	{ BPF_MAP_TYPE_LPM_TRIE, 8, 8, 3, BPF_F_NO_PREALLOC },
	{ BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
	{ BPF_MAP_TYPE_RINGBUF, 0, 0, 8192, 0 },
	{ BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 3, 0 },
	{ BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 3, 0 },
};
#define INNER COUNT(inner_maps)

/** An object with all of them, and as many templates. */
struct pairs {
	struct test_bpf t;
	struct leat_bpf_map place[2 * INNER + 1];
	int fd[INNER];
};

static struct leat_bpf_map *define(struct pairs *p, size_t number, const struct definition *d)
{
	struct leat_bpf_map *map = &p->place[number];

	*map = (struct leat_bpf_map){
		.type = leat_bpf_map_type_find(d->type), .env = p->t.env, .obj = &p->t.obj, .number = (uint32_t)number,
		.key_size = d->key, .value_size = d->value, .value_stride = (d->value + 7) & ~7u,
		.max_entries = d->max, .map_flags = d->flags, .cpus = 1,
	};
	return map;
}

static struct pairs *open_pairs(void)
{
	struct pairs *p = NULL;
	size_t i;

	cpus_or_skip();
	assert_int_equal(posix_memalign((void **)&p, LEAT_CACHELINE, sizeof(*p)), 0);
	assert_int_equal(test_bpf_begin(&p->t, 0), 0);
	p->t.obj.map = p->place;
	p->t.obj.n_maps = 2 * INNER + 1;
	for (i = 0; i < INNER; i++) {
		p->fd[i] = kernel_create(&inner_maps[i]);
		assert_true(p->fd[i] >= 0);
		define(p, INNER + i, &inner_maps[i])->template = true;
		assert_int_equal(leat_bpf_map_create(define(p, i, &inner_maps[i]), NULL), 0);
		p->place[i].made = true;
	}
	memset(&p->place[2 * INNER], 0, sizeof(p->place[0]));
	return p;
}

static void close_pairs(struct pairs *p)
{
	size_t i;

	for (i = 0; i < INNER; i++) {
		close(p->fd[i]);
		leat_bpf_map_destroy(&p->place[i]);
	}
	p->t.obj.n_maps = 0;
	test_bpf_end(&p->t);
	free(p);
}

/** Makes it on both sides; *@outer NULL and -1 when both refuse it, which they must do alike. */
static int make_outer(struct pairs *p, const struct definition *d, size_t template, struct leat_bpf_map **outer)
{
	struct leat_bpf_map *map = define(p, 2 * INNER, d);
	int fd = kernel_create_outer(d, p->fd[template]), err;

	map->inner = &p->place[INNER + template];
	err = leat_bpf_map_create(map, NULL);
	if (err != (fd < 0 ? fd : 0))
		fail_msg("outer %u of %zu: kernel %d, we %d", d->type, template, fd < 0 ? fd : 0, err);
	map->made = !err;
	*outer = err ? NULL : map;
	return err ? -1 : fd;
}

static void outer_definitions(void **state)
{
	static const struct definition outers[] = {
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 0, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 8, 4, 2, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 8, 2, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, BPF_F_INNER_MAP },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, BPF_F_MMAPABLE },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, BPF_F_RDONLY_PROG },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, BPF_F_NO_PREALLOC },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 2, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 16, 4, 2, BPF_F_NO_PREALLOC },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 8, 2, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 0, 4, 2, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 0, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 2, BPF_F_NO_COMMON_LRU },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 2, BPF_F_ZERO_SEED },
	};
	struct pairs *p = open_pairs();
	struct leat_bpf_map *outer;
	size_t i, k;
	int fd;

	(void)state;
	for (i = 0; i < COUNT(outers); i++) {
		for (k = 0; k < INNER; k++) {
			fd = make_outer(p, &outers[i], k, &outer);
			if (!outer)
				continue;
			close(fd);
			leat_bpf_map_destroy(outer);
		}
	}
	close_pairs(p);
}

/** Each map into a map of maps with each template, with random keys and flags; deletions; what is there at last. */
static void same_puts(struct pairs *p, struct leat_bpf_map *outer, int fd, uint64_t *seed)
{
	uint32_t key, inner, id;
	unsigned int round;
	int flags, ours, theirs;

	for (round = 0; round < 400; round++) {
		key = test_below(seed, 5);
		inner = test_below(seed, INNER);
		flags = (int)test_below(seed, 4) - 1;
		if (flags < 0) {
			ours = leat_bpf_map_delete(outer, &key);
			theirs = kernel_do(BPF_MAP_DELETE_ELEM, fd, &key, NULL, 0);
		} else {
			ours = leat_bpf_map_update(outer, &key, &inner, (uint64_t)flags);
			theirs = kernel_do(BPF_MAP_UPDATE_ELEM, fd, &key, &p->fd[inner], (uint64_t)flags);
		}
		if (ours != theirs)
			fail_msg("map %u at %u, flags %d: kernel %d, we %d", inner, key, flags, theirs, ours);
		theirs = kernel_do(BPF_MAP_LOOKUP_ELEM, fd, &key, &id, 0);
		assert_int_equal(leat_bpf_map_lookup(outer, &key, &inner), theirs);
	}
	/* what is no map at all, by our number and by a descriptor that is closed */
	key = 0;
	inner = 2 * INNER + 9;
	theirs = 1023;
	assert_int_equal(leat_bpf_map_update(outer, &key, &inner, BPF_ANY),
			 kernel_do(BPF_MAP_UPDATE_ELEM, fd, &key, &theirs, BPF_ANY));
	assert_int_equal(leat_bpf_map_update(outer, &key, &inner, BPF_F_LOCK),
			 kernel_do(BPF_MAP_UPDATE_ELEM, fd, &key, &theirs, BPF_F_LOCK));
}

static void inner_maps_that_fit(void **state)
{
	static const struct definition outers[] = { { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4, 0 },
						    { BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 3, 0 } };
	struct pairs *p = open_pairs();
	struct leat_bpf_map *outer;
	uint64_t seed = 3;
	size_t i, k;
	int fd;

	(void)state;
	for (i = 0; i < COUNT(outers); i++) {
		for (k = 0; k < INNER; k++) {
			fd = make_outer(p, &outers[i], k, &outer);
			if (!outer)
				continue;
			same_puts(p, outer, fd, &seed);
			close(fd);
			leat_bpf_map_destroy(outer);
		}
	}
	close_pairs(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definitions),
		cmocka_unit_test(operations),
		cmocka_unit_test(spin_locks),
		cmocka_unit_test(outer_definitions),
		cmocka_unit_test(inner_maps_that_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
