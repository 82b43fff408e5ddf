/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_in.c: a port that reads a capture (pcap or pcapng, as libpcap does) and gives its packets with their timestamps.
 * The file "-" is standard input.
 *
 * It is polled by one worker. A record that cannot be used (captured only in part, longer than the MTU allows) is
 * counted and passed over; a record that cannot be read ends the port with an error, after everything before it was
 * delivered. When memory is out, the record that was read is kept for the next poll. From a pipe nothing is awaited:
 * pcap_pipe.c collects whole records, and what is wrong with its file header ends the port when that has come.
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
#include <unistd.h>

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
	FILE *stream = leat_pcap_stream_open(fd, "rbe");
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
	int fd = leat_pcap_file_open(&in->file, O_RDONLY | O_NONBLOCK, STDIN_FILENO);
	int err = fd < 0 ? fd : leat_pcap_file_identify(&in->file, fd);

	if (err)
		leat_diag_add(diag, "cannot open capture '%s': %s", in->file.name, strerror(-err));
	else
		err = leat_pcap_file_claim(dev, diag);
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
	leat_pcap_file_forget(&in->file);
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
	return leat_pcap_keep_file(dev, &in->file.name, opts->file, diag);
}

const struct leat_driver leat_pcap_in_driver = {
	.type = "pcap-in",
	.help = "reads packets from a capture file",
	.params = pcap_in_params,
	.opts_size = sizeof(struct pcap_in_opts),
	.create = pcap_in_create,
};
