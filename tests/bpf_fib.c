/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_fib.c: bpf_fib_lookup: the kernel and leat, whose table mirrors the kernel's, are asked the same questions by the
 * same program, and must agree on the answer and on every byte of the struct. Prints TAP. As root.
 *
 * The process has a network namespace of its own with interfaces, addresses, routes and neighbours of all kinds, many
 * of them drawn; between rounds some of them go and others come, and the mirror must follow.
 *
 * usage: test-bpf_fib OBJECT		LEAT_TEST_SEED=N
 *	LEAT_TEST_QUERIES=N	of each round (5000)
 *	LEAT_TEST_ROUTES=1	prints all routes before the first difference
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/both.h"
#include "bpf/engine/jit.h"
#include "bpf/packets.h"

#define ROUNDS 4u
#define ROUTES 400u
#define FOLLOW_MS 20000u
#define TELL_MAX 8u
/** A table that only has the route by which the end of a change is told. */
#define MARK_TABLE 4000u

/** As in tests/bpf/progs/fib.bpf.c. */
struct query {
	uint32_t flags, len;
	struct leat_fib_lookup params;
	int64_t result;
};

struct test {
	struct both_world world;
	struct both both;
	const struct both_prog *prog;
	struct numbers n;
	unsigned int queries, cases, failed, differences;
	unsigned int seen[10]; /* how often each result came */
	uint32_t forwarding[6]; /* interfaces */
};

static void result(struct test *t, bool ok, const char *what)
{
	t->cases++;
	t->failed += !ok;
	printf("%sok %u - %s\n", ok ? "" : "not ", t->cases, what);
	fflush(stdout);
}

/* ---- the namespace ---- */

static const char world_script[] =
	"ip link set lo up\n"
	"for i in 2 4 6 8; do ip link add leat$i type veth peer name leat$((i + 1)); done\n"
	"ip link set leat0 address 02:00:00:00:01:00 mtu 1500 up\n"
	"ip link set leat1 address 02:00:00:00:01:01 mtu 1400 up\n"
	"ip link set leat2 address 02:00:00:00:01:02 mtu 9000 up\n"
	"ip link set leat3 address 02:00:00:00:01:03 mtu 9000 up\n"
	"ip link set leat4 address 02:00:00:00:01:04 up\n"
	"ip link set leat5 address 02:00:00:00:01:05 up\n"
	"ip link set leat6 mtu 1000 up; ip link set leat7 mtu 1000 up\n"
	"ip link set leat8 addrgenmode none up; ip link set leat9 up\n"
	"echo 1 >/proc/sys/net/ipv6/conf/leat8/use_oif_addrs_only\n"
	"for i in 0 1 2 3 5 8; do echo 1 >/proc/sys/net/ipv4/conf/leat$i/forwarding; "
	"echo 1 >/proc/sys/net/ipv6/conf/leat$i/forwarding; done\n"
	"exec 2>/dev/null; for i in 0 1 2 3 4 5; do\n"
	"ip address add 10.$i.0.1/16 brd + dev leat$i; ip address add 10.$i.0.9/16 dev leat$i\n"
	"ip address add 192.168.$i.1/24 dev leat$i; ip address add 169.254.$i.1/24 scope link dev leat$i\n"
	"ip address add 2001:db8:$i::1/64 dev leat$i nodad; ip address add fd00:$i::1/48 dev leat$i nodad\n"
	"ip address add 2001:db8:$i:8000::2/50 dev leat$i nodad preferred_lft 0; done\n"
	"ip address add 172.16.0.1 peer 172.16.0.2 dev leat2\n"
	"ip address add 2002:a01::1/32 dev leat3 nodad\n";

/** A next hop of port @i, or another host there. */
static void draw_address(struct test *t, int family, char *text, size_t size)
{
	unsigned int i = numbers_below(&t->n, 6), host = 2 + numbers_below(&t->n, 20);

	if (family == AF_INET)
		snprintf(text, size, "10.%u.0.%u", i, host);
	else
		snprintf(text, size, "2001:db8:%u::%x", i, host);
}

