/* SPDX-License-Identifier: BSD-3-Clause */
/* btf_kinds.bpf.c: a type of every kind, for the tests of the BTF reader. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

enum colour { RED = 1, GREEN = 5, BLUE = -3 };
enum unsigned_colour { CYAN = 1, WHITE = 0xffffffff };
enum wide { LITTLE = 1, HUGE = 0x7fffffffffffffffULL };

struct inner {
	signed char s8;
	short s16;
	int s32;
	long long s64;
};

struct flags {
	unsigned int low : 3;
	int middle : 7;
	unsigned int high : 12;
	enum colour colour : 5;
	unsigned long long wide : 40;
	_Bool on : 1;
};

typedef const struct inner inner_t;

struct everything {
	__u8 u8;
	__u16 u16;
	__u32 u32;
	__u64 u64;
	struct inner inner;
	inner_t again;
	char name[8];
	char letter;
	_Bool yes;
	enum colour colour;
	enum unsigned_colour cyan;
	enum wide wide;
	__u8 mac[6];
	__u8 ipv6[16];
	__be32 ipv4;
	int grid[2][3];
	struct flags flags;
	union {
		__u32 word;
		__u8 bytes[4];
	};
	struct {
		__u16 hidden;
	} shown;
	float ratio;
	double exact;
	const struct inner *pointer;
	struct later *unknown;
	int (*function)(int);
	__u32 none[0];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct inner);
	__type(value, struct everything);
} things SEC(".maps");

struct cfg {
	__u32 limit;
	__u8 on : 1, level : 3;
	char name[8];
};

const volatile __u16 port = 7;
const volatile struct cfg cfg = { .limit = 10 };
volatile int table[4];
volatile __u64 large = 1;
static volatile int counter = 5;

SEC("xdp")
int run(struct xdp_md *ctx)
{
	struct inner key = { 0 };
	struct everything *value = bpf_map_lookup_elem(&things, &key);

	counter++;
	return value && port && cfg.limit && table[1] && large ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
