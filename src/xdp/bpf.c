/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf.c: eBPF programs on ports: the program object, and the helpers that send packets to ports. Workers run, control
 * makes.
 *
 * A redirect helper notes where the packet is to go: for the receive path in the worker, for whoever runs programs
 * without ports (replay) in the environment.
 */
#include <errno.h>
#include <net/ethernet.h>
#include <string.h>

#include "bpf/contract.h"
#include "bpf/env.h"
#include "bpf/map/map.h"
#include "netdev/worker.h"
#include "xdp/devmap.h"
#include "xdp/fib.h"
#include "xdp/prog.h"

/** The action that bpf_redirect_map() returns when there is no such entry: the low bits of its flags. */
#define MISS_ACTION 3u

static uint64_t note(struct leat_bpf_run *run, struct leat_bpf_map *map, uint32_t key, uint64_t flags,
		     const struct leat_bpf_target *target)
{
	run->env->cpu[run->cpu].redirect = (struct leat_bpf_redirect){
		.map = map, .key = key, .flags = flags, .port = target->port, .prog = target->prog
	};
	if (run->xdp->worker)
		run->xdp->worker->redirect = (struct leat_redirect_to){
			.port = target->port,
			.egress = target->prog,
			.all = flags & BPF_F_BROADCAST ? map : NULL,
			.not_ingress = flags & BPF_F_EXCLUDE_INGRESS,
		};
	return LEAT_XDP_REDIRECT;
}

/** bpf_redirect(ifindex, flags): no flag is defined for XDP. */
static uint64_t helper_redirect(struct leat_bpf_run *run, uint64_t index, uint64_t flags, uint64_t a3, uint64_t a4,
				uint64_t a5)
{
	const struct leat_bpf_target target = { .port = (uint32_t)index };

	(void)a3;
	(void)a4;
	(void)a5;
	return flags ? (uint64_t)LEAT_XDP_ABORTED : note(run, NULL, (uint32_t)index, 0, &target);
}

/** bpf_redirect_map(map, key, flags). */
static uint64_t helper_redirect_map(struct leat_bpf_run *run, uint64_t map_ptr, uint64_t key, uint64_t flags,
				    uint64_t a4, uint64_t a5)
{
	struct leat_bpf_map *map = (struct leat_bpf_map *)(uintptr_t)map_ptr;
	struct leat_bpf_target target = { .port = 0 };

	(void)a4;
	(void)a5;
	if (!map->type->target || flags & ~(uint64_t)leat_portmap_flags(map))
		return LEAT_XDP_ABORTED;
	/* the kernel cuts keys, too */
	if (!(flags & BPF_F_BROADCAST) && !map->type->target(map, (uint32_t)key, &target)) {
		note(run, NULL, 0, 0, &target);
		return flags & MISS_ACTION;
	}
	return note(run, map, (uint32_t)key, flags, &target);
}

/** As mtu_of(), where ports are what the forwarding table says of them; the packet's own is one as they mostly are. */
static int64_t mtu_without_ports(const struct leat_bpf_run *run, uint32_t index, uint32_t own)
{
	const struct leat_fib *fib = __atomic_load_n(&run->env->fib, __ATOMIC_ACQUIRE);
	const struct leat_fib_port_info *port = NULL;

	if (fib)
		port = leat_fib_port_at(__atomic_load_n(&fib->state, __ATOMIC_ACQUIRE), index);
	return port ? (int64_t)port->mtu[0] : index == own ? ETHERMTU : -1;
}

/** The MTU of port @index, of the port the packet came from when that is 0; -1: there is no such port. */
static int64_t mtu_of(const struct leat_bpf_run *run, uint32_t index)
{
	uint32_t own = run->xdp->rxq ? run->xdp->rxq->port : 0;
	const struct leat_netdev *dev;

	index = index ? index : own;
	if (!run->xdp->worker)
		return mtu_without_ports(run, index, own);
	dev = leat_netdev_by_index(run->xdp->worker->net, index);
	return dev ? (int64_t)dev->mtu : -1;
}

/**
 * bpf_check_mtu(ctx, ifindex, &len, difference, flags): whether the packet, or one of len bytes after the Ethernet
 * header, and difference more, may leave by that port. The port's MTU goes to len. Flags are for segments, which XDP has
 * none of.
 */
