/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pktgen.c: a port that brings Ethernet/IPv4/UDP packets of its own making, all checksums right. Its poll runs on one
 * worker and copies one template per packet, then fills in what changes: the UDP source port (flows), a 64-bit
 * big-endian sequence number at the start of the UDP payload (from 0, and always there: the shortest frame has
 * 18 bytes of payload), and the UDP checksum, by its difference from the template's (RFC 1624).
 *
 * A rate is kept by a token bucket on the monotonic clock, which lets the worker sleep until the next batch is due.
 * When memory is out the next packet waits: nothing is lost or left out. What is sent to the port comes to rest here.
 */
#include "base/clock.h"
#include "drivers/drivers.h"

#include <errno.h>
#include <string.h>

#define PKTGEN_LEN_MIN 60u
#define PKTGEN_LEN_MAX 9014u
#define PKTGEN_RATE_MAX 1000000000u
/* Packets to sleep for at most: more at a time would overflow the queues behind us. */
#define PKTGEN_BATCH_MAX 256u

/* Where things stand in the frame (RFC 894, 791, 768). */
#define IP_OFF LEAT_ETH_HLEN
#define IP_CSUM_OFF (IP_OFF + 10)
#define IP_HLEN 20u
#define UDP_OFF (IP_OFF + IP_HLEN)
#define UDP_CSUM_OFF (UDP_OFF + 6)
#define UDP_HLEN 8u
#define SEQ_OFF (UDP_OFF + UDP_HLEN)

struct pktgen_opts {
	uint32_t len;
	uint32_t mtu;
	uint64_t count;
	uint64_t rate;
	uint8_t src[6], dst[6];
	uint32_t src_ip, dst_ip; /* network order */
	uint32_t src_port, dst_port;
	uint32_t flows;
};

/* Written by the polling worker only, after creation. */
struct pktgen {
	struct pktgen_opts opts;
	uint64_t seq;      /* number of the next packet */
	uint32_t flow;     /* its flow, 0..flows - 1 */
	uint32_t base_sum; /* of pseudo header, UDP header and payload, with source port, checksum and sequence zero */
	uint64_t last;     /* when credit was last added, monotonic ns; 0: never */
	uint64_t credit;   /* packets that may go now, in units of 1e-9 packet */
	bool finished;
	uint8_t frame[PKTGEN_LEN_MAX];
};

#define PARAM(id, type, field) .name = id, .kind = LEAT_PARAM_##type, .offset = offsetof(struct pktgen_opts, field)

static const struct leat_param pktgen_params[] = {
	{ PARAM("size", U32, len), .min = PKTGEN_LEN_MIN, .max = PKTGEN_LEN_MAX, .default_text = "60",
	  .help = "length of a frame without its check sequence, bytes" },
	{ PARAM("mtu", U32, mtu), .min = 0, .max = LEAT_MTU_MAX, .default_text = "0",
	  .help = "longest packet, bytes after the Ethernet header; 0: 1500, or what size needs" },
	{ PARAM("count", U64, count), .default_text = "0", .help = "packets to send; 0: without end" },
	{ PARAM("rate", U64, rate), .min = 0, .max = PKTGEN_RATE_MAX, .default_text = "0",
	  .help = "packets per second; 0: as fast as possible" },
	{ PARAM("src", MAC, src), .default_text = "02:00:00:00:00:01", .help = "source Ethernet address" },
	{ PARAM("dst", MAC, dst), .default_text = "02:00:00:00:00:02", .help = "destination Ethernet address" },
	{ PARAM("src-ip", IPV4, src_ip), .default_text = "198.18.0.1", .help = "source IPv4 address" },
	{ PARAM("dst-ip", IPV4, dst_ip), .default_text = "198.18.0.2", .help = "destination IPv4 address" },
	{ PARAM("src-port", U32, src_port), .min = 1, .max = 65535, .default_text = "1024",
	  .help = "UDP source port of the first flow" },
	{ PARAM("dst-port", U32, dst_port), .min = 1, .max = 65535, .default_text = "9",
	  .help = "UDP destination port" },
	{ PARAM("flows", U32, flows), .min = 1, .max = 65535, .default_text = "1",
	  .help = "UDP source ports to go through in turn" },
	{ .name = NULL },
};

