/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap.c: captures as ports. pcap-in reads one (pcap or pcapng, as libpcap does) and gives its packets with their
 * timestamps; pcap-out writes what is sent to it. The file "-" is standard input or output.
 *
 * pcap-in is polled by one worker. A record that cannot be used (captured only in part, longer than the MTU allows) is
 * counted and passed over; a record that cannot be read ends the port with an error, after everything before it was
 * delivered. When memory is out, the record that was read is kept for the next poll. A pipe is looked at before each
 * record, so that an empty one does not hold the worker up; a writer that stops within a record does.
 *
 * pcap-out has one transmit queue, whose lock keeps the workers apart. Its first write error ends it.
 */
#include "base/clock.h"
#include "base/heap.h"
#include "drivers/drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What tcpdump writes into its captures: MAXIMUM_SNAPLEN of libpcap and tcpdump. */
#define PCAP_SNAPLEN 262144u

/* A stream over @file, or over a copy of descriptor @std when it is "-"; NULL: errno says why. */
static FILE *pcap_stream_open(const char *file, const char *mode, int std)
{
	FILE *stream;
	int fd, err;

	if (strcmp(file, "-") != 0)
		return fopen(file, mode);
	fd = fcntl(std, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	stream = fdopen(fd, mode);
	if (!stream) {
		err = errno;
		close(fd);
		errno = err;
	}
	return stream;
}

/* Whether reading can mean waiting. */
static bool fd_waits(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

/* ---- pcap-in ---- */

struct pcap_in_opts {
	char *file;
	uint32_t mtu;
};

/* Written by the polling worker while the port is open. */
struct pcap_in {
	char *file;
	pcap_t *pcap; /* owns the stream */
	bool waits;   /* a pipe: look before reading */
	bool pending; /* hdr and bytes hold a record that is not delivered yet */
	bool ended;
	uint64_t record;         /* number of the last record read, from 1 */
	struct pcap_pkthdr *hdr; /* libpcap's, until the next read */
	const uint8_t *bytes;
};

static const struct leat_param pcap_in_params[] = {
	{ .name = "file", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED,
	  .offset = offsetof(struct pcap_in_opts, file), .min = 1, .max = 4095,
	  .help = "capture to read; -: standard input" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct pcap_in_opts, mtu), .min = LEAT_MTU_MIN,
	  .max = LEAT_MTU_MAX, .default_text = "9216", .help = "longest packet, bytes after the Ethernet header" },
	{ .name = NULL },
};

/* Ends the port: @error 0 at the end of the file. */
static void pcap_in_end(struct leat_netdev *dev, int error)
{
	struct pcap_in *in = dev->priv;
	char what[512];

	in->ended = true;
	if (error)
		snprintf(what, sizeof(what), "%.200s: record %llu: %.200s", in->file,
			 (unsigned long long)in->record + 1, pcap_geterr(in->pcap));
	leat_netdev_finish(dev, error, error ? what : NULL);
}

/* Reads the next record unless one is pending. Returns 1; 0 when there is none yet; PCAP_ERROR or PCAP_ERROR_BREAK. */
static int pcap_in_read(struct pcap_in *in, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int got;

	if (in->pending)
		return 1;
	if (in->waits && poll(&pfd, 1, 0) == 0)
		return 0;
	got = pcap_next_ex(in->pcap, &in->hdr, &in->bytes);
	if (got == 1) {
		in->pending = true;
		in->record++;
	}
	return got;
}

/* Why the pending record cannot be a packet, or LEAT_DROP_MAX. */
static enum leat_drop_reason pcap_in_check(const struct leat_netdev *dev, const struct pcap_pkthdr *hdr)
{
	if (hdr->caplen < hdr->len)
		return LEAT_DROP_TRUNCATED;
	if (hdr->caplen > hdr->len)
		return LEAT_DROP_RX_ERROR; /* more bytes than the packet ever had */
	if (hdr->caplen > leat_netdev_frame_max(dev))
		return LEAT_DROP_OVERSIZE;
	return LEAT_DROP_MAX;
}

/* Hands the pending record on, or counts why not; false when memory is out. */
static bool pcap_in_deliver(struct pcap_in *in, struct leat_napi *napi, struct leat_rx *rx)
{
	enum leat_drop_reason why = pcap_in_check(napi->dev, in->hdr);
	uint32_t len = in->hdr->caplen, granules;
	struct leat_xdp_buff xdp;
	struct leat_run run;

	if (why != LEAT_DROP_MAX) {
		leat_rxq_drop(napi, why, 1);
		return true;
	}
	granules = LEAT_GRANULES(rx->headroom + len + rx->tailroom);
	run = leat_page_pool_alloc(napi->pool, granules ? granules : 1);
	if (leat_unlikely(leat_run_is_none(run)))
		return false;
	leat_xdp_buff_init(&xdp, run, rx->headroom, len);
	if (len)
		memcpy(xdp.data, in->bytes, len);
	xdp.meta.timestamp = (uint64_t)in->hdr->ts.tv_sec * LEAT_NSEC_PER_SEC + (uint64_t)in->hdr->ts.tv_usec;
	xdp.meta.flags = LEAT_META_TIMESTAMP;
	leat_rx_packet(rx, &xdp);
	return true;
}

static int pcap_in_poll(struct leat_napi *napi, int budget)
{
	struct pcap_in *in = napi->dev->priv;
	struct leat_rx rx;
	int n, got = 0;

	if (in->ended)
		return 0;
	leat_rx_begin(&rx, napi);
	for (n = 0; n < budget; n++) {
		got = pcap_in_read(in, napi->fd);
		if (got <= 0)
			break;
		if (!pcap_in_deliver(in, napi, &rx)) {
			napi->starved = true;
			break;
		}
		in->pending = false;
	}
	leat_rx_end(&rx);
	if (got < 0)
		pcap_in_end(napi->dev, got == PCAP_ERROR_BREAK ? 0 : -EIO);
	return n;
}

/* Opens in->file as a capture of Ethernet packets. */
static int pcap_in_open_file(struct pcap_in *in, struct leat_napi *napi, struct leat_diag *diag)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	FILE *stream = pcap_stream_open(in->file, "rbe", STDIN_FILENO);
	int err = -errno;

	if (!stream) {
		leat_diag_add(diag, "cannot open capture '%s': %s", in->file, strerror(-err));
		return err;
	}
	in->waits = fd_waits(fileno(stream));
	if (in->waits)
		setvbuf(stream, NULL, _IONBF, 0); /* what poll() does not see must not be in a buffer */
	in->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!in->pcap) {
		leat_diag_add(diag, "'%s' is not a capture: %s", in->file, text);
		fclose(stream);
		return -EINVAL;
	}
	napi->fd = in->waits ? fileno(stream) : -1;
	if (pcap_datalink(in->pcap) == DLT_EN10MB)
		return 0;
	leat_diag_add(diag, "capture '%s' holds link type %d, not Ethernet", in->file, pcap_datalink(in->pcap));
	return -EINVAL;
}

