/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h: the control socket of a datapath: what runs is asked by other processes, JSON lines on a Unix socket.
 *
 * Each request is one object on one line, each reply is one object on one line, in the order of the requests; leat(8)
 * says which there are. Nothing is changed by any. The socket has no thread: who runs the datapath waits for its
 * descriptor and serves. No call blocks.
 */
#ifndef LEAT_CONTROL_H
#define LEAT_CONTROL_H

#include <leat/datapath.h>

LEAT_BEGIN_DECLS

struct leat_control;

/**
 * Opens the socket that the configuration of @dp (**borrows**) says. One in use by another process is left alone, one
 * that nobody listens on any more is replaced. *control ends as NULL where there is to be none: with "control: off";
 * and if the configuration says nothing and the default place cannot be had, which is logged. Call before
 * leat_datapath_start(), so that a mistake ends the start. *control*. Returns 0; else a negative errno, and @diag says
 * why.
 */
LEAT_API int leat_control_open(struct leat_datapath *dp, struct leat_diag *diag, struct leat_control **control);
/** Readable when leat_control_serve() has something to do (level-triggered); -1 for NULL. */
LEAT_API int leat_control_fd(const struct leat_control *control);
/** The path of the socket. */
LEAT_API const char *leat_control_path(const struct leat_control *control);
/** Answers at most one request of each client. NULL allowed. *control*. */
LEAT_API void leat_control_serve(struct leat_control *control);
/** Closes every connection and removes the socket. Before leat_datapath_destroy(). NULL allowed. *control*. */
LEAT_API void leat_control_close(struct leat_control *control);

/**
 * Writes the path of the socket of a datapath whose configuration says none: what LEAT_CONTROL in the environment says;
 * else /run/leat/control.sock for root, and $XDG_RUNTIME_DIR/leat/control.sock for others. Returns 0; -ENOENT (none for
 * this user, or LEAT_CONTROL is empty); -ENAMETOOLONG (@size). *any*.
 */
LEAT_API int leat_control_default_path(char *buf, size_t size);

LEAT_END_DECLS

#endif
