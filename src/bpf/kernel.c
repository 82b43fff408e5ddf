/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c: asks the running kernel's verifier about a program. Control thread; needs CAP_BPF and CAP_NET_ADMIN.
 *
 * Theory of operation. The image has final code: what is left is to put descriptors where it has numbers of maps. The
 * maps are throw-away ones of the same types and sizes, with as few entries as leave the verifier's answer the same; of
 * constants the kernel gets the contents, too, and that they are. Functions that are given to helpers need types: each
 * function gets the same small one, a static function's, so that functions are verified where they are called.
 *
 * Where the answer is another than that for the file through the kernel's own loader: functions that are global there
 * are verified by themselves; and what CO-RE or the object's own BTF would say of typed pointers does not reach here,
 * as programs that need it are refused by leat before.
 */
#include "bpf/kernel.h"

#include <ctype.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/heap.h"
#include "bpf/object.h"

#define LOG_SIZE (16u << 20)    /* touched as far as it is written */
#define ENTRIES_MAX 64u         /* of maps whose elements come and go: how many there may be tells the verifier nothing */
#define ARRAY_BYTES (1u << 20)  /* of arrays, whose number of elements it knows */
#define FRAGS (1u << 5)         /* BPF_F_XDP_HAS_FRAGS, which older headers do not name */

struct asking {
	struct leat_bpf_prog *prog;
	int map[LEAT_IMAGE_MAPS_MAX]; /* descriptors; -1: not made */
	int btf, types;               /* the object's BTF; that of functions. -1: none */
	struct bpf_insn *insn;
	struct bpf_func_info *func;
	uint32_t n_funcs;
};

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

static void shut(int fd)
{
	if (fd >= 0)
		close(fd);
}

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* ---- answers ---- */

static void answer(struct leat_bpf_prog *prog, enum leat_bpf_kernel_answer answer, const char *words)
{
	char *to = prog->kernel_words;
	size_t i, len = strcspn(words, "\n");

	prog->kernel = answer;
	if (len > LEAT_BPF_KERNEL_WORDS - 1)
		len = LEAT_BPF_KERNEL_WORDS - 1;
	for (i = 0; i < len; i++)
		to[i] = words[i] >= ' ' && words[i] <= '~' ? words[i] : ' ';
	to[len] = '\0';
}

/** Whether an errno says that the kernel does not look at it, not that it does not like it. */
static bool cannot(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -EAGAIN;
}

static void answer_errno(struct leat_bpf_prog *prog, int err, const char *what, const char *name)
{
	char words[LEAT_BPF_KERNEL_WORDS];

	snprintf(words, sizeof(words), "%s%s%s%s", what, name, *what ? ": " : "", strerror(-err));
	answer(prog, cannot(err) ? LEAT_BPF_KERNEL_UNABLE : LEAT_BPF_KERNEL_REFUSES, words);
}

/** The sentence before the verifier's sums, or the last one. */
static const char *last_sentence(char *log)
{
	char *end = log + strlen(log), *line, *sums = strstr(log, "\nprocessed ");

	if (sums)
		end = sums;
	while (end > log && end[-1] == '\n')
		end--;
	*end = '\0';
	line = strrchr(log, '\n');
	return line ? line + 1 : log;
}

/* ---- maps ---- */

