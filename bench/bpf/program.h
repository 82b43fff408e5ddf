/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.h: what the bench's programs are written with. Compiled for eBPF they are XDP programs as anybody's; compiled
 * for the machine, by the same clang, they are functions over the same packet, and what a helper does is a call into
 * the same map of leat's: what no engine can beat. With BENCH_RTE they are eBPF for DPDK's library, which knows no
 * context: the argument is the packet itself, of a length that is known, and bounds need no test.
 */
#ifndef LEAT_BENCH_BPF_PROGRAM_H
#define LEAT_BENCH_BPF_PROGRAM_H

#if defined(BENCH_RTE)
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"

#define PROGRAM(name) SEC("rte/" #name) __u64 name(void *packet)
#define PACKET(ctx) packet
#define PACKET_END(ctx) packet + PACKET_LEN
#define INLINE static __attribute__((always_inline)) inline

#define MAP(name, map_type, key_type, value_type, entries, flags) extern __u64 name
#define LOOKUP(name, key) bpf_map_lookup_elem(&(name), key)
#define LOOKUP_ARRAY(name, key, max, value_type) bpf_map_lookup_elem(&(name), key)

#elif defined(__bpf__)
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define PROGRAM(name) SEC("xdp") int name(struct xdp_md *ctx)
#define PACKET(ctx) (void *)(long)(ctx)->data
#define PACKET_END(ctx) (void *)(long)(ctx)->data_end
#define INLINE static __attribute__((always_inline)) inline

#define MAP(name, map_type, key_type, value_type, entries, flags)                                                      \
	struct {                                                                                                       \
		__uint(type, map_type);                                                                                \
		__type(key, key_type);                                                                                 \
		__type(value, value_type);                                                                             \
		__uint(max_entries, entries);                                                                          \
		__uint(map_flags, flags);                                                                              \
	} name SEC(".maps")
#define LOOKUP(name, key) bpf_map_lookup_elem(&(name), key)
#define LOOKUP_ARRAY(name, key, max, value_type) bpf_map_lookup_elem(&(name), key)

#else
#include <linux/bpf.h>

#include "native.h"

#define NATIVE_PASTE(name, suffix) NATIVE_PASTE_(name, suffix)
#define NATIVE_PASTE_(name, suffix) native_##name##suffix
/* NATIVE_SUFFIX: which processor it is compiled for. */
#define PROGRAM(name)                                                                                                  \
	int NATIVE_PASTE(name, NATIVE_SUFFIX)(struct native_packet *ctx);                                              \
	int NATIVE_PASTE(name, NATIVE_SUFFIX)(struct native_packet *ctx)
#define PACKET(ctx) (void *)(ctx)->data
#define PACKET_END(ctx) (void *)(ctx)->data_end
#define INLINE static __attribute__((always_inline)) inline

#define MAP(name, map_type, key_type, value_type, entries, flags) extern struct native_map native_##name
#define LOOKUP(name, key) native_##name.lookup(native_##name.map, key, 0)
#define LOOKUP_ARRAY(name, key, max, value_type)                                                                       \
	(*(key) < (max) ? (value_type *)native_##name.base + *(key) : (value_type *)0)
#endif

#endif
