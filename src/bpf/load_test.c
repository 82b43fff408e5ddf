/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load_test.c: objects that clang made from tests/bpf/load_*.bpf.c, and those of Debian's xdp-tools, come through
 * leat-load as they are meant; what is wrong with an object is said in a sentence; hostile bytes end leat-load, not us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <leat/bpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/heap.h"
#include "bpf/image.h"
#include "bpf/map/map.h"
#include "bpf/prog.h"

static struct leat_bpf_env *env;
static struct leat_diag *diag;
static struct leat_bpf_object *obj;

static const char *object_path(const char *name)
{
	static char path[1024];
	const char *build = getenv("LEAT_BUILD");

	snprintf(path, sizeof(path), "%s/tests/bpf/%s.bpf.o", build ? build : "build", name);
	return path;
}

static const char *message(unsigned int idx)
{
	const struct leat_diag_entry *entry = leat_diag_get(diag, idx);

	return entry ? entry->message : "(nothing)";
}

static void assert_message(const char *part)
{
	if (!strstr(message(0), part)) {
		print_error("not '%s' but: %s\n", part, message(0));
		fail();
	}
}

/** Opens an object of the tests. Without clang there are none, without libbpf no leat-load. */
static int open_as(const char *name, const struct leat_bpf_object_opts *opts)
{
	const char *path = object_path(name);

	if (access(path, R_OK) || !getenv("LEAT_LOAD"))
		skip();
	return leat_bpf_object_open(env, path, opts, diag, &obj);
}

static void open_good(const char *name)
{
	int err = open_as(name, NULL);

	if (err)
		print_error("%s\n", message(0));
	assert_int_equal(err, 0);
	assert_int_equal(leat_diag_count(diag), 0);
}

static struct leat_bpf_prog *prog(const char *name)
{
	struct leat_bpf_prog *found = leat_bpf_object_prog_find(obj, name);

	assert_non_null(found);
	return found;
}

static struct leat_bpf_map_info info_of(const char *name)
{
	struct leat_bpf_map *map = leat_bpf_object_map_find(obj, name);
	struct leat_bpf_map_info info;

	assert_non_null(map);
	leat_bpf_map_info(map, &info);
	return info;
}

/* ---- what objects hold ---- */

static void programs_of_all_kinds(void **state)
{
	static const char *const names[] = {"first", "last", "with_frags", "on_egress", "on_cpu", "old_name"};
	unsigned int i;

	(void)state;
	open_good("load_several");
	for (i = 0; i < 6; i++)
		assert_string_equal(leat_bpf_prog_name(prog(names[i])), names[i]);
	assert_non_null(leat_bpf_object_prog_get(obj, 5));
	assert_null(leat_bpf_object_prog_get(obj, 6)); /* neither tc nor an unknown section */
	assert_string_equal(leat_bpf_prog_name(prog("xdp/devmap")), "on_egress");
	assert_true(leat_bpf_prog_frags(prog("with_frags")));
	assert_false(leat_bpf_prog_frags(prog("first")));
	assert_int_equal(prog("on_egress")->flags, LEAT_IMAGE_PROG_DEVMAP);
	assert_int_equal(prog("on_cpu")->flags, LEAT_IMAGE_PROG_CPUMAP);
	assert_string_equal(leat_bpf_object_license(obj), "Dual BSD/GPL");
}

static void run_configuration(void **state)
{
	(void)state;
	open_good("load_several");
	assert_int_equal(leat_bpf_prog_run_prio(prog("first")), 10);
	assert_int_equal(leat_bpf_prog_chain_actions(prog("first")), 1 << LEAT_XDP_DROP);
	assert_int_equal(leat_bpf_prog_run_prio(prog("last")), 50);
	assert_int_equal(leat_bpf_prog_chain_actions(prog("last")), 1 << LEAT_XDP_PASS);
}

static void maps_of_btf(void **state)
{
	struct leat_bpf_map_info info;

	(void)state;
	open_good("load_several");
	info = info_of("flows");
	assert_int_equal(info.type, BPF_MAP_TYPE_HASH);
	assert_int_equal(info.key_size, 8);
	assert_int_equal(info.value_size, 8);
	assert_int_equal(info.max_entries, 1000);
	assert_int_equal(info.flags, BPF_F_NO_PREALLOC);
	assert_true(info.btf_key && info.btf_value);
	assert_int_equal(info_of("events").max_entries, LEAT_BPF_CPUS_MAX);
	assert_int_equal(info_of("jumps").max_entries, 8);
	assert_true(info_of(".rodata").internal);
	assert_false(info.internal);
}

