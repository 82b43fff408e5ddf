/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netdev.c: life of a port, and the way out of it.
 *
 * Control makes, opens, closes and destroys. Workers transmit: one lock per queue, taken once per bulk; what a driver
 * does not accept is freed and counted here, so that no caller can forget it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "netdev/worker.h"

/* ---- the table ---- */

struct leat_netdev *leat_netdev_by_index(struct leat_net *net, uint32_t index)
{
	return index < LEAT_PORTS_MAX ? __atomic_load_n(&net->port[index], __ATOMIC_ACQUIRE) : NULL;
}

struct leat_netdev *leat_netdev_find(struct leat_net *net, const char *name)
{
	unsigned int i;

	for (i = 1; i < LEAT_PORTS_MAX; i++)
		if (net->port[i] && !strcmp(net->port[i]->name, name))
			return net->port[i];
	return NULL;
}

/** Numbers go round: one that was given back is not given out again before all others, as with ifindex. */
static int enter_table(struct leat_netdev *dev)
{
	struct leat_net *net = dev->net;
	uint32_t i, index;

	if (leat_netdev_find(net, dev->name))
		return -EEXIST;
	for (i = 0; i < LEAT_PORTS_MAX - 1; i++) {
		index = (net->last_index + i) % (LEAT_PORTS_MAX - 1) + 1;
		if (net->port[index])
			continue;
		net->last_index = dev->index = index;
		__atomic_store_n(&net->port[index], dev, __ATOMIC_RELEASE); /* pairs with leat_netdev_by_index() */
		return 0;
	}
	return -ENOSPC;
}

/* ---- who must know when a port goes ---- */

void leat_net_watch_ports(struct leat_net *net, struct leat_port_watch *watch)
{
	pthread_mutex_lock(&net->watch_lock);
	watch->next = net->watches;
	net->watches = watch;
	pthread_mutex_unlock(&net->watch_lock);
}

void leat_net_unwatch_ports(struct leat_net *net, struct leat_port_watch *watch)
{
	struct leat_port_watch **at;

	pthread_mutex_lock(&net->watch_lock);
	for (at = &net->watches; *at && *at != watch; at = &(*at)->next)
		;
	if (*at)
		*at = watch->next;
	pthread_mutex_unlock(&net->watch_lock);
}

static void tell_watches(struct leat_net *net, uint32_t index)
{
	struct leat_port_watch *watch;

	pthread_mutex_lock(&net->watch_lock);
	for (watch = net->watches; watch; watch = watch->next)
		watch->gone(watch, index);
	pthread_mutex_unlock(&net->watch_lock);
}

/* ---- life ---- */

static int create_queues(struct leat_netdev *dev)
{
	unsigned int i;

	dev->napi = leat_heap_zalloc((dev->n_rxq ? dev->n_rxq : 1) * sizeof(*dev->napi));
	dev->txq = leat_heap_zalloc(dev->n_txq * sizeof(*dev->txq));
	dev->redirect = leat_heap_zalloc(dev->net->n_workers * sizeof(*dev->redirect));
	if (!dev->napi || !dev->txq || !dev->redirect)
		return -ENOMEM;
	for (i = 0; i < dev->n_rxq; i++) {
		dev->napi[i].dev = dev;
		dev->napi[i].poll = dev->ops->poll;
		dev->napi[i].fd = -1;
		dev->napi[i].rxq.dev = dev;
		dev->napi[i].rxq.queue = i;
	}
	for (i = 0; i < dev->n_txq; i++)
		pthread_mutex_init(&dev->txq[i].lock, NULL);
	for (i = 0; i < dev->net->n_workers; i++)
		dev->redirect[i].dev = dev;
	return 0;
}

static void free_dev(struct leat_netdev *dev)
{
	leat_heap_free(dev->redirect);
	leat_heap_free(dev->txq);
	leat_heap_free(dev->napi);
	leat_heap_free(dev->priv);
	leat_heap_free(dev);
}

