/* SPDX-License-Identifier: BSD-3-Clause */
/* datapath.h: what else of this room knows of a datapath beside <leat/datapath.h>. */
#ifndef LEAT_CTL_DATAPATH_H
#define LEAT_CTL_DATAPATH_H

#include <leat/datapath.h>

#include "ctl/config.h"

/** The configuration that it was made of; goes with it. */
const struct leat_config *leat_datapath_config(const struct leat_datapath *dp);
/** The program of an object that the @idx-th program is, or NULL: it is compiled in. */
struct leat_bpf_prog *leat_datapath_bpf_prog(const struct leat_datapath *dp, unsigned int idx);

#endif
