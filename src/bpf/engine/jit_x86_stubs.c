/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jit_x86_stubs.c: pieces of code that all programs share: the way in from C and out, traps, questions to C, zeroing a
 * frame. They are made with the first program and stay. A program whose code is too far from them begins with its own.
 * *control*.
 */
#include "bpf/engine/jit_x86.h"

#include <pthread.h>
#include <string.h>

/* ---- the pieces ---- */

static const uint8_t kept[] = { RBP, RBX, R12, R13, R14, R15 };

/** enter_fn: what C must find again goes to the stack, and its arguments where BPF has them. */
static void stub_enter(struct jit *j)
{
	static const uint8_t arg[] = { RSI, RCX, R08, R09 };
	static const uint8_t from[] = { 0, 16, 24, 32 };
	unsigned int i;

	for (i = 0; i < sizeof(kept); i++)
		leat_x86_push(j, kept[i]);
	leat_x86_mem(j, 0, 0xff, 6, RDI, RUN_OFF(unwind)); /* push */
	leat_x86_mem(j, X_W, 0x89, RSP, RDI, RUN_OFF(unwind));
	leat_x86_mov(j, X_W, RUN, RDI);
	leat_x86_mov(j, X_W, RBP, RSI);
	leat_x86_mov(j, X_W, RAX, RCX);
	for (i = 0; i < sizeof(arg); i++)
		leat_x86_mem(j, X_W, 0x8b, arg[i], RDX, from[i]);
	leat_x86_mem(j, X_W, 0x8b, RDX, RDX, 8);
	leat_x86_rr(j, 0, 0xff, 2, RAX); /* call rax */
}

static void stub_leave(struct jit *j)
{
	unsigned int i;

	leat_x86_mem(j, 0, 0x8f, 0, RUN, RUN_OFF(unwind)); /* pop */
	for (i = sizeof(kept); i-- > 0;)
		leat_x86_pop(j, kept[i]);
	leat_x86_byte(j, 0xc3);
}

/** Back to where this run, or this callback, was entered. */
static void stub_unwind(struct jit *j)
{
	leat_x86_mem(j, X_W, 0x8b, RSP, RUN, RUN_OFF(unwind));
	leat_x86_rr(j, 0, 0x33, RAX, RAX);
	leat_x86_jump_to(j, -1, j->stub[STUB_LEAVE]);
}

/** Calls @fn(run, instruction, edx) on a stack that is aligned, then unwinds. */
static void stub_call_and_unwind(struct jit *j, const void *fn)
{
	leat_x86_mem(j, X_W, 0x8b, RSP, RUN, RUN_OFF(unwind));
	leat_x86_mov(j, X_W, RDI, RUN);
	leat_x86_mov(j, 0, RSI, TMP2);
	leat_x86_call(j, fn);
	leat_x86_jump_to(j, -1, j->stub[STUB_UNWIND]);
}

static void stub_trap_for(struct jit *j, enum leat_bpf_trap_reason reason)
{
	if (reason == LEAT_BPF_TRAP_FUEL) {
		leat_x86_mem(j, X_W, 0xc7, 0, RUN, RUN_OFF(fuel));
		leat_x86_u32(j, 0);
	}
	leat_x86_mov_imm(j, RDX, (uint64_t)reason);
	leat_x86_jump_to(j, -1, j->stub[STUB_TRAP]);
}

/** Asks leat_jit_access() and keeps every BPF register. Entered with the stack 8 off, so that seven pushes align it. */
static void stub_access(struct jit *j)
{
	static const uint8_t regs[] = { RAX, RCX, RDX, RSI, R08, R09, FUEL };
	unsigned int i;

	for (i = 0; i < sizeof(regs); i++)
		leat_x86_push(j, regs[i]);
	leat_x86_mov(j, X_W, RSI, RDI);
	leat_x86_mov(j, X_W, RDI, RUN);
	leat_x86_mov(j, 0, RDX, TMP2);
	leat_x86_call(j, (const void *)(uintptr_t)&leat_jit_access);
	leat_x86_rr(j, 0, 0x84, RAX, RAX); /* test al, al */
	for (i = sizeof(regs); i-- > 0;)
		leat_x86_pop(j, regs[i]);
	leat_x86_byte(j, 0xc3);
}

/** Zeroes the frame: 32 bytes at a time where the machine can, else 16. */
static void stub_zero(struct jit *j)
{
	int32_t off, step = j->avx ? 32 : 16;

	if (j->avx) {
		leat_x86_byte(j, 0xc5); /* vxorps: the upper half, too */
		leat_x86_byte(j, 0xf8);
	} else {
		leat_x86_byte(j, 0x0f);
	}
	leat_x86_byte(j, 0x57);
	leat_x86_byte(j, 0xc0);
	for (off = step; off <= (int32_t)LEAT_BPF_STACK_SIZE; off += step) {
		if (j->avx) { /* vmovups */
			leat_x86_byte(j, 0xc5);
			leat_x86_byte(j, 0xfc);
		}
		leat_x86_mem(j, 0, j->avx ? 0x11 : 0x0f11, 0, RBP, -off);
	}
	if (j->avx) { /* vzeroupper */
		leat_x86_byte(j, 0xc5);
		leat_x86_byte(j, 0xf8);
		leat_x86_byte(j, 0x77);
	}
	leat_x86_byte(j, 0xc3);
}

