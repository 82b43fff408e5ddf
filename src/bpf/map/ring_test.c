/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_test.c: RINGBUF and PERF_EVENT_ARRAY: order, wrap, busy and discarded records, full rings, many writers.
 */
#include "bpf/map/test_map.h"

#include <sched.h>

#define SIZE 4096u

/** Records taken, one after the other. */
struct taken {
	unsigned int n;
	int cpu[64];
	uint32_t size[64];
	uint8_t first[64];
	int stop_at; /* returns -EINTR at this record; -1: never */
};

static int take(void *arg, int cpu, const void *data, uint32_t size)
{
	struct taken *t = arg;

	assert_true(t->n < COUNT(t->size));
	t->cpu[t->n] = cpu;
	t->size[t->n] = size;
	t->first[t->n] = size ? *(const uint8_t *)data : 0;
	return (int)t->n++ == t->stop_at ? -EINTR : 0;
}

static void *reserve(struct test_map *t, uint32_t size, uint8_t fill)
{
	uint8_t *record = leat_bpf_ringbuf_reserve(&t->map, size);

	if (record) {
		assert_int_equal(leat_bpf_ringbuf_size(record), size);
		memset(record, fill, size);
	}
	return record;
}

static void records_come_in_order(void **state)
{
	struct taken got = { .stop_at = -1 };
	struct test_map t;
	void *a, *b, *c;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_RINGBUF, 0, 0, SIZE, 0);
	a = reserve(&t, 10, 'a');
	b = reserve(&t, 0, 'b');
	c = reserve(&t, 17, 'c');
	leat_bpf_ringbuf_submit(c, false);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 0); /* a is busy */
	leat_bpf_ringbuf_submit(a, false);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 1);
	leat_bpf_ringbuf_submit(b, true);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 1); /* b was discarded */
	assert_int_equal(got.n, 2);
	assert_true(got.cpu[0] == -1 && got.size[0] == 10 && got.first[0] == 'a');
	assert_true(got.size[1] == 17 && got.first[1] == 'c');
	assert_int_equal(leat_bpf_map_lookup(&t.map, a, a), -EOPNOTSUPP);
	assert_int_equal(leat_bpf_map_update(&t.map, a, a, BPF_ANY), -EOPNOTSUPP);
	assert_int_equal(leat_bpf_map_delete(&t.map, a), -EOPNOTSUPP);
	assert_int_equal(leat_bpf_map_next_key(&t.map, NULL, a), -EOPNOTSUPP);
	test_map_close(&t);
}

static void a_reader_may_stop(void **state)
{
	struct taken got = { .stop_at = 1 };
	struct test_map t;
	unsigned int i;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_RINGBUF, 0, 0, SIZE, 0);
	for (i = 0; i < 4; i++)
		leat_bpf_ringbuf_submit(reserve(&t, 8, (uint8_t)i), false);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), -EINTR);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 2);
	assert_true(got.n == 4 && got.first[3] == 3);
	test_map_close(&t);
}

/** At most one byte less than its size, heads included; as in the kernel. */
static void full_rings_lose(void **state)
{
	struct taken got = { .stop_at = -1 };
	struct test_map t;
	void *record;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_RINGBUF, 0, 0, SIZE, 0);
	assert_null(reserve(&t, SIZE, 0));
	assert_null(reserve(&t, SIZE - 8, 0));
	assert_null(reserve(&t, UINT32_MAX, 0));
	assert_true(leat_bpf_map_lost(&t.map) == 3);
	record = reserve(&t, SIZE - 16, 1);
	assert_non_null(record);
	assert_null(reserve(&t, 0, 0));
	leat_bpf_ringbuf_submit(record, true);
	assert_null(reserve(&t, 0, 0)); /* not yet read */
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 0);
	assert_non_null(reserve(&t, 0, 0));
	assert_true(leat_bpf_map_lost(&t.map) == 5);
	test_map_close(&t);
}

