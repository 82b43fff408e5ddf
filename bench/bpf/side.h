/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * side.h: who runs the bench's programs: leat's compiler and interpreter, the same programs compiled for the machine by
 * clang, the kernel, and DPDK's library. Each side works on a packet of its own, again and again.
 */
#ifndef LEAT_BENCH_BPF_SIDE_H
#define LEAT_BENCH_BPF_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

enum bench_program {
#define BENCH_PROGRAM(name, about) PROGRAM_##name,
	BENCH_PROGRAMS
#undef BENCH_PROGRAM
	N_PROGRAMS
};

enum bench_map {
#define BENCH_MAP(name) MAP_##name,
	BENCH_MAPS
#undef BENCH_MAP
	N_MAPS
};

extern const char *const bench_program_name[N_PROGRAMS];
extern const char *const bench_map_name[N_MAPS];

struct side {
	const char *name;
	/** Loads the programs and fills the maps. Returns 0, or a negative errno with a sentence in @why. */
	int (*open)(struct side *side, char *why, size_t size);
	void (*close)(struct side *side);
	/** Whether it accepts a program; NULL: all of them. */
	bool (*has)(struct side *side, enum bench_program program);
	/** Runs a program @n times on the side's packet; returns the last verdict. */
	uint32_t (*run)(struct side *side, enum bench_program program, uint64_t n);
	/** Bytes of machine code of a program; 0: it has none, or it is not known. */
	unsigned int (*code_size)(struct side *side, enum bench_program program);
	uint8_t *packet; /* PACKET_LEN bytes */
	void *priv;
};

extern const struct side leat_jit_side, leat_interp_side, native_side, kernel_side, rte_side;

/** Sets one element of a map on some side. Returns 0 or a negative errno. */
typedef int set_fn(void *arg, enum bench_map map, const void *key, const void *value);
/** Gives @set what the maps hold, the same on every side. Returns 0 or what @set returned. */
int bench_fill_maps(set_fn *set, void *arg);
/** Writes the packet as it is before the first run. */
void bench_make_packet(uint8_t *packet);

/** The object file, as clang made it. */
extern const uint8_t bench_programs_object[], bench_programs_object_end[];
/** A program of some 3,000 instructions, and one for DPDK. */
extern const uint8_t bench_long_object[], bench_long_object_end[];
extern const uint8_t bench_rte_object[], bench_rte_object_end[];
/** A name under which @object can be opened, which is valid until the descriptor (returned; or a negative errno) closes. */
int bench_object_file(const uint8_t *object, const uint8_t *end, char *path, size_t size);

#endif
