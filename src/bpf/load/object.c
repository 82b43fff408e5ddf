/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.c: the way of one object through leat-load. libbpf opens it, our choice of programs is made, and libbpf
 * "loads" it: what it hands to bpf(2) is what the image is made of.
 *
 * XDP programs are those whose section libbpf knows as XDP, and those in sections that it does not know but that begin
 * with "xdp" ("xdp_pass", as programs were called before libbpf 1.0). When there is none of these, programs in unknown
 * sections are taken for XDP; all other kinds are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files.h"
#include "load.h"

/* Sections of before libbpf 1.0. */
static const struct {
	const char *prefix;
	enum bpf_attach_type attach;
} old_sections[] = {
	{"xdp_devmap/", BPF_XDP_DEVMAP},
	{"xdp_cpumap/", BPF_XDP_CPUMAP},
	{"xdp", BPF_XDP},
};

static bool is_xdp(struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);
	size_t i;

	if (bpf_program__type(prog) != BPF_PROG_TYPE_UNSPEC)
		return bpf_program__type(prog) == BPF_PROG_TYPE_XDP;
	for (i = 0; i < sizeof(old_sections) / sizeof(old_sections[0]); i++)
		if (!strncmp(section, old_sections[i].prefix, strlen(old_sections[i].prefix))) {
			bpf_program__set_type(prog, BPF_PROG_TYPE_XDP);
			bpf_program__set_expected_attach_type(prog, old_sections[i].attach);
			return true;
		}
	return false;
}

static bool is_unknown(struct bpf_program *prog)
{
	if (bpf_program__type(prog) != BPF_PROG_TYPE_UNSPEC)
		return false;
	bpf_program__set_type(prog, BPF_PROG_TYPE_XDP);
	return true;
}

static uint32_t count(const struct bpf_object *obj, bool (*wanted)(struct bpf_program *prog))
{
	struct bpf_program *prog;
	uint32_t n = 0;

	bpf_object__for_each_program(prog, obj)
		n += wanted(prog);
	return n;
}

/* Chooses the programs; each gets a log buffer, by whose address PROG_LOAD will know it. */
static int choose_programs(struct load *load)
{
	struct bpf_program *prog;
	struct load_prog *to;
	uint32_t n = count(load->obj, is_xdp);

	if (!n)
		n = count(load->obj, is_unknown);
	if (!n || n > LEAT_IMAGE_PROGS_MAX) {
		if (n)
			load_say(load, "has %u XDP programs, more than %u", n, LEAT_IMAGE_PROGS_MAX);
		else
			load_say(load, "has no XDP program: none in a section \"xdp\"");
		return -EINVAL;
	}
	load->prog = calloc(n, sizeof(*load->prog));
	if (!load->prog)
		return -ENOMEM;
	bpf_object__for_each_program(prog, load->obj) {
		bpf_program__set_autoload(prog, bpf_program__type(prog) == BPF_PROG_TYPE_XDP);
		if (!bpf_program__autoload(prog) || load->n_progs == n)
			continue;
		to = &load->prog[load->n_progs++];
		to->prog = prog;
		to->name = bpf_program__name(prog);
		bpf_program__set_log_level(prog, 1);
		bpf_program__set_log_buf(prog, to->log, sizeof(to->log));
	}
	return 0;
}

/* Nothing is pinned; that it was asked for is noted. */
static void forget_pins(struct load *load)
{
	struct bpf_map *map;
	unsigned int n = 0;

	bpf_object__for_each_map(map, load->obj) {
		if (n < LEAT_IMAGE_MAPS_MAX)
			load->pinned[n] = bpf_map__pin_path(map) != NULL;
		bpf_map__set_pin_path(map, NULL);
		n++;
	}
}

static void note_btf(struct load *load)
{
	Elf64_Shdr sh;

	load->own_btf = NULL;
	load->own_btf_len = 0;
	if (!load_elf_find(&load->elf, ".BTF", &sh))
		return;
	load->own_btf = load_elf_content(&load->elf, &sh);
	load->own_btf_len = load->own_btf ? sh.sh_size : 0;
}

static int open_object(struct load *load)
{
	struct bpf_object_open_opts opts = {
		.sz = sizeof(opts),
		.object_name = "o",
		.btf_custom_path = LOAD_KERNEL_BTF,
	};
	int err;

	err = load_elf_fixup(load);
	if (err)
		return err;
	note_btf(load);
	load->obj = bpf_object__open_mem(load->elf.file.p, load->elf.file.len, &opts);
	err = (int)libbpf_get_error(load->obj);
	if (err)
		load->obj = NULL;
	return err;
}

static int run(struct load *load, struct load_bytes *image)
{
	int err;

	err = open_object(load);
	if (err)
		return err;
	err = choose_programs(load);
	if (err)
		return err;
	forget_pins(load);
	err = bpf_object__load(load->obj);
	if (err)
		return err;
	return load_write(load, image);
}

int load_object(struct load *load, struct load_bytes *image)
{
	int err;

	load->spare_fd = memfd_create("leat-load", MFD_CLOEXEC);
	if (load->spare_fd < 0)
		return -errno;
	load_current = load;
	libbpf_set_print(load_print);
	err = run(load, image);
	if (err && !load->said)
		load_complain(load, err);
	bpf_object__close(load->obj);
	load->obj = NULL;
	load_records_fini(load);
	load_bytes_fini(&load->elf.file);
	load_current = NULL;
	close(load->spare_fd);
	return err;
}
