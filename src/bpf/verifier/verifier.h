/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verifier.h: what the parts of the verifier share. verifier.c has the theory of operation.
 */
#ifndef LEAT_BPF_VERIFIER_H
#define LEAT_BPF_VERIFIER_H

#include "bpf/insn.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"
#include "bpf/verifier/range.h"

#define LEAT_VERIFY_BUDGET 1000000u     /* instructions walked */
#define LEAT_VERIFY_TRY 500u            /* ... at least, by a walk that forgets */
#define LEAT_VERIFY_TRIES 6u            /* such walks */
#define LEAT_VERIFY_HASTE 100000u       /* ... after which proofs are given up to come to an end */
#define LEAT_VERIFY_PENDING 8192u       /* branches still to be followed */
#define LEAT_VERIFY_SEEN 256u           /* states remembered for one instruction */
#define LEAT_VERIFY_WIDEN 200u          /* states alike but for numbers after which those that differ are forgotten */
#define LEAT_VERIFY_WIDEN_SOON 4u       /* ... or of both, by a walk that forgets */
#define LEAT_VERIFY_WIDEN_MORE 240u     /* ... but for numbers and places of pointers after which those are, too */
#define LEAT_VERIFY_MEMORY (256u << 20) /* bytes for remembered states */
#define LEAT_VERIFY_COMPARED (1u << 26) /* registers and slots looked at in them: a second or two */
#define LEAT_VERIFY_FAR 0xffff          /* a packet pointer that may lie further on proves nothing */

#define LEAT_SLOTS (LEAT_BPF_STACK_SIZE / 8u)

/** What a register or a stack slot holds. say.c has the words. */
enum leat_kind {
	LEAT_KIND_UNSET,
	LEAT_KIND_NUMBER,
	LEAT_KIND_CTX,
	LEAT_KIND_PACKET,
	LEAT_KIND_META,
	LEAT_KIND_END,
	LEAT_KIND_STACK,
	LEAT_KIND_MAP,
	LEAT_KIND_MAP_OR_NULL, /* out of a map of maps: like its template */
	LEAT_KIND_VALUE,
	LEAT_KIND_VALUE_OR_NULL,
	LEAT_KIND_RECORD,
	LEAT_KIND_RECORD_OR_NULL,
	LEAT_KIND_FUNC,
	LEAT_KIND_KEY,      /* of an element, lent to the callback whose frame it names */
	LEAT_KIND_STALE,    /* a packet pointer from before the packet was moved */
	LEAT_KIND_RELEASED, /* a record that was submitted */
	LEAT_KINDS
};

/**
 * A pointer lies value + range bytes from where its region begins; range is 0 when it is known where. Packet and
 * metadata pointers of one base have the same unknown part, whatever it is: what is proven for one is for all.
 */
struct leat_vreg {
	uint8_t kind;
	uint8_t frame; /* STACK, KEY: whose */
	uint8_t map;   /* MAP, VALUE, KEY: number; of inner maps the template's */
	bool known : 1;   /* value is all there is to know */
	bool exposed : 1; /* a slot: a write to a place unknown may have gone here since (memory.c) */
	uint32_t id;   /* ..._OR_NULL, NUMBER: copies of one result; RECORD, VALUE with a lock: which */
	uint32_t base; /* PACKET, META: whose unknown part; 0: there is none */
	uint32_t room; /* PACKET, META: bytes after the unknown part that are there for certain; RECORD: its size */
	int64_t value; /* NUMBER that is known: itself; pointers: distance; FUNC: its instruction */
	struct leat_range range; /* NUMBER: itself; pointers: the unknown part of the distance */
};
LEAT_STATIC_ASSERT(sizeof(struct leat_vreg) == 72, "is compared as memory: no holes");

struct leat_vframe {
	struct leat_vreg reg[MAX_BPF_REG];
	struct leat_vreg slot[LEAT_SLOTS];
	uint64_t spilled; /* slots that hold something other than an unknown number */
	uint32_t call;    /* the call that it goes back to */
	bool callback;
	uint8_t n_refs; /* at entry of a callback */
};

struct leat_vstate {
	uint32_t pc;
	uint32_t n_frames;
	uint32_t n_refs;
	uint32_t lock;    /* number of the map whose value's lock is held, plus 1; 0: none is */
	uint32_t lock_id; /* id of that value; 0 in a map of one value that was not looked up */
	uint32_t room[2]; /* bytes of packet, of metadata that are there for certain */
	uint32_t ref[LEAT_BPF_RECORDS_MAX];            /* ids of reserved records */
	struct leat_vframe frame[LEAT_BPF_FRAMES_MAX]; /* n_frames of them */
};

/** A state that was walked from; the registers that matter follow. */
struct leat_vseen {
	struct leat_vseen *next;
	uint32_t n_frames, n_refs, n_regs;
	uint32_t lock, lock_id;
	uint32_t room[2];
	uint32_t call[LEAT_BPF_FRAMES_MAX];
	uint32_t ref[LEAT_BPF_RECORDS_MAX];
	uint64_t spilled[LEAT_BPF_FRAMES_MAX];
	struct leat_vreg reg[];
};

