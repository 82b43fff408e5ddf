/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.c: calls of helpers, with their arguments against the helper's row; calls of functions, which are
 * walked into with what they are given; callbacks; exits. *control*.
 *
 * A callback is walked as a function that goes back to the call itself: the call is then looked at again with what the
 * callback has changed, until nothing new comes of it. That is any number of iterations.
 */
#include "bpf/verifier/verifier.h"

#include <errno.h>
#include <string.h>

#include "bpf/names.h"

/** What is known of a call while its arguments are looked at. */
struct call {
	const struct leat_bpf_helper *helper;
	int map;           /* number of the map argument, or -1 */
	uint32_t release;  /* id of the record that is released, or 0 */
	unsigned int func; /* register of the callback, or 0 */
	unsigned int lock; /* register of the spin lock, or 0 */
	uint32_t size;     /* of a record to be reserved, when it is known, or 0 */
};

/* ---- which maps a helper works on ---- */

static bool can_lookup(const struct leat_bpf_map_type *type)
{
	return type->lookup && !(type->flags & LEAT_BPF_MAP_NO_LOOKUP);
}

static bool can_update(const struct leat_bpf_map_type *type)
{
	return type->update && !(type->flags & LEAT_BPF_MAP_NO_UPDATE);
}

static bool can_delete(const struct leat_bpf_map_type *type)
{
	return type->delete_elem && !(type->flags & LEAT_BPF_MAP_NO_UPDATE);
}

static bool can_redirect(const struct leat_bpf_map_type *type)
{
	return type->target != NULL;
}

static bool can_walk(const struct leat_bpf_map_type *type)
{
	return type->each != NULL;
}

static bool is_per_cpu(const struct leat_bpf_map_type *type)
{
	return type->flags & LEAT_BPF_MAP_PER_CPU;
}

static bool is_prog_array(const struct leat_bpf_map_type *type)
{
	return type->type == BPF_MAP_TYPE_PROG_ARRAY;
}

static bool is_perf_array(const struct leat_bpf_map_type *type)
{
	return type->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
}

static bool is_ringbuf(const struct leat_bpf_map_type *type)
{
	return type->type == BPF_MAP_TYPE_RINGBUF;
}

static const struct {
	int32_t helper;
	bool (*fits)(const struct leat_bpf_map_type *type);
} map_rule[] = {
	{ BPF_FUNC_map_lookup_elem, can_lookup },      { BPF_FUNC_map_update_elem, can_update },
	{ BPF_FUNC_map_delete_elem, can_delete },      { BPF_FUNC_map_lookup_percpu_elem, is_per_cpu },
	{ BPF_FUNC_redirect_map, can_redirect },       { BPF_FUNC_tail_call, is_prog_array },
	{ BPF_FUNC_perf_event_output, is_perf_array }, { BPF_FUNC_ringbuf_output, is_ringbuf },
	{ BPF_FUNC_ringbuf_reserve, is_ringbuf },      { BPF_FUNC_ringbuf_query, is_ringbuf },
	{ BPF_FUNC_for_each_map_elem, can_walk },
};

static int check_map_type(struct leat_verifier *v, const struct call *call)
{
	const struct leat_bpf_map *map = &v->prog->obj->map[call->map];
	unsigned int i;

	for (i = 0; i < sizeof(map_rule) / sizeof(map_rule[0]); i++)
		if (map_rule[i].helper == call->helper->id && !map_rule[i].fits(map->type))
			return leat_verify_refuse(v, v->state->pc, 0, "%s does not work on map %s, a %s",
						  call->helper->name, map->name, map->type->name);
	return 0;
}

/* ---- arguments ---- */

static int wrong_kind(struct leat_verifier *v, unsigned int number, const char *wanted)
{
	return leat_verify_refuse(v, v->state->pc, 1u << number, "argument %u must be %s", number, wanted);
}

static int arg_ctx(struct leat_verifier *v, unsigned int number, struct call *call)
{
	(void)call;
	return leat_vframe(v)->reg[number].kind == LEAT_KIND_CTX ? 0 : wrong_kind(v, number, "the context");
}

static int arg_map(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];

	if (reg->kind != LEAT_KIND_MAP)
		return wrong_kind(v, number, "a map");
	call->map = reg->map;
	return check_map_type(v, call);
}