static void global_data(void **state)
{
	const uint32_t zero = 0;
	uint64_t start = 0;
	uint32_t limit = 0, seen = 1;

	(void)state;
	open_good("load_several");
	assert_int_equal(leat_bpf_object_load(obj, "first", diag), 0);
	assert_int_equal(leat_bpf_map_lookup(leat_bpf_object_map_find(obj, ".data"), &zero, &start), 0);
	assert_true(start == 0x1122334455667788);
	assert_int_equal(leat_bpf_map_lookup(leat_bpf_object_map_find(obj, ".bss"), &zero, &seen), 0);
	assert_int_equal(seen, 0);
	assert_int_equal(leat_bpf_map_lookup(leat_bpf_object_map_find(obj, ".rodata"), &zero, &limit), 0);
	assert_int_equal(limit, 1500);
	assert_int_equal(leat_bpf_map_update(leat_bpf_object_map_find(obj, ".rodata"), &zero, &seen, 0), -EPERM);
}

static void initial_elements(void **state)
{
	struct leat_bpf_map *jumps;

	(void)state;
	open_good("load_several");
	assert_int_equal(leat_bpf_object_load(obj, "first", diag), 0);
	jumps = leat_bpf_object_map_find(obj, "jumps");
	assert_ptr_equal(leat_bpf_prog_array_get(jumps, 2), prog("last"));
	assert_ptr_equal(leat_bpf_prog_array_get(jumps, 5), prog("first"));
	assert_null(leat_bpf_prog_array_get(jumps, 0));
	/* what "first" needs, and no more */
	assert_true(prog("last")->loaded);
	assert_false(prog("with_frags")->loaded);
	assert_null(leat_bpf_object_map_find(obj, "events"));
	assert_non_null(leat_bpf_object_map_find(obj, "flows"));
}

static void all_programs_load(void **state)
{
	(void)state;
	open_good("load_several");
	if (leat_bpf_object_load(obj, NULL, diag))
		fail_msg("%s", message(0));
	assert_true(prog("with_frags")->loaded);
	assert_int_equal(leat_bpf_object_load(obj, NULL, diag), -EINVAL); /* once */
}

static void lines_of_the_source(void **state)
{
	char source[256];

	(void)state;
	open_good("load_several");
	leat_bpf_prog_source(prog("last"), 0, source, sizeof(source));
	assert_non_null(strstr(source, "load_several.bpf.c:"));
	assert_non_null(strstr(source, ": return XDP_TX;"));
}

static void subprograms_are_appended(void **state)
{
	const struct leat_bpf_prog *first;
	unsigned int calls = 0;
	uint32_t i;

	(void)state;
	open_good("load_several");
	first = prog("first");
	for (i = 0; i < first->n_insns; i++)
		calls += first->insn[i].code == (BPF_JMP | BPF_CALL) && first->insn[i].src_reg == BPF_PSEUDO_CALL &&
			 i + 1 + (uint32_t)first->insn[i].imm < first->n_insns;
	assert_int_equal(calls, 2);
}

static void check_legacy(bool with_btf)
{
	struct leat_bpf_map_info info;

	info = info_of("flows");
	assert_int_equal(info.type, BPF_MAP_TYPE_HASH);
	assert_int_equal(info.key_size, 8);
	assert_int_equal(info.value_size, 24);
	assert_int_equal(info.max_entries, 77);
	assert_int_equal(info.flags, BPF_F_NO_PREALLOC);
	info = info_of("counts");
	assert_int_equal(info.type, BPF_MAP_TYPE_PERCPU_ARRAY);
	assert_int_equal(info.value_size, 8);
	assert_int_equal(info.btf_key != 0, with_btf); /* by the annotation */
	assert_int_equal(info.btf_value != 0, with_btf);
	assert_int_equal(info_of("hidden").max_entries, 3);
	if (leat_bpf_object_load(obj, NULL, diag))
		fail_msg("%s", message(0));
}

static void legacy_maps(void **state)
{
	(void)state;
	open_good("load_legacy");
	check_legacy(true);
}

static void legacy_maps_without_btf(void **state)
{
	(void)state;
	open_good("load_legacy_plain");
	check_legacy(false);
}

