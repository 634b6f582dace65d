/*
 * log.h - one JSON line per fact on one descriptor (stderr by default).
 *
 * Fields: ts (Unix seconds), level, role, pid, msg, and request_id, sandbox_id,
 * job_id when set. A line is one write(2) of at most 8 KiB, so lines of several
 * processes never mix. Secrets never go in. An error is logged once, where it
 * is handled. Not for signal handlers (there are none).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_LOG_H
#define ORCHARD_BASE_LOG_H

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* Whom a line is about; any member may be NULL. */
struct log_ctx {
	const char *request_id;
	const char *sandbox_id;
	const char *job_id;
};

/* role must outlive the process (a literal). Called again after each fork. */
void log_init(const char *role, enum log_level level);
void log_set_level(enum log_level level);
/* Where lines go; the default is 2. */
void log_set_fd(int fd);
/* Of stderr: whoever reads it, and stands still, holds nobody up. What it does not take is dropped, and counted. */
void log_never_block(void);
/* "debug" "info" "warn" "error" (any case); -1 for anything else. */
int log_level_parse(const char *name, enum log_level *ret_level);

void log_write(enum log_level level, const struct log_ctx *ctx, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_debug(...) log_write(LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, NULL, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, NULL, __VA_ARGS__)

#endif