/** A prefix from a narrow part of all there are, so that many lie within others. */
static void draw_prefix(struct test *t, int family, char *text, size_t size)
{
	uint8_t address[16] = { 0 };
	char name[INET6_ADDRSTRLEN];
	unsigned int len, i;

	numbers_fill(&t->n, address, sizeof(address));
	for (i = 0; i < 16; i++)
		address[i] &= 0x81;
	if (family == AF_INET) {
		len = numbers_below(&t->n, 33);
		address[0] = numbers_below(&t->n, 4) ? 20 : 10;
	} else {
		len = numbers_below(&t->n, 129);
		address[0] = 0x20;
		address[1] = 1;
		address[2] = 0xd;
		address[3] = numbers_below(&t->n, 4) ? 0xb9 : 0xb8;
		len = len < 16 && numbers_below(&t->n, 4) ? 48 : len;
	}
	for (i = len; i < 128; i++)
		address[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	inet_ntop(family, address, name, sizeof(name));
	snprintf(text, size, "%s/%u", name, len);
}

static void draw_route(struct test *t, FILE *f)
{
	static const char *const types[] = { "blackhole", "unreachable", "prohibit", "throw" };
	static const char *const tables[] = { "main", "main", "main", "main", "100", "253", "local" };
	static const unsigned int devices[] = { 0, 1, 2, 3, 4, 5, 8 };
	int family = numbers_below(&t->n, 2) ? AF_INET : AF_INET6;
	char prefix[64], via[64];

	draw_prefix(t, family, prefix, sizeof(prefix));
	draw_address(t, family, via, sizeof(via));
	fputs("route add ", f);
	if (!numbers_below(&t->n, 6)) {
		fprintf(f, "%s %s table %s", types[numbers_below(&t->n, 4)], prefix, tables[numbers_below(&t->n, 7)]);
	} else if (!numbers_below(&t->n, 4)) {
		fprintf(f, "%s dev leat%u table %s", prefix, devices[numbers_below(&t->n, 7)],
			tables[numbers_below(&t->n, 7)]);
	} else if (family == AF_INET && !numbers_below(&t->n, 6)) {
		draw_address(t, AF_INET6, via, sizeof(via));
		fprintf(f, "%s via inet6 %s", prefix, via);
	} else {
		fprintf(f, "%s via %s table %s", prefix, via, tables[numbers_below(&t->n, 7)]);
	}
	if (!numbers_below(&t->n, 3))
		fprintf(f, " metric %u", 1 + numbers_below(&t->n, 3));
	if (family == AF_INET && !numbers_below(&t->n, 8))
		fprintf(f, " tos 0x%x", 4 * numbers_below(&t->n, 8));
	if (!numbers_below(&t->n, 8))
		fprintf(f, " mtu %s%u", numbers_below(&t->n, 3) ? "lock " : "", 1280 + numbers_below(&t->n, 100));
	if (!numbers_below(&t->n, 8))
		fprintf(f, family == AF_INET ? " src 192.168.%u.1" : " src fd00:%u::1", numbers_below(&t->n, 6));
	if (!numbers_below(&t->n, 30))
		fputs(family == AF_INET ? " encap ip id 7 dst 10.1.0.2" : " encap ip6 id 7 dst 2001:db8:1::2", f);
	fputc('\n', f);
}

static void draw_neighbour(struct test *t, FILE *f)
{
	static const char *const states[] = { "permanent", "stale", "noarp", "reachable", "failed", "none" };
	int family = numbers_below(&t->n, 2) ? AF_INET : AF_INET6;
	char address[64];

	draw_address(t, family, address, sizeof(address));
	fprintf(f, "neighbour replace %s dev leat%u lladdr 02:00:00:01:%02x:%02x nud %s\n", address,
		numbers_below(&t->n, 6), numbers_below(&t->n, 256), numbers_below(&t->n, 256),
		states[numbers_below(&t->n, 6)]);
}

/** Whatever the script complains of. */
static void run_script(const char *script)
{
	if (system(script))
		printf("# a command has failed\n");
}

/** Runs ip(8) on what @draw writes, @n times. What is refused (a route that is there) does not matter. */
static bool batch(struct test *t, void (*draw)(struct test *t, FILE *f), unsigned int n)
{
	FILE *f = popen("ip -force -batch - 2>/dev/null", "w");

	if (!f)
		return false;
	for (; n; n--)
		draw(t, f);
	return pclose(f) != -1;
}

/** Every third route of the tables that are drawn goes. */
static const char remove_script[] =
	"for f in 4 6; do for table in main 100; do\n"
	"ip -$f route show table $table 2>/dev/null | grep -v 'proto kernel' | awk 'NR % 3 == 0' | "
	"sed \"s/ linkdown//; s/ pref medium//; s/^/route delete /; s/\\$/ table $table/\" | ip -force -batch - 2>/dev/null\n"
	"done; done\n";

/** What has no notification of its own, or replaces. */
static const char disturb_script[] =
	"exec 2>/dev/null; ip link set leat3 down; ip link set leat3 up; ip address add 10.3.0.77/24 dev leat3\n"
	"ip address del 10.4.0.9/16 dev leat4; ip link set leat1 mtu 1420; echo 0 >/proc/sys/net/ipv4/conf/leat5/forwarding\n"
	"ip route replace 20.0.0.0/16 via 10.1.0.3; ip route append 20.0.0.0/16 via 10.2.0.3\n"
	"ip -6 route replace 2001:db9::/32 via 2001:db8:1::3; ip route prepend 20.0.0.0/16 via 10.0.0.3\n"
	"ip link set leat4 address 02:00:00:00:09:04\n";

static void sleep_ms(unsigned int ms)
{
	const struct timespec pause = { 0, ms * 1000000l };

	nanosleep(&pause, NULL);
}

/** Puts a mark at the end of what was changed, and waits until leat has it. */
static bool followed(struct test *t, unsigned int round)
{
	struct leat_fib_lookup params;
	unsigned int ms = 0;
	char command[256];
	int answer;

	snprintf(command, sizeof(command), "ip route replace blackhole 99.0.0.%u/32 table %u", round, MARK_TABLE);
	if (system(command))
		return false;
	do {
		memset(&params, 0, sizeof(params));
		params.family = AF_INET;
		params.ifindex = t->world.ifindex;
		params.dst[0] = 99;
		params.dst[3] = (uint8_t)round;
		params.tbid = MARK_TABLE;
		answer = leat_fib_lookup(t->world.fib, &params, LEAT_FIB_LOOKUP_DIRECT | LEAT_FIB_LOOKUP_TBID);
		both_world_quiescent();
		sleep_ms(1);
	} while (answer != LEAT_FIB_RET_BLACKHOLE && ms++ < FOLLOW_MS);
	return answer == LEAT_FIB_RET_BLACKHOLE;
}

/* ---- questions ---- */

static void draw_query(struct test *t, struct query *q)
{
	static const uint16_t lengths[] = { 0, 60, 1000, 1280, 1300, 1400, 1401, 1420, 1500, 1501, 9000, 9001, 65535 };
	static const uint32_t tables[] = { 0, 100, 253, 254, 255, 999 };
	char text[64];
	int family;

	numbers_fill(&t->n, q, sizeof(*q));
	q->flags &= 0x3f;
	if (numbers_below(&t->n, 3))
		q->flags &= ~(uint32_t)LEAT_FIB_LOOKUP_OUTPUT;
	if (!numbers_below(&t->n, 50))
		q->flags = 1u << numbers_below(&t->n, 32);
	q->len = numbers_below(&t->n, 50) ? 64 : numbers_below(&t->n, 2) ? 63 : 72;
	family = numbers_below(&t->n, 2) ? AF_INET : AF_INET6;
	q->params.family = numbers_below(&t->n, 50) ? (uint8_t)family : (uint8_t)numbers_below(&t->n, 20);
	q->params.tot_len = lengths[numbers_below(&t->n, numbers_below(&t->n, 2) ? 3 : 13)];
	q->params.ifindex = numbers_below(&t->n, 8) ? t->forwarding[numbers_below(&t->n, 6)] : numbers_below(&t->n, 14);
	q->params.tbid = tables[numbers_below(&t->n, 6)];
	if (numbers_below(&t->n, 2))
		q->params.tos = 0;
	if (numbers_below(&t->n, 3)) {
		draw_prefix(t, family, text, sizeof(text));
		*strchr(text, '/') = '\0';
	} else {
		draw_address(t, family, text, sizeof(text));
	}
	inet_pton(family, text, q->params.dst);
	if (family == AF_INET6 && numbers_below(&t->n, 20))
		q->params.src[0] = 0x20;
	if (numbers_below(&t->n, 2))
		q->params.dst[family == AF_INET ? 3 : 15] ^= (uint8_t)(1u << numbers_below(&t->n, 8));
}

static void hex(const char *who, const struct query *q)
{
	const uint8_t *bytes = (const uint8_t *)&q->params;
	unsigned int i;

	printf("#   %-8s %3d ", who, (int)q->result);
	for (i = 0; i < sizeof(q->params); i++)
		printf("%s%02x", i == 8 || i == 12 || i == 16 || i == 32 || i == 48 || i == 52 || i == 58 ? " " : "", bytes[i]);
	putchar('\n');
}

static void differ(struct test *t, const struct query *asked, const struct query *kernel, const struct query *leat)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (!t->differences && getenv("LEAT_TEST_ROUTES"))
		run_script("ip route show table all; ip -6 route show table all");
	if (t->differences++ >= TELL_MAX)
		return;
	inet_ntop(asked->params.family, asked->params.dst, text, sizeof(text));
	printf("# to %s, flags %#x, from %u, tbid %u, %u bytes\n", text, asked->flags, asked->params.ifindex,
	       asked->params.tbid, asked->params.tot_len);
	hex("asked", asked);
	hex("kernel", kernel);
	hex("leat", leat);
}