static void maps_in_maps(void **state)
{
	const struct leat_image_map *maps;
	const struct leat_image_init *inits;
	const uint32_t one = 1;

	(void)state;
	open_good("load_nested");
	maps = (const void *)(obj->image + obj->head->maps.off);
	inits = (const void *)(obj->image + obj->head->inits.off);
	assert_int_equal(obj->n_maps, 3);
	assert_int_equal(maps[1].type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	assert_int_equal(maps[1].inner, 3);
	assert_int_equal(maps[2].flags, LEAT_IMAGE_MAP_TEMPLATE);
	assert_int_equal(maps[2].max_entries, 5);
	assert_int_equal(maps[1].inits.n, 1);
	assert_int_equal(inits[maps[1].inits.off].index, 1);
	assert_int_equal(inits[maps[1].inits.off].map, 1);
	assert_int_equal(leat_bpf_object_load(obj, NULL, diag), 0);
	assert_ptr_equal(leat_bpf_map_get_inner(&obj->map[1], &one), &obj->map[0]);
	assert_null(leat_bpf_object_map_get(obj, 2)); /* the template is none */
}

/** With another size it is not like the template any more. */
static void inner_maps_that_do_not_fit(void **state)
{
	(void)state;
	open_good("load_nested");
	assert_int_equal(leat_bpf_object_resize(obj, "inner_one", 6), 0);
	assert_int_equal(leat_bpf_object_load(obj, NULL, diag), -EINVAL);
	assert_string_equal(message(0), "map 'outer' does not take its first element 1: it is not like the template");
}

static void static_entry_and_strange_pinning(void **state)
{
	const struct leat_image_map *maps;

	(void)state;
	open_good("load_static");
	assert_int_equal(leat_bpf_object_load(obj, "entry", diag), 0);
	maps = (const void *)(obj->image + obj->head->maps.off);
	assert_int_equal(maps[0].flags, LEAT_IMAGE_MAP_PINNED);
	assert_int_equal(maps[0].key_size, 16); /* its number shares a type with that of the pinning */
}

/* ---- CO-RE ---- */

/** The value that "core" returns when bytes n of the map hold n. */
static uint32_t run_core(void)
{
	struct leat_xdp_buff xdp = {0};
	const uint32_t zero = 0;
	uint8_t bytes[64];
	unsigned int i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 4 ? 0 : (uint8_t)i;
	if (leat_bpf_object_load(obj, "core", diag))
		fail_msg("%s", message(0));
	assert_int_equal(leat_bpf_map_update(leat_bpf_object_map_find(obj, "bytes"), &zero, bytes, 0), 0);
	return leat_bpf_prog_run(prog("core"), &xdp, 0);
}

static void members_where_the_kernel_has_them(void **state)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts)};
	char target[1024];

	(void)state;
	snprintf(target, sizeof(target), "%s", object_path("load_core_target"));
	opts.btf = target;
	assert_int_equal(open_as("load_core", &opts), 0);
	assert_int_equal(run_core(), 24); /* b after 24 bytes; no member gone */
}

static void members_where_the_compiler_saw_them(void **state)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts), .btf = "/dev/null"};

	(void)state;
	assert_int_equal(open_as("load_core", &opts), 0);
	assert_int_equal(run_core(), 1004);
}

static void members_that_are_missing(void **state)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts)};
	char target[1024];

	(void)state;
	snprintf(target, sizeof(target), "%s", object_path("load_core_target"));
	opts.btf = target;
	assert_int_equal(open_as("load_core", &opts), 0);
	assert_true(leat_bpf_object_load(obj, "core_poison", diag) < 0);
	assert_message("core_poison: instruction ");
	assert_message("CO-RE");
}

static void btf_that_is_not_there(void **state)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts), .btf = "/nowhere/btf"};

	(void)state;
	assert_int_equal(open_as("load_core", &opts), -ENOENT);
	assert_message("/nowhere/btf");
}

/* ---- refusals ---- */

static void functions_of_the_kernel(void **state)
{
	(void)state;
	open_good("load_kfunc");
	assert_true(leat_bpf_object_load(obj, "calls_kernel", diag) < 0);
	assert_message("calls_kernel: instruction ");
	assert_message("load_kfunc.bpf.c:");
	assert_message("bpf_xdp_something_new");
	assert_int_equal(leat_bpf_object_load(obj, "innocent", NULL), 0);
}

