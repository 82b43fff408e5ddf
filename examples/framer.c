/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * framer.c: messages from a byte stream, without a copy and without a lock: a use of leat's packet memory that has
 * nothing to do with packets.
 *
 * A stream carries messages, each after its length (4 bytes, big endian). The reader lets the kernel write straight into
 * a page_frag_cache (prepare, read, commit) and cuts messages where they lie; a message that is cut by the end of a chunk
 * is the only one that is moved. A second thread takes the messages, here to add up their bytes, and puts them: what it
 * returns goes back to the reader's pool by a ring of its own.
 *
 *	framer <STREAM		reads standard input, prints how many messages and bytes there were
 *	framer --generate N	writes N messages to standard output
 */
#include <arpa/inet.h>
#include <errno.h>
#include <leat/page_frag.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD 4u
#define MESSAGE_MAX 16384u
#define QUEUE 256u

struct message {
	const uint8_t *data; /* NULL: there are no more */
	uint32_t len;
	struct leat_run run; /* the reference that the taker puts */
};

/* ---- from one thread to the other ---- */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct message slot[QUEUE];
	unsigned int head, tail;
};

static struct queue queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void give(struct message message)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.head - queue.tail == QUEUE)
		pthread_cond_wait(&queue.changed, &queue.lock);
	queue.slot[queue.head++ % QUEUE] = message;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

/** Takes what is there, at least one. */
static unsigned int take(struct message *messages)
{
	unsigned int n = 0;

	pthread_mutex_lock(&queue.lock);
	while (queue.head == queue.tail)
		pthread_cond_wait(&queue.changed, &queue.lock);
	while (queue.tail != queue.head)
		messages[n++] = queue.slot[queue.tail++ % QUEUE];
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return n;
}

/* ---- the taker ---- */

struct sums {
	uint64_t messages, bytes, sum;
};

static void *taker(void *arg)
{
	struct message message[QUEUE];
	struct leat_run runs[QUEUE];
	struct sums *sums = arg;
	unsigned int i, n, k;
	bool more = true;

	while (more) {
		n = take(message);
		for (i = k = 0; i < n; i++) {
			const uint8_t *end = message[i].data + message[i].len, *byte;

			more = message[i].data != NULL;
			if (!more)
				break;
			for (byte = message[i].data; byte < end; byte++)
				sums->sum += *byte;
			sums->bytes += message[i].len;
			sums->messages++;
			runs[k++] = message[i].run;
		}
		leat_page_pool_put_page_bulk(runs, k); /* one publication, however many there are */
	}
	return NULL;
}

/* ---- the reader ---- */

/** What was read and is not cut into messages yet: bytes of one piece. */
struct reader {
	struct leat_page_frag_cache cache;
	struct leat_page_frag piece; /* data NULL: there is none */
	uint32_t off;                /* of it, already cut */
	uint64_t moved;              /* messages that lay across the end of a chunk */
};

/** Length of the message at @off, its head included, as the stream says; 0: not all of its head is there. */
static uint64_t message_at(const struct reader *r)
{
	uint32_t len;

	if (r->piece.size - r->off < HEAD)
		return 0;
	memcpy(&len, r->piece.data + r->off, HEAD);
	return (uint64_t)ntohl(len) + HEAD;
}

/** Hands on every message that is there as a whole. False: a length is out of range. */
static bool cut(struct reader *r)
{
	uint64_t len;

	while ((len = message_at(r)) && len <= HEAD + MESSAGE_MAX && len <= r->piece.size - r->off) {
		/* a piece has one reference; each message that leaves it takes one of its own */
		leat_page_pool_get_page(r->piece.run);
		give((struct message){ r->piece.data + r->off + HEAD, (uint32_t)len - HEAD, r->piece.run });
		r->off += (uint32_t)len;
	}
	return len <= HEAD + MESSAGE_MAX;
}

/** Room for at least one byte right behind the piece; in a fresh chunk, where the rest of a message is moved to, if need be. */
static struct leat_page_frag room(struct reader *r)
{
	uint32_t rest = r->piece.size - r->off;
	struct leat_page_frag left = leat_page_frag_probe(&r->cache, 1), fresh;