/** Asks both. False: a side could not be asked. */
static bool ask_both(struct test *t, const struct query *q, struct query *kernel, struct query *leat)
{
	static struct both_packet a, b;
	uint32_t verdict[2];

	a = (struct both_packet){ .ifindex = 1, .len = sizeof(*q) };
	memcpy(a.bytes, q, sizeof(*q));
	b = a;
	if (both_run_kernel(t->prog, &a, &verdict[0]) ||
	    both_run_leat(&t->both, t->prog, t->world.cpu, &b, &verdict[1]) || verdict[0] != verdict[1])
		return false;
	memcpy(kernel, a.bytes, sizeof(*kernel));
	memcpy(leat, b.bytes, sizeof(*leat));
	return true;
}

/** The kernel goes on changing things by itself for a while (carrier, link-local addresses): then it is asked again. */
static bool ask(struct test *t)
{
	struct query q, kernel, leat;
	unsigned int tries;

	draw_query(t, &q);
	for (tries = 0; tries < 40; tries++) {
		if (!ask_both(t, &q, &kernel, &leat))
			return false;
		if (!memcmp(&kernel, &leat, sizeof(kernel)))
			break;
		sleep_ms(50);
	}
	if (kernel.result >= 0 && kernel.result < 10)
		t->seen[kernel.result]++;
	if (memcmp(&kernel, &leat, sizeof(kernel)))
		differ(t, &q, &kernel, &leat);
	return true;
}

