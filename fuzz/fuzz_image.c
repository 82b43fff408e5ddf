/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_image.c: any bytes as an image: checked, opened, looked at everywhere, closed. */
#include <leat/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/prog.h"
#include "fuzz.h"

static void look_at_progs(struct leat_bpf_object *obj)
{
	const struct leat_bpf_prog *prog;
	char source[64];
	unsigned int i;
	uint32_t n;

	for (i = 0; (prog = leat_bpf_object_prog_get(obj, i)); i++)
		for (n = 0; n < leat_bpf_prog_len(prog); n++)
			leat_bpf_prog_source(prog, n, source, sizeof(source));
}

static void look_at_maps(struct leat_bpf_object *obj)
{
	struct leat_bpf_map_info info;
	struct leat_bpf_map *map;
	unsigned int i;

	for (i = 0; (map = leat_bpf_object_map_get(obj, i)); i++) {
		leat_bpf_map_info(map, &info);
		leat_bpf_object_resize(obj, info.name, i + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct leat_bpf_env *env;
	struct leat_bpf_object *obj;
	struct leat_diag *diag;

	if (!env && leat_bpf_env_create(NULL, &env))
		abort();
	diag = leat_diag_create();
	if (!leat_bpf_object_open_image(env, data, size, diag, &obj)) {
		look_at_progs(obj);
		look_at_maps(obj);
		leat_bpf_object_set(obj, "limit", "7", diag);
		leat_bpf_object_close(obj);
	} else if (!leat_diag_count(diag)) {
		abort(); /* refused without a word */
	}
	leat_diag_destroy(diag);
	return 0;
}
