/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog.c: what can be asked of a program: its names, its place in a chain, where it was ended, and which line of the
 * source an instruction came from. Any thread.
 */
#include "bpf/prog.h"

#include "bpf/engine/jit.h"

#include <stdio.h>
#include <string.h>

static const char *const reasons[LEAT_BPF_TRAP_REASONS] = {
	[LEAT_BPF_TRAP_ACCESS] = "access outside its region",
	[LEAT_BPF_TRAP_FUEL] = "out of fuel",
	[LEAT_BPF_TRAP_FRAMES] = "more than 8 calls deep",
	[LEAT_BPF_TRAP_HELPER] = "a helper was given memory outside its region",
	[LEAT_BPF_TRAP_LOCK] = "a spin lock stayed taken",
};

const char *leat_bpf_prog_name(const struct leat_bpf_prog *prog)
{
	return prog->name;
}

const char *leat_bpf_prog_section(const struct leat_bpf_prog *prog)
{
	return prog->section;
}

unsigned int leat_bpf_prog_len(const struct leat_bpf_prog *prog)
{
	return prog->n_insns;
}

unsigned int leat_bpf_prog_code_size(const struct leat_bpf_prog *prog)
{
	return prog->code ? prog->code->len : 0;
}

bool leat_bpf_prog_frags(const struct leat_bpf_prog *prog)
{
	return prog->flags & LEAT_IMAGE_PROG_FRAGS;
}

bool leat_bpf_prog_egress(const struct leat_bpf_prog *prog)
{
	return prog->flags & LEAT_IMAGE_PROG_DEVMAP;
}

bool leat_bpf_prog_writes(const struct leat_bpf_prog *prog)
{
	return prog->writes_packet;
}

uint32_t leat_bpf_prog_number(const struct leat_bpf_prog *prog)
{
	return prog->number + 1;
}

uint32_t leat_bpf_prog_run_prio(const struct leat_bpf_prog *prog)
{
	return prog->run_prio;
}

uint32_t leat_bpf_prog_chain_actions(const struct leat_bpf_prog *prog)
{
	return prog->chain_actions;
}

/* The last line at or before @insn. */
const struct leat_image_line *leat_bpf_prog_line(const struct leat_bpf_prog *prog, uint32_t insn)
{
	uint32_t low = 0, high = prog->n_lines, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (prog->line[mid].insn <= insn)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &prog->line[low - 1] : NULL;
}

void leat_bpf_prog_source(const struct leat_bpf_prog *prog, uint32_t insn, char *buf, size_t size)
{
	const struct leat_image_line *line = leat_bpf_prog_line(prog, insn);
	const char *file, *slash, *text;

	if (size)
		buf[0] = '\0';
	if (!line)
		return;
	file = leat_image_string(prog->obj->head, line->file);
	text = leat_image_string(prog->obj->head, line->text);
	slash = strrchr(file, '/');
	text += strspn(text, " \t");
	snprintf(buf, size, "%s:%u%s%s", slash ? slash + 1 : file, line->line, *text ? ": " : "", text);
}

static void fill_trap(const struct leat_bpf_prog *prog, uint32_t insn, unsigned int reason, uint64_t count,
		      struct leat_bpf_trap *trap)
{
	static _Thread_local char source[512];

	leat_bpf_prog_source(prog, insn, source, sizeof(source));
	*trap = (struct leat_bpf_trap){
		.reason = reasons[reason],
		.insn = insn,
		.count = count,
		.source = *source ? source : NULL,
	};
}

/* ---- what the verifier found ---- */

static const char *const region_name[] = {
	[LEAT_BPF_REGION_NONE] = "memory for a helper", [LEAT_BPF_REGION_STACK] = "stack",
	[LEAT_BPF_REGION_PACKET] = "packet",            [LEAT_BPF_REGION_META] = "metadata",
	[LEAT_BPF_REGION_MAP] = "map value",            [LEAT_BPF_REGION_RECORD] = "ring buffer record",
	[LEAT_BPF_REGION_LENT] = "key of a callback",
	[LEAT_BPF_REGION_ANY] = "memory of several kinds",
};

void leat_bpf_prog_check(const struct leat_bpf_prog *prog, struct leat_bpf_check *check)
{
	uint32_t i;

	*check = (struct leat_bpf_check){
		.insns = prog->n_insns,
		.stack = prog->stack,
		.longest = prog->longest,
		.walked = prog->walked,
		.verify_ns = prog->verify_ns,
		.writes_packet = prog->writes_packet,
		.kernel = prog->kernel,
		.kernel_says = prog->kernel_words,
	};
	for (i = 0; prog->aux && i < prog->n_insns; i++) {
		check->reached += prog->aux[i].reached;
		check->proven += prog->aux[i].access && prog->aux[i].proven;
		check->guarded += prog->aux[i].access && !prog->aux[i].proven;
	}
}

bool leat_bpf_prog_guard(const struct leat_bpf_prog *prog, unsigned int idx, struct leat_bpf_guard *guard)
{
	static _Thread_local char source[512];
	uint32_t i;

	for (i = 0; prog->aux && i < prog->n_insns; i++) {
		if (!prog->aux[i].access || prog->aux[i].proven || idx--)
			continue;
		leat_bpf_prog_source(prog, i, source, sizeof(source));
		*guard = (struct leat_bpf_guard){
			.insn = i, .region = region_name[prog->aux[i].region], .source = *source ? source : NULL
		};
		return true;
	}
	return false;
}

bool leat_bpf_prog_trap(const struct leat_bpf_prog *prog, unsigned int idx, struct leat_bpf_trap *trap)
{
	unsigned int reason;
	uint64_t count;
	uint32_t i;

	for (i = 0; prog->trap && i < prog->n_insns; i++)
		for (reason = 0; reason < LEAT_BPF_TRAP_REASONS; reason++) {
			count = __atomic_load_n(&prog->trap[i].n[reason], __ATOMIC_RELAXED);
			if (!count || idx--)
				continue;
			fill_trap(prog, i, reason, count, trap);
			return true;
		}
	return false;
}