/* ---- the template ---- */

static void put_be16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put_be64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

/* Sum of the 16-bit words of @len bytes (RFC 1071), an odd last byte padded with zero. At most 2^16 words. */
static uint32_t sum_words(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0, i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	return sum;
}

static uint32_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

static void pktgen_build(struct pktgen *pg)
{
	const struct pktgen_opts *o = &pg->opts;
	uint32_t ip_len = o->len - IP_OFF, udp_len = ip_len - IP_HLEN;
	uint8_t *ip = pg->frame + IP_OFF, *udp = pg->frame + UDP_OFF;

	memcpy(pg->frame, o->dst, 6);
	memcpy(pg->frame + 6, o->src, 6);
	put_be16(pg->frame + 12, 0x0800);
	ip[0] = 0x45;
	put_be16(ip + 2, ip_len);
	put_be16(ip + 6, 0x4000); /* do not fragment, so the identification may stay zero (RFC 6864, 4.1) */
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, &o->src_ip, 4);
	memcpy(ip + 16, &o->dst_ip, 4);
	put_be16(pg->frame + IP_CSUM_OFF, ~fold(sum_words(ip, IP_HLEN)));
	put_be16(udp + 2, o->dst_port);
	put_be16(udp + 4, udp_len);
	pg->base_sum = fold((uint64_t)sum_words(ip + 12, 8) + ip[9] + udp_len + sum_words(udp, udp_len));
}

/* ---- the poll ---- */

static void pktgen_fill(struct pktgen *pg, uint8_t *frame)
{
	uint32_t port = pg->opts.src_port + pg->flow, csum;
	uint64_t seq = pg->seq;

	port = port > 65535 ? port - 65535 : port; /* on past the last port from 1: port 0 is reserved */
	csum = ~fold(pg->base_sum + port + (seq >> 48) + (seq >> 32 & 0xffff) + (seq >> 16 & 0xffff) +
		     (seq & 0xffff)) & 0xffff;
	memcpy(frame, pg->frame, pg->opts.len);
	put_be16(frame + UDP_OFF, port);
	put_be16(frame + UDP_CSUM_OFF, csum ? csum : 0xffff); /* zero would say that there is none (RFC 768) */
	put_be64(frame + SEQ_OFF, seq);
	pg->seq++;
	if (++pg->flow == pg->opts.flows)
		pg->flow = 0;
}

/* Makes and hands on one packet; false when memory is out. */
static bool pktgen_one(struct pktgen *pg, struct leat_napi *napi, struct leat_rx *rx)
{
	uint32_t granules = LEAT_GRANULES(rx->headroom + pg->opts.len + rx->tailroom);
	struct leat_run run = leat_page_pool_alloc(napi->pool, granules);
	struct leat_xdp_buff xdp;

	if (leat_unlikely(leat_run_is_none(run)))
		return false;
	leat_xdp_buff_init(&xdp, run, rx->headroom, pg->opts.len);
	pktgen_fill(pg, xdp.data);
	leat_rx_packet(rx, &xdp);
	return true;
}

/* Adds what the clock allows since the last look; a long sleep earns at most 10 ms worth of packets (or one budget). */
static void pktgen_earn(struct pktgen *pg, uint64_t now)
{
	uint64_t rate = pg->opts.rate, burst = rate / 100 > LEAT_NAPI_BUDGET ? rate / 100 : LEAT_NAPI_BUDGET;
	uint64_t elapsed = pg->last ? now - pg->last : 0;

	if (elapsed > LEAT_NSEC_PER_SEC)
		elapsed = LEAT_NSEC_PER_SEC;
	pg->last = now;
	pg->credit += elapsed * rate; /* at most 1e18 */
	if (pg->credit > burst * LEAT_NSEC_PER_SEC)
		pg->credit = burst * LEAT_NSEC_PER_SEC;
}

/* When the next batch is due: one packet, or at high rates a millisecond of them, so that a wake-up is worth it. */
static uint64_t pktgen_due(const struct pktgen *pg)
{
	uint64_t batch = pg->opts.rate / 1000, need;

	batch = batch < 1 ? 1 : batch > PKTGEN_BATCH_MAX ? PKTGEN_BATCH_MAX : batch;
	need = batch * LEAT_NSEC_PER_SEC;
	return need <= pg->credit ? pg->last : pg->last + (need - pg->credit + pg->opts.rate - 1) / pg->opts.rate;
}