int leat_netdev_create(struct leat_net *net, const char *driver, const char *name, const struct leat_netdev_ops *ops,
		       unsigned int n_rxq, unsigned int n_txq, size_t priv_size, struct leat_netdev **out)
{
	struct leat_netdev *dev;
	unsigned int i;
	int err;

	if (n_rxq > LEAT_QUEUES_MAX || n_txq < 1 || n_txq > LEAT_QUEUES_MAX || strlen(name) >= LEAT_PORT_NAME_MAX)
		return -EINVAL;
	dev = leat_heap_zalloc(sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->net = net;
	dev->ops = ops;
	dev->driver = driver;
	dev->mtu = LEAT_MTU_DEFAULT;
	dev->n_rxq = n_rxq;
	dev->n_txq = n_txq;
	memcpy(dev->name, name, strlen(name) + 1);
	dev->priv = leat_heap_zalloc(priv_size);
	err = dev->priv ? create_queues(dev) : -ENOMEM;
	if (!err)
		err = enter_table(dev);
	if (err) {
		free_dev(dev);
		return err;
	}
	for (i = 0; i < n_rxq; i++)
		dev->napi[i].rxq.port = dev->index;
	*out = dev;
	return 0;
}

void leat_netdev_destroy(struct leat_netdev *dev)
{
	if (!dev)
		return;
	LEAT_ASSERT(!dev->rx_handler);
	leat_netdev_close(dev);
	__atomic_store_n(&dev->net->port[dev->index], NULL, __ATOMIC_RELEASE);
	tell_watches(dev->net, dev->index);
	leat_net_synchronize(dev->net); /* after it no worker has the number from anywhere */
	if (dev->chain)
		dev->chain_free(dev->chain);
	if (dev->ops->destroy)
		dev->ops->destroy(dev);
	free_dev(dev);
}

static void remove_queues(struct leat_netdev *dev, unsigned int n)
{
	while (n--)
		leat_worker_del_napi(dev->napi[n].worker, &dev->napi[n]);
}

static int add_queues(struct leat_netdev *dev)
{
	unsigned int i;
	int err;

	for (i = 0; i < dev->n_rxq; i++) {
		err = leat_worker_add_napi(dev->napi[i].worker, &dev->napi[i]);
		if (err) {
			remove_queues(dev, i);
			return err;
		}
	}
	return 0;
}

/** Before the port is up: who transmits to it wakes the worker of its queue. */
static void assign_workers(struct leat_netdev *dev)
{
	struct leat_net *net = dev->net;
	unsigned int i;

	for (i = 0; i < dev->n_rxq; i++)
		dev->napi[i].worker = &net->worker[net->next_worker++ % net->n_workers];
}

int leat_netdev_open(struct leat_netdev *dev, struct leat_diag *diag)
{
	int err;

	if (dev->state & LEAT_NETDEV_UP)
		return 0;
	err = dev->ops->open ? dev->ops->open(dev, diag) : 0;
	if (err)
		return err;
	assign_workers(dev);
	__atomic_store_n(&dev->state, LEAT_NETDEV_UP, __ATOMIC_RELEASE);
	err = add_queues(dev);
	if (err) {
		leat_diag_add(diag, "cannot hand the queues to the workers: %s", strerror(-err));
		__atomic_fetch_or(&dev->state, LEAT_NETDEV_ABANDONED, __ATOMIC_RELAXED);
		leat_netdev_close(dev);
	}
	return err;
}

void leat_netdev_close(struct leat_netdev *dev)
{
	unsigned int i;

	if (!(__atomic_load_n(&dev->state, __ATOMIC_RELAXED) & LEAT_NETDEV_UP))
		return;
	__atomic_fetch_and(&dev->state, ~LEAT_NETDEV_UP, __ATOMIC_SEQ_CST);
	remove_queues(dev, dev->n_rxq);
	leat_net_synchronize(dev->net); /* nobody transmits any more either */
	if (dev->ops->stop)
		dev->ops->stop(dev);
	for (i = 0; i < dev->n_rxq; i++)
		dev->napi[i].worker = NULL;
}

/** Errors whose words add nothing to a driver's own. */
static bool says_nothing(int error)
{
	return error == -EIO || error == -EBADFD || error == -ENODEV;
}

void leat_netdev_finish(struct leat_netdev *dev, int error, const char *what)
{
	uint32_t bit = error ? LEAT_NETDEV_FAILED : LEAT_NETDEV_FINISHED;

	if (__atomic_fetch_or(&dev->state, bit, __ATOMIC_ACQ_REL) & bit)
		return;
	if (error && what && says_nothing(error))
		leat_log(dev->net->log, LEAT_LOG_ERROR, "port %s: %s", dev->name, what);
	else if (error)
		leat_log(dev->net->log, LEAT_LOG_ERROR, "port %s: %s: %s", dev->name, what ? what : "stopped",
			 strerror(-error));
	else
		leat_log(dev->net->log, LEAT_LOG_INFO, "port %s: %s", dev->name, what ? what : "nothing more to come");
}

int leat_netdev_set_rx_handler(struct leat_netdev *dev, leat_rx_handler_fn *fn, void *arg)
{
	return leat_netdev_set_rx_handler_as(dev, fn, arg, NULL);
}

int leat_netdev_set_rx_handler_as(struct leat_netdev *dev, leat_rx_handler_fn *fn, void *arg, const char *name)
{
	struct leat_rx_handler *handler = NULL;
	const struct leat_rx_handler *old = dev->rx_handler;
	char own_name[LEAT_HOLDER_NAME_MAX];

	if (fn) {
		handler = leat_heap_zalloc(sizeof(*handler));
		if (!handler)
			return -ENOMEM;
		snprintf(own_name, sizeof(own_name), "rx handler of %s", dev->name);
		handler->fn = fn;
		handler->arg = arg;
		handler->holder = leat_holder_register(name ? name : own_name);
	}
	__atomic_store_n(&dev->rx_handler, handler, __ATOMIC_SEQ_CST); /* pairs with leat_rx_begin() */
	leat_net_synchronize(dev->net);
	leat_heap_free((void *)(uintptr_t)old);
	return 0;
}

/* ---- receive memory ---- */

static void wake_queue(void *arg)
{
	leat_napi_schedule(arg);
}

int leat_napi_pool_create(struct leat_napi *napi, uint64_t limit)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = limit, .wake = wake_queue, .wake_arg = napi,
					    .low_water = LEAT_BLOCK_SIZE }; /* a batch of packets, not each */
	char name[LEAT_PORT_NAME_MAX + 12];

	snprintf(name, sizeof(name), "%s.%u", napi->dev->name, napi->rxq.queue);
	opts.name = name;
	return leat_page_pool_create(napi->dev->net->segment, &opts, &napi->pool);
}

