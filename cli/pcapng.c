/* SPDX-License-Identifier: BSD-3-Clause */
/* pcapng.c: see pcapng.h. The sections that comments name are draft-ietf-opsawg-pcapng's. */
#include "pcapng.h"

#include <string.h>

#define BLOCK_SECTION 0x0a0d0d0au  /* 4.1 */
#define BLOCK_INTERFACE 0x1u       /* 4.2 */
#define BLOCK_PACKET 0x6u          /* 4.3 */
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u

/* Codes of options: 3.5, and those of the block. */
#define OPT_END 0u
#define OPT_COMMENT 1u
#define SHB_USERAPPL 4u
#define IF_NAME 2u
#define IF_TSRESOL 9u
#define EPB_FLAGS 2u
#define EPB_VERDICT 7u

#define EPB_INBOUND 1u          /* 4.3.1: bits 0 and 1 of the flags */
#define VERDICT_LINUX_XDP 2u    /* 4.3: first byte of a verdict */
#define TSRESOL_NANOSECONDS 9u  /* 4.2: negative power of ten */

#define TEXT_MAX 255u

/* What stands after the fixed fields of a block. */
struct options {
	uint8_t bytes[2 * (TEXT_MAX + 8) + 64];
	uint32_t len;
};

static void put(FILE *out, const void *bytes, size_t len)
{
	fwrite(bytes, 1, len, out);
}

static uint32_t padded(uint32_t len)
{
	return (len + 3) & ~3u;
}

/* 3.5: code, length, value, padded to four bytes. */
static void option(struct options *o, uint16_t code, const void *value, uint16_t len)
{
	const uint16_t head[2] = { code, len };

	memcpy(o->bytes + o->len, head, sizeof(head));
	o->len += sizeof(head);
	memset(o->bytes + o->len, 0, padded(len));
	memcpy(o->bytes + o->len, value, len);
	o->len += padded(len);
}

/* Of names in an object only what is plain ASCII, so that it is UTF-8 and does nothing to a terminal. */
static void text_option(struct options *o, uint16_t code, const char *text)
{
	char plain[TEXT_MAX];
	uint16_t i;

	for (i = 0; i < TEXT_MAX && text[i]; i++)
		plain[i] = text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i];
	option(o, code, plain, i);
}

/* 3.1: type, length, what it holds, and the length once more. */
static void block(FILE *out, uint32_t type, const void *fixed, uint32_t fixed_len, const void *data, uint32_t len,
		  struct options *o)
{
	static const uint8_t zero[4];
	uint32_t head[2];

	option(o, OPT_END, "", 0);
	head[0] = type;
	head[1] = (uint32_t)sizeof(head) + fixed_len + padded(len) + o->len + (uint32_t)sizeof(head[1]);
	put(out, head, sizeof(head));
	put(out, fixed, fixed_len);
	put(out, data, len);
	put(out, zero, padded(len) - len);
	put(out, o->bytes, o->len);
	put(out, &head[1], sizeof(head[1]));
}

void pcapng_begin(FILE *out, const char *application, const char *interface)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t section_len[2];
	} section = { BYTE_ORDER_MAGIC, 1, 0, { UINT32_MAX, UINT32_MAX } }; /* of unknown length */
	const struct {
		uint16_t linktype, reserved;
		uint32_t snap_len; /* no limit */
	} description = { LINKTYPE_ETHERNET, 0, 0 };
	const uint8_t resolution = TSRESOL_NANOSECONDS;
	struct options o = { .len = 0 };

	text_option(&o, SHB_USERAPPL, application);
	block(out, BLOCK_SECTION, &section, sizeof(section), "", 0, &o);
	o.len = 0;
	text_option(&o, IF_NAME, interface);
	option(&o, IF_TSRESOL, &resolution, sizeof(resolution));
	block(out, BLOCK_INTERFACE, &description, sizeof(description), "", 0, &o);
}

void pcapng_packet(FILE *out, const struct pcapng_packet *packet)
{
	const struct {
		uint32_t interface, time_high, time_low, captured, original;
	} fixed = { 0, (uint32_t)(packet->time >> 32), (uint32_t)packet->time, packet->len, packet->len };
	const uint32_t flags = EPB_INBOUND;
	uint8_t verdict[1 + sizeof(packet->verdict)] = { VERDICT_LINUX_XDP };
	struct options o = { .len = 0 };

	text_option(&o, OPT_COMMENT, packet->comment);
	option(&o, EPB_FLAGS, &flags, sizeof(flags));
	memcpy(verdict + 1, &packet->verdict, sizeof(packet->verdict));
	option(&o, EPB_VERDICT, verdict, sizeof(verdict));
	block(out, BLOCK_PACKET, &fixed, sizeof(fixed), packet->bytes, packet->len, &o);
}
