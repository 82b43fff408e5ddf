/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_btf.c: libbpf 1.1 believes the BTF of an object: a type number that leads nowhere ends the process. So it gets
 * only what the library's reader would take. Compiled apart from the rest of leat-load, because two headers are called
 * bpf/btf.h.
 */
#include "check_btf.h"

#include <errno.h>
#include <stdio.h>

#include "bpf/btf/btf.h"

int load_check_btf(const void *bytes, size_t len, char *why, size_t size)
{
	struct leat_diag *diag = leat_diag_create();
	const struct leat_diag_entry *entry;
	struct leat_btf *btf = NULL;
	int err = diag ? leat_btf_create(bytes, len, diag, &btf) : -ENOMEM;

	entry = leat_diag_get(diag, 0);
	snprintf(why, size, "%s", entry ? entry->message : "its BTF is damaged");
	leat_btf_destroy(btf);
	leat_diag_destroy(diag);
	return err;
}
