/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.c: a refusal in words: where in program and source, why, the instruction, and what its registers hold.
 * *control*.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_name[LEAT_KINDS] = {
	[LEAT_KIND_UNSET] = "not set",
	[LEAT_KIND_NUMBER] = "a number",
	[LEAT_KIND_CTX] = "the context",
	[LEAT_KIND_PACKET] = "a pointer into the packet",
	[LEAT_KIND_META] = "a pointer into the metadata",
	[LEAT_KIND_END] = "the end of the packet",
	[LEAT_KIND_STACK] = "a pointer into the stack",
	[LEAT_KIND_MAP] = "a map",
	[LEAT_KIND_MAP_OR_NULL] = "a map or null",
	[LEAT_KIND_VALUE] = "a pointer to a map value",
	[LEAT_KIND_VALUE_OR_NULL] = "a pointer to a map value or null",
	[LEAT_KIND_RECORD] = "a ring buffer record",
	[LEAT_KIND_RECORD_OR_NULL] = "a ring buffer record or null",
	[LEAT_KIND_FUNC] = "a function",
	[LEAT_KIND_KEY] = "a pointer to a key",
	[LEAT_KIND_STALE] = "a packet pointer from before the packet was moved",
	[LEAT_KIND_RELEASED] = "a ring buffer record that was submitted or discarded",
};

const char *leat_kind_name(uint8_t kind)
{
	return kind_name[kind];
}

/** Text that is added to until it is full. */
struct text {
	char buf[768];
	size_t len;
};

static LEAT_PRINTF(2, 3) void add(struct text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->buf) - text->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->buf + text->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_register(struct text *text, const struct leat_verifier *v, unsigned int number,
			 const struct leat_vreg *reg)
{
	const struct leat_bpf_object *obj = v->prog->obj;
	bool has_map = reg->kind >= LEAT_KIND_MAP && reg->kind <= LEAT_KIND_VALUE_OR_NULL;

	add(text, ", r%u is %s", number, kind_name[reg->kind]);
	if (has_map && reg->map < obj->n_maps)
		add(text, " (%s)", obj->map[reg->map].name);
	if (reg->kind == LEAT_KIND_NUMBER && reg->known)
		add(text, " (%" PRId64 ")", reg->value);
	else if (reg->kind == LEAT_KIND_NUMBER && !leat_vunknown(reg))
		add(text, " (%" PRId64 " to %" PRId64 ")", reg->range.smin, reg->range.smax);
	else if (reg->kind == LEAT_KIND_STACK && reg->known)
		add(text, " (%+" PRId64 ")", reg->value);
}

int leat_verify_refuse(struct leat_verifier *v, uint32_t pc, unsigned int regs, const char *fmt, ...)
{
	struct text text = { .len = 0 };
	struct bpf_insn slots[2] = { v->prog->insn[pc] };
	char source[512] = "", insn[96];
	unsigned int i;
	va_list args;
	int n;

	if (v->state && regs)
		leat_verify_need_numbers(v, regs); /* one was something else, perhaps, before it was forgotten */
	va_start(args, fmt);
	n = vsnprintf(text.buf, sizeof(text.buf), fmt, args);
	va_end(args);
	text.len = n < 0 ? 0 : strlen(text.buf);
	if (pc + 1 < v->prog->n_insns)
		slots[1] = v->prog->insn[pc + 1];
	leat_insn_format(slots, insn, sizeof(insn));
	add(&text, " [%s", insn);
	for (i = 0; v->state && i < MAX_BPF_REG; i++)
		if (regs & 1u << i)
			add_register(&text, v, i, &leat_vframe(v)->reg[i]);
	leat_bpf_prog_source(v->prog, pc, source, sizeof(source));
	leat_diag_add(v->diag, "%s: instruction %u%s%s%s: %s]", v->prog->name, pc, source[0] ? " (" : "", source,
		      source[0] ? ")" : "", text.buf);
	return -EINVAL;
}
