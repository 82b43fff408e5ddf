/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: the control socket: connections, requests in, replies out. Control thread; nothing here blocks.
 *
 * Theory of operation. Each connection holds at most one line of a request that has not come in full, and at most one
 * reply that has not gone out in full. While a reply is on its way nothing is read, so who does not read its replies
 * stops only itself; the kernel's socket buffers do the rest. A round (leat_control_serve()) answers one request of a
 * connection; if more of them have come already, the connection waits for "can be written", which wakes the next round
 * at once, after the others had their turn.
 *
 *   reading   -- line -->   writing   -- all gone -->   reading, or the next line
 *      | end of input: what came is the last line          | the peer is gone
 *      v                                                   v
 *   closed when nothing is left to say                  closed
 *
 * There are LEAT_CONTROL_CLIENTS places. When all are taken, a new connection gets that of the one that has neither
 * sent nor taken anything for the longest time, if that is IDLE_NS; else it is told so and closed. So neither
 * connections that say nothing nor slow readers keep people out, and there is no timer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "ctl/control.h"

#define IDLE_NS (10 * LEAT_NSEC_PER_SEC)
/** Connections taken in one round. */
#define ACCEPTS_MAX 16
/** There is no default place for this user, or none is wanted. */
#define NO_PLACE (-ENODATA)
/** Number of the listening socket among the events. */
#define LISTENER LEAT_CONTROL_CLIENTS

struct client {
	int fd;          /* -1: a free place */
	bool ended;      /* it sends nothing more */
	bool last;       /* the reply on its way is the last: what it sends makes no sense */
	uint32_t waits;  /* EPOLLIN or EPOLLOUT */
	size_t in_len;
	char *out;       /* NULL: nothing on its way */
	size_t out_len, out_off;
	uint64_t moved;  /* monotonic ns at which it last sent or took something */
	char in[LEAT_CONTROL_LINE_MAX];
};

struct leat_control {
	struct leat_datapath *dp;
	struct leat_control_socket socket;
	int epoll;
	int spare; /* a descriptor to give up when there is none left, so that who knocks can be turned away */
	uint64_t idle_ns;
	struct client client[LEAT_CONTROL_CLIENTS];
};

/* ---- one connection ---- */

static void drop_client(struct client *c)
{
	close(c->fd); /* which takes it out of epoll, too */
	free(c->out);
	c->out = NULL;
	c->fd = -1;
}

static void set_reply(struct client *c, char *text, size_t len)
{
	c->out = text;
	c->out_len = len;
	c->out_off = 0;
}

static void complain(struct client *c, const char *line)
{
	char *copy = strdup(line);

	c->last = true;
	if (copy)
		set_reply(c, copy, strlen(copy));
}

