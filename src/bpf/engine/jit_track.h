/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_track.h: what a compiler knows of registers as it goes along, so that it leaves out tests whose outcome is clear.
 *
 * It follows straight code only: where paths meet, everything is forgotten. It relies on registers, which are private,
 * and on values of frozen maps, which nobody changes; never on memory that was read.
 */
#ifndef LEAT_BPF_JIT_TRACK_H
#define LEAT_BPF_JIT_TRACK_H

#include "bpf/engine/interp.h"
#include "bpf/map/map.h"

/* Marks of operations. */
#define LEAT_TRACK_LABEL 0x1u  /* paths meet here */
#define LEAT_TRACK_FUNC 0x2u   /* a function begins here */
#define LEAT_TRACK_SECOND 0x4u /* second half of a 64-bit load */
#define LEAT_TRACK_INLINED 0x8u /* a look-up that needs neither a call nor r1 */

enum leat_track_kind {
	LEAT_TRACK_UNKNOWN,
	LEAT_TRACK_NUMBER,        /* value */
	LEAT_TRACK_FRAME,         /* r10 + value */
	LEAT_TRACK_MAP,           /* the map @map */
	LEAT_TRACK_GLOBAL,        /* byte @value of the only value of @map */
	LEAT_TRACK_VALUE,         /* byte @value of a value of @map, or of a map like the template @map */
	LEAT_TRACK_VALUE_OR_NULL, /* the result of look-up number @value */
};

struct leat_track_reg {
	uint8_t kind;
	uint16_t map;
	int64_t value;
	int32_t low, high; /* [register + low, register + high) was found to lie in the packet; low == high: nothing */
};

struct leat_track {
	struct leat_track_reg reg[MAX_BPF_REG];
};

/** Forgets everything but r10. */
void leat_track_reset(struct leat_track *t);
/** What is known after operation @i, which is no jump that was taken. */
void leat_track_step(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op);
/** Whether an access through @reg by operation @i is certain to be within its region. */
bool leat_track_access(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int reg,
		       bool write);
/** Whether @size bytes at @reg are certainly good for argument kind @arg of the helper called by @i. */
bool leat_track_arg(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int reg,
		    uint64_t size, uint8_t arg);
/** An access through @reg by operation @i was found to lie in the packet. */
void leat_track_in_packet(struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, unsigned int reg);
/** Whether the load @i gives a number that is known: from a value that nobody can write. */
bool leat_track_folds(const struct leat_track *t, const struct leat_bpf_prog *prog, uint32_t i, int op,
		      uint64_t *value);

#endif
