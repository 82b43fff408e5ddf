/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frags.c: joining, shortening and copying the fragments of a packet.
 *
 * A fragment has one reference. Three kinds of neighbours become one fragment with one reference:
 *
 *   - runs side by side in one pool that nobody else holds: the longer run goes back as one range
 *   - bytes of the same run, held twice (a packet that was cloned, cut and put together again)
 *   - pieces of one page_frag chunk: a reference keeps the whole chunk, whichever piece it came with
 *
 * In the latter two the second reference is put at once.
 */
#include "pkt/frags.h"

#include <errno.h>
#include <string.h>

#include "mem/chunk.h"

/** Whether @addr, of which the caller holds something, is in a chunk; *@first tells it from others of the block. */
static bool in_chunk(uint64_t addr, uint32_t *first)
{
	/* atomic: other holders of runs in this block set their mark */
	return __atomic_load_n(&leat_block_of(addr)->flags, __ATOMIC_RELAXED) & LEAT_BLOCK_FRAG &&
	       leat_chunk_find(addr, first);
}

static bool same_chunk(uint64_t a, uint64_t b)
{
	uint32_t first_a, first_b;

	return leat_block_of(a) == leat_block_of(b) && in_chunk(a, &first_a) && in_chunk(b, &first_b) &&
	       first_a == first_b;
}

/* ---- joining ---- */

enum leat_frag_join leat_frag_can_join(const struct leat_frag *last, struct leat_run run, uint32_t off)
{
	uint64_t a = leat_run_addr(last->run), b = leat_run_addr(run), end = a + leat_run_size(last->run);
	uint32_t chunk;

	if (a + last->off + last->len != b + off)
		return LEAT_FRAG_APART;
	if (last->run.bits == run.bits || (a <= b && same_chunk(a, b)))
		return LEAT_FRAG_SPARE;
	if (end == b && leat_run_granules(last->run) + leat_run_granules(run) <= LEAT_RUN_GRANULES_MAX &&
	    leat_block_of(end - 1)->pool == leat_block_of(end)->pool && !in_chunk(end - 1, &chunk) &&
	    !in_chunk(end, &chunk) && !leat_run_is_shared(last->run) && !leat_run_is_shared(run))
		return LEAT_FRAG_ADOPT;
	return LEAT_FRAG_APART;
}

void leat_frag_join(struct leat_frag *last, struct leat_run run, uint32_t len, enum leat_frag_join join, bool dry)
{
	uint64_t addr = leat_run_addr(last->run), end = addr + leat_run_size(last->run);
	uint64_t more = leat_run_addr(run) + leat_run_size(run);

	if (more > end)
		last->run = leat_run_make_long(addr, (uint32_t)(more - addr) >> LEAT_GRANULE_SHIFT);
	last->len += len;
	if (join == LEAT_FRAG_SPARE && !dry)
		leat_page_pool_put_page(run);
}

int leat_frags_add(struct leat_frag *frag, uint32_t n, struct leat_frag more)
{
	enum leat_frag_join join = n ? leat_frag_can_join(&frag[n - 1], more.run, more.off) : LEAT_FRAG_APART;

	if (join != LEAT_FRAG_APART) {
		leat_frag_join(&frag[n - 1], more.run, more.len, join, false);
		return (int)n;
	}
	if (n == LEAT_MAX_FRAGS)
		return -ENOSPC;
	frag[n] = more;
	return (int)n + 1;
}

/* ---- shorter and longer ---- */

static void put(const struct leat_frag *frag, uint32_t *freed)
{
	*freed += leat_run_size(frag->run);
	leat_page_pool_put_page(frag->run);
}

uint32_t leat_frags_pull(struct leat_frag *frag, uint32_t n, uint32_t len, uint32_t *freed)
{
	uint32_t i;

	for (i = 0; i < n && len >= frag[i].len; i++) {
		len -= frag[i].len;
		put(&frag[i], freed);
	}
	if (i == n)
		return 0;
	frag[i].off += len;
	frag[i].len -= len;
	memmove(frag, frag + i, (n - i) * sizeof(*frag));
	return n - i;
}

