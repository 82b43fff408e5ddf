/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap.c: a kernel TAP interface, in this or in a named network namespace; no offloads.
 *
 * Receive: one read(2) per packet straight into a pool buffer that is large enough for any frame, then the end that the
 * packet did not need goes back to the cursor. Transmit: one writev(2) per packet under the queue's lock; the
 * descriptor does not block. The descriptor is watched edge-triggered by the worker, so it is read until empty.
 *
 * An interface that is removed under us gives EBADFD or EIO on read: the port fails, with a message, and the rest of
 * the datapath goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <leat/driver.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory_why.h"
#include "drivers/drivers.h"

/** When to try again after an error that may pass, ns. */
#define RETRY_NS UINT64_C(1000000)
#define NETNS_PATH_SIZE 300

struct tap_opts {
	char *ifname;
	char *netns;
	uint32_t mtu;
	uint8_t mac[6];
};

static const struct leat_param tap_params[] = {
	{ .name = "ifname", .kind = LEAT_PARAM_STRING, .flags = LEAT_PARAM_REQUIRED | LEAT_PARAM_IFNAME,
	  .offset = offsetof(struct tap_opts, ifname), .min = 1, .max = IFNAMSIZ - 1,
	  .help = "name of the interface; made when it does not exist" },
	{ .name = "netns", .kind = LEAT_PARAM_STRING, .offset = offsetof(struct tap_opts, netns), .min = 1, .max = 255,
	  .help = "network namespace of the interface: a name as in ip-netns(8), or a path; default: this one" },
	{ .name = "mtu", .kind = LEAT_PARAM_U32, .offset = offsetof(struct tap_opts, mtu), .min = LEAT_MTU_MIN,
	  .max = LEAT_MTU_MAX, .help = "bytes after the Ethernet header; default: what the interface has" },
	{ .name = "mac", .kind = LEAT_PARAM_MAC, .flags = LEAT_PARAM_STATION,
	  .offset = offsetof(struct tap_opts, mac), .help = "address of the interface; default: what it has" },
	{ .name = NULL },
};

struct tap {
	char ifname[IFNAMSIZ];
	char netns[256]; /* empty: this one */
	uint32_t mtu;    /* 0: what the interface has */
	bool set_mac;
	int fd;
};

/* ---- receive ---- */

/** What a read error means. Returns true when the port has failed. */
static void read_error(struct leat_napi *napi, int error)
{
	if (error == EAGAIN || error == EINTR)
		return;
	if (error == EBADFD || error == ENODEV || error == EIO) {
		leat_netdev_finish(napi->dev, -error, "the interface is gone");
		return;
	}
	leat_rxq_drop(napi, LEAT_DROP_RX_ERROR, 1);
	napi->due = leat_clock_ns() + RETRY_NS;
}

/** Receives one packet; false when there is none or no memory for it. */
static bool receive_one(struct leat_rx *rx, struct tap *tap, uint32_t room)
{
	struct leat_napi *napi = rx->napi;
	uint32_t granules = LEAT_GRANULES(rx->headroom + room + rx->tailroom);
	struct leat_run run = leat_page_pool_alloc(napi->pool, granules);
	struct leat_xdp_buff xdp;
	ssize_t n;

	if (leat_unlikely(leat_run_is_none(run))) {
		napi->starved = true;
		return false;
	}
	n = read(tap->fd, leat_run_start(run) + rx->headroom, room);
	if (n <= 0) {
		leat_page_pool_cancel(napi->pool, run);
		read_error(napi, n ? errno : EAGAIN);
		return false;
	}
	if (leat_unlikely((uint32_t)n == room)) { /* one more than the longest frame: the rest is lost */
		leat_page_pool_cancel(napi->pool, run);
		leat_rxq_drop(napi, LEAT_DROP_OVERSIZE, 1);
		return true;
	}
	run = leat_page_pool_trim(napi->pool, run, LEAT_GRANULES(rx->headroom + (uint32_t)n + rx->tailroom));
	leat_xdp_buff_init(&xdp, run, rx->headroom, (uint32_t)n);
	leat_rx_packet(rx, &xdp);
	return true;
}

static int tap_poll(struct leat_napi *napi, int budget)
{
	struct tap *tap = napi->dev->priv;
	uint32_t room = leat_netdev_frame_max(napi->dev) + 1;
	struct leat_rx rx;
	int n = 0;

	napi->due = 0;
	if (__atomic_load_n(&napi->dev->state, __ATOMIC_RELAXED) & LEAT_NETDEV_FAILED)
		return 0;
	leat_rx_begin(&rx, napi);
	while (n < budget && receive_one(&rx, tap, room))
		n++;
	leat_rx_end(&rx);
	return n;
}

/* ---- transmit ---- */

