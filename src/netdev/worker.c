/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c: polling, sleeping and waking.
 *
 * Theory of operation
 *
 * A queue is *scheduled* when its state is 1. A round clears the state of each scheduled queue and polls it; a poll
 * that used its whole budget schedules the queue again. Because the state is cleared by an exchange before the source
 * is read, a packet that is queued later finds 0 there and sets 1 again: nothing is missed, and no source is looked at
 * twice to be sure.
 *
 * A worker that found nothing for busy_ns arms: it sets *sleeping*, looks at every queue once more, and waits on its
 * epoll descriptor. Whoever schedules a queue sets its state first and reads *sleeping* then. Each side writes its own
 * word and reads the other's with sequentially consistent operations, so one of them sees the other. It waits offline,
 * so that grace periods do not wait for it, and with poll(), which leaves the events for when it is online again.
 *
 * Queues with a descriptor (TAP) are scheduled by epoll, edge-triggered: they are read until empty anyway. While other
 * queues are busy the descriptors are looked at every LOOK_EVERY rounds.
 *
 * A *starved* queue could not allocate. It is tried each round, and does not keep the worker awake: before sleeping its
 * pool is asked to schedule it when a buffer comes back. When it was the system that had no memory nothing need ever
 * come back, so it is also tried again after STARVED_RETRY_NS.
 */
#include "netdev/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"

#define LOOK_EVERY 8
#define EVENTS 32
#define STARVED_RETRY_NS (LEAT_NSEC_PER_SEC / 10)

/* ---- waking ---- */

void leat_worker_wake(struct leat_worker *worker)
{
	const uint64_t one = 1;
	ssize_t n;

	if (!__atomic_load_n(&worker->sleeping, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST))
		return;
	n = write(worker->wakefd, &one, sizeof(one)); /* fails only when the counter is full, that is: readable */
	(void)n;
}

void leat_napi_schedule(struct leat_napi *napi)
{
	/* an exchange even when it is 1 already: what was queued before must be seen by who clears it */
	if (!__atomic_exchange_n(&napi->state, 1, __ATOMIC_SEQ_CST))
		leat_worker_wake(napi->worker);
}

/* ---- events ---- */

static void clear_counter(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count)); /* EAGAIN: nothing to clear */

	(void)n;
}

/**
 * Schedules what the descriptors announce. The events name queues, so they are taken only while the worker is online:
 * a queue that is taken away is freed after a grace period.
 */
static void look(struct leat_worker *worker)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(worker->epfd, events, EVENTS, 0);

	worker->rounds_without_look = 0;
	for (i = 0; i < n; i++) {
		struct leat_napi *napi = events[i].data.ptr;

		if (events[i].data.ptr == &worker->wakefd)
			clear_counter(worker->wakefd);
		else if (events[i].data.ptr == &worker->timerfd)
			clear_counter(worker->timerfd);
		else
			__atomic_exchange_n(&napi->state, 1, __ATOMIC_SEQ_CST);
	}
}