/** Bytes that memory argument @number stands for; 0: not known, or none. */
static uint64_t mem_size(struct leat_verifier *v, unsigned int number, const struct call *call)
{
	const struct leat_bpf_map *map = call->map < 0 ? NULL : &v->prog->obj->map[call->map];
	const struct leat_vreg *size = &leat_vframe(v)->reg[number + 1];
	uint8_t kind = call->helper->arg[number - 1];

	if (!leat_bpf_arg_is_sized(kind))
		return leat_bpf_arg_bytes(kind, map ? map->key_size : 0, map ? map->value_size : 0);
	if (number == 5 || size->kind != LEAT_KIND_NUMBER || !size->known || size->value < 0)
		return 0; /* what is wrong with it, if anything, is said when its own turn comes */
	return (uint64_t)size->value;
}

/** The most bytes that it may stand for. */
static uint64_t most(struct leat_verifier *v, unsigned int number, const struct call *call)
{
	uint8_t kind = call->helper->arg[number - 1];

	if (!leat_bpf_arg_is_sized(kind))
		return call->map < 0 && kind != LEAT_BPF_ARG_U32_INOUT ? UINT64_MAX : mem_size(v, number, call);
	return number == 5 ? UINT64_MAX : leat_vframe(v)->reg[number + 1].range.umax;
}

static int arg_mem(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	const struct leat_bpf_map *map = &v->prog->obj->map[reg->map];
	bool out = leat_bpf_arg_is_written(call->helper->arg[number - 1]);
	uint64_t size = mem_size(v, number, call);
	int err = leat_verify_readable(v, number, "given as memory");
	int64_t room;

	if (err)
		return err;
	if (out && reg->kind == LEAT_KIND_KEY)
		return leat_verify_refuse(v, v->state->pc, 1u << number, "a key that a callback was given cannot be changed");
	if (out && reg->kind == LEAT_KIND_VALUE && (map->frozen || (map->map_flags & BPF_F_RDONLY_PROG)))
		return leat_verify_refuse(v, v->state->pc, 1u << number, "map %s is read-only", map->name);
	if (leat_verify_touches_lock(v, reg, 0, most(v, number, call)))
		return leat_verify_refuse(v, v->state->pc, 1u << number, "the spin lock of map %s may be in there",
					  map->name);
	if (reg->known && (reg->kind == LEAT_KIND_STACK || reg->kind == LEAT_KIND_VALUE)) {
		room = reg->kind == LEAT_KIND_STACK ? -reg->value : (int64_t)map->value_size - reg->value;
		if (room < 0 || size > (uint64_t)room ||
		    (reg->kind == LEAT_KIND_STACK ? room > (int64_t)LEAT_BPF_STACK_SIZE : reg->value < 0))
			return leat_verify_refuse(v, v->state->pc, 1u << number,
						  "argument %u needs %llu bytes, more than there are", number,
						  (unsigned long long)size);
	}
	if (reg->kind == LEAT_KIND_STACK)
		leat_verify_use_stack(v, reg, 0);
	v->guard[v->state->pc] |= !leat_verify_inside(v, reg, 0, most(v, number, call));
	v->prog->aux[v->state->pc].access = true;
	v->prog->writes_packet |= out && (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META);
	if (out)
		leat_verify_write(v, reg, 0, size);
	return 0;
}

static int arg_mem_or_null(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];

	if (reg->kind != LEAT_KIND_NUMBER || !reg->known || reg->value)
		return arg_mem(v, number, call);
	if (mem_size(v, number, call))
		return wrong_kind(v, number, "memory, for its length is not 0");
	v->guard[v->state->pc] |= most(v, number, call) != 0; /* where the length is not known, the engine looks */
	return 0;
}

static int arg_size(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	bool zero = call->helper->arg[number - 1] == LEAT_BPF_ARG_SIZE_OR_ZERO;

	if (reg->kind != LEAT_KIND_NUMBER)
		return wrong_kind(v, number, "a number of bytes");
	if (reg->known && (reg->value < 0 || (!reg->value && !zero)))
		return wrong_kind(v, number, zero ? "0 bytes or more" : "1 byte or more");
	return 0;
}

static int arg_record(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];

	if (reg->kind == LEAT_KIND_RECORD_OR_NULL)
		return wrong_kind(v, number, "a record that was compared with 0");
	if (reg->kind != LEAT_KIND_RECORD)
		return wrong_kind(v, number, "a reserved record");
	if (!reg->known || reg->value)
		return wrong_kind(v, number, "the beginning of the record");
	call->release = reg->id;
	return 0;
}