static void pcap_in_stop(struct leat_netdev *dev)
{
	struct pcap_in *in = dev->priv;

	leat_napi_pool_destroy(&dev->napi[0]);
	dev->napi[0].fd = -1;
	if (in->pcap)
		pcap_close(in->pcap);
	in->pcap = NULL;
}

static int pcap_in_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_in *in = dev->priv;
	int err;

	in->record = 0;
	in->pending = false;
	in->ended = false;
	err = pcap_in_open_file(in, &dev->napi[0], diag);
	if (!err)
		err = leat_driver_pool_create(&dev->napi[0], diag);
	if (err)
		pcap_in_stop(dev);
	return err;
}

static void pcap_in_destroy(struct leat_netdev *dev)
{
	struct pcap_in *in = dev->priv;

	leat_heap_free(in->file);
}

static const struct leat_netdev_ops pcap_in_ops = {
	.open = pcap_in_open,
	.stop = pcap_in_stop,
	.poll = pcap_in_poll,
	.destroy = pcap_in_destroy,
};

/* A copy of the file name at @copy; without memory the port goes again. */
static int pcap_keep_file(struct leat_netdev **dev, char **copy, const char *file, struct leat_diag *diag)
{
	*copy = leat_heap_strdup(file);
	if (*copy)
		return 0;
	leat_diag_add(diag, "cannot keep the file name: %s", strerror(ENOMEM));
	leat_netdev_destroy(*dev);
	*dev = NULL;
	return -ENOMEM;
}