void leat_napi_pool_destroy(struct leat_napi *napi)
{
	leat_page_pool_destroy(napi->pool);
	napi->pool = NULL;
}

/* ---- transmit ---- */

struct leat_txq *leat_netdev_txq(struct leat_netdev *dev, const struct leat_worker *worker)
{
	return &dev->txq[worker->id % dev->n_txq];
}

/** 0, or why the port takes nothing. */
static int state_said(const struct leat_netdev *dev)
{
	/* pairs with leat_netdev_open(): what the driver made there is seen */
	uint32_t state = __atomic_load_n(&dev->state, __ATOMIC_ACQUIRE);

	if (!(state & LEAT_NETDEV_UP))
		return -ENETDOWN;
	return state & LEAT_NETDEV_FAILED ? -EIO : 0;
}

/** Counts what a port that accepted less than all has refused, by the last thing it said. */
static void count_refused(struct leat_txq *txq, int said, unsigned int n)
{
	enum leat_drop_reason reason = said < 0 ? LEAT_DROP_TX_ERROR : LEAT_DROP_TX_FULL;

	if (said == -EOPNOTSUPP)
		reason = LEAT_DROP_NO_XMIT;
	else if (said == -ENETDOWN)
		reason = LEAT_DROP_TX_DOWN;
	leat_txq_drop(txq, reason, n);
}

/** What a port says before it is asked: 0, or why nothing goes. One that is not open may still be in the making. */
static int first_said(const struct leat_netdev *dev, bool can_transmit)
{
	return can_transmit ? state_said(dev) : -EOPNOTSUPP;
}

/** Adds what went to the counters. Under the queue's lock. */
static void count_sent(struct leat_txq *txq, unsigned int packets, uint64_t bytes)
{
	leat_count(&txq->stats.packets, packets);
	leat_count(&txq->stats.bytes, bytes);
}

/** Drops the frames that are too long and closes up the rest. Returns how many are left, and adds up their bytes. */
static unsigned int fit_frames(struct leat_netdev *dev, struct leat_txq *txq, struct leat_xdp_frame **frames,
			       unsigned int n, uint64_t *bytes)
{
	uint32_t max = leat_netdev_frame_max(dev), len;
	unsigned int i, kept = 0;

	for (i = 0; i < n; i++) {
		len = leat_xdp_frame_len(frames[i]);
		if (leat_unlikely(len > max)) {
			leat_xdp_return_frame(frames[i]);
			continue;
		}
		*bytes += len;
		frames[kept++] = frames[i];
	}
	if (leat_unlikely(kept < n))
		leat_txq_drop(txq, LEAT_DROP_OVERSIZE, n - kept);
	return kept;
}