static void variables_of_the_kernel(void **state)
{
	(void)state;
	open_good("load_kfunc");
	assert_true(leat_bpf_object_load(obj, "reads_kernel", diag) < 0);
	assert_message("reads_kernel: instruction ");
}

static void unknown_types_of_maps(void **state)
{
	(void)state;
	open_good("load_queue");
	assert_int_equal(leat_bpf_object_load(obj, NULL, diag), -EOPNOTSUPP);
	assert_message("uses_queue: instruction ");
	assert_message("load_queue.bpf.c:");
	assert_message("'queue'");
	assert_int_equal(leat_bpf_object_load(obj, "uses_array", NULL), 0); /* needs no queue */
}

static void undefined_symbols(void **state)
{
	(void)state;
	assert_int_equal(open_as("load_undefined", NULL), -EINVAL);
	assert_message("calls_nothing: instruction 3 (load_undefined.bpf.c:");
	assert_message("'nowhere'");
	assert_int_equal(leat_diag_count(diag), 1);
}

static void programs_that_are_not_there(void **state)
{
	(void)state;
	open_good("load_several");
	assert_int_equal(leat_bpf_object_load(obj, "frist", diag), -ENOENT);
	assert_message("'first'");
}

static void objects_without_xdp(void **state)
{
	(void)state;
	assert_int_equal(open_as("load_core_target", NULL), -EINVAL);
	assert_message("no XDP program");
	assert_string_equal(leat_diag_get(diag, 0)->file, object_path("load_core_target"));
}

static void other_byte_order(void **state)
{
	(void)state;
	assert_int_equal(open_as("load_big_endian", NULL), -EINVAL);
	assert_message("byte order");
}

static void files_that_are_none(void **state)
{
	(void)state;
	if (!getenv("LEAT_LOAD"))
		skip();
	assert_int_equal(leat_bpf_object_open(env, "/nowhere/object.o", NULL, diag, &obj), -ENOENT);
	assert_message("cannot be opened");
	assert_int_equal(leat_bpf_object_open(env, "/tmp", NULL, NULL, &obj), -EISDIR);
	assert_int_equal(leat_bpf_object_open(env, "/dev/zero", NULL, NULL, &obj), -EINVAL);
	assert_int_equal(leat_bpf_object_open(env, "/dev/null", NULL, NULL, &obj), -EINVAL);
}

/* ---- bytes that nobody should have made ---- */

static char scratch[64];

static int open_bytes(const void *bytes, size_t len)
{
	FILE *f = fopen(scratch, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
	leat_bpf_object_close(obj);
	obj = NULL;
	leat_diag_destroy(diag);
	diag = leat_diag_create();
	return leat_bpf_object_open(env, scratch, NULL, diag, &obj);
}

/** The bytes of an object (free() them). */
static uint8_t *read_object(const char *name, size_t *len)
{
	uint8_t *bytes;
	struct stat st;
	FILE *f;

	f = getenv("LEAT_LOAD") ? fopen(object_path(name), "r") : NULL;
	if (!f)
		skip();
	assert_int_equal(fstat(fileno(f), &st), 0);
	*len = (size_t)st.st_size;
	bytes = malloc(*len);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *len, f), *len);
	fclose(f);
	return bytes;
}

static void not_an_elf_file(void **state)
{
	(void)state;
	if (!getenv("LEAT_LOAD"))
		skip();
	assert_int_equal(open_bytes("#!/bin/sh\n", 10), -EINVAL);
	assert_message("is not an ELF file");
	assert_int_equal(open_bytes("", 0), -EINVAL);
	assert_message("is not an ELF file");
	assert_int_equal(open_bytes(ELFMAG "xx", 6), -EINVAL);
	assert_message("is cut short");
}

static void another_machine(void **state)
{
	Elf64_Ehdr *head;
	uint8_t *bytes;
	size_t len;

	(void)state;
	bytes = read_object("load_static", &len);
	head = (void *)bytes;
	head->e_machine = EM_X86_64;
	assert_int_equal(open_bytes(bytes, len), -EINVAL);
	assert_message("another machine");
	head->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_bytes(bytes, len), -EINVAL);
	assert_message("32-bit");
	free(bytes);
}

