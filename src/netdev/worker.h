/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h: what polls. A worker is what a softirq CPU is in the kernel; a net is what holds workers and ports.
 */
#ifndef LEAT_NETDEV_WORKER_H
#define LEAT_NETDEV_WORKER_H

#include <leat/netdev.h>

#include "base/epoch.h"

LEAT_STATIC_ASSERT(LEAT_WORKERS_MAX <= LEAT_EPOCH_READERS, "each worker is a reader");

struct leat_bpf_map;
struct leat_bpf_prog;

/** Where a program sends its packet. */
struct leat_redirect_to {
	uint32_t port;                /* 0: nowhere */
	bool not_ingress;             /* of all: but the port that it came in at */
	struct leat_bpf_prog *egress; /* runs before it leaves; NULL: none */
	struct leat_bpf_map *all;     /* instead of port and egress: to each port in this map, or NULL */
};

/** Frames on their way from one worker to one port, within one poll. The worker's; src/xdp fills and flushes. */
struct leat_xdp_bulk_queue {
	struct leat_netdev *dev;
	struct leat_bpf_prog *egress;     /* of the frames that are in it; NULL: none */
	struct leat_xdp_bulk_queue *next; /* on the worker's flush list */
	bool listed;
	struct leat_xdp_bulk bulk;
} LEAT_CACHELINE_ALIGNED;

/** The queues that a worker polls. Replaced as one; the old one is freed after a grace period. */
struct leat_napi_list {
	unsigned int n;
	struct leat_napi *napi[];
};

struct leat_worker {
	struct leat_net *net;
	unsigned int id;
	struct leat_page_pool *objs; /* skbs and fragment lists */
	bool owns_objs;
	bool threaded;
	pthread_t thread;

	/* this worker's alone */
	struct leat_xdp_bulk_queue *flush_list; /* ports with redirected frames; empty between polls */
	struct leat_redirect_to redirect;       /* what a program said last */
	int epfd, wakefd, timerfd;
	uint64_t timer_due;                     /* what timerfd is set to; 0: nothing */
	unsigned int rounds_without_look;       /* at the descriptors */

	/* shared */
	struct leat_napi_list *napis LEAT_CACHELINE_ALIGNED; /* control publishes (grace period) */
	unsigned int n_fds;                                  /* queues with a descriptor; control writes (atomic) */
	uint32_t sleeping LEAT_CACHELINE_ALIGNED; /* waits, or is about to, on epfd (atomic) */
	uint32_t stop;                            /* asked to end (atomic) */
	uint64_t wakeups;                         /* times it stopped sleeping (atomic) */
};

/** Who must know when a port goes. */
struct leat_port_watch {
	struct leat_port_watch *next;
	/** No worker finds port number @index any more once its poll has ended; the number is given out again after that. */
	void (*gone)(struct leat_port_watch *watch, uint32_t index);
};

struct leat_net {
	const struct leat_log *log;
	struct leat_arena *arena;
	struct leat_segment *segment;
	uint64_t busy_ns;
	bool running;
	unsigned int n_workers;
	unsigned int next_worker;              /* that gets the next queue */
	uint32_t next_prog_id;
	uint32_t last_index;                   /* number given out last */
	struct leat_worker *worker;            /* n_workers of them */
	struct leat_netdev *port[LEAT_PORTS_MAX]; /* by number (atomic, grace period); 0 stays empty */
	struct leat_epoch epoch;
	pthread_mutex_t watch_lock;
	struct leat_port_watch *watches;       /* under the lock */
};

/** Begins and ends to tell @watch (**borrows**) of ports that go. *any*, but not from a watch. */
void leat_net_watch_ports(struct leat_net *net, struct leat_port_watch *watch);
void leat_net_unwatch_ports(struct leat_net *net, struct leat_port_watch *watch);

/** Wakes a worker that sleeps. *any*. */
void leat_worker_wake(struct leat_worker *worker);
int leat_worker_init(struct leat_worker *worker, struct leat_net *net, unsigned int id, uint64_t objs_limit);
void leat_worker_fini(struct leat_worker *worker);
/** Takes the object pool from the calling thread's worker, so that others may drain it. */
void leat_worker_disown(struct leat_worker *worker);
/** Hands a queue to a worker, or takes it away and waits until it is gone. *control*. Returns 0 or a negative errno. */
int leat_worker_add_napi(struct leat_worker *worker, struct leat_napi *napi);
void leat_worker_del_napi(struct leat_worker *worker, struct leat_napi *napi);
/** The worker's thread. */
void *leat_worker_main(void *arg);

#endif
