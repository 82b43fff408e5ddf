/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * builtin_test.c: the built-in programs on packets made here. Each packet lies in an allocation of exactly its length,
 * so that the address sanitizer sees a read past data_end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xdp/test_port.h"

/* A packet under construction. */
struct pkt {
	uint8_t bytes[512];
	size_t len;
};

static void add(struct pkt *pkt, const void *bytes, size_t len)
{
	memcpy(pkt->bytes + pkt->len, bytes, len);
	pkt->len += len;
}

static void add_be16(struct pkt *pkt, unsigned int v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	add(pkt, b, sizeof(b));
}

static void add_zero(struct pkt *pkt, size_t len)
{
	memset(pkt->bytes + pkt->len, 0, len);
	pkt->len += len;
}

static void add_eth(struct pkt *pkt, unsigned int type)
{
	static const uint8_t mac[12] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };

	add(pkt, mac, sizeof(mac));
	add_be16(pkt, type);
}

static void add_ipv4(struct pkt *pkt, unsigned int ihl, unsigned int frag, uint8_t proto)
{
	size_t at = pkt->len;

	add_zero(pkt, ihl < 5 ? 20 : (size_t)ihl * 4);
	pkt->bytes[at] = (uint8_t)(0x40 | ihl);
	pkt->bytes[at + 6] = (uint8_t)(frag >> 8);
	pkt->bytes[at + 7] = (uint8_t)frag;
	pkt->bytes[at + 9] = proto;
}

static void add_ipv6(struct pkt *pkt, uint8_t next)
{
	size_t at = pkt->len;

	add_zero(pkt, 40);
	pkt->bytes[at] = 0x60;
	pkt->bytes[at + 6] = next;
}

static void add_ext(struct pkt *pkt, uint8_t next, uint8_t len_field, size_t len)
{
	size_t at = pkt->len;

	add_zero(pkt, len);
	pkt->bytes[at] = next;
	pkt->bytes[at + 1] = len_field;
}

static void add_udp(struct pkt *pkt, unsigned int port)
{
	add_be16(pkt, 4000);
	add_be16(pkt, port);
	add_be16(pkt, 8);
	add_be16(pkt, 0);
}

/* Runs @name with @priv on the first @len bytes of the packet, at @shift bytes from an aligned address. */
static uint32_t run_at(const char *name, void *priv, struct pkt *pkt, size_t len, size_t shift)
{
	const struct leat_xdp_builtin *builtin = leat_xdp_builtin_find(name);
	uint8_t *mem = malloc(shift + len ? shift + len : 1);
	struct leat_xdp_buff xdp;
	uint32_t verdict;

	assert_non_null(builtin);
	assert_non_null(mem);
	memset(&xdp, 0, sizeof(xdp));
	memcpy(mem + shift, pkt->bytes, len);
	xdp.data = mem + shift;
	xdp.data_meta = xdp.data;
	xdp.data_end = xdp.data + len;
	verdict = builtin->fn(&xdp, priv);
	memcpy(pkt->bytes, xdp.data, len);
	free(mem);
	return verdict;
}

static uint32_t run(const char *name, void *priv, struct pkt *pkt)
{
	return run_at(name, priv, pkt, pkt->len, 0);
}

/* ---- the table ---- */

static void test_table(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; leat_xdp_builtin_get(i); i++) {
		const struct leat_xdp_builtin *builtin = leat_xdp_builtin_get(i);

		assert_ptr_equal(leat_xdp_builtin_find(builtin->name), builtin);
		assert_non_null(builtin->help);
		assert_non_null(builtin->fn);
		assert_true(!builtin->params == !builtin->priv_size);
	}
	assert_int_equal(i, 6);
	assert_null(leat_xdp_builtin_find("nothing"));
	assert_null(leat_xdp_builtin_find(""));
	assert_null(leat_xdp_builtin_get(UINT32_MAX));
}

static void test_constant_verdicts(void **state)
{
	struct pkt pkt = { .len = 0 };

	(void)state;
	assert_int_equal(run("pass", NULL, &pkt), LEAT_XDP_PASS);
	assert_int_equal(run("drop", NULL, &pkt), LEAT_XDP_DROP);
	assert_int_equal(run("abort", NULL, &pkt), LEAT_XDP_ABORTED);
}

static void test_reflect(void **state)
{
	static const uint8_t swapped[14] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 };
	struct pkt pkt = { .len = 0 };
	size_t len;

	(void)state;
	add_eth(&pkt, 0x0800);
	for (len = 0; len < 14; len++)
		assert_int_equal(run_at("reflect", NULL, &pkt, len, 0), LEAT_XDP_ABORTED);
	assert_int_equal(run_at("reflect", NULL, &pkt, 14, 1), LEAT_XDP_TX);
	assert_memory_equal(pkt.bytes, swapped, sizeof(swapped));
}

