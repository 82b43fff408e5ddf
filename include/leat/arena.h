/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h: packet memory as address ranges: arena, segments, blocks, runs.
 *
 *   arena: LEAT_ARENA_SPAN of addresses, aligned to its span
 *   +-------+---------+---------------+------------------------------------------------+
 *   |       | block   | granule       | data: up to 32 GiB, cut into segments          |
 *   |       | table   | table         | [segment 0: anonymous][segment 1: memfd]...    |
 *   +-------+---------+---------------+------------------------------------------------+
 *           what only we see            what a peer may see
 *
 * Data holds packet bytes and XDP metadata only. Everything that the datapath believes in stands in the two tables,
 * which are private memory. A data address has the bit LEAT_ARENA_DATA set; each table begins where that bit falls
 * when the address is shifted to an index, so a descriptor is found by a shift and two masks, without a constant to
 * add and without a load.
 *
 * A *granule* is 512 bytes, a *block* 64 granules (32 KiB), so that the free granules of a block are one 64-bit mask.
 * A *run* is a reference to consecutive granules: the only form in which packet memory is owned, passed and put.
 */
#ifndef LEAT_ARENA_H
#define LEAT_ARENA_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

#define LEAT_GRANULE_SHIFT 9
#define LEAT_GRANULE_SIZE (1u << LEAT_GRANULE_SHIFT)
#define LEAT_BLOCK_SHIFT 15
#define LEAT_BLOCK_SIZE (1u << LEAT_BLOCK_SHIFT)
#define LEAT_BLOCK_GRANULES (LEAT_BLOCK_SIZE / LEAT_GRANULE_SIZE)
/** Memory comes from a segment in extents of this many bytes. */
#define LEAT_EXTENT_SHIFT 18
#define LEAT_EXTENT_SIZE (1u << LEAT_EXTENT_SHIFT)
#define LEAT_ARENA_SHIFT 36
#define LEAT_ARENA_SPAN (UINT64_C(1) << LEAT_ARENA_SHIFT)
#define LEAT_ADDR_BITS 48
#define LEAT_ARENA_BASE_MASK ((UINT64_C(1) << LEAT_ADDR_BITS) - LEAT_ARENA_SPAN)
/** Most data an arena can hold: granule numbers have 26 bits. */
#define LEAT_ARENA_DATA_MAX (UINT64_C(1) << 35)

/* Shifts from a data address to the offset of its descriptor. */
#define LEAT_BLOCK_DESC_SHIFT 8   /* 32 KiB to 128 bytes */
#define LEAT_GRANULE_DESC_SHIFT 3 /* 512 bytes to 64 */
/* Where data and tables begin, bytes from the start of the arena. */
#define LEAT_ARENA_DATA (LEAT_ARENA_SPAN / 2)
#define LEAT_ARENA_BLOCKS (LEAT_ARENA_DATA >> LEAT_BLOCK_DESC_SHIFT)
#define LEAT_ARENA_GRANULES (LEAT_ARENA_DATA >> LEAT_GRANULE_DESC_SHIFT)

/** Granules that hold @bytes. */
#define LEAT_GRANULES(bytes) ((uint32_t)(((bytes) + LEAT_GRANULE_SIZE - 1) >> LEAT_GRANULE_SHIFT))

struct leat_arena;
struct leat_segment;
struct leat_page_pool;

/** Pages of a block. A page is 4 KiB here, whatever the system's is. */
#define LEAT_PAGE_SHIFT 12
#define LEAT_PAGE_SIZE (1u << LEAT_PAGE_SHIFT)
#define LEAT_BLOCK_PAGES (LEAT_BLOCK_SIZE / LEAT_PAGE_SIZE)
#define LEAT_PAGE_GRANULES (LEAT_PAGE_SIZE / LEAT_GRANULE_SIZE)

/* Bits of leat_block.flags; any of them set takes a put off the fast path. */
#define LEAT_BLOCK_SHARED 0x1u /* some run of this block has had a second holder since the block was last whole */
#define LEAT_BLOCK_FRAG 0x2u   /* some page of it was cut by a page_frag_cache: there references are counted */