static int pcap_in_create(struct leat_net *net, const char *name, const void *arg, struct leat_diag *diag,
			  struct leat_netdev **dev)
{
	const struct pcap_in_opts *opts = arg;
	struct pcap_in *in;
	int err;

	err = leat_driver_netdev_create(net, "pcap-in", name, &pcap_in_ops, 1, 1, sizeof(*in), diag, dev);
	if (err)
		return err;
	in = (*dev)->priv;
	(*dev)->mtu = opts->mtu;
	(*dev)->flags |= LEAT_NETDEV_SOURCE;
	return pcap_keep_file(dev, &in->file, opts->file, diag);
}

const struct leat_driver leat_pcap_in_driver = {
	.type = "pcap-in",
	.help = "reads packets from a capture file",
	.params = pcap_in_params,
	.opts_size = sizeof(struct pcap_in_opts),
	.create = pcap_in_create,
};

/* ---- pcap-out ---- */

struct pcap_out_opts {
	char *file;
	uint32_t precision; /* index into precisions */
	uint32_t snaplen;
	uint32_t mtu;
};

static const char *const precisions[] = { "micro", "nano", NULL };

static const struct {
	int pcap;        /* PCAP_TSTAMP_PRECISION_* */
	uint64_t nsecs;  /* of one unit */
} units[] = {
	{ PCAP_TSTAMP_PRECISION_MICRO, 1000 },
	{ PCAP_TSTAMP_PRECISION_NANO, 1 },
};

/* Written under the lock of the transmit queue while the port is open. */
struct pcap_out {
	char *file;
	uint32_t precision;
	uint32_t snaplen;
	pcap_t *pcap;
	pcap_dumper_t *dump; /* owns the stream */
	bool waits;          /* a pipe: whoever reads it gets each batch at once */
	int error;           /* negative errno of the write that failed */
	uint8_t *linear;     /* snaplen bytes, for packets in several pieces */
};

static const struct leat_param pcap_out_params[] = {
	{ .name = "file", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED,
	  .offset = offsetof(struct pcap_out_opts, file), .min = 1, .max = 4095,
	  .help = "capture to write (what is there is replaced); -: standard output" },
	{ .name = "precision", .kind = LEAT_PARAM_CHOICE, .offset = offsetof(struct pcap_out_opts, precision),
	  .choices = precisions, .default_text = "micro", .help = "unit of the timestamps" },
	{ .name = "snaplen", .kind = LEAT_PARAM_U32, .offset = offsetof(struct pcap_out_opts, snaplen),
	  .min = LEAT_ETH_HLEN, .max = PCAP_SNAPLEN, .default_text = "262144", .help = "bytes to keep of a packet" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct pcap_out_opts, mtu), .min = LEAT_MTU_MIN,
	  .max = LEAT_MTU_MAX, .default_text = "9216", .help = "longest packet, bytes after the Ethernet header" },
	{ .name = NULL },
};

/* A packet as pcap-out sees it: pieces in order. */
struct pcap_packet {
	const uint8_t *head;
	uint32_t headlen, len;
	const struct leat_frag *frag;
	unsigned int n_frags;
	const struct leat_pkt_meta *meta;
};

