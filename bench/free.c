/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * free.c: the bench `free`: a packet of 64 KiB in 17 fragments of a page each goes back, by 17 calls (single), by one
 * (bulk), or as the one run that 17 neighbours are when they were merged (merged).
 *
 * What is timed is only the giving back: CPU time of the thread that does it, for some hundred packets that the owner has
 * allocated before. On the other core (the plain names), or by the owner (@owner).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "bench/baseline/dpdk.h"
#include "team.h"

#define FRAGS 17u
#define FRAG_GRANULES (LEAT_PAGE_SIZE / LEAT_GRANULE_SIZE)
#define PACKETS 256u
#define LIMIT (UINT64_C(64) << 20)

struct packet {
	uintptr_t frag[FRAGS]; /* run, or address */
};

struct freeing {
	struct team *team;
	void *pool;
	bool (*get)(void *pool, struct packet *packet);
	void (*put)(void *pool, struct packet *packets, uint32_t n);
	struct packet *packet; /* PACKETS of them */
	uint64_t ns;           /* CPU time of giving back */
	uint32_t full;         /* packets that wait; PACKETS + 1: the end (atomic) */
};

/* ---- ways ---- */

static bool leat_get(void *pool, struct packet *packet)
{
	unsigned int i;

	for (i = 0; i < FRAGS; i++) {
		packet->frag[i] = leat_page_pool_alloc(pool, FRAG_GRANULES).bits;
		if (!packet->frag[i])
			return false;
	}
	return true;
}

static void put_single(void *pool, struct packet *packet, uint32_t n)
{
	uint32_t i, k;

	(void)pool;
	for (i = 0; i < n; i++)
		for (k = 0; k < FRAGS; k++)
			leat_page_pool_put_page((struct leat_run){ packet[i].frag[k] });
}

static void put_bulk(void *pool, struct packet *packet, uint32_t n)
{
	uint32_t i;

	(void)pool;
	for (i = 0; i < n; i++)
		leat_page_pool_put_page_bulk((struct leat_run *)(void *)packet[i].frag, FRAGS);
}

/** A run of FRAGS neighbours where the pool has it, else their runs one by one, as coalescing leaves them. */
static bool merged_get(void *pool, struct packet *packet)
{
	uint64_t addr, next = 0;
	uint32_t i, n = 0, granules = 0;
	struct packet loose;

	if (!leat_get(pool, &loose))
		return false;
	memset(packet, 0, sizeof(*packet));
	for (i = 0; i <= FRAGS; i++) {
		addr = i < FRAGS ? leat_run_addr((struct leat_run){ loose.frag[i] }) : 0;
		if (i && addr != next) {
			packet->frag[n++] = leat_run_make_long(next - (uint64_t)granules * LEAT_GRANULE_SIZE, granules).bits;
			granules = 0;
		}
		granules += FRAG_GRANULES;
		next = addr + LEAT_PAGE_SIZE;
	}
	return true;
}

static void put_merged(void *pool, struct packet *packet, uint32_t n)
{
	uint32_t i, k;

	(void)pool;
	for (i = 0; i < n; i++) {
		for (k = 0; k < FRAGS && packet[i].frag[k]; k++)
			;
		leat_page_pool_put_page_bulk((struct leat_run *)(void *)packet[i].frag, k);
	}
}

#ifdef LEAT_HAVE_DPDK
static bool dpdk_get(void *pool, struct packet *packet)
{
	return !rte_mempool_get_bulk(pool, (void **)packet->frag, FRAGS);
}

static void dpdk_put_bulk(void *pool, struct packet *packet, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		rte_mempool_put_bulk(pool, (void **)packet[i].frag, FRAGS);
}

static void dpdk_put_single(void *pool, struct packet *packet, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < FRAGS; k++)
			rte_mempool_put(pool, (void *)packet[i].frag[k]);
}
#endif

/* ---- measuring ---- */