/** Descriptor of one block, private memory. */
struct leat_block {
	/* read by every thread that puts; written rarely */
	struct leat_page_pool *pool; /* whose block it is; control writes, before the block is cut */
	uint32_t flags;              /* LEAT_BLOCK_*; owner clears when it cuts the whole, sharers set (atomic) */
	/*
	 * Page fragments: a chunk is 1, 2, 4 or 8 pages, aligned to its size, that a page_frag_cache cuts.
	 * chunk[page]: 0: not of a chunk; else 1 + the number of the chunk's first page (atomic, bytewise).
	 * refs[first page]: references of the chunk still out, with the cache's bias (atomic).
	 */
	uint8_t chunk[LEAT_BLOCK_PAGES] __attribute__((aligned(8))); /* looked at as one word when the block is cut */
	int32_t refs[LEAT_BLOCK_PAGES];
	/* written by the pool's owner only; others read it for reports (relaxed) */
	uint64_t free LEAT_CACHELINE_ALIGNED; /* one bit per granule: 1 = free */
	/* of a page with nothing out when it was cut last; what is cut from it later counts as that old, too. account.h */
	uint32_t cut_ms[LEAT_BLOCK_PAGES];    /* when that was, CLOCK_MONOTONIC_COARSE, ms */
	uint16_t cut_seq[LEAT_BLOCK_PAGES];   /* how often it was: tells a holder's tag from an older one */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_block) == 2 * LEAT_CACHELINE, "block descriptor is two lines");
LEAT_STATIC_ASSERT(LEAT_BLOCK_SIZE >> LEAT_BLOCK_DESC_SHIFT == sizeof(struct leat_block), "found by shift");

/** Descriptor of one granule, private memory. The rest is the packet's: see struct leat_xdp_frame. */
struct leat_granule {
	int32_t shares; /* of the run that begins here: holders beside the first (atomic) */
	uint32_t packet[14];
	uint32_t tag; /* who was last seen with the run that begins here: see account.h (relaxed) */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_granule) == LEAT_CACHELINE, "granule descriptor is one line");
LEAT_STATIC_ASSERT(LEAT_GRANULE_SIZE >> LEAT_GRANULE_DESC_SHIFT == sizeof(struct leat_granule), "found by shift");

/**
 * A reference to consecutive granules: bits 62..48 hold their number, bits 47..0 the address of the first, bit 63
 * (LEAT_RUN_LONG) says that they lie in more than one block. All zero is no reference. Plain value: copying it does not
 * make a second reference, leat_page_pool_get_page() does.
 */
struct leat_run {
	uint64_t bits;
};

#define LEAT_RUN_LONG (UINT64_C(1) << 63)
/** Most granules of a run: 16 MiB. */
#define LEAT_RUN_GRANULES_MAX 0x7fffu
#define LEAT_RUN_NONE ((struct leat_run){ 0 })

struct leat_arena_opts {
	size_t size;        /* sizeof(struct leat_arena_opts) */
	uint64_t data_size; /* bytes of data addresses, rounded up to an extent; 0: LEAT_ARENA_DATA_MAX */
};

/**
 * Reserves an arena's addresses; no memory is committed. @opts may be NULL. *control*.
 * Returns 0; -EINVAL, -E2BIG (options); -ENOMEM; -ENOSPC when the address space has no such hole (see ulimit -v).
 */
LEAT_API int leat_arena_create(const struct leat_arena_opts *opts, struct leat_arena **arena);

/**
 * Gives the memory back. Every segment must be destroyed. The addresses stay reserved for the next arena of the
 * process, so that a thread which has just returned the last buffer may still look at its descriptors. *control*.
 */
LEAT_API void leat_arena_destroy(struct leat_arena *arena);

enum leat_segment_kind {
	LEAT_SEGMENT_PRIVATE, /* anonymous memory, transparent huge pages where the system gives them */
	LEAT_SEGMENT_SHARED,  /* one sealed memfd, for one trust domain: a peer that is handed it sees all of it */
};

struct leat_segment_opts {
	size_t size;              /* sizeof(struct leat_segment_opts) */
	enum leat_segment_kind kind;
	uint64_t bytes;           /* of addresses, rounded up to an extent; must be given */
	const char *name;         /* for people and for /proc; copied; at most 31 bytes are kept */
};

/**
 * Makes a segment. Its memory is committed in extents when pools ask for it, so a shortage is an errno and not a
 * signal. A shared segment is a memfd of its final size, sealed against shrinking and growing. *control*.
 * Returns 0; -EINVAL, -E2BIG; -ENOSPC when the arena has no such range left; the error of mmap or memfd_create.
 */
LEAT_API int leat_segment_create(struct leat_arena *arena, const struct leat_segment_opts *opts,
				 struct leat_segment **segment);

