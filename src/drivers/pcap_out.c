/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_out.c: a port that writes what is sent to it to a capture. The file "-" is standard output.
 *
 * It has one transmit queue, whose lock keeps the workers apart. Its first write error ends it. A regular file is
 * emptied, and its header written, when the first packet comes or the port closes, not when it opens: a start that
 * fails at another port destroys nothing.
 */
#include "base/clock.h"
#include "base/heap.h"
#include "drivers/drivers.h"
#include "drivers/pcap_file.h"
#include "drivers/pcap_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	leat_pcap_file_forget(&out->file);
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
	int fd = leat_pcap_file_open(&out->file, O_WRONLY | O_CREAT, STDOUT_FILENO);
	int err = fd < 0 ? fd : leat_pcap_file_identify(&out->file, fd);

	if (!err) {
		err = leat_pcap_file_claim(dev, diag);
		if (err) {
			close(fd);
			return err;
		}
		out->stream = leat_pcap_stream_open(fd, "wbe");
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
	return leat_pcap_keep_file(dev, &out->file.name, opts->file, diag);
}

const struct leat_driver leat_pcap_out_driver = {
	.type = "pcap-out",
	.help = "writes packets to a capture file",
	.params = pcap_out_params,
	.opts_size = sizeof(struct pcap_out_opts),
	.create = pcap_out_create,
};
