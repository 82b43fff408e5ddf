/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packets.c: packets of every kind that packet memory knows, on several threads at once: made of runs, of several
 * blocks, of pieces, cloned, cut in two, joined again, copied, turned into frames and back, passed on and freed by whoever
 * has them; while pools are shrunk, limited, moved, ended, made anew and handed over, and somebody asks
 * who has what.
 *
 * Each byte of a packet says which packet it is of, and where it was in it when it was made: so a packet that lost its
 * memory, or had it written by somebody else, is found at its next check.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <leat/page_frag.h>
#include <leat/skb.h>

#include "mem/test_mem.h"

#define WORKERS 3u
#define STASH 24u
#define INBOX 32u
#define STEPS TEST_ROUNDS(60000u)

/** A packet: an skb or a frame, whose bytes were made with @name, from byte @base on. */
struct packet {
	struct leat_skb *skb;
	struct leat_xdp_frame *frame;
	uint32_t name, base;
};

struct worker {
	pthread_t thread;
	struct leat_segment *segment;
	struct leat_page_pool *payload, *objs;
	struct leat_page_frag_cache cache;
	uint64_t seed;
	uint32_t next_name;
	unsigned int n, joined, split, framed, pools, refused;
	struct packet stash[STASH];
	/* from others */
	pthread_mutex_t lock;
	unsigned int n_inbox;
	struct packet inbox[INBOX];
	struct leat_page_pool *gift; /* one that nobody owns; NULL: none */
};

static struct worker workers[WORKERS];
static uint16_t holder;
static uint32_t wakes, stop;

static uint32_t below(struct worker *w, uint32_t n)
{
	return test_below(&w->seed, n);
}

/* ---- bytes ---- */

static uint8_t byte_at(uint32_t name, uint32_t i)
{
	return (uint8_t)(name * 167 + i * 3 + (i >> 8) * 5);
}

static void fill(uint8_t *bytes, uint32_t len, uint32_t name, uint32_t base)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		bytes[i] = byte_at(name, base + i);
}

static void check_bytes(const uint8_t *bytes, uint32_t len, uint32_t name, uint32_t base)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		LEAT_ASSERT(bytes[i] == byte_at(name, base + i));
}

static uint8_t *frag_bytes(const struct leat_frag *frag)
{
	LEAT_ASSERT((uint64_t)frag->off + frag->len <= leat_run_size(frag->run));
	return leat_run_start(frag->run) + frag->off;
}

static uint32_t each_frag(const struct leat_frag *frag, uint32_t n, uint32_t name, uint32_t base,
			  void (*fn)(const uint8_t *bytes, uint32_t len, uint32_t name, uint32_t base), uint32_t *size)
{
	uint32_t i, len = 0;

	LEAT_ASSERT(n <= LEAT_MAX_FRAGS);
	for (i = 0; i < n; i++) {
		fn(frag_bytes(&frag[i]), frag[i].len, name, base + len);
		len += frag[i].len;
		*size += leat_run_size(frag[i].run);
	}
	return len;
}

static void check_skb(const struct packet *p)
{
	const struct leat_skb *skb = p->skb;
	uint32_t size = leat_run_size(skb->self), head = leat_skb_headlen(skb);

	check_bytes(skb->data, head, p->name, p->base);
	LEAT_ASSERT(each_frag(skb->frag, skb->nr_frags, p->name, p->base + head, check_bytes, &size) == skb->data_len);
	if (!leat_run_is_none(skb->head))
		size += leat_run_size(skb->head);
	LEAT_ASSERT(size == skb->truesize);
}

static void check_buff(const struct leat_xdp_buff *xdp, uint32_t name, uint32_t base)
{
	uint32_t head = (uint32_t)(xdp->data_end - xdp->data), size = 0;

	LEAT_ASSERT(xdp->data_end <= leat_run_start(xdp->run) + leat_run_size(xdp->run));
	check_bytes(xdp->data, head, name, base);
	if (xdp->frags)
		LEAT_ASSERT(each_frag(xdp->frags->frag, xdp->frags->n, name, base + head, check_bytes, &size) ==
			    xdp->frags->len);
}

static void check(const struct packet *p)
{
	struct leat_xdp_buff xdp;

	if (p->skb) {
		check_skb(p);
		return;
	}
	leat_xdp_frame_to_buff(p->frame, &xdp);
	check_buff(&xdp, p->name, p->base);
}

static void write_bytes(const uint8_t *bytes, uint32_t len, uint32_t name, uint32_t base)
{
	fill((uint8_t *)(uintptr_t)bytes, len, name, base);
}