static int check_wrap(void *arg, int cpu, const void *data, uint32_t size)
{
	const uint8_t *bytes = data;
	unsigned int *n = arg;
	uint32_t i;

	(void)cpu;
	assert_int_equal(size, 1 + *n * 7 % 900);
	for (i = 0; i < size; i++)
		assert_int_equal(bytes[i], (uint8_t)*n);
	(*n)++;
	return 0;
}

static void records_pass_the_end(void **state)
{
	unsigned int i, n = 0, rounds = TEST_ROUNDS(100000);
	struct test_map t;
	void *record;

	(void)state;
	test_map_open(&t, 1, BPF_MAP_TYPE_RINGBUF, 0, 0, SIZE, 0);
	for (i = 0; i < rounds; i++) {
		record = reserve(&t, 1 + i * 7 % 900, (uint8_t)i);
		assert_non_null(record);
		leat_bpf_ringbuf_submit(record, false);
		if (i % 3 == 0)
			assert_true(leat_bpf_map_consume(&t.map, check_wrap, &n) > 0);
	}
	leat_bpf_map_consume(&t.map, check_wrap, &n);
	assert_int_equal(n, rounds);
	test_map_close(&t);
}

/* ---- many writers ---- */

#define WRITERS 3u

struct ring_threads {
	struct test_map t;
	unsigned int rounds;
	uint64_t next[WRITERS]; /* what the reader must see next of each */
	uint64_t gone;          /* discarded; counted by writers (atomic) */
};

struct ring_writer {
	struct ring_threads *all;
	unsigned int id;
};

struct record {
	uint64_t id, number;
	uint64_t fill[6];
};

static void *ring_writer(void *arg)
{
	struct ring_writer *w = arg;
	uint64_t i, n = 0, f, words;
	struct record *r;

	for (i = 0; n < w->all->rounds; i++) {
		words = i % 7;
		r = leat_bpf_ringbuf_reserve(&w->all->t.map, (uint32_t)(16 + 8 * words));
		if (!r) {
			sched_yield();
			continue;
		}
		r->id = w->id;
		r->number = n;
		for (f = 0; f < words; f++)
			r->fill[f] = n ^ f;
		leat_bpf_ringbuf_submit(r, i % 5 == 0);
		if (i % 5 == 0)
			__atomic_fetch_add(&w->all->gone, 1, __ATOMIC_RELAXED);
		else
			n++;
	}
	return NULL;
}

static int check_record(void *arg, int cpu, const void *data, uint32_t size)
{
	struct ring_threads *all = arg;
	const struct record *r = data;
	uint64_t f;

	(void)cpu;
	assert_true(r->id < WRITERS);
	assert_true(r->number == all->next[r->id]++);
	for (f = 0; f < (size - 16) / 8; f++)
		assert_true(r->fill[f] == (r->number ^ f));
	return 0;
}

