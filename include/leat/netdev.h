/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netdev.h: ports, their queues, and the workers that poll them.
 *
 * A leat_net is one datapath: a table of ports, a fixed number of workers, one set of grace periods, one arena.
 * A port (netdev) has receive queues, each a napi context polled by one worker, and transmit queues, each with a lock
 * that is taken once per bulk. A driver fills in struct leat_netdev_ops; see driver.h for what it calls.
 *
 * Threads: *control* is any one thread at a time that configures; *worker* is the thread (or embedding loop) that
 * polls; counters may be read by *any*.
 */
#ifndef LEAT_NETDEV_H
#define LEAT_NETDEV_H

#include <leat/diag.h>
#include <leat/drop.h>
#include <leat/log.h>
#include <leat/skb.h>
#include <pthread.h>

LEAT_BEGIN_DECLS

#define LEAT_NAPI_BUDGET 64
/** Ports of one datapath; numbers 1..LEAT_PORTS_MAX - 1. */
#define LEAT_PORTS_MAX 1024u
#define LEAT_WORKERS_MAX 32u
#define LEAT_QUEUES_MAX 64u
#define LEAT_PORT_NAME_MAX 32
/** Range and default of a port's MTU, bytes after the Ethernet header. */
#define LEAT_MTU_MIN 68u
#define LEAT_MTU_MAX 9216u
#define LEAT_MTU_DEFAULT 1500u

struct leat_net;
struct leat_netdev;
struct leat_worker;
struct leat_xdp_chain;

/* ---- receive queue ---- */

/** Counters of a receive queue; one writer, the polling worker. */
struct leat_rxq_stats {
	uint64_t packets, bytes;   /* that arrived, before any program */
	uint64_t headroom_copies;  /* heads copied because a program needs headroom that the frame lacked */
	uint64_t linear_copies;    /* packets of several buffers copied into one because a program takes no more */
	uint64_t polls;
	uint64_t drops[LEAT_DROP_MAX];
};

/** One receive queue: what a worker polls. */
struct leat_napi {
	struct leat_netdev *dev;
	/**
	 * Receives at most @budget packets; returns how many. Less than @budget means that the source is empty: the
	 * context sleeps until its fd is readable, its time is due, or leat_napi_schedule(). *worker*.
	 */
	int (*poll)(struct leat_napi *napi, int budget);
	struct leat_worker *worker;   /* who polls; control writes while nobody does */
	struct leat_page_pool *pool;  /* receive memory, owned by the worker; may be NULL */
	struct leat_xdp_rxq rxq;
	int fd;                       /* readable when there is something to poll (edge-triggered); -1: none */
	uint64_t due;                 /* monotonic ns at which to poll without an event; 0: never. Worker only */
	uint32_t state LEAT_CACHELINE_ALIGNED; /* scheduled or not (atomic) */
	bool adopted;                 /* the worker has taken the pool. Worker only */
	bool starved;                 /* poll stopped for want of memory; tried again when some came back. Worker only */
	struct leat_rxq_stats stats LEAT_CACHELINE_ALIGNED;
};

/** Says that there is something to poll, and wakes the worker if it sleeps. *any*. */
LEAT_API void leat_napi_schedule(struct leat_napi *napi);

/**
 * Makes a queue's receive pool, "PORT.QUEUE", of at most @limit bytes (0: the default), which schedules the queue when
 * memory comes back. For ops->open; undone by leat_napi_pool_destroy() in ops->stop. Returns 0 or a negative errno.
 */
LEAT_API int leat_napi_pool_create(struct leat_napi *napi, uint64_t limit);
LEAT_API void leat_napi_pool_destroy(struct leat_napi *napi);

/** Counts @n drops on a receive queue. *worker*. */
static inline void leat_rxq_drop(struct leat_napi *napi, enum leat_drop_reason reason, uint64_t n)
{
	leat_count(&napi->stats.drops[reason], n);
}

/* ---- transmit queue ---- */