static int arg_func(struct leat_verifier *v, unsigned int number, struct call *call)
{
	if (leat_vframe(v)->reg[number].kind != LEAT_KIND_FUNC)
		return wrong_kind(v, number, "a function of the program");
	call->func = number;
	return 0;
}

static int arg_lock(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];
	const struct leat_bpf_map *map = &v->prog->obj->map[reg->map];

	if (reg->kind != LEAT_KIND_VALUE)
		return wrong_kind(v, number, "the spin lock in a map value");
	if (!map->lock)
		return leat_verify_refuse(v, v->state->pc, 1u << number,
					  "the values of map %s have no spin lock: by BTF one struct bpf_spin_lock, not "
					  "within another struct, in an array or a hash", map->name);
	if (!reg->known || reg->value != (int64_t)map->lock - 1)
		return leat_verify_refuse(v, v->state->pc, 1u << number,
					  "argument %u must be the spin lock of map %s, at +%u of its value", number,
					  map->name, map->lock - 1);
	call->lock = number;
	return 0;
}

static int arg_stack_or_null(struct leat_verifier *v, unsigned int number, struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[number];

	(void)call;
	if (reg->kind == LEAT_KIND_STACK || (reg->kind == LEAT_KIND_NUMBER && reg->known && !reg->value))
		return 0;
	return wrong_kind(v, number, "a pointer into the stack, or 0");
}

static int arg_any(struct leat_verifier *v, unsigned int number, struct call *call)
{
	(void)v;
	(void)number;
	(void)call;
	return 0;
}

typedef int arg_fn(struct leat_verifier *v, unsigned int number, struct call *call);

static arg_fn *const check_arg[] = {
	[LEAT_BPF_ARG_ANY] = arg_any,
	[LEAT_BPF_ARG_CTX] = arg_ctx,
	[LEAT_BPF_ARG_MAP] = arg_map,
	[LEAT_BPF_ARG_MAP_KEY] = arg_mem,
	[LEAT_BPF_ARG_MAP_VALUE] = arg_mem,
	[LEAT_BPF_ARG_U32_INOUT] = arg_mem,
	[LEAT_BPF_ARG_MEM] = arg_mem,
	[LEAT_BPF_ARG_MEM_OR_NULL] = arg_mem_or_null,
	[LEAT_BPF_ARG_MEM_OUT] = arg_mem,
	[LEAT_BPF_ARG_SIZE] = arg_size,
	[LEAT_BPF_ARG_SIZE_OR_ZERO] = arg_size,
	[LEAT_BPF_ARG_RECORD] = arg_record,
	[LEAT_BPF_ARG_FUNC] = arg_func,
	[LEAT_BPF_ARG_STACK_OR_NULL] = arg_stack_or_null,
	[LEAT_BPF_ARG_LOCK] = arg_lock,
};

static int check_args(struct leat_verifier *v, struct call *call)
{
	unsigned int number;
	uint8_t kind;
	int err;

	for (number = 1; number <= 5; number++) {
		kind = call->helper->arg[number - 1];
		if (kind == LEAT_BPF_ARG_NONE)
			break;
		if (leat_vframe(v)->reg[number].kind == LEAT_KIND_UNSET)
			return leat_verify_refuse(v, v->state->pc, 1u << number, "argument %u of %s is not set", number,
						  call->helper->name);
		if (kind != LEAT_BPF_ARG_ANY) /* a size, or 0 in place of memory */
			leat_verify_need_numbers(v, 1u << number);
		err = check_arg[kind](v, number, call);
		if (err)
			return err;
	}
	return 0;
}

/* ---- what a helper leaves behind ---- */

static void make_stale(struct leat_vreg *reg, void *arg)
{
	(void)arg;
	if (reg->kind == LEAT_KIND_PACKET || reg->kind == LEAT_KIND_META || reg->kind == LEAT_KIND_END)
		*reg = (struct leat_vreg){ .kind = LEAT_KIND_STALE };
}

static void lose_packet(struct leat_vstate *state)
{
	leat_verify_each(state, make_stale, NULL);
	memset(state->room, 0, sizeof(state->room));
}

static void make_released(struct leat_vreg *reg, void *arg)
{
	const uint32_t *id = arg;

	if (reg->kind == LEAT_KIND_RECORD && reg->id == *id)
		*reg = (struct leat_vreg){ .kind = LEAT_KIND_RELEASED };
}

