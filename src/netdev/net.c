/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.c: life of a datapath: memory, workers, the table of ports, and what is known of the whole. Control thread.
 */
#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "base/opts.h"
#include "netdev/worker.h"

#define BUSY_NS_DEFAULT 20000
/** Private packet memory may take one part in so many of the addresses. */
#define SEGMENT_SHARE 2
/** The least that is asked for where address space is limited (ulimit -v, valgrind). */
#define ARENA_SIZE_LEAST (UINT64_C(1) << 30)

/** Makes an arena of *@size bytes of data addresses; 0: as many as can be had. */
static int create_arena(struct leat_net *net, uint64_t *size)
{
	struct leat_arena_opts opts = { .size = sizeof(opts), .data_size = *size ? *size : LEAT_ARENA_DATA_MAX };
	int err = leat_arena_create(&opts, &net->arena);

	while (err == -ENOSPC && !*size && opts.data_size > ARENA_SIZE_LEAST) {
		opts.data_size /= 2;
		err = leat_arena_create(&opts, &net->arena);
	}
	*size = opts.data_size;
	return err;
}

static int create_memory(struct leat_net *net, uint64_t arena_size)
{
	struct leat_segment_opts segment = { .size = sizeof(segment), .kind = LEAT_SEGMENT_PRIVATE };
	int err = create_arena(net, &arena_size);

	if (err)
		return err;
	/* the rest of the addresses is for segments that a peer sees */
	segment.bytes = arena_size / SEGMENT_SHARE;
	segment.name = "private";
	err = leat_segment_create(net->arena, &segment, &net->segment);
	if (err)
		leat_arena_destroy(net->arena);
	return err;
}

static void destroy_memory(struct leat_net *net)
{
	leat_segment_destroy(net->segment);
	leat_arena_destroy(net->arena);
}

static int create_workers(struct leat_net *net, unsigned int n, uint64_t objs_limit)
{
	int err = 0;

	net->worker = leat_heap_zalloc(n * sizeof(*net->worker));
	if (!net->worker)
		return -ENOMEM;
	while (!err && net->n_workers < n) {
		err = leat_worker_init(&net->worker[net->n_workers], net, net->n_workers, objs_limit);
		if (!err)
			net->n_workers++;
	}
	return err;
}

static void destroy_workers(struct leat_net *net)
{
	while (net->n_workers)
		leat_worker_fini(&net->worker[--net->n_workers]);
	leat_heap_free(net->worker);
}

int leat_net_create(const struct leat_net_opts *opts, struct leat_net **out)
{
	struct leat_net_opts own;
	struct leat_net *net;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	if (own.workers > LEAT_WORKERS_MAX)
		return -EINVAL;
	net = leat_heap_zalloc(sizeof(*net));
	if (!net)
		return -ENOMEM;
	net->log = own.log;
	net->busy_ns = own.busy_ns ? own.busy_ns : BUSY_NS_DEFAULT;
	leat_epoch_init(&net->epoch);
	pthread_mutex_init(&net->watch_lock, NULL);
	err = create_memory(net, own.arena_size);
	if (err)
		goto free_net;
	err = create_workers(net, own.workers ? own.workers : 1, own.objs_limit);
	if (err)
		goto destroy_workers;
	*out = net;
	return 0;

destroy_workers:
	destroy_workers(net);
	destroy_memory(net);
free_net:
	leat_heap_free(net);
	return err;
}

void leat_net_destroy(struct leat_net *net)
{
	unsigned int i;

	if (!net)
		return;
	leat_net_stop(net);
	for (i = 0; i < LEAT_PORTS_MAX; i++)
		leat_netdev_destroy(net->port[i]);
	destroy_workers(net);
	destroy_memory(net);
	leat_heap_free(net);
}

/* ---- threads ---- */

int leat_net_start(struct leat_net *net)
{
	unsigned int i;
	int err = 0;

	if (net->running)
		return -EALREADY;
	net->running = true;
	for (i = 0; !err && i < net->n_workers; i++) {
		struct leat_worker *worker = &net->worker[i];

		__atomic_store_n(&worker->stop, 0, __ATOMIC_RELAXED);
		err = -pthread_create(&worker->thread, NULL, leat_worker_main, worker);
		worker->threaded = !err;
	}
	if (err)
		leat_net_stop(net);
	return err;
}

