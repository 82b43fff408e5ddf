/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * insn.c: the instruction table, how an instruction is found in it, and instructions as text for messages.
 * No state; any thread.
 */
#include "bpf/insn.h"

#include <stdio.h>
#include <string.h>

#define ROW(name, opcode, form, variant, text) { (opcode), LEAT_FORM_##form, (variant), #name, text },
const struct leat_insn_row leat_insn_row[LEAT_INSN_OPS] = { LEAT_INSN_ROWS(ROW) };

const uint8_t leat_insn_use[LEAT_FORMS] = {
	[LEAT_FORM_ALU_K] = LEAT_USE_DST | LEAT_SET_DST | LEAT_USE_IMM | LEAT_VARIANT_OFF,
	[LEAT_FORM_ALU_X] = LEAT_USE_DST | LEAT_SET_DST | LEAT_USE_SRC | LEAT_VARIANT_OFF,
	[LEAT_FORM_MOV_K] = LEAT_SET_DST | LEAT_USE_IMM | LEAT_VARIANT_OFF,
	[LEAT_FORM_MOV_X] = LEAT_SET_DST | LEAT_USE_SRC | LEAT_VARIANT_OFF,
	[LEAT_FORM_NEG] = LEAT_USE_DST | LEAT_SET_DST,
	[LEAT_FORM_END] = LEAT_USE_DST | LEAT_SET_DST | LEAT_VARIANT_IMM,
	[LEAT_FORM_LD64] = LEAT_SET_DST | LEAT_USE_IMM | LEAT_VARIANT_SRC,
	[LEAT_FORM_LDX] = LEAT_SET_DST | LEAT_USE_SRC | LEAT_USE_OFF,
	[LEAT_FORM_ST] = LEAT_USE_DST | LEAT_USE_OFF | LEAT_USE_IMM,
	[LEAT_FORM_STX] = LEAT_USE_DST | LEAT_USE_SRC | LEAT_USE_OFF,
	[LEAT_FORM_ATOMIC] = LEAT_USE_DST | LEAT_USE_SRC | LEAT_USE_OFF | LEAT_VARIANT_IMM,
	[LEAT_FORM_JA] = LEAT_USE_OFF,
	[LEAT_FORM_JA32] = LEAT_USE_IMM,
	[LEAT_FORM_JMP_K] = LEAT_USE_DST | LEAT_USE_OFF | LEAT_USE_IMM,
	[LEAT_FORM_JMP_X] = LEAT_USE_DST | LEAT_USE_SRC | LEAT_USE_OFF,
	[LEAT_FORM_CALL] = LEAT_USE_IMM | LEAT_VARIANT_SRC,
	[LEAT_FORM_KFUNC] = LEAT_USE_IMM | LEAT_USE_OFF | LEAT_VARIANT_SRC,
	[LEAT_FORM_EXIT] = 0,
};

/** The field that tells the operations of one opcode apart; 0 where there is one only. */
static int32_t variant_of(const struct bpf_insn *insn, uint8_t use)
{
	if (use & LEAT_VARIANT_OFF)
		return insn->off;
	if (use & LEAT_VARIANT_IMM)
		return insn->imm;
	return use & LEAT_VARIANT_SRC ? insn->src_reg : 0;
}

/** The rows' opcodes side by side, to be searched. */
#define OPCODE(name, opcode, form, variant, text) (opcode),
static const uint8_t opcodes[LEAT_INSN_OPS] = { LEAT_INSN_ROWS(OPCODE) };

int leat_insn_find(const struct bpf_insn *insn)
{
	const uint8_t *at = opcodes, *end = opcodes + LEAT_INSN_OPS;
	const struct leat_insn_row *row;

	for (; (at = memchr(at, insn->code, (size_t)(end - at))); at++) {
		row = &leat_insn_row[at - opcodes];
		if (row->variant == variant_of(insn, leat_insn_use[row->form]))
			return (int)(at - opcodes);
	}
	return -1;
}

const char *leat_insn_reserved(const struct bpf_insn *insn, int op)
{
	uint8_t use = leat_insn_use[leat_insn_row[op].form];

	if (insn->dst_reg > BPF_REG_10 || ((use & LEAT_USE_SRC) && insn->src_reg > BPF_REG_10))
		return "register";
	if (!(use & (LEAT_USE_DST | LEAT_SET_DST)) && insn->dst_reg)
		return "destination";
	if (!(use & (LEAT_USE_SRC | LEAT_VARIANT_SRC)) && insn->src_reg)
		return "source";
	if (!(use & (LEAT_USE_OFF | LEAT_VARIANT_OFF)) && insn->off)
		return "offset";
	if (!(use & (LEAT_USE_IMM | LEAT_VARIANT_IMM)) && insn->imm)
		return "immediate";
	return NULL;
}