/* ---- making ---- */

static struct leat_page_pool *some_pool(struct worker *w)
{
	return below(w, 4) ? w->payload : w->objs;
}

/** A piece at any place in a chunk, of a size that was known before, or not. */
static struct leat_page_frag some_piece(struct worker *w, uint32_t size)
{
	uint32_t align = 1u << below(w, 11);
	struct leat_page_frag frag;

	if (below(w, 2))
		return leat_page_frag_alloc_align(&w->cache, size, align);
	frag = leat_page_frag_prepare(&w->cache, size, align);
	return frag.data ? leat_page_frag_commit(&w->cache, frag, size) : frag;
}

static bool add_run(struct worker *w, struct packet *p, struct leat_run run, uint32_t off, uint32_t len)
{
	if (leat_run_is_none(run))
		return false;
	fill(leat_run_start(run) + off, len, p->name, p->base + p->skb->len);
	if (below(w, 4) && leat_skb_can_coalesce(p->skb, run, off)) {
		leat_skb_coalesce_rx_frag(p->skb, run, off, len);
		w->joined++;
	} else if (leat_skb_add_rx_frag(p->skb, run, off, len)) {
		leat_page_pool_put_page(run);
		return false;
	}
	return true;
}

static bool add_some(struct worker *w, struct packet *p)
{
	uint32_t kind = below(w, 16), size;
	struct leat_page_frag frag;
	struct leat_run run;

	if (kind < 6) {
		size = 1 + below(w, below(w, 8) ? 900 : 9000);
		frag = some_piece(w, size);
		return frag.data && add_run(w, p, frag.run, (uint32_t)(frag.data - leat_run_start(frag.run)), size);
	}
	if (kind == 6)
		run = leat_page_pool_alloc_pages(w->payload, 4);
	else
		run = leat_page_pool_alloc(some_pool(w), 1 + below(w, below(w, 4) ? 4 : 64));
	size = leat_run_size(run);
	return add_run(w, p, run, 0, kind < 14 ? size : 1 + below(w, size + !size));
}

static void make(struct worker *w)
{
	struct packet p = { .name = w->next_name++, .base = below(w, 1000) };
	uint32_t granules = 2 + below(w, 6), pieces = below(w, 12);
	struct leat_page_frag frag;

	p.skb = leat_skb_alloc(w->objs);
	if (!p.skb || w->n == STASH) {
		leat_skb_free(p.skb);
		return;
	}
	if (below(w, 8)) {
		if (below(w, 3)) {
			p.skb->head = leat_page_pool_alloc(some_pool(w), granules);
		} else {
			frag = leat_page_frag_alloc_align(&w->cache, granules * LEAT_GRANULE_SIZE, LEAT_GRANULE_SIZE);
			p.skb->head = frag.run;
		}
	}
	if (!leat_run_is_none(p.skb->head)) {
		p.skb->data = leat_run_start(p.skb->head) + below(w, 300);
		p.skb->len = below(w, 700);
		p.skb->truesize += leat_run_size(p.skb->head);
		fill(p.skb->data, p.skb->len, p.name, p.base);
	}
	while (pieces-- && add_some(w, &p))
		;
	w->stash[w->n++] = p;
}

/* ---- packets that are skbs ---- */

static void forget(struct worker *w, struct packet *p)
{
	*p = w->stash[--w->n];
}

static void cut_in_two(struct worker *w, struct packet *p)
{
	struct packet end = *p;
	uint32_t at = below(w, p->skb->len + 1);

	if (w->n == STASH)
		return;
	end.skb = leat_skb_clone(w->objs, p->skb);
	if (!end.skb) {
		w->refused++;
		return;
	}
	w->split++;
	LEAT_ASSERT(!leat_skb_trim(p->skb, at) && !leat_skb_pull(end.skb, at));
	end.base += at;
	w->stash[w->n++] = end;
}

/** Joins @p with one that goes on where it ends, if there is such a one. */
static void join(struct worker *w, struct packet *p)
{
	struct packet *q;
	uint32_t delta, before;

	for (q = w->stash; q < w->stash + w->n; q++) {
		if (q == p || !q->skb || q->name != p->name || q->base != p->base + p->skb->len)
			continue;
		if (p->skb->len + q->skb->len > 400000)
			return;
		before = p->skb->truesize;
		if (!leat_skb_try_coalesce(p->skb, q->skb, &delta))
			return;
		LEAT_ASSERT(p->skb->truesize == before + delta);
		w->joined++;
		check(p);
		forget(w, q);
		return;
	}
}

