/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prepare.c: from a verified program to what the interpreter runs (interp.h). *control*.
 *
 * Here addresses take the place of numbers (maps, values, helpers), loads from the context become what the contract
 * says they read, and a memory access gets the operation for the region that the verifier found.
 */
#include "bpf/engine/interp.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "bpf/env.h"
#include "bpf/map/map.h"

/** The operation of the same kind for one region: @base is that region's LDX8. */
static int for_region(int op, int base)
{
	if (op >= LEAT_OP_LDX8 && op <= LEAT_OP_LDX64)
		return base + op - LEAT_OP_LDX8;
	if (op >= LEAT_OP_ST8 && op <= LEAT_OP_ST64)
		return base + 4 + op - LEAT_OP_ST8;
	if (op >= LEAT_OP_STX8 && op <= LEAT_OP_STX64)
		return base + 8 + op - LEAT_OP_STX8;
	return op;
}

/** The short tests serve where nothing else is to be looked at. */
static int decode_memory(int op, const struct leat_bpf_aux *aux)
{
	bool load = op <= LEAT_OP_LDX64;

	if (aux->ctx_load)
		return LEAT_OP_CTX_DATA + aux->ctx_load - 1;
	if (aux->region == LEAT_BPF_REGION_STACK && !aux->frame && (load || !aux->keep))
		return for_region(op, LEAT_OP_LDX8_STACK);
	if (aux->region == LEAT_BPF_REGION_PACKET)
		return for_region(op, LEAT_OP_LDX8_PACKET);
	return op;
}

static int decode_call(const struct leat_bpf_helper *helper)
{
	unsigned int i;

	if (helper->flags & LEAT_BPF_HELPER_TAIL_CALL)
		return LEAT_OP_TAIL_CALL;
	for (i = 0; i < 5; i++)
		if ((helper->arg[i] >= LEAT_BPF_ARG_CTX && helper->arg[i] <= LEAT_BPF_ARG_MEM_OUT) ||
		    helper->arg[i] == LEAT_BPF_ARG_RECORD || helper->arg[i] == LEAT_BPF_ARG_LOCK)
			return LEAT_OP_CALL_MEM;
	return LEAT_OP_CALL;
}

static uint64_t address(const void *what)
{
	return (uint64_t)(uintptr_t)what;
}

/** Address of byte @off of the only value of map @number. */
static uint64_t value_address(const struct leat_bpf_prog *prog, uint32_t number, uint32_t off)
{
	struct leat_bpf_map *map = &prog->obj->map[number];
	uint32_t key = 0;

	return address(map->type->lookup(map, &key, 0)) + off;
}

static uint64_t decode_ld64(const struct leat_bpf_prog *prog, const uint32_t *len, uint32_t i, int op)
{
	const struct bpf_insn *insn = &prog->insn[i];
	uint32_t low = (uint32_t)insn->imm, high = (uint32_t)insn[1].imm, start;

	if (op == LEAT_OP_LD64_MAP)
		return address(&prog->obj->map[low]);
	if (op == LEAT_OP_LD64_VALUE)
		return value_address(prog, low, high);
	if (op == LEAT_OP_LD64_FUNC) {
		start = i + 1 + low;
		prog->op[start].flags |= LEAT_BPF_OP_FUNC;
		return start | (uint64_t)len[start] << 32;
	}
	return low | (uint64_t)high << 32;
}

static void decode(const struct leat_bpf_prog *prog, const uint32_t *len, uint32_t i)
{
	const struct bpf_insn *insn = &prog->insn[i];
	const struct leat_bpf_helper *helper;
	struct leat_bpf_op *out = &prog->op[i];
	int op = leat_insn_find(insn);

	out->op = LEAT_OP_UNREACHED;
	if (op < 0 || !prog->aux[i].reached)
		return;
	out->op = (uint8_t)op;
	out->dst = insn->dst_reg;
	out->src = insn->src_reg;
	out->off = leat_insn_jump(insn, op);
	out->imm = (uint64_t)(int64_t)insn->imm;
	if (leat_insn_row[op].form >= LEAT_FORM_LDX && leat_insn_row[op].form <= LEAT_FORM_STX) {
		out->op = (uint8_t)decode_memory(op, &prog->aux[i]);
	} else if (leat_insn_row[op].form == LEAT_FORM_LD64) {
		out->imm = decode_ld64(prog, len, i, op);
	} else if (op == LEAT_OP_CALL) {
		helper = leat_bpf_helper_find(insn->imm);
		out->op = (uint8_t)decode_call(helper);
		out->imm = address(helper);
	} else if (op == LEAT_OP_CALL_LOCAL) {
		out->off = insn->imm;
		out->imm = len[i + 1 + (uint32_t)insn->imm];
	}
}

/** Fills @len[start] with the instructions of each function that is called or taken the address of. */
static void measure_functions(const struct leat_bpf_prog *prog, uint32_t *len)
{
	uint32_t i, end = prog->n_insns;
	int op;

	for (i = 0; i < prog->n_insns; i++) {
		op = leat_insn_find(&prog->insn[i]);
		if (prog->aux[i].reached && (op == LEAT_OP_CALL_LOCAL || op == LEAT_OP_LD64_FUNC))
			len[i + 1 + (uint32_t)prog->insn[i].imm] = 1;
	}
	for (i = prog->n_insns; i-- > 0;) {
		if (!len[i])
			continue;
		len[i] = end - i;
		end = i;
	}
}

int leat_bpf_interp_prepare(struct leat_bpf_prog *prog)
{
	uint32_t *len = leat_heap_zalloc((size_t)prog->n_insns * sizeof(*len));
	uint32_t i;

	prog->op = leat_heap_zalloc((size_t)prog->n_insns * sizeof(*prog->op));
	if (!len || !prog->op) {
		leat_heap_free(len);
		leat_heap_free(prog->op);
		prog->op = NULL;
		return -ENOMEM;
	}
	prog->n_ops = prog->n_insns;
	measure_functions(prog, len);
	for (i = 0; i < prog->n_insns; i++)
		decode(prog, len, i);
	leat_heap_free(len);
	return prog->obj->env->coverage ? leat_bpf_cover_prepare(prog) : 0;
}