uint32_t leat_frags_trim(struct leat_frag *frag, uint32_t n, uint32_t len, uint32_t *freed)
{
	for (; n && len >= frag[n - 1].len; n--) {
		len -= frag[n - 1].len;
		put(&frag[n - 1], freed);
	}
	if (n)
		frag[n - 1].len -= len;
	return n;
}

int64_t leat_frag_room(const struct leat_frag *frag)
{
	uint32_t chunk;

	/* the last granule of a piece may be another piece's, too */
	if (in_chunk(leat_run_addr(frag->run), &chunk) || leat_run_is_shared(frag->run))
		return -EOPNOTSUPP;
	return (int64_t)leat_run_size(frag->run) - frag->off - frag->len;
}

/* ---- copies ---- */

void leat_frags_copy(const struct leat_frag *frag, uint32_t n, uint32_t off, void *dst, uint32_t len)
{
	uint8_t *out = dst;
	uint32_t i, part;

	for (i = 0; len && i < n; i++) {
		if (off >= frag[i].len) {
			off -= frag[i].len;
			continue;
		}
		part = len < frag[i].len - off ? len : frag[i].len - off;
		memcpy(out, leat_frag_data(&frag[i]) + off, part);
		out += part;
		len -= part;
		off = 0;
	}
}

struct leat_run leat_pkt_alloc(struct leat_page_pool *pool, uint32_t bytes)
{
	if (leat_likely(bytes <= LEAT_PAGE_POOL_ALLOC_MAX))
		return leat_page_pool_alloc(pool, LEAT_GRANULES(bytes));
	if (bytes <= LEAT_PAGE_SIZE << (LEAT_PAGE_ORDER_MAX - 1))
		return leat_page_pool_alloc_pages(pool, LEAT_PAGE_ORDER_MAX - 1);
	if (bytes <= LEAT_PAGE_SIZE << LEAT_PAGE_ORDER_MAX)
		return leat_page_pool_alloc_pages(pool, LEAT_PAGE_ORDER_MAX);
	return LEAT_RUN_NONE;
}

/** Copies one fragment into at most @max others, of a block each or longer where those are neighbours. */
static int copy_frag(struct leat_page_pool *pool, const struct leat_frag *frag, struct leat_frag *copy, uint32_t max)
{
	uint32_t done, part, n = 0, freed = 0;
	struct leat_run run;
	int err = 0, more;

	for (done = 0; done < frag->len; done += part) {
		part = frag->len - done < LEAT_PAGE_POOL_ALLOC_MAX ? frag->len - done : LEAT_PAGE_POOL_ALLOC_MAX;
		run = leat_page_pool_alloc(pool, LEAT_GRANULES(part));
		if (leat_run_is_none(run)) {
			err = -ENOMEM;
			break;
		}
		memcpy(leat_run_start(run), leat_frag_data(frag) + done, part);
		more = leat_frags_add(copy, n, (struct leat_frag){ run, 0, part });
		if (more < 0 || (uint32_t)more > max) {
			leat_page_pool_put_page(more < 0 ? run : copy[more - 1].run);
			err = -ENOSPC;
			break;
		}
		n = (uint32_t)more;
	}
	if (!err)
		return (int)n;
	leat_frags_trim(copy, n, done, &freed);
	return err;
}

int leat_frags_unshare(struct leat_page_pool *pool, struct leat_frag *frag, uint32_t *n)
{
	struct leat_frag copy[LEAT_MAX_FRAGS];
	uint32_t i;
	int more;

	for (i = 0; i < *n; i++) {
		if (!frag[i].len || !leat_run_is_shared(frag[i].run))
			continue;
		more = copy_frag(pool, &frag[i], copy, LEAT_MAX_FRAGS - *n + 1);
		if (more < 0)
			return more;
		leat_page_pool_put_page(frag[i].run);
		memmove(frag + i + more, frag + i + 1, (*n - i - 1) * sizeof(*frag));
		memcpy(frag + i, copy, (uint32_t)more * sizeof(*frag));
		*n += (uint32_t)more - 1;
		i += (uint32_t)more - 1;
	}
	return 0;
}