/* The first @len bytes of the packet in one piece. */
static const uint8_t *pcap_out_linear(struct pcap_out *out, const struct pcap_packet *pkt, uint32_t len)
{
	uint32_t done = pkt->headlen, part;
	unsigned int i;

	if (len <= pkt->headlen)
		return pkt->head;
	memcpy(out->linear, pkt->head, pkt->headlen);
	for (i = 0; i < pkt->n_frags && done < len; i++, done += part) {
		part = pkt->frag[i].len < len - done ? pkt->frag[i].len : len - done;
		memcpy(out->linear + done, leat_run_start(pkt->frag[i].run) + pkt->frag[i].off, part);
	}
	return out->linear;
}

/* Writes one record; false when the stream has an error. */
static bool pcap_out_write(struct pcap_out *out, const struct pcap_packet *pkt)
{
	uint64_t ns = pkt->meta->flags & LEAT_META_TIMESTAMP ? pkt->meta->timestamp : leat_clock_real_ns();
	uint32_t caplen = pkt->len < out->snaplen ? pkt->len : out->snaplen;
	struct pcap_pkthdr hdr = {
		.ts.tv_sec = (time_t)(ns / LEAT_NSEC_PER_SEC),
		.ts.tv_usec = (suseconds_t)(ns % LEAT_NSEC_PER_SEC / units[out->precision].nsecs),
		.caplen = caplen,
		.len = pkt->len,
	};

	pcap_dump((u_char *)out->dump, &hdr, pcap_out_linear(out, pkt, caplen));
	return !ferror(pcap_dump_file(out->dump));
}

/* Pushes buffered records out. Returns 0 or a negative errno. */
static int pcap_out_flush(struct pcap_out *out)
{
	errno = 0;
	if (!pcap_dump_flush(out->dump) && !ferror(pcap_dump_file(out->dump)))
		return 0;
	return errno ? -errno : -EIO;
}

/* The end of a batch of which @n were written. Returns what the transmit function returns. */
static int pcap_out_done(struct leat_netdev *dev, unsigned int n, bool ok)
{
	struct pcap_out *out = dev->priv;
	char what[512];

	if (!ok)
		out->error = errno ? -errno : -EIO;
	else if (out->waits)
		out->error = pcap_out_flush(out);
	if (!out->error)
		return (int)n;
	snprintf(what, sizeof(what), "cannot write capture '%.400s'", out->file);
	leat_netdev_finish(dev, out->error, what);
	return n ? (int)n : out->error;
}

static int pcap_out_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct pcap_out *out = dev->priv;
	bool ok = true;
	unsigned int i;

	(void)txq;
	if (out->error)
		return out->error;
	errno = 0;
	for (i = 0; i < n; i++) {
		const struct leat_xdp_frags *frags = frames[i]->frags;
		struct pcap_packet pkt = {
			.head = frames[i]->data,
			.headlen = frames[i]->len,
			.len = leat_xdp_frame_len(frames[i]),
			.frag = frags ? frags->frag : NULL,
			.n_frags = frags ? frags->n : 0,
			.meta = &frames[i]->meta,
		};

		ok = pcap_out_write(out, &pkt);
		if (!ok)
			break;
	}
	leat_xdp_return_frame_bulk(frames, i);
	return pcap_out_done(dev, i, ok);
}

static int pcap_out_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n)
{
	struct pcap_out *out = dev->priv;
	bool ok = true;
	unsigned int i;

	(void)txq;
	if (out->error)
		return out->error;
	errno = 0;
	for (i = 0; i < n; i++) {
		struct pcap_packet pkt = {
			.head = skbs[i]->data,
			.headlen = leat_skb_headlen(skbs[i]),
			.len = skbs[i]->len,
			.frag = skbs[i]->frag,
			.n_frags = skbs[i]->nr_frags,
			.meta = &skbs[i]->meta,
		};

		ok = pcap_out_write(out, &pkt);
		if (!ok)
			break;
	}
	leat_skb_free_bulk(skbs, i);
	return pcap_out_done(dev, i, ok);
}

