/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h: what the library has to say while it runs, handed to the embedding program.
 *
 * The library never prints. A leat_log belongs to one leat_net; without a callback its messages go nowhere.
 */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

enum leat_log_level {
	LEAT_LOG_ERROR,   /* something a person asked for does not work */
	LEAT_LOG_WARNING, /* it works, but not as asked */
	LEAT_LOG_INFO,    /* a port came or went, a run began or ended */
	LEAT_LOG_DEBUG,
};

/** Receives one message, without a line end. Called on any thread, never twice at a time for one leat_log. */
typedef void leat_log_fn(void *arg, enum leat_log_level level, const char *message);

/** Where messages go. Zero-initialised: nowhere. Set before the first use; not changed later. */
struct leat_log {
	leat_log_fn *fn;
	void *arg;
	enum leat_log_level level; /* messages above it are not made */
};

/** Formats a message of at most 511 bytes and hands it on. *any* thread; @log may be NULL. */
LEAT_API void leat_log(const struct leat_log *log, enum leat_log_level level, const char *fmt, ...) LEAT_PRINTF(3, 4);

LEAT_END_DECLS

#endif
