/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h: words that the kernel's headers say and the user's do not, for programs that are written to be compiled
 * within the kernel's tree: what they use of them, no more. On little-endian machines.
 */
#ifndef LEAT_TESTS_BPF_LINUX_KERNEL_H
#define LEAT_TESTS_BPF_LINUX_KERNEL_H

#include <linux/types.h>
#include <linux/tcp.h>
#include <linux/udp.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define AF_INET 2
#define AF_INET6 10

#define __force
#define __packed __attribute__((packed))
#define unlikely(x) __builtin_expect(!!(x), 0)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)
#define cpu_to_be32(x) __builtin_bswap32(x)

/** What follows the type of an Ethernet header that says 802.1Q or 802.1ad. */
struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

#endif
