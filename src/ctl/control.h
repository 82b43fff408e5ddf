/* SPDX-License-Identifier: BSD-3-Clause */
/* control.h: the parts of the control socket: the socket itself, and the words that are spoken on it. */
#ifndef LEAT_CTL_CONTROL_H
#define LEAT_CTL_CONTROL_H

#include <leat/control.h>

#include "ctl/datapath.h"

/** Bytes of a request, with its line end. */
#define LEAT_CONTROL_LINE_MAX 4096u
/** Connections at a time. */
#define LEAT_CONTROL_CLIENTS 16u

/* ---- control_socket.c ---- */

/** The listening socket. */
struct leat_control_socket {
	int fd;
	char path[108];
	uint64_t dev, ino; /* of what stands at path, so that nobody else's is removed */
};

/**
 * Opens it as the configuration says, at @path. A stale socket is replaced. Returns 0; or a negative errno, having
 * written why to @why: -EADDRINUSE when somebody listens there.
 */
int leat_control_listen(const struct leat_config_control *config, const char *path, struct leat_control_socket *socket,
			char *why, size_t why_size);
/** Closes and removes it. */
void leat_control_unlisten(struct leat_control_socket *socket);

/* ---- control.c, for tests ---- */

/** A connection that has not moved for so long gives its place to a new one when all are taken. */
void leat_control_set_idle(struct leat_control *control, uint64_t ns);

/* ---- control_json.c ---- */

/**
 * The reply to one request, the @len bytes of @line: one line with its end; free() it. NULL when memory is out.
 * @reply_len gets its length. *control*.
 */
char *leat_control_answer(struct leat_datapath *dp, const char *line, size_t len, size_t *reply_len);

#endif
