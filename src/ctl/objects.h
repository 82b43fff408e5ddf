/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.h: the eBPF objects of a configuration, opened, tuned and loaded. See objects.c. */
#ifndef LEAT_CTL_OBJECTS_H
#define LEAT_CTL_OBJECTS_H

#include "ctl/config.h"

/** Sets the place of mistakes: "programs.NAME" or "programs.NAME.KEY" in the configuration. */
void leat_objects_at(struct leat_diag *diag, const struct leat_config *config, struct leat_yaml_pos pos,
		     const char *prog, const char *key);

/**
 * Opens an object file, looked for beside the configuration and where objects are installed. Mistakes stand at the
 * first program that names it.
 */
int leat_objects_open(const struct leat_config *config, unsigned int idx, struct leat_bpf_env *env,
		      struct leat_diag *diag, struct leat_bpf_object **obj);
/** Loads it. Mistakes stand at the first program that names the object. */
int leat_objects_load(const struct leat_config *config, unsigned int idx, struct leat_bpf_object *obj,
		      struct leat_diag *diag);
/** Before load: sets variables and sizes of maps as a program's entry says. Every mistake is added. */
int leat_objects_tune(const struct leat_config *config, const struct leat_config_prog *prog,
		      struct leat_bpf_object *obj, struct leat_diag *diag);
/** After load: writes the initial elements that a program's entry gives. Ports may be named. */
int leat_objects_fill(const struct leat_config *config, const struct leat_config_prog *prog,
		      struct leat_bpf_object *obj, struct leat_diag *diag);
/** After open: the program that an entry means, or NULL with a mistake in @diag. */
struct leat_bpf_prog *leat_objects_prog(const struct leat_config *config, const struct leat_config_prog *prog,
					struct leat_bpf_object *obj, struct leat_diag *diag);

#endif