static int write_packet(const struct tap *tap, const struct iovec *iov, unsigned int n)
{
	ssize_t sent;

	do
		sent = writev(tap->fd, iov, (int)n);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static unsigned int add_frags(struct iovec *iov, unsigned int n, const struct leat_frag *frag, unsigned int frags)
{
	unsigned int i;

	for (i = 0; i < frags; i++)
		iov[n++] = (struct iovec){ leat_run_start(frag[i].run) + frag[i].off, frag[i].len };
	return n;
}

/** What a transmit function returns after @sent packets and then @err. */
static int outcome(unsigned int sent, int err)
{
	return sent || !err || err == -EAGAIN || err == -ENOBUFS ? (int)sent : err;
}

static int tap_xdp_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n)
{
	struct iovec iov[1 + LEAT_MAX_FRAGS];
	unsigned int i, parts;
	int err = 0;

	(void)txq;
	for (i = 0; i < n; i++) {
		const struct leat_xdp_frame *frame = frames[i];

		iov[0] = (struct iovec){ frame->data, frame->len };
		parts = frame->frags ? add_frags(iov, 1, frame->frags->frag, frame->frags->n) : 1;
		err = write_packet(dev->priv, iov, parts);
		if (err)
			break;
	}
	leat_xdp_return_frame_bulk(frames, i);
	return outcome(i, err);
}

static int tap_start_xmit(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n)
{
	struct iovec iov[1 + LEAT_MAX_FRAGS];
	unsigned int i, parts;
	int err = 0;

	(void)txq;
	for (i = 0; i < n; i++) {
		iov[0] = (struct iovec){ skbs[i]->data, leat_skb_headlen(skbs[i]) };
		parts = add_frags(iov, 1, skbs[i]->frag, skbs[i]->nr_frags);
		err = write_packet(dev->priv, iov, parts);
		if (err)
			break;
	}
	leat_skb_free_bulk(skbs, i);
	return outcome(i, err);
}

/* ---- the interface ---- */

/** One opening, which may run on a thread of its own to be in another namespace. */
struct opening {
	struct leat_netdev *dev;
	struct tap *tap;
	int err;
	char message[192];
};

static int fail(struct opening *o, const char *what, int error)
{
	snprintf(o->message, sizeof(o->message), "%s: %s", what, strerror(error));
	o->err = -error;
	return -error;
}

static int open_device(struct opening *o)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	struct tap *tap = o->tap;
	int err;

	tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->fd < 0)
		return fail(o, errno == EACCES ? "cannot open /dev/net/tun: this user may not read and write it, and to make an "
						 "interface also needs the capability CAP_NET_ADMIN (run as root)"
					       : "cannot open /dev/net/tun (is the tun module loaded?)",
			    errno);
	memcpy(ifr.ifr_name, tap->ifname, sizeof(tap->ifname));
	if (!ioctl(tap->fd, TUNSETIFF, &ifr))
		return 0;
	if (errno == EPERM)
		return fail(o, "cannot attach to the interface: this needs the capability CAP_NET_ADMIN "
			       "(run as root, or give the interface an owner with ip-tuntap(8))",
			    errno);
	if (errno == EBUSY)
		return fail(o, "the interface is in use by another process", errno);
	err = errno;
	if (err == EINVAL && if_nametoindex(tap->ifname))
		return fail(o, "an interface of that name exists and is not a single-queue TAP without packet "
			       "information and offloads",
			    err);
	return fail(o, "cannot attach to the interface", err);
}

/** Sets an attribute of the interface if it differs; without the right to, only when it must change. */
static int set_mtu(struct opening *o, int sock, struct ifreq *ifr)
{
	struct tap *tap = o->tap;

	if (ioctl(sock, SIOCGIFMTU, ifr))
		return fail(o, "cannot read the MTU", errno);
	if (tap->mtu && ifr->ifr_mtu != (int)tap->mtu) {
		ifr->ifr_mtu = (int)tap->mtu;
		if (ioctl(sock, SIOCSIFMTU, ifr))
			return fail(o, "cannot set the MTU", errno);
	}
	if (ifr->ifr_mtu < (int)LEAT_MTU_MIN || ifr->ifr_mtu > (int)LEAT_MTU_MAX)
		return fail(o, "the interface has an MTU that is not within 68..9216", ERANGE);
	o->dev->mtu = (uint32_t)ifr->ifr_mtu;
	return 0;
}

static int set_mac(struct opening *o, int sock, struct ifreq *ifr)
{
	struct leat_netdev *dev = o->dev;

	if (o->tap->set_mac) {
		ifr->ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(ifr->ifr_hwaddr.sa_data, dev->mac, sizeof(dev->mac));
		if (ioctl(sock, SIOCSIFHWADDR, ifr))
			return fail(o, "cannot set the address", errno);
	}
	return 0;
}

static int set_up(struct opening *o, int sock, struct ifreq *ifr)
{
	if (ioctl(sock, SIOCGIFFLAGS, ifr))
		return fail(o, "cannot read the interface's flags", errno);
	if (ifr->ifr_flags & IFF_UP)
		return 0;
	ifr->ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, ifr) ? fail(o, "cannot bring the interface up", errno) : 0;
}

static int configure(struct opening *o)
{
	struct ifreq ifr = { .ifr_flags = 0 };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return fail(o, "cannot open a socket", errno);
	memcpy(ifr.ifr_name, o->tap->ifname, sizeof(o->tap->ifname));
	if (!set_mtu(o, sock, &ifr) && !set_mac(o, sock, &ifr))
		set_up(o, sock, &ifr);
	close(sock);
	return o->err;
}