struct leat_txq_stats {
	uint64_t packets, bytes;       /* accepted by the port; written under the lock */
	uint64_t drops[LEAT_DROP_MAX]; /* atomic */
};

struct leat_txq {
	pthread_mutex_t lock;
	struct leat_txq_stats stats;
} LEAT_CACHELINE_ALIGNED;

/** Counts @n drops on a transmit queue. *any*. */
static inline void leat_txq_drop(struct leat_txq *txq, enum leat_drop_reason reason, uint64_t n)
{
	__atomic_fetch_add(&txq->stats.drops[reason], n, __ATOMIC_RELAXED);
}

/* ---- port ---- */

/** What a driver does. Members may be NULL where it says so. */
struct leat_netdev_ops {
	/** Joins this port to others by name, once all exist (veth); adds to @diag on failure. NULL: nothing to join. */
	int (*link)(struct leat_netdev *dev, struct leat_diag *diag);
	/** Takes what it needs from the system; sets up napi[].pool and napi[].fd. Adds to @diag on failure. *control* */
	int (*open)(struct leat_netdev *dev, struct leat_diag *diag);
	/** Gives it back; nobody polls or transmits any more. Queued packets are dropped and counted. *control* */
	void (*stop)(struct leat_netdev *dev);
	/** Receives; see leat_napi.poll. NULL: the port has no receive queues. */
	int (*poll)(struct leat_napi *napi, int budget);
	/**
	 * Transmits frames on queue @txq, whose lock is held. **Consumes** the first n that it returns (0..@n, 0: the
	 * queue is full); the caller keeps the rest and asks once more. A negative errno consumes none. NULL: the port
	 * cannot transmit.
	 */
	int (*xdp_xmit)(struct leat_netdev *dev, unsigned int txq, struct leat_xdp_frame **frames, unsigned int n);
	/** The same for skbs. */
	int (*start_xmit)(struct leat_netdev *dev, unsigned int txq, struct leat_skb **skbs, unsigned int n);
	/** Frees what the driver's create() allocated beside the port. NULL: nothing. *control* */
	void (*destroy)(struct leat_netdev *dev);
};

/* Bits of leat_netdev.flags. */
#define LEAT_NETDEV_SOURCE 0x1u /* packets come from outside the datapath, so a run may wait for them */
#define LEAT_NETDEV_STDOUT 0x2u /* packets go to standard output, so nothing else should */

/* Bits of leat_netdev.state (atomic). */
#define LEAT_NETDEV_UP 0x1u        /* opened */
#define LEAT_NETDEV_FINISHED 0x2u  /* a source that has nothing more to give */
#define LEAT_NETDEV_FAILED 0x4u    /* stopped by an error (interface gone, file corrupt) */
#define LEAT_NETDEV_ABANDONED 0x8u /* closed because the start failed: nothing was run */

/** Receives packets that passed. **Consumes** the @n skbs. *worker*. */
typedef void leat_rx_handler_fn(void *arg, struct leat_worker *worker, struct leat_netdev *dev, struct leat_skb **skbs,
				unsigned int n);

/** Where a port's PASS traffic goes; published as one, freed after a grace period. */
struct leat_rx_handler {
	leat_rx_handler_fn *fn;
	void *arg;
	uint16_t holder; /* what reports of packet memory call it: account.h */
};

struct leat_netdev {
	struct leat_net *net;
	const struct leat_netdev_ops *ops;
	const char *driver;             /* "tap" */
	char name[LEAT_PORT_NAME_MAX];
	uint32_t index;                 /* number of the port, from 1 */
	uint32_t flags;                 /* LEAT_NETDEV_SOURCE, _STDOUT; set by the driver at creation */
	uint32_t state;                 /* LEAT_NETDEV_UP... (atomic) */
	uint32_t mtu;                   /* bytes after the Ethernet header */
	uint8_t mac[6];                 /* the port's own address; all zero when it has none */
	unsigned int n_rxq, n_txq;      /* number of queues */
	struct leat_napi *napi;         /* n_rxq of them */
	struct leat_txq *txq;           /* n_txq of them */
	void *priv;                     /* the driver's */
	struct leat_xdp_chain *chain;   /* attached programs or NULL (atomic, grace period) */
	void (*chain_free)(struct leat_xdp_chain *chain); /* gives back the port's references to them */
	const struct leat_rx_handler *rx_handler; /* or NULL (atomic, grace period) */
	struct leat_xdp_bulk_queue *redirect; /* one per worker: redirected frames of the current poll */
};