static void set_timer(struct leat_worker *worker, uint64_t due)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(due / LEAT_NSEC_PER_SEC),
						 .tv_nsec = (long)(due % LEAT_NSEC_PER_SEC) } };

	if (due == worker->timer_due)
		return;
	worker->timer_due = due;
	timerfd_settime(worker->timerfd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- a round ---- */

/** The worker's first poll of a queue. */
static void adopt(struct leat_napi *napi)
{
	if (napi->pool)
		leat_page_pool_own(napi->pool);
	napi->adopted = true;
}

static int poll_one(struct leat_napi *napi)
{
	int done;

	if (leat_unlikely(!napi->adopted))
		adopt(napi);
	napi->starved = false;
	done = napi->poll(napi, LEAT_NAPI_BUDGET);
	leat_count(&napi->stats.polls, 1);
	/* an exchange: a store would come between leat_napi_schedule() and the exchange that clears the state */
	if (done >= LEAT_NAPI_BUDGET)
		__atomic_exchange_n(&napi->state, 1, __ATOMIC_SEQ_CST);
	return done;
}

static bool wants_poll(struct leat_napi *napi, uint64_t now)
{
	if (__atomic_load_n(&napi->state, __ATOMIC_RELAXED)) {
		__atomic_exchange_n(&napi->state, 0, __ATOMIC_SEQ_CST); /* pairs with leat_napi_schedule() */
		return true;
	}
	/* one that is not adopted keeps the worker awake; after a restart it may be neither scheduled nor due */
	return napi->starved || !napi->adopted || (napi->due && napi->due <= now);
}

static int round_of_polls(struct leat_worker *worker)
{
	struct leat_napi_list *list = __atomic_load_n(&worker->napis, __ATOMIC_ACQUIRE);
	uint64_t now = leat_clock_ns();
	unsigned int i;
	int total = 0;

	for (i = 0; list && i < list->n; i++)
		if (wants_poll(list->napi[i], now))
			total += poll_one(list->napi[i]);
	return total;
}

static int work(struct leat_worker *worker)
{
	int done;

	if (leat_unlikely(!worker->owns_objs)) {
		leat_page_pool_own(worker->objs);
		worker->owns_objs = true;
	}
	if (__atomic_load_n(&worker->n_fds, __ATOMIC_RELAXED) && ++worker->rounds_without_look >= LOOK_EVERY)
		look(worker);
	done = round_of_polls(worker);
	if (!done && worker->rounds_without_look) { /* nothing in memory: what do the descriptors say? */
		look(worker);
		done = round_of_polls(worker);
	}
	return done;
}

/* ---- sleeping ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/** Looks once more at every queue, after *sleeping* was set. */
static bool nothing_to_do(struct leat_worker *worker)
{
	struct leat_napi_list *list = __atomic_load_n(&worker->napis, __ATOMIC_SEQ_CST);
	uint64_t due = 0;
	unsigned int i;

	for (i = 0; list && i < list->n; i++) {
		struct leat_napi *napi = list->napi[i];

		if (!napi->adopted || __atomic_load_n(&napi->state, __ATOMIC_SEQ_CST))
			return false;
		if (napi->starved && napi->pool && leat_page_pool_wait_prepare(napi->pool))
			return false;
		due = earlier(due, napi->due);
		if (napi->starved)
			due = earlier(due, leat_clock_ns() + STARVED_RETRY_NS);
	}
	set_timer(worker, due);
	return !__atomic_load_n(&worker->stop, __ATOMIC_SEQ_CST);
}

/** Goes to sleep if there is nothing to do. The worker is online, for it looks at its queues; true: offline now. */
static bool arm(struct leat_worker *worker)
{
	__atomic_exchange_n(&worker->sleeping, 1, __ATOMIC_SEQ_CST); /* pairs with leat_worker_wake() */
	if (nothing_to_do(worker)) {
		leat_epoch_offline(&worker->net->epoch, worker->id);
		return true;
	}
	__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST);
	return false;
}

static void awake(struct leat_worker *worker)
{
	leat_epoch_online(&worker->net->epoch, worker->id);
	if (__atomic_load_n(&worker->sleeping, __ATOMIC_RELAXED))
		__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST);
	leat_count(&worker->wakeups, 1);
}

/* ---- without our threads ---- */

int leat_worker_poll(struct leat_worker *worker)
{
	int done;

	awake(worker);
	clear_counter(worker->wakefd);
	look(worker);
	done = work(worker);
	leat_epoch_offline(&worker->net->epoch, worker->id);
	return done;
}

bool leat_worker_arm(struct leat_worker *worker)
{
	bool armed;

	leat_epoch_online(&worker->net->epoch, worker->id);
	armed = arm(worker);
	if (!armed)
		leat_epoch_offline(&worker->net->epoch, worker->id);
	return armed;
}

int leat_worker_fd(const struct leat_worker *worker)
{
	return worker->epfd;
}

/* ---- our thread ---- */

void *leat_worker_main(void *arg)
{
	struct leat_worker *worker = arg;
	struct leat_net *net = worker->net;
	struct pollfd events = { .fd = worker->epfd, .events = POLLIN };
	uint64_t idle_since = 0;
	char name[16];

	snprintf(name, sizeof(name), "leat-worker%u", worker->id);
	pthread_setname_np(pthread_self(), name);
	leat_epoch_online(&net->epoch, worker->id);
	while (!__atomic_load_n(&worker->stop, __ATOMIC_ACQUIRE)) {
		if (work(worker)) {
			idle_since = 0;
		} else if (!idle_since) {
			idle_since = leat_clock_ns();
		} else if (leat_clock_ns() - idle_since >= net->busy_ns && arm(worker)) {
			poll(&events, 1, -1); /* takes no event: the worker is offline */
			awake(worker);
			look(worker);
			idle_since = 0;
		}
		leat_epoch_quiescent(&net->epoch, worker->id);
	}
	leat_worker_disown(worker);
	leat_epoch_offline(&net->epoch, worker->id);
	return NULL;
}

void leat_worker_disown(struct leat_worker *worker)
{
	struct leat_napi_list *list = worker->napis;
	unsigned int i;

	leat_page_pool_disown(worker->objs);
	worker->owns_objs = false;
	for (i = 0; list && i < list->n; i++) {
		if (list->napi[i]->pool)
			leat_page_pool_disown(list->napi[i]->pool);
		list->napi[i]->adopted = false;
	}
}