static void *open_interface(void *arg)
{
	struct opening *o = arg;

	if (!open_device(o))
		configure(o);
	return NULL;
}

static void netns_path(char *path, size_t size, const char *netns)
{
	snprintf(path, size, strchr(netns, '/') ? "%s" : "/run/netns/%s", netns);
}

static int enter_netns(struct opening *o)
{
	char path[NETNS_PATH_SIZE];
	int fd, err = 0;

	netns_path(path, sizeof(path), o->tap->netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(o, "netns: cannot open the network namespace (see ip-netns(8))", errno);
	if (setns(fd, CLONE_NEWNET))
		err = fail(o, errno == EPERM ? "netns: entering another network namespace needs the capability CAP_SYS_ADMIN"
					     : "netns: cannot enter the network namespace",
			   errno);
	close(fd);
	return err;
}

static void *open_in_netns(void *arg)
{
	if (!enter_netns(arg))
		open_interface(arg);
	return NULL;
}

static void tap_stop(struct leat_netdev *dev)
{
	struct tap *tap = dev->priv;

	if (tap->fd >= 0)
		close(tap->fd);
	tap->fd = dev->napi[0].fd = -1;
	leat_napi_pool_destroy(&dev->napi[0]);
}

static int tap_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct tap *tap = dev->priv;
	struct opening o = { .dev = dev, .tap = tap };
	pthread_t thread;
	int err;

	if (!tap->netns[0]) {
		open_interface(&o);
	} else { /* a thread that ends in that namespace, so that ours never leaves its own */
		err = pthread_create(&thread, NULL, open_in_netns, &o);
		if (err)
			fail(&o, "cannot start a thread", err);
		else
			pthread_join(thread, NULL);
	}
	if (!o.err) {
		o.err = leat_napi_pool_create(&dev->napi[0], 0);
		if (o.err)
			snprintf(o.message, sizeof(o.message), "cannot make its receive pool: %s", leat_memory_why(o.err));
	}
	if (o.err) {
		leat_diag_add(diag, "interface '%s': %s", tap->ifname, o.message);
		tap_stop(dev);
		return o.err;
	}
	dev->napi[0].fd = tap->fd;
	return 0;
}

static const struct leat_netdev_ops tap_ops = {
	.open = tap_open,
	.stop = tap_stop,
	.poll = tap_poll,
	.xdp_xmit = tap_xdp_xmit,
	.start_xmit = tap_start_xmit,
};

/** The search for another port of the same interface. */
struct twin {
	const struct tap *tap;
	const struct leat_netdev *dev; /* that port */
};

static void compare_interface(struct leat_netdev *dev, void *arg)
{
	char own[NETNS_PATH_SIZE], others[NETNS_PATH_SIZE];
	const struct tap *other = dev->priv;
	struct twin *twin = arg;

	if (dev->ops != &tap_ops || other == twin->tap || strcmp(other->ifname, twin->tap->ifname) != 0)
		return;
	netns_path(own, sizeof(own), twin->tap->netns);
	netns_path(others, sizeof(others), other->netns);
	if (!strcmp(own, others))
		twin->dev = dev;
}

/** Two ports cannot have one interface: the second would find it in use. */
static int check_twins(struct leat_netdev *dev, struct leat_diag *diag)
{
	struct twin twin = { .tap = dev->priv };

	leat_net_for_each_port(dev->net, compare_interface, &twin);
	if (!twin.dev)
		return 0;
	leat_diag_add(diag, "interface '%s' is that of port '%s' already", twin.tap->ifname, twin.dev->name);
	return -EEXIST;
}

static int tap_create(struct leat_net *net, const char *name, const void *options, struct leat_diag *diag,
		      struct leat_netdev **out)
{
	static const uint8_t no_mac[6];
	const struct tap_opts *opts = options;
	struct leat_netdev *dev;
	struct tap *tap;
	int err = leat_driver_netdev_create(net, leat_tap_driver.type, name, &tap_ops, 1, 1, sizeof(*tap), diag, &dev);

	if (err)
		return err;
	tap = dev->priv;
	tap->fd = -1;
	tap->mtu = opts->mtu;
	tap->set_mac = memcmp(opts->mac, no_mac, sizeof(no_mac)) != 0;
	strncpy(tap->ifname, opts->ifname, sizeof(tap->ifname) - 1);
	strncpy(tap->netns, opts->netns ? opts->netns : "", sizeof(tap->netns) - 1);
	memcpy(dev->mac, opts->mac, sizeof(dev->mac));
	dev->flags |= LEAT_NETDEV_SOURCE;
	err = check_twins(dev, diag);
	if (err) {
		leat_netdev_destroy(dev);
		return err;
	}
	*out = dev;
	return 0;
}

const struct leat_driver leat_tap_driver = {
	.type = "tap",
	.help = "a kernel TAP interface",
	.params = tap_params,
	.opts_size = sizeof(struct tap_opts),
	.create = tap_create,
};
