/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_sizing.c: the size of receive buffers, decided once per half window. The receiving thread.
 *
 * Theory of operation
 *
 * Let more[x] be the packets of more than x granules. A packet of g granules takes one buffer of k granules, and one
 * more for each multiple of k below g; so all packets together take more[0] + more[k] + more[2k] + ... buffers. For all
 * k from 1 to 64 these are some 600 additions at most, whatever the traffic is; no division. For most
 * sizes not even that, as a bound says that they cannot be the best.
 */
#include <errno.h>
#include <leat/rx_sizing.h>
#include <string.h>

#include "base/opts.h"

#define RING_DEFAULT 256u
#define LARGEST_DEFAULT 65562u /* 64 KiB, an Ethernet header and a virtio-net header of 12 bytes */
#define BUFFER_COST_DEFAULT 1024u
#define BUFFER_COST_MAX (1u << 20)
#define START_LEN 1518u

static int check_opts(struct leat_rx_sizing_opts *own, const struct leat_rx_sizing_opts *opts)
{
	int err = leat_opts_copy(own, sizeof(*own), opts);
	uint64_t room;

	if (err)
		return err;
	if (!own->min)
		own->min = LEAT_GRANULE_SIZE;
	if (!own->max)
		own->max = LEAT_BLOCK_SIZE;
	if (!own->ring_entries)
		own->ring_entries = RING_DEFAULT;
	if (!own->largest)
		own->largest = LARGEST_DEFAULT;
	if (!own->buffer_cost)
		own->buffer_cost = BUFFER_COST_DEFAULT;
	if (own->min > own->max || own->max > LEAT_BLOCK_SIZE || own->largest > LEAT_RX_SIZING_LEN_MAX ||
	    own->buffer_cost > BUFFER_COST_MAX)
		return -EINVAL;
	own->max &= ~(LEAT_GRANULE_SIZE - 1);
	room = LEAT_BLOCK_SIZE - LEAT_RX_SIZING_ROOM_MAX;
	return own->ring_entries * (own->max < room ? own->max : room) < own->largest ? -EINVAL : 0;
}

static uint32_t div_up(uint32_t a, uint32_t b)
{
	return a / b + !!(a % b);
}

int leat_rx_sizing_init(struct leat_rx_sizing *s, const struct leat_rx_sizing_opts *opts)
{
	struct leat_rx_sizing_opts own;
	int err = check_opts(&own, opts);
	uint32_t min;

	if (err)
		return err;
	/* the ring must hold the longest packet */
	min = div_up(own.largest, own.ring_entries);
	min = LEAT_GRANULES(min > own.min ? min : own.min);
	if (min > own.max / LEAT_GRANULE_SIZE)
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	s->min = (uint8_t)min;
	s->max = (uint8_t)(own.max / LEAT_GRANULE_SIZE);
	s->frag_min = (uint8_t)LEAT_GRANULES(div_up(own.largest, LEAT_MAX_FRAGS + 1));
	s->granules = LEAT_GRANULES(START_LEN);
	if (s->granules < s->min)
		s->granules = s->min;
	if (s->granules > s->max)
		s->granules = s->max;
	s->buffer_cost = own.buffer_cost;
	s->left = LEAT_RX_SIZING_HALF;
	s->quiet = LEAT_RX_SIZING_QUIET;
	return 0;
}

/** What is known of a window. */
struct window {
	uint32_t top;                       /* more[] is 0 from here on */
	uint32_t more[LEAT_RX_SIZING_BINS]; /* packets of more than x granules */
	uint32_t rest[LEAT_RX_SIZING_BINS]; /* more[x] + more[x + 1] + ... */
};

static void count(const struct leat_rx_sizing *s, struct window *w)
{
	const uint16_t *a = s->seen, *b = s->seen + LEAT_RX_SIZING_BINS;
	uint16_t seen[LEAT_RX_SIZING_BINS];
	uint32_t x, more = 0, rest = 0;

	for (x = 0; x < LEAT_RX_SIZING_BINS; x++)
		seen[x] = (uint16_t)(a[x] + b[x]); /* at most two half windows' packets */
	for (x = LEAT_RX_SIZING_BINS - 1; x && !seen[x]; x--)
		;
	w->top = x ? x : 1;
	w->more[0] = 0;
	for (; x; x--) {
		more += seen[x];
		rest += more;
		w->more[x - 1] = more;
		w->rest[x - 1] = rest;
	}
	w->more[0] += seen[0]; /* a packet without a byte takes a buffer, too */
}

/** What the packets of the window cost in buffers of @granules. */
static uint64_t cost_of(const struct window *w, uint32_t granules, uint64_t price)
{
	uint64_t buffers = 0;
	uint32_t x;

	for (x = 0; x < w->top; x += granules)
		buffers += w->more[x];
	return buffers * price;
}

static void change(struct leat_rx_sizing *s, uint32_t granules)
{
	s->granules = (uint8_t)granules;
	s->wanted = 0;
	s->changes++;
}

/** A change that saves a lot. When it takes the last one back, and soon, the window is too short for this traffic. */
static void change_large(struct leat_rx_sizing *s, uint32_t granules)
{
	int8_t direction = granules > s->granules ? 1 : -1;

	if (s->direction == -direction) {
		s->reversals++;
		if (s->quiet < LEAT_RX_SIZING_QUIET && s->level < LEAT_RX_SIZING_LEVELS)
			s->level++;
		s->quiet = 0;
	}
	s->direction = direction;
	change(s, granules);
}

static void decide(struct leat_rx_sizing *s, uint32_t best, uint64_t best_cost, uint64_t cost)
{
	int8_t wanted;

	if (cost * 4 > best_cost * 5) {
		change_large(s, best);
		return;
	}
	wanted = cost * 32 <= best_cost * 33 ? 0 : best > s->granules ? 1 : -1;
	if (wanted && wanted == s->wanted)
		change(s, best);
	else
		s->wanted = wanted;
}

static uint64_t price_of(const struct leat_rx_sizing *s, uint32_t granules)
{
	return (granules << LEAT_GRANULE_SHIFT) + s->buffer_cost;
}

/** Compares all sizes; of equals the smallest. Decides. */
static void compare(struct leat_rx_sizing *s, const struct window *w)
{
	uint64_t cost, price, now = cost_of(w, s->granules, price_of(s, s->granules)), least = now;
	uint32_t k, best = s->granules, rest;

	for (k = s->min; k <= s->max; k++) {
		price = price_of(s, k);
		if (w->more[0] * price > least)
			break; /* one buffer each would be too dear, and those that follow are dearer */
		/* more[k] + more[2k] + .. is at least rest[k] / k, so this is at most the cost: few sizes need a sum */
		rest = k < w->top ? w->rest[k] : 0;
		if (((uint64_t)w->more[0] * k + rest) * price > least * k)
			continue;
		cost = cost_of(w, k, price);
		if (cost > least || (cost == least && k > best))
			continue;
		least = cost;
		best = k;
	}
	decide(s, best, least, now);
}

void leat_rx_sizing_look(struct leat_rx_sizing *s)
{
	struct window w;

	if (s->quiet < LEAT_RX_SIZING_QUIET)
		s->quiet++;
	count(s, &w);
	compare(s, &w);
	if (s->quiet == LEAT_RX_SIZING_QUIET && s->level) {
		s->level--;
		s->quiet = 0;
	}
	s->half = LEAT_RX_SIZING_BINS - s->half;
	memset(s->seen + s->half, 0, LEAT_RX_SIZING_BINS * sizeof(s->seen[0]));
	s->left = (uint16_t)(LEAT_RX_SIZING_HALF << s->level);
}
