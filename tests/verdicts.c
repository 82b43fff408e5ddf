/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verdicts.c: every verdict on every kind of port that receives, and a redirect to every kind that transmits, from
 * built-in programs and from eBPF objects, through whole datapaths made from configuration text, workers on their own
 * threads.
 *
 * TAP needs root: those cases run in a network namespace of the test's own, and are skipped without the right to one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <leat/datapath.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACKETS 100u
#define LEN 64u
#define PATIENCE_MS 10000

static char folder[] = "/tmp/leat-verdicts-XXXXXX";
static bool have_netns;

/* ---- where packets come from: port "in", whatever else it needs ---- */

struct source {
	const char *type;
	const char *ports;
	const char *programs; /* beside the one under test */
	const char *attach;
	bool can_send;        /* XDP_TX works */
};

static const struct source sources[] = {
	{ "pktgen", "  in: {type: pktgen, count: 100, size: 64}\n", "", "", true },
	{ "veth",
	  "  gen: {type: pktgen, count: 100, size: 64}\n  far: {type: veth, peer: in}\n  in: {type: veth, peer: far}\n",
	  "  go: {builtin: redirect, port: far}\n", "  gen: [go]\n", true },
	{ "veth", /* behind a bridge: skbs and not frames arrive */
	  "  gen: {type: pktgen, count: 100, size: 64}\n  far: {type: veth, peer: in}\n  in: {type: veth, peer: far}\n",
	  "", "", true },
#ifdef LEAT_HAVE_PCAP
	{ "pcap-in", "  in: {type: pcap-in, file: in.pcap}\n", "", "", false },
#endif
	{ "tap", "  in: {type: tap, ifname: verdict0}\n", "", "", true },
};

static bool bridged(const struct source *source)
{
	return !strcmp(source->type, "veth") && !source->attach[0];
}

/* ---- a datapath and its end ---- */

struct run {
	struct leat_datapath *dp;
	struct leat_net *net;
	struct leat_netdev_stats in, out;
	struct leat_xdp_prog_stats prog;
};

static void print_diag(struct leat_diag *diag, const char *text)
{
	char line[512];
	unsigned int i;

	for (i = 0; i < leat_diag_count(diag); i++) {
		leat_diag_format(leat_diag_get(diag, i), line, sizeof(line));
		print_error("%s\n", line);
	}
	if (leat_diag_count(diag))
		print_error("%s", text);
}

static struct leat_datapath *start(const char *text)
{
	struct leat_datapath_opts opts = { .size = sizeof(opts), .arena_size = UINT64_C(1) << 30 };
	struct leat_diag *diag = leat_diag_create();
	struct leat_datapath *dp = NULL;
	int err = leat_datapath_load_text(text, strlen(text), "test.yaml", &opts, diag, &dp);

	if (!err)
		err = leat_datapath_start(dp, diag);
	print_diag(diag, text);
	leat_diag_destroy(diag);
	assert_int_equal(err, 0);
	return dp;
}

/** Puts the packets into the TAP from the kernel's side. */
static void inject(const char *ifname)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(ifname), .sll_halen = 6 };
	uint8_t packet[LEN] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x08, 0x00 };
	int sock = socket(AF_PACKET, SOCK_RAW, 0);
	unsigned int i;

	assert_true(sock >= 0 && to.sll_ifindex > 0);
	for (i = 0; i < PACKETS; i++)
		assert_int_equal(sendto(sock, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)), LEN);
	close(sock);
}

