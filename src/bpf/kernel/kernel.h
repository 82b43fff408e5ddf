/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h: the programs of a loaded object in the running kernel as well, beside leat's: for comparing. They are
 * attached to nothing. Their maps are copies: what leat's maps hold when they are made. By bpf(2) itself; a process needs
 * CAP_BPF and CAP_NET_ADMIN. *control*.
 */
#ifndef LEAT_BPF_KERNEL_H
#define LEAT_BPF_KERNEL_H

#include <leat/bpf.h>
#include <linux/bpf.h>

struct leat_kernel {
	struct leat_bpf_object *obj;
	int *map;  /* descriptors by number; -1: none */
	int *prog;
	int empty; /* a program that does nothing but pass */
	unsigned int cpus; /* copies of a per-CPU value */
};

/**
 * Offers every loaded program of @obj to the kernel. Returns 0; -EPERM when this process may not; another negative errno
 * when the kernel refuses, with a sentence in @diag, the last of its verifier's where it has one. NULL @kernel then.
 */
int leat_kernel_open(struct leat_bpf_object *obj, struct leat_diag *diag, struct leat_kernel **kernel);
/** NULL allowed. */
void leat_kernel_close(struct leat_kernel *kernel);

/** A test run. */
struct leat_kernel_test {
	const void *in;     /* the packet */
	uint32_t in_len;    /* 14 to about 3500 bytes */
	void *out;          /* what the program left; NULL: not wanted */
	uint32_t out_len;   /* its room, then its length */
	uint32_t repeat;    /* each run has what the one before left of the packet */
	uint32_t verdict;   /* of the last one */
	uint32_t ns;        /* of one, on average */
};
/** Runs @prog (NULL: the one that does nothing). Returns 0 or a negative errno. */
int leat_kernel_test(const struct leat_kernel *kernel, const struct leat_bpf_prog *prog, struct leat_kernel_test *test);

/* ---- copy.c ---- */

/** bpf(2); returns a descriptor, 0, or a negative errno. */
int leat_kernel_bpf(int cmd, union bpf_attr *attr);
/** Makes the copy of map @number and gives it the same contents, but for programs. Returns 0 or a negative errno. */
int leat_kernel_copy_map(struct leat_kernel *kernel, uint32_t number);
/** Gives the copy of a program array its programs, which are loaded by now. Returns as above. */
int leat_kernel_copy_progs(struct leat_kernel *kernel, uint32_t number);

#endif