/* Packets that may go in this poll. */
static unsigned int pktgen_want(struct pktgen *pg, unsigned int budget)
{
	uint64_t want = budget, due;

	if (pg->opts.rate) {
		pktgen_earn(pg, leat_clock_ns());
		due = pg->credit / LEAT_NSEC_PER_SEC;
		want = due < want ? due : want;
	}
	if (pg->opts.count && pg->opts.count - pg->seq < want)
		want = pg->opts.count - pg->seq;
	return (unsigned int)want;
}

static int pktgen_poll(struct leat_napi *napi, int budget)
{
	struct pktgen *pg = napi->dev->priv;
	unsigned int n = 0, want;
	struct leat_rx rx;

	napi->due = 0;
	if (pg->finished)
		return 0;
	want = pktgen_want(pg, (unsigned int)budget);
	leat_rx_begin(&rx, napi);
	while (n < want && pktgen_one(pg, napi, &rx))
		n++;
	leat_rx_end(&rx);
	if (n < want)
		napi->starved = true;
	if (pg->opts.rate)
		pg->credit -= n * LEAT_NSEC_PER_SEC;
	if (pg->opts.count && pg->seq == pg->opts.count) {
		pg->finished = true;
		leat_netdev_finish(napi->dev, 0, NULL);
	} else if (pg->opts.rate && n == want) {
		napi->due = pktgen_due(pg);
	}
	return (int)n;
}

/* ---- the port ---- */

static int pktgen_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct pktgen *pg = dev->priv;

	pg->seq = 0;
	pg->flow = 0;
	pg->last = 0;
	pg->credit = LEAT_NSEC_PER_SEC; /* the first packet goes at once */
	pg->finished = false;
	return leat_driver_pool_create(&dev->napi[0], diag);
}

static void pktgen_stop(struct leat_netdev *dev)
{
	leat_napi_pool_destroy(&dev->napi[0]);
}

static const struct leat_netdev_ops pktgen_ops = {
	.open = pktgen_open,
	.stop = pktgen_stop,
	.poll = pktgen_poll,
	.xdp_xmit = leat_sink_xdp_xmit,
	.start_xmit = leat_sink_start_xmit,
};

/* The MTU that the options ask for, or 0 when they contradict each other. */
static uint32_t pktgen_mtu(const struct pktgen_opts *opts, struct leat_diag *diag)
{
	uint32_t need = opts->len - LEAT_ETH_HLEN;

	if (!opts->mtu)
		return need > LEAT_MTU_DEFAULT ? need : LEAT_MTU_DEFAULT;
	if (opts->mtu >= LEAT_MTU_MIN && need <= opts->mtu)
		return opts->mtu;
	if (opts->mtu < LEAT_MTU_MIN)
		leat_diag_add(diag, "mtu %u is below %u", opts->mtu, LEAT_MTU_MIN);
	else
		leat_diag_add(diag, "frames of size %u need an mtu of %u, not %u", opts->len, need, opts->mtu);
	return 0;
}

static int pktgen_create(struct leat_net *net, const char *name, const void *arg, struct leat_diag *diag,
			 struct leat_netdev **dev)
{
	const struct pktgen_opts *opts = arg;
	uint32_t mtu = pktgen_mtu(opts, diag);
	struct pktgen *pg;
	int err;

	if (!mtu)
		return -EINVAL;
	err = leat_driver_netdev_create(net, "pktgen", name, &pktgen_ops, 1, leat_net_workers(net), sizeof(*pg), diag,
					dev);
	if (err)
		return err;
	pg = (*dev)->priv;
	pg->opts = *opts;
	pktgen_build(pg);
	(*dev)->mtu = mtu;
	(*dev)->flags |= LEAT_NETDEV_SOURCE;
	memcpy((*dev)->mac, opts->src, 6);
	return 0;
}

const struct leat_driver leat_pktgen_driver = {
	.type = "pktgen",
	.help = "makes UDP packets, and takes every packet",
	.params = pktgen_params,
	.opts_size = sizeof(struct pktgen_opts),
	.create = pktgen_create,
};
