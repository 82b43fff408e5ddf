/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h: the parts of leat-load, the program that turns an ELF object into an image (image.h).
 *
 *   main.c         closes the process in, reads the object, writes the image
 *   object.c       the way of one object: fix-ups, libbpf, image
 *   bytes.c        bytes that grow
 *   elf_view.c     reading and changing ELF bytes, every access within bounds
 *   elf_fixup.c    what libbpf would refuse is put into its words
 *   check_btf.c    what libbpf must not see
 *   legacy_maps.c  definitions in SEC("maps") become definitions in BTF
 *   bpf_syscall.c  bpf(2) for libbpf: it records what the kernel would be given
 *   files.c        files for libbpf: none, or what stands in for them
 *   complain.c     libbpf's log as one sentence; places in the source
 *   run_config.c   libxdp's .xdp_run_config
 *   writer.c       the records as an image
 *
 * The process loads one object and ends, and reads hostile bytes in a sandbox; its memory is malloc's. One thread.
 */
#ifndef LEAT_BPF_LOAD_H
#define LEAT_BPF_LOAD_H

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <leat/base.h>
#include <linux/bpf.h>

#include "bpf/image.h"

/* ---- bytes that grow ---- */

struct load_bytes {
	uint8_t *p;
	size_t len, room;
	bool failed; /* memory was out at some time, or LEAT_IMAGE_SIZE_MAX reached: the content is void */
};

/** Appends @len bytes (NULL: zeroes). Returns their offset, 0 when that failed. */
size_t load_bytes_add(struct load_bytes *b, const void *data, size_t len);
/** Appends zeroes up to a multiple of @unit (a power of two). */
void load_bytes_align(struct load_bytes *b, size_t unit);
void load_bytes_fini(struct load_bytes *b);

/* ---- ELF ---- */

struct load_elf {
	struct load_bytes file; /* changed in place; what grows is appended */
	Elf64_Ehdr head;
	unsigned int n_syms, symtab; /* symtab: number of the section; 0: none */
};

/** Says what is wrong with the bytes as a BPF object; NULL: nothing so far. Fills @elf from file. */
const char *load_elf_open(struct load_elf *elf);
bool load_elf_section(const struct load_elf *elf, unsigned int idx, Elf64_Shdr *sh);
void load_elf_set_section(struct load_elf *elf, unsigned int idx, const Elf64_Shdr *sh);
/** The name, or "" where it has none within bounds. */
const char *load_elf_section_name(const struct load_elf *elf, const Elf64_Shdr *sh);
/** The content, NULL when it has none within bounds. */
uint8_t *load_elf_content(const struct load_elf *elf, const Elf64_Shdr *sh);
/** Number of the first section called @name, 0: none. */
unsigned int load_elf_find(const struct load_elf *elf, const char *name, Elf64_Shdr *sh);
bool load_elf_symbol(const struct load_elf *elf, unsigned int idx, Elf64_Sym *sym);
void load_elf_set_symbol(struct load_elf *elf, unsigned int idx, const Elf64_Sym *sym);
const char *load_elf_symbol_name(const struct load_elf *elf, const Elf64_Sym *sym);
/** Gives section @idx other bytes. */
void load_elf_replace(struct load_elf *elf, unsigned int idx, const void *data, size_t len);
/** Adds a section without flags. */
void load_elf_add_section(struct load_elf *elf, const char *name, const void *data, size_t len);
void load_elf_rename(struct load_elf *elf, unsigned int idx, const char *name);
/** Calls @fn for every relocation of section @target until it returns false. */
typedef bool load_rel_fn(void *arg, Elf64_Rel *rel, uint8_t *where);
void load_elf_each_rel(struct load_elf *elf, unsigned int target, load_rel_fn *fn, void *arg);

/* ---- what is recorded of bpf(2) ---- */

/** A map definition, as in MAP_CREATE. */
struct load_def {
	uint32_t type, key_size, value_size, max_entries, map_flags, btf_key, btf_value;
};

struct load_map {
	struct load_def def, inner; /* inner: where has_inner */
	bool has_inner, frozen;
	uint8_t *data;              /* initial value of an array's element 0; def.value_size bytes, or NULL */
	struct load_init {
		uint32_t index;
		int fd;             /* of a program or a map */
	} *inits;
	uint32_t n_inits;
};

struct load_prog {
	struct bpf_program *prog;
	const char *name;
	struct bpf_insn *insns;
	uint32_t n_insns;
	struct bpf_line_info *lines;
	uint32_t n_lines;
	uint32_t flags; /* BPF_F_XDP_HAS_FRAGS, which libbpf knows only as it loads */
	char log[64]; /* its address tells PROG_LOAD which program this is */
};

#define LOAD_FDS_MAX 2048

struct load {
	struct load_elf elf;
	int btf_fd;                      /* a kernel's BTF, -1: none */
	const void *own_btf;             /* the object's .BTF section */
	size_t own_btf_len;
	struct bpf_object *obj;
	struct load_prog *prog;          /* the XDP programs */
	uint32_t n_progs;
	struct load_map *map[LOAD_FDS_MAX]; /* by descriptor; NULL: no map */
	bool pinned[LEAT_IMAGE_MAPS_MAX]; /* asked for it, by number in libbpf's order */
	int spare_fd;                    /* what descriptors are copies of */
	char warning[512];               /* libbpf's first one, or its last words */
	bool warned;
	void (*say)(void *arg, const char *sentence);
	void *say_arg;
	unsigned int said;
};

/** The load that libbpf is working for; what answers it finds it here. */
extern struct load *load_current;

/** Frees what was recorded. */
void load_records_fini(struct load *load);

/* ---- steps ---- */

void load_say(struct load *load, const char *fmt, ...) LEAT_PRINTF(2, 3);

/** Returns 0 or a negative errno; what it has to say was said. */
int load_elf_fixup(struct load *load);
int load_legacy_maps(struct load *load);

/** For libbpf_set_print(). */
int load_print(enum libbpf_print_level level, const char *fmt, va_list args) LEAT_PRINTF(2, 0);
/** Says why libbpf gave up with @err. */
void load_complain(struct load *load, int err);
/** Writes "PROG: instruction N (file.c:12: text)" of the first use of a symbol, or an empty string. */
void load_place(struct load *load, const char *symbol, char *buf, size_t size);

struct load_run_config {
	uint32_t prio, actions;
};
void load_run_config(const struct btf *btf, const char *prog, struct load_run_config *config);

/** Makes the image. Returns 0 or a negative errno. */
int load_write(struct load *load, struct load_bytes *image);

/**
 * Loads the object in load->elf.file (say, say_arg and btf_fd set, the rest zero; **consumes** the file) and appends
 * its image to @image. Returns 0 or a negative errno, with something said.
 */
int load_object(struct load *load, struct load_bytes *image);

#endif
