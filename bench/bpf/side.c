/* SPDX-License-Identifier: BSD-3-Clause */
/* side.c: what all sides share: the packet, what the maps hold, and the object files as files. */
#include "side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const bench_program_name[N_PROGRAMS] = {
#define BENCH_PROGRAM(name, about) #name,
	BENCH_PROGRAMS
#undef BENCH_PROGRAM
};

const char *const bench_map_name[N_MAPS] = {
#define BENCH_MAP(name) #name,
	BENCH_MAPS
#undef BENCH_MAP
};

static uint16_t checksum(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

void bench_make_packet(uint8_t *packet)
{
	static const struct ether_header eth = {
		.ether_dhost = { 2, 0, 0, 0, 0, 1 }, .ether_shost = { 2, 0, 0, 0, 0, 2 }
	};
	struct udphdr udp = {
		.source = htons(PACKET_SPORT), .dest = htons(PACKET_DPORT), .len = htons(PAYLOAD_LEN + sizeof(udp))
	};
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.tot_len = htons(PACKET_LEN - sizeof(eth)),
		.saddr = htonl(PACKET_SOURCE),
		.daddr = htonl(PACKET_DEST),
	};
	unsigned int i;

	ip.check = checksum(&ip, sizeof(ip));
	memcpy(packet, &eth, sizeof(eth));
	packet[12] = ETHERTYPE_IP >> 8;
	packet[13] = ETHERTYPE_IP & 0xff;
	memcpy(packet + sizeof(eth), &ip, sizeof(ip));
	memcpy(packet + sizeof(eth) + sizeof(ip), &udp, sizeof(udp));
	for (i = PACKET_PAYLOAD; i < PACKET_LEN; i++)
		packet[i] = (uint8_t)(i * 7);
}

/** A key of @map's that is found, and its value, the @i-th. */
static int set_numbers(set_fn *set, void *arg, enum bench_map map, uint32_t n)
{
	uint64_t value;
	uint32_t i;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		value = i * UINT64_C(0x9e3779b97f4a7c15);
		err = set(arg, map, &i, &value);
	}
	return err;
}

/** Prefixes of 8 to 32 bits, from a sequence that repeats none. */
static int set_prefixes(set_fn *set, void *arg)
{
	struct { uint32_t len, addr; } prefix;
	uint32_t i, state = 1;
	uint64_t value;
	int err = 0;

	for (i = 0; i < LPM_ENTRIES && !err; i++) {
		state = state * 1664525 + 1013904223;
		prefix.len = 8 + i % 25;
		prefix.addr = htonl(state);
		value = i;
		err = set(arg, MAP_prefixes, &prefix, &value);
	}
	return err;
}

static int set_backends(set_fn *set, void *arg)
{
	struct { uint8_t mac[8]; uint64_t packets; } backend = { .mac = { 2 } };
	uint32_t i;
	int err = 0;

	for (i = 0; i < BACKENDS && !err; i++) {
		backend.mac[5] = (uint8_t)i;
		err = set(arg, MAP_backends, &i, &backend);
	}
	return err;
}

int bench_fill_maps(set_fn *set, void *arg)
{
	const struct { uint32_t addr; uint16_t port, proto; } vip = {
		htonl(PACKET_DEST), htons(PACKET_DPORT), IPPROTO_UDP
	};
	const uint32_t seed = 7;
	int err = set(arg, MAP_vips, &vip, &seed);

	if (!err)
		err = set_backends(set, arg);
	if (!err)
		err = set_numbers(set, arg, MAP_small_array, ARRAY_ENTRIES);
	if (!err)
		err = set_numbers(set, arg, MAP_small_hash, HASH_ENTRIES);
	if (!err)
		err = set_numbers(set, arg, MAP_large_hash, LARGE_ENTRIES);
	if (!err)
		err = set_numbers(set, arg, MAP_small_lru, HASH_ENTRIES);
	return err ? err : set_prefixes(set, arg);
}

int bench_object_file(const uint8_t *object, const uint8_t *end, char *path, size_t size)
{
	size_t len = (size_t)(end - object);
	int err, fd = memfd_create("leat-bench", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, object, len) != (ssize_t)len) {
		err = -EIO;
		close(fd);
		return err;
	}
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}

/* The files, each between its name and its name_end. */
#define FILE_HERE(name, file)                                                                  \
	__asm__(".pushsection .rodata\n"                                                       \
		".global " #name "\n.balign 16\n" #name ":\n.incbin \"" file "\"\n"            \
		".global " #name "_end\n" #name "_end:\n.byte 0\n.popsection\n")

FILE_HERE(bench_programs_object, BENCH_PROGRAMS_OBJECT);
FILE_HERE(bench_long_object, BENCH_LONG_OBJECT);
FILE_HERE(bench_rte_object, BENCH_RTE_OBJECT);
