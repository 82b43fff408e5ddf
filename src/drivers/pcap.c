/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap.c: captures as ports. pcap-in reads one (pcap or pcapng, as libpcap does) and gives its packets with their
 * timestamps; pcap-out writes what is sent to it. The file "-" is standard input or output.
 *
 * pcap-in is polled by one worker. A record that cannot be used (captured only in part, longer than the MTU allows) is
 * counted and passed over; a record that cannot be read ends the port with an error, after everything before it was
 * delivered. When memory is out, the record that was read is kept for the next poll. From a pipe nothing is awaited:
 * pcap_pipe.c collects whole records, and what is wrong with its file header ends the port when that has come.
 *
 * pcap-out has one transmit queue, whose lock keeps the workers apart. Its first write error ends it. A regular file is
 * emptied, and its header written, when the first packet comes or the port closes, not when it opens: a start that
 * fails at another port destroys nothing. No file is written by two ports, or read and written.
 */
#include "base/clock.h"
#include "base/heap.h"
#include "drivers/drivers.h"
#include "drivers/pcap_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

/* The file of a port of either kind: the first member of what is the port's own. Control. */
struct pcap_file {
	char *name;
	bool writes;  /* it is a pcap-out's */
	bool regular; /* it is open, and nobody waits for it; dev and ino say which */
	bool waits;   /* it is open, and reading or writing can mean waiting */
	dev_t dev;
	ino_t ino;
};

static const struct leat_netdev_ops pcap_in_ops, pcap_out_ops;