/* Marks of instructions. */
#define LEAT_MARK_SECOND 0x01u /* second half of a 64-bit load */
#define LEAT_MARK_TARGET 0x02u /* paths meet here */
#define LEAT_MARK_FUNC 0x04u   /* a function begins */
#define LEAT_MARK_CTX 0x08u    /* was seen to access the context */
#define LEAT_MARK_STACK 0x10u  /* ... the stack */
#define LEAT_MARK_OTHER 0x20u  /* ... something else */
#define LEAT_MARK_MAP 0x80u    /* a helper was seen to be called with a map */
#define LEAT_MARK_LOOP 0x100u  /* a loop comes back to here */
#define LEAT_MARKS_OF_STRUCTURE (LEAT_MARK_SECOND | LEAT_MARK_TARGET | LEAT_MARK_FUNC | LEAT_MARK_LOOP)
#define LEAT_MARK_BLUNT 0x40u /* a write that may reach the stack on one path and not on another: numbers are dropped */

/** How much is known of numbers where paths meet: demand.c. */
enum leat_precision {
	LEAT_VERIFY_COARSE,   /* nothing but zeros */
	LEAT_VERIFY_MERGED,   /* what proofs need, of all paths that met there together */
	LEAT_VERIFY_DEMANDED, /* what proofs need */
	LEAT_VERIFY_ALL
};

/** What proofs need from an instruction on. */
struct leat_demand {
	uint16_t regs;  /* numbers in registers */
	uint32_t room;  /* bytes of packet that must be known to be there already */
	uint64_t slots; /* numbers on the stack */
	uint64_t read;  /* slots whose pointers are read */
};

/** What walks saw an instruction need, and give. */
struct leat_lesson {
	uint16_t regs;     /* numbers in registers */
	uint32_t room;     /* bytes of packet, from where a pointer's base is */
	uint64_t read;     /* slots of the function's own frame, by another pointer than r10 */
	uint32_t gives[2]; /* a jump, not taken and taken: bytes that are known to be there, then; on every path */
};

struct leat_verifier {
	struct leat_bpf_prog *prog;
	struct leat_diag *diag;
	int16_t *op;     /* row of each instruction */
	uint16_t *mark;  /* LEAT_MARK_* */
	uint8_t *guard;  /* an access was not proven on some path */
	uint16_t *live;  /* registers that are read before they are written, from each instruction on */
	struct leat_lesson *lesson; /* of each instruction */
	bool learned;               /* there is something new in them */
	bool lends;                 /* a function reads slots of one that called it */
	struct leat_demand *demand; /* by instruction */
	enum leat_precision precision;
	uint32_t *func;  /* first instruction of the function it is in */
	uint32_t *order; /* n_order instructions, each after those that it leads to (loops apart) */
	uint32_t n_order;
	uint16_t *depth; /* by first instruction of a function: bytes of stack */
	uint64_t *needed; /* ... slots that were exposed and are read all the same */
	uint64_t *keep_above; /* by write: slots of callers' frames that held pointers; aux.keep: of its own frame */
	struct leat_vseen **seen;
	uint16_t *n_seen;
	size_t memory;
	struct leat_vstate **pending;
	uint32_t n_pending;
	uint32_t walked, budget; /* by this walk; at most */
	uint64_t compared;
	uint32_t next_id;
	uint32_t proof;            /* bytes of packet that the jump at hand has proven */
	bool forgot;               /* this walk has widened a state */
	bool again;                /* something was learned that the walk should have known before */
	struct leat_vstate *state; /* where we are */
};

static inline struct leat_vframe *leat_vframe(struct leat_verifier *v)
{
	return &v->state->frame[v->state->n_frames - 1];
}

static inline const struct bpf_insn *leat_vinsn(const struct leat_verifier *v)
{
	return &v->prog->insn[v->state->pc];
}

/** A number of which @range is known. */
static inline struct leat_vreg leat_vrange(struct leat_range range)
{
	struct leat_vreg reg = { .kind = LEAT_KIND_NUMBER, .known = leat_range_is_const(&range), .range = range };

	if (reg.known)
		reg.value = (int64_t)range.umin;
	return reg;
}

static inline struct leat_vreg leat_vnumber(void)
{
	return leat_vrange(leat_range_any(64));
}

static inline struct leat_vreg leat_vconst(int64_t value)
{
	return leat_vrange(leat_range_const((uint64_t)value, 64));
}

/** What a load of @size bytes that are zero-extended gives. */
static inline struct leat_vreg leat_vloaded(uint32_t size)
{
	return leat_vrange(leat_range_zero_extend(leat_range_any(size * 8), size * 8, 64));
}

/** Whether nothing at all is known of it but that it is a number. */
static inline bool leat_vunknown(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_NUMBER && reg->range.mask == UINT64_MAX && reg->range.umax == UINT64_MAX &&
	       !reg->range.umin && reg->range.smin == INT64_MIN && reg->range.smax == INT64_MAX;
}

