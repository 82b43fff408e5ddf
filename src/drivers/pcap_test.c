/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_test.c: captures in and out. The captures are written here byte by byte, whole and broken in every way, into a
 * folder of their own. The worker is polled on the test's thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "xdp/test_port.h"

static char folder[256];

/* A file under construction. */
struct capture {
	uint8_t *bytes;
	size_t len, size;
};

static void add(struct capture *c, const void *bytes, size_t len)
{
	if (c->size < c->len + len + 1) {
		c->size = 2 * (c->len + len + 1);
		c->bytes = realloc(c->bytes, c->size);
	}
	assert_non_null(c->bytes);
	memcpy(c->bytes + c->len, bytes, len);
	c->len += len;
}

static void add_u32(struct capture *c, uint32_t v)
{
	add(c, &v, sizeof(v));
}

#define MAGIC_MICRO 0xa1b2c3d4u
#define MAGIC_NANO 0xa1b23c4du

/* The header as tcpdump writes it. */
static void add_header(struct capture *c, uint32_t magic, uint32_t linktype)
{
	static const uint16_t version[2] = { 2, 4 };

	add_u32(c, magic);
	add(c, version, sizeof(version));
	add_u32(c, 0);
	add_u32(c, 0);
	add_u32(c, 262144);
	add_u32(c, linktype);
}

static void add_record_header(struct capture *c, uint32_t sec, uint32_t frac, uint32_t caplen, uint32_t len)
{
	add_u32(c, sec);
	add_u32(c, frac);
	add_u32(c, caplen);
	add_u32(c, len);
}

/* The @n-th packet, @len bytes; a copy in @frame if that is not NULL. */
static void add_packet(struct capture *c, uint32_t n, uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1);
	uint32_t i;

	assert_non_null(frame);
	for (i = 0; i < len; i++)
		frame[i] = (uint8_t)(i < 12 ? 2 * i : i * 7 + n); /* both addresses are individual ones */
	add_record_header(c, 1000000000 + n, n % 1000000, len, len);
	add(c, frame, len);
	free(frame);
}

static const char *path_of(const char *name)
{
	static char path[4][512];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void save(struct capture *c, const char *name)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(c->bytes, 1, c->len, f), c->len);
	assert_int_equal(fclose(f), 0);
}

static void drop(struct capture *c)
{
	free(c->bytes);
	memset(c, 0, sizeof(*c));
}

static void load(struct capture *c, const char *name)
{
	FILE *f = fopen(path_of(name), "rb");
	uint8_t buf[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof(buf), f)))
		add(c, buf, n);
	fclose(f);
}

/* "file=FOLDER/NAME". */
static const char *file_key(const char *name)
{
	static char key[4][600];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(key[turn], sizeof(key[turn]), "file=%s", path_of(name));
	return key[turn];
}

/* A pcap-in port over @name whose packets go to @q. */
static struct leat_netdev *make_in(struct leat_net *net, const char *name, struct test_queue *q)
{
	struct leat_netdev *dev = test_driver_make(net, "pcap-in", "in", TEST_KEYS(file_key(name)));

	assert_int_equal(leat_netdev_set_rx_handler(dev, test_record, q), 0);
	return dev;
}

/* Saves @c (and frees it), reads it through a port, and checks how that ends. Drops of the port go to @stats. */
static void read_back(struct capture *c, struct test_queue *q, uint32_t state, struct leat_netdev_stats *stats,
		      struct test_log *log)
{
	struct leat_net *net;
	struct leat_netdev *dev;

	save(c, "read.pcap");
	drop(c);
	net = test_net_make(log);
	dev = make_in(net, "read.pcap", q);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	assert_int_equal(test_state(dev) & (LEAT_NETDEV_FINISHED | LEAT_NETDEV_FAILED), state);
	assert_true(leat_net_finished(net));
	if (stats)
		leat_netdev_stats(dev, stats);
	test_net_end(net);
}

/* ---- reading ---- */

