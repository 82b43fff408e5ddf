/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay_output.c: the capture that a run writes: pcap by libpcap, or pcapng, which also says each packet's verdict.
 * Every packet is flushed by itself, so that those that are counted as written are.
 */
#include "replay.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pcapng.h"

#define NSEC_PER_SEC UINT64_C(1000000000)
#define PCAP_SNAPLEN 262144

struct replay_output {
	const struct replay *r;
	FILE *file;
	bool ng;
	pcap_t *pcap; /* else */
	pcap_dumper_t *dump;
};

/* Whether writing to @path would destroy the capture that is being read. */
static bool is_input(FILE *input, const char *path)
{
	bool std = !strcmp(path, "-");
	struct stat in, out;

	return !fstat(fileno(input), &in) && S_ISREG(in.st_mode) &&
	       !(std ? fstat(STDOUT_FILENO, &out) : stat(path, &out)) && in.st_dev == out.st_dev &&
	       in.st_ino == out.st_ino;
}

static bool wants_pcapng(const struct replay_opts *opts)
{
	const char *dot = strrchr(opts->out, '.');

	return opts->format ? opts->format == REPLAY_PCAPNG : dot && !strcmp(dot, ".pcapng");
}

static int flush(const struct replay_output *out)
{
	if (!fflush(out->file) && !ferror(out->file))
		return EXIT_GOOD;
	fprintf(stderr, "%s: cannot be written: %s\n", out->r->opts->out, strerror(errno));
	return EXIT_CONFIG;
}

static int begin_pcap(struct replay_output *out)
{
	out->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, PCAP_SNAPLEN, PCAP_TSTAMP_PRECISION_NANO);
	out->dump = out->pcap ? pcap_dump_fopen(out->pcap, out->file) : NULL;
	if (out->dump)
		return EXIT_GOOD;
	fprintf(stderr, "%s: %s\n", out->r->opts->out, out->pcap ? pcap_geterr(out->pcap) : "out of memory");
	return EXIT_CONFIG;
}

static void begin_pcapng(struct replay_output *out)
{
	char name[32];

	snprintf(name, sizeof(name), "port %u", out->r->opts->ifindex);
	pcapng_begin(out->file, "leat replay", name);
}

int replay_output_open(const struct replay *r, FILE *input, struct replay_output **outp)
{
	const char *path = r->opts->out;
	struct replay_output *out;
	int code = EXIT_GOOD;

	if (!path)
		return EXIT_GOOD;
	if (is_input(input, path)) {
		fprintf(stderr, "%s: is the capture that is read\n", path);
		return EXIT_CONFIG;
	}
	out = calloc(1, sizeof(*out));
	if (!out) {
		fprintf(stderr, "%s: out of memory\n", path);
		return EXIT_CONFIG;
	}
	*outp = out;
	out->r = r;
	out->ng = wants_pcapng(r->opts);
	out->file = strcmp(path, "-") != 0 ? fopen(path, "wbe") : fdopen(dup(STDOUT_FILENO), "wb");
	if (!out->file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return EXIT_CONFIG;
	}
	if (out->ng)
		begin_pcapng(out);
	else
		code = begin_pcap(out);
	return code ? code : flush(out);
}

static void write_pcap(const struct replay_output *out, const struct leat_xdp_buff *xdp)
{
	const uint32_t len = (uint32_t)(xdp->data_end - xdp->data);
	const struct pcap_pkthdr hdr = {
		.ts = { .tv_sec = (time_t)(out->r->packet.time / NSEC_PER_SEC),
			.tv_usec = (suseconds_t)(out->r->packet.time % NSEC_PER_SEC) },
		.caplen = len,
		.len = len,
	};

	pcap_dump((uint8_t *)out->dump, &hdr, xdp->data);
}

static void write_pcapng(const struct replay_output *out, const struct leat_xdp_buff *xdp, uint32_t verdict)
{
	char text[REPLAY_VERDICT_SIZE], comment[512];
	const struct pcapng_packet packet = {
		.bytes = xdp->data,
		.len = (uint32_t)(xdp->data_end - xdp->data),
		.time = out->r->packet.time,
		.comment = comment,
		.verdict = verdict,
	};

	replay_verdict_text(out->r, verdict, text, sizeof(text));
	snprintf(comment, sizeof(comment), "leat: %s (prog %s)", text, leat_bpf_prog_name(out->r->prog));
	pcapng_packet(out->file, &packet);
}

int replay_output_packet(const struct replay_output *out, const struct leat_xdp_buff *xdp, uint32_t verdict)
{
	if (out->ng)
		write_pcapng(out, xdp, verdict);
	else
		write_pcap(out, xdp);
	return flush(out);
}

void replay_output_close(struct replay_output *out)
{
	if (!out)
		return;
	if (out->dump)
		pcap_dump_close(out->dump);
	else if (out->file)
		fclose(out->file);
	if (out->pcap)
		pcap_close(out->pcap);
	free(out);
}