/* ---- queues come and go ---- */

/** Publishes a list with @add and without @del, and frees the old one after a grace period. */
static int replace_list(struct leat_worker *worker, struct leat_napi *add, struct leat_napi *del)
{
	struct leat_napi_list *old = worker->napis, *list;
	unsigned int i, n = old ? old->n : 0;

	list = leat_heap_zalloc(sizeof(*list) + (n + 1) * sizeof(list->napi[0]));
	if (!list)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (old->napi[i] != del)
			list->napi[list->n++] = old->napi[i];
	if (add)
		list->napi[list->n++] = add;
	__atomic_store_n(&worker->napis, list, __ATOMIC_SEQ_CST); /* pairs with round_of_polls() */
	leat_epoch_synchronize(&worker->net->epoch);
	leat_heap_free(old);
	return 0;
}

/** Taking a queue away cannot fail: the entry is closed up in a copy, or without memory, in place. */
static void remove_in_place(struct leat_worker *worker, struct leat_napi *napi)
{
	struct leat_napi_list *list = worker->napis;
	unsigned int i, n = 0;

	__atomic_store_n(&worker->napis, NULL, __ATOMIC_SEQ_CST);
	leat_epoch_synchronize(&worker->net->epoch);
	for (i = 0; i < list->n; i++)
		if (list->napi[i] != napi)
			list->napi[n++] = list->napi[i];
	list->n = n;
	__atomic_store_n(&worker->napis, list, __ATOMIC_SEQ_CST);
	leat_worker_wake(worker); /* what was scheduled meanwhile found it asleep over no queue at all */
}

int leat_worker_add_napi(struct leat_worker *worker, struct leat_napi *napi)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data = { .ptr = napi } };
	int err;

	napi->worker = worker;
	napi->adopted = napi->starved = false;
	__atomic_exchange_n(&napi->state, 1, __ATOMIC_SEQ_CST); /* the first poll finds out */
	err = replace_list(worker, napi, NULL);
	if (err)
		return err;
	if (napi->fd >= 0) {
		if (epoll_ctl(worker->epfd, EPOLL_CTL_ADD, napi->fd, &event)) {
			err = -errno;
			leat_worker_del_napi(worker, napi);
			return err;
		}
		__atomic_fetch_add(&worker->n_fds, 1, __ATOMIC_RELAXED);
	}
	leat_worker_wake(worker);
	return 0;
}

void leat_worker_del_napi(struct leat_worker *worker, struct leat_napi *napi)
{
	if (napi->fd >= 0 && !epoll_ctl(worker->epfd, EPOLL_CTL_DEL, napi->fd, NULL))
		__atomic_fetch_sub(&worker->n_fds, 1, __ATOMIC_RELAXED);
	if (replace_list(worker, NULL, napi))
		remove_in_place(worker, napi);
	if (napi->pool) {
		/* two grace periods: after the first nobody polls, after the second nobody takes itself for the owner */
		leat_page_pool_disown(napi->pool);
		leat_epoch_synchronize(&worker->net->epoch);
	}
	napi->adopted = false;
}

/* ---- life ---- */

static int watch(struct leat_worker *worker, int *fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = fd } };

	return epoll_ctl(worker->epfd, EPOLL_CTL_ADD, *fd, &event) ? -errno : 0;
}

int leat_worker_init(struct leat_worker *worker, struct leat_net *net, unsigned int id, uint64_t objs_limit)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .limit = objs_limit };
	char name[32];
	int err;

	worker->net = net;
	worker->id = id;
	worker->epfd = worker->wakefd = worker->timerfd = -1;
	snprintf(name, sizeof(name), "worker%u.objs", id);
	opts.name = name;
	err = leat_page_pool_create(net->segment, &opts, &worker->objs);
	if (err)
		return err;
	worker->epfd = epoll_create1(EPOLL_CLOEXEC);
	worker->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (worker->epfd < 0 || worker->wakefd < 0 || worker->timerfd < 0)
		err = -errno;
	if (!err)
		err = watch(worker, &worker->wakefd);
	if (!err)
		err = watch(worker, &worker->timerfd);
	if (err)
		leat_worker_fini(worker);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void leat_worker_fini(struct leat_worker *worker)
{
	close_fd(&worker->timerfd);
	close_fd(&worker->wakefd);
	close_fd(&worker->epfd);
	leat_page_pool_destroy(worker->objs);
	worker->objs = NULL;
	leat_heap_free(worker->napis);
	worker->napis = NULL;
}

unsigned int leat_worker_id(const struct leat_worker *worker)
{
	return worker->id;
}

struct leat_page_pool *leat_worker_objs(struct leat_worker *worker)
{
	return worker->objs;
}