/* ---- redirect ---- */

static void test_redirect_resolve(void **state)
{
	const struct leat_xdp_builtin *builtin = leat_xdp_builtin_find("redirect");
	struct leat_diag *diag = leat_diag_create();
	void *priv = calloc(1, builtin->priv_size);
	struct leat_net *net = test_net_make(NULL);

	(void)state;
	test_port_make(net, "there");
	assert_int_equal(leat_param_set(leat_param_find(builtin->params, "port"), priv, "there", diag), 0);
	assert_int_equal(builtin->resolve(net, priv, diag), 0);
	assert_int_equal(leat_diag_count(diag), 0);
	assert_int_equal(leat_param_set(leat_param_find(builtin->params, "port"), priv, "nowhere", diag), 0);
	assert_int_equal(builtin->resolve(net, priv, diag), -EINVAL);
	assert_int_equal(leat_diag_count(diag), 1);
	assert_non_null(strstr(leat_diag_get(diag, 0)->message, "nowhere"));
	leat_param_free(builtin->params, priv);
	free(priv);
	leat_diag_destroy(diag);
	test_net_end(net);
}

/* ---- drop-udp-port ---- */

/* How each case makes its packet, all with UDP port 53 where there is one. */
static void make_plain4(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 5, 0, 17);
	add_udp(p, 53);
}

static void make_options4(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 15, 0, 17);
	add_udp(p, 53);
}

static void make_first_fragment4(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 5, 0x2000, 17);
	add_udp(p, 53);
}

static void make_later_fragment4(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 5, 0x2001, 17);
	add_udp(p, 53);
}

static void make_short_ihl(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 4, 0, 17);
	add_udp(p, 53);
}

static void make_wrong_version(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv6(p, 17);
	add_udp(p, 53);
}

static void make_tcp4(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 5, 0, 6);
	add_udp(p, 53);
}

static void make_other_port(struct pkt *p)
{
	add_eth(p, 0x0800);
	add_ipv4(p, 5, 0, 17);
	add_udp(p, 54);
}

static void make_one_tag(struct pkt *p)
{
	add_eth(p, 0x8100);
	add_be16(p, 5);
	add_be16(p, 0x0800);
	add_ipv4(p, 5, 0, 17);
	add_udp(p, 53);
}

static void make_two_tags(struct pkt *p)
{
	add_eth(p, 0x88a8);
	add_be16(p, 5);
	add_be16(p, 0x8100);
	add_be16(p, 6);
	add_be16(p, 0x86dd);
	add_ipv6(p, 17);
	add_udp(p, 53);
}

static void make_three_tags(struct pkt *p)
{
	add_eth(p, 0x88a8);
	add_be16(p, 5);
	add_be16(p, 0x8100);
	add_be16(p, 6);
	add_be16(p, 0x8100);
	add_be16(p, 7);
	add_be16(p, 0x0800);
	add_ipv4(p, 5, 0, 17);
	add_udp(p, 53);
}

static void make_plain6(struct pkt *p)
{
	add_eth(p, 0x86dd);
	add_ipv6(p, 17);
	add_udp(p, 53);
}

static void make_extensions6(struct pkt *p)
{
	add_eth(p, 0x86dd);
	add_ipv6(p, 0);
	add_ext(p, 60, 0, 8);   /* hop by hop */
	add_ext(p, 43, 1, 16);  /* destination options */
	add_ext(p, 51, 2, 24);  /* routing */
	add_ext(p, 44, 4, 24);  /* authentication: (4 + 2) * 4 */
	add_ext(p, 17, 0, 8);   /* fragment, the first */
	add_udp(p, 53);
}

static void make_later_fragment6(struct pkt *p)
{
	add_eth(p, 0x86dd);
	add_ipv6(p, 44);
	add_ext(p, 17, 0, 8);
	p->bytes[p->len - 5] = 8; /* offset 1 */
	add_udp(p, 53);
}

static void make_unknown_ext6(struct pkt *p)
{
	add_eth(p, 0x86dd);
	add_ipv6(p, 139);
	add_ext(p, 17, 0, 8);
	add_udp(p, 53);
}

static void chain6(struct pkt *p, int n)
{
	int i;

	add_eth(p, 0x86dd);
	add_ipv6(p, n ? 60 : 17);
	for (i = 0; i < n; i++)
		add_ext(p, i == n - 1 ? 17 : 60, 0, 8);
	add_udp(p, 53);
}

static void make_eight_exts6(struct pkt *p)
{
	chain6(p, 8);
}

static void make_nine_exts6(struct pkt *p)
{
	chain6(p, 9);
}

