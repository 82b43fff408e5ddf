/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib_mirror.c: the kernel's forwarding table of a network namespace, in one of ours.
 *
 * Theory of operation. A thread of the mirror's own enters the namespace and opens two sockets: one listens to
 * notifications, the other one asks. It listens first, then reads all into a new table and puts that in place
 * (leat_fib_begin(), leat_fib_commit()). From then on
 *
 *   a route or a neighbour comes or goes     is applied by itself
 *   what is known is said once more          nothing is done
 *   anything else changes                    all is read anew, for the kernel does not say which routes went with an
 *                                            address or an interface; so are routes that replace others, that have
 *                                            several next hops, or whose place among others is not said
 *   notifications are lost (ENOBUFS)         all is read anew
 *
 * What happened before the reading is notified after it once more; the last word on each thing is the same, so that
 * does no harm. Between two readings is a pause: many changes cost one.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/opts.h"
#include "xdp/fib.h"
#include "xdp/fib_netlink.h"

#define BUFFER_SIZE (64u << 10)
/** Of notifications that wait, bytes. */
#define QUEUE_SIZE (8 << 20)
#define PAUSE_MS 10
/** Between readings that failed. */
#define RETRY_MS 500
/** A reading during which something changed is begun again, so often before there is a longer pause. */
#define INTERRUPTED_MAX 8u

struct leat_fib_mirror {
	struct leat_fib *fib;
	const struct leat_log *log;
	struct leat_fib_mirror_port *ports;
	char netns[256];
	pthread_t thread;
	sem_t started;  /* the thread has read all once, or failed: err, why */
	int err;
	const char *why;
	int stop;       /* eventfd */
	/* the thread's */
	struct mnl_socket *events, *ask;
	uint8_t *buffer;
	struct leat_fib_links links;
	struct leat_fib_route *hops; /* LEAT_FIB_HOPS_MAX */
	uint32_t sequence;
	bool stale;     /* all must be read anew */
	bool failing;   /* which has been said */
	struct leat_fib_mirror_stats stats; /* atomic */
};

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- one message ---- */

/** What the table says of a change: 0, or what ends the reading. */
static int taken(struct leat_fib_mirror *m, int err)
{
	if (err == -ENOSPC || err == -E2BIG || err == -EINVAL)
		count(&m->stats.refused);
	return err == -ENOMEM || err == -EBUSY ? err : 0;
}

static int add_route(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	unsigned int i, n;
	int err = leat_fib_read_route(&m->links, message, m->hops, &n);

	for (i = 0; !err && i < n; i++)
		err = taken(m, leat_fib_route_add(m->fib, &m->hops[i]));
	return err;
}

static int set_neighbour(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	struct leat_fib_neighbour neighbour;
	int err = leat_fib_read_neighbour(&m->links, message, &neighbour);

	return err ? err : taken(m, leat_fib_neighbour_set(m->fib, &neighbour));
}

/* ---- reading all ---- */

/** One part of a dump. 0, or a negative errno that ends it. */
static int take(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	int err = 1;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
		err = leat_fib_read_link(&m->links, message);
		break;
	case RTM_NEWADDR:
		err = leat_fib_read_address(&m->links, message);
		break;
	case RTM_NEWROUTE:
		err = add_route(m, message);
		break;
	case RTM_NEWNEIGH:
		err = set_neighbour(m, message);
		break;
	}
	return err < 0 ? err : 0;
}

static int on_dumped(const struct nlmsghdr *message, void *arg)
{
	int err = take(arg, message);

	if (!err)
		return MNL_CB_OK;
	errno = -err;
	return MNL_CB_ERROR;
}

/** Asks for all of one kind. 0; -EINTR: it changed meanwhile; another negative errno. */
static int dump(struct leat_fib_mirror *m, uint16_t type, uint8_t family)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(m->buffer);
	unsigned int portid = mnl_socket_get_portid(m->ask);
	ssize_t len;
	int more = MNL_CB_OK;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = ++m->sequence;
	/* each of their structs begins with the family, and none is longer */
	*(uint8_t *)mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg)) = family;
	if (mnl_socket_sendto(m->ask, request, request->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		len = mnl_socket_recvfrom(m->ask, m->buffer, BUFFER_SIZE);
		if (len < 0)
			return -errno;
		more = mnl_cb_run(m->buffer, (size_t)len, m->sequence, portid, on_dumped, m);
		if (more < 0)
			return -errno;
	}
	return 0;
}