/** As many elements as do not change the answer. */
static uint32_t entries(const struct leat_bpf_map *map, uint32_t type)
{
	uint32_t stride = map->value_stride < 8 ? 8 : map->value_stride, max = ENTRIES_MAX;

	if (type == BPF_MAP_TYPE_RINGBUF)
		return (uint32_t)sysconf(_SC_PAGESIZE);
	if (type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY)
		max = stride < ARRAY_BYTES ? ARRAY_BYTES / stride : 1;
	else if (type == BPF_MAP_TYPE_CPUMAP || type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		max = 1;
	if (!map->max_entries)
		return 1;
	return map->max_entries < max ? map->max_entries : max;
}

/** Constants are what leat's own map holds. */
static int freeze(const struct leat_bpf_map *map, int fd)
{
	uint32_t key = 0;
	union bpf_attr attr;
	uint8_t *value = leat_heap_zalloc(map->value_size);
	int err;

	if (!value)
		return -ENOMEM;
	err = leat_bpf_map_lookup((struct leat_bpf_map *)(uintptr_t)map, &key, value);
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	if (!err)
		err = sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	if (!err)
		err = sys_bpf(BPF_MAP_FREEZE, &attr);
	leat_heap_free(value);
	return err;
}

static int make_map(struct asking *a, uint32_t number, int inner);

/** Makes it once. Returns a descriptor or a negative errno. */
static int map_fd(struct asking *a, uint32_t number)
{
	const struct leat_image_map *from = leat_object_image_map(a->prog->obj, number);
	const struct leat_bpf_map *map = &a->prog->obj->map[number];
	int inner = -1, err = 0;

	if (a->map[number] >= 0)
		return a->map[number];
	/* an inner map is none of maps: image.c */
	if (from->inner)
		inner = map_fd(a, from->inner - 1);
	if (inner < -1)
		return inner;
	a->map[number] = make_map(a, number, inner);
	if (a->map[number] >= 0 && map->frozen)
		err = freeze(map, a->map[number]);
	if (a->map[number] < 0 || err) {
		err = err ? err : a->map[number];
		answer_errno(a->prog, err, "it does not make map ", map->name);
		return err;
	}
	return a->map[number];
}

/** As much of a name as the kernel takes. */
static void put_name(char to[BPF_OBJ_NAME_LEN], const char *name)
{
	size_t i;

	for (i = 0; i < BPF_OBJ_NAME_LEN - 1 && name[i]; i++)
		to[i] = isascii(name[i]) && isalnum(name[i]) ? name[i] : '_';
}

static int make_map(struct asking *a, uint32_t number, int inner)
{
	const struct leat_image_map *from = leat_object_image_map(a->prog->obj, number);
	const struct leat_bpf_map *map = &a->prog->obj->map[number];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = from->type;
	attr.key_size = map->key_size;
	attr.value_size = map->value_size;
	attr.max_entries = entries(map, from->type);
	attr.map_flags = from->map_flags; /* leat's own may have more */
	attr.inner_map_fd = inner >= 0 ? (uint32_t)inner : 0;
	put_name(attr.map_name, map->name);
	/* what lies in a value (a lock) is said by its type; maps of some kinds take none */
	if (a->btf >= 0 && from->btf_value && inner < 0) {
		attr.btf_fd = (uint32_t)a->btf;
		attr.btf_key_type_id = from->btf_key;
		attr.btf_value_type_id = from->btf_value;
		fd = sys_bpf(BPF_MAP_CREATE, &attr);
		if (fd >= 0)
			return fd;
		attr.btf_fd = attr.btf_key_type_id = attr.btf_value_type_id = 0;
	}
	return sys_bpf(BPF_MAP_CREATE, &attr);
}

/* ---- types ---- */

static int load_btf(const void *bytes, uint32_t len)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.btf = (uintptr_t)bytes;
	attr.btf_size = len;
	return sys_bpf(BPF_BTF_LOAD, &attr);
}

/** One type for every function: int f(). */
#define TYPE_OF_FUNCTIONS 3u

static int load_types(void)
{
	static const struct {
		struct btf_header head;
		struct btf_type integer;
		uint32_t bits;
		struct btf_type proto, func;
		char strings[7];
	} btf = {
		.head = {
			.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(struct btf_header),
			.type_len = 3 * sizeof(struct btf_type) + sizeof(uint32_t),
			.str_off = 3 * sizeof(struct btf_type) + sizeof(uint32_t),
			.str_len = 7,
		},
		.integer = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.bits = BTF_INT_SIGNED << 24 | 32,
		.proto = { .info = BTF_KIND_FUNC_PROTO << 24, .type = 1 },
		.func = { .name_off = 5, .info = BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC, .type = 2 },
		.strings = "\0int\0f",
	};

	return load_btf(&btf, offsetof(typeof(btf), strings) + sizeof(btf.strings));
}

/* ---- instructions ---- */

/** The function that an instruction names begins there: in *@at. */
static bool names_function(const struct bpf_insn *insn, uint32_t pc, uint32_t *at)
{
	bool call = insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;

	*at = pc + 1 + (uint32_t)insn->imm;
	return call || (is_wide(insn) && insn->src_reg == BPF_PSEUDO_FUNC);
}

/** Says where functions begin: the program, and what it names. Those that are named twice are listed once. */
static int list_functions(struct asking *a)
{
	const struct leat_bpf_prog *prog = a->prog;
	bool *begins = leat_heap_zalloc(prog->n_insns);
	uint32_t pc, at;

	if (!begins)
		return -ENOMEM;
	begins[0] = true;
	for (pc = 0; pc < prog->n_insns; pc += is_wide(&prog->insn[pc]) ? 2 : 1) {
		if (names_function(&prog->insn[pc], pc, &at) && at < prog->n_insns)
			begins[at] = true;
	}
	for (pc = 0; pc < prog->n_insns; pc++)
		a->n_funcs += begins[pc];
	a->func = leat_heap_zalloc(a->n_funcs * sizeof(*a->func));
	for (pc = 0, at = 0; a->func && pc < prog->n_insns; pc++) {
		if (begins[pc])
			a->func[at++] = (struct bpf_func_info){ pc, TYPE_OF_FUNCTIONS };
	}
	leat_heap_free(begins);
	return a->func ? 0 : -ENOMEM;
}

