/* SPDX-License-Identifier: BSD-3-Clause */
/* object.h: what the files of an object's life share. */
#ifndef LEAT_BPF_OBJECT_H
#define LEAT_BPF_OBJECT_H

#include "bpf/map/map.h"
#include "bpf/prog.h"

/** Definition of the @idx-th map in the image. */
static inline const struct leat_image_map *leat_object_image_map(const struct leat_bpf_object *obj, uint32_t idx)
{
	const void *maps = obj->image + obj->head->maps.off;

	return (const struct leat_image_map *)maps + idx;
}

/** Ends what leat_bpf_object_load() has made, all or a part of it. */
void leat_object_unload(struct leat_bpf_object *obj);

#endif