/**
 * Makes a port and enters it into the table, down. @n_rxq 0..LEAT_QUEUES_MAX, @n_txq 1..LEAT_QUEUES_MAX; @priv_size
 * bytes of zeroed driver memory at dev->priv. *control*.
 * Returns 0; -EEXIST (the name is taken); -ENOSPC (the table is full); -EINVAL; -ENOMEM.
 */
LEAT_API int leat_netdev_create(struct leat_net *net, const char *driver, const char *name,
				const struct leat_netdev_ops *ops, unsigned int n_rxq, unsigned int n_txq,
				size_t priv_size, struct leat_netdev **dev);
/**
 * Closes if need be, takes it out of the table, waits until no worker can see it, frees. It must have no rx handler
 * (leave the bridge first). NULL allowed. *control*.
 */
LEAT_API void leat_netdev_destroy(struct leat_netdev *dev);
/** Opens the port and hands its queues to workers. Adds to @diag on failure. *control*. */
LEAT_API int leat_netdev_open(struct leat_netdev *dev, struct leat_diag *diag);
/** Takes the queues from the workers and stops the port. *control*. */
LEAT_API void leat_netdev_close(struct leat_netdev *dev);

/** The port with that name or number, or NULL. *control*; by number also *worker*, valid until the poll's end. */
LEAT_API struct leat_netdev *leat_netdev_find(struct leat_net *net, const char *name);
LEAT_API struct leat_netdev *leat_netdev_by_index(struct leat_net *net, uint32_t index);

/**
 * Transmits at most LEAT_NAPI_BUDGET frames on the queue that belongs to @worker. Frames longer than the port allows
 * are dropped and counted. What the port does not accept is returned in bulk and counted (**consumes** all). Returns
 * how many went. *worker*.
 */
LEAT_API unsigned int leat_netdev_xdp_xmit(struct leat_netdev *dev, struct leat_worker *worker,
					   struct leat_xdp_frame **frames, unsigned int n);
/** The same for skbs. *worker*. */
LEAT_API unsigned int leat_netdev_start_xmit(struct leat_netdev *dev, struct leat_worker *worker,
					     struct leat_skb **skbs, unsigned int n);
/** The transmit queue that @worker uses. */
LEAT_API struct leat_txq *leat_netdev_txq(struct leat_netdev *dev, const struct leat_worker *worker);

/** Sends a port's PASS traffic to @fn; NULL: nowhere. Waits for a grace period. Returns 0 or -ENOMEM. *control*. */
LEAT_API int leat_netdev_set_rx_handler(struct leat_netdev *dev, leat_rx_handler_fn *fn, void *arg);
/** The same with a name for reports of packet memory ("bridge br0"); NULL: "rx handler of PORT", as above. */
LEAT_API int leat_netdev_set_rx_handler_as(struct leat_netdev *dev, leat_rx_handler_fn *fn, void *arg,
					   const char *name);

/**
 * Says that a source has ended (@error 0), or that a port has failed by an error, which is logged. *worker*, and
 * *control* in ops->stop.
 */
LEAT_API void leat_netdev_finish(struct leat_netdev *dev, int error, const char *what);
/** Longest frame of a port: MTU, Ethernet header and one VLAN tag. */
static inline uint32_t leat_netdev_frame_max(const struct leat_netdev *dev)
{
	return dev->mtu + LEAT_ETH_HLEN + LEAT_VLAN_HLEN;
}