/* A descriptor of @file, or a copy of descriptor @std when its name is "-"; or a negative errno. */
static int pcap_file_open(const struct pcap_file *file, int flags, int std)
{
	int fd = strcmp(file->name, "-") != 0 ? open(file->name, flags | O_CLOEXEC | O_NOCTTY, 0666) :
						fcntl(std, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* A stream over @fd (consumed); NULL: errno says why. */
static FILE *pcap_stream_open(int fd, const char *mode)
{
	FILE *stream = fdopen(fd, mode);
	int err = errno;

	if (!stream)
		close(fd);
	errno = err;
	return stream;
}

/* Takes down what @fd is. Returns 0 or a negative errno. */
static int pcap_file_identify(struct pcap_file *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	file->regular = S_ISREG(st.st_mode);
	file->waits = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd);
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	return 0;
}

static void pcap_file_forget(struct pcap_file *file)
{
	file->regular = file->waits = false;
}

/* A look for another port that has the same file open, where one of the two writes it. */
struct pcap_rival {
	const struct pcap_file *file;
	const struct leat_netdev *found;
};

static void compare_port(struct leat_netdev *dev, void *arg)
{
	struct pcap_rival *rival = arg;
	const struct pcap_file *mine = rival->file, *other = dev->priv;

	if ((dev->ops != &pcap_in_ops && dev->ops != &pcap_out_ops) || other == mine)
		return;
	if (other->regular && (other->writes || mine->writes) && other->dev == mine->dev && other->ino == mine->ino)
		rival->found = dev;
}

/* Refuses a file of which another port is the writer, or that this one would write and another one reads. */
static int pcap_file_claim(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_file *file = dev->priv;
	struct pcap_rival rival = { .file = file };

	if (file->regular)
		leat_net_for_each_port(dev->net, compare_port, &rival);
	if (!rival.found)
		return 0;
	leat_diag_add(diag, "capture '%s' is the file that port '%s' %s", file->name, rival.found->name,
		      rival.found->ops == &pcap_out_ops ? "writes" : "reads");
	return -EBUSY;
}

/* ---- pcap-in ---- */

struct pcap_in_opts {
	char *file;
	uint32_t mtu;
};

/* Written by the polling worker while the port is open. */
struct pcap_in {
	struct pcap_file file;
	int fd;                /* of a pipe; otherwise -1 */
	struct pcap_pipe pipe; /* what has come through it */
	pcap_t *pcap;          /* owns the stream; NULL until the header of a pipe has come */
	bool pending; /* hdr and bytes hold a record that is not delivered yet */
	bool ended;   /* with error and what, unless that is 0 */
	int error;
	char what[512];
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

/* The port ends after what was read is delivered: @error 0 at the end of the file; otherwise @why is what is wrong. */
static void pcap_in_end(struct pcap_in *in, int error, const char *why)
{
	in->ended = true;
	in->error = error;
	if (error)
		snprintf(in->what, sizeof(in->what), "%.200s: record %llu: %.200s", in->file.name,
			 (unsigned long long)in->record + 1, why);
}

/* Makes the handle over @stream (consumed). Returns 0, or -EINVAL and why in @what. */
static int pcap_in_begin(struct pcap_in *in, FILE *stream, char *what, size_t size)
{
	char text[PCAP_ERRBUF_SIZE] = "";

	in->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!in->pcap) {
		snprintf(what, size, "'%.200s' is not a capture: %.250s", in->file.name, text);
		fclose(stream);
		return -EINVAL;
	}
	if (pcap_datalink(in->pcap) == DLT_EN10MB)
		return 0;
	snprintf(what, size, "capture '%.200s' holds link type %d, not Ethernet", in->file.name,
		 pcap_datalink(in->pcap));
	return -EINVAL;
}

/* The header of a pipe has come. Returns 0, or a negative errno and why in @what. */
static int pcap_in_begin_pipe(struct pcap_in *in, char *what, size_t size)
{
	const char *why = pcap_pipe_frame(&in->pipe);
	FILE *stream;

	if (why) {
		snprintf(what, size, "'%.200s' is not a capture: %s", in->file.name, why);
		return -EINVAL;
	}
	stream = pcap_pipe_stream(&in->pipe);
	if (stream)
		return pcap_in_begin(in, stream, what, size);
	snprintf(what, size, "cannot read '%.200s'", in->file.name);
	return -ENOMEM;
}

/* Whether a pipe has the next record, or its end, for libpcap. One with a fault ends the port. */
static bool pcap_in_pipe_ready(struct pcap_in *in)
{
	int got = pcap_pipe_fill(&in->pipe);

	if (got > 0 && !in->pcap) {
		in->error = pcap_in_begin_pipe(in, in->what, sizeof(in->what));
		in->ended = in->error != 0;
		if (in->ended)
			return false;
		got = pcap_pipe_fill(&in->pipe);
	}
	if (got < 0)
		pcap_in_end(in, got, "cannot be read");
	return got > 0;
}

/* Reads the next record unless one is pending. False: there is none, or none yet, or the port ends. */
static bool pcap_in_read(struct pcap_in *in)
{
	int got;

	if (in->pending)
		return true;
	if (in->file.waits && !pcap_in_pipe_ready(in))
		return false;
	got = pcap_next_ex(in->pcap, &in->hdr, &in->bytes);
	if (got == 1) {
		in->pending = true;
		in->record++;
	} else {
		pcap_in_end(in, got == PCAP_ERROR_BREAK ? 0 : -EIO, pcap_geterr(in->pcap));
	}
	return in->pending;
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
	int n;

	if (in->ended)
		return 0;
	leat_rx_begin(&rx, napi);
	for (n = 0; n < budget; n++) {
		if (!pcap_in_read(in))
			break;
		if (!pcap_in_deliver(in, napi, &rx)) {
			napi->starved = true;
			break;
		}
		in->pending = false;
	}
	leat_rx_end(&rx);
	if (in->ended)
		leat_netdev_finish(napi->dev, in->error, in->error ? in->what : NULL);
	return n;
}

/* Gets ready for what is to come through @fd (consumed). */
static int pcap_in_open_pipe(struct pcap_in *in, int fd, struct leat_diag *diag)
{
	int err = pcap_pipe_init(&in->pipe, fd);

	in->fd = fd;
	if (err)
		leat_diag_add(diag, "cannot read capture '%s': %s", in->file.name, strerror(-err));
	return err;
}

/* Opens the regular file @fd (consumed) as a capture of Ethernet packets. */
static int pcap_in_open_regular(struct pcap_in *in, int fd, struct leat_diag *diag)
{
	FILE *stream = pcap_stream_open(fd, "rbe");
	int err = stream ? 0 : -errno;

	if (err) {
		leat_diag_add(diag, "cannot open capture '%s': %s", in->file.name, strerror(-err));
		return err;
	}
	err = pcap_in_begin(in, stream, in->what, sizeof(in->what));
	if (err)
		leat_diag_add(diag, "%s", in->what);
	return err;
}

static int pcap_in_open_file(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_in *in = dev->priv;
	int fd = pcap_file_open(&in->file, O_RDONLY | O_NONBLOCK, STDIN_FILENO);
	int err = fd < 0 ? fd : pcap_file_identify(&in->file, fd);

	if (err)
		leat_diag_add(diag, "cannot open capture '%s': %s", in->file.name, strerror(-err));
	else
		err = pcap_file_claim(dev, diag);
	if (!err)
		return in->file.waits ? pcap_in_open_pipe(in, fd, diag) : pcap_in_open_regular(in, fd, diag);
	if (fd >= 0)
		close(fd);
	return err;
}

static void pcap_in_stop(struct leat_netdev *dev)
{
	struct pcap_in *in = dev->priv;

	leat_napi_pool_destroy(&dev->napi[0]);
	dev->napi[0].fd = -1;
	if (in->pcap)
		pcap_close(in->pcap);
	in->pcap = NULL;
	pcap_pipe_fini(&in->pipe);
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
	pcap_file_forget(&in->file);
}

static int pcap_in_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_in *in = dev->priv;
	int err;

	in->record = 0;
	in->pending = false;
	in->ended = false;
	in->fd = -1;
	err = pcap_in_open_file(dev, diag);
	if (!err)
		err = leat_driver_pool_create(&dev->napi[0], diag);
	if (err)
		pcap_in_stop(dev);
	else
		dev->napi[0].fd = in->fd;
	return err;
}