/** Returns false when the peer is gone. */
static bool send_reply(struct client *c)
{
	ssize_t n;

	while (c->out_off < c->out_len) {
		n = send(c->fd, c->out + c->out_off, c->out_len - c->out_off, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->out_off += (size_t)n;
		c->moved = leat_clock_ns();
	}
	free(c->out);
	c->out = NULL;
	return true;
}

/** Bytes of the first line with its end, 0: it is not complete. What came before the end of input is a line, too. */
static size_t line_len(const struct client *c)
{
	const char *end = memchr(c->in, '\n', c->in_len);

	return end ? (size_t)(end - c->in) + 1 : c->ended ? c->in_len : 0;
}

/** Returns false when the connection is broken. */
static bool receive(struct client *c)
{
	ssize_t n;

	if (c->ended || line_len(c) || c->in_len == sizeof(c->in))
		return true;
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->ended = !n;
	c->in_len += (size_t)n;
	if (n)
		c->moved = leat_clock_ns();
	return true;
}

static void take_line(struct client *c, size_t len)
{
	c->in_len -= len;
	memmove(c->in, c->in + len, c->in_len);
}

/** Lines with nothing in them ask for nothing. */
static void skip_empty_lines(struct client *c)
{
	size_t n = 0;

	while (n < c->in_len && (c->in[n] == '\n' || c->in[n] == '\r'))
		n++;
	take_line(c, n);
}

static void answer(struct leat_control *control, struct client *c)
{
	size_t len, reply_len;
	char *reply;

	skip_empty_lines(c);
	len = line_len(c);
	if (!len && c->in_len == sizeof(c->in)) {
		complain(c, "{\"error\": \"the line is too long\"}\n");
	} else if (len) {
		reply = leat_control_answer(control->dp, c->in, len, &reply_len);
		take_line(c, len);
		if (reply)
			set_reply(c, reply, reply_len);
		else
			complain(c, "{\"error\": \"out of memory\"}\n");
	}
}

/** Waits for what it needs next. Returns false when there is nothing more to wait for. */
static bool wait_on(struct leat_control *control, unsigned int idx)
{
	struct client *c = &control->client[idx];
	struct epoll_event event = { .data.u32 = idx };

	if (!c->out && (c->last || (c->ended && !c->in_len)))
		return false;
	event.events = c->out || line_len(c) ? EPOLLOUT : EPOLLIN;
	if (event.events == c->waits)
		return true;
	c->waits = event.events;
	return !epoll_ctl(control->epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void serve_client(struct leat_control *control, unsigned int idx)
{
	struct client *c = &control->client[idx];
	bool good = true;

	if (c->fd < 0)
		return;
	if (c->out)
		good = send_reply(c);
	if (good && !c->out && !c->last) {
		good = receive(c);
		if (good)
			answer(control, c);
		if (good && c->out)
			good = send_reply(c);
	}
	if (!good || !wait_on(control, idx))
		drop_client(c);
}

/* ---- new connections ---- */

static int find_place(struct leat_control *control)
{
	uint64_t now = leat_clock_ns();
	struct client *oldest = &control->client[0];
	unsigned int i;

	for (i = 0; i < LEAT_CONTROL_CLIENTS; i++) {
		if (control->client[i].fd < 0)
			return (int)i;
		if (control->client[i].moved < oldest->moved)
			oldest = &control->client[i];
	}
	if (now - oldest->moved < control->idle_ns)
		return -1;
	drop_client(oldest);
	return (int)(oldest - control->client);
}

/** Closes a connection that there is no place for. */
static void refuse(int fd)
{
	static const char line[] = "{\"error\": \"there are too many connections\"}\n";

	ssize_t n = send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL);

	(void)n; /* in any case it sees that it is closed */
	close(fd);
}

static void admit(struct leat_control *control, int fd)
{
	int idx = find_place(control);
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)idx };
	struct client *c;

	if (idx < 0 || epoll_ctl(control->epoll, EPOLL_CTL_ADD, fd, &event)) {
		refuse(fd);
		return;
	}
	c = &control->client[idx];
	c->fd = fd;
	c->ended = false;
	c->last = false;
	c->waits = EPOLLIN;
	c->in_len = 0;
	c->moved = leat_clock_ns();
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/** The process has no descriptor left: the connection must go, or it would wake us for ever. */
static void turn_away(struct leat_control *control)
{
	int fd;

	close(control->spare);
	fd = accept4(control->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		refuse(fd);
	control->spare = open_spare();
}

static void accept_clients(struct leat_control *control)
{
	int i, fd;

	for (i = 0; i < ACCEPTS_MAX; i++) {
		fd = accept4(control->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			admit(control, fd);
		else if ((errno == EMFILE || errno == ENFILE) && control->spare >= 0)
			turn_away(control);
		else
			break;
	}
}

void leat_control_serve(struct leat_control *control)
{
	struct epoll_event event[LEAT_CONTROL_CLIENTS + 1];
	int i, n = control ? epoll_wait(control->epoll, event, LEAT_CONTROL_CLIENTS + 1, 0) : 0;
	bool knock = false;

	for (i = 0; i < n; i++) {
		if (event[i].data.u32 == LISTENER)
			knock = true;
		else
			serve_client(control, event[i].data.u32);
	}
	if (knock) /* after the others, whose events these were: places may change hands */
		accept_clients(control);
}

/* ---- open and close ---- */

static int watch(struct leat_control *control)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = LISTENER };
	int err;

	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (control->epoll < 0)
		return -errno;
	err = epoll_ctl(control->epoll, EPOLL_CTL_ADD, control->socket.fd, &event) ? -errno : 0;
	if (err)
		close(control->epoll);
	return err;
}

/** The folder of the default place need not be there. */
static void make_folder(const char *path)
{
	char folder[sizeof(((struct leat_control_socket *)0)->path)];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return;
	*slash = '\0';
	if (mkdir(folder, 0755))
		return; /* it is there, or opening the socket says what is wrong */
}

static int open_at(struct leat_control *control, const struct leat_config_control *config, char *why, size_t size)
{
	char path[sizeof(control->socket.path)];
	int err;

	if (config->path)
		return leat_control_listen(config, config->path, &control->socket, why, size);
	err = leat_control_default_path(path, sizeof(path));
	if (err) {
		snprintf(why, size, "there is no place for it: a path must be given");
		return err == -ENOENT ? NO_PLACE : err;
	}
	if (!getenv("LEAT_CONTROL"))
		make_folder(path);
	return leat_control_listen(config, path, &control->socket, why, size);
}

/** Without a section nobody may have wanted a socket: the run goes on without. */
static int do_without(struct leat_datapath *dp, struct leat_diag *diag, int err, const char *why)
{
	const struct leat_config *config = leat_datapath_config(dp);

	if (config->control.given) {
		leat_diag_at(diag, config->file, config->control.pos.line, config->control.pos.column, "control");
		leat_diag_add(diag, "%s", why);
		return err;
	}
	if (err != NO_PLACE)
		leat_log(leat_net_log(leat_datapath_net(dp)), LEAT_LOG_WARNING, "no control socket: %s", why);
	return 0;
}

int leat_control_open(struct leat_datapath *dp, struct leat_diag *diag, struct leat_control **out)
{
	const struct leat_config_control *config = &leat_datapath_config(dp)->control;
	struct leat_control *control;
	char why[256] = "";
	unsigned int i;
	int err;

	*out = NULL;
	if (config->off)
		return 0;
	control = leat_heap_zalloc(sizeof(*control));
	if (!control)
		return -ENOMEM;
	control->dp = dp;
	control->idle_ns = IDLE_NS;
	for (i = 0; i < LEAT_CONTROL_CLIENTS; i++)
		control->client[i].fd = -1;
	err = open_at(control, config, why, sizeof(why));
	if (err) {
		leat_heap_free(control);
		return do_without(dp, diag, err, why);
	}
	err = watch(control);
	if (err) {
		leat_control_unlisten(&control->socket);
		leat_heap_free(control);
		return do_without(dp, diag, err, strerror(-err));
	}
	control->spare = open_spare();
	*out = control;
	return 0;
}

int leat_control_fd(const struct leat_control *control)
{
	return control ? control->epoll : -1;
}

const char *leat_control_path(const struct leat_control *control)
{
	return control->socket.path;
}

void leat_control_set_idle(struct leat_control *control, uint64_t ns)
{
	control->idle_ns = ns;
}

void leat_control_close(struct leat_control *control)
{
	unsigned int i;

	if (!control)
		return;
	leat_control_unlisten(&control->socket);
	for (i = 0; i < LEAT_CONTROL_CLIENTS; i++)
		if (control->client[i].fd >= 0)
			drop_client(&control->client[i]);
	if (control->spare >= 0)
		close(control->spare);
	close(control->epoll);
	leat_heap_free(control);
}