/** Gives what nobody else reads another name. */
static void write_anew(struct worker *w, struct packet *p)
{
	uint32_t head = leat_skb_headlen(p->skb), size = 0;

	if (leat_skb_is_shared(p->skb) && (leat_skb_unshare(p->skb, w->payload) || leat_skb_is_shared(p->skb)))
		return;
	check(p);
	p->name = w->next_name++;
	p->base = 0;
	write_bytes(p->skb->data, head, p->name, p->base);
	each_frag(p->skb->frag, p->skb->nr_frags, p->name, p->base + head, write_bytes, &size);
}

static void push(struct worker *w, struct packet *p)
{
	uint32_t room = leat_skb_headroom(p->skb), n = room ? below(w, room) : 0;

	/* what is before the packet in its run may be of its other half only if that holds the run, too */
	if (!n)
		return;
	fill(leat_skb_push(p->skb, n), n, p->name, p->base - n);
	p->base -= n;
}

static void to_frame(struct worker *w, struct packet *p)
{
	if (leat_run_is_none(p->skb->head) || leat_run_is_shared(p->skb->head))
		return;
	p->frame = leat_skb_to_xdp_frame(w->objs, p->skb);
	if (p->frame)
		p->skb = NULL;
	w->framed += !!p->frame;
}

static void edit_skb(struct worker *w, struct packet *p)
{
	uint32_t len = p->skb->len, n;

	switch (below(w, 14)) {
	case 0:
	case 1:
		cut_in_two(w, p);
		break;
	case 2:
	case 3:
	case 4:
		join(w, p);
		break;
	case 5:
		write_anew(w, p);
		break;
	case 6:
		w->refused += !!leat_skb_linearize(p->skb, w->payload);
		break;
	case 7:
		w->refused += !!leat_skb_may_pull(p->skb, below(w, len + 1), w->payload);
		break;
	case 8:
		n = below(w, len / 4 + 1);
		LEAT_ASSERT(!leat_skb_pull(p->skb, n));
		p->base += n;
		break;
	case 9:
		LEAT_ASSERT(!leat_skb_trim(p->skb, len - below(w, len / 4 + 1)));
		break;
	case 10:
		push(w, p);
		break;
	case 11:
		leat_skb_park(p->skb, holder);
		leat_skb_unpark(p->skb);
		break;
	default:
		to_frame(w, p);
	}
}

/* ---- packets that are frames ---- */

/** New bytes at the end are zero; they get the packet's. */
static void grow_tail(struct leat_xdp_buff *xdp, uint32_t n, uint32_t name, uint32_t base)
{
	uint32_t len = leat_xdp_buff_len(xdp), i;
	uint8_t *end;

	if (leat_xdp_adjust_tail(xdp, (int)n))
		return;
	end = xdp->data_end;
	if (xdp->frags && xdp->frags->n)
		end = frag_bytes(&xdp->frags->frag[xdp->frags->n - 1]) + xdp->frags->frag[xdp->frags->n - 1].len;
	for (i = 1; i <= n; i++)
		LEAT_ASSERT(!end[-(ptrdiff_t)i]);
	fill(end - n, n, name, base + len);
}

static void move_edges(struct worker *w, struct leat_xdp_buff *xdp, struct packet *p)
{
	static const int bad[] = { INT32_MIN, INT32_MAX, INT32_MIN + 1, -500000000, 500000000 };
	int n = (int)below(w, 300), what = bad[below(w, COUNT(bad))];

	LEAT_ASSERT(leat_xdp_adjust_head(xdp, what) && leat_xdp_adjust_tail(xdp, what) && leat_xdp_adjust_meta(xdp, what));
	if (!leat_xdp_adjust_head(xdp, n))
		p->base += (uint32_t)n;
	if (!leat_xdp_adjust_tail(xdp, -(int)below(w, 300)) && below(w, 2))
		grow_tail(xdp, below(w, 300), p->name, p->base);
	if (!leat_xdp_adjust_head(xdp, -n)) {
		p->base -= (uint32_t)n;
		fill(xdp->data, (uint32_t)n, p->name, p->base);
	}
	if (!leat_xdp_adjust_meta(xdp, -(int)below(w, 20) * 4))
		memset(xdp->data_meta, 0xaa, (size_t)(xdp->data - xdp->data_meta));
}

static void clone_frame(struct worker *w, const struct packet *p)
{
	struct packet clone = *p;

	if (w->n == STASH)
		return;
	clone.frame = leat_xdp_frame_clone(p->frame, w->payload, w->objs);
	w->refused += !clone.frame;
	if (clone.frame)
		w->stash[w->n++] = clone;
}

