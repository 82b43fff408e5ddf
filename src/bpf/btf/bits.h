/* SPDX-License-Identifier: BSD-3-Clause */
/* bits.h: what writing and reading the text of values share: fields of bits, and where members stand. */
#ifndef LEAT_BPF_BTF_BITS_H
#define LEAT_BPF_BTF_BITS_H

#include "bpf/btf/impl.h"

/** @bits (1..64) from bit @off on, counted from the lowest bit of the first byte. */
static inline uint64_t leat_bits_read(const uint8_t *bytes, uint32_t off, uint32_t bits)
{
	uint64_t value = 0;
	uint32_t i;

	for (i = 0; i < bits; i++)
		value |= (uint64_t)(bytes[(off + i) / 8] >> (off + i) % 8 & 1) << i;
	return value;
}

static inline void leat_bits_write(uint8_t *bytes, uint32_t off, uint32_t bits, uint64_t value)
{
	uint32_t i, bit;

	for (i = 0; i < bits; i++) {
		bit = 1u << (off + i) % 8;
		bytes[(off + i) / 8] = (uint8_t)((bytes[(off + i) / 8] & ~bit) | (value >> i & 1 ? bit : 0));
	}
}

/** Sign of a number of @bits (1..64). */
static inline uint64_t leat_bits_extend(uint64_t value, uint32_t bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1) % 64;

	return (value ^ sign) - sign;
}

/** Where a member of a struct at @bytes stands. */
static inline void leat_btf_place_member(uint8_t *bytes, const struct leat_btf_member *member,
					 struct leat_btf_place *place)
{
	place->bytes = bytes + member->bit_off / 8;
	place->type = member->type;
	place->bit_off = member->bit_off % 8;
	place->bits = member->bits;
}

/** Whether a member is a struct or union without a name, whose members count as the whole's. */
static inline bool leat_btf_is_unnamed(const struct leat_btf *btf, const struct leat_btf_member *member)
{
	uint32_t inner = leat_btf_strip(btf, member->type);

	return !*member->name && !member->bits && leat_btf_is_record(leat_btf_kind(btf, inner)) &&
	       leat_btf_n_members(btf, inner);
}

#endif