static void fill(struct freeing *f)
{
	uint32_t i;

	for (i = 0; i < PACKETS; i++)
		while (!f->get(f->pool, &f->packet[i]))
			LEAT_ASSERT(!"the pool holds more than the packets");
}

static void give_back(struct freeing *f)
{
	uint64_t ns = bench_cpu_ns();

	f->put(f->pool, f->packet, PACKETS);
	f->ns += bench_cpu_ns() - ns;
}

static double by_owner(void *arg, uint64_t ns)
{
	struct freeing *f = arg;
	uint64_t rounds = 0, until = leat_clock_ns() + ns;

	f->ns = 0;
	do {
		fill(f);
		give_back(f);
		rounds++;
	} while (leat_clock_ns() < until);
	return (double)f->ns / (double)(rounds * PACKETS);
}

static void partner(void *arg, unsigned int idx)
{
	struct freeing *f = arg;
	uint32_t full;

	(void)idx;
#ifdef LEAT_HAVE_DPDK
	LEAT_ASSERT(dpdk_thread());
#endif
	for (;;) {
		full = __atomic_load_n(&f->full, __ATOMIC_ACQUIRE); /* pairs with hand_over() */
		if (full > PACKETS)
			return;
		if (full)
			give_back(f);
		else
			team_pause();
		if (full)
			__atomic_store_n(&f->full, 0, __ATOMIC_RELEASE); /* pairs with hand_over() */
	}
}

/** Says how many packets wait, and waits until none do. */
static void hand_over(struct freeing *f, uint32_t full)
{
	__atomic_store_n(&f->full, full, __ATOMIC_RELEASE); /* pairs with partner() */
	while (full <= PACKETS && __atomic_load_n(&f->full, __ATOMIC_ACQUIRE)) /* pairs with partner() */
		team_pause();
}

static double by_partner(void *arg, uint64_t ns)
{
	struct freeing *f = arg;
	uint64_t rounds = 0, until;

	f->ns = 0;
	f->full = 0;
	team_start(f->team, 1, partner, f);
	until = leat_clock_ns() + ns;
	do {
		fill(f);
		hand_over(f, PACKETS);
		rounds++;
	} while (leat_clock_ns() < until);
	hand_over(f, PACKETS + 1);
	team_wait(f->team);
	return (double)f->ns / (double)(rounds * PACKETS);
}

/* ---- instructions ---- */

static void count_put(void *arg, uint64_t n)
{
	struct freeing *f = arg;

	f->put(f->pool, f->packet, (uint32_t)n);
}

/** In the child under callgrind, of one thread: what is put while the pool has no owner is put as by another thread. */
static void count_remote(void *arg, uint64_t n)
{
	struct freeing *f = arg;

	for (; n >= PACKETS; n -= PACKETS) {
		fill(f);
		leat_page_pool_disown(f->pool);
		bench_counted(count_put, f, PACKETS);
		leat_page_pool_own(f->pool);
	}
}

static void count_owner(void *arg, uint64_t n)
{
	struct freeing *f = arg;

	for (; n >= PACKETS; n -= PACKETS) {
		fill(f);
		bench_counted(count_put, f, PACKETS);
	}
}

/** Instructions of @name, as a variant of one sample and what a ratio is made of. */
static double count(struct bench_run *run, const char *name)
{
	char counted[48];
	double value = bench_instructions(run, name);

	snprintf(counted, sizeof(counted), "%s.instructions", name);
	if (value > 0)
		bench_add(run, counted, &value, 1);
	return value;
}

static void count_all(struct bench_run *run)
{
	double single, bulk;

	if (bench_counting(run) || bench_smoke(run))
		return;
	single = count(run, "single");
	bulk = count(run, "bulk");
	if (single <= 0 || bulk <= 0) {
		bench_note(run, "valgrind is not there: instructions were not counted");
		return;
	}
	bench_exact(run, "bulk/single.instructions", bulk / single, BENCH_MARK_AT_MOST(0.4));
	bench_exact(run, "merged/single.instructions", count(run, "merged") / single, BENCH_MARK_NONE);
	single = count(run, "single@owner");
	bench_exact(run, "bulk/single.instructions@owner", count(run, "bulk@owner") / single, BENCH_MARK_NONE);
}