	if (r->piece.data && left.data)
		return left;
	fresh = leat_page_frag_prepare(&r->cache, HEAD + MESSAGE_MAX, 8);
	if (!fresh.data)
		return fresh;
	if (rest) {
		memcpy(fresh.data, r->piece.data + r->off, rest);
		r->moved++;
	}
	if (r->piece.data)
		leat_page_pool_put_page(r->piece.run);
	r->piece.data = NULL;
	if (rest) {
		r->piece = leat_page_frag_commit(&r->cache, fresh, rest);
		fresh = leat_page_frag_probe(&r->cache, 1);
	}
	r->off = 0;
	return fresh;
}

/** Reads until the stream ends. 0, or a negative errno. */
static int read_all(struct reader *r, int fd)
{
	struct leat_page_frag left;
	ssize_t n;

	for (;;) {
		left = room(r);
		if (!left.data)
			return -ENOMEM;
		n = read(fd, left.data, left.size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : r->piece.size != r->off ? -EPROTO : 0;
		if (r->piece.data)
			leat_page_frag_commit_more(&r->cache, &r->piece, (uint32_t)n);
		else
			r->piece = leat_page_frag_commit(&r->cache, left, (uint32_t)n);
		if (!cut(r))
			return -EPROTO;
	}
}

static int read_stream(struct leat_page_pool *pool)
{
	struct reader r = { .off = 0 };
	struct sums sums = { 0, 0, 0 };
	struct leat_page_pool_stats stats;
	pthread_t thread;
	int err;

	leat_page_pool_own(pool);
	leat_page_frag_init(&r.cache, pool);
	err = -pthread_create(&thread, NULL, taker, &sums);
	if (err)
		return err;
	err = read_all(&r, STDIN_FILENO);
	give((struct message){ NULL, 0, LEAT_RUN_NONE });
	pthread_join(thread, NULL);
	if (r.piece.data)
		leat_page_pool_put_page(r.piece.run);
	leat_page_frag_drain(&r.cache);
	leat_page_pool_drain(pool);
	leat_page_pool_stats(pool, &stats);
	printf("%llu messages, %llu bytes, sum %llu; %llu moved; outstanding: %llu\n", (unsigned long long)sums.messages,
	       (unsigned long long)sums.bytes, (unsigned long long)sums.sum, (unsigned long long)r.moved,
	       (unsigned long long)stats.outstanding);
	return err;
}

/* ---- the whole ---- */

static int generate(unsigned long n)
{
	static uint8_t bytes[MESSAGE_MAX];
	unsigned long i;
	uint32_t len, head;

	for (i = 0; i < n; i++) {
		len = (uint32_t)(i * 7919 % (i % 10 ? 600 : MESSAGE_MAX + 1));
		head = htonl(len);
		memset(bytes, (int)(i & 0xff), len);
		if (fwrite(&head, HEAD, 1, stdout) != 1 || fwrite(bytes, 1, len, stdout) != len)
			return -EIO;
	}
	return fflush(stdout) ? -EIO : 0;
}

static int with_memory(void)
{
	struct leat_segment_opts segment_opts = { .size = sizeof(segment_opts), .bytes = 16 << 20, .name = "framer" };
	struct leat_page_pool_opts pool_opts = { .size = sizeof(pool_opts), .name = "framer", .limit = 16 << 20 };
	struct leat_segment *segment = NULL;
	struct leat_arena *arena = NULL;
	struct leat_page_pool *pool = NULL;
	int err = leat_arena_create(NULL, &arena);

	if (!err)
		err = leat_segment_create(arena, &segment_opts, &segment);
	if (!err)
		err = leat_page_pool_create(segment, &pool_opts, &pool);
	if (!err)
		err = read_stream(pool);
	leat_page_pool_destroy(pool);
	leat_segment_destroy(segment);
	leat_arena_destroy(arena);
	return err;
}

int main(int argc, char **argv)
{
	int err;

	if (argc == 3 && !strcmp(argv[1], "--generate")) {
		err = generate(strtoul(argv[2], NULL, 10));
	} else if (argc == 1) {
		err = with_memory();
	} else {
		fprintf(stderr, "usage: framer <STREAM\n       framer --generate N\n");
		return 2;
	}
	if (err)
		fprintf(stderr, "framer: %s\n", strerror(-err));
	return err ? 1 : 0;
}