static void many_writers(void **state)
{
	struct ring_threads *all = NULL;
	struct ring_writer w[WRITERS];
	pthread_t thread[WRITERS];
	unsigned int i;
	uint64_t n = 0;
	int got;

	(void)state;
	assert_int_equal(posix_memalign((void **)&all, LEAT_CACHELINE, sizeof(*all)), 0);
	memset(all, 0, sizeof(*all));
	all->rounds = TEST_ROUNDS(200000);
	test_map_open(&all->t, WRITERS, BPF_MAP_TYPE_RINGBUF, 0, 0, SIZE, 0);
	for (i = 0; i < WRITERS; i++) {
		w[i] = (struct ring_writer){ all, i };
		assert_int_equal(pthread_create(&thread[i], NULL, ring_writer, &w[i]), 0);
	}
	while (n < (uint64_t)WRITERS * all->rounds) {
		got = leat_bpf_map_consume(&all->t.map, check_record, all);
		assert_true(got >= 0);
		n += (uint64_t)got;
		if (!got)
			sched_yield();
	}
	for (i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	test_map_close(&all->t);
	free(all);
}

/* ---- perf ---- */

static void perf_records(void **state)
{
	struct taken got = { .stop_at = -1 };
	uint8_t packet[100], big[64 * 1024] = { 0 };
	struct leat_xdp_buff xdp = { .data = packet, .data_end = packet + sizeof(packet), .data_meta = packet };
	unsigned int n = 0;
	struct test_map t;

	(void)state;
	memset(packet, 'p', sizeof(packet));
	test_map_open(&t, 2, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 8, 0);
	assert_int_equal(leat_bpf_perf_output(&t.map, 1, "one", 3, &xdp, 100), 0);
	assert_int_equal(leat_bpf_perf_output(&t.map, 0, "two", 3, &xdp, 0), 0);
	assert_int_equal(leat_bpf_perf_output(&t.map, 0, NULL, 0, &xdp, 7), 0);
	assert_int_equal(leat_bpf_perf_output(&t.map, 2, "none", 4, &xdp, 0), -ENOENT);
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), 3);
	assert_true(got.cpu[0] == 0 && got.size[0] == 3 && got.first[0] == 't');
	assert_true(got.cpu[1] == 0 && got.size[1] == 7 && got.first[1] == 'p');
	assert_true(got.cpu[2] == 1 && got.size[2] == 103 && got.first[2] == 'o');
	while (!leat_bpf_perf_output(&t.map, 0, big, sizeof(big), &xdp, 0))
		n++;
	assert_true(n >= 6 && n < 9);
	assert_int_equal(leat_bpf_perf_output(&t.map, 0, big, UINT32_MAX, &xdp, 0), -ENOSPC);
	assert_true(leat_bpf_map_lost(&t.map) == 2);
	got.n = 0;
	assert_int_equal(leat_bpf_map_consume(&t.map, take, &got), n);
	test_map_close(&t);
}

struct perf_threads {
	struct test_map t;
	unsigned int rounds;
	uint64_t seen, last;
	uint32_t done; /* atomic */
};

static void *perf_writer(void *arg)
{
	struct perf_threads *all = arg;
	const struct leat_xdp_buff none = { .data = NULL };
	uint64_t data[30], i, f;

	for (i = 1; i <= all->rounds; i++) {
		for (f = 0; f < COUNT(data); f++)
			data[f] = i;
		leat_bpf_perf_output(&all->t.map, 0, data, (uint32_t)(8 + i * 4 % 233), &none, 0);
	}
	__atomic_store_n(&all->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int check_perf(void *arg, int cpu, const void *data, uint32_t size)
{
	struct perf_threads *all = arg;
	uint64_t i, f;

	(void)cpu;
	memcpy(&i, data, 8);
	assert_true(i > all->last && size == 8 + i * 4 % 233);
	for (f = 1; f < size / 8; f++)
		assert_memory_equal((const uint8_t *)data + 8 * f, data, 8);
	all->last = i;
	all->seen++;
	return 0;
}

static void perf_writer_and_reader(void **state)
{
	struct perf_threads *all = NULL;
	pthread_t thread;
	uint32_t done;

	(void)state;
	assert_int_equal(posix_memalign((void **)&all, LEAT_CACHELINE, sizeof(*all)), 0);
	memset(all, 0, sizeof(*all));
	all->rounds = TEST_ROUNDS(500000);
	test_map_open(&all->t, 1, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);
	assert_int_equal(pthread_create(&thread, NULL, perf_writer, all), 0);
	do {
		done = __atomic_load_n(&all->done, __ATOMIC_ACQUIRE);
		assert_true(leat_bpf_map_consume(&all->t.map, check_perf, all) >= 0);
	} while (!done);
	pthread_join(thread, NULL);
	assert_true(all->seen + leat_bpf_map_lost(&all->t.map) == all->rounds);
	test_map_close(&all->t);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_order),
		cmocka_unit_test(a_reader_may_stop),
		cmocka_unit_test(full_rings_lose),
		cmocka_unit_test(records_pass_the_end),
		cmocka_unit_test(many_writers),
		cmocka_unit_test(perf_records),
		cmocka_unit_test(perf_writer_and_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