static void make_arp(struct pkt *p)
{
	add_eth(p, 0x0806);
	add_zero(p, 28);
}

static const struct {
	const char *what;
	void (*make)(struct pkt *pkt);
	uint32_t verdict;
} cases[] = {
	{ "IPv4", make_plain4, LEAT_XDP_DROP },
	{ "IPv4 with options", make_options4, LEAT_XDP_DROP },
	{ "IPv4, first fragment", make_first_fragment4, LEAT_XDP_DROP },
	{ "IPv4, later fragment", make_later_fragment4, LEAT_XDP_PASS },
	{ "IPv4, header of 16 bytes", make_short_ihl, LEAT_XDP_PASS },
	{ "IPv4, version 6", make_wrong_version, LEAT_XDP_PASS },
	{ "TCP", make_tcp4, LEAT_XDP_PASS },
	{ "another port", make_other_port, LEAT_XDP_PASS },
	{ "one tag", make_one_tag, LEAT_XDP_DROP },
	{ "two tags, IPv6", make_two_tags, LEAT_XDP_DROP },
	{ "three tags", make_three_tags, LEAT_XDP_PASS },
	{ "IPv6", make_plain6, LEAT_XDP_DROP },
	{ "IPv6 with extension headers", make_extensions6, LEAT_XDP_DROP },
	{ "IPv6, later fragment", make_later_fragment6, LEAT_XDP_PASS },
	{ "IPv6, unknown extension header", make_unknown_ext6, LEAT_XDP_PASS },
	{ "IPv6, eight extension headers", make_eight_exts6, LEAT_XDP_DROP },
	{ "IPv6, nine extension headers", make_nine_exts6, LEAT_XDP_PASS },
	{ "ARP", make_arp, LEAT_XDP_PASS },
};

/* The built-in's options with port 53, filled as a configuration does it. */
static void *drop_port_53(void)
{
	const struct leat_xdp_builtin *builtin = leat_xdp_builtin_find("drop-udp-port");
	void *priv = calloc(1, builtin->priv_size);

	assert_non_null(priv);
	assert_int_equal(leat_param_set(leat_param_find(builtin->params, "port"), priv, "53", NULL), 0);
	return priv;
}

static void test_drop_udp_port(void **state)
{
	void *priv = drop_port_53();
	size_t i, shift;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (shift = 0; shift < 4; shift++) {
			struct pkt pkt = { .len = 0 };
			uint32_t verdict;

			cases[i].make(&pkt);
			verdict = run_at("drop-udp-port", priv, &pkt, pkt.len, shift);
			if (verdict != cases[i].verdict)
				fail_msg("%s: %s", cases[i].what, leat_xdp_action_name(verdict));
		}
	free(priv);
}

/* Whatever is cut off, the program stays within the packet, and passes what it cannot read to the end. */
static void test_truncated(void **state)
{
	void *priv = drop_port_53();
	size_t i, len;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt pkt = { .len = 0 };

		cases[i].make(&pkt);
		for (len = 0; len < pkt.len; len++)
			assert_int_equal(run_at("drop-udp-port", priv, &pkt, len, 0), LEAT_XDP_PASS);
	}
	free(priv);
}

/* Every byte of every case takes every value: nothing but DROP and PASS comes of it. */
static void test_every_byte(void **state)
{
	void *priv = drop_port_53();
	size_t i, at;
	unsigned int v;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt pkt = { .len = 0 };

		cases[i].make(&pkt);
		for (at = 0; at < pkt.len; at++)
			for (v = 0; v < 256; v++) {
				struct pkt bad = pkt;
				uint32_t verdict;

				bad.bytes[at] = (uint8_t)v;
				verdict = run("drop-udp-port", priv, &bad);
				assert_true(verdict == LEAT_XDP_DROP || verdict == LEAT_XDP_PASS);
			}
	}
	free(priv);
}

static void test_port_range(void **state)
{
	const struct leat_xdp_builtin *builtin = leat_xdp_builtin_find("drop-udp-port");
	const struct leat_param *param = leat_param_find(builtin->params, "port");
	void *priv = calloc(1, builtin->priv_size);

	(void)state;
	assert_true(param->flags & LEAT_PARAM_REQUIRED);
	assert_int_equal(leat_param_set(param, priv, "0", NULL), -EINVAL);
	assert_int_equal(leat_param_set(param, priv, "65536", NULL), -EINVAL);
	assert_int_equal(leat_param_set(param, priv, "65535", NULL), 0);
	free(priv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_constant_verdicts),
		cmocka_unit_test(test_reflect),
		cmocka_unit_test(test_redirect_resolve),
		cmocka_unit_test(test_drop_udp_port),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_port_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
