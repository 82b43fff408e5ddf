/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_btf.c: any bytes as BTF, and what stands behind them as the text of a value: checked, looked at everywhere,
 * values of each type to text and back.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/btf/btf.h"
#include "fuzz.h"

#define VALUE_MAX 512u
#define TEXT_MAX 65536
#define TYPES_MAX 64u

/* Where the parts of the BTF end, as its header says; the rest is text. */
static size_t end_of_btf(const uint8_t *data, size_t size)
{
	struct btf_header head;
	uint64_t types, strings;

	memcpy(&head, data, sizeof(head));
	types = (uint64_t)head.hdr_len + head.type_off + head.type_len;
	strings = (uint64_t)head.hdr_len + head.str_off + head.str_len;
	if (strings > types)
		types = strings;
	return types < size ? (size_t)types : size;
}

static void look_at(const struct leat_btf *btf, uint32_t id)
{
	struct leat_btf_member member;
	uint32_t i;
	uint64_t value;

	leat_btf_find(btf, leat_btf_name(btf, id), leat_btf_kind(btf, id));
	for (i = 0; i < leat_btf_n_members(btf, id) && i < 64; i++) {
		leat_btf_member(btf, id, i, &member);
		leat_btf_find_member(btf, id, member.name, &member);
	}
	for (i = 0; i < leat_btf_n_enums(btf, id); i++)
		leat_btf_enum(btf, id, i, &value);
}

/* Its text is text that it accepts, but for names that say two things. */
static void there_and_back(const struct leat_btf *btf, uint32_t id, const uint8_t *data, size_t size, const char *text)
{
	uint32_t len = leat_btf_size(btf, id);
	uint8_t *value = calloc(1, len + 1);
	static char buf[TEXT_MAX];
	size_t i;

	if (!value)
		abort();
	for (i = 0; i < len; i++)
		value[i] = data[(i * 7 + id) % size];
	i = (size_t)leat_btf_format(btf, id, value, len, buf, sizeof(buf));
	if (i < sizeof(buf) && strlen(buf) != i)
		abort();
	if (i < sizeof(buf))
		leat_btf_parse(btf, id, buf, value, len, NULL);
	leat_btf_parse(btf, id, text, value, len, NULL);
	free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size < sizeof(struct btf_header) ? size : end_of_btf(data, size);
	struct leat_diag *diag = leat_diag_create();
	char *text = calloc(1, size - len + 1);
	struct leat_btf *btf;
	uint32_t id;

	if (!diag || !text)
		abort();
	if (size > len)
		memcpy(text, data + len, size - len);
	if (!leat_btf_create(data, len, diag, &btf)) {
		for (id = 0; id < leat_btf_count(btf) && id < TYPES_MAX; id++) {
			look_at(btf, id);
			if (leat_btf_size(btf, id) && leat_btf_size(btf, id) <= VALUE_MAX)
				there_and_back(btf, id, data, size, text);
		}
		leat_btf_destroy(btf);
	} else if (!leat_diag_count(diag)) {
		abort(); /* refused without a word */
	}
	free(text);
	leat_diag_destroy(diag);
	return 0;
}