/* ---- all of it ---- */

#define WAYS_MAX 5u

struct way {
	const char *name, *owner_name;
	struct freeing freeing;
};

static void measure(struct bench_run *run, struct way *way, unsigned int n)
{
	struct bench_variant remote[WAYS_MAX], owner[WAYS_MAX];
	bool two = bench_two_cores(run) && !bench_counting(run);
	unsigned int i;

	for (i = 0; i < n; i++) {
		remote[i] = (struct bench_variant){ .name = way[i].name, .sample = by_partner, .ops = count_remote,
						    .arg = &way[i].freeing, .two_cores = two, .counts_itself = true };
		owner[i] = (struct bench_variant){ .name = way[i].owner_name, .sample = by_owner, .ops = count_owner,
						   .arg = &way[i].freeing, .counts_itself = true };
		way[i].freeing.team = two ? bench_team(run) : NULL;
	}
	if (two || bench_counting(run))
		bench_measure(run, remote, n);
	bench_measure(run, owner, n);
	bench_ratio(run, "bulk/single", "bulk", "single", BENCH_MARK_AT_MOST(0.4));
	bench_ratio(run, "merged/single", "merged", "single", BENCH_MARK_NONE);
	bench_ratio(run, "bulk/single@owner", "bulk@owner", "single@owner", BENCH_MARK_NONE);
	bench_ratio(run, "dpdk-bulk/dpdk-single", "dpdk-bulk", "dpdk-single", BENCH_MARK_NONE);
	bench_ratio(run, "bulk/dpdk-bulk", "bulk", "dpdk-bulk", BENCH_MARK_NONE);
	bench_ratio(run, "merged/dpdk-bulk", "merged", "dpdk-bulk", BENCH_MARK_NONE);
	bench_ratio(run, "bulk/dpdk-bulk@owner", "bulk@owner", "dpdk-bulk@owner", BENCH_MARK_NONE);
}

static int run_free(struct bench_run *run)
{
	struct packet *packet = calloc(PACKETS, sizeof(*packet));
	struct way way[WAYS_MAX] = {
		{ "single", "single@owner", { .get = leat_get, .put = put_single } },
		{ "bulk", "bulk@owner", { .get = leat_get, .put = put_bulk } },
		{ "merged", "merged@owner", { .get = merged_get, .put = put_merged } },
	};
	unsigned int i, n = 3;
	struct bench_mem mem;
	int err = -ENOMEM;

	if (packet)
		err = bench_mem_open(run, &mem, LIMIT);
	if (err)
		goto free_packets;
	for (i = 0; i < n; i++)
		way[i].freeing.pool = mem.pool;
#ifdef LEAT_HAVE_DPDK
	if (!bench_counting(run)) {
		void *pool = dpdk_pool("leat-free", LEAT_PAGE_SIZE, bench_cpu(run, 0));

		if (pool) {
			way[n++] = (struct way){ "dpdk-single", "dpdk-single@owner", { .pool = pool, .get = dpdk_get, .put = dpdk_put_single } };
			way[n++] = (struct way){ "dpdk-bulk", "dpdk-bulk@owner", { .pool = pool, .get = dpdk_get, .put = dpdk_put_bulk } };
		}
	}
#endif
	for (i = 0; i < n; i++)
		way[i].freeing.packet = packet;
	measure(run, way, n);
	count_all(run);
	bench_mem_close(run, &mem);
free_packets:
	free(packet);
	return err;
}

const struct bench bench_free = {
	"free", "a packet of 64 KiB in 17 fragments goes back", "ns/packet", BENCH_LOWER, run_free,
};