static int dump_all(struct leat_fib_mirror *m)
{
	static const struct {
		uint16_t type;
		uint8_t family;
	} parts[] = {
		{ RTM_GETLINK, AF_UNSPEC }, { RTM_GETADDR, AF_UNSPEC }, { RTM_GETROUTE, AF_INET },
		{ RTM_GETROUTE, AF_INET6 }, { RTM_GETNEIGH, AF_INET },  { RTM_GETNEIGH, AF_INET6 },
	};
	unsigned int i, k;
	int err = 0;

	leat_fib_links_fini(&m->links);
	for (i = 0; !err && i < sizeof(parts) / sizeof(parts[0]); i++) {
		err = dump(m, parts[i].type, parts[i].family);
		for (k = 0; !err && parts[i].type == RTM_GETADDR && k < m->links.n; k++)
			if (m->links.link[k].port.port)
				err = taken(m, leat_fib_port_set(m->fib, &m->links.link[k].port));
	}
	return err;
}

/** A socket with nothing left in it from a dump that was broken off. */
static int open_ask(struct leat_fib_mirror *m)
{
	if (m->ask)
		mnl_socket_close(m->ask);
	m->ask = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	return m->ask && mnl_socket_bind(m->ask, 0, MNL_SOCKET_AUTOPID) >= 0 ? 0 : -errno;
}

static int read_once(struct leat_fib_mirror *m)
{
	int err = open_ask(m);

	if (!err)
		err = leat_fib_begin(m->fib);
	if (err)
		return err;
	err = dump_all(m);
	if (err)
		leat_fib_abandon(m->fib);
	else
		leat_fib_commit(m->fib);
	return err;
}

static int read_all(struct leat_fib_mirror *m)
{
	unsigned int tries = 0;
	int err;

	do {
		m->stale = false;
		err = read_once(m);
	} while (err == -EINTR && ++tries < INTERRUPTED_MAX);
	m->stale = err;
	if (!err)
		count(&m->stats.dumps);
	return err;
}

/* ---- notifications ---- */

/** A route that came; how it stands to others of its prefix is known if it is the only one that counts for as much. */
static int route_came(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	unsigned int n;
	int err = leat_fib_read_route(&m->links, message, m->hops, &n);

	if (err)
		return err;
	if (message->nlmsg_flags & NLM_F_REPLACE || m->hops[0].flags & LEAT_FIB_HOP)
		return -EAGAIN;
	err = leat_fib_route_add_alone(m->fib, &m->hops[0]);
	return err == -ENOTUNIQ ? -EAGAIN : taken(m, err);
}

static int route_went(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	unsigned int n;
	int err = leat_fib_read_route(&m->links, message, m->hops, &n);

	if (err)
		return err;
	if (m->hops[0].flags & LEAT_FIB_HOP)
		return -EAGAIN;
	return taken(m, leat_fib_route_delete(m->fib, &m->hops[0]));
}

static int neighbour_went(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{
	struct leat_fib_neighbour neighbour;
	int err = leat_fib_read_neighbour(&m->links, message, &neighbour);

	return err ? err : taken(m, leat_fib_neighbour_delete(m->fib, &neighbour));
}

/** A bridge speaks of one of its ports. */
static bool is_bridges(const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);

	return message->nlmsg_len >= MNL_NLMSG_HDRLEN + sizeof(*link) && link->ifi_family != AF_UNSPEC;
}

/** Applies it, or says by -EAGAIN that all must be read anew. */
static int apply(struct leat_fib_mirror *m, const struct nlmsghdr *message)
{

	switch (message->nlmsg_type) {
	case RTM_NEWROUTE:
		return route_came(m, message);
	case RTM_DELROUTE:
		return route_went(m, message);
	case RTM_NEWNEIGH:
		return set_neighbour(m, message);
	case RTM_DELNEIGH:
		return neighbour_went(m, message);
	case RTM_NEWLINK:
		return is_bridges(message) || leat_fib_knows_link(&m->links, message) ? 1 : -EAGAIN;
	case RTM_DELLINK:
		return is_bridges(message) ? 1 : -EAGAIN;
	case RTM_NEWADDR: /* lifetimes of addresses are renewed all the time */
		return leat_fib_knows_address(&m->links, message) ? 1 : -EAGAIN;
	default: /* addresses that go, settings */
		return -EAGAIN;
	}
}