/** run->packet and run->room, from the xdp_buff: at most length - (size - 1) places, and not less than none. */
static void stub_packet(struct jit *j)
{
	unsigned int i;

	leat_x86_mem(j, X_W, 0x8b, TMP2, RUN, RUN_OFF(xdp));
	leat_x86_mem(j, X_W, 0x8b, R11, TMP2, offsetof(struct leat_xdp_buff, data_end));
	leat_x86_mem(j, X_W, 0x8b, TMP2, TMP2, offsetof(struct leat_xdp_buff, data));
	leat_x86_mem(j, X_W, 0x89, TMP2, RUN, RUN_OFF(packet));
	leat_x86_rr(j, X_W, 0x2b, R11, TMP2);
	leat_x86_rr(j, 0, 0x33, TMP2, TMP2);
	leat_x86_mem(j, X_W, 0x89, R11, RUN, RUN_OFF(room));
	for (i = 1; i < 4; i++) {
		leat_x86_alu_imm(j, X_W, 5, R11, 1 << (i - 1));
		leat_x86_rr(j, X_W, 0x0f42, R11, TMP2); /* cmovb */
		leat_x86_mem(j, X_W, 0x89, R11, RUN, RUN_OFF(room) + 8 * (int32_t)i);
	}
	leat_x86_byte(j, 0xc3);
}

static void emit_stub(struct jit *j, enum jit_stub stub)
{
	j->stub[stub] = j->len;
	switch (stub) {
	case STUB_ENTER:
		stub_enter(j);
		break;
	case STUB_LEAVE:
		stub_leave(j);
		break;
	case STUB_UNWIND:
		stub_unwind(j);
		break;
	case STUB_TRAP:
		stub_call_and_unwind(j, (const void *)(uintptr_t)&leat_bpf_trap);
		break;
	case STUB_HELPER_TRAP:
		stub_call_and_unwind(j, (const void *)(uintptr_t)&leat_bpf_helper_trapped);
		break;
	case STUB_TRAP_ACCESS:
		stub_trap_for(j, LEAT_BPF_TRAP_ACCESS);
		break;
	case STUB_TRAP_FUEL:
		stub_trap_for(j, LEAT_BPF_TRAP_FUEL);
		break;
	case STUB_TRAP_FRAMES:
		stub_trap_for(j, LEAT_BPF_TRAP_FRAMES);
		break;
	case STUB_ACCESS:
		stub_access(j);
		break;
	case STUB_ZERO:
		stub_zero(j);
		break;
	case STUB_PACKET:
		stub_packet(j);
		break;
	case STUBS:
		break;
	}
}

void leat_x86_emit_stubs(struct jit *j)
{
	unsigned int stub;

	for (stub = 0; stub < STUBS; stub++)
		emit_stub(j, stub);
}

/* ---- what programs share ---- */

/** The pieces, made once and kept; [1]: with AVX. */
static struct jit_shared shared[2];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static int make_shared(struct jit_shared *s, bool avx)
{
	struct jit j = { .avx = avx, .counting = true, .mem.fd = -1 };
	int err;

	leat_x86_emit_stubs(&j);
	err = leat_jit_memory_open(&j.mem, j.len);
	if (err)
		return err;
	j.counting = false;
	j.len = 0;
	leat_x86_emit_stubs(&j);
	err = leat_jit_memory_finish(&j.mem, j.len);
	if (err)
		return err;
	memcpy(s->at, j.stub, sizeof(s->at));
	s->exec = j.mem.exec;
	return 0;
}

int leat_x86_get_shared(bool avx, const struct jit_shared **s)
{
	int err = 0;

	pthread_mutex_lock(&shared_lock);
	*s = &shared[avx];
	if (!(*s)->exec)
		err = make_shared(&shared[avx], avx);
	pthread_mutex_unlock(&shared_lock);
	return err;
}

void leat_x86_use_shared(struct jit *j, const struct jit_shared *s)
{
	int64_t distance = (int64_t)((uint64_t)(uintptr_t)s->exec - (uint64_t)(uintptr_t)j->mem.exec);
	const int64_t reach = INT32_MAX / 2;
	unsigned int stub;

	j->own_stubs = distance < -reach || distance > reach || j->mem.size > INT32_MAX / 4 ||
		       (leat_jit_without & LEAT_JIT_NO_SHARED);
	for (stub = 0; stub < STUBS && !j->own_stubs; stub++)
		j->stub[stub] = (uint32_t)distance + s->at[stub];
}
