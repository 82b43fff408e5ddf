/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h: what leat-load writes and the library reads: one eBPF object, flat.
 *
 * Host byte order. All offsets are bytes from the start of the image and multiples of 8, all tables lie within it and
 * overlap neither the header nor each other; strings are offsets into one block of NUL-terminated text, whose last byte
 * is NUL (offset 0 is ""). The reader (image.c) checks every field before anything is used; a reader of another version
 * refuses.
 *
 * Instructions are as in RFC 9669, with these sources in a 64-bit immediate load: PSEUDO_MAP (imm: number of the map),
 * PSEUDO_MAP_VALUE (imm: number of the map, imm of the second half: offset), PSEUDO_FUNC (imm: distance to the
 * function); and calls with source PSEUDO_CALL (imm: distance).
 *
 * What only a kernel has stands by its name, so that the verifier can refuse it where it is reached: a call with source
 * PSEUDO_KFUNC_CALL (imm: the function's name, a string) and a 64-bit immediate load with source PSEUDO_BTF_ID (imm:
 * the variable's name, a string). A call of helper LEAT_IMAGE_POISON stands where CO-RE found no match in the kernel.
 */
#ifndef LEAT_BPF_IMAGE_H
#define LEAT_BPF_IMAGE_H

#include <leat/base.h>

#define LEAT_IMAGE_MAGIC UINT64_C(0x4c454154425046ff) /* changes with byte order */
#define LEAT_IMAGE_VERSION 1u

/* Bounds that the reader enforces. */
#define LEAT_IMAGE_SIZE_MAX (64u << 20)
#define LEAT_IMAGE_PROGS_MAX 256u
#define LEAT_IMAGE_MAPS_MAX 256u
#define LEAT_IMAGE_INSNS_MAX 1000000u

#define LEAT_IMAGE_POISON 0xbad2310

struct leat_image_table {
	uint32_t off;
	uint32_t n; /* elements; bytes where the elements are bytes */
};

struct leat_image_header {
	uint64_t magic;
	uint32_t version;
	uint32_t size; /* of the whole image */
	struct leat_image_table progs;   /* struct leat_image_prog */
	struct leat_image_table maps;    /* struct leat_image_map */
	struct leat_image_table insns;   /* struct bpf_insn, of all programs */
	struct leat_image_table lines;   /* struct leat_image_line, of all programs, by instruction */
	struct leat_image_table inits;   /* struct leat_image_init, of all maps */
	struct leat_image_table data;    /* bytes: initial contents of global data */
	struct leat_image_table strings; /* bytes */
	struct leat_image_table btf;     /* bytes: the object's BTF with sizes and offsets of its DATASECs, or none */
	uint32_t license;                /* string */
	uint32_t pad;
};

#define LEAT_IMAGE_PROG_FRAGS 0x1u  /* declares xdp.frags */
#define LEAT_IMAGE_PROG_DEVMAP 0x2u /* SEC("xdp/devmap"): runs on egress */
#define LEAT_IMAGE_PROG_CPUMAP 0x4u /* SEC("xdp/cpumap") */

struct leat_image_prog {
	uint32_t name, section; /* strings */
	uint32_t flags;         /* LEAT_IMAGE_PROG_* */
	uint32_t first_insn, n_insns;
	uint32_t first_line, n_lines;
	uint32_t run_prio;      /* .xdp_run_config; 50 without */
	uint32_t chain_actions; /* bit per action; bit LEAT_XDP_PASS without */
	uint32_t pad;
};

#define LEAT_IMAGE_MAP_INTERNAL 0x1u /* global data: .rodata, .data, .bss, .kconfig */
#define LEAT_IMAGE_MAP_FROZEN 0x2u   /* programs and control may not write it */
#define LEAT_IMAGE_MAP_PINNED 0x4u   /* asks for pinning by name; noted, not done */
#define LEAT_IMAGE_MAP_TEMPLATE 0x8u /* only says what inner maps look like; is not made. After all others */

struct leat_image_map {
	uint32_t name;        /* string: as in the object; ".rodata" for global data */
	uint32_t type;        /* enum bpf_map_type */
	uint32_t key_size, value_size, max_entries;
	uint32_t map_flags;   /* BPF_F_* */
	uint32_t flags;       /* LEAT_IMAGE_MAP_* */
	uint32_t btf_key, btf_value; /* type numbers in the BTF; 0: unknown. For global data btf_value is the DATASEC */
	uint32_t inner;       /* number of the map that is the template of inner maps, plus 1; 0: none */
	struct leat_image_table data;  /* initial contents (global data): off within the data table */
	struct leat_image_table inits; /* initial elements: off is the first one's number */
};

/** One initial element of a program array or a map of maps. */
struct leat_image_init {
	uint32_t index; /* key */
	uint32_t prog;  /* number of the program, plus 1; 0: none */
	uint32_t map;   /* number of the map, plus 1; 0: none */
	uint32_t pad;
};

/** Source line from one instruction of a program on. */
struct leat_image_line {
	uint32_t insn; /* number within the program */
	uint32_t file, text; /* strings */
	uint32_t line; /* from 1 */
};

#endif