static void run_round(struct test *t, unsigned int round, const char *what)
{
	struct leat_fib_mirror_stats stats;
	unsigned int i, before = t->differences;
	char text[256];

	if (!followed(t, round + 1)) {
		result(t, false, "the mirror follows");
		return;
	}
	for (i = 0; i < t->queries && t->differences < TELL_MAX && ask(t); i++)
		;
	leat_fib_mirror_stats(t->world.mirror, &stats);
	snprintf(text, sizeof(text), "%s: %u of %u questions asked, %u answers differ", what, i, t->queries,
		 t->differences - before);
	result(t, i == t->queries && t->differences == before, text);
	printf("# read whole %llu times, %llu changes one by one, %llu lost, %llu refused\n",
	       (unsigned long long)stats.dumps, (unsigned long long)stats.events, (unsigned long long)stats.lost,
	       (unsigned long long)stats.refused);
}

/* ---- several next hops ---- */

/** Whom the answer names: port and next hop. */
static bool is_hop(const struct leat_fib_lookup *params, int family, unsigned int hop)
{
	char name[IF_NAMESIZE], text[64];
	uint8_t via[16];

	snprintf(name, sizeof(name), "leat%u", hop);
	snprintf(text, sizeof(text), family == AF_INET ? "10.%u.0.3" : "2001:db8:%u::3", hop);
	return params->ifindex == if_nametoindex(name) && inet_pton(family, text, via) == 1 &&
	       !memcmp(params->dst, via, family == AF_INET ? 4 : 16);
}

/** The kernel spreads flows by a secret: one of the hops it must be, and each must come. */
static void ask_hops(struct test *t, int family, const char *dst)
{
	unsigned int i, hop, side, seen[2][6] = { { 0 } };
	struct query q, answer[2];
	bool good = true;
	char text[128];

	for (i = 0; good && i < 300; i++) {
		memset(&q, 0, sizeof(q));
		q.len = 64;
		q.flags = LEAT_FIB_LOOKUP_SKIP_NEIGH | LEAT_FIB_LOOKUP_DIRECT;
		q.params.family = (uint8_t)family;
		q.params.ifindex = t->world.ifindex;
		inet_pton(family, dst, q.params.dst);
		numbers_fill(&t->n, q.params.src + (family == AF_INET ? 0 : 8), 4);
		good = ask_both(t, &q, &answer[0], &answer[1]);
		for (side = 0; good && side < 2; side++) {
			for (hop = 0; hop < 3 && !is_hop(&answer[side].params, family, hop); hop++)
				;
			good = !answer[side].result && hop < 3;
			seen[side][hop]++;
		}
	}
	for (hop = 0; hop < 3; hop++)
		good &= seen[0][hop] && seen[1][hop];
	snprintf(text, sizeof(text), "to %s by three hops: kernel %u, %u, %u times, leat %u, %u, %u", dst, seen[0][0],
		 seen[0][1], seen[0][2], seen[1][0], seen[1][1], seen[1][2]);
	result(t, good, text);
}

