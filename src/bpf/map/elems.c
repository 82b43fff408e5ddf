/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elems.c: taking elements and giving them back; see elems.h. Any thread; a stash is nearly always its owner's alone.
 */
#include "bpf/map/elems.h"

#include <time.h>

#include "base/heap.h"

/** Elements that a stash takes at once from those never used. */
#define FRESH_BATCH 32u
/** Retired elements that are worth a grace period. */
#define RETIRE_BATCH 32u
#define PATIENCE_NS 50000
#define PATIENCE_TRIES 400u

/** Elements of up to a cache line do not cross one. */
static uint64_t round_stride(uint64_t size)
{
	uint64_t stride = 16;

	if (size > 64)
		return (size + 31) & ~UINT64_C(31);
	while (stride < size)
		stride *= 2;
	return stride;
}

int leat_elems_init(struct leat_elems *elems, uint64_t max_entries, uint64_t size, unsigned int cpus,
		    struct leat_epoch *epoch)
{
	uint64_t total = max_entries + (uint64_t)(cpus + 1) * LEAT_ELEMS_SLACK, stride = round_stride(size);

	if (total > LEAT_ELEMS_MAX)
		return -ENOMEM;
	elems->total = (uint32_t)total;
	elems->n_stashes = cpus + 1;
	elems->epoch = epoch;
	elems->stride = leat_stride_make(stride);
	elems->size = (total + 1) * stride;
	elems->fresh = 0;
	elems->stash = leat_heap_zalloc(elems->n_stashes * sizeof(*elems->stash));
	if (!elems->stash)
		return -ENOMEM;
	elems->base = leat_bpf_pages_alloc(elems->size);
	if (!elems->base) {
		leat_heap_free(elems->stash);
		return -ENOMEM;
	}
	leat_bpf_pages_dense(elems->base, elems->size);
	return 0;
}

void leat_elems_fini(struct leat_elems *elems)
{
	leat_bpf_pages_free(elems->base, elems->size);
	leat_heap_free(elems->stash);
}

/* ---- lists; under the stash's lock ---- */

static void push(struct leat_elems *elems, struct leat_elem_list *list, uint32_t index)
{
	__atomic_store_n(&leat_elem_at(elems, index)->link, list->head, __ATOMIC_RELAXED);
	if (!list->head)
		list->tail = index;
	list->head = index;
	list->n++;
}

static uint32_t pop(struct leat_elems *elems, struct leat_elem_list *list)
{
	uint32_t index = list->head, link;

	if (!index)
		return 0;
	/* a late reader may have marked it as used recently */
	link = __atomic_load_n(&leat_elem_at(elems, index)->link, __ATOMIC_RELAXED);
	list->head = link & ~LEAT_ELEM_USED_RECENTLY;
	list->n--;
	return index;
}

/** Puts all of @from before @to. */
static void join(struct leat_elems *elems, struct leat_elem_list *to, struct leat_elem_list *from)
{
	if (!from->head)
		return;
	__atomic_store_n(&leat_elem_at(elems, from->tail)->link, to->head, __ATOMIC_RELAXED);
	if (!to->head)
		to->tail = from->tail;
	to->head = from->head;
	to->n += from->n;
	*from = (struct leat_elem_list){ 0, 0, 0 };
}

/* ---- grace periods; under the stash's lock ---- */

/** Frees what has waited long enough, and lets what was retired since begin to wait. */
static void turn(struct leat_elems *elems, struct leat_elem_stash *stash)
{
	if (stash->waiting.head && leat_epoch_passed(elems->epoch, stash->number))
		join(elems, &stash->free, &stash->waiting);
	if (!stash->waiting.head && stash->open.head) {
		join(elems, &stash->waiting, &stash->open);
		stash->number = leat_epoch_begin(elems->epoch);
	}
}

/** Takes elements that were never used. */
static void take_fresh(struct leat_elems *elems, struct leat_elem_stash *stash)
{
	uint32_t first = __atomic_load_n(&elems->fresh, __ATOMIC_RELAXED), n, i;

	do {
		n = elems->total - first < FRESH_BATCH ? elems->total - first : FRESH_BATCH;
	} while (n && !__atomic_compare_exchange_n(&elems->fresh, &first, first + n, true, __ATOMIC_RELAXED,
						   __ATOMIC_RELAXED));
	for (i = n; i > 0; i--)
		push(elems, &stash->free, first + i);
}

static uint32_t take_from(struct leat_elems *elems, struct leat_elem_stash *stash, bool fresh)
{
	uint32_t index;

	if (leat_spin_lock(&stash->lock))
		return 0;
	if (!stash->free.head)
		turn(elems, stash);
	if (!stash->free.head && fresh)
		take_fresh(elems, stash);
	if (!stash->free.head)
		turn(elems, stash); /* no reader may be online at all */
	index = pop(elems, &stash->free);
	leat_spin_unlock(&stash->lock);
	return index;
}

uint32_t leat_elems_take(struct leat_elems *elems, unsigned int who)
{
	uint32_t index = take_from(elems, &elems->stash[who], true);
	unsigned int i;

	for (i = 1; leat_unlikely(!index) && i < elems->n_stashes; i++)
		index = take_from(elems, &elems->stash[(who + i) % elems->n_stashes], false);
	return index;
}

void leat_elems_put(struct leat_elems *elems, unsigned int who, uint32_t index)
{
	struct leat_elem_stash *stash = &elems->stash[who];

	while (leat_spin_lock(&stash->lock))
		; /* it must not be lost */
	push(elems, &stash->free, index);
	leat_spin_unlock(&stash->lock);
}

void leat_elems_retire(struct leat_elems *elems, unsigned int who, uint32_t index)
{
	struct leat_elem_stash *stash = &elems->stash[who];

	while (leat_spin_lock(&stash->lock))
		;
	push(elems, &stash->open, index);
	if (stash->open.n % RETIRE_BATCH == 0)
		turn(elems, stash);
	leat_spin_unlock(&stash->lock);
}

bool leat_elems_patience(struct leat_elems *elems, unsigned int who, unsigned int *tries)
{
	const struct timespec pause = { 0, PATIENCE_NS };

	if (who + 1 < elems->n_stashes || ++*tries > PATIENCE_TRIES)
		return false;
	nanosleep(&pause, NULL);
	return true;
}
