/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * helpers_test.c: what helper functions return: checksums against a naive sum, traces, packet edges and bytes, rings,
 * time and random numbers of a replay.
 */
#include "bpf/map/test_map.h"

#include "bpf/prog.h"

/** A run on a packet of 100 bytes in a buffer of 1024, 256 bytes in. */
struct helper_run {
	struct test_map t;
	struct leat_bpf_run run;
	struct leat_xdp_buff xdp;
	uint8_t buffer[1024] __attribute__((aligned(512)));
	char line[2048];
	unsigned int lines;
};

static void trace(void *arg, const char *line)
{
	struct helper_run *h = arg;

	snprintf(h->line, sizeof(h->line), "%s", line);
	h->lines++;
}

static void helper_open(struct helper_run *h, uint32_t type, uint32_t key, uint32_t value, uint32_t max)
{
	unsigned int i;

	memset(h, 0, sizeof(*h));
	test_map_open(&h->t, 2, type, key, value, max, 0);
	h->t.env->trace = trace;
	h->t.env->trace_arg = h;
	for (i = 0; i < sizeof(h->buffer); i++)
		h->buffer[i] = (uint8_t)i;
	h->xdp.run = leat_run_make((uint64_t)(uintptr_t)h->buffer, 2);
	h->xdp.data = h->xdp.data_meta = h->buffer + 256;
	h->xdp.data_end = h->xdp.data + 100;
	h->run = (struct leat_bpf_run){
		.xdp = &h->xdp, .env = h->t.env, .cpu = 1, .stack = h->t.env->cpu[1].stack, .frames = 1,
		.fuel = h->t.env->fuel
	};
}

static int64_t call(struct helper_run *h, int32_t id, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	const struct leat_bpf_helper *helper = leat_bpf_helper_find(id);

	assert_non_null(helper);
	assert_int_equal(helper->id, id);
	return (int64_t)helper->fn(&h->run, a1, a2, a3, a4, a5);
}

static uint64_t ptr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- checksums ---- */

