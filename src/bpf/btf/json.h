/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h: JSON as people and other programs write it, numbers above 2^63 included. */
#ifndef LEAT_BPF_BTF_JSON_H
#define LEAT_BPF_BTF_JSON_H

#include <jansson.h>
#include <leat/diag.h>

/**
 * Reads one JSON value. Integers that jansson cannot hold become strings of their digits. Returns 0 (then json_decref()
 * it), -EINVAL with a sentence in @diag, or -ENOMEM.
 */
int leat_btf_json_load(const char *text, struct leat_diag *diag, json_t **json);

#endif