/* ---- as text ---- */

static int format_ld64(const struct bpf_insn *insn, const char *text, char *buf, size_t size)
{
	if (insn->src_reg == BPF_PSEUDO_MAP_VALUE)
		return snprintf(buf, size, "r%d = %s %d + %u", insn->dst_reg, text, insn->imm, (uint32_t)insn[1].imm);
	if (insn->src_reg)
		return snprintf(buf, size, "r%d = %s %d", insn->dst_reg, text, insn->imm);
	return snprintf(buf, size, "r%d = 0x%llx ll", insn->dst_reg,
			(unsigned long long)(uint32_t)insn->imm | (unsigned long long)(uint32_t)insn[1].imm << 32);
}

static int format_memory(const struct bpf_insn *insn, const struct leat_insn_row *row, char *buf, size_t size)
{
	const char *text = row->text;
	int dst = insn->dst_reg, src = insn->src_reg, off = insn->off;

	if (row->form == LEAT_FORM_LDX)
		return snprintf(buf, size, "r%d = *(%s *)(r%d %+d)", dst, text, src, off);
	if (row->form == LEAT_FORM_ST)
		return snprintf(buf, size, "*(%s *)(r%d %+d) = %d", text, dst, off, insn->imm);
	if (row->form == LEAT_FORM_STX)
		return snprintf(buf, size, "*(%s *)(r%d %+d) = r%d", text, dst, off, src);
	return snprintf(buf, size, "atomic_%s(*(u%u *)(r%d %+d), r%d)", text, leat_insn_size(insn) * 8, dst, off, src);
}

static int format_alu(const struct bpf_insn *insn, const struct leat_insn_row *row, char *buf, size_t size)
{
	char w = leat_insn_is32(insn) ? 'w' : 'r';
	const char *text = row->text;
	int dst = insn->dst_reg, src = insn->src_reg;

	if (row->form == LEAT_FORM_ALU_K)
		return snprintf(buf, size, "%c%d %s %d", w, dst, text, insn->imm);
	if (row->form == LEAT_FORM_ALU_X)
		return snprintf(buf, size, "%c%d %s %c%d", w, dst, text, w, src);
	if (row->form == LEAT_FORM_MOV_K)
		return snprintf(buf, size, "%c%d = %d", w, dst, insn->imm);
	if (row->form == LEAT_FORM_MOV_X)
		return snprintf(buf, size, "%c%d = %s%c%d", w, dst, text, w, src);
	if (row->form == LEAT_FORM_NEG)
		return snprintf(buf, size, "%c%d = -%c%d", w, dst, w, dst);
	return snprintf(buf, size, "r%d = %s r%d", dst, text, dst);
}

static int format_jump(const struct bpf_insn *insn, const struct leat_insn_row *row, char *buf, size_t size)
{
	char w = leat_insn_is32(insn) ? 'w' : 'r';

	if (row->form == LEAT_FORM_JMP_K)
		return snprintf(buf, size, "if %c%d %s %d goto %+d", w, insn->dst_reg, row->text, insn->imm, insn->off);
	if (row->form == LEAT_FORM_JMP_X)
		return snprintf(buf, size, "if %c%d %s %c%d goto %+d", w, insn->dst_reg, row->text, w, insn->src_reg,
				insn->off);
	if (row->form == LEAT_FORM_JA)
		return snprintf(buf, size, "%s %+d", row->text, insn->off);
	if (row->form == LEAT_FORM_JA32)
		return snprintf(buf, size, "%s %+d", row->text, insn->imm);
	if (row->form == LEAT_FORM_EXIT)
		return snprintf(buf, size, "%s", row->text);
	return snprintf(buf, size, "call %s %d", row->text, insn->imm);
}

int leat_insn_format(const struct bpf_insn *insn, char *buf, size_t size)
{
	int op = leat_insn_find(insn);
	const struct leat_insn_row *row = &leat_insn_row[op < 0 ? 0 : op];

	if (op < 0)
		return snprintf(buf, size, "opcode 0x%02x", insn->code);
	if (row->form == LEAT_FORM_LD64)
		return format_ld64(insn, row->text, buf, size);
	if (row->form >= LEAT_FORM_JA)
		return format_jump(insn, row, buf, size);
	if (row->form >= LEAT_FORM_LDX)
		return format_memory(insn, row, buf, size);
	return format_alu(insn, row, buf, size);
}