/** A poll counts what it received when everything has left, so the count says that the packets are through. */
static void wait_until_received(struct leat_netdev *dev)
{
	const struct timespec pause = { 0, 1000000 };
	struct leat_netdev_stats stats;
	int ms;

	for (ms = 0; ms < PATIENCE_MS; ms++) {
		leat_netdev_stats(dev, &stats);
		if (stats.rx_packets == PACKETS)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("port %s received %u packets, not %u", dev->name, (unsigned int)stats.rx_packets, PACKETS);
}

static void run(struct run *r, const struct source *source, const char *verdict, const char *out)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "workers: 2\nports:\n%s%sprograms:\n  verdict: {%s}\n%sattach:\n  in: [verdict]\n%s"
		 "bridges:\n  br0: [in, out]\n%s",
		 source->ports, out, verdict, source->programs, source->attach, bridged(source) ? "  br1: [gen, far]\n" : "");
	memset(r, 0, sizeof(*r));
	r->dp = start(text);
	r->net = leat_datapath_net(r->dp);
	if (!strcmp(source->type, "tap"))
		inject("verdict0");
	wait_until_received(leat_netdev_find(r->net, "in"));
	leat_datapath_stop(r->dp);
	leat_netdev_stats(leat_netdev_find(r->net, "in"), &r->in);
	leat_netdev_stats(leat_netdev_find(r->net, "out"), &r->out);
	leat_xdp_prog_stats(leat_datapath_prog(r->dp, 0), &r->prog);
	assert_int_equal(r->in.rx_packets, PACKETS);
	assert_int_equal(r->in.rx_bytes, PACKETS * LEN);
	assert_int_equal(r->prog.runs, PACKETS);
	assert_int_equal(leat_net_outstanding(r->net), 0);
}

/** Only @reason may have a count, and it must be all packets. */
static void assert_dropped(const struct leat_netdev_stats *stats, int reason)
{
	int i;

	for (i = 0; i < LEAT_DROP_MAX; i++)
		assert_int_equal(stats->drops[i], i == reason ? PACKETS : 0);
}

static bool skipped(const struct source *source)
{
	return !strcmp(source->type, "tap") && !have_netns;
}

/* ---- verdicts ---- */

#define SINK "  out: {type: sink}\n"
#define FOR_EACH_SOURCE(s) for (s = sources; s < sources + sizeof(sources) / sizeof(sources[0]); s++) if (!skipped(s))

static void pass_goes_to_the_bridge(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		run(&r, s, "builtin: pass", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_PASS], PACKETS);
		assert_int_equal(r.out.tx_packets, PACKETS);
		assert_int_equal(r.out.tx_bytes, PACKETS * LEN);
		assert_dropped(&r.in, -1);
		leat_datapath_destroy(r.dp);
	}
}

static void drop_is_counted(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		run(&r, s, "builtin: drop", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_DROP], PACKETS);
		assert_int_equal(r.out.tx_packets, 0);
		assert_dropped(&r.in, LEAT_DROP_XDP_DROP);
		leat_datapath_destroy(r.dp);
	}
}

static void aborted_is_counted(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		run(&r, s, "builtin: abort", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_ABORTED], PACKETS);
		assert_dropped(&r.in, LEAT_DROP_XDP_ABORTED);
		leat_datapath_destroy(r.dp);
	}
}

static void tx_leaves_by_the_same_port(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		run(&r, s, "builtin: reflect", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_TX], PACKETS);
		assert_int_equal(r.in.tx_packets, s->can_send ? PACKETS : 0);
		assert_int_equal(r.out.tx_packets, 0);
		assert_dropped(&r.in, s->can_send ? -1 : LEAT_DROP_NO_XMIT);
		leat_datapath_destroy(r.dp);
	}
}

static void redirect_leaves_by_the_other_port(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		run(&r, s, "builtin: redirect, port: out", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_REDIRECT], PACKETS);
		assert_int_equal(r.out.tx_packets, PACKETS);
		assert_dropped(&r.in, -1);
		leat_datapath_destroy(r.dp);
	}
}

/* ---- redirect and pass to every kind of port that transmits ---- */

static const char *const targets[] = {
	"  out: {type: sink}\n",
	"  out: {type: pktgen, count: 1, rate: 1}\n", /* brings one packet itself, which its bridge sends to "in" */
	"  out: {type: veth, peer: end}\n  end: {type: veth, peer: out}\n",
#ifdef LEAT_HAVE_PCAP
	"  out: {type: pcap-out, file: out.pcap}\n",
#endif
	"  out: {type: tap, ifname: verdict1}\n",
};

static void every_kind_of_port_is_reached(const char *verdict)
{
	struct run r;
	size_t i;

	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		if (strstr(targets[i], "tap") && !have_netns)
			continue;
		run(&r, &sources[1], verdict, targets[i]);
		assert_int_equal(r.out.tx_packets, PACKETS);
		assert_int_equal(r.out.tx_bytes, PACKETS * LEN);
		leat_datapath_destroy(r.dp);
	}
}