static void cut_files(void **state)
{
	uint8_t *bytes;
	size_t len, cut;

	(void)state;
	bytes = read_object("load_several", &len);
	for (cut = 0; cut < len; cut += cut < 128 ? 4 : 97) {
		assert_int_equal(open_bytes(bytes, cut), -EINVAL);
		assert_int_equal(leat_diag_count(diag), 1);
	}
	assert_int_equal(open_bytes(bytes, len), 0);
	free(bytes);
}

/** Whatever a byte is changed to: an object, or one sentence. */
static void changed_bytes(void **state)
{
	uint8_t *bytes, *changed;
	unsigned int seed = 5, i, j;
	size_t len;

	(void)state;
	bytes = read_object("load_several", &len);
	changed = malloc(len);
	assert_non_null(changed);
	for (i = 0; i < 300; i++) {
		memcpy(changed, bytes, len);
		for (j = 0; j < 1 + i % 4; j++)
			changed[(size_t)rand_r(&seed) % len] = (uint8_t)rand_r(&seed);
		if (open_bytes(changed, len))
			assert_true(leat_diag_count(diag) > 0);
	}
	free(changed);
	free(bytes);
}

/* ---- leat-load itself ---- */

/** Runs a shell script in place of leat-load. */
static int open_with(const char *script, unsigned int timeout_ms)
{
	struct leat_bpf_object_opts opts = {.size = sizeof(opts), .loader = scratch, .timeout_ms = timeout_ms};
	FILE *f = fopen(scratch, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(scratch, 0700), 0);
	leat_diag_destroy(diag);
	diag = leat_diag_create();
	return leat_bpf_object_open(env, "/proc/self/exe", &opts, diag, &obj);
}

static void loaders_that_fail(void **state)
{
	(void)state;
	assert_int_equal(open_with("kill -SEGV $$", 0), -EINVAL);
	assert_message("SIGSEGV");
	assert_int_equal(open_with("exec sleep 60", 50), -ETIMEDOUT);
	assert_message("longer than 50 ms");
	assert_int_equal(open_with("exec 5>&-; exec sleep 60", 50), -ETIMEDOUT);
	assert_int_equal(open_with("exit 3", 0), -EINVAL);
	assert_message("status 3");
	assert_int_equal(open_with("echo one >&5; echo two >&5; exit 1", 0), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 2);
	assert_string_equal(message(1), "two");
	assert_int_equal(open_with("exit 0", 0), -EINVAL); /* no image */
	assert_int_equal(open_with("echo something >&4; exit 0", 0), -EINVAL);
	assert_message("no image");
	assert_int_equal(open_with("yes hello >&5", 300), -ETIMEDOUT);
	assert_int_equal(open_with("yes hello | head -n 100000 >&5; exit 1", 0), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 64);
}

static void loaders_see_only_what_is_theirs(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY), high;

	(void)state;
	assert_true(fd >= 0);
	high = fcntl(fd, F_DUPFD, 40);
	assert_true(high >= 0);
	setenv("A_SECRET", "x", 1);
	assert_int_equal(open_with("for n in 7 8 9 40; do [ ! -e /proc/self/fd/$n ] || echo fd $n >&5; done\n"
				   "[ -z \"$A_SECRET\" ] || echo environment >&5\n"
				   "echo end >&5; exit 1", 0), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_message("end");
	close(fd);
	close(high);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/** Whether a file of /proc/PID says @text. */
static bool proc_says(pid_t pid, const char *name, const char *text)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, text, strlen(text));
	if (f)
		fclose(f);
	return found;
}