static void run_hops(struct test *t)
{
	run_script("ip route add 33.0.0.0/8 nexthop via 10.0.0.3 dev leat0 onlink weight 1 "
		   "nexthop via 10.1.0.3 dev leat1 onlink weight 2 nexthop via 10.2.0.3 dev leat2 onlink weight 3\n"
		   "for i in 0 1 2; do ip -6 route append 3333::/16 via 2001:db8:$i::3 dev leat$i onlink; done\n");
	if (!followed(t, 100))
		result(t, false, "the mirror follows");
	ask_hops(t, AF_INET, "33.1.2.3");
	ask_hops(t, AF_INET6, "3333::1");
}

/* ---- notifications that are lost ---- */

static void draw_many(struct test *t, FILE *f)
{
	static unsigned int n;

	fprintf(f, "route add 44.%u.%u.0/24 via 10.%u.0.3\n", n / 256, n % 256, numbers_below(&t->n, 3));
	n++;
}

/** While this thread is not quiescent the mirror waits for it, and the kernel's queue overflows. */
static void run_lost(struct test *t)
{
	struct leat_fib_mirror_stats before, stats;

	both_world_quiescent();
	leat_fib_mirror_stats(t->world.mirror, &before);
	run_script("ip address add 10.4.0.99/16 dev leat4");
	sleep_ms(100);
	batch(t, draw_many, 25000);
	run_round(t, 101, "many routes were added while the mirror waited");
	leat_fib_mirror_stats(t->world.mirror, &stats);
	result(t, stats.lost > before.lost, "notifications were lost");
}

/* ---- the whole ---- */

static void run(struct test *t)
{
	bool all = true;
	char name[IF_NAMESIZE];
	unsigned int i;

	if (system(world_script)) {
		result(t, false, "interfaces, addresses and settings can be made");
		return;
	}
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "leat%u", "012358"[i] - '0');
		t->forwarding[i] = if_nametoindex(name);
	}
	for (i = 0; i < ROUNDS; i++) {
		batch(t, draw_route, ROUTES);
		batch(t, draw_neighbour, 200);
		run_round(t, 4 * i, "routes and neighbours were added");
		run_script(remove_script);
		run_round(t, 4 * i + 1, "routes were deleted");
		run_script(disturb_script);
		run_round(t, 4 * i + 2, "interfaces, addresses and settings changed");
	}
	run_hops(t);
	run_lost(t);
	for (i = 0; i < 10; i++)
		all &= i == LEAT_FIB_RET_UNSUPP_LWT || t->seen[i];
	result(t, all, "every answer has come");
	for (i = 0; i < 10; i++)
		printf("#   answer %u: %u\n", i, t->seen[i]);
}

static unsigned long long number_from(const char *variable, unsigned long long otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	struct both_image image = { .path = argc > 1 ? argv[1] : NULL };
	struct test t = { .cases = 0 };
	char why[256] = "";
	unsigned int i;

	t.n = (struct numbers){ number_from("LEAT_TEST_SEED", 1) };
	t.queries = (unsigned int)number_from("LEAT_TEST_QUERIES", 5000);
	t.world.loader = getenv("LEAT_LOAD");
	t.world.engine = LEAT_HAVE_JIT ? LEAT_BPF_ENGINE_JIT : LEAT_BPF_ENGINE_AUTO;
	if (!image.path || both_world_init(&t.world, why, sizeof(why)) || !t.world.fib) {
		printf("1..0 # SKIP %s\n", image.path ? why : "there is no object");
		return 0;
	}
	both_open(&t.world, &image, "fib_query", &t.both);
	for (i = 0; i < t.both.n_progs && strcmp(t.both.prog[i].name, "fib_query"); i++)
		;
	t.prog = i < t.both.n_progs && t.both.prog[i].leat ? &t.both.prog[i] : NULL;
	result(&t, t.prog && !t.both.why_kernel[0] && !t.both.why_leat[0], "both take the program");
	if (t.prog)
		run(&t);
	else
		printf("# kernel: %s\n# leat: %s\n", t.both.why_kernel, t.both.why_leat);
	both_close(&t.both);
	both_image_free(&image);
	both_world_fini(&t.world);
	printf("1..%u\n", t.cases);
	return t.failed ? 1 : 0;
}