static void every_kind_of_port_takes_redirected_frames(void **state)
{
	(void)state;
	every_kind_of_port_is_reached("builtin: redirect, port: out");
}

static void every_kind_of_port_takes_passed_skbs(void **state)
{
	(void)state;
	every_kind_of_port_is_reached("builtin: pass");
}

/* ---- the same from eBPF objects (examples/bpf) ---- */

/** Where leat-load or the objects are not there, eBPF is left out of the build and not of the tests. */
static bool have_objects(void)
{
	const char *objects = getenv("LEAT_OBJECT_PATH");
	char path[4096];

	snprintf(path, sizeof(path), "%s/reflect.bpf.o", objects ? objects : "");
	return getenv("LEAT_LOAD") && !access(path, R_OK);
}

static void objects_say_pass_tx_and_redirect_on_every_port(void **state)
{
	const struct source *s;
	struct run r;

	(void)state;
	FOR_EACH_SOURCE(s) {
		if (!have_objects())
			continue;
		run(&r, s, "object: count_proto.bpf.o", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_PASS], PACKETS);
		assert_int_equal(r.out.tx_packets, PACKETS);
		leat_datapath_destroy(r.dp);
		run(&r, s, "object: reflect.bpf.o", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_TX], PACKETS);
		assert_int_equal(r.in.tx_packets, s->can_send ? PACKETS : 0);
		leat_datapath_destroy(r.dp);
		run(&r, s, "object: redirect.bpf.o, maps: {to: {0: out}}", SINK);
		assert_int_equal(r.prog.verdict[LEAT_XDP_REDIRECT], PACKETS);
		assert_int_equal(r.out.tx_packets, PACKETS);
		leat_datapath_destroy(r.dp);
		run(&r, s, "object: redirect.bpf.o", SINK); /* an empty map: its miss action */
		assert_int_equal(r.prog.verdict[LEAT_XDP_DROP], PACKETS);
		assert_dropped(&r.in, LEAT_DROP_XDP_DROP);
		leat_datapath_destroy(r.dp);
	}
	if (have_objects())
		every_kind_of_port_is_reached("object: redirect.bpf.o, maps: {to: {0: out}}");
}

static void tap_cases_ran(void **state)
{
	(void)state;
	if (!have_netns)
		skip(); /* needs the right to make a network namespace */
}

/* ---- frame ---- */

/** A namespace of our own, without the packets that IPv6 sends by itself. */
static bool enter_netns(void)
{
	int fd;
	bool good;

	if (unshare(CLONE_NEWNET) || access("/dev/net/tun", R_OK | W_OK))
		return false;
	fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);
	good = fd < 0 || write(fd, "1", 1) == 1;
	if (fd >= 0)
		close(fd);
	return good;
}

/** The capture that pcap-in reads: made by a datapath, too. */
static void write_capture(void)
{
	struct leat_datapath *dp = start("ports:\n  gen: {type: pktgen, count: 100, size: 64}\n"
					 "  out: {type: pcap-out, file: in.pcap}\nbridges:\n  br0: [gen, out]\n");

	wait_until_received(leat_netdev_find(leat_datapath_net(dp), "gen"));
	leat_datapath_stop(dp);
	leat_datapath_destroy(dp);
}

static int set_up(void **state)
{
	(void)state;
	have_netns = enter_netns();
	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	if (leat_driver_find("pcap-out"))
		write_capture();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink("in.pcap");
	unlink("out.pcap");
	return chdir("/") || rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pass_goes_to_the_bridge),
		cmocka_unit_test(drop_is_counted),
		cmocka_unit_test(aborted_is_counted),
		cmocka_unit_test(tx_leaves_by_the_same_port),
		cmocka_unit_test(redirect_leaves_by_the_other_port),
		cmocka_unit_test(every_kind_of_port_takes_redirected_frames),
		cmocka_unit_test(every_kind_of_port_takes_passed_skbs),
		cmocka_unit_test(objects_say_pass_tx_and_redirect_on_every_port),
		cmocka_unit_test(tap_cases_ran),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