static void test_read(void **state)
{
	static const uint32_t lens[] = { 14, 60, 255, 512, 1514, 9234 };
	struct leat_netdev_stats stats;
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	unsigned int i;

	(void)state;
	add_header(&c, MAGIC_NANO, 1);
	for (i = 0; i < 300; i++)
		add_packet(&c, i, lens[i % 6]);
	read_back(&c, &q, LEAT_NETDEV_FINISHED, &stats, NULL);
	assert_int_equal(q.n, 300);
	for (i = 0; i < q.n; i++) {
		assert_int_equal(q.packet[i].len, lens[i % 6]);
		assert_int_equal(q.packet[i].bytes[12], (uint8_t)(12 * 7 + i));
		assert_true(q.packet[i].meta.flags & LEAT_META_TIMESTAMP);
		assert_int_equal(q.packet[i].meta.timestamp, (1000000000 + i) * LEAT_NSEC_PER_SEC + i);
	}
	assert_int_equal(stats.rx_packets, 300);
	test_queue_clear(&q);
}

static void test_read_micro(void **state)
{
	struct test_queue q = { 0 };
	struct capture c = { 0 };

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 999999, 60);
	read_back(&c, &q, LEAT_NETDEV_FINISHED, NULL, NULL);
	assert_int_equal(q.n, 1);
	assert_int_equal(q.packet[0].meta.timestamp, UINT64_C(1000999999) * LEAT_NSEC_PER_SEC + 999999000);
	test_queue_clear(&q);
}

static void test_read_other_byte_order(void **state)
{
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	size_t i;

	(void)state;
	add_header(&c, __builtin_bswap32(MAGIC_MICRO), 0);
	memcpy(c.bytes + 4, (const uint16_t[2]){ 0x0200, 0x0400 }, 4);
	memcpy(c.bytes + 16, (const uint32_t[2]){ __builtin_bswap32(262144), __builtin_bswap32(1) }, 8);
	add_record_header(&c, __builtin_bswap32(7), __builtin_bswap32(8), __builtin_bswap32(60),
			  __builtin_bswap32(60));
	for (i = 0; i < 60; i++)
		add(&c, "", 1);
	read_back(&c, &q, LEAT_NETDEV_FINISHED, NULL, NULL);
	assert_int_equal(q.n, 1);
	assert_int_equal(q.packet[0].meta.timestamp, 7 * LEAT_NSEC_PER_SEC + 8000);
	test_queue_clear(&q);
}

/* Records that cannot be packets are counted under their names, and the others arrive. */
static void test_read_drops(void **state)
{
	struct leat_netdev_stats stats;
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	uint32_t len;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	for (len = 0; len < 16; len++)
		add_packet(&c, len, len); /* 14 runts, the shortest of no length at all */
	add_packet(&c, 1, 9216 + 18);
	add_packet(&c, 2, 9216 + 19);
	add_packet(&c, 3, 200000);
	add_record_header(&c, 1, 2, 20, 60);
	add(&c, "01234567890123456789", 20);
	add_record_header(&c, 1, 2, 20, 19);
	add(&c, "01234567890123456789", 20);
	add_packet(&c, 4, 60);
	read_back(&c, &q, LEAT_NETDEV_FINISHED, &stats, NULL);
	assert_int_equal(q.n, 4);
	assert_int_equal(q.packet[2].len, 9216 + 18);
	assert_int_equal(stats.drops[LEAT_DROP_RUNT], 14);
	assert_int_equal(stats.drops[LEAT_DROP_OVERSIZE], 2);
	assert_int_equal(stats.drops[LEAT_DROP_TRUNCATED], 1);
	assert_int_equal(stats.drops[LEAT_DROP_RX_ERROR], 1);
	test_queue_clear(&q);
}

static void test_read_empty(void **state)
{
	struct test_queue q = { 0 };
	struct capture c = { 0 };

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	read_back(&c, &q, LEAT_NETDEV_FINISHED, NULL, NULL);
	assert_int_equal(q.n, 0);
}