static void to_skb(struct worker *w, struct packet *p)
{
	p->skb = leat_skb_from_xdp_frame(w->objs, p->frame);
	if (p->skb)
		p->frame = NULL;
}

static void edit_frame(struct worker *w, struct packet *p)
{
	uint32_t what = below(w, 12);
	struct leat_xdp_buff xdp;

	if (what < 2)
		clone_frame(w, p);
	else if (what == 2)
		leat_xdp_frame_tag(p->frame, holder);
	else if (what < 6)
		to_skb(w, p);
	if (what < 6)
		return;
	leat_xdp_frame_to_buff(p->frame, &xdp);
	if (what == 6)
		w->refused += !!leat_xdp_linearize(w->payload, &xdp);
	else if (what == 7)
		w->refused += !!leat_xdp_unshare_frags(w->payload, &xdp);
	else if (what == 8)
		leat_xdp_copy_break(below(w, 2) ? w->payload : w->objs, &xdp, LEAT_XDP_HEADROOM, 0);
	else if (!leat_run_is_shared(xdp.run) || !leat_xdp_copy_head(w->payload, &xdp))
		move_edges(w, &xdp, p);
	check_buff(&xdp, p->name, p->base);
	p->frame = leat_xdp_buff_to_frame(&xdp);
}

/* ---- passing on, and the end ---- */

static void free_packet(struct packet *p)
{
	check(p);
	if (p->skb)
		leat_skb_free(p->skb);
	else
		leat_xdp_return_frame(p->frame);
}

static void free_some(struct worker *w)
{
	struct leat_xdp_frame *frames[STASH];
	struct leat_skb *skbs[STASH];
	unsigned int n = 1 + below(w, STASH), n_skbs = 0, n_frames = 0;

	for (; n && w->n; n--) {
		struct packet *p = &w->stash[below(w, w->n)];

		check(p);
		if (p->skb)
			skbs[n_skbs++] = p->skb;
		else
			frames[n_frames++] = p->frame;
		forget(w, p);
	}
	leat_skb_free_bulk(skbs, n_skbs);
	leat_xdp_return_frame_bulk(frames, n_frames);
}

static void send(struct worker *w, struct packet *p)
{
	struct worker *to = &workers[below(w, WORKERS)];
	bool sent;

	if (p->skb)
		leat_skb_hold(p->skb, holder);
	pthread_mutex_lock(&to->lock);
	sent = to->n_inbox < INBOX;
	if (sent)
		to->inbox[to->n_inbox++] = *p;
	pthread_mutex_unlock(&to->lock);
	if (sent)
		forget(w, p);
}

static void receive(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->n_inbox && w->n < STASH)
		w->stash[w->n++] = w->inbox[--w->n_inbox];
	pthread_mutex_unlock(&w->lock);
}

/* ---- pools ---- */

static void wake(void *arg)
{
	__atomic_fetch_add((uint32_t *)arg, 1, __ATOMIC_RELAXED);
}

static struct leat_page_pool *new_pool(struct worker *w)
{
	struct leat_page_pool_opts opts = { .size = sizeof(opts), .wake = wake, .wake_arg = &wakes };
	struct leat_page_pool *pool;

	opts.limit = (1 + below(w, 6)) * EXTENT;
	opts.limit_max = 6 * EXTENT;
	opts.floor = (1 + below(w, 3)) * EXTENT;
	opts.low_water = below(w, 2) * 50000;
	if (leat_page_pool_create(w->segment, &opts, &pool))
		return NULL;
	leat_page_pool_own(pool);
	w->pools++;
	return pool;
}

/** Hands a pool over, whatever is out of it. Whether it was taken. */
static bool give(struct worker *to, struct leat_page_pool *pool)
{
	bool taken;

	pthread_mutex_lock(&to->lock);
	taken = !to->gift;
	if (taken) {
		leat_page_pool_disown(pool);
		to->gift = pool;
	}
	pthread_mutex_unlock(&to->lock);
	return taken;
}

static struct leat_page_pool *take_gift(struct worker *w)
{
	struct leat_page_pool *pool;

	pthread_mutex_lock(&w->lock);
	pool = w->gift;
	w->gift = NULL;
	pthread_mutex_unlock(&w->lock);
	if (pool)
		leat_page_pool_own(pool);
	return pool;
}

