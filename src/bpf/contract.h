/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contract.h: what verifier, interpreter and compiler agree on. Whatever one of them relies on stands here, once.
 *
 * Registers. r0..r9 are 64-bit; r10 is the end of the current frame's 512 bytes of stack, which begin zeroed at entry
 * of the program and are private memory. At entry r1 is the context; after a call r1..r5 are unreadable. A register
 * that was loaded is a snapshot: packet and map bytes may change at any time, so nothing is proven by reading them
 * twice.
 *
 * Context. r1 points to the struct leat_bpf_run; no instruction reads it as memory. A 4-byte load from it at the
 * offsets of struct xdp_md is recognised by the verifier and replaced:
 *
 *    0 data, 4 data_end, 8 data_meta     the full pointer of the xdp_buff
 *   12 ingress_ifindex                   rxq->port, 0 without rxq
 *   16 rx_queue_index                    rxq->queue, 0 without rxq
 *   20 egress_ifindex                    run->egress_port
 *
 * Any other access to it is refused, as is an instruction that sees the context on one path and another pointer on
 * another.
 *
 * Maps. Where a map lies, its sizes and whether it is frozen are settled before a program is made ready; the value of a
 * frozen map is a constant. A map that a look-up in a map of maps gives is like the template, is not frozen, and is
 * known from its register alone; it lives until the end of the run.
 *
 * Regions. A memory access is of one class, found by the verifier per instruction (LEAT_BPF_REGION_*). The engine
 * checks the address against the region unless the verifier has proven it; outside the region is a trap: the program
 * ends, the verdict is XDP_ABORTED, and the trap is counted by program and instruction.
 *
 * Fuel. Each backward jump, call, tail call and callback iteration costs the instructions since the target (at least
 * 1); memory that a helper is given costs 1 for each LEAT_BPF_FUEL_BYTES, a trace LEAT_BPF_FUEL_TRACE; at zero it
 * traps. Bounds: 8 frames, 33 tail calls (the 34th falls through), 2^23 iterations of bpf_loop.
 *
 * Locks. A run holds one spin lock at most, and calls no helper while it does; nothing but the two helpers touches a
 * lock's bytes. A trap gives the lock back.
 *
 * Arithmetic is RFC 9669's: division by zero gives 0, modulo by zero leaves the destination, shifts are masked,
 * 32-bit results are zero-extended, the least number divided by -1 is itself.
 */
#ifndef LEAT_BPF_CONTRACT_H
#define LEAT_BPF_CONTRACT_H

#include <leat/bpf.h>
#include <linux/bpf.h>

#define LEAT_BPF_STACK_SIZE 512u
#define LEAT_BPF_FRAMES_MAX 8u
#define LEAT_BPF_TAIL_CALLS_MAX 33u
#define LEAT_BPF_LOOP_MAX (1u << 23)
#define LEAT_BPF_FUEL_DEFAULT (UINT64_C(1) << 23)
#define LEAT_BPF_FUEL_BYTES 16u
#define LEAT_BPF_FUEL_TRACE 1024u

/** Where an access may go. */
enum leat_bpf_region {
	LEAT_BPF_REGION_NONE,   /* not a memory access */
	LEAT_BPF_REGION_STACK,  /* a frame of this run */
	LEAT_BPF_REGION_PACKET, /* data..data_end */
	LEAT_BPF_REGION_META,   /* data_meta..data */
	LEAT_BPF_REGION_MAP,    /* one value of the map that aux.map names */
	LEAT_BPF_REGION_RECORD, /* a reserved ring buffer record */
	LEAT_BPF_REGION_LENT,   /* a key that a callback may read */
	LEAT_BPF_REGION_ANY,    /* different regions on different paths: the engine looks which */
};