/** By the definition: 16-bit words, the last one filled up, each carry added at once. */
static uint32_t naive_sum(const uint8_t *data, uint32_t size, bool negative, uint32_t sum)
{
	uint16_t word;
	uint32_t i;

	for (i = 0; i < size; i += 2) {
		word = 0;
		memcpy(&word, data + i, size - i < 2 ? size - i : 2);
		sum += negative ? (uint16_t)~word : word;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static void checksum_differences(void **state)
{
	uint64_t seed = 3, got;
	uint8_t from[256], to[256];
	uint32_t start, want, fs, ts;
	unsigned int i, fo, so;
	struct helper_run h;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
	for (i = 0; i < sizeof(from); i++) {
		from[i] = (uint8_t)test_random(&seed);
		to[i] = (uint8_t)test_random(&seed);
	}
	for (i = 0; i < 20000; i++) {
		fs = test_below(&seed, 160);
		ts = test_below(&seed, 160);
		fo = test_below(&seed, 8);
		so = test_below(&seed, 8);
		start = (uint32_t)test_random(&seed);
		got = (uint64_t)call(&h, BPF_FUNC_csum_diff, ptr(from + fo), fs, ptr(to + so), ts, start);
		want = (start & 0xffff) + (start >> 16);
		want = (want & 0xffff) + (want >> 16);
		want = naive_sum(from + fo, fs, true, want);
		want = naive_sum(to + so, ts, false, want);
		assert_true(got <= 0xffff);
		assert_true(got % 0xffff == want % 0xffff);
	}
	assert_int_equal(call(&h, BPF_FUNC_csum_diff, 0, 0, 0, 0, 0x10001), 2);
	test_map_close(&h.t);
}

/* ---- traces ---- */

static void traces(void **state)
{
	static const struct {
		const char *fmt;
		uint64_t a, b, c;
		const char *line; /* NULL: refused */
	} all[] = {
		{ "plain", 0, 0, 0, "plain" },
		{ "line\n", 0, 0, 0, "line" },
		{ "%d %u %x", (uint64_t)-1, UINT64_MAX, 0xabcdef0123456789, "-1 4294967295 23456789" },
		{ "%ld %lu %lx", (uint64_t)-5, 5, UINT64_MAX, "-5 5 ffffffffffffffff" },
		{ "%lld %llu %llX", (uint64_t)-5, 5, 0xab, "-5 5 AB" },
		{ "%i|%5d|%-5d|", 3, 4, 5, "3|    4|5    |" },
		{ "%05d %+d % d", 42, 42, 42, "00042 +42  42" },
		{ "%c%c%%", 'a', 'b', 0, "ab%" },
		{ "%p", 0x1234, 0, 0, "0000000000001234" },
		{ "%p.", 0x1234, 0, 0, "0000000000001234." },
		{ "%px", 0x1234, 0, 0, "1234" },
		{ "%s!", 8, 0, 0, "!" }, /* no memory of the program's */
		{ "%d %d %d %d", 0, 0, 0, NULL },
		{ "%", 0, 0, 0, NULL },
		{ "%q", 0, 0, 0, NULL },
		{ "%llld", 0, 0, 0, NULL },
		{ "%n", 0, 0, 0, NULL },
		{ "%f", 0, 0, 0, NULL },
		{ "%#x", 0, 0, 0, NULL },
		{ "%pq", 0, 0, 0, NULL },
		{ "%1000000d", 0, 0, 0, NULL },
		{ "\x80", 0, 0, 0, NULL },
		{ "\x01", 0, 0, 0, NULL },
	};
	struct helper_run h;
	unsigned int lines;
	int64_t got;
	size_t i;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
	for (i = 0; i < COUNT(all); i++) {
		lines = h.lines;
		got = call(&h, BPF_FUNC_trace_printk, ptr(all[i].fmt), strlen(all[i].fmt) + 1, all[i].a, all[i].b,
			   all[i].c);
		assert_int_equal(h.lines - lines, all[i].line != NULL);
		if (!all[i].line) {
			assert_int_equal(got, -EINVAL);
			continue;
		}
		assert_string_equal(h.line, all[i].line);
		assert_true(got >= (int64_t)strlen(all[i].line));
	}
	assert_int_equal(call(&h, BPF_FUNC_trace_printk, ptr("abc"), 3, 0, 0, 0), -EINVAL); /* no NUL */
	h.t.env->trace = NULL;
	assert_int_equal(call(&h, BPF_FUNC_trace_printk, ptr("abc"), 4, 0, 0, 0), 3);
	test_map_close(&h.t);
}

/** As many arguments as there are bytes of them, up to 12. */
static void traces_of_many(void **state)
{
	const uint64_t args[13] = { 1, (uint64_t)-2, 3, 4, 5, 6, 7, 8, 9, 10, 11, UINT64_MAX, 13 };
	static const char all[] = "%d %d %d %d %d %d %d %d %d %d %d %lx", four[] = "%u%u%u%u", none[] = "none";
	struct leat_bpf_lent lent = { .bytes = "\x0a\x00\x00\x01", .size = 4 };
	uint64_t address = ptr(lent.bytes);
	struct helper_run h;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
	h.run.fuel = 5 * LEAT_BPF_FUEL_TRACE;
	assert_int_equal(call(&h, BPF_FUNC_trace_vprintk, ptr(all), sizeof(all), ptr(args), 96, 0), 41);
	assert_string_equal(h.line, "1 -2 3 4 5 6 7 8 9 10 11 ffffffffffffffff");
	assert_int_equal(call(&h, BPF_FUNC_trace_vprintk, ptr(none), sizeof(none), 0, 0, 0), 4);
	assert_string_equal(h.line, "none");
	assert_int_equal(h.lines, 2);
	assert_int_equal(call(&h, BPF_FUNC_trace_vprintk, ptr(four), sizeof(four), ptr(args), 24, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_trace_vprintk, ptr(four), sizeof(four), ptr(args), 33, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_trace_vprintk, ptr(none), sizeof(none), ptr(args), 104, 0), -EINVAL);
	assert_int_equal(h.lines, 2);
	/* a key that a callback was given can be read, and no byte more */
	h.run.lent = &lent;
	call(&h, BPF_FUNC_trace_vprintk, ptr("%pI4"), 5, ptr(&address), 8, 0);
	assert_string_equal(h.line, "10.0.0.1");
	lent.size = 3;
	call(&h, BPF_FUNC_trace_vprintk, ptr("<%pI4>"), 7, ptr(&address), 8, 0);
	assert_string_equal(h.line, "<>");
	assert_int_equal(h.run.fuel, 0);
	test_map_close(&h.t);
}

/** A trace is much work, and whoever gets the lines has some, too. */
static void traces_cost_fuel(void **state)
{
	struct helper_run h;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 8, 1);
	h.run.fuel = 2 * LEAT_BPF_FUEL_TRACE + 1;
	assert_int_equal(call(&h, BPF_FUNC_trace_printk, ptr("a"), 2, 0, 0, 0), 1);
	assert_int_equal(call(&h, BPF_FUNC_trace_printk, ptr("a"), 2, 0, 0, 0), 1);
	assert_int_equal(h.run.fuel, 1);
	assert_int_equal(h.run.trap, 0);
	call(&h, BPF_FUNC_trace_printk, ptr("a"), 2, 0, 0, 0);
	assert_int_equal(h.run.trap, 1 + LEAT_BPF_TRAP_FUEL);
	assert_int_equal(h.lines, 2);
	test_map_close(&h.t);
}

static void traces_read_only_what_is_the_programs(void **state)
{
	struct leat_bpf_object obj = { .n_maps = 1 };
	struct leat_bpf_prog prog = { .obj = &obj };
	struct helper_run h;
	uint32_t key = 0;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 8, 1);
	obj.map = &h.t.map;
	h.t.map.made = true;
	h.run.prog = &prog;
	assert_int_equal(leat_bpf_map_update(&h.t.map, &key, "in map\0", BPF_ANY), 0);
	strcpy((char *)h.run.stack + 100, "on stack");
	memcpy(h.xdp.data, "\x0a\x00\x01\xff", 4);
	call(&h, BPF_FUNC_trace_printk, ptr("%s %10s"), 8, ptr(prog_lookup(&h.t, &key, 0)), ptr(h.run.stack + 100), 0);
	assert_string_equal(h.line, "in map   on stack");
	call(&h, BPF_FUNC_trace_printk, ptr("%pI4 %pi4 %pks"), 15, ptr(h.xdp.data), ptr(h.xdp.data),
	     ptr(h.run.stack + 100));
	assert_string_equal(h.line, "10.0.1.255 010.000.001.255 on stack");
	memset(h.xdp.data, 0x11, 16);
	call(&h, BPF_FUNC_trace_printk, ptr("%pI6 %pi6"), 10, ptr(h.xdp.data), ptr(h.xdp.data), 0);
	assert_string_equal(h.line, "1111:1111:1111:1111:1111:1111:1111:1111 11111111111111111111111111111111");
	/* a value full of text does not end within itself */
	assert_int_equal(leat_bpf_map_update(&h.t.map, &key, "12345678", BPF_ANY), 0);
	call(&h, BPF_FUNC_trace_printk, ptr("<%s>"), 5, ptr(prog_lookup(&h.t, &key, 0)), 0, 0);
	assert_string_equal(h.line, "<>");
	call(&h, BPF_FUNC_trace_printk, ptr("<%pI4>"), 7, ptr(h.xdp.data_end - 3), 0, 0);
	assert_string_equal(h.line, "<>");
	call(&h, BPF_FUNC_trace_printk, ptr("%999d%999d"), 11, 1, 2, 0);
	assert_int_equal(strlen(h.line), 1023);
	test_map_close(&h.t);
}