/* Cut off at every byte: what came before the fault arrives, and the fault is named. */
static void test_read_truncated(void **state)
{
	struct capture whole = { 0 };
	size_t len;

	(void)state;
	add_header(&whole, MAGIC_MICRO, 1);
	add_packet(&whole, 0, 60);
	add_packet(&whole, 1, 70);
	for (len = 24; len <= whole.len; len++) {
		bool clean = len == 24 || len == 24 + 76 || len == whole.len;
		struct test_queue q = { 0 };
		struct capture c = { 0 };
		struct test_log log;
		char record[32];

		add(&c, whole.bytes, len);
		read_back(&c, &q, clean ? LEAT_NETDEV_FINISHED : LEAT_NETDEV_FAILED, NULL, &log);
		assert_int_equal(q.n, len == whole.len ? 2 : len >= 100 ? 1 : 0);
		if (!clean) {
			snprintf(record, sizeof(record), "record %u:", q.n + 1);
			assert_non_null(strstr(log.text, record));
			assert_non_null(strstr(log.text, "read.pcap"));
		}
		test_queue_clear(&q);
	}
	drop(&whole);
}

static void test_read_huge_caplen(void **state)
{
	static const uint32_t caplens[] = { 0x80000001u, UINT32_MAX, 0x7fffffff, 262145, 1u << 28 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(caplens) / sizeof(caplens[0]); i++) {
		struct test_queue q = { 0 };
		struct capture c = { 0 };
		struct test_log log;

		add_header(&c, MAGIC_MICRO, 1);
		add_packet(&c, 0, 60);
		add_record_header(&c, 1, 2, caplens[i], caplens[i]);
		add(&c, "some bytes", 10);
		read_back(&c, &q, LEAT_NETDEV_FAILED, NULL, &log);
		assert_int_equal(q.n, 1);
		assert_non_null(strstr(log.text, "record 2:"));
		test_queue_clear(&q);
	}
}

/* ---- what does not open ---- */

static void expect_refused(const char *name, const char *word)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_diag *diag = leat_diag_create();
	struct test_queue q = { 0 };
	struct leat_netdev *dev = make_in(net, name, &q);

	assert_true(leat_netdev_open(dev, diag) < 0);
	assert_int_equal(leat_diag_count(diag), 1);
	if (!strstr(leat_diag_get(diag, 0)->message, word) || !strstr(leat_diag_get(diag, 0)->message, name))
		fail_msg("%s: %s", name, leat_diag_get(diag, 0)->message);
	leat_diag_destroy(diag);
	test_net_end(net);
}

static void test_refused(void **state)
{
	struct capture c = { 0 };
	size_t len;

	(void)state;
	expect_refused("missing.pcap", "No such file");
	assert_int_equal(mkdir(path_of("folder.pcap"), 0700), 0);
	expect_refused("folder.pcap", "directory");
	add_header(&c, 0x12345678, 1);
	save(&c, "magic.pcap");
	drop(&c);
	expect_refused("magic.pcap", "not a capture");
	add_header(&c, MAGIC_MICRO, 101);
	save(&c, "raw.pcap");
	drop(&c);
	expect_refused("raw.pcap", "Ethernet");
	add_header(&c, MAGIC_MICRO, 1);
	for (len = 0; len < 24; len++) {
		c.len = len;
		save(&c, "header.pcap");
		expect_refused("header.pcap", "not a capture");
	}
	drop(&c);
}

/* ---- memory ---- */

/* Each allocation of the pool fails in turn: every packet arrives once, in order. */
static void test_starved(void **state)
{
	struct capture c = { 0 };
	unsigned int i;
	uint64_t nth;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	for (i = 0; i < 100; i++)
		add_packet(&c, i, 100 + i * 10);
	save(&c, "starved.pcap");
	drop(&c);
	for (nth = 1; nth <= 100; nth++) {
		struct leat_net *net = test_net_make(NULL);
		struct leat_page_pool_stats stats;
		struct test_queue q = { 0 };
		struct leat_netdev *dev = make_in(net, "starved.pcap", &q);

		assert_int_equal(leat_netdev_open(dev, NULL), 0);
		leat_page_pool_fail_nth(dev->napi[0].pool, nth);
		test_net_run(net);
		leat_napi_schedule(&dev->napi[0]);
		test_net_run(net);
		assert_int_equal(q.n, 100);
		for (i = 0; i < 100; i++)
			assert_int_equal(q.packet[i].len, 100 + i * 10);
		assert_int_equal(test_all_drops(dev), 0);
		leat_page_pool_stats(dev->napi[0].pool, &stats);
		assert_int_equal(stats.alloc_failed, 1);
		test_net_end(net);
		test_queue_clear(&q);
	}
}

