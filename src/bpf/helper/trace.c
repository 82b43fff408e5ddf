/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c: the text of bpf_trace_printk() and bpf_trace_vprintk(). Worker.
 *
 * A conversion is %, flags (0 - + space), a width, then d i u x X with l or ll before it, c, s, or p with one of
 * K x s S B i4 I4 i6 I6 ks us behind it. All else is refused before anything is printed, as are more conversions than
 * arguments. A string is read only as far as it lies in the program's stack, in the packet, in a map of its object or
 * in the key that a callback was given; else it is empty, as it is in the kernel for a bad address. A pointer is
 * printed as the number it is (the kernel prints a hash).
 */
#include "bpf/helper/trace.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/map/map.h"
#include "bpf/prog.h"

#define WIDTH_MAX 999u

/** One conversion: how it is written in C, and what it is. */
struct conversion {
	char flags[8];
	unsigned int width;
	unsigned int longs; /* l: 1, ll: 2 */
	char kind;          /* d u x X c s p % */
	char extra[3];      /* after p */
};

/** The line as far as it got. */
struct line {
	char *buf;
	size_t len; /* wanted; may pass the end */
};

/* ---- what may be read ---- */

static bool in_maps(const struct leat_bpf_run *run, uint64_t addr)
{
	const struct leat_bpf_object *obj = run->prog ? run->prog->obj : NULL;
	uint32_t i;

	for (i = 0; obj && i < leat_bpf_object_maps(obj); i++)
		if (leat_bpf_map_is_made(&obj->map[i]) && obj->map[i].type->contains(&obj->map[i], addr, 1))
			return true;
	return false;
}

static bool is_lent(const struct leat_bpf_run *run, uint64_t addr)
{
	const struct leat_bpf_lent *lent = run->lent;

	while (lent && addr - (uint64_t)(uintptr_t)lent->bytes >= lent->size)
		lent = lent->prev;
	return lent;
}

static bool readable(const struct leat_bpf_run *run, uint64_t addr)
{
	uint64_t stack = (uint64_t)(uintptr_t)run->stack;
	uint64_t data = run->xdp ? (uint64_t)(uintptr_t)run->xdp->data_meta : 0;

	if (stack && addr - stack < (uint64_t)LEAT_BPF_FRAMES_MAX * LEAT_BPF_STACK_SIZE)
		return true;
	if (data && addr - data < (uint64_t)(run->xdp->data_end - run->xdp->data_meta))
		return true;
	return is_lent(run, addr) || in_maps(run, addr);
}

/** Copies at most @max bytes up to a NUL or an unreadable byte, which makes it empty. */
static void read_text(const struct leat_bpf_run *run, uint64_t addr, char *text, size_t max)
{
	size_t i;

	for (i = 0; i + 1 < max; i++) {
		if (!readable(run, addr + i)) {
			i = 0;
			break;
		}
		text[i] = *(const char *)(uintptr_t)(addr + i);
		if (!text[i])
			return;
	}
	text[i] = '\0';
}

static bool read_bytes(const struct leat_bpf_run *run, uint64_t addr, uint8_t *to, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!readable(run, addr + i))
			return false;
		to[i] = *(const uint8_t *)(uintptr_t)(addr + i);
	}
	return true;
}

/* ---- the format ---- */

static bool is_end(char c)
{
	return !c || isspace((unsigned char)c) || ispunct((unsigned char)c);
}

/** %p and what follows: what the file head lists, or the end of a word. */
static const char *parse_pointer(const char *at, struct conversion *conv)
{
	conv->kind = 'p';
	if (is_end(*at))
		return at;
	if ((*at == 'k' || *at == 'u') && at[1] == 's') {
		conv->kind = 's';
		return at + 2;
	}
	if (strchr("KxsSB", *at)) {
		conv->extra[0] = *at;
		return at + 1;
	}
	if ((*at == 'i' || *at == 'I') && (at[1] == '4' || at[1] == '6')) {
		memcpy(conv->extra, at, 2);
		return at + 2;
	}
	return NULL;
}

/** One conversion behind its %; returns what follows it, or NULL. */
static const char *parse(const char *at, struct conversion *conv)
{
	size_t n = strspn(at, "0-+ ");

	*conv = (struct conversion){ .kind = '%' };
	if (*at == '%')
		return at + 1;
	if (n >= sizeof(conv->flags))
		return NULL;
	memcpy(conv->flags, at, n);
	for (at += n; isdigit((unsigned char)*at); at++)
		conv->width = conv->width > WIDTH_MAX ? conv->width : conv->width * 10 + (unsigned int)(*at - '0');
	if (conv->width > WIDTH_MAX)
		return NULL;
	if (*at == 'p')
		return parse_pointer(at + 1, conv);
	if (*at == 's' || *at == 'c') {
		conv->kind = *at;
		return at + 1;
	}
	for (; *at == 'l' && conv->longs < 2; at++)
		conv->longs++;
	if (!*at || !strchr("diuxX", *at))
		return NULL;
	conv->kind = *at == 'i' ? 'd' : *at;
	return at + 1;
}