/** Starts leat-load on a pipe, so that it waits for the object's bytes with all doors closed. */
static pid_t start_on_pipe(int *write_end)
{
	int ends[2], null = open("/dev/null", O_RDWR), fd;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(null >= 0);
	pid = fork();
	if (!pid) {
		fd = fcntl(ends[0], F_DUPFD, 20); /* out of the way of what follows */
		null = fcntl(null, F_DUPFD, 20);
		dup2(fd, 3);
		dup2(null, 4);
		dup2(null, 5);
		dup2(null, 6);
		execl(getenv("LEAT_LOAD"), "leat-load", (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	close(null);
	*write_end = ends[1];
	return pid;
}

static void doors_are_closed(void **state)
{
	int write_end, waited = 0, status;
	pid_t pid;

	(void)state;
	if (!getenv("LEAT_LOAD"))
		skip();
	pid = start_on_pipe(&write_end);
	assert_true(pid > 0);
	while (!proc_says(pid, "status", SANITIZED ? "NoNewPrivs:\t1" : "Seccomp:\t2") && waited++ < 5000)
		usleep(1000);
	assert_true(waited < 5000);
	assert_true(proc_says(pid, "status", "NoNewPrivs:\t1"));
	assert_true(proc_says(pid, "limits", "Max core file size        0 "));
	assert_true(proc_says(pid, "limits", "Max file size             67108864 "));
	assert_true(proc_says(pid, "limits", "Max cpu time              10 "));
	assert_true(SANITIZED || proc_says(pid, "limits", "Max address space         536870912 "));
	close(write_end); /* an empty object */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void memory_runs_out(void **state)
{
	unsigned long nth;
	int err;

	(void)state;
	open_good("load_several");
	for (nth = 1;; nth++) {
		leat_bpf_object_close(obj);
		obj = NULL;
		leat_heap_fail_nth(nth);
		err = leat_bpf_object_open(env, object_path("load_several"), NULL, NULL, &obj);
		if (!err)
			err = leat_bpf_object_load(obj, NULL, NULL);
		if (!leat_heap_failed())
			break;
		leat_heap_fail_nth(0);
	}
	leat_heap_fail_nth(0);
	assert_int_equal(err, 0);
	assert_true(nth > 20);
}

/* ---- Debian's ---- */

static void objects_of_xdp_tools(void **state)
{
	static const char *const places[] = {"/usr/lib/*/bpf/xdpfilt_*.o", "/usr/lib/*/bpf/xsk_def_xdp_prog*.o",
					     "/usr/lib/*/bpf/xdp-dispatcher.o", "/usr/lib/*/bpf/xdpdump_xdp.o",
					     "/usr/libexec/xdp-tools/*.o"};
	glob_t found;
	size_t i;

	(void)state;
	memset(&found, 0, sizeof(found));
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		glob(places[i], i ? GLOB_APPEND : 0, NULL, &found);
	if (!found.gl_pathc || !getenv("LEAT_LOAD")) {
		globfree(&found);
		skip();
	}
	for (i = 0; i < found.gl_pathc; i++) {
		if (leat_bpf_object_open(env, found.gl_pathv[i], NULL, diag, &obj))
			fail_msg("%s: %s", found.gl_pathv[i], message(0));
		assert_non_null(leat_bpf_object_prog_get(obj, 0));
		leat_bpf_object_close(obj);
		obj = NULL;
	}
	globfree(&found);
}

/* ---- */

static int begin(void **state)
{
	(void)state;
	snprintf(scratch, sizeof(scratch), "/tmp/leat-load-test.%d", (int)getpid());
	obj = NULL;
	diag = leat_diag_create();
	return diag ? leat_bpf_env_create(NULL, &env) : -1;
}

static int end(void **state)
{
	(void)state;
	leat_bpf_object_close(obj);
	leat_bpf_env_destroy(env);
	leat_diag_destroy(diag);
	unlink(scratch);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(programs_of_all_kinds),
		TEST(run_configuration),
		TEST(maps_of_btf),
		TEST(global_data),
		TEST(initial_elements),
		TEST(all_programs_load),
		TEST(lines_of_the_source),
		TEST(subprograms_are_appended),
		TEST(legacy_maps),
		TEST(legacy_maps_without_btf),
		TEST(maps_in_maps),
		TEST(inner_maps_that_do_not_fit),
		TEST(static_entry_and_strange_pinning),
		TEST(members_where_the_kernel_has_them),
		TEST(members_where_the_compiler_saw_them),
		TEST(members_that_are_missing),
		TEST(btf_that_is_not_there),
		TEST(functions_of_the_kernel),
		TEST(variables_of_the_kernel),
		TEST(unknown_types_of_maps),
		TEST(undefined_symbols),
		TEST(programs_that_are_not_there),
		TEST(objects_without_xdp),
		TEST(other_byte_order),
		TEST(files_that_are_none),
		TEST(not_an_elf_file),
		TEST(another_machine),
		TEST(cut_files),
		TEST(changed_bytes),
		TEST(loaders_that_fail),
		TEST(loaders_see_only_what_is_theirs),
		TEST(doors_are_closed),
		TEST(memory_runs_out),
		TEST(objects_of_xdp_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