/** What the verifier knows of one instruction. */
struct leat_bpf_aux {
	uint8_t region;     /* enum leat_bpf_region */
	uint8_t ctx_load;   /* 1 + offset/4 of the xdp_md member that this load reads; 0: not from the context */
	bool proven;        /* of a memory access, of a helper's memory arguments: the engine need not check; aligned if atomic */
	bool reached;       /* on some path */
	bool access;        /* of memory: what proven is about */
	int32_t map;        /* REGION_MAP, and helper calls on a map that is the same on all paths: its number; else -1 */
	int16_t like;       /* helper calls on inner maps of the same template on all paths: the template's number; else -1 */
	/**
	 * Stack slots (bit n: bytes 8n..8n+7 of a frame) that a write to a place unknown before may not touch: pointers
	 * were spilled there that are read again. A write that does is a trap.
	 */
	uint64_t keep;
	uint8_t frame;      /* REGION_STACK: how many frames up it goes, 0: the current one; LEAT_BPF_FRAME_ANY */
	uint16_t stack;     /* where a function begins: bytes of its frame that are looked at or written, from its end on */
};

#define LEAT_BPF_FRAME_ANY 0xffu

enum leat_bpf_trap_reason {
	LEAT_BPF_TRAP_ACCESS, /* outside its region */
	LEAT_BPF_TRAP_FUEL,
	LEAT_BPF_TRAP_FRAMES, /* more than 8 calls deep */
	LEAT_BPF_TRAP_HELPER, /* a helper was given memory outside its region */
	LEAT_BPF_TRAP_LOCK,   /* a spin lock stayed taken: who holds it is not run */
	LEAT_BPF_TRAP_REASONS
};

/**
 * A ring buffer record that a run has reserved and not submitted. The places are in env->cpu[]; a program that holds
 * LEAT_BPF_RECORDS_MAX of them at once gets no more.
 */
#define LEAT_BPF_RECORDS_MAX 8u
struct leat_bpf_record {
	struct leat_bpf_record *next; /* on run->record */
	uint8_t *data;                /* what the program got; NULL: the place is free */
	uint32_t size;                /* bytes it may use */
};

/** Memory of a helper's own that it lends to a callback, to read. */
struct leat_bpf_lent {
	const struct leat_bpf_lent *prev;
	const void *bytes;
	uint32_t size;
};

/**
 * One run of a program on one packet: the context, and what helpers work on. Private memory of one worker; it begins by
 * leat_bpf_run_init() (env.h).
 */
struct leat_bpf_run {
	struct leat_xdp_buff *xdp;
	struct leat_bpf_prog *prog;   /* whose code runs; changes at a tail call */
	struct leat_bpf_env *env;
	unsigned int cpu;
	uint32_t egress_port;         /* programs on egress; 0 else */
	uint32_t tail_calls;
	uint64_t fuel;                /* left */
	int trap;                     /* 1 + enum leat_bpf_trap_reason once it traps; helpers set it, too */
	bool trap_counted;
	struct leat_bpf_record *record; /* ring buffer records reserved and not submitted yet */
	const struct leat_bpf_lent *lent; /* by the helpers that are at work; the newest first */
	uint32_t *lock;               /* the spin lock that is held; NULL: none */
	const struct leat_bpf_map *looked_up; /* where a look-up was last made by a helper: what is accessed is likely there */
	uint8_t *stack;               /* LEAT_BPF_FRAMES_MAX frames; frame 0 first */
	unsigned int frames;          /* in use */
	const struct leat_bpf_op *counted; /* where instructions are counted: the last one; NULL: none yet */
	/* compiled code's own */
	uint32_t insn;                /* the instruction that calls, where what is called asks for it */
	void *unwind;                 /* machine stack to go back to after a trap */
	uint64_t packet;              /* address of the packet */
	uint64_t room[4];             /* places at which a packet access of 1, 2, 4, 8 bytes may begin, from packet on */
};

/**
 * A helper function. Arguments are r1..r5; the verifier has checked their kinds by the helper's row, and memory
 * arguments are checked against their region by the engine before the call. *worker*.
 */
typedef uint64_t leat_bpf_helper_fn(struct leat_bpf_run *run, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
				    uint64_t a5);