/* ---- packets ---- */

static void packet_edges(void **state)
{
	struct helper_run h;
	uint8_t bytes[200];

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
	assert_int_equal(call(&h, BPF_FUNC_xdp_get_buff_len, 0, 0, 0, 0, 0), 100);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_head, 0, (uint64_t)-216, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_head, 0, (uint64_t)-1, 0, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_head, 0, 303, 0, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_head, 0, 216, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_meta, 0, (uint64_t)-8, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_meta, 0, (uint64_t)-3, 0, 0, 0), -EACCES);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_meta, 0, 12, 0, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_meta, 0, (uint64_t)-300, 0, 0, 0), -EINVAL);
	assert_int_equal(h.xdp.data - h.xdp.data_meta, 8);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_tail, 0, 4, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_tail, 0, 900, 0, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_tail, 0, (uint64_t)-4, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 10, ptr(bytes), 90, 0), 0);
	assert_memory_equal(bytes, h.xdp.data + 10, 90);
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 10, ptr(bytes), 91, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 0x10000, ptr(bytes), 1, 0), -EFAULT);
	assert_int_equal(call(&h, BPF_FUNC_xdp_store_bytes, 0, 98, ptr("ab"), 2, 0), 0);
	assert_memory_equal(h.xdp.data + 98, "ab", 2);
	test_map_close(&h.t);
}

