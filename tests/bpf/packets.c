/* SPDX-License-Identifier: BSD-3-Clause */
/* packets.c: packets from a seed. See packets.h. Headers are written by hand: nothing here knows a struct of theirs. */
#include "packets.h"

#include <string.h>

uint64_t numbers_next(struct numbers *n)
{
	uint64_t x = n->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint32_t numbers_below(struct numbers *n, uint32_t bound)
{
	return (uint32_t)(numbers_next(n) >> 32) % bound;
}

void numbers_fill(struct numbers *n, void *bytes, size_t len)
{
	uint8_t *to = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = (uint8_t)(numbers_next(n) >> 40);
}

/* ---- the few ---- */

/** Below @bound, mostly 0 or 1: what is seen once shall be seen again. */
static uint32_t few(struct numbers *n, uint32_t bound)
{
	return numbers_below(n, numbers_below(n, 4) ? 2 : bound);
}

void packet_mac(struct numbers *n, uint8_t mac[6])
{
	memcpy(mac, "\x02\x00\x00\x00\x00", 6);
	mac[4] = (uint8_t)numbers_below(n, 2);
	mac[5] = (uint8_t)(few(n, 8) * 37);
}

void packet_ipv4(struct numbers *n, uint8_t addr[4])
{
	static const uint8_t nets[][3] = { { 192, 0, 2 }, { 198, 51, 100 }, { 10, 1, 2 }, { 10, 129, 3 } };

	memcpy(addr, nets[few(n, 4)], 3);
	addr[3] = (uint8_t)(few(n, 6) * 50 + 1);
}

void packet_ipv6(struct numbers *n, uint8_t addr[16])
{
	memset(addr, 0, 16);
	memcpy(addr, "\x20\x01\x0d\xb8", 4);
	addr[5] = (uint8_t)numbers_below(n, 3);
	addr[8] = (uint8_t)(numbers_below(n, 2) << 7);
	addr[15] = (uint8_t)few(n, 6);
}

uint16_t packet_port(struct numbers *n)
{
	static const uint16_t ports[] = { 53, 80, 443, 4242, 8080, 9, 65535, 1024, 40000, 179 };

	return ports[few(n, sizeof(ports) / sizeof(ports[0]))];
}

uint8_t packet_protocol(struct numbers *n)
{
	static const uint8_t protocols[] = { 6, 6, 17, 17, 17, 1, 1, 4, 47, 132 };

	return protocols[numbers_below(n, sizeof(protocols))];
}

/* ---- writing ---- */

struct writer {
	struct numbers *n;
	uint8_t *bytes; /* room for 2 * PACKET_MAX */
	uint32_t len;
};

static uint8_t *add(struct writer *w, uint32_t len)
{
	uint8_t *at = w->bytes + w->len;

	memset(at, 0, len);
	w->len += len;
	return at;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t sum16(const uint8_t *at, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	if (len & 1)
		sum += (uint32_t)at[len - 1] << 8;
	return sum;
}

static uint16_t complement(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void add_payload(struct writer *w, uint32_t len)
{
	numbers_fill(w->n, add(w, len), len);
}

static uint32_t payload_len(struct numbers *n)
{
	switch (numbers_below(n, 4)) {
	case 0:
		return 0;
	case 1:
		return numbers_below(n, 1400);
	default:
		return numbers_below(n, 120);
	}
}

/* ---- layers, from the top of the stack down; each returns its protocol's number ---- */

static void add_tcp_options(struct writer *w)
{
	static const uint8_t ts[] = { 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint8_t mss[] = { 2, 4, 5, 0xb4 }, nops[] = { 1, 1, 1, 1 };
	uint32_t i;

	for (i = numbers_below(w->n, 4); i; i--) {
		switch (numbers_below(w->n, 4)) {
		case 0:
			memcpy(add(w, sizeof(mss)), mss, sizeof(mss));
			break;
		case 1:
			memcpy(add(w, sizeof(nops)), nops, sizeof(nops));
			break;
		case 2:
			memcpy(add(w, sizeof(ts)), ts, sizeof(ts));
			break;
		default:
			numbers_fill(w->n, add(w, 4), 4);
		}
	}
}

static void add_tcp(struct writer *w)
{
	uint32_t start = w->len;
	uint8_t *tcp = add(w, 20);

	put16(tcp, packet_port(w->n));
	put16(tcp + 2, packet_port(w->n));
	numbers_fill(w->n, tcp + 4, 8);
	tcp[13] = (uint8_t)(numbers_below(w->n, 2) ? 0x02 : numbers_next(w->n));
	put16(tcp + 14, 0xffff);
	add_tcp_options(w);
	tcp[12] = (uint8_t)((w->len - start) / 4 << 4);
	add_payload(w, payload_len(w->n));
	put16(tcp + 16, complement(sum16(tcp, w->len - start, 0))); /* without the pseudo-header: nobody looks */
}

static void add_udp(struct writer *w)
{
	uint32_t start = w->len;
	uint8_t *udp = add(w, 8);

	put16(udp, packet_port(w->n));
	put16(udp + 2, packet_port(w->n));
	add_payload(w, payload_len(w->n));
	put16(udp + 4, w->len - start);
	if (numbers_below(w->n, 4))
		put16(udp + 6, complement(sum16(udp, w->len - start, 0)));
}

static void add_icmp(struct writer *w)
{
	uint32_t start = w->len;
	uint8_t *icmp = add(w, 8);

	icmp[0] = (uint8_t)(numbers_below(w->n, 3) ? 8 : numbers_next(w->n));
	numbers_fill(w->n, icmp + 4, 4);
	add_payload(w, payload_len(w->n));
	put16(icmp + 2, complement(sum16(icmp, w->len - start, 0)));
}

static void add_transport(struct writer *w, uint8_t protocol)
{
	if (protocol == 6)
		add_tcp(w);
	else if (protocol == 17)
		add_udp(w);
	else if (protocol == 1 || protocol == 58)
		add_icmp(w);
	else
		add_payload(w, payload_len(w->n));
}

static void add_ipv4(struct writer *w)
{
	uint32_t start = w->len, options = numbers_below(w->n, 8) ? 0 : 4 * numbers_below(w->n, 10);
	uint8_t *ip = add(w, 20 + options);

	ip[0] = (uint8_t)(0x45 + options / 4);
	if (!numbers_below(w->n, 40))
		ip[0] = (uint8_t)numbers_next(w->n);
	ip[1] = (uint8_t)(numbers_below(w->n, 2) ? 0 : numbers_next(w->n));
	put16(ip + 4, numbers_below(w->n, 0x10000));
	if (!numbers_below(w->n, 10))
		put16(ip + 6, numbers_below(w->n, 0x10000)); /* a fragment */
	ip[8] = (uint8_t)(numbers_below(w->n, 3) ? 64 : numbers_next(w->n));
	ip[9] = packet_protocol(w->n);
	packet_ipv4(w->n, ip + 12);
	packet_ipv4(w->n, ip + 16);
	numbers_fill(w->n, ip + 20, options);
	add_transport(w, ip[9]);
	put16(ip + 2, w->len - start);
	put16(ip + 10, complement(sum16(ip, 20 + options, 0)));
}

/** Extension headers in front of @protocol; returns what the header before them must call next. */
static uint8_t add_extensions(struct writer *w, uint8_t protocol)
{
	static const uint8_t kinds[] = { 0, 43, 44, 60 };
	uint32_t i, n = numbers_below(w->n, 3) ? 0 : numbers_below(w->n, 8), words;
	uint8_t first = protocol, *last = &first, *ext;

	for (i = 0; i < n; i++) {
		*last = kinds[numbers_below(w->n, sizeof(kinds))];
		words = *last == 44 ? 0 : numbers_below(w->n, 3);
		ext = add(w, 8 + 8 * words);
		ext[1] = (uint8_t)words;
		last = ext;
	}
	*last = protocol;
	return first;
}

static void add_ipv6(struct writer *w)
{
	uint8_t *ip = add(w, 40), protocol = packet_protocol(w->n);
	uint32_t start = w->len;

	ip[0] = 0x60;
	numbers_fill(w->n, ip + 1, 3);
	ip[7] = (uint8_t)(numbers_below(w->n, 4) ? 64 : numbers_below(w->n, 3));
	packet_ipv6(w->n, ip + 8);
	packet_ipv6(w->n, ip + 24);
	if (protocol == 1)
		protocol = 58;
	ip[6] = add_extensions(w, protocol);
	add_transport(w, protocol);
	put16(ip + 4, w->len - start);
}

static void add_arp(struct writer *w)
{
	uint8_t *arp = add(w, 28);

	memcpy(arp, "\x00\x01\x08\x00\x06\x04\x00", 7);
	arp[7] = (uint8_t)(1 + numbers_below(w->n, 3));
	packet_mac(w->n, arp + 8);
	packet_ipv4(w->n, arp + 14);
	packet_mac(w->n, arp + 18);
	packet_ipv4(w->n, arp + 24);
	add(w, numbers_below(w->n, 2) * 18);
}

static void add_ethernet(struct writer *w, uint16_t type)
{
	uint32_t tags = numbers_below(w->n, 4) ? 0 : 1 + numbers_below(w->n, 3);
	uint8_t *eth = add(w, 12), *tag;

	packet_mac(w->n, eth);
	packet_mac(w->n, eth + 6);
	for (; tags; tags--) {
		tag = add(w, 4);
		put16(tag, numbers_below(w->n, 3) ? 0x8100 : 0x88a8);
		put16(tag + 2, numbers_below(w->n, 3) ? numbers_below(w->n, 4) + 1 : numbers_below(w->n, 0x10000));
	}
	put16(add(w, 2), type);
}

static void make_valid(struct writer *w)
{
	switch (numbers_below(w->n, 10)) {
	case 0:
		add_ethernet(w, 0x0806);
		add_arp(w);
		break;
	case 1:
		add_ethernet(w, (uint16_t)numbers_next(w->n));
		add_payload(w, payload_len(w->n));
		break;
	case 2:
	case 3:
	case 4:
		add_ethernet(w, 0x86dd);
		add_ipv6(w);
		break;
	default:
		add_ethernet(w, 0x0800);
		add_ipv4(w);
	}
}

/** Some bytes of a packet change, or it ends too early. */
static void damage(struct writer *w)
{
	uint32_t i;

	switch (numbers_below(w->n, 6)) {
	case 0:
		w->len = PACKET_MIN + numbers_below(w->n, 70); /* somewhere in the headers */
		break;
	case 1:
		for (i = 1 + numbers_below(w->n, 4); i; i--)
			w->bytes[numbers_below(w->n, w->len)] = (uint8_t)numbers_next(w->n);
		break;
	}
}

uint32_t packet_make(struct numbers *n, uint8_t bytes[PACKET_MAX])
{
	uint8_t room[2 * PACKET_MAX];
	struct writer w = { n, room, 0 };

	memset(room, 0, sizeof(room));
	if (numbers_below(n, 12) == 0) {
		add_payload(&w, PACKET_MIN + numbers_below(n, numbers_below(n, 2) ? 100 : PACKET_MAX - PACKET_MIN + 1));
	} else {
		make_valid(&w);
		damage(&w);
	}
	if (w.len > PACKET_MAX)
		w.len = PACKET_MAX;
	memcpy(bytes, room, w.len);
	return w.len;
}