/** Kinds of argument, after the kernel's documentation of bpf-helpers(7). */
enum leat_bpf_arg {
	LEAT_BPF_ARG_NONE,
	LEAT_BPF_ARG_ANY,          /* a number or whatever */
	LEAT_BPF_ARG_CTX,
	LEAT_BPF_ARG_MAP,          /* a map pointer, proven; at run time its struct leat_bpf_map */
	LEAT_BPF_ARG_MAP_KEY,      /* key_size readable bytes */
	LEAT_BPF_ARG_MAP_VALUE,    /* value_size readable bytes */
	LEAT_BPF_ARG_U32_INOUT,    /* 4 bytes, read and written */
	LEAT_BPF_ARG_MEM,          /* readable bytes, as many as the next argument says */
	LEAT_BPF_ARG_MEM_OR_NULL,
	LEAT_BPF_ARG_MEM_OUT,      /* writable bytes, as many as the next argument says */
	LEAT_BPF_ARG_SIZE,         /* > 0 */
	LEAT_BPF_ARG_SIZE_OR_ZERO,
	LEAT_BPF_ARG_RECORD,       /* a reserved record, proven; is released */
	LEAT_BPF_ARG_FUNC,         /* a callback */
	LEAT_BPF_ARG_STACK_OR_NULL, /* callback context */
	LEAT_BPF_ARG_LOCK          /* the spin lock of a map value, proven */
};

static inline bool leat_bpf_arg_is_memory(uint8_t arg)
{
	return arg >= LEAT_BPF_ARG_MAP_KEY && arg <= LEAT_BPF_ARG_MEM_OUT;
}

/** Of memory: whether the next argument says how much it is. */
static inline bool leat_bpf_arg_is_sized(uint8_t arg)
{
	return arg >= LEAT_BPF_ARG_MEM;
}

static inline bool leat_bpf_arg_is_written(uint8_t arg)
{
	return arg == LEAT_BPF_ARG_MEM_OUT || arg == LEAT_BPF_ARG_U32_INOUT;
}

/** Of memory that is not sized: how many bytes it is, of a map with keys and values of those sizes. */
static inline uint32_t leat_bpf_arg_bytes(uint8_t arg, uint32_t key_size, uint32_t value_size)
{
	return arg == LEAT_BPF_ARG_MAP_KEY ? key_size : arg == LEAT_BPF_ARG_MAP_VALUE ? value_size : 4;
}

enum leat_bpf_ret {
	LEAT_BPF_RET_NUMBER,
	LEAT_BPF_RET_MAP_VALUE_OR_NULL,
	LEAT_BPF_RET_RECORD_OR_NULL,
	LEAT_BPF_RET_NEVER, /* tail_call: returns only when it failed */
};

#define LEAT_BPF_HELPER_MOVES_PACKET 0x1u /* packet pointers are void after it */
#define LEAT_BPF_HELPER_WRITES_PACKET 0x4u
#define LEAT_BPF_HELPER_TAIL_CALL 0x2u    /* the engine itself carries it out */
#define LEAT_BPF_HELPER_TRAPS 0x8u        /* may set run->trap: engines look after the call */

struct leat_bpf_helper {
	int32_t id; /* BPF_FUNC_* */
	const char *name;
	leat_bpf_helper_fn *fn;
	uint8_t ret;    /* enum leat_bpf_ret */
	uint8_t arg[5]; /* enum leat_bpf_arg */
	uint8_t flags;  /* LEAT_BPF_HELPER_* */
};

/** Discards the records and gives back the lock that a run still holds: after a trap, and at its end. *worker*. */
void leat_bpf_run_release(struct leat_bpf_run *run);

/** The row of a helper, or NULL. src/bpf/helpers.c has those that know no port. */
const struct leat_bpf_helper *leat_bpf_helper_find(int32_t id);
/** Adds rows from a higher room (redirect, from src/xdp); @helpers stays valid for ever and ends with a NULL name. */
void leat_bpf_helper_register(const struct leat_bpf_helper *helpers);

#endif