static int release(struct leat_verifier *v, uint32_t id)
{
	struct leat_vstate *state = v->state;
	uint32_t i;

	for (i = 0; i < state->n_refs && state->ref[i] != id; i++)
		;
	if (i == state->n_refs)
		return leat_verify_refuse(v, state->pc, 0x3e, "the record was released already");
	state->ref[i] = state->ref[--state->n_refs];
	state->ref[state->n_refs] = 0;
	leat_verify_each(state, make_released, &id);
	return 0;
}

/** What a look-up gives: a value, or out of a map of maps a map. */
static struct leat_vreg found_in(struct leat_verifier *v, int number)
{
	const struct leat_bpf_map *map = &v->prog->obj->map[number];
	bool nested = map->type->flags & LEAT_BPF_MAP_NESTED;

	return (struct leat_vreg){
		.kind = nested ? LEAT_KIND_MAP_OR_NULL : LEAT_KIND_VALUE_OR_NULL,
		.map = (uint8_t)(nested ? map->inner->number : map->number),
		.known = true,
		.id = ++v->next_id,
	};
}

static int result(struct leat_verifier *v, const struct call *call)
{
	struct leat_vreg *r0 = &leat_vframe(v)->reg[BPF_REG_0];

	*r0 = leat_vnumber();
	if (call->helper->ret == LEAT_BPF_RET_MAP_VALUE_OR_NULL) {
		*r0 = found_in(v, call->map);
	} else if (call->helper->ret == LEAT_BPF_RET_RECORD_OR_NULL) {
		if (v->state->n_refs == LEAT_BPF_RECORDS_MAX)
			return leat_verify_refuse(v, v->state->pc, 0, "more than %u records are reserved at once",
						  LEAT_BPF_RECORDS_MAX);
		*r0 = (struct leat_vreg){
			.kind = LEAT_KIND_RECORD_OR_NULL, .known = true, .id = ++v->next_id, .room = call->size
		};
		v->state->ref[v->state->n_refs++] = r0->id;
	}
	return 0;
}

static void forget_arguments(struct leat_vframe *frame)
{
	memset(&frame->reg[BPF_REG_1], 0, 5 * sizeof(frame->reg[0]));
}

/** The helper's map, or its template, for the engine: -1 when paths differ. */
static void note_map(struct leat_verifier *v, const struct call *call)
{
	struct leat_bpf_aux *aux = &v->prog->aux[v->state->pc];
	uint16_t *mark = &v->mark[v->state->pc];
	bool inner, first = !(*mark & LEAT_MARK_MAP);

	if (call->map < 0)
		return;
	inner = v->prog->obj->map[call->map].template;
	aux->map = !inner && (first || aux->map == call->map) ? call->map : -1;
	aux->like = (int16_t)(inner && (first || aux->like == call->map) ? call->map : -1);
	*mark |= LEAT_MARK_MAP;
}

/* ---- functions ---- */

static int refuse_depth(struct leat_verifier *v)
{
	return leat_verify_refuse(v, v->state->pc, 0, "calls go more than %u functions deep", LEAT_BPF_FRAMES_MAX);
}

/** A frame, for which there is room, for the function at @target; its arguments are not set. */
static struct leat_vframe *open_frame(struct leat_verifier *v, uint32_t target, bool callback)
{
	struct leat_vstate *state = v->state;
	struct leat_vframe *frame = &state->frame[state->n_frames];

	memset(frame, 0, sizeof(*frame));
	frame->reg[BPF_REG_10] = (struct leat_vreg){ .kind = LEAT_KIND_STACK,
						     .known = true,
						     .frame = (uint8_t)state->n_frames };
	frame->call = state->pc;
	frame->callback = callback;
	frame->n_refs = (uint8_t)state->n_refs;
	state->n_frames++;
	state->pc = target;
	return frame;
}

static int call_local(struct leat_verifier *v, uint32_t *next)
{
	uint32_t target = v->state->pc + 1 + (uint32_t)leat_vinsn(v)->imm;
	struct leat_vframe *caller = leat_vframe(v), *frame;

	if (v->state->n_frames == LEAT_BPF_FRAMES_MAX)
		return refuse_depth(v);
	frame = open_frame(v, target, false);
	memcpy(&frame->reg[BPF_REG_1], &caller->reg[BPF_REG_1], 5 * sizeof(frame->reg[0]));
	forget_arguments(caller);
	*next = target;
	return 0;
}