static void pcap_in_destroy(struct leat_netdev *dev)
{
	struct pcap_in *in = dev->priv;

	leat_heap_free(in->file.name);
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
	return pcap_keep_file(dev, &in->file.name, opts->file, diag);
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
	struct pcap_file file;
	uint32_t precision;
	uint32_t snaplen;
	pcap_t *pcap;
	FILE *stream;        /* of an open file that nothing was written to yet */
	pcap_dumper_t *dump; /* owns the stream from then on */
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

/* Empties the file, if it is a regular one of our own, and begins it with its header. Returns 0 or a negative errno. */
static int pcap_out_begin(struct pcap_out *out)
{
	FILE *stream = out->stream;
	struct stat st;

	if (!stream)
		return 0;
	out->stream = NULL;
	errno = 0;
	if (out->file.regular && strcmp(out->file.name, "-") != 0 &&
	    (fstat(fileno(stream), &st) || (st.st_size && ftruncate(fileno(stream), 0)))) {
		int err = errno;

		fclose(stream);
		return -err;
	}
	out->dump = pcap_dump_fopen(out->pcap, stream); /* closes the stream when it fails */
	return out->dump ? 0 : errno ? -errno : -EIO;
}

/* pcap_out_begin() before a batch. False: errno says why not. */
static bool pcap_out_ready(struct pcap_out *out)
{
	int err = pcap_out_begin(out);

	errno = -err;
	return !err;
}

/* The end of a batch of which @n were written. Returns what the transmit function returns. */
static int pcap_out_done(struct leat_netdev *dev, unsigned int n, bool ok)
{
	struct pcap_out *out = dev->priv;
	char what[512];

	if (!ok)
		out->error = errno ? -errno : -EIO;
	else if (out->file.waits) /* whoever reads the pipe gets each batch at once */
		out->error = pcap_out_flush(out);
	if (!out->error)
		return (int)n;
	snprintf(what, sizeof(what), "cannot write capture '%.400s'", out->file.name);
	leat_netdev_finish(dev, out->error, what);
	return n ? (int)n : out->error;
}

static int pcap_out_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct pcap_out *out = dev->priv;
	bool ok;
	unsigned int i;

	(void)txq;
	if (out->error)
		return out->error;
	ok = pcap_out_ready(out);
	for (i = 0; ok && i < n; i++) {
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
	bool ok;
	unsigned int i;

	(void)txq;
	if (out->error)
		return out->error;
	ok = pcap_out_ready(out);
	for (i = 0; ok && i < n; i++) {
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

/* Frees what opening made, without writing anything. */
static void pcap_out_release(struct pcap_out *out)
{
	if (out->stream)
		fclose(out->stream);
	out->stream = NULL;
	if (out->pcap)
		pcap_close(out->pcap);
	out->pcap = NULL;
	leat_heap_free(out->linear);
	out->linear = NULL;
	pcap_file_forget(&out->file);
}

static void pcap_out_stop(struct leat_netdev *dev)
{
	struct pcap_out *out = dev->priv;
	char what[512];
	int err = 0;

	if (!(__atomic_load_n(&dev->state, __ATOMIC_RELAXED) & LEAT_NETDEV_ABANDONED))
		err = pcap_out_begin(out); /* no packet came: a capture all the same */
	if (out->dump)
		err = pcap_out_close(out);
	if (err && !out->error) { /* packets that were counted as sent are lost: the port has failed, if late */
		snprintf(what, sizeof(what), "capture '%.400s' is not complete", out->file.name);
		leat_netdev_finish(dev, err, what);
	}
	pcap_out_release(out);
}

/* Begins what is not a regular file: nothing is lost by it, and who reads a pipe sees that we are here. */
static int pcap_out_begin_early(struct pcap_out *out)
{
	int err = pcap_out_begin(out);

	if (!err)
		err = pcap_out_flush(out);
	if (err && out->dump) {
		pcap_dump_close(out->dump);
		out->dump = NULL;
	}
	return err;
}

static int pcap_out_open_file(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pcap_out *out = dev->priv;
	int fd = pcap_file_open(&out->file, O_WRONLY | O_CREAT, STDOUT_FILENO);
	int err = fd < 0 ? fd : pcap_file_identify(&out->file, fd);

	if (!err) {
		err = pcap_file_claim(dev, diag);
		if (err) {
			close(fd);
			return err;
		}
		out->stream = pcap_stream_open(fd, "wbe");
		err = out->stream ? 0 : -errno;
	} else if (fd >= 0) {
		close(fd);
	}
	if (!err && !out->file.regular)
		err = pcap_out_begin_early(out);
	if (err)
		leat_diag_add(diag, "cannot write capture '%s': %s", out->file.name, strerror(-err));
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
		leat_diag_add(diag, "cannot prepare capture '%s': %s", out->file.name, strerror(-err));
	else
		err = pcap_out_open_file(dev, diag);
	if (err)
		pcap_out_release(out);
	return err;
}

static void pcap_out_destroy(struct leat_netdev *dev)
{
	struct pcap_out *out = dev->priv;

	leat_heap_free(out->file.name);
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
	out->file.writes = true;
	return pcap_keep_file(dev, &out->file.name, opts->file, diag);
}

const struct leat_driver leat_pcap_out_driver = {
	.type = "pcap-out",
	.help = "writes packets to a capture file",
	.params = pcap_out_params,
	.opts_size = sizeof(struct pcap_out_opts),
	.create = pcap_out_create,
};