/** A packet of a linear part and two fragments, of which bytes are taken across their borders. */
static void bytes_of_fragments(void **state)
{
	struct leat_xdp_frags frags = { .n = 2, .len = 30 };
	uint8_t bytes[130], want[130];
	struct helper_run h;
	uint32_t off, len;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
	frags.frag[0] = (struct leat_frag){ leat_run_make(ptr(h.buffer + 512), 1), 4, 10 };
	frags.frag[1] = (struct leat_frag){ leat_run_make(ptr(h.buffer + 512), 1), 100, 20 };
	h.xdp.frags = &frags;
	memcpy(want, h.xdp.data, 100);
	memcpy(want + 100, h.buffer + 516, 10);
	memcpy(want + 110, h.buffer + 612, 20);
	for (off = 90; off <= 130; off++) {
		for (len = 1; len <= 130 - off; len++) {
			memset(bytes, 0, sizeof(bytes));
			assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, off, ptr(bytes), len, 0), 0);
			assert_memory_equal(bytes, want + off, len);
		}
	}
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 130, ptr(bytes), 1, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_store_bytes, 0, 95, ptr("0123456789abcdefghi"), 19, 0), 0);
	assert_memory_equal(h.xdp.data + 95, "01234", 5);
	assert_memory_equal(h.buffer + 516, "56789abcde", 10);
	assert_memory_equal(h.buffer + 612, "fghi", 4);
	/* the tail is the last fragment's */
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_tail, 0, (uint64_t)-117, 0, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_adjust_tail, 0, (uint64_t)-5, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_xdp_get_buff_len, 0, 0, 0, 0, 0), 125);
	assert_int_equal(frags.frag[1].len, 15);
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 120, ptr(bytes), 6, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_xdp_load_bytes, 0, 120, ptr(bytes), 5, 0), 0);
	test_map_close(&h.t);
}

/* ---- maps and rings ---- */