/** What a callback begins with: loop's (number, arg), for_each_map_elem's (map, key, value, arg). */
static void give_arguments(struct leat_verifier *v, const struct call *call, struct leat_vframe *frame,
			   const struct leat_vreg *arg)
{
	uint8_t map = (uint8_t)call->map, number = (uint8_t)(v->state->n_frames - 1);

	if (call->map < 0) {
		frame->reg[BPF_REG_1] = leat_vnumber();
		frame->reg[BPF_REG_2] = *arg;
		return;
	}
	frame->reg[BPF_REG_1] = (struct leat_vreg){ .kind = LEAT_KIND_MAP, .map = map, .known = true };
	frame->reg[BPF_REG_2] = (struct leat_vreg){ .kind = LEAT_KIND_KEY, .map = map, .known = true, .frame = number };
	frame->reg[BPF_REG_3] = (struct leat_vreg){ .kind = LEAT_KIND_VALUE, .map = map, .known = true };
	if (v->prog->obj->map[map].lock) /* another one than all others */
		frame->reg[BPF_REG_3].id = ++v->next_id;
	frame->reg[BPF_REG_4] = *arg;
}

/** The path on which the callback runs (once more) waits as a state of its own. */
static int push_callback(struct leat_verifier *v, const struct call *call)
{
	struct leat_vframe *caller = leat_vframe(v), *frame;
	struct leat_vreg func = caller->reg[call->func], arg = caller->reg[call->func + 1];
	uint32_t pc = v->state->pc;
	int err;

	if (v->state->n_frames == LEAT_BPF_FRAMES_MAX)
		return refuse_depth(v);
	frame = open_frame(v, (uint32_t)func.value, true);
	give_arguments(v, call, frame, &arg);
	err = leat_verify_push(v, (uint32_t)func.value);
	v->state->n_frames--;
	v->state->pc = pc;
	return err;
}

static int refuse_unknown(struct leat_verifier *v)
{
	const struct bpf_insn *insn = leat_vinsn(v);
	const char *name = leat_bpf_helper_name(insn->imm);

	if (insn->imm == LEAT_IMAGE_POISON)
		return leat_verify_refuse(v, v->state->pc, 0,
					  "what it needs of the kernel (CO-RE) was not found in the kernel's BTF");
	return leat_verify_refuse(v, v->state->pc, 0, name ? "helper number %d is unknown: bpf_%s" :
				  "helper number %d is unknown", insn->imm, name);
}

/** bpf_ringbuf_reserve(map, size, flags) */
static uint32_t record_size(struct leat_verifier *v)
{
	const struct leat_vreg *size = &leat_vframe(v)->reg[BPF_REG_2];

	return size->known && size->value > 0 && size->value <= UINT32_MAX ? (uint32_t)size->value : 0;
}

/** One lock at a time, given back by what it is in. */
static int take_or_give_lock(struct leat_verifier *v, const struct call *call)
{
	const struct leat_vreg *reg = &leat_vframe(v)->reg[call->lock];
	struct leat_vstate *state = v->state;
	uint32_t lock = reg->map + 1u;

	if (call->helper->id == BPF_FUNC_spin_lock) {
		state->lock = lock;
		state->lock_id = reg->id;
		return 0;
	}
	if (!state->lock)
		return leat_verify_refuse(v, state->pc, 1u << call->lock, "no spin lock is held");
	if (state->lock != lock || state->lock_id != reg->id)
		return leat_verify_refuse(v, state->pc, 1u << call->lock, "it is another value's spin lock that is held");
	state->lock = state->lock_id = 0;
	return 0;
}

static int check_held(struct leat_verifier *v, int32_t helper)
{
	if (!v->state->lock || helper == BPF_FUNC_spin_unlock)
		return 0;
	return leat_verify_refuse(v, v->state->pc, 0,
				  helper == BPF_FUNC_spin_lock ? "a spin lock is held already" :
				  "a spin lock is held: no helper but spin_unlock may be called");
}

static int call_helper(struct leat_verifier *v)
{
	struct call call = { .helper = leat_bpf_helper_find(leat_vinsn(v)->imm), .map = -1 };
	int err;

	if (!call.helper)
		return refuse_unknown(v);
	err = check_held(v, call.helper->id);
	if (!err)
		err = check_args(v, &call);
	if (!err && call.lock)
		err = take_or_give_lock(v, &call);
	if (!err && call.helper->ret == LEAT_BPF_RET_RECORD_OR_NULL)
		call.size = record_size(v);
	if (!err && call.helper->ret == LEAT_BPF_RET_NEVER && v->state->n_refs)
		err = leat_verify_refuse(v, v->state->pc, 0, "a tail call would lose a reserved record");
	if (!err && call.func)
		err = push_callback(v, &call);
	if (!err && call.release)
		err = release(v, call.release);
	if (err)
		return err;
	note_map(v, &call);
	v->prog->writes_packet |= call.helper->flags & (LEAT_BPF_HELPER_MOVES_PACKET |
							     LEAT_BPF_HELPER_WRITES_PACKET | LEAT_BPF_HELPER_TAIL_CALL);
	if (call.helper->flags & LEAT_BPF_HELPER_MOVES_PACKET)
		lose_packet(v->state);
	forget_arguments(leat_vframe(v));
	return result(v, &call);
}