/** What only leat's image has is made what the kernel takes; where it is never reached, what stands for that. */
static int translate_one(struct asking *a, struct bpf_insn *insn)
{
	int fd;

	if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
		insn->src_reg = 0;
		insn->imm = LEAT_IMAGE_POISON;
	}
	if (!is_wide(insn))
		return 0;
	if (insn->src_reg == BPF_PSEUDO_BTF_ID) {
		insn->src_reg = 0;
		insn->imm = 0;
	}
	if (insn->src_reg != BPF_PSEUDO_MAP_FD && insn->src_reg != BPF_PSEUDO_MAP_VALUE)
		return 0;
	fd = map_fd(a, (uint32_t)insn->imm);
	insn->imm = fd;
	return fd < 0 ? fd : 0;
}

static int translate(struct asking *a)
{
	uint32_t pc, n = a->prog->n_insns;
	int err = 0;

	a->insn = leat_heap_alloc(n * sizeof(*a->insn));
	if (!a->insn)
		return -ENOMEM;
	memcpy(a->insn, a->prog->insn, n * sizeof(*a->insn));
	for (pc = 0; !err && pc < n; pc += is_wide(&a->insn[pc]) ? 2 : 1)
		err = translate_one(a, &a->insn[pc]);
	return err;
}

/* ---- asking ---- */

static uint32_t attach_type(const struct leat_bpf_prog *prog)
{
	return prog->flags & LEAT_IMAGE_PROG_DEVMAP ? BPF_XDP_DEVMAP :
	       prog->flags & LEAT_IMAGE_PROG_CPUMAP ? BPF_XDP_CPUMAP : BPF_XDP;
}

/** Returns 0 when it is taken, or a negative errno; @log is NULL or LOG_SIZE bytes. */
static int offer(const struct asking *a, char *log)
{
	const struct leat_bpf_prog *prog = a->prog;
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = attach_type(prog);
	attr.insns = (uintptr_t)a->insn;
	attr.insn_cnt = prog->n_insns;
	attr.license = (uintptr_t)leat_bpf_object_license(prog->obj);
	attr.prog_flags = prog->flags & LEAT_IMAGE_PROG_FRAGS ? FRAGS : 0;
	if (a->types >= 0) {
		attr.prog_btf_fd = (uint32_t)a->types;
		attr.func_info_rec_size = sizeof(*a->func);
		attr.func_info = (uintptr_t)a->func;
		attr.func_info_cnt = a->n_funcs;
	}
	if (log) {
		attr.log_buf = (uintptr_t)log;
		attr.log_size = LOG_SIZE;
		attr.log_level = 1;
	}
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	shut(fd);
	return fd < 0 ? fd : 0;
}

/** The log is long, and of interest only when the program is refused: then it is offered once more. */
static void offer_and_answer(struct asking *a)
{
	int err = offer(a, NULL);
	char *log;

	if (!err) {
		answer(a->prog, LEAT_BPF_KERNEL_ACCEPTS, "");
		return;
	}
	answer_errno(a->prog, err, "", "");
	if (cannot(err))
		return;
	log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (log == MAP_FAILED)
		return;
	offer(a, log);
	log[LOG_SIZE - 1] = '\0';
	if (*log)
		answer(a->prog, LEAT_BPF_KERNEL_REFUSES, last_sentence(log));
	munmap(log, LOG_SIZE);
}

int leat_bpf_kernel_ask(struct leat_bpf_prog *prog)
{
	const struct leat_bpf_object *obj = prog->obj;
	struct asking *a = leat_heap_zalloc(sizeof(*a));
	uint32_t i;
	int err;

	if (!a)
		return -ENOMEM;
	prog->kernel = LEAT_BPF_KERNEL_NOT_ASKED;
	prog->kernel_words[0] = '\0';
	a->prog = prog;
	for (i = 0; i < LEAT_IMAGE_MAPS_MAX; i++)
		a->map[i] = -1;
	a->btf = obj->head->btf.n ? load_btf(obj->image + obj->head->btf.off, obj->head->btf.n) : -1;
	a->types = load_types();
	err = list_functions(a);
	if (!err)
		err = translate(a);
	if (!err)
		offer_and_answer(a);
	for (i = 0; i < LEAT_IMAGE_MAPS_MAX; i++)
		shut(a->map[i]);
	shut(a->btf);
	shut(a->types);
	leat_heap_free(a->func);
	leat_heap_free(a->insn);
	leat_heap_free(a);
	/* what the kernel said of a map is an answer */
	return err == -ENOMEM && prog->kernel == LEAT_BPF_KERNEL_NOT_ASKED ? -ENOMEM : 0;
}