/** Another pool, that somebody else had or a new one, takes the place of one that ends, or that somebody else gets. */
static void exchange_pool(struct worker *w, struct leat_page_pool **pool)
{
	struct leat_page_pool *other = take_gift(w);

	if (!other)
		other = new_pool(w);
	if (!other)
		return;
	leat_page_frag_drain(&w->cache);
	if (below(w, 2) || !give(&workers[below(w, WORKERS)], *pool))
		leat_page_pool_destroy(*pool);
	*pool = other;
	leat_page_frag_init(&w->cache, below(w, 2) ? w->payload : w->objs);
}

static void tend_pool(struct worker *w)
{
	struct leat_page_pool **pool = below(w, 3) ? &w->payload : &w->objs;

	switch (below(w, 12)) {
	case 0:
		exchange_pool(w, pool);
		break;
	case 1:
		leat_page_frag_drain(&w->cache);
		break;
	case 2:
	case 3:
		leat_page_pool_set_limit(*pool, (1 + below(w, 6)) * EXTENT, EXTENT);
		break;
	case 4:
		leat_page_pool_shrink(*pool);
		break;
	case 5:
		leat_page_pool_set_node(*pool, (int)below(w, 3) - 1);
		break;
	case 6:
		leat_page_pool_drain(*pool);
		break;
	case 7:
		leat_page_pool_fail_nth(*pool, below(w, 20));
		break;
	default:
		leat_page_pool_wait_prepare(*pool);
	}
}

/* ---- threads ---- */

static void step(struct worker *w)
{
	uint32_t what = below(w, 100);
	struct packet *p;

	receive(w);
	if (what < 3) {
		tend_pool(w);
		return;
	}
	if (what < 8) {
		free_some(w);
		return;
	}
	if (what < 30 || !w->n) {
		make(w);
		return;
	}
	p = &w->stash[below(w, w->n)];
	if (below(w, 8) == 0)
		check(p);
	if (what < 45)
		send(w, p);
	else if (p->skb)
		edit_skb(w, p);
	else
		edit_frame(w, p);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	w->payload = new_pool(w);
	w->objs = new_pool(w);
	LEAT_ASSERT(w->payload && w->objs);
	leat_page_frag_init(&w->cache, w->payload);
	for (i = 0; i < STEPS; i++)
		step(w);
	leat_page_frag_drain(&w->cache);
	leat_page_pool_destroy(w->payload);
	while (w->n)
		free_packet(&w->stash[--w->n]);
	leat_page_pool_destroy(w->objs);
	return NULL;
}

static void count_granules(const struct leat_holder_report *report, void *arg)
{
	*(uint64_t *)arg += report->granules;
}

static void *watcher_main(void *arg)
{
	struct leat_segment *segment = arg;
	uint64_t granules = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		LEAT_ASSERT(leat_segment_report(segment, 0, count_granules, &granules) >= 0);
		sched_yield();
	}
	return NULL;
}

static void packets_keep_their_bytes_whatever_threads_do(void **state)
{
	unsigned int i, joined = 0, split = 0, framed = 0, pools = 0, refused = 0;
	struct test_mem mem;
	pthread_t watcher;

	(void)state;
	test_mem_open(&mem, EXTENT * 128);
	holder = leat_holder_register("packets");
	assert_int_equal(pthread_create(&watcher, NULL, watcher_main, mem.segment), 0);
	for (i = 0; i < WORKERS; i++) {
		workers[i].segment = mem.segment;
		workers[i].seed = 1000003 * (i + 1);
		workers[i].next_name = i << 28;
		pthread_mutex_init(&workers[i].lock, NULL);
	}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	for (i = 0; i < WORKERS; i++) {
		while (workers[i].n_inbox)
			free_packet(&workers[i].inbox[--workers[i].n_inbox]);
		leat_page_pool_destroy(workers[i].gift);
		joined += workers[i].joined;
		split += workers[i].split;
		framed += workers[i].framed;
		pools += workers[i].pools;
		refused += workers[i].refused;
		pthread_mutex_destroy(&workers[i].lock);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(watcher, NULL), 0);
	print_message("# joined %u, split %u, framed %u, pools %u, refused %u, wakes %u\n", joined, split, framed, pools,
		      refused, wakes);
	assert_true(joined > STEPS / 100 && split > STEPS / 100 && framed > STEPS / 100 && pools > 2 * WORKERS && refused);
	assert_int_equal(leat_flow_in_place(LEAT_PLACE_PARKED), 0);
	test_mem_close(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_keep_their_bytes_whatever_threads_do),
	};

	return cmocka_run_group_tests_name("packets", tests, NULL, NULL);
}
