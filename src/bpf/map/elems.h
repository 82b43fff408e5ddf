/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elems.h: elements of a map, each of one size, and when they may be used again.
 *
 * Theory of operation. An element is named by its index; 0 is none. Its memory stays mapped as long as the map. Who
 * takes elements and gives them back has a stash of its own (one per CPU, one for all control threads):
 *
 *      fresh --> free --take--> in use --retire--> open --> waiting --grace period--> free
 *
 * "open" collects what was retired; when "waiting" is empty, the whole of it begins one grace period and becomes
 * "waiting". So one grace period serves many elements, and nobody waits for it. A retired element's bytes stay as they
 * are until then.
 *
 * There are LEAT_ELEMS_SLACK elements per stash more than a map may have entries. A worker's round is 64 packets, and
 * an element is free again at most three rounds after it was retired. So 32 updates and deletions per packet on every
 * worker find an element, as long as no worker's round lasts longer than three of another's; control threads wait a
 * little (leat_elems_take_patiently). Beyond that an update gives -ENOMEM, which is also what the kernel gives when it
 * runs dry.
 */
#ifndef LEAT_BPF_ELEMS_H
#define LEAT_BPF_ELEMS_H

#include "base/epoch.h"
#include "bpf/map/mem.h"

#define LEAT_ELEMS_SLACK 6144u
/** Elements that a map may have, slack included: bit 31 of a link is LEAT_ELEM_USED_RECENTLY. */
#define LEAT_ELEMS_MAX UINT64_C(0x7fffffff)
#define LEAT_ELEM_USED_RECENTLY 0x80000000u

/** What an element begins with. */
struct leat_elem {
	uint32_t gen;  /* odd while in use; changes with each take and retire (atomic) */
	uint32_t link; /* in a stash: the next one. In use: LEAT_ELEM_USED_RECENTLY (atomic) */
};

/** Elements linked one to the next. */
struct leat_elem_list {
	uint32_t head, tail; /* 0: none */
	uint32_t n;
};

struct leat_elem_stash {
	uint32_t lock LEAT_CACHELINE_ALIGNED; /* its owner's nearly always */
	struct leat_elem_list free, open, waiting;
	uint64_t number; /* grace period that "waiting" waits for */
};

struct leat_elems {
	uint8_t *base;
	uint64_t size; /* bytes mapped */
	struct leat_stride stride;
	uint32_t total; /* indices are 1..total */
	unsigned int n_stashes;
	struct leat_epoch *epoch;
	struct leat_elem_stash *stash;
	uint32_t fresh LEAT_CACHELINE_ALIGNED; /* elements that were ever used: 1..fresh (atomic) */
};

static inline struct leat_elem *leat_elem_at(const struct leat_elems *elems, uint32_t index)
{
	return (struct leat_elem *)(elems->base + (uint64_t)index * elems->stride.stride);
}

/** @max_entries elements in use at most, @size bytes each, stashes 0..@cpus (the last is control's). 0, -ENOMEM. */
int leat_elems_init(struct leat_elems *elems, uint64_t max_entries, uint64_t size, unsigned int cpus,
		    struct leat_epoch *epoch);
void leat_elems_fini(struct leat_elems *elems);

/** An element for stash @who, or 0. Write key and value, then leat_elem_begin(), then publish. */
uint32_t leat_elems_take(struct leat_elems *elems, unsigned int who);
/** Gives back an element that nobody has seen. */
void leat_elems_put(struct leat_elems *elems, unsigned int who, uint32_t index);
/** Gives back an element that was unlinked, and ended with leat_elem_end(). Readers may still be there. */
void leat_elems_retire(struct leat_elems *elems, unsigned int who, uint32_t index);
/** Control: waits for grace periods, some milliseconds at most, because there was no element. False: no sense. */
bool leat_elems_patience(struct leat_elems *elems, unsigned int who, unsigned int *tries);

/** The element is about to be published: its bytes are there. */
static inline void leat_elem_begin(struct leat_elem *elem)
{
	__atomic_store_n(&elem->link, 0, __ATOMIC_RELAXED);
	/* pairs with leat_elem_gen(): who sees it odd sees the bytes */
	__atomic_store_n(&elem->gen, __atomic_load_n(&elem->gen, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}

/** The element is being unlinked: under the lock that guards its place. */
static inline void leat_elem_end(struct leat_elem *elem)
{
	/* pairs with leat_elem_still(): what was copied before that was copied before anything is written here again */
	__atomic_fetch_add(&elem->gen, 1, __ATOMIC_ACQ_REL);
}

static inline uint32_t leat_elem_gen(const struct leat_elem *elem)
{
	return __atomic_load_n(&elem->gen, __ATOMIC_ACQUIRE); /* pairs with leat_elem_begin() */
}

/** Whether it is in the same use as when leat_elem_gen() gave @gen, so that what was copied since is whole. */
static inline bool leat_elem_still(struct leat_elem *elem, uint32_t gen)
{
	/* a read-modify-write, for the loads before it must be done; pairs with leat_elem_end() */
	return __atomic_fetch_add(&elem->gen, 0, __ATOMIC_ACQ_REL) == gen;
}

static inline void leat_elem_touch(struct leat_elem *elem)
{
	if (!(__atomic_load_n(&elem->link, __ATOMIC_RELAXED) & LEAT_ELEM_USED_RECENTLY))
		__atomic_fetch_or(&elem->link, LEAT_ELEM_USED_RECENTLY, __ATOMIC_RELAXED);
}

/** Whether [addr, addr + size) lies within @value_size bytes at @value_off of one element. */
static inline bool leat_elems_contain(const struct leat_elems *elems, uint64_t addr, uint32_t size, uint64_t value_off,
				      uint64_t value_size)
{
	uint64_t off = addr - (uint64_t)(uintptr_t)elems->base, rest;

	if (off >= elems->size)
		return false;
	leat_stride_div(&elems->stride, off, &rest);
	rest -= value_off; /* before the value: very large */
	return rest <= value_size && size <= value_size - rest;
}

#endif
