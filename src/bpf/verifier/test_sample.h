/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sample.h: small programs that the verifier must take, and such that it must refuse, with the instruction and a
 * word of the sentence.
 */
#ifndef LEAT_BPF_TEST_SAMPLE_H
#define LEAT_BPF_TEST_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/test_run.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INSNS 40u

struct sample {
	const char *name;
	int at;           /* instruction that is refused; -1: good */
	const char *word; /* in the sentence */
	struct bpf_insn insn[INSNS];
};

#define GOOD(name, ...)                                                                                                \
	{                                                                                                              \
		name, -1, NULL,                                                                                        \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}
#define BAD(name, at, word, ...)                                                                                       \
	{                                                                                                              \
		name, at, word,                                                                                        \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}

#define END MOV64K(R0, 2), EXIT
#define LOOKUP(map)                                                                                                    \
	ST(BPF_W, R10, -4, 0), MOV64X(R2, R10), ADD64K(R2, -4), LDMAP(R1, map),                                        \
		HELPER(BPF_FUNC_map_lookup_elem)                                                 /* 6 instructions */
/** Instructions of a sample: up to the last that is not all zero. */
static inline uint32_t length(const struct sample *s)
{
	static const struct bpf_insn none;
	uint32_t n = INSNS;

	while (n && !memcmp(&s->insn[n - 1], &none, sizeof(none)))
		n--;
	return n;
}

static inline unsigned int check(struct test_bpf *t, const struct sample *s)
{
	char place[64];
	int err = test_bpf_verify(t, s->insn, length(s));
	bool good;

	test_bpf_drop_progs(t);
	snprintf(place, sizeof(place), "test: instruction %d: ", s->at);
	good = s->at < 0 ? !err : err && !strncmp(t->said, place, strlen(place)) && strstr(t->said, s->word);
	if (!good)
		print_message("# %s: %d \"%s\"\n", s->name, err, t->said);
	return !good;
}

/** A test of all @samples on the maps that add_maps() makes. */
#define CHECK(samples)                                                                                                 \
	static void check_##samples(void **state)                                                                      \
	{                                                                                                              \
		struct test_bpf t;                                                                                     \
		unsigned int bad = 0;                                                                                  \
		size_t i;                                                                                              \
                                                                                                                       \
		(void)state;                                                                                           \
		assert_int_equal(test_bpf_begin(&t, 0), 0);                                                            \
		add_maps(&t);                                                                                          \
		for (i = 0; i < COUNT(samples); i++)                                                                   \
			bad += check(&t, &(samples)[i]);                                                               \
		test_bpf_end(&t);                                                                                      \
		assert_int_equal(bad, 0);                                                                              \
	}

#endif