/* Each allocation of making and opening the ports fails in turn. */
static void test_no_memory(void **state)
{
	static const char *const types[] = { "pcap-in", "pcap-out" };
	struct capture c = { 0 };
	unsigned long nth;
	size_t i;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	save(&c, "nomem.pcap");
	drop(&c);
	for (i = 0; i < 2; i++) {
		const struct leat_driver *driver = leat_driver_find(types[i]);
		bool done = false;

		for (nth = 1; !done; nth++) {
			void *opts = test_driver_opts(driver, TEST_KEYS(file_key("nomem.pcap")));
			struct leat_net *net = test_net_make(NULL);
			struct leat_netdev *dev = NULL;
			int err;

			leat_heap_fail_nth(nth);
			err = driver->create(net, "port", opts, NULL, &dev);
			if (!err)
				err = leat_netdev_open(dev, NULL);
			done = !leat_heap_failed();
			leat_heap_fail_nth(0);
			assert_true(done ? !err : !err || err == -ENOMEM);
			test_net_end(net);
			test_driver_opts_free(driver, opts);
		}
	}
}

/* ---- writing ---- */

/* Sends the capture @from through pcap-in and pcap-out with @keys (the first is the file's). */
static void pass_through(const char *from, const char *const *keys, const char *builtin)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_netdev *in = test_driver_make(net, "pcap-in", "in", TEST_KEYS(file_key(from)));
	struct leat_netdev *out = test_driver_make(net, "pcap-out", "out", keys);

	assert_int_equal(leat_netdev_set_rx_handler(in, test_forward, out), 0);
	if (builtin)
		test_attach(in, builtin);
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	assert_int_equal(leat_netdev_open(in, NULL), 0);
	test_net_run(net);
	assert_int_equal(test_all_drops(out), 0);
	test_net_end(net);
}

static void expect_same(const char *a, const char *b)
{
	struct capture one = { 0 }, two = { 0 };

	load(&one, a);
	load(&two, b);
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.bytes, two.bytes, one.len);
	drop(&one);
	drop(&two);
}

/* What tcpdump wrote comes out byte for byte, with a program and without. */
static void test_byte_for_byte(void **state)
{
	static const struct {
		uint32_t magic;
		const char *precision;
		const char *builtin;
	} cases[] = {
		{ MAGIC_MICRO, "precision=micro", NULL },
		{ MAGIC_MICRO, "precision=micro", "pass" },
		{ MAGIC_NANO, "precision=nano", NULL },
	};
	size_t i;
	uint32_t n;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture c = { 0 };

		add_header(&c, cases[i].magic, 1);
		for (n = 0; n < 500; n++)
			add_packet(&c, n, 14 + n * 18);
		save(&c, "one.pcap");
		drop(&c);
		pass_through("one.pcap", TEST_KEYS(file_key("two.pcap"), cases[i].precision), cases[i].builtin);
		expect_same("one.pcap", "two.pcap");
	}
}

static void test_snaplen(void **state)
{
	struct capture c = { 0 };
	uint32_t lens[2], n;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 1, 1000);
	save(&c, "one.pcap");
	drop(&c);
	pass_through("one.pcap", TEST_KEYS(file_key("two.pcap"), "snaplen=100"), NULL);
	load(&c, "two.pcap");
	assert_int_equal(c.len, 24 + 16 + 100);
	memcpy(&n, c.bytes + 16, 4);
	assert_int_equal(n, 100);
	memcpy(lens, c.bytes + 24 + 8, 8);
	assert_int_equal(lens[0], 100);
	assert_int_equal(lens[1], 1000);
	drop(&c);
}

