/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks.h: the rows of the helpers that call functions of the program. */
#ifndef LEAT_BPF_HELPER_CALLBACKS_H
#define LEAT_BPF_HELPER_CALLBACKS_H

#include "bpf/contract.h"

extern const struct leat_bpf_helper leat_bpf_callback_helpers[];

#endif
