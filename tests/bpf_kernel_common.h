/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_kernel_common.h: the kernel as an oracle: one program, one packet, what it says and what it leaves in the packet.
 */
#ifndef LEAT_TESTS_BPF_KERNEL_COMMON_H
#define LEAT_TESTS_BPF_KERNEL_COMMON_H

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int kernel_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

static inline uint64_t kernel_ptr(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

/** Loads an XDP program: a descriptor, or a negative errno; why goes to @log. */
static inline int kernel_load(const struct bpf_insn *insn, uint32_t n, char *log, uint32_t log_size)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = kernel_ptr(insn);
	attr.insn_cnt = n;
	attr.license = kernel_ptr("Dual BSD/GPL");
	if (log_size) {
		log[0] = '\0';
		attr.log_buf = kernel_ptr(log);
		attr.log_size = log_size;
		attr.log_level = 1;
	}
	fd = kernel_bpf(BPF_PROG_LOAD, &attr);
	return fd < 0 ? -errno : fd;
}

/** Runs it once on the @len bytes at @packet, which become what it leaves there. Returns 0 or a negative errno. */
static inline int kernel_run(int fd, uint8_t *packet, uint32_t len, uint32_t *r0)
{
	uint8_t out[4096];
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)fd;
	attr.test.data_in = kernel_ptr(packet);
	attr.test.data_size_in = len;
	attr.test.data_out = kernel_ptr(out);
	attr.test.data_size_out = sizeof(out);
	attr.test.repeat = 1;
	if (kernel_bpf(BPF_PROG_TEST_RUN, &attr) < 0)
		return -errno;
	memcpy(packet, out, len);
	*r0 = attr.test.retval;
	return 0;
}

/** Whether we may ask at all. */
static inline int kernel_answers(void)
{
	static const struct bpf_insn insn[2] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 2 },
						 { .code = BPF_JMP | BPF_EXIT } };
	uint8_t packet[64] = { 0 };
	uint32_t r0 = 0;
	int fd = kernel_load(insn, 2, NULL, 0), err;

	if (fd < 0)
		return 0;
	err = kernel_run(fd, packet, sizeof(packet), &r0);
	close(fd);
	return !err && r0 == 2;
}

#endif