static int refuse_kfunc(struct leat_verifier *v)
{
	const struct leat_bpf_object *obj = v->prog->obj;
	const char *name = obj->head ? leat_image_string(obj->head, (uint32_t)leat_vinsn(v)->imm) : NULL;

	leat_verify_refuse(v, v->state->pc, 0, "it calls a function of the kernel%s%s, which there is not here",
			   name ? ", " : "", name ? name : "");
	return -EOPNOTSUPP;
}

int leat_verify_call(struct leat_verifier *v, int op, uint32_t *next)
{
	*next = v->state->pc + 1;
	if (op == LEAT_OP_CALL_LOCAL)
		return call_local(v, next);
	return op == LEAT_OP_CALL ? call_helper(v) : refuse_kfunc(v);
}

/* ---- exits ---- */

/** Pointers into a frame that ends, and to what was lent to it, become numbers. */
static void lose_frame(struct leat_vreg *reg, void *arg)
{
	const uint32_t *frame = arg;

	if ((reg->kind == LEAT_KIND_STACK || reg->kind == LEAT_KIND_KEY) && reg->frame == *frame)
		*reg = leat_vnumber();
}

/**
 * A callback returns 0, or 1 to be the last one: the kernel wants that proven. Where the most precise walk had to
 * forget something, it may be so without proof: to the engine anything but 0 is an end.
 */
static int check_callback_result(struct leat_verifier *v, const struct leat_vreg *r0)
{
	if (r0->kind != LEAT_KIND_NUMBER)
		return leat_verify_refuse(v, v->state->pc, 1, "a callback must return a number");
	leat_verify_need_numbers(v, 1u << BPF_REG_0);
	if (r0->range.umax <= 1 || (v->precision == LEAT_VERIFY_ALL && v->forgot))
		return 0;
	if (v->precision > LEAT_VERIFY_COARSE)
		return leat_verify_refuse(v, v->state->pc, 1, "a callback must return 0 or 1");
	v->guard[v->state->pc] = true; /* a walk that knows more has to look */
	return 0;
}

static int check_callback_exit(struct leat_verifier *v, const struct leat_vframe *frame)
{
	if (frame->n_refs != v->state->n_refs)
		return leat_verify_refuse(v, v->state->pc, 0,
					  "a callback must release what it reserves, and nothing else");
	if (v->state->lock)
		return leat_verify_refuse(v, v->state->pc, 0, "a callback must give back the spin lock that it takes");
	return check_callback_result(v, &frame->reg[BPF_REG_0]);
}

static int leave_program(struct leat_verifier *v, bool *ended)
{
	*ended = true;
	if (v->state->lock)
		return leat_verify_refuse(v, v->state->pc, 0, "the program ends with a spin lock that it holds");
	if (v->state->n_refs)
		return leat_verify_refuse(v, v->state->pc, 0,
					  "the program ends with a ring buffer record that is neither submitted nor "
					  "discarded");
	return 0;
}

int leat_verify_exit(struct leat_verifier *v, uint32_t *next, bool *ended)
{
	struct leat_vstate *state = v->state;
	struct leat_vframe *frame = leat_vframe(v);
	uint32_t number = state->n_frames - 1;
	int err;

	if (!number)
		return leave_program(v, ended);
	if (frame->reg[BPF_REG_0].kind == LEAT_KIND_STACK && frame->reg[BPF_REG_0].frame == number)
		return leat_verify_refuse(v, state->pc, 1, "the function returns a pointer into its own stack frame");
	err = frame->callback ? check_callback_exit(v, frame) : 0;
	if (err)
		return err;
	state->n_frames--;
	leat_verify_each(state, lose_frame, &number);
	*next = frame->call;
	if (!frame->callback) {
		leat_vframe(v)->reg[BPF_REG_0] = frame->reg[BPF_REG_0];
		*next = frame->call + 1;
	}
	return 0;
}