/** Sums over a port's queues. */
struct leat_netdev_stats {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t headroom_copies, linear_copies;
	uint64_t drops[LEAT_DROP_MAX]; /* receive and transmit side together */
};
LEAT_API void leat_netdev_stats(const struct leat_netdev *dev, struct leat_netdev_stats *stats);

/* ---- datapath ---- */

struct leat_net_opts {
	size_t size;                /* sizeof(struct leat_net_opts) */
	unsigned int workers;       /* 1..LEAT_WORKERS_MAX; 0: 1 */
	const struct leat_log *log; /* borrowed; NULL: silent */
	uint64_t arena_size;        /* bytes of data addresses; 0: the arena's maximum */
	uint64_t objs_limit;        /* bytes for skbs and fragment lists per worker; 0: 16 MiB */
	uint64_t busy_ns;           /* how long a worker looks on before it sleeps; 0: 20 us */
};

/** Makes an empty datapath; its workers do not run yet. *control*. Returns 0 or a negative errno. */
LEAT_API int leat_net_create(const struct leat_net_opts *opts, struct leat_net **net);
/** Stops, destroys every port, waits for nothing: buffers still out are reported by leat_net_outstanding() before. */
LEAT_API void leat_net_destroy(struct leat_net *net);
/** Starts a thread per worker. *control*. Returns 0 or a negative errno. */
LEAT_API int leat_net_start(struct leat_net *net);
/** Ends the threads. Ports stay open. *control*. */
LEAT_API void leat_net_stop(struct leat_net *net);
/** Waits until every worker has passed a point at which it holds no port, program or handler. *control*. */
LEAT_API void leat_net_synchronize(struct leat_net *net);

LEAT_API unsigned int leat_net_workers(const struct leat_net *net);
LEAT_API const struct leat_log *leat_net_log(const struct leat_net *net);
/** The segment for private packet memory. */
LEAT_API struct leat_segment *leat_net_segment(struct leat_net *net);
/** Calls @fn for each port in the order of their numbers. *control*. */
LEAT_API void leat_net_for_each_port(struct leat_net *net, void (*fn)(struct leat_netdev *dev, void *arg), void *arg);
/**
 * Calls @fn with the statistics of each pool: those of the workers, of open ports, and of closed ports whose buffers
 * are still out. *control*.
 */
LEAT_API void leat_net_for_each_pool(struct leat_net *net,
				     void (*fn)(const struct leat_page_pool_stats *stats, void *arg), void *arg);
/**
 * Granules that somebody holds, over all pools. Exact while no worker runs. Takes in what has come back, unless
 * leat_net_start() was called: not while a loop on another thread polls workers. *control*.
 */
LEAT_API uint64_t leat_net_outstanding(struct leat_net *net);
/** Whether every port that can bring packets has finished and no queue holds any. *control*. */
LEAT_API bool leat_net_finished(struct leat_net *net);

/* ---- use without our threads ---- */

/** The @idx-th worker. */
LEAT_API struct leat_worker *leat_net_worker(struct leat_net *net, unsigned int idx);
/** Its number, from 0: what programs see as the CPU. */
LEAT_API unsigned int leat_worker_id(const struct leat_worker *worker);
/** The pool for skbs and fragment lists that the worker owns. */
LEAT_API struct leat_page_pool *leat_worker_objs(struct leat_worker *worker);
/**
 * Polls every scheduled queue of the worker once, on the calling thread, which must always be the same. Returns the
 * number of packets handled. Not together with leat_net_start().
 */
LEAT_API int leat_worker_poll(struct leat_worker *worker);
/** A descriptor that is readable when leat_worker_poll() has something to do, after leat_worker_arm(). */
LEAT_API int leat_worker_fd(const struct leat_worker *worker);
/** Prepares to wait on the descriptor; returns false when there is work already (poll instead of waiting). */
LEAT_API bool leat_worker_arm(struct leat_worker *worker);

LEAT_END_DECLS

#endif
