/* SPDX-License-Identifier: BSD-3-Clause */
/* prog.h: objects and programs, for this room. */
#ifndef LEAT_BPF_PROG_H
#define LEAT_BPF_PROG_H

#include <leat/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>

#include "bpf/contract.h"
#include "bpf/image.h"

struct leat_bpf_op;   /* a decoded instruction: engine/interp.h */
struct leat_bpf_count;
struct leat_bpf_code; /* machine code: engine/jit.h */

/** A place at which a program was ended. */
struct leat_bpf_trap_count {
	uint64_t n[LEAT_BPF_TRAP_REASONS]; /* atomic */
};

/** Bytes of what the kernel said. */
#define LEAT_BPF_KERNEL_WORDS 256u

struct leat_bpf_prog {
	struct leat_bpf_object *obj;
	const char *name, *section;         /* in the image */
	uint32_t number;                    /* in its object */
	uint32_t flags;                     /* LEAT_IMAGE_PROG_* */
	uint32_t run_prio, chain_actions;
	const struct bpf_insn *insn;        /* in the image */
	uint32_t n_insns;
	const struct leat_image_line *line; /* in the image, by instruction */
	uint32_t n_lines;
	/* after verification */
	uint32_t walked, stack;             /* see struct leat_bpf_check */
	uint64_t longest, verify_ns;
	bool writes_packet;
	uint8_t kernel;                     /* enum leat_bpf_kernel_answer */
	char kernel_words[LEAT_BPF_KERNEL_WORDS];
	/* after load */
	bool loaded;
	struct leat_bpf_aux *aux;           /* per instruction */
	struct leat_bpf_op *op;             /* what the interpreter runs */
	uint32_t n_ops;
	struct leat_bpf_code *code;         /* NULL: the interpreter runs it */
	struct leat_bpf_trap_count *trap;   /* per instruction */
	struct leat_bpf_count *count;       /* per instruction (engine/interp.h); NULL: they are not counted */
};

struct leat_bpf_object {
	struct leat_bpf_env *env;
	uint8_t *image;                     /* our copy, checked; .data parts may be overridden before load */
	const struct leat_image_header *head;
	struct leat_bpf_prog *prog;         /* n_progs of them */
	uint32_t n_progs;
	struct leat_bpf_map *map;           /* n_maps of the image, then places for maps that are made later */
	uint32_t n_maps;
	uint32_t n_later;                   /* such places that were ever used (atomic) */
	uint32_t max_later;
	struct leat_bpf_map *going, *free_place; /* made later: those without holders; places that are free again */
	pthread_mutex_t nested_lock;        /* entries of maps of maps, maps that are made later */
	struct leat_btf *btf;               /* NULL: the object has none */
	bool loaded;
	bool strict;                        /* no guards */
};

/** How many places of obj->map may hold a map that is made: those of the image, then those made later. *any*. */
static inline uint32_t leat_bpf_object_maps(const struct leat_bpf_object *obj)
{
	return obj->n_maps + __atomic_load_n(&obj->n_later, __ATOMIC_ACQUIRE);
}

/** Checks an image as a whole. Returns 0, or -EINVAL with a sentence in @diag. */
int leat_image_check(const void *image, size_t len, struct leat_diag *diag);
/** A string of a checked image. */
const char *leat_image_string(const struct leat_image_header *head, uint32_t off);

/** Starts leat-load on @path and takes the image from it (free with leat_heap_free). */
int leat_bpf_loader_run(const char *path, const struct leat_bpf_object_opts *opts, struct leat_diag *diag,
			void **image, size_t *len);

/**
 * Verifies one program: fills prog->aux. Returns 0, or -EINVAL (-EOPNOTSUPP for what we do not have) with one mistake in
 * @diag: "PROG: instruction N (file.c:12: text): sentence".
 */
int leat_bpf_verify(struct leat_bpf_prog *prog, struct leat_diag *diag);

/** Decodes a verified program for the interpreter. Returns 0 or -ENOMEM. */
int leat_bpf_interp_prepare(struct leat_bpf_prog *prog);
/** Runs it; returns r0, LEAT_XDP_ABORTED after a trap. */
uint64_t leat_bpf_interp_run(struct leat_bpf_run *run);
/**
 * Compiles the loaded programs of an object, if its environment wants that and it can be done. Returns 0; -ENOMEM;
 * another errno with a sentence in @diag when the compiler was asked for and cannot be had. *control*.
 */
int leat_bpf_engine_choose(struct leat_bpf_object *obj, struct leat_diag *diag);
/** Runs a program on the engine that was chosen; as leat_bpf_interp_run(). */
uint64_t leat_bpf_engine_run(struct leat_bpf_run *run);
/** Gives up what the engines hold of a program. */
void leat_bpf_engine_free(struct leat_bpf_prog *prog);
/** Counts a trap at instruction @insn of run->prog and sets run->trap. */
void leat_bpf_trap(struct leat_bpf_run *run, uint32_t insn, enum leat_bpf_trap_reason reason);
/** The source line of an instruction, NULL: unknown. */
const struct leat_image_line *leat_bpf_prog_line(const struct leat_bpf_prog *prog, uint32_t insn);
/** "file.c:12: text" of an instruction into @buf, or an empty string. */
void leat_bpf_prog_source(const struct leat_bpf_prog *prog, uint32_t insn, char *buf, size_t size);

#endif