/* Frames and skbs in several pieces, and packets without a time of their own. */
static void test_fragments_and_clock(void **state)
{
	uint64_t before = leat_clock_real_ns() / LEAT_NSEC_PER_SEC, after;
	struct leat_net *net = test_net_make(NULL);
	struct leat_netdev *in = test_port_make(net, "in");
	struct leat_netdev *out = test_driver_make(net, "pcap-out", "out",
						   TEST_KEYS(file_key("frags.pcap"), "snaplen=850"));
	struct capture c = { 0 };
	uint8_t frame[900];
	uint32_t header[4];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 11);
	test_port_of(in)->piece = 100;
	assert_int_equal(leat_netdev_set_rx_handler(in, test_forward, out), 0);
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	test_port_put(in, frame, 250);
	test_port_put(in, frame, 900);
	test_net_run(net);
	assert_int_equal(test_all_drops(out) + test_all_drops(in), 0);
	test_net_end(net);
	after = leat_clock_real_ns() / LEAT_NSEC_PER_SEC;
	load(&c, "frags.pcap");
	assert_int_equal(c.len, 24 + 16 + 250 + 16 + 850);
	memcpy(header, c.bytes + 24, 16);
	assert_in_range(header[0], before, after);
	assert_true(header[1] < 1000000);
	assert_int_equal(header[2], 250);
	assert_memory_equal(c.bytes + 40, frame, 250);
	memcpy(header, c.bytes + 290, 16);
	assert_int_equal(header[2], 850);
	assert_int_equal(header[3], 900);
	assert_memory_equal(c.bytes + 306, frame, 850);
	drop(&c);
}

/* The frames of XDP_REDIRECT take the other transmit function. */
static uint32_t redirect_to(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_xdp_redirect(xdp, *(uint32_t *)priv);
}

static void test_redirected(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct capture c = { 0 };
	struct leat_netdev *in, *out;
	uint32_t n;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	for (n = 0; n < 100; n++)
		add_packet(&c, n, 60 + n);
	save(&c, "one.pcap");
	drop(&c);
	in = test_driver_make(net, "pcap-in", "in", TEST_KEYS(file_key("one.pcap")));
	out = test_driver_make(net, "pcap-out", "out", TEST_KEYS(file_key("two.pcap")));
	{
		struct leat_xdp_prog_opts opts = { .size = sizeof(opts), .name = "to-out", .fn = redirect_to,
						   .priv = &out->index };
		struct leat_xdp_prog *prog;

		assert_int_equal(leat_xdp_prog_create(net, &opts, &prog), 0);
		assert_int_equal(leat_xdp_attach(in, prog), 0);
		leat_xdp_prog_put(prog);
	}
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	assert_int_equal(leat_netdev_open(in, NULL), 0);
	test_net_run(net);
	test_net_end(net);
	expect_same("one.pcap", "two.pcap");
}

static void test_write_refused(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_diag *diag = leat_diag_create();
	struct leat_netdev *dev = test_driver_make(net, "pcap-out", "out", TEST_KEYS(file_key("no/such/folder")));

	(void)state;
	assert_int_equal(leat_netdev_open(dev, diag), -ENOENT);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, "no/such/folder"));
	leat_netdev_destroy(dev);
	dev = test_driver_make(net, "pcap-out", "full", TEST_KEYS("file=/dev/full"));
	assert_int_equal(leat_netdev_open(dev, diag), -ENOSPC);
	assert_int_equal(leat_diag_count(diag), 2);
	leat_diag_destroy(diag);
	test_net_end(net);
}