/* Closes the file and says what the system says about it: some errors show only here. */
static int pcap_out_close(struct pcap_out *out)
{
	int err = pcap_out_flush(out);
	int copy = fcntl(fileno(pcap_dump_file(out->dump)), F_DUPFD_CLOEXEC, 0);

	/* pcap_dump_close() keeps close()'s answer to itself; closing a copy asks the file system the same question */
	if (copy >= 0 && close(copy) && !err)
		err = -errno;
	pcap_dump_close(out->dump);
	out->dump = NULL;
	return err;
}

static void pcap_out_stop(struct leat_netdev *dev)
{
	struct pcap_out *out = dev->priv;
	int err = out->dump ? pcap_out_close(out) : 0;
	char what[512];

	if (err && !out->error) { /* packets that were counted as sent are lost: the port has failed, if late */
		snprintf(what, sizeof(what), "capture '%.400s' is not complete", out->file);
		leat_netdev_finish(dev, err, what);
	}
	if (out->pcap)
		pcap_close(out->pcap);
	out->pcap = NULL;
	leat_heap_free(out->linear);
	out->linear = NULL;
}

static int pcap_out_open_file(struct pcap_out *out, struct leat_diag *diag)
{
	FILE *stream = pcap_stream_open(out->file, "wbe", STDOUT_FILENO);
	int err = -errno;

	if (!stream)
		goto fail;
	out->waits = fd_waits(fileno(stream));
	out->dump = pcap_dump_fopen(out->pcap, stream); /* closes the stream when it fails */
	err = out->dump ? pcap_out_flush(out) : -EIO;
	out->error = err; /* said here, so not again when it is closed */
	if (!err)
		return 0;
fail:
	leat_diag_add(diag, "cannot write capture '%s': %s", out->file, strerror(-err));
	return err;
}

static int pcap_out_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_out *out = dev->priv;
	int err = -ENOMEM;

	out->error = 0;
	out->linear = leat_heap_zalloc(out->snaplen);
	out->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, (int)out->snaplen,
							 (u_int)units[out->precision].pcap);
	if (!out->linear || !out->pcap)
		leat_diag_add(diag, "cannot prepare capture '%s': %s", out->file, strerror(-err));
	else
		err = pcap_out_open_file(out, diag);
	if (err)
		pcap_out_stop(dev);
	return err;
}

static void pcap_out_destroy(struct leat_netdev *dev)
{
	struct pcap_out *out = dev->priv;

	leat_heap_free(out->file);
}

static const struct leat_netdev_ops pcap_out_ops = {
	.open = pcap_out_open,
	.stop = pcap_out_stop,
	.xdp_xmit = pcap_out_xdp_xmit,
	.start_xmit = pcap_out_start_xmit,
	.destroy = pcap_out_destroy,
};

static int pcap_out_create(struct leat_net *net, const char *name, const void *arg, struct leat_diag *diag,
			   struct leat_netdev **dev)
{
	const struct pcap_out_opts *opts = arg;
	struct pcap_out *out;
	int err;

	err = leat_driver_netdev_create(net, "pcap-out", name, &pcap_out_ops, 0, 1, sizeof(*out), diag, dev);
	if (err)
		return err;
	out = (*dev)->priv;
	out->precision = opts->precision;
	out->snaplen = opts->snaplen;
	(*dev)->mtu = opts->mtu;
	if (!strcmp(opts->file, "-"))
		(*dev)->flags |= LEAT_NETDEV_STDOUT;
	return pcap_keep_file(dev, &out->file, opts->file, diag);
}

const struct leat_driver leat_pcap_out_driver = {
	.type = "pcap-out",
	.help = "writes packets to a capture file",
	.params = pcap_out_params,
	.opts_size = sizeof(struct pcap_out_opts),
	.create = pcap_out_create,
};