static int on_event(const struct nlmsghdr *message, void *arg)
{
	struct leat_fib_mirror *m = arg;
	int err;

	if (m->stale)
		return MNL_CB_OK;
	err = apply(m, message);
	if (!err)
		count(&m->stats.events);
	m->stale = err < 0;
	return MNL_CB_OK;
}

/** Takes everything that waits. */
static void drain(struct leat_fib_mirror *m)
{
	struct pollfd fd = { .fd = mnl_socket_get_fd(m->events), .events = POLLIN };
	ssize_t len;

	while (poll(&fd, 1, 0) > 0) {
		len = mnl_socket_recvfrom(m->events, m->buffer, BUFFER_SIZE);
		if (len > 0 && mnl_cb_run(m->buffer, (size_t)len, 0, 0, on_event, m) >= 0)
			continue;
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == ENOBUFS)
			count(&m->stats.lost);
		m->stale = true;
		if (len <= 0 && errno != ENOBUFS)
			return;
	}
}

/** Waits for a notification or the end; @ms -1: for ever. False: it ends. */
static bool wait_for(struct leat_fib_mirror *m, bool events, int ms)
{
	struct pollfd fds[2] = { { .fd = m->stop, .events = POLLIN },
				 { .fd = mnl_socket_get_fd(m->events), .events = POLLIN } };

	poll(fds, events ? 2 : 1, ms);
	return !fds[0].revents;
}

static void follow(struct leat_fib_mirror *m)
{
	int err;

	while (wait_for(m, true, -1)) {
		drain(m);
		while (m->stale) {
			if (!wait_for(m, false, m->failing ? RETRY_MS : PAUSE_MS))
				return;
			drain(m);
			err = read_all(m);
			if (err && !m->failing)
				leat_log(m->log, LEAT_LOG_WARNING, "fib: the kernel's routes cannot be read: %s", strerror(-err));
			m->failing = err;
		}
	}
}

/* ---- the thread ---- */

static int failed(struct leat_fib_mirror *m, const char *why)
{
	m->err = -errno;
	m->why = why;
	return m->err;
}

static int enter_netns(struct leat_fib_mirror *m)
{
	char path[sizeof(m->netns) + sizeof("/run/netns/")];
	int fd, err = 0;

	if (!m->netns[0])
		return 0;
	snprintf(path, sizeof(path), strchr(m->netns, '/') ? "%s" : "/run/netns/%s", m->netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(m, "cannot open the network namespace (see ip-netns(8))");
	if (setns(fd, CLONE_NEWNET))
		err = failed(m, errno == EPERM ? "entering another network namespace needs the capability CAP_SYS_ADMIN"
					       : "cannot enter the network namespace");
	close(fd);
	return err;
}

static int listen_to(struct leat_fib_mirror *m)
{
	static const int groups[] = {
		RTNLGRP_LINK,	     RTNLGRP_NEIGH,	   RTNLGRP_IPV4_IFADDR,	 RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV6_ROUTE,   RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
	};
	const int queue = QUEUE_SIZE;
	size_t i;
	int fd;

	m->events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!m->events || mnl_socket_bind(m->events, 0, MNL_SOCKET_AUTOPID) < 0)
		return failed(m, "no netlink socket can be had");
	fd = mnl_socket_get_fd(m->events);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof(queue)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (mnl_socket_setsockopt(m->events, NETLINK_ADD_MEMBERSHIP, (void *)&groups[i], sizeof(groups[i])) < 0)
			return failed(m, "the kernel's notifications cannot be had");
	return 0;
}

static void *mirror_main(void *arg)
{
	struct leat_fib_mirror *m = arg;
	int err = enter_netns(m);

	if (!err)
		err = listen_to(m);
	if (!err) {
		err = read_all(m);
		if (err) {
			errno = -err;
			failed(m, "the kernel's routes cannot be read");
		}
	}
	sem_post(&m->started);
	if (!err)
		follow(m);
	return NULL;
}