static void maps(void **state)
{
	struct helper_run h;
	uint64_t key = 5, value = 6;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_PERCPU_HASH, 8, 8, 1);
	assert_int_equal(call(&h, BPF_FUNC_map_lookup_elem, ptr(&h.t.map), ptr(&key), 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_map_update_elem, ptr(&h.t.map), ptr(&key), ptr(&value), 0, 0), 0);
	assert_ptr_equal(call(&h, BPF_FUNC_map_lookup_elem, ptr(&h.t.map), ptr(&key), 0, 0, 0),
			 prog_lookup(&h.t, &key, 1));
	assert_int_equal(*(uint64_t *)prog_lookup(&h.t, &key, 1), 6);
	assert_int_equal(*(uint64_t *)prog_lookup(&h.t, &key, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_map_delete_elem, ptr(&h.t.map), ptr(&key), 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_map_delete_elem, ptr(&h.t.map), ptr(&key), 0, 0, 0), -ENOENT);
	h.t.map.map_flags = BPF_F_RDONLY_PROG;
	assert_int_equal(call(&h, BPF_FUNC_map_update_elem, ptr(&h.t.map), ptr(&key), ptr(&value), 0, 0), -EPERM);
	/* the wrong type of map is no way to memory */
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_reserve, ptr(&h.t.map), 8, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_output, ptr(&h.t.map), ptr(&key), 8, 0, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, ptr(&h.t.map), 1, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, ptr(&h.t.map), 0, ptr(&key), 8), -EINVAL);
	test_map_close(&h.t);
}

/** Another program that writes the key: a race, on purpose, which a sanitizer need not see. */
__attribute__((no_sanitize("thread"))) static void *count_on(void *arg)
{
	volatile uint64_t *key = arg;
	uint64_t n;

	for (n = 0; __atomic_load_n(&key[1], __ATOMIC_RELAXED); n++)
		key[0] = n;
	return NULL;
}

/** A key that changes while it is used: what gets into the map can be found, and a walk over the keys ends. */
static void keys_that_change(void **state)
{
	uint64_t shared[2] = { 0, 1 }, key, value = 5;
	struct helper_run h;
	pthread_t thread;
	unsigned int i;
	int err;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_LRU_HASH, 8, 8, 64);
	assert_int_equal(pthread_create(&thread, NULL, count_on, shared), 0);
	for (i = 0; i < 300000; i++)
		assert_int_equal(call(&h, BPF_FUNC_map_update_elem, ptr(&h.t.map), ptr(shared), ptr(&value), 0, 0), 0);
	__atomic_store_n(&shared[1], 0, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	err = leat_bpf_map_next_key(&h.t.map, NULL, &key);
	for (i = 0; !err && i <= 64; i++) {
		assert_int_equal(leat_bpf_map_lookup(&h.t.map, &key, &value), 0);
		err = leat_bpf_map_next_key(&h.t.map, &key, &key);
	}
	assert_int_equal(err, -ENOENT);
	test_map_close(&h.t);
}

static void ring_buffers(void **state)
{
	struct helper_run h;
	uint64_t map, record[LEAT_BPF_RECORDS_MAX];
	unsigned int i;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096);
	map = ptr(&h.t.map);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_output, map, ptr("hello"), 5, BPF_RB_NO_WAKEUP, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_output, map, ptr("hello"), 5, 4, 0), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_output, map, ptr("hello"), 5000, 0, 0), -EAGAIN);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, map, BPF_RB_AVAIL_DATA, 0, 0, 0), 16);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, map, BPF_RB_RING_SIZE, 0, 0, 0), 4096);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, map, BPF_RB_PROD_POS, 0, 0, 0), 16);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, map, BPF_RB_CONS_POS, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_query, map, 99, 0, 0, 0), 0);
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_reserve, map, 8, 1, 0, 0), 0);
	for (i = 0; i < LEAT_BPF_RECORDS_MAX; i++) {
		record[i] = (uint64_t)call(&h, BPF_FUNC_ringbuf_reserve, map, 8, 0, 0, 0);
		assert_true(record[i] && h.run.record->size == 8 && ptr(h.run.record->data) == record[i]);
	}
	assert_int_equal(call(&h, BPF_FUNC_ringbuf_reserve, map, 8, 0, 0, 0), 0);
	call(&h, BPF_FUNC_ringbuf_submit, record[3], 0, 0, 0, 0);
	call(&h, BPF_FUNC_ringbuf_submit, record[3], 0, 0, 0, 0); /* not held any more: nothing */
	call(&h, BPF_FUNC_ringbuf_discard, record[0], 0, 0, 0, 0);
	assert_int_equal(leat_bpf_ringbuf_size((void *)(uintptr_t)record[3]), 8);
	leat_bpf_run_release(&h.run);
	assert_null(h.run.record);
	assert_true(call(&h, BPF_FUNC_ringbuf_reserve, map, 8, 0, 0, 0) != 0);
	leat_bpf_run_release(&h.run);
	test_map_close(&h.t);
}