/**
 * Ends a segment. When pools still have buffers out, it goes with the last of them. NULL is allowed. *control*.
 * The memory of a shared segment is never given to another peer: its addresses are unmapped.
 */
LEAT_API void leat_segment_destroy(struct leat_segment *segment);

/** The memfd of a shared segment (borrowed), or -1. */
LEAT_API int leat_segment_fd(const struct leat_segment *segment);
/** First address and size of a segment. */
LEAT_API void *leat_segment_base(const struct leat_segment *segment);
LEAT_API uint64_t leat_segment_size(const struct leat_segment *segment);
/** Bytes committed now. *any*. */
LEAT_API uint64_t leat_segment_committed(const struct leat_segment *segment);

/* ---- from an address to its descriptors ---- */

static inline uint64_t leat_arena_base(uint64_t addr)
{
	return addr & LEAT_ARENA_BASE_MASK;
}

/** Number of the granule in its arena, below 2^26. */
static inline uint32_t leat_granule_idx(uint64_t addr)
{
	return (uint32_t)(addr >> LEAT_GRANULE_SHIFT) & (uint32_t)(LEAT_ARENA_DATA_MAX / LEAT_GRANULE_SIZE - 1);
}

/** Address of granule @idx of the arena that @addr, any address of it, belongs to. */
static inline uint64_t leat_granule_addr(uint64_t addr, uint32_t idx)
{
	return leat_arena_base(addr) + LEAT_ARENA_DATA + ((uint64_t)idx << LEAT_GRANULE_SHIFT);
}

/** The block of @addr, whose upper 16 bits do not matter: it may be a run's word. */
static inline struct leat_block *leat_block_of(uint64_t addr)
{
	uint64_t off = addr >> LEAT_BLOCK_DESC_SHIFT & ((LEAT_ARENA_SPAN >> LEAT_BLOCK_DESC_SHIFT) -
							 sizeof(struct leat_block));

	return (struct leat_block *)(uintptr_t)((addr & LEAT_ARENA_BASE_MASK) + off);
}

/** Bits [bit, bit + n) of a block's mask; @n is 1..64, and the two together at most 64. */
static inline uint64_t leat_block_mask(uint32_t bit, uint32_t n)
{
	return (~UINT64_C(0) >> (-n % LEAT_BLOCK_GRANULES)) << bit; /* 64 - n, and 0 for 64, in one instruction */
}

static inline struct leat_granule *leat_granule_of(uint64_t addr)
{
	uint64_t off = addr >> LEAT_GRANULE_DESC_SHIFT & ((LEAT_ARENA_SPAN >> LEAT_GRANULE_DESC_SHIFT) -
							   sizeof(struct leat_granule));

	return (struct leat_granule *)(uintptr_t)(leat_arena_base(addr) + off);
}

/* ---- runs ---- */

/** A run within one block. */
static inline struct leat_run leat_run_make(uint64_t addr, uint32_t granules)
{
	struct leat_run run;

	run.bits = granules * (UINT64_C(1) << LEAT_ADDR_BITS) + addr;
	return run;
}

/** A run that may lie in several blocks. */
static inline struct leat_run leat_run_make_long(uint64_t addr, uint32_t granules)
{
	struct leat_run run = leat_run_make(addr, granules);

	if (leat_granule_idx(addr) % LEAT_BLOCK_GRANULES + granules > LEAT_BLOCK_GRANULES)
		run.bits |= LEAT_RUN_LONG;
	return run;
}

static inline bool leat_run_is_none(struct leat_run run)
{
	return run.bits == 0;
}

static inline uint64_t leat_run_addr(struct leat_run run)
{
	return run.bits & ((UINT64_C(1) << LEAT_ADDR_BITS) - 1);
}

/** First byte. */
static inline uint8_t *leat_run_start(struct leat_run run)
{
	return (uint8_t *)(uintptr_t)leat_run_addr(run);
}

static inline uint32_t leat_run_granules(struct leat_run run)
{
	return (uint32_t)(run.bits >> LEAT_ADDR_BITS) & LEAT_RUN_GRANULES_MAX;
}

/** Bytes that the reference keeps from being used again: the honest truesize. */
static inline uint32_t leat_run_size(struct leat_run run)
{
	return leat_run_granules(run) << LEAT_GRANULE_SHIFT;
}

LEAT_END_DECLS

#endif