/* A reader that goes away, or a full disk, ends the port with the system's words; what is sent later is counted. */
static void test_write_fails(void **state)
{
	struct test_log log;
	struct leat_net *net = test_net_make(&log);
	struct leat_netdev *in, *out;
	struct capture c = { 0 };
	struct leat_netdev_stats stats;
	uint32_t n;
	int fd;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	for (n = 0; n < 1000; n++)
		add_packet(&c, n, 1514);
	save(&c, "one.pcap");
	drop(&c);
	in = test_driver_make(net, "pcap-in", "in", TEST_KEYS(file_key("one.pcap")));
	out = test_driver_make(net, "pcap-out", "out", TEST_KEYS(file_key("two.pcap")));
	assert_int_equal(leat_netdev_set_rx_handler(in, test_forward, out), 0);
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	/* the disk fills up: the file's descriptor now is /dev/full */
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (n = 3; n < 64; n++) {
		char link[64], target[512];
		ssize_t len;

		snprintf(link, sizeof(link), "/proc/self/fd/%u", n);
		len = readlink(link, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (strstr(target, "two.pcap"))
			assert_true(dup2(fd, (int)n) >= 0);
	}
	close(fd);
	assert_int_equal(leat_netdev_open(in, NULL), 0);
	test_net_run(net);
	leat_netdev_stats(out, &stats);
	assert_true(test_state(out) & LEAT_NETDEV_FAILED);
	assert_non_null(strstr(log.text, "No space left"));
	assert_non_null(strstr(log.text, "two.pcap"));
	assert_true(stats.drops[LEAT_DROP_TX_ERROR] > 900);
	assert_int_equal(stats.tx_packets + test_all_drops(out), 1000);
	test_net_end(net);
}

/* ---- pipes ---- */

/* An empty pipe does not hold the worker up; records are read as they come; the end of the writer is the end. */
static void test_pipe(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	struct leat_netdev *dev;
	int ends[2], saved = dup(STDIN_FILENO);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	add_header(&c, MAGIC_NANO, 1);
	add_packet(&c, 0, 60);
	assert_int_equal(write(ends[1], c.bytes, c.len), c.len);
	dev = test_driver_make(net, "pcap-in", "in", TEST_KEYS("file=-"));
	assert_int_equal(leat_netdev_set_rx_handler(dev, test_record, &q), 0);
	assert_int_equal(leat_netdev_open(dev, NULL), 0);
	test_net_run(net);
	assert_int_equal(q.n, 1);
	test_net_run(net);
	assert_int_equal(q.n, 1);
	c.len = 0;
	add_packet(&c, 1, 61);
	add_packet(&c, 2, 62);
	assert_int_equal(write(ends[1], c.bytes, c.len), c.len);
	test_net_run(net);
	assert_int_equal(q.n, 3);
	assert_int_equal(q.packet[2].len, 62);
	assert_false(test_state(dev) & LEAT_NETDEV_FINISHED);
	close(ends[1]);
	test_net_run(net);
	assert_true(test_state(dev) & LEAT_NETDEV_FINISHED);
	assert_false(test_state(dev) & LEAT_NETDEV_FAILED);
	test_net_end(net);
	assert_true(dup2(saved, STDIN_FILENO) >= 0);
	close(saved);
	test_queue_clear(&q);
	drop(&c);
}

/* A pcap-in over the FIFO pipe.fifo, whose other end is *@fd unless that is NULL. */
static struct leat_netdev *open_fifo(struct leat_net *net, struct test_queue *q, int *fd)
{
	struct leat_netdev *dev;

	assert_int_equal(mkfifo(path_of("pipe.fifo"), 0600), 0);
	dev = make_in(net, "pipe.fifo", q);
	assert_int_equal(leat_netdev_open(dev, NULL), 0); /* without a writer */
	test_net_run(net);
	if (fd)
		*fd = open(path_of("pipe.fifo"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(unlink(path_of("pipe.fifo")), 0);
	test_net_run(net);
	assert_int_equal(test_state(dev), LEAT_NETDEV_UP);
	return dev;
}

/* Whatever of it has come, nothing is waited for, and each packet comes with its last byte. */
static void test_pipe_byte_by_byte(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	struct leat_netdev *dev;
	unsigned int n = 0;
	size_t i, next;
	int fd;

	(void)state;
	add_header(&c, MAGIC_NANO, 1);
	for (i = 0; i < 20; i++)
		add_packet(&c, (uint32_t)i, 60 + (uint32_t)i);
	dev = open_fifo(net, &q, &fd);
	for (i = 0, next = 24 + 76; i < c.len; i++) {
		assert_int_equal(write(fd, c.bytes + i, 1), 1);
		test_net_run(net);
		if (i + 1 == next)
			next += 76 + ++n;
		assert_int_equal(q.n, n);
		assert_int_equal(test_state(dev), LEAT_NETDEV_UP);
	}
	assert_int_equal(q.n, 20);
	close(fd);
	test_net_run(net);
	assert_int_equal(test_state(dev), LEAT_NETDEV_UP | LEAT_NETDEV_FINISHED);
	test_net_end(net);
	test_queue_clear(&q);
	drop(&c);
}

/* More than a pipe and the buffer hold at once, written as there is room, with the longest record that there may be. */
static void test_pipe_much(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct test_queue q = { 0 };
	struct capture c = { 0 };
	struct leat_netdev *dev;
	size_t done = 0, part;
	uint32_t i;
	int fd;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	for (i = 0; i < 600; i++)
		add_packet(&c, i, i % 100 == 50 ? 262144 : 60 + i * 15 % 9000);
	dev = open_fifo(net, &q, &fd);
	for (; done < c.len; done += part) {
		part = c.len - done < 40001 ? c.len - done : 40001;
		assert_int_equal(write(fd, c.bytes + done, part), part);
		test_net_run(net);
	}
	assert_int_equal(q.n, 594);
	assert_int_equal(test_drops(dev, LEAT_DROP_OVERSIZE), 6);
	for (i = 0; i < 50; i++)
		assert_int_equal(q.packet[i].len, 60 + i * 15 % 9000);
	close(fd);
	test_net_run(net);
	assert_int_equal(test_state(dev), LEAT_NETDEV_UP | LEAT_NETDEV_FINISHED);
	test_net_end(net);
	test_queue_clear(&q);
	drop(&c);
}

/* Sends the first @len bytes of @c; with what then is said, @word, the port ends after @n packets. */
static void pipe_ends(const struct capture *c, size_t len, bool close_it, unsigned int n, const char *word)
{
	struct test_log log;
	struct leat_net *net = test_net_make(&log);
	struct test_queue q = { 0 };
	struct leat_netdev *dev;
	int fd;

	dev = open_fifo(net, &q, &fd);
	assert_int_equal(write(fd, c->bytes, len), len);
	test_net_run(net);
	assert_int_equal(q.n, n);
	if (close_it) {
		assert_int_equal(test_state(dev), LEAT_NETDEV_UP);
		close(fd);
		test_net_run(net);
	}
	assert_int_equal(test_state(dev), LEAT_NETDEV_UP | LEAT_NETDEV_FAILED);
	if (!strstr(log.text, word) || !strstr(log.text, "pipe.fifo"))
		fail_msg("'%s' is not in: %s", word, log.text);
	if (!close_it)
		close(fd);
	test_net_end(net);
	test_queue_clear(&q);
}

static void test_pipe_faults(void **state)
{
	struct capture c = { 0 };
	size_t len;

	(void)state;
	add_header(&c, __builtin_bswap32(MAGIC_NANO), 1);
	memcpy(c.bytes + 4, (const uint16_t[2]){ 0x0200, 0x0400 }, 4);
	memcpy(c.bytes + 16, (const uint32_t[2]){ __builtin_bswap32(262144), __builtin_bswap32(1) }, 8);
	add_record_header(&c, 0, 0, __builtin_bswap32(262145), __builtin_bswap32(262145));
	pipe_ends(&c, c.len, false, 0, "record 1: ");
	c.len = 0;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 0, 60);
	add_packet(&c, 1, 60);
	for (len = 1; len < 24; len++)
		pipe_ends(&c, len, true, 0, "not a capture");
	for (len = 101; len < 176; len++)
		pipe_ends(&c, len, true, 1, "record 2: truncated");
	c.len = 0;
	add_header(&c, MAGIC_MICRO, 101);
	pipe_ends(&c, c.len, false, 0, "link type");
	c.len = 0;
	add_header(&c, 0x0a0d0d0a, 1);
	pipe_ends(&c, c.len, false, 0, "pcapng cannot be read from a pipe");
	c.len = 0;
	add_header(&c, 0x12345678, 1);
	pipe_ends(&c, c.len, false, 0, "unknown file format");
	drop(&c);
}

/* A port closes although it waits for the header, or for the rest of a record. */
static void test_pipe_silent(void **state)
{
	struct capture c = { 0 };
	size_t len;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 0, 60);
	for (len = 0; len <= c.len; len += 50) {
		struct leat_net *net = test_net_make(NULL);
		struct test_queue q = { 0 };
		int fd;

		open_fifo(net, &q, len ? &fd : NULL);
		if (len)
			assert_int_equal(write(fd, c.bytes, len), len);
		test_net_run(net);
		test_net_end(net);
		if (len)
			close(fd);
		test_queue_clear(&q);
	}
	drop(&c);
}

/* ---- files of which there is only one ---- */

static void expect_size(const char *name, off_t size)
{
	struct stat st;

	assert_int_equal(stat(path_of(name), &st), 0);
	assert_int_equal(st.st_size, size);
}

/* What one port writes no other port opens, by whatever name; nothing is lost when it tries. */
static void test_one_writer(void **state)
{
	static const char *const types[] = { "pcap-in", "pcap-out", "pcap-out" };
	struct capture c = { 0 };
	size_t i;

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 0, 60);
	save(&c, "one.pcap");
	drop(&c);
	assert_int_equal(link(path_of("one.pcap"), path_of("two-names.pcap")), 0);
	for (i = 0; i < 3; i++) {
		struct leat_net *net = test_net_make(NULL);
		struct leat_diag *diag = leat_diag_create();
		struct leat_netdev *a = test_driver_make(net, types[i], "a", TEST_KEYS(file_key("one.pcap")));
		struct leat_netdev *b = test_driver_make(net, types[(i + 1) % 3], "b",
							 TEST_KEYS(file_key("two-names.pcap")));

		assert_int_equal(leat_netdev_open(a, diag), 0);
		assert_int_equal(leat_netdev_open(b, diag), -EBUSY);
		assert_non_null(strstr(leat_diag_get(diag, 0)->message, "port 'a'"));
		expect_size("one.pcap", 24 + 76);
		a->state |= LEAT_NETDEV_ABANDONED;
		leat_netdev_close(a);
		expect_size("one.pcap", 24 + 76);
		leat_diag_destroy(diag);
		test_net_end(net);
	}
	assert_int_equal(unlink(path_of("two-names.pcap")), 0);
}