static inline bool leat_vmaybe_null(const struct leat_vreg *reg)
{
	return reg->kind == LEAT_KIND_MAP_OR_NULL || reg->kind == LEAT_KIND_VALUE_OR_NULL ||
	       reg->kind == LEAT_KIND_RECORD_OR_NULL;
}

static inline bool leat_vpointer(const struct leat_vreg *reg)
{
	return reg->kind > LEAT_KIND_NUMBER;
}

/* ---- say.c ---- */

/** Refuses: one sentence about instruction @pc; registers in @regs (a mask) are described. Returns -EINVAL. */
int leat_verify_refuse(struct leat_verifier *v, uint32_t pc, unsigned int regs, const char *fmt, ...) LEAT_PRINTF(4, 5);
/** "a number", "a pointer into the packet" ... */
const char *leat_kind_name(uint8_t kind);

/* ---- structure.c ---- */

/** Checks what needs no types; fills op, mark, live, func. */
int leat_verify_structure(struct leat_verifier *v);
/** Whether instruction @pc calls a function, or names one that is called back; *@target: which. */
bool leat_verify_calls(const struct leat_verifier *v, uint32_t pc, uint32_t *target);
/** After the walk: the stack that tail calls leave. */
int leat_verify_tail_stack(struct leat_verifier *v);

/* ---- loops.c ---- */

/** Marks where loops begin (LEAT_MARK_LOOP). */
int leat_verify_loops(struct leat_verifier *v);
/** Where instruction @pc may lead to within its function, @number 0 or 1; false: not that way. */
bool leat_verify_way(const struct leat_verifier *v, uint32_t pc, unsigned int number, uint32_t *target);
/** After the walk: how long paths and how deep stacks can be. */
int leat_verify_measure(struct leat_verifier *v);

/* ---- state.c ---- */

/** Puts the state aside, to be followed from @pc on. */
int leat_verify_push(struct leat_verifier *v, uint32_t pc);
/** Whether a state like this one was walked from already; if not, remembers it (and may forget numbers in it). */
int leat_verify_covered(struct leat_verifier *v, bool *covered);
void leat_verify_forget_seen(struct leat_verifier *v);
/** Calls @fn on every register and every spilled slot of the state; slots that became unknown numbers are let go. */
void leat_verify_each(struct leat_vstate *state, void (*fn)(struct leat_vreg *reg, void *arg), void *arg);
void leat_verify_set_slot(struct leat_vframe *frame, unsigned int slot, const struct leat_vreg *reg);

/* ---- demand.c ---- */

/** Notes that this instruction needs the numbers in @regs (a mask; pointers do not count). */
void leat_verify_need_numbers(struct leat_verifier *v, unsigned int regs);
/** Notes that it reads slot @slot of frame @number. */
void leat_verify_need_slot(struct leat_verifier *v, uint32_t number, unsigned int slot);
/** Notes that it needs @room bytes of packet after its pointer's base. */
void leat_verify_need_room(struct leat_verifier *v, uint64_t room);
/** Notes that the jump at @pc, taken or not, says that there are @room bytes; 0: it does not. */
void leat_verify_gives(struct leat_verifier *v, uint32_t pc, bool taken, uint32_t room);
/** Follows what was noted back through the program: fills demand. */
void leat_verify_find_demand(struct leat_verifier *v);
/** Forgets what no proof needs from here on, as far as the precision says so. */
void leat_verify_forget_unneeded(struct leat_verifier *v);

/* ---- alu.c ---- */

int leat_verify_alu(struct leat_verifier *v, int op);

/* ---- jump.c ---- */

/** Works out a conditional jump; pushes the state of the branch taken. *@next is where to go on; *@ended: nowhere. */
int leat_verify_jump(struct leat_verifier *v, int op, uint32_t *next, bool *ended);

/* ---- memory.c ---- */

int leat_verify_memory(struct leat_verifier *v, int op);
/** After the walk: which accesses are proven; writes keep away from those slots only that are read afterwards. */
void leat_verify_settle(struct leat_verifier *v);
/** Whether [off, off + size) of what @reg points to is there for certain. */
bool leat_verify_inside(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size);
/** Whether they, or some of them, may be the lock of a map's value. */
bool leat_verify_touches_lock(const struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size);
/** Notes that this instruction writes @size bytes (0: unknown) from @off of @reg on. */
void leat_verify_write(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off, uint64_t size);
/** Notes that the frame which @reg points into is used from @off of it on. */
void leat_verify_use_stack(struct leat_verifier *v, const struct leat_vreg *reg, int64_t off);
/** Whether @reg points to memory at all; refuses with a sentence that says what register @number cannot be. */
int leat_verify_readable(struct leat_verifier *v, unsigned int number, const char *what);

/* ---- call.c ---- */

int leat_verify_call(struct leat_verifier *v, int op, uint32_t *next);
/** *@ended: the path ends here. */
int leat_verify_exit(struct leat_verifier *v, uint32_t *next, bool *ended);

#endif
