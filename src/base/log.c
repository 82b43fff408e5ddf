/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c: messages to the embedding program. Any thread; one lock for all logs of the process, since messages are rare
 * and the callback must never run twice at a time. The callback must not log.
 */
#include <leat/log.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_SIZE 512

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;

void leat_log(const struct leat_log *log, enum leat_log_level level, const char *fmt, ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	if (!log || !log->fn || level > log->level)
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	pthread_mutex_lock(&callback_lock);
	log->fn(log->arg, level, message);
	pthread_mutex_unlock(&callback_lock);
}