/* Two readers of a file are fine, and a writer when they are done; without packets it leaves an empty capture. */
static void test_two_readers(void **state)
{
	struct leat_net *net = test_net_make(NULL);
	struct leat_netdev *a, *b, *out;
	struct test_queue q = { 0 };
	struct capture c = { 0 };

	(void)state;
	add_header(&c, MAGIC_MICRO, 1);
	add_packet(&c, 0, 60);
	save(&c, "one.pcap");
	a = make_in(net, "one.pcap", &q);
	b = test_driver_make(net, "pcap-in", "b", TEST_KEYS(file_key("one.pcap")));
	out = test_driver_make(net, "pcap-out", "out", TEST_KEYS(file_key("one.pcap")));
	assert_int_equal(leat_netdev_open(a, NULL), 0);
	assert_int_equal(leat_netdev_open(b, NULL), 0);
	leat_netdev_close(a);
	leat_netdev_close(b);
	assert_int_equal(leat_netdev_open(out, NULL), 0);
	expect_size("one.pcap", 24 + 76);
	test_net_end(net);
	c.len = 24;
	save(&c, "two.pcap");
	drop(&c);
	expect_same("one.pcap", "two.pcap");
	test_queue_clear(&q);
}

/* ---- the folder ---- */

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%.200s/leat-pcap-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "read.pcap", "magic.pcap", "raw.pcap", "header.pcap", "starved.pcap",
					     "nomem.pcap", "one.pcap", "two.pcap", "frags.pcap" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	rmdir(path_of("folder.pcap"));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_micro),
		cmocka_unit_test(test_read_other_byte_order),
		cmocka_unit_test(test_read_drops),
		cmocka_unit_test(test_read_empty),
		cmocka_unit_test(test_read_truncated),
		cmocka_unit_test(test_read_huge_caplen),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_byte_for_byte),
		cmocka_unit_test(test_snaplen),
		cmocka_unit_test(test_fragments_and_clock),
		cmocka_unit_test(test_redirected),
		cmocka_unit_test(test_write_refused),
		cmocka_unit_test(test_write_fails),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_pipe_byte_by_byte),
		cmocka_unit_test(test_pipe_much),
		cmocka_unit_test(test_pipe_faults),
		cmocka_unit_test(test_pipe_silent),
		cmocka_unit_test(test_one_writer),
		cmocka_unit_test(test_two_readers),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
