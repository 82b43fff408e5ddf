/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.h: grace periods by quiescent states.
 *
 * A reader (one per worker) says once per round that it holds no pointer any more. The control thread publishes a new
 * pointer, then waits until every reader that is online has said so since; then the old object is nobody's.
 */
#ifndef LEAT_BASE_EPOCH_H
#define LEAT_BASE_EPOCH_H

#include <leat/base.h>

#include "base/fence.h"

#define LEAT_EPOCH_READERS 32u

struct leat_epoch_reader {
	uint64_t seen LEAT_CACHELINE_ALIGNED; /* the epoch of its last quiescent state; 0: offline (atomic) */
};

/** Zero-initialise; then leat_epoch_init(). */
struct leat_epoch {
	uint64_t now LEAT_CACHELINE_ALIGNED; /* atomic */
	struct leat_epoch_reader reader[LEAT_EPOCH_READERS];
};

static inline void leat_epoch_init(struct leat_epoch *epoch)
{
	epoch->now = 1;
}

/** From here on the reader may hold pointers. *reader*. */
static inline void leat_epoch_online(struct leat_epoch *epoch, unsigned int id)
{
	/* release: what it did before is done; pairs with leat_epoch_passed() */
	__atomic_store_n(&epoch->reader[id].seen, __atomic_load_n(&epoch->now, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	/*
	 * The loads of pointers that follow must not be done before the store; on some machines an exchange does not
	 * keep them back. Pairs with the fence in leat_epoch_begin(): one of the two sides sees the other.
	 */
	leat_fence_seq_cst();
}

/** From here on it holds none, until it is online again (before it sleeps). *reader*. */
static inline void leat_epoch_offline(struct leat_epoch *epoch, unsigned int id)
{
	__atomic_store_n(&epoch->reader[id].seen, 0, __ATOMIC_RELEASE); /* pairs with leat_epoch_passed() */
}

/** At this moment it holds none. *reader*. */
static inline void leat_epoch_quiescent(struct leat_epoch *epoch, unsigned int id)
{
	uint64_t now = __atomic_load_n(&epoch->now, __ATOMIC_RELAXED);

	if (__atomic_load_n(&epoch->reader[id].seen, __ATOMIC_RELAXED) != now)
		leat_epoch_online(epoch, id);
}

/**
 * Begins a grace period and returns its number, for who cannot wait: what was taken away before may be used again when
 * leat_epoch_passed() says so. *any*, readers included.
 */
static inline uint64_t leat_epoch_begin(struct leat_epoch *epoch)
{
	uint64_t number = __atomic_add_fetch(&epoch->now, 1, __ATOMIC_ACQ_REL);

	leat_fence_seq_cst(); /* pairs with the one in leat_epoch_online() */
	return number;
}

/** Whether every reader has been quiescent or offline since grace period @number began. *any*. */
static inline bool leat_epoch_passed(struct leat_epoch *epoch, uint64_t number)
{
	unsigned int id;
	uint64_t seen;

	for (id = 0; id < LEAT_EPOCH_READERS; id++) {
		/* pairs with the reader's release stores: what it did before is done */
		seen = __atomic_load_n(&epoch->reader[id].seen, __ATOMIC_ACQUIRE);
		if (seen && seen < number)
			return false;
	}
	return true;
}

/** Waits for a quiescent state of every reader. Not from a reader. */
void leat_epoch_synchronize(struct leat_epoch *epoch);

#endif
