/* SPDX-License-Identifier: BSD-3-Clause */
/* both.c: an object in the kernel and in leat, and a program run on both. See both.h. */
#include "both.h"

#include <errno.h>
#include <leat/xdp_prog.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/epoch.h"
#include "base/heap.h"
#include "bpf/prog.h"
#include "globals.h"

#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif

/* ---- what libbpf says ---- */

/** What libbpf prints; the sentence before the verifier's sums is the reason. */
static struct {
	char text[1 << 16];
	size_t len;
} printed;

static int LEAT_PRINTF(2, 0) print(enum libbpf_print_level level, const char *format, va_list args)
{
	int n;

	if (level > LIBBPF_WARN)
		return 0;
	n = vsnprintf(printed.text + printed.len, sizeof(printed.text) - printed.len, format, args);
	if (n > 0)
		printed.len += (size_t)n;
	if (printed.len >= sizeof(printed.text))
		printed.len = sizeof(printed.text) - 1;
	return 0;
}

/* ---- the world ---- */

static int pin(struct both_world *world)
{
	cpu_set_t set;
	int cpus = libbpf_num_possible_cpus();

	if (cpus <= 0 || sched_getaffinity(0, sizeof(set), &set))
		return -EINVAL;
	world->kernel_cpus = (unsigned int)cpus;
	world->cpus = world->kernel_cpus < LEAT_BPF_CPUS_MAX ? world->kernel_cpus : LEAT_BPF_CPUS_MAX;
	for (world->cpu = world->cpus - 1; world->cpu && !CPU_ISSET(world->cpu, &set); world->cpu--)
		;
	CPU_ZERO(&set);
	CPU_SET(world->cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static bool bpf_allowed(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "leat_try", 4, 4, 1, NULL);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/** Of leat's programs, and of the mirror: reader 0 is this thread. */
static struct leat_epoch epoch;

void both_world_quiescent(void)
{
	leat_epoch_quiescent(&epoch, 0);
}

/** Interfaces are ports of the same number. */
static int mirror(struct both_world *world, char *why, size_t size)
{
	const struct leat_fib_opts opts = { .size = sizeof(opts), .epoch = &epoch };
	const struct leat_fib_mirror_opts mirror_opts = { .size = sizeof(mirror_opts) };
	int err;

	leat_epoch_init(&epoch);
	err = leat_fib_create(&opts, &world->fib);
	if (!err)
		err = leat_fib_mirror_start(world->fib, &mirror_opts, NULL, &world->mirror);
	if (!err)
		return 0;
	leat_fib_destroy(world->fib);
	world->fib = NULL;
	snprintf(why, size, "the namespace's routes cannot be mirrored: %s", strerror(-err));
	return err == -EOPNOTSUPP ? 0 : err;
}

void both_world_fini(struct both_world *world)
{
	leat_epoch_offline(&epoch, 0);
	leat_fib_mirror_stop(world->mirror);
	leat_fib_destroy(world->fib);
}

/** Two interfaces that forward, and whom they know. */
static const char script[] =
	"set -e; ip link add leat0 numrxqueues 4 type veth peer name leat1 numrxqueues 4\n"
	"for i in 0 1; do for family in 4 6; do echo 1 >/proc/sys/net/ipv$family/conf/leat$i/forwarding; done\n"
	"echo 0 >/proc/sys/net/ipv6/conf/leat$i/accept_dad; ip link set leat$i address 02:00:00:00:01:0$i up\n"
	"ip address add 10.$i.0.1/16 dev leat$i; ip address add 2001:db8:$i::1/64 dev leat$i; done\n"
	"ip route add default via 10.0.0.2; ip route add default via 2001:db8::2\n"
	"ip neighbour add 10.0.0.2 dev leat0 lladdr 02:00:00:00:00:02\n"
	"ip neighbour add 2001:db8::2 dev leat0 lladdr 02:00:00:00:00:02\n"
	"ip neighbour add 10.1.2.51 dev leat1 lladdr 02:00:00:00:00:33\n"
	"ip route add blackhole 192.0.2.0/25; ip route add prohibit 198.51.100.0/24 metric 7\n";

int both_world_init(struct both_world *world, char *why, size_t size)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	libbpf_set_print(print);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	if (!bpf_allowed()) {
		snprintf(why, size, "bpf(2) is not allowed: %s", strerror(errno));
		return -EPERM;
	}
	err = pin(world);
	if (err) {
		snprintf(why, size, "the thread cannot be pinned to a CPU below %u", LEAT_BPF_CPUS_MAX);
		return err;
	}
	if (unshare(CLONE_NEWNET) || system(script)) {
		snprintf(why, size, "no interface can be made in a network namespace");
		return -EPERM;
	}
	world->ifindex = if_nametoindex("leat0");
	leat_xdp_bpf_init();
	return mirror(world, why, size);
}

/* ---- global variables ---- */

/** Global variables that are set before load: of objects whose programs do nothing otherwise, and of our own. */
static const struct setting {
	const char *program, *name, *text; /* leat: "variable.member" and its text */
	const char *variable;              /* kernel: where it lies, and its bytes */
	uint32_t off, len;
	const char *bytes;
} settings[] = {
	{ "xdp_dispatcher", "conf.num_progs_enabled", "10", "conf", 2, 1, "\x0a" },
	{ "xdp_dispatcher", "conf.chain_call_actions[0]", "0xffffffff", "conf", 4, 4, "\xff\xff\xff\xff" },
	{ "xdp_dispatcher", "conf.chain_call_actions[1]", "0xffffffff", "conf", 8, 4, "\xff\xff\xff\xff" },
	{ "xdp_dispatcher", "conf.chain_call_actions[2]", "4", "conf", 12, 4, "\x04\0\0\0" },
	{ "cpumap_no_touch", "nr_cpus", "2", "nr_cpus", 0, 4, "\x02\0\0\0" }, /* xdp-bench */
	{ "sum_up", "limit", "300", "limit", 0, 4, "\x2c\x01\0\0" },
	{ "sum_up", "table[3]", "0x1234", "table", 6, 2, "\x34\x12" },
	{ "sum_up", "total.len.most", "77", "total", 20, 4, "\x4d\0\0\0" },
	{ "sum_up", "signed_constant", "-77", "signed_constant", 0, 4, "\xb3\xff\xff\xff" },
	{ "sum_up", "zeroed[1]", "5", "zeroed", 8, 8, "\x05\0\0\0\0\0\0\0" },
};

static const struct setting *next_setting(const struct both *both, size_t *at)
{
	while (*at < sizeof(settings) / sizeof(settings[0])) {
		const struct setting *s = &settings[(*at)++];

		if (bpf_object__find_program_by_name(both->kernel, s->program))
			return s;
	}
	return NULL;
}

/* ---- the kernel's side ---- */

static void kernel_reason(char *why, size_t size, int err)
{
	char *sums = strstr(printed.text, "\nprocessed "), *at = sums;

	if (!sums) {
		snprintf(why, size, "%s: %.300s", strerror(-err), printed.text);
		return;
	}
	while (at > printed.text && at[-1] != '\n')
		at--;
	snprintf(why, size, "%.*s", (int)(sums - at), at);
}

static bool is_port_map(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_DEVMAP || type == BPF_MAP_TYPE_DEVMAP_HASH || type == BPF_MAP_TYPE_CPUMAP ||
	       type == BPF_MAP_TYPE_XSKMAP;
}

/** The size that a tool would give: some objects leave it open. 0: leave it as it is. */
static uint32_t size_for(const struct bpf_map *map)
{
	enum bpf_map_type type = bpf_map__type(map);

	if (bpf_map__max_entries(map) || type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		return 0;
	return is_port_map(type) ? 8 : type == BPF_MAP_TYPE_RINGBUF ? 1 << 16 : 64;
}

bool both_is_xdp(struct bpf_program *prog)
{
	if (bpf_program__type(prog) == BPF_PROG_TYPE_UNSPEC && !strncmp(bpf_program__section_name(prog), "xdp", 3))
		bpf_program__set_type(prog, BPF_PROG_TYPE_XDP);
	return bpf_program__type(prog) == BPF_PROG_TYPE_XDP;
}

static int kernel_load(const struct both_world *world, struct both *both, const char *path, const char *only)
{
	const struct setting *setting;
	struct bpf_program *prog;
	unsigned int n = 0;
	struct bpf_map *map;
	size_t at = 0;
	int err;

	printed.len = 0;
	printed.text[0] = 0;
	both->kernel = bpf_object__open_file(path, NULL);
	if (!both->kernel) {
		kernel_reason(both->why_kernel, sizeof(both->why_kernel), -errno);
		return 0;
	}
	bpf_object__for_each_map(map, both->kernel) {
		bpf_map__set_pin_path(map, NULL);
		if (size_for(map))
			bpf_map__set_max_entries(map, size_for(map));
	}
	bpf_object__for_each_program(prog, both->kernel) {
		bool wanted = both_is_xdp(prog) && (!only || !strcmp(only, bpf_program__name(prog)));

		bpf_program__set_autoload(prog, wanted);
		if (wanted) /* there is no test run of programs for devmap and cpumap entries */
			bpf_program__set_expected_attach_type(prog, BPF_XDP);
		if (wanted && n < BOTH_PROGS_MAX)
			both->prog[n++] = (struct both_prog){ bpf_program__name(prog), prog, NULL, -1 };
	}
	both->n_progs = n;
	if (!n)
		return -ENOENT;
	while ((setting = next_setting(both, &at)))
		globals_set(both->kernel, setting->variable, setting->off, setting->bytes, setting->len);
	err = world->leat_only ? 0 : bpf_object__load(both->kernel);
	if (err)
		kernel_reason(both->why_kernel, sizeof(both->why_kernel), err);
	return 0;
}

/* ---- leat's side ---- */

static void leat_reason(char *why, size_t size, const char *step, int err, const struct leat_diag *diag)
{
	int n = snprintf(why, size, "%s: %s", step, strerror(-err));

	if (leat_diag_count(diag)) {
		n += snprintf(why + n, size - (size_t)n, ": ");
		leat_diag_format(leat_diag_get(diag, 0), why + n, size - (size_t)n);
	}
}

/** First from the file, then from the image that leat-load makes of it. */
static int leat_open(const struct both_world *world, struct both_image *image, struct both *both,
		     struct leat_diag *diag)
{
	struct leat_bpf_object_opts opts = { .size = sizeof(opts), .loader = world->loader };

	if (image->opened++ == 0)
		return leat_bpf_object_open(both->env, image->path, &opts, diag, &both->leat);
	if (!image->bytes) {
		int err = leat_bpf_loader_run(image->path, &opts, diag, &image->bytes, &image->len);

		if (err)
			return err;
	}
	return leat_bpf_object_open_image(both->env, image->bytes, image->len, diag, &both->leat);
}

static int set_in_leat(struct both *both, struct leat_diag *diag)
{
	const struct setting *s;
	size_t at = 0;
	int err = 0;

	while (!err && both->kernel && (s = next_setting(both, &at)))
		err = leat_bpf_object_set(both->leat, s->name, s->text, diag);
	return err;
}

static int resize(struct both *both)
{
	struct bpf_map *map;
	struct leat_bpf_map_info info;
	struct leat_bpf_map *mine;

	bpf_object__for_each_map(map, both->kernel) {
		mine = leat_bpf_object_map_find(both->leat, bpf_map__name(map));
		if (!mine)
			continue;
		leat_bpf_map_info(mine, &info);
		if (!info.max_entries && info.type != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
			leat_bpf_object_resize(both->leat, info.name, bpf_map__max_entries(map));
	}
	return 0;
}

static void leat_load(const struct both_world *world, struct both_image *image, const char *only, struct both *both)
{
	struct leat_bpf_env_opts opts = {
		.size = sizeof(opts),
		.cpus = world->cpus,
		.replay = true,
		.seed = 1,
		.engine = world->engine,
		.kernel_verifier = world->leat_only ? LEAT_BPF_KERNEL_OFF : LEAT_BPF_KERNEL_ASK,
		.epoch = &epoch,
	};
	struct leat_diag *diag = leat_diag_create();
	const char *step = "environment";
	int err = leat_bpf_env_create(&opts, &both->env);

	if (!err) {
		leat_fib_attach(world->fib, both->env);
		step = "open";
		err = leat_open(world, image, both, diag);
	}
	if (!err && both->kernel)
		resize(both);
	if (!err) {
		step = "set";
		err = set_in_leat(both, diag);
	}
	if (!err) {
		step = "load";
		err = leat_bpf_object_load(both->leat, only, diag);
	}
	if (err)
		leat_reason(both->why_leat, sizeof(both->why_leat), step, err, diag);
	leat_diag_destroy(diag);
}

void both_image_free(struct both_image *image)
{
	leat_heap_free(image->bytes);
	image->bytes = NULL;
}

/* ---- rings ---- */

static void add_record(struct both_records *r, const void *bytes, uint32_t len)
{
	if (r->size - r->len < len + sizeof(len)) {
		r->size = 2 * r->size + len + sizeof(len);
		r->bytes = realloc(r->bytes, r->size);
		if (!r->bytes)
			abort();
	}
	memcpy(r->bytes + r->len, &len, sizeof(len));
	memcpy(r->bytes + r->len + sizeof(len), bytes, len);
	r->len += len + sizeof(len);
}

static int take_ring(void *arg, void *data, size_t size)
{
	add_record(arg, data, (uint32_t)size);
	return 0;
}

static void take_perf(void *arg, int cpu, void *data, uint32_t size)
{
	(void)cpu;
	add_record(arg, data, size);
}

static int take_leat(void *arg, int cpu, const void *data, uint32_t size)
{
	(void)cpu;
	add_record(arg, data, size);
	return 0;
}

static void open_rings(struct both_map *map)
{
	if (map->info.type == BPF_MAP_TYPE_RINGBUF)
		map->ring = ring_buffer__new(map->fd, take_ring, &map->kernel_records, NULL);
	else if (map->info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		map->perf = perf_buffer__new(map->fd, 512, take_perf, NULL, &map->kernel_records, NULL);
}

void both_consume(struct both *both)
{
	unsigned int i;

	for (i = 0; i < both->n_maps; i++) {
		struct both_map *map = &both->map[i];

		map->kernel_records.len = map->leat_records.len = 0;
		if (map->ring)
			ring_buffer__consume(map->ring);
		if (map->perf)
			perf_buffer__consume(map->perf);
		if (map->ring || map->perf)
			leat_bpf_map_consume(map->leat, take_leat, &map->leat_records);
	}
}

/* ---- joining the two ---- */

static int open_socket(void)
{
	int fd = socket(AF_XDP, SOCK_RAW, 0), entries = 64;

	if (fd >= 0 && setsockopt(fd, SOL_XDP, XDP_RX_RING, &entries, sizeof(entries))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/** The kernel calls global data "PREFIX.rodata", leat ".rodata". */
static struct leat_bpf_map *leat_map_of(struct both *both, const struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *dot = strchr(name, '.');

	return leat_bpf_object_map_find(both->leat, bpf_map__is_internal(map) && dot ? dot : name);
}

static void join_maps(struct both *both, const char *only)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, both->kernel) {
		struct both_map *m = &both->map[both->n_maps];

		if (both->n_maps == BOTH_MAPS_MAX || bpf_map__fd(map) < 0)
			continue;
		*m = (struct both_map){ .kernel = map, .fd = bpf_map__fd(map), .socket = -1 };
		m->leat = leat_map_of(both, map);
		if (!m->leat) { /* leat makes the maps that a program needs, the kernel's loader makes all */
			if (!only)
				snprintf(both->why_leat, sizeof(both->why_leat), "there is no map %s",
					 bpf_map__name(map));
			continue;
		}
		leat_bpf_map_info(m->leat, &m->info);
		m->name = m->info.name;
		if (m->info.type == BPF_MAP_TYPE_XSKMAP)
			m->socket = open_socket();
		open_rings(m);
		both->n_maps++;
	}
}

static void join_progs(struct both *both)
{
	unsigned int i;

	for (i = 0; i < both->n_progs; i++) {
		struct both_prog *prog = &both->prog[i];

		prog->fd = bpf_program__fd(prog->kernel);
		prog->leat = leat_bpf_object_prog_find(both->leat, prog->name);
		if (!prog->leat)
			snprintf(both->why_leat, sizeof(both->why_leat), "there is no program %s", prog->name);
	}
}

int both_open(const struct both_world *world, struct both_image *image, const char *only, struct both *both)
{
	int err;

	memset(both, 0, sizeof(*both));
	err = kernel_load(world, both, image->path, only);
	if (!err) {
		leat_load(world, image, only, both);
		if (!world->leat_only && !both->why_kernel[0] && !both->why_leat[0]) {
			join_maps(both, only);
			join_progs(both);
		}
	}
	return err;
}

void both_close(struct both *both)
{
	unsigned int i;

	for (i = 0; i < both->n_maps; i++) {
		ring_buffer__free(both->map[i].ring);
		perf_buffer__free(both->map[i].perf);
		if (both->map[i].socket >= 0)
			close(both->map[i].socket);
		free(both->map[i].kernel_records.bytes);
		free(both->map[i].leat_records.bytes);
	}
	bpf_object__close(both->kernel);
	leat_bpf_object_close(both->leat);
	leat_bpf_env_destroy(both->env);
}

/* ---- running ---- */

int both_run_kernel(const struct both_prog *prog, struct both_packet *packet, uint32_t *verdict)
{
	static uint8_t out[BOTH_FRAME];
	struct xdp_md in = { .data = packet->meta, .data_end = packet->len, .ingress_ifindex = packet->ifindex,
			     .rx_queue_index = packet->queue }, left = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet->bytes, .data_size_in = packet->len, .data_out = out,
		    .data_size_out = sizeof(out), .ctx_in = &in, .ctx_size_in = sizeof(in), .ctx_out = &left,
		    .ctx_size_out = sizeof(left), .repeat = 1);
	int err = bpf_prog_test_run_opts(prog->fd, &opts);

	if (err)
		return err;
	*verdict = opts.retval;
	packet->meta = left.data;
	packet->len = opts.data_size_out;
	memcpy(packet->bytes, out, packet->len);
	return 0;
}

int both_run_leat(struct both *both, const struct both_prog *prog, unsigned int cpu, struct both_packet *packet,
		  uint32_t *verdict)
{
	static uint8_t frame[BOTH_FRAME] __attribute__((aligned(4096)));
	struct leat_xdp_rxq rxq = { NULL, packet->ifindex, packet->queue };
	struct leat_xdp_buff xdp;

	memset(frame, 0, sizeof(frame)); /* as the kernel's */
	leat_xdp_buff_init(&xdp, leat_run_make((uint64_t)(uintptr_t)frame, BOTH_FRAME / LEAT_GRANULE_SIZE),
			   LEAT_XDP_HEADROOM, packet->len - packet->meta);
	xdp.data_meta -= packet->meta;
	xdp.rxq = &rxq;
	memcpy(xdp.data_meta, packet->bytes, packet->len);
	both->time += 1000000;
	leat_bpf_env_set_time(both->env, both->time);
	both_world_quiescent();
	*verdict = leat_bpf_prog_run(prog->leat, &xdp, cpu);
	if (xdp.data_meta < frame || xdp.data < xdp.data_meta || xdp.data_end < xdp.data ||
	    xdp.data_end > frame + BOTH_FRAME)
		return -EFAULT;
	packet->meta = (uint32_t)(xdp.data - xdp.data_meta);
	packet->len = (uint32_t)(xdp.data_end - xdp.data_meta);
	memcpy(packet->bytes, xdp.data_meta, packet->len);
	return 0;
}