static unsigned int fit_skbs(struct leat_netdev *dev, struct leat_txq *txq, struct leat_skb **skbs, unsigned int n,
			     uint64_t *bytes)
{
	uint32_t max = leat_netdev_frame_max(dev);
	unsigned int i, kept = 0;

	for (i = 0; i < n; i++) {
		if (leat_unlikely(skbs[i]->len > max)) {
			leat_skb_free(skbs[i]);
			continue;
		}
		*bytes += skbs[i]->len;
		skbs[kept++] = skbs[i];
	}
	if (leat_unlikely(kept < n))
		leat_txq_drop(txq, LEAT_DROP_OVERSIZE, n - kept);
	return kept;
}

unsigned int leat_netdev_xdp_xmit(struct leat_netdev *dev, struct leat_worker *worker, struct leat_xdp_frame **frames,
				  unsigned int n)
{
	unsigned int q = worker->id % dev->n_txq, sent = 0, i;
	struct leat_txq *txq = &dev->txq[q];
	int said = first_said(dev, dev->ops->xdp_xmit);
	uint64_t bytes = 0;

	LEAT_ASSERT(n <= LEAT_NAPI_BUDGET);
	if (!said)
		n = fit_frames(dev, txq, frames, n, &bytes);
	if (!said && n) {
		pthread_mutex_lock(&txq->lock);
		do { /* until nothing is left, or a call says why the rest is refused */
			said = state_said(dev);
			if (!said)
				said = dev->ops->xdp_xmit(dev, q, frames + sent, n - sent);
			sent += said > 0 ? (unsigned int)said : 0;
		} while (said > 0 && sent < n);
		for (i = sent; i < n; i++)
			bytes -= leat_xdp_frame_len(frames[i]);
		count_sent(txq, sent, bytes);
		pthread_mutex_unlock(&txq->lock);
	}
	if (leat_unlikely(sent < n)) {
		leat_xdp_return_frame_bulk(frames + sent, n - sent);
		count_refused(txq, said, n - sent);
	}
	return sent;
}

unsigned int leat_netdev_start_xmit(struct leat_netdev *dev, struct leat_worker *worker, struct leat_skb **skbs,
				    unsigned int n)
{
	unsigned int q = worker->id % dev->n_txq, sent = 0, i;
	struct leat_txq *txq = &dev->txq[q];
	int said = first_said(dev, dev->ops->start_xmit);
	uint64_t bytes = 0;

	LEAT_ASSERT(n <= LEAT_NAPI_BUDGET);
	if (!said)
		n = fit_skbs(dev, txq, skbs, n, &bytes);
	if (!said && n) {
		pthread_mutex_lock(&txq->lock);
		do { /* as above */
			said = state_said(dev);
			if (!said)
				said = dev->ops->start_xmit(dev, q, skbs + sent, n - sent);
			sent += said > 0 ? (unsigned int)said : 0;
		} while (said > 0 && sent < n);
		for (i = sent; i < n; i++)
			bytes -= skbs[i]->len;
		count_sent(txq, sent, bytes);
		pthread_mutex_unlock(&txq->lock);
	}
	if (leat_unlikely(sent < n)) {
		leat_skb_free_bulk(skbs + sent, n - sent);
		count_refused(txq, said, n - sent);
	}
	return sent;
}

/* ---- statistics ---- */

static uint64_t read_count(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_drops(uint64_t *sum, const uint64_t *drops)
{
	unsigned int i;

	for (i = 0; i < LEAT_DROP_MAX; i++)
		sum[i] += read_count(&drops[i]);
}

void leat_netdev_stats(const struct leat_netdev *dev, struct leat_netdev_stats *stats)
{
	unsigned int i;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < dev->n_rxq; i++) {
		stats->rx_packets += read_count(&dev->napi[i].stats.packets);
		stats->rx_bytes += read_count(&dev->napi[i].stats.bytes);
		stats->headroom_copies += read_count(&dev->napi[i].stats.headroom_copies);
		stats->linear_copies += read_count(&dev->napi[i].stats.linear_copies);
		add_drops(stats->drops, dev->napi[i].stats.drops);
	}
	for (i = 0; i < dev->n_txq; i++) {
		stats->tx_packets += read_count(&dev->txq[i].stats.packets);
		stats->tx_bytes += read_count(&dev->txq[i].stats.bytes);
		add_drops(stats->drops, dev->txq[i].stats.drops);
	}
}
