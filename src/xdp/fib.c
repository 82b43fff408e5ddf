/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib.c: the calls that make and change a forwarding table; see fib.h. Any thread but workers, under the table's lock.
 */
#include "xdp/fib.h"

#include <errno.h>

#include "base/heap.h"
#include "base/opts.h"

#define ROUTES_DEFAULT (1u << 20)
#define NEIGHBOURS_DEFAULT 65536u

static int create(struct leat_fib *fib, const struct leat_fib_opts *opts)
{
	const struct leat_bpf_env_opts env_opts = {
		.size = sizeof(env_opts),
		.epoch = opts->net ? &opts->net->epoch : opts->epoch,
		.log = opts->net ? leat_net_log(opts->net) : NULL,
	};
	int err;

	fib->net = opts->net;
	fib->max_routes = opts->routes ? opts->routes : ROUTES_DEFAULT;
	fib->max_neighbours = opts->neighbours ? opts->neighbours : NEIGHBOURS_DEFAULT;
	if (fib->max_routes > LEAT_FIB_ROUTES_MAX || fib->max_neighbours > LEAT_FIB_NEIGHBOURS_MAX)
		return -EINVAL;
	err = leat_bpf_env_create(&env_opts, &fib->env);
	return err ? err : leat_fib_state_create(fib, &fib->state);
}

int leat_fib_create(const struct leat_fib_opts *opts, struct leat_fib **fibp)
{
	struct leat_fib_opts own;
	struct leat_fib *fib;
	int err = leat_opts_copy(&own, sizeof(own), opts);

	if (err)
		return err;
	fib = leat_heap_zalloc(sizeof(*fib));
	if (!fib)
		return -ENOMEM;
	pthread_mutex_init(&fib->lock, NULL);
	err = create(fib, &own);
	if (err)
		leat_fib_destroy(fib);
	else
		*fibp = fib;
	return err;
}

void leat_fib_destroy(struct leat_fib *fib)
{
	struct leat_fib_old *old;

	if (!fib)
		return;
	leat_fib_state_destroy(fib->next);
	leat_fib_state_destroy(fib->state);
	while ((old = fib->oldest)) {
		fib->oldest = old->next;
		leat_heap_free(old);
	}
	leat_bpf_env_destroy(fib->env);
	pthread_mutex_destroy(&fib->lock);
	leat_heap_free(fib);
}

void leat_fib_attach(struct leat_fib *fib, struct leat_bpf_env *env)
{
	__atomic_store_n(&env->fib, fib, __ATOMIC_RELEASE); /* pairs with helper_fib_lookup() */
}

/** Takes the lock, and returns what changes go to. */
static struct leat_fib_state *begin_change(struct leat_fib *fib)
{
	pthread_mutex_lock(&fib->lock);
	return fib->next ? fib->next : fib->state;
}

static int end_change(struct leat_fib *fib, int err)
{
	pthread_mutex_unlock(&fib->lock);
	return err;
}

int leat_fib_route_add(struct leat_fib *fib, const struct leat_fib_route *route)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_add_route(fib, state, route, false));
}

int leat_fib_route_add_alone(struct leat_fib *fib, const struct leat_fib_route *route)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_add_route(fib, state, route, true));
}

int leat_fib_route_delete(struct leat_fib *fib, const struct leat_fib_route *route)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_delete_route(fib, state, route));
}

int leat_fib_neighbour_set(struct leat_fib *fib, const struct leat_fib_neighbour *neighbour)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_set_neighbour(state, neighbour));
}

int leat_fib_neighbour_delete(struct leat_fib *fib, const struct leat_fib_neighbour *neighbour)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_delete_neighbour(state, neighbour));
}

int leat_fib_port_set(struct leat_fib *fib, const struct leat_fib_port *port)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_set_port(fib, state, port));
}

int leat_fib_port_delete(struct leat_fib *fib, uint32_t port)
{
	struct leat_fib_state *state = begin_change(fib);

	return end_change(fib, leat_fib_state_delete_port(fib, state, port));
}

int leat_fib_begin(struct leat_fib *fib)
{
	int err = -EBUSY;

	pthread_mutex_lock(&fib->lock);
	if (!fib->next)
		err = leat_fib_state_create(fib, &fib->next);
	return end_change(fib, err);
}

void leat_fib_commit(struct leat_fib *fib)
{
	struct leat_fib_state *before;

	pthread_mutex_lock(&fib->lock);
	before = fib->state;
	LEAT_ASSERT(fib->next);
	__atomic_store_n(&fib->state, fib->next, __ATOMIC_RELEASE); /* pairs with leat_fib_lookup() */
	fib->next = NULL;
	leat_epoch_synchronize(fib->env->epoch);
	leat_fib_state_destroy(before);
	end_change(fib, 0);
}

void leat_fib_abandon(struct leat_fib *fib)
{
	pthread_mutex_lock(&fib->lock);
	leat_fib_state_destroy(fib->next);
	fib->next = NULL;
	end_change(fib, 0);
}

void leat_fib_count(struct leat_fib *fib, struct leat_fib_counts *counts)
{
	pthread_mutex_lock(&fib->lock);
	*counts = fib->state->counts;
	end_change(fib, 0);
}