/** Whether the kernel takes it: every conversion known, no more than there are arguments, printable. */
static bool check(const char *fmt, unsigned int n_args)
{
	struct conversion conv;
	unsigned int n = 0;

	while (*fmt) {
		if ((!isprint((unsigned char)*fmt) && !isspace((unsigned char)*fmt)) || !isascii((unsigned char)*fmt))
			return false;
		if (*fmt++ != '%')
			continue;
		fmt = parse(fmt, &conv);
		if (!fmt)
			return false;
		n += conv.kind != '%';
		if (n > n_args)
			return false;
	}
	return true;
}

/* ---- printing ---- */

static void put_char(struct line *line, char c)
{
	if (line->len < LEAT_BPF_TRACE_MAX - 1)
		line->buf[line->len] = c;
	line->len++;
}

/** Pads @text to the width. */
static void put_text(struct line *line, const struct conversion *conv, const char *text)
{
	size_t len = strlen(text), pad = conv->width > len ? conv->width - len : 0;
	bool left = strchr(conv->flags, '-');

	for (; !left && pad; pad--)
		put_char(line, ' ');
	for (; *text; text++)
		put_char(line, *text);
	for (; pad; pad--)
		put_char(line, ' ');
}

static void put_number(struct line *line, const struct conversion *conv, uint64_t arg)
{
	char text[WIDTH_MAX + 32], fmt[24];
	bool is_signed = conv->kind == 'd';
	size_t i;

	if (!conv->longs)
		arg = is_signed ? (uint64_t)(int64_t)(int32_t)arg : (uint32_t)arg;
	snprintf(fmt, sizeof(fmt), "%%%s*ll%c", conv->flags, conv->kind);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	/* made above, of flags and a kind that parse() let through */
	if (is_signed)
		snprintf(text, sizeof(text), fmt, (int)conv->width, (long long)arg);
	else
		snprintf(text, sizeof(text), fmt, (int)conv->width, (unsigned long long)arg);
#pragma GCC diagnostic pop
	for (i = 0; text[i]; i++)
		put_char(line, text[i]);
}

/** How the bytes of an address are written, and what stands between them. */
struct address_style {
	char extra[3];
	unsigned int n, group; /* bytes in all; bytes before a separator */
	const char *byte, *separator;
};

static const struct address_style address_styles[] = {
	{ "i4", 4, 1, "%03u", "." },
	{ "I4", 4, 1, "%u", "." },
	{ "i6", 16, 2, "%02x", "" },
	{ "I6", 16, 2, "%02x", ":" },
};

static void put_address(const struct leat_bpf_run *run, struct line *line, const struct conversion *conv, uint64_t arg)
{
	const struct address_style *style = address_styles;
	char text[64] = "";
	uint8_t b[16] = { 0 };
	unsigned int i;
	size_t n = 0;

	while (strcmp(style->extra, conv->extra) != 0)
		style++;
	if (read_bytes(run, arg, b, style->n)) {
		for (i = 0; i < style->n; i++) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
					      i && i % style->group == 0 ? style->separator : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			n += (size_t)snprintf(text + n, sizeof(text) - n, style->byte, b[i]); /* from the table */
#pragma GCC diagnostic pop
		}
	}
	put_text(line, conv, text);
}

static void put_pointer(const struct leat_bpf_run *run, struct line *line, const struct conversion *conv, uint64_t arg)
{
	char text[24];

	if (conv->extra[1]) {
		put_address(run, line, conv, arg);
		return;
	}
	snprintf(text, sizeof(text), conv->extra[0] == 'x' ? "%llx" : "%016llx", (unsigned long long)arg);
	put_text(line, conv, text);
}

static void put(const struct leat_bpf_run *run, struct line *line, const struct conversion *conv, uint64_t arg)
{
	char text[LEAT_BPF_TRACE_MAX];

	switch (conv->kind) {
	case 's':
		read_text(run, arg, text, sizeof(text));
		put_text(line, conv, text);
		break;
	case 'c':
		put_char(line, (char)arg);
		break;
	case 'p':
		put_pointer(run, line, conv, arg);
		break;
	default:
		put_number(line, conv, arg);
	}
}

int leat_bpf_trace_format(const struct leat_bpf_run *run, char *buf, const char *fmt, uint32_t fmt_size,
			  const uint64_t *args, unsigned int n_args)
{
	struct line line = { buf, 0 };
	char own[LEAT_BPF_TRACE_MAX];
	struct conversion conv;
	unsigned int n = 0;
	const char *at;

	/* a copy, for the program's memory may change */
	if (!fmt_size || fmt_size > sizeof(own))
		return -EINVAL;
	memcpy(own, fmt, fmt_size);
	if (!memchr(own, '\0', fmt_size) || !check(own, n_args))
		return -EINVAL;
	for (at = own; *at;) {
		if (*at != '%') {
			put_char(&line, *at++);
			continue;
		}
		at = parse(at + 1, &conv);
		if (!at)
			break;
		if (conv.kind == '%')
			put_char(&line, '%');
		else
			put(run, &line, &conv, args[n++]);
	}
	buf[line.len < LEAT_BPF_TRACE_MAX - 1 ? line.len : LEAT_BPF_TRACE_MAX - 1] = '\0';
	return (int)line.len;
}
