/*
 * err.c - formats failure messages into the caller's struct err.
 *
 * Everything is formatted into a local buffer first, so a message may be built
 * from the one that is already there. A message is valid UTF-8, whatever bytes it
 * quotes: it becomes part of a JSON answer.
 */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ERR_CUT "..."

static const char *const code_names[ERR_CODE_COUNT] = {
	[ERR_NONE] = "none",
	[ERR_INVALID] = "invalid",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_EXISTS] = "exists",
	[ERR_CONFLICT] = "conflict",
	[ERR_KEY_CONFLICT] = "key_conflict",
	[ERR_OUTCOME_LOST] = "outcome_lost",
	[ERR_NOT_READY] = "not_ready",
	[ERR_DENIED] = "denied",
	[ERR_TOO_LARGE] = "too_large",
	[ERR_RANGE] = "range",
	[ERR_GONE] = "gone",
	[ERR_CLOSED] = "closed",
	[ERR_BUSY] = "busy",
	[ERR_NO_CAPACITY] = "no_capacity",
	[ERR_NO_SPACE] = "no_space",
	[ERR_STALE] = "stale",
	[ERR_TIMEOUT] = "timeout",
	[ERR_UNAVAILABLE] = "unavailable",
	[ERR_AGENT_UNREACHABLE] = "agent_unreachable",
	[ERR_DELETED] = "deleted",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_INTERNAL] = "internal",
};

static const struct {
	int errnum;
	enum err_code code;
} errno_codes[] = {
	{ ENOSPC, ERR_NO_SPACE },
	{ EDQUOT, ERR_NO_SPACE },
	{ EACCES, ERR_DENIED },
	{ EPERM, ERR_DENIED },
	{ EROFS, ERR_DENIED },
	{ ENOENT, ERR_NOT_FOUND },
	{ EEXIST, ERR_EXISTS },
	{ EFBIG, ERR_TOO_LARGE },
	{ ENOMEM, ERR_NO_CAPACITY },
	{ EMFILE, ERR_NO_CAPACITY },
	{ ENFILE, ERR_NO_CAPACITY },
	{ EAGAIN, ERR_BUSY },
	{ EBUSY, ERR_BUSY },
	{ ETIMEDOUT, ERR_TIMEOUT },
	{ ECONNREFUSED, ERR_UNAVAILABLE },
	{ ECONNRESET, ERR_UNAVAILABLE },
	{ EPIPE, ERR_UNAVAILABLE },
	{ ENOSYS, ERR_UNSUPPORTED },
	{ EOPNOTSUPP, ERR_UNSUPPORTED },
};

static void
err_store(struct err *err, const char *text, bool cut)
{
	size_t len = strnlen(text, sizeof err->msg - 1);

	if (cut) {
		if (len > sizeof err->msg - sizeof ERR_CUT)
			len = sizeof err->msg - sizeof ERR_CUT;
		len = text_utf8_whole(text, len);
	}
	memmove(err->msg, text, len);
	memcpy(err->msg + len, cut ? ERR_CUT : "", cut ? sizeof ERR_CUT : 1);
	text_utf8_mend(err->msg);
}

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	char text[sizeof err->msg];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (len < 0)
		text[0] = '\0';
	if (err == NULL)
		return -1;
	err->code = code;
	err_store(err, text, len >= (int)sizeof text);
	return -1;
}

static enum err_code
err_code_of_errno(int errnum)
{
	for (size_t i = 0; i < sizeof errno_codes / sizeof errno_codes[0]; i++)
		if (errno_codes[i].errnum == errnum)
			return errno_codes[i].code;
	return ERR_INTERNAL;
}

int
err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
	char what[sizeof err->msg];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	if (len < 0)
		what[0] = '\0';
	return err_set(err, err_code_of_errno(errnum), "%s: %s", what, strerror(errnum));
}

int
err_prefix(struct err *err, const char *fmt, ...)
{
	char what[sizeof err->msg];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	if (len < 0 || err == NULL)
		return -1;
	return err_set(err, err->code, "%s: %s", what, err->msg);
}

const char *
err_code_name(enum err_code code)
{
	if ((unsigned)code >= ERR_CODE_COUNT)
		return "internal";
	return code_names[code];
}
