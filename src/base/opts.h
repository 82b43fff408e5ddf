/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opts.h: options structs that may grow. A caller built against an older header passes a shorter struct, whose missing
 * members are zero; one built against a newer header may pass a longer one, whose unknown members must be zero.
 */
#ifndef LEAT_BASE_OPTS_H
#define LEAT_BASE_OPTS_H

#include <errno.h>
#include <leat/base.h>
#include <string.h>

/**
 * Copies the caller's @opts (NULL: all zero) into @own of @own_size bytes. The first member of both is size_t size.
 * Returns 0, -EINVAL when the size makes no sense, -E2BIG when an unknown member is not zero.
 */
static inline int leat_opts_copy(void *own, size_t own_size, const void *opts)
{
	size_t size, i;

	memset(own, 0, own_size);
	if (!opts)
		return 0;
	memcpy(&size, opts, sizeof(size));
	if (size < sizeof(size) || size > 4096)
		return -EINVAL;
	for (i = own_size; i < size; i++)
		if (((const uint8_t *)opts)[i])
			return -E2BIG;
	memcpy(own, opts, size < own_size ? size : own_size);
	return 0;
}

#endif