void leat_net_stop(struct leat_net *net)
{
	unsigned int i;

	for (i = 0; i < net->n_workers; i++) {
		struct leat_worker *worker = &net->worker[i];

		if (!worker->threaded)
			continue;
		__atomic_store_n(&worker->stop, 1, __ATOMIC_SEQ_CST); /* pairs with nothing_to_do() */
		leat_worker_wake(worker);
		pthread_join(worker->thread, NULL);
		worker->threaded = false;
	}
	net->running = false;
}

void leat_net_synchronize(struct leat_net *net)
{
	leat_epoch_synchronize(&net->epoch);
}

/* ---- what is known ---- */

unsigned int leat_net_workers(const struct leat_net *net)
{
	return net->n_workers;
}

const struct leat_log *leat_net_log(const struct leat_net *net)
{
	return net->log;
}

struct leat_segment *leat_net_segment(struct leat_net *net)
{
	return net->segment;
}

struct leat_worker *leat_net_worker(struct leat_net *net, unsigned int idx)
{
	return idx < net->n_workers ? &net->worker[idx] : NULL;
}

void leat_net_for_each_port(struct leat_net *net, void (*fn)(struct leat_netdev *dev, void *arg), void *arg)
{
	unsigned int i;

	for (i = 1; i < LEAT_PORTS_MAX; i++)
		if (net->port[i])
			fn(net->port[i], arg);
}

void leat_net_for_each_pool(struct leat_net *net, void (*fn)(const struct leat_page_pool_stats *stats, void *arg),
			    void *arg)
{
	leat_segment_for_each_pool(net->segment, fn, arg);
}

/** Takes in what other threads have put, while no thread polls. */
static void drain_everything(struct leat_net *net)
{
	unsigned int i, q;

	for (i = 0; i < net->n_workers; i++)
		leat_page_pool_drain(net->worker[i].objs);
	for (i = 1; i < LEAT_PORTS_MAX; i++)
		for (q = 0; net->port[i] && q < net->port[i]->n_rxq; q++)
			if (net->port[i]->napi[q].pool)
				leat_page_pool_drain(net->port[i]->napi[q].pool);
}

static void add_outstanding(const struct leat_page_pool_stats *stats, void *arg)
{
	*(uint64_t *)arg += stats->outstanding;
}

uint64_t leat_net_outstanding(struct leat_net *net)
{
	uint64_t total = 0;

	if (!net->running)
		drain_everything(net);
	leat_net_for_each_pool(net, add_outstanding, &total);
	return total;
}

/* ---- whether there is more to come ---- */

static bool sources_finished(const struct leat_net *net)
{
	unsigned int i, sources = 0;

	for (i = 1; i < LEAT_PORTS_MAX; i++) {
		const struct leat_netdev *dev = net->port[i];

		if (!dev || !(dev->flags & LEAT_NETDEV_SOURCE))
			continue;
		if (!(__atomic_load_n(&dev->state, __ATOMIC_ACQUIRE) & (LEAT_NETDEV_FINISHED | LEAT_NETDEV_FAILED)))
			return false;
		sources++;
	}
	return sources;
}

/** Whether every worker sleeps; adds up how often they woke, so that two looks can be compared. */
static bool all_asleep(const struct leat_net *net, uint64_t *wakeups)
{
	unsigned int i;

	*wakeups = 0;
	for (i = 0; i < net->n_workers; i++) {
		if (net->running && !__atomic_load_n(&net->worker[i].sleeping, __ATOMIC_SEQ_CST))
			return false;
		*wakeups += __atomic_load_n(&net->worker[i].wakeups, __ATOMIC_SEQ_CST);
	}
	return true;
}

static bool nothing_scheduled(const struct leat_net *net)
{
	unsigned int i, q;

	for (i = 1; i < LEAT_PORTS_MAX; i++)
		for (q = 0; net->port[i] && q < net->port[i]->n_rxq; q++)
			if (__atomic_load_n(&net->port[i]->napi[q].state, __ATOMIC_SEQ_CST))
				return false;
	return true;
}

bool leat_net_finished(struct leat_net *net)
{
	uint64_t before, after;

	/* a worker that slept through the whole look has queued nothing meanwhile */
	return sources_finished(net) && all_asleep(net, &before) && nothing_scheduled(net) &&
	       all_asleep(net, &after) && before == after;
}
