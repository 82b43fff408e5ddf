/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_load.c: any bytes as an ELF object through what leat-load does, in this process. An image that comes of it must
 * pass the library's check; an object that is refused must be refused with a sentence.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/load/load.h"
#include "bpf/prog.h"
#include "fuzz.h"

const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);

static unsigned int sentences;

/* Whole stacks, so that the suppression below is found in them. */
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

/* libbpf 1.1 leaks on its way out of damaged relocations; leat-load ends then. */
const char *__lsan_default_suppressions(void)
{
	return "leak:bpf_object_load\nleak:bpf_object_open\n";
}

static void say(void *arg, const char *sentence)
{
	(void)arg;
	sentences += *sentence != '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct load load;
	struct load_bytes image = {0};
	int err;

	sentences = 0;
	memset(&load, 0, sizeof(load));
	load.say = say;
	load.btf_fd = -1;
	load_bytes_add(&load.elf.file, data, size);
	err = load_object(&load, &image);
	if (err ? !sentences : leat_image_check(image.p, image.len, NULL) != 0)
		abort();
	load_bytes_fini(&image);
	return 0;
}
