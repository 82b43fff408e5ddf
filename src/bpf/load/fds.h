/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fds.h: the descriptors that leat-load is started with.
 *
 * What it has to say goes to LEAT_LOAD_SAY, one sentence a line. It ends with 0 when the image is written, with 1 when
 * it said why there is none.
 */
#ifndef LEAT_BPF_LOAD_FDS_H
#define LEAT_BPF_LOAD_FDS_H

#define LEAT_LOAD_OBJECT 3 /* the ELF file, at its start */
#define LEAT_LOAD_IMAGE 4  /* an empty memfd */
#define LEAT_LOAD_SAY 5    /* a pipe */
#define LEAT_LOAD_BTF 6    /* the BTF of a kernel; /dev/null: there is none */
#define LEAT_LOAD_FDS_END 7

#endif
