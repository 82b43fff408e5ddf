/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_packets.c: packets from the capture to the program, and what is left of them to another one. Buffers are
 * as large as a kernel's (a page, or what the packet needs) and zeroed, so that whatever a program does to the edges of
 * a packet gives the same bytes in every run.
 */
#include "replay.h"

#include <errno.h>
#include <leat/page_pool.h>
#include <pcap/pcap.h>
#include <string.h>
#include <unistd.h>

#define NSEC_PER_SEC UINT64_C(1000000000)
/* Bytes of a buffer, at least. */
#define BUFFER_MIN 4096u
#define ARENA_SIZE (UINT64_C(16) << 20)

struct stage {
	struct replay *r;
	struct leat_arena *arena;
	struct leat_segment *segment;
	struct leat_page_pool *pool;
	struct leat_xdp_rxq rxq;
	pcap_t *in;
	struct replay_output *out; /* NULL: none */
};

/* ---- memory ---- */

static void memory_fini(struct stage *s)
{
	leat_page_pool_destroy(s->pool);
	leat_segment_destroy(s->segment);
	leat_arena_destroy(s->arena);
}

static int memory_init(struct stage *s)
{
	struct leat_arena_opts arena = { .size = sizeof(arena), .data_size = ARENA_SIZE };
	struct leat_segment_opts segment = { .size = sizeof(segment), .bytes = ARENA_SIZE, .name = "replay" };
	struct leat_page_pool_opts pool = { .size = sizeof(pool), .name = "replay", .limit = 1 << 20 };
	int err;

	leat_thread_register();
	err = leat_arena_create(&arena, &s->arena);
	if (!err)
		err = leat_segment_create(s->arena, &segment, &s->segment);
	if (!err)
		err = leat_page_pool_create(s->segment, &pool, &s->pool);
	if (!err)
		leat_page_pool_own(s->pool);
	else
		fprintf(stderr, "leat replay: no memory for packets: %s\n", strerror(-err));
	return err;
}

/* ---- captures ---- */

static int open_input(struct stage *s)
{
	const char *path = s->r->opts->capture;
	char text[PCAP_ERRBUF_SIZE] = "";

	if (strcmp(path, "-") != 0 && access(path, R_OK)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return EXIT_CONFIG;
	}
	s->in = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!s->in) {
		fprintf(stderr, "%s: not a capture: %s\n", path, text);
		return EXIT_FAILED;
	}
	if (pcap_datalink(s->in) == DLT_EN10MB)
		return EXIT_GOOD;
	fprintf(stderr, "%s: holds packets of link type %d, not Ethernet\n", path, pcap_datalink(s->in));
	return EXIT_FAILED;
}

static void close_captures(struct stage *s)
{
	replay_output_close(s->out);
	if (s->in)
		pcap_close(s->in);
}

/* ---- packets ---- */

/* Whether the packet can be run; if not, why is counted. */
static bool is_usable(struct replay *r, const struct pcap_pkthdr *hdr)
{
	enum replay_skip why = SKIP_REASONS;

	if (hdr->caplen < hdr->len)
		why = SKIP_TRUNCATED;
	else if (hdr->caplen < LEAT_ETH_HLEN)
		why = SKIP_RUNT;
	else if (hdr->caplen > LEAT_PAGE_POOL_ALLOC_MAX - LEAT_XDP_HEADROOM - LEAT_XDP_TAILROOM)
		why = SKIP_OVERSIZE;
	if (why != SKIP_REASONS)
		r->counts.skipped[why]++;
	return why == SKIP_REASONS;
}

static int write_packet(struct stage *s, const struct leat_xdp_buff *xdp, uint32_t verdict)
{
	const uint32_t bit = 1u << (verdict < LEAT_XDP_ACTIONS ? verdict : LEAT_XDP_ABORTED);
	int code;

	if (!s->out || !(s->r->opts->keep & bit))
		return EXIT_GOOD;
	code = replay_output_packet(s->out, xdp, verdict);
	s->r->counts.written += !code;
	return code;
}

static void count_verdict(struct replay *r, uint32_t verdict)
{
	r->counts.packets++;
	r->counts.bytes += r->packet.len;
	if (verdict < LEAT_XDP_ACTIONS)
		r->counts.verdict[verdict]++;
	else
		r->counts.unknown++;
}

static int run_packet(struct stage *s, const struct pcap_pkthdr *hdr, const uint8_t *bytes)
{
	uint32_t size = LEAT_XDP_HEADROOM + hdr->caplen + LEAT_XDP_TAILROOM, verdict;
	struct replay *r = s->r;
	struct leat_xdp_buff xdp;
	struct leat_run run;
	int code;

	run = leat_page_pool_alloc(s->pool, LEAT_GRANULES(size > BUFFER_MIN ? size : BUFFER_MIN));
	if (leat_run_is_none(run)) {
		fputs("leat replay: out of packet memory\n", stderr);
		return EXIT_CONFIG;
	}
	memset(leat_run_start(run), 0, leat_run_size(run));
	leat_xdp_buff_init(&xdp, run, LEAT_XDP_HEADROOM, hdr->caplen);
	memcpy(xdp.data, bytes, hdr->caplen);
	replay_time_keep(r, bytes);
	xdp.rxq = &s->rxq;
	xdp.meta.timestamp = r->packet.time;
	xdp.meta.flags = LEAT_META_TIMESTAMP;
	leat_bpf_env_set_time(r->env, r->packet.time);
	verdict = leat_bpf_prog_run(r->prog, &xdp, r->opts->cpu);
	count_verdict(r, verdict);
	report_packet(r, verdict);
	code = write_packet(s, &xdp, verdict);
	leat_page_pool_put_page(run);
	return code;
}

static int run_all(struct stage *s)
{
	struct replay *r = s->r;
	struct pcap_pkthdr *hdr;
	const uint8_t *bytes;
	int got, code = EXIT_GOOD;

	while (!code && (got = pcap_next_ex(s->in, &hdr, &bytes)) == 1) {
		r->packet.number++;
		r->packet.time = (uint64_t)hdr->ts.tv_sec * NSEC_PER_SEC + (uint64_t)hdr->ts.tv_usec;
		r->packet.len = hdr->caplen;
		if (is_usable(r, hdr))
			code = run_packet(s, hdr, bytes);
	}
	if (code || got != PCAP_ERROR)
		return code;
	fprintf(stderr, "%s: packet %llu: %s\n", r->opts->capture, (unsigned long long)r->packet.number + 1,
		pcap_geterr(s->in));
	return EXIT_FAILED;
}

int replay_run_capture(struct replay *r)
{
	struct stage s = { .r = r, .rxq = { .port = r->opts->ifindex, .queue = r->opts->queue } };
	int code = EXIT_CONFIG, timed = EXIT_GOOD;

	if (!memory_init(&s)) {
		code = open_input(&s);
		if (!code)
			code = replay_output_open(r, pcap_file(s.in), &s.out);
		if (!code) {
			report_begin(r);
			code = run_all(&s);
			timed = replay_time_run(r, s.pool, &s.rxq);
		}
	}
	close_captures(&s);
	memory_fini(&s);
	return timed > code ? timed : code;
}