static void destroy(struct leat_fib_mirror *m)
{
	if (m->events)
		mnl_socket_close(m->events);
	if (m->ask)
		mnl_socket_close(m->ask);
	if (m->stop >= 0)
		close(m->stop);
	sem_destroy(&m->started);
	leat_fib_links_fini(&m->links);
	leat_heap_free(m->ports);
	leat_heap_free(m->hops);
	leat_heap_free(m->buffer);
	leat_heap_free(m);
}

/** The ports, and behind them their names. */
static int copy_ports(struct leat_fib_mirror *m, const struct leat_fib_mirror_opts *opts)
{
	size_t len = opts->n_ports * sizeof(m->ports[0]), size = 0;
	unsigned int i;
	char *name;

	for (i = 0; i < opts->n_ports; i++)
		size += strlen(opts->ports[i].ifname) + 1;
	m->ports = leat_heap_zalloc(len + size + 1);
	if (!m->ports)
		return -ENOMEM;
	for (i = 0, name = (char *)m->ports + len; i < opts->n_ports; i++, name += size) {
		if (!opts->ports[i].port || opts->ports[i].port >= LEAT_PORTS_MAX)
			return -EINVAL;
		size = strlen(opts->ports[i].ifname) + 1;
		memcpy(name, opts->ports[i].ifname, size);
		m->ports[i] = (struct leat_fib_mirror_port){ name, opts->ports[i].port };
	}
	m->links.ports = m->ports;
	m->links.n_ports = opts->n_ports;
	return 0;
}

static int make(struct leat_fib *fib, const struct leat_fib_mirror_opts *opts, struct leat_fib_mirror **mirror)
{
	struct leat_fib_mirror *m = leat_heap_zalloc(sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->fib = fib;
	m->log = opts->log;
	m->stop = eventfd(0, EFD_CLOEXEC);
	err = m->stop < 0 ? -errno : 0;
	sem_init(&m->started, 0, 0);
	if (!err && opts->netns && strlen(opts->netns) >= sizeof(m->netns))
		err = -ENAMETOOLONG;
	if (!err && opts->netns)
		memcpy(m->netns, opts->netns, strlen(opts->netns) + 1);
	m->hops = leat_heap_zalloc(LEAT_FIB_HOPS_MAX * sizeof(m->hops[0]));
	m->buffer = leat_heap_zalloc(BUFFER_SIZE);
	if (!err && (!m->hops || !m->buffer))
		err = -ENOMEM;
	if (!err)
		err = copy_ports(m, opts);
	if (!err)
		err = -pthread_create(&m->thread, NULL, mirror_main, m);
	if (err)
		destroy(m);
	else
		*mirror = m;
	return err;
}

int leat_fib_mirror_start(struct leat_fib *fib, const struct leat_fib_mirror_opts *opts, struct leat_diag *diag,
			  struct leat_fib_mirror **mirror)
{
	struct leat_fib_mirror_opts own;
	struct leat_fib_mirror *m = NULL;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (!err)
		err = make(fib, &own, &m);
	if (err) {
		leat_diag_add(diag, "the mirror of the kernel's routes cannot be made: %s", strerror(-err));
		return err;
	}
	while (sem_wait(&m->started))
		;
	if (!m->err) {
		*mirror = m;
		return 0;
	}
	err = m->err;
	leat_diag_add(diag, "%s: %s", m->why, strerror(-err));
	pthread_join(m->thread, NULL);
	destroy(m);
	return err;
}

void leat_fib_mirror_stop(struct leat_fib_mirror *mirror)
{
	const uint64_t one = 1;

	if (!mirror)
		return;
	while (write(mirror->stop, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(mirror->thread, NULL);
	destroy(mirror);
}

void leat_fib_mirror_stats(const struct leat_fib_mirror *mirror, struct leat_fib_mirror_stats *stats)
{
	stats->events = __atomic_load_n(&mirror->stats.events, __ATOMIC_RELAXED);
	stats->dumps = __atomic_load_n(&mirror->stats.dumps, __ATOMIC_RELAXED);
	stats->lost = __atomic_load_n(&mirror->stats.lost, __ATOMIC_RELAXED);
	stats->refused = __atomic_load_n(&mirror->stats.refused, __ATOMIC_RELAXED);
}
