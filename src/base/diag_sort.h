/* SPDX-License-Identifier: BSD-3-Clause */
/* diag_sort.h: mistakes in the order in which a person reads the file. */
#ifndef LEAT_BASE_DIAG_SORT_H
#define LEAT_BASE_DIAG_SORT_H

#include <leat/diag.h>

/** Sorts the mistakes from the @first-th on by line and column; those of one place keep their order. */
void leat_diag_sort(struct leat_diag *diag, unsigned int first);

#endif
