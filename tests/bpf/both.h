/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * both.h: one object loaded twice, into the kernel (Debian's libbpf) and into leat, and a program run on both.
 *
 * One thread, pinned to one CPU, which is the CPU that leat's programs run as; leat's per-CPU values have as many
 * copies as the kernel's, up to its limit. The interface "leat0" of a network namespace of the process's own is the
 * port that exists; the namespace's routes are mirrored.
 */
#ifndef LEAT_TESTS_BPF_BOTH_H
#define LEAT_TESTS_BPF_BOTH_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <leat/bpf.h>
#include <leat/fib.h>

/** Frame of the kernel's test run: a page. */
#define BOTH_FRAME 4096u
#define BOTH_MAPS_MAX 64u
#define BOTH_PROGS_MAX 64u

/** Records that a ring gave, one after the other: length (4 bytes), bytes. */
struct both_records {
	uint8_t *bytes;
	size_t len, size;
};

struct both_map {
	struct bpf_map *kernel;
	struct leat_bpf_map *leat;
	struct leat_bpf_map_info info;
	const char *name; /* as leat calls it */
	int fd;
	int socket;       /* XSKMAP: what its entries are; -1: none */
	struct ring_buffer *ring;
	struct perf_buffer *perf;
	struct both_records kernel_records, leat_records;
};

struct both_prog {
	const char *name;
	struct bpf_program *kernel;
	struct leat_bpf_prog *leat;
	int fd;
};

/** What the process has once. */
struct both_world {
	unsigned int cpu;         /* this thread's */
	unsigned int kernel_cpus; /* copies of per-CPU values in the kernel */
	unsigned int cpus;        /* and in leat: as many, up to LEAT_BPF_CPUS_MAX */
	uint32_t ifindex;   /* leat0: four receive queues */
	const char *loader; /* path of leat-load; NULL: where it is looked for */
	unsigned int engine; /* enum leat_bpf_engine */
	struct leat_fib *fib; /* what leat's programs ask: the namespace's; NULL: none, where it cannot be mirrored */
	struct leat_fib_mirror *mirror;
	bool leat_only;      /* the kernel's side is opened, but not loaded */
};

struct both {
	struct bpf_object *kernel;
	struct leat_bpf_env *env;
	struct leat_bpf_object *leat;
	unsigned int n_maps, n_progs; /* maps: those that both have */
	struct both_map map[BOTH_MAPS_MAX];
	struct both_prog prog[BOTH_PROGS_MAX];
	uint64_t time; /* of leat's programs */
	char why_kernel[512], why_leat[512]; /* what the two said when they refused; empty: loaded */
};

/** Sets up namespace, interface and CPU. Returns 0, or why not in @why. */
int both_world_init(struct both_world *world, char *why, size_t size);
void both_world_fini(struct both_world *world);
/** At this moment no look-up runs: what the mirror has replaced may go. */
void both_world_quiescent(void);

/** An object's image, read once; then every both_open() is quick. */
struct both_image {
	const char *path;
	void *bytes; /* NULL: leat-load refused, or was not asked */
	size_t len;
	unsigned int opened; /* times; the first opens the file, later ones the image */
};

/**
 * Loads @image->path into both; only program @only unless it is NULL. What a side refuses it says in why_*. Returns 0,
 * or a negative errno when there is nothing to load (-ENOENT: no XDP program).
 */
int both_open(const struct both_world *world, struct both_image *image, const char *only, struct both *both);
void both_close(struct both *both);
/** Whether it is an XDP program; one in a section that was named before libbpf 1.0 ("xdp_icmp") is made one. */
bool both_is_xdp(struct bpf_program *prog);
void both_image_free(struct both_image *image);

/** A packet as it goes in, and as it comes out of one side. */
struct both_packet {
	uint32_t ifindex, queue;
	uint32_t meta; /* bytes of metadata, at the start of bytes */
	uint32_t len;  /* metadata included */
	uint8_t bytes[BOTH_FRAME];
};

/** Runs a program on one side; @packet is replaced by what it left. Returns 0 or a negative errno. */
int both_run_kernel(const struct both_prog *prog, struct both_packet *packet, uint32_t *verdict);
int both_run_leat(struct both *both, const struct both_prog *prog, unsigned int cpu, struct both_packet *packet,
		  uint32_t *verdict);

/** Takes what the rings of both sides hold. */
void both_consume(struct both *both);

#endif