static void perf_events(void **state)
{
	const uint64_t current = BPF_F_CURRENT_CPU;
	struct helper_run h;
	uint64_t map;

	(void)state;
	helper_open(&h, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 3);
	map = ptr(&h.t.map);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, current, ptr("abc"), 3), 0);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, 1, ptr("abc"), 3), 0);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, current | 100ull << 32, ptr("abc"), 3), 0);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, current | 101ull << 32, ptr("abc"), 3), -EFAULT);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, 1ull << 52, ptr("abc"), 3), -EINVAL);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, 0, ptr("abc"), 3), -EOPNOTSUPP);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, 2, ptr("abc"), 3), -ENOENT);
	assert_int_equal(call(&h, BPF_FUNC_perf_event_output, 0, map, 3, ptr("abc"), 3), -E2BIG);
	test_map_close(&h.t);
}

static void replays_repeat(void **state)
{
	uint64_t first[2][16];
	struct helper_run h;
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 2; round++) {
		helper_open(&h, BPF_MAP_TYPE_ARRAY, 4, 4, 1);
		for (i = 0; i < 16; i++) {
			h.run.cpu = i % 2;
			first[round][i] = (uint64_t)call(&h, BPF_FUNC_get_prandom_u32, 0, 0, 0, 0, 0);
			assert_true(first[round][i] <= UINT32_MAX);
		}
		assert_int_equal(call(&h, BPF_FUNC_get_smp_processor_id, 0, 0, 0, 0, 0), 1);
		leat_bpf_env_set_time(h.t.env, 8000000000);
		assert_true(call(&h, BPF_FUNC_ktime_get_ns, 0, 0, 0, 0, 0) == 8000000000);
		assert_true(call(&h, BPF_FUNC_ktime_get_boot_ns, 0, 0, 0, 0, 0) == 8000000000);
		assert_true(call(&h, BPF_FUNC_ktime_get_tai_ns, 0, 0, 0, 0, 0) == 8000000000);
		assert_true(call(&h, BPF_FUNC_ktime_get_coarse_ns, 0, 0, 0, 0, 0) == 8000000000);
		assert_int_equal(call(&h, BPF_FUNC_jiffies64, 0, 0, 0, 0, 0), 2000);
		h.t.env->replay = false;
		assert_true(call(&h, BPF_FUNC_ktime_get_ns, 0, 0, 0, 0, 0) != 8000000000);
		test_map_close(&h.t);
	}
	assert_memory_equal(first[0], first[1], sizeof(first[0]));
	assert_true(first[0][0] != first[0][1]);
	assert_null(leat_bpf_helper_find(BPF_FUNC_fib_lookup));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_differences),
		cmocka_unit_test(traces),
		cmocka_unit_test(traces_of_many),
		cmocka_unit_test(traces_cost_fuel),
		cmocka_unit_test(traces_read_only_what_is_the_programs),
		cmocka_unit_test(packet_edges),
		cmocka_unit_test(bytes_of_fragments),
		cmocka_unit_test(maps),
		cmocka_unit_test(keys_that_change),
		cmocka_unit_test(ring_buffers),
		cmocka_unit_test(perf_events),
		cmocka_unit_test(replays_repeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
