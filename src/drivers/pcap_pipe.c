/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcap_pipe.c: captures from pipes, received without waiting.
 *
 * libpcap cannot be told to come back later: a record that it has begun it must finish, or the capture is lost. So the
 * beginning of each record is read here too, only to know how long it is, and libpcap is called when all of it has come
 * or nothing more will; then it reports the truncation in its own words. It reads through a stream of our own, which
 * never waits. Whether there is something to read is asked of poll(): standard input may be shared and stays in the
 * mode it has, and a FIFO that no writer has opened yet would read as one that the last writer has closed.
 */
#include "drivers/pcap_pipe.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/heap.h"

#define FILE_HEADER 24u
#define RECORD_HEADER 16u
#define CAPLEN_OFFSET 8u
#define PIPE_SIZE (RECORD_HEADER + PCAP_SNAPLEN)

#define MAGIC_MICRO 0xa1b2c3d4u
#define MAGIC_NANO 0xa1b23c4du
#define MAGIC_NG 0x0a0d0d0au

int pcap_pipe_init(struct pcap_pipe *pipe, int fd)
{
	memset(pipe, 0, sizeof(*pipe));
	pipe->fd = fd;
	pipe->bytes = leat_heap_zalloc(PIPE_SIZE);
	return pipe->bytes ? 0 : -ENOMEM;
}

void pcap_pipe_fini(struct pcap_pipe *pipe)
{
	leat_heap_free(pipe->bytes);
	pipe->bytes = NULL;
}

static uint32_t u32_at(const struct pcap_pipe *pipe, size_t off)
{
	uint32_t v;

	memcpy(&v, pipe->bytes + pipe->used + off, sizeof(v));
	return pipe->swapped ? __builtin_bswap32(v) : v;
}

/* How many bytes libpcap reads next, as far as is known. */
static size_t bytes_wanted(const struct pcap_pipe *pipe)
{
	uint32_t caplen;

	if (!pipe->framed)
		return FILE_HEADER;
	if (pipe->len - pipe->used < RECORD_HEADER)
		return RECORD_HEADER;
	caplen = u32_at(pipe, CAPLEN_OFFSET);
	return caplen > PCAP_SNAPLEN ? RECORD_HEADER : RECORD_HEADER + caplen; /* too long: it reads no further */
}

/* Makes room for @want bytes in one piece. */
static void close_up(struct pcap_pipe *pipe, size_t want)
{
	if (pipe->used < pipe->len && PIPE_SIZE - pipe->used >= want)
		return;
	memmove(pipe->bytes, pipe->bytes + pipe->used, pipe->len - pipe->used);
	pipe->len -= pipe->used;
	pipe->used = 0;
}

/* Returns 1 when bytes or the end have come, 0 when there is nothing, or a negative errno. */
static int receive(struct pcap_pipe *pipe)
{
	struct pollfd pfd = { .fd = pipe->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&pfd, 1, 0) <= 0)
		return 0;
	do
		n = read(pipe->fd, pipe->bytes + pipe->len, PIPE_SIZE - pipe->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	pipe->ended = n == 0;
	pipe->len += (size_t)n;
	return 1;
}

int pcap_pipe_fill(struct pcap_pipe *pipe)
{
	size_t want;
	int got;

	while (!pipe->ended && pipe->len - pipe->used < (want = bytes_wanted(pipe))) {
		close_up(pipe, want);
		got = receive(pipe);
		if (got <= 0)
			return got;
	}
	return 1;
}

const char *pcap_pipe_frame(struct pcap_pipe *pipe)
{
	uint32_t magic;

	pipe->framed = true;
	if (pipe->len < FILE_HEADER)
		return NULL; /* truncated: libpcap says so */
	magic = u32_at(pipe, 0);
	if (magic == MAGIC_NG)
		return "pcapng cannot be read from a pipe, only from a file";
	pipe->swapped = magic != MAGIC_MICRO && magic != MAGIC_NANO;
	magic = u32_at(pipe, 0);
	return magic == MAGIC_MICRO || magic == MAGIC_NANO ? NULL : "unknown file format";
}

static ssize_t hand_out(void *cookie, char *buf, size_t size)
{
	struct pcap_pipe *pipe = cookie;
	size_t n = pipe->len - pipe->used < size ? pipe->len - pipe->used : size;

	memcpy(buf, pipe->bytes + pipe->used, n);
	pipe->used += n;
	return (ssize_t)n;
}

FILE *pcap_pipe_stream(struct pcap_pipe *pipe)
{
	FILE *stream = fopencookie(pipe, "rb", (cookie_io_functions_t){ .read = hand_out });

	if (stream)
		setvbuf(stream, NULL, _IONBF, 0); /* what is counted as read is what libpcap has */
	return stream;
}
