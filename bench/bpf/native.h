/* SPDX-License-Identifier: BSD-3-Clause */
/* native.h: the bench's programs, compiled for the machine. */
#ifndef LEAT_BENCH_BPF_NATIVE_H
#define LEAT_BENCH_BPF_NATIVE_H

struct leat_bpf_map;

/** What such a program gets. */
struct native_packet {
	unsigned char *data, *data_end;
};

/** A map that it looks values up in. */
struct native_map {
	struct leat_bpf_map *map;
	void *(*lookup)(struct leat_bpf_map *map, const void *key, unsigned int cpu);
	void *base; /* of an array */
};

typedef int native_fn(struct native_packet *packet);

#endif