static uint64_t helper_check_mtu(struct leat_bpf_run *run, uint64_t ctx, uint64_t index, uint64_t len_ptr,
				 uint64_t difference, uint64_t flags)
{
	int64_t mtu = flags ? 0 : mtu_of(run, (uint32_t)index), len = run->xdp->data_end - run->xdp->data;
	uint32_t given;

	(void)ctx;
	if (flags)
		return (uint64_t)-EINVAL;
	if (mtu < 0)
		return (uint64_t)-ENODEV;
	memcpy(&given, (const void *)(uintptr_t)len_ptr, sizeof(given));
	if (given)
		len = (int32_t)(given + LEAT_ETH_HLEN);
	len = (int32_t)((uint32_t)len + (uint32_t)difference); /* the kernel's sums have 32 bits, too */
	given = (uint32_t)mtu;
	memcpy((void *)(uintptr_t)len_ptr, &given, sizeof(given));
	return len > mtu + (int64_t)LEAT_ETH_HLEN ? BPF_MTU_CHK_RET_FRAG_NEEDED : BPF_MTU_CHK_RET_SUCCESS;
}

static const struct leat_bpf_helper helpers[] = {
	{ .id = BPF_FUNC_redirect, .name = "redirect", .fn = helper_redirect, .ret = LEAT_BPF_RET_NUMBER,
	  .arg = { LEAT_BPF_ARG_ANY, LEAT_BPF_ARG_ANY } },
	{ .id = BPF_FUNC_redirect_map, .name = "redirect_map", .fn = helper_redirect_map, .ret = LEAT_BPF_RET_NUMBER,
	  .arg = { LEAT_BPF_ARG_MAP, LEAT_BPF_ARG_ANY, LEAT_BPF_ARG_ANY } },
	{ .id = BPF_FUNC_check_mtu, .name = "check_mtu", .fn = helper_check_mtu, .ret = LEAT_BPF_RET_NUMBER,
	  .arg = { LEAT_BPF_ARG_CTX, LEAT_BPF_ARG_ANY, LEAT_BPF_ARG_U32_INOUT, LEAT_BPF_ARG_ANY, LEAT_BPF_ARG_ANY } },
	{ .name = NULL },
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
	leat_bpf_helper_register(helpers);
	leat_bpf_helper_register(leat_fib_helpers);
	leat_portmap_register();
}

void leat_xdp_bpf_init(void)
{
	pthread_once(&once, init);
}

int leat_xdp_bpf_env_create(struct leat_net *net, const struct leat_bpf_env_opts *opts, struct leat_bpf_env **env)
{
	struct leat_bpf_env_opts own = { .size = sizeof(own) };
	int err;

	if (opts && opts->size == sizeof(own))
		own = *opts;
	own.cpus = net->n_workers;
	own.epoch = &net->epoch;
	own.log = own.log ? own.log : leat_net_log(net);
	leat_xdp_bpf_init();
	err = leat_bpf_env_create(&own, env);
	if (!err)
		(*env)->net = net;
	return err;
}

static uint32_t run_bpf(struct leat_xdp_buff *xdp, void *priv)
{
	return leat_bpf_prog_run(priv, xdp, xdp->worker->id);
}

int leat_xdp_prog_create_bpf(struct leat_net *net, struct leat_bpf_prog *bpf, const struct leat_xdp_prog_opts *opts,
			     struct leat_xdp_prog **prog)
{
	struct leat_xdp_prog_opts own = { .size = sizeof(own) };

	if ((opts && opts->size != sizeof(own)) || leat_bpf_prog_egress(bpf))
		return -EINVAL;
	if (opts)
		own = *opts;
	own.fn = run_bpf;
	own.priv = bpf;
	own.destroy_priv = NULL;
	if (!own.name)
		own.name = leat_bpf_prog_name(bpf);
	if (!own.run_prio)
		own.run_prio = leat_bpf_prog_run_prio(bpf);
	if (!own.chain_actions)
		own.chain_actions = leat_bpf_prog_chain_actions(bpf);
	if (leat_bpf_prog_frags(bpf))
		own.flags |= LEAT_XDP_PROG_FRAGS;
	if (!leat_bpf_prog_writes(bpf))
		own.flags |= LEAT_XDP_PROG_READ_ONLY;
	return leat_xdp_prog_create(net, &own, prog);
}
